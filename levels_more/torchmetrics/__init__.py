"""torchmetrics' API on levels_more.torch: the part that chapter 3 of "eat pytorch in 20 days" uses.

Metrics of binary classification, for float labels, are in `levels_more.torchkeras.metrics`, as in torchkeras.
"""

from levels_more import torch
from levels_more.missing import module_api


class MeanOverBatches(torch.nn.Module):
    """The mean over all numbers of all batches. A subclass defines `each(preds, target)`, the numbers of a batch."""

    total = counted = 0

    def forward(self, preds, target):
        """Add a batch, two tensors […], and return the mean of that batch. Raises ValueError if their shapes differ."""
        if preds.shape != target.shape:
            shapes = f"preds is {tuple(preds.shape)}, target {tuple(target.shape)}"
            raise ValueError(f"{type(self).__name__}: {shapes}; expected equal shapes")
        found = self.each(preds.detach(), target.detach())
        self.total = self.total + found.sum().item()
        self.counted = self.counted + found.numel()
        return found.mean()

    update = forward

    def compute(self):
        """The mean over all batches since the last `reset`; NaN before the first."""
        return torch.tensor(self.total / self.counted if self.counted else float("nan"))

    def reset(self):
        """Forget all batches."""
        self.total = self.counted = 0


class MeanAbsoluteError(MeanOverBatches):
    """mean(|preds - target|) over all numbers of all batches. preds and target have the same shape."""

    def each(self, preds, target):
        """|preds - target|, in the shape of both."""
        return torch.abs(preds - target)


__getattr__, __dir__ = module_api("torchmetrics", globals())

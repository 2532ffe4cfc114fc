"""torchmetrics' names on levels_more.torch: what chapter 3 of "eat pytorch in 20 days" takes from it.

Metrics of yes and no, for labels that are floats, are in `levels_more.torchkeras.metrics`, as in torchkeras.
"""

from levels_more import torch
from levels_more.missing import room


class MeanAbsoluteError(torch.nn.Module):
    """mean(|preds - target|) of all numbers, over all batches, for preds and target of one shape."""

    total = counted = 0

    def forward(self, preds, target):
        """Count a batch, two tensors […]. Returns its own mean. Raises ValueError for two shapes."""
        if preds.shape != target.shape:
            shapes = f"preds is {tuple(preds.shape)}, target {tuple(target.shape)}"
            raise ValueError(f"MeanAbsoluteError: {shapes}; expected equal shapes")
        size = torch.abs(preds.detach() - target.detach()).sum().item()
        self.total = self.total + size
        self.counted = self.counted + preds.numel()
        return torch.tensor(size / preds.numel())

    update = forward

    def compute(self):
        """The mean over all batches since the last `reset`; NaN before the first."""
        return torch.tensor(self.total / self.counted if self.counted else float("nan"))

    def reset(self):
        """Forget all batches."""
        self.total = self.counted = 0


__getattr__, __dir__ = room("torchmetrics", globals())

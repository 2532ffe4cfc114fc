"""What a net of levels_more.torch is made of, printed; metrics that count over batches; one pass over the batches."""

import numpy as np

from levels_more import torch
from levels_more.checks import expect


def summary(model, input_data=None, input_shape=None, batch_size=-1):
    """Print the parts of a model that hold no others: what each gives, and its parameters. Returns the text.

    It runs the model once, on `input_data`, a tensor, or on two rows of `input_shape`. Raises TypeError for neither.
    (torchkeras adds four lines about megabytes.)
    """
    if input_data is None:
        expect(input_shape is not None, "summary: input_shape", input_shape, "it, or input_data, a batch of features")
        dtype = next((p.dtype for p in model.parameters()), torch.float32)
        input_data = torch.rand(2, *input_shape).to(dtype)
    expect(isinstance(input_data, torch.Tensor), "summary: input_data", input_data, "a tensor; a shape is input_shape")
    lines, parts = [], [part for part in model.modules() if len([*part.modules()]) == 1]

    def noted(part, forward):
        def run(*args):
            y, count = forward(*args), sum(p.numel() for p in part.parameters())
            name, shape = f"{type(part).__name__}-{len(lines) + 1}", [batch_size, *y.shape[1:]]
            lines.append(f"{name:<30}  {shape!s:>20} {count:>20,}")
            return y

        return run

    for part in parts:
        part.forward = noted(part, part.forward)
    try:
        with torch.no_grad():
            model(input_data)
    finally:
        for part in parts:
            del part.forward
    total, trained = (sum(p.numel() for p in model.parameters() if p.requires_grad >= least) for least in (0, 1))
    counts = f"Total params: {total:,}\nTrainable params: {trained:,}\nNon-trainable params: {total - trained:,}"
    head = f"{'Layer (type)':<30}  {'Output Shape':>20} {'Param #':>20}"
    text = "\n".join(["-" * 74, head, "=" * 74, *lines, "=" * 74, counts, "-" * 74])
    print(text)
    return text


class Share(torch.nn.Module):
    """Of all answers that count, the share that is a hit, over all batches. preds are logits, targets 0 and 1."""

    hits = counted = 0

    def forward(self, preds, targets):
        said, true = preds.detach().numpy().ravel() >= 0.0, targets.numpy().ravel() >= 0.5
        hit, count = (int(marked.sum()) for marked in self.marked(said, true))
        self.hits, self.counted = self.hits + hit, self.counted + count
        return torch.tensor(hit / count if count else float("nan"))

    def compute(self):
        """The share over all batches since the last `reset`."""
        return torch.tensor(self.hits / self.counted if self.counted else float("nan"))

    def reset(self):
        """Forget all batches."""
        self.hits = self.counted = 0


SHARES = {  # name -> of what was said and what is true, the hits and what counts
    "Accuracy": lambda self, said, true: (said == true, true | True),
    "Precision": lambda self, said, true: (said & true, said),
    "Recall": lambda self, said, true: (said & true, true),
}
SHARES = {name: type(name, (Share,), {"marked": marked}) for name, marked in SHARES.items()}


class Ranked(torch.nn.Module):
    """Counts, of each ten-thousandth of a probability, how often what is 1 and what is 0 got it, over all batches.

    preds are logits, targets 0 and 1.
    """

    PLACES = 10001

    def __init__(self):
        super().__init__()
        self.counts = np.zeros((2, self.PLACES))

    def forward(self, preds, targets):
        place = (10000.0 * torch.sigmoid(preds.detach()).numpy()).ravel().astype(np.int64)
        true = targets.numpy().ravel() >= 0.5
        new = np.stack([np.bincount(place[each], minlength=self.PLACES) for each in (~true, true)])
        self.counts = self.counts + new
        return torch.tensor(self.formula(*new))

    def compute(self):
        """The metric over all batches since the last `reset`; NaN without a row of each kind."""
        return torch.tensor(self.formula(*self.counts))

    def reset(self):
        """Forget all batches."""
        self.counts = np.zeros((2, self.PLACES))


class AUC(Ranked):
    """The share of pairs of a 1 and a 0 in which the 1 got more; as much counts half (Hanley and McNeil, 1982)."""

    def formula(self, zeros, ones):
        """The share, from the counts [places] of each kind."""
        above = ones[::-1].cumsum()[::-1] - ones / 2.0
        pairs = ones.sum() * zeros.sum()
        return float((above * zeros).sum() / pairs) if pairs else float("nan")


class KS(Ranked):
    """The largest distance between the shares of ones and of zeros up to a probability (Kolmogorov and Smirnov, 1939)."""

    def formula(self, zeros, ones):
        """The distance, from the counts [places] of each kind."""
        if not zeros.sum() or not ones.sum():
            return float("nan")
        return float(np.abs(ones.cumsum() / ones.sum() - zeros.cumsum() / zeros.sum()).max())


def one_pass(net, data, loss_fn, metrics, step=None, before=""):
    """Go through batches (features, labels), with step(loss) after each one. {"loss": the mean over batches, each metric}"""
    net.train(step is not None)
    losses, values = [], {name: [] for name in metrics}
    for features, labels in data:
        with torch.set_grad_enabled(step is not None):
            preds = net(features)
            loss = loss_fn(preds, labels)
        for name, metric in metrics.items():
            values[name].append(metric(preds, labels).item())
        if step is not None:
            step(loss)
        losses.append(loss.item())
    found = {f"{before}loss": sum(losses) / len(losses)}
    for name, metric in metrics.items():
        counts = hasattr(metric, "compute")
        found[before + name] = metric.compute().item() if counts else sum(values[name]) / len(losses)
        if counts:
            metric.reset()
    return found

"""What a net of levels_more.torch is made of, printed; metrics that count over batches; one pass over the batches."""

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


class Accuracy(torch.nn.Module):
    """Of all answers the share that is right, over all batches. preds are logits, targets 0 and 1."""

    hits = counted = 0

    def forward(self, preds, targets):
        right = (preds.detach() >= 0.0) == (targets >= 0.5)
        self.hits, self.counted = self.hits + int(right.sum()), self.counted + right.numel()
        return right.double().mean()

    def compute(self):
        """The share over all batches since the last `reset`."""
        return torch.tensor(self.hits / self.counted if self.counted else float("nan"))

    def reset(self):
        """Forget all batches."""
        self.hits = self.counted = 0


def one_pass(net, data, loss_fn, metrics, step=None, before=""):
    """Go through batches (features, labels), with step(loss) after each one. {"loss": its mean, each metric}"""
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

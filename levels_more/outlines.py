"""What a net of levels_more.torch is made of, printed, and metrics of it that count over batches."""

from levels_more import torch


def summary(model, input_shape, batch_size=-1):
    """Print the parts of a model that hold no others: what each gives for rows of this shape, and its parameters. Returns the text."""
    dtype = next((p.dtype for p in model.parameters()), torch.float32)
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
            model(torch.rand(2, *input_shape).to(dtype))
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

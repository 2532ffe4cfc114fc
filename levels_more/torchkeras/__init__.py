"""torchkeras' API on levels_more.torch: a summary of a net, a training loop, and its history as a table of pandas.

`KerasModel` is that of torchkeras 4.0.5. It clips gradients, as torchkeras does since 3.8.8, and has no `predict`, as
since 3.3.1.
"""

import copy
from types import SimpleNamespace as _Namespace

import numpy as np

from levels_more import needed, torch
from levels_more.checks import expect
from levels_more.missing import module_api, small_room
from levels_more.missing import refusing as _refusing
from levels_more.torchmetrics import MeanOverBatches as _MeanOverBatches

__version__ = "4.0.5+levels"  # the version of torchkeras beside which the stored programs run


def summary(model, input_data=None, input_shape=None, batch_size=-1):
    """Print the innermost modules of a model, with output shapes and numbers of parameters. Return the text.

    It runs the model once, on the tensor `input_data`, or on two random rows of `input_shape`. Raises TypeError if both
    are missing. (torchkeras adds four lines about memory.)
    """
    if input_data is None:
        expect(input_shape is not None, "summary: input_shape", input_shape, "a shape, or input_data, a batch")
        dtype = next((p.dtype for p in model.parameters()), torch.float32)
        input_data = torch.rand(2, *input_shape).to(dtype)
    expect(isinstance(input_data, torch.Tensor), "summary: input_data", input_data, "a tensor; a shape is input_shape")
    lines, parts = [], [part for part in model.modules() if len([*part.modules()]) == 1]

    def noted(part, forward):
        def run(*args):
            y = forward(*args)
            count = sum(p.numel() for p in part.parameters())
            name = f"{type(part).__name__}-{len(lines) + 1}"
            shape = [batch_size, *y.shape[1:]]
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


class Accuracy(_MeanOverBatches):
    """The share of correct predictions over all batches, float32. preds[…] are logits, targets[…] are 0 or 1."""

    def each(self, preds, target):
        """1 where a prediction is correct, else 0, in the shape of both."""
        return ((torch.sigmoid(preds) >= 0.5) == (target > 0.5)).float()

    def compute(self):
        return super().compute().float()


def one_pass(net, data, loss_fn, metrics, step=None, before=""):
    """Run a net on batches (features, labels), with step(loss) after each. Return {before + name: mean loss or metric}.

    The metrics are copied, so those given keep their state. Raises TypeError if there is no batch, or one is no pair.
    """
    net.train(step is not None)
    metrics = copy.deepcopy(metrics)
    losses = []
    for batch in data:
        pair = isinstance(batch, list | tuple) and len(batch) == 2
        expect(pair, f"a batch of the {before}data", batch, "a pair (features, labels)")
        features, labels = batch
        with torch.no_grad() if step is None else torch.enable_grad():
            preds = net(features)
            loss = loss_fn(preds, labels)
        for metric in metrics.values():
            metric(preds, labels)
        if step is not None:
            step(loss)
        losses.append(loss.item())
    expect(losses, f"the {before}data", data, "one batch or more; there was none")
    found = {name: metric.compute().item() for name, metric in metrics.items()}
    return {before + name: value for name, value in {"loss": sum(losses) / len(losses), **found}.items()}


metrics = small_room("torchkeras.metrics", Accuracy=Accuracy)


def _table(history):
    with needed():
        import pandas  # here, because it loads slowly

    return pandas.DataFrame(history)


class KerasModel(torch.nn.Module):
    """A net, a loss, metrics (modules with `compute`), an optimizer (default: Adam, lr 3e-4), a schedule per step."""

    __getattr__ = _refusing("a KerasModel", "torch", accelerator="fit first", predict="net(x), in torch.no_grad()")

    def __init__(self, net, loss_fn, metrics_dict=None, optimizer=None, lr_scheduler=None):
        super().__init__()
        for name, metric in (metrics_dict or {}).items():
            expect(hasattr(metric, "compute"), f"metrics_dict: {name}", metric, "a module with `compute`")
        self.net = net
        self.loss_fn = loss_fn
        self.metrics_dict = metrics_dict or {}
        self.optimizer = optimizer or torch.optim.Adam(net.parameters(), lr=3e-4)
        self.lr_scheduler = lr_scheduler
        self.ckpt_path = "checkpoint"
        self.from_scratch = True

    def forward(self, x):
        return self.net(x)

    def evaluate(self, val_data, quiet=False):
        """Return {"val_loss": the mean over all batches, "val_" + name: each metric}. `quiet` has no effect."""
        return one_pass(self, val_data, self.loss_fn, self.metrics_dict, None, "val_")

    def save_ckpt(self, ckpt_path=None):
        """Write the net's state dict to a file, by default that of the last `fit`."""
        torch.save(self.net.state_dict(), ckpt_path or self.ckpt_path)

    def load_ckpt(self, ckpt_path=None):
        """Load the net's state dict from a file. The next `fit` begins with an epoch 0, which changes no weights."""
        self.net.load_state_dict(torch.load(ckpt_path or self.ckpt_path))
        self.from_scratch = False

    def _step(self, loss):
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)  # as torchkeras does
        self.optimizer.step()
        if self.lr_scheduler is not None:
            self.lr_scheduler.step()
        self.optimizer.zero_grad()

    def _epoch(self, epoch, train_data, val_data):
        """Run an epoch, in which weights change unless it is epoch 0. Return {name: number}."""
        step = self._step if epoch else lambda loss: None
        logs = one_pass(self, train_data, self.loss_fn, self.metrics_dict, step, "train_")
        logs["lr"] = self.optimizer.param_groups[0]["lr"] if epoch else 0.0
        return logs | (self.evaluate(val_data) if val_data is not None else {})

    def _best(self, monitor, mode):
        """Return the best epoch by `monitor`, of which a NaN is the worst. Raises ValueError if it is not there."""
        if monitor not in self.history:
            raise ValueError(f"fit: monitor is {monitor!r}; this training has {', '.join(self.history)}")
        scores = np.array(self.history[monitor]) * (1.0 if mode == "min" else -1.0)
        return self.history["epoch"][np.argmin(np.where(np.isnan(scores), np.inf, scores))]

    def fit(
        self,
        train_data,
        val_data=None,
        epochs=10,
        ckpt_path="checkpoint",
        patience=5,
        monitor="val_loss",
        mode="min",
        *,
        plot=True,
        cpu=False,
    ):
        """Train, save the best weights in `ckpt_path`, and load them at the end. Return a table, a row for each epoch.

        Stop if `monitor` has not improved for `patience` epochs. `plot` and `cpu` have no effect: each epoch prints a
        line, and the CPU is the only device. Raises TypeError for a wrong mode or no epoch, and ValueError if `monitor`
        is not in the history.
        """
        expect(mode in ("min", "max"), "fit: mode", mode, "'min' or 'max'")
        expect(isinstance(epochs, int) and epochs >= 1, "fit: epochs", epochs, "a whole number, 1 or more")
        for runner in {"StepRunner", "EpochRunner"} & {*dir(type(self))}:
            raise NotImplementedError(f"KerasModel.{runner} is not called here; write the loop over batches yourself")
        self.accelerator = _Namespace(device=torch.device("cpu"))
        self.ckpt_path = ckpt_path
        self.history = {}
        for epoch in range(int(self.from_scratch), epochs + 1):
            logs = self._epoch(epoch, train_data, val_data)
            print(f"epoch {epoch} of {epochs}:", ", ".join(f"{name} {value:.5g}" for name, value in logs.items()))
            for name, value in {"epoch": epoch, **logs}.items():
                self.history.setdefault(name, []).append(value)
            best = self._best(monitor, mode)
            if best == epoch:
                self.save_ckpt()
            if epoch - best >= patience:
                break
        self.load_ckpt()
        return _table(self.history)


__getattr__, __dir__ = module_api("torchkeras", globals())

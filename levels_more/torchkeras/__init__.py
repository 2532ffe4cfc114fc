"""torchkeras' API on levels_more.torch: a summary of a net, a training loop, and its history as a table of pandas.

`KerasModel` is that of torchkeras 3.9 and 4, which clips gradients. `LightModel` is that of torchkeras 3.2 to 3.8, on
`levels_more.pytorch_lightning`. ("eat pytorch in 20 days" asks for 3.2.2, whose `KerasModel` does not clip gradients,
and has a default learning rate of 0.01.)
"""

import copy

import numpy as np

from levels_more import needed, torch
from levels_more.checks import expect
from levels_more.missing import module_api, small_room
from levels_more.pytorch_lightning import LightningModule

__version__ = "4.0.0+levels"


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


class Accuracy(torch.nn.Module):
    """The share of correct predictions over all batches. preds[…] are logits, targets[…] are 0 or 1."""

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
    """Run a net on batches (features, labels), with step(loss) after each. Return {before + name: mean or metric}."""
    net.train(step is not None)
    losses = []
    values = {name: [] for name in metrics}
    for features, labels in data:
        with torch.set_grad_enabled(step is not None):
            preds = net(features)
            loss = loss_fn(preds, labels)
        for name, metric in metrics.items():
            values[name].append(metric(preds, labels).item())
        if step is not None:
            step(loss)
        losses.append(loss.item())
    expect(losses, f"the {before}data", data, "one batch or more; there was none")
    found = {f"{before}loss": sum(losses) / len(losses)}
    for name, metric in metrics.items():
        counts = hasattr(metric, "compute")
        found[before + name] = metric.compute().item() if counts else sum(values[name]) / len(losses)
        if counts:
            metric.reset()
    return found


metrics = small_room("torchkeras.metrics", Accuracy=Accuracy)


def _table(history):
    with needed():
        import pandas  # here, because it loads slowly

    return pandas.DataFrame(history)


class KerasModel(torch.nn.Module):
    """A net, a loss, metrics with `compute` and `reset`, an optimizer (default: Adam, lr 3e-4), a schedule per step."""

    def __init__(self, net, loss_fn, metrics_dict=None, optimizer=None, lr_scheduler=None):
        super().__init__()
        self.net = net
        self.loss_fn = loss_fn
        self.metrics_dict = metrics_dict or {}
        self.optimizer = optimizer or torch.optim.Adam(net.parameters(), lr=3e-4)
        self.lr_scheduler = lr_scheduler
        self.from_scratch = True

    def forward(self, x):
        return self.net(x)

    def _noted(self, logs, quiet=False):
        """Append numbers to the history, and print them unless `quiet`."""
        for name, value in logs.items():
            self.history.setdefault(name, []).append(value)
        if not quiet:
            print(", ".join(f"{name} {value:.5g}" for name, value in logs.items()))

    def evaluate(self, val_data):
        """Return {"val_loss": the mean over all batches, "val_" + name: each metric}."""
        return one_pass(self, val_data, self.loss_fn, self.metrics_dict, None, "val_")

    def predict(self, data):
        """Return the net's output for the features of all batches, concatenated."""
        self.eval()
        with torch.no_grad():
            return torch.cat([self(batch[0]) for batch in data])

    def save_ckpt(self, ckpt_path="checkpoint"):
        """Write the net's state dict to a file."""
        torch.save(self.net.state_dict(), ckpt_path)

    def load_ckpt(self, ckpt_path="checkpoint"):
        """Load the net's state dict from a file. The next `fit` begins with an epoch 0, which changes no weights."""
        self.net.load_state_dict(torch.load(ckpt_path))
        self.from_scratch = False

    def _step(self, loss):
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)  # as torchkeras does
        self.optimizer.step()
        if self.lr_scheduler is not None:
            self.lr_scheduler.step()
        self.optimizer.zero_grad()

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
        plot=False,
        quiet=False,
        cpu=True,
    ):
        """Train, save the best weights in `ckpt_path`, and load them at the end. Return a table, a row for each epoch.

        Stop if `monitor` has not improved for `patience` epochs. `plot` and `cpu` have no effect. Raises ValueError if
        `monitor` is not in the history.
        """
        self.history = {}
        for epoch in range(int(self.from_scratch), epochs + 1):
            step = self._step if epoch else lambda loss: None
            rate = self.optimizer.param_groups[0]
            logs = one_pass(self, train_data, self.loss_fn, self.metrics_dict, step, "train_")
            self._noted({"epoch": epoch, **logs, "lr": rate["lr"] if epoch else 0.0}, quiet)
            self._noted(self.evaluate(val_data) if val_data is not None else {}, quiet or val_data is None)
            if monitor not in self.history:
                raise ValueError(f"fit: monitor is {monitor!r}; this training has {', '.join(self.history)}")
            worst = np.inf if mode == "min" else -np.inf  # as a NaN is, which NumPy takes for the best
            scores = np.where(np.isnan(self.history[monitor]), worst, self.history[monitor])
            best = int(np.argmax(scores) if mode == "max" else np.argmin(scores))
            if best == len(scores) - 1:
                self.save_ckpt(ckpt_path)
            if len(scores) - best > patience:
                break
        self.load_ckpt(ckpt_path)
        return _table(self.history)


class LightModel(LightningModule):
    """A net, a loss, metrics with `compute` and `reset`, an optimizer (default: Adam, lr 1e-2), a schedule per epoch.

    A `pytorch_lightning.Trainer` trains it. Override `shared_step` if batches are not pairs (features, labels).
    """

    def __init__(self, net, loss_fn, metrics_dict=None, optimizer=None, lr_scheduler=None):
        super().__init__()
        self.net = net
        self.loss_fn = loss_fn
        self.history = {}
        self.metrics_of = {stage: copy.deepcopy(metrics_dict or {}) for stage in ("train", "val", "test")}
        self.optimizer = optimizer or torch.optim.Adam(net.parameters(), lr=1e-2)
        self.lr_scheduler = lr_scheduler

    def forward(self, x):
        return self.net(x)

    def configure_optimizers(self):
        """The optimizer and the schedule."""
        return {"optimizer": self.optimizer, "lr_scheduler": self.lr_scheduler}

    def shared_step(self, batch, batch_idx):
        """Return {"loss": one number, "preds": the net's output, "y": the labels} for a batch."""
        features, labels = batch
        preds = self(features)
        return {"loss": self.loss_fn(preds, labels), "preds": preds.detach(), "y": labels.detach()}

    def _counted(self, stage, batch, batch_idx):
        """Return {"loss": the loss of a batch}, and update all metrics of this stage."""
        found = self.shared_step(batch, batch_idx)
        for metric in self.metrics_of[stage].values():
            metric(found["preds"], found["y"])
        return {"loss": found["loss"].mean()}

    def training_step(self, batch, batch_idx):
        return self._counted("train", batch, batch_idx)

    def validation_step(self, batch, batch_idx):
        return self._counted("val", batch, batch_idx)

    def test_step(self, batch, batch_idx):
        return self._counted("test", batch, batch_idx)

    def predict_step(self, batch, batch_idx):
        """Return the net's output for the features of a batch."""
        return self(batch[0] if isinstance(batch, list | tuple) else batch)

    def _ended(self, stage, outputs):
        """Print and log the means of an epoch or of a test, reset the metrics, and add an epoch to the history."""
        found = {f"{stage}_loss": sum(each["loss"].item() for each in outputs) / len(outputs)}
        for name, metric in self.metrics_of[stage].items():
            found[f"{stage}_{name}"] = metric.compute().item()
            metric.reset()
        row = {"epoch": self.trainer.current_epoch, **found}
        if stage != "test":
            self.history.setdefault(row["epoch"], {}).update(row)
        self.print(", ".join(f"{name} {value:.5g}" for name, value in row.items()))
        self.log_dict(found)

    def training_epoch_end(self, outputs):
        self._ended("train", outputs)

    def validation_epoch_end(self, outputs):
        self._ended("val", outputs)

    def test_epoch_end(self, outputs):
        self._ended("test", outputs)

    def get_history(self):
        """Return a table, a row for each epoch."""
        return _table([*self.history.values()])

    @classmethod
    def load_from_checkpoint(cls, checkpoint_path, net=None, loss_fn=None, **more):
        """Return a new model of this net and loss with a checkpoint's weights. Raises TypeError if either is missing.

        (torchkeras stores both in the file, pickled. A file here holds numbers only.)
        """
        for name, given in (("net", net), ("loss_fn", loss_fn)):
            expect(given is not None, f"load_from_checkpoint: {name}", given, "an object: a file holds numbers only")
        return super().load_from_checkpoint(checkpoint_path, net=net, loss_fn=loss_fn, **more)


__getattr__, __dir__ = module_api("torchkeras", globals())

"""torchkeras' names on levels_more.torch: a training loop for a net, and a table of what it told, a DataFrame of pandas.

`KerasModel` is that of torchkeras 3.9 and 4, which shortens gradients, `LightModel` that of torchkeras 3.2 to 3.8, on
`levels_more.pytorch_lightning`, and `Model` that of torchkeras 1. ("eat pytorch in 20 days" asks for 3.2.2, whose
`KerasModel` shortens nothing and starts at a rate of 0.01.)
"""

import copy
import random
import sys
from types import ModuleType

import numpy as np

from levels_more import needed, torch
from levels_more.checks import expect
from levels_more.missing import missing
from levels_more.pytorch_lightning import LightningModule
from levels_more.torchkeras.summaries import AUC, KS, SHARES, one_pass, summary

__version__ = "4.0, its names on levels"


def seed_everything(seed=42):
    """Python's, NumPy's and our random numbers begin anew, at others for each seed."""
    for begin in (random.seed, np.random.seed, torch.manual_seed):
        begin(seed)
    return seed


metrics = sys.modules[f"{__name__}.metrics"] = ModuleType(f"{__name__}.metrics", "`torchkeras.metrics`.")
vars(metrics).update(SHARES, AUC=AUC, KS=KS)


def _missing_metric(name):
    told = f"here are {', '.join(SHARES)}, AUC and KS, of yes and no"
    raise missing(f"{metrics.__name__} has no {name!r}; {told}; torchmetrics has MeanAbsoluteError", name)


metrics.__getattr__ = _missing_metric


class Model(torch.nn.Module):
    """A net with compile, fit, evaluate and predict, or a class under this one that is a net itself."""

    def __init__(self, net=None):
        super().__init__()
        self.net = net

    def forward(self, x):
        return self.net(x)

    def compile(self, loss_func, optimizer=None, metrics_dict=None):
        """Choose a loss, an optimizer (Adam at 1e-3) and metrics, {name: function of predictions and labels}."""
        self.loss_fn, self.metrics_dict = loss_func, metrics_dict or {}
        self.optimizer = optimizer or torch.optim.Adam(self.parameters(), lr=1e-3)

    def summary(self, input_shape):
        """Print its parts: see `summary`."""
        return summary(self, input_shape=input_shape)

    def _step(self, loss):
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def _noted(self, logs, quiet=False):
        """A row more in the history."""
        for name, value in logs.items():
            self.history.setdefault(name, []).append(value)
        if not quiet:
            print(", ".join(f"{name} {value:.5g}" for name, value in logs.items()))

    def fit(self, epochs, dl_train, dl_val=None, log_step_freq=1):
        """Train. Returns a table, a row for each epoch; `log_step_freq` changes nothing here."""
        self.history = {}
        for _ in range(epochs):
            logs = one_pass(self, dl_train, self.loss_fn, self.metrics_dict, self._step)
            self._noted(logs | (self.evaluate(dl_val) if dl_val is not None else {}))
        return _table(self.history)

    def evaluate(self, dl_val):
        """{"val_loss": the mean over all batches, …: each metric}"""
        return one_pass(self, dl_val, self.loss_fn, self.metrics_dict, None, "val_")

    def predict(self, dl):
        """What the net gives for the features of all batches, one behind the other."""
        self.eval()
        with torch.no_grad():
            return torch.cat([self(batch[0]) for batch in dl])


def _table(history):
    with needed():
        import pandas  # here, because it takes its time to load

    return pandas.DataFrame(history)


class KerasModel(Model):
    """A net, a loss, metrics with `compute` and `reset`, an optimizer (Adam at 3e-4), and maybe a schedule for each step."""

    def __init__(self, net, loss_fn, metrics_dict=None, optimizer=None, lr_scheduler=None):
        super().__init__(net)
        self.compile(loss_fn, optimizer or torch.optim.Adam(net.parameters(), lr=3e-4), metrics_dict)
        self.lr_scheduler, self.from_scratch = lr_scheduler, True

    def save_ckpt(self, ckpt_path="checkpoint"):
        """Write the net's numbers to a file."""
        torch.save(self.net.state_dict(), ckpt_path)

    def load_ckpt(self, ckpt_path="checkpoint"):
        """Give the net the numbers of a file; the next `fit` then begins with an epoch 0, which changes nothing."""
        self.net.load_state_dict(torch.load(ckpt_path))
        self.from_scratch = False

    def _step(self, loss):
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)  # as torchkeras does
        self.optimizer.step()
        if self.lr_scheduler is not None:
            self.lr_scheduler.step()
        self.optimizer.zero_grad()

    def fit(self, train_data, val_data=None, epochs=10, ckpt_path="checkpoint", patience=5, monitor="val_loss",
            mode="min", callbacks=None, plot=False, wandb=False, quiet=False, mixed_precision="no", cpu=True,
            gradient_accumulation_steps=1):  # fmt: skip
        """Train, keep the best weights in `ckpt_path`, and go back to them at the end. Returns a table, a row for each epoch.

        It ends when `monitor` was not better for `patience` epochs. `plot` draws nothing, and `cpu` changes nothing: here is
        the CPU. Raises ValueError for another `monitor`, TypeError for what is not done here.
        """
        expect(not wandb, "fit: wandb", wandb, "False: nothing is sent anywhere")
        expect(mixed_precision == "no", "fit: mixed_precision", mixed_precision, "'no': each dtype is its own")
        once = gradient_accumulation_steps
        expect(once == 1, "fit: gradient_accumulation_steps", once, "1: each batch is a step")

        def tell(event):
            for callback in callbacks or ():
                getattr(callback, event, lambda model: None)(model=self)

        self.history = {}
        tell("on_fit_start")
        for epoch in range(int(self.from_scratch), epochs + 1):
            step, rate = self._step if epoch else lambda loss: None, self.optimizer.param_groups[0]
            logs = one_pass(self, train_data, self.loss_fn, self.metrics_dict, step, "train_")
            self._noted({"epoch": epoch, **logs, "lr": rate["lr"] if epoch else 0.0}, quiet)
            tell("on_train_epoch_end")
            self._noted(self.evaluate(val_data) if val_data is not None else {}, quiet or val_data is None)
            tell("on_validation_epoch_end")
            if monitor not in self.history:
                raise ValueError(f"fit: monitor is {monitor!r}; this training has {', '.join(self.history)}")
            scores = self.history[monitor]
            best = int(np.argmax(scores) if mode == "max" else np.argmin(scores))
            if best == len(scores) - 1:
                self.save_ckpt(ckpt_path)
            if len(scores) - best > patience:
                break
        tell("on_fit_end")
        self.load_ckpt(ckpt_path)
        return _table(self.history)


class LightModel(LightningModule):
    """A net, a loss, metrics with `compute` and `reset`, an optimizer (Adam at 1e-2), and maybe a schedule for each epoch.

    A `pytorch_lightning.Trainer` trains it. Override `shared_step` where batches are no pairs (features, labels).
    """

    def __init__(self, net, loss_fn, metrics_dict=None, optimizer=None, lr_scheduler=None):
        super().__init__()
        self.net, self.loss_fn, self.history = net, loss_fn, {}
        self.metrics_of = {stage: copy.deepcopy(metrics_dict or {}) for stage in ("train", "val", "test")}
        self.optimizer = optimizer or torch.optim.Adam(net.parameters(), lr=1e-2)
        self.lr_scheduler = lr_scheduler

    def forward(self, x):
        return self.net(x)

    def configure_optimizers(self):
        """The optimizer and the schedule."""
        return {"optimizer": self.optimizer, "lr_scheduler": self.lr_scheduler}

    def shared_step(self, batch, batch_idx):
        """{"loss": one number, "preds": what the net gives, "y": the labels} of a batch."""
        features, labels = batch
        preds = self(features)
        return {"loss": self.loss_fn(preds, labels), "preds": preds.detach(), "y": labels.detach()}

    def _counted(self, stage, batch, batch_idx):
        """The loss of a batch, which all metrics of this stage have counted."""
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
        """What the net gives for the features of a batch."""
        return self(batch[0] if isinstance(batch, list | tuple) else batch)

    def _ended(self, stage, outputs):
        """The means of an epoch, or of a test: printed, logged, and kept in the history but for a test."""
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
        """A table, a row for each epoch."""
        return _table([*self.history.values()])

    @classmethod
    def load_from_checkpoint(cls, checkpoint_path, net=None, loss_fn=None, **more):
        """A new one of this net and loss that has the numbers of a checkpoint. Raises TypeError without a net and a loss.

        (torchkeras keeps both in the file, as pickled code. A file here holds numbers only.)
        """
        for name, given in (("net", net), ("loss_fn", loss_fn)):
            expect(given is not None, f"load_from_checkpoint: {name}", given, "it, since a file holds numbers only")
        return super().load_from_checkpoint(checkpoint_path, net=net, loss_fn=loss_fn, **more)


def __getattr__(name):
    told = "here are KerasModel, LightModel, Model, summary, seed_everything and metrics"
    raise missing(f"{__name__} has no {name!r}; {told}", name)

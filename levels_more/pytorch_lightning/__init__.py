"""PyTorch Lightning's API, version 1, on levels_more.torch: a trainer for modules that define their training step.

`levels_more.torchkeras.LightModel` is built on it, and chapter 3 of "eat pytorch in 20 days" calls it. There is no
logger, no progress bar and no sanity check before training: only modules print, and `test` prints its result.
"""

import math
from pathlib import Path

from levels_more import torch
from levels_more.checks import expect
from levels_more.missing import module_api, small_room

FOLDER = "lightning_logs"  # each Trainer keeps its checkpoints in it, in version_0, version_1, …


class LightningModule(torch.nn.Module):
    """A module for a Trainer. Define `forward`; `training_step(batch, k)`, which returns the loss, or {"loss": …}; and
    `configure_optimizers`, which returns an optimizer, or {"optimizer": …, "lr_scheduler": one that steps per epoch}.
    """

    trainer = None
    device = torch.device("cpu")

    def training_step(self, batch, batch_idx):
        """Return the loss of a batch. Raises NotImplementedError unless a subclass defines it."""
        raise NotImplementedError(
            f"{type(self).__name__} has no training_step; write `def training_step(self, batch, k):`"
        )

    def configure_optimizers(self):
        """Return the optimizer. Raises NotImplementedError unless a subclass defines it."""
        raise NotImplementedError(
            f"{type(self).__name__} has no configure_optimizers; write one that gives an optimizer"
        )

    def validation_step(self, batch, batch_idx):
        """Return what `validation_epoch_end` needs of a batch of validation data."""

    def test_step(self, batch, batch_idx):
        """Return what `test_epoch_end` needs of a batch of test data."""

    def predict_step(self, batch, batch_idx):
        """Return the net's output for a batch."""
        return self(batch)

    def training_epoch_end(self, outputs):
        """Called with the list of what `training_step` returned in an epoch: detached, as dicts."""

    def validation_epoch_end(self, outputs):
        """Called with the list of what `validation_step` returned for all batches."""

    def test_epoch_end(self, outputs):
        """Called with the list of what `test_step` returned for all batches."""

    def log(self, name, value, **options):
        """Store a number under a name, for callbacks to monitor. The options have no effect."""
        self.trainer.callback_metrics[name] = torch.tensor(float(value))

    def log_dict(self, numbers, **options):
        """Store several numbers, {name: number}."""
        for name, value in numbers.items():
            self.log(name, value)

    def print(self, *values, **options):
        """Print."""
        print(*values, **options)

    @classmethod
    def load_from_checkpoint(cls, checkpoint_path, **arguments):
        """Return a new module, made with these arguments, with a checkpoint's weights. (A checkpoint holds no code.)"""
        model = cls(**arguments)
        model.load_state_dict(torch.load(checkpoint_path)["state_dict"])
        return model


class _Watching:
    """Keeps the best value of the number `monitor`: the smallest, or with mode "max" the largest."""

    def __init__(self, monitor, mode):
        if mode not in ("min", "max"):
            raise ValueError(f"{type(self).__name__}: mode is {mode!r}; expected 'min' or 'max'")
        self.monitor = monitor
        self.mode = mode
        self.best_score = torch.tensor(math.inf if mode == "min" else -math.inf)

    def better(self, trainer, by=0.0):
        """Return whether the number beats the best by more than `by`; then keep it. Raises ValueError if not logged."""
        if self.monitor not in trainer.callback_metrics:
            logged = ", ".join(trainer.callback_metrics) or "nothing"
            raise ValueError(f"{type(self).__name__}: monitor is {self.monitor!r}; this training has logged {logged}")
        number = trainer.callback_metrics[self.monitor]
        best = self.best_score
        found = bool(number < best - by if self.mode == "min" else number > best + by)
        if found:
            self.best_score = number
        return found


class EarlyStopping(_Watching):
    """Ends training after `patience` epochs in a row without an improvement of `monitor` by more than `min_delta`."""

    def __init__(self, monitor, min_delta=0.0, patience=3, mode="min"):
        super().__init__(monitor, mode)
        self.min_delta = abs(min_delta)
        self.patience = patience
        self.wait_count = self.stopped_epoch = 0

    def on_train_epoch_end(self, trainer, pl_module):
        """Count the epochs without improvement, and stop the trainer after `patience` of them."""
        self.wait_count = 0 if self.better(trainer, self.min_delta) else self.wait_count + 1
        if self.wait_count >= self.patience:
            trainer.should_stop = True
            self.stopped_epoch = trainer.current_epoch


class ModelCheckpoint(_Watching):
    """Saves the weights of the epoch in which `monitor` was best, or, if it is None, those of the last epoch."""

    def __init__(self, dirpath=None, monitor=None, save_top_k=1, mode="min"):
        super().__init__(monitor, mode)
        expect(save_top_k == 1, "ModelCheckpoint: save_top_k", save_top_k, "1, the only supported value")
        self.dirpath = dirpath
        self.best_model_path = ""

    best_model_score = property(lambda self: self.best_score if self.monitor else None)

    def on_train_epoch_end(self, trainer, pl_module):
        """Replace the file if this epoch was the best, or if `monitor` is None."""
        if self.monitor and not self.better(trainer):
            return
        folder = Path(self.dirpath or trainer.folder / "checkpoints")
        folder.mkdir(parents=True, exist_ok=True)
        place = {"epoch": trainer.current_epoch, "global_step": trainer.global_step}
        path = folder / f"epoch={place['epoch']}-step={place['global_step']}.ckpt"
        torch.save({"state_dict": pl_module.state_dict(), **place}, str(path))
        if self.best_model_path and self.best_model_path != str(path):
            Path(self.best_model_path).unlink(missing_ok=True)
        self.best_model_path = str(path)


class Trainer:
    """The training loop. After each epoch it calls `on_train_epoch_end(trainer, module)` of each callback.

    If no callback is a ModelCheckpoint, it adds one, which saves the last epoch. `logger` and `enable_progress_bar`
    have no effect. Raises TypeError for GPUs.
    """

    def __init__(
        self,
        *,
        callbacks=None,
        min_epochs=1,
        max_epochs=1000,
        gpus=0,
        default_root_dir=".",
        logger=True,
        enable_progress_bar=True,
    ):
        expect(gpus in (0, None, []), "Trainer: gpus", gpus, "0: the CPU is the only device")
        self.callbacks = [*(callbacks or [])]
        if not any(isinstance(each, ModelCheckpoint) for each in self.callbacks):
            self.callbacks.append(ModelCheckpoint())
        self.min_epochs = min_epochs
        self.max_epochs = max_epochs
        self.current_epoch = self.global_step = 0
        self.callback_metrics = {}
        self.should_stop = False
        self.model = None
        logs = Path(default_root_dir).resolve() / FOLDER
        self.folder = logs / f"version_{len([*logs.glob('version_*')])}"

    @property
    def checkpoint_callback(self):
        """The first ModelCheckpoint among the callbacks."""
        return next(each for each in self.callbacks if isinstance(each, ModelCheckpoint))

    def fit(self, model, train_dataloaders, val_dataloaders=None):
        """Train a LightningModule on batches, and validate it after each epoch. Raises TypeError for another model."""
        expect(isinstance(model, LightningModule), "Trainer.fit: model", model, "a LightningModule")
        self.model = model
        model.trainer = self
        chosen = model.configure_optimizers()
        chosen = chosen if isinstance(chosen, dict) else {"optimizer": chosen}
        optimizer = chosen["optimizer"]
        schedule = chosen.get("lr_scheduler")
        self.should_stop = False
        for epoch in range(self.max_epochs):
            self.current_epoch = epoch
            outputs = [self._step(model, optimizer, batch, k) for k, batch in enumerate(train_dataloaders)]
            if val_dataloaders is not None:
                self._look(model.validation_step, model.validation_epoch_end, val_dataloaders)
            model.training_epoch_end(outputs)
            if schedule is not None:
                schedule.step()
            for callback in self.callbacks:
                callback.on_train_epoch_end(self, model)
            if self.should_stop and self.current_epoch + 1 >= self.min_epochs:
                break

    def _step(self, model, optimizer, batch, k):
        """Train on batch k. Return what `training_step` returned, as a dict of detached tensors."""
        model.train()
        found = model.training_step(batch, k)
        found = found if isinstance(found, dict) else {"loss": found}
        optimizer.zero_grad()
        found["loss"].backward()
        optimizer.step()
        self.global_step += 1
        return {name: value.detach() if isinstance(value, torch.Tensor) else value for name, value in found.items()}

    def _look(self, step, end, batches):
        """Call a step for all batches, in eval mode and without gradients, and pass the list of results to `end`."""
        self.model.eval()
        with torch.no_grad():
            end([step(batch, k) for k, batch in enumerate(batches)])

    def _prepared(self, asked, model, ckpt_path):
        """Use a module, or the last one, and load a checkpoint: "best", a file, or None to keep its weights."""
        model = self.model if model is None else model
        expect(isinstance(model, LightningModule), f"Trainer.{asked}: model", model, "a LightningModule")
        self.model = model
        model.trainer = self
        path = self.checkpoint_callback.best_model_path if ckpt_path == "best" else ckpt_path
        if path == "":
            raise ValueError(f"Trainer.{asked}: ckpt_path is 'best', and no checkpoint was kept; call fit first")
        if path is not None:
            model.load_state_dict(torch.load(path)["state_dict"])

    def test(self, model=None, dataloaders=None, ckpt_path=None, verbose=True):
        """Test the module on batches. Return [{name: number}], what it logged, and print it if `verbose`."""
        self._prepared("test", model, ckpt_path)
        before = self.callback_metrics
        self.callback_metrics = {}
        self._look(self.model.test_step, self.model.test_epoch_end, dataloaders)
        found = {name: number.item() for name, number in self.callback_metrics.items()}
        self.callback_metrics = before | self.callback_metrics
        if verbose:
            print(found)
        return [found]

    def predict(self, model=None, dataloaders=None, ckpt_path=None):
        """Return the list of what the module's `predict_step` returns for each batch."""
        self._prepared("predict", model, ckpt_path)
        found = []
        self._look(self.model.predict_step, found.extend, dataloaders)
        return found


callbacks = small_room("pytorch_lightning.callbacks", EarlyStopping=EarlyStopping, ModelCheckpoint=ModelCheckpoint)
__getattr__, __dir__ = module_api("pytorch_lightning", globals())

"""PyTorch Lightning's names on levels_more.torch, as in its version 1: a trainer for nets that say what a step is.

It is what `levels_more.torchkeras.LightModel` stands on, and what chapter 3 of "eat pytorch in 20 days" calls. There is
no logger, no progress bar and no first look at the held-out rows before training: only what a module prints is seen.
"""

import math
from pathlib import Path

from levels_more import torch
from levels_more.checks import expect
from levels_more.missing import room, small_room

FOLDER = "lightning_logs"  # in which each Trainer keeps its checkpoints, in version_0, version_1, …


class LightningModule(torch.nn.Module):
    """A net that says what a step is. Write `forward`, `training_step(batch, k)`, which gives the loss, or {"loss": …},
    and `configure_optimizers`, which gives an optimizer, or {"optimizer": …, "lr_scheduler": …}, a schedule by epochs.
    """

    trainer = None
    device = torch.device("cpu")

    def training_step(self, batch, batch_idx):
        """The loss of a batch. Raises NotImplementedError until it is written."""
        raise NotImplementedError(
            f"{type(self).__name__} has no training_step; write `def training_step(self, batch, k):`"
        )

    def configure_optimizers(self):
        """The optimizer. Raises NotImplementedError until it is written."""
        raise NotImplementedError(
            f"{type(self).__name__} has no configure_optimizers; write one that gives an optimizer"
        )

    def validation_step(self, batch, batch_idx):
        """What is kept of a batch of held-out rows."""

    def test_step(self, batch, batch_idx):
        """The same, when the trainer tests."""

    def predict_step(self, batch, batch_idx):
        """What the net gives for a batch."""
        return self(batch)

    def training_epoch_end(self, outputs):
        """Hear what `training_step` gave for all batches of an epoch."""

    def validation_epoch_end(self, outputs):
        """Hear what `validation_step` gave for all batches."""

    def test_epoch_end(self, outputs):
        """Hear what `test_step` gave for all batches."""

    def log(self, name, value, **options):
        """Keep a number under a name, for callbacks to watch; the options change nothing here."""
        self.trainer.callback_metrics[name] = torch.tensor(float(value))

    def log_dict(self, numbers, **options):
        """Keep several, {name: number}."""
        for name, value in numbers.items():
            self.log(name, value)

    def print(self, *values, **options):
        """Print."""
        print(*values, **options)

    @classmethod
    def load_from_checkpoint(cls, checkpoint_path, **arguments):
        """A new one, made with these arguments, that has the numbers of a checkpoint. (There is no code in it.)"""
        model = cls(**arguments)
        model.load_state_dict(torch.load(checkpoint_path)["state_dict"])
        return model


class _Watching:
    """Keeps the best number of those that `monitor` names; with mode "max" that is the largest."""

    def __init__(self, monitor, mode):
        if mode not in ("min", "max"):
            raise ValueError(f"{type(self).__name__}: mode is {mode!r}; expected 'min' or 'max'")
        self.monitor, self.mode = monitor, mode
        self.best_score = torch.tensor(math.inf if mode == "min" else -math.inf)

    def better(self, trainer, by=0.0):
        """Whether the number is better than all before, by more than that; then it is kept. Raises ValueError."""
        if self.monitor not in trainer.callback_metrics:
            logged = ", ".join(trainer.callback_metrics) or "nothing"
            raise ValueError(f"{type(self).__name__}: monitor is {self.monitor!r}; this training has logged {logged}")
        number, best = trainer.callback_metrics[self.monitor], self.best_score
        found = bool(number < best - by if self.mode == "min" else number > best + by)
        if found:
            self.best_score = number
        return found


class EarlyStopping(_Watching):
    """End the training after `patience` epochs in a row in which `monitor` was not better by more than `min_delta`."""

    def __init__(self, monitor, min_delta=0.0, patience=3, mode="min"):
        super().__init__(monitor, mode)
        self.min_delta, self.patience = abs(min_delta), patience
        self.wait_count = self.stopped_epoch = 0

    def on_train_epoch_end(self, trainer, pl_module):
        """Count the epochs without a better number."""
        self.wait_count = 0 if self.better(trainer, self.min_delta) else self.wait_count + 1
        if self.wait_count >= self.patience:
            trainer.should_stop, self.stopped_epoch = True, trainer.current_epoch


class ModelCheckpoint(_Watching):
    """Keep the numbers of the epoch in which `monitor` was best, or those of the last epoch, in a file."""

    def __init__(self, dirpath=None, monitor=None, save_top_k=1, mode="min"):
        super().__init__(monitor, mode)
        expect(save_top_k == 1, "ModelCheckpoint: save_top_k", save_top_k, "1: the best is kept")
        self.dirpath, self.best_model_path = dirpath, ""

    best_model_score = property(lambda self: self.best_score if self.monitor else None)

    def on_train_epoch_end(self, trainer, pl_module):
        """Write the file anew where this epoch was the best."""
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
    """The loop. Each callback hears `on_train_epoch_end(trainer, module)`; if none keeps checkpoints, the last is kept.

    `logger` and `enable_progress_bar` change nothing here. Raises TypeError for another device than the CPU.
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
        expect(gpus in (0, None, []), "Trainer: gpus", gpus, "0: here is the CPU")
        self.callbacks = [*(callbacks or [])]
        if not any(isinstance(each, ModelCheckpoint) for each in self.callbacks):
            self.callbacks.append(ModelCheckpoint())
        self.min_epochs, self.max_epochs = min_epochs, max_epochs
        self.current_epoch = self.global_step = 0
        self.callback_metrics, self.should_stop, self.model = {}, False, None
        logs = Path(default_root_dir).resolve() / FOLDER
        self.folder = logs / f"version_{len([*logs.glob('version_*')])}"

    @property
    def checkpoint_callback(self):
        """The first callback that keeps checkpoints."""
        return next(each for each in self.callbacks if isinstance(each, ModelCheckpoint))

    def fit(self, model, train_dataloaders, val_dataloaders=None):
        """Train the LightningModule on batches, and look at held-out ones after each epoch. Raises TypeError."""
        expect(isinstance(model, LightningModule), "Trainer.fit: model", model, "a LightningModule")
        self.model, model.trainer = model, self
        chosen = model.configure_optimizers()
        chosen = chosen if isinstance(chosen, dict) else {"optimizer": chosen}
        optimizer, schedule = chosen["optimizer"], chosen.get("lr_scheduler")
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
        """Train on the batch of number k. What `training_step` gave, without what it was made from."""
        model.train()
        found = model.training_step(batch, k)
        found = found if isinstance(found, dict) else {"loss": found}
        optimizer.zero_grad()
        found["loss"].backward()
        optimizer.step()
        self.global_step += 1
        return {name: value.detach() if isinstance(value, torch.Tensor) else value for name, value in found.items()}

    def _look(self, step, end, batches):
        """What a step gives for all batches; nothing is learned."""
        self.model.eval()
        with torch.no_grad():
            end([step(batch, k) for k, batch in enumerate(batches)])

    def _prepared(self, asked, model, ckpt_path):
        """Take a module, or the last one, with the numbers of a checkpoint: "best", a file, or None for its own."""
        model = self.model if model is None else model
        expect(isinstance(model, LightningModule), f"Trainer.{asked}: model", model, "a LightningModule")
        self.model, model.trainer = model, self
        path = self.checkpoint_callback.best_model_path if ckpt_path == "best" else ckpt_path
        if path == "":
            raise ValueError(f"Trainer.{asked}: ckpt_path is 'best', and no checkpoint was kept; call fit first")
        if path is not None:
            model.load_state_dict(torch.load(path)["state_dict"])

    def test(self, model=None, dataloaders=None, ckpt_path=None, verbose=True):
        """[{name: number}], what the module logs when it looks at these batches; it is printed, if `verbose`."""
        self._prepared("test", model, ckpt_path)
        before, self.callback_metrics = self.callback_metrics, {}
        self._look(self.model.test_step, self.model.test_epoch_end, dataloaders)
        found = {name: number.item() for name, number in self.callback_metrics.items()}
        self.callback_metrics = before | self.callback_metrics
        if verbose:
            print(found)
        return [found]

    def predict(self, model=None, dataloaders=None, ckpt_path=None):
        """What the module's `predict_step` gives for each batch, in a list."""
        self._prepared("predict", model, ckpt_path)
        found = []
        self._look(self.model.predict_step, found.extend, dataloaders)
        return found


callbacks = small_room("pytorch_lightning.callbacks", EarlyStopping=EarlyStopping, ModelCheckpoint=ModelCheckpoint)
__getattr__, __dir__ = room("pytorch_lightning", globals())

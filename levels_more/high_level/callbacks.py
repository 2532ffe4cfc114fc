"""Callbacks: listeners around the training loop."""

import math
import os
import re
from collections.abc import Callable

from levels.high_level import Callback
from levels.support.checks import check_bool, check_int, check_positive, real
from levels_more.checks import called, expect, file_name, takes, word
from levels_more.high_level.listeners import EVENTS
from levels_more.low_level.signatures import Arguments
from levels_more.missing import refuse_arguments

# words in the name of a number that should rise, or fall
RISING = {"acc", "accuracy", "auc", "precision", "recall", "r2"}
FALLING = {"loss", "error", "entropy", "crossentropy", "mse", "rmse", "mae"}


def is_verbose(name, value):
    """Whether to print: `value` is a bool, or Keras' 0, 1 or 2. Raises TypeError for anything but a bool or an int."""
    found = real(value)
    return check_bool(name, bool(found) if type(found) is int else value)


def names_beside(name, logs):
    """What an error says about a name that is not in the logs: the names that are, and how to get one of validation."""
    missing = name.startswith("val_") and "val_loss" not in logs
    return f"this training has {', '.join(logs)}" + "; give fit validation_data or validation_split" * missing


class Monitor(Callback):
    """Watches one number of each epoch. `best` is the best so far, `wait` the number of epochs since then.

    Raises ValueError for another mode and, after an epoch, for a `monitor` that is not in its logs, or whose name does
    not show whether more of it is better or less.
    """

    def __init__(self, monitor: str, mode: str = "auto", min_delta: float = 0):
        if not isinstance(mode, str) or mode not in ("auto", "min", "max"):
            raise ValueError(f"{type(self).__name__}: mode is {mode!r}; expected 'auto', 'min' or 'max'")
        word(f"{type(self).__name__}: monitor", monitor)
        # as in Keras, the sign of min_delta is ignored
        size = min_delta if real(min_delta) is None else abs(real(min_delta))
        self.monitor, self.min_delta = monitor, check_positive(f"{type(self).__name__}: min_delta", size, zero=True)
        rising, falling = (not words.isdisjoint(re.split(r"\W|_", monitor)) for words in (RISING, FALLING))
        self.rising = mode == "max" or mode == "auto" and rising
        self.told = mode != "auto" or rising != falling

    def on_train_begin(self):
        self.best = -math.inf if self.rising else math.inf
        self.wait = 0

    def better(self, logs):
        """Whether this epoch's number is better than the best by more than `min_delta`. If so, it becomes the best."""
        if self.monitor not in logs:
            raise ValueError(f"{type(self).__name__}: monitor is {self.monitor!r}; {names_beside(self.monitor, logs)}")
        if not self.told:
            cure = "give mode='max' or mode='min'"
            raise ValueError(f"{type(self).__name__}: is more of {self.monitor!r} better, or less? {cure}")
        self.value = float(logs[self.monitor])
        best = self.best
        least = self.min_delta
        better = self.value - least > best if self.rising else self.value + least < best
        self.best, self.wait = (self.value, 0) if better else (best, self.wait + 1)
        return better


class EarlyStopping(Monitor):
    """Ends the training after `patience` epochs in which `monitor` was not better than the best by over `min_delta`.

    `restore_best_weights` gives the model the weights of the best epoch when the training ends, however it ends.
    With `verbose=1` it prints when it ends the training.
    """

    __signature__ = Arguments()

    def __init__(
        self,
        monitor: str = "val_loss",
        min_delta: float = 0,
        patience: int = 0,
        mode: str = "auto",
        restore_best_weights: bool = False,
        *,
        verbose: int = 0,
        **unknown,
    ):
        refuse_arguments("EarlyStopping", unknown)
        super().__init__(monitor, mode, min_delta)
        self.stopped_epoch = 0
        self.verbose = is_verbose("EarlyStopping: verbose", verbose)
        self.patience = check_int(0, "EarlyStopping: patience", patience)
        self.restore_best_weights = check_bool("EarlyStopping: restore_best_weights", restore_best_weights)

    def on_train_begin(self):
        super().on_train_begin()
        self.best_epoch = self.best_weights = None
        self.stopped_epoch = 0

    def on_epoch_end(self, epoch, logs):
        if self.better(logs):
            self.best_epoch, self.best_weights = epoch, self.model.get_weights()
        elif self.wait >= self.patience:
            self.model.stop_training = True
            self.stopped_epoch = epoch
            if self.verbose:
                best = "never finite" if self.best_epoch is None else f"best in epoch {self.best_epoch + 1}"
                print(f"epoch {epoch + 1}: stopped, for {self.monitor} was {best}")

    def on_train_end(self):
        if self.restore_best_weights and self.best_weights is not None:
            self.model.set_weights(self.best_weights)


class _AnyNumber(dict):
    def __missing__(self, name):
        return 1.0


def check_pattern(name, pattern):
    """Return the pattern of a file's name. Raise ValueError if it has braces that are not those of a number's name."""
    try:
        str(pattern).format_map(_AnyNumber(epoch=1))
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        cure = "write {epoch:03d} or {val_loss:.2f} for a number, and {{ and }} for braces"
        raise ValueError(f"{name} is {str(pattern)!r}: {error}; {cure}") from None
    return pattern


class ModelCheckpoint(Monitor):
    """Saves the model after each epoch to `filepath`, such as "runs/{epoch:03d}-{val_loss:.2f}"; see `Model.save`.

    `save_best_only` saves only after a better `monitor`; `save_weights_only` writes a file for `Model.load_weights`;
    `verbose=1` prints what was saved. Raises TypeError for a model of the core, ValueError for a name not in the logs.
    """

    def __init__(
        self,
        filepath: str | os.PathLike,
        monitor: str = "val_loss",
        save_best_only: bool = False,
        mode: str = "auto",
        *,
        save_weights_only: bool = False,
        verbose: int = 0,
    ):
        super().__init__(monitor, mode)
        name = "ModelCheckpoint: filepath"
        self.filepath = check_pattern(name, file_name(name, filepath))
        self.verbose = is_verbose("ModelCheckpoint: verbose", verbose)
        self.save_best_only = check_bool("ModelCheckpoint: save_best_only", save_best_only)
        self.save_weights_only = check_bool("ModelCheckpoint: save_weights_only", save_weights_only)
        super().on_train_begin()  # once: a second training must not put worse weights in the place of the best

    def on_train_begin(self):
        if not hasattr(self.model, "save"):
            raise TypeError("ModelCheckpoint saves models of levels_more.high_level; this is one of levels.high_level")

    def on_epoch_end(self, epoch, logs):
        if self.save_best_only and not self.better(logs):
            return
        names = {"epoch": epoch + 1, **logs}
        try:
            path = str(self.filepath).format(**names)
        except KeyError as error:
            name = error.args[0]
            raise ValueError(f"ModelCheckpoint: filepath has {name!r}; {names_beside(name, names)}") from None
        (self.model.save_weights if self.save_weights_only else self.model.save)(path)
        if self.verbose:
            print(f"epoch {epoch + 1}: saved {path}, {self.monitor} {logs.get(self.monitor, math.nan):.6g}")


def rate_of(callback):
    """The learning rate of the callback's model. Raises TypeError for a schedule, which no callback can change."""
    rate = callback.model.training.optimizer.learning_rate
    name = f"{type(callback).__name__}: the learning rate"
    expect(not callable(rate), name, rate, "a number; a schedule already sets the rate of each step")
    return float(rate)


class ReduceLROnPlateau(Monitor):
    """Multiplies the learning rate by `factor`, down to `min_lr`, after `patience` epochs without a better `monitor`.

    `verbose=1` prints the new rate. Raises TypeError, before the training, if the optimizer has a schedule.
    """

    def __init__(
        self,
        monitor: str = "val_loss",
        factor: float = 0.1,
        patience: int = 10,
        mode: str = "auto",
        min_delta: float = 1e-4,
        min_lr: float = 0.0,
        *,
        verbose: int = 0,
    ):
        super().__init__(monitor, mode, min_delta)
        self.verbose = is_verbose("ReduceLROnPlateau: verbose", verbose)
        self.factor = check_positive("ReduceLROnPlateau: factor", factor, 1.0)
        self.patience = check_int(0, "ReduceLROnPlateau: patience", patience)
        self.min_lr = check_positive("ReduceLROnPlateau: min_lr", min_lr, zero=True)

    def on_train_begin(self):
        super().on_train_begin()
        rate_of(self)

    def on_epoch_end(self, epoch, logs):
        optimizer = self.model.training.optimizer
        better = self.better(logs)
        rate = logs["learning_rate"] = rate_of(self)
        if not better and self.wait >= self.patience and rate > self.min_lr:
            optimizer.learning_rate = max(rate * self.factor, self.min_lr)
            self.wait = 0
            if self.verbose:
                print(f"epoch {epoch + 1}: the learning rate is {float(optimizer.learning_rate):.6g}")


class LearningRateScheduler(Callback):
    """Sets the learning rate of each epoch to schedule(epoch, last rate), or schedule(epoch). Epochs count from 0.

    `verbose=1` prints it. Raises TypeError, before the training, if the optimizer has a schedule.
    """

    def __init__(self, schedule: Callable, verbose: int = 0):
        self.schedule = called("LearningRateScheduler", schedule, "a function of the epoch and the last rate")
        self.verbose = is_verbose("LearningRateScheduler: verbose", verbose)

    def on_epoch_begin(self, epoch):
        optimizer = self.model.training.optimizer
        given = epoch, rate_of(self)
        optimizer.learning_rate = self.schedule(*given if takes(self.schedule, 2) else given[:1])
        if self.verbose:
            print(f"epoch {epoch + 1}: the learning rate is {float(optimizer.learning_rate):.6g}")

    def on_epoch_end(self, epoch, logs):
        logs["learning_rate"] = rate_of(self)


class TerminateOnNaN(Callback):
    """Ends the training after an epoch whose loss is not finite."""

    def on_epoch_end(self, epoch, logs):
        self.model.stop_training = self.model.stop_training or not math.isfinite(logs["loss"])


class LambdaCallback(Callback):
    """Calls functions of yours: on_train_begin(logs), on_epoch_begin(epoch, logs), on_train_batch_end(batch, logs), ….

    `logs` are {name: number} of the epoch, or the batch, that ended last. Raises TypeError for anything but functions,
    and for a name that is never called.
    The loss of a batch is that of its step; Keras tells the mean of the epoch so far.
    """

    def __init__(self, **functions: Callable | None):
        for name, function in functions.items():
            expect(name in EVENTS, "LambdaCallback: an argument", name, "a method of callbacks, such as on_epoch_end")
            if function is not None:
                setattr(self, name, called(f"LambdaCallback: {name}", function))

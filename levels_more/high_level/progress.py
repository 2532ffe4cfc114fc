"""Listeners of a training: callbacks, the progress bar, rows to validate, Ctrl-C."""

import signal
import sys
import threading
from contextlib import contextmanager

import numpy as np

from levels.high_level import Callback
from levels.low_level import function
from levels_more.checks import takes

BEGIN = "on_train_batch_begin"  # a callback may have this method, too


class Validation(Callback):
    """The first listener of a training that has rows to validate: adds their loss and metrics, {"val_loss": …}."""

    def __init__(self, model, data):
        self.step, self.data = function(model.test_step), data

    def on_epoch_end(self, epoch, logs):
        found = self.model.training.one_pass(self.step, self.data)
        logs.update({f"val_{name}": value for name, value in found.items()})


class CallbackList(Callback):
    """Hands events on to callbacks. Epochs count from `first` on, and `logs` go to methods that take them."""

    def __init__(self, model, callbacks, first):
        self.model, self.callbacks, self.first = model, callbacks, first

    def tell(self, event, *given, logs):
        """Call this method of each callback: with logs {name: number}, if it takes them."""
        for callback in self.callbacks:
            method = getattr(callback, event)
            method(*given, *[logs] * takes(method, len(given) + 1))

    def on_train_begin(self):
        self.tell("on_train_begin", logs={})

    def on_epoch_begin(self, epoch):
        self.tell("on_epoch_begin", self.first + epoch, logs={})

    def on_epoch_end(self, epoch, logs):
        self.tell("on_epoch_end", self.first + epoch, logs=logs)

    def on_train_end(self):
        self.tell("on_train_end", logs=dict(self.model.history.epochs[-1]) if self.model.history.epochs else {})


class ProgressMonitor(Callback):
    """The last listener of a training: moves the bar, calls callbacks for each step, and checks for Ctrl-C."""

    def __init__(self, pressed, bar, callbacks, ahead):
        self.pressed, self.bar, self.callbacks = pressed, bar, callbacks
        self.ahead, self.step = ahead, 0
        names = BEGIN, "on_train_batch_end"
        self.every_step = any(getattr(callback, name, None) for callback in callbacks for name in names)

    def check_interrupt(self):
        """Raise KeyboardInterrupt if Ctrl-C was pressed; the history has what the weights have."""
        if self.pressed and not (self.ahead and self.ahead.done):
            raise KeyboardInterrupt("fit was stopped; the model has its weights, model.history the losses so far")

    def on_epoch_begin(self, epoch):
        self.step = self.total = self.rows = 0

    def on_step_begin(self):
        """Before each step, if a callback has a method for steps."""
        for callback in self.callbacks:
            begin = getattr(callback, BEGIN, None)
            if begin:
                begin(self.step, *[{}] * takes(begin, 2))

    def on_call_end(self, losses, rows):
        """After each call, with its losses [steps] and their numbers of rows; one step, if a callback wants each.

        Steps count from 0 in each epoch, as in Keras. The loss is that of the step, or the mean of the epoch so far
        where the model has `means_by_batch`. Metrics are those of the epoch so far.
        """
        if self.bar is not None:
            self.bar.update(len(losses))
        if self.every_step:
            self.total, self.rows = self.total + float(np.dot(losses, rows)), self.rows + sum(rows)
        for callback in self.callbacks if self.every_step else ():
            if callback.on_train_batch_end:
                mean = getattr(callback.model, "means_by_batch", False)
                logs = {"loss": self.total / self.rows if mean else float(losses[0])}
                logs |= {metric.name: float(metric.result()) for metric in callback.model.training.metrics}
                callback.on_train_batch_end(self.step, logs)
        self.step += len(losses)

    def on_epoch_end(self, epoch, logs):
        if self.bar is not None:
            self.bar.set_postfix(logs, refresh=False)
        self.check_interrupt()


def attach(callbacks, model, params):
    """Give each callback its model and Keras' `params`.

    Raises TypeError for what is no callback, and for a method that is never called.
    """
    for callback in callbacks:
        if not isinstance(callback, Callback):
            raise TypeError(f"callbacks hold {callback!r}; expected objects, such as EarlyStopping()")
        for name in dir(callback):
            if name.startswith("on_") and not hasattr(Callback, name) and name != BEGIN:
                heard = ", ".join(each for each in dir(Callback) if each.startswith("on_"))
                raise TypeError(f"{type(callback).__name__}: {name} is never called; these are: {heard}")
        callback.model = model
        callback.params = params


@contextmanager
def hold_interrupts():
    """Inside this `with` block Ctrl-C only fills the list that it gives. (Only the main thread gets the signal.)"""
    pressed, heard = [], threading.current_thread() is threading.main_thread()
    before = heard and signal.signal(signal.SIGINT, lambda *_: pressed.append(True))
    try:
        yield pressed
    finally:
        if heard:
            signal.signal(signal.SIGINT, before)


def shows_bars():
    """Whether a bar can move here: in a terminal, or in a notebook. In a file it would leave nothing to read."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules


def progress(data, epochs):
    """A bar for so many passes over the data."""
    from tqdm.auto import tqdm  # here, because it takes its time to load

    return tqdm(total=epochs * len(data) if data.layout else None, unit=" steps")

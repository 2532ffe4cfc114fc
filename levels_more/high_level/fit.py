"""The training loop with listeners, a bar, Ctrl-C and rows to validate, and the rows that it goes through."""

import math
import signal
import sys
import threading
from contextlib import contextmanager, nullcontext

import numpy as np

from levels.high_level import Callback, loops
from levels.low_level import DOOR, RUN, function
from levels.support.checks import at_least, flag
from levels_more.checks import as_python, takes
from levels_more.high_level.data_adapter import (
    BatchLayout,
    as_data,
    as_list,
    batches_for,
    inputs_of,
    is_data,
    parted,
    rows_for,
)
from levels_more.high_level.multi_epoch import LookAhead
from levels_more.high_level.recompile import GRAPH_TRANSFORM

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


def verbosity(verbose):
    """Keras' ways to say how much `fit` shows, as 0, 1 or 2. Raises TypeError for others."""
    verbose = verbose if type(verbose) is int else as_python(verbose)
    return verbose if type(verbose) is int else int(verbose == "auto" or flag("fit: verbose", verbose))


def batches_to_fit(model, x, y, sample_weight, class_weight, steps):
    """A Dataset or a generator as a Dataset of batches for this model, `steps` of them in an epoch."""
    return batches_for(model, as_data(x, steps, "steps_per_epoch"), y, sample_weight, class_weight)


def rows_to_fit(model, x, y, sample_weight, class_weight, share, batch_size):
    """(a Dataset of rows to train on, their BatchLayout, batches of the last `share` of rows to validate or None)"""
    rows, layout = rows_for(model, x, y, sample_weight, class_weight)
    if not share:
        return rows, layout, None
    form, (rows, held) = layout, parted(rows, share)
    if class_weight is not None:  # it is for training: rows to validate count alike, as in Keras
        own, form = rows_for(model, x, y, sample_weight)
        held = parted(own, share)[1]
    held = held.batch(batch_size)
    held.layout = form
    return rows, layout, held


def epochs_of(rows, layout, batch_size, steps, epochs, shuffle, seed, first):
    """(a Dataset of batches, in a new order for each epoch; a `LookAhead`, where several epochs may be one call)"""
    rows = rows.shuffle(len(rows), seed) if shuffle else rows
    for _ in range(first if shuffle else 0):  # the orders of the epochs before: a seed goes on behind them
        rows.make()
    size = 32 if batch_size is None else batch_size
    data = as_data(rows.batch(size), steps, "steps_per_epoch")
    data.layout = layout
    return data, LookAhead(rows, size, epochs) if epochs > 1 and steps is None else None


def input_batches(model, x, size, steps):
    """Pairs (batch of inputs, its BatchLayout): of rows x, `size` at a time, or of a Dataset; the first `steps`."""
    if is_data(x):
        for element in as_data(x, steps, "steps", True):
            rows, *form = inputs_of(model, element[0] if isinstance(element, tuple) else element)
            yield rows, BatchLayout(len(rows), 0, 0, *form)
        return
    rows, *form = inputs_of(model, x)
    layout = BatchLayout(len(rows), 0, 0, *form)
    count = len(rows[0]) if steps is None else min(len(rows[0]), size * at_least(1, "predict: steps", steps))
    if len(rows[0]) > size:
        arrays = [row.numpy()[:count] for row in rows]
        for k in range(0, count, size):
            yield [array[k : k + size] for array in arrays], layout
    else:
        yield rows, layout


def run_training(model, data, epochs, verbose, callbacks, validation=None, first=0, ahead=None):
    """Train for so many epochs, with a bar; Ctrl-C waits for the end of a piece. Returns the History.

    data, validation: Datasets of batches, the second or None; verbose: 1 shows the bar, 2, and 1 where no bar can move,
    a line for each epoch; first: the number of the first epoch, for callbacks; ahead: a `LookAhead`, where an epoch may
    be done before the loop begins it. Raises KeyboardInterrupt, with the weights of the last whole step, and TypeError
    for no callbacks.
    """
    callbacks, training = [] if callbacks is None else as_list(callbacks), model.training
    held = [] if validation is None else [Validation(model, validation)]
    lines = verbose == 2 or (verbose == 1 and not shows_bars())
    with hold_interrupts() as pressed, progress(data, epochs) if verbose and not lines else nullcontext() as bar:
        if callbacks or held or training.metrics or GRAPH_TRANSFORM.change or DOOR.stands is not RUN:
            ahead = None
        training.watch = ProgressMonitor(pressed, bar, callbacks, ahead)
        params = {"verbose": verbose, "epochs": first + epochs, "steps": None if math.isnan(data.length) else len(data)}
        attach(callbacks, model, params)
        told = [CallbackList(model, callbacks, first)] if callbacks else []
        try:
            return loops.run_training(model, data, epochs, [*held, *told, training.watch], lines)
        finally:
            if ahead:
                ahead.tell(model.history)
            model.history.params = params
            model.history.epoch = [*range(first, first + len(model.history.epochs))]  # Keras' numbers of them
            training.watch = None

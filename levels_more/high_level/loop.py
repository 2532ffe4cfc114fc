"""The training loop with callbacks, a progress bar, Ctrl-C and validation, and the data that it goes through."""

import math
import reprlib
import signal
import sys
import threading
from contextlib import contextmanager, nullcontext

import numpy as np

from levels.high_level import Callback, loops
from levels.low_level import DOOR
from levels.support.checks import check_bool, check_int, check_positive
from levels_more.checks import as_python, takes
from levels_more.compiler.reads import of_levels
from levels_more.compiler.reads import function
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
from levels_more.mid_level.notes import note, noted

BEGIN, END = "on_train_batch_begin", "on_train_batch_end"  # methods for each batch, which the core's `Callback` lacks


class Validation(Callback):
    """The first callback of a training with validation data: adds its loss and metrics to the logs, {"val_loss": …}."""

    def __init__(self, model, data):
        self.step = function(model.test_step)
        self.data = data

    def on_epoch_end(self, epoch, logs):
        found = self.model.training.one_pass(self.step, self.data)
        found = self.model.in_order(logs | {f"val_{name}": value for name, value in found.items()})
        logs.clear()
        logs.update(found)


class CallbackList(Callback):
    """Passes events on to callbacks. Epochs count from `first` on, and `logs` go to methods that take them."""

    def __init__(self, model, callbacks, first):
        self.model = model
        self.callbacks = callbacks
        self.first = first

    def tell(self, event, *given, logs):
        """Call the method `event` of each callback, with logs {name: number} if it takes them."""
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


def runs_code_of_the_readers(callback):
    """Whether a callback may change anything that a layer reads: one of the reader's, or one that calls a function."""
    held = (value for name, value in vars(callback).items() if name != "model")
    return not of_levels(type(callback)) or any(map(callable, held))


class ProgressMonitor(Callback):
    """The last callback of a training: moves the bar or prints a line for each epoch, calls callbacks for each step,
    and checks for Ctrl-C. `epochs`: (how many were done before this training, the number of the last one)."""

    def __init__(self, pressed, bar, lines, epochs, callbacks, ahead):
        self.pressed = pressed
        self.bar = bar
        self.lines = lines
        self.done, self.last = epochs
        self.callbacks = callbacks
        self.ahead = ahead
        self.step = 0
        self.look = any(map(runs_code_of_the_readers, callbacks))  # whether a step may read other numbers by now
        self.every_step = any(getattr(callback, name, None) for callback in callbacks for name in (BEGIN, END))

    def check_interrupt(self):
        """Raise KeyboardInterrupt if Ctrl-C was pressed, once the history has all steps that changed the weights."""
        if self.pressed and not (self.ahead and self.ahead.done):
            raise KeyboardInterrupt("fit was stopped; the model has its weights, model.history the losses so far")

    def on_epoch_begin(self, epoch):
        self.step = self.total = self.rows = 0
        self.name = f"Epoch {self.done + epoch + 1}/{self.last}"
        if self.bar is not None:
            self.bar.set_description(self.name, refresh=False)

    def on_step_begin(self):
        """Call `on_train_batch_begin`, before each step, if a callback has a method for steps."""
        for callback in self.callbacks:
            begin = getattr(callback, BEGIN, None)
            if begin:
                begin(self.step, *[{}] * takes(begin, 2))

    def on_call_end(self, losses, rows):
        """Move the bar and call `on_train_batch_end`, after each call with its losses [steps] and numbers of rows.

        If a callback has a method for steps, each call is one step. Steps count from 0 in each epoch, as in Keras. The
        logs hold the step's loss, or the epoch's mean so far if the model has `means_by_batch`, and the metrics so far.
        """
        if self.bar is not None:
            self.bar.update(len(losses))
        if self.every_step:
            self.total, self.rows = self.total + float(np.dot(losses, rows)), self.rows + sum(rows)
        for callback in self.callbacks if self.every_step else ():
            tell = getattr(callback, END, None)
            if tell:
                mean = getattr(callback.model, "means_by_batch", False)
                loss = self.total / self.rows if mean else float(losses[0])
                tell(self.step, callback.model.training.counted.logs(loss))
        self.step += len(losses)

    def on_epoch_end(self, epoch, logs):
        if self.bar is not None:
            self.bar.set_postfix(logs, refresh=False)
        if self.lines:
            print(f"{self.name}: {self.model.history.last}")
        self.check_interrupt()


def attach(callbacks, model, params):
    """Give each callback its model and Keras' `params`.

    Raises TypeError for anything but a Callback and for a method that is never called, AttributeError for a callback
    that uses one of these two names itself.
    """
    for callback in callbacks:
        if not isinstance(callback, Callback):
            raise TypeError(f"callbacks hold {callback!r}; expected objects, such as EarlyStopping()")
        for name in dir(callback):
            if name.startswith("on_") and not hasattr(Callback, name) and name not in (BEGIN, END):
                heard = ", ".join(sorted([each for each in dir(Callback) if each.startswith("on_")] + [BEGIN, END]))
                raise TypeError(f"{type(callback).__name__}: {name} is never called; these are: {heard}")
        for name, value in (("model", model), ("params", params)):
            own = getattr(callback, name, None)
            if own is not None and own is not noted(callback, name, value):
                told = f"{type(callback).__name__}.{name} is {reprlib.repr(own)}; fit sets this attribute itself"
                raise AttributeError(f"{told}: keep yours under another name")
            setattr(callback, name, value)
            note(callback, **{name: value})


@contextmanager
def hold_interrupts():
    """Inside this `with` block Ctrl-C only appends to the list it yields. (Only the main thread may handle signals.)"""
    pressed, heard = [], threading.current_thread() is threading.main_thread()
    before = heard and signal.signal(signal.SIGINT, lambda *_: pressed.append(True))
    try:
        yield pressed
    finally:
        if heard:
            signal.signal(signal.SIGINT, before)


def shows_bars():
    """Whether a progress bar can be shown: in a terminal or a notebook. In a file it would be unreadable."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules


def progress(data, epochs):
    """A progress bar for so many passes over the data."""
    from tqdm.auto import tqdm  # imported here, because it is slow to import

    return tqdm(total=epochs * len(data) if data.layout else None, unit=" steps")


def verbosity(verbose):
    """Keras' `verbose` as an int: True and "auto" are 1, False is 0. Raises TypeError for other values."""
    verbose = verbose if type(verbose) is int else as_python(verbose)
    return verbose if type(verbose) is int else int(verbose == "auto" or check_bool("fit: verbose", verbose))


def batches_to_fit(model, x, y, sample_weight, class_weight, steps):
    """A Dataset or a generator as a Dataset of batches for this model, `steps` of them in an epoch."""
    return batches_for(model, as_data(x, steps, "steps_per_epoch"), y, sample_weight, class_weight)


def validation_share(validation_split, validation_data):
    """Return the share of rows kept for validation: 0.0 beside `validation_data`. Raises like `check_positive`."""
    share = float(str(validation_split)) if isinstance(validation_split, np.floating) else validation_split
    return check_positive("fit: validation_split", share, zero=True) * (validation_data is None)


def rows_to_fit(model, x, y, sample_weight, class_weight, share, batch_size):
    """(a Dataset of rows to train on, their BatchLayout, batches of the last `share` of rows to validate or None)"""
    rows, layout = rows_for(model, x, y, sample_weight, class_weight)
    if not share:
        return rows, layout, None
    form = layout
    rows, held = parted(rows, share)
    if class_weight is not None:  # as in Keras, validation does not use it
        own, form = rows_for(model, x, y, sample_weight)
        held = parted(own, share)[1]
    held = held.batch(batch_size)
    held.layout = form
    return rows, layout, held


def epochs_of(rows, layout, batch_size, steps, epochs, shuffle, seed, first):
    """(a Dataset of batches, in a new order for each epoch; a LookAhead, or None if each epoch has to be a call)"""
    rows = rows.shuffle(len(rows), seed) if shuffle else rows
    for _ in range(first if shuffle else 0):  # skip the orders of earlier epochs, so that a seed gives the later ones
        rows.make()
    size = 32 if batch_size is None else batch_size
    data = as_data(rows.batch(size), steps, "steps_per_epoch")
    data.layout = layout
    return data, LookAhead(rows, size, epochs) if epochs > 1 and steps is None else None


def input_batches(model, x, size, steps):
    """Pairs (batch of inputs, its BatchLayout): of rows x, `size` at a time, or of a Dataset; the first `steps`.

    Raises ValueError if x is an empty list, whose rows have no shape.
    """
    if is_data(x):
        for element in as_data(x, steps, "steps", True):
            rows, *form = inputs_of(model, element[0] if isinstance(element, tuple) else element)
            yield rows, BatchLayout(len(rows), 0, 0, *form)
        return
    rows, *form = inputs_of(model, x)
    if rows[0].spec.shape == (0,):
        raise ValueError(f"predict: x is {x!r:.60}; expected rows of numbers, [rows, …]")
    layout = BatchLayout(len(rows), 0, 0, *form)
    count = len(rows[0]) if steps is None else min(len(rows[0]), size * check_int(1, "predict: steps", steps))
    if len(rows[0]) > size:
        arrays = [row.numpy()[:count] for row in rows]
        for k in range(0, count, size):
            yield [array[k : k + size] for array in arrays], layout
    else:
        yield rows, layout


def run_training(model, data, epochs, verbose, callbacks, validation=None, first=0, ahead=None):
    """Train for so many epochs, with a progress bar, and return the History.

    data, validation: Datasets of batches, the second or None; verbose: 1 shows the bar, 2 (or 1 if no bar can be shown)
    prints a line for each epoch; first: the number of the first epoch, for callbacks; ahead: a `LookAhead` if epochs
    may run before the loop begins them, else None. Ctrl-C raises KeyboardInterrupt at the end of a piece: the model has
    the weights of the last whole step. Raises TypeError for anything but callbacks.
    """
    callbacks = [] if callbacks is None else as_list(callbacks)
    training = model.training
    held = [] if validation is None else [Validation(model, validation)]
    lines = verbose == 2 or (verbose == 1 and not shows_bars())
    with hold_interrupts() as pressed, progress(data, epochs) if verbose and not lines else nullcontext() as bar:
        if callbacks or held or training.counted.all or GRAPH_TRANSFORM.change or DOOR.top is not DOOR.bottom:
            ahead = None
        params = {"verbose": verbose, "epochs": first + epochs, "steps": None if math.isnan(data.length) else len(data)}
        attach(callbacks, model, params)
        outer = training.watch, model.history, model.stop_training  # those of a training whose callback calls `fit`
        training.watch = ProgressMonitor(pressed, bar, lines, (first, first + epochs), callbacks, ahead)
        told = [CallbackList(model, callbacks, first)] if callbacks else []
        try:
            heard = [*held, *told, training.watch]
            one_pass = lambda *given: model.chosen.one_pass(*given)  # noqa: E731 (`compile` may be called)
            return loops.run_training(model, data, epochs, heard, one_pass=one_pass)
        finally:
            if ahead:
                ahead.tell(model.history)
            model.history.params = params
            model.history.epoch = [*range(first, first + len(model.history.epochs))]  # their numbers, as in Keras
            training.watch = outer[0]
            if outer[0] is not None:
                _, model.history, model.stop_training = outer

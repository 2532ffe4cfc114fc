"""Who hears of a training: callbacks, which methods they have, and which of them may change what a layer reads."""

import threading

from levels.high_level import Callback
from levels_more.checks import takes
from levels_more.compiler.reads import of_levels


class _Running(threading.local):
    def __init__(self):
        self.fits = []


RUNNING = _Running()  # the trainings (`loop.Fit`) that are going on in this thread, the innermost last
BEGIN, END = "on_train_batch_begin", "on_train_batch_end"  # methods for each batch, which the core's `Callback` lacks
EVENTS = sorted([BEGIN, END, *(name for name in dir(Callback) if name.startswith("on_"))])


def runs_code_of_the_readers(callback):
    """Whether a callback may change anything that a layer reads: one of the reader's, or one that calls a function."""
    held = (value for name, value in vars(callback).items() if name != "model")
    return not of_levels(type(callback)) or any(map(callable, held))


class CallbackList(Callback):
    """Passes events on to callbacks. Epochs count from `first` on, and `logs` go to methods that take them."""

    def __init__(self, model, callbacks, first):
        self.model = model
        self.callbacks = callbacks
        self.first = first
        self.hears_batches = any(getattr(callback, name, None) for callback in callbacks for name in (BEGIN, END))
        self.runs_code_of_the_readers = any(map(runs_code_of_the_readers, callbacks))

    def tell(self, event, *given, logs):
        """Call the method `event` of each callback that has it, with logs {name: number} if it takes them."""
        for callback in self.callbacks:
            method = getattr(callback, event, None)
            if method is not None:
                method(*given, *[logs] * takes(method, len(given) + 1))

    def on_train_begin(self):
        self.tell("on_train_begin", logs={})

    def on_epoch_begin(self, epoch):
        self.tell("on_epoch_begin", self.first + epoch, logs={})

    def on_epoch_end(self, epoch, logs):
        self.tell("on_epoch_end", self.first + epoch, logs=logs)

    def on_train_end(self):
        self.tell("on_train_end", logs=dict(self.model.history.epochs[-1]) if self.model.history.epochs else {})


def attach(callbacks, model, params):
    """Give each callback its model and Keras' `params`.

    Raises TypeError for anything but a Callback and for a method that is never called.
    """
    for callback in callbacks:
        if not isinstance(callback, Callback):
            raise TypeError(f"callbacks hold {callback!r}; expected objects, such as EarlyStopping()")
        for name in dir(callback):
            if name.startswith("on_") and name not in EVENTS:
                raise TypeError(f"{type(callback).__name__}: {name} is never called; these are: {', '.join(EVENTS)}")
        callback.model = model
        callback.params = params

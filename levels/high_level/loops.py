"""The training loop, written once for all models."""

# Built from 05_high_level.ipynb: edit there, then run its last cell.

import functools
import math
import operator
import signal
import threading
import time
from contextlib import contextmanager

import numpy as np

from levels.low_level import GradientTape, function
from levels.mid_level import LOSSES, METRICS, SGD, Adam, AdamW, Made, RMSprop, known

OPTIMIZERS = {"sgd": SGD, "rmsprop": RMSprop, "adam": Adam, "adamw": AdamW}


def made(what, table, name):
    """A new object of the class with this name in a table. An object of your own stays as it is."""
    found = known(what, table, name)
    return found() if isinstance(name, (str, type)) else found


def listed(x):
    """A list of what may stand alone."""
    return list(x) if isinstance(x, (list, tuple)) else [x]


def alone(values):
    """The only one of several, or all."""
    return values[0] if len(values) == 1 else values


class Training(Made):
    """What `compile` chose. It is no module: the variables of a model are its weights, not those of its optimizer."""

    def __init__(self, optimizer, loss, metrics):
        self.optimizer = made("optimizer", OPTIMIZERS, optimizer)
        self.losses = [made("loss", LOSSES, one) for one in listed(loss)]
        self.metrics = [made("metric", METRICS, metric) for metric in listed(metrics)]
        if None in (self.optimizer, *self.losses):
            raise TypeError("compile: None is no optimizer and no loss")
        self.pace, self.programs = 1, {}  # steps in a call, see `pieces`; what `compiled` made

    def loss(self, model, y, predicted):
        """The losses of all outputs and the penalties of all layers, added up. The metrics look at the first output."""
        y, predicted = listed(y), listed(predicted)
        losses = self.losses * len(predicted) if len(self.losses) == 1 else self.losses
        if not len(losses) == len(y) == len(predicted):
            raise ValueError(f"{len(predicted)} outputs, with {len(y)} targets and {len(losses)} losses")
        for metric in self.metrics:
            metric.update_state(y[0], predicted[0])
        return functools.reduce(operator.add, [loss(*pair) for loss, *pair in zip(losses, y, predicted)] + model.losses)


def train_step(model, x, y):
    """Forward, loss, backward, update, on one batch. Returns the loss before the update."""
    with GradientTape() as tape:
        loss = model.training.loss(model, y, model(x, training=True))
    variables = model.trainable_variables
    if not variables:
        raise ValueError(f"{model.name} has no variable to train")
    model.training.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
    return loss


def compiled(training, step, inputs):
    """step(x, y) as a `function` of single arrays: so many inputs, the others are targets. Made once."""
    if (step, inputs) not in training.programs:
        program = function(lambda *rows: step(alone(rows[:inputs]), alone(rows[inputs:])))
        training.programs[step, inputs] = program
    return training.programs[step, inputs]


def renew(training, step):
    """What this step reads may have changed: let its functions trace anew. Returns the step."""
    for (earlier, _), program in training.programs.items():
        if earlier == step:
            program.renew()
    return step


PIECE = 0.05  # seconds


def pieces(training, step, data, one_by_one):
    """Go through the data once, some steps in each call of a program. Yields (losses, batch sizes) of each call."""
    if not data.in_memory:
        for x, y in data:
            rows = [*listed(x), *listed(y)]
            yield compiled(training, step, len(listed(x)))(*rows).numpy().reshape(1), [len(rows[0])]
        return
    (x, y), batches = data.rows()
    rows, program, done = [*listed(x), *listed(y)], compiled(training, step, len(listed(x))), 0
    while done < len(batches):
        part = batches[done : done + (1 if one_by_one else training.pace)]
        begun = time.perf_counter()
        losses = program.over(*rows, part).numpy()
        training.pace = max(1, int(PIECE * len(part) / (time.perf_counter() - begun)))
        done += len(part)
        yield losses, [len(batch) for batch in part]


def one_pass(training, step, data, after=lambda losses: None, one_by_one=False):
    """Go through the data; `after` hears each piece's losses. Returns {"loss": the mean over rows, and the metrics}."""
    losses, sizes = [], []
    for metric in training.metrics:
        metric.reset_state()
    for piece, rows in pieces(training, step, data, one_by_one):
        losses.append(piece)
        sizes += rows
        after(piece)
    if not sizes:
        raise ValueError("the dataset gave no batch")
    loss = float(np.concatenate(losses) @ sizes) / sum(sizes)  # added up here: the same, however it was cut into pieces
    return {"loss": loss} | {metric.name: metric.result() for metric in training.metrics}


class History:
    """What happened during `fit`: the `losses` of all steps, and `history`, {name: [a number for each epoch]}."""

    def __init__(self):
        self.steps, self.epochs = [], []  # arrays of losses; {name: number} of each epoch

    losses = property(lambda self: np.concatenate(self.steps) if self.steps else np.empty(0))

    @property
    def history(self):
        """{"loss": [a number for each epoch], …}"""
        names = dict.fromkeys(name for logs in self.epochs for name in logs)
        return {name: [logs[name] for logs in self.epochs if name in logs] for name in names}

    def plot(self):
        """A figure of each name's numbers over the epochs."""
        from matplotlib.figure import Figure

        figure = Figure((7, 3), layout="constrained")
        axes = figure.subplots()
        for name, values in self.history.items():
            axes.plot(range(1, len(values) + 1), values, label=name)
        axes.set(xlabel="epoch")
        axes.legend()
        return figure

    def __repr__(self):
        last = ", ".join(f"{name} {values[-1]:.4g}" for name, values in self.history.items())
        return f"History of {len(self.losses):,} steps: {last}"


class Callback:
    """Is told of the training of `self.model`. One that has `on_train_batch_end` makes each step a call of its own."""

    model = None

    def on_train_begin(self):
        """Before the first epoch."""

    def on_epoch_begin(self, epoch):
        """Before each epoch."""

    def on_train_batch_end(self, step, logs):
        """After each step, with {"loss": …}."""

    def on_epoch_end(self, epoch, logs):
        """After each epoch, with {"loss": …, each metric, each of them with val_}."""

    def on_train_end(self):
        """After the last epoch, however it ended."""


def tell(callbacks, event, *args):
    """Call this method of each callback."""
    for callback in callbacks:
        getattr(callback, event)(*args)


def attach(callbacks, model):
    """Tell each callback whose training it is. Returns whether one of them wants to hear of each step."""
    for callback in callbacks:
        if not isinstance(callback, Callback):
            raise TypeError(f"callbacks hold {callback!r}; expected objects, such as EarlyStopping()")
        for name in dir(callback):
            if name.startswith("on_") and not hasattr(Callback, name):
                heard = ", ".join(each for each in dir(Callback) if each.startswith("on_"))
                raise TypeError(f"{type(callback).__name__}: nobody calls {name}; a callback hears {heard}")
        callback.model = model
    return any(type(callback).on_train_batch_end is not Callback.on_train_batch_end for callback in callbacks)


@contextmanager
def noted_interrupts():
    """Inside this `with` block Ctrl-C fills the list that it gives, and no more. (Only the main thread gets any.)"""
    pressed, heard = [], threading.current_thread() is threading.main_thread()
    before = heard and signal.signal(signal.SIGINT, lambda *_: pressed.append(True))
    try:
        yield pressed
    finally:
        if heard:
            signal.signal(signal.SIGINT, before)


def progress(data, epochs, verbose):
    """A bar for so many passes over the data. Nobody sees it where `verbose` is 0."""
    from tqdm.auto import tqdm  # here, because it takes its time to load

    return tqdm(total=epochs * len(data) if data.in_memory else None, unit=" steps", disable=not verbose)


def run_epochs(model, data, epochs, verbose, callbacks, validation):
    """Train for so many epochs; returns the History. `validation` is a Dataset or None."""
    training = model.training
    step, test = renew(training, model.train_step), renew(training, model.test_step)
    history = model.history = History()
    one_by_one, model.stop_training = attach(callbacks, model), False

    def heed(losses=None):
        if pressed:
            raise KeyboardInterrupt("fit was stopped; the model has its weights, model.history the losses so far")

    def after(losses):
        history.steps.append(losses)
        bar.update(len(losses))
        if one_by_one:
            tell(callbacks, "on_train_batch_end", len(history.steps) - 1, {"loss": float(losses[0])})
        heed()

    with noted_interrupts() as pressed, progress(data, epochs, verbose) as bar:
        tell(callbacks, "on_train_begin")
        try:
            for epoch in range(epochs):
                tell(callbacks, "on_epoch_begin", epoch)
                logs = one_pass(training, step, data, after, one_by_one)
                if validation is not None:
                    logs |= {f"val_{name}": value for name, value in one_pass(training, test, validation, heed).items()}
                history.epochs.append(logs)  # the dict itself: callbacks may add to it
                bar.set_postfix(logs, refresh=False)
                tell(callbacks, "on_epoch_end", epoch, logs)
                heed()
                if model.stop_training:
                    break
                if not math.isfinite(logs["loss"]):
                    cure = "try a lower learning rate, and look for NaN in the data"
                    raise FloatingPointError(f"fit: the loss is {logs['loss']} after epoch {epoch}; {cure}")
        finally:
            tell(callbacks, "on_train_end")
    return history

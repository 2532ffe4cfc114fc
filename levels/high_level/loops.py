"""The training loop, written once for all models."""

# Built from 05_high_level.ipynb: edit there, then run its last cell.

import math

import numpy as np

from levels.low_level import function
from levels.mid_level import LOSSES, OPTIMIZERS, Reconstructible
from levels.support.checks import lookup
from levels.support.inputs import check_last_loss, check_losses


class History:
    """The record of a training: the `losses` of all steps, and `history`, {name: [one number per epoch]}."""

    def __init__(self):
        self.passes, self.epochs = [], []  # for each pass an array of losses; for each epoch {name: number}

    losses = property(lambda self: np.concatenate(self.passes) if self.passes else np.empty(0))

    @property
    def history(self):
        """{"loss": [one number per epoch], …}"""
        names = dict.fromkeys(name for logs in self.epochs for name in logs)
        return {name: [logs[name] for logs in self.epochs if name in logs] for name in names}

    @property
    def last(self):
        """The last number of each name as text: "loss 7.62, …"."""
        return ", ".join(f"{name} {values[-1]:.4g}" for name, values in self.history.items())

    def __repr__(self):
        return f"History of {len(self.losses):,} steps: {self.last}"


def epoch_loss(losses, rows):
    """The mean over all rows, where step k had a mean loss of losses[k] over rows[k] rows."""
    return float(np.dot(losses, rows)) / sum(rows)


def run_epochs(epochs, tell, one_pass, ended):
    """For each epoch: tell its beginning, go through the data, tell its end and its logs, and stop if `ended` says so."""
    for epoch in range(epochs):
        tell("on_epoch_begin", epoch)
        logs = one_pass()
        tell("on_epoch_end", epoch, logs)
        if ended(epoch, logs):
            break


def ended(model, epoch, logs):
    """Whether training ends: `model.stop_training` is set, or the loss is not finite."""
    return model.stop_training or not math.isfinite(logs["loss"])


class Callback:
    """Methods that `fit` calls. Set self.model.stop_training = True to end it. logs: {"loss": …}"""

    model = None

    def on_train_begin(self): ...
    def on_epoch_begin(self, epoch): ...
    def on_epoch_end(self, epoch, logs): ...
    def on_train_end(self): ...


class Training(Reconstructible):
    """The optimizer and loss that `compile` chose, and a pass over data. Raises NotImplementedError for metrics."""

    def __init__(self, optimizer, loss, metrics=()):
        optimizer = lookup("optimizer", OPTIMIZERS, optimizer)
        self.optimizer = optimizer() if isinstance(optimizer, type) else optimizer
        loss = lookup("loss", LOSSES, loss)
        self.losses = [loss() if isinstance(loss, type) else loss]  # one per output; here there is one
        if metrics:
            raise NotImplementedError("compile: metrics are for the models of levels_more.high_level")

    def loss(self, model, y, predicted):
        """Return the loss of a batch."""
        return self.losses[0](y, predicted)

    def one_pass(self, step, data, history=None):
        """Run a `function` over all batches; a history keeps the losses. Return {"loss": the mean over all rows}."""
        arrays, batches = data.rows()
        losses = check_losses(step, step.over(*arrays, batches)).numpy()
        if history is not None:
            history.passes.append(losses)
        return {"loss": epoch_loss(losses, [len(batch) for batch in batches])}


def run_training(model, data, epochs, callbacks=(), verbose=0):
    """Train on a Dataset of batches. Return a History (in `model.history` after errors). verbose=1 prints epochs."""
    history = model.history = History()
    model.stop_training = False
    step = function(model.train_step)

    def tell(event, *args):
        for callback in callbacks:
            callback.model = model
            getattr(callback, event)(*args)
        if verbose and event == "on_epoch_end":
            print(f"Epoch {args[0] + 1}/{epochs}: {history.last}")

    def one_pass():
        if callbacks:
            step.renew()  # they may have changed what a layer reads
        history.epochs.append(model.training.one_pass(step, data, history))
        return history.epochs[-1]  # the dict itself: callbacks may add to it

    tell("on_train_begin")
    try:
        run_epochs(epochs, tell, one_pass, lambda epoch, logs: ended(model, epoch, logs))
    finally:
        tell("on_train_end")
    check_last_loss(model, history.epochs)
    return history

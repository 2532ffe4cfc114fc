"""The training loop, written once for all models."""

# Built from 05_high_level.ipynb: edit there, then run its last cell.

import math

import numpy as np

from levels.hardware import dot
from levels.low_level import function
from levels.support.checks import check_int
from levels.support.trainings import check_last_loss, check_losses


class History:
    """The record of a training: the losses of all steps, and numbers for each epoch."""

    def __init__(self):
        self.passes = []  # for each pass an array, the losses of its steps
        self.epochs = []  # for each epoch {name: number}

    @property
    def losses(self):
        """The loss of each step, [steps]."""
        return np.concatenate(self.passes or [np.empty(0)])

    @property
    def history(self):
        """{"loss": [one number per epoch], …}"""
        found = {}
        for logs in self.epochs:
            for name, number in logs.items():
                found.setdefault(name, []).append(number)
        return found

    @property
    def last(self):
        """The last number of each name as text: "loss 7.62, …"."""
        return ", ".join(f"{name} {x[-1]:.4g}" for name, x in self.history.items())

    def __repr__(self):
        return f"History of {len(self.losses):,} steps: {self.last}"


def epoch_loss(losses, rows):
    """The mean over all rows: step k had a mean loss of losses[k] over rows[k] rows."""
    return dot(losses.tolist(), rows) / sum(rows)


def run_epochs(epochs, tell, one_pass, ended):
    """Run epochs until `ended`. Tell when each begins and ends, with its logs."""
    for epoch in range(epochs):
        tell("on_epoch_begin", epoch)
        logs = one_pass()
        tell("on_epoch_end", epoch, logs)
        if ended(epoch, logs):
            break


def ended(model, epoch, logs):
    """Whether to stop: `model.stop_training` is set, or the loss is not finite."""
    return model.stop_training or not math.isfinite(logs["loss"])


class Callback:
    """Methods that `fit` calls. To end the training, set self.model.stop_training."""

    model = None

    def on_train_begin(self): ...
    def on_epoch_begin(self, epoch): ...
    def on_epoch_end(self, epoch, logs): ...
    def on_train_end(self): ...


def one_pass(step, data, history=None):
    """Run a step over all batches. Add the losses to `history`. Return the mean."""
    arrays, batches = data.rows()
    losses = step.over(*arrays, batches)
    losses = check_losses(step, losses).numpy()
    if history is not None:
        history.passes.append(losses)
    return {"loss": epoch_loss(losses, [len(batch) for batch in batches])}


def run_training(model, data, epochs, callbacks=(), verbose=0, one_pass=one_pass):
    """Train on a Dataset of batches. Return a History, also `model.history`."""
    epochs = check_int(0, "epochs", epochs)
    history = model.history = History()
    model.stop_training = False
    step = function(model.train_step)

    def tell(event, *args):
        for callback in callbacks:
            callback.model = model
            getattr(callback, event)(*args)
        if verbose and event == "on_epoch_end":
            print(f"Epoch {args[0] + 1}/{epochs}: {history.last}")

    def one_epoch():
        if callbacks:
            step.renew()  # they may have changed what a layer reads
        history.epochs.append(one_pass(step, data, history))
        return history.epochs[-1]  # the dict itself: callbacks may add to it

    tell("on_train_begin")
    try:
        run_epochs(epochs, tell, one_epoch, lambda *now: ended(model, *now))
    finally:
        tell("on_train_end")
    check_last_loss(model, history.epochs)
    return history

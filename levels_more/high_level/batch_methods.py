"""One batch at a time, for a training loop of one's own around a model that is compiled."""

import reprlib

import numpy as np

from levels.low_level import METHODS, function
from levels.mid_level import at_least
from levels.support.checks import flag
from levels_more.high_level.data_adapter import arrays_of
from levels_more.high_level.fit import alone, given_batches

_ALL = 2**31  # more rows than any batch has


def on_batch(model, step, x, y, return_dict):
    """One step on all rows x [rows, …], y: the loss, a float; with metrics a list, the loss first; or {name: number}."""
    logs = model.training.one_pass(function(step), given_batches(model, x, y, None, _ALL, None))
    return logs if flag("return_dict", return_dict) else alone([*logs.values()])


def train_on_batch(model, x, y=None, return_dict=False):
    """Train by one step on all these rows: the loss before it, and metrics of this batch alone.

    Raises what `Model.fit` raises for x and y.
    """
    return on_batch(model, model.train_step, x, y, return_dict)


def test_on_batch(model, x, y=None, return_dict=False):
    """The loss on all these rows at once, and metrics of this batch alone. Raises what `Model.fit` raises for x and y."""
    return on_batch(model, model.test_step, x, y, return_dict)


def predict_on_batch(model, x):
    """What the model gives for all these rows at once, a NumPy array."""
    return model.predict(x, _ALL)


def to_categorical(x, num_classes=None):
    """Numbers of classes [rows] or [rows, 1] -> a float32 array [rows, classes], 1 at each row's class, else 0.

    Without `num_classes` there is one class more than the largest number. Raises ValueError for what is no number of a class,
    TypeError for words.
    """
    (found,) = arrays_of(x, "y")
    found = found[..., 0] if found.ndim > 1 and found.shape[-1] == 1 else found
    found = found.astype(np.int64) if found.dtype.kind in "bu" else found
    wrong = (found % 1 != 0) | (found < 0) if found.dtype.kind in "biuf" else np.ones(found.shape, bool)
    if wrong.any():
        told = f"x is {reprlib.repr(x)}, and holds {found[wrong][0]}"
        raise ValueError(f"to_categorical: {told}; expected whole numbers from 0 on")
    most = int(found.max(initial=-1)) + 1
    classes = most if num_classes is None else at_least(1, "to_categorical: num_classes", num_classes)
    if most > classes:
        raise ValueError(
            f"to_categorical: there is a class {most - 1}; with num_classes={classes} the last is {classes - 1}"
        )
    return np.eye(classes, dtype=np.float32)[found.astype(np.int64)]


METHODS.update({"Model.train_on_batch": train_on_batch, "Model.test_on_batch": test_on_batch})
METHODS.update({"Model.predict_on_batch": predict_on_batch})

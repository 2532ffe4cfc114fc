"""Numbers of classes as columns of 0 and 1."""

import reprlib

import numpy as np

from levels.support.checks import at_least
from levels_more.high_level.tables import arrays_of


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

"""Ops as functions of tensors: each passes the name of its op to `apply`, the door."""

# Built from 03_low_level.ipynb: edit there, then run its last cell.

import math

import numpy as np

from levels.support.checks import numeric_array

from .tensors import Operators, Tensor, apply, as_tensor


def exp(x):
    """Return eˣ for each number of x. Raises TypeError unless x holds floats."""
    return apply("exp", x)


def log(x):
    """Return the natural logarithms of x. Raises TypeError unless x holds floats."""
    return apply("log", x)


def sqrt(x):
    """Return the square roots of x. Raises TypeError unless x holds floats."""
    return apply("sqrt", x)


def gather(x, rows):
    """Return these rows of x[n, …], as [*rows.shape, …]. Raises TypeError unless all are ints, IndexError beyond x."""
    x = as_tensor(x)
    if not isinstance(rows, Operators):
        rows = numeric_array(rows)
        if rows.dtype.kind not in "iu" and rows.size:
            raise TypeError(f"gather: rows are {rows.dtype}; expected whole numbers")
        rows = x.device.put(rows.astype(np.int64), Tensor)
    return apply("gather", x, rows)


def clip(x, low, high):
    """Limit each number of x to the range from low to high. Raises ValueError unless these are numbers, low <= high."""
    if not isinstance(low, (int, float, np.number)) or not isinstance(high, (int, float, np.number)) or not low <= high:
        raise ValueError(f"clip: low is {low!r:.60} and high is {high!r:.60}; expected two numbers, the lower first")
    return apply("clip", x, low=float(low), high=float(high))


def reduce_sum(x, axis=None, keepdims=False):
    """Sum over one axis, neighbouring axes or all (None), in order from 0.0. Long float32 rows may be reordered."""
    return apply("reduce_sum", x, axis=_normalize_axis(axis), keepdims=keepdims)


def reduce_mean(x, axis=None, keepdims=False):
    """Divide the sum of floats by the number of its terms. Raises TypeError for other dtypes."""
    x = as_tensor(x)
    total = reduce_sum(x, axis, keepdims)
    return total / (math.prod(x.shape) // max(1, math.prod(total.shape)))


def _normalize_axis(axis):
    """Convert an axis, or a tuple of axes, to Python's int. None stays None. Raises TypeError for anything else."""
    if axis is None or type(axis) is int:
        return axis
    if isinstance(axis, bool) or not isinstance(axis, (tuple, int, np.integer, Operators)):
        raise TypeError(f"axis {axis!r:.60}: expected a whole number")
    return tuple(map(_normalize_axis, axis)) if isinstance(axis, tuple) else axis.__index__()

"""Functions of tensors: each is a name for the door."""

# Built from 03_low_level.ipynb: edit there, then run its last cell.

import numpy as np

from levels.support.checks import unmasked

from .tensors import Operators, Tensor, apply, as_tensor


def exp(x):
    """eˣ of each number of x, floats. Raises TypeError for others."""
    return apply("exp", x)


def log(x):
    """The natural logarithm of each number of x, floats. Raises TypeError for others."""
    return apply("log", x)


def sqrt(x):
    """The root of each number of x, floats. Raises TypeError for others."""
    return apply("sqrt", x)


def gather(x, rows):
    """These rows of x[n, …]: [*rows.shape, …]. Raises TypeError for numbers that are no int, IndexError outside x."""
    x = as_tensor(x)
    if not isinstance(rows, Operators):
        rows = unmasked(rows)
        if rows.dtype.kind not in "iu" and rows.size:
            raise TypeError(f"gather: rows are {rows.dtype}; expected whole numbers")
        rows = x.device.put(rows.astype(np.int64), Tensor)
    return apply("gather", x, rows)


def clip(x, low, high):
    """x, but no number less than low and none more than high. Raises ValueError unless low <= high, two numbers."""
    if not isinstance(low, (int, float, np.number)) or not isinstance(high, (int, float, np.number)) or not low <= high:
        raise ValueError(f"clip: low is {low!r} and high is {high!r}; expected two numbers, the lower first")
    return apply("clip", x, low=float(low), high=float(high))


def reduce_sum(x, axis=None, keepdims=False):
    """The sum over one axis, several neighbouring axes, or all numbers (axis=None), added in order from 0.0."""
    return apply("reduce_sum", x, axis=_whole(axis), keepdims=keepdims)


def reduce_mean(x, axis=None, keepdims=False):
    """The sum of floats divided by the count. Raises TypeError for other dtypes."""
    return apply("reduce_mean", x, axis=_whole(axis), keepdims=keepdims)


def _whole(axis):
    """An axis, or a tuple of them, as Python's integers; None stays. Raises TypeError for anything else."""
    if axis is None or type(axis) is int:
        return axis
    if isinstance(axis, bool) or not isinstance(axis, (tuple, int, np.integer, Operators)):
        raise TypeError(f"axis {axis!r:.60}: expected a whole number")
    return tuple(map(_whole, axis)) if isinstance(axis, tuple) else axis.__index__()

"""Ops as functions of tensors: each passes the name of its op to `apply`, the door."""

# Built from 03_low_level.ipynb: edit there, then run its last cell.

import math

import numpy as np

from levels.support.shapes import as_axis, limits, row_numbers

from .tensors import Operators, Tensor, apply, as_tensor


def exp(x):
    """Return eˣ for each number of x, which must hold floats."""
    return apply("exp", x)


def log(x):
    """Return the natural logarithm of each number of x, which must hold floats."""
    return apply("log", x)


def sqrt(x):
    """Return the square root of each number of x, which must hold floats."""
    return apply("sqrt", x)


def gather(x, rows):
    """Return rows of x[n, …] as [*rows.shape, …]. Raises TypeError, IndexError."""
    x = as_tensor(x)
    if not isinstance(rows, Operators):
        rows = x.device.put(row_numbers("gather", rows).astype(np.int64), Tensor)
    return apply("gather", x, rows)


def clip(x, low, high):
    """Limit each number of x to the range from low to high. Raises ValueError."""
    return apply("clip", x, **limits("clip", low, high))


def reduce_sum(x, axis=None, keepdims=False):
    """Sum the numbers of x over an axis, neighbouring axes or all (None), from 0.0."""
    return apply("reduce_sum", x, axis=as_axis(axis), keepdims=keepdims)


def reduce_mean(x, axis=None, keepdims=False):
    """Divide the sum of x by the number of its terms. x must hold floats."""
    x = as_tensor(x)
    total = reduce_sum(x, axis, keepdims)
    terms = math.prod(x.shape) // max(1, math.prod(total.shape))
    return total / terms

"""More activations, each made of functions that are there already, and so is its gradient."""

import math

from levels.low_level import as_tensor, clip, exp, log
from levels_more.checks import number
from levels_more.low_level.ops import logical_and, maximum, where


def leaky_relu(x, alpha=0.2):
    """x where it is positive, else alpha·x, of each number of a float tensor (Maas et al., 2013)."""
    x = as_tensor(x)
    return where(x > 0.0, x, number("leaky_relu: alpha", alpha) * x)


def softplus(x):
    """log(1 + exp(x)) of each number of a float tensor, without overflow (Dugas et al., 2001)."""
    x = as_tensor(x)
    return maximum(x, 0.0) + log1p(exp(-maximum(x, -x)))


def log1p(x):
    """log(1 + x) of each number of a float tensor, to full precision near 0 (Kahan's way: HP-15C's handbook, 1982)."""
    x = as_tensor(x)
    y = 1.0 + x
    known = logical_and(y != 1.0, y < math.inf)
    ratio = where(known, x, 1.0) / where(known, y - 1.0, 1.0)  # what rounding y has left of x
    return where(y == 1.0, x, log(y) * ratio)


def hard_sigmoid(x):
    """(x + 3) / 6 kept within 0 and 1, of each number of a float tensor (Courbariaux et al., 2015; Keras' slope)."""
    return clip((as_tensor(x) + 3.0) / 6.0, 0.0, 1.0)

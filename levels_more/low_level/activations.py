"""More activations, each made of functions that are there already, and so is its gradient."""

import math

import numpy as np

from levels.low_level import as_tensor, clip, exp, log
from levels_more.checks import number
from levels_more.low_level.ops import above_minus_infinity, logical_and, maximum, minimum, tanh, where


def leaky_relu(x, alpha=0.2):
    """x where it is positive, else alpha·x, of each number of a float tensor (Maas et al., 2013)."""
    x = as_tensor(x)
    return where(x > 0.0, x, number("leaky_relu: alpha", alpha) * x)


def selu(x):
    """1.0507·x where x is positive, else 1.0507·1.6733·(exp(x) - 1), of each number of a float tensor.

    Klambauer et al., 2017, https://arxiv.org/abs/1706.02515
    """
    x = as_tensor(x)
    scale, alpha = 1.0507009873554805, 1.6732632423543772
    return scale * where(x > 0.0, x, alpha * (exp(minimum(x, 0.0)) - 1.0))


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


def log_sigmoid(x):
    """log(1 / (1 + exp(-x))) of each number of a float tensor, without overflow."""
    return -softplus(-as_tensor(x))


def softsign(x):
    """x / (1 + |x|) of each number of a float tensor."""
    x = as_tensor(x)
    largest = float(np.finfo(x.dtype).max)
    x = clip(x, -largest, largest)  # inf / inf would be NaN
    return x / (1.0 + maximum(x, -x))


def relu6(x):
    """x kept within 0 and 6, of each number of a float tensor (Krizhevsky, 2010)."""
    return clip(x, 0.0, 6.0)


def hard_sigmoid(x):
    """(x + 3) / 6 kept within 0 and 1, of each number of a float tensor (Courbariaux et al., 2015; Keras' slope)."""
    return clip((as_tensor(x) + 3.0) / 6.0, 0.0, 1.0)


def mish(x):
    """x·tanh(softplus(x)) of each number of a float tensor (Misra, 2019, https://arxiv.org/abs/1908.08681)."""
    x = above_minus_infinity(x)
    return x * tanh(softplus(x))

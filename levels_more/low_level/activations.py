"""More activations, each made of functions that are there already, and so is its gradient."""

from levels.low_level import as_tensor, clip, exp, log
from levels_more.checks import number
from levels_more.low_level.ops import maximum, where


def leaky_relu(x, alpha=0.2):
    """x where it is positive, else alpha·x, of each number of a float tensor (Maas et al., 2013)."""
    x = as_tensor(x)
    return where(x > 0.0, x, number("leaky_relu: alpha", alpha) * x)


def softplus(x):
    """log(1 + exp(x)) of each number of a float tensor, without overflow (Dugas et al., 2001)."""
    x = as_tensor(x)
    return maximum(x, 0.0) + log1p(exp(-maximum(x, -x)))


def log1p(x):
    """log(1 + x) of each number of a float tensor, to full precision near 0 (Kahan, in the handbook of the HP-15C)."""
    x = as_tensor(x)
    y = 1.0 + x
    return where(y == 1.0, x, log(y) * (x / where(y == 1.0, 1.0, y - 1.0)))


def hard_sigmoid(x):
    """(x + 3) / 6 kept within 0 and 1, of each number of a float tensor (Courbariaux et al., 2015; Keras' slope)."""
    return clip((as_tensor(x) + 3.0) / 6.0, 0.0, 1.0)

"""Functions of each number that TensorFlow has and level 3 does not: of angles, of logarithms, and what is asserted."""

import math

import numpy as np

from levels import low_level as low
from levels_more.low_level import special
from levels_more.tensorflow.nested import known_now, numbers
from levels_more.tensorflow.op_arguments import alike


def expm1(x):
    """exp(x) - 1 of each number of a float tensor x, to full precision near 0: tanh(x / 2)·(exp(x) + 1)."""
    x = numbers(x)
    return low.tanh(x / 2.0) * (low.exp(x) + 1.0)


def cosh(x):
    """(exp(x) + exp(-x)) / 2 of each number of a float tensor x."""
    x = numbers(x)
    return (low.exp(x) + low.exp(-x)) / 2.0


def sinh(x):
    """(exp(x) - exp(-x)) / 2 of each number of a float tensor x: tanh(x)·cosh(x), which loses no digits near 0."""
    x = numbers(x)
    return low.tanh(x) * cosh(x)


def tan(x):
    """sin(x) / cos(x) of each number of a float tensor x, in radians."""
    return low.sin(numbers(x)) / low.cos(numbers(x))


def log_to(base):
    """The logarithm to that base of each number of a float tensor."""
    return lambda x: low.log(numbers(x)) / math.log(base)


def of_angles(name):
    """A function of `levels_more.low_level.special`, of each number of float tensors. Not in a traced function."""

    def run(*given):
        known_now(f"tf.{name}")
        return getattr(special, name)(*map(numbers, given))

    return run


def without_slope(function):
    """A function of NumPy's as one of tensors [any shape], through which no gradient passes. Not in a traced function."""

    def run(*given, **how):
        known_now(f"tf.{function.__name__}")
        y = function(*(np.asarray(numbers(x)) for x in given), **how)
        return tuple(map(_whole, y)) if isinstance(y, tuple) else _whole(y)

    return run


def _whole(y):
    return numbers(np.ascontiguousarray(y).reshape(np.shape(y)))


def divide_no_nan(x, y):
    """x / y of each two numbers of float tensors, and 0 where y is 0."""
    x, y = alike(x, y)
    return low.where(y == 0.0, low.zeros_like(x / 1.0), x / low.where(y == 0.0, low.ones_like(y), y))


def agreed(told, fits):
    """An assertion of two operands [any shapes]: raises ValueError where fits(x, y) is not true of all numbers."""

    def check(x, y, message=None, summarize=None, name=None, **options):
        known_now("tf.debugging")
        x, y = alike(x, y)
        if not np.all(fits(x.numpy(), y.numpy(), **options)):
            raise ValueError(f"{message or 'tf.debugging'}: {x!r:.60} is not {told} {y!r:.60}")

    return check


def _near(x, y, rtol=1e-5, atol=1e-5):
    return np.abs(x - y) <= atol + rtol * np.abs(y)


ASSERTED = {
    "equal": agreed("equal to", np.equal),
    "greater": agreed("greater than", np.greater),
    "less": agreed("less than", np.less),
    "near": agreed("near", _near),
}
CURVES = {"expm1": expm1, "sinh": sinh, "cosh": cosh, "tan": tan, "divide_no_nan": divide_no_nan, "log1p": low.log1p}
CURVES |= {
    **{name: of_angles(name) for name in ["asin", "acos", "atan", "asinh", "acosh", "atanh", "atan2"]},
    "is_finite": lambda x: numbers(x) - numbers(x) == 0.0,
    "is_inf": lambda x: abs(numbers(x)) == math.inf,
    "bincount": without_slope(np.bincount),
    "eigvalsh": without_slope(np.linalg.eigvalsh),
    "eigh": without_slope(lambda x: tuple(np.linalg.eigh(x))),
    "qr": without_slope(lambda x: tuple(np.linalg.qr(x))),
    "svd": without_slope(lambda x: (lambda u, s, v: (s, u, v.T))(*np.linalg.svd(x, full_matrices=False))),
}

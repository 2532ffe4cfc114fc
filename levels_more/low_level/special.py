"""Functions of NumPy's that have a slope: angles, and what grows like exp(x). Each brings its derivative along.

None of them can be traced, since NumPy needs the numbers. (`tensorflow.math_ops` makes sinh, cosh and expm1 of ops, which can be;
these are nearer to the truth, by two units in the last place.)
"""

import numpy as np

from levels.low_level import as_tensor, constant, exp, sqrt
from levels_more.low_level.custom_rules import told
from levels_more.low_level.promotion import alike, floats


def _sloped(function, slope):
    """A function of NumPy's, of floats x[…], as one of tensors; its derivative is slope(x, y) where y is what it gives."""

    def run(x):
        x = floats(as_tensor(x))
        with np.errstate(all="ignore"):
            y = constant(function(x.numpy()))
        return told(y, (x,), lambda dy: [dy * slope(x, y)])

    run.__doc__ = f"NumPy's {function.__name__} of each number of x[…]; whole numbers count as floats."
    return run


sinh, cosh = _sloped(np.sinh, lambda x, y: cosh(x)), _sloped(np.cosh, lambda x, y: sinh(x))
asin = _sloped(np.arcsin, lambda x, y: 1.0 / sqrt(1.0 - x * x))
acos = _sloped(np.arccos, lambda x, y: -1.0 / sqrt(1.0 - x * x))
atan = _sloped(np.arctan, lambda x, y: 1.0 / (1.0 + x * x))
asinh = _sloped(np.arcsinh, lambda x, y: 1.0 / sqrt(1.0 + x * x))
acosh = _sloped(np.arccosh, lambda x, y: 1.0 / sqrt(x * x - 1.0))
atanh = _sloped(np.arctanh, lambda x, y: 1.0 / (1.0 - x * x))
expm1 = _sloped(np.expm1, lambda x, y: exp(x))
frac = _sloped(lambda x: x - np.trunc(x), lambda x, y: 1.0)


def hypot(x, y):
    """√(x² + y²) of each two numbers of tensors x[…] and y[…]."""
    x, y = map(floats, alike(x, y))
    return sqrt(x * x + y * y)


def fmod(x, y):
    """What is left of each number of a tensor x when y is taken away as often as it fits, with the sign of x."""
    x, y = alike(x, y)
    return x - y * constant(np.trunc(x.numpy() / y.numpy()).astype(x.dtype))


def atan2(y, x):
    """The angle of each point (x, y) of two tensors, from -π to π."""
    y, x = map(floats, alike(y, x))
    z = constant(np.arctan2(y.numpy(), x.numpy()))
    y, x = y + 0.0 * x, x + 0.0 * y  # of one shape
    return told(z, (y, x), lambda dz: [dz * x / (x * x + y * y), -dz * y / (x * x + y * y)])

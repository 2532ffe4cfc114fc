"""Functions of tensors that are made of others: rounded, divided without a rest, filled with one number."""

import numpy as np

from levels.low_level import OPERATORS, Operators, as_tensor, constant
from levels_more.checks import dtype_of, expect, sizes
from levels_more.low_level.autodiff import stop_gradient
from levels_more.low_level.numpy_functions import numpy_op
from levels_more.low_level.ops import broadcast_to, cast, where


def floor(x):
    """The whole number beneath each number of a tensor x, in x's dtype. Its slope is 0. Not in a traced function."""
    return numpy_op(np.floor, as_tensor(x))


def rounded(x):
    """The whole number nearest to each number of a tensor x, half to even. Its slope is 0. Not in a traced function."""
    return numpy_op(np.round, as_tensor(x))


def sign(x):
    """-1, 0 or 1 for each number of a tensor x, in x's dtype. Its slope is 0. Not in a traced function."""
    return numpy_op(np.sign, as_tensor(x))


def floordiv(x, y):
    """x / y rounded down, of each two numbers, a tensor and another or a number. Its slope is 0.

    Not in a traced function. Raises ZeroDivisionError for whole numbers divided by 0.
    """
    x = as_tensor(x, y if isinstance(y, Operators) else None)
    y = as_tensor(y, x)
    expect(x.dtype == y.dtype and x.dtype.kind in "fi", "floordiv: x and y", (x.spec, y.spec), "numbers of one dtype")
    if x.dtype.kind == "i" and not y.numpy().all():
        raise ZeroDivisionError(f"whole numbers divided by 0, in {y!r:.60}")
    with np.errstate(all="ignore"):
        return numpy_op(np.floor_divide, x, y.numpy())


def mod(x, y):
    """The rest of a division, exactly, of each two numbers: 0 or of y's sign. Its slopes are 1 and -floordiv(x, y).

    Not in a traced function. Raises what `floordiv` raises.
    """
    x = as_tensor(x, y if isinstance(y, Operators) else None)
    y = as_tensor(y, x)
    count = floordiv(x, y)
    with np.errstate(invalid="ignore"):
        rest = numpy_op(np.mod, x, y.numpy())
    nothing = [stop_gradient(x) - x, count * (y - stop_gradient(y))]  # 0 with a slope, or NaN of infinities
    of_x, of_y = (where(each == 0, each, 0) for each in nothing)
    return rest - (of_x + of_y)


OPERATORS["%"] = mod
OPERATORS["//"] = floordiv


def eye(n, m=None, dtype="float32"):
    """A tensor [n, m], or [n, n], with 1 where both numbers are equal, else 0."""
    n, m = (*sizes("eye: n", n), *sizes("eye: m", n if m is None else m))
    return constant(np.eye(n, m, dtype=dtype_of("eye: dtype", dtype)))


def fill(shape, value):
    """A tensor of that shape, all that number: int64, float32 or, for a NumPy number or a tensor, of its dtype."""
    return broadcast_to(as_tensor(value), shape)


def divide(x, y):
    """x / y of each two numbers, a tensor and another or a number; of whole numbers in float64, as in NumPy."""
    x, y = as_tensor(x, y if isinstance(y, Operators) else None), as_tensor(y, x if isinstance(x, Operators) else None)
    whole = x.dtype.kind == "i" and y.dtype.kind == "i"
    return cast(x, "float64") / cast(y, "float64") if whole else x / y

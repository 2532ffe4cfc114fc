"""Functions of tensors that are composed of others or of NumPy's: floor division, remainder and true division."""

import functools

import numpy as np

from levels.low_level import DTYPES, OPERATORS, Operators, Symbol, Tensor, as_tensor, constant
from levels_more.checks import expect
from levels_more.low_level.autodiff import stop_gradient
from levels_more.low_level.ops import cast, where


def numpy_op(function, *args, **how):
    """Apply a NumPy function to tensors. Returns a tensor, or a tuple of them, on the device of the first tensor.

    No gradient passes through it. Raises TypeError in a traced function, where the numbers are not known, and for a
    dtype that the function does not support, such as bool for np.sign.
    """
    devices = [x.device for x in args if isinstance(x, Operators)]
    put = functools.partial(devices[0].put, kind=Tensor) if devices else constant
    arrays = [numbers_of(function.__name__, x) if isinstance(x, Operators) else x for x in args]
    cause = None
    try:
        y = function(*arrays, **how)
    except TypeError as error:  # its message names NumPy's internal classes
        y = None
        cause = error
    found = [np.asarray(each, order="C") for each in (y if isinstance(y, tuple) else (y,))]
    if not all(each.dtype in DTYPES for each in found):  # np.round makes float16 of bools
        given = f"{function.__name__}: the dtype is {str(np.asarray(arrays[0]).dtype)!r}"
        raise TypeError(f"{given}; expected one that it takes; cast it") from cause
    made = [*map(put, found)]
    return tuple(made) if isinstance(y, tuple) else made[0]


def numbers_of(name, x):
    """Return the numbers of a tensor for the function of this name. Raises TypeError while a function is traced."""
    if isinstance(x, Symbol):
        cure = "no op of a graph: compute it from the rows with NumPy, before or outside of the function"
        raise TypeError(
            f"{name}: {x} has no numbers yet in a traced function, as in fit and predict, and this is {cure}"
        )
    return x.numpy()


def without_gradient(function):
    """Return a NumPy function as a function of tensors without a gradient."""
    return functools.partial(numpy_op, function)


def floordiv(x, y):
    """Return x / y, rounded down, for each pair of numbers. x and y are tensors or numbers. The gradient is 0.

    Not for traced functions. Raises TypeError if the dtypes differ, ZeroDivisionError if integers are divided by 0.
    """
    x = as_tensor(x, y if isinstance(y, Operators) else None)
    y = as_tensor(y, x)
    expect(x.dtype == y.dtype and x.dtype.kind in "fi", "floordiv: x and y", (x.spec, y.spec), "numbers of one dtype")
    numbers_of("x // y", x)
    if x.dtype.kind == "i" and not numbers_of("x // y", y).all():
        raise ZeroDivisionError(f"whole numbers divided by 0, in {y!r:.60}")
    with np.errstate(all="ignore"):
        return numpy_op(np.floor_divide, x, numbers_of("x // y", y))


def mod(x, y):
    """Return the exact remainder of x / y for each pair of numbers: 0 or of y's sign. Slopes: 1 and -floordiv(x, y).

    Not for traced functions. Raises what `floordiv` raises.
    """
    x = as_tensor(x, y if isinstance(y, Operators) else None)
    y = as_tensor(y, x)
    numbers_of("x % y", x)
    count = floordiv(x, y)
    with np.errstate(invalid="ignore"):
        rest = numpy_op(np.mod, x, y.numpy())
    nothing = [stop_gradient(x) - x, count * (y - stop_gradient(y))]  # 0 with a gradient, or NaN for infinities
    of_x, of_y = (where(each == 0, each, 0) for each in nothing)
    return rest - (of_x + of_y)


OPERATORS["%"] = mod
OPERATORS["//"] = floordiv


def divide(x, y):
    """Return x / y for each pair of numbers. x and y are tensors or numbers. Integers give float64, as in NumPy."""
    x, y = as_tensor(x, y if isinstance(y, Operators) else None), as_tensor(y, x if isinstance(x, Operators) else None)
    whole = x.dtype.kind == "i" and y.dtype.kind == "i"
    return cast(x, "float64") / cast(y, "float64") if whole else x / y

"""Rules for dtypes, shapes and axes, and the sentences of their errors. Notebooks 02 and 03 use them."""

import inspect
import math
import reprlib

import numpy as np

from .checks import check_bool, numeric_array
from .operators import SeveralOps


def same_dtype(op, *inputs, kinds="f"):
    """Return the common dtype. Raises TypeError if two differ, or for kinds not listed: f float, i integer, b bool."""
    dtype = inputs[0].dtype
    if any(x.dtype != dtype for x in inputs):
        given = " and ".join(f"{x.dtype}{list(x.shape)}" for x in inputs)
        raise TypeError(f"{op}: the inputs are {given}, in this order; all need the same dtype, so cast one of them")
    if dtype.kind not in kinds or dtype.itemsize not in (1, 4, 8):
        raise TypeError(f"{op}: has no kernel for {dtype}; cast it, to float32 for example")
    return dtype


def cast(array, dtype, dtypes):
    """Return an array in this dtype. Raises TypeError if it is none of `dtypes`, or would turn floats into integers,
    and OverflowError for a number that is too large for it.
    """
    kinds = "fiub" if dtype.kind == "f" else "ib"  # float, integer, unsigned, bool
    if dtype not in dtypes or array.dtype.kind not in kinds:
        told = f"constant: {array.dtype} to {dtype} has no kernels, or loses digits"
        raise TypeError(f"{told}; cast it in NumPy first")
    if array.dtype == dtype:
        return array
    try:
        with np.errstate(over="raise"):
            return array.astype(dtype)
    except FloatingPointError:
        raise OverflowError(f"a number is too large for {dtype}") from None


def number_names(op, function, inputs, attrs):
    """Return the parameters of a scalar function after its inputs. Raises TypeError unless `attrs` are these."""
    names = list(inspect.signature(function).parameters)
    rest = names[len(inputs) :]
    if len(names) != len(inputs) + len(attrs) or {*rest} != {*attrs}:
        raise TypeError(f"{op}: takes {', '.join(names)}; got {len(inputs)} arrays and the numbers {list(attrs)}")
    return rest


def broadcast(op, inputs, shape, updates=False):
    """Return the common shape, with `updates` that of the first input, or `shape`. Raises ValueError if none fits."""
    shapes = [x.shape for x in inputs]
    wanted = shapes[0] if updates else shape
    try:
        common = np.broadcast_shapes(wanted or (), *shapes)
    except (ValueError, RuntimeError):  # RuntimeError: more axes than NumPy has
        raise ValueError(f"{op}: shapes {' and '.join(map(reprlib.repr, shapes))} do not broadcast") from None
    if wanted is not None and common != wanted:
        raise ValueError(f"{op}: shapes {' and '.join(map(str, shapes))} do not fit a result of {wanted}")
    return common


def as_axis(axis):
    """Return an axis, or a tuple of axes, as Python's int; or None, for all. Raises TypeError for anything else."""
    if axis is None or type(axis) is int:
        return axis
    if isinstance(axis, bool) or not isinstance(axis, (tuple, int, np.integer, SeveralOps)):
        raise TypeError(f"axis {axis!r:.60}: expected a whole number")
    return tuple(map(as_axis, axis)) if isinstance(axis, tuple) else axis.__index__()


def limits(op, low, high):
    """Return two numbers as floats, {"low": …, "high": …}. Raises ValueError unless low <= high."""
    if not isinstance(low, (int, float, np.number)) or not isinstance(high, (int, float, np.number)) or not low <= high:
        raise ValueError(f"{op}: low is {low!r:.60} and high is {high!r:.60}; expected two numbers, the lower first")
    return {"low": float(low), "high": float(high)}


def check_axes(op, shape, axis):
    """Return the axes of a reduction in order: one axis, a tuple of neighbours, or all (None). Raises ValueError."""
    axes = range(len(shape)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    if not all(isinstance(a, int) and -len(shape) <= a < len(shape) for a in axes):
        raise ValueError(f"{op}: axis {reprlib.repr(axis)} is not an axis of shape {shape}")
    axes = sorted(a % len(shape) for a in axes)
    if axes and axes != list(range(axes[0], axes[-1] + 1)):
        raise ValueError(f"{op}: the axes {axis} are not neighbours, each named once; transpose x first")
    return axes


def start_in(dtype, start):
    """Return a reduction's start in this dtype. (Integers have no infinity to start at.)"""
    if dtype.kind == "i":
        start = max(np.iinfo(dtype).min, min(start, np.iinfo(dtype).max))
    return dtype.type(start)


def check_reshape(op, old, new):
    """Raise ValueError unless `new` is a shape for as many numbers."""
    if not isinstance(new, tuple) or math.prod(new) != math.prod(old) or min(new, default=0) < 0:
        raise ValueError(f"{op}: {old} does not fit into {new!r}: {math.prod(old)} numbers")


def check_rows(op, x, rows):
    """Raise TypeError unless `rows` are int64 row numbers of an array."""
    if rows.dtype != np.int64 or len(x.shape) < 1:
        raise TypeError(f"{op}: rows are {rows.dtype}; expected int64 row numbers of an array")


def row_numbers(op, rows):
    """Return the numbers of rows as an array. Raises TypeError unless all are whole numbers."""
    rows = numeric_array(rows)
    if rows.dtype.kind not in "iu" and rows.size:
        raise TypeError(f"{op}: rows are {rows.dtype}; expected whole numbers")
    return rows


def turned(op, x, transpose):
    """Return the shape of x, transposed if `transpose` is True. Raises TypeError if it is no bool."""
    return x.shape[::-1] if check_bool(f"{op}: a transpose", transpose) else x.shape


def check_product(op, x, w, x_shape, w_shape):
    """Raise ValueError unless x_shape[m, k] and w_shape[k, n], as the arrays are read, have equal inner sizes k."""
    if len(x_shape) != 2 or len(w_shape) != 2:
        raise ValueError(f"{op}: x is {x.shape} and w is {w.shape}: both need two axes")
    if x_shape[1] != w_shape[0]:
        raise ValueError(f"{op}: x is {x_shape} and w is {w_shape}: inner sizes {x_shape[1]} and {w_shape[0]} differ")

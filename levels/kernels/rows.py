"""Rows picked, and added to, by number."""

# Built from notebooks/02_kernels.ipynb: edit there, then run its last cell.

import math

import numpy as np

from .elementwise import TRIALS, compiled_loop, identity
from .registry import COMPILERS, Plan, kernel, make, same_dtype


def plan_gather(op, function, x, rows):
    """out[i, …] = x[rows[i], …]"""
    if rows.dtype != np.int64 or len(x.shape) < 1:
        raise TypeError(f"{op}: rows are {rows.dtype}; expected int64 row numbers of an array with rows")
    width, loop = math.prod(x.shape[1:]), COMPILERS["cpu"](function, x.dtype)

    def run(out, x, rows):
        loop(out.reshape(-1, width), x.reshape(-1, width), rows.ravel())

    spec = x.device.spec(rows.shape + x.shape[1:], x.dtype)
    return Plan(spec, 2 * spec.nbytes + rows.spec.nbytes, run)


@kernel("gather", planner=plan_gather)
def gather(out, x, rows):
    """out[i, j] = x[rows[i], j]"""
    for i in range(rows.size):
        if not 0 <= rows[i] < x.shape[0]:
            raise IndexError("gather: a row number is out of range")
        for j in range(x.shape[1]):
            out[i, j] = x[rows[i], j]


TRIALS["gather"] = lambda draw, dtype: [
    ([draw.normal(size=shape).astype(dtype), draw.integers(0, shape[0], count)], {})
    for shape in ((5,), (5, 3), (1, 1), (2, 3, 4))
    for count in (0, 1, 7)
]


def plan_transpose(op, function, x, axes=None):
    """out's axis n is x's axis axes[n]; all in reverse where `axes` is None."""
    axes = tuple(range(len(x.shape)))[::-1] if axes is None else axes
    if not isinstance(axes, tuple) or sorted(axes) != list(range(len(x.shape))):
        raise ValueError(f"{op}: axes {axes} are not the axes of shape {x.shape} in another order")
    shape = tuple(x.shape[a] for a in axes)
    view = shape or (1,)
    loop = compiled_loop(function, x.dtype, ((True,),) * len(view))

    def run(out, x):
        loop(out.reshape(view), x.transpose(axes).reshape(view))

    return make(shape, x.dtype, [x], run)


def plan_cast(op, function, x, dtype=None):
    """The same numbers in another dtype. Raises ValueError where NaN or a too large number would become an integer."""
    same_dtype(op, x, kinds="fib")
    if np.dtype(dtype) not in (np.float32, np.float64, np.int64, np.bool_):
        raise TypeError(f"{op}: to {dtype}; expected float32, float64, int64 or bool")
    checked = np.dtype(dtype).kind == "i" and x.dtype.kind == "f"
    loop, fit = (COMPILERS["cpu"](f, x.dtype) for f in (function, all_fit))

    def run(out, x):
        if checked and not fit(x.ravel()):
            raise ValueError(f"{op}: NaN, infinity or a number beyond 2⁶³ has no place in {np.dtype(dtype)}")
        loop(out.ravel(), x.ravel())

    return make(x.shape, dtype, [x], run)


def all_fit(x):
    """Whether all these floats lie within the range of int64."""
    wrong = 0
    for value in x:
        wrong += not -(2.0**63) <= value < 2.0**63
    return wrong == 0


kernel("transpose", planner=plan_transpose)(identity)
TRIALS["transpose"] = lambda draw, dtype: [
    ([draw.normal(size=shape).astype(dtype)], {"axes": axes})
    for shape, axes in (((), None), ((3,), None), ((3, 5), (1, 0)), ((2, 3, 4), (1, 2, 0)), ((0, 2), None))
]


@kernel("cast", planner=plan_cast)
def cast(out, x):
    for i in range(x.size):
        out[i] = x[i]


TRIALS["cast"] = lambda draw, dtype: [
    ([draw.normal(size=30).astype(dtype) * 9], {"dtype": to}) for to in ("f4", "f8", "i8", "?")
]


def plan_scatter_add(op, function, x, rows, count=0):
    """out[rows[i], …] = Σ x[i, …], in a result of `count` rows, in the order of i."""
    dtype, axes = same_dtype(op, x, kinds="fi"), len(rows.shape)
    if rows.dtype != np.int64 or x.shape[:axes] != rows.shape:
        raise TypeError(
            f"{op}: rows are {rows.dtype} of shape {rows.shape}; expected int64, one for each row of {x.shape}"
        )
    width, loop = math.prod(x.shape[axes:]), COMPILERS["cpu"](function, dtype)

    def run(out, x, rows):
        loop(out.reshape(count, width), x.reshape(rows.size, width), rows.ravel())

    return make((count, *x.shape[axes:]), dtype, [x, rows], run)


@kernel("scatter_add", planner=plan_scatter_add)
def scatter_add(out, x, rows):
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = 0
    for i in range(rows.size):
        if not 0 <= rows[i] < out.shape[0]:
            raise IndexError("scatter_add: a row number is out of range")
        for j in range(out.shape[1]):
            out[rows[i], j] += x[i, j]


def plan_one_hot(op, function, x, depth=0, dtype=np.float32):
    """out[…, j] = 1 if x[…] = j else 0, for j in range(depth)."""
    if x.dtype != np.int64:
        raise TypeError(f"{op}: classes are {x.dtype}; expected int64 numbers")
    loop = COMPILERS["cpu"](function, x.dtype)
    return make((*x.shape, depth), dtype, [x], lambda out, x: loop(out.reshape(x.size, depth), x.ravel()))


@kernel("one_hot", planner=plan_one_hot)
def one_hot(out, x):
    for i in range(x.size):
        if not 0 <= x[i] < out.shape[1]:
            raise IndexError("one_hot: a class number is out of range")
        for j in range(out.shape[1]):
            out[i, j] = x[i] == j


TRIALS["scatter_add"] = lambda draw, dtype: [
    ([draw.normal(size=(6, *shape)).astype(dtype), draw.integers(0, 4, 6)], {"count": 4})
    for shape in ((), (3,), (2, 3))
]
TRIALS["one_hot"] = lambda draw, dtype: [([draw.integers(0, 4, size)], {"depth": 4, "dtype": dtype}) for size in (0, 7)]

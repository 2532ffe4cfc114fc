"""Reductions: ops that combine many numbers into one, along axes. Also reshape."""

# Built from 02_kernels.ipynb: edit there, then run its last cell.

import math
import reprlib

import numpy as np

from levels.support.checks import check_bool

from .elementwise import _plan_elementwise, element_loop
from .registry import BACKENDS, PLANNERS, kernel, kernel_of, lowered, make, same_dtype


def reduce_rows(combine, start):
    """Return the loop out[i] = combine(… combine(start, x[i, 0]) …, x[i, last]), for out[rows] and x[rows, n]."""

    def loop(out, x):
        for i in range(x.shape[0]):
            total = start
            for k in range(x.shape[1]):
                total = combine(total, x[i, k])
            out[i] = total

    return loop


def reduce_columns(combine, start):
    """Return the loop out[i, j] = combine(… combine(start, x[i, 0, j]) …, x[i, last, j]), with j innermost."""

    def loop(out, x):
        out[:] = start
        for i in range(out.shape[0]):
            for k in range(x.shape[1]):
                for j in range(out.shape[1]):
                    out[i, j] = combine(out[i, j], x[i, k, j])

    return loop


BACKENDS["cpu"].loops = reduce_rows, reduce_columns
QUICKER = {}  # a loop -> a faster one that gives the same bits


def reduced(op, shape, axis):
    """Return the sorted axes; the sizes before, within and after them. Raises ValueError unless they are adjacent."""
    axes = range(len(shape)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    if not all(isinstance(a, int) and -len(shape) <= a < len(shape) for a in axes):
        raise ValueError(f"{op}: axis {reprlib.repr(axis)} is not an axis of shape {shape}")
    axes = sorted(a % len(shape) for a in axes)
    first, last = (axes[0], axes[-1] + 1) if axes else (0, 0)
    if axes != list(range(first, last)):
        raise ValueError(f"{op}: the axes {axis} are not neighbours, each named once; transpose x first")
    return axes, [math.prod(sizes) for sizes in (shape[:first], shape[first:last], shape[last:])]


def _plan_reduce(op, function, x, axis=None, keepdims=False):
    """Plan a reduction over one axis, a tuple of adjacent axes, or all axes (axis=None)."""
    axes, (before, within, after) = reduced(op, x.shape, axis)
    start, dtype = REDUCTIONS[op], same_dtype(op, x, kinds="fi")
    keep = check_bool(f"{op}: keepdims", keepdims)
    shape = tuple(1 if a in axes else size for a, size in enumerate(x.shape) if keep or a not in axes)
    if dtype.kind == "i":  # integers have no infinity to start at
        start = max(np.iinfo(dtype).min, min(start, np.iinfo(dtype).max))
    along_rows, down_columns = (QUICKER.get(loop, loop) for loop in BACKENDS[x.device.kind].loops)
    reduction, columns = (along_rows, ()) if after == 1 else (down_columns, (after,))
    fast = ("reassoc",) if after == 1 and within >= 1024 and dtype == np.float32 else ()

    def lower():
        combine = lowered(function, x, fast)()
        return lowered(reduction(combine, dtype.type(start)), x, fast)()

    return make(op, shape, dtype, [x], lower, [(before, *columns), (before, within, *columns)])


kernel("reduce_sum", planner=_plan_reduce)(lambda total, x: total + x)
REDUCTIONS = {"reduce_sum": 0.0}  # op -> the number that its loops start at


def _plan_mean(op, function, x, axis=None, keepdims=False):
    """Plan a mean: the sum over these axes, divided by the number of its terms."""
    same_dtype(op, x)
    total = _plan_reduce("reduce_sum", kernel_of("reduce_sum", x.device.kind), x, axis, keepdims)
    count = math.prod(x.shape) / max(1, math.prod(total.spec.shape))
    divide = _plan_elementwise("divide", function, total.spec, count=count)

    def run(out, x):
        total.run(out, x)
        divide.run(out, out, count)

    return make(op, total.spec.shape, x.dtype, [x], lambda: run)


def plan_reshape(op, function, x, shape=()):
    """Plan a copy in another shape, in the same order. Raises ValueError for a shape of more or fewer numbers."""
    row = (math.prod(x.shape),)
    if not isinstance(shape, tuple) or (math.prod(shape),) != row or min(shape, default=0) < 0:
        raise ValueError(f"{op}: {x.shape} does not fit into {shape!r}: {row[0]} numbers")
    loop = lowered(element_loop(function, x, ["i", "i"]), x)
    return make(op, shape, x.dtype, [x], loop, [row, row])


kernel("reduce_mean", planner=_plan_mean)(lambda total, count: total / count)
kernel("reshape")(lambda x: x)
PLANNERS["reshape"] = plan_reshape

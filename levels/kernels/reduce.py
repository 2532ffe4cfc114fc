"""Reductions: ops that combine many numbers into one, along axes."""

# Built from 02_kernels.ipynb: edit there, then run its last cell.

import math

from levels.support.checks import check_bool
from levels.support.shapes import check_axes, same_dtype, start_in

from .registry import BACKENDS, Plan, kernel, lowered


def reduce_loop(combine, start):
    """Return a loop: out[i, j] combines start, x[i, 0, j], x[i, 1, j], …, in order."""

    def loop(out, x):
        for i in range(x.shape[0]):
            for j in range(x.shape[2]):
                total = start
                for k in range(x.shape[1]):
                    total = combine(total, x[i, k, j])
                out[i, j] = total

    return loop


BACKENDS["cpu"].reduction = reduce_loop


def reduced(op, shape, axis):
    """Return the axes of a reduction, and the sizes before, within and after them."""
    axes = check_axes(op, shape, axis)
    first = axes[0] if axes else 0
    last = axes[-1] + 1 if axes else 0
    parts = [shape[:first], shape[first:last], shape[last:]]
    return axes, [math.prod(sizes) for sizes in parts]


def plan_reduce(op, function, x, axis=None, keepdims=False):
    """Plan a reduction of x[…] over one axis, neighbouring axes, or all axes (None)."""
    axes, (before, within, after) = reduced(op, x.shape, axis)
    keep = check_bool(f"{op}: keepdims", keepdims)
    start = start_in(same_dtype(op, x, kinds="fi"), REDUCTIONS[op])
    sizes = [1 if a in axes else size for a, size in enumerate(x.shape)]
    shape = tuple(size for a, size in enumerate(sizes) if keep or a not in axes)
    long = within >= 1024 and x.dtype == "f4"
    how = [("reassoc",)] if long else []  # for LLVM: terms may be added in any order
    make_loop = BACKENDS[x.device.kind].reduction

    def lower():
        combine = lowered(function, x, *how)()
        loop = make_loop(combine, start)
        return lowered(loop, x, *how)()

    views = [(before, after), (before, within, after)]
    return Plan(op, shape, x.dtype, [x], lower, views)


kernel("reduce_sum", planner=plan_reduce)(lambda total, x: total + x)
REDUCTIONS = {"reduce_sum": 0.0}  # op -> the number that its loop starts at

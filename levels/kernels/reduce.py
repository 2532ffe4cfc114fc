"""Reductions and rows: many numbers become one, and rows are picked by number."""

# Built from notebooks/02_kernels.ipynb: edit there, then run its last cell.

import math

import numpy as np

from .registry import TRIALS, Plan, kernel, make


def plan_reduce(op, function, x, axis=None, keepdims=False):
    """Reduce over one axis, or over all of them (axis=None)."""
    if axis is not None and not -len(x.shape) <= axis < len(x.shape):
        raise ValueError(f"{op}: axis {axis} is not an axis of shape {x.shape}")
    first, last = (0, len(x.shape)) if axis is None else (axis % len(x.shape), axis % len(x.shape) + 1)
    before, summed, after = (math.prod(s) for s in (x.shape[:first], x.shape[first:last], x.shape[last:]))
    shape = x.shape[:first] + (1,) * (last - first) * keepdims + x.shape[last:]

    def run(out, x):
        function(out.reshape(before, after), x.reshape(before, summed, after))

    return make(shape, x.dtype, [x], run)


@kernel("reduce_sum", planner=plan_reduce)
def reduce_sum(out, x):
    """out[i, j] = Σₖ x[i, k, j], starting at 0.0, k upwards."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = 0.0
        for k in range(x.shape[1]):
            for j in range(out.shape[1]):
                out[i, j] += x[i, k, j]


TRIALS["reduce_sum"] = lambda draw, dtype: [
    ([draw.normal(size=shape).astype(dtype)], {"axis": axis, "keepdims": keepdims})
    for shape in ((3, 4, 5), (1, 1, 1), (0, 2, 3))
    for axis in (None, 0, 1, -1)
    for keepdims in (False, True)
]


def plan_gather(op, function, x, rows):
    """out[i, …] = x[rows[i], …]"""
    if rows.dtype != np.int64 or len(x.shape) < 1:
        raise TypeError(f"{op}: rows are {rows.dtype}; expected int64 row numbers of an array with rows")
    width = math.prod(x.shape[1:])

    def run(out, x, rows):
        function(out.reshape(-1, width), x.reshape(-1, width), rows.ravel())

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

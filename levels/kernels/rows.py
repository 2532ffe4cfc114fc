"""Rows picked by number."""

# Built from 02_kernels.ipynb: edit there, then run its last cell.

import math

import numpy as np

from .registry import kernel, lowered, make


def _plan_gather(op, function, x, rows):
    """out[i, …] = x[rows[i], …]"""
    if rows.dtype != np.int64 or len(x.shape) < 1:
        raise TypeError(f"{op}: rows are {rows.dtype}; expected int64 row numbers of an array with rows")
    count, width = math.prod(rows.shape), math.prod(x.shape[1:])
    views = [(count, width), (x.shape[0], width), (count,)]
    made = make(op, rows.shape + x.shape[1:], x.dtype, [x, rows], lowered(function, x), views)
    made.nbytes = 2 * made.spec.nbytes + rows.spec.nbytes  # of x only these rows are read
    return made


@kernel("gather", planner=_plan_gather)
def gather(out, x, rows):
    """out[i, j] = x[rows[i], j]. Raises IndexError for a row that x has not."""
    for i in range(rows.size):
        row = rows[i]  # read once: for all the compiler knows, out might lie over rows, and the loop below change it
        if not 0 <= row < x.shape[0]:
            raise IndexError("gather: a row number is out of range")
        for j in range(x.shape[1]):
            out[i, j] = x[row, j]

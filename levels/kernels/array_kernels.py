"""Kernels on whole arrays: gather, which picks rows by number, and the matrix product."""

# Built from 02_kernels.ipynb: edit there, then run its last cell.

import math

import numpy as np

from levels.support.checks import check_bool

from .registry import PLANNERS, kernel, lowered, make, same_dtype


def gather(out, x, rows):
    """out[i, j] = x[rows[i], j]. Raises IndexError for a row that x does not have."""
    for i in range(rows.size):
        row = rows[i]  # read once: the compiler cannot know that the loop below does not change it
        if not 0 <= row < x.shape[0]:
            raise IndexError("gather: a row number is out of range")
        for j in range(x.shape[1]):
            out[i, j] = x[row, j]


def _plan_gather(op, function, x, rows):
    """Plan out[i, …] = x[rows[i], …]."""
    if rows.dtype != np.int64 or len(x.shape) < 1:
        raise TypeError(f"{op}: rows are {rows.dtype}; expected int64 row numbers of an array")
    count, width = math.prod(rows.shape), math.prod(x.shape[1:])
    views = [(count, width), (x.shape[0], width), (count,)]
    made = make(op, rows.shape + x.shape[1:], x.dtype, [x, rows], lowered(function, x), views)
    made.nbytes = 2 * made.spec.nbytes + rows.spec.nbytes  # only these rows of x are read
    return made


kernel("gather")(gather)
PLANNERS["gather"] = _plan_gather


def matmul_ikj(out, x, w):
    """out[i, j] = Σₖ x[i, k]·w[k, j], starting at 0.0, k upwards."""
    out[:] = 0.0
    for i in range(out.shape[0]):
        for k in range(x.shape[1]):
            for j in range(out.shape[1]):
                out[i, j] += x[i, k] * w[k, j]


def _plan_matmul(op, function, x, w, transpose_x=False, transpose_w=False):
    """Plan out[m, n] = x[m, k] @ w[k, n]. A transposed input is read in place, without a copy."""
    dtype = same_dtype(op, x, w, kinds="fi")
    if len(x.shape) != 2 or len(w.shape) != 2:
        raise ValueError(f"{op}: x is {x.shape} and w is {w.shape}: both need two axes")
    turned = [check_bool(f"{op}: a transpose", t) for t in (transpose_x, transpose_w)]
    (m, k), (rows, n) = (a.shape[:: -1 if t else 1] for a, t in zip((x, w), turned))
    if k != rows:
        raise ValueError(f"{op}: x is {(m, k)} and w is {(rows, n)}: inner sizes {k} and {rows} differ")
    compiler = lowered(function, x)

    def lower():
        loop = compiler()
        return lambda out, x, w: loop(out, x.T if transpose_x else x, w.T if transpose_w else w)

    return make(op, (m, n), dtype, [x, w], lower)


kernel("matmul")(matmul_ikj)
PLANNERS["matmul"] = _plan_matmul

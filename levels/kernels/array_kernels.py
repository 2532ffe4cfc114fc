"""Kernels on whole arrays: gather picks rows by number; the matrix product."""

# Built from 02_kernels.ipynb: edit there, then run its last cell.

import math

from levels.support.shapes import check_product, check_rows, same_dtype, turned

from .registry import Plan, kernel, lowered


def plan_gather(op, function, x, rows):
    """Plan out[i, …] = x[rows[i], …]."""
    check_rows(op, x, rows)
    count = math.prod(rows.shape)
    width = math.prod(x.shape[1:])
    views = [(count, width), (x.shape[0], width), (count,)]
    shape = rows.shape + x.shape[1:]
    made = Plan(op, shape, x.dtype, [x, rows], lowered(function, x), views)
    made.nbytes = 2 * made.spec.nbytes + rows.spec.nbytes
    return made


@kernel("gather", planner=plan_gather)
def gather(out, x, rows):
    """out[i, j] = x[rows[i], j]. Raises IndexError for a row that x does not have."""
    for i in range(rows.size):
        row = rows[i]  # read once, so that what was checked is what is used
        if not 0 <= row < x.shape[0]:
            raise IndexError("gather: a row number is out of range")
        for j in range(x.shape[1]):
            out[i, j] = x[row, j]


def matmul_ikj(out, x, w):
    """Set out[i, j] to Σₖ x[i, k]·w[k, j]: start at 0.0, and add k = 0 first."""
    out[:] = 0.0
    for i in range(out.shape[0]):
        for k in range(x.shape[1]):
            for j in range(out.shape[1]):
                out[i, j] += x[i, k] * w[k, j]


def plan_matmul(op, function, x, w, transpose_x=False, transpose_w=False):
    """Plan out[m, n] = x[m, k] @ w[k, n]. A transposed input is read in place."""
    dtype = same_dtype(op, x, w, kinds="fi")
    x_shape = turned(op, x, transpose_x)
    w_shape = turned(op, w, transpose_w)
    check_product(op, x, w, x_shape, w_shape)

    def lower():
        loop = lowered(function, x)()

        def run(out, x, w):
            loop(out, x.T if transpose_x else x, w.T if transpose_w else w)

        return run

    return Plan(op, (x_shape[0], w_shape[1]), dtype, [x, w], lower)


kernel("matmul", planner=plan_matmul)(matmul_ikj)

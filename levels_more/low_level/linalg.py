"""Linear equations: LAPACK's answers, through NumPy, and the gradient that belongs to each."""

import collections

import numpy as np

from levels.low_level import as_tensor, constant, reduce_sum
from levels_more.low_level.custom_rules import told
from levels_more.low_level.ops import matmul, transpose
from levels_more.low_level.shape import expand_dims
from levels_more.low_level.statistics import diag


def solve(a, y):
    """x with a[n, n] @ x = y, for y[n] or y[n, m]. Raises numpy.linalg.LinAlgError for a singular matrix.

    The gradient dy solves aᵀ @ dy = dx, and that of a is -dy @ xᵀ (Giles, 2008).
    """
    a, y = as_tensor(a), as_tensor(y)
    x = constant(np.linalg.solve(a.numpy(), y.numpy()))

    def back(dx):
        dy = solve(transpose(a), dx)
        columns = [z if len(z.shape) == 2 else expand_dims(z, 1) for z in (dy, x)]
        return [-matmul(columns[0], transpose(columns[1])), dy]

    return told(x, (a, y), back)


def inverse(a):
    """x with a[n, n] @ x = 1. Raises numpy.linalg.LinAlgError for a singular matrix."""
    return solve(a, np.eye(len(a), dtype=a.dtype))


def det(a):
    """The determinant of a[n, n]; its gradient is det(a)·a⁻ᵀ, and so only of a regular matrix."""
    a = as_tensor(a)
    y = constant(np.asarray(np.linalg.det(a.numpy()), a.dtype))
    return told(y, (a,), lambda dy: [dy * y * transpose(inverse(a))])


def trace(a):
    """The sum of the diagonal of a[n, n]."""
    return reduce_sum(diag(a))


Solved = collections.namedtuple("Solved", "solution")
PLAIN = {  # functions of NumPy's matrices, through which no gradient passes
    "qr": np.linalg.qr,
    "eigh": np.linalg.eigh,
    "pinv": np.linalg.pinv,
    "cholesky": np.linalg.cholesky,
    "svdvals": lambda x: np.linalg.svd(x, compute_uv=False),
    "svd": lambda x, full_matrices=True: np.linalg.svd(x, full_matrices),
    "matrix_rank": lambda x: np.asarray(np.linalg.matrix_rank(x)),
    "lstsq": lambda x, y: Solved(np.linalg.lstsq(x, y, rcond=None)[0]),
}


def turned(x):
    """x[m, n] as u, s and v, with u @ diag(s) @ v.T: at most as many columns as x has rows, and columns."""
    u, s, v = np.linalg.svd(x, full_matrices=False)
    return u, s, v.T

"""The matrix product."""

# Built from 02_kernels.ipynb: edit there, then run its last cell.

from levels.hardware import flag

from .registry import PLANNERS, kernel, lowered, make, same_dtype


def _plan_matmul(op, function, x, w, transpose_x=False, transpose_w=False):
    """out[m, n] = x[m, k] @ w[k, n]; either may be given transposed, and is then read so, not copied."""
    dtype = same_dtype(op, x, w)
    if len(x.shape) != 2 or len(w.shape) != 2:
        raise ValueError(f"{op}: x is {x.shape} and w is {w.shape}: both need two axes")
    turned = [flag(f"{op}: a transpose", t) for t in (transpose_x, transpose_w)]
    (m, k), (rows, n) = (a.shape[:: -1 if t else 1] for a, t in zip((x, w), turned))
    if k != rows:
        raise ValueError(f"{op}: x is {(m, k)} and w is {(rows, n)}: inner sizes {k} and {rows} differ")
    compiler = lowered(function, x)

    def lower():
        loop = compiler()
        return lambda out, x, w: loop(out, x.T if transpose_x else x, w.T if transpose_w else w)

    return make(op, (m, n), dtype, [x, w], lower)


def matmul_ikj(out, x, w):
    """out[i, j] = Σₖ x[i, k]·w[k, j], starting at 0.0, k upwards."""
    out[:] = 0.0
    for i in range(out.shape[0]):
        for k in range(x.shape[1]):
            for j in range(out.shape[1]):
                out[i, j] += x[i, k] * w[k, j]


kernel("matmul")(matmul_ikj)
PLANNERS["matmul"] = _plan_matmul

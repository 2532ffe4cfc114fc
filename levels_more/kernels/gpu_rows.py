"""What a GPU does with rows by number. A real one cannot raise an error from a kernel: numbers are looked at before."""

import functools

from levels.kernels.registry import PLANNERS, kernel
from levels_more.hardware.gpu.memory import cuda
from levels_more.kernels import gpu  # noqa: F401 (it adds the column of the GPU)
from levels_more.kernels.layout import plan_one_hot, plan_scatter_add


@kernel("gather", "gpu")
def gather_threads(out, x, rows):
    """out[i, j] = x[rows[i], j]"""
    n = cuda.grid(1)
    if n < out.size:
        i, j = n // out.shape[1], n % out.shape[1]
        out[i, j] = x[rows[i], j]


@kernel("scatter_add", "gpu")
def scatter_threads(out, x, rows):
    """out[rows[i], j] = Σ x[i, j] in the order of i: each thread owns a column."""
    j = cuda.grid(1)
    if j < out.shape[1]:
        for i in range(out.shape[0]):
            out[i, j] = 0
        for i in range(rows.size):
            out[rows[i], j] += x[i, j]


def rows_checked(planner, count):
    """The planner of an op whose last input, int64, holds numbers below count(spec of the result, first input).

    Its plans raise IndexError, before the launch, for a number that is not.
    """

    @functools.wraps(planner)
    def plan_checked(op, function, *inputs, **attrs):
        made = planner(op, function, *inputs, **attrs)
        place, lower, end = inputs[0].device, made.lower, count(made.spec, inputs[0])

        def lower_checked():
            run = lower()

            def checked(*arrays):
                rows = place.read(arrays[-1])
                if rows.size and not 0 <= rows.min() <= rows.max() < end:
                    there = f"a number from {rows.min()} to {rows.max()} is out of range; there are {end}"
                    raise IndexError(f"{op}: {there}")
                run(*arrays)

            return checked

        made.lower = lower_checked
        return made

    return plan_checked


PLANNERS["gather", "gpu"] = rows_checked(PLANNERS["gather"], lambda spec, x: x.shape[0])
PLANNERS["scatter_add", "gpu"] = rows_checked(plan_scatter_add, lambda spec, x: spec.shape[0])
PLANNERS["one_hot", "gpu"] = rows_checked(plan_one_hot, lambda spec, x: spec.shape[-1])

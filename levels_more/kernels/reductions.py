"""More reductions: means, the largest and smallest numbers, their indices, and softmax, which also reduces rows."""

import math

import numpy as np

from levels.hardware import exp, log
from levels.kernels import (
    PLAN_FINISHERS,
    PLANNERS,
    REDUCTIONS,
    Plan,
    kernel,
    lowered,
    plan,
    plan_elementwise,
    reduced,
)
from levels.support.shapes import same_dtype, start_in
from levels_more.hardware.elementary import maximum, minimum
from levels_more.kernels import elementwise  # noqa: F401 (what stands for `maximum` in kernels)
from levels_more.kernels.verify import TEST_CASES


def reduce_by_fours(combine, start):
    """Return the loop out[i] = combine(… start, x[i, 0] …, x[i, last]): four rows at a time, in independent sums."""

    def loop(out, x):
        rows = x.shape[0]
        whole = x.shape[0] // 4 * 4
        for i in range(0, whole, 4):
            a = b = c = d = start
            for k in range(x.shape[1]):
                a = combine(a, x[i, k])
                b = combine(b, x[i + 1, k])
                c = combine(c, x[i + 2, k])
                d = combine(d, x[i + 3, k])
            out[i] = a
            out[i + 1] = b
            out[i + 2] = c
            out[i + 3] = d
        for i in range(whole, rows):
            total = start
            for k in range(x.shape[1]):
                total = combine(total, x[i, k])
            out[i] = total

    return loop


def reduce_columns(combine, start):
    """Return the loop out[i, j] = combine(… start, x[i, 0, j] …, x[i, last, j]), with j innermost, along memory."""

    def loop(out, x):
        out[:] = start
        for i in range(out.shape[0]):
            for k in range(x.shape[1]):
                for j in range(out.shape[1]):
                    out[i, j] = combine(out[i, j], x[i, k, j])

    return loop


LOOPS = {"cpu": (reduce_by_fours, reduce_columns)}  # kind of device -> makers of its loops: along rows, down columns


def two_loops(plan, op, function, specs, attrs):
    """Finish the plan of a reduction: along rows and down columns it has a loop of its own, with the same bits.

    (In float32, a sum of 1,024 numbers or more along rows may be split, as in the core, and one down columns is not.)
    """
    if op not in REDUCTIONS or plan.spec.device.kind not in LOOPS:
        return plan
    (x,) = specs
    _, (before, within, after) = reduced(op, x.shape, attrs.get("axis"))
    along_rows, down_columns = LOOPS[x.device.kind]
    start = start_in(x.dtype, REDUCTIONS[op])
    rows = after == 1
    fast = ("reassoc",) if rows and within >= 1024 and x.dtype == np.float32 else ()

    def lower():
        combine = lowered(function, x, fast)()
        return lowered((along_rows if rows else down_columns)(combine, start), x, fast)()

    views = [(before,), (before, within)] if rows else [(before, after), (before, within, after)]
    return Plan(op, plan.spec.shape, plan.spec.dtype, [x], lower, views)


PLAN_FINISHERS.append(two_loops)


def plan_mean(op, function, x, axis=None, keepdims=False):
    """Plan a mean in one launch: the sum over these axes, divided by the number of its terms. Floats only."""
    dtype = same_dtype(op, x)
    total = plan("reduce_sum", [x], {"axis": axis, "keepdims": keepdims})
    count = math.prod(x.shape) / max(1, math.prod(total.spec.shape))
    divide = plan_elementwise("divide", function, total.spec, count=count)

    def lower():
        add_up = total.lower()
        share = divide.lower()

        def run(out, x):
            add_up(out, x)
            share(out, out, count)

        return run

    return Plan(op, total.spec.shape, dtype, [x], lower)


kernel("reduce_mean", planner=plan_mean)(lambda total, count: total / count)


def reduction(op, start, planner=PLANNERS["reduce_sum"]):
    """Decorate a function of two numbers: register it as the reduction `op`, whose loops start at `start`."""
    REDUCTIONS[op] = start
    return kernel(op, planner=planner)


def plan_extreme(op, function, x, axis=None, keepdims=False):
    """Plan a reduction of an array, like a sum. Raises ValueError if there are no numbers along the axis."""
    if reduced(op, x.shape, axis)[1][1] == 0:
        raise ValueError(f"{op}: shape {x.shape} has no number along axis {axis}, so none is the largest or smallest")
    return PLANNERS["reduce_sum"](op, function, x, axis, keepdims)


reduction("reduce_max", -math.inf, plan_extreme)(lambda largest, x: maximum(largest, x))
reduction("reduce_min", math.inf, plan_extreme)(lambda smallest, x: minimum(smallest, x))


def plan_arg_max(op, function, x, axis=None):
    """Plan the index of the first largest (or smallest) number along one axis, or in the flattened x (axis=None).

    Raises ValueError if there are no numbers along the axis.
    """
    axes, (before, within, after) = reduced(op, x.shape, axis)
    if within == 0:
        raise ValueError(f"{op}: shape {x.shape} has no number along axis {axis}, so none is the largest or smallest")
    same_dtype(op, x, kinds="fi")
    loop = lowered(function, x)
    shape = tuple(size for a, size in enumerate(x.shape) if a not in axes)
    return Plan(op, shape, np.int64, [x], loop, [(before, after), (before, within, after)])


@kernel("arg_max", planner=plan_arg_max)
def arg_max(out, x):
    """Set out[i, j] to the first k with the largest x[i, k, j]. NaN counts as larger than any number."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            best = 0
            for k in range(1, x.shape[1]):
                top = x[i, best, j]
                x_k = x[i, k, j]
                if not x_k <= top and top == top:
                    best = k
            out[i, j] = best


@kernel("arg_min", planner=plan_arg_max)
def arg_min(out, x):
    """Set out[i, j] to the first k with the smallest x[i, k, j]. NaN counts as smaller than any number."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            best = 0
            for k in range(1, x.shape[1]):
                least = x[i, best, j]
                x_k = x[i, k, j]
                if not x_k >= least and least == least:
                    best = k
            out[i, j] = best


TEST_CASES["arg_max"] = TEST_CASES["arg_min"] = [
    ([np.arange(float(math.prod(shape))).reshape(shape) % 7], {"axis": axis})  # the largest number occurs several times
    for shape, axis in (((), None), ((3, 4, 5), 1), ((9, 70), -1), ((4, 3), None), ((0, 2), 1))
]


def plan_rows(op, function, *inputs):
    """Plan out[i, :] = a function of row i of each input. Rows lie along the last axis.

    Raises ValueError unless all inputs have the same shape, with at least one axis.
    """
    dtype = same_dtype(op, *inputs)
    shape = inputs[0].shape
    if not shape or {buffer.shape for buffer in inputs} != {shape}:
        raise ValueError(f"{op}: works on rows of one shape, got {' and '.join(str(b.shape) for b in inputs)}")
    loop = lowered(function, inputs[0], ("reassoc",) if dtype == np.float32 else ())
    view = math.prod(shape[:-1]) * (shape[-1] > 0), shape[-1]
    return Plan(op, shape, dtype, inputs, loop, [view] * (1 + len(inputs)))


def on_rows(op, inputs=1):
    """Decorate a kernel of out[rows, n], x[rows, n], …: register it as the op of that name."""
    TEST_CASES[op] = [([shape] * inputs, {}) for shape in ((3, 4, 5), (7, 40), (1,), (0, 2), (2, 0))]
    return kernel(op, planner=plan_rows)


@on_rows("softmax")
def softmax(out, x):
    """Compute out[i, k] = exp(x[i, k] - top) / Σ exp(x[i, …] - top), where top is the maximum of row i."""
    for i in range(x.shape[0]):
        top = x[i, 0]
        total = 0.0
        for k in range(x.shape[1]):
            top = maximum(top, x[i, k])
        for k in range(x.shape[1]):
            out[i, k] = exp(x[i, k] - top)
        for k in range(x.shape[1]):
            total += out[i, k]
        for k in range(x.shape[1]):
            out[i, k] /= total


@on_rows("softmax_grad", inputs=2)
def softmax_grad(out, dy, y):
    """Compute out[i, k] = y[i, k]·(dy[i, k] - Σ dy[i, …]·y[i, …]), where y is the softmax."""
    for i in range(y.shape[0]):
        total = 0.0
        for k in range(y.shape[1]):
            total += dy[i, k] * y[i, k]
        for k in range(y.shape[1]):
            out[i, k] = y[i, k] * (dy[i, k] - total)


@on_rows("log_softmax")
def log_softmax(out, x):
    """Compute out[i, k] = x[i, k] - top - log Σ exp(x[i, …] - top), where top is the maximum of row i."""
    for i in range(x.shape[0]):
        top = x[i, 0]
        total = 0.0
        for k in range(x.shape[1]):
            top = maximum(top, x[i, k])
        for k in range(x.shape[1]):
            out[i, k] = exp(x[i, k] - top)
        for k in range(x.shape[1]):
            total += out[i, k]
        total = log(total)
        for k in range(x.shape[1]):
            out[i, k] = x[i, k] - top - total


@on_rows("log_softmax_grad", inputs=2)
def log_softmax_grad(out, dy, y):
    """Compute out[i, k] = dy[i, k] - exp(y[i, k])·Σ dy[i, …], where y is the log-softmax."""
    for i in range(y.shape[0]):
        total = 0.0
        for k in range(y.shape[1]):
            total += dy[i, k]
        for k in range(y.shape[1]):
            out[i, k] = dy[i, k] - exp(y[i, k]) * total

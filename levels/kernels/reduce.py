"""Reductions: many numbers become one, along an axis."""

# Built from 02_kernels.ipynb: edit there, then run its last cell.

import math
import reprlib
import types

import numpy as np

from levels.hardware import exp, log, maximum, minimum

from .cache import STANDS
from .elementwise import TRIALS, compiled_loop, llvm_function, scalar
from .registry import COMPILERS, KERNELS, kernel, make, same_dtype

START = 0.0  # where a loop begins. Each op puts its own number in this place


def combine(total, x):
    """How one more number is taken in. Each op puts its own function in this place."""
    return total + x


def reduce_rows(out, x):
    """out[i] = combine(… combine(START, x[i, 0]) …, x[i, last]), four rows side by side."""
    rows, whole = x.shape[0], x.shape[0] // 4 * 4
    for i in range(0, whole, 4):
        a = b = c = d = START
        for k in range(x.shape[1]):
            a, b = combine(a, x[i, k]), combine(b, x[i + 1, k])
            c, d = combine(c, x[i + 2, k]), combine(d, x[i + 3, k])
        out[i], out[i + 1], out[i + 2], out[i + 3] = a, b, c, d
    for i in range(whole, rows):
        total = START
        for k in range(x.shape[1]):
            total = combine(total, x[i, k])
        out[i] = total


def reduce_columns(out, x):
    """out[i, j] = combine(… combine(START, x[i, 0, j]) …, x[i, last, j]), neighbours j side by side."""
    out[:] = START
    for i in range(out.shape[0]):
        for k in range(x.shape[1]):
            for j in range(out.shape[1]):
                out[i, j] = combine(out[i, j], x[i, k, j])


LONG = 1024  # numbers in a row, from which on a float32 sum is split
REDUCTIONS = {}  # op -> the number that its loops start at


LOOPS = {"cpu": (reduce_rows, reduce_columns)}  # kind of device -> its loops for such a reduction


def compiled_reduction(kind, function, dtype, start, loop, fast):
    """One of these loops, with this function and start in the places of `combine` and `START`, for that dtype."""
    inner = function if kind == "gpu" else COMPILERS[kind](function, dtype, fast)
    scope = loop.__globals__ | {"combine": inner, "START": dtype.type(start), "NUMBER": dtype.type}
    return COMPILERS[kind](types.FunctionType(loop.__code__, scope), dtype, fast)


def reduced(op, shape, axis):
    """(the axes to reduce, sorted; the sizes before, within and after them); all axes where `axis` is None."""
    axes = range(len(shape)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    if not all(isinstance(a, int) and -len(shape) <= a < len(shape) for a in axes):
        raise ValueError(f"{op}: axis {reprlib.repr(axis)} is not an axis of shape {shape}")
    axes = sorted(a % len(shape) for a in axes)
    first, last = (axes[0], axes[-1] + 1) if axes else (0, 0)
    if axes != list(range(first, last)):
        raise ValueError(f"{op}: the axes {axis} are not neighbours, each named once; reduce one after the other")
    return axes, [math.prod(sizes) for sizes in (shape[:first], shape[first:last], shape[last:])]


def plan_reduce(op, function, x, axis=None, keepdims=False):
    """Reduce over one axis, over a tuple of neighbours, or over all (axis=None)."""
    if not isinstance(keepdims, bool):
        raise TypeError(f"{op}: keepdims is {keepdims!r}; expected True or False")
    axes, (before, within, after) = reduced(op, x.shape, axis)
    start, dtype = REDUCTIONS[op], same_dtype(op, x, kinds="fi")
    if within == 0 and math.isinf(start):
        raise ValueError(f"{op}: shape {x.shape} has no number along axis {axis}, so none is the largest or smallest")
    if dtype.kind == "i":
        start = max(np.iinfo(dtype).min, min(start, np.iinfo(dtype).max))
    shape = tuple(1 if a in axes else size for a, size in enumerate(x.shape) if keepdims or a not in axes)
    by_rows, by_columns = LOOPS[x.device.kind]
    views, loop = [(before, after), (before, within, after)], by_columns
    if after == 1:
        views, loop = [(before,), (before, within)], by_rows
    fast = ("reassoc",) if after == 1 and within >= LONG and dtype == np.float32 else ()
    return make(op, shape, dtype, [x], compiled_reduction(x.device.kind, function, dtype, start, loop, fast), views)


def reduction(op, start):
    """Decorate a function of two numbers: it becomes the op of that name, which starts at `start`."""

    def enter(function):
        REDUCTIONS[op] = start
        TRIALS[op] = [
            ([shape], {"axis": axis, "keepdims": keepdims})
            for shape, axis in (((3, 4, 5), (0, 1)), ((3, 4, 5), 1), ((9, 70), -1), ((1, 1), None), ((0, 2, 3), 1))
            for keepdims in (False, True)
        ]
        return kernel(op, planner=plan_reduce)(function)

    return enter


@reduction("reduce_sum", 0.0)
def reduce_sum(total, x):
    return total + x


larger, smaller = llvm_function("maximum"), llvm_function("minimum")
scalar("maximum", takes="fi")(lambda x, y: maximum(x, y))
scalar("minimum", takes="fi")(lambda x, y: minimum(x, y))
reduction("reduce_max", -math.inf)(lambda largest, x: maximum(largest, x))
reduction("reduce_min", math.inf)(lambda smallest, x: minimum(smallest, x))
STANDS[maximum] = lambda dtype: larger if dtype.kind == "f" else lambda x, y: x if x > y else y
STANDS[minimum] = lambda dtype: smaller if dtype.kind == "f" else lambda x, y: x if x < y else y


def plan_mean(op, function, x, axis=None, keepdims=False):
    """The sum over these axes, divided by how many numbers it is made of."""
    total = plan_reduce("reduce_sum", KERNELS["reduce_sum", x.device.kind], x, axis, keepdims)
    loop = compiled_loop(x.device.kind, function, same_dtype(op, x), ((True,),), ("count",))
    divide = make(op, total.spec.shape, x.dtype, [total.spec], loop, numbers=["count"]).run
    count = math.prod(x.shape) / max(1, math.prod(total.spec.shape))

    def run(out, x):
        total.run(out, x)
        divide(out, out, count)

    return make(op, total.spec.shape, x.dtype, [x], run, [total.spec.shape, x.shape])


kernel("reduce_mean", planner=plan_mean)(lambda total, count: total / count)
TRIALS["reduce_mean"] = TRIALS["reduce_sum"]


def plan_arg_max(op, function, x, axis=None):
    """The place of the first largest number along one axis, or in x as one long row (axis=None)."""
    axes, (before, within, after) = reduced(op, x.shape, axis)
    if within == 0:
        raise ValueError(f"{op}: shape {x.shape} has no number along axis {axis}, so none is the largest")
    loop = COMPILERS[x.device.kind](function, same_dtype(op, x, kinds="fi"))
    shape = tuple(size for a, size in enumerate(x.shape) if a not in axes)
    return make(op, shape, np.int64, [x], loop, [(before, after), (before, within, after)])


@kernel("arg_max", planner=plan_arg_max)
def arg_max(out, x):
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            best = 0
            for k in range(1, x.shape[1]):
                top, x_k = x[i, best, j], x[i, k, j]
                if not x_k <= top and top == top:
                    best = k
            out[i, j] = best


TRIALS["arg_max"] = [
    ([np.arange(float(math.prod(shape))).reshape(shape) % 7], {"axis": axis})  # the largest stands at several places
    for shape, axis in (((), None), ((3, 4, 5), 1), ((9, 70), -1), ((4, 3), None), ((0, 2), 1))
]


def plan_rows(op, function, *inputs):
    """out[i, :] = function of the rows i of the inputs, all of one shape; a row is the last axis."""
    dtype, shape = same_dtype(op, *inputs), inputs[0].shape
    if not shape or {buffer.shape for buffer in inputs} != {shape}:
        raise ValueError(f"{op}: works on rows of one shape, got {' and '.join(str(b.shape) for b in inputs)}")
    loop = COMPILERS[inputs[0].device.kind](function, dtype, ("reassoc",) if dtype == np.float32 else ())
    view = math.prod(shape[:-1]) * (shape[-1] > 0), shape[-1]
    return make(op, shape, dtype, inputs, loop, [view] * (1 + len(inputs)))


def on_rows(op, inputs=1):
    """Decorate a kernel out[rows, n], x[rows, n], …: it becomes the op of that name."""
    TRIALS[op] = [([shape] * inputs, {}) for shape in ((3, 4, 5), (7, 40), (1,), (0, 2), (2, 0))]
    return kernel(op, planner=plan_rows)


@on_rows("softmax")
def softmax(out, x):
    for i in range(x.shape[0]):
        top, total = x[i, 0], 0.0
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
    for i in range(y.shape[0]):
        total = 0.0
        for k in range(y.shape[1]):
            total += dy[i, k] * y[i, k]
        for k in range(y.shape[1]):
            out[i, k] = y[i, k] * (dy[i, k] - total)


@on_rows("log_softmax")
def log_softmax(out, x):
    for i in range(x.shape[0]):
        top, total = x[i, 0], 0.0
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
    for i in range(y.shape[0]):
        total = 0.0
        for k in range(y.shape[1]):
            total += dy[i, k]
        for k in range(y.shape[1]):
            out[i, k] = dy[i, k] - exp(y[i, k]) * total

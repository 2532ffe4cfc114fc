"""Elementwise ops: one scalar function each, and the loop that Python writes around it."""

# Built from notebooks/02_kernels.ipynb: edit there, then run its last cell.

import inspect
import math
import types
from itertools import groupby

import numpy as np
from numba import types as numba_types
from numba.extending import overload

from levels.hardware import EXP, LOG, exp, exponent, floor, log, pow2, rint, select

from .cache import OVERLOADS
from .registry import COMPILERS, TRIALS, UPDATES, kernel, make, same_dtype


def broadcast(op, shapes):
    """The common shape: sizes are aligned at the right, and a size of 1 is repeated (NumPy's rule)."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise ValueError(f"{op}: shapes {' and '.join(map(str, shapes))} do not broadcast") from None


def merged_axes(shape, shapes):
    """[(size, (does input 0 have this axis, …)), …]: neighbours that all inputs treat alike become one axis."""
    padded = [(1,) * (len(shape) - len(s)) + tuple(s) for s in shapes]
    axes = [(size, tuple(p[i] == size for p in padded)) for i, size in enumerate(shape) if size != 1]
    merged = [(math.prod(size for size, _ in group), owners) for owners, group in groupby(axes, lambda axis: axis[1])]
    return merged or [(1, (True,) * len(shapes))]


def loop_source(name, owners, numbers=()):
    """The text of a nest of loops that calls the scalar function `name` once for each element."""
    letters = "ijklmn"[: len(owners)]
    arrays = [f"x{k}" for k in range(len(owners[0]))]
    places = [", ".join(c for c, has in zip(letters, owners) if has[k]) or "0" for k in range(len(arrays))]
    call = ", ".join([*(f"{a}[{p}]" for a, p in zip(arrays, places)), *(f"{n}={n}" for n in numbers)])
    lines = [f"def loop({', '.join(['out', *arrays, *numbers])}):"]
    flat = [a for a, p in zip(["out", *arrays], [letters, *places]) if len(p) == 1]  # seen as one long row
    lines += [f"    {a} = {a}.ravel()" for a in flat]
    for depth, letter in enumerate(letters):
        lines.append(" " * 4 * (depth + 1) + f"for {letter} in range(out.shape[{depth}]):")
    lines.append(" " * 4 * (len(letters) + 1) + f"out[{', '.join(letters)}] = {name}({call})")
    return "\n".join(lines)


def typed(function, dtype):
    """The function with every float constant in it, and in what it closes over, turned into that dtype."""

    def cast(value):
        if isinstance(value, tuple):
            return tuple(map(cast, value))
        return dtype.type(value) if isinstance(value, float) else value

    cells = tuple(types.CellType(cast(cell.cell_contents)) for cell in function.__closure__ or ())
    code = function.__code__.replace(co_consts=tuple(map(cast, function.__code__.co_consts)))
    return types.FunctionType(code, function.__globals__, function.__name__, function.__defaults__, cells)


LOOPS = {}  # (scalar function, dtype, owners of the axes) -> compiled loop


def compiled_loop(function, dtype, owners, numbers):
    """The loop around a scalar function, for arrays of that dtype, compiled."""
    if (function, dtype, owners) not in LOOPS:
        scope = {"__name__": "__main__", "scalar": COMPILERS["cpu"](typed(function.py_func, dtype))}
        exec(loop_source("scalar", owners, numbers), scope)
        LOOPS[function, dtype, owners] = COMPILERS["cpu"](scope["loop"])
    return LOOPS[function, dtype, owners]


def plan_elementwise(op, function, *inputs, shape=(), **numbers):
    """out[…] = function(x[…], y[…], …), broadcast to the common shape (or to a larger `shape`)."""
    dtype, shapes = same_dtype(op, *inputs), [buffer.shape for buffer in inputs]
    takes = list(inspect.signature(function.py_func).parameters)
    if len(takes) != len(inputs) + len(numbers) or not set(numbers) <= set(takes):
        raise TypeError(f"{op}: takes {', '.join(takes)}; got {len(inputs)} arrays and the numbers {list(numbers)}")
    shape, numbers = broadcast(op, [shape, *shapes]), takes[len(inputs) :]
    sizes, owners = zip(*merged_axes(shape, shapes))
    loop = compiled_loop(function, dtype, owners, numbers)
    if len(sizes) <= 2 and all(len(s) <= 2 for s in (shape, *shapes)) and not numbers:
        return make(shape, dtype, inputs, loop)
    views = [tuple(s for s, has in zip(sizes, owners) if has[k]) or (1,) for k in range(len(inputs))]

    def run(out, *arrays):
        given = [dtype.type(n) for n in arrays[len(views) :]]
        loop(out.reshape(sizes), *(array.reshape(view) for array, view in zip(arrays, views)), *given)

    return make(shape, dtype, inputs, run, numbers)


SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1e-30, -1e30, math.inf, -math.inf, math.nan)


def scalar(op, updates=False, **numbers):
    """Decorate a scalar function: it becomes the op of that name on arrays. With `updates` its first input is the result.

    `numbers` are the attributes that a new kernel is tried with, such as rate=0.1.
    """

    def enter(function):
        def trials(draw, dtype):
            arrays = range(len(inspect.signature(function).parameters) - len(numbers))
            numbers_tried = np.tile(np.concatenate([SPECIAL, draw.normal(size=20)]), 20).astype(dtype)
            return [([draw.permutation(numbers_tried) for _ in arrays], numbers)]

        TRIALS[op] = trials
        if updates:
            UPDATES.add(op)
        return kernel(op, planner=plan_elementwise)(function)

    return enter


@scalar("add")
def add(x, y):
    return x + y


@scalar("subtract")
def subtract(x, y):
    return x - y


@scalar("multiply")
def multiply(x, y):
    return x * y


@scalar("divide")
def divide(x, y):
    return x / y


@scalar("negative")
def negative(x):
    return -x


@scalar("broadcast_to")
def identity(x):
    return x


@scalar("sgd", updates=True, rate=0.1)
def sgd(w, dw, rate):
    return w - rate * dw


def dtype_of(x):
    return np.dtype("f4") if x == numba_types.float32 else np.dtype("f8")


def stands_for(function):
    """Decorate what numba shall compile where a kernel calls this function."""

    def register(implementation):
        OVERLOADS[function] = implementation
        return overload(function)(implementation)

    return register


def overload_elementary(function, sources):
    """Inside kernels `function` is the source of its argument's dtype, compiled."""

    @stands_for(function)
    def _(x):
        compiled = COMPILERS["cpu"](typed(sources[dtype_of(x)], dtype_of(x)))
        return lambda x: compiled(x)


overload_elementary(exp, EXP)
overload_elementary(log, LOG)
stands_for(rint)(lambda x: lambda x: np.rint(x))
stands_for(floor)(lambda x: lambda x: np.floor(x))
stands_for(select)(lambda condition, x, y: lambda condition, x, y: x if condition else y)


@stands_for(pow2)
def pow2_overload(n):
    if dtype_of(n) == np.float32:
        return lambda n: np.int32((np.int32(n) + 127) << 23).view(np.float32)
    return lambda n: np.int64((np.int64(n) + 1023) << 52).view(np.float64)


@stands_for(exponent)
def exponent_overload(x):
    if dtype_of(x) == np.float32:
        return lambda x: np.float32((np.float32(x).view(np.int32) - 0x3F3504F3) >> 23)
    return lambda x: np.float64((np.float64(x).view(np.int64) - 0x3FE6A09E667F3BCD) >> 52)


scalar("exp")(lambda x: exp(x))
scalar("log")(lambda x: log(x))


@scalar("relu")
def relu(x):
    return x if x > 0.0 else 0.0


@scalar("relu_grad")
def relu_grad(dy, y):
    return dy if y > 0.0 else 0.0


@scalar("sigmoid")
def sigmoid(x):
    return 1.0 / (1.0 + exp(0.0 - x))


@scalar("sigmoid_grad")
def sigmoid_grad(dy, y):
    return dy * y * (1.0 - y)


@scalar("clip", low=-0.5, high=0.5)
def clip(x, low, high):
    return low if x < low else high if x > high else x


@scalar("clip_grad", low=-0.5, high=0.5)
def clip_grad(dy, x, low, high):
    return dy if low < x < high else 0.0

"""Elementwise ops: one scalar function each, and the loop that Python writes around it."""

# Built from notebooks/02_kernels.ipynb: edit there, then run its last cell.

import math
from itertools import groupby

import numpy as np

from .registry import COMPILERS, UPDATES, kernel, make, same_dtype


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
    call = ", ".join([*(f"{a}[{p}]" for a, p in zip(arrays, places)), *numbers])
    lines = [f"def loop({', '.join(['out', *arrays, *numbers])}):"]
    flat = [a for a, p in zip(["out", *arrays], [letters, *places]) if len(p) == 1]  # seen as one long row
    lines += [f"    {a} = {a}.ravel()" for a in flat]
    for depth, letter in enumerate(letters):
        lines.append(" " * 4 * (depth + 1) + f"for {letter} in range(out.shape[{depth}]):")
    lines.append(" " * 4 * (len(letters) + 1) + f"out[{', '.join(letters)}] = {name}({call})")
    return "\n".join(lines)


LOOPS = {}  # (scalar function, owners of the axes) -> compiled loop


def plan_elementwise(op, function, *inputs, shape=(), **numbers):
    """out[…] = function(x[…], y[…], …), broadcast to the common shape (or to a larger `shape`)."""
    dtype, shapes = same_dtype(op, *inputs), [buffer.shape for buffer in inputs]
    shape = broadcast(op, [shape, *shapes])
    sizes, owners = zip(*merged_axes(shape, shapes))
    if (function, owners) not in LOOPS:
        scope = {"scalar": function}
        exec(loop_source("scalar", owners, numbers), scope)
        LOOPS[function, owners] = COMPILERS["cpu"](scope["loop"])
    loop = LOOPS[function, owners]
    if len(sizes) <= 2 and all(len(s) <= 2 for s in (shape, *shapes)) and not numbers:
        return make(shape, dtype, inputs, loop)
    views = [tuple(s for s, has in zip(sizes, owners) if has[k]) or (1,) for k in range(len(inputs))]

    def run(out, *arrays):
        numbers = [dtype.type(n) for n in arrays[len(views) :]]
        loop(out.reshape(sizes), *(array.reshape(view) for array, view in zip(arrays, views)), *numbers)

    return make(shape, dtype, inputs, run)


def scalar(op, updates=False):
    """Decorate a scalar function: it becomes the op of that name on arrays. With `updates` its first input is the result."""
    if updates:
        UPDATES.add(op)
    return kernel(op, planner=plan_elementwise)


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


@scalar("sgd", updates=True)
def sgd(w, dw, rate):
    return w - rate * dw

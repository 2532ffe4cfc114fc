"""Elementwise ops: a scalar function for each, and the loop written around it."""

# Built from 02_kernels.ipynb: edit there, then run its last cell.

import math

from levels.support.elementary import exp, log, select, sqrt
from levels.support.shapes import broadcast, number_names, same_dtype

from .registry import BACKENDS, NUMBERS, UPDATES, Plan, kernel, lowered


def places_of(shape, shapes):
    """Return the places in the result and the inputs. `i`: an array seen as one row."""
    if all(own == shape or math.prod(own) == 1 for own in shapes):
        return ["i", *["i" if own == shape else "0" for own in shapes]]
    letters = [*"ijkl", *[f"i{n}" for n in range(4, len(shape))]]  # one for each axis
    places = []
    for own in (shape, *shapes):
        left = len(shape) - len(own)  # axes that it lacks: aligned at the right
        axes = zip(letters[left:], own, shape[left:])
        place = [i if size == whole else "0" for i, size, whole in axes]
        places.append(", ".join(place) or "0")
    return places


def nest(places, line):
    """Return `line` inside its loops. `places`: array -> where it is used."""
    flat = [array for array, place in places.items() if "," not in place]
    lines = [f"{array} = {array}.flat" for array in flat]
    indent = ""
    for depth, i in enumerate(places["out"].split(", ")):
        lines.append(f"{indent}for {i} in range(len(out{'[0]' * depth})):")
        indent += "    "
    return [*lines, indent + line]


BACKENDS["cpu"].nest = nest


def loop_source(name, places, numbers=(), around=nest):
    """Return the source of a loop that calls a scalar function for each number."""
    arrays = ["out", *[f"x{k}" for k in range(len(places) - 1)]]
    out, *inputs = [f"{array}[{place}]" for array, place in zip(arrays, places)]
    call = ", ".join([*inputs, *[f"number({n})" for n in numbers]])
    lines = around(dict(zip(arrays, places)), f"{out} = {name}({call})")
    return "\n    ".join([f"def loop({', '.join([*arrays, *numbers])}):", *lines])


def element_loop(function, x, places, numbers=()):
    """Return the Python loop around a scalar function, for arrays like `x`."""
    backend = BACKENDS[x.device.kind]
    names = {"function": function, "number": x.dtype.type}
    names["__name__"] = "__main__"  # numba asks in which module the loop stands
    names.update(backend.names)
    exec(loop_source("function", places, numbers, backend.nest), names)
    return names["loop"]


def plan_loop(op, function, inputs, shape, dtype, numbers=()):
    """Plan the loop of a scalar function, whose inputs are broadcast to `shape`."""
    like = inputs[-1]  # in other packages, the first may be a condition
    shapes = [x.shape for x in inputs]
    places = places_of(shape, shapes)
    views = BACKENDS[like.device.kind].views([shape, *shapes], places)
    lower = lowered(element_loop(function, like, places, numbers), like)
    return Plan(op, shape, dtype, inputs, lower, views, numbers)


ELEMENTWISE = {}  # op -> the kinds of dtypes that it takes: f float, i integer


def plan_elementwise(op, function, *inputs, shape=None, **attrs):
    """Plan a loop that calls a scalar function for each number of its inputs.

    The inputs are broadcast to `shape`, or (None) to the shape common to all.
    """
    numbers = number_names(op, function, inputs, attrs)
    dtype = same_dtype(op, *inputs, kinds=ELEMENTWISE[op])
    common = broadcast(op, inputs, shape, op in UPDATES)
    return plan_loop(op, function, inputs, common, dtype, numbers)


def scalar(op, updates=False, takes="f", **numbers):
    """Decorate a scalar function: it becomes the op `op`.

    `takes`: kinds of dtypes, f float and i integer. With `updates`, the result
    overwrites the first input. `numbers` are attributes: name -> example, no default.
    """

    def enter(function):
        kernel(op, planner=plan_elementwise)(function)
        ELEMENTWISE[op] = takes
        if numbers:
            NUMBERS[op] = numbers
        if updates:
            UPDATES.add(op)
        return function

    return enter


scalar("add", takes="fi")(lambda x, y: x + y)
scalar("subtract", takes="fi")(lambda x, y: x - y)
scalar("multiply", takes="fi")(lambda x, y: x * y)
scalar("divide")(lambda x, y: x / y)
scalar("negative", takes="fi")(lambda x: -x)


@scalar("sgd", updates=True, rate=0.1)
def _sgd(w, dw, rate):  # the update of gradient descent: the result overwrites w
    return w - rate * dw


def relu_grad(dy, y):
    """For two numbers: `dy`, the slope at relu's output y, or 0.0 where y is 0."""
    return select(y <= 0.0, 0.0, dy)


scalar("relu")(lambda x: select(x <= 0.0, 0.0, x))
scalar("relu_grad")(relu_grad)
scalar("sigmoid")(lambda x: 1.0 / (1.0 + exp(0.0 - x)))
scalar("sigmoid_grad")(lambda dy, y: dy * y * (1.0 - y))
scalar("exp")(lambda x: exp(x))
scalar("log")(lambda x: log(x))
scalar("sqrt")(lambda x: sqrt(x))


@scalar("clip", low=-0.5, high=0.5)
def _clip(x, low, high):  # low where x < low, high where x > high, else x
    return select(x < low, low, select(x > high, high, x))


@scalar("clip_grad", low=-0.5, high=0.5)
def _clip_grad(dy, x, low, high):  # dy where low < x < high, else 0
    return select(low < x, select(x < high, dy, 0.0), 0.0)

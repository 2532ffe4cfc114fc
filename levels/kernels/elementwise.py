"""Elementwise ops: a scalar function for each, and the loop that is generated around it."""

# Built from 02_kernels.ipynb: edit there, then run its last cell.

import inspect
import math
import reprlib

import numpy as np

from levels.hardware import EXP, LOG, exp, exponent, log, rint, scaled, select, sqrt
from levels.support.compiled import SUBSTITUTIONS

from .registry import _NUMBERS, BACKENDS, UPDATES, kernel, lowered, make, same_dtype


def places_of(shape, shapes):
    """Return the places in the result and in each input, as texts. A single letter indexes an array seen as one row."""
    letters = [*"ijkl", *(f"i{n}" for n in range(4, len(shape)))]  # one for each axis
    if all(own == shape or math.prod(own) == 1 for own in shapes):
        return ["i", *("i" if own == shape else "0" for own in shapes)]
    places = []
    for own in (shape, *shapes):
        left = len(shape) - len(own)  # axes that this array lacks: shapes are aligned at the right
        axes = zip(letters[left:], own, shape[left:])
        places.append(", ".join(letter if size == whole else "0" for letter, size, whole in axes) or "0")
    return places


def nest(places, line):
    """Return `line` inside its loops, as lines. `places` says where the arrays `out`, `x0`, … are read or written."""
    rows = [f"{array} = {array}.flat" for array, place in places.items() if "," not in place]
    loops = [f"for {i} in range(len(out{'[0]' * depth})):" for depth, i in enumerate(places["out"].split(", "))]
    return rows + ["    " * depth + text for depth, text in enumerate([*loops, line])]


BACKENDS["cpu"].nest = nest


def loop_source(name, places, numbers=(), around=nest):
    """Return the source of a loop that calls the scalar function `name` for each number of the result."""
    places = dict(zip(["out", *(f"x{k}" for k in range(len(places) - 1))], places))
    out, *inputs = (f"{array}[{place}]" for array, place in places.items())
    call = ", ".join([*inputs, *(f"number({n})" for n in numbers)])
    lines = around(places, f"{out} = {name}({call})")
    return "\n    ".join([f"def loop({', '.join([*places, *numbers])}):", *lines])


def element_loop(function, x, places, numbers=()):
    """Return the Python loop around a scalar function, for arrays like `x`. See `loop_source`."""
    backend = BACKENDS[x.device.kind]
    scope = {"__name__": "__main__", "scalar": function, "number": x.dtype.type, **backend.names}
    exec(loop_source("scalar", places, numbers, backend.nest), scope)
    return scope["loop"]


ELEMENTWISE = {}  # op -> (kinds of input dtypes, dtype of the result, number of masks, an example of each number)


def _plan_elementwise(op, function, *inputs, shape=None, **numbers):
    """Plan out[…] = function(x[…], y[…], …), broadcast to the common shape (or a larger `shape`)."""
    names, shapes = list(inspect.signature(function).parameters), [x.shape for x in inputs]
    rest = names[len(inputs) :]
    if len(names) != len(inputs) + len(numbers) or {*rest} != {*numbers} or (shape and numbers):
        raise TypeError(f"{op}: takes {', '.join(names)}; got {len(inputs)} arrays and the numbers {list(numbers)}")
    (takes, gives, masks, _), last = ELEMENTWISE[op], inputs[-1]
    dtype = same_dtype(op, *inputs[masks:], kinds=takes)
    for mask in inputs[:masks]:
        same_dtype(op, mask, kinds="b")
    try:
        common = np.broadcast_shapes(shape or (), *shapes)
    except (ValueError, RuntimeError):  # RuntimeError: more axes than NumPy has
        raise ValueError(f"{op}: shapes {' and '.join(map(reprlib.repr, shapes))} do not broadcast") from None
    if common != (shape or common) or op in UPDATES and shapes[0] != common:
        raise ValueError(f"{op}: shapes {' and '.join(map(str, shapes))} do not fit a result of {shape or shapes[0]}")
    places, views = places_of(common, shapes), None
    if not BACKENDS[last.device.kind].ravels:  # then an array seen as one row is reshaped to one
        views = [s if "," in place else (math.prod(s),) for s, place in zip([common, *shapes], places)]
    loop = lowered(element_loop(function, last, places, rest), last)
    return make(op, common, gives or dtype, inputs, loop, views, rest)


def scalar(op, updates=False, takes="f", gives=None, masks=0, **numbers):
    """Return a decorator that makes a scalar function the op `op`. `takes`: dtype kinds (f float, i integer, b bool).

    With `updates`, the result overwrites the first input. The result has the inputs' dtype, or `gives`. The first
    `masks` inputs are arrays of bools. `numbers` are the op's attributes, with an example of each.
    """

    def enter(function):
        kernel(op, planner=_plan_elementwise)(function)
        ELEMENTWISE[op] = takes, gives, masks, numbers
        UPDATES.update([op] if updates else [])
        _NUMBERS.update([op] if numbers else [])
        return function

    return enter


def _in_halves(x, n):  # x·2ⁿ in two steps, since 2ⁿ alone may be too small or too large
    return x * math.ldexp(1.0, int(n) // 2) * math.ldexp(1.0, int(n) - int(n) // 2)


SUBSTITUTIONS[exp] = EXP.get
SUBSTITUTIONS[log] = LOG.get
SUBSTITUTIONS[select] = lambda dtype: lambda condition, x, y: x if condition else y
SUBSTITUTIONS[rint] = lambda dtype: lambda x: np.rint(x)
SUBSTITUTIONS[sqrt] = lambda dtype: lambda x: math.sqrt(x)
SUBSTITUTIONS[scaled] = lambda dtype: _in_halves
# the n for which x lies between √½·2ⁿ and √2·2ⁿ
SUBSTITUTIONS[exponent] = lambda dtype: lambda x: dtype.type(math.frexp(x)[1] - (math.frexp(x)[0] < 0.7071067811865476))


scalar("add", takes="fi")(lambda x, y: x + y)
scalar("subtract", takes="fi")(lambda x, y: x - y)
scalar("multiply", takes="fi")(lambda x, y: x * y)
scalar("divide")(lambda x, y: x / y)
scalar("negative", takes="fi")(lambda x: -x)
scalar("broadcast_divide", count=3.0)(lambda dy, x, count: dy / count)  # each x gets its share of dy
scalar("broadcast_to", takes="fi")(lambda x: x)  # the loop around it does the work


@scalar("sgd", updates=True, rate=0.1)
def _sgd(w, dw, rate):  # the update of gradient descent: the result overwrites w
    return w - rate * dw


def relu_grad(dy, y):
    """The slope at relu's input, for two numbers: `dy`, the slope at relu's output `y`, or 0.0 where y is 0."""
    return select(y <= 0.0, 0.0, dy)


scalar("relu")(lambda x: select(x <= 0.0, 0.0, x))
scalar("relu_grad")(relu_grad)
scalar("sigmoid")(lambda x: 1.0 / (1.0 + exp(0.0 - x)))
scalar("sigmoid_grad")(lambda dy, y: dy * y * (1.0 - y))
scalar("exp")(lambda x: exp(x))
scalar("log")(lambda x: log(x))
scalar("sqrt")(lambda x: sqrt(x))
scalar("clip", low=-0.5, high=0.5)(lambda x, low, high: select(x < low, low, select(x > high, high, x)))


@scalar("clip_grad", low=-0.5, high=0.5)
def _clip_grad(dy, x, low, high):  # dy where x lies strictly between low and high, else 0
    return select(low < x, select(x < high, dy, 0.0), 0.0)

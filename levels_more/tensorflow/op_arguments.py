"""Functions by TensorFlow's rules, where those of level 3 do less or something else: of lists, of whole numbers, of steps."""

import functools
import itertools
import math
import operator
import time

import numpy as np

from levels import low_level as low
from levels.low_level import Operators
from levels_more.checks import axis_of, expect
from levels_more.low_level import einsum as letters
from levels_more.low_level import linalg
from levels_more.tensorflow.nested import known_now, numbers


def alike(x, y):
    """Two operands [any shapes] as tensors; Python's numbers, and lists of them, take the dtype of a tensor beside them."""
    like = next((numbers(z) for z in (x, y) if hasattr(z, "dtype")), None)
    if like is None:
        like = x = numbers(x)
    return [_listed(z, like) for z in (x, y)]


def _listed(z, like):
    if isinstance(z, (list, tuple)) and not any(hasattr(each, "dtype") for each in z):
        return numbers(z, like.dtype if like.dtype.kind == "f" else None)
    return numbers(z) if hasattr(z, "dtype") or isinstance(z, (list, tuple)) else low.as_tensor(z, like)


def binary(act):
    """A function of two operands, of which both may be lists or Python's numbers."""
    return lambda x, y: act(*alike(x, y))


def reducing(function):
    """A function of a tensor x [any shape] and an axis, which may be a list or a tensor of axes."""

    def run(x, axis=None, keepdims=False):
        x = numbers(x)
        if isinstance(axis, (list, tuple, Operators)):
            axis = tuple(int(a) for a in np.atleast_1d(np.asarray(axis)))
        if isinstance(axis, tuple):
            every = len({a % max(1, len(x.shape)) for a in axis}) == len(x.shape)
            axis = None if every and not keepdims else axis[0] if len(axis) == 1 else axis
        return function(x, axis, keepdims)

    return functools.wraps(function)(run)


def mean(x, axis=None, keepdims=False):
    """The mean of a tensor x along axes; of whole numbers it is one, cut off behind the point."""
    x = numbers(x)
    if x.dtype.kind != "i":
        return low.reduce_mean(x, axis, keepdims)
    total = low.reduce_sum(x, axis, keepdims)
    return numbers(np.trunc(total.numpy() * math.prod(total.shape) / math.prod(x.shape)).astype(np.int64))


def power(x, y):
    """x to the power of y, of each two numbers; of whole numbers it is one."""
    if x.dtype.kind != "i" or y.dtype.kind != "i":
        return x**y
    known_now("tf.pow of whole numbers")
    return numbers(np.power(x.numpy(), y.numpy()))


def mask(x, mask, axis=None):
    """The parts of a tensor x along an axis where the mask [rows], bools, is true; or its numbers, for a mask in its shape."""
    x, mask = numbers(x), numbers(mask)
    return low.take(x, np.flatnonzero(mask.numpy()), axis) if axis else low.boolean_mask(x, mask)


def matmul(x, b, transpose_a=False, transpose_b=False):
    """x[…, m, k] @ b[k, n], or matrix by matrix b[…, k, n]; of whole numbers exact below 2⁵³. `transpose_…`: the last two axes."""
    x, b = alike(x, b)
    if x.dtype.kind == "i" and b.dtype.kind == "i":
        return low.cast(matmul(low.cast(x, "float64"), low.cast(b, "float64"), transpose_a, transpose_b), "int64")
    if len(x.shape) == len(b.shape) == 2:
        return low.apply("matmul", x, b, transpose_x=transpose_a, transpose_w=transpose_b)
    x, b = (low.swapaxes(z, -1, -2) if turned else z for z, turned in ((x, transpose_a), (b, transpose_b)))
    return letters.matmul(x, b)


def moments(x, axes, shift=None, keepdims=False):
    """(mean, variance) of a tensor x along axes [a list]."""
    axes = tuple(axes) if len(axes) > 1 else axes[0]
    return low.reduce_mean(x, axes, keepdims), low.reduce_variance(x, axes, keepdims)


def one_way(pred, true_fn=None, false_fn=None):
    """true_fn() where a tensor of one bool is true, else false_fn(). Not in a traced function."""
    known_now("tf.cond")
    return true_fn() if pred else false_fn()


def while_loop(cond, body, loop_vars, **options):
    """body(*loop_vars) again and again, as long as cond(*loop_vars) is true: the last loop_vars, a list of tensors."""
    known_now("tf.while_loop")
    state = [numbers(x) for x in loop_vars]
    while cond(*state):
        given = body(*state)
        state = [numbers(x) for x in (given if isinstance(given, (list, tuple)) else [given])]
    return state


def spaced(start, stop, num):
    """`num` numbers at equal distances from start to stop, a tensor [num]; between Python's whole numbers float64."""
    bounds = [x.item() if isinstance(x, Operators) else x for x in (start, stop)]
    dtype = next((x.dtype for x in (start, stop) if hasattr(x, "dtype") and x.dtype.kind == "f"), None)
    whole = all(isinstance(x, (int, np.integer)) for x in bounds)
    return low.linspace(*map(float, bounds), int(num), dtype or ("float64" if whole else "float32"))


def counted(start, limit=None, delta=1, dtype=None):
    """Numbers from start up to limit, delta apart, a tensor [count]; of one argument those below it."""
    bounds = [x.item() if isinstance(x, Operators) else x for x in (start, limit, delta)]
    return low.range(*bounds, dtype)


def timestamp():
    """The seconds since 1970, a float64. Not in a traced function."""
    known_now("tf.timestamp")
    return numbers(np.float64(time.time()))


def where(condition, x=None, y=None):
    """x where the condition, a tensor of bools, is true, else y; without them the places [count, axes] where it is true."""
    if x is None:
        return numbers(np.argwhere(numbers(condition).numpy()))
    return low.where(numbers(condition), *alike(x, y))


def running(function, unit):
    """The sums, or the products, of a tensor x up to each number along an axis; `exclusive`: without it; `reverse`: from behind."""

    def run(x, axis=0, exclusive=False, reverse=False):
        x = numbers(x)
        axis = axis_of(function.__name__, int(axis), len(x.shape))
        x = low.flip(x, axis) if reverse else x
        if exclusive:
            x = low.concat([_slab(x, axis, 0, 1) * 0 + unit, _slab(x, axis, 0, -1)], axis)
        y = function(x, axis)
        return low.flip(y, axis) if reverse else y

    return run


def _slab(x, axis, start, end):
    return x[(slice(None),) * axis + (slice(start, end),)]


def cumprod(x, axis=0):
    """The products of all numbers of a tensor x up to each, along an axis."""
    rows = low.unstack(x, axis)
    for k in range(1, len(rows)):
        rows[k] = rows[k - 1] * rows[k]
    return low.stack(rows, axis)


def map_fn(fn, elems, **options):
    """fn(x) of each part x of a tensor [parts, …], side by side; or of a tuple of parts, for a tuple of tensors."""
    several = isinstance(elems, (list, tuple)) and any(hasattr(x, "shape") for x in elems)
    rows = zip(*map(low.unstack, elems), strict=True) if several else low.unstack(numbers(elems))
    found = [fn(x) for x in rows]
    if isinstance(found[0], (list, tuple)):
        return type(found[0])(low.stack([numbers(x) for x in column]) for column in zip(*found, strict=True))
    return low.stack([numbers(x) for x in found])


def folded(reverse=False, each=False):
    """fn(state, x) with each part x of a tensor [parts, …] in turn, from `initializer` on or from the first: the last state, or all."""

    def run(fn, elems, initializer=None, **options):
        parts = low.unstack(numbers(elems))[:: -1 if reverse else 1]
        states = [*itertools.accumulate(parts, fn, initial=None if initializer is None else numbers(initializer))]
        return low.stack(states[initializer is not None :]) if each else states[-1]

    return run


def tensordot(a, b, axes):
    """The sums of products of two tensors over so many of the last axes of a and the first of b, or over two lists of axes."""
    a, b = alike(a, b)
    pair = (range(len(a.shape) - axes, len(a.shape)), range(axes)) if isinstance(axes, int) else axes
    left, right = ([k % len(x.shape) for k in np.atleast_1d(k)] for k, x in zip(pair, (a, b), strict=True))
    rest = [[k for k in range(len(x.shape)) if k not in gone] for x, gone in ((a, left), (b, right))]
    inner = math.prod(a.shape[k] for k in left)
    x = low.reshape(low.transpose(a, [*rest[0], *left]), (-1, inner))
    y = low.reshape(low.transpose(b, [*right, *rest[1]]), (inner, -1))
    return low.reshape(matmul(x, y), [*(a.shape[k] for k in rest[0]), *(b.shape[k] for k in rest[1])])


def matvec(a, b):
    """a[…, m, n] times b[n]: […, m]"""
    return low.squeeze(matmul(a, low.expand_dims(numbers(b), -1)), -1)


def one_hot(x, depth, on_value=1.0, off_value=0.0, axis=-1, dtype=None):
    """`on_value` at each number of a tensor x of whole numbers, else `off_value`, along a new last axis; float32 unless said."""
    expect(axis in (-1, None), "one_hot: axis", axis, "-1, the last one")
    found = low.one_hot(x, int(depth), dtype or "float32")
    return found if (on_value, off_value) == (1.0, 0.0) else found * (on_value - off_value) + off_value


def sorted_by(function):
    """`sort` or `argsort` of a tensor x along an axis, in a direction, "ASCENDING" or "DESCENDING"."""

    def run(x, axis=-1, direction="ASCENDING", stable=False):
        fits = direction in ("ASCENDING", "DESCENDING")
        expect(fits, "direction", direction, "'ASCENDING' or 'DESCENDING'")
        return function(numbers(x), axis, direction == "DESCENDING")

    return run


RULES = {
    "boolean_mask": mask,
    "cond": one_way,
    "cumprod": running(cumprod, 1),
    "cumsum": running(low.cumsum, 0),
    "det": linalg.det,
    "einsum": letters.einsum,
    "foldl": folded(),
    "foldr": folded(reverse=True),
    "inv": linalg.inverse,
    "linspace": spaced,
    "logical_xor": binary(operator.ne),
    "map_fn": map_fn,
    "vectorized_map": map_fn,
    "matmul": matmul,
    "matvec": matvec,
    "one_hot": one_hot,
    "range": counted,
    "scan": folded(each=True),
    "solve": linalg.solve,
    "tensordot": tensordot,
    "timestamp": timestamp,
    "where": where,
    "while_loop": while_loop,
}
RULES |= {name: sorted_by(getattr(low, name)) for name in ("sort", "argsort")}
_REDUCED = "all any logsumexp max min prod std sum variance"
RULES |= {f"reduce_{name}": reducing(getattr(low, f"reduce_{name}")) for name in _REDUCED.split()}
RULES["reduce_mean"] = reducing(mean)
_OPERATORS = {"add": "add", "subtract": "sub", "multiply": "mul", "pow": "pow",
              "floordiv": "floordiv", "mod": "mod", "floormod": "mod", "less": "lt", "less_equal": "le", "greater": "gt",
              "greater_equal": "ge", "not_equal": "ne"}  # fmt: skip
RULES |= {name: binary(getattr(operator, act)) for name, act in _OPERATORS.items()}
RULES["pow"] = binary(power)
RULES |= {name: binary(getattr(low, name)) for name in ("equal", "maximum", "minimum")}

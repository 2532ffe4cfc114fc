"""Functions by TensorFlow's rules, where those of level 3 do less or something else: of lists, of whole numbers."""

import functools
import math
import operator
import time

import numpy as np

from levels.low_level import Operators
from levels_more import low_level as low
from levels_more.low_level.batched_matmul import matmul as product
from levels_more.tensorflow.nested import known_now, numbers


def alike(x, y):
    """Two operands [any shapes] as tensors; Python's numbers, and lists of them, take the dtype of the other one."""
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
    """A function of a tensor x [any shape] and an axis, which may be a list of axes."""

    def run(x, axis=None, keepdims=False):
        x = numbers(x)
        if isinstance(axis, (list, tuple)):
            every = len({a % max(1, len(x.shape)) for a in axis}) == len(x.shape)
            axis = None if every and not keepdims else axis[0] if len(axis) == 1 else tuple(axis)
        return function(x, axis, keepdims)

    return functools.wraps(function)(run)


def mean(x, axis=None, keepdims=False):
    """The mean of a tensor x along axes; of whole numbers it is one, cut off behind the point."""
    x = numbers(x)
    if x.dtype.kind != "i":
        return low.reduce_mean(x, axis, keepdims)
    total = low.reduce_sum(x, axis, keepdims)
    return numbers(np.trunc(total.numpy() * math.prod(total.shape) / math.prod(x.shape)).astype(np.int64))


def mask(x, mask, axis=None):
    """The parts of a tensor x along an axis where the mask [rows] is true; or its numbers, for a mask in its shape."""
    x, mask = numbers(x), numbers(mask)
    return low.take(x, np.flatnonzero(mask.numpy()), axis) if axis else low.boolean_mask(x, mask)


def matmul(x, b, transpose_a=False, transpose_b=False):
    """x[…, m, k] @ b[k, n], or matrix by matrix b[…, k, n]; of whole numbers exact below 2⁵³."""
    x, b = alike(x, b)
    if x.dtype.kind == "i" and b.dtype.kind == "i":
        return low.cast(matmul(low.cast(x, "float64"), low.cast(b, "float64"), transpose_a, transpose_b), "int64")
    if len(x.shape) == len(b.shape) == 2:
        return low.apply("matmul", x, b, transpose_x=transpose_a, transpose_w=transpose_b)
    x, b = (low.swapaxes(z, -1, -2) if turned else z for z, turned in ((x, transpose_a), (b, transpose_b)))
    return product(x, b)


def counted(start, limit=None, delta=1, dtype=None):
    """Numbers from start up to limit, delta apart, a tensor [count]; of one argument those below it."""
    bounds = [x.item() if isinstance(x, Operators) else x for x in (start, limit, delta)]
    return low.range(*bounds, dtype)


def timestamp():
    """The seconds since 1970, a float64. Not in a traced function."""
    known_now("tf.timestamp")
    return numbers(np.float64(time.time()))


def where(condition, x=None, y=None):
    """x where the condition is true, else y; without them the places [count, axes] where it is true."""
    if x is None:
        return numbers(np.argwhere(numbers(condition).numpy()))
    return low.where(numbers(condition), *alike(x, y))


_REDUCED = "all any max min std sum variance"
RULES = {f"reduce_{name}": reducing(getattr(low, f"reduce_{name}")) for name in _REDUCED.split()}
RULES |= {name: binary(getattr(low, name)) for name in ("equal", "maximum", "minimum")}
RULES |= {
    "boolean_mask": mask,
    "matmul": matmul,
    "range": counted,
    "reduce_mean": reducing(mean),
    "timestamp": timestamp,
    "where": where,
    "add": binary(operator.add),
    "subtract": binary(operator.sub),
    "multiply": binary(operator.mul),
    "pow": binary(operator.pow),
    "less": binary(operator.lt),
    "less_equal": binary(operator.le),
    "greater": binary(operator.gt),
    "greater_equal": binary(operator.ge),
    "not_equal": binary(operator.ne),
}

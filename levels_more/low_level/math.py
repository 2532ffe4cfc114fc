"""Functions of tensors that are made of others: rounded, divided without a rest, repeated, counted, cut short."""

import functools
import math
import operator

import numpy as np

from levels.low_level import OPERATORS, Operators, as_tensor, constant, gather, reduce_sum, sqrt
from levels_more.checks import dtype_of, expect, number, sizes
from levels_more.low_level.custom_rules import by_numpy
from levels_more.low_level.ops import broadcast_to, cast, maximum, reshape
from levels_more.low_level.shape import squeeze, take
from levels_more.low_level.statistics import norm


def floor(x):
    """The whole number beneath each number of a tensor x, in x's dtype. Its slope is 0. Not in a traced function."""
    return by_numpy(np.floor, as_tensor(x))


def ceil(x):
    """The whole number above each number of a tensor x, in x's dtype. Its slope is 0. Not in a traced function."""
    return by_numpy(np.ceil, as_tensor(x))


def rounded(x):
    """The whole number nearest to each number of a tensor x, half to even. Its slope is 0. Not in a traced function."""
    return by_numpy(np.round, as_tensor(x))


def sign(x):
    """-1, 0 or 1 for each number of a tensor x, in x's dtype. Its slope is 0. Not in a traced function."""
    return by_numpy(np.sign, as_tensor(x))


def floordiv(x, y):
    """x / y rounded down, of each two numbers, a tensor and another or a number. Its slope is 0. Not in a traced function.

    Raises ZeroDivisionError for whole numbers divided by 0.
    """
    x = as_tensor(x, y if isinstance(y, Operators) else None)
    y = as_tensor(y, x)
    expect(x.dtype == y.dtype and x.dtype.kind in "fi", "floordiv: x and y", (x.spec, y.spec), "numbers of one dtype")
    if x.dtype.kind == "i" and not y.numpy().all():
        raise ZeroDivisionError(f"whole numbers divided by 0, in {y!r:.60}")
    with np.errstate(divide="ignore", invalid="ignore"):
        return by_numpy(np.floor_divide, x, y.numpy())


def mod(x, y):
    """What is left of each number x when y is taken away as often as it fits: x - floordiv(x, y)·y. Its slopes are 1 and that count.

    Not in a traced function, as `floordiv`, which says what is raised.
    """
    return as_tensor(x, y if isinstance(y, Operators) else None) - floordiv(x, y) * y


OPERATORS["%"] = mod
OPERATORS["//"] = floordiv


def gather_nd(x, indices):
    """x at each place of `indices` [places, axes], whole numbers: a number, or the part that the other axes hold."""
    x, places = as_tensor(x), np.asarray(indices)
    axes = places.shape[-1]
    rows = np.ravel_multi_index(tuple(np.moveaxis(places, -1, 0)), x.shape[:axes])
    return gather(reshape(x, (math.prod(x.shape[:axes]), *x.shape[axes:])), rows)


def confusion_matrix(labels, predictions, num_classes=None):
    """How often each class [rows] was taken for each [columns], int64: of numbers of classes, as many in both.

    Not in a traced function.
    """
    rows, columns = (np.asarray(x).ravel().astype(np.int64) for x in (labels, predictions))
    classes = int(max(rows.max(), columns.max())) + 1 if num_classes is None else num_classes
    counted = np.bincount(rows * classes + columns, minlength=classes * classes)
    return constant(counted.reshape(classes, classes).astype(np.int64))


def repeat(x, repeats, axis=None):
    """Each number of a tensor x so many times, as one long row; or, along an axis, each part of it."""
    x = as_tensor(x)
    x, axis = (reshape(x, (-1,)), 0) if axis is None else (x, axis)
    return take(x, np.repeat(np.arange(x.shape[axis]), sizes("repeat: repeats", repeats)), axis)


def unstack(x, axis=0):
    """A list of the parts of a tensor x along an axis, which they have no more."""
    x = as_tensor(x)
    return [squeeze(take(x, [k], axis), axis) for k in range(x.shape[axis])]


def clip_by_norm(x, clip_norm):
    """A tensor x times one factor: 1, or what brings the root of the sum of its squares down to `clip_norm`."""
    x = as_tensor(x)
    return x * (clip_norm / maximum(norm(x), clip_norm))


def eye(n, m=None, dtype="float32"):
    """A tensor [n, m], or [n, n], with 1 where both numbers are equal, else 0."""
    n, m = (*sizes("eye: n", n), *sizes("eye: m", n if m is None else m))
    return constant(np.eye(n, m, dtype=dtype_of("eye: dtype", dtype)))


def fill(shape, value):
    """A tensor of that shape, all that number: int64, float32 or, for a NumPy number or a tensor, of its dtype."""
    return broadcast_to(as_tensor(value), shape)


def linspace(start, stop, num=50, dtype="float32"):
    """`num` numbers at equal distances, start the first and stop the last, in that dtype."""
    first, last = number("linspace: start", start), number("linspace: stop", stop)
    return constant(np.linspace(first, last, *sizes("linspace: num", num)), dtype_of("linspace: dtype", dtype))


def is_nan(x):
    """Whether each number of a float tensor is no number: a tensor of bools."""
    return as_tensor(x) != as_tensor(x)


def global_norm(values):
    """The root of the sum of the squares of all numbers of these tensors [a list]; None among them counts for nothing."""
    given = [as_tensor(x) for x in values if x is not None]
    return sqrt(functools.reduce(operator.add, [reduce_sum(x * x) for x in given]))


def l2_normalize(x, axis=None, epsilon=1e-12):
    """A float tensor x divided by the root of the sum of its squares along an axis, or of all; a sum counts as epsilon or more."""
    x = as_tensor(x)
    return x / sqrt(maximum(reduce_sum(x * x, axis, True), epsilon))


def clip_by_global_norm(values, clip_norm):
    """(these tensors [a list] times one factor: 1, or what brings their `global_norm` down to clip_norm; that norm before)

    None among them stays None.
    """
    before = global_norm(values)
    factor = clip_norm / maximum(before, clip_norm)
    return [x if x is None else as_tensor(x) * factor for x in values], before


def divide(x, y):
    """x / y of each two numbers, a tensor and another or a number; of whole numbers in float64, as in NumPy."""
    x, y = as_tensor(x, y if isinstance(y, Operators) else None), as_tensor(y, x if isinstance(x, Operators) else None)
    whole = x.dtype.kind == "i" and y.dtype.kind == "i"
    return cast(x, "float64") / cast(y, "float64") if whole else x / y

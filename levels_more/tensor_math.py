"""Functions of tensors that are made of others: rounded, repeated, in order, summed up on the way, spread, cut short."""

import functools
import math
import operator

import numpy as np

from levels.low_level import (
    METHODS,
    Operators,
    Tensor,
    as_tensor,
    concat,
    constant,
    exp,
    gather,
    log,
    maximum,
    reduce_max,
    reduce_mean,
    reduce_sum,
    reshape,
    sqrt,
    squeeze,
    take,
    transpose,
    where,
)  # fmt: skip
from levels_more.checks import dtype_of, expect, number, sizes


def _by_numpy(function, x, *others):
    """What NumPy makes of the numbers: a step, without a slope. In a traced function nobody knows them: it is refused."""
    x = as_tensor(x)
    return x.device.put(np.ascontiguousarray(function(x.numpy(), *others)), Tensor)


def floor(x):
    """The whole number beneath each number of a tensor x, in x's dtype. Its slope is 0. Not in a traced function."""
    return _by_numpy(np.floor, x)


def ceil(x):
    """The whole number above each number of a tensor x, in x's dtype. Its slope is 0. Not in a traced function."""
    return _by_numpy(np.ceil, x)


def rounded(x):
    """The whole number nearest to each number of a tensor x, half to even. Its slope is 0. Not in a traced function."""
    return _by_numpy(np.round, x)


def sign(x):
    """-1, 0 or 1 for each number of a tensor x, in x's dtype. Its slope is 0. Not in a traced function."""
    return _by_numpy(np.sign, x)


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
        return _by_numpy(np.floor_divide, x, y.numpy())


def mod(x, y):
    """What is left of each number x when y is taken away as often as it fits: x - floordiv(x, y)·y. Its slopes are 1 and that count.

    Not in a traced function, as `floordiv`, which says what is raised.
    """
    return as_tensor(x, y if isinstance(y, Operators) else None) - floordiv(x, y) * y


METHODS["Operators.__mod__"] = mod
METHODS["Operators.__floordiv__"] = floordiv
METHODS["Operators.ndim"] = property(lambda x: len(x.shape))


def argsort(x, axis=-1, descending=False):
    """The places, int64, of the numbers of a tensor x in ascending order along an axis; equal ones keep their order.

    Not in a traced function.
    """
    x = as_tensor(x)
    return _by_numpy(lambda a: np.argsort(-a if descending else a, axis, kind="stable"), x)


def sort(x, axis=-1, descending=False):
    """The numbers of a tensor x in ascending order along an axis. Not in a traced function."""
    x = as_tensor(x)
    moved = x if axis in (-1, len(x.shape) - 1) else _swapped(x, axis)
    rows, size = math.prod(moved.shape[:-1]), moved.shape[-1]
    places = argsort(moved, -1, descending).numpy() + (np.arange(rows) * size).reshape(*moved.shape[:-1], 1)
    y = gather(reshape(moved, (-1,)), places)
    return y if moved is x else _swapped(y, axis)


def _swapped(x, axis):
    """x with this axis and the last one in each other's place."""
    order = [*range(len(x.shape))]
    order[axis], order[-1] = order[-1], order[axis]
    return transpose(x, order)


def top_k(x, k=1):
    """(values, places): the k largest numbers of a float or int tensor x along its last axis, the largest first."""
    return sort(x, -1, True)[..., :k], argsort(x, -1, True)[..., :k]


def gather_nd(x, indices):
    """x at each place of `indices` [places, axes], whole numbers: a number, or the part that the other axes hold."""
    x, places = as_tensor(x), np.asarray(indices)
    axes = places.shape[-1]
    rows = np.ravel_multi_index(tuple(np.moveaxis(places, -1, 0)), x.shape[:axes])
    return gather(reshape(x, (math.prod(x.shape[:axes]), *x.shape[axes:])), rows)


def diag(x):
    """x[n] -> [n, n]: its numbers where both places are equal, else 0."""
    x = as_tensor(x)
    return reshape(x, (-1, 1)) * eye(x.shape[0], dtype=x.dtype)


def confusion_matrix(labels, predictions, num_classes=None):
    """How often each class [rows] was taken for each [columns], int64: of numbers of classes, as many in both.

    Not in a traced function.
    """
    rows, columns = (np.asarray(x).ravel().astype(np.int64) for x in (labels, predictions))
    classes = int(max(rows.max(), columns.max())) + 1 if num_classes is None else num_classes
    counted = np.bincount(rows * classes + columns, minlength=classes * classes)
    return constant(counted.reshape(classes, classes).astype(np.int64))


def tile(x, multiples):
    """A tensor x, so many times behind itself along each axis: [a, b] by (2, 3) becomes [2·a, 3·b]."""
    x = as_tensor(x)
    counts = sizes("tile: multiples", multiples)
    expect(len(counts) == len(x.shape), "tile: multiples", multiples, f"one for each axis of {x.shape}")
    for axis, count in enumerate(counts):
        x = take(x, np.tile(np.arange(x.shape[axis]), count), axis)
    return x


def repeat(x, repeats, axis=None):
    """Each number of a tensor x so many times, as one long row; or, along an axis, each part of it."""
    x = as_tensor(x)
    x, axis = (reshape(x, (-1,)), 0) if axis is None else (x, axis)
    return take(x, np.repeat(np.arange(x.shape[axis]), sizes("repeat: repeats", repeats)), axis)


def broadcast_to(x, shape):
    """A tensor x, repeated to that shape as beside another tensor of it."""
    x, shape = as_tensor(x), sizes("broadcast_to: shape", shape)
    return x + constant(np.zeros(shape, x.dtype))


def unstack(x, axis=0):
    """A list of the parts of a tensor x along an axis, which they have no more."""
    x = as_tensor(x)
    return [squeeze(take(x, [k], axis), axis) for k in range(x.shape[axis])]


def cumsum(x, axis=0):
    """The sums of a tensor's numbers up to each place of an axis, in order from the first."""
    total, sums = None, []
    for part in unstack(x, axis):
        total = part if total is None else total + part
        sums.append(reshape(total, (1, *total.shape)))
    y, at = concat(sums, 0), axis % len(as_tensor(x).shape)
    return transpose(y, [*range(1, at + 1), 0, *range(at + 1, len(y.shape))])


def reduce_prod(x, axis=None):
    """The product of a tensor's numbers along an axis, or of all."""
    first, *others = unstack(reshape(x, (-1,)) if axis is None else x, axis or 0)
    return math.prod(others, start=first)


def reduce_variance(x, axis=None, keepdims=False):
    """The mean of (x - mean)², of all floats of a tensor x or along an axis: divided by how many they are."""
    apart = as_tensor(x) - reduce_mean(x, axis, True)
    return reduce_mean(apart * apart, axis, keepdims)


def reduce_std(x, axis=None, keepdims=False):
    """The root of `reduce_variance`: the standard deviation of all floats of a tensor x, or along an axis."""
    return sqrt(reduce_variance(x, axis, keepdims))


def reduce_logsumexp(x, axis=None, keepdims=False):
    """log(Σ exp(x)), of all floats of a tensor x or along an axis, and no overflow on the way."""
    most = constant(reduce_max(x, axis, True).numpy())
    y = log(reduce_sum(exp(as_tensor(x) - most), axis, keepdims))
    return y + (most if keepdims else reshape(most, y.shape))


def norm(x, ord="euclidean", axis=None, keepdims=False):
    """The root of the sum of squares, of all floats of a tensor x or along an axis; ord=1 sums |x|, ord=inf takes the largest.

    Raises ValueError for another `ord`.
    """
    x = as_tensor(x)
    size = maximum(x, -x)
    if ord in ("euclidean", "fro", 2, None):
        return sqrt(reduce_sum(x * x, axis, keepdims))
    if ord in (1, np.inf):
        return (reduce_sum if ord == 1 else reduce_max)(size, axis, keepdims)
    raise ValueError(f"norm: ord is {ord!r}; expected 'euclidean', 1 or infinity")


def clip_by_norm(x, clip_norm):
    """A tensor x times one factor: 1, or what brings the root of the sum of its squares down to `clip_norm`."""
    x = as_tensor(x)
    return x * (clip_norm / maximum(norm(x), clip_norm))


def softplus(x):
    """log(1 + exp(x)) of each number of a float tensor, and no overflow on the way (Dugas et al., 2001)."""
    x = as_tensor(x)
    return maximum(x, 0.0) + log(1.0 + exp(-maximum(x, -x)))


def leaky_relu(x, alpha=0.2):
    """x where it is positive, else alpha·x, of each number of a float tensor (Maas et al., 2013)."""
    x = as_tensor(x)
    return where(x > 0.0, x, number("leaky_relu: alpha", alpha) * x)


def eye(n, m=None, dtype="float32"):
    """A tensor [n, m], or [n, n], with 1 where both numbers are equal, else 0."""
    n, m = (*sizes("eye: n", n), *sizes("eye: m", n if m is None else m))
    return constant(np.eye(n, m), dtype_of("eye: dtype", dtype))


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
    """The root of the sum of the squares of all numbers of these tensors [a list]."""
    return sqrt(functools.reduce(operator.add, [reduce_sum(x * x) for x in map(as_tensor, values)]))

"""Functions of level 3 with the arguments that PyTorch has for them, before they remember."""

import math
import operator

import numpy as np

from levels import low_level as low
from levels_more.low_level.custom_rules import without_gradient
from levels_more.low_level.promotion import alike, beside, both, floats, of_kinds


def sizes_of(sizes):
    """The shape in an argument list: (2, 3), or one tuple of them."""
    return tuple(map(int, sizes[0] if len(sizes) == 1 and isinstance(sizes[0], list | tuple) else sizes))


RENAMED = {  # PyTorch's arguments -> ours
    "dim": "axis",
    "keepdim": "keepdims",
    "other": "y",
    "num_classes": "n",
    "split_size_or_sections": "size",
}


def spelled(function):
    """A function that takes PyTorch's names of arguments."""

    def run(*args, **options):
        first = [options.pop("input")] if "input" in options else []
        return function(*first, *args, **{RENAMED.get(name, name): x for name, x in options.items()})

    return run


def spread(function):
    """A variance or a deviation of x[…], with n - 1 for n unless it is said otherwise."""
    return lambda x, axis=None, unbiased=True, keep=False, correction=1, keepdims=False: function(
        x, axis, keep or keepdims, correction * unbiased
    )


def extreme(function, ranked, both):
    """max(x), max(x, y), and max(x, dim) -> (values, indices), of which only those at the indices have a gradient."""

    def run(x, y=None, keepdims=False, axis=None):
        axis = y if axis is None else axis
        return function(x) if axis is None else both(x, y) if hasattr(axis, "shape") else ranked(x, axis, keepdims)

    return run


def of_truths(function):
    """A function of bools, as one of any numbers x[…], which are true unless they are 0."""
    return lambda x, *args, **how: function(x if x.dtype == bool else x != 0, *args, **how)


def expand(x, *sizes):
    """x[…] in a larger shape, in which -1 leaves an axis as it is."""
    before = (1,) * (len(sizes_of(sizes)) - len(x.shape)) + x.shape
    return low.broadcast_to(x, [n if size == -1 else size for size, n in zip(sizes_of(sizes), before, strict=True)])


def clamp(x, min=None, max=None):
    """x[…] within two bounds, numbers or tensors, of which one may be None."""
    if x.dtype.kind == "f" and not any(hasattr(bound, "shape") for bound in (min, max)):
        return low.clip(x, -math.inf if min is None else min, math.inf if max is None else max)
    x = x if min is None else low.maximum(*beside(x, min))
    return x if max is None else low.minimum(*beside(x, max))


def scaled(name):
    """x + alpha·y, or x - alpha·y, by the name of the operator."""
    run = of_kinds(operator.add, low.logical_or) if name == "add" else both(operator.sub)
    return lambda x, y, alpha=1: run(x, y if alpha == 1 else alpha * y)


def put(x, value, index):
    """x[…] with other numbers at an index of NumPy's: x and those in one long row, of which each place takes one."""
    places = np.arange(math.prod(x.shape))
    there = places.reshape(x.shape)[index]
    value = low.broadcast_to(low.as_tensor(value, x), there.shape)
    places[there] = len(places) + np.arange(there.size).reshape(there.shape)
    row = low.concat([low.reshape(x, (-1,)), low.reshape(value, (-1,))])
    return low.reshape(low.gather(row, places), x.shape)


def scatter(x, axis, index, src=None, value=None):
    """x[…] with src, a number or a tensor in the shape of the index, at these places along an axis.

    Raises IndexError for a place that x has not.
    """
    places = np.atleast_1d(index.numpy())
    if places.size and places.min() < 0:
        raise IndexError(f"scatter: the index holds {places.min()}; expected places from 0 on")
    at = [*np.indices(places.shape, sparse=True)]
    at[axis] = places
    return put(x, value if src is None else src, tuple(at))


def diff(x, n=1, axis=-1):
    """Each number of x[…] less the one before it along an axis, n times."""
    for _ in range(n):
        size = x.shape[axis]
        x = low.take(x, np.arange(1, size), axis) - low.take(x, np.arange(size - 1), axis)
    return x


def lerp(x, y, weight):
    """x[…] + weight·(y - x): x for a weight of 0, y for 1."""
    return x + weight * (y - x)


def roll(x, shifts, axis=None):
    """x[…, n, …] moved along an axis, or as one long row; what is moved behind the end comes in at the beginning."""
    if axis is None:
        return low.reshape(roll(low.reshape(x, (-1,)), shifts, 0), x.shape)
    return low.take(x, np.roll(np.arange(x.shape[axis]), shifts), axis)


def cdist(x, y, p=2.0):
    """The lengths of the differences of each row of x[m, k] and each of y[n, k]: [m, n]."""
    return low.norm(low.expand_dims(x, 1) - low.expand_dims(y, 0), p, 2)


def addmm(b, x, y, beta=1, alpha=1):
    """beta·b + alpha·x[m, k] @ y[k, n]"""
    return b * beta + low.dot(x, y) * alpha


def prelu(x, weight):
    """x where it is positive, else weight·x: one weight for x[…], or one for each column of x[batch, features] (He et al., 2015)."""
    return low.nn.relu(x) - weight * low.nn.relu(-x)


def repeat(x, *sizes):
    """x[…] several times along each axis. Raises ValueError for fewer counts than x has axes."""
    counts = sizes_of(sizes)
    if len(counts) < len(x.shape):
        raise ValueError(f"repeat: {counts} for a tensor of shape {tuple(x.shape)}; expected a count for each axis")
    return low.tile(x, counts)


def over(function):
    """A reduction of x[…], of all, along one axis, or along several, one after the other; before it x is cast to a dtype."""

    def run(x, axis=None, keepdims=False, dtype=None):
        x = x if dtype is None else low.cast(x, dtype)
        if not isinstance(axis, list | tuple):
            return function(x, axis, keepdims)
        for each in sorted((each % len(x.shape) for each in axis), reverse=True):
            x = function(x, each, keepdims)
        return x

    return run


def median(x, axis=None, keepdims=False):
    """The lower one of the numbers of x[…] in the middle; along an axis -> (values, indices)."""
    if axis is None:
        return low.sort(low.reshape(x, (-1,)))[(math.prod(x.shape) - 1) // 2]
    found = low.ranked(x, axis)
    middle = (low.take(each, np.array([(x.shape[axis] - 1) // 2]), axis) for each in found)
    return type(found)(*(each if keepdims else low.squeeze(each, axis) for each in middle))


def div(x, y, rounding_mode=None):
    """x / y, as floats, or rounded: "floor", down, and "trunc", towards 0. Raises ValueError for another word."""
    if rounding_mode not in (None, "floor", "trunc"):
        raise ValueError(f"div: rounding_mode is {rounding_mode!r:.60}; expected 'floor' or 'trunc'")
    if rounding_mode is None:
        x, y = beside(x, y)
        return floats(x) / floats(y)
    x, y = alike(x, y)
    down = without_gradient(np.floor_divide)
    return down(x, y) if rounding_mode == "floor" else low.sign(x) * low.sign(y) * down(low.abs(x), low.abs(y))


def broadcast_tensors(*tensors):
    """All of these tensors, [m] and [n, m] say, in the one shape that they have together."""
    shape = np.broadcast_shapes(*(tuple(x.shape) for x in tensors))
    return tuple(low.broadcast_to(x, shape) for x in tensors)


def index_fill(x, axis, index, value):
    """x[…] with one number in these places of an axis."""
    mask = np.zeros(x.shape, bool)
    np.moveaxis(mask, axis, 0)[index.numpy()] = True
    return low.where(low.constant(mask), *beside(value, x))


def nan_to_num(x, nan=0.0, posinf=None, neginf=None):
    """x[…] with a number for NaN, and one for each infinity, the largest there are unless they are said."""
    most, array = np.finfo(x.dtype).max, x.numpy()
    for wrong, value in (
        (np.isnan(array), nan),
        (np.isposinf(array), most if posinf is None else posinf),
        (np.isneginf(array), -most if neginf is None else neginf),
    ):
        x = low.where(low.constant(wrong), float(value), x)
    return x


def addcmul(x, y, z, value=1):
    """x[…] + value·y[…]·z[…]"""
    return x + value * (y * z)


def addcdiv(x, y, z, value=1):
    """x[…] + value·y[…] / z[…]"""
    return x + value * (y / z)


def pad(x, pad, mode="constant", value=0.0):
    """x[…] with a number put around it: so many before and behind along the last axis, then along the one before, …

    Raises ValueError for another mode.
    """
    if mode != "constant":
        raise ValueError(f"pad: mode is {mode!r:.60}; here is 'constant'")
    for k, (before, behind) in enumerate(zip(pad[::2], pad[1::2], strict=True)):
        axis = len(x.shape) - 1 - k
        sides = [
            low.constant(np.full((*x.shape[:axis], n, *x.shape[axis + 1 :]), value, x.dtype)) for n in (before, behind)
        ]
        x = low.concat([sides[0], x, sides[1]], axis)
    return x


def hardtanh(x, min_val=-1.0, max_val=1.0):
    """x[…] kept within two numbers."""
    return low.clip(x, min_val, max_val)


def power(x, y):
    """x[…] to the power of y, numbers or tensors; whole numbers remain so. Raises ValueError for 1 / a whole number."""
    if isinstance(y, int) and y == 2:
        return x * x
    x, y = beside(x, y)
    arrays = [z.numpy() if hasattr(z, "shape") else np.asarray(z) for z in (x, y)]
    if any(array.dtype.kind == "f" for array in arrays):
        return x**y
    if (arrays[1] < 0).any():
        raise ValueError("pow: whole numbers to a power below 0; make floats of them first")
    return without_gradient(np.power)(x, y)


def length(x, ord=None, axis=None, keepdims=False):
    """The length of x[…], of all its numbers or along an axis. Raises ValueError for the norm of a matrix that has a number.

    (PyTorch's norm(matrix, 2) is its largest singular value, 1 and inf are sums of columns and rows.)
    """
    if ord not in (None, "fro") and axis is None and len(x.shape) > 1:
        raise ValueError(f"norm: ord={ord!r} of a matrix is not here; leave it away, say dim, or ask svdvals")
    return low.norm(x, 2 if ord in (None, "fro") else ord, axis, keepdims)


def shared_at_ties(function):
    """`maximum` or `minimum`; of two equal floats each has half of the gradient. (Else the first one has it all.)"""
    return lambda x, y: low.where(x == y, x * 0.5 + y * 0.5, function(x, y)) if x.dtype.kind == "f" else function(x, y)

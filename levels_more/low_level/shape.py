"""Functions for shapes, indexing, products of more axes, variance, and the largest numbers with their indices.

Each function is composed of existing ones, and so is its gradient.
"""

import collections
import functools
import math

import numpy as np

from levels.low_level import Operators, apply, as_tensor, gather, reduce_sum, sqrt
from levels_more.checks import axis_of, expect, several
from levels_more.low_level.ops import argmax, argmin, concat, dot, reduce_mean, reshape, transpose, where


def expand_dims(x, axis):
    """Insert an axis of size 1: [a, b] becomes [a, 1, b] with axis=1. Raises ValueError if the axis is out of range."""
    x = as_tensor(x)
    shape = list(x.spec.shape)
    shape.insert(axis_of("expand_dims", axis, len(shape) + 1), 1)
    return reshape(x, shape)


def squeeze(x, axis=None):
    """Remove all axes of size 1 from x, or only the given one: [a, 1, b] becomes [a, b].

    Raises ValueError if the given axis has another size.
    """
    x = as_tensor(x)
    shape = x.spec.shape
    if axis is None:
        return reshape(x, [size for size in shape if size != 1])
    axis = axis_of("squeeze", axis, len(shape))
    if shape[axis] != 1:
        raise ValueError(f"squeeze: axis {axis} of {shape} has {shape[axis]} numbers; expected one")
    return reshape(x, [*shape[:axis], *shape[axis + 1 :]])


def stack(values, axis=0):
    """Join tensors of one shape along a new axis: n of [a, b] become [n, a, b].

    Raises ValueError if the shapes differ, or for no tensors.
    """
    like = next((x for x in several("stack: values", values, "a list of tensors") if isinstance(x, Operators)), None)
    values = [as_tensor(x, like) for x in values]
    shapes = list(dict.fromkeys(x.spec.shape for x in values))
    if len(shapes) != 1:
        raise ValueError(f"stack: got {len(values)} tensors of the shapes {shapes[:3]}; expected one shape")
    return concat([expand_dims(x, axis) for x in values], axis)


def take(x, rows, axis=0):
    """Return x[…, rows[i], …] for each i, indexed along one axis, as in NumPy. (`gather` is for the first axis.)

    Raises TypeError unless `rows` are integers, IndexError if one is out of range, ValueError if x has no such axis.
    """
    x = as_tensor(x)
    axes = len(x.spec.shape)
    axis = axis_of("take", axis, axes)
    if axis == 0:
        return gather(x, rows)
    order = [axis, *range(axis), *range(axis + 1, axes)]
    y = gather(transpose(x, order), rows)
    new = len(y.spec.shape) - axes + 1  # number of axes of `rows`: they are in front, and move to `axis`
    return transpose(y, [*range(new, new + axis), *range(new), *range(new + axis, new + axes - 1)])


def fancy_index(x, index):
    """Return x[index] as in NumPy, also for lists, arrays and tensors of integers or bools in the index.

    Raises IndexError if an index is out of range, and what x[index] raises.
    """
    x = as_tensor(x)
    parts = index if isinstance(index, tuple) else (index,)
    if not any(isinstance(part, Operators | list | np.ndarray) for part in parts):
        return x[index]
    parts = [p if not isinstance(p, list) else np.asarray(p, None if np.size(p) else np.int64) for p in parts]
    parts = tuple(p.numpy() if isinstance(p, Operators) else p for p in parts)
    if len(parts) == 1 and parts[0].dtype.kind == "i" and x.spec.shape:
        return gather(x, np.where(parts[0] < 0, parts[0] + x.spec.shape[0], parts[0]))
    places = np.arange(math.prod(x.spec.shape)).reshape(x.spec.shape)[parts]
    return gather(reshape(x, (-1,)), places)


def product(x, y):
    """Return x[…, k] @ y[k, n] or y[k], or a batched product x[…, m, k] @ y[…, k, n] with equal leading axes.

    Raises ValueError for other shapes.
    """
    return dot(x, y) if len(y.shape) < 3 else apply("matmul", x, y)


def reduce_variance(x, axis=None, keepdims=False, ddof=0):
    """Return the mean squared distance of floats from their mean, along an axis or neighbouring axes, or of all.

    The divisor is the count minus `ddof`, as in NumPy. With ddof=1 the result is an estimate from a sample.
    """
    x = as_tensor(x)
    apart = x - reduce_mean(x, axis, True)
    squares = reduce_sum(apart * apart, axis, keepdims)
    n = math.prod(x.spec.shape) / max(1, math.prod(squares.spec.shape)) - ddof
    return squares / max(n, 0.0)


def reduce_std(x, axis=None, keepdims=False, ddof=0):
    """Return the standard deviation of floats: the root of `reduce_variance`. If all are equal, its gradient is 0."""
    variance = reduce_variance(x, axis, keepdims, ddof)
    equal = variance == 0.0  # there the slope of the root is infinite, and the chain rule gives 0 · inf
    return where(equal, 0.0, sqrt(where(equal, 1.0, variance)))


def take_along(x, places, axis=-1):
    """Return the numbers of x at the indices `places` along an axis, like NumPy's `take_along_axis`.

    Raises TypeError unless `places` is int64 with as many axes as x, IndexError if an index is out of range.
    """
    x = as_tensor(x)
    places = as_tensor(places)
    shape, axis = x.spec.shape, axis_of("take_along", axis, len(x.spec.shape))
    fits = places.dtype == np.int64 and len(places.shape) == len(shape)
    expect(fits, "take_along: places", places.spec, f"whole numbers, with {len(shape)} axes")
    rows = np.indices(places.shape, sparse=True)
    at = [places.numpy() if k == axis else row for k, row in enumerate(rows)]
    wrong = at[axis][(at[axis] < -shape[axis]) | (at[axis] >= shape[axis])]
    if wrong.size or any(n > size for k, (n, size) in enumerate(zip(places.shape, shape, strict=True)) if k != axis):
        where = f"{wrong.flat[0]}" if wrong.size else f"shape {places.shape}"
        raise IndexError(f"take_along: {where} does not lie in x, {shape}, along axis {axis}")
    at[axis] = at[axis] % max(1, shape[axis])
    return gather(reshape(x, (-1,)), functools.reduce(lambda flat, k: flat * shape[k] + at[k], range(len(shape)), 0))


Found = collections.namedtuple("Found", "values indices")  # numbers, and their indices


def _found(x, places, axis, keepdims):
    """Return Found(values, indices): the numbers of x at one index along the axis, and these indices."""
    found = take_along(x, places, axis), places
    return Found(*(found if keepdims else (squeeze(each, axis) for each in found)))


def largest(x, axis, keepdims=False):
    """Return the largest number of x[…, n, …] along an axis, and its index, int64: the first if there are several."""
    return _found(x, argmax(x, axis, True), axis, keepdims)


def smallest(x, axis, keepdims=False):
    """Return the smallest number of x[…, n, …] along an axis, and its index, int64: the first if there are several."""
    return _found(x, argmin(x, axis, True), axis, keepdims)

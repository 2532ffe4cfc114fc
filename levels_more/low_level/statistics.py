"""Variance, standard deviation, and the largest numbers with their places."""

import collections
import functools
import math

import numpy as np

from levels.low_level import as_tensor, gather, reduce_mean, reduce_sum, sqrt
from levels_more.checks import axis_of, expect
from levels_more.low_level.ops import argmax, argmin, reshape, where
from levels_more.low_level.shape import squeeze


def reduce_variance(x, axis=None, keepdims=False, ddof=0):
    """The mean of the squared distances from the mean, of floats, along one axis, several neighbours, or of all.

    The count that it is divided by is `ddof` less, as in NumPy. With 1 it is an estimate from a sample.
    """
    x = as_tensor(x)
    apart = x - reduce_mean(x, axis, True)
    squares = reduce_sum(apart * apart, axis, keepdims)
    n = math.prod(x.spec.shape) / max(1, math.prod(squares.spec.shape)) - ddof
    return squares / n if n > 0 else squares * math.nan


def reduce_std(x, axis=None, keepdims=False, ddof=0):
    """The root of `reduce_variance`: how far floats lie from their mean. Where all are equal its slope is 0."""
    variance = reduce_variance(x, axis, keepdims, ddof)
    equal = variance == 0.0  # there the root is infinitely steep, and its chain would be 0 · inf
    return where(equal, 0.0, sqrt(where(equal, 1.0, variance)))


def take_along(x, places, axis=-1):
    """The numbers of x at these places along an axis, as NumPy's `take_along_axis`: int64, as many axes as x has.

    Raises TypeError for others, IndexError for a place that x has not.
    """
    x, places = as_tensor(x), as_tensor(places)
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


Found = collections.namedtuple("Found", "values indices")  # numbers, and where they were


def _found(x, places, axis, keepdims):
    """The numbers of x at one place of each row, with the places."""
    found = take_along(x, places, axis), places
    return Found(*(found if keepdims else (squeeze(each, axis) for each in found)))


def largest(x, axis, keepdims=False):
    """The largest number of x[…, n, …] along an axis, the first of equal ones, and its place, int64."""
    return _found(x, argmax(x, axis, True), axis, keepdims)


def smallest(x, axis, keepdims=False):
    """The smallest number of x[…, n, …] along an axis, the first of equal ones, and its place, int64."""
    return _found(x, argmin(x, axis, True), axis, keepdims)

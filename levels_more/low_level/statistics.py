"""Spread, products, running sums, order: reductions and rankings made of functions that are there already."""

import collections
import functools
import math

import numpy as np

from levels.low_level import as_tensor, exp, gather, log, reduce_mean, reduce_sum, sqrt
from levels_more.checks import axis_of, expect
from levels_more.low_level.autodiff import stop_gradient
from levels_more.low_level.creation import zeros_like
from levels_more.low_level.ops import abs, argmax, argmin, concat, maximum, reduce_max, reshape
from levels_more.low_level.shape import squeeze, take


def reduce_variance(x, axis=None, keepdims=False, ddof=0):
    """The mean of the squared distances from the mean, of floats, along one axis, several neighbours, or of all.

    The count that it is divided by is `ddof` less, as in NumPy: with 1 it is an estimate from a sample, of two numbers or more.
    """
    x = as_tensor(x)
    apart = x - reduce_mean(x, axis, True)
    squares = reduce_sum(apart * apart, axis, keepdims)
    n = math.prod(x.spec.shape) / max(1, math.prod(squares.spec.shape)) - ddof
    return squares / n if n > 0 else squares * math.nan


def reduce_std(x, axis=None, keepdims=False, ddof=0):
    """The root of `reduce_variance`: how far floats lie from their mean."""
    return sqrt(reduce_variance(x, axis, keepdims, ddof))


def reduce_logsumexp(x, axis=None, keepdims=False):
    """log(Σ exp(x)) of floats along one axis, or of all, without overflow."""
    x = as_tensor(x)
    most = stop_gradient(reduce_max(x, axis, True))
    y = log(reduce_sum(exp(x - most), axis, True)) + most
    return y if keepdims else reshape(y, reduce_sum(x, axis).shape)


def norm(x, ord="euclidean", axis=None, keepdims=False):
    """(Σ|x|ᵒʳᵈ)^(1/ord) of floats x[…, n, …] along one axis, or of all; "euclidean" is 2, and inf is the largest |x|."""
    x = as_tensor(x)
    if ord in ("euclidean", "fro", 2, None):
        return sqrt(reduce_sum(x * x, axis, keepdims))
    x = abs(x)
    if ord in (1, math.inf):
        return (reduce_sum if ord == 1 else reduce_max)(x, axis, keepdims)
    return reduce_sum(x ** float(ord), axis, keepdims) ** (1.0 / ord)


def _cut(x, axis, start, end):
    """x[…, start:end, …] along an axis."""
    return x[(slice(None),) * axis + (slice(start, end),)]


def reduce_prod(x, axis=None, keepdims=False):
    """The product of numbers along one axis, or of all: halves are multiplied until one is left. Of none it is 1."""
    x = as_tensor(x)
    shape, whole = x.spec.shape, axis is None
    x, axis = (reshape(x, (-1,)), 0) if whole else (x, axis_of("reduce_prod", axis, len(shape)))
    if x.shape[axis] == 0:
        return reduce_sum(x, axis, keepdims) + 1
    while (n := x.shape[axis]) > 1:
        half = _cut(x, axis, 0, n // 2) * _cut(x, axis, n // 2, n // 2 * 2)
        x = concat([half, _cut(x, axis, n - 1, n)], axis) if n % 2 else half
    kept = (1,) * len(shape) if whole else x.shape
    return reshape(x, kept if keepdims else () if whole else (*kept[:axis], *kept[axis + 1 :]))


def cumsum(x, axis=0):
    """The sums of all numbers up to each, along an axis: x, plus x moved by 1, by 2, by 4, … (Hillis and Steele, 1986)."""
    x = as_tensor(x)
    axis, by = axis_of("cumsum", axis, len(x.spec.shape)), 1
    while by < x.shape[axis]:
        x = x + concat([zeros_like(_cut(x, axis, 0, by)), _cut(x, axis, 0, -by)], axis)
        by *= 2
    return x


def argsort(x, axis=-1, descending=False):
    """The places, int64, of the numbers along an axis, from the smallest up, or from the largest down; equal ones in order."""
    x = as_tensor(x)
    array = x.numpy()
    places = np.argsort(-array if descending and array.dtype != bool else array, axis, kind="stable")
    return as_tensor(places)


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


def ranked(x, axis=-1, descending=False):
    """The numbers of x[…, n, …] along an axis, from the smallest up, or from the largest down, and the places of each, int64."""
    places = argsort(x, axis, descending)
    return Found(take_along(x, places, axis), places)


def sort(x, axis=-1, descending=False):
    """The numbers of x[…, n, …] along an axis, from the smallest up, or from the largest down."""
    return ranked(x, axis, descending).values


def top_k(x, k=1, axis=-1, largest=True):
    """The k largest numbers of x[…, n, …] along an axis, the largest first, or the smallest, and their places, int64."""
    x = as_tensor(x)
    axis = axis_of("top_k", axis, len(x.spec.shape))
    return Found(*(_cut(each, axis, 0, k) for each in ranked(x, axis, largest)))


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


def flip(x, axis):
    """x[…, n, …] with the order along an axis, or along each of several, reversed."""
    x = as_tensor(x)
    for each in axis if isinstance(axis, list | tuple) else (axis,):
        each = axis_of("flip", each, len(x.shape))
        x = take(x, np.arange(x.shape[each])[::-1].copy(), each)
    return x


def diag(x):
    """The diagonal of a matrix x[m, n] -> [min(m, n)], or of x[n] a matrix with it, and 0 elsewhere. (NumPy's `diag`.)"""
    x = as_tensor(x)
    if len(x.spec.shape) == 1:
        return x * np.eye(x.spec.shape[0], dtype=x.dtype)
    rows = np.arange(min(x.spec.shape))
    return gather(reshape(x, (-1,)), rows * x.spec.shape[1] + rows)


def cosine_similarity(x, y, axis=-1):
    """Σ x·y / (‖x‖·‖y‖) of floats along an axis: the cosine of the angle between them; for one without a length it is 0."""
    lengths = [maximum(norm(z, 2, axis), 1e-8) for z in (x, y)]
    return reduce_sum(x * y, axis) / (lengths[0] * lengths[1])

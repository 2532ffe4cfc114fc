"""Tensors joined, cut and stretched in other ways: each is made of moves that are there already, and so is its gradient."""

import itertools
import math

import numpy as np

from levels.low_level import Operators, as_tensor, gather
from levels_more.checks import axis_of, expect, several
from levels_more.low_level.ops import concat, reshape, transpose


def expand_dims(x, axis):
    """x with a new axis of one at that place: [a, b] becomes [a, 1, b] with axis=1. Raises ValueError for no place."""
    x = as_tensor(x)
    shape = list(x.spec.shape)
    shape.insert(axis_of("expand_dims", axis, len(shape) + 1), 1)
    return reshape(x, shape)


def squeeze(x, axis=None):
    """x without its axes of one, or without this one of them: [a, 1, b] becomes [a, b].

    Raises ValueError for an axis of another size.
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
    """Tensors of one shape, side by side along a new axis: n of [a, b] become [n, a, b].

    Raises ValueError for several shapes, or for none at all.
    """
    like = next((x for x in several("stack: values", values, "a list of tensors") if isinstance(x, Operators)), None)
    values = [as_tensor(x, like) for x in values]
    shapes = list(dict.fromkeys(x.spec.shape for x in values))
    if len(shapes) != 1:
        raise ValueError(f"stack: got {len(values)} tensors of the shapes {shapes[:3]}; expected one shape")
    return concat([expand_dims(x, axis) for x in values], axis)


def split(x, parts, axis=0):
    """A list of tensors that x is cut into along an axis: so many equal ones, or a list of their sizes.

    Raises ValueError where these do not add up to the axis.
    """
    x = as_tensor(x)
    axis = axis_of("split", axis, len(x.spec.shape))
    size = x.spec.shape[axis]
    each = parts if isinstance(parts, list | tuple) else [parts]
    for n in each:
        expect(isinstance(n, int | np.integer) and not isinstance(n, bool), "split: parts", parts, "whole numbers")
    if each is not parts:
        each = [size // parts] * int(parts) if 0 < parts <= max(1, size) else []
    if sum(each) != size or not each or min(each) < 0:
        raise ValueError(f"split: {parts!r:.60} for an axis of {size}; expected a number that divides it, or sizes")
    ends = [0, *itertools.accumulate(each)]
    return [x[(slice(None),) * axis + (slice(*pair),)] for pair in itertools.pairwise(ends)]


def pieces(x, size, axis=0):
    """A tuple of tensors that x is cut into along an axis, each of that size; the last one is what is left."""
    x = as_tensor(x)
    axis = axis_of("pieces", axis, len(x.spec.shape))
    n = x.spec.shape[axis]
    whole = isinstance(size, int) and not isinstance(size, bool) and size > 0
    expect(whole, "pieces: size", size, "a whole number from 1 on")
    return tuple(split(x, [min(size, n - k) for k in range(0, n, size)] or [0], axis))


def take(x, rows, axis=0):
    """x along an axis by number: x[…, rows[i], …] for each i, as in NumPy. (`gather`, along another axis than the first.)

    Raises TypeError unless the rows are int, IndexError for one that x has not, ValueError for no axis.
    """
    x = as_tensor(x)
    axes = len(x.spec.shape)
    axis = axis_of("take", axis, axes)
    if axis == 0:
        return gather(x, rows)
    order = [axis, *range(axis), *range(axis + 1, axes)]
    y = gather(transpose(x, order), rows)
    new = len(y.spec.shape) - axes + 1  # the axes of the rows now stand in front, and go to their place
    return transpose(y, [*range(new, new + axis), *range(new), *range(new + axis, new + axes - 1)])


def tile(x, counts):
    """x, so many times along each of its last axes: [a, b] with counts (2, 3) becomes [2·a, 3·b]. (As in NumPy.)

    Raises TypeError unless these are whole numbers, ValueError for a count below 1.
    """
    x, counts = as_tensor(x), several("tile: counts", counts, "a list of whole numbers")
    x = reshape(x, (1,) * (len(counts) - len(x.spec.shape)) + x.spec.shape)
    for axis, count in enumerate(counts, len(x.spec.shape) - len(counts)):
        if expect(isinstance(count, int | np.integer), "tile: a count", count, "a whole number") < 1:
            raise ValueError(f"tile: counts are {counts!r:.60}; expected whole numbers from 1 on")
        x = concat([x] * int(count), axis)
    return x


def pick(x, index):
    """x[index] as in NumPy, lists, arrays and tensors of row numbers or bools among its parts, by which numbers are copied.

    Raises IndexError for places that x has not, and what x[index] raises.
    """
    x, parts = as_tensor(x), index if isinstance(index, tuple) else (index,)
    if not any(isinstance(part, Operators | list | np.ndarray) for part in parts):
        return x[index]
    parts = tuple(p.numpy() if isinstance(p, Operators) else np.asarray(p) if isinstance(p, list) else p for p in parts)
    if len(parts) == 1 and parts[0].dtype.kind == "i" and x.spec.shape:
        return gather(x, np.where(parts[0] < 0, parts[0] + x.spec.shape[0], parts[0]))
    places = np.arange(math.prod(x.spec.shape)).reshape(x.spec.shape)[parts]
    return gather(reshape(x, (-1,)), places)

"""Tensors joined, cut and stretched in other ways: each is made of moves that are there already, and so is its gradient."""

import itertools

import numpy as np

from levels.low_level import Operators, as_tensor, gather
from levels_more.checks import expect, several
from levels_more.tensor_ops import concat, reshape, transpose


def _axis_of(name, axis, axes):
    """The axis, counted from the front. Raises TypeError for no whole number, ValueError where there is no such axis."""
    whole = isinstance(axis, int | np.integer) and not isinstance(axis, bool)
    expect(whole, f"{name}: axis", axis, "a whole number")
    if not -axes <= axis < axes:
        raise ValueError(f"{name}: axis {axis} is not one of {axes} axes")
    return int(axis) % axes


def expand_dims(x, axis):
    """x with a new axis of one at that place: [a, b] becomes [a, 1, b] with axis=1. Raises ValueError for no place."""
    x = as_tensor(x)
    shape = list(x.spec.shape)
    shape.insert(_axis_of("expand_dims", axis, len(shape) + 1), 1)
    return reshape(x, shape)


def squeeze(x, axis=None):
    """x without its axes of one, or without this one of them: [a, 1, b] becomes [a, b].

    Raises ValueError for an axis of another size.
    """
    x = as_tensor(x)
    shape = x.spec.shape
    if axis is None:
        return reshape(x, [size for size in shape if size != 1])
    axis = _axis_of("squeeze", axis, len(shape))
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
    axis = _axis_of("split", axis, len(x.spec.shape))
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


def take(x, rows, axis=0):
    """x along an axis by number: x[…, rows[i], …] for each i, as in NumPy. (`gather`, along another axis than the first.)

    Raises TypeError unless the rows are int, IndexError for one that x has not, ValueError for no axis.
    """
    x = as_tensor(x)
    axes = len(x.spec.shape)
    axis = _axis_of("take", axis, axes)
    if axis == 0:
        return gather(x, rows)
    order = [axis, *range(axis), *range(axis + 1, axes)]
    y = gather(transpose(x, order), rows)
    new = len(y.spec.shape) - axes + 1  # the axes of the rows now stand in front, and go to their place
    return transpose(y, [*range(new, new + axis), *range(new), *range(new + axis, new + axes - 1)])

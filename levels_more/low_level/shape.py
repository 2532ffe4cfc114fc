"""Other shapes and other rows: each function is made of moves that are there already, and so is its gradient."""

import math

import numpy as np

from levels.low_level import Operators, as_tensor, gather
from levels_more.checks import axis_of, several
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


def take(x, rows, axis=0):
    """x along an axis by number: x[…, rows[i], …] for each i, as in NumPy. (`gather` does so along the first axis.)

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


def fancy_index(x, index):
    """x[index] as in NumPy. Lists, arrays and tensors of row numbers or bools may be among its parts.

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

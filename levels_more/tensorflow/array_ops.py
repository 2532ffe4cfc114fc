"""Functions of what stands where in a tensor, by TensorFlow's rules: parts, updates at places, numbers before and behind."""

import math
from typing import NamedTuple

import numpy as np

from levels import low_level as low
from levels_more.checks import expect
from levels_more.tensorflow.nested import numbers
from levels_more.tensorflow.op_arguments import alike


def part(x, begin, size):
    """The part of a tensor x that begins at these places [axes] and has these sizes; -1 is all that is left."""
    ends = [None if n == -1 else b + n for b, n in zip(map(int, begin), map(int, size), strict=True)]
    return numbers(x)[tuple(map(slice, map(int, begin), ends))]


def scatter_nd(indices, updates, shape):
    """Zeros in that shape, and each of the updates added at its place of `indices` [places, axes], whole numbers."""
    places, updates, shape = np.asarray(indices), numbers(updates), tuple(map(int, shape))
    axes = places.shape[-1]
    rows = np.ravel_multi_index(tuple(np.moveaxis(places, -1, 0)), shape[:axes]).ravel()
    updates = low.reshape(updates, (len(rows), *shape[axes:]))
    y = low.apply("scatter_add", updates, rows, count=math.prod(shape[:axes]))
    return low.reshape(y, shape)


def updated(x, indices, updates):
    """A tensor x with other numbers, `updates`, at the places of `indices` [places, axes]."""
    x, updates = alike(x, updates)
    free = scatter_nd(indices, low.ones_like(updates), x.shape) == 0
    return low.where(free, x, scatter_nd(indices, updates, x.shape))


def added(x, indices, updates):
    """A tensor x, and each of the updates added at its place of `indices` [places, axes]."""
    x, updates = alike(x, updates)
    return x + scatter_nd(indices, updates, x.shape)


class Unique(NamedTuple):
    """What stands in a row of numbers, each once, and for each number of the row which of them it is."""

    y: object
    idx: object


def unique(x):
    """The numbers of a tensor x [count], each once, in the order in which they come, and for each which of them it is: (y, idx)."""
    values, first, idx = np.unique(np.asarray(x), return_index=True, return_inverse=True)
    order = np.argsort(first)
    return Unique(numbers(values[order]), numbers(np.argsort(order)[idx.ravel()]))


def flipped(x, axis):
    """A tensor x with the order along these axes [a list] turned round."""
    for one in np.atleast_1d(np.asarray(axis)):
        x = low.flip(numbers(x), int(one))
    return x


def padded(x, paddings, mode="CONSTANT", constant_values=0):
    """A tensor x with so many numbers before and behind along each axis: paddings [axes, 2]. Raises TypeError for another mode."""
    expect(mode == "CONSTANT", "pad: mode", mode, "'CONSTANT'")
    x = numbers(x)
    for axis, sizes in enumerate(np.asarray(paddings).tolist()):
        shapes = [(*x.shape[:axis], size, *x.shape[axis + 1 :]) for size in sizes]
        first, last = (numbers(np.full(shape, constant_values), x.dtype) for shape in shapes)
        x = low.concat([first, x, last], axis)
    return x


def meshgrid(*xs, indexing="xy"):
    """Rows of numbers as tensors that have an axis for each: a list."""
    return [numbers(np.ascontiguousarray(x)) for x in np.meshgrid(*map(np.asarray, xs), indexing=indexing)]


def rolled(x, shift, axis):
    """A tensor x whose parts along an axis have moved by so many places; what leaves it at one end enters at the other."""
    x = numbers(x)
    places = (np.arange(x.shape[int(axis)]) - int(shift)) % x.shape[int(axis)]
    return low.take(x, places, int(axis))


def squeezed(x, axis=None):
    """A tensor x without its axes of size 1, or without this one, or these [a list]."""
    for one in [axis] if axis is None or isinstance(axis, int) else sorted(axis, reverse=True):
        x = low.squeeze(x, one)
    return x


PLACES = {
    "roll": rolled,
    "squeeze": squeezed,
    "meshgrid": meshgrid,
    "pad": padded,
    "reverse": flipped,
    "scatter_nd": scatter_nd,
    "slice": part,
    "tensor_scatter_nd_add": added,
    "tensor_scatter_nd_update": updated,
    "unique": unique,
}

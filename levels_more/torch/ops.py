"""Functions of level 3 with PyTorch's arguments, not yet recorded: `levels_more.torch.functions` wraps them."""

import functools
import math
import operator

import numpy as np

from levels_more import low_level as low
from levels_more.checks import as_tuple, axis_of, expect, index_of
from levels_more.low_level.math import without_gradient
from levels_more.torch.dtypes import beside, floats
from levels_more.torch.graph import RENAMED


def sizes_of(sizes):
    """Return the shape in an argument list: f(2, 3) or f((2, 3)). Raises TypeError for sizes that are not integers."""
    found = as_tuple(sizes[0]) if len(sizes) == 1 else sizes
    return tuple(index_of("a size", size) for size in (found if isinstance(found, tuple) else (found,)))


def with_torch_arguments(function):
    """Return a version of a function that takes PyTorch's argument names."""

    @functools.wraps(function, updated=())
    def run(*args, **options):
        first = [options.pop("input")] if "input" in options else []
        return function(*first, *args, **{RENAMED.get(name, name): x for name, x in options.items()})

    return run


def extreme(function, ranked):
    """Return a function for max(x), and for max(x, dim) -> (values, indices)."""
    return lambda x, axis=None, keepdims=False: function(x) if axis is None else ranked(x, axis, keepdims)


def of_truths(function):
    """Return a version of a function of bools for any numbers x[…]: a number is true unless it is 0."""
    return lambda x, *args, **how: function(x if x.dtype == bool else x != 0, *args, **how)


def expand(x, *sizes):
    """Return x[…] broadcast to a larger shape, in which -1 keeps the size of an axis."""
    before = (1,) * (len(sizes_of(sizes)) - len(x.shape)) + x.shape
    return low.broadcast_to(x, [n if size == -1 else size for size, n in zip(sizes_of(sizes), before, strict=False)])


def along(function):
    """Return softmax or log_softmax with PyTorch's axis if none is given: 0 for 0, 1 or 3 axes, else 1."""
    return lambda x, axis=None: function(x, axis if axis is not None else 0 if len(x.shape) in (0, 1, 3) else 1)


def flatten(x, start_dim=0, end_dim=-1):
    """Return x[…] with the axes from start_dim to end_dim merged. Raises ValueError if end_dim is before start_dim."""
    first, last = (axis_of("flatten", axis, max(1, len(x.shape))) for axis in (start_dim, end_dim))
    if first > last:
        raise ValueError(f"flatten: end_dim is {end_dim}; expected start_dim, {start_dim}, or a later axis")
    return low.reshape(x, (*x.shape[:first], math.prod(x.shape[first : last + 1]), *x.shape[last + 1 :]))


def clamp(x, min=None, max=None):
    """Return x[…] limited to two bounds, each a number, a tensor or None.

    An x at a bound that is a number gets no gradient. A bound that is a tensor shares it: half for each of the two.
    (So since PyTorch 2.14. Up to 2.13, such an x got the whole gradient.)
    """
    if min is not None:
        x = _bounded(*beside(x, min), low.maximum, operator.gt)
    return x if max is None else _bounded(*beside(x, max), low.minimum, operator.lt)


def _bounded(x, bound, nearer, inside):
    """Return nearer(x, bound) with the gradient of `clamp`. inside(x, bound): whether x is not limited."""
    if not hasattr(bound, "dtype"):
        return low.where(inside(x, bound), x, low.stop_gradient(nearer(x, bound)))
    if x.dtype.kind != "f":
        return nearer(x, bound)
    whole = low.where(low.logical_or(inside(x, bound), x != x), x, bound)  # NaN stays, with its gradient
    return low.where(x == bound, 0.5 * x + 0.5 * bound, low.where(bound == bound, whole, bound))


def put(x, value, index):
    """Return x[…] with `value` at a NumPy index, gathered from x and `value` in one row, so that both get gradients."""
    places = np.arange(math.prod(x.shape))
    there = places.reshape(x.shape)[index]
    value = low.broadcast_to(low.as_tensor(value, x), there.shape)
    places[there] = len(places) + np.arange(there.size).reshape(there.shape)
    row = low.concat([low.reshape(x, (-1,)), low.reshape(value, (-1,))])
    return low.reshape(low.gather(row, places), x.shape)


def over(function):
    """Return a version of a reduction of x[…] that also takes several axes, and reduces them one after another."""

    def run(x, axis=None, keepdims=False):
        if not isinstance(axis, list | tuple):
            return function(x, axis, keepdims)
        axes = sorted({axis_of("dim", each, len(x.shape)) for each in axis}, reverse=True)
        if len(axes) != len(axis):
            raise ValueError(f"dim is {axis}; expected each axis once")
        for each in axes or [None]:  # none of them stands for all, as in PyTorch
            x = function(x, each, keepdims)
        return x

    return run


def div(x, y):
    """x / y, as floats."""
    x, y = beside(x, y)
    return floats(x) / floats(y)


def where(mask, *pair):
    """Return x where mask[…] is true, else y; without x and y the indices where it is true, a tensor for each axis."""
    return low.where(mask, *beside(*pair)) if pair else without_gradient(np.nonzero)(mask)


def power(x, y):
    """Return x[…] to the power of y, numbers or tensors. Integers stay integers.

    Raises ValueError for integers to a negative power, TypeError for two bools.
    """
    if isinstance(y, int) and y == 2:
        return x * x
    x, y = beside(x, y)
    arrays = [z.numpy() if hasattr(z, "shape") else np.asarray(z) for z in (x, y)]
    if any(array.dtype.kind == "f" for array in arrays):
        return x**y
    expect(arrays[0].dtype.kind == "i", "pow: the dtype", arrays[0].dtype, "numbers; make numbers of bools first")
    if (arrays[1] < 0).any():
        raise ValueError("pow: whole numbers to a power below 0; make floats of them first")
    return without_gradient(np.power)(x, y)

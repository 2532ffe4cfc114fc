"""Indexing of tensors, `x[index]`, with integers, slices and masks."""

import math
import reprlib

import numpy as np

from levels.low_level import OPERATORS, Operators, apply, as_tensor, gather
from levels_more.low_level.ops import _bools, reshape


def _without_dots(index, shape):
    """Return the index with a `slice(None)` for each axis that its `...`, or else its end, leaves out."""
    index = index if isinstance(index, tuple) else (index,)
    missing = len(shape) - sum(part is not None and part is not Ellipsis for part in index)
    dots = [n for n, part in enumerate(index) if part is Ellipsis] or [len(index)]
    if missing < 0 or len(dots) > 1:
        raise IndexError(f"index {reprlib.repr(index)} has too many parts for shape {shape}")
    return (*index[: dots[0]], *[slice(None)] * missing, *index[dots[0] + 1 :])


def slice_of(x, index):
    """Return x[index] for integers, slices, `...` and `None`, as in NumPy, or for one mask: a tensor or array of bools.

    An integer may be a tensor. Raises IndexError if the index does not fit x, TypeError for any other kind of index.
    """
    x = as_tensor(x)
    if isinstance(index, (Operators, np.ndarray)) and index.dtype == bool and index.shape:
        return boolean_mask(x, index)
    sizes = iter(x.spec.shape)
    slices = []
    shape = []
    for part in _without_dots(index, x.spec.shape):
        if getattr(part, "shape", None) == () and part.dtype.kind == "i":
            part = int(part)
        size = 1 if part is None else next(sizes)
        if isinstance(part, slice):
            slices.append((part.start, part.stop, part.step))
            shape.append(len(range(*part.indices(size))))
        elif part is None:
            shape.append(1)
        elif isinstance(part, (int, np.integer)) and not isinstance(part, bool):
            if not -size <= part < size:
                raise IndexError(f"index {reprlib.repr(part)} is out of range for an axis of {size}")
            slices.append((part % size, part % size + 1, 1))
        else:
            cure = "for rows by number there is gather; a mask stands alone"
            raise TypeError(f"index {reprlib.repr(part)}: expected integers and slices; {cure}")
    y = apply("slice", x, slices=tuple(slices))
    return y if y.spec.shape == tuple(shape) else apply("reshape", y, shape=tuple(shape))


OPERATORS["[]"] = slice_of


def boolean_mask(x, mask):
    """Return, in order, the rows or numbers of x[n, …] where the mask is true. It has x's shape, or its first axes.

    Raises TypeError unless the mask holds bools, and in a traced function, where the shape of the result is not known.
    Raises IndexError if the shapes do not fit.
    """
    x = as_tensor(x)
    mask = _bools("mask", mask)
    shape = mask.spec.shape
    given = x.spec.shape
    if not shape or given[: len(shape)] != shape:
        raise IndexError(f"the mask has shape {shape}, and x {given}; expected a bool for each row, or for each number")
    rows = x if len(shape) == 1 else reshape(x, (math.prod(shape), *given[len(shape) :]))
    return gather(rows, np.flatnonzero(mask.numpy()))

"""Memory that several tensors share, as in NumPy and PyTorch.

A change of one of these tensors changes all of them. A tensor of `levels` is immutable, so a mutable tensor refers to
one of them after another. A view keeps the function that made it, and calls it again when its base refers to a new
tensor. Applied to the positions 0, 1, 2, …, the same function gives the positions of the view's numbers in memory.
"""

import math

import numpy as np

from levels.support.storage import alias
from levels_more import low_level


def _steps(offsets):
    """Return the stride along each axis of these whole numbers, or None if one is not constant. () for no numbers."""
    if not offsets.size:
        return ()
    origin = (0,) * offsets.ndim
    ahead = [origin[:k] + (1,) + origin[k + 1 :] for k in range(offsets.ndim)]
    steps = [int(offsets[at] - offsets[origin]) if n > 1 else 0 for at, n in zip(ahead, offsets.shape, strict=True)]
    regular = offsets[origin] + sum(step * k for step, k in zip(steps, np.indices(offsets.shape), strict=True))
    return steps if np.array_equal(regular, offsets) else None


def _strided(array, places):
    """Return a view of an array: its numbers at these places, which count its numbers row by row.

    If no strides lead to them, as in a flattened view of a transposed array, return a copy that cannot be written to.
    """
    if not places.size:
        return np.empty(places.shape, array.dtype)
    index = np.unravel_index(places, array.shape)
    offsets = np.zeros(places.shape, int) + sum(k * step for k, step in zip(index, array.strides, strict=True))
    if (steps := _steps(offsets)) is None:
        copy = array.reshape(-1)[places]
        copy.flags.writeable = False
        return copy
    repeated = any(step == 0 and size > 1 for step, size in zip(steps, places.shape, strict=True))
    begin = tuple(slice(k.flat[0], None) for k in index)
    return np.lib.stride_tricks.as_strided(array[begin], places.shape, steps, writeable=not repeated)


class _Memory:
    """The numbers: `held`, a tensor of `levels`, and `array`, the NumPy array that code outside shares, or None."""

    def __init__(self, held):
        self.held = held
        self.array = None

    def read(self):
        """Return the current numbers. Code outside may have written to the array."""
        if self.array is not None and self.array.tobytes() != self.held.numpy().tobytes():
            self.held = low_level.constant(self.array)
        return self.held

    def shared(self):
        """Return a NumPy array that shares these numbers from now on."""
        if self.array is None:
            self.array = self.held.numpy()
        return self.array


class Viewing:
    """A tensor over a memory: the whole of it, which may be shared, or a view, `move(base)`, of another tensor.

    A subclass defines `of(held)`, which returns a new tensor over a new memory.
    """

    def __init__(self, held):
        self.memory = _Memory(held)
        self.base = None
        self.move = self.seen = None
        self.own = None  # if the memory is shared: (the last `held`, a separate tensor of the same numbers)

    @property
    def held(self):
        """The current numbers, a tensor of `levels`."""
        if self.base is None:
            return self.memory.read()
        now = self.base.held
        if now is not self.seen:
            self.recompute()
            self.seen = now
        return self.memory.held

    def named(self):
        """Return the numbers as a tensor that belongs to this object alone. (A tape identifies tensors by object.)"""
        held = self.held
        if self.own is None:
            return held
        if self.own[0] is not held:
            self.own = held, alias(held)
        return self.own[1]

    root = property(lambda self: self if self.base is None else self.base.root, doc="The tensor under all views.")
    shape = property(lambda self: self.held.shape)
    dtype = property(lambda self: self.held.dtype)

    def recompute(self):
        """Compute the numbers again from `base`, which has changed."""
        self.memory.held = self.move(self.base).held

    def refer_to(self, other):
        """Share the memory of another tensor from now on. Return self."""
        self.memory = other.memory
        self.base = other.base
        self.move = other.move
        self.seen = other.seen
        self.own = None, None
        return self

    def become_view(self, base, move):
        """Become the view `move(base)`: all numbers of `base`, or some of them, in another shape.

        Stay a copy if the numbers have no constant stride along an axis, as in a flattened transposed matrix.
        """
        self.base = base
        self.move = move
        self.seen = base.held
        if (
            base.base is not None
            and math.prod(self.memory.held.shape) == math.prod(self.seen.shape)
            and not self.even()
        ):
            self.base = None

    def _places(self):
        """Return the positions of these numbers in the memory under all views: whole numbers in this shape."""
        if self.base is not None:
            counted = self.base.of(low_level.constant(self.base._places()))
            return self.move(counted).held.numpy()
        return np.arange(math.prod(self.shape)).reshape(self.shape)

    def even(self):
        """Return whether these numbers have a constant stride along each axis, as a view of an array needs."""
        return _steps(self._places()) is not None

    def array(self):
        """Return a NumPy array that shares the memory: a change of one is a change of the other."""
        shared = self.root.memory.shared()
        return shared if self.root is self else _strided(shared, self._places())

    def write(self, held):
        """Overwrite the numbers with others of the same shape and dtype, for all tensors that share the memory."""
        if self.base is not None:
            self.array()[...] = held.numpy()
            return
        self.memory.held = held
        if self.memory.array is not None:
            self.memory.array[...] = held.numpy()


def only_view(function):
    """Return a version of a function that raises RuntimeError if its result is a copy and not a view."""

    def view(x, *args):
        y = function(x, *args)
        if y is not x and y.base is None:
            raise RuntimeError(f"view: the numbers {tuple(x.shape)} do not lie in even steps for that; use reshape")
        return y

    return view

"""A memory that several tensors look at, as in NumPy and PyTorch; and a file that holds tensors and numbers.

A change of one of these tensors is seen in all of them.

A tensor of `levels` never changes. So a tensor that does names one after the other; a view keeps the function that made
it, and asks it again when the tensor it looks at names another one. Sent through numbers 0, 1, 2, … the same function
tells where the view's own numbers lie.
"""

import io
import json
import math
from pathlib import Path

import numpy as np

from levels.support.storage import renamed
from levels_more import low_level
from levels_more.checks import expect, file_name
from levels_more.saving.files import write_aside


def _strided(array, places):
    """The numbers of a contiguous array at these places, as a view of it, if they lie in even steps along each axis."""
    if not places.size:
        return np.empty(places.shape, array.dtype)
    first = places[(0,) * places.ndim]
    ahead = [(0,) * k + (1,) + (0,) * (places.ndim - k - 1) for k in range(places.ndim)]
    steps = [
        (places[at] - first) * array.itemsize if size > 1 else 0 for at, size in zip(ahead, places.shape, strict=True)
    ]
    repeated = any(step == 0 and size > 1 for step, size in zip(steps, places.shape, strict=True))
    rows = array.reshape(-1)[first:]
    return np.lib.stride_tricks.as_strided(rows, places.shape, steps, writeable=not repeated)


class _Memory:
    """Numbers: `held`, a tensor of `levels`, and the array of NumPy that somebody outside knows them by, if any."""

    def __init__(self, held, array=None):
        self.held, self.array = held, array

    def read(self):
        """The numbers as they are now: somebody may have written to the array."""
        if self.array is not None and self.array.tobytes() != self.held.numpy().tobytes():
            self.held = low_level.constant(self.array)
        return self.held

    def shared(self):
        """The array, which from now on belongs to these numbers."""
        if self.array is None:
            self.array = self.held.numpy()
        return self.array


class Viewing:
    """Looks at a memory: at a whole one, its own or another's, or through `move` at what `base` looks at.

    A class of it has `of(held)`: another one that looks at a memory of its own.
    """

    def __init__(self, held, array=None):
        self.memory, self.base = _Memory(held, array), None
        self.move = self.seen = None
        self.own = None  # the last numbers, and the name they have here, where another one looks at them, too

    @property
    def held(self):
        """The numbers as they are now, a tensor of `levels`."""
        if self.base is None:
            return self.memory.read()
        now = self.base.held
        if now is not self.seen:
            self.look_again()
            self.seen = now
        return self.memory.held

    def named(self):
        """The numbers, as a tensor that nobody else is known by. (A tape knows a tensor by its identity.)"""
        held = self.held
        if self.own is None:
            return held
        if self.own[0] is not held:
            self.own = held, renamed(held)
        return self.own[1]

    root = property(lambda self: self if self.base is None else self.base.root, doc="Whose memory it looks at.")
    shape = property(lambda self: self.held.shape)
    dtype = property(lambda self: self.held.dtype)

    def look_again(self):
        """Make the numbers anew from those of `base`, which were changed."""
        self.memory.held = self.move(self.base).held

    def look_at(self, other):
        """From now on look at the numbers that another one looks at."""
        self.memory, self.base = other.memory, other.base
        self.move, self.seen = other.move, other.seen
        self.own = None, None
        return self

    def look_through(self, base, move):
        """From now on look at what `move` makes of `base`: the same numbers, or some of them, in another shape.

        It remains a copy where its numbers do not lie in even steps, as those of a transposed matrix put in one row.
        """
        self.base, self.move, self.seen = base, move, base.held
        if (
            base.base is not None
            and math.prod(self.memory.held.shape) == math.prod(self.seen.shape)
            and not self.even()
        ):
            self.base = None

    def _places(self):
        """Where these numbers lie in the memory that all of this looks at in the end: whole numbers in this shape."""
        if self.base is not None:
            counted = self.base.of(low_level.constant(self.base._places()))
            return self.move(counted).held.numpy()
        return np.arange(math.prod(self.shape)).reshape(self.shape)

    def even(self):
        """Whether these numbers lie in even steps along each axis, so that a view can look at them."""
        places = self._places()
        return np.array_equal(_strided(np.arange(places.max(initial=0) + 1), places), places)

    def array(self):
        """The numbers as an array of NumPy that shares their memory: what is written to one is found in the other."""
        shared = self.root.memory.shared()
        return shared if self.root is self else _strided(shared, self._places())

    def write(self, held):
        """Put numbers of the same shape and dtype in the place of these, for all who look at them."""
        if self.base is not None:
            self.array()[...] = held.numpy()
            return
        self.memory.held = held
        if self.memory.array is not None:
            self.memory.array[...] = held.numpy()


_TREE = "tree"


def _written(value, arrays):
    """What JSON can hold of a value; tensors go to `arrays`. Raises TypeError for what can be neither."""
    if isinstance(value, Viewing):
        arrays.append(value.held.numpy())
        return {"leaf" if value.requires_grad else "tensor": str(len(arrays) - 1)}
    if isinstance(value, dict):
        return {"dict": [[_written(key, arrays), _written(each, arrays)] for key, each in value.items()]}
    if isinstance(value, list | tuple):
        kind = "list" if isinstance(value, list) else "tuple"  # also of one's own kind, as a shape is
        return {kind: [_written(each, arrays) for each in value]}
    value = value.item() if isinstance(value, np.generic) else value
    plain = value is None or isinstance(value, bool | int | float | str)
    return expect(
        plain, "save: a part", value, "tensors, numbers, texts, dicts and lists; of a model, its state_dict()"
    )


def _read(value, make):
    """The value again; `make(array)` for each tensor."""
    if not isinstance(value, dict):
        return value
    ((what, inside),) = value.items()
    if what in ("tensor", "leaf"):
        return make(inside).requires_grad_(what == "leaf")
    if what == "dict":
        return {_read(key, make): _read(each, make) for key, each in inside}
    return (tuple if what == "tuple" else list)(_read(each, make) for each in inside)


def save(tree, path):
    """Write tensors, numbers and texts, in dicts and lists of any depth, to a file. Raises TypeError for others."""
    arrays, buffer = [], io.BytesIO()
    text = json.dumps(_written(tree, arrays))
    np.savez(buffer, **{_TREE: np.array(text)}, **{str(k): array for k, array in enumerate(arrays)})
    if hasattr(path, "write"):
        path.write(buffer.getvalue())
        return
    write_aside(
        Path(file_name("save: path", path)), buffer.getvalue()
    )  # what was there stays until the new file is whole


def load(path, make):
    """What `save` wrote, each tensor as `make(array)`. Raises ValueError, or FileNotFoundError."""
    data = path.read() if hasattr(path, "read") else Path(path).read_bytes()
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as stored:
            return _read(json.loads(str(stored[_TREE])), lambda key: make(stored[key]))
    except (ValueError, KeyError, OSError, EOFError) as error:
        raise ValueError(f"load: {path} was not written by `save` here, or is damaged ({error})") from error

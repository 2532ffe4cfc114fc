"""Data that arrives in batches: in memory, a dataset is a recipe for row numbers."""

# Built from 04_mid_level.ipynb: edit there, then run its last cell.

import functools
import itertools
import reprlib

import numpy as np

from levels import more, plugged
from levels.hardware import flag
from levels.low_level import DTYPES, Operators, constant, gather

from .layers import RANDOM, WIDER, at_least, wider


def batched(rows, size, drop_remainder=False):
    """Row numbers [rows] -> [batches, size]; a list, where the last batch is shorter and is not dropped."""
    full = len(rows) // size * size
    batches = rows[:full].reshape(-1, size)
    return batches if drop_remainder or full == len(rows) else [*batches, rows[full:]]


class _Plugged(type):
    """The type of a class that looks up what it lacks, such as `Dataset.from_csv`."""

    def __getattr__(cls, name):
        if name.startswith("_") or more("method", f"Dataset.{name}") is None:
            raise AttributeError(f"Dataset has no attribute {name!r}")
        return getattr(WIDER[Dataset], name)


class _Rows(metaclass=_Plugged):
    """Rows of `arrays`, to go through as often as wished: `make()` gives the row numbers of a new pass.

    They are an array [rows] or, in `batches`, [steps, batch], or a list of arrays.
    """

    def __init__(self, stage, make, length, arrays, batches=False, before=()):
        self.stage, self.make, self.length = stage, make, length
        self.arrays, self.batches = arrays, batches
        self.stages = [*before, self]  # the way from the source to here

    def __getattr__(self, name):
        return functools.partial(_Plugged.__getattr__(Dataset, name), self)  # such as `map`

    def __len__(self):
        return self.length

    def __iter__(self):
        for rows in self.make():
            rows = constant(rows, np.int64)
            several = isinstance(self.arrays, tuple)
            yield tuple(gather(x, rows) for x in self.arrays) if several else gather(self.arrays, rows)

    in_memory = property(lambda self: self.batches)  # whether there are `rows`

    def rows(self):
        """A new pass for `function(step).over(*arrays, batches)`. Raises TypeError without batches."""
        if not self.in_memory:
            reason = "gives no batches of row numbers; go through the dataset in a loop"
            raise TypeError(f"rows: {self.stage} {reason}")
        return self.arrays if isinstance(self.arrays, tuple) else (self.arrays,), self.make()

    def __repr__(self):
        return " → ".join(data.stage for data in self.stages)


class Dataset(_Rows):
    """Rows of arrays, shuffled and in batches, as in `tf.data`."""

    @classmethod
    def from_tensor_slices(cls, tensors):
        """The rows of an array, or of all the arrays of a tuple. Raises ValueError unless all have as many."""
        parts = tensors if isinstance(tensors, tuple) else (tensors,)
        if not all(isinstance(x, (Operators, np.ndarray)) and x.dtype in DTYPES for x in parts):
            return wider(cls, "expected an array of numbers, or a tuple of arrays").from_tensor_slices(tensors)
        counts = [x.shape[0] if x.shape else 0 for x in parts]
        if len({*counts}) != 1 or not counts[0]:
            raise ValueError(f"arrays of {counts} rows; expected as many in each, and at least one")
        arrays = tuple(map(constant, parts)) if parts is tensors else constant(tensors)
        return cls("from_tensor_slices", lambda: np.arange(counts[0]), counts[0], arrays)

    @classmethod
    def from_batches(cls, x, y, batches):
        """One batch (x, y) for each row of `batches`, row numbers [steps, batch]. Raises ValueError for what is none."""
        try:
            rows = np.asarray(batches)
        except ValueError:
            return wider(cls, "expected batches of one size").from_batches(x, y, batches)
        if rows.ndim != 2 or rows.dtype.kind != "i" or not rows.size or rows.min() < 0:
            given = reprlib.repr(batches)
            raise ValueError(f"from_batches: expected row numbers [steps, batch] from 0 on, got {given}")
        return cls("from_batches", lambda: rows, len(rows), cls.from_tensor_slices((x, y)).arrays, True)

    def shuffle(self, buffer_size, seed=None, reshuffle_each_iteration=True):
        """In random order, another one in each pass; a seed repeats them, pass by pass."""
        n = at_least(1, "shuffle: buffer_size", buffer_size)
        seed = RANDOM.getrandbits(32) if seed is None else at_least(0, "shuffle: seed", seed)
        if n < len(self):
            reason = f"{len(self)} rows do not fit into a buffer of {n}"
            return wider(Dataset, reason).shuffle(self, n, seed, reshuffle_each_iteration)
        again = flag("shuffle: reshuffle_each_iteration", reshuffle_each_iteration)
        passes = itertools.count() if again else itertools.repeat(0)

        def make():
            rows, number = self.make(), next(passes)
            order = np.random.RandomState(np.random.PCG64([seed, number])).permutation(len(rows))
            return rows[order] if isinstance(rows, np.ndarray) else [rows[k] for k in order]

        return type(self)(f"shuffle({n})", make, len(self), self.arrays, self.batches, self.stages)

    def batch(self, batch_size, drop_remainder=False):
        """So many rows at a time. The last batch may be shorter, or is dropped. Raises ValueError where none is left."""
        n, drop = at_least(1, "batch: batch_size", batch_size), flag("batch: drop_remainder", drop_remainder)
        if self.batches:
            return wider(Dataset, "these are batches already").batch(self, n, drop)
        if drop and len(self) < n:
            raise ValueError(f"batch: {len(self)} elements make no batch of {n}, and the remainder is dropped")
        length = len(self) // n if drop else -(-len(self) // n)
        return type(self)(f"batch({n})", lambda: batched(self.make(), n, drop), length, self.arrays, True, self.stages)


__getattr__, __dir__ = plugged(__name__)  # what is missing here is looked up in levels_more

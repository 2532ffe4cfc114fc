"""Data in batches: a dataset holds arrays, and a recipe for the numbers of their rows."""

# Built from 04_mid_level.ipynb: edit there, then run its last cell.

import itertools
import reprlib

import numpy as np

from levels.low_level import constant, gather
from levels.support.checks import check_int
from levels.support.inputs import row_numbers

from .layers import RANDOM, Reconstructible


class _Rows(Reconstructible):
    """Rows of a tuple of `arrays`. `make()` returns row numbers: [rows], or batches of them."""

    def __init__(self, stage, make, length, arrays, batches=False, before=()):
        self.stage, self.make, self.length = stage, make, length
        self.arrays, self.batches = arrays, batches
        self.stages = [*before, self]  # all stages from the source to this one

    def __len__(self):
        return self.length

    def __iter__(self):
        for rows in self.make():
            yield tuple(gather(x, constant(rows, np.int64)) for x in self.arrays)

    def rows(self):
        """Return the arrays and a pass of row numbers, for `function(step).over`. Raises TypeError without batches."""
        if not self.batches:
            raise TypeError(f"rows: {self.stage} gives no batches of row numbers; go through the dataset in a loop")
        return self.arrays, self.make()

    def __repr__(self):
        return " → ".join(data.stage for data in self.stages)

    @classmethod
    def from_tensor_slices(cls, arrays):
        """Make a dataset from a tuple of arrays. Raises TypeError for anything else, ValueError for unequal lengths."""
        if not isinstance(arrays, tuple):
            raise TypeError(f"Dataset: expected a tuple of arrays, got {reprlib.repr(arrays)}")
        counts = [np.shape(x)[0] if np.shape(x) else 0 for x in arrays]
        if len({*counts}) != 1 or not counts[0]:
            raise ValueError(f"arrays of {counts} rows; expected as many in each, and at least one")
        return cls("from_tensor_slices", lambda: np.arange(counts[0]), counts[0], tuple(map(constant, arrays)))

    @classmethod
    def from_batches(cls, x, y, batches):
        """Make a dataset of batches (x, y) from row numbers `batches`[steps, batch]. Raises ValueError, IndexError."""
        source = cls.from_tensor_slices((x, y))
        rows = row_numbers("from_batches: batches", batches, len(source))
        return cls("from_batches", lambda: rows, len(rows), source.arrays, True)


class Dataset(_Rows):
    """Rows of a tuple of arrays, as in `tf.data`, with stages that shuffle and batch them."""

    def shuffle(self, buffer_size, seed=None):
        """Shuffle anew in each pass. The same seed gives the same orders. Raises ValueError for too small a buffer."""
        n = check_int(self.length, "shuffle: buffer_size", buffer_size)
        seed = RANDOM.getrandbits(32) if seed is None else check_int(0, "shuffle: seed", seed)
        passes = itertools.count()

        def make():
            rows = self.make()
            order = np.random.RandomState(np.random.PCG64([seed, next(passes)])).permutation(len(rows))
            return rows[order] if isinstance(rows, np.ndarray) else [rows[k] for k in order]

        return type(self)(f"shuffle({n})", make, self.length, self.arrays, self.batches, self.stages)

    def batch(self, batch_size):
        """Make batches of that many rows; the last one may be shorter. Raises ValueError for a dataset of batches."""
        n = check_int(1, "batch: batch_size", batch_size)
        if self.batches:
            raise ValueError(f"batch: {self.length} batches make no batch of {n}")

        def make():
            rows = self.make()
            return np.split(rows, range(n, len(rows), n)) if len(rows) % n else rows.reshape(-1, n)

        return type(self)(f"batch({n})", make, -(-self.length // n), self.arrays, True, self.stages)

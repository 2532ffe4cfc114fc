"""Data in batches: arrays, and a recipe for the numbers of their rows."""

# Built from 04_mid_level.ipynb: edit there, then run its last cell.

import itertools
import math

import numpy as np

from levels.low_level import constant, gather
from levels.support.checks import check_int
from levels.support.inputs import check_arrays, check_batches, row_numbers

from .layers import RANDOM


def _shuffled(make, seed):
    """Return a recipe for the rows of `make`, in a new order in each pass."""
    seed = RANDOM.getrandbits(32) if seed is None else seed
    check_int(0, "shuffle: seed", seed)
    passes = itertools.count()

    def make_again():
        draw = np.random.RandomState(np.random.PCG64([seed, next(passes)]))
        return draw.permutation(make())

    return make_again


class Dataset:
    """Rows of a tuple of arrays, as in `tf.data`. May be shuffled and in batches."""

    def __init__(self, arrays, make, length, batches=False):
        self.arrays = arrays
        self.make = make  # returns row numbers, or batches of them
        self.length = length
        self.batches = batches

    def __len__(self):
        return self.length

    def __iter__(self):
        for rows in self.make():
            yield tuple(gather(x, constant(rows, np.int64)) for x in self.arrays)

    def rows(self):
        """Return the arrays, and the batches of one pass, for `function(step).over`."""
        check_batches("rows", self, True)
        return self.arrays, self.make()

    @classmethod
    def from_tensor_slices(cls, arrays):
        """Make a dataset of the rows of a tuple of arrays, which are equally long."""
        n = check_arrays(arrays)
        return cls(tuple(map(constant, arrays)), lambda: np.arange(n), n)

    @classmethod
    def from_batches(cls, x, y, batches):
        """Make a dataset of batches (x, y) from row numbers `batches`[steps, batch]."""
        source = cls.from_tensor_slices((x, y))
        rows = row_numbers("from_batches: batches", batches, len(source))
        return cls(source.arrays, lambda: rows, len(rows), batches=True)

    def shuffle(self, buffer_size, seed=None):
        """Shuffle anew in each pass. The same seed gives the same orders."""
        check_batches("shuffle", self, False)
        check_int(len(self), "shuffle: buffer_size", buffer_size)
        return Dataset(self.arrays, _shuffled(self.make, seed), len(self))

    def batch(self, batch_size):
        """Make batches of that many rows. The last one may be shorter."""
        check_batches("batch", self, False)
        n = check_int(1, "batch: batch_size", batch_size)

        def make():
            return np.split(self.make(), range(n, len(self), n))

        return Dataset(self.arrays, make, math.ceil(len(self) / n), batches=True)

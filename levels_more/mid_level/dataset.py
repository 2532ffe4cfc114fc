"""A dataset whose stages can work on the elements themselves: functions, files, threads, buffers."""

import functools
import itertools
import math
import os
import reprlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

import numpy as np
from numpy.typing import ArrayLike

from levels import mid_level
from levels.low_level import Operators, Tensor
from levels.mid_level import RANDOM
from levels.mid_level.data import _shuffled
from levels.support.checks import check_bool, check_int, lookup
from levels_more.checks import as_int64, called, expect, sample_of, word
from levels_more.mid_level.csv_files import read_columns
from levels_more.mid_level.stages import (
    as_element,
    batched,
    cached,
    collate,
    copied,
    each_array,
    filtered,
    in_rows,
    mapped,
    prefetched,
    repeated,
    shuffled,
    take_batches,
    take_rows,
)


def _count(least, name, value):
    """Return a count, which may be a tensor, as an int. Raises ValueError unless it is one, and at least `least`."""
    return check_int(least, name, value.numpy()[()] if isinstance(value, Operators) else value)


def elements_of(data):
    """A new pass over the elements of any dataset, as NumPy arrays."""
    if data.arrays is None:
        return iter(data.make())
    arrays = each_array(np.asarray, data.arrays)
    return (take_rows(arrays, rows) for rows in data.iterate())


def _then(data, stage, make, length, arrays=None, batches=False):
    """Append a stage to any dataset. With `arrays` the stage passes row numbers of them, else elements."""
    kind = type(data) if isinstance(data, Dataset) else Dataset
    return kind(stage, make, length, arrays, batches or data.batches, data.stages)


def as_dataset(data):
    """Convert a dataset of the core to a Dataset of this package. One of this package is returned unchanged."""
    if isinstance(data, Dataset):
        return data
    return Dataset("Dataset", data.make, data.length, data.arrays, data.batches)


class Dataset(mid_level.Dataset):
    """A dataset of any elements: tensors, text, tuples or dicts of them. `arrays` is None if it passes no row numbers.

    `stages` are all datasets from the source to this one, each with its `stage`, a name. `length` is infinite if the
    dataset never ends, and NaN if it is known only after a pass.
    """

    def __init__(self, stage, make, length, arrays=None, batches=False, before=()):
        self.iterate = make  # as `make`, but not collated: a long pass starts at once
        super().__init__(arrays, make if arrays is None else lambda: collate(make()), length, batches)
        self.stage = stage
        self.stages = [*before, self]

    def __repr__(self):
        return " → ".join(data.stage for data in self.stages)

    @classmethod
    def from_tensor_slices(cls, arrays) -> "Dataset":
        """The rows of an array, or of all arrays in a tuple or a dict; text is allowed. For errors see `in_rows`."""
        arrays, count = in_rows(arrays)
        return cls("from_tensor_slices", lambda: np.arange(count), count, arrays)

    @classmethod
    def from_batches(cls, x, y, batches: "ArrayLike | Sequence[ArrayLike]") -> "Dataset":
        """One batch (x, y) for each of `batches`: row numbers [steps, batch], or a list of arrays of different sizes.

        x, y: what `from_tensor_slices` takes. Raises ValueError if `batches` are not row numbers.
        """
        rows = collate(batches)
        for part in [rows] if isinstance(rows, np.ndarray) else [batch[None] for batch in rows]:
            if part.ndim != 2 or part.dtype.kind not in "iu" or not part.size or part.min() < 0:
                given = reprlib.repr(batches)
                raise ValueError(f"from_batches: expected row numbers [steps, batch] from 0 on, got {given}")
        rows = as_int64(rows) if isinstance(rows, np.ndarray) else [*map(as_int64, rows)]
        return cls("from_batches", lambda: rows, len(rows), in_rows((x, y))[0], True)

    @classmethod
    def from_csv(cls, path: str | os.PathLike, label_name: str | None = None, na_value: str = "") -> "Dataset":
        """The lines of a file with a header, as dicts {column: value} or, with a label, as pairs (dict, value).

        The file has commas between cells, and is in UTF-8. A column is int64, float32, float64 or text; one of codes
        such as 00501 is text. For errors see `csv_files.read_columns`.
        """
        columns = read_columns(path, word("from_csv: na_value", na_value))
        if label_name is not None:
            lookup("column", columns, word("from_csv: label_name", label_name))  # raises ValueError for a missing one
        return cls.from_tensor_slices(columns if label_name is None else (columns, columns.pop(label_name)))

    @classmethod
    def from_generator(cls, generator: Callable[[], Iterable]) -> "Dataset":
        """The elements of the iterator that generator() returns; it is called anew for each pass.

        Raises TypeError if `generator` is not callable.
        """
        if not callable(generator):
            raise TypeError(f"from_generator: expected a function that makes iterators, got {reprlib.repr(generator)}")
        return cls("from_generator", lambda: (each_array(copied, element) for element in generator()), math.nan)

    @classmethod
    def zip(cls, *datasets: mid_level.Dataset) -> "Dataset":
        """Tuples with one element of each dataset, until the shortest dataset ends."""
        for data in datasets or [None]:
            expect(isinstance(data, mid_level.Dataset), "zip", data, "datasets")
        datasets = [*map(as_dataset, datasets)]
        length = np.min([data.length for data in datasets])  # NaN if one of them is NaN
        return cls("zip", lambda: zip(*map(elements_of, datasets), strict=False), length)

    def __iter__(self) -> Iterator:
        if self.arrays is None:
            return (each_array(as_element, element) for element in self.make())
        kinds = set()
        each_array(lambda x: kinds.add(type(x)), self.arrays)
        elements = take_batches(self.arrays, self.iterate())
        return elements if kinds == {Tensor} else (each_array(as_element, element) for element in elements)

    def __len__(self) -> int:
        if math.isnan(self.length):
            raise TypeError("how many elements there are is known at the end of a pass")
        if self.length == math.inf:  # list(…) would ignore a TypeError, and never end
            raise ValueError(f"{self.stage} never ends; take(count) of it")
        return int(self.length)

    def __copy__(self):
        told = "a dataset cannot be copied: its stages are functions; build it again from the data"
        raise TypeError(f"{told}; a model of levels.high_level copies it: take the model from levels_more.high_level")

    def __reduce__(self):
        raise TypeError("a dataset cannot be copied or pickled: its stages are functions; build it again from the data")

    def rows(self):
        """As in the core. Raises TypeError if the dataset passes no batches of row numbers."""
        if self.arrays is None or not self.batches:
            raise TypeError(f"rows: {self.stage} gives no batches of row numbers; go through the dataset in a loop")
        return self.arrays if isinstance(self.arrays, tuple) else (self.arrays,), self.make()

    @property
    def in_memory(self):
        """Whether `rows` works: then a compiled function can take a whole pass."""
        return self.arrays is not None and self.batches

    def shuffle(self, buffer_size: int, seed: int | None = None, reshuffle_each_iteration: bool = True) -> "Dataset":
        """Random order, through a buffer (see `shuffled`). The same seed gives the same orders, pass by pass."""
        n = _count(1, "shuffle: buffer_size", buffer_size)
        again = check_bool("shuffle: reshuffle_each_iteration", reshuffle_each_iteration)
        seed = RANDOM.getrandbits(32) if seed is None else _count(0, "shuffle: seed", seed)
        if self.arrays is not None and not self.batches and n >= self.length and again:
            return _then(self, f"shuffle({n})", _shuffled(self.make, seed), self.length, self.arrays)
        passes = itertools.count() if again else itertools.repeat(0)

        def make():
            return shuffled(self.make(), n, np.random.RandomState(np.random.PCG64([seed, next(passes)])))

        return _then(self, f"shuffle({n})", make, self.length, self.arrays)

    def batch(self, batch_size: int, drop_remainder: bool = False) -> "Dataset":
        """Batches of elements. The last may be shorter, or is dropped. Raises ValueError if that leaves no batch."""
        n, drop = _count(1, "batch: batch_size", batch_size), check_bool("batch: drop_remainder", drop_remainder)
        count = np.floor if drop else np.ceil
        if self.arrays is not None and not self.batches:
            full = int(self.length // n * n)  # a shard's length is a float
            if drop and not full:
                raise ValueError(f"batch: {len(self)} elements make no batch of {n}, and the remainder is dropped")
            if not drop and full < self.length:
                return _then(self, f"batch({n})", super().batch(n).make, full // n + 1, self.arrays, True)
            return _then(self, f"batch({n})", lambda: self.make()[:full].reshape(-1, n), full // n, self.arrays, True)
        return _then(
            self, f"batch({n})", lambda: batched(elements_of(self), n, drop), count(self.length / n), batches=True
        )

    def take(self, count: int) -> "Dataset":
        """The first `count` elements."""
        n = _count(0, "take: count", count)
        return _then(self, f"take({n})", lambda: _part(self, 0, n), np.minimum(n, self.length), self.arrays)

    def skip(self, count: int) -> "Dataset":
        """All elements but the first `count`."""
        n = _count(0, "skip: count", count)
        return _then(self, f"skip({n})", lambda: _part(self, n), np.maximum(0, self.length - n), self.arrays)

    def shard(self, num_shards: int, index: int) -> "Dataset":
        """Every num_shards-th element, from number `index` on. Raises ValueError unless index < num_shards."""
        n, first = _count(1, "shard: num_shards", num_shards), _count(0, "shard: index", index)
        if first >= n:
            raise ValueError(f"shard: index is {first}; expected one of the {n} parts, 0 to {n - 1}")
        length = np.maximum(0, np.ceil((self.length - first) / n))
        return _then(self, f"shard({n}, {first})", lambda: _part(self, first, None, n), length, self.arrays)

    def map(self, function: Callable, num_parallel_calls=None, deterministic=None) -> "Dataset":
        """function(element), or function(x, y) of an element (x, y). It takes and returns NumPy arrays.

        TensorFlow's `num_parallel_calls` and `deterministic` are ignored: elements are made one by one, in order.
        """
        where, name = f"stage {len(self.stages) + 1}, map", getattr(called("map", function), "__name__", "…")
        return _then(self, f"map({name})", lambda: mapped(elements_of(self), function, where), self.length)

    def filter(self, predicate: Callable) -> "Dataset":
        """The elements for which predicate(element), or predicate(x, y) of an element (x, y), is true."""
        where, name = f"stage {len(self.stages) + 1}, filter", getattr(called("filter", predicate), "__name__", "…")
        return _then(self, f"filter({name})", lambda: filtered(elements_of(self), predicate, where), math.nan)

    def steps(self, count: int) -> "Dataset":
        """A dataset in which each pass takes the next `count` elements; after the last element comes the first."""
        running = repeated(self.iterate, itertools.count())
        return _then(self, f"steps({count})", lambda: islice(running, count), count, self.arrays)

    def repeat(self, count: int | None = None) -> "Dataset":
        """`count` passes, one after the other; without a count they never end."""
        if count is None:
            return _then(self, "repeat()", lambda: repeated(lambda: elements_of(self), itertools.count()), math.inf)
        n = _count(1, "repeat: count", count)
        if self.arrays is not None and not self.batches and n * self.length > 10**6:  # too many row numbers
            return _then(self, f"repeat({n})", lambda: repeated(lambda: elements_of(self), range(n)), n * self.length)
        return _then(self, f"repeat({n})", lambda: repeated(self.iterate, range(n)), n * self.length, self.arrays)

    def cache(self) -> "Dataset":
        """Keep the elements of the first complete pass, and yield them in every later pass."""
        return _then(self, "cache()", functools.partial(cached, self.make, []), self.length, self.arrays)

    def prefetch(self, buffer_size: int) -> "Dataset":
        """Let a thread make that many elements ahead; -1, TensorFlow's AUTOTUNE, is 2. Row numbers need none."""
        n = 2 if buffer_size == -1 else _count(1, "prefetch: buffer_size", buffer_size)
        if self.arrays is not None:
            return self
        return _then(self, f"prefetch({n})", lambda: prefetched(self.make(), n), self.length)


def _part(data, first, last=None, step=1):
    """The slice [first:last:step] of a pass."""
    rows = data.iterate()
    return rows[first:last:step] if isinstance(rows, (np.ndarray, list)) else islice(rows, first, last, step)


def DataLoader(dataset, batch_size: int = 1, shuffle: bool = False, drop_last: bool = False) -> Dataset:
    """As in PyTorch: the batches of a dataset, or of arrays. With `shuffle`, each pass has a new order of all rows."""
    if isinstance(dataset, (Operators, np.ndarray, list, tuple, dict)):
        dataset = Dataset.from_tensor_slices(dataset)
    if isinstance(dataset, mid_level.Dataset):
        data = as_dataset(dataset)
    else:
        fits = hasattr(dataset, "__len__") and hasattr(dataset, "__getitem__") and not isinstance(dataset, str | type)
        expect(fits, "DataLoader: dataset", dataset, "a dataset or arrays")
        cure = f"the keys are 0 to {len(dataset) - 1}"
        data = Dataset.from_generator(lambda: (sample_of(dataset, row, cure) for row in range(len(dataset))))
    if check_bool("DataLoader: shuffle", shuffle):
        data = data.shuffle(len(dataset))
    return data.batch(batch_size, drop_last)

"""A pipeline whose stages see the elements: functions, files, threads, buffers. It stands in for a Dataset of the core."""

import csv
import functools
import itertools
import math
import reprlib
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import islice

import numpy as np

from levels import mid_level
from levels.hardware import PLACE
from levels.low_level import DOOR, DTYPES, RUN, Operators, Tensor, as_tensor, constant, gather
from levels.mid_level import RANDOM
from levels.support.checks import at_least, flag, known, unmasked, words_in
from levels_more.checks import called, expect, file_name, without_mask, word

AT_ONCE = 2**16  # bytes of rows


def each_array(function, *elements):
    """function of the arrays in elements that are made alike."""
    first = elements[0]
    if isinstance(first, dict):
        return {name: each_array(function, *(element[name] for element in elements)) for name in first}
    if isinstance(first, tuple):
        return tuple([each_array(function, *parts) for parts in zip(*elements, strict=True)])
    return function(*elements)


def stack(*arrays):
    """Arrays of one shape as one array [how many, *shape]. Raises ValueError where their shapes differ."""
    if len(shapes := {str(np.shape(x)) for x in arrays}) > 1:
        raise ValueError(f"batch: arrays of shapes {' and '.join(sorted(shapes))} do not fit into one")
    return np.stack(arrays)


def batched(elements, size, drop):
    """So many elements as one. The last may be of fewer, or is dropped."""
    elements = iter(elements)
    while part := list(islice(elements, size)):
        if len(part) == size or not drop:
            yield each_array(stack, *part)


def shuffled(elements, size, draws):
    """Elements as they leave a buffer of `size`, from which one is drawn at random and replaced by the next."""
    elements = iter(elements)
    buffer = list(islice(elements, size))
    for element in elements:
        place = int(draws.random_sample() * size)
        yield buffer[place]
        buffer[place] = element
    for place in draws.permutation(len(buffer)):
        yield buffer[place]


def as_array(value):
    """What a stage works on: an array of numbers or text. Python's floats become float32, as in `constant`.

    Raises TypeError for a tensor and for other objects, ValueError for parts that differ in shape.
    """
    if isinstance(value, Operators):
        raise TypeError("got a tensor; stages work on NumPy arrays, and tensors are made of what comes out at the end")
    readable = hasattr(value, "__array__") or isinstance(value, (list, tuple, range, str, int, float))
    without_mask(value)
    try:
        array = np.asarray(value if readable else None)  # through anything else NumPy might walk for ever
    except ValueError:
        raise ValueError("a list of parts that differ in shape is no array; several arrays go into a tuple") from None
    if array.dtype.kind not in "biufU":
        cure = "; make an array of text of it, such as np.array(x, str)" * bool(words_in(array))
        raise TypeError(f"expected numbers or text, got {reprlib.repr(value)}{cure}")
    return array.astype(np.float32) if type(value) in (float, list) and array.dtype == np.float64 else array


def as_element(array):
    """What comes out: numbers as a tensor. What has no kernels, such as text, stays an array."""
    return constant(array) if array.dtype in DTYPES else array


def in_rows(tensors):
    """(array, or tuple or dict of arrays; how many rows each of them has)

    Raises ValueError where they differ, or there are none.
    """
    sizes = []

    def sized(x):
        x = as_tensor(x) if isinstance(x, Operators) else as_element(as_array(x))
        sizes.append((*x.shape, 0)[0])
        return x

    arrays = each_array(sized, tensors)
    if len({*sizes}) != 1 or not sizes[0]:
        given = " ".join(reprlib.repr(tensors).split())  # in one line
        raise ValueError(f"{given}: arrays of {sizes} rows; expected as many in each, and at least one")
    return arrays, sizes[0]


def taken(arrays, rows):
    """The rows of these numbers: of tensors as tensors, of arrays as arrays."""
    return each_array(lambda x: gather(x, rows) if type(x) is Tensor else np.take(x, rows, axis=0), arrays)


def _pieces(x):
    """The parts of a tensor along its first axis. They share its memory: as long as one lives, all of it does."""
    spec = x.device.spec(x.spec.shape[1:], x.spec.dtype)
    return (Tensor(spec, x.data[k, ...], x) for k in range(len(x.data)))


def _bytes_of_a_row(x):
    """How much memory a row of it takes; AT_ONCE for what is no tensor on a CPU, so that it is taken alone."""
    return x.spec.nbytes // x.spec.shape[0] if type(x) is Tensor and x.device.kind == "cpu" else AT_ONCE


def _groups(arrays, batches):
    """Batches that are taken together: neighbours of one shape, small ones, where all are there already. Others stay alone."""
    sizes = []
    each_array(lambda x: sizes.append(_bytes_of_a_row(x)), arrays)
    there = isinstance(batches, (np.ndarray, list)) and len(batches)
    if not there or DOOR.stands is not RUN:  # who listens hears of each
        return ([rows] for rows in batches)
    count = max(1, AT_ONCE // max(1, sum(sizes) * np.size(batches[0])))
    parts = (batches[k : k + count] for k in range(0, len(batches), count))
    return ([*same] for part in parts for _, same in itertools.groupby(part, np.shape))


def each_taken(arrays, batches):
    """The elements of batches of row numbers. Small ones are taken together, in one launch.

    (A step on 100 rows, op by op, takes 50 µs. To make a tensor of their numbers and take them took 6 of these.)
    """
    for group in _groups(arrays, batches):
        pieces = None
        if len(group) > 1:
            with suppress(IndexError):  # one by one it is raised in its turn
                pieces = each_array(_pieces, taken(arrays, constant(np.array(group), np.int64)))
        yield from (each_array(next, pieces) if pieces else taken(arrays, constant(rows, np.int64)) for rows in group)


def packed(rows):
    """Row numbers, or batches of them, in one array; a list where batches are of different sizes."""
    if isinstance(rows, np.ndarray):
        return unmasked(rows)
    rows = [*map(unmasked, rows)]
    return rows if len({x.shape for x in rows}) > 1 else np.array(rows) if rows else np.arange(0)


def mapped(elements, function, where):
    """function of each element.

    An error of it comes back as a RuntimeError with the number of the element, counted from 0.
    """
    for number, element in enumerate(elements):
        try:
            result = each_array(as_array, function(*element) if isinstance(element, tuple) else function(element))
        except Exception as error:
            raise RuntimeError(f"{where}: element {number}: {type(error).__name__}: {error}") from error
        yield result


_END = object()  # what no element is


def filtered(elements, predicate, where):
    """The elements for which the predicate is true."""
    elements, judged = itertools.tee(elements)
    return itertools.compress(elements, mapped(judged, lambda *x: _verdict(predicate(*x)), where))


def _verdict(said):
    """What a predicate says of one element: a bool, or a number."""
    single = isinstance(said, bool | int | float | np.generic) or getattr(said, "size", 0) == 1
    return expect(single, "what the predicate says", said, "True or False")


def repeated(make, passes):
    """The elements of all passes. A pass that is empty is the last: else endless repetition might search for ever."""
    for _ in passes:
        element = _END
        for element in make():
            yield element
        if element is _END:
            return


def cached(make, kept):
    """What the first whole pass gave, in every pass; `kept` is where it is."""
    elements = []
    for element in kept or make():
        elements.append(element)
        yield each_array(np.array, element)  # a copy: what a later stage writes into it is not for the next pass
    kept[:] = elements


def prefetched(elements, size):
    """The elements of a pass that another thread goes through, up to `size` elements ahead."""
    device = PLACE.device  # of this thread; the other one begins with its own
    worker = ThreadPoolExecutor(1, "prefetch", lambda: setattr(PLACE, "device", device))
    try:
        ahead = deque(worker.submit(next, elements, _END) for _ in range(size))
        while (element := ahead.popleft().result()) is not _END:
            ahead.append(worker.submit(next, elements, _END))
            yield element
    finally:  # a loop that is left early comes here too: Python closes a generator that nobody has any more
        worker.shutdown(wait=False, cancel_futures=True)


def read_columns(path, na_value):
    """{name: array} of a CSV file with a header. Missing cells are empty, or hold `na_value`.

    Raises ValueError, naming the line, where its cells do not fit the header.
    """
    with open(file_name("from_csv: path", path), newline="", encoding="utf-8-sig") as file:
        reader = csv.DictReader(file)
        names, lines = reader.fieldnames or (), {f"{path}, line {reader.line_num}": row for row in reader}
    for line, row in lines.items():
        if None in row or None in row.values():  # under no name, or for no cell
            raise ValueError(f"{line}: {reprlib.repr([*row.values()])} beneath {len(names)} names")
    return {name: column(name, {line: row[name] for line, row in lines.items()}, na_value) for name in names}


def column(name, cells, na_value):
    """The cells {line: text} under that name as an array.

    Raises ValueError, naming the line, for a text among numbers.
    """
    cells, numbers = {line: "" if cell == na_value else cell for line, cell in cells.items()}, []
    for line, cell in cells.items():
        try:
            numbers.append(float(cell or "nan"))
        except ValueError:
            if all(map(math.isnan, numbers)):
                return np.array([*cells.values()])
            cure = "a missing one is empty or na_value"
            raise ValueError(f"{line}, column {name}: {cell!r} among numbers; {cure}") from None
    numbers = np.array(numbers)
    return numbers.astype(np.int64 if (numbers % 1 == 0).all() else np.float32)


def _elements(data):
    """A new pass over the elements of any dataset, as NumPy arrays."""
    if data.arrays is None:
        return iter(data.make())
    arrays = each_array(np.asarray, data.arrays)
    return (taken(arrays, rows) for rows in data.each())


def cut(batches, size):
    """Batches of row numbers [steps, batch], or one after the other, in pieces of size() steps.

    A batch that is longer or shorter than those before ends its piece.
    """
    if isinstance(batches, np.ndarray):
        while len(batches):
            steps = size()
            yield batches[:steps]
            batches = batches[steps:]
        return
    piece = []
    for batch in batches:
        piece.append(batch)
        if len(piece) >= size() or len(batch) != len(piece[0]):
            yield piece
            piece = []
    if piece:
        yield piece


def _then(data, stage, make, length, arrays=None, batches=False):
    """One stage more behind any dataset. It goes on with row numbers if it is given the `arrays`."""
    kind = type(data) if isinstance(data, Dataset) else Dataset
    return kind(stage, make, length, arrays, batches or data.batches, data.stages)


def adopted(data):
    """A dataset of the core as a Dataset of this package: one of these stays as it is."""
    if isinstance(data, Dataset):
        return data
    return Dataset(data.stage, data.make, data.length, data.arrays, data.batches, data.stages[:-1])


class Dataset(mid_level.Dataset):
    """A dataset of any elements: tensors, words, tuples or dicts of them; `arrays` is None where no row numbers pass.

    `length` is infinite for one that never ends, and NaN where only a pass can tell. Level 5 says how its `arrays` lie there,
    and what its rows weigh: `packing`, `class_weight`.
    """

    packing = class_weight = None

    def __init__(self, stage, make, length, arrays=None, batches=False, before=()):
        self.each = make  # the same as `make`, one after the other: a long pass begins at once
        super().__init__(stage, make if arrays is None else lambda: packed(make()), length, arrays, batches, before)

    @classmethod
    def from_tensor_slices(cls, arrays):
        """The rows of all the arrays of a tuple or a dict, of words as well; for what is raised see `in_rows`."""
        arrays, count = in_rows(arrays)
        return cls("from_tensor_slices", lambda: np.arange(count), count, arrays)

    @classmethod
    def from_batches(cls, x, y, batches):
        """One batch (x, y) for each of `batches`, row numbers [steps, batch] or several of different sizes.

        x, y: what `from_tensor_slices` takes. Raises ValueError for what is no row numbers.
        """
        rows = packed(batches)
        for part in [rows] if isinstance(rows, np.ndarray) else [batch[None] for batch in rows]:
            if part.ndim != 2 or part.dtype.kind != "i" or not part.size or part.min() < 0:
                given = reprlib.repr(batches)
                raise ValueError(f"from_batches: expected row numbers [steps, batch] from 0 on, got {given}")
        return cls("from_batches", lambda: rows, len(rows), in_rows((x, y))[0], True)

    @classmethod
    def from_csv(cls, path, label_name=None, na_value=""):
        """The lines of a file with a header, as dicts {column: value} or, with a label, as pairs (dict, value)."""
        columns = read_columns(path, word("from_csv: na_value", na_value))
        if label_name is not None:
            known(
                "column", columns, word("from_csv: label_name", label_name)
            )  # raises ValueError for a name that is not there
        return cls.from_tensor_slices(columns if label_name is None else (columns, columns.pop(label_name)))

    @classmethod
    def from_generator(cls, generator):
        """What the iterators give that generator() makes, a new one for each pass.

        Raises TypeError for what is no such function.
        """
        if not callable(generator):
            raise TypeError(f"from_generator: expected a function that makes iterators, got {reprlib.repr(generator)}")
        return cls("from_generator", lambda: (each_array(as_array, element) for element in generator()), math.nan)

    @classmethod
    def zip(cls, *datasets):
        """Tuples of an element of each dataset, as long as all have one."""
        for data in datasets:
            expect(isinstance(data, mid_level.Dataset), "zip", data, "datasets")
        datasets = [*map(adopted, datasets)]
        length = np.min([data.length for data in datasets])  # NaN, where one of them is
        return cls("zip", lambda: zip(*map(_elements, datasets), strict=False), length)

    def __iter__(self):
        if self.arrays is None:
            return (each_array(as_element, element) for element in self.make())
        return each_taken(self.arrays, self.each())

    def __len__(self):
        if math.isnan(self.length):
            raise TypeError("how many elements there are is known at the end of a pass")
        if self.length == math.inf:  # no TypeError: list(…) takes that for "not known", and would never end
            raise ValueError(f"{self.stage} never ends; take(count) of it")
        return int(self.length)

    def rows(self):
        """As in the core. Raises TypeError where no row numbers pass."""
        if self.arrays is None:
            raise TypeError(f"rows: {self.stage} gives no batches of row numbers; go through the dataset in a loop")
        arrays, rows = super().rows()
        return arrays if isinstance(arrays, tuple) else (arrays,), rows

    def of(self, arrays):
        """The same row numbers, of other arrays."""
        return type(self)(self.stage, self.each, self.length, arrays, self.batches, self.stages[:-1])

    @property
    def in_memory(self):
        """Whether there are `rows`: a compiled function can take a pass whole."""
        return self.arrays is not None and self.batches

    def shuffle(self, buffer_size, seed=None, reshuffle_each_iteration=True):
        """In random order, through a buffer: see `shuffled`. A seed gives the same orders, pass by pass, in every program."""
        n = at_least(1, "shuffle: buffer_size", buffer_size)
        again = flag("shuffle: reshuffle_each_iteration", reshuffle_each_iteration)
        if self.arrays is not None and n >= self.length and again:
            return super().shuffle(n, seed)
        seed = RANDOM.getrandbits(32) if seed is None else at_least(0, "shuffle: seed", seed)
        passes = itertools.count() if again else itertools.repeat(0)

        def make():
            return shuffled(self.make(), n, np.random.RandomState(np.random.PCG64([seed, next(passes)])))

        return _then(self, f"shuffle({n})", make, self.length, self.arrays)

    def batch(self, batch_size, drop_remainder=False):
        """So many elements as one; the last may be fewer, or is dropped. Raises ValueError where no batch is left."""
        n, drop = at_least(1, "batch: batch_size", batch_size), flag("batch: drop_remainder", drop_remainder)
        count = np.floor if drop else np.ceil
        if self.arrays is not None and not self.batches:
            full = self.length // n * n
            if drop and not full:
                raise ValueError(f"batch: {self.length} elements make no batch of {n}, and the remainder is dropped")
            if not drop or full == self.length:
                return super().batch(n)
            return _then(self, f"batch({n})", lambda: self.make()[:full].reshape(-1, n), full // n, self.arrays, True)
        return _then(
            self, f"batch({n})", lambda: batched(_elements(self), n, drop), count(self.length / n), batches=True
        )

    def take(self, count):
        """The first `count`."""
        n = at_least(0, "take: count", count)
        return _then(self, f"take({n})", lambda: _part(self, 0, n), np.minimum(n, self.length), self.arrays)

    def skip(self, count):
        """All but the first `count`."""
        n = at_least(0, "skip: count", count)
        return _then(self, f"skip({n})", lambda: _part(self, n), np.maximum(0, self.length - n), self.arrays)

    def shard(self, num_shards, index):
        """Of so many parts that one: every num_shards-th element, from number `index` on. Raises ValueError for no part."""
        n, first = at_least(1, "shard: num_shards", num_shards), at_least(0, "shard: index", index)
        if first >= n:
            raise ValueError(f"shard: index is {first}; expected one of the {n} parts, 0 to {n - 1}")
        length = np.maximum(0, np.ceil((self.length - first) / n))
        return _then(self, f"shard({n}, {first})", lambda: _part(self, first, None, n), length, self.arrays)

    def map(self, function, num_parallel_calls=None, deterministic=None):
        """function(element), or function(x, y) of an element (x, y). It takes and returns NumPy arrays.

        `num_parallel_calls` and `deterministic` are TensorFlow's: here elements are made one after the other, in order.
        """
        where, name = f"stage {len(self.stages) + 1}, map", getattr(called("map", function), "__name__", "…")
        return _then(self, f"map({name})", lambda: mapped(_elements(self), function, where), self.length)

    def filter(self, predicate):
        """The elements for which predicate(element), or predicate(x, y) of an element (x, y), is true."""
        where, name = f"stage {len(self.stages) + 1}, filter", getattr(called("filter", predicate), "__name__", "…")
        return _then(self, f"filter({name})", lambda: filtered(_elements(self), predicate, where), math.nan)

    def steps(self, count):
        """A dataset whose passes are the next `count` elements each; behind the last element comes the first."""
        running = repeated(self.each, itertools.count())
        return _then(self, f"steps({count})", lambda: islice(running, count), count, self.arrays)

    def repeat(self, count=None):
        """So many passes, one after the other; without a count they never end."""
        if count is None:
            return _then(self, "repeat()", lambda: repeated(lambda: _elements(self), itertools.count()), math.inf)
        n = at_least(1, "repeat: count", count)
        if self.arrays is not None and not self.batches and n * self.length > 10**6:  # no longer few row numbers
            return _then(self, f"repeat({n})", lambda: repeated(lambda: _elements(self), range(n)), n * self.length)
        return _then(self, f"repeat({n})", lambda: repeated(self.each, range(n)), n * self.length, self.arrays)

    def cache(self):
        """What the first whole pass gave, again in every pass."""
        return _then(self, "cache()", functools.partial(cached, self.make, []), self.length, self.arrays)

    def prefetch(self, buffer_size):
        """Up to so many elements ahead, made by another thread; -1, TensorFlow's AUTOTUNE, are 2. (In memory none are.)"""
        n = 2 if buffer_size == -1 else at_least(1, "prefetch: buffer_size", buffer_size)
        if self.arrays is not None:
            return self
        return _then(self, f"prefetch({n})", lambda: prefetched(self.make(), n), self.length)


def _part(data, first, last=None, step=1):
    """A pass from one place up to another, or to the end; or every so many elements of it."""
    rows = data.each()
    return rows[first:last:step] if isinstance(rows, (np.ndarray, list)) else islice(rows, first, last, step)


def DataLoader(dataset, batch_size=1, shuffle=False, drop_last=False):
    """As in PyTorch: the batches of a dataset, or of arrays; all rows are shuffled anew in every pass, if asked for."""
    if isinstance(dataset, (Operators, np.ndarray, list, tuple, dict)):
        dataset = Dataset.from_tensor_slices(dataset)
    data = dataset
    if isinstance(dataset, mid_level.Dataset):
        data = adopted(dataset)
    else:
        fits = hasattr(dataset, "__len__") and hasattr(dataset, "__getitem__") and not isinstance(dataset, str | type)
        expect(fits, "DataLoader: dataset", dataset, "a dataset or arrays")
        data = Dataset.from_generator(lambda: (dataset[row] for row in range(len(dataset))))
    return (data.shuffle(len(dataset)) if flag("DataLoader: shuffle", shuffle) else data).batch(batch_size, drop_last)

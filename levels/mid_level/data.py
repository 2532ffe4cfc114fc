"""Data that arrives in batches: a dataset is a recipe for iterators."""

# Built from 04_mid_level.ipynb: edit there, then run its last cell.

import csv
import functools
import itertools
import math
import reprlib
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

import numpy as np

from levels import plugged
from levels.hardware import unmasked
from levels.low_level import DTYPES, Operators, Tensor, as_tensor, constant, gather

from .layers import RANDOM, at_least, known


def drawn(elements, size, draws):
    """Elements as they leave a buffer of `size`, from which one is drawn at random and replaced by the next."""
    elements = iter(elements)
    buffer = list(islice(elements, size))
    for element in elements:
        place = int(draws.random_sample() * size)
        yield buffer[place]
        buffer[place] = element
    for place in draws.permutation(len(buffer)):
        yield buffer[place]


def draws_of(seed, number):
    """The random numbers for one pass: NumPy promises the same ones on every machine, in every version (NEP 19)."""
    return np.random.RandomState(np.random.PCG64([seed, number]))


def each_array(function, *elements):
    """function of the arrays in elements that are made alike."""
    first = elements[0]
    if isinstance(first, dict):
        return {name: each_array(function, *(element[name] for element in elements)) for name in first}
    if isinstance(first, tuple):
        return tuple(each_array(function, *parts) for parts in zip(*elements, strict=True))
    return function(*elements)


def stacked(elements, size, drop):
    """So many elements as one. The last may be of fewer, or is dropped."""
    elements = iter(elements)
    while part := list(islice(elements, size)):
        if len(part) == size or not drop:
            yield each_array(stack, *part)


def stack(*arrays):
    if len(shapes := {str(np.shape(x)) for x in arrays}) > 1:
        raise ValueError(f"batch: arrays of shapes {' and '.join(sorted(shapes))} do not fit into one")
    return np.stack(arrays)


def shuffled(rows, size, draws):
    """`drawn`; where row numbers in an array all fit into the buffer, the same order in a thirtieth of the time."""
    whole = isinstance(rows, np.ndarray) and size >= len(rows)
    return draws.permutation(rows) if whole else drawn(rows, size, draws)


def batched(rows, size, drop):
    """`stacked`; row numbers in an array are not even copied."""
    if not isinstance(rows, np.ndarray):
        return stacked(rows, size, drop)
    full = len(rows) // size * size
    batches = rows[:full].reshape(-1, size)
    return batches if drop or full == len(rows) else [*batches, rows[full:]]


def part(rows, first, last=None):
    """Those from one place up to another, or to the end."""
    return rows[first:last] if isinstance(rows, np.ndarray) else islice(rows, first, last)


def as_array(value):
    """What a stage works on: an array of numbers or text. Python's floats become float32, as in `constant`."""
    if isinstance(value, Operators):
        raise TypeError("got a tensor; stages work on NumPy arrays, and tensors are made of what comes out at the end")
    readable = hasattr(value, "__array__") or isinstance(value, (list, tuple, range, str, int, float))
    try:
        array = unmasked(value if readable else None)  # through anything else NumPy might walk for ever
    except ValueError:
        raise ValueError("a list of parts that differ in shape is no array; several arrays go into a tuple") from None
    if array.dtype.kind not in "biufU":
        raise TypeError(f"expected numbers or text, got {reprlib.repr(value)}")
    return array.astype(np.float32) if type(value) in (float, list) and array.dtype == np.float64 else array


def as_element(array):
    """What comes out: numbers as a tensor. What has no kernels, such as text, stays an array."""
    return constant(array) if array.dtype in DTYPES else array


def in_rows(tensors):
    """(array, or tuple or dict of arrays; how many rows each of them has)"""
    arrays = each_array(lambda x: as_tensor(x) if isinstance(x, Operators) else as_element(as_array(x)), tensors)
    sizes = []
    each_array(lambda x: sizes.append(len(x) if x.shape else 0), arrays)
    if len({*sizes}) != 1 or not sizes[0]:
        raise ValueError(f"arrays of {sizes} rows; expected as many in each, and at least one")
    return arrays, sizes[0]


def taken(arrays, rows):
    """The rows of these numbers: of tensors as tensors, of arrays as arrays."""
    return each_array(lambda x: gather(x, rows) if type(x) is Tensor else np.take(x, rows, axis=0), arrays)


def packed(rows):
    """Row numbers, or batches of them, in one array; a list where batches are of different sizes."""
    if isinstance(rows, np.ndarray):
        return rows
    rows = [*map(np.asarray, rows)]
    return rows if len({x.shape for x in rows}) > 1 else np.array(rows) if rows else np.arange(0)


class Pipeline:
    """Elements to go through as often as wished: tensors, or tuples or dicts of them. Each pass is a new one."""

    def __init__(self, stage, make, length, arrays=None, batches=False, before=()):
        self.make = make if arrays is None else lambda: packed(make())
        self.stage, self.length, self.arrays, self.batches = stage, length, arrays, batches
        self.stages = [*before, self]

    def then(self, stage, make, arrays=None, length=None, batches=False):
        """One stage more. It goes on with row numbers if it is given the `arrays`."""
        return type(self)(stage, make, length or self.length, arrays, batches or self.batches, self.stages)

    @classmethod
    def from_tensor_slices(cls, tensors):
        """The rows of an array, or of all the arrays of a tuple or dict."""
        arrays, count = in_rows(tensors)
        return cls("from_tensor_slices", lambda: np.arange(count), lambda: count, arrays)

    def shuffle(self, buffer_size, seed=None, reshuffle_each_iteration=True):
        """In random order, through a buffer: see `drawn`. A seed gives the same orders, pass by pass, in every program."""
        n = at_least(1, "shuffle: buffer_size", buffer_size)
        seed = RANDOM.getrandbits(32) if seed is None else at_least(0, "shuffle: seed", seed)
        passes = itertools.count() if reshuffle_each_iteration else itertools.repeat(0)
        return self.then(f"shuffle({n})", lambda: shuffled(self.make(), n, draws_of(seed, next(passes))), self.arrays)

    def batch(self, batch_size, drop_remainder=False):
        """So many elements as one. The last batch may be shorter, or is dropped."""
        n, drop = at_least(1, "batch: batch_size", batch_size), drop_remainder
        if drop and self.arrays is not None and len(self) < n:
            raise ValueError(f"batch: {len(self)} elements make no batch of {n}, and the remainder is dropped")
        make, arrays = (self.elements, None) if self.batches else (self.make, self.arrays)
        count = np.floor if drop else np.ceil  # of a quotient, because an endless one stays endless
        return self.then(
            f"batch({n})", lambda: batched(make(), n, drop), arrays, lambda: count(self.length() / n), True
        )

    def take(self, count):
        """The first `count`."""
        n = at_least(0, "take: count", count)
        return self.then(f"take({n})", lambda: part(self.make(), 0, n), self.arrays, lambda: min(n, self.length()))

    def skip(self, count):
        """All but the first `count`."""
        n = at_least(0, "skip: count", count)
        return self.then(f"skip({n})", lambda: part(self.make(), n), self.arrays, lambda: max(0, self.length() - n))

    def elements(self):
        """A new pass over the elements, as NumPy arrays."""
        if self.arrays is None:
            return iter(self.make())
        arrays = each_array(np.asarray, self.arrays)
        return (taken(arrays, rows) for rows in self.make())

    def __iter__(self):
        if self.arrays is None:
            return (each_array(as_element, element) for element in self.make())
        return (taken(self.arrays, constant(rows, np.int64)) for rows in self.make())

    def __len__(self):
        length = self.length()
        if length == math.inf:  # no TypeError: list(…) takes that for "not known", and would never end
            raise ValueError(f"{self.stage} never ends; take(count) of it")
        return int(length)

    @property
    def in_memory(self):
        """Whether there are `rows`: a compiled function can take a pass whole."""
        return self.arrays is not None and self.batches

    def rows(self):
        """A new pass for `function(step).over(*arrays, batches)`: all the arrays, and row numbers [steps, batch]."""
        if not self.in_memory:
            raise TypeError(f"rows: {self.stage} gives no batches of row numbers; go through the dataset in a loop")
        return self.arrays if isinstance(self.arrays, (tuple, dict)) else (self.arrays,), self.make()

    def __repr__(self):
        return " → ".join(data.stage for data in self.stages)


def mapped(elements, function, where):
    """function of each element. An error of it comes back with the number of the element, counted from 0."""
    for number, element in enumerate(elements):
        try:
            result = each_array(as_array, function(*element) if isinstance(element, tuple) else function(element))
        except Exception as error:
            raise RuntimeError(f"{where}: element {number}: {type(error).__name__}: {error}") from error
        yield result


END = object()  # what no element is


def filtered(elements, predicate, where):
    """The elements for which the predicate is true."""
    elements, judged = itertools.tee(elements)
    return itertools.compress(elements, mapped(judged, predicate, where))


def repeated(make, passes):
    """The elements of all passes. A pass that is empty is the last: else endless repetition might search for ever."""
    for _ in passes:
        element = END
        for element in make():
            yield element
        if element is END:
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
    worker = ThreadPoolExecutor(1, "prefetch")
    try:
        ahead = deque(worker.submit(next, elements, END) for _ in range(size))
        while (element := ahead.popleft().result()) is not END:
            ahead.append(worker.submit(next, elements, END))
            yield element
    finally:  # a loop that is left early comes here too: Python closes a generator that nobody has any more
        worker.shutdown(wait=False, cancel_futures=True)


def read_columns(path, na_value):
    """{name: array} of a CSV file with a header. Missing cells are empty, or hold `na_value`."""
    with open(path, newline="", encoding="utf-8-sig") as file:
        reader = csv.DictReader(file)
        names, lines = reader.fieldnames or (), {f"{path}, line {reader.line_num}": row for row in reader}
    for line, row in lines.items():
        if None in row or None in row.values():  # under no name, or for no cell
            raise ValueError(f"{line}: {reprlib.repr([*row.values()])} beneath {len(names)} names")
    return {name: column(name, {line: row[name] for line, row in lines.items()}, na_value) for name in names}


def column(name, cells, na_value):
    """The cells {line: text} under that name as an array."""
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


class Dataset(Pipeline):
    """A pipeline with all stages and sources of `tf.data` that the course needs."""

    def map(self, function):
        """function(element), or function(x, y) of an element (x, y). It takes and returns NumPy arrays."""
        where, name = f"stage {len(self.stages) + 1}, map", getattr(function, "__name__", "…")
        return self.then(f"map({name})", lambda: mapped(self.elements(), function, where))

    def filter(self, predicate):
        """The elements for which predicate(element), or predicate(x, y) of an element (x, y), is true."""
        where, name = f"stage {len(self.stages) + 1}, filter", getattr(predicate, "__name__", "…")
        return self.then(f"filter({name})", lambda: filtered(self.elements(), predicate, where), length=unknown)

    def repeat(self, count=None):
        """So many passes, one after the other; without a count they never end."""
        if count is None:
            return self.then("repeat()", lambda: repeated(self.elements, itertools.count()), length=lambda: math.inf)
        n = at_least(1, "repeat: count", count)
        return self.then(f"repeat({n})", lambda: repeated(self.make, range(n)), self.arrays, lambda: n * self.length())

    def cache(self):
        """What the first whole pass gave, again in every pass."""
        return self.then("cache()", functools.partial(cached, self.make, []), self.arrays)

    def prefetch(self, buffer_size):
        """Up to so many elements ahead, made by another thread. (In memory there is nothing to fetch.)"""
        n = at_least(1, "prefetch: buffer_size", buffer_size)
        stage = self.then(f"prefetch({n})", lambda: prefetched(self.elements(), n))
        return stage if self.arrays is None else self

    @classmethod
    def from_batches(cls, x, y, batches):
        """One batch (x, y) for each entry of `batches`, row numbers [steps, batch]. The last one may be shorter."""
        arrays, rows = in_rows((x, y))[0], packed(batches)
        parts = [rows] if isinstance(rows, np.ndarray) else [batch[None] for batch in rows]
        if any(x.ndim != 2 or x.dtype.kind != "i" or not x.size or x.min() < 0 for x in parts):
            given = reprlib.repr(batches)
            raise ValueError(f"from_batches: expected row numbers [steps, batch] from 0 on, got {given}")
        return cls("from_batches", lambda: rows, lambda: len(rows), arrays, True)

    @classmethod
    def from_csv(cls, path, label_name=None, na_value=""):
        """The lines of a file with a header, as dicts {column: value} or, with a label, as pairs (dict, value)."""
        columns = read_columns(path, na_value)
        known("column", columns, label_name)  # raises ValueError for a name that is not there
        return cls.from_tensor_slices(columns if label_name is None else (columns, columns.pop(label_name)))

    @classmethod
    def from_generator(cls, generator):
        """What the iterators give that generator() makes, a new one for each pass."""
        if not callable(generator):
            raise TypeError(f"from_generator: expected a function that makes iterators, got {reprlib.repr(generator)}")
        return cls("from_generator", lambda: (each_array(as_array, element) for element in generator()), unknown)

    @classmethod
    def zip(cls, *datasets):
        """Tuples of an element of each dataset, as long as all have one."""
        return cls("zip", lambda: zip(*(d.elements() for d in datasets)), lambda: min(d.length() for d in datasets))


def unknown():
    raise TypeError("how many elements there are is known at the end of a pass")


def DataLoader(dataset, batch_size=1, shuffle=False, drop_last=False):
    """As in PyTorch: the batches of a dataset, or of arrays; all rows are shuffled anew in every pass, if asked for."""
    if isinstance(dataset, (Operators, np.ndarray, list, tuple, dict)):
        dataset = Dataset.from_tensor_slices(dataset)
    data = dataset
    if not isinstance(dataset, Pipeline):
        data = Dataset.from_generator(lambda: (dataset[row] for row in range(len(dataset))))
    return (data.shuffle(len(dataset)) if shuffle else data).batch(batch_size, drop_last)


__getattr__, __dir__ = plugged(__name__)  # what is missing here is looked up in levels_more

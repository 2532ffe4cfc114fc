"""Data that arrives in batches: a dataset is a recipe for iterators."""

# Built from notebooks/04_mid_level.ipynb: edit there, then run its last cell.

import csv
import itertools
import math
import reprlib
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import NamedTuple

import numpy as np

from levels.low_level import DTYPES, Operators, Tensor, as_tensor, constant, gather

from .layers import RANDOM, at_least, known


def drawn(make, size, draws):
    """Elements as they leave a buffer of `size`, from which one is drawn at random and replaced by the next."""
    elements, draws = iter(make()), draws()
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


def drawn_rows(make, size, draws):
    """`drawn` for row numbers: for a buffer with room for all, the same order in a thirtieth of the time."""
    rows = make()
    if size < len(rows):
        return rows[list(drawn(lambda: range(len(rows)), size, draws))]
    return draws().permutation(rows)


def batched_rows(make, size, drop):
    """Row numbers, so many to a batch."""
    rows = make()
    full = len(rows) // size * size
    batches = rows[:full].reshape(-1, size)
    return batches if full == len(rows) or drop else packed([*batches, rows[full:]])


def packed(batches):
    """Batches of row numbers as one array [steps, batch] or, if they are not equally long, as an array of arrays."""
    equal = len({len(rows) for rows in batches}) == 1
    return np.array([*map(np.asarray, batches)], None if equal else object)


def each_array(function, *elements):
    """function of the arrays in elements that are made alike."""
    first = elements[0]
    if isinstance(first, dict):
        return {name: each_array(function, *(element[name] for element in elements)) for name in first}
    if isinstance(first, tuple):
        return tuple(each_array(function, *parts) for parts in zip(*elements, strict=True))
    return function(*elements)


def batched(make, size, drop):
    """So many elements as one, their arrays stacked."""
    elements = make()
    while part := list(islice(elements, size)):
        if len(part) == size or not drop:
            yield each_array(stack, *part)


def stack(*arrays):
    if len(shapes := {str(x.shape) for x in arrays}) > 1:
        raise ValueError(f"batch: arrays of shapes {' and '.join(sorted(shapes))} do not fit into one")
    return np.stack(arrays)


def mapped(make, function, where):
    """function of each element. An error of it comes back with the number of the element, counted from 0."""
    for number, element in enumerate(make()):
        try:
            result = each_array(as_array, function(*element) if isinstance(element, tuple) else function(element))
        except Exception as error:
            raise RuntimeError(f"{where}: element {number}: {type(error).__name__}: {error}") from error
        yield result


def as_array(value):
    """What a stage works on: an array of numbers or text. Python's floats become float32, as in `constant`."""
    if isinstance(value, Operators):
        raise TypeError("got a tensor; stages work on NumPy arrays, and tensors are made of what comes out at the end")
    array = np.asarray(value)
    if array.dtype.kind not in "biufU":
        raise TypeError(f"expected numbers or text, got {reprlib.repr(value)}")
    return array.astype(np.float32) if type(value) in (float, list) and array.dtype == np.float64 else array


def as_element(array):
    """What comes out: numbers as a tensor. What has no kernels, such as text, stays an array."""
    return constant(array) if array.dtype in DTYPES else array


class Stage(NamedTuple):
    """What a stage makes of a pass of elements, of one of row numbers, of a length; and what it holds meanwhile."""

    elements: Callable
    rows: Callable | None = None
    length: Callable = lambda length, *_: length
    holds: str = "{units}, one at a time"


def number_of_batches(length, size, drop):
    return length if length == math.inf else (length if drop else length + size - 1) // size


STAGES = {
    "take": Stage(lambda make, n: islice(make(), n), lambda make, n: make()[:n], min),
    "skip": Stage(
        lambda make, n: islice(make(), n, None), lambda make, n: make()[n:], lambda rows, n: max(0, rows - n)
    ),
    "shuffle": Stage(drawn, drawn_rows, holds="up to {0:,} {units}"),
    "batch": Stage(batched, batched_rows, number_of_batches, "{0:,} {units} to a batch"),
    "map": Stage(mapped),
}


class Pipeline:
    """A recipe for passes: arrays of row numbers where `arrays` hold the rows, else iterators of elements."""

    def __init__(self, stage, holds, length, make, arrays=None, units="elements", source=None):
        self.stage, self.holds, self.length, self.make = stage, holds, length, make  # length: None where not known
        self.arrays, self.units, self.source = arrays, units, source

    def then(self, name, *given, units=None):
        """One stage more, of this name in STAGES."""
        elements, rows, length, holds = STAGES[name]
        length = math.inf if math.inf in given else None if self.length is None else length(self.length, *given)
        arrays = None if rows is None or length == math.inf or units == self.units else self.arrays
        make = (lambda: elements(self.elements, *given)) if arrays is None else (lambda: rows(self.make, *given))
        shown = ", ".join(getattr(x, "__name__", str(x)) for x in given[:1] if callable(x) or isinstance(x, int))
        holds = holds.format(
            *given, units="row numbers" if arrays is not None and self.units == "elements" else self.units
        )
        return type(self)(f"{name}({shown})", holds, length, make, arrays, units or self.units, self)

    def elements(self):
        """A new pass over the elements, as NumPy arrays."""
        if self.arrays is None:
            return iter(self.make())
        arrays = each_array(np.asarray, self.arrays)
        return (pick(arrays, rows) for rows in self.make())

    def __iter__(self):
        if self.arrays is None:
            return (each_array(as_element, element) for element in self.make())
        return (pick(self.arrays, constant(rows)) for rows in self.make())

    @property
    def in_memory(self):
        """Whether there are `rows`: a compiled function can take a pass whole."""
        return self.arrays is not None and self.units == "batches"

    def rows(self):
        """A new pass for `function(step).over(*arrays, batches)`: all the arrays, and row numbers [steps, batch]."""
        if not self.in_memory:
            raise TypeError(f"rows: {self.stage} gives no batches of row numbers; go through the dataset in a loop")
        arrays, batches = self.arrays, self.make()
        arrays = arrays if isinstance(arrays, (tuple, dict)) else (arrays,)
        return arrays, list(batches) if batches.dtype == object else batches

    def __len__(self):
        if self.length is None:
            raise TypeError(f"{self.stage}: how many elements there are is known at the end of a pass")
        if self.length == math.inf:  # not a TypeError: list(…) takes that for "not known", and would never end
            raise ValueError(f"{self.stage} never ends; take(count) of it")
        return self.length

    @property
    def stages(self):
        """The datasets from the source to this one."""
        return [*(() if self.source is None else self.source.stages), self]

    def __repr__(self):
        return "\n".join(f"{data.stage:20} {data.holds}" for data in self.stages)


def pick(arrays, rows):
    """The rows of these numbers: of tensors as tensors, of arrays as arrays."""
    return each_array(lambda x: gather(x, rows) if type(x) is Tensor else np.take(x, rows, axis=0), arrays)


class Stages(Pipeline):
    """Datasets made from this one."""

    def shuffle(self, buffer_size, seed=None, reshuffle_each_iteration=True):
        """In random order, through a buffer: see `drawn`. A seed gives the same orders, pass by pass, in every program."""
        size = at_least(1, "shuffle: buffer_size", buffer_size)
        seed = RANDOM.getrandbits(32) if seed is None else at_least(0, "shuffle: seed", seed)
        passes = itertools.count() if reshuffle_each_iteration else itertools.repeat(0)
        return self.then("shuffle", size, lambda: draws_of(seed, next(passes)))

    def batch(self, batch_size, drop_remainder=False):
        """So many elements as one. The last batch may be shorter, or is dropped."""
        size = at_least(1, "batch: batch_size", batch_size)
        if drop_remainder and self.length is not None and self.length < size:
            raise ValueError(f"batch: {self.length} elements make no batch of {size}, and the remainder is dropped")
        return self.then("batch", size, drop_remainder, units="batches")

    def take(self, count):
        """The first `count`."""
        return self.then("take", at_least(0, "take: count", count))

    def skip(self, count):
        """All but the first `count`."""
        return self.then("skip", at_least(0, "skip: count", count))

    def repeat(self, count=None):
        """So many passes, one after the other; without a count they never end."""
        return self.then("repeat", math.inf if count is None else at_least(1, "repeat: count", count))

    def map(self, function):
        """function(element), or function(x, y) of an element (x, y). It takes and returns NumPy arrays."""
        return self.then("map", function, f"stage {len(self.stages) + 1}, map")

    def filter(self, predicate):
        """The elements for which predicate(element), or predicate(x, y) of an element (x, y), is true."""
        return self.then("filter", predicate, f"stage {len(self.stages) + 1}, filter")

    def cache(self):
        """What the first whole pass gave, again in every pass."""
        return self.then("cache", [])

    def prefetch(self, buffer_size):
        """Up to so many elements ahead, made by another thread. (In memory there is nothing to fetch.)"""
        size = at_least(1, "prefetch: buffer_size", buffer_size)
        return self.then("prefetch", size) if self.arrays is None else self


class Dataset(Stages):
    """Elements to go through as often as wished: tensors, or tuples or dicts of them. Each pass is a new one."""

    @classmethod
    def from_tensor_slices(cls, tensors, stage="from_tensor_slices"):
        """The rows of an array, or of all the arrays of a tuple or dict."""
        arrays = each_array(lambda x: as_tensor(x) if isinstance(x, Operators) else as_element(as_array(x)), tensors)
        every = []
        each_array(every.append, arrays)
        sizes, shapes = [len(x) for x in every], dict.fromkeys(str(x.shape[1:]) for x in every)
        if len({*sizes}) != 1 or not sizes[0]:
            raise ValueError(f"{stage}: arrays of {sizes} rows; expected as many in each, and at least one")
        return cls(stage, f"{sizes[0]:,} rows: {' and '.join(shapes)}", sizes[0], lambda: np.arange(sizes[0]), arrays)

    @classmethod
    def from_batches(cls, x, y, batches):
        """One batch (x, y) for each entry of `batches`, row numbers [steps, batch]. The last one may be shorter."""
        data = cls.from_tensor_slices((x, y), "from_batches")
        if not len(batches) or not all(map(len, batches)):
            raise ValueError("from_batches: there is no batch, or an empty one")
        batches = batches if isinstance(batches, np.ndarray) else packed(batches)
        rows = np.concatenate(batches) if batches.dtype == object else batches
        first, last = rows.min(), rows.max()
        if rows.dtype.kind not in "iu" or first < 0 or last >= len(data):
            given = f"{rows.dtype} from {first} to {last}"
            raise ValueError(f"from_batches: {given}; expected rows from 0 to {len(data) - 1}")
        holds = f"{data.holds}; {len(batches):,} batches of row numbers"
        return cls("from_batches", holds, len(batches), lambda: batches, data.arrays, "batches")

    @classmethod
    def from_generator(cls, generator):
        """What the iterators give that generator() makes, a new one for each pass."""
        if not callable(generator):
            raise TypeError(f"from_generator: expected a function that makes iterators, got {reprlib.repr(generator)}")
        return cls(
            "from_generator", "one at a time", None, lambda: (each_array(as_array, part) for part in generator())
        )

    @classmethod
    def from_csv(cls, path, label_name=None, na_value=""):
        """The lines of a file with a header, as dicts {column: value} or, with a label, as pairs (dict, value)."""
        columns = read_columns(path, na_value)
        known("column", columns, label_name)  # raises ValueError for a name that is not there
        return cls.from_tensor_slices(columns if label_name is None else (columns, columns.pop(label_name)), "from_csv")

    @classmethod
    def zip(cls, *datasets):
        """Tuples of an element of each dataset, as long as all have one."""
        lengths = [data.length for data in datasets]
        length = None if None in lengths else min(lengths)
        return cls("zip", "one element of each", length, lambda: zip(*(data.elements() for data in datasets)))


END = object()  # what no element is


def prefetched(make, size):
    """The elements of a pass that another thread goes through, up to `size` elements ahead."""
    elements, worker = make(), ThreadPoolExecutor(1, "prefetch")
    try:
        ahead = deque(worker.submit(next, elements, END) for _ in range(size))
        while (element := ahead.popleft().result()) is not END:
            ahead.append(worker.submit(next, elements, END))
            yield element
    finally:  # a loop that is left early comes here too: Python closes a generator that nobody has any more
        worker.shutdown(wait=False, cancel_futures=True)


STAGES["prefetch"] = Stage(prefetched, holds="up to {0} {units}, ready")


def repeated(make, count):
    """The elements of `count` passes. A pass that is empty is the last: else endless repetition might search for ever."""
    for _ in itertools.count() if count == math.inf else range(count):
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
        yield element
    kept[:] = elements


def filtered(make, predicate, where):
    """The elements for which the predicate is true."""
    elements, judged = itertools.tee(make())
    return itertools.compress(elements, mapped(lambda: judged, predicate, where))


STAGES.update(
    repeat=Stage(repeated, lambda make, n: np.concatenate([make() for _ in range(n)]), lambda length, n: length * n),
    cache=Stage(cached, lambda make, kept: (kept or kept.append(make()) or kept)[0], holds="all {units} of a pass"),
    filter=Stage(filtered, length=lambda *_: None),
)


def read_columns(path, na_value):
    """{name: array} of a CSV file with a header. Missing cells are empty, or hold `na_value`."""
    with open(path, newline="", encoding="utf-8-sig") as file:
        reader = csv.DictReader(file)
        names, lines = reader.fieldnames or (), [(reader.line_num, row) for row in reader]
    for line, row in lines:
        if None in row or None in row.values():  # under no name, or for no cell
            raise ValueError(f"{path}, line {line}: {reprlib.repr([*row.values()])} beneath {len(names)} names")
    return {name: column(path, name, lines, na_value) for name in names}


def column(path, name, lines, na_value):
    """The cells under that name as an array."""
    cells, numbers = {line: "" if row[name] == na_value else row[name] for line, row in lines}, []
    for line, cell in cells.items():
        try:
            numbers.append(float(cell or "nan"))
        except ValueError:
            if all(map(math.isnan, numbers)):
                return np.array([*cells.values()])
            given = f"{cell!r} among numbers; a missing one is empty or na_value"
            raise ValueError(f"{path}, line {line}, column {name}: {given}") from None
    numbers = np.array(numbers)
    return numbers.astype(np.int64 if (numbers % 1 == 0).all() else np.float32)


def DataLoader(dataset, batch_size=1, shuffle=False, drop_last=False):
    """As in PyTorch: the batches of a dataset, or of arrays; all rows are shuffled anew in every pass, if asked for."""
    data = dataset if isinstance(dataset, Dataset) else Dataset.from_tensor_slices(dataset)
    data = data.shuffle(len(data)) if shuffle else data
    return data.batch(batch_size, drop_last)

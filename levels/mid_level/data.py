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

from .layers import RANDOM


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
    return rows[draws().permutation(len(rows))]


def batched_rows(make, size, drop):
    """Row numbers, so many to a batch."""
    rows = make()
    full = len(rows) // size * size
    batches = rows[:full].reshape(-1, size)
    return batches if full == len(rows) or drop else packed([*batches, rows[full:]])


def packed(batches):
    """Batches of row numbers as one array [steps, batch] or, if they are not equally long, as an array of arrays."""
    if len({len(rows) for rows in batches}) == 1:
        return np.array(batches)
    arrays = np.empty(len(batches), object)
    arrays[:] = [*map(np.asarray, batches)]
    return arrays


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
        lambda make, n: islice(make(), n, None), lambda make, n: make()[n:], lambda length, n: max(0, length - n)
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
        now = self.units if arrays is None else self.units.replace("elements", "row numbers")
        shown = ", ".join(getattr(x, "__name__", str(x)) for x in given[:1] if callable(x) or isinstance(x, int))
        holds = holds.format(*given, units=now)
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
            why = "after this stage there are no row numbers" if self.arrays is None else "there is no batch(size) yet"
            raise TypeError(f"rows: {self.stage}: {why}; go through the dataset element by element")
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


def at_least(least, name, value):
    """The value, if it is a whole number of at least that. Else raises ValueError."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ValueError(f"{name} is {value!r}; expected a whole number from {least} on")
    return int(value)


class Stages(Pipeline):
    """Datasets made from this one."""

    def shuffle(self, buffer_size, seed=None, reshuffle_each_iteration=True):
        """In random order, through a buffer: see `drawn`. A seed gives the same orders, pass by pass, in every program."""
        seed = RANDOM.getrandbits(32) if seed is None else at_least(0, "shuffle: seed", seed)
        passes = itertools.count() if reshuffle_each_iteration else itertools.repeat(0)
        return self.then(
            "shuffle", at_least(1, "shuffle: buffer_size", buffer_size), lambda: draws_of(seed, next(passes))
        )

    def batch(self, batch_size, drop_remainder=False):
        """So many elements as one. The last batch may be shorter, or is dropped."""
        size = at_least(1, "batch: batch_size", batch_size)
        if drop_remainder and self.length is not None and self.length < size:
            raise ValueError(f"batch: {self.length} elements make no batch of {size}, and the remainder is dropped")
        return self.then("batch", size, drop_remainder, units="batches")

    def take(self, count):
        """The first `count`; all of them for -1."""
        return self if count == -1 else self.then("take", at_least(0, "take: count", count))

    def skip(self, count):
        """All but the first `count`."""
        return self.then("skip", at_least(0, "skip: count", count))

    def repeat(self, count=None):
        """So many passes, one after the other; for None or -1 without end."""
        return self.then("repeat", math.inf if count in (None, -1) else at_least(1, "repeat: count", count))

    def map(self, function):
        """function(element), or function(x, y) of an element (x, y). It takes and returns NumPy arrays."""
        return self.then("map", function, f"stage {len(self.stages) + 1}, map")

    def filter(self, predicate):
        """The elements for which predicate(element) is True."""
        return self.then("filter", predicate, f"stage {len(self.stages) + 1}, filter")

    def cache(self):
        """What the first whole pass gave, again in every pass."""
        if self.length == math.inf:
            raise ValueError(f"cache: {self.stage} never ends")
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
        rows, last = np.concatenate(batches) if batches.dtype == object else batches, len(data) - 1
        if rows.dtype.kind not in "iu" or rows.min() < 0 or rows.max() > last:
            raise ValueError(
                f"from_batches: {rows.dtype} from {rows.min()} to {rows.max()}; expected rows from 0 to {last}"
            )
        holds = f"{data.holds}; {len(batches):,} batches of row numbers"
        return cls("from_batches", holds, len(batches), lambda: batches, data.arrays, "batches")

    @classmethod
    def from_generator(cls, generator):
        """What the iterators give that generator() makes, a new one for each pass."""
        if not callable(generator):
            raise TypeError(f"from_generator: expected a function that makes iterators, got {reprlib.repr(generator)}")
        stage = f"from_generator({getattr(generator, '__name__', '')})"
        return cls(stage, "one element at a time", None, lambda: (each_array(as_array, part) for part in generator()))

    @classmethod
    def from_csv(cls, path, label_name=None, select_columns=None, na_value=""):
        """The lines of a file with a header, as dicts {column: value} or, with a label, as pairs (dict, value)."""
        columns = read_columns(path, label_name, select_columns, na_value)
        return cls.from_tensor_slices(columns if label_name is None else (columns, columns.pop(label_name)), "from_csv")

    @classmethod
    def zip(cls, *datasets):
        """Tuples of an element of each dataset, as long as all have one. Dataset.zip((a, b)) is Dataset.zip(a, b)."""
        datasets = datasets[0] if isinstance(datasets[0], tuple) else datasets
        lengths = [data.length for data in datasets]
        length = None if None in lengths else min(lengths)
        return cls(
            "zip()", f"one element of each of {len(datasets)}", length, lambda: zip(*(d.elements() for d in datasets))
        )


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
    """The elements of `count` passes. Endless repetition ends with a pass that is empty."""
    for _ in itertools.count() if count == math.inf else range(count):
        element = END
        for element in make():
            yield element
        if element is END and count == math.inf:
            return


def cached(make, kept):
    """What the first whole pass gave, in every pass; `kept` is where it is."""
    if not kept:
        elements = []
        for element in make():
            elements.append(element)
            yield element
        kept.append(elements)
    else:
        yield from kept[0]


def filtered(make, predicate, where):
    """The elements for which the predicate says True."""

    def keeps(*element):
        if isinstance(answer := predicate(*element), (bool, np.bool_)):
            return answer
        raise TypeError(f"expected True or False, got {reprlib.repr(answer)}")

    elements, judged = itertools.tee(make())
    return itertools.compress(elements, mapped(lambda: judged, keeps, where))


STAGES.update(
    repeat=Stage(repeated, lambda make, n: np.concatenate([make() for _ in range(n)]), lambda length, n: length * n),
    cache=Stage(cached, lambda make, kept: (kept or kept.append(make()) or kept)[0], holds="all {units} of a pass"),
    filter=Stage(filtered, length=lambda *_: None),
)


def read_columns(path, label, select, na_value):
    """{name: array} of a CSV file with a header. Missing cells are empty, or hold `na_value`."""
    with open(path, newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file)
        names, lines = next(reader, []), [(reader.line_num, cells) for cells in reader if cells]
    for line, cells in lines:
        if len(cells) != len(names):
            raise ValueError(f"{path}, line {line}: {len(cells)} cells beneath {len(names)} names")
    chosen = [*(names if select is None else select), *([] if label is None else [label])]
    if unknown := [name for name in chosen if name not in names]:
        raise ValueError(f"{path}: there is no column {', '.join(unknown)}; there are {', '.join(names)}")
    places = {name: names.index(name) for name in chosen}
    return {
        name: column(path, name, [(line, cells[k]) for line, cells in lines], na_value) for name, k in places.items()
    }


def column(path, name, cells, na_value):
    """The cells [(line, text)] of a column as an array."""
    numbers, missing = [], ("", na_value)
    for line, cell in cells:
        try:
            numbers.append(math.nan if cell in missing else float(cell))
        except ValueError:
            if all(map(math.isnan, numbers)):
                return np.array(["" if text in missing else text for _, text in cells])
            where = f"{path}, line {line}, column {name}"
            raise ValueError(f"{where}: {cell!r} among numbers; a missing one is empty or {na_value!r}") from None
    numbers = np.array(numbers)
    return numbers.astype(np.int64 if (numbers % 1 == 0).all() else np.float32)


def DataLoader(dataset, batch_size=1, shuffle=False, drop_last=False):
    """As in PyTorch: the batches of a dataset, or of arrays; all rows are shuffled anew in every pass, if asked for."""
    data = dataset if isinstance(dataset, Dataset) else Dataset.from_tensor_slices(dataset)
    data = data.shuffle(len(data)) if shuffle else data
    return data.batch(batch_size, drop_last)

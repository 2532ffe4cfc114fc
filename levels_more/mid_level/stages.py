"""The work of a dataset's stages: generators and functions over elements, which consist of NumPy arrays."""

import itertools
import reprlib
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import islice

import numpy as np

from levels.hardware import PLACE
from levels.low_level import DOOR, DTYPES, Operators, Tensor, as_tensor, constant, gather
from levels.support.checks import numeric_array, words_in
from levels_more.checks import as_float32, as_int64, expect, without_mask

AT_ONCE = 2**16  # bytes: batches are taken together up to this size


def each_array(function, *elements):
    """Apply a function to the corresponding arrays of elements of one structure: arrays, or tuples or dicts of them."""
    first = elements[0]
    if isinstance(first, dict):
        return {name: each_array(function, *(element[name] for element in elements)) for name in first}
    if isinstance(first, tuple):
        return tuple([each_array(function, *parts) for parts in zip(*elements, strict=True)])
    return function(*elements)


def stack(*arrays):
    """Stack arrays of one shape into one array [count, *shape]."""
    return np.stack(arrays)


def shown(array):
    """One array of an element for an error: its dtype and its shape."""
    return f"{'text' if array.dtype.kind == 'U' else array.dtype}{[*array.shape]}"


def check_alike(elements, first):
    """Raise ValueError unless the elements of a batch, numbered from `first` on, have the same parts and shapes."""
    forms = [each_array(lambda x: (np.asarray(x).dtype.kind == "U", np.shape(x)), each) for each in elements]
    if all(form == forms[0] for form in forms):
        return
    number = next(k for k, form in enumerate(forms) if form != forms[0])
    one, other = (each_array(shown, elements[k]) for k in (0, number))
    told = f"element {first} is {one}, and element {first + number} is {other}"
    raise ValueError(f"batch: {told}; the elements of a batch need the same parts, of the same shapes")


def batched(elements, size, drop):
    """Yield batches of `size` elements. The last may be shorter; it is dropped if `drop` is true.

    Raises ValueError for elements that do not fit each other.
    """
    elements = iter(elements)
    first = 0
    while part := list(islice(elements, size)):
        check_alike(part, first)
        first += len(part)
        if len(part) == size or not drop:
            yield each_array(stack, *part)


def shuffled(elements, size, draws):
    """Yield the elements through a buffer of `size`: a random one leaves it, and the next element takes its place."""
    elements = iter(elements)
    buffer = list(islice(elements, size))
    for element in elements:
        place = int(draws.random_sample() * size)
        yield buffer[place]
        buffer[place] = element
    for place in draws.permutation(len(buffer)):
        yield buffer[place]


def as_array(value):
    """Convert a value to an array of numbers or text. Python's floats become float32, as in `constant`.

    Raises TypeError for a tensor and for other objects, ValueError for a list whose parts differ in shape, and
    OverflowError for a number that is too large for float32.
    """
    if isinstance(value, Operators):
        raise TypeError("got a tensor; stages work on NumPy arrays; tensors are made of the last one's result")
    readable = hasattr(value, "__array__") or isinstance(value, (list, tuple, range, str, int, float))
    without_mask(value)
    try:
        array = np.asarray(value if readable else None)  # NumPy might iterate over another object forever
    except ValueError:
        raise ValueError("a list of parts that differ in shape is no array; several arrays go into a tuple") from None
    if array.dtype.kind not in "biufU":
        cure = "; make an array of text of it, such as np.array(x, str)" * bool(words_in(array))
        raise TypeError(f"expected numbers or text, got {reprlib.repr(value)}{cure}")
    if array.dtype.kind == "U" and not all(
        isinstance(np.asarray(x).item(), str) for x in np.asarray(value, object).flat
    ):
        raise TypeError(f"expected numbers or text, got both: {reprlib.repr(value)}; make one of them")
    return as_float32(array) if type(value) in (float, list) and array.dtype == np.float64 else array


def copied(value):
    """Convert a value as `as_array` does, to an array of its own: whoever made the value may fill its memory anew."""
    return np.array(as_array(value))


def as_element(array):
    """Convert an array to a tensor, with integers as int64. An array without kernels, such as text, is kept."""
    if type(array) is not Tensor and array.dtype.kind in "iu":
        array = as_int64(array)
    return in_memory(array)


def in_memory(array):
    """Convert an array to a tensor if its dtype has kernels. Other arrays, and tensors, are returned unchanged."""
    return constant(array) if type(array) is not Tensor and array.dtype in DTYPES else array


def in_rows(tensors):
    """Return (an array, or a tuple or a dict of arrays, converted by `in_memory`; how many rows each of them has).

    Raises ValueError if the numbers of rows differ, or are 0.
    """
    sizes = []

    def sized(x):
        mapped = isinstance(x, np.memmap)  # a file, of which only the batches are read
        x = as_tensor(x) if isinstance(x, Operators) else as_array(x) if mapped else in_memory(as_array(x))
        x = x if type(x) is Tensor or mapped else np.array(x)  # a copy, as a tensor is one
        sizes.append((*x.shape, 0)[0])
        return x

    arrays = each_array(sized, tensors)
    if len({*sizes}) != 1 or not sizes[0]:
        given = " ".join(reprlib.repr(tensors).split())  # in one line
        raise ValueError(f"{given}: arrays of {sizes} rows; expected as many in each, and at least one")
    return arrays, sizes[0]


def take_rows(arrays, rows):
    """Return the rows with these numbers: tensors from tensors, arrays from arrays."""
    return each_array(lambda x: gather(x, rows) if type(x) is Tensor else x[np.asarray(rows)], arrays)


def _pieces(x):
    """An iterator over the slices of a tensor along its first axis. They share its memory, and keep it alive."""
    spec = x.device.spec(x.spec.shape[1:], x.spec.dtype)
    return (Tensor(spec, x.data[k, ...], x) for k in range(len(x.data)))


def _bytes_of_a_row(x):
    """The bytes of a row of x; AT_ONCE unless x is a tensor on a CPU, so that its batches are taken one by one."""
    return x.spec.nbytes // x.spec.shape[0] if type(x) is Tensor and x.device.kind == "cpu" else AT_ONCE


def _groups(arrays, batches):
    """Group the batches that are taken together: small consecutive ones of one shape, if all are in memory."""
    sizes = []
    each_array(lambda x: sizes.append(_bytes_of_a_row(x)), arrays)
    there = isinstance(batches, (np.ndarray, list)) and len(batches)
    if not there or DOOR.top is not DOOR.bottom:  # one by one: a tape records each batch
        return ([rows] for rows in batches)
    count = max(1, AT_ONCE // max(1, sum(sizes) * np.size(batches[0])))
    parts = (batches[k : k + count] for k in range(0, len(batches), count))
    return ([*same] for part in parts for _, same in itertools.groupby(part, np.shape))


def take_batches(arrays, batches):
    """Yield the element for each batch of row numbers. Small batches are taken together, in one launch.

    (One by one, the bench's row "linear, batch 10, SGD: eager" takes 1.26 times as long.)
    """
    for group in _groups(arrays, batches):
        pieces = None
        if len(group) > 1:
            with suppress(IndexError):  # taken one by one below, so the error is raised at its batch
                pieces = each_array(_pieces, take_rows(arrays, constant(np.array(group), np.int64)))
        for rows in group:
            yield each_array(next, pieces) if pieces else take_rows(arrays, constant(rows, np.int64))


def collate(rows):
    """Return row numbers, or batches of them, as one array; as a list of arrays if the batches differ in size."""
    if isinstance(rows, np.ndarray):
        return numeric_array(rows)
    rows = [*map(numeric_array, rows)]
    return rows if len({x.shape for x in rows}) > 1 else np.array(rows) if rows else np.arange(0)


def mapped(elements, function, where):
    """Yield function(element) for each element.

    An error in it is raised as a RuntimeError with the number of the element, counted from 0.
    """
    for number, element in enumerate(elements):
        try:
            result = each_array(copied, function(*element) if isinstance(element, tuple) else function(element))
        except Exception as error:
            raise RuntimeError(f"{where}: element {number}: {type(error).__name__}: {error}") from error
        yield result


_END = object()  # a sentinel: no element is this object


def filtered(elements, predicate, where):
    """Return an iterator over the elements for which the predicate is true."""
    elements, judged = itertools.tee(elements)
    return itertools.compress(elements, mapped(judged, lambda *x: _verdict(predicate(*x)), where))


def _verdict(said):
    """Return the result of a predicate if it is a single bool or number. Raises TypeError otherwise."""
    single = isinstance(said, bool | int | float | np.generic) or getattr(said, "size", 0) == 1
    return expect(single, "the result of the predicate", said, "True or False")


def repeated(make, passes):
    """Yield the elements of all passes. An empty pass is the last: endless repetition might otherwise loop forever."""
    for _ in passes:
        element = _END
        for element in make():
            yield element
        if element is _END:
            return


def cached(make, kept):
    """Yield the elements of the first complete pass in every pass. The list `kept` stores them."""
    elements = []
    for element in kept or make():
        elements.append(element)
        yield each_array(np.array, element)  # a copy: a later stage may write into it
    kept[:] = elements


def prefetched(elements, size):
    """Yield elements that another thread makes, up to `size` elements ahead."""
    device = PLACE.device  # each thread has its own current device: the worker gets this thread's
    worker = ThreadPoolExecutor(1, "prefetch", lambda: setattr(PLACE, "device", device))
    try:
        ahead = deque(worker.submit(next, elements, _END) for _ in range(size))
        while (element := ahead.popleft().result()) is not _END:
            ahead.append(worker.submit(next, elements, _END))
            yield element
    finally:  # also runs if the loop is left early: Python closes the generator
        worker.shutdown(wait=False, cancel_futures=True)


def cut(batches, size):
    """Yield batches in pieces of size() steps. `batches` are row numbers [steps, batch], or an iterable of batches.

    A batch that is longer or shorter than those before it ends its piece.
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

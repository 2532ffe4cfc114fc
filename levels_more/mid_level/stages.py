"""What the stages of a dataset do: generators and functions of elements, made of NumPy arrays."""

import itertools
import reprlib
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import islice

import numpy as np

from levels.hardware import PLACE
from levels.low_level import DOOR, DTYPES, RUN, Operators, Tensor, as_tensor, constant, gather
from levels.support.checks import unmasked, words_in
from levels_more.checks import as_int64, expect, without_mask

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
    """What comes out: numbers as a tensor, whole ones of int64. What has no kernels, such as text, stays an array."""
    if type(array) is not Tensor and array.dtype.kind in "iu":
        array = as_int64(array)
    return in_memory(array)


def in_memory(array):
    """An array whose dtype has kernels as a tensor; any other one, and a tensor, as it is."""
    return constant(array) if type(array) is not Tensor and array.dtype in DTYPES else array


def in_rows(tensors):
    """(array, or tuple or dict of arrays; how many rows each of them has)

    Raises ValueError where they differ, or there are none.
    """
    sizes = []

    def sized(x):
        x = as_tensor(x) if isinstance(x, Operators) else in_memory(as_array(x))
        sizes.append((*x.shape, 0)[0])
        return x

    arrays = each_array(sized, tensors)
    if len({*sizes}) != 1 or not sizes[0]:
        given = " ".join(reprlib.repr(tensors).split())  # in one line
        raise ValueError(f"{given}: arrays of {sizes} rows; expected as many in each, and at least one")
    return arrays, sizes[0]


def take_rows(arrays, rows):
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
    """Batches that are taken together: small neighbours of one shape, where all are there; others one by one."""
    sizes = []
    each_array(lambda x: sizes.append(_bytes_of_a_row(x)), arrays)
    there = isinstance(batches, (np.ndarray, list)) and len(batches)
    if not there or DOOR.stands is not RUN:  # a tape records each
        return ([rows] for rows in batches)
    count = max(1, AT_ONCE // max(1, sum(sizes) * np.size(batches[0])))
    parts = (batches[k : k + count] for k in range(0, len(batches), count))
    return ([*same] for part in parts for _, same in itertools.groupby(part, np.shape))


def take_batches(arrays, batches):
    """The elements of batches of row numbers. Small ones are taken together, in one launch.

    (A step on 100 rows, op by op, takes 50 µs. To make a tensor of their numbers and take them took 6 of these.)
    """
    for group in _groups(arrays, batches):
        pieces = None
        if len(group) > 1:
            with suppress(IndexError):  # one by one it is raised in its turn
                pieces = each_array(_pieces, take_rows(arrays, constant(np.array(group), np.int64)))
        for rows in group:
            yield each_array(next, pieces) if pieces else take_rows(arrays, constant(rows, np.int64))


def collate(rows):
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
    finally:  # a loop that is left early comes here too: Python closes the generator
        worker.shutdown(wait=False, cancel_futures=True)


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

"""Checks of the arguments of a program before it runs, because its machine code checks nothing."""

import numbers

import numpy as np


def check_bound(name, array, axis, extent, sizes):
    """Raise IndexError if an index below `extent` can exceed that axis of an array, as far as sizes are known."""
    extent, size = (sizes.get(n, n) for n in (extent, array.shape[axis]))
    if not isinstance(extent, str) and not isinstance(size, str) and extent > size:
        raise IndexError(f"{name}: index {axis} of {array} goes up to {extent - 1}; the size there is {size}")


def memory_of(program, array, buffer, sizes, buffers):
    """Return a buffer's memory. Its named sizes are added to `sizes`. Raises TypeError or ValueError if it is unfit."""
    data = buffer.data if isinstance(buffer, buffers) and buffer.device.kind == "cpu" else None
    if not isinstance(data, np.ndarray):
        raise TypeError(f"{program.name}: {array.name} is {buffer!r}; expected a live buffer on a CPU")
    dtype = np.dtype(np.int64) if array.rows_of else program.dtype
    fits = data.dtype == dtype and data.flags.c_contiguous and data.ndim == len(array.shape)
    for size, found in zip(array.shape, data.shape):
        fits = fits and found == (sizes.setdefault(size, found) if isinstance(size, str) else size)
    if not fits:
        given, wanted = f"{data.shape} {data.dtype}", f"{array} {dtype}" + f" with {sizes}" * bool(sizes)
        raise ValueError(f"{program.name}: {array.name} is {given}; expected {wanted}")
    return data


def checked(program, given, buffers):
    """Return ({array: memory}, {word: value}) of a valid call. Row numbers are copied, so that they cannot change.

    Raises TypeError, ValueError or IndexError for an invalid call.
    """
    name, arrays, sizes = program.name, program.arrays, {}
    names = [word for word, kind in program.words.items() if kind != "i64"]
    if wrong := set(names) ^ set(given):
        raise TypeError(f"{name}: takes {', '.join(names)}; missing or unknown: {', '.join(sorted(wrong))}")
    memory = {key: memory_of(program, array, given[key], sizes, buffers) for key, array in arrays.items()}
    if len(devices := {given[key].device.name for key in memory}) > 1:
        raise ValueError(f"{name}: buffers on {' and '.join(sorted(devices))}; copy them to one device first")
    for key, array in arrays.items():
        if array.rows_of:
            memory[key], limit = memory[key].copy(), sizes.get(array.rows_of, array.rows_of)
            for row in (memory[key].min(), memory[key].max()) if memory[key].size else ():
                if not 0 <= row < limit:
                    raise IndexError(f"{name}: {key} holds row {row}; there are {limit} rows")
    for reached in program.bounds:
        check_bound(name, *reached, sizes)
    words = sizes | {key: data.ctypes.data for key, data in memory.items()}
    for key in given.keys() - memory.keys():
        if not isinstance(given[key], numbers.Real):
            raise TypeError(f"{name}: {key} is {given[key]!r}; expected a number")
        words[key] = int(program.dtype.type(float(given[key])).view(f"i{program.dtype.itemsize}"))
    return memory, words

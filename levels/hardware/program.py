"""A program that is written: machine code, the names and shapes of what it works on, and the checks of a call."""

# Built from 01_hardware.ipynb: edit there, then run its last cell.

import ctypes
import numbers

import numpy as np

from .device import Buffer
from .machine import machine_code


class _Array:
    """Memory that a program works on. A size is a number, or a name that the call will fill in."""

    def __init__(self, name, shape, kind, rows_of):
        self.name, self.shape, self.kind = name, shape, kind
        self.rows_of = rows_of  # its integers are row numbers of arrays of that size

    def __repr__(self):
        return f"{self.name}[{', '.join(map(str, self.shape))}]"


def _check_reach(name, array, axis, extent, sizes):
    """Raise IndexError if an index below `extent` can leave that axis of an array, as far as the sizes are known."""
    extent, size = (sizes.get(n, n) for n in (extent, array.shape[axis]))
    if not isinstance(extent, str) and not isinstance(size, str) and extent > size:
        raise IndexError(f"{name}: index {axis} of {array} goes up to {extent - 1}; the size there is {size}")


def _memory_of(program, array, buffer, sizes):
    """The memory of a buffer, if it is what this array expects. Named sizes are learned on the way."""
    data = buffer.data if isinstance(buffer, Buffer) and buffer.device.kind == "cpu" else None
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


def _checked(program, given):
    """({array: its memory}, {word: what it holds}) of a call that is right. Row numbers are copied: nobody can change them."""
    name, arrays, sizes = program.name, program.arrays, {}
    names = [word for word, kind in program.words.items() if kind != "i64"]
    if wrong := set(names) ^ set(given):
        raise TypeError(f"{name}: takes {', '.join(names)}; missing or unknown: {', '.join(sorted(wrong))}")
    memory = {key: _memory_of(program, array, given[key], sizes) for key, array in arrays.items()}
    if len(devices := {given[key].device.name for key in memory}) > 1:
        raise ValueError(f"{name}: buffers on {' and '.join(sorted(devices))}; copy them to one device first")
    for key, array in arrays.items():
        if array.rows_of:
            memory[key], limit = memory[key].copy(), sizes.get(array.rows_of, array.rows_of)
            for row in (memory[key].min(), memory[key].max()) if memory[key].size else ():
                if not 0 <= row < limit:
                    raise IndexError(f"{name}: {key} holds row {row}; there are {limit} rows")
    for reached in program.reaches:
        _check_reach(name, *reached, sizes)
    words = sizes | {key: data.ctypes.data for key, data in memory.items()}
    for key in given.keys() - memory.keys():
        if not isinstance(given[key], numbers.Real):
            raise TypeError(f"{name}: {key} is {given[key]!r}; expected a number")
        words[key] = int(program.dtype.type(float(given[key])).view(f"i{program.dtype.itemsize}"))
    return memory, words


def _text(a):
    """The whole program, in LLVM's language."""
    entry = list(a.slots)
    for n, (name, kind) in enumerate(a.words.items()):
        entry.append(f"  %address.{name} = getelementptr i64, ptr %words, i64 {n}")
        entry.append(f"  %word.{name} = load {kind}, ptr %address.{name}")
    start = [f"define void @program(ptr %words){a.promises} {{", "entry:", *entry, "  br label %start", "start:"]
    return "\n".join([*start, *a.lines, "  ret void", "}", ""])


class Program:
    """Machine code, called with buffers and numbers by name. Raises ValueError for open loops and unknown sizes."""

    def __init__(self, a):
        if len(a.scopes) != 1:
            raise ValueError(f"{a.name}: {'a loop has not ended' if a.scopes else 'it is assembled already'}")
        known = {size for array in a.arrays.values() for size in array.shape}
        if lost := {name for name, kind in a.words.items() if kind == "i64"} - known:
            raise ValueError(f"{a.name}: the size {min(lost)} is unknown: it stands in no array's shape")
        a.scopes.clear()
        self.name, self.dtype, self.arrays, self.words = a.name, a.dtype, a.arrays, a.words
        self.reaches, self.text = list(dict.fromkeys(a.reaches)), _text(a)
        self.engine, address = machine_code(self.text)
        self.run = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)

    def bind(self, **given):
        """Check buffers and numbers once. Returns the call, which takes no arguments and can be made many times."""
        memory, words = _checked(self, given)
        block = (ctypes.c_int64 * len(self.words))(*(words[name] for name in self.words))
        bound = [(name, given[name], given[name].data) for name in memory]

        def launch(kept=memory):  # and so alive
            for name, buffer, data in bound:
                if buffer.data is not data:
                    raise ValueError(f"{self.name}: {name} was freed after it was bound; bind again")
            self.run(block)

        return launch

    def __call__(self, **given):
        """Check everything and run."""
        self.bind(**given)()

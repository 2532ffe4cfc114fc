"""A finished program: machine code, the names and shapes of its arrays, and the checks made at a call."""

# Built from 01_hardware.ipynb: edit there, then run its last cell.

import ctypes

from levels.support.calls import checked
from levels.support.machine import machine_code

from .device import Buffer


class _Array:
    """An array that a program works on. A size is a number, or a name whose value the call gives."""

    def __init__(self, name, shape, kind, rows_of):
        self.name, self.shape, self.kind = name, shape, kind
        self.rows_of = rows_of  # if set, the array holds row numbers of arrays of that size

    def __repr__(self):
        return f"{self.name}[{', '.join(map(str, self.shape))}]"


def _text(a):
    """Return the text of the whole program, in LLVM's language."""
    entry = list(a.slots)
    for n, (name, kind) in enumerate(a.words.items()):
        entry.append(f"  %address.{name} = getelementptr i64, ptr %words, i64 {n}")
        entry.append(f"  %word.{name} = load {kind}, ptr %address.{name}")
    promises = " nounwind alignstack(64)" if a.lanes > 1 else ""  # on the stack no lanes may straddle two cache lines
    start = [f"define void @program(ptr %words){promises} {{", "entry:", *entry, "  br label %start", "start:"]
    return "\n".join([*start, *a.lines, "  ret void", "}", ""])


class Program:
    """A compiled program, called with named buffers and numbers. Raises ValueError for open loops or unknown sizes."""

    def __init__(self, a):
        if len(a.scopes) != 1:
            raise ValueError(f"{a.name}: {'a loop has not ended' if a.scopes else 'it is assembled already'}")
        known = {size for array in a.arrays.values() for size in array.shape}
        if lost := {name for name, kind in a.words.items() if kind == "i64"} - known:
            raise ValueError(f"{a.name}: the size {min(lost)} is unknown: it stands in no array's shape")
        a.scopes.clear()
        self.name, self.dtype, self.arrays, self.words = a.name, a.dtype, a.arrays, a.words
        self.bounds, self.text = list(dict.fromkeys(a.bounds)), _text(a)
        self.engine, address = machine_code(self.text)
        self.run = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)

    def bind(self, **given):
        """Check buffers and numbers once. Returns a function without arguments, which can be called many times."""
        memory, words = checked(self, given, Buffer)
        block = (ctypes.c_int64 * len(self.words))(*(words[name] for name in self.words))
        bound = [(name, given[name], given[name].data) for name in memory]

        def launch():
            for name, buffer, data in bound:
                if buffer.data is not data:
                    raise ValueError(f"{self.name}: {name} was freed after it was bound; bind again")
            self.run(block)

        launch.keeps = memory  # the copies of row numbers must live as long as the call
        return launch

    def __call__(self, **given):
        """Check the buffers and numbers, and run the program."""
        self.bind(**given)()

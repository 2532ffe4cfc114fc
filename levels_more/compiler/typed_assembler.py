"""An assembler for programs on integers and masks: it writes `add` where that of level 1 writes `fadd`."""

import functools
import re

import numpy as np

from levels.hardware import REAL, Value
from levels.support.machine import host_lanes
from levels_more.hardware.lanes import Lanes

KIND = REAL | {np.dtype("i8"): "i64", np.dtype(bool): "i8"}  # dtype -> LLVM's type; a mask is a byte in memory
_OF_INTEGERS = {  # instruction on floats -> on integers
    "fadd ": "add ",
    "fsub ": "sub ",
    "fmul ": "mul ",
    "fcmp olt ": "icmp slt ",
    "fcmp ole ": "icmp sle ",
    "fcmp oeq ": "icmp eq ",
    "fcmp une ": "icmp ne ",
    "@llvm.maximum(": "@llvm.smax(",
    "@llvm.minimum(": "@llvm.smin(",
}


class IntegerAssembler(Lanes):
    """Writes one program on int64 numbers, which wrap around as in NumPy, or on the bytes of masks.

    Raises TypeError for a constant that is no integer or is beyond 2^53.
    """

    def __init__(self, name, dtype, lanes=1):
        super().__init__(name, np.float64, lanes, over=())  # the dtype of its constants
        self.kind = self.wide(KIND[dtype])
        self.real = KIND[dtype]

    def integer(self, found):
        """Convert a constant, which level 1 writes as the bits of a float64, to an integer."""
        number = float(np.uint64(int(found[0], 16)).view(np.float64))
        if not number.is_integer() or abs(number) > 2**53:
            raise TypeError(f"{self.name}: {number} is no constant of a program on whole numbers")
        return str(int(number))

    def spelled(self, line):
        for of_floats, own in _OF_INTEGERS.items():
            line = line.replace(of_floats, own)
        return re.sub(r"\b0x[0-9A-F]{16}\b", self.integer, line)


def assembler(name, dtype, lanes):
    """An assembler for programs on numbers of this dtype. Its loops say whether they take lanes."""
    return Lanes(name, dtype, lanes, over=()) if dtype in REAL else IntegerAssembler(name, dtype, lanes)


@functools.cache  # LLVM takes a quarter of a millisecond to identify the processor
def all_lanes(dtype):
    """How many numbers a register holds. Lanes that are never added together reorder no sum: float64 has them too."""
    return host_lanes() * 4 // dtype.itemsize


def array_like(a, name, dtype, *shape):
    """Add an array of that dtype to a program that may compute in another one."""
    a.arrays[name] = a.array(name, *shape)._replace(kind=KIND[dtype])
    return a.arrays[name]


def loaded(a, array, dtype, *indices):
    """Load a number from an array of that dtype: a mask as a condition, others converted to the program's dtype."""
    number = a.load(array, *indices)
    kind = a.wide(array.kind)
    if array.kind == a.real:
        return number
    how = {"b": "zext" if a.real == "i64" else "uitofp", "i": "sitofp"}.get(dtype.kind)
    how = how or ("fpext" if dtype.itemsize < a.dtype.itemsize else "fptrunc")
    number = Value(a, a.write(f"{how} {kind} {number.register} to {a.kind}"))
    return number != 0.0 if dtype.kind == "b" else number


def stored(a, value, array, *indices):
    """Store a number, or a condition as a mask, in an array of any dtype. A float is rounded, or truncated to int64."""
    real = a.real
    kind = a.kind
    if array.kind != real:
        how = {"i8": f"zext {a.wide('i1')}", "i64": f"fptosi {kind}"}.get(array.kind, f"fptrunc {kind}")
        a.real, a.kind = array.kind, a.wide(array.kind)
        value = Value(a, a.write(f"{how} {value.register} to {a.kind}"))
    a.store(value, array, *indices)
    a.real = real
    a.kind = kind


def _bits(instruction):
    """Return a method that writes one instruction on two Words, or on a Word and an integer."""

    def write(x, y):
        other = y.register if isinstance(y, Word) else x.a.constant("i64", str(int(y)))
        return Word(x.a, x.a.write(f"{instruction} {x.a.wide('i64')} {x.register}, {other}"))

    return write


class Word:
    """64 bits in each lane. Its operators write instructions, and wrap around as those of np.uint64 do."""

    __array_ufunc__ = None  # so that np.uint64(2) * word is a Word

    def __init__(self, a, register):
        self.a = a
        self.register = register

    def number(self):
        """Convert it to a Value to compute with. It must be below 2⁶³."""
        return Value(self.a, self.a.write(f"sitofp {self.a.wide('i64')} {self.register} to {self.a.kind}"))

    __add__ = _bits("add")
    __rshift__ = _bits("lshr")
    __lshift__ = _bits("shl")
    __mul__ = __rmul__ = _bits("mul")
    __xor__ = __rxor__ = _bits("xor")
    __and__ = _bits("and")
    __or__ = _bits("or")

"""Programs on whole numbers and masks: an assembler that writes `add` where that of level 1 writes `fadd`."""

import functools

import numpy as np

from levels.hardware import REAL, Assembler, Value
from levels.support.machine import host_lanes

KIND = REAL | {np.dtype("i8"): "i64", np.dtype(bool): "i8"}  # LLVM's names; a mask is a byte in memory
_OF_INTEGERS = {  # of floats -> of whole numbers
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


class IntegerAssembler(Assembler):
    """Writes one program on int64 numbers, which wrap around as NumPy's do; of masks, on the bytes that hold them.

    Raises TypeError for a constant that is no whole number.
    """

    def __init__(self, name, dtype, lanes=1):
        super().__init__(name, np.float64, lanes)  # of which its constants are
        self.real = KIND[dtype]
        self.kind = self.wide(self.real)

    def constant(self, kind, text):
        return super().constant(kind, self.integer(text) if text.startswith("0x") else text)

    def integer(self, text):
        """A constant that level 1 writes as the bits of a float64, as a whole number."""
        number = float(np.uint64(int(text, 16)).view(np.float64))
        if not number.is_integer() or abs(number) > 2**53:
            raise TypeError(f"{self.name}: {number} is no constant of a program on whole numbers")
        return str(int(number))

    def write(self, text):
        for of_floats, own in _OF_INTEGERS.items():
            text = text.replace(of_floats, own)
        return super().write(text)


def assembler(name, dtype, lanes):
    """An assembler of programs on numbers of this dtype."""
    return (Assembler if dtype in REAL else IntegerAssembler)(name, dtype, lanes)


@functools.cache  # LLVM takes a quarter of a millisecond to say what processor this is
def all_lanes(dtype):
    """How many numbers a register holds. Lanes that never meet in a sum reorder nothing, so float64 has them too."""
    return host_lanes() * 4 // dtype.itemsize


def array_like(a, name, dtype, *shape):
    """An array of that dtype in a program that may compute in another one."""
    array = a.array(name, *shape)
    array.kind = KIND[dtype]
    return array


def loaded(a, array, dtype, *indices):
    """A number of an array of that dtype: a mask as a condition, else converted to what the program computes in."""
    number, kind = a.load(array, *indices), a.wide(array.kind)
    if array.kind == a.real:
        return number
    how = {"b": "zext" if a.real == "i64" else "uitofp", "i": "sitofp"}.get(dtype.kind)
    how = how or ("fpext" if dtype.itemsize < a.dtype.itemsize else "fptrunc")
    number = Value(a, a.write(f"{how} {kind} {number.register} to {a.kind}"))
    return number != 0.0 if dtype.kind == "b" else number


def stored(a, value, array, *indices):
    """Store a number, or a condition as a mask, in an array of any dtype; what is cut off of a number is lost."""
    real, kind = a.real, a.kind
    if array.kind != real:
        how = {"i8": f"zext {a.wide('i1')}", "i64": f"fptosi {kind}"}.get(array.kind, f"fptrunc {kind}")
        a.real, a.kind = array.kind, a.wide(array.kind)
        value = Value(a, a.write(f"{how} {value.register} to {a.kind}"))
    a.store(value, array, *indices)
    a.real, a.kind = real, kind


def _bits(instruction):
    """A method that writes one instruction on two words, or on a word and a whole number."""

    def write(x, y):
        other = y.register if isinstance(y, Word) else x.a.constant("i64", str(int(y)))
        return Word(x.a, x.a.write(f"{instruction} {x.a.wide('i64')} {x.register}, {other}"))

    return write


class Word:
    """64 bits in each lane. Its operators write instructions, and wrap around as those of np.uint64 do."""

    __array_ufunc__ = None  # np.uint64(2) * word is a word, too

    def __init__(self, a, register):
        self.a, self.register = a, register

    def number(self):
        """What it counts, below 2⁶³, as a number to compute with."""
        return Value(self.a, self.a.write(f"sitofp {self.a.wide('i64')} {self.register} to {self.a.kind}"))

    __add__, __rshift__, __lshift__ = _bits("add"), _bits("lshr"), _bits("shl")
    __mul__ = __rmul__ = _bits("mul")
    __xor__ = __rxor__ = _bits("xor")
    __and__, __or__ = _bits("and"), _bits("or")

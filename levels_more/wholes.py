"""Programs on whole numbers and masks: an assembler that writes `add` where that of level 1 writes `fadd`."""

import numpy as np

from levels.hardware import REAL, Assembler, Value, host_lanes

KIND = REAL | {np.dtype("i8"): "i64", np.dtype(bool): "i8"}  # LLVM's names; a mask is a byte in memory
_WHOLE = {  # of floats -> of whole numbers
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


class Wholes(Assembler):
    """Writes one program on int64 numbers, which wrap around as NumPy's do; of masks, on the bytes that hold them."""

    def __init__(self, name, dtype, lanes=1):
        super().__init__(name, np.float64, lanes)
        self.dtype, self.real = dtype, KIND[dtype]
        self.kind, written = self.wide(self.real), self.constant
        self.constant = lambda kind, text: written(kind, self.whole(text) if text.startswith("0x") else text)

    @staticmethod
    def whole(text):
        """A constant that level 1 writes as the bits of a float64, as a whole number."""
        return str(int(np.uint64(int(text, 16)).view(np.float64)))

    def write(self, text):
        for of_floats, own in _WHOLE.items():
            text = text.replace(of_floats, own)
        return super().write(text)


def assembler(name, dtype, lanes):
    """An assembler of programs on numbers of this dtype."""
    return (Assembler if dtype in REAL else Wholes)(name, dtype, lanes)


def all_lanes(dtype):
    """How many numbers a register holds. Lanes that never meet in a sum reorder nothing, so float64 has them too."""
    return host_lanes() * 4 // dtype.itemsize


def array_like(a, name, dtype, *shape):
    """An array of that dtype in a program that may compute in another one."""
    array = a.array(name, *shape)
    array.kind = KIND[dtype]
    return array


def loaded(a, array, dtype, *indices):
    """A number of an array of that dtype: a mask as a condition, another one converted to what the program computes in."""
    number, kind = a.load(array, *indices), a.wide(array.kind)
    if array.kind == a.real:
        return number
    how = {"b": "zext" if a.dtype.kind == "i" else "uitofp", "i": "sitofp"}.get(dtype.kind)
    how = how or ("fpext" if dtype.itemsize < a.dtype.itemsize else "fptrunc")
    number = Value(a, a.write(f"{how} {kind} {number.register} to {a.kind}"))
    return number != 0.0 if dtype.kind == "b" else number


def stored(a, value, array, *indices):
    """Store a number, or a condition as a mask."""
    real, kind = a.real, a.kind
    if array.kind != real:  # a mask
        byte = f"zext {a.wide('i1')} {value.register} to {a.wide('i8')}"
        value, a.real, a.kind = Value(a, a.write(byte)), "i8", a.wide("i8")
    a.store(value, array, *indices)
    a.real, a.kind = real, kind

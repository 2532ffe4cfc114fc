"""Checks while a program is written, and LLVM's spelling of constants. Each check turns a wrong program into a sentence.

`a` is the assembler; of a register, only `a`, `register`, `scope` and `holds` are used. Notebook 01 uses this file.
"""

import numbers

import numpy as np


def check_dtype(name, dtype, known):
    """Return the dtype if `known` has it. Else raise TypeError."""
    try:
        found = None if dtype is None else np.dtype(dtype)
    except (TypeError, ValueError):
        found = None
    if found not in known:
        raise TypeError(f"{name}: dtype is {found or repr(dtype)[:60]}; a program computes in float32 or float64")
    return found


def open_scope(a):
    """Return the innermost open loop. Raises ValueError if the program is assembled."""
    if not a.scopes:
        raise ValueError(f"{a.name}: the program is assembled; nothing can be added to it")
    return a.scopes[-1]


def live(a, thing):
    """Return a register's name. Raises ValueError unless it belongs to this program, and to a loop that is open."""
    if thing.scope not in a.scopes:
        raise ValueError(f"{a.name}: {thing!r} is not of this program or its loop has ended; a sum carries numbers out")
    return thing.register


def alike(a, kind):
    """Return the type of a register that has one `kind` for each number of a value: `i1` beside `double`, for one."""
    return a.kind.replace(a.real, kind)


def constant(a, kind, text):
    """Return a constant of such a type: the same for each number."""
    return str(text) if alike(a, kind) == kind else f"splat ({kind} {text})"


def operand(a, x):
    """Return the register of a value, or a Python number in LLVM's notation, as float64 bits. Or raise TypeError."""
    if getattr(x, "holds", "") == "a number":
        return live(a, x)
    if not isinstance(x, numbers.Real):
        raise TypeError(f"{a.name}: expected a number to compute with, got {x!r}")
    bits = np.float64(a.dtype.type(float(x))).view(np.uint64)
    return constant(a, a.real, f"0x{bits:016X}")


class Unknown:
    """The operators of a register without a number raise TypeError. (Python would say False for `i == 1`.)"""

    def __bool__(self):
        raise TypeError(f"{self.a.name}: {self!r} is not known yet; use select(condition, x, y)")

    def _refuse(self, *_):
        raise TypeError(f"{self.a.name}: expected a number to compute with, got {self!r}")

    for sign in ["add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv"]:
        vars()[f"__{sign}__"] = _refuse
    for sign in ["lt", "le", "gt", "ge", "eq", "ne", "neg", "abs"]:
        vars()[f"__{sign}__"] = _refuse
    __hash__ = object.__hash__


def is_new_word(a, name, kind):
    """Return whether a call does not hand over this word yet. Raises ValueError for a bad name, or one that is taken."""
    fits = isinstance(name, str) and name.isidentifier() and name.isascii()
    if not fits or a.words.get(name, kind) != kind:
        raise ValueError(f"{a.name}: {name!r}; expected a word of its own, such as 'rows'")
    return name not in a.words


def is_number(extent):
    """Return whether a size is a positive whole number below 2^31. (Else it is a name.)"""
    return isinstance(extent, numbers.Integral) and not isinstance(extent, bool) and 0 < extent < 2**31


def check_array(a, name, shape):
    """Raise ValueError unless an array has a shape, and a name of its own."""
    if str(name) in a.words or not shape:
        raise ValueError(f"{a.name}: array {name!r} needs a shape, and a name of its own")


def constant_index(a, i):
    """Return a whole number from 0 to below 2^31. Raises TypeError for anything else."""
    if not isinstance(i, numbers.Integral) or not 0 <= i < 2**31:
        raise TypeError(f"{a.name}: {i!r} is no index; expected a whole number below 2^31 or a loop's counter")
    return int(i)


def check_indices(a, array, indices):
    """Raise TypeError or IndexError unless the array is one of this program, with as many axes as there are indices."""
    if not any(array is own for own in a.arrays.values()):
        raise TypeError(f"{a.name}: {array!r} is not an array of this program")
    if len(indices) != len(array.shape):
        raise IndexError(f"{a.name}: {array} needs {len(array.shape)} indices, got {len(indices)}")


def check_writable(a, array):
    """Raise TypeError if an array holds row numbers."""
    if array.rows_of:
        raise TypeError(f"{a.name}: {array} holds row numbers, which a program only reads")


def close_loop(a, scope):
    """Remove a loop from the open ones. Raises ValueError unless it is the innermost."""
    if a.scopes.pop() != scope:
        raise ValueError(f"{a.name}: loops end in the reverse order of their beginnings")


def close_program(a):
    """End the program. Raises ValueError for a loop that is open, or a size that no call could know."""
    if len(a.scopes) != 1:
        raise ValueError(f"{a.name}: {'a loop has not ended' if a.scopes else 'it is assembled already'}")
    known = {size for array in a.arrays.values() for size in array.shape}
    if lost := {name for name, kind in a.words.items() if kind == "i64"} - known:
        raise ValueError(f"{a.name}: the size {min(lost)} is unknown: it stands in no array's shape")
    a.scopes.clear()

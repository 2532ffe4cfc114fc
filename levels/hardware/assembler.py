"""An assembler: it writes a program down, instruction by instruction, and lets no address leave its array."""

# Built from 01_hardware.ipynb: edit there, then run its last cell.

import numbers
from contextlib import contextmanager

import numpy as np

from .formulas import flat
from .lanes import _counters, _load_lanes, _store_lanes, _unmasked, _wholes
from .machine import host_lanes
from .program import Program, _Array, _check_reach
from .values import REAL, Index, Value, _live, _number


def _index(a, i):
    """A whole number as an Index; an Index as it is."""
    if isinstance(i, Index):
        return _live(a, i)
    if not isinstance(i, numbers.Integral) or not 0 <= i < 2**31:
        raise TypeError(f"{a.name}: {i!r} is no index; expected a whole number below 2^31 or the counter of a loop")
    return Index(a, str(int(i)), int(i) + 1)


def _indices(a, array, indices):
    """The indices, each as an Index that was checked, or noted for the check at the call."""
    if not isinstance(array, _Array) or a.arrays.get(array.name) is not array:
        raise TypeError(f"{a.name}: {array!r} is not an array of this program")
    if len(indices) != len(array.shape):
        raise IndexError(f"{a.name}: {array} needs {len(array.shape)} indices, got {len(indices)}")
    indices = [_index(a, i) for i in indices]
    for axis, (i, size) in enumerate(zip(indices, array.shape)):
        if i.extent != size:  # else it counts over this very size
            a.reaches.append((array, axis, i.extent))
            if not isinstance(i.extent, str) and not isinstance(size, str):
                _check_reach(a.name, *a.reaches[-1], {})
    return indices


def _place(a, array, indices):
    """Where array[indices] lies, as a whole number in a register."""
    here, *columns = _wholes(a, _indices(a, array, indices))
    for column, size in zip(columns, array.shape[1:]):
        here = flat(here, here.like(a.size(size)), column)
    return here


def _check_store(a, array, place):
    """Raise TypeError where no number can be stored."""
    if array.rows_of:
        raise TypeError(f"{a.name}: {array} holds row numbers, which a program only reads")
    if a.mask and not place.lanes:
        raise TypeError(f"{a.name}: {array} has one place there, and each lane a number; store a total after them")


_FAST = "contract nsz arcp "  # float32 may fuse a·b + c into one instruction, and turn x/n into x·(1/n)


class _Paper:
    """A program as it is being written: its lines, the loops that are open, and what a call will hand over."""

    def __init__(self, name, dtype, lanes=None):
        if dtype is None or np.dtype(dtype) not in REAL:
            raise TypeError(f"{name}: dtype is {np.dtype(dtype)}; a program computes in float32 or float64")
        self.name, self.dtype, single = name, np.dtype(dtype), np.dtype(dtype) == np.float32
        self.lanes = (host_lanes() if single else 1) if lanes is None else lanes
        if not isinstance(self.lanes, int) or self.lanes not in (1, 2, 4, 8, 16, 32, 64):
            raise ValueError(f"{name}: lanes is {lanes!r}; expected a power of two, at most 64")
        self.real, self.flags = REAL[self.dtype], _FAST * single
        self.kind = self.wide(self.real)
        self.slots, self.lines, self.mask = [], [], None  # mask: inside of lanes, which of them are not past the end
        self.arrays, self.words, self.reaches = {}, {}, []
        self.scopes = [(self, None)]  # what is open, outermost first: the program itself, then its loops

    def wide(self, kind):
        """The type of a register with one of that kind in each lane."""
        return kind if self.lanes == 1 else f"<{self.lanes} x {kind}>"

    def constant(self, kind, text):
        """A constant, in each lane the same."""
        return str(text) if self.lanes == 1 else f"splat ({kind} {text})"

    def spread(self, kind, register):
        """A register with the same in each lane."""
        if self.lanes == 1:
            return register
        wide = self.wide(kind)
        first = self.write(f"insertelement {wide} poison, {kind} {register}, i32 0")
        return self.write(f"shufflevector {wide} {first}, {wide} poison, {self.wide('i32')} zeroinitializer")

    def first(self, register):
        """The register of the number in the first lane."""
        return register if self.lanes == 1 else self.write(f"extractelement {self.kind} {register}, i32 0")

    def emit(self, *lines):
        """Append lines; one that ends with a colon begins a block."""
        self.lines += [line if line.endswith(":") else f"  {line}" for line in lines]

    def write(self, text):
        """Append an instruction, and name the register that it sets."""
        register = f"%v{len(self.lines)}"
        self.emit(f"{register} = {text}")
        return register

    def slot(self, kind):
        """A place for one value that changes: memory on the stack, which LLVM turns into a register."""
        self.slots.append(f"  %slot{len(self.slots)} = alloca {kind}")
        return f"%slot{len(self.slots) - 1}"

    @property
    def scope(self):
        """The innermost open loop: what is written now belongs to it."""
        if not self.scopes:
            raise ValueError(f"{self.name}: the program is assembled; nothing can be added to it")
        return self.scopes[-1]

    def word(self, name, kind):
        """The register of a word that each call hands over: the address of an array (ptr), a size (i64) or a number."""
        if not isinstance(name, str) or not (name.isidentifier() and name.isascii()):
            raise ValueError(f"{self.name}: {name!r} is no name; expected a word such as 'rows'")
        if self.words.setdefault(name, kind) != kind:
            raise ValueError(f"{self.name}: {name!r} is the name of something else; expected a name of its own")
        return f"%word.{name}"

    def size(self, extent):
        """A size as a register: a positive whole number, or a name."""
        whole = isinstance(extent, numbers.Integral) and 0 < extent < 2**31
        return str(int(extent)) if whole else self.word(extent, "i64")

    def array(self, name, *shape, rows_of=None):
        """An array that each call hands over. `rows_of`: it holds row numbers of the arrays of that size."""
        if str(name) in self.words or not shape:
            raise ValueError(f"{self.name}: array {name!r} needs a shape, and a name of its own")
        for size in shape if rows_of is None else (*shape, rows_of):
            self.size(size)
        self.word(name, "ptr")
        self.arrays[name] = _Array(name, shape, rows_of)
        return self.arrays[name]

    def number(self, name):
        """A number that each call hands over, such as a learning rate."""
        return Value(self, self.spread(self.real, self.word(name, self.real)))

    def count(self, what):
        """A size, or an index, as a number to compute with."""
        index = _index(self, what) if isinstance(what, Index) else Index(self, self.size(what), what)
        each = index.each or self.spread("i64", index.register)
        return Value(self, self.write(f"sitofp {self.wide('i64')} {each} to {self.kind}"))


class _Moves(_Paper):
    """Loads and stores."""

    def load(self, array, *indices):
        """array[indices] in a register; a row number becomes an index of the arrays it counts the rows of."""
        place, pointer = _place(self, array, indices), f"%word.{array.name}"
        kind = "i64" if array.rows_of else self.real
        if place.lanes:
            each = _load_lanes(self, kind, pointer, place)
            return Index(self, None, array.rows_of, each) if array.rows_of else Value(self, each)
        address = self.write(f"getelementptr {kind}, ptr {pointer}, i64 {place.register}")
        one = self.write(f"load {kind}, ptr {address}")
        return Index(self, one, array.rows_of) if array.rows_of else Value(self, self.spread(kind, one))

    def store(self, value, array, *indices):
        """Store a value into array[indices]."""
        place, pointer, register = _place(self, array, indices), f"%word.{array.name}", _number(self, value)
        _check_store(self, array, place)
        if place.lanes:
            return _store_lanes(self, register, pointer, place)
        address = self.write(f"getelementptr {self.real}, ptr {pointer}, i64 {place.register}")
        self.emit(f"store {self.real} {self.first(register)}, ptr {address}")


class Assembler(_Moves):
    """Writes one program. float64: one number at a time, nothing reordered. float32: lanes, and sums in lanes."""

    @contextmanager
    def loop(self, extent, lanes=1):
        """Write a loop over [0, extent), `lanes` counters a turn. Raises ValueError for wrong lanes or nesting."""
        if self.scope is None or type(lanes) is not int or lanes not in (1, self.lanes) or lanes > 1 and self.mask:
            raise ValueError(
                f"{self.name}: a loop takes 1 counter at once or, outside of lanes, {self.lanes}; got {lanes}"
            )
        end, n = self.size(extent), len(self.lines)
        self.emit(f"br label %before{n}", f"before{n}:", f"br label %test{n}", f"test{n}:")
        self.emit(f"%i{n} = phi i64 [0, %before{n}], [%next{n}, %again{n}]")
        self.emit(f"%more{n} = icmp slt i64 %i{n}, {end}")
        self.emit(f"br i1 %more{n}, label %body{n}, label %after{n}", f"body{n}:")
        self.scopes.append((self, n))
        yield Index(self, f"%i{n}", extent) if lanes == 1 else _counters(self, f"%i{n}", extent, end)
        if lanes > 1:
            self.mask = None
        if self.scopes.pop() != (self, n):
            raise ValueError(f"{self.name}: loops end in the reverse order of their beginnings")
        self.emit(f"br label %again{n}", f"again{n}:", f"%next{n} = add i64 %i{n}, {lanes}")
        self.emit(f"br label %test{n}", f"after{n}:")

    def sum(self):
        """A running sum, which starts at 0.0."""
        return _Sum(self)

    def assemble(self):
        """End the program and turn it into machine code."""
        return Program(self)


def _so_far(total):
    """What has been added up so far."""
    a = _live(total.a, total).a
    return Value(a, a.write(f"load {a.kind}, ptr {total.slot}"))


def _across(a, value):
    """The sum of a value over all lanes. In float32 LLVM may add them in the order that is quickest."""
    if a.lanes == 1:
        return value
    order = "reassoc " if a.flags else ""
    one = f"call {order}{a.real} @llvm.vector.reduce.fadd({a.real} 0.0, {a.kind} {value.register})"
    return Value(a, a.spread(a.real, a.write(one)))


class _Sum:
    """A running sum: starts at 0.0, grows with `+=`, in each lane its own. `total()` is the sum of them all."""

    def __init__(self, a):
        self.a, self.scope, self.slot = a, a.scope, a.slot(a.kind)
        a.emit(f"store {a.kind} zeroinitializer, ptr {self.slot}")

    def value(self):
        """What has been added up so far, one number a lane."""
        a = _live(self.a, self).a
        if a.lanes > 1 and not a.mask:
            raise ValueError(f"{a.name}: outside of lanes a sum has only a total")
        return _so_far(self)

    def __iadd__(self, term):
        a, old = self.a, _so_far(self)
        a.emit(f"store {a.kind} {_unmasked(a, old + term, old)}, ptr {self.slot}")
        return self

    def total(self):
        """The sum as one number."""
        return _across(self.a, _so_far(self))

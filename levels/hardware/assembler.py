"""An assembler: it writes a program down, instruction by instruction, and lets no address leave its array."""

# Built from 01_hardware.ipynb: edit there, then run its last cell.

import numbers
from contextlib import contextmanager
from functools import partialmethod

import numpy as np

from .formulas import flat
from .machine import host_lanes
from .program import Program, _Array, _check_reach
from .values import REAL, Index, Value, _live, _number


class _Whole:
    """A whole number in a register, or one in each lane. Its * and + write instructions."""

    def __init__(self, a, register, lanes=None):
        self.a, self.register, self.lanes = a, register, lanes  # lanes: None, "side by side" or "apart"
        self.kind = a.wide("i64") if lanes == "apart" else "i64"

    def write(self, instruction, other):
        text = f"{instruction} {self.kind} {self.register}, {other.register}"
        return _Whole(self.a, self.a.write(text), self.lanes)

    __add__, __mul__ = partialmethod(write, "add"), partialmethod(write, "mul")

    def like(self, register):
        """Another whole number, in as many lanes as this one."""
        return _Whole(self.a, self.a.spread("i64", register) if self.lanes == "apart" else register, self.lanes)


def _wholes(a, array, indices):
    """The indices of an array, checked or noted for the check at the call: a number each, or one each in every lane."""
    if not isinstance(array, _Array) or a.arrays.get(array.name) is not array:
        raise TypeError(f"{a.name}: {array!r} is not an array of this program")
    if len(indices) != len(array.shape):
        raise IndexError(f"{a.name}: {array} needs {len(array.shape)} indices, got {len(indices)}")
    indices = [a.index(i) for i in indices]
    for axis, (i, size) in enumerate(zip(indices, array.shape)):
        if i.extent != size:  # else it counts over this very size
            a.reaches.append((array, axis, i.extent))
            if not isinstance(i.extent, str) and not isinstance(size, str):
                _check_reach(a.name, *a.reaches[-1], {})
    if indices[-1].register and not any(i.each for i in indices[:-1]):
        return [_Whole(a, i.register, "side by side" if indices[-1].each else None) for i in indices]
    return [_Whole(a, i.each or a.spread("i64", i.register), "apart") for i in indices]


def _load_lanes(a, kind, address, lanes):
    """One load where the numbers lie side by side, else one for each lane. (LLVM's gather was slower where we tried.)"""
    wide, register = a.wide(kind), "poison"
    if lanes == "side by side":
        mask = f"{a.wide('i1')} {a.mask}"
        return a.write(f"call {wide} @llvm.masked.load(ptr {address}, {mask}, {wide} zeroinitializer)")
    for lane in range(a.lanes):
        one = a.write(f"extractelement {a.wide('ptr')} {address}, i32 {lane}")
        one = a.write(f"load {kind}, ptr {one}")
        register = a.write(f"insertelement {wide} {register}, {kind} {one}, i32 {lane}")
    return register


def _place(a, array, indices):
    """The address of array[indices] in a register, and how the addresses of the lanes lie, if there are several."""
    here, *columns = _wholes(a, array, indices)
    for column, size in zip(columns, array.shape[1:]):
        here = flat(here, here.like(a.size(size)), column)
    return a.write(f"getelementptr {array.kind}, ptr %word.{array.name}, {here.kind} {here.register}"), here.lanes


def _load(a, array, *indices):
    """array[indices] in a register; a row number becomes an index of the arrays it counts the rows of."""
    address, lanes = _place(a, array, indices)
    one = None if lanes else a.write(f"load {array.kind}, ptr {address}")
    each = _load_lanes(a, array.kind, address, lanes) if lanes else None
    if array.rows_of:
        return Index(a, one, array.rows_of, each)
    return Value(a, each or a.spread(array.kind, one))


def _store(a, value, array, *indices):
    """Store a value into array[indices]."""
    (address, lanes), register = _place(a, array, indices), _number(a, value)
    if array.rows_of:
        raise TypeError(f"{a.name}: {array} holds row numbers, which a program only reads")
    if a.mask and not lanes:
        raise TypeError(f"{a.name}: {array} has one place there, and each lane a number; store a total after them")
    if not lanes:
        one = register if a.lanes == 1 else a.write(f"extractelement {a.kind} {register}, i32 0")
        return a.emit(f"store {a.real} {one}, ptr {address}")
    name, kind = ("scatter", a.wide("ptr")) if lanes == "apart" else ("store", "ptr")
    a.emit(f"call void @llvm.masked.{name}({a.kind} {register}, {kind} {address}, {a.wide('i1')} {a.mask})")


class Assembler:
    """Writes one program. float64: one number at a time, nothing reordered. float32: lanes, and sums in lanes.

    Raises TypeError and ValueError for what can be no part of it.
    """

    load, store = _load, _store

    def __init__(self, name, dtype, lanes=None):
        if dtype is None or np.dtype(dtype) not in REAL:
            raise TypeError(f"{name}: dtype is {np.dtype(dtype)}; a program computes in float32 or float64")
        self.name, self.dtype, single = name, np.dtype(dtype), np.dtype(dtype) == np.float32
        self.lanes = (host_lanes() if single else 1) if lanes is None else lanes
        if not isinstance(self.lanes, int) or self.lanes not in (1, 2, 4, 8, 16, 32, 64):
            raise ValueError(f"{name}: lanes is {lanes!r}; expected a power of two, at most 64")
        self.flags = "contract " * single  # it may fuse a·b + c into one instruction
        self.real, self.kind = REAL[self.dtype], self.wide(REAL[self.dtype])
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
        fits = isinstance(name, str) and name.isidentifier() and name.isascii()
        if not fits or self.words.setdefault(name, kind) != kind:
            raise ValueError(f"{self.name}: {name!r}; expected a word of its own, such as 'rows'")
        return f"%word.{name}"

    def size(self, extent):
        """A size as a register: a positive whole number, or a name."""
        whole = isinstance(extent, numbers.Integral) and 0 < extent < 2**31
        return str(int(extent)) if whole else self.word(extent, "i64")

    def index(self, i):
        """A whole number as an Index; an Index, if it is alive, as it is."""
        if isinstance(i, Index):
            return _live(self, i)
        if not isinstance(i, numbers.Integral) or not 0 <= i < 2**31:
            raise TypeError(f"{self.name}: {i!r} is no index; expected a whole number below 2^31 or a loop's counter")
        return Index(self, str(int(i)), int(i) + 1)

    def array(self, name, *shape, rows_of=None):
        """An array that each call hands over. `rows_of`: it holds row numbers of the arrays of that size."""
        if str(name) in self.words or not shape:
            raise ValueError(f"{self.name}: array {name!r} needs a shape, and a name of its own")
        for size in shape if rows_of is None else (*shape, rows_of):
            self.size(size)
        self.word(name, "ptr")
        self.arrays[name] = _Array(name, shape, "i64" if rows_of else self.real, rows_of)
        return self.arrays[name]

    def number(self, name):
        """A number that each call hands over, such as a learning rate."""
        return Value(self, self.spread(self.real, self.word(name, self.real)))

    def count(self, what):
        """A size, or an index, as a number to compute with."""
        index = self.index(what) if isinstance(what, Index) else Index(self, self.size(what), what)
        each = index.each or self.spread("i64", index.register)
        return Value(self, self.write(f"sitofp {self.wide('i64')} {each} to {self.kind}"))

    @contextmanager
    def loop(self, extent, lanes=1):
        """Write a loop over [0, extent), `lanes` counters a turn."""
        if self.scope is None or type(lanes) is not int or lanes not in (1, self.lanes) or lanes > 1 and self.mask:
            raise ValueError(f"{self.name}: {lanes!r} counters at once; expected 1 or, outside of lanes, {self.lanes}")
        end, n = self.size(extent), len(self.lines)
        self.emit(f"br label %before{n}", f"before{n}:", f"br label %test{n}", f"test{n}:")
        self.emit(f"%i{n} = phi i64 [0, %before{n}], [%next{n}, %again{n}]")
        self.emit(f"%more{n} = icmp slt i64 %i{n}, {end}")
        self.emit(f"br i1 %more{n}, label %body{n}, label %after{n}", f"body{n}:")
        self.scopes.append((self, n))
        yield Index(self, f"%i{n}", extent, self._counters(f"%i{n}", end) if lanes > 1 else None)
        if lanes > 1:
            self.mask = None
        if self.scopes.pop() != (self, n):
            raise ValueError(f"{self.name}: loops end in the reverse order of their beginnings")
        self.emit(f"br label %again{n}", f"again{n}:", f"%next{n} = add i64 %i{n}, {lanes}")
        self.emit(f"br label %test{n}", f"after{n}:")

    def _counters(self, first, end):
        """The counters of one turn, a lane each. Those past the end are masked and 0: what they compute is never kept."""
        wide, each = self.wide("i64"), f"<{', '.join(f'i64 {lane}' for lane in range(self.lanes))}>"
        each = self.write(f"add {wide} {self.spread('i64', first)}, {each}")
        self.mask = self.constant("i1", "true")  # all lanes, in every turn: then a mask costs nothing, on any processor
        if end.isdigit() and int(end) % self.lanes == 0:
            return each
        self.mask = self.write(f"icmp slt {wide} {each}, {self.spread('i64', end)}")
        return self.write(f"select {self.wide('i1')} {self.mask}, {wide} {each}, {wide} zeroinitializer")

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


def _grown(a, old, term):
    """The register of old + term: in lanes that are not masked or, outside of lanes, in the first one; else that of old."""
    new = (old + term).register
    if a.lanes == 1:
        return new
    mask = a.mask or f"<i1 true{', i1 false' * (a.lanes - 1)}>"
    return a.write(f"select {a.wide('i1')} {mask}, {a.kind} {new}, {a.kind} {old.register}")


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
        a = self.a
        a.emit(f"store {a.kind} {_grown(a, _so_far(self), term)}, ptr {self.slot}")
        return self

    def total(self):
        """The sum as one number."""
        return _across(self.a, _so_far(self))

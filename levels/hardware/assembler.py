"""An assembler: it writes a program, instruction by instruction, and keeps each address within its array."""

# Built from 01_hardware.ipynb: edit there, then run its last cell.

import numbers
from contextlib import contextmanager

from levels.support.calls import check_bound

from .formulas import flat
from .program import Program, _Array
from .values import Index, Value, _live, _operand, _Sum
from .writer import Writer


class Loops(Writer):
    """A Writer with loops and with the arguments of a call: sizes, numbers, arrays. Raises TypeError, ValueError."""

    def __init__(self, name, dtype, lanes=None):
        super().__init__(name, dtype, lanes)
        self.words = {}  # the name of a word -> its type
        self.arrays = {}  # the name of an array -> the array
        self.bounds = []  # (array, axis, size): on that axis an index goes up to size - 1

    def word(self, name, kind):
        """Return the register of an argument of each call: the address of an array (ptr), a size (i64) or a number."""
        fits = isinstance(name, str) and name.isidentifier() and name.isascii()
        if not fits or self.words.setdefault(name, kind) != kind:
            raise ValueError(f"{self.name}: {name!r}; expected a word of its own, such as 'rows'")
        return f"%word.{name}"

    def size(self, extent):
        """Return the operand for a size, which is a positive whole number or a name."""
        whole = isinstance(extent, numbers.Integral) and 0 < extent < 2**31
        return str(int(extent)) if whole else self.word(extent, "i64")

    def index(self, i):
        """Return a whole number as an Index. An Index is returned as it is if its loop is open."""
        if isinstance(i, Index):
            return _live(self, i)
        if not isinstance(i, numbers.Integral) or not 0 <= i < 2**31:
            raise TypeError(f"{self.name}: {i!r} is no index; expected a whole number below 2^31 or a loop's counter")
        return Index(self, str(int(i)), int(i) + 1)

    def array(self, name, *shape, rows_of=None):
        """Declare an array, given at each call. With `rows_of`, it holds row numbers of arrays of that size."""
        if str(name) in self.words or not shape:
            raise ValueError(f"{self.name}: array {name!r} needs a shape, and a name of its own")
        for size in shape if rows_of is None else (*shape, rows_of):
            self.size(size)
        self.word(name, "ptr")
        self.arrays[name] = _Array(name, shape, "i64" if rows_of else self.real, rows_of)
        return self.arrays[name]

    def number(self, name):
        """Declare a number, given at each call, such as a learning rate."""
        return Value(self, self.spread(self.real, self.word(name, self.real)))

    def count(self, what):
        """Convert a size or an index to a number to compute with."""
        index = self.index(what) if isinstance(what, Index) else Index(self, self.size(what), what)
        each = index.each or self.spread("i64", index.register)
        return Value(self, self.write(f"sitofp {self.wide('i64')} {each} to {self.kind}"))

    @contextmanager
    def loop(self, extent, lanes=1):
        """Write a loop over [0, extent) that takes `lanes` rows per turn: 1, or all `self.lanes`."""
        most = 1 if self.mask else self.lanes
        if self.scope is None or type(lanes) is not int or lanes not in (1, most):
            raise ValueError(f"{self.name}: {lanes!r} at once; expected {'1' if most == 1 else f'1 or {most}'}")
        end, n = self.size(extent), len(self.lines)
        before, after = _loop_lines(n, end, lanes)
        self.emit(*before)
        self.scopes.append((self, n))
        i = Index(self, f"%i{n}", extent)
        if lanes > 1:
            i.each, self.mask = self.counters(i, end)
        yield i
        if self.scopes.pop() != (self, n):
            raise ValueError(f"{self.name}: loops end in the reverse order of their beginnings")
        if lanes > 1:
            self.mask = None
        self.emit(*after)

    def counters(self, i, end):
        """Return each lane's counter, and the mask of those before the end. The others read row 0 and store nothing."""
        kind, nth = self.wide("i64"), ", ".join(f"i64 {lane}" for lane in range(self.lanes))
        each = self.write(f"add {kind} {self.spread('i64', i.register)}, <{nth}>")
        if end.isdigit() and int(end) % self.lanes == 0:
            return each, self.constant("i1", "true")  # a mask of all lanes costs nothing
        mask = self.write(f"icmp slt {kind} {each}, {self.spread('i64', end)}")
        return self.write(f"select {self.wide('i1')} {mask}, {kind} {each}, {kind} zeroinitializer"), mask


def _loop_lines(n, end, step):
    """Return the lines before and after the body of loop number n. In it, %i{n} counts from 0 to below `end`."""
    before = [f"br label %before{n}", f"before{n}:", f"br label %test{n}", f"test{n}:"]
    before += [f"%i{n} = phi i64 [0, %before{n}], [%next{n}, %again{n}]", f"%more{n} = icmp slt i64 %i{n}, {end}"]
    before += [f"br i1 %more{n}, label %body{n}, label %after{n}", f"body{n}:"]
    after = [f"br label %again{n}", f"again{n}:", f"%next{n} = add i64 %i{n}, {step}"]
    after += [f"br label %test{n}", f"after{n}:"]
    return before, after


class _IntValue:
    """A whole number in a register. Its * and + write instructions."""

    def __init__(self, a, register, kind):
        self.a, self.register, self.kind = a, register, kind

    def __add__(self, other):
        return _IntValue(self.a, self.a.write(f"add {self.kind} {self.register}, {other.register}"), self.kind)

    def __mul__(self, other):
        return _IntValue(self.a, self.a.write(f"mul {self.kind} {self.register}, {other.register}"), self.kind)


def _checked_indices(a, array, indices):
    """Return an array's indices, each checked now, or noted for the check at the call."""
    if not isinstance(array, _Array) or a.arrays.get(array.name) is not array:
        raise TypeError(f"{a.name}: {array!r} is not an array of this program")
    if len(indices) != len(array.shape):
        raise IndexError(f"{a.name}: {array} needs {len(array.shape)} indices, got {len(indices)}")
    indices = [a.index(i) for i in indices]
    for axis, (i, size) in enumerate(zip(indices, array.shape)):
        if i.extent != size:  # an equal extent is always within range
            a.bounds.append((array, axis, i.extent))
            check_bound(a.name, *a.bounds[-1], {})
    return indices


def _address_of(a, array, indices):
    """Return the address of array[indices], and where its lanes lie: "side by side", "apart", or "" for one place."""
    *before, last = indices = _checked_indices(a, array, indices)
    apart = any(i.each for i in before) or last.each and not last.register
    kind = a.wide("i64") if apart else "i64"

    def whole(register, each=None):
        if apart:
            register = each or a.spread("i64", register)
        return _IntValue(a, register, kind)

    here, *columns = [whole(i.register, i.each) for i in indices]
    for column, size in zip(columns, array.shape[1:]):
        here = flat(here, whole(a.size(size)), column)
    at = a.write(f"getelementptr {array.kind}, ptr %word.{array.name}, {kind} {here.register}")
    if apart:
        return at, "apart"
    return at, "side by side" if last.each else ""


def _load_lanes(a, array, address, how):
    """Load with lanes: return a value or an Index with one number for each lane."""
    rows, kind = array.rows_of, a.wide(array.kind)
    if not how:  # one number for all
        one = a.write(f"load {array.kind}, ptr {address}")
        return Index(a, one, rows) if rows else Value(a, a.spread(array.kind, one))
    name, at, mask = "load", "ptr", a.mask
    if how == "apart":  # without a mask, which is quicker: a lane past the end reads row 0, which exists
        name, at, mask = "gather", a.wide("ptr"), a.constant("i1", "true")
    lanes = f"{at} {address}, {a.wide('i1')} {mask}, {kind} zeroinitializer"
    each = a.write(f"call {kind} @llvm.masked.{name}({lanes})")
    return Index(a, None, rows, each) if rows else Value(a, each)


class _Loads(Loops):
    """Loops that can also load from arrays."""

    def load(self, array, *indices):
        """Load array[indices]. A row number becomes an Index into the arrays whose rows it counts."""
        address, how = _address_of(self, array, indices)
        if self.lanes > 1:
            return _load_lanes(self, array, address, how)
        register = self.write(f"load {array.kind}, ptr {address}")
        return Index(self, register, array.rows_of) if array.rows_of else Value(self, register)


def _store_lanes(a, register, array, address, how):
    """Store with lanes: one number from each active lane."""
    if how:
        name, at = ("scatter", a.wide("ptr")) if how == "apart" else ("store", "ptr")
        mask = f"{a.wide('i1')} {a.mask}"
        return a.emit(f"call void @llvm.masked.{name}({a.kind} {register}, {at} {address}, {mask})")
    if a.mask:
        raise TypeError(f"{a.name}: {array} has one place there, each lane a number; store a total after them")
    one = a.write(f"extractelement {a.kind} {register}, i32 0")
    a.emit(f"store {a.real} {one}, ptr {address}")


class Assembler(_Loads):
    """A writer of one program, with arrays, loads, stores and sums. A loop may take a row in each lane.

    Raises TypeError, ValueError or IndexError for what cannot be part of a program."""

    def store(self, value, array, *indices):
        """Store a value into array[indices]. An array of row numbers is read-only."""
        address, how = _address_of(self, array, indices)
        register = _operand(self, value)
        if array.rows_of:
            raise TypeError(f"{self.name}: {array} holds row numbers, which a program only reads")
        if self.lanes > 1:
            return _store_lanes(self, register, array, address, how)
        self.emit(f"store {self.real} {register}, ptr {address}")

    def sum(self):
        """Return a new running sum, which starts at 0.0."""
        return _Sum(self)

    def assemble(self):
        """End the program, compile it to machine code, and return it."""
        return Program(self)

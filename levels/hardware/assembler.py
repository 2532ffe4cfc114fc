"""An assembler: it writes a program down, instruction by instruction, and lets no address leave its array."""

# Built from 01_hardware.ipynb: edit there, then run its last cell.

import ctypes
import numbers
from contextlib import contextmanager

import numpy as np

from .device import Buffer
from .formulas import flat
from .machine import host_lanes, machine_code
from .values import REAL, Index, Value, _laned, _live, _numeric, _spread, _together


class Array:
    """Memory that a program works on. A size is a number, or a name that the call will fill in."""

    def __init__(self, name, shape, rows_of=None):
        self.name, self.shape = name, shape
        self.rows_of = rows_of  # its integers are row numbers of arrays of that size

    def __repr__(self):
        return f"{self.name}[{', '.join(map(str, self.shape))}]"


def _check_reach(name, array, axis, extent, sizes):
    """Raise IndexError if an index below `extent` can leave that axis of an array."""
    extent, size = sizes.get(extent, extent), sizes.get(array.shape[axis], array.shape[axis])
    if extent > size:
        raise IndexError(f"{name}: index {axis} of {array} goes up to {extent - 1}; the size there is {size}")


class _Whole:
    """A whole number in a register, for counting places: * and + write instructions."""

    def __init__(self, a, register, lanes):
        self.a, self.register, self.lanes = a, register, lanes

    def write(self, instruction, other):
        text = f"{instruction} {_laned('i64', self.lanes)} {self.register}, {other.register}"
        return _Whole(self.a, self.a.write(text), self.lanes)

    def __add__(self, other):
        return self.write("add", other)

    def __mul__(self, other):
        return self.write("mul", other)


def _index(a, i):
    """A whole number as an Index; an Index as it is."""
    if isinstance(i, Index):
        return _live(a, i)
    if not isinstance(i, numbers.Integral) or not 0 <= i < 2**31:
        raise TypeError(f"{a.name}: {i!r} is no index; expected a whole number below 2^31 or the counter of a loop")
    return Index(a, str(int(i)), int(i) + 1)


def _indices(a, array, indices):
    """The indices, each as an Index that was checked, or noted for the check at the call."""
    if not isinstance(array, Array) or a.arrays.get(array.name) is not array:
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
    """Where array[indices] lies: the register of its place, how many places that holds, and the lanes."""
    indices = _indices(a, array, indices)
    side_by_side = indices[-1].first and all(i.lanes == 1 for i in indices[:-1])  # one place is enough
    lanes = max(i.lanes for i in indices)
    places = 1 if side_by_side else lanes
    registers = [i.first if side_by_side else _spread(a, "i64", i.register, i.lanes, places) for i in indices]
    here, *columns = [_Whole(a, register, places) for register in registers]
    for column, size in zip(columns, array.shape[1:]):
        here = flat(here, _Whole(a, _spread(a, "i64", a.size(size), 1, places), places), column)
    return here.register, places, lanes


_FAST = "contract nsz arcp "  # float32 may fuse a·b + c into one instruction, and turn x/n into x·(1/n)


class _Paper:
    """A program as it is being written: its lines, the loops that are open, and what a call will hand over."""

    def __init__(self, name, dtype, lanes=None):
        if np.dtype(dtype) not in REAL:
            raise TypeError(f"{name}: dtype is {np.dtype(dtype)}; a program computes in float32 or float64")
        self.name, self.dtype, single = name, np.dtype(dtype), np.dtype(dtype) == np.float32
        self.real, self.flags = REAL[self.dtype], _FAST * single
        self.lanes = lanes or (host_lanes() if single else 1)
        if not isinstance(self.lanes, int) or self.lanes not in (1, 2, 4, 8, 16, 32, 64):
            raise ValueError(f"{name}: lanes is {lanes!r}; expected a power of two, at most 64")
        self.entry, self.lines, self.mask = [], [], None
        self.arrays, self.words, self.reaches = {}, {}, []
        self.scopes = [(self, None)]  # what is open, outermost first: the program itself, then its loops

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
        self.entry.append(f"  %slot{len(self.entry)} = alloca {kind}")
        return f"%slot{len(self.entry) - 1}"

    @property
    def scope(self):
        """The innermost open loop: what is written now belongs to it."""
        if not self.scopes:
            raise ValueError(f"{self.name}: the program is assembled; nothing can be added to it")
        return self.scopes[-1]

    def word(self, sort, name, kind):
        """The register of a word of the block: an "array" (its address), a "size" or a "number"."""
        if not isinstance(name, str) or not name.isidentifier():
            raise ValueError(f"{self.name}: {name!r} is not the name of a {sort}; expected a word such as 'rows'")
        if (sort, name) not in self.words:
            n = len(self.words)
            self.entry.append(f"  %address{n} = getelementptr i64, ptr %words, i64 {n}")
            self.entry.append(f"  %word{n} = load {kind}, ptr %address{n}")
            self.words[sort, name] = f"%word{n}"
        return self.words[sort, name]

    def size(self, extent):
        """A size as a register: a positive whole number, or a name."""
        whole = isinstance(extent, numbers.Integral) and 0 < extent < 2**31
        return str(int(extent)) if whole else self.word("size", extent, "i64")

    def array(self, name, *shape, rows_of=None):
        """An array that each call hands over. `rows_of`: it holds row numbers of the arrays of that size."""
        if name in self.arrays or not shape or ("number", name) in self.words:
            raise ValueError(f"{self.name}: array {name!r} needs a shape, and a name of its own")
        for size in shape if rows_of is None else (*shape, rows_of):
            self.size(size)
        self.word("array", name, "ptr")
        self.arrays[name] = Array(name, shape, rows_of)
        return self.arrays[name]

    def number(self, name):
        """A number that each call hands over, such as a learning rate."""
        if name in self.arrays:
            raise ValueError(f"{self.name}: number {name!r} needs a name of its own")
        return Value(self, self.word("number", name, self.real))

    def count(self, what):
        """A size, or an index, as a number to compute with."""
        index = _index(self, what) if isinstance(what, Index) else Index(self, self.size(what), what)
        kinds = _laned("i64", index.lanes), _laned(self.real, index.lanes)
        return Value(self, self.write(f"sitofp {kinds[0]} {index.register} to {kinds[1]}"), index.lanes)


class _Moves(_Paper):
    """Loads and stores."""

    def load(self, array, *indices):
        """array[indices] in a register; a row number becomes an index of the arrays it counts the rows of."""
        position, places, lanes = _place(self, array, indices)
        kind, pointer = "i64" if array.rows_of else self.real, self.words["array", array.name]
        if lanes > 1:
            register = _load_lanes(self, kind, pointer, position, places, lanes)
        else:
            address = self.write(f"getelementptr {kind}, ptr {pointer}, i64 {position}")
            register = self.write(f"load {kind}, ptr {address}")
        return Index(self, register, array.rows_of, lanes) if array.rows_of else Value(self, register, lanes)

    def store(self, value, array, *indices):
        """Store a value into array[indices]."""
        position, places, lanes = _place(self, array, indices)
        register, pointer = _to_store(self, value, array, lanes), self.words["array", array.name]
        position = f"{_laned('i64', places)} {position}"
        address = self.write(f"getelementptr {self.real}, ptr {pointer}, {position}")
        if lanes > 1:
            return _store_lanes(self, register, address, places, lanes)
        self.emit(f"store {self.real} {register}, ptr {address}")


def _load_lanes(a, kind, pointer, position, places, lanes):
    """One load where the numbers lie side by side, else one for each lane. (LLVM's gather was slower where we tried.)"""
    vector, size = _laned(kind, lanes), 8 if kind == "i64" else a.dtype.itemsize
    if places == 1:
        address = a.write(f"getelementptr {kind}, ptr {pointer}, i64 {position}")
        masks = f"<{lanes} x i1> {a.mask}, {vector} zeroinitializer"
        return a.write(f"call {vector} @llvm.masked.load(ptr align {size} {address}, {masks})")
    several, register = _laned("i64", lanes), "poison"  # a masked lane reads element 0
    position = a.write(f"select <{lanes} x i1> {a.mask}, {several} {position}, {several} zeroinitializer")
    for lane in range(lanes):
        one = a.write(f"extractelement {several} {position}, i32 {lane}")
        one = a.write(f"getelementptr {kind}, ptr {pointer}, i64 {one}")
        one = a.write(f"load {kind}, ptr {one}")
        register = a.write(f"insertelement {vector} {register}, {kind} {one}, i32 {lane}")
    return register


def _store_lanes(a, register, address, places, lanes):
    """Store all lanes that are not masked: side by side, or each at its own place."""
    name, where = "store" if places == 1 else "scatter", f"{_laned('ptr', places)} align {a.dtype.itemsize} {address}"
    a.emit(f"call void @llvm.masked.{name}(<{lanes} x {a.real}> {register}, {where}, <{lanes} x i1> {a.mask})")


def _to_store(a, value, array, lanes):
    """The register of what is to be stored. Raises TypeError where it does not fit its place."""
    if array.rows_of:
        raise TypeError(f"{a.name}: {array} holds row numbers, which a program only reads")
    (register,), wide = _together(a, value, lanes=lanes)
    if wide > lanes:
        raise TypeError(f"{a.name}: a value of {wide} lanes does not fit one place of {array}; take its total")
    return register


class Assembler(_Moves):
    """Writes one program. float64: one number at a time, nothing reordered. float32: lanes, and sums in lanes."""

    @contextmanager
    def loop(self, extent, lanes=1):
        """Write a loop over [0, extent); with lanes, each turn takes that many counters at once."""
        end, n = _end_of(self, extent, lanes), len(self.lines)
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
        return Sum(self)

    def assemble(self):
        """End the program and turn it into machine code."""
        return Program(self)


def _end_of(a, extent, lanes):
    """The register of a loop's end. Raises ValueError where no such loop can begin."""
    if a.scope is None or lanes not in (1, a.lanes) or lanes > 1 and a.mask:
        raise ValueError(f"{a.name}: a loop takes 1 counter at once or, outside of lanes, {a.lanes}; got {lanes}")
    return a.size(extent)


def _counters(a, first, extent, end):
    """The counters of one turn, a lane each. Lanes past the end are masked: what they compute is never kept."""
    lanes = a.lanes
    each = f"<{', '.join(f'i64 {lane}' for lane in range(lanes))}>"
    each = a.write(f"add <{lanes} x i64> {_spread(a, 'i64', first, 1, lanes)}, {each}")
    a.mask = "splat (i1 true)"  # all lanes, in every turn: then a mask costs nothing, on any processor
    if not end.isdigit() or int(end) % lanes:
        a.mask = a.write(f"icmp slt <{lanes} x i64> {each}, {_spread(a, 'i64', end, 1, lanes)}")
    return Index(a, each, extent, lanes, first=first)


def _text(a):
    """The whole program, in LLVM's language. A vector put aside on the stack must not straddle two cache lines."""
    how = " nounwind alignstack(64)" * (a.lanes > 1)
    if a.flags and not any("imum(" in line for line in a.lines):  # maximum and minimum promise which zero they give
        how += ' "no-signed-zeros-fp-math"="true"'  # without that promise a relu is one instruction
    start = [f"define void @program(ptr %words){how} {{", "entry:", *a.entry, "  br label %start", "start:"]
    return "\n".join([*start, *a.lines, "  ret void", "}", ""])


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


def _check_rows(program, array, buffer, data, limit):
    """These row numbers, if all lie in [0, limit), in memory that nobody else can change any more."""
    if not buffer.rows or buffer.rows[0] is not data:
        data = buffer.data = data.copy()
        data.flags.writeable = False
        buffer.rows = data, *((int(data.min()), int(data.max())) if data.size else (0, -1))
    _, low, high = buffer.rows
    if low < 0 or high >= limit:
        wrong = low if low < 0 else high
        raise IndexError(f"{program.name}: {array.name} holds row {wrong}; there are {limit} rows")
    return data


def _as_word(program, name, number):
    """A number as the 64-bit word that hands it over."""
    if not isinstance(number, numbers.Real):
        raise TypeError(f"{program.name}: {name} is {number!r}; expected a number")
    return int(program.dtype.type(float(number)).view(f"i{program.dtype.itemsize}"))


def _checked(program, given):
    """({array: its memory}, {size: what it is here}), if these buffers and numbers are what the program takes."""
    name, arrays, sizes = program.name, program.arrays, {}
    names = [word for sort, word in program.words if sort != "size"]
    if wrong := set(names) ^ set(given):
        raise TypeError(f"{name}: takes {', '.join(names)}; missing or unknown: {', '.join(sorted(wrong))}")
    memory = {key: _memory_of(program, array, given[key], sizes) for key, array in arrays.items()}
    if len(devices := {given[key].device.name for key in memory}) > 1:
        raise ValueError(f"{name}: buffers on {' and '.join(sorted(devices))}; copy them to one device first")
    for key in (key for key in arrays if arrays[key].rows_of):
        limit = sizes.get(arrays[key].rows_of, arrays[key].rows_of)
        memory[key] = _check_rows(program, arrays[key], given[key], memory[key], limit)
    for reached in program.reaches:
        _check_reach(name, *reached, sizes)
    return memory, sizes


class Program:
    """Machine code with the names and shapes of what it works on. Call it with buffers and numbers by name."""

    def __init__(self, a):
        if len(a.scopes) != 1:
            raise ValueError(f"{a.name}: {'a loop has not ended' if a.scopes else 'it is assembled already'}")
        known = {size for array in a.arrays.values() for size in array.shape}
        if lost := [name for sort, name in a.words if sort == "size" and name not in known]:
            raise ValueError(f"{a.name}: the size {lost[0]} is unknown: it stands in no array's shape")
        a.scopes.clear()
        self.name, self.dtype, self.arrays, self.words = a.name, a.dtype, dict(a.arrays), list(a.words)
        self.reaches, self.text = list(dict.fromkeys(a.reaches)), _text(a)
        self.engine, address = machine_code(self.text)
        self.run = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)

    def bind(self, **given):
        """Check buffers and numbers once. Returns the call, which takes no arguments and can be made many times."""
        memory, sizes = _checked(self, given)
        words = {("array", name): data.ctypes.data for name, data in memory.items()}
        words |= {("size", name): size for name, size in sizes.items()}
        words |= {("number", k): _as_word(self, k, given[k]) for k in given.keys() - memory.keys()}
        block = (ctypes.c_int64 * len(self.words))(*(words[word] for word in self.words))

        def launch():
            for name, data in memory.items():
                if given[name].data is not data:
                    raise ValueError(f"{self.name}: {name} was freed after it was bound; bind again")
            self.run(block)

        return launch

    def __call__(self, **given):
        """Check everything and run."""
        self.bind(**given)()


class Sum:
    """A running sum: starts at 0.0, grows with `+=`, one partial sum a lane. `total()` adds the lanes."""

    def __init__(self, a):
        self.a, self.scope, self.kind = a, a.scope, _laned(a.real, a.lanes)
        self.slot = a.slot(self.kind)
        a.emit(f"store {self.kind} zeroinitializer, ptr {self.slot}")

    def value(self):
        """What has been added up so far, one number a lane."""
        a = _live(self.a, self).a
        return Value(a, a.write(f"load {self.kind}, ptr {self.slot}"), a.lanes)

    def __iadd__(self, term):
        old = self.value()
        grown = (old + _once(self, term)).register
        self.a.emit(f"store {self.kind} {_unmasked(self, grown, old)}, ptr {self.slot}")
        return self

    def total(self):
        """The sum as one number."""
        a, value = self.a, self.value()
        return value if value.lanes == 1 else Value(a, _across(a, self.kind, value.register))


def _once(total, term):
    """A term outside of lanes counts once, not once in each lane: it goes to the first, and 0 to the others."""
    a = total.a
    if a.lanes == 1 or a.mask or getattr(term, "lanes", 1) > 1:
        return term
    term = a.write(f"insertelement {total.kind} zeroinitializer, {a.real} {_numeric(a, term)}, i32 0")
    return Value(a, term, a.lanes)


def _unmasked(total, grown, old):
    """What a sum becomes: in masked lanes it stays as it was."""
    a = total.a
    if not a.mask:
        return grown
    return a.write(f"select <{a.lanes} x i1> {a.mask}, {total.kind} {grown}, {total.kind} {old.register}")


def _across(a, kind, register):
    """The register of the sum over all lanes. In float32 LLVM may add them in the order that is quickest."""
    order = "reassoc " if a.flags else ""
    return a.write(f"call {order}{a.real} @llvm.vector.reduce.fadd({a.real} 0.0, {kind} {register})")

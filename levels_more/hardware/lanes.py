"""SIMD lanes for level 1's assembler: a register holds as many numbers as the processor computes with at once.

`Lanes` is an Assembler. A program that is written by a function of an assembler, such as level 1's `write_steps`, runs
in lanes if that function is given one:

    a = Lanes("train", "f4")
    write_steps(a, net_row, shapes)  # each lane takes a row of the batch
    program = a.assemble()

In the loops over the sizes `over`, each lane takes another turn; all other loops are as in level 1.
`loop(extent, lanes)` says for one loop how many turns are taken at once: 1, or all lanes. Operators, comparisons,
select, exp and log are level 1's. Only sums have another order: each lane adds up its own, and these are added up.
"""

from contextlib import contextmanager

import numpy as np

from levels.hardware import Assembler, Index, Program, Sum, Value, Whole, address_of, flat, indices_of
from levels.support import writing
from levels.support.machine import host_lanes


class LaneIndex(Index):
    """An index of which each lane has its own, in the register `each`.

    `register` holds the first lane's, if those of the others follow it; else it is None.
    """

    def __init__(self, a, register, extent, each):
        super().__init__(a, register, extent)
        self.each = each


class Wide(Whole):
    """A whole number in each lane. Its * and + write instructions."""

    def __mul__(self, other):
        return Wide(self.a, self.a.write(f"mul {self.a.wide('i64')} {self.register}, {other.register}"))

    def __add__(self, other):
        return Wide(self.a, self.a.write(f"add {self.a.wide('i64')} {self.register}, {other.register}"))


class LaneSum(Sum):
    """A running sum with a part in each lane."""

    def __iadd__(self, term):
        """Write the instructions that add a term to the sum, in the lanes that have a row."""
        a = self.a
        old = self.parts()
        new = (old + term).register
        if a.lanes > 1:
            new = a.write(f"select {a.wide('i1')} {a.mask or a.first}, {a.kind} {new}, {a.kind} {old.register}")
        a.emit(f"store {a.kind} {new}, ptr {self.register}")
        return self

    def parts(self):
        """Return each lane's part of the sum so far."""
        return super().total()

    def value(self):
        """Return the sum so far, in each lane. With lanes, raises ValueError outside of their loop: use total()."""
        if self.a.lanes > 1 and not self.a.mask:
            raise ValueError(f"{self.a.name}: outside of lanes a sum has only a total")
        return self.parts()

    def total(self):
        """Return the sum of all lanes. In float32, the lanes may be added in any order."""
        a = self.a
        parts = self.parts()
        if a.lanes == 1:
            return parts
        kind = f"reassoc {a.real}" if a.flags else a.real
        total = a.write(f"call {kind} @llvm.vector.reduce.fadd({a.real} 0.0, {a.kind} {parts.register})")
        return Value(a, a.spread(a.real, total))


class LaneProgram(Program):
    """A Program that aligns its stack, where no lanes may straddle two cache lines.

    Without it, "rings, batch 100, SGD: epoch" of the bench takes 1.0 to 1.13 times as long: it depends on where the
    stack of a process begins.
    """

    @property
    def text(self):
        """The program in LLVM's language."""
        return self.aligned

    @text.setter
    def text(self, text):
        self.aligned = text.replace("(ptr %words) {", "(ptr %words) nounwind alignstack(64) {", 1)


class Lanes(Assembler):
    """An Assembler with lanes. By default it has the machine's number of them in float32, else 1.

    In float32 it may fuse a·b + c to one instruction. With one lane in float64, it writes what level 1 writes. Raises
    TypeError, ValueError or IndexError for what cannot be part of a program.
    """

    def __init__(self, name, dtype, lanes=None, over=("batch", "rows")):
        super().__init__(name, dtype)
        single = self.dtype == np.float32
        if lanes is None:
            lanes = host_lanes() if single else 1
        if not isinstance(lanes, int) or lanes not in (1, 2, 4, 8, 16, 32, 64):
            raise ValueError(f"{name}: lanes is {lanes!r}; expected a power of 2 up to 64")
        self.lanes = lanes
        self.over = over  # sizes: loops over them take a turn in each lane
        self.flags = "contract " if single else ""  # LLVM's word for: a·b + c may be fused
        self.kind = self.real if lanes == 1 else f"<{lanes} x {self.real}>"
        self.mask = None  # the lanes that have a turn, in a loop with lanes
        # outside of such a loop only the first lane counts
        self.first = f"<i1 true{', i1 false' * (lanes - 1)}>"

    # The text of a program

    def wide(self, kind):
        """Return the type of a register with one number of that kind in each lane."""
        return writing.alike(self, kind)

    def constant(self, kind, text):
        """Return a constant, the same in each lane."""
        return writing.constant(self, kind, text)

    def spelled(self, line):
        """Return a line as it stands in the program. A subclass may change it."""
        name, _, rest = line.partition(" ")
        return f"{name} {self.flags}{rest}" if name in ("fadd", "fsub", "fmul", "fdiv") else line

    def write(self, instruction):
        """As in Assembler."""
        return super().write(self.spelled(instruction))

    def emit(self, *lines):
        """Append lines that set no register."""
        self.lines += map(self.spelled, lines)

    def spread(self, kind, register):
        """Return a register with a copy of this number in each lane."""
        if self.lanes == 1:
            return register
        wide = self.wide(kind)
        first = self.write(f"insertelement {wide} poison, {kind} {register}, i32 0")
        return self.write(f"shufflevector {wide} {first}, {wide} poison, {self.wide('i32')} zeroinitializer")

    # The numbers of a call

    def number(self, name):
        """As in Assembler: the same number in each lane."""
        return Value(self, self.spread(self.real, self.word(name, self.real)))

    def count(self, what):
        """Convert a size or an index to a number to compute with, in each lane."""
        register = writing.live(self, what) if isinstance(what, Index) else self.size(what)
        each = what.each if isinstance(what, LaneIndex) else self.spread("i64", register)
        return Value(self, self.write(f"sitofp {self.wide('i64')} {each} to {self.kind}"))

    # Loops

    @contextmanager
    def loop(self, extent, lanes=None):
        """Write a loop over [0, extent), with `lanes` turns at once: 1, or all lanes. By default `over` decides it."""
        most = 1 if self.mask else self.lanes
        if lanes is None:
            lanes = most if not isinstance(extent, Whole) and extent in self.over else 1
        if type(lanes) is not int or lanes not in (1, most):
            raise ValueError(f"{self.name}: {lanes!r} at once; expected {'1' if most == 1 else f'1 or {most}'}")
        if lanes == 1:
            with super().loop(extent) as i:
                yield i
            return
        end = self.size(extent)
        with super().loop(self.turns(end)) as turn:
            first = self.write(f"mul i64 {turn.register}, {lanes}")
            each, self.mask = self.counters(first, end)
            yield LaneIndex(self, first, extent, each)
            self.mask = None

    def size(self, extent):
        """As in Assembler. A whole number that the program has computed is a size, too."""
        return writing.live(self, extent) if isinstance(extent, Whole) else super().size(extent)

    def turns(self, end):
        """Return how many turns a loop with lanes takes: as few as reach the end."""
        if end.isdigit():
            return -(-int(end) // self.lanes)
        more = self.write(f"add i64 {end}, {self.lanes - 1}")
        return Whole(self, self.write(f"udiv i64 {more}, {self.lanes}"))

    def counters(self, first, end):
        """Return each lane's counter, and the mask of those before the end. The others read row 0 and store nothing."""
        kind = self.wide("i64")
        nth = ", ".join(f"i64 {lane}" for lane in range(self.lanes))
        each = self.write(f"add {kind} {self.spread('i64', first)}, <{nth}>")
        if end.isdigit() and int(end) % self.lanes == 0:
            return each, self.constant("i1", "true")  # a mask of all lanes costs nothing
        mask = self.write(f"icmp slt {kind} {each}, {self.spread('i64', end)}")
        return self.write(f"select {self.wide('i1')} {mask}, {kind} {each}, {kind} zeroinitializer"), mask

    # Memory

    def place_of(self, array, indices):
        """Return the address of array[indices], and where the lanes' places lie.

        That is "side by side", or "apart", when there is an address for each lane, or "" if all have one place.
        """
        indices = indices_of(self, array, indices)
        *before, last = (isinstance(i, LaneIndex) for i in indices)
        if any(before) or indices[-1].register is None:
            return self.addresses(array, indices), "apart"
        return address_of(self, array, indices), "side by side" if last else ""

    def addresses(self, array, indices):
        """Return the register with each lane's address of array[indices]."""

        def wide(register):
            return Wide(self, self.spread("i64", register))

        each = [Wide(self, i.each) if isinstance(i, LaneIndex) else wide(i.register) for i in indices]
        place = each[0]
        for column, size in zip(each[1:], array.shape[1:], strict=True):
            place = flat(place, wide(self.size(size)), column)
        at = f"ptr %word.{array.name}, {self.wide('i64')} {place.register}"
        return self.write(f"getelementptr {array.kind}, {at}")

    def load(self, array, *indices):
        """As in Assembler: a number in each lane."""
        address, how = self.place_of(array, indices)
        kind = self.wide(array.kind)
        if not how:  # one number for all
            one = self.write(f"load {array.kind}, ptr {address}")
            return Index(self, one, array.rows_of) if array.rows_of else Value(self, self.spread(array.kind, one))
        name = "load"
        at = "ptr"
        mask = self.mask
        if how == "apart":  # without a mask, which is quicker: a lane past the end reads row 0, which exists
            name = "gather"
            at = self.wide("ptr")
            mask = self.constant("i1", "true")
        lanes = f"{at} {address}, {self.wide('i1')} {mask}, {kind} zeroinitializer"
        each = self.write(f"call {kind} @llvm.masked.{name}({lanes})")
        return LaneIndex(self, None, array.rows_of, each) if array.rows_of else Value(self, each)

    def store(self, value, array, *indices):
        """As in Assembler: a number from each lane that has a turn."""
        address, how = self.place_of(array, indices)
        writing.check_writable(self, array)
        register = writing.operand(self, value)
        if how:
            name, at = ("scatter", self.wide("ptr")) if how == "apart" else ("store", "ptr")
            mask = f"{self.wide('i1')} {self.mask}"
            self.emit(f"call void @llvm.masked.{name}({self.kind} {register}, {at} {address}, {mask})")
        elif self.mask:
            raise TypeError(f"{self.name}: {array} has one place there, each lane a number; store a total after them")
        else:
            one = register if self.lanes == 1 else self.write(f"extractelement {self.kind} {register}, i32 0")
            self.emit(f"store {self.real} {one}, ptr {address}")

    def sum(self):
        """As in Assembler: with a part in each lane."""
        return LaneSum(self)

    def assemble(self):
        """As in Assembler."""
        return Program(self) if self.lanes == 1 else LaneProgram(self)

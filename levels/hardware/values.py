"""A value stands for a number that a register will hold. Its operators write instructions."""

# Built from 01_hardware.ipynb: edit there, then run its last cell.

import numbers

import numpy as np

REAL = {np.dtype("f4"): "float", np.dtype("f8"): "double"}  # LLVM's names


def subtract(x, y):
    """Write the instruction that takes the number y from x, and give back its value."""
    return arithmetic("fsub", x, y)


def arithmetic(instruction, x, y):
    """Write an instruction: fadd, fsub, fmul or fdiv. One of x and y may be a Python number."""
    a = _program(x, y)
    return Value(a, a.write(f"{instruction} {a.flags}{a.kind} {_operand(a, x)}, {_operand(a, y)}"))


def _comparison(how, x, y):
    """Write a comparison, named as in LLVM. As in Python, a NaN makes it false, except for !=."""
    a = _program(x, y)
    return _Condition(a, a.write(f"fcmp {how} {a.kind} {_operand(a, x)}, {_operand(a, y)}"))


def _operator(write, how):
    """Return two methods that write an instruction: with this value as its first operand, and as its second."""

    def first(self, other):
        return write(how, self, other)

    def second(self, other):
        return write(how, other, self)

    return first, second


class Value:
    """A number that a register will hold. Its operators write instructions."""

    def __init__(self, a, register):
        self.a, self.register, self.scope = a, register, a.scope  # the loop in which it is known

    def __bool__(self):
        raise TypeError(f"{self.a.name}: {self!r} is not known yet; use select(condition, x, y)")

    def __repr__(self):
        return f"{type(self).__name__} {self.register}"

    __add__, __radd__ = _operator(arithmetic, "fadd")
    __mul__, __rmul__ = _operator(arithmetic, "fmul")
    __truediv__, __rtruediv__ = _operator(arithmetic, "fdiv")
    __lt__, __gt__ = _operator(_comparison, "olt")
    __le__, __ge__ = _operator(_comparison, "ole")

    def __sub__(self, other):
        return subtract(self, other)

    def __rsub__(self, other):
        return subtract(other, self)

    def __eq__(self, other):
        return _comparison("oeq", self, other)

    def __ne__(self, other):
        return _comparison("une", self, other)

    def __neg__(self):
        return subtract(-0.0, self)  # 0.0 - self would turn 0.0 into 0.0, not into -0.0

    def __abs__(self):
        return select(self <= 0.0, 0.0 - self, self)  # turns -0.0 into 0.0


class _Condition(Value):
    """The result of a comparison, true or false, in a register. It is used by `select`."""


class Index(Value):
    """A whole number in [0, extent). With lanes, the register `each` holds one per lane."""

    def __init__(self, a, register, extent, each=None):
        super().__init__(a, register)
        self.extent, self.each = extent, each


def _program(*operands):
    """Return the program to which these operands belong."""
    return next(x.a for x in operands if isinstance(x, Value))


def _live(a, thing):
    """Return the thing. Raises ValueError unless it belongs to this program and to a loop that is still open."""
    if thing.scope not in a.scopes:
        raise ValueError(f"{a.name}: {thing!r} is not of this program or its loop has ended; a sum carries numbers out")
    return thing


def _operand(a, x):
    """Return the register of a value, or a Python number as an LLVM constant."""
    if isinstance(x, numbers.Real):  # LLVM's notation: the bits of a float64
        return a.constant(a.real, f"0x{np.float64(a.dtype.type(float(x))).view(np.uint64):016X}")
    if not isinstance(x, Value) or isinstance(x, (Index, _Condition)):
        raise TypeError(f"{a.name}: expected a number to compute with, got {x!r}")
    return _live(a, x).register


def select(condition, x, y):
    """Return x if the condition holds, else y. On Python numbers, it chooses at once."""
    if not isinstance(condition, _Condition):
        return x if condition else y
    a = _live(condition.a, condition).a
    numbers = f"{a.kind} {_operand(a, x)}, {a.kind} {_operand(a, y)}"
    return Value(a, a.write(f"select {a.wide('i1')} {condition.register}, {numbers}"))


def _masked(a, new, old):
    """Return a register: `new` in the active lanes, else `old`. Outside of lanes, only the first lane is active."""
    if a.lanes == 1:
        return new.register
    return a.write(f"select {a.wide('i1')} {a.mask or a.first}, {a.kind} {new.register}, {a.kind} {old.register}")


class _Sum:
    """A running sum in memory. With lanes, each lane holds a partial sum; `total()` adds them."""

    def __init__(self, a):
        self.a, self.scope, self.slot = a, a.scope, a.slot(a.kind)
        a.emit(f"store {a.kind} zeroinitializer, ptr {self.slot}")

    def parts(self):
        a = _live(self.a, self).a
        return Value(a, a.write(f"load {a.kind}, ptr {self.slot}"))

    def value(self):
        """Return the sum so far, in each lane. With lanes, raises ValueError outside of their loop: use total()."""
        if self.a.lanes > 1 and not self.a.mask:
            raise ValueError(f"{self.a.name}: outside of lanes a sum has only a total")
        return self.parts()

    def __iadd__(self, term):
        """Write instructions that add a term to the sum, in the active lanes. Returns the sum itself."""
        old = self.parts()
        new = _masked(self.a, old + term, old)
        self.a.emit(f"store {self.a.kind} {new}, ptr {self.slot}")
        return self

    def total(self):
        """Return the sum of all lanes. In float32, the lanes may be added in any order."""
        a, each = self.a, self.parts()
        if a.lanes == 1:
            return each
        kind = f"reassoc {a.real}" if a.flags else a.real
        add = f"call {kind} @llvm.vector.reduce.fadd({a.real} 0.0, {a.kind} {each.register})"
        return Value(a, a.spread(a.real, a.write(add)))

"""A value stands for a number in a register. Its operators write instructions."""

# Built from 01_hardware.ipynb: edit there, then run its last cell.

import numpy as np

from levels.support.writing import Unknown, alike, live, open_scope, operand

REAL = {np.dtype("f4"): "float", np.dtype("f8"): "double"}  # LLVM's names


class Register(Unknown):
    """What a register will hold. It can be used only in the loop that sets it."""

    holds = "a register"

    def __init__(self, a, register):
        self.a = a
        self.register = register
        self.scope = open_scope(a)

    def __repr__(self):
        return f"{self.holds}, {self.register}"


def arithmetic(instruction, x, y):
    """Write fadd, fsub, fmul or fdiv. One of x and y may be a Python number."""
    a = _program_of(x, y)
    operands = f"{operand(a, x)}, {operand(a, y)}"
    return Value(a, a.write(f"{instruction} {a.kind} {operands}"))


def _comparison(how, x, y):
    """Write a comparison, named as in LLVM. A NaN makes it false, except for `une`."""
    a = _program_of(x, y)
    operands = f"{operand(a, x)}, {operand(a, y)}"
    return Condition(a, a.write(f"fcmp {how} {a.kind} {operands}"))


def _program_of(x, y):
    """Return the writer that x belongs to, or y's if x is a Python number."""
    return x.a if isinstance(x, Register) else y.a


def subtract(x, y):
    """Write the instruction that takes the number y from x, and give back its value."""
    return arithmetic("fsub", x, y)


def _both_ways(write, how):
    """Return two methods: for `value + other`, and for `other + value`."""

    def first(self, other):
        return write(how, self, other)

    def second(self, other):
        return write(how, other, self)

    return first, second


class Value(Register):
    """A number to compute with."""

    holds = "a number"

    __add__, __radd__ = _both_ways(arithmetic, "fadd")
    __mul__, __rmul__ = _both_ways(arithmetic, "fmul")
    __truediv__, __rtruediv__ = _both_ways(arithmetic, "fdiv")
    __lt__, __gt__ = _both_ways(_comparison, "olt")
    __le__, __ge__ = _both_ways(_comparison, "ole")

    def __sub__(self, other):
        return subtract(self, other)

    def __rsub__(self, other):
        return subtract(other, self)

    def __eq__(self, other):
        return _comparison("oeq", self, other)

    def __ne__(self, other):
        return _comparison("une", self, other)

    def __neg__(self):
        return subtract(-0.0, self)  # 0.0 - self would be 0.0 for 0.0, not -0.0

    def __abs__(self):
        return (self <= 0.0).select(0.0 - self, self)  # -0.0 becomes 0.0


class Condition(Register):
    """True or false."""

    holds = "a condition"

    def select(self, x, y):
        """Write the instruction that gives the number x if it is true, else y."""
        a = self.a
        condition = f"{alike(a, 'i1')} {live(a, self)}"
        numbers = f"{a.kind} {operand(a, x)}, {a.kind} {operand(a, y)}"
        return Value(a, a.write(f"select {condition}, {numbers}"))


class Index(Register):
    """A whole number from 0 to below `extent`, a number or the name of a size."""

    holds = "an index"

    def __init__(self, a, register, extent):
        super().__init__(a, register)
        self.extent = extent


class Whole(Register):
    """A whole number. Its * and + find a place in memory."""

    holds = "a whole number"

    def __mul__(self, other):
        return Whole(self.a, self.a.write(f"mul i64 {self.register}, {other.register}"))

    def __add__(self, other):
        return Whole(self.a, self.a.write(f"add i64 {self.register}, {other.register}"))

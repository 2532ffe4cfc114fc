"""select, and the instructions that exp and log are made of. They run on Python floats and write into programs."""

import math

import numpy as np

from .writing import alike, constant, operand


def in_program(x):
    """Return whether x stands for a number of a program, by its `register`, rather than being one."""
    return hasattr(x, "register")


def select(condition, x, y):
    """Return x if the condition holds, else y. On Python numbers, it chooses at once."""
    if hasattr(condition, "select"):  # a condition of a program
        return condition.select(x, y)
    return x if condition else y


def named(name, *operands):
    """Write one of LLVM's named instructions, such as sqrt(x) or maximum(x, y)."""
    value = next(x for x in operands if in_program(x))
    a = value.a
    operands = ", ".join(f"{a.kind} {operand(a, x)}" for x in operands)
    return type(value)(a, a.write(f"call {a.kind} @llvm.{name}({operands})"))


def rint(x):
    """Round to the nearest whole number, halves to even."""
    return named("rint", x) if in_program(x) else float(round(x)) if math.isfinite(x) else x


def sqrt(x):
    """Return the correctly rounded square root; NaN for a negative number."""
    return named("sqrt", x) if in_program(x) else math.nan if x < 0 else math.sqrt(x)


SINGLE, DOUBLE = np.dtype("f4"), np.dtype("f8")
# an integer of the same width, the number of fraction bits, the exponent's bias, the bits of √½
_FORMAT = {SINGLE: ("i32", 23, 127, 0x3F3504F3), DOUBLE: ("i64", 52, 1023, 0x3FE6A09E667F3BCD)}


def in_halves(x, n):
    """Return x · 2ⁿ for a Python float x and a whole number n: 2ⁿ alone may be too small or too large."""
    return x * math.ldexp(1.0, int(n) // 2) * math.ldexp(1.0, int(n) - int(n) // 2)


def scaled(x, n):
    """Return x · 2ⁿ for a whole number n, in two steps, as `in_halves` does."""
    if not in_program(n):
        return in_halves(x, n)
    a, (whole, fraction, bias, _) = n.a, _FORMAT[n.a.dtype]
    kind = alike(a, whole)
    both = a.write(f"fptosi {a.kind} {operand(a, n + 2.0 * bias)} to {kind}")
    half = a.write(f"ashr {kind} {both}, {constant(a, whole, 1)}")
    for part in (half, a.write(f"sub {kind} {both}, {half}")):
        bits = a.write(f"shl {kind} {part}, {constant(a, whole, fraction)}")
        x = x * type(n)(a, a.write(f"bitcast {kind} {bits} to {a.kind}"))
    return x


def exponent(x):
    """Return the e for which x / 2ᵉ is in [√½, √2). x is a positive normal float or a Value."""
    if not in_program(x):
        m, e = math.frexp(x)
        return float(e - (0.0 <= m < 0.7071067811865476))
    a, (whole, fraction, _, root) = x.a, _FORMAT[x.a.dtype]
    kind = alike(a, whole)
    bits = a.write(f"bitcast {a.kind} {operand(a, x)} to {kind}")
    bits = a.write(f"sub {kind} {bits}, {constant(a, whole, root)}")
    bits = a.write(f"ashr {kind} {bits}, {constant(a, whole, fraction)}")
    return type(x)(a, a.write(f"sitofp {kind} {bits} to {a.kind}"))

"""Named instructions, exp and log. The same source runs on Python floats, in programs and in kernels."""

# Built from 01_hardware.ipynb: edit there, then run its last cell.

import math

import numpy as np

from .values import Value, _operand, _program, select


def named(name, *operands):
    """Write one of LLVM's named instructions, such as sqrt(x) or maximum(x, y)."""
    a = _program(*operands)
    operands = ", ".join(f"{a.kind} {_operand(a, x)}" for x in operands)
    return Value(a, a.write(f"call {a.kind} @llvm.{name}({operands})"))


def rint(x):
    """Round to the nearest whole number, halves to even."""
    return named("rint", x) if isinstance(x, Value) else float(round(x)) if math.isfinite(x) else x


def sqrt(x):
    """Return the correctly rounded square root; NaN for a negative number."""
    return named("sqrt", x) if isinstance(x, Value) else math.nan if x < 0 else math.sqrt(x)


_SINGLE, _DOUBLE = np.dtype("f4"), np.dtype("f8")
# an integer of the same width, the number of fraction bits, the exponent's bias, the bits of √½
_FORMAT = {_SINGLE: ("i32", 23, 127, 0x3F3504F3), _DOUBLE: ("i64", 52, 1023, 0x3FE6A09E667F3BCD)}


def scaled(x, n):
    """Return x · 2ⁿ for a whole number n, in two steps: 2ⁿ may overflow even if the result does not."""
    if not isinstance(n, Value):
        half = int(n) >> 1
        return x * math.ldexp(1.0, half) * math.ldexp(1.0, int(n) - half)
    a, (whole, fraction, bias, _) = n.a, _FORMAT[n.a.dtype]
    kind = a.wide(whole)
    both = a.write(f"fptosi {a.kind} {_operand(a, n + 2.0 * bias)} to {kind}")
    half = a.write(f"ashr {kind} {both}, {a.constant(whole, 1)}")
    for part in (half, a.write(f"sub {kind} {both}, {half}")):
        bits = a.write(f"shl {kind} {part}, {a.constant(whole, fraction)}")
        x = x * Value(a, a.write(f"bitcast {kind} {bits} to {a.kind}"))
    return x


def exponent(x):
    """Return the e for which x / 2ᵉ is in [√½, √2). x is a positive normal float or a Value."""
    if not isinstance(x, Value):
        m, e = math.frexp(x)
        return float(e - (0.0 <= m < 0.7071067811865476))
    a, (whole, fraction, _, root) = x.a, _FORMAT[x.a.dtype]
    kind = a.wide(whole)
    bits = a.write(f"bitcast {a.kind} {_operand(a, x)} to {kind}")
    bits = a.write(f"sub {kind} {bits}, {a.constant(whole, root)}")
    bits = a.write(f"ashr {kind} {bits}, {a.constant(whole, fraction)}")
    return Value(a, a.write(f"sitofp {kind} {bits} to {a.kind}"))


def _make_exp(bottom, top, ln2, ln2_rest, series):
    """Return eˣ for one dtype. It is 0 below `bottom`; 2^`top` overflows. Method and float32's constants: Cephes."""

    def exp(x):
        y = select(x < bottom, bottom, x)  # a NaN stays a NaN
        n = rint(y * 1.4426950408889634)
        n = select(n < top, n, top)  # a NaN becomes `top`, too, as no exponent is NaN
        r = (y - n * ln2) - n * ln2_rest
        p = series[0]
        for c in series[1:]:
            p = p * r + c
        return scaled(p * (r * r) + r + 1.0, n)

    return exp


_LN2 = 6.93147180369123816490e-01, 1.90821492927058770002e-10  # log 2 and the remainder
_CEPHES = 1.38144335e-3, 8.36879667e-3, 4.16683964e-2, 1.66665196e-1, 4.9999994e-1
EXP = {
    _DOUBLE: _make_exp(-746.0, 1025.0, *_LN2, tuple(1.0 / math.factorial(k) for k in range(13, 1, -1))),
    _SINGLE: _make_exp(-104.0, 129.0, 0.693359375, -2.12194440e-4, _CEPHES),
}


def _make_log(tiny, shift, ln2, ln2_rest, even, odd):
    """Return log for one dtype. Below `tiny`, x is first scaled by 2^`shift`. Method and constants: fdlibm, FreeBSD."""
    scale, infinity, nan = 2.0**shift, math.inf, math.nan  # named, so that a kernel can give them its dtype

    def log(x):
        small = x < tiny
        y = select(small, x * scale, x)
        e = exponent(y)
        f = scaled(y, 0.0 - e) - 1.0
        s = f / (2.0 + f)
        z = s * s
        w = z * z
        t, u = even[0], odd[0]
        for c in even[1:]:
            t = t * w + c
        for c in odd[1:]:
            u = u * w + c
        r = w * t + z * u
        h = 0.5 * f * f
        e = select(small, e - shift, e)
        result = e * ln2 - ((h - (s * (h + r) + e * ln2_rest)) - f)
        result = select(x > 0.0, result, -infinity)
        result = select(x < 0.0, nan, result)
        return select(x < infinity, result, x)  # infinity and NaN are their own logarithm

    return log


_EVEN = 1.531383769920937332e-01, 2.222219843214978396e-01, 3.999999999940941908e-01
_ODD = 1.479819860511658591e-01, 1.818357216161805012e-01, 2.857142874366239149e-01, 6.666666666666735130e-01
_SHORT = (0.24279078841, 0.40000972152), (0.28498786688, 0.66666662693)
LOG = {
    _DOUBLE: _make_log(2.0**-1022, 54.0, *_LN2, _EVEN, _ODD),
    _SINGLE: _make_log(2.0**-126, 25.0, 0.69313812256, 9.0580006145e-6, *_SHORT),
}


def exp(x):
    """Return eˣ for a Python float or a value in a program."""
    return EXP[x.a.dtype if isinstance(x, Value) else _DOUBLE](x)


def log(x):
    """Return the natural logarithm of a Python float or a value in a program."""
    return LOG[x.a.dtype if isinstance(x, Value) else _DOUBLE](x)

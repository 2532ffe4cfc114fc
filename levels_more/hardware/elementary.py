"""sin, cos, maximum and minimum: one source for Python's floats, programs and kernels, like level 1's exp and log."""

import math

import numpy as np

from levels.hardware import Value, select
from levels.support.instructions import named, rint

_TURN = 15707963267948966192313216916397514420985846996875529104874722961539082  # π/2 · 10⁷⁰


def _parts_of_turn(bits):
    """π/2 as a sum: five numbers of `bits` bits each, and the remainder."""
    parts = []
    rest = _TURN
    unit = 10**70
    for n in range(1, 6):
        scale = 2 ** (bits * n - 1)
        whole = rest * scale // unit
        rest -= whole * unit // scale
        parts.append(whole / scale)
    return (*parts, rest / unit)


def _less(high, low, product):
    """high + low - product, as a rounded number and a small remainder with the rounding error (Knuth, 1969)."""
    difference = high - product
    taken = difference - high
    return difference, low + ((high - (difference - taken)) - (product + taken))


def _make_reduction(digits):
    """The function that subtracts quarter turns from an angle, for a float format with `digits` binary digits.

    It returns the reduced angle, within ±π/4, as a number and a small remainder; and the quarter turns modulo 4, from
    -2 to 2. Their count is split into two numbers of half the digits, and the parts of π/2 have half the digits too: so
    all products but the last are exact (Cody and Waite, 1980).
    """
    bits = (digits + 1) // 2
    parts = _parts_of_turn(bits)
    many = 2.0**bits

    def reduce(x):
        lots = rint(x * (0.63661977236758134308 / many)) * many
        high = x
        for part in parts:
            high = high - lots * part
        ones = rint(high * 0.63661977236758134308)
        high = x
        low = 0.0 * x
        for part in parts:
            high, low = _less(high, low, lots * part)
            high, low = _less(high, low, ones * part)
        r = high + low
        return r, low - (r - high), ones - 4.0 * rint(0.25 * ones)

    return reduce


def _make_sin_cos(digits, sines, cosines):
    """(sin, cos) for a float format with `digits` binary digits, by Taylor series of the reduced angle."""
    reduce = _make_reduction(digits)
    limit = 2.0**digits
    nan = math.nan

    def sin_cos(x):
        r, rest, quarter = reduce(x)
        z = r * r
        s = sines[0]
        for c in sines[1:]:
            s = s * z + c
        s = r + (r * z * s + (rest - 0.5 * z * rest))
        c = cosines[0]
        for d in cosines[1:]:
            c = c * z + d
        half = 0.5 * z
        one = 1.0 - half
        c = one + (((1.0 - one) - half) + (z * z * c - r * rest))
        return s, c, quarter

    def sin(x):
        s, c, quarter = sin_cos(x)
        y = select(quarter * quarter == 1.0, c, s)
        y = select(quarter < 0.0, 0.0 - y, select(quarter > 1.0, 0.0 - y, y))
        y = select(x == 0.0, x, y)
        return select(select(x < 0.0, 0.0 - x, x) < limit, y, nan)

    def cos(x):
        s, c, quarter = sin_cos(x)
        y = select(quarter * quarter == 1.0, s, c)
        y = select(quarter > 0.0, 0.0 - y, select(quarter < -1.0, 0.0 - y, y))
        return select(select(x < 0.0, 0.0 - x, x) < limit, y, nan)

    return sin, cos


def _series(first, last):
    """The coefficients of a Taylor series, the last first: ±1 / n! for every second n."""
    return tuple((-1.0) ** (n // 2) / math.factorial(n) for n in range(last, first - 1, -2))


_SINGLE, _DOUBLE = np.dtype("f4"), np.dtype("f8")
_SIN_COS = {
    _DOUBLE: _make_sin_cos(53, _series(3, 17), _series(4, 18)),
    _SINGLE: _make_sin_cos(24, _series(3, 9), _series(4, 10)),
}
SIN, COS = ({dtype: pair[k] for dtype, pair in _SIN_COS.items()} for k in (0, 1))


def sin(x):
    """The sine of an angle in radians, a Python float or a value in a program."""
    return SIN[x.a.dtype if isinstance(x, Value) else _DOUBLE](x)


def cos(x):
    """The cosine of an angle in radians, a Python float or a value in a program."""
    return COS[x.a.dtype if isinstance(x, Value) else _DOUBLE](x)


def larger_of(x, y):
    """`maximum` of two numbers. Kernels on a GPU call this function."""
    if (x == 0.0 and y == 0.0) or x != x or y != y:
        return x + y
    return x if x > y else y


def smaller_of(x, y):
    """`minimum` of two numbers. Kernels on a GPU call this function."""
    if (x == 0.0 and y == 0.0) or x != x or y != y:
        return -(-x - y)
    return x if x < y else y


def maximum(x, y):
    """The larger of two numbers or values: 0.0 is above -0.0; NaN if either is NaN (IEEE 754-2019, 9.6)."""
    return named("maximum", x, y) if isinstance(x, Value) or isinstance(y, Value) else larger_of(x, y)


def minimum(x, y):
    """The smaller of two numbers or values: -0.0 is below 0.0; NaN if either is NaN (IEEE 754-2019, 9.6)."""
    return named("minimum", x, y) if isinstance(x, Value) or isinstance(y, Value) else smaller_of(x, y)

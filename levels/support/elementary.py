"""exp and log: one source runs on Python floats, in programs and in kernels. Notebooks 01 and 02 use them."""

# more/01_exp_and_log explains each line, and those of instructions.py.

import math

import numpy as np

from .compiled import SUBSTITUTIONS
from .instructions import DOUBLE, SINGLE, exponent, in_halves, in_program, rint, scaled, select, sqrt


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
    DOUBLE: _make_exp(-746.0, 1025.0, *_LN2, tuple(1.0 / math.factorial(k) for k in range(13, 1, -1))),
    SINGLE: _make_exp(-104.0, 129.0, 0.693359375, -2.12194440e-4, _CEPHES),
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
    DOUBLE: _make_log(2.0**-1022, 54.0, *_LN2, _EVEN, _ODD),
    SINGLE: _make_log(2.0**-126, 25.0, 0.69313812256, 9.0580006145e-6, *_SHORT),
}


def exp(x):
    """Return eˣ for a Python float or a value in a program."""
    return EXP[x.a.dtype if in_program(x) else DOUBLE](x)


def log(x):
    """Return the natural logarithm of a Python float or a value in a program."""
    return LOG[x.a.dtype if in_program(x) else DOUBLE](x)


# what kernels call in the place of these functions
SUBSTITUTIONS[exp] = EXP.get
SUBSTITUTIONS[log] = LOG.get
SUBSTITUTIONS[select] = lambda dtype: lambda condition, x, y: x if condition else y
SUBSTITUTIONS[rint] = lambda dtype: lambda x: np.rint(x)
SUBSTITUTIONS[sqrt] = lambda dtype: lambda x: math.sqrt(x)
SUBSTITUTIONS[scaled] = lambda dtype: in_halves
# the n for which x lies between √½·2ⁿ and √2·2ⁿ
SUBSTITUTIONS[exponent] = lambda dtype: lambda x: dtype.type(math.frexp(x)[1] - (math.frexp(x)[0] < 0.7071067811865476))

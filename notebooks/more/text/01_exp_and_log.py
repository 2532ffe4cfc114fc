# %% [markdown]
# # 01 more · exp and log
#
# **In this notebook eˣ and log x are made of additions, products and the bits of a float, right to the last place or the one
# before.**
#
# It needs notebook 01, and takes `levels/hardware/elementary.py` apart. Nothing is exported here.

# %%
import math
import random

from course import build, figures
from course.figures import page
from levels.hardware import elementary
from levels_more.hardware import EXP, exp, exponent, log, rint, scaled, select

build.watch("more/01_exp_and_log")
figures.you_are_here(1)

# %% [markdown]
# ## One source for all (2 min)
#
# The second task needs eˣ and log x. Processors have no fast and exact instruction for them. `math.exp` comes from a library,
# and libraries differ in the last bit. So the course writes its own, once, and *every* level runs that one source: on
# Python's floats, in programs of the assembler, in kernels.
#
# The source needs a few small tools. Each works on a Python float, and on a `Value` it writes instructions. `select`
# chooses; `rint` rounds; `scaled` and `exponent` change and read the exponent in the bits of a float, which are sign, exponent
# and fraction ([IEEE 754](https://doi.org/10.1109/IEEESTD.2019.8766229)).

# %%
page.source(select, rint)

# %% [markdown]
# ## The exponent, in the bits (5 min)
#
# A whole number n, plus the bias of the format, *is* the exponent of 2ⁿ once it is shifted to its place. Read the first half of
# each function: it is for Python's floats. The second half writes the same as instructions. `scaled` goes in two steps, because 2ⁿ
# alone may overflow where the result does not.

# %%
page.source(scaled)

# %%
scaled(1.5, 3)

# %% [markdown]
# The way back: shift the fraction away, and what is left is the exponent. The bits of √½ are taken off first, so that
# the cut lies at √½ and not at 1, and x / 2ᵉ is close to 1 on both sides.

# %%
page.source(exponent)

# %%
exponent(12.0)

# %% [markdown]
# ## eˣ (4 min)
#
# 12 is 2⁴ · 0.75, and 0.75 lies between √½ and √2. Now eˣ. Write x = n·log 2 + r with a whole number n and a small r. Then eˣ
# = 2ⁿ·eʳ, and for a small r a polynomial is as exact as the format. `log 2` is split into a short number and a rest, so that
# n times the short one is exact. The scheme and the float32 split are from [Cephes](https://www.netlib.org/cephes/), the
# float64 split from [fdlibm](https://www.netlib.org/fdlibm/). The float64 polynomial is the series itself, 1/k!. The float32
# polynomial is the one of degree 6 whose largest relative error is smallest: the series would need a degree more.

# %%
page.source(elementary._make_exp)

# %%
x = 1.0
n = rint(x * 1.4426950408889634)
r = (x - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10
print(f"1 = {n:.0f} · log 2 + {r:.6f}")
for terms in (2, 4, 8, 13):
    p = sum(r**k / math.factorial(k) for k in range(terms + 1))
    print(f"{terms:2} terms: {scaled(p, n):.15f}")
print(f"       exp: {EXP[elementary._DOUBLE](1.0):.15f}   math.e {math.e:.15f}")

# %% [markdown]
# Each term adds digits, until the format has no more.
#
# ## log x (6 min)
#
# For log x the way back: x = 2ᵉ·(1 + f), so log x = e·log 2 + log(1 + f), and a polynomial in s = f/(2 + f) does the rest. It is
# cut into two, the even powers and the odd ones, so that a processor can run both at once. Scheme and float64 numbers:
# [fdlibm](https://www.netlib.org/fdlibm/), Sun Microsystems, 1993; float32 numbers: FreeBSD's `e_logf.c`, after it.

# %%
page.source(elementary._make_log)

# %%
x = 12.0
e = exponent(x)
f = scaled(x, 0.0 - e) - 1.0
s = f / (2.0 + f)
print(f"12 = 2^{e:.0f} · (1 {f:+})")
for powers in (1, 2, 4, 8):
    series = 2 * sum(s ** (2 * k + 1) / (2 * k + 1) for k in range(powers))
    print(f"{powers} odd powers of s: {e * math.log(2) + series:.15f}")
print(f"               log: {log(12.0):.15f}")

# %% [markdown]
# ## How exact are they? (1 min)
#
# How far are they from the library's? In units of the last place, over ten thousand random numbers:

# %%
draw = random.Random(1).uniform
for f, library, low, high in ((exp, math.exp, -700, 700), (log, math.log, 1e-7, 2)):
    away = [abs(f(x) - library(x)) / math.ulp(library(x)) for x in (draw(low, high) for _ in range(10_000))]
    print(f"{f.__name__}: at most {max(away):.0f}")
print([exp(x) for x in (math.inf, -math.inf, math.nan, 0.0)], [log(x) for x in (math.inf, 0.0, -1.0, 5e-324)])

# %% [markdown]
# Never more than one, where the library's own last digit may be the wrong one. And infinities, NaN, zero and the smallest
# number are right.

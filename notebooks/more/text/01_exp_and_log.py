# %% [markdown]
# # 01 more · exp and log
#
# **In this notebook eˣ and log x are computed from additions, products and the bits of a float, with an error of about
# one unit in the last place.**
#
# It needs notebook 01. It takes `instructions.py` and `elementary.py` of `levels/support` apart. Nothing is exported here.

# %%
import math
import random

from course import build, figures
from course.reader.figures import page
from levels.support import elementary, instructions
from levels.support.elementary import EXP, exp, log
from levels.support.instructions import exponent, in_halves, rint, scaled, select

build.watch("more/01_exp_and_log")
figures.you_are_here(1)

# %% [markdown]
# ## One source for all (2 min)
#
# The second task needs eˣ and log x. Processors have no fast and exact instruction for them. `math.exp` comes from a
# library, and different libraries disagree in the last bit. So the course writes its own functions, once. *Every* level
# runs that same source: on Python's floats, in programs of the assembler, and in kernels.
#
# The source needs four small tools. Given a Python float, each of them computes the result. Given a `Value` of the
# assembler, it writes instructions instead. `select` chooses between two numbers, and `rint` rounds to a whole number.
# `scaled` changes the exponent in the bits of a float, and `exponent` reads it. The bits are sign, exponent and
# fraction ([IEEE 754](https://doi.org/10.1109/IEEESTD.2019.8766229)).

# %%
page.source(select, rint)

# %% [markdown]
# ## The exponent, in the bits (5 min)
#
# To make 2ⁿ, add the bias of the format to n and shift the sum to where the exponent stands in the bits. In each
# function below, read the first half: it works on Python's floats. The second half writes the same steps as
# instructions. `scaled` multiplies in two steps, because 2ⁿ alone may overflow even where the result does not.

# %%
page.source(in_halves, scaled)

# %%
scaled(1.5, 3)

# %% [markdown]
# `exponent` goes the other way: it shifts the fraction out, and the exponent is left. Before that it subtracts the bits
# of √½. This puts the step from one exponent to the next at √½ instead of at 1. So for x just below 1 and just above 1
# the exponent e is the same, and x / 2ᵉ stays close to 1.

# %%
page.source(exponent)

# %%
exponent(12.0)

# %% [markdown]
# ## eˣ (4 min)
#
# The exponent is 4, since 12 is 2⁴ · 0.75 and 0.75 lies between √½ and √2. Now to eˣ. Write x = n·log 2 + r with a
# whole number n and a small r. Then eˣ = 2ⁿ·eʳ, and for a small r a polynomial is as exact as the format. The constant
# `log 2` is split into a short number and a rest. n times the short number is exact. The scheme and the float32 split
# are from [Cephes](https://www.netlib.org/cephes/), the float64 split from [fdlibm](https://www.netlib.org/fdlibm/). In
# float64 the polynomial is the series itself, with coefficients 1/k!. In float32 it is the polynomial of degree 6 with
# the smallest possible largest relative error. The series would need one degree more.

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
print(f"       exp: {EXP[instructions.DOUBLE](1.0):.15f}   math.e {math.e:.15f}")

# %% [markdown]
# Each term adds correct digits, until a float64 can hold no more.
#
# ## log x (5 min)
#
# For log x, write x = 2ᵉ·(1 + f). Then log x = e·log 2 + log(1 + f), and log(1 + f) is computed by a polynomial in s =
# f/(2 + f). The polynomial is split into its even and its odd powers, so that a processor can compute both halves at
# once. The scheme and the float64 coefficients are from [fdlibm](https://www.netlib.org/fdlibm/) (Sun Microsystems,
# 1993). The float32 coefficients are from FreeBSD's `e_logf.c`, which follows it.

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
# How far are our results from the library's? We count in units of the last place, over ten thousand random numbers:

# %%
draw = random.Random(1).uniform
for f, library, low, high in ((exp, math.exp, -700, 700), (log, math.log, 1e-7, 2)):
    away = [abs(f(x) - library(x)) / math.ulp(library(x)) for x in (draw(low, high) for _ in range(10_000))]
    print(f"{f.__name__}: at most {max(away):.0f}")
print([exp(x) for x in (math.inf, -math.inf, math.nan, 0.0)], [log(x) for x in (math.inf, 0.0, -1.0, 5e-324)])

# %% [markdown]
# The two never differ by more than one unit, and the library's own last digit may be the wrong one. Infinities, NaN,
# zero and the smallest number also give the right results.

# %% [markdown]
# # 01 more · Numbers
#
# **In this notebook you see the bits of one tenth, and why a sum's result depends on the order of its additions.**
#
# It needs only NumPy and the surprise at the beginning of notebook 01. Nothing is exported here.

# %%
import numpy as np

from course import build, figures
from course.practice import checks

build.watch("more/01_numbers")
figures.you_are_here(1)

# %% [markdown]
# ## Sign, exponent, fraction (3 min)
#
# A float consists of a sign, an exponent and a fraction: ±1.fraction · 2^exponent. The cell below prints one tenth in
# three formats, each split into these three parts. The exponent has 5 bits in float16 and 8 bits in float32. A bfloat16
# is the upper half of a float32: it has the same range, but less precision. The code only prints bits, so look at its
# output.

# %%
# "f4" is a float of 32 bits, "u4" reads its bits as a whole number; the last entry is the number of exponent bits
formats = {"float32": ("f4", "u4", 8), "float16": ("f2", "u2", 5), "bfloat16": ("f4", "u4", 8)}
for name, (real, whole, exponent_bits) in formats.items():
    tenth = np.array(0.1, real)
    if name == "bfloat16":  # keep the upper 16 bits, rounded to the nearest
        tenth = ((tenth.view("u4") + np.uint32(0x8000)) & np.uint32(0xFFFF0000)).view("f4")
    text = f"{int(tenth.view(whole)):0{8 * tenth.itemsize}b}"[: 16 if name == "bfloat16" else None]
    print(f"{name:9} {text[0]} {text[1 : 1 + exponent_bits]} {text[1 + exponent_bits :]:23}  is {float(tenth):.10f}")

# %% [markdown]
# What is stored is the exponent plus a constant, the **bias** (127 in float32, 15 in float16). So 01111011, which is
# 123, stands for 2⁻⁴. The 1 before the point is always there, so it is not stored: 23 bits of fraction give 24
# significant bits. None of the three numbers is exactly one tenth, because a format has only a limited set of numbers.
# There are as many between 1 and 2 as between 2 and 4, or between 1,024 and 2,048. So how far apart are two neighbours?

# %%
for n in (1, 1e8):
    gaps = ", ".join(f"{np.dtype(real)} {np.spacing(np.array(n, real)):.2g}" for real in ("f4", "f8"))
    print(f"next to {n:.0e}: {gaps}")

# %% [markdown]
# ## Every operation rounds (4 min)
#
# Near a hundred million, float32 has only every eighth whole number. Each +, −, × and ÷ rounds its exact result to the
# nearest number of the format. If two are equally near, it takes the one whose last bit is 0. So every operation may
# lose something, and how much is lost depends on the order of the operations.

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "01-numbers-large",
    "In float32: what are (10⁸ + 1) - 10⁸ and (10⁸ - 10⁸) + 1?",
    choices=["1 and 1", "0 and 1", "1 and 0", "0 and 0"],
)

# %%
big, one = np.float32(1e8), np.float32(1)
print("left to right:", (big + one) - big, "  the large ones first:", (big - big) + one)

# %%
checks.answer_to("01-numbers-large")

# %% [markdown]
# Neither sum is wrong. They are different programs, and each rounds in its own places.

# %% [markdown]
# ## Strict, or quick (2 min)
#
# That is why the course has an *arithmetic of record*. In float64 its assembler forbids two things to LLVM: to reorder
# operations, and to join a product and a sum into one instruction that rounds only once. One number shows the
# difference between rounding twice and rounding once. Let e = 2⁻²⁷. The square of 1 + e is 1 + 2e + e², and next to a 1
# the term e² is too small for a float64:

# %%
e = 2.0**-27
print("rounded after the square:", (1 + e) ** 2 - (1 + 2 * e), "  rounded once:", e**2)

# %%
import re

from levels_more.hardware import Assembler

for dtype in ("f8", "f4"):
    a = Assembler("twice", dtype)
    x, out = a.array("x", 1), a.array("out", 1)
    v = a.load(x, 0)
    a.store(v * v - (1 + 2 * e), out, 0)
    line = next(line for line in a.lines if "fmul" in line)
    print(dtype, re.search("fmul( contract)?", line)[0])

# %% [markdown]
# In float32 each instruction carries the word `contract`, which allows LLVM to fuse it with the next one. In float64 it
# carries no such word. The dtype alone decides; there is no other switch.

# %% [markdown]
# ## 01-1 · A sum that does not get stuck (1 min)
#
# Add pairs of neighbours, then pairs of these sums, and so on. If one number is left over at the end of a round, it
# goes into the next round unchanged:
#
# ```
# 1   2   3   4   5
#  \ /     \ /    |
#   3       7     5
#     \   /       |
#      10         5
#         \     /
#           15
# ```
#
# Each number passes through only about log₂ n additions instead of up to n, so less is rounded away. (About 5 lines.)

# %%
from course.practice import exercises

exercises.begin("01-1")


def sum_in_pairs(x):
    """The sum of a float32 array x[n], n ≥ 1, as a float32: by pairs of neighbours."""
    return ...


exercises.check("01-1", sum_in_pairs)

# %% [markdown]
# Adding in pairs loses less than adding one by one: the error grows with log₂ n instead of n ([Higham,
# 1993](https://doi.org/10.1137/0914050)). NumPy's `sum` does much the same, with blocks of numbers.

# %% [markdown]
# # 01 more · Numbers
#
# **In this notebook you see the bits of a tenth, and why the order of a sum is part of its answer.**
#
# It needs the surprise of notebook 01 and NumPy, nothing else. Nothing is exported here.

# %%
import numpy as np

from course import build, figures
from course.practice import checks

build.watch("more/01_numbers")
figures.you_are_here(1)

# %% [markdown]
# ## Sign, exponent, fraction (3 min)
#
# A float is a sign, an exponent and a fraction: ±1.fraction · 2^exponent. Here is one tenth in three formats, in these three
# parts. float16 gives the exponent 5 bits, float32 gives it 8, and bfloat16 is the upper half of a float32: the same range,
# less precision. The cell only prints bits; read its output.

# %%
# "f4": a float of 32 bits; "u4": its bits as a whole number; then the bits of the exponent
formats = {"float32": ("f4", "u4", 8), "float16": ("f2", "u2", 5), "bfloat16": ("f4", "u4", 8)}
for name, (real, whole, exponent_bits) in formats.items():
    tenth = np.array(0.1, real)
    if name == "bfloat16":  # keep the upper 16 bits, rounded to the nearest
        tenth = ((tenth.view("u4") + np.uint32(0x8000)) & np.uint32(0xFFFF0000)).view("f4")
    text = f"{int(tenth.view(whole)):0{8 * tenth.itemsize}b}"[: 16 if name == "bfloat16" else None]
    print(f"{name:9} {text[0]} {text[1 : 1 + exponent_bits]} {text[1 + exponent_bits :]:23}  is {float(tenth):.10f}")

# %% [markdown]
# The exponent is stored plus a constant, the **bias** (127 in float32, 15 in float16): 01111011 is 123, so 2⁻⁴. The 1 before
# the point is not stored, since it is always there: 23 bits of fraction make 24 significant bits. None of the three is one
# tenth. A format has only so many numbers: as many between 1 and 2 as between 2 and 4, or between 1,024 and 2,048. How far
# apart are neighbours?

# %%
for n in (1, 1e8):
    gaps = ", ".join(f"{np.dtype(real)} {np.spacing(np.array(n, real)):.2g}" for real in ("f4", "f8"))
    print(f"next to {n:.0e}: {gaps}")

# %% [markdown]
# ## Every operation rounds (2 min)
#
# Next to a hundred million, float32 has only every eighth whole number. Each +, −, × and ÷ rounds its exact result to the
# nearest number of the format. In a tie it takes the neighbour whose last bit is 0. So every operation may lose something,
# and what is lost depends on the order.

# %% tags=["hide-input"]
checks.predict(
    "In float32: what are (10⁸ + 1) - 10⁸ and (10⁸ - 10⁸) + 1?",
    choices=["1 and 1", "0 and 1", "1 and 0", "0 and 0"],
    answer="0 and 1",
    because="Next to 10⁸ the neighbours are 8 apart. Added to it, a 1 is rounded away; added to 0, it stays.",
)

# %%
big, one = np.float32(1e8), np.float32(1)
print("left to right:", (big + one) - big, "  the large ones first:", (big - big) + one)

# %% [markdown]
# Nothing is wrong with either sum. They are different programs.

# %% [markdown]
# ## Strict, or quick (2 min)
#
# That is why the course has an *arithmetic of record*. In float64 its assembler forbids LLVM to reorder, and to join a product and
# a sum into one instruction that rounds once. A number tells the two apart. With e = 2⁻²⁷, the square of 1 + e is 1 + 2e + e²,
# and e² is too small for a float64 beside a 1:

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
# In float32 each instruction carries `contract`: LLVM may fuse it with the next. In float64 it carries nothing. The dtype decides; there is no other switch.

# %% [markdown]
# ## 01-1 · A sum that does not get stuck (1 min)
#
# Add neighbours, then the sums of neighbours, and so on. An odd one at the end waits for the next round:
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
# Each number passes through about log₂ n additions, not n, so less is rounded away. (About 5 lines.)

# %%
from course.practice import exercises

exercises.begin("01-1")


def sum_in_pairs(x):
    """The sum of a float32 array x[n], n ≥ 1, as a float32: by pairs of neighbours."""
    return ...


exercises.check("01-1", sum_in_pairs)

# %% [markdown]
# Pairs lose less than one long row: the error grows with log₂ n, not with n
# ([Higham, 1993](https://doi.org/10.1137/0914050)). NumPy's `sum` does much the same, in blocks.

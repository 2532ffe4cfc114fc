# %% [markdown]
# # 02 more · The matrix product at the machine's peak
#
# **In this notebook a matrix product climbs from plain Python to the peak of the machine, and keeps its bits.**
#
# Needs notebook 02: `kernel`, `launch`, plans, `matmul_ikj` and its picture of cache lines; and lanes from notebook 01. It takes
# `levels_more/kernels/matmul.py` and its `micro_kernel.py` apart, which plan large products as soon as a launch asks for one.

# %%
from course import build
from course.figures import page

build.watch("more/02_matmul")

# %%
import timeit

import numba
import numpy as np

from course import figures
from course.practice import checks, exercises
from levels.support.compiled import compile_cpu
from levels_more.hardware import pool
from levels_more.kernels import launch, matmul_ikj, micro_kernel
from levels_more.kernels import matmul as products
from levels_more.kernels.matmul import matmul_rows
from levels_more.kernels.micro_kernel import TILE_ROWS, TILE_VECTORS, VECTOR_BYTES

cpu = pool()["cpu:0"]

# %% [markdown]
# ## A matrix product at the machine's peak (5 min)
#
# For the small matrices of our two tasks three loops are enough. For large ones they are not. How far are they from the peak
# that level 1 measured? We climb a ladder of six rungs. In float64 each must give the same bits. The speed we measure in float32, at
# 512 x 512 (plain Python at 32 x 32, or we would wait for minutes).


# %%
def matmul_python(out, x, w):
    """The definition."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            total = 0.0
            for k in range(x.shape[1]):
                total += x[i, k] * w[k, j]
            out[i, j] = total


# %% tags=["hide-input"]
checks.predict(
    "The second rung is the same three loops, compiled. The third swaps the two inner ones, so that the innermost runs along a "
    "row. How many times as fast is that, in float32 and for 512 x 512?",
    slider=(1, 100),
    answer=(8, 80),
    because="Along a row, whole cache lines are used, and neighbours do not wait for each other: the compiler takes as many "
    "as there are lanes, which differs from machine to machine. Down a column it can do neither.",
)

# %% [markdown]
# Why is that? Notebook 02 has the picture: in `ikj` every line that is loaded is used up. Now up
# the ladder.
# Along a row, every product still costs a load and a store of `out`. The fourth rung takes two rows of `x`
# and four rows of `w` in one pass: six loads and two stores for eight products, where the third rung has sixteen and eight.
# (Read from left to right, k still runs upwards.)


# %%
def matmul_tiled(out, x, w):
    """Two rows of x and four rows of w at a time, for sizes that these divide."""
    out[:] = 0.0
    for i in range(0, out.shape[0], 2):
        top, low, u, v = out[i], out[i + 1], x[i], x[i + 1]
        for p in range(0, x.shape[1], 4):
            a, b, c, d = w[p], w[p + 1], w[p + 2], w[p + 3]
            for j in range(out.shape[1]):
                top[j] = top[j] + u[p] * a[j] + u[p + 1] * b[j] + u[p + 2] * c[j] + u[p + 3] * d[j]
                low[j] = low[j] + v[p] * a[j] + v[p + 1] * b[j] + v[p + 2] * c[j] + v[p + 3] * d[j]


# %% [markdown]
# ## Sums that stay in registers (12 min)
#
# The fifth rung keeps a **tile** of `out`, a block of its rows and columns, in registers over a long stretch of k:
#
# ```
#                      w  .........########...   for each k: a piece of row k of w,
#                         .........########...   times 16 numbers of x, one of each row
#
# x  .............   out  ....................
#    #############        .........┌──────┐...   the tile: 16 x 8 sums in registers,
#    #############        .........│      │...   stored once, after the last k
#    #############        .........└──────┘...
#    .............        ....................
# ```
#
# In NumPy's words:


# %%
def tile(out, x, w, i, j, rows=16, width=8):
    """One tile of out = x @ w."""
    sums = np.zeros((rows, width))  # these stay in registers
    for k in range(x.shape[1]):
        for r in range(rows):
            sums[r] += x[i + r, k] * w[k, j : j + width]
    out[i : i + rows, j : j + width] = sums


# %% [markdown]
# For each k it loads one row of `w` and sixteen numbers of `x`, and stores nothing. Its shape comes from the processor: enough
# sums to keep the adders busy, and no more than there are registers. What does yours offer?

# %%
page.source(micro_kernel.tile_shape)

# %% tags=["nbval-ignore-output"]
print(f"{TILE_ROWS} rows of {TILE_VECTORS} vectors of {VECTOR_BYTES} bytes")

# %% [markdown]
# No loop in Python says "keep these in registers", so this one piece is written in the compiler's own words, as on level 1. A
# function that numba hands its own builder to is an **intrinsic**. Such a builder emits one instruction at a time, as the assembler of
# level 1 does. `vectors` has the instructions on vectors: `splat` fills all lanes with one number; a `mask` switches lanes off, so that
# nothing beyond an edge is touched. Here is the tile. It is told where the numbers of `x` and `w` lie, so it reads them in place as well
# as *packed*, that is, laid side by side in the order of use.

# %%
page.source(micro_kernel.write_tile)

# %% [markdown]
# `macro_kernel` covers all of `out` with tiles, in panels from left to right: as wide as a tile may be, then one vector wide, the last one
# perhaps a part of a vector. And each panel from top to bottom: sixteen rows at a time (or what `TILE_ROWS` says), then four, then one.
# `pack_square` packs, and turns squares in registers where an operand is transposed. Around these two stand plain loops: pack a
# part of `w`, pack some rows of `x`, run the tiles.

# %%
page.source(products.matmul_rows)

# %% [markdown]
# ## Threads (6 min)
#
# The sixth rung is threads. Rows of `out` do not depend on each other, so each thread takes some. The sums are the same sums
# in the same order, so the bits are the same.

# %%
page.source(products.matmul_tiles)

# %% [markdown]
# To pack pays where each number is used many times. Under ten million products, or with few rows or columns, it is quicker to
# read `x` and `w` where they lie: that is `matmul_small`. Which program a product gets is settled once, when it is planned. A kernel of
# your own is left alone.

# %%
page.source(products.plan_tiles)

# %% [markdown]
# **A good place to stop.** All six rungs stand; what each of them is worth is measured next.

# %% [markdown]
# ## How fast is each rung? (6 min)
#
# First, is each right? The second to the fifth against plain Python, bit by bit in float64:


# %%
def rungs(dtype):
    """The second to the fifth rung, compiled for that dtype."""
    rows = {"ijk": matmul_python, "ikj": matmul_ikj, "2 x 4 rows": matmul_tiled}
    rows = {name: compile_cpu(function, np.dtype(dtype)) for name, function in rows.items()}
    tiles = compile_cpu(matmul_rows, np.dtype(dtype))
    return rows | {"register tile": lambda out, x, w: tiles(out, x, w, False, False, 0)}


draw = np.random.default_rng(0)
x, w = draw.normal(size=(64, 48)), draw.normal(size=(48, 80))
first, out = np.empty((2, 64, 80))
matmul_python(first, x, w)
for name, rung in rungs("f8").items():
    rung(out, x, w)
    print(f"{name:13} equal: {(out == first).all()}")

# %% [markdown]
# And how fast is each, as a share of the peak that level 1 measured?

# %% tags=["nbval-ignore-output"]


def seconds(run, repeats):
    """The least time of a call."""
    return min(timeit.repeat(run, number=1, repeat=repeats))


x, w = (draw.standard_normal((512, 512), "f4") for _ in "xw")
out, flops, speeds = np.empty_like(x), 2 * 512**3, {}
small = [v[:32, :32].copy() for v in (out, x, w)]
speeds["Python (32 x 32)"] = 2 * 32**3 / seconds(lambda: matmul_python(*small), 3)
for name, rung in rungs("f4").items():
    rung(out, x, w)
    speeds[name] = flops / seconds(lambda rung=rung: rung(out, x, w), 5)
print(f"ikj is {speeds['ikj'] / speeds['ijk']:.0f} times as fast as ijk")
figures.ladder({name: speed / cpu.peak for name, speed in speeds.items()})

# %% [markdown]
# From the second rung to the third is the same work in another order: many lanes at once, and no column to walk down. The fourth
# has far fewer loads and stores, and the fifth hardly any: its sums stay where they are.
#
# And with threads. N of them are a little less than N times as fast: each packs `w` for itself, and handing work over and
# waiting for it takes time.

# %% tags=["nbval-ignore-output"]
times, inputs = {}, [cpu.put(v) for v in (x, w)]
for threads in (1, numba.config.NUMBA_NUM_THREADS):
    numba.set_num_threads(threads)
    times[threads] = min(timeit.repeat(lambda: launch("matmul", None, *inputs), number=10, repeat=5)) / 10
    print(f"{threads} thread{'s' * (threads > 1)}: {times[threads] * 1e3:.2f} ms")

# %% [markdown]
# ## The same bits on any number of threads (5 min)
#
# The threads above share the *rows* of the result. They could have shared the sum over k as well: each adds up its part, and the
# parts are added at the end.

# %% tags=["hide-input"]
checks.predict(
    "A sum of a million numbers, in one part, in two, in three or in four: how many different results are there?",
    choices=["one", "two", "four"],
    answer="four",
    because="Each addition rounds, and other parts round at other places. (a + b) + c is not a + (b + c).",
)

# %%
x = np.random.default_rng(1).normal(size=1_000_000)


def sum_of(numbers):
    """In order, from 0.0."""
    return float(np.cumsum(numbers)[-1])


for parts in (1, 2, 3, 4):
    print(parts, "parts:", sum_of([sum_of(part) for part in np.array_split(x, parts)]).hex())

# %% [markdown]
# So a program that divides a sum among its threads gives one answer on your laptop and another on the server. It gets worse
# where the thread that is done first adds its part first. Then two runs on the same machine differ:

# %%
parts = [sum_of(part) for part in np.array_split(x, 8)]
arrivals = [np.random.default_rng(run).permutation(8) for run in range(1000)]
print("1,000 runs,", len({sum_of([parts[i] for i in order]) for order in arrivals}), "different sums")

# %% [markdown]
# That is what sums on a GPU do where threads add into one place ("atomic" additions), and why PyTorch has a
# [switch](https://docs.pytorch.org/docs/stable/notes/randomness.html) against it. On this level the rule is: threads share
# results, never a sum. So how many there are changes the time, and not one bit:

# %%
x, w = (np.random.default_rng(2).normal(size=(300, 300)) for _ in "xw")
both = []
for threads in (1, numba.config.NUMBA_NUM_THREADS):
    numba.set_num_threads(threads)
    both.append(launch("matmul", None, cpu.put(x), cpu.put(w)).numpy())
print("equal:", both[0].tobytes() == both[1].tobytes())

# %% [markdown]
# ## Exercises (optional)
#
# As in notebook 02: fill the stub, run, and read what the check says.
#
# ### 02-2 · The product of the backward pass
#
# `dnn_backward` asks for `matmul(x, dy, transpose_x=True)`. Write that kernel, with no transposed copy: every row of the batch adds
# one small matrix to `dw`.
#
# ```
#  x[i, :]          dy[i, :]           added to dw
#  ┌ 1 ┐                               ┌ 10  20  30 ┐
#  └ 2 ┘     ·    [ 10  20  30 ]   =   └ 20  40  60 ┘
# ```
#
# (About 5 lines. The sums start at 0.0 and i runs upwards, so that the bits are those of record.)

# %%
from course.practice import exercises

exercises.begin("02-2")


def gradient_product(dw, x, dy):
    """dw[k, j] = Σᵢ x[i, k]·dy[i, j] for dw[inputs, units], x[rows, inputs], dy[rows, units]."""
    ...


exercises.check("02-2", gradient_product)

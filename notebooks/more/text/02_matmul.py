# %% [markdown]
# # 02 more · The matrix product at the machine's peak
#
# **In this notebook a matrix product gets faster in six steps, from plain Python to most of the machine's peak, and its
# bits never change.**
#
# It needs notebook 02 (`kernel`, `launch`, plans, `matmul_ikj` and its picture of cache lines), and lanes from
# notebook 01. It takes apart `matmul.py` and `micro_kernel.py` in `levels_more/kernels/`. Large products run on this
# code as soon as a launch asks for one.

# %%
from course import build
from course.reader.figures import page

build.watch("more/02_matmul")

# %%
import timeit

import numba
import numpy as np

from course import figures
from course.reader import checks, exercises
from levels.support.compiled import compile_cpu
from levels_more.hardware import pool
from levels_more.kernels import launch, matmul_ikj, micro_kernel
from levels_more.kernels import matmul as products
from levels_more.kernels.matmul import matmul_rows
from levels_more.kernels.micro_kernel import TILE_ROWS, TILE_VECTORS, VECTOR_BYTES

cpu = pool()["cpu:0"]

# %% [markdown]
# ## A matrix product at the machine's peak (4 min)
#
# Three loops are enough for the small matrices of our two tasks, but not for large ones. How far are the three loops
# from the peak that level 1 measured? We climb a ladder of six rungs. In float64 each rung must give the same bits. We
# measure the speed in float32, with matrices of 512 x 512. (Plain Python gets 32 x 32, because otherwise we would wait
# too long.)


# %%
def matmul_python(out, x, w):
    """The definition."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            total = 0.0
            for k in range(x.shape[1]):
                total += x[i, k] * w[k, j]
            out[i, j] = total


# %% [markdown]
# This is the first rung, in plain Python. The second is the same three loops, compiled. The third swaps the two inner
# loops (`ikj`), so that the innermost one runs along a row. There every product still costs a load and a store of
# `out`. The fourth rung takes two rows of `x` and four rows of `w` in one pass. For eight products it needs six loads
# and two stores, where the third rung needs sixteen and eight. (From left to right k still runs upwards, so each sum
# keeps its order.)


# %%
def matmul_tiled(out, x, w):
    """Two rows of x and four rows of w at a time, for sizes that are multiples of these."""
    out[:] = 0.0
    for i in range(0, out.shape[0], 2):
        top, low, u, v = out[i], out[i + 1], x[i], x[i + 1]
        for p in range(0, x.shape[1], 4):
            a, b, c, d = w[p], w[p + 1], w[p + 2], w[p + 3]
            for j in range(out.shape[1]):
                top[j] = top[j] + u[p] * a[j] + u[p + 1] * b[j] + u[p + 2] * c[j] + u[p + 3] * d[j]
                low[j] = low[j] + v[p] * a[j] + v[p + 1] * b[j] + v[p + 2] * c[j] + v[p + 3] * d[j]


# %% [markdown]
# ## Sums that stay in registers (13 min)
#
# The fifth rung takes a **tile** of `out`, a block of its rows and columns. Over a long range of k the sums of the tile
# stay in registers:
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
# Here is the same in NumPy:


# %%
def tile(out, x, w, i, j, rows=16, width=8):
    """One tile of out = x @ w."""
    sums = np.zeros((rows, width))  # these stay in registers
    for k in range(x.shape[1]):
        for r in range(rows):
            sums[r] += x[i + r, k] * w[k, j : j + width]
    out[i : i + rows, j : j + width] = sums


# %% [markdown]
# For each k, `tile` loads one row of `w` and sixteen numbers of `x`, and stores nothing. The best shape of a tile
# depends on the processor: there must be enough sums to keep its adders busy, and no more than fit into its registers.
# What shape fits yours?

# %%
page.source(micro_kernel.tile_shape)

# %% tags=["nbval-ignore-output"]
print(f"rows: {TILE_ROWS}, vectors in a row: {TILE_VECTORS}, bytes in a vector: {VECTOR_BYTES}")

# %% [markdown]
# A loop in Python cannot say "keep these in registers". So we write this one piece in instructions of the compiler, as
# on level 1. numba allows that in a special function, an **intrinsic**: it gets numba's own builder, which emits one
# instruction at a time, as the assembler of level 1 does. `vectors` has the instructions on vectors. `splat` fills all
# lanes with one number, and a `mask` switches lanes off, so that nothing beyond an edge is touched. Below is the code
# that writes a tile. It gets the places of the numbers of `x` and `w`, so it can read them where they are. It can also
# read a *packed* copy, in which they lie side by side in the order of use.

# %%
page.source(micro_kernel.write_tile)

# %% [markdown]
# `macro_kernel` covers all of `out` with tiles. It goes in panels from left to right. Each panel is as wide as a tile
# may be. The remaining columns get panels one vector wide, and the last of these may be only a part of a vector. Within
# a panel it goes from top to bottom: sixteen rows at a time (or `TILE_ROWS`), then four, then one. `pack_square` packs
# a square of numbers, and transposes it in registers where an operand is transposed. Plain loops use these two
# functions: they pack a part of `w`, pack some rows of `x`, and run the tiles.

# %%
page.source(products.matmul_rows)

# %% [markdown]
# ## Threads (4 min)
#
# The sixth rung uses threads. The rows of `out` do not depend on each other, so each thread takes some of them. Every
# sum is still added in the same order, so the bits do not change.

# %%
page.source(products.matmul_tiles)

# %% [markdown]
# Packing pays only if each number is used many times. With under ten million products, or with few rows or columns, it
# is faster to read `x` and `w` where they are, which `matmul_small` does. Planning a product decides once which program
# it gets. If you have put in a kernel of your own, that one is used.

# %%
page.source(products.plan_tiles)

# %% [markdown]
# **A good place to stop.** You have seen all six rungs. Next we measure how fast each of them is.

# %% [markdown]
# ## How fast is each rung? (8 min)
#
# First, is each of them right? We compare the second to the fifth rung with plain Python, bit by bit in float64:


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
# And how fast is each?

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "02-matmul-third-rung",
    "The second rung is the same three loops, compiled. The third swaps the two inner loops, so that the innermost "
    "one runs along a row. How many times as fast is the third rung, in float32 and for 512 x 512?",
    slider=(1, 100),
)

# %% [markdown]
# We measure each as a share of the peak that level 1 measured:

# %% tags=["nbval-ignore-output"]


def seconds(run, repeats):
    """The shortest time of a call."""
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

# %%
checks.answer_to("02-matmul-third-rung")

# %% [markdown]
# The picture in notebook 02 shows the cache lines: with `ikj`, every number in a line is used before the line is
# replaced. The fourth rung has far fewer loads and stores. The fifth has hardly any, because its sums stay in
# registers.
#
# Now the sixth rung. N threads are less than N times as fast. Each thread packs `w` for itself, and it takes
# time to hand out the work and to wait for it.

# %% tags=["nbval-ignore-output"]
times, inputs = {}, [cpu.put(v) for v in (x, w)]
for threads in (1, numba.config.NUMBA_NUM_THREADS):
    numba.set_num_threads(threads)
    times[threads] = min(timeit.repeat(lambda: launch("matmul", None, *inputs), number=10, repeat=5)) / 10
    print(f"{threads} thread{'s' * (threads > 1)}: {times[threads] * 1e3:.2f} ms")

# %% [markdown]
# ## The same bits on any number of threads (7 min)
#
# Above, the threads divide the *rows* of the result among them. They could instead divide the sum over k: each thread
# adds up one part, and the parts are added at the end.

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "02-matmul-parts",
    "We add a million numbers in one part, in two, in three and in four parts. How many different results do we get?",
    choices=["one", "two", "four"],
)

# %%
x = np.random.default_rng(1).normal(size=1_000_000)


def sum_of(numbers):
    """The sum in order, starting at 0.0."""
    return float(np.cumsum(numbers)[-1])


for parts in (1, 2, 3, 4):
    print(f"parts: {parts}  ", sum_of([sum_of(part) for part in np.array_split(x, parts)]).hex())

# %%
checks.answer_to("02-matmul-parts")

# %% [markdown]
# So if a program divides a sum among its threads, its answer on your laptop differs from its answer on a server with
# more cores. It gets worse if each thread adds its part as soon as it is done. Then even two runs on the same machine
# differ:

# %%
parts = [sum_of(part) for part in np.array_split(x, 8)]
arrivals = [np.random.default_rng(run).permutation(8) for run in range(1000)]
print("1,000 runs,", len({sum_of([parts[i] for i in order]) for order in arrivals}), "different sums")

# %% [markdown]
# This happens on a GPU when threads add into one place ("atomic" additions). It is why PyTorch has a
# [switch](https://docs.pytorch.org/docs/stable/notes/randomness.html) that forbids it. On this level the rule is:
# threads divide the results among them, never a sum. So the number of threads changes the time, but not one bit:

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
# As in notebook 02, fill in the stub, run the cell, and read what the check says.
#
# ### 02-2 · The product of the backward pass
#
# `dnn_backward` needs `matmul(x, dy, transpose_x=True)`. Write that kernel without making a transposed copy. Every row
# of the batch adds one small matrix to `dw`.
#
# ```
#  x[i, :]          dy[i, :]           added to dw
#  ┌ 1 ┐                               ┌ 10  20  30 ┐
#  └ 2 ┘     ·    [ 10  20  30 ]   =   └ 20  40  60 ┘
# ```
#
# (About 5 lines. The sums start at 0.0 and i runs upwards, as in the arithmetic of record.)

# %%
from course.reader import exercises

exercises.begin("02-2")


def gradient_product(dw, x, dy):
    """dw[k, j] = Σᵢ x[i, k]·dy[i, j] for dw[inputs, units], x[rows, inputs], dy[rows, units]."""
    ...


exercises.check("02-2", gradient_product)

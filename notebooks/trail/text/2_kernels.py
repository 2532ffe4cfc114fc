# %% [markdown]
# # Trail 2 · Kernels
#
# **In this notebook you write a kernel and enter it in a table, and `model.fit` runs on it.**
#
# In notebook 1, one program trained **the line**: the model `x1·w1 + x2·w2 + b`. It can train nothing else. So a
# framework puts its models together from small programs. Here you see what this makes easy, and what it costs.

# %% tags=["hide-input"]
# setup: run me
from course import build, figures, tasks
from course.reader import checks, trail

build.watch("trail/2_kernels")
figures.you_are_here(2)

# %% [markdown]
# ## A surprise to begin with (4 min)
#
# We add an array to itself: first an array with 1 number in it, then one with 1,000.

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "2-thousand",
    "How many times as long does it take to add 1,000 numbers?",
    slider=(1, 1000),
)

# %% tags=["nbval-ignore-output"]
import timeit

import numpy as np

for n in (1, 1000):
    seconds = min(timeit.repeat("v + v", globals={"v": np.ones(n)}, number=2000)) / 2000
    print(f"numbers: {n:5}   time: {seconds * 1e9:4.0f} ns")

# %%
checks.answer_to("2-thousand")

# %% [markdown]
# That matters, because we are going to make many small calls.

# %% [markdown]
# ## A name and a table (9 min)
#
# A **kernel** is a small compiled program that does one operation on whole arrays. You need not write its instructions any more:
# [numba](https://numba.readthedocs.io/en/stable/user/5minguide.html) makes them from a Python loop, with LLVM. The name of an operation
# is called an **op**. A framework finds a kernel by its op. So it needs a table from ops to kernels:

# %%
from levels.support.compiled import compile_cpu

kernels = {}  # op -> the function that is compiled for it


def twice(out, x):
    for i in range(len(out)):
        out[i] = 2.0 * x[i]


kernels["twice"] = twice

# %% [markdown]
# To **launch** an op is to look up its kernel and run it. (`compile_cpu` compiles each kernel once, and keeps it.)


# %%
def launch(op, out, *inputs):
    program = compile_cpu(kernels[op], out.dtype)
    program(out, *inputs)
    return out


launch("twice", np.zeros(3), np.arange(3.0))

# %% [markdown]
# The name was enough. If you put another kernel under this name, everything that launches this op will run it.
#
# ### Your turn: the product
#
# In a matrix product, out[i, j] is the sum over k of x[i, k]·w[k, j]. Written like this formula, the loops stand in the order i, j, k:


# %%
def matmul_ijk(out, x, w):
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            total = 0.0
            for k in range(x.shape[1]):
                total += x[i, k] * w[k, j]
            out[i, j] = total


# %% [markdown]
# The inner loop goes down a column of `w`. But memory is fetched in blocks, and a block holds neighbours of one row. So each turn fetches a
# whole block and uses one number of it. Write the loops in the order i, k, j instead. Then the innermost loop, over j, goes along the rows
# of `w` and `out`. Set `out` to 0.0 first, and add to it.


# %%
#| blank matmul_ikj
def matmul_ikj(out, x, w):
    """Set out[i, j] to Σₖ x[i, k]·w[k, j]: start at 0.0, and add k = 0 first."""
    ...  # 5 lines


# %% [markdown]
# <details><summary>Hint</summary><code>out[:] = 0.0</code> comes first. Then three loops, over i, k and j, with one line inside that
# adds to <code>out[i, j]</code>.</details>
# <details><summary>Solution</summary>
#
# ```python
# def matmul_ikj(out, x, w):
#     out[:] = 0.0
#     for i in range(out.shape[0]):
#         for k in range(x.shape[1]):
#             for j in range(out.shape[1]):
#                 out[i, j] += x[i, k] * w[k, j]
# ```
# </details>

# %%
kernels |= {"ijk": matmul_ijk, "ikj": matmul_ikj}
x, w = np.random.default_rng(0).standard_normal((2, 300, 300))
products = {op: launch(op, np.zeros((300, 300)), x, w) for op in ("ijk", "ikj")}
print("the same bits:", products["ijk"].tobytes() == products["ikj"].tobytes())

# %% tags=["nbval-ignore-output"]
for op, out in products.items():
    seconds = min(timeit.repeat(lambda op=op, out=out: launch(op, out, x, w), number=1))
    print(f"{op} {seconds * 1e3:5.1f} ms")

# %% [markdown]
# Each sum still adds the same products in the same order, so the bits are equal.

# %% [markdown]
# ## The line, launch by launch (6 min)
#
# `levels` has such a table, too, `KERNELS`. If you pass `None` as `out`, the `launch` of `levels` makes an array for
# the result. One step of the line takes fourteen launches. `gather` fetches the rows with the given numbers.
# `keepdims=True` keeps a sum as an array with one row. To add `b`, of shape (1, 1), to ten predictions, `add` repeats
# it for each row, as NumPy does.
#
# The gradients are worked out by hand, as in notebook 1. For the slope of a weight, each row's input is multiplied by
# the row's `de`, and the products are added up over the rows. One matrix product does this for all weights, if the rows
# are **transposed**: the first row of rowsᵀ holds x1 of every row, and the second x2. Here it is with two rows:
#
# ```
# rows   1  2      de    10      row 1 times its de     10   20
#        3  4           100      row 2 times its de    300  400
#                                added up              310  420   =  rowsᵀ · de
# ```

# %%
from levels import hardware
from levels.kernels import launch

task, cpu = tasks.linear(), hardware.pool()["cpu:0"]
x_, y_, w, b = map(cpu.put, (task.x, task.y, *task.weights))
n, g = cpu.put(np.full((1, 1), 10.0)), cpu.put(np.full((1, 1), 1.0 / 10.0))


def step(numbers):
    # fetch ten rows, predict, and take the errors
    i = cpu.put(numbers)
    rows, target = launch("gather", None, x_, i), launch("gather", None, y_, i)
    prediction = launch("add", None, launch("matmul", None, rows, w), b)
    error = launch("subtract", None, prediction, target)
    # the sum of the squared errors, for the loss
    squared = launch("multiply", None, error, error)
    total = launch("reduce_sum", None, squared, axis=0, keepdims=True)
    # the slopes: de = g·e + g·e for each row, then the sums over the rows
    ge = launch("multiply", None, g, error)
    de = launch("add", None, ge, ge)
    dw = launch("matmul", None, rows, de, transpose_x=True)
    db = launch("reduce_sum", None, de, axis=0, keepdims=True)
    # sgd, short for stochastic gradient descent, overwrites w and b
    launch("sgd", w, dw, rate=task.learning_rate)
    launch("sgd", b, db, rate=task.learning_rate)
    return launch("divide", None, total, n).numpy()[0, 0]


losses = [step(numbers) for numbers in task.batches]
print(f"first loss {losses[0]:.1f}\nlast loss {losses[-1]:.4g} ({losses[-1].hex()})")

# %% [markdown]
# It is the number of notebook 1, to the last bit. Any model can be put together from such ops. But what does a step
# cost? Notebook 1 ran all steps in one call. Here each step takes fourteen calls. By what factor is a step slower?
# Guess first.

# %% tags=["nbval-ignore-output"]
train, given = hardware.tasks.linear_regression, (*task[:2], *task[4:7])
whole = min(timeit.repeat(lambda: train(*given), number=1)) / len(task.batches)
one = min(timeit.repeat(lambda: launch("add", None, w, w), number=1000)) / 1000
here = min(timeit.repeat(lambda: step(task.batches[0]), number=100)) / 100
print(f"one launch {one * 1e6:.1f} µs, times fourteen {14 * one * 1e6:.0f} µs")
print(f"a step {here * 1e6:.0f} µs, in notebook 1 {whole * 1e6:.2f} µs")
print(f"slower by a factor of {here / whole:.0f}")

# %% [markdown]
# The factor is several hundred. The number of launches, times the time of one, explains most of a step. In notebook 3 a
# compiler wins this time back.

# %% [markdown]
# ## Your kernel, every level follows (3 min)
#
# Inside `with use(…)`, `matmul_ikj` is the kernel of `matmul`. (It is yours if you have filled it in.) Level 5 needs no change: its `fit`
# finds `matmul` by its name. (`linear_regression` of level 5 holds the lines with `fit` that you saw at the end of notebook 1.)
#
# Notes will say that functions run op by op. Usually no kernel is launched: a compiler writes one program for the whole
# step, with a product of its own. It cannot look into your kernel. So this time all kernels are launched one by one.

# %%
from levels import high_level
from levels.kernels import KERNELS, use

with use("matmul", "cpu", matmul_ikj):
    print("matmul runs", KERNELS["matmul", "cpu"].__name__)
    fit = high_level.tasks.linear_regression(*task[:2], *task[4:7])
print(f"last loss {fit.losses[-1]:.4g} ({fit.losses[-1].hex()})")

# %% [markdown]
# `fit` has trained with `matmul_ikj`. It ends on the same bits.
#
# You can now write a kernel, replace one that a framework uses, and predict what a step costs from the number of its launches.
#
# **A good place to stop.** An op is a name, a kernel is a program for it, and one table joins them.
#
# Next: [3 · Low-level API](3_low_level.ipynb). The longer notebook of this level is [02_kernels](../02_kernels.ipynb): there one loop
# serves all ops that work number by number, and a net is trained.

# %%
trail.take_along()

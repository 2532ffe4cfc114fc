# %% [markdown]
# # Trail 2 · Kernels
#
# **In this notebook you write a kernel, enter it in a table by its name, and `model.fit` runs on it.**
#
# **The line** is four hundred points with two inputs and one answer, and a model `x1·w1 + x2·w2 + b` that learns from ten of them a
# step. In the notebook before, one program trained it in one call, the line and nothing else: another model is another
# program. So we cut it into small ones, and give each a name.

# %%
from course import build, figures, tasks
from course.practice import checks, trail

build.watch("trail/2_kernels")
figures.you_are_here(2)

# %% [markdown]
# ## A surprise to begin with (4 min)
#
# We add an array to itself: once with 1 number in it, once with 1,000.

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "How many times longer do the thousand take?",
    slider=(1, 1000),
    answer=(1.2, 4),
    because="Almost all of a small call is preparation, and that does not depend on how many numbers there are.",
)

# %% tags=["nbval-ignore-output"]
import timeit

import numpy as np

one, thousand = (min(timeit.repeat("v + v", globals={"v": np.ones(n)}, number=2000)) / 2000 for n in (1, 1000))
print(f"1 number {one * 1e9:.0f} ns, 1,000 numbers {thousand * 1e9:.0f} ns: {thousand / one:.1f} times the time")

# %% [markdown]
# A thousand times the work, and nowhere near a thousand times the time. Most of a small call is not arithmetic. Keep that in
# mind: we are about to make many small calls.

# %% [markdown]
# ## A name and a table (11 min)
#
# A **kernel** is a small compiled program that does one operation on whole arrays. You need not write its instructions any
# more: [numba](https://numba.readthedocs.io/en/stable/user/5minguide.html) writes them from a Python loop, through the same LLVM.
# A framework does not call it by its function, but by the *name* of the operation, the **op**. One table joins the two.

# %%
from levels.support.compiled import compile_cpu

kernels = {}  # the name of an op -> the function that does it


def twice(out, x):
    for i in range(len(out)):
        out[i] = 2.0 * x[i]


kernels["twice"] = twice

# %% [markdown]
# To **launch** an op is to look its kernel up, and run it:


# %%
def launch(op, out, *inputs):
    program = compile_cpu(kernels[op], out.dtype)
    program(out, *inputs)
    return out


launch("twice", np.zeros(3), np.arange(3.0))

# %% [markdown]
# The name was enough. Whoever changes the table changes what everybody above it runs.
#
# ### Your turn: the product
#
# The workhorse of deep learning is the matrix product: out[i, j] is the sum over k of x[i, k]·w[k, j]. In books the loops stand
# in this order:


# %%
def matmul_ijk(out, x, w):
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            total = 0.0
            for k in range(x.shape[1]):
                total += x[i, k] * w[k, j]
            out[i, j] = total


# %% [markdown]
# Its inner loop runs down a column of `w`. Memory hands out numbers in lines of 64 bytes, along the rows, so each step of that loop
# fetches a line and uses one number of it. Write the other order: for each `i`, each `k`, and innermost each `j`. It sets `out` to
# 0.0 first, and then adds to it.


# %%
#| blank matmul_ikj
def matmul_ikj(out, x, w):
    """out[i, j] = Σₖ x[i, k]·w[k, j], starting at 0.0, k upwards."""
    ...  # 5 lines


# %% [markdown]
# <details><summary>Hint</summary>Three loops, i, k, j, and one line within. What does <code>out</code> hold when you
# begin?</details>
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
products = {order: launch(order, np.zeros((300, 300)), x, w) for order in ("ijk", "ikj")}
print("the same bits:", products["ijk"].tobytes() == products["ikj"].tobytes())

# %% tags=["nbval-ignore-output"]
out = np.zeros((300, 300))
slow, fast = (min(timeit.repeat(lambda o=order: launch(o, out, x, w), number=1, repeat=3)) for order in ("ijk", "ikj"))
print(f"ijk {slow * 1e3:.1f} ms, ikj {fast * 1e3:.1f} ms: {slow / fast:.0f} times as fast")

# %% [markdown]
# The same products, added in the same order, so the same bits. Only the visits to memory have another order.

# %% [markdown]
# ## The line, launch by launch (8 min)
#
# The table of `levels` is `KERNELS`, and its `launch` finds the place for a result where you say `None`. Here is the line
# again. Fourteen launches are a step: the rows, the prediction, the error, the loss, and the way back, with gradients by
# hand: of each row g·e + g·e, with g = 1/10 and its error e, and that times its inputs. (`sgd` overwrites its weight.)

# %%
from levels import hardware
from levels.kernels import launch

task, cpu = tasks.linear(), hardware.pool()["cpu:0"]
x_, y_, w, b = map(cpu.put, (task.x, task.y, *task.weights))
n, g = cpu.put(np.full((1, 1), 10.0)), cpu.put(np.full((1, 1), 1.0 / 10.0))


def step(numbers):
    i = cpu.put(numbers)
    rows, target = launch("gather", None, x_, i), launch("gather", None, y_, i)
    prediction = launch("add", None, launch("matmul", None, rows, w), b)
    error = launch("subtract", None, prediction, target)
    total = launch("reduce_sum", None, launch("multiply", None, error, error), axis=0, keepdims=True)
    ge = launch("multiply", None, g, error)
    de = launch("add", None, ge, ge)
    dw = launch("matmul", None, rows, de, transpose_x=True)
    db = launch("reduce_sum", None, de, axis=0, keepdims=True)
    launch("sgd", w, dw, rate=task.learning_rate)
    launch("sgd", b, db, rate=task.learning_rate)
    return launch("divide", None, total, n).numpy()[0, 0]


losses = [step(numbers) for numbers in task.batches]
print(f"last loss {losses[-1]:.4g} ({float(losses[-1]).hex()})")

# %% [markdown]
# The number of the one program, to the last bit. Any model can be put together from these names. And what did it cost?

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "One program for the whole step, as in the notebook before, takes about 0.1 µs. And this one?",
    choices=["about the same", "ten times as long", "a hundred times as long, or more"],
    answer="a hundred times as long, or more",
    because="Fourteen calls of a microsecond or two, and in each the arithmetic is a few nanoseconds. It is the surprise again: the "
    "time goes to the calls.",
)

# %% tags=["nbval-ignore-output"]
seconds = min(timeit.repeat(lambda: step(task.batches[0]), number=200, repeat=3)) / 200
small = cpu.put(np.ones((10, 1)))
one = min(timeit.repeat(lambda: launch("add", None, small, small), number=200, repeat=3)) / 200
print(f"a step {seconds * 1e6:.0f} µs; 14 launches of {one * 1e6:.1f} µs make {14 * one * 1e6:.0f} µs")

# %% [markdown]
# The price was predicted before it was measured: launches times the time of one. Level 3 will buy it back.

# %% [markdown]
# ## Your kernel, every level follows (4 min)
#
# Now use the table. Inside `with use(…)` your `matmul_ikj` is the kernel of `matmul`. Level 5 knows nothing of it, and does
# not have to: its `fit` goes down to this table like everybody else.

# %%
from levels.high_level import Sequential
from levels.kernels import KERNELS, use
from levels.mid_level import SGD, Dataset, Dense

model = Sequential([Dense(1, dtype="float64")])
model.build((400, 2), "float64")
model.set_weights(task.weights)
model.compile(SGD(task.learning_rate), "mse")
with use("matmul", "cpu", matmul_ikj):
    print("fit runs on yours:", KERNELS["matmul", "cpu"] is matmul_ikj)
    fit = model.fit(Dataset.from_batches(task.x, task.y, task.batches), verbose=0)
print(f"last loss {fit.losses[-1]:.4g} ({float(fit.losses[-1]).hex()})")

# %% [markdown]
# `fit` has trained on a kernel of yours, and ends on the same bits, for you add in the same order. (It says that it runs op by op:
# the program that notebook 3 will write for a step knows the products of the course, and a product of yours is called as it is.)
#
# **A good place to stop.** An op is a name, a kernel is a program for it, one table joins them, and a step costs its launches.
#
# Next: [3 · Low-level API](3_low_level.ipynb). The whole level: [02_kernels](../02_kernels.ipynb), where launches are planned
# once, one loop serves all elementwise ops, and the net is trained.

# %%
trail.take_along()

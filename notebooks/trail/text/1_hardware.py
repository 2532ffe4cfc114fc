# %% [markdown]
# # Trail 1 · Hardware
#
# **In this notebook you write machine instructions that train a model. The result equals that of a framework's `fit`,
# bit for bit.**
#
# TensorFlow and PyTorch are frameworks for deep learning. Whatever a framework does, your processor does it with
# machine instructions.
#
# This is the trail: five notebooks of half an hour each, one for each level of a small framework, `levels`. You need
# Python, a little NumPy and the idea of a derivative. Some short functions are yours to write. If you leave one empty,
# the course uses its own.
#
# **Shift+Enter** runs a cell and goes on to the next one. Run every cell, from top to bottom.

# %% tags=["hide-input"]
# setup: run me
from course import build, figures, tasks
from course.reader import checks, trail

build.watch("trail/1_hardware")
figures.you_are_here(1)

# %% [markdown]
# ## A surprise to begin with (5 min)
#
# We add the seven numbers 0.1, 0.2, … 0.7 in each of their 5,040 orders. The next cell asks what you expect. Run it,
# and commit to an answer. The cells after it show the result, and explain it.

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "1-orders",
    "How many different sums do the 5,040 orders give?",
    choices=["1", "4", "about 100", "more than 1,000"],
)

# %%
from itertools import permutations

sums = set()
for numbers in permutations([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]):
    total = 0.0
    for number in numbers:
        total = total + number
    sums.add(total)
print(*sorted(sums))

# %%
checks.answer_to("1-orders")

# %% [markdown]
# None of them is a mistake. All five levels of this course add in the same order, so they will agree to the last bit.

# %% [markdown]
# ## The line (6 min)
#
# Here are four hundred points. Each has two inputs, x1 and x2, and one answer, y, which is `2·x1 - 3·x2 + 3` plus
# random noise. We look for the 2, the -3 and the 3.

# %%
task = tasks.linear()
figures.scatter_inputs(task)

# %% [markdown]
# The **model** is `x1·w1 + x2·w2 + b`. Its **weights** w1 and w2 and its **bias** b start at a guess. Training repeats
# this recipe. One round is a **step**:
#
# ```
# take ten points               a batch
# z = x1·w1 + x2·w2 + b         the prediction for each point
# e = z - y                     its error
# the mean of e·e               the loss: how wrong the model is
# w = w - rate · slope          each weight moves against its slope
# ```
#
# The **slope** of the loss in w1 says how fast the loss grows when w1 grows. It is also called a **gradient**. The
# **rate** is a small number, so that no step goes too far.
#
# ### Your turn: the slope
#
# A point is one row of a batch of n rows. Its part of the loss is e·e/n. If e grows by a tiny t, this part grows by
# about 2·e/n · t. So 2·e/n is the slope in e. We call this slope `de`. If w1 grows by a tiny t, e grows by x1 · t. When
# one change causes the next, their slopes are multiplied. This is the **chain rule**:
#
# ```
# w1 ─── e grows x1 times as much ───► e ─── the loss grows de times as much ───► loss
#                            slope of the loss in w1:  x1 · de
# ```
#
# Likewise, the slope in w2 is x2·de. The slope in b is `de` itself. Your function gets g = 1/n. Write `de` as
# `g * error + g * error`, as all five levels do. (`2 * g * error` gives the same bits.)


# %%
#| blank line_slopes
def line_slopes(error, row, g):
    """Return what a row adds to the slopes: a list for the weights, a number for b."""
    ...  # return a pair: a list with value * de for each value of the row, and de


# %% [markdown]
# <details><summary>Hint</summary>Compute <code>de</code> first, from g and the error. The slope of a weight is its input times
# <code>de</code>.</details>
# <details><summary>Solution</summary>
#
# ```python
# def line_slopes(error, row, g):
#     de = g * error + g * error
#     return [value * de for value in row], de
# ```
# </details>
#
# ## One instruction (9 min)
#
# A processor knows no lists. A **register** holds one number inside the processor. A program **loads** a number from
# memory into a register, does **arithmetic** on registers, and **stores** a register back to memory.
#
# We write Python that writes such a program, line by line. An object of the class `Register` stands for a register,
# which *will hold* a number when the program runs. `*` between two of them does not multiply yet. It writes an
# instruction. (The language is [LLVM](https://llvm.org/docs/LangRef.html)'s. A `double` is a number of 64 bits.)

# %%
lines = []  # the program so far


class Register:
    def __init__(self, text):
        self.name = f"%v{len(lines)}"
        lines.append(f"{self.name} = {text}")

    def __add__(self, other):
        return arithmetic("fadd", self, other)

    def __mul__(self, other):
        return arithmetic("fmul", self, other)


def arithmetic(instruction, x, y):
    return Register(f"{instruction} double {x.name}, {y.name}")


# %% [markdown]
# `load` and `store` write their instructions. `run` lets LLVM turn all lines into bytes for this processor. Then it
# runs these bytes on arrays.

# %% tags=["hide-input"]
# load, store and run: you may skip how they work
import ctypes

import numpy as np

from levels.support.machine import machine_code


def load(array):
    return Register(f"load double, ptr {array}")


def store(value, array):
    lines.append(f"store double {value.name}, ptr {array}")


def run(*arrays):
    names = ", ".join(f"ptr %{name}" for name in "xyz"[: len(arrays)])
    text = [f"define void @program({names}) {{", *lines, "ret void", "}"]
    engine, address = machine_code("\n".join(text))
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(arrays))(address)
    call(*(array.ctypes.data for array in arrays))
    lines.clear()


# %% [markdown]
# This program loads a number v from `%x`, and stores v·v + v at `%y`:

# %%
v = load("%x")
store(v * v + v, "%y")
print("\n".join(lines))

x, y = np.array([3.0]), np.zeros(1)
run(x, y)
print("3·3 + 3 =", y[0])

# %% [markdown]
# These four instructions did that. The recipe also needs a difference, z - y. LLVM's instruction for it is `fsub`.
# Write `subtract` with one call of `arithmetic`, as `__add__` and `__mul__` do.


# %%
#| blank subtract
def subtract(x, y):
    """Write the instruction for x - y, and return the Register of its result."""
    ...  # one call of `arithmetic`, as in `+` and `*`


# %% [markdown]
# <details><summary>Hint</summary><code>arithmetic</code> takes the name of the instruction first, then x and y.</details>
# <details><summary>Solution</summary>
#
# ```python
# def subtract(x, y):
#     return arithmetic("fsub", x, y)
# ```
# </details>
#
# ## The line, in instructions (15 min)
#
# The `Assembler` of `levels` writes instructions as you did. It also knows arrays, loops and sums. This is all that you
# need:
#
# | in Python | in the program |
# |---|---|
# | `a = Assembler("the_line", "f8")` | a new program, for numbers of 8 bytes |
# | `x = a.array("x", "rows", 2)` | an array of 2 columns; the call will say how many `"rows"` it has |
# | `p = a.array("p", "batch", rows_of="rows")` | an array of row numbers, all below `"rows"` |
# | `a.number("rate")`, `a.count("batch")` | a number that the call hands over; a size as a number |
# | `with a.loop("batch") as r:` | a loop: r counts from 0 |
# | `v = a.load(x, i, 0)`, `a.store(v, x, i, 0)` | a number from memory, and back |
# | `v * w`, `v + w`, `v - w`, `v / w` | instructions |
# | `s = a.sum()`, `s += v`, `s.total()` | a running sum, which starts at 0 |
# | `a.assemble()` | the end: a program, which is called with its arrays and numbers by name |
#
# Our first program only measures the loss of each batch. A batch is a list of row numbers. So a row is found in two
# steps: load its number, then load what is in that row.

# %%
from levels import hardware


def write_program():
    a = hardware.Assembler("the_line", "f8")
    x, y = a.array("x", "rows", 2), a.array("y", "rows", 1)
    w, b = a.array("w", 2, 1), a.array("b", 1, 1)
    batches = a.array("batches", "steps", "batch", rows_of="rows")
    # n: how many rows in a batch
    losses, n = a.array("losses", "steps"), a.count("batch")
    with a.loop("steps") as step:
        loss = a.sum()
        with a.loop("batch") as r:
            # load the number of a row, then its inputs
            i = a.load(batches, step, r)
            row = [a.load(x, i, 0), a.load(x, i, 1)]
            # predict, and take the error
            z = row[0] * a.load(w, 0, 0) + row[1] * a.load(w, 1, 0) + a.load(b, 0, 0)
            error = z - a.load(y, i, 0)
            loss += error * error
        # store the mean of the squares
        a.store(loss.total() / n, losses, step)
    return a.assemble()


program = write_program()

# %% [markdown]
# Nothing has been computed yet: Python has only written a program. `pool()` returns the devices of this computer by
# name, and `cpu:0` is its CPU. `put` copies an array into the device's memory, and `alloc` makes an empty one. Then one
# call runs the program for all 8,000 batches:

# %%
cpu = hardware.pool()["cpu:0"]
x, y, batches, w, b = map(cpu.put, (task.x, task.y, task.batches, *task.weights))
losses = cpu.alloc((8000,), "f8")
program(x=x, y=y, w=w, b=b, batches=batches, losses=losses)
print(f"first loss {losses.numpy()[0]:.1f}, last {losses.numpy()[-1]:.1f}")

# %% [markdown]
# The batches differ, and so do their losses, but no weight has moved. So write how a weight moves:


# %%
#| blank descend
def descend(w, slope, learning_rate):
    """The weight w after one step against its slope."""
    ...  # one line


# %% [markdown]
# <details><summary>Hint</summary>Where the slope is positive, w must become smaller. How far? The rate times the slope.</details>
# <details><summary>Solution</summary>
#
# ```python
# def descend(w, slope, learning_rate):
#     return w - learning_rate * slope
# ```
# </details>
#
# The second version learns. Three more sums collect the slopes. Then the weights and the bias move. The new lines have
# the comment `new`:


# %%
def write_program():
    a = hardware.Assembler("the_line", "f8")
    x, y = a.array("x", "rows", 2), a.array("y", "rows", 1)
    w, b = a.array("w", 2, 1), a.array("b", 1, 1)
    batches = a.array("batches", "steps", "batch", rows_of="rows")
    # n: how many rows in a batch
    losses, n = a.array("losses", "steps"), a.count("batch")
    rate = a.number("rate")  # new
    with a.loop("steps") as step:
        loss = a.sum()
        dw, db = [a.sum(), a.sum()], a.sum()  # new: the slopes
        with a.loop("batch") as r:
            # load the number of a row, then its inputs
            i = a.load(batches, step, r)
            row = [a.load(x, i, 0), a.load(x, i, 1)]
            # predict, and take the error
            z = row[0] * a.load(w, 0, 0) + row[1] * a.load(w, 1, 0) + a.load(b, 0, 0)
            error = z - a.load(y, i, 0)
            loss += error * error
            slopes, de = line_slopes(error, row, 1.0 / n)  # new, as the next three
            dw[0] += slopes[0]
            dw[1] += slopes[1]
            db += de
        # store the mean of the squares
        a.store(loss.total() / n, losses, step)
        for k in (0, 1):  # new, as the next two
            a.store(descend(a.load(w, k, 0), dw[k].total(), rate), w, k, 0)
        a.store(descend(a.load(b, 0, 0), db.total(), rate), b, 0, 0)
    return a.assemble()


# %% [markdown]
# Which instructions did your `descend` write?

# %%
program = write_program()
for line in program.text.split("\n"):
    if "fsub" in line or ("fmul" in line and "rate" in line):
        print(line)

# %% [markdown]
# The first line is z - y. The others are yours, a pair for each weight and for the bias: the rate times the slope, and
# the difference. The machine never calls `descend`. Python called it, to write these lines. Now train, in one call:

# %%
w, b = map(cpu.put, task.weights)
program(x=x, y=y, w=w, b=b, batches=batches, losses=losses, rate=task.learning_rate)
first, last = losses.numpy()[[0, -1]]
print(f"first loss {first:.1f}\nlast loss {last:.4g} ({last.hex()})")
print("w", w.numpy().ravel().round(4), " b", b.numpy().ravel().round(4))
figures.before_and_after(task, losses.numpy(), w.numpy(), b.numpy())

# %% [markdown]
# The program has found nearly 2, -3 and 3. The loss falls, but not to 0, because of the noise in the answers. (Grey is
# the loss of each batch, and blue a mean of fifty. The scale is logarithmic: equal distances are equal factors.) The
# last loss, 9.209, is that of one batch, and lies above the mean.
#
# The brackets show the last loss again, in **hexadecimal**: base 16, with the digits 0 to f, and `p+3` for "times 2³".
# This form rounds nothing. A test with a tolerance lets small mistakes pass. A test for equal bits does not. So every
# level must end on this number. On level 5, one call trains a model: `fit`. Does it end on this number, too?

# %%
from levels.high_level import Sequential
from levels.mid_level import SGD, Dataset, Dense

model = Sequential([Dense(1, dtype="float64")])
model.build((400, 2), "float64")
model.set_weights(task.weights)
model.compile(SGD(task.learning_rate), "mse")
fit = model.fit(Dataset.from_batches(task.x, task.y, task.batches), verbose=0)
print(f"last loss {fit.losses[-1]:.4g} ({fit.losses[-1].hex()})")

# %% [markdown]
# It does. What `fit` does, your instructions do.
#
# You can now derive the slopes of a loss, write a program in machine instructions, and train a model with it.
#
# **A good place to stop.** Your instructions train the line as `fit` does, bit for bit.
#
# The last cell counts the functions that you have written; it calls them blanks. Next: [2 · Kernels](2_kernels.ipynb).
# The longer notebook of this level is [01_hardware](../01_hardware.ipynb). There you build the assembler, and train a
# net.

# %%
trail.take_along()

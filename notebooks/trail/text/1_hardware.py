# %% [markdown]
# # Trail 1 · Hardware
#
# **In this notebook you write machine instructions that train a model. Its last loss is that of `model.fit`, bit for bit.**
#
# Whatever a framework does, your processor does it with machine instructions. Once you have written some yourself, you know what
# every level above has to produce.
#
# This is the trail: five notebooks of half an hour each, one for each level of a small framework, `levels`. You need Python, a little
# NumPy and the idea of a derivative. Some short functions are yours to write. Where you leave one as it is, the course uses its own.
#
# **Shift+Enter** runs a cell and goes on to the next one. Run every cell, from top to bottom.

# %% tags=["hide-input"]
# setup: run me
from course import build, figures, tasks
from course.practice import checks, trail

build.watch("trail/1_hardware")
figures.you_are_here(1)

# %% [markdown]
# ## A surprise to begin with (5 min)
#
# We add the seven numbers 0.1, 0.2, … 0.7 in each of their 5,040 orders. The next cell asks what you expect. Run it, choose and commit.
# The cell after it shows the result, and the one after that says whether you were right, and why.

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
# Four sums, and none of them is a mistake. The loop decides the order, and with it the last digits. In this course you write the
# loops. All five levels add in the same order, so they will agree to the last bit.

# %% [markdown]
# ## The line (6 min)
#
# Here are four hundred points. Each has two inputs, x1 and x2, and one answer, y, which was made as `2·x1 - 3·x2 + 3` plus random
# noise. We pretend not to know the 2, the -3 and the 3, and want to find them.

# %%
task = tasks.linear()
figures.scatter_inputs(task)

# %% [markdown]
# The **model** is `x1·w1 + x2·w2 + b`. Its **weights** w1 and w2 and its **bias** b start at a guess. Training repeats this recipe.
# One round is a **step**:
#
# ```
# take ten points               a batch
# z = x1·w1 + x2·w2 + b         the prediction for each point
# e = z - y                     its error
# the mean of e·e               the loss: how wrong the model is
# w = w - rate · slope          each weight moves against its slope
# ```
#
# The **slope** of the loss in w1 says how fast the loss grows when w1 grows. It is also called a **gradient**. The **rate** is a small
# number, so that no step goes too far.
#
# ### Your turn: the slope
#
# Take one point, a row of a batch of n. Its part of the loss is e·e/n. When e grows a little, this part grows 2·e/n times as much as e.
# That is the slope in e, `de`. When w1 grows a little, e grows x1 times as much. Slopes along a chain are multiplied (the **chain
# rule**):
#
# ```
# w1 ─── e grows x1 times as much ───► e ─── the loss grows de times as much ───► loss
#                            slope of the loss in w1:  x1 · de
# ```
#
# Likewise, the slope in w2 is x2·de. The slope in b is `de` itself. Your function gets g = 1/n. Write
# `de` as `g * error + g * error`. (Dividing by n sometimes rounds to another last digit, and all five levels must round alike.)


# %%
#| blank line_slopes
def line_slopes(error, row, g):
    """What one row adds to the slopes of (Σ error·error)·g, the loss: a list for the weights, a number for the bias."""
    ...  # a list, with one number for each number of the row; and `de`


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
# A processor knows nothing of lists. A program **loads** a number from memory into a **register**, does **arithmetic** between
# registers, and **stores** a register back to memory. We write Python that writes such a program, line by line. A `Register`
# *will hold* a number when the program runs. `*` between two of them does not multiply yet: it writes an instruction. (The
# language is [LLVM](https://llvm.org/docs/LangRef.html)'s. A `double` is a number of 64 bits.)

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
# `load` and `store` write their instructions. `run` lets LLVM turn all lines into bytes for this processor,
# and calls these bytes on arrays.

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
    engine, address = machine_code("\n".join([f"define void @program({names}) {{", *lines, "ret void", "}"]))
    ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(arrays))(address)(*(array.ctypes.data for array in arrays))
    lines.clear()


# %% [markdown]
# This program computes v·v + v:

# %%
v = load("%x")
store(v * v + v, "%y")
print("\n".join(lines))

x, y = np.array([3.0]), np.zeros(1)
run(x, y)
print("3·3 + 3 =", y[0])

# %% [markdown]
# These four instructions did that. The recipe also needs a difference, z - y. LLVM's instruction for it is `fsub`. Write `subtract` with
# one call of `arithmetic`, as `__add__` and `__mul__` do.


# %%
#| blank subtract
def subtract(x, y):
    """Write the instruction that takes y from x, and give back its value."""
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
# ## The line, in instructions (14 min)
#
# The `Assembler` of `levels` writes instructions as you did, and also knows arrays, loops and sums. Our first version only measures the
# loss of each batch. `a.array` declares an array that the program gets when it is called. A size such as 2 is fixed; a size with a name
# is read off the array.

# %%
from levels import hardware


def write_program():
    a = hardware.Assembler("the_line", "f8")  # f8: numbers of 8 bytes
    x, y = a.array("x", "rows", 2), a.array("y", "rows", 1)
    w, b = a.array("w", 2, 1), a.array("b", 1, 1)
    # an entry of `batches` is the number of a row
    batches = a.array("batches", "steps", "batch", rows_of="rows")
    losses, n = a.array("losses", "steps"), a.count("batch")  # n: how many rows in a batch
    with a.loop("steps") as step:
        loss = a.sum()  # starts at 0, and is kept while the inner loop runs
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
# Nothing has been computed yet: Python has only written a program. Put the arrays into the memory of a device, here the CPU. One call runs
# the program for all 8,000 batches:

# %%
cpu = hardware.pool()["cpu:0"]
x, y, batches, w, b = map(cpu.put, (task.x, task.y, task.batches, *task.weights))
losses = cpu.alloc((8000,), "f8")
program(x=x, y=y, w=w, b=b, batches=batches, losses=losses)
print(f"first loss {losses.numpy()[0]:.1f}, last {losses.numpy()[-1]:.1f}")

# %% [markdown]
# The batches differ, and so do their losses, but no weight has moved. So write the step itself:


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
# The second version learns. Three more sums collect the slopes, and then the weights and the bias move. (`a.number` declares a number
# in the same way.)


# %%
def write_program():
    a = hardware.Assembler("the_line", "f8")  # f8: numbers of 8 bytes
    x, y = a.array("x", "rows", 2), a.array("y", "rows", 1)
    w, b = a.array("w", 2, 1), a.array("b", 1, 1)
    # an entry of `batches` is the number of a row
    batches = a.array("batches", "steps", "batch", rows_of="rows")
    losses, n = a.array("losses", "steps"), a.count("batch")  # n: how many rows in a batch
    rate = a.number("rate")  # new
    with a.loop("steps") as step:
        loss = a.sum()  # starts at 0, and is kept while the inner loop runs
        dw, db = [a.sum(), a.sum()], a.sum()  # new: the slopes of the weights and of the bias
        with a.loop("batch") as r:
            # load the number of a row, then its inputs
            i = a.load(batches, step, r)
            row = [a.load(x, i, 0), a.load(x, i, 1)]
            # predict, and take the error
            z = row[0] * a.load(w, 0, 0) + row[1] * a.load(w, 1, 0) + a.load(b, 0, 0)
            error = z - a.load(y, i, 0)
            loss += error * error
            # new: your line_slopes
            slopes, de = line_slopes(error, row, 1.0 / n)
            dw[0] += slopes[0]
            dw[1] += slopes[1]
            db += de
        # store the mean of the squares
        a.store(loss.total() / n, losses, step)
        # new: your descend
        for k in (0, 1):
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
# The first line is z - y. The others are yours, a pair for each weight and for the bias: the rate times the slope, and the difference. The
# machine never calls `descend`. Python called it, to write these lines. Now train, in one call:

# %%
w, b = map(cpu.put, task.weights)
program(x=x, y=y, w=w, b=b, batches=batches, losses=losses, rate=task.learning_rate)
first, last = losses.numpy()[[0, -1]]
print(f"first loss {first:.1f}\nlast loss {last:.4g} ({last.hex()})")
print("w", w.numpy().ravel().round(4), " b", b.numpy().ravel().round(4))
figures.before_and_after(task, losses.numpy(), w.numpy(), b.numpy())

# %% [markdown]
# The program has found nearly 2, -3 and 3. The loss falls (grey is each batch, blue a mean of fifty), but not to 0, because of the noise in
# the answers. The last loss, 9.209, is that of one batch, and lies above the mean.
#
# The brackets show the last loss again, in **hexadecimal**: base 16, with the digits 0 to f, and `p+3` for "times 2³". Here nothing is
# rounded, and you see every bit. A test with a tolerance lets small mistakes through, and a test for equal bits does not. So every level
# must end on this number. On level 5, one call trains a model: `fit`. Does it end there, too?

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
# It does, to the last bit. What `fit` does, your instructions do.
#
# You can now derive the slopes of a loss, write a program in machine instructions, and train a model with it.
#
# **A good place to stop.** Your instructions train the line as `fit` does, bit for bit.
#
# Next: [2 · Kernels](2_kernels.ipynb). The longer notebook of this level is [01_hardware](../01_hardware.ipynb): there you build the
# assembler, guard the memory and train a net.

# %%
trail.take_along()

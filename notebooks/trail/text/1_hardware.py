# %% [markdown]
# # Trail 1 · Hardware
#
# **In half an hour, instructions that you wrote train a model, and end on the very number that `model.fit` ends on.**
#
# This is the trail: the whole course in two hours, ten cells a level, five notebooks. Some functions are yours to write. Leave one
# as it is, and the course's own goes on. What you write goes along: each level has a notebook of its own for later, and
# finds it there.
#
# **Shift+Enter** runs a cell and goes on to the next one. A grey line with three dots is a cell, too, folded: it runs like the
# others, and a click opens it.

# %%
from course import build, figures, tasks
from course.practice import checks, trail

build.watch("trail/1_hardware")
figures.you_are_here(1)

# %% [markdown]
# ## A surprise to begin with (3 min)
#
# Here are 2²⁵ ones, as 32-bit numbers. `sum` adds them up. So does `cumsum`: its last entry is the sum of everything. What do
# you expect? Run the grey line, which asks you; choose, commit, then run the next cell.

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "`x` holds 33,554,432 ones in float32. What do `x.sum()` and `x.cumsum()[-1]` give?",
    choices=["both 33554432", "33554432 and 16777216", "16777216 and 33554432", "neither is exact"],
    answer="33554432 and 16777216",
    because="`cumsum` gets stuck at 16777216: in float32, 16777216 + 1 is 16777216. `sum` adds blocks of numbers first, whose "
    "sums are small, and then the blocks: it never adds a 1 to so large a number.",
)

# %%
import numpy as np

x = np.ones(2**25, "f")
print(f"sum    {x.sum():.0f}")
print(f"cumsum {x.cumsum()[-1]:.0f}")

# %% [markdown]
# The same terms, another order, another answer. So whoever writes the loop decides the answer. In this course you write the
# loops, and five programs will agree to the last bit.

# %% [markdown]
# ## The line (6 min)
#
# Four hundred points. Each has two inputs and one answer `y`, made as `2·x1 - 3·x2 + 3` plus noise. We pretend not to know
# the 2, the -3 and the 3.

# %%
task = tasks.linear()
print("x", task.x.shape, " y", task.y.shape)
print("start: w", task.weights[0].ravel(), " b", task.weights[1].ravel())

# %% [markdown]
# Guess weights `w` and `b`. Take ten rows. For each, compute a **prediction** `x1·w1 + x2·w2 + b` and its **error**, the
# prediction minus y. The **loss** is the mean of error². Move each weight a little against its slope, its **gradient**. Take
# the next ten rows. One such round is a **step**.
#
# ### Your turn: the slope
#
# Take one row. Its part of the loss is e·e/n, and where e grows by a little, that grows 2·e/n times as much. That is its slope,
# `de`. Write it as `g * e + g * e`, with g = 1/n. (A division by n would round to another last digit now and then. All five
# levels round in this one way, so that their numbers can be compared to the last bit.) And where w1 grows by a
# little, e grows x1 times as much. So the row adds x1·de to the slope in w1, x2·de to that in w2, and de to that in b.


# %%
#| blank line_slopes
def line_slopes(error, row, g):
    """What one row adds to the slopes of (Σ error·error)·g, with g = 1/n: a list for the weights, one for the bias."""
    ...  # a list, one number for each number of the row, and `de`


# %% [markdown]
# <details><summary>Hint</summary>First <code>de</code>, from g and the error. What a weight gets is its input times <code>de</code>.</details>
# <details><summary>Solution</summary>
#
# ```python
# def line_slopes(error, row, g):
#     de = g * error + g * error
#     return [value * de for value in row], de
# ```
# </details>
#
# By hand, for an error of 2 among ten rows: de is 0.4. And with inputs 1 and 5:

# %%
line_slopes(2.0, [1.0, 5.0], 0.1)

# %% [markdown]
# ## One instruction (10 min)
#
# Your processor knows nothing of lists. A program **loads** a number from memory into a **register**, does **arithmetic**
# between registers, and **stores** a register back. So let us write Python that writes such a program, line by line. A `Register`
# *will hold* a number when the program runs. To multiply two of them multiplies nothing: it writes the
# instruction that will. (The language is [LLVM](https://llvm.org/docs/LangRef.html)'s, `double` is a float64.)

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
# Folded: `load` and `store` write their instructions, and `run` puts a frame around the lines, lets LLVM make bytes for this very
# processor, and calls them on arrays. So this computes v·v + v:

# %% tags=["hide-input"]
import ctypes

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


# %%
v = load("%x")
store(v * v + v, "%y")
print("\n".join(lines))

x, y = np.array([3.0]), np.zeros(1)
run(x, y)
print("3·3 + 3 =", y[0])

# %% [markdown]
# Twelve, by three instructions of your own, and a fourth that stores it. An error is a difference. So what is missing is an
# instruction that subtracts. LLVM calls it `fsub`.


# %%
#| blank subtract
def subtract(x, y):
    """Write the instruction that takes y from x, and give back its value."""
    ...  # one call of `arithmetic`, as in `+` and `*`


# %% [markdown]
# <details><summary>Hint</summary><code>arithmetic</code> writes an instruction, by its name.</details>
# <details><summary>Solution</summary>
#
# ```python
# def subtract(x, y):
#     return arithmetic("fsub", x, y)
# ```
# </details>

# %%
store(subtract(load("%x"), load("%y")), "%z")
x, y, z = np.array([5.0]), np.array([3.0]), np.zeros(1)
run(x, y, z)
print("5 - 3 =", z[0])

# %% [markdown]
# ## The line, in instructions (16 min)
#
# `levels` is the package that the course builds, and its `Assembler` is those lines grown up: its arrays know their shapes,
# its loops jump, and a **sum** is a place that outlives the turns of a loop. One piece is left: the step itself.


# %%
#| blank descend
def descend(w, slope, learning_rate):
    """The weight w after one step against its slope."""
    ...  # one line


# %% [markdown]
# <details><summary>Hint</summary>Against the slope: where the slope is positive, w becomes smaller. How far? The rate times the
# slope.</details>
# <details><summary>Solution</summary>
#
# ```python
# def descend(w, slope, learning_rate):
#     return w - learning_rate * slope
# ```
# </details>
#
# Now the program. An inner loop goes over the ten rows of a batch and adds up what each gives; an outer one goes over the
# steps. Your `line_slopes` and `descend` stand in it, but they compute nothing here: they are handed values, and *write*.
# (`"rows"`, `"batch"` and `"steps"` are sizes that the call will tell. `a.count` is such a size as a number, `a.number` a number that
# the call hands over.)

# %%
from levels import hardware

a = hardware.Assembler("the_line", "f8")
x, y, w, b = a.array("x", "rows", 2), a.array("y", "rows", 1), a.array("w", 2, 1), a.array("b", 1, 1)
batches, losses = a.array("batches", "steps", "batch", rows_of="rows"), a.array("losses", "steps")
n, rate = a.count("batch"), a.number("rate")
with a.loop("steps") as step:
    loss, dw, db = a.sum(), [a.sum(), a.sum()], a.sum()
    with a.loop("batch") as r:
        i = a.load(batches, step, r)
        row = [a.load(x, i, 0), a.load(x, i, 1)]
        prediction = 0.0 + row[0] * a.load(w, 0, 0) + row[1] * a.load(w, 1, 0) + a.load(b, 0, 0)
        error = prediction - a.load(y, i, 0)
        loss += error * error
        slopes, de = line_slopes(error, row, 1.0 / n)
        for k in (0, 1):
            dw[k] += slopes[k]
        db += de
    a.store(loss.total() / n, losses, step)
    for k in (0, 1):
        a.store(descend(a.load(w, k, 0), dw[k].total(), rate), w, k, 0)
    a.store(descend(a.load(b, 0, 0), db.total(), rate), b, 0, 0)
program = a.assemble()

# %% [markdown]
# Nothing has been trained yet. Python's part is over: the program is written. Put the numbers into the memory of a device, and
# call it once, for 8,000 steps.

# %%
cpu = hardware.pool()["cpu:0"]
w, b, losses = cpu.put(task.weights[0]), cpu.put(task.weights[1]), cpu.alloc((8000,), "f8")
data = dict(x=cpu.put(task.x), y=cpu.put(task.y), batches=cpu.put(task.batches))
program(w=w, b=b, losses=losses, rate=task.learning_rate, **data)
print("w", w.numpy().ravel().round(4), " b", b.numpy().ravel().round(4))
print(f"last loss {losses.numpy()[-1]:.4g} ({float(losses.numpy()[-1]).hex()})")

# %% [markdown]
# Two, minus three and three, nearly. The loss stands there twice: rounded, and in hexadecimal, where no digit is hidden. (It does
# not come to 0, for the answers hold noise, which no line can learn.) Four storeys above, the
# same model trains in Keras' four lines:

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "`model.fit` starts from the same weights and takes the same batches. How many of those digits will its last loss share?",
    choices=["three or four", "all but the last one or two", "all of them"],
    answer="all of them",
    because="It does the same operations in the same order, and the standard IEEE 754 leaves no choice how an addition or a "
    "product is rounded. So there is one answer.",
)

# %%
from levels.high_level import Sequential
from levels.mid_level import SGD, Dataset, Dense

model = Sequential([Dense(1, dtype="float64")])
model.build((400, 2), "float64")
model.set_weights(task.weights)
model.compile(SGD(task.learning_rate), "mse")
fit = model.fit(Dataset.from_batches(task.x, task.y, task.batches), verbose=0)
print(f"last loss {fit.losses[-1]:.4g} ({float(fit.losses[-1]).hex()})")

# %% [markdown]
# The same number, to the last bit. What `fit` does, your instructions do. The next four notebooks climb from the one to the
# other.
#
# **A good place to stop.** Instructions that you wrote train a line, and end on `fit`'s last bit.
#
# Next: [2 · Kernels](2_kernels.ipynb). The whole level: [01_hardware](../01_hardware.ipynb), where the assembler is built, memory
# is guarded and a net is trained.

# %%
trail.take_along()

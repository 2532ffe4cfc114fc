# %% [markdown]
# # Trail 3 · Low-level API
#
# **In this notebook you keep a list of every operation, read it backwards, and so get the gradient of every weight.**
#
# In notebook 2, the gradients of **the line**, the model `x1·w1 + x2·w2 + b`, were derived by hand. For a model with a thousand weights
# nobody wants to do that. Here you build the part of a framework that finds them.

# %% tags=["hide-input"]
# setup: run me
from course import build, figures, tasks
from course.reader import checks, trail

build.watch("trail/3_low_level")
figures.you_are_here(3)

# %% [markdown]
# ## A surprise to begin with (5 min)
#
# The derivative of x³ at 2 is 12. Can one find it without a formula and without a limit? In Python, `1e-20j` is an
# imaginary number: 1e-20 times `j`, a number whose square is -1. (We use it only here.)


# %%
def f(x):
    return x**3


# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "03-imaginary",
    "What is `f(2 + 1e-20j).imag / 1e-20`?",
    choices=[
        "0, since 1e-20 is lost beside 2",
        "about 12, as with a small step",
        "12, to the last digit",
    ],
)

# %%
f(2 + 1e-20j).imag / 1e-20

# %%
checks.answer_to("03-imaginary")

# %% [markdown]
# We called `f` with another *kind* of number, and this number carried the derivative along. Our own kind of number will
# write each operation down in a list. Afterwards we read the list backwards.

# %% [markdown]
# ## One door (4 min)
#
# When Python sees `x * w`, it calls `__mul__` of x. In our class, every operator calls one function, with the name of the op. We call
# this function the **door**, because every operation has to go through it.

# %%
import numpy as np

from levels import hardware
from levels.kernels import launch
from levels.low_level import constant

cpu, notes = hardware.pool()["cpu:0"], []


class Number:
    def __init__(self, buffer):
        self.buffer = buffer

    def __add__(self, other):
        return door("add", self, other)

    def __sub__(self, other):
        return door("subtract", self, other)

    def __mul__(self, other):
        return door("multiply", self, other)


# %% [markdown]
# So the door is the place to take notes. Such a list of notes is called a **tape**:


# %%
def door(op, *inputs):
    y = Number(launch(op, None, *[x.buffer for x in inputs]))
    notes.append((op, inputs, y))
    return y


x, w, b, y = (Number(cpu.put(np.array(value))) for value in (3.0, 2.0, 1.0, 5.0))
error = x * w + b - y
loss = error * error
print(f"loss {loss.buffer.numpy()};", *[op for op, _, _ in notes])

# %% [markdown]
# The error is 3·2 + 1 - 5 = 2, and its square is 4. By hand, the slope in w is 2·error·x = 12. Can we read it off the tape?

# %% [markdown]
# ## Read it backwards (12 min)
#
# Suppose we know how fast the loss changes with the *result* of an op. Call this number `dy`. How fast does the loss change with each
# *input*? For a sum, just as fast: `dy`. For a product, r = a·b, the result changes b times as fast as `a`. So, by the chain rule, `a`
# gets `dy * b`, and `b` gets `dy * a`.
#
# This table has one row per op, with one function per input:

# %%
minus_one = Number(cpu.put(np.array(-1.0)))
RULES = {
    "add": (lambda dy, a, b: dy, lambda dy, a, b: dy),
    "subtract": (lambda dy, a, b: dy, lambda dy, a, b: dy * minus_one),
    "multiply": (lambda dy, a, b: dy * b, lambda dy, a, b: dy * a),
}

# %% [markdown]
# The walk starts at the loss, whose gradient is 1, and goes through the notes from the last to the first. Each op gives
# each of its inputs a share of the gradient. Here is the simplest way to do that:


# %%
def give(gradients, x, share):
    gradients[x] = share


def walk(notes, loss, give):
    gradients = {loss: Number(cpu.put(np.array(1.0)))}
    for op, inputs, result in reversed(notes):
        for x, rule in zip(inputs, RULES[op]):
            give(gradients, x, rule(gradients[result], *inputs))
    return gradients


written = list(notes)  # a copy: the rules also go through the door, which adds notes
print("w gets", walk(written, loss, give)[w].buffer.numpy(), "and by hand it is 12.0")

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "03-half",
    "6 is half of 12. Where did the other half go?",
    choices=[
        "the rule of the product forgets a factor 2",
        "`error` is used twice",
        "`w` was read too early",
    ],
)

# %% [markdown]
# We walk once more, and print the shares that `error`, `b` and `w` get:

# %%
names = {error: "error", b: "b", w: "w"}


def give_and_tell(gradients, x, share):
    if x in names:
        print(f"{names[x]:5} gets {share.buffer.numpy()}")
    give(gradients, x, share)


half = walk(written, loss, give_and_tell)

# %%
checks.answer_to("03-half")

# %% [markdown]
# So write a better `give`. If `x` has no gradient yet, it gets the share as it is. If it has one, the share is added to it with `+`.


# %%
#| blank hand_on
def hand_on(gradients, x, share):
    """Give x its share of a gradient. It is added to what x already has."""
    ...  # 1 to 4 lines


# %% [markdown]
# <details><summary>Hint</summary><code>x in gradients</code> says whether <code>x</code> has a gradient already. Do not start from 0:
# <code>0 + share</code> would be an op of its own.</details>
# <details><summary>Solution</summary>
#
# ```python
# def hand_on(gradients, x, share):
#     gradients[x] = gradients[x] + share if x in gradients else share
# ```
# </details>

# %%
print("w gets", walk(written, loss, hand_on)[w].buffer.numpy())

# %% [markdown]
# It is 12. This is backpropagation ([Rumelhart, Hinton and Williams, 1986](https://doi.org/10.1038/323533a0)). One walk gives the
# gradient of every weight, whether there are two of them or a million.

# %% [markdown]
# ## The line, by tape (6 min)
#
# The `GradientTape` of `levels` does the same for **tensors**: arrays of any shape that go through the door. A `Variable` refers to a
# tensor, and `assign` makes it refer to another one. Instead of fourteen launches, you write the formula, and one line finds all
# gradients:

# %%
from levels.low_level import GradientTape, Variable, function, gather, reduce_mean

task = tasks.linear()
w, b = map(Variable, task.weights)


def step(rows, target):
    with GradientTape() as tape:
        error = rows @ w + b - target
        loss = reduce_mean(error * error)
    dw, db = tape.gradient(loss, [w, b])
    w.assign(w - task.learning_rate * dw)
    b.assign(b - task.learning_rate * db)
    return loss


# %% tags=["nbval-ignore-output"]
import timeit

x_, y_ = constant(task.x), constant(task.y)
ten = gather(x_, task.batches[0]), gather(y_, task.batches[0])
seconds = min(timeit.repeat(lambda: step(*ten), number=50, repeat=10)) / 50
print(f"op by op: {seconds * 1e6:.0f} µs per step")

# %% [markdown]
# This takes even longer than launches by hand, because every op is also written down and read again. But the door can do more:
#
# ```
#                   ┌─▶  run:    runs the op, and returns a tensor
# x * w ──▶ door ───┼─▶  tape:   writes the op down, and runs it
#                   └─▶  trace:  only writes the op down, and returns a symbol
# ```
#
# A **symbol** stands for a tensor whose numbers are not known yet, as a `Register` did in notebook 1. When you first use
# `function(step)`, it calls `step` once, with symbols. So it knows all ops before any of them runs. Then it writes one program for them,
# with the assembler of level 1. `function(step).over` takes all data, and the row numbers of each batch. It runs all 8,000 steps in one
# call. How much faster is that?

# %%
w.assign(constant(task.weights[0]))
b.assign(constant(task.weights[1]))
compiled = function(step)
losses = compiled.over(x_, y_, task.batches).numpy()
print(f"first loss {losses[0]:.1f}\nlast loss {losses[-1]:.4g} ({losses[-1].hex()})")

# %% tags=["nbval-ignore-output"]
seconds = min(timeit.repeat(lambda: compiled.over(x_, y_, task.batches), number=1))
print(f"compiled: {seconds / 8000 * 1e6:.2f} µs per step")

# %% [markdown]
# The bits are those of notebook 1, and a step takes a tiny part of the time. (This time does not contain the writing of
# the program.) These are its first lines of arithmetic:

# %%
((program, _),) = compiled.programs.values()
lines = program.program.text.splitlines()
print(*[line for line in lines if " = f" in line][:6], sep="\n")

# %% [markdown]
# They are the prediction and the error of a row. (In the second line, the matrix product starts its sum at 0.0.)
#
# When do kernels run? In a step that runs op by op, each op launches one. The compiled program launches none: it
# contains the formulas of the ops.
#
# You can now say how a framework finds gradients, read the rule of an op, and tell what a compiled step does differently.
#
# **A good place to stop.** Every op passes one door, where it is run, written down for the gradients, or written down to be compiled.
#
# Next: [4 · Mid-level API](4_mid_level.ipynb). The longer notebook of this level is [03_low_level](../03_low_level.ipynb): there the
# tape handles batches, and you follow how a step becomes a program.

# %%
trail.take_along()

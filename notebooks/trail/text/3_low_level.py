# %% [markdown]
# # Trail 3 · Low-level API
#
# **In this notebook every operation passes one door, and who stands there finds your gradients for you.**
#
# Machine code was the ground of our house, kernels the clay; here come the bricks, tensors.
#
# **The line** is four hundred points with two inputs and one answer, and a model `x1·w1 + x2·w2 + b` that learns from ten of them a
# step. In the notebook before, a step was fourteen launches: calls of small programs by the names of their ops. Half of
# them were the gradient, derived by hand. Nobody wants to do that for a net.

# %%
from course import build, figures, tasks
from course.practice import checks, trail

build.watch("trail/3_low_level")
figures.you_are_here(3)

# %% [markdown]
# ## A surprise to begin with (3 min)
#
# The derivative of x³ at 2 is 12. Here is a way to it without a formula and without a limit. (In Python, `1e-20j` is an imaginary
# number: 1e-20 times the root of -1.)


# %%
def f(x):
    return x**3


# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "What is `f(2 + 1e-20j).imag / 1e-20`?",
    choices=["0, since 1e-20 is lost beside 2", "about 12, as with a small step", "12, to the last digit"],
    answer="12, to the last digit",
    because="A complex number keeps its two parts apart, so 1e-20 is not lost beside 2. (2 + εi)³ = 8 + 12εi - 6ε² - ε³i: "
    "the slope stands beside ε.",
)

# %%
f(2 + 1e-20j).imag / 1e-20

# %% [markdown]
# We ran `f` on a slightly different *kind* of number, and that number carried a derivative along. `f` never knew. Ours will not carry
# it along. They will write down what happens, and we read it backwards.

# %% [markdown]
# ## One door (5 min)
#
# A type of our own: Python hands `x * w` to the type of `x`, and this one hands the *name* of the op on, to one function.

# %%
import numpy as np

from levels import hardware
from levels.kernels import launch

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
# All traffic passes this door. So whoever stands there can take notes. That is the whole idea of a **tape**:


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
# The error is 3·2 + 1 - 5 = 2, its square is 4. By hand, the slope in w is 2·error·x = 12. The tape should say so, too.

# %% [markdown]
# ## Read it backwards (11 min)
#
# Each op must know one thing. If the loss changes by `dy` for each unit of the op's *result*, by how much does it change for
# each unit of each *input*? Of a sum, both get dy as it is. Take a product, `y = a·b`. A unit of `a` moves `y` by `b`, and
# each unit of `y` moves the loss by `dy`; one after the other, factors multiply. So `a` gets `dy·b`, and `b` gets `dy·a`.
#
# One row an op, one function an input:

# %%
minus_one = Number(cpu.put(np.array(-1.0)))
RULES = {
    "add": (lambda dy, a, b: dy, lambda dy, a, b: dy),
    "subtract": (lambda dy, a, b: dy, lambda dy, a, b: dy * minus_one),
    "multiply": (lambda dy, a, b: dy * b, lambda dy, a, b: dy * a),
}

# %% [markdown]
# The walk starts at the loss, whose gradient is 1, and goes through the notes from the end. Each op hands its gradient on to its
# inputs. In its smallest form:


# %%
def give(gradients, x, share):
    gradients[x] = share


def walk(notes, loss, give):
    gradients = {loss: Number(cpu.put(np.array(1.0)))}
    for op, inputs, result in reversed(notes):
        for x, rule in zip(inputs, RULES[op]):
            give(gradients, x, rule(gradients[result], *inputs))
    return gradients


written = list(notes)  # the walk computes, too, and is written down as well
print("w gets", walk(written, loss, give)[w].buffer.numpy(), "and by hand it is 12.0")

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "6 is half of 12. Where did the other half go?",
    choices=["the rule of the product forgets a factor 2", "`error` is used twice", "`w` was read too early"],
    answer="`error` is used twice",
    because="Both factors of `error * error` are `error`. Each hands it a share, 2·1 = 2, and the second took the place of the "
    "first. What is used twice moves the loss twice, so the shares must be added.",
)

# %% [markdown]
# So write the line that gives `x` its share, and loses nothing that it had before. The first share stays as it is, and the next ones
# are added to it with `+`. (`constant` makes a tensor of `levels`: the check uses some.)

# %%
from levels.low_level import constant


# %%
#| blank hand_on
def hand_on(gradients, x, share):
    """Give x its share of a gradient. What x has from other ops already stays: shares are added up."""
    ...  # 1 to 4 lines


# %% [markdown]
# <details><summary>Hint</summary>Has <code>x</code> a gradient already? <code>x in gradients</code> says so. (<code>0 + share</code> would be an op, too.)</details>
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
# Twelve. That is backpropagation ([Rumelhart, Hinton and Williams, 1986](https://doi.org/10.1038/323533a0)): one walk gives the
# gradient of every weight, be there two or a million.

# %% [markdown]
# ## The line, by tape (9 min)
#
# The `GradientTape` of `levels` is this one, for arrays of any shape. A `Variable` is a tensor that can be assigned anew. Of the
# fourteen launches the formula is left, and one line for all gradients:

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
import time

x_, y_ = constant(task.x), constant(task.y)
began = time.perf_counter()
for i in task.batches[:800]:
    step(gather(x_, i), gather(y_, i))
print(f"op by op: {(time.perf_counter() - began) / 800 * 1e6:.0f} µs a step")

# %% [markdown]
# Dearer still: every op passes the door, is written down, and is read again. But look who may stand there:
#
# ```
#                     ┌──▶  run:    runs each op; a tensor comes back
#   x * w ──▶ door ───┼──▶  tape:   writes it down, and asks who stood there before
#                     └──▶  trace:  writes it down, runs nothing; a symbol comes back
# ```
#
# With the third, the whole step is known before anything runs, and can be compiled, by the assembler of level 1.
# `function` does that, and its `over` runs any number of steps in one call.

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "All 8,000 steps in one call: what changes, beside op by op?",
    choices=["the time, and the last bits of the loss", "the time alone", "neither: the ops are the same"],
    answer="the time alone",
    because="The program that it writes does the same operations in the same order. What is gone are the calls.",
)

# %%
w.assign(constant(task.weights[0]))
b.assign(constant(task.weights[1]))
losses = function(step).over(x_, y_, task.batches).numpy()
print(f"last loss {losses[-1]:.4g} ({float(losses[-1]).hex()})")

# %% tags=["nbval-ignore-output"]
program = function(step)
program.over(x_, y_, task.batches)
began = time.perf_counter()
program.over(x_, y_, task.batches)
print(f"compiled: {(time.perf_counter() - began) / 8000 * 1e6:.2f} µs a step")

# %% [markdown]
# The bits of the one program that was written by hand, on level 1, and nearly its speed: for it *is* nearly that program, written
# by a machine this time, from a formula and rules like yours.
#
# **A good place to stop.** Every op passes one door: who stands there runs it, writes it down for the way back, or writes it down
# to compile it.
#
# Next: [4 · Mid-level API](4_mid_level.ipynb). The whole level: [03_low_level](../03_low_level.ipynb), where the tape learns
# about batches, and a step is traced and becomes a program.

# %%
trail.take_along()

# %% [markdown]
# # 03 more · Second derivatives
#
# **In this notebook one tape records another, and you compute the gradient of a gradient.**
#
# It needs notebook 03: the tape, the walk back, the rules, and the nudge that checks them. It takes
# `levels_more/low_level/autodiff.py` apart. Nothing is exported here.

# %%
import math

import numpy as np

from course import build, figures
from course.reader import checks, exercises
from course.reader.figures import page
from levels_more.low_level import VJPS, GradientTape, Variable, apply, autodiff, constant, exp, grad, stop_gradient

build.watch("more/03_second_derivatives")
figures.you_are_here(3)

# %% [markdown]
# ## A tape inside a tape (6 min)
#
# The gradient rules consist of ops, and these pass the door like all others. So a second tape around the first records
# the walk back. From its records we get the second derivative.

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "03-second-derivatives-cube",
    "y = x³ at x = 3. What is the gradient of the gradient?",
    choices=["27", "18", "an error: gradients cannot be differentiated"],
)

# %%
x = Variable(np.array(3.0))
with GradientTape() as outer:
    with GradientTape() as inner:
        y = x * x * x
    first = inner.gradient(y, x)
print("first derivative", float(first), "second", float(outer.gradient(first, x)))

# %%
checks.answer_to("03-second-derivatives-cube")

# %% [markdown]
# What does each tape record? Each op of the inner program passes both tapes: the inner one records it and hands it on
# to the outer one. When the inner tape walks back, it no longer records. The outer one still does. Here are its
# `records`:

# %%
with GradientTape(persistent=True) as outer:
    with GradientTape() as inner:
        y = x * x * x
    first = inner.gradient(y, x)
[op for op, *_ in outer.records]

# %% [markdown]
# The first two ops compute y. The others are the walk back: the rule of `multiply` was applied for each factor.
#
# ## Stopping a gradient (1 min)
#
# Sometimes a value should count as a constant, whatever it was computed from. `stop_gradient` makes a copy, and the
# rule of this copy lets no gradient through:

# %%
page.source(autodiff.stop_gradient)

# %%
print("the rule of copy:", VJPS["copy"])
with GradientTape() as tape:
    y = x * stop_gradient(x)
print(float(tape.gradient(y, x)), "and not", float(2 * x))

# %% [markdown]
# ## Rules for the gradient ops (5 min)
#
# The rule of `relu` calls an op, `relu_grad`, which has its own kernel. For a second derivative this op needs a rule as
# well, and so do the gradient ops of sigmoid, clip and softmax. The table below says which of their two inputs should
# have a rule. Do they have one?

# %%
checked = {
    "relu_grad": (lambda dy, y: apply("relu_grad", dy, y), (True, False)),
    "clip_grad": (lambda dy, y: apply("clip_grad", dy, y, low=0.0, high=1.0), (True, False)),
    "sigmoid_grad": (lambda dy, y: apply("sigmoid_grad", dy, y), (True, True)),
    "softmax_grad": (lambda dy, y: apply("softmax_grad", dy, y), (True, True)),
    "log_softmax_grad": (lambda dy, y: apply("log_softmax_grad", dy, y), (True, True)),
}
for op, (_, which) in checked.items():
    print(f"{op:17}", tuple(rule is not None for rule in VJPS[op]) == which)

# %% [markdown]
# The first input of such an op is dy, and the second is whatever else the rule needs. If the second input has no rule,
# the slope does not change with it: the slope of relu is always 0 or 1. (At the kink relu has no slope at all. The
# table ignores that.)
#
# We check each rule with a nudge, as always:


# %%
def slope(function, arrays, k, nudge=1e-6):
    """d sum(function) / d arrays[k] by central differences."""
    result = np.zeros(arrays[k].shape)
    for index in np.ndindex(result.shape):
        ends = []
        for step in (nudge, -nudge):
            moved = [np.array(a) for a in arrays]
            moved[k][index] += step
            ends.append(function(*map(constant, moved)).numpy().sum())
        result[index] = (ends[0] - ends[1]) / (2 * nudge)
    return result


# %%
draw = np.random.default_rng(0)
arrays = draw.uniform(0.1, 0.9, (2, 3, 2))
weights = constant(draw.normal(size=(3, 2)))
for op, (function_of, which) in checked.items():
    inputs = [*map(constant, arrays)]
    sources = [k for k, has in enumerate(which) if has]
    with GradientTape() as tape:
        target = function_of(*inputs) * weights
    found = tape.gradient(target, [inputs[k] for k in sources])
    nudged = [slope(lambda dy, y, f=function_of: f(dy, y) * weights, arrays, k) for k in sources]
    print(f"{op:17}", all(np.abs(g.numpy() - n).max() < 1e-5 for g, n in zip(found, nudged, strict=True)))

# %% [markdown]
# ## A use: Newton's step (2 min)
#
# A gradient says which way is down, and the second derivative says how far to go. For a single number, Newton's step is
# x − f′/f″. Near the minimum, each step doubles the number of correct digits:

# %%
x = Variable(np.array(1.0))
for n in range(6):
    with GradientTape() as outer:
        with GradientTape() as inner:
            f = exp(x) - 2.0 * x
        first = inner.gradient(f, x)
    second = outer.gradient(first, x)
    print(f"{n}  x {float(x):.15f}   off by {abs(float(x) - math.log(2)):.1e}")
    x.assign(x - first / second)

# %% [markdown]
# The minimum of e^x − 2x is where e^x = 2. Five of Newton's steps give all digits, while a step of SGD at rate 0.1
# removes only a fifth of the error. With a million weights there are a million times a million second derivatives, too
# many to compute or to store. But their product with one vector costs only a few gradients: differentiate the gradient
# times that vector. That product is all that methods for large nets need if they use curvature ([Pearlmutter,
# 1994](https://doi.org/10.1162/neco.1994.6.1.147)).
#
# ## Two other spellings (4 min)
#
# PyTorch always records. Here the innermost open tape records. `grad` returns the gradients. `loss.backward()` names no
# variables: it computes the gradients of all variables that the loss depends on, and stores each as the variable's
# `.grad`. If `.grad` already holds a gradient, the new one is added to it, so that several losses can share a step.

# %%
page.source(autodiff.backward)

# %%
x = Variable(np.array(2.0))
with GradientTape():
    print("grad  ", float(grad(x * x, x)))
for _ in range(2):
    with GradientTape():
        (x * x).backward()
    print("x.grad", float(x.grad))

# %% [markdown]
# ## Exercises (25 min, optional)
#
# ### 03-3 · All slopes of all results
#
# If a target has several numbers, `gradient` treats it as their sum. Often we want them separately: how does *each*
# result change with each input? The table of all these slopes is the **Jacobian**. One walk back gives one row of it:
#
# ```
#              x[0]  x[1]  x[2]
#  y[0]     [   ·     ·     ·   ]   <- one walk, from y[0]
#  y[1]     [   ·     ·     ·   ]   <- another one, from y[1]
# ```
#
# (About 4 lines. Hint: `y[k]` is an op as well, so which tape must record it? And how often is the tape read?)

# %%
from course.reader import exercises

exercises.begin("03-3")


def jacobian(function, x):
    """J[i, j] = d y[i] / d x[j] of y[m] = function(x[n]), as an array of x's dtype."""
    return ...


exercises.check("03-3", jacobian)

# %% [markdown]
# ### 03-6 · Break it: gradients not reset
#
# Here is the simplest model: one weight, the loss w², a rate of 0.1. Each step should multiply w by 0.8, and therefore
# the loss by 0.64:

# %%
from course.reader import exercises

exercises.begin("03-6")

w = Variable(np.array(1.0))
for step in range(1, 21):
    with GradientTape():
        loss = w * w
        loss.backward()
    w.assign(w - 0.1 * w.grad)
    print(f"{float(loss):.2f}", end=" " if step % 10 else "\n")

# %% [markdown]
# The loss falls quickly, rises again, and goes on swinging. Is the rule of `multiply` wrong? No, the nudge has
# confirmed it. So print `float(w.grad)` beside the slope `2.0 * float(w)`, before each `assign`. From which step on do
# they differ, and by how much?
#
# Adding gradients up is useful *within* a step: if a batch is too large for the memory, it comes in parts, each with
# its own loss. Between two steps the gradients must be reset:
#
# ```
#  step 0                            step 1
#  reset   loss   loss   update      reset   loss   loss   update
#          └─ added ─┘                       └─ added ─┘
# ```
#
# (About 8 lines. Each loss is a function without arguments. Call it while a tape is open.)

# %%
from course.reader import exercises

exercises.begin("03-6")


def train(losses, variables, rate, steps):
    """SGD: each step adds up the gradients of all these losses, then moves each variable by -rate times its `grad`."""
    ...


exercises.check("03-6", train)

# %% [markdown]
# Without a reset, `w.grad` is the sum of all gradients so far, and it acts like a velocity: `w` swings like a pendulum
# without friction. With some friction this becomes *momentum*, with which `more/04_optimizers` trains.

# %% [markdown]
# # 03 more · Second derivatives
#
# **In this notebook a tape listens to a tape, and a gradient has a gradient of its own.**
#
# It needs notebook 03: the tape, the walk back, the rules and their nudges. It takes `levels_more/low_level/autodiff.py`
# apart. Nothing is
# exported here.

# %%
import math

import numpy as np

from course import build, figures
from course.figures import page
from course.practice import checks, exercises
from levels_more.low_level import VJPS, GradientTape, Variable, apply, autodiff, constant, exp, grad, stop_gradient

build.watch("more/03_second_derivatives")
figures.you_are_here(3)

# %% [markdown]
# ## Tapes in tapes (4 min)
#
# The rules are made of ops, which pass the door as well. So a second tape around the first writes down the walk, and can be
# read for the second derivative.

# %% tags=["hide-input"]
checks.predict(
    "y = x³ at x = 3. What is the gradient of the gradient?",
    choices=["27", "18", "an error: gradients cannot be differentiated"],
    answer="18",
    because="The gradient is 3x² = 27, its own gradient 6x. The rules are made of ops, so the inner tape's walk passed the "
    "door, and the outer tape wrote it down like any other program.",
)

# %%
x = Variable(np.array(3.0))
with GradientTape() as outer:
    with GradientTape() as inner:
        y = x * x * x
    first = inner.gradient(y, x)
print("first derivative", float(first), "second", float(outer.gradient(first, x)))

# %% [markdown]
# Who stands where? Each op of the inner program passes both tapes; the inner one hands it on. By the time it walks back, the inner
# tape listens no more. The outer one does, and here are its `records`:

# %%
with GradientTape(persistent=True) as outer:
    with GradientTape() as inner:
        y = x * x * x
    first = inner.gradient(y, x)
[op for op, *_ in outer.records]

# %% [markdown]
# The first two ops are y. The others are the walk, with the rule of `multiply` asked for each factor.
#
# ## Some gradient stays out (1 min)
#
# Sometimes a value shall count as given, whatever it was made from. `stop_gradient` is a copy whose rule is that nothing passes:

# %%
page.source(autodiff.stop_gradient)

# %%
print("the rule of copy:", VJPS["copy"])
with GradientTape() as tape:
    y = x * stop_gradient(x)
print(float(tape.gradient(y, x)), "and not", float(2 * x))

# %% [markdown]
# ## The rules of rules (6 min)
#
# The rule of `relu` is an op, `relu_grad`, with a kernel of its own. For a second derivative it needs a rule as well; so do those
# of sigmoid, clip and softmax. Here they are. Which of their two inputs should have a rule, and do these have one?

# %%
checked = {
    "relu_grad": (lambda dy, y: apply("relu_grad", dy, y), (True, False)),
    "clip_grad": (lambda dy, y: apply("clip_grad", dy, y, low=0.0, high=1.0), (True, False)),
    "sigmoid_grad": (lambda dy, y: apply("sigmoid_grad", dy, y), (True, True)),
    "softmax_grad": (lambda dy, y: apply("softmax_grad", dy, y), (True, True)),
    "log_softmax_grad": (lambda dy, y: apply("log_softmax_grad", dy, y), (True, True)),
}
print({op: tuple(rule is not None for rule in VJPS[op]) == which for op, (_, which) in checked.items()})

# %% [markdown]
# The first input of such an op is dy, the second what the rule needs besides. Where the second has no rule, the slope does not
# change with it: that of relu is 0 or 1. (At the kink it has none at all, and the table says nothing of it.)
#
# Each meets its nudge, as every rule does:


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
# A gradient says which way is down, the second derivative how far. For one number, Newton's step is x − f′/f″; near the ground it
# doubles the right digits each time:

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
# e^x − 2x is least where e^x = 2. Five steps for all digits; a step of SGD at rate 0.1 takes out a fifth of the error. With a
# million weights there are a million times a million second derivatives, too many to compute or to store. But their product with
# one vector costs only a few gradients: differentiate the gradient times that vector. Methods that use curvature in large nets
# need no more ([Pearlmutter, 1994](https://doi.org/10.1162/neco.1994.6.1.147)).
#
# ## Two other spellings (5 min)
#
# PyTorch always records; here the innermost open tape does. `grad` returns the gradients. `loss.backward()` names no variables:
# it asks for all that the loss was made from, and leaves each its gradient as `.grad`. Where one lies there already, the two are
# added, so that several losses can share a step.

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
# `gradient` takes a target of several numbers for their sum. Often we want them apart: how does *each* result change
# with each input? That table is the **Jacobian**. A walk back gives one row of it:
#
# ```
#              x[0]  x[1]  x[2]
#  y[0]     [   ·     ·     ·   ]   <- one walk, from y[0]
#  y[1]     [   ·     ·     ·   ]   <- another one, from y[1]
# ```
#
# (About 4 lines. Hint: `y[k]` is an op as well. Who has to hear of it? And how often will the tape be read?)

# %%
from course.practice import exercises

exercises.begin("03-3")


def jacobian(function, x):
    """J[i, j] = d y[i] / d x[j] of y[m] = function(x[n]), as an array of x's dtype."""
    return ...


exercises.check("03-3", jacobian)

# %% [markdown]
# ### 03-6 · Break it: gradients not reset
#
# The simplest model there is: one weight, the loss w², a rate of 0.1. Each step should multiply w by 0.8, and so the
# loss by 0.64:

# %%
from course.practice import exercises

exercises.begin("03-6")

w = Variable(np.array(1.0))
for _ in range(20):
    with GradientTape():
        loss = w * w
        loss.backward()
    w.assign(w - 0.1 * w.grad)
    print(f"{float(loss):.2f}", end=" ")

# %% [markdown]
# It falls quickly, rises again, and swings for ever. Is the rule of `multiply` wrong? It has met its nudge. So print
# `float(w.grad)` beside the slope `2.0 * float(w)`, before each `assign`: when do they part, and by what?
#
# Adding up is wanted *within* a step, when a batch is too large for the memory and comes in parts, each with its loss.
# Between two steps it is not:
#
# ```
#  step 0                            step 1
#  reset   loss   loss   update      reset   loss   loss   update
#          └─ added ─┘                       └─ added ─┘
# ```
#
# (About 8 lines. Each loss is a function without arguments, to be called while a tape is open.)

# %%
from course.practice import exercises

exercises.begin("03-6")


def train(losses, variables, rate, steps):
    """SGD: each step adds the gradients of all these losses, then moves each variable by -rate times its `grad`."""
    ...


exercises.check("03-6", train)

# %% [markdown]
# The sum of all gradients so far is a velocity: what swings above is a pendulum without friction. With some friction it
# becomes *momentum*, and `more/04_optimizers` trains with it.

# %% [markdown]
# # 03 more · Making a graph smaller
#
# **In this notebook nine ops become five: what is done twice is done once, and what can be known now is computed now.**
#
# It needs notebook 03: nodes, `trace` and `dce`, which throws away what nothing needs. It takes
# `levels_more/compiler/passes.py` apart.
# Nothing is exported here.

# %%
import numpy as np

from course import build, figures
from course.figures import page
from course.figures.drawing import graph_drawing
from course.practice import checks, exercises
from levels_more.compiler import passes
from levels_more.hardware import pool
from levels_more.low_level import GradientTape, Variable, constant, dce, exp, function, reduce_mean, reduce_sum, trace

build.watch("more/03_passes")
cpu = pool()["cpu:0"]
figures.you_are_here(3)

# %% [markdown]
# ## Done twice, done once (7 min)
#
# A **pass** takes a graph and gives a graph that computes the same with less. Here is a program with something for each pass:

# %%
w = Variable(np.array([[2.0], [-3.0]]), "w")
signature = cpu.spec((10, 2), "f8"), cpu.spec((10, 1), "f8")


def wasteful(rows, target):
    exp(rows)  # and nobody needs it
    scale = constant(2.0, "f8") * 3.0
    return reduce_sum((rows @ w - target) * (rows @ w - target)) * scale


before, _, _ = trace(wasteful, signature)
before

# %% [markdown]
# The same op on the same inputs needs to be done only once: *common-subexpression elimination*. It remembers what was `seen`, and
# takes that where it comes again. (`rebuilt` is a tool: it goes through the ops in order and puts another one in the place of each.)

# %%
page.source(passes.rebuilt, passes.cse)

# %% tags=["hide-input"]
checks.predict(
    "`rows @ w - target` stands there twice, as two ops each. How many ops does `cse` save?",
    choices=["one: the product", "two: the product and the difference", "none: they are other nodes"],
    answer="two: the product and the difference",
    because="The second product becomes the first. Then the second difference has the same inputs as the first one, so it "
    "goes, too. In the order of the list, one walk is enough.",
)

# %%
once = passes.cse(dce(before))
print(len(before.ops), "ops traced,", len(dce(before).ops), "needed,", len(once.ops), "different")

# %% [markdown]
# A key must tell apart what gives other numbers. `clip(x, 0.0, 1.0)` and `clip(x, -0.0, 1.0)` are two ops, but 0.0 == -0.0; so
# the key holds the attributes as text.
#
# ## Known now, computed now (7 min)
#
# What depends on constants alone can be computed before the program runs: *constant folding*. Ours does so for elementwise ops, in
# Python's floats; a kernel would have to be compiled for one number.

# %%
page.source(passes.constant_fold)

# %%
after = passes.constant_fold(once)
print(after)

# %% [markdown]
# Nine ops became five: `exp` was dead, the error was computed once, and 2·3 is 6.
#
# Python is not NumPy, and refuses some of it: 1 / 0 is an error, and the root of -2 is a complex number. Such an op is left to
# the kernels, which know what NaN and infinity are:

# %%
for expression in (lambda: constant(1.0) / 0.0, lambda: constant(-2.0) ** 0.5):
    graph, _, _ = trace(expression, ())
    print(passes.constant_fold(graph), "  is", float(function(expression)()))

# %% [markdown]
# And a train step? On the way back the tape multiplied twice by `error`, once for each factor of `error * error`:

# %%
b = Variable(np.array([[3.0]]), "b")


def step(rows, target):
    with GradientTape() as tape:
        error = rows @ w + b - target
        loss = reduce_mean(error * error)
    for variable, gradient in zip([w, b], tape.gradient(loss, [w, b]), strict=True):
        variable.assign(variable - 0.0005 * gradient)
    return loss


graph, _, _ = trace(step, signature)
for one_pass in (dce, passes.cse, passes.constant_fold):
    graph = one_pass(graph)
    print(f"{one_pass.__name__:14} {len(graph.ops)} ops")
graph_drawing(graph, ["rows", "target"])

# %% [markdown]
# Grey runs forward to the loss, green runs back, and purple is the update. Nothing was there to fold: each elementwise op depends
# on rows or weights. The weights that come out are the same, bit for bit: no pass changes an order of sums.
#
# ## Exercises (20 min, optional)
#
# ### 03-4 · A pass: times one
#
# `x * 1.0` is x, to the last bit. (`x + 0.0` is not: -0.0 + 0.0 is 0.0.) Write a pass that leaves such products out:
#
# ```
#   t0 = multiply(x0, 1.0)
#   t1 = subtract(t0, x1)         becomes         t0 = subtract(x0, x1)
# ```
#
# The 1.0 may stand on either side, and may be an array of ones. But a graph outlives the numbers of today: a variable
# that is 1 now will be something else tomorrow. And ones of a larger shape repeat x, which is work that must be done.
# (About 8 lines. Hint: `rebuilt` and `Node`, as in `constant_fold`. The tensor of a constant is `node.attrs["of"]`; equal shape
# and dtype are one Spec, so `is` compares.)

# %%
from course.practice import exercises
from levels_more.compiler.passes import PASSES, Node, rebuilt  # noqa: F401 (the stub uses none of them yet)

exercises.begin("03-4")


def without_ones(graph):
    """The graph without the products that give back one of their factors because the other is a constant 1.0."""
    return ...


exercises.check("03-4", without_ones)

# %% [markdown]
# Is it right? `PASSES.append(without_ones)`, and every function that you compile from now on goes through it.

# %% [markdown]
# # 03 more · Making a graph smaller
#
# **In this notebook nine ops become five: nothing is computed twice, and what is known in advance is computed in
# advance.**
#
# It needs notebook 03: nodes, `trace`, and `dce`, which removes the ops whose results nothing needs. It takes
# `levels_more/compiler/passes.py` apart. Nothing is exported here.

# %%
import numpy as np

from course import build, figures
from course.reader import checks, exercises
from course.reader.figures import page
from course.reader.figures.drawing import graph_drawing
from levels_more.compiler import passes
from levels_more.hardware import pool
from levels_more.low_level import GradientTape, Variable, constant, dce, exp, function, reduce_mean, reduce_sum, trace

build.watch("more/03_passes")
cpu = pool()["cpu:0"]
figures.you_are_here(3)

# %% [markdown]
# ## Common-subexpression elimination (8 min)
#
# A **pass** takes a graph and returns a graph that computes the same with fewer ops. Here is a program in which each
# pass finds something to improve:

# %%
w = Variable(np.array([[2.0], [-3.0]]), "w")
signature = cpu.spec((10, 2), "f8"), cpu.spec((10, 1), "f8")


def wasteful(rows, target):
    exp(rows)  # nothing needs this result
    scale = constant(2.0, "f8") * 3.0
    return reduce_sum((rows @ w - target) * (rows @ w - target)) * scale


before, _ = trace(wasteful, signature)
before

# %% [markdown]
# The same op on the same inputs needs to be computed only once. The pass for this is called *common-subexpression
# elimination*. It keeps every op that it has `seen`. When an equal op comes again, it uses the first one's result. (The
# helper `rebuilt` goes through the ops in order and replaces each of them by another node.)

# %%
page.source(passes.rebuilt, passes.cse)

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "03-passes-cse",
    "`rows @ w - target` appears twice in the program, as two ops each time. How many ops does `cse` save?",
    choices=["one: the product", "two: the product and the difference", "none: they are other nodes"],
)

# %%
once = passes.cse(dce(before))
print(len(before.ops), "ops traced,", len(dce(before).ops), "needed,", len(once.ops), "different")

# %%
checks.answer_to("03-passes-cse")

# %% [markdown]
# The key of an op must differ whenever the numbers could differ. `clip(x, 0.0, 1.0)` and `clip(x, -0.0, 1.0)` are
# different ops, but 0.0 == -0.0. So the key holds the attributes as text.
#
# ## Constant folding (6 min)
#
# An op whose inputs are all constants can be computed before the program runs. This is called *constant folding*. Our
# pass does it for elementwise ops, and computes with Python's floats. A kernel would first have to be compiled, for a
# single number.

# %%
page.source(passes.constant_fold)

# %%
after = passes.constant_fold(once)
print(after)

# %% [markdown]
# Nine ops became five: `exp` was removed, the error is computed only once, and 2·3 was replaced by 6.
#
# Python's floats behave differently from NumPy's in some cases: 1 / 0 is an error, and the square root of -2 is a
# complex number. The pass leaves such an op in the graph. The kernels handle it, with NaN and infinity:

# %%
for expression in (lambda: constant(1.0) / 0.0, lambda: constant(-2.0) ** 0.5):
    graph, _ = trace(expression, ())
    print(passes.constant_fold(graph), "  is", float(function(expression)()))

# %% [markdown]
# What do the passes find in a training step? On the way back the tape multiplied by `error` twice, once for each factor
# of `error * error`:

# %%
b = Variable(np.array([[3.0]]), "b")


def step(rows, target):
    with GradientTape() as tape:
        error = rows @ w + b - target
        loss = reduce_mean(error * error)
    for variable, gradient in zip([w, b], tape.gradient(loss, [w, b]), strict=True):
        variable.assign(variable - 0.0005 * gradient)
    return loss


graph, _ = trace(step, signature)
for one_pass in (dce, passes.cse, passes.constant_fold):
    graph = one_pass(graph)
    print(f"{one_pass.__name__:14} {len(graph.ops)} ops")
graph_drawing(graph, ["rows", "target"])

# %% [markdown]
# Grey ops run forward to the loss, green ops run back, and pink is the update. There was nothing to fold, because
# each elementwise op depends on rows or on weights. The resulting weights are the same, bit for bit, since no pass
# changes the order of a sum.
#
# ## Exercises (20 min, optional)
#
# ### 03-4 · A pass: times one
#
# `x * 1.0` is x, to the last bit. (`x + 0.0` is not, because -0.0 + 0.0 is 0.0.) Write a pass that removes such
# products:
#
# ```
#   t0 = multiply(x0, 1.0)
#   t1 = subtract(t0, x1)         becomes         t0 = subtract(x0, x1)
# ```
#
# The 1.0 may stand on either side, and it may be an array of ones. Mind two traps. A graph is used again later, when a
# variable that is 1 today may have another value. And if the array of ones has a larger shape than x, the product
# repeats x, so it must stay. (About 8 lines. Hint: use `rebuilt` and `Node`, as in `constant_fold`. The tensor of a
# constant is `node.source`. Two tensors of equal shape and dtype have the same Spec object, so compare with `is`.)

# %%
from course.reader import exercises
from levels_more.compiler.passes import PASSES, Node, rebuilt  # noqa: F401 (the stub uses none of them yet)

exercises.begin("03-4")


def without_ones(graph):
    """The graph without the products that return one factor unchanged because the other is a constant 1.0."""
    return ...


exercises.check("03-4", without_ones)

# %% [markdown]
# Is it right? Then run `PASSES.append(without_ones)`, and every function that you compile from now on uses it.

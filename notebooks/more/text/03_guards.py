# %% [markdown]
# # 03 more · What a compiled function notices
#
# **In this notebook you change values that a compiled function has read, and see which of the changes it notices.**
#
# It needs notebook 03: `function`, and the fact that a trace reads Python's values only once. It takes apart
# `levels_more/compiler/dependencies.py` and `levels_more/compiler/guards.py`. Nothing is exported here.

# %%
import numpy as np

from course import build, figures
from course.figures import page
from course.practice import checks
from levels_more import kernels
from levels_more.compiler import dependencies, guards
from levels_more.low_level import Variable, constant, function, reduce_sum, where

build.watch("more/03_guards")
figures.you_are_here(3)

# %% [markdown]
# ## A rate that changes (7 min)

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "03-guards-rate",
    "A compiled step reads a global `rate = 0.1`. Then we set `rate = 0.2` and call it again. Which rate does it use?",
    choices=["0.1: the graph holds a constant", "0.2", "an error"],
)

# %%
rate = 0.1
scaled_sum = function(lambda x: reduce_sum(rate * x))
before = float(scaled_sum(constant([1.0, 2.0])))
rate = 0.2
print(f"{before:.3f} {float(scaled_sum(constant([1.0, 2.0]))):.3f} - traced {scaled_sum.traces} times")

# %%
checks.answer_to("03-guards-rate")

# %% [markdown]
# Such checks are called **guards**. Which names does a function read? Its code object lists them: the globals that its
# instructions name, and the cells of the function around it. If one of these is a function, its names are looked up in
# turn (`read_by` does that). Modules of the course itself are left out, because they do not change.

# %%
page.source(dependencies.read_outside)

# %%
for _, key, value in dependencies.read_by([scaled_sum.python], guards.of_the_reader):
    print(key if isinstance(key, str) else "a cell", "=", value if isinstance(value, float) else type(value).__name__)

# %% [markdown]
# Guards run at every call, so they must be fast. Each name costs one look-up and one comparison with `is`. (If `is`
# says no, `same` compares the values, because a number that is assigned again may be equal to the old one.)

# %%
page.source(dependencies.changed)

# %% [markdown]
# ## What is not watched (3 min)
#
# Only names are watched. A value reached through an attribute or from a list or dict, such as `self.rate`, is read
# once, during tracing. `tf.function` treats all of Python's values in this way. `torch.compile` guards such values too.
# If such a value changes, make it a variable or an argument. Or call `renew`, and the next call traces again:

# %%
settings = {"rate": 0.1}
scaled_sum = function(lambda x: reduce_sum(settings["rate"] * x))
print(f"{float(scaled_sum(constant([1.0, 2.0]))):.3f}", end=" ")
settings["rate"] = 0.2
print(f"{float(scaled_sum(constant([1.0, 2.0]))):.3f}", end=" ")
scaled_sum.renew()
print(f"{float(scaled_sum(constant([1.0, 2.0]))):.3f}")

# %% [markdown]
# The second call did not notice the change. As an argument, the value is part of the cache key, so each value gets its
# own trace. That is fine for a few values, and from ten on there is a warning. A variable needs only one trace for all
# its values:

# %%
speed = Variable(np.array(0.1, "f4"))
by_argument, by_variable = function(lambda x, r: reduce_sum(r * x)), function(lambda x: reduce_sum(speed * x))
for value in (0.1, 0.2, 0.3):
    speed.assign(value)
    by_argument(constant([1.0, 2.0]), value), by_variable(constant([1.0, 2.0]))
print("traces: ", by_argument.traces, "by argument,", by_variable.traces, "by variable")

# %% [markdown]
# ## An `if` that needs a number (2 min)
#
# While a function is traced, its tensors have no numbers yet. An `if` that needs a number raises an error, which says
# what to do instead:


# %%
@function
def steep(x):
    return x * 2.0 if reduce_sum(x) > 0 else x


try:
    steep(constant([1.0, 2.0]))
except TypeError as error:
    print(error)

# %% [markdown]
# The condition must be computed like any other number. `where` computes both results and chooses between them:

# %%
print(function(lambda x: where(reduce_sum(x) > 0.0, x * 2.0, x))(constant([1.0, 2.0])).numpy())

# %% [markdown]
# ## A kernel of your own (2 min)
#
# The table of kernels is watched as well. If your kernel is a scalar function without an `if`, it is compiled into the
# program like ours. Any other kernel is launched on its own, and so are the ops around it. A note says so, and why:

# %%
rows, own = constant(np.arange(20.0).reshape(10, 2)), function(lambda x: reduce_sum(x))


def plain_sum(total, x):
    return total + x


with kernels.use("reduce_sum", "cpu", plain_sum):
    own(rows)
    print("in use: ", *(type(program).__name__ for program, _ in own.programs.values()))
own(rows)
print("after it:", *(type(program).__name__ for program, _ in own.programs.values()))

# %% [markdown]
# While your kernel is in use, the ops are replayed one by one. Afterwards the function runs as one program again.
#
# **Try it.** Which of these three changes does `scaled_sum` notice: `settings = {"rate": 0.3}`,
# `settings.update(rate=0.3)`, or a new definition of a function that it calls? Predict first, then look at
# `scaled_sum.traces`.

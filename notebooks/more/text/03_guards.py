# %% [markdown]
# # 03 more · What a compiled function notices
#
# **In this notebook a compiled function hears that a global has changed, and you see what it cannot hear.**
#
# It needs notebook 03: `function`, and that a trace reads Python's values once. It takes `levels_more/compiler/dependencies.py` and
# `levels_more/compiler/guards.py` apart. Nothing is exported here.

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
# ## A rate that changes (6 min)

# %% tags=["hide-input"]
checks.predict(
    "A compiled step reads a global `rate = 0.1`. Then we set `rate = 0.2` and call it again. Which rate does it use?",
    choices=["0.1: the graph holds a constant", "0.2", "an error"],
    answer="0.2",
    because="The graph does hold a constant. But the name is watched, and it is bound to another value now: we trace anew.",
)

# %%
rate = 0.1
scaled_sum = function(lambda x: reduce_sum(rate * x))
before = float(scaled_sum(constant([1.0, 2.0])))
rate = 0.2
print(f"{before:.3f} {float(scaled_sum(constant([1.0, 2.0]))):.3f} - traced {scaled_sum.traces} times")

# %% [markdown]
# Such checks are called **guards**. Which names does a function read? Its code object knows: the globals among its instructions,
# and the cells of the function around it. What is itself a function is looked into in turn (`read_by` does that); our own
# modules do not change.

# %%
page.source(dependencies.read_outside)

# %%
for _, key, value in dependencies.read_by([scaled_sum.python], guards.of_the_reader):
    print(key if isinstance(key, str) else "a cell", "=", value if isinstance(value, float) else type(value).__name__)

# %% [markdown]
# A guard stands in the way of every call, so it has to be quick: one look-up for each name, and `is`. (Where that says no, `same`
# compares: a number that is assigned anew may be the old one.)

# %%
page.source(dependencies.changed)

# %% [markdown]
# ## What is not watched (3 min)
#
# Only names are. What is reached through an attribute or from a list, such as `self.rate`, is read once, while tracing, as
# `tf.function` does with all of Python's values; `torch.compile` guards these too. Make it a variable, or an argument. Or say
# `renew`, and the next call traces anew:

# %%
settings = {"rate": 0.1}
scaled_sum = function(lambda x: reduce_sum(settings["rate"] * x))
print(f"{float(scaled_sum(constant([1.0, 2.0]))):.3f}", end=" ")
settings["rate"] = 0.2
print(f"{float(scaled_sum(constant([1.0, 2.0]))):.3f}", end=" ")
scaled_sum.renew()
print(f"{float(scaled_sum(constant([1.0, 2.0]))):.3f}")

# %% [markdown]
# The second call had not heard of the change. As an argument it is part of the cache key: each value has a trace. That is fine for
# a few values, and ten of them warn. A variable has one trace for all:

# %%
speed = Variable(np.array(0.1, "f4"))
by_argument, by_variable = function(lambda x, r: reduce_sum(r * x)), function(lambda x: reduce_sum(speed * x))
for value in (0.1, 0.2, 0.3):
    speed.assign(value)
    by_argument(constant([1.0, 2.0]), value), by_variable(constant([1.0, 2.0]))
print("traces: ", by_argument.traces, "by argument,", by_variable.traces, "by variable")

# %% [markdown]
# ## Who asks for a number (2 min)
#
# While a function is traced there is no number to ask for. It gets an error that says what to do instead:


# %%
@function
def steep(x):
    return x * 2.0 if reduce_sum(x) > 0 else x


try:
    steep(constant([1.0, 2.0]))
except TypeError as error:
    print(error)

# %% [markdown]
# The condition has to become a number like any other. `where` computes both and chooses:

# %%
print(function(lambda x: where(reduce_sum(x) > 0.0, x * 2.0, x))(constant([1.0, 2.0])).numpy())

# %% [markdown]
# ## A kernel of your own (2 min)
#
# The table of kernels is watched as well. A scalar function is written into the program like ours, if it asks no `if`. Any other
# kernel stays a launch, and so do the ops around it:

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
# While your kernel is in use, the ops are replayed one by one. After it, the program is there again.
#
# **Try it.** Which of these does `scaled_sum` hear of: `settings = {"rate": 0.3}`; `settings.update(rate=0.3)`; a new function
# of a name that it calls? Predict first, then look at `scaled_sum.traces`.

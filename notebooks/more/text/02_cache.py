# %% [markdown]
# # 02 more · A cache that cannot go stale
#
# **In this notebook a compiled program gets a name that differs whenever the program could.**
#
# Needs notebook 02: `compile_cpu`, `launch`. It takes `levels/support/compiled.py` and `levels_more/compiler/dependencies.py` apart.

# %%
from course import build
from course.figures import page

build.watch("more/02_cache")

# %%
import numpy as np

from course.practice import exercises
from levels.support import compiled
from levels.support.compiled import compile_cpu, described, globals_read
from levels_more.compiler import dependencies

w1 = 2.0

# %% [markdown]
# ## What a program is made from (7 min)
#
# A program is made from more than its own lines. It reads **globals**: names that stand outside it, such as functions that it
# calls. Python can list them.

# %%
page.source(globals_read)

# %%
sorted(globals_read((lambda x: np.sqrt(x) + w1).__code__))

# %% [markdown]
# What is compiled from this lambda depends on `w1`, too. So a function needs a description, in which everything shows that could
# change the program:

# %%
page.source(described)

# %% [markdown]
# Here is the question from above. The first `double` is replaced by a second; `four_times` stays:


# %%
def double(x):
    return 2.0 * x


def four_times(x):
    return double(double(x))


before = described(four_times)


def double(x):  # noqa: F811
    return 2.5 * x


print("another description:", described(four_times) != before)

# %% [markdown]
# ## A copy, compiled (11 min)
#
# To compile a function, we copy it first. In the copy each function that it calls is compiled, too. And each float constant
# has the dtype of the arrays. Otherwise numba takes the constant `1.0` for a float64, and with it `1.0 / x`, where x is float32.
# `in_the_copy` says what stands in place of a value; below it the copy is made, with every value replaced:

# %%
page.source(compiled.specialised)

# %% [markdown]
# Now compile. The name of a program is the hash: of versions, dtype and options, and of the copy's description. A function that was
# compiled here says its hash, and is described by it.

# %%
page.source(compile_cpu)

# %% [markdown]
# numba asks an object with two methods, `load_overload` and `save_overload`, for what it has compiled before. It lies where the
# assembler keeps its programs:

# %%
page.source(compiled._Cache)

# %% [markdown]
# The same text gives the same hash. So of two equal functions the second *is* the first; nothing is compiled twice:

# %%
halved, again = (compile_cpu(function, np.dtype("f4")) for function in (lambda x: 0.5 * x, lambda x: 0.5 * x))
print(halved(np.float32(3.0)), again is halved)

# %% [markdown]
# What cannot be put in words, such as a setting in some module, is not kept at all.
#
# ## While a notebook runs (4 min)
#
# And within a running notebook, the next launch has to notice when you define again a function that its kernel calls, or a
# number that it reads:

# %%
page.source(dependencies.read_outside, dependencies.read_by, dependencies.changed)

# %% [markdown]
# ## Exercises (optional)
#
# ### 02-5 · Break it: a stale cache
#
# Here is a cache of compiled programs that looks reasonable. A program is kept under the instructions of its function:

# %%
from course.practice import exercises

exercises.begin("02-5")

KEPT = {}


def run_kept(function, x):
    """Run the program kept for such instructions; where there is none, compile and keep it."""
    key = function.__code__.co_code
    if key not in KEPT:
        KEPT[key] = compile_cpu(function, np.dtype("f8"))
    return KEPT[key](x)


def triple(x):
    return 3.5 * x


print("3.5 * 2 =", run_kept(triple, 2.0))


def triple(x):  # noqa: F811
    return 3.0 * x


print("3.0 * 2 =", run_kept(triple, 2.0))

# %% [markdown]
# The second answer is the first function's: a stale program, and no error. Print `triple.__code__.co_code` before and after the
# change, and `co_consts` beside it, to see the cause. Then write a key that nothing escapes: instructions, constants (2 is equal to 2.0,
# their programs are not), names, defaults, and the numbers and functions that it reads, with all that *those* read. (About 5 lines. Hint:
# `function.__globals__[name]` is what a name of `co_names` means, if it is there; `repr` of 2 and of 2.0 differ.)

# %%
from course.practice import exercises

exercises.begin("02-5")


def cache_key(function):
    """A value that differs whenever the function's program could, and is equal when it is defined again unchanged."""
    return ...


exercises.check("02-5", cache_key)

# %% [markdown]
# # 02 more · A cache that cannot go stale
#
# **In this notebook each compiled program is kept under a name that changes whenever the program could change.**
#
# It needs notebook 02: `compile_cpu`, `launch`. It takes `levels/support/compiled.py` and
# `levels_more/compiler/dependencies.py` apart.

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
# ## What a program is made from (6 min)
#
# A program is made from more than the lines of its function. The function also reads **globals**: names defined outside
# it, such as other functions that it calls. Python can list them.

# %%
page.source(globals_read)

# %%
sorted(globals_read((lambda x: np.sqrt(x) + w1).__code__))

# %% [markdown]
# The program compiled from this lambda depends on `w1`, too. So each function needs a description that contains
# everything that could change its program:

# %%
page.source(described)

# %% [markdown]
# Does the description of `four_times` change when only `double`, which it calls, is defined again?


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
# ## A copy, compiled (10 min)
#
# To compile a function, we copy it first. In the copy, each function that it calls is compiled too, and each float
# constant gets the dtype of the arrays. Otherwise numba takes the constant `1.0` for a float64. Then `1.0 / x` is a
# float64 as well, even if x is float32. `in_the_copy` gives the replacement of one value. The code below it makes the
# copy, with every value replaced:

# %%
page.source(compiled.specialised)

# %% [markdown]
# Now we compile. The name of a program is a hash of the versions, the dtype, the options and the description of the
# copy. (One option is a check of each index. Kernels of your own are compiled with it, in a `use` block.) A function
# that was compiled here carries its hash, and the hash then serves as its description.

# %%
page.source(compile_cpu)

# %% [markdown]
# numba looks for programs that it has compiled before in an object with two methods, `load_overload` and
# `save_overload`. Ours keeps them in the folder where the assembler keeps its programs:

# %%
page.source(compiled._Cache)

# %% [markdown]
# The same text gives the same hash. So if two functions are equal, the second call returns the first program, and
# nothing is compiled twice:

# %%
halved, again = (compile_cpu(function, np.dtype("f4")) for function in (lambda x: 0.5 * x, lambda x: 0.5 * x))
print(halved(np.float32(3.0)), again is halved)

# %% [markdown]
# If a function depends on something that cannot be described, such as a setting in some module, its program is not kept
# at all.
#
# ## While a notebook runs (3 min)
#
# You may also change something in a running notebook: a function that a kernel calls, or a number that it reads. The
# next launch must notice that:

# %%
page.source(dependencies.read_outside, dependencies.read_by, dependencies.changed)

# %% [markdown]
# ## Exercises (optional)
#
# ### 02-5 · Break it: a stale cache
#
# Here is a cache of compiled programs that looks reasonable. Its key is the bytecode of the function, its instructions
# for Python:

# %%
from course.practice import exercises

exercises.begin("02-5")

KEPT = {}


def run_kept(function, x):
    """Run the program that is kept under these instructions; if there is none, compile one and keep it."""
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
# The second answer comes from the first function. The program is stale, and no error says so. To see the cause, print
# `triple.__code__.co_code` before and after the change, and `co_consts` beside it. Then write a key that misses
# nothing. It holds the instructions, the constants, the names, the defaults, and the numbers and functions that the
# function reads, with everything that *those* read. Mind that 2 and 2.0 are equal, but their programs differ. (About 5
# lines. Hint: `function.__globals__[name]` is what a name of `co_names` means, if it is there; `repr` of 2 and of 2.0
# differ.)

# %%
from course.practice import exercises

exercises.begin("02-5")


def cache_key(function):
    """A value that changes whenever the function's program could, and stays equal if it is defined again unchanged."""
    return ...


exercises.check("02-5", cache_key)

# %% [markdown]
# # 02 more · The largest, softmax, four sums
#
# **In this notebook a reduction gives the largest number, or its place, or makes probabilities of a row.**
#
# Needs notebook 02: `reduce_rows`, `reduced`, `launch`. It takes `levels_more/kernels/reductions.py` apart.

# %%
from course import build
from course.figures import page

build.watch("more/02_reductions")

# %%
import numpy as np

from course.practice import exercises
from levels_more.hardware import pool
from levels_more.kernels import launch, reductions

cpu = pool()["cpu:0"]
table = cpu.put(np.arange(6.0).reshape(3, 2))

# %% [markdown]
# ## The largest (6 min)
#
# A reduction needs one function, how one more number is taken in, and a number to start at: 0.0 for a sum, minus infinity for
# the largest. `maximum` is level 1's, like `exp`. In kernels of floats LLVM's own stands for it. They agree to the bit: of 0.0 and -0.0 the
# first is the larger, and if either number is NaN, so is the result.

# %%
page.source(reductions.reduction, reductions.plan_extreme)

# %%
[launch(name, None, table).numpy().item() for name in ("reduce_max", "reduce_mean")]

# %% [markdown]
# Where the largest number stands is a reduction of another kind: it gives a number of a place. (A NaN counts as the largest.)

# %%
page.source(reductions.plan_arg_max, reductions.arg_max)

# %% [markdown]
# In `table`, [[0, 1], [2, 3], [4, 5]], the largest of both columns stand in row 2:

# %%
launch("arg_max", None, table, axis=0).numpy().tolist()

# %% [markdown]
# ## Softmax (8 min)
#
# Softmax makes probabilities of a row of numbers: exp of each, divided by their sum. The largest is subtracted first. That
# changes nothing but keeps exp from overflowing.

# %%
page.source(reductions.plan_rows, reductions.softmax, reductions.softmax_grad)

# %% [markdown]
# exp(1000) is infinite, and yet:

# %%
far_apart = cpu.put(np.array([[1000.0, 1000.0], [1000.0, 0.0]]))
launch("softmax", None, far_apart).numpy().tolist()

# %% [markdown]
# Its logarithm has a kernel of its own: where softmax rounds to 0, log(softmax(x)) would be -infinity.

# %%
page.source(reductions.log_softmax)

# %%
launch("log_softmax", None, far_apart).numpy().round(4).tolist()

# %% [markdown]
# Of the 0 in the second row above, the logarithm would be -infinity. Here its true value is left, -1000.
#
# ## Four sums side by side (3 min)
#
# Along a row each addition waits for the one before, and takes several cycles. So `levels_more.kernels` has another loop for
# it: four rows go side by side, four sums that do not wait for each other. Each is added up in the same order as before,
# so no bit changes.

# %%
page.source(reductions.reduce_by_fours)

# %% [markdown]
# ## Exercises (optional)
#
# ### 02-4 · Four sums side by side
#
# One sum waits for its own last addition. So keep four, and add them at the end:
#
# ```
# x[i, :]    0  1  2  3    4  5  6  7    8  9
#            a  b  c  d    a  b  c  d    the rest
#
# out[i]  =  (a + b) + (c + d), then + x[i, 8], then + x[i, 9]
# ```
#
# A row need not be a multiple of four long. A kernel that reads past its end reads somebody else's memory, and says nothing.
# (About 11 lines.)

# %%
from course.practice import exercises

exercises.begin("02-4")


def sum_by_fours(out, x):
    """out[i] = Σₖ x[i, k], in the order of the picture, for out[rows] and x[rows, n]."""
    ...


exercises.check("02-4", sum_by_fours)

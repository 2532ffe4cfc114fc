# %% [markdown]
# # 02 more · The largest, softmax, four sums
#
# **In this notebook reductions find the largest number and its place, and turn a row into probabilities.**
#
# It needs notebook 02: `reduce_loop`, `reduced`, `launch`. It takes `levels_more/kernels/reductions.py` apart.

# %%
from course import build
from course.reader.figures import page

build.watch("more/02_reductions")

# %%
import numpy as np

from course.reader import exercises
from levels_more.hardware import pool
from levels_more.kernels import launch, reduce_loop, reductions

cpu = pool()["cpu:0"]
table = cpu.put(np.arange(6.0).reshape(3, 2))

# %% [markdown]
# ## The largest (5 min)
#
# A reduction needs two things: a function that takes in one more number, and a number to start at. A sum starts at 0.0,
# and a maximum at minus infinity. `maximum` comes from level 1, like `exp`. In kernels of floats LLVM's own instruction
# replaces it. The two agree to the bit: 0.0 counts as larger than -0.0, and if either number is NaN, so is the result.

# %%
page.source(reductions.reduction, reductions.plan_extreme)

# %%
[launch(name, None, table).numpy().item() for name in ("reduce_max", "reduce_mean")]

# %% [markdown]
# Finding the place of the largest number is another kind of reduction: its result is an index. (A NaN counts as the
# largest.)

# %%
page.source(reductions.plan_arg_max, reductions.arg_max)

# %% [markdown]
# In `table`, [[0, 1], [2, 3], [4, 5]], the largest number of each column is in row 2:

# %%
launch("arg_max", None, table, axis=0).numpy().tolist()

# %% [markdown]
# ## Softmax (7 min)
#
# Softmax turns a row of numbers into probabilities. It takes exp of each number and divides by the sum of these. Before
# that it subtracts the largest number from all. The probabilities stay the same, and exp cannot overflow.

# %%
page.source(reductions.plan_rows, reductions.softmax, reductions.softmax_grad)

# %% [markdown]
# exp(1000) overflows to infinity, but softmax of a row with 1000 gives the right numbers:

# %%
far_apart = cpu.put(np.array([[1000.0, 1000.0], [1000.0, 0.0]]))
launch("softmax", None, far_apart).numpy().tolist()

# %% [markdown]
# The logarithm of softmax has its own kernel. Otherwise log(softmax(x)) would be -infinity wherever softmax rounds
# to 0.

# %%
page.source(reductions.log_softmax)

# %%
launch("log_softmax", None, far_apart).numpy().round(4).tolist()

# %% [markdown]
# In the second row softmax gave a 0, whose logarithm would be -infinity. This kernel gives the true value, -1000.
#
# ## Two quicker loops (9 min)
#
# Notebook 02 has one loop for all sums, `reduce_loop`. `levels_more.kernels` has two others. In float64 they give the
# same bits. (In float32 the core may add up a long column in parts, and then the last bits differ.) The first one is
# for sums along rows. There each addition waits for the one before, which takes several cycles. So this loop adds up
# four rows side by side, in four sums that do not wait for each other. Each row is still added up in the same order.

# %%
page.source(reductions.reduce_by_fours)

# %% [markdown]
# The second one is for sums down columns. `reduce_loop` goes down one column after another, so each step lands in
# another row, and thus in another cache line. This loop goes along the rows, and adds each row to the totals in `out`.
# Each column is still added up from the top to the bottom.

# %%
page.source(reductions.reduce_columns)

# %% [markdown]
# How do the two get into a plan? Notebook 02's list `PLAN_FINISHERS` is empty. `levels_more.kernels` adds this function
# to it, which plans a reduction anew, with one of the two loops:

# %%
page.source(reductions.two_loops)

# %% [markdown]
# Does either loop change a bit? We compare both with `reduce_loop`, as Python:

# %%
x = np.random.default_rng(0).normal(size=(6, 50))
plain, quick = np.empty((2, 6, 1))
reduce_loop(np.add, 0.0)(plain, x.reshape(6, 50, 1))
reductions.reduce_by_fours(np.add, 0.0)(quick[:, 0], x)
print("along rows:  ", bool((plain == quick).all()))
plain, quick = np.empty((2, 1, 50))
reduce_loop(np.add, 0.0)(plain, x.reshape(1, 6, 50))
reductions.reduce_columns(np.add, 0.0)(quick, x.reshape(1, 6, 50))
print("down columns:", bool((plain == quick).all()))

# %% [markdown]
# ## Exercises (optional)
#
# ### 02-4 · Four sums side by side
#
# A single sum waits for its own last addition. So keep four sums of one row, and add them at the end:
#
# ```
# x[i, :]    0  1  2  3    4  5  6  7    8  9
#            a  b  c  d    a  b  c  d    the rest
#
# out[i]  =  (a + b) + (c + d), then + x[i, 8], then + x[i, 9]
# ```
#
# The length of a row need not be a multiple of four. A kernel that reads past the end of a row reads other memory,
# without an error. (About 11 lines.)

# %%
from course.reader import exercises

exercises.begin("02-4")


def sum_by_fours(out, x):
    """out[i] = Σₖ x[i, k], in the order of the picture, for out[rows] and x[rows, n]."""
    ...


exercises.check("02-4", sum_by_fours)

# %% [markdown]
# # 02 more · The same numbers elsewhere
#
# **In this notebook the table gets more rows: comparisons, transposes, slices, casts, and sums of rows picked by
# number.**
#
# It needs notebook 02: `scalar`, `kernel`, `Plan`, `launch`. It takes `levels_more/kernels/elementwise.py` and
# `levels_more/kernels/layout.py` apart.

# %%
from course import build
from course.figures import page

build.watch("more/02_moves")

# %%
import math

import numpy as np

from levels_more.hardware import pool
from levels_more.kernels import elementwise as ops
from levels_more.kernels import launch, layout

cpu = pool()["cpu:0"]
table = cpu.put(np.arange(6.0).reshape(3, 2))

# %% [markdown]
# ## More scalar functions (5 min)
#
# More elementwise ops need nothing new. Each is a scalar function, and most take one line, such as
# `scalar("power")(lambda x, y: x**y)`. One of these functions is longer:

# %%
page.source(ops.small_tanh, ops.tanh)

# %% [markdown]
# The function of tanh treats three regions separately: the two flat ends, and the middle.

# %%
launch("tanh", None, cpu.put(np.array([-20.0, 0.0, 0.5]))).numpy().round(4).tolist()

# %% [markdown]
# A comparison gives a **mask**, an array of truths, whatever its inputs hold. `where` takes a mask, and picks from one of
# two arrays. So these ops have a planner of their own. It asks two tables: how many inputs of an op are masks, and which
# dtype its result has.

# %%
page.source(ops.plan_masked, ops.mask_op)

# %%
small = launch("less", None, table, cpu.put(np.array([[3.0]])))
launch("where", None, small, table, cpu.put(np.zeros((1, 1)))).numpy().tolist()

# %% [markdown]
# The numbers below 3 have stayed, and zeros stand for the others.

# %% [markdown]
# ## Another order (11 min)
#
# A transpose copies an array whose axes are read in another order. Slicing an array and joining arrays are copies as
# well. These ops differ only in their views: the view of the result and the views of the inputs. So one planner serves
# them all. (A reshape needs none of this, because its numbers stay in the same order.)

# %%
page.source(layout.copy_views, layout.plan_moves)

# %% [markdown]
# Here are two of the planners. Each says what shape the result has, and which view is copied to which.

# %%
page.source(layout.plan_transpose, layout.plan_concat)

# %% [markdown]
# The gradient of a slice is an array of zeros with `dy` where the slice was.

# %%
page.source(layout.as_slices, layout.plan_slice, layout.plan_slice_grad)

# %% [markdown]
# A cast copies the numbers into a result of another dtype. A number that the other dtype cannot hold is refused.

# %%
page.source(layout.plan_cast)

# %% [markdown]
# All of these ops have the same scalar function, which returns x. The planners do the work.

# %%
page.source(layout.layout_op)

# %%
print(launch("transpose", None, table).numpy().tolist())
print(launch("slice", None, table, slices=((0, 3, 2), (None, None, -1))).numpy().tolist())
try:
    launch("cast", None, cpu.put(np.array([math.nan])), dtype="i8")
except ValueError as error:
    print(error)

# %% [markdown]
# The transpose turned columns into rows. The slice took every second row, with its numbers in reverse order. The cast
# refused NaN, because no integer stands for it.
#
# ## Rows added up by number (5 min)
#
# The gradient of `gather` adds each row of `dy` to the row that it was taken from. A row may have been taken twice.
# Then the additions follow the order of the batch. The op `one_hot` makes rows of zeros with a single one.

# %%
page.source(layout.plan_scatter_add, layout.scatter_add)

# %%
launch("scatter_add", None, table, cpu.put(np.array([1, 1, 0])), count=2).numpy().tolist()

# %% [markdown]
# Row 1 of the result is the sum of rows 0 and 1 of `table`, and row 0 of the result is row 2. Now `one_hot`:

# %%
page.source(layout.one_hot)

# %%
launch("one_hot", None, cpu.put(np.array([1, 0])), depth=3).numpy().tolist()

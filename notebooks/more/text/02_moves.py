# %% [markdown]
# # 02 more · The same numbers elsewhere
#
# **In this notebook the table gets more rows: comparisons, transposes, slices, casts, rows added up by number.**
#
# Needs notebook 02: `scalar`, `kernel`, `make`, `launch`. It takes `levels_more/kernels/elementwise.py` and
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
# ## More scalar functions (2 min)
#
# Nothing new is needed for more elementwise ops: each is a scalar function, and most are a line, such as
# `scalar("less", takes="fi", gives=np.bool_)(lambda x, y: x < y)`. They enter the table when a launch first asks for one. One is longer:

# %%
page.source(ops.small_tanh, ops.tanh)

# %% [markdown]
# tanh is the scalar function of three regions: two flat ends, and the middle.

# %%
launch("tanh", None, cpu.put(np.array([-20.0, 0.0, 0.5]))).numpy().round(4).tolist()

# %% [markdown]
# ## Another order (14 min)
#
# A transpose is a copy of an array seen with its axes in another order. A slice and arrays joined end to end are copies as
# well: only the views differ, that of the result and those of the inputs. So one planner serves all. (A change of shape needs
# none of it: the numbers stay in order.)

# %%
page.source(layout.copy_views, layout.plan_moves)

# %% [markdown]
# Two of the planners. Each says what the result's shape is, and which view goes to which.

# %%
page.source(layout.plan_transpose, layout.plan_concat)

# %% [markdown]
# The gradient of a slice is an array of zeros with `dy` where the slice was.

# %%
page.source(layout.as_slices, layout.plan_slice, layout.plan_slice_grad)

# %% [markdown]
# A cast is a copy into a result of another dtype. A number that has no place there is refused.

# %%
page.source(layout.plan_cast)

# %% [markdown]
# All of them have the same scalar function, x itself; the work was in the planners.

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
# Columns became rows; of every second row the numbers stand in reverse; and NaN is no integer.
#
# ## Rows added up by number (5 min)
#
# The gradient of `gather` adds rows where they were taken from. A row may have been taken twice, so the order of the additions
# is that of the batch. And `one_hot` makes rows of zeros with a single one.

# %%
page.source(layout.plan_scatter_add, layout.scatter_add)

# %%
launch("scatter_add", None, table, cpu.put(np.array([1, 1, 0])), count=2).numpy().tolist()

# %% [markdown]
# Rows 0 and 1 of `table` were added up in row 1, and row 2 went to row 0. Now `one_hot`:

# %%
page.source(layout.one_hot)

# %%
launch("one_hot", None, cpu.put(np.array([1, 0])), depth=3).numpy().tolist()

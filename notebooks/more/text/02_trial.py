# %% [markdown]
# # 02 more · Tried before it runs
#
# **In this notebook a kernel of your own is tried on hard inputs, and refused with a counter-example.**
#
# Needs notebook 02: `use`, `launch`. It takes `levels_more/kernels/verify.py` apart.

# %%
from course import build
from course.figures import page

build.watch("more/02_trial")

# %%

from levels_more.hardware import pool
from levels_more.kernels import KERNELS, use, verify

cpu = pool()["cpu:0"]

# %% [markdown]
# ## What it is tried on (5 min)
#
# In notebook 02 a relu without a branch gave NaN where it should have given 0. So a new kernel is tried first: on random numbers and
# on special ones (0.0 and -0.0, infinities, NaN), with every index checked, its own and those of the functions it calls. What an op
# is tried on follows from what it is; for a product and for rows by number it is written down, an empty array among them.

# %%
page.source(verify.cases_of, verify.drawn)

# %% [markdown]
# One trial: your function takes the kernel's place in the table, and is launched like it. Before that the result is filled with
# sevens. Fresh memory often holds zeros, and would hide a number that your kernel forgot.

# %%
page.source(verify.outcome)

# %% [markdown]
# ## Right or refused (9 min)
#
# All trials are made in both dtypes. The present kernel goes first, and its results are what is expected. Yours must agree with them
# to 12 digits in float64 and to 5 in float32. So a kernel that adds in another order is allowed; then the losses may differ in their
# last bits. The first difference, or the first error, ends the trials:

# %%
page.source(verify.verify_kernel)

# %% [markdown]
# And where the two differ, you get a counter-example in words:

# %%
page.source(verify.counter_example)


# %%
def no_branch(x):
    return x * (x > 0)


try:
    with use("relu", "cpu", no_branch):
        print("never reached")
except ValueError as error:
    print(error)

# %% [markdown]
# A kernel that leaves its array is met by the check of every index, and the table is as it was:


# %%
def one_too_many(out, x, w):
    out[:] = 0.0
    for i in range(out.shape[0]):
        for k in range(x.shape[1] + 1):
            for j in range(out.shape[1]):
                out[i, j] += x[i, k] * w[k, j]


try:
    with use("matmul", "cpu", one_too_many):
        print("never reached")
except ValueError as error:
    print(error)
print(KERNELS["matmul", "cpu"] is one_too_many)

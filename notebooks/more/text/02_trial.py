# %% [markdown]
# # 02 more · Tried before it runs
#
# **In this notebook a kernel of your own is tested on difficult inputs, and refused with a counter-example if it is
# wrong.**
#
# It needs notebook 02: `use`, `launch`. It takes `levels_more/kernels/verify.py` apart.

# %%
from course import build
from course.figures import page

build.watch("more/02_trial")

# %%

from levels_more.hardware import pool
from levels_more.kernels import KERNELS, use, verify

cpu = pool()["cpu:0"]

# %% [markdown]
# ## What a kernel is tested on (5 min)
#
# In notebook 02 a relu without a branch gave NaN where it should have given 0. Level 2's `use` does not notice: it only
# has each index of the new kernel checked. The `use` of `levels_more.kernels` tests the kernel first. The inputs are
# random numbers and special ones: 0.0 and -0.0, infinities, and NaN. Every index is checked, in the kernel and in the
# functions that it calls. For most ops the test inputs follow from the kind of op. For matrix products and for ops that
# pick rows by number they are written down, and include an empty array.

# %%
page.source(verify.cases_of, verify.drawn)

# %% [markdown]
# In a trial your function takes the kernel's place in the table and is launched as usual. Before that, the result is
# filled with sevens. New memory often holds zeros, which would hide that your kernel forgot to write a number.

# %%
page.source(verify.outcome)

# %% [markdown]
# ## Right or refused (10 min)
#
# All trials run in both dtypes. The current kernel runs first, and its results are the expected ones. Your results must
# agree with them to 12 digits in float64 and to 5 in float32. So a kernel may add in another order, though the losses
# may then differ in their last bits. The trials end at the first difference or error:

# %%
page.source(verify.verify_kernel)

# %% [markdown]
# If the two differ, you get the counter-example in a sentence:

# %%
page.source(verify.counter_example)

# %% [markdown]
# `use` is the trial, and then the `use` of level 2. A function that has passed needs no check of its indices any more,
# so `try_kernel` notes it in `TRIED`, and it runs at full speed.

# %%
page.source(verify.try_kernel, verify.use)

# %% [markdown]
# Here is notebook 02's relu without a branch again:


# %%
def no_branch(x):
    return x * (x > 0)


try:
    with use("relu", "cpu", no_branch):
        print("never reached")
except ValueError as error:
    print(error)

# %% [markdown]
# If a kernel reads or writes outside its array, the check of every index finds it. After each refusal the table is as
# it was before:


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

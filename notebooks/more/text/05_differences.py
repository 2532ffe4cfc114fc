# %% [markdown]
# # 05 more · Where the same line gives another number
#
# **In this notebook you meet three lines that mean the same in every library and give another number, and a table of
# all that we found.**
#
# You need notebook 05 for this, and momentum from `more/04_optimizers`. Nothing is exported.

# %%
from course import build, figures

build.watch("more/05_differences")
figures.you_are_here(5)

# %% tags=["hide-input"]
# The imports of this notebook: you may skip this cell.
import numpy as np

from course.reader import checks
from course.reader.inspection import differences
from levels_more.low_level import GradientTape, Variable, clip, constant, maximum, minimum, ones, reduce_sum
from levels_more.mid_level import SGD

# %% [markdown]
# ## A slope at a corner (7 min)
#
# You move a program from one library to another, or the library gets a new release. All calls have the same names, and
# no error is raised. Still the training comes out differently. Usually nothing is broken. Somewhere a definition leaves
# a choice, and two libraries have chosen differently.
#
# The first choice is a slope. A clamp keeps a number between two bounds. It is flat outside them and rises between
# them, and at a bound it has a corner. There are two ways to write it. For every number x they have the same value.

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "05-differences-bound",
    "Two weights start at 0, which is the lower bound. The loss of each is `(bounded(w) - 0.5) ** 2`. "
    "The first `bounded` is `clip(w, 0, 1)`, the second `minimum(maximum(w, 0), 1)`. "
    "Where are the two weights after 100 steps?",
    choices=["both at 0.5", "both at 0", "at 0.5 and at 0", "at 0 and at 0.5"],
)


# %%
def trained(bounded):
    """Return where a weight from 0 has come after 100 steps towards 0.5."""
    w, sgd = Variable(0.0), SGD(0.1)
    for _ in range(100):
        with GradientTape() as tape:
            loss = (bounded(w) - 0.5) ** 2
        sgd.apply_gradients([(tape.gradient(loss, w), w)])
    return w.numpy()


print(f"clip              {trained(lambda w: clip(w, 0.0, 1.0)):.3f}")
print(f"minimum, maximum  {trained(lambda w: minimum(maximum(w, 0.0), 1.0)):.3f}")

# %%
checks.answer_to("05-differences-bound")

# %% [markdown]
# Such a weight is not rare: after each step that leaves the range, many programs put a weight back on the bound. And a
# library may change its mind. The next cell asks the table at the end of this notebook. In it stands what each library
# answered when we ran the line there. `torch.clamp` had the slope 1 at both bounds up to PyTorch 2.13. In 2.14 it has
# 0, so the same program now leaves the weight where it is. JAX writes its clamp as we wrote the second one, but shares
# the slope between equal numbers.

# %%
differences.table("slope_of_clamp_at_its_bounds", "slope_of_maximum_of_equals")

# %% [markdown]
# ## A rate that falls (7 min)
#
# Momentum keeps a velocity `v`. In this course a step is `v = momentum * v - rate * gradient`, and then `w = w + v`.

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "05-differences-rate",
    "SGD has the rate 0.1 and the momentum 0.9. The gradient is 1, and the first step has the length 0.1. Then the rate "
    "falls to 0.01, and the gradient is 1 again. How long is the second step?",
    choices=["0.01", "0.019", "0.1"],
)

# %%
w, sgd = Variable(0.0), SGD(0.1, momentum=0.9)
for rate in (0.1, 0.01):
    before = w.numpy()
    sgd.learning_rate = rate
    sgd.apply_gradients([(ones(()), w)])
    print(f"rate {rate:<4}  a step of {before - w.numpy():.3f}")

# %%
checks.answer_to("05-differences-rate")

# %% [markdown]
# PyTorch takes the rate out of the sum: `v = momentum * v + gradient`, and then `w = w - rate * v`. While the rate
# stays, both rules take the same steps. When it falls, PyTorch's steps get shorter at once:


# %%
def lengths(rates, rate_outside):
    """Return the lengths of the steps that momentum 0.9 takes for gradients of 1."""
    v, found = 0.0, []
    for rate in rates:
        v = 0.9 * v + (1.0 if rate_outside else rate)
        found.append(rate * v if rate_outside else v)
    return " ".join(f"{length:.3f}" for length in found)


for rates in ((0.1, 0.1, 0.1, 0.1), (0.1, 0.01, 0.01, 0.01)):
    print(f"rates {rates}")
    print(f"    here, Keras  {lengths(rates, rate_outside=False)}")
    print(f"    PyTorch      {lengths(rates, rate_outside=True)}")

# %% [markdown]
# So a schedule that was tuned in one library is another schedule in the other. These are the answers of both:

# %%
differences.table("momentum_and_a_new_rate")

# %% [markdown]
# **A good place to stop.** A slope and a rate were choices of a definition. The third choice is an order.
#
# ## A sum of a column (5 min)
#
# Notebook 01 began with a sum of float32 ones. There, NumPy's `sum` was exact, because it adds blocks first. A million
# times 0.1 comes out right, too: 100,000, to the nearest whole number.

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "05-differences-columns",
    "Now there are two columns, an array of the shape [1000000, 2] with 0.1 everywhere. "
    "How far from 100,000 is the sum that `sum(0)` gives for a column?",
    choices=["less than 1", "about 15", "about 1,000"],
)

# %%
pairs = np.full((1_000_000, 2), 0.1, "f")
in_a_row = np.ascontiguousarray(pairs[:, 0])
print(f"NumPy, a row      {in_a_row.sum():,.0f}")
print(f"NumPy, a column   {pairs.sum(0)[0]:,.0f}")
print(f"levels, a column  {reduce_sum(constant(pairs), 0).numpy()[0]:,.0f}")
print(f"NumPy, float64    {pairs.sum(0, dtype='d')[0]:,.0f}")

# %%
checks.answer_to("05-differences-columns")

# %% [markdown]
# The error is one per cent. The gradient of a bias is such a sum: of a column, over the rows of a batch. In float64 you
# will not see its error. PyTorch adds blocks in both directions. Most of these digits depend on the processor, and
# those of NumPy and JAX also on the version:

# %%
differences.table("a_million_tenths", "a_million_tenths_along_the_first_axis")

# %% [markdown]
# ## The table (2 min)
#
# We asked such questions of seven libraries, in two sets of versions. Those on which they differ follow, by what they
# are about; open a group that you use. Each answer has the versions that gave it. Below the answers stands the place in
# the source where the choice is made, where we looked it up, and what `levels` does, and why. The site of the course
# has the whole table on [one page](../../course/author/site/pages/differences.md), with those on which all agree.

# %%
differences.tables()

# %% [markdown]
# To ask the libraries that you have installed, run `python3 -m course programs --differences`. It runs each line and
# prints which answers are not as stored.
#
# You cannot keep all this in mind, and you need not. Keep the places where it happens: a corner, an empty or an
# infinite case, a NaN, a default, the order of a sum, a dtype. When two programs disagree, look there first.

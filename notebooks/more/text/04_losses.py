# %% [markdown]
# # 04 more · Losses
#
# **In this notebook losses take logits, absolute errors, several classes and sample weights.**
#
# You need notebook 04 for this (`Loss`, `call`, `BinaryCrossentropy`). The code is that of
# `levels_more/mid_level/losses.py`.

# %%
from course import build
from course.figures import page

build.watch("more/04_losses")

# %% tags=["hide-input"]
# The imports of this notebook: you may skip this cell.
import numpy as np

from levels.support.checks import lookup
from levels_more.low_level import GradientTape, Variable
from levels_more.mid_level import LOSSES, BinaryCrossentropy, Loss, MeanSquaredError, losses
from levels_more.mid_level.losses import (
    CategoricalCrossentropy,
    Crossentropy,
    MeanAbsoluteError,
    SparseCategoricalCrossentropy,
    check_classes,
    weighted,
)

# %% [markdown]
# ## A loss for logits (4 min)
#
# The cross-entropy of notebook 04 clips p to the range from 1e-7 to 1 - 1e-7, so that the loss stays finite.
# ([PyTorch's documentation of `BCELoss`](https://docs.pytorch.org/docs/stable/generated/torch.nn.BCELoss.html) gives
# the same reason for its own limit.) But look at the gradient of a model that is certain of the wrong answer:

# %%
wrong = Variable([[0.0]])
with GradientTape() as tape:
    loss = BinaryCrossentropy()(np.array([[1.0]], "f4"), wrong)
print(f"loss {float(loss):.4f}, gradient {float(tape.gradient(loss, wrong)):.4f}")

# %% [markdown]
# Where p is clipped, the loss does not depend on it, so the gradient is 0. The model learns nothing from its worst
# mistake.
#
# That is why there is a second form of this loss. It takes the number that goes into the sigmoid, the **logit** z.
# Sigmoid and logarithm partly cancel: for y = 1 what remains is log(1 + exp(-z)). The op `logits_crossentropy` computes
# `exp(-maximum(z, -z))`, whose exponent is minus the absolute value of z. So the argument of `exp` is never above 0,
# and nothing overflows, whatever z is.
#
# The core's `BinaryCrossentropy` has no argument `from_logits`. Its subclass in `levels_more.mid_level` has one. A
# logit may be any number, so this class checks only the truth, and then computes:

# %%
page.source(Crossentropy.check, losses.BinaryCrossentropy.call)

# %%
wrong = Variable([[-50.0]])
with GradientTape() as tape:
    loss = BinaryCrossentropy(from_logits=True)(np.array([[1.0]], "f4"), wrong)
print(f"loss {float(loss):.4f}, gradient {float(tape.gradient(loss, wrong)):.4f}")

# %% [markdown]
# At z = -50 the model is as wrong as before. But now the loss is 50 and the gradient is -1: raising z by 1 lowers the
# loss by 1.
#
# ## A weight for each sample (3 min)
#
# Some samples should count more than others. The loss of each sample is multiplied by the sample's weight, before the
# mean is taken:

# %%
page.source(weighted)

# %%
mse, truth, guess = MeanSquaredError(), np.array([[1.0], [2.0]]), np.array([[1.5], [4.0]])
print(
    float(mse(truth, guess)),
    "and, with weight 0 for the second sample,",
    float(mse(truth, guess, np.array([1.0, 0.0]))),
)

# %% [markdown]
# The squared errors are 0.25 and 4, and their mean is 2.125. With weight 0 for the second, the loss is 0.125 and not
# 0.25, because the sum is still divided by two samples. (The `reshape` turned the weights of shape [2] into [2, 1], so
# that each weight belongs to a row and not to a column.)
#
# ## Errors and classes (7 min)
#
# The absolute error gives large mistakes less influence than the squared error does. And with more than two classes,
# the model gives one probability per class. The truth can then be written in two ways. The first is a row that says how
# much of each class there is:

# %%
page.source(MeanAbsoluteError, CategoricalCrossentropy)

# %%
chances = [[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]]
print(f"{float(CategoricalCrossentropy()([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], chances)):.4f}")

# %% [markdown]
# The second is the number of the class. The loss is that of the corresponding one-hot row. It needs one more check,
# because a number may be no class at all.

# %%
page.source(check_classes, SparseCategoricalCrossentropy)

# %%
classes = np.array([0, 1])
print(f"{float(SparseCategoricalCrossentropy()(classes, chances)):.4f}", -np.log([0.7, 0.1]).mean().round(4))

# %% [markdown]
# Both forms of the truth give the same loss, the mean of -log 0.7 and -log 0.1. A loss can also be chosen by its name.
# The core has three names. The table of `levels_more.mid_level` has more, and it falls back on the core's table:

# %%
print(lookup("loss", LOSSES, "mae").__name__, *LOSSES, sep="\n")

# %% [markdown]
# ## Exercises (10 min)
#
# ### 04-2 · A loss for data with outliers
#
# Suppose that one number in a table is wrong, such as a mass in grams among kilograms. Then this one row dominates the
# squared error, because its gradient grows with the error. The loss of [Huber,
# 1964](https://doi.org/10.1214/aoms/1177703732) is a parabola for errors up to 1, and a straight line beyond. The two
# parts meet without a jump and without a kink:
#
# ```
# error            -3     -2     -1      0      1      2      3
# ½·error²          ·      ·    0.5      0    0.5      ·      ·      while |error| ≤ 1
# |error| - ½     2.5    1.5    0.5      ·    0.5    1.5    2.5      beyond
# ```
#
# (About 4 lines. Hint: level 3 has `where(condition, a, b)`, and the absolute value of an error is `where(error > 0.0,
# error, -error)`. Which class takes the mean and applies the sample weights, yours or its base class?)

# %%
from course.practice import exercises

exercises.begin("04-2")


class Huber(Loss):
    """mean(½·error² where |error| ≤ 1, else |error| - ½), with error = y_pred - y_true"""

    def call(self, y_true, y_pred):
        """The loss of each number, shaped like y_pred."""
        return ...


exercises.check("04-2", Huber)

# %% [markdown]
# How large can the gradient of this loss become, for one sample?
#
# ### Without a check
#
# - Put a mass of 5,000 among the kilograms of notebook 04. How far does it move a line that is trained with `MeanSquaredError`, and
#   how far one that is trained with `Huber`?

# %% [markdown]
# # 04 more · Losses
#
# **In this notebook a loss takes logits, absolute errors, several classes and weights of samples.**
#
# Needs notebook 04: `Loss`, `call`, `BinaryCrossentropy`. It takes `levels_more/mid_level/losses.py` apart.

# %%
from course import build
from course.figures import page

build.watch("more/04_losses")

# %% tags=["hide-input"]
import numpy as np

from levels.support.checks import known
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
# ## The worst mistake has to teach (4 min)
#
# The cross-entropy of notebook 04 keeps p within 1e-7 and 1 - 1e-7. So the loss stays finite ([PyTorch's documentation of
# `BCELoss`](https://docs.pytorch.org/docs/stable/generated/torch.nn.BCELoss.html) gives the same reason for a limit). But look at
# the gradient of a model that is certain of the opposite:

# %%
wrong = Variable([[0.0]])
with GradientTape() as tape:
    loss = BinaryCrossentropy()(np.array([[1.0]], "f4"), wrong)
print(f"loss {float(loss):.4f}, gradient {float(tape.gradient(loss, wrong)):.4f}")

# %% [markdown]
# Where p is cut off, nothing depends on it: the worst mistake of all teaches nothing.
#
# That is why there is a second form. It takes the number that goes into the sigmoid, the **logit** z. Sigmoid and logarithm
# cancel: for y = 1 what remains is log(1 + exp(-z)). The code writes that with the size of z, `maximum(z, -z)`, in the exponent.
# So `exp` is never asked for more than exp(0) = 1, and nothing overflows, whatever z is. The core's `BinaryCrossentropy` knows no
# argument `from_logits`. That of `levels_more.mid_level`, a subclass, does. It looks at the truth alone, for a logit may be any
# number, and then computes:

# %%
page.source(Crossentropy.check, losses.BinaryCrossentropy.call)

# %%
wrong = Variable([[-50.0]])
with GradientTape() as tape:
    loss = BinaryCrossentropy(from_logits=True)(np.array([[1.0]], "f4"), wrong)
print(f"loss {float(loss):.4f}, gradient {float(tape.gradient(loss, wrong)):.4f}")

# %% [markdown]
# At z = -50 the model is as wrong as before. The loss is 50, and the gradient -1: each unit more of z takes one off the loss.
#
# ## A weight for each sample (3 min)
#
# Some samples count more than others. What each sample gives is multiplied by its weight, before the mean:

# %%
page.source(weighted)

# %%
mse, truth, guess = MeanSquaredError(), np.array([[1.0], [2.0]]), np.array([[1.5], [4.0]])
print(
    float(mse(truth, guess)), "and, the second sample without a weight,", float(mse(truth, guess, np.array([1.0, 0.0])))
)

# %% [markdown]
# The squares are 0.25 and 4, and their mean is 2.125. Without the 4 the mean is 0.125, and not 0.25: it is still one over two
# samples. (The `reshape` made [2, 1] of the weights [2], so that each goes with a row and not with a column.)
#
# ## Errors and classes (8 min)
#
# The absolute error counts a large mistake less than its square does. And for more than two classes there is one probability for
# each. The truth is then one of two things. It may be a row that says how much of each class it is:

# %%
page.source(MeanAbsoluteError, CategoricalCrossentropy)

# %%
chances = [[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]]
print(f"{float(CategoricalCrossentropy()([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], chances)):.4f}")

# %% [markdown]
# Or it is the number of the class. That is the same loss of a one-hot row, and a check of its own: numbers that are no classes.

# %%
page.source(check_classes, SparseCategoricalCrossentropy)

# %%
classes = np.array([0, 1])
print(f"{float(SparseCategoricalCrossentropy()(classes, chances)):.4f}", -np.log([0.7, 0.1]).mean().round(4))

# %% [markdown]
# The same truth said in two ways, and the same loss: the mean of -log 0.7 and -log 0.1. Losses have names too. The core has three.
# The table of `levels_more.mid_level` has more, and finds those of the core behind its own:

# %%
print(known("loss", LOSSES, "mae"), *LOSSES, sep="\n")

# %% [markdown]
# ## Exercises (10 min)
#
# ### 04-2 · A loss for data with outliers
#
# One wrong number in a table, a mass in grams among kilograms, and the squared error looks at nothing else: its gradient grows
# with the error. The loss of [Huber, 1964](https://doi.org/10.1214/aoms/1177703732) follows the square up to an error of 1, and
# from there on a straight line. The two meet without a step, and without a kink:
#
# ```
# error            -3     -2     -1      0      1      2      3
# ½·error²          ·      ·    0.5      0    0.5      ·      ·      while |error| ≤ 1
# |error| - ½     2.5    1.5    0.5      ·    0.5    1.5    2.5      beyond
# ```
#
# (About 4 lines. Hint: level 3 has `where(condition, a, b)`, and the size of an error is `where(error > 0.0, error, -error)`.
# Who takes the mean, and who looks after the weights of the samples?)

# %%
from course.practice import exercises

exercises.begin("04-2")


class Huber(Loss):
    """mean(½·error² where |error| ≤ 1, else |error| - ½), with error = y_pred - y_true"""

    def call(self, y_true, y_pred):
        """What each number gives, shaped like y_pred."""
        return ...


exercises.check("04-2", Huber)

# %% [markdown]
# How large can its gradient become, for one sample?
#
#
# ### Without a check
#
# - Put a mass of 5,000 among the kilograms of notebook 04. How far does it move a line that is trained with `MeanSquaredError`, and
#   how far one that is trained with `Huber`?

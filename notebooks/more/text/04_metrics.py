# %% [markdown]
# # 04 more · Losses and metrics
#
# **In this notebook losses take logits, classes and sample weights, and a metric adds up over batches and divides
# only at the end.**
#
# You need notebook 04 for this (`Loss`, `call`, `BinaryCrossentropy`, `Variable`, `function`). The code is that of
# `losses.py` and `metrics.py` in `levels_more/mid_level/`.

# %%
from course import build
from course.reader import checks
from course.reader.figures import page

build.watch("more/04_metrics")

# %% tags=["hide-input"]
# The imports of this notebook: you may skip this cell.
import numpy as np

from levels.support.checks import lookup
from levels_more.low_level import GradientTape, Variable, function
from levels_more.mid_level import LOSSES, Loss, losses
from levels_more.mid_level.base_metric import Metric, ratio
from levels_more.mid_level.losses import (
    BinaryCrossentropy,
    CategoricalCrossentropy,
    Crossentropy,
    MeanSquaredError,
    SparseCategoricalCrossentropy,
    weighted,
)
from levels_more.mid_level.metrics import (
    AUC,
    METRICS,
    BinaryAccuracy,
    CategoricalAccuracy,
    Mean,
    MeanLoss,
    Precision,
    R2Score,
    Recall,
    SparseCategoricalAccuracy,
)

# %% [markdown]
# ## A loss for logits (4 min)
#
# The cross-entropy of notebook 04 clips p to the range from 1e-7 to 1 - 1e-7, so that the loss stays finite.
# ([PyTorch's documentation of `BCELoss`](https://docs.pytorch.org/docs/stable/generated/torch.nn.BCELoss.html) gives
# the same reason for its own limit.) But look at the gradient of a model that is certain of the wrong answer:


# %%
def of_a_mistake(loss, said):
    """Print the loss of a 1 for which the model said this, and its gradient."""
    wrong = Variable([[said]])
    with GradientTape() as tape:
        value = loss(np.array([[1.0]], "f4"), wrong)
    slope = tape.gradient(value, wrong)
    print(f"loss {float(value):.4f}, gradient {float(slope):.4f}")


of_a_mistake(BinaryCrossentropy(), 0.0)

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
of_a_mistake(BinaryCrossentropy(from_logits=True), -50.0)

# %% [markdown]
# At z = -50 the model is as wrong as before. But now the loss is 50 and the gradient is -1: raising z by 1 lowers the
# loss by 1.
#
# ## Several classes (5 min)
#
# With more than two classes, the model gives one probability per class. The truth can then be written in two ways. The
# first is a row that says how much of each class there is:

# %%
page.source(CategoricalCrossentropy.call)

# %%
chances = [[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]]
rows = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
print(f"{float(CategoricalCrossentropy()(rows, chances)):.4f}")

# %% [markdown]
# The second is the number of the class. The loss is that of the corresponding one-hot row. Its check looks at each
# number, because a number may be no class at all.

# %%
page.source(SparseCategoricalCrossentropy)

# %%
classes = np.array([0, 1])
print(f"{float(SparseCategoricalCrossentropy()(classes, chances)):.4f}")
print(f"{-np.log([0.7, 0.1]).mean():.4f}")

# %% [markdown]
# Both forms of the truth give the same loss, the mean of -log 0.7 and -log 0.1. A loss can also be chosen by its name.
# The core has three names. The table of `levels_more.mid_level` has more, such as `"mae"` for the mean absolute error,
# which gives large mistakes less influence than the squared error does:

# %%
print(lookup("loss", LOSSES, "mae").__name__, *LOSSES, sep="\n")

# %% [markdown]
# ## A weight for each sample (3 min)
#
# Some samples should count more than others. The loss of each sample is multiplied by the sample's weight, before the
# mean is taken:

# %%
page.source(weighted)

# %%
mse = MeanSquaredError()
truth, guess = np.array([[1.0], [2.0]]), np.array([[1.5], [4.0]])
print(float(mse(truth, guess)))
print(float(mse(truth, guess, np.array([1.0, 0.0]))), "with weight 0 for the second")

# %% [markdown]
# The squared errors are 0.25 and 4, and their mean is 2.125. With weight 0 for the second, the loss is 0.125 and not
# 0.25, because the sum is still divided by two samples. (The `reshape` turned the weights of shape [2] into [2, 1], so
# that each weight belongs to a row and not to a column.)
#
# **A good place to stop.** A loss takes probabilities, logits or classes, and a weight for each sample.
#
# ## How good is it? (14 min)
#
# A loss is chosen for its gradient. People want to know something else: what share of the answers is right? That share
# is the **accuracy**. No model can be trained on it, because a small change of a weight does not change it, and so its
# gradient is 0.
#
# The accuracy has to be computed from batches, and the last batch is often shorter than the others.

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "04-metrics-last-batch",
    "101 rows come in batches of 100. In the first batch 90 rows are right; in the "
    "second, the only row is wrong. A progress bar shows the mean of the two "
    "accuracies. How far is that from the accuracy over all rows?",
    choices=["0.001", "0.01", "0.44"],
)

# %%
print("the mean of the two:", (90 / 100 + 0 / 1) / 2)
print(f"over all rows: {90 / 101:.3f}")

# %%
checks.answer_to("04-metrics-last-batch")

# %% [markdown]
# So a **metric** does not store accuracies. It stores two sums: the number of rows so far, and how many of them were
# right. It divides only when it is asked for its result. All metrics work in this way. They add something up, batch
# after batch, and a formula turns the sums into one number. `ratio` is the usual formula, and gives 0 where there is
# nothing to divide by.
#
# The base class holds what all metrics share. `update_state` calls `parts` for what each row contributes, and adds that
# up with `sums`. It asks `added` what of it goes into the state, and adds that. `result` applies the `formula` to the
# state. A new metric defines `parts`, and overrides any of the other three if it needs to.
#
# In float32 a plain sum of ones would stop at 2²⁴, as in notebook 01. So a second variable, `lost`, holds what each
# addition lost to rounding, and the next addition adds it again
# ([Kahan, 1965](https://doi.org/10.1145/363707.363723)).

# %%
page.source(ratio, Metric.update_state, Metric.sums, Metric.added, Metric.formula)

# %% [markdown]
# A single metric then takes only a few lines. The accuracy adds up a 1 for each right answer and a 0 for each wrong
# one:

# %%
page.source(BinaryAccuracy)

# %%
accuracy, truth = BinaryAccuracy(), np.ones((101, 1), "f4")
said = np.array([[0.8]] * 90 + [[0.3]] * 11, "f4")
for rows in (slice(0, 100), slice(100, 101)):
    share = accuracy(truth[rows], said[rows])
    print(f"accuracy {share:.3f}, from", *(v.numpy() for v in accuracy.state))

# %% [markdown]
# After the second batch the state holds 101 rows and 90 right answers, so the accuracy is the true one.
#
# The sums are variables, so a metric is a module, too. It may be part of a compiled step, where it adds two sums to a
# loop that runs anyway. Here are the same rows again, in batches of ten, with the last row alone:

# %%
accuracy.reset_state()


@function
def judge(y_true, y_pred):
    accuracy.update_state(y_true, y_pred)


judge.over(truth, said, [*np.arange(100).reshape(10, 10), [100]])
print(f"accuracy {accuracy.result():.3f}")

# %% [markdown]
# `Mean` follows the same pattern and averages whatever it is given. Every loss can also serve as a metric: the metric
# is its mean over all samples, however these are split into batches.

# %%
mean, squared = Mean(), MeanLoss(MeanSquaredError())
print(mean([1.0, 2.0]), mean(6.0), squared([[1.0], [2.0]], [[1.0], [4.0]]))

# %% [markdown]
# **A good place to stop.** A metric adds up over batches, and divides at the end.
#
# ## Right, found, missed (8 min)
#
# With more than two classes, the model's answer is the class with the largest number in the row.

# %%
page.source(CategoricalAccuracy, SparseCategoricalAccuracy)

# %%
print(SparseCategoricalAccuracy()(classes, chances))

# %% [markdown]
# For the first row the answer is class 0, which is right. For the second it is class 2, which is wrong.
#
# With two classes there are two kinds of mistake: a false alarm, and a case that is missed. Each kind has its own
# metric. **Precision** asks: of the rows called 1, what share is 1? **Recall** asks: of the rows that are 1, what share
# was called 1?

# %%
page.source(Precision, Recall)

# %%
truth, said = np.array([1, 1, 1, 1, 0]), np.array([0.9, 0.8, 0.2, 0.3, 0.6])
for metric in (BinaryAccuracy(), Precision(), Recall()):
    print(f"{metric.name:16} {metric(truth, said):.3f}")

# %% [markdown]
# Three rows were called 1, and two of them are 1: the precision is 2/3. Four rows are 1, and two of them were found:
# the recall is 1/2.
#
# Precision and recall depend on the threshold. The **AUC** looks at all thresholds at once. It is the area under the
# ROC curve, which plots recall against the share of false alarms. An area of 1 is perfect, and guessing gives 0.5. One
# matrix product counts, for each threshold, the ones and the zeros that were called 1:

# %%
page.source(AUC.parts, AUC.sums, AUC.formula)

# %%
print(f"AUC {AUC()(truth, said):.3f}")

# %% [markdown]
# ## How much is explained? (4 min)
#
# **R²** is the share of the variance that a model explains. 1 is perfect, and always predicting the mean of the truths
# gives 0. A variance can be computed from the two sums Σy² and Σy. But for numbers far from 0, the difference of those
# sums has few correct digits left. So here each batch contributes its own mean and its own spread around that mean, and
# the formula of [Chan, Golub and LeVeque, 1983](https://doi.org/10.1080/00031305.1983.10483115) combines two such pairs
# into one.

# %%
page.source(R2Score)

# %%
far, score = 1e8 + np.arange(4.0).reshape(4, 1), R2Score()
for rows in (slice(0, 2), slice(2, 4)):
    score.update_state(far[rows], far[rows] + 0.5)
print("R² is", score.result())
print("the spread is", score.state[2].numpy()[0])
print("as a difference of two sums:", (far**2).sum() - far.sum() ** 2 / 4)

# %% [markdown]
# The difference of two sums is 8, but the true spread is 5: squares of numbers near 10⁸ have no digits left for such a
# small difference.
#
# Metrics have short names, too. The name "accuracy" stands for one of three metrics, and the shapes decide which, as in
# Keras. A metric that is made from a loss has the same name as the loss: `METRICS["mse"]()`.

# %%
print(*METRICS, sep="\n")

# %% [markdown]
# ## Exercises (10 min, optional)
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
from course.reader import exercises

exercises.begin("04-2")


class Huber(Loss):
    """mean(½·error² where |error| ≤ 1, else |error| - ½), error = y_pred - y_true"""

    def call(self, y_true, y_pred):
        """The loss of each number, shaped like y_pred."""
        return ...


exercises.check("04-2", Huber)

# %% [markdown]
# How large can the gradient of this loss become, for one sample?
#
# ### 04-4 · A metric with a state
#
# Suppose that three of a hundred letters are spam. A filter that never says "spam" is right in 97 % of all cases, and
# useless. **F1** counts only the cases that are 1 or were called 1 ([Dice, 1945](https://doi.org/10.2307/1932409), used
# the same formula for species that live together):
#
# ```
# y_true        1  1  1  1  0  0  0  0  0  0       true    4
# called 1      1  1  1  0  1  1  0  0  0  0       called  5
# both          1  1  1  0  0  0  0  0  0  0       right   3    F1 = 2·3 / (5 + 4) = 0.667
# ```
#
# A metric sees one batch at a time, and a batch may hold no spam at all. (About 5 lines. Hint: `BinaryAccuracy` has a
# method `said`, and `ratio` gives 0 where there is nothing to divide by.)

# %%
from course.reader import exercises
from levels_more.mid_level.base_metric import ratio
from levels_more.mid_level.metrics import BinaryAccuracy

exercises.begin("04-4")


class F1(BinaryAccuracy):
    """2·right / (called + true) over all batches; 0 if nothing is or was called 1."""

    def parts(self, y_true, y_pred):
        """The numbers to add up, row by row: tensors shaped like y_pred."""
        return ...

    def formula(self, count, called, true, right):
        return ...


exercises.check("04-4", F1)

# %% [markdown]
# ### Without a check
#
# - Put a mass of 5,000 among the kilograms of notebook 04. How far does it move a line that is trained with
#   `MeanSquaredError`, and how far one that is trained with `Huber`?

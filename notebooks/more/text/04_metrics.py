# %% [markdown]
# # 04 more · Metrics
#
# **In this notebook a metric adds up numbers over batches, and divides only when it is asked for its result.**
#
# You need notebook 04 for this (losses, `Variable`, `function`). The code is that of
# `levels_more/mid_level/metrics.py`.

# %%
from course import build
from course.figures import page
from course.practice import checks

build.watch("more/04_metrics")

# %% tags=["hide-input"]
# The imports of this notebook: you may skip this cell.
import numpy as np

from levels_more.low_level import function
from levels_more.mid_level import MeanSquaredError
from levels_more.mid_level.base_metric import Metric, ratio, snake_case
from levels_more.mid_level.metrics import (
    AUC,
    METRICS,
    AccuracyByShape,
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
# ## How good is it? (19 min)
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
    "101 rows come in batches of 100. In the first batch 90 rows are right; in the second, the only row is wrong. A progress bar "
    "shows the mean of the two accuracies. How far is that from the accuracy over all rows?",
    choices=["0.001", "0.01", "0.44"],
)

# %%
print(f"the mean of the two: {(90 / 100 + 0 / 1) / 2}, over all rows: {90 / 101:.3f}")

# %%
checks.answer_to("04-metrics-last-batch")

# %% [markdown]
# So a **metric** does not store accuracies. It stores two sums: the number of rows so far, and how many of them were
# right. It divides only when it is asked for its result. All metrics work in this way: they add something up, batch
# after batch, and a formula turns the sums into one number. Two small functions come first. One makes a metric's name
# from that of its class; the other divides, and gives 0 where there is nothing to divide by:

# %%
page.source(snake_case, ratio)

# %%
print(snake_case("BinaryAccuracy"), ratio(np.array([3.0]), np.array([4.0])), ratio(np.array([0.0]), np.array([0.0])))

# %% [markdown]
# This base class holds what all metrics share. `update_state` calls `parts` for what each row contributes, adds that up
# with `sums`, asks `added` what of it goes into the state, and adds that. `result` applies the `formula` to the state. A
# new metric defines `parts`, and overrides any of the other three if it needs to. (Both arguments are first converted
# to one dtype.)
#
# In float32 a plain sum of ones would stop at 2²⁴, as in notebook 01. So a second variable, `lost`, holds what each
# addition lost to rounding, and the next addition adds it again
# ([Kahan, 1965](https://doi.org/10.1145/363707.363723)).

# %%
page.source(Metric)

# %% [markdown]
# A single metric then takes only a few lines. The accuracy adds up a 1 for each right answer and a 0 for each wrong
# one:

# %%
page.source(BinaryAccuracy)

# %%
accuracy, truth = BinaryAccuracy(), np.ones((101, 1), "f4")
said = np.array([[0.8]] * 90 + [[0.3]] * 11, "f4")
for rows in (slice(0, 100), slice(100, 101)):
    print(f"accuracy {accuracy(truth[rows], said[rows]):.3f}, from", *(v.numpy() for v in accuracy.state))

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
# **A good place to stop.** A metric adds up over batches, and divides at the end.

# %% [markdown]
# ## The same pattern again (20 min)
#
# `Mean` follows the same pattern and averages whatever it is given. Every loss can also serve as a metric: the metric
# is its mean over all samples, however these are split into batches.

# %%
page.source(Mean, MeanLoss)

# %%
mean, squared = Mean(), MeanLoss(MeanSquaredError())
print(mean([1.0, 2.0]), mean(6.0), squared([[1.0], [2.0]], [[1.0], [4.0]]))

# %% [markdown]
# With more than two classes, the model's answer is the class with the largest number in the row.

# %%
page.source(CategoricalAccuracy, SparseCategoricalAccuracy)

# %%
print(SparseCategoricalAccuracy()(np.array([0, 1]), [[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]]))

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
# ROC curve, which plots recall against the share of false alarms. An area of 1 is perfect, and guessing gives 0.5.

# %%
page.source(AUC)

# %%
print(f"AUC {AUC()(truth, said):.3f}")

# %% [markdown]
# **A good place to stop.** You can count what is right and what is found, at one threshold or at all of them.

# %% [markdown]
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
print(
    "the spread is", score.state[2].numpy()[0], "and, as a difference of two sums,", (far**2).sum() - far.sum() ** 2 / 4
)

# %% [markdown]
# The difference of two sums is 8, but the true spread is 5: squares of numbers near 10⁸ have no digits left for such a
# small difference.
#
# Metrics have short names, too. The name "accuracy" stands for one of three metrics, and the shapes decide which, as in
# Keras. A metric that is made from a loss has the same name as the loss. In Keras that is no problem, because
# `losses.MeanSquaredError` and `metrics.MeanSquaredError` are in two modules. In a notebook each name can mean only one
# thing, so here the metric is `METRICS["mse"]()`. The module `metrics.py` offers both spellings: Python calls a
# module's `__getattr__` for a name that the module does not define ([PEP 562](https://peps.python.org/pep-0562/)).

# %%
page.source(AccuracyByShape)

# %%
print(*METRICS, sep=", ")

# %% [markdown]
# ## Exercises (10 min)
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
from course.practice import exercises
from levels_more.mid_level.base_metric import ratio
from levels_more.mid_level.metrics import BinaryAccuracy

exercises.begin("04-4")


class F1(BinaryAccuracy):
    """2·right / (called + true), over all batches; 0 if nothing is 1 and nothing was called 1."""

    def parts(self, y_true, y_pred):
        """The numbers to add up, row by row: tensors shaped like y_pred."""
        return ...

    def formula(self, count, called, true, right):
        return ...


exercises.check("04-4", F1)

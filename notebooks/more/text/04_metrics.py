# %% [markdown]
# # 04 more · Metrics
#
# **In this notebook a metric adds up over batches, and divides when somebody asks.**
#
# Needs notebook 04: losses, `Variable`, `function`. It takes `levels_more/mid_level/metrics.py` apart.

# %%
from course import build
from course.figures import page
from course.practice import checks

build.watch("more/04_metrics")

# %% tags=["hide-input"]
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
# A loss is made for its gradient. People ask another thing: how many are right? That is the **accuracy**. Nothing could be
# trained on it, for it does not change when a weight changes a little, and so its gradient is 0.
#
# The answer has to be put together from batches, and the last batch is often shorter.

# %% tags=["hide-input"]
checks.predict(
    "101 rows in batches of 100. 90 rows of the first batch are right, and the last row is wrong. A progress bar shows the mean "
    "of the two batches' accuracies. How far is that from the accuracy over all rows?",
    choices=["0.001", "0.01", "0.44"],
    answer="0.44",
    because="0.9 and 0 have the mean 0.45. But 90 of 101 rows are right, 0.891: in the mean one row counts as much as a hundred.",
)

# %% [markdown]
# So a **metric** keeps no accuracies. It keeps two sums, how many rows there were and how many of them were right, and it
# divides when somebody asks. All metrics are made so: they add something up, batch after batch, and a formula makes one
# number of the sums. Two small things first, how a metric gets its name, and how one divides where there may be nothing:

# %%
page.source(snake_case, ratio)

# %%
print(snake_case("BinaryAccuracy"), ratio(np.array([3.0]), np.array([4.0])), ratio(np.array([0.0]), np.array([0.0])))

# %% [markdown]
# Here is what metrics share. `update_state` asks `parts` what each row gives, makes `sums` of it, and has them `merged` with the
# state. `result` hands the state to the `formula`. A new metric writes `parts`, and of the other three what it does differently.
# (Both arguments are brought to one dtype first.)

# %%
page.source(Metric)

# %% [markdown]
# One metric is then a few lines. What does accuracy add up? A 1 for each right answer and a 0 for each wrong one:

# %%
page.source(BinaryAccuracy)

# %%
accuracy, truth = BinaryAccuracy(), np.ones((101, 1), "f4")
said = np.array([[0.8]] * 90 + [[0.3]] * 11, "f4")
for rows in (slice(0, 100), slice(100, 101)):
    print(f"accuracy {accuracy(truth[rows], said[rows]):.3f}, from", *(v.numpy() for v in accuracy.state))

# %% [markdown]
# After the second batch the state holds 101 rows and 90 right ones, and the accuracy is the true one.
#
# The sums are variables, so a metric is a module too, and it may stand inside a compiled step, where it is two more sums in a
# loop that runs anyway. The same rows in tens, and the last one alone:

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
# ## The same pattern again (21 min)
#
# The same pattern again. `Mean` adds up what it is given. And every loss can be a metric: its mean over all samples, however
# they came in batches.

# %%
page.source(Mean, MeanLoss)

# %%
mean, squared = Mean(), MeanLoss(MeanSquaredError())
print(mean([1.0, 2.0]), mean(6.0), squared([[1.0], [2.0]], [[1.0], [4.0]]))

# %% [markdown]
# With more than two classes, the largest of a row's numbers is the answer that counts.

# %%
page.source(CategoricalAccuracy, SparseCategoricalAccuracy)

# %%
print(SparseCategoricalAccuracy()(np.array([0, 1]), [[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]]))

# %% [markdown]
# The first row is called class 0, which is right, the second class 2, which is not.
#
# With two classes there are two kinds of mistake, seeing what is not there and missing what is, and each has a metric of its own:
# **precision** is the share of right ones among what was called 1, **recall** the share of those called 1 among what is 1.

# %%
page.source(Precision, Recall)

# %%
truth, said = np.array([1, 1, 1, 1, 0]), np.array([0.9, 0.8, 0.2, 0.3, 0.6])
for metric in (BinaryAccuracy(), Precision(), Recall()):
    print(f"{metric.name:16} {metric(truth, said):.3f}")

# %% [markdown]
# Three were called 1, and two of them are: precision 2/3. Four are 1, and two of them were found: recall 1/2.
#
# Both depend on the threshold. The **AUC** looks at all thresholds at once. It is the area under a curve: recall over the share
# of false alarms, the ROC curve. An area of 1 is perfect, and guessing has 0.5.

# %%
page.source(AUC)

# %%
print(f"AUC {AUC()(truth, said):.3f}")

# %% [markdown]
# **A good place to stop.** You can count what is right and what is found, at one threshold or at all of them.

# %% [markdown]
# **R²** is the share of the variance that a model explains: 1 is perfect, 0 is what the mean of all truths would reach. A
# variance could be made of two sums, Σy² and Σy, but for numbers far from 0 their difference has few digits left. So here
# each batch brings its own mean and its own spread around it, and [Chan, Golub and LeVeque,
# 1983](https://doi.org/10.1080/00031305.1983.10483115) tell how two of those become one.

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
# The difference of two sums is 8, and the true spread 5: at 10⁸ the squares have no digits left for it.
#
# Metrics have short names too. "accuracy" is one of three, told apart by the shapes, as in Keras. A loss gives its name to its
# metric, and that is a trouble: `losses.MeanSquaredError` and `metrics.MeanSquaredError` are two things in Keras, while in a
# notebook a name means one. Here the metric is `METRICS["mse"]()`. The module that is built from this room can do better: what
# is asked of a module and not found, its `__getattr__` may provide ([PEP 562](https://peps.python.org/pep-0562/)).

# %%
page.source(AccuracyByShape)

# %%
print(*METRICS, sep=", ")

# %% [markdown]
# ## Exercises (10 min)
#
# ### 04-4 · A metric with a state
#
# Of a hundred letters three are spam. A filter that never says "spam" is right in 97 % of all cases, and useless. **F1** looks
# only at what is 1 or was called 1 ([Dice, 1945](https://doi.org/10.2307/1932409), had the same formula for species that live
# together):
#
# ```
# y_true        1  1  1  1  0  0  0  0  0  0       true    4
# called 1      1  1  1  0  1  1  0  0  0  0       called  5
# both          1  1  1  0  0  0  0  0  0  0       right   3    F1 = 2·3 / (5 + 4) = 0.667
# ```
#
# A metric sees one batch at a time, and a batch may hold no spam at all. (About 5 lines. Hint: `BinaryAccuracy` has `said`, and
# `ratio` gives 0 where there is nothing to divide by.)

# %%
from course.practice import exercises
from levels_more.mid_level.base_metric import ratio
from levels_more.mid_level.metrics import BinaryAccuracy

exercises.begin("04-4")


class F1(BinaryAccuracy):
    """2·right / (called + true), over all batches; 0 where nothing is 1 and nothing was called 1."""

    def parts(self, y_true, y_pred):
        """What is added up, row by row: tensors shaped like y_pred."""
        return ...

    def formula(self, count, called, true, right):
        return ...


exercises.check("04-4", F1)

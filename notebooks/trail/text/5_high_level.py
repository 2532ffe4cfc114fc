# %% [markdown]
# # Trail 5 · High-level API
#
# **In this notebook you write the loop inside `fit`, train a net, compare all five levels, and follow one step from
# `fit` down to the multiply.**
#
# Everybody writes the same training loop. So Keras makes it a method of the model, `fit`. If you write it once, you
# know what it does and how to change it.

# %% tags=["hide-input"]
# setup: run me
from course import build, figures, tasks
from course.reader import checks, trail

build.watch("trail/5_high_level")
figures.you_are_here(5)

# %% [markdown]
# ## A surprise to begin with (6 min)
#
# Now all levels train the line once more, and we measure the time.

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "5-slowest",
    "All five take the same 8,000 steps. On which level does a step take longest?",
    choices=["1, the instructions", "2, the launches", "3, the tape", "5, `fit`"],
)

# %% tags=["nbval-ignore-output"]
import time

import numpy as np

from levels import hardware, high_level, kernels, low_level, mid_level

task = tasks.linear()
given = *task[:2], *task[4:7]  # x, y, weights, batches, rate
levels = hardware, kernels, low_level, mid_level, high_level
for level in levels:
    train = level.tasks.linear_regression
    train(*given[:3], given[3][:10], given[4])  # ten steps compile the kernels
    start = time.perf_counter()
    loss = train(*given).losses[-1]
    taken = (time.perf_counter() - start) / 8000
    print(f"{level.__name__:17} {taken * 1e6:6.2f} µs per step, ", end="")
    print(f"last loss {loss:.4g} ({loss.hex()})")

# %%
checks.answer_to("5-slowest")

# %% [markdown]
# They all end on the same bits. Levels 3 to 5 take longer than level 1: before their program runs, they trace the step
# and compile it.
#
# ## The loop (9 min)
#
# An **epoch** shows the model every row once. Each step gives the mean loss of its batch, and the last batch may be
# shorter than the others. What is the mean over all rows? Use the `dot` of level 1: it multiplies two lists number by
# number, and adds the products in their order. (`losses.tolist()` makes a list of the losses.)

# %%
from levels.hardware import dot

dot([1.0, 4.0], [30, 10])


# %%
#| blank epoch_loss
def epoch_loss(losses, rows):
    """The mean over all rows: step k had a mean loss of losses[k] over rows[k] rows."""
    ...  # 1 line


# %% [markdown]
# <details><summary>Hint</summary>A batch of 30 rows counts three times as much as one of 10. So add up losses[k] ·
# rows[k], which <code>dot</code> does, and divide by the number of all rows.</details>
# <details><summary>Solution</summary>
#
# ```python
# def epoch_loss(losses, rows):
#     return dot(losses.tolist(), rows) / sum(rows)
# ```
# </details>
#
# By hand: 30 rows with a mean of 1 and 10 rows with a mean of 4 make 70, as above. Over 40 rows that is 1.75.

# %%
epoch_loss(np.array([1.0, 4.0]), [30, 10])

# %% [markdown]
# Now write the loop itself. It runs at most `epochs` epochs. In each epoch it does four things, in this order: it
# reports the beginning, goes through the data once, reports the end, and stops if `ended` says so. Three functions are
# given:
#
# - `tell("on_epoch_begin", epoch)` reports the beginning, and `tell("on_epoch_end", epoch, logs)` the end. Epochs are
#   counted from 0.
# - `one_pass()` goes through the data and returns the numbers of this epoch, `logs`, for example {"loss": 7.0}.
# - `ended(epoch, logs)` says whether this epoch was the last.


# %%
#| blank run_epochs
def run_epochs(epochs, tell, one_pass, ended):
    """Run at most `epochs` epochs. Tell when each begins and ends, with its numbers."""
    ...  # 6 lines


# %% [markdown]
# <details><summary>Hint</summary>One <code>for</code> over <code>range(epochs)</code>, and inside it the calls in the
# order of the text. <code>break</code> leaves the loop.</details>
# <details><summary>Solution</summary>
#
# ```python
# def run_epochs(epochs, tell, one_pass, ended):
#     for epoch in range(epochs):
#         tell("on_epoch_begin", epoch)
#         logs = one_pass()
#         tell("on_epoch_end", epoch, logs)
#         if ended(epoch, logs):
#             break
# ```
# </details>
#
# Try it with `print` as `tell`, a pass that does nothing, and an end after the second epoch:

# %%
run_epochs(9, print, lambda: {"loss": 7.0}, lambda epoch, logs: epoch == 1)

# %% [markdown]
# ## A model that owns its loop (4 min)
#
# With your loop and the parts of level 4, this is a whole model with `fit`. You give `fit` a function, the
# **callback**, and your loop calls it as `tell`. The callback may also stop the training. (`apply_gradients` changes
# each variable by its gradient: it does what your `descend` did.)

# %%
from levels.low_level import GradientTape, constant, function


class Model:
    stop = False

    def __init__(self, layer, optimizer, loss):
        self.layer = layer
        self.optimizer = optimizer
        self.loss = loss

    def step(self, x, y):
        with GradientTape() as tape:
            loss = self.loss(y, self.layer(x))
        gradients = tape.gradient(loss, self.layer.variables)
        self.optimizer.apply_gradients(zip(gradients, self.layer.variables))
        return loss

    def fit(self, x, y, batches, epochs, callback):
        program = function(self.step)

        def one_pass():
            losses = program.over(constant(x), constant(y), batches).numpy()
            return {"loss": epoch_loss(losses, [len(rows) for rows in batches])}

        run_epochs(epochs, callback, one_pass, lambda epoch, logs: self.stop)


# %% [markdown]
# This callback prints the loss of each epoch, and stops the training when it is below 10:

# %%
from levels.mid_level import SGD, Dataset, Dense, MeanSquaredError

dense = Dense(1, dtype="float64")
dense.build((2,))
model = Model(dense, SGD(task.learning_rate), MeanSquaredError())


def listen(event, epoch, logs=None):
    if event == "on_epoch_end":
        print(f"epoch {epoch}: loss {logs['loss']:.4g}")
        model.stop = logs["loss"] < 10.0


model.fit(task.x, task.y, task.batches[:40], 200, listen)

# %% [markdown]
# ## A net (4 min)
#
# Now the points lie in two rings, and the answer y is 0 for the inner and 1 for the outer ring. No straight line can
# separate them, so the border must bend.
#
# A layer alone draws only straight lines, and a layer on a layer does the same. A **relu** between them adds a bend: it
# keeps a positive number, and makes a negative one 0. Here are two relus of five numbers, and their sum:

# %%
x = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
left = np.maximum(-x, 0)
right = np.maximum(x, 0)
print(left, right, left + right)

# %% [markdown]
# The sum falls until 0 and rises from 0 on: two relus have made a bend. With more relus there are more bends, and a
# border can go around the inner ring.
#
# At the end, a **sigmoid** turns any number into a probability p between 0 and 1. The loss is the **binary
# cross-entropy**, a mean over the points: a point costs -log p if y is 1, and -log(1 - p) if y is 0. An answer that is
# sure and wrong costs most. (`Dataset.from_batches` keeps the points together with the row numbers of all batches.)

# %%
from levels.high_level import Sequential

rings = tasks.rings()
net = Sequential([Dense(4, "relu"), Dense(8, "relu"), Dense(1, "sigmoid")])
net.build(rings.x.shape, "float64")
net.set_weights(rings.weights)
net.compile(SGD(rings.learning_rate), "binary_crossentropy")
net.fit(Dataset.from_batches(rings.x, rings.y, rings.batches), verbose=0)
fit = high_level.tasks.Fit(net.history.losses, net.get_weights(), net.predict)
figures.classifier(rings, fit)

# %% [markdown]
# On the left, grey is the loss of each batch, and blue the mean of 200 batches. On the right are points that the net
# has never seen: blue circles for y = 0, orange triangles for y = 1. The area behind them has the colour of the net's
# answer. Its border consists of straight pieces, with a bend where a relu turns on or off. The rings overlap, so no
# border can be right for every point.
#
# ## The five side by side (5 min)
#
# Here is one training step of each model, written on all five levels. The rows are the parts of the step. On level 5,
# one call of `fit` does four of them. Click on *Two rings* to see the net, and **click on the names of two levels to
# lay these two side by side**. *Lines* counts the lines of these rows. Level 1 computes in *float64* or in *float32*.
# Level 3 runs op by op (*eager*) or compiled.

# %%
from course import compare

trainers = [level.tasks.linear_regression for level in levels]
line = compare.measure(task, *trainers, last=500, repeats=1)
trainers = [level.tasks.dnn_classifier for level in levels]
net = compare.measure(rings, *trainers, last=20, repeats=1)
compare.side_by_side(line, net)

# %% [markdown]
# ## From fit to the multiply (6 min)
#
# What happens between `fit` and the multiplication that changes a weight? `fit` runs your step once, with symbols. The
# door of level 3 writes down the ops of the step. The compiler turns them into instructions of level 1. One call runs
# all steps. If the compiler cannot do that for a step, its kernels are launched one by one.
#
# The figure follows the first step of the line, with the numbers of one row and one weight. Each stage is named by its
# level: 5a and 5b are on level 5. **Choose a stage** with the mouse or the arrow keys.

# %% tags=["nbval-ignore-output"]
from course.reader.inspection import walk

walk.down((task, high_level.tasks.linear_regression))

# %% [markdown]
# You can now train a model with `fit`, and say what each level beneath does.
#
# **A good place to stop.** The model owns the training loop, and you have followed a step from `fit` to the multiply.
#
# That was the trail. The five notebooks of the course go the same way, in two sittings each, and build all of `levels`.
# Begin with [01_hardware](../01_hardware.ipynb). If you write PyTorch, you can begin with
# [03_low_level](../03_low_level.ipynb); if you write Keras, with [05_high_level](../05_high_level.ipynb).

# %%
trail.take_along()

# %% [markdown]
# # Trail 5 · High-level API
#
# **In this notebook you write the loop inside `fit`, and look down through all five storeys.**
#
# The last notebook ended with three parts, and a function `train` around them. Everybody writes that function, and nearly in the same
# words. So it becomes the model's own.

# %%
from course import build, figures, tasks
from course.practice import checks, trail

build.watch("trail/5_high_level")
figures.you_are_here(5)

# %% [markdown]
# ## A surprise to begin with (6 min)
#
# Here are `fit`'s four lines, and the task of the line as each level has it: instructions, launches, a tape, layers, `fit`.

# %%
import numpy as np

from levels.high_level import Sequential
from levels.mid_level import SGD, Dataset, Dense

task = tasks.linear()
model = Sequential([Dense(1)])
model.compile(SGD(task.learning_rate), "mse")
model.fit(Dataset.from_batches(task.x, task.y, task.batches), verbose=0)

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "All five train on the same 8,000 batches. On which level does a step take longest?",
    choices=["1, the instructions", "2, the launches", "3, the tape", "5, `fit`"],
    answer="2, the launches",
    because="On level 2 Python calls fourteen kernels a step. Levels 3, 4 and 5 hand the whole loop down to a compiled program, "
    "which is that of level 1 again. Comfort costs time until a compiler buys it back.",
)

# %%
from levels import hardware, high_level, kernels, low_level, mid_level

arguments = task.x, task.y, task.weights, task.batches, task.learning_rate
for level in (hardware, kernels, low_level, mid_level, high_level):
    fit = level.tasks.linear_regression(*arguments)
    print(f"{level.__name__:18} last loss {fit.losses[-1]:.4g} ({float(fit.losses[-1]).hex()})")

# %% tags=["nbval-ignore-output"]
import time

for level in (hardware, kernels, low_level, mid_level, high_level):
    began = time.perf_counter()
    level.tasks.linear_regression(*arguments)
    print(f"{level.__name__:18} {(time.perf_counter() - began) / 8000 * 1e6:6.2f} µs a step")

# %% [markdown]
# Five levels, one answer. Level 2 calls each kernel from Python, and that takes most of its time. What levels 3 to 5 hide costs
# next to nothing, because below them stands a compiler that ends in your kind of instructions.

# %% [markdown]
# ## The loop (9 min)
#
# An **epoch** shows the model every row once. Each step gives the mean loss over its rows, and the last batch may be shorter than the
# others. What is the mean over all rows? Write it with `np.dot`, which multiplies two lists number by number and adds the products up.


# %%
#| blank epoch_loss
def epoch_loss(losses, rows):
    """The mean over all rows: step k had the mean losses[k] over rows[k] rows."""
    ...  # 1 line


# %% [markdown]
# <details><summary>Hint</summary>A batch of 30 rows counts three times as much as one of 10: add up losses[k] · rows[k], which
# is <code>np.dot</code>, and divide by the number of all rows.</details>
# <details><summary>Solution</summary>
#
# ```python
# def epoch_loss(losses, rows):
#     return float(np.dot(losses, rows)) / sum(rows)
# ```
# </details>
#
# By hand: 30 rows with a mean of 1 and 10 rows with a mean of 4 are 70 over 40 rows, 1.75.

# %%
epoch_loss(np.array([1.0, 4.0]), [30, 10])

# %% [markdown]
# Now the loop that gave this level its idea. Up to so many epochs, and for each: tell that it begins, go through the data once,
# tell that it ends and with which numbers, and stop if that was enough. Others decide who is told and what is enough; they are
# given as functions:
#
# - `tell("on_epoch_begin", epoch)` and `tell("on_epoch_end", epoch, logs)`, with epochs counted from 0;
# - `one_pass()` returns the numbers of an epoch, `logs`, such as {"loss": 7.0};
# - `ended(epoch, logs)` says whether it was the last.


# %%
#| blank run_epochs
def run_epochs(epochs, tell, one_pass, ended):
    """Up to so many epochs: tell that it begins, go through the data, tell that it ends and with which numbers."""
    ...  # 6 lines


# %% [markdown]
# <details><summary>Hint</summary>One <code>for</code> over <code>range(epochs)</code>, and the lines above in their order. What
# <code>one_pass()</code> returns goes to <code>tell</code>, then to <code>ended</code>; <code>break</code> leaves the
# loop.</details>
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
# `print` can be told anything. So watch the bare loop, with a pass that does nothing, and an end after the second epoch:

# %%
run_epochs(9, print, lambda: {"loss": 7.0}, lambda epoch, logs: epoch == 1)

# %% [markdown]
# ## A model that owns it (6 min)
#
# With the parts of level 4 and a compiled step, `fit` is a screen of code. Who wants to hear what happens gives a **callback**.

# %%
from levels.low_level import GradientTape, constant, function


class Model:
    def __init__(self, layer, optimizer, loss):
        self.layer, self.optimizer, self.loss, self.stop = layer, optimizer, loss, False

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
# And here is a callback that ends the training once an epoch gains less than a thousandth:

# %%
from levels.mid_level import MeanSquaredError

dense, heard = Dense(1, dtype="float64"), []
dense.build((2,))
dense.set_weights(task.weights)
model = Model(dense, SGD(task.learning_rate), MeanSquaredError())


def listen(event, epoch, logs=None):
    if logs:
        heard.append(logs["loss"])
        model.stop = len(heard) > 1 and heard[-1] > 0.999 * heard[-2]


model.fit(task.x, task.y, task.batches[:40], 200, listen)
print(len(heard), "epochs of 200, loss", *(f"{loss:.3f}" for loss in (heard[0], heard[1], heard[-1])))
print("w", dense.kernel.numpy().ravel().round(2), " b", dense.bias.numpy().ravel().round(2))

# %% [markdown]
# ## A net, in four lines (2 min)
#
# The house stands. Its second task is two rings of points, which no line can tell apart. A net of three layers can, and it is the
# same four lines:

# %%
rings = tasks.rings()
net = Sequential([Dense(4, "relu"), Dense(8, "relu"), Dense(1, "sigmoid")])
net.build(rings.x.shape, "float64")
net.set_weights(rings.weights)
net.compile(SGD(rings.learning_rate), "binary_crossentropy")
net.fit(Dataset.from_batches(rings.x, rings.y, rings.batches), verbose=0)
right = ((net.predict(rings.x_test) > 0.5) == rings.y_test).mean()
print(f"{len(rings.batches):,} steps, {right:.1%} of the test points right")

# %%
figures.classifier(rings, high_level.tasks.Fit(net.history.losses, net.get_weights(), net.predict))

# %% [markdown]
# ## The five side by side (8 min)
#
# Here are both tasks as each level has them. The upper levels stand above the lower ones, as in the house. The rows are the five
# parts of a step; on level 5 one line, the call of `fit`, does the work of four. A click on *Two rings* shows the net, and **a
# click on the names of two levels lays these two side by side**. (Levels that go op by op take the last steps only, from where
# level 1 has come by then.)

# %%
from course import compare

levels = hardware, kernels, low_level, mid_level, high_level
line = compare.measure(task, *(level.tasks.linear_regression for level in levels), last=500, repeats=1)
net = compare.measure(rings, *(level.tasks.dnn_classifier for level in levels), last=20, repeats=1)
compare.side_by_side(line, net)

# %% [markdown]
# You can say it in four lines, and you know what each level beneath does with them.
#
# **A good place to stop.** The training loop is owned too: `fit` goes down through layers, a tape, kernels and instructions, and each
# of them you have written once.
#
# That was the trail. The five notebooks of the course take it again, slower: each an evening of ninety minutes, and in the end
# the package `levels` is built from what you wrote. Begin with [01_hardware](../01_hardware.ipynb): what you wrote on the trail
# stands there already. Of this level: [05_high_level](../05_high_level.ipynb).

# %%
trail.take_along()

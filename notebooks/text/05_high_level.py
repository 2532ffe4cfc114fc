# %% [markdown]
# # 5 · High-level API
#
# **In this notebook the model owns its training loop, and `model.fit` gives the same number as machine code.**
#
# This is the level of `tf.keras.Model` and of PyTorch Lightning. About 30 minutes.

# %%
from course import build, compare, figures, tasks

build.watch("05_high_level")
figures.you_are_here(5)

# %% [markdown]
# ## A surprise to begin with (2 min)
#
# Below us lie four levels: one machine-code program, fourteen launches a step, a tape, layers with an optimizer. All four
# train on the same 8,000 batches. **Predict: how many digits of the last loss do they share?**

# %%
from levels import hardware, kernels, low_level, mid_level

task = tasks.linear()
for level in (hardware, kernels, low_level, mid_level):
    fit = level.tasks.linear_regression(task.x, task.y, task.weights, task.batches, task.learning_rate)
    print(f"{level.__name__:18} last loss {float(fit.losses[-1]).hex()}")

# %% [markdown]
# All of them, in hexadecimal, where nothing is rounded for printing. This notebook adds the fifth line.
#
# ## The loop is owned too (8 min)
#
# On level 4 we wrote: for each batch, open a tape, predict, take the loss, differentiate, update. Those lines were the same
# for every model. So a **model** keeps them. `compile` tells it which optimizer and which loss; `fit` runs the loop;
# `History` remembers what happened.

# %%
#| export models
"""The training loop is owned too: models that fit themselves."""

import random

import numpy as np

from levels.low_level import GradientTape, as_tensor, function
from levels.mid_level import SGD, BinaryCrossentropy, Dataset, MeanSquaredError

LOSSES = {
    "mse": MeanSquaredError,
    "mean_squared_error": MeanSquaredError,
    "binary_crossentropy": BinaryCrossentropy,
}
OPTIMIZERS = {"sgd": SGD}


def named(what, table, value):
    """An object from its name in a table, or the object itself."""
    if not isinstance(value, str):
        return value
    if value not in table:
        raise ValueError(f"no {what} is called {value!r}; there are {', '.join(table)}")
    return table[value]()


class History:
    """What happened during `fit`: the loss of every step, and the mean loss of every epoch."""

    def __init__(self):
        self.losses, self.epochs = [], []

    def __repr__(self):
        return f"History({len(self.losses)} steps, {len(self.epochs)} epochs, last loss {self.losses[-1]:.4g})"


# %% [markdown]
# `batches_of` turns arrays into a dataset: each epoch visits every row once, in an order drawn anew.


# %%
#| export models
def batches_of(x, y, batch_size, shuffle):
    """A Dataset over all rows of x and y; `shuffle` is a random.Random, or None to keep the order."""
    x, y = np.asarray(x), np.asarray(y)
    if len(x) == 0 or len(x) != len(y):
        raise ValueError(f"x has {len(x)} rows and y has {len(y)}; expected the same number, and at least one")
    order = list(range(len(x)))
    if shuffle is not None:
        shuffle.shuffle(order)
    return Dataset.from_batches(x, y, [order[i : i + batch_size] for i in range(0, len(x), batch_size)])


# %%
#| export models
class Sequential:
    """Layers in a row, and the loop that trains them."""

    def __init__(self, layers):
        self.layers, self.optimizer, self.loss = list(layers), None, None

    variables = property(lambda self: [variable for layer in self.layers for variable in layer.variables])

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x

    def build(self, shape, dtype="float32"):
        """Make all variables, for inputs [rows, features] of this shape."""
        self(np.zeros((1, *shape[1:]), dtype))

    def set_weights(self, weights):
        weights = list(weights)
        if len(weights) != len(self.variables):
            raise ValueError(f"the model has {len(self.variables)} weights, got {len(weights)}; is it built?")
        for variable, value in zip(self.variables, weights):
            variable.assign(value)

    def get_weights(self):
        return [variable.numpy() for variable in self.variables]

    def compile(self, optimizer="sgd", loss="mse"):
        """Choose how to train: names or objects."""
        self.optimizer, self.loss = named("optimizer", OPTIMIZERS, optimizer), named("loss", LOSSES, loss)

    def train_step(self, x, y):
        """One step on one batch; the loss before the update."""
        with GradientTape() as tape:
            loss = self.loss(y, self(x))
        self.optimizer.apply_gradients(zip(tape.gradient(loss, self.variables), self.variables))
        return loss

    def fit(self, x, y=None, batch_size=32, epochs=1, seed=0):
        """Train on arrays x, y in batches, in a new order each epoch; or on a Dataset, as it comes."""
        if self.loss is None:
            raise RuntimeError("fit: the model is not compiled; call model.compile(optimizer, loss) first")
        history, order, step = History(), random.Random(seed), function(self.train_step)
        for _ in range(epochs):
            data = x if isinstance(x, Dataset) else batches_of(x, y, batch_size, order)
            losses = step.over(data.x, data.y, data.batches).numpy().tolist()
            history.losses += losses
            history.epochs.append(sum(losses) / len(losses))
        return history

    def evaluate(self, x, y):
        """The loss on all rows at once."""
        if self.loss is None:
            raise RuntimeError("evaluate: the model is not compiled; call model.compile(optimizer, loss) first")
        return float(self.loss(as_tensor(y), self(x)))

    def predict(self, x):
        """The model's outputs as a NumPy array."""
        return self(x).numpy()

    def summary(self):
        """Print the layers, their output shapes and their numbers of parameters."""
        rows = [("layer", "output shape", "parameters")]
        for layer in self.layers:
            count = sum(int(np.prod(v.shape)) for v in layer.variables)
            rows.append((layer.name, f"(None, {layer.units})", f"{count:,}" if layer.variables else "not built"))
        rows.append(("total", "", f"{sum(int(np.prod(v.shape)) for v in self.variables):,}"))
        for name, shape, count in rows:
            print(f"{name:16} {shape:16} {count:>10}")


# %% [markdown]
# A whole model in four lines:

# %%
from levels.mid_level import Dense

model = Sequential([Dense(1)])
model.compile(SGD(0.0005), "mse")
history = model.fit(task.x, task.y, batch_size=10, epochs=20)
model.summary()
print(f"loss on the test rows {model.evaluate(task.x_test, task.y_test):.4g}")

# %%
for wrong in (lambda: Sequential([Dense(1)]).fit(task.x, task.y), lambda: model.compile("sdg")):
    try:
        wrong()
    except (RuntimeError, ValueError) as error:
        print(f"{type(error).__name__}: {error}")

# %% [markdown]
# ## The two tasks on this level (5 min)
#
# ### Data

# %%
print("x", task.x.shape, " y", task.y.shape, " batches", task.batches.shape)

# %% [markdown]
# ### Model and training

# %%
#| export tasks
"""The two tasks as models: compile, fit."""

from levels.hardware.tasks import Fit, check_inputs, check_task


def train(model, loss, x, y, weights, batches, learning_rate):
    """A model from given starting weights: one step for each batch."""
    model.build(x.shape, x.dtype)
    model.set_weights(weights)
    model.compile(SGD(learning_rate), loss)
    losses = model.fit(Dataset.from_batches(x, y, batches)).losses  # forward, loss, backward, update

    def predict(x):
        check_inputs(x, weights[0].dtype, len(weights[0]))
        return model.predict(x)

    return Fit(np.array(losses, x.dtype), model.get_weights(), predict)


def linear_regression(x, y, weights, batches, learning_rate=0.0005):
    """Mean squared error, stochastic gradient descent; see `Fit` and `check_task` for the shapes."""
    check_task(x, y, weights, batches, learning_rate, units=[1])
    return train(Sequential([Dense(1)]), "mse", x, y, weights, batches, learning_rate)


# %%
fit = linear_regression(task.x, task.y, task.weights, task.batches, task.learning_rate)
machine_code = hardware.tasks.linear_regression(task.x, task.y, task.weights, task.batches, task.learning_rate)
print("losses equal: ", bool((fit.losses == machine_code.losses).all()))
print("weights equal:", all((p == q).all() for p, q in zip(fit.weights, machine_code.weights)))
print("last loss    ", float(fit.losses[-1]).hex())

# %% [markdown]
# `model.fit` and a program of machine instructions, 8,000 steps, maximum difference 0.
#
# ### Result

# %%
figures.regression(task, fit)

# %%
penguins = tasks.penguins_mass()
figures.regression(penguins, linear_regression(*penguins[:2], *penguins[4:7]))

# %% [markdown]
# ### The second task: a net


# %%
#| export tasks
def dnn_classifier(x, y, weights, batches, learning_rate=0.01):
    """features-4-8-1, relu, relu, sigmoid; binary cross-entropy, stochastic gradient descent; see `Fit`, `check_task`."""
    check_task(x, y, weights, batches, learning_rate, units=[4, 8, 1])
    model = Sequential([Dense(4, "relu"), Dense(8, "relu"), Dense(1, "sigmoid")])
    return train(model, "binary_crossentropy", x, y, weights, batches, learning_rate)


# %%
rings = tasks.rings()
trainers = [level.tasks.dnn_classifier for level in (hardware, kernels, low_level, mid_level)] + [dnn_classifier]
fits = {level: train_net(*rings[:2], *rings[4:7]) for level, train_net in zip(figures.LEVELS, trainers)}
for level, fit in fits.items():
    same = all((p == q).all() for p, q in zip(fit.weights, fits["hardware"].weights))
    print(f"{level:12} last loss {float(fit.losses[-1]).hex()}   all 61 weights equal level 1's: {same}")

# %%
figures.five_curves(fits)

# %%
figures.classifier(rings, fits["high_level"])

# %%
sex = tasks.penguins_sex()
figures.confusion(sex, dnn_classifier(*sex[:2], *sex[4:7]))

# %% [markdown]
# ## The five side by side (8 min)
#
# Here is the course on one page. The lines that matter of one task, on every level, under the marks of what they do. On the
# left stands plain Python, `course/reference.py`, the arithmetic that every level has to equal; on the right, as `here`, this
# notebook. Read a row from left to right: the same thing is said in fewer words, until one line says all four.

# %%
from course import checks, great, reference, widgets

levels = (hardware, kernels, low_level, mid_level)
line_on_all = [level.tasks.linear_regression for level in levels] + [linear_regression]
compare.side_by_side(reference.linear_regression, *line_on_all)

# %%
net_on_all = [level.tasks.dnn_classifier for level in levels] + [dnn_classifier]
compare.side_by_side(reference.dnn_classifier, *net_on_all)

# %% [markdown]
# Fewer words for the same thing: is it the same? We train the line in eight versions now. Level 1 has two of them, float64 one
# number at a time and float32 with lanes (SIMD); level 3 has two, op by op and compiled.

# %% tags=["hide-input"]
checks.predict(
    "Plain Python and `fit` take 8,000 steps from the same weights. How far apart are their last losses?",
    choices=["exactly 0", "about 1e-16, the last bit", "about 1e-9: each step rounds, and errors add up"],
    answer="exactly 0",
    because="Rounding is no accident. The same operations in the same order round to the same bits, whoever asks for them.",
)

# %%
line = compare.measure(task, *line_on_all)
line

# %% [markdown]
# Seven times the same number, in hexadecimal, where no digit is hidden. Only float32 says something else, and its 24 bits cannot
# say this number at all. The other columns count what it takes. **Lines** are those of the task
# function and of all it calls in its module, without the checks of arguments. A **launch** is one call from above: of one
# operation on two numbers in plain Python, of one kernel on level 2, of a whole training where a compiler has been at work.
# **Bytes** are what the launches read and write.
#
# The net, too. Plain Python would take more than a minute for its 24,000 steps. So the versions that go op by op take over from
# level 1 for the last hundred steps. They arrive at the same number.

# %%
net = compare.measure(rings, *net_on_all, last=100, repeats=1)
net

# %% [markdown]
# ## What this level cost (5 min)
#
# The losses are equal, so only the time can tell the levels apart.

# %% tags=["hide-input"]
checks.predict(
    "A batch of the line is ten rows of two numbers. Which takes longer for a step?",
    choices=["plain Python, number by number", "tensors, op by op (3 eager)", "they take about the same"],
    answer="tensors, op by op (3 eager)",
    because="160 operations of Python cost less than 17 launches through the door, the tape and the plans. An op pays where "
    "it works on many numbers at once: for the net, with a hundred rows, plain Python takes about twenty times as long.",
)

# %% [markdown]
# Each time is predicted first, by the formula of level 1: launches · time of a launch + max(operations / peak, bytes /
# bandwidth). A launch is priced at a small one: in plain Python an operation of `dot`, on level 2 an addition of two numbers,
# in 3 eager an addition of two tensors. A program's only launch is priced at a run of a single step, with all its tracing and
# assembling. A program in float64 gets one lane of the peak.

# %% tags=["nbval-ignore-output"]
great.five_levels(line)

# %% [markdown]
# Time rises and falls again. On level 2 and in 3 eager we pay for each call by name, and nearly all of the time is that. From
# 3 compiled on, the floors above hand the whole loop down to the ground and take as long as it does, but for the milliseconds
# in which a step is traced. Shared by 8,000 steps, they are most of what is left. Levels 4 and 5 have a little more Python to
# walk through before the program stands. Once it stands, it is the same program.

# %% tags=["nbval-ignore-output"]
great.five_levels(net)

# %% [markdown]
# A step of the net does 260 times the arithmetic of the line's, and the tracing is lost in it: 1 scalar, 3 compiled, 4
# and 5 stand under each other. They are slower than predicted, all by the same factor. It is the same program, and the formula
# knows nothing of sums that wait for themselves.
#
# Last, the course as a slider. **Move the level** (mouse, or Tab and the arrow keys): the code changes, the time moves, the
# losses do not.

# %% tags=["nbval-ignore-output"]
tasks_measured = {"line": line, "net": net}
widgets.explore(
    lambda level, task: great.depth(tasks_measured[task], level),
    level=range(1, 6),
    task=["line", "net"],
    text="One level at a time: its code for the task, its time among those of all, and its losses.",
)

# %% [markdown]
# One answer, at five depths. You can say it in one line and know what each storey beneath does with it.
#
# ## More of the same kind (optional)
#
# ### Where float32 parts from float64 (5 min)
#
# In float32 the levels need not agree to the last bit: a program with lanes adds in another order. From the course's own
# start the losses stay within 1/10,000 of those in float64 over the first 2,000 steps. From some other starts they do not.
# Here is one. We train in both formats, step by step, and look at two things: how far the weights are apart, and whether any
# relu sees a positive number in one run and a negative one in the other.

# %% tags=["nbval-ignore-output"]
weights = [np.array(w) for w in tasks.make_weights((2, 4, 8, 1), seed=30)]
runs, gaps, kinks = {"f8": weights, "f4": [w.astype("f4") for w in weights]}, [], []
data = {dtype: (rings.x.astype(dtype), rings.y.astype(dtype)) for dtype in runs}
for step, rows in enumerate(rings.batches[:400]):
    signs = []
    for dtype, (w1, b1, w2, b2, *_) in runs.items():
        z1 = rings.x[rows] @ w1 + b1
        signs.append(np.hstack([z1, np.maximum(z1, 0) @ w2 + b2]) > 0)
        runs[dtype] = hardware.tasks.dnn_classifier(*data[dtype], runs[dtype], rows[None], rings.learning_rate).weights
    gaps.append(max(float(np.abs(p - q).max()) for p, q in zip(*runs.values())))
    if (signs[0] != signs[1]).any():
        kinks.append(step)
figures.parting(gaps, kinks)

# %% [markdown]
# For many steps the gap stays near the rounding of float32, one part in a million or less. Then one input of one relu lies
# so close to zero that the two formats round it to different sides. One run passes its gradient on, the other passes none.
# That is no rounding error any more: the gradient of a whole row is there or is not. From then on they are two runs, and
# it happens again and again. Neither is wrong. Both learn the rings.
#
# ### The same in two frameworks
#
# | | TensorFlow | PyTorch | here |
# |---|---|---|---|
# | a model | `tf.keras.Sequential` | `torch.nn.Sequential` | `Sequential` |
# | choose how to train | `model.compile` | your own loop | `model.compile` |
# | train | `model.fit` | your own loop | `model.fit` |
#
# ## Exercises
#
# 1. Count the parameters of a net 2-4-8-1 by hand. Let `summary` check you.
# 2. Write `fit_until(model, x, y, loss)`, which stops when an epoch's mean loss falls below a bound.
# 3. `history.epochs[-1]` and `model.evaluate(x, y)` differ. Which is larger, and why?
# 4. Train twice with the same seed, twice with different ones. Which losses are equal? (Where do starting weights come from?
#    Look at `levels.mid_level.layers.RANDOM`.)
#
# ## Build

# %%
build.level("05_high_level", linear_regression, dnn_classifier)

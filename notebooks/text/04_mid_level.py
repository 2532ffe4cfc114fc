# %% [markdown]
# # 4 · Mid-level API
#
# **In this notebook a part owns its variables, and a model becomes a list of parts.**
#
# This is the level of `tf.keras.layers` and `torch.nn`, of losses, optimizers and datasets. About 30 minutes.

# %%
from course import build, figures, tasks

build.watch("04_mid_level")
figures.you_are_here(4)

# %% [markdown]
# ## A surprise to begin with (3 min)
#
# Do penguins with deeper bills weigh more? We fit a line through all 342 of them: mass over bill depth. Then one line for
# each species. **Predict: which sign have the slopes?**

# %%
import numpy as np

table = tasks.read("penguins.csv", ("species", "bill_depth_mm", "body_mass_g"), (str, str, str))
table = [(name, float(depth), float(mass)) for name, depth, mass in table if "NA" not in (depth, mass)]
for group in ("all", "Adelie", "Chinstrap", "Gentoo"):
    depth, mass = np.array([row[1:] for row in table if group in ("all", row[0])]).T
    print(f"{group:10} {np.polyfit(depth, mass, 1)[0]:7.1f} g per mm of bill depth")

# %% [markdown]
# Over all penguins the slope is negative. Within every species it is positive. Gentoos are heavy and have shallow bills,
# and a model that is not told the species mistakes it for the depth of the bill
# ([Simpson's paradox](https://doi.org/10.1111/j.2517-6161.1951.tb00088.x)). A model is only as good as the columns it is
# given, and real models take many columns. So they are made of parts, and each part has to look after its own weights.
#
# ## A part owns its variables (6 min)
#
# On level 3 the weights were loose variables, and every function had to be handed all of them. A **layer** keeps its own.
# It makes them when it first sees an input, because only then is its width known.

# %%
#| export layers
"""A part owns its variables: layers."""

import math
import random

import numpy as np

from levels.low_level import Variable, as_tensor, nn

RANDOM = random.Random(0)  # where starting weights come from; RANDOM.seed(n) repeats them


def glorot_uniform(inputs, units, dtype):
    """w[inputs, units] uniform in ±√(6 / (inputs + units)) (Glorot and Bengio, 2010)."""
    limit = math.sqrt(6.0 / (inputs + units))
    return np.array([[RANDOM.uniform(-limit, limit) for _ in range(units)] for _ in range(inputs)], dtype)


class Layer:
    """A part of a model: builds its variables on the first call, and owns them."""

    def __init__(self, name=None):
        self.name, self.variables = name or type(self).__name__.lower(), []

    def __call__(self, x):
        x = as_tensor(x)
        if not self.variables:
            self.build(x.shape, x.dtype)
        return self.call(x)

    def get_weights(self):
        return [variable.numpy() for variable in self.variables]

    def set_weights(self, weights):
        if len(weights) != len(self.variables):
            raise ValueError(f"{self.name} has {len(self.variables)} weights, got {len(weights)}; is it built?")
        for variable, value in zip(self.variables, weights):
            variable.assign(value)


# %% [markdown]
# The source of the starting range is [Glorot and Bengio, 2010](https://proceedings.mlr.press/v9/glorot10a.html). One layer
# for now, the one both tasks need:

# %%
#| export layers
ACTIVATIONS = {None: lambda x: x, "relu": nn.relu, "sigmoid": nn.sigmoid}


class Dense(Layer):
    """activation(x[batch, inputs] @ kernel[inputs, units] + bias[1, units])"""

    def __init__(self, units, activation=None, name=None):
        super().__init__(name)
        if not isinstance(units, int) or units < 1:
            raise ValueError(f"Dense: units is {units!r}; expected a positive integer")
        if activation not in ACTIVATIONS:
            raise ValueError(f"Dense: activation is {activation!r}; there are {', '.join(map(repr, ACTIVATIONS))}")
        self.units, self.activation = units, activation

    def build(self, shape, dtype="float32"):
        """Make the variables for inputs of this shape; only the last size matters."""
        kernel, bias = glorot_uniform(shape[-1], self.units, dtype), np.zeros((1, self.units), dtype)
        self.variables = [Variable(kernel), Variable(bias)]

    def call(self, x):
        kernel, bias = self.variables
        if x.shape[-1] != kernel.shape[0]:
            raise ValueError(f"{self.name}: built for {kernel.shape[0]} inputs, got {x.shape[-1]}")
        return ACTIVATIONS[self.activation](x @ kernel + bias)


# %%
dense = Dense(2)
print(dense(np.ones((3, 4), "f4")).shape, [v.shape for v in dense.variables])

# %% [markdown]
# ## What is wrong, and what to do about it (4 min)
#
# A **loss** says in one number how wrong a prediction is. An **optimizer** knows how to change a variable, given its
# gradient.

# %%
#| export losses
"""Losses: one number that says how wrong a prediction is."""

from levels.low_level import clip, log, reduce_mean


class Loss:
    """A function of what is true and what was predicted, averaged over all numbers."""

    def __call__(self, y_true, y_pred):
        if y_true.shape != y_pred.shape:
            raise ValueError(f"{type(self).__name__}: y_true is {y_true.shape} and y_pred is {y_pred.shape}")
        return self.call(y_true, y_pred)


class MeanSquaredError(Loss):
    """mean((y_pred - y_true)²)"""

    def call(self, y_true, y_pred):
        error = y_pred - y_true
        return reduce_mean(error * error)


class BinaryCrossentropy(Loss):
    """-mean(y_true·log p + (1 - y_true)·log(1 - p)), with p = y_pred kept within [1e-7, 1 - 1e-7]"""

    def call(self, y_true, y_pred):
        p = clip(y_pred, 1e-7, 1.0 - 1e-7)
        return -reduce_mean(y_true * log(p) + (1.0 - y_true) * log(1.0 - p))


# %%
#| export optimizers
"""Optimizers: how a variable changes, given its gradient."""


class SGD:
    """w ← w - learning_rate·dw"""

    def __init__(self, learning_rate=0.01):
        if not learning_rate > 0:
            raise ValueError(f"SGD: learning_rate is {learning_rate}; expected a positive number")
        self.learning_rate = float(learning_rate)

    def apply_gradients(self, grads_and_vars):
        for gradient, variable in grads_and_vars:
            variable.assign(variable - self.learning_rate * gradient)


# %% [markdown]
# ## Data that arrives in batches (3 min)
#
# A **dataset** is something that can be walked through, batch by batch, as often as one likes.

# %%
#| export data
"""Data that arrives in batches."""

from levels.low_level import constant, gather


class Dataset:
    """Batches (x, y), to be walked through as often as wished."""

    def __init__(self, x, y, batches):
        self.x, self.y, self.batches = as_tensor(x), as_tensor(y), batches

    @classmethod
    def from_batches(cls, x, y, batches):
        """One batch for each entry of `batches`, an array of row numbers."""
        if len(x) != len(y):
            raise ValueError(f"Dataset: x has {len(x)} rows, y has {len(y)}")
        if not len(batches) or not all(len(rows) for rows in batches):
            raise ValueError("Dataset: there is no batch, or an empty one")
        return cls(constant(x), constant(y), batches)

    def __len__(self):
        return len(self.batches)

    def __iter__(self):
        for rows in self.batches:
            yield gather(self.x, rows), gather(self.y, rows)


# %%
[(x.shape, y.shape) for x, y in Dataset.from_batches(np.ones((5, 2)), np.ones((5, 1)), [[0, 1], [2, 3], [4]])]

# %% [markdown]
# ## The two tasks on this level (6 min)
#
# ### Data

# %%
task = tasks.linear()
print("x", task.x.shape, " y", task.y.shape, " batches", task.batches.shape)

# %% [markdown]
# ### Model and training
#
# The model is a list of layers. The step is still ours, but it names no weight any more.

# %%
#| export tasks
"""The two tasks as layers, a loss, an optimizer and a dataset."""

from levels.hardware.tasks import Fit, check_inputs, check_task
from levels.low_level import GradientTape, function


def train(layers, loss_of, x, y, weights, batches, learning_rate):
    """Layers in a row from given starting weights: one step for each batch."""
    sgd, data = SGD(learning_rate), Dataset.from_batches(x, y, batches)
    for layer, kernel, bias in zip(layers, weights[::2], weights[1::2]):
        layer.build(kernel.shape[:1], kernel.dtype)
        layer.set_weights([kernel, bias])
    variables = [variable for layer in layers for variable in layer.variables]

    def model(rows):
        for layer in layers:
            rows = layer(rows)
        return rows

    @function
    def step(rows, target):
        with GradientTape() as tape:
            prediction = model(rows)  # forward
            loss = loss_of(target, prediction)  # loss
        gradients = tape.gradient(loss, variables)  # backward
        sgd.apply_gradients(zip(gradients, variables))  # update
        return loss

    losses = step.over(data.x, data.y, data.batches).numpy()

    def predict(x):
        check_inputs(x, weights[0].dtype, len(weights[0]))
        return model(x).numpy()

    return Fit(losses, [v.numpy() for v in variables], predict)


def linear_regression(x, y, weights, batches, learning_rate=0.0005):
    """Mean squared error, stochastic gradient descent; see `Fit` and `check_task` for the shapes."""
    check_task(x, y, weights, batches, learning_rate, units=[1])
    return train([Dense(1)], MeanSquaredError(), x, y, weights, batches, learning_rate)


# %%
from levels import hardware, low_level

fit = linear_regression(task.x, task.y, task.weights, task.batches, task.learning_rate)
below = low_level.tasks.linear_regression(task.x, task.y, task.weights, task.batches, task.learning_rate)
print("losses equal: ", bool((fit.losses == below.losses).all()))
print("weights equal:", all((p == q).all() for p, q in zip(fit.weights, below.weights)))
print("last loss    ", float(fit.losses[-1]).hex())

# %% [markdown]
# ### Result

# %%
figures.regression(task, fit)

# %%
penguins = tasks.penguins_mass()
figures.regression(penguins, linear_regression(*penguins[:2], *penguins[4:7]))

# %% [markdown]
# ### The second task: a net
#
# Three layers instead of one, and another loss. The step is the same.


# %%
#| export tasks
def dnn_classifier(x, y, weights, batches, learning_rate=0.01):
    """features-4-8-1, relu, relu, sigmoid; binary cross-entropy, stochastic gradient descent; see `Fit`, `check_task`."""
    check_task(x, y, weights, batches, learning_rate, units=[4, 8, 1])
    layers = [Dense(4, "relu"), Dense(8, "relu"), Dense(1, "sigmoid")]
    return train(layers, BinaryCrossentropy(), x, y, weights, batches, learning_rate)


# %%
rings = tasks.rings()
ring_fit = dnn_classifier(*rings[:2], *rings[4:7])
below = hardware.tasks.dnn_classifier(*rings[:2], *rings[4:7])
print("losses equal: ", bool((ring_fit.losses == below.losses).all()))
print("weights equal:", all((p == q).all() for p, q in zip(ring_fit.weights, below.weights)))
figures.classifier(rings, ring_fit)

# %%
sex = tasks.penguins_sex()
figures.confusion(sex, dnn_classifier(*sex[:2], *sex[4:7]))

# %% [markdown]
# ## What this level cost (3 min)

# %%
from course import compare
from levels.kernels import counted
from levels.low_level import eager

short = task._replace(batches=task.batches[:1000])
with eager():
    launches, nbytes = (total / 1000 for total in counted(lambda: linear_regression(short.x, short.y, *short[4:7])))
print(f"{compare.lines(train, linear_regression)} lines; eager {launches:.0f} launches and {nbytes:,.0f} bytes a step")

# %% tags=["nbval-ignore-output"]
print("µs a step     eager   compiled")
for level, train_it in (("3", low_level.tasks.linear_regression), ("4", linear_regression)):
    with eager():
        op_by_op = compare.microseconds(train_it, task)
    print(f"{level}       {op_by_op:11.3g} {compare.microseconds(train_it, task, steps=8000):10.3g}")

# %% [markdown]
# The same launches as on level 3, and nearly the same time. Owning variables costs little when each op is run at once, and nothing
# when the step is compiled: the layers are gone by then, and only what they did passes the door.
#
# ## More of the same kind (optional)
#
# | | TensorFlow | PyTorch | here |
# |---|---|---|---|
# | a layer | `tf.keras.layers.Dense(1)` | `torch.nn.Linear(2, 1)` | `Dense(1)` |
# | a loss | `tf.keras.losses.MeanSquaredError()` | `torch.nn.MSELoss()` | `MeanSquaredError()` |
# | an update | `optimizer.apply_gradients(…)` | `optimizer.step()` | `sgd.apply_gradients(…)` |
# | batches | `tf.data.Dataset` | `torch.utils.data.DataLoader` | `Dataset.from_batches` |
#
# ## Exercises
#
# 1. Write a layer `Scale` that multiplies its input by one trainable number. (8 lines.)
# 2. Give `SGD` a momentum. Where must the velocity live, and who owns it?
# 3. Train on the raw numbers of `tasks.penguins()`, not standardised, at rate 0.001. What do the losses do, and why?
# 4. Put a second `Dense` behind the first, with nothing in between. Can the two fit more than one? Why not?
#
# ## Build

# %%
build.level("04_mid_level", linear_regression, dnn_classifier)

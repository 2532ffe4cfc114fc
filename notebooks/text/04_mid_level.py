# %% [markdown]
# # 4 · Mid-level API
#
# **In this notebook a part owns its variables, and a model becomes a list of parts.**
#
# This is the level of `tf.keras.layers` and `torch.nn`. You build four kinds of part: layers, losses, optimizers and
# datasets. Each begins as a few lines of code. The notebook takes two sittings, each of less than an hour and a half.

# %%
from course import build, figures, tasks
from course.reader import checks

build.watch("04_mid_level")
figures.you_are_here(4)

# %% [markdown]
# Four things come from level 3:
#
# - A `Variable` is a tensor that can be assigned a new value.
# - A `GradientTape` records ops, and walks back through them to find gradients.
# - `function(step)` compiles a step. Its method `over` runs the step once for each batch of row numbers.
# - A `Module` finds the variables in its attributes.
#
# In the house of five levels, tensors were the bricks, and parts are the walls.
#
# ## A surprise to begin with (6 min)
#
# Do penguins with deeper bills weigh more? We fit a line of mass over bill depth to all 342 penguins. Then we fit one
# line to each species: Adelies, Chinstraps and Gentoos.

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "04-slopes",
    "What signs do the four slopes have?",
    choices=[
        "plus for all penguins, plus in each species",
        "plus for all penguins, minus in some species",
        "minus for all penguins, plus in each species",
        "minus for all penguins, minus in some species",
    ],
)

# %% [markdown]
# The next cell reads three columns of the table. The one after it selects rows with a **mask**, an array of true and
# false: `depth[mask]` keeps the rows where the mask is true.

# %%
import numpy as np

columns = "species", "bill_depth_mm", "body_mass_g"
birds = tasks.read("penguins.csv", columns, (str, str, str))
birds = [bird for bird in birds if "NA" not in bird]
species = np.array([name for name, _, _ in birds])
depth, mass = np.array([[float(d), float(m)] for _, d, m in birds]).T

# %%
for group in ("all", "Adelie", "Chinstrap", "Gentoo"):
    mask = (species == group) | (group == "all")
    slope, _ = np.polyfit(depth[mask], mass[mask], 1)
    print(f"{group:10} {slope:7.1f} g per mm of bill depth")

# %%
checks.answer_to("04-slopes")

# %% [markdown]
# This is [Simpson's paradox](https://doi.org/10.1111/j.2517-6161.1951.tb00088.x). If a model has no column for the
# species, it attributes the effect of the species to the bill. Near the end of this notebook we add the species to the
# model and look at the sign again.
#
# With more columns a model has more weights. To keep them in order, we build the model from parts, and each part keeps
# its own weights.
#
# ## A part owns its variables (12 min)
#
# On level 3 the weights were loose variables, and every function took all of them as arguments. A **layer** keeps its
# own weights. It computes the formula of both tasks, x · w + b, for any number of **units**. A unit makes one number
# from all inputs, with one column of w and one number of b. Keras calls w the **kernel** of the layer, and b its
# **bias**. (This kernel is a matrix of weights. The kernels of level 2 are programs.)
#
# The formula is yours to write:

# %%
#| export layers
"""A part owns its variables: layers."""

import math
import random


# %%
#| export layers blank affine
def affine(x, kernel, bias):
    """x[batch, inputs], kernel[inputs, units], bias[1, units] -> sums[batch, units]"""
    ...  # 1 line


# %% [markdown]
# <details><summary>Hint</summary>Python has one operator for the matrix product.</details>
# <details><summary>Second hint</summary>Begin with <code>x @ kernel</code> and add the bias last. NumPy adds it to
# every row.</details>
# <details><summary>Solution</summary>
#
# ```python
# def affine(x, kernel, bias):
#     """x[batch, inputs], kernel[inputs, units], bias[1, units] -> sums[batch, units]"""
#     return x @ kernel + bias
# ```
# </details>

# %%
two_rows = np.array([[1.0, 2.0], [3.0, 4.0]])
kernel = np.array([[1.0, 10.0, 0.0], [1.0, 0.0, 10.0]])
affine(two_rows, kernel, np.array([[0.5, 0.0, 0.0]]))

# %% [markdown]
# Each row gives three numbers, one per unit. Next, we write a layer that owns `kernel` and `bias`. It makes them on its
# first call, because the size of the kernel depends on the input:

# %%
from levels.low_level import Variable


class FirstLayer:
    built = False

    def __init__(self, units):
        self.units = units

    def __call__(self, x):
        if not self.built:
            self.kernel = Variable(np.zeros((x.shape[1], self.units)))
            self.bias = Variable(np.zeros((1, self.units)))
            self.built = True
        return affine(x, self.kernel, self.bias)


line = tasks.linear()
first = FirstLayer(1)
print(first(line.x[:3]).numpy().ravel(), first.kernel.shape)

# %% [markdown]
# The first call builds the layer, and the caller passes no weights. But all weights start at zero. What comes of that?
# We put two such units side by side, and let a third one, the top unit, read their results. Then we take two gradient
# steps.
#
# In the first step only the top unit learns. The gradients of the lower units have the top unit's weights as a factor,
# and these are still zero. In the second step the lower units learn too:

# %%
from levels.low_level import GradientTape, nn, reduce_sum


def after_two_steps(hidden, top):
    for _ in range(2):
        with GradientTape() as tape:
            prediction = top(nn.sigmoid(hidden(line.x[:10])))
            loss = reduce_sum((prediction - line.y[:10]) ** 2)
        weights = [hidden.kernel, top.kernel]
        for w, dw in zip(weights, tape.gradient(loss, weights)):
            w.assign(w - 0.01 * dw)
    return hidden.kernel.numpy().round(4)


after_two_steps(FirstLayer(2), FirstLayer(1))

# %% [markdown]
# Each column holds the weights of one unit, and the two columns are equal. Units that start equal get equal gradients,
# so they stay equal, and two units can do no more than one. So weights must start at random.
#
# Their range matters. If weights are too large, the numbers grow from layer to layer. If they are too small, the
# numbers shrink. [Glorot and Bengio, 2010](https://proceedings.mlr.press/v9/glorot10a.html), derive a range from the
# number of inputs and the number of units:

# %%
#| export layers
from levels.low_level import as_tensor, nn

RANDOM = random.Random(0)  # draws the starting weights; RANDOM.seed(n) repeats them


def glorot_uniform(shape):
    """Draw weights uniformly in ±√(6 / (inputs + units)): Glorot and Bengio, 2010."""
    limit = math.sqrt(6.0 / sum(shape[-2:]))  # inputs and units are the last two axes
    return [RANDOM.uniform(-limit, limit) for _ in range(math.prod(shape))]


INITIALIZERS = {"zeros": np.zeros, "glorot_uniform": glorot_uniform}
ACTIVATIONS = {"linear": as_tensor, "relu": nn.relu, "sigmoid": nn.sigmoid}

# %%
print(*(f"{w:.3f}" for w in glorot_uniform((2, 4))))

# %% [markdown]
# With two inputs and four units the limit is √(6 / 6) = 1. A function that makes starting weights is an
# **initializer**. An **activation** is the function that a layer applies to its result, such as relu. The tables
# `INITIALIZERS` and `ACTIVATIONS` list both by their names, which are those of Keras.
#
# **A good place to stop.** A layer keeps its own weights, and they start at random.
#
# ## A layer that builds itself (9 min)
#
# `Layer` is the class of all layers. Each kind of layer defines two methods: `build` makes the variables, with
# `add_weight`, and `call` computes the result. A call `layer(x)` works in this order:
#
# 1. On the first call, `build_for` sets the dtype of the layer, and calls its `build`.
# 2. On every call, `call(x)` returns the result.
#
# A layer is a `Module`, so it also finds the variables of the layers inside it. If its `trainable` is False, training
# changes none of them.
#
# The helpers come from `levels/support`. `Reconstructible` remembers the arguments of a part: `part.recreate()` makes
# another one like it. With `built_once`, only one thread builds the layer. `Unset` raises an error for an attribute
# that is not set, and `no_call` for a missing `call`. `guarded` refuses attributes whose names `Layer` uses.
# `check_call` and `check_heard` refuse what needs `levels_more`.

# %%
#| export layers
from levels.hardware import PLACE
from levels.low_level import Module
from levels.support.checks import check_int, check_pairs, check_positive, lookup
from levels.support.fronts import Unset
from levels.support.locks import MAKING, built_once
from levels.support.parts import Reconstructible, guarded
from levels.support.trainings import check_call, check_heard, no_call


# %%
#| export layers most Layer.__call__
class Layer(Reconstructible, Module):
    """A part of a model. Define `call(x)`, and `build(shape)` if it needs variables."""

    built = building = False  # whether `build_for` has run, or is running
    trainable = True  # if not, training changes none of its variables, nor those inside
    name = dtype = Unset()  # `__init__` sets them
    __setattr__ = guarded
    call = no_call

    def __init__(self, name=None, dtype=None):
        self.name = type(self).__name__.lower() if name is None else name
        self.dtype = None if dtype is None else np.dtype(dtype)
        check_call(self)

    def __call__(self, x, training=None):
        """Return the result of `call`, after a build on the first call."""
        check_heard(self, training, Layer)
        x = as_tensor(x)
        if not self.built:
            self.build_for(x.spec.shape, x.dtype)
        return self.call(x)

    @built_once
    def build_for(self, shape, dtype):
        """Call `build`. A layer without a dtype takes this one, if it is for floats."""
        self.dtype = self.dtype or (dtype if dtype.kind == "f" else "float32")
        self.build(shape)

    def build(self, shape):
        """Make the variables for inputs of this shape."""

    def add_weight(self, shape, initializer="glorot_uniform", trainable=True):
        """Make a variable of this shape, in the layer's dtype."""
        self.built = not self.building  # your own call of `build` counts, too
        dtype = PLACE.device.alloc(shape, self.dtype or "float32").dtype
        numbers = lookup("initializer", INITIALIZERS, initializer)(shape)
        return Variable(np.reshape(numbers, shape).astype(dtype), trainable=trainable)

    @property
    def trainable_variables(self):
        """The variables that training changes: none of a layer with trainable=False."""
        parts = self.named(Layer).values()
        still = {v for part in parts if not part.trainable for v in part.variables}
        return [v for v in super().trainable_variables if v not in still]

    def __repr__(self):
        sizes = [f"{name} {list(v.shape)}" for name, v in self.named(Variable).items()]
        return f"{self.name}: {', '.join(sizes) or 'no variables yet'}"


# %% [markdown]
# `Dense` is the layer of both tasks. Its `build` makes two variables, and its `call` is one line that uses your
# `affine`. In Keras this layer is `tf.keras.layers.Dense(2)`. In PyTorch it is `torch.nn.Linear(4, 2)`, which needs the
# number of inputs, too, and stores its `weight` as [out, in].


# %%
#| export layers
class Dense(Layer):
    """activation(x[batch, inputs] @ kernel[inputs, units] + bias[1, units])"""

    def __init__(self, units, activation=None, *, name=None, dtype=None):
        super().__init__(name, dtype)
        self.units = check_int(1, "Dense: units", units)
        activation = "linear" if activation is None else activation
        self.activation = lookup("activation", ACTIVATIONS, activation)

    def build(self, shape):
        self.kernel = self.add_weight((shape[-1], self.units))
        self.bias = self.add_weight((1, self.units), "zeros")

    def call(self, x):
        return self.activation(affine(x, self.kernel, self.bias))


# %%
dense = Dense(2)
print(dense)
print(dense(np.ones((3, 4), "f4")).shape, "from", dense)
print(after_two_steps(Dense(2), Dense(1)))

# %% [markdown]
# The call built the layer. After the same two steps as before, the two units differ. From now on `dense` takes only
# rows of four numbers.
#
# **A good place to stop.** A layer makes its own weights, and no two of its units start equal.
#
# ## What is wrong: losses (21 min)
#
# A **loss** is one number that says how wrong the predictions are. You write the squared error: for each prediction,
# take its difference from the true value, and multiply the difference by itself. The mean comes later.

# %%
#| export losses
"""Losses: one number that says how wrong a prediction is."""

from levels.low_level import log, reduce_mean  # noqa: F401 (log is for the blank below)


# %%
#| export losses blank squared_error
def squared_error(y_true, y_pred):
    """(y_pred - y_true)², number by number."""
    ...  # 1 to 2 lines


# %% [markdown]
# <details><summary>Hint</summary>Subtract y_true from y_pred. That works number by number.</details>
# <details><summary>Second hint</summary>Multiply the difference by itself. <code>error ** 2</code> gives the
# same.</details>
# <details><summary>Solution</summary>
#
# ```python
# def squared_error(y_true, y_pred):
#     """(y_pred - y_true)², number by number."""
#     error = y_pred - y_true
#     return error * error
# ```
# </details>

# %%
truth = np.array([[1.0], [2.0]])
guess = np.array([[1.5], [4.0]])
print(squared_error(truth, guess).ravel(), squared_error(truth, guess).mean())

# %% [markdown]
# The squares are 0.25 and 4, and their mean is 2.125. What if the true values, the **labels**, have another shape than
# the predictions? Here a hundred labels have shape (100,), and the predictions have shape (100, 1):

# %%
squared_error(np.ones(100), np.ones((100, 1))).shape

# %% [markdown]
# NumPy broadcasts both, and makes 100 by 100 errors: each prediction is compared with every label. Training would run
# without an error, but the model would learn only the mean of all labels. So every loss first calls `checked`, which
# makes tensors of both, and checks that they have the same shape. Then the loss takes the mean of what its own `call`
# returns.
#
# Three checks come from `levels/support`. `check_labels` compares the shapes, and refuses a probability that is
# negative or larger than one. `check_floats` refuses labels of whole numbers, unless `classes` is True.
# `check_unweighted` refuses a weight for each row, which only the losses of `levels_more` take.

# %%
#| export losses most Loss.__call__
from levels.support.inputs import check_floats, check_labels, check_unweighted


class Loss(Reconstructible):
    """A loss: the mean of the array that `call(y_true, y_pred)` returns."""

    probabilities = False  # whether labels and predictions must be probabilities
    classes = False  # whether y_true holds class numbers

    def __call__(self, y_true, y_pred, sample_weight=None):
        """Return the loss, one number. (`sample_weight` is for `levels_more`.)"""
        check_unweighted(self, sample_weight)
        return reduce_mean(self.call(*self.checked(y_true, y_pred)))

    def checked(self, y_true, y_pred):
        """Return both as tensors. Raise ValueError or TypeError if they do not fit."""
        y_pred = as_tensor(y_pred)
        y_true = as_tensor(y_true, y_pred)
        self.check(y_true, y_pred)
        check_floats(self, y_true, y_pred)
        return y_true, y_pred

    def check(self, y_true, y_pred):
        """Raise ValueError for unequal shapes, and for impossible probabilities."""
        check_labels(self, y_true, y_pred)

    def __repr__(self):
        return type(self).__name__


# %% [markdown]
# The `call` of the first loss is your function. (In Keras it is `tf.keras.losses.MeanSquaredError()`. In PyTorch it is
# `torch.nn.MSELoss()`, which takes the prediction first.)


# %%
#| export losses
class MeanSquaredError(Loss):
    """mean((y_pred - y_true)²)"""

    def call(self, y_true, y_pred):
        return squared_error(y_true, y_pred)


# %%
mse = MeanSquaredError()
print(float(mse(truth, guess)))
try:
    mse(np.array([1.0, 2.0]), guess)
except ValueError as error:
    print(error)

# %% [markdown]
# For a yes-or-no question the loss is the **cross-entropy**: minus the logarithm of the probability that the model gave
# to the true answer. That probability is p where y is 1, and 1 - p where y is 0. Write both cases in one line, without
# an `if`: y times one logarithm, plus 1 - y times the other, and a minus in front of the sum. Use the `log` that is
# imported above.


# %%
#| export losses blank cross_entropy
def cross_entropy(y_true, p):
    """-log of p where y_true is 1, -log of 1 - p where it is 0, number by number."""
    ...  # 1 line


# %% [markdown]
# <details><summary>Hint</summary>y_true is 0 or 1. Multiply one term by y_true and the other by 1 - y_true: one of them
# vanishes.</details>
# <details><summary>Second hint</summary>The terms are y_true * log(p) and (1 - y_true) * log(1 - p). Negate their
# sum.</details>
# <details><summary>Solution</summary>
#
# ```python
# def cross_entropy(y_true, p):
#     """-log of p where y_true is 1, -log of 1 - p where it is 0, number by number."""
#     return -(y_true * log(p) + (1.0 - y_true) * log(1.0 - p))
# ```
# </details>

# %%
labels = np.array([1.0, 0.0, 0.0])
probabilities = as_tensor(np.array([0.9, 0.9, 0.1]))
print(cross_entropy(labels, probabilities).numpy().round(4))

# %% [markdown]
# An answer that is nearly sure costs little if it is right, and much if it is wrong.

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "04-certain",
    "The truth is y = 1, and a prediction is certain of the opposite: p = 0. "
    "The loss is -log(p). What does our loss give?",
    choices=["infinity", "NaN", "about 16", "1"],
)

# %% [markdown]
# Here is our loss. The cell after it tries this case.


# %%
#| export losses
from levels.low_level import clip


class BinaryCrossentropy(Loss):
    """-mean(y_true·log p + (1 - y_true)·log(1 - p)), p clipped to [1e-7, 1 - 1e-7]."""

    probabilities = True

    def call(self, y_true, y_pred):
        return cross_entropy(y_true, clip(y_pred, 1e-7, 1.0 - 1e-7))


LOSSES = {"mse": MeanSquaredError, "mean_squared_error": MeanSquaredError}
LOSSES["binary_crossentropy"] = BinaryCrossentropy

# %%
wrong = Variable(np.array([[0.0]]))
with GradientTape() as tape:
    loss = BinaryCrossentropy()(np.array([[1.0]]), wrong)
print(f"loss {float(loss):.4f}, gradient {float(tape.gradient(loss, wrong)):.4f}")

# %%
checks.answer_to("04-certain")

# %% [markdown]
# So p is **clipped**: it stays between 1e-7 and 1 - 1e-7. The loss is finite, but the gradient is 0: where p is
# clipped, the loss does not depend on p. So the model learns nothing from the worst mistake of all. The cure is to
# compute the loss from the **logit**, the number that goes into the sigmoid. The option `from_logits` in
# `more/04_metrics` does that. (On TensorFlow, Keras does it by itself if a model ends in a sigmoid. In Keras 3.15 a
# logit of -200 then gives the loss 200 and a gradient of size 1. On PyTorch and JAX, or if it is given only a
# probability, Keras clips as we do.)
#
# **A good place to stop.** You have layers, and two losses that say how wrong their predictions are. This is the end of
# the first sitting.
#
# The next cell saves what is finished. For the rest it takes the course's cells. Then it trains both models in a fresh
# Python: the line and the net.

# %%
build.so_far("04_mid_level")

# %% [markdown]
# ## What to do about it: optimizers (7 min)
#
# An **optimizer** says how a variable changes, given its gradient. The oldest rule, gradient descent, subtracts the
# gradient times a number, the **rate**. Write that rule. (On level 1 you wrote it for single numbers, with the
# arguments in another order.)

# %%
#| export optimizers
"""Optimizers: how a variable changes, given its gradient."""

import math

from levels.low_level import constant, exp, sqrt
from levels.support.trainings import check_rate, check_same_variables


# %%
#| export optimizers blank descend
def descend(rate, dw, w):
    """The value of w, a tensor or a number, after one step against its gradient dw."""
    ...  # 1 line


# %% [markdown]
# <details><summary>Hint</summary>As on level 1, w moves against its gradient.</details>
# <details><summary>Second hint</summary><code>rate * dw</code> is how far it moves.</details>
# <details><summary>Solution</summary>
#
# ```python
# def descend(rate, dw, w):
#     """The value of w, a tensor or a number, after one step against its gradient dw."""
#     return w - rate * dw
# ```
# </details>

# %%
print(descend(0.1, 2.0, 1.0))

# %% [markdown]
# Now we change all variables of a model at once. The model is the line of notebooks 1 to 3, and each step takes ten of
# its 400 points. `line.batches` holds the **row numbers** of these points for 8,000 steps.

# %%
from levels.low_level import function

model = Dense(1)
model(line.x)  # this call makes its variables


@function
def step(x, y):
    with GradientTape() as tape:
        loss = mse(y, model(x))
    for w, dw in zip(model.variables, tape.gradient(loss, model.variables)):
        w.assign(descend(0.0005, dw, w))
    return loss


losses = step.over(line.x, line.y, line.batches).numpy()
print(f"loss {losses[0]:.4f} … {losses[-1]:.4f}")
print("w and b", *(w.numpy().ravel().round(2) for w in model.variables))

# %% [markdown]
# That is nearly w = (2, -3) and b = 3, as the data was made. Two problems remain:
#
# - The rate is a number in the code. To change it, you would have to compile the step again.
# - Many optimizers remember numbers for each variable, and our step has no place for them. Such a place is called a
#   **slot**.
#
# So an optimizer owns variables, too: one for the rate, one for the number of steps, and one for each slot.
#
# ## SGD and Adam (16 min)
#
# An optimizer's variables change in each step, but get no gradients:


# %%
#| export optimizers
def _kept(array):
    """Return a variable that begins as this array, and is not trained."""
    return Variable(array, trainable=False)


# %% [markdown]
# `apply_gradients` takes pairs of gradient and variable. It counts the step. For each pair it calls `update`, and
# assigns the new numbers to the variable and its slots. Before that, `_owned` checks the pairs. On the first call
# `_owned` also calls `build`, which makes the optimizer's variables. Each variable of the model gets one slot for each
# name in `memory`. The property `learning_rate` reads the rate, and assigns a new one to its variable.


# %%
#| export optimizers most Optimizer.apply_gradients
class Optimizer(Reconstructible, Module):
    """Subclasses define `update(rate, dw, w, *slots)` -> (new w, *new slots)."""

    excluded = True  # a model that keeps an optimizer does not list its variables
    memory = ()  # the names of the slots: each begins at 0, shaped like its variable
    rate = trained_variables = Unset()  # `__init__` sets them

    def __init__(self, learning_rate=0.01):
        self.trained_variables = None  # after `build` a dict: its keys are variables
        self.learning_rate = learning_rate

    @property
    def learning_rate(self):
        return float(self.rate)

    @learning_rate.setter
    def learning_rate(self, value):
        if self.trained_variables is None:
            self.rate = check_rate(self, value)
        else:
            self.rate.assign(check_rate(self, value))

    def build(self, variables):
        """Make the slots for these variables, which are trained from now on."""
        zeros = [np.zeros(v.shape, v.dtype) for v in variables]
        self.iterations = _kept(np.zeros((), zeros[0].dtype))
        self.rate = _kept(np.array(self.rate, zeros[0].dtype))
        self.slots = [{name: _kept(zero) for name in self.memory} for zero in zeros]
        self.trained_variables = dict.fromkeys(variables)  # last: it marks the end

    def _owned(self, grads_and_vars):
        """Return the gradients and the variables, after a build the first time."""
        gradients, variables = check_pairs(grads_and_vars, Variable, as_tensor)
        with MAKING:
            if self.trained_variables is None:
                self.build(variables)
        return gradients, check_same_variables(self, variables)

    def apply_gradients(self, grads_and_vars):
        """Take one step with pairs (gradient, variable)."""
        gradients, variables = self._owned(grads_and_vars)
        rate = self.rate
        self.iterations.assign(self.iterations + 1.0)
        for dw, w, slots in zip(gradients, variables, self.slots):
            new = self.update(rate, dw, w, *slots.values())
            for variable, value in zip((w, *slots.values()), new):
                variable.assign(value)


# %% [markdown]
# SGD, stochastic gradient descent, remembers nothing. So its `update` returns only the new w, from your function.
# (Keras calls it the same way, `sgd.apply_gradients(…)`. In PyTorch `loss.backward()` stores a gradient in each
# weight's `grad`, and `sgd.step()` reads it there.)


# %%
#| export optimizers
class SGD(Optimizer):
    """w ← w - rate·dw"""

    def update(self, rate, dw, w):
        return (descend(rate, dw, w),)


# %% [markdown]
# You can change its rate at any time. A compiled step uses the new rate:

# %%
w = Variable(np.array(1.0))
sgd = SGD(0.1)
step = function(lambda: sgd.apply_gradients([(constant(np.array(1.0)), w)]))
for rate in (0.1, 0.1, 0.001):
    sgd.learning_rate = rate
    step()
    print(f"rate {rate}: w = {float(w):.4f}")

# %% [markdown]
# **A good place to stop.** An optimizer changes all variables of a model, and owns its rate.
#
# **Adam** ([Kingma and Ba, 2015](https://arxiv.org/abs/1412.6980)) remembers two running means: `m` of the gradient,
# and `v` of its square. At each step the new mean is β times the old mean plus (1 - β) times the new number. The mean
# begins at 0, so it is too small at first. Here the gradient is always 1:

# %%
m, beta = 0.0, 0.9
for t in (1, 2, 3):
    m = beta * m + (1 - beta) * 1.0
    print(f"step {t}: m = {m:.3f}, and m / (1 - βᵗ) = {m / (1 - beta**t):.3f}")

# %% [markdown]
# After t steps m is too small by the factor 1 - βᵗ, so Adam divides by that factor. Then it divides the mean of the
# gradient by the root of the mean square. So each gradient is measured against its own usual size. (t, the number of
# steps, is the variable `iterations`. We have an op for `exp` but none for powers, so the code computes βᵗ as exp(t·log
# β).)


# %%
#| export optimizers most Adam.update
class Adam(Optimizer):
    """m ← β₁·m + (1 - β₁)·dw; v ← β₂·v + (1 - β₂)·dw²
    w ← w - rate·(m / (1 - β₁ᵗ)) / (√(v / (1 - β₂ᵗ)) + ε)

    Kingma and Ba, 2015, Algorithm 1. (Keras adds ε before the correction.)
    """

    memory = "m", "v"

    def __init__(self, learning_rate=0.001, beta_1=0.9, beta_2=0.999, epsilon=1e-7):
        super().__init__(learning_rate)
        self.beta_1 = check_positive("Adam: beta_1", beta_1, 1.0)
        self.beta_2 = check_positive("Adam: beta_2", beta_2, 1.0)
        self.epsilon = check_positive("Adam: epsilon", epsilon)

    def update(self, rate, dw, w, m, v):
        m = self.beta_1 * m + (1.0 - self.beta_1) * dw
        v = self.beta_2 * v + (1.0 - self.beta_2) * (dw * dw)
        m_hat = m / (1.0 - exp(self.iterations * math.log(self.beta_1)))
        v_hat = v / (1.0 - exp(self.iterations * math.log(self.beta_2)))
        return w - rate * m_hat / (sqrt(v_hat) + self.epsilon), m, v


OPTIMIZERS = {"sgd": SGD, "adam": Adam}

# %% [markdown]
# What does Adam do with very small and very large gradients?

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "04-adam",
    "How far does Adam's first step at rate 0.001 go, for gradients of 1e-6 and 1e6?",
    choices=["1e-9 and 1,000", "both by nearly 0.001", "0.001 and 1,000"],
)

# %%
for gradient in (1e-6, 1e6):
    ends = []
    for optimizer in (SGD(0.001), Adam(0.001)):
        w = Variable(np.zeros(()))
        optimizer.apply_gradients([(constant(np.array(gradient)), w)])
        ends.append(float(w))
    print(f"gradient {gradient:g}: SGD moves w by {ends[0]:g}, Adam by {ends[1]:.3g}")

# %%
checks.answer_to("04-adam")

# %% [markdown]
# For SGD the rate is a factor. For Adam it is a distance: about how far a weight moves in one step. So the two need
# different rates, and a comparison at one rate is unfair.
#
# ## The race (15 min)
#
# Which optimizer is faster, and does it matter? We begin with SGD and predict the mass of 342 penguins in kg from their
# bill depth in mm.

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "04-race",
    "A line over the raw millimetres, plain SGD at rate 0.01. What does the loss do?",
    choices=["it falls at once", "it falls, but slowly", "it grows without end"],
)


# %% [markdown]
# This function fits a line, starting from zero, with all rows in each step. The step is the one from above, now with an
# optimizer. The function returns the losses, the **path** (w and b before each step), and the model.


# %%
def run(optimizer, x, y, updates=1000):
    """Fit x @ w + b from zero. Return losses, path (if x has one column), model."""
    model = Dense(1)
    model(x)
    model.set_weights([np.zeros(v.shape) for v in model.variables])

    @function
    def step(x, y):
        before = [constant(v) for v in model.variables if v.shape == (1, 1)]
        with GradientTape() as tape:
            loss = mse(y, model(x))
        gradients = tape.gradient(loss, model.variables)
        optimizer.apply_gradients(zip(gradients, model.variables))
        return loss, *before

    all_rows = np.broadcast_to(np.arange(len(x)), (updates + 1, len(x)))
    losses, *path = (each.numpy() for each in step.over(x, y, all_rows))
    return losses, np.column_stack(path), model


# %%
millimetres = depth[:, None]
kilograms = mass[:, None] / 1000
losses, *_ = run(SGD(0.01), millimetres, kilograms, 200)
print(*(f"{loss:.3g}" for loss in losses[:5]), "…", f"{losses[-1]:.3g}")

# %%
checks.answer_to("04-race")

# %% [markdown]
# Each step makes the loss about 25 times as large. Why? As a function of one weight, the mean squared error is a
# parabola. Let d be the distance to its lowest point. The slope is curvature · d, where the **curvature** is twice the
# mean of x². A step goes rate · slope, which is rate · curvature · d.

# %%
curvature = 2 * (millimetres**2).mean()
print(f"curvature {curvature:.0f}: a step goes {0.01 * curvature:.2f}·d")

# %% [markdown]
# A step of 5.96·d ends 4.96·d beyond the lowest point. The height of the loss above its minimum grows with the square
# of the distance, so it becomes 4.96² ≈ 25 times as large. Only a step shorter than 2·d ends nearer than it began. That
# needs a rate below 2/596, about 0.003. The bias has a curvature of only 2. For it alone, any rate below 1 would do.
# But weight and bias share one rate.
#
# To **standardise** a column, subtract its mean and divide by its standard deviation. Then the curvature of its weight
# is 2 as well. And the best bias no longer depends on the weight.

# %%
standardised, _ = tasks.standardise(millimetres, millimetres)
inputs = {"raw": millimetres, "standardised": standardised}
losses, *_ = run(SGD(0.5), inputs["standardised"], kilograms)
print(f"{losses[0]:.4f} {losses[1]:.4f} {losses[2]:.4f} … {losses[-1]:.4f}")

# %% [markdown]
# The curvature is 2, so at rate 0.5 a step goes exactly the distance d. SGD reaches the lowest point after one update.
# No optimizer is faster.
#
# The next figure draws the paths of SGD and Adam on a map of weight and bias, with marks at the updates 1, 10, 100 and
# 1,000. In the yellow ellipse the loss is within 1 % of the best one. An optimizer has **arrived** when its path stays
# in the ellipse. **Which one does better?** On raw millimetres, try the rates 0.002, 0.005 and 0.5. Then set `columns`
# to standardised.

# %% tags=["hide-input"]
# the race, with two sliders: run me
from course.reader.figures import race, widgets

RATES = [m * 10**-k for k in (4, 3, 2, 1) for m in (1, 2, 5)] + [1]


def draw(columns, rate):
    x = inputs[columns]
    runs = {
        "SGD": run(SGD(rate), x, kilograms)[:2],
        "Adam": run(Adam(rate), x, kilograms)[:2],
    }
    return race.drawn(columns, rate, x, kilograms, runs)


widgets.explore(
    draw,
    "The optimizer race: SGD and Adam on the loss of a line through the penguins.",
    columns=[*inputs],
    rate=RATES,
    start={"rate": 0.002},
)

# %% [markdown]
# One rate cannot suit both. To be fair, this table gives each optimizer the best rate of the slider:

# %%
race.fewest(run, {"SGD": SGD, "Adam": Adam}, inputs, kilograms, RATES)

# %% [markdown]
# On raw millimetres Adam arrives after 328 updates. SGD does not arrive within 1,000, at any rate of the slider. On the
# standardised column SGD needs 1 update. **Scaling was the cure, not Adam.** But the inputs of the inner layers of a
# deep net cannot be scaled beforehand, and there Adam helps. (`more/04_optimizers` adds momentum to the race.)
#
# **A good place to stop.** You have layers, losses and optimizers, and you know why to scale inputs first.
#
# ## Data that arrives in batches (11 min)
#
# Training takes its rows in batches, in a new order for each pass over the data. The rows lie in memory, so a batch is
# just a few row numbers. A generator could make these numbers, but it has one flaw:

# %%
order = (np.random.permutation(4)[:2] for _ in range(2))
print(len(list(order)), len(list(order)))

# %% [markdown]
# The second pass finds nothing, because a generator runs only once. Training passes over the same data hundreds of
# times, so we keep a function that *makes* the row numbers. That is what a **dataset** is: a recipe. A stage, such as
# `shuffle`, is a new recipe that calls an old one.


# %%
class Recipe:
    """A recipe for row numbers: `make` is called again for each pass."""

    def __init__(self, make):
        self.make = make

    def shuffle(self):
        return Recipe(lambda: np.random.permutation(self.make()))

    def batch(self, size):
        return Recipe(lambda: self.make().reshape(-1, size))


recipe = Recipe(lambda: np.arange(6)).shuffle().batch(3)
print(np.sort(recipe.make().ravel()), recipe.make().shape)

# %% [markdown]
# Each call of `make` is a pass. The sorted numbers show that the first pass holds all six rows. The shape shows that
# the second has two batches of three.
#
# Our class `Dataset` works like that. First comes the function that `shuffle` uses. The seed and the number of the pass
# determine the order ([NEP 19](https://numpy.org/neps/nep-0019-rng-policy.html) guarantees that). Without a seed,
# `RANDOM` draws one.


# %%
#| export data
"""Data in batches: arrays, and a recipe for the numbers of their rows."""

import itertools

from levels.low_level import gather
from levels.support.inputs import check_arrays, check_batches, row_numbers


def _shuffled(make, seed):
    """Return a recipe for the rows of `make`, in a new order in each pass."""
    seed = RANDOM.getrandbits(32) if seed is None else seed
    check_int(0, "shuffle: seed", seed)
    passes = itertools.count()

    def make_again():
        draw = np.random.RandomState(np.random.PCG64([seed, next(passes)]))
        return draw.permutation(make())

    return make_again


# %% [markdown]
# A `Dataset` holds arrays and a recipe, and `gather` takes the rows of a batch from the arrays. Its `shuffle` and
# `batch` make a new recipe from the old one, as above. The last batch may be shorter. A dataset is made by
# `from_tensor_slices` from a tuple of arrays, or by `from_batches` from two arrays and the row numbers of all batches.
# (The argument `buffer_size` comes from TensorFlow, which draws each row at random from a buffer of that many rows.
# Here it must be at least the number of all rows.)


# %%
#| export data most Dataset.batch
class Dataset:
    """Rows of a tuple of arrays, as in `tf.data`. May be shuffled and in batches."""

    def __init__(self, arrays, make, length, batches=False):
        self.arrays = arrays
        self.make = make  # returns row numbers, or batches of them
        self.length = length
        self.batches = batches

    def __len__(self):
        return self.length

    def __iter__(self):
        for rows in self.make():
            yield tuple(gather(x, constant(rows, np.int64)) for x in self.arrays)

    def rows(self):
        """Return the arrays, and the batches of one pass, for `function(step).over`."""
        check_batches("rows", self, True)
        return self.arrays, self.make()

    @classmethod
    def from_tensor_slices(cls, arrays):
        """Make a dataset of the rows of a tuple of arrays, which are equally long."""
        n = check_arrays(arrays)
        return cls(tuple(map(constant, arrays)), lambda: np.arange(n), n)

    @classmethod
    def from_batches(cls, x, y, batches):
        """Make a dataset of batches (x, y) from row numbers `batches`[steps, batch]."""
        source = cls.from_tensor_slices((x, y))
        rows = row_numbers("from_batches: batches", batches, len(source))
        return cls(source.arrays, lambda: rows, len(rows), batches=True)

    def shuffle(self, buffer_size, seed=None):
        """Shuffle anew in each pass. The same seed gives the same orders."""
        check_batches("shuffle", self, False)
        check_int(len(self), "shuffle: buffer_size", buffer_size)
        return Dataset(self.arrays, _shuffled(self.make, seed), len(self))

    def batch(self, batch_size):
        """Make batches of that many rows. The last one may be shorter."""
        check_batches("batch", self, False)
        n = check_int(1, "batch: batch_size", batch_size)

        def make():
            return np.split(self.make(), range(n, len(self), n))

        return Dataset(self.arrays, make, math.ceil(len(self) / n), batches=True)


# %% [markdown]
# Here are seven rows in batches of three:

# %%
data = Dataset.from_tensor_slices((np.arange(7.0),)).batch(3)
print(*(x.numpy() for (x,) in data))
(x,), batches = data.rows()
print(x.numpy(), *batches)

# %% [markdown]
# A loop over a dataset gives one batch after the other. `rows()` gives the arrays as they are, and the row numbers of
# one pass. A compiled function takes both, and runs the whole pass in one call. (A figure of the stages is in
# `more/04_pipeline`.)
#
# **A good place to stop.** You have the four kinds of part: layers, losses, optimizers and datasets.
#
# ## The surprise, explained (4 min)
#
# The line over all penguins had no column for the species, because a species is a word and not a number. The numbers 0,
# 1 and 2 would not do: they would place Chinstraps half-way between Adelies and Gentoos. So each species gets its own
# column, with 1 in the rows of its birds and 0 in all others:

# %%
names = ["Adelie", "Chinstrap", "Gentoo"]
indicators = (species[:, None] == names).astype(float)
print(indicators[[0, 200, 300]], *species[[0, 200, 300]])

# %% [markdown]
# These columns are called **indicators**. A model of bill depth and indicators has one slope, but a line of its own
# height for each species. With `run` from the race we train a model without the species and one with it. First we
# subtract 17 mm from all depths, which is about their mean. Without that, the rate would have to be tiny, as in the
# race.

# %%
from course.reader.figures import penguins as penguin_figures

centred = depth[:, None] - 17.0
columns = {
    "without species": centred,
    "with species": np.hstack([centred, indicators]),
}
masses = {}
for name, x in columns.items():
    *_, model = run(SGD(0.1), x, mass[:, None], updates=3000)
    masses[name] = model(x).numpy()[:, 0]
    print(f"{name:15} {model.kernel.numpy()[0, 0]:7.1f} g per mm of bill depth")

penguin_figures.one_line_or_three(depth, mass, species, *masses.values())

# %% [markdown]
# The sign has changed. The new slope, 257, lies between the smallest and the largest of the three slopes at the
# beginning, because the model has only one slope for all species. If an effect has no column, it goes into the weights
# of columns that vary with it.
#
# ## The two tasks on this level (8 min)
#
# ### Data

# %%
task = tasks.linear()
print("x", task.x.shape, " y", task.y.shape, " batches", task.batches.shape)

# %% [markdown]
# ### Model and training
#
# The model is a list of layers. We still write the step ourselves, but it no longer contains the name of any weight.
# `trace` calls the model on one row of symbols, so that the layers make their variables. Then they get the starting
# weights that all five levels share. Four comments are the same on every level: forward, loss, backward and update. The
# result is level 1's `Fit`, with losses, weights and `predict`.

# %%
#| export tasks
"""The two tasks with layers, a loss, an optimizer and a dataset."""

from levels.hardware.tasks import Fit
from levels.low_level import trace
from levels.support.inputs import check_inputs, check_task

# %% [markdown]
# Both tasks train in the same way:


# %%
#| export tasks
def _train(layers, loss_of, sgd, data, weights):
    """Train a chain of layers from starting weights, one step per batch of the data."""

    def model(rows):
        for layer in layers:
            rows = layer(rows)
        return rows

    (x, y), batches = data.rows()
    trace(model, [x.device.spec((1, *x.shape[1:]), x.dtype)])  # makes the variables
    for layer, *start in zip(layers, weights[::2], weights[1::2]):
        layer.set_weights(start)
    variables = [variable for layer in layers for variable in layer.trainable_variables]

    @function
    def step(rows, target):
        with GradientTape() as tape:
            prediction = model(rows)  # forward
            loss = loss_of(target, prediction)  # loss
        gradients = tape.gradient(loss, variables)  # backward
        sgd.apply_gradients(zip(gradients, variables))  # update
        return loss

    losses = step.over(x, y, batches).numpy()

    def predict(x):
        check_inputs(x, weights[0].dtype, len(weights[0]))
        return model(x).numpy()

    return Fit(losses, [v.numpy() for v in variables], predict)


# %% [markdown]
# The first task only has to choose its parts: the layers, the loss, the optimizer and the data.


# %%
#| export tasks
def linear_regression(x, y, weights, batches, learning_rate=0.0005):
    """Train a line by SGD on the mean squared error. For the shapes, see `Fit`."""
    check_task(x, y, weights, batches, learning_rate, units=[1])
    layers = [Dense(1)]  # model
    loss_of = MeanSquaredError()

    data = Dataset.from_batches(x, y, batches)
    return _train(layers, loss_of, SGD(learning_rate), data, weights)


# %%
from levels import hardware, low_level

fit = linear_regression(*task[:2], *task[4:7])  # x, y, weights, batches, learning rate
below = low_level.tasks.linear_regression(*task[:2], *task[4:7])
print("losses equal: ", bool((fit.losses == below.losses).all()))
print("weights equal:", all((p == q).all() for p, q in zip(fit.weights, below.weights)))
print(f"last loss     {fit.losses[-1]:.4g} ({float(fit.losses[-1]).hex()})")

# %% [markdown]
# All 8,000 losses equal those of level 3, to the last bit.
#
# ### Result

# %%
figures.regression(task, fit)

# %% [markdown]
# On points that it has not seen, the model explains nearly all of the variance of y. The explained share is called R².
#
# ### The second task: a net
#
# The net has three layers instead of one, and another loss. The step is the same.


# %%
#| export tasks
def dnn_classifier(x, y, weights, batches, learning_rate=0.01):
    """Train a net of 4-8-1 units (relu, relu, sigmoid) by SGD. Shapes: see `Fit`."""
    check_task(x, y, weights, batches, learning_rate, units=[4, 8, 1])
    layers = [Dense(4, "relu"), Dense(8, "relu"), Dense(1, "sigmoid")]  # model
    loss_of = BinaryCrossentropy()

    data = Dataset.from_batches(x, y, batches)
    return _train(layers, loss_of, SGD(learning_rate), data, weights)


# %%
rings = tasks.rings()
ring_fit = dnn_classifier(*rings[:2], *rings[4:7])
below = hardware.tasks.dnn_classifier(*rings[:2], *rings[4:7])  # level 1's program
print("losses equal: ", bool((ring_fit.losses == below.losses).all()))
weights = zip(ring_fit.weights, below.weights)
print("weights equal:", all((p == q).all() for p, q in weights))
figures.classifier(rings, ring_fit)

# %% [markdown]
# All 24,000 losses equal those of level 1, where the net was a program of machine instructions.
#
# ## What this level cost (3 min)
#
# Layers, losses and optimizers are objects, and each step calls them. What do these calls cost? We measure both tasks
# on levels 3 and 4. (*3 eager* runs op by op. To save time, it does only the last steps, from the weights that level 1
# has by then.)

# %%
from course import compare

trainers = low_level.tasks.linear_regression, linear_regression
line = compare.measure(task, *trainers, last=500)
trainers = low_level.tasks.dnn_classifier, dnn_classifier
net = compare.measure(rings, *trainers, last=50, repeats=1)

# %% tags=["nbval-ignore-output"]
print("per step:    lines  launches    bytes  predicted  measured  last loss")
for row in line.rows + net.rows:
    counts = f"{row.lines:5} {row.launches:9.2g} {row.nbytes:8,.0f}"
    times = f"{row.predicted * 1e6:7.3g} µs {row.measured * 1e6:6.3g} µs"
    print(f"{row.name:12} {counts} {times} {row.losses[-1]:10.4g}")

# %% [markdown]
# The first three rows are the line, the last three the net. The layers are called once, while the step is traced, and
# the compiled program holds only the ops that they called. So a compiled step moves as many bytes as on level 3. For
# the net it also takes about as long. (One launch runs all 8,000 or 24,000 steps. The times include the compiling. For
# the line that is most of the time, and it takes longer with layers.)
#
# ## Side by side (4 min)
#
# The row *model* grows. In the four rows below it the names of the weights are gone.

# %%
compare.side_by_side(line, net)

# %% [markdown]
# Compare the two tasks, *The line* and *Two rings*. On level 3 all five rows, from *model* to *update*, differ between
# the two. On level 4 only *model* differs: the layers and the loss. The other rows come from `_train`, which both tasks
# share.
#
# ## The same in TensorFlow and PyTorch (1 min)
#
# Here is the net in TensorFlow, in PyTorch and on this level, with the same batches. Look at the row *update*: which
# program passes no gradients to the optimizer? (The first two ran with the real libraries. With one import changed they
# also run on `levels`, see `more/03_torch` and `more/05_tensorflow`.)

# %%
from course.reader.inspection import framework_programs

framework_programs.beside(rings, dnn_classifier)

# %% [markdown]
# Parts of the same name follow other rules ([more/05_differences](more/05_differences.ipynb)):
# [the loss of a certain mistake](more/05_differences.ipynb#cross_entropy_of_a_certain_mistake),
# [of weighted rows](more/05_differences.ipynb#cross_entropy_with_weights),
# [of a row and a column](more/05_differences.ipynb#loss_of_a_column_and_a_row),
# [Adam with a tiny gradient](more/05_differences.ipynb#adam_with_a_tiny_gradient),
# [momentum after a new rate](more/05_differences.ipynb#momentum_and_a_new_rate).
#
# ## What you do differently now (1 min)
#
# You print the shapes of `y` and `y_pred` before you trust a loss, because
# (100,) against (100, 1) broadcasts without an error. You scale the inputs before you change the optimizer, and you
# compare optimizers at the best rate of each. Before you explain a weight, you ask which columns are missing. You know
# that random starting weights are there to make units differ. You save an optimizer's slots together with the weights,
# because otherwise Adam's running means begin at zero again.
#
# ## Exercises (optional)
#
# Fill in the stub, run the cell, and read what the check says.
#
# ### 04-5 · Break it: standardised by itself
#
# This model predicts the mass from the length of the flipper. It standardises whatever flippers it is given, which
# looks reasonable:

# %%
from course import tasks
from course.reader import exercises

exercises.begin("04-5")

columns = "species", "flipper_length_mm", "body_mass_g"
table = tasks.read("penguins.csv", columns, (str, str, str))
table = [row for row in table if "NA" not in row]
gentoo = np.array([name == "Gentoo" for name, _, _ in table])
flipper = np.array([float(length) for _, length, _ in table])
mass = np.array([float(grams) / 1000 for _, _, grams in table])
slope, level = np.polyfit((flipper - flipper.mean()) / flipper.std(), mass, 1)


def predicted_mass(flipper):
    return slope * (flipper - flipper.mean()) / flipper.std() + level


for name, which in {"all penguins": flipper > 0, "the Gentoos": gentoo}.items():
    predicted = predicted_mass(flipper[which]).mean()
    weighed = mass[which].mean()
    print(f"{name:12}  predicted {predicted:.2f} kg, weighed {weighed:.2f} kg")

# %% [markdown]
# The line fits well, and yet it predicts Gentoos almost a kilogram too light. Print the mean of `predicted_mass` for
# the Adelies alone, with a mask like `gentoo`. Compare the three predicted means to find the cause. What would the
# model predict for a single bird?
#
# The means and deviations belong to the model, like its weights. They are computed from the training rows, and the test
# rows are standardised with *these* numbers. The test rows must not take part in the computation: a row that has shaped
# the model can no longer test it. Write a function that does this, in about 3 lines. (A column that is constant in x
# has the deviation 0. Divide it by 1.)

# %%
from course.reader import exercises

exercises.begin("04-5")


def standardised(x, x_test):
    """Return x and x_test [rows, columns], standardised with the numbers of x.

    Each column minus its mean in x, divided by its standard deviation in x.
    """
    return ...


exercises.check("04-5", standardised)

# %% [markdown]
# ### Without a check
#
# - An Emperor penguin is none of the three species. What does its row of indicators hold, and what does the model
#   predict for it? Add a fourth indicator, which is 1 for "unknown". What is its weight after the training, and why?
# - In `_train`, after the weights are set, set `trainable` of the first layer's kernel to False. Which weights still
#   change, and how good is the net?
#
# ## Where to go from here
#
# Next comes [5 · High-level API](05_high_level.ipynb). There the model takes over the training loop, the last thing
# that you still write yourself.
#
# [The walk](05_high_level.ipynb#From-fit-to-the-multiply) follows one step from `fit` down to an instruction. Its stage
# 4 is on this level.
#
# Each of these notebooks takes one idea further, in at most 50 minutes:
#
# - [more/04_layers](more/04_layers.ipynb): more starting weights, penalties, dropout, batch normalization, embeddings;
#   *exercise: a layer*
# - [more/04_optimizers](more/04_optimizers.ipynb): momentum, curvature in every direction, schedules, clipping;
#   *exercise: signs only*
# - [more/04_pipeline](more/04_pipeline.ipynb): shuffling data that does not fit into memory, functions, files, threads
# - [more/04_columns](more/04_columns.ipynb): words, missing values, ranges and pairs as columns
# - [more/04_metrics](more/04_metrics.ipynb): losses of logits and of several classes; accuracy over batches, precision,
#   recall, AUC, R²; *exercises: a loss for data with outliers, a metric with a state*
#
# ## Build

# %%
build.level("04_mid_level", linear_regression, dnn_classifier)

# %% [markdown]
# Level 4 is built. Next: [5 · High-level API](05_high_level.ipynb).

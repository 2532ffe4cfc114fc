# %% [markdown]
# # 4 · Mid-level API
#
# **In this notebook a part owns its variables, and a model becomes a list of parts.**
#
# This is the level of `tf.keras.layers` and `torch.nn`, of losses, optimizers and datasets. Four kinds of part come one after
# the other, each first in a few lines. Then both tasks are put together from them.

# %%
from course import build, figures, tasks
from course.practice import checks

build.watch("04_mid_level")
figures.you_are_here(4)

# %% [markdown]
# From level 3 we take: a `Variable` is a tensor that can be assigned anew; a `GradientTape` writes down ops and walks back
# through them; `function` compiles a step, and its `over` runs it for each row of a list of row numbers; a `Module` finds the
# variables inside it. In the house of five levels, ops were the bricks. Now they become walls: a wall stands by itself, and
# whoever builds with it need not count its bricks.
#
# ## A surprise to begin with (4 min)
#
# Do penguins with deeper bills weigh more? We fit a line through all 342 of them, mass over bill depth. Then we do the same
# for the Adelies alone, for the Chinstraps and for the Gentoos.

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "Which signs have the slopes?",
    choices=[
        "plus for all penguins, plus in each species",
        "plus for all penguins, minus in some species",
        "minus for all penguins, plus in each species",
        "minus for all penguins, minus in some species",
    ],
    answer="minus for all penguins, plus in each species",
    because="Within a species a larger bird has a larger bill. But Gentoos, the heaviest of the three, have the shallowest "
    "bills, and a line through all penguins runs down from them to the others.",
)

# %% [markdown]
# This cell reads three columns of the table, as arrays. Then we pick rows by a **mask**, a true or false for each row: an
# array in brackets keeps the rows that are true.

# %%
import numpy as np

birds = tasks.read("penguins.csv", ("species", "bill_depth_mm", "body_mass_g"), (str, str, str))
birds = [bird for bird in birds if "NA" not in bird]
species = np.array([name for name, _, _ in birds])
depth, mass = np.array([[float(d), float(m)] for _, d, m in birds]).T

# %%
for group in ("all", "Adelie", "Chinstrap", "Gentoo"):
    mask = (species == group) | (group == "all")
    slope, _ = np.polyfit(depth[mask], mass[mask], 1)
    print(f"{group:10} {slope:7.1f} g per mm of bill depth")

# %% [markdown]
# Not one of the three groups does what they do together ([Simpson's
# paradox](https://doi.org/10.1111/j.2517-6161.1951.tb00088.x)). A model that is not told the species takes its effect for one
# of the bill. Towards the end we tell it, and see the sign turn.
#
# A model is only as good as the columns it is given, and real models take many columns. So they are made of parts, and each
# part has to look after its own weights.
#
# ## A part owns its variables (31 min)
#
# On level 3 the weights were loose variables, and every function had to be handed all of them. A **layer** keeps its own.
# What it computes is the formula of both tasks, for any number of **units**. A unit is one column of the kernel, and makes one
# number out of all that go in.
#
# This one is yours:

# %%
#| export layers
"""A part owns its variables: layers."""

import math
import random


# %%
#| export layers blank affine
def affine(x, kernel, bias):
    """The sums of a layer, [batch, units], from x[batch, inputs], kernel[inputs, units] and bias[1, units]."""
    ...  # 1 line


# %% [markdown]
# <details><summary>Hint</summary>Rows times columns: one operator of Python stands for the matrix product.</details>
# <details><summary>Second hint</summary><code>x @ kernel</code>, and the bias last: it is repeated for each row.</details>
# <details><summary>Solution</summary>
#
# ```python
# def affine(x, kernel, bias):
#     """The sums of a layer, [batch, units], from x[batch, inputs], kernel[inputs, units] and bias[1, units]."""
#     return x @ kernel + bias
# ```
# </details>

# %%
two_rows, kernel = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0, 10.0, 0.0], [1.0, 0.0, 10.0]])
affine(two_rows, kernel, np.array([[0.5, 0.0, 0.0]]))

# %% [markdown]
# Two rows of two numbers, three units: three numbers for each row. Now let a layer own `kernel` and `bias`. It makes them when
# it first sees an input, because only then is their size known:

# %%
from levels.low_level import Variable


class FirstLayer:
    built = False

    def __init__(self, units):
        self.units = units

    def __call__(self, x):
        if not self.built:
            self.kernel, self.bias = Variable(np.zeros((x.shape[1], self.units))), Variable(np.zeros((1, self.units)))
            self.built = True
        return affine(x, self.kernel, self.bias)


line = tasks.linear()
first = FirstLayer(1)
print(first(line.x[:3]).numpy().ravel(), first.kernel.shape)

# %% [markdown]
# That is a layer: built by its first call, and from then on it runs. Nobody else has to know its weights. But see what becomes
# of two units side by side, and one on top of them, after two steps down a loss (in the first, only the top one learns):

# %%
from levels.low_level import GradientTape, nn, reduce_sum


def after_two_steps(hidden, top):
    for _ in range(2):
        with GradientTape() as tape:
            prediction = top(nn.sigmoid(hidden(line.x[:10])))
            loss = reduce_sum((prediction - line.y[:10]) ** 2)
        for w, dw in zip((hidden.kernel, top.kernel), tape.gradient(loss, [hidden.kernel, top.kernel])):
            w.assign(w - 0.01 * dw)
    return hidden.kernel.numpy().round(4)


after_two_steps(FirstLayer(2), FirstLayer(1))

# %% [markdown]
# Both columns are equal. Units that start equal get equal gradients, and stay equal for ever. So weights are drawn at random.
# From which range? Too large weights make the numbers larger from layer to layer, and too small ones make them fade. [Glorot and
# Bengio, 2010](https://proceedings.mlr.press/v9/glorot10a.html), take how many numbers go in and come out, and give a range
# between the two:

# %%
#| export layers
from levels.low_level import as_tensor, nn

RANDOM = random.Random(0)  # where starting weights come from; RANDOM.seed(n) repeats them


def glorot_uniform(shape):
    """Numbers for weights [inputs, units], uniform in ±√(6 / (inputs + units)) (Glorot and Bengio, 2010)."""
    limit = math.sqrt(6.0 / sum(shape[-2:]))  # inputs and units are the last two axes
    return [RANDOM.uniform(-limit, limit) for _ in range(math.prod(shape))]


INITIALIZERS = {"zeros": lambda shape: [0.0] * math.prod(shape), "glorot_uniform": glorot_uniform}
ACTIVATIONS = {"linear": as_tensor, "relu": nn.relu, "sigmoid": nn.sigmoid}

# %%
print(*(f"{w:.3f}" for w in glorot_uniform((2, 4))))

# %% [markdown]
# Eight weights, none beyond √(6 / 6) = 1. A function that makes starting weights is an **initializer**; an **activation** is
# the function that a layer puts on its result, such as relu. Both have names, as in Keras, and stand in a table each.
#
# **A good place to stop.** A layer keeps its own weights, and they are drawn at random.
#
# Three things have nothing to do with learning, and all parts share them. First, each remembers how it was made: `again()` makes
# another one. (From `levels/support` come `known`, which looks a name up in such a table, and `at_least` and `positive`, which refuse a
# number out of range.)

# %%
#| export layers
import functools
import inspect

from levels.hardware import PLACE
from levels.low_level import Module, Operators
from levels.support.checks import at_least, flag, known, positive
from levels.support.locks import MAKING


class Made:
    """Remembers how it was made: `part.again()` makes a new one with the same arguments."""

    def __new__(cls, *args, **options):
        part = super().__new__(cls)
        part.again = functools.partial(cls, *args, **options)
        return part

    def __repr__(self):
        given = [*map(repr, self.again.args), *(f"{name}={value!r}" for name, value in self.again.keywords.items())]
        return f"{type(self).__name__}({', '.join(given)})"


# %% [markdown]
# Second, a part has a name and a dtype. A call of it goes to `run`. `build_for` calls `build` once, in the dtype of the first input:
# of two threads that call a new layer, one builds it, and the other waits behind the lock `MAKING`, of `levels/support`.


# %%
#| export layers
class _Named(Made, Module):
    """What has a name and a dtype, and is called.

    Raises NotImplementedError for a call(x, training): nobody here would tell it.
    """

    hears_training = False  # whether `call` may ask for `training`
    building = False  # whether `build_for` is at work

    def __init__(self, name=None, dtype=None):
        self.name = type(self).__name__.lower() if name is None else name
        self.dtype = None if dtype is None else np.dtype(dtype)
        self.built = False
        call = getattr(type(self), "call", None)
        if call and "training" in inspect.signature(call).parameters and not self.hears_training:
            raise NotImplementedError(f"{self.name}: call(…, training) is for the Layer of levels_more.mid_level")

    def __call__(self, x, training=None):
        """What `call` gives, after `build` on the first call. (Layers of `levels_more` hear of a training.)"""
        return self.run(x, training)

    def build_for(self, shape, dtype):
        """`build`, in this dtype if it is of floats and none was said. One thread does it, and the others wait."""
        with MAKING:
            if self.built:
                return
            self.dtype, self.building = self.dtype or (dtype if dtype.kind == "f" else "float32"), True
            try:
                self.build(shape)
            finally:
                self.building = False
            self.built = True

    def __repr__(self):
        sizes = [f"{name} {list(v.shape)}" for name, v in self.named(Variable).items()]
        return f"{self.name}: {', '.join(sizes) or 'no variables yet'}"


# %% [markdown]
# Third, a part may stay as it is while a model is trained, with all parts inside it:


# %%
#| export layers
class _Part(_Named):
    """What may stay as it is while a model is trained."""

    changes = True  # see `trainable`

    @property
    def trainable(self):
        """Whether its variables may change. Set it, and all parts inside are told."""
        return self.changes

    @trainable.setter
    def trainable(self, value):
        for part in self.named(_Part).values():
            part.changes = flag(f"{self.name}: trainable", value)

    @property
    def trainable_variables(self):
        """The trainable variables of all parts that are trainable."""
        still = {v for part in self.named(_Part).values() if not part.changes for v in part.variables}
        return [v for v in super().trainable_variables if v not in still]


# %% [markdown]
# Now the second version of a layer. Each kind of layer writes its own `build` and `call`. `add_weight` makes a variable, of the
# numbers that an initializer gives (`starting`). In `run` you find the `if not self.built` from above: the first input says the shape
# and the dtype, and `build_for` calls `build`.


# %%
#| export layers
class Layer(_Part):
    """A part of a model: write `call(x)`, and `build(shape)` where it needs variables."""

    def build(self, shape):
        """Make the variables for inputs of this shape."""

    def add_weight(self, shape, initializer="glorot_uniform", trainable=True, name=None):
        """A new variable of this shape, in the layer's dtype. (`name` is for Keras' users.)"""
        self.built = not self.building  # else there may be more to make
        return Variable(self.starting(initializer, shape), trainable=trainable)

    def starting(self, initializer, shape):
        """The numbers of an initializer, [*shape], in its dtype."""
        spec = PLACE.device.alloc(shape, self.dtype or "float32").spec  # says what is wrong with them
        return np.reshape(known("initializer", INITIALIZERS, initializer)(shape), shape).astype(spec.dtype)

    def check_model(self, model):
        """Raise TypeError where this layer would not do in that model what it says. All of this level do."""

    def run(self, x, training=None):
        """What `call` gives, after `build` on the first call. Layers of this level do the same in a training."""
        x = as_tensor(x)
        if not self.built:
            self.build_for(x.spec.shape, x.dtype)
        return self.call(x)


# %% [markdown]
# And the layer of both tasks. `build` makes two variables, and `call` is one line, with your `affine`.
# (`tf.keras.layers.Dense(2)` · `torch.nn.Linear(4, 2)`, which is told its inputs, and whose `weight` is [out, in].)


# %%
#| export layers
class Dense(Layer):
    """activation(x[batch, inputs] @ kernel[inputs, units] + bias[1, units])"""

    def __init__(self, units, activation=None, *, kernel_initializer="glorot_uniform",
                 bias_initializer="zeros", name=None, dtype=None):  # fmt: skip
        super().__init__(name, dtype)
        self.units = at_least(1, "Dense: units", units)
        self.activation = known("activation", ACTIVATIONS, "linear" if activation is None else activation)
        self.initializers = kernel_initializer, bias_initializer

    def build(self, shape):
        self.kernel = self.add_weight((shape[-1], self.units), self.initializers[0])
        self.bias = self.add_weight((1, self.units), self.initializers[1])

    def call(self, x):
        return self.activation(affine(x, self.kernel, self.bias))


# %%
dense = Dense(2)
print(dense)
print(dense(np.ones((3, 4), "f4")).shape, "from", dense)
print(after_two_steps(Dense(2), Dense(1)))

# %% [markdown]
# Three rows of four numbers went in, three rows of two came out, and the layer was built on the way. And after the same two
# steps as before, two units are no twins any more. From now on `dense` takes rows of four. The product, on level 2, says so:

# %%
try:
    dense(np.ones((3, 5), "f4"))
except ValueError as error:
    print(error)

# %% [markdown]
# ### A layer of layers
#
# A layer may keep other layers, as attributes or in lists, and their variables are found with its own.


# %%
class Twice(Layer):
    """Two layers in a row."""

    def __init__(self):
        super().__init__()
        self.hidden, self.top = Dense(4, "relu"), Dense(1)

    def call(self, x):
        return self.top(self.hidden(x))


twice = Twice()
twice(np.ones((3, 2), "f4"))
twice

# %% [markdown]
# Each name is the way to a variable: `hidden.kernel` is the kernel of what `twice` keeps as `hidden`. Nobody had to list them.
#
# **A good place to stop.** A layer makes its own weights, and no two units are twins.
#
# ## What is wrong: losses (16 min)
#
# A **loss** says in one number how wrong a prediction is. The square of the error is yours: take the difference and multiply it by
# itself, for each number of y. The mean comes later.

# %%
#| export losses
"""Losses: one number that says how wrong a prediction is."""

from levels.low_level import log  # noqa: F401 (for the blank below)


# %%
#| export losses blank squared_error
def squared_error(y_true, y_pred):
    """(y_pred - y_true)², number by number."""
    ...  # 1 to 2 lines


# %% [markdown]
# <details><summary>Hint</summary>First the difference, number by number.</details>
# <details><summary>Second hint</summary>Times itself. <code>error ** 2</code> is the
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
truth, guess = np.array([[1.0], [2.0]]), np.array([[1.5], [4.0]])
print(squared_error(truth, guess).ravel(), squared_error(truth, guess).mean())

# %% [markdown]
# 0.25 and 4, and their mean is 2.125. That might do, if labels always came in the shape of predictions. Here are a hundred
# labels of shape (100,) beside predictions of shape (100, 1):

# %%
squared_error(np.ones(100), np.ones((100, 1))).shape

# %% [markdown]
# NumPy repeats both to a square of 100 by 100 errors. The training would run, and learn nothing. So all losses begin with a
# check that the two belong together (`checked`, folded), and end with the mean. Between them stands `call`, which each loss writes
# for itself. That of the first loss is your function. (A loss with `probabilities = True` has its numbers checked, too: they lie
# between 0 and 1.)


# %% tags=["hide-input"]
#| export losses
from levels.low_level import Tensor, reduce_mean


class _Checked(Made):
    """Looks whether two belong together before it is computed how far they are apart."""

    probabilities = classes = False  # whether y_true and y_pred have to be some; whether y_true holds numbers of some

    def __init__(self):
        """No arguments; without this line Python would take any."""

    def checked(self, y_true, y_pred):
        """Both as tensors. Raises ValueError, see `check`, and TypeError for labels that are no floats."""
        y_pred = as_tensor(y_pred)
        y_true = as_tensor(y_true, y_pred)
        self.check(y_true, y_pred)
        if y_true.dtype.kind != "f" and not self.classes:
            cure = f"{y_pred.dtype}, as constant(y, {y_pred.dtype.name!r}) makes it"
            raise TypeError(f"{self}: y_true is {y_true.spec}; expected {cure}")
        return y_true, y_pred

    def check(self, y_true, y_pred):
        """Raise ValueError where the two do not belong together."""
        if y_true.spec.shape != y_pred.spec.shape:
            cure = "equal shapes"
            if (*y_true.spec.shape, 1) == y_pred.spec.shape:
                cure += "; write y[:, None]"
            raise ValueError(f"{self}: y_true is {y_true.spec} and y_pred is {y_pred.spec}; expected {cure}")
        if self.probabilities:
            self.check_probabilities("y_true", y_true)
            self.check_probabilities("y_pred", y_pred)

    def check_probabilities(self, name, x):
        """Raise ValueError for numbers outside of [0, 1]. While a function is traced, nobody knows them: they pass."""
        p = x.numpy() if type(x) is Tensor else np.empty(0)
        beyond = p[(p < 0.0) | (p > 1.0)]
        if beyond.size:
            wrong = float(max(beyond, key=lambda p: abs(p - 0.5)))
            raise ValueError(f"{self}: {name} holds {wrong:.6g}; expected probabilities, from 0 to 1")

    def __repr__(self):
        return type(self).__name__


# %%
#| export losses
class Loss(_Checked):
    """The mean of what `call(y_true, y_pred)` gives for each number."""

    def __call__(self, y_true, y_pred, sample_weight=None):
        """One number. Raises ValueError where the two do not belong together, NotImplementedError for a weight."""
        if sample_weight is not None:
            raise NotImplementedError(f"{self}: weights of samples are for the losses of levels_more.mid_level")
        return reduce_mean(self.call(*self.checked(y_true, y_pred)))


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
# (`tf.keras.losses.MeanSquaredError()` · `torch.nn.MSELoss()`, which takes the prediction first.)
#
# The loss of a yes-or-no question is the **cross-entropy**: minus the logarithm of the probability that was given to what
# turned out to be true. That is p where y is 1, and 1 - p where y is 0. Write both cases in one line, without an `if`: y times one
# logarithm plus 1 - y times the other, and a minus in front. (For y = 0.5 it gives half of each. `log` is imported above.)


# %%
#| export losses blank cross_entropy
def cross_entropy(y_true, p):
    """-log of p where y_true is 1, -log of 1 - p where it is 0, number by number."""
    ...  # 1 line


# %% [markdown]
# <details><summary>Hint</summary>y_true is 0 or 1: multiply by it, and one of two terms vanishes.</details>
# <details><summary>Second hint</summary>The terms are log(p) and log(1 - p), each times the share of its answer; the whole is
# negative.</details>
# <details><summary>Solution</summary>
#
# ```python
# def cross_entropy(y_true, p):
#     """-log of p where y_true is 1, -log of 1 - p where it is 0, number by number."""
#     return -(y_true * log(p) + (1.0 - y_true) * log(1.0 - p))
# ```
# </details>

# %%
print(cross_entropy(np.array([1.0, 0.0, 0.0]), as_tensor(np.array([0.9, 0.9, 0.1]))).numpy().round(4))

# %% [markdown]
# Right and nearly sure costs little, wrong and nearly sure much.

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "The truth is y = 1, and a model is certain of the opposite: p = 0. The loss is -log(p). What do Keras and we answer?",
    choices=["infinity", "NaN", "about 16", "1"],
    answer="about 16",
    because="p is cut off at 1e-7, and -log(1e-7) is 16.1. Infinity would make every weight NaN in one step. (PyTorch cuts off "
    "the logarithm instead, at -100.)",
)

# %% [markdown]
# So p is kept away from 0 and 1:


# %%
#| export losses
from levels.low_level import clip


class BinaryCrossentropy(Loss):
    """-mean(y_true·log p + (1 - y_true)·log(1 - p)), with p = y_pred kept within [1e-7, 1 - 1e-7]."""

    probabilities = True

    def call(self, y_true, y_pred):
        return cross_entropy(y_true, clip(y_pred, 1e-7, 1.0 - 1e-7))


LOSSES = {"mse": MeanSquaredError, "mean_squared_error": MeanSquaredError, "binary_crossentropy": BinaryCrossentropy}

# %%
wrong = Variable(np.array([[0.0]]))
with GradientTape() as tape:
    loss = BinaryCrossentropy()(np.array([[1.0]]), wrong)
print(f"loss {float(loss):.4f}, gradient {float(tape.gradient(loss, wrong)):.4f}")

# %% [markdown]
# The loss is finite, but look at the gradient. Where p is cut off, nothing depends on it: the worst mistake of all teaches
# nothing. There is a form of the loss without that flaw, `from_logits`. It stands in `more/04_losses`.
#
# **A good place to stop.** Layers stand, and two losses that say in one number how wrong they are.
#
# ## What to do about it: optimizers (21 min)
#
# An **optimizer** knows how to change a variable, given its gradient. The oldest one goes against the gradient, by a share of
# it that is called the **rate**. This one is yours:

# %%
#| export optimizers
"""Optimizers: how a variable changes, given its gradient."""

import math


# %%
#| export optimizers blank descend
def descend(rate, dw, w):
    """Where w is after one step against its gradient dw, a tensor."""
    ...  # 1 line


# %% [markdown]
# <details><summary>Hint</summary>As on level 1: against the slope.</details>
# <details><summary>Second hint</summary><code>rate * dw</code> is how far.</details>
# <details><summary>Solution</summary>
#
# ```python
# def descend(rate, dw, w):
#     """Where w is after one step against its gradient dw, a tensor."""
#     return w - rate * dw
# ```
# </details>

# %%
w = 1.0
for _ in range(3):
    w = descend(0.1, 2 * w, w)  # the gradient of w²
    print(f"{w:.4f}")

# %% [markdown]
# Each step takes a fifth of w away, and w² falls. Now all variables of a model at once: the line of notebooks 1 to 3, 400
# points, ten in each step. Which ten is said by **row numbers**: `line.batches` has ten for each of 8,000 steps. The first step
# takes the points 13, 91, 387, 179 and six more.

# %%
from levels.low_level import function

model = Dense(1)
model(line.x)  # now it has its variables


@function
def step(x, y):
    with GradientTape() as tape:
        loss = mse(y, model(x))
    for w, dw in zip(model.variables, tape.gradient(loss, model.variables)):
        w.assign(descend(0.0005, dw, w))
    return loss


losses = step.over(line.x, line.y, line.batches).numpy()
print(
    f"first loss {losses[0]:.4f}, last {losses[-1]:.4f}, w and b",
    *(w.numpy().ravel().round(2) for w in model.variables),
)

# %% [markdown]
# That is w = (2, -3) and b = 3, nearly. Two things are missing. The rate is a number in the code: whoever changes it has to
# compile again. And many optimizers remember something of each variable from step to step, numbers that are called its
# **slots**. So an optimizer owns variables too: the rate is one, each slot is one. It is a module like a layer.
#
# The folded cell keeps the rate, and makes the slots: zeros, for each variable and each name in `memory`. (Its `_owned` checks the
# pairs that come. The rate may be a **schedule**, a function of the step: see `more/04_optimizers`.)


# %% tags=["hide-input"]
#| export optimizers
class _Rated(Made, Module):
    """Has a `learning_rate`: a number, or a function of the step. Compiled steps hear of a change."""

    apart = True  # a model may hold its optimizer: the optimizer's variables are none of the model's

    def __init__(self, learning_rate=0.01):
        self.owners = self.rate = None  # owners: a dict whose keys are the variables it was built for
        self.learning_rate = learning_rate

    learning_rate = property(lambda self: float(self.rate) if isinstance(self.rate, Variable) else self.rate)

    @learning_rate.setter
    def learning_rate(self, value):
        first = value(constant(0.0)) if callable(value) else value  # of a function only the first number is known
        first = float(first) if isinstance(first, Operators) else first
        first = positive(f"{type(self).__name__}: learning_rate", first, zero=True)
        value = value if callable(value) else first
        if isinstance(self.rate, Variable):
            self.rate.assign(value)
        else:
            self.rate = value

    def _owned(self, grads_and_vars):
        """The gradients and the variables of these pairs: those that it was built for, now or before."""
        pairs = [*grads_and_vars] if hasattr(grads_and_vars, "__iter__") else []
        if not pairs or not all(isinstance(pair, tuple) and isinstance(pair[-1], Variable) for pair in pairs):
            raise TypeError(f"apply_gradients: got {pairs!r:.60}; expected pairs (gradient, variable)")
        gradients, variables = zip(*pairs, strict=True)
        with MAKING:
            if self.owners is None:
                self.build(variables)
        if [*map(id, self.owners)] != [*map(id, variables)]:
            raise ValueError(f"{type(self).__name__}: built for other variables, or another order; make a new one")
        return gradients, variables

    def build(self, variables):
        """Make the memory for these variables. The first `apply_gradients` does so itself."""
        dtype = variables[0].dtype
        self.iterations = Variable(np.zeros((), dtype), trainable=False)
        self.rate = self.rate if callable(self.rate) else Variable(np.array(self.rate, dtype), trainable=False)
        zeros = [np.zeros(v.shape, v.dtype) for v in variables]
        self.slots = [{name: Variable(zero, trainable=False) for name in self.memory} for zero in zeros]
        self.owners = dict.fromkeys(variables)  # last: now it is built


# %% [markdown]
# What is left is the idea. `apply_gradients` takes pairs of gradient and variable. For each pair it asks `update` for the new
# numbers, those of the variable first, then those of its slots, and assigns them.


# %%
#| export optimizers
class Optimizer(_Rated):
    """Owns what it remembers. Write `update(rate, dw, w, *memory)` -> the new w and the new memory."""

    memory = ()  # names of what it remembers of each variable: as many numbers, 0 at first

    def apply_gradients(self, grads_and_vars):
        """Update by pairs (gradient, variable). Raises TypeError for others, ValueError if the variables change."""
        gradients, variables = self._owned(grads_and_vars)
        rate = self.rate(self.iterations) if callable(self.rate) else self.rate
        self.iterations.assign(self.iterations + 1.0)
        for dw, w, slots in zip(gradients, variables, self.slots):
            new = self.update(rate, dw, w, *slots.values())
            for variable, value in zip((w, *slots.values()), new):
                variable.assign(value)


# %% [markdown]
# SGD, stochastic gradient descent, remembers nothing. So its update gives one thing, and that is your function's.
# (`sgd.apply_gradients(…)`, as in Keras · PyTorch's `sgd.step()` finds the gradients in the weights, where `loss.backward()` has left
# them.)


# %%
#| export optimizers
class SGD(Optimizer):
    """w ← w - rate·dw"""

    def update(self, rate, dw, w):
        return (descend(rate, dw, w),)


# %% [markdown]
# Its rate can be changed at any time, and compiled steps hear of it:

# %%
from levels.low_level import constant

w, sgd = Variable(np.array(1.0)), SGD(0.1)
step = function(lambda: sgd.apply_gradients([(constant(np.array(1.0)), w)]))
for rate in (0.1, 0.1, 0.001):
    sgd.learning_rate = rate
    step()
    print(f"rate {rate}: w = {float(w):.4f}")

# %% [markdown]
# The most used one, **Adam** ([Kingma and Ba, 2015](https://arxiv.org/abs/1412.6980)), remembers two means that fade: `m` of
# the gradient, and `v` of its square. Such a mean keeps a share β of what it was. It begins at 0, and so it is too small at
# first. Here the gradient is always 1:

# %%
m, beta = 0.0, 0.9
for t in (1, 2, 3):
    m = beta * m + (1 - beta) * 1.0
    print(f"step {t}: m = {m:.3f}, and m / (1 - βᵗ) = {m / (1 - beta**t):.3f}")

# %% [markdown]
# After t steps it holds 1 - βᵗ of what it should, and divided by that it is right. Adam divides the one mean by the root of the
# other, so the gradient of each weight is measured on its own scale. (βᵗ is computed as exp(t·log β): t is a variable, and `exp`
# one of our ops.)


# %%
#| export optimizers
from levels.low_level import exp, sqrt


class Adam(Optimizer):
    """m ← β₁·m + (1 - β₁)·dw; v ← β₂·v + (1 - β₂)·dw²; w ← w - rate·(m / (1 - β₁ᵗ)) / (√(v / (1 - β₂ᵗ)) + ε)

    Kingma and Ba, 2015, Algorithm 1. (Keras adds its ε to √v before the correction, which makes it larger at first.)
    """

    memory = "m", "v"

    def __init__(self, learning_rate=0.001, beta_1=0.9, beta_2=0.999, epsilon=1e-7):
        super().__init__(learning_rate)
        self.betas = positive("Adam: beta_1", beta_1, 1.0), positive("Adam: beta_2", beta_2, 1.0)
        self.epsilon = positive("Adam: epsilon", epsilon)

    def update(self, rate, dw, w, m, v):
        (b1, b2), t = self.betas, self.iterations
        m = b1 * m + (1.0 - b1) * dw
        v = b2 * v + (1.0 - b2) * (dw * dw)
        c1, c2 = 1.0 - exp(t * math.log(b1)), 1.0 - exp(t * math.log(b2))
        return w - rate * (m / c1) / (sqrt(v / c2) + self.epsilon), m, v


OPTIMIZERS = {"sgd": SGD, "adam": Adam}

# %% [markdown]
# What does that make of very small and very large gradients?

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "Two weights have the gradients 1e-6 and 1e6. How far does Adam's first step move them, at rate 0.001?",
    choices=["1e-9 and 1,000", "nearly 0.001 both", "0.001 and 1,000"],
    answer="nearly 0.001 both",
    because="""
    After one step `m / (1 - β₁)` is the gradient itself and `√(v / (1 - β₂))` its size. So the step is
    rate · gradient / (|gradient| + ε), and the size of the gradient cancels. Only ε = 1e-7 can be seen beside 1e-6: 1e-6 / (1e-6 + 1e-7) is 0.909.
    """,
)

# %%
for gradient in (1e-6, 1e6):
    ends = []
    for optimizer in (SGD(0.001), Adam(0.001)):
        w = Variable(np.zeros(()))
        optimizer.apply_gradients([(constant(np.array(gradient)), w)])
        ends.append(float(w))
    print(f"gradient {gradient:g}: SGD moves the weight by {ends[0]:g}, Adam by {ends[1]:.3g}")

# %% [markdown]
# For SGD the rate is a factor. For Adam it is a distance, about as far as a weight moves in one step. So the two need rates of
# their own, and one must not be judged at the other's.
#
# ## The race (10 min)
#
# Which optimizer is the faster, and does it matter? We begin with the plainer one and real numbers: the mass of 342
# penguins in kg from the depth of their bills in mm.

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "A line over the raw millimetres, all rows in each step, plain SGD at rate 0.01. What does the loss do?",
    choices=["it falls at once", "it falls, but slowly", "it grows without end"],
    answer="it grows without end",
    because="""
    A bill is about 17 mm deep, so a small change of its weight moves every prediction far. The step overshoots the
    lowest point by more than the distance to it, and the next step is longer still.
    """,
)


# %% [markdown]
# This function fits a line from zero, with all rows in each step: the step from above, with an optimizer. It gives the
# losses, the path of (w, b), and the model.


# %%
def run(optimizer, x, y, updates=1000):
    """Fit x @ w + b, from zero, all rows in each step. Returns losses, the path of (w, b) for one w, and the model."""
    model = Dense(1, kernel_initializer="zeros")
    model(x)

    @function
    def step(x, y):
        before = [constant(v) for v in model.variables if v.shape == (1, 1)]
        with GradientTape() as tape:
            loss = mse(y, model(x))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.variables), model.variables))
        return loss, *before

    all_rows = np.broadcast_to(np.arange(len(x)), (updates + 1, len(x)))
    losses, *path = (each.numpy() for each in step.over(x, y, all_rows))
    return losses, np.column_stack(path), model


# %%
millimetres, kilograms = depth[:, None], mass[:, None] / 1000
losses, *_ = run(SGD(0.01), millimetres, kilograms, 200)
print(*(f"{loss:.3g}" for loss in losses[:5]), "…", f"{losses[-1]:.3g}")

# %% [markdown]
# Each step makes the loss about 25 times as large. Nothing is wrong with SGD. Over one weight the squared error is a parabola.
# Its slope is the distance d to the lowest point, times a number, the **curvature**: here twice the mean of x².

# %%
curvature = 2 * (millimetres**2).mean()
print(f"curvature {curvature:.0f}: a step goes {0.01 * curvature:.2f}·d")

# %% [markdown]
# A step of 5.96·d ends 4.96·d beyond the lowest point. The loss grows like the square, 25 times. Only a step shorter than 2·d
# ends nearer than it began: a rate below 2/596, about 0.003. The bias has a curvature of its own, 2, and could do with rates up
# to 1. But there is one rate for both.
#
# To **standardise** a column, subtract its mean and divide by its standard deviation. Then it has the curvature 2 as well, and
# weight and bias no longer undo one another.

# %%
inputs = {"raw": millimetres, "standardised": tasks.standardise(millimetres, millimetres)[0]}
for name, racer in {"SGD(0.5)": SGD(0.5), "Adam(0.5)": Adam(0.5)}.items():
    losses, *_ = run(racer, inputs["standardised"], kilograms)
    print(f"{name:10} {losses[0]:.4f} {losses[1]:.4f} {losses[2]:.4f} … {losses[-1]:.4f}")

# %% [markdown]
# At rate 0.5 a step goes exactly the distance d: plain SGD is there after one update. Nobody is faster.
#
# Now on a map of weight and bias, with a mark at the updates 1, 10, 100 and 1,000. In the yellow ellipse the loss is within 1 % of
# the best, and to arrive is to stay there. **Who does better?** On raw millimetres, try the rates 0.002, 0.005 and 0.5. Then set
# `columns` to standardised.

# %% tags=["hide-input"]
from course.figures import race, widgets

RATES = [m * 10**-k for k in (4, 3, 2, 1) for m in (1, 2, 5)] + [1]


def draw(columns, rate):
    x = inputs[columns]
    runs = {name: run(racer(rate), x, kilograms)[:2] for name, racer in {"SGD": SGD, "Adam": Adam}.items()}
    return race.drawn(columns, rate, x, kilograms, runs)


widgets.explore(
    draw,
    "The optimizer race: SGD and Adam on the loss of a line through the penguins' masses over bill depths.",
    columns=[*inputs],
    rate=RATES,
    start={"rate": 0.002},
)

# %% [markdown]
# At one rate for both, somebody is at the wrong one. To be fair, each gets the best of all rates of the slider. ("any": none of
# them is enough.)

# %%
race.fewest(run, {"SGD": SGD, "Adam": Adam}, inputs, kilograms, RATES)

# %% [markdown]
# On raw millimetres Adam needs 328 updates, and SGD some 48,000 (we counted on). Standardising, a single line, saves all but one.
# **Scaling was the cure, not Adam.** But inside a deep net nobody can scale a layer's inputs beforehand, and there Adam helps.
# (Momentum, the third racer, stands in `more/04_optimizers`.)
#
# **A good place to stop.** Layers, losses and optimizers stand, and scaling has beaten both optimizers.
#
# ## Data that arrives in batches (9 min)
#
# A step wants its rows in batches, in another order each time. Rows lie in memory, so a batch is a few row numbers. We could
# write them with a generator. It has one flaw:

# %%
order = (np.random.permutation(4)[:2] for _ in range(2))
print(len(list(order)), len(list(order)))

# %% [markdown]
# The second walk finds nothing. Training walks through the same data hundreds of times, so we keep what *makes* the row
# numbers. That is all a **dataset** is: a recipe. A stage, such as `shuffle`, is a new recipe around an old one.


# %%
class Recipe:
    """Row numbers, made anew for each pass."""

    def __init__(self, make):
        self.make = make

    def shuffle(self):
        return Recipe(lambda: np.random.permutation(self.make()))

    def batch(self, size):
        return Recipe(lambda: self.make().reshape(-1, size))


recipe = Recipe(lambda: np.arange(6)).shuffle().batch(3)
print(np.sort(recipe.make().ravel()), recipe.make().shape)

# %% [markdown]
# Two passes: all six rows, in two batches of three. Four things are missing: a last batch that may be shorter, for seven rows would
# not fit; the arrays themselves, and a `gather` for each batch; a seed, so that an order can be had again; and checks. The second
# version, `Dataset`, has them. It is folded, for you have seen its heart: its `shuffle` and `batch` are recipes around a recipe.
#
# - `from_tensor_slices` takes a tuple of arrays.
# - `from_batches` takes two arrays and the very batches to go through, which is what our tasks have.
# - `shuffle(buffer_size, seed)`: the buffer is TensorFlow's, how many rows may wait to be drawn. All of them, here. Seed and number
#   of the pass fix the order ([NEP 19](https://numpy.org/neps/nep-0019-rng-policy.html) promises it).


# %% tags=["hide-input"]
#| export data
"""Data that arrives in batches: in memory, a dataset is a recipe for row numbers."""

import itertools
import reprlib

from levels.low_level import constant, gather
from levels.support.checks import row_numbers


class Dataset(Made):
    """Rows of a tuple of `arrays`, shuffled and in batches, as in `tf.data`.

    `make()` gives the row numbers of a pass: [rows], in `batches` [steps, batch] or a list.
    """

    def __init__(self, stage, make, length, arrays, batches=False, before=()):
        self.stage, self.make, self.length = stage, make, length
        self.arrays, self.batches = arrays, batches
        self.stages = [*before, self]  # the way from the source to here

    def __len__(self):
        return self.length

    def __iter__(self):
        for rows in self.make():
            yield tuple(gather(x, constant(rows, np.int64)) for x in self.arrays)

    def rows(self):
        """A new pass for `function(step).over(*arrays, batches)`. Raises TypeError without batches."""
        if not self.batches:
            raise TypeError(f"rows: {self.stage} gives no batches of row numbers; go through the dataset in a loop")
        return self.arrays, self.make()

    def __repr__(self):
        return " → ".join(data.stage for data in self.stages)

    @classmethod
    def from_tensor_slices(cls, arrays):
        """The rows of the arrays of a tuple. Raises TypeError for no tuple, ValueError for arrays of unequal length."""
        if not isinstance(arrays, tuple):
            raise TypeError(f"Dataset: expected a tuple of arrays, got {reprlib.repr(arrays)}")
        counts = [np.shape(x)[0] if np.shape(x) else 0 for x in arrays]
        if len({*counts}) != 1 or not counts[0]:
            raise ValueError(f"arrays of {counts} rows; expected as many in each, and at least one")
        return cls("from_tensor_slices", lambda: np.arange(counts[0]), counts[0], tuple(map(constant, arrays)))

    @classmethod
    def from_batches(cls, x, y, batches):
        """A batch (x, y) for each row of `batches`, row numbers [steps, batch]. Raises ValueError, IndexError."""
        source = cls.from_tensor_slices((x, y))
        rows = row_numbers("from_batches: batches", batches, len(source))
        return cls("from_batches", lambda: rows, len(rows), source.arrays, True)

    def shuffle(self, buffer_size, seed=None):
        """All rows in random order, another one in each pass; a seed repeats them, pass by pass."""
        n = at_least(self.length, "shuffle: buffer_size", buffer_size)
        seed = RANDOM.getrandbits(32) if seed is None else at_least(0, "shuffle: seed", seed)
        passes = itertools.count()

        def make():
            rows, number = self.make(), next(passes)
            permutation = np.random.RandomState(np.random.PCG64([seed, number])).permutation
            return permutation(rows) if isinstance(rows, np.ndarray) else [rows[k] for k in permutation(len(rows))]

        return type(self)(f"shuffle({n})", make, self.length, self.arrays, self.batches, self.stages)

    def batch(self, batch_size):
        """So many rows at a time; the last batch may be shorter. Raises ValueError where these are batches already."""
        n = at_least(1, "batch: batch_size", batch_size)
        if self.batches:
            raise ValueError(f"batch: {self.length} batches make no batch of {n}")

        def make():
            rows = self.make()
            return np.split(rows, range(n, len(rows), n)) if len(rows) % n else rows.reshape(-1, n)

        return type(self)(f"batch({n})", make, -(-self.length // n), self.arrays, True, self.stages)


# %% [markdown]
# First the recipe's check again, and seven rows. Then two rings, 4,000 points: shuffle all, in batches of 100. What does each stage
# hold?

# %%
recipe = Dataset.from_tensor_slices((np.arange(6.0),)).shuffle(6).batch(3)
print(np.sort(recipe.make().ravel()), recipe.make().shape)
print(*(x.numpy() for (x,) in Dataset.from_tensor_slices((np.arange(7.0),)).batch(3)))

# %%
rings = tasks.rings()


def in_batches():
    return Dataset.from_tensor_slices((rings.x, rings.y)).shuffle(4000, seed=1).batch(100)


data = in_batches()
figures.pipeline(data, next(iter(data)))

# %%
for _ in range(2):
    x, y = next(iter(data))
    print(x.shape, y.shape, "the first y:", *y.numpy()[:12, 0].astype(int))

# %% [markdown]
# Each pass has an order of its own, and a program that gives the same seed sees the same orders.
#
# The data itself has not moved. So a compiled function can take a whole pass at once, from `rows()`: the arrays and the row numbers.
# To the last bit it computes what a walk computes batch by batch:

# %%
mean = function(lambda x, y: reduce_mean(x * y))
arrays, batches = in_batches().rows()
one_by_one = [float(mean(x, y)) for x, y in in_batches()]
print(batches.shape, mean.over(*arrays, batches).numpy().tolist() == one_by_one)

# %% [markdown]
# ## The surprise, explained (3 min)
#
# The lines at the beginning could not know the species: a species is a word. What number should stand for it? Not 0, 1, 2: that
# would say that Chinstraps stand half-way between Adelies and Gentoos. A name is no size. So each species gets a column of its
# own, which is 1 in the rows of its birds and else 0:

# %%
names = ["Adelie", "Chinstrap", "Gentoo"]
told = (species[:, None] == names).astype(float)
print(told[[0, 200, 300]], *species[[0, 200, 300]])

# %% [markdown]
# These are called **indicators**. A model of the bill's depth and three indicators is a line, at another height for each
# species. We train one that is not told the species and one that is, with `run` from the race. The depth is counted from 17 mm,
# a middling bill, so that its column is small, as the race has taught.

# %%
centred, masses = depth[:, None] - 17.0, {}
for name, x in {"not told": centred, "told the species": np.hstack([centred, told])}.items():
    *_, model = run(SGD(0.1), x, mass[:, None], updates=3000)
    masses[name] = model(x).numpy()[:, 0]
    print(f"{name:17} {model.kernel.numpy()[0, 0]:7.1f} g per mm of bill depth")

# %%
from course.figures import penguins as penguin_figures

penguin_figures.one_line_or_three(depth, mass, species, *masses.values())

# %% [markdown]
# The sign has turned. 257 lies between the three slopes of the beginning: this model may lift the line for a species, not tilt
# it. (The lines of Adelies and Chinstraps lie on each other.) The weight of a column answers for all that the model was not told.
#
# ## The two tasks on this level (11 min)
#
# ### Data

# %%
task = tasks.linear()
print("x", task.x.shape, " y", task.y.shape, " batches", task.batches.shape)

# %% [markdown]
# ### Model and training
#
# The model is a list of layers. The step is still ours, but it names no weight any more. Before it, the layers get the starting
# weights that all five levels share. The four marked lines are the four of every level: forward, loss, backward and update. (`Fit`
# is level 1's result: losses, weights and `predict`.)

# %%
#| export tasks
"""The two tasks as layers, a loss, an optimizer and a dataset."""

from levels.hardware.tasks import Fit
from levels.support.checks import check_inputs, check_task


def _train(layers, loss_of, sgd, data, weights):
    """Layers in a row from given starting weights: one step for each batch of the data."""

    def model(rows):
        for layer in layers:
            rows = layer(rows)
        return rows

    (x, y), batches = data.rows()
    model(x.numpy()[:1])  # makes the variables
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
# What is left for the first task are its parts: one layer, one loss, one optimizer, and the data.


# %%
#| export tasks
def linear_regression(x, y, weights, batches, learning_rate=0.0005):
    """Mean squared error, stochastic gradient descent; see `Fit` and `check_task` for the shapes."""
    check_task(x, y, weights, batches, learning_rate, units=[1])
    layers = [Dense(1)]  # model
    loss_of = MeanSquaredError()
    sgd = SGD(learning_rate)
    data = Dataset.from_batches(x, y, batches)

    return _train(layers, loss_of, sgd, data, weights)


# %%
from levels import hardware, low_level

fit = linear_regression(task.x, task.y, task.weights, task.batches, task.learning_rate)
below = low_level.tasks.linear_regression(task.x, task.y, task.weights, task.batches, task.learning_rate)
print("losses equal: ", bool((fit.losses == below.losses).all()))
print("weights equal:", all((p == q).all() for p, q in zip(fit.weights, below.weights)))
print(f"last loss     {fit.losses[-1]:.4g} ({float(fit.losses[-1]).hex()})")

# %% [markdown]
# All 8,000 losses are those of level 3, to the last bit.
#
# ### Result

# %%
figures.regression(task, fit)

# %%
penguins = tasks.penguins_mass()
figures.regression(penguins, linear_regression(*penguins[:2], *penguins[4:7]))

# %% [markdown]
# R², the share of the variance of the masses that the model explains, is 0.798 on penguins that it has not seen.
#
# ### The second task: a net
#
# Three layers instead of one, and another loss. The step is the same.


# %%
#| export tasks
def dnn_classifier(x, y, weights, batches, learning_rate=0.01):
    """features-4-8-1, relu, relu, sigmoid; binary cross-entropy, SGD; see `Fit` and `check_task` for the shapes."""
    check_task(x, y, weights, batches, learning_rate, units=[4, 8, 1])
    layers = [Dense(4, "relu"), Dense(8, "relu"), Dense(1, "sigmoid")]  # model
    loss_of = BinaryCrossentropy()
    sgd = SGD(learning_rate)
    data = Dataset.from_batches(x, y, batches)

    return _train(layers, loss_of, sgd, data, weights)


# %%
rings = tasks.rings()
ring_fit = dnn_classifier(*rings[:2], *rings[4:7])
below = hardware.tasks.dnn_classifier(*rings[:2], *rings[4:7])  # level 1's program, by machine instructions
print("losses equal: ", bool((ring_fit.losses == below.losses).all()))
print("weights equal:", all((p == q).all() for p, q in zip(ring_fit.weights, below.weights)))
figures.classifier(rings, ring_fit)

# %% [markdown]
# After 24,000 steps with three layers the losses are those of level 1, where the net was a program of machine instructions. And
# the penguins: can their sex be told from what was measured?

# %%
sex = tasks.penguins_sex()
figures.confusion(sex, dnn_classifier(*sex[:2], *sex[4:7]))

# %% [markdown]
# Nine in ten, where the commoner answer alone would be right in about half of all cases.
#
# ## What this level cost (9 min)
#
# Layers, losses and optimizers are objects, and a step calls some of them. What do they cost?

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "Compiled, how long is a step of level 4, beside one of level 3, where there are only ops?",
    choices=["about as long", "about twice as long", "about ten times as long"],
    answer="about as long",
    because="The layers are called once, while the step is traced. In the program there are only the ops that they have left: "
    "level 3's, and one more, for the optimizer counts its steps.",
)

# %% tags=["nbval-ignore-output"]
from course import compare
from levels.low_level import eager

# 200,000 steps, so that what is done once cannot be seen
long = task._replace(batches=np.tile(task.batches, (25, 1)))
print("µs a step     eager   compiled")
for level, train_it in {"3": low_level.tasks.linear_regression, "4": linear_regression}.items():
    with eager():
        op_by_op = compare.microseconds(train_it, task)
    print(f"{level}       {op_by_op:11.3g} {compare.microseconds(train_it, long, steps=200_000, repeats=3):10.3g}")

# %% [markdown]
# Op by op, the calls come on top of seventeen launches.
#
# ### Side by side with level 3
#
# The row *model* grows, and in all others the weights have disappeared. (The times of compiled steps are longer here: tracing is
# shared by 8,000 steps, above by 200,000.)

# %%
line = compare.measure(task, low_level.tasks.linear_regression, linear_regression, last=1000)
net = compare.measure(rings, low_level.tasks.dnn_classifier, dnn_classifier, last=50, repeats=1)
compare.side_by_side(line, net)

# %% [markdown]
# Look at *forward* and *update*: the names of the weights are gone. For the net, level 3 has another text in every band. Here only
# `model` differs, its layers and its loss. All the rest is `_train`, and it is the same for both.
#
# ## The same in TensorFlow and PyTorch (1 min)
#
# The net in the three, on the same batches. A look at the band *update* is enough: who is handed no gradients? (Theirs ran on the
# real libraries. Both run here too, with one import changed: `more/03_torch`, `more/05_tensorflow`.)

# %%
from course.inspection import framework_programs

framework_programs.beside(rings, dnn_classifier)

# %% [markdown]
# ## Exercises (10 min, optional)
#
# As before: fill the stub, run, and read what the check says.
#
# ### 04-5 · Break it: standardised by itself
#
# Here is a model of one line, from the flipper to the mass. It standardises whatever it is asked about, and looks reasonable:

# %%
from course import tasks
from course.practice import exercises

exercises.begin("04-5")

table = tasks.read("penguins.csv", ("species", "flipper_length_mm", "body_mass_g"), (str, str, str))
table = [row for row in table if "NA" not in row]
gentoo = np.array([name == "Gentoo" for name, _, _ in table])
flipper, mass = np.array([(float(length), float(grams) / 1000) for _, length, grams in table]).T
slope, level = np.polyfit((flipper - flipper.mean()) / flipper.std(), mass, 1)


def predicted_mass(flipper):
    return slope * (flipper - flipper.mean()) / flipper.std() + level


for name, which in {"all penguins": flipper > 0, "the Gentoos": gentoo}.items():
    print(f"{name:12}  predicted {predicted_mass(flipper[which]).mean():.2f} kg, weighed {mass[which].mean():.2f} kg")

# %% [markdown]
# The line is a good one, and yet the Gentoos come out almost a kilogram too light. Print the mean of `predicted_mass` for the
# Adelies alone (make a mask as `gentoo` is made), and compare the three predicted means: there is the cause. What would it
# say of a single bird?
#
# So the means and deviations belong to the model, like its weights, and come from the rows that it was trained on. The test
# rows are standardised by *these*. They take no part in making them: a row that had a say in the model can no longer test it.
# (About 3 lines. A column that is constant in x has a deviation of 0: divide it by 1.)

# %%
from course.practice import exercises

exercises.begin("04-5")


def standardised(x, x_test):
    """Both tables [rows, columns], minus the mean of each column of x, divided by its standard deviation in x."""
    return ...


exercises.check("04-5", standardised)

# %% [markdown]
# ### Without a check
#
# - Somebody meets an Emperor, which is none of the three species. What does its row of indicators hold, and what will the model say?
#   Give it a fourth number, 1 for "unknown". What is its weight after the training, and why?
# - In `_train`, after the weights are set, make the `trainable` of the first layer's kernel False. Which numbers move now, and how
#   good is the net?
#
# ## Where to go from here
#
# Next comes [5 · High-level API](05_high_level.ipynb). It takes the last thing out of your hands, the loop.
#
# Each of these takes one idea further, in at most 45 minutes, on what you have built:
#
# - [more/04_layers](more/04_layers.ipynb): more starting weights, penalties, dropout, batch normalization, embeddings; *exercise: a layer*
# - [more/04_losses](more/04_losses.ipynb): logits, several classes; *exercise: a loss for data with outliers*
# - [more/04_optimizers](more/04_optimizers.ipynb): momentum, curvature in every direction, schedules, clipping; *exercise: signs only*
# - [more/04_pipeline](more/04_pipeline.ipynb): shuffling what does not fit into memory, functions, files, threads
# - [more/04_columns](more/04_columns.ipynb): words, gaps, ranges and pairs as columns
# - [more/04_metrics](more/04_metrics.ipynb): accuracy over batches, precision, recall, AUC, R²; *exercise: a metric with a state*
#
# ## Build

# %%
build.level("04_mid_level", linear_regression, dnn_classifier)

# %% [markdown]
# Level 4 stands. Next: [5 · High-level API](05_high_level.ipynb).

# %% [markdown]
# # 4 · Mid-level API
#
# **In this notebook a part owns its variables, and a model becomes a list of parts.**
#
# This is the level of `tf.keras.layers` and `torch.nn`, of losses, optimizers and datasets. About 75 minutes,
# without the optional part at the end. Six kinds of part come one after the other: layers, losses, optimizers, datasets, feature
# columns and metrics. Then both tasks are put together from them.

# %%
from course import build, figures, tasks
from course.practice import checks

build.watch("04_mid_level")
figures.you_are_here(4)

# %% [markdown]
# ## A surprise to begin with (3 min)
#
# Do penguins with deeper bills weigh more? We fit a line through all 342 of them, mass over bill depth. Then we do the same
# for the Adelies alone, for the Chinstraps and for the Gentoos.

# %% tags=["hide-input"]
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

# %%
import numpy as np

table = tasks.read("penguins.csv", ("species", "bill_depth_mm", "body_mass_g"), (str, str, str))
table = [(name, float(depth), float(mass)) for name, depth, mass in table if "NA" not in (depth, mass)]
for group in ("all", "Adelie", "Chinstrap", "Gentoo"):
    depth, mass = np.array([row[1:] for row in table if group in ("all", row[0])]).T
    print(f"{group:10} {np.polyfit(depth, mass, 1)[0]:7.1f} g per mm of bill depth")

# %% [markdown]
# Not one of the three groups does what they do together ([Simpson's
# paradox](https://doi.org/10.1111/j.2517-6161.1951.tb00088.x)). A model that is not told the species takes its effect for one
# of the bill. Later in this notebook we tell it, and see the sign turn. A model is only as good as the columns it is given,
# and real models take many columns. So they are made of parts, and each part has to look after its own weights.
#
# ## A part owns its variables (12 min)
#
# On level 3 the weights were loose variables, and every function had to be handed all of them. A **layer** keeps its own.
# It makes them when it first sees an input, because only then is its width known.
#
# The weights of a layer are a table [inputs, units]. A **unit** is one column of it: it makes one number out of all that go in.
# Where do the weights start? Units that start equal get equal gradients, and stay equal for ever. And too large weights make
# the numbers larger from layer to layer. So weights are drawn at random, from a range that depends on how many numbers go in
# and how many come out.
#
# Four words come up from level 3. A `Module` finds the variables inside it. `Operators` is what tensors and variables have in
# common, their `+` and `@`. `as_tensor` makes a tensor of an array or a list. And `x.spec` is all that is known of x without
# its numbers: shape, dtype, device.

# %%
#| export layers
"""A part owns its variables: layers."""

import difflib
import functools
import math
import random
import reprlib

import numpy as np

from levels.low_level import Module, Operators, Variable, as_tensor, nn

RANDOM = random.Random(0)  # where starting weights come from; RANDOM.seed(n) repeats them


def glorot_uniform(shape):
    """Uniform in ±√(6 / (inputs + units)), for weights of shape [inputs, units] (Glorot and Bengio, 2010)."""
    limit = math.sqrt(6.0 / sum(shape[-2:]))
    return [RANDOM.uniform(-limit, limit) for _ in range(math.prod(shape))]


# %%
print(*(f"{w:.3f}" for w in glorot_uniform((2, 4))))

# %% [markdown]
# Eight weights, none beyond √(6 / 6) = 1. The range is that of
# [Glorot and Bengio, 2010](https://proceedings.mlr.press/v9/glorot10a.html): with it the signal keeps about its size on the way
# forward, and the gradient on the way back, as long as the activations are nearly linear. (An **activation** is the function
# that a layer puts on its result, such as relu.)
#
# A function that makes starting weights is an **initializer**. Initializers and activations have names, as in Keras, and stand
# in a table each. A misspelled name is answered with the nearest right one. Sizes and counts share a check too:


# %%
#| export layers
INITIALIZERS = {"zeros": lambda shape: [0.0] * math.prod(shape), "glorot_uniform": glorot_uniform}
ACTIVATIONS = {"linear": lambda x: x, "relu": nn.relu, "sigmoid": nn.sigmoid}
REGULARIZERS = {}  # penalties for large weights, see below


def known(what, table, name):
    """The entry of that name in a table. What is no name, such as a function of your own, stays as it is."""
    if not isinstance(name, str):
        return name
    if name not in table:
        near = difflib.get_close_matches(name, table, 1)
        cure = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(table)}"
        raise ValueError(f"no {what} is called {reprlib.repr(name)}; {cure}")
    return table[name]


def at_least(least, name, value):
    """The value, if it is a whole number of at least that. Else raises ValueError."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ValueError(f"{name} is {value!r}; expected a whole number from {least} on")
    return int(value)


# %% [markdown]
# Rates, moments and penalties are numbers within bounds. They are checked where they are given: a NaN here would show only as a
# training that goes nowhere.


# %%
#| export layers
def positive(name, value, below=math.inf):
    """The value, if it is a number above 0 and below that. Else raises ValueError."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not 0.0 < value < below:
        limit = "" if below == math.inf else f" below {below:g}"
        raise ValueError(f"{name} is {value!r}; expected a positive number{limit}")
    return value


def from_zero(name, value, below=math.inf):
    """The same for a number that may also be 0."""
    return value if type(value) in (int, float) and value == 0 else positive(name, value, below)


# %%
for attempt in (
    lambda: known("activation", ACTIVATIONS, "rleu"),
    lambda: at_least(1, "units", 2.5),
    lambda: positive("epsilon", float("nan")),
):
    try:
        attempt()
    except ValueError as error:
        print(error)

# %% [markdown]
# A part should also know how to make another one like it. Python calls `__new__` before `__init__`, with the same arguments,
# and we keep them there. Level 5 will write models to files as what they were made with.


# %%
#| export layers
class Made:
    """Remembers how it was made: `part.again()` makes a new one with the same arguments."""

    def __new__(cls, *args, **options):
        part = super().__new__(cls)
        part.again = functools.partial(cls, *args, **options)
        return part

    def __repr__(self):
        given = [*map(repr, self.again.args), *(f"{name}={value!r}" for name, value in self.again.keywords.items())]
        return f"{type(self).__name__}({', '.join(given)})"


# %%
class Coin(Made):
    def __init__(self, side, weight=5):
        self.side, self.weight = side, weight


coin = Coin("tails", weight=7)
print(coin, "again:", coin.again(), "the same object:", coin is coin.again())

# %% [markdown]
# `Coin` says nothing about remembering, and yet it can be made again. (A partial, of `functools`, is a call that waits: a
# function and its arguments, kept together.)
#
# Now the layer. All layers share one thing, the call: on the first call it makes the variables, on every call it runs. Read
# `__call__` with three questions.
#
# - *What came in?* One input or a list of `several`; `first` is the first of them.
# - *Are there variables yet?* If not, `build` makes them with `add_weight`. `built` remembers it, and `width` the number of
#   inputs that they are for.
# - *Is this training?* Some layers, such as dropout, do another thing in training. The last entry of `TRAINING` says so, to the
#   layers inside as well, and is taken off again whatever happens.
#
# You may pass over the rest: penalties come at the end of this notebook, `through` on level 5.


# %%
#| export layers
TRAINING = [False]  # the last one says whether layers are called in order to be trained


class Layer(Made, Module):
    """A part of a model: write `call(x)`, and `build(shape)` where it needs variables."""

    def __init__(self, name=None, dtype=None):
        self.name, self.dtype, self.built = name or type(self).__name__.lower(), dtype, False
        self.width = self.output_shape = None  # width: of the inputs that it is built for, where that matters
        self.input_specs = None  # what it was called on last
        self.penalties = []

    def __call__(self, x, training=None):
        """Build on the first call, then `call`. `training` holds for the layers inside as well; None leaves it as it is."""
        first = x[0] if isinstance(x, (list, tuple)) and x else x
        if hasattr(first, "through"):  # no numbers yet: level 5 notes down the call
            return first.through(self, x)
        several = first is not x and isinstance(first, (Operators, np.ndarray))
        x = [*map(as_tensor, x)] if several else as_tensor(x)
        first = x[0] if several else x
        if not self.built:
            self.dtype = self.dtype or (first.dtype if first.dtype.kind == "f" else "float32")
            self.build([t.spec.shape for t in x] if several else x.spec.shape)
            self.built = True
        if self.width not in (None, *first.spec.shape[-1:]):
            raise ValueError(f"{self.name}: built for {self.width} inputs, got {first.spec}")
        TRAINING.append(TRAINING[-1] if training is None else training)
        try:
            y = self.call(x)
        finally:
            TRAINING.pop()
        self.input_specs = [t.spec for t in x] if several else [x.spec]
        self.output_shape = y.spec.shape if isinstance(y, Operators) else None
        return y

    def build(self, shape):
        """Make the variables for inputs of this shape (a list of shapes where there is a list of inputs)."""

    def add_weight(self, shape, initializer="glorot_uniform", regularizer=None, trainable=True):
        """A new variable for this layer. `regularizer(variable)` is one of the layer's `losses`."""
        values = np.reshape(known("initializer", INITIALIZERS, initializer)(shape), shape)
        variable, self.built = Variable(values.astype(self.dtype or "float32"), trainable=trainable), True
        if regularizer is not None:
            self.penalties.append(functools.partial(known("regularizer", REGULARIZERS, regularizer), variable))
        return variable

    @property
    def losses(self):
        """What this layer and those inside want added to the loss."""
        return [penalty() for layer in self.named(Layer).values() for penalty in layer.penalties]

    def __repr__(self):
        sizes = [f"{name} {list(v.shape)}" for name, v in self.named(Variable).items()]
        return f"{self.name}: {', '.join(sizes) or 'no variables yet'}"


# %% [markdown]
# A layer without variables needs a `call` and nothing else:


# %%
class Double(Layer):
    def call(self, x):
        return x * 2.0


double = Double()
print(double, "|", double([[1.0, 2.0]]).numpy(), "|", double.output_shape)

# %% [markdown]
# Here is one layer in full, the one both tasks need. Two lines make its variables, and `call` is its formula.


# %%
#| export layers
class Dense(Layer):
    """activation(x[batch, inputs] @ kernel[inputs, units] + bias[1, units])"""

    def __init__(
        self,
        units,
        activation=None,
        use_bias=True,
        kernel_initializer="glorot_uniform",
        bias_initializer="zeros",
        kernel_regularizer=None,
        **options,
    ):
        super().__init__(**options)
        self.units, self.use_bias = at_least(1, "Dense: units", units), use_bias
        self.activation = known("activation", ACTIVATIONS, activation)
        self.initializers, self.regularizer = (kernel_initializer, bias_initializer), kernel_regularizer

    def build(self, shape):
        self.width = shape[-1]
        self.kernel = self.add_weight((self.width, self.units), self.initializers[0], self.regularizer)
        self.bias = self.add_weight((1, self.units), self.initializers[1]) if self.use_bias else None

    def call(self, x):
        y = x @ self.kernel + self.bias if self.use_bias else x @ self.kernel
        return y if self.activation is None else self.activation(y)


# %%
dense = Dense(2)
print(dense)
print(dense(np.ones((3, 4), "f4")).shape, "from", dense)

# %% [markdown]
# Three rows of four numbers went in, three rows of two came out, and the layer has become concrete on the way. From now on it
# takes rows of four, and says so:

# %%
try:
    dense(np.ones((3, 5), "f4"))
except ValueError as error:
    print(error)

# %% [markdown]
# A layer is a module, so a layer of layers is a layer: its variables are found, whatever it keeps them in.


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
# Each name is the way to a variable: `hidden.kernel` is the kernel of what `twice` keeps as `hidden`. Nobody had to list them, and
# an optimizer can be given them all.
#
# ## What is wrong: losses (8 min)
#
# A **loss** says in one number how wrong a prediction is. All losses share the end: what each sample gives is weighted, if
# somebody has weights, and averaged. We begin with the weights, one for each sample:

# %%
#| export losses
"""Losses: one number that says how wrong a prediction is."""

from levels.low_level import GradientTape, Symbol, cast, clip, exp, log, maximum, reduce_mean, reshape


def weighted(loss, each, sample_weight):
    """What each sample gives, [batch, …], times its weight [batch]."""
    weight, samples = as_tensor(sample_weight, each), each.spec.shape[:1]
    if weight.spec.shape != samples:
        raise ValueError(f"{loss}: sample_weight is {weight.spec}; expected one weight a sample, {samples}")
    return each * reshape(weight, samples + (1,) * (len(each.spec.shape) - 1))


# %%
each = as_tensor([[0.25, 1.0], [4.0, 9.0]])  # two samples, of two numbers each
weighted("a loss", each, [1.0, 0.5]).numpy()

# %% [markdown]
# The second row counts half. The `reshape` made [2, 1] of the weights [2], so that each goes with a row and not with a column.
#
# All losses share the beginning too, a check that the two arguments belong together. Between beginning and end stands `call`,
# which each loss writes for itself:


# %%
#| export losses
class Loss(Made):
    """The mean, over all samples, of what `call(y_true, y_pred)` gives for each."""

    def __init__(self):
        """No arguments; without this line Python would take any."""

    def __call__(self, y_true, y_pred, sample_weight=None):
        """One number. `sample_weight` [batch] multiplies what each sample gives, before the mean."""
        y_pred = as_tensor(y_pred)
        y_true = as_tensor(y_true, y_pred)
        self.check(y_true, y_pred)
        if y_true.spec.shape == y_pred.spec.shape and y_true.dtype.kind != "f":  # yes and no, as 1 and 0
            y_true = cast(y_true, y_pred.dtype)
        each = self.call(y_true, y_pred)
        return reduce_mean(each if sample_weight is None else weighted(self, each, sample_weight))

    def check(self, y_true, y_pred):
        """Raise ValueError where the two do not belong together."""
        if y_true.spec.shape != y_pred.spec.shape:
            cure = "; write y[:, None]" if y_true.spec.shape == y_pred.spec.shape[:-1] else ""
            raise ValueError(
                f"{self}: y_true is {y_true.spec} and y_pred is {y_pred.spec}; expected equal shapes{cure}"
            )

    def __repr__(self):
        return type(self).__name__


# %% [markdown]
# The first one, in two lines:


# %%
#| export losses
class MeanSquaredError(Loss):
    """mean((y_pred - y_true)²)"""

    def call(self, y_true, y_pred):
        error = y_pred - y_true
        return error * error


# %%
mse, truth, guess = MeanSquaredError(), [[1.0], [2.0]], [[1.5], [4.0]]
print(mse(truth, guess).numpy(), "and, the second sample without a weight,", mse(truth, guess, [1.0, 0.0]).numpy())

# %% [markdown]
# The squares are 0.25 and 4, and their mean is 2.125. Without the 4 the mean is 0.125, and not 0.25: it is still one over two
# samples.
#
# Equal shapes are worth a check. See what NumPy does with predictions of shape (100, 1) beside labels of shape (100,), and what
# a loss says of two such samples:

# %%
print((np.ones((100, 1)) - np.ones(100)).shape)
try:
    mse([1.0, 2.0], guess)
except ValueError as error:
    print(error)

# %% [markdown]
# NumPy repeats both to a square of 100 by 100 errors. The training would run, and learn nothing.
#
# The loss of a yes-or-no question is the **cross-entropy**: minus the logarithm of the probability that was given to what
# turned out to be true.

# %% tags=["hide-input"]
checks.predict(
    "The truth is y = 1, and a model is certain of the opposite: p = 0. The loss is -log(p). What do Keras and we answer?",
    choices=["infinity", "NaN", "about 16", "1"],
    answer="about 16",
    because="p is cut off at 1e-7, and -log(1e-7) is 16.1. Infinity would make every weight NaN in one step. (PyTorch cuts off "
    "the logarithm instead, at -100.)",
)


# %%
#| export losses
def within(p):
    """Probabilities, cut off so that their logarithm stays finite."""
    return clip(p, 1e-7, 1.0 - 1e-7)


def check_probabilities(loss, name, x):
    """Raise ValueError for numbers outside of [0, 1]. While a function is traced, nobody knows them: they pass."""
    if not isinstance(x, Symbol) and ((x.numpy() < 0.0) | (x.numpy() > 1.0)).any():
        wrong = float(max(x.numpy().ravel(), key=lambda p: abs(p - 0.5)))
        raise ValueError(f"{loss}: {name} holds {wrong:.6g}; expected probabilities, from 0 to 1")


# %%
print(within(as_tensor([0.0, 0.5])).numpy())
try:
    check_probabilities("a loss", "y_pred", as_tensor([0.5, 1.5]))
except ValueError as error:
    print(error)

# %% [markdown]
# (A `Symbol` is level 3's tensor without numbers, the one that a traced function computes with. There is nothing to check in it.)
#
# Now the loss. It has two forms. Read the last two lines of `call` first; what `from_logits` is for, we see in a moment.


# %%
#| export losses
class Crossentropy(Loss):
    """A loss of probabilities or, with `from_logits=True`, of the numbers that they are made of."""

    def __init__(self, from_logits=False):
        self.from_logits = from_logits

    def check(self, y_true, y_pred):
        super().check(y_true, y_pred)
        check_probabilities(self, "y_true", y_true)
        if not self.from_logits:
            check_probabilities(self, "y_pred", y_pred)


class BinaryCrossentropy(Crossentropy):
    """-mean(y_true·log p + (1 - y_true)·log(1 - p)), with p = y_pred kept within [1e-7, 1 - 1e-7].

    `from_logits=True` takes the z of p = 1 / (1 + exp(-z)) in its place, and cuts nothing off.
    """

    def call(self, y_true, y_pred):
        if self.from_logits:
            z = y_pred
            return maximum(z, 0.0) - y_true * z + log(1.0 + exp(-maximum(z, -z)))
        p = within(y_pred)
        return -(y_true * log(p) + (1.0 - y_true) * log(1.0 - p))


# %%
wrong = Variable([[0.0]])
with GradientTape() as tape:
    loss = BinaryCrossentropy()([[1.0]], wrong)
print(f"loss {float(loss):.4f}, gradient {float(tape.gradient(loss, wrong)):.4f}")

# %% [markdown]
# The loss is finite ([PyTorch's documentation of `BCELoss`](https://docs.pytorch.org/docs/stable/generated/torch.nn.BCELoss.html)
# gives the same reason for a limit), but look at the gradient. Where p is cut off, nothing depends on it: the worst mistake of all
# teaches nothing.
#
# That is why there is a second form. It takes the number that goes into the sigmoid, the **logit** z. Sigmoid and logarithm
# cancel: for y = 1 what remains is log(1 + exp(-z)). The code writes that with the size of z, `maximum(z, -z)`, in the exponent.
# So `exp` is never asked for more than exp(0) = 1, and nothing runs over, whatever z is:

# %%
wrong = Variable([[-50.0]])
with GradientTape() as tape:
    loss = BinaryCrossentropy(from_logits=True)([[1.0]], wrong)
print(f"loss {float(loss):.4f}, gradient {float(tape.gradient(loss, wrong)):.4f}")

# %% [markdown]
# At z = -50 the model is as wrong as before. The loss is 50, and the gradient -1: each unit more of z takes one off the loss.
#
# ## What to do about it: optimizers (8 min)
#
# An **optimizer** knows how to change a variable, given its gradient. Many remember something of each variable from step to
# step, so an optimizer owns variables too, and it is a module like a layer: its state can be saved, and put back. What it
# remembers of one variable is called its **slots**.
#
# In the class below, read `build` and `apply_gradients`. The one makes a slot of zeros for each name in `memory`. The other goes
# through the pairs of gradient and variable, asks `update` for the new numbers, and assigns them. The rest looks after the rate,
# which is a variable too, so that a compiled step reads its present value. A rate may also be a *schedule*, a function of the
# step, and gradients may be *clipped*, made shorter: both come at the end of this notebook.

# %%
#| export optimizers
"""Optimizers: how a variable changes, given its gradient."""

from levels.low_level import constant, function, sqrt


class Optimizer(Made, Module):
    """Owns what it remembers of each variable. Write `update(rate, dw, w, *memory)` -> the new w and the new memory."""

    memory = ()  # names of what it remembers of each variable: as many numbers, 0 at first

    def __init__(self, learning_rate=0.01, clipnorm=None, global_clipnorm=None):
        self.owners = self.rate = None  # owners: the variables that it was built for, by their ids
        self.learning_rate, self.clipnorm, self.global_clipnorm = learning_rate, clipnorm, global_clipnorm
        for name, value in (("clipnorm", clipnorm), ("global_clipnorm", global_clipnorm)):
            if value is not None:
                positive(f"{type(self).__name__}: {name}", value)

    @property
    def learning_rate(self):
        """A schedule, or a number, which may be changed at any time; compiled steps hear of it."""
        return float(self.rate) if isinstance(self.rate, Variable) else self.rate

    @learning_rate.setter
    def learning_rate(self, value):
        if not callable(value):
            from_zero(f"{type(self).__name__}: learning_rate", value)  # at 0 nothing moves
        if isinstance(self.rate, Variable):
            self.rate.assign(value)
        else:
            self.rate = value

    def build(self, variables):
        """Make the memory for these variables, in this order. The first `apply_gradients` does so itself."""
        dtype, self.owners = variables[0].dtype, [*map(id, variables)]
        self.iterations = Variable(np.zeros((), dtype), trainable=False)
        if not callable(self.rate):
            self.rate = Variable(np.array(self.rate, dtype), trainable=False)
        zeros = [np.zeros(v.shape, v.dtype) for v in variables]
        self.slots = [{name: Variable(zero, trainable=False) for name in self.memory} for zero in zeros]

    def apply_gradients(self, grads_and_vars):
        """Change the variable of each pair (gradient, variable). Each call gets the same variables, in the same order."""
        gradients, variables = zip(*grads_and_vars, strict=True)
        if self.owners is None:
            self.build(variables)
        if self.owners != [*map(id, variables)]:
            raise ValueError(f"{type(self).__name__}: built for other variables, or another order; make a new one")
        rate = self.rate(self.iterations) if callable(self.rate) else self.rate
        self.iterations.assign(self.iterations + 1.0)
        for dw, w, slots in zip(self.clipped(gradients), variables, self.slots):
            for variable, value in zip((w, *slots.values()), self.update(rate, dw, w, *slots.values())):
                variable.assign(value)

    def clipped(self, gradients):
        """The gradients, none of them (`clipnorm`), or not all together (`global_clipnorm`), longer than that."""
        if self.clipnorm is not None:
            gradients = [shortened([dw], self.clipnorm)[0] for dw in gradients]
        return gradients if self.global_clipnorm is None else shortened(gradients, self.global_clipnorm)


# %% [markdown]
# Each optimizer is then one formula. The oldest one goes against the gradient. With **momentum** it also keeps a part of its
# last step: steps that agree add up, to 1 / (1 - momentum) times their length, and steps that go to and fro cancel ([Polyak,
# 1964](https://doi.org/10.1016/0041-5553%2864%2990137-5)). (Here the rate is part of the velocity, as in Keras. PyTorch
# multiplies by it afterwards, which makes a difference when the rate changes.) Nesterov's form takes the gradient where the
# velocity is about to lead, not where w is now ([Sutskever et al.,
# 2013](https://proceedings.mlr.press/v28/sutskever13.html)).


# %%
#| export optimizers
class SGD(Optimizer):
    """w ← w - rate·dw. With momentum v ← momentum·v - rate·dw and w ← w + v; Nesterov's looks ahead: w + momentum·v - rate·dw."""

    def __init__(self, learning_rate=0.01, momentum=0.0, nesterov=False, **options):
        super().__init__(learning_rate, **options)
        self.momentum = from_zero("SGD: momentum", momentum, 1.0)
        self.nesterov, self.memory = nesterov, ("v",) if momentum else ()

    def update(self, rate, dw, w, *memory):
        if not memory:
            return (w - rate * dw,)
        v = self.momentum * memory[0] - rate * dw
        return w + (self.momentum * v - rate * dw if self.nesterov else v), v


# %%
w, sgd = Variable(np.array(1.0)), SGD(0.1, momentum=0.5)
for _ in range(3):
    sgd.apply_gradients([(w * 2.0, w)])  # the gradient of w²
    print(f"w = {float(w):.4f}, v = {float(sgd.slots[0]['v']):.4f}")

# %% [markdown]
# The lines above minimise w². The first step is plain SGD's, 0.1 · 2. The second would be 0.1 · 1.6, and half of the first
# comes on top: 0.26. In the third the gradient is smaller, and the velocity begins to fade.
#
# The most used one, **Adam** ([Kingma and Ba, 2015](https://arxiv.org/abs/1412.6980)), remembers two means that fade: of the
# gradient and of its square. It divides the one by the root of the other, so the gradient of each weight is measured on its own
# scale. Both means start at 0, too small: after t steps they hold 1 - βᵗ of what they should, and `update` divides by that.


# %%
#| export optimizers
class Adam(Optimizer):
    """m ← β₁·m + (1 - β₁)·dw; v ← β₂·v + (1 - β₂)·dw²; w ← w - rate·(m / (1 - β₁ᵗ)) / (√(v / (1 - β₂ᵗ)) + ε)

    Kingma and Ba, 2015, Algorithm 1. (Keras adds its ε to √v before the correction, which makes it larger in the first steps.)
    """

    memory = "m", "v"

    def __init__(self, learning_rate=0.001, beta_1=0.9, beta_2=0.999, epsilon=1e-7, **options):
        super().__init__(learning_rate, **options)
        self.betas = positive("Adam: beta_1", beta_1, 1.0), positive("Adam: beta_2", beta_2, 1.0)
        self.epsilon = positive("Adam: epsilon", epsilon)

    def update(self, rate, dw, w, m, v):
        (b1, b2), t = self.betas, self.iterations
        m, v = b1 * m + (1.0 - b1) * dw, b2 * v + (1.0 - b2) * (dw * dw)
        c1, c2 = 1.0 - exp(t * math.log(b1)), 1.0 - exp(t * math.log(b2))
        return w - rate * (m / c1) / (sqrt(v / c2) + self.epsilon), m, v


# %% [markdown]
# What does that make of very small and very large gradients?

# %% tags=["hide-input"]
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
# their own, and one must not be judged at the other's. A rate can be changed at any time, and compiled steps hear of it:

# %%
w, sgd = Variable(np.array(1.0)), SGD(0.1)
step = function(lambda: sgd.apply_gradients([(constant(np.array(1.0)), w)]))
for rate in (0.1, 0.1, 0.001):
    sgd.learning_rate = rate
    step()
    print(f"rate {rate}: w = {float(w):.4f}")

# %% [markdown]
# ## The race (8 min)
#
# Which optimizer is the fastest, and does it matter? We begin with the plainest one and real numbers: the mass of 342
# penguins in kg from three measures in mm, as they stand in the table.

# %%
rows = np.array([row[:4] for row in tasks.penguins() if None not in row[:4]])
millimetres, kilograms = rows[:, :3], rows[:, 3:] / 1000
print("one penguin:", millimetres[0], "mm,", kilograms[0], "kg")

# %% tags=["hide-input"]
checks.predict(
    "A linear model of the raw millimetres, all rows in each step, plain SGD at rate 0.001. What does the loss do?",
    choices=["it falls at once", "it falls, but slowly", "it grows without end"],
    answer="it grows without end",
    because="""
    A flipper is about 200 mm long, so a small change of its weight moves every prediction far. The step overshoots the
    lowest point by more than the distance to it, and the next step is longer still.
    """,
)

# %% [markdown]
# `function` compiles the step, and `over` runs it for each entry of a list of row numbers: here a hundred times, with all rows in
# each.

# %%
model, mean_squared, sgd = Dense(1, kernel_initializer="zeros"), MeanSquaredError(), SGD(0.001)
model(millimetres)  # now it has its variables


@function
def step(x, y):
    with GradientTape() as tape:
        loss = mean_squared(y, model(x))
    sgd.apply_gradients(zip(tape.gradient(loss, model.variables), model.variables))
    return loss


losses = step.over(millimetres, kilograms, [range(len(kilograms))] * 100).numpy()
print(*(f"{loss:.3g}" for loss in losses[:5]), "…", losses[-1])

# %% [markdown]
# Each step makes the loss 7,157 times as large, and after a hundred it is infinite. Nothing is wrong with SGD. It is the shape
# of the loss. Drawn over its weights, the squared error of a linear model is a bowl. Along each axis of the bowl the loss is a
# parabola, with a second derivative, the **curvature** c. A step multiplies the distance from the lowest point by 1 - rate·c.
# Where rate·c is above 2 the distance grows. So the steepest axis limits the rate to 2/c, and the flattest one has to live with
# that rate. The curvatures are the eigenvalues of the matrix of second derivatives:


# %%
def curvatures(x):
    """The smallest and the largest curvature of the mean squared error of x[n, inputs] @ w + b."""
    columns = np.column_stack([x, np.ones(len(x))])
    return np.linalg.eigvalsh(2 * columns.T @ columns / len(x))[[0, -1]]


# %% [markdown]
# We ask for the raw measures, and for the same ones standardised. To **standardise**, subtract each column's mean and divide by
# its standard deviation.

# %%
depth = millimetres[:, 1:2]
depths = {"raw": depth, "standardised": tasks.standardise(depth, depth)[0]}
three = {"raw": millimetres, "standardised": tasks.standardise(millimetres, millimetres)[0]}
print("                              flattest  steepest     ratio  largest rate")
for title, columns in {"three measures": three, "bill depth alone": depths}.items():
    for name, x in columns.items():
        flat, steep = curvatures(x)
        print(f"{title:16} {name:12} {flat:9.2g} {steep:9.3g} {steep / flat:9.3g} {2 / steep:13.2g}")

# %% [markdown]
# The ratio is the **condition number**. For raw measures it is huge, for two reasons: the bias sees ones where the
# weights see hundreds of millimetres, and no measure is near zero, so that a larger weight is nearly undone by a
# smaller bias. Standardising takes both reasons away. And the growth is explained: (1 - 0.001 · 85,600)² is 7,157.
#
# ### On the map
#
# A bowl over one weight and one bias can be drawn. We take the depth of the bill: we know from the beginning of this
# notebook that the best slope is -192 g per mm. All rows go into each step, so nothing is random. Beside each loss, `run` keeps
# w and b as they were before the update: that is the path on the map.


# %%
def run(optimizer, x, y, updates=1000):
    """Fit x @ w + b, from zero. Returns losses [updates + 1] and the path [updates + 1, 2] of (w, b), the start included."""
    model = Dense(1, kernel_initializer="zeros")
    model(x)

    @function
    def step(x, y):
        w, b = map(constant, model.variables)
        with GradientTape() as tape:
            loss = mean_squared(y, model(x))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.variables), model.variables))
        return loss, w, b

    all_rows = np.broadcast_to(np.arange(len(x)), (updates + 1, len(x)))
    losses, w, b = step.over(x, y, all_rows)
    return losses.numpy(), np.column_stack([w.numpy(), b.numpy()])


# %%
losses, path = run(SGD(0.002), depth, kilograms)
print(f"loss {losses[0]:.3f}, then {losses[-1]:.3f}; slope {1000 * path[-1, 0]:+.0f} g per mm of bill depth")

# %% [markdown]
# A thousand updates at more than half of the largest rate, and the slope has not even the sign of the best one. (That it is
# the Adelies' slope is chance.) SGD fell to the floor of the valley in two updates, and crawls along it since. In a bowl, the
# right momentum brings the number of steps from the order of the condition number down to that of its square root (Polyak, in
# the paper above). **Who does better?** Try rates from 0.001 to 1 on the raw millimetres; SGD's limit is 0.0033. Then set
# `inputs` to standardised.
#
# Each mark on the map is an update: the first, the tenth, the hundredth and the thousandth. In the yellow ellipse the loss is
# within 1 % of the best, and to arrive is to stay there. (The map of the raw inputs is stretched sideways. At equal scales
# its valley would be 152 times as long as it is wide, the square root of the condition number.)

# %%
from course.figures import race, widgets

RATES = [m * 10**-k for k in (4, 3, 2, 1) for m in (1, 2, 5)] + [1]


def draw(inputs, rate, momentum):
    x = depths[inputs]
    racers = {"SGD": SGD(rate), f"momentum {momentum}": SGD(rate, momentum), "Adam": Adam(rate)}
    return race.drawn(inputs, rate, x, kilograms, {name: run(racer, x, kilograms) for name, racer in racers.items()})


widgets.explore(
    draw,
    "The optimizer race: SGD, momentum and Adam on the loss of a line through the penguins' masses over bill depths.",
    inputs=["raw", "standardised"],
    rate=RATES,
    momentum=[0, 0.5, 0.9, 0.99],
    start={"rate": 0.002, "momentum": 0.9},
)

# %% [markdown]
# At one rate for all, somebody is always at the wrong one. To be fair, each gets the best of these rates. (Where the table says
# "any", none of them is enough.)


# %%
def fewest(optimizer, x):
    """(updates, rate): the fewest updates in which it arrives at one of RATES. None if 1,000 are never enough."""
    best = race.valley(x, kilograms).loss
    times = [(race.arrival(run(optimizer(rate), x, kilograms)[0], best), rate) for rate in RATES]
    return min((time for time in times if time[0] is not None), default=None)


momentum = {f"momentum {m}": lambda rate, m=m: SGD(rate, m) for m in (0.9, 0.99)}
print("inputs        racer          updates  at rate")
for inputs, x in depths.items():
    for name, optimizer in {"SGD": SGD, **momentum, "Adam": Adam}.items():
        updates, rate = fewest(optimizer, x) or ("> 1,000", "any")
        print(f"{inputs:12}  {name:13} {updates:>8} {rate:>8}")

# %% [markdown]
# How long would SGD take on the raw millimetres? Above the best loss, an update leaves a share of (1 - rate·c)², with c
# the flattest curvature. The formula, and the run:

# %%
best, (flat, _) = race.valley(depth, kilograms).loss, curvatures(depth)
formula = 1000 + np.log(0.01 / (losses[-1] / best - 1)) / np.log((1 - 0.002 * flat) ** 2)
print(f"formula {formula:,.0f}, measured {race.arrival(run(SGD(0.002), depth, kilograms, 50_000)[0], best):,}")

# %% [markdown]
# Some 48,000, and the formula has them all. Momentum 0.99 saves a factor of 57, Adam one of 146. Standardising, a single
# line, saves all but one: in a round bowl the steepest way down leads to the lowest point, and at rate 1/c = 0.5 plain SGD is
# there after one update. Nobody is faster, and Adam, at its best rate, needs 70. **Scaling was the cure, not Adam.** That is
# why the penguins of `tasks.penguins_mass()` come standardised.
#
# Three measures make no perfectly round bowl (8.71), because long flippers and long bills go together. And inside a
# deep net nobody can scale a layer's inputs beforehand. There Adam helps, which measures each weight's gradient on a scale
# of its own, and so does batch normalization (see *More layers*).

# %% [markdown]
# ## Data that arrives in batches (12 min)
#
# So far every row lay in one array. Real data may be a folder of files or a stream, and a step wants it in batches, in another
# order each time. Python has something for one element after the other, the generator. It has one flaw:

# %%
squares = (n * n for n in range(4))
print(list(squares), list(squares))

# %% [markdown]
# The second walk finds nothing. Training walks through the same data hundreds of times, so we keep what *makes* the iterator. That
# is all a **dataset** is: a recipe for iterators. A stage, such as `map`, is a new recipe around an old one.

# %%
import itertools


class Recipe:
    """Something to be walked through as often as wished: `make()` gives a new iterator each time."""

    def __init__(self, make):
        self.make = make

    def __iter__(self):
        return self.make()

    def map(self, function):
        return Recipe(lambda: (function(element) for element in self))

    def take(self, count):
        return Recipe(lambda: itertools.islice(self, count))


squares = Recipe(itertools.count).map(lambda n: n * n).take(4)
print(list(squares), list(squares))

# %% [markdown]
# The numbers never end, and that does no harm: a stage computes an element when somebody asks for it, and not before.
#
# So we write each stage as a generator, and try it on a plain list. At the end a class puts them around one another.
#
# ### Shuffled, but in how much memory?
#
# How does one shuffle what does not fit into memory? With a buffer. It takes in the first few elements. Then it gives out one
# of them, drawn at random, and puts the next element in its place. That is what
# [`tf.data`](https://www.tensorflow.org/api_docs/python/tf/data/Dataset#shuffle) does, and this is the whole of it. Each pass
# has random numbers of its own, made of a seed and the pass's number; [NEP
# 19](https://numpy.org/neps/nep-0019-rng-policy.html) is NumPy's promise that they stay the same.

# %%
#| export data
"""Data that arrives in batches: a dataset is a recipe for iterators."""

import csv
import itertools
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

from levels.low_level import DTYPES, Tensor, constant, gather


def drawn(elements, size, draws):
    """Elements as they leave a buffer of `size`, from which one is drawn at random and replaced by the next."""
    elements = iter(elements)
    buffer = list(islice(elements, size))
    for element in elements:
        place = int(draws.random_sample() * size)
        yield buffer[place]
        buffer[place] = element
    for place in draws.permutation(len(buffer)):
        yield buffer[place]


def draws_of(seed, number):
    """The random numbers for one pass: NumPy promises the same ones on every machine, in every version (NEP 19)."""
    return np.random.RandomState(np.random.PCG64([seed, number]))


# %% [markdown]
# The buffer's size, `buffer_size`, matters. Here are twenty numbers, in order, through a buffer that has room for all:


# %%
def through(size):
    return drawn(range(20), size, draws_of(0, 0))


print(*through(20))

# %% tags=["hide-input"]
checks.predict(
    "The same twenty numbers pass through `shuffle(buffer_size=1)`. In which order do they come out?",
    choices=["thoroughly shuffled", "neighbours may change places", "as they came"],
    answer="as they came",
    because="A buffer of one leaves nothing to choose. Where the rows are sorted by class, too small a buffer gives batches of "
    "one class, and training suffers without a word.",
)

# %%
for size in (1, 3, 20):
    print(f"{size:2}:", *through(size))

# %% [markdown]
# With a buffer of three no number comes more than two places early, though one may wait long: 11 comes seven places late. Only a
# buffer for all rows shuffles them all.
#
# ### Cut into batches
#
# An **element** is an array, or a tuple or a dict of elements, as in `({"depth": …, "species": …}, mass)`. What is done to an
# element is done to its arrays, wherever they are in it:


# %%
#| export data
def each_array(function, *elements):
    """function of the arrays in elements that are made alike."""
    first = elements[0]
    if isinstance(first, dict):
        return {name: each_array(function, *(element[name] for element in elements)) for name in first}
    if isinstance(first, tuple):
        return tuple(each_array(function, *parts) for parts in zip(*elements, strict=True))
    return function(*elements)


# %%
print(each_array(lambda a, b: a + b, ({"depth": 18, "mass": 3}, 1), ({"depth": 2, "mass": 1}, 0)))

# %% [markdown]
# Two elements of the same make went in, and their numbers were added in pairs. To make a batch of elements is to stack them, array
# by array:


# %%
#| export data
def stacked(elements, size, drop):
    """So many elements as one. The last may be of fewer, or is dropped."""
    elements = iter(elements)
    while part := list(islice(elements, size)):
        if len(part) == size or not drop:
            yield each_array(stack, *part)


def stack(*arrays):
    if len(shapes := {str(np.shape(x)) for x in arrays}) > 1:
        raise ValueError(f"batch: arrays of shapes {' and '.join(sorted(shapes))} do not fit into one")
    return np.stack(arrays)


# %%
print(next(stacked([(np.array([1, 2]), 3), (np.array([4, 5]), 6)], 2, False)))
for batch in stacked(through(20), 8, False):
    print(batch)

# %% [markdown]
# Look at the last three lines. They may be data, or they may be the numbers of the rows to take next. The stages do not care. So
# where all rows lie in memory, a pipeline moves row numbers, which are small. Only its end touches the data, with one `gather` for
# each batch. And for row numbers in an array there are short cuts: to shuffle them all is a permutation, to cut them into batches
# is a `reshape`.


# %%
#| export data
def shuffled(rows, size, draws):
    """`drawn`; where row numbers in an array all fit into the buffer, the same order in a thirtieth of the time."""
    whole = isinstance(rows, np.ndarray) and size >= len(rows)
    return draws.permutation(rows) if whole else drawn(rows, size, draws)


def batched(rows, size, drop):
    """`stacked`; row numbers in an array are not even copied."""
    if not isinstance(rows, np.ndarray):
        return stacked(rows, size, drop)
    full = len(rows) // size * size
    batches = rows[:full].reshape(-1, size)
    return batches if drop or full == len(rows) else [*batches, rows[full:]]


def part(rows, first, last=None):
    """Those from one place up to another, or to the end."""
    return rows[first:last] if isinstance(rows, np.ndarray) else islice(rows, first, last)


# %%
rows = np.arange(20)
print(*shuffled(rows, 20, draws_of(0, 0)))
print(batched(part(rows, 0, 6), 3, False).tolist(), batched(part(rows, 0, 7), 3, False))

# %% [markdown]
# The order is the one that `drawn` gave. Six rows make two whole batches, and one array. The seventh makes a short batch, and
# a list.
#
# Tensors come in at the beginning and go out at the end. In between stages compute with NumPy, and soon we see why. What is
# no array of numbers or text is refused, at the door. (NumPy has a letter for each kind of dtype: b is yes or no, i and u are
# whole numbers, f is a float and U is text.)


# %%
#| export data
from levels.hardware import unmasked


def as_array(value):
    """What a stage works on: an array of numbers or text. Python's floats become float32, as in `constant`."""
    if isinstance(value, Operators):
        raise TypeError("got a tensor; stages work on NumPy arrays, and tensors are made of what comes out at the end")
    readable = hasattr(value, "__array__") or isinstance(value, (list, tuple, range, str, int, float))
    try:
        array = unmasked(value if readable else None)  # through anything else NumPy might walk for ever
    except ValueError:
        raise ValueError("a list of parts that differ in shape is no array; several arrays go into a tuple") from None
    if array.dtype.kind not in "biufU":
        raise TypeError(f"expected numbers or text, got {reprlib.repr(value)}")
    return array.astype(np.float32) if type(value) in (float, list) and array.dtype == np.float64 else array


def as_element(array):
    """What comes out: numbers as a tensor. What has no kernels, such as text, stays an array."""
    return constant(array) if array.dtype in DTYPES else array


# %%
for value in ([18.7, 17.4], "Gentoo"):
    array = as_array(value)
    print(array.dtype, "comes out as", type(as_element(array)).__name__)

# %% [markdown]
# A source takes its arrays together, and asks that all have as many rows:


# %%
#| export data
def in_rows(tensors):
    """(array, or tuple or dict of arrays; how many rows each of them has)"""
    arrays = each_array(lambda x: as_tensor(x) if isinstance(x, Operators) else as_element(as_array(x)), tensors)
    sizes = []
    each_array(lambda x: sizes.append(len(x) if x.shape else 0), arrays)
    if len({*sizes}) != 1 or not sizes[0]:
        raise ValueError(f"arrays of {sizes} rows; expected as many in each, and at least one")
    return arrays, sizes[0]


# %%
try:
    in_rows((np.ones((3, 2)), [1.0, 2.0]))
except ValueError as error:
    print(error)

# %% [markdown]
# At the end of the pipeline somebody wants the rows themselves. Your loop wants tensors, and `gather` takes those. A stage
# that has to see the rows wants arrays, and NumPy takes those. `packed` lays the row numbers of a whole pass into one array:
# [rows], or [steps, batch] once they are in batches. Where the last batch is shorter they fit into none, and stay a list.


# %%
#| export data
def taken(arrays, rows):
    """The rows of these numbers: of tensors as tensors, of arrays as arrays."""
    return each_array(lambda x: gather(x, rows) if type(x) is Tensor else np.take(x, rows, axis=0), arrays)


def packed(rows):
    """Row numbers, or batches of them, in one array; a list where batches are of different sizes."""
    if isinstance(rows, np.ndarray):
        return rows
    rows = [*map(np.asarray, rows)]
    return rows if len({x.shape for x in rows}) > 1 else np.array(rows) if rows else np.arange(0)


# %%
print(taken(constant([10.0, 20.0, 30.0]), np.array([2, 0])).numpy(), packed([[0, 1], [2, 0]]).shape)

# %% [markdown]
# `taken` gave rows 2 and 0, in that order.
#
# Now the recipe. Its `make()` begins a pass, over elements or, if it has `arrays`, over the numbers of their rows. You know the
# methods from `tf.data`. Each checks what it is given, and puts a stage around the recipe that it belongs to. `length()` counts
# without a pass, and `stages`, for pictures, is the way from the source to here.
#
# It is the longest class of this notebook, and most of it is one pattern. Read `then`, `from_tensor_slices` and `__iter__`, and
# one method in between, such as `shuffle`: you know the others by then.


# %%
#| export data
class Pipeline:
    """Elements to go through as often as wished: tensors, or tuples or dicts of them. Each pass is a new one."""

    def __init__(self, stage, make, length, arrays=None, batches=False, before=()):
        self.make = make if arrays is None else lambda: packed(make())
        self.stage, self.length, self.arrays, self.batches = stage, length, arrays, batches
        self.stages = [*before, self]

    def then(self, stage, make, arrays=None, length=None, batches=False):
        """One stage more. It goes on with row numbers if it is given the `arrays`."""
        return type(self)(stage, make, length or self.length, arrays, batches or self.batches, self.stages)

    @classmethod
    def from_tensor_slices(cls, tensors):
        """The rows of an array, or of all the arrays of a tuple or dict."""
        arrays, count = in_rows(tensors)
        return cls("from_tensor_slices", lambda: np.arange(count), lambda: count, arrays)

    def shuffle(self, buffer_size, seed=None, reshuffle_each_iteration=True):
        """In random order, through a buffer: see `drawn`. A seed gives the same orders, pass by pass, in every program."""
        n = at_least(1, "shuffle: buffer_size", buffer_size)
        seed = RANDOM.getrandbits(32) if seed is None else at_least(0, "shuffle: seed", seed)
        passes = itertools.count() if reshuffle_each_iteration else itertools.repeat(0)
        return self.then(f"shuffle({n})", lambda: shuffled(self.make(), n, draws_of(seed, next(passes))), self.arrays)

    def batch(self, batch_size, drop_remainder=False):
        """So many elements as one. The last batch may be shorter, or is dropped."""
        n, drop = at_least(1, "batch: batch_size", batch_size), drop_remainder
        if drop and self.arrays is not None and len(self) < n:
            raise ValueError(f"batch: {len(self)} elements make no batch of {n}, and the remainder is dropped")
        make, arrays = (self.elements, None) if self.batches else (self.make, self.arrays)
        count = np.floor if drop else np.ceil  # of a quotient, because an endless one stays endless
        return self.then(
            f"batch({n})", lambda: batched(make(), n, drop), arrays, lambda: count(self.length() / n), True
        )

    def take(self, count):
        """The first `count`."""
        n = at_least(0, "take: count", count)
        return self.then(f"take({n})", lambda: part(self.make(), 0, n), self.arrays, lambda: min(n, self.length()))

    def skip(self, count):
        """All but the first `count`."""
        n = at_least(0, "skip: count", count)
        return self.then(f"skip({n})", lambda: part(self.make(), n), self.arrays, lambda: max(0, self.length() - n))

    def elements(self):
        """A new pass over the elements, as NumPy arrays."""
        if self.arrays is None:
            return iter(self.make())
        arrays = each_array(np.asarray, self.arrays)
        return (taken(arrays, rows) for rows in self.make())

    def __iter__(self):
        if self.arrays is None:
            return (each_array(as_element, element) for element in self.make())
        return (taken(self.arrays, constant(rows, np.int64)) for rows in self.make())

    def __len__(self):
        length = self.length()
        if length == math.inf:  # no TypeError: list(…) takes that for "not known", and would never end
            raise ValueError(f"{self.stage} never ends; take(count) of it")
        return int(length)

    @property
    def in_memory(self):
        """Whether there are `rows`: a compiled function can take a pass whole."""
        return self.arrays is not None and self.batches

    def rows(self):
        """A new pass for `function(step).over(*arrays, batches)`: all the arrays, and row numbers [steps, batch]."""
        if not self.in_memory:
            raise TypeError(f"rows: {self.stage} gives no batches of row numbers; go through the dataset in a loop")
        return self.arrays if isinstance(self.arrays, (tuple, dict)) else (self.arrays,), self.make()

    def __repr__(self):
        return " → ".join(data.stage for data in self.stages)


# %% [markdown]
# Two rings, 4,000 points: shuffle all, in batches of 100. What does each stage hold?

# %%
rings = tasks.rings()


def in_batches():
    return Pipeline.from_tensor_slices((rings.x, rings.y)).shuffle(4000, seed=1).batch(100)


data = in_batches()
print(data, "gives", len(data), "batches")
figures.pipeline(data, next(iter(data)))

# %%
for _ in range(2):
    x, y = next(iter(data))
    print(x.shape, y.shape, "the first y:", *y.numpy()[:12, 0].astype(int))

# %% [markdown]
# Each pass has an order of its own, and a program that gives the same seed sees the same orders.
#
# ### In memory, a pipeline is only row numbers
#
# The data itself has not moved. So a compiled function can take a whole pass at once: `rows` gives what `over` wants, all rows and
# the numbers of one pass. To the last bit it computes what a walk computes batch by batch:

# %%
from levels.low_level import function

mean = function(lambda x, y: reduce_mean(x * y))
arrays, batches = in_batches().rows()
one_by_one = [float(mean(x, y)) for x, y in in_batches()]
print(batches.shape, batches.dtype, mean.over(*arrays, batches).numpy().tolist() == one_by_one)

# %% [markdown]
# What does the dataset cost, for each batch?

# %% tags=["nbval-ignore-output"]
import timeit

in_numbers = min(timeit.repeat(data.rows, number=20, repeat=5)) / 20 / 40
in_tensors = min(timeit.repeat(lambda: list(data), number=5, repeat=5)) / 5 / 40
print(f"{in_numbers * 1e6:.1f} µs a batch of row numbers, {in_tensors * 1e6:.1f} µs a batch of tensors")

# %% [markdown]
# Compare this with the training: a compiled step on a hundred rows takes about one microsecond for a line, and about ten for the
# net of the rings. To hand it row numbers costs little beside that, and nearly all of it is the shuffling. To make tensors of the
# batch costs more than either step. So where there are `rows`, take them; `fit` on level 5 will.
#
# ### A function in the pipeline
#
# Text has to be read, pictures have to be turned. A `map` calls a function of the reader's, and this may fail in the thousandth
# element. So the error says where:


# %%
#| export data
def mapped(elements, function, where):
    """function of each element. An error of it comes back with the number of the element, counted from 0."""
    for number, element in enumerate(elements):
        try:
            result = each_array(as_array, function(*element) if isinstance(element, tuple) else function(element))
        except Exception as error:
            raise RuntimeError(f"{where}: element {number}: {type(error).__name__}: {error}") from error
        yield result


# %%
for change in (lambda n: 2 // n, lambda n: constant(n) + 1):
    try:
        print(list(mapped([2, 1, 0], change, "stage 2, map")))
    except RuntimeError as error:
        print(error)

# %% [markdown]
# The first function fails in element 2, where it divides by 0. The second fails at once, because it gives back a tensor.
#
# Three more. `filter` keeps the elements for which a function is true, `repeat` begins again at the end, and `cache` remembers what
# the first whole pass gave. `repeat` and `cache` begin passes themselves, so they are handed a function that makes one. In
# `filtered`, `tee` makes two iterators of one: the elements of the first are judged, and `compress` keeps those of the other for
# which the verdict is true.


# %%
#| export data
END = object()  # what no element is


def filtered(elements, predicate, where):
    """The elements for which the predicate is true."""
    elements, judged = itertools.tee(elements)
    return itertools.compress(elements, mapped(judged, predicate, where))


def repeated(make, passes):
    """The elements of all passes. A pass that is empty is the last: else endless repetition might search for ever."""
    for _ in passes:
        element = END
        for element in make():
            yield element
        if element is END:
            return


def cached(make, kept):
    """What the first whole pass gave, in every pass; `kept` is where it is."""
    elements = []
    for element in kept or make():
        elements.append(element)
        yield each_array(np.array, element)  # a copy: what a later stage writes into it is not for the next pass
    kept[:] = elements


# %%
kept, multiples = [], filtered(range(10), lambda n: n % 3 == 0, "stage 2, filter")
print(*repeated(lambda: cached(lambda: multiples, kept), range(2)))

# %% [markdown]
# The multiples come twice, though the generator in the middle can be walked only once: the second pass found them in the cache.
#
# ### Fetched while you compute
#
# Where a step waits for the disk, and then the disk for the step, each is idle while the other works.
# `prefetch` lets another **thread** run the pipeline. `submit` puts a call into the thread's queue and gives a **future**, a
# promise of the result. `result()` waits for it, and raises what the call raised. So errors arrive in their place.


# %%
#| export data
def prefetched(elements, size):
    """The elements of a pass that another thread goes through, up to `size` elements ahead."""
    worker = ThreadPoolExecutor(1, "prefetch")
    try:
        ahead = deque(worker.submit(next, elements, END) for _ in range(size))
        while (element := ahead.popleft().result()) is not END:
            ahead.append(worker.submit(next, elements, END))
            yield element
    finally:  # a loop that is left early comes here too: Python closes a generator that nobody has any more
        worker.shutdown(wait=False, cancel_futures=True)


# %% tags=["hide-input"]
checks.predict(
    "Eight batches. To read one takes 4 ms, to train on it 6 ms: one after the other, 80 ms. And with `prefetch(2)`?",
    choices=["about 80 ms, Python runs one thread at a time", "about 52 ms", "about 32 ms"],
    answer="about 52 ms",
    because="Only the first batch is waited for: 4 + 8 · 6. Python's threads do take turns, but to wait for a disk or to run a "
    "compiled kernel is not to run Python.",
)

# %% [markdown]
# Let us measure. A pause stands for the disk, and square roots in NumPy for the training. Each writes down when it
# ran, and of five runs the quickest is drawn.

# %% tags=["nbval-ignore-output"]
import time


def spans_of(size):
    spans, ones = [], np.ones(100_000)

    def read(batch):
        start = time.perf_counter()
        time.sleep(0.004)
        spans.append(("read", start, time.perf_counter()))
        return batch

    batches = map(read, range(8))
    for _ in prefetched(batches, size) if size else batches:
        start = time.perf_counter()
        while time.perf_counter() < start + 0.006:
            np.sqrt(ones, out=ones)
        spans.append(("train", start, time.perf_counter()))
    return spans


def quickest(size):
    return min((spans_of(size) for _ in range(5)), key=lambda spans: spans[-1][2] - spans[0][1])


figures.timeline({"without prefetch": quickest(0), "prefetch(2)": quickest(2)})

# %% [markdown]
# The reading has moved beneath the training, and the time is that of the longer of the two. Had reading been longer, the training
# would be hidden. Two stages that both run Python would only take turns, and nothing is hidden. And now we see why stages compute
# with NumPy: an open tape writes down every op that it hears, and it would hear the other thread's.
#
# ### The whole dataset (optional)
#
# One source more, because most data comes as one: a file of columns. The first cell of a column that is not missing decides: it is
# a number, or else the column is text. Numbers become int64, if all are whole and none is missing, else float32, with NaN where
# one is missing. Missing text is "".


# %%
#| export data
def read_columns(path, na_value):
    """{name: array} of a CSV file with a header. Missing cells are empty, or hold `na_value`."""
    with open(path, newline="", encoding="utf-8-sig") as file:
        reader = csv.DictReader(file)
        names, lines = reader.fieldnames or (), {f"{path}, line {reader.line_num}": row for row in reader}
    for line, row in lines.items():
        if None in row or None in row.values():  # under no name, or for no cell
            raise ValueError(f"{line}: {reprlib.repr([*row.values()])} beneath {len(names)} names")
    return {name: column(name, {line: row[name] for line, row in lines.items()}, na_value) for name in names}


def column(name, cells, na_value):
    """The cells {line: text} under that name as an array."""
    cells, numbers = {line: "" if cell == na_value else cell for line, cell in cells.items()}, []
    for line, cell in cells.items():
        try:
            numbers.append(float(cell or "nan"))
        except ValueError:
            if all(map(math.isnan, numbers)):
                return np.array([*cells.values()])
            cure = "a missing one is empty or na_value"
            raise ValueError(f"{line}, column {name}: {cell!r} among numbers; {cure}") from None
    numbers = np.array(numbers)
    return numbers.astype(np.int64 if (numbers % 1 == 0).all() else np.float32)


# %%
for name, values in read_columns(tasks.DATA / "penguins.csv", "NA").items():
    print(f"{name:18} {str(values.dtype):8}", *values[:4])

# %% [markdown]
# With this the pipeline gets the methods that it still lacks. A stage that has to see the elements, as `map` does, hands on no
# `arrays`: after it, the pipeline goes on with elements. (The cell is folded, a click opens it: each method is a stage from above,
# put around the pipeline by `then`, and the four at the end are sources.)


# %% tags=["hide-input"]
#| export data
class Dataset(Pipeline):
    """A pipeline with all stages and sources of `tf.data` that the course needs."""

    def map(self, function):
        """function(element), or function(x, y) of an element (x, y). It takes and returns NumPy arrays."""
        where, name = f"stage {len(self.stages) + 1}, map", getattr(function, "__name__", "…")
        return self.then(f"map({name})", lambda: mapped(self.elements(), function, where))

    def filter(self, predicate):
        """The elements for which predicate(element), or predicate(x, y) of an element (x, y), is true."""
        where, name = f"stage {len(self.stages) + 1}, filter", getattr(predicate, "__name__", "…")
        return self.then(f"filter({name})", lambda: filtered(self.elements(), predicate, where), length=unknown)

    def repeat(self, count=None):
        """So many passes, one after the other; without a count they never end."""
        if count is None:
            return self.then("repeat()", lambda: repeated(self.elements, itertools.count()), length=lambda: math.inf)
        n = at_least(1, "repeat: count", count)
        return self.then(f"repeat({n})", lambda: repeated(self.make, range(n)), self.arrays, lambda: n * self.length())

    def cache(self):
        """What the first whole pass gave, again in every pass."""
        return self.then("cache()", functools.partial(cached, self.make, []), self.arrays)

    def prefetch(self, buffer_size):
        """Up to so many elements ahead, made by another thread. (In memory there is nothing to fetch.)"""
        n = at_least(1, "prefetch: buffer_size", buffer_size)
        stage = self.then(f"prefetch({n})", lambda: prefetched(self.elements(), n))
        return stage if self.arrays is None else self

    @classmethod
    def from_batches(cls, x, y, batches):
        """One batch (x, y) for each entry of `batches`, row numbers [steps, batch]. The last one may be shorter."""
        arrays, rows = in_rows((x, y))[0], packed(batches)
        parts = [rows] if isinstance(rows, np.ndarray) else [batch[None] for batch in rows]
        if any(x.ndim != 2 or x.dtype.kind != "i" or not x.size or x.min() < 0 for x in parts):
            given = reprlib.repr(batches)
            raise ValueError(f"from_batches: expected row numbers [steps, batch] from 0 on, got {given}")
        return cls("from_batches", lambda: rows, lambda: len(rows), arrays, True)

    @classmethod
    def from_csv(cls, path, label_name=None, na_value=""):
        """The lines of a file with a header, as dicts {column: value} or, with a label, as pairs (dict, value)."""
        columns = read_columns(path, na_value)
        known("column", columns, label_name)  # raises ValueError for a name that is not there
        return cls.from_tensor_slices(columns if label_name is None else (columns, columns.pop(label_name)))

    @classmethod
    def from_generator(cls, generator):
        """What the iterators give that generator() makes, a new one for each pass."""
        if not callable(generator):
            raise TypeError(f"from_generator: expected a function that makes iterators, got {reprlib.repr(generator)}")
        return cls("from_generator", lambda: (each_array(as_array, element) for element in generator()), unknown)

    @classmethod
    def zip(cls, *datasets):
        """Tuples of an element of each dataset, as long as all have one."""
        return cls("zip", lambda: zip(*(d.elements() for d in datasets)), lambda: min(d.length() for d in datasets))


def unknown():
    raise TypeError("how many elements there are is known at the end of a pass")


# %% [markdown]
# A thread that reads far ahead would hold much memory, so it stops as soon as `buffer_size` elements are ready:

# %%
slow = Dataset.from_tensor_slices(np.arange(100_000.0)).batch(1000).map(lambda x: x + 1.0).prefetch(2)
figures.pipeline(slow, next(iter(slow)))

# %% [markdown]
# ## Columns that are no numbers (10 min)
#
# The lines at the beginning could not know the species: a species is a word. A model wants one matrix of numbers, and what
# people collect is a table of numbers, words and gaps. Somebody has to say what becomes of each column. (The names here are
# those of `tf.feature_column`. TensorFlow has since [moved them into
# layers](https://www.tensorflow.org/guide/migrate/migrating_feature_columns), `Normalization`, `StringLookup`,
# `CategoryEncoding`; the work is the same.) Here is the table, as a dict of columns. The fourth penguin was seen, but not
# measured:

# %%
names = ("species", "island", *tasks.MEASURES)
measure = [lambda text: None if text == "NA" else float(text)] * 4
lines = tasks.read("penguins.csv", names, (str, str, *measure))
birds = {name: list(column) for name, column in zip(names, zip(*lines))}
{name: column[:4] for name, column in birds.items()}

# %% [markdown]
# A **feature column** knows one name in that dict, and how what stands there becomes numbers. It does so in two halves:
# `encode` is the edge, where words and gaps end; `call` is arithmetic on tensors. Most columns need no variables.


# %%
#| export feature_columns
"""Feature columns: a dict of numbers, words and gaps becomes one matrix."""

from levels.low_level import concat, one_hot


class FeatureColumn:
    """`width` numbers a row: `encode(features)` makes an array of a dict, `call(layer, x)` a tensor [batch, width] of that."""

    def build(self, layer):
        """Make what variables it needs, in the `DenseFeatures` that it belongs to."""

    def call(self, layer, x):
        return x

    def __repr__(self):
        return f"{self.name}: width {self.width}"


# %% [markdown]
# One question comes up with every column. Is it there, with a value in each row?


# %%
#| export feature_columns
def values_of(features, key):
    """The values under that name in a dict, as an array [batch]; a list may mix words, numbers and None."""
    if not hasattr(features, "keys"):
        raise TypeError(f"feature columns read a dict of columns, not a {type(features).__name__}")
    values, first = known("column", features, key), next(iter(features))
    values = np.asarray(values, object if isinstance(values, (list, tuple)) else None)
    if values.ndim != 1 or len(values) != len(features[first]):
        raise ValueError(f"column {key}: shape {values.shape}; expected one value a row, as many as in {first}")
    return values


# %%
try:
    values_of(birds, "specie")
except ValueError as error:
    print(error)

# %% [markdown]
# The simplest column takes numbers as they are, or on another scale. Where one is missing it does not guess: zero would be a
# penguin whose bill is flat.


# %%
#| export feature_columns
class NumericColumn(FeatureColumn):
    """One number a row. A missing one, None or NaN, becomes `default_value`; without that it is an error.

    `normalizer_fn` is given the whole column, its gaps filled, as float64 [batch]."""

    width = 1

    def __init__(self, key, *, default_value=None, normalizer_fn=None):
        self.name, self.default_value = key, np.nan if default_value is None else default_value
        self.normalizer_fn = normalizer_fn or (lambda values: values)

    def encode(self, features):
        """Numbers [batch, 1] from a dict. Raises TypeError for words, ValueError for NaN."""
        values = values_of(features, self.name)
        if values.dtype == object:
            values = np.array([np.nan if value is None else value for value in values])
        if values.dtype.kind not in "fiub":
            cure = "give words to categorical_column_with_vocabulary_list; a gap is None or NaN"
            raise TypeError(f"column {self.name} holds {values.dtype}, not numbers; {cure}")
        values = np.where(np.isnan(values), self.default_value, values.astype(np.float64))
        if (gaps := np.isnan(values)).any():
            cure = "give a default_value, or leave out such rows"
            raise ValueError(f"column {self.name}: row {gaps.argmax()} is NaN; {cure}")
        return np.reshape(self.normalizer_fn(values), (len(values), 1))


numeric_column = NumericColumn  # TensorFlow's name, as below

# %%
try:
    numeric_column("bill_depth_mm").encode(birds)
except ValueError as error:
    print(error)

# %% [markdown]
# We leave out the two penguins that nobody measured, and go on with 342. Here are three, as they are and counted from 17 mm, a
# middling bill: centred, as the race has taught. (The 17 is fixed. A mean over the batch would make a penguin depend on its
# company.)

# %%
measured = [row for row, mass in enumerate(birds["body_mass_g"]) if mass is not None]
birds = {name: np.array([column[row] for row in measured]) for name, column in birds.items()}
depth = numeric_column("bill_depth_mm", normalizer_fn=lambda values: values - 17.0)
print(birds["bill_depth_mm"][:3], depth.encode(birds)[:3, 0])

# %% [markdown]
# Now the words. A **categorical column** numbers the categories: a row's number is its *id*, and -1 where the row has none. It
# is no feature column yet, because an id is a name and not a size. Taken as a number it would say that Chinstraps stand half-way
# between Adelies and Gentoos.


# %%
#| export feature_columns
class CategoricalColumn:
    """A category a row: `ids(features)` makes int64 [batch] of a dict, each in range(num_buckets), or -1 for none."""

    def __init__(self, name, num_buckets, ids):
        self.name, self.num_buckets, self.ids = name, at_least(1, f"column {name}: buckets", num_buckets), ids

    def __repr__(self):
        return f"{self.name}: {self.num_buckets} categories"


def is_missing(value):
    """Whether a value stands for no category: None, NaN, "", "NA", or TensorFlow's -1."""
    return value is None or value != value or value in ("", "NA", -1)  # only NaN differs from itself


def row_by_row(key, num_buckets, table, unknown):
    """The categorical column of a table {value: id}. What is not in it gets -1 if missing, else `unknown(value, row)`."""

    def ids(features):
        rows = enumerate(values_of(features, key).tolist())
        found = [table[x] if x in table else -1 if is_missing(x) else unknown(x, row) for row, x in rows]
        return np.array(found, np.int64)

    return CategoricalColumn(key, num_buckets, ids)


# %%
sexes = row_by_row("sex", 2, {"female": 0, "male": 1}, lambda value, row: -1)
print(sexes.ids({"sex": ["male", "", "female"]}))

# %% [markdown]
# The first such column has a list of words, its *vocabulary*. For a word that is not in it there are three answers: no id, a
# default, or one of a few spare ids. Which of the spare ones, the word's **hash** decides: a number mixed from its letters.
# Python's own `hash` of a text will not do, as it [is another one in each
# process](https://docs.python.org/3/reference/datamodel.html#object.__hash__): a model saved today would not know its words
# tomorrow.


# %%
#| export feature_columns
import hashlib


def fingerprint(value):
    """Eight bytes of a text, a whole number or a tuple of these: the same on every machine (BLAKE2b, RFC 7693).

    The number 7 and the text "7" have the same."""
    if not isinstance(value, (str, int, np.integer, tuple)):
        raise TypeError(f"{value!r} is no category; expected text, a whole number, or a bucketized_column")
    # The parts of a tuple are eight bytes each, so ("ab", "c") is not ("a", "bc").
    data = b"".join(map(fingerprint, value)) if isinstance(value, tuple) else str(value).encode()
    return hashlib.blake2b(data, digest_size=8).digest()


def bucket_of(value, count):
    """Which of `count` buckets a category falls into."""
    return int.from_bytes(fingerprint(value), "little") % count


# %%
{word: bucket_of(word, 4) for word in ("Emperor", "King", "Macaroni")}

# %% [markdown]
# You will find the same numbers on your machine, and tomorrow. Now the column. It is told a list of words, and what to do with
# others; a value that can never be equal to a word, such as a number, is a mistake and not a stranger.


# %%
#| export feature_columns
def categorical_column_with_vocabulary_list(key, vocabulary_list, *, default_value=-1, num_oov_buckets=0):
    """A category's id is its place in the list. One that is not in it has `default_value`, or by its hash one of
    `num_oov_buckets` ids behind the list ("out of vocabulary"). A missing one has -1: see `is_missing`."""
    table = {} if isinstance(vocabulary_list, str) else {word: i for i, word in enumerate(vocabulary_list)}
    size, kinds = len(table), {isinstance(word, str) for word in table}
    if not table or size < len(vocabulary_list):
        raise ValueError(f"column {key}: {reprlib.repr(vocabulary_list)}; expected a list of words, each once")
    if not -1 <= default_value < size or num_oov_buckets < 0 or (num_oov_buckets and default_value != -1):
        given = f"default_value {default_value} and {num_oov_buckets} buckets"
        raise ValueError(f"column {key}: {given}; expected an id below {size}, or buckets, not both")

    def unknown(value, row):
        if isinstance(value, str) not in kinds:
            raise TypeError(f"column {key}: row {row} is {value!r}, which equals no word of {reprlib.repr([*table])}")
        return size + bucket_of(value, num_oov_buckets) if num_oov_buckets else default_value

    return row_by_row(key, size + num_oov_buckets, table, unknown)


# %%
species = categorical_column_with_vocabulary_list("species", ["Adelie", "Chinstrap", "Gentoo"])
print(species, species.ids({"species": ["Gentoo", "Adelie", "Gentoo"]}), sep="\n")

# %% [markdown]
# A Gentoo has id 2, because its word is the third in the list.
#
# Last, from ids to numbers that have a meaning: a number for each category, 1 for that of the row and 0 for the others.

# %% tags=["hide-input"]
checks.predict(
    "Our model knows three species, and meets an Emperor. What will its row hold?",
    choices=["nothing: it is an error", "a 1 for one of the three species", "three zeros", "three times 1/3"],
    answer="three zeros",
    because="Its id is -1, and that is none of the three. Numbers that say nothing about the species are all that is honest, "
    "and what TensorFlow does. Whoever would rather have an error has to look for -1 in the ids.",
)


# %%
#| export feature_columns
class IndicatorColumn(FeatureColumn):
    """A number for each category: 1 for that of the row, else 0. A row without a category has zeros."""

    def __init__(self, categorical_column):
        if not isinstance(categorical_column, CategoricalColumn):
            raise TypeError(f"expected a categorical column, got {reprlib.repr(categorical_column)}")
        self.name, self.encode = f"{categorical_column.name}_indicator", categorical_column.ids
        self.width = categorical_column.num_buckets

    def call(self, layer, ids):
        return one_hot(ids + 1, self.width + 1, layer.dtype)[:, 1:]  # the place of -1 is cut off


indicator_column = IndicatorColumn

# %% [markdown]
# A layer lays the columns side by side. Like any layer it works on tensors, and can be recorded and compiled; only its `encode`
# sees words.


# %%
#| export feature_columns
class DenseFeatures(Layer):
    """{name: values [batch]} -> [batch, width]: what the columns make of it, in the order given (TensorFlow sorts by name)."""

    def __init__(self, feature_columns, dtype="float32", **options):
        super().__init__(dtype=dtype, **options)
        self.columns, self.tables = list(feature_columns), {}  # tables: the variables of columns that have some
        if bare := [column for column in self.columns if not isinstance(column, FeatureColumn)]:
            raise TypeError(f"{reprlib.repr(bare[0])} is no feature column; try indicator_column or embedding_column")
        names = [column.name for column in self.columns]
        if not names or len(set(names)) < len(names):
            raise ValueError(f"DenseFeatures: the columns are {names}; expected one or more, each once")

    def encode(self, features):
        """A tensor for each column, from a dict: numbers [batch, 1] or ids [batch]."""
        arrays = [column.encode(features) for column in self.columns]
        return [constant(array, self.dtype if array.dtype.kind == "f" else None) for array in arrays]

    def __call__(self, features, training=None):
        """`features` is a dict, or the list that `encode` made of one: a compiled step takes only tensors."""
        return super().__call__(features if isinstance(features, (list, tuple)) else self.encode(features), training)

    def build(self, shapes):
        for column in self.columns:
            column.build(self)

    def call(self, encoded):
        return concat([column.call(self, x) for column, x in zip(self.columns, encoded, strict=True)], axis=1)


# %%
features = DenseFeatures([depth, indicator_column(species)])
features({"bill_depth_mm": [18.5, 13.0, 19.5, 20.0], "species": ["Adelie", "Gentoo", "Chinstrap", "Emperor"]}).numpy()

# %% [markdown]
# Four birds, four rows: the depth minus 17, then a number for each of the three species. The Emperor, in the last row, has a depth
# and three zeros.
#
# ### The surprise, explained
#
# A model of these four numbers is a line over the depth of the bill, at another height for each species. We train two models,
# one that is not told the species and one that is, until nothing moves any more. The step is the ordinary one. It takes the
# encoded columns, so it compiles.


# %%
from levels.low_level import function


def trained(features, data, batches, optimizer):
    """A linear model of the body mass: a layer on top of the feature columns, trained on a dict of columns."""
    dense, loss_of, mass = Dense(1), MeanSquaredError(), data["body_mass_g"][:, None]
    dense(features(data))  # makes the variables
    variables = features.trainable_variables + dense.trainable_variables

    @function
    def step(*rows):
        *encoded, target = rows
        with GradientTape() as tape:
            loss = loss_of(target, dense(features(encoded)))
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    step.over(*features.encode(data), mass, batches)
    return dense


# %% [markdown]
# For a linear model the best weights can also be computed, by least squares. Both ways give the same grams per mm:

# %%
everybody = np.tile(np.arange(342), (3000, 1))  # 3,000 steps, all penguins in each
masses = {}
for told, columns in {"not told": [depth], "told the species": [depth, indicator_column(species)]}.items():
    features = DenseFeatures(columns, dtype="float64")
    dense = trained(features, birds, everybody, SGD(0.1))
    x = np.c_[features(birds), np.ones(342)]
    best = np.linalg.lstsq(x, birds["body_mass_g"], rcond=None)[0][0]
    masses[told] = dense(features(birds)).numpy()[:, 0]
    print(f"{told:17} {dense.kernel.numpy()[0, 0]:7.1f} trained, {best:7.1f} by least squares")

# %%
from course.figures import penguin_figures

penguin_figures.one_line_or_three(birds["bill_depth_mm"], birds["body_mass_g"], birds["species"], *masses.values())

# %% [markdown]
# The sign has turned. 257 lies between the three slopes of the beginning: this model may lift the line for a species, not tilt
# it. (The lines of Adelies and Chinstraps lie on each other.) What the species does to the mass now stands in the species' own
# weights. For the depth of the bill is left what it does within a species: 1 mm more goes with about a quarter of a kilogram
# more. The weight of a column answers for all that the model was not told.
#
# What are the words worth where it counts, on penguins that the model has not seen? We split the table as `penguins_mass` does,
# and take all three measures. The score is **R²**, the share of the variance of the masses that a model explains: 1 is perfect,
# and who always says the mean gets 0.

# %% tags=["hide-input"]
checks.predict(
    "On the measures alone, telling the island helps. Will it still help a model that knows the species?",
    choices=["yes, about as much", "yes, but half as much", "hardly, or not at all"],
    answer="hardly, or not at all",
    because="Gentoos live on one of the three islands only, and Chinstraps on another. So the island says something about the "
    "species, and that is what made it useful. A model that knows the species learns hardly anything new.",
)

# %%
order = tasks.shuffled(342, seed=1)
test, train_set = ({name: column[rows] for name, column in birds.items()} for rows in (order[:72], order[72:]))


def scaled(key):
    """A numeric column on the scale of the training rows: their mean becomes 0, their standard deviation 1."""
    mean, deviation = train_set[key].mean(), train_set[key].std()
    return numeric_column(key, normalizer_fn=lambda values: (values - mean) / deviation)


measures = [scaled(key) for key in tasks.MEASURES[:3]]
island = categorical_column_with_vocabulary_list("island", ["Biscoe", "Dream", "Torgersen"])
words = [indicator_column(species), indicator_column(island)]

# %%
batches = tasks.batch_order(270, 10, 100, seed=1)
for told, columns in {"nothing": [], "island": words[1:], "species": words[:1], "both": words}.items():
    features = DenseFeatures([*measures, *columns], dtype="float64")
    dense = trained(features, train_set, batches, SGD(0.02))
    score = figures.r_squared(test["body_mass_g"][:, None], dense(features(test)).numpy())
    print(f"measures and {told:8} test R² {score:.3f}")

# %% [markdown]
# In this split, three zeros and ones explain two fifths of what the measures left open. The island adds nothing to them: a
# column is worth what it says beyond the others.

# %% [markdown]
# ## How good is it: metrics (5 min)
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
#| export metrics
"""Metrics: how good a model is, over all batches so far."""

import re

from levels.low_level import apply, reduce_sum


def snake_case(name):
    """Keras' names of things: BinaryAccuracy -> binary_accuracy."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def ratio(part, whole):
    """All numbers of one array, added up, over those of another; 0 where that is 0, as in Keras."""
    return part.sum() / whole.sum() if whole.sum() else 0.0


# %%
print(snake_case("BinaryAccuracy"), ratio(np.array([3.0]), np.array([4.0])), ratio(np.array([0.0]), np.array([0.0])))

# %% [markdown]
# Here is what metrics share. `update_state` asks `parts` what each row gives, makes `sums` of it, and has them `merged` with the
# state. `result` hands the state to the `formula`. A new metric writes `parts`, and of the other three what it does differently.
# (Both arguments are brought to one dtype first.)


# %%
#| export metrics
class Metric(Made, Module):
    """Sums over all rows, and a formula. Write `parts(y_true, y_pred)`, and `formula(count, *sums)` where it is no mean.

    The parts are tensors [batch, …]. Their rows are added up, each times its weight, and `count` is the sum of the weights.
    """

    def __init__(self, name=None):
        self.name = name or snake_case(type(self).__name__)
        self.state = None  # variables, made for the first batch

    check = Loss.check  # that the shapes are equal
    __repr__ = Loss.__repr__

    def update_state(self, y_true, y_pred, sample_weight=None):
        """Add a batch. Each row counts once, or as often as its `sample_weight` [batch] says."""
        y_pred = as_tensor(y_pred)
        y_pred = y_pred if y_pred.dtype.kind == "f" else cast(y_pred, "float32")
        y_true = as_tensor(y_true, y_pred)
        self.check(y_true, y_pred)
        if y_true.spec.shape == y_pred.spec.shape:  # else it holds the numbers of classes
            y_true = cast(y_true, y_pred.dtype)
        parts = self.parts(y_true, y_pred)
        weight = apply("spread", 1.0, parts[0], count=1.0)  # ones, as many as a compiled step's batch has rows
        if sample_weight is not None:
            weight = weighted(self, weight, cast(sample_weight, weight.dtype))
        new = self.sums(weight, *parts)
        if self.state is None:
            self.state = [Variable(np.zeros(x.spec.shape, x.dtype), trainable=False) for x in new]
        for variable, value in zip(self.state, self.merged(*new)):
            variable.assign(value)

    def sums(self, weight, *parts):
        """What a batch has to say: count, and the sum of each part."""
        return [reduce_sum(x, 0) for x in (weight, *(weight * part for part in parts))]

    def merged(self, *new):
        """The state, with what a new batch has to say."""
        return [old + x for old, x in zip(self.state, new)]

    def formula(self, count, total):
        return ratio(total, count)

    def result(self):
        """The metric over all batches since the last `reset_state`, a float. Before the first batch it is 0.0."""
        return float(self.formula(*(v.numpy().astype(np.float64) for v in self.state))) if self.state else 0.0

    def reset_state(self):
        """Forget all batches."""
        for variable in self.state or ():
            variable.assign(np.zeros(variable.shape, variable.dtype))

    def __call__(self, *args, **options):
        """Add a batch, and give the result."""
        self.update_state(*args, **options)
        return self.result()


# %% [markdown]
# One metric is then a few lines. What does accuracy add up? A 1 for each right answer and a 0 for each wrong one:


# %%
#| export metrics
class BinaryAccuracy(Metric):
    """The share of right answers. A prediction above the threshold says 1; any other, NaN included, says 0."""

    def __init__(self, threshold=0.5, **options):
        super().__init__(**options)
        if not isinstance(threshold, np.ndarray):  # several, for AUC
            from_zero(f"{self.name}: the threshold", threshold, 1.0)
        self.threshold = threshold

    def check(self, y_true, y_pred):
        super().check(y_true, y_pred)
        check_probabilities(self, "y_true", y_true)

    def said(self, y_pred):
        return cast(y_pred > self.threshold, y_pred.dtype)

    def parts(self, y_true, y_pred):
        return (cast(self.said(y_pred) == y_true, y_pred.dtype),)


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
# ## The two tasks on this level (6 min)
#
# ### Data

# %%
task = tasks.linear()
print("x", task.x.shape, " y", task.y.shape, " batches", task.batches.shape)

# %% [markdown]
# ### Model and training
#
# The model is a list of layers. The step is still ours, but it names no weight any more. Before it, the layers are built for the
# starting weights that all five levels share. The four marked lines are the four of every level: forward, loss, backward and
# update. The fifth mark, `model`, stands where the layers are named, in the tasks below.

# %%
#| export tasks
"""The two tasks as layers, a loss, an optimizer and a dataset."""

from levels.hardware.tasks import Fit, check_inputs, check_task


def train(layers, loss_of, x, y, weights, batches, learning_rate):
    """Layers in a row from given starting weights: one step for each batch."""
    sgd, data = SGD(learning_rate), Dataset.from_batches(x, y, batches)
    for layer, kernel, bias in zip(layers, weights[::2], weights[1::2]):
        layer.dtype = kernel.dtype
        layer.build(kernel.shape[:1])
        layer.set_weights([kernel, bias])
    variables = [variable for layer in layers for variable in layer.trainable_variables]

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

    arrays, batches = data.rows()
    losses = step.over(*arrays, batches).numpy()

    def predict(x):
        check_inputs(x, weights[0].dtype, len(weights[0]))
        return model(x).numpy()

    return Fit(losses, [v.numpy() for v in variables], predict)


# %% [markdown]
# What is left for the first task is one layer and one loss:


# %%
#| export tasks
def linear_regression(x, y, weights, batches, learning_rate=0.0005):
    """Mean squared error, stochastic gradient descent; see `Fit` and `check_task` for the shapes."""
    check_task(x, y, weights, batches, learning_rate, units=[1])
    return train([Dense(1)], MeanSquaredError(), x, y, weights, batches, learning_rate)  # model


# %%
from levels import hardware, low_level

fit = linear_regression(task.x, task.y, task.weights, task.batches, task.learning_rate)
below = low_level.tasks.linear_regression(task.x, task.y, task.weights, task.batches, task.learning_rate)
print("losses equal: ", bool((fit.losses == below.losses).all()))
print("weights equal:", all((p == q).all() for p, q in zip(fit.weights, below.weights)))
print(f"last loss     {fit.losses[-1]:.6f}, which is {float(fit.losses[-1]).hex()}")

# %% [markdown]
# All 8,000 losses are those of level 3, to the last bit. The last one is that of a single batch of ten points. On average the
# noise, of standard deviation 2, would leave 4.
#
# ### Result

# %%
figures.regression(task, fit)

# %%
penguins = tasks.penguins_mass()
figures.regression(penguins, linear_regression(*penguins[:2], *penguins[4:7]))

# %% [markdown]
# R² is 0.798, as in the first row of the table of feature columns: the same three measures, and the same split.
#
# ### The second task: a net
#
# Three layers instead of one, and another loss. The step is the same.


# %%
#| export tasks
def dnn_classifier(x, y, weights, batches, learning_rate=0.01):
    """features-4-8-1, relu, relu, sigmoid; binary cross-entropy, stochastic gradient descent; see `Fit`, `check_task`."""
    check_task(x, y, weights, batches, learning_rate, units=[4, 8, 1])
    layers = [Dense(4, "relu"), Dense(8, "relu"), Dense(1, "sigmoid")]  # model
    return train(layers, BinaryCrossentropy(), x, y, weights, batches, learning_rate)


# %%
rings = tasks.rings()
ring_fit = dnn_classifier(*rings[:2], *rings[4:7])
below = hardware.tasks.dnn_classifier(*rings[:2], *rings[4:7])  # level 1's program, by machine instructions
print("losses equal: ", bool((ring_fit.losses == below.losses).all()))
print("weights equal:", all((p == q).all() for p, q in zip(ring_fit.weights, below.weights)))
figures.classifier(rings, ring_fit)

# %% [markdown]
# After 24,000 steps with three layers the losses are those of level 1, where the net was a program of machine instructions. And the
# penguins: can their sex be told from what was measured?

# %%
sex = tasks.penguins_sex()
figures.confusion(sex, dnn_classifier(*sex[:2], *sex[4:7]))

# %% [markdown]
# Nine in ten, where the commoner answer alone would be right in about half of all cases.
#
# ## What this level cost (3 min)
#
# How many lines, how many launches, how many bytes? Op by op, as on level 3, and for the same thousand steps of the first task:

# %%
from functools import partial

from course import compare
from levels.kernels import counted
from levels.low_level import eager

short = task._replace(batches=task.batches[:1000])
trainers = {"3": low_level.tasks.linear_regression, "4": linear_regression}
print("level   lines   launches a step   bytes a step")
for level, train_it in trainers.items():
    functions = [train_it] if level == "3" else [train, train_it]
    with eager():
        launches, nbytes = (total / 1000 for total in counted(partial(train_it, short.x, short.y, *short[4:7])))
    print(f"{level:5} {compare.lines(*functions):7} {launches:17.0f} {nbytes:14,.0f}")

# %% tags=["nbval-ignore-output"]
long = task._replace(batches=np.tile(task.batches, (25, 1)))  # 200,000 steps, so that what is done once cannot be seen
print("µs a step     eager   compiled")
for level, train_it in trainers.items():
    with eager():
        op_by_op = compare.microseconds(train_it, task)
    print(f"{level}       {op_by_op:11.3g} {compare.microseconds(train_it, long, steps=200_000, repeats=3):10.3g}")

# %% [markdown]
# Ten lines more, but most of them are `train`, which serves both tasks. The net takes only four of its own.
#
# One launch more than on level 3: the optimizer counts its steps. Op by op, calls of layers, loss and optimizer come on top. They
# are few beside seventeen launches, each with its way through the door, and on a busy machine either level may come out ahead.
# Compiled, the layers are gone: only what they did passes the door, and the two programs are the same but for that counter.
#
# Four levels stand now. (The picture divides a run of 8,000 steps, what is done once included, and so the compiled steps look
# longer than in the table.) **Move the level** (mouse, or Tab and the arrow keys), and watch the four parts of a step: what
# grows shorter, and what stays?

# %% tags=["nbval-ignore-output"]
from course.figures import great
from levels import kernels

on_all = [level.tasks.linear_regression for level in (hardware, kernels, low_level)] + [linear_regression]
widgets.explore(
    partial(great.depth, compare.measure(task, *on_all, last=1000)),
    level=[1, 2, 3, 4],
    text="One of four levels at a time: its code for the line, its time among those of all, and its losses.",
)

# %% [markdown]
# The loop, then the launches, then the gradients, then the names of the weights: each level takes something out of our hands.
# The losses stay where they are.
#
# ### The level below | here

# %%
compare.measure(task, low_level.tasks.linear_regression, linear_regression, last=1000)

# %%
compare.measure(rings, low_level.tasks.dnn_classifier, dnn_classifier, last=50, repeats=1)

# %% [markdown]
# On level 3 the two tasks differ in every band. Here they differ in one, `model`: its layers and its loss. All the rest is
# `train`, and it is the same for both.
#
# ## More of the same kind (optional)
#
# ### More layers
#
# Where weights start, first. [He et al., 2015](https://arxiv.org/abs/1502.01852) propose the variance 2 / inputs for layers
# with relu, which lets half of the signal through. To draw a normal number within two standard deviations, draw a share between
# 2.3 % and 97.7 %, and look up which number has that share below it.

# %%
#| export layers
import statistics

from levels.low_level import tanh

NORMAL = statistics.NormalDist()
SPREAD = 0.87962566103423978  # the standard deviation of a normal number that is cut off at ±2


def truncated_normal(shape, stddev=0.05):
    """Normal with mean 0, cut off at two `stddev`."""
    low, high = NORMAL.cdf(-2.0), NORMAL.cdf(2.0)
    return [stddev * NORMAL.inv_cdf(RANDOM.uniform(low, high)) for _ in range(math.prod(shape))]


INITIALIZERS.update(
    ones=lambda shape: [1.0] * math.prod(shape),
    random_uniform=lambda shape: [RANDOM.uniform(-0.05, 0.05) for _ in range(math.prod(shape))],
    truncated_normal=truncated_normal,
    glorot_normal=lambda shape: truncated_normal(shape, math.sqrt(2.0 / sum(shape[-2:])) / SPREAD),
    he_normal=lambda shape: truncated_normal(shape, math.sqrt(2.0 / shape[-2]) / SPREAD),
)
ACTIVATIONS.update(tanh=tanh, softmax=nn.softmax)

# %%
for name in ("glorot_uniform", "glorot_normal", "he_normal", "truncated_normal"):
    sample = np.array(INITIALIZERS[name]((100, 100)))
    print(f"{name:17} standard deviation {sample.std():.3f}, largest {abs(sample).max():.3f}")


# %% [markdown]
# Cut off, 0.05 has a standard deviation of 0.044; Glorot's and He's allow for that.
#
# A penalty for large weights: a loss that looks at a variable. Give one to a layer as its `kernel_regularizer`.


# %%
#| export layers


def absolute(x):
    """|x|, whose slope at 0 is 0; |NaN| is NaN, which relu(x) + relu(-x) would hide."""
    return x * (cast(x > 0.0, x.dtype) - cast(x < 0.0, x.dtype))


class L1(Made):
    """l1·Σ|w|"""

    def __init__(self, l1=0.01):
        self.l1 = from_zero("L1: l1", l1)

    def __call__(self, w):
        return self.l1 * reduce_sum(absolute(w))


class L2(Made):
    """l2·Σw²"""

    def __init__(self, l2=0.01):
        self.l2 = from_zero("L2: l2", l2)

    def __call__(self, w):
        return self.l2 * reduce_sum(w * w)


REGULARIZERS.update(l1=L1(), l2=L2())

# %%
heavy = Dense(1, kernel_initializer="ones", kernel_regularizer=L2(0.1))
heavy(np.ones((1, 3), "f4"))
heavy.losses

# %% [markdown]
# 0.1 · (1 + 1 + 1) is to be added to the loss. (It is 0.3 as float32 has it.) Most other layers need no variable, and are a line
# or two:


# %%
#| export layers
class Activation(Layer):
    """A function by name, or one of your own, as a layer."""

    def __init__(self, activation, **options):
        super().__init__(**options)
        self.activation = known("activation", ACTIVATIONS, activation)

    def call(self, x):
        return self.activation(x)


class Flatten(Layer):
    """x[batch, …] -> [batch, all the rest]"""

    def call(self, x):
        return reshape(x, (-1, math.prod(x.spec.shape[1:])))


class Concatenate(Layer):
    """A list of inputs -> one, joined along an axis."""

    def __init__(self, axis=-1, **options):
        super().__init__(**options)
        self.axis = axis

    def call(self, x):
        if not isinstance(x, list):
            raise TypeError(f"{self.name}: expected a list of inputs, got {x.spec}")
        return concat(x, self.axis)


# %%
block = np.arange(8.0).reshape(2, 2, 2)
print(Flatten()(block).shape, Concatenate()([block, block]).shape, Activation("relu")([-1.0, 1.0]).numpy())

# %% [markdown]
# **Dropout** ([Srivastava et al., 2014](https://jmlr.org/papers/v15/srivastava14a.html)) needs a variable, the state of its random
# numbers, so that a compiled step draws new ones each time.

# %%
#| export layers
from levels.low_level import where


class Dropout(Layer):
    """In training each number is 0 with probability `rate`, and the others are divided by 1 - rate."""

    def __init__(self, rate, seed=None, **options):
        super().__init__(**options)
        seed = RANDOM.getrandbits(62) if seed is None else seed
        self.rate = from_zero("Dropout: rate", rate, 1.0)
        self.state = Variable(np.array([seed, 0]), trainable=False)  # key and counter: see level 2

    def call(self, x):
        if not TRAINING[-1]:
            return x
        drawn = apply("random_uniform", self.state, shape=x.shape, dtype=x.dtype)
        self.state.assign(self.state + np.array([0, math.prod(x.shape)]))
        return where(drawn < self.rate, 0.0, x / (1.0 - self.rate))


# %%
dropout, ones = Dropout(0.5, seed=1), np.ones((2, 4), "f4")
print(dropout(ones, training=True).numpy(), dropout(ones, training=True).numpy(), dropout(ones).numpy(), sep="\n")


# %% [markdown]
# In training some numbers are 0 and the others are doubled, so that the mean stays about 1. The second call drops others.
# Outside of training nothing happens.
#
# **Batch normalization** ([Ioffe and Szegedy, 2015](https://arxiv.org/abs/1502.03167)) standardises inside the net. In
# training it takes mean and variance from the batch, and keeps a fading mean of both for later. So it has two pairs of
# variables: one pair is trained, the other only written down.


# %%
#| export layers
class BatchNormalization(Layer):
    """gamma·(x - mean) / √(variance + epsilon) + beta, over all axes but the last."""

    def __init__(self, momentum=0.99, epsilon=1e-3, **options):
        super().__init__(**options)
        self.momentum = from_zero("BatchNormalization: momentum", momentum, 1.0)
        self.epsilon = positive("BatchNormalization: epsilon", epsilon)

    def build(self, shape):
        self.width = shape[-1]
        self.gamma, self.beta = (self.add_weight(shape[-1:], name) for name in ("ones", "zeros"))
        self.moving = [self.add_weight(shape[-1:], name, trainable=False) for name in ("zeros", "ones")]

    def call(self, x):
        mean, variance = self.moving
        if TRAINING[-1]:
            axes = tuple(range(len(x.spec.shape) - 1))
            mean = reduce_mean(x, axes)
            variance = reduce_mean((x - mean) ** 2, axes)
            for moving, now in zip(self.moving, (mean, variance)):
                moving.assign(self.momentum * moving + (1.0 - self.momentum) * now)
        return self.gamma * ((x - mean) / sqrt(variance + self.epsilon)) + self.beta


# %%
normal = BatchNormalization()
measured = np.array([[170.0, 3.1], [180.0, 3.9], [205.0, 4.4]], "f4")
print(normal(measured, training=True).numpy().round(3))
print(*(v.numpy().round(3) for v in normal.moving))

# %% [markdown]
# The columns of the batch have mean 0 now. The moving means have gone one hundredth of the way from 0 to 185 and 3.8, the moving
# variances as far from 1.
#
# The last layer looks up: for each whole number a row of a table. The rows are trained like any weights.


# %%
#| export layers
class Embedding(Layer):
    """ids [batch, …], whole numbers below input_dim -> [batch, …, output_dim], rows of a table that is trained."""

    def __init__(self, input_dim, output_dim, embeddings_initializer="random_uniform", **options):
        super().__init__(**options)
        self.sizes = at_least(1, "Embedding: input_dim", input_dim), at_least(1, "Embedding: output_dim", output_dim)
        self.initializer = embeddings_initializer

    def build(self, shape):
        self.embeddings = self.add_weight(self.sizes, self.initializer)

    def call(self, x):
        return gather(self.embeddings, x)


# %% [markdown]
# Four numbers in, four rows of two out:

# %%
words = Embedding(5, 2)
print(words(np.array([[0, 4], [4, 4]])).shape, words)

# %% [markdown]
# ### More losses
#
# The absolute error counts a large mistake less than its square does. And for more than two classes there is one probability for
# each. The truth is then one of two things. It may be a row that says how much of each class it is:


# %%
#| export losses


class MeanAbsoluteError(Loss):
    """mean(|y_pred - y_true|)"""

    def call(self, y_true, y_pred):
        return absolute(y_pred - y_true)


class CategoricalCrossentropy(Crossentropy):
    """The mean of -Σ y_true·log p over samples, for y_true and p [batch, classes], p scaled to a sum of 1.

    `from_logits=True` takes the z of p = softmax(z) in the place of p.
    """

    def call(self, y_true, y_pred):
        if self.from_logits:
            return -reduce_sum(y_true * nn.log_softmax(y_pred), -1)
        return -reduce_sum(y_true * log(within(y_pred / reduce_sum(y_pred, -1, keepdims=True))), -1)


# %%
chances = [[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]]
print(f"{float(CategoricalCrossentropy()([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], chances)):.4f}")

# %% [markdown]
# Or it is the number of the class. That is the same loss of a one-hot row, and a check of its own: numbers that are no classes.


# %%
#| export losses
def check_classes(loss, y_true, y_pred):
    """Raise ValueError unless y_true [batch] or [batch, 1] holds numbers of classes of y_pred [batch, classes]."""
    classes, samples = y_pred.spec.shape[-1], y_pred.spec.shape[:-1]
    if y_true.spec.dtype.kind != "i" or y_true.spec.shape not in (samples, (*samples, 1)):
        given = f"y_true is {y_true.spec} and y_pred {y_pred.spec}"
        raise ValueError(f"{loss}: {given}; expected whole numbers {samples}")
    if not isinstance(y_true, Symbol) and ((y_true.numpy() < 0) | (y_true.numpy() >= classes)).any():
        wrong = max(y_true.numpy().ravel(), key=lambda k: abs(k - (classes - 1) / 2))
        raise ValueError(f"{loss}: y_true holds {wrong}; there are {classes} classes, 0 to {classes - 1}")


class SparseCategoricalCrossentropy(CategoricalCrossentropy):
    """The same for y_true [batch] or [batch, 1], the numbers of the classes."""

    def check(self, y_true, y_pred):
        check_classes(self, y_true, y_pred)
        if not self.from_logits:
            check_probabilities(self, "y_pred", y_pred)

    def call(self, y_true, y_pred):
        *samples, classes = y_pred.spec.shape
        return super().call(one_hot(reshape(y_true, samples), classes, y_pred.dtype), y_pred)


# %%
classes = np.array([0, 1])
print(f"{float(SparseCategoricalCrossentropy()(classes, chances)):.4f}", -np.log([0.7, 0.1]).mean().round(4))

# %% [markdown]
# The same truth said in two ways, and the same loss: the mean of -log 0.7 and -log 0.1. Losses have names too:

# %%
#| export losses
LOSSES = {
    "mse": MeanSquaredError,
    "mean_squared_error": MeanSquaredError,
    "mae": MeanAbsoluteError,
    "mean_absolute_error": MeanAbsoluteError,
    "binary_crossentropy": BinaryCrossentropy,
    "categorical_crossentropy": CategoricalCrossentropy,
    "sparse_categorical_crossentropy": SparseCategoricalCrossentropy,
}

# %% [markdown]
# Level 5 looks these names up when it compiles a model.
#
# ### More optimizers
#
# RMSprop ([Hinton, 2012](https://www.cs.toronto.edu/~tijmen/csc321/slides/lecture_slides_lec6.pdf)) is Adam without the mean
# of the gradient and without the correction. AdamW ([Loshchilov and Hutter, 2019](https://arxiv.org/abs/1711.05101)) also lets
# the weights shrink by themselves.


# %%
#| export optimizers
class RMSprop(Optimizer):
    """v ← rho·v + (1 - rho)·dw²; w ← w - rate·dw / √(v + epsilon)"""

    memory = ("v",)

    def __init__(self, learning_rate=0.001, rho=0.9, epsilon=1e-7, **options):
        super().__init__(learning_rate, **options)
        self.rho, self.epsilon = from_zero("RMSprop: rho", rho, 1.0), positive("RMSprop: epsilon", epsilon)

    def update(self, rate, dw, w, v):
        v = self.rho * v + (1.0 - self.rho) * (dw * dw)
        return w - rate * dw / sqrt(v + self.epsilon), v


class AdamW(Adam):
    """Adam on w - rate·weight_decay·w"""

    def __init__(self, learning_rate=0.001, weight_decay=0.004, **options):
        super().__init__(learning_rate, **options)
        self.weight_decay = from_zero("AdamW: weight_decay", weight_decay)

    def update(self, rate, dw, w, m, v):
        return super().update(rate, dw, w - rate * self.weight_decay * w, m, v)


# %% [markdown]
# A **schedule** is a learning rate that depends on the step. Any function of the step will do; these two have names.


# %%
#| export optimizers
class ExponentialDecay(Made):
    """initial_learning_rate · decay_rate ** (step / decay_steps)"""

    def __init__(self, initial_learning_rate, decay_steps, decay_rate):
        self.initial_learning_rate = positive("ExponentialDecay: initial_learning_rate", initial_learning_rate)
        self.decay_steps = positive("ExponentialDecay: decay_steps", decay_steps)
        self.decay_rate = positive("ExponentialDecay: decay_rate", decay_rate)

    def __call__(self, step):
        return self.initial_learning_rate * exp(step * (math.log(self.decay_rate) / self.decay_steps))


class PiecewiseConstantDecay(Made):
    """values[0] up to and including step boundaries[0], then values[1], and so on."""

    def __init__(self, boundaries, values):
        if len(values) != len(boundaries) + 1:
            raise ValueError(f"{len(boundaries)} boundaries and {len(values)} values; expected one more value")
        self.boundaries, self.values = list(boundaries), list(values)

    def __call__(self, step):
        rate = step * 0.0 + self.values[-1]
        for boundary, value in zip(self.boundaries[::-1], self.values[-2::-1]):
            rate = where(step <= boundary, value, rate)
        return rate


# %%
halves, stairs = ExponentialDecay(0.1, 100, 0.5), PiecewiseConstantDecay([100, 200], [0.1, 0.01, 0.001])
for step in map(constant, (0.0, 100.0, 200.0, 300.0)):
    print(f"step {float(step):3.0f}: {float(halves(step)):.4f} {float(stairs(step)):.4f}")

# %% [markdown]
# The first rate halves every hundred steps, the second goes down in stairs.
#
# A gradient that is far too long can undo an hour of training in one step. **Clipping** shortens it, and keeps its direction:
# each variable's alone (`clipnorm`) or all of them together (`global_clipnorm`)
# ([Pascanu et al., 2013](https://proceedings.mlr.press/v28/pascanu13.html)).


# %%
#| export optimizers
import operator


def shortened(gradients, norm):
    """These gradients times one factor: 1, or what brings the root of the sum of their squares down to `norm`."""
    squares = [reduce_sum(dw * dw) for dw in gradients]
    factor = norm / maximum(sqrt(functools.reduce(operator.add, squares)), norm)
    return [dw * factor for dw in gradients]


# %%
long = [constant([3.0]), constant([4.0])]
print(shortened(long, 1.0), shortened(long, 10.0))

# %% [markdown]
# Together they have length 5. Brought down to 1 each is a fifth of what it was; a limit of 10 changes nothing.
#
# ### More of the pipeline
#
# The order of the stages says what is meant. `shuffle` before `batch` mixes rows. After it, batches stay as they are and change
# places:

# %%
numbers = Dataset.from_tensor_slices(np.arange(10))
for data in (numbers.shuffle(10, seed=3).batch(5).repeat(2), numbers.batch(5).shuffle(2, seed=3).repeat(2)):
    print([batch.numpy().tolist() for batch in data])

# %% [markdown]
# A `repeat` without a count never ends, so somebody has to stop:

# %%
print(*map(int, numbers.repeat().map(lambda n: n * n).take(12)))
try:
    list(numbers.repeat())
except ValueError as error:
    print(error)

# %% [markdown]
# A line of a file is a dict of its columns. With a `label_name` it is a pair, of the other columns and the label. A mistake in the
# file is found by line and column:

# %%
table = Dataset.from_csv(tasks.DATA / "penguins.csv", "body_mass_g", na_value="NA")
columns, mass = next(iter(table.skip(3).batch(3)))
print({name: np.asarray(values).tolist() for name, values in columns.items()}, mass.numpy())

# %%
from pathlib import Path
from tempfile import TemporaryDirectory

with TemporaryDirectory() as folder:
    Path(folder, "mass.csv").write_text("depth,mass\n18.7,3750\n17.4,38OO\n")
    try:
        Dataset.from_csv(Path(folder, "mass.csv"))
    except ValueError as error:
        print(str(error).removeprefix(folder)[1:])

# %% [markdown]
# A generator serves for all that is made or found one after the other. Hand over the function that makes it, without calling it, so
# that each pass can call it anew. And `zip` goes through several datasets at once:


# %%
def countdown():
    yield from (3.0, 2.0, 1.0)


for element in Dataset.zip(Dataset.from_generator(countdown), numbers.repeat()):
    print(*map(float, element))

# %% [markdown]
# PyTorch has two things for this, a dataset and a `DataLoader`. Its dataset is whatever has a length and gives the element of a
# number. The second is a few lines around the first:


# %%
#| export data
def DataLoader(dataset, batch_size=1, shuffle=False, drop_last=False):
    """As in PyTorch: the batches of a dataset, or of arrays; all rows are shuffled anew in every pass, if asked for."""
    if isinstance(dataset, (Operators, np.ndarray, list, tuple, dict)):
        dataset = Dataset.from_tensor_slices(dataset)
    data = dataset
    if not isinstance(dataset, Pipeline):
        data = Dataset.from_generator(lambda: (dataset[row] for row in range(len(dataset))))
    return (data.shuffle(len(dataset)) if shuffle else data).batch(batch_size, drop_last)


# %%
loader = DataLoader((rings.x, rings.y), batch_size=64, shuffle=True)
print(loader, "gives", len(loader), "batches,", sum(len(x) for x, y in loader), "rows")

# %% [markdown]
# ### More columns
#
# What becomes of gaps and of strangers, in one table. An id of -1 is a row of zeros, in an indicator and in an embedding.
#
# | column | missing | unknown |
# |---|---|---|
# | `numeric_column` | None, NaN: an error, or `default_value` | words: an error |
# | `bucketized_column` | as its numeric column | |
# | `…_with_vocabulary_list` | None, NaN, "", "NA", -1: id -1 | `default_value` (-1), or one of `num_oov_buckets` |
# | `…_with_identity` | the same | an error, or `default_value` |
# | `…_with_hash_bucket` | the same | no text, and no whole number, is unknown |
# | `crossed_column` | -1 where one of its keys is missing | as its keys |
#
# A number need not act in a straight line. Cut into ranges, each range has a weight of its own. Such a column is both: a
# category, and an indicator of it.


# %%
#| export feature_columns
class BucketizedColumn(CategoricalColumn, IndicatorColumn):
    """Ranges of a numeric column as categories: id i is that of boundaries[i - 1] <= x < boundaries[i], ascending."""

    def __init__(self, source_column, boundaries):
        if not isinstance(source_column, NumericColumn):
            raise TypeError(f"bucketized_column: expected a numeric column, got {reprlib.repr(source_column)}")
        steps = np.asarray(boundaries, np.float64)
        if steps.ndim != 1 or not steps.size or not np.isfinite(steps).all() or not (np.diff(steps) > 0).all():
            raise ValueError(f"column {source_column.name}: boundaries {boundaries!r}; expected ascending numbers")

        def ids(features):
            return np.searchsorted(steps, source_column.encode(features)[:, 0], side="right").astype(np.int64)

        super().__init__(f"{source_column.name}_bucketized", len(steps) + 1, ids)
        self.width, self.encode = self.num_buckets, ids


bucketized_column = BucketizedColumn

# %%
deep = bucketized_column(numeric_column("bill_depth_mm"), [15, 18])
print(DenseFeatures([deep])({"bill_depth_mm": [13.1, 15.0, 17.9, 18.0]}).numpy())

# %% [markdown]
# Two more ways to an id. Categories that are whole numbers from 0 on are ids already. And where nobody has a list of all the
# words, their hash does: two words may then share a bucket, and with enough buckets they rarely do.


# %%
#| export feature_columns
def categorical_column_with_identity(key, num_buckets, *, default_value=None):
    """The value is the id, in range(num_buckets). Any other has `default_value`; without that it is an error."""
    if default_value is not None and default_value not in range(num_buckets):
        raise ValueError(f"column {key}: default_value is {default_value!r}; expected an id below {num_buckets}")

    def unknown(value, row):
        if default_value is None:
            raise ValueError(f"column {key}: row {row} is {value!r}; expected a whole number below {num_buckets}")
        return default_value

    return row_by_row(key, num_buckets, {i: i for i in range(num_buckets)}, unknown)


def categorical_column_with_hash_bucket(key, hash_bucket_size):
    """The id is the bucket of the text's hash, or of the whole number's, the same on every machine."""
    return row_by_row(key, hash_bucket_size, {}, lambda value, row: bucket_of(value, hash_bucket_size))


# %%
print(categorical_column_with_identity("half", 2, default_value=0).ids({"half": [1, 0, 7, None]}))
print(categorical_column_with_hash_bucket("island", 10).ids({"island": ["Biscoe", "Dream", "Torgersen", ""]}))

# %% [markdown]
# A linear model adds what the island says to what the species says. A **cross** has a category for each pair, so a pair can
# mean something of its own. Pairs are many, so they are hashed.


# %%
#| export feature_columns
def crossed_column(keys, hash_bucket_size):
    """A category for each combination of the keys, names or categorical columns, by hash. -1 where one of them is missing."""
    if isinstance(keys, str) or len(keys) < 2:
        raise ValueError(f"crossed_column: keys are {reprlib.repr(keys)}; expected two or more")

    def ids(features):
        parts = [values_of(features, key) if isinstance(key, str) else key.ids(features) for key in keys]
        rows = zip(*(part.tolist() for part in parts))
        found = [-1 if any(map(is_missing, row)) else bucket_of(row, hash_bucket_size) for row in rows]
        return np.array(found, np.int64)

    return CategoricalColumn("_X_".join(getattr(key, "name", key) for key in keys), hash_bucket_size, ids)


# %%
cross = crossed_column(["island", deep], 20)
print(cross, cross.ids({"island": ["Biscoe", "Biscoe", "Dream", None], "bill_depth_mm": [14, 19, 14, 19]}), sep="\n")

# %% [markdown]
# An indicator of 10,000 words is 10,000 columns, nearly all zero. An **embedding** gives each word a few numbers instead, a
# row of a table, and learns them. It is the product of the indicator and the table, computed by looking the row up.


# %%
#| export feature_columns
class EmbeddingColumn(IndicatorColumn):
    """`dimension` numbers for each category, learned: a row of a table. A row without a category has zeros."""

    def __init__(self, categorical_column, dimension, *, initializer="glorot_uniform"):
        super().__init__(categorical_column)
        self.name, self.initializer = f"{categorical_column.name}_embedding", initializer
        self.rows, self.width = self.width, at_least(1, "embedding_column: dimension", dimension)

    def build(self, layer):
        layer.tables[self.name] = layer.add_weight((self.rows, self.width), self.initializer)

    def call(self, layer, ids):
        zeros = np.zeros((1, self.width), layer.dtype)  # the row for -1
        return gather(concat([zeros, layer.tables[self.name]]), ids + 1)


embedding_column = EmbeddingColumn

# %% [markdown]
# One number for each species, learned beside the weight of the bill's depth. Times its own weight it is what the species adds
# to the mass:

# %%
RANDOM.seed(0)
features = DenseFeatures([depth, embedding_column(species, 1)], dtype="float64")
dense = trained(features, birds | {"body_mass_g": birds["body_mass_g"] / 1000}, everybody, SGD(0.1))
added = features.tables["species_embedding"].numpy()[:, 0] * dense.kernel.numpy()[1, 0]
{word: f"{more:+.2f} kg" for word, more in zip(("Adelie", "Chinstrap", "Gentoo"), added - added[0])}

# %% [markdown]
# ### More metrics
#
# The same pattern again. `Mean` adds up what it is given. And every loss can be a metric: its mean over all samples, however
# they came in batches.


# %%
#| export metrics
class Mean(Metric):
    """The mean of all values so far, of tensors [batch, …] or single numbers."""

    def update_state(self, values, sample_weight=None):
        values = as_tensor(values)
        values = values if values.spec.shape else reshape(values, (1,))
        super().update_state(values, values, sample_weight)

    def parts(self, values, _):
        return (values,)


class MeanLoss(Metric):
    """The mean of a loss over all samples so far."""

    def __init__(self, loss, name=None):
        super().__init__(name or snake_case(type(loss).__name__))
        self.loss, self.check = loss, loss.check

    def parts(self, y_true, y_pred):
        return (self.loss.call(y_true, y_pred),)


# %%
mean, squared = Mean(), MeanLoss(MeanSquaredError())
print(mean([1.0, 2.0]), mean(6.0), squared([[1.0], [2.0]], [[1.0], [4.0]]))

# %% [markdown]
# With more than two classes, the largest of a row's numbers is the answer that counts.


# %%
#| export metrics
from levels.low_level import arg_max


class CategoricalAccuracy(Metric):
    """The share of rows whose largest number stands at the same place in y_true and y_pred [batch, classes]."""

    def parts(self, y_true, y_pred):
        return (cast(arg_max(y_true, -1) == arg_max(y_pred, -1), y_pred.dtype),)


class SparseCategoricalAccuracy(Metric):
    """The same, for y_true [batch] or [batch, 1], the numbers of the classes."""

    check = check_classes

    def parts(self, y_true, y_pred):
        return (cast(reshape(y_true, y_pred.spec.shape[:-1]) == arg_max(y_pred, -1), y_pred.dtype),)


# %%
print(SparseCategoricalAccuracy()(classes, chances))

# %% [markdown]
# The first row is called class 0, which is right, the second class 2, which is not.
#
# With two classes there are two kinds of mistake, seeing what is not there and missing what is, and each has a metric of its own:
# **precision** is the share of right ones among what was called 1, **recall** the share of those called 1 among what is 1.


# %%
#| export metrics
class Precision(BinaryAccuracy):
    """How much of what was called 1 is 1. It is 0 while nothing was called 1, as in Keras."""

    def __init__(self, thresholds=0.5, **options):
        super().__init__(thresholds, **options)

    def parts(self, y_true, y_pred):
        return self.said(y_pred), self.said(y_pred) * y_true

    def formula(self, count, called, right):
        return ratio(right, called)


class Recall(Precision):
    """How much of what is 1 was called 1."""

    def parts(self, y_true, y_pred):
        return y_true, self.said(y_pred) * y_true


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
#| export metrics


class AUC(BinaryAccuracy):
    """The area under the ROC curve, for probabilities [batch] or [batch, 1]: `num_thresholds` points, and straight lines.

    A probability outside of [0, 1] makes `result` raise ValueError.
    """

    def __init__(self, num_thresholds=200, **options):
        last = at_least(2, "AUC: num_thresholds", num_thresholds) - 1
        inner = np.arange(1, last) / last
        super().__init__(np.array([-1e-7, *inner, 1.0 + 1e-7]), **options)

    def check(self, y_true, y_pred):
        super().check(y_true, y_pred)
        if y_pred.spec.shape[1:] not in ((), (1,)):
            raise ValueError(f"AUC: y_pred is {y_pred.spec}; expected one column")

    def parts(self, y_true, y_pred):
        y_true, y_pred = (reshape(y, y.spec.shape[:1] + (1,)) for y in (y_true, y_pred))
        called = cast(y_pred > self.threshold.astype(y_pred.dtype), y_pred.dtype)  # [batch, thresholds]
        return y_true, called, 1.0 - cast(y_pred >= 0.0, y_pred.dtype) * cast(y_pred <= 1.0, y_pred.dtype)

    def sums(self, weight, true, called, outside):
        kinds = concat([weight * true, weight * (1.0 - true)], 1)  # [batch, 2]
        return apply("matmul", kinds, called, transpose_x=True), reduce_sum(outside, 0)

    def formula(self, by_threshold, outside):
        if outside.any():
            raise ValueError("AUC: y_pred has numbers that are no probabilities, from 0 to 1")
        recall, alarms = by_threshold / np.maximum(by_threshold[:, :1], 1e-30)  # all are called at the first threshold
        return (-np.diff(alarms) * (recall[1:] + recall[:-1])).sum() / 2.0


# %%
print(f"AUC {AUC()(truth, said):.3f}")

# %% [markdown]
# **R²** is the share of the variance that a model explains: 1 is perfect, 0 is what the mean of all truths would reach. A
# variance could be made of two sums, Σy² and Σy, but for numbers far from 0 their difference has few digits left. So here
# each batch brings its own mean and its own spread around it, and [Chan, Golub and LeVeque,
# 1983](https://doi.org/10.1080/00031305.1983.10483115) tell how two of those become one.


# %%
#| export metrics
class R2Score(Metric):
    """1 - Σ(y_true - y_pred)² / Σ(y_true - mean)², the mean over the columns; 0 for a column of equal truths."""

    def parts(self, y_true, y_pred):
        return y_true, (y_true - y_pred) ** 2

    def sums(self, weight, y, squares):
        count = reduce_sum(weight, 0)
        mean = reduce_sum(weight * y, 0) / maximum(count, 1e-30)
        return count, mean, reduce_sum(weight * (y - mean) ** 2, 0), reduce_sum(weight * squares, 0)

    def merged(self, count, mean, spread, squares):
        before, old_mean, old_spread, old_squares = self.state
        share, apart = count / maximum(before + count, 1e-30), mean - old_mean
        spread = old_spread + spread + apart * apart * before * share
        return before + count, old_mean + apart * share, spread, old_squares + squares

    def formula(self, count, mean, spread, squares):
        return np.where(spread > 0.0, 1.0 - squares / np.where(spread > 0.0, spread, 1.0), 0.0).mean()


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
#| export metrics
class AccuracyByShape(Metric):
    """Binary accuracy for one column, categorical accuracy for equal shapes, else sparse categorical accuracy."""

    def check(self, y_true, y_pred):
        shape = y_pred.spec.shape
        several = CategoricalAccuracy if y_true.spec.shape == shape else SparseCategoricalAccuracy
        fitting = BinaryAccuracy() if shape[1:] in ((), (1,)) else several()
        fitting.check(y_true, y_pred)
        self.parts = fitting.parts


KINDS = BinaryAccuracy, CategoricalAccuracy, SparseCategoricalAccuracy, Mean, Precision, Recall, AUC, R2Score
METRICS = {name: functools.partial(MeanLoss, kind()) for name, kind in LOSSES.items()}
METRICS.update(
    {snake_case(kind.__name__): kind for kind in KINDS}, accuracy=functools.partial(AccuracyByShape, "accuracy")
)


def __getattr__(name):
    """`metrics.MeanSquaredError(…)` is the metric of the loss of that name."""
    for kind in LOSSES.values():
        if kind.__name__ == name:
            return lambda *args, **options: MeanLoss(kind(*args, **options))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


# %%
print(*METRICS, sep=", ")

# %% [markdown]
# ### The same in TensorFlow and PyTorch
#
# | | TensorFlow | PyTorch | here |
# |---|---|---|---|
# | a layer | `tf.keras.layers.Dense(1)` | `torch.nn.Linear(2, 1)` | `Dense(1)` |
# | its variables | `layer.trainable_variables` | `layer.parameters()` | `layer.trainable_variables` |
# | in training | `layer(x, training=True)` | `layer.train()` | `layer(x, training=True)` |
# | a loss | `tf.keras.losses.MeanSquaredError()` | `torch.nn.MSELoss()` | `MeanSquaredError()` |
# | of a logit | `BinaryCrossentropy(from_logits=True)` | `BCEWithLogitsLoss()` | `BinaryCrossentropy(from_logits=True)` |
# | an update | `optimizer.apply_gradients(…)` | `optimizer.step()` | `optimizer.apply_gradients(…)` |
# | its state | `optimizer.variables` | `optimizer.state_dict()` | `optimizer.get_weights()` |
# | a metric | `tf.keras.metrics.Precision()` | (a library) | `Precision()` |
# | batches | `Dataset.shuffle(n).batch(32)` | `DataLoader(…, 32, shuffle=True)` | both |
# | words | `tf.keras.layers.DenseFeatures` | (a library) | `DenseFeatures` |
#
# ## Exercises (60 min, optional)
#
# As before: fill the stub, run, and read what the check says. Now the stub is often a class. The check makes objects of it,
# and tries them in float64 and in float32, on square and on other shapes.
#
# ### 04-1 · A layer
#
# `Scale` multiplies each column by a number of its own. The numbers are trained, and start at 1.
#
# ```
#   x[batch, columns]       scale[columns]        y[batch, columns]
#   ┌ 1  2  3 ┐                                   ┌ 10  0  -3 ┐
#   └ 4  5  6 ┘        ·    [ 10  0  -1 ]    =    └ 40  0  -6 ┘
# ```
#
# (About 5 lines. Hint: the shape that `build` gets is that of x; `"ones"` is an initializer from *More layers*.)

# %%
from course.practice import exercises

exercises.begin("04-1")


class Scale(Layer):
    """x[batch, columns] · scale[columns]"""

    def build(self, shape):
        """Make `scale`, a variable of ones, for inputs of this shape."""
        ...

    def call(self, x):
        return ...


exercises.check("04-1", Scale)

# %% [markdown]
# Is it right? Print `Scale().again()`: who gave the layer this `again`, and what is it good for?
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
# ### 04-3 · An optimizer that looks at signs only
#
# Adam's first step is as long for a small gradient as for a large one. This optimizer keeps that up: each weight moves by the rate,
# down or up. Which way, a mean of the gradients decides, in which a gradient fades by a tenth with each step
# ([Bernstein et al., 2018](https://proceedings.mlr.press/v80/bernstein18a.html), there called Signum).
#
# ```
# dw                   4       -1       -1       -1       -1       -1       -1
# m                 0.40     0.26     0.13     0.02    -0.08    -0.17    -0.26       m ← 0.9·m + 0.1·dw
# w moves by       -rate    -rate    -rate    -rate    +rate    +rate    +rate
# ```
#
# Where m is 0, nothing moves. (About 5 lines. Hint: `cast(m > 0.0, m.dtype)` is 1 where m is positive, else 0; `memory` names
# what is remembered, as in `RMSprop`.)

# %%
from course.practice import exercises

exercises.begin("04-3")


class SignDescent(Optimizer):
    """m ← 0.9·m + 0.1·dw; w ← w - rate·sign(m)"""

    memory = ("m",)

    def update(self, rate, dw, w, m):
        """The new w and the new m."""
        return ...


exercises.check("04-3", SignDescent)

# %% [markdown]
# Send it into the race: in `draw`, let it start in Adam's place (the map has three colours), and run that cell again. On
# standardised inputs, compare the rates 0.01 and 0.05. Why does it settle with the one and not with the other? (How long is its
# last step?)
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
# both          1  1  1  0  0  0  0  0  0  0       right   3        F1 = 2·3 / (5 + 4) = 0.667
# ```
#
# A metric sees one batch at a time, and a batch may hold no spam at all. (About 5 lines. Hint: `BinaryAccuracy` has `said`, and
# `ratio` gives 0 where there is nothing to divide by.)

# %%
from course.practice import exercises

exercises.begin("04-4")


class F1(BinaryAccuracy):
    """2·right / (called + true), over all batches; 0 where nothing is 1 and nothing was called 1."""

    def parts(self, y_true, y_pred):
        """What is added up, row by row: tensors shaped like y_pred."""
        return ...

    def formula(self, count, called, true, right):
        return ...


exercises.check("04-4", F1)

# %% [markdown]
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
# So the means and deviations belong to the model, like its weights, and come from the rows that it was trained on. The test rows
# are standardised by *these*. They take no part in making them: a row that had a say in the model can no longer test it. (About 3
# lines. A column that is constant in x has a deviation of 0: divide it by 1.)

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
# - An unknown species has three zeros. Give the indicator a fourth number, 1 for "unknown". (Which argument of
#   `categorical_column_with_vocabulary_list` does it?)
# - In `train`, after the weights are set, make the `trainable` of the first layer's kernel False. Which numbers move now, and how
#   good is the net?
# - Put a mass of 5,000 among the kilograms. How far does it move a line that is trained with `MeanSquaredError`, and how far one
#   that is trained with `Huber`?
#
# ## Build

# %%
build.level("04_mid_level", linear_regression, dnn_classifier)

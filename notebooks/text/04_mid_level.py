# %% [markdown]
# # 4 · Mid-level API
#
# **In this notebook a part owns its variables, and a model becomes a list of parts.**
#
# This is the level of `tf.keras.layers` and `torch.nn`, of losses, optimizers and datasets. About 30 minutes.

# %%
from course import build, checks, figures, tasks

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
# ## A part owns its variables (12 min)
#
# On level 3 the weights were loose variables, and every function had to be handed all of them. A **layer** keeps its own.
# It makes them when it first sees an input, because only then is its width known.
#
# Where does a weight start? Weights that are all equal stay equal, and too large ones blow a signal up from layer to layer.
# So they are drawn at random, from a range that depends on how many numbers go in and come out:

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
# The range is that of [Glorot and Bengio, 2010](https://proceedings.mlr.press/v9/glorot10a.html): with it the signal keeps
# its size on the way forward, and the gradient on the way back. Initializers and activations have names, as in Keras. A
# misspelled name is answered with the nearest right one:


# %%
#| export layers
INITIALIZERS = {"zeros": lambda shape: [0.0] * math.prod(shape), "glorot_uniform": glorot_uniform}
ACTIVATIONS = {"linear": lambda x: x, "relu": nn.relu, "sigmoid": nn.sigmoid}


def known(what, table, name):
    """The entry of that name in a table. What is no name, such as a function of your own, stays as it is."""
    if not isinstance(name, str):
        return name
    if name not in table:
        near = difflib.get_close_matches(name, table, 1)
        cure = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(table)}"
        raise ValueError(f"no {what} is called {reprlib.repr(name)}; {cure}")
    return table[name]


# %%
try:
    known("activation", ACTIVATIONS, "rleu")
except ValueError as error:
    print(error)

# %% [markdown]
# A part should also know how to make another one like it. Level 5 will write models to files in this way, as what they were
# made with.


# %%
#| export layers
class Made:
    """Remembers how it was made: `part.again()` makes a new one with the same arguments."""

    def __new__(cls, *args, **options):
        part = super().__new__(cls)
        part.again = functools.partial(cls, *args, **options)
        return part


# %% [markdown]
# Now the layer. All layers share one thing, the call: on the first call it makes the variables, on every call it runs.


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
            self.penalties.append(functools.partial(regularizer, variable))
        return variable

    @property
    def losses(self):
        """What this layer and those inside want added to the loss."""
        return [penalty() for layer in self.named(Layer).values() for penalty in layer.penalties]

    def __repr__(self):
        sizes = [f"{name} {list(v.shape)}" for name, v in self.named(Variable).items()]
        return f"{self.name}: {', '.join(sizes) or 'no variables yet'}"


# %% [markdown]
# One layer in full, the one both tasks need. Two lines make its variables, one line is its formula.


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
        if not isinstance(units, int) or units < 1:
            raise ValueError(f"Dense: units is {units!r}; expected a positive integer")
        self.units, self.activation, self.use_bias = units, known("activation", ACTIVATIONS, activation), use_bias
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
# ## What is wrong: losses (8 min)
#
# A **loss** says in one number how wrong a prediction is. All losses share the end: what each sample gives is weighted, if
# somebody has weights, and averaged. They share the beginning too, a check that the two arguments belong together.

# %%
#| export losses
"""Losses: one number that says how wrong a prediction is."""

from levels.low_level import GradientTape, Symbol, clip, exp, log, maximum, reduce_mean, reshape


class Loss(Made):
    """The mean, over all samples, of what `call(y_true, y_pred)` gives for each."""

    def __call__(self, y_true, y_pred, sample_weight=None):
        """One number. `sample_weight` [batch] multiplies what each sample gives, before the mean."""
        y_pred = as_tensor(y_pred)
        y_true = as_tensor(y_true, y_pred)
        self.check(y_true, y_pred)
        each = self.call(y_true, y_pred)
        if sample_weight is not None:
            weight = as_tensor(sample_weight, each)
            if weight.spec.shape[:1] != each.spec.shape[:1]:
                raise ValueError(f"{self}: sample_weight is {weight.spec}; there are {each.spec.shape[0]} samples")
            each = each * reshape(weight, weight.spec.shape[:1] + (1,) * (len(each.spec.shape) - 1))
        return reduce_mean(each)

    def check(self, y_true, y_pred):
        """Raise ValueError where the two do not belong together."""
        if y_true.spec.shape != y_pred.spec.shape:
            raise ValueError(f"{self}: y_true is {y_true.spec} and y_pred is {y_pred.spec}; expected equal shapes")

    def __repr__(self):
        return type(self).__name__


class MeanSquaredError(Loss):
    """mean((y_pred - y_true)²)"""

    def call(self, y_true, y_pred):
        error = y_pred - y_true
        return error * error


# %%
mse, truth, guess = MeanSquaredError(), [[1.0], [2.0]], [[1.5], [4.0]]
print(mse(truth, guess).numpy(), "and, the second sample without a weight,", mse(truth, guess, [1.0, 0.0]).numpy())

# %% [markdown]
# Equal shapes are worth a check. Beside predictions of shape (100, 1), labels of shape (100,) would be repeated to a square of
# 100 by 100 errors, and the training would run, and learn nothing.
#
# The loss of a yes-or-no question is the **cross-entropy**: minus the logarithm of the probability that was given to what
# turned out to be true.

# %% tags=["hide-input"]
checks.predict(
    "The truth is y = 1, and a model is certain of the opposite: p = 0. The loss is -log(p). What does a framework answer?",
    choices=["infinity", "NaN", "about 16", "1"],
    answer="about 16",
    because="It cuts p off at 1e-7, as Keras does: -log(1e-7) is 16.1. Infinity would make every weight NaN in one step.",
)


# %%
#| export losses
def check_probabilities(loss, **given):
    """Raise ValueError for numbers outside of [0, 1]. While a function is traced, nobody knows them: they pass."""
    for name, x in given.items():
        if not isinstance(x, Symbol) and ((x.data < 0.0) | (x.data > 1.0)).any():
            wrong = float(max(x.numpy().ravel(), key=lambda p: abs(p - 0.5)))
            raise ValueError(f"{loss}: {name} holds {wrong:.6g}; expected probabilities, from 0 to 1")


def within(p):
    """Probabilities, cut off so that their logarithm stays finite."""
    return clip(p, 1e-7, 1.0 - 1e-7)


class BinaryCrossentropy(Loss):
    """-mean(y_true·log p + (1 - y_true)·log(1 - p)), with p = y_pred kept within [1e-7, 1 - 1e-7].

    `from_logits=True` takes the z of p = 1 / (1 + exp(-z)) in its place, and cuts nothing off.
    """

    def __init__(self, from_logits=False):
        self.from_logits = from_logits

    def check(self, y_true, y_pred):
        super().check(y_true, y_pred)
        check_probabilities(self, y_true=y_true, **{} if self.from_logits else {"y_pred": y_pred})

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
# The loss is finite, but look at the gradient. Cut off is cut off: the worst mistake of all teaches nothing. That is why
# there is a second form, which takes the number in front of the sigmoid, the **logit** z. Sigmoid and logarithm cancel, and
# what remains has no number that could run over, whatever z is:

# %%
wrong = Variable([[-50.0]])
with GradientTape() as tape:
    loss = BinaryCrossentropy(from_logits=True)([[1.0]], wrong)
print(f"loss {float(loss):.4f}, gradient {float(tape.gradient(loss, wrong)):.4f}")

# %% [markdown]
# ## What to do about it: optimizers (8 min)
#
# An **optimizer** knows how to change a variable, given its gradient. Many remember something of each variable from step to
# step, so an optimizer owns variables too, and it is a module like a layer: its state can be saved, and put back.

# %%
#| export optimizers
"""Optimizers: how a variable changes, given its gradient."""

from levels.low_level import sqrt


class Optimizer(Made, Module):
    """Owns what it remembers of each variable. Write `update(rate, dw, w, *memory)` -> the new w and the new memory."""

    memory = ()  # names of what it remembers of each variable: as many numbers, 0 at first

    def __init__(self, learning_rate=0.01, clipnorm=None, global_clipnorm=None):
        for name, value in dict(
            learning_rate=learning_rate, clipnorm=clipnorm, global_clipnorm=global_clipnorm
        ).items():
            if value is not None and not callable(value) and not value > 0:
                raise ValueError(f"{type(self).__name__}: {name} is {value}; expected a positive number")
        self.rate, self.clipnorm, self.global_clipnorm = learning_rate, clipnorm, global_clipnorm
        self.owners = None  # the variables that it was built for, by their ids

    def build(self, variables):
        """Make the memory for these variables, in this order. The first `apply_gradients` does so itself."""
        dtype, self.owners = variables[0].dtype, [*map(id, variables)]
        self.iterations = Variable(np.zeros((), dtype), trainable=False)
        if not callable(self.rate):
            self.rate = Variable(np.array(self.rate, dtype), trainable=False)
        self.slots = [
            {name: Variable(np.zeros(v.shape, v.dtype), trainable=False) for name in self.memory} for v in variables
        ]

    def apply_gradients(self, grads_and_vars):
        """Change the variable of each pair (gradient, variable). Each call gets the same variables, in the same order."""
        gradients, variables = zip(*grads_and_vars)
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
# An optimizer of its own is then one formula. The oldest one goes against the gradient; with **momentum** it keeps some of the
# speed that it has.


# %%
#| export optimizers
class SGD(Optimizer):
    """w ← w - rate·dw. With momentum v ← momentum·v - rate·dw and w ← w + v; Nesterov's looks ahead: w + momentum·v - rate·dw."""

    def __init__(self, learning_rate=0.01, momentum=0.0, nesterov=False, **options):
        super().__init__(learning_rate, **options)
        self.momentum, self.nesterov, self.memory = momentum, nesterov, ("v",) if momentum else ()

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
# The most used one, **Adam**, remembers two means that fade: of the gradient and of its square. It divides one by the root of
# the other, so each number of each variable gets a step of its own size. Both means start at 0, too small, and the first steps
# correct that: after t steps they hold 1 - βᵗ of what they should.


# %%
#| export optimizers
class Adam(Optimizer):
    """m ← β₁·m + (1 - β₁)·dw; v ← β₂·v + (1 - β₂)·dw²; w ← w - rate·(m / (1 - β₁ᵗ)) / (√(v / (1 - β₂ᵗ)) + ε)

    Kingma and Ba, 2015, Algorithm 1. (Keras adds its ε to √v before the correction, which makes it larger in the first steps.)
    """

    memory = "m", "v"

    def __init__(self, learning_rate=0.001, beta_1=0.9, beta_2=0.999, epsilon=1e-7, **options):
        super().__init__(learning_rate, **options)
        self.betas, self.epsilon = (beta_1, beta_2), epsilon

    def update(self, rate, dw, w, m, v):
        (b1, b2), t = self.betas, self.iterations
        m, v = b1 * m + (1.0 - b1) * dw, b2 * v + (1.0 - b2) * (dw * dw)
        c1, c2 = 1.0 - exp(t * math.log(b1)), 1.0 - exp(t * math.log(b2))
        return w - rate * (m / c1) / (sqrt(v / c2) + self.epsilon), m, v


# %%
w, adam = Variable(np.array(1.0)), Adam(0.1)
for _ in range(3):
    adam.apply_gradients([(w * 2.0, w)])
    print(f"w = {float(w):.4f}")

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

    in_memory = True

    @classmethod
    def from_tensor_slices(cls, parts):
        return cls(*parts, np.arange(len(parts[0])))

    def shuffle(self, n, seed):
        self.rng = np.random.Generator(np.random.SFC64(seed))
        return self

    def batch(self, n):
        self.size = n
        return self

    def rows(self):
        if hasattr(self, "rng"):
            self.rng.shuffle(self.batches)
        if hasattr(self, "size"):
            full = len(self.batches) // self.size * self.size
            b = self.batches[:full].reshape(-1, self.size)
            return (self.x, self.y), b if full == len(self.batches) else [*b, self.batches[full:]]
        return (self.x, self.y), self.batches

    def __len__(self):
        return len(self.batches)

    def __iter__(self):
        for rows in self.batches:
            yield gather(self.x, rows), gather(self.y, rows)


# %%
[(x.shape, y.shape) for x, y in Dataset.from_batches(np.ones((5, 2)), np.ones((5, 1)), [[0, 1], [2, 3], [4]])]

# %% [markdown]
# ## Columns that are no numbers (10 min)

# %% [markdown]
# ## How good is it: metrics (5 min)

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
from levels.low_level import function


def train(layers, loss_of, x, y, weights, batches, learning_rate):
    """Layers in a row from given starting weights: one step for each batch."""
    sgd, data = SGD(learning_rate), Dataset.from_batches(x, y, batches)
    for layer, kernel, bias in zip(layers, weights[::2], weights[1::2]):
        layer.dtype = kernel.dtype
        layer.build(kernel.shape[:1])
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
# ### More layers
#
# Where weights start, first: [He et al., 2015](https://arxiv.org/abs/1502.01852) for layers with relu. A normal number that
# is cut off at two standard deviations needs no second try: a uniform number between the two shares, through the inverse of
# the distribution.

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
    drawn = np.array(INITIALIZERS[name]((100, 100)))
    print(f"{name:17} standard deviation {drawn.std():.3f}, largest {abs(drawn).max():.3f}")


# %% [markdown]
# A penalty for large weights: a loss that looks at a variable. Give one to a layer as its `kernel_regularizer`.


# %%
#| export layers
from levels.low_level import reduce_sum


class L1(Made):
    """l1·Σ|w|"""

    def __init__(self, l1=0.01):
        self.l1 = l1

    def __call__(self, w):
        return self.l1 * reduce_sum(maximum(w, -w))


class L2(Made):
    """l2·Σw²"""

    def __init__(self, l2=0.01):
        self.l2 = l2

    def __call__(self, w):
        return self.l2 * reduce_sum(w * w)


# %%
heavy = Dense(1, kernel_initializer="ones", kernel_regularizer=L2(0.1))
heavy(np.ones((1, 3), "f4"))
heavy.losses

# %% [markdown]
# Layers without a variable are a line or two. **Dropout** ([Srivastava et al., 2014](https://jmlr.org/papers/v15/srivastava14a.html))
# has one: the state of its random numbers, so that a compiled step draws new ones each time.


# %%
#| export layers
from levels.low_level import apply, concat, where


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
        return concat(x, self.axis)


class Dropout(Layer):
    """In training each number is 0 with probability `rate`, and the others are divided by 1 - rate."""

    def __init__(self, rate, seed=None, **options):
        super().__init__(**options)
        if not 0.0 <= rate < 1.0:
            raise ValueError(f"Dropout: rate is {rate}; expected 0 <= rate < 1")
        seed = RANDOM.getrandbits(62) if seed is None else seed
        self.rate, self.state = rate, Variable(np.array([seed, 0]), trainable=False)  # key and counter: see level 2

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
# **Batch normalization** ([Ioffe and Szegedy, 2015](https://arxiv.org/abs/1502.03167)) standardises inside the net. In
# training it takes mean and variance from the batch, and keeps a fading mean of both for later. So it has two pairs of
# variables: one pair is trained, the other only written down.


# %%
#| export layers
class BatchNormalization(Layer):
    """gamma·(x - mean) / √(variance + epsilon) + beta, over all axes but the last."""

    def __init__(self, momentum=0.99, epsilon=1e-3, **options):
        super().__init__(**options)
        self.momentum, self.epsilon = momentum, epsilon

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


class Embedding(Layer):
    """ids [batch, …], whole numbers below input_dim -> [batch, …, output_dim], rows of a table that is trained."""

    def __init__(self, input_dim, output_dim, embeddings_initializer="random_uniform", **options):
        super().__init__(**options)
        self.sizes, self.initializer = (input_dim, output_dim), embeddings_initializer

    def build(self, shape):
        self.embeddings = self.add_weight(self.sizes, self.initializer)

    def call(self, x):
        return gather(self.embeddings, x)


# %%
normal = BatchNormalization()
measured = np.array([[170.0, 3.1], [180.0, 3.9], [205.0, 4.4]], "f4")
print(normal(measured, training=True).numpy().round(3))
print(*(v.numpy().round(3) for v in normal.moving))

# %%
words = Embedding(5, 2)
print(words(np.array([[0, 4], [4, 4]])).shape, words)

# %% [markdown]
# ### More losses
#
# For more than two classes there is one probability for each, and the truth is one of two things: a row that says how much of
# each class it is, or the number of the class.


# %%
#| export losses
from levels.low_level import one_hot


class MeanAbsoluteError(Loss):
    """mean(|y_pred - y_true|)"""

    def call(self, y_true, y_pred):
        error = y_pred - y_true
        return nn.relu(error) + nn.relu(-error)  # at 0 the slope of both is 0, as it should be


class CategoricalCrossentropy(Loss):
    """The mean of -Σ y_true·log p over samples, for y_true and p [batch, classes], p scaled to a sum of 1.

    `from_logits=True` takes the z of p = softmax(z) in the place of p.
    """

    def __init__(self, from_logits=False):
        self.from_logits = from_logits

    def check(self, y_true, y_pred):
        super().check(y_true, y_pred)
        check_probabilities(self, y_true=y_true, **{} if self.from_logits else {"y_pred": y_pred})

    def call(self, y_true, y_pred):
        if self.from_logits:
            return -reduce_sum(y_true * nn.log_softmax(y_pred), -1)
        return -reduce_sum(y_true * log(within(y_pred / reduce_sum(y_pred, -1, keepdims=True))), -1)


class SparseCategoricalCrossentropy(CategoricalCrossentropy):
    """The same for y_true [batch] or [batch, 1], the numbers of the classes."""

    def check(self, y_true, y_pred):
        classes, samples = y_pred.spec.shape[-1], y_pred.spec.shape[:-1]
        if y_true.spec.dtype.kind != "i" or y_true.spec.shape not in (samples, (*samples, 1)):
            raise ValueError(
                f"{self}: y_true is {y_true.spec} and y_pred {y_pred.spec}; expected whole numbers {samples}"
            )
        if not isinstance(y_true, Symbol) and ((y_true.data < 0) | (y_true.data >= classes)).any():
            wrong = max(y_true.numpy().ravel(), key=lambda k: abs(k - (classes - 1) / 2))
            raise ValueError(f"{self}: y_true holds {wrong}; there are {classes} classes, 0 to {classes - 1}")

    def call(self, y_true, y_pred):
        return super().call(
            one_hot(reshape(y_true, y_pred.spec.shape[:-1]), y_pred.spec.shape[-1], y_pred.dtype), y_pred
        )


# %%
chances, classes = [[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]], np.array([0, 1])
print(f"{float(SparseCategoricalCrossentropy()(classes, chances)):.4f}", -np.log([0.7, 0.1]).mean().round(4))

# %% [markdown]
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
        self.rho, self.epsilon = rho, epsilon

    def update(self, rate, dw, w, v):
        v = self.rho * v + (1.0 - self.rho) * (dw * dw)
        return w - rate * dw / sqrt(v + self.epsilon), v


class AdamW(Adam):
    """Adam on w - rate·weight_decay·w"""

    def __init__(self, learning_rate=0.001, weight_decay=0.004, **options):
        super().__init__(learning_rate, **options)
        self.weight_decay = weight_decay

    def update(self, rate, dw, w, m, v):
        return super().update(rate, dw, w - rate * self.weight_decay * w, m, v)


# %% [markdown]
# A **schedule** is a learning rate that depends on the step. Any function of the step will do; these two have names.


# %%
#| export optimizers
class ExponentialDecay(Made):
    """initial_learning_rate · decay_rate ** (step / decay_steps)"""

    def __init__(self, initial_learning_rate, decay_steps, decay_rate):
        self.initial_learning_rate, self.decay_steps, self.decay_rate = initial_learning_rate, decay_steps, decay_rate

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
# ### More of the pipeline

# %% [markdown]
# ### More columns

# %% [markdown]
# ### More metrics

# %% [markdown]
# ### The same in TensorFlow and PyTorch
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

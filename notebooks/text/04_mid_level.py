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
# Now the layer. All layers share one thing, the call: on the first call it makes the variables, on every call it runs.


# %%
#| export layers
TRAINING = [False]  # the last one says whether layers are called in order to be trained


class Layer(Module):
    """A part of a model: write `call(x)`, and `build(shape)` where it needs variables."""

    def __init__(self, name=None, dtype=None):
        self.name, self.dtype, self.built = name or type(self).__name__.lower(), dtype, False
        self.width, self.penalties = (
            None,
            [],
        )  # width: the last size of the inputs that it is built for, where that matters

    def __call__(self, x, training=None):
        """Build on the first call, then `call`. `training` holds for the layers inside as well; None leaves it as it is."""
        several = isinstance(x, (list, tuple)) and isinstance(x[0], (Operators, np.ndarray))
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
            return self.call(x)
        finally:
            TRAINING.pop()

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
# ## What is wrong: losses (5 min)
#
# A **loss** says in one number how wrong a prediction is. All losses share the end: the numbers for each sample are weighted,
# if somebody has weights, and averaged.

# %%
#| export losses
"""Losses: one number that says how wrong a prediction is."""

from levels.low_level import clip, log, reduce_mean, reshape


class Loss:
    """The mean over all samples of what `call(y_true, y_pred)` gives for each."""

    def __call__(self, y_true, y_pred, sample_weight=None):
        """One number. Raises ValueError where the shapes differ; `sample_weight` [batch] multiplies what each sample gives."""
        y_pred = as_tensor(y_pred)
        y_true = as_tensor(y_true, y_pred)
        self.check(y_true, y_pred)
        each = self.call(y_true, y_pred)
        if sample_weight is not None:
            weight = as_tensor(sample_weight)
            each = each * reshape(weight, weight.spec.shape[:1] + (1,) * (len(each.spec.shape) - 1))
        return reduce_mean(each)

    def check(self, y_true, y_pred):
        """Raise ValueError for numbers that this loss has no meaning for."""
        if y_true.spec.shape != y_pred.spec.shape:
            raise ValueError(f"{type(self).__name__}: y_true is {y_true.spec} and y_pred is {y_pred.spec}")


# %%
#| export losses
class MeanSquaredError(Loss):
    """mean((y_pred - y_true)²)"""

    def call(self, y_true, y_pred):
        error = y_pred - y_true
        return error * error


class BinaryCrossentropy(Loss):
    """-mean(y_true·log p + (1 - y_true)·log(1 - p)), with p = y_pred kept within [1e-7, 1 - 1e-7]"""

    def call(self, y_true, y_pred):
        p = clip(y_pred, 1e-7, 1.0 - 1e-7)
        return -(y_true * log(p) + (1.0 - y_true) * log(1.0 - p))


# %% [markdown]
# ## What to do about it: optimizers (10 min)
#
# An **optimizer** knows how to change a variable, given its gradient.

# %%
#| export optimizers
"""Optimizers: how a variable changes, given its gradient."""

from levels.low_level import exp, maximum, reduce_sum, sqrt


class Optimizer(Module):
    """Owns what it remembers of each variable. Write `update(rate, dw, w, *memory)` -> the new w and memory."""

    memory = ()  # names of what it remembers of each variable, all zero at first

    def __init__(self, learning_rate=0.01, clipnorm=None, global_clipnorm=None):
        for name, value in dict(
            learning_rate=learning_rate, clipnorm=clipnorm, global_clipnorm=global_clipnorm
        ).items():
            if value is not None and not callable(value) and not value > 0:
                raise ValueError(f"{type(self).__name__}: {name} is {value}; expected a positive number")
        self.rate, self.clipnorm, self.global_clipnorm = learning_rate, clipnorm, global_clipnorm
        self.iterations = self.slots = None  # made for the variables of the first call

    @property
    def learning_rate(self):
        """A number, or a schedule; a number can be changed at any time."""
        return float(self.rate) if isinstance(self.rate, Variable) else self.rate

    @learning_rate.setter
    def learning_rate(self, value):
        if isinstance(self.rate, Variable):
            self.rate.assign(value)
        else:
            self.rate = value

    def build(self, variables):
        """Remember nothing yet of these variables."""
        dtype = variables[0].dtype
        self.iterations = Variable(np.zeros((), dtype), trainable=False)
        if not callable(self.rate):
            self.rate = Variable(np.array(self.rate, dtype), trainable=False)
        self.slots = [
            {name: Variable(np.zeros(v.shape, v.dtype), trainable=False) for name in self.memory} for v in variables
        ]

    def apply_gradients(self, grads_and_vars):
        """Change each variable of [(gradient, variable), …]; all of them in every call, in the same order."""
        gradients, variables = zip(*grads_and_vars)
        if self.slots is None:
            self.build(variables)
        if len(variables) != len(self.slots):
            raise ValueError(f"{type(self).__name__}: built for {len(self.slots)} variables, got {len(variables)}")
        rate = self.rate(self.iterations) if callable(self.rate) else self.rate
        self.iterations.assign(self.iterations + 1.0)
        for dw, w, slots in zip(self.clipped(gradients), variables, self.slots):
            for variable, value in zip((w, *slots.values()), self.update(rate, dw, w, *slots.values())):
                variable.assign(value)

    def clipped(self, gradients):
        """The gradients, each (`clipnorm`) or all together (`global_clipnorm`) no longer than that."""
        for norm, groups in ((self.clipnorm, [[dw] for dw in gradients]), (self.global_clipnorm, [gradients])):
            if norm is not None:
                gradients = [dw for group in groups for dw in shortened(group, norm)]
        return gradients


def shortened(gradients, norm):
    """These gradients, shortened by one factor where the root of the sum of all their squares is above the norm."""
    length = sqrt(sum((reduce_sum(dw * dw) for dw in gradients[1:]), reduce_sum(gradients[0] * gradients[0])))
    factor = norm / maximum(length, norm)
    return [dw * factor for dw in gradients]


class SGD(Optimizer):
    """w ← w - rate·dw. With momentum: v ← momentum·v - rate·dw and w ← w + v, or with Nesterov's w ← w + momentum·v - rate·dw"""

    def __init__(self, learning_rate=0.01, momentum=0.0, nesterov=False, **options):
        super().__init__(learning_rate, **options)
        self.momentum, self.nesterov, self.memory = momentum, nesterov, ("v",) if momentum else ()

    def update(self, rate, dw, w, *memory):
        if not memory:
            return (w - rate * dw,)
        v = self.momentum * memory[0] - rate * dw
        return w + (self.momentum * v - rate * dw if self.nesterov else v), v


# %% [markdown]
# Adam:


# %%
#| export optimizers
class Adam(Optimizer):
    """m ← β₁·m + (1 - β₁)·dw; v ← β₂·v + (1 - β₂)·dw²; w ← w - rate·(m / (1 - β₁ᵗ)) / (√(v / (1 - β₂ᵗ)) + ε)"""

    memory = "m", "v"

    def __init__(self, learning_rate=0.001, beta_1=0.9, beta_2=0.999, epsilon=1e-7, **options):
        super().__init__(learning_rate, **options)
        self.beta_1, self.beta_2, self.epsilon = beta_1, beta_2, epsilon

    def update(self, rate, dw, w, m, v):
        m = self.beta_1 * m + (1.0 - self.beta_1) * dw
        v = self.beta_2 * v + (1.0 - self.beta_2) * dw * dw
        c1, c2 = (1.0 - exp(self.iterations * math.log(beta)) for beta in (self.beta_1, self.beta_2))
        return w - rate * (m / c1) / (sqrt(v / c2) + self.epsilon), m, v


# %% [markdown]
# ## The race (8 min)
#
# Which optimizer is the fastest, and does it matter? We begin with the plainest one and real numbers: the mass of 342
# penguins in kg from three measures in mm, as they stand in the table.

# %%
from course import checks
from levels import low_level

rows = np.array([row[:4] for row in tasks.penguins() if None not in row[:4]])
measures, mass = rows[:, :3], rows[:, 3:] / 1000
print("one penguin:", measures[0], "mm,", mass[0], "kg")

# %% tags=["hide-input"]
checks.predict(
    "a linear model of the raw millimetres, all rows in each step, plain SGD at rate 0.001. What does the loss do?",
    choices=["it falls at once", "it falls, but slowly", "it grows without end"],
    answer="it grows without end",
    because="""
    A flipper is about 200 mm long, so a small change of its weight moves every prediction far. The step overshoots the
    lowest point by more than the distance to it, and the next step is longer still.
    """,
)

# %%
model, mean_squared, sgd = Dense(1, kernel_initializer="zeros"), MeanSquaredError(), SGD(0.001)
model(measures)  # now it has its variables


@low_level.function
def step(x, y):
    with low_level.GradientTape() as tape:
        loss = mean_squared(y, model(x))
    sgd.apply_gradients(zip(tape.gradient(loss, model.variables), model.variables))
    return loss


losses = step.over(measures, mass, [range(len(mass))] * 100).numpy()
print(*(f"{loss:.3g}" for loss in losses[:5]), "…", losses[-1])

# %% [markdown]
# Each step makes the loss some 7,000 times as large, and after a hundred it is infinite. Nothing is wrong with SGD. It
# is the bowl: along each of its axes the loss is a parabola, with a second derivative, the **curvature** c. A step
# multiplies the distance from the lowest point by 1 - rate·c. Where rate·c is above 2 the distance grows. So the
# steepest axis limits the rate to 2/c, and the flattest one has to live with that rate. The curvatures are the
# eigenvalues of the matrix of second derivatives:


# %%
def curvatures(x):
    """The smallest and the largest curvature of the mean squared error of x[n, inputs] @ w + b."""
    columns = np.column_stack([x, np.ones(len(x))])
    return np.linalg.eigvalsh(2 * columns.T @ columns / len(x))[[0, -1]]


# %%
depth = measures[:, 1:2]
depths = {"raw": depth, "standardised": tasks.standardise(depth, depth)[0]}
three = {"raw": measures, "standardised": tasks.standardise(measures, measures)[0]}
print("                              flattest  steepest     ratio  largest rate")
for title, columns in {"three measures": three, "bill depth alone": depths}.items():
    for name, x in columns.items():
        flat, steep = curvatures(x)
        print(f"{title:16} {name:12} {flat:9.2g} {steep:9.3g} {steep / flat:9.3g} {2 / steep:13.2g}")

# %% [markdown]
# The ratio is the **condition number**. For raw measures it is huge, for two reasons: the bias sees ones where the
# weights see hundreds of millimetres, and no measure is near zero, so that a larger weight is nearly undone by a
# smaller bias. To **standardise**, subtract each column's mean and divide by its standard deviation. That takes both
# reasons away.
#
# ### Two ways to be faster
#
# **Momentum** keeps a velocity: steps that agree add up, to 1 / (1 - momentum) times their length, and steps that go to
# and fro cancel. In a bowl, the right momentum brings the number of steps from the order of the condition number down
# to that of its square root ([Polyak, 1964](https://doi.org/10.1016/0041-5553%2864%2990137-5)).
#
# **Adam** divides a running mean of the gradient by a running mean of its size, each weight's by its own ([Kingma and
# Ba, 2015](https://arxiv.org/abs/1412.6980)). What does that make of very small and very large gradients?

# %% tags=["hide-input"]
checks.predict(
    "two weights have the gradients 1e-6 and 1e6. How far does Adam's first step move them, at rate 0.001?",
    choices=["1e-9 and 1,000", "nearly 0.001 both", "0.001 and 1,000"],
    answer="nearly 0.001 both",
    because="""
    After one step `m / (1 - β₁)` is the gradient itself and `√(v / (1 - β₂))` its size. So the step is
    rate · gradient / (|gradient| + ε), and the size of the gradient cancels. Only ε = 1e-7 can be seen beside 1e-6.
    """,
)

# %%
for gradient in (1e-6, 1e6):
    ends = []
    for optimizer in (SGD(0.001), Adam(0.001)):
        w = Variable(np.zeros(()))
        optimizer.apply_gradients([(low_level.constant(np.array(gradient)), w)])
        ends.append(float(w))
    print(f"gradient {gradient:g}: SGD moves the weight by {ends[0]:g}, Adam by {ends[1]:.3g}")

# %% [markdown]
# For SGD the rate is a factor. For Adam it is a distance, about as far as a weight moves in one step. So the two need
# rates of their own, and one must not be judged at the other's.
#
# ### On the map
#
# A bowl over one weight and one bias can be drawn. We take the depth of the bill: we know from the beginning of this
# notebook that the best slope is -192 g per mm. All rows go into each step, so nothing is random.


# %%
def run(optimizer, x, y, updates=1000):
    """Fit x @ w + b, from zero. Returns losses [updates + 1] and the path [updates + 1, 2] of (w, b), the start included."""
    model = Dense(1, kernel_initializer="zeros")
    model(x)

    @low_level.function
    def step(x, y):
        w, b = map(low_level.constant, model.variables)
        with low_level.GradientTape() as tape:
            loss = mean_squared(y, model(x))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.variables), model.variables))
        return loss, w, b

    all_rows = np.broadcast_to(np.arange(len(x)), (updates + 1, len(x)))
    losses, w, b = step.over(x, y, all_rows)
    return losses.numpy(), np.column_stack([w.numpy(), b.numpy()])


# %%
losses, path = run(SGD(0.002), depth, mass)
print(f"loss {losses[0]:.3f}, then {losses[-1]:.3f}; slope {1000 * path[-1, 0]:+.0f} g per mm of bill depth")

# %% [markdown]
# A thousand updates at more than half of the largest rate, and the slope has not even the sign of the best one. **Who
# does better?** Try rates from 0.001 to 1 on the raw millimetres. Then set `inputs` to standardised. Each mark on the
# map is an update: the first, the tenth, the hundredth and the thousandth. To arrive is to stay within 1 % of the best
# loss. (The map of the raw inputs is stretched sideways. At equal scales its valley would be 152 times as long as it is
# wide, the square root of the condition number.)

# %%
from course import race, widgets

RATES = [m * 10**-k for k in (4, 3, 2, 1) for m in (1, 2, 5)] + [1]


def draw(inputs, rate, momentum):
    x = depths[inputs]
    racers = {"SGD": SGD(rate), f"momentum {momentum}": SGD(rate, momentum), "Adam": Adam(rate)}
    return race.drawn(inputs, rate, x, mass, {name: run(racer, x, mass) for name, racer in racers.items()})


widgets.explore(
    draw,
    "The optimizer race: SGD, momentum and Adam on the loss of a line through the penguins' masses over bill depths.",
    inputs=["raw", "standardised"],
    rate=RATES,
    momentum=[0, 0.5, 0.9, 0.99],
    start={"rate": 0.002, "momentum": 0.9},
)

# %% [markdown]
# At one rate for all, somebody is always at the wrong one. To be fair, each gets the best of these rates:


# %%
def fewest(optimizer, x):
    """(updates, rate): the fewest updates in which it arrives at one of RATES. None if 1,000 are never enough."""
    best = race.valley(x, mass).loss
    times = [(race.arrival(run(optimizer(rate), x, mass)[0], best), rate) for rate in RATES]
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
best, (flat, _) = race.valley(depth, mass).loss, curvatures(depth)
formula = 1000 + np.log(0.01 / (losses[-1] / best - 1)) / np.log((1 - 0.002 * flat) ** 2)
print(f"formula {formula:,.0f}, measured {race.arrival(run(SGD(0.002), depth, mass, 50_000)[0], best):,}")

# %% [markdown]
# Some 48,000. Momentum saves a factor of 57, Adam one of 146. Standardising, a single line, saves all but one: in a
# round bowl the steepest way down leads to the lowest point, and at rate 1/c = 0.5 plain SGD is there after one update.
# Nobody is faster, and Adam needs 70. **Scaling was the cure, not Adam.** That is why the penguins of
# `tasks.penguins_mass()` come standardised.
#
# Three measures make no perfectly round bowl (8.71), because long flippers and long bills go together. And inside a
# deep net nobody can scale a layer's inputs beforehand. There Adam helps, which has a step of its own for each weight.

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
from levels.low_level import GradientTape, function


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

# %% [markdown]
# ### More losses

# %% [markdown]
# ### More optimizers

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

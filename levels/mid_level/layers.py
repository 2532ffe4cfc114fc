"""A part owns its variables: layers."""

# Built from 04_mid_level.ipynb: edit there, then run its last cell.

import difflib
import functools
import math
import random
import reprlib
import statistics

import numpy as np

from levels import plugged
from levels.low_level import (
    Module,
    Operators,
    Variable,
    apply,
    as_tensor,
    cast,
    concat,
    gather,
    nn,
    reduce_mean,
    reduce_sum,
    reshape,
    sqrt,
    tanh,
    where,
)

RANDOM = random.Random(0)  # where starting weights come from; RANDOM.seed(n) repeats them


def glorot_uniform(shape):
    """Uniform in ±√(6 / (inputs + units)), for weights of shape [inputs, units] (Glorot and Bengio, 2010)."""
    limit = math.sqrt(6.0 / sum(shape[-2:]))
    return [RANDOM.uniform(-limit, limit) for _ in range(math.prod(shape))]


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


def positive(name, value, below=math.inf):
    """The value, if it is a number above 0 and below that. Else raises ValueError."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not 0.0 < value < below:
        limit = "" if below == math.inf else f" below {below:g}"
        raise ValueError(f"{name} is {value!r}; expected a positive number{limit}")
    return value


def from_zero(name, value, below=math.inf):
    """The same for a number that may also be 0."""
    return value if type(value) in (int, float) and value == 0 else positive(name, value, below)


class Made:
    """Remembers how it was made: `part.again()` makes a new one with the same arguments."""

    def __new__(cls, *args, **options):
        part = super().__new__(cls)
        part.again = functools.partial(cls, *args, **options)
        return part

    def __repr__(self):
        given = [*map(repr, self.again.args), *(f"{name}={value!r}" for name, value in self.again.keywords.items())]
        return f"{type(self).__name__}({', '.join(given)})"


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


__getattr__, __dir__ = plugged(__name__)  # what is missing here is looked up in levels_more

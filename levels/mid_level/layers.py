"""A part owns its variables: layers."""

# Built from notebooks/04_mid_level.ipynb: edit there, then run its last cell.

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

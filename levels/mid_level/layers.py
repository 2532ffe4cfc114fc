"""A part owns its variables: layers."""

# Built from 04_mid_level.ipynb: edit there, then run its last cell.

import functools
import inspect
import math
import random

import numpy as np

from levels.hardware import PLACE
from levels.low_level import Module, Variable, as_tensor, nn
from levels.support.checks import at_least, flag, known
from levels.support.locks import MAKING


def affine(x, kernel, bias):
    """The sums of a layer, [batch, units], from x[batch, inputs], kernel[inputs, units] and bias[1, units]."""
    return x @ kernel + bias


RANDOM = random.Random(0)  # where starting weights come from; RANDOM.seed(n) repeats them


def glorot_uniform(shape):
    """Numbers for weights [inputs, units], uniform in ±√(6 / (inputs + units)) (Glorot and Bengio, 2010)."""
    limit = math.sqrt(6.0 / sum(shape[-2:]))  # inputs and units are the last two axes
    return [RANDOM.uniform(-limit, limit) for _ in range(math.prod(shape))]


INITIALIZERS = {"zeros": lambda shape: [0.0] * math.prod(shape), "glorot_uniform": glorot_uniform}
ACTIVATIONS = {"linear": as_tensor, "relu": nn.relu, "sigmoid": nn.sigmoid}


class Made:
    """Remembers how it was made: `part.again()` makes a new one with the same arguments."""

    def __new__(cls, *args, **options):
        part = super().__new__(cls)
        part.again = functools.partial(cls, *args, **options)
        return part

    def __repr__(self):
        given = [*map(repr, self.again.args), *(f"{name}={value!r}" for name, value in self.again.keywords.items())]
        return f"{type(self).__name__}({', '.join(given)})"


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

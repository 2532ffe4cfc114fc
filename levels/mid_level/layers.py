"""A part owns its variables: layers."""

# Built from 04_mid_level.ipynb: edit there, then run its last cell.

import functools
import math
import random

import numpy as np

from levels.hardware import PLACE
from levels.low_level import Module, Variable, as_tensor, nn
from levels.support.checks import check_bool, check_int, lookup
from levels.support.fronts import Unset
from levels.support.locks import MAKING
from levels.support.names import guarded
from levels.support.trainings import check_call, check_parts, no_call


def affine(x, kernel, bias):
    """The sums of a layer, [batch, units], from x[batch, inputs], kernel[inputs, units] and bias[1, units]."""
    return x @ kernel + bias


RANDOM = random.Random(0)  # draws the starting weights; RANDOM.seed(n) repeats them


def glorot_uniform(shape):
    """Draw weights [inputs, units], uniform in ±√(6 / (inputs + units)), as a list (Glorot and Bengio, 2010)."""
    limit = math.sqrt(6.0 / sum(shape[-2:]))  # inputs and units are the last two axes
    return [RANDOM.uniform(-limit, limit) for _ in range(math.prod(shape))]


INITIALIZERS = {"zeros": lambda shape: [0.0] * math.prod(shape), "glorot_uniform": glorot_uniform}
ACTIVATIONS = {"linear": as_tensor, "relu": nn.relu, "sigmoid": nn.sigmoid}


class Reconstructible:
    """An object that keeps its arguments: `part.recreate()` makes a new one with them."""

    def __new__(cls, *args, **options):
        part = super().__new__(cls)
        part.recreate = functools.partial(cls, *args, **options)
        return part

    def __repr__(self):
        options = [f"{name}={value!r}" for name, value in self.recreate.keywords.items()]
        return f"{type(self).__name__}({', '.join([*map(repr, self.recreate.args), *options])})"


def _build_once(layer, shape, dtype):
    """Call `build` of a layer, unless it was called. The dtype is the layer's own, else this one if it is a float."""
    with MAKING:
        if not layer.built:
            layer.dtype = layer.dtype or (dtype if dtype.kind == "f" else "float32")
            layer.building = True
            try:
                layer.build(shape)
            finally:
                layer.building = False
            layer.built = True


def _starting(initializer, shape, dtype):
    """Return an initializer's numbers, an array of this shape and dtype. Raises an error if one of them is wrong."""
    spec = PLACE.device.alloc(shape, dtype).spec
    numbers = lookup("initializer", INITIALIZERS, initializer)(shape)
    return np.reshape(numbers, shape).astype(spec.dtype)


def _freeze(layer, value):
    """Set `trainable` of a layer and of all layers inside to True or False."""
    for part in layer.named(Layer).values():
        part.trainable_flag = check_bool(f"{layer.name}: trainable", value)


class Layer(Reconstructible, Module):
    """A part of a model. Define `call(x)`, and `build(shape)` if it needs variables."""

    built = building = False  # whether `build_for` has run, or is running
    trainable_flag = True
    name = dtype = Unset()  # `__init__` sets them
    __setattr__ = guarded
    build_for = _build_once
    call = no_call
    trainable = property(lambda self: self.trainable_flag, _freeze)

    def __init__(self, name=None, dtype=None):
        self.name = type(self).__name__.lower() if name is None else name
        self.dtype = None if dtype is None else np.dtype(dtype)
        check_call(self)

    def __call__(self, x, training=None):
        """Return the result of `call`. Only layers of `levels_more` use `training`."""
        return self.run(x, training)

    def run(self, x, training=None):
        """Return the result of `call`, after a build on the first call."""
        if training:
            check_parts(self, self.named(Layer).values())
        x = as_tensor(x)
        if not self.built:
            self.build_for(x.spec.shape, x.dtype)
        return self.call(x)

    def build(self, shape):
        """Make the variables for inputs of this shape."""

    def add_weight(self, shape, initializer="glorot_uniform", trainable=True, name=None):
        """Make a variable of this shape. (Keras' argument `name` is ignored.)"""
        self.built = not self.building  # outside `build`, the first weight marks the layer as built
        numbers = _starting(initializer, shape, self.dtype or "float32")
        return Variable(numbers, trainable=trainable)

    @property
    def trainable_variables(self):
        """The trainable variables of all layers that are trainable."""
        parts = self.named(Layer).values()
        still = {v for part in parts if not part.trainable_flag for v in part.variables}
        return [v for v in super().trainable_variables if v not in still]

    def __repr__(self):
        sizes = [f"{name} {list(v.shape)}" for name, v in self.named(Variable).items()]
        return f"{self.name}: {', '.join(sizes) or 'no variables yet'}"


class Dense(Layer):
    """activation(x[batch, inputs] @ kernel[inputs, units] + bias[1, units])"""

    def __init__(
        self,
        units,
        activation=None,
        *,
        kernel_initializer="glorot_uniform",
        bias_initializer="zeros",
        name=None,
        dtype=None,
    ):
        super().__init__(name, dtype)
        self.units = check_int(1, "Dense: units", units)
        self.activation = lookup("activation", ACTIVATIONS, "linear" if activation is None else activation)
        self.initializers = kernel_initializer, bias_initializer

    def build(self, shape):
        self.kernel = self.add_weight((shape[-1], self.units), self.initializers[0])
        self.bias = self.add_weight((1, self.units), self.initializers[1])

    def call(self, x):
        return self.activation(affine(x, self.kernel, self.bias))

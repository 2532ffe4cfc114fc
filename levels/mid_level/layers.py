"""A part owns its variables: layers."""

# Built from 04_mid_level.ipynb: edit there, then run its last cell.

import math
import random

import numpy as np

from levels.hardware import PLACE
from levels.low_level import Module, Variable, as_tensor, nn
from levels.support.checks import check_int, lookup
from levels.support.fronts import Unset
from levels.support.locks import built_once
from levels.support.parts import Reconstructible, guarded
from levels.support.trainings import check_call, check_heard, no_call


def affine(x, kernel, bias):
    """x[batch, inputs], kernel[inputs, units], bias[1, units] -> sums[batch, units]"""
    return x @ kernel + bias


RANDOM = random.Random(0)  # draws the starting weights; RANDOM.seed(n) repeats them


def glorot_uniform(shape):
    """Draw weights uniformly in ±√(6 / (inputs + units)): Glorot and Bengio, 2010."""
    limit = math.sqrt(6.0 / sum(shape[-2:]))  # inputs and units are the last two axes
    return [RANDOM.uniform(-limit, limit) for _ in range(math.prod(shape))]


INITIALIZERS = {"zeros": np.zeros, "glorot_uniform": glorot_uniform}
ACTIVATIONS = {"linear": as_tensor, "relu": nn.relu, "sigmoid": nn.sigmoid}


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

"""A part owns its variables: layers."""

# Built from notebooks/04_mid_level.ipynb: edit there, then run its last cell.

import math
import random

import numpy as np

from levels.low_level import Variable, as_tensor, nn

RANDOM = random.Random(0)  # where starting weights come from; RANDOM.seed(n) repeats them


def glorot_uniform(inputs, units, dtype):
    """w[inputs, units] uniform in ±√(6 / (inputs + units)) (Glorot and Bengio, 2010)."""
    limit = math.sqrt(6.0 / (inputs + units))
    return np.array([[RANDOM.uniform(-limit, limit) for _ in range(units)] for _ in range(inputs)], dtype)


class Layer:
    """A part of a model: builds its variables on the first call, and owns them."""

    def __init__(self, name=None):
        self.name, self.variables = name or type(self).__name__.lower(), []

    def __call__(self, x):
        x = as_tensor(x)
        if not self.variables:
            self.build(x.shape, x.dtype)
        return self.call(x)

    def get_weights(self):
        return [variable.numpy() for variable in self.variables]

    def set_weights(self, weights):
        if len(weights) != len(self.variables):
            raise ValueError(f"{self.name} has {len(self.variables)} weights, got {len(weights)}; is it built?")
        for variable, value in zip(self.variables, weights):
            variable.assign(value)


ACTIVATIONS = {None: lambda x: x, "relu": nn.relu, "sigmoid": nn.sigmoid}


class Dense(Layer):
    """activation(x[batch, inputs] @ kernel[inputs, units] + bias[1, units])"""

    def __init__(self, units, activation=None, name=None):
        super().__init__(name)
        if not isinstance(units, int) or units < 1:
            raise ValueError(f"Dense: units is {units!r}; expected a positive integer")
        if activation not in ACTIVATIONS:
            raise ValueError(f"Dense: activation is {activation!r}; there are {', '.join(map(repr, ACTIVATIONS))}")
        self.units, self.activation = units, activation

    def build(self, shape, dtype="float32"):
        """Make the variables for inputs of this shape; only the last size matters."""
        kernel, bias = glorot_uniform(shape[-1], self.units, dtype), np.zeros((1, self.units), dtype)
        self.variables = [Variable(kernel), Variable(bias)]

    def call(self, x):
        kernel, bias = self.variables
        if x.shape[-1] != kernel.shape[0]:
            raise ValueError(f"{self.name}: built for {kernel.shape[0]} inputs, got {x.shape[-1]}")
        return ACTIVATIONS[self.activation](x @ kernel + bias)

"""A part owns its variables: layers."""

# Built from 04_mid_level.ipynb: edit there, then run its last cell.

import functools
import inspect
import math
import random

import numpy as np

from levels.hardware import PLACE
from levels.low_level import Module, Variable, as_tensor, nn
from levels.support.checks import check_bool, check_int, lookup
from levels.support.fronts import Unset
from levels.support.locks import MAKING
from levels.support.names import Guarded
from levels.support.trainings import check_parts


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


# What all layers share: a name, a dtype, a build on the first call, `trainable`. You may skip how it is written.
class _Part(Guarded, Reconstructible, Module):
    hears_training = False  # whether `call` may have an argument `training`
    building = False  # whether `build_for` is running
    trainable_flag = True  # see `trainable`
    name = dtype = built = Unset()  # `__init__` sets them

    def __init__(self, name=None, dtype=None):
        self.name = self.usual_name() if name is None else name
        self.dtype = None if dtype is None else np.dtype(dtype)
        self.built = False
        call = getattr(type(self), "call", None)
        if call and "training" in inspect.signature(call).parameters and not self.hears_training:
            raise NotImplementedError(f"{self.name}: call(…, training) is for the Layer of levels_more.mid_level")

    def __call__(self, x, training=None):
        """Return the result of `call`, after a build the first time. Only layers of `levels_more` use `training`."""
        return self.run(x, training)

    def usual_name(self):
        """Return the name of a layer that is given none."""
        return type(self).__name__.lower()

    def build_for(self, shape, dtype):
        """Call `build`, once. A layer without a dtype takes this one if it is a float dtype, else float32."""
        with MAKING:
            if not self.built:
                self.dtype = self.dtype or (dtype if dtype.kind == "f" else "float32")
                self.building = True
                try:
                    self.build(shape)
                finally:
                    self.building = False
                self.built = True

    def starting(self, initializer, shape):
        """Return an initializer's numbers for this shape, in the layer's dtype."""
        spec = PLACE.device.alloc(shape, self.dtype or "float32").spec  # raises if shape or dtype is wrong
        return np.reshape(lookup("initializer", INITIALIZERS, initializer)(shape), shape).astype(spec.dtype)

    def check_model(self, model):
        """Raise TypeError if this layer would not work in that model. All layers of this level work in any model."""

    trainable = property(lambda self: self.trainable_flag, doc="Whether its variables may change.")

    @trainable.setter
    def trainable(self, value):
        for part in self.named(_Part).values():
            part.trainable_flag = check_bool(f"{self.name}: trainable", value)

    @property
    def trainable_variables(self):
        """The trainable variables of all parts that are trainable."""
        still = {v for part in self.named(_Part).values() if not part.trainable_flag for v in part.variables}
        return [v for v in super().trainable_variables if v not in still]

    def __repr__(self):
        sizes = [f"{name} {list(v.shape)}" for name, v in self.named(Variable).items()]
        return f"{self.name}: {', '.join(sizes) or 'no variables yet'}"


class Layer(_Part):
    """A part of a model. Define `call(x)`, and `build(shape)` if it needs variables."""

    def build(self, shape):
        """Make the variables for inputs of this shape."""

    def add_weight(self, shape, initializer="glorot_uniform", trainable=True, name=None):
        """Make a variable of this shape, in the layer's dtype. (Keras' argument `name` is ignored.)"""
        self.built = not self.building  # outside `build`, the first weight marks the layer as built
        return Variable(self.starting(initializer, shape), trainable=trainable)

    def call(self, x):
        """Return the layer's output. Raises NotImplementedError unless a subclass defines it."""
        cure = "rename its `forward`, PyTorch's name" if hasattr(self, "forward") else "write one"
        raise NotImplementedError(f"{type(self).__name__} has no call; {cure}: `def call(self, x):`")

    def run(self, x, training=None):
        """Return the result of `call`, after a build on the first call."""
        if training:
            check_parts(self, Layer)
        x = as_tensor(x)
        if not self.built:
            self.build_for(x.spec.shape, x.dtype)
        return self.call(x)


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

"""Layers by Keras' rules: a layer computes in float32 by default, and a bias has the shape [units]."""

import sys

import numpy as np

from levels.low_level import Operators, Variable, constant
from levels_more import mid_level
from levels_more.checks import as_python, dtype_of
from levels_more.high_level import functional
from levels_more.low_level.ops import cast
from levels_more.mid_level import layers
from levels_more.mid_level.notes import note
from levels_more.tensorflow.keras_logits import bend
from levels_more.tensorflow.nested import numbers
from levels_more.tensorflow.variables import Variable as KerasVariable

FLOAT = ["float32"]  # the default dtype of layers


def behind(base, place, names):
    """{name: a subclass of `base`, which has Keras' rules, and of the class of that name in the module `place`}"""
    kinds = {name: getattr(place, name) for name in names.split()}
    told = {name: {"__doc__": kind.__doc__, "__module__": base.__module__} for name, kind in kinds.items()}
    made = {name: type(name, (base, kind), told[name]) for name, kind in kinds.items()}
    vars(sys.modules[base.__module__]).update(made)  # where a pickle looks for them
    return made


def set_floatx(dtype):
    """Layers made from now on compute in this dtype, "float32" or "float64"."""
    FLOAT[0] = str(dtype_of("set_floatx: dtype", dtype, "float32 float64"))


def _fitting(x, dtype):
    """x with floats cast to a layer's dtype, in dicts and lists too. Lists of numbers become tensors."""
    if isinstance(x, dict):
        return {name: _fitting(each, dtype) for name, each in x.items()}
    if isinstance(x, (list, tuple)) and len(x):
        several = isinstance(x[0], (Operators, np.ndarray, functional.Placeholder))
        return [_fitting(each, dtype) for each in x] if several else _fitting(constant(list(x)), dtype)
    x = numbers(x) if isinstance(x, np.ndarray) and x.dtype.kind in "iuf" else x
    return cast(x, dtype) if isinstance(x, Operators) and x.dtype.kind == "f" and x.dtype != dtype else x


def Input(shape=None, batch_size=None, dtype=None, name=None, input_shape=None):
    """A placeholder for rows of that shape [sizes]. Its default dtype is that of layers."""
    return functional.Input(tuple(input_shape if shape is None else shape), dtype or FLOAT[0], name)


class Layer(mid_level.Layer):
    """A layer by Keras' rules: it has a dtype, by default float32, and casts the floats that it is given to it."""

    def __init__(self, *args, dtype=None, trainable=True, input_shape=None, **options):
        super().__init__(*args, **options)
        self.dtype = np.dtype(dtype or FLOAT[0])
        note(self, input_size=as_python(input_shape))
        if not trainable:  # setting True would unfreeze the layers of a model
            self.trainable = False

    def __call__(self, inputs, training=None):
        """The result of `call` for inputs [batch, …]."""
        return super().__call__(_fitting(inputs, self.dtype or FLOAT[0]), training)

    def build(self, input_shape):
        super().build(tuple(input_shape))

    def add_weight(self, shape=(), initializer=None, dtype=None, trainable=True, name=None):
        """A new variable of this shape, in the layer's dtype."""
        found = super().add_weight(tuple(shape), initializer or "glorot_uniform", trainable)
        return KerasVariable(found.read_value(), trainable, name, dtype)

    def set_weights(self, weights):
        """Assign these arrays to all variables, in the variables' dtypes. Raises ValueError if one does not fit."""
        given = [*weights]
        dtypes = [v.dtype for v in self.variables] if len(given) == len(self.variables) else [None] * len(given)
        super().set_weights([np.asarray(w, dtype) for w, dtype in zip(given, dtypes, strict=True)])


class Dense(Layer, layers.Dense):
    """activation(x[batch, inputs] @ kernel[inputs, units] + bias[units])"""

    def build(self, input_shape):
        super().build(input_shape)
        if self.use_bias:
            self.bias = self.add_weight((self.units,), self.initializers[1], name="bias")

    def call(self, x):
        """x[batch, inputs] -> [batch, units]"""
        x = x if x.spec.dtype.kind == "f" else cast(x, self.kernel.dtype)
        return bend(self.activation, mid_level.affine(x, self.kernel, self.bias) if self.use_bias else x @ self.kernel)


class Activation(Layer, layers.Activation):
    """A function by name, or one of your own, as a layer."""

    def call(self, x):
        """x[batch, …] -> the same shape"""
        if len(x.spec.shape) == 2:
            layers.check_softmax(type(self).__name__, self.activation, x.spec.shape[-1])
        return bend(self.activation, x)


class _State(Variable):
    excluded = True  # so that `Module.named` leaves it out: it is no weight

    def __reduce__(self):
        return _State, (self.numpy(), self.name, False)


class Dropout(Layer, layers.Dropout):
    """Dropout of levels, but its random state is not among the layer's weights."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.state = _State(self.state, trainable=False)


LAYERS = {kind.__name__: kind for kind in (Layer, Dense, Activation, Dropout)}
LAYERS |= behind(Layer, layers, "BatchNormalization")

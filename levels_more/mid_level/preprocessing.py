"""Layers without weights to train: inputs brought to one scale, other shapes, functions of your own as layers."""

import math

import numpy as np

from levels import mid_level
from levels.low_level import Variable, sqrt
from levels.support.checks import positive
from levels_more.checks import as_python, called, number, sizes
from levels_more.low_level.activations import leaky_relu
from levels_more.low_level.ops import cast, maximum, reshape
from levels_more.mid_level.base_layer import Layer


class Normalization(Layer):
    """(x - mean) / √variance of each column: of the `mean` and `variance` given, or of what `adapt` sees.

    `axis=None` takes one mean and one variance for all numbers. Until it has seen anything it changes nothing. Raises
    ValueError for another axis.
    """

    def __init__(self, axis=-1, mean=None, variance=None, **options):
        super().__init__(**options)
        if axis not in (-1, None):
            raise ValueError(f"Normalization: axis is {axis!r}; expected -1, the columns, or None, all numbers")
        self.axis, self.given = as_python(axis), (mean, variance)

    def build(self, shape):
        columns = shape[-1:] if self.axis == -1 else ()
        for name, value, first in zip(("mean", "variance"), self.given, (0.0, 1.0), strict=True):
            values = np.broadcast_to(np.asarray(first if value is None else value, self.dtype or "float32"), columns)
            setattr(self, name, Variable(values.copy(), trainable=False))
        self.built = True

    def adapt(self, data):
        """Take mean and variance of these rows: an array [rows, …], a table, or a Dataset of such arrays."""
        rows = np.concatenate([*map(np.asarray, data)]) if isinstance(data, mid_level.Dataset) else np.asarray(data)
        rows = np.asarray(rows, np.float64)
        if not self.built:
            self.build(rows.shape)
        axes = tuple(range(rows.ndim - 1)) if self.axis == -1 else None
        for variable, value in ((self.mean, rows.mean(axes)), (self.variance, rows.var(axes))):
            variable.assign(value.astype(variable.dtype))

    def call(self, x):
        x = x if x.dtype.kind == "f" else cast(x, self.mean.dtype)
        return (x - self.mean) / maximum(sqrt(self.variance), 1e-7)


class Rescaling(Layer):
    """x·scale + offset, of each number: Rescaling(1 / 255) brings bytes to numbers from 0 to 1."""

    def __init__(self, scale, offset=0.0, **options):
        super().__init__(**options)
        self.scale, self.offset = (
            float(number(f"Rescaling: {n}", v)) for n, v in (("scale", scale), ("offset", offset))
        )

    def call(self, x):
        return (x if x.dtype.kind == "f" else cast(x, self.dtype)) * self.scale + self.offset


class Lambda(Layer):
    """A function of yours as a layer."""

    def __init__(self, function, **options):
        super().__init__(**options)
        self.function = called("Lambda: function", function)

    def call(self, x):
        return self.function(x)


class Reshape(Layer):
    """x[batch, …] -> [batch, *target_shape]; one size may be -1, which is what is left."""

    def __init__(self, target_shape, **options):
        super().__init__(**options)
        self.target_shape = tuple(target_shape)
        sizes("Reshape: target_shape", [size for size in self.target_shape if size != -1])

    def call(self, x):
        left = math.prod(x.shape[1:]) // math.prod(size for size in self.target_shape if size != -1)
        return reshape(x, (-1, *(left if size == -1 else size for size in self.target_shape)))


class LeakyReLU(Layer):
    """x where it is positive, else negative_slope·x (Maas et al., 2013)"""

    def __init__(self, negative_slope=0.3, **options):
        super().__init__(**options)
        self.negative_slope = positive("LeakyReLU: negative_slope", negative_slope, zero=True)

    def call(self, x):
        return leaky_relu(x, self.negative_slope)

"""Layers without a matrix that programs for Keras use: bends with numbers of their own, noise, and other shapes."""

from levels.low_level import exp, reduce_sum, sqrt
from levels.mid_level import Layer, at_least, positive
from levels_more.checks import expect
from levels_more.low_level.ops import absolute, maximum, minimum, transpose, where
from levels_more.low_level.shape import expand_dims, tile
from levels_more.mid_level.layers import TRAINING, Drawing


class ELU(Layer):
    """x where it is positive, else alpha·(exp(x) - 1) (Clevert et al., 2016)"""

    def __init__(self, alpha=1.0, **options):
        super().__init__(**options)
        self.alpha = positive("ELU: alpha", alpha, zero=True)

    def call(self, x):
        """x[batch, …] -> the same shape."""
        return where(x > 0.0, x, self.alpha * (exp(minimum(x, 0.0)) - 1.0))


class PReLU(Layer):
    """x where it is positive, else alpha·x, an alpha [inputs] that is trained (He et al., 2015)"""

    def __init__(self, alpha_initializer="zeros", **options):
        super().__init__(**options)
        self.initializer = alpha_initializer

    def build(self, shape):
        self.alpha = self.add_weight(tuple(shape[1:]), self.initializer)

    def call(self, x):
        """x[batch, …] -> the same shape."""
        return maximum(x, 0.0) - self.alpha * maximum(-x, 0.0)


class ThresholdedReLU(Layer):
    """x where it is above theta, else 0 (Konda et al., 2015)"""

    def __init__(self, theta=1.0, **options):
        super().__init__(**options)
        self.theta = positive("ThresholdedReLU: theta", theta, zero=True)

    def call(self, x):
        """x[batch, …] -> the same shape."""
        return where(x > self.theta, x, 0.0)


class UnitNormalization(Layer):
    """x / √Σx², along the last axis."""

    def call(self, x):
        """x[batch, …] -> the same shape."""
        return x / sqrt(maximum(reduce_sum(x * x, -1, keepdims=True), 1e-12))


class GaussianNoise(Drawing):
    """x + a normal number of that standard deviation, in training; else x."""

    def __init__(self, stddev, seed=None, **options):
        super().__init__(seed=seed, **options)
        self.stddev = positive("GaussianNoise: stddev", stddev, zero=True)

    def call(self, x):
        """x[batch, …] -> the same shape."""
        if not TRAINING.now:
            return x
        return x + self.stddev * self.drawn("random_normal", x)


class RepeatVector(Layer):
    """x[batch, inputs] -> [batch, n, inputs], the same n times."""

    def __init__(self, n, **options):
        super().__init__(**options)
        self.n = at_least(1, "RepeatVector: n", n)

    def call(self, x):
        """x[batch, inputs] -> [batch, n, inputs]"""
        return tile(expand_dims(x, 1), (1, self.n, 1))


class Permute(Layer):
    """x[batch, …] with its axes behind the first in another order: Permute((2, 1)) exchanges two. Raises TypeError."""

    def __init__(self, dims, **options):
        super().__init__(**options)
        self.dims = tuple(dims)
        fits = sorted(self.dims) == [*range(1, len(self.dims) + 1)]
        expect(fits, "Permute: dims", dims, "each axis behind the first once, counted from 1")

    def call(self, x):
        """x[batch, …] -> the same axes in that order."""
        return transpose(x, (0, *self.dims))


class ActivityRegularization(Layer):
    """x as it is; l1·Σ|x| + l2·Σx² is added to the loss."""

    def __init__(self, l1=0.0, l2=0.0, **options):
        super().__init__(**options)
        self.l1, self.l2 = (positive(f"ActivityRegularization: {n}", v, zero=True) for n, v in (("l1", l1), ("l2", l2)))

    def call(self, x):
        """x[batch, …] -> x"""
        self.add_loss(self.l1 * reduce_sum(absolute(x)) + self.l2 * reduce_sum(x * x))
        return x


class Dot(Layer):
    """Two inputs [batch, inputs] -> [batch, 1], the sum of their products. Raises ValueError for more axes."""

    def __init__(self, axes=1, normalize=False, **options):
        super().__init__(**options)
        expect(axes in (1, -1, (1, 1), [1, 1]), "Dot: axes", axes, "1, the numbers of a row")
        self.normalize = normalize

    def call(self, x):
        """[x, y], both [batch, inputs] -> [batch, 1]"""
        if [len(part.spec.shape) for part in x] != [2, 2]:
            raise ValueError(f"Dot: got {[part.spec for part in x]}; expected two inputs [batch, inputs]")
        if self.normalize:
            x = [part / sqrt(maximum(reduce_sum(part * part, -1, keepdims=True), 1e-12)) for part in x]
        return reduce_sum(x[0] * x[1], -1, keepdims=True)

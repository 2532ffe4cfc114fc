"""Losses by Keras' formulas that neither task needs: of margins, of logarithms, of shares, of directions; and softer labels."""

import math

from levels.low_level import clip, log, nn, reduce_sum, sqrt
from levels.mid_level import positive
from levels_more.low_level.ops import absolute, cast, maximum, reduce_max, reduce_min
from levels_more.mid_level import losses
from levels_more.mid_level.losses import Reduced

_LEAST = 1e-7  # Keras' ε


class LogCosh(Reduced):
    """log(cosh(y_pred - y_true)), in a form that never overflows."""

    def call(self, y_true, y_pred):
        """The loss of each number of y_true and y_pred [batch, …]."""
        error = y_pred - y_true
        return error + nn.softplus(-2.0 * error) - math.log(2.0)


class Hinge(Reduced):
    """max(0, 1 - y·p) for y of -1 and 1; a batch that has 0 and 1 only is taken as -1 and 1 (Vapnik, 1995)."""

    def call(self, y_true, y_pred):
        """The loss of each number of y_true and y_pred [batch, …]."""
        binary = reduce_min(cast(y_true * (y_true - 1.0) == 0.0, y_pred.dtype))
        y = binary * (2.0 * y_true - 1.0) + (1.0 - binary) * y_true
        return maximum(1.0 - y * y_pred, 0.0)


class SquaredHinge(Hinge):
    """The square of the same."""

    def call(self, y_true, y_pred):
        """The loss of each number of y_true and y_pred [batch, …]."""
        return super().call(y_true, y_pred) ** 2


class CategoricalHinge(Reduced):
    """max(0, 1 + the largest p of a wrong class - p of the right one) for y_true and p [batch, classes]."""

    def call(self, y_true, y_pred):
        """The loss of each row of y_true and y_pred [batch, classes]."""
        right, wrong = reduce_sum(y_true * y_pred, -1), reduce_max((1.0 - y_true) * y_pred, -1)
        return maximum(wrong - right + 1.0, 0.0)


class KLDivergence(Reduced):
    """Σ y·log(y / p) over classes, both kept above 1e-7 (Kullback and Leibler, 1951)."""

    def call(self, y_true, y_pred):
        """The loss of each row of y_true and y_pred [batch, classes]."""
        y, p = (clip(x, _LEAST, 1.0) for x in (y_true, y_pred))
        return reduce_sum(y * log(y / p), -1)


class Poisson(Reduced):
    """p - y·log(p + 1e-7): a count y where p was expected."""

    def call(self, y_true, y_pred):
        """The loss of each number of y_true and y_pred [batch, …]."""
        return y_pred - y_true * log(y_pred + _LEAST)


class CosineSimilarity(Reduced):
    """-cos of the angle between y_true and y_pred [batch, …], along their last axis: -1 where they point one way."""

    def call(self, y_true, y_pred):
        """The loss of each row of y_true and y_pred [batch, …]."""
        y, p = (x / sqrt(maximum(reduce_sum(x * x, -1, keepdims=True), 1e-12)) for x in (y_true, y_pred))
        return -reduce_sum(y * p, -1)


class MeanAbsolutePercentageError(Reduced):
    """100·|y - p| / |y|, where |y| counts as 1e-7 or more."""

    def call(self, y_true, y_pred):
        """The loss of each number of y_true and y_pred [batch, …]."""
        return 100.0 * absolute((y_true - y_pred) / maximum(absolute(y_true), _LEAST))


class MeanSquaredLogarithmicError(Reduced):
    """(log(1 + p) - log(1 + y))², both kept above 1e-7."""

    def call(self, y_true, y_pred):
        """The loss of each number of y_true and y_pred [batch, …]."""
        y, p = (log(1.0 + maximum(x, _LEAST)) for x in (y_true, y_pred))
        return (p - y) ** 2


class BinaryCrossentropy(losses.BinaryCrossentropy):
    """That of levels; with `label_smoothing` s a y counts as y·(1 - s) + s / 2 (Szegedy et al., 2016)."""

    def __init__(self, from_logits=False, label_smoothing=0.0, **options):
        super().__init__(from_logits, **options)
        self.smoothing = positive(f"{self}: label_smoothing", label_smoothing, 1.0, zero=True)

    def call(self, y_true, y_pred):
        """The loss of each number of y_true and y_pred [batch, …]."""
        y = y_true * (1.0 - self.smoothing) + 0.5 * self.smoothing if self.smoothing else y_true
        return super().call(y, y_pred)


class BinaryFocalCrossentropy(BinaryCrossentropy):
    """(1 - q)^gamma times the crossentropy, q the probability of what is true: what is known already counts less.

    With `apply_class_balancing` what is 1 counts alpha times, what is 0 1 - alpha times. Lin et al., 2017.
    """

    def __init__(self, apply_class_balancing=False, alpha=0.25, gamma=2.0, **options):
        super().__init__(**options)
        self.alpha = positive(f"{self}: alpha", alpha) if apply_class_balancing else None
        self.gamma = positive(f"{self}: gamma", gamma, zero=True)

    def call(self, y_true, y_pred):
        """The loss of each number of y_true and y_pred [batch, …]."""
        p = nn.sigmoid(y_pred) if self.from_logits else clip(y_pred, _LEAST, 1.0 - _LEAST)
        y = y_true * (1.0 - self.smoothing) + 0.5 * self.smoothing
        known = y * p + (1.0 - y) * (1.0 - p)
        each = (1.0 - known) ** self.gamma * super().call(y_true, y_pred)
        return each if self.alpha is None else each * (y * self.alpha + (1.0 - y) * (1.0 - self.alpha))


class CategoricalCrossentropy(losses.CategoricalCrossentropy):
    """That of levels; with `label_smoothing` s each y counts as y·(1 - s) + s / classes (Szegedy et al., 2016)."""

    def __init__(self, from_logits=False, label_smoothing=0.0, **options):
        super().__init__(from_logits, **options)
        self.smoothing = positive(f"{self}: label_smoothing", label_smoothing, 1.0, zero=True)

    def call(self, y_true, y_pred):
        """The loss of each row of y_true and y_pred [batch, classes]."""
        s = self.smoothing
        return super().call(y_true * (1.0 - s) + s / y_pred.spec.shape[-1] if s else y_true, y_pred)

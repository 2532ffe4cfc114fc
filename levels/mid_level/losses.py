"""Losses: one number that says how wrong a prediction is."""

# Built from 04_mid_level.ipynb: edit there, then run its last cell.

from levels.low_level import as_tensor, clip, log, reduce_mean
from levels.support.inputs import check_floats, check_labels, check_unweighted
from levels.support.parts import Reconstructible


def squared_error(y_true, y_pred):
    """(y_pred - y_true)², number by number."""
    error = y_pred - y_true
    return error * error


class Loss(Reconstructible):
    """A loss: the mean of the array that `call(y_true, y_pred)` returns."""

    probabilities = False  # whether labels and predictions must be probabilities
    classes = False  # whether y_true holds class numbers

    def __call__(self, y_true, y_pred, sample_weight=None):
        """Return the loss, one number. (`sample_weight` is for `levels_more`.)"""
        check_unweighted(self, sample_weight)
        return reduce_mean(self.call(*self.checked(y_true, y_pred)))

    def checked(self, y_true, y_pred):
        """Return both as tensors. Raise ValueError or TypeError if they do not fit."""
        y_pred = as_tensor(y_pred)
        y_true = as_tensor(y_true, y_pred)
        self.check(y_true, y_pred)
        check_floats(self, y_true, y_pred)
        return y_true, y_pred

    def check(self, y_true, y_pred):
        """Raise ValueError for unequal shapes, and for impossible probabilities."""
        check_labels(self, y_true, y_pred)

    def __repr__(self):
        return type(self).__name__


class MeanSquaredError(Loss):
    """mean((y_pred - y_true)²)"""

    def call(self, y_true, y_pred):
        return squared_error(y_true, y_pred)


def cross_entropy(y_true, p):
    """-log of p where y_true is 1, -log of 1 - p where it is 0, number by number."""
    return -(y_true * log(p) + (1.0 - y_true) * log(1.0 - p))


class BinaryCrossentropy(Loss):
    """-mean(y_true·log p + (1 - y_true)·log(1 - p)), p clipped to [1e-7, 1 - 1e-7]."""

    probabilities = True

    def call(self, y_true, y_pred):
        return cross_entropy(y_true, clip(y_pred, 1e-7, 1.0 - 1e-7))


LOSSES = {"mse": MeanSquaredError, "mean_squared_error": MeanSquaredError}
LOSSES["binary_crossentropy"] = BinaryCrossentropy

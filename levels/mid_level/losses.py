"""Losses: one number that says how wrong a prediction is."""

# Built from 04_mid_level.ipynb: edit there, then run its last cell.

import numpy as np

from levels.low_level import Tensor, as_tensor, clip, log, reduce_mean

from .layers import Reconstructible


def squared_error(y_true, y_pred):
    """(y_pred - y_true)², number by number."""
    error = y_pred - y_true
    return error * error


class Loss(Reconstructible):
    """A loss: the mean of the array that `call(y_true, y_pred)` returns."""

    probabilities = False  # whether both must be
    classes = False  # whether y_true holds class numbers

    def __init__(self):
        """Take no arguments. (`Reconstructible` alone would accept any.)"""

    def __call__(self, y_true, y_pred, sample_weight=None):
        """Return the loss, one number. The core's losses refuse weights of samples."""
        if sample_weight is not None:
            told = "weights of samples are for the losses of levels_more.mid_level"
            raise NotImplementedError(f"{self}: {told}")
        return reduce_mean(self.call(*self.checked(y_true, y_pred)))

    def checked(self, y_true, y_pred):
        """Return both as tensors. Raises as `check`, and TypeError for other labels."""
        y_pred = as_tensor(y_pred)
        y_true = as_tensor(y_true, y_pred)
        self.check(y_true, y_pred)
        if y_true.dtype.kind != "f" and not self.classes:
            cure = f"{y_pred.dtype}, as constant(y, {y_pred.dtype.name!r}) makes it"
            raise TypeError(f"{self}: y_true is {y_true.spec}; expected {cure}")
        return y_true, y_pred

    def check(self, y_true, y_pred):
        """Raise ValueError for unequal shapes, and for no probabilities."""
        if y_true.spec.shape != y_pred.spec.shape:
            flat = (*y_true.spec.shape, 1) == y_pred.spec.shape
            cure = "equal shapes; write y[:, None]" if flat else "equal shapes"
            given = f"y_true is {y_true.spec} and y_pred is {y_pred.spec}"
            raise ValueError(f"{self}: {given}; expected {cure}")
        if self.probabilities:
            self.check_probabilities("y_true", y_true)
            self.check_probabilities("y_pred", y_pred)

    def check_probabilities(self, name, x):
        """Raise ValueError for numbers outside [0, 1]. A trace has no numbers."""
        p = x.numpy() if type(x) is Tensor else np.empty(0)
        beyond = p[(p < 0.0) | (p > 1.0)]
        if beyond.size:
            wrong = float(max(beyond, key=lambda p: abs(p - 0.5)))
            told = f"{name} holds {wrong:.6g}; expected probabilities, from 0 to 1"
            raise ValueError(f"{self}: {told}")

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

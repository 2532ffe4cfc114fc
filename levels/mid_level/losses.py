"""Losses: one number that says how wrong a prediction is."""

# Built from 04_mid_level.ipynb: edit there, then run its last cell.

from levels import plugged
from levels.low_level import (
    Symbol,
    as_tensor,
    cast,
    clip,
    exp,
    log,
    maximum,
    nn,
    one_hot,
    reduce_mean,
    reduce_sum,
    reshape,
)

from .layers import Made, absolute


def weighted(loss, each, sample_weight):
    """What each sample gives, [batch, …], times its weight [batch]."""
    weight, samples = as_tensor(sample_weight, each), each.spec.shape[:1]
    if weight.spec.shape != samples:
        raise ValueError(f"{loss}: sample_weight is {weight.spec}; expected one weight a sample, {samples}")
    return each * reshape(weight, samples + (1,) * (len(each.spec.shape) - 1))


class Loss(Made):
    """The mean, over all samples, of what `call(y_true, y_pred)` gives for each."""

    def __init__(self):
        """No arguments; without this line Python would take any."""

    def __call__(self, y_true, y_pred, sample_weight=None):
        """One number. `sample_weight` [batch] multiplies what each sample gives, before the mean."""
        y_pred = as_tensor(y_pred)
        y_true = as_tensor(y_true, y_pred)
        self.check(y_true, y_pred)
        if y_true.spec.shape == y_pred.spec.shape and y_true.dtype.kind != "f":  # yes and no, as 1 and 0
            y_true = cast(y_true, y_pred.dtype)
        each = self.call(y_true, y_pred)
        return reduce_mean(each if sample_weight is None else weighted(self, each, sample_weight))

    def check(self, y_true, y_pred):
        """Raise ValueError where the two do not belong together."""
        if y_true.spec.shape != y_pred.spec.shape:
            cure = "; write y[:, None]" if y_true.spec.shape == y_pred.spec.shape[:-1] else ""
            raise ValueError(
                f"{self}: y_true is {y_true.spec} and y_pred is {y_pred.spec}; expected equal shapes{cure}"
            )

    def __repr__(self):
        return type(self).__name__


class MeanSquaredError(Loss):
    """mean((y_pred - y_true)²)"""

    def call(self, y_true, y_pred):
        error = y_pred - y_true
        return error * error


def within(p):
    """Probabilities, cut off so that their logarithm stays finite."""
    return clip(p, 1e-7, 1.0 - 1e-7)


def check_probabilities(loss, name, x):
    """Raise ValueError for numbers outside of [0, 1]. While a function is traced, nobody knows them: they pass."""
    if not isinstance(x, Symbol) and ((x.numpy() < 0.0) | (x.numpy() > 1.0)).any():
        wrong = float(max(x.numpy().ravel(), key=lambda p: abs(p - 0.5)))
        raise ValueError(f"{loss}: {name} holds {wrong:.6g}; expected probabilities, from 0 to 1")


class Crossentropy(Loss):
    """A loss of probabilities or, with `from_logits=True`, of the numbers that they are made of."""

    def __init__(self, from_logits=False):
        self.from_logits = from_logits

    def check(self, y_true, y_pred):
        super().check(y_true, y_pred)
        check_probabilities(self, "y_true", y_true)
        if not self.from_logits:
            check_probabilities(self, "y_pred", y_pred)


class BinaryCrossentropy(Crossentropy):
    """-mean(y_true·log p + (1 - y_true)·log(1 - p)), with p = y_pred kept within [1e-7, 1 - 1e-7].

    `from_logits=True` takes the z of p = 1 / (1 + exp(-z)) in its place, and cuts nothing off.
    """

    def call(self, y_true, y_pred):
        if self.from_logits:
            z = y_pred
            return maximum(z, 0.0) - y_true * z + log(1.0 + exp(-maximum(z, -z)))
        p = within(y_pred)
        return -(y_true * log(p) + (1.0 - y_true) * log(1.0 - p))


class MeanAbsoluteError(Loss):
    """mean(|y_pred - y_true|)"""

    def call(self, y_true, y_pred):
        return absolute(y_pred - y_true)


class CategoricalCrossentropy(Crossentropy):
    """The mean of -Σ y_true·log p over samples, for y_true and p [batch, classes], p scaled to a sum of 1.

    `from_logits=True` takes the z of p = softmax(z) in the place of p.
    """

    def call(self, y_true, y_pred):
        if self.from_logits:
            return -reduce_sum(y_true * nn.log_softmax(y_pred), -1)
        return -reduce_sum(y_true * log(within(y_pred / reduce_sum(y_pred, -1, keepdims=True))), -1)


def check_classes(loss, y_true, y_pred):
    """Raise ValueError unless y_true [batch] or [batch, 1] holds numbers of classes of y_pred [batch, classes]."""
    classes, samples = y_pred.spec.shape[-1], y_pred.spec.shape[:-1]
    if y_true.spec.dtype.kind != "i" or y_true.spec.shape not in (samples, (*samples, 1)):
        given = f"y_true is {y_true.spec} and y_pred {y_pred.spec}"
        raise ValueError(f"{loss}: {given}; expected whole numbers {samples}")
    if not isinstance(y_true, Symbol) and ((y_true.numpy() < 0) | (y_true.numpy() >= classes)).any():
        wrong = max(y_true.numpy().ravel(), key=lambda k: abs(k - (classes - 1) / 2))
        raise ValueError(f"{loss}: y_true holds {wrong}; there are {classes} classes, 0 to {classes - 1}")


class SparseCategoricalCrossentropy(CategoricalCrossentropy):
    """The same for y_true [batch] or [batch, 1], the numbers of the classes."""

    def check(self, y_true, y_pred):
        check_classes(self, y_true, y_pred)
        if not self.from_logits:
            check_probabilities(self, "y_pred", y_pred)

    def call(self, y_true, y_pred):
        *samples, classes = y_pred.spec.shape
        return super().call(one_hot(reshape(y_true, samples), classes, y_pred.dtype), y_pred)


LOSSES = {
    "mse": MeanSquaredError,
    "mean_squared_error": MeanSquaredError,
    "mae": MeanAbsoluteError,
    "mean_absolute_error": MeanAbsoluteError,
    "binary_crossentropy": BinaryCrossentropy,
    "categorical_crossentropy": CategoricalCrossentropy,
    "sparse_categorical_crossentropy": SparseCategoricalCrossentropy,
}


__getattr__, __dir__ = plugged(__name__)  # what is missing here is looked up in levels_more

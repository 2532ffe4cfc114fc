"""Losses and metrics by Keras' rules.

Targets take the shape of predictions; a loss function gives a number for each row. The result of a metric is a tensor.
A metric with the name of a loss is the mean of that loss over all samples.
"""

import functools

import numpy as np

from levels.low_level import as_tensor, clip, constant, log
from levels_more import mid_level
from levels_more.high_level.training import table_key
from levels_more.low_level.ops import cast, reshape
from levels_more.mid_level import losses, metrics
from levels_more.mid_level.names import snake_case
from levels_more.tensorflow.keras_layers import FLOAT, behind
from levels_more.tensorflow.keras_logits import logits_of
from levels_more.tensorflow.nested import numbers


def alike(y_true, y_pred):
    """(y_true, y_pred): y_true [batch] becomes [batch, 1] if y_pred has that shape, and floats get y_pred's dtype."""
    y_pred = as_tensor(y_pred)
    y_true = numbers(y_true)
    y_true = reshape(y_true, y_pred.shape) if (*y_true.shape, 1) == y_pred.shape else y_true
    return cast(y_true, y_pred.dtype) if y_true.dtype.kind == "f" else y_true, y_pred


class Loss(losses.Reduced):
    """The mean of the result of `call(y_true, y_pred)`, or another reduction as `reduction` says."""

    def __call__(self, y_true, y_pred, sample_weight=None):
        return super().__call__(*alike(y_true, y_pred), sample_weight)


class Crossentropy(Loss):
    """A loss of probabilities. It uses the logits that they were made of, if Keras keeps them. See `keras_logits`.

    Its `check` raises ValueError for from_logits=True beside the result of a sigmoid or softmax.
    """

    casts = True  # whether probabilities of another dtype than Keras' default one are cast, which loses their logits

    def logits(self, y_pred):
        """Return the logits that Keras keeps for y_pred, or None."""
        op = "sigmoid" if isinstance(self, losses.BinaryCrossentropy) else "softmax"
        return logits_of(y_pred, op) if y_pred.dtype == FLOAT[0] or not self.casts else None

    def check(self, y_true, y_pred):
        super().check(y_true, y_pred)
        if self.from_logits and y_true is not y_pred and self.logits(y_pred) is not None:
            cure = "leave its activation away, or from_logits=True"
            raise ValueError(f"{self}: from_logits=True, but y_pred is the result of a sigmoid or softmax; {cure}")

    def call(self, y_true, y_pred):
        logits = None if self.from_logits else self.logits(y_pred)
        if logits is None and isinstance(self, losses.SparseCategoricalCrossentropy) and not self.from_logits:
            logits = log(clip(y_pred, 1e-7, 1.0 - 1e-7))  # Keras clips before it scales to a sum of 1
        if logits is None:
            return super().call(y_true, y_pred)
        return self.of_logits.call(y_true, logits)


def loss_for(loss):
    """The loss of a name, or a user's function, called as in Keras: with y_true in the shape and dtype of y_pred."""
    loss = loss() if isinstance(loss, type) else loss
    if isinstance(loss, str):
        return WORDS[loss.lower()]() if loss.lower() in WORDS else loss
    if isinstance(loss, mid_level.Loss) or not callable(loss):
        return loss
    return functools.wraps(loss)(functools.partial(_on_alike, loss))


def _on_alike(loss, y_true, y_pred):
    return loss(*alike(y_true, y_pred))


def rows_of(kind):
    """A class of losses as a function of y_true and y_pred [batch, …] that returns a number for each sample."""

    def rows(y_true, y_pred, **options):
        loss = kind(**options)
        loss.casts = False
        return loss.each(*alike(y_true, y_pred))

    rows.__name__ = rows.__qualname__ = snake_case(kind.__name__)
    rows.__module__ = "levels_more.tensorflow.keras.losses"  # where a pickle looks for it
    return rows


KINDS = behind(Loss, losses, "MeanSquaredError MeanAbsoluteError")
_CROSS = behind(Crossentropy, losses, "BinaryCrossentropy CategoricalCrossentropy SparseCategoricalCrossentropy")
for _name, _kind in _CROSS.items():
    _kind.of_logits = getattr(losses, _name)(from_logits=True)  # the same loss of logits
KINDS |= _CROSS
SHORT = {"mse": "mean_squared_error", "mae": "mean_absolute_error"}
WORDS = {snake_case(name): kind for name, kind in KINDS.items()}  # the names for `compile`
WORDS |= {short: WORDS[name] for short, name in SHORT.items()}
_ROWS = {kind: rows_of(kind) for kind in KINDS.values()}
LOSSES = {"Loss": Loss} | KINDS | {word: _ROWS[kind] for word, kind in WORDS.items()}


class Metric(mid_level.Metric):
    """Sums over all batches. `result` is a tensor, and raises TypeError while a function is traced."""

    def __init__(self, *args, dtype=None, **options):
        super().__init__(*args, **options)

    def result(self):
        """The metric over all batches since the last `reset_state`, a tensor."""
        return constant(np.asarray(super().result(), FLOAT[0]))

    def reset_state(self):
        """Forget all batches."""
        for variable in self.variables:
            variable.assign(np.zeros(variable.shape, variable.dtype))

    def reset_states(self):
        """The former name of `reset_state`."""
        self.reset_state()


class Comparison(Metric):
    """A metric of y_true and y_pred, which may have the shapes [batch] and [batch, 1]."""

    def update_state(self, y_true, y_pred, sample_weight=None):
        """Add a batch. Each row has the weight 1, or its `sample_weight` [batch]."""
        super().update_state(*alike(y_true, y_pred), sample_weight)


class AccuracyByShape(Comparison, metrics.AccuracyByShape):
    """The metric of the name "accuracy": the accuracy that fits the shapes."""


class MeanLoss(Comparison, metrics.MeanLoss):
    """The mean of a loss over all samples so far."""


def binary_accuracy(y_true, y_pred, threshold=0.5):
    """1 for each number of y_pred [batch, …] whose class (1 above the threshold, else 0) equals y_true, else 0."""
    y_true, y_pred = alike(y_true, y_pred)
    return cast(cast(y_pred > threshold, y_pred.dtype) == cast(y_true, y_pred.dtype), FLOAT[0])


def of_loss(kind):
    """A function that makes the metric of a loss: its mean over all samples."""
    return lambda name=None, **options: MeanLoss(kind(**options), name)


def metric_for(metric):
    """The metric for a name, which it gets as its name, or for a class. Other values are returned as they are."""
    if not isinstance(metric, str):
        return metric() if isinstance(metric, type) else metric
    word = table_key(metrics.METRICS, metric)
    if word not in BY_NAME:
        return metric
    found = BY_NAME[word](name=metric)
    found.by_name = True
    return found


_NAMES = "BinaryAccuracy CategoricalAccuracy SparseCategoricalAccuracy Precision Recall AUC"
METRICS = behind(Metric, metrics, "Mean") | behind(Comparison, metrics, _NAMES)
METRICS |= {name: of_loss(KINDS[name]) for name in ("MeanSquaredError", "MeanAbsoluteError", "BinaryCrossentropy")}
BY_NAME = {snake_case(name): of_loss(kind) for name, kind in KINDS.items()}  # the names for `compile`
BY_NAME |= {snake_case(name): kind for name, kind in METRICS.items()}
BY_NAME |= {short: BY_NAME[name] for short, name in SHORT.items()}
BY_NAME |= dict.fromkeys(("acc", "accuracy"), AccuracyByShape)
METRICS |= {"Metric": Metric} | {name: rows for name, rows in LOSSES.items() if not isinstance(rows, type)}
METRICS["binary_accuracy"] = binary_accuracy

"""Metrics: how good a model is, over all batches so far."""

import functools
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from levels.low_level import apply, as_tensor, reduce_sum, sigmoid
from levels.mid_level import Loss, losses
from levels.support.checks import check_int, check_positive, real
from levels.support.inputs import check_probabilities
from levels_more.checks import called, expect, whole_as_int64
from levels_more.low_level.ops import arg_max, cast, concat, maximum, reshape, softmax
from levels_more.mid_level.base_metric import Metric, ratio
from levels_more.mid_level.losses import LOSSES, check_classes
from levels_more.mid_level.names import snake_case


def activation_of(loss):
    """The function that converts the logits of this loss to probabilities."""
    return sigmoid if isinstance(loss, losses.BinaryCrossentropy) else softmax


def expect_logits(metrics, losses):
    """Make the metrics that were given by name expect logits [batch, …] if the (first) loss takes logits.

    For example, sigmoid(z) > 0.5 is z > 0. A metric that is given as an object keeps its threshold, as in Keras.
    """
    for metric in metrics:
        if getattr(metric, "by_name", False) and getattr(losses[0], "from_logits", False):
            metric.of_logits(losses[0])


class _Binary(Metric):
    """The base class: a prediction above `threshold` counts as 1, any other (also NaN) as 0."""

    def check(self, y_true, y_pred):
        super().check(y_true, y_pred)
        check_probabilities(self, "y_true", y_true)

    def of_logits(self, loss):
        self.threshold, self.activation = (0.0, None) if isinstance(loss, losses.BinaryCrossentropy) else (0.5, softmax)

    def said(self, y_pred):
        return cast(y_pred > self.threshold, y_pred.dtype)


class BinaryAccuracy(_Binary):
    """The share of correct predictions. A prediction above the threshold counts as 1, any other (also NaN) as 0."""

    def __init__(self, threshold: float = 0.5, **options):
        super().__init__(**options)
        self.threshold = check_positive(f"{self.name}: the threshold", threshold, 1.0, zero=True)

    def parts(self, y_true, y_pred):
        return (cast(self.said(y_pred) == y_true, y_pred.dtype),)


class Mean(Metric):
    """The mean of all values so far, of tensors [batch, …] or single numbers."""

    def update_state(self, values: "ArrayLike", sample_weight: "ArrayLike | None" = None) -> None:
        values = as_tensor(whole_as_int64(values))
        values = values if values.spec.shape else reshape(values, (1,))
        super().update_state(values, values, sample_weight)

    def parts(self, values, _):
        return (values,)

    def sums(self, weight, values):
        return reduce_sum(weight), reduce_sum(weight * values)  # of all: the next values may have another shape


class MeanLoss(Metric):
    """The mean of a loss over all samples so far."""

    def __init__(self, loss: Loss, name: str | None = None):
        super().__init__(name or snake_case(type(loss).__name__))
        expect(isinstance(loss, Loss), "MeanLoss: loss", loss, "a loss, such as MeanSquaredError()")
        self.loss = loss
        self.check = loss.check

    def of_logits(self, loss):
        if self.loss.probabilities and not getattr(self.loss, "from_logits", False):
            self.activation = activation_of(loss)

    def parts(self, y_true, y_pred):
        return (self.loss.call(y_true, y_pred),)


class Calculated(Metric):
    """The mean over all rows of your function(y_true, y_pred), which returns a number for each row, or one number.

    An update raises ValueError if it returns anything else.
    """

    def __init__(self, function: Callable, name: str | None = None):
        super().__init__(name or getattr(function, "__name__", "metric"))
        self.function = called("Calculated: function", function)

    def check(self, y_true, y_pred):
        """Accept any two: the function decides what it takes."""

    def parts(self, y_true, y_pred):
        """Return the function's result for each row. Raises ValueError unless it is a number per row, or one number."""
        rows = y_pred.spec.shape[:1]
        each = as_tensor(self.function(y_true, y_pred))
        each = each if each.dtype.kind == "f" else cast(each, y_pred.dtype)
        if each.spec.shape and each.spec.shape[:1] != rows:
            raise ValueError(f"{self.name}: it gives {each.spec}; expected a number for each of {rows[0]} rows, or one")
        first = reshape(y_pred, (rows[0], -1))[:, 0]
        return (each if each.spec.shape else apply("broadcast_divide", each, first, count=1.0),)


class CategoricalAccuracy(Metric):
    """The share of rows whose largest number has the same index in y_true and y_pred [batch, classes]."""

    def parts(self, y_true, y_pred):
        return (cast(arg_max(y_true, -1) == arg_max(y_pred, -1), y_pred.dtype),)


class SparseCategoricalAccuracy(Metric):
    """Categorical accuracy for y_true [batch] or [batch, 1], the class indices."""

    check = check_classes

    def parts(self, y_true, y_pred):
        return (cast(reshape(y_true, y_pred.spec.shape[:-1]) == arg_max(y_pred, -1), y_pred.dtype),)


class Precision(_Binary):
    """The share of 1s among the rows predicted as 1. It is 0 as long as no row is predicted as 1, as in Keras.

    A label above 0 counts as 1. `thresholds`: a number from 0 to 1; None is 0.5. Raises ValueError for others.
    """

    def __init__(self, thresholds: float | None = None, **options):
        super().__init__(**options)
        self.threshold = 0.5 if thresholds is None else real(thresholds)
        if self.threshold is None or not 0.0 <= self.threshold <= 1.0:
            raise ValueError(f"{type(self).__name__}: thresholds is {thresholds!r:.60}; expected a number from 0 to 1")

    def parts(self, y_true, y_pred):
        return self.said(y_pred), self.said(y_pred) * cast(y_true > 0.0, y_pred.dtype)

    def formula(self, count, called, right):
        return ratio(right, called)


class Recall(Precision):
    """The share of rows predicted as 1 among the rows that are 1."""

    def parts(self, y_true, y_pred):
        true = cast(y_true > 0.0, y_pred.dtype)
        return true, self.said(y_pred) * true


class AUC(_Binary):
    """The area under the ROC curve, for probabilities [batch] or [batch, 1]: `num_thresholds` points, joined by lines.

    A label above 0 counts as 1. A probability outside of [0, 1] makes `result` raise ValueError.
    """

    def __init__(self, num_thresholds: int = 200, **options):
        super().__init__(**options)
        last = check_int(2, "AUC: num_thresholds", num_thresholds) - 1
        inner = np.arange(1, last) / last
        self.threshold = np.array([-1e-7, *inner, 1.0 + 1e-7])

    def of_logits(self, loss):
        self.activation = activation_of(loss)

    def check(self, y_true, y_pred):
        super().check(y_true, y_pred)
        if y_pred.spec.shape[1:] not in ((), (1,)):
            raise ValueError(f"AUC: y_pred is {y_pred.spec}; expected one column")

    def parts(self, y_true, y_pred):
        y_true, y_pred = (reshape(y, y.spec.shape[:1] + (1,)) for y in (y_true, y_pred))
        called = cast(y_pred > self.threshold.astype(y_pred.dtype), y_pred.dtype)  # [batch, thresholds]
        return (
            cast(y_true > 0.0, y_pred.dtype),
            called,
            1.0 - cast(y_pred >= 0.0, y_pred.dtype) * cast(y_pred <= 1.0, y_pred.dtype),
        )

    def sums(self, weight, true, called, outside):
        kinds = concat([weight * true, weight * (1.0 - true)], 1)  # [batch, 2]
        return apply("matmul", kinds, called, transpose_x=True), reduce_sum(outside, 0)

    def formula(self, by_threshold, outside):
        if outside.any():
            raise ValueError("AUC: y_pred has numbers that are no probabilities, from 0 to 1")
        recall, alarms = by_threshold / np.maximum(by_threshold[:, :1], 1e-30)  # at the first threshold all count as 1
        return (-np.diff(alarms) * (recall[1:] + recall[:-1])).sum() / 2.0


class R2Score(Metric):
    """1 - Σ(y_true - y_pred)² / Σ(y_true - mean)², averaged over the columns; 0 for a column of equal y_true."""

    def parts(self, y_true, y_pred):
        return y_true, (y_true - y_pred) ** 2

    def sums(self, weight, y, squares):
        count = reduce_sum(weight, 0)
        mean = reduce_sum(weight * y, 0) / maximum(count, 1e-30)
        return count, mean, reduce_sum(weight * (y - mean) ** 2, 0), reduce_sum(weight * squares, 0)

    def added(self, count, mean, spread, squares):
        before, old_mean = self.state[:2]
        share = count / maximum(before + count, 1e-30)
        apart = mean - old_mean
        return count, apart * share, spread + apart * apart * before * share, squares

    def formula(self, count, mean, spread, squares):
        return np.where(spread > 0.0, 1.0 - squares / np.where(spread > 0.0, spread, 1.0), 0.0).mean()


class AccuracyByShape(Metric):
    """Binary accuracy for one column, categorical accuracy for equal shapes, else sparse categorical accuracy."""

    threshold = 0.5

    def of_logits(self, loss):
        self.threshold = 0.0  # it is used for one column only, so for a sigmoid

    def fitting(self, y_true, y_pred):
        """The accuracy that fits these shapes."""
        shape = y_pred.spec.shape
        if shape[1:] in ((), (1,)):
            return BinaryAccuracy(self.threshold)
        return CategoricalAccuracy() if y_true.spec.shape == shape else SparseCategoricalAccuracy()

    def check(self, y_true, y_pred):
        self.fitting(y_true, y_pred).check(y_true, y_pred)

    def parts(self, y_true, y_pred):
        return self.fitting(y_true, y_pred).parts(y_true, y_pred)


_NAMED = [Mean, BinaryAccuracy, CategoricalAccuracy, SparseCategoricalAccuracy, Precision, Recall, AUC, R2Score]
METRICS = {name: functools.partial(MeanLoss, kind()) for name, kind in LOSSES.items()}
METRICS.update(
    {snake_case(kind.__name__): kind for kind in _NAMED}, accuracy=functools.partial(AccuracyByShape, "accuracy")
)


def __getattr__(name):
    """`metrics.MeanSquaredError(…)` is the metric of the loss of that name."""
    for kind in LOSSES.values():
        if kind.__name__ == name:
            return lambda *args, **options: MeanLoss(kind(*args, **options))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

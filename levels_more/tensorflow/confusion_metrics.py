"""Metrics that count: right and wrong answers of each kind, places among the best, sums, the area under a curve of precision."""

import numpy as np

from levels.low_level import reduce_sum
from levels.mid_level import at_least
from levels_more.checks import expect
from levels_more.low_level.ops import absolute, arg_max, cast, one_hot, reduce_max, reshape
from levels_more.mid_level import metrics
from levels_more.mid_level.losses import check_classes
from levels_more.mid_level.metrics import BinaryAccuracy, Mean, Metric


class _Counted(BinaryAccuracy):
    """How many numbers of y_pred [batch, …] are of one kind, each row as often as its weight says."""

    def __init__(self, thresholds=None, **options):
        super().__init__(0.5 if thresholds is None else thresholds, **options)

    def formula(self, count, hits):
        return hits.sum()


class TruePositives(_Counted):
    """How many that are 1 were called 1."""

    def parts(self, y_true, y_pred):
        """1 for each of them in y_true and y_pred [batch, …]."""
        return (self.said(y_pred) * y_true,)


class TrueNegatives(_Counted):
    """How many that are 0 were called 0."""

    def parts(self, y_true, y_pred):
        """1 for each of them in y_true and y_pred [batch, …]."""
        return ((1.0 - self.said(y_pred)) * (1.0 - y_true),)


class FalsePositives(_Counted):
    """How many that are 0 were called 1."""

    def parts(self, y_true, y_pred):
        """1 for each of them in y_true and y_pred [batch, …]."""
        return (self.said(y_pred) * (1.0 - y_true),)


class FalseNegatives(_Counted):
    """How many that are 1 were called 0."""

    def parts(self, y_true, y_pred):
        """1 for each of them in y_true and y_pred [batch, …]."""
        return ((1.0 - self.said(y_pred)) * y_true,)


class Sum(Mean):
    """The sum of all values so far, of tensors [batch, …] or single numbers."""

    def formula(self, count, total):
        return total.sum()


class SparseTopKCategoricalAccuracy(Metric):
    """The share of rows of y_pred [batch, classes] in which fewer than k classes have more than that of y_true [batch]."""

    check = check_classes

    def __init__(self, k=5, **options):
        super().__init__(**options)
        self.k = at_least(1, f"{self.name}: k", k)

    def classes(self, y_true, y_pred):
        """The numbers of the right classes [batch], int64."""
        return reshape(y_true, y_pred.spec.shape[:-1])

    def parts(self, y_true, y_pred):
        """1 for each such row of y_pred [batch, classes]. No number, NaN, is not among the best."""
        right = one_hot(self.classes(y_true, y_pred), y_pred.spec.shape[-1], y_pred.dtype)
        own = reduce_sum(right * y_pred, -1, keepdims=True)
        above = reduce_sum(cast(y_pred > own, y_pred.dtype), -1)
        return (cast(above < float(self.k), y_pred.dtype) * cast(own == own, y_pred.dtype)[:, 0],)


class TopKCategoricalAccuracy(SparseTopKCategoricalAccuracy):
    """The same for y_true [batch, classes], 1 at the right class."""

    check = Metric.check

    def classes(self, y_true, y_pred):
        """The numbers of the right classes [batch], int64."""
        return arg_max(y_true, -1)


class F1Score(Metric):
    """2·precision·recall / (precision + recall) of each class, for y_true and y_pred [batch, classes] (van Rijsbergen, 1979).

    Called 1 is what is above the threshold or, without one, the largest of its row. `average` of the classes: None, "macro",
    "micro" or "weighted". Raises TypeError for another one.
    """

    def __init__(self, average=None, threshold=None, **options):
        super().__init__(**options)
        fits = average in (None, "macro", "micro", "weighted")
        self.average = expect(fits, "F1Score: average", average, "None, 'macro', 'micro' or 'weighted'")
        self.threshold = threshold

    def parts(self, y_true, y_pred):
        """What was called 1, what is 1, and what is both [batch, classes]."""
        best = reduce_max(y_pred, -1, keepdims=True) if self.threshold is None else None
        called = cast(y_pred == best if self.threshold is None else y_pred > self.threshold, y_pred.dtype)
        called = called if self.threshold is not None else called * cast(absolute(y_pred) > 1e-9, y_pred.dtype)
        return called, y_true, called * y_true

    def result(self):
        """The score over all batches since the last `reset_state`: a float or, of each class, an array [classes]."""
        return self.formula(*(v.numpy().astype(np.float64) for v in self.state)) if self.state else 0.0

    def formula(self, count, called, true, both):
        """From the sums of the parts [classes]: the score of each class [classes], or their average."""
        if self.average == "micro":
            called, true, both = (x.sum() for x in (called, true, both))
        each = 2.0 * both / np.maximum(called + true, 1e-7)
        if self.average == "weighted":
            return (each * true).sum() / max(true.sum(), 1e-7)
        return each if self.average is None else each.mean()


class AUC(metrics.AUC):
    """That of levels; with curve="PR" the area under precision over recall (Davis and Goadrich, 2006).

    Raises TypeError for another curve.
    """

    def __init__(self, num_thresholds=200, curve="ROC", **options):
        super().__init__(num_thresholds, **options)
        self.curve = expect(curve in ("ROC", "PR"), "AUC: curve", curve, "'ROC' or 'PR'")

    def formula(self, by_threshold, outside):
        """The area, from the counts [true and false, thresholds]; `outside` counts what is no probability."""
        area = super().formula(by_threshold, outside)
        if self.curve == "ROC":
            return area
        right, called = by_threshold[0], by_threshold.sum(0)
        more = right[:-1] - right[1:]
        slope = more / np.maximum(called[:-1] - called[1:], 1e-30)
        start = right[1:] - slope * called[1:]
        both = (called[:-1] > 0.0) & (called[1:] > 0.0)
        ratio = np.where(both, called[:-1] / np.where(both, called[1:], 1.0), 1.0)
        return (slope * (more + start * np.log(ratio))).sum() / max(right[0], 1e-30)

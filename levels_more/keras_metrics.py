"""Metrics by Keras' rules: what one gives is a tensor, and one of the same name as a loss is its mean over all samples."""

import numpy as np

from levels import mid_level
from levels.low_level import cast, constant, reduce_mean
from levels_more import counts
from levels_more.fitting import made, spelled
from levels_more.keras_layers import FLOAT
from levels_more.keras_losses import LOSSES, SHORT, Loss, alike
from levels_more.keras_rules import by_rules, classes_of
from levels_more.metrics import snake_case
from levels_more.nested import Later, traced


class Metric(mid_level.Metric):
    """Sums over all batches; `result` is a tensor."""

    def __init__(self, *args, dtype=None, **options):
        super().__init__(*args, **options)

    def result(self):
        """The metric over all batches since the last `reset_state`, a tensor. A traced function may give it back, no more."""
        if traced():
            return Later(self.result, self.variables)
        return constant(np.asarray(super().result(), FLOAT[0]))

    def __call__(self, *args, **options):
        """Add a batch, and give the result."""
        self.update_state(*args, **options)
        return self.result()

    def reset_state(self):
        """Forget all batches."""
        for variable in self.variables:
            variable.assign(np.zeros(variable.shape, variable.dtype))

    def reset_states(self):
        """The same, as it was called before."""
        self.reset_state()


def binary_accuracy(y_true, y_pred, threshold=0.5):
    """The share of each row's numbers, y_true and y_pred [batch, …], that are on one side of the threshold."""
    y_true, y_pred = alike(y_true, y_pred)
    return reduce_mean(cast(cast(y_pred > threshold, y_pred.dtype) == cast(y_true, y_pred.dtype), "float32"), -1)


def metric_of(kind):
    """The metric of a loss: its mean over all samples."""
    return lambda name=None, dtype=None, **options: METRICS["MeanLoss"](kind(**options), name)


def called(metric):
    """A metric that was asked for by name has that name."""
    if isinstance(metric, str):
        word = spelled("metric", mid_level.METRICS, metric)
        return BY_NAME[word](name=metric) if word in BY_NAME else made("metric", mid_level.METRICS, word)
    return metric


_METRICS = (
    "Accuracy BinaryAccuracy CategoricalAccuracy Mean Precision R2Score Recall RootMeanSquaredError "
    "SparseCategoricalAccuracy MeanLoss"
)
METRICS = {"Metric": Metric} | by_rules(Metric, *(getattr(mid_level, name) for name in _METRICS.split()))
METRICS |= by_rules(Metric, *classes_of(counts, mid_level.Metric))
METRICS |= {name: metric_of(kind) for name, kind in LOSSES.items() if isinstance(kind, type) and kind is not Loss}
METRICS |= {name: rows for name, rows in LOSSES.items() if not isinstance(rows, type)}
METRICS["binary_accuracy"] = binary_accuracy
BY_NAME = {snake_case(name): kind for name, kind in METRICS.items() if name[:1].isupper()}  # as `compile` is told them
BY_NAME |= {short: BY_NAME[name] for short, name in SHORT.items()}
BY_NAME |= dict.fromkeys(("acc", "accuracy"), *by_rules(Metric, mid_level.AccuracyByShape).values())

"""`tf.keras.metrics`."""

from levels import low_level as low
from levels import mid_level
from levels.mid_level import (  # noqa: F401
    AUC, BinaryAccuracy, CategoricalAccuracy, Mean, Metric, Precision, R2Score, Recall, SparseCategoricalAccuracy
)  # fmt: skip

from .losses import *  # noqa: F403
from .losses import binary_crossentropy, mean_absolute_error, mean_squared_error  # noqa: F401

MeanSquaredError, MeanAbsoluteError = (mid_level.metrics.METRICS.get(name) for name in ("mse", "mae"))


def binary_accuracy(y_true, y_pred, threshold=0.5):
    """The share of each row that is on the right side of the threshold."""
    return low.reduce_mean(low.cast(low.equal(low.cast(y_pred > threshold, y_true.dtype), y_true), "float32"), -1)

"""Losses by Keras' rules: targets take the shape of predictions; a loss's function gives a number for each row."""

import functools

from levels.low_level import as_tensor
from levels_more import mid_level
from levels_more.low_level.ops import cast, reshape
from levels_more.mid_level import losses
from levels_more.mid_level.base_metric import snake_case
from levels_more.tensorflow.keras_layers import behind
from levels_more.tensorflow.nested import numbers


def alike(y_true, y_pred):
    """y_true [batch] as [batch, 1] where y_pred is; floats in the dtype of y_pred."""
    y_pred = as_tensor(y_pred)
    y_true = numbers(y_true)
    y_true = reshape(y_true, y_pred.shape) if (*y_true.shape, 1) == y_pred.shape else y_true
    return cast(y_true, y_pred.dtype) if y_true.dtype.kind == "f" else y_true, y_pred


class Loss(losses.Reduced):
    """The mean of what `call(y_true, y_pred)` gives, or as `reduction` says."""

    def __call__(self, y_true, y_pred, sample_weight=None):
        return super().__call__(*alike(y_true, y_pred), sample_weight)


def chosen(loss):
    """A loss by its name, or a function of yours, as Keras calls it: with y_true in the shape and dtype of y_pred."""
    if isinstance(loss, str):
        return WORDS[loss.lower()]() if loss.lower() in WORDS else loss
    if isinstance(loss, mid_level.Loss) or not callable(loss):
        return loss
    return functools.wraps(loss)(lambda y_true, y_pred: loss(*alike(y_true, y_pred)))


def rows_of(kind):
    """A loss as a function of y_true and y_pred [batch, …], which gives a number for each sample."""

    def rows(y_true, y_pred, **options):
        return kind(**options).each(*alike(y_true, y_pred))

    rows.__name__ = snake_case(kind.__name__)
    return rows


_NAMES = "MeanSquaredError MeanAbsoluteError BinaryCrossentropy CategoricalCrossentropy SparseCategoricalCrossentropy"
KINDS = behind(Loss, losses, _NAMES)
SHORT = {"mse": "mean_squared_error", "mae": "mean_absolute_error"}
WORDS = {snake_case(name): kind for name, kind in KINDS.items()}  # as `compile` is told them
WORDS |= {short: WORDS[name] for short, name in SHORT.items()}
LOSSES = {"Loss": Loss} | KINDS | {word: rows_of(kind) for word, kind in WORDS.items()}

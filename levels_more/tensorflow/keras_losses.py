"""Losses by Keras' rules: targets take the shape and the dtype of predictions; a loss's function gives a number for each row."""

import functools

from levels import mid_level
from levels.low_level import as_tensor
from levels_more.checks import expect
from levels_more.low_level.ops import cast, reshape
from levels_more.mid_level import losses
from levels_more.mid_level.metrics import snake_case
from levels_more.tensorflow import more_losses
from levels_more.tensorflow.keras_rules import by_rules, classes_of
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


def no_loss(y_true, y_pred):
    """What stands for a loss of y_true and y_pred [batch, …] where `compile` was given none. Raises ValueError."""
    raise ValueError('there is no loss: say it, as in model.compile(optimizer, loss="mse"), or override train_step')


def chosen(loss):
    """A loss by its name, or a function of yours, as Keras calls it: with y_true in the shape and dtype of y_pred."""
    if isinstance(loss, str):
        return WORDS[loss.lower()]() if loss.lower() in WORDS else loss
    if isinstance(loss, mid_level.Loss) or not callable(loss):
        return loss
    return functools.wraps(loss)(lambda y_true, y_pred: loss(*alike(y_true, y_pred)))


def rows_of(kind):
    """A loss as a function of y_true and y_pred [batch, …], which gives a number for each sample. The last axis is summed over."""

    def rows(y_true, y_pred, *args, axis=-1, **options):
        y_true, y_pred = alike(y_true, y_pred)
        expect(axis in (-1, len(y_pred.shape) - 1), f"{snake_case(kind.__name__)}: axis", axis, "-1, the last one")
        return kind(*args, **options).each(y_true, y_pred)

    rows.__name__ = snake_case(kind.__name__)
    return rows


_LOSSES = "Huber MeanAbsoluteError MeanSquaredError SparseCategoricalCrossentropy"
LOSSES = {"Loss": Loss} | by_rules(Loss, *(getattr(losses, name) for name in _LOSSES.split()))
LOSSES |= by_rules(Loss, *classes_of(more_losses, mid_level.Loss))
SHORT = {"mse": "mean_squared_error", "mae": "mean_absolute_error", "mape": "mean_absolute_percentage_error",
         "msle": "mean_squared_logarithmic_error", "kld": "kl_divergence", "logcosh": "log_cosh"}  # fmt: skip
WORDS = {snake_case(name): kind for name, kind in LOSSES.items()}  # as `compile` is told them
WORDS |= {short: WORDS[name] for short, name in SHORT.items()}
LOSSES |= {snake_case(name): rows_of(kind) for name, kind in LOSSES.items() if name != "Loss"}
LOSSES |= {word: LOSSES[name] for short, name in SHORT.items() for word in (short, short.upper())}
LOSSES["kullback_leibler_divergence"] = LOSSES["kl_divergence"]

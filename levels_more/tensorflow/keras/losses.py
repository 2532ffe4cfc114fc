"""`tf.keras.losses`: classes, and functions that give a number a row."""

from levels import low_level as low
from levels.mid_level import (  # noqa: F401
    BinaryCrossentropy, CategoricalCrossentropy, Huber, Loss, MeanAbsoluteError, MeanSquaredError,
    SparseCategoricalCrossentropy
)  # fmt: skip


def _rows(kind):
    """A loss as a function of y_true and y_pred: the mean of each row."""

    def function(y_true, y_pred, **options):
        each = kind(**options).call(low.as_tensor(y_true, y_pred), low.as_tensor(y_pred))
        return low.reduce_mean(each, -1) if len(each.shape) > 1 else each

    return function


mean_squared_error = mse = _rows(MeanSquaredError)
mean_absolute_error = mae = _rows(MeanAbsoluteError)
binary_crossentropy = _rows(BinaryCrossentropy)
categorical_crossentropy = _rows(CategoricalCrossentropy)
sparse_categorical_crossentropy = _rows(SparseCategoricalCrossentropy)

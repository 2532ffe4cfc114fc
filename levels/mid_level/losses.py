"""Losses: one number that says how wrong a prediction is."""

# Built from notebooks/04_mid_level.ipynb: edit there, then run its last cell.

from levels.low_level import as_tensor, clip, log, reduce_mean, reshape


class Loss:
    """The mean over all samples of what `call(y_true, y_pred)` gives for each."""

    def __call__(self, y_true, y_pred, sample_weight=None):
        """One number. Raises ValueError where the shapes differ; `sample_weight` [batch] multiplies what each sample gives."""
        y_pred = as_tensor(y_pred)
        y_true = as_tensor(y_true, y_pred)
        self.check(y_true, y_pred)
        each = self.call(y_true, y_pred)
        if sample_weight is not None:
            weight = as_tensor(sample_weight)
            each = each * reshape(weight, weight.spec.shape[:1] + (1,) * (len(each.spec.shape) - 1))
        return reduce_mean(each)

    def check(self, y_true, y_pred):
        """Raise ValueError for numbers that this loss has no meaning for."""
        if y_true.spec.shape != y_pred.spec.shape:
            raise ValueError(f"{type(self).__name__}: y_true is {y_true.spec} and y_pred is {y_pred.spec}")


class MeanSquaredError(Loss):
    """mean((y_pred - y_true)²)"""

    def call(self, y_true, y_pred):
        error = y_pred - y_true
        return error * error


class BinaryCrossentropy(Loss):
    """-mean(y_true·log p + (1 - y_true)·log(1 - p)), with p = y_pred kept within [1e-7, 1 - 1e-7]"""

    def call(self, y_true, y_pred):
        p = clip(y_pred, 1e-7, 1.0 - 1e-7)
        return -(y_true * log(p) + (1.0 - y_true) * log(1.0 - p))

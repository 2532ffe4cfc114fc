"""The two tasks as models: compile, fit."""

# Built from notebooks/05_high_level.ipynb: edit there, then run its last cell.

import numpy as np

from levels.hardware.tasks import Fit, check_inputs, check_task
from levels.mid_level import SGD, Dataset, Dense

from .models import Sequential


def linear_regression(x, y, weights, batches, learning_rate=0.0005):
    """Mean squared error, stochastic gradient descent; see `Fit` and `check_task` for the shapes."""
    check_task(x, y, weights, batches, learning_rate, units=[1])
    model = Sequential([Dense(1)])
    model.build(x.shape, x.dtype)
    model.set_weights(weights)
    model.compile(SGD(learning_rate), "mse")
    losses = model.fit(Dataset.from_batches(x, y, batches)).losses  # forward, loss, backward, update

    def predict(x):
        check_inputs(x, weights[0].dtype, len(weights[0]))
        return model.predict(x)

    return Fit(np.array(losses, weights[0].dtype), model.get_weights(), predict)

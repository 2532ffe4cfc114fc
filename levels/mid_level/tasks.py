"""The two tasks as layers, a loss, an optimizer and a dataset."""

# Built from notebooks/04_mid_level.ipynb: edit there, then run its last cell.

import numpy as np

from levels.hardware.tasks import Fit, check_inputs, check_task
from levels.low_level import GradientTape

from .data import Dataset
from .layers import Dense
from .losses import MeanSquaredError
from .optimizers import SGD


def linear_regression(x, y, weights, batches, learning_rate=0.0005):
    """Mean squared error, stochastic gradient descent; see `Fit` and `check_task` for the shapes."""
    check_task(x, y, weights, batches, learning_rate, units=[1])
    dense, mse, sgd, losses = Dense(1), MeanSquaredError(), SGD(learning_rate), []
    dense.build(x.shape, x.dtype)
    dense.set_weights(weights)
    for rows, target in Dataset.from_batches(x, y, batches):
        with GradientTape() as tape:
            prediction = dense(rows)  # forward
            loss = mse(target, prediction)  # loss
        gradients = tape.gradient(loss, dense.variables)  # backward
        sgd.apply_gradients(zip(gradients, dense.variables))  # update
        losses.append(loss.numpy())

    def predict(x):
        check_inputs(x, weights[0].dtype, len(weights[0]))
        return dense(x).numpy()

    return Fit(np.array(losses), dense.get_weights(), predict)

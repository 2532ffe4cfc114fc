"""The two tasks as tensors: the formula forward, the tape backward."""

# Built from notebooks/03_low_level.ipynb: edit there, then run its last cell.

import numpy as np

from levels.hardware.tasks import Fit, check_inputs, check_task

from .autodiff import GradientTape
from .tensors import Variable, constant, gather, reduce_mean


def linear_regression(x, y, weights, batches, learning_rate=0.0005):
    """Mean squared error, stochastic gradient descent; see `Fit` and `check_task` for the shapes."""
    check_task(x, y, weights, batches, learning_rate, units=[1])
    x_, y_, (w, b), losses = constant(x), constant(y), map(Variable, weights), []
    for i in batches:
        rows, target = gather(x_, i), gather(y_, i)
        with GradientTape() as tape:
            prediction = rows @ w + b  # forward
            error = prediction - target
            loss = reduce_mean(error * error)  # loss
        dw, db = tape.gradient(loss, [w, b])  # backward
        w.assign(w - learning_rate * dw)  # update
        b.assign(b - learning_rate * db)
        losses.append(loss.numpy())

    def predict(x):
        check_inputs(x, w.dtype, w.shape[0])
        return (constant(x) @ w + b).numpy()

    return Fit(np.array(losses), [w.numpy(), b.numpy()], predict)

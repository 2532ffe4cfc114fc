"""The two tasks with tensors: formulas, the tape, and all steps in one program."""

# Built from 03_low_level.ipynb: edit there, then run its last cell.

from levels.hardware.tasks import Fit
from levels.support.inputs import check_inputs, check_task

from .autodiff import GradientTape
from .functions import function
from .nn import relu, sigmoid
from .ops import clip, log, reduce_mean
from .tensors import Variable, constant


def linear_regression(x, y, weights, batches, learning_rate=0.0005):
    """Train a line by SGD on the mean squared error; see `Fit` and `check_task`."""
    check_task(x, y, weights, batches, learning_rate, units=[1])
    w, b = map(Variable, weights)  # model

    @function
    def step(rows, target):
        with GradientTape() as tape:
            prediction = rows @ w + b  # forward
            error = prediction - target  # loss
            loss = reduce_mean(error * error)
        dw, db = tape.gradient(loss, [w, b])  # backward
        w.assign(w - float(learning_rate) * dw)  # update
        b.assign(b - float(learning_rate) * db)
        return loss

    losses = step.over(constant(x), constant(y), batches).numpy()

    def predict(x):
        check_inputs(x, w.dtype, w.shape[0])
        return (constant(x) @ w + b).numpy()

    return Fit(losses, [w.numpy(), b.numpy()], predict)


def dnn(x, weights):
    """Return the probability [n, 1] for the rows x[n, features]."""
    w1, b1, w2, b2, w3, b3 = weights
    h1 = relu(x @ w1 + b1)
    h2 = relu(h1 @ w2 + b2)
    return sigmoid(h2 @ w3 + b3)


def dnn_classifier(x, y, weights, batches, learning_rate=0.01):
    """Train `dnn` by SGD on binary cross-entropy; see `Fit` and `check_task`."""
    check_task(x, y, weights, batches, learning_rate, units=[4, 8, 1])
    weights = [Variable(w) for w in weights]  # model

    @function
    def step(rows, target):
        with GradientTape() as tape:
            prediction = dnn(rows, weights)  # forward
            c = clip(prediction, 1e-7, 1.0 - 1e-7)  # loss
            loss = -reduce_mean(target * log(c) + (1.0 - target) * log(1.0 - c))
        gradients = tape.gradient(loss, weights)  # backward
        for w, dw in zip(weights, gradients):  # update
            w.assign(w - float(learning_rate) * dw)
        return loss

    losses = step.over(constant(x), constant(y), batches).numpy()

    def predict(x):
        check_inputs(x, weights[0].dtype, weights[0].shape[0])
        return dnn(constant(x), weights).numpy()

    return Fit(losses, [w.numpy() for w in weights], predict)

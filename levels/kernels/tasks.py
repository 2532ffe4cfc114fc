"""The two tasks as launches, each on a whole batch. Gradients are written by hand."""

# Built from 02_kernels.ipynb: edit there, then run its last cell.

import numpy as np

from levels.hardware import PLACE
from levels.hardware.tasks import Fit
from levels.support.inputs import check_inputs, check_task

from .registry import launch


def _put(array):
    return PLACE.device.put(array)


def _number(value, like):
    """Return a number as a buffer [1, 1], in the dtype of an array."""
    return _put(np.full((1, 1), value, like.dtype))


def _rows(x, y, batches):
    """Yield the rows of x and of y for each step."""
    x = _put(x)
    y = _put(y)
    for i in map(_put, np.asarray(batches, np.int64)):
        yield launch("gather", None, x, i), launch("gather", None, y, i)


def _sum_rows(x):
    """Return the sum of the rows: [1, columns]."""
    return launch("reduce_sum", None, x, axis=0, keepdims=True)


def linear_forward(x, w, b):
    """Return x[n, k] @ w[k, units] + b[1, units], a layer's outputs [n, units]."""
    return launch("add", None, launch("matmul", None, x, w), b)


def linear_regression(x, y, weights, batches, learning_rate=0.0005):
    """Train a line by SGD on the mean squared error; see `Fit` and `check_task`."""
    check_task(x, y, weights, batches, learning_rate, units=[1])
    w, b = [_put(array) for array in weights]  # model

    n = _number(len(batches[0]), x)
    g = launch("divide", None, _number(1.0, x), n)
    losses = []
    for rows, target in _rows(x, y, batches):
        prediction = linear_forward(rows, w, b)  # forward
        error = launch("subtract", None, prediction, target)  # loss
        squared = launch("multiply", None, error, error)
        loss = launch("divide", None, _sum_rows(squared), n)
        ge = launch("multiply", None, g, error)  # backward
        de = launch("add", None, ge, ge)
        dw = launch("matmul", None, rows, de, transpose_x=True)
        db = _sum_rows(de)
        launch("sgd", w, dw, rate=float(learning_rate))  # update
        launch("sgd", b, db, rate=float(learning_rate))

        losses.append(loss.numpy()[0, 0])

    def predict(rows):
        check_inputs(rows, x.dtype, x.shape[1])
        return linear_forward(_put(rows), w, b).numpy()

    return Fit(np.array(losses), [w.numpy(), b.numpy()], predict)


def dnn_forward(x, weights):
    """Return the layers' outputs: [n, 4], [n, 8], and the probability [n, 1]."""
    w1, b1, w2, b2, w3, b3 = weights
    h1 = launch("relu", None, linear_forward(x, w1, b1))
    h2 = launch("relu", None, linear_forward(h1, w2, b2))
    return h1, h2, launch("sigmoid", None, linear_forward(h2, w3, b3))


def dnn_backward(dz, inputs, weights):
    """Return [dw1, db1, … db3] from `dz`, the slope at the last layer's z[n, 1]."""
    gradients = []
    for k in (2, 1, 0):
        dw = launch("matmul", None, inputs[k], dz, transpose_x=True)
        gradients = [dw, _sum_rows(dz), *gradients]
        if k > 0:
            dh = launch("matmul", None, dz, weights[2 * k], transpose_w=True)
            dz = launch("relu_grad", None, dh, inputs[k])
    return gradients


def _cross_entropy(target, other, c, q, n):
    """Return the mean loss [1, 1] of n rows."""
    hit = launch("multiply", None, target, launch("log", None, c))
    miss = launch("multiply", None, other, launch("log", None, q))
    total = _sum_rows(launch("add", None, hit, miss))
    return launch("negative", None, launch("divide", None, total, n))


def _slope_at_z(target, other, prediction, c, q, g):
    """Return the slope of the loss at the last layer's z[n, 1]. g is -1/n."""
    d_hit = launch("divide", None, launch("multiply", None, g, target), c)
    d_miss = launch("divide", None, launch("multiply", None, g, other), q)
    dc = launch("subtract", None, d_hit, d_miss)
    dp = launch("clip_grad", None, dc, prediction, low=1e-7, high=1.0 - 1e-7)
    return launch("sigmoid_grad", None, dp, prediction)


def dnn_classifier(x, y, weights, batches, learning_rate=0.01):
    """Train features-4-8-1 by SGD on binary cross-entropy; see `Fit`, `check_task`."""
    check_task(x, y, weights, batches, learning_rate, units=[4, 8, 1])
    weights = [_put(w) for w in weights]  # model

    one = _number(1.0, x)
    n = _number(len(batches[0]), x)
    g = launch("divide", None, _number(-1.0, x), n)
    losses = []
    for rows, target in _rows(x, y, batches):
        h1, h2, prediction = dnn_forward(rows, weights)  # forward
        c = launch("clip", None, prediction, low=1e-7, high=1.0 - 1e-7)  # loss
        other = launch("subtract", None, one, target)
        q = launch("subtract", None, one, c)
        loss = _cross_entropy(target, other, c, q, n)
        dz = _slope_at_z(target, other, prediction, c, q, g)  # backward
        gradients = dnn_backward(dz, [rows, h1, h2], weights)
        for w, dw in zip(weights, gradients):  # update
            launch("sgd", w, dw, rate=float(learning_rate))

        losses.append(loss.numpy()[0, 0])

    def predict(rows):
        check_inputs(rows, x.dtype, x.shape[1])
        return dnn_forward(_put(rows), weights)[-1].numpy()

    return Fit(np.array(losses), [w.numpy() for w in weights], predict)

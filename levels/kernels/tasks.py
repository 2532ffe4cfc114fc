"""The two tasks as launches. Each op takes a whole batch; gradients are written by hand."""

# Built from 02_kernels.ipynb: edit there, then run its last cell.

import numpy as np

from levels.hardware import PLACE
from levels.hardware.tasks import Fit
from levels.support.checks import check_inputs, check_task

from .registry import launch


def linear_forward(x, w, b):
    """Return x[n, k] @ w[k, units] + b[1, units], the outputs of a layer: [n, units]."""
    return launch("add", None, launch("matmul", None, x, w), b)


def linear_regression(x, y, weights, batches, learning_rate=0.0005):
    """Train a line by SGD on the mean squared error. For the shapes, see `Fit` and `check_task`."""
    check_task(x, y, weights, batches, learning_rate, units=[1])
    place, dtype = PLACE.device, x.dtype
    w, b = map(place.put, weights)  # model

    x_, y_ = place.put(x), place.put(y)
    size = np.full((1, 1), len(batches[0]), dtype)
    n, g = place.put(size), place.put(1 / size)
    losses = []
    for i in map(place.put, np.asarray(batches, np.int64)):
        rows, target = launch("gather", None, x_, i), launch("gather", None, y_, i)
        prediction = linear_forward(rows, w, b)  # forward
        error = launch("subtract", None, prediction, target)  # loss
        squared = launch("multiply", None, error, error)
        loss = launch("divide", None, launch("reduce_sum", None, squared, axis=0, keepdims=True), n)
        ge = launch("multiply", None, g, error)  # backward
        de = launch("add", None, ge, ge)
        dw = launch("matmul", None, rows, de, transpose_x=True)
        db = launch("reduce_sum", None, de, axis=0, keepdims=True)
        launch("sgd", w, dw, rate=float(learning_rate))  # update
        launch("sgd", b, db, rate=float(learning_rate))

        losses.append(loss.numpy()[0, 0])

    def predict(x):
        check_inputs(x, dtype, w.shape[0])
        return linear_forward(place.put(x), w, b).numpy()

    return Fit(np.array(losses), [w.numpy(), b.numpy()], predict)


def dnn_forward(x, weights):
    """Return both hidden layers' outputs and the probability: [n, 4], [n, 8], [n, 1]."""
    w1, b1, w2, b2, w3, b3 = weights
    h1 = launch("relu", None, linear_forward(x, w1, b1))
    h2 = launch("relu", None, linear_forward(h1, w2, b2))
    return h1, h2, launch("sigmoid", None, linear_forward(h2, w3, b3))


def dnn_backward(dz, inputs, weights):
    """Return the gradients [dw1, db1, dw2, db2, dw3, db3], given `dz`, the slope at the last layer's z[n, 1]."""
    gradients = []
    for k in (2, 1, 0):
        dw = launch("matmul", None, inputs[k], dz, transpose_x=True)
        gradients = [dw, launch("reduce_sum", None, dz, axis=0, keepdims=True), *gradients]
        if k > 0:
            dh = launch("matmul", None, dz, weights[2 * k], transpose_w=True)
            dz = launch("relu_grad", None, dh, inputs[k])
    return gradients


def dnn_classifier(x, y, weights, batches, learning_rate=0.01):
    """Train a features-4-8-1 net (relu, relu, sigmoid) by SGD on binary cross-entropy; see `Fit` and `check_task`."""
    check_task(x, y, weights, batches, learning_rate, units=[4, 8, 1])
    place, dtype = PLACE.device, x.dtype
    weights = [place.put(w) for w in weights]  # model

    x_, y_, one = place.put(x), place.put(y), place.put(np.ones((1, 1), dtype))
    size = np.full((1, 1), len(batches[0]), dtype)
    n, g = place.put(size), place.put(-1 / size)
    losses = []
    for i in map(place.put, np.asarray(batches, np.int64)):
        rows, target = launch("gather", None, x_, i), launch("gather", None, y_, i)
        h1, h2, prediction = dnn_forward(rows, weights)  # forward
        c = launch("clip", None, prediction, low=1e-7, high=1.0 - 1e-7)  # loss
        other, q = launch("subtract", None, one, target), launch("subtract", None, one, c)
        hit = launch("multiply", None, target, launch("log", None, c))
        miss = launch("multiply", None, other, launch("log", None, q))
        total = launch("reduce_sum", None, launch("add", None, hit, miss), axis=0, keepdims=True)
        loss = launch("negative", None, launch("divide", None, total, n))
        d_hit = launch("divide", None, launch("multiply", None, g, target), c)  # backward
        d_miss = launch("divide", None, launch("multiply", None, g, other), q)
        dc = launch("subtract", None, d_hit, d_miss)
        dp = launch("clip_grad", None, dc, prediction, low=1e-7, high=1.0 - 1e-7)
        dz = launch("sigmoid_grad", None, dp, prediction)
        gradients = dnn_backward(dz, [rows, h1, h2], weights)
        for w, dw in zip(weights, gradients):  # update
            launch("sgd", w, dw, rate=float(learning_rate))

        losses.append(loss.numpy()[0, 0])

    def predict(x):
        check_inputs(x, dtype, weights[0].shape[0])
        return dnn_forward(place.put(x), weights)[-1].numpy()

    return Fit(np.array(losses), [w.numpy() for w in weights], predict)

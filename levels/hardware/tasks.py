"""The two tasks in machine code. One call of a program runs any number of steps."""

# Built from 01_hardware.ipynb: edit there, then run its last cell.

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from levels.support.elementary import exp, log, select
from levels.support.inputs import check_inputs, check_task

from .assembler import Assembler
from .device import pool
from .formulas import descend, dot, line_slopes


def _dense(inputs, w, b):
    """Pass a row through a layer: dot(inputs, w[:, j]) + b[0][j] for each column j."""
    return [dot(inputs, column) + bias for column, bias in zip(zip(*w), b[0])]


def line_row(row, target, weights, sums, g):
    """Add one row's slopes to `sums`. Return its squared error."""
    w, b = weights
    dw, db = sums
    (prediction,) = _dense(row, w, b)  # forward
    error = prediction - target  # loss
    loss = error * error
    slopes, de = line_slopes(error, row, g)  # backward
    for k, slope in enumerate(slopes):
        dw[k][0] += slope
    db[0][0] += de

    return loss


def _each(array, make):
    """Return make(array, k, j) for each number of an array of weights, in rows."""
    rows, columns = array.shape
    return [[make(array, k, j) for j in range(columns)] for k in range(rows)]


def write_steps(a, one_row, shapes):
    """Write a program that trains weights of these shapes, for any number of steps."""
    features = shapes[0][0]
    x = a.array("x", "rows", features)
    y = a.array("y", "rows", 1)
    arrays = [a.array(f"w{k}", *shape) for k, shape in enumerate(shapes)]  # model

    batches = a.array("batches", "steps", "batch", rows_of="rows")
    losses = a.array("losses", "steps")
    n = a.count("batch")
    g = 1.0 / n
    rate = a.number("rate")
    with a.loop("steps") as step:
        weights = [_each(array, a.load) for array in arrays]
        sums = [_each(array, lambda *place: a.sum()) for array in arrays]
        loss = a.sum()
        with a.loop("batch") as r:
            i = a.load(batches, step, r)
            row = [a.load(x, i, k) for k in range(features)]
            loss += one_row(row, a.load(y, i, 0), weights, sums, g)
        a.store(loss.total() / n, losses, step)
        for array, w, dw in zip(arrays, weights, sums):  # update
            for k, j in np.ndindex(*array.shape):
                a.store(descend(w[k][j], dw[k][j].total(), rate), array, k, j)


class Fit(NamedTuple):
    """The result of training."""

    losses: np.ndarray  # [steps], each taken before its update
    weights: list  # shaped like the argument
    predict: Callable  # x[m, features] -> [m, 1]


def train(one_row, forward, x, y, weights, batches, rate):
    """Train with one call of the program of `one_row`. `forward` predicts a row."""
    cpu = pool()["cpu:0"]
    a = Assembler("train", x.dtype)
    write_steps(a, one_row, [w.shape for w in weights])
    held = {f"w{k}": cpu.put(array) for k, array in enumerate(weights)}
    losses = cpu.alloc((len(batches),), x.dtype)
    rows = cpu.put(np.asarray(batches, np.int64))
    program = a.assemble()
    program(x=cpu.put(x), y=cpu.put(y), batches=rows, losses=losses, rate=rate, **held)
    weights = [buffer.numpy() for buffer in held.values()]
    trained = [w.tolist() for w in weights]

    def predict(rows):
        check_inputs(rows, x.dtype, x.shape[1])
        outputs = [forward(row, *trained)[-1] for row in rows.tolist()]
        return np.array(outputs, x.dtype).reshape(-1, 1)

    return Fit(losses.numpy(), weights, predict)


def linear_regression(x, y, weights, batches, learning_rate=0.0005):
    """Train a line by SGD on the mean squared error; see `Fit` and `check_task`."""
    check_task(x, y, weights, batches, learning_rate, units=[1])
    return train(line_row, _dense, x, y, weights, batches, learning_rate)


def _relu(z):
    """Return z, or 0.0 if z <= 0. A NaN stays a NaN, as its comparison is false."""
    return select(z <= 0.0, 0.0, z)


def _forward(row, w1, b1, w2, b2, w3, b3):
    """Return the hidden layers' outputs and the probability for one row."""
    h1 = [_relu(z) for z in _dense(row, w1, b1)]
    h2 = [_relu(z) for z in _dense(h1, w2, b2)]
    (z,) = _dense(h2, w3, b3)
    return h1, h2, 1.0 / (1.0 + exp(0.0 - z))


def through_relu(d, h, w):
    """Return, for each k, 0.0 where h[k] is 0, else the sum of d[j]·w[k][j] over j."""
    return [select(output <= 0.0, 0.0, dot(d, row)) for output, row in zip(h, w)]


def _clipped(p):
    """Clip a probability to [1e-7, 1 - 1e-7], where logarithms are finite."""
    return select(p < 1e-7, 1e-7, select(p > 1.0 - 1e-7, 1.0 - 1e-7, p))


def _slope_at_z(target, p, c, g):
    """Return the slope of a row's loss at z, before the sigmoid. Here g is -1/n."""
    dc = g * target / c - g * (1.0 - target) / (1.0 - c)
    dp = select(p > 1e-7, select(p < 1.0 - 1e-7, dc, 0.0), 0.0)
    return dp * p * (1.0 - p)


def _add_slopes(dw, db, inputs, d):
    """Add one row's slopes to the sums of a layer: its inputs, and the slopes d."""
    for j, dj in enumerate(d):
        db[0][j] += dj
        for k, value in enumerate(inputs):
            dw[k][j] += value * dj


def net_row(row, target, weights, sums, g):
    """Add one row's slopes to `sums`. Return its cross-entropy."""
    w1, b1, w2, b2, w3, b3 = weights
    dw1, db1, dw2, db2, dw3, db3 = sums
    h1, h2, prediction = _forward(row, *weights)  # forward
    c = _clipped(prediction)  # loss
    loss = (target - 1.0) * log(1.0 - c) - target * log(c)
    dz = [_slope_at_z(target, prediction, c, 0.0 - g)]  # backward
    dh2 = through_relu(dz, h2, w3)
    dh1 = through_relu(dh2, h1, w2)
    _add_slopes(dw1, db1, row, dh1)
    _add_slopes(dw2, db2, h1, dh2)
    _add_slopes(dw3, db3, h2, dz)

    return loss


def dnn_classifier(x, y, weights, batches, learning_rate=0.01):
    """Train the net 4-8-1 by SGD on binary cross-entropy; see `Fit`, `check_task`."""
    check_task(x, y, weights, batches, learning_rate, units=[4, 8, 1])
    return train(net_row, _forward, x, y, weights, batches, learning_rate)

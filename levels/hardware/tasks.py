"""The two tasks in machine code. One call of a program runs any number of steps."""

# Built from 01_hardware.ipynb: edit there, then run its last cell.

import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from levels.support.checks import check_inputs, check_task

from .assembler import Assembler
from .device import pool
from .elementary import exp, log
from .formulas import descend, dot, line_slopes
from .values import select


@functools.cache
def line_program(dtype, shapes, lanes=None):
    """Return the program that trains w[features, 1] and b[1, 1], for any numbers of rows, steps and rows per batch."""
    a, features = Assembler("line", dtype, lanes), shapes[0][0]
    x, y = a.array("x", "rows", features), a.array("y", "rows", 1)
    w, b = a.array("w", features, 1), a.array("b", 1, 1)  # model

    batches, losses = a.array("batches", "steps", "batch", rows_of="rows"), a.array("losses", "steps")
    n, rate = a.count("batch"), a.number("rate")
    g = 1.0 / n
    with a.loop("steps") as step:
        loss, dw, db = a.sum(), [a.sum() for _ in range(features)], a.sum()
        with a.loop("batch", a.lanes) as r:
            i = a.load(batches, step, r)
            row = [a.load(x, i, k) for k in range(features)]
            prediction = dot(row, [a.load(w, k, 0) for k in range(features)]) + a.load(b, 0, 0)  # forward
            error = prediction - a.load(y, i, 0)  # loss
            loss += error * error
            slopes, de = line_slopes(error, row, g)  # backward
            for k in range(features):
                dw[k] += slopes[k]
            db += de
        a.store(loss.total() / n, losses, step)
        for k in range(features):  # update
            a.store(descend(a.load(w, k, 0), dw[k].total(), rate), w, k, 0)
        a.store(descend(a.load(b, 0, 0), db.total(), rate), b, 0, 0)
    return a.assemble()


def _dense(inputs, w, b):
    """Pass one row through one layer: dot(inputs, w[:, j]) + b[0][j] for each column j."""
    return [dot(inputs, [row[j] for row in w]) + bias for j, bias in enumerate(b[0])]


def _each(array, make):
    """Return make(array, k, j) for each number of an array of weights, in rows."""
    return [[make(array, k, j) for j in range(array.shape[1])] for k in range(array.shape[0])]


@functools.cache
def _predict_program(forward, names, dtype, shapes):
    """Return a program that stores the last result of `forward` for each row."""
    a = Assembler("predict", dtype)
    x, out = a.array("x", "rows", shapes[0][0]), a.array("out", "rows", 1)
    weights = [_each(a.array(name, *shape), a.load) for name, shape in zip(names, shapes)]
    with a.loop("rows", a.lanes) as r:
        *_, answer = forward([a.load(x, r, k) for k in range(x.shape[1])], *weights)
        a.store(answer, out, r, 0)
    return a.assemble()


class Fit(NamedTuple):
    """The result of training."""

    losses: np.ndarray  # [steps], each taken before its update
    weights: list  # shaped like the argument
    predict: Callable  # x[m, features] -> [m, 1]


def _fit(program, forward, names, x, y, weights, batches, learning_rate):
    """Train with one call of a program. `names` are its arrays of weights; `forward` predicts one row."""
    cpu, dtype, shapes = pool()["cpu:0"], x.dtype, tuple(w.shape for w in weights)
    held = {name: cpu.put(w) for name, w in zip(names, weights)}
    losses = cpu.alloc((len(batches),), dtype)
    data = dict(x=cpu.put(x), y=cpu.put(y), batches=cpu.put(np.asarray(batches, np.int64)))
    program(dtype, shapes)(**data, **held, losses=losses, rate=learning_rate)

    def predict(x):
        check_inputs(x, dtype, shapes[0][0])
        out = cpu.alloc((len(x), 1), dtype)
        _predict_program(forward, names, dtype, shapes)(x=cpu.put(x), out=out, **held)
        return out.numpy()

    return Fit(losses.numpy(), [w.numpy() for w in held.values()], predict)


def linear_regression(x, y, weights, batches, learning_rate=0.0005):
    """Train a line by SGD on the mean squared error. For the shapes, see `Fit` and `check_task`."""
    check_task(x, y, weights, batches, learning_rate, units=[1])
    return _fit(line_program, _dense, ("w", "b"), x, y, weights, batches, learning_rate)


def _relu(z):
    """Return z, or 0.0 if z <= 0. A NaN stays a NaN, because the comparison is false for it."""
    return select(z <= 0.0, 0.0, z)


def _forward(row, w1, b1, w2, b2, w3, b3):
    """Return the hidden layers' outputs and the probability for one row."""
    h1 = [_relu(z) for z in _dense(row, w1, b1)]
    h2 = [_relu(z) for z in _dense(h1, w2, b2)]
    (z,) = _dense(h2, w3, b3)
    return h1, h2, 1.0 / (1.0 + exp(0.0 - z))


def through_relu(d, h, w):
    """The slopes at a layer's units, a list of numbers: 0 where relu cut, else the sum over the next layer's units."""
    return [select(output <= 0.0, 0.0, dot(d, row)) for output, row in zip(h, w)]


def _clipped(p):
    """Clip a probability to [1e-7, 1 - 1e-7]: at 0 and 1, a logarithm would be infinite."""
    return select(p < 1e-7, 1e-7, select(p > 1.0 - 1e-7, 1.0 - 1e-7, p))


def _slope_at_z(target, p, c, g):
    """Return the slope of a row's loss at z, the last layer's output before the sigmoid."""
    dc = g * target / c - g * (1.0 - target) / (1.0 - c)
    dp = select(p > 1e-7, select(p < 1.0 - 1e-7, dc, 0.0), 0.0)
    return dp * p * (1.0 - p)


def _add_slopes(dw, db, inputs, d):
    """Add one row's slopes to the sums of a layer, from its inputs and the slopes d at its units."""
    for j, dj in enumerate(d):
        db[0][j] += dj
        for k, value in enumerate(inputs):
            dw[k][j] += value * dj


_NET = "w1", "b1", "w2", "b2", "w3", "b3"  # the net's arrays of weights


@functools.cache
def net_program(dtype, shapes, lanes=None):
    """Return the program that trains the net's six arrays, for any numbers of rows, steps and rows per batch."""
    a = Assembler("net", dtype, lanes)
    x, y = a.array("x", "rows", shapes[0][0]), a.array("y", "rows", 1)
    arrays = [a.array(name, *shape) for name, shape in zip(_NET, shapes)]  # model

    batches, losses = a.array("batches", "steps", "batch", rows_of="rows"), a.array("losses", "steps")
    n, rate = a.count("batch"), a.number("rate")
    g = -1.0 / n
    with a.loop("steps") as step:
        weights = [_each(array, a.load) for array in arrays]
        w1, b1, w2, b2, w3, b3 = weights
        sums = [_each(array, lambda *place: a.sum()) for array in arrays]
        dw1, db1, dw2, db2, dw3, db3 = sums
        loss = a.sum()
        with a.loop("batch", a.lanes) as r:
            i = a.load(batches, step, r)
            row, target = [a.load(x, i, k) for k in range(x.shape[1])], a.load(y, i, 0)
            h1, h2, prediction = _forward(row, *weights)  # forward
            c = _clipped(prediction)  # loss
            loss += (target - 1.0) * log(1.0 - c) - target * log(c)
            dz = [_slope_at_z(target, prediction, c, g)]  # backward
            dh2 = through_relu(dz, h2, w3)
            dh1 = through_relu(dh2, h1, w2)
            _add_slopes(dw1, db1, row, dh1)
            _add_slopes(dw2, db2, h1, dh2)
            _add_slopes(dw3, db3, h2, dz)
        a.store(loss.total() / n, losses, step)
        for array, w, dw in zip(arrays, weights, sums):  # update
            for k, j in np.ndindex(*array.shape):
                a.store(descend(w[k][j], dw[k][j].total(), rate), array, k, j)
    return a.assemble()


def dnn_classifier(x, y, weights, batches, learning_rate=0.01):
    """Train a features-4-8-1 net (relu, relu, sigmoid) by SGD on binary cross-entropy; see `Fit`, `check_task`."""
    check_task(x, y, weights, batches, learning_rate, units=[4, 8, 1])
    return _fit(net_program, _forward, _NET, x, y, weights, batches, learning_rate)

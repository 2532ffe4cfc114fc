"""The two tasks in machine code: one program, one call, any number of steps."""

# Built from 01_hardware.ipynb: edit there, then run its last cell.

import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .assembler import Assembler
from .device import pool, unmasked
from .elementary import exp, log
from .formulas import descend, dot, line_slopes
from .values import select


def check_finite(name, array):
    """Raise ValueError, naming the first such row, where an array [rows, …] holds a NaN or an infinity."""
    if not (finite := np.isfinite(array)).all():
        raise ValueError(f"{name} is not a finite number in row {np.argwhere(~finite)[0][0]}; drop or fill such rows")


def _told(array):
    """What is there instead of an array, for an error."""
    return f"{getattr(array, 'dtype', type(array).__name__)}{list(getattr(array, 'shape', ()))}"


def _check_array(name, array, dtype, *shape):
    """Raise ValueError unless this is a NumPy array of that dtype and shape, with no NaN and no infinity."""
    if not isinstance(array, np.ndarray) or (unmasked(array).dtype, array.shape) != (dtype, shape):
        raise ValueError(f"{name} is {_told(array)}; expected a NumPy array {dtype}{list(shape)}")
    check_finite(name, array)


def check_inputs(x, dtype, features):
    """Raise ValueError unless x is [m, features] of that dtype, with no NaN and no infinity."""
    _check_array("x", x, dtype, *np.shape(x)[:1], features)


def check_task(x, y, weights, batches, learning_rate, units):
    """Raise TypeError, ValueError or IndexError unless all fit each other and a net of layers with that many `units`.

    Of one float dtype x[rows, features], y[rows, 1], weights w[inputs, units], b[1, units], …; batches[steps, batch] of rows.
    """
    if getattr(x, "dtype", None) not in (np.float32, np.float64) or x.ndim != 2:
        raise TypeError(f"x is {_told(x)}; expected a NumPy array [rows, features] of float32 or float64")
    shapes = [shape for k, n in zip([x.shape[1], *units], units) for shape in ((k, n), (1, n))]
    if not isinstance(weights, (list, tuple)) or len(weights) != len(shapes):
        given = f"{len(weights)} arrays" if isinstance(weights, (list, tuple)) else f"a {type(weights).__name__}"
        raise ValueError(f"weights are {given}; expected {len(shapes)}: {shapes}")
    _check_array("x", x, x.dtype, *x.shape)
    _check_array("y", y, x.dtype, len(x), 1)
    for k, (array, shape) in enumerate(zip(weights, shapes)):
        _check_array(f"weights[{k}]", array, x.dtype, *shape)
    rows = unmasked(batches)
    if rows.ndim != 2 or rows.dtype.kind not in "iu" or rows.size == 0:
        raise ValueError(f"batches are {rows.dtype}{rows.shape}; expected integers [steps, batch], at least one")
    if outside := [row for row in (rows.min(), rows.max()) if not 0 <= row < len(x)]:
        raise IndexError(f"batches hold row {outside[0]}; x has {len(x)} rows")
    if not isinstance(learning_rate, (int, float)) or not 0 < learning_rate < np.inf:
        raise ValueError(f"learning_rate is {learning_rate!r}; expected a positive number")


def _each(array, make):
    """make(array, k, j) for each number of an array of weights: a list of rows."""
    return [[make(array, k, j) for j in range(array.shape[1])] for k in range(array.shape[0])]


def _dense(inputs, w, b):
    """One row through one layer: dot(inputs, w[:, j]) + b[0][j] for each column j."""
    return [dot(inputs, [row[j] for row in w]) + bias for j, bias in enumerate(b[0])]


def line_row(row, target, weights, sums, g):
    """One row of the line: its part of the loss. Adds its slopes to the sums [dw, db]."""
    (w, b), (dw, db) = weights, sums
    (prediction,) = _dense(row, w, b)  # forward
    error = prediction - target
    loss = error * error  # loss
    slopes, de = line_slopes(error, row, g)  # backward
    db[0][0] += de
    for k, slope in enumerate(slopes):
        dw[k][0] += slope
    return loss


@functools.cache
def train_program(row_step, dtype, shapes, lanes=None):
    """The program that trains weights of these shapes, each row by `row_step`: any rows, any batch, any number of steps."""
    a = Assembler("train", dtype, lanes)
    x, y = a.array("x", "rows", shapes[0][0]), a.array("y", "rows", 1)
    arrays = [a.array(f"weights{m}", *shape) for m, shape in enumerate(shapes)]
    batches, losses = a.array("batches", "steps", "batch", rows_of="rows"), a.array("losses", "steps")
    n, learning_rate = a.count("batch"), a.number("learning_rate")
    g = 1.0 / n
    with a.loop("steps") as step:
        weights = [_each(array, a.load) for array in arrays]  # model
        loss, sums = a.sum(), [_each(array, lambda *place: a.sum()) for array in arrays]
        with a.loop("batch", a.lanes) as r:
            i = a.load(batches, step, r)
            row = [a.load(x, i, k) for k in range(x.shape[1])]
            loss += row_step(row, a.load(y, i, 0), weights, sums, g)
        a.store(loss.total() / n, losses, step)
        for array, w, dw in zip(arrays, weights, sums):  # update
            for k, j in np.ndindex(*array.shape):
                a.store(descend(w[k][j], dw[k][j].total(), learning_rate), array, k, j)
    return a.assemble()


class Fit(NamedTuple):
    """What training gives back."""

    losses: np.ndarray  # [steps], each taken before its update
    weights: list  # like the argument
    predict: Callable  # x[m, features] -> [m, 1]


@functools.cache
def _predict_program(forward, dtype, shapes):
    """A program that predicts: what `forward` gives last, for each row."""
    a = Assembler("predict", dtype)
    x, out = a.array("x", "rows", shapes[0][0]), a.array("out", "rows", 1)
    weights = [_each(a.array(f"weights{m}", *shape), a.load) for m, shape in enumerate(shapes)]
    with a.loop("rows", a.lanes) as r:
        *_, answer = forward([a.load(x, r, k) for k in range(x.shape[1])], *weights)
        a.store(answer, out, r, 0)
    return a.assemble()


def _fit(row_step, forward, x, y, weights, batches, learning_rate):
    """Put everything into memory, train in one call, and keep the weights there for predictions."""
    cpu, features, dtype = pool()["cpu:0"], x.shape[1], x.dtype
    shapes = tuple(w.shape for w in weights)
    trained = {f"weights{k}": cpu.put(w) for k, w in enumerate(weights)}
    rows, losses = cpu.put(np.asarray(batches, np.int64)), cpu.alloc((len(batches),), dtype)
    data = dict(x=cpu.put(x), y=cpu.put(y), batches=rows, losses=losses, learning_rate=learning_rate)
    train_program(row_step, dtype, shapes)(**data, **trained)

    def predict(x):
        check_inputs(x, dtype, features)
        out = cpu.alloc((len(x), 1), dtype)
        _predict_program(forward, dtype, shapes)(x=cpu.put(x), out=out, **trained)
        return out.numpy()

    return Fit(losses.numpy(), [w.numpy() for w in trained.values()], predict)


def linear_regression(x, y, weights, batches, learning_rate=0.0005):
    """Mean squared error, stochastic gradient descent; see `Fit` and `check_task` for the shapes."""
    check_task(x, y, weights, batches, learning_rate, units=[1])
    return _fit(line_row, _dense, x, y, weights, batches, learning_rate)


def _relu(z):
    """z, or 0.0 where z is not positive. So asked, a NaN stays a NaN."""
    return select(z <= 0.0, 0.0, z)


def _forward(row, w1, b1, w2, b2, w3, b3):
    """One row through the net: the hidden layers' outputs and the probability."""
    h1 = [_relu(z) for z in _dense(row, w1, b1)]
    h2 = [_relu(z) for z in _dense(h1, w2, b2)]
    (z,) = _dense(h2, w3, b3)
    return h1, h2, 1.0 / (1.0 + exp(0.0 - z))


def through_relu(d, h, w):
    """The slopes at a hidden layer's units, a list of numbers: 0 where relu cut, else the sum over the next layer's units."""
    return [select(output <= 0.0, 0.0, dot(d, row)) for output, row in zip(h, w)]


def _clipped(p):
    """A probability at least 1e-7 away from 0 and 1, where a logarithm would be infinite."""
    return select(p < 1e-7, 1e-7, select(p > 1.0 - 1e-7, 1.0 - 1e-7, p))


def _slope_at_z(target, p, c, g):
    """The slope of one row's loss at z, the last layer's output before the sigmoid."""
    dc = g * target / c - g * (1.0 - target) / (1.0 - c)
    dp = select(p > 1e-7, select(p < 1.0 - 1e-7, dc, 0.0), 0.0)
    return dp * p * (1.0 - p)


def _backward(sums, row, target, h1, h2, p, c, weights, g):
    """Add one row's gradients to the sums [dw1, db1, dw2, db2, dw3, db3]."""
    dz = [_slope_at_z(target, p, c, g)]
    dh2 = through_relu(dz, h2, weights[4])
    dh1 = through_relu(dh2, h1, weights[2])
    for dw, db, inputs, d in zip(sums[::2], sums[1::2], (row, h1, h2), (dh1, dh2, dz)):
        for j, dj in enumerate(d):
            db[0][j] += dj
            for k, value in enumerate(inputs):
                dw[k][j] += value * dj


def net_row(row, target, weights, sums, g):
    """One row of the net: its part of the loss. Adds its slopes to the sums [dw1, db1, …]."""
    h1, h2, prediction = _forward(row, *weights)  # forward
    c = _clipped(prediction)
    loss = (target - 1.0) * log(1.0 - c) - target * log(c)  # loss
    _backward(sums, row, target, h1, h2, prediction, c, weights, -g)  # backward
    return loss


def dnn_classifier(x, y, weights, batches, learning_rate=0.01):
    """features-4-8-1, relu, relu, sigmoid; binary cross-entropy, SGD; see `Fit`, `check_task`."""
    check_task(x, y, weights, batches, learning_rate, units=[4, 8, 1])
    return _fit(net_row, _forward, x, y, weights, batches, learning_rate)

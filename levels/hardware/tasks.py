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


def dense(inputs, w, b):
    """One row through one layer: dot(inputs, w[:, j]) + b[0][j] for each unit j."""
    return [dot(inputs, column) + bias for column, bias in zip(zip(*w), b[0])]


def _line_row(row, target, weights, sums, g):
    """One row of the line: its part of the loss. Adds its slopes to the sums [dw, db]."""
    (w, b), (dw, db) = weights, sums
    (prediction,) = dense(row, w, b)  # forward
    error = prediction - target
    loss = error * error  # loss
    slopes, de = line_slopes(error, row, g)  # backward
    db[0][0] += de
    for k, slope in enumerate(slopes):
        dw[k][0] += slope

    return loss


def _each_of(array, make):
    """make(k, j) for each place of an array, as a list of rows."""
    return [[make(k, j) for j in range(array.shape[1])] for k in range(array.shape[0])]


def _weight_arrays(a, shapes):
    """The arrays of the weights [w, b] or [w1, b1, w2, …] of these shapes."""
    return [a.array(name, *shape) for name, shape in zip(weight_names(shapes), shapes)]


def _load_weights(a, arrays):
    """Every number of the arrays in a register: each array as a list of rows."""
    return [_each_of(array, functools.partial(a.load, array)) for array in arrays]


def weight_names(weights):
    """w and b, or w1, b1, w2, b2, …: what the programs call these arrays."""
    layers = range(1, len(weights) // 2 + 1)
    return ["w", "b"] if len(weights) == 2 else [f"{name}{k}" for k in layers for name in "wb"]


def _train_program(name, dtype, shapes, row_step, lanes=None):
    """A program that trains weights of these shapes: any rows, any batch, any number of steps."""
    a = Assembler(name, dtype, lanes)
    x, y = a.array("x", "rows", shapes[0][0]), a.array("y", "rows", 1)
    arrays, losses = _weight_arrays(a, shapes), a.array("losses", "steps")
    batches = a.array("batches", "steps", "batch", rows_of="rows")
    n, learning_rate = a.count("batch"), a.number("learning_rate")
    g = 1.0 / n
    with a.loop("steps") as step:
        weights = _load_weights(a, arrays)  # model
        loss, sums = a.sum(), [_each_of(array, lambda k, j: a.sum()) for array in arrays]
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


def _check_array(name, array, dtype, *shape):
    """Raise ValueError unless this is a NumPy array of that dtype and shape, with no NaN and no infinity."""
    if not isinstance(array, np.ndarray) or (unmasked(array).dtype, array.shape) != (dtype, shape):
        found = f"{getattr(array, 'dtype', type(array).__name__)}{list(getattr(array, 'shape', ()))}"
        raise ValueError(f"{name} is {found}; expected a NumPy array {dtype}{list(shape)}")
    if not np.isfinite(array).all():
        row = np.argmin(np.isfinite(array).all(axis=1))
        raise ValueError(f"{name} is not a finite number in row {row}; drop or fill such rows")


def check_inputs(x, dtype, features):
    """Raise ValueError unless x is [m, features] of that dtype, with no NaN and no infinity."""
    _check_array("x", x, dtype, *np.shape(x)[:1], features)


def check_task(x, y, weights, batches, learning_rate, units):
    """Raise TypeError, ValueError or IndexError unless all fit each other and a net of layers with that many `units`.

    x[rows, features] and y[rows, 1] of one float dtype; weights [w, b, …], w[inputs, units] and b[1, units] of that dtype;
    batches[steps, batch], row numbers of x.
    """
    dtype = x.dtype if isinstance(x, np.ndarray) else type(x).__name__
    if dtype not in (np.float32, np.float64):
        raise TypeError(f"x is {dtype}; expected a NumPy array of float32 or float64")
    if x.ndim != 2:
        raise ValueError(f"x has shape {x.shape}; expected [rows, features]")
    sizes = [x.shape[1], *units]
    shapes = [shape for inputs, outputs in zip(sizes, units) for shape in ((inputs, outputs), (1, outputs))]
    if not isinstance(weights, (list, tuple)) or len(weights) != len(shapes):
        given = f"{len(weights)} arrays" if isinstance(weights, (list, tuple)) else f"a {type(weights).__name__}"
        raise ValueError(f"weights are {given}; expected {len(shapes)}: {shapes}")
    _check_array("x", x, dtype, *x.shape)
    _check_array("y", y, dtype, len(x), 1)
    for i, (array, shape) in enumerate(zip(weights, shapes)):
        _check_array(f"weights[{i}]", array, dtype, *shape)
    rows = unmasked(batches)
    if rows.ndim != 2 or rows.dtype.kind not in "iu" or rows.size == 0:
        raise ValueError(f"batches are {rows.dtype}{rows.shape}; expected integers [steps, batch], at least one")
    if rows.min() < 0 or rows.max() >= len(x):
        raise IndexError(f"batches hold row {rows.min() if rows.min() < 0 else rows.max()}; x has {len(x)} rows")
    if not isinstance(learning_rate, (int, float)) or not 0 < learning_rate < np.inf:
        raise ValueError(f"learning_rate is {learning_rate!r}; expected a positive number")


def _predict_program(name, dtype, shapes, forward):
    """A program that predicts, one row after the other."""
    a = Assembler(name, dtype)
    x, out = a.array("x", "rows", shapes[0][0]), a.array("out", "rows", 1)
    weights = _load_weights(a, _weight_arrays(a, shapes))
    with a.loop("rows") as r:
        (answer,) = forward([a.load(x, r, k) for k in range(x.shape[1])], *weights)
        a.store(answer, out, r, 0)
    return a.assemble()


@functools.cache
def linear_program(dtype, features):
    """The program that trains a linear regression."""
    return _train_program("linear_regression", dtype, [(features, 1), (1, 1)], _line_row)


@functools.cache
def _linear_predict_program(dtype, features):
    """The program that predicts with a line."""
    return _predict_program("linear_predict", dtype, [(features, 1), (1, 1)], dense)


def _run_programs(train, forward, x, y, weights, batches, learning_rate):
    """Put everything into memory, train in one call, and keep the weights there for predictions."""
    cpu, features, dtype = pool()["cpu:0"], x.shape[1], x.dtype
    trained = dict(zip(weight_names(weights), map(cpu.put, weights)))
    rows, losses = cpu.put(np.asarray(batches, np.int64)), cpu.alloc((len(batches),), dtype)
    data = dict(x=cpu.put(x), y=cpu.put(y), batches=rows)
    train(dtype, features)(losses=losses, learning_rate=learning_rate, **data, **trained)

    def predict(x):
        check_inputs(x, dtype, features)
        out = cpu.alloc((len(x), 1), dtype)
        forward(dtype, features)(x=cpu.put(x), out=out, **trained)
        return out.numpy()

    return Fit(losses.numpy(), [w.numpy() for w in trained.values()], predict)


def linear_regression(x, y, weights, batches, learning_rate=0.0005):
    """Mean squared error, stochastic gradient descent; see `Fit` and `check_task` for the shapes."""
    check_task(x, y, weights, batches, learning_rate, units=[1])
    programs = linear_program, _linear_predict_program
    return _run_programs(*programs, x, y, weights, batches, learning_rate)


def relu(z):
    """z, or 0.0 where z is not positive. So asked, a NaN stays a NaN."""
    return select(z <= 0.0, 0.0, z)


def forward(row, w1, b1, w2, b2, w3, b3):
    """One row through the net: the hidden layers' outputs and the probability."""
    h1 = [relu(z) for z in dense(row, w1, b1)]
    h2 = [relu(z) for z in dense(h1, w2, b2)]
    (z,) = dense(h2, w3, b3)
    return h1, h2, 1.0 / (1.0 + exp(0.0 - z))


def through_relu(d, h, w):
    """The slopes at a hidden layer's units: 0 where relu cut, else the sum over the next layer's units."""
    return [select(output <= 0.0, 0.0, dot(d, row)) for output, row in zip(h, w)]


def clipped(p):
    """A probability at least 1e-7 away from 0 and 1, where a logarithm would be infinite."""
    return select(p < 1e-7, 1e-7, select(p > 1.0 - 1e-7, 1.0 - 1e-7, p))


def backward(sums, row, target, h1, h2, p, c, weights, g):
    """Add one row's gradients to the sums [dw1, db1, dw2, db2, dw3, db3]."""
    _, _, w2, _, w3, _ = weights
    dc = g * target / c - g * (1.0 - target) / (1.0 - c)
    dp = select(p > 1e-7, select(p < 1.0 - 1e-7, dc, 0.0), 0.0)
    dz = [dp * p * (1.0 - p)]
    dh2 = through_relu(dz, h2, w3)
    dh1 = through_relu(dh2, h1, w2)
    layers = zip((sums[:2], sums[2:4], sums[4:]), (row, h1, h2), (dh1, dh2, dz))
    for (dw, db), inputs, d in layers:
        for j, dj in enumerate(d):
            db[0][j] += dj
            for k, value in enumerate(inputs):
                dw[k][j] += value * dj


def _net_row(row, target, weights, sums, g):
    """One row of the net: its part of the loss. Adds its slopes to the sums [dw1, db1, …]."""
    h1, h2, prediction = forward(row, *weights)  # forward
    c = clipped(prediction)
    loss = (target - 1.0) * log(1.0 - c) - target * log(c)  # loss
    backward(sums, row, target, h1, h2, prediction, c, weights, -g)  # backward

    return loss


def _net_shapes(features):
    """The shapes of the net's weights [w1, b1, w2, b2, w3, b3]."""
    return [(features, 4), (1, 4), (4, 8), (1, 8), (8, 1), (1, 1)]


@functools.cache
def dnn_program(dtype, features, lanes=None):
    """The program that trains the net."""
    return _train_program("dnn_classifier", dtype, _net_shapes(features), _net_row, lanes)


@functools.cache
def _dnn_predict_program(dtype, features):
    """The program that predicts with the net."""
    return _predict_program("dnn_predict", dtype, _net_shapes(features), lambda *row: forward(*row)[2:])


def dnn_classifier(x, y, weights, batches, learning_rate=0.01):
    """features-4-8-1, relu, relu, sigmoid; binary cross-entropy, SGD; see `Fit`, `check_task`."""
    check_task(x, y, weights, batches, learning_rate, units=[4, 8, 1])
    return _run_programs(dnn_program, _dnn_predict_program, x, y, weights, batches, learning_rate)

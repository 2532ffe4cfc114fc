"""The two tasks in machine code: one program, one call, any number of steps."""

# Built from 01_hardware.ipynb: edit there, then run its last cell.

import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .assembler import Assembler, select
from .device import pool, unmasked
from .elementary import exp, log


class Fit(NamedTuple):
    """What training gives back."""

    losses: np.ndarray  # [steps], each taken before its update
    weights: list  # like the argument
    predict: Callable  # x[m, features] -> [m, 1]


def check_array(name, array, dtype, *shape):
    """Raise ValueError unless this is a NumPy array of that dtype and shape, with no NaN and no infinity."""
    if not isinstance(array, np.ndarray) or (unmasked(array).dtype, array.shape) != (dtype, shape):
        found = f"{getattr(array, 'dtype', type(array).__name__)}{list(np.shape(array))}"
        raise ValueError(f"{name} is {found}; expected a NumPy array {dtype}{list(shape)}")
    if not np.isfinite(array).all():
        row = np.argmin(np.isfinite(array).all(axis=1))
        raise ValueError(f"{name} is not a finite number in row {row}; drop or fill such rows")


def check_inputs(x, dtype, features):
    """Raise ValueError unless x is [m, features] of that dtype, with no NaN and no infinity."""
    check_array("x", x, dtype, *np.shape(x)[:1], features)


def check_task(x, y, weights, batches, learning_rate, units):
    """Raise TypeError, ValueError or IndexError unless all fit each other and a net of layers with that many `units`.

    x[rows, features] and y[rows, 1] of one float dtype; weights [w, b, …], w[inputs, units] and b[1, units] of that dtype;
    batches[steps, batch], row numbers of x.
    """
    dtype = getattr(x, "dtype", None)
    if dtype not in (np.float32, np.float64):
        raise TypeError(f"x is {dtype or type(x).__name__}; expected a NumPy array of float32 or float64")
    if x.ndim != 2:
        raise ValueError(f"x has shape {x.shape}; expected [rows, features]")
    sizes = [x.shape[1], *units]
    shapes = [shape for inputs, outputs in zip(sizes, units) for shape in ((inputs, outputs), (1, outputs))]
    if len(weights) != len(shapes):
        raise ValueError(f"weights are {len(weights)} arrays; expected {len(shapes)}: {shapes}")
    check_array("x", x, dtype, *x.shape)
    check_array("y", y, dtype, len(x), 1)
    for i, (array, shape) in enumerate(zip(weights, shapes)):
        check_array(f"weights[{i}]", array, dtype, *shape)
    rows = np.asarray(batches)
    if rows.ndim != 2 or rows.dtype.kind not in "iu" or rows.size == 0:
        raise ValueError(f"batches are {rows.dtype}{rows.shape}; expected integers [steps, batch], at least one")
    if rows.min() < 0 or rows.max() >= len(x):
        raise IndexError(f"batches hold row {rows.min() if rows.min() < 0 else rows.max()}; x has {len(x)} rows")
    if not isinstance(learning_rate, (int, float)) or not 0 < learning_rate < np.inf:
        raise ValueError(f"learning_rate is {learning_rate!r}; expected a positive number")


def dot(p, q):
    """0.0 + p[0]·q[0] + p[1]·q[1] + …, in that order. Python's `sum` would not do: since 3.12 it corrects its rounding."""
    total = 0.0
    for a, b in zip(p, q):
        total = total + a * b
    return total


@functools.cache
def linear_predict_program(dtype, features):
    """The program that predicts: one row after the other."""
    a = Assembler("linear_predict", dtype)
    x, out = a.array("x", "rows", features), a.array("out", "rows", 1)
    w, b = a.array("w", features, 1), a.array("b", 1, 1)
    with a.loop("rows") as r:
        row = [a.load(x, r, k) for k in range(features)]
        a.store(dot(row, [a.load(w, k, 0) for k in range(features)]) + a.load(b, 0, 0), out, r, 0)
    return a.assemble()


@functools.cache
def linear_program(dtype, features):
    """The program that trains a linear regression: any rows, any batch, any number of steps."""
    a = Assembler("linear_regression", dtype)
    x, y = a.array("x", "rows", features), a.array("y", "rows", 1)
    w_, b_ = a.array("w", features, 1), a.array("b", 1, 1)
    batches, losses = a.array("batches", "steps", "batch", rows_of="rows"), a.array("losses", "steps")
    n, learning_rate = a.count("batch"), a.number("learning_rate")
    g = 1.0 / n
    with a.loop("steps") as step:
        w, b = [a.load(w_, k, 0) for k in range(features)], a.load(b_, 0, 0)  # model
        loss, dw, db = a.sum(), [a.sum() for _ in w], a.sum()
        with a.loop("batch", a.lanes) as r:
            i = a.load(batches, step, r)
            rows = [a.load(x, i, k) for k in range(features)]
            prediction = dot(rows, w) + b  # forward
            error = prediction - a.load(y, i, 0)
            loss += error * error  # loss
            de = g * error + g * error  # backward
            db += de
            for k in range(features):
                dw[k] += rows[k] * de
        a.store(loss.total() / n, losses, step)
        a.store(b - learning_rate * db.total(), b_, 0, 0)  # update
        for k in range(features):
            a.store(w[k] - learning_rate * dw[k].total(), w_, k, 0)
    return a.assemble()


def weight_names(weights):
    """w and b, or w1, b1, w2, b2, …: what the programs call these arrays."""
    return ["w", "b"] if len(weights) == 2 else [f"{name}{k + 1}" for k in range(len(weights) // 2) for name in "wb"]


def run_programs(train, forward, x, y, weights, batches, learning_rate):
    """Put everything into memory, train in one call, and keep the weights there for predictions."""
    cpu, features, dtype = pool()["cpu:0"], x.shape[1], x.dtype
    trained = dict(zip(weight_names(weights), map(cpu.put, weights)))
    rows, losses = cpu.put(np.asarray(batches, np.int64)), cpu.alloc((len(batches),), dtype)
    data = dict(x=cpu.put(x), y=cpu.put(y), batches=rows, losses=losses, learning_rate=learning_rate)
    train(dtype, features)(**data, **trained)

    def predict(x):
        check_inputs(x, dtype, features)
        out = cpu.alloc((len(x), 1), dtype)
        forward(dtype, features)(x=cpu.put(x), out=out, **trained)
        return out.numpy()

    return Fit(losses.numpy(), [w.numpy() for w in trained.values()], predict)


def linear_regression(x, y, weights, batches, learning_rate=0.0005):
    """Mean squared error, stochastic gradient descent; see `Fit` and `check_task` for the shapes."""
    check_task(x, y, weights, batches, learning_rate, units=[1])
    return run_programs(linear_program, linear_predict_program, x, y, weights, batches, learning_rate)


def relu(z):
    return select(z <= 0.0, 0.0, z)  # so asked, a NaN stays a NaN


def dense(inputs, w, b):
    """One row through one layer: dot(inputs, w[:, j]) + b[0][j] for each unit j."""
    return [dot(inputs, column) + bias for column, bias in zip(zip(*w), b[0])]


def forward(row, weights):
    """One row through the net: the hidden layers' outputs and the probability."""
    w1, b1, w2, b2, w3, b3 = weights
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
    for (dw, db), inputs, d in zip((sums[:2], sums[2:4], sums[4:]), (row, h1, h2), (dh1, dh2, dz)):
        for j, dj in enumerate(d):
            db[0][j] += dj
            for k, value in enumerate(inputs):
                dw[k][j] += value * dj


def net_arrays(a, features):
    """The arrays of the net's weights: w1[features, 4], b1[1, 4], w2[4, 8], b2[1, 8], w3[8, 1], b3[1, 1]."""
    shapes = [(features, 4), (1, 4), (4, 8), (1, 8), (8, 1), (1, 1)]
    return [a.array(name, *shape) for name, shape in zip(weight_names(shapes), shapes)]


def load_weights(a, arrays):
    """Every number of the arrays [w1, b1, …] in a register: each array as a list of rows."""
    return [[[a.load(array, k, j) for j in range(array.shape[1])] for k in range(array.shape[0])] for array in arrays]


@functools.cache
def dnn_program(dtype, features, lanes=None):
    """The program that trains the net: any rows, any batch, any number of steps."""
    a = Assembler("dnn_classifier", dtype, lanes)
    x, y, arrays = a.array("x", "rows", features), a.array("y", "rows", 1), net_arrays(a, features)
    batches, losses = a.array("batches", "steps", "batch", rows_of="rows"), a.array("losses", "steps")
    n, learning_rate = a.count("batch"), a.number("learning_rate")
    with a.loop("steps") as step:
        weights = load_weights(a, arrays)  # model
        loss, sums = a.sum(), [[[a.sum() for _ in range(w.shape[1])] for _ in range(w.shape[0])] for w in arrays]
        with a.loop("batch", a.lanes) as r:
            i = a.load(batches, step, r)
            rows, target = [a.load(x, i, k) for k in range(features)], a.load(y, i, 0)
            h1, h2, prediction = forward(rows, weights)  # forward
            c = clipped(prediction)
            loss += target * log(c) + (1.0 - target) * log(1.0 - c)  # loss
            backward(sums, rows, target, h1, h2, prediction, c, weights, -1.0 / n)  # backward
        a.store(0.0 - loss.total() / n, losses, step)
        for array, w, dw in zip(arrays, weights, sums):  # update
            for k, j in np.ndindex(*array.shape):
                a.store(w[k][j] - learning_rate * dw[k][j].total(), array, k, j)
    return a.assemble()


@functools.cache
def dnn_predict_program(dtype, features):
    """The program that predicts: one row after the other."""
    a = Assembler("dnn_predict", dtype)
    x, out = a.array("x", "rows", features), a.array("out", "rows", 1)
    weights = load_weights(a, net_arrays(a, features))
    with a.loop("rows") as r:
        a.store(forward([a.load(x, r, k) for k in range(features)], weights)[-1], out, r, 0)
    return a.assemble()


def dnn_classifier(x, y, weights, batches, learning_rate=0.01):
    """features-4-8-1, relu, relu, sigmoid; binary cross-entropy, stochastic gradient descent; see `Fit`, `check_task`."""
    check_task(x, y, weights, batches, learning_rate, units=[4, 8, 1])
    return run_programs(dnn_program, dnn_predict_program, x, y, weights, batches, learning_rate)

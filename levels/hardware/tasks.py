"""The two tasks in machine code: one program, one call, any number of steps."""

# Built from notebooks/01_hardware.ipynb: edit there, then run its last cell.

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .assembler import Assembler
from .device import pool


class Fit(NamedTuple):
    """What training gives back."""

    losses: np.ndarray  # [steps], each taken before its update
    weights: list  # like the argument
    predict: Callable  # x[m, features] -> [m, 1]


def check_inputs(x, dtype, features):
    """Raise unless x is [m, features] of that dtype, with no NaN and no infinity."""
    if not isinstance(x, np.ndarray) or x.ndim != 2 or x.shape[1] != features or x.dtype != dtype:
        found = f"{x.dtype}{list(x.shape)}" if isinstance(x, np.ndarray) else type(x).__name__
        raise ValueError(f"x is {found}; expected a NumPy array {dtype}[rows, {features}]")
    if not np.isfinite(x).all():
        raise ValueError(f"x is not a finite number in row {np.argmin(np.isfinite(x).all(axis=1))}; drop or fill such rows")


def check_task(x, y, weights, batches, learning_rate, units):
    """Raise unless data, starting weights and batches fit each other and a net of layers with that many `units`."""
    dtype = getattr(x, "dtype", None)
    if dtype not in (np.float32, np.float64):
        raise TypeError(f"x is {dtype or type(x).__name__}; expected a NumPy array of float32 or float64")
    if x.ndim != 2:
        raise ValueError(f"x has shape {x.shape}; expected [rows, features]")
    check_inputs(x, dtype, x.shape[1])
    sizes = [x.shape[1], *units]
    shapes = [s for inputs, outputs in zip(sizes, units) for s in ((inputs, outputs), (1, outputs))]
    expected = [("y", y, (len(x), 1))]
    if len(weights) != len(shapes):
        raise ValueError(f"weights are {len(weights)} arrays; expected {len(shapes)}: {shapes}")
    expected += [(f"weights[{i}]", w, shape) for i, (w, shape) in enumerate(zip(weights, shapes))]
    for name, array, shape in expected:
        if getattr(array, "shape", None) != shape or array.dtype != dtype:
            raise ValueError(f"{name} is {getattr(array, 'dtype', '')}{np.shape(array)}; expected {dtype}{shape}")
        if not np.isfinite(array).all():
            raise ValueError(f"{name} holds a number that is not finite; drop or fill it first")
    rows = np.asarray(batches)
    if rows.ndim != 2 or rows.dtype.kind not in "iu" or rows.size == 0:
        raise ValueError(f"batches are {rows.dtype}{rows.shape}; expected integers [steps, batch], at least one")
    if rows.min() < 0 or rows.max() >= len(x):
        raise IndexError(f"batches hold row {rows.min() if rows.min() < 0 else rows.max()}; x has {len(x)} rows")
    if not isinstance(learning_rate, (int, float)) or not np.isfinite(learning_rate):
        raise ValueError(f"learning_rate is {learning_rate!r}; expected a finite number")


def dot(p, q):
    """0.0 + p[0]·q[0] + p[1]·q[1] + …, in that order."""
    return sum((a * b for a, b in zip(p, q)), 0.0)


def linear_program(dtype, features):
    """The program that trains a linear regression: any rows, any batch, any number of steps."""
    a = Assembler("linear_regression", dtype)
    x, y = a.array("x", "rows", features), a.array("y", "rows", 1)
    w_, b_ = a.array("w", features, 1), a.array("b", 1, 1)
    batches, losses = a.array("batches", "steps", "batch", rows_of="rows"), a.array("losses", "steps")
    n, learning_rate = a.count("batch"), a.number("learning_rate")
    with a.loop("steps") as step:
        w, b = [a.load(w_, k, 0) for k in range(features)], a.load(b_, 0, 0)
        loss, dw, db = a.sum(), [a.sum() for _ in w], a.sum()
        with a.loop("batch", a.lanes) as r:
            i = a.load(batches, step, r)
            rows = [a.load(x, i, k) for k in range(features)]
            prediction = dot(rows, w) + b  # forward
            error = prediction - a.load(y, i, 0)
            loss += error * error  # loss
            g = 1.0 / n
            de = g * error + g * error  # backward
            db += de
            for k in range(features):
                dw[k] += rows[k] * de
        a.store(loss.total() / n, losses, step)
        a.store(b - learning_rate * db.total(), b_, 0, 0)  # update
        for k in range(features):
            a.store(w[k] - learning_rate * dw[k].total(), w_, k, 0)
    return a.assemble()


def linear_predict_program(dtype, features):
    """The program that predicts: one row after the other."""
    a = Assembler("linear_predict", dtype)
    x, out = a.array("x", "rows", features), a.array("out", "rows", 1)
    w, b = a.array("w", features, 1), a.array("b", 1, 1)
    with a.loop("rows") as r:
        row = [a.load(x, r, k) for k in range(features)]
        a.store(dot(row, [a.load(w, k, 0) for k in range(features)]) + a.load(b, 0, 0), out, r, 0)
    return a.assemble()


def linear_regression(x, y, weights, batches, learning_rate=0.0005):
    """Mean squared error, stochastic gradient descent; see `Fit` and `check_task` for the shapes."""
    check_task(x, y, weights, batches, learning_rate, units=[1])
    cpu, features = pool()["cpu:0"], x.shape[1]
    w, b = map(cpu.put, weights)
    rows, losses = cpu.put(np.asarray(batches, np.int64)), cpu.alloc((len(batches),), x.dtype)
    train, forward = linear_program(x.dtype, features), linear_predict_program(x.dtype, features)
    train(x=cpu.put(x), y=cpu.put(y), w=w, b=b, batches=rows, losses=losses, learning_rate=learning_rate)

    def predict(x):
        check_inputs(x, w.dtype, features)
        out = cpu.alloc((len(x), 1), w.dtype)
        forward(x=cpu.put(x), w=w, b=b, out=out)
        return out.numpy()

    return Fit(losses.numpy(), [w.numpy(), b.numpy()], predict)

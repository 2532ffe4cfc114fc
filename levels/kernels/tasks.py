"""The two tasks as launches: every op on a whole batch, gradients by hand."""

# Built from notebooks/02_kernels.ipynb: edit there, then run its last cell.

import numpy as np

from levels.hardware import pool
from levels.hardware.tasks import Fit, check_inputs, check_task

from .registry import launch


def linear_forward(prediction, xw, x, w, b):
    """prediction[n, 1] = x[n, k] @ w[k, 1] + b[1, 1]"""
    launch("matmul", xw, x, w)
    launch("add", prediction, xw, b)


def linear_regression(x, y, weights, batches, learning_rate=0.0005):
    """Mean squared error, stochastic gradient descent; see `Fit` and `check_task` for the shapes."""
    check_task(x, y, weights, batches, learning_rate, units=[1])
    cpu, dtype, (batch, features), losses = pool()["cpu:0"], x.dtype, (len(batches[0]), x.shape[1]), []
    x_, y_, w, b = map(cpu.put, (x, y, *weights))
    n, g = (cpu.put(np.full((1, 1), v, dtype)) for v in (batch, dtype.type(1) / dtype.type(batch)))
    rows, target, xw, prediction, error, squared, ge, de = (
        cpu.alloc((batch, width), dtype) for width in (features, 1, 1, 1, 1, 1, 1, 1)
    )
    dw, db, total, loss = (cpu.alloc(shape, dtype) for shape in ((features, 1), (1, 1), (1, 1), (1, 1)))
    for numbers in np.asarray(batches, np.int64):
        i = cpu.put(numbers)
        launch("gather", rows, x_, i)
        launch("gather", target, y_, i)
        linear_forward(prediction, xw, rows, w, b)  # forward
        launch("subtract", error, prediction, target)
        launch("multiply", squared, error, error)  # loss
        launch("reduce_sum", total, squared, axis=0, keepdims=True)
        launch("divide", loss, total, n)
        launch("multiply", ge, g, error)  # backward
        launch("add", de, ge, ge)
        launch("matmul", dw, rows, de, transpose_x=True)
        launch("reduce_sum", db, de, axis=0, keepdims=True)
        launch("sgd", w, dw, rate=float(learning_rate))  # update
        launch("sgd", b, db, rate=float(learning_rate))
        losses.append(loss.data[0, 0])

    def predict(x):
        check_inputs(x, dtype, features)
        xw, prediction = (cpu.alloc((len(x), 1), dtype) for _ in "12")
        linear_forward(prediction, xw, cpu.put(x), w, b)
        return prediction.numpy()

    return Fit(np.array(losses), [w.numpy(), b.numpy()], predict)

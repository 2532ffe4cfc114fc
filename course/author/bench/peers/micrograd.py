"""micrograd: every number is a node of the graph."""

import functools
import operator
from importlib.metadata import version

import numpy as np
from micrograd.engine import Value

from course.author.bench.work import Trainer

NAME, VERSION, PACKAGES = "micrograd", version("micrograd"), ["micrograd"]


def eager(work):
    if work.loss != "mse" or work.optimizer != "sgd" or work.x.size > 10_000:
        raise NotImplementedError("micrograd has neither exp nor log")
    weights = [[[Value(p) for p in row] for row in w.tolist()] for w in work.weights]
    x, y = work.x.tolist(), work.y.tolist()

    def layer(row, w, b):
        return [
            sum(map(operator.mul, row, column), bias) for column, bias in zip(zip(*w, strict=True), b[0], strict=True)
        ]

    def output(row):
        *hidden, last = zip(weights[::2], weights[1::2], strict=True)
        for w, b in hidden:
            row = [z.relu() for z in layer(row, w, b)]
        return layer(row, *last)

    def step(rows):
        errors = [output(x[i])[0] - y[i][0] for i in rows]
        value = functools.reduce(operator.add, [e * e for e in errors]) * (1 / len(errors))
        parameters = [p for w in weights for row in w for p in row]
        for p in parameters:
            p.grad = 0
        value.backward()
        for p in parameters:
            p.data -= work.rate * p.grad
        return value.data

    return Trainer(
        lambda order: [step(rows) for rows in work.batches(order)],
        lambda: [np.array([[p.data for p in row] for row in w]) for w in weights],
    )


MODES = {"eager": ("eager", eager)}

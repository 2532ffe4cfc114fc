"""A work: what every library is given to do, and what it makes of it."""

import json
import time
from typing import Any, NamedTuple

import numpy as np


class Work(NamedTuple):
    """What is to be done: train dense layers, relu between them, on the rows of x, y. Or `loss` names one op on x and y."""

    x: Any  # [rows, inputs]
    y: Any  # [rows, outputs], one-hot for "cross_entropy"
    weights: list  # [w1, b1, w2, b2, …], w [inputs, units], b [1, units]
    order: Any  # of the rows, in the epoch that is compared
    loss: str  # "mse", "bce", "cross_entropy"; or an op: "add", "exp", "sum", "matmul"
    optimizer: str = "sgd"  # or "adam": betas 0.9 and 0.999
    rate: float = 0.01
    batch: int = 1
    drawn: bool = False  # whether an epoch's order is drawn before its clock starts

    def batches(self, order):
        return order.reshape(-1, self.batch)

    def shuffled(self):
        return DRAW.permutation(len(self.x))

    def save(self, path):
        arrays = {"x": self.x, "y": self.y, "order": self.order}
        arrays |= {f"w{k}": w for k, w in enumerate(self.weights)}
        settings = {name: getattr(self, name) for name in ("loss", "optimizer", "rate", "batch", "drawn")}
        np.savez(path, settings=json.dumps(settings), **arrays)


DRAW = np.random.default_rng(1)


def load(path):
    """The Work in a file."""
    with np.load(path) as file:
        weights = [file[f"w{k}"] for k in range(len(file.files) - 4)]
        return Work(file["x"], file["y"], weights, file["order"], **json.loads(str(file["settings"])))


class Trainer(NamedTuple):
    """What a mode of a library makes of a Work."""

    epoch: Any  # epoch(order) trains on the rows in that order; returns the losses of the steps, or their mean
    weights: Any  # weights() -> NumPy arrays like those of the Work
    fit: Any = None  # fit(epochs) trains for so many epochs where the library shuffles for itself

    def train(self, work, epochs):
        """Train for so many epochs, each in a new order. Returns the seconds of it."""
        if self.fit:
            return seconds(self.fit, epochs)
        if work.drawn:  # one at a time: of 10⁷ rows an order has 80 MB
            return sum(seconds(self.epoch, work.shuffled()) for _ in range(epochs))
        return sum(seconds(lambda: self.epoch(work.shuffled())) for _ in range(epochs))


def seconds(call, *args):
    start = time.perf_counter()
    call(*args)
    return time.perf_counter() - start

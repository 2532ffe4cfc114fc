"""Level 5: a step of `fit` against NumPy in place, level 1's program, a PyTorch loop and Keras' fit; float32, one thread.

The rings' net, 2-4-8-1, Adam, 4,000 rows in batches of 100, shuffled in each epoch. Each first shows that it computes the same:
from the same weights and in the same order of rows, the losses of an epoch agree. Then whole epochs, shuffle and all, run in
turn in one process, on one core; medians are compared, a step is a fortieth of an epoch. Level 1's program does SGD: its row
says what all the levels above add to it. Peers that are not installed are skipped (`pip install torch tensorflow`). Repeat
with `python benchmarks/high_level.py`.
"""

import itertools
import os
import statistics
import subprocess
import sys
import time

import numpy as np

from course import tasks
from levels.hardware import pool
from levels.hardware.tasks import dnn_program, weight_names
from levels.high_level import Sequential
from levels.mid_level import SGD, Adam, Dataset, Dense

TASK, RATE, BATCH, EPOCHS = tasks.rings(), 0.01, 100, 600
X, Y, START = TASK.x.astype("f4"), TASK.y.astype("f4"), [w.astype("f4") for w in TASK.weights]
ORDER = np.asarray(TASK.batches[: len(X) // BATCH], np.int64)


def ours(optimizer):
    model = Sequential([Dense(4, "relu"), Dense(8, "relu"), Dense(1, "sigmoid")])
    model.build((None, 2))
    model.set_weights(START)
    model.compile(optimizer, "binary_crossentropy")
    return model


class InPlace:
    """The same in NumPy, by somebody who knows it: every array is made once, and every result is written into one."""

    def __init__(self):
        self.weights, widths = [w.copy() for w in START], (2, 4, 8, 1)
        self.m, self.v, self.g, self.t1, self.t2 = ([np.zeros_like(w) for w in START] for _ in range(5))
        self.h, self.d = ([np.zeros((BATCH, n), "f4") for n in widths] for _ in "hd")
        self.y, self.p, self.q, self.log = (np.zeros((BATCH, 1), "f4") for _ in range(4))
        self.steps = 0

    def step(self, rows):
        h, d, w, g = self.h, self.d, self.weights, self.g
        np.take(X, rows, 0, h[0])
        np.take(Y, rows, 0, self.y)
        for k in range(3):
            np.matmul(h[k], w[2 * k], h[k + 1])
            h[k + 1] += w[2 * k + 1]
            if k < 2:
                np.maximum(h[k + 1], 0, out=h[k + 1])
        p, q, y = self.p, self.q, self.y
        np.negative(h[3], p)
        np.exp(p, p)
        p += 1
        np.reciprocal(p, p)
        np.clip(p, 1e-7, 1 - 1e-7, q)
        np.log(q, self.log)
        self.log *= y
        np.subtract(1, q, q)
        np.log(q, q)
        loss = -float(self.log.sum() + q.sum() - (q * y).sum()) / BATCH
        np.subtract(p, y, d[3])  # sigmoid and logarithm cancel
        d[3] /= BATCH
        for k in (2, 1, 0):
            np.matmul(h[k].T, d[k + 1], g[2 * k])
            np.sum(d[k + 1], 0, keepdims=True, out=g[2 * k + 1])
            if k:
                np.matmul(d[k + 1], w[2 * k].T, d[k])
                d[k] *= h[k] > 0
        self.steps += 1
        c1, c2 = 1 - 0.9**self.steps, 1 - 0.999**self.steps
        for w, g, m, v, t1, t2 in zip(self.weights, self.g, self.m, self.v, self.t1, self.t2, strict=True):
            m *= 0.9
            np.multiply(g, 0.1, t1)
            m += t1
            v *= 0.999
            g *= g
            g *= 0.001
            v += g
            np.divide(v, c2, t1)
            np.sqrt(t1, t1)
            t1 += 1e-7
            np.divide(m, t1, t2)
            t2 *= RATE / c1
            w -= t2
        return loss

    def epoch(self, order):
        return [self.step(rows) for rows in order]


def in_torch():
    """A usual PyTorch loop: a module, a loss, an optimizer, shuffled row numbers. Returns an epoch in a given order."""
    import torch

    torch.set_num_threads(1)
    nn = torch.nn
    net = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1), nn.Sigmoid())
    with torch.no_grad():
        for parameter, w in zip(net.parameters(), START, strict=True):
            parameter.copy_(torch.tensor(w.T if len(w) > 1 or parameter.ndim > 1 else w[0]))
    x, y, loss_of = torch.tensor(X), torch.tensor(Y), nn.BCELoss()
    optimizer = torch.optim.Adam(net.parameters(), RATE, eps=1e-7)

    def epoch(order):
        losses = []
        for rows in torch.as_tensor(order):
            loss = loss_of(net(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        return [float(loss) for loss in losses]

    return epoch


def in_keras():
    """Keras' own fit, on arrays that lie in order. Returns an epoch; Keras shuffles for itself."""
    import keras

    layers = [keras.layers.Dense(4, "relu"), keras.layers.Dense(8, "relu"), keras.layers.Dense(1, "sigmoid")]
    model = keras.Sequential([keras.Input((2,)), *layers])
    model.set_weights([w if k % 2 == 0 else w[0] for k, w in enumerate(START)])
    model.compile(keras.optimizers.Adam(RATE), keras.losses.BinaryCrossentropy())

    def epoch(order=None):
        x, y = (X, Y) if order is None else (X[order.ravel()], Y[order.ravel()])
        return model.fit(x, y, BATCH, shuffle=order is None, verbose=0).history["loss"]

    return epoch


def level_1():
    """Level 1's program, bound: a call trains through an epoch by SGD."""
    put, losses = pool()["cpu:0"].put, pool()["cpu:0"].alloc((len(ORDER),), np.float32)
    weights = dict(zip(weight_names(START), map(put, START), strict=True))
    given = {"x": put(X), "y": put(Y), "batches": put(ORDER), "losses": losses, "learning_rate": RATE}
    return dnn_program(np.dtype("f4"), 2).bind(**given, **weights)


def medians(calls, rounds=11):
    """The median seconds of each of {name: call}, taken in turn."""
    times = {name: [] for name in calls}
    for _, (name, call) in itertools.product(range(rounds), calls.items()):
        start = time.perf_counter()
        call()
        times[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in times.items()}


def row(what, own, name, other, bar):
    own, other = own * 1e6, other * 1e6
    verdict = "" if bar is None else f"bar {bar:g}  {'ok' if own <= bar * other else 'MISSED'}"
    print(f"{what:22} {own:8.2f} µs   {name:24} {other:9.2f} µs   ratio {own / other:7.4f}   {verdict}", flush=True)


def main():
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    rng, peers = np.random.default_rng(1), {}
    for name, make in (("PyTorch", in_torch), ("Keras", in_keras)):
        try:
            peers[name] = make()
        except ImportError:
            print(f"{name} is not installed: skipped")
    losses, by_hand = ours(Adam(RATE)).fit(Dataset.from_batches(X, Y, ORDER), verbose=0).losses, InPlace()
    np.testing.assert_allclose(by_hand.epoch(ORDER), losses, 2e-3, err_msg="NumPy")
    for name, epoch in peers.items():
        expected = losses if name == "PyTorch" else [losses.mean()]
        np.testing.assert_allclose(epoch(ORDER), expected, 2e-3, err_msg=name)

    adam, sgd = ours(Adam(RATE)), ours(SGD(RATE))
    calls = {
        "fit, Adam": (EPOCHS, lambda: adam.fit(X, Y, BATCH, EPOCHS, 0)),
        "fit, SGD": (EPOCHS, lambda: sgd.fit(X, Y, BATCH, EPOCHS, 0)),
        "level 1's program, SGD": (1, level_1()),
        "NumPy in place": (1, lambda: by_hand.epoch(rng.permutation(len(X)).reshape(-1, BATCH))),
    }
    calls |= {name: (1, lambda e=e: e(rng.permutation(len(X)).reshape(-1, BATCH))) for name, e in peers.items()}
    seconds = medians({name: call for name, (_, call) in calls.items()})
    step = {name: value / calls[name][0] / len(ORDER) for name, value in seconds.items()}
    row("fit, SGD", step["fit, SGD"], "level 1's program, SGD", step["level 1's program, SGD"], None)
    for name, bar in (("NumPy in place", 0.12), ("PyTorch", 1 / 20), ("Keras", 1 / 100)):
        if name in step:
            row("fit, Adam", step["fit, Adam"], name, step[name], bar)
    program = "import time; t = time.perf_counter(); import levels.high_level; print(time.perf_counter() - t)"
    command = [sys.executable, "-c", program]
    imports = [float(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout) for _ in range(5)]
    print(f"import levels.high_level   {statistics.median(imports):.2f} s   bar 0.5")


if __name__ == "__main__":
    main()

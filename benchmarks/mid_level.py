"""Level 4 against level 3: a step through layers, loss and Adam, and what a Dataset adds to a batch.

The rings' net, 2-4-8-1, batch 100, one thread. By hand the step names each weight and each moment; level 4's says layers, loss
and optimizer. Both are compiled, and first show equal losses to the last bit. Then they run in turn in one process, on one
core; medians are compared. The bar is a ratio of 1.1. A pass of a Dataset, shuffled and in batches, is compared with the row
numbers alone; the bar is 2 µs a batch. Repeat with `python benchmarks/mid_level.py`.
"""

import itertools
import math
import os
import statistics
import time

import numpy as np

from course import tasks
from levels.low_level import (
    GradientTape,
    Variable,
    clip,
    constant,
    exp,
    function,
    log,
    nn,
    reduce_mean,
    sqrt,
)
from levels.mid_level import Adam, BinaryCrossentropy, Dataset, Dense

TASK, RATE, BETAS = tasks.rings(), 0.01, (0.9, 0.999)


def by_hand(start):
    """Level 3: each weight and each moment by its name."""
    weights, (m, v) = [Variable(w) for w in start], ([Variable(np.zeros_like(w)) for w in start] for _ in BETAS)
    t = Variable(np.zeros((), start[0].dtype))

    @function
    def step(x, y):
        with GradientTape() as tape:
            w1, b1, w2, b2, w3, b3 = weights
            p = clip(nn.sigmoid(nn.relu(nn.relu(x @ w1 + b1) @ w2 + b2) @ w3 + b3), 1e-7, 1.0 - 1e-7)
            loss = -reduce_mean(y * log(p) + (1.0 - y) * log(1.0 - p))
        gradients = tape.gradient(loss, weights)
        t.assign(t + 1.0)
        c1, c2 = (1.0 - exp(t * math.log(beta)) for beta in BETAS)
        for w, dw, mean, square in zip(weights, gradients, m, v, strict=True):
            mean.assign(BETAS[0] * mean + (1.0 - BETAS[0]) * dw)
            square.assign(BETAS[1] * square + (1.0 - BETAS[1]) * (dw * dw))
            w.assign(w - RATE * (mean / c1) / (sqrt(square / c2) + 1e-7))
        return loss

    return step


def by_layers(start):
    """Level 4."""
    layers = [Dense(4, "relu"), Dense(8, "relu"), Dense(1, "sigmoid")]
    for layer, w, b in zip(layers, start[::2], start[1::2], strict=True):
        layer.dtype = w.dtype
        layer.build((None, len(w)))
        layer.set_weights([w, b])
    variables, loss_of, adam = [v for layer in layers for v in layer.variables], BinaryCrossentropy(), Adam(RATE)

    @function
    def step(x, y):
        with GradientTape() as tape:
            for layer in layers:
                x = layer(x, training=True)
            loss = loss_of(y, x)
        adam.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return loss

    return step


def medians(*calls, rounds=61, repeats=5):
    """The median seconds of each of these calls, taken in turn."""
    times = [[] for _ in calls]
    for _, (call, own) in itertools.product(range(rounds), list(zip(calls, times, strict=True))):
        start = time.perf_counter()
        for _ in range(repeats):
            call()
        own.append((time.perf_counter() - start) / repeats)
    return map(statistics.median, times)


def row(what, own, other, bar, verdict):
    print(f"{what:32} {own * 1e6:8.3f} µs beside {other * 1e6:8.3f} µs   {bar}   {'ok' if verdict else 'MISSED'}")


def steps(dtype):
    """A step of an epoch in one call, and one step a call."""
    x, y, epoch = (
        constant(TASK.x.astype(dtype)),
        constant(TASK.y.astype(dtype)),
        np.asarray(TASK.batches[:40], np.int64),
    )
    start, (a, b) = [w.astype(dtype) for w in TASK.weights], (constant(z.numpy()[:100]) for z in (x, y))
    layers, hand = by_layers(start), by_hand(start)
    for _ in range(5):
        assert (layers.over(x, y, epoch).numpy() == hand.over(x, y, epoch).numpy()).all(), "the losses differ"
    own, other = (t / 40 for t in medians(lambda: layers.over(x, y, epoch), lambda: hand.over(x, y, epoch)))
    row(f"{dtype}, a step of an epoch", own, other, f"ratio {own / other:.3f}, bar 1.1", own <= 1.1 * other)
    own, other = medians(lambda: layers(a, b), lambda: hand(a, b), repeats=200)
    row(f"{dtype}, one step a call", own, other, f"ratio {own / other:.3f}, bar 1.1", own <= 1.1 * other)


def passes():
    """An epoch from a shuffled Dataset, beside one from row numbers that lie ready."""
    data = Dataset.from_tensor_slices((TASK.x.astype("f4"), TASK.y.astype("f4"))).shuffle(4000, seed=1).batch(100)
    step, ((x, y), epoch) = by_layers([w.astype("f4") for w in TASK.weights]), data.rows()

    def from_dataset():
        arrays, batches = data.rows()
        step.over(*arrays, batches)

    own, other = (t / 40 for t in medians(from_dataset, lambda: step.over(x, y, epoch)))
    row("a batch of a shuffled Dataset", own, other, f"adds {(own - other) * 1e6:.2f} µs, bar 2", own - other <= 2e-6)


def main():
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    steps("float32")
    steps("float64")
    passes()


if __name__ == "__main__":
    main()

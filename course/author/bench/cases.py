"""The cases to measure: trainings, kernels, growth. Also a lower limit of the time of each."""

import functools
import itertools
import math
import os
from typing import Any, NamedTuple

import numpy as np

from course.author.bench.libraries import LIBRARIES
from course.author.bench.work import Work
from course.reader import tasks

SLOW = {"torch": "torch.compile", "tinygrad": "lazy"}  # they need half a minute to start, and are left out of --quick
GROWING = {  # library: its modes in the sections growth and start, one for each API
    "levels": ["3 eager", "3 function.over", "5 fit"],
    "numpy": ["in place"],
    "torch": ["eager"],
    "jax": ["lax.scan"],
    "tensorflow": ["Keras fit"],
}


class Case(NamedTuple):
    """One case to measure. The cases of a family differ in their size."""

    section: str
    family: str
    size: Any
    make: Any  # make() -> Work
    threads: int = 1
    modes: Any = {}  # library: the modes to measure, if not all


def of_task(task, batch, optimizer, dtype="f4", rows=None):
    """Return the Work of a task of the course, or of its first `rows` rows."""
    x, y, *weights = (a.astype(dtype) for a in (task.x[:rows], task.y[:rows], *task.weights))
    loss = "bce" if len(weights) > 2 else "mse"
    return Work(x, y, weights, tasks.shuffled(len(x), 1), loss, optimizer, task.learning_rate, batch)


def of_net(rows, sizes, batch, loss, optimizer, rate):
    """Return the Work of a net with these layer sizes, on normal numbers. At most 10,000 rows are compared."""
    rng = np.random.default_rng(1)
    weights = []
    for inputs, units in itertools.pairwise(sizes):
        weights += [np.float32(math.sqrt(2 / inputs)) * rng.standard_normal((inputs, units), "f4")]
        weights += [np.zeros((1, units), "f4")]
    x = rng.standard_normal((rows, sizes[0]), "f4")
    if loss == "cross_entropy":
        y = np.eye(sizes[-1], dtype="f4")[rng.integers(0, sizes[-1], rows)]
    else:
        y = np.float32((x * x).sum(axis=1, keepdims=True) > sizes[0])
    return Work(x, y, weights, rng.permutation(rows)[:10_000], loss, optimizer, rate, batch)


def of_op(op, size):
    """Return the Work of one op on float32 arrays [size], or for "matmul" on matrices [size, size]."""
    rng = np.random.default_rng(1)
    x, y = (rng.random((size, size) if op == "matmul" else size, "f4") for _ in "xy")
    return Work(x, y, [], np.arange(1), op)


def only(**modes):
    """Return `modes` of a Case: only these modes of these libraries, and none of other libraries."""
    return dict.fromkeys(LIBRARIES, []) | modes


WIDE = only(levels=["1", "2", "3 eager", "3 function", "3 function.over"], numpy=["naive", "in place"])  # in float64
AGAIN = only(levels=["5 fit again"], tensorflow=["Keras fit again"], sklearn=["MLP fit again"])


def cases():
    """Yield all cases."""
    yield from trainings()
    sizes = {op: (100, 10_000, 10**6, 10**7) for op in ("add", "exp", "sum")} | {"matmul": (32, 128, 512, 1024)}
    for op, size in ((each, size) for each in sizes for size in sizes[each]):
        yield Case("kernels", op, size, lambda op=op, n=size: of_op(op, n))
    yield from growth()


def trainings():
    """Yield the cases that train the course's two tasks, and larger nets."""
    for name, batch, optimizer in (("linear", 10, "sgd"), *itertools.product(["rings"], [100, 10], ["sgd", "adam"])):
        title = f"{name}, batch {batch}, {optimizer.upper() if optimizer == 'sgd' else 'Adam'}"
        yield Case("training", title, "", lambda f=name, b=batch, o=optimizer: of_task(getattr(tasks, f)(), b, o))
    title = "rings in float64, batch 100, SGD"
    yield Case("training", title, "", lambda: of_task(tasks.rings(), 100, "sgd", "f8"), 1, WIDE)
    title = "rings, four steps, each fit a new one"
    yield Case("training", title, "", lambda: of_task(tasks.rings(), 100, "sgd", rows=400), 1, AGAIN)
    title = "8-16-16-4, batch 32, Adam"
    yield Case("training", title, "", lambda: of_net(3200, (8, 16, 16, 4), 32, "cross_entropy", "adam", 0.001))
    large = 2560, (784, 512, 512, 10), 256, "cross_entropy", "adam", 0.001
    for threads in (1, 2) if (os.cpu_count() or 1) > 1 else (1,):
        title = f"784-512-512-10, batch 256, Adam, {threads} thread{'s' * (threads > 1)}"
        yield Case("training", title, "", lambda: of_net(*large), threads)


def growth():
    """Yield the cases of a net with an increasing number of rows, units, or layers."""

    def grown(family, size, rows, sizes):
        def make():
            drawn = family == "rows"  # draw each epoch's order before its clock starts
            return of_net(rows, sizes, 100, "bce", "sgd", 0.01)._replace(drawn=drawn)

        return Case("growth", family, size, make, 1, GROWING)

    for power in range(2, 8):
        yield grown("rows", 10**power, 10**power, (2, 4, 8, 1))
    for width in (4, 16, 64, 256, 1024, 4096):
        yield grown("width", width, 400, (16, width, width, 1))
    for depth in (1, 4, 16, 64):
        yield grown("depth", depth, 400, (16, *[16] * depth, 1))


def traffic(work):
    """Return (flops, bytes) of a step, if each number is read and written once, whether or not a cache holds it."""
    size = work.x.size
    word = work.x.itemsize
    if not work.weights:
        flops = {"add": size, "exp": 10 * size, "sum": size, "matmul": 2 * size * len(work.x)}[work.loss]
        return flops, word * size * {"add": 3, "exp": 2, "sum": 1, "matmul": 3}[work.loss]
    products = sum(w.size for w in work.weights[::2])
    parameters = sum(w.size for w in work.weights)
    flops = 2 * work.batch * (3 * products - work.weights[0].size)  # one product forward, two backward, except for x
    rows = work.batch * (work.x.shape[1] + work.y.shape[1])
    return flops, word * (rows + parameters * (2 if work.optimizer == "sgd" else 6))


def limit(work, threads):
    """Return the least seconds of a step by level 1's cost model, with the bandwidth of reading about as many bytes."""
    from levels_more.hardware import pool

    cpu = pool()["cpu:0"]
    flops, nbytes = traffic(work)
    near = 2 ** min(28, max(14, 2 * round(math.log2(nbytes) / 2)))
    launches = work.batch / len(work.x) if work.weights else 1
    return launches * cpu.launch_time + max(flops / (threads * cpu.peak), nbytes / bandwidth(near))


@functools.cache
def bandwidth(nbytes):
    """Return the bytes per second at which one core reads arrays of this size, measured once."""
    from levels_more.hardware import measure_reading, pool

    return measure_reading(pool()["cpu:0"], nbytes)

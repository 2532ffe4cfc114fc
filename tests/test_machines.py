"""Several processes, started for real: the same bits on any number of ranks, and what happens where one of them does not come."""

import importlib.util
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from course import build
from levels_more import machines

MPIEXEC = next(filter(Path.exists, (Path(sys.executable).with_name(name) for name in ("mpiexec", "mpiexec.exe"))), None)
there = pytest.mark.skipif(
    not (MPIEXEC and importlib.util.find_spec("mpi4py")), reason=f"MPI is not here: {machines.INSTALL}"
)


def started(script, ranks, *arguments, **more):
    """A process that runs this text in so many ranks; for None it is Python alone."""
    command = [sys.executable, "-c", textwrap.dedent(script), *map(str, arguments)]
    if ranks:
        command = [str(MPIEXEC), "-n", str(ranks), *command]
    here = build.environment(build.ROOT) | {"NUMBA_NUM_THREADS": "1"} | more
    return subprocess.Popen(command, env=here, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def told(process, seconds=120):
    """What a process printed, when it has ended: (its exit status, its output, its errors)."""
    try:
        out, errors = process.communicate(timeout=seconds)
    finally:
        process.kill()
    return process.returncode, out, errors


def ran(script, ranks, *arguments):
    """The output of a script that ends well."""
    status, out, errors = told(started(script, ranks, *arguments))
    assert status == 0, errors
    return out


NETS = """
    import hashlib
    import numpy as np
    from course.tasks import rings
    from levels.high_level import DistributedDataParallel, Sequential
    from levels.low_level import world
    from levels.mid_level import SGD, Adam, BatchNormalization, Dense, Dropout, Embedding, Flatten

    draw, task = np.random.default_rng(0), rings()
    classes = draw.integers(0, 10, 180)
    words = draw.integers(0, 9, (120, 3))
    small = lambda: Sequential([Dense(4, "relu"), Dense(8, "relu"), Dense(1, "sigmoid")])
    wide = lambda: Sequential([Dense(512, "relu"), Dense(512, "relu"), Dense(10, "softmax")])
    parts = lambda: Sequential([Dense(8), BatchNormalization(), Dropout(0.5, seed=3), Dense(1, "sigmoid")])
    text = lambda: Sequential([Embedding(9, 4, dtype="float64"), Flatten(), Dense(1, "sigmoid")])
    images = draw.standard_normal((180, 784)), np.eye(10)[classes]
    points = task.x[:1000], task.y[:1000]
    sentences = words, (words.sum(1) > 12)[:, None] * 1.0

    # name: a net, an optimizer, a loss, x and y, rows in a batch
    CASES = {
        "rings, SGD": (small, SGD(0.01), "binary_crossentropy", points, 100),
        "rings, Adam, an uneven batch": (small, Adam(0.01), "binary_crossentropy", points, 37),
        "784-512-512-10, SGD": (wide, SGD(0.01), "categorical_crossentropy", images, 60),
        "784-512-512-10, Adam, an uneven batch": (wide, Adam(0.001), "categorical_crossentropy", images, 77),
        "sums in the middle, and what is drawn": (parts, Adam(0.01), "binary_crossentropy", points, 64),
        "rows by number": (text, SGD(0.1), "binary_crossentropy", sentences, 32),
        "fewer rows than ranks": (small, SGD(0.01), "mse", (task.x[:13], task.y[:13]), 3),
    }

    def train(name, dtype, model=lambda net: net):
        make, optimizer, loss, (x, y), batch = CASES[name]
        net = make()
        x = x.astype(dtype) if x.dtype.kind == "f" else x
        net.build((None, *x.shape[1:]), dtype if x.dtype.kind == "f" else x.dtype)
        draw = np.random.default_rng(1)
        net.set_weights([w if w.dtype.kind == "i" else draw.normal(0, w.shape[0] ** -0.5, w.shape).astype(w.dtype) if w.ndim == 2 else w for w in net.get_weights()])
        model = model(net)
        model.compile(optimizer.again(), loss, metrics=["accuracy"])
        history = model.fit(x, y.astype(dtype), batch_size=batch, epochs=2, seed=5, verbose=0, validation_split=0.2)
        return net, history, model.evaluate(x, y.astype(dtype)), model.predict(x)

    def digest(net, history, loss, answers):
        numbers = [*net.get_weights(), history.losses, np.array([*history.history.values()]), np.array(loss), answers]
        return hashlib.sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in numbers)).hexdigest()[:16]
"""

BITS = (
    NETS
    + """
    for name in CASES:
        results = train(name, "float64", DistributedDataParallel if world().comm else lambda net: net)
        if world().rank == 0:
            print(f"{name}: {digest(*results)}")
"""
)


@pytest.fixture(scope="module")
def plain():
    return ran(BITS, None)


@there
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_any_number_of_ranks_gives_the_bits_of_one_process(ranks, plain, tell):
    begun = time.perf_counter()
    out = ran(BITS, ranks)
    tell("machines: the same bits", f"{ranks} ranks, {out.count(':')} trainings {time.perf_counter() - begun:>7.1f} s")
    assert out == plain and out.count("\n") == 7

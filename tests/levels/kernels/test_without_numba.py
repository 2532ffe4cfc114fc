"""What the cache holds runs without numba: the same bits, the same errors, in a process that never imports it."""

import subprocess
import sys

import pytest

from course.author.build import ROOT, environment

LAUNCHES = """
import hashlib, sys
import numpy as np
from course.reader import tasks
from levels.hardware import pool
from levels.kernels import ELEMENTWISE, KERNELS, NUMBERS, launch
from levels.kernels import tasks as two

cpu = pool()["cpu:0"]
draw = np.random.default_rng(1)
found = hashlib.sha256()


def run(op, *inputs, out=None, **attrs):
    result = launch(op, out and cpu.put(out), *map(cpu.put, inputs), **attrs)
    found.update(result.numpy().tobytes())


for dtype in ("f4", "f8"):
    a, b, column = (draw.normal(size=shape).astype(dtype) for shape in ((7, 5), (7, 5), (7, 1)))
    rows = np.array([6, 0, 6])
    for op in ELEMENTWISE:
        inputs = KERNELS[op, "cpu"].__code__.co_argcount - len(NUMBERS.get(op, ()))
        numbers = NUMBERS.get(op, {})
        if op == "sgd":
            launch(op, w := cpu.put(a), cpu.put(b), **numbers)
            found.update(w.numpy().tobytes())
            continue
        run(op, *(a, b, a)[:inputs], **numbers)
        if inputs == 2:
            run(op, a, column, **numbers)
            run(op, a[:0], a[:0], **numbers)
    for axis in (None, 0, 1):
        run("reduce_sum", a, axis=axis)
    run("reduce_sum", draw.normal(size=5000).astype(dtype))
    run("gather", a, rows)
    run("matmul", a, b.T.copy())
    run("matmul", a, b, transpose_x=True)
    run("matmul", a, b, transpose_w=True)
task = tasks.rings()
found.update(two.dnn_classifier(*task[:2], task.weights, task.batches[:20], 0.01).losses.tobytes())
print(found.hexdigest())
print("numba" in sys.modules)
{more}
"""
REFUSED = """
try:
    launch("gather", None, cpu.put(a), cpu.put(np.array([7])))
except IndexError as error:
    print(error, "numba" in sys.modules)
"""


def run(folder, more=""):
    """Return what is printed by a fresh Python whose programs are kept in this folder."""
    env = environment(ROOT) | {"LEVELS_CACHE": str(folder)}
    script = LAUNCHES.replace("{more}", more)
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")[:-1]


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A folder that a first process has filled, and what that process printed."""
    folder = tmp_path_factory.mktemp("programs")
    return folder, run(folder)


def test_all_kernels_of_the_core_give_the_same_bits_without_numba(filled):
    folder, (bits, imported) = filled
    assert imported == "True"
    assert run(folder) == [bits, "False"]


def test_an_error_is_raised_by_way_of_numba(filled):
    folder, (bits, _) = filled
    assert run(folder, REFUSED) == [bits, "False", "gather: a row number is out of range True"]


FIT = """
import sys
from levels.high_level import Sequential
from levels.mid_level import Dense

x = [[-1.0, 2.0], [3.0, 0.5], [0.0, 1.0]]
model = Sequential([Dense(4, "relu"), Dense(1)])
model.compile("adam", "mse")
model.fit(x, [1.0, 2.0, 3.0], batch_size=2, epochs=2, verbose=0)
model.evaluate(x, [1.0, 2.0, 3.0])
print(model.predict(x).shape, "numba" in sys.modules, "matplotlib" in sys.modules)
"""


def test_fit_imports_no_numba_not_even_with_an_empty_cache(tmp_path):
    env = environment(ROOT) | {"LEVELS_CACHE": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", FIT], env=env, capture_output=True, text=True, check=True)
    assert done.stdout == "(3, 1) False False\n"

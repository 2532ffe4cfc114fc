"""The core stands alone, and `levels_more` is built on it."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from course import build


def python(code: str, **environment: str) -> str:
    """What this code prints in a fresh process that sees this project."""
    env = os.environ | {"PYTHONPATH": str(build.ROOT)} | environment
    root = env["PYTHONPATH"]  # where it runs, too, for Python looks there first
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, timeout=120, cwd=root)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.quick
def test_nothing_of_it_is_imported_before_it_is_asked_for():
    code = "import sys, levels.high_level\nprint([name for name in sys.modules if name.startswith('levels_more')])"
    assert python(code) == "[]\n"


CORE = """
import json
import importlib
from course import tasks
result = {}
for level in ("hardware", "kernels", "low_level", "mid_level", "high_level"):
    for name in ("linear_regression", "dnn_classifier"):
        task = tasks.FOR[name]()
        fit = getattr(importlib.import_module(f"levels.{level}.tasks"), name)
        fit = fit(task.x, task.y, task.weights, task.batches[:300], task.learning_rate)
        result[f"{level} {name}"] = [float(loss).hex() for loss in fit.losses]
print(json.dumps(result))
"""
ALONE = """
import sys
from importlib.util import find_spec
from pathlib import Path
sys.path = [path for path in sys.path if not Path(path, "levels_more").exists()]  # that of the project itself, too
print(find_spec("levels").origin, find_spec("levels_more"))
"""


def test_the_core_gives_the_same_bits_with_levels_more_deleted(tmp_path):
    """That it passes its tests without `levels_more` is held by test_core_alone.py."""
    levels = [build.level_of(name) for name in build.names_in(build.ROOT)]
    root = build.copy_project(build.ROOT, tmp_path.resolve() / "copy", levels)
    shutil.rmtree(root / "levels_more")
    where, alone = python(ALONE + CORE, PYTHONPATH=str(root)).splitlines()
    assert where == f"{root / 'levels' / '__init__.py'} None"
    alone = json.loads(alone)
    here = {}
    exec(CORE.replace("print(json.dumps(result))", ""), here)
    assert alone == here["result"]
    for name in ("linear_regression", "dnn_classifier"):
        assert len({tuple(losses) for key, losses in alone.items() if key.endswith(name)}) == 1


KINDS = """
from levels_more import hardware
from levels_more.hardware import pool
from levels_more.kernels import BACKENDS, KERNELS
print(*sorted(pool()), "|", *BACKENDS)
for ask in (lambda: KERNELS["add", "gpu"], lambda: hardware.placed_on("gpu:0"), lambda: pool(gpus=2)["gpu:1"]):
    try:
        ask()
        print("there |", *BACKENDS)
    except (LookupError, TypeError, AttributeError) as error:
        print(type(error).__name__, error)
"""


UNHELD = """
import numpy as np
from levels_more.low_level import Variable, eager, function, reduce_mean
w, x = Variable(np.ones((1100, 1))), np.arange(8800.0).reshape(8, 1100)  # more than a row program takes

@function
def step(x):
    loss = reduce_mean(x @ w)
    w.assign(w * 0.5)
    return loss, w

def three():
    w.assign(np.ones((1100, 1)))
    loss, w_now = step(x)
    told = type(w_now).__name__, float(loss), float(w_now.numpy()[0, 0])
    return *told, *function(lambda x: step.python(x)[0]).over(x, [[0, 1], [2, 3], [4]]).numpy().tolist()

compiled = three()
with eager():
    assert three()[1:] == compiled[1:]
told = *compiled, *(program for program, _ in step.programs.values())
"""


def test_what_no_program_of_the_core_holds_runs_op_by_op():
    told = python(UNHELD.replace("levels_more", "levels") + "print(*told)")
    assert told.startswith("Tensor") and told.endswith(" ops, one after the other\n")
    here = {}
    exec(UNHELD, here)
    assert told.split()[:6] == [*map(str, here["told"][:6])]


def test_kinds_of_device_come_in_with_their_room():
    told = python(KINDS).splitlines()
    assert told == ["cpu:0 gpu:0 tpu:0 | cpu gpu tpu", *["there | cpu gpu tpu"] * 3]
    more = "what the notebooks build is here, and there is more in levels_more.hardware"
    more += ": try `from levels_more.hardware import placed_on`"
    assert python(KINDS.replace("levels_more", "levels")).splitlines() == [
        "cpu:0 | cpu",
        "LookupError 'add' has no kernel for 'gpu'; it has one for ['cpu']",
        f"AttributeError levels.hardware has no 'placed_on': {more}",
        "TypeError pool: there are no gpus here; levels_more.hardware brings others",
    ]

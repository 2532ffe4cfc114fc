"""The core stands alone, and `levels_more` is built on it."""

import subprocess
import sys

import pytest

from course import build


def python(code: str) -> str:
    """What this code prints in a fresh process that sees this project."""
    env = build.environment(build.ROOT)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.quick
def test_nothing_of_it_is_imported_before_it_is_asked_for():
    code = "import sys, levels.high_level\nprint([name for name in sys.modules if name.startswith('levels_more')])"
    assert python(code) == "[]\n"


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

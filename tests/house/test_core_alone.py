"""The core stands alone, and `levels_more` is built on it."""

import re

import pytest
from fresh import printed

from course.author.build import ROOT


@pytest.mark.quick
def test_nothing_of_it_is_imported_before_it_is_asked_for():
    code = "import sys, levels.high_level\nprint([name for name in sys.modules if name.startswith('levels_more')])"
    assert printed("-c", code) == "[]\n"


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
    told = printed("-c", UNHELD.replace("levels_more", "levels") + "print(*told)")
    assert told.startswith("Tensor") and told.endswith(" ops, one after the other\n")
    here = {}
    exec(UNHELD, here)
    assert told.split()[:6] == [*map(str, here["told"][:6])]


def test_kinds_of_device_come_in_with_their_room():
    told = printed("-c", KINDS).splitlines()
    assert told == ["cpu:0 gpu:0 tpu:0 | cpu gpu tpu", *["there | cpu gpu tpu"] * 3]
    more = "what the notebooks build is here, and there is more in levels_more.hardware"
    more += ": try `from levels_more.hardware import placed_on`"
    assert printed("-c", KINDS.replace("levels_more", "levels")).splitlines() == [
        "cpu:0 | cpu",
        "LookupError 'add' has no kernel for 'gpu'; it has one for ['cpu']",
        f"AttributeError levels.hardware has no 'placed_on': {more}",
        "TypeError pool: there are no gpus here; levels_more.hardware brings others",
    ]


LEVELS = ROOT / "tests" / "levels"
LEAST = {  # so many of these tests are run, and not skipped
    "hardware/test_hardware.py": 80,
    "kernels/test_kernels.py": 100,
    "low_level/test_low_level.py": 60,
    "mid_level/test_mid_level.py": 57,
    "mid_level/test_mid_level_core.py": 40,
    "high_level/test_high_level.py": 40,
    "test_second_calls.py": 40,
    "test_core_edges.py": 12,
}


@pytest.mark.timeout(900)
def test_the_tests_of_the_levels_hold_for_levels_alone():
    """In one process. So nothing that `levels_more` checks, or adds to a table, hides a fault of the core."""
    options = "-m", "pytest", "--core", "-q", "-rp", "-p", "no:cacheprovider"
    told = printed(*options, *(LEVELS / name for name in LEAST))
    passed = re.findall(r"^PASSED tests/levels/([\w/]+\.py)::", told, re.MULTILINE)
    few = {name: passed.count(name) for name, least in LEAST.items() if passed.count(name) < least}
    assert not few, f"they are skipped: too few of {LEAST} are left"

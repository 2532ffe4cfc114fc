"""`pytest --core`: the tests of the levels hold for `levels` alone, and many of them can be run."""

import re
import subprocess
import sys

import pytest

from course.author.build import ROOT, environment

LEVELS = ROOT / "tests" / "levels"
ELSEWHERE = "stale or next_process"  # these start processes of their own
LEAST = {  # so many of these tests are run, and not skipped
    "hardware/test_hardware.py": 85,
    "kernels/test_kernels.py": 100,
    "low_level/test_low_level.py": 73,
    "mid_level/test_mid_level.py": 65,
    "high_level/test_high_level.py": 40,
    "test_second_calls.py": 60,
}


def run(*arguments):
    command = [sys.executable, "-m", "pytest", "--core", "-q", "-p", "no:cacheprovider", *map(str, arguments)]
    env = environment(ROOT, ROOT / "tests", ROOT / "tests" / "support")
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)


@pytest.mark.timeout(900)
def test_the_tests_of_the_levels_hold_for_levels_alone():
    """In one process. So nothing that `levels_more` checks, or adds to a table, hides a fault of the core."""
    done = run(*(LEVELS / name for name in LEAST), "-k", f"not ({ELSEWHERE})", "-rp")
    passed = re.findall(r"^PASSED tests/levels/([\w/]+\.py)::", done.stdout, re.MULTILINE)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr
    few = {name: passed.count(name) for name, least in LEAST.items() if passed.count(name) < least}
    assert not few, f"they are skipped: too few of {LEAST} are left"


TESTS = """
import sys

import pytest
from levels import kernels as core
from levels_more import kernels, low_level
from levels_more.kernels import KERNELS, philox
from levels_more.low_level import Tensor, arg_max
from levels_more.torch.nn import Linear

def test_names_are_those_of_the_core():
    assert KERNELS is core.KERNELS and kernels.launch is core.launch
    assert not [name for name, module in sys.modules.items() if "levels_more" in str(getattr(module, "__file__", ""))]

@pytest.mark.parametrize("use", [
    lambda: arg_max([1.0]), lambda: philox.py_func, lambda: [*Linear], lambda: low_level.reduce_max(1.0),
    lambda: exec("class Mine(Linear): ..."), lambda: 1 in Linear, lambda: kernels.matmul.tiles, lambda: bool(Linear),
])
def test_a_name_that_is_missing_skips(use):
    use()
    raise AssertionError

@pytest.mark.more("a reason")
def test_marked():
    raise AssertionError

def test_that_fails():
    raise AssertionError

def test_an_error_is_no_reason_to_skip():
    with pytest.raises(ZeroDivisionError):
        arg_max([1.0])
"""


def test_what_is_missing_skips_a_test_and_nothing_else_does(tmp_path):
    path = tmp_path / "test_tiny.py"
    path.write_text(TESTS)
    done = run(path, "-c", ROOT / "pyproject.toml", "-p", "conftest", "-rs")
    assert "1 failed, 1 passed, 10 skipped" in done.stdout, done.stdout + done.stderr
    assert "test_that_fails" in done.stdout
    for reason in ("levels has no low_level.arg_max", "levels has no torch.nn.Linear", "needs levels_more: a reason"):
        assert reason in done.stdout


def test_levels_more_must_not_be_there_already():
    code = "import levels_more, core_alone; core_alone.start()"
    env = environment(ROOT, ROOT / "tests" / "support")
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.stderr.endswith("RuntimeError: --core: levels_more was imported before\n")

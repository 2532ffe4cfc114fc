"""`pytest --core`: the tests of the levels hold for `levels` alone, and many of them can be run."""

import re
import subprocess
import sys

import pytest

from course.author.build import ROOT, environment

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


def run(*arguments):
    command = [sys.executable, "-m", "pytest", "--core", "-q", "-p", "no:cacheprovider", *map(str, arguments)]
    env = environment(ROOT, ROOT / "tests", ROOT / "tests" / "support")
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)


@pytest.mark.timeout(900)
def test_the_tests_of_the_levels_hold_for_levels_alone():
    """In one process. So nothing that `levels_more` checks, or adds to a table, hides a fault of the core."""
    done = run(*(LEVELS / name for name in LEAST), "-rp")
    passed = re.findall(r"^PASSED tests/levels/([\w/]+\.py)::", done.stdout, re.MULTILINE)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr
    few = {name: passed.count(name) for name, least in LEAST.items() if passed.count(name) < least}
    assert not few, f"they are skipped: too few of {LEAST} are left"

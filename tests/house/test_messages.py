"""Whoever calls with a wrong argument is told so, in words about the call: on all levels, for what is public (tests/support/calls.py)."""

import ast
import subprocess
import sys

import pytest

from course.author.build import ROOT, environment

OBSCURE = 0.03  # of a level's calls


@pytest.mark.parametrize("level", ["hardware", "kernels", "low_level", "mid_level", "high_level"])
def test_a_wrong_argument_is_told(level, tell):
    """No call is silent, ends the process, goes on for ever, or takes gigabytes; and few end in Python's own words."""
    program = [sys.executable, "-X", "utf8", ROOT / "tests" / "support" / "calls.py", level]
    done = subprocess.run(program, env=environment(ROOT), capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr[-3000:]
    *bad, counts = done.stdout.splitlines()
    tell("wrong arguments", f"{level}: {counts}")
    counts = ast.literal_eval(counts)
    assert sum(counts.values()) > 1000 and counts.keys() <= {"fine", "clear", "obscure"}, bad
    assert counts.get("obscure", 0) <= OBSCURE * sum(counts.values()), bad

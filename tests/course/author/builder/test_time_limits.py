"""Every test ends: one that hangs fails, and the next one runs, whatever the caller did to the signals."""

import os
import signal
import subprocess
import sys

import pytest

from course.author.build import ROOT

IN_PYTHON = """
import time

def test_hangs():
    while True:
        time.sleep(0.01)

def test_next():
    pass
"""
IN_COMPILED_CODE = """
import collections
import itertools

def test_hangs():
    collections.deque(itertools.repeat(0), maxlen=0)  # an endless loop that lets no signal handler and no thread run
"""


def hung(tmp_path, test, *options):
    """pytest's output on this test, under this project's settings but for a limit of one second."""
    (tmp_path / "test_it.py").write_text(test)
    command = [sys.executable, "-m", "pytest", f"--rootdir={tmp_path}", f"--config-file={ROOT / 'pyproject.toml'}"]
    command += ["-p", "no:cacheprovider", "-p", "no:xdist", "-o", "timeout=1", *options, str(tmp_path / "test_it.py")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    return done.stdout + done.stderr


@pytest.mark.skipif(os.name != "posix", reason="elsewhere there is no alarm: a test that hangs ends the whole run")
def test_a_test_that_hangs_fails_and_the_next_one_runs(tmp_path):
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as after `nohup … &`; a child inherits it
    try:
        output = hung(tmp_path, IN_PYTHON)
    finally:
        signal.signal(signal.SIGINT, before)
    assert "1 failed, 1 passed" in output and "Timeout" in output


def test_compiled_code_that_never_returns_ends_the_process_and_says_where(tmp_path):
    output = hung(tmp_path, IN_COMPILED_CODE, "-o", "faulthandler_timeout=3")
    assert "Timeout (0:00:03)!" in output and "test_it.py" in output and "in test_hangs" in output

"""What is used for the first time, in a fresh process, by six threads at once: no crash, and the numbers that one thread finds."""

import json
import subprocess
import sys

import first_uses
import numpy as np
import pytest

from course.build import ROOT, environment

THREADS = 6


def found(group, threads, folder):
    """{what: the numbers that each of so many threads found} in a process of their own."""
    command = [sys.executable, first_uses.__file__, group, str(threads)]
    run = subprocess.run(command, env=environment(ROOT), cwd=folder, capture_output=True, text=True)
    assert run.returncode == 0, f"{group}, {threads} threads: ended by {run.returncode}\n{run.stderr[-3000:]}"
    return json.loads(run.stdout.splitlines()[-1])


@pytest.mark.parametrize("group", first_uses.GROUPS)
def test_six_threads_find_what_one_finds(group, tmp_path):
    alone, together = found(group, 1, tmp_path), found(group, THREADS, tmp_path)
    assert together.keys() == alone.keys()
    for what, (wanted,) in alone.items():
        assert isinstance(wanted, list), wanted  # else it is the text of an error
        for numbers in together[what]:
            assert isinstance(numbers, list), f"{what}: {numbers}"
            # in float32 a program may round a·b + c once, and how often a tape was met decides whether there is one
            np.testing.assert_allclose(numbers, wanted, 1e-5, 1e-6, err_msg=what)

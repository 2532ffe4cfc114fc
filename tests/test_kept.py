"""What was compiled is kept: a damaged file, a folder that cannot be written, a full disk only cost time."""

import os
import subprocess
import sys

import pytest

from course.build import ROOT, environment

TRAINS = """
import hashlib, sys
import numpy as np
from course import tasks
from levels import hardware, kernels

task = tasks.rings()
print(*[float(level.tasks.dnn_classifier(task.x, task.y, task.weights, task.batches[:20]).losses[-1]).hex()
        for level in (hardware, kernels)])
compiled = [sum(p._cache_misses.values()) for p in kernels.cache._PROGRAMS.values()]  # numba counts them
print("compiled" if sum(compiled) else "kept")
"""


def run(folder, **limits):
    """(what was printed) by a fresh Python whose programs are kept in this folder."""
    env = environment(ROOT) | {"LEVELS_CACHE": str(folder), "LEVELS_CORE": "1"}  # where all kernels are numba's
    done = subprocess.run([sys.executable, "-c", TRAINS], env=env, capture_output=True, text=True, **limits)
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")[:2]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A folder of programs that were kept, and the losses they give."""
    folder = tmp_path_factory.mktemp("programs")
    losses, how = run(folder)
    assert how == "compiled" and run(folder) == [losses, "kept"]
    assert not [path for path in folder.iterdir() if path.suffix]  # nothing lies half written
    return folder, losses


def flipped(data):
    return data[: len(data) // 2] + bytes([data[len(data) // 2] ^ 1]) + data[len(data) // 2 + 1 :]


@pytest.mark.parametrize("damage", [lambda data: b"", lambda data: data[:100], lambda data: data[:-1], flipped])
def test_a_damaged_file_is_compiled_again(whole, tmp_path, damage):
    folder, losses = whole
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(damage(path.read_bytes()))
    assert run(tmp_path) == [losses, "compiled"]
    assert run(tmp_path) == [losses, "kept"]  # and whole again


def test_a_folder_that_cannot_be_made_costs_time_only(whole, tmp_path):
    (tmp_path / "file").write_text("")
    assert run(tmp_path / "file" / "folder") == [whole[1], "compiled"]


@pytest.mark.skipif(os.name != "posix", reason="limits are POSIX'")
def test_a_full_disk_costs_time_only(whole, tmp_path):
    def full():
        import resource
        import signal

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a write past the limit is an error then
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    assert run(tmp_path, preexec_fn=full) == [whole[1], "compiled"]
    assert all(path.stat().st_size <= 1000 for path in tmp_path.iterdir())  # cut short, and so not taken:
    assert run(tmp_path) == [whole[1], "compiled"] and run(tmp_path) == [whole[1], "kept"]

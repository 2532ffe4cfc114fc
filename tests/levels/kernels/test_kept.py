"""What was compiled is kept: a damaged file, a folder that cannot be written, a full disk only cost time."""

import itertools
import os
import subprocess
import sys

import pytest

from course.author.build import ROOT, environment
from levels.support import cache

TRAINS = """
import hashlib, sys
import numpy as np
from course import tasks
from levels import hardware, kernels
from levels.support import compiled

task = tasks.linear()
print(*[float(level.tasks.linear_regression(task.x, task.y, task.weights, task.batches[:20]).losses[-1]).hex()
        for level in (hardware, kernels)])
print(sum(sum(p._cache_misses.values()) for p in compiled._PROGRAMS.values()))  # numba counts them
"""


def run(folder, **limits):
    """[the losses, how many programs were compiled] by a fresh Python whose programs are kept in this folder."""
    env = environment(ROOT) | {"LEVELS_CACHE": str(folder)}  # where all kernels are numba's
    done = subprocess.run([sys.executable, "-c", TRAINS], env=env, capture_output=True, text=True, **limits)
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")[:2]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A folder of programs that were kept, the losses they give, and how many there are."""
    folder = tmp_path_factory.mktemp("programs")
    losses, compiled = run(folder)
    assert int(compiled) > 5 and run(folder) == [losses, "0"]
    assert not [path for path in folder.iterdir() if path.suffix]  # nothing lies half written
    return folder, losses, compiled


def test_no_damaged_file_passes_for_a_whole_one(monkeypatch, tmp_path):
    monkeypatch.setattr(cache, "_CACHE", tmp_path)
    cache.cache_put("its text", b"a program")
    (path,) = tmp_path.iterdir()
    data = path.read_bytes()
    cut = [data[:n] for n in range(len(data))]
    flipped = [(int.from_bytes(data, "big") ^ 1 << n).to_bytes(len(data), "big") for n in range(8 * len(data))]
    for damaged in (*cut, *flipped):
        path.write_bytes(damaged)
        assert cache.cache_get("its text") is None
    path.write_bytes(data)
    assert cache.cache_get("its text") == b"a program"


def flipped(data):
    return data[: len(data) // 2] + bytes([data[len(data) // 2] ^ 1]) + data[len(data) // 2 + 1 :]


DAMAGES = [lambda data: b"", lambda data: data[:100], lambda data: data[:-1], flipped]


def test_damaged_files_are_compiled_again(whole, tmp_path):
    folder, losses, compiled = whole
    for path, damage in zip(folder.iterdir(), itertools.cycle(DAMAGES)):
        (tmp_path / path.name).write_bytes(damage(path.read_bytes()))
    assert run(tmp_path) == [losses, compiled]
    assert run(tmp_path) == [losses, "0"]  # and whole again


def test_a_folder_that_cannot_be_made_costs_time_only(whole, tmp_path):
    (tmp_path / "file").write_text("")
    assert run(tmp_path / "file" / "folder") == [*whole[1:]]


@pytest.mark.skipif(os.name != "posix", reason="limits are POSIX'")
def test_a_full_disk_costs_time_only(whole, tmp_path):
    def full():
        import resource
        import signal

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a write past the limit is an error then
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    assert run(tmp_path, preexec_fn=full) == [*whole[1:]]
    assert all(path.stat().st_size <= 1000 for path in tmp_path.iterdir())  # cut short, and so not taken:
    assert run(tmp_path) == [*whole[1:]] and run(tmp_path) == [whole[1], "0"]

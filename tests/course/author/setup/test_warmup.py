"""Kernels that are compiled ahead: a first eager step finds them all."""

import os
import subprocess
import sys

import pytest

from course.author.setup import warmup

STEP = """
from course import tasks
from levels.low_level import eager
from levels.low_level.tasks import dnn_classifier

task = tasks.rings()
x, y, *weights = (a.astype("f4") for a in (task.x, task.y, *task.weights))
with eager():
    dnn_classifier(x, y, weights, task.batches[:2])
"""


@pytest.mark.weekly  # it compiles all kernels anew: a fault costs a reader seconds, once
def test_an_eager_step_finds_its_kernels_compiled(tmp_path):
    environment = os.environ | {"LEVELS_CACHE": str(tmp_path)}
    subprocess.run([sys.executable, "-m", "course.author.setup.warmup"], env=environment, check=True)
    kept = {*os.listdir(tmp_path)}
    subprocess.run([sys.executable, "-c", STEP], env=environment, check=True)
    assert len(kept) > 50 and {*os.listdir(tmp_path)} == kept


def test_it_begins_in_a_process_of_its_own(monkeypatch, tmp_path):
    begun = []
    monkeypatch.setattr(subprocess, "Popen", lambda command, **how: begun.append((command, how["cwd"])))
    warmup.begin(tmp_path)
    assert begun == [([sys.executable, "-m", "course.author.setup.warmup"], tmp_path)]

"""What is used for the first time, in a fresh process, by several threads at once."""

import subprocess
import sys

from course.build import ROOT, environment

FIRST_LAUNCH = """
import threading
import numpy as np
from levels.low_level import constant, reduce_sum

wrong, gate = [], threading.Barrier(6)

def work(k):
    gate.wait()
    for n in range(50):
        rows = n % 7 + 1
        x = constant(np.full((rows, 3), float(k)))
        total = float(reduce_sum(x * 2.0 + 1.0))
        if total != (2.0 * k + 1.0) * 3 * rows:
            wrong.append((k, n, total))

threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert not wrong, wrong[0]
"""


def test_six_threads_launch_for_the_first_time():
    for _ in range(5):
        run = subprocess.run(
            [sys.executable, "-c", FIRST_LAUNCH], env=environment(ROOT), capture_output=True, text=True
        )
        assert run.returncode == 0, f"ended by {run.returncode}: {run.stderr}"

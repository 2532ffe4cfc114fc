"""A training imports NumPy and llvmlite, and nothing that takes longer, not even with an empty cache."""

import subprocess
import sys

import pytest

from course.author.build import ROOT, environment

FIT = """
import sys
import numpy as np
from levels.high_level import Sequential
from levels.mid_level import Dense
from levels.mid_level.tasks import linear_regression

x = [[-1.0, 2.0], [3.0, 0.5], [0.0, 1.0]]
y = [1.0, 2.0, 3.0]  # [rows]: made [rows, 1] for this model
model = Sequential([Dense(4, "relu"), Dense(1)])
model.compile("adam", "mse")
model.fit(x, y, batch_size=2, epochs=2, verbose=0)
model.evaluate(x, y)
model.predict(x)
linear_regression(np.array(x), np.array(y)[:, None], [np.ones((2, 1)), np.zeros((1, 1))], [[0, 1], [2, 0]], 0.1)
print(*[name for name in ("numba", "matplotlib", "IPython", "course") if name in sys.modules])
"""


@pytest.mark.quick
def test_a_training_imports_nothing_slow(tmp_path):
    """numba takes most of a second to import, and compiles a kernel in 0.3 s. A training that is a program needs neither."""
    env = environment(ROOT) | {"LEVELS_CACHE": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", FIT], env=env, capture_output=True, text=True, check=True)
    assert done.stdout == "\n"

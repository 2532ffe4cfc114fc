"""A training with `fit` imports NumPy and llvmlite, and nothing that takes longer, not even with an empty cache."""

import subprocess
import sys

from course.author.build import ROOT, environment

FIT = """
import sys
from levels.high_level import Sequential
from levels.mid_level import Dense

x = [[-1.0, 2.0], [3.0, 0.5], [0.0, 1.0]]
y = [1.0, 2.0, 3.0]
model = Sequential([Dense(4, "relu"), Dense(1)])
model.compile("adam", "mse")
model.fit(x, y, batch_size=2, epochs=2, verbose=0)
model.evaluate(x, y)
print(model.predict(x).shape, *[name for name in ("numba", "matplotlib", "IPython", "course") if name in sys.modules])
"""


def test_fit_evaluate_and_predict_import_nothing_slow(tmp_path):
    env = environment(ROOT) | {"LEVELS_CACHE": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", FIT], env=env, capture_output=True, text=True, check=True)
    assert done.stdout == "(3, 1)\n"

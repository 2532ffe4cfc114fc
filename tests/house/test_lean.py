"""What requirements.lock holds is enough for the five and the trail; where more is needed, it is said what adds it.

That the notebooks run so is held by tests/course/author/builder/test_notebooks.py, which takes the other packages away from their kernels.
"""

import re

import pytest
from fresh import printed

from course import build
from course.reader.notebooks.cells import BuildError

ON_ALL_LEVELS = """
from importlib import import_module
from course import tasks
from levels_more.hardware import pool
for name, task in (("linear_regression", tasks.linear()), ("dnn_classifier", tasks.rings())):
    for level in ("hardware", "kernels", "low_level", "mid_level", "high_level"):
        fit = getattr(import_module(f"levels.{level}.tasks"), name)
        losses = fit(task.x, task.y, task.weights, task.batches[:50], task.learning_rate).losses
        print(name, losses.tobytes().hex())
print(*pool())
print([name for name in sys.modules if name.startswith("levels_more")] != [])
"""


def in_lean(absent, code):
    """What this code prints in a fresh process without these packages."""
    return printed("-c", f"import sys; sys.modules.update(dict.fromkeys({absent}))\n{code}")


def test_both_tasks_run_on_all_levels_with_levels_more_in_reach(absent):
    assert {"greenlet", "onnx", "pandas", "safetensors", "scipy", "sklearn", "pytest"} <= {*absent}
    assert not {"numpy", "numba", "matplotlib", "ipykernel"} & {*absent}
    *lines, devices, reached = in_lean(absent, ON_ALL_LEVELS).splitlines()
    assert len(lines) == 10 and len(set(lines)) == 2, "five levels, one answer"
    assert devices.split() == ["cpu:0", "gpu:0", "tpu:0"] and reached == "True"


MISSING = {  # what a reader asks for, and the package that it needs
    "from levels_more.saving import load_model": "safetensors",
    "from levels_more.high_level import LinearRegressor": "s(cipy|klearn)",
    "from levels_more.saving.onnx import onnx_model": "onnx|safetensors",
    "import levels_more.tensorflow as tf; tf.keras.models.load_model('model')": "safetensors",
    "from levels_more.high_level import TensorBoard; TensorBoard('logs').writer('train')": "tensorboardX",
    "from levels_more.torchkeras import _table; _table({})": "pandas",
    "import numpy as np; from levels_more.hardware import launch_kernel, pool; from levels_more.hardware.gpu.scheduler import simulate; "
    "from levels_more.hardware.gpu.memory import Dim3; simulate(lambda x: None, Dim3(1, 1, 1), Dim3(1, 1, 1), [np.zeros(1)])": "greenlet",
}


def test_what_needs_a_package_says_what_adds_it(absent):
    tried = "".join(
        f"try:\n    exec({asked!r})\nexcept ModuleNotFoundError as error:\n    print(error)\n" for asked in MISSING
    )
    told = in_lean(absent, tried).splitlines()
    assert len(told) == len(MISSING), told
    for line, package in zip(told, MISSING.values(), strict=True):
        assert re.fullmatch(f"({package}) is not installed: `python3 -m course setup` adds it", line), line


def test_apis_are_imported_with_no_package_more(absent):
    code = "from levels_more import tensorflow as tf, torch, torchkeras; print(tf.constant(1.0).numpy(), torch.tensor(1.0))"
    assert in_lean(absent, code) == "1.0 tensor(1.)\n"


def test_a_notebook_stops_with_a_sentence_where_a_package_is_missing():
    wanted = "more/05_table", "numpy", "no_such_package", "nor_this_one"
    with pytest.raises(BuildError, match="needs no_such_package and nor_this_one: `python3 -m course setup`"):
        build.watch(*wanted)

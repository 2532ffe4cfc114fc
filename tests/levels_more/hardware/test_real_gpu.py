"""The real GPU: kernels, both tasks, memory, errors. Without one, a stand-in takes a share of it.

numba's own simulator runs some of these very tests (arrays of numba, threads of Python).
"""

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from course import build, tasks
from levels_more.hardware import GpuError, cuda, placed_on, pool
from levels_more.hardware.gpu.device import RealGpu, real_cuda
from levels_more.kernels import launch
from levels_more.low_level import constant, device

SIMULATED = os.environ.get("NUMBA_ENABLE_CUDASIM", "0") != "0"  # by numba, whose threads take a millisecond
GPU = pool()["gpu:0"]
LEVELS = "kernels", "low_level", "mid_level", "high_level"

on_gpu = pytest.mark.skipif(not isinstance(GPU, RealGpu), reason="numba.cuda finds no GPU")
at_full_speed = pytest.mark.skipif(SIMULATED or not isinstance(GPU, RealGpu), reason="numba.cuda finds no GPU")


# Both tasks. (`test_devices` runs all kernels on the pool's gpu:0, which is the real one where there is one.)


@on_gpu
@pytest.mark.parametrize("level", LEVELS[1:2] if SIMULATED else LEVELS)
@pytest.mark.parametrize(("name", "make"), [("linear_regression", tasks.linear), ("dnn_classifier", tasks.rings)])
def test_both_tasks_train_on_it(level, name, make):
    """Ten epochs, and all losses as near to those of float64 as those of a CPU's float32 are."""
    task, module = make(), importlib.import_module(f"levels.{level}.tasks")
    batches = task.batches[:2, :4] if SIMULATED else task.batches[:400]
    fits = {}
    for kind, dtype in (("cpu", "f8"), ("gpu", "f4")):
        data = [a.astype(dtype) for a in (task.x, task.y)], [w.astype(dtype) for w in task.weights]
        with placed_on(f"{kind}:0"):
            fit = getattr(module, name)(*data[0], data[1], batches, task.learning_rate)
            fits[kind] = [fit.losses, *fit.weights, fit.predict(data[0][0][:4])]
    for right, result in zip(*fits.values(), strict=True):
        assert result.dtype == np.float32
        assert (np.abs(result - right) <= 1e-4 * np.maximum(1, np.abs(right))).all()


# Memory, and errors at the door.


@on_gpu
def test_its_memory_is_its_own_and_is_counted():
    with device("gpu:0"):
        before, x = GPU.used, constant(np.ones((5, 3), "f4"))
        y = x + x
        assert GPU.used == before + 120 and (y.numpy() == 2).all()
        assert hasattr(y.data, "__cuda_ndarray__")
        del x, y
    assert GPU.used == before


@at_full_speed
def test_the_driver_agrees_on_how_much_memory_is_taken():
    driver = real_cuda().current_context()
    before = driver.get_memory_info().free
    buffer = GPU.alloc((2**26,), np.float32)
    assert before - driver.get_memory_info().free >= buffer.spec.nbytes
    assert driver.get_memory_info().total == GPU.memory
    with pytest.raises(MemoryError, match="gpu:0: asked for"):
        GPU.alloc((GPU.memory,), np.float32)


def copy_numbers(out, x):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i]


@on_gpu
def test_what_it_refuses_is_said_at_the_door():
    x, out = GPU.put(np.arange(6.0, dtype="f4")), GPU.alloc((6,), np.float32)
    GPU.launch(copy_numbers, 1, 6, out, x)
    assert out.numpy().tolist() == [0, 1, 2, 3, 4, 5]
    for blocks, threads, given, said in (
        (0, 6, x, "launched with 0 blocks"),
        (1, 2048, x, "2,048; at most 1,024"),
        (1, 6, np.ones(6, "f4"), "put it on gpu:0 first"),
        (1, 6, pool()["cpu:0"].put(np.ones(6, "f4")), "expected a live buffer of gpu:0"),
    ):
        with pytest.raises(GpuError, match=said):
            GPU.launch(copy_numbers, blocks, threads, out, given)
    with pytest.raises(TypeError, match="gpu:0: .*int32"):
        GPU.put(np.ones(3, "i4"))
    with pytest.raises(ValueError, match="add: inputs lie on cpu:0 and gpu:0"):
        launch("add", None, x, pool()["cpu:0"].put(np.ones(6, "f4")))
    with pytest.raises(IndexError, match="gather: a number from 0 to 9 is out of range; there are 6"):
        launch("gather", None, x, GPU.put(np.array([0, 9])))
    with pytest.raises(ValueError, match="cast: NaN"):
        launch("cast", None, GPU.put(np.array([np.nan], "f4")), dtype="i8")
    GPU.free(x)
    with pytest.raises(GpuError, match="freed.; expected a live buffer"):
        GPU.launch(copy_numbers, 1, 6, out, x)


# The stand-in.

# numba's simulated arrays are NumPy's, and know more than those of a real GPU. Here they know no more.
STRICT = """
from numba.cuda.simulator.cudadrv.devicearray import FakeCUDAArray

known, general = {"dtype", "size", "ndim", "strides", "flags", "itemsize", "squeeze"}, FakeCUDAArray.__getattr__

def attribute(self, name):
    if name not in known:
        raise AttributeError(f"a real GPU's array has no {name}")
    return general(self, name)

FakeCUDAArray.__getattr__ = attribute
for name in ("eq", "ne", "lt", "le", "gt", "ge", "add", "sub", "mul", "floordiv", "truediv", "mod", "pow"):
    if f"__{name}__" in vars(FakeCUDAArray):
        delattr(FakeCUDAArray, f"__{name}__")
"""


@pytest.mark.weekly  # numba's simulator starts a thread for each of a kernel's
@pytest.mark.skipif(SIMULATED, reason="this is the simulator")
def test_numbas_simulator_passes_for_a_real_gpu():
    """The tests above, and all kernels of `test_devices`, in a process whose gpu:0 is the simulator of numba.cuda."""
    run = "import sys, pytest; sys.exit(pytest.main(sys.argv[1:]))"
    options = ["-q", "-p", "no:cacheprovider", "--import-mode=importlib", "-W", "ignore", "--rootdir", str(build.ROOT)]
    devices = Path(__file__).with_name("test_devices.py")
    tests = [__file__, str(devices), "-k", "test_real_gpu or the_gpu_computes and f4"]
    done = subprocess.run(
        [sys.executable, "-c", STRICT + run, *options, *tests],
        cwd=build.ROOT,
        env=build.environment(build.ROOT) | {"NUMBA_ENABLE_CUDASIM": "1", "PYTEST_ADDOPTS": ""},
        capture_output=True,
        encoding="utf-8",
        errors="replace",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) > 4 + 50

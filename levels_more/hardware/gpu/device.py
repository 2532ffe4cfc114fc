"""A GPU: thousands of threads run one kernel. If there is no real one, a simulator runs it and checks every access."""

import ctypes
import functools
import math
import os
import sys
from types import CellType, FunctionType

import numpy as np

from levels.hardware import Buffer, Device
from levels_more.checks import dtype_of, expect
from levels_more.hardware.devices import MAKERS
from levels_more.hardware.gpu.errors import GpuError
from levels_more.hardware.gpu.memory import cuda
from levels_more.hardware.gpu.scheduler import LAUNCH_LIMITS, WARP, as_size, simulate
from levels_more.hardware.locks import once


def launch_kernel(kernel, blocks, threads, *arguments, order=None):
    """Run kernel[blocks, threads](*arguments): `blocks` blocks of `threads` threads (each a number, or up to three).

    With NumPy arrays the launch is simulated: threads run one after the other; a seed `order` shuffles blocks and
    threads. With arrays of numba.cuda it runs on the real GPU. Raises GpuError or a subclass of it.
    """
    expect(hasattr(kernel, "__code__") or hasattr(kernel, "py_func"), "launch", kernel, "a kernel, a function")
    grid = as_size(kernel, "blocks", blocks)
    block = as_size(kernel, "threads a block", threads)
    count = math.prod(block)
    most = LAUNCH_LIMITS["threads"]
    if count > most:
        raise GpuError(f"{kernel.__name__}: {threads} threads a block are {count:,}; at most {most:,} go")
    kinds = {hasattr(value, "__cuda_ndarray__") for value in arguments if hasattr(value, "shape") and value.shape}
    if kinds == {True, False}:
        raise GpuError(f"{kernel.__name__}: some arrays are on the GPU, others are not; put them all there")
    if True in kinds:
        _compiled(kernel)[tuple(grid), tuple(block)](*arguments)
    else:
        simulate(getattr(kernel, "py_func", kernel), grid, block, arguments, order)


@functools.cache
def real_cuda():
    """The module numba.cuda if it finds a GPU, else None. The import is slow, so it is skipped without a driver."""
    if os.environ.get("NUMBA_ENABLE_CUDASIM", "0") == "0":  # numba's own simulator needs no driver
        try:
            ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
        except OSError:
            return None
    try:
        from numba import config
        from numba import cuda as numba_cuda
    except ImportError:
        return None
    config.CUDA_LOW_OCCUPANCY_WARNINGS = 0  # a small launch is no mistake here
    return numba_cuda if numba_cuda.is_available() else None


@once
def _compiled(kernel):
    """A kernel for the real GPU. A kernel that numba has compiled already is returned as it is."""
    return real_cuda().jit(for_numba(kernel)) if isinstance(kernel, FunctionType) else kernel


@functools.cache
def for_numba(function):
    """A copy of a kernel for numba: `cuda` in it is numba.cuda, and the functions that it calls are compiled too."""
    names = {*function.__code__.co_names} & {*function.__globals__}
    scope = function.__globals__ | {name: _for_gpu(function.__globals__[name]) for name in names}
    cells = tuple(CellType(_for_gpu(cell.cell_contents)) for cell in function.__closure__ or ())
    return FunctionType(function.__code__, scope, function.__name__, function.__defaults__, cells)


def _for_gpu(value):
    """What replaces a global of a kernel, or a variable of its closure, on the real GPU."""
    if value is cuda:
        return real_cuda()
    value = getattr(value, "py_func", value)  # the Python function, if numba compiled it for CPUs
    return real_cuda().jit(for_numba(value), device=True) if isinstance(value, FunctionType) else value


class Gpu(Device):
    """A simulated GPU. It has memory and runs kernels, but its speed is not modelled."""

    def spec(self, shape, dtype):
        """The Spec of a buffer on this device: of float32, float64, int64 or bool. Raises TypeError for others."""
        return super().spec(shape, dtype_of(f"{self.name}: dtype", dtype))

    def launch(self, kernel, blocks, threads, *arguments, order=None):
        """Run a kernel on buffers of this device and numbers; see `launch_kernel`.

        Raises GpuError for a NumPy array, and for a buffer that was freed or is on another device.
        """
        expect(callable(kernel), f"{self.name}: the kernel", kernel, "a function")
        for value in arguments:
            if isinstance(value, Buffer) and (value.device is not self or value.data is None):
                raise GpuError(
                    f"{self.name}: {kernel.__name__} is given {value}; expected a live buffer of {self.name}"
                )
            if isinstance(value, np.ndarray):
                raise GpuError(f"{self.name}: {kernel.__name__} is given a NumPy array; put it on {self.name} first")
        values = [value.data if isinstance(value, Buffer) else value for value in arguments]
        launch_kernel(kernel, blocks, threads, *values, order=order)

    def facts(self):
        """This device's rows in the pool's table: {row name: text}."""
        speed = "no speed: simulated" if self.simulated else "not measured"
        return {"lanes": f"{WARP} threads, a warp"} | dict.fromkeys(("peak of one", "bandwidth", "a launch"), speed)


class RealGpu(Gpu):
    """The GPU that numba.cuda finds. Its buffers are numba's device arrays."""

    read = staticmethod(lambda data: data.copy_to_host())
    reshape = staticmethod(lambda data, shape: data.reshape(shape))

    def __init__(self, name):
        super().__init__(name, real_cuda().current_context().get_memory_info().total)
        self.empty = real_cuda().device_array

    def write(self, data, array):
        """Copy an array of the host into a buffer's memory."""
        data.copy_to_device(np.asarray(array, data.dtype, order="C"))


def make_gpu(name):
    """Make a GPU: gpu:0 is the real one if there is one; all others are simulated, with 1 GiB."""
    return RealGpu(name) if name == "gpu:0" and real_cuda() else Gpu(name, 2**30, simulated=True)


MAKERS["gpu"] = make_gpu

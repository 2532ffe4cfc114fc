"""STUB"""

# Built from notebooks/01_hardware.ipynb: edit there, then run its last cell.

import sys

import numpy as np

from .device import MAKERS, Device


class CUDA:
    pass


cuda = CUDA()


def launch_kernel(kernel, blocks, threads, *args):
    sys.path.insert(0, "/work/shared/prototypes")
    import simt

    return simt.launch(kernel, blocks, threads, *args)


class Gpu(Device):
    pass


MAKERS["gpu"] = lambda name: Gpu(name, 2**30, True)


class Tpu(Device):
    def matmul(self, x, w):
        return (x @ w).astype("f4")

    def spec(self, shape, dtype):
        if dtype == np.float64:
            raise TypeError("no")
        return super().spec(shape, dtype)


MAKERS["tpu"] = lambda name: Tpu(name, 2**30, True)

"""Devices and their memory: buffers, and copies to and from NumPy."""

# Built from 01_hardware.ipynb: edit there, then run its last cell.

import math

import numpy as np

from levels.support.checks import numeric_array
from levels.support.machine import host_memory
from levels.support.measure import speed_of
from levels.support.memory import amounts, check_no_counts, check_owned, freed, no_memory, spec_key
from levels.support.place import Place


class Spec:
    """The device, shape and dtype of a buffer."""

    def __init__(self, device, shape, dtype):
        self.device = device
        self.shape = shape
        self.dtype = dtype
        self.nbytes = math.prod(shape) * dtype.itemsize
        self.spec = self  # so that code which reads `x.spec` also accepts a Spec

    def __repr__(self):
        return f"{self.dtype}{list(self.shape)} on {self.device.name}"


class Buffer:
    """Memory of a device: new, or `data`, which belongs to the buffer `source`."""

    __slots__ = ("spec", "data", "source", "address")

    def __init__(self, spec, data=None, source=None):
        self.spec = spec
        self.source = source
        self.data = None  # still so if an error is raised below
        self.address = None  # a compiler may note here where the data begins
        if source is None:
            device = spec.device
            if device.memory is not None and device.used + spec.nbytes > device.memory:
                raise no_memory(spec)
            if data is None:
                data = device.empty(spec.shape, spec.dtype)
            device.used += spec.nbytes
        self.data = data

    device = property(lambda self: self.spec.device)
    shape = property(lambda self: self.spec.shape)
    dtype = property(lambda self: self.spec.dtype)

    def numpy(self):
        """Return a copy of the numbers as a NumPy array."""
        if self.data is None:
            raise freed(self)
        return self.spec.device.read(self.data)

    def release(self):
        """Give the memory back. The new Spec fits no code that knew the old one."""
        self.device.used -= self.spec.nbytes
        self.data = None
        self.address = None
        self.spec = Spec(self.device, self.shape, self.dtype)

    def __getstate__(self):
        state, slots = super().__getstate__()
        return state, slots | {"address": None}  # a pickled copy lies elsewhere

    def __del__(self):
        if self.source is None and self.data is not None:
            self.spec.device.used -= self.spec.nbytes

    def __repr__(self):
        return f"Buffer({self.spec}{', freed' if self.data is None else ''})"


class Device:
    """A device: its `memory` in bytes (None: unknown), those `used`, and its speed."""

    empty = staticmethod(np.empty)
    reshape = staticmethod(np.ndarray.reshape)
    read = staticmethod(np.ndarray.copy)
    write = staticmethod(np.copyto)

    def __init__(self, name, memory, simulated=False):
        self.name = name
        self.kind = name.split(":")[0]
        self.memory = memory
        self.simulated = simulated
        self.used = 0
        self.specs = {}  # (shape, dtype) -> Spec

    def spec(self, shape, dtype):
        """Return the Spec, one object for all live buffers of this shape and dtype."""
        key = spec_key(self.name, shape, dtype)
        return self.specs.get(key) or self.specs.setdefault(key, Spec(self, *key))

    def alloc(self, shape, dtype):
        """Return a new buffer, whose numbers are not set."""
        return Buffer(self.spec(shape, dtype))

    def put(self, array, kind=Buffer):
        """Copy a NumPy array into a new buffer, of the class `kind`, and return it."""
        array = numeric_array(array)
        key = array.shape, array.dtype
        buffer = kind(self.specs.get(key) or self.spec(*key))
        self.write(buffer.data, array)
        return buffer

    def free(self, buffer):
        """Free a buffer of this device: from then on, each use of it is refused."""
        check_owned(self, buffer, Buffer)
        buffer.release()

    peak = property(lambda self: speed_of(self, "peak"), doc="flops per s")
    bandwidth = property(lambda self: speed_of(self, "bandwidth"), doc="bytes per s")
    launch_time = property(lambda self: speed_of(self, "launch_time"), doc="seconds")

    def roofline(self, flops, nbytes):
        """Return the least possible seconds (Williams et al., 2009)."""
        flops, nbytes = amounts(self.name, flops, nbytes)
        return max(flops / self.peak, nbytes / self.bandwidth)

    def __repr__(self):
        return f"Device({self.name}{', simulated' if self.simulated else ''})"


POOL = {"cpu:0": Device("cpu:0", host_memory())}  # this computer's own CPUs
PLACE = Place(POOL["cpu:0"])  # PLACE.device: where a thread puts its arrays


def pool(**counts):
    """Return the devices by name. (In `levels_more` it takes counts, as in gpus=2.)"""
    check_no_counts(counts)
    return POOL

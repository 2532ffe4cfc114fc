"""Devices and their memory: the pool of devices, buffers, and copies to and from NumPy."""

# Built from 01_hardware.ipynb: edit there, then run its last cell.

import math
import threading

import numpy as np

from levels.support.checks import numeric_array
from levels.support.machine import host_memory


class Spec:
    """The device, shape and dtype of a buffer. Raises ValueError for a negative size or a non-numeric dtype."""

    def __init__(self, device, shape, dtype):
        if min(shape, default=0) < 0 or dtype.kind not in "biufc":
            raise ValueError(f"{device.name}: shape {shape} of {dtype}; expected no negative size, and numbers")
        self.device, self.shape, self.dtype = device, shape, dtype
        self.nbytes = math.prod(shape) * dtype.itemsize
        self.spec = self  # some code reads `.spec` of a Spec or of a buffer

    def __repr__(self):
        return f"{self.dtype}{list(self.shape)} on {self.device.name}"


class Buffer:
    """C-contiguous memory: new, or `data`, which `source` may own. Raises MemoryError if too little is free."""

    __slots__ = ("spec", "data", "source", "address")  # address: where the numbers begin, or None

    def __init__(self, spec, data=None, source=None):
        self.spec, self.data, self.source, self.address = spec, data, source, None
        if source is None:
            place, nbytes = spec.device, spec.nbytes
            if place.memory is not None and place.used + nbytes > place.memory:
                raise MemoryError(f"{place.name}: asked for {nbytes:,} bytes, {place.memory - place.used:,} are free")
            self.data = place.empty(spec.shape, spec.dtype) if data is None else data
            place.used += nbytes

    device = property(lambda self: self.spec.device)
    shape = property(lambda self: self.spec.shape)
    dtype = property(lambda self: self.spec.dtype)

    def __del__(self):
        if self.source is None and self.data is not None:
            self.spec.device.used -= self.spec.nbytes

    def numpy(self):
        """Return a copy of the numbers as a NumPy array. Raises ValueError if the buffer was freed."""
        if self.data is None:
            raise ValueError(f"Buffer({self.spec}): used after it was freed; allocate a new one")
        return self.spec.device.read(self.data)

    def __getstate__(self):
        state, slots = super().__getstate__()
        return state, slots | {"address": None}  # a copy has another address

    def __repr__(self):
        return f"Buffer({self.spec}{', freed' if self.data is None else ''})"


MEASURES = {}  # "peak", "bandwidth" or "launch_time" -> function(device) that measures it


class Device:
    """A device: its `memory` in bytes (None: unknown), the bytes `used`, and its speed, measured on first use."""

    # how memory is allocated, reshaped, read and written; other kinds of device override these
    empty = staticmethod(np.empty)
    reshape = staticmethod(np.ndarray.reshape)
    read = staticmethod(np.ndarray.copy)
    write = staticmethod(np.copyto)

    def __init__(self, name, memory, simulated=False):
        self.name, self.kind = name, name.split(":")[0]
        self.memory, self.simulated = memory, simulated
        self.used, self.measured, self.specs = 0, {}, {}

    def spec(self, shape, dtype):
        """Return the Spec for this shape and dtype. Raises TypeError or ValueError if they are invalid."""
        try:
            key = tuple([n.__index__() for n in shape]), np.dtype(dtype or "")  # not None
        except (TypeError, ValueError, AttributeError):
            raise TypeError(f"{self.name}: shape {shape!r:.60} of {dtype!r:.60}; expected sizes and a dtype") from None
        return self.specs.get(key) or self.specs.setdefault(key, Spec(self, *key))

    def alloc(self, shape, dtype):
        """Return a new, uninitialized buffer. Raises MemoryError if not enough memory is free."""
        return Buffer(self.spec(shape, dtype))

    def put(self, array, kind=Buffer):
        """Copy a NumPy array into a new buffer, and return the buffer."""
        array = numeric_array(array)
        spec = self.specs.get((array.shape, array.dtype)) or self.spec(array.shape, array.dtype)
        buffer = kind(spec)
        self.write(buffer.data, array)
        return buffer

    def free(self, buffer):
        """Free a live buffer of this device. Do not use it afterwards. Raises ValueError for others, and for views."""
        if not isinstance(buffer, Buffer) or buffer.device is not self or buffer.source is not None:
            raise ValueError(f"{self.name}: cannot free {buffer}: it is not a live buffer of this device, and its own")
        self.used -= buffer.spec.nbytes
        # a new Spec, so that nothing kept for the shared Spec is used with a freed buffer
        buffer.spec = Spec(self, buffer.shape, buffer.dtype)
        buffer.data, buffer.source, buffer.address = None, self, None

    def measure(self, what):
        """Return one of `MEASURES`, measured on first use. Raises LookupError if there is none of this name."""
        if str(what) not in MEASURES:
            raise LookupError(f"{self.name}: no program measures {what} yet")
        return self.measured.get(what) or self.measured.setdefault(what, MEASURES[what](self))

    peak = property(lambda self: self.measure("peak"), doc="float32 operations per second")
    bandwidth = property(lambda self: self.measure("bandwidth"), doc="bytes per second")
    launch_time = property(lambda self: self.measure("launch_time"), doc="seconds per call")

    def cost(self, launches, flops, nbytes):
        """Predict the seconds: the roofline plus the launches. Raises ValueError unless all are numbers >= 0."""
        amounts = launches, flops, nbytes
        if not all(isinstance(n, (int, float, np.number)) and n >= 0 for n in amounts):
            raise ValueError(f"{self.name}: the amounts are {amounts!r:.60}; expected numbers from 0 on")
        return max(flops / self.peak, nbytes / self.bandwidth) + launches * self.launch_time

    def roofline(self, flops, nbytes):
        """Return the least possible seconds, without launches (Williams et al., 2009)."""
        return self.cost(0, flops, nbytes)

    def __repr__(self):
        return f"Device({self.name}{', simulated' if self.simulated else ''})"


_POOL = {"cpu:0": Device("cpu:0", host_memory())}  # this computer's own CPUs


class _Place(threading.local):
    device = _POOL["cpu:0"]  # the device on which a thread places its arrays


PLACE = _Place()


DEVICE_MAKERS = []  # functions fill(pool, counts) that add devices to the pool; counts may be {"gpus": 2}


def pool(**counts):
    """Return {"cpu:0": Device, …}: DEVICE_MAKERS add one of each kind (gpus=2: two). Raises TypeError, ValueError."""
    if counts and not DEVICE_MAKERS:
        raise TypeError(f"pool: there are no {', '.join(counts)} here; levels_more.hardware brings others")
    for fill in DEVICE_MAKERS:
        fill(_POOL, counts)
    return _POOL

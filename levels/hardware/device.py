"""Memory belongs to a device: the pool of devices, their buffers, and what moves between them."""

# Built from notebooks/01_hardware.ipynb: edit there, then run its last cell.

import math
import os

import numpy as np


class Spec:
    """What a buffer is, apart from its numbers: device, shape and dtype. There is one Spec for each such triple."""

    def __init__(self, device, shape, dtype):
        self.device, self.shape, self.dtype = device, shape, dtype
        self.nbytes = math.prod(shape) * dtype.itemsize

    def __repr__(self):
        return f"{self.dtype}{list(self.shape)} on {self.device.name}"


class Buffer:
    """Memory of one device, C-contiguous, with a shape and a dtype. `data` holds the host's view of it."""

    __slots__ = ("spec", "data")

    def __init__(self, spec, data):
        self.spec, self.data = spec, data

    device = property(lambda self: self.spec.device)
    shape = property(lambda self: self.spec.shape)
    dtype = property(lambda self: self.spec.dtype)

    def __del__(self):
        if self.data is not None:
            self.spec.device.used -= self.spec.nbytes

    def numpy(self):
        """A copy of the numbers as a NumPy array."""
        if self.data is None:
            raise ValueError(f"{self}: used after it was freed; allocate a new one")
        return self.data.copy()

    def __repr__(self):
        return f"Buffer({self.spec}{', freed' if self.data is None else ''})"


MEASURES = {}  # "peak" or "bandwidth" -> a function of the device that measures it


class Device:
    """One member of the pool: `memory` in bytes (None: unknown), `used` of it, and its speed, measured on first use."""

    def __init__(self, name, memory, simulated=False):
        self.name, self.kind, self.memory, self.simulated = name, name.split(":")[0], memory, simulated
        self.used, self.measured, self.specs = 0, {}, {}

    def spec(self, shape, dtype):
        """The Spec of a buffer on this device."""
        key = tuple(shape), np.dtype(dtype)
        if key not in self.specs:
            self.specs[key] = Spec(self, *key)
        return self.specs[key]

    def alloc(self, shape, dtype):
        """A new buffer of that shape, its numbers not yet set. Raises MemoryError when less is free than asked."""
        return self.new(self.spec(shape, dtype))

    def new(self, spec):
        """A new buffer of a Spec of this device."""
        if self.memory is not None and spec.nbytes > self.memory - self.used:
            raise MemoryError(f"{self.name}: asked for {spec.nbytes:,} bytes, {self.memory - self.used:,} are free")
        data = np.empty(spec.shape, spec.dtype)
        self.used += spec.nbytes
        return Buffer(spec, data)

    def put(self, array):
        """A new buffer that holds the numbers of a NumPy array."""
        array = np.asarray(array)
        buffer = self.alloc(array.shape, array.dtype)
        buffer.data[...] = array
        return buffer

    def free(self, buffer):
        """Give a buffer's memory back. Using the buffer after that is an error."""
        if buffer.device is not self or buffer.data is None:
            raise ValueError(f"{self.name}: cannot free {buffer}: it is not a live buffer of this device")
        self.used -= buffer.spec.nbytes
        buffer.data, buffer.spec = None, Spec(self, buffer.shape, buffer.dtype)  # a Spec that no plan knows

    def measure(self, what):
        if what not in self.measured:
            self.measured[what] = MEASURES[what](self)
        return self.measured[what]

    peak = property(lambda self: self.measure("peak"), doc="float32 operations a second, measured")
    bandwidth = property(lambda self: self.measure("bandwidth"), doc="bytes a second to and from memory, measured")

    def roofline(self, flops, nbytes):
        """The least seconds that `flops` operations on `nbytes` of traffic can take (Williams et al., 2009)."""
        return max(flops / self.peak, nbytes / self.bandwidth)

    def __repr__(self):
        return f"Device({self.name}{', simulated' if self.simulated else ''})"


class Pool(dict):
    """Devices by name. It prints as a table."""

    def __repr__(self):
        table = [("device", "kind", "memory", "in use")]
        for d in self.values():
            memory = "unknown" if d.memory is None else f"{d.memory / 2**30:.1f} GiB"
            table.append((d.name, d.kind + " (simulated)" * d.simulated, memory, f"{d.used:,} bytes"))
        return "\n".join("  ".join(text.ljust(width) for text, width in zip(row, (8, 16, 10, 14))) for row in table)


POOL = Pool()


def host_memory():
    """The bytes of memory of this computer, or None where the system does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # Windows has no sysconf
        return None


def pool(cpus=1):
    """The devices of this computer: {"cpu:0": Device}. With cpus=2 a simulated cpu:1 joins, with memory of its own."""
    for i in range(cpus):
        if f"cpu:{i}" not in POOL:
            POOL[f"cpu:{i}"] = Device(f"cpu:{i}", host_memory() if i == 0 else 2**30, simulated=i > 0)
    return POOL


def copy(buffer, device):
    """A new buffer on `device` with the same numbers."""
    return device.put(buffer.numpy())

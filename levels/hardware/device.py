"""Memory belongs to a device: the pool of devices, their buffers, and what moves between them."""

# Built from 01_hardware.ipynb: edit there, then run its last cell.

import math
import os
import reprlib
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from llvmlite import binding as llvm

from levels import more


class Spec:
    """What a buffer is, apart from its numbers: device, shape and dtype. There is one Spec for each such triple."""

    def __init__(self, device, shape, dtype):
        if min(shape, default=0) < 0 or dtype.hasobject:
            raise ValueError(f"{device.name}: shape {shape} of {dtype}; expected no negative size, and numbers")
        self.device, self.shape, self.dtype, self.empty = device, shape, dtype, device.empty
        self.nbytes = math.prod(shape) * dtype.itemsize

    spec = property(lambda self: self)  # so that who asks only for these may be given a buffer or its Spec

    def __repr__(self):
        return f"{self.dtype}{list(self.shape)} on {self.device.name}"


class Buffer:
    """Memory of one device, C-contiguous, with a shape and a dtype. `data` is the array that the device's programs see."""

    __slots__ = ("spec", "data", "rows")

    def __init__(self, spec, data):
        self.spec, self.data, self.rows = spec, data, None  # rows: the range of its row numbers, once a program asked

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
        return self.device.read(self.data)

    def __repr__(self):
        return f"Buffer({self.spec}{', freed' if self.data is None else ''})"


LINE = 64  # bytes that move together between memory and caches, on most processors
GAP = 8 * LINE  # bytes left free behind an array
PAGE = 4096  # bytes; to look up where an array begins takes longer than to add one so small


def aligned(shape, dtype):
    """An empty array that begins at a cache line, so that no load of many lanes straddles two. (Under a page: any array.)"""
    nbytes = math.prod(shape) * dtype.itemsize
    if nbytes < PAGE:
        return np.empty(shape, dtype)
    data = np.empty(nbytes + LINE + GAP, np.uint8)
    return np.ndarray(shape, dtype, data, offset=-data.ctypes.data % LINE)


MEASURES = {}  # "peak", "bandwidth" or "launch_time" -> a function of the device that measures it


def unmasked(values):
    """These numbers as a NumPy array. Raises TypeError for a masked one, whose mask would be lost without a word."""
    if isinstance(values, np.ma.MaskedArray):
        raise TypeError("a masked array keeps no mask here; fill it, as in x.filled(0), or drop those rows")
    return np.asarray(values)


class Device:
    """One member of the pool: `memory` in bytes (None: unknown), `used` of it, and its speed, measured on first use."""

    empty = staticmethod(np.empty)  # how new memory is found, and how the host reads and writes it
    read, write = staticmethod(np.copy), staticmethod(np.copyto)
    reshape = staticmethod(np.ndarray.reshape)  # the same memory, seen in another shape

    def __init__(self, name, memory, simulated=False):
        self.name, self.kind, self.memory, self.simulated = name, name.split(":")[0], memory, simulated
        self.used, self.measured, self.specs = 0, {}, {}

    def spec(self, shape, dtype):
        """The Spec of a buffer on this device."""
        key = tuple(map(int, shape)), np.dtype(dtype)
        return self.specs.get(key) or self.specs.setdefault(key, Spec(self, *key))

    def alloc(self, shape, dtype):
        """A new buffer of that shape, its numbers not yet set. Raises MemoryError when less is free than asked."""
        return self.new(self.spec(shape, dtype), aligned)

    def new(self, spec, make=np.empty, kind=Buffer):
        """A new buffer of a Spec of this device, in memory that `make` gives. (`np.empty` is quicker, but not aligned.)"""
        if self.memory is not None and spec.nbytes > self.memory - self.used:
            raise MemoryError(f"{self.name}: asked for {spec.nbytes:,} bytes, {self.memory - self.used:,} are free")
        data = make(spec.shape, spec.dtype)
        self.used += spec.nbytes
        return kind(spec, data)

    def put(self, array, kind=Buffer):
        """A new buffer that holds the numbers of a NumPy array."""
        array = unmasked(array)
        buffer = self.new(self.spec(array.shape, array.dtype), aligned, kind)
        self.write(buffer.data, array)
        return buffer

    def free(self, buffer):
        """Give a buffer's memory back. Using the buffer after that is an error."""
        if not isinstance(buffer, Buffer) or buffer.device is not self or buffer.data is None:
            raise ValueError(f"{self.name}: cannot free {buffer}: it is not a live buffer of this device")
        self.used -= buffer.spec.nbytes
        # a Spec of its own: what was looked up by the shared one fits no freed buffer
        buffer.data, buffer.spec = None, Spec(self, buffer.shape, buffer.dtype)

    def measure(self, what):
        """One of `MEASURES`, measured on first use. Raises LookupError if no program measures it."""
        if what not in MEASURES:
            raise LookupError(f"{self.name}: no program measures {what} yet")
        return self.measured.get(what) or self.measured.setdefault(what, MEASURES[what](self))

    peak = property(lambda self: self.measure("peak"), doc="float32 operations a second of one core, measured")
    bandwidth = property(lambda self: self.measure("bandwidth"), doc="bytes a second from memory, measured")
    launch_time = property(lambda self: self.measure("launch_time"), doc="seconds to call an empty program, measured")

    def roofline(self, flops, nbytes):
        """The least seconds that `flops` operations on `nbytes` of traffic can take (Williams et al., 2009)."""
        return max(flops / self.peak, nbytes / self.bandwidth)

    def cost(self, launches, flops, nbytes):
        """The seconds we predict for that many calls, operations and bytes: the calls, then the roofline."""
        return launches * self.launch_time + self.roofline(flops, nbytes)

    def facts(self):
        """What the pool's table says of this device: {name of the row: text}."""

        def measured(what, unit):
            return f"{amount(self.measure(what), unit)}, measured" if what in MEASURES else "not measured yet"

        return {
            "CPUs": str(os.cpu_count() or "unknown"),
            "lanes": f"{host_lanes()} float32",
            "peak of one": measured("peak", "flop/s"),
            "bandwidth": measured("bandwidth", "B/s"),
            "a launch": measured("launch_time", "s"),
        }

    def __repr__(self):
        return f"Device({self.name}{', simulated' if self.simulated else ''})"


def host_memory():
    """The bytes of memory that this process may use, or None where the system does not tell."""
    try:
        limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    except (AttributeError, ValueError, OSError):  # Windows has no sysconf
        return None
    for group in ("memory.max", "memory/memory.limit_in_bytes"):  # a container may have less than the machine
        path = Path("/sys/fs/cgroup", group)
        if path.exists() and (text := path.read_text().strip()).isdigit():
            limits.append(int(text))
    return min(limits)


def host_features():
    """What this processor can do, as LLVM names it."""
    try:
        return llvm.get_host_cpu_features()
    except RuntimeError:  # LLVM does not know this system; then only what every such processor can do is used
        return llvm.FeatureMap()


def host_lanes():
    """How many float32 one instruction of this processor works on: 16, 8 or 4."""
    features = host_features()
    return 16 if features.get("avx512f") else 8 if features.get("avx2") else 4


def amount(number, unit, step=1000):
    """A number with its unit, at three digits: 1.25 GB/s, 310 ns; with step=1024, 32 KiB."""
    power = max(-3, math.floor(math.log(number, step) + 1e-9)) if number else 0
    return f"{number / step**power:.3g} {('', 'K' if step == 1024 else 'k', 'M', 'G', 'T', 'n', 'µ', 'm')[power]}{unit}"


class Pool(dict):
    """Devices by name. It prints as a table."""

    def column(self, device):
        """What the table says of a device."""
        return {
            "": device.name,
            "kind": device.kind + " (simulated)" * device.simulated,
            "memory": amount(device.memory, "iB", 1024) if device.memory else "unknown",
            "in use": f"{device.used:,} B",
        } | device.facts()

    def __repr__(self):
        columns = [self.column(device) for _, device in sorted(self.items())]
        widths = [2 + max(map(len, column.values())) for column in columns]
        names = dict.fromkeys(name for column in columns for name in column)
        rows = ([column.get(name, "").ljust(width) for column, width in zip(columns, widths)] for name in names)
        return "\n".join(f"{name:12}{''.join(row)}".rstrip() for name, row in zip(names, rows))


def make_cpu(name):
    """The computer's own CPUs as one device, cpu:0, or a simulated one with 1 GiB."""
    return Device(name, host_memory() if name == "cpu:0" else 2**30, simulated=name != "cpu:0")


MAKERS = {"cpu": make_cpu}  # kind -> what makes a device of that name
POOL = Pool({"cpu:0": make_cpu("cpu:0")})


def pool(**counts):
    """The devices of this computer, {"cpu:0": Device, …}: one of each kind, or as many as are asked for, as in cpus=2.

    A second one is simulated, and has memory of its own. Raises TypeError for a kind that there is not.
    """
    more("device", "all")  # other kinds enter MAKERS
    there = [f"{kind}s" for kind in MAKERS]
    if unknown := {*counts} - {*there}:
        raise TypeError(f"pool: there are no {', '.join(unknown)}; there are {', '.join(there)}")
    for kind, make in MAKERS.items():
        for name in (f"{kind}:{n}" for n in range(counts.get(f"{kind}s", 1))):
            if name not in POOL:
                POOL[name] = make(name)
    return POOL


DEVICES = [POOL["cpu:0"]]  # the last one is where numbers are placed


@contextmanager
def placed_on(name):
    """Inside this `with` block, that device is where numbers are placed."""
    if name not in pool():
        raise LookupError(f"device: there is no {reprlib.repr(name)}; there are {', '.join(pool())}")
    DEVICES.append(pool()[name])
    try:
        yield
    finally:
        DEVICES.pop()


def copy(buffer, device):
    """A new buffer on `device` with the same numbers."""
    return device.put(buffer.numpy())

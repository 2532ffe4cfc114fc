"""Checks of devices and their buffers. Notebook 01 uses them."""

import operator

import numpy as np


def spec_key(name, shape, dtype):
    """Return (shape, dtype) as a key. Raises TypeError or ValueError unless they are sizes, and a dtype of numbers."""
    try:
        shape, dtype = tuple(map(operator.index, shape)), np.dtype(dtype or "")  # not None
    except (TypeError, ValueError):
        raise TypeError(f"{name}: shape {shape!r:.60} of {dtype!r:.60}; expected sizes and a dtype") from None
    if min(shape, default=0) < 0 or dtype.kind not in "biufc":
        raise ValueError(f"{name}: shape {shape} of {dtype}; expected no negative size, and numbers")
    return shape, dtype


def no_memory(spec):
    """Return the MemoryError for a buffer of this Spec, for which too little memory is free on its device."""
    free = spec.device.memory - spec.device.used
    return MemoryError(f"{spec.device.name}: asked for {spec.nbytes:,} bytes, {free:,} are free")


def freed(buffer):
    """Return the ValueError for the use of a buffer that was freed."""
    return ValueError(f"Buffer({buffer.spec}): used after it was freed; allocate a new one")


def check_owned(device, buffer, buffers):
    """Raise ValueError unless this is a live buffer of the device (of the class `buffers`), which owns its memory."""
    fits = isinstance(buffer, buffers) and buffer.device is device and buffer.source is None
    if not fits or buffer.data is None:
        raise ValueError(f"{device.name}: cannot free {buffer}: it is not a live buffer of this device, and its own")


def amounts(name, *numbers):
    """Return these numbers. Raises ValueError unless all are numbers >= 0."""
    if not all(isinstance(n, (int, float, np.number)) and n >= 0 for n in numbers):
        raise ValueError(f"{name}: the amounts are {numbers!r:.60}; expected numbers from 0 on")
    return numbers


def check_no_counts(counts):
    """Raise TypeError if pool() was asked for devices, such as gpus=2: level 1 has this computer's own CPUs only."""
    if counts:
        raise TypeError(f"pool: there are no {', '.join(counts)} here; levels_more.hardware brings others")

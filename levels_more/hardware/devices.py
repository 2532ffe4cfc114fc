"""More devices for the pool, of each kind in MAKERS; copies between devices; the device on which tensors are placed."""

import reprlib
from contextlib import contextmanager

from levels.hardware import PLACE, POOL, Buffer, Device

MAKERS = {"cpu": lambda name: Device(name, 2**30, simulated=True)}  # kind -> its maker


def pool(**counts):
    """Return the pool {"cpu:0": Device, …} with one device of each kind, or as many as asked for, such as gpus=2.

    Raises TypeError for an unknown kind, ValueError if a count is not an integer from 0 to 64.
    """
    if unknown := {*counts} - {f"{kind}s" for kind in MAKERS}:
        raise TypeError(f"pool: there are no {', '.join(unknown)}; there are {'s, '.join(MAKERS)}s")
    if wrong := [n for n in counts.values() if type(n) is not int or not 0 <= n <= 64]:
        raise ValueError(f"pool: {wrong[0]!r:.60} devices; expected a whole number from 0 to 64")
    for kind, make in MAKERS.items():
        names = (f"{kind}:{n}" for n in range(counts.get(f"{kind}s", 1)))
        POOL.update({name: make(name) for name in names if name not in POOL})
    return POOL


def copy(buffer, device):
    """A new buffer on `device` with the same numbers. Raises TypeError if given no buffer or no device."""
    if not isinstance(buffer, Buffer) or not isinstance(device, Device):
        raise TypeError(f"copy: {buffer!r:.60} to {device!r:.60}; expected a buffer and a device")
    return device.put(buffer.numpy())


@contextmanager
def placed_on(name):
    """Inside this `with` block, new tensors are placed on the named device. Raises LookupError for an unknown name."""
    if str(name) not in pool():
        raise LookupError(f"device: there is no {reprlib.repr(name)}; there are {', '.join(pool())}")
    before = PLACE.device
    PLACE.device = pool()[name]
    try:
        yield
    finally:
        PLACE.device = before

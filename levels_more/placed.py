"""Where numbers are placed: on the last device of level 1's `DEVICES`."""

import reprlib
from contextlib import contextmanager

from levels.hardware import DEVICES, pool


@contextmanager
def placed_on(name):
    """Inside this `with` block, that device is where numbers are placed. Raises LookupError for an unknown name."""
    if str(name) not in pool():
        raise LookupError(f"device: there is no {reprlib.repr(name)}; there are {', '.join(pool())}")
    DEVICES.stack.append(pool()[name])
    try:
        yield
    finally:
        DEVICES.stack.pop()

"""Where numbers are placed: on the device of level 1's `PLACE`."""

import reprlib
from contextlib import contextmanager

from levels.hardware import PLACE, pool


@contextmanager
def placed_on(name):
    """Inside this `with` block, that device is where numbers are placed. Raises LookupError for an unknown name."""
    if str(name) not in pool():
        raise LookupError(f"device: there is no {reprlib.repr(name)}; there are {', '.join(pool())}")
    before, PLACE.device = PLACE.device, pool()[name]
    try:
        yield
    finally:
        PLACE.device = before

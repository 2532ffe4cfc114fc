"""`torch.utils`: `data`."""

from ..functions import room
from . import data  # noqa: F401

__getattr__ = room("torch.utils")

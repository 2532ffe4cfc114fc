"""`torch.utils`: `data`."""

from levels_more.missing import room

from . import data  # noqa: F401

__getattr__ = room("torch.utils")

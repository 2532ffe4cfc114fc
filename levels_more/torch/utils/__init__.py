"""`torch.utils`, which has only `data`."""

from levels_more.missing import room

from . import data  # noqa: F401

__getattr__, __dir__ = room("torch.utils", globals())

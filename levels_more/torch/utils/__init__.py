"""`torch.utils`, which has only `data`."""

from levels_more.missing import module_api

from . import data  # noqa: F401

__getattr__, __dir__ = module_api("torch.utils", globals())

"""`torch.nn.parameter`."""

from levels_more.missing import room
from levels_more.torch.recorded_modules import Parameter  # noqa: F401

__getattr__, __dir__ = room("torch.nn.parameter", globals())

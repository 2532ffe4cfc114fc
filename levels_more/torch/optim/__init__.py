"""`torch.optim`: `step` updates each parameter from its `grad`."""

from levels_more.missing import room
from levels_more.torch.optimizers import SGD, Adam, Optimizer  # noqa: F401

from . import lr_scheduler  # noqa: F401

__getattr__, __dir__ = room("torch.optim", globals())

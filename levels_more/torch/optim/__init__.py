"""`torch.optim`: `step` updates each parameter from its `grad`."""

from levels_more.missing import module_api
from levels_more.torch.optimizers import SGD, Adam, Optimizer  # noqa: F401

__getattr__, __dir__ = module_api("torch.optim", globals())

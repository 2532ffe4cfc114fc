"""`torch.autograd.functional`: all slopes of a function."""

from levels_more.missing import room
from levels_more.torch.jacobians import hessian, jacobian  # noqa: F401

__getattr__, __dir__ = room("torch.autograd.functional", globals())

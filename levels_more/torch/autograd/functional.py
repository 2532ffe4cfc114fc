"""`torch.autograd.functional`: all slopes of a function."""

from levels_more.jacobians import hessian, jacobian  # noqa: F401

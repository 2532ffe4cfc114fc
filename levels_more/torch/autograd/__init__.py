"""`torch.autograd`: gradients by request, and functions whose gradient is your own."""

import functools

from levels_more.missing import room
from levels_more.torch.jacobians import gradcheck  # noqa: F401
from levels_more.torch.own_gradients import Function  # noqa: F401
from levels_more.torch.recorded_making import tensor as Variable  # noqa: F401, N812
from levels_more.torch.recording import Switch as set_grad_enabled  # noqa: F401
from levels_more.torch.recording import grad, switched  # noqa: F401

from . import functional  # noqa: F401

no_grad, enable_grad = functools.partial(switched, False), functools.partial(switched, True)
__getattr__, __dir__ = room("torch.autograd", globals())

"""`torch.autograd`: gradients by request, and functions whose gradient is your own."""

from levels_more.jacobians import gradcheck  # noqa: F401
from levels_more.missing import room
from levels_more.own_gradients import Function  # noqa: F401
from levels_more.recorded_making import tensor as Variable  # noqa: F401, N812
from levels_more.recording import grad  # noqa: F401

from . import functional  # noqa: F401

__getattr__ = room("torch.autograd")

"""`torch.autograd`: gradients by request."""

import functools

from levels_more.missing import room, small_room
from levels_more.torch.recording import Switch as set_grad_enabled  # noqa: F401
from levels_more.torch.recording import grad, switched  # noqa: F401

no_grad, enable_grad = functools.partial(switched, False), functools.partial(switched, True)
functional = small_room("torch.autograd.functional")
__getattr__, __dir__ = room("torch.autograd", globals())

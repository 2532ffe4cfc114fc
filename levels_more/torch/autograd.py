"""`torch.autograd`: gradients as return values, and switches for recording."""

import functools

from levels_more.missing import module_api, small_room
from levels_more.torch.recording import grad, grad_mode, set_grad_enabled  # noqa: F401

no_grad, enable_grad = functools.partial(grad_mode, False), functools.partial(grad_mode, True)
functional = small_room("torch.autograd.functional")
__getattr__, __dir__ = module_api("torch.autograd", globals())

"""`torch.autograd`: gradients as return values, and switches for recording."""

from levels_more.missing import module_api, small_room
from levels_more.torch.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled  # noqa: F401
from levels_more.torch.graph import grad  # noqa: F401

functional = small_room("torch.autograd.functional")
__getattr__, __dir__ = module_api("torch.autograd", globals())

"""`torch.autograd`: gradients as return values."""

from levels_more.missing import module_api
from levels_more.torch.graph import grad  # noqa: F401

__getattr__, __dir__ = module_api("torch.autograd", globals())

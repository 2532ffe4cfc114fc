"""`torch.nn.utils`: gradients made shorter."""

from levels_more.stepping import clip_grad_norm_, clip_grad_value_  # noqa: F401

from ..functions import room

__getattr__ = room("torch.nn.utils")

"""`torch.nn.utils`: gradients made shorter."""

from levels_more.missing import room
from levels_more.torch.optimizers import clip_grad_norm_  # noqa: F401

__getattr__, __dir__ = room("torch.nn.utils", globals())

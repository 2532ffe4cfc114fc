"""`torch.nn.functional`: layers and losses as functions. A loss takes the prediction first, then the target."""

from levels_more.missing import module_api
from levels_more.torch.functions import FUNCTIONS
from levels_more.torch.layers import dropout, linear  # noqa: F401
from levels_more.torch.losses import (  # noqa: F401
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cross_entropy,
    mse_loss,
)

_BENDS = {name: FUNCTIONS[name] for name in ("log_softmax", "relu", "sigmoid", "softmax", "tanh")}
__getattr__, __dir__ = module_api("torch.nn.functional", globals(), _BENDS)

"""`torch.nn`: the base class of modules, parameters, layers and losses."""

from levels_more.missing import module_api, small_room
from levels_more.torch.optimizers import clip_grad_norm_
from levels_more.torch.layers import (  # noqa: F401
    BCELoss,
    BCEWithLogitsLoss,
    CrossEntropyLoss,
    Dropout,
    Linear,
    MSELoss,
    ReLU,
    Sigmoid,
    Softmax,
    Tanh,
)
from levels_more.torch.modules import Module, Parameter, Sequential  # noqa: F401

from . import functional  # noqa: F401

init = small_room("torch.nn.init")  # empty: errors say what to use
utils = small_room("torch.nn.utils", clip_grad_norm_=clip_grad_norm_)
__getattr__, __dir__ = module_api("torch.nn", globals())

"""The functions of neural nets: those of the core, and more."""

from levels.low_level.nn import relu, sigmoid
from levels_more.low_level.activations import hard_sigmoid, leaky_relu, softplus
from levels_more.low_level.ops import elu, gelu, log_softmax, silu, softmax, swish, tanh

__all__ = [
    "elu", "gelu", "hard_sigmoid", "leaky_relu", "log_softmax", "relu", "sigmoid", "silu", "softmax", "softplus",
    "swish", "tanh",
]

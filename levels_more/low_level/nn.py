"""The functions of neural nets: those of the core, and more."""

from levels.low_level.nn import relu, sigmoid
from levels_more.low_level.activations import (
    hard_sigmoid,
    leaky_relu,
    log_sigmoid,
    mish,
    relu6,
    selu,
    softplus,
    softsign,
)
from levels_more.low_level.ops import elu, gelu, log_softmax, silu, softmax, swish, tanh

__all__ = [
    "elu", "gelu", "hard_sigmoid", "leaky_relu", "log_sigmoid", "log_softmax", "mish", "relu", "relu6", "selu",
    "sigmoid", "silu", "softmax", "softplus", "softsign", "swish", "tanh",
]

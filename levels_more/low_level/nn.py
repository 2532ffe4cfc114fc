"""Functions for neural networks: those of the core, and more."""

from levels.low_level.nn import relu, sigmoid
from levels_more.low_level.ops import elu, log_softmax, softmax, tanh

__all__ = ["elu", "log_softmax", "relu", "sigmoid", "softmax", "tanh"]

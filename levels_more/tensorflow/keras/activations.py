"""`tf.keras.activations`."""

from levels.low_level import as_tensor as linear  # noqa: F401
from levels.low_level.nn import elu, gelu, log_softmax, relu, sigmoid, silu, softmax, swish, tanh  # noqa: F401

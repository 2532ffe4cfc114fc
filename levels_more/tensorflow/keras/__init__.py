"""`tf.keras`: levels 4 and 5 by Keras' names."""

from levels.high_level import Input  # noqa: F401

from . import activations, backend, callbacks, initializers, layers, losses, metrics, models, optimizers, regularizers, utils  # noqa: F401
from .models import Model, Sequential  # noqa: F401

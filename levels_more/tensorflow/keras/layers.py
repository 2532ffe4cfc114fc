"""`tf.keras.layers`."""

from levels import mid_level
from levels.high_level import Input
from levels.mid_level import (  # noqa: F401
    Activation, BatchNormalization, Concatenate, DenseFeatures, Dropout, Embedding, Flatten, Layer, LayerNormalization
)  # fmt: skip

InputLayer = Input


class Dense(mid_level.Dense):
    """That of level 4, which may say what it is called on: in a Sequential, and first, it is built at once."""

    def __init__(self, units, activation=None, *args, input_shape=None, input_dim=None, **options):
        super().__init__(units, activation, *args, **options)
        self.input_size = (input_dim,) if input_dim else input_shape

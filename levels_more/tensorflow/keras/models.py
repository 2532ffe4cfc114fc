"""`tf.keras.models`."""

from levels import high_level
from levels.high_level import load_model  # noqa: F401


class Model(high_level.Model):
    """That of level 5: `build` has Keras' name for a shape, and a model that writes its own is built on its first call."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.built = type(self).build in (Model.build, high_level.Model.build)

    def build(self, input_shape, dtype="float32"):
        self.built = True
        super().build(input_shape, dtype)


class Sequential(high_level.Sequential):
    """That of level 5; a first layer with an `input_shape` builds it."""

    def add(self, layer):
        super().add(layer)
        size = getattr(layer, "input_size", None)
        if size and len(self.layers) == 1:
            layer(__import__("numpy").zeros((1, *size), "float32"))

    def build(self, input_shape=None, dtype="float32"):
        super().build(input_shape, dtype)

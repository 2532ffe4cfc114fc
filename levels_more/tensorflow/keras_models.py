"""Models by Keras' rules: a subclass, which may define its own `build`, a graph of layers, or layers in a row."""

import math
from types import FunctionType

from levels.support.checks import check_int
from levels_more import high_level
from levels_more.checks import expect
from levels_more.high_level.rows import is_data
from levels_more.high_level.serialization import CLASSES, FUNCTIONS
from levels_more.high_level.training import table_key
from levels_more.mid_level.notes import noted
from levels_more.mid_level.optimizers import OPTIMIZERS
from levels_more.tensorflow import keras_optimizers
from levels_more.tensorflow.keras_layers import LAYERS, Input, Layer
from levels_more.tensorflow.keras_losses import LOSSES, METRICS, AccuracyByShape, MeanLoss, loss_for, metric_for
from levels_more.tensorflow.nested import map_leaves


class Model(Layer, high_level.Model):
    """A model by Keras' rules: a subclass, which may define its own `build`, or Model(inputs, outputs)."""

    means_by_batch = True  # after a batch, callbacks get the mean loss of the epoch so far, not that of the step

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.built = type(self).build is Model.build

    def build(self, input_shape):
        """Make all variables: the model is called on symbols of this shape [rows, …]."""
        self.built = True
        high_level.Model.build(self, tuple(input_shape), self.dtype)

    def compile(
        self, optimizer="rmsprop", loss=None, metrics=(), run_eagerly=None, jit_compile=None, *, loss_weights=None
    ):
        """Choose how to train, by names or objects. `run_eagerly` and `jit_compile` are ignored.

        Raises TypeError without a loss.
        """
        expect(loss is not None, "compile: loss", loss, 'a loss, as in model.compile(optimizer, loss="mse")')
        if isinstance(optimizer, str):
            optimizer = keras_optimizers.BY_NAME.get(table_key(OPTIMIZERS, optimizer), optimizer)
        optimizer = optimizer() if isinstance(optimizer, type) else optimizer
        super().compile(optimizer, map_leaves(loss, loss_for), map_leaves(metrics or (), metric_for), loss_weights)

    def in_order(self, logs):
        """The numbers of an epoch, sorted by their names, as Keras 3.15.1 sorts them."""
        return dict(sorted(logs.items()))

    def fit(self, x=None, y=None, batch_size=None, *args, **options):
        """As in levels. Raises TypeError unless `steps_per_epoch` is None or divides the batches of a Dataset."""
        steps = options.get("steps_per_epoch")
        if steps is not None:
            steps = check_int(1, "fit: steps_per_epoch", steps)
            length = getattr(x, "length", math.inf)
            fits = is_data(x) and (length == math.inf or length % steps == 0)
            cure = "call repeat() on one of unknown length"
            expected = f"None, or a number that divides the batches of a Dataset; {cure}"
            expect(fits, "fit: steps_per_epoch", steps, expected)
        options.setdefault("validation_batch_size", batch_size or 32)
        return super().fit(x, y, batch_size, *args, **options)


class Sequential(Model, high_level.Sequential):
    """Layers in a row. If the first layer has an `input_shape`, the model is built at once."""

    def __init__(self, layers=None, **options):
        super().__init__(layers or (), **options)

    def add(self, layer):
        """Add a layer at the end."""
        size = noted(layer, "input_size") if isinstance(layer, Layer) else None
        if not self.layers and size:
            super().add(Input(size))
        super().add(layer)


def load_model(filepath, custom_objects=None):
    """The model that `save` wrote. `custom_objects`: {name: class} of the user's classes."""
    from levels_more.saving.model import load_model as load  # it needs safetensors

    return load(filepath, custom_objects or {})


for table in (LAYERS, LOSSES, METRICS, keras_optimizers.OPTIMIZERS):
    CLASSES.update({f"keras.{name}": kind for name, kind in table.items() if isinstance(kind, type)})
FUNCTIONS.update({f"keras.{name}": row for name, row in METRICS.items() if isinstance(row, FunctionType)})
CLASSES["keras.Functional"] = Model  # what a graph of layers is called in files
CLASSES.update({f"keras.{kind.__name__}": kind for kind in (Sequential, AccuracyByShape, MeanLoss)})

"""Models that own their training loop."""

# Built from 05_high_level.ipynb: edit there, then run its last cell.

import copy

import numpy as np

from levels.hardware import PLACE
from levels.low_level import GradientTape, Variable, constant, function, trace
from levels.mid_level import LOSSES, OPTIMIZERS, Dataset, Layer
from levels.support import trainings
from levels.support.checks import check_bool
from levels.support.inputs import check_arrays
from levels.support.parts import chosen
from levels.support.tracebacks import short

from .loops import one_pass, run_training


def dtype_for(model, x):
    """Return the first float dtype of a variable or layer, else of x, else float32."""
    for part in (*model.named((Variable, Layer)).values(), x):
        dtype = getattr(part, "dtype", None)
        if dtype in ("float32", "float64"):
            return dtype
    return np.dtype("float32")


def prepared(model, x, y):
    """Return x, y as tensors of the model's dtype, y as a column if predictions are."""
    dtype = dtype_for(model, x)
    x = constant(x, dtype)
    y = constant(y, dtype)
    check_arrays((x, y))
    first = constant(model.predict(x.numpy()[:32]))
    if (*y.shape[1:], 1) == first.shape[1:]:
        y = constant(y.numpy()[:, None])
    trainings.check_training(model.loss, x, y, constant(y.numpy()[:32]), first)
    return x, y


def batches_of(model, x, y=None, batch_size=1024, shuffle=False):
    """Make a Dataset of batches from arrays x, y, from (x, y), or from a Dataset."""
    trainings.check_parts(model, model.named(Layer).values())
    if isinstance(x, Dataset):
        data = copy.copy(x)
        data.arrays = prepared(model, *trainings.check_pair(x.arrays))
        return data
    rows = Dataset.from_tensor_slices(prepared(model, *trainings.check_pair(x, y)))
    if check_bool("fit: shuffle", shuffle):
        rows = rows.shuffle(len(rows))
    return rows.batch(batch_size)


class Model(Layer):
    """A layer with its own training loop. Subclasses define `call(x)`."""

    loss = trainings.uncompiled  # raises an error; `compile` sets another one
    optimizer = history = None  # what `compile` chose; the record of a training
    stop_training = False

    def __init__(self, name=None):
        super().__init__(name)
        self.built = True  # its variables are those of the layers inside

    def compile(self, optimizer="sgd", loss="mse", metrics=()):
        """Choose an optimizer and a loss, each a name or an object."""
        trainings.check_metrics(metrics)
        self.optimizer = chosen("optimizer", OPTIMIZERS, optimizer)
        self.loss = chosen("loss", LOSSES, loss)

    def train_step(self, x, y):
        """Train on a batch, and return the loss. Override it for your own step."""
        with GradientTape() as tape:
            loss = self.loss(y, self(x, training=True))
        variables = trainings.check_trainable(self, self.trainable_variables)
        gradients = tape.gradient(loss, variables)
        self.optimizer.apply_gradients(zip(gradients, variables))
        return loss

    @short
    def fit(self, x, y=None, batch_size=32, epochs=1, verbose=1, callbacks=None,
            *, shuffle=True):  # fmt: skip
        """Train on arrays or a Dataset of batches. Return a History."""
        callbacks = trainings.check_callbacks(callbacks)
        data = batches_of(self, x, y, batch_size, shuffle)
        return run_training(self, data, epochs, callbacks, verbose)

    def evaluate(self, x, y=None, batch_size=1024):
        """Return the mean loss over all rows, a float."""
        step = function(lambda x, y: self.loss(y, self(x)))
        return one_pass(step, batches_of(self, x, y, batch_size))["loss"]

    @short
    def predict(self, x):
        """Return the model's output for all rows of x, as a NumPy array."""
        x = constant(x, dtype_for(self, x))
        return function(lambda rows: self(rows))(x).numpy()

    def build(self, input_shape, dtype="float32"):
        """Make the variables by tracing a row of this shape, [rows, …]."""
        trace(self, [PLACE.device.spec((1, *trainings.row_shape(input_shape)), dtype)])


class Sequential(Model):
    """Layers in a row, each called on the output of the one before."""

    def __init__(self, layers=(), name=None):
        super().__init__(name=name)
        self.layers = []
        for layer in layers:
            self.add(layer)

    def add(self, layer):
        """Append a layer. Raises TypeError if it does not work in this model."""
        self.layers.append(trainings.check_layer(self, layer, Layer))

    def call(self, x):
        for layer in self.layers:
            x = layer(x)
        return x

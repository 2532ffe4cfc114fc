"""Models that own their training loop."""

# Built from 05_high_level.ipynb: edit there, then run its last cell.

import copy

import numpy as np

from levels.hardware import PLACE
from levels.low_level import GradientTape, Variable, constant, function, trace
from levels.mid_level import LOSSES, OPTIMIZERS, Dataset, Layer
from levels.support.checks import check_bool, check_int, lookup
from levels.support.tracebacks import short
from levels.support.trainings import (
    check_callbacks,
    check_layer,
    check_metrics,
    check_pair,
    check_parts,
    check_trainable,
    check_training,
    row_shape,
    uncompiled,
)

from .loops import one_pass, run_training


def dtype_for(model, x):
    """Return the dtype of the model's variables or layers, or x's, or float32."""
    for part in (*model.named((Variable, Layer)).values(), x):
        dtype = getattr(part, "dtype", None)
        if dtype in ("float32", "float64"):
            return dtype
    return np.dtype("float32")


def prepared(model, x, y):
    """Convert x, y to tensors of the model's dtype. Raises ValueError.

    y[rows] becomes [rows, 1] if the model gives that.
    """
    dtype = dtype_for(model, x)
    arrays = constant(x, dtype), constant(y, dtype)
    x, y = Dataset.from_tensor_slices(arrays).arrays
    first = constant(model.predict(x.numpy()[:32]))
    if (*y.shape[1:], 1) == first.shape[1:]:
        y = constant(y.numpy()[:, None])
    check_training(model.loss, x, y, constant(y.numpy()[:32]), first)
    return x, y


def batches_of(model, x, y=None, batch_size=1024, shuffle=False):
    """Make a Dataset of batches from arrays x, y, from (x, y), or from a Dataset.

    Raises TypeError, ValueError for data that does not fit the model.
    """
    check_parts(model, model.named(Layer).values())
    if isinstance(x, Dataset):
        data = copy.copy(x)
        data.arrays = prepared(model, *check_pair(x.arrays))
        return data
    given = x if isinstance(x, tuple) and y is None else (x, y)
    rows = Dataset.from_tensor_slices(prepared(model, *check_pair(given)))
    if check_bool("fit: shuffle", shuffle):
        rows = rows.shuffle(len(rows))
    return rows.batch(batch_size)


def _chosen(what, table, name):
    """Return a new object of the class that a table has under this name.

    Any other object is returned as it is. Raises ValueError, TypeError.
    """
    found = lookup(what, table, name)
    return found() if isinstance(found, type) else found


class Model(Layer):
    """A layer with its own training loop. Subclasses define `call(x)`."""

    loss = uncompiled  # raises an error; `compile` sets another one
    optimizer = history = None  # what `compile` chose; the record of a training
    stop_training = False

    def __init__(self, name=None):
        super().__init__(name)
        self.built = True  # its variables are those of the layers inside

    def compile(self, optimizer="sgd", loss="mse", metrics=()):
        """Choose an optimizer and a loss, each a name or an object."""
        check_metrics(metrics)
        self.optimizer = _chosen("optimizer", OPTIMIZERS, optimizer)
        self.loss = _chosen("loss", LOSSES, loss)

    def train_step(self, x, y):
        """Train on a batch, and return the loss. Override it for your own step."""
        with GradientTape() as tape:
            loss = self.loss(y, self(x, training=True))
        variables = check_trainable(self, self.trainable_variables)
        gradients = tape.gradient(loss, variables)
        self.optimizer.apply_gradients(zip(gradients, variables))
        return loss

    @short
    def fit(
        self, x, y=None, batch_size=32, epochs=1, verbose=1, callbacks=None, *, shuffle=True
    ):  # fmt: skip
        """Train on arrays or a Dataset of batches. Return a History."""
        callbacks = check_callbacks(callbacks)
        data = batches_of(self, x, y, batch_size, shuffle)
        epochs = check_int(0, "epochs", epochs)
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
        trace(self, [PLACE.device.spec((1, *row_shape(input_shape)), dtype)])


class Sequential(Model):
    """Layers in a row, each called on the output of the one before."""

    def __init__(self, layers=(), name=None):
        super().__init__(name=name)
        self.layers = []
        for layer in layers:
            self.add(layer)

    def add(self, layer):
        """Append a layer. Raises TypeError if it does not work in this model."""
        self.layers.append(check_layer(self, layer, Layer))

    def call(self, x):
        for layer in self.layers:
            x = layer(x)
        return x

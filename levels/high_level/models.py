"""Models that own their training loop."""

# Built from 05_high_level.ipynb: edit there, then run its last cell.

import copy

import numpy as np

from levels.hardware import PLACE
from levels.low_level import GradientTape, Variable, constant, function, trace
from levels.mid_level import Dataset, Layer, Loss
from levels.support.checks import check_bool, check_int
from levels.support.inputs import check_finite
from levels.support.tracebacks import short

from .loops import Training, run_training


def dtype_for(model, x):
    """Return the dtype of the model's variables and layers; without any, that of x if it is float, else float32."""
    found = [getattr(part, "dtype", None) for part in (*model.named((Variable, Layer)).values(), x)]
    return next((dtype for dtype in found if dtype in ("float32", "float64")), np.dtype("float32"))


def prepared(model, x, y):
    """Convert x, y to the model's dtype. y[rows] becomes [rows, 1] if the model gives that. Raises ValueError."""
    dtype, loss = dtype_for(model, x), model.training.losses[0]
    x, y = Dataset.from_tensor_slices((constant(x, dtype), constant(y, dtype))).arrays  # raises for unequal lengths
    check_finite("x", x.numpy())
    check_finite("y", y.numpy())
    given = constant(model.predict(x.numpy()[:32]))  # a program: no kernel is compiled for it
    if (*y.shape, 1) == (*y.shape[:1], *given.shape[1:]):
        y = constant(y.numpy()[:, None])
    if isinstance(loss, Loss):  # check all targets, and the model's output for the first rows
        loss.check(y, y)
        loss.check(constant(y.numpy()[:32]), given)
    return x, y


def batches_of(model, x, y=None, batch_size=1024, shuffle=False):
    """Make a Dataset of batches for this model from arrays x, y, (x, y) or a Dataset. Raises TypeError, ValueError."""
    if isinstance(x, Dataset):
        data = copy.copy(x)
        data.arrays = prepared(model, *x.arrays) if isinstance(x.arrays, tuple) else x.arrays
        return data
    parts = x if isinstance(x, tuple) and y is None else (x, y)
    if any(part is None for part in parts):
        raise TypeError(f"x is a {type(x).__name__}, y is missing: give x and y, or a Dataset of batches (x, y)")
    rows = Dataset.from_tensor_slices(prepared(model, *parts))
    return (rows.shuffle(len(rows)) if shuffle else rows).batch(batch_size)


class _BaseModel(Layer):
    """A layer made of layers. Before its first training it checks that they work in it."""

    looked = False  # whether it has checked them

    def check_parts(self):
        """Raise TypeError for a layer that would not work in this model."""
        for part in self.named(Layer).values():
            part.check_model(self)

    def run(self, x, training=None):
        """Return the result of `call`. Before the first training, check the layers."""
        if training and not self.looked:
            self.check_parts()
            self.looked = True
        return super().run(x, training)


class Trainable(_BaseModel):
    """A layer that can be trained: `compile` chooses how, and `train_step` does one step."""

    chosen = history = None  # what `compile` chose; the record of the last training
    stop_training = False

    def __init__(self, name=None):
        super().__init__(name)
        self.built = True  # its variables are those of the layers inside

    def compile(self, optimizer="sgd", loss="mse", metrics=()):
        """Choose how to train: an optimizer and a loss, each a name or an object; metrics are () or None."""
        self.chosen = Training(optimizer, loss, metrics)

    @property
    def training(self):
        """The `Training` that `compile` made. Raises RuntimeError before `compile`."""
        if self.chosen is None:
            raise RuntimeError(f"{self.name} is not compiled; call model.compile(optimizer, loss) first")
        return self.chosen

    optimizer = property(lambda self: self.training.optimizer)

    def train_step(self, x, y):
        """Train on a batch, and return the loss. Override it for your own step. Raises ValueError without variables."""
        with GradientTape() as tape:
            loss = self.training.loss(self, y, self(x, training=True))
        variables = self.trainable_variables
        if not variables:
            raise ValueError(f"{self.name} has no variable to train")
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss


class Model(Trainable):
    """A layer with its own training loop. Subclasses define `call(x)`."""

    def evaluate(self, x, y=None, batch_size=1024):
        """Return the mean loss over all rows, a float."""
        self.check_parts()
        step = function(lambda x, y: self.training.loss(self, y, self(x)))
        return self.training.one_pass(step, batches_of(self, x, y, batch_size))["loss"]

    @short
    def predict(self, x):
        """Return the model's output for all rows of x, as a NumPy array."""
        return function(lambda rows: self(rows))(constant(x, dtype_for(self, x))).numpy()

    def build(self, input_shape, dtype="float32"):
        """Make the variables by tracing a row of this shape, a list or tuple [rows, …]. Raises TypeError for others."""
        if not isinstance(input_shape, (list, tuple)):
            raise TypeError(f"build: shape is {input_shape!r:.60}; expected [rows, …]")
        trace(self, [PLACE.device.spec((1, *input_shape[1:]), dtype)])

    @short
    def fit(self, x, y=None, batch_size=32, epochs=1, verbose=1, callbacks=None, *, shuffle=True):
        """Train on arrays or a Dataset of batches. Return a History. Raises NotImplementedError for batch callbacks."""
        batch_events = "on_train_batch_begin", "on_train_batch_end"
        if any(getattr(callback, event, None) for callback in callbacks or () for event in batch_events):
            raise NotImplementedError(f"{' and '.join(batch_events)} are for the models of levels_more.high_level")
        self.check_parts()
        data = batches_of(self, x, y, batch_size, check_bool("fit: shuffle", shuffle))
        return run_training(self, data, check_int(0, "epochs", epochs), callbacks or (), verbose)


class Sequential(Model):
    """Layers in a row, each called on the output of the one before. Raises TypeError for anything but layers."""

    def __init__(self, layers=(), name=None):
        super().__init__(name=name)
        if not hasattr(layers, "__iter__"):
            raise TypeError(f"Sequential: {layers!r:.60}; expected a list of layers")
        self.layers = []
        for layer in layers:
            self.add(layer)

    def add(self, layer):
        """Append a layer. Raises TypeError if it is not a layer, or would not work in this model."""
        if not isinstance(layer, Layer):
            raise TypeError(f"Sequential: {layer!r:.60} is no layer of this level")
        layer.check_model(self)
        self.layers.append(layer)

    def call(self, x):
        for layer in self.layers:
            x = layer(x)
        return x

"""Models that own their training loop."""

# Built from 05_high_level.ipynb: edit there, then run its last cell.

import numpy as np

from levels.hardware import check_finite, flag
from levels.low_level import Added, GradientTape, Tensor, constant, function
from levels.mid_level import Dataset, Layer, Loss, at_least, positive, wider

from .loops import Training, run_training


class Trainable(Layer):
    """A layer that knows how it is to be trained."""

    def __init__(self, name=None):
        super().__init__(name)
        self.built, self.chosen, self.history = True, None, None  # its layers are built, one by one

    def build(self, shape, dtype="float32"):
        """Make all variables: a row of zeros of this shape [rows, …] goes through. Raises TypeError for no shape."""
        if not isinstance(shape, (list, tuple)):
            raise TypeError(f"build: shape is {shape!r:.60}; expected [rows, …]")
        self(np.zeros((1, *shape[1:]), "none" if dtype is None else dtype))  # (NumPy takes None for float64)

    def compile(self, optimizer="rmsprop", loss="mse", metrics=()):
        """Choose how to train, by names or objects."""
        self.chosen = Training(optimizer, loss, metrics)

    @property
    def training(self):
        """What `compile` chose. Raises RuntimeError where nothing was chosen."""
        if self.chosen is None:
            raise RuntimeError(f"{self.name} is not compiled; call model.compile(optimizer, loss) first")
        return self.chosen

    def train_step(self, x, y):
        """Forward, loss, backward, update on a batch -> loss. Yours to override. Raises ValueError for no variables."""
        with GradientTape() as tape:
            loss = self.training.loss(self, y, self(x, training=True))
        variables = self.trainable_variables
        if not variables:
            raise ValueError(f"{self.name} has no variable to train")
        self.training.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss


def batches_of(model, x, y=None, batch_size=1024, shuffle=False, seed=None):
    """Arrays x, y, or (x, y), as a Dataset of batches; a Dataset as it is. Raises TypeError, ValueError for what is none."""
    if isinstance(x, Dataset):
        return x
    x, y = x if isinstance(x, tuple) and y is None else (x, y)
    if any(isinstance(part, (type(None), int, float)) for part in (x, y)):
        told = "missing" if y is None else f"a {type(y).__name__}"
        raise TypeError(f"x is a {type(x).__name__}, y is {told}: give x and y, or a Dataset of batches (x, y)")
    x, loss = constant(x), model.training.losses[0]
    y = constant(y, x.dtype if x.dtype.kind == "f" else np.float32)
    if isinstance(loss, Loss):
        loss.check(y, y)
        loss.check(constant(y.numpy()[:32]), model(x.numpy()[:32]))
    rows = Dataset.from_tensor_slices((x, y))
    return (rows.shuffle(len(rows), seed) if shuffle else rows).batch(batch_size)


def _finite(data):
    """This Dataset, if the rows of its arrays x and y are finite numbers. Raises ValueError, naming the first that is not."""
    for name, arrays in zip("xy", data.arrays if isinstance(data.arrays, tuple) else ()):
        for array in arrays if isinstance(arrays, tuple) else [arrays]:  # several inputs
            if isinstance(array, Tensor):
                check_finite(name, array.numpy())
    return data


class Model(Trainable):
    """A layer that trains itself: write `call(x)`. Model(inputs, outputs), a graph of layers, is in `levels_more`."""

    begin, export, parted, save, summary = Added(), Added(), Added(), Added(), Added()

    def batches(self, *given):
        """See `batches_of`."""
        return _finite(wider(batches_of)(self, *given))

    def fit(self, x, y=None, batch_size=32, epochs=1, verbose=1, callbacks=(), validation_split=0.0, validation_data=None,
            shuffle=True, seed=None):  # fmt: skip
        """Train on arrays x, y or on a Dataset of batches; returns a History. A seed repeats the order of rows."""
        flag("fit: shuffle", shuffle), flag("fit: verbose", bool(verbose) if type(verbose) is int else verbose)
        if positive("fit: validation_split", validation_split, zero=True) and validation_data is None:
            x, y, validation_data = self.parted(x, y, validation_split)  # by `levels_more`
        data = self.batches(x, y, batch_size, shuffle, seed)
        validation = None if validation_data is None else self.batches(validation_data)
        return wider(run_training)(self, data, at_least(0, "epochs", epochs), verbose, callbacks, validation)

    def test_step(self, x, y):
        """The loss on one batch, for `evaluate`."""
        return self.training.loss(self, y, self(x))

    def evaluate(self, x, y=None, batch_size=1024):
        """{"loss": its mean over all rows}"""
        return self.training.one_pass(function(self.test_step), self.batches(x, y, batch_size))

    def predict(self, x, batch_size=1024):
        """What the model gives for all rows of x, as a NumPy array; so many rows at a time."""
        batch_size, wide = at_least(1, "predict: batch_size", batch_size), wider(Model.predict)
        if wide is not Model.predict:
            return wide(self, x, batch_size)
        program = function(lambda rows: self(rows))
        starts = range(0, max(1, len(x)), batch_size)  # no rows are one empty batch
        return np.concatenate([program(x[k : k + batch_size]).numpy() for k in starts])


class Sequential(Model):
    """Layers in a row, each called on what the one before gave. Raises TypeError for what is no list."""

    def __init__(self, layers, name=None):
        super().__init__(name)
        if not hasattr(layers, "__iter__"):
            raise TypeError(f"Sequential: {layers!r:.60}; expected a list of layers")
        self.layers = [layer for layer in layers if isinstance(layer, Layer)]
        for other in [x for x in layers if not isinstance(x, Layer)]:
            self.begin(other)  # an `Input` of `levels_more`

    def call(self, x):
        for layer in self.layers:
            x = layer(x)
        return x

"""Models that own their training loop."""

# Built from 05_high_level.ipynb: edit there, then run its last cell.

import math
import sys

import numpy as np

from levels.hardware import DEVICES
from levels.low_level import Operators, constant, function, trace
from levels.mid_level import Crossentropy, Layer, Loss, Made, Pipeline, SparseCategoricalCrossentropy, at_least

from .loops import Training, alone, listed, one_pass, renew, run_epochs, train_step


def arrays_of(x):
    """One array, or a list of arrays, as a list of NumPy arrays. A list of numbers is one array."""
    several = isinstance(x, (list, tuple)) and any(isinstance(a, (np.ndarray, Operators)) for a in x)
    return [constant(a).numpy() for a in (x if several else [x])]


def rows_of(model, x, y):
    """A Dataset of the rows of arrays x, y, or of lists of them, with targets as the losses want them."""
    if y is None:
        raise TypeError("y is missing: give x and y, or a Dataset of batches (x, y)")
    x, y = arrays_of(x), arrays_of(y)
    dtype = next((a.dtype for a in x if a.dtype.kind == "f"), np.dtype("f4"))
    losses = (model.training.losses * len(y))[: len(y)]
    y = [a if isinstance(loss, SparseCategoricalCrossentropy) else a.astype(dtype) for a, loss in zip(y, losses)]
    rows = Pipeline.from_tensor_slices((alone(tuple(x)), alone(tuple(y))))
    check_targets(model, [a[:32] for a in x], y, losses)
    return rows


def check_targets(model, x, y, losses):
    """Raise ValueError for targets, or for answers of the model to the first rows, that a loss has no meaning for."""
    probabilities = [isinstance(loss, Crossentropy) and not loss.from_logits for loss in losses]
    answers = listed(model.predict(alone(x))) if any(probabilities) else y
    for loss, target, answer, asked in zip(losses, y, answers, probabilities):
        if isinstance(loss, Loss) and not isinstance(loss, SparseCategoricalCrossentropy):
            loss.check(constant(target), constant(target))
        if asked:
            loss.check(constant(target[: len(answer)]), constant(answer))


def parted(rows, share):
    """(all rows but the last, this share of them, the last)"""
    last = int(len(rows) * share)
    kept = len(rows) - last
    if not 0 < last < len(rows):
        raise ValueError(f"validation_split {share} leaves {kept} to train on and {last} to validate")
    return rows.take(kept), rows.skip(kept)


def dry_run(layer, specs):
    """Call a layer on symbols: this builds it, and runs nothing. Returns the symbols that it gives."""
    return trace(lambda *x: layer(alone(x)), specs)[1]


def spec_of(shape, dtype):
    """The Spec of a batch of rows of this shape: two of them stand for any number."""
    return DEVICES[-1].spec((2, *shape), np.dtype(dtype))


def later(name):
    """What a room that opens later defines: looked up when it is needed, in the notebook or in the built level."""
    return getattr(sys.modules[__package__ or __name__], name)


class Model(Layer):
    """A layer that trains itself. Write `call(x)` in a class of your own, or say Model(inputs, outputs); see Input."""

    def __new__(cls, *args, **options):
        return super().__new__(Functional if cls is Model and (args or options) else cls, *args, **options)

    def __init__(self, name=None):
        super().__init__(name)
        self.built = True  # its layers are, one by one
        self.chosen = self.history = self.predictor = None

    def build(self, shape, dtype="float32"):
        """Make all variables, for inputs of this shape [rows, …], or of a list of shapes."""
        shapes = shape if isinstance(shape, list) else [shape]
        dry_run(self, [spec_of(shape[1:], dtype) for shape in shapes])

    def compile(self, optimizer="rmsprop", loss="mse", metrics=()):
        """Choose how to train, by names or objects. With several outputs there is one loss for all, or a list."""
        self.chosen, self.predictor = Training(optimizer, loss, metrics), None

    @property
    def training(self):
        """What `compile` chose."""
        if self.chosen is None:
            raise RuntimeError(f"{self.name} is not compiled; call model.compile(optimizer, loss) first")
        return self.chosen

    def train_step(self, x, y):
        """One step on one batch, which returns its loss. Override it to train in another way."""
        return train_step(self, x, y)

    def test_step(self, x, y):
        """The loss on one batch, for `evaluate`; the metrics take the batch in."""
        return self.training.loss(self, y, self(x))

    def fit(self, x, y=None, batch_size=32, epochs=1, verbose=1, callbacks=(), validation_split=0.0, validation_data=None,
            shuffle=True, seed=None):  # fmt: skip
        """Train on arrays x, y or on a Dataset of batches; returns a History. A seed repeats the order of rows."""
        data = x if isinstance(x, Pipeline) else rows_of(self, x, y)
        validation = None if validation_data is None else self.batches(*listed(validation_data))
        if validation_split and validation is None:
            if data is x:
                raise TypeError("validation_split needs arrays x and y; beside a Dataset give validation_data")
            data, last = parted(data, validation_split)
            validation = last.batch(1024)
        if data is not x:
            data = (data.shuffle(len(data), seed) if shuffle else data).batch(batch_size)
        if self.predictor is not None:
            self.predictor.renew()
        return run_epochs(self, data, at_least(0, "epochs", epochs), verbose, listed(callbacks), validation)

    def batches(self, x, y=None, batch_size=1024):
        """Arrays x, y as a Dataset of batches. A Dataset stays as it is."""
        return x if isinstance(x, Pipeline) else rows_of(self, x, y).batch(batch_size)

    def evaluate(self, x, y=None, batch_size=1024):
        """{"loss": its mean over all rows, and each metric}"""
        return one_pass(self.training, renew(self.training, self.test_step), self.batches(x, y, batch_size))

    def predict(self, x, batch_size=1024):
        """What the model gives for all rows: a NumPy array, or a list of them."""
        self.predictor = self.predictor or function(lambda *rows: self(alone(rows)))
        x, batch_size = arrays_of(x), at_least(1, "predict: batch_size", batch_size)
        starts = range(0, max(1, len(x[0])), batch_size)  # no rows are one empty batch
        parts = [listed(self.predictor(*(a[k : k + batch_size] for a in x))) for k in starts]
        return alone([np.concatenate([part.numpy() for part in outputs]) for outputs in zip(*parts)])

    def summary(self):
        """Print the layers, the shapes that they gave last, and how many numbers their variables hold."""
        print(summary(self))

    def save(self, path):
        """Make a folder that `load_model` reads; see the function of this name."""
        later("save")(self, path)

    def export(self, path):
        """Write an ONNX file, which runs without `levels`; see the function of this name."""
        later("export")(self, path)


class Sequential(Model):
    """Layers in a row. An `Input` in front builds it at once."""

    def __init__(self, layers, name=None):
        super().__init__(name)
        self.layers = [layer for layer in layers if isinstance(layer, Layer)]
        for other in (x for x in layers if x not in self.layers):
            if not isinstance(other, Placeholder):
                raise TypeError(f"Sequential: {other!r} is no layer")
            dry_run(self, [other.spec])

    def call(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def summary(model):
    """The layers, the shapes that they gave last, and how many numbers their variables hold, as lines of text."""
    found = model.named(Layer)
    top = [part for path, part in found.items() if path and not any(p and path.startswith(f"{p}.") for p in found)]
    rows = [("layer", "output shape", "parameters")]
    for part in top:
        shape = part.output_shape and str((None, *part.output_shape[1:]))
        rows.append((f"{part.name} ({type(part).__name__})", shape or "not built", f"{part.count():,}"))
    rows.append(("total", "", f"{model.count():,}"))
    rows.append(("trained", "", f"{sum(math.prod(v.shape) for v in model.trainable_variables):,}"))
    widths = [max(map(len, column)) for column in zip(*rows)]
    return "\n".join(f"{a:{widths[0]}}   {b:{widths[1]}}   {c:>{widths[2]}}" for a, b, c in rows)


class Placeholder(Made):
    """What a layer will be given, or give, once there are numbers: `layer` is None for an `Input`."""

    def through(self, layer, inputs):
        """The layer, called on placeholders."""
        return Call(layer, inputs)

    def __repr__(self):
        return f"{type(self).__name__} of shape (None, {', '.join(map(str, self.spec.shape[1:]))})"


class Input(Placeholder):
    """A place for rows of that shape."""

    def __init__(self, shape, dtype="float32"):
        self.spec, self.layer = spec_of(shape, dtype), None


class Call(Placeholder):
    """What a layer gives when it is called on these placeholders. That builds the layer, and runs nothing."""

    def __init__(self, layer, inputs):
        self.layer, self.inputs = layer, listed(inputs)
        self.spec = dry_run(layer, [x.spec for x in self.inputs]).spec


def in_order(outputs, inputs):
    """The calls that lead from the inputs to the outputs, each after those that it needs."""
    order = []

    def visit(y):
        if y in inputs or y in order:
            return
        if y.layer is None:
            raise ValueError(f"Model: an output needs {y!r}, which is not among the inputs")
        for x in y.inputs:
            visit(x)
        order.append(y)

    for y in outputs:
        visit(y)
    return order


class Functional(Model):
    """A graph of layers, from inputs to outputs."""

    def __init__(self, inputs, outputs, name=None):
        super().__init__(name)
        self.inputs, self.outputs = listed(inputs), listed(outputs)
        self.input_specs = [x.spec for x in self.inputs]
        self.steps = in_order(self.outputs, self.inputs)
        self.layers = [*dict.fromkeys(step.layer for step in self.steps)]

    def call(self, x):
        values = dict(zip(self.inputs, listed(x), strict=True))
        for step in self.steps:
            values[step] = step.layer(alone([values[x] for x in step.inputs]))
        return alone([values[y] for y in self.outputs])

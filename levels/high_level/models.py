"""The training loop is owned too: models that fit themselves."""

# Built from notebooks/05_high_level.ipynb: edit there, then run its last cell.

import functools
import math
import operator
import signal
import sys
import time
from contextlib import contextmanager

import numpy as np

from levels.low_level import DEVICES, GradientTape, Operators, constant, function, trace
from levels.mid_level import (
    LOSSES,
    METRICS,
    SGD,
    Adam,
    AdamW,
    BinaryCrossentropy,
    CategoricalCrossentropy,
    Dataset,
    Layer,
    RMSprop,
    SparseCategoricalCrossentropy,
    at_least,
    check_probabilities,
    known,
)

OPTIMIZERS = {"sgd": SGD, "rmsprop": RMSprop, "adam": Adam, "adamw": AdamW}


def made(what, table, name):
    """A new object of the class with this name in a table. An object of your own stays as it is."""
    found = known(what, table, name)
    return found() if isinstance(name, (str, type)) else found


def listed(x):
    """A list of what may stand alone."""
    return list(x) if isinstance(x, (list, tuple)) else [x]


def alone(values):
    """The only one of several, or all."""
    return values[0] if len(values) == 1 else values


class Training:
    """What `compile` chose. It is no module: the variables of a model are its weights, not those of its optimizer."""

    def __init__(self, optimizer, loss, metrics):
        self.optimizer = made("optimizer", OPTIMIZERS, optimizer)
        self.losses = [made("loss", LOSSES, one) for one in listed(loss)]
        self.metrics = [made("metric", METRICS, metric) for metric in metrics]
        self.pace = 1  # steps in a call; see `pieces`

    def loss(self, model, y, predicted):
        """The losses of all outputs and the penalties of all layers, added up. The metrics look at the first output."""
        y, predicted = listed(y), listed(predicted)
        losses = self.losses * len(predicted) if len(self.losses) == 1 else self.losses
        if not len(losses) == len(y) == len(predicted):
            raise ValueError(f"{len(predicted)} outputs, with {len(y)} targets and {len(losses)} losses")
        for metric in self.metrics:
            metric.update_state(y[0], predicted[0])
        return functools.reduce(operator.add, [loss(*pair) for loss, *pair in zip(losses, y, predicted)] + model.losses)


def train_step(model, x, y):
    """Forward, loss, backward, update, on one batch. Returns the loss before the update."""
    with GradientTape() as tape:
        loss = model.training.loss(model, y, model(x, training=True))
    variables = model.trainable_variables
    if not variables:
        raise ValueError(f"{model.name} has no variable to train")
    model.training.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
    return loss


PIECE = 0.05  # seconds


def pieces(program, data, training, one_by_one=False):
    """Go through the data once, by calls of `program` for some batches each. Yields (losses, batch sizes) of each call."""
    if not data.in_memory:
        for x, y in data:
            rows = [*listed(x), *listed(y)]
            yield program(len(listed(x)))(*rows).numpy().reshape(1), [len(rows[0])]
        return
    (x, y), batches = data.rows()
    rows, start = [*listed(x), *listed(y)], 0
    program = program(len(listed(x)))
    while start < len(batches):
        part, begun = batches[start : start + (1 if one_by_one else training.pace)], time.perf_counter()
        losses = program.over(*rows, part).numpy()
        seconds = (time.perf_counter() - begun) / len(part)
        training.pace, start = max(1, int(PIECE / seconds)), start + len(part)
        yield losses, [len(batch) for batch in part]


class History:
    """What happened during `fit`: `losses` of all steps, and `history`, {name: [a number for each epoch]}."""

    def __init__(self):
        self.steps, self.history = [], {}

    losses = property(lambda self: np.concatenate(self.steps) if self.steps else np.empty(0))

    def add(self, logs):
        """Take in the numbers of an epoch."""
        for name, value in logs.items():
            self.history.setdefault(name, []).append(value)

    def plot(self):
        """A figure of each name's numbers over the epochs."""
        from matplotlib.figure import Figure

        figure = Figure((7, 3), layout="constrained")
        axes = figure.subplots()
        for name, values in self.history.items():
            axes.plot(range(1, len(values) + 1), values, label=name)
        axes.set(xlabel="epoch")
        axes.legend()
        return figure

    def __repr__(self):
        last = ", ".join(f"{name} {values[-1]:.4g}" for name, values in self.history.items())
        return f"History of {len(self.losses):,} steps: {last}"


@contextmanager
def noted_interrupts():
    """Inside this `with` block Ctrl-C fills the list that it gives, and does no more. (Threads other than the main one get none.)"""
    pressed = []
    try:
        before = signal.signal(signal.SIGINT, lambda *_: pressed.append(True))
    except ValueError:
        yield pressed
        return
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)


def compiled(step):
    """step(x, y) as a `function` of single arrays: call this with the number of inputs, the others are targets."""
    return functools.cache(lambda inputs: function(lambda *rows: step(alone(rows[:inputs]), alone(rows[inputs:]))))


def one_pass(training, program, data, after=lambda losses: None, one_by_one=False):
    """Go through the data; `after` hears of the losses of each piece. Returns {"loss": its mean over rows, and the metrics}."""
    total = rows = 0
    for metric in training.metrics:
        metric.reset_state()
    for losses, sizes in pieces(program, data, training, one_by_one):
        total, rows = total + float(losses @ sizes), rows + sum(sizes)
        after(losses)
    if not rows:
        raise ValueError("the dataset gave no batch")
    return {"loss": total / rows} | {metric.name: metric.result() for metric in training.metrics}


def run_epochs(model, data, epochs, verbose, callbacks, validation):
    """Train for so many epochs; returns the History. `validation` is a Dataset or None."""
    for callback in callbacks:
        if not isinstance(callback, Callback):
            raise TypeError(f"callbacks hold {callback!r}; expected objects, such as EarlyStopping()")
        callback.model = model
    training, step, test = model.training, compiled(model.train_step), compiled(model.test_step)
    history = model.history = History()
    model.stop_training = False
    one_by_one = any(type(c).on_train_batch_end is not Callback.on_train_batch_end for c in callbacks)

    def tell(event, *args):
        for callback in callbacks:
            getattr(callback, event)(*args)

    def heed(losses=None):
        if pressed:
            raise KeyboardInterrupt("fit was stopped; the model has its weights, model.history the losses so far")

    def after(losses):
        history.steps.append(losses)
        show(len(losses))
        if one_by_one:
            tell("on_train_batch_end", len(history.steps) - 1, {"loss": float(losses[0])})
        heed()

    with noted_interrupts() as pressed, progress(epochs, data, verbose) as show:
        tell("on_train_begin")
        try:
            for epoch in range(epochs):
                tell("on_epoch_begin", epoch)
                logs = one_pass(training, step, data, after, one_by_one)
                if validation is not None:
                    logs |= {f"val_{name}": value for name, value in one_pass(training, test, validation, heed).items()}
                show(0, logs)
                try:
                    tell("on_epoch_end", epoch, logs)
                finally:
                    history.add(logs)  # with what callbacks have added
                heed()
                if model.stop_training:
                    break
                if not math.isfinite(logs["loss"]):
                    cure = "try a lower learning rate, and look for NaN in the data"
                    raise FloatingPointError(f"fit: the loss is {logs['loss']} after epoch {epoch}; {cure}")
        finally:
            tell("on_train_end")
    return history


@contextmanager
def progress(epochs, data, verbose):
    """Inside this `with` block: a function (steps done, logs) that moves a bar."""
    if not verbose:
        yield lambda steps, logs=None: None
        return
    from tqdm.auto import tqdm

    with tqdm(total=epochs * len(data) if data.in_memory else None, unit=" steps") as bar:

        def show(steps, logs=None):
            if logs is None:
                bar.update(steps)
            elif bar.n == bar.total or time.perf_counter() - show.last > 0.1:
                bar.set_postfix({name: f"{value:.4g}" for name, value in logs.items()}, refresh=bar.n == bar.total)
                show.last = time.perf_counter()

        show.last = 0.0
        yield show


class Callback:
    """Is told of the training of `self.model`. One that has `on_train_batch_end` makes each step a call of its own."""

    model = None

    def on_train_begin(self):
        """Before the first epoch."""

    def on_epoch_begin(self, epoch):
        """Before each epoch."""

    def on_train_batch_end(self, step, logs):
        """After each step, with {"loss": …}."""

    def on_epoch_end(self, epoch, logs):
        """After each epoch, with {"loss": …, each metric, each of them with val_}."""

    def on_train_end(self):
        """After the last epoch, however it ended."""


def arrays_of(x):
    """One array, or a list of arrays, as a list of NumPy arrays. A list of numbers is one array."""
    several = isinstance(x, (list, tuple)) and any(isinstance(a, (np.ndarray, Operators)) for a in x)
    return [constant(a).numpy() for a in (x if several else [x])]


def batches_of(training, x, y, batch_size, shuffle=False, seed=None):
    """A Dataset of batches of the arrays x, y, or of lists of them. A Dataset stays as it is."""
    if isinstance(x, Dataset):
        return x
    if y is None:
        raise TypeError("y is missing: give x and y, or a Dataset of batches (x, y)")
    x, y = arrays_of(x), arrays_of(y)
    dtype = next((a.dtype for a in x if a.dtype.kind == "f"), np.dtype("f4"))
    sparse = [isinstance(loss, SparseCategoricalCrossentropy) for loss in training.losses]
    y = [a if whole else a.astype(dtype) for a, whole in zip(y, sparse * len(y))]
    for loss, target, whole in zip(training.losses * len(y), y, sparse * len(y)):
        if isinstance(loss, (BinaryCrossentropy, CategoricalCrossentropy)) and not whole:
            check_probabilities(loss, y_true=constant(target))
    data = Dataset.from_tensor_slices((alone(tuple(x)), alone(tuple(y))))
    return (data.shuffle(len(data), seed) if shuffle else data).batch(batch_size)


def parted(x, y, share):
    """((x, y), (x, y)): all rows but the last, and this share of them, the last."""
    if y is None:
        raise TypeError("validation_split needs arrays x and y; of a Dataset give its own part as validation_data")
    x, y = arrays_of(x), arrays_of(y)
    rows = len(x[0])
    kept = rows - int(rows * share)
    if not 0 < kept < rows:
        raise ValueError(
            f"validation_split {share} of {rows} rows leaves {kept} to train on and {rows - kept} to validate"
        )
    first, last = slice(kept), slice(kept, None)
    return [([a[part] for a in x], [a[part] for a in y]) for part in (first, last)]


def dry_run(layer, specs):
    """Call a layer on symbols: this builds it, and runs nothing. Returns the symbols that it gives."""
    return trace(lambda *x: layer(alone(x)), specs)[1]


def later(name):
    """What a room that opens later defines: looked up when it is needed, in the notebook or in the built level."""
    return getattr(sys.modules[__package__ or __name__], name)


class Model(Layer):
    """A layer that trains itself. Write `call(x)` in a class of your own, or say Model(inputs, outputs), see `Input`."""

    def __new__(cls, *args, **options):
        return super().__new__(Functional if cls is Model and (args or options) else cls, *args, **options)

    def __init__(self, name=None):
        super().__init__(name)
        self.built, self.chosen, self.history, self.predictor = (
            True,
            None,
            None,
            None,
        )  # built: its layers are, one by one

    def build(self, shape, dtype="float32"):
        """Make all variables, for inputs of this shape [rows, …], or of a list of shapes."""
        shapes = shape if isinstance(shape, list) else [shape]
        dry_run(self, [DEVICES[-1].spec((2, *shape[1:]), np.dtype(dtype)) for shape in shapes])

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
        """Train on arrays x, y or on a Dataset of batches; returns a History. The same seed gives the same order of rows."""
        if validation_split and validation_data is None:
            (x, y), validation_data = parted(x, y, validation_split)
        data, self.predictor = batches_of(self.training, x, y, batch_size, shuffle, seed), None
        if isinstance(validation_data, (tuple, list)) and len(validation_data) == 2:
            validation_data = batches_of(self.training, *validation_data, 1024)
        elif not isinstance(validation_data, (Dataset, type(None))):
            raise TypeError(f"validation_data is a {type(validation_data).__name__}; expected (x, y) or a Dataset")
        return run_epochs(self, data, at_least(0, "epochs", epochs), verbose, listed(callbacks), validation_data)

    def evaluate(self, x, y=None, batch_size=1024):
        """{"loss": its mean over all rows, and each metric}"""
        return one_pass(self.training, compiled(self.test_step), batches_of(self.training, x, y, batch_size))

    def predict(self, x, batch_size=1024):
        """What the model gives for all rows: a NumPy array, or a list of them."""
        self.predictor = self.predictor or function(lambda *rows: self(alone(rows)))
        x = arrays_of(x)
        starts = range(0, max(1, len(x[0])), batch_size)  # no rows are one empty batch
        parts = [listed(self.predictor(*(a[k : k + batch_size] for a in x))) for k in starts]
        return alone([np.concatenate([part.numpy() for part in outputs]) for outputs in zip(*parts)])

    def summary(self):
        """Print the layers, the shapes that they gave last, and how many numbers their variables hold."""
        print(summary(self))

    def save(self, path):
        """Make a folder that `load_model` reads; see the function of this name."""
        later("save")(self, path)

    def save_weights(self, path):
        """Write the numbers of all variables into one file."""
        later("save_weights")(self, path)

    def load_weights(self, path):
        """Take all variables from such a file."""
        later("fill")(self, path)

    def export(self, path):
        """Write an ONNX file, which runs without `levels`; see the function of this name."""
        later("export")(self, path)


class Sequential(Model):
    """Layers in a row. An `Input` in front builds it at once."""

    def __init__(self, layers, name=None):
        super().__init__(name)
        self.layers = [layer for layer in layers if isinstance(layer, Layer)]
        for other in (x for x in layers if x not in self.layers):
            if not hasattr(other, "spec"):
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


class Placeholder:
    """What a layer will give, or be given, once there are numbers."""

    def __init__(self, spec, layer=None, inputs=()):
        self.spec, self.layer, self.inputs = spec, layer, inputs

    def through(self, layer, inputs):
        """The layer, called on placeholders: builds it, and notes the call down."""
        return Placeholder(dry_run(layer, [x.spec for x in listed(inputs)]).spec, layer, inputs)

    def __repr__(self):
        return f"Placeholder(None, {', '.join(map(str, self.spec.shape[1:]))})"


def Input(shape, dtype="float32"):
    """A place for rows of that shape."""
    return Placeholder(DEVICES[-1].spec((2, *shape), np.dtype(dtype)))


def in_order(outputs, inputs):
    """The calls that lead from the inputs to the outputs, each after those that it needs."""
    order = []

    def visit(y):
        if y in inputs or y in order:
            return
        if y.layer is None:
            raise ValueError(f"Model: an output needs {y!r}, which is not among the inputs")
        for x in listed(y.inputs):
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
            values[step] = step.layer(
                [values[x] for x in step.inputs] if isinstance(step.inputs, list) else values[step.inputs]
            )
        return alone([values[y] for y in self.outputs])

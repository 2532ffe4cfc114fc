# %% [markdown]
# # 5 · High-level API
#
# **In this notebook the model owns its training loop, and `model.fit` gives the same number as machine code.**
#
# This is the level of `tf.keras.Model` and of PyTorch Lightning. About 30 minutes.

# %%
from course import build, checks, compare, figures, tasks

build.watch("05_high_level")
figures.you_are_here(5)

# %% [markdown]
# ## A surprise to begin with (2 min)
#
# Below us lie four levels: one machine-code program, fourteen launches a step, a tape, layers with an optimizer. All four
# train on the same 8,000 batches. **Predict: how many digits of the last loss do they share?**

# %%
from levels import hardware, kernels, low_level, mid_level

task = tasks.linear()
for level in (hardware, kernels, low_level, mid_level):
    fit = level.tasks.linear_regression(task.x, task.y, task.weights, task.batches, task.learning_rate)
    print(f"{level.__name__:18} last loss {float(fit.losses[-1]).hex()}")

# %% [markdown]
# All of them, in hexadecimal, where nothing is rounded for printing. This notebook adds the fifth line.
#
# ## The loop is owned too (15 min)
#
# On level 4 we wrote: for each batch, open a tape, predict, take the loss, differentiate, update. Those lines were the same
# for every model. So a **model** keeps them. `compile` tells it which optimizer and which loss; `fit` runs the loop;
# `History` remembers what happened.
#
# First the names that `compile` understands. They are Keras' names.

# %%
#| export models
"""The training loop is owned too: models that fit themselves."""

from levels.mid_level import LOSSES, METRICS, SGD, Adam, AdamW, RMSprop, known

OPTIMIZERS = {"sgd": SGD, "rmsprop": RMSprop, "adam": Adam, "adamw": AdamW}


def made(what, table, name):
    """A new object of the class with this name in a table. An object of your own stays as it is."""
    found = known(what, table, name)
    return found() if isinstance(name, (str, type)) else found


# %%
try:
    made("loss", LOSSES, "binary_crossentopy")
except ValueError as error:
    print(error)

# %% [markdown]
# One **step** is what level 4 wrote for each of its models, and it read the same each time. So it is written once more, here,
# and then never again. A model may have several inputs and outputs; one that stands alone is treated as a list of one.


# %%
#| export models
import functools
import operator

from levels.low_level import GradientTape


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
    model.training.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
    return loss


# %% [markdown]
# An **epoch** shows the model every row once. Level 3's `.over` runs any number of steps in one call, so a whole training
# could be one call. But then nobody could stop it, and no bar would move. So it is cut into **pieces** of a twentieth of a
# second.


# %%
#| export models
import time

import numpy as np

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


# %% [markdown]
# What happened is kept in a `History`: the loss of every step, and for each epoch what it came to.


# %%
#| export models
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


# %% [markdown]
# Ctrl-C must find the model whole, never between two weights. Inside this block it is only noted down:


# %%
#| export models
import signal
from contextlib import contextmanager


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


# %% [markdown]
# Now the loop itself, plain Python around the compiled calls. What it costs is paid once a piece or once an epoch, not once a
# step. First one pass over the data, for training and for evaluating alike:


# %%
#| export models
from levels.low_level import function


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


# %% [markdown]
# Then the epochs. Before and after each, the **callbacks** are told, and a callback may set `model.stop_training`. Whatever
# ends the training, an error, Ctrl-C, a callback that fails: the weights are those of the last whole step, and
# `model.history` holds all losses up to it.


# %%
#| export models
import math


def run_epochs(model, data, epochs, verbose, callbacks, validation):
    """Train for so many epochs; returns the History. `validation` is a Dataset or None."""
    training, step, test = model.training, compiled(model.train_step), compiled(model.test_step)
    history, model.stop_training = History(), False
    model.history, one_by_one = (
        history,
        any(type(c).on_train_batch_end is not Callback.on_train_batch_end for c in callbacks),
    )

    def tell(event, *args):
        for callback in callbacks:
            getattr(callback, event)(*args)

    def after(losses):
        history.steps.append(losses)
        show(len(losses))
        if one_by_one:
            tell("on_train_batch_end", len(history.steps) - 1, {"loss": float(losses[0])})
        if pressed:
            raise KeyboardInterrupt("fit was stopped; the model has its weights, model.history the losses so far")

    for callback in callbacks:
        callback.model = model
    with noted_interrupts() as pressed, progress(epochs, data, verbose) as show:
        tell("on_train_begin")
        try:
            for epoch in range(epochs):
                tell("on_epoch_begin", epoch)
                logs = one_pass(training, step, data, after, one_by_one)
                if validation is not None:
                    logs |= {f"val_{name}": value for name, value in one_pass(training, test, validation).items()}
                history.add(logs)
                show(0, logs)
                tell("on_epoch_end", epoch, logs)
                if model.stop_training:
                    break
                if not math.isfinite(logs["loss"]):
                    raise FloatingPointError(
                        f"fit: the loss is {logs['loss']} after epoch {epoch}; try a lower learning rate"
                    )
        finally:
            tell("on_train_end")
    return history


# %% [markdown]
# A bar for those who wait, by `tqdm`, in a notebook and in a terminal. It is told of every piece, and draws ten times a second.


# %%
#| export models
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


# %% [markdown]
# What a callback can hear. Later there are seven of them; here is the class that hears everything and does nothing.


# %%
#| export models
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


# %% [markdown]
# Arrays become a dataset of level 4. They may be lists, and labels may be whole numbers: beside a loss of floats they become
# floats.


# %%
#| export models
from levels.low_level import constant
from levels.mid_level import Dataset, SparseCategoricalCrossentropy


def batches_of(training, x, y, batch_size, shuffle=False, seed=None):
    """A Dataset of batches of the arrays x, y, or of lists of them. A Dataset stays as it is."""
    if isinstance(x, Dataset):
        return x
    if y is None:
        raise TypeError("y is missing: give x and y, or a Dataset of batches (x, y)")
    x, y = [constant(a).numpy() for a in listed(x)], [constant(a).numpy() for a in listed(y)]
    dtype = next((a.dtype for a in x if a.dtype.kind == "f"), np.dtype("f4"))
    sparse = [isinstance(loss, SparseCategoricalCrossentropy) for loss in training.losses]
    y = [a if whole else a.astype(dtype) for a, whole in zip(y, sparse * len(y))]
    data = Dataset.from_tensor_slices((alone(tuple(x)), alone(tuple(y))))
    return (data.shuffle(len(data), seed) if shuffle else data).batch(batch_size)


def parted(x, y, share):
    """((x, y), (x, y)): all rows but the last, and this share of them, the last."""
    rows = len(listed(x)[0])
    kept = rows - int(rows * share)
    if not 0 < kept < rows:
        raise ValueError(
            f"validation_split {share} of {rows} rows leaves {kept} to train on and {rows - kept} to validate"
        )
    first, last = slice(kept), slice(kept, None)
    return [tuple(alone([a[part] for a in listed(v)]) for v in (x, y)) for part in (first, last)]


# %% [markdown]
# And the model: a layer with these functions as its methods.


# %%
#| export models
from levels.low_level import DEVICES, trace
from levels.mid_level import Layer


def dry_run(layer, specs):
    """Call a layer on symbols: this builds it, and runs nothing. Returns the symbols that it gives."""
    return trace(lambda *x: layer(alone(x)), specs)[1]


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
        if validation_split:
            (x, y), validation_data = parted(x, y, validation_split)
        data, self.predictor = batches_of(self.training, x, y, batch_size, shuffle, seed), None
        held_out = None if validation_data is None else batches_of(self.training, *validation_data, 1024)
        return run_epochs(self, data, epochs, verbose, callbacks, held_out)

    def evaluate(self, x, y=None, batch_size=1024):
        """{"loss": its mean over all rows, and each metric}"""
        return one_pass(self.training, compiled(self.test_step), batches_of(self.training, x, y, batch_size))

    def predict(self, x, batch_size=1024):
        """What the model gives for all rows: a NumPy array, or a list of them."""
        self.predictor = self.predictor or function(lambda *rows: self(alone(rows)))
        x = [constant(a).numpy() for a in listed(x)]
        parts = [listed(self.predictor(*(a[k : k + batch_size] for a in x))) for k in range(0, len(x[0]), batch_size)]
        return alone([np.concatenate([part.numpy() for part in outputs]) for outputs in zip(*parts)])

    def summary(self):
        """Print the layers, the shapes that they gave last, and how many numbers their variables hold."""
        print(summary(self))


# %% [markdown]
# The plainest model is a list of layers, each called on what the one before gave:


# %%
#| export models
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


# %% [markdown]
# A whole model in four lines:

# %%
from levels.mid_level import Dense

model = Sequential([Dense(1)])
model.compile(SGD(0.0005), "mse")
history = model.fit(task.x, task.y, batch_size=10, epochs=20, verbose=0, seed=1)
history

# %%
print(f"on the test rows: loss {model.evaluate(task.x_test, task.y_test)['loss']:.4g}")

# %%
for wrong in (lambda: Sequential([Dense(1)]).fit(task.x, task.y), lambda: model.compile("sdg")):
    try:
        wrong()
    except (RuntimeError, ValueError) as error:
        print(f"{type(error).__name__}: {error}")

# %% [markdown]
# What is in a model? `summary` lists its layers.


# %%
#| export models
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


# %% tags=["hide-input"]
checks.predict(
    "A net with two inputs, layers of 4 and 8 and one output: how many numbers are trained?",
    61,
    because="2·4 + 4, then 4·8 + 8, then 8·1 + 1: the weights, and a bias for each unit.",
)

# %%
net = Sequential([Dense(4, "relu"), Dense(8, "relu"), Dense(1, "sigmoid")])
net.build((None, 2))
net.summary()

# %% [markdown]
# ## Three ways to a model (8 min)
#
# A row of layers is not enough for a model with two inputs, or with a path around a layer. Say what flows where, with
# something that stands for the numbers to come: an `Input`. A layer that is called on it notes the call down, as level 3's
# tracer notes down ops. This is the **functional** way.


# %%
#| export models
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
        self.steps = in_order(self.outputs, self.inputs)
        self.layers = [*dict.fromkeys(step.layer for step in self.steps)]

    def call(self, x):
        values = dict(zip(self.inputs, listed(x), strict=True))
        for step in self.steps:
            values[step] = step.layer(
                [values[x] for x in step.inputs] if isinstance(step.inputs, list) else values[step.inputs]
            )
        return alone([values[y] for y in self.outputs])


# %% [markdown]
# A **residual** net: the second layer adds to what the first one found. `Add` is a layer of our own, and the third way is a
# **subclass**: write `call`, and everything else is there.


# %%
class Add(Layer):
    def call(self, x):
        return x[0] + x[1]


x = Input((2,))
hidden = Dense(8, "relu")(x)
more = Add()([hidden, Dense(8, "relu")(hidden)])
residual = Model(x, Dense(1, "sigmoid")(more))
residual.summary()


# %%
class Residual(Model):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.top = Dense(8, "relu"), Dense(8, "relu"), Dense(1, "sigmoid")

    def call(self, x):
        hidden = self.first(x)
        return self.top(hidden + self.second(hidden))


own = Residual()
own.build((None, 2))
own.set_weights(residual.get_weights())
points = constant([[1.0, 2.0], [-3.0, 8.0]])
print(bool((residual.predict(points) == own.predict(points)).all()))

# %% [markdown]
# ## Callbacks (8 min)

# %% [markdown]
# ## A model that leaves the house (12 min)

# %% [markdown]
# ## In the company of scikit-learn (6 min)

# %% [markdown]
# ## The two tasks on this level (5 min)
#
# ### Data

# %%
print("x", task.x.shape, " y", task.y.shape, " batches", task.batches.shape)

# %% [markdown]
# ### Model and training

# %%
#| export tasks
"""The two tasks as models: compile, fit."""

from levels.hardware.tasks import Fit, check_inputs, check_task


def train(model, loss, x, y, weights, batches, learning_rate):
    """A model from given starting weights: one step for each batch."""
    model.build(x.shape, x.dtype)
    model.set_weights(weights)
    model.compile(SGD(learning_rate), loss)
    losses = model.fit(Dataset.from_batches(x, y, batches), verbose=0).losses  # forward, loss, backward, update

    def predict(x):
        check_inputs(x, weights[0].dtype, len(weights[0]))
        return model.predict(x)

    return Fit(losses, model.get_weights(), predict)


def linear_regression(x, y, weights, batches, learning_rate=0.0005):
    """Mean squared error, stochastic gradient descent; see `Fit` and `check_task` for the shapes."""
    check_task(x, y, weights, batches, learning_rate, units=[1])
    return train(Sequential([Dense(1)]), "mse", x, y, weights, batches, learning_rate)


# %%
fit = linear_regression(task.x, task.y, task.weights, task.batches, task.learning_rate)
machine_code = hardware.tasks.linear_regression(task.x, task.y, task.weights, task.batches, task.learning_rate)
print("losses equal: ", bool((fit.losses == machine_code.losses).all()))
print("weights equal:", all((p == q).all() for p, q in zip(fit.weights, machine_code.weights)))
print("last loss    ", float(fit.losses[-1]).hex())

# %% [markdown]
# `model.fit` and a program of machine instructions, 8,000 steps, maximum difference 0.
#
# ### Result

# %%
figures.regression(task, fit)

# %%
penguins = tasks.penguins_mass()
figures.regression(penguins, linear_regression(*penguins[:2], *penguins[4:7]))

# %% [markdown]
# ### The second task: a net


# %%
#| export tasks
def dnn_classifier(x, y, weights, batches, learning_rate=0.01):
    """features-4-8-1, relu, relu, sigmoid; binary cross-entropy, stochastic gradient descent; see `Fit`, `check_task`."""
    check_task(x, y, weights, batches, learning_rate, units=[4, 8, 1])
    model = Sequential([Dense(4, "relu"), Dense(8, "relu"), Dense(1, "sigmoid")])
    return train(model, "binary_crossentropy", x, y, weights, batches, learning_rate)


# %%
rings = tasks.rings()
trainers = [level.tasks.dnn_classifier for level in (hardware, kernels, low_level, mid_level)] + [dnn_classifier]
fits = {level: train_net(*rings[:2], *rings[4:7]) for level, train_net in zip(figures.LEVELS, trainers)}
for level, fit in fits.items():
    same = all((p == q).all() for p, q in zip(fit.weights, fits["hardware"].weights))
    print(f"{level:12} last loss {float(fit.losses[-1]).hex()}   all 61 weights equal level 1's: {same}")

# %%
figures.five_curves(fits)

# %%
figures.classifier(rings, fits["high_level"])

# %%
sex = tasks.penguins_sex()
figures.confusion(sex, dnn_classifier(*sex[:2], *sex[4:7]))

# %% [markdown]
# ## The five side by side (8 min)
#
# Here is the course on one page. The lines that matter of one task, on every level, under the marks of what they do. On the
# left stands plain Python, `course/reference.py`, the arithmetic that every level has to equal; on the right, as `here`, this
# notebook. Read a row from left to right: the same thing is said in fewer words, until one line says all four.

# %%
from course import checks, great, reference, widgets

levels = (hardware, kernels, low_level, mid_level)
line_on_all = [level.tasks.linear_regression for level in levels] + [linear_regression]
compare.side_by_side(reference.linear_regression, *line_on_all)

# %%
net_on_all = [level.tasks.dnn_classifier for level in levels] + [dnn_classifier]
compare.side_by_side(reference.dnn_classifier, *net_on_all)

# %% [markdown]
# Fewer words for the same thing: is it the same? We train the line in eight versions now. Level 1 has two of them, float64 one
# number at a time and float32 with lanes (SIMD); level 3 has two, op by op and compiled.

# %% tags=["hide-input"]
checks.predict(
    "Plain Python and `fit` take 8,000 steps from the same weights. How far apart are their last losses?",
    choices=["exactly 0", "about 1e-16, the last bit", "about 1e-9: each step rounds, and errors add up"],
    answer="exactly 0",
    because="Rounding is no accident. The same operations in the same order round to the same bits, whoever asks for them.",
)

# %%
line = compare.measure(task, *line_on_all)
line

# %% [markdown]
# Seven times the same number, in hexadecimal, where no digit is hidden. Only float32 says something else, and its 24 bits cannot
# say this number at all. The other columns count what it takes. **Lines** are those of the task
# function and of all it calls in its module, without the checks of arguments. A **launch** is one call from above: of one
# operation on two numbers in plain Python, of one kernel on level 2, of a whole training where a compiler has been at work.
# **Bytes** are what the launches read and write.
#
# The net, too. Plain Python would take more than a minute for its 24,000 steps. So the versions that go op by op take over from
# level 1 for the last hundred steps. They arrive at the same number.

# %%
net = compare.measure(rings, *net_on_all, last=100, repeats=1)
net

# %% [markdown]
# ## What this level cost (5 min)
#
# The losses are equal, so only the time can tell the levels apart.

# %% tags=["hide-input"]
checks.predict(
    "A batch of the line is ten rows of two numbers. Which takes longer for a step?",
    choices=["plain Python, number by number", "tensors, op by op (3 eager)", "they take about the same"],
    answer="tensors, op by op (3 eager)",
    because="160 operations of Python cost less than 17 launches through the door, the tape and the plans. An op pays where "
    "it works on many numbers at once: for the net, with a hundred rows, plain Python takes about twenty times as long.",
)

# %% [markdown]
# Each time is predicted first, by the formula of level 1: launches · time of a launch + max(operations / peak, bytes /
# bandwidth). A launch is priced at a small one: in plain Python an operation of `dot`, on level 2 an addition of two numbers,
# in 3 eager an addition of two tensors. A program's only launch is priced at a run of a single step, with all its tracing and
# assembling. A program in float64 gets one lane of the peak.

# %% tags=["nbval-ignore-output"]
great.five_levels(line)

# %% [markdown]
# Time rises and falls again. On level 2 and in 3 eager we pay for each call by name, and nearly all of the time is that. From
# 3 compiled on, the floors above hand the whole loop down to the ground and take as long as it does, but for the milliseconds
# in which a step is traced. Shared by 8,000 steps, they are most of what is left. Levels 4 and 5 have a little more Python to
# walk through before the program stands. Once it stands, it is the same program.

# %% tags=["nbval-ignore-output"]
great.five_levels(net)

# %% [markdown]
# A step of the net does 260 times the arithmetic of the line's, and the tracing is lost in it: 1 scalar, 3 compiled, 4
# and 5 stand under each other. They are slower than predicted, all by the same factor. It is the same program, and the formula
# knows nothing of sums that wait for themselves.
#
# Last, the course as a slider. **Move the level** (mouse, or Tab and the arrow keys): the code changes, the time moves, the
# losses do not.

# %% tags=["nbval-ignore-output"]
tasks_measured = {"line": line, "net": net}
widgets.explore(
    lambda level, task: great.depth(tasks_measured[task], level),
    level=range(1, 6),
    task=["line", "net"],
    text="One level at a time: its code for the task, its time among those of all, and its losses.",
)

# %% [markdown]
# One answer, at five depths. You can say it in one line and know what each storey beneath does with it.
#
# ## More of the same kind (optional)
#
# ### Where float32 parts from float64 (5 min)
#
# In float32 the levels need not agree to the last bit: a program with lanes adds in another order. From the course's own
# start the losses stay within 1/10,000 of those in float64 over the first 2,000 steps. From some other starts they do not.
# Here is one. We train in both formats, step by step, and look at two things: how far the weights are apart, and whether any
# relu sees a positive number in one run and a negative one in the other.

# %% tags=["nbval-ignore-output"]
weights = [np.array(w) for w in tasks.make_weights((2, 4, 8, 1), seed=30)]
runs, gaps, kinks = {"f8": weights, "f4": [w.astype("f4") for w in weights]}, [], []
data = {dtype: (rings.x.astype(dtype), rings.y.astype(dtype)) for dtype in runs}
for step, rows in enumerate(rings.batches[:400]):
    signs = []
    for dtype, (w1, b1, w2, b2, *_) in runs.items():
        z1 = rings.x[rows] @ w1 + b1
        signs.append(np.hstack([z1, np.maximum(z1, 0) @ w2 + b2]) > 0)
        runs[dtype] = hardware.tasks.dnn_classifier(*data[dtype], runs[dtype], rows[None], rings.learning_rate).weights
    gaps.append(max(float(np.abs(p - q).max()) for p, q in zip(*runs.values())))
    if (signs[0] != signs[1]).any():
        kinks.append(step)
figures.parting(gaps, kinks)

# %% [markdown]
# For many steps the gap stays near the rounding of float32, one part in a million or less. Then one input of one relu lies
# so close to zero that the two formats round it to different sides. One run passes its gradient on, the other passes none.
# That is no rounding error any more: the gradient of a whole row is there or is not. From then on they are two runs, and
# it happens again and again. Neither is wrong. Both learn the rings.
#
# ### The same in two frameworks
#
# | | TensorFlow | PyTorch | here |
# |---|---|---|---|
# | a model | `tf.keras.Sequential` | `torch.nn.Sequential` | `Sequential` |
# | choose how to train | `model.compile` | your own loop | `model.compile` |
# | train | `model.fit` | your own loop | `model.fit` |
#
# ## Exercises
#
# 1. Count the parameters of a net 2-4-8-1 by hand. Let `summary` check you.
# 2. Write `fit_until(model, x, y, loss)`, which stops when an epoch's mean loss falls below a bound.
# 3. `history.epochs[-1]` and `model.evaluate(x, y)` differ. Which is larger, and why?
# 4. Train twice with the same seed, twice with different ones. Which losses are equal? (Where do starting weights come from?
#    Look at `levels.mid_level.layers.RANDOM`.)
#
# ## Build

# %%
build.level("05_high_level", linear_regression, dnn_classifier)

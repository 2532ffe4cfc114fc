# %% [markdown]
# # 5 · High-level API
#
# **In this notebook the model owns its training loop. We write that loop, and look at what it costs.**
#
# This is the level of `tf.keras.Model` and of PyTorch Lightning. About 85 minutes. What is optional takes
# 30 more, and the exercises an hour.

# %%
from course import build, compare, figures, tasks
from course.practice import checks

build.watch("05_high_level")
figures.you_are_here(5)

# %% [markdown]
# ## A surprise to begin with (2 min)
#
# Below us lie four levels: one machine-code program, fourteen launches a step, a tape, layers with an optimizer. All
# four train on the same 8,000 batches.

# %% tags=["hide-input"]
checks.predict(
    "How many digits of the last loss do the four levels share?",
    choices=["three or four", "all but the last one or two", "all of them"],
    answer="all of them",
    because="They do the same operations in the same order, and the standard IEEE 754 leaves no choice how an addition or a "
    "product is rounded. So there is one answer. We print it in hexadecimal, where nothing is rounded for printing.",
)

# %%
from levels import hardware, kernels, low_level, mid_level

task = tasks.linear()
for level in (hardware, kernels, low_level, mid_level):
    fit = level.tasks.linear_regression(task.x, task.y, task.weights, task.batches, task.learning_rate)
    print(f"{level.__name__:18} last loss {float(fit.losses[-1]).hex()}")

# %% [markdown]
# That is 9.21, the loss of the last ten rows. (The mean of the last 50 batches is 3.63: ten rows may be unlucky.) This notebook
# adds the fifth line.
#
# ## The loop is owned too (20 min)
#
# On level 4 we wrote: for each batch, open a tape, predict, take the loss, differentiate, update. Those lines were the
# same for every model. So a **model** keeps them. `compile` tells it which optimizer and which loss; `fit` runs the
# loop; `History` remembers what happened. When this section is done, four lines will make a model and train it:
#
# ```python
# model = Sequential([Dense(1)])
# model.compile(SGD(0.0005), "mse")
# history = model.fit(x, y, batch_size=10, epochs=20)
# model.evaluate(x_test, y_test)
# ```
#
# We write the loop first, in small pieces that we can try one by one, and then the model around it.
#
# `compile` understands names, and they are Keras' names. A name stands for a class in one of our tables, and a new
# object of it is made. Whoever wants other settings gives an object. (`known` is level 4's: it looks a name up in a table.)

# %%
#| export loops
"""The training loop, written once for all models."""

from levels.mid_level import LOSSES, METRICS, SGD, Adam, AdamW, RMSprop, known

OPTIMIZERS = {"sgd": SGD, "rmsprop": RMSprop, "adam": Adam, "adamw": AdamW}


def made(what, table, name):
    """A new object of the class with this name in a table. An object of your own stays as it is."""
    found = known(what, table, name)
    return found() if isinstance(name, (str, type)) else found


# %%
print(made("loss", LOSSES, "mse"), made("optimizer", OPTIMIZERS, "adam"), made("optimizer", OPTIMIZERS, SGD(0.0005)))
try:
    made("loss", LOSSES, "binary_crossentopy")
except ValueError as error:
    print(error)

# %% [markdown]
# A model may have several inputs and several outputs. Most have one of each. So that one code serves both, what stands alone
# is treated as a list of one:


# %%
#| export loops
def listed(x):
    """A list of what may stand alone."""
    return list(x) if isinstance(x, (list, tuple)) else [x]


def alone(values):
    """The only one of several, or all."""
    return values[0] if len(values) == 1 else values


# %%
print(listed("mse"), listed(["mse", "mae"]), alone([7]), alone([7, 8]))

# %% [markdown]
# What was chosen goes into a `Training`. It also adds up the loss: one loss for each output, and the penalty that a layer may
# want on its weights (level 4's regularizers).

# %%
#| export loops
import functools
import operator

from levels.mid_level import Made


class Training(Made):
    """What `compile` chose. It is no module: the variables of a model are its weights, not those of its optimizer."""

    def __init__(self, optimizer, loss, metrics):
        self.optimizer = made("optimizer", OPTIMIZERS, optimizer)
        self.losses = [made("loss", LOSSES, one) for one in listed(loss)]
        self.metrics = [made("metric", METRICS, metric) for metric in listed(metrics)]
        if None in (self.optimizer, *self.losses):
            raise TypeError("compile: None is no optimizer and no loss")
        self.pace, self.programs = 1, {}  # steps in a call, see `pieces`; what `compiled` made

    def loss(self, model, y, predicted):
        """The losses of all outputs and the penalties of all layers, added up. The metrics look at the first output."""
        y, predicted = listed(y), listed(predicted)
        losses = self.losses * len(predicted) if len(self.losses) == 1 else self.losses
        if not len(losses) == len(y) == len(predicted):
            raise ValueError(f"{len(predicted)} outputs, with {len(y)} targets and {len(losses)} losses")
        for metric in self.metrics:
            metric.update_state(y[0], predicted[0])
        return functools.reduce(operator.add, [loss(*pair) for loss, *pair in zip(losses, y, predicted)] + model.losses)


# %% [markdown]
# One **step** is what level 4 wrote for each of its models. It is written once more, here, and then never again. It asks its
# model for little: to be called, to have variables, and to have a `training`.


# %%
#| export loops
from levels.low_level import GradientTape


def train_step(model, x, y):
    """Forward, loss, backward, update, on one batch. Returns the loss before the update."""
    with GradientTape() as tape:
        loss = model.training.loss(model, y, model(x, training=True))
    variables = model.trainable_variables
    if not variables:
        raise ValueError(f"{model.name} has no variable to train")
    model.training.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
    return loss


# %% [markdown]
# So a layer of level 4 will do, as long as we hang a `Training` on it. Three steps on the same ten rows:

# %%
from levels.low_level import constant
from levels.mid_level import Dense

layer = Dense(1, kernel_initializer="zeros")
layer.training = Training(SGD(0.0005), "mse", ["mae"])
x, y = constant(task.x[:10]), constant(task.y[:10])
for _ in range(3):
    print(f"loss {float(train_step(layer, x, y)):.6g}")

# %% [markdown]
# The loss falls. But each of these steps went op by op. Level 3's `function` makes one program of a step. It wants arrays one
# beside the other, where a step has x and y, each perhaps several; `compiled` is what stands between. What it made is kept for
# the next training. By then a layer may be frozen, or a penalty changed, so each training begins with `renew`: it traces anew,
# and only a graph that came out the same finds its program again.

# %%
#| export loops
from levels.low_level import function


def compiled(training, step, inputs):
    """step(x, y) as a `function` of single arrays: so many inputs, the others are targets. Made once."""
    if (step, inputs) not in training.programs:
        program = function(lambda *rows: step(alone(rows[:inputs]), alone(rows[inputs:])))
        training.programs[step, inputs] = program
    return training.programs[step, inputs]


def renew(training, step):
    """What this step reads may have changed: let its functions trace anew. Returns the step."""
    for (earlier, _), program in training.programs.items():
        if earlier == step:
            program.renew()
    return step


# %%
step = functools.partial(train_step, layer)
print(f"one input, one target: loss {float(compiled(layer.training, step, 1)(x, y)):.6g}")

# %% [markdown]
# An **epoch** shows the model every row once. Level 3's `.over` runs any number of steps in one call, so an epoch, or
# even a whole training, could be one call. But then nobody could stop it, and no bar would move. So it is cut into
# **pieces** of a twentieth of a second. Nobody knows beforehand how many steps that is: the first piece is one step, its time
# is taken, and from it follows the length of the next, `training.pace`. (Data that is not in memory comes batch by batch, and
# each batch is a call.)


# %%
#| export loops
import time

PIECE = 0.05  # seconds


def pieces(training, step, data, one_by_one):
    """Go through the data once, some steps in each call of a program. Yields (losses, batch sizes) of each call."""
    if not data.in_memory:
        for x, y in data:
            rows = [*listed(x), *listed(y)]
            yield compiled(training, step, len(listed(x)))(*rows).numpy().reshape(1), [len(rows[0])]
        return
    (x, y), batches = data.rows()
    rows, program, done = [*listed(x), *listed(y)], compiled(training, step, len(listed(x))), 0
    while done < len(batches):
        part = batches[done : done + (1 if one_by_one else training.pace)]
        begun = time.perf_counter()
        losses = program.over(*rows, part).numpy()
        training.pace = max(1, int(PIECE * len(part) / (time.perf_counter() - begun)))
        done += len(part)
        yield losses, [len(batch) for batch in part]


# %% [markdown]
# Where somebody wants to hear of every step, `one_by_one` keeps the pieces one step long. We ask for that here, because other
# lengths depend on the clock:

# %%
from levels.mid_level import Dataset

batches = Dataset.from_batches(task.x, task.y, task.batches[:3])
for losses, sizes in pieces(layer.training, step, batches, one_by_one=True):
    print(losses.round(3), sizes)

# %% [markdown]
# Each line is a call: the losses of its steps, and how many rows each step had. One pass over the data, for training and for
# evaluating alike, adds up what the pieces gave:


# %%
#| export loops
import numpy as np


def one_pass(training, step, data, after=lambda losses: None, one_by_one=False):
    """Go through the data; `after` hears each piece's losses. Returns {"loss": the mean over rows, and the metrics}."""
    losses, sizes = [], []
    for metric in training.metrics:
        metric.reset_state()
    for piece, rows in pieces(training, step, data, one_by_one):
        losses.append(piece)
        sizes += rows
        after(piece)
    if not sizes:
        raise ValueError("the dataset gave no batch")
    loss = float(np.concatenate(losses) @ sizes) / sum(sizes)  # added up here: the same, however it was cut into pieces
    return {"loss": loss} | {metric.name: metric.result() for metric in training.metrics}


# %%
epoch = Dataset.from_batches(task.x, task.y, task.batches[:40])
{name: round(value, 3) for name, value in one_pass(layer.training, step, epoch).items()}

# %% [markdown]
# Forty batches of ten are all 400 rows, so this was an epoch. What happened is kept in a `History`: the loss of every step, and
# for each epoch what it came to.


# %%
#| export loops
class History:
    """What happened during `fit`: the `losses` of all steps, and `history`, {name: [a number for each epoch]}."""

    def __init__(self):
        self.steps, self.epochs = [], []  # arrays of losses; {name: number} of each epoch

    losses = property(lambda self: np.concatenate(self.steps) if self.steps else np.empty(0))

    @property
    def history(self):
        """{"loss": [a number for each epoch], …}"""
        names = dict.fromkeys(name for logs in self.epochs for name in logs)
        return {name: [logs[name] for logs in self.epochs if name in logs] for name in names}

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
# And here is a loop already, the whole idea of `fit` in three lines. Each epoch is a pass, and `after` hears the losses of each
# piece:

# %%
kept = History()
for _ in range(5):
    kept.epochs.append(one_pass(layer.training, step, epoch, after=kept.steps.append))
print(kept)
print("loss of each epoch:", *(round(loss, 2) for loss in kept.history["loss"]))


# %% [markdown]
# What is missing is everybody else. Others may want to listen: to stop in time, to save, to write a log. Such a listener is a
# **callback**. Here is one that hears everything and does nothing; the others, below, are made from it. (A batch callback has
# to hear of each step, so it makes every piece one step long.)


# %%
#| export loops
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
# Two helpers speak to all of them. `attach` also looks for a method that nobody will ever call, because a misspelt one would
# be silent:


# %%
#| export loops
def tell(callbacks, event, *args):
    """Call this method of each callback."""
    for callback in callbacks:
        getattr(callback, event)(*args)


def attach(callbacks, model):
    """Tell each callback whose training it is. Returns whether one of them wants to hear of each step."""
    for callback in callbacks:
        if not isinstance(callback, Callback):
            raise TypeError(f"callbacks hold {callback!r}; expected objects, such as EarlyStopping()")
        for name in dir(callback):
            if name.startswith("on_") and not hasattr(Callback, name):
                heard = ", ".join(each for each in dir(Callback) if each.startswith("on_"))
                raise TypeError(f"{type(callback).__name__}: nobody calls {name}; a callback hears {heard}")
        callback.model = model
    return any(type(callback).on_train_batch_end is not Callback.on_train_batch_end for callback in callbacks)


# %%
class Misspelt(Callback):
    def on_epoch_ended(self, epoch, logs): ...


try:
    attach([Misspelt()], layer)
except TypeError as error:
    print(error)

# %% [markdown]
# Ctrl-C, or Lab's stop button, must find the model whole, never between two weights. Inside this block it is only noted
# down, and the loop looks at the note after each piece:


# %%
#| export loops
import signal
import threading
from contextlib import contextmanager


@contextmanager
def noted_interrupts():
    """Inside this `with` block Ctrl-C fills the list that it gives, and no more. (Only the main thread gets any.)"""
    pressed, heard = [], threading.current_thread() is threading.main_thread()
    before = heard and signal.signal(signal.SIGINT, lambda *_: pressed.append(True))
    try:
        yield pressed
    finally:
        if heard:
            signal.signal(signal.SIGINT, before)


# %%
with noted_interrupts() as pressed:
    signal.raise_signal(signal.SIGINT)  # what Ctrl-C does
    print("still here; noted:", pressed)

# %% [markdown]
# For those who wait there is a bar, by `tqdm`, which works in a notebook and in a terminal:


# %%
#| export loops
def progress(data, epochs, verbose):
    """A bar for so many passes over the data. Nobody sees it where `verbose` is 0."""
    from tqdm.auto import tqdm  # here, because it takes its time to load

    return tqdm(total=epochs * len(data) if data.in_memory else None, unit=" steps", disable=not verbose)


# %% [markdown]
# Now the loop itself: our three lines, and around them everybody who listens. Read it from `for epoch`: a pass, a pass over the
# validation rows where there are any, and the callbacks. The two small functions above stand between the pieces: `after` notes
# the losses and moves the bar, `heed` looks whether Ctrl-C was pressed.
#
# All this is plain Python around the compiled calls, and is paid once a piece or once an epoch, not once a step. A callback
# may set `model.stop_training`. Whatever ends the training, an error, Ctrl-C, a callback that fails: the weights are those of
# the last whole step, and `model.history` holds all losses up to it.


# %%
#| export loops
import math


def run_epochs(model, data, epochs, verbose, callbacks, validation):
    """Train for so many epochs; returns the History. `validation` is a Dataset or None."""
    training = model.training
    step, test = renew(training, model.train_step), renew(training, model.test_step)
    history = model.history = History()
    one_by_one, model.stop_training = attach(callbacks, model), False

    def heed(losses=None):
        if pressed:
            raise KeyboardInterrupt("fit was stopped; the model has its weights, model.history the losses so far")

    def after(losses):
        history.steps.append(losses)
        bar.update(len(losses))
        if one_by_one:
            tell(callbacks, "on_train_batch_end", len(history.steps) - 1, {"loss": float(losses[0])})
        heed()

    with noted_interrupts() as pressed, progress(data, epochs, verbose) as bar:
        tell(callbacks, "on_train_begin")
        try:
            for epoch in range(epochs):
                tell(callbacks, "on_epoch_begin", epoch)
                logs = one_pass(training, step, data, after, one_by_one)
                if validation is not None:
                    logs |= {f"val_{name}": value for name, value in one_pass(training, test, validation, heed).items()}
                history.epochs.append(logs)  # the dict itself: callbacks may add to it
                bar.set_postfix(logs, refresh=False)
                tell(callbacks, "on_epoch_end", epoch, logs)
                heed()
                if model.stop_training:
                    break
                if not math.isfinite(logs["loss"]):
                    cure = "try a lower learning rate, and look for NaN in the data"
                    raise FloatingPointError(f"fit: the loss is {logs['loss']} after epoch {epoch}; {cure}")
        finally:
            tell(callbacks, "on_train_end")
    return history


# %% [markdown]
# That was the loop. The next room, `models`, gives it data and a model. Arrays become a dataset of level 4, a `Pipeline`. They
# may be lists, and labels may be whole numbers: for a loss that computes with floats they become floats.


# %%
#| export models
"""Models that own their training loop."""

from levels.low_level import Operators, constant
from levels.mid_level import Crossentropy, Loss, Pipeline, SparseCategoricalCrossentropy, at_least, from_zero, positive


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


# %%
print(arrays_of([1, 2, 3]), [array.shape for array in arrays_of([np.zeros((4, 2)), np.ones(4)])])

# %% [markdown]
# A list of numbers was one array, a list of arrays two. `check_targets` asks two questions before the training. Does the loss
# have a meaning for these targets? Binary cross-entropy, for one, wants them from 0 to 1. And does it have one for what the model
# gives? (It is tried on the first rows.) We ask here, because a compiled step cannot look at the numbers that pass through it.


# %%
#| export models
def check_targets(model, x, y, losses):
    """Raise ValueError for targets, or for answers of the model to the first rows, that a loss has no meaning for."""
    probabilities = [isinstance(loss, Crossentropy) and not loss.from_logits for loss in losses]
    answers = listed(model.predict(alone(x))) if any(probabilities) else y
    for loss, target, answer, asked in zip(losses, y, answers, probabilities):
        if isinstance(loss, Loss) and not isinstance(loss, SparseCategoricalCrossentropy):
            loss.check(constant(target), constant(target))
        if asked:
            loss.check(constant(target[: len(answer)]), constant(answer))


# %% [markdown]
# And `validation_split` sets the last rows apart, to try the model on after each epoch:


# %%
#| export models
def parted(rows, share):
    """(all rows but the last, this share of them, the last)"""
    last = int(len(rows) * share)
    kept = len(rows) - last
    if not 0 < last < len(rows):
        raise ValueError(f"validation_split {share} leaves {kept} to train on and {last} to validate")
    return rows.take(kept), rows.skip(kept)


# %%
kept_back = parted(Pipeline.from_tensor_slices((task.x, task.y)), 0.2)
print([len(rows) for rows in kept_back], "of", len(task.x), "rows")

# %% [markdown]
# A model can be built without any data. Level 3's tracer sends **symbols** through it: they have a shape and a dtype, and no
# numbers. (The third helper is for later: what the rooms `saving` and `exporting` define, further down, is looked up when it is
# needed.)


# %%
#| export models
import sys

from levels.hardware import DEVICES
from levels.low_level import trace
from levels.mid_level import Layer


def dry_run(layer, specs):
    """Call a layer on symbols: this builds it, and runs nothing. Returns the symbols that it gives."""
    return trace(lambda *x: layer(alone(x)), specs)[1]


def spec_of(shape, dtype):
    """The Spec of a batch of rows of this shape: two of them stand for any number."""
    return DEVICES[-1].spec((2, *shape), np.dtype(dtype))


def later(name):
    """What a room that opens later defines: looked up when it is needed, in the notebook or in the built level."""
    return getattr(sys.modules[__package__ or __name__], name)


# %%
empty = Dense(3, kernel_initializer="zeros")
print(dry_run(empty, [spec_of((2,), "float32")]), "and the layer has", empty.count(), "numbers")

# %% [markdown]
# Two inputs and three units: 6 weights and 3 biases, and nothing was computed.
#
# Now the **model**. It is a layer, and most of its methods are one or two lines that call what we have written:
#
# | method | hands the work to |
# |---|---|
# | `build(shape)` | `dry_run` |
# | `compile(optimizer, loss, metrics)` | `Training` |
# | `train_step(x, y)` | `train_step` |
# | `fit(x, y)` | `rows_of`, then `run_epochs` |
# | `evaluate(x, y)` | `one_pass`, with a step that only takes the loss |
# | `predict(x)` | a `function`, some rows at a time |
# | `summary`, `save`, `export` | functions of these names, below |
#
# (`__new__` is there for one case, `Model(inputs, outputs)`, which makes a `Functional`: see the next section.)


# %%
#| export models
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


# %% [markdown]
# The plainest model is a list of layers, each called on what the one before gave. (A `Placeholder`, such as `Input`, only tells
# the shape of the rows; it is built in the next section.)


# %%
#| export models
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


# %% [markdown]
# Here are the four lines, with the points of level 1, whose answer is 2, -3 and 3:

# %%
model = Sequential([Dense(1)])
model.compile(SGD(0.0005), "mse")
history = model.fit(task.x, task.y, batch_size=10, epochs=20, verbose=0, seed=1)
history

# %%
print(f"on the test rows: loss {model.evaluate(task.x_test, task.y_test)['loss']:.4g}")
print(*(w.ravel().round(2) for w in model.get_weights()))

# %% [markdown]
# The slopes are found, 2 and -3. The bias, 1.66, is still on its way to 3: these were 800 steps, the task has 8,000. `evaluate`
# took the rows that `fit` had never seen. We may also ask it about those that it was trained on, and then
# there are two numbers for the same rows.

# %% tags=["hide-input"]
checks.predict(
    "A model that starts with zeros is trained for one epoch, then evaluated on the same rows. Which loss is larger?",
    "the one that fit reports",
    choices=["the one that fit reports", "the one that evaluate gives", "neither: same rows, same loss"],
    because="""`fit` adds up the loss of each step, taken before its update: the first steps were made by weights that
    knew nothing. `evaluate` asks the weights as they are now. In the first epoch that is far out of date; in the last, a little.
    (And layers such as `Dropout` work in `fit` only.)""",
)

# %%
young = Sequential([Dense(1, kernel_initializer="zeros")])
young.compile(SGD(0.0005), "mse")
reported = young.fit(task.x, task.y, batch_size=10, verbose=0, seed=1).history["loss"][-1]
print(f"fit reports {reported:.4g}, evaluate gives {young.evaluate(task.x, task.y)['loss']:.4g}")

# %% [markdown]
# What can go wrong is said in one sentence, with the cure:

# %%
unsure = Sequential([Dense(1, "sigmoid", kernel_initializer="zeros")])
unsure.compile("sgd", "binary_crossentropy")
for wrong in (
    lambda: Sequential([Dense(1)]).fit(task.x, task.y),
    lambda: model.compile("sdg"),
    lambda: unsure.fit(task.x, task.y),
):
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
    because="2·4 + 4 = 12, then 4·8 + 8 = 40, then 8·1 + 1 = 9: a weight for each input of each unit, and a bias for each unit.",
)

# %%
net = Sequential([Dense(4, "relu"), Dense(8, "relu"), Dense(1, "sigmoid")])
net.build((None, 2))
net.summary()

# %% [markdown]
# ## Three ways to a model (8 min)
#
# A row of layers is not enough for a model with two inputs, or with a path around a layer. Say what flows where, with
# something that stands for the numbers to come: an `Input`. A layer that is called on it notes the call down, as level
# 3's tracer notes down ops. (Level 4's `Layer` looks for the method `through` on what it is given, and calls that.) This is the
# **functional** way.


# %%
#| export models
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


# %% [markdown]
# The way back from the outputs to the inputs gives the calls in an order in which they can be made:


# %%
#| export models
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


# %% [markdown]
# The model makes these calls one after another, and keeps what each gave under the placeholder that stood for it:


# %%
#| export models
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


# %% [markdown]
# A **residual** net ([He et al., 2016](https://doi.org/10.1109/CVPR.2016.90)): the second layer adds to what the first one
# found. `Add` is a layer of our own.


# %%
class Add(Layer):
    def call(self, x):
        return x[0] + x[1]


x = Input((2,))
hidden = Dense(8, "relu")(x)
more = Add()([hidden, Dense(8, "relu")(hidden)])
residual = Model(x, Dense(1, "sigmoid")(more))
residual.summary()

# %% [markdown]
# The third way is a **subclass**: write `call`, and everything else is there. With the weights of the first, it gives the same:


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
# All three are trained by the same `fit`, and `fit` takes its step from the method `train_step`. So a model that wants
# to be trained in another way overrides that one method. Here the labels 0 and 1 become 0.05 and 0.95, so that
# being too sure costs the model something
# (**label smoothing**, [Szegedy et al., 2016](https://doi.org/10.1109/CVPR.2016.308)). `RANDOM` is level 4's source of starting
# weights: with the same seed, both models start alike.


# %%
from levels.mid_level import RANDOM


class Careful(Sequential):
    def train_step(self, x, y):
        return train_step(self, x, 0.9 * y + 0.05)


data = tasks.rings()
for kind in (Sequential, Careful):
    RANDOM.seed(1)
    net = kind([Dense(16, "relu"), Dense(1, "sigmoid")])
    net.compile(Adam(0.02), "binary_crossentropy")
    net.fit(data.x, data.y, epochs=20, verbose=0, seed=1)
    share = (net.predict(data.x_test) > 0.99).mean()
    print(f"{kind.__name__:10} gives {share:.0%} of the test points a probability above 99 %")

# %% [markdown]
# ## Callbacks (8 min)
#
# Stop in time, save the best weights, lower the rate, write a log: everybody wants something else around the same loop.
# If the loop knew all of it, nobody could read it. So it only tells its callbacks what happened. Here is one that
# prints what it hears:


# %%
class Listener(Callback):
    def on_train_begin(self):
        print("the training begins")

    def on_epoch_end(self, epoch, logs):
        print(f"epoch {epoch} ends, {logs}")

    def on_train_end(self):
        print("the training ends")


student = Sequential([Dense(1)])
student.compile(SGD(0.0005), "mse")
student.fit(task.x[:40], task.y[:40], epochs=2, verbose=0, seed=1, callbacks=[Listener()])

# %% [markdown]
# The most used one ends a training that has begun to learn by heart. Several callbacks need the same thing first: a
# number to **monitor**, and whether it has got better. For a loss less is better, for an accuracy more.


# %%
#| export callbacks
"""Callbacks: listeners around the training loop."""

RISING = "acc", "auc", "precision", "recall", "r2"  # what the name of a number contains of which more is better


class Monitor(Callback):
    """Watches one number of each epoch. `best` is the best so far, `wait` the number of epochs since then."""

    def __init__(self, monitor, mode="auto", min_delta=0):
        if mode not in ("auto", "min", "max"):
            raise ValueError(f"{type(self).__name__}: mode is {mode!r}; expected 'auto', 'min' or 'max'")
        # its sign does not count, as in Keras
        size = abs(min_delta) if type(min_delta) in (int, float) else min_delta
        self.monitor, self.min_delta = monitor, from_zero(f"{type(self).__name__}: min_delta", size)
        self.rising = mode == "max" or mode == "auto" and any(word in monitor for word in RISING)

    def on_train_begin(self):
        self.best, self.wait = -math.inf if self.rising else math.inf, 0

    def better(self, logs):
        """Is this epoch's number better than the best, by more than `min_delta`? Then it is the best from now on."""
        if self.monitor not in logs:
            cure = "; give fit validation_data or validation_split" * self.monitor.startswith("val_")
            there = f"this training has {', '.join(logs)}{cure}"
            raise ValueError(f"{type(self).__name__}: monitor is {self.monitor!r}; {there}")
        value = float(logs[self.monitor])
        better = value - self.min_delta > self.best if self.rising else value + self.min_delta < self.best
        self.best, self.wait = (value, 0) if better else (self.best, self.wait + 1)
        return better


# %%
watching = Monitor("val_loss")
watching.on_train_begin()
try:
    print([watching.better({"val_loss": loss}) for loss in (3.5, 3.9, 3.2)])
    watching.better({"loss": 3.1})
except ValueError as error:
    print(error)

# %% [markdown]
# `EarlyStopping` waits. When the best epoch is `patience` epochs old, it stops the loop.


# %%
#| export callbacks
class EarlyStopping(Monitor):
    """Ends the training after `patience` epochs in which `monitor` was not better than the best by over `min_delta`.

    `restore_best_weights` gives the model the weights of the best epoch when the training ends, however it ends.
    """

    def __init__(self, monitor="val_loss", min_delta=0, patience=0, mode="auto", restore_best_weights=False):
        super().__init__(monitor, mode, min_delta)
        self.patience, self.restore_best_weights = (
            at_least(0, "EarlyStopping: patience", patience),
            restore_best_weights,
        )

    def on_train_begin(self):
        super().on_train_begin()
        self.best_epoch = self.best_weights = None

    def on_epoch_end(self, epoch, logs):
        if self.better(logs):
            self.best_epoch, self.best_weights = epoch, self.model.get_weights()
        elif self.wait >= self.patience:
            self.model.stop_training = True

    def on_train_end(self):
        if self.restore_best_weights and self.best_weights is not None:
            self.model.set_weights(self.best_weights)


# %% [markdown]
# It is an object like any other, so we can play the loop and tell it what we like.

# %% tags=["hide-input"]
checks.predict(
    "The losses of eight epochs are 5, 4, 3, 3.5, 2.9, 3.2, 3.1, 2.8. With `patience=2`, how many epochs are run?",
    7,
    because="""3.5 is one epoch without a gain, but 2.9 is a new best, and the count starts again. 3.2 and 3.1 are two: the
    seventh epoch is the last. That 2.8 was to come, nobody can know. More patience would have found it, at the price of
    more epochs.""",
)

# %%
stopping = EarlyStopping("loss", patience=2)
stopping.model, student.stop_training = student, False
stopping.on_train_begin()
for epoch, loss in enumerate([5, 4, 3, 3.5, 2.9, 3.2, 3.1, 2.8]):
    stopping.on_epoch_end(epoch, {"loss": loss})
    print(f"epoch {epoch + 1}: loss {loss}, best {stopping.best}, stop: {student.stop_training}")
    if student.stop_training:
        break

# %% [markdown]
# Now a net that can learn by heart: 193 weights, and 60 penguins whose sex it is to say. First 100 epochs without
# anybody who listens, then the same again, from the same start, with a patience of ten.

# %%
penguins = tasks.penguins_sex()
few, others = (penguins.x[:60], penguins.y[:60]), (penguins.x_test, penguins.y_test)


def trained(callbacks=()):
    RANDOM.seed(1)
    net = Sequential([Dense(32, "relu"), Dense(1, "sigmoid")])
    net.compile(Adam(0.03), "binary_crossentropy")
    net.fit(*few, batch_size=10, epochs=100, verbose=0, seed=1, validation_data=others, callbacks=callbacks)
    return net


stopping = EarlyStopping(patience=10, restore_best_weights=True)
for net in (trained(), trained([stopping])):
    epochs, loss = len(net.history.history["loss"]), net.evaluate(*others)["loss"]
    print(f"{epochs:3} epochs: loss {loss:.4f} on penguins that it has not seen")

# %%
figures.by_heart(trained().history.history, stopping.best_epoch, stopping.patience)

# %% [markdown]
# Left of the mark the net learns about penguins, right of it about these sixty. The second run went on for ten epochs,
# saw no gain, and took the weights of the best epoch back. But look at what was asked: the held-out penguins chose the
# epoch, so their loss is no longer a fair one. For a number to report, keep a third part aside.
#
# And when a callback fails? Its error comes through, and nothing that was learned is lost.


# %%
class FullDisk(Callback):
    def on_epoch_end(self, epoch, logs):
        if epoch == 2:
            raise OSError("no space left on the device")


before = student.get_weights()
try:
    student.fit(task.x, task.y, batch_size=10, epochs=20, verbose=0, callbacks=[FullDisk()])
except OSError as error:
    print(f"OSError: {error}")
steps, epochs = len(student.history.losses), len(student.history.history["loss"])
moved = any((old != new).any() for old, new in zip(before, student.get_weights()))
print(f"{steps} steps and {epochs} epochs are kept; the weights have moved: {moved}")

# %% [markdown]
# Ctrl-C, or Lab's stop button, ends it in the same way. Six more callbacks stand below under *More callbacks*.

# %% [markdown]
# ## A model that leaves the house (15 min)
#
# A trained model is worth keeping, and worth giving away. What must be in the file, so that others can run it? Python
# has an answer for any object, `pickle`. Suppose somebody sends us one:

# %%
import pickle


class Gift:
    def __reduce__(self):  # here an object tells pickle how to make it again
        return print, ("hello from inside the file",)


present = pickle.dumps(Gift())
del Gift

# %% tags=["hide-input"]
checks.predict(
    "We read it with `pickle.loads(present)`, on a computer that has no class `Gift`. What happens?",
    "a line is printed",
    choices=["an error: there is no `Gift`", "a `Gift` is made all the same", "a line is printed"],
    because="A pickle is a small program: call this function with these arguments. This `Gift` chose `print`. It could have "
    "chosen the function that deletes your files.",
)

# %%
pickle.loads(present)

# %% [markdown]
# The [documentation of pickle](https://docs.python.org/3/library/pickle.html) warns of just this, near its top: only
# unpickle data that you trust. So our file holds **data and no code**: what the layers are called, what they were made
# with, and their numbers. Whoever reads it brings the code along.
#
# ### The architecture, as data
#
# Since level 4 each part remembers how it was made, in `part.again`. So a part can be written as the name of its class
# and its arguments, and these are numbers, texts, lists, or parts again. JSON, which everybody can read, has a place
# for all of that.


# %%
#| export saving lazy
"""A model that leaves the house: a folder of data, without any code."""

import reprlib

from levels.mid_level import ACTIVATIONS, INITIALIZERS


def written(value, seen):
    """What JSON can hold of a value. `seen`: the parts that are written already, {id: what was written}."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [written(x, seen) for x in value]
    if isinstance(value, Made):
        return written_part(value, seen)
    names = [name for name, named in (ACTIVATIONS | INITIALIZERS).items() if named is value]
    if names:
        return names[0]
    if not callable(value) or not getattr(value, "__name__", "").isidentifier():
        cure = "numbers, texts, lists, parts, and functions that `def` gave a name can be saved"
        raise ValueError(f"save: an argument is {reprlib.repr(value)}; {cure}")
    return {"def": value.__name__}


# %% [markdown]
# Functions are written by their names, in the tables of level 4 or in their own `def`. A layer that stands in a model
# twice must come back as one layer, so the second time we write which one it **is**. And a class goes by its name,
# which must mean one thing: a `Dense` of our own would come back as level 4's.


# %%
#| export saving lazy
from levels import mid_level

CLASSES = {name: kind for name, kind in vars(mid_level).items() if isinstance(kind, type) and issubclass(kind, Made)}
CLASSES.update({kind.__name__: kind for kind in (Sequential, Functional, Input, Call, Training)})


def written_part(part, seen):
    """A part: its class, and the arguments that it was made with."""
    kind, made_with = type(part), part.again
    if CLASSES.get(kind.__name__, kind) is not kind:
        raise ValueError(f"save: you have a class {kind.__name__}, and so have we; give yours another name")
    if id(part) in seen:
        return {"is": seen[id(part)].setdefault("id", [*seen].index(id(part)))}
    seen[id(part)] = entry = {"class": kind.__name__}
    if made_with.args:
        entry["arguments"] = written(made_with.args, seen)
    if made_with.keywords:
        entry["options"] = {name: written(x, seen) for name, x in made_with.keywords.items()}
    return entry


# %%
import json

middle, start = Dense(2, "relu"), Input((2,))
text = json.dumps(written(Model(start, middle(middle(start))), {}))
print(text.replace('{"class": "Call"', '\n  {"class": "Call"'))

# %% [markdown]
# One input, number 1, and one layer, which is called on what it gave: `middle(middle(start))`. A functional model needs
# nothing more: a `Call` is a part like any other, made with a layer and what that was called on. The weights are not
# here, they have their own file.
#
# ### And back
#
# `json.loads` builds lists and dicts from the inside out. It hands each dict to a function of ours, the **object
# hook**, and puts in its place what that returns. So when a part is read, its arguments are there already. A name in
# the file can only mean what stands in our table, or what the reader of the file hands over in `custom_objects`: layers
# and functions of their own.


# %%
#| export saving lazy
def reader(own):
    """A hook for `json.loads`, which makes parts again. `own` are classes and functions of yours, {name: object}."""
    classes, parts = CLASSES | {name: kind for name, kind in own.items() if isinstance(kind, type)}, {}

    def find(what, table, name):
        if name not in table:
            raise NameError(f"no {what} is called {reprlib.repr(name)}; pass custom_objects={{{name!r}: the {what}}}")
        return table[name]

    def read(entry):
        if "is" in entry:
            return parts[entry["is"]]
        if "def" in entry:
            return find("function", own, entry["def"])
        if "class" not in entry:
            return entry  # options, or the file as a whole
        kind = find("class", classes, entry["class"])
        part = parts[entry.get("id")] = kind(*entry.get("arguments", ()), **entry.get("options", {}))
        return part

    return read


# %%
twice = json.loads(text, object_hook=reader({}))
print(len(twice.steps), "calls of", len(twice.layers), "layer")
try:
    json.loads('{"class": "os.system", "arguments": ["echo hello"]}', object_hook=reader({}))
except NameError as error:
    print(error)

# %% [markdown]
# Two calls of one layer, as it was; and a class that stands in no table is not looked for anywhere else. (The three names
# `class`, `def` and `is` are words of Python's own, so no argument can be called like that.)
#
# ### The numbers
#
# For the weights there is an open format, [safetensors](https://huggingface.co/docs/safetensors): a length, a header in
# JSON with the name, dtype and shape of each array, then the bytes. No code either. Level 3's `named` gives each
# variable a name.


# %%
#| export saving lazy
import safetensors.numpy

from levels.low_level import Variable


def numbers_of(part, before=""):
    """The numbers of all variables, {name: array}, with this before each name."""
    return {before + name: np.asarray(v.numpy(), order="C") for name, v in part.named(Variable).items()}


# %%
blob = safetensors.numpy.save(numbers_of(net))
length = int.from_bytes(blob[:8], "little")
header = json.loads(blob[8 : 8 + length])
print(len(blob), "bytes, of which the header has", length)
print(header["layers.1.kernel"])

# %% [markdown]
# 8 bytes for the length, 296 for the header, 193 numbers of 8 bytes: 1,848, and nothing else is in the file. (The format knows
# only C-contiguous arrays. Version 0.8.0 of the library stores any other wrongly, without a word.
# Hence `order="C"`.)
#
# A worn disk may change one bit of a number. No program falls over that; it just gives wrong answers. So we store a
# **checksum** with the numbers, and compute it again when we read them.


# %%
#| export saving lazy
import hashlib

TEXT, MEMORY, SUM = "/config", "/optimizer/", "/sha256"  # no variable's name begins with a slash


def checksum(arrays):
    """The SHA-256 of all names, dtypes, shapes and bytes but its own."""
    total = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        if name != SUM:
            total.update(f"{name} {array.dtype} {array.shape} ".encode() + array.tobytes())
    return np.frombuffer(total.digest(), "u1")


# %%
for value in (1.0, np.nextafter(1.0, 2.0)):  # they differ in the last of 64 bits
    print(value, *checksum({"b": np.array(value)})[:8], "…")

# %% [markdown]
# ### Written aside, then put in place
#
# The disk may be full, the program may be stopped, and another may save or read here at this moment. Whoever looks
# should find a whole model, that of an hour ago or the new one. Every system can do one thing in a single step: give a
# file the name of another, which is then gone. So a model is **one file**, written beside the old one:


# %%
#| export saving lazy
import os
import secrets
from pathlib import Path


def write_aside(file, data):
    """Write bytes beside a file; when they are on the disk, give them its name."""
    aside = file.with_name(f"{file.name}.{secrets.token_hex(4)}.new")
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        with open(aside, "wb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        aside.replace(file)
    finally:
        aside.unlink(missing_ok=True)


# %% [markdown]
# Whoever is killed cannot tidy up, so the next one who saves does. Should he sweep away what somebody slower is still
# writing, that one writes it again. And nothing but a model is ever replaced: who types `save("Documents")` keeps the
# documents. (This is `put`, in a folded cell.)


# %% tags=["hide-input"]
#| export saving lazy
from contextlib import suppress

FILES = CONFIG, WEIGHTS, OPTIMIZER = "config.json", "weights.safetensors", "optimizer.safetensors"


def patiently(act, *errors):
    """What act() returns. After one of these errors it is tried again, for about a second."""
    for left in reversed(range(100)):
        try:
            return act()
        except errors:
            if not left:
                raise
            time.sleep(0.01)


def replace(file, data):
    """Make a file of these bytes, new or in the place of an old one. Raises FileExistsError where it is a folder."""
    file = Path(file).resolve()
    if file.is_dir():
        raise FileExistsError(f"{file.as_posix()} is a folder; choose another name")
    left = [other for other in file.parent.glob("*.new") if other.name.startswith(f"{file.name}.")]
    # swept away by another save, or, on Windows, somebody is reading the old file
    patiently(lambda: write_aside(file, data), FileNotFoundError, PermissionError)
    for other in left:
        with suppress(OSError):
            other.unlink()


def put(arrays, folder):
    """Make a folder that holds these arrays and their checksum, new or in the place of a model.

    Raises FileExistsError where it is a file, or a folder with anything else in it.
    """
    folder = Path(folder).resolve()
    if folder.is_file():
        raise FileExistsError(f"{folder.as_posix()} is a file, and a model is a folder; choose another name")
    new = not folder.exists()
    if not new and {file.name for file in folder.iterdir() if file.suffix != ".new"} - {*FILES, ".DS_Store"}:
        raise FileExistsError(f"{folder.as_posix()} is a folder with other things in it; choose another name")
    try:
        replace(folder / WEIGHTS, safetensors.numpy.save(arrays | {SUM: checksum(arrays)}))
    finally:
        with suppress(OSError):
            if new:
                folder.rmdir()  # which only an empty one suffers
    for old in (CONFIG, OPTIMIZER):  # a model was three files once; `stored` reads them still
        (folder / old).unlink(missing_ok=True)


# %% [markdown]
# A folder with a letter in it is no model, so it stays:

# %%
import tempfile

place = tempfile.TemporaryDirectory()  # it goes when this kernel ends
folder = Path(place.name)
(folder / "Documents").mkdir()
(folder / "Documents" / "letter.txt").write_text("Dear reader")
try:
    put({}, folder / "Documents")
except FileExistsError as error:
    print(str(error).replace(folder.resolve().as_posix(), "…"))

# %% [markdown]
# A model that was compiled also keeps how it is trained: what was given to `compile`, and what the optimizer remembers
# of each variable. That is how training can go on later. `frozen` names the variables that are not trained, and
# `trained` those that the optimizer has memories of.


# %%
#| export saving lazy
def save(model, path):
    """Make a folder of that name. Its one file, weights.safetensors, holds the numbers, the optimizer's, and the text.

    Raises ValueError for a model that is not built, and for an argument that no file can hold.
    """
    check_built(model, "save")
    seen, variables, arrays = {}, model.named(Variable), numbers_of(model)
    inputs = [Input(spec.shape[1:], spec.dtype.name) for spec in model.input_specs]
    config = {"format": "levels 1", "model": written(model, seen), "inputs": written(inputs, seen)}
    config["frozen"] = [name for name, v in variables.items() if not v.trainable]
    if model.chosen is not None:
        config["training"], optimizer = written(model.chosen, seen), model.chosen.optimizer
        if optimizer.owners is not None:  # it has been used
            names = {id(v): name for name, v in variables.items()}
            if not names.keys() >= {*optimizer.owners}:
                raise ValueError("save: the optimizer trains a variable that is in no part of the model")
            config["trained"] = [names[owner] for owner in optimizer.owners]
            arrays |= numbers_of(optimizer, MEMORY)
    put(arrays | {TEXT: as_bytes(json.dumps(config, indent=1))}, path)


def as_bytes(text):
    """A text as an array of its bytes."""
    return np.frombuffer(text.encode(), "u1")


def check_built(model, verb):
    """Raise ValueError where nobody knows yet what the model's inputs are like."""
    if model.input_specs is None:
        raise ValueError(f"{verb}: {model.name} is not built; call model.build(shape), or fit it, then {verb} it")


# %% [markdown]
# A net for the rings, with Adam and a rate that halves every 200 steps, after five epochs:

# %%
from levels.mid_level import ExponentialDecay

data = tasks.rings()
model = Sequential([Dense(4, "relu"), Dense(8, "relu"), Dense(1, "sigmoid")])
model.compile(Adam(ExponentialDecay(0.02, 200, 0.5)), "binary_crossentropy")
model.fit(data.x, data.y, batch_size=100, epochs=5, seed=1, verbose=0)
model.save(folder / "net")
print({file.name: file.stat().st_size for file in (folder / "net").iterdir()}, "bytes:")
print(*safetensors.numpy.load_file(folder / "net" / WEIGHTS))

# %% [markdown]
# ### Taken from a stranger (4 min, optional)
#
# (You may skip the code of this part. It ends with `load_model(path)`, which makes the model again from its folder, and runs no
# code that it finds there.)
#
# Whatever is wrong with a file, we want one sentence: which file, what was found, what to do. And a file must not ask
# for more than it brings. A trillion units are quickly written. So while a model is read, no variable may hold more
# numbers than all that is stored has bytes. (And starting weights are not drawn: they would be thrown away at
# once.)


# %%
#| export saving lazy
LOADING = threading.RLock()


@contextmanager
def blamed(file):
    """Inside this `with` block every error becomes an OSError or a ValueError that names this file."""
    try:
        yield
    except Exception as error:
        found = " ".join(f"{type(error).__name__}: {error}"[:300].split())
        kind = OSError if isinstance(error, OSError) else ValueError
        cure = "" if isinstance(error, NameError) else "; was the file changed, or cut off? Take another copy"
        raise kind(f"{file.as_posix()}: {found}{cure}") from error


@contextmanager
def nothing_drawn(most):
    """Inside this `with` block the initializers that have names give zeros to this thread, and no more than so many."""
    here = threading.get_ident()

    def zeros(draw, shape):
        if threading.get_ident() != here:
            return draw(shape)
        if math.prod(shape) > most:
            raise ValueError(f"a variable has shape {shape}, and all that is stored only {most:,} bytes")
        return np.zeros(shape)

    with LOADING:
        before = dict(INITIALIZERS)
        INITIALIZERS.update({name: functools.partial(zeros, draw) for name, draw in before.items()})
        try:
            yield
        finally:
            INITIALIZERS.update(before)


# %% [markdown]
# `stored`, in a folded cell, reads what `put` wrote, and looks whether the checksum is still that of the bytes.


# %% tags=["hide-input"]
#| export saving lazy
def stored(folder):
    """All that was stored in a folder, {name: array}; the file that holds the text; the optimizer's file."""

    def read(file):
        with blamed(file):
            return safetensors.numpy.load(patiently(file.read_bytes, PermissionError))

    config, weights, optimizer = (folder / name for name in FILES)
    arrays = read(weights)
    if SUM not in arrays and config.exists():  # a model in three files
        with blamed(config):
            arrays[TEXT] = np.frombuffer(config.read_bytes(), "u1")
        if optimizer.exists():
            arrays |= {MEMORY + name: array for name, array in read(optimizer).items()}
        return arrays, config, optimizer
    with blamed(weights):
        if SUM not in arrays:
            raise ValueError(f"it has no checksum, and there is no {config.as_posix()} as older models have")
        if checksum(arrays).tobytes() != arrays[SUM].tobytes():
            raise ValueError("its checksum is not that of what it holds")
    return arrays, weights, weights


# %% [markdown]
# The folded cell reads a file in one go, so what it gives is of one save, and compares the checksum. The model is made, given
# its numbers, and handed out when everything fits. (Level 3's `set_weights` changes all variables or none.) A name
# without a folder may be that of a model which came with the course.


# %%
#| export saving lazy
from levels import low_level

# beside the course's `levels`, or a folder further up from a reader's own
ABOVE = [folder / "data" / "models" for folder in Path(low_level.__file__).parents]
MODELS = next(filter(Path.is_dir, ABOVE), ABOVE[2])


def load_model(path, custom_objects=None):
    """The model in a folder that `save` made, or a pretrained one by its name. It runs no code from the folder.

    `custom_objects` are classes and functions of your own that it uses, {"MyLayer": MyLayer}. Raises OSError or
    ValueError, naming the file, where the folder is not what `save` made.
    """
    folder = Path(path) if Path(path).is_dir() else MODELS / path
    if not folder.is_dir():
        names = ", ".join(sorted(model.name for model in MODELS.glob("*")))
        raise FileNotFoundError(f"there is no folder {path}; pretrained models are {names}")
    arrays, text, memory = stored(folder)
    with blamed(text), nothing_drawn(sum(array.nbytes for array in arrays.values())):
        config = json.loads(arrays[TEXT].tobytes().decode(), object_hook=reader(custom_objects or {}))
        model = config["model"]
        if config["format"] != "levels 1" or not isinstance(model, Model):
            raise ValueError(f"it holds a {type(model).__name__} in the format {config['format']!r}, not 'levels 1'")
        dry_run(model, [x.spec for x in config["inputs"]])
        variables, model.chosen = model.named(Variable), config.get("training")
        for name, variable in variables.items():
            variable.trainable = name not in config["frozen"]
        if "trained" in config:
            model.training.optimizer.build([variables[name] for name in config["trained"]])
    fill(model, {name: array for name, array in arrays.items() if not name.startswith("/")}, folder / WEIGHTS)
    if "trained" in config:
        numbers = {name.removeprefix(MEMORY): arrays[name] for name in arrays if name.startswith(MEMORY)}
        fill(model.training.optimizer, numbers, memory)
    return model


# %% [markdown]
# `fill` is strict: the names in the file and the names of the variables must be the same, none missing and none left over.


# %%
#| export saving lazy
def fill(part, arrays, file):
    """Give all variables the numbers that a file holds."""
    with blamed(file):
        names = part.named(Variable)
        if arrays.keys() != names.keys():
            raise ValueError(f"it holds {', '.join(arrays)}; expected {', '.join(names)}")
        part.set_weights([arrays[name] for name in names])


# %% [markdown]
# ### The same model again
#
# The model comes back from its folder. Does it predict the same, and, trained on, does it learn the same?

# %%
again = load_model(folder / "net")
print("the same predictions:", (again.predict(data.x_test) == model.predict(data.x_test)).all())
losses = [m.fit(data.x, data.y, batch_size=100, epochs=5, seed=2, verbose=0).losses for m in (model, again)]
print("the same training:   ", (losses[0] == losses[1]).all())

# %% [markdown]
# To the last bit: Adam's memory came along, and the step count, which says how far the rate has come down. Now a bit of the file
# changes. And then a stranger writes another text, with a checksum that is right:


# %%
def tried():
    try:
        load_model(folder / "net")
    except ValueError as error:
        print("-", str(error).replace(folder.as_posix(), "…"))


file, arrays = folder / "net" / WEIGHTS, stored(folder / "net")[0]
blob = bytearray(file.read_bytes())
blob[len(blob) // 2] ^= 1
file.write_bytes(blob)
tried()
text = arrays[TEXT].tobytes().decode()
for old, new in (("Dense", "Dence"), ("8", "1000000000000"), ('"relu"', '"rule"'), ("}", "")):
    put(arrays | {TEXT: as_bytes(text.replace(old, new, 1))}, folder / "net")
    tried()

# %% [markdown]
# ### Two models that are already trained
#
# Now we are those who receive. Two models came with the course. One takes a point, and gives the probability that it is
# in the outer ring. The other takes a penguin as it is measured, bill length, bill depth and flipper length in
# millimetres, mass in grams, and gives the probability that it is male. We train on standardised measures. Whoever gets
# our model does not know the means and deviations, so these must be in it too: here they went into the weights of the
# first layer.

# %%
penguin = np.array([[39.1, 18.7, 181.0, 3750.0], [39.5, 17.4, 186.0, 3800.0]])  # the table says: male, female
print("male with probability", *load_model("penguins_sex").predict(penguin).round(2).ravel())
right = (load_model("rings").predict(data.x_test) > 0.5) == (data.y_test == 1)
print(f"points in the right ring: {right.mean():.1%}")

# %% [markdown]
# ### To where there is no `levels` (5 min, optional)
#
# Our folder needs our layers. TensorFlow's SavedModel goes further: it holds the traced graph, and runs where the
# Python classes are missing. But it needs TensorFlow. There is an open standard for such graphs,
# [ONNX](https://onnx.ai): ops with [agreed meanings](https://onnx.ai/onnx/operators/), which other frameworks, browsers
# and telephones run. We have the graph already. Level 3 traces the model's call, and what is left of the layers is ops.
# So we need a table, from our ops to theirs:


# %%
#| export exporting lazy
"""A model for those who have no `levels`: ONNX."""

ONNX = {"add": "Add", "subtract": "Sub", "multiply": "Mul", "divide": "Div", "negative": "Neg", "matmul": "MatMul"}
ONNX.update(relu="Relu", sigmoid="Sigmoid", tanh="Tanh", softmax="Softmax", log_softmax="LogSoftmax", gather="Gather")
ONNX.update(exp="Exp", log="Log", sqrt="Sqrt", power="Pow", maximum="Max", minimum="Min", where="Where")
ONNX.update(equal="Equal", less="Less", less_equal="LessOrEqual")

# %% [markdown]
# An op that has attributes needs more than another name. Its row in the table is a function: from inputs and attributes
# to a triple, ONNX's op, its inputs, its attributes. An input may be another such triple, or numbers. Those rows stand
# at the end, under *More rows for ONNX*; for our net the names will do.
#
# ONNX leaves open how many rows a batch has. A trace does not. So we trace twice, with two rows and with three: what is
# the same in both graphs holds for any number. Where a `reshape` differs, ONNX works out the size itself (-1). If
# anything else differs, the model computes with the number of rows, and we say so.


# %%
#| export exporting lazy
from levels.low_level import shared, without_dead


def traced(model, rows):
    """The graph of a prediction for so many rows."""
    specs = [DEVICES[-1].spec((rows, *spec.shape[1:]), spec.dtype) for spec in model.input_specs]
    graph = without_dead(shared(trace(lambda *x: model(alone(x)), specs)[0]))
    if graph.updates:
        raise ValueError(f"export: a prediction of {model.name} assigns to a variable; in ONNX nothing can")
    for node in graph.ops:
        if node.op not in ONNX or (isinstance(ONNX[node.op], str) and any(node.attrs.values())):
            cure = "compute it with other ops, or give it a row in the table ONNX"
            raise ValueError(f"export: no ONNX form is known for {node.op} {node.attrs or ''}; {cure}")
    return graph


# %% [markdown]
# `attributes_of` lays a node beside its twin, the same node in the graph for a row more:


# %%
#| export exporting lazy
def both(p, q, unknown):
    """The sizes that two shapes have in common, and `unknown` in the place of others."""
    return [a if a == b else unknown for a, b in zip(p, q, strict=True)]


def attributes_of(two, three):
    """The attributes of a node, given it and its twin in the graph for a row more."""
    attributes, same = dict(two.attrs), two.op == three.op
    if same and two.op == "reshape":
        attributes["shape"] = both(two.attrs["shape"], three.attrs["shape"], -1)
        same = attributes["shape"].count(-1) < 2
    elif same and two.op == "constant":
        same = two.attrs["of"].numpy().tobytes() == three.attrs["of"].numpy().tobytes()
    elif two.attrs != three.attrs:
        same = False
    if not same:
        raise ValueError(f"export: {two} computes with the number of rows, so it would hold for one number only")
    return attributes


# %% [markdown]
# The rest is spelling. Variables and constants become what ONNX calls initializers, and each op becomes a node.


# %%
#| export exporting lazy
from onnx import helper, numpy_helper


class OnnxWriter:
    """Collects nodes and initializers."""

    def __init__(self):
        self.nodes, self.initializers = [], []

    def constant(self, array, name=None):
        """The name of an array."""
        self.initializers.append(numpy_helper.from_array(np.asarray(array), name or f"c{len(self.initializers)}"))
        return self.initializers[-1].name

    def op(self, row, name=None):
        """The name of the result of (op, inputs, attributes). An input is a name, another such triple, or numbers."""
        op, inputs, attributes = row
        kinds = {str: str, tuple: self.op}
        given = [kinds.get(type(x), self.constant)(x) for x in inputs]
        self.nodes.append(helper.make_node(op, given, [name or f"t{len(self.nodes)}"], **attributes))
        return self.nodes[-1].output[0]


# %% [markdown]
# Now node by node. Names go three ways: a variable keeps its own, an op takes the next free one, and what the model gives is told
# by place. Each of our nodes gets a name there; the inputs are called x0, x1, … and the outputs y0, y1, …


# %%
#| export exporting lazy
def onnx_graph(model):
    """A built model as a graph of ONNX: inputs x0, x1, … with any number of rows, outputs y0, y1, …"""
    two, three, writer = traced(model, 2), traced(model, 3), OnnxWriter()
    called = {id(v): f"{model.name}/{path}" for path, v in model.named(Variable).items()}
    names, results = {}, {node: f"y{k}" for k, node in enumerate(two.outputs)}
    for node, twin in zip(two.nodes, three.nodes, strict=True):
        attributes = attributes_of(node, twin)
        if node.op == "input":
            names[node] = f"x{attributes['of']}"
        elif node.op in ("variable", "constant"):
            names[node] = writer.constant(attributes["of"].numpy(), called.get(id(attributes["of"])))
        else:
            row, inputs = ONNX[node.op], [names[x] for x in node.inputs]
            row = (row, inputs, {}) if isinstance(row, str) else row(*inputs, **attributes)
            names[node] = writer.op(row, results.get(node))
    given = [info(f"x{k}", spec.dtype, ["rows", *spec.shape[1:]]) for k, spec in enumerate(model.input_specs)]
    gives = []
    for k, (node, twin) in enumerate(zip(two.outputs, three.outputs)):
        if names[node] != f"y{k}":  # an input that goes straight through, or a result that is an output twice
            writer.op(("Identity", [names[node]], {}), f"y{k}")
        gives.append(info(f"y{k}", node.spec.dtype, both(node.spec.shape, twin.spec.shape, "rows")))
    return helper.make_graph(writer.nodes, model.name, given, gives, writer.initializers)


def info(name, dtype, shape):
    """What ONNX is told of an input or an output."""
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(dtype), shape)


# %% tags=["hide-input"]
checks.predict(
    "Three layers: Dense(4, relu), Dense(8, relu), Dense(1, sigmoid). How many nodes does their ONNX graph have?",
    9,
    because="Three for each layer: a product, a sum, an activation. The layers themselves are gone: they were Python "
    "code, and the trace ran it.",
)

# %%
graph = onnx_graph(model)
for node in graph.node:
    print(f"{node.output[0]:>3} = {node.op_type}({', '.join(node.input)})")

# %% [markdown]
# The weights kept their names. It remains to say which edition of the ops we mean, the **opset**. Then ONNX checks
# types and shapes:


# %%
#| export exporting lazy
import onnx


def export(model, path):
    """Write what a model predicts as an ONNX file, opset 17, which is checked before it is written.

    Raises ValueError for a model that is not built, and for an op that has no form in ONNX.
    """
    check_built(model, "export")
    if Path(path).suffix != ".onnx":
        raise ValueError(f"export: the path is {path}; expected a name that ends in .onnx")
    edition = {"opset_imports": [helper.make_opsetid("", 17)], "ir_version": 8, "producer_name": "levels"}
    made = helper.make_model(onnx_graph(model), **edition)
    onnx.checker.check_model(made, full_check=True)
    replace(path, made.SerializeToString())


# %% [markdown]
# And now a Python process in which `levels` is never imported. It runs the file with the evaluator that comes with
# ONNX:

# %%
import subprocess

model.export(folder / "net.onnx")
program = """
import sys
from onnx.reference import ReferenceEvaluator
import numpy as np

net = ReferenceEvaluator("net.onnx")
points = np.array([[3.0, 4.0], [0.0, -8.0], [6.0, 5.0]])
print("answers:", *net.run(None, {"x0": points})[0].ravel().round(3))
print("levels was needed:", "levels" in sys.modules)
"""
print(subprocess.check_output([sys.executable, "-I", "-c", program], cwd=folder, text=True), end="")
print("here:   ", *model.predict(np.array([[3.0, 4.0], [0.0, -8.0], [6.0, 5.0]])).ravel().round(3))

# %% [markdown]
# The course's tests do the same with another program, `onnxruntime`, for every layer of level 4. An op that has no row
# in the table stays at home:

# %%
from levels.low_level import apply


class Noise(Layer):
    def call(self, x):
        return x + apply("random_normal", constant([1, 2]), shape=x.shape, dtype=x.dtype)


noisy = Sequential([Dense(1), Noise()])
noisy.build((None, 2))
try:
    noisy.export(folder / "noisy.onnx")
except ValueError as error:
    print(error)

# %% [markdown]
# ## In the company of scikit-learn (6 min, optional)
#
# scikit-learn is the other great library of the field: its pipelines, searches and scores work with every
# **estimator**, a class with `fit`, `predict` and a few rules. The rules are written down as tests. If a class of ours
# keeps them, all of scikit-learn is ours, and we write none of it.
#
# An estimator's constructor stores its arguments and does no more; `fit` makes the model. By a convention of scikit-learn, what
# `fit` has found ends in an underscore. Here is what both of our estimators share. `train` seeds, makes and fits a net, and puts
# the random state back. The two methods with underscores serve copies and pickles, which cannot hold a compiled program: they
# keep the weights and make the net anew.


# %%
#| export estimators lazy
"""Models in the company of scikit-learn: estimators that make and fit a model."""

from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data


class Estimator(BaseEstimator):
    """Fits a net with one output, in float64, by Adam."""

    hidden_units = ()

    def net(self):
        """A new model: relus, and one linear unit at the end."""
        net = Sequential([*(Dense(units, "relu") for units in self.hidden_units), Dense(1)])
        net.build((None, self.n_features_in_), "float64")
        return net

    def train(self, x, y, loss):
        """Make a model and fit it to x [rows, features] and y [rows], from weights drawn by `random_state`."""
        seed, before = int(check_random_state(self.random_state).randint(2**31)), RANDOM.getstate()
        RANDOM.seed(seed)
        try:
            self.model_ = self.net()
        finally:
            RANDOM.setstate(before)
        self.model_.compile(Adam(self.learning_rate), loss)
        history = self.model_.fit(x, y[:, None], self.batch_size, self.epochs, verbose=0, seed=seed)
        self.loss_curve_ = history.history["loss"]
        return self

    def predicted(self, x):
        """What the model gives for x, [rows]."""
        check_is_fitted(self)
        return self.model_.predict(validate_data(self, x, dtype=np.float64, reset=False))[:, 0]

    def __getstate__(self):
        """What is copied and pickled: the weights in the place of the model."""
        state = super().__getstate__()
        return state | {"model_": state["model_"].get_weights()} if "model_" in state else state

    def __setstate__(self, state):
        super().__setstate__(state)
        if "model_" in state:
            self.model_ = self.net()
            self.model_.set_weights(state["model_"])


# %% [markdown]
# The linear one is a `Dense(1)`. Its weights get the names that scikit-learn gives them.


# %%
#| export estimators
class LinearRegressor(RegressorMixin, Estimator):
    """A linear regression by gradient descent on the mean squared error. Wants standardised features."""

    def __init__(self, learning_rate=0.01, epochs=100, batch_size=32, random_state=None):
        self.learning_rate, self.epochs, self.batch_size = learning_rate, epochs, batch_size
        self.random_state = random_state

    def fit(self, X, y):
        """X [rows, features], y [rows]. Leaves `coef_`, `intercept_` and `loss_curve_`."""
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        self.train(X, y.astype(np.float64), "mse")
        kernel, bias = self.model_.get_weights()
        self.coef_, self.intercept_ = kernel[:, 0], float(bias[0, 0])
        return self

    def predict(self, X):
        """One number for each row."""
        return self.predicted(X)


# %% [markdown]
# The classifier says which of two classes. Its model gives logits, and these are what scikit-learn calls the decision
# function: above zero it is the second class.


# %%
#| export estimators
from scipy.special import expit

from levels.mid_level import BinaryCrossentropy


class DNNClassifier(ClassifierMixin, Estimator):
    """A net for two classes, with `hidden_units` relus in each hidden layer. Wants standardised features."""

    def __init__(self, hidden_units=(4, 8), learning_rate=0.01, epochs=100, batch_size=32, random_state=None):
        self.hidden_units, self.learning_rate = hidden_units, learning_rate
        self.epochs, self.batch_size, self.random_state = epochs, batch_size, random_state

    def fit(self, X, y):
        """X [rows, features], y [rows] of two classes, numbers or names. Leaves `classes_` and `loss_curve_`."""
        X, y = validate_data(self, X, y, dtype=np.float64)
        kind = type_of_target(y, input_name="y", raise_unknown=True)
        if kind != "binary":
            raise ValueError(f"Only binary classification is supported. The type of the target is {kind}.")
        self.classes_, labels = np.unique(y, return_inverse=True)
        if len(self.classes_) == 1:
            raise ValueError(f"DNNClassifier: y holds one class, {self.classes_[0]!r}; expected two")
        return self.train(X, labels.astype(np.float64), BinaryCrossentropy(from_logits=True))

    def decision_function(self, X):
        """The logit of the second class for each row."""
        return self.predicted(X)

    def predict_proba(self, X):
        """The probabilities of both classes, [rows, 2]."""
        logits = self.predicted(X)
        return expit(np.stack([-logits, logits], axis=1))

    def predict(self, X):
        """The likelier class of each row."""
        second = self.predicted(X) > 0.0
        return self.classes_[second.astype(int)]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


# %% [markdown]
# Do they keep the rules? scikit-learn has some fifty tests for an estimator: that it repeats itself, refuses NaN,
# clones, survives a pickle, takes lists and tables and names as classes. We ask all of them.

# %%
from sklearn.utils.estimator_checks import check_estimator

for estimator in (LinearRegressor(), DNNClassifier()):
    checked = [check["status"] for check in check_estimator(estimator, on_skip=None)]
    print(f"{estimator}: more than 50 checks: {len(checked) > 50}, failed: {checked.count('failed')}")

# %% [markdown]
# So now ours stand beside theirs. scikit-learn's `LinearRegression` solves the equations; ours goes downhill, and
# arrives at the same place. R² is the share of the variance of y that the prediction explains; 1 would be all.

# %%
from sklearn.linear_model import LinearRegression

for estimator in (LinearRegression(), LinearRegressor(random_state=1)):
    fitted = estimator.fit(task.x, task.y[:, 0])
    r2 = fitted.score(task.x_test, task.y_test[:, 0])
    print(f"{type(fitted).__name__:17} {fitted.coef_.round(2)}  R² on the test rows {r2:.3f}")

# %% [markdown]
# And the penguins, in millimetres and grams this time, as they were measured. Five times the classifier learns from
# four fifths of them, and is asked about the rest.

# %%
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score

complete = [row for row in tasks.penguins() if None not in row]
measures, sexes = np.array([row[:4] for row in complete]), np.array([row[4] for row in complete])
folds = StratifiedKFold(5, shuffle=True, random_state=1)
print(measures[0], sexes[0])

# %% tags=["hide-input"]
checks.predict(
    "A net with hidden layers of 4 and 8 relus gets these raw measures. Which share of the penguins does it get right?",
    "0.5",
    choices=["0.5", "0.7", "0.9"],
    because="""As many as a coin. Thousands of grams drown out the millimetres: they alone decide the sign of what goes into a
    first relu, so it is positive for all penguins or for none. After a few large steps all four are negative. A relu that
    gives 0 passes no gradient on: these four stay **dead**, and the net says the same of every penguin.""",
)

# %%
coin = DNNClassifier(random_state=1)
print(f"share of right answers: {cross_val_score(coin, measures, sexes, cv=folds).mean():.1f}")
print("fitted to all penguins, it says:", *np.unique(coin.fit(measures, sexes).predict(measures)))

# %% [markdown]
# The cure is to standardise first. In scikit-learn a standardiser and a classifier make a **pipeline**, which is one
# estimator again. In each fold it takes the means from the rows it learns from, and from no others. And which net? A
# **grid search** tries them all, with the standardiser and with nothing in its place.

# %%
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

pipeline = make_pipeline(StandardScaler(), DNNClassifier(random_state=1))
grid = {"dnnclassifier__hidden_units": [(), (4, 8), (16,)], "standardscaler": ["passthrough", StandardScaler()]}
search = GridSearchCV(pipeline, grid, cv=folds).fit(measures, sexes)
for tried, score in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"]):
    scaler, units = tried["standardscaler"], tried["dnnclassifier__hidden_units"]
    print(f"{'raw' if scaler == 'passthrough' else 'standardised':13} {str(units):8} {score:.1f} right")

# %% [markdown]
# Standardised, about nine of ten are right, whatever the net; even with no hidden layer at all, where the classifier is a
# logistic regression. The few points between the nets are about as much as the folds differ
# among themselves. A search is a good way to find out, because it also tries what we would have been too proud to try.

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
from levels.mid_level import Dataset


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
    return train(Sequential([Dense(1)]), "mse", x, y, weights, batches, learning_rate)  # model


# %% tags=["hide-input"]
checks.predict(
    "8,000 steps of `model.fit`, and 8,000 steps of level 1's machine code, from the same weights. What is the last loss "
    "here minus the last loss there?",
    0,
    because="""Exactly 0: layers, tape, dataset and `fit` decide *which* operations are done, and in which order. It is the
    order of level 1, and the rounding of each operation is the same.""",
)

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
# The points keep close to the grey line, on which a prediction is right: the noise of the data is all that is left. Three measures
# of a penguin tell less of its mass, but most of it.
#
# ### The second task: a net


# %%
#| export tasks
def dnn_classifier(x, y, weights, batches, learning_rate=0.01):
    """features-4-8-1, relu, relu, sigmoid; binary cross-entropy, stochastic gradient descent; see `Fit`, `check_task`."""
    check_task(x, y, weights, batches, learning_rate, units=[4, 8, 1])
    model = Sequential([Dense(4, "relu"), Dense(8, "relu"), Dense(1, "sigmoid")])  # model
    return train(model, "binary_crossentropy", x, y, weights, batches, learning_rate)


# %% tags=["hide-input"]
checks.predict(
    "The net takes 24,000 steps of 100 rows each. In plain Python that is more than a minute. And by `model.fit`?",
    "less than ten seconds",
    choices=["less than ten seconds", "about as long as plain Python", "longer: five levels stand on each other"],
    because="""`fit` hands down pieces of about a twentieth of a second, thousands of steps each, and what runs there is one
    program of machine instructions, as on level 1. Python is asked twenty times a second, not once an operation.""",
)

# %% tags=["nbval-ignore-output"]
rings = tasks.rings()
began = time.perf_counter()
dnn_classifier(*rings[:2], *rings[4:7])
print(f"{time.perf_counter() - began:.1f} s for {len(rings.batches):,} steps")

# %%
trainers = [level.tasks.dnn_classifier for level in (hardware, kernels, low_level, mid_level)] + [dnn_classifier]
fits = {level: train_net(*rings[:2], *rings[4:7]) for level, train_net in zip(figures.LEVELS, trainers)}
for level, fit in fits.items():
    same = all((p == q).all() for p, q in zip(fit.weights, fits["hardware"].weights))
    print(f"{level:12} last loss {float(fit.losses[-1]).hex()}   all 61 weights equal level 1's: {same}")

# %%
figures.five_curves(fits)

# %% tags=["hide-input"]
checks.predict(
    "The rings are circles of radius 5 and 8, with noise. Which share of the test points can the best model get right?",
    "about 95%",
    choices=["100%", "about 95%", "about 85%"],
    because="""The noise reaches two to either side, so between 6 and 7 there are points of both rings, and nothing in
    their coordinates tells which is which. No model, however deep, can be expected to do better than a well-chosen
    circle. A net that comes near it is done; more would be learning by heart.""",
)

# %%
figures.classifier(rings, fits["high_level"])

# %% [markdown]
# The blue region has corners, because a net of relus draws straight lines and joins them. It comes within half a percent of the
# best circle. And the penguins' sex, from four measures:

# %%
sex = tasks.penguins_sex()
figures.confusion(sex, dnn_classifier(*sex[:2], *sex[4:7]))

# %% [markdown]
# Of 73 penguins that it has not seen, seven are taken for the other sex.
#
# ## The five side by side (8 min)
#
# Here is the course on one page: one task, on every level, in bands. A **band** is a part of a step, and in it stand the lines
# of all levels, each led by the level's number. 0 is plain Python, `course/reference.py`, the arithmetic that every
# level has to equal; 5 is this notebook.
#
# We train the line in eight versions. Level 1 has two of them, float64 one number at a time and float32 with lanes
# (SIMD); level 3 has two, op by op and compiled.

# %%
from course import reference
from course.figures import great, widgets
from course.inspection import bands
from course.practice import checks

levels = (hardware, kernels, low_level, mid_level)
line_on_all = [reference.linear_regression, *(level.tasks.linear_regression for level in levels), linear_regression]
net_on_all = [reference.dnn_classifier, *(level.tasks.dnn_classifier for level in levels), dnn_classifier]

# %% tags=["hide-input"]
checks.predict(
    "How many different last losses will stand above the bands, for the eight versions?",
    2,
    slider=(1, 8, 1),
    because="""Seven compute in float64, the same operations in the same order: plain Python and `fit` end with the same bits. The
    version with lanes computes in float32, which keeps about seven digits, and adds up its rows in another order, lane by lane.
    So it ends near by, with a number of its own.""",
)

# %%
line = compare.measure(task, *line_on_all)
line

# %% [markdown]
# Read a band from top to bottom: each level says the same in its own words. On level 5 one line says four bands at once, and
# a bracket runs down from it. A line that calls functions says how many lines they have, so nothing looks shorter than it
# is. Click on it, and they open. What bears no mark is folded at the end: every line of the eight versions stands here once. To lay two
# levels beside each other, **choose them in the two menus**.
#
# Seven times the same number, in hexadecimal, where no digit is hidden, so it is printed once. Only float32 says something
# else: with 24 bits for the digits it cannot say this number at all. The numbers above count what it takes. **Lines** are those of
# the task function and of all it calls in its module, without the checks of arguments. A **launch** is one call from above: of one
# operation on two numbers in plain Python, of one kernel on level 2, of a whole training where a compiler has been at
# work. Level 5 has a `few` of them: the pieces of `fit`, whose number depends on the clock. **Bytes** are what the launches read
# and write. How the times are predicted comes further below.
#
# The net, too. Plain Python would take more than a minute for its 24,000 steps. So the versions that go op by op take
# over from level 1 for the last hundred steps. They arrive at the same number.

# %%
net = compare.measure(rings, *net_on_all, last=100, repeats=1)
net

# %% [markdown]
# The bands of both tasks fit on paper, with all helpers open: two sides of A4, the line on the left and the net on the right.

# %%
bands.on_paper("side_by_side.html", line, net).name

# %% [markdown]
# The page lies beside this notebook. In Lab's file browser, right-click it and take *Open in New Browser Tab*, then print.
#
# ## One step, opened (6 min)
#
# The numbers above count launches. Which ones are they, and who asks for each? We take an X-ray of one step. No level is changed
# for it: Python calls us whenever a function is called or returns
# ([`sys.setprofile`](https://docs.python.org/3/library/sys.html#sys.setprofile)), and at the door of level 3 stands an engine
# of ours, which does what the old one does and looks at the clock.

# %% tags=["hide-input"]
checks.predict(
    "Op by op, a step of the line takes 17 launches on level 3. How many does the same step take from `fit`, op by op?",
    choices=["17", "18", "about 50: each storey adds its own"],
    answer="18",
    because="Layers, loss and `fit` compute nothing themselves. They decide which ops are done. Only the optimizer has a number "
    "of its own to keep: it counts its steps.",
)

# %%
from course import where
from course.inspection import xray

patient = Sequential([Dense(1)])
patient.build(task.x.shape, task.x.dtype)
patient.set_weights(task.weights)
patient.compile(SGD(task.learning_rate), "mse")
ten = task.x[task.batches[0]], task.y[task.batches[0]]
opened = xray.opened(patient, *ten)
print(opened)

# %% [markdown]
# What stands further to the right happens within what stands above it. Read it from the top: level 5 asks level 4, level 4
# asks level 3, and each op ends in one launch of a kernel of level 2. The loss takes three launches, and its gradient takes
# six: walking back costs more than walking there. (`spread` is the gradient of a mean: it gives each
# of the ten rows its tenth.) The **copies** are what crosses between Python's memory and the
# device's: row numbers on the way in, the loss on the way out.
#
# And where does the time go? Open a row. The bars are in the colours of the levels.

# %% tags=["nbval-ignore-output"]
opened

# %% [markdown]
# The bars of the kernels are hardly to be seen. Nearly all of the step is Python on its way to them. (The X-ray makes this
# worse, because it listens to every call. It does not listen while a kernel runs.)
#
# That was the step with its lid off. `fit` does not take it that way.

# %%
closed = xray.compiled(patient, *ten)
print(closed)
print("the same loss:", opened.loss == closed.loss)

# %% [markdown]
# All the parts are there again, but beneath `compile`. They run once, on symbols: 16 ops are written down and nothing is
# launched. (The two gathers are not among them: a program reads its rows itself.) Two are the same product, because the
# gradient of `error * error` has it twice; 15 remain. They become one program, which is launched once. It reads ten rows
# and their numbers, 320 bytes, and keeps the rest near at hand. The other 24 of the 344 bytes are three copies of one number to
# Python.

# %% tags=["nbval-ignore-output"]
closed

# %% [markdown]
# Tracing and compiling take longer than the open step did. `fit` pays that once, and then takes thousands of steps in a launch.
#
# Large steps are easier to read with a viewer. `save` writes the rows in the trace event format. Open the file at
# [ui.perfetto.dev](https://ui.perfetto.dev), where the devices have tracks of their own.

# %%
opened.save(folder / "step.json")
print((folder / "step.json").name, len(list(opened.trace())), "events")

# %% [markdown]
# Each row names the file and the section that it comes from. You can ask for these by name, also by the name that a thing
# has elsewhere. `where` looks it up, sends a layer or a function through the door on symbols, and tells which ops arrive.

# %%
where("GradientTape")

# %%
where("torch.nn.Linear")

# %%
try:
    where("torch.nn.LSTM")
except LookupError as error:
    print(error)

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
# bandwidth). A launch is priced at a small one: in plain Python an operation of `dot`, on level 2 an addition of two
# numbers, in 3 eager an addition of two tensors. A program's only launch is priced at a run of a single step, with all
# its tracing and assembling. A program in float64 gets one lane of the peak.

# %% tags=["nbval-ignore-output"]
great.five_levels(line)

# %% [markdown]
# Time rises and falls again. On level 2 and in 3 eager we pay for each call by name, and nearly all of the time is
# that. From 3 compiled on, the floors above hand the loop down to the ground, at once or (`fit`) in a few pieces. What they
# take beyond the program of level 1 are the milliseconds before it runs, in which a step is traced: shared by 8,000 steps,
# they are most of what is left. Levels 4 and 5 have
# a little more Python to walk through before the program stands. Once it stands, it is the same program.

# %% tags=["nbval-ignore-output"]
great.five_levels(net)

# %% [markdown]
# A step of the net does 260 times the arithmetic of the line's, and the tracing is lost in it: 1 scalar, 3 compiled, 4
# and 5 stand under each other. They are slower than predicted, all by the same factor. It is the same program, and the
# formula knows nothing of sums that wait for themselves: on level 1 we saw each addition wait for the one before.
#
# Last, the course as a slider. **Move the level** (mouse, or Tab and the arrow keys): the code changes, the time moves,
# the losses do not.

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
# ## Beside other libraries (3 min, optional)
#
# How good is our number? The rings once more, in batches of 100 with Adam and float32, as other libraries write them: shuffle,
# gather, step, on one thread. Each of them first had to show that it ends at the same weights. Then they took turns. The times
# are those of one computer, in November 2026; `python3 -m course bench` measures yours.
#
# | | levels | µs a step | quickest other | µs a step | its time / ours |
# |---|---|--:|---|--:|--:|
# | rings, batch 100, Adam: eager | 3 eager | 365 | PyTorch eager | 417 | 1.14 |
# | rings, batch 100, Adam: step | 3 function | 19.6 | JAX jit | 80.7 | 4.12 |
# | rings, batch 100, Adam: epoch | 3 function.over | 3.04 | JAX lax.scan | 12.9 | 4.24 |
# | rings, batch 100, Adam: fit | 5 fit | 4.67 | scikit-learn MLP fit | 268 | 57.4 |
#
# Op by op, PyTorch and we pay the same kind of price, some microseconds for each op. Each floor of calls that is compiled away
# is a factor. What is left in `fit` is our loop of a few pieces; Keras' needs 2,670 µs for the same step.

# %% tags=["hide-input"]
checks.predict(
    "Now a large net, 784-512-512-10, in batches of 256: a step takes 10 thousand µs. How many times as long as our compiled "
    "epoch does JAX's take there? For the rings it was 4 times.",
    choices=["1.1 times", "4 times", "40 times"],
    answer="1.1 times",
    because="Nearly all of the time goes to matrix products, and everybody's run near the peak of the machine. What a "
    "framework does around them is lost in it, for good or bad.",
)

# %% [markdown]
# | | levels | µs a step | quickest other | µs a step | its time / ours |
# |---|---|--:|---|--:|--:|
# | 784-512-512-10, batch 256, Adam, 1 thread: epoch | 4 | 9,300 | JAX lax.scan | 10,300 | 1.11 |
# | 784-512-512-10, batch 256, Adam, 2 threads: epoch | 3 function.over | 6,590 | JAX lax.scan | 5,680 | 0.861 **behind** |
#
# On two threads JAX is ahead: ours share the products, and nothing else. So it goes with claims of speed. Overhead is what a small step
# shows, arithmetic is what a large one shows, and the formula of level 1 says which of the two yours is. All numbers, and where
# we are behind, are in `course/bench/README.md`.
#
# ## Your machine's card (3 min)
#
# The course has met your machine from two sides: from below, with programs that only load or only add, and from above, with
# whole trainings. Both sides fit on one card.

# %% tags=["hide-input"]
checks.predict(
    "A friend runs this course on another computer, and you lay your cards beside each other. What is the same?",
    choices=["nothing", "the times, up to a factor", "the losses, to the last bit"],
    answer="the losses, to the last bit",
    because="Caches, clocks and lanes differ, and each time depends on them in its own way. The losses depend on the order "
    "and the rounding of float64 operations, and both are fixed: one by our code, the other by the standard IEEE 754.",
)

# %% [markdown]
# The staircase of level 1 is climbed once more, which takes some seconds.

# %% tags=["nbval-ignore-output"]
from course.inspection import card

cpu = hardware.pool()["cpu:0"]
stairs = {2**k: hardware.measure_latency(cpu, 2**k) for k in range(12, 29)}
my_card = card.machine_card(cpu, stairs, line, net)
my_card

# %% [markdown]
# At the foot stands the answer, in sixteen digits. They are the beginning of a **hash**: all losses, 8,000 of the line and
# 24,000 of the net, as bytes, through sha256 ([Secure Hash Standard, 2015](https://doi.org/10.6028/NIST.FIPS.180-4)). If one
# loss changes in its last bit, the digits change altogether:

# %%
print(card.fingerprint(line, net))
losses = line.rows[-1].losses.copy()
losses[4000] = np.nextafter(losses[4000], 0)
print(
    card.fingerprint(line._replace(rows=[line.rows[-1]._replace(losses=losses)]), net),
    "with one loss moved by the least step",
)

# %% [markdown]
# The first line reads `aba007ec7ceeaf70`, on your machine and on any other. To keep the card, run
# `my_card.save("my_machine.svg")`: it then lies beside this notebook, and git leaves it alone.
#
# ## Take it home (4 min)
#
# The model of the rings has 61 numbers, and you know what happens to them. So they can go where there is no Python. Every
# browser speaks JavaScript, and this is all that it must know of our net. (The other functions of the page
# draw. We cut this one out of its text to show it.)

# %%
from course.figures import page

_, forward, *_ = page.TEMPLATE.read_text(encoding="utf-8").split("function ")
print("function " + forward.rsplit("}", 1)[0] + "}")

# %% tags=["hide-input"]
checks.predict(
    "`levels` and the browser compute the values of all units for the same point. Which of them may differ?",
    choices=["none", "only the last one, the probability", "all, in their last digits"],
    answer="only the last one, the probability",
    because="JavaScript's numbers are float64, so sums of products in the same order round to the same bits. Only exp is left "
    "to each browser, and the sigmoid that needs it stands at the very end.",
)

# %% [markdown]
# ([ECMAScript](https://tc39.es/ecma262/#sec-math.exp), the standard of JavaScript, calls the result of `Math.exp`
# "implementation-approximated". A test holds all hidden values to be equal, and the probability to a millionth.)

# %%
home = page.take_home(load_model("rings"), "rings.html")
print(f"{home}: {home.stat().st_size / 1000:.0f} kB, net, page and all")

# %% [markdown]
# Now **open the page**. In Lab's file browser, right-click `rings.html` and take *Open in New Browser Tab*; outside of Lab, a
# double click does. Drag the point over the edge, by mouse or by the arrow keys: hidden units wake and fall silent, and each
# corner of the blue region is a place where one of them does. The page needs no network. Send it to somebody.
#
# It takes models of your own, too: a `Sequential` of `Dense` layers, from two inputs to one sigmoid.
#
# ## More of the same kind (optional)
#
# ### More callbacks (5 min)
#
# `ModelCheckpoint` saves the model after each epoch, or after each that was the best so far. The name of the folder may
# hold the epoch, counted from 1, and its numbers.


# %%
#| export callbacks
class ModelCheckpoint(Monitor):
    """Saves the model after each epoch to `filepath`, such as "runs/{epoch:03d}-{val_loss:.2f}"; see `Model.save`.

    `save_best_only` waits for a better `monitor`.
    """

    def __init__(self, filepath, monitor="val_loss", save_best_only=False, mode="auto"):
        super().__init__(monitor, mode)
        self.filepath, self.save_best_only = filepath, save_best_only

    def on_epoch_end(self, epoch, logs):
        if not self.save_best_only or self.better(logs):
            self.model.save(str(self.filepath).format(epoch=epoch + 1, **logs))


# %%
best = ModelCheckpoint(folder / "runs" / "best-{epoch:02d}", "loss", save_best_only=True)
student.fit(task.x, task.y, epochs=2, verbose=0, seed=1, callbacks=[best])
print(*sorted(path.name for path in (folder / "runs").iterdir()))

# %% [markdown]
# Two callbacks change the learning rate. It is a variable of the optimizer, so no program is compiled again.
# `ReduceLROnPlateau` waits as `EarlyStopping` does. `LearningRateScheduler` asks a function of ours before each epoch.
# Both write the rate into the numbers of the epoch, so that the history keeps it. (An optimizer that follows a schedule
# of its own has no such number; then `float` raises.)


# %%
#| export callbacks
class ReduceLROnPlateau(Monitor):
    """Multiplies the rate by `factor`, down to `min_lr`, after `patience` epochs without a better `monitor`."""

    def __init__(self, monitor="val_loss", factor=0.1, patience=10, mode="auto", min_delta=1e-4, min_lr=0.0):
        super().__init__(monitor, mode, min_delta)
        self.factor = positive("ReduceLROnPlateau: factor", factor, 1.0)
        self.patience = at_least(0, "ReduceLROnPlateau: patience", patience)
        self.min_lr = from_zero("ReduceLROnPlateau: min_lr", min_lr)

    def on_epoch_end(self, epoch, logs):
        optimizer, better = self.model.training.optimizer, self.better(logs)
        rate = logs["learning_rate"] = float(optimizer.learning_rate)
        if not better and self.wait >= self.patience:
            optimizer.learning_rate, self.wait = max(rate * self.factor, self.min_lr), 0


class LearningRateScheduler(Callback):
    """The learning rate of each epoch is schedule(epoch, rate of the last one). Epochs count from 0."""

    def __init__(self, schedule):
        self.schedule = schedule

    def on_epoch_begin(self, epoch):
        optimizer = self.model.training.optimizer
        optimizer.learning_rate = self.schedule(epoch, float(optimizer.learning_rate))

    def on_epoch_end(self, epoch, logs):
        logs["learning_rate"] = self.model.training.optimizer.learning_rate


# %%
slowing = Sequential([Dense(1)])
slowing.compile(SGD(0.0005), "mse")
halve = LearningRateScheduler(lambda epoch, rate: rate / 2 if epoch and epoch % 4 == 0 else rate)
print(*slowing.fit(task.x, task.y, epochs=10, verbose=0, seed=1, callbacks=[halve]).history["learning_rate"])

# %% [markdown]
# The shortest of them ends a training that has lost its way, without the error that `fit` would raise.


# %%
#| export callbacks
class TerminateOnNaN(Callback):
    """Ends the training after an epoch whose loss is no finite number."""

    def on_epoch_end(self, epoch, logs):
        self.model.stop_training = self.model.stop_training or not math.isfinite(logs["loss"])


# %%
lost = Sequential([Dense(1)])
lost.compile(SGD(1.0), "mse")
lost.fit(task.x, task.y, epochs=50, verbose=0, seed=1, callbacks=[TerminateOnNaN()])

# %% [markdown]
# `CSVLogger` writes a line for each epoch into a table that any program can read.


# %%
#| export callbacks
import csv


class CSVLogger(Callback):
    """Writes the numbers of each epoch to a file: a header, then a line for each."""

    def __init__(self, filename):
        self.path = Path(filename)

    def on_train_begin(self):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.file, self.rows = self.path.open("a", newline="", encoding="utf-8"), None

    def on_epoch_end(self, epoch, logs):
        logs = {"epoch": epoch, **logs}
        if self.rows is None:
            self.rows = csv.DictWriter(self.file, [*logs])
            self.file.truncate(0)  # a log of before stays until there is something to put in its place
            self.rows.writeheader()
        self.rows.writerow(logs)
        self.file.flush()  # whole lines only, and others can watch them come

    def on_train_end(self):
        self.file.close()


# %%
student.fit(task.x, task.y, epochs=3, verbose=0, seed=1, callbacks=[CSVLogger(folder / "log.csv")])
print(*(line.split(",")[0] for line in (folder / "log.csv").read_text().splitlines()))

# %% [markdown]
# `TensorBoard` writes what the tool of that name shows: the curves of training and validation over each other, how the
# weights are spread, and the model as a graph of ops. The graph is level 3's trace, with each op filed under the layer
# whose variable it met last. (The next two cells are folded. A click opens them.)


# %% tags=["hide-input"]
#| export callbacks
def graph_of(model):
    """The model's ops as TensorFlow's GraphDef, with the shapes of the last batch."""
    from tensorboardX.proto.graph_pb2 import GraphDef

    graph = without_dead(trace(lambda *x: model(alone(x)), model.input_specs)[0])
    paths = {variable: path.replace(".", "/") for path, variable in model.named(Variable).items()}
    names, drawn = {}, GraphDef()
    for number, node in enumerate(graph.nodes):
        nearest = max(node.inputs, key=lambda x: x.op == "variable", default=None)
        scope = names[nearest].rpartition("/")[0] if nearest else ""
        names[node] = paths.get(node.attrs.get("of")) or f"{scope}/{node.op}_{number}".lstrip("/")
        added = drawn.node.add(name=names[node], op=node.op, input=[names[x] for x in node.inputs])
        shape = added.attr["_output_shapes"].list.shape.add()
        for size in node.spec.shape:
            shape.dim.add(size=size)
    return drawn


# %% [markdown]
# The files themselves are written by a library, tensorboardX. It is loaded in the moment in which the first line is
# written, so nobody else waits for it.


# %% tags=["hide-input"]
#| export callbacks
class TensorBoard(Callback):
    """Writes curves to log_dir/train and log_dir/validation; every `histogram_freq` epochs the weights; the graph."""

    def __init__(self, log_dir="logs", histogram_freq=0):
        self.log_dir, self.histogram_freq = Path(log_dir), at_least(0, "TensorBoard: histogram_freq", histogram_freq)

    def on_train_begin(self):
        self.writers = {}

    def writer(self, part):
        """The writer of the files of "train" or "validation"."""
        from tensorboardX import SummaryWriter

        if part not in self.writers:
            self.writers[part] = SummaryWriter(str(self.log_dir / part), flush_secs=2)
        return self.writers[part]

    def on_epoch_end(self, epoch, logs):
        for name, value in logs.items():
            part = "validation" if name.startswith("val_") else "train"
            self.writer(part).add_scalar(f"epoch_{name.removeprefix('val_')}", value, epoch)
        if epoch == 0:
            self.writer("train").file_writer.add_onnx_graph(graph_of(self.model))  # (it takes any GraphDef)
        if self.histogram_freq and epoch % self.histogram_freq == 0:
            for path, variable in self.model.named(Variable).items():
                self.writer("train").add_histogram(f"{path.replace('.', '/')}/histogram", variable.numpy(), epoch)

    def on_train_end(self):
        for writer in self.writers.values():
            writer.close()


# %%
net = trained()
logs = folder / "logs"
net.fit(*few, epochs=20, verbose=0, seed=1, validation_data=others, callbacks=[TensorBoard(logs, histogram_freq=5)])
print(*sorted(path.parent.name for path in logs.glob("*/*")))
for node in graph_of(net).node:
    print(f"{node.name:24}", *node.input)

# %% [markdown]
# To look at them: `pip install tensorboard`, then `tensorboard --logdir` and the name of the folder.

# %% [markdown]
# ### More rows for ONNX (3 min)
#
# What each op takes is written in [ONNX's list](https://onnx.ai/onnx/operators/). Most of our attributes are theirs,
# under another name. A reduction names its axes, and None stands for all of them. (In opset 17 the sum is the only one
# that takes its axes as an input.) The cell with the rows is folded: it is a list to look things up in.


# %% tags=["hide-input"]
#| export exporting
def reduction_row(op):
    """The row of a reduction that has its axes as an attribute."""
    return lambda x, axis, keepdims: (op, [x], {"axes": None if axis is None else listed(axis), "keepdims": keepdims})


def sum_row(x, axis, keepdims):
    """The sum over these axes."""
    return "ReduceSum", [x] if axis is None else [x, listed(axis)], {"keepdims": keepdims}


def arg_max_row(x, axis):
    """The place of the largest number along an axis, or among all."""
    flat = ("Reshape", [x, [-1]], {})
    return "ArgMax", [flat if axis is None else x], {"axis": axis or 0, "keepdims": 0}


ONNX.update({f"reduce_{name}": reduction_row(f"Reduce{name.title()}") for name in ("mean", "max", "min")})
ONNX.update(
    reduce_sum=sum_row,
    arg_max=arg_max_row,
    not_equal=lambda x, y: ("Not", [("Equal", [x, y], {})], {}),
    cast=lambda x, dtype: ("Cast", [x], {"to": helper.np_dtype_to_tensor_dtype(dtype)}),
    clip=lambda x, low, high: ("Clip", [x, *(("CastLike", [bound, x], {}) for bound in (low, high))], {}),
    concat=lambda *x, axis: ("Concat", x, {"axis": axis}),
    one_hot=lambda x, depth, dtype: ("OneHot", [x, depth, np.array([0, 1], dtype)], {"axis": -1}),
    reshape=lambda x, shape: ("Reshape", [x, shape], {}),
    transpose=lambda x, axes: ("Transpose", [x], {"perm": axes}),
)


# %% [markdown]
# A slice is told by starts, stops and steps. Where it goes as far as it can, ONNX wants a number all the same.


# %%
#| export exporting
def slice_row(x, slices):
    """x[start:stop:step, …]"""
    far = 2**63 - 1  # as far as it goes

    def bounds(start, stop, step):
        first, last = (far, -far) if (step or 1) < 0 else (0, far)
        return first if start is None else start, last if stop is None else stop, step or 1

    starts, stops, steps = map(list, zip(*(bounds(*part) for part in slices)))
    return "Slice", [x, starts, stops, list(range(len(slices))), steps], {}


ONNX["slice"] = slice_row


# %%
from levels.mid_level import Flatten

x = Input((3, 2))
for node in onnx_graph(Model(x, Flatten()(x))).node:
    print(node.op_type, *node.input)

# %% [markdown]
# ### Where float32 parts from float64 (5 min)
#
# In float32 the levels need not agree to the last bit: a program with lanes adds in another order. From the course's
# own start the losses stay within 1/10,000 of those in float64 over the first 2,000 steps. From some other starts they
# do not. Here is one. We train in both formats, step by step, and look at two things: how far the weights are apart,
# and whether any relu sees a positive number in one run and a negative one in the other.

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
# For many steps the gap stays near the rounding of float32, one part in a million or less. Then one input of one relu
# lies so close to zero that the two formats round it to different sides. One run passes its gradient on, the other
# passes none. That is no rounding error any more: the gradient of a whole row is there or is not. From then on they are
# two runs, and it happens again and again. Neither is wrong. Both learn the rings.

# %% [markdown]
# ### The same in two frameworks
#
# | | TensorFlow | PyTorch | here |
# |---|---|---|---|
# | a model | `tf.keras.Sequential` | `torch.nn.Sequential` | `Sequential` |
# | a graph of layers | `tf.keras.Model(inputs, outputs)` | `forward` of a `torch.nn.Module` | `Model(inputs, outputs)` |
# | a model of your own | subclass `tf.keras.Model`, write `call` | subclass `torch.nn.Module`, write `forward` | subclass `Model`, write `call` |
# | choose how to train | `model.compile(optimizer, loss, metrics)` | `torch.optim.Adam(model.parameters())`, a loss | `model.compile(optimizer, loss, metrics)` |
# | train | `model.fit` | your own loop, or Lightning's `Trainer.fit` | `model.fit` |
# | one step | `train_step(data)` | `training_step(batch, batch_idx)` in Lightning | `train_step(x, y)` |
# | ask how good | `model.evaluate` | `model.eval()`, then a loop under `torch.no_grad()` | `model.evaluate` |
# | predict | `model.predict(x)` | `model(x)` under `torch.no_grad()` | `model.predict(x)` |
# | listen | `callbacks=[tf.keras.callbacks.EarlyStopping()]` | Lightning's `callbacks=[EarlyStopping("val_loss")]` | `callbacks=[EarlyStopping()]` |
# | save, load | `model.save("net.keras")`, `tf.keras.models.load_model` | `torch.save(model.state_dict(), path)`, `load_state_dict` | `model.save("net")`, `load_model` |
# | to ONNX | `tf2onnx.convert.from_keras` | `torch.onnx.export` | `model.export("net.onnx")` |
#
# ## Exercises (60 min, optional)
#
# The last ones. Here your code stands around a model, or listens to it, and the checks train small models to try it.
#
# ### 05-1 · Until it is good enough
#
# Train until an epoch's mean loss, as `fit` reports it, is below a bound; but for `most` epochs at most. Go through the rows in
# their order, ten at a time: `fit(x, y, batch_size=10, shuffle=False, verbose=0)`.
#
# ```
# epoch            1      2      3      4
# mean loss     7.62   6.10   4.89   3.92          bound 5, most 20:  three epochs
#                                                  bound 5, most 2:   two epochs
# ```
#
# (About 5 lines. Hint: `fit` goes on from the weights, and from the optimizer's memory, that the model has.)

# %%
from course.practice import exercises

exercises.begin("05-1")


def fit_until(model, x, y, bound, most):
    """Train the compiled model until an epoch's mean loss is below `bound`. Returns how many epochs that took."""
    return ...


exercises.check("05-1", fit_until)

# %% [markdown]
# With a callback that sets `stop_training` it takes one call of `fit`. Which of the two would you rather read?
#
# ### 05-2 · A callback that averages
#
# Near the end of a training the weights jump to and fro around the best place. Their mean over the epochs lies nearer to it than
# most of them ([Polyak and Juditsky, 1992](https://doi.org/10.1137/0330046);
# [Izmailov et al., 2018](https://doi.org/10.48550/arXiv.1803.05407), for deep nets).
#
# ```
# epoch                    1      2      3      end of the training
# a weight after it      4.0    7.0    1.0      4.0: their mean
# ```
#
# (The first epochs are still far from that place and would spoil the mean. So train without it first, then with it.) While it
# listens, the model must go on from its own weights. A callback may be used for a second training, and a training may end
# before its first epoch does. (About 9 lines. Hint: `self.model.get_weights()` is a list of arrays, one for each variable.)

# %%
from course.practice import exercises

exercises.begin("05-2")


class Averaged(Callback):
    """Gives the model, when the training ends, the means of the weights that it had after each epoch."""

    def on_train_begin(self): ...

    def on_epoch_end(self, epoch, logs): ...

    def on_train_end(self): ...


exercises.check("05-2", Averaged)

# %% [markdown]
# ### 05-3 · Break it: a net that says the same of everything
#
# The two rings again, 20 epochs, at three learning rates. The last one prints a symptom:

# %%
from course import tasks
from course.practice import exercises

exercises.begin("05-3")

points = tasks.rings()


def net_at(rate):
    net = Sequential([Dense(4, "relu"), Dense(8, "relu"), Dense(1, "sigmoid")])
    net.build((None, 2), "float64")
    net.set_weights(points.weights)
    net.compile(SGD(rate), "binary_crossentropy")
    net.fit(points.x, points.y, batch_size=100, epochs=20, seed=1, verbose=0)
    return net


nets = {rate: net_at(rate) for rate in (0.1, 0.5, 1.0)}
for rate, net in nets.items():
    losses, answers = net.history.history["loss"], net.predict(points.x_test)
    told = " ".join(f"{losses[epoch]:.3f}" for epoch in (0, 1, 4, 19))
    print(f"rate {rate}: losses {told}, from {answers.min():.3f} to {answers.max():.3f} for the test points")

# %% [markdown]
# At rate 1 the loss comes to rest at log 2 = 0.693, that of a coin, and the net gives one probability to all points. Nothing is
# infinite, nothing is NaN, no program complains. `summary` finds all layers in place, and all 61 numbers trained. So we ask for
# the gradients:

# %%
for rate in (0.1, 1.0):
    with GradientTape() as tape:
        loss = nets[rate].test_step(points.x, points.y)
    slopes = tape.gradient(loss, nets[rate].variables)
    reached = [name for name, slope in zip(nets[rate].named(Variable), slopes) if slope.numpy().any()]
    print(f"rate {rate}: a gradient reaches", *reached)

# %% [markdown]
# Only the last bias still has one, so nothing else will ever move. Find the cause, layer by layer: give the points to the
# first layer, what it gives to the second, and so on, and look for units that give 0 for **every** point. Such a relu is
# **dead**: where it gives 0, it passes no gradient on, neither to its own weights nor to the layers before it. (About 5
# lines. Hint: `model.layers` is a list, a layer is called like a function, and `.numpy()` makes an array of what it gives.)

# %%
from course.practice import exercises

exercises.begin("05-3")


def dead_units(model, x):
    """For each layer of a Sequential: how many of its units give 0 for all rows of x[rows, inputs]; a list of ints."""
    return ...


exercises.check("05-3", dead_units)

# %% [markdown]
# Once the check is content, ask your function about the three nets. One dead unit of eight does no harm; eight of eight are
# the end. A callback with `on_train_batch_end` can print the number whenever it changes: units die and come back, because the
# first layer moves on and with it what goes into them. In the 125th step all eight are dead at once, and the first layer
# stands still, too. So it was the rate: the steps were too long. (Which other cure do you know?)
#
# ### 05-4 · Break it: the last fifth
#
# Is a penguin a Chinstrap? One unit, the three measures of the race on level 4, and a fifth of the table held out by
# `validation_split`.

# %% tags=["hide-input"]
from course.practice import checks

checks.predict(
    "After 20 epochs the model is right about all penguins that it was trained on. And about those held out?",
    choices=["about all", "about nine of ten", "about none"],
    answer="about none",
    because="""The table is sorted by species, and the Chinstraps come last: 68 of 342 penguins, a fifth. `validation_split`
    holds out the last rows, and these are they. No Chinstrap was left to learn from. So the model has learned to say no, which
    was right every time.""",
)

# %%
from course import tasks
from course.practice import exercises

exercises.begin("05-4")

table = [row[:3] for row in tasks.penguins() if None not in row[:4]]
x = np.array(table)
x = (x - x.mean(axis=0)) / x.std(axis=0)
chinstrap = np.array([[0.0]] * (len(x) - 68) + [[1.0]] * 68)  # the last 68 lines of the table

RANDOM.seed(1)
unit = Sequential([Dense(1, "sigmoid")])
unit.compile(Adam(0.05), "binary_crossentropy", ["accuracy"])
logs = unit.fit(x, chinstrap, epochs=20, validation_split=0.2, seed=1, verbose=0).history
print(f"right: {logs['accuracy'][-1]:.3f} of those it was trained on, {logs['val_accuracy'][-1]:.3f} of those held out")

# %% [markdown]
# `fit` shuffles, but only what is left after the split, as Keras does. So hold rows out yourself, drawn at random from all:
# each row in one of the two parts, x beside its y, `int(rows · share)` of them for the test, and the same ones for the same
# seed. (About 3 lines. Hint: `np.random.default_rng(seed).permutation(n)` is the numbers from 0 to n - 1 in random order.)

# %%
from course.practice import exercises

exercises.begin("05-4")


def held_out(x, y, share, seed):
    """x, y, x_test, y_test: a share of the rows of x[rows, columns] and y[rows, 1], drawn at random, is for the test."""
    return ...


exercises.check("05-4", held_out)

# %% [markdown]
# Once the check is content, train a new unit on your parts, with `validation_data`. It comes to about 0.95 on both.
#
# ### Without a check
#
# - Count the parameters of `residual`, above, by hand. Let `summary` check you.
# - Write a callback that prints how many seconds each epoch took.
# - Train twice with the same seed, twice with different ones. Which losses are equal? (Where do starting weights come from?
#   Look at `levels.mid_level.layers.RANDOM`.)
# - Under *Callbacks*, take `restore_best_weights=True` away. What is the loss on the penguins that it has not seen, and whose
#   weights are these?
#
# ## Build

# %%
build.level("05_high_level", linear_regression, dnn_classifier)

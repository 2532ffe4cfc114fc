# %% [markdown]
# # 5 · High-level API
#
# **In this notebook the model owns its training loop. We run `fit` first, and then take it apart.**
#
# This is the level of `tf.keras.Model`, and of torchkeras and Lightning above PyTorch.

# %%
from course import build, compare, figures, tasks
from course.practice import checks

build.watch("05_high_level")
figures.you_are_here(5)

# %% [markdown]
# Five words from below. A **layer** of level 4 is called on rows, and owns its variables. A **loss** is one number for how
# wrong a prediction is. An **optimizer** changes variables, given their gradients; level 3's `GradientTape` finds these. A
# **row number** says which row of an array is meant, and a **dataset** hands out batches: for each step, the rows of a few row
# numbers.
#
# ## A surprise to begin with (8 min)
#
# In Keras a model is made and trained in four lines:
#
# ```python
# dense = Dense(1)
# model = Sequential([dense])
# model.compile(SGD(0.0005), MeanSquaredError())
# model.fit(data)
# ```
#
# Here is all that they need, on top of level 4: a list of layers, each called on what the one before gave, and level 4's loop,
# which moves into a method called `fit`.

# %%
from levels.low_level import GradientTape


class Sequential(list):
    def __call__(self, x):
        for layer in self:
            x = layer(x)
        return x

    def compile(self, optimizer, loss):
        self.optimizer, self.loss = optimizer, loss

    def fit(self, data):
        for x, y in data:
            with GradientTape() as tape:
                loss = self.loss(y, self(x))
            weights = [w for layer in self for w in layer.variables]
            self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        return loss


# %% [markdown]
# We give the layer the starting weights of the other four levels, and here are the lines:

# %%
from levels.mid_level import SGD, Dataset, Dense, MeanSquaredError

task = tasks.linear()
dense = Dense(1, dtype="float64")
dense.build((2,))
dense.set_weights(task.weights)

# %%
model = Sequential([dense])
model.compile(SGD(task.learning_rate), MeanSquaredError())
loss = model.fit(Dataset.from_batches(task.x, task.y, task.batches))
print(f"fit                last loss {float(loss):.4g} ({float(loss).hex()})")

# %% [markdown]
# That is the loss of the last ten rows. (The mean of the last 50 batches is 3.63: ten rows may be unlucky.)
#
# Below us lie four levels: one machine-code program, fourteen launches a step, a tape, layers with an optimizer. All
# four train on the same 8,000 batches.

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "How many digits of this loss do the four levels share with it?",
    choices=["three or four", "all but the last one or two", "all of them"],
    answer="all of them",
    because="They do the same operations in the same order, and the standard IEEE 754 leaves no choice how an addition or a "
    "product is rounded. So there is one answer. We print it in hexadecimal, too, where nothing is rounded for printing.",
)

# %%
from levels import hardware, kernels, low_level, mid_level

for level in (hardware, kernels, low_level, mid_level):
    fit = level.tasks.linear_regression(task.x, task.y, task.weights, task.batches, task.learning_rate)
    print(f"{level.__name__:18} last loss {fit.losses[-1]:.4g} ({float(fit.losses[-1]).hex()})")

# %% [markdown]
# The same number four times more. So this class is a `fit` already. What does it lack?
#
# 1. **Speed.** Nearly all of its time goes by in Python, on the way to the kernels.
# 2. **A memory.** Of 8,000 losses it gives the last.
# 3. **Epochs.** And somebody who says when it is enough.
# 4. **Company.** Nobody can listen, to stop it, to save, to draw.
# 5. **Ease.** Keras takes arrays, and names such as "mse".
#
# Each of these is one small piece. We write them one by one, put them into one loop, and the loop into a model. The third is
# yours, in three blanks.
#
# ## The loop, taken apart (33 min)
#
# ### 1 · Speed: a pass is one call
#
# `fit` above asks Python for each op of each step. Level 3 has a cure: make a `function` of the step, and let its `.over` run
# any number of steps in one call. It wants all rows, and the row numbers of each batch. A dataset of level 4 gives just these:
# `rows()`.

# %%
import math
import time

from levels.low_level import function


def step(x, y):
    with GradientTape() as tape:
        loss = model.loss(y, model(x))
    gradients = tape.gradient(loss, dense.variables)
    model.optimizer.apply_gradients(zip(gradients, dense.variables))
    return loss


# %%
dense.set_weights(task.weights)
arrays, batches = Dataset.from_batches(task.x, task.y, task.batches).rows()
losses = function(step).over(*arrays, batches).numpy()
print(f"the last of {len(losses):,} losses: {losses[-1]:.4g} ({float(losses[-1]).hex()})")


# %% tags=["nbval-ignore-output"]
def seconds(work, *given):
    began = time.perf_counter()
    work(*given)
    return time.perf_counter() - began


few = Dataset.from_batches(task.x, task.y, task.batches[:800])
print(f"a program: {1e6 * seconds(function(step).over, *arrays, batches) / 8000:5.1f} µs a step")
print(f"op by op:  {1e6 * seconds(model.fit, few) / 800:5.1f} µs a step")

# %% [markdown]
# The same bits, all losses in one array, and hardly any time.
#
# ### 2 · A memory
#
# A `History` keeps the losses of all steps, pass by pass, and the numbers of each epoch. Asked for them, it puts them together:
# `losses` is one array, and `history` has a list for each name, as in Keras.

# %%
#| export loops
"""The training loop, written once for all models."""

import numpy as np


class History:
    """What happened during `fit`: the `losses` of all steps, and `history`, {name: [a number for each epoch]}."""

    def __init__(self):
        self.passes, self.epochs = [], []  # arrays of losses; {name: number} of each epoch

    losses = property(lambda self: np.concatenate(self.passes) if self.passes else np.empty(0))

    @property
    def history(self):
        """{"loss": [a number for each epoch], …}"""
        names = dict.fromkeys(name for logs in self.epochs for name in logs)
        return {name: [logs[name] for logs in self.epochs if name in logs] for name in names}

    def __repr__(self):
        last = ", ".join(f"{name} {values[-1]:.4g}" for name, values in self.history.items())
        return f"History of {len(self.losses):,} steps: {last}"


# %%
kept = History()
kept.passes += [np.array([3.0, 2.0]), np.array([1.0])]
kept.epochs += [{"loss": 2.5}, {"loss": 1.0}]
print(kept)
print(kept.history, kept.losses)

# %% [markdown]
# ### 3 · Epochs: what one comes to
#
# An **epoch** shows the model every row once. Its loss is the mean over all rows. Each step gives the mean over its own rows,
# and the last batch may be shorter than the others.

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "An epoch of two steps: 30 rows with a mean loss of 1, then 10 rows with a mean loss of 4. What is the mean over all rows?",
    1.75,
    because="30 rows add up to 30, the other 10 to 40: 70 for 40 rows. The mean of 1 and 4, which is 2.5, would let each row of "
    "the short batch count three times.",
)

# %% [markdown]
# Write it with `np.dot`, which multiplies the two lists number by number and adds the products up.


# %%
#| export loops blank epoch_loss
def epoch_loss(losses, rows):
    """The mean over all rows: step k had the mean losses[k] over rows[k] rows."""
    ...  # 1 line


# %% [markdown]
# <details><summary>Hint</summary>A batch of 30 rows counts three times as much as one of 10.</details>
# <details><summary>Second hint</summary>Add up losses[k] · rows[k], which is <code>np.dot</code>, and divide by the number of
# all rows.</details>
# <details><summary>Solution</summary>
#
# ```python
# def epoch_loss(losses, rows):
#     """The mean over all rows: step k had the mean losses[k] over rows[k] rows."""
#     return float(np.dot(losses, rows)) / sum(rows)
# ```
# </details>

# %%
print(epoch_loss(np.array([1.0, 4.0]), [30, 10]))

# %% [markdown]
# ### 3 · Epochs, one after the other
#
# Now the loop that gave this level its idea. Up to so many epochs, and for each of them: tell that it begins, go through the
# data once, tell that it ends and with which numbers, and stop if that was enough. Who is told, what a pass does and what is
# enough is decided elsewhere: the loop is given three functions.
#
# - `tell("on_epoch_begin", epoch)` and `tell("on_epoch_end", epoch, logs)`, with epochs counted from 0;
# - `one_pass()` returns the numbers of an epoch, `logs`, such as {"loss": 7.0};
# - `ended(epoch, logs)` says whether it was the last.


# %%
#| export loops blank run_epochs
def run_epochs(epochs, tell, one_pass, ended):
    """Up to so many epochs: tell that it begins, go through the data, tell that it ends and with which numbers."""
    ...  # 6 lines


# %% [markdown]
# <details><summary>Hint</summary>One <code>for</code> over <code>range(epochs)</code>, and the lines above in their
# order.</details>
# <details><summary>Second hint</summary>What <code>one_pass()</code> returns goes to <code>tell</code>, then to
# <code>ended</code>; <code>break</code> leaves the loop.</details>
# <details><summary>Solution</summary>
#
# ```python
# def run_epochs(epochs, tell, one_pass, ended):
#     """Up to so many epochs: tell that it begins, go through the data, tell that it ends and with which numbers."""
#     for epoch in range(epochs):
#         tell("on_epoch_begin", epoch)
#         logs = one_pass()
#         tell("on_epoch_end", epoch, logs)
#         if ended(epoch, logs):
#             break
# ```
# </details>
#
# `print` can be told anything. So we can watch the bare loop, with a pass that does nothing and an end after the second epoch:


# %%
def nothing_learned():
    return {"loss": 7.0}


def after_the_second(epoch, logs):
    return epoch == 1


run_epochs(9, print, nothing_learned, after_the_second)

# %% [markdown]
# **A good place to stop.** A pass is one call, and your loop goes through epochs and tells what happens.
#
# ### 3 · Epochs: when to stop
#
# Somebody who listens may set `model.stop_training`: then this epoch was the last. And there is an end that nobody wants, a
# loss that is infinite or no number (NaN). The weights are lost then, so we raise an error that names the cure: most often a
# lower learning rate. But not where `stop_training` is set already: whoever set it has seen the loss.


# %%
#| export loops blank ended
def ended(model, epoch, logs):
    """Whether this epoch was the last: somebody said so. Raises FloatingPointError for a loss that is not finite."""
    ...  # 4 lines


# %% [markdown]
# <details><summary>Hint</summary>Two questions: is the loss finite, and has somebody set
# <code>model.stop_training</code>?</details>
# <details><summary>Second hint</summary><code>math.isfinite(logs["loss"])</code> tells; if it is not, and nobody has stopped
# the training, <code>raise FloatingPointError(…)</code>.</details>
# <details><summary>Solution</summary>
#
# ```python
# def ended(model, epoch, logs):
#     """Whether this epoch was the last: somebody said so. Raises FloatingPointError for a loss that is not finite."""
#     if not model.stop_training and not math.isfinite(logs["loss"]):
#         told = f"fit: the loss is {logs['loss']} after epoch {epoch}"
#         raise FloatingPointError(f"{told}; try a lower learning rate, and look for NaN in the data")
#     return model.stop_training
# ```
# </details>

# %%
from types import SimpleNamespace

going, stopped = SimpleNamespace(stop_training=False), SimpleNamespace(stop_training=True)
print(ended(going, 0, {"loss": 7.0}), ended(stopped, 0, {"loss": 7.0}))
try:
    ended(going, 3, {"loss": math.inf})
except FloatingPointError as error:
    print(error)

# %% [markdown]
# ### 4 · Company: who listens
#
# A listener is a **callback**. This one hears everything and does nothing; others are made from it. (Of single steps nobody can be
# told here, for a pass is one call. `levels_more.high_level`, in the course's second package, cuts it where somebody listens.)


# %%
#| export loops
class Callback:
    """Listens to the training of `self.model`, and ends it by `self.model.stop_training = True`. logs: {"loss": …}"""

    model = None
    on_train_batch_end = None  # on_train_batch_end(self, step, logs): the `fit` of `levels_more.high_level` tells it

    def on_train_begin(self): ...
    def on_epoch_begin(self, epoch): ...
    def on_epoch_end(self, epoch, logs): ...
    def on_train_end(self): ...


# %% [markdown]
# ### 5 · Ease: what was chosen
#
# People say "mse". A `Training` looks such names up in a table, with `known` of `levels/support`, and keeps what was chosen:
# an optimizer and a loss. Its `one_pass(step, data, history)` is our one call of `.over`: the history gets the losses, and back comes
# what the epoch came to. (Metrics, such as "accuracy", are refused: they are in `levels_more.high_level`.)

# %%
#| export loops
from levels.mid_level import LOSSES, OPTIMIZERS, Made
from levels.support.checks import known


class Training(Made):
    """What `compile` chose, and how to go through data with it. Raises NotImplementedError for metrics."""

    def __init__(self, optimizer, loss, metrics=()):
        optimizer, loss = known("optimizer", OPTIMIZERS, optimizer), known("loss", LOSSES, loss)
        self.optimizer = optimizer() if isinstance(optimizer, type) else optimizer
        self.losses = [loss() if isinstance(loss, type) else loss]  # functions, one for each output; here there is one
        if metrics:
            raise NotImplementedError("compile: metrics are for the models of levels_more.high_level")

    def loss(self, model, y, predicted):
        """The loss of a batch."""
        return self.losses[0](y, predicted)

    def one_pass(self, step, data, history=None):
        """Go through the data with a `function`; a history keeps the losses. Gives {"loss": the mean over all rows}."""
        arrays, batches = data.rows()
        losses = step.over(*arrays, batches).numpy()
        if history is not None:
            history.passes.append(losses)
        return {"loss": epoch_loss(losses, [len(batch) for batch in batches])}


# %%
dense.set_weights(task.weights)
chosen = Training(model.optimizer, "mse")
forty = Dataset.from_batches(task.x, task.y, task.batches[:40])
print(f"loss {chosen.one_pass(function(step), forty)['loss']:.6g}")

# %% [markdown]
# Forty batches of ten are all 400 rows, so that was an epoch.
#
# ### The whole loop
#
# All pieces are there. Your loop wants three functions, and here they are. `tell` speaks to each callback, and first tells it
# which model it hears. `one_pass` goes through the data, and notes what the epoch came to. And the third is your `ended`, with
# the model filled in: `functools.partial(ended, model)` is a function of the other two arguments.
#
# Whatever ends the training, an error too, the history holds what was done, and the callbacks hear of the end.

# %%
#| export loops
import functools


def run_training(model, data, epochs, callbacks=(), verbose=0):
    """Train on a Dataset of batches -> `model.history`, a History, however this ends. verbose=1 prints each epoch."""
    history = model.history = History()
    model.stop_training = False
    step = function(model.train_step)  # traced once

    def tell(event, *args):
        for callback in callbacks:
            callback.model = model
            getattr(callback, event)(*args)
        if verbose and event == "on_epoch_end":
            print(history)

    def one_pass():
        history.epochs.append(model.training.one_pass(step, data, history))
        return history.epochs[-1]  # the dict itself: callbacks may add to it

    tell("on_train_begin")
    try:
        run_epochs(epochs, tell, one_pass, functools.partial(ended, model))
    finally:
        tell("on_train_end")
    return history


# %% [markdown]
# It asks its model for little: a `training` and a `train_step`. So anything that has these two will do:

# %%
dense.set_weights(task.weights)
student = SimpleNamespace(training=chosen, train_step=step)
run_training(student, forty, 2, verbose=1)
run_training(student, forty, 198)
print(f"last loss {student.history.losses[-1]:.4g} ({float(student.history.losses[-1]).hex()})")

# %% [markdown]
# 200 times the same 40 batches: 8,000 steps, but not those of the task, whose order is new in each epoch. So this is another
# number.
#
# **A good place to stop.** The loop is whole: it trains anything that has a step.
#
# ## A model (29 min)
#
# What is left is ease. Our student was put together by hand, and its step speaks of one layer, by its name. A **model** brings
# its own `training` and `train_step`. It is a layer, so it has variables, and can be called. It comes in two steps: first a layer
# that can be trained, then one that trains itself.
#
# ### A layer that knows how it is trained
#
# `compile` makes a `Training`. And `train_step` is level 4's loop body, written once for all models.
# Before the first training `_Whole` asks its layers whether they do in it what they say. All of level 4 do.


# %%
#| export models
"""Models that own their training loop."""

from levels.mid_level import Layer


class _Whole(Layer):
    """Made of layers, which are looked at before the first training."""

    looked = False

    def check_parts(self):
        """Raise TypeError where one of its layers would not do what it says in this model."""
        for part in self.named(Layer).values():
            part.check_model(self)

    def run(self, x, training=None):
        """What `call` gives. Before the first training, see `check_parts`."""
        if training and not self.looked:
            self.check_parts()
            self.looked = True
        return super().run(x, training)


# %% [markdown]
# Then what `compile` chooses, and the step:

# %%
#| export models
class Trainable(_Whole):
    """A layer that knows how it is to be trained."""

    def __init__(self, name=None):
        super().__init__(name)
        self.built = True  # there is nothing to make but its layers
        self.chosen = self.history = None

    def compile(self, optimizer="rmsprop", loss="mse", metrics=()):
        """Choose how to train, by names or objects; None is no metric."""
        self.chosen = Training(optimizer, loss, metrics)

    @property
    def training(self):
        """What `compile` chose. Raises RuntimeError where nothing was chosen."""
        if self.chosen is None:
            raise RuntimeError(f"{self.name} is not compiled; call model.compile(optimizer, loss) first")
        return self.chosen

    optimizer = property(lambda self: self.training.optimizer)

    def train_step(self, x, y):
        """Forward, loss, backward, update on a batch -> loss. Yours to override. Raises ValueError for no variables."""
        with GradientTape() as tape:
            loss = self.training.loss(self, y, self(x, training=True))
        variables = self.trainable_variables
        if not variables:
            raise ValueError(f"{self.name} has no variable to train")
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss


# %% [markdown]
# A class of your own would write `call`, what it gives for rows. Our line borrows the dense layer for that, and so owns its
# variables. The same batches again:

# %%
dense.set_weights(task.weights)
line = Trainable()
line.call = dense
line.compile(SGD(task.learning_rate), "mse")
run_training(line, forty, 200)
print(f"last loss {line.history.losses[-1]:.4g} ({float(line.history.losses[-1]).hex()})")

# %% [markdown]
# The student's number. And with arrays, which Keras takes?

# %%
try:
    run_training(line, (task.x, task.y), 1)
except AttributeError as error:
    print(error)

# %% [markdown]
# ### Arrays become batches
#
# The loop wants a Dataset of batches. People have arrays, lists, whole numbers. So `prepared` makes tensors of the model's
# dtype, gives targets a second axis where the model has one, as Keras does, and refuses a NaN, by `check_finite` of `levels/support`.
# (`dtype_for` finds that dtype.)

# %%
#| export models
import copy

from levels.hardware import PLACE
from levels.low_level import Variable, constant, trace
from levels.mid_level import Loss
from levels.support.checks import check_finite


def dtype_for(model, x):
    """The dtype of the model's numbers; of a model that has none yet that of x, if x is of floats, else float32."""
    found = [getattr(part, "dtype", None) for part in (*model.named((Variable, Layer)).values(), x)]
    return next((dtype for dtype in found if dtype in ("float32", "float64")), np.dtype("float32"))


def prepared(model, x, y):
    """Rows x, y as tensors of the model's dtype; y [rows] as [rows, 1] where the model is so. Raises ValueError."""
    dtype, loss = dtype_for(model, x), model.training.losses[0]
    x, y = Dataset.from_tensor_slices((constant(x, dtype), constant(y, dtype))).arrays  # as many rows in each
    check_finite("x", x.numpy())
    check_finite("y", y.numpy())
    given = model(x.numpy()[:32])
    if (*y.shape, 1) == (*y.shape[:1], *given.shape[1:]):
        y = constant(y.numpy()[:, None])
    if isinstance(loss, Loss):  # all targets; and what the model gives for the first rows
        loss.check(y, y)
        loss.check(constant(y.numpy()[:32]), given)
    return x, y


# %% [markdown]
# And `batches_of` puts such rows into batches, shuffled if you like:


# %%
#| export models
def batches_of(model, x, y=None, batch_size=1024, shuffle=False):
    """Arrays x, y, or (x, y), or a Dataset, as a Dataset of batches for this model. Raises TypeError, ValueError."""
    if isinstance(x, Dataset):
        data = copy.copy(x)
        data.arrays = prepared(model, *x.arrays) if isinstance(x.arrays, tuple) else x.arrays
        return data
    parts = x if isinstance(x, tuple) and y is None else (x, y)
    if any(part is None for part in parts):
        raise TypeError(f"x is a {type(x).__name__}, y is missing: give x and y, or a Dataset of batches (x, y)")
    rows = Dataset.from_tensor_slices(prepared(model, *parts))
    return (rows.shuffle(len(rows)) if shuffle else rows).batch(batch_size)


# %%
for rows in prepared(line, [[1, 2], [3, 4]], [True, False]):
    print(rows)

# %% [markdown]
# ### A model
#
# What do people come to this level for? `fit` trains, by calls of what we have. `evaluate` asks how good the model is
# on other rows: the same pass, with a step that updates nothing. `predict` is a call, with no targets at all. And `build` makes the
# variables before there are numbers: a row goes through that has a shape alone. (`flag` and `at_least`, of `levels/support`, refuse a wrong argument.)

# %%
#| export models
from levels.support.checks import at_least, flag


class Model(Trainable):
    """A layer that trains itself: write `call(x)`."""

    def evaluate(self, x, y=None, batch_size=1024):
        """The mean loss over all rows, a float."""
        self.check_parts()
        step = function(lambda x, y: self.training.loss(self, y, self(x)))
        return self.training.one_pass(step, batches_of(self, x, y, batch_size))["loss"]

    def predict(self, x):
        """What it gives for all rows of x, as a NumPy array."""
        return function(lambda rows: self(rows))(constant(x, dtype_for(self, x))).numpy()

    def build(self, input_shape, dtype="float32"):
        """Make all variables: a row of this shape [rows, …] goes through, without numbers. Raises TypeError."""
        if not isinstance(input_shape, (list, tuple)):
            raise TypeError(f"build: shape is {input_shape!r:.60}; expected [rows, …]")
        trace(self, [PLACE.device.spec((1, *input_shape[1:]), dtype)])

    def fit(self, x, y=None, batch_size=32, epochs=1, verbose=1, callbacks=None, *, shuffle=True):
        """Train on arrays x, y or a Dataset of batches -> a History. Raises NotImplementedError for batch callbacks."""
        if any(callback.on_train_batch_end for callback in callbacks or ()):
            raise NotImplementedError(
                "on_train_batch_end: single steps are told by the models of levels_more.high_level"
            )
        self.check_parts()
        data = batches_of(self, x, y, batch_size, flag("fit: shuffle", shuffle))
        return run_training(self, data, at_least(0, "epochs", epochs), callbacks or (), verbose)


# %%
line = Model()
line.call = dense
line.compile(SGD(task.learning_rate), "mse")
print(f"on the test rows: loss {line.evaluate(task.x_test, task.y_test):.4g}")
print("at (1, 1):", line.predict([[1, 1]]))

# %% [markdown]
# The line that made the points gives 2·1 - 3·1 + 3 there, which is 2.
#
# PyTorch has no `fit`: a module is called, and the loop is yours. That is why there are libraries that **wrap** it.
# [torchkeras](https://github.com/lyhue1991/torchkeras) puts a module, a loss and an optimizer into a `KerasModel` with `fit`,
# `evaluate` and `predict`; Lightning asks for a class with a `training_step`. Both do around a module what we do here around
# layers.
#
# The plainest model is the one of the first page. `Sequential` now keeps a list instead of being one, and inherits the rest.
# (`tf.keras.Sequential` · `torch.nn.Sequential`.)


# %%
#| export models
class Sequential(Model):
    """Layers in a row, each called on what the one before gave. Raises TypeError for what is no list of layers."""

    def __init__(self, layers=(), name=None):
        super().__init__(name=name)
        if not hasattr(layers, "__iter__"):
            raise TypeError(f"Sequential: {layers!r:.60}; expected a list of layers")
        self.layers = []
        for layer in layers:
            self.add(layer)

    def add(self, layer):
        """One more layer at the end. Raises TypeError for what is none, and for one that would not work here."""
        if not isinstance(layer, Layer):
            raise TypeError(f"Sequential: {layer!r:.60} is no layer of this level")
        layer.check_model(self)
        self.layers.append(layer)

    def call(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


# %% [markdown]
# Does it pass the first one's check? The same layer, the same weights, the same batches:

# %%
dense.set_weights(task.weights)
model = Sequential([dense])
model.compile(SGD(task.learning_rate), "mse")
model.fit(Dataset.from_batches(task.x, task.y, task.batches))
print(f"fit                last loss {model.history.losses[-1]:.4g} ({float(model.history.losses[-1]).hex()})")

# %% [markdown]
# The same bits (for `fit`, one pass through a Dataset is an epoch, here of 8,000 batches). And a model from the beginning, as
# one writes it: its starting weights and the order of its rows are drawn from `RANDOM`, level 4's source. With a seed they are
# the same in each run of the cell.

# %%
from levels.mid_level import RANDOM

RANDOM.seed(1)
model = Sequential([Dense(1)])
model.compile(SGD(0.0005), "mse")
model.fit(task.x, task.y, batch_size=10, epochs=20, verbose=0)

# %%
print(f"on the test rows: loss {model.evaluate(task.x_test, task.y_test):.4g}")
print(*(w.ravel().round(2) for w in model.get_weights()))

# %% [markdown]
# The points of level 1 have the answer 2, -3 and 3. The slopes are found. The bias, 1.65, is still on its way to 3: these were
# 800 steps, the task has 8,000. `evaluate` took rows that `fit` had never seen. We may also ask it about rows that it was
# trained on.

# %% tags=["hide-input"]
# a question: run me
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
reported = young.fit(task.x, task.y, batch_size=10, verbose=0).history["loss"][-1]
print(f"fit reports {reported:.4g}, evaluate gives {young.evaluate(task.x, task.y):.4g}")

# %% [markdown]
# What can go wrong is said in one sentence, with the cure:

# %%
for wrong in (lambda: model.compile("adm"), lambda: model.fit(task.x, task.y[:300])):
    try:
        wrong()
    except ValueError as error:
        print(error)

# %% [markdown]
# **A good place to stop.** You have a model with `compile`, `fit`, `evaluate` and `predict`.
#
# ## A callback (10 min)
#
# Stop in time, save the best weights, lower the rate, write a log: everybody wants something else around the same loop.
# If the loop knew all of it, nobody could read it. So it only tells its callbacks what happens, in the order of their list. They may
# add to `logs`: a loss on rows that are held out needs nothing new in the loop.


# %%
class HeldOut(Callback):
    def __init__(self, x, y):
        self.x, self.y = x, y

    def on_epoch_end(self, epoch, logs):
        logs["val_loss"] = self.model.evaluate(self.x, self.y)


# %%
history = model.fit(task.x[:40], task.y[:40], epochs=2, callbacks=[HeldOut(task.x_test, task.y_test)])

# %% [markdown]
# (Keras calls this `validation_data`, an argument of `fit`; so does `levels_more`.) The most used callback ends a training that
# has begun to learn by heart, to *overfit*. It watches that loss, and stops when the best epoch is so many epochs old. Keras calls
# it `EarlyStopping`; its heart has ten lines.


# %%
class Patience(Callback):
    def __init__(self, patience):
        self.patience = patience

    def on_train_begin(self):
        self.best, self.best_epoch = math.inf, 0

    def on_epoch_end(self, epoch, logs):
        if logs["val_loss"] < self.best:
            self.best, self.best_epoch = logs["val_loss"], epoch
        elif epoch - self.best_epoch >= self.patience:
            self.model.stop_training = True


# %% [markdown]
# It is an object like any other. So we can play the loop, and tell it what we like.

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "The losses of eight epochs are 5, 4, 3, 3.5, 2.9, 3.2, 3.1, 2.8. With a patience of 2, how many epochs are run?",
    7,
    because="""3.5 is one epoch without a gain, but 2.9 is a new best, and the count starts again. 3.2 and 3.1 are two: the
    seventh epoch is the last. That 2.8 was to come, nobody can know. More patience would have found it, at the price of
    more epochs.""",
)

# %%
waiting = Patience(2)
waiting.model = SimpleNamespace(stop_training=False)
waiting.on_train_begin()
for epoch, loss in enumerate([5, 4, 3, 3.5, 2.9, 3.2, 3.1, 2.8]):
    waiting.on_epoch_end(epoch, {"val_loss": loss})
    print(epoch + 1, loss, waiting.best)
    if waiting.model.stop_training:
        break

# %% [markdown]
# Now a net that can learn by heart: 193 weights, and 60 penguins whose sex it is to say. First 100 epochs without anybody who
# stops it, then the same again, from the same start, with a patience of ten.

# %%
from levels.mid_level import Adam

penguins = tasks.penguins_sex()
few, others = (penguins.x[:60], penguins.y[:60]), (penguins.x_test, penguins.y_test)


def trained(*callbacks):
    RANDOM.seed(1)
    net = Sequential([Dense(32, "relu"), Dense(1, "sigmoid")])
    net.compile(Adam(0.03), "binary_crossentropy")
    net.fit(*few, batch_size=10, epochs=100, verbose=0, callbacks=[HeldOut(*others), *callbacks])
    return net


# %%
patient = Patience(10)
by_heart, stopped = trained(), trained(patient)
for net in (by_heart, stopped):
    epochs, loss = len(net.history.history["loss"]), net.evaluate(*others)
    print(f"{epochs:3} epochs: loss {loss:.4f} on penguins that it has not seen")

# %%
figures.by_heart(by_heart.history.history, patient.best_epoch, patient.patience)

# %% [markdown]
# Left of *best* the net learns about penguins, right of it about these sixty; the stopped net has the weights of *stop*. But
# look at what was asked: the held-out penguins chose the epoch, so their loss is no longer a fair one. For a number to report,
# keep a third part aside. (`function` of level 3 says above that it replays: a layer of 64 units is too wide for its program by rows.)
#
# Eight callbacks like Keras', `EarlyStopping` and `ModelCheckpoint` among them, stand in *more/05_callbacks*.

# %% [markdown]
# ## The two tasks on this level (12 min)
#
# ### Data

# %%
print("x", task.x.shape, " y", task.y.shape, " batches", task.batches.shape)

# %% [markdown]
# ### Model and training

# %%
#| export tasks
"""The two tasks as models: compile, fit."""

from levels.hardware.tasks import Fit
from levels.support.checks import check_inputs, check_task


def _train(model, x, y, weights, batches):
    """A compiled model from given starting weights: one step for each batch."""
    model.build(x.shape, x.dtype)
    model.set_weights(weights)
    losses = model.fit(Dataset.from_batches(x, y, batches), verbose=0).losses  # forward, loss, backward, update

    def predict(x):
        check_inputs(x, weights[0].dtype, len(weights[0]))
        return model.predict(x)

    return Fit(losses, model.get_weights(), predict)


def linear_regression(x, y, weights, batches, learning_rate=0.0005):
    """Mean squared error, stochastic gradient descent; see `Fit` and `check_task` for the shapes."""
    check_task(x, y, weights, batches, learning_rate, units=[1])
    model = Sequential([Dense(1)])  # model
    model.compile(SGD(learning_rate), "mse")

    return _train(model, x, y, weights, batches)


# %%
fit = linear_regression(task.x, task.y, task.weights, task.batches, task.learning_rate)
machine_code = hardware.tasks.linear_regression(task.x, task.y, task.weights, task.batches, task.learning_rate)
print("losses equal: ", bool((fit.losses == machine_code.losses).all()))
print("weights equal:", all((p == q).all() for p, q in zip(fit.weights, machine_code.weights)))
print(f"last loss     {fit.losses[-1]:.4g} ({float(fit.losses[-1]).hex()})")

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
# The points keep close to the grey line, on which a prediction is right: the noise of the data is all that is left. Three
# measures of a penguin tell less of its mass, but most of it.
#
# ### The second task: a net


# %%
#| export tasks
def dnn_classifier(x, y, weights, batches, learning_rate=0.01):
    """features-4-8-1, relu, relu, sigmoid; binary cross-entropy, SGD; see `Fit` and `check_task` for the shapes."""
    check_task(x, y, weights, batches, learning_rate, units=[4, 8, 1])
    model = Sequential([Dense(4, "relu"), Dense(8, "relu"), Dense(1, "sigmoid")])  # model
    model.compile(SGD(learning_rate), "binary_crossentropy")

    return _train(model, x, y, weights, batches)


# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "The net takes 24,000 steps of 100 rows each. In plain Python that is about a minute. And by `model.fit`?",
    "less than ten seconds",
    choices=["less than ten seconds", "about as long as plain Python", "longer: five levels stand on each other"],
    because="""`fit` hands down all steps of a pass in one call, and what runs there is one program of machine instructions, as
    on level 1. Python is asked once a pass.""",
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
    print(
        f"{level:12} last loss {fit.losses[-1]:.4g} ({float(fit.losses[-1]).hex()})   all 61 weights equal level 1's: {same}"
    )

# %%
figures.five_curves(fits)

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "The rings are circles of radius 5 and 8, with normal noise (standard deviation 1, cut at 2). Which share of the test points can the best model get right?",
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
# **A good place to stop.** Five levels train both tasks, to one answer.
#
# ## The five side by side (9 min)
#
# Here is the course on one screen: the columns that you know, for all five levels. The upper levels stand above the lower ones,
# as in the house.
#
# We train each task in eight versions. One is plain Python, `course/reference.py`, the arithmetic that every level has to equal.
# Level 1 has two versions: float64, one number at a time, and float32 with lanes (SIMD). Level 3 has two: op by op (eager), and
# compiled. Versions that go op by op take over from level 1 for the last hundred steps of the net, because plain Python would
# take about a minute for all 24,000.

# %%
from course import reference
from course.figures import tour, widgets

levels = (hardware, kernels, low_level, mid_level)
line_on_all = [reference.linear_regression, *(level.tasks.linear_regression for level in levels), linear_regression]
net_on_all = [reference.dnn_classifier, *(level.tasks.dnn_classifier for level in levels), dnn_classifier]

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "How many different last losses will the eight versions of the line have?",
    2,
    slider=(1, 8, 1),
    because="""Seven compute in float64, the same operations in the same order: plain Python and `fit` end with the same bits. The
    version with lanes computes in float32, which keeps about seven digits, and adds up its rows in another order, lane by lane.
    So it ends near by, with a number of its own.""",
)

# %%
line = compare.measure(task, *line_on_all)
net = compare.measure(rings, *net_on_all, last=100, repeats=1)
compare.side_by_side(line, net)

# %% [markdown]
# Read one row, *update*: each level says the same in its own words. On level 5 one line, the call of `fit`, does the work of four
# rows. **A click on the names of two levels lays these two side by side**, and tells what a step of each is made of.
#
# Seven versions end on the same loss, so it is shown once. **Lines** are those of the task function and of all that it calls in
# its module. A **launch** is one call from above: of one operation on two numbers in plain Python, of one kernel on level 2, of a
# whole training where a compiler has been at work.

# %% [markdown]
# ## What this level cost (6 min)
#
# The losses are equal, so only the time can tell the levels apart.

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "A batch of the line is ten rows of two numbers. Which takes longer for a step?",
    choices=["plain Python, number by number", "tensors, op by op (3 eager)", "they take about the same"],
    answer="tensors, op by op (3 eager)",
    because="160 operations of Python cost less than 17 launches through the door, the tape and the plans. An op pays where "
    "it works on many numbers at once: for the net, with a hundred rows, plain Python takes about ten times as long.",
)

# %% [markdown]
# Each time is predicted first, by the formula of level 1: launches · time of a launch + max(operations / peak, bytes /
# bandwidth). The time of a launch is measured on a small one of the level; where one launch does all the steps, on a training of
# a single step, tracing and assembling included.

# %% tags=["nbval-ignore-output"]
tour.five_levels(line)

# %% [markdown]
# From level 1 on, time rises and falls again. On level 2 and in 3 eager we pay for each call by name, and nearly all of the time is
# that. From 3 compiled on, the floors above hand the loop down to the ground, all steps at once. What they take beyond the
# program of level 1 are the milliseconds in which a step is traced, shared by 8,000 steps. (The net's picture is in `more/05_cost`.)
#
# Last, the course as a slider. It begins where we are, on level 5. **Move the level** down (mouse, or Tab and the arrow keys):
# the code changes, the time moves, the losses do not.

# %% tags=["nbval-ignore-output"]
tasks_measured = {"line": line, "net": net}
widgets.explore(
    lambda level, task: tour.depth(tasks_measured[task], level),
    level=range(1, 6),
    task=["line", "net"],
    start={"level": 5},
    text="One level at a time: its code for the task, its time among those of all, and its losses.",
)

# %% [markdown]
# One answer, at five depths. The house stands: memory and instructions are its ground, kernels the clay, ops that pass one door
# the bricks, parts that own their variables the walls. You can say `fit` in one line, and know what each storey beneath does
# with it.
#
# ## The same in two frameworks (1 min)
#
# The net in the three, on the same batches. Which marks has one line of `fit` taken over in each? (Theirs ran
# on the real libraries. In *more/05_tensorflow* they run here, with one import changed.)

# %%
from course.inspection import framework_programs

framework_programs.beside(rings, dnn_classifier)

# %% [markdown]
# What is not in these programs:
#
# | | TensorFlow | PyTorch | here |
# |---|---|---|---|
# | a model of your own | subclass `tf.keras.Model`, write `call` | subclass `torch.nn.Module`, write `forward` | subclass `Model`, write `call` |
# | one step | `train_step(data)` | `training_step(batch, batch_idx)` in Lightning | `train_step(x, y)` |
# | ask how good, predict | `model.evaluate`, `model.predict` | a loop, `model(x)`, under `torch.no_grad()`; torchkeras has both | `model.evaluate`, `model.predict` |
# | listen | `callbacks=[tf.keras.callbacks.Callback()]` | Lightning's `callbacks=[Callback()]` | `callbacks=[Callback()]` |
#
# ## Where to go from here (1 min)
#
# Each of these is a notebook of its own, of 45 minutes at most, and adds one idea to this level.
#
# | notebook | its idea |
# |---|---|
# | [more/05_tensorflow](more/05_tensorflow.ipynb) | programs for TensorFlow and torchkeras run here, with one import changed |
# | [more/05_callbacks](more/05_callbacks.ipynb) | stop in time, save the best, lower the rate, write a log: eight callbacks; and rows that are held out |
# | [more/05_functional](more/05_functional.ipynb) | a model as a graph of layers, and a step of your own |
# | [more/05_saving](more/05_saving.ipynb) | a model that leaves the house: a file of data without any code |
# | [more/05_onnx](more/05_onnx.ipynb) | to where there is no `levels`: the traced graph in an open standard, and a page for any browser |
# | [more/05_at_work](more/05_at_work.ipynb) | behind an address, in eight bits, on a page where you draw, on a hub |
# | [more/05_table](more/05_table.ipynb) | from a file of numbers, words and gaps to a model that answers whoever asks |
# | [more/05_scikit_learn](more/05_scikit_learn.ipynb) | fifty rules, and all of scikit-learn is ours |
# | [more/05_float32](more/05_float32.ipynb) | where float32 parts from float64, and relus that are dead |
# | [more/05_cost](more/05_cost.ipynb) | one step, opened; the net's times; other libraries; your machine's card |
# | [more/05_machines](more/05_machines.ipynb) | several processes train one net, whatever their number, to the same bits |
#
# ## Exercises (10 min, optional)
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
# ### Without a check
#
# - Write a callback that prints how many seconds each epoch took.
# - Train twice with the same seed, twice with different ones. Which losses are equal? (Where do starting weights come from?
#   Look at `levels.mid_level.RANDOM`.)
#
# ## Build

# %%
build.level("05_high_level", linear_regression, dnn_classifier)

# %% [markdown]
# All five levels stand. Programs for Keras or PyTorch that you know run on them in [more/05_tensorflow](more/05_tensorflow.ipynb)
# and [more/03_torch](more/03_torch.ipynb).

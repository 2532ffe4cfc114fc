# %% [markdown]
# # 5 · High-level API
#
# **In this notebook the model owns its training loop. We run `fit` first, and then take it apart.**
#
# This is the level of `tf.keras.Model`. PyTorch itself has no `fit`, but two libraries add this level to it: Lightning
# and [torchkeras](https://github.com/lyhue1991/torchkeras). The notebook takes two sittings, each of less than an
# hour and a half.

# %%
from course import build, compare, figures, tasks
from course.reader import checks

build.watch("05_high_level")
figures.you_are_here(5)

# %% [markdown]
# Five words from the levels below:
#
# - A **layer** owns its variables, and is called on rows.
# - A **loss** is one number that says how wrong a prediction is.
# - A **`GradientTape`** of level 3 finds the gradients of the loss.
# - An **optimizer** uses these gradients to change the variables.
# - A **dataset** hands out batches: a few rows each, chosen by their row numbers.
#
# ## A surprise to begin with (11 min)
#
# In Keras, four lines make a model and train it:
#
# ```python
# dense = Dense(1)
# model = Sequential([dense])
# model.compile(SGD(0.0005), MeanSquaredError())
# model.fit(data)
# ```
#
# On top of level 4 these lines need only one small class. It calls each layer on the output of the layer before. Level
# 4's training loop moves into a method called `fit`.

# %%
from levels.low_level import GradientTape


class Sequential:
    def __init__(self, layers):
        self.layers = layers

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x

    def compile(self, optimizer, loss):
        self.optimizer = optimizer
        self.loss = loss

    def fit(self, data):
        for x, y in data:
            with GradientTape() as tape:
                loss = self.loss(y, self(x))
            weights = [w for layer in self.layers for w in layer.variables]
            gradients = tape.gradient(loss, weights)
            self.optimizer.apply_gradients(zip(gradients, weights))
        return loss


# %% [markdown]
# The layer gets the starting weights that all levels use:

# %%
from levels.mid_level import SGD, Dataset, Dense, MeanSquaredError

task = tasks.linear()
dense = Dense(1, dtype="float64")
dense.build((2,))
dense.set_weights(task.weights)

# %%
model = Sequential([dense])
model.compile(SGD(task.learning_rate), MeanSquaredError())
loss = model.fit(Dataset.from_batches(task.x, task.y, task.batches[:2000]))
print(f"fit                loss 2,000 is {float(loss):.4g} ({float(loss).hex()})")

# %% [markdown]
# This is the loss of batch 2,000. The task has 8,000 batches, and the four levels below train on all of them. They use
# a program of machine instructions, fourteen kernels per step, a tape, and layers. What is their loss of batch 2,000?

# %%
from levels import hardware, kernels, low_level, mid_level

levels = hardware, kernels, low_level, mid_level
given = task.x, task.y, task.weights, task.batches, task.learning_rate
for level in levels:
    fit = level.tasks.linear_regression(*given)
    there = float(fit.losses[1999])
    print(f"{level.__name__:18} loss 2,000 is {there:.4g} ({there.hex()})")

# %% [markdown]
# All five losses are equal, down to the last bit. Is that only because the task is so simple? We add up the ten rows of
# each batch in the opposite order, which makes no difference on paper.

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "05-reversed",
    "We reverse the order of the ten rows in each batch, and train again. "
    "How many of the 8,000 losses keep all their bits?",
    choices=["all of them", "about a third", "none of them"],
)

# %%
reversed_batches = task.batches[:, ::-1]
turned = mid_level.tasks.linear_regression(*given[:3], reversed_batches, given[4])
print(f"equal losses: {(turned.losses == fit.losses).sum():,} of {len(fit.losses):,}")
print(f"largest relative difference: {abs(turned.losses / fit.losses - 1).max():.0e}")

# %%
checks.answer_to("05-reversed")

# %% [markdown]
# So the task is not too simple. What does our `fit` lack?
#
# - **Speed.** It spends nearly all of its time in Python.
# - **A memory.** It makes 2,000 losses, and returns only the last one.
# - **Epochs.** It makes only one pass through the data, and cannot stop at a good loss.
# - **Callbacks.** Other code cannot follow the training, to stop it or to save the weights.
# - **Convenience.** Keras takes arrays, and names such as "mse".
#
# We write a small piece of code for each of these. Then we put the pieces into one loop, and the loop into a model.
# Three of the pieces are yours to write.
#
# ## The loop, taken apart (35 min)
#
# ### Speed: a pass is one call
#
# In `fit` above, Python calls every op of every step. Level 3 has the cure: it makes a `function` of the step, and the
# method `.over` of this function runs any number of steps in one call. `.over` takes all rows, and the row numbers of
# each batch. A dataset of level 4 gives both with `rows()`.

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
there = float(losses[1999])
print(f"loss 2,000 of {len(losses):,}: {there:.4g} ({there.hex()})")
print(f"the last loss: {losses[-1]:.4g}")


# %% tags=["nbval-ignore-output"]
def seconds(work, *given):
    began = time.perf_counter()
    work(*given)
    return time.perf_counter() - began


few = Dataset.from_batches(task.x, task.y, task.batches[:400])
one_call = seconds(function(step).over, *arrays, batches) / 8000
op_by_op = seconds(model.fit, few) / 400
print(f"one call: {one_call * 1e6:6.1f} µs per step, with the time to compile it")
print(f"op by op: {op_by_op * 1e6:6.1f} µs per step")

# %% [markdown]
# The bits are the same, and a step takes less than a hundredth of the time. The compiler has made one program of all
# steps, so no kernel of level 2 is called. (It cannot do this with every step. If it cannot, it prints a message.)
#
# ### A memory
#
# A `History` keeps two things: the loss of each step, and numbers for each epoch, such as its loss. All losses are in
# one array, `losses`. The numbers of the epochs are in `history`, as in Keras: a dict with one list for each name.

# %%
#| export loops
"""The training loop, written once for all models."""

import numpy as np


class History:
    """The record of a training: the losses of all steps, and numbers for each epoch."""

    def __init__(self):
        self.passes = []  # for each pass an array, the losses of its steps
        self.epochs = []  # for each epoch {name: number}

    @property
    def losses(self):
        """The loss of each step, [steps]."""
        return np.concatenate(self.passes or [np.empty(0)])

    @property
    def history(self):
        """{"loss": [one number per epoch], …}"""
        found = {}
        for logs in self.epochs:
            for name, number in logs.items():
                found.setdefault(name, []).append(number)
        return found

    @property
    def last(self):
        """The last number of each name as text: "loss 7.62, …"."""
        return ", ".join(f"{name} {x[-1]:.4g}" for name, x in self.history.items())

    def __repr__(self):
        return f"History of {len(self.losses):,} steps: {self.last}"


# %%
kept = History()
kept.passes += [np.array([3.0, 2.0]), np.array([1.0])]
kept.epochs += [{"loss": 2.5}, {"loss": 1.0}]
print(kept)
print(kept.history, kept.losses)

# %% [markdown]
# ### The loss of an epoch
#
# An **epoch** shows the model every row once. The loss of an epoch is the mean over all rows. But each step gives only
# the mean over the rows of its batch, and the last batch may be shorter than the others.

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "05-epoch",
    "An epoch has two steps: 30 rows with a mean loss of 1, "
    "then 10 rows with a mean loss of 4. What is the mean over all rows?",
)

# %% [markdown]
# Write this mean with the `dot` of level 1. It multiplies two lists number by number, and adds the products in their
# order. (NumPy's `np.dot` does not say in which order it adds.) `losses.tolist()` makes a list of the losses.

# %%
#| export loops
from levels.hardware import dot  # noqa: F401 (for the blank below)


# %%
#| export loops blank epoch_loss
def epoch_loss(losses, rows):
    """The mean over all rows: step k had a mean loss of losses[k] over rows[k] rows."""
    ...  # 1 line


# %% [markdown]
# <details><summary>Hint</summary>A batch of 30 rows counts three times as much as a batch of 10.</details>
# <details><summary>Second hint</summary>Add up losses[k] · rows[k] with <code>dot</code>, and divide by the number of
# all rows.</details>
# <details><summary>Solution</summary>
#
# ```python
# def epoch_loss(losses, rows):
#     """The mean over all rows: step k had a mean loss of losses[k] over rows[k] rows."""
#     return dot(losses.tolist(), rows) / sum(rows)
# ```
# </details>

# %%
print(epoch_loss(np.array([1.0, 4.0]), [30, 10]))

# %%
checks.answer_to("05-epoch")

# %% [markdown]
# ### One epoch after the other
#
# Now comes the main loop of this level. For each epoch it does four things, in this order: it reports the beginning,
# goes through the data once, reports the end, and asks whether to stop. It calls three functions that are given:
#
# - `tell("on_epoch_begin", epoch)` and `tell("on_epoch_end", epoch, logs)` report an event. Epochs are counted from 0.
# - `one_pass()` goes through the data, and returns the numbers of the epoch as `logs`, such as {"loss": 7.0}.
# - `ended(epoch, logs)` says whether this epoch was the last.


# %%
#| export loops blank run_epochs
def run_epochs(epochs, tell, one_pass, ended):
    """Run epochs until `ended`. Tell when each begins and ends, with its logs."""
    ...  # 6 lines


# %% [markdown]
# <details><summary>Hint</summary>Write one <code>for</code> over <code>range(epochs)</code>, and call the functions in
# the order of the sentence above.</details>
# <details><summary>Second hint</summary>Pass what <code>one_pass()</code> returns to <code>tell</code> and then to
# <code>ended</code>. <code>break</code> leaves the loop.</details>
# <details><summary>Solution</summary>
#
# ```python
# def run_epochs(epochs, tell, one_pass, ended):
#     """Run epochs until `ended`. Tell when each begins and ends, with its logs."""
#     for epoch in range(epochs):
#         tell("on_epoch_begin", epoch)
#         logs = one_pass()
#         tell("on_epoch_end", epoch, logs)
#         if ended(epoch, logs):
#             break
# ```
# </details>
#
# To watch the loop, we give it `print` as `tell`. Here a pass learns nothing, and the second epoch is the last:

# %%
run_epochs(9, print, lambda: {"loss": 7.0}, lambda epoch, logs: epoch == 1)

# %% [markdown]
# **A good place to stop.** A pass through the data is one call, and your loop runs the epochs and reports each of them.
#
# ### When to stop
#
# Training ends after an epoch if other code has set `model.stop_training`. It also ends if the loss is infinite or not
# a number (NaN), because then the weights are lost. Your `ended` takes the model, the epoch and its numbers. It returns
# True or False.


# %%
#| export loops blank ended
def ended(model, epoch, logs):
    """Whether to stop: `model.stop_training` is set, or the loss is not finite."""
    ...  # 1 line


# %% [markdown]
# <details><summary>Hint</summary>Ask two questions: is the loss finite, and is <code>model.stop_training</code>
# set?</details>
# <details><summary>Second hint</summary><code>math.isfinite(logs["loss"])</code> answers the first. Join both with
# <code>or</code>.</details>
# <details><summary>Solution</summary>
#
# ```python
# def ended(model, epoch, logs):
#     """Whether to stop: `model.stop_training` is set, or the loss is not finite."""
#     return model.stop_training or not math.isfinite(logs["loss"])
# ```
# </details>

# %%
from types import SimpleNamespace

going = SimpleNamespace(stop_training=False)
stopped = SimpleNamespace(stop_training=True)
print(ended(going, 0, {"loss": 7.0}))
print(ended(stopped, 0, {"loss": 7.0}))
print(ended(going, 3, {"loss": math.inf}))

# %% [markdown]
# ### Callbacks
#
# A **callback** is an object whose methods are called when the training or an epoch begins or ends. The class below
# does nothing. A callback is derived from it, and overrides the methods that it needs. (Keras also calls callbacks
# after each batch. Our loop cannot, because a whole pass is one call.)


# %%
#| export loops
class Callback:
    """Methods that `fit` calls. To end the training, set self.model.stop_training."""

    model = None

    def on_train_begin(self): ...
    def on_epoch_begin(self, epoch): ...
    def on_epoch_end(self, epoch, logs): ...
    def on_train_end(self): ...


# %% [markdown]
# ### A pass
#
# `one_pass` runs one pass with `.over`. It adds the losses to a history, and returns the numbers of the epoch.
# (`run_training` below calls it for your `run_epochs`. If the step does not return a loss, `check_losses` from
# `levels/support` says so.)

# %%
#| export loops most one_pass
from levels.support.trainings import check_losses


def one_pass(step, data, history=None):
    """Run a step over all batches. Add the losses to `history`. Return the mean."""
    arrays, batches = data.rows()
    losses = step.over(*arrays, batches)
    losses = check_losses(step, losses).numpy()
    if history is not None:
        history.passes.append(losses)
    return {"loss": epoch_loss(losses, [len(batch) for batch in batches])}


# %%
dense.set_weights(task.weights)
forty = Dataset.from_batches(task.x, task.y, task.batches[:40])
print(f"loss {one_pass(function(step), forty)['loss']:.6g}")

# %% [markdown]
# The task has 400 rows. Forty batches of ten show each of them once, so this pass was an epoch.
#
# ### The whole loop
#
# `run_training` puts the pieces together, and gives your `run_epochs` its three functions:
#
# - `tell` calls a method of each callback.
# - `one_epoch` calls `one_pass`, and adds the numbers to the history. With callbacks the step is traced again in each
#   epoch, because a callback may have changed a number that a layer reads.
# - The lambda adds the model to the arguments of your `ended`.
#
# `finally` calls `on_train_end` even after an error. After the loop, `check_last_loss` from `levels/support` raises an
# error if the last loss is not finite. (It does not if `stop_training` is set: then the end was wanted.)


# %%
#| export loops most run_training
from levels.support.checks import check_int
from levels.support.trainings import check_last_loss


def run_training(model, data, epochs, callbacks=(), verbose=0, one_pass=one_pass):
    """Train on a Dataset of batches. Return a History, also `model.history`."""
    epochs = check_int(0, "epochs", epochs)
    history = model.history = History()
    model.stop_training = False
    step = function(model.train_step)

    def tell(event, *args):
        for callback in callbacks:
            callback.model = model
            getattr(callback, event)(*args)
        if verbose and event == "on_epoch_end":
            print(f"Epoch {args[0] + 1}/{epochs}: {history.last}")

    def one_epoch():
        if callbacks:
            step.renew()  # they may have changed what a layer reads
        history.epochs.append(one_pass(step, data, history))
        return history.epochs[-1]  # the dict itself: callbacks may add to it

    tell("on_train_begin")
    try:
        run_epochs(epochs, tell, one_epoch, lambda *now: ended(model, *now))
    finally:
        tell("on_train_end")
    check_last_loss(model, history.epochs)
    return history


# %%
lost = SimpleNamespace(train_step=lambda x, y: step(x, y) * math.inf)
try:
    run_training(lost, forty, 2)
except FloatingPointError as error:
    print(error)

# %% [markdown]
# The loop needs only one thing from its model: a `train_step`. So anything that has one can be trained:

# %%
dense.set_weights(task.weights)
student = SimpleNamespace(train_step=step)
run_training(student, forty, 2, verbose=1)
run_training(student, forty, 198)
last = float(student.history.losses[-1])
print(f"last loss {last:.4g} ({last.hex()})")

# %% [markdown]
# This is not the 9.209 from above. The student saw the same 40 batches 200 times, but the task shuffles its rows in
# each epoch. So the last batch of the task holds other rows.
#
# **A good place to stop.** The loop is complete: it trains anything that has a `train_step`.
#
# ## A model (25 min)
#
# The step of our student works only for the layer `dense`. A **model** brings its own `train_step`. It is itself a
# layer, so it owns variables and can be called.
#
# ### Arrays become batches
#
# The loop needs a Dataset of batches, but Keras also takes arrays and lists, of any kind of number. `prepared` makes
# tensors of them, in the model's dtype, which `dtype_for` finds. If the targets are a list of numbers, and the model
# gives a column, `prepared` makes the targets a column, as Keras does. Two checks come from `levels/support`:
# `check_arrays` refuses arrays of different lengths, and `check_training` refuses a NaN, and targets that do not fit
# the loss.

# %%
#| export models
"""Models that own their training loop."""

import copy

from levels.hardware import PLACE
from levels.low_level import Variable, constant, trace
from levels.mid_level import Layer
from levels.support import trainings
from levels.support.checks import check_bool
from levels.support.inputs import check_arrays


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


# %% [markdown]
# `batches_of` then puts the rows into batches, and shuffles them if it is asked to:


# %%
#| export models
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


# %% [markdown]
# ### A layer that trains itself
#
# A `Model` has six methods:
#
# - `compile` chooses an optimizer and a loss, each as an object or by its name: `chosen` from `levels/support` looks up
#   a name such as "mse" in a table of level 4. Before `compile` there is no optimizer (it is None), and the loss is
#   `uncompiled`, which raises an error.
# - `train_step` is the body of level 4's loop, written once for all models.
# - `fit` makes batches with `batches_of`, and then calls `run_training`.
# - `evaluate` returns the mean loss over given rows. It makes a pass with a step that updates nothing.
# - `predict` calls the model on rows. It needs no targets.
# - `build` makes the variables before there is any data. It traces a call of the model on one row, of which only the
#   shape is known.
#
# `fit` takes these arguments of Keras' `fit`: `x` and `y` (arrays, or a Dataset of batches as `x`), `batch_size`,
# `epochs`, `verbose` (0 or 1), `callbacks` and `shuffle`. (The course's second package, `levels_more`, takes the others
# too.) When one of your layers fails, `@short` leaves our own functions out of the error message. The checks come from
# `levels/support`: each raises an error in one sentence.

# %%
#| export models most Model.train_step
from levels.mid_level import LOSSES, OPTIMIZERS
from levels.support.parts import chosen
from levels.support.tracebacks import short


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


# %% [markdown]
# A derived class defines the method `call`, which computes the prediction for some rows. An attribute that is a layer
# belongs to the model, so the model owns its variables. We train this model on the same batches as the student:


# %%
class Line(Model):
    def __init__(self):
        super().__init__()
        self.dense = dense

    def call(self, x):
        return self.dense(x)


# %%
dense.set_weights(task.weights)
line = Line()
line.compile(SGD(task.learning_rate), "mse")
line.fit(forty, epochs=200, verbose=0)
last = float(line.history.losses[-1])
print(f"last loss {last:.4g} ({last.hex()})")

# %% [markdown]
# This is the student's number, bit for bit. `prepared` takes lists of whole numbers, too, and bools as targets:

# %%
for rows in prepared(line, [[1, 2], [3, 4]], [True, False]):
    print(rows)

# %% [markdown]
# The error for a mistake says what would be right:

# %%
mistakes = [
    lambda: line.compile("adm", "mse"),
    lambda: line.fit(task.x, task.y[:300]),
]
for mistake in mistakes:
    try:
        mistake()
    except ValueError as error:
        print(error)

# %% [markdown]
# The simplest model is `Sequential`, as at the beginning. It only keeps a list of layers, and inherits everything else.


# %%
#| export models most Sequential.call
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


# %% [markdown]
# Does it do what the first version did? Layer, weights and batches are the same:

# %%
dense.set_weights(task.weights)
model = Sequential([dense])
model.compile(SGD(task.learning_rate), "mse")
model.fit(Dataset.from_batches(task.x, task.y, task.batches))
last = float(model.history.losses[-1])
print(f"last loss {last:.4g} ({last.hex()})")

# %% [markdown]
# The bits are the same. (For `fit`, a pass through a Dataset is an epoch.)
#
# Now we train a new model. Its starting weights and the order of its rows are drawn at random, with level 4's `RANDOM`.
# With a seed, each run of the cell draws the same numbers.

# %%
from levels.mid_level import RANDOM

RANDOM.seed(1)
model = Sequential([Dense(1)])
model.compile(SGD(0.0005), "mse")
model.fit(task.x, task.y, batch_size=10, epochs=20, verbose=0)

# %%
print(f"on the test rows: loss {model.evaluate(task.x_test, task.y_test):.4g}")
print("weights:", *(w.ravel().round(2) for w in model.get_weights()))
print("at (1, 1):", model.predict([[1, 1]]).round(2))

# %% [markdown]
# The points were made with 2·x₁ - 3·x₂ + 3, which is 2 at (1, 1). The model has found the slopes 2 and -3. Its bias,
# 1.65, has not reached 3 in these 800 steps, so it gives only 0.66 there.
#
# What if we evaluate a model on the rows that it was trained on?

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "05-young",
    "A model starts with zeros, and is trained for one epoch. "
    "Then it is evaluated on the same rows. Which loss is larger?",
    choices=[
        "the one that fit reports",
        "the one that evaluate gives",
        "neither: same rows, same loss",
    ],
)

# %%
young = Sequential([Dense(1)])
young.compile(SGD(0.0005), "mse")
young.build(task.x.shape, task.x.dtype)
young.set_weights([np.zeros((2, 1)), np.zeros((1, 1))])
young.fit(task.x, task.y, batch_size=10, verbose=0)
reported = young.history.history["loss"][-1]
evaluated = young.evaluate(task.x, task.y)
print(f"fit reports {reported:.4g}, evaluate gives {evaluated:.4g}")

# %%
checks.answer_to("05-young")

# %% [markdown]
# **A good place to stop.** You have a model with `compile`, `fit`, `evaluate` and `predict`. This is the end of the
# first sitting.
#
# The next cell saves what is finished. For the rest it takes the course's cells. Then it trains both models in a fresh
# Python: the line and the net.

# %%
build.so_far("05_high_level")

# %% [markdown]
# ## A callback (12 min)
#
# One user wants to stop in time, another to save the best weights. A loop that did all of this would be too long to
# read. So the loop only calls callbacks. A callback may add numbers to `logs`. This one adds the loss on rows that are
# **held out**: the model is not trained on them.


# %%
class HeldOut(Callback):
    def __init__(self, x, y):
        self.x, self.y = x, y

    def on_epoch_end(self, epoch, logs):
        logs["val_loss"] = self.model.evaluate(self.x, self.y)


# %%
held_out = HeldOut(task.x_test, task.y_test)
history = model.fit(task.x[:40], task.y[:40], epochs=2, callbacks=[held_out])

# %% [markdown]
# In Keras the argument `validation_data` of `fit` does this. (Hence the name `val_loss`.)
#
# A model may begin to **overfit**: it learns its rows by heart, and gets worse on others. A well-known callback stops
# the training then. It watches the held-out loss, and stops when the best epoch was `patience` epochs ago. (Keras calls
# it `EarlyStopping`.)


# %%
class Patience(Callback):
    def __init__(self, patience):
        self.patience = patience

    def on_train_begin(self):
        self.best = math.inf
        self.best_epoch = 0

    def on_epoch_end(self, epoch, logs):
        if logs["val_loss"] < self.best:
            self.best = logs["val_loss"]
            self.best_epoch = epoch
        elif epoch - self.best_epoch >= self.patience:
            self.model.stop_training = True


# %% [markdown]
# We call its methods ourselves, with losses that we make up.

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "05-patience",
    "The losses of eight epochs are 5, 4, 3, 3.5, 2.9, 3.2, 3.1, 2.8. "
    "With a patience of 2, how many of the eight epochs are run?",
)

# %%
waiting = Patience(2)
waiting.model = SimpleNamespace(stop_training=False)
waiting.on_train_begin()
for epoch, loss in enumerate([5, 4, 3, 3.5, 2.9, 3.2, 3.1, 2.8]):
    waiting.on_epoch_end(epoch, {"val_loss": loss})
    print(f"epoch {epoch + 1}: loss {loss}, best {waiting.best}")
    if waiting.model.stop_training:
        break

# %%
checks.answer_to("05-patience")

# %% [markdown]
# Now a net with 193 weights learns the sex of only 60 penguins, so it can learn them by heart. First we train it for
# 60 epochs. Then we start again from the same weights, with a patience of ten. (A note will say that the
# step has too many numbers for one program. So its kernels are called one by one.)

# %%
from levels.mid_level import Adam

penguins = tasks.penguins_sex()
few = penguins.x[:60], penguins.y[:60]
others = penguins.x_test, penguins.y_test


def trained(*callbacks):
    RANDOM.seed(1)
    net = Sequential([Dense(32, "relu"), Dense(1, "sigmoid")])
    net.compile(Adam(0.05), "binary_crossentropy")
    callbacks = [HeldOut(*others), *callbacks]
    net.fit(*few, batch_size=30, epochs=60, verbose=0, callbacks=callbacks)
    return net


# %%
patient = Patience(10)
by_heart = trained()
stopped = trained(patient)
for net in (by_heart, stopped):
    epochs = len(net.history.history["loss"])
    loss = net.evaluate(*others)
    print(f"{epochs:3} epochs: loss {loss:.4f} on penguins that it has not seen")

# %%
figures.by_heart(by_heart.history.history, patient.best_epoch, patient.patience)

# %% [markdown]
# Left of the mark *best* the net learns about penguins. Right of it the net learns only about these sixty. The stopped
# net keeps the weights that it has at the mark *stop*. But the held-out penguins chose the epoch, so their loss is no
# longer a fair test. To report a number, keep a third group of rows that no choice depends on.
#
# ## The two tasks on this level (7 min)
#
# ### Data

# %%
print("x", task.x.shape, " y", task.y.shape, " batches", task.batches.shape)

# %% [markdown]
# ### Model and training
#
# Both tasks train in the same way: `_train` sets the starting weights that all levels share, and calls `fit`. A task
# only chooses its layers, its loss and its rate.

# %%
#| export tasks
"""The two tasks as models, trained with `compile` and `fit`."""

from levels.hardware.tasks import Fit
from levels.support.inputs import check_inputs, check_task


def _train(model, x, y, weights, batches):
    """Train a compiled model from given starting weights, with one step per batch."""
    model.build(x.shape, x.dtype)
    model.set_weights(weights)
    data = Dataset.from_batches(x, y, batches)
    losses = model.fit(data, verbose=0).losses  # forward, loss, backward, update

    def predict(x):
        check_inputs(x, weights[0].dtype, len(weights[0]))
        return model.predict(x)

    return Fit(losses, model.get_weights(), predict)


def linear_regression(x, y, weights, batches, learning_rate=0.0005):
    """Train a line by SGD on the mean squared error. For the shapes, see `Fit`."""
    check_task(x, y, weights, batches, learning_rate, units=[1])
    model = Sequential([Dense(1)])  # model
    model.compile(SGD(learning_rate), "mse")

    return _train(model, x, y, weights, batches)


# %%
fit = linear_regression(*given)
machine_code = hardware.tasks.linear_regression(*given)
weights = zip(fit.weights, machine_code.weights)
print("losses equal: ", bool((fit.losses == machine_code.losses).all()))
print("weights equal:", all((p == q).all() for p, q in weights))
print(f"last loss     {fit.losses[-1]:.4g} ({float(fit.losses[-1]).hex()})")

# %% [markdown]
# `model.fit` and a program of machine instructions agree in all 8,000 losses and in all weights.
#
# ### Result

# %%
figures.regression(task, fit)

# %% [markdown]
# On the grey line a prediction is right. The points lie beside it because of the noise.
#
# The same function fits real data. This line predicts the mass of a penguin from three measures:

# %%
penguins = tasks.penguins_mass()
figures.regression(penguins, linear_regression(*penguins[:2], *penguins[4:7]))

# %% [markdown]
# The points spread further around the grey line, because three measures do not determine the mass.
#
# ### The second task: a net


# %%
#| export tasks
def dnn_classifier(x, y, weights, batches, learning_rate=0.01):
    """Train a net of 4-8-1 units (relu, relu, sigmoid) by SGD. Shapes: see `Fit`."""
    check_task(x, y, weights, batches, learning_rate, units=[4, 8, 1])
    layers = [Dense(4, "relu"), Dense(8, "relu"), Dense(1, "sigmoid")]  # model
    model = Sequential(layers)
    model.compile(SGD(learning_rate), "binary_crossentropy")

    return _train(model, x, y, weights, batches)


# %%
rings = tasks.rings()
trainers = [*(level.tasks.dnn_classifier for level in levels), dnn_classifier]
fits = {}
for level, train_net in zip(figures.LEVELS, trainers):
    fits[level] = fit = train_net(*rings[:2], *rings[4:7])
    weights = zip(fit.weights, fits["hardware"].weights)
    same = all((p == q).all() for p, q in weights)
    last = float(fit.losses[-1])
    print(f"{level:10} last loss {last:.4g} ({last.hex()}), weights of level 1: {same}")

# %%
figures.five_curves(fits)

# %%
figures.classifier(rings, fits["high_level"], scored=True)

# %% [markdown]
# The blue region has corners, because a net of relus draws straight lines and joins them. The rings overlap, so no net
# can be right for all points. The same net on real data predicts the sex of a penguin from four measures:

# %%
sex = tasks.penguins_sex()
figures.confusion(sex, dnn_classifier(*sex[:2], *sex[4:7]))

# %% [markdown]
# The net is wrong on seven of the 73 penguins that it has not seen.
#
# **A good place to stop.** All five levels train both tasks, and give the same numbers.
#
# ## What this level cost (10 min)
#
# We train each task in eight versions, and measure them. One version is plain Python, `course/reader/reference.py`, which
# defines the arithmetic of all levels. Level 1 has two versions, in float64 and in float32. Level 3 has two: op by op
# (eager), and compiled. (To save time, plain Python, level 2 and 3 eager train only the last thousand steps of the line,
# and the last fifty of the net. They start from the weights that level 1 has by then.)

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "05-eight",
    "How many different last losses will the eight versions of the line have?",
    slider=(1, 8, 1),
)

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "05-python-or-ops",
    "A batch of the line is ten rows of two numbers. Which takes longer for a step?",
    choices=[
        "plain Python, number by number",
        "tensors, op by op (3 eager)",
        "they take about the same",
    ],
)

# %%
from course import reference
from course.reader.inspection import tour

regressions = [*(level.tasks.linear_regression for level in levels), linear_regression]
line = compare.measure(task, reference.linear_regression, *regressions, last=1000)
net = compare.measure(rings, reference.dnn_classifier, *trainers, last=50, repeats=1)

# %% [markdown]
# The predictions come from the formula of level 1: launches · time of a launch + max(operations / peak, bytes /
# bandwidth). For a compiled version, one launch runs all steps. The time of this launch is measured: it is that of a
# training with a single step, with tracing and assembling.
#
# **Lines** counts the lines of code that make up one step. A **launch** is one call into the level below. In plain
# Python it does one operation on two numbers. On level 2 and in 3 eager it runs one kernel. In a compiled version it
# runs the whole training, or on level 5 a large piece of it.

# %% tags=["nbval-ignore-output"]
tour.five_levels(line)

# %%
checks.answer_to("05-eight")

# %%
checks.answer_to("05-python-or-ops")

# %% [markdown]
# From level 1 upwards the time first rises, then falls. On level 2 and in 3 eager the calls from Python take nearly all
# of the time. From 3 compiled on, one program runs all steps. For the line it takes longer than level 1, because one
# step is traced first, which takes milliseconds. A step of the net is longer, so there this hardly counts:

# %% tags=["nbval-ignore-output"]
tour.five_levels(net)

# %% [markdown]
# ## Side by side (10 min)
#
# The table shows one training step, written on each of the five levels: 1 and 2 above, 3 to 5 below. Its rows are the
# parts of a step. **A click on the names of two levels shows these two side by side**, and
# says what a step of each consists of.

# %%
compare.side_by_side(line, net)

# %% [markdown]
# Read the row *update* as an example: each level does the same in its own terms. On level 5 one line, the call of
# `fit`, does the work of four rows.
#
# ### From fit to the multiply
#
# What happens between `fit` and the multiplication that changes a weight? `fit` runs your step once, with symbols. The
# door of level 3 writes down the ops of the step. The compiler turns them into instructions of level 1. One call runs
# all steps. If the compiler cannot do that for a step, its kernels are launched one by one.
#
# We follow one step down, with the numbers of one row and one weight. Each stage is named by its level: 5a and 5b are
# on level 5. **Choose a stage** with the mouse or the arrow keys. The links lead to the cells that wrote the code.

# %% tags=["nbval-ignore-output"]
from course.reader.inspection import walk

walk.down((task, linear_regression), (rings, dnn_classifier))

# %% [markdown]
# What were equal bits on five levels good for? A test with a tolerance lets small mistakes pass. A test for equality
# lets none pass. So you can replace any part, and check everything above it again. Results of other frameworks [may
# differ in their last bits](https://docs.pytorch.org/docs/stable/notes/numerical_accuracy.html), between releases and
# between machines: sums are split in other places, or a [fused
# multiply-add](https://docs.nvidia.com/cuda/floating-point/index.html) rounds once instead of twice.
#
# ## The same in TensorFlow and PyTorch (1 min)
#
# Here is the net in TensorFlow, PyTorch and `levels`, on the same batches. Where does one line do the work of four
# rows? (The first two [run on `levels`](more/05_tensorflow.ipynb), too.)

# %%
from course.reader.inspection import framework_programs, real_ones

framework_programs.beside(rings, dnn_classifier)

# %% [markdown]
# Six questions, with places in their source and ours:

# %% tags=["hide-input"]
real_ones.table(5)

# %% [markdown]
# Not in the programs:
#
# | | TensorFlow | PyTorch | here |
# |---|---|---|---|
# | a model of your own | subclass `tf.keras.Model`, write `call` | subclass `torch.nn.Module`, write `forward` | subclass `Model`, write `call` |
# | one step | `train_step(data)` | `training_step(batch, batch_idx)` in Lightning | `train_step(x, y)` |
# | evaluate and predict | `model.evaluate`, `model.predict` | a loop, `model(x)`, under `torch.no_grad()`; torchkeras has `evaluate` | `model.evaluate`, `model.predict` |
# | callbacks | `callbacks=[tf.keras.callbacks.Callback()]` | Lightning's `callbacks=[Callback()]` | `callbacks=[Callback()]` |
#
# Numbers that differ ([more/05_differences](more/05_differences.ipynb)):
# [a quarter of ten](more/05_differences.ipynb#a_quarter_of_ten_rows),
# [a patience of 1](more/05_differences.ipynb#patience_of_a_plateau),
# [after a NaN](more/05_differences.ipynb#early_stopping_after_a_nan),
# [the loss of `fit`](more/05_differences.ipynb#loss_of_fit_and_of_evaluate).
#
# ## What you do differently now (1 min)
#
# You read `fit` as three loops: over epochs, over batches, over layers. When `fit` does not do what you need, you write
# a `train_step`. `fit` reports a mean of batch losses, taken while the weights move, so you compare models with
# `evaluate`. You keep rows that no choice depends on. When a training is slow, you walk down from `fit`, and find where
# the time goes.
#
# ## Exercises (optional)
#
# ### 05-1 · Until it is good enough
#
# Train the model one epoch after the other. Stop when the mean loss that `fit` reports for an epoch is below `bound`,
# or after `most` epochs. Go through the rows in their order, ten at a time: `fit(x, y, batch_size=10, shuffle=False,
# verbose=0)`.
#
# ```
# epoch            1      2      3      4
# mean loss     7.62   6.10   4.89   3.92          bound 5, most 20:  three epochs
#                                                  bound 5, most 2:   two epochs
# ```
#
# (This takes about 5 lines. Hint: a second call of `fit` continues with the weights that the model has, and with the
# optimizer's memory.)

# %%
from course.reader import exercises

exercises.begin("05-1")


def fit_until(model, x, y, bound, most):
    """Train the compiled model until an epoch's mean loss is below `bound`.

    Return how many epochs that took.
    """
    return ...


exercises.check("05-1", fit_until)

# %% [markdown]
# With a callback that sets `stop_training`, one call of `fit` is enough. Which of the two would you rather read?
#
# ### Without a check
#
# - Write a callback that prints how many seconds each epoch took.
# - Train twice with the same seed, and twice with different seeds. Which losses are equal? (The starting weights come
#   from `levels.mid_level.RANDOM`.)
#
# ## Where to go from here
#
# Each of these notebooks adds one idea to this level, and takes about an hour at most.
#
# | notebook | its idea |
# |---|---|
# | [more/05_tensorflow](more/05_tensorflow.ipynb) | programs for TensorFlow and torchkeras run here, with one import changed |
# | [more/05_callbacks](more/05_callbacks.ipynb) | eight callbacks: stop in time, save the best weights, lower the rate, write a log; and rows that are held out |
# | [more/05_functional](more/05_functional.ipynb) | a model as a graph of layers, and a step of your own |
# | [more/05_saving](more/05_saving.ipynb) | a model is saved as a file of data, without any code |
# | [more/05_onnx](more/05_onnx.ipynb) | a model runs where there is no `levels`: as an ONNX file, and as a page in any browser |
# | [more/05_at_work](more/05_at_work.ipynb) | a model behind a web address, with eight-bit weights, on a page where you draw, and on a hub |
# | [more/05_table](more/05_table.ipynb) | from a file of numbers, words and gaps to a model that answers requests |
# | [more/05_scikit_learn](more/05_scikit_learn.ipynb) | estimators that pass scikit-learn's tests, and work with all of scikit-learn |
# | [more/05_cost](more/05_cost.ipynb) | the parts of one step, other libraries, where float32 and float64 part, and a summary of your machine |
# | [more/05_differences](more/05_differences.ipynb) | where the same line gives another number in another library, or in its next release |
# | [more/05_machines](more/05_machines.ipynb) | any number of processes train one net, and end on the same bits |
# | [more/05_text](more/05_text.ipynb) | a small transformer learns to write, on your ops and on your kernel |
#
# ## Build

# %%
build.level("05_high_level", linear_regression, dnn_classifier)

# %% [markdown]
# All five levels are built. Programs that you know from Keras or PyTorch run on them, in
# [more/05_tensorflow](more/05_tensorflow.ipynb) and [more/03_torch](more/03_torch.ipynb).

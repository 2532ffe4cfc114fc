# %% [markdown]
# # 05 more · Callbacks
#
# **In this notebook callbacks act while `fit` runs: they stop it in time, save the best weights, lower the rate, write
# a log.**
#
# You need notebook 05 (`fit`, `Callback`) for this. The code is that of `levels_more/high_level/callbacks.py` and
# `levels_more/high_level/loggers.py`. Nothing is exported.
#
# It uses safetensors and tensorboardX, which `python3 -m course setup` adds.

# %%
from course import build, figures

build.watch("more/05_callbacks", "safetensors", "tensorboardX")
figures.you_are_here(5)

# %% tags=["hide-input"]
# The imports of this notebook: you may skip this cell.
import tempfile
from pathlib import Path

import numpy as np

from course import tasks
from course.reader import checks
from course.reader.figures import page
from levels_more.high_level import Callback, Sequential
from levels_more.high_level.callbacks import (
    EarlyStopping,
    LearningRateScheduler,
    ModelCheckpoint,
    Monitor,
    ReduceLROnPlateau,
    TerminateOnNaN,
)
from levels_more.high_level.loggers import CSVLogger, TensorBoard, graph_of
from levels_more.mid_level import RANDOM, SGD, Adam, Dense

task = tasks.linear()
place = tempfile.TemporaryDirectory()  # deleted when this kernel ends
folder = Path(place.name)

# %% [markdown]
# ## Callbacks (22 min)
#
# People want many things from a training loop: to stop in time, to save the best weights, to lower the rate, to write a
# log. If the loop did all of that itself, it would be unreadable. So the loop only calls its callbacks at certain
# moments. Here is a callback that prints what it is told:


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
# The most common callback stops a training before it overfits. Several callbacks share a first step: they **monitor** a
# number and find out whether it has improved. A loss improves when it falls, an accuracy when it rises.

# %%
page.source(Monitor)

# %%
watching = Monitor("val_loss")
watching.on_train_begin()
try:
    print([watching.better({"val_loss": loss}) for loss in (3.5, 3.9, 3.2)])
    watching.better({"loss": 3.1})
except ValueError as error:
    print(error)

# %% [markdown]
# `EarlyStopping` counts the epochs since the best one. When there are `patience` of them, it stops the loop.

# %%
page.source(EarlyStopping)

# %% [markdown]
# A callback is an ordinary object. So we can call its methods ourselves, in place of the loop, with losses that we
# choose.

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "05-callbacks-patience",
    "The losses of eight epochs are 5, 4, 3, 3.5, 2.9, 3.2, 3.1, 2.8. With `patience=2`, how many epochs are run?",
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

# %%
checks.answer_to("05-callbacks-patience")

# %% [markdown]
# Now we take a net that can overfit: 193 weights, and 60 penguins whose sex it has to predict. First we train it for
# 100 epochs without a callback. Then we train it from the same start with a patience of ten.

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
    epochs, loss = len(net.history.history["loss"]), net.evaluate(*others)
    print(f"{epochs:3} epochs: loss {loss:.4f} on penguins that the net has not seen")

# %%
figures.by_heart(trained().history.history, stopping.best_epoch, stopping.patience)

# %% [markdown]
# Up to the mark the net learns about penguins in general; after it, only about these sixty. The second run went on for
# ten epochs without a gain, and then restored the weights of the best epoch. But the held-out penguins were used to
# choose the epoch. So their loss is no longer a fair estimate. To report a number, keep a third part of the data for it.
#
# What happens if a callback fails? Its error is raised from `fit`, and what was learned so far is kept.


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
# Ctrl-C, or Lab's stop button, ends a training in the same way.
#
# **A good place to stop.** A callback watches a training, stops it in time and restores the best weights.

# %% [markdown]
# ## More callbacks (23 min)
#
# `ModelCheckpoint` saves the model after each epoch, or only after an epoch that is the best so far. The name of its
# folder may contain the epoch, counted from 1, and the epoch's losses and metrics.

# %%
page.source(ModelCheckpoint)

# %%
best = ModelCheckpoint(folder / "runs" / "best-{epoch:02d}", "loss", save_best_only=True)
student.fit(task.x, task.y, epochs=2, verbose=0, seed=1, callbacks=[best])
print(*sorted(path.name for path in (folder / "runs").iterdir()))

# %% [markdown]
# Two callbacks change the learning rate. The rate is a variable of the optimizer, so no program is compiled again.
# `ReduceLROnPlateau` waits like `EarlyStopping`, then lowers the rate. `LearningRateScheduler` calls a function of
# ours before each epoch. Both add the rate to the numbers of the epoch, so that it is in the history.

# %%
page.source(ReduceLROnPlateau, LearningRateScheduler)

# %%
slowing = Sequential([Dense(1)])
slowing.compile(SGD(0.0005), "mse")
halve = LearningRateScheduler(lambda epoch, rate: rate / 2 if epoch and epoch % 4 == 0 else rate)
print(*slowing.fit(task.x, task.y, epochs=10, verbose=0, seed=1, callbacks=[halve]).history["learning_rate"])

# %% [markdown]
# The shortest callback stops a training whose loss has become infinite or NaN. `fit` alone would raise an error there.

# %%
page.source(TerminateOnNaN)

# %%
lost = Sequential([Dense(1)])
lost.compile(SGD(1.0), "mse")
lost.fit(task.x, task.y, epochs=50, verbose=0, seed=1, callbacks=[TerminateOnNaN()])

# %% [markdown]
# `CSVLogger` writes one line per epoch into a table that any program can read.

# %%
student.fit(task.x, task.y, epochs=3, verbose=0, seed=1, callbacks=[CSVLogger(folder / "log.csv")])
print(*(line.split(",")[0] for line in (folder / "log.csv").read_text().splitlines()))

# %% [markdown]
# `TensorBoard` writes the files that the tool of that name displays: the curves of training and validation, the
# distribution of the weights, and the model as a graph of ops. The graph is the trace of level 3. Each op is listed
# under the layer whose variable it used last.

# %%
page.source(graph_of)

# %% [markdown]
# The library tensorboardX writes the files. It is imported only when the first line is written.

# %%
page.source(TensorBoard)

# %%
net = trained()
logs = folder / "logs"
net.fit(*few, epochs=20, verbose=0, seed=1, validation_data=others, callbacks=[TensorBoard(logs, histogram_freq=5)])
print(*sorted(path.parent.name for path in logs.glob("*/*")))
for node in graph_of(net).node:
    print(f"{node.name:24}", *node.input)

# %% [markdown]
# To look at them, run `pip install tensorboard`, then `tensorboard --logdir` with the name of the folder.

# %% [markdown]
# ## Exercises (40 min, optional)
#
# ### 05-2 · A callback that averages
#
# Near the end of a training the weights jump around the best point. Their mean over the epochs is nearer to that point
# than most of them ([Polyak and Juditsky, 1992](https://doi.org/10.1137/0330046); [Izmailov et al.,
# 2018](https://doi.org/10.48550/arXiv.1803.05407), for deep nets).
#
# ```
# epoch                    1      2      3      end of the training
# a weight after it      4.0    7.0    1.0      4.0: their mean
# ```
#
# (The first epochs are still far from the best point and would spoil the mean. So train without this callback first,
# then with it.) During the training, the model must go on from its own weights and not from the mean. A callback may be
# used for a second training, and a training may end before its first epoch is complete. (About 9 lines. Hint:
# `self.model.get_weights()` is a list of arrays, one per variable.)

# %%
from course.reader import exercises

exercises.begin("05-2")


class Averaged(Callback):
    """At the end of the training, set each weight to the mean of its values after the epochs."""

    def on_train_begin(self): ...

    def on_epoch_end(self, epoch, logs): ...

    def on_train_end(self): ...


exercises.check("05-2", Averaged)

# %% [markdown]
# ### 05-4 · Break it: the last fifth
#
# Is a penguin a Chinstrap? The model is one unit, its inputs are the three measures of the race on level 4, and
# `validation_split` holds out a fifth of the table.

# %% tags=["hide-input"]
# a question: run me
from course.reader import checks

checks.predict(
    "05-callbacks-chinstraps",
    "After 20 epochs the model is right about all penguins that it was trained on. How many of the held-out ones does it get right?",
    choices=["about all", "about nine of ten", "about none"],
)

# %%
from course import tasks
from course.reader import exercises

exercises.begin("05-4")

table = [row[:3] for row in tasks.penguins() if None not in row[:4]]
x = np.array(table)
x = (x - x.mean(axis=0)) / x.std(axis=0)
chinstrap = np.array([[0.0]] * (len(x) - 68) + [[1.0]] * 68)  # the last 68 lines of the table

RANDOM.seed(1)
unit = Sequential([Dense(1, "sigmoid")])
unit.compile(Adam(0.05), "binary_crossentropy", ["accuracy"])
logs = unit.fit(x, chinstrap, epochs=20, validation_split=0.2, seed=1, verbose=0).history
print(f"right: {logs['accuracy'][-1]:.3f} of the training rows, {logs['val_accuracy'][-1]:.3f} of the held-out rows")

# %%
checks.answer_to("05-callbacks-chinstraps")

# %% [markdown]
# `fit` shuffles, but only the rows that are left after the split, as Keras does. So hold out rows yourself, drawn at
# random from all rows. Each row goes into exactly one of the two parts, and x and y stay together. `int(rows · share)`
# rows are for the test, and the same seed gives the same rows. (About 3 lines. Hint:
# `np.random.default_rng(seed).permutation(n)` gives the numbers from 0 to n - 1 in random order.)

# %%
from course.reader import exercises

exercises.begin("05-4")


def held_out(x, y, share, seed):
    """x, y, x_test, y_test: the test gets a share of the rows of x[rows, columns] and y[rows, 1], drawn at random."""
    return ...


exercises.check("05-4", held_out)

# %% [markdown]
# Once the check says that it is right, train a new unit on your parts, with `validation_data`. It reaches about 0.95 on
# both.

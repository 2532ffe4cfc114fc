# %% [markdown]
# # 05 more · Callbacks
#
# **In this notebook others listen to `fit`: they stop it in time, save the best, lower the rate, write a log.**
#
# It needs notebook 05 (`fit`, `Callback`) and takes `levels_more/high_level/callbacks.py` apart. Nothing is exported. (The cell
# after the next one is folded. It imports what is used below.)
#
# It uses safetensors and tensorboardX, which `python3 -m course setup` adds.

# %%
from course import build, figures

build.watch("more/05_callbacks", "safetensors", "tensorboardX")
figures.you_are_here(5)

# %% tags=["hide-input"]
import tempfile
from pathlib import Path

import numpy as np

from course import tasks
from course.figures import page
from course.practice import checks
from levels_more.high_level import Callback, Sequential
from levels_more.high_level.callbacks import (
    CSVLogger,
    EarlyStopping,
    LearningRateScheduler,
    ModelCheckpoint,
    Monitor,
    ReduceLROnPlateau,
    TensorBoard,
    TerminateOnNaN,
    graph_of,
)
from levels_more.mid_level import RANDOM, SGD, Adam, Dense

task = tasks.linear()
place = tempfile.TemporaryDirectory()  # it goes when this kernel ends
folder = Path(place.name)

# %% [markdown]
# ## Callbacks (22 min)
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
# `EarlyStopping` waits. When the best epoch is `patience` epochs old, it stops the loop.

# %%
page.source(EarlyStopping)

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
    epochs, loss = len(net.history.history["loss"]), net.evaluate(*others)
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
# **A good place to stop.** A callback listens to a training, ends it in time and takes the best weights back.

# %% [markdown]
# ## More callbacks (27 min)
#
# `ModelCheckpoint` saves the model after each epoch, or after each that was the best so far. The name of the folder may
# hold the epoch, counted from 1, and its numbers.

# %%
page.source(ModelCheckpoint)

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
page.source(ReduceLROnPlateau, LearningRateScheduler)

# %%
slowing = Sequential([Dense(1)])
slowing.compile(SGD(0.0005), "mse")
halve = LearningRateScheduler(lambda epoch, rate: rate / 2 if epoch and epoch % 4 == 0 else rate)
print(*slowing.fit(task.x, task.y, epochs=10, verbose=0, seed=1, callbacks=[halve]).history["learning_rate"])

# %% [markdown]
# The shortest of them ends a training that has lost its way, without the error that `fit` would raise.

# %%
page.source(TerminateOnNaN)

# %%
lost = Sequential([Dense(1)])
lost.compile(SGD(1.0), "mse")
lost.fit(task.x, task.y, epochs=50, verbose=0, seed=1, callbacks=[TerminateOnNaN()])

# %% [markdown]
# `CSVLogger` writes a line for each epoch into a table that any program can read.

# %%
page.source(CSVLogger)

# %%
student.fit(task.x, task.y, epochs=3, verbose=0, seed=1, callbacks=[CSVLogger(folder / "log.csv")])
print(*(line.split(",")[0] for line in (folder / "log.csv").read_text().splitlines()))

# %% [markdown]
# `TensorBoard` writes what the tool of that name shows: the curves of training and validation over each other, how the
# weights are spread, and the model as a graph of ops. The graph is level 3's trace, with each op filed under the layer
# whose variable it met last. (The next two cells are folded. A click opens them.)

# %%
page.source(graph_of)

# %% [markdown]
# The files themselves are written by a library, tensorboardX. It is loaded in the moment in which the first line is
# written, so nobody else waits for it.

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
# To look at them: `pip install tensorboard`, then `tensorboard --logdir` and the name of the folder.

# %% [markdown]
# ## Exercises (40 min, optional)
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

# %% [markdown]
# # 05 more · Where float32 parts from float64
#
# **In this notebook one start leads to two different trainings, because a relu has a kink; and a layer of relus dies.**
#
# You need the two tasks of notebook 05 for this. Nothing is exported.

# %%
from course import build, figures

build.watch("more/05_float32")
figures.you_are_here(5)

# %% tags=["hide-input"]
# The imports of this notebook: you may skip this cell.
import numpy as np

from course import tasks
from levels_more import hardware
from levels_more.high_level import Sequential
from levels_more.low_level import GradientTape, Variable
from levels_more.mid_level import SGD, Dense

rings = tasks.rings()

# %% [markdown]
# ## Where float32 parts from float64 (4 min)
#
# In float32 the levels need not agree to the last bit, because a program with lanes adds in another order. From the
# course's own start, the losses stay within 1/10,000 of those in float64 over the first 2,000 steps. From some other
# starts they do not. Here is one of them. We train in both formats, one step per call, and record two things. The
# `gaps` are the distances between the weights of the two runs. The `kinks` are the steps in which the input of some
# relu is positive in one run but not in the other.


# %%
def into_relus(weights, x):
    """The inputs of all twelve relus, for each row of x."""
    w1, b1, w2, b2, *_ = weights
    z1 = x @ w1 + b1
    return np.hstack([z1, np.maximum(z1, 0) @ w2 + b2])


# %% tags=["nbval-ignore-output"]
start = [np.array(w) for w in tasks.make_weights((2, 4, 8, 1), seed=30)]
runs, gaps, kinks = {"f8": start, "f4": [w.astype("f4") for w in start]}, [], []
for step, rows in enumerate(rings.batches[:400]):
    signs = []
    for dtype, weights in runs.items():
        x, y = rings.x.astype(dtype), rings.y.astype(dtype)
        signs.append(into_relus(weights, x[rows]) > 0)
        fit = hardware.tasks.dnn_classifier(x, y, weights, rows[None], rings.learning_rate)
        runs[dtype] = fit.weights
    gaps.append(max(float(np.abs(p - q).max()) for p, q in zip(*runs.values())))
    if (signs[0] != signs[1]).any():
        kinks.append(step)
figures.parting(gaps, kinks)

# %% [markdown]
# For many steps the gap stays near the rounding error of float32, one part in a million or less. Then one input of one
# relu is so close to zero that the two formats round it to different sides. One run passes its gradient on, and the
# other passes none. That is no longer a rounding error, because the gradient of a whole row is missing. From then on
# the two runs differ, and the same happens again and again. Neither run is wrong. Both learn the rings.

# %% [markdown]
# ## Exercises (20 min, optional)
#
# ### 05-3 · Break it: a net that gives every point the same answer
#
# We train on the two rings again, for 20 epochs, at three learning rates. The last rate shows a symptom:

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
# At rate 1 the loss stops near log 2 = 0.693, the loss of a coin toss, and the net gives all points the same probability.
# No number is infinite or NaN, and no program reports an error. `summary` lists all layers and all 61 trainable
# numbers. So we look at the gradients (`test_step` returns the loss and updates nothing):

# %%
for rate in (0.1, 1.0):
    with GradientTape() as tape:
        loss = nets[rate].test_step(points.x, points.y)
    slopes = tape.gradient(loss, nets[rate].variables)
    reached = [name for name, slope in zip(nets[rate].named(Variable), slopes) if slope.numpy().any()]
    print(f"rate {rate}: a gradient reaches", *reached)

# %% [markdown]
# Only the last bias still gets a gradient, so no other number will ever change. Find the cause, layer by layer: give
# the points to the first layer, its output to the second, and so on, and look for units that return 0 for **every**
# point. Such a relu is **dead**. Where it returns 0, it passes no gradient on, neither to its own weights nor to the
# layers before it. (About 5 lines. Hint: `model.layers` is a list, a layer is called like a function, and `.numpy()`
# turns its output into an array.)

# %%
from course.practice import exercises

exercises.begin("05-3")


def dead_units(model, x):
    """A list of ints: for each layer of a Sequential, how many of its units return 0 for all rows of x[rows, inputs]."""
    return ...


exercises.check("05-3", dead_units)

# %% [markdown]
# Once the check says that it is right, apply your function to the three nets. One dead unit of eight does no harm, but
# eight dead units of eight end the training. A callback with `on_train_batch_end` can print the number whenever it
# changes. You will see units die and come back, because the first layer still changes and with it their inputs. In step
# 125 all eight are dead at once, and the first layer stops changing, too. So the cause was the rate: the steps were too
# long. (Which other cure do you know?)

# %% [markdown]
# # 05 more · Where float32 parts from float64
#
# **In this notebook one start becomes two trainings, because a relu has a corner; and a layer of relus dies.**
#
# It needs the two tasks of notebook 05. Nothing is exported. (The cell
# after the next one is folded. It imports what is used below.)

# %%
from course import build, figures

build.watch("more/05_float32")
figures.you_are_here(5)

# %% tags=["hide-input"]
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
# In float32 the levels need not agree to the last bit: a program with lanes adds in another order. From the course's
# own start the losses stay within 1/10,000 of those in float64 over the first 2,000 steps. From some other starts they
# do not. Here is one. We train in both formats, a call for each step, and look at two things: how far the weights are
# apart, the `gaps`, and in which steps a relu sees a positive number in one run and none in the other, the `kinks`.


# %%
def into_relus(weights, x):
    """What goes into each of the twelve relus, for each row of x."""
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
# For many steps the gap stays near the rounding of float32, one part in a million or less. Then one input of one relu
# lies so close to zero that the two formats round it to different sides. One run passes its gradient on, the other
# passes none. That is no rounding error any more: the gradient of a whole row is there or is not. From then on they are
# two runs, and it happens again and again. Neither is wrong. Both learn the rings.

# %% [markdown]
# ## Exercises (20 min, optional)
#
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
# the gradients (`test_step` gives the loss, and updates nothing):

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

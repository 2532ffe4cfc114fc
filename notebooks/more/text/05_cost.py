# %% [markdown]
# # 05 more · What a step costs, in time and in bits
#
# **In this notebook you look inside one training step, see where float32 parts from float64, and find what two machines
# have in common.**
#
# You need the two tasks of notebook 05 for this, and the formula of notebook 01 for what a step costs. Nothing is
# exported.

# %%
from course import build, figures

build.watch("more/05_cost")
figures.you_are_here(5)

# %% tags=["hide-input"]
# The imports of this notebook: you may skip this cell.
import hashlib
import tempfile
from pathlib import Path

import numpy as np

from course import compare, reference, tasks, where
from course.reader import checks
from course.reader.inspection import side_by_side, tour, xray
from levels_more import hardware, high_level, kernels, low_level, mid_level
from levels_more.high_level import Sequential
from levels_more.low_level import GradientTape, Variable
from levels_more.mid_level import SGD, Dense

place = tempfile.TemporaryDirectory()  # deleted when this kernel ends
folder, task, rings = Path(place.name), tasks.linear(), tasks.rings()
levels = (hardware, kernels, low_level, mid_level, high_level)
line_on_all = [reference.linear_regression]
line_on_all += [level.tasks.linear_regression for level in levels]
net_on_all = [reference.dnn_classifier]
net_on_all += [level.tasks.dnn_classifier for level in levels]

# %% [markdown]
# ## Inside one step (10 min)
#
# Notebook 05 counted the launches of a step. Which launches are they, and what calls each of them? We record one step,
# like an X-ray. No level is changed for that. Python calls a function of ours whenever any function is called or
# returns ([`sys.setprofile`](https://docs.python.org/3/library/sys.html#sys.setprofile)). And in `apply`, through which
# level 3 sends every op, we install an interpreter that does what the usual one does and also takes the time.

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "05-cost-launches",
    "Run op by op, a step of the line takes 19 launches on level 3. `levels_more` has "
    "a mean in one op, and its gradient in another, which saves two. How many launches "
    "does the same step take in `fit`, op by op?",
    choices=["17", "18", "about 50: each level adds its own"],
)

# %%
patient = Sequential([Dense(1)])
patient.build(task.x.shape, task.x.dtype)
patient.set_weights(task.weights)
patient.compile(SGD(task.learning_rate), "mse")
ten = task.x[task.batches[0]], task.y[task.batches[0]]
opened = xray.opened(patient, *ten)
print(opened)

# %%
checks.answer_to("05-cost-launches")

# %% [markdown]
# A row that is indented further happens inside the row above it. Read it from the top: level 5 calls level 4, level 4
# calls level 3, and each op ends in one launch of a kernel of level 2. The layer and the loss take five launches, and
# the gradient takes six, so the way back costs more than the way there. (`broadcast_divide` is the gradient of a mean:
# it gives each of the ten rows a tenth.) **Copies** are bytes that move between Python's memory and the device's: row
# numbers on the way in, the loss on the way out.
#
# Where does the time go? Open a row. The bars have the colours of the levels.

# %% tags=["nbval-ignore-output"]
opened

# %% [markdown]
# The bars of the kernels are hardly visible. Nearly all of the time goes to the Python code around them. (The X-ray
# exaggerates this, because it records every call of Python but nothing inside a kernel.)
#
# That was an eager step. `fit` compiles the step instead:

# %%
closed = xray.compiled(patient, *ten)
print(closed)
print("the same loss:", opened.loss == closed.loss)

# %% [markdown]
# All the parts are here again, but now under `compile`. They run once, on symbols: 16 ops are recorded and nothing is
# launched. (The two gathers are not among them, because a compiled program reads its rows itself.) Two of the 16 are
# the same product, which the gradient of `error * error` contains twice. And the mean becomes a sum and a quotient, as
# on level 3. So there are again 16 ops, and they become one program, which is launched once. It reads ten rows and
# their row numbers, 320 bytes, and keeps its intermediate results inside the program. The other 32 of the 352 bytes are
# copies of single numbers.

# %% tags=["nbval-ignore-output"]
closed

# %% [markdown]
# Tracing and compiling take longer than the eager step did. But `fit` pays for that once, and then takes thousands of
# steps in one launch.
#
# A step with many rows is easier to read in a viewer. `save` writes the rows in the trace event format. Open the file
# at [ui.perfetto.dev](https://ui.perfetto.dev), which gives each device its own track.

# %%
opened.save(folder / "step.json")
print((folder / "step.json").name, len(list(opened.trace())), "events")

# %% [markdown]
# Each row names the file and the section that it comes from. `where` looks up such places by name, and it also knows
# the names of other frameworks.

# %%
where("GradientTape")

# %%
where("torch.nn.Linear")

# %% [markdown]
# ## Beside other libraries (7 min)
#
# How good are our times? We take the rings again, in batches of 100, with Adam and float32, and write the training as
# users of other libraries do: shuffle, gather, step, on one thread. Each library first had to show that it ends at the
# same weights. Then the libraries took turns. The times are from one computer, in November 2026. `python3 -m course
# bench` measures yours.
#
# | | levels | µs per step | quickest other | µs per step | its time / ours |
# |---|---|--:|---|--:|--:|
# | rings, batch 100, Adam: eager | 4 eager | 159 | PyTorch eager | 477 | 3.01 |
# | rings, batch 100, Adam: step | 3 function | 32.0 | JAX jit | 114 | 3.55 |
# | rings, batch 100, Adam: epoch | 3 function.over | 5.02 | JAX lax.scan | 15.5 | 3.08 |
# | rings, batch 100, Adam: fit | 5 fit | 5.99 | scikit-learn MLP fit | 441 | 73.6 |
#
# Op by op, PyTorch and `levels` pay the same kind of price, some microseconds per op. Each layer of calls that is
# compiled away makes training several times quicker. In `fit`, only our loop over a few calls is left.

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "05-cost-jax",
    "Now take a large net, 784-512-512-10, in batches of 256. A step of our compiled "
    "epoch takes 9,600 µs. How long does a step of JAX take? For the rings it took "
    "more than twice as long as ours.",
    choices=["about as long", "twice as long", "20 times as long"],
)

# %% [markdown]
# | | levels | µs per step | quickest other | µs per step | its time / ours |
# |---|---|--:|---|--:|--:|
# | 784-512-512-10, batch 256, Adam, 1 thread: epoch | 4 | 9,620 | JAX lax.scan | 9,820 | 1.02 |
# | 784-512-512-10, batch 256, Adam, 2 threads: epoch | 4 | 4,410 | JAX lax.scan | 5,140 | 1.17 |

# %%
checks.answer_to("05-cost-jax")

# %% [markdown]
# On one thread `levels` is 2 % ahead. On two threads it is ahead by 17 %, because its list of programs is cut into
# parts, and each thread takes the next part that is free. On another computer JAX was 1 % ahead on one thread. So such
# claims of speed hold only for one computer. A small step shows the overhead, a large step shows the arithmetic, and
# the formula of level 1 says which of the two your step is. All numbers, including those where we are behind, are in
# `course/author/bench/README.md`.

# %%
line = compare.measure(task, *line_on_all)
net = compare.measure(rings, *net_on_all, last=100, repeats=1)

# %% [markdown]
# ## The net on all levels (2 min)
#
# Notebook 05 drew the times of the line on all levels, predicted and measured. Here are those of the net.

# %% tags=["nbval-ignore-output"]
tour.five_levels(net)

# %% [markdown]
# A step of the net does 260 times the arithmetic of a step of the line, so the time for tracing no longer matters. "3
# compiled", "4" and "5" take about the same time. In the core alone they also take the time of "1 float64", because
# they run its program. That is slower than predicted. Its operations wait for one another, as notebook 01 showed, but
# the formula assumes that a core begins many operations before the first has ended.
#
# Here `levels_more` is loaded, and the step becomes a fused program (*more/03_fused*), whose lanes run over columns. So
# in float64 it is quicker than "1 float64", with the same bits.
#
# The code of the five levels, with all helper functions, fits on one side of A4 for the line and another for the net.
# The next cell saves that page beside this notebook; open it in a browser to print it.

# %%
side_by_side.on_paper("side_by_side.html", line, net).name

# %% [markdown]
# **A good place to stop.** You know which launches a step consists of, and what they cost on each level.
#
# ## Where float32 parts from float64 (4 min)
#
# Float32 takes half the memory, and its programs may use all lanes. The price is in the bits: a program with lanes adds
# in another order, and each addition rounds more. From the course's own start, the losses stay within 1/10,000 of those
# in float64 over the first 2,000 steps. From some other starts they do not. Here is one of them. We train in both
# formats, one step per call, and record two things. The `gaps` are the distances between the weights of the two runs.
# The `kinks` are the steps in which the input of some relu is positive in one run but not in the other.


# %%
def into_relus(weights, x):
    """The inputs of all twelve relus, for each row of x."""
    w1, b1, w2, b2, *_ = weights
    z1 = x @ w1 + b1
    return np.hstack([z1, np.maximum(z1, 0) @ w2 + b2])


# %% tags=["nbval-ignore-output"]
start = [np.array(w) for w in tasks.make_weights((2, 4, 8, 1), seed=30)]
runs = {"f8": start, "f4": [w.astype("f4") for w in start]}
gaps, kinks = [], []
rate = rings.learning_rate
for step, rows in enumerate(rings.batches[:400]):
    signs = []
    for dtype, weights in runs.items():
        x, y = rings.x.astype(dtype), rings.y.astype(dtype)
        signs.append(into_relus(weights, x[rows]) > 0)
        trained = hardware.tasks.dnn_classifier(x, y, weights, rows[None], rate)
        runs[dtype] = trained.weights
    gaps.append(max(np.abs(p - q).max() for p, q in zip(*runs.values())))
    if (signs[0] != signs[1]).any():
        kinks.append(step)
figures.parting(gaps, kinks)

# %% [markdown]
# For many steps the gap stays near the rounding error of float32, two millionths or less. Then one input of one
# relu is so close to zero that the two formats round it to different sides. One run passes its gradient on, and the
# other passes none. That is no longer a rounding error, because the gradient of a whole row is missing. From then on
# the two runs differ, and the same happens again and again. Neither run is wrong. Both learn the rings.

# %% [markdown]
# ## What two machines have in common (6 min)
#
# The figure of the net, above, holds the times of your machine.

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "05-cost-cards",
    "A friend runs this notebook on another computer. What is the same there?",
    choices=["nothing", "the times, up to a factor", "the losses, to the last bit"],
)

# %% [markdown]
# To compare 32,000 losses, a few digits are enough, if they depend on every bit. That is what a **hash** gives. All
# losses, 8,000 of the line and 24,000 of the net, go through SHA-256 as bytes ([Secure Hash Standard,
# 2015](https://doi.org/10.6028/NIST.FIPS.180-4)). We keep the first sixteen digits. If the last bit of a single loss
# changes, the digits change completely:


# %%
def fingerprint(*comparisons):
    """The first 16 hexadecimal digits of the SHA-256 of level 5's losses, in float64."""
    losses = np.concatenate([each.rows[-1].losses for each in comparisons])
    return hashlib.sha256(losses.astype("<f8").tobytes()).hexdigest()[:16]


print(fingerprint(line, net))
losses = line.rows[-1].losses.copy()
losses[4000] = np.nextafter(losses[4000], 0)
nearly = line._replace(rows=[line.rows[-1]._replace(losses=losses)])
print(fingerprint(nearly, net), "after a change of one loss's last bit")

# %%
checks.answer_to("05-cost-cards")

# %% [markdown]
# The first line is `aba007ec7ceeaf70`, on your machine and on any other. To lay the times beside a friend's, keep the
# figure: `Path("my_machine.png").write_bytes(tour.five_levels(net).png)` saves it beside this notebook, and git ignores
# it.

# %% [markdown]
# ## Exercises (20 min, optional)
#
# ### 05-3 · Break it: a net that gives every point the same answer
#
# We train on the two rings again, for 20 epochs, at three learning rates. The last rate shows a symptom:

# %%
from course import tasks
from course.reader import exercises

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
    print(f"rate {rate}: losses {told};", end=" ")
    print(f"test points from {answers.min():.3f} to {answers.max():.3f}")

# %% [markdown]
# At rate 1 the loss stops near log 2 = 0.693, the loss of a coin toss, and the net gives all points the same
# probability. No number is infinite or NaN, and no program reports an error. `summary` lists all layers and all 61
# trainable numbers. So we look at the gradients (`test_step` returns the loss and updates nothing):

# %%
for rate in (0.1, 1.0):
    with GradientTape() as tape:
        loss = nets[rate].test_step(points.x, points.y)
    slopes = tape.gradient(loss, nets[rate].variables)
    named = zip(nets[rate].named(Variable), slopes)
    reached = [name for name, slope in named if slope.numpy().any()]
    print(f"rate {rate}: a gradient reaches {len(reached)} of {len(slopes)} variables:")
    print("  ", *reached)

# %% [markdown]
# Only the last bias still gets a gradient, so no other number will ever change. Find the cause, layer by layer: give
# the points to the first layer, its output to the second, and so on, and look for units that return 0 for **every**
# point. Such a relu is **dead**. Where it returns 0, it passes no gradient on, neither to its own weights nor to the
# layers before it. (About 5 lines. Hint: `model.layers` is a list, a layer is called like a function, and `.numpy()`
# turns its output into an array.)

# %%
from course.reader import exercises

exercises.begin("05-3")


def dead_units(model, x):
    """A list of ints: for each layer, how many units return 0 for all rows of x."""
    return ...


exercises.check("05-3", dead_units)

# %% [markdown]
# Once the check says that it is right, apply your function to the three nets. One dead unit of eight does no harm, but
# eight dead units of eight end the training. A callback with `on_train_batch_end` can print the number whenever it
# changes. You will see units die and come back, because the first layer still changes and with it their inputs. In step
# 125 all eight are dead at once, and the first layer stops changing, too. So the cause was the rate: the steps were too
# long. (Which other cure do you know?)

# %% [markdown]
# # 03 more · Several devices
#
# **In this notebook one program runs on three kinds of device, and two devices share one training step.**
#
# It needs notebook 03 (tensors, the tape, a train step), and for its last section notebook 05. The GPU and the TPU come
# from `more/01_gpu` and `more/01_tpu`, and their ops from `more/02_machines`. Nothing is exported here.
#
# It needs the package greenlet, which `python3 -m course setup` adds.

# %%
from course import build, figures, tasks

build.watch("more/03_devices", "greenlet")
figures.you_are_here(3)

# %%
import numpy as np

from course.practice import checks
from levels_more.hardware import pool
from levels_more.low_level import GradientTape, Variable, constant, device, gather, linear_regression, reduce_sum

task = tasks.linear()

# %% [markdown]
# ## The same source, anywhere (2 min)
#
# The code of tensors never asks on what kind of device a tensor lies. So a function of tensors runs wherever its inputs
# are. Here are 20 steps of the linear regression on each kind of device. We print three of the losses, and the weights.
# (A simulated GPU is slow, because each thread of each launch is a call in Python.)

# %%
single = [a.astype("f4") for a in (task.x, task.y)], [w.astype("f4") for w in task.weights]
for name in ("cpu:0", "gpu:0", "tpu:0"):
    with device(name):
        fit = linear_regression(*single[0], single[1], task.batches[:20], task.learning_rate)
    print(name, fit.losses[[0, 9, 19]].round(3), fit.weights[0].ravel().round(2))

# %% [markdown]
# All three used the same source and the same table of gradient rules. Only level 2 knows the device. The losses on the
# CPU and on the GPU agree in all printed digits. Those on the TPU agree in three digits, because its array rounds its
# inputs to bfloat16, which keeps 8 significant bits (`more/01_tpu`).
#
# ## Data parallel (9 min)
#
# Two devices can share one step. Each has a copy of the weights and half of the batch, and computes the gradients of
# its half. Then the two gradients are added, and both devices make the same update. PyTorch calls this
# `DistributedDataParallel` ([Li and others, 2020](https://doi.org/10.14778/3415478.3415530)), and TensorFlow calls it
# `MirroredStrategy`. Adding the gradients is called **all-reduce**. Each half's loss is divided by the size of the
# *whole* batch, so the two add up to its mean.


# %%
def half_gradients(name, x, y, w, b, rows, count):
    """These rows' part of the loss, and its gradients, computed on one device."""
    with device(name):
        w, b = Variable(w), Variable(b)
        with GradientTape() as tape:
            error = gather(constant(x), rows) @ w + b - gather(constant(y), rows)
            loss = reduce_sum(error * error) / float(count)
        return [loss, *tape.gradient(loss, [w, b])]


# %% [markdown]
# Which device adds? Here device 0 does, always in the order of the devices. Because the order is fixed, every run gives
# the same bits. (`.to` copies a tensor to another device. To keep the code short, we make the update once, in NumPy,
# and copy the new weights to the devices in each step. In a real system the weights stay on the devices, and every
# device makes the same update.)


# %%
def train_on(names, x, y, weights, batches, rate):
    """The losses of SGD, each batch split over these devices."""
    (w, b), losses = weights, []
    for batch in batches:
        shares = np.array_split(batch, len(names))
        parts = [half_gradients(name, x, y, w, b, rows, len(batch)) for name, rows in zip(names, shares)]
        total = parts[0]
        for part in parts[1:]:  # the all-reduce, in the order of the devices
            total = [mine + other.to(names[0]) for mine, other in zip(total, part)]
        loss, dw, db = (t.numpy() for t in total)
        w, b = w - np.float32(rate) * dw, b - np.float32(rate) * db
        losses.append(float(loss))
    return np.array(losses)


# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "03-devices-two-gpus",
    "We run the same 20 steps on one GPU, and then split over two. Are the 20 losses equal to the last bit?",
    choices=["yes", "no, but two runs on two GPUs are", "no, and two runs on two GPUs differ as well"],
)

# %%
pool(gpus=2)  # two GPUs from now on
data = *single[0], single[1], task.batches[:20], task.learning_rate
one, two, again = (train_on(names, *data) for names in (["gpu:0"], ["gpu:0", "gpu:1"], ["gpu:0", "gpu:1"]))
halves_in_turn = train_on(["gpu:0", "gpu:0"], *data)
pairs = {"one, two": (one, two), "two, two again": (two, again), "two, one in halves": (two, halves_in_turn)}
for name, (p, q) in pairs.items():
    print(f"{name:19} equal to 1e-6: {np.allclose(p, q, 1e-6, 0)}, to the bit: {(p == q).all()}")

# %%
checks.answer_to("03-devices-two-gpus")

# %% [markdown]
# So one device and two differ only in the order of a sum: one device that takes the halves in turn gives the bits of
# two. We decide that order. (Large systems give this up for speed. Their all-reduce adds in rings or trees, whose order
# changes with the number of devices: [Patarasuk and Yuan, 2009](https://doi.org/10.1016/j.jpdc.2008.09.002).)
#
# ## `fit`, on another device (1 min)
#
# No line of levels 4 and 5 names a device. So the same `fit` trains on the GPU and on the TPU. (Simulated devices are
# slow, so we take only three batches.) Only the rounding differs: the GPU may add in another order, and the TPU
# multiplies numbers of 8 significant bits.

# %%
from levels_more import high_level

for name in ("cpu:0", "gpu:0", "tpu:0"):
    with device(name):
        there = high_level.linear_regression(*single[0], single[1], task.batches[:3], task.learning_rate)
    print(name, there.losses.round(2))

# %% [markdown]
# ## Where to go from here
#
# - `more/02_machines`: how each op runs on each kind of device.

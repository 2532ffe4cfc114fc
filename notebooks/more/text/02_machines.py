# %% [markdown]
# # 02 more · Two more kinds of device
#
# **In this notebook your ops run on a GPU and on a TPU without a change to any scalar function, and two GPUs share one
# training step.**
#
# It needs notebook 02 (the table, `launch`, one scalar function and one loop) and the terms of `more/01_gpu` and
# `more/01_tpu`. From *`fit`, on another device* on it needs notebooks 03 and 05. It takes `gpu_compiler.py`, `gpu.py`
# and `tpu.py` in `levels_more/kernels/` apart. Nothing is exported here.
#
# It needs the package greenlet, which `python3 -m course setup` adds.

# %%
import numpy as np

from course import build, figures, tasks
from course.reader import checks
from course.reader.figures import page
from levels.kernels.elementwise import loop_source, places_of
from levels_more import high_level, kernels
from levels_more.hardware import placed_on, pool
from levels_more.kernels import BACKENDS, KERNELS, PLANS, gpu_compiler, launch
from levels_more.kernels import gpu as gpu_kernels
from levels_more.kernels import tpu as tpu_kernels
from levels_more.low_level import device

build.watch("more/02_machines", "greenlet")
figures.you_are_here(2)

# %% [markdown]
# ## What calls the function (4 min)
#
# So far the table has one column, for the CPU. Now a GPU and a TPU are in the pool. (On a computer without them they
# are simulated, thread by thread and cycle by cycle.) To run our two tasks, each of them needs a kernel per op. But no
# line of a scalar function changes. The only difference is what calls the function: on a CPU it is a loop, and on a GPU
# each element has its own thread.
#
# A reminder of the GPU's terms: threads start in **blocks**, and the threads of a block share a small, fast memory. 32
# of them, a **warp**, run in step. `cuda.grid(1)` is the number of a thread among all threads. On a GPU these lines
# surround the code for one element:

# %%
page.source(gpu_compiler.thread)

# %% [markdown]
# Here is the code that adds a row to a matrix:

# %%
places = places_of((10, 4), [(10, 4), (1, 4)])
print(loop_source("add", places, around=BACKENDS["gpu"].nest))

# %% [markdown]
# Compare it with the CPU's loop in notebook 02: the last line is the same. `n % 4` is the column, and the quotient is
# the row.
#
# A kernel like softmax needs several loops over a row. On a GPU each thread gets one row: a slice of each array, one
# row high. The function cannot tell that there are other rows. So every function that is a loop over independent rows
# runs on a GPU unchanged.

# %%
page.source(gpu_compiler.each_row)

# %% [markdown]
# ## A compiler for the GPU (4 min)
#
# Compiling for the GPU does two things. The float constants of a kernel get the dtype of its arrays, as on the CPU. And
# `rint`, `exponent` and `scaled` are replaced by what a GPU has. The simulator runs the result as Python, and a real
# GPU runs it through numba. If a kernel reads `cuda`, it handles its threads itself. Any other kernel gets rows. In
# both cases as many blocks start as the result needs:

# %%
page.source(gpu_compiler.compile_gpu)

# %% [markdown]
# `ON_GPU` lists the replacements for the functions of level 1: `frexp` and `ldexp` handle exponents, and adding and
# subtracting a large number rounds to a whole number. Sigmoid is a function of one number, and softmax is a loop over
# rows. Both run unchanged:

# %%
gpu = pool()["gpu:0"]
x = gpu.put(np.array([[1, 2], [3, 3]], "f4"))
for name in ("sigmoid", "softmax"):  # one element per thread, then one row per thread
    print(name, launch(name, None, x).numpy().round(3).ravel())

# %% [markdown]
# How did the GPU get into the table? When `levels_more.kernels` is imported, its module `gpu` registers a compiler,
# loops and planners for that kind of device. It also copies all functions of the CPU's column.
#
# The TPU is simpler. Beside its array for products it has a **vector unit** for everything else ([Norrie et al.,
# 2021](https://doi.org/10.1109/MM.2021.3058217)). A vector unit works like the lanes of a CPU, so ours uses the CPU's
# programs. Their cycles are not counted.
#
# ## Sums on a GPU (8 min)
#
# A long row is summed by one block, as in `more/01_gpu`. If it has 64 threads, each adds every 64th number. Then the
# partial sums are added in halves. The order of such a sum is fixed, but it differs from the CPU's. To sum columns,
# each column has one thread that goes down.

# %%
page.source(gpu_kernels.reduce_block)

# %% [markdown]
# `start` and `combine` come from the op, as in the CPU's loops.

# %%
numbers = np.arange(12, dtype="f4").reshape(3, 4)
for axis in (0, 1):
    print(launch("reduce_sum", None, gpu.put(numbers), axis=axis).numpy().tolist())

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "02-machines-threads",
    "A block sums a row of 4,096 float32 numbers. We make the block smaller: "
    "256, 32, then 4 threads. Does the sum change?",
    choices=["no", "yes, in its last digits", "yes, in its first digits"],
)

# %%
row = gpu.put(np.random.default_rng(0).normal(size=4096).astype("f4"))
for width in (256, 32, 4):
    gpu_kernels.BLOCK_THREADS = width
    PLANS.clear()  # a plan does not notice a change of the loop around its function
    total = launch("reduce_sum", None, row).numpy()
    print(f"{width:3} threads: {total:.6f}")
gpu_kernels.BLOCK_THREADS = 256
PLANS.clear()

# %%
checks.answer_to("02-machines-threads")

# %% [markdown]
# ## Products on three machines (5 min)
#
# On the GPU a plain kernel has one thread per number of the result, so each input number is read once for each row or
# column. With tiles in shared memory, a whole block reads it from device memory only once. On the TPU the array
# multiplies, with inputs rounded to bfloat16.

# %%
page.source(gpu_kernels.tiled, tpu_kernels.matmul_array)

# %%
tpu = pool()["tpu:0"]
left, right = np.array([[1.001, 2], [3, 4]], "f4"), np.eye(2, dtype="f4")
for place in (gpu, tpu):
    product = launch("matmul", None, place.put(left), place.put(right))
    print(place.name, product.numpy().round(4).ravel())

# %% [markdown]
# The TPU has lost the thousandth: in bfloat16 the next number after 1 is 1.0078.
#
# ## Numbers on the move (5 min)
#
# For a transpose or a slice, a thread computes where its number comes from and where it goes. It needs a start and a
# stride for each axis.

# %%
print(launch("transpose", None, gpu.put(numbers)).numpy().tolist())

# %% [markdown]
# `gather` copies rows number by number. Where rows are added up, two threads might add to the same number at once. A
# GPU has atomic additions for this, but their order changes from run to run, and the last bits change with it. So here
# each thread adds up one column. A kernel on a real GPU cannot raise an error, so the row numbers are checked before it
# starts.

# %%
page.source(gpu_kernels.gather_threads, gpu_kernels.scatter_threads)

# %%
try:
    launch("gather", None, gpu.put(numbers), gpu.put(np.array([3])))
except IndexError as error:
    print(error)

# %% [markdown]
# A random number is a function of its place, so a thread can make it without its neighbours. All other ops need nothing
# new: their functions enter all three columns unchanged.

# %%
ops = {"cpu": set(), "gpu": set(), "tpu": set()}
for op, kind in KERNELS:
    ops[kind].add(op)
print({kind: len(found) for kind, found in ops.items()})
print("on the CPU only:", *sorted(ops["cpu"] - ops["gpu"]))

# %% [markdown]
# No op is on the CPU only: each has a kernel in all three columns.
#
# **A good place to stop.** Each op of notebook 02 has a kernel for each of the three kinds of device.
#
# ## The two tasks, on three machines (7 min)
#
# Now the same two tasks run on three kinds of device. None of their lines names a device. (Simulated devices are slow,
# so we run 40 steps of the line and 4 of the net.)

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "02-machines-digits",
    "Three devices train the linear regression for 40 steps in float32. How many "
    "digits of the losses will the GPU share with the CPU, and how many the TPU?",
    choices=["both all", "the GPU 6 or 7, the TPU about 2", "both about 2"],
)


# %%
def in_float32(task):
    weights = [w.astype("f4") for w in task.weights]
    return task.x.astype("f4"), task.y.astype("f4"), weights


task = tasks.linear()
losses = {}
for kind in ("cpu", "gpu", "tpu"):
    data = *in_float32(task), task.batches[:40], task.learning_rate
    with placed_on(f"{kind}:0"):
        losses[kind] = kernels.linear_regression(*data).losses
    apart = np.abs(losses[kind] / losses["cpu"] - 1).max()
    told = f"within 1e-5: {apart < 1e-5}, within 2 %: {apart < 0.02}"
    print(kind, losses[kind][[0, 19, 39]].round(2), told)

# %%
checks.answer_to("02-machines-digits")

# %% [markdown]
# All three learn alike. Now the net, for 4 steps of 20 rows each. (The losses jump because each one is computed from 20
# other rows. Four steps teach the net almost nothing.)

# %%
rings = tasks.rings()
data = *in_float32(rings), rings.batches[:4, :20], rings.learning_rate
for kind in ("cpu", "gpu", "tpu"):
    with placed_on(f"{kind}:0"):
        print(kind, kernels.dnn_classifier(*data).losses.round(3))

# %% [markdown]
# "The same answer to the last bit" holds in float64 on a CPU, where every sum has a fixed order. On other machines the
# answers agree only as far as the precision reaches: 24 bits on the GPU, 8 bits on the TPU. Two things decide: which
# numbers are rounded, and in which order they are added. You can read both in the kernels above.
#
# **A good place to stop.** The two tasks run on three kinds of device, and agree as far as the precision reaches.
#
# ## `fit`, on another device (1 min)
#
# A tensor finds its kernel in the same table. So no line of levels 3, 4 and 5 names a device either, and the same `fit`
# trains on the GPU and on the TPU. (We take only three batches.)

# %%
data = *in_float32(task), task.batches[:3], task.learning_rate
for kind in ("cpu", "gpu", "tpu"):
    with device(f"{kind}:0"):
        print(kind, high_level.linear_regression(*data).losses.round(2))

# %% [markdown]
# ## Data parallel (10 min)
#
# Two devices can share one step. Each has a copy of the weights and half of the batch, and computes the gradients of
# its half. Then the two gradients are added, and both devices make the same update. PyTorch calls this
# `DistributedDataParallel` ([Li and others, 2020](https://doi.org/10.14778/3415478.3415530)), and TensorFlow calls it
# `MirroredStrategy`. Adding the gradients is called **all-reduce**. Each half's loss is divided by the size of the
# *whole* batch, so the two add up to its mean.


# %%
from levels_more.low_level import GradientTape, Variable, constant, gather, reduce_sum


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
    (w, b), rate, losses = weights, np.float32(rate), []
    for batch in batches:
        parts = []
        for name, rows in zip(names, np.array_split(batch, len(names))):
            parts.append(half_gradients(name, x, y, w, b, rows, len(batch)))
        total = parts[0]
        for part in parts[1:]:  # the all-reduce, in the order of the devices
            total = [mine + other.to(names[0]) for mine, other in zip(total, part)]
        loss, dw, db = (t.numpy() for t in total)
        w, b = w - rate * dw, b - rate * db
        losses.append(float(loss))
    return np.array(losses)


# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "02-machines-two-gpus",
    "We run 20 steps on one GPU, then split over two. Are the losses equal to the bit?",
    choices=[
        "yes",
        "no, but two runs on two GPUs are",
        "no, and two runs on two GPUs differ as well",
    ],
)

# %%
pool(gpus=2)  # two GPUs from now on
data = *in_float32(task), task.batches[:20], task.learning_rate
one, two = (train_on(names, *data) for names in (["gpu:0"], ["gpu:0", "gpu:1"]))
again = train_on(["gpu:0", "gpu:1"], *data)
in_halves = train_on(["gpu:0", "gpu:0"], *data)
pairs = {
    "one, two": (one, two),
    "two, two again": (two, again),
    "two, one in halves": (two, in_halves),
}
for name, (p, q) in pairs.items():
    close = np.allclose(p, q, 1e-6, 0)
    print(f"{name:19} equal to 1e-6: {close}, to the bit: {(p == q).all()}")

# %%
checks.answer_to("02-machines-two-gpus")

# %% [markdown]
# So one device and two differ only in the order of a sum: one device that takes the halves in turn gives the bits of
# two. We decide that order. (Large systems give this up for speed. Their all-reduce adds in rings or trees, whose order
# changes with the number of devices: [Patarasuk and Yuan, 2009](https://doi.org/10.1016/j.jpdc.2008.09.002).)

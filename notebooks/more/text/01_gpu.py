# %% [markdown]
# # 01 more · GPU
#
# **In this notebook a program runs as a thousand threads, and a simulator names the two that race.**
#
# It needs notebook 01 (the line, and what a device is) and the room `levels_more/hardware/gpu/`, with `device.py`, `memory.py` and
# `scheduler.py`: levels_more holds what grows on the five levels. Nothing is exported here. About 42 minutes.
#
# It uses greenlet, which `python3 -m course setup` adds.

# %%
from course import build, figures, tasks

build.watch("more/01_gpu", "greenlet")
figures.you_are_here(1)

# %%
import numpy as np

from course.figures import gpu as gpu_figures
from course.figures import page, widgets
from course.practice import checks
from levels_more.hardware import Pool, linear_regression, pool
from levels_more.hardware.gpu import memory as gpu_memory
from levels_more.hardware.gpu import scheduler
from levels_more.hardware.gpu.device import GpuError, cuda, launch_kernel
from levels_more.hardware.gpu.scheduler import count_traffic

# %% [markdown]
# ## A hundred thousand threads (4 min)
#
# A CPU core hides the distance to memory behind caches. A **GPU** (graphics processing unit) hides it behind other work. It
# holds very many threads, each with its registers ready. When one waits for memory, another one goes on. How many does it
# take? By [Little's law (1961)](https://doi.org/10.1287/opre.9.3.383), what is under way is the rate times the time that
# each piece takes. An H100 SXM reads 3.35 TB/s from its
# memory ([NVIDIA, H100 data sheet](https://www.nvidia.com/en-us/data-center/h100/)).

# %% tags=["hide-input"]
checks.predict(
    "A GPU reads 3.35 TB/s. Say a load takes half a microsecond. How many loads of one float32 must be under way, all the "
    "time, to keep its memory busy?",
    slider=(100, 10_000_000),
    answer=3.35e12 * 0.5e-6 / 4,
    because="3.35·10¹² bytes a second times 0.5·10⁻⁶ seconds are 1.7 million bytes, and a float32 has four. That is more than "
    "anyone can write down as programs of their own. So one program is written, and its copies are numbered.",
)

# %% [markdown]
# A **thread** is one run of a program, with registers of its own. So a program for a GPU, a **kernel**, is written for *one*
# thread, and started as some hundred thousand. Each asks for its own number (`cuda.grid(1)`) and takes the element of that
# number. Here is one, in the spelling of [numba](https://numba.readthedocs.io/en/stable/cuda/kernels.html). It has no loop.


# %%
def add_vectors(x, y, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i] + y[i]


# %% [markdown]
# Threads come in **blocks** of up to 1,024, and a launch is a grid of blocks. A block runs in one place, so its threads can
# share a small memory and wait for each other. Blocks know nothing of each other: that is why the same program runs on a small
# and on a large GPU. Within a block, 32 threads with neighbouring numbers form a **warp**: they go in step, one instruction
# for all ([Lindholm and others, 2008](https://doi.org/10.1109/MM.2008.31)).
#
# ## A machine to practise on (12 min)
#
# You may have no such machine here, and a real one is a poor teacher. A thread that reads past the end of an array gets some
# number. Two threads that disturb each other do so once in a thousand runs. So there is a simulator. It runs the very same
# function, as plain Python, one thread after the other, and it checks every access. What it does not have is speed. (A
# real GPU, where there is one, comes at the end.)
#
# A hundred elements, blocks of 32 threads: four blocks.

# %%
ones, steps_up, total = np.ones(100, "f4"), np.arange(100, dtype="f4"), np.zeros(100, "f4")
launch_kernel(add_vectors, 4, 32, ones, steps_up, total)
print(total[:3], "...", total[-3:])

# %% tags=["hide-input"]
checks.predict(
    "Four blocks of 32 are 128 threads for 100 elements. Leave out `if i < out.size`. Which thread makes the first mistake?",
    choices=["thread 0 of block 4", "thread 4 of block 3", "thread 31 of block 3", "none: Python stops at the end"],
    answer="thread 4 of block 3",
    because="Its number is 3 · 32 + 4 = 100, and the last element is 99. A real GPU would read whatever lies behind.",
)


# %%
def add_without_guard(x, y, out):
    i = cuda.grid(1)
    out[i] = x[i] + y[i]


def tell(kernel, *launch, **options):
    try:
        launch_kernel(kernel, *launch, **options)
    except GpuError as error:
        print(type(error).__name__, "-", error)


tell(add_without_guard, 4, 32, ones, steps_up, total)

# %% [markdown]
# A kernel sees its arrays through a `View`. Each access first finds out where the element lies, and asks whether somebody else
# uses it. That is the heart of the simulator, the **race detector**. Two threads race if they use one element, at least one
# changes it, and no barrier makes one of them wait. Then the result depends on who comes first. It is enough to remember two
# uses of each element:

# %%
page.source(gpu_memory.note)

# %% [markdown]
# The verdict does not depend on the order in which the threads happen to run: a clash is a clash whichever comes second. Only
# the words do: who is named first.
#
# One question is left. Threads wait for each other, and plain Python cannot stop in the middle of a function. A
# [greenlet](https://greenlet.readthedocs.io) can: a call that is put aside, and taken up later. One greenlet runs thread
# after thread, until one of them waits at a barrier. It is put aside with that thread, and another greenlet goes on with the
# rest. So a block runs in turns:

# %%
page.source(scheduler.SimulatedLaunch.block)

# %% [markdown]
# ## A warp goes to memory together (5 min)
#
# The threads of a warp reach an instruction at the same time. What they ask for is fetched in pieces of 128 bytes
# ([CUDA programming guide](https://docs.nvidia.com/cuda/cuda-c-programming-guide/); newer GPUs can leave out quarters of a
# piece). Neighbours that want neighbouring elements share one **transaction**. `count_traffic` counts them.


# %%
def gather_every(x, out, step):
    i = cuda.grid(1)
    out[i] = x[i * step]


source, one_warp = np.zeros(32 * 32, "f4"), np.zeros(32, "f4")
for met in count_traffic(gather_every, 1, 32, source, one_warp, 1):
    print(f"{met.accesses} accesses, {met.transactions} transaction: {met.array} in {met.line}")

# %% tags=["hide-input"]
checks.predict(
    "Neighbouring threads read neighbouring float32: one transaction. How many does a warp need when each thread reads 32 "
    "elements further than the one before, as down a column of a matrix with 32 columns?",
    choices=[1, 2, 8, 32],
    answer=32,
    because="32 float32 are 128 bytes, so every thread meets a piece of its own. 31 of the 32 numbers in it are not used.",
)

# %%
gpu_figures.segments(
    {s: count_traffic(gather_every, 1, 32, source, one_warp, s)[0].transactions for s in (1, 2, 8, 32)}
)

# %% [markdown]
# A matrix that is added up by columns loses to the rows for the same reason. A GPU programmer calls the first row of the
# picture **coalesced**.
#
# A newer GPU can fetch quarters of a piece, 32 bytes each. Change the simulator, and count again:

# %%
for piece in (128, 32):
    scheduler.SEGMENT = piece
    counts = {s: count_traffic(gather_every, 1, 32, source, one_warp, s)[0].transactions for s in (1, 2, 8, 32)}
    print(f"pieces of {piece:3} bytes:", {f"every {s}": f"{count * piece:,} bytes" for s, count in counts.items()})
scheduler.SEGMENT = 128

# %% [markdown]
# Quarters help those whose neighbours lie far apart, up to four times. They help nobody else.
#
# ## Shared memory, and the barrier (11 min)
#
# A block adds up its numbers. Each thread puts one into **shared memory**, which all threads of the block can read and write.
# Then half of the threads add a second number to theirs, then a quarter, until thread 0 has it all: 5 steps for 32 numbers.
# Between the steps, all wait at a **barrier**, `cuda.syncthreads()`: nobody goes on before the last one is there.


# %%
def block_sum(x, out):
    part = cuda.shared.array(32, np.float32)
    t = cuda.threadIdx.x
    part[t] = x[cuda.grid(1)]
    cuda.syncthreads()
    stride = 16
    while stride > 0:
        if t < stride:
            part[t] += part[t + stride]
        cuda.syncthreads()
        stride //= 2
    if t == 0:
        out[cuda.blockIdx.x] = part[0]


terms, sums = np.arange(128, dtype="f4"), np.zeros(4, "f4")
launch_kernel(block_sum, 4, 32, terms, sums)
print(sums, sums == terms.reshape(4, 32).sum(1))

# %% [markdown]
# The same for 16 threads (the circles), from barrier to barrier: what each of them reads, above, and writes, below.

# %%
widgets.explore(
    gpu_figures.block_sum,
    "The shared cells of a block that adds up 16 numbers, barrier by barrier.",
    barrier=range(1, 6),
)

# %% [markdown]
# **A good place to stop.** A block adds up its numbers, with a barrier between the steps. *What if nobody waits?*

# %% tags=["hide-input"]
checks.predict(
    "Take the barrier inside of the loop away. The simulator runs thread 0 to its end, then thread 1, and so on. What comes out?",
    choices=["the right sums", "wrong sums", "an error that names two threads"],
    answer="an error that names two threads",
    because="Thread 0 adds `part[1]` before thread 1 has added anything to it. In some orders a sum is right by luck. A race "
    "is a race in every order.",
)


# %%
def block_sum_in_a_hurry(x, out):
    part = cuda.shared.array(32, np.float32)
    t = cuda.threadIdx.x
    part[t] = x[cuda.grid(1)]
    cuda.syncthreads()
    stride = 16
    while stride > 0:
        if t < stride:
            part[t] += part[t + stride]
        stride //= 2
    if t == 0:
        out[cuda.blockIdx.x] = part[0]


tell(block_sum_in_a_hurry, 4, 32, terms, sums)
tell(block_sum_in_a_hurry, 4, 32, terms, sums, order=7)

# %% [markdown]
# Two threads use one element, one of them changes it, and nothing makes the other wait: that is a **race**. The error names both
# threads and both lines (here the same one). `order=7` shuffled blocks and threads, so another block is named. A barrier that
# only some threads reach would make a real GPU wait, perhaps for ever:


# %%
def wait_in_a_branch(x):
    if cuda.threadIdx.x < 8:
        cuda.syncthreads()
    x[cuda.grid(1)] = 1


tell(wait_in_a_branch, 1, 32, terms)

# %% [markdown]
# ## A matrix product in tiles (7 min)
#
# One thread for each element of the output: it walks along a row of `a` and down a column of `b`. All threads of a row read
# the same row of `a`, each for itself. Shared memory ends that. The block loads a **tile** of each matrix, every thread one
# element, and then all of them read it from there.


# %%
TILE = 16


def matmul_plain(a, b, out):
    column, row = cuda.grid(2)
    total = np.float32(0)
    for k in range(a.shape[1]):
        total += a[row, k] * b[k, column]
    out[row, column] = total


def matmul_tiled(a, b, out):
    tile_a = cuda.shared.array((TILE, TILE), np.float32)
    tile_b = cuda.shared.array((TILE, TILE), np.float32)
    column, row = cuda.grid(2)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    total = np.float32(0)
    for start in range(0, a.shape[1], TILE):
        tile_a[y, x] = a[row, start + x]
        tile_b[y, x] = b[start + y, column]
        cuda.syncthreads()
        for k in range(TILE):
            total += tile_a[y, k] * tile_b[k, x]
        cuda.syncthreads()
    out[row, column] = total


# %% tags=["hide-input"]
checks.predict(
    "Two 32 × 32 matrices, tiles of 16 × 16. How many times fewer loads from device memory does the tiled kernel need?",
    choices=[2, 4, 16, 256],
    answer=16,
    because="Each loaded element serves the 16 threads of a row, or of a column, of the block. Larger tiles save more, and "
    "48 KiB of shared memory are the limit.",
)

# %%
left, right = np.random.default_rng(0).standard_normal((2, 32, 32), "f4")
product = np.zeros((32, 32), "f4")
for multiply in (matmul_plain, matmul_tiled):
    reads = [met for met in count_traffic(multiply, (2, 2), (16, 16), left, right, product) if met.verb == "reads"]
    loads, moved = sum(met.accesses for met in reads), sum(met.transactions for met in reads)
    close = np.allclose(product, left @ right, atol=1e-5)
    print(f"{multiply.__name__}: {loads:6,} loads, {moved:5,} transactions; as NumPy's: {close}")

# %% [markdown]
# Of the two barriers of `matmul_tiled`, the second one is easily forgotten. Take it away, and see what is named.
#
# ## The device (3 min)
#
# A GPU joins the pool when `levels_more.hardware` is imported: its module enters `make_gpu` in `MAKERS`, beside the CPU's. What is
# real about it depends on your computer. If a driver can be loaded, numba's CUDA is asked. Its buffers are then numba's arrays, and the kernel is compiled for it: `cuda` in it becomes numba's `cuda`, and every function
# that it calls is compiled along. A simulator has no speed, so it shows none.

# %% tags=["nbval-ignore-output"]
Pool(pool(gpus=2))  # a table

# %%
gpu = pool(gpus=2)["gpu:1"]
u, v, out = gpu.put(ones), gpu.put(steps_up), gpu.alloc((100,), "f4")
gpu.launch(add_vectors, 4, 32, u, v, out)
print(out, (out.numpy() == total).all())
for attempt in (
    lambda: gpu.launch(add_vectors, 4, 32, u, pool()["cpu:0"].put(ones), out),
    lambda: gpu.launch(add_vectors, 0, 32, u, v, out),
):
    try:
        attempt()
    except GpuError as error:
        print(error)

# %% [markdown]
# ## The task, on a GPU (8 min)
#
# The linear regression again, in float32. One block, a thread for each row of the batch. Each computes its error and its part
# of the gradients. The parts are added up in shared memory, in pairs, and four threads update what there is to update.


# %%
BATCH = 10


def add_in_pairs(part, t):
    """part[0] becomes the sum of all rows of part, added by the threads t of a block."""
    stride = 8
    while stride > 0:
        if t < stride and t + stride < BATCH:
            for k in range(4):
                part[t, k] += part[t + stride, k]
        cuda.syncthreads()
        stride //= 2


# %% [markdown]
# A kernel may call functions. This one trains:


# %%
def train_line(x, y, batches, w, b, losses, rate):
    part = cuda.shared.array((BATCH, 4), np.float32)
    t, n = cuda.threadIdx.x, np.float32(BATCH)
    for step in range(len(batches)):
        i = batches[step, t]
        error = x[i, 0] * w[0, 0] + x[i, 1] * w[1, 0] + b[0, 0] - y[i, 0]  # forward
        part[t, 3] = error * error  # loss
        part[t, 2] = (error + error) / n  # backward
        for k in range(2):
            part[t, k] = x[i, k] * part[t, 2]
        cuda.syncthreads()
        add_in_pairs(part, t)
        if t < 2:
            w[t, 0] -= rate * part[0, t]  # update
        elif t == 2:
            b[0, 0] -= rate * part[0, 2]
        elif t == 3:
            losses[step] = part[0, 3] / n
        cuda.syncthreads()


# %% [markdown]
# Five epochs, 200 steps, one launch. Beside it, level 1's program for the CPU on the same numbers, in float32 too.

# %%
task = tasks.linear()
few = task.batches[:200]
singles = [task.x.astype("f4"), task.y.astype("f4"), *(weight.astype("f4") for weight in task.weights)]
xs, ys, ws, bs = map(gpu.put, singles)
losses = gpu.alloc((len(few),), "f4")
gpu.launch(train_line, 1, BATCH, xs, ys, gpu.put(few.astype(np.int64)), ws, bs, losses, np.float32(task.learning_rate))
on_cpu = linear_regression(*singles[:2], singles[2:], few, task.learning_rate).losses
for step in (0, 50, 100, 199):
    print(f"step {step:3}: loss {losses.numpy()[step]:.3f} on the GPU, {on_cpu[step]:.3f} on the CPU")
apart = np.abs(losses.numpy() - on_cpu) / np.maximum(1, on_cpu)
print("equal to the last bit:", (losses.numpy() == on_cpu).all(), "  within 1e-5:", apart.max() < 1e-5)

# %% [markdown]
# The same model, and not the same bits. The tree adds ten numbers as (0 + 8 + 4 + …) + (1 + 9 + …), the CPU lane by lane,
# and each order rounds in its own way. A tree of the same shape gives the same bits on any GPU, though: here the order is
# part of the program. Let all threads add to one number instead, each as soon as it can, and the order may differ from run to run.

# %% [markdown]
# ## Exercises
#
# ### 01-6 · Break it: no barrier
#
# Every block shall turn its numbers by one place: each thread takes the
# number of the next one, the last thread takes the first. Here is a kernel that does it in one line:

# %%
from course.practice import exercises
from levels_more.hardware.gpu.device import GpuError, cuda, launch_kernel  # noqa: F811

exercises.begin("01-6")


def turn_in_a_hurry(x):
    i, t, n = cuda.grid(1), cuda.threadIdx.x, cuda.blockDim.x
    x[i] = x[i - t + (t + 1) % n]


try:
    launch_kernel(turn_in_a_hurry, 1, 8, np.arange(8, dtype="f4"))
except GpuError as error:
    print(type(error).__name__, "-", error)

# %% [markdown]
# On a real GPU nobody tells you. All is well as long as the threads go in step, and with more of them than a warp has, numbers
# are lost now and then. Two threads are named, and the line. Which of the two came too early? (About 4 lines.)

# %%
from course.practice import exercises
from levels_more.hardware.gpu.device import cuda, launch_kernel  # noqa: F401, F811

exercises.begin("01-6")


def turn(x):
    """Every block turns its numbers by one place: x[i] becomes the number of the next thread of the block."""
    ...


exercises.check("01-6", turn)

# %% [markdown]
# ## Where to go from here
#
# - `more/01_tpu`: a machine for one thing, the product of matrices, cycle by cycle.
# - `more/02_machines`: all ops of level 2 on both machines, and the two tasks.
# - `more/03_devices`: tensors on several devices, and one step shared by two.

# %% [markdown]
# # 01 more · GPU
#
# **In this notebook one program runs as many threads at once, on a simulator that checks every access to memory.**
#
# It needs notebook 01 (the line, and what a device is). It takes apart `device.py`, `memory.py` and `scheduler.py` in
# `levels_more/hardware/gpu/`. Nothing is exported here.
#
# It needs the package greenlet, which `python3 -m course setup` adds.

# %%
from course import build, figures, tasks

build.watch("more/01_gpu", "greenlet")
figures.you_are_here(1)

# %%
import numpy as np

from course.reader import checks
from course.reader.figures import gpu as gpu_figures
from course.reader.figures import page, widgets
from levels_more.hardware import Pool, linear_regression, pool
from levels_more.hardware.gpu import memory as gpu_memory
from levels_more.hardware.gpu import scheduler
from levels_more.hardware.gpu.device import GpuError, cuda, launch_kernel
from levels_more.hardware.gpu.scheduler import count_traffic

# %% [markdown]
# ## A hundred thousand threads (6 min)
#
# A load from memory takes a long time. A CPU core hides that behind caches. A **GPU** (graphics processing unit) hides
# it behind other work: it holds very many threads, each with its registers ready, and when one thread waits for memory,
# another runs. How many threads does it take? By [Little's law (1961)](https://doi.org/10.1287/opre.9.3.383), the
# amount under way is the rate times the time that each piece takes. An H100 SXM reads 3.35 TB/s from its memory
# ([NVIDIA, H100 data sheet](https://www.nvidia.com/en-us/data-center/h100/)).

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "01-gpu-loads",
    "A GPU reads 3.35 TB/s. Suppose a load takes half a microsecond. How many loads of one float32 must be under way "
    "at any time to keep the memory busy?",
    slider=(100, 10_000_000),
)

# %% [markdown]
# Bytes per second times seconds are bytes, and a float32 takes four:

# %%
print(f"{3.35e12 * 0.5e-6 / 4:,.0f} loads")

# %%
checks.answer_to("01-gpu-loads")

# %% [markdown]
# A **thread** is one run of a program, with its own registers. A program for a GPU, a **kernel**, is written for *one*
# thread and started as hundreds of thousands of them. Each thread asks for its own number (`cuda.grid(1)`) and takes
# the element with that number. Here is a kernel, in the spelling of
# [numba](https://numba.readthedocs.io/en/stable/cuda/kernels.html). It has no loop.


# %%
def add_vectors(x, y, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i] + y[i]


# %% [markdown]
# Threads come in **blocks** of up to 1,024, and a launch starts a grid of blocks. The threads of a block can share a
# small memory and wait for each other. Blocks do not depend on each other, so the same program runs on a small GPU and
# on a large one. Within a block, 32 threads with neighbouring numbers form a **warp**. They run in step, with one
# instruction for all ([Lindholm and others, 2008](https://doi.org/10.1109/MM.2008.31)).
#
# ## A machine to practise on (14 min)
#
# You may have no GPU here, and a real one is a poor teacher. A thread that reads past the end of an array gets some
# number, without an error. Two threads that disturb each other may do so only once in a thousand runs. So this notebook
# uses a simulator. It runs the same function as plain Python, one thread after the other, and checks every access. It
# is slow, though. (A real GPU is used near the end, if you have one.)
#
# For a hundred elements and blocks of 32 threads we need four blocks.

# %%
ones, steps_up, total = np.ones(100, "f4"), np.arange(100, dtype="f4"), np.zeros(100, "f4")
launch_kernel(add_vectors, 4, 32, ones, steps_up, total)
print(total[:3], "...", total[-3:])

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "01-gpu-guard",
    "Four blocks of 32 are 128 threads for 100 elements. Suppose we leave out `if i < out.size`. Which thread makes "
    "the first mistake?",
    choices=["thread 0 of block 4", "thread 4 of block 3", "thread 31 of block 3", "none: Python stops at the end"],
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

# %%
checks.answer_to("01-gpu-guard")

# %% [markdown]
# In the simulator a kernel sees its arrays through a `View`. At each access the view first finds out where the element
# lies, and then whether another thread uses it. This second check is the heart of the simulator, the **race detector**.
# Two threads race if they use the same element, at least one of them changes it, and no barrier makes one of them wait.
# Then the result depends on which comes first. To detect a race, it is enough to remember two uses of each element:

# %%
page.source(gpu_memory.note)

# %% [markdown]
# One question is left. Threads must be able to wait for each other, but plain Python cannot stop in the middle of a
# function. A [greenlet](https://greenlet.readthedocs.io) can: it is a call that can be paused and resumed later. One
# greenlet runs thread after thread until one of them waits at a barrier. That greenlet is paused, and another one goes
# on with the remaining threads. So a block runs in turns:

# %%
page.source(scheduler.SimulatedLaunch.block)

# %% [markdown]
# ## A warp goes to memory together (7 min)
#
# The threads of a warp reach an instruction at the same time. The hardware fetches what they ask for in pieces of 128
# bytes ([CUDA programming guide](https://docs.nvidia.com/cuda/cuda-c-programming-guide/); newer GPUs can leave out
# quarters of a piece). Threads that read neighbouring elements share one such fetch, a **transaction**. `count_traffic`
# counts them.


# %%
def gather_every(x, out, step):
    i = cuda.grid(1)
    out[i] = x[i * step]


source, one_warp = np.zeros(32 * 32, "f4"), np.zeros(32, "f4")
for met in count_traffic(gather_every, 1, 32, source, one_warp, 1):
    print(f"{met.accesses} accesses, {met.transactions} transaction: {met.array} in {met.line}")

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "01-gpu-stride",
    "When neighbouring threads read neighbouring float32 numbers, a warp needs one transaction. How many does it need "
    "when each thread reads 32 elements further than the one before, as down a column of a matrix with 32 columns?",
    choices=[1, 2, 8, 32],
)

# %%
gpu_figures.segments(
    {s: count_traffic(gather_every, 1, 32, source, one_warp, s)[0].transactions for s in (1, 2, 8, 32)}
)

# %%
checks.answer_to("01-gpu-stride")

# %% [markdown]
# For the same reason it takes longer to add up a matrix by columns than by rows. GPU programmers call the access in the
# first row of the picture **coalesced**.
#
# A newer GPU can also fetch a quarter of a piece, 32 bytes. We set the simulator to that size and count again:

# %%
for piece in (128, 32):
    scheduler.SEGMENT = piece
    counts = {s: count_traffic(gather_every, 1, 32, source, one_warp, s)[0].transactions for s in (1, 2, 8, 32)}
    print(
        f"pieces of {piece:3} bytes:",
        *(f"every {s}: {count * piece:,} bytes" for s, count in counts.items()),
        sep="\n  ",
    )
scheduler.SEGMENT = 128

# %% [markdown]
# Where the threads of a warp read far apart, quarters save up to three quarters of the bytes. Where the threads read
# neighbours, quarters save nothing.
#
# ## Shared memory, and the barrier (14 min)
#
# A block shall add up its numbers. Each thread puts one number into **shared memory**, which all threads of the block
# can read and write. Then half of the threads add a second number to theirs, then a quarter of them, until thread 0 has
# the whole sum. That takes 5 steps for 32 numbers. Between two steps all threads wait at a **barrier**,
# `cuda.syncthreads()`: no thread goes on before all have reached it.


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
# The figure shows the same sum with 16 threads (the circles). Move the slider from barrier to barrier. Above each
# thread is what it reads, below it what it writes.

# %%
widgets.explore(
    gpu_figures.block_sum,
    "The shared cells of a block that adds up 16 numbers, barrier by barrier.",
    barrier=range(1, 6),
)

# %% [markdown]
# **A good place to stop.** A block adds up its numbers, with a barrier between the steps. *What if no thread waits?*

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "01-gpu-barrier",
    "We remove the barrier inside the loop. The simulator runs thread 0 to its end, then thread 1, and so on. What "
    "comes out?",
    choices=["the right sums", "wrong sums", "an error that names two threads"],
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

# %%
checks.answer_to("01-gpu-barrier")

# %% [markdown]
# The error names both threads and both lines of code (here they are the same line). With `order=7` blocks and threads
# ran in a shuffled order, so the error names another block. The order decides only which threads are named, not whether
# the race is found. There is a second mistake with barriers: if only some threads reach one, a real GPU may wait for
# ever. The simulator reports that, too:


# %%
def wait_in_a_branch(x):
    if cuda.threadIdx.x < 8:
        cuda.syncthreads()
    x[cuda.grid(1)] = 1


tell(wait_in_a_branch, 1, 32, terms)

# %% [markdown]
# ## A matrix product in tiles (8 min)
#
# A matrix product takes one thread per element of the output. The thread walks along a row of `a` and down a column of
# `b`. All threads of a row read the same row of `a`, each for itself. Shared memory avoids these repeated loads. The
# block loads a **tile** of each matrix, one element per thread, and then all its threads read the tiles from there.


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
# a question: run me
checks.predict(
    "01-gpu-tiles",
    "Two 32 × 32 matrices, tiles of 16 × 16. How many times fewer loads from device memory does the tiled kernel need?",
    choices=[2, 4, 16, 256],
)

# %%
left, right = np.random.default_rng(0).standard_normal((2, 32, 32), "f4")
product = np.zeros((32, 32), "f4")
for multiply in (matmul_plain, matmul_tiled):
    reads = [met for met in count_traffic(multiply, (2, 2), (16, 16), left, right, product) if met.verb == "reads"]
    loads, moved = sum(met.accesses for met in reads), sum(met.transactions for met in reads)
    close = np.allclose(product, left @ right, atol=1e-5)
    print(f"{multiply.__name__}: {loads:6,} loads, {moved:5,} transactions; close to NumPy's: {close}")

# %%
checks.answer_to("01-gpu-tiles")

# %% [markdown]
# It is easy to forget the second barrier of `matmul_tiled`. Remove it and see which threads and lines the error names.
#
# ## The device (2 min)
#
# The GPU is added to the pool when `levels_more.hardware` is imported: its module puts `make_gpu` into the table
# `MAKERS`, beside the CPU's entry. Your computer decides whether it is real or simulated. If a CUDA driver can be
# loaded, numba finds the GPU. Then buffers are numba's arrays, and numba compiles the kernel and every function that it
# calls. Inside the kernel, `cuda` is then numba's `cuda`. A simulator has no meaningful speed, so the table shows none
# for it.

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
# ## The task, on a GPU (7 min)
#
# Now the linear regression runs on the GPU, in float32. It uses one block, with one thread per row of the batch. Each
# thread computes its row's error and its part of the gradients. The parts are added up in pairs in shared memory. Then
# four threads write the results: two weights, the bias and the loss.


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
# A kernel may call functions, so the kernel that trains calls `add_in_pairs`:


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
# One launch runs 200 steps, which are five epochs. Beside its losses we print those of level 1's program for the CPU,
# from the same numbers and also in float32.

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
# The model is the same, but the bits are not. The GPU adds the ten numbers in a tree, as (0 + 8 + 4 + …) + (1 + 9 + …).
# The CPU adds them lane by lane. Each order rounds in its own way. But the order of the tree is part of the program, so
# the same tree gives the same bits on every GPU. If instead all threads added to one number, each as soon as it could,
# the order could change from run to run.

# %% [markdown]
# ## Exercises
#
# ### 01-6 · Break it: no barrier
#
# Every block shall rotate its numbers by one place: each thread takes the number of the next thread, and the last
# thread takes that of the first. Here is a kernel that does it in one line:

# %%
from course.reader import exercises
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
# On a real GPU there is no such error. All goes well as long as the threads run in step, but with more threads than one
# warp has, numbers are lost now and then. The error names two threads and the line. Which of the two came too early?
# (About 4 lines.)

# %%
from course.reader import exercises
from levels_more.hardware.gpu.device import cuda, launch_kernel  # noqa: F401, F811

exercises.begin("01-6")


def turn(x):
    """Every block rotates its numbers by one place: x[i] becomes the number of the next thread of the block."""
    ...


exercises.check("01-6", turn)

# %% [markdown]
# ## Where to go from here
#
# - `more/01_tpu`: a machine that only multiplies matrices, simulated cycle by cycle.
# - `more/02_machines`: all ops of level 2, and both tasks, on the GPU and on the TPU, and a step shared by two GPUs.

# %% [markdown]
# # 02 more · Two more kinds of device
#
# **In this notebook your ops run on a GPU and on a TPU, and not one scalar function changes.**
#
# It needs notebook 02 (the table, `launch`, one scalar function and one loop) and the words of `more/01_gpu` and `more/01_tpu`. It
# takes apart `gpu_compiler.py`, `gpu.py` and `tpu.py` in `levels_more/kernels/`. Nothing is exported. About 28 minutes.
#
# It uses greenlet, which `python3 -m course setup` adds.

# %%
from course import build, figures, tasks

build.watch("more/02_machines", "greenlet")
figures.you_are_here(2)

# %%
import numpy as np

from course.figures import page
from course.practice import checks
from levels.kernels.elementwise import loop_source, places_of
from levels_more.hardware import pool
from levels_more.kernels import KERNELS, KINDS, PLANS, gpu_compiler, launch
from levels_more.kernels import gpu as gpu_kernels
from levels_more.kernels import tpu as tpu_kernels

# %% [markdown]
# ## Who calls the function (4 min)
#
# So far the table has one column. A GPU and a TPU are in the pool. (On a computer without them they are
# simulated, thread by thread and cycle by cycle.) What do they need to run our two tasks? A kernel for each op. But not one line
# of a scalar function: only *who calls it* differs. On a CPU it is a loop, on a GPU each element has a thread of its own.
#
# A reminder of the GPU's words. Threads start in **blocks**; those of a block share a small, near memory. 32 of them, a **warp**,
# run in step. `cuda.grid(1)` is a thread's number among all. These lines go around an element on a GPU:

# %%
page.source(gpu_compiler.thread)

# %% [markdown]
# A matrix and a row are added:

# %%
places = places_of((10, 4), [(10, 4), (1, 4)])
print(loop_source("add", places, around=KINDS["gpu"].nest))

# %% [markdown]
# Compare it with the loop that the CPU got, in notebook 02: the last line is the same. `n % 4` is the column, what is left is the row.
#
# A kernel like softmax works on a row with several loops. There a thread gets a row: a slice of each array, one row high. It
# cannot tell that there are others. So every function that is a loop over independent rows serves a GPU as it stands.

# %%
page.source(gpu_compiler.each_row)

# %% [markdown]
# ## A compiler for the GPU (4 min)
#
# Compiling means: the floats of a kernel get the dtype of its arrays, as on the CPU, and what stands for `rint`, `exponent` and
# `scaled` is what a GPU has. The simulator runs the result as Python, and a real GPU through numba. A kernel that reads `cuda`
# knows its threads; any other one gets rows.
# Both then start in as many
# blocks as the result needs:

# %%
page.source(gpu_compiler.compile_gpu)

# %% [markdown]
# `ON_GPU` names what stands for the functions of level 1: `frexp` and `ldexp` for an exponent, and a large number, added and taken
# away again, for the nearest whole one. Sigmoid is a function of numbers, softmax a loop over rows. Both run as they stand:

# %%
gpu = pool()["gpu:0"]
for name in ("sigmoid", "softmax"):  # an element for each thread, and a row
    print(name, launch(name, None, gpu.put(np.array([[1, 2], [3, 3]], "f4"))).numpy().round(3).ravel())

# %% [markdown]
# How did the GPU come into the table? By the import of `levels_more.kernels`. Its module `gpu` entered a compiler, loops and planners
# for that kind of device, and all functions of the CPU's column.
#
# The TPU is simpler. Beside its array for products it has a **vector unit** for everything else
# ([Norrie et al., 2021](https://doi.org/10.1109/MM.2021.3058217)). A vector unit does what the lanes of a CPU do, so ours borrows
# the CPU's programs. Their cycles are not counted.
#
# ## Sums on a GPU (7 min)
#
# A long row is a block's work, as in notebook 01. Of 64 threads each takes in every 64th number, then the halves
# meet. The order of such a sum is fixed, but it is another one than the CPU's. Of columns, each has a thread that goes down.

# %%
page.source(gpu_kernels.reduce_block)

# %% [markdown]
# `start` and `combine` are the op's own, as in the loops of the CPU.

# %%
numbers = np.arange(12, dtype="f4").reshape(3, 4)
print([launch("reduce_sum", None, gpu.put(numbers), axis=axis).numpy().tolist() for axis in (0, 1)])

# %% tags=["hide-input"]
checks.predict(
    "A row of 4,096 numbers in float32 is a block's work. You make its blocks smaller: 256, 32, then 4 threads. Does the sum change?",
    "yes, in its last digits",
    "Each thread first adds its own numbers, one after the other, and then the halves meet. With fewer threads more is added in a "
    "row and less in pairs: another order, so other roundings.",
    choices=["no", "yes, in its last digits", "yes, in its first digits"],
)

# %%
row = gpu.put(np.random.default_rng(0).normal(size=4096).astype("f4"))
for width in (256, 32, 4):
    gpu_kernels.BLOCK_THREADS = width
    PLANS.clear()  # a plan knows of its op's function, not of the loop around it
    print(f"{width:3} threads: {launch('reduce_sum', None, row).numpy():.6f}")
gpu_kernels.BLOCK_THREADS = 256
PLANS.clear()

# %% [markdown]
# ## Products on three machines (5 min)
#
# The plain kernel gives each number of the result a thread; a block with tiles in shared memory reads each number
# from far memory once instead of once for each row or column. On the TPU the array does it, with inputs rounded to bfloat16.

# %%
page.source(gpu_kernels.tiled, tpu_kernels.matmul_array)

# %%
tpu = pool()["tpu:0"]
left, right = np.array([[1.001, 2], [3, 4]], "f4"), np.array([[1, 0], [0, 1]], "f4")
for place in (gpu, tpu):
    print(place.name, launch("matmul", None, place.put(left), place.put(right)).numpy().round(4).ravel())

# %% [markdown]
# The TPU has lost the thousandth: in bfloat16 the next number after 1 is 1.0078.
#
# ## Numbers on the move (2 min)
#
# A thread finds where its number comes from and where it goes: a start and a stride for each axis, which
# NumPy tells us from empty arrays of these shapes.

# %%
page.source(gpu_kernels.mover)

# %%
print(launch("transpose", None, gpu.put(numbers)).numpy().tolist())

# %% [markdown]
# ## Rows by number (4 min)
#
# Rows are copied number by number. Where rows are added up, two threads might add to the same number at once. A GPU
# has atomic additions for this, but their order changes from run to run, and so do the last bits. Here each thread owns a column.
# A real GPU cannot raise an error from a kernel, so row numbers are looked at before.

# %%
page.source(gpu_kernels.gather_threads, gpu_kernels.scatter_threads)

# %%
try:
    launch("gather", None, gpu.put(numbers), gpu.put(np.array([3])))
except IndexError as error:
    print(error)

# %% [markdown]
# A random number is a function of its place, so a thread makes it without its neighbours. All other ops need nothing new: their
# functions enter the columns as they are.

# %%
KERNELS

# %% [markdown]
# The table is full.
#
# **A good place to stop.** Each op has a kernel for each of the three kinds of device.
#
# ## The two tasks, on three machines (6 min)
#
# Now the same two tasks run on three kinds of device, and not one of their lines knows where. (Simulated
# devices are slow, so these are 40 steps of the one and 4 of the other.)

# %% tags=["hide-input"]
checks.predict(
    "Three devices train the linear regression for 40 steps in float32. How many digits of the losses will the GPU share with "
    "the CPU, and how many the TPU?",
    "the GPU 6 or 7, the TPU about 2",
    "The GPU computes every product as the CPU does. Only sums are taken in another order, so the last of 24 bits may differ: 7 "
    "digits are shared, perhaps one less after 40 steps. The TPU rounds what it multiplies to the 8 bits of bfloat16. A product is off by up to 1 in 128, in "
    "either direction, and in a sum over many such errors most of them cancel.",
    choices=["both all", "the GPU 6 or 7, the TPU about 2", "both about 2"],
)

# %%
from levels_more.hardware import placed_on
from levels_more.kernels import dnn_classifier, linear_regression

task = tasks.linear()
single = [a.astype("f4") for a in (task.x, task.y)], [w.astype("f4") for w in task.weights]
fits = {}
for kind in ("cpu", "gpu", "tpu"):
    with placed_on(f"{kind}:0"):
        fits[kind] = linear_regression(*single[0], single[1], task.batches[:40], task.learning_rate)
    apart = np.abs(fits[kind].losses / fits["cpu"].losses - 1).max()
    print(kind, fits[kind].losses[[0, 19, 39]].round(2), "within 1e-5:", apart < 1e-5, " within 2 %:", apart < 0.02)

# %% [markdown]
# All three learn alike. And the net, 4 steps on 20 rows each. (The losses jump, because each is that of 20 other rows, and four
# steps teach next to nothing.)

# %%
with_rings = tasks.rings()
inputs = [a.astype("f4") for a in with_rings[:2]], [w.astype("f4") for w in with_rings.weights]
for kind in ("cpu", "gpu", "tpu"):
    with placed_on(f"{kind}:0"):
        net = dnn_classifier(*inputs[0], inputs[1], with_rings.batches[:4, :20], with_rings.learning_rate)
    print(kind, net.losses.round(3))

# %% [markdown]
# "The same answer to the last bit" holds in float64 on a CPU, where every sum has one order. On other machines it is "the same
# answer, as far as the machine's numbers reach": 24 bits here, 8 bits there. What decides is which numbers are rounded, and in
# which order they are added. Both can be read off the kernels above.
#
# ## Where to go from here
#
# - `more/01_gpu` and `more/01_tpu`: the two machines themselves.
# - `more/03_devices`: tensors that lie on different devices, and one step shared by two.

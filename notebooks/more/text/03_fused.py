# %% [markdown]
# # 03 more · Fused programs
#
# **In this notebook a graph that is too large for one program becomes a list of programs, which run without Python in
# between.**
#
# It needs notebook 03 (the graph, its replay, the row program) and the product in tiles of `more/02_matmul`. It
# takes apart `loops.py`, `programs.py`, `program_list.py`, `threads.py` and `backend.py` in
# `levels_more/compiler/fused/`, and `eager/small_ops.py` beside it. Nothing is exported here.

# %%
from course import build, figures
from course.reader.figures import page

build.watch("more/03_fused")
figures.you_are_here(3)

# %% tags=["hide-input"]
# The imports of this notebook. You may skip them.
import textwrap
import timeit

import numba
import numpy as np

from course.reader import checks
from levels_more.compiler import passes, quick_rows
from levels_more.compiler.eager import small_ops
from levels_more.compiler.fused import backend, program_list
from levels_more.compiler.fused import loops as fused_loops
from levels_more.compiler.fused import programs as fused_parts
from levels_more.compiler.fused import threads as fused_threads
from levels_more.hardware import pool
from levels_more.kernels import PLANS, launch, planned
from levels_more.low_level import (
    GradientTape,
    Replay,
    RowProgram,
    Variable,
    constant,
    dce,
    function,
    gather,
    reduce_mean,
    relu,
    sigmoid,
    trace,
)

cpu = pool()["cpu:0"]

# %% [markdown]
# ## Too many instructions (4 min)
#
# The row program has separate instructions for each number of a row. For a layer of 64 units that would be too
# many. Here is such a layer, with its gradient and its update:

# %%
draw = np.random.default_rng(3)
wide, narrow = Variable(draw.normal(size=(8, 64)) / 8, "wide"), Variable(draw.normal(size=(64, 1)) / 8, "narrow")


def layer_step(rows, target):
    with GradientTape() as tape:
        error = sigmoid(relu(rows @ wide) @ narrow) - target
        loss = reduce_mean(error * error)
    for variable, gradient in zip([wide, narrow], tape.gradient(loss, [wide, narrow]), strict=True):
        variable.assign(variable - 0.1 * (gradient + 0.01 * variable))
    return loss


def smaller(graph):
    for one_pass in (dce, passes.cse, passes.constant_fold):
        graph = one_pass(graph)
    return graph


graph = smaller(trace(layer_step, (cpu.spec((32, 8), "f8"), cpu.spec((32, 1), "f8")))[0])
print(len(graph.ops), "ops")
try:
    RowProgram(graph, 32)
except Exception as why:
    print(why)

# %% [markdown]
# A `Replay` can run it with one launch per op, as in notebook 03. But each launch reads its inputs from memory and
# writes its result back. Elementwise ops that follow each other could share one loop instead, also written with the
# assembler. Then the values stay in registers. This is called **fusion**.
#
# ## Which ops share a loop? (8 min)
#
# We go through the ops in order and collect them in **units**. If an op reads the results of units of its own shape,
# these units and the op become one. A unit that any other op reads is closed, because it must run before that op. So
# the last ops of the units give an order in which the units can run. (Units that read nothing of each other stay
# separate, because a loop with more arrays than registers is slower. A sum of many products joins them, as you will see
# below.)

# %%
page.source(fused_loops.loop_of, fused_loops.units_of)

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "03-fused-units",
    "Matrix products and sums stay alone. Into how many units do the ops of our layer fall?",
    choices=["about as many as there are ops", "about half as many", "one"],
)

# %%
units = fused_loops.units_of(graph)
print(len(graph.ops), "ops,", len(units), "units")
for unit in units:
    print(unit)

# %%
checks.answer_to("03-fused-units")

# %% [markdown]
# ## A loop as a program (3 min)
#
# In such a loop each number is loaded once and stored once, whatever is done to it in between. Neighbouring axes that
# all inputs treat alike become one loop. A bias has no rows, so its numbers are found by the column alone. A single
# number is loaded before all loops.

# %%
page.source(fused_loops.LoopWriter.load, fused_loops.LoopWriter.computed)

# %% tags=["nbval-ignore-output"]
unit = max(units, key=lambda unit: len(unit.nodes))
program, taken = fused_loops.loop_program(unit.nodes, unit.nodes[-1:])
print(unit)
print(program.arrays)
print(*[line for line in program.text.splitlines() if " = f" in line], sep="\n")

# %% [markdown]
# Each of these lines was written by the op's scalar function, the same one that makes the kernel of level 2. The lanes
# hold neighbouring numbers that are never added to each other. So lanes reorder nothing, and float64 has them, too.
#
# ## Products and sums (7 min)
#
# Which programs are still missing? The most important is the matrix product. It is the tile of
# [more/02_matmul](02_matmul.ipynb) again, in another shape: it is two registers wide. Their lanes hold neighbours in a
# row of the result. Up to twelve such rows are computed at once, one sum each, and one load from `w` serves them all.
# (If `w` is transposed, or if many rows read its columns, these are first copied into a `panel`, where they lie in the
# order of use.) Each sum still runs upwards from 0.0, so no bit of a float64 changes.

# %%
page.source(fused_parts.write_sums)

# %% [markdown]
# When weights meet many matrices, as in [more/05_text](05_text.ipynb), their gradient is the sum of many products. It
# is one program, too: it adds each product to the result as soon as it is known (`first` says whether it is the first
# one). So the products never go to memory.
#
# How close is a product to the peak that notebook 01 measured?

# %% tags=["nbval-ignore-output"]
product = fused_parts.product_program(100, 64, 64, np.dtype("f4"), False, False)
call = product.bind(**{name: cpu.put(np.ones(array.shape, "f4")) for name, array in product.arrays.items()})
t_product = min(timeit.repeat(call, number=1000, repeat=5)) / 1000
print(f"{t_product * 1e6:.1f} µs, {2 * 100 * 64 * 64 / t_product / cpu.peak:.0%} of the peak of one core")

# %% [markdown]
# Programs for sums are shorter. In a sum over the last axis the lanes are added to each other at the end, which changes
# the order. So only float32 has lanes there.

# %%
page.source(fused_parts.sum_program)

# %% [markdown]
# A table says which program stands for which op. An op that is neither in a loop nor in the table is left to its
# kernel, and so is an op with a kernel of your own. Then the graph is replayed, and only its loops are programs
# (`levels_more/compiler/fused/replay.py`). Random numbers are in the table, so a step with dropout is a list, too.

# %%
print(textwrap.fill(" ".join(fused_parts.PARTS), 88))

# %% [markdown]
# **A good place to stop.** Every op of the graph now belongs to a program: a loop, a product or a sum.

# %% [markdown]
# ## No Python in between (6 min)
#
# Calling a program from Python takes some microseconds. The arithmetic of a small net often takes less. Can the whole
# list run without Python? A program can call another program by its address. So one more program goes down a table of
# addresses, once per step:

# %%
page.source(program_list.list_program)

# %% [markdown]
# The number of the current step is kept in memory, in `now`, because some programs need it. If there are many steps,
# two of these programs surround the units: one fetches the rows of the batch, and one stores the results of the step.
#
# Values that pass from one unit to another need memory. When the last unit that reads a buffer has run, the buffer is
# given to the next value of the same size. The new value of a variable may even be written over the old one, if nothing
# reads the old value later. The loop that writes it may read the old value, because it reads each number before it
# writes it.

# %%
page.source(backend.overwritten)

# %%
places = backend.shared_buffers(units, {*graph.outputs, *graph.updates.values()})
print("written over the old value:", [variable.name for variable in backend.overwritten(graph, units).values()])
print(f"{len(places)} values pass between units, in {len({id(b) for b in places.values()})} buffers")

# %% [markdown]
# ## How much faster is it? (6 min)
#
# We run our layer op by op, and as a list of programs. The losses agree to the last bit:

# %%
rows, target = constant(draw.normal(size=(320, 8))), constant(draw.integers(0, 2, (320, 1)).astype("f8"))
order = np.arange(3200).reshape(100, 32) % 320
starts = wide.value, narrow.value
losses = []
for program in (Replay(graph), backend.FusedProgram(graph, 32, over=True)):
    wide.assign(starts[0]), narrow.assign(starts[1])
    losses.append(program.over([rows, target], order)[0].numpy().tolist())
print("losses equal:", losses[0] == losses[1])

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "03-fused-step",
    "Compared with the replayed graph, how long does a step take as a list of programs, with many steps in one call?",
    choices=["about half as long", "a tenth or less, but over a hundredth", "less than a hundredth"],
)

# %% tags=["nbval-ignore-output"]
given = [gather(rows, order[0]), gather(target, order[0])]
replay, single, many = Replay(graph), backend.FusedProgram(graph, 32), backend.FusedProgram(graph, 32, over=True)
t_replay, t_single = (min(timeit.repeat(lambda p=p: p.run(given), number=50, repeat=5)) / 50 for p in (replay, single))
t_many = min(timeit.repeat(lambda: many.over([rows, target], order), number=1, repeat=5)) / len(order)
print(
    f"µs a step: {t_replay * 1e6:.0f} replayed, {t_single * 1e6:.0f} as a list, {t_many * 1e6:.1f} with many in a call"
)

# %%
checks.answer_to("03-fused-step")

# %% [markdown]
# The numbers are the same. What has gone is the Python between the launches. And programs of the assembler have
# replaced the loops of level 2.
#
# ## Several threads (3 min)
#
# A large net has work for more than one core. So each large program of the list is cut into parts. A product, for
# example, is cut into blocks of its result. Every thread takes the next free part as soon as the parts that it depends
# on are done. No sum is cut, so in float64 any number of threads gives the same bits. But starting a thread takes up to
# 50 µs. So there is one thread for every ten million multiplications in the matrix products:

# %%
page.source(fused_threads.most_threads)

# %%
specs = cpu.spec((1000, 256), "f8"), cpu.spec((256, 256), "f8")
graph = trace(lambda x, w: [relu(relu(x @ w) @ w)], specs)[0]
large = backend.FusedProgram(graph, 1000)
print("threads worth starting:", fused_threads.most_threads(graph))

# %% tags=["nbval-ignore-output"]
given, results = [constant(draw.normal(size=spec.shape) / 16) for spec in specs], set()
for threads in (1, numba.config.NUMBA_NUM_THREADS):
    numba.set_num_threads(threads)
    results.add(large.run(given)[0].numpy().tobytes())
    t_large = min(timeit.repeat(lambda: large.run(given), number=5, repeat=5)) / 5
    print(f"{threads} thread{'s' * (threads > 1)}: {t_large * 1e3:.1f} ms")
print("different results:", len(results))

# %% [markdown]
# All cores that are free share the work. If other programs keep them busy, the first thread takes nearly all parts
# itself, and little is lost. It never waits for a thread to start, only for a part that another thread has begun.
#
# ## A single launch (12 min)
#
# A single launch of level 2 could run such a program, too. There are two reasons against it. The program would have to
# be written again for each shape. And calling a program through `ctypes` takes longer than calling what numba has
# compiled.
#
# Notebook 01 has a solution for the first problem: a size in a program can be a name, whose value each call gives. So
# this product serves all shapes. (It always computes eight rows at once. Beyond the last row it repeats that row.)

# %%
page.source(small_ops.product_program)

# %% [markdown]
# The second problem remains. A call looks up the address of each array, writes the words of the program into a block,
# and jumps to the program. Each call needs a new block. If all calls shared one, another thread could overwrite the
# words before the program has read them.

# %%
page.source(small_ops.caller)

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "03-fused-call",
    "The next cell calls what numba has compiled for `a + b`, with three arrays of 100 numbers. Then it calls a "
    "program that does the same. How long does the call of the program take?",
    choices=["less than numba's", "about as long", "several times as long"],
)

# %% tags=["nbval-ignore-output"]
a, b = (constant(np.ones(100, "f4")) for _ in range(2))
small, out = small_ops.SMALL, cpu.alloc((100,), "f4")
for how, small_ops.SMALL in (("numba's", -1), ("program", small)):
    PLANS.clear()
    launch("add", out, a, b)
    run, x, y, z = planned("add", (a, b), {}).compiled, out.data, a.data, b.data
    t_run, t_launch, t_op = (
        1e6 * min(timeit.repeat(what, globals=globals(), number=10000, repeat=9)) / 10000
        for what in ("run(x, y, z)", "launch('add', out, a, b)", "a + b")
    )
    print(f"{how}: the call alone {t_run:.2f} µs, a launch {t_launch:.2f} µs, a + b {t_op:.2f} µs")

# %%
checks.answer_to("03-fused-call")

# %% [markdown]
# Yet the launch of a program takes about as long as that of numba's. A buffer knows its address, so a launch need not
# look it up as this call does.
#
# And why do small launches run programs? Because numba must be imported first, and then compile each kernel. With an
# empty cache, a first epoch op by op would mostly wait for numba.
#
# ## Which back end? (4 min)
#
# Many graphs could run on either of two back ends. When a function is compiled, nothing is timed. The list `BACK_ENDS`
# has the row program of `levels_more` before the fused program, and its entries are tried in order. A rule decides from
# dtype and shapes: the row program refuses a graph that the fused program runs faster.

# %%
page.source(quick_rows.QuickRowProgram)

# %%
for dtype, width in (("f8", 1), ("f8", 8), ("f4", 8), ("f4", 512)):
    w, v = (constant(np.full(shape, 0.1), dtype) for shape in ((2, width), (width, 1)))
    predict = function(lambda x, w=w, v=v: sigmoid(relu(x @ w) @ v))
    predict(constant(np.ones((100, 2)), dtype))
    print(dtype, f"2-{width}-1", *(type(program).__name__ for program, _ in predict.programs.values()))

# %% [markdown]
# In the row program, float64 adds in order and so has only one lane. The loops of the fused list fill the register.
# In float32 the row program has lanes, too, and nothing goes to memory between the ops of a row. So it is faster
# until a row is too long to be written out. (The net of width 1 has no array with two long axes, so the row program
# takes it.)
#
# **Try it.** Remove a part with `fused_parts.PARTS.pop("matmul")`, and compile a function that multiplies matrices.
# Which kind of program runs it now, and what does its `why` say? (Put it back: `fused_parts.PARTS["matmul"] =
# fused_parts.product_of`.)

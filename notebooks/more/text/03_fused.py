# %% [markdown]
# # 03 more · Fused programs
#
# **In this notebook a graph that does not split into rows becomes a list of programs, and runs without Python in between.**
#
# It needs notebook 03: the graph, its replay, the program by rows; and the product in tiles of `more/02_matmul`. It takes
# apart what
# stands in `levels_more/compiler/`: `fused/loops.py`, `fused/programs.py`, `fused/program_list.py`, `fused/threads.py`, `fused/backend.py` and
# `eager/small_ops.py`. Nothing is exported here.

# %%
from course import build, figures
from course.figures import page

build.watch("more/03_fused")
figures.you_are_here(3)

# %% tags=["hide-input"]
import timeit

import numba
import numpy as np

from course.practice import checks
from levels_more.compiler import passes
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
# ## Too much to write out (4 min)
#
# The program by rows writes out each number of a row. For a layer of 64 units that is too much. Here is one, with its gradient
# and its update:

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
# A `Replay` can run it, as notebook 03 did, with a launch for each op. But elementwise ops that follow each other could be one
# loop, written with the assembler too: the values stay in registers, where a launch for each would write and read them all. This
# is **fusion**.
#
# ## Which ops share a loop? (6 min)
#
# We go through them in order. One that reads a **unit** of its own shape joins it, and makes one of several. A unit that anybody
# else reads is closed, for it must have run by then; so the last ops of the units give an order in which they can run. (Units
# that read nothing of each other stay apart: a loop with more arrays than registers is slower.)

# %%
page.source(fused_loops.loop_of, fused_loops.units_of)

# %% tags=["hide-input"]
checks.predict(
    "Products and sums stay alone. Into how many units do the ops of our layer fall?",
    choices=["about as many as there are ops", "about half as many", "one"],
    answer="about half as many",
    because="What lies between products and sums is one loop each, and so is the whole update of a variable.",
)

# %%
units = fused_loops.units_of(graph)
print(len(graph.ops), "ops,", len(units), "units")
for unit in units:
    print(unit)

# %% [markdown]
# ## A loop as a program (4 min)
#
# Each number is loaded once and stored once, whatever is done to it in between. The nest has as many loops as there are axes
# that the inputs own in different ways. A bias has no rows: it is loaded for each column, a lone number before all loops.

# %%
page.source(fused_loops.LoopWriter.load, fused_loops.LoopWriter.computed)

# %% tags=["nbval-ignore-output"]
unit = max(units, key=lambda unit: len(unit.nodes))
program, taken = fused_loops.loop_program(unit.nodes, unit.nodes[-1:])
print(unit)
print(program.arrays)
print(*[line for line in program.text.splitlines() if " = f" in line], sep="\n")

# %% [markdown]
# The op's own scalar function wrote each of these lines, the one that the kernel of level 2 is made from. Lanes hold neighbours
# that never meet in a sum, so they reorder nothing, and float64 has them too.
#
# ## Products and sums (6 min)
#
# Which programs are missing? The product of matrices is the one that counts, and it is the tile of
# [more/02_matmul](02_matmul.ipynb) again. Neighbours in a row of the result are the lanes of a register. Up to sixteen such rows
# are as many sums, and one load from `w` serves them all. (Where `w` lies the other way round, its columns are first copied into
# a `panel`.) Each sum still runs upwards from 0.0, so no bit of a float64 changes.

# %%
page.source(fused_parts.write_sums)

# %% [markdown]
# How near does it come to the roof of notebook 01?

# %% tags=["nbval-ignore-output"]
product = fused_parts.product_program(100, 64, 64, np.dtype("f4"), False, False)
call = product.bind(**{name: cpu.put(np.ones(array.shape, "f4")) for name, array in product.arrays.items()})
t_product = min(timeit.repeat(call, number=1000, repeat=5)) / 1000
print(f"{t_product * 1e6:.1f} µs, {2 * 100 * 64 * 64 / t_product / cpu.peak:.0%} of the peak of one core")

# %% [markdown]
# Sums are shorter. Over the last axis the lanes meet in the end, so there the dtype decides whether there are any.

# %%
page.source(fused_parts.sum_program)

# %% [markdown]
# A table says which program an op is; an op that is neither a loop nor in the table is left to its kernel, as is a kernel of
# your own. Such a graph is replayed, and only its loops are programs (`levels_more/compiler/fused/replay.py`). With dropout a
# step took
# 85 µs that way. Since random numbers are in the table it takes 3.

# %%
print(*fused_parts.PARTS)

# %% [markdown]
# **A good place to stop.** Each op of the graph is a program, and a table says which.

# %% [markdown]
# ## No Python in between (7 min)
#
# To call a program from Python takes a microsecond or two; the arithmetic of a small net takes less. Can the whole list run
# without Python? A program can call another by its address. So one more goes down a table of addresses, as often as there are
# steps:

# %%
page.source(program_list.list_program)

# %% [markdown]
# The number of the step lies in memory, in `now`, for those programs that want to know it. Two of them stand around the units
# when there are many steps: one fetches the rows of the batch, one puts what the step gives into its place.
#
# What passes from unit to unit needs memory. A buffer whose last reader has run is given to the next value of the same size. And
# a new value may be written straight over the old one, if nobody reads the old one later. A loop may read it itself: it reads
# each number before it writes it.

# %%
page.source(backend.overwritten)

# %%
places = backend.shared_buffers(units, {*graph.outputs, *graph.updates.values()})
print("written over the old value:", [variable.name for variable in backend.overwritten(graph, units).values()])
print(f"{len(places)} values pass between units, in {len({id(b) for b in places.values()})} buffers")

# %% [markdown]
# ## What it brings (5 min)
#
# Our layer op by op, and as a list. The same numbers, to the last bit:

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
checks.predict(
    "A step replayed takes some 35 microseconds. And in one call of many steps, as a list?",
    choices=["about half", "about a tenth", "less than a hundredth"],
    answer="about a tenth",
    because="Each of 23 launches paid for Python and for new memory: more than a microsecond, of which arithmetic was the least.",
)

# %% tags=["nbval-ignore-output"]
given = [gather(rows, order[0]), gather(target, order[0])]
replay, single, many = Replay(graph), backend.FusedProgram(graph, 32), backend.FusedProgram(graph, 32, over=True)
t_replay, t_single = (min(timeit.repeat(lambda p=p: p.run(given), number=50, repeat=5)) / 50 for p in (replay, single))
t_many = min(timeit.repeat(lambda: many.over([rows, target], order), number=1, repeat=5)) / len(order)
print(
    f"µs a step: {t_replay * 1e6:.0f} replayed, {t_single * 1e6:.0f} as a list, {t_many * 1e6:.1f} with many in a call"
)

# %% [markdown]
# The same programs do the same sums. What is gone is Python between them, and level 2's own loops for all that the assembler
# can write.
#
# ## Several threads (4 min)
#
# A large net has work for more than one core. Then each large program of the list is cut into parts: a product, for example, into
# blocks of its result. Every thread takes the next part that is free, as soon as the parts are done that it needs. No sum is cut,
# so in float64 any number of threads gives the same bits. But a thread has to be started, and that takes up to 50 µs. So one more is taken
# only where the products of matrices have 0.1 ms of work for each:

# %%
page.source(fused_threads.most_threads)

# %%
specs = cpu.spec((1000, 256), "f8"), cpu.spec((256, 256), "f8")
graph = trace(lambda x, w: [relu(relu(x @ w) @ w)], specs)[0]
large = backend.FusedProgram(graph, 1000)
print("threads that are worth it:", fused_threads.most_threads(graph))

# %% tags=["nbval-ignore-output"]
given, results = [constant(draw.normal(size=spec.shape) / 16) for spec in specs], set()
for threads in (1, numba.config.NUMBA_NUM_THREADS):
    numba.set_num_threads(threads)
    results.add(large.run(given)[0].numpy().tobytes())
    t_large = min(timeit.repeat(lambda: large.run(given), number=5, repeat=5)) / 5
    print(f"{threads} thread{'s' * (threads > 1)}: {t_large * 1e3:.1f} ms")
print("different results:", len(results))

# %% [markdown]
# As many cores as are free share the work. Where another program has them, the first thread takes nearly all parts itself, and
# little is lost: it never waits for a thread, only for a part that has begun.
#
# ## A single launch (10 min)
#
# Why should only lists run such programs? A launch of level 2 could, too. Two things speak against it. The program would be written
# anew for each shape. And Python calls what numba compiles more quickly than it calls a program through `ctypes`.
#
# The first has a cure from notebook 01: a size can be a name, which each call tells. This product serves all shapes. (Rows beyond
# the last one are the last one again, so that eight can always be computed at once.)

# %%
page.source(small_ops.product_program)

# %% [markdown]
# The second stays. A call finds the address of each array, writes the words of the program into a block of its own, and jumps. The
# block is new in each call: with one block for all, another thread could write its words there before the program has read them.

# %%
page.source(small_ops.caller)

# %% tags=["hide-input"]
checks.predict(
    "The next cell calls what numba has compiled for `a + b`, with three arrays of 100 numbers, and then a program. How long does the "
    "program's call take?",
    choices=["less than numba's", "about as long", "several times as long"],
    answer="several times as long",
    because="Python asks three arrays for their addresses, one after the other, and packs a block. numba's call does the same in C.",
)

# %% tags=["nbval-ignore-output"]
a, b = (constant(np.ones(100, "f4")) for _ in range(2))
small, out = small_ops.SMALL, cpu.alloc((100,), "f4")
for how, small_ops.SMALL in (("numba's", -1), ("program", small)):
    PLANS.clear()
    launch("add", out, a, b)
    run, x, y, z = planned("add", (a, b), {}).run, out.data, a.data, b.data
    t_run, t_launch, t_op = (
        1e6 * min(timeit.repeat(what, globals=globals(), number=10000, repeat=9)) / 10000
        for what in ("run(x, y, z)", "launch('add', out, a, b)", "a + b")
    )
    print(f"{how}: the call alone {t_run:.2f} µs, a launch {t_launch:.2f} µs, a + b {t_op:.2f} µs")

# %% [markdown]
# So why do small launches run programs? A reader waits for something else: numba takes a third of a second to compile a kernel, the
# assembler a hundredth. With numba's kernels a first epoch of the rings, op by op and with nothing kept, takes 7 seconds. With these
# programs it takes less than one, and numba is not even imported.
#
# ## Which back end? (2 min)
#
# Two back ends can hold many graphs, and which is quicker was measured once. Nothing is timed when a function is compiled: a rule
# of dtype and shapes decides. Its figures stand with it:

# %%
page.source(backend.rank)

# %%
for dtype, width in (("f8", 1), ("f8", 8), ("f4", 8), ("f4", 512)):
    w, v = (constant(np.full(shape, 0.1), dtype) for shape in ((2, width), (width, 1)))
    predict = function(lambda x, w=w, v=v: sigmoid(relu(x @ w) @ v))
    predict(constant(np.ones((100, 2)), dtype))
    print(dtype, f"2-{width}-1", *(type(program).__name__ for program, _ in predict.programs.values()))

# %% [markdown]
# By rows, float64 adds in order and has one lane, where its loops fill the register. In float32 nothing goes to memory between
# the ops of a row, and the program by rows stays ahead until a row is too long to be written out.
#
# **Try it.** Take a part away, `fused_parts.PARTS.pop("matmul")`, and compile a function that multiplies: which program is it
# now, and what does its `why` say? (Put it back: `fused_parts.PARTS["matmul"] = fused_parts.product_of`.)

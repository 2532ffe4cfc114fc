# %% [markdown]
# # 01 more · Measuring
#
# **In this notebook you ask your machine how far away its memory is, and how fast it can compute.**
#
# It needs notebook 01: the assembler, lanes, and what a step costs. It takes `levels_more/hardware/benchmark.py` apart. Nothing is
# exported here.

# %%
import numpy as np

from course import build, compare, figures, tasks
from course.figures import page
from course.practice import checks
from levels.hardware import roofline
from levels.support.machine import host_lanes
from levels_more.hardware import Assembler, benchmark, line_program, net_program, pool, seconds
from levels_more.hardware.benchmark import Pool, measure_latency, measure_reading

build.watch("more/01_measuring")
cpu = pool()["cpu:0"]
figures.you_are_here(1)

# %% [markdown]
# ## A clock (1 min)
#
# Timing has rules. Take the clock that counts only this thread's work, so that a busy neighbour does not count. Repeat, and take
# the **median**: one interruption spoils a mean.

# %%
page.source(seconds)

# %% [markdown]
# ## How far away is memory? (10 min)
#
# To find out how long one load takes, each load must wait for the one before. So we make a chain: every element holds
# the number of the next one. The chain visits one element in every cache line. The order is random, so that nothing can
# be guessed ahead. The program walks along it. Where it stands must outlive a turn of the loop, so it is kept in a slot, as a
# sum keeps its number; these lines of LLVM we write ourselves.

# %%
page.source(benchmark.chase_program, measure_latency)

# %% tags=["hide-input"]
checks.predict(
    "A load waits for the one before. How many times as long does it take when the chain fills 256 MiB, not 4 KiB?",
    slider=(1, 1000),
    answer=(40, 250),
    because="4 KiB stay in the cache beside the core, a few turns of its clock away. 256 MiB fit into no cache of most "
    "machines, so nearly every load goes out to the memory chips. How far away these are differs from machine to machine: "
    "the next cell measures yours.",
)

# %% tags=["nbval-ignore-output"]
sizes = [2**k for k in range(12, 29)]
figures.staircase(sizes, [measure_latency(cpu, size) * 1e9 for size in sizes], figures.host_caches())

# %% [markdown]
# Most steps of the staircase are **caches**: small memories close to the core that keep copies of the lines used last. What
# does not fit into one comes from the next, which is larger and farther away. Not every step is a cache: the processor also keeps
# a short list of where in the chips each page of memory lies, and where the pages no longer fit into that list, finding the
# place takes time too ([Drepper, 2007](https://www.akkadia.org/drepper/cpumemory.pdf) tells the whole story).
#
# A line of 64 bytes holds sixteen float32. Use all sixteen or one of them: the cost is the same.

# %% tags=["hide-input"]
checks.predict(
    "A matrix of 8192 × 8192 float32 lies row after row. We add it up row by row, then column by column. "
    "How many times as long does the second take?",
    slider=(1, 50, 1),
    answer=(3, 30),
    because="A column touches a new line with every number and leaves the other fifteen unused. The rows are 2^15 bytes "
    "apart, so these lines also compete for the same few places of the cache. How many places there are depends on the machine.",
)

# %% tags=["nbval-ignore-output"]
x = np.ones((8192, 8192), "f4")


def add_up(lines):
    return seconds(lambda: [line.sum() for line in lines], repeats=3)


by_rows, by_columns = add_up(x), add_up(x.T)
print(f"by rows {by_rows * 1e3:.0f} ms, by columns {by_columns * 1e3:.0f} ms: {by_columns / by_rows:.1f} times as long")
del x

# %% [markdown]
# ## How much can it read? (4 min)
#
# Loads that do not wait for each other overlap. So another number tells how fast a program can stream through memory: the
# **bandwidth**. This program reads everything, 16 lanes at a time or however many there are, in eight independent sums.

# %%
page.source(benchmark.read_program, measure_reading)

# %% tags=["nbval-ignore-output"]
figures.bandwidths(sizes, [measure_reading(cpu, size) for size in sizes], figures.host_caches())

# %% [markdown]
# (The core asks NumPy's `max` for its bandwidth, which reads each number once: one line, and about as quick.)

# %% [markdown]
# ## How fast does it compute? (6 min)
#
# An addition takes a few turns of the processor's clock, but a core can begin one or two in every turn, if they do not need
# each other's results. So the speed depends on how many sums the program keeps going at once. This one does nothing but
# multiply and add, in registers.

# %%
page.source(roofline._measure_turn)

# %% tags=["hide-input"]
checks.predict(
    "One sum against twelve independent sums, the same instruction: how many times as many operations a second?",
    slider=(1, 12, 1),
    answer=(4, 12),
    because="One sum alone waits for its own last addition, about four turns of the clock. A core that begins one in every "
    "turn gains 4 times, one that begins two gains 8, and Apple's large cores begin four.",
)

# %% tags=["nbval-ignore-output"]
counts = list(range(1, 17))
turns = [roofline._measure_turn(cpu, count) for count in counts]  # two operations in each lane of each sum
figures.accumulators(counts, [2 * host_lanes() * count / turn for count, turn in zip(counts, turns)])

# %% [markdown]
# How long each instruction of a processor takes, and how many a core begins in a turn, is measured and listed by
# [Fog, "Instruction tables"](https://www.agner.org/optimize/instruction_tables.pdf) for Intel's and AMD's, and by
# [Johnson, "Apple M1 Microarchitecture"](https://dougallj.github.io/applecpu/firestorm.html) for Apple's.
#
# The plateau is the **peak** for these instructions. Each sum of the record is one chain: its additions cannot share lanes,
# and cannot overlap. (Different sums still can.) That is the price of strictness in float64, and why float32 may reorder.
#
# It also tells why a step of the line takes longer than its floor. From a weight to its next value, five operations make the
# error, three its slope, ten the sum, two the update: twenty, and each waits for the one before.

# %% tags=["nbval-ignore-output"]
line = line_program(np.dtype("f8"), ((2, 1), (1, 1)))
print(f"20 operations that wait     {20e6 * roofline._measure_turn(cpu, 1):.4f} µs")
print(f"a step of the line takes    {1e6 * compare.step_time(line, tasks.linear()):.4f} µs")

# %% [markdown]
# Now the pool can say what it is:

# %% tags=["nbval-ignore-output"]
Pool(pool())

# %% [markdown]
# ## The roofline (6 min)
#
# How fast *can* a program be? If it does many operations on each byte, the peak bounds it; if few, the bandwidth.
# Operations per byte on one axis, operations per second on the other: the bound looks like a roof. We put two programs
# under it that multiply two 240 × 240 matrices. Both do the same additions. The second keeps eight rows, so eight sums,
# going at once.


# %%
def matmul_program(size, rows):
    a, blocks = Assembler("matmul", "f4"), size // rows
    x, w, y = a.array("x", blocks, rows, size), a.array("w", size, size), a.array("y", blocks, rows, size)
    with a.loop(blocks) as block, a.loop(size, a.lanes) as j:
        sums = [a.sum() for _ in range(rows)]
        with a.loop(size) as k:
            for r, s in enumerate(sums):
                s += a.load(x, block, r, k) * a.load(w, k, j)
        for r, s in enumerate(sums):
            a.store(s.value(), y, block, r, j)
    return a.assemble()


# %% [markdown]
# `rows` says how many rows, so how many sums, it keeps going. Each sum has a lane for each of the neighbouring columns `j`.

# %%
n, draw = 240, np.random.default_rng(0)
matrices = [draw.standard_normal((n, n), "f4") for _ in range(2)]
points = []
for rows in (1, 8):
    x, w = matrices
    x, w, y = cpu.put(x.reshape(-1, rows, n)), cpu.put(w), cpu.alloc((n // rows, rows, n), "f4")
    run = matmul_program(n, rows).bind(x=x, w=w, y=y)
    points.append((f"matmul, {rows} row{'s' * (rows > 1)}", 2 * n**3, 3 * 4 * n**2, seconds(run)))
    print(
        f"{rows} at once: equal to NumPy's, nearly:",
        np.allclose(y.numpy().reshape(n, n), matrices[0] @ matrices[1], atol=1e-3),
    )

# %% tags=["nbval-ignore-output"]
figures.roofline(cpu.peak, cpu.bandwidth, points)

# %% [markdown]
# The picture says what to do. A point far below the flat part of the roof computes too slowly: more independent work. A point
# at the slope moves too many bytes: fewer of them. A point above the slope reads from a cache, which has a steeper roof
# of its own. These three matrices fit into a cache. Level 2 takes larger ones, which do not fit, to the same height.

# %% [markdown]
# **A good place to stop.** The roof of your machine stands, and two products lie beneath it.

# %% [markdown]
# ## Why the net is not at the roof (3 min)
#
# Here are the two tasks, in float32, beside the two products. One step reads ten rows or a hundred of 20 bytes each.

# %%
from levels_more.hardware.disassembly import listing


def program_of(program, task):
    return program(np.dtype("f4"), tuple(w.shape for w in task.weights))


line, net = program_of(line_program, tasks.linear()), program_of(net_program, tasks.rings())

# %% tags=["nbval-ignore-output"]
points += [("linear", 10 * compare.operations(line), 10 * 20, compare.step_time(line, tasks.linear()))]
points += [("DNN", 100 * compare.operations(net), 100 * 20, compare.step_time(net, tasks.rings()))]
figures.roofline(cpu.peak, cpu.bandwidth, points)

# %% [markdown]
# Why is the net not at the roof? The peak counts a multiplication and an addition in every instruction and nothing besides.
# What the net's program really does, its listing tells:

# %% tags=["nbval-ignore-output"]
from collections import Counter as Tally

words = [text.split() for text in listing(net).splitlines()]
mix = Tally(word[0] for word in words if not word[0].endswith(":"))
print(", ".join(f"{count} {name}" for name, count in mix.most_common(10)))

# %% [markdown]
# Five things keep it down. Only part of the arithmetic is a multiplication with an addition, which one instruction can do
# together (`fmadd`; on ARM `fmla`). The 61 sums do not fit into 16 or 32 registers, so each turn loads and stores them (`mov`;
# on ARM `ldr`, `str`). The rows of a batch lie anywhere, so their lanes are gathered, a load for each. The last turn of a batch
# may be mostly masked: 100 rows are six turns of sixteen lanes, and four rows more. And each step ends by adding up 61 sums lane
# by lane.

# %% [markdown]
# ## 01-3 · Lines touched (1 min)
#
# A program reads `x[0], x[step], x[2·step], …`, so many numbers. The array begins where a line of 64 bytes begins. How many lines
# does the program touch? Here are four float64 with a step of 5. Each mark is the place of a number, and a digit one that is read:
#
# ```
#   first line          second line
# 0 . . . . 1 . .     . . 2 . . . . 3
# ```
#
# (About 2 lines.)

# %%
from course.practice import exercises

exercises.begin("01-3")


def lines_touched(count, step, itemsize):
    """The lines of 64 bytes that hold `count` numbers of `itemsize` bytes, `step` numbers from one to the next."""
    return ...


exercises.check("01-3", lines_touched)

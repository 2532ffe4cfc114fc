# %% [markdown]
# # 01 more · Measuring
#
# **In this notebook you measure how far away your machine's memory is, and how fast it can compute.**
#
# It needs notebook 01: the assembler, and the cost of a step. It takes `levels/support/measure.py` and
# `levels_more/hardware/benchmark.py` apart. Its programs use `Lanes`, the assembler for wide registers. Nothing is
# exported here.

# %%
import numpy as np

from course import build, compare, figures, tasks
from course.figures import page
from course.practice import checks
from levels.hardware import line_row, net_row, write_steps
from levels.support import measure
from levels.support.machine import host_lanes
from levels.support.measure import seconds, turn_time
from levels_more.hardware import Lanes, benchmark, pool
from levels_more.hardware.benchmark import Pool, measure_latency, measure_reading

build.watch("more/01_measuring")
cpu = pool()["cpu:0"]
figures.you_are_here(1)

# %% [markdown]
# ## A clock (1 min)
#
# Timing has three rules. Use a clock that counts only this thread's work, so that other programs on the machine do not
# count. Repeat the measurement. Take the **median**, because a single interruption spoils a mean.

# %%
page.source(seconds)

# %% [markdown]
# ## How far away is memory? (14 min)
#
# To measure how long one load takes, we make each load wait for the one before. So we build a chain: every element
# holds the number of the next one. The chain visits one element in every cache line, in random order, so that the
# processor cannot guess the next address. The program walks along the chain. The place that it has reached must be kept
# from one turn of the loop to the next. So it is stored in a slot, as the number of a sum is. The assembler has no
# operation for that, so we write these lines of LLVM ourselves.

# %%
page.source(benchmark.chase_program, measure_latency)

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "01-measuring-chain",
    "Each load waits for the one before. How many times as long does a load take when the chain fills 256 MiB instead "
    "of 4 KiB?",
    slider=(1, 1000),
)

# %% tags=["nbval-ignore-output"]
sizes = [2**k for k in range(12, 29)]
figures.staircase(sizes, [measure_latency(cpu, size) * 1e9 for size in sizes], figures.host_caches())

# %%
checks.answer_to("01-measuring-chain")

# %% [markdown]
# Most steps of the staircase are **caches**: small memories close to the core that keep copies of the lines used last.
# Data that does not fit into one cache comes from the next, which is larger and farther away. But not every step is a
# cache. The processor also keeps a short list of where in the chips each page of memory lies. If the pages are too many
# for that list, finding them takes additional time ([Drepper, 2007](https://www.akkadia.org/drepper/cpumemory.pdf)
# explains all of this).
#
# A cache line of 64 bytes holds sixteen float32 numbers. Loading the line costs the same whether the program uses all
# sixteen or only one.

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "01-measuring-columns",
    "A matrix of 8192 × 8192 float32 numbers is stored row after row. We add it up row by row, then column by column. "
    "How many times as long does the second way take?",
    slider=(1, 50, 1),
)

# %% tags=["nbval-ignore-output"]
x = np.ones((8192, 8192), "f4")


def add_up(lines):
    return seconds(lambda: [line.sum() for line in lines], repeats=3)


by_rows, by_columns = add_up(x), add_up(x.T)
print(f"by rows {by_rows * 1e3:.0f} ms, by columns {by_columns * 1e3:.0f} ms: {by_columns / by_rows:.1f} times as long")
del x

# %%
checks.answer_to("01-measuring-columns")

# %% [markdown]
# ## How much can it read? (3 min)
#
# Loads that do not wait for each other overlap. So a second number says how fast a program can stream through memory:
# the **bandwidth**. The next program reads a whole array into eight independent sums. It uses all the lanes that your
# machine has, for example 16.

# %%
page.source(benchmark.read_program, measure_reading)

# %% tags=["nbval-ignore-output"]
figures.bandwidths(sizes, [measure_reading(cpu, size) for size in sizes], figures.host_caches())

# %% [markdown]
# (Notebook 01 measures the bandwidth with NumPy's `max`, which also reads each number once. That is a single line of
# code, and about as fast.)

# %% [markdown]
# ## How fast does it compute? (9 min)
#
# An addition takes a few turns of the processor's clock. But a core can begin one or two additions in every turn, if
# they do not need each other's results. So the speed depends on how many independent sums the program computes at once.
# The next program only multiplies and adds, and all its numbers are in registers. It is written in LLVM's language
# itself: `phi` gives a register that changes from turn to turn.

# %%
page.source(measure._turns_text, turn_time)

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "01-measuring-sums",
    "We compare one sum with twelve independent sums, all of the same instruction. How many times as many operations "
    "per second do the twelve make?",
    slider=(1, 12, 1),
)

# %% tags=["nbval-ignore-output"]
counts = list(range(1, 17))
turns = [turn_time(count) for count in counts]  # each lane of each sum makes two operations
figures.accumulators(counts, [2 * host_lanes() * count / turn for count, turn in zip(counts, turns)])

# %%
checks.answer_to("01-measuring-sums")

# %% [markdown]
# Two authors have measured how long each instruction takes, and how many of them a core begins per turn: [Fog,
# "Instruction tables"](https://www.agner.org/optimize/instruction_tables.pdf) for Intel's and AMD's processors, and
# [Johnson, "Apple M1 Microarchitecture"](https://dougallj.github.io/applecpu/firestorm.html) for Apple's.
#
# The plateau of the curve is the **peak** for these instructions. In the arithmetic of record, each sum is a single
# chain. The additions of one chain cannot share lanes and cannot overlap, though different sums can. This is the price
# of a fixed order in float64. It is also the reason why float32 programs may reorder their sums.
#
# It also explains why a step of the line takes longer than its lower limit. From a weight to its next value, twenty
# operations wait for each other: five make the error, three its slope, ten the sum, and two the update.

# %% tags=["nbval-ignore-output"]
line = compare.program_of(line_row, tasks.linear())
print(f"20 operations that wait     {20e6 * turn_time(1):.4f} µs")
print(f"a step of the line takes    {1e6 * compare.step_time(line, tasks.linear()):.4f} µs")

# %% [markdown]
# Now the pool shows what we have measured:

# %% tags=["nbval-ignore-output"]
Pool(pool())

# %% [markdown]
# ## The roofline (5 min)
#
# How fast *can* a program be? If it does many operations per byte, the peak limits it. If it does few, the bandwidth
# limits it. With operations per byte on one axis and operations per second on the other, this limit looks like a roof.
# We put two programs under it. Both multiply two 240 × 240 matrices and do the same additions. The second one computes
# eight rows at once, and therefore eight sums.


# %%
def matmul_program(size, rows):
    a, blocks = Lanes("matmul", "f4"), size // rows
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
# `rows` is the number of rows, and so of sums, that the program computes at once. Each sum has one lane per
# neighbouring column `j`.

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
        f"{rows} at once, close to NumPy's:",
        np.allclose(y.numpy().reshape(n, n), matrices[0] @ matrices[1], atol=1e-3),
    )

# %% tags=["nbval-ignore-output"]
figures.roofline(cpu.peak, cpu.bandwidth, points)

# %% [markdown]
# The picture shows what would make a program faster. A point far below the flat part of the roof computes too slowly:
# it needs more independent work. A point at the slope moves too many bytes: it needs to move fewer. A point above the
# slope reads from a cache, which has a steeper roof of its own. These three matrices fit into a cache. Level 2 gets
# larger matrices, which do not fit, to the same height.

# %% [markdown]
# **A good place to stop.** You know the roof of your machine, and have placed two matrix products beneath it.

# %% [markdown]
# ## Why the net is not at the roof (4 min)
#
# Here are the two tasks, in float32 and in lanes, beside the two products. One step reads ten rows (the line) or a hundred rows (the
# net), of 20 bytes each.

# %%
from levels_more.hardware.disassembly import listing


def in_lanes(one_row, task):
    a = Lanes("train", "f4")
    write_steps(a, one_row, [w.shape for w in task.weights])
    return a.assemble()


line, net = in_lanes(line_row, tasks.linear()), in_lanes(net_row, tasks.rings())

# %% tags=["nbval-ignore-output"]
points += [("linear", 10 * compare.operations(line), 10 * 20, compare.step_time(line, tasks.linear()))]
points += [("DNN", 100 * compare.operations(net), 100 * 20, compare.step_time(net, tasks.rings()))]
figures.roofline(cpu.peak, cpu.bandwidth, points)

# %% [markdown]
# Why is the net not at the roof? The peak assumes that every instruction is a multiplication with an addition. The
# listing of the net's program shows which instructions it really has:

# %% tags=["nbval-ignore-output"]
from collections import Counter as Tally

words = [text.split() for text in listing(net).splitlines()]
mix = Tally(word[0] for word in words if not word[0].endswith(":"))
print(", ".join(f"{count} {name}" for name, count in mix.most_common(10)))

# %% [markdown]
# Five things keep the net below the roof:
#
# - Only part of the arithmetic is a multiplication with an addition, which one instruction can do together (`fmadd`; on
#   ARM `fmla`).
# - The 61 sums do not fit into 16 or 32 registers, so each turn of the loop loads and stores them (`mov`; on ARM `ldr`,
#   `str`).
# - The rows of a batch lie anywhere in memory, so each lane needs a load of its own.
# - The last turn of a batch may be mostly masked: 100 rows are six turns of sixteen lanes, and then four rows more.
# - At the end of each step, the lanes of 61 sums must be added up.

# %% [markdown]
# ## 01-3 · Lines touched (1 min)
#
# A program reads `count` numbers, `x[0], x[step], x[2·step], …`. The array begins where a cache line of 64 bytes
# begins. How many lines does the program touch? The example reads four float64 numbers with a step of 5. Each mark is
# the place of a number, and a digit marks one that is read:
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
    """The number of 64-byte lines that hold `count` numbers of `itemsize` bytes, each `step` places after the last."""
    return ...


exercises.check("01-3", lines_touched)

# %% [markdown]
# # 01 more · Order decides the bits and the speed
#
# **In this notebook the order of additions decides the last bits of a sum, and what waits for what decides its speed.**
#
# It needs notebook 01: the surprise at its beginning, and from *A clock* on the assembler and the cost of a step. It
# takes `levels/support/measure.py` and `levels_more/hardware/benchmark.py` apart. Nothing is exported here.

# %%
import re
from collections import Counter

import numpy as np

from course import build, compare, figures, tasks
from course.reader import checks
from course.reader.figures import page
from levels.hardware import line_row, net_row, write_steps
from levels.support import measure
from levels.support.machine import host_lanes
from levels.support.measure import seconds, turn_time
from levels_more.hardware import Lanes, benchmark, pool
from levels_more.hardware.benchmark import Pool, measure_latency, measure_reading
from levels_more.hardware.disassembly import listing

build.watch("more/01_measuring")
cpu = pool()["cpu:0"]
figures.you_are_here(1)

# %% [markdown]
# ## Sign, exponent, fraction (3 min)
#
# A float consists of a sign, an exponent and a fraction: ±1.fraction · 2^exponent. The cell below prints one tenth in
# three formats, each split into these three parts. The exponent has 5 bits in float16 and 8 bits in float32. A bfloat16
# is the upper half of a float32: it has the same range, but less precision. The code only prints bits, so you need not
# read it.

# %%
# "f4" is a float of 32 bits, "u4" reads its bits as a whole number
exponent_bits = {"float32": 8, "float16": 5, "bfloat16": 8}
for name, bits in exponent_bits.items():
    tenth = np.array(0.1, "f2" if name == "float16" else "f4")
    if name == "bfloat16":  # keep the upper 16 bits, rounded to the nearest
        rounded = tenth.view("u4") + np.uint32(0x8000)
        tenth = (rounded & np.uint32(0xFFFF0000)).view("f4")
    whole = int(tenth.view(f"u{tenth.itemsize}"))
    text = f"{whole:0{8 * tenth.itemsize}b}"[: 16 if name == "bfloat16" else None]
    exponent, fraction = text[1 : 1 + bits], text[1 + bits :]
    print(f"{name:9} {text[0]} {exponent} {fraction:23}  is {float(tenth):.10f}")

# %% [markdown]
# What is stored is the exponent plus a constant, the **bias** (127 in float32, 15 in float16). So 01111011, which is
# 123, stands for 2⁻⁴. The 1 before the point is always there, so it is not stored: 23 bits of fraction give 24
# significant bits. None of the three numbers is exactly one tenth, because a format has only a limited set of numbers.
# There are as many between 1 and 2 as between 2 and 4, or between 1,024 and 2,048. How far apart are two neighbours?

# %%
for n in (1, 1e8):
    f4, f8 = (np.spacing(np.array(n, dtype)) for dtype in ("f4", "f8"))
    print(f"next to {n:.0e}: float32 {f4:.2g}, float64 {f8:.2g}")

# %% [markdown]
# ## Every operation rounds (5 min)
#
# Near a hundred million, float32 has only every eighth whole number. Each +, −, × and ÷ rounds its exact result to the
# nearest number of the format. If two are equally near, it takes the one whose last bit is 0. So every operation may
# lose something, and how much is lost depends on the order of the operations.

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "01-measuring-large",
    "In float32: what are (10⁸ + 1) - 10⁸ and (10⁸ - 10⁸) + 1?",
    choices=["1 and 1", "0 and 1", "1 and 0", "0 and 0"],
)

# %%
big, one = np.float32(1e8), np.float32(1)
print("left to right:", (big + one) - big)
print("the large ones first:", (big - big) + one)

# %%
checks.answer_to("01-measuring-large")

# %% [markdown]
# Neither sum is wrong. They are different programs, and each rounds in its own places.
#
# ## Strict, or quick (3 min)
#
# That is why the course has an *arithmetic of record*. In float64 its assembler forbids two things to LLVM: to reorder
# operations, and to join a product and a sum into one instruction that rounds only once. One number shows the
# difference between rounding twice and rounding once. Let e = 2⁻²⁷. The square of 1 + e is 1 + 2e + e², and next to a 1
# the term e² is too small for a float64:

# %%
e = 2.0**-27
print("rounded after the square:", (1 + e) ** 2 - (1 + 2 * e))
print("rounded once:", e**2)

# %% [markdown]
# `Lanes` is the assembler for wide registers, which this notebook's programs use. Here is a product as it writes it, in
# one lane, in both formats:

# %%
for dtype in ("f8", "f4"):
    a = Lanes("twice", dtype, lanes=1)
    x, out = a.array("x", 1), a.array("out", 1)
    v = a.load(x, 0)
    a.store(v * v - (1 + 2 * e), out, 0)
    line = next(line for line in a.lines if "fmul" in line)
    print(dtype, re.search("fmul( contract)?", line)[0])

# %% [markdown]
# In float32 `Lanes` adds the word `contract`, which allows LLVM to join the product with a sum that follows. In float64
# it adds nothing. The dtype alone decides; there is no other switch.
#
# **A good place to stop.** Each operation rounds, so the order of additions decides the last bits of a sum.
#
# ## A clock (1 min)
#
# Timing has three rules. Use a clock that counts only this thread's work, so that other programs on the machine do not
# count. Repeat the measurement. Take the **median**, because a single interruption spoils a mean.

# %%
page.source(seconds)

# %% [markdown]
# ## How fast does it compute? (9 min)
#
# A fixed order has a price. An addition takes a few turns of the processor's clock. But a core can begin one or two
# additions in every turn, if they do not need each other's results. So the speed depends on how many independent sums
# the program computes at once. The next program only multiplies and adds, and all its numbers are in registers. It is
# written in LLVM's language itself: `phi` gives a register that changes from turn to turn.

# %%
page.source(measure._turns_text, turn_time)

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "01-measuring-sums",
    "We compare one sum with twelve independent sums, all of the same instruction. "
    "How many times as many operations per second do the twelve make?",
    slider=(1, 12, 1),
)

# %% tags=["nbval-ignore-output"]
counts = list(range(1, 17))
# each lane of each sum makes two operations per turn
speeds = [2 * host_lanes() * count / turn_time(count) for count in counts]
figures.accumulators(counts, speeds)

# %%
checks.answer_to("01-measuring-sums")

# %% [markdown]
# Two authors have measured how long each instruction takes, and how many of them a core begins per turn: [Fog,
# "Instruction tables"](https://www.agner.org/optimize/instruction_tables.pdf) for Intel's and AMD's processors, and
# [Johnson, "Apple M1 Microarchitecture"](https://dougallj.github.io/applecpu/firestorm.html) for Apple's.
#
# The plateau of the curve is the **peak** for these instructions. In the arithmetic of record, each sum is a single
# chain. The additions of one chain cannot share lanes and cannot overlap, though different sums can. That is why
# float32 programs may reorder their sums. (Sixteen sums need more registers than some processors have, so there the
# speed may fall.)
#
# It also explains why a step of the line takes longer than its lower limit. From a weight to its next value, twenty
# operations wait for each other: five make the error, three its slope, ten the sum, and two the update.

# %% tags=["nbval-ignore-output"]
line = compare.program_of(line_row, tasks.linear())
step = compare.step_time(line, tasks.linear())
print(f"20 operations that wait     {20e6 * turn_time(1):.4f} µs")
print(f"a step of the line takes    {1e6 * step:.4f} µs")

# %% [markdown]
# **A good place to stop.** One sum is a chain, and a chain of additions uses only a part of a core.
#
# ## How far away is memory? (14 min)
#
# Loads can wait for each other, too. To measure how long one load takes, we build a chain: every element holds the
# number of the next one. The chain visits one element in every cache line, in random order, so that the processor
# cannot guess the next address. The program walks along the chain. The place that it has reached must be kept from one
# turn of the loop to the next. So it is stored in a slot, as the number of a sum is. The assembler has no operation for
# that, so we write these lines of LLVM ourselves.

# %%
page.source(benchmark.chase_program, measure_latency)

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "01-measuring-chain",
    "Each load waits for the one before. How many times as long does a load take "
    "when the chain fills 256 MiB instead of 4 KiB?",
    slider=(1, 1000),
)

# %% tags=["nbval-ignore-output"]
sizes = [2**k for k in range(12, 29)]
nanoseconds = [measure_latency(cpu, size) * 1e9 for size in sizes]
figures.staircase(sizes, nanoseconds, figures.host_caches())

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
    "A matrix of 8192 × 8192 float32 numbers is stored row after row. We add it up "
    "row by row, then column by column. How many times as long does the second take?",
    slider=(1, 50, 1),
)

# %% tags=["nbval-ignore-output"]
x = np.ones((8192, 8192), "f4")


def add_up(lines):
    return seconds(lambda: [line.sum() for line in lines], repeats=3)


by_rows, by_columns = add_up(x), add_up(x.T)
print(f"by rows {by_rows * 1e3:.0f} ms, by columns {by_columns * 1e3:.0f} ms:")
print(f"{by_columns / by_rows:.1f} times as long")
del x

# %%
checks.answer_to("01-measuring-columns")

# %% [markdown]
# ## How much can it read? (1 min)
#
# Loads that do not wait for each other overlap. So a second number says how fast a program can stream through memory:
# the **bandwidth**. `measure_reading` measures it with a program that reads a whole array into eight independent sums,
# in all the lanes that your machine has.

# %% tags=["nbval-ignore-output"]
speeds = [measure_reading(cpu, size) for size in sizes]
figures.bandwidths(sizes, speeds, figures.host_caches())

# %% [markdown]
# (Notebook 01 measures the bandwidth with NumPy's `max`, which also reads each number once. That is a single line of
# code, and about as fast.) The pool now shows what we have measured:

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
    x, y = (a.array(name, blocks, rows, size) for name in "xy")
    w = a.array("w", size, size)
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
x, w = (draw.standard_normal((n, n), "f4") for _ in range(2))
points = []
for rows in (1, 8):
    y = cpu.alloc((n // rows, rows, n), "f4")
    run = matmul_program(n, rows).bind(x=cpu.put(x.reshape(y.shape)), w=cpu.put(w), y=y)
    name = f"matmul, {rows} row{'s' * (rows > 1)}"
    points.append((name, 2 * n**3, 3 * 4 * n**2, seconds(run)))
    close = np.allclose(y.numpy().reshape(n, n), x @ w, atol=1e-3)
    print(f"{rows} at once, close to NumPy's:", close)

# %% tags=["nbval-ignore-output"]
figures.roofline(cpu.peak, cpu.bandwidth, points)

# %% [markdown]
# The picture shows what would make a program faster. A point far below the flat part of the roof computes too slowly:
# it needs more independent work. A point at the slope moves too many bytes: it needs to move fewer. A point above the
# slope reads from a cache, which has a steeper roof of its own. These three matrices fit into a cache.
# *more/02_matmul* gets larger ones to this height, and above it.
#
# **A good place to stop.** You know the roof of your machine, and have placed two matrix products beneath it.
#
# ## Why the net is not at the roof (4 min)
#
# Here are the two tasks, in float32 and in lanes, beside the two products. One step reads ten rows (the line) or a
# hundred rows (the net), of 20 bytes each.


# %%
def in_lanes(one_row, task):
    a = Lanes("train", "f4")
    write_steps(a, one_row, [w.shape for w in task.weights])
    return a.assemble()


line, net = in_lanes(line_row, tasks.linear()), in_lanes(net_row, tasks.rings())

# %% tags=["nbval-ignore-output"]
for name, rows, program, task in (
    ("linear", 10, line, tasks.linear()),
    ("DNN", 100, net, tasks.rings()),
):
    flops = rows * compare.operations(program)
    points.append((name, flops, rows * 20, compare.step_time(program, task)))
figures.roofline(cpu.peak, cpu.bandwidth, points)

# %% [markdown]
# Why is the net not at the roof? The peak assumes that every instruction is a multiplication with an addition. The
# listing of the net's program shows which instructions it really has:

# %% tags=["nbval-ignore-output"]
words = [text.split() for text in listing(net).splitlines()]
mix = Counter(word[0] for word in words if not word[0].endswith(":"))
for name, count in mix.most_common(10):
    print(f"{count:5} {name}")

# %% [markdown]
# Five things keep the net below the roof:
#
# - Only part of the arithmetic is a multiplication with an addition, which one instruction can do together (`fmadd`; on
#   ARM `fmla`).
# - The 61 sums do not fit into 16 or 32 registers, so each turn of the loop loads and stores them (`mov`; on ARM `ldr`,
#   `str`).
# - The rows of a batch lie anywhere in memory, so each lane needs a load of its own.
# - The last turn of a batch may be mostly masked: 100 rows are six turns of sixteen lanes, or
#   twelve of eight, and then four rows more.
# - At the end of each step, the lanes of 61 sums must be added up.

# %% [markdown]
# ## Exercises (optional)
#
# ### 01-1 · A sum that does not get stuck
#
# Add pairs of neighbours, then pairs of these sums, and so on. If one number is left over at the end of a round, it
# goes into the next round unchanged:
#
# ```
# 1   2   3   4   5
#  \ /     \ /    |
#   3       7     5
#     \   /       |
#      10         5
#         \     /
#           15
# ```
#
# Each number passes through only about log₂ n additions instead of up to n, so less is rounded away. (About 5 lines.)

# %%
from course.reader import exercises

exercises.begin("01-1")


def sum_in_pairs(x):
    """The sum of a float32 array x[n], n ≥ 1, as a float32: by pairs of neighbours."""
    return ...


exercises.check("01-1", sum_in_pairs)

# %% [markdown]
# Adding in pairs loses less than adding one by one: the error grows with log₂ n instead of n ([Higham,
# 1993](https://doi.org/10.1137/0914050)). NumPy's `sum` does much the same, with blocks of numbers. But its order is no
# promise. Up to NumPy 2.2 it cut a long array into chunks of 8,192 numbers, added in pairs within each, and then added
# the chunks' sums one after another. Since 2.3 it adds the whole array in pairs. Here are both orders, written out. The
# sums of at most 8,192 numbers are NumPy's, as they are the same in all versions:


# %%
def whole_in_pairs(x):
    """The order of NumPy 2.3 and later."""
    if len(x) <= 8192:
        return x.sum()
    half = len(x) // 2 // 8 * 8
    return whole_in_pairs(x[:half]) + whole_in_pairs(x[half:])


tenths = np.full(1_000_000, 0.1, "f4")
chunks = [tenths[begin : begin + 8192].sum() for begin in range(0, len(tenths), 8192)]
orders = {"up to NumPy 2.2": np.cumsum(chunks)[-1], "since NumPy 2.3": whole_in_pairs(tenths)}
for name, total in orders.items():
    print(f"a million tenths, {name}: {total}")
print("this NumPy's `sum` is one of them:", tenths.sum() in orders.values())

# %% [markdown]
# So a mean or a variance of more than 8,192 numbers has other last digits after an update of NumPy, and no number of
# the program changed. Compare such numbers with a tolerance.
#
# ### 01-3 · Lines touched
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
from course.reader import exercises

exercises.begin("01-3")


def lines_touched(count, step, itemsize):
    """The number of 64-byte lines that hold `count` numbers of `itemsize` bytes.

    Each number lies `step` places after the last.
    """
    return ...


exercises.check("01-3", lines_touched)

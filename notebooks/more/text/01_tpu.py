# %% [markdown]
# # 01 more · TPU
#
# **In this notebook you take apart a machine that only multiplies matrices, and watch the numbers flow through it cycle
# by cycle.**
#
# It needs notebook 01 (both tasks, and what a device is). It takes `levels_more/hardware/tpu.py` apart. Nothing is
# exported here.
#
# Google's Tensor Processing Unit (TPU) multiplies matrices. This notebook simulates its second version, TPU v2, cycle
# by cycle, and trains on it in the end. The simulation is slow. But its results come out of the array as in the real
# machine, and it counts the same cycles.

# %%
from course import build, figures, tasks

build.watch("more/01_tpu")
figures.you_are_here(1)

# %%
import numpy as np

from course.reader import checks
from course.reader.figures import page, widgets
from course.reader.figures import tpu as tpu_figures
from levels_more.hardware import Pool, dnn_classifier, linear_regression, pool
from levels_more.hardware import tpu as machine
from levels_more.hardware.tpu import SIDE, Activate, Multiply, Tpu, Write, bfloat16, dense_program, systolic

# %% [markdown]
# ## Why a machine for one thing (2 min)
#
# A program consists of loads, arithmetic and stores. Where does the energy of a multiplication go? These are figures
# for a processor of 45 nm ([Horowitz, "Computing's energy problem", 2014](https://doi.org/10.1109/ISSCC.2014.6757323)):
#
# | | picojoules |
# |---|---|
# | multiply two float16 | 1.1 |
# | multiply two float32 | 3.7 |
# | add two float32 | 0.9 |
# | read 64 bits from a cache of 8 KiB | 10 |
# | read 64 bits from memory | 1,300 to 2,600 |
# | one instruction in all: fetch it, read registers, keep track | about 70 |
#
# Arithmetic is the smallest part. So one instruction should do thousands of multiplications, and each number should be
# used many times once it is loaded. In x @ w every x is multiplied by a whole row of w, and every weight is used for
# every row of x. A **systolic array** puts a small **cell** at each place of w ([Kung, "Why systolic architectures?",
# 1982](https://doi.org/10.1109/MC.1982.1653825)). The weight stays in its cell. The other numbers flow from cell to
# neighbouring cell over very short wires. Nothing is loaded or stored on the way.
#
# ## One cell, then many (13 min)
#
# In each cycle a cell does three things:
#
# 1. it adds its weight times the x from the left to the sum from above;
# 2. it hands the x to the right;
# 3. it hands the sum down.
#
# So a sum that has gone down column j has met every weight of that column. In every row it must also meet the right x.
# Therefore row i of the array gets its numbers i cycles later than row 0: the x enter **skewed**. Here x has four rows
# of three numbers, one colour per row. Move the slider and follow one colour through the twelve cells.

# %%
flow_x = np.array([[1, 2, 0], [3, -1, 2], [0, 1, 1], [-2, 0, 3]], "f4")
flow_w = np.array([[2, 0, 1, -1], [1, 3, 0, 2], [-1, 1, 2, 0]], "f4")
widgets.explore(
    lambda cycle: tpu_figures.flow(flow_x, [flow_w], cycle),
    cycle=range(9),
    start={"cycle": 4},
    text="Four rows of x flow to the right through an array of 3 x 4 weights; their sums flow down and collect below.",
)

# %% [markdown]
# Cell (i, j) works on row r of x in cycle r + i + j. The cell at the bottom right is the last one to work on the last
# row.

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "01-tpu-cycles",
    "Four rows of x go through an array of 3 x 4. How many cycles pass from the first x that enters to the last sum "
    "that leaves?",
    choices=[4, 9, 12, 48],
)

# %% [markdown]
# Now we need a program that does this for any sizes. In each cycle all numbers move by one place, but the program need
# not copy them. Imagine the x on a strip of paper that slides to the right through the array, and the sums on another
# strip that slides down. It makes no difference whether the strips slide past the array or the array slides along the
# strips. So each cycle is one line of code: the window of the array moves by one place on both strips, and all cells
# multiply and add.

# %%
page.source(systolic)

# %%
print(systolic(flow_x, flow_w))
print("equal to x @ w:", bool((systolic(flow_x, flow_w) == flow_x @ flow_w).all()))
print("cycles of its loop:", len(flow_x) + sum(flow_w.shape) - 2)

# %%
checks.answer_to("01-tpu-cycles")

# %% [markdown]
# ## bfloat16 (7 min)
#
# Numbers with half the bits need half the wires, and the area of a multiplier grows with the square of the number of
# bits. So the x and the weights enter in **bfloat16**, the upper half of a float32: eight bits of exponent, eight
# significant bits ([Jouppi et al., "A domain-specific supercomputer for training deep neural networks",
# 2020](https://doi.org/10.1145/3360307)). The sums are float32. This loses less than it seems. The product of two
# numbers with eight significant bits has at most sixteen, which float32 holds exactly. Only the additions round.

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "01-tpu-bfloat16",
    "What is 1 + 2⁻⁹ in bfloat16?",
    choices=["1 + 2⁻⁹", "1 + 2⁻⁷", "1 + 2⁻⁸", "1"],
)

# %% [markdown]
# To round to the nearest number, we add to the bits and cut off the lower half. What we add is 0x7FFF, just under half
# of the last bit that stays. In a tie, that bit decides: if it is 1, one more is added, so that it becomes 0. A carry
# runs into the exponent, as it should.

# %%
page.source(bfloat16)

# %%
for number in (1 + 2**-9, 1 + 2**-8, 1 + 3 * 2**-8, 0.1, 3.4e38, -0.0, np.nan):
    print(f"{number:<11.10g} becomes {bfloat16(number):.10g}")

# %%
checks.answer_to("01-tpu-bfloat16")

# %% [markdown]
# 1 + 2⁻⁸ is a tie between 1 and 1 + 2⁻⁷, and 1 + 3·2⁻⁸ is a tie between 1 + 2⁻⁷ and 1 + 2⁻⁶. The largest float32
# numbers round to infinity.
#
# ## Instructions (11 min)
#
# A TPU has four **units** that work side by side. The first slides a tile of 128 x 128 weights into the cells. The
# second is the array. The third adds the bias and applies the activation, and the fourth writes results to memory. A
# program is a list of instructions, each for one unit. An instruction starts when its unit is free and its operands are
# there. In the code below, `chip` keeps these times and the results so far.

# %% [markdown]
# The first instruction is `ReadWeights`. Each cell has a second register for a weight. The next tile slides in there
# while rows still need the old one.

# %%
page.source(machine.ReadWeights)

# %% [markdown]
# `Multiply` sends the x through this tile. It adds what comes out below to the **accumulators**, one float32 sum per
# row and unit of the layer. Two times matter. Once all its rows have entered, the next `Multiply` may start. Its last
# sum comes out 254 cycles later.

# %%
page.source(machine.Multiply)

# %% [markdown]
# We compute only the corner of the array that holds weights, since all other cells hold zeros and add zeros. But we
# count the cycles of the whole array: m + 2·128 - 2, whatever the size of the tile.
#
# The other two instructions take the sums out. `Activate` adds the bias and applies the activation. `Write` hands a
# result to the **host**, the computer that the TPU is plugged into.

# %% [markdown]
# A layer of a net becomes a program. Its weights are cut into tiles. For each column of tiles the program adds up the
# sums tile by tile, and then activates them:

# %%
page.source(dense_program)

# %%
dense_program(inputs=200, units=100, function="relu", b="b")

# %% [markdown]
# **A good place to stop.** A layer is a short program for the array, and you can count its cycles.

# %% [markdown]
# ## The device (4 min)
#
# A TPU v2 chip has two cores with one such array each. Our device is one core. It is a `Device` like all others in the
# pool, with its own memory and dtypes. The speed of a simulation says nothing, so the table shows the published speed
# and says so.

# %% [markdown]
# Its entry in `MAKERS` puts it into the pool. It refuses what it cannot do:

# %%
tpu = pool()["tpu:0"]
print(Pool({tpu.name: tpu}))

# %%
attempts = {
    "float64": lambda: tpu.put(np.ones((2, 2))),
    "shapes": lambda: tpu.matmul(np.ones((10, 3), "f4"), np.ones((2, 1), "f4")),
    "no weights": lambda: tpu.run([Multiply("x")], x=np.ones((10, 3), "f4")),
    "no sums": lambda: tpu.run([Activate(0, "relu", None, "y")]),
    "unknown instruction": lambda: tpu.run(["Train"]),
}
for name, attempt in attempts.items():
    try:
        attempt()
    except (LookupError, TypeError, ValueError) as error:
        print(f"{name}: {type(error).__name__}: {error}")

# %% [markdown]
# Now it multiplies. We send a thousand rows through two tiles of weights, one above the other:

# %%
random_numbers = np.random.default_rng(0)
tall_x, tall_w = (random_numbers.standard_normal(shape).astype("f4") for shape in ((1000, 200), (200, 100)))
product = tpu.matmul(tall_x, tall_w)
for unit, begin, end, instruction in tpu.timeline:
    print(f"cycles {begin:5} to {end:5}  {unit:11}{instruction}")
print(f"largest error {np.abs(product - tall_x @ tall_w).max():.2f}, of numbers up to {np.abs(product).max():.0f}")

# %% [markdown]
# The second tile of weights slides in while the first one multiplies. The second `Multiply` starts at cycle 1128. Then
# the last row of the first has entered, though its last sum is not out yet. The error is that of bfloat16: up to one
# part in 256 for each x and each weight.
#
# ## How many cycles? (7 min)
#
# One tile takes m + 2·128 - 2 cycles from the first x to the last sum. 254 of them only fill and drain the array.

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "01-tpu-useful",
    "Ten rows go through a full tile of 128 x 128 weights. What share of the work that the cells could do in this "
    "time is useful?",
    slider=(0, 100, 0.1),
)


# %%
def try_batch(batch, tiles=1):
    """A new TPU that has multiplied a batch of rows by weights in that many tiles side by side."""
    fresh = Tpu("tpu:0")
    fresh.matmul(np.ones((batch, SIDE), "f4"), np.ones((SIDE, tiles * SIDE), "f4"))
    return fresh


for batch in (1, 10, 100, 1000):
    fresh = try_batch(batch)
    print(f"batch {batch:5}: {fresh.busy:5} cycles in the array, {fresh.utilisation:.1%} useful")

# %%
checks.answer_to("01-tpu-useful")

# %% [markdown]
# So a TPU wants large batches. For a single row it is very wasteful. A layer with more weights helps too: if eight
# tiles follow each other, the array fills and drains only once. But a new tile takes 128 cycles to slide in, so a batch
# of fewer than 128 rows waits for its weights.

# %%
batches = {1: (1, 10, 100, 1000, 4000), 8: (1, 10, 100, 1000)}
tpu_figures.utilisation(SIDE, {(m, t): try_batch(m, t).utilisation for t, ms in batches.items() for m in ms})

# %% [markdown]
# The lines show the formula for T tiles, T·m / ((T - 1)·max(m, 128) + m + 254). The markers show what the simulated
# array counted.
#
# A smaller array wastes less on a small layer. We change its side and send ten rows through a layer of eight inputs and
# eight units:

# %%
for side in (128, 32, 8):
    machine.SIDE, small = side, Tpu("tpu:0")
    small.matmul(np.ones((10, 8), "f4"), np.ones((8, 8), "f4"))
    print(f"side {side:3}: {small.busy:4} cycles in the array, {small.utilisation:.2%} useful")
machine.SIDE = SIDE

# %% [markdown]
# But a real array cannot be small for one net and large for the next. Its builders must decide on one size.
#
# ## No gap between tiles (7 min)
#
# Why can the next tile follow at once? The weights do not all change at the same moment. Each cell takes its new weight
# when the first row of the new product reaches it. So the change travels through the array as a **wavefront**, down and
# to the right, together with that row. Behind the wavefront are the new weights, here in bold type. Ahead of it are the
# old ones, which the last rows of the old product still need:

# %%
new_w = np.array([[5, 6, 7, 8], [6, 7, 8, 9], [7, 8, 9, 5]], "f4")
widgets.explore(
    lambda cycle: tpu_figures.flow(flow_x, [flow_w, new_w], cycle),
    cycle=range(13),
    start={"cycle": 6},
    text="The same rows flow twice, the second time with new weights. The weights change along a wavefront.",
)

# %% [markdown]
# Two products of four rows take 2·4 + 5 cycles instead of twice 4 + 5. The next figure shows the units of the simulated
# chip during the product of two 256 x 256 matrices, which takes four tiles. A slanted box is a `Multiply`: its rows
# enter along the upper edge, and its sums leave along the lower edge.

# %%
ones = np.ones((256, 256), "f4")
tpu.matmul(ones, ones)
tpu_figures.timeline(tpu.timeline, rows=256)

# %%
spans = [(begin, end) for unit, begin, end, _ in tpu.timeline if unit == "array"]
print("the array is busy for", spans[-1][1] - spans[0][0], "cycles; T·m + 2·128 - 2 is", 4 * 256 + 2 * 128 - 2)
print("without overlap it would be", 4 * (256 + 2 * 128 - 2))

# %% [markdown]
# The array is idle only while the first tile of weights slides in, and during the last activation and the write. A
# longer program fills these gaps with other products.
#
# ## What is modelled, and what is not (2 min)
#
# | | here | published |
# |---|---|---|
# | array | one of 128 x 128 | TPU v2: one per core, two cores per chip [1]; v1: one of 256 x 256, in 8-bit integers [2] |
# | clock | 700 MHz | 700 MHz [1], [2] |
# | peak | 2 · 128² · 700 MHz = 22.9 Tflop/s | 46 Tflop/s for the two cores [1] |
# | numbers | bfloat16 in, float32 sums | the same [1], [3] |
# | memory | 8 GiB, 350 GB/s | 16 GiB, 700 GB/s for the two cores [1], [3] |
# | weights | 128 cycles to slide in, hidden behind the tile before | v1: 256 cycles for its 256 rows, hidden in the same way [2] |
# | weight queue | never empty: a tile of 32 KiB in 128 cycles is 179 GB/s | v1: four tiles deep [2] |
# | accumulators | as many as a program needs | v1: 4,096 rows [2] |
# | activation | 128 numbers per cycle, once the last sum is out | v2: a vector unit with 128 lanes [1], [3] |
# | writing | 128 numbers per cycle, while the other units work | by a unit that only copies (DMA) [2] |
# | calling from the host | takes no time | not published |
#
# 1. [Jouppi et al., "A domain-specific supercomputer for training deep neural networks", 2020](https://doi.org/10.1145/3360307)
# 2. [Jouppi et al., "In-datacenter performance analysis of a tensor processing unit", 2017](https://doi.org/10.1145/3079856.3080246)
# 3. [Norrie et al., "The design process for Google's training chips: TPUv2 and TPUv3", 2021](https://doi.org/10.1109/MM.2021.3058217)
#
# ## The net, forward (3 min)
#
# The three layers of the net become one program. Each layer reads the result of the one before directly, not through
# the host.

# %%
rings = tasks.rings()
ring_fit = dnn_classifier(rings.x, rings.y, rings.weights, rings.batches, rings.learning_rate)
layers = dense_program(2, 4, "relu", x="x", w="w1", b="b1", y="h1")
layers += dense_program(4, 8, "relu", x="h1", w="w2", b="b2", y="h2")
layers += dense_program(8, 1, "sigmoid", x="h2", w="w3", b="b3", y="p")
named_weights = {name: v.astype("f4") for name, v in zip(["w1", "b1", "w2", "b2", "w3", "b3"], ring_fit.weights)}
p = tpu.run([*layers, Write("p")], x=rings.x_test.astype("f4"), **named_weights)["p"]
for unit, begin, end, instruction in tpu.timeline:
    print(f"cycles {begin:5} to {end:5}  {unit:11}{instruction}")

# %% [markdown]
# A layer has to wait for the one before, but its weights do not: `w2` slides in while the first layer multiplies. How
# far are these probabilities from those in float64?

# %%
exact = ring_fit.predict(rings.x_test)
print(f"probabilities differ by up to {np.abs(p - exact).max():.2f}")
print(f"on the other side of 0.5: {((p > 0.5) != (exact > 0.5)).sum()} of {len(p)} points")
print(
    f"right: {figures.accuracy(rings.y_test, p):.1%} on the TPU, {figures.accuracy(rings.y_test, exact):.1%} in float64"
)

# %% [markdown]
# About one point in 170 changes sides, because it lies near the edge anyway. For an answer of yes or no, eight bits are
# enough.
#
# ## The line, trained (9 min)
#
# A training step has two matrix products, x @ w forward and xᵀ @ de backward. Both go through the array, and the update
# does not.

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "01-tpu-update",
    "A weight is 2, and the learning rate times its gradient is 0.003. What is 2 - 0.003 if weights are kept in bfloat16?",
    choices=["1.997", "1.9921875", "2", "1.984375"],
)

# %%
print(f"{bfloat16(2 - 0.003):.10g}")

# %%
checks.answer_to("01-tpu-update")

# %% [markdown]
# Therefore weights stay in float32, and only the copies that enter the array are rounded
# ([Micikevicius et al., "Mixed precision training", 2018](https://arxiv.org/abs/1710.03740), did so with float16).


# %%
def train_on_tpu(device, x, y, weights, batches, learning_rate):
    """The losses and weights of the linear regression, with both matrix products on the array."""
    (w, b), losses = weights, []
    for rows in batches:
        prediction = device.matmul(x[rows], w) + b  # forward
        error = prediction - y[rows]
        losses.append(float(np.mean(error * error)))  # loss
        de = 2 * error / len(rows)  # backward
        dw, db = device.matmul(x[rows].T, de), de.sum(axis=0, keepdims=True)
        w, b = w - learning_rate * dw, b - learning_rate * db  # update
    return losses, [w, b]


# %% [markdown]
# We train fifty epochs on the array and on the CPU, and print the mean loss of some epochs:

# %%
task = tasks.linear()
line_task = [task.x.astype("f4"), task.y.astype("f4"), [v.astype("f4") for v in task.weights], task.batches]
steps_of_epoch, trainer, line_x, line_y, line_start, *_ = 40, Tpu("tpu:0"), *line_task
tpu_losses, (w, b) = train_on_tpu(trainer, line_x, line_y, line_start, task.batches[: 50 * steps_of_epoch], 0.0005)
cpu_losses = linear_regression(*line_task).losses
for epoch in (1, 2, 10, 50):
    each = slice(steps_of_epoch * (epoch - 1), steps_of_epoch * epoch)
    print(
        f"epoch {epoch:2}: loss {np.mean(tpu_losses[each]):7.3f} on the TPU, {np.mean(cpu_losses[each]):7.3f} on the CPU"
    )
print(f"w {w[0, 0]:.2f}, {w[1, 0]:.2f}   b {b[0, 0]:.2f}   {trainer.cycles:,} cycles, {trainer.utilisation:.5%} useful")

# %% [markdown]
# The losses agree to two digits or more. Each x and each w that enters the array is off by up to one part in 256, and
# so is about each prediction, at every step. But these errors do not add up. The next step starts from the weights as
# they are and goes down from there, so both runs find the same line. That is why eight bits are enough for the
# products. The sums and the update need float32, because there small numbers are added to large ones.
#
# The array is nearly idle, since it has room for 16,384 weights and our line has two. This machine needs layers of
# hundreds of units and batches of hundreds of rows.
#
# ## Where to go from here
#
# - `more/01_gpu`: the machine that hides slow loads from memory behind other work.
# - `more/02_machines`: all ops of level 2, and both tasks, on the GPU and on the TPU.

# %% [markdown]
# # 05 more · Where the time goes
#
# **In this notebook one step is opened, and your machine gets a card.**
#
# It needs the two tasks of notebook 05, and of notebook 01 the formula of what a step costs. Nothing is exported. (The cell
# after the next one is folded. It imports what is used below.)

# %%
from course import build, figures

build.watch("more/05_cost")
figures.you_are_here(5)

# %% tags=["hide-input"]
import tempfile
from pathlib import Path

import numpy as np

from course import compare, reference, tasks
from course.figures import tour
from course.inspection import side_by_side
from course.practice import checks
from levels_more import hardware, high_level, kernels, low_level, mid_level
from levels_more.high_level import Sequential
from levels_more.mid_level import SGD, Dense

place = tempfile.TemporaryDirectory()  # it goes when this kernel ends
folder, task, rings = Path(place.name), tasks.linear(), tasks.rings()
levels = (hardware, kernels, low_level, mid_level, high_level)
line_on_all = [reference.linear_regression, *(level.tasks.linear_regression for level in levels)]
net_on_all = [reference.dnn_classifier, *(level.tasks.dnn_classifier for level in levels)]

# %% [markdown]
# ## One step, opened (8 min)
#
# The numbers above count launches. Which ones are they, and who asks for each? We take an X-ray of one step. No level is changed
# for it: Python calls us whenever a function is called or returns
# ([`sys.setprofile`](https://docs.python.org/3/library/sys.html#sys.setprofile)), and at the door of level 3 stands an engine
# of ours, which does what the old one does and looks at the clock.

# %% tags=["hide-input"]
checks.predict(
    "Op by op, a step of the line takes 17 launches on level 3. How many does the same step take from `fit`, op by op?",
    choices=["17", "18", "about 50: each storey adds its own"],
    answer="18",
    because="Layers, loss and `fit` compute nothing themselves. They decide which ops are done. Only the optimizer has a number "
    "of its own to keep: it counts its steps.",
)

# %%
from course import where
from course.inspection import xray

patient = Sequential([Dense(1)])
patient.build(task.x.shape, task.x.dtype)
patient.set_weights(task.weights)
patient.compile(SGD(task.learning_rate), "mse")
ten = task.x[task.batches[0]], task.y[task.batches[0]]
opened = xray.opened(patient, *ten)
print(opened)

# %% [markdown]
# What stands further to the right happens within what stands above it. Read it from the top: level 5 asks level 4, level 4
# asks level 3, and each op ends in one launch of a kernel of level 2. The loss takes three launches, and its gradient takes
# six: walking back costs more than walking there. (`spread` is the gradient of a mean: it gives each
# of the ten rows its tenth.) The **copies** are what crosses between Python's memory and the
# device's: row numbers on the way in, the loss on the way out.
#
# And where does the time go? Open a row. The bars are in the colours of the levels.

# %% tags=["nbval-ignore-output"]
opened

# %% [markdown]
# The bars of the kernels are hardly to be seen. Nearly all of the step is Python on its way to them. (The X-ray makes this
# worse, because it listens to every call. It does not listen while a kernel runs.)
#
# That was the step with its lid off. `fit` does not take it that way.

# %%
closed = xray.compiled(patient, *ten)
print(closed)
print("the same loss:", opened.loss == closed.loss)

# %% [markdown]
# All the parts are there again, but beneath `compile`. They run once, on symbols: 16 ops are written down and nothing is
# launched. (The two gathers are not among them: a program reads its rows itself.) Two are the same product, because the
# gradient of `error * error` has it twice; 15 remain. They become one program, which is launched once. It reads ten rows
# and their numbers, 320 bytes, and keeps the rest near at hand. The other 24 of the 344 bytes are three copies of one number to
# Python.

# %% tags=["nbval-ignore-output"]
closed

# %% [markdown]
# Tracing and compiling take longer than the open step did. `fit` pays that once, and then takes thousands of steps in a launch.
#
# Large steps are easier to read with a viewer. `save` writes the rows in the trace event format. Open the file at
# [ui.perfetto.dev](https://ui.perfetto.dev), where the devices have tracks of their own.

# %%
opened.save(folder / "step.json")
print((folder / "step.json").name, len(list(opened.trace())), "events")

# %% [markdown]
# Each row names the file and the section that it comes from. You can ask for these by name, also by the name that a thing
# has elsewhere. `where` looks it up, sends a layer or a function through the door on symbols, and tells which ops arrive.

# %%
where("GradientTape")

# %%
where("torch.nn.Linear")

# %%
try:
    where("torch.nn.LSTM")
except LookupError as error:
    print(error)

# %% [markdown]
# ## Beside other libraries (4 min)
#
# How good is our number? The rings once more, in batches of 100 with Adam and float32, as other libraries write them: shuffle,
# gather, step, on one thread. Each of them first had to show that it ends at the same weights. Then they took turns. The times
# are those of one computer, in November 2026; `python3 -m course bench` measures yours.
#
# | | levels | µs a step | quickest other | µs a step | its time / ours |
# |---|---|--:|---|--:|--:|
# | rings, batch 100, Adam: eager | 4 eager | 102 | PyTorch eager | 171 | 1.68 |
# | rings, batch 100, Adam: step | 3 function | 19.0 | JAX jit | 45.1 | 2.38 |
# | rings, batch 100, Adam: epoch | 3 function.over | 3.09 | JAX lax.scan | 7.39 | 2.39 |
# | rings, batch 100, Adam: fit | 5 fit | 3.02 | scikit-learn MLP fit | 156 | 51.7 |
#
# Op by op, PyTorch and we pay the same kind of price, some microseconds for each op. Each floor of calls that is compiled away
# is a factor. What is left in `fit` is our loop of a few pieces.

# %% tags=["hide-input"]
checks.predict(
    "Now a large net, 784-512-512-10, in batches of 256: a step takes 4,100 µs. How long does JAX's take there, beside "
    "our compiled epoch? For the rings it was more than twice as long.",
    choices=["about as long", "twice as long", "20 times as long"],
    answer="about as long",
    because="Nearly all of the time goes to matrix products, and everybody's run near the peak of the machine. What a "
    "framework does around them is lost in it, for good or bad.",
)

# %% [markdown]
# | | levels | µs a step | quickest other | µs a step | its time / ours |
# |---|---|--:|---|--:|--:|
# | 784-512-512-10, batch 256, Adam, 1 thread: epoch | 4 | 4,120 | JAX lax.scan | 4,090 | 0.993 **behind** |
# | 784-512-512-10, batch 256, Adam, 2 threads: epoch | 3 function.over | 2,320 | JAX lax.scan | 2,370 | 1.02 |
#
# On one thread JAX is 1 % ahead, on two we are, by 2: the whole list of programs is cut into parts, and each thread takes the next
# one that is free. On another computer we were 7 % ahead on one thread. So it goes with claims of speed. Overhead is what a small step shows,
# arithmetic is what a large one shows, and the formula of level 1 says which of the two yours is. All numbers, and where we are behind, are in `course/bench/README.md`.

# %%
line = compare.measure(task, *line_on_all)
net = compare.measure(rings, *net_on_all, last=100, repeats=1)

# %% [markdown]
# ## The net on all levels (1 min)
#
# Notebook 05 drew the times of the line on all levels, predicted and measured. Here are those of the net.

# %% tags=["nbval-ignore-output"]
tour.five_levels(net)

# %% [markdown]
# A step of the net does 260 times the arithmetic of the line's, and the tracing is lost in it: 3 compiled, 4 and 5 stand under each
# other. In the core alone they stand under 1 scalar too, for they are its program. That is slower than predicted: its operations wait
# for one another, as notebook 1 showed, and the peak counts all lanes where it has one. Here `levels_more` is at hand, and the step
# becomes a fused program (*more/03_fused*), whose lanes run over columns. So in float64 it takes a third of the time, with the same
# bits, and comes near 1 SIMD, which has float32 and a row in each lane.
#
# The five levels fit on paper, with all helpers open: one side of A4 for the line and one for the net. The page lies beside this
# notebook, to be opened in a browser and printed.

# %%
side_by_side.on_paper("side_by_side.html", line, net).name

# %% [markdown]
# ## Your machine's card (4 min)
#
# The course has met your machine from two sides: from below, with programs that only load or only add, and from above, with
# whole trainings. Both sides fit on one card.

# %% tags=["hide-input"]
checks.predict(
    "A friend runs this course on another computer, and you lay your cards beside each other. What is the same?",
    choices=["nothing", "the times, up to a factor", "the losses, to the last bit"],
    answer="the losses, to the last bit",
    because="Caches, clocks and lanes differ, and each time depends on them in its own way. The losses depend on the order "
    "and the rounding of float64 operations, and both are fixed: one by our code, the other by the standard IEEE 754.",
)

# %% [markdown]
# The staircase of level 1 is climbed once more, which takes some seconds.

# %% tags=["nbval-ignore-output"]
from course.inspection import share_card

cpu = hardware.pool()["cpu:0"]
stairs = {2**k: hardware.measure_latency(cpu, 2**k) for k in range(12, 29)}
my_card = share_card.machine_card(cpu, stairs, line, net)
my_card

# %% [markdown]
# At the foot stands the answer, in sixteen digits. They are the beginning of a **hash**: all losses, 8,000 of the line and
# 24,000 of the net, as bytes, through sha256 ([Secure Hash Standard, 2015](https://doi.org/10.6028/NIST.FIPS.180-4)). If one
# loss changes in its last bit, the digits change altogether:

# %%
print(share_card.fingerprint(line, net))
losses = line.rows[-1].losses.copy()
losses[4000] = np.nextafter(losses[4000], 0)
print(
    share_card.fingerprint(line._replace(rows=[line.rows[-1]._replace(losses=losses)]), net),
    "with one loss moved by the least step",
)

# %% [markdown]
# The first line reads `aba007ec7ceeaf70`, on your machine and on any other. To keep the card, run
# `my_card.save("my_machine.svg")`: it then lies beside this notebook, and git leaves it alone.

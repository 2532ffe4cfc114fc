# %% [markdown]
# # 04 more · The pipeline
#
# **In this notebook data comes from functions, files and threads, one element after another.**
#
# You need notebook 04 for this (`Dataset`, row numbers, recipes). The code is that of
# `levels_more/mid_level/dataset.py`.

# %%
from course import build, figures, tasks
from course.reader import checks
from course.reader.figures import page

build.watch("more/04_pipeline")

# %% tags=["hide-input"]
# The imports of this notebook: you may skip this cell.
import numpy as np

from levels_more.low_level import constant
from levels_more.mid_level import Dataset
from levels_more.mid_level.csv_files import column
from levels_more.mid_level.dataset import DataLoader
from levels_more.mid_level.stages import (
    as_array,
    as_element,
    batched,
    cached,
    each_array,
    filtered,
    mapped,
    prefetched,
    repeated,
    shuffled,
    stack,
)

# %% [markdown]
# ## Shuffled, but in how much memory? (7 min)
#
# How can you shuffle data that does not fit into memory? You use a buffer. First it takes in a few elements. Then it
# returns one of them, drawn at random, and puts the next element in its place, again and again.
# [`tf.data`](https://www.tensorflow.org/api_docs/python/tf/data/Dataset#shuffle) works in this way, and this function
# does all of it. Each pass has its own random numbers, made from a seed and the number of the pass. NumPy promises in
# [NEP 19](https://numpy.org/neps/nep-0019-rng-policy.html) that these numbers stay the same.

# %%
page.source(shuffled)

# %% [markdown]
# The size of the buffer, `buffer_size`, matters. Here twenty numbers, in order, pass through a buffer with room for all
# of them:


# %%
def through(size):
    return shuffled(range(20), size, np.random.RandomState(np.random.PCG64([0, 0])))


print(*through(20))

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "04-pipeline-buffer",
    "The same twenty numbers pass through `shuffle(buffer_size=1)`. In which order do they come out?",
    choices=["thoroughly shuffled", "neighbours may swap places", "as they came"],
)

# %%
for size in (1, 3, 20):
    print(f"{size:2}:", *through(size))

# %%
checks.answer_to("04-pipeline-buffer")

# %% [markdown]
# With a buffer of three no number comes more than two places early, though one may come much later: 11 comes seven
# places late. Only a buffer with room for all rows shuffles them thoroughly.
#
# ## Cut into batches (9 min)
#
# An **element** is an array, or a tuple or dict of elements, as in `({"depth": …, "species": …}, mass)`. An operation
# on an element is applied to each of its arrays, however deep they are nested:

# %%
page.source(each_array)

# %%
print(each_array(lambda a, b: a + b, ({"depth": 18, "mass": 3}, 1), ({"depth": 2, "mass": 1}, 0)))

# %% [markdown]
# Two elements of the same structure went in, and their numbers were added pair by pair. A batch is made by stacking
# elements, array by array:

# %%
page.source(batched, stack)

# %%
print(next(batched([(np.array([1, 2]), 3), (np.array([4, 5]), 6)], 2, False)))
for batch in batched(through(20), 8, False):
    print(batch)

# %% [markdown]
# In the core, the elements are row numbers in arrays. Here they may be anything, one after another. Each stage can tell
# which of the two it receives.
#
# Tensors come in at the beginning of a pipeline and go out at its end. In between, the stages compute with NumPy; the
# reason comes below. Anything but an array of numbers or text is refused when it comes in. (NumPy has a letter for each
# kind of dtype: b is a bool, i and u are whole numbers, f is a float and U is text.)

# %%
page.source(as_array, as_element)

# %%
for value in ([18.7, 17.4], "Gentoo"):
    array = as_array(value)
    print(array.dtype, "comes out as", type(as_element(array)).__name__)

# %% [markdown]
# ## A function in the pipeline (6 min)
#
# Some data needs work before training: text has to be parsed, pictures have to be turned. `map` calls your own function
# on each element. That function may fail on the thousandth element, so the error says on which one it failed:

# %%
page.source(mapped)

# %%
for change in (lambda n: 2 // n, lambda n: constant(n) + 1):
    try:
        print(list(mapped([2, 1, 0], change, "stage 2, map")))
    except RuntimeError as error:
        print(error)

# %% [markdown]
# The first function fails on element 2, where it divides by 0. The second fails at once, because it returns a tensor.
#
# There are three more stages. `filter` keeps the elements for which a function returns true. `repeat` starts again at
# the end. `cache` stores the elements of the first complete pass. `repeat` and `cache` start passes themselves, so they
# are given a function that makes a new pass. In `filtered`, `tee` turns one iterator into two: one is used to judge the
# elements, and `compress` keeps the elements of the other that were judged true.

# %%
page.source(filtered, repeated, cached)

# %%
kept, multiples = [], filtered(range(10), lambda n: n % 3 == 0, "stage 2, filter")
print(*repeated(lambda: cached(lambda: multiples, kept), range(2)))

# %% [markdown]
# The multiples come twice, although the generator in the middle can be used only once. The second pass took them from
# the cache.
#
# **A good place to stop.** A pipeline mixes rows, cuts batches and computes.
#
# ## Fetched while you compute (9 min)
#
# If a step waits for the disk and then the disk waits for the step, each is idle while the other works. `prefetch` runs
# the pipeline in another **thread**. `submit` puts a call into that thread's queue and returns a **future**, a promise
# of the result. `result()` waits for the result, and raises any error that the call raised. So each error appears at
# the element that caused it.

# %%
page.source(prefetched)

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "04-pipeline-prefetch",
    "There are eight batches. Reading one takes 4 ms and training on it 6 ms, which makes 80 ms one after another. How long does it "
    "take with `prefetch(2)`?",
    choices=["about 80 ms, Python runs one thread at a time", "about 52 ms", "about 32 ms"],
)

# %% [markdown]
# Let us measure it. A pause stands for reading from disk, and square roots in NumPy stand for training. Both record
# when they ran. We draw the quickest of five runs.

# %% tags=["nbval-ignore-output"]
import time


def spans_of(size):
    spans, ones = [], np.ones(100_000)

    def read(batch):
        start = time.perf_counter()
        time.sleep(0.004)
        spans.append(("read", start, time.perf_counter()))
        return batch

    batches = map(read, range(8))
    for _ in prefetched(batches, size) if size else batches:
        start = time.perf_counter()
        while time.perf_counter() < start + 0.006:
            np.sqrt(ones, out=ones)
        spans.append(("train", start, time.perf_counter()))
    return spans


def quickest(size):
    return min((spans_of(size) for _ in range(5)), key=lambda spans: spans[-1][2] - spans[0][1])


figures.timeline({"without prefetch": quickest(0), "prefetch(2)": quickest(2)})

# %%
checks.answer_to("04-pipeline-prefetch")

# %% [markdown]
# Reading and training now overlap, and the total time is that of the longer of the two. If reading took longer,
# training would be the hidden one. Two stages that both run Python would only take turns, so nothing would be hidden.
# This is also the reason why stages compute with NumPy. An open gradient tape records every op, and it would also
# record the ops of the other thread.
#
# ## Around a dataset (5 min)
#
# Each stage is a method of the `Dataset` in `levels_more.mid_level`, a subclass of the core's. Here are two of them.
# `repeat` passes row numbers on. `map` does not, because after it only the elements themselves are known.

# %%
page.source(Dataset.map, Dataset.repeat)

# %% [markdown]
# A thread that reads far ahead would use much memory. So it stops as soon as `buffer_size` elements are ready:

# %%
slow = Dataset.from_tensor_slices(np.arange(100_000.0)).batch(1000).map(np.sqrt).prefetch(2)
figures.pipeline(slow, next(iter(slow)))

# %% [markdown]
# The order of the stages matters. `shuffle` before `batch` mixes the rows. `shuffle` after `batch` keeps each batch as
# it is and mixes the batches:

# %%
numbers = Dataset.from_tensor_slices(np.arange(10))
for data in (numbers.shuffle(10, seed=3).batch(5).repeat(2), numbers.batch(5).shuffle(2, seed=3).repeat(2)):
    print([batch.numpy().tolist() for batch in data])

# %% [markdown]
# A `repeat` without a count never ends, so something after it has to stop:

# %%
print(*map(int, numbers.repeat().map(lambda n: n * n).take(12)))
try:
    list(numbers.repeat())
except ValueError as error:
    print(error)

# %% [markdown]
# ## From a file, from a generator (11 min)
#
# Most data comes as a file of columns. The first value of a column that is not missing decides its kind: if it is a
# number, the column holds numbers, otherwise text. Numbers become int64 if all are whole and none is missing, else
# float32, or float64 where float32 would change a whole number, make different numbers equal, or make one 0. A missing
# number is NaN, a missing text "". One exception: if a value has a zero in front of other digits, as the postal code
# 00501 has, the column holds codes, and stays text.

# %%
page.source(column)

# %% [markdown]
# A line of a file becomes a dict with one entry per column. With a `label_name` it becomes a pair: the dict of the
# other columns, and the label. An error in the file is reported with its line and column:

# %%
table = Dataset.from_csv(tasks.DATA / "penguins.csv", "body_mass_g", na_value="NA")
columns, mass = next(iter(table.skip(3).batch(3)))
for name, values in columns.items():
    print(f"{name:18}", np.asarray(values))
print(f"{'the label':18}", mass.numpy())

# %%
from pathlib import Path
from tempfile import TemporaryDirectory

with TemporaryDirectory() as folder:
    Path(folder, "mass.csv").write_text("depth,mass\n18.7,3750\n17.4,38OO\n")
    try:
        Dataset.from_csv(Path(folder, "mass.csv"))
    except ValueError as error:
        print(str(error).removeprefix(folder)[1:])

# %% [markdown]
# A generator can supply any data that is made or found one element after another. Pass the function that makes the
# generator, without calling it, so that each pass can call it anew. And `zip` goes through several datasets at once:


# %%
def countdown():
    yield from (3.0, 2.0, 1.0)


for element in Dataset.zip(Dataset.from_generator(countdown), numbers.repeat()):
    print(*map(float, element))

# %% [markdown]
# PyTorch has two classes for this, a dataset and a `DataLoader`. A dataset there is any object with a length and an
# element for each index. The `DataLoader` is a few lines around it:

# %%
page.source(DataLoader)

# %%
rings = tasks.rings()
loader = DataLoader((rings.x, rings.y), batch_size=64, shuffle=True)
print(loader, "gives", len(loader), "batches,", sum(len(x) for x, y in loader), "rows")

# %% [markdown]
# # 04 more · The pipeline
#
# **In this notebook data comes from functions, files and threads, one element after the other.**
#
# Needs notebook 04: `Dataset`, row numbers, recipes. It takes `levels_more/mid_level/dataset.py` apart.

# %%
from course import build, figures, tasks
from course.figures import page
from course.practice import checks

build.watch("more/04_pipeline")

# %% tags=["hide-input"]
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
# ## Shuffled, but in how much memory? (5 min)
#
# How does one shuffle what does not fit into memory? With a buffer. It takes in the first few elements. Then it gives out one
# of them, drawn at random, and puts the next element in its place. That is what
# [`tf.data`](https://www.tensorflow.org/api_docs/python/tf/data/Dataset#shuffle) does, and this is the whole of it. Each pass
# has random numbers of its own, made of a seed and the pass's number; [NEP
# 19](https://numpy.org/neps/nep-0019-rng-policy.html) is NumPy's promise that they stay the same.

# %%
page.source(shuffled)

# %% [markdown]
# The buffer's size, `buffer_size`, matters. Here are twenty numbers, in order, through a buffer that has room for all:


# %%
def through(size):
    return shuffled(range(20), size, np.random.RandomState(np.random.PCG64([0, 0])))


print(*through(20))

# %% tags=["hide-input"]
checks.predict(
    "The same twenty numbers pass through `shuffle(buffer_size=1)`. In which order do they come out?",
    choices=["thoroughly shuffled", "neighbours may change places", "as they came"],
    answer="as they came",
    because="A buffer of one leaves nothing to choose. Where the rows are sorted by class, too small a buffer gives batches of "
    "one class, and training suffers without a word.",
)

# %%
for size in (1, 3, 20):
    print(f"{size:2}:", *through(size))

# %% [markdown]
# With a buffer of three no number comes more than two places early, though one may wait long: 11 comes seven places late. Only a
# buffer for all rows shuffles them all.
#
# ## Cut into batches (10 min)
#
# An **element** is an array, or a tuple or a dict of elements, as in `({"depth": …, "species": …}, mass)`. What is done to an
# element is done to its arrays, wherever they are in it:

# %%
page.source(each_array)

# %%
print(each_array(lambda a, b: a + b, ({"depth": 18, "mass": 3}, 1), ({"depth": 2, "mass": 1}, 0)))

# %% [markdown]
# Two elements of the same make went in, and their numbers were added in pairs. To make a batch of elements is to stack them, array
# by array:

# %%
page.source(batched, stack)

# %%
print(next(batched([(np.array([1, 2]), 3), (np.array([4, 5]), 6)], 2, False)))
for batch in batched(through(20), 8, False):
    print(batch)

# %% [markdown]
# In the core the elements are row numbers, and lie in arrays. Here they may be anything, one after the other. Which of the two a
# stage has before it, it can tell.
#
# Tensors come in at the beginning and go out at the end. In between stages compute with NumPy, and soon we see why. What is
# no array of numbers or text is refused, at the door. (NumPy has a letter for each kind of dtype: b is yes or no, i and u are
# whole numbers, f is a float and U is text.)

# %%
page.source(as_array, as_element)

# %%
for value in ([18.7, 17.4], "Gentoo"):
    array = as_array(value)
    print(array.dtype, "comes out as", type(as_element(array)).__name__)

# %% [markdown]
# ## A function in the pipeline (7 min)
#
# Text has to be read, pictures have to be turned. A `map` calls a function of the reader's, and this may fail in the thousandth
# element. So the error says where:

# %%
page.source(mapped)

# %%
for change in (lambda n: 2 // n, lambda n: constant(n) + 1):
    try:
        print(list(mapped([2, 1, 0], change, "stage 2, map")))
    except RuntimeError as error:
        print(error)

# %% [markdown]
# The first function fails in element 2, where it divides by 0. The second fails at once, because it gives back a tensor.
#
# Three more. `filter` keeps the elements for which a function is true, `repeat` begins again at the end, and `cache` remembers what
# the first whole pass gave. `repeat` and `cache` begin passes themselves, so they are handed a function that makes one. In
# `filtered`, `tee` makes two iterators of one: the elements of the first are judged, and `compress` keeps those of the other for
# which the verdict is true.

# %%
page.source(filtered, repeated, cached)

# %%
kept, multiples = [], filtered(range(10), lambda n: n % 3 == 0, "stage 2, filter")
print(*repeated(lambda: cached(lambda: multiples, kept), range(2)))

# %% [markdown]
# The multiples come twice, though the generator in the middle can be walked only once: the second pass found them in the cache.
#
# ## Fetched while you compute (8 min)
#
# Where a step waits for the disk, and then the disk for the step, each is idle while the other works.
# `prefetch` lets another **thread** run the pipeline. `submit` puts a call into the thread's queue and gives a **future**, a
# promise of the result. `result()` waits for it, and raises what the call raised. So errors arrive in their place.

# %%
page.source(prefetched)

# %% tags=["hide-input"]
checks.predict(
    "Eight batches. To read one takes 4 ms, to train on it 6 ms: one after the other, 80 ms. And with `prefetch(2)`?",
    choices=["about 80 ms, Python runs one thread at a time", "about 52 ms", "about 32 ms"],
    answer="about 52 ms",
    because="Only the first batch is waited for: 4 + 8 · 6. Python's threads do take turns, but to wait for a disk or to run a "
    "compiled kernel is not to run Python.",
)

# %% [markdown]
# Let us measure. A pause stands for the disk, and square roots in NumPy for the training. Each writes down when it
# ran, and of five runs the quickest is drawn.

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

# %% [markdown]
# The reading has moved beneath the training, and the time is that of the longer of the two. Had reading been longer, the training
# would be hidden. Two stages that both run Python would only take turns, and nothing is hidden. And now we see why stages compute
# with NumPy: an open tape writes down every op that it hears, and it would hear the other thread's.
#
# **A good place to stop.** A pipeline mixes rows, cuts batches, computes, and reads while you train.
#
# ## Around a dataset (5 min)
#
# Each stage becomes a method of the `Dataset` of `levels_more.mid_level`, a subclass of the core's. Here are two: `map` hands on no
# row numbers, because after it only the elements can say what they are; `repeat` hands them on.

# %%
page.source(Dataset.map, Dataset.repeat)

# %% [markdown]
# A thread that reads far ahead would hold much memory, so it stops as soon as `buffer_size` elements are ready:

# %%
slow = Dataset.from_tensor_slices(np.arange(100_000.0)).batch(1000).map(lambda x: x + 1.0).prefetch(2)
figures.pipeline(slow, next(iter(slow)))

# %% [markdown]
# The order of the stages says what is meant. `shuffle` before `batch` mixes rows. After it, batches stay as they are and change
# places:

# %%
numbers = Dataset.from_tensor_slices(np.arange(10))
for data in (numbers.shuffle(10, seed=3).batch(5).repeat(2), numbers.batch(5).shuffle(2, seed=3).repeat(2)):
    print([batch.numpy().tolist() for batch in data])

# %% [markdown]
# A `repeat` without a count never ends, so somebody has to stop:

# %%
print(*map(int, numbers.repeat().map(lambda n: n * n).take(12)))
try:
    list(numbers.repeat())
except ValueError as error:
    print(error)

# %% [markdown]
# ## From a file, from a generator (9 min)
#
# Most data comes as a file of columns. The first cell of a column that is not missing decides: it is
# a number, or else the column is text. Numbers become int64, if all are whole and none is missing, else float32, with NaN where
# one is missing. Missing text is "".

# %%
page.source(column)

# %% [markdown]
# A line of a file is a dict of its columns. With a `label_name` it is a pair, of the other columns and the label. A mistake in the
# file is found by line and column:

# %%
table = Dataset.from_csv(tasks.DATA / "penguins.csv", "body_mass_g", na_value="NA")
columns, mass = next(iter(table.skip(3).batch(3)))
print({name: np.asarray(values).tolist() for name, values in columns.items()}, mass.numpy())

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
# A generator serves for all that is made or found one after the other. Hand over the function that makes it, without calling it, so
# that each pass can call it anew. And `zip` goes through several datasets at once:


# %%
def countdown():
    yield from (3.0, 2.0, 1.0)


for element in Dataset.zip(Dataset.from_generator(countdown), numbers.repeat()):
    print(*map(float, element))

# %% [markdown]
# PyTorch has two things for this, a dataset and a `DataLoader`. Its dataset is whatever has a length and gives the element of a
# number. The second is a few lines around the first:

# %%
page.source(DataLoader)

# %%
rings = tasks.rings()
loader = DataLoader((rings.x, rings.y), batch_size=64, shuffle=True)
print(loader, "gives", len(loader), "batches,", sum(len(x) for x, y in loader), "rows")

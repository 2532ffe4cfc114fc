# %% [markdown]
# # 05 more · A model that leaves the house
#
# **In this notebook a model becomes a file: data without any code, whole whenever somebody looks.**
#
# It needs notebook 05 (`Sequential`, `fit`) and takes `levels_more/saving/model.py` apart. Nothing is exported. (The cell
# after the next one is folded. It imports what is used below.)
#
# It uses safetensors, which `python3 -m course setup` adds.

# %%
from course import build, figures

build.watch("more/05_saving", "safetensors")
figures.you_are_here(5)

# %% tags=["hide-input"]
import json
import re
from pathlib import Path

import numpy as np
import safetensors.numpy

from course import tasks
from course.figures import page
from course.practice import checks
from levels_more.high_level import Input, Model, Sequential
from levels_more.high_level.serialization import reader, written, written_part
from levels_more.mid_level import Adam, Dense
from levels_more.saving.files import write_aside
from levels_more.saving.model import (
    TEXT,
    WEIGHTS,
    as_bytes,
    blamed,
    checksum,
    load_model,
    nothing_drawn,
    numbers_of,
    put,
    save,
    stored,
)

net = Sequential([Dense(4, "relu"), Dense(8, "relu"), Dense(1, "sigmoid")])
net.build((None, 2), "float64")

# %% [markdown]
# ## A model that leaves the house (3 min)
#
# A trained model is worth keeping, and worth giving away. What must be in the file, so that others can run it? Python
# has an answer for any object, `pickle`. Suppose somebody sends us one:

# %%
import pickle


class Gift:
    def __reduce__(self):  # here an object tells pickle how to make it again
        return print, ("hello from inside the file",)


present = pickle.dumps(Gift())
del Gift

# %% tags=["hide-input"]
checks.predict(
    "We read it with `pickle.loads(present)`, on a computer that has no class `Gift`. What happens?",
    "a line is printed",
    choices=["an error: there is no `Gift`", "a `Gift` is made all the same", "a line is printed"],
    because="A pickle is a small program: call this function with these arguments. This `Gift` chose `print`. It could have "
    "chosen the function that deletes your files.",
)

# %%
pickle.loads(present)

# %% [markdown]
# The [documentation of pickle](https://docs.python.org/3/library/pickle.html) warns of just this, near its top: only
# unpickle data that you trust. So our file holds **data and no code**: what the layers are called, what they were made
# with, and their numbers. Whoever reads it brings the code along.
#
# ## The architecture, as data (8 min)
#
# Since level 4 each part remembers how it was made, in `part.again`. So a part can be written as the name of its class
# and its arguments, and these are numbers, texts, lists, or parts again. JSON, which everybody can read, has a place
# for all of that.

# %%
page.source(written)

# %% [markdown]
# Functions are written by their names, in the tables of level 4 or in their own `def`. A layer that stands in a model
# twice must come back as one layer, so the second time we write which one it **is**. And a class goes by its name,
# which must mean one thing: a `Dense` of our own would come back as level 4's.

# %%
page.source(written_part)

# %%

middle, start = Dense(2, "relu"), Input((2,))
text = json.dumps(written(Model(start, middle(middle(start))), {}))
print(text.replace('{"class": "Call"', '\n  {"class": "Call"'))

# %% [markdown]
# One input, number 1, and one layer, which is called on what it gave: `middle(middle(start))`. A functional model needs
# nothing more: a `Call` is a part like any other, made with a layer and what that was called on.
#
# ## And back (6 min)
#
# `json.loads` builds lists and dicts from the inside out. It hands each dict to a function of ours, the **object
# hook**, and puts in its place what that returns. So when a part is read, its arguments are there already. A name in
# the file can only mean what stands in our table, or what the reader of the file hands over in `custom_objects`: layers
# and functions of their own.

# %%
page.source(reader)

# %%
twice = json.loads(text, object_hook=reader({}))
print(len(twice.steps), "calls of", len(twice.layers), "layer")
try:
    json.loads('{"class": "os.system", "arguments": ["echo hello"]}', object_hook=reader({}))
except NameError as error:
    print(error)

# %% [markdown]
# Two calls of one layer, as it was; and a class that stands in no table is not looked for anywhere else. (The three names
# `class`, `def` and `is` are words of Python's own, so no argument can be called like that.)
#
# ## The numbers (4 min)
#
# For the weights there is an open format, [safetensors](https://huggingface.co/docs/safetensors): a length, a header in
# JSON with the name, dtype and shape of each array, then the bytes. No code either. Level 3's `named` gives each
# variable a name.

# %%
page.source(numbers_of)

# %%
blob = safetensors.numpy.save(numbers_of(net))
length = int.from_bytes(blob[:8], "little")
header = json.loads(blob[8 : 8 + length])
print(f"{len(blob)} bytes: 8 for the length, {length} for the header, {len(blob) - 8 - length} for the numbers")
print(header["layers.1.kernel"])

# %% [markdown]
# (The format knows only C-contiguous arrays. Version 0.8.0 of the library stores any other wrongly, without a word: hence
# `order="C"`.)
#
# A worn disk may change one bit of a number. No program falls over that; it just gives wrong answers. So we store a
# **checksum** with the numbers, and compute it again when we read them.

# %%
page.source(checksum)

# %%
for value in (1.0, np.nextafter(1.0, 2.0)):  # they differ in the last of 64 bits
    print(value, *checksum({"b": np.array(value)})[:8], "…")

# %% [markdown]
# ## Written aside, then put in place (13 min)
#
# The disk may be full, the program may be stopped, another may be reading. Whoever looks should find a whole model, the old one or
# the new one. Every system can give a file the name of another in one step. So a model is **one file**, written beside the old one:

# %%
page.source(write_aside)

# %% [markdown]
# Whoever is killed cannot tidy up, so the next one who saves does. And nothing but a model is
# replaced: who types `save("Documents")` keeps the documents. This is `put`:

# %%
page.source(put)

# %% [markdown]
# A folder with a letter in it is no model, so it stays:

# %%
import tempfile

place = tempfile.TemporaryDirectory()  # it goes when this kernel ends
folder = Path(place.name)
(folder / "Documents").mkdir()
(folder / "Documents" / "letter.txt").write_text("Dear reader")
try:
    put({}, folder / "Documents")
except FileExistsError as error:
    print(str(error).replace(folder.resolve().as_posix(), "…"))

# %% [markdown]
# **A good place to stop.** A model is one file, and a save that is stopped loses nothing.

# %% [markdown]
# A compiled model also keeps what was given to `compile`, and what the optimizer remembers of each variable.

# %%
page.source(save)

# %% [markdown]
# A net for the rings, with Adam and a rate that halves every 200 steps, after five epochs:

# %%
from levels_more.mid_level import ExponentialDecay

data = tasks.rings()
model = Sequential([Dense(4, "relu"), Dense(8, "relu"), Dense(1, "sigmoid")])
model.compile(Adam(ExponentialDecay(0.02, 200, 0.5)), "binary_crossentropy")
model.fit(data.x, data.y, batch_size=100, epochs=5, seed=1, verbose=0)
model.save(folder / "net")
print({file.name: file.stat().st_size for file in (folder / "net").iterdir()}, "bytes:")
print(*safetensors.numpy.load_file(folder / "net" / WEIGHTS))

# %% [markdown]
# ## Taken from a stranger (14 min)
#
# (You may skip the code of this part. It ends with `load_model(path)`, which makes the model again from its folder, and runs no
# code that it finds there.)
#
# Whatever is wrong with a file, we want one sentence: which file, what was found, what to do. And a file must not ask
# for more than it brings. A trillion units are quickly written. So while a model is read, no variable may hold more
# numbers than all that is stored has bytes. (And starting weights are not drawn: they would be thrown away at
# once.)

# %%
page.source(blamed, nothing_drawn)

# %% [markdown]
# `stored` reads what `put` wrote, in one go, so what it gives is of one save, and compares the checksum:

# %%
page.source(stored)

# %% [markdown]
# The model is made, given its numbers, and handed out when everything fits. A name without a folder may be that of a model which
# came with the course.

# %%
page.source(load_model)

# %% [markdown]
# Its `fill` is strict: the names in the file and the names of the variables must be the same, none missing and none left over.
#
# ## The same model again (4 min)
#
# The model comes back from its folder. Does it predict the same, and, trained on, does it learn the same?

# %%
again = load_model(folder / "net")
print("the same predictions:", (again.predict(data.x_test) == model.predict(data.x_test)).all())
losses = [m.fit(data.x, data.y, batch_size=100, epochs=5, seed=2, verbose=0).losses for m in (model, again)]
print("the same training:   ", (losses[0] == losses[1]).all())

# %% [markdown]
# To the last bit: Adam's memory came along, and the step count, which says how far the rate has come down. Now a bit of the file
# changes. And then a stranger writes another text, with a checksum that is right:


# %%
def tried():
    try:
        load_model(folder / "net")
    except ValueError as error:
        print("-", re.sub(r"[\d,]+ are free", "… are free", str(error).replace(folder.as_posix(), "…")))


file, arrays = folder / "net" / WEIGHTS, stored(folder / "net")[0]
blob = bytearray(file.read_bytes())
blob[len(blob) // 2] ^= 1
file.write_bytes(blob)
tried()
text = arrays[TEXT].tobytes().decode()
for old, new in (("Dense", "Dence"), ("8", "1000000000000"), ('"relu"', '"rule"'), ("}", "")):
    put(arrays | {TEXT: as_bytes(text.replace(old, new, 1))}, folder / "net")
    tried()

# %% [markdown]
# ## Two models that are already trained (2 min)
#
# Now we are those who receive. Two models came with the course. One takes a point, and gives the probability that it is
# in the outer ring. The other takes a penguin as it is measured, bill length, bill depth and flipper length in
# millimetres, mass in grams, and gives the probability that it is male. We train on standardised measures. Whoever gets
# our model does not know the means and deviations, so these must be in it too: here they went into the weights of the
# first layer.

# %%
penguin = np.array([[39.1, 18.7, 181.0, 3750.0], [39.5, 17.4, 186.0, 3800.0]])  # the table says: male, female
print("male with probability", *load_model("penguins_sex").predict(penguin).round(2).ravel())
right = (load_model("rings").predict(data.x_test) > 0.5) == (data.y_test == 1)
print(f"points in the right ring: {right.mean():.1%}")

# %% [markdown]
# # 05 more · Saving a model
#
# **In this notebook a model becomes a file that holds data and no code, and that is never half-written.**
#
# You need notebook 05 (`Sequential`, `fit`) for this. The code is that of `levels_more/saving/model.py`. Nothing is
# exported.
#
# It uses safetensors, which `python3 -m course setup` adds.

# %%
from course import build, figures

build.watch("more/05_saving", "safetensors")
figures.you_are_here(5)

# %% tags=["hide-input"]
# The imports of this notebook: you may skip this cell.
import json
import re
from pathlib import Path

import numpy as np
import safetensors.numpy

from course import tasks
from course.reader import checks
from course.reader.figures import page
from levels_more.high_level import Input, Model, Sequential
from levels_more.high_level.serialization import reader, written, written_part
from levels_more.mid_level import Adam, Dense
from levels_more.saving import load_model, save
from levels_more.saving.files import write_aside
from levels_more.saving.model import TEXT, WEIGHTS, as_bytes, checksum, naming, numbers_of, put, read_arrays

net = Sequential([Dense(4, "relu"), Dense(8, "relu"), Dense(1, "sigmoid")])
net.build((None, 2), "float64")

# %% [markdown]
# ## What belongs in the file (5 min)
#
# A trained model is worth keeping, and worth sharing. What must its file contain, so that others can run the model?
# Python's own answer, for any object, is `pickle`. Suppose that somebody sends us a pickle:

# %%
import pickle


class Gift:
    def __reduce__(self):  # pickle asks an object here how to make it again
        return print, ("hello from inside the file",)


present = pickle.dumps(Gift())
del Gift

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "05-saving-pickle",
    "We read it with `pickle.loads(present)`, on a computer where no class `Gift` is defined. What happens?",
    choices=["an error: there is no `Gift`", "a `Gift` is made anyway", "a line is printed"],
)

# %%
pickle.loads(present)

# %%
checks.answer_to("05-saving-pickle")

# %% [markdown]
# The [documentation of pickle](https://docs.python.org/3/library/pickle.html) warns of exactly this, near its top: only
# unpickle data that you trust. So our file holds **data and no code**: the class of each layer, the arguments it was
# made with, and its numbers. The code of the layers comes from the program that reads the file.
#
# ## The architecture, as data (8 min)
#
# Since level 4 each part stores, in `part.recreate`, how it was made. So a part can be written as the name of its class
# and its arguments. The arguments are numbers, texts, lists, or other parts. JSON has a form for all of these, and
# every language can read it.

# %%
page.source(written)

# %% [markdown]
# A function is written as its name, either in the tables of level 4 or in its own `def`. A layer that occurs in a model
# twice must come back as one layer. So the second time we write only its number, under the key `is`. A class is written
# by its name, so a name must mean one class: `save` refuses a `Dense` of your own, because it would come back as the
# one of level 4.

# %%
page.source(written_part)

# %%

middle, start = Dense(2, "relu"), Input((2,))
text = json.dumps(written(Model(start, middle(middle(start))), {}))
print(text.replace('{"class": "Call"', '\n  {"class": "Call"'))

# %% [markdown]
# The model has one input, with id 1, and one layer, with id 3. The layer is called on the input and then on its own
# output: `middle(middle(start))`. A `Call` is a part like any other; its arguments are a layer and what the layer was
# called on.
#
# ## Reading it back (5 min)
#
# `json.loads` builds lists and dicts from the inside out. It passes each dict to a function of ours, the **object
# hook**, and replaces the dict by what that function returns. So when a part is made, its arguments exist already. A
# name in the file can refer only to an entry of our table, or to a class or function of your own that you pass in
# `custom_objects`.

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
# The loaded model has two calls of one layer, like the original. A class that is in no table is not searched for
# anywhere else.
#
# ## The numbers (3 min)
#
# For the weights there is an open format, [safetensors](https://huggingface.co/docs/safetensors). Its file holds a
# length, a header in JSON with the name, dtype and shape of each array, and then the bytes. It contains no code either.
# Level 3's `named` gives each variable a name.

# %%
page.source(numbers_of)

# %%
blob = safetensors.numpy.save(numbers_of(net))
length = int.from_bytes(blob[:8], "little")
header = json.loads(blob[8 : 8 + length])
print(f"{len(blob)} bytes: 8 for the length, {length} for the header, {len(blob) - 8 - length} for the numbers")
print(header["layers.1.kernel"])

# %% [markdown]
# (Version 0.8.0 of the library stores an array wrongly if it is not C-contiguous, so we pass `order="C"`.)
#
# A faulty disk may change one bit of a number. No program crashes because of that; the model just gives wrong answers.
# So we store a **checksum** with the numbers, and compute it again when we read them.

# %%
page.source(checksum)

# %% [markdown]
# ## Written aside, then put in place (11 min)
#
# While a model is being saved, the disk may run full, the program may be stopped, or another program may read the file.
# Even then the file must hold a complete model, the old one or the new one. Every operating system can rename a file
# onto another in one step. So a model is **one file**. It is first written under another name, next to the old one, and
# then renamed:

# %%
page.source(write_aside)

# %% [markdown]
# A program that is killed cannot remove its unfinished file, so the next save removes it. And only a model may be
# replaced: if you type `save("Documents")` by mistake, your documents stay. The function `put` takes care of that:

# %%
page.source(put)

# %% [markdown]
# A folder with a letter in it is not a model:

# %%
import tempfile

place = tempfile.TemporaryDirectory()  # deleted when this kernel ends
folder = Path(place.name)
(folder / "Documents").mkdir()
(folder / "Documents" / "letter.txt").write_text("Dear reader")
try:
    put({}, folder / "Documents")
except FileExistsError as error:
    print(str(error).replace(folder.resolve().as_posix(), "…"))

# %% [markdown]
# **A good place to stop.** A model is one file, and an interrupted save loses nothing.

# %% [markdown]
# For a compiled model, `save` also stores the arguments of `compile`, and what the optimizer keeps for each variable.

# %%
page.source(save)

# %% [markdown]
# Here is a net for the rings after five epochs, with Adam and a rate that halves every 200 steps:

# %%
from levels_more.mid_level import ExponentialDecay

data = tasks.rings()
model = Sequential([Dense(4, "relu"), Dense(8, "relu"), Dense(1, "sigmoid")])
model.compile(Adam(ExponentialDecay(0.02, 200, 0.5)), "binary_crossentropy")
model.fit(data.x, data.y, batch_size=100, epochs=5, seed=1, verbose=0)
model.save(folder / "net")
print(*safetensors.numpy.load_file(folder / "net" / WEIGHTS), sep="\n")

# %% [markdown]
# ## A file from a stranger (9 min)
#
# (You may skip the code of this part. `load_model(path)`, at its end, runs no code from the folder.)
#
# If anything is wrong with a file, we want one sentence that says which file it is, what was found and what to do.
# `naming` makes it. Also, a file must not make us allocate more memory than its own size justifies: a layer of a
# trillion units takes only a few characters. So while a model is loaded, no variable may hold more numbers than the
# file stores bytes. (`nothing_drawn` does this, and no starting weights are drawn.)

# %%
page.source(naming)

# %% [markdown]
# `read_arrays` reads the one file that `put` wrote, so all of its data is from the same save. It also compares the
# checksum:

# %%
page.source(read_arrays)

# %% [markdown]
# `load_model` makes the model, gives it its numbers, and returns it only when everything fits. A name that is not a
# folder may be that of a model that comes with the course.

# %%
page.source(load_model)

# %% [markdown]
# The `fill` at its end is strict: the names in the file must be exactly the names of the variables, with none missing
# and none left over.
#
# ## The same model again (4 min)
#
# We load the model from its folder. Does it make the same predictions? And if we train it further, does it have the
# same losses?

# %%
again = load_model(folder / "net")
print("the same predictions:", (again.predict(data.x_test) == model.predict(data.x_test)).all())
losses = [m.fit(data.x, data.y, batch_size=100, epochs=5, seed=2, verbose=0).losses for m in (model, again)]
print("the same training:   ", (losses[0] == losses[1]).all())

# %% [markdown]
# Both are equal to the last bit. The moments of Adam were in the file, and so was the step count, on which the rate
# depends. Next we change one bit of the file. Then we write four wrong descriptions of the model, each with a correct
# checksum:


# %%
def tried():
    try:
        load_model(folder / "net")
    except ValueError as error:
        print("-", re.sub(r"[\d,]+ are free", "… are free", str(error).replace(folder.as_posix(), "…")))


file = folder / "net" / WEIGHTS
arrays = read_arrays(file)
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
# Two trained models come with the course. One takes a point and returns the probability that it is in the outer ring.
# The other takes a penguin's bill length, bill depth and flipper length in millimetres and its mass in grams, and
# returns the probability that it is male. It was trained on standardised measures. The means and deviations were merged
# into the weights of the first layer, so that nobody has to know them.

# %%
penguin = np.array([[39.1, 18.7, 181.0, 3750.0], [39.5, 17.4, 186.0, 3800.0]])  # the table says: male, female
print("male with probability", *load_model("penguins_sex").predict(penguin).round(2).ravel())
right = (load_model("rings").predict(data.x_test) > 0.5) == (data.y_test == 1)
print(f"points in the right ring: {right.mean():.1%}")

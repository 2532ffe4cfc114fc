# %% [markdown]
# # 05 more · Export to ONNX
#
# **In this notebook the graph of a prediction becomes a file that other frameworks, browsers and telephones can run.**
#
# You need notebook 05 for this, and from notebook 03 that a call can be traced. The code is that of
# `levels_more/saving/onnx.py`. Nothing is exported to `levels`.
#
# It uses ONNX and safetensors, which `python3 -m course setup` adds.

# %%
from course import build, figures

build.watch("more/05_onnx", "onnx", "safetensors")
figures.you_are_here(5)

# %% tags=["hide-input"]
# The imports of this notebook: you may skip this cell.
import sys
import tempfile
from pathlib import Path

import numpy as np

from course import tasks
from course.reader import checks
from course.reader.figures import page
from levels_more.high_level import Input, Model, Sequential
from levels_more.low_level import constant
from levels_more.mid_level import Adam, Dense, Layer
from levels_more.saving import load_model
from levels_more.saving.onnx import (
    ONNX,
    OnnxWriter,
    arg_row,
    attributes_of,
    both,
    info,
    onnx_graph,
    onnx_model,
    reduction_row,
    slice_row,
    sum_row,
    traced,
)

place = tempfile.TemporaryDirectory()  # deleted when this kernel ends
folder = Path(place.name)
data = tasks.rings()
model = Sequential([Dense(4, "relu"), Dense(8, "relu"), Dense(1, "sigmoid")])
model.compile(Adam(0.02), "binary_crossentropy")
model.fit(data.x, data.y, batch_size=100, epochs=5, seed=1, verbose=0)

# %% [markdown]
# ## From our graph to ONNX (22 min)
#
# The folder of `model.save` can be read only by a program that has our layers. TensorFlow's SavedModel goes further: it
# holds the traced graph, and runs without the Python classes. But it needs TensorFlow. There is an open standard for
# such graphs, [ONNX](https://onnx.ai). Its ops have [agreed meanings](https://onnx.ai/onnx/operators/), and other
# frameworks, browsers and telephones can run them. We have the graph already: level 3 traces the call of the model, and
# the layers turn into ops. So we need a table from our ops to those of ONNX:

# %%
for ours, theirs in list(ONNX.items())[:9]:
    print(f"{ours:12} {theirs}")

# %% [markdown]
# An op with attributes needs more than another name. Its row in the table is a function. From the op's inputs and
# attributes it makes a triple: ONNX's op, its inputs and its attributes. An input may be another such triple, or
# numbers. Those rows are at the end, under *More rows for ONNX*; for our net the names are enough.
#
# In ONNX the number of rows in a batch may be left open. A trace has a fixed number of rows. So we trace twice, with
# two rows and with three: whatever is the same in both graphs holds for any number of rows. If a `reshape` differs,
# ONNX computes the size itself (-1). If anything else differs, the model computes with the number of rows, and we raise
# an error.

# %%
page.source(traced)

# %% [markdown]
# `attributes_of` compares a node with its twin, the same node in the graph with one more row. The table `ATTRIBUTES`
# lists the ops that are compared in a special way. A constant is compared by its numbers, and a `reshape` may differ in
# one size.

# %%
page.source(both, attributes_of)

# %% [markdown]
# The rest is translation. Variables and constants become what ONNX calls initializers, and each op becomes a node.

# %%
page.source(OnnxWriter)

# %% [markdown]
# Now we translate node by node, and each node gets a name. A variable keeps its own name, and an op gets the next free
# one. The inputs are called x0, x1, … and the outputs y0, y1, …, in order.

# %%
page.source(onnx_graph, info)

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "05-onnx-nodes",
    "Our net has three layers: Dense(4, relu), Dense(8, relu), Dense(1, sigmoid). How many nodes does its ONNX graph have?",
)

# %%
graph = onnx_graph(model)
for node in graph.node:
    print(f"{node.output[0]:>3} = {node.op_type}({', '.join(node.input)})")

# %%
checks.answer_to("05-onnx-nodes")

# %% [markdown]
# The weights kept their names. Now we have to say which version of the ops we use, the **opset**. Then ONNX checks
# types and shapes. (`export`, which we call next, writes the result of this function into a file.)

# %%
page.source(onnx_model)

# %% [markdown]
# Now we start a Python process that never imports `levels`. It runs the file with the evaluator that comes with ONNX:

# %%
import subprocess

model.export(folder / "net.onnx")
program = """
import sys
from onnx.reference import ReferenceEvaluator
import numpy as np

net = ReferenceEvaluator("net.onnx")
points = np.array([[3.0, 4.0], [0.0, -8.0], [6.0, 5.0]])
print("answers:", *net.run(None, {"x0": points})[0].ravel().round(3))
print("levels was needed:", "levels" in sys.modules)
"""
print(subprocess.check_output([sys.executable, "-I", "-c", program], cwd=folder, text=True), end="")
print("here:   ", *model.predict(np.array([[3.0, 4.0], [0.0, -8.0], [6.0, 5.0]])).ravel().round(3))

# %% [markdown]
# The course's tests do the same with another program, `onnxruntime`, for every layer of level 4. A model with an op
# that has no row in the table cannot be exported:

# %%
from levels_more.low_level import apply


class Noise(Layer):
    def call(self, x):
        return x + apply("random_normal", constant([1, 2]), shape=x.shape, dtype=x.dtype)


noisy = Sequential([Dense(1), Noise()])
noisy.build((None, 2))
try:
    noisy.export(folder / "noisy.onnx")
except ValueError as error:
    print(error)

# %% [markdown]
# **A good place to stop.** Your net runs in a process that does not know `levels`.

# %% [markdown]
# ## More rows for ONNX (4 min)
#
# [ONNX's list of ops](https://onnx.ai/onnx/operators/) says what each op takes. Most of our attributes exist there
# under another name. A reduction, for example, names its axes, and None stands for all of them. (In opset 17, only the
# sum takes its axes as an input.) The following three functions are a reference; you may skip them.

# %%
page.source(reduction_row, sum_row, arg_row)

# %% [markdown]
# A slice has starts, stops and steps. Where ours has no stop, ONNX still needs a number.

# %%
page.source(slice_row)

# %%
from levels_more.mid_level import Flatten

x = Input((3, 2))
for node in onnx_graph(Model(x, Flatten()(x))).node:
    print(node.op_type, *node.input)

# %% [markdown]
# ## A page for the browser (6 min)
#
# The model of the rings has 61 numbers, and you know how it computes with them. So it can also run without Python.
# Every browser runs JavaScript, and the function below is all of our net that it needs. (The other functions of the
# page draw. We take this one out of the page's text to show it.)

# %%
from levels_more.saving.webpage import TEMPLATE, export_page

_, forward, *_ = TEMPLATE.read_text(encoding="utf-8").split("function ")
print("function " + forward.rsplit("}", 1)[0] + "}")

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "05-onnx-browser",
    "`levels` and the browser compute the outputs of all units for the same point. Which outputs may differ?",
    choices=["none", "only the last one, the probability", "all, in their last digits"],
)

# %%
reach = {"x1": (-11, 11), "x2": (-11, 11)}
export_page(load_model("rings"), "rings.html", inputs=reach, outputs=["inner ring", "outer ring"])
print(f"{Path('rings.html').stat().st_size / 1000:.0f} kB for the whole page, with the net")

# %%
checks.answer_to("05-onnx-browser")

# %% [markdown]
# ([ECMAScript](https://tc39.es/ecma262/#sec-math.exp), the standard of JavaScript, calls the result of `Math.exp`
# "implementation-approximated". A test checks that all hidden values are equal, and that the probability agrees to a
# millionth.)
#
# Now **open the page**. In Lab's file browser, right-click `rings.html` and choose *Open in New Browser Tab*; outside
# of Lab, a double click opens it. Move the point across the plane with the mouse or the arrow keys: hidden units switch
# on and off. Each corner of the blue region is a place where one of them switches. The page needs no network. Send it
# to a friend.
#
# `export_page` also takes your own models. *more/05_at_work* makes a page with sliders, and one on which you draw a
# digit.

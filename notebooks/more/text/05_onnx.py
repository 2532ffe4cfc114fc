# %% [markdown]
# # 05 more · To where there is no `levels`
#
# **In this notebook the graph of a prediction becomes a file that other frameworks, browsers and telephones run.**
#
# It needs notebook 05, and of notebook 03 that a call can be traced. It takes `levels_more/saving/onnx.py` apart. Nothing is
# exported. (The cell
# after the next one is folded. It imports what is used below.)
#
# It uses ONNX and safetensors, which `python3 -m course setup` adds.

# %%
from course import build, figures

build.watch("more/05_onnx", "onnx", "safetensors")
figures.you_are_here(5)

# %% tags=["hide-input"]
import sys
import tempfile
from pathlib import Path

import numpy as np

from course import tasks
from course.figures import page
from course.practice import checks
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

place = tempfile.TemporaryDirectory()  # it goes when this kernel ends
folder = Path(place.name)
data = tasks.rings()
model = Sequential([Dense(4, "relu"), Dense(8, "relu"), Dense(1, "sigmoid")])
model.compile(Adam(0.02), "binary_crossentropy")
model.fit(data.x, data.y, batch_size=100, epochs=5, seed=1, verbose=0)

# %% [markdown]
# ## To where there is no `levels` (22 min)
#
# The folder of `model.save` needs our layers. TensorFlow's SavedModel goes further: it holds the traced graph, and runs where the
# Python classes are missing. But it needs TensorFlow. There is an open standard for such graphs,
# [ONNX](https://onnx.ai): ops with [agreed meanings](https://onnx.ai/onnx/operators/), which other frameworks, browsers
# and telephones run. We have the graph already. Level 3 traces the model's call, and what is left of the layers is ops.
# So we need a table, from our ops to theirs:

# %%
for ours, theirs in list(ONNX.items())[:9]:
    print(f"{ours:12} {theirs}")

# %% [markdown]
# An op that has attributes needs more than another name. Its row in the table is a function: from inputs and attributes
# to a triple, ONNX's op, its inputs, its attributes. An input may be another such triple, or numbers. Those rows stand
# at the end, under *More rows for ONNX*; for our net the names will do.
#
# ONNX leaves open how many rows a batch has. A trace does not. So we trace twice, with two rows and with three: what is
# the same in both graphs holds for any number. Where a `reshape` differs, ONNX works out the size itself (-1). If
# anything else differs, the model computes with the number of rows, and we say so.

# %%
page.source(traced)

# %% [markdown]
# `attributes_of` lays a node beside its twin, the same node in the graph for a row more. The table `ATTRIBUTES` says which
# ops are compared in a way of their own: a constant by its numbers, and a `reshape`, which may differ in one size.

# %%
page.source(both, attributes_of)

# %% [markdown]
# The rest is spelling. Variables and constants become what ONNX calls initializers, and each op becomes a node.

# %%
page.source(OnnxWriter)

# %% [markdown]
# Now node by node. Names go three ways: a variable keeps its own, an op takes the next free one, and what the model gives is told
# by place. Each of our nodes gets a name there; the inputs are called x0, x1, … and the outputs y0, y1, …

# %%
page.source(onnx_graph, info)

# %% tags=["hide-input"]
checks.predict(
    "Three layers: Dense(4, relu), Dense(8, relu), Dense(1, sigmoid). How many nodes does their ONNX graph have?",
    9,
    because="Three for each layer: a product, a sum, an activation. The layers themselves are gone: they were Python "
    "code, and the trace ran it.",
)

# %%
graph = onnx_graph(model)
for node in graph.node:
    print(f"{node.output[0]:>3} = {node.op_type}({', '.join(node.input)})")

# %% [markdown]
# The weights kept their names. It remains to say which edition of the ops we mean, the **opset**. Then ONNX checks
# types and shapes. (`export`, which we call next, writes what this gives into a file.)

# %%
page.source(onnx_model)

# %% [markdown]
# And now a Python process in which `levels` is never imported. It runs the file with the evaluator that comes with
# ONNX:

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
# The course's tests do the same with another program, `onnxruntime`, for every layer of level 4. An op that has no row
# in the table stays at home:

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
# **A good place to stop.** Your net runs in a process that has never heard of `levels`.

# %% [markdown]
# ## More rows for ONNX (4 min)
#
# What each op takes is written in [ONNX's list](https://onnx.ai/onnx/operators/). Most of our attributes are theirs,
# under another name. A reduction names its axes, and None stands for all of them. (In opset 17 the sum is the only one
# that takes its axes as an input.) The cell with the rows is folded: it is a list to look things up in.

# %%
page.source(reduction_row, sum_row, arg_row)

# %% [markdown]
# A slice is told by starts, stops and steps. Where it goes as far as it can, ONNX wants a number all the same.

# %%
page.source(slice_row)

# %%
from levels_more.mid_level import Flatten

x = Input((3, 2))
for node in onnx_graph(Model(x, Flatten()(x))).node:
    print(node.op_type, *node.input)

# %% [markdown]
# ## Take it home (4 min)
#
# The model of the rings has 61 numbers, and you know what happens to them. So they can go where there is no Python. Every
# browser speaks JavaScript, and this is all that it must know of our net. (The other functions of the page
# draw. We cut this one out of its text to show it.)

# %%
from levels_more.saving.webpage import TEMPLATE, export_page

_, forward, *_ = TEMPLATE.read_text(encoding="utf-8").split("function ")
print("function " + forward.rsplit("}", 1)[0] + "}")

# %% tags=["hide-input"]
checks.predict(
    "`levels` and the browser compute the values of all units for the same point. Which of them may differ?",
    choices=["none", "only the last one, the probability", "all, in their last digits"],
    answer="only the last one, the probability",
    because="JavaScript's numbers are float64, so sums of products in the same order round to the same bits. Only exp is left "
    "to each browser, and the sigmoid that needs it stands at the very end.",
)

# %% [markdown]
# ([ECMAScript](https://tc39.es/ecma262/#sec-math.exp), the standard of JavaScript, calls the result of `Math.exp`
# "implementation-approximated". A test holds all hidden values to be equal, and the probability to a millionth.)

# %%
reach = {"x1": (-11, 11), "x2": (-11, 11)}
export_page(load_model("rings"), "rings.html", inputs=reach, outputs=["inner ring", "outer ring"])
print(f"{Path('rings.html').stat().st_size / 1000:.0f} kB, net, page and all")

# %% [markdown]
# Now **open the page**. In Lab's file browser, right-click `rings.html` and take *Open in New Browser Tab*; outside of Lab, a
# double click does. Drag the point over the edge, by mouse or by the arrow keys: hidden units wake and fall silent, and each
# corner of the blue region is a place where one of them does. The page needs no network. Send it to somebody.
#
# It takes models of your own, too. *more/05_at_work* makes a page with sliders, and one on which you draw a digit.

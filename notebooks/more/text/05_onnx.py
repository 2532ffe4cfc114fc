# %% [markdown]
# # 05 more · To where there is no `levels`
#
# **In this notebook the graph of a prediction becomes a file that other frameworks, browsers and telephones run.**
#
# It needs notebook 05, and of notebook 03 that a call can be traced. It takes `levels_more/exporting.py` apart. Nothing is exported.

# %%
from course import build, figures, tasks
from course.figures import page
from course.practice import checks

build.watch("more/05_onnx")  # so that `levels_more` is seen, too
figures.you_are_here(5)

# %%
import sys
import tempfile
from pathlib import Path

import numpy as np

from levels.high_level import Input, Model, Sequential
from levels.low_level import constant
from levels.mid_level import Adam, Dense, Layer
from levels_more.exporting import (
    ONNX,
    OnnxWriter,
    arg_max_row,
    attributes_of,
    both,
    export,
    info,
    onnx_graph,
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
# ## To where there is no `levels`
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
# `attributes_of` lays a node beside its twin, the same node in the graph for a row more:

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
# types and shapes:

# %%
page.source(export)

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
from levels.low_level import apply


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
# ## More rows for ONNX
#
# What each op takes is written in [ONNX's list](https://onnx.ai/onnx/operators/). Most of our attributes are theirs,
# under another name. A reduction names its axes, and None stands for all of them. (In opset 17 the sum is the only one
# that takes its axes as an input.) The cell with the rows is folded: it is a list to look things up in.

# %%
page.source(reduction_row, sum_row, arg_max_row)

# %% [markdown]
# A slice is told by starts, stops and steps. Where it goes as far as it can, ONNX wants a number all the same.

# %%
page.source(slice_row)

# %%
from levels.mid_level import Flatten

x = Input((3, 2))
for node in onnx_graph(Model(x, Flatten()(x))).node:
    print(node.op_type, *node.input)

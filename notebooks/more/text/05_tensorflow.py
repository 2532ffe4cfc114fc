# %% [markdown]
# # 05 more · TensorFlow's names
#
# **In this notebook programs for TensorFlow and torchkeras run on the five levels, with one changed line each.**
#
# You need notebook 05 for this. The code is that of `levels_more/tensorflow` and `levels_more/torchkeras`. (PyTorch's
# tensors, modules and optimizers are in `more/03_torch`.) Nothing is exported here.
#
# It uses pandas and safetensors, which `python3 -m course setup` adds.

# %%
from course import build, figures

build.watch("more/05_tensorflow", "pandas", "safetensors")
figures.you_are_here(5)

# %% tags=["hide-input"]
# The imports of this notebook: you may skip this cell.
import numpy as np

import course
from course import programs
from course.reader import checks
from course.reader.figures import page
from course.reader.inspection import framework_programs
from levels_more.tensorflow import functions, keras_optimizers

# %% [markdown]
# ## One net, three APIs (2 min)
#
# TensorFlow has a low-level, a mid-level and a high-level API, and notebooks 03, 04 and 05 are named after them. So the
# net of the two rings can be written in TensorFlow in three ways. Here is the highest level, as TensorFlow's users
# write it, with one changed import:

# %%
framework_programs.here("tf", "high", "rings")

# %% [markdown]
# All three programs run here. Next to each result is the one that TensorFlow itself gave for the same starting weights
# and the same batches:

# %%
for api in ("low", "mid", "high"):
    stored = programs.program("tf", api, "rings")
    ours = programs.run(programs.here(stored.text))
    print(f"{api:4}  loss of step 200: TensorFlow {stored.losses[199]:.12f}, here {ours[199]:.12f}")

# %% [markdown]
# All six numbers are the same, in the twelve digits that are shown. (A float64 has about sixteen digits. The last ones
# may differ, because TensorFlow adds in its own order.) Here are the three programs side by side, each under the level
# that it corresponds to:

# %%
framework_programs.three("tf", "Two rings", "rings")

# %% [markdown]
# ## A list of names (3 min)
#
# With the five levels in place, what is left to write? Mostly names. From the beginning, `levels` used TensorFlow's
# names wherever there was one, so much of the spelling is a list. Other entries give another word for the same thing:
#
# | TensorFlow | here | on level |
# |---|---|---|
# | `tf.constant`, `tf.Variable`, `tf.GradientTape`, `tf.reduce_mean` | the same | 3 |
# | `tf.clip_by_value(x, 0.0, 1.0)` | `clip(x, 0.0, 1.0)` | 3 |
# | `tf.random.normal((2, 3))` | `normal((2, 3))` | 3 |
# | `@tf.function` | `@function` | 3 |
# | `tf.keras.layers.Dense`, `tf.keras.losses…`, `tf.keras.optimizers…` | `Dense`, `MeanSquaredError`, `Adam` | 4 |
# | `tf.data.Dataset` | `Dataset` | 4 |
# | `tf.keras.Sequential`, `tf.keras.Model`, `model.fit` | `Sequential`, `Model`, `model.fit` | 5 |
#
# If TensorFlow also uses other names for the arguments, the function gets a wrapper:

# %%
page.source(functions.with_tf_arguments)

# %% [markdown]
# `course.where` knows such names. It shows the line that defines the spelling, and the code that this line relies on:

# %%
course.where("tf.keras.layers.Dense")

# %% [markdown]
# ## Eager, and as a graph (7 min)
#
# Since version 2, TensorFlow runs each op at once, as level 3 does. `tf.function` turns a Python function into a graph
# of ops, as our `function` does. Python runs once, on symbols, and later calls run the recorded graph.

# %%
import levels_more.tensorflow as tf


@tf.function
def square(x):
    print("Python is here, with", type(x).__name__)
    return x * x


# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "05-tensorflow-prints",
    "`square` is called with 1.0, 2.0 and 3.0, each a `tf.constant`. How many times does its `print` run?",
    slider=(0, 3, 1),
)

# %%
print([float(square(tf.constant(value))) for value in (1.0, 2.0, 3.0)])

# %%
checks.answer_to("05-tensorflow-prints")

# %% [markdown]
# What happens with an `if` on a tensor? While Python runs on symbols, there is no number to decide by. TensorFlow reads
# the source of the function beforehand, and rewrites such an `if` as an op, `tf.cond`. It calls that AutoGraph.
# `levels` does not rewrite your code:


# %%
@tf.function
def magnitude(x):
    print("Python is here, with", type(x).__name__)
    if x < 0.0:
        return -x
    return x


print([float(magnitude(tf.constant(value))) for value in (-2.0, 3.0)])

# %% [markdown]
# Tracing stopped at the `if`. From then on this function runs op by op, and Python runs in every call. That is correct
# but slow. If both branches may be computed, `tf.where` does the same as an op, in TensorFlow as well, and the function
# becomes a graph again:


# %%
@tf.function
def magnitude(x):
    print("Python is here, with", type(x).__name__)
    return tf.where(x < 0.0, -x, x)


print([float(magnitude(tf.constant(value))) for value in (-2.0, 3.0)])

# %% [markdown]
# ## The defaults differ (10 min)
#
# Translate a program from TensorFlow to PyTorch name by name, and it runs, but it trains a little differently. The
# **defaults** differ, and these are not written in the program. Each spelling here keeps the defaults of its framework.

# %%
import levels_more.torch as torch

tf.random.set_seed(1)
torch.manual_seed(1)
dense, linear = tf.keras.layers.Dense(100), torch.nn.Linear(400, 100)
dense.build((None, 400))
parts = {"tf": (dense.kernel, dense.bias), "torch": (linear.weight.detach(), linear.bias.detach())}
for name, (weight, bias) in parts.items():
    reach = [np.abs(part.numpy()).max() for part in (weight, bias)]
    print(f"{name:5}  shape {tuple(weight.shape)}  weights within {reach[0]:.2f}, bias within {reach[1]:.2f}")

# %% [markdown]
# In TensorFlow a kernel has the shape [in, out]. In PyTorch it is [out, in], and `Linear` computes x · Wᵀ. The starting
# weights differ, too. In TensorFlow they lie within √(6 / (in + out)), Glorot's rule, and the bias is zero. In PyTorch
# the weights and the bias lie within 1 / √in.
#
# Now Adam. It divides the mean of the gradients by √v, which is about as large. So the length of a step is about the
# rate, whatever the gradient. The ε in √v + ε is there only to avoid a division by 0.

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "05-tensorflow-adam",
    "Take one step of Adam with the rate 0.01 and a gradient of 1e-7. PyTorch moves the weight by 0.0091. How far does Keras move it?",
    choices=["0.0091, too", "0.005", "0.0003"],
)

# %%
for gradient in (1.0, 1e-6, 1e-7):
    w, v = torch.zeros(1, dtype=torch.float64, requires_grad=True), tf.Variable(np.zeros(1))
    w.grad = torch.tensor([gradient], dtype=torch.float64)
    torch.optim.Adam([w], lr=0.01).step()
    tf.keras.optimizers.Adam(0.01).apply_gradients([(tf.constant([gradient], "float64"), v)])
    print(f"gradient {gradient:7.0e}   torch moves {-w.item():.4f}, tf {-float(v.numpy()[0]):.4f}")

# %%
checks.answer_to("05-tensorflow-adam")

# %% [markdown]
# The Adam of notebook 04 follows Algorithm 1 of the paper, as PyTorch does. So the rule of Keras has its own class,
# with an `update` of six lines:

# %%
page.source(keras_optimizers.Adam)

# %% [markdown]
# These defaults and rules differ (TensorFlow 2.21 with Keras 3.15, and PyTorch 2.14):
#
# | | TensorFlow | PyTorch |
# |---|---|---|
# | kernel | [in, out] | [out, in] |
# | starting weights | Glorot uniform, bias 0 | within 1 / √in, bias too |
# | Adam | ε = 1e-7, before the correction | ε = 1e-8, after it |
# | batch normalisation | keeps 0.99 of its old means, ε = 1e-3 | keeps 0.9 of them, ε = 1e-5 |
# | the variance that it keeps | the mean of n squared distances | their sum, divided by n - 1 |
# | a loss is called with | (truth, prediction) | (prediction, truth) |
# | a loss of classes expects | probabilities, unless `from_logits` | logits |
# | log of 0 | p is clipped at 1e-7, unless a sigmoid or softmax layer gave it: then the logit that made p is used | the logarithm is clipped at -100 |
# | training mode | `layer(x, training=True)` | `layer.train()`, `layer.eval()` |
#
# `05_differences` has many more such rules, as each library answered when it was asked.
#
# ## torchkeras (4 min)
#
# PyTorch has no `fit`: you write the loop. torchkeras wraps a module, a loss and an optimizer into a model that has a
# `fit`. It keeps the best weights in a file, prints a line for each epoch, and returns its history as a table:

# %%
import tempfile

from course import tasks
from levels_more import torchkeras
from levels_more.torch import nn
from levels_more.torch.utils.data import DataLoader, TensorDataset

rings = tasks.rings()
x, y = torch.tensor(rings.x), torch.tensor(rings.y)
train, held = (DataLoader(TensorDataset(x[rows], y[rows]), 100) for rows in (slice(3000), slice(3000, None)))
net = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1)).double()
adam = torch.optim.Adam(net.parameters(), lr=0.05)
model = torchkeras.KerasModel(net, loss_fn=nn.BCEWithLogitsLoss(), optimizer=adam)
with tempfile.TemporaryDirectory() as folder:
    table = model.fit(train, val_data=held, epochs=4, ckpt_path=f"{folder}/rings.pt")
table.round(3)

# %% [markdown]
# Its loop is that of notebook 05. Its step is a step of level 3, except for one line:

# %%
page.source(torchkeras.KerasModel._step)

# %% [markdown]
# A gradient longer than 1 is shortened to length 1. torchkeras does that in every step, since its version 3.8.8. In
# Keras, `fit` does it only if the optimizer is told to. That is one more default that is not written in the program.
#
# ## What is left out (1 min)
#
# The spelling has the names that small dense nets need. For other names you get an error that says so:

# %%
for missing in ("image", "gradients", "float16"):
    try:
        getattr(tf, missing)
    except AttributeError as error:
        print(error)

# %% [markdown]
# Some differences are not about names. `int32` is int64 here, a seed gives other random numbers than in TensorFlow, and
# graphs hold no text. A shape is a tuple: write `list(x.shape)` instead of `x.shape.as_list()`. And NumPy's
# mathematical functions take only arrays: write `np.exp(x.numpy())`, or `tf.exp(x)`.
#
# ## Without a check (1 min)
#
# - Take a TensorFlow program of your own for a small dense net, and change its import. Which names are missing?
#   (`course.where` may know another word for them.)
# - Train the net with `tf.keras.optimizers.Adam(epsilon=1e-3)`. Which loss is the first to differ, and why?
# - `square` above was traced once. Call it with a Python number, `square(2.0)`, and then with 3.0. How often is it traced now, and why?

# %% [markdown]
# # 05 more · The same names
#
# **In this notebook programs for TensorFlow and torchkeras run on the five levels, and one line of each has changed.**
#
# It needs notebook 05. It takes `levels_more/tensorflow` apart, and looks at `levels_more/torchkeras`; PyTorch's lower half is in
# `more/03_torch`. Nothing is exported here.
#
# It uses pandas and safetensors, which `python3 -m course setup` adds.

# %%
from course import build, figures

build.watch("more/05_tensorflow", "pandas", "safetensors")
figures.you_are_here(5)

# %% tags=["hide-input"]
import numpy as np

import course
from course import programs
from course.figures import page
from course.inspection import framework_programs
from course.practice import checks
from levels_more.tensorflow import functions, keras_optimizers

# %% [markdown]
# ## One net, three APIs (2 min)
#
# TensorFlow has a low, a mid and a high API, and notebooks 03, 04 and 05 are named after them. So there are three programs for the
# net of the two rings. This is the highest, as its users write it, with one import changed:

# %%
framework_programs.here("tf", "high", "rings")

# %% [markdown]
# All three run here. Beside each stands what TensorFlow itself gave for the same starting weights and the same batches:

# %%
for api in ("low", "mid", "high"):
    stored = programs.program("tf", api, "rings")
    ours = programs.run(programs.here(stored.text))
    print(f"{api:4}  loss of step 200: TensorFlow {stored.losses[199]:.12f}, here {ours[199]:.12f}")

# %% [markdown]
# One number, six times. (The last digits of a float64, which are not shown, may differ: TensorFlow adds up in an order of its own.)
# And the three programs side by side, under the level of ours that each stands on:

# %%
framework_programs.three("tf", "Two rings", "rings")

# %% [markdown]
# ## A name is a row (3 min)
#
# What is there to write, when the levels stand? Mostly names. `levels` took those of TensorFlow from the beginning, wherever
# there was one, so much of the spelling is a list. Other names are another word for the same:
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
# Where TensorFlow calls the arguments of a function otherwise, too, a row is wrapped once more:

# %%
page.source(functions.spelled)

# %% [markdown]
# `course.where` knows such names, and leads to the line that spells one, to what that line stands on, and down to the kernels:

# %%
course.where("tf.keras.layers.Dense")

# %% [markdown]
# ## Eager, and as a graph (5 min)
#
# Since its version 2 TensorFlow runs each op at once, as level 3 does. `tf.function` makes a graph of them, as our `function`
# does: Python runs once, on symbols, and what it wrote down runs from then on.

# %%
import levels_more.tensorflow as tf


@tf.function
def square(x):
    print("Python is here, with", type(x).__name__)
    return x * x


# %% tags=["hide-input"]
checks.predict(
    "`square` is called with 1.0, 2.0 and 3.0, each a `tf.constant`. How often does the line of Python print?",
    1,
    slider=(0, 3, 1),
    because="""The first call traces: Python runs, on a symbol. For the same dtype and shape the graph is there, and no
    Python is left in it. (With another dtype or shape it is traced anew.) Both TensorFlow and `levels` go by that rule.""",
)

# %%
print([float(square(tf.constant(value))) for value in (1.0, 2.0, 3.0)])

# %% [markdown]
# And an `if` on a tensor? While Python runs on symbols, no number is there to decide by. TensorFlow reads the function's source
# beforehand, and rewrites such an `if` into an op, `tf.cond`; it calls that AutoGraph. Here nobody rewrites what you wrote:


# %%
@tf.function
def magnitude(x):
    print("Python is here, with", type(x).__name__)
    if x < 0.0:
        return -x
    return x


print([float(magnitude(tf.constant(value))) for value in (-2.0, 3.0)])

# %% [markdown]
# The trace met the `if` and gave up. From then on this function runs op by op, with Python in every call: right, and slow. Where
# both ways may be computed, `tf.where` says the same as an op, in TensorFlow as well, and the function is a graph again:


# %%
@tf.function
def magnitude(x):
    print("Python is here, with", type(x).__name__)
    return tf.where(x < 0.0, -x, x)


print([float(magnitude(tf.constant(value))) for value in (-2.0, 3.0)])

# %% [markdown]
# ## The same word, another number (7 min)
#
# A program that is translated name by name from TensorFlow to PyTorch runs, and trains a little differently. What nobody wrote
# down is different: the **defaults**. Both spellings keep those of their framework.

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
# A kernel is [in, out] in TensorFlow, and [out, in] in PyTorch, whose `Linear` computes x · Wᵀ. And the starting weights lie
# within √(6 / (in + out)), Glorot's rule, beside a bias of zeros; or within 1 / √in, the bias as well.
#
# Now Adam. Its step is the gradient, measured on its own scale: the rate, whatever the gradient. The ε in √v + ε only keeps it
# from dividing by 0.

# %% tags=["hide-input"]
checks.predict(
    "One step of Adam with the rate 0.01, for a gradient of 1e-7. PyTorch moves the weight by 0.0091. And Keras?",
    choices=["0.0091, too", "0.005", "0.0003"],
    answer="0.0003",
    because="ε is 1e-8 in PyTorch and 1e-7 in Keras. And Keras adds it to √v before v is corrected for its start at zero, when √v "
    "is about 30 times too small: at first its ε counts 30 times as much. In most trainings nobody notices, because few "
    "gradients are that small.",
)

# %%
for gradient in (1.0, 1e-6, 1e-7):
    w, v = torch.zeros(1, dtype=torch.float64, requires_grad=True), tf.Variable(np.zeros(1))
    w.grad = torch.tensor([gradient], dtype=torch.float64)
    torch.optim.Adam([w], lr=0.01).step()
    tf.keras.optimizers.Adam(0.01).apply_gradients([(tf.constant([gradient], "float64"), v)])
    print(f"gradient {gradient:7.0e}   torch moves {-w.item():.4f}, tf {-float(v.numpy()[0]):.4f}")

# %% [markdown]
# Notebook 04's Adam follows the paper's Algorithm 1, as PyTorch's does. So Keras' rule is a class of its own, of four lines:

# %%
page.source(keras_optimizers.Adam)

# %% [markdown]
# What differs by default, or by rule:
#
# | | TensorFlow | PyTorch |
# |---|---|---|
# | kernel | [in, out] | [out, in] |
# | starting weights | Glorot uniform, bias 0 | within 1 / √in, bias too |
# | Adam | ε = 1e-7, before the correction | ε = 1e-8, after it |
# | batch normalisation | keeps 0.99 of its means, ε = 1e-3 | takes 0.1 of the new ones, ε = 1e-5 |
# | a loss is called with | (truth, prediction) | (prediction, truth) |
# | classes | probabilities, unless `from_logits` | logits |
# | log of 0 | p is cut off at 1e-7 | the logarithm is cut off at -100 |
# | training or not | `layer(x, training=True)` | `layer.train()`, `layer.eval()` |
#
# ## torchkeras (5 min)
#
# PyTorch has no `fit`: the loop is yours. torchkeras wraps a module, a loss and an optimizer into a model that has one. It keeps the
# best weights in a file, and hands out its history as a table:

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
    table = model.fit(train, val_data=held, epochs=4, ckpt_path=f"{folder}/rings.pt", quiet=True)
table.round(3)

# %% [markdown]
# Its loop is the one of notebook 05, and its step the one at the door of 03, but for one line:

# %%
page.source(torchkeras.KerasModel._step)

# %% [markdown]
# A gradient that is longer than 1 is made as long as 1. torchkeras does so in every step, and Keras' `fit` only where the
# optimizer is told to: one more default that nobody wrote down.
#
# ## What is left out (1 min)
#
# The spelling has the names that small dense nets need. Whatever else you ask for says so:

# %%
for missing in ("image", "gradients", "float16"):
    try:
        getattr(tf, missing)
    except AttributeError as error:
        print(error)

# %% [markdown]
# Some things differ and are no names: `int32` is int64 here, random numbers of a seed are our own, and graphs hold no text.
# A shape is a tuple: `list(x.shape)` stands for `x.shape.as_list()`. And NumPy's functions of numbers take arrays: write
# `np.exp(x.numpy())`, or `tf.exp(x)`.
#
# ## Without a check (1 min)
#
# - Take a program of your own for a small dense net. Change its import. What does it lack? (`course.where` may know another word.)
# - Train the net with `tf.keras.optimizers.Adam(epsilon=1e-3)`. Which of the losses moves first, and why?
# - `square` above was traced once. Call it with a Python number, `square(2.0)`, and then with 3.0. How often now, and why?

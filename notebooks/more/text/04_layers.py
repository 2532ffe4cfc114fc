# %% [markdown]
# # 04 more · Layers
#
# **In this notebook layers start in other ways, forget, standardise and look things up.**
#
# Needs notebook 04: `Layer`, `build`, `call`, `add_weight`. It takes `layers.py`, `initializers.py` and
# `regularizers.py` of `levels_more/mid_level/` apart.

# %%
from course import build
from course.figures import page

build.watch("more/04_layers")

# %% tags=["hide-input"]
import numpy as np

from levels_more.mid_level import (
    INITIALIZERS,
    L1,
    L2,
    Activation,
    BatchNormalization,
    Concatenate,
    Dense,
    Dropout,
    Embedding,
    Flatten,
    Layer,
    truncated_normal,
)

# %% [markdown]
# ## Where weights start (2 min)
#
# Where weights start, first. [He et al., 2015](https://arxiv.org/abs/1502.01852) propose the variance 2 / inputs for layers
# with relu, which lets half of the signal through. To draw a normal number within two standard deviations, draw a share between
# 2.3 % and 97.7 %, and look up which number has that share below it.

# %%
page.source(truncated_normal)

# %%
for name in ("glorot_uniform", "glorot_normal", "he_normal", "truncated_normal"):
    sample = np.array(INITIALIZERS[name]((100, 100)))
    print(f"{name:17} standard deviation {sample.std():.3f}, largest {abs(sample).max():.3f}")

# %% [markdown]
# Cut off, 0.05 has a standard deviation of 0.044; Glorot's and He's allow for that.
#
# ## Penalties (3 min)
#
# A penalty for large weights: a loss that looks at a variable. Give one to a layer as its `kernel_regularizer`.

# %%
page.source(L1, L2)

# %%
heavy = Dense(1, kernel_initializer="ones", kernel_regularizer=L2(0.1))
heavy(np.ones((1, 3), "f4"))
heavy.losses

# %% [markdown]
# 0.1 · (1 + 1 + 1) is to be added to the loss. (It is 0.3 as float32 has it.)
#
# ## Layers without variables (4 min)
#
# Many layers need no variable, and are a line or two:

# %%
page.source(Activation, Flatten, Concatenate)

# %%
block = np.arange(8.0).reshape(2, 2, 2)
print(Flatten()(block).shape, Concatenate()([block, block]).shape, Activation("relu")([-1.0, 1.0]).numpy())

# %% [markdown]
# ## A layer that forgets (3 min)
#
# **Dropout** ([Srivastava et al., 2014](https://jmlr.org/papers/v15/srivastava14a.html)) needs a variable, the state of its random
# numbers, so that a compiled step draws new ones each time.

# %%
page.source(Dropout)

# %%
dropout, ones = Dropout(0.5, seed=1), np.ones((2, 4), "f4")
print(dropout(ones, training=True).numpy(), dropout(ones, training=True).numpy(), dropout(ones).numpy(), sep="\n")

# %% [markdown]
# In training some numbers are 0 and the others are doubled, so that the mean stays about 1. The second call drops others.
# Outside of training nothing happens.
#
# ## A layer that standardises (5 min)
#
# **Batch normalization** ([Ioffe and Szegedy, 2015](https://arxiv.org/abs/1502.03167)) standardises inside the net. In
# training it takes mean and variance from the batch, and keeps a fading mean of both for later. So it has two pairs of
# variables: one pair is trained, the other only written down.

# %%
page.source(BatchNormalization)

# %%
normal = BatchNormalization()
measured = np.array([[170.0, 3.1], [180.0, 3.9], [205.0, 4.4]], "f4")
print(normal(measured, training=True).numpy().round(3))
print(*(v.numpy().round(3) for v in normal.moving))

# %% [markdown]
# The columns of the batch have mean 0 now. The moving means have gone one hundredth of the way from 0 to 185 and 3.8, the moving
# variances as far from 1.
#
# ## A layer that looks up (3 min)
#
# The last layer looks up: for each whole number a row of a table. The rows are trained like any weights.

# %%
page.source(Embedding)

# %% [markdown]
# Four numbers in, four rows of two out:

# %%
words = Embedding(5, 2)
print(words(np.array([[0, 4], [4, 4]])).shape, words)

# %% [markdown]
# ## Exercises (10 min)
#
# Fill the stub, run, and read what the check says. The check makes objects of the class, and tries them in float64 and in float32,
# on square and on other shapes.
#
# ### 04-1 · A layer
#
# `Scale` multiplies each column by a number of its own. The numbers are trained, and start at 1.
#
# ```
#   x[batch, columns]       scale[columns]        y[batch, columns]
#   ┌ 1  2  3 ┐                                   ┌ 10  0  -3 ┐
#   └ 4  5  6 ┘        ·    [ 10  0  -1 ]    =    └ 40  0  -6 ┘
# ```
#
# (About 5 lines. Hint: the shape that `build` gets is that of x; `"ones"` is an initializer.)

# %%
from course.practice import exercises

exercises.begin("04-1")


class Scale(Layer):
    """x[batch, columns] · scale[columns]"""

    def build(self, shape):
        """Make `scale`, a variable of ones, for inputs of this shape."""
        ...

    def call(self, x):
        return ...


exercises.check("04-1", Scale)

# %% [markdown]
# Is it right? Print `Scale().again()`: who gave the layer this `again`, and what is it good for?
#

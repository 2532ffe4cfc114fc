# %% [markdown]
# # 04 more · Layers
#
# **In this notebook you meet other starting weights, penalties, and layers that drop, standardise and look up
# numbers.**
#
# You need notebook 04 for this (`Layer`, `build`, `call`, `add_weight`). The code is that of `layers.py`,
# `initializers.py` and `regularizers.py` in `levels_more/mid_level/`.

# %%
from course import build
from course.reader.figures import page

build.watch("more/04_layers")

# %% tags=["hide-input"]
# The imports of this notebook: you may skip this cell.
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
# In a layer with relu, about half of the signal is set to zero. To make up for that, [He et al.,
# 2015](https://arxiv.org/abs/1502.01852) propose a variance of 2 / inputs for its starting weights. `truncated_normal`
# draws normal numbers that lie within two standard deviations of the mean. It draws a share between 2.3 % and 97.7 %.
# Then it looks up the number below which that share of a normal distribution lies.

# %%
page.source(truncated_normal)

# %%
for name in ("glorot_uniform", "glorot_normal", "he_normal", "truncated_normal"):
    sample = np.array(INITIALIZERS[name]((100, 100)))
    print(f"{name:17} standard deviation {sample.std():.3f}, largest {abs(sample).max():.3f}")

# %% [markdown]
# The truncated normal was asked for a standard deviation of 0.05, and cutting off the tails leaves 0.044. The normal
# initializers of Glorot and He correct for that.
#
# ## Penalties (2 min)
#
# A **penalty** is a loss that depends only on a variable, and grows with the size of its numbers. You give one to a
# layer as its `kernel_regularizer`.

# %%
page.source(L1, L2)

# %%
heavy = Dense(1, kernel_initializer="ones", kernel_regularizer=L2(0.1))
heavy(np.ones((1, 3), "f4"))
heavy.losses

# %% [markdown]
# The penalty 0.1 · (1 + 1 + 1) = 0.3 will be added to the loss. (The output shows the float32 number nearest to 0.3.)
#
# ## Layers without variables (3 min)
#
# Many layers need no variable. Their `call` is one or two lines:

# %%
page.source(Activation, Flatten, Concatenate)

# %%
block = np.arange(8.0).reshape(2, 2, 2)
print(Flatten()(block).shape, Concatenate()([block, block]).shape, Activation("relu")([-1.0, 1.0]).numpy())

# %% [markdown]
# ## A layer that drops numbers (2 min)
#
# **Dropout** ([Srivastava et al., 2014](https://jmlr.org/papers/v15/srivastava14a.html)) sets some of its inputs to
# zero at random. It needs one variable for the state of its random numbers, so that a compiled step draws new ones each
# time.

# %%
page.source(Dropout)

# %%
dropout, ones = Dropout(0.5, seed=1), np.ones((2, 4), "f4")
print(dropout(ones, training=True).numpy(), dropout(ones, training=True).numpy(), dropout(ones).numpy(), sep="\n")

# %% [markdown]
# In training some numbers become 0 and the others are doubled, so that the mean stays about 1. The second call drops
# other numbers. Outside of training nothing changes.
#
# ## A layer that standardises (5 min)
#
# **Batch normalization** ([Ioffe and Szegedy, 2015](https://arxiv.org/abs/1502.03167)) standardises its inputs inside
# the net. In training it uses the mean and the variance of the batch. It also keeps a moving average of both, for use
# after training. So it has two pairs of variables. One pair is trained; the other only stores the moving averages.

# %%
page.source(BatchNormalization)

# %%
normal = BatchNormalization()
measured = np.array([[170.0, 3.1], [180.0, 3.9], [205.0, 4.4]], "f4")
print(normal(measured, training=True).numpy().round(3))
print(*(v.numpy().round(3) for v in normal.moving))

# %% [markdown]
# Each column of the batch now has mean 0. The moving means started at 0 and have gone one hundredth of the way to 185
# and 3.8. The moving variances started at 1 and have gone as far towards the variances of the batch.
#
# ## A layer that looks up (2 min)
#
# The last layer is a lookup table: for each whole number it returns one row of the table. The rows are trained like any
# weights.

# %%
page.source(Embedding)

# %% [markdown]
# Four numbers go in, and four rows of two numbers come out:

# %%
words = Embedding(5, 2)
print(words(np.array([[0, 4], [4, 4]])).shape, words)

# %% [markdown]
# ## Exercises (10 min)
#
# Fill in the stub, run it, and read what the check says. The check makes objects of your class and tests them in
# float64 and in float32, on square and on other shapes.
#
# ### 04-1 · A layer
#
# `Scale` multiplies each column by its own number. The numbers are trained, and start at 1.
#
# ```
#   x[batch, columns]       scale[columns]        y[batch, columns]
#   ┌ 1  2  3 ┐                                   ┌ 10  0  -3 ┐
#   └ 4  5  6 ┘        ·    [ 10  0  -1 ]    =    └ 40  0  -6 ┘
# ```
#
# (About 5 lines. Hint: the shape that `build` receives is the shape of x; `"ones"` is an initializer.)

# %%
from course.reader import exercises

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
# If it is right, print `Scale().recreate()`. Where does this method `recreate` come from, and what is it useful for?
#

# %% [markdown]
# # 05 more · A graph of layers
#
# **In this notebook a model is a graph of layers, with paths that part and join, and you write your own training
# step.**
#
# You need notebook 05 (`Sequential`, `fit`, `train_step`) for this. The code is that of
# `levels_more/high_level/functional.py`. Nothing is exported.

# %%
from course import build, figures

build.watch("more/05_functional")
figures.you_are_here(5)

# %% tags=["hide-input"]
# The imports of this notebook: you may skip this cell.
from course import tasks
from course.reader.figures import page
from levels_more.high_level import Model, Sequential
from levels_more.high_level.functional import Call, Input, Placeholder, in_order
from levels_more.low_level import constant
from levels_more.mid_level import RANDOM, Adam, Dense, Layer

task = tasks.linear()

# %% [markdown]
# ## Three ways to a model (16 min)
#
# The first way is `Sequential`, a row of layers. That is not enough for a model with two inputs, or with a path around
# a layer. For such a model you say which layer gets which output. You start from an `Input`, a placeholder for numbers
# that come later. A layer that is called on a placeholder records the call, as level 3's tracer records ops. (The
# `Layer` of `levels_more` checks whether its argument has a method `through`, and if so, calls it.) This is the second
# way, the **functional** one.

# %%
page.source(Placeholder, Input, Call)

# %% [markdown]
# Walking back from the outputs to the inputs gives the calls in an order in which they can be made:

# %%
page.source(in_order)

# %% [markdown]
# The model makes these calls one after another, and stores each result under its placeholder. (The rest of the class
# gives each output its own loss, and gives names to inputs and outputs.)

# %%
page.source(Model.draw, Model.call)

# %% [markdown]
# As an example, here is a **residual** net ([He et al., 2016](https://doi.org/10.1109/CVPR.2016.90)): the output of the
# second layer is added to its input. `Add` is a layer of our own.


# %%
class Add(Layer):
    def call(self, x):
        return x[0] + x[1]


x = Input((2,))
hidden = Dense(8, "relu")(x)
more = Add()([hidden, Dense(8, "relu")(hidden)])
residual = Model(x, Dense(1, "sigmoid")(more))
residual.summary()

# %% [markdown]
# The third way is a **subclass**: you write `call`, and the rest is inherited. With the weights of the graph it gives
# the same predictions:


# %%
class Residual(Model):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.top = Dense(8, "relu"), Dense(8, "relu"), Dense(1, "sigmoid")

    def call(self, x):
        hidden = self.first(x)
        return self.top(hidden + self.second(hidden))


own = Residual()
own.build((None, 2))
own.set_weights(residual.get_weights())
points = constant([[1.0, 2.0], [-3.0, 8.0]])
print(bool((residual.predict(points) == own.predict(points)).all()))

# %% [markdown]
# All three are trained by the same `fit`, which calls the method `train_step` for each step. So a model that needs
# another kind of training overrides that one method. Here the labels 0 and 1 become 0.05 and 0.95, so that too much
# certainty raises the loss (**label smoothing**, [Szegedy et al., 2016](https://doi.org/10.1109/CVPR.2016.308)).
# `RANDOM` is level 4's source of starting weights. With the same seed, both models start from the same weights.


# %%
class Careful(Sequential):
    def train_step(self, x, y):
        return super().train_step(x, 0.9 * y + 0.05)


data = tasks.rings()
for kind in (Sequential, Careful):
    RANDOM.seed(1)
    net = kind([Dense(16, "relu"), Dense(1, "sigmoid")])
    net.compile(Adam(0.02), "binary_crossentropy")
    net.fit(data.x, data.y, epochs=20, verbose=0, seed=1)
    share = (net.predict(data.x_test) > 0.99).mean()
    print(f"{kind.__name__:10} gives {share:.0%} of the test points a probability above 99 %")

# %% [markdown]
# # 05 more · A graph of layers
#
# **In this notebook a model is no longer a row of layers: paths part and join, and a step is your own.**
#
# It needs notebook 05 (`Sequential`, `fit`, `train_step`) and takes `levels_more/high_level/functional.py` apart. Nothing is
# exported. (The cell
# after the next one is folded. It imports what is used below.)

# %%
from course import build, figures

build.watch("more/05_functional")
figures.you_are_here(5)

# %% tags=["hide-input"]
from course import tasks
from course.figures import page
from levels_more.high_level import Model, Sequential
from levels_more.high_level.functional import Call, Input, Placeholder, in_order
from levels_more.low_level import constant
from levels_more.mid_level import RANDOM, Adam, Dense, Layer

task = tasks.linear()

# %% [markdown]
# ## Three ways to a model (17 min)
#
# The first way is `Sequential`, a row of layers. It is not enough for a model with two inputs, or with a path around a layer. So
# say what flows where, with something that stands for the numbers to come: an `Input`. A layer that is called on it notes the call
# down, as level 3's tracer notes down ops. (The `Layer` of `levels_more` looks for the method `through` on what it is given, and
# calls that.) This is the second way, the **functional** one.

# %%
page.source(Placeholder, Input, Call)

# %% [markdown]
# The way back from the outputs to the inputs gives the calls in an order in which they can be made:

# %%
page.source(in_order)

# %% [markdown]
# The model makes these calls one after another, and keeps what each gave under the placeholder that stood for it. (The rest of the
# class gives each output a loss of its own, and inputs and outputs their names.)

# %%
page.source(Model.draw, Model.call)

# %% [markdown]
# A **residual** net ([He et al., 2016](https://doi.org/10.1109/CVPR.2016.90)): the second layer adds to what the first one
# found. `Add` is a layer of our own.


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
# The third way is a **subclass**: write `call`, and everything else is there. With the graph's weights it gives the same:


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
# All three are trained by the same `fit`, and `fit` takes its step from the method `train_step`. So a model that wants
# to be trained in another way overrides that one method. Here the labels 0 and 1 become 0.05 and 0.95, so that
# being too sure costs the model something
# (**label smoothing**, [Szegedy et al., 2016](https://doi.org/10.1109/CVPR.2016.308)). `RANDOM` is level 4's source of starting
# weights: with the same seed, both models start alike.


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

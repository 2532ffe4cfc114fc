# %% [markdown]
# # Trail 4 · Mid-level API
#
# **In this notebook you build a layer, a loss and an optimizer, and with them you train the line and predict the mass
# of penguins.**
#
# In notebook 3 the step contained the name of each weight, `w` and `b`. A neural network, or **net**, has many more
# weights. So a framework makes a model of parts, and each part keeps its own weights.

# %% tags=["hide-input"]
# setup: run me
from course import build, figures, tasks
from course.reader import checks, trail

build.watch("trail/4_mid_level")
figures.you_are_here(4)

# %% [markdown]
# ## A surprise to begin with (5 min)
#
# Five things cost 2, 2, 2, 2 and 92. A model predicts the same number for all five. It is trained until its mean
# squared error is as small as possible.

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "4-mean",
    "Which number does the model give?",
    choices=[
        "2, which is right for four of the five",
        "20",
        "47, halfway between 2 and 92",
    ],
)

# %%
import numpy as np

cost = np.array([2.0, 2.0, 2.0, 2.0, 92.0])
for guess in (2, 20, 47):
    error = guess - cost
    squared = np.mean(error**2)
    size = np.mean(abs(error))
    print(f"{guess:2}: mean squared error {squared:6.1f}, mean size {size:4.1f}")

# %%
checks.answer_to("4-mean")

# %% [markdown]
# By the mean size of its errors, 2 would be best. So the **loss** decides what a model learns. In a framework the loss
# is a part of its own, so that you can replace it.
#
# ## A layer (7 min)
#
# A **layer** has one or more **units**. Each unit is a model like the line, with a column of weights of its own. A
# matrix holds the weights of all units, one column for each. Keras calls this matrix the `kernel`. (The kernels of
# level 2 are programs.) Write what a layer computes: the matrix product of rows and kernel, plus the bias. (The
# docstring gives the shape of each array.)


# %%
#| blank affine
def affine(x, kernel, bias):
    """x[batch, inputs], kernel[inputs, units], bias[1, units] -> [batch, units]"""
    ...  # 1 line


# %% [markdown]
# <details><summary>Hint</summary>Python has an operator for the matrix product: <code>@</code>.</details>
# <details><summary>Solution</summary>
#
# ```python
# def affine(x, kernel, bias):
#     return x @ kernel + bias
# ```
# </details>
#
# The layer makes its kernel and bias when it sees its first input, because only then is their size known. Afterwards it
# keeps them.

# %%
from levels.low_level import GradientTape, Variable, constant, function, reduce_mean


class Layer:
    def __init__(self, units):
        self.units = units
        self.variables = []

    def __call__(self, x):
        if not self.variables:
            kernel = Variable(np.zeros((x.shape[1], self.units)))
            bias = Variable(np.zeros((1, self.units)))
            self.variables = [kernel, bias]
        return affine(x, *self.variables)


line = tasks.linear()
layer = Layer(1)
print(layer(line.x[:3]).numpy().ravel())
print([variable.shape for variable in layer.variables])

# %% [markdown]
# All weights start at zero. That is good enough for one unit. (Several units that start equal would stay equal.)
#
# ## A loss and an optimizer (10 min)
#
# Our loss will be the mean of the squared errors. For each prediction, take its difference from the true value, and
# multiply the difference by itself.


# %%
#| blank squared_error
def squared_error(y_true, y_pred):
    """(y_pred - y_true)², number by number."""
    ...  # 1 to 2 lines


# %% [markdown]
# <details><summary>Hint</summary>Keep the difference in a variable. Then multiply it by itself with
# <code>*</code>.</details>
# <details><summary>Solution</summary>
#
# ```python
# def squared_error(y_true, y_pred):
#     error = y_pred - y_true
#     return error * error
# ```
# </details>
#
# An **optimizer** says how the weights move. You wrote one in notebook 1, `descend`. Here it takes its arguments in
# another order. (Frameworks call it SGD, stochastic gradient descent.)


# %%
#| blank descend
def descend(rate, dw, w):
    """Where w is after one step against its gradient dw."""
    ...  # 1 line


# %% [markdown]
# <details><summary>Hint</summary><code>w</code> moves by <code>rate * dw</code>. In which direction?</details>
# <details><summary>Solution</summary>
#
# ```python
# def descend(rate, dw, w):
#     return w - rate * dw
# ```
# </details>
#
# This function trains any part that has `variables`. It contains no name of a weight, because the part lists them:


# %%
def train(layer, task):
    def step(x, y):
        with GradientTape() as tape:
            loss = reduce_mean(squared_error(y, layer(x)))
        gradients = tape.gradient(loss, layer.variables)
        for w, dw in zip(layer.variables, gradients):
            w.assign(descend(task.learning_rate, dw, w))
        return loss

    x, y = constant(task.x), constant(task.y)
    return function(step).over(x, y, task.batches).numpy()


for variable, start in zip(layer.variables, line.weights):
    variable.assign(constant(start))
losses = train(layer, line)
print(f"first loss {losses[0]:.1f}\nlast loss {losses[-1]:.4g} ({losses[-1].hex()})")

# %% [markdown]
# These are the bits of notebooks 1 to 3.
#
# ## The mass of a penguin (6 min)
#
# Here are 342 real penguins ([Gorman, Williams and Fraser, 2014](https://doi.org/10.1371/journal.pone.0090081)). We
# know the length and the depth of a penguin's bill, and the length of its flippers. What is its mass in kilograms? The
# measures are **standardised**: each has mean 0 and standard deviation 1, so that the model's weights can be compared.

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "4-flippers",
    "Which of the three measures gets the largest weight?",
    choices=[
        "the length of the bill",
        "the depth of the bill",
        "the length of the flippers",
    ],
)

# %%
penguins = tasks.penguins_mass()
layer = Layer(1)
layer(penguins.x[:1])  # its first input, so that it has variables
losses = train(layer, penguins)
for name, weight in zip(penguins.names, layer.variables[0].numpy().ravel()):
    print(f"{name:18} {weight:5.2f}")
last = losses[-100:].mean()
print(f"first loss {losses[0]:.1f}, mean of the last hundred {last:.2f}")

# %%
checks.answer_to("4-flippers")

# %% [markdown]
# The root of a loss of 0.16 is 0.4, so a usual error is about 0.4 kg.
#
# You can now build a model of parts, say what each part is for, and train it on other data.
#
# **A good place to stop.** A part owns its variables, so a training loop needs no names of weights.
#
# Next: [5 · High-level API](5_high_level.ipynb). The longer notebook of this level is
# [04_mid_level](../04_mid_level.ipynb), with other optimizers and a race between them, and with data that arrives in
# batches.

# %%
trail.take_along()

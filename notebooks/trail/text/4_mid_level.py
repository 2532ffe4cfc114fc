# %% [markdown]
# # Trail 4 · Mid-level API
#
# **In this notebook a part owns its variables, and three parts of yours train the line, and then penguins.**
#
# The last notebook ended with a tape that finds every gradient. But the weights `w` and `b` lay about loose, and the step had to name
# each of them. A net has dozens.

# %%
from course import build, figures, tasks
from course.practice import checks, trail

build.watch("trail/4_mid_level")
figures.you_are_here(4)

# %% [markdown]
# ## A surprise to begin with (5 min)
#
# Do penguins with deeper bills weigh more? We fit a line through all 342 of them, mass over bill depth. Then we do the same
# for the Adelies alone, for the Chinstraps and for the Gentoos.

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "Which signs have the slopes?",
    choices=[
        "plus for all penguins, plus in each species",
        "plus for all penguins, minus in some species",
        "minus for all penguins, plus in each species",
        "minus for all penguins, minus in some species",
    ],
    answer="minus for all penguins, plus in each species",
    because="Within a species a larger bird has a larger bill. But Gentoos, the heaviest of the three, have the shallowest "
    "bills, and a line through all penguins runs down from them to the others.",
)

# %%
import numpy as np

birds = tasks.read("penguins.csv", ("species", "bill_depth_mm", "body_mass_g"), (str, str, str))
birds = [bird for bird in birds if "NA" not in bird]
species = np.array([name for name, _, _ in birds])
depth, mass = np.array([[float(d), float(m)] for _, d, m in birds]).T
for group in ("all", "Adelie", "Chinstrap", "Gentoo"):
    rows = species != "" if group == "all" else species == group
    print(f"{group:10} {np.polyfit(depth[rows], mass[rows], 1)[0]:7.1f} g per mm of bill depth")

# %% [markdown]
# A model that is not told the species takes its effect for one of the bill ([Simpson's
# paradox](https://doi.org/10.1111/j.2517-6161.1951.tb00088.x)). To tell it, the model needs more columns, and each column a
# weight. So let us first have parts that look after their own weights.

# %% [markdown]
# ## A layer (7 min)
#
# A **layer** computes the formula of the line, for any number of **units**: a unit is one column of the `kernel`, and makes one number
# of all that go in. Rows times columns, and the bias last:


# %%
#| blank affine
def affine(x, kernel, bias):
    """The sums of a layer, [batch, units], from x[batch, inputs], kernel[inputs, units] and bias[1, units]."""
    ...  # 1 line


# %% [markdown]
# <details><summary>Hint</summary>One operator of Python stands for the matrix product: <code>@</code>.</details>
# <details><summary>Solution</summary>
#
# ```python
# def affine(x, kernel, bias):
#     return x @ kernel + bias
# ```
# </details>
#
# The layer makes kernel and bias when it first sees an input, because only then is their size known. From then on they are its
# own.

# %%
from levels.low_level import GradientTape, Variable, constant, function, reduce_mean


class Layer:
    built = False

    def __init__(self, units):
        self.units = units

    def __call__(self, x):
        if not self.built:
            self.kernel, self.bias = Variable(np.zeros((x.shape[1], self.units))), Variable(np.zeros((1, self.units)))
            self.built = True
        return affine(x, self.kernel, self.bias)

    variables = property(lambda self: [self.kernel, self.bias])


line, layer = tasks.linear(), Layer(1)
print(layer(line.x[:3]).numpy().ravel(), layer.kernel.shape)

# %% [markdown]
# (Zeros will do for a line. Units that start equal stay equal for ever: the layers of a net draw their weights at random.)

# %% [markdown]
# ## A loss and an optimizer (11 min)
#
# A **loss** says how wrong: here the mean of the squared errors. Take the difference, and multiply it by itself, number by number.


# %%
#| blank squared_error
def squared_error(y_true, y_pred):
    """(y_pred - y_true)², number by number."""
    ...  # 1 to 2 lines


# %% [markdown]
# <details><summary>Hint</summary>First the difference; then times itself.</details>
# <details><summary>Solution</summary>
#
# ```python
# def squared_error(y_true, y_pred):
#     error = y_pred - y_true
#     return error * error
# ```
# </details>
#
# An **optimizer** says what to do about it: where is `w` after one step against its gradient? You have written it before, for
# registers. Now it is for tensors of any shape, and `w` comes last.


# %%
#| blank descend
def descend(rate, dw, w):
    """Where w is after one step against its gradient dw."""
    ...  # 1 line


# %% [markdown]
# <details><summary>Hint</summary><code>rate * dw</code> is how far.</details>
# <details><summary>Solution</summary>
#
# ```python
# def descend(rate, dw, w):
#     return w - rate * dw
# ```
# </details>
#
# Now a training for any part that owns its variables. The step names none of them, and asks the part for its list:


# %%
def train(layer, x, y, batches, rate):
    def step(rows, target):
        with GradientTape() as tape:
            loss = reduce_mean(squared_error(target, layer(rows)))
        for w, dw in zip(layer.variables, tape.gradient(loss, layer.variables)):
            w.assign(descend(rate, dw, w))
        return loss

    return function(step).over(constant(x), constant(y), batches).numpy()


for variable, start in zip(layer.variables, line.weights):
    variable.assign(constant(start))
losses = train(layer, line.x, line.y, line.batches, line.learning_rate)
print(f"last loss {losses[-1]:.4g} ({float(losses[-1]).hex()})")

# %% [markdown]
# Three parts, three lines of yours, and the same bits for the fourth time.

# %% [markdown]
# ## The penguins, told (5 min)
#
# A species is a word. It gets a column of its own, which is 1 in the rows of its birds and else 0. Here is a layer over the depth
# alone, and one over the depth and three such columns:

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "The second layer has four weights. Which sign will that of the bill's depth have?",
    choices=["minus, as for all penguins", "plus, as in each species", "it comes to 0"],
    answer="plus, as in each species",
    because="What the species does to the mass goes into the species' own weights. For the depth is left what it does within a "
    "species.",
)

# %%
told = (species[:, None] == ["Adelie", "Chinstrap", "Gentoo"]).astype(float)
centred = depth[:, None] - 17.0  # counted from a middling bill
every_row = np.tile(np.arange(342), (3000, 1))
for name, x in {"not told": centred, "told the species": np.hstack([centred, told])}.items():
    bill = Layer(1)
    bill(x)
    train(bill, x, mass[:, None], every_row, 0.1)
    print(f"{name:17} {bill.kernel.numpy()[0, 0]:7.1f} g per mm of bill depth")

# %% [markdown]
# The sign has turned: a millimetre more goes with a quarter of a kilogram more. Your parts took four columns as they took two.
#
# **A good place to stop.** A part owns its variables: a layer, a loss and an optimizer, and nobody has to name a weight.
#
# Next: [5 · High-level API](5_high_level.ipynb). The whole level: [04_mid_level](../04_mid_level.ipynb), with momentum and Adam, their
# race, and data that arrives in batches.

# %%
trail.take_along()

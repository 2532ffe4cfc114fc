# %% [markdown]
# # 04 more · Momentum and curvature
#
# **In this notebook a step remembers the one before, and the shape of the loss says how fast training can be.**
#
# You need notebook 04 for this (`Optimizer`, `update`, the race). The code is that of
# `levels_more/mid_level/optimizers.py`.

# %%
from course import build, tasks
from course.reader.figures import page, race, widgets

build.watch("more/04_optimizers")

# %% tags=["hide-input"]
# The imports of this notebook: you may skip this cell.
import numpy as np

from levels_more.low_level import GradientTape, Variable, constant, function
from levels_more.mid_level import SGD, Adam, Dense, MeanSquaredError, Optimizer, optimizers
from levels_more.mid_level.optimizers import AdamW, ExponentialDecay, PiecewiseConstantDecay, RMSprop, shorten

# %% [markdown]
# ## Momentum (4 min)
#
# With **momentum** an optimizer adds a part of its last step to the next one. Steps in the same direction add up, to at
# most 1 / (1 - momentum) times their length. Steps to and fro cancel ([Polyak,
# 1964](https://doi.org/10.1016/0041-5553%2864%2990137-5)). (Here the learning rate is part of the velocity, as in
# Keras. PyTorch multiplies by it afterwards, which makes
# [a difference when the rate changes](05_differences.ipynb#momentum_and_a_new_rate).)
#
# Nesterov's form takes the gradient where the velocity is about to lead, and not where w is now ([Sutskever et al.,
# 2013](https://proceedings.mlr.press/v28/sutskever13.html)). The core's `SGD` has no momentum. Its subclass in
# `levels_more.mid_level` has:

# %%
page.source(optimizers.SGD)

# %%
w, sgd = Variable(np.array(1.0)), SGD(0.1, momentum=0.5)
for _ in range(3):
    sgd.apply_gradients([(w * 2.0, w)])  # the gradient of w²
    print(f"w = {float(w):.4f}, v = {float(sgd.slots[0]['v']):.4f}")

# %% [markdown]
# These steps minimise w². The first step is that of plain SGD, 0.1 · 2 = 0.2. The second would be 0.1 · 1.6 = 0.16, and
# half of the first is added: 0.26. In the third step the gradient is smaller, and the velocity begins to fall.
#
# ## How fast can training be? (7 min)
#
# In notebook 04 the loss was a parabola over one weight, and its curvature c limited the rates: training converges
# below 2/c. Now we look at all directions at once. The task is to predict the penguins' masses from three measures, in
# mm as they are in the table:

# %%
rows = np.array([row[:4] for row in tasks.penguins() if None not in row[:4]])
millimetres, kilograms = rows[:, :3], rows[:, 3:] / 1000
model, mean_squared, sgd = Dense(1, kernel_initializer="zeros"), MeanSquaredError(), SGD(0.001)
model(millimetres)  # the first call makes its variables


@function
def step(x, y):
    with GradientTape() as tape:
        loss = mean_squared(y, model(x))
    sgd.apply_gradients(zip(tape.gradient(loss, model.variables), model.variables))
    return loss


losses = step.over(millimetres, kilograms, [range(len(kilograms))] * 100).numpy()
print(*(f"{loss:.3g}" for loss in losses[:5]), "…", losses[-1])

# %% [markdown]
# Each step multiplies the loss by about 7,160. Over four weights the loss is a bowl. In which direction is it steepest?
# The gradient can tell us. Start at the lowest point, go a small way in some direction, and take the gradient there.
# This gradient is the curvature times the way, so it leans towards the steeper directions. Now use it as the next
# direction, and repeat. Every round turns the direction further towards the steepest one. (This is called power
# iteration, and the direction that it ends with is an eigenvector.)

# %%
columns = np.column_stack([millimetres, np.ones(len(rows))])


def gradient_at(way):
    """The gradient of the mean squared error at this distance `way` from the lowest point."""
    return 2 * columns.T @ (columns @ way) / len(columns)


way = np.ones(4)
for _ in range(5):
    gradient = gradient_at(way)
    print(
        f"curvature {np.linalg.norm(gradient) / np.linalg.norm(way):,.0f}",
        (gradient / np.linalg.norm(gradient)).round(3),
    )
    way = gradient / np.linalg.norm(gradient)

# %% [markdown]
# The steepest direction is nearly that of the flipper, the longest of the three measures, and its curvature is 85,600.
# That explains the growth: (1 - 0.001 · 85,600)² is about 7,160. The flattest direction can be found in a similar way.
# NumPy computes both curvatures at once:


# %%
def curvatures(x):
    """The smallest and the largest curvature of the mean squared error of x[n, inputs] @ w + b."""
    columns = np.column_stack([x, np.ones(len(x))])
    return np.linalg.eigvalsh(2 * columns.T @ columns / len(x))[[0, -1]]


# %% [markdown]
# We compute them for the raw measures and for the standardised ones. To **standardise** a column, subtract its mean and
# divide by its standard deviation.

# %%
depth = millimetres[:, 1:2]
depths = {"raw": depth, "standardised": tasks.standardise(depth, depth)[0]}
three = {"raw": millimetres, "standardised": tasks.standardise(millimetres, millimetres)[0]}
print("                              flattest  steepest     ratio  largest rate")
for title, columns in {"three measures": three, "bill depth alone": depths}.items():
    for name, x in columns.items():
        flat, steep = curvatures(x)
        print(f"{title:16} {name:12} {flat:9.2g} {steep:9.3g} {steep / flat:9.3g} {2 / steep:13.2g}")

# %% [markdown]
# The ratio of the two is the **condition number**. For raw measures it is huge, for two reasons. First, the inputs of
# the weights are tens or hundreds of millimetres, but the input of the bias is 1. Second, no measure is near zero, so a
# smaller bias nearly cancels a larger weight. Standardising removes both reasons.
#
# ## On the map (13 min)
#
# A bowl over one weight and one bias can be drawn. We use the depth of the bill as the only input, because notebook 04
# found the best slope: -192 g per mm. All rows go into each step, so nothing is random. Besides the losses, `run`
# returns w and b before each update: they are the path on the map.


# %%
def run(optimizer, x, y, updates=1000):
    """Fit x @ w + b, from zero. Return losses [updates + 1] and the path [updates + 1, 2] of (w, b), with the start."""
    model = Dense(1, kernel_initializer="zeros")
    model(x)

    @function
    def step(x, y):
        w, b = map(constant, model.variables)
        with GradientTape() as tape:
            loss = mean_squared(y, model(x))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.variables), model.variables))
        return loss, w, b

    all_rows = np.broadcast_to(np.arange(len(x)), (updates + 1, len(x)))
    losses, w, b = step.over(x, y, all_rows)
    return losses.numpy(), np.column_stack([w.numpy(), b.numpy()])


# %%
losses, path = run(SGD(0.002), depth, kilograms)
print(f"loss {losses[0]:.3f}, then {losses[-1]:.3f}; slope {1000 * path[-1, 0]:+.0f} g per mm of bill depth")

# %% [markdown]
# The rate was more than half of the largest possible one. Still, after a thousand updates not even the sign of the
# slope is that of the best line. (It happens to be the slope within the Adelies.) SGD reached the floor of the
# valley in two updates, and has moved slowly along it since. In a bowl, the right momentum reduces the number of steps
# from about the condition number to about its square root (Polyak, in the paper above). **Can another optimizer do
# better?** Try rates from 0.001 to 1 on the raw millimetres; the limit for SGD is 0.0033. Then set `inputs` to
# standardised.
#
# The marks on the map are the first, the tenth, the hundredth and the thousandth update. Inside the yellow ellipse the
# loss is within 1 % of the best one. An optimizer has arrived when its path stays inside. (The map of the raw inputs is
# stretched sideways. With equal scales its valley would be 152 times as long as wide; 152 is the square root of the
# condition number.)

# %%
RATES = [m * 10**-k for k in (4, 3, 2, 1) for m in (1, 2, 5)] + [1]


def draw(inputs, rate, momentum):
    x = depths[inputs]
    racers = {"SGD": SGD(rate), f"momentum {momentum}": SGD(rate, momentum), "Adam": Adam(rate)}
    return race.drawn(inputs, rate, x, kilograms, {name: run(racer, x, kilograms) for name, racer in racers.items()})


widgets.explore(
    draw,
    "The optimizer race: SGD, momentum and Adam on the loss of a line through the penguins' masses over bill depths.",
    inputs=["raw", "standardised"],
    rate=RATES,
    momentum=[0, 0.5, 0.9, 0.99],
    start={"rate": 0.002, "momentum": 0.9},
)

# %% [markdown]
# When all three use the same rate, it is wrong for at least one of them. To be fair, we now give each optimizer the
# best of these rates. (Where the table says "none", none of the rates is enough.)

# %%
momentum = {f"momentum {m}": lambda rate, m=m: SGD(rate, m) for m in (0.9, 0.99)}
race.fewest(run, {"SGD": SGD, **momentum, "Adam": Adam}, depths, kilograms, RATES)

# %% [markdown]
# How long would SGD take on the raw millimetres? Each update multiplies the distance to the best loss by (1 - rate·c)²,
# where c is the smallest curvature. The next cell prints the number of updates from this formula, and the measured
# number:

# %%
best, (flat, _) = race.valley(depth, kilograms).loss, curvatures(depth)
formula = 1000 + np.log(0.01 / (losses[-1] / best - 1)) / np.log((1 - 0.002 * flat) ** 2)
print(f"formula {formula:,.0f}, measured {race.arrival(run(SGD(0.002), depth, kilograms, 50_000)[0], best):,}")

# %% [markdown]
# It takes about 48,000 updates, and the formula gives the same number. Momentum 0.99 is 57 times as quick, and Adam 146
# times. Standardising, a single line of code, saves all updates but one. In a round bowl the steepest way down leads
# straight to the lowest point, so at rate 1/c = 0.5 plain SGD arrives after one update.
#
# The bowl of the three measures is not perfectly round (its condition number is 8.71), because long flippers and long
# bills go together. And in a deep net the inputs of an inner layer cannot be scaled beforehand. There Adam helps,
# because it measures each weight's gradient on its own scale. Batch normalization helps, too (see `more/04_layers`).
#
# **A good place to stop.** Momentum and Adam are quick in a long valley, and scaling makes the valley round.
#
# ## More optimizers, schedules, clipping (10 min)
#
# RMSprop ([Hinton, 2012](https://www.cs.toronto.edu/~tijmen/csc321/slides/lecture_slides_lec6.pdf)) is Adam without the
# mean of the gradients and without the correction for the start. AdamW ([Loshchilov and Hutter,
# 2019](https://arxiv.org/abs/1711.05101)) also shrinks each weight a little in every step.

# %%
page.source(RMSprop, AdamW)

# %% [markdown]
# A **schedule** is a learning rate that depends on the step. Any function of the step will do; these two have names.

# %%
page.source(ExponentialDecay, PiecewiseConstantDecay)

# %%
halves, stairs = ExponentialDecay(0.1, 100, 0.5), PiecewiseConstantDecay([100, 200], [0.1, 0.01, 0.001])
for step in map(constant, (0.0, 100.0, 200.0, 300.0)):
    print(f"step {float(step):3.0f}: {float(halves(step)):.4f} {float(stairs(step)):.4f}")

# %% [markdown]
# The first rate halves every hundred steps. The second falls to a tenth after step 100, and again after step 200.
#
# A single gradient that is far too long can undo an hour of training. **Clipping** shortens such a gradient and keeps
# its direction. It can shorten the gradient of each variable separately (`clipnorm`) or all of them together
# (`global_clipnorm`) ([Pascanu et al., 2013](https://proceedings.mlr.press/v28/pascanu13.html)).

# %%
page.source(shorten)

# %%
long = [constant([3.0]), constant([4.0])]
for limit in (1.0, 10.0):
    print(limit, [x.numpy() for x in shorten(long, limit)])

# %% [markdown]
# Together the two gradients have length 5. To bring that down to 1, each is divided by 5. A limit of 10 changes
# nothing.
#
# ## Exercises (10 min)
#
# ### 04-3 · An optimizer that looks at signs only
#
# Adam's first step has the same length for a small gradient as for a large one. This optimizer does that in every step:
# each weight moves up or down by exactly the rate. It moves against the sign of m, a moving mean of the gradients. In
# m, older gradients fade by a tenth per step. ([Bernstein et al.,
# 2018](https://proceedings.mlr.press/v80/bernstein18a.html) call it Signum.)
#
# ```
# dw              4     -1     -1     -1     -1     -1     -1
# m            0.40   0.26   0.13   0.02  -0.08  -0.17  -0.26     m ← 0.9·m + 0.1·dw
# w moves by  -rate  -rate  -rate  -rate  +rate  +rate  +rate
# ```
#
# Where m is 0, nothing moves. (About 5 lines. Hint: `cast(m > 0.0, m.dtype)` is 1 where m is positive, else 0. `memory`
# names what the optimizer stores for each variable, as in `RMSprop`.)

# %%
from course.reader import exercises

exercises.begin("04-3")


class SignDescent(Optimizer):
    """m ← 0.9·m + 0.1·dw; w ← w - rate·sign(m)"""

    memory = ("m",)

    def update(self, rate, dw, w, m):
        """The new w and the new m."""
        return ...


exercises.check("04-3", SignDescent)

# %% [markdown]
# When it is right, let it take part in the race: in `draw`, put it in Adam's place (the map has three colours), and run
# that cell again. On standardised inputs, compare the rates 0.01 and 0.05. Why does it settle with one rate and not
# with the other? (How long is its last step?)
#

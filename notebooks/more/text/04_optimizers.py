# %% [markdown]
# # 04 more · Momentum and curvature
#
# **In this notebook a step remembers the one before, and a valley says how fast anybody can be.**
#
# Needs notebook 04: `Optimizer`, `update`, the race. It takes `levels_more/mid_level/optimizers.py` apart.

# %%
from course import build, tasks
from course.figures import page, race, widgets

build.watch("more/04_optimizers")

# %% tags=["hide-input"]
import numpy as np

from levels_more.low_level import GradientTape, Variable, constant, function
from levels_more.mid_level import SGD, Adam, Dense, MeanSquaredError, Optimizer, optimizers
from levels_more.mid_level.optimizers import AdamW, ExponentialDecay, PiecewiseConstantDecay, RMSprop, shortened

# %% [markdown]
# ## Momentum (4 min)
#
# With **momentum** an optimizer keeps a part of its last step: steps that agree add up, to 1 / (1 - momentum) times their length,
# and steps that go to and fro cancel ([Polyak, 1964](https://doi.org/10.1016/0041-5553%2864%2990137-5)). (Here the rate is part
# of the velocity, as in Keras. PyTorch multiplies by it afterwards, which makes a difference when the rate changes.) Nesterov's
# form takes the gradient where the velocity is about to lead, not where w is now ([Sutskever et al.,
# 2013](https://proceedings.mlr.press/v28/sutskever13.html)). The core's `SGD` knows no momentum. That of
# `levels_more.mid_level`, a subclass, does:

# %%
page.source(optimizers.SGD)

# %%
w, sgd = Variable(np.array(1.0)), SGD(0.1, momentum=0.5)
for _ in range(3):
    sgd.apply_gradients([(w * 2.0, w)])  # the gradient of w²
    print(f"w = {float(w):.4f}, v = {float(sgd.slots[0]['v']):.4f}")

# %% [markdown]
# The lines above minimise w². The first step is plain SGD's, 0.1 · 2. The second would be 0.1 · 1.6, and half of the first
# comes on top: 0.26. In the third the gradient is smaller, and the velocity begins to fade.
#
# ## How fast can anybody be? (8 min)
#
# In notebook 04 the loss was a parabola over one weight, and its curvature c said which rates converge: below 2/c. Now to all
# directions at once. The penguins' masses from three measures, in mm as they stand in the table:

# %%
rows = np.array([row[:4] for row in tasks.penguins() if None not in row[:4]])
millimetres, kilograms = rows[:, :3], rows[:, 3:] / 1000
model, mean_squared, sgd = Dense(1, kernel_initializer="zeros"), MeanSquaredError(), SGD(0.001)
model(millimetres)  # now it has its variables


@function
def step(x, y):
    with GradientTape() as tape:
        loss = mean_squared(y, model(x))
    sgd.apply_gradients(zip(tape.gradient(loss, model.variables), model.variables))
    return loss


losses = step.over(millimetres, kilograms, [range(len(kilograms))] * 100).numpy()
print(*(f"{loss:.3g}" for loss in losses[:5]), "…", losses[-1])

# %% [markdown]
# Each step makes the loss 7,157 times as large. Over four weights the loss is a bowl. Which way is it steepest? Ask the bowl
# itself. Stand at its lowest point, go a small way in some direction, and look at the gradient there: it is the curvature times
# the way, and it points towards the steeper side. So take the gradient as the next direction, and again. Every round turns it
# further towards the steepest one. (This is called power iteration, and the direction that it ends with an eigenvector.)

# %%
columns = np.column_stack([millimetres, np.ones(len(rows))])


def gradient_at(way):
    """The gradient of the mean squared error, that far away from the lowest point."""
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
# The steepest direction is nearly that of the flipper, the longest of the three measures, and its curvature is 85,600. The growth
# is explained: (1 - 0.001 · 85,600)² is 7,157. The flattest direction is found in the same way with the gradient taken off, and
# NumPy knows both at once:


# %%
def curvatures(x):
    """The smallest and the largest curvature of the mean squared error of x[n, inputs] @ w + b."""
    columns = np.column_stack([x, np.ones(len(x))])
    return np.linalg.eigvalsh(2 * columns.T @ columns / len(x))[[0, -1]]


# %% [markdown]
# We ask for the raw measures, and for the same ones standardised. To **standardise**, subtract each column's mean and divide by
# its standard deviation.

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
# The ratio is the **condition number**. For raw measures it is huge, for two reasons: the bias sees ones where the
# weights see hundreds of millimetres, and no measure is near zero, so that a larger weight is nearly undone by a
# smaller bias. Standardising takes both reasons away.
#
# ## On the map (11 min)
#
# A bowl over one weight and one bias can be drawn. We take the depth of the bill: we know from notebook
# 04 that the best slope is -192 g per mm. All rows go into each step, so nothing is random. Beside each loss, `run` keeps
# w and b as they were before the update: that is the path on the map.


# %%
def run(optimizer, x, y, updates=1000):
    """Fit x @ w + b, from zero. Returns losses [updates + 1] and the path [updates + 1, 2] of (w, b), the start included."""
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
# A thousand updates at more than half of the largest rate, and the slope has not even the sign of the best one. (That it is
# the Adelies' slope is chance.) SGD fell to the floor of the valley in two updates, and crawls along it since. In a bowl, the
# right momentum brings the number of steps from the order of the condition number down to that of its square root (Polyak, in
# the paper above). **Who does better?** Try rates from 0.001 to 1 on the raw millimetres; SGD's limit is 0.0033. Then set
# `inputs` to standardised.
#
# Each mark on the map is an update: the first, the tenth, the hundredth and the thousandth. In the yellow ellipse the loss is
# within 1 % of the best, and to arrive is to stay there. (The map of the raw inputs is stretched sideways. At equal scales
# its valley would be 152 times as long as it is wide, the square root of the condition number.)

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
# At one rate for all, somebody is always at the wrong one. To be fair, each gets the best of these rates. (Where the table says
# "any", none of them is enough.)

# %%
momentum = {f"momentum {m}": lambda rate, m=m: SGD(rate, m) for m in (0.9, 0.99)}
race.fewest(run, {"SGD": SGD, **momentum, "Adam": Adam}, depths, kilograms, RATES)

# %% [markdown]
# How long would SGD take on the raw millimetres? Above the best loss, an update leaves a share of (1 - rate·c)², with c
# the flattest curvature. The formula, and the run:

# %%
best, (flat, _) = race.valley(depth, kilograms).loss, curvatures(depth)
formula = 1000 + np.log(0.01 / (losses[-1] / best - 1)) / np.log((1 - 0.002 * flat) ** 2)
print(f"formula {formula:,.0f}, measured {race.arrival(run(SGD(0.002), depth, kilograms, 50_000)[0], best):,}")

# %% [markdown]
# Some 48,000, and the formula has them all. Momentum 0.99 saves a factor of 57, Adam one of 146. Standardising, a single
# line, saves all but one: in a round bowl the steepest way down leads to the lowest point, and at rate 1/c = 0.5 plain SGD is
# there after one update.
#
# Three measures make no perfectly round bowl (8.71), because long flippers and long bills go together. And inside a
# deep net nobody can scale a layer's inputs beforehand. There Adam helps, which measures each weight's gradient on a scale
# of its own, and so does batch normalization (see `more/04_layers`).
#
# **A good place to stop.** Momentum and Adam are quick in a long valley, and scaling makes the valley round.
#
# ## More optimizers, schedules, clipping (11 min)
#
# RMSprop ([Hinton, 2012](https://www.cs.toronto.edu/~tijmen/csc321/slides/lecture_slides_lec6.pdf)) is Adam without the mean
# of the gradient and without the correction. AdamW ([Loshchilov and Hutter, 2019](https://arxiv.org/abs/1711.05101)) also lets
# the weights shrink by themselves.

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
# The first rate halves every hundred steps, the second goes down in stairs.
#
# A gradient that is far too long can undo an hour of training in one step. **Clipping** shortens it, and keeps its direction:
# each variable's alone (`clipnorm`) or all of them together (`global_clipnorm`)
# ([Pascanu et al., 2013](https://proceedings.mlr.press/v28/pascanu13.html)).

# %%
page.source(shortened)

# %%
long = [constant([3.0]), constant([4.0])]
print(shortened(long, 1.0), shortened(long, 10.0))

# %% [markdown]
# Together they have length 5. Brought down to 1 each is a fifth of what it was; a limit of 10 changes nothing.
#
# ## Exercises (10 min)
#
# ### 04-3 · An optimizer that looks at signs only
#
# Adam's first step is as long for a small gradient as for a large one. This optimizer keeps that up: each weight moves by the rate,
# down or up. Which way, a mean of the gradients decides, in which a gradient fades by a tenth with each step
# ([Bernstein et al., 2018](https://proceedings.mlr.press/v80/bernstein18a.html), there called Signum).
#
# ```
# dw              4     -1     -1     -1     -1     -1     -1
# m            0.40   0.26   0.13   0.02  -0.08  -0.17  -0.26     m ← 0.9·m + 0.1·dw
# w moves by  -rate  -rate  -rate  -rate  +rate  +rate  +rate
# ```
#
# Where m is 0, nothing moves. (About 5 lines. Hint: `cast(m > 0.0, m.dtype)` is 1 where m is positive, else 0; `memory` names
# what is remembered, as in `RMSprop`.)

# %%
from course.practice import exercises

exercises.begin("04-3")


class SignDescent(Optimizer):
    """m ← 0.9·m + 0.1·dw; w ← w - rate·sign(m)"""

    memory = ("m",)

    def update(self, rate, dw, w, m):
        """The new w and the new m."""
        return ...


exercises.check("04-3", SignDescent)

# %% [markdown]
# Send it into the race: in `draw`, let it start in Adam's place (the map has three colours), and run that cell again. On
# standardised inputs, compare the rates 0.01 and 0.05. Why does it settle with the one and not with the other? (How long is its
# last step?)
#

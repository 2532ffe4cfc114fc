# %% [markdown]
# # 03 more · More of the same kind
#
# **In this notebook you join, slice, select and cast tensors, and check every new gradient rule with a nudge.**
#
# It needs notebook 03: the door, `VJPS`, and how a nudge checks a rule. It takes `levels_more/low_level/ops.py` apart.
# Nothing is exported here.

# %%
import numpy as np

from course import build, figures
from course.reader import checks, exercises
from course.reader.figures import page
from levels_more.low_level import indexing, ops, vjps

build.watch("more/03_more_ops")
figures.you_are_here(3)

# %%
from levels_more.low_level import (
    VJPS,
    GradientTape,
    absolute,
    apply,
    arg_max,
    cast,
    concat,
    constant,
    cos,
    erf,
    function,
    maximum,
    minimum,
    nn,
    one_hot,
    reduce_max,
    reduce_min,
    reshape,
    sin,
    sqrt,
    tanh,
    transpose,
    where,
)

# %% [markdown]
# ## What other frameworks call it (1 min)
#
# This is how the two frameworks spell what you have built:
#
# | | TensorFlow | PyTorch | here |
# |---|---|---|---|
# | fixed numbers | `tf.constant` | `torch.tensor` | `constant`, `tensor` |
# | state | `tf.Variable`, `.assign` | `torch.nn.Parameter`, in place | `Variable`, `.assign` |
# | write down | `tf.GradientTape` | every tensor's `grad_fn` | `GradientTape` |
# | read back | `tape.gradient(loss, ws)` | `torch.autograd.grad(loss, ws)`, `loss.backward()` | all three |
# | stop | `tf.stop_gradient` | `.detach()` | `stop_gradient` |
# | join | `tf.concat` | `torch.cat` | `concat`, `cat` |
# | place | `with tf.device("…")` | `.to("…")` | `with device("…")`, `.to("…")` |
# | compile | `@tf.function(jit_compile=True)` | `@torch.compile` | `@function` |
#
# ## Functions (16 min)
#
# Each of these functions brings its arguments into the right form and then calls `apply`:

# %%
page.source(ops.transpose, ops.reshape, ops.concat, ops.where, ops.cast)

# %%
x = constant([[3.0, 1.0, 2.0], [1.0, 5.0, 4.0]])
print(arg_max(x, axis=1), one_hot(arg_max(x, axis=1), 3), sep="\n")
print(concat([x[:, ::-1], x[:1]]), where(x > 2.0, x, 0.0), sep="\n")

# %% [markdown]
# `x[1:, ::2]`, `x[..., 0]` and `x[:, None]` mean what they mean in NumPy. First `...` is replaced by the slices that it
# stands for, so that each axis has its own. An integer becomes a slice of length one, and its axis is dropped. `None`
# becomes a new axis of length one.

# %%
page.source(indexing._without_dots, indexing.slice_of)

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "03-more-ops-shape",
    "x has the shape (4, 3, 2). What is the shape of x[..., None, 0]?",
    choices=["(4, 3, 1)", "(4, 3, 2, 1)", "(1, 3, 2)"],
)

# %%
print(constant(np.zeros((4, 3, 2)))[..., None, 0].shape)

# %%
checks.answer_to("03-more-ops-shape")

# %% [markdown]
# A **mask** selects numbers by their values. It needs neither an op nor a rule of its own: `gather` takes the rows
# where the mask is true.

# %%
page.source(indexing.boolean_mask)

# %%
x = constant([3.0, -1.0, 2.0, -5.0])
with GradientTape() as tape:
    y = x[x > 0.0] ** 2
print(y.numpy(), tape.gradient(y, x).numpy())

# %% [markdown]
# The number of selected rows depends on the values. A function is traced without values, so there a mask raises an
# error that says what to do instead:

# %%
try:
    function(lambda x: x[x > 0.0])(x)
except TypeError as error:
    print(error)

# %% [markdown]
# ## Their rules (5 min)
#
# Most rules take one line. If an op passes a number on unchanged, its rule passes the gradient on unchanged. If an op
# chooses one of two numbers, the other gets no gradient:

# %%
tests = np.array([[1.0, 5.0], [5.0, 2.0]]), np.array([[5.0, 1.0], [5.0, 3.0]])
for choose in (maximum, minimum):
    inputs = [*map(constant, tests)]
    with GradientTape() as tape:
        y = choose(*inputs)
    print(choose.__name__, *(g.numpy().tolist() for g in tape.gradient(y, inputs)))

# %% [markdown]
# If the two numbers are equal, the first gets all of the gradient. `reduce_max` is different: if several numbers are
# the largest, they share the gradient. And `concat` gives each of its inputs the part of `dy` that belongs to it.

# %%
page.source(vjps._share_back, vjps._part_of_join)

# %%
x = constant([1.0, 4.0, 4.0, 2.0])
with GradientTape() as tape:
    y = reduce_max(x)
print(tape.gradient(y, x).numpy())

# %% [markdown]
# A power has two rules, and each has a place where the textbook formula fails. The slope of `0 ** 0` by its base is 0,
# but the formula gives 0 · 0⁻¹. The slope by the exponent contains the logarithm of the base, which exists only for a
# base above 0. For all others the rule leaves it out.

# %%
a = constant([0.0, 0.0, 2.0])
b = constant([0.0, 1.0, 3.0])
with GradientTape() as tape:
    y = a**b
print(*(g.numpy() for g in tape.gradient(y, [a, b])))

# %% [markdown]
# **A good place to stop.** You can join, slice and select tensors, and have seen the rules behind it. *Are these rules
# right?*
#
# ## Every rule is checked with a nudge (7 min)


# %%
def slope(function, arrays, k, nudge=1e-6):
    """d sum(function) / d arrays[k] by central differences."""
    result = np.zeros(arrays[k].shape)
    for index in np.ndindex(result.shape):
        ends = []
        for step in (nudge, -nudge):
            moved = [np.array(a) for a in arrays]
            moved[k][index] += step
            ends.append(function(*map(constant, moved)).numpy().sum())
        result[index] = (ends[0] - ends[1]) / (2 * nudge)
    return result


def meets_nudge(function, *arrays, nudge=1e-6):
    """The largest difference between the gradients of the tape and those of the nudge."""
    inputs = [*map(constant, arrays)]
    with GradientTape() as tape:
        target = function(*inputs)
    gradients = tape.gradient(target, inputs)
    return max(np.abs(g.numpy() - slope(function, arrays, k, nudge)).max() for k, g in enumerate(gradients))


# %%
draw = np.random.default_rng(0)
a, row = draw.uniform(0.5, 2, (3, 2)), draw.normal(size=(1, 2))
b, m, n = draw.uniform(0.5, 2, (3, 2)), a > 1.2, constant(np.array([2, 0, 2]))
cases = {
    "sqrt": (sqrt, a),
    "tanh": (tanh, row),
    "absolute": (lambda x: absolute(x) * x, row),
    "sin": (sin, row),
    "cos": (cos, row),
    "erf": (erf, row),
    "elu": (lambda x: nn.elu(x, 1.5), row),
    "power": (lambda x, y: x**y, a, b),
    "maximum": (maximum, a, row),
    "minimum": (minimum, a, row),
    "where": (lambda x, y: where(m, x, y), a, b),
}

# %% [markdown]
# The next cases are the ops that move numbers, or combine several numbers:

# %%
cases |= {
    "reduce_max": (lambda x: reduce_max(x, axis=1) * reduce_max(x), a),
    "reduce_min": (lambda x: reduce_min(x, axis=0, keepdims=True) * x, a),
    "softmax": (lambda x: nn.softmax(x) * b, a),
    "log_softmax": (lambda x: nn.log_softmax(x) * b, a),
    "transpose": (lambda x: transpose(x) * transpose(b), a),
    "reshape": (lambda x: reshape(x, (2, -1)) * reshape(b, (2, 3)), a),
    "concat": (lambda x, y: concat([x, y, x]) * concat([y, y, x]), a, b),
    "slice": (lambda x: x[::2, 1] * x[0, ::-1], a),
    "slice_grad": (lambda x: apply("slice_grad", x, shape=(5, 2), slices=((0, 5, 2), (0, 2, 1))) ** 2, a),
    "cast": (lambda x: cast(cast(x, "f4"), "f8"), np.array([[1.0, 2.0]])),
    "scatter_add": (lambda x: apply("scatter_add", x, n, count=4) ** 2, a),
}


# %%
worst = {op: meets_nudge(*case, nudge=1e-2 if op == "cast" else 1e-6) for op, case in cases.items()}
print(f"{len(cases)} rules, all within 1e-5:", all(difference < 1e-5 for difference in worst.values()))
print("without a gradient:")
print(*sorted(op for op, rules in VJPS.items() if type(rules) is tuple and not any(rules)))

# %% [markdown]
# (A cast to float32 rounds a nudge of a millionth away, or nearly so. That rule gets a larger nudge.)
#
# ## Exercises (10 min, optional)
#
# ### 03-2 · A loss without `if`
#
# A point far from the line has too much influence, because its error counts squared.
# [Huber](https://doi.org/10.1214/aoms/1177703732) (1964) limits this influence: near 0 the loss is a parabola, beyond 1
# it is a straight line, and there is no kink between them.
#
# ```
#  error      -3    -1    -0.5     0    0.5     1     3
#  loss      2.5   0.5   0.125     0  0.125   0.5   2.5
#  slope      -1    -1    -0.5     0    0.5     1     1
# ```
#
# Each number of a tensor needs its own branch, so a single `if` cannot choose. And while a function is traced, there is
# no number that an `if` could test. (About 3 lines. Hint: `maximum`, `minimum`, `where`. The absolute value of an error
# is `maximum(error, -error)`.)

# %%
from course.reader import exercises

exercises.begin("03-2")


def huber(error):
    """error²/2 where |error| ≤ 1, else |error| - 1/2: a tensor shaped like `error`."""
    return ...


exercises.check("03-2", huber)

# %% [markdown]
# ### Without a check
#
# - Make an op of the `hypotenuse` of notebook 02's exercises, and give it one rule per input, `dy·a/y` and `dy·b/y`.
#   Does the nudge confirm the rules? Where would it not?

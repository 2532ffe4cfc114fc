# %% [markdown]
# # 3 · Low-level API
#
# **In this notebook every operation passes one door, and what stands at the door differentiates your program.**
#
# This is the level of `tf.Tensor` and `torch.Tensor`, of `GradientTape` and `autograd`. About 35 minutes.

# %%
from course import build, figures, tasks

build.watch("03_low_level")
figures.you_are_here(3)

# %% [markdown]
# ## A surprise to begin with (2 min)
#
# The derivative of x³ at 2 is 12. Here is a way to get it without a formula, without a limit, and exact to the last digit.
# **Predict: what does this print?**


# %%
def f(x):
    return x**3


f(2 + 1e-20j).imag / 1e-20

# %% [markdown]
# We asked Python for `f` of a slightly different *kind* of number, and that number carried a derivative along
# ([Squire and Trapp, 1998](https://doi.org/10.1137/S003614459631241X); it works for functions made of sums, products and
# their like, not for `abs`). `f` never knew. That is the idea of this level: let the same program run on numbers that do a
# little more than numbers. Ours will not carry the derivative along. They will write down what happens, and we read it
# backwards afterwards.
#
# ## A number that knows its operations (6 min)
#
# On level 2 we launched kernels by name and allocated every result by hand. A **tensor** is a buffer with operators: `+`
# finds the name, the result's shape, and a place for it. A tensor never changes. That will matter when we look back.

# %%
#| export tensors
"""Every op passes one door, `apply`: tensors are numbers that go through it."""

import functools
import math
import operator

import numpy as np

from levels.hardware import pool
from levels.kernels import launch


class Operators:
    """The operators of Python, each one an op at the door."""

    __slots__ = ()

    def __add__(self, other):
        return apply("add", self, other)

    def __radd__(self, other):
        return apply("add", other, self)

    def __sub__(self, other):
        return apply("subtract", self, other)

    def __rsub__(self, other):
        return apply("subtract", other, self)

    def __mul__(self, other):
        return apply("multiply", self, other)

    def __rmul__(self, other):
        return apply("multiply", other, self)

    def __truediv__(self, other):
        return apply("divide", self, other)

    def __rtruediv__(self, other):
        return apply("divide", other, self)

    def __neg__(self):
        return apply("negative", self)

    def __matmul__(self, other):
        return apply("matmul", self, other)

    shape = property(lambda self: self.buffer.shape)
    dtype = property(lambda self: self.buffer.dtype)
    device = property(lambda self: self.buffer.device)

    def numpy(self):
        """A copy of the numbers as a NumPy array."""
        return self.buffer.numpy()

    def __float__(self):
        return float(self.numpy().item())

    def __repr__(self):
        return f"{type(self).__name__}({self.numpy()}, shape={self.shape}, {self.dtype}, {self.device.name})"


# %% [markdown]
# Two nouns share these operators. A `Tensor` is fixed. A `Variable` is a name for a tensor that may be replaced by another
# one, as the weights are after each step.


# %%
#| export tensors
class Tensor(Operators):
    """An immutable buffer."""

    __slots__ = ("buffer",)

    def __init__(self, buffer):
        self.buffer = buffer


class Variable(Operators):
    """A tensor that `assign` replaces: the state of a model. Its shape and dtype stay."""

    __slots__ = ("value",)

    def __init__(self, value):
        self.value = as_tensor(value)

    buffer = property(lambda self: self.value.buffer)

    def assign(self, value):
        value = as_tensor(value, [self])
        if value.buffer.spec is not self.buffer.spec:
            raise ValueError(f"assign: the variable is {self.buffer.spec}, the value {value.buffer.spec}")
        self.value = value


# %%
#| export tensors
def constant(values, dtype=None):
    """A tensor of the given numbers on cpu:0. Python floats and lists of them become float32, arrays keep their dtype."""
    array = np.asarray(values, dtype)
    if dtype is None and not isinstance(values, (np.ndarray, np.generic)) and array.dtype == np.float64:
        array = array.astype(np.float32)
    if array.dtype not in (np.float32, np.float64, np.int64):
        raise TypeError(f"constant: {array.dtype} has no kernels; use float32, float64 or int64")
    return Tensor(pool()["cpu:0"].put(array))


@functools.lru_cache(maxsize=256)
def number_tensor(value, sign, dtype):
    """A single number as a tensor. Tensors never change, so one serves every use. (0.0 and -0.0 are equal, hence `sign`.)"""
    return constant(value, dtype)


def as_tensor(value, others=()):
    """A tensor from a tensor, a variable, an array or numbers; a Python number takes the dtype of the first tensor beside it."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, Variable):
        return value.value
    like = next((x.dtype for x in others if isinstance(x, Operators)), None)
    if isinstance(value, (int, float)) and like is not None:
        return number_tensor(value, math.copysign(1.0, value), like)
    return constant(value)


# %% [markdown]
# ## The door (5 min)
#
# Every op passes here. Today one clerk stands at the door: he takes a fresh buffer and launches. And he tells
# everyone who is listening. The listeners are in `TAPES`, which is empty so far.

# %%
#| export tensors
buffer_of = operator.attrgetter("buffer")
TAPES = []  # who listens: each hears of every op, in order


def apply(op, *inputs, **attrs):
    """The door: run one op on tensors, and tell every open tape."""
    inputs = [x if type(x) is Tensor else as_tensor(x, inputs) for x in inputs]
    y = Tensor(launch(op, None, *map(buffer_of, inputs), **attrs))
    for tape in TAPES:
        tape.records.append((op, inputs, attrs, y))
    return y


# %%
constant([1.0, 2.0]) + 3.0

# %% [markdown]
# A few ops have no operator. They are functions, and all of them are one line.


# %%
#| export tensors
def matmul(x, w):
    """x[m, k] @ w[k, n] -> [m, n]"""
    return apply("matmul", x, w)


def gather(x, rows):
    """The rows of x with these numbers (an integer array)."""
    return apply("gather", x, np.asarray(rows, np.int64) if not isinstance(rows, (Tensor, Variable)) else rows)


def exp(x):
    return apply("exp", x)


def log(x):
    return apply("log", x)


def clip(x, low, high):
    """x, but no less than low and no more than high."""
    return apply("clip", x, low=float(low), high=float(high))


def reduce_sum(x, axis=None, keepdims=False):
    """The sum over one axis, or over all numbers (axis=None), in order from 0.0."""
    return apply("reduce_sum", x, axis=axis, keepdims=keepdims)


def reduce_mean(x, axis=None, keepdims=False):
    """The sum divided by the count."""
    total = reduce_sum(x, axis, keepdims)
    return total / (math.prod(x.shape) // max(1, math.prod(total.shape)))


# %%
#| export nn
"""The functions of neural nets."""


def relu(x):
    """x where it is positive, else 0."""
    return apply("relu", x)


def sigmoid(x):
    """1 / (1 + exp(-x))"""
    return apply("sigmoid", x)


# %% [markdown]
# Wrong calls are refused at the door, or below it, with one error:

# %%
wrong = (
    lambda: constant([1.0]) + constant([1.0], "f8"),
    lambda: matmul(constant([[1.0, 2.0]]), constant([[1.0]])),
    lambda: Variable([1.0]).assign([1.0, 2.0]),
    lambda: gather(constant([[1.0], [2.0]]), [2]),
)
for call in wrong:
    try:
        call()
    except (TypeError, ValueError, IndexError) as error:
        print(f"{type(error).__name__}: {error}")

# %% [markdown]
# ## The tape (8 min)
#
# Now someone listens. A **tape** writes down each op that passes while it is open: its name, its inputs, its result. That
# is a list, and we can print it.

# %%
#| export autodiff
"""The tape: a list of what passed the door, read backwards it gives the gradient."""


class GradientTape:
    """Writes down every op while it is open."""

    def __init__(self):
        self.records = []  # (op, inputs, attrs, result)

    def __enter__(self):
        TAPES.append(self)
        return self

    def __exit__(self, *_):
        TAPES.remove(self)

    def gradient(self, target, sources):
        """d target / d source for each source: a list of tensors shaped like the sources."""
        return walk_back(self.records, as_tensor(target), [as_tensor(s) for s in sources])

    def __repr__(self):
        return "\n".join(
            f"{i:3}  {op:<12} {' '.join(str(x.shape) for x in inputs)} -> {y.shape}"
            for i, (op, inputs, _, y) in enumerate(self.records)
        )


# %%
w, x, y = Variable([[2.0], [1.0]]), constant([[1.0, 2.0], [3.0, 4.0]]), constant([[3.0], [5.0]])
with GradientTape() as tape:
    error = x @ w - y
    loss = reduce_mean(error * error)
tape

# %% [markdown]
# To differentiate, read the list from the bottom. Each op must know one thing: if the result's gradient is `dy`, what is
# the gradient of each input? That is the chain rule for one op, its **vjp** (vector-Jacobian product). One row an op, one
# function an input:

# %%
#| export autodiff
VJPS = {  # op -> for each input: (dy, y, *inputs, **attrs) -> the gradient of that input
    "add": (lambda dy, y, a, b: dy, lambda dy, y, a, b: dy),
    "subtract": (lambda dy, y, a, b: dy, lambda dy, y, a, b: -dy),
    "multiply": (lambda dy, y, a, b: dy * b, lambda dy, y, a, b: dy * a),
    "divide": (lambda dy, y, a, b: dy / b, lambda dy, y, a, b: -dy * y / b),
    "negative": (lambda dy, y, x: -dy,),
    "matmul": (
        lambda dy, y, x, w: apply("matmul", dy, w, transpose_w=True),
        lambda dy, y, x, w: apply("matmul", x, dy, transpose_x=True),
    ),
    "reduce_sum": (lambda dy, y, x, axis, keepdims: spread_back(dy, x.shape, axis, keepdims),),
    "exp": (lambda dy, y, x: dy * y,),
    "log": (lambda dy, y, x: dy / x,),
    "relu": (lambda dy, y, x: apply("relu_grad", dy, y),),
    "sigmoid": (lambda dy, y, x: apply("sigmoid_grad", dy, y),),
    "clip": (lambda dy, y, x, low, high: apply("clip_grad", dy, x, low=low, high=high),),
    "broadcast_to": (lambda dy, y, x, shape: dy,),
}


def spread_back(dy, shape, axis, keepdims):
    """The reverse of a sum: the same gradient for every number that went into it."""
    if axis is not None and axis % len(shape) and not keepdims:
        raise NotImplementedError("the gradient of a sum over an axis that is not the first needs keepdims=True")
    return apply("broadcast_to", dy, shape=shape)


# %% [markdown]
# One case needs care. When a bias of shape `(1, 1)` was added to ten rows, it was used ten times. Its gradient is the sum
# of ten: the reverse of repeating is adding up.


# %%
#| export autodiff
def unbroadcast(dx, shape):
    """dx summed over the axes in which an input of this shape was repeated."""
    while len(dx.shape) > len(shape):
        dx = reduce_sum(dx, axis=0)
    for axis, (size, wanted) in enumerate(zip(dx.shape, shape, strict=True)):
        if size != wanted:
            dx = reduce_sum(dx, axis=axis, keepdims=True)
    return dx


def walk_back(records, target, sources):
    """The gradients of `target`: from the last record to the first, each op hands its gradient on to its inputs."""
    needed = {id(s) for s in sources}  # what depends on a source; the rest is skipped
    useful = []
    for record in records:
        if not needed.isdisjoint(map(id, record[1])):
            needed.add(id(record[3]))
            useful.append(record)
    gradients = {id(target): constant(np.ones(target.shape, target.dtype))}
    for op, inputs, attrs, y in reversed(useful):
        if id(y) not in gradients:
            continue
        if op not in VJPS:
            raise LookupError(f"gradient: {op} has no rule yet; add a row to VJPS")
        for x, vjp in zip(inputs, VJPS[op]):
            if id(x) in needed:
                dx = vjp(gradients[id(y)], y, *inputs, **attrs)
                if dx.buffer.spec is not x.buffer.spec:
                    dx = unbroadcast(dx, x.shape)
                gradients[id(x)] = gradients[id(x)] + dx if id(x) in gradients else dx
    for k, source in enumerate(sources):
        if id(source) not in gradients:
            raise ValueError(f"gradient: source {k} was not used on the way to the target while the tape was open")
    return [gradients[id(source)] for source in sources]


# %% [markdown]
# Why backwards, and in order? Because a result may be used twice, and its gradient is complete only when all its users
# have spoken. `error * error` above is such a case.
#
# **Predict:** the loss of our small example is `mean((x @ w - y)²)`. Does the tape agree with a nudge?

# %%
(dw,) = tape.gradient(loss, [w])


def loss_at(w0):
    e = x.numpy() @ np.array([[w0], [1.0]]) - y.numpy()
    return (e * e).mean()


print(f"tape {dw.numpy()[0, 0]:.4f}   nudge {(loss_at(2 + 1e-6) - loss_at(2 - 1e-6)) / 2e-6:.4f}")

# %% [markdown]
# It does. The tape needed one walk, and would need one walk for a million weights. The nudge needs two runs for each.
#
# ## The two tasks on this level (6 min)
#
# ### Data

# %%
task = tasks.linear()
print("x", task.x.shape, " y", task.y.shape, " batches", task.batches.shape)

# %% [markdown]
# ### Model and training
#
# The forward pass is now the formula. The backward pass has shrunk to one line, which we did not have to derive.

# %%
#| export tasks
"""The two tasks as tensors: the formula forward, the tape backward."""

from levels.hardware.tasks import Fit, check_inputs, check_task


def linear_regression(x, y, weights, batches, learning_rate=0.0005):
    """Mean squared error, stochastic gradient descent; see `Fit` and `check_task` for the shapes."""
    check_task(x, y, weights, batches, learning_rate, units=[1])
    x_, y_, (w, b), losses = constant(x), constant(y), map(Variable, weights), []
    for i in batches:
        rows, target = gather(x_, i), gather(y_, i)
        with GradientTape() as tape:
            prediction = rows @ w + b  # forward
            error = prediction - target
            loss = reduce_mean(error * error)  # loss
        dw, db = tape.gradient(loss, [w, b])  # backward
        w.assign(w - learning_rate * dw)  # update
        b.assign(b - learning_rate * db)
        losses.append(loss.numpy())

    def predict(x):
        check_inputs(x, w.dtype, w.shape[0])
        return (constant(x) @ w + b).numpy()

    return Fit(np.array(losses), [w.numpy(), b.numpy()], predict)


# %%
from levels import hardware, kernels

fit = linear_regression(task.x, task.y, task.weights, task.batches, task.learning_rate)
below = kernels.tasks.linear_regression(task.x, task.y, task.weights, task.batches, task.learning_rate)
print("losses equal: ", bool((fit.losses == below.losses).all()))
print("weights equal:", all((p == q).all() for p, q in zip(fit.weights, below.weights)))
print("last loss    ", float(fit.losses[-1]).hex())

# %% [markdown]
# On level 2 our hand made 14 launches. The tape makes 19, with the same bits: it divides for g, spreads g over the rows and
# multiplies `g·e` twice, because nobody told it that both are the same; and each update is a product and a difference
# instead of one `sgd`.
#
# ### Result

# %%
figures.regression(task, fit)

# %%
penguins = tasks.penguins_mass()
figures.regression(penguins, linear_regression(*penguins[:2], *penguins[4:7]))

# %% [markdown]
# ### The second task: a net
#
# On level 2 the backward pass of the net was the longest part. Here it is the same one line.


# %%
#| export tasks
def dnn(x, weights):
    """x[n, features] -> the probability [n, 1]"""
    w1, b1, w2, b2, w3, b3 = weights
    h1 = relu(x @ w1 + b1)
    h2 = relu(h1 @ w2 + b2)
    return sigmoid(h2 @ w3 + b3)


def dnn_classifier(x, y, weights, batches, learning_rate=0.01):
    """features-4-8-1, relu, relu, sigmoid; binary cross-entropy, stochastic gradient descent; see `Fit`, `check_task`."""
    check_task(x, y, weights, batches, learning_rate, units=[4, 8, 1])
    x_, y_, weights, losses = constant(x), constant(y), [Variable(w) for w in weights], []
    for i in batches:
        rows, target = gather(x_, i), gather(y_, i)
        with GradientTape() as tape:
            prediction = dnn(rows, weights)  # forward
            c = clip(prediction, 1e-7, 1.0 - 1e-7)
            loss = -reduce_mean(target * log(c) + (1.0 - target) * log(1.0 - c))  # loss
        gradients = tape.gradient(loss, weights)  # backward
        for w, dw in zip(weights, gradients):  # update
            w.assign(w - learning_rate * dw)
        losses.append(loss.numpy())

    def predict(x):
        check_inputs(x, weights[0].dtype, weights[0].shape[0])
        return dnn(constant(x), weights).numpy()

    return Fit(np.array(losses), [w.numpy() for w in weights], predict)


# %%
rings = tasks.rings()
ring_fit = dnn_classifier(*rings[:2], *rings[4:7])
below = hardware.tasks.dnn_classifier(*rings[:2], *rings[4:7])
print("losses equal: ", bool((ring_fit.losses == below.losses).all()))
print("weights equal:", all((p == q).all() for p, q in zip(ring_fit.weights, below.weights)))
figures.classifier(rings, ring_fit)

# %%
sex = tasks.penguins_sex()
figures.confusion(sex, dnn_classifier(*sex[:2], *sex[4:7]))

# %% [markdown]
# ## What this level cost (3 min)

# %%
from course import compare
from levels.kernels import counted

short = task._replace(batches=task.batches[:1000])
launches, nbytes = (total / 1000 for total in counted(lambda: linear_regression(short.x, short.y, *short[4:7])))
print(f"{compare.lines(linear_regression)} lines, {launches:.0f} launches and {nbytes:,.0f} bytes a step")

# %% tags=["nbval-ignore-output"]
import timeit

cpu, one = pool()["cpu:0"], constant([[1.0]])
t_launch = min(timeit.repeat(lambda: one + one, number=1000, repeat=5)) / 1000
print(f"an op at the door costs {t_launch * 1e6:.1f} µs")
compare.cost(linear_regression, task, launches, nbytes, launches * t_launch + cpu.roofline(16 * 10, nbytes))

# %% [markdown]
# Comfort has a price: more launches than by hand, and a larger cost for each. Buying it back is the work of a compiler,
# which records a whole step and makes one program of it (`tf.function`, `torch.compile`).
#
# ## More of the same kind (optional)
#
# | | TensorFlow | PyTorch | here |
# |---|---|---|---|
# | fixed numbers | `tf.constant` | `torch.tensor` | `constant` |
# | state | `tf.Variable`, `.assign` | `torch.nn.Parameter`, in place | `Variable`, `.assign` |
# | write down | `tf.GradientTape` | every tensor's `grad_fn` | `GradientTape` |
# | read back | `tape.gradient(loss, ws)` | `torch.autograd.grad(loss, ws)` | `tape.gradient(loss, ws)` |
#
# ## Exercises
#
# 1. Print the tape of `linear_regression`'s forward pass. Which record belongs to which operator?
# 2. Remove `unbroadcast` from `walk_back`. Which error do you get, and from where?
# 3. Let `walk_back` run over the records forwards. What happens, and why?
# 4. Add a vjp for a new op `"square"`. Check it with a nudge.
#
# ## Build

# %%
build.level("03_low_level", linear_regression, dnn_classifier)

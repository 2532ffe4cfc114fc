# %% [markdown]
# # 3 · Low-level API
#
# **In this notebook every operation goes through one function. It hands each operation to an interpreter. One runs
# it, one records it for a gradient, and one writes it down for a compiler.**
#
# This is the level of TensorFlow's `tf.Tensor`, `tf.GradientTape` and `tf.function`, and of PyTorch's
# `torch.Tensor` and `autograd`.
#
# It takes two sittings, each of less than an hour and a half. In the first, you build tensors, and a **tape**: a record
# of what was computed, which gives the gradients. In the second, the train step becomes a program. You need four
# terms from levels 1 and 2. A **buffer** is memory with a shape and a dtype. Its **Spec** is everything but the
# numbers. A **kernel** is one device's program for an op. A **plan** holds the kernel that an op will run, and the
# Spec of its result. Level 1 was the ground of our house, level 2 the clay. Tensors are the **bricks**.

# %%
from course import build, compare, figures, tasks
from course.reader import checks

build.watch("03_low_level")
figures.you_are_here(3)

# %% [markdown]
# ## A surprise to begin with (5 min)
#
# The derivative of x³ at 2 is 12. Here is a way to get it without a formula and without a limit. (In Python,
# `1e-20j` is an imaginary number: 1e-20 times the root of -1.)


# %%
def f(x):
    return x**3


# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "03-imaginary",
    "What is `f(2 + 1e-20j).imag / 1e-20`?",
    choices=[
        "0, since 1e-20 is lost beside 2",
        "about 12, as with a small step",
        "12, to the last digit",
    ],
)

# %%
f(2 + 1e-20j).imag / 1e-20

# %%
checks.answer_to("03-imaginary")

# %% [markdown]
# The complex number carried a derivative through `f`, and `f` was not changed for it ([Squire and Trapp,
# 1998](https://doi.org/10.1137/S003614459631241X)). That is the idea of this level: the same program runs on values
# that do more than numbers. Here, each operation on a tensor is also written down. Then we read that record
# backwards.
#
# Below is a PyTorch program in which nobody derives a gradient. Only its import was changed, so that it runs on our
# levels. **In this notebook you build what finds its gradients.** You need not follow the program yet.

# %%
from course.reader.inspection import framework_programs, graphs, real_ones

framework_programs.here("torch", "low", "linear")

# %% [markdown]
# ## The door (4 min)
#
# On level 2 we launched kernels by name. Now operators do that for us. For `x * w`, Python calls a method of `x`.
# The method passes the *name* of the op and its inputs to one function. We call this function the **door**, since
# every op has to go through it. An **interpreter** stands in the door and decides what happens to the op. There are
# three:
#
# ```
#                     ┌──▶  run:    runs each op; a tensor comes back
#   x * w ──▶ door ───┼──▶  tape:   records each op, and passes it on
#                     └──▶  trace:  records each op, runs nothing; a symbol comes back
# ```
#
# The tape passes each op on to the interpreter that was there before it. A symbol is a tensor without numbers. The
# next cell, the class `Interpreter`, is `run`. Its `do` works like level 2's `launch`, and gives a new tensor. A
# model also has **variables**. A variable refers to one tensor now, and to another one later. For these, an
# interpreter has two more methods: `read` and `assign`.

# %%
#| export tensors
"""Every op passes one door, `apply`: tensors are numbers that go through it."""


class Interpreter:
    """The interpreter that runs each op at once."""

    def do(self, op, plan, inputs, attrs):
        """Run an op, and return its result as a new tensor."""
        return plan.result(Tensor, inputs, attrs)

    def read(self, variable):
        """Return the tensor that the variable refers to now."""
        return variable.read_value()

    def assign(self, variable, value):
        """Make the variable refer to another tensor."""
        variable.set_value(value)


# %% [markdown]
# The door itself is `apply`. It makes tensors of inputs that are not tensors yet, such as the 2.0 in `x * 2.0`. It
# looks up the plan with `planned` of level 2. Then it hands the op to `DOOR.top`, the interpreter that is installed
# now. At first this is `DOOR.bottom`, which runs each op. (Each thread has a `top` of its own.)

# %%
#| export tensors most apply
import threading

from levels.kernels import planned


class _Door(threading.local):
    """Each thread's interpreter, `top`. At first it is `bottom`, which runs each op."""

    bottom = Interpreter()
    top = bottom


DOOR = _Door()


def apply(op, *inputs, **attrs):
    """Pass an op to this thread's interpreter: the door of all ops on tensors."""
    for x in inputs:
        if type(x) is not Tensor:
            inputs = _as_tensors(inputs)
            break
    return DOOR.top.do(op, planned(op, inputs, attrs), inputs, attrs)


# %% [markdown]
# ## Tensors (8 min)
#
# A **tensor** is level 1's `Buffer` with operators, and it never changes. Each operator needs two methods. Take
# `1.0 - x`: Python first asks the number 1.0, which does not know tensors. Then it calls the second method, that of
# `x`. `binary_op` makes both.
#
# `x[0]` and `x > y` need several ops each. [More ops](more/03_more_ops.ipynb) adds them to the table `OPERATORS`.
# The base class `SeveralOps`, from `levels/support`, looks there. It also provides `x ** 2`, `float(x)` and the
# printed form of a tensor.

# %%
#| export tensors
from levels.support.operators import SeveralOps


def binary_op(op):
    """Return an operator's two methods, as for `x - 1.0` and for `1.0 - x`."""
    return lambda x, other: apply(op, x, other), lambda x, other: apply(op, other, x)


OPERATORS = {}  # "[]" -> function(x, …): operators and methods of several ops


class Operators(SeveralOps):
    """The operators of tensors and variables."""

    __slots__ = ()
    operators = OPERATORS
    __add__, __radd__ = binary_op("add")
    __sub__, __rsub__ = binary_op("subtract")
    __mul__, __rmul__ = binary_op("multiply")
    __truediv__, __rtruediv__ = binary_op("divide")
    __matmul__, __rmatmul__ = binary_op("matmul")

    def __neg__(self):
        return apply("negative", self)


# %%
#| export tensors
from levels.hardware import PLACE, Buffer


class Tensor(Operators, Buffer):
    """An immutable buffer with operators."""

    __slots__ = ("__weakref__",)  # a table may refer to a tensor without keeping it


# %% [markdown]
# Next, numbers become tensors. `constant` chooses the dtype: an array keeps its own, and Python's floats become
# float32. `cast`, from `levels/support`, refuses a dtype that cannot hold the numbers. `_placed` copies them to
# the device with level 1's `put`.

# %%
#| export tensors
import numpy as np

from levels.support.shapes import cast

DTYPES = tuple(map(np.dtype, ("float32", "float64", "int64", "bool")))  # with kernels


def _placed(array, dtype, device):
    """Put an array on a device as a tensor of this dtype."""
    return device.put(cast(array, dtype, DTYPES), Tensor)


# %%
#| export tensors
from levels.support.checks import numeric_array
from levels.support.scalars import pythons_floats


def constant(values, dtype=None):
    """Make a tensor: arrays keep their dtype, and Python's floats become float32."""
    if isinstance(values, Operators) and (dtype is None or dtype == values.dtype):
        return as_tensor(values)
    array = numeric_array(values)
    if dtype is None:
        dtype = array.dtype
        if dtype == np.float64 and pythons_floats(values):
            dtype = np.float32
    return _placed(array, np.dtype(dtype), PLACE.device)


# %% [markdown]
# In an expression such as `x * 2.0`, the number takes the dtype of the tensor beside it. `as_tensor` converts one
# value, and `_as_tensors` all inputs of an op. A variable is read through the interpreter. Each train step uses the
# same Python numbers, such as the learning rate. So `kept_numbers`, from `levels/support`, keeps their tensors in a
# cache.

# %%
#| export tensors
from levels.support.scalars import check_number, kept_numbers


def as_tensor(value, like=None):
    """Convert to a tensor. A Python number takes the dtype and device of `like`."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, Variable):
        return DOOR.top.read(value)
    if type(value) in (float, int, bool) and isinstance(like, Operators):
        return _number(value, like.spec)
    return constant(value)


def _as_tensors(values):
    """Convert all of these. Python numbers take the dtype of the first tensor."""
    for like in values:
        if isinstance(like, Operators):
            break
    return [x if type(x) is Tensor else as_tensor(x, like) for x in values]


@kept_numbers
def _number(value, spec):
    """Return a number as a tensor of the same dtype and device as the one beside it."""
    check_number(value, spec.dtype)
    return _placed(np.asarray(value), spec.dtype, spec.device)


# %% [markdown]
# ## Variables (6 min)
#
# A tensor never changes. What changes in a model is a **variable** (TensorFlow: `tf.Variable`; PyTorch:
# `torch.nn.Parameter`). It asks the interpreter to `read` or to `assign` its tensor. Its base class `Storage`, from
# `levels/support`, holds this tensor, and a lock, so that threads can share it.

# %%
#| export tensors
from levels.support.storage import Storage


class Variable(Storage, Operators):
    """A variable of a model: it refers to a tensor, which `assign` replaces."""

    def __init__(self, value, name=None, trainable=True):
        super().__init__(as_tensor(value), name, trainable)

    value = property(lambda self: DOOR.top.read(self), doc="Its tensor.")

    def assign(self, value):
        """Make it refer to another tensor. Raises ValueError for another shape."""
        value = as_tensor(value, self)
        self.check_assigned(value)
        DOOR.top.assign(self, value)


# %%
x, y = constant(3.0, "f8"), constant(5.0, "f8")
w, b = Variable(np.array(2.0), "w"), Variable(np.array(1.0), "b")
x * w + b

# %% [markdown]
# 3·2 + 1 is 7. Ops that have no operator in Python are functions. Each passes its name to the door.

# %%
#| export ops
"""Ops as functions of tensors: each passes the name of its op to `apply`, the door."""


def exp(x):
    """Return eˣ for each number of x, which must hold floats."""
    return apply("exp", x)


def log(x):
    """Return the natural logarithm of each number of x, which must hold floats."""
    return apply("log", x)


def sqrt(x):
    """Return the square root of each number of x, which must hold floats."""
    return apply("sqrt", x)


# %%
#| export nn
"""The functions of neural nets."""


def relu(x):
    """Return each number of x if it is positive, else 0. x must hold floats."""
    return apply("relu", x)


def sigmoid(x):
    """Return 1 / (1 + exp(-x)) for each number of x, which must hold floats."""
    return apply("sigmoid", x)


# %% [markdown]
# `gather` takes rows by number. `clip` limits numbers to a range. Both check their arguments with functions from
# `levels/support`.

# %%
#| export ops
from levels.support.shapes import limits, row_numbers


def gather(x, rows):
    """Return rows of x[n, …] as [*rows.shape, …]. Raises TypeError, IndexError."""
    x = as_tensor(x)
    if not isinstance(rows, Operators):
        rows = x.device.put(row_numbers("gather", rows).astype(np.int64), Tensor)
    return apply("gather", x, rows)


def clip(x, low, high):
    """Limit each number of x to the range from low to high. Raises ValueError."""
    return apply("clip", x, **limits("clip", low, high))


# %% [markdown]
# A sum takes an axis, several neighbouring axes, or none for all numbers. A mean is a sum and a quotient.

# %%
#| export ops
import math

from levels.support.shapes import as_axis


def reduce_sum(x, axis=None, keepdims=False):
    """Sum the numbers of x over an axis, neighbouring axes or all (None), from 0.0."""
    return apply("reduce_sum", x, axis=as_axis(axis), keepdims=keepdims)


def reduce_mean(x, axis=None, keepdims=False):
    """Divide the sum of x by the number of its terms. x must hold floats."""
    x = as_tensor(x)
    total = reduce_sum(x, axis, keepdims)
    terms = math.prod(x.shape) // max(1, math.prod(total.shape))
    return total / terms


# %% [markdown]
# ## The chain rule, drawn (2 min)
#
# Take one unit and one row, as in notebook 01. The prediction is `z = x·w + b`, the error is `e = z - y`, and the
# loss is `l = e²`. With x = 3, w = 2, b = 1 and y = 5 the error is 2. How does the loss change when `w` does?
#
# ```
#        × x = 3              × 2e = 4
#   w ───────────▶  e  ───────────────▶  l
# ```
#
# If `w` moves by a little, `e` moves 3 times as far. If `e` moves, `l` moves 4 times as far. So `l` moves 3 · 4 =
# 12 times as far as `w`. Each line of the program, read backwards, multiplies by one such factor. Here `dw` means
# the slope of the loss with respect to `w`. Read the backward lines from the last one up:
#
# | forward line | backward line | in numbers |
# |---|---|---|
# | `z = x * w + b` | `dw = dz * x` | 4 · 3 = 12 |
# | `e = z - y` | `dz = de` | 4 |
# | `l = e * e` | `de = dl * 2 * e` | 1 · 4 = 4 |
#
# Here a person derived each backward line. A nudge needs no person, but it rounds. We want an exact slope that
# nobody has to derive.
#
# **A good place to stop.** All ops pass one door, and you know which slope a tape has to find.
#
# ## The tape (7 min)
#
# A `with` block installs another interpreter. It passes each op on to `below`, the interpreter that was installed
# before. At the end of the block, `leave`, from `levels/support`, removes it. (PyTorch's ops pass such a door, too:
# a `with` block of a `TorchDispatchMode` sees each of them.)

# %%
#| export tensors
from levels.support.tapes import leave


class Watcher(Interpreter):
    """An interpreter in a `with` block: it passes each op on to the one below."""

    below = None
    records = None  # it keeps none; a tape does

    def __enter__(self):
        if self.below:
            raise RuntimeError("this tape was open before; make another one")
        self.below = DOOR.top
        DOOR.top = self
        return self

    def __exit__(self, *_):
        leave(DOOR, self)

    def do(self, op, plan, inputs, attrs):
        return self.below.do(op, plan, inputs, attrs)

    def read(self, variable):
        return self.below.read(variable)

    def assign(self, variable, value):
        self.below.assign(variable, value)


# %% [markdown]
# The tape is such a `Watcher`, and it also writes a record: the op's name, its inputs, its attributes and its
# result. In its smallest form:


# %%
class Tape(Watcher):
    def __init__(self):
        self.records = []

    def do(self, op, plan, inputs, attrs):
        y = self.below.do(op, plan, inputs, attrs)
        self.records.append((op, inputs, attrs, y))
        return y


# %%
with Tape() as tape:
    error = x * w + b - y
    loss = error * error
[op for op, *_ in tape.records]

# %% [markdown]
# The tape holds four ops, in the order in which they ran. To differentiate, we read the list from its end. Each op
# has to answer one question. Suppose we know `dy`, the slope of the loss with respect to the op's *result*. What is
# the slope with respect to each *input*? A function that answers this is called a **vjp**, short for
# vector-Jacobian product. (In PyTorch it is the `backward` of a `torch.autograd.Function`.)
#
# Take a product, `r = a·b`. If `a` moves, `r` moves `b` times as far. So `a` gets `dy·b`, and `b` gets `dy·a`. The
# table `VJPS` has one entry per op, with one function per input. (In these functions `y` is the op's result, not
# the target. Read the first three entries; the others work the same way.)

# %%
#| export autodiff
"""The tape records each op at the door. Read backwards, it gives the gradient."""

# op -> for each input a function (dy, y, *inputs, **attrs) -> its gradient; or None
VJPS = {
    "add": (lambda dy, y, a, b: dy, lambda dy, y, a, b: dy),
    "subtract": (lambda dy, y, a, b: dy, lambda dy, y, a, b: -dy),
    "multiply": (lambda dy, y, a, b: dy * b, lambda dy, y, a, b: dy * a),
    "divide": (lambda dy, y, a, b: dy / b, lambda dy, y, a, b: -dy * y / b),
    "negative": (lambda dy, y, x: -dy,),
    "exp": (lambda dy, y, x: dy * y,),
    "log": (lambda dy, y, x: dy / x,),
    "clip": (lambda dy, y, x, **limits: apply("clip_grad", dy, x, **limits),),
}

# %% [markdown]
# ## The walk back (17 min)
#
# The walk starts at the loss. If the loss moves, the loss moves just as far: its own slope is 1. At each record,
# the op's rules turn the gradient of the result into a share for each input. `gradients` is a dict {tensor: its
# gradient}. (`w.value` is the very tensor that the tape recorded for `w`.)


# %%
def give(gradients, x, share):
    gradients[x] = share


def walk(records, loss, give):
    gradients = {loss: constant(1.0, "f8")}
    for op, inputs, _, result in reversed(records):
        for x, vjp in zip(inputs, VJPS[op]):
            give(gradients, x, vjp(gradients[result], result, *inputs))
    return gradients


print(f"w gets {float(walk(tape.records, loss, give)[w.value])}, by hand 12.0")

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "03-half",
    "6 is half of 12. Where did the other half go?",
    choices=[
        "the rule of the product forgets a factor 2",
        "`error` is used twice",
        "`w` was read too early",
    ],
)

# %% [markdown]
# We walk once more, and print the shares that `error`, `b` and `w` get:

# %%
names = {error: "error", b.value: "b", w.value: "w"}


def give_and_tell(gradients, x, share):
    if x in names:
        print(f"{names[x]:5} gets {float(share)}")
    give(gradients, x, share)


half = walk(tape.records, loss, give_and_tell)

# %%
checks.answer_to("03-half")

# %% [markdown]
# So `give` must not lose what `x` had before. The better function is **yours to write**. The first share stays as
# it is, and each further share is added to it with `+`. (The check: shares of 2, 2 and 3 make 7.)


# %%
#| export autodiff blank hand_on
def hand_on(gradients, x, share):
    """Give the tensor x its share of a gradient, added to what x has already."""
    ...  # 1 to 4 lines


# %% [markdown]
# <details><summary>Hint</summary>Has <code>x</code> a gradient already? <code>x in gradients</code> says so. (Do not start from 0: <code>0 + share</code> would be one more op.)</details>
# <details><summary>Second hint</summary>If it has, the new one is the sum of both, <code>gradients[x] + share</code>; if not, it is the share.</details>
# <details><summary>Solution</summary>
#
# ```python
# def hand_on(gradients, x, share):
#     """Give the tensor x its share of a gradient, added to what x has already."""
#     gradients[x] = gradients[x] + share if x in gradients else share
# ```
# </details>

# %%
print(f"w gets {float(walk(tape.records, loss, hand_on)[w.value])}, by hand 12.0")

# %% [markdown]
# Now `w` gets 12. This is backpropagation ([Rumelhart, Hinton and Williams,
# 1986](https://doi.org/10.1038/323533a0)): one walk gives the gradient of every weight. Why does it start at the
# end? `error` may pass its gradient on only when it has the shares of all ops that used it, and those stand after
# it in the list.
#
# **Walk it step by step.** Move `step`: blue is the gradient that each value has so far. (`p` is x·w, `z` is p +
# b.) `bump` moves one input by a millionth: green says how far each value moves then, in millionths. Blue begins at
# the loss, green at the input. The last line of the figure takes each value that has both a blue and a green number,
# multiplies the two, and adds up the products. At each step, this sum is how far the loss moves.

# %%
import functools

from course.reader.figures import widgets

numbers = {"x": 3.0, "w": 2.0, "b": 1.0, "y": 5.0}
backwards = figures.walk_of_squared_error(Tape, constant, VJPS, **numbers)
widgets.explore(
    functools.partial(figures.tape_backwards, backwards),
    "The tape, backwards, and a bump that meets it.",
    step=range(5),
    bump=["w", "x", "b", "y"],
    start={"step": 1},
)

# %% [markdown]
# **A good place to stop.** A tape records the ops of a loss, and one walk back gives the slope of each weight.
#
# ## Ten rows (5 min)
#
# Now there is a batch of ten rows, and a bias of shape (1, 4) that all of them share. The rule of an addition
# passes `dy` on as it is. Which shape does the gradient of the bias get?

# %%
dy = constant(np.ones((10, 4)))
VJPS["add"][1](dy, None, dy, constant(np.zeros((1, 4)))).shape

# %% [markdown]
# This is the shape of the batch. But b was used ten times, once in each row, so its gradient is the sum of ten
# shares. The way back through a repetition is a sum:
#
# | shape of `dx`, which the rule gives | of the input | what was repeated | so |
# |---|---|---|---|
# | (2, 3, 4) | (4,) | two axes that broadcasting put in front | add over these; they go |
# | (10, 4) | (1, 4) | axis 0, where the input has a 1 | add over it; it stays, as a 1 |
#
# The first case is done below. The second is **yours**: call `reduce_sum(dx, axis=…, keepdims=True)`
# for each axis where the sizes differ, and only there.


# %%
#| export autodiff blank unbroadcast
def unbroadcast(dx, shape):
    """dx summed over the axes in which an input of this shape was repeated."""
    extra = len(dx.spec.shape) - len(shape)
    if extra:
        dx = reduce_sum(dx, axis=tuple(range(extra)))
    ...  # 4 lines; now dx.spec.shape is as long as shape


# %% [markdown]
# <details><summary>Hint</summary>Walk over the pairs of <code>dx.spec.shape</code> and <code>shape</code>, with
# <code>enumerate</code> and <code>zip</code>: where they differ, sum over that axis.</details>
# <details><summary>Second hint</summary><code>dx = reduce_sum(dx, axis=axis, keepdims=True)</code> keeps all other
# axes where they are. At the end, return <code>dx</code>.</details>
# <details><summary>Solution</summary>
#
# ```python
# def unbroadcast(dx, shape):
#     """dx summed over the axes in which an input of this shape was repeated."""
#     extra = len(dx.spec.shape) - len(shape)
#     if extra:
#         dx = reduce_sum(dx, axis=tuple(range(extra)))
#     for axis, (have, wanted) in enumerate(zip(dx.spec.shape, shape, strict=True)):
#         if have != wanted:
#             dx = reduce_sum(dx, axis=axis, keepdims=True)
#     return dx
# ```
# </details>

# %% [markdown]
# ## The other rules (5 min)
#
# The way back through a sum is a repetition: each number of `x` gets the `dy` of its sum. This is an op of its own,
# `spread`. Its scalar function takes `dy` and a number of `x`, and returns `dy`. Its plan is that of a sum with
# input and result exchanged: `dy` is read at `i, j`, and written at `i, k, j` for each k.

# %%
#| export autodiff
from levels.kernels import PLANNERS, Plan, element_loop, lowered, reduced, scalar
from levels.support.shapes import check_reshape, same_dtype


def plan_spread(op, function, dy, x, axis=None):
    """Plan the way back through a sum: each number of x gets the dy of its sum."""
    _, whole = reduced(op, x.shape, axis)
    sums = whole[0], whole[2]  # (before the axis, after it)
    check_reshape(op, dy.shape, sums)
    dtype = same_dtype(op, dy, x)
    loop = element_loop(function, x, ["i, k, j", "i, j", "i, k, j"])
    return Plan(op, x.shape, dtype, [dy, x], lowered(loop, x), [whole, sums, whole])


scalar("spread")(lambda dy, x: dy)
PLANNERS["spread"] = plan_spread


def _sum_back(dy, y, x, axis=None, keepdims=False):
    return apply("spread", dy, x) if axis is None else apply("spread", dy, x, axis=axis)


# %% [markdown]
# For `y = x @ w`, level 2's backward pass already used both rules: `dx = dy @ wᵀ` and `dw = xᵀ @ dy`. Why is `xᵀ @
# dy` a sum over the rows? A weight is used once in each row, and so it gets a share from each. Here are two rows
# with two numbers:

# %%
x_two = constant([[1.0, 2.0], [3.0, 4.0]], "f8")
dy_two = constant([[10.0], [100.0]], "f8")
print("from row 1", x_two.numpy()[0] * 10.0, " from row 2", x_two.numpy()[1] * 100.0)
print("xᵀ @ dy   ", apply("matmul", x_two, dy_two, transpose_x=True).numpy().ravel())

# %% [markdown]
# The product is the sum of both rows' shares. Now each missing rule gets its entry in the table. (`relu_grad`,
# which you wrote, and `sigmoid_grad` are level 2's kernels. A mean needs no rule: it is a sum and a quotient.
# `gather` has none here, because training needs no gradient of the data.)


# %%
#| export autodiff most _matmul_back_w
def _matmul_back_x(dy, y, x, w):
    return apply("matmul", dy, w, transpose_w=True)


def _matmul_back_w(dy, y, x, w):
    return apply("matmul", x, dy, transpose_x=True)


# %%
#| export autodiff
VJPS["relu"] = (lambda dy, y, x: apply("relu_grad", dy, y),)
VJPS["sigmoid"] = (lambda dy, y, x: apply("sigmoid_grad", dy, y),)
VJPS["sqrt"] = (lambda dy, y, x: dy / (2.0 * y),)
VJPS["reduce_sum"] = (_sum_back,)
VJPS["matmul"] = _matmul_back_x, _matmul_back_w

# %% [markdown]
# ## The whole walk (8 min)
#
# Training needs the gradients of the **sources**, the tensors that we ask for. Only what was made from a source can
# pass a gradient on to it:


# %%
#| export autodiff
def reachable(sources, records):
    """Return the set of these tensors and all that were made from them."""
    made = set(sources)
    for _, inputs, _, y in records:
        if not made.isdisjoint(inputs):
            made.add(y)
    return made


# %% [markdown]
# `backward_pass` is the walk from above, with three additions. It skips each op that the target does not depend on,
# and each input that was not made from a source. It sums a gradient down to the shape of its input, with your
# `unbroadcast`. And it raises an error where a rule or a source is missing, in `check_rules` and `check_reached`
# from `levels/support`. (For a source that was not used, TensorFlow returns `None` and says nothing.)
#
# If the target has several numbers, we differentiate their sum: each of them begins with the gradient 1. (PyTorch's
# `backward` refuses such a target.) In `VJPS`, an op may have a second entry, for calls with attributes. Its key is
# the op's name and then the attributes' names, such as `("matmul", "transpose_x")`.

# %%
#| export autodiff most backward_pass
from levels.support.tapes import check_reached, check_rules


def backward_pass(records, target, sources):
    """Return the gradients of the sources: a walk backwards over a tape's records."""
    needed = reachable(sources, records)
    one = as_tensor(1.0, target)
    gradients = {target: apply("spread", one, target) if target.shape else one}
    for op, inputs, attrs, y in reversed(records):
        if y not in gradients:
            continue
        rules = VJPS.get((op, *attrs)) or VJPS.get(op)
        check_rules(op, attrs, rules)
        for x, vjp in zip(inputs, rules):
            dx = vjp(gradients[y], y, *inputs, **attrs) if vjp and x in needed else None
            if dx is not None:
                hand_on(gradients, x, unbroadcast(dx, x.spec.shape))
    return check_reached(sources, gradients)


# %% [markdown]
# A **GradientTape** is the tape with a method `gradient`, which is this walk. It gives one gradient: then its records
# are gone. (In TensorFlow it has the same name. PyTorch has no tape: each tensor holds its own record, its
# `grad_fn`.) It also keeps the value of each variable that was read. So `check_taped`, from `levels/support`, can
# refuse a gradient that would be wrong, for example after the variable was assigned. (PyTorch's error speaks of an
# "inplace operation" then.)

# %%
#| export autodiff most GradientTape.do
from levels.support.checks import check_options, not_copied
from levels.support.tapes import check_taped


class GradientTape(Watcher):
    """A tape that records each op in its `with` block. It is read once."""

    walk = staticmethod(backward_pass)

    def __init__(self, **options):
        check_options(GradientTape, options)
        self.records = []  # (op, inputs, attrs, y); None: it does not record
        self.variables = {}  # variable -> the tensor that was read first

    def do(self, op, plan, inputs, attrs):
        y = self.below.do(op, plan, inputs, attrs)
        if self.records is not None:
            self.records.append((op, inputs, attrs, y))
        return y

    def read(self, variable):
        x = self.below.read(variable)
        self.variables.setdefault(variable, x)
        return x

    def gradient(self, target, sources):
        """Return d target / d source: a tensor like the source, or a list for a list.

        If the target has several numbers, their sum is differentiated.
        """
        if not isinstance(sources, (list, tuple)):
            return self.gradient(target, [sources])[0]
        given = [target, *sources]
        tensors = _as_tensors(given)
        check_taped(self, given, tensors, Operators)
        records = self.records
        self.records = None  # the walk is not recorded
        return self.walk(records, tensors[0], tensors[1:])

    __reduce__ = not_copied("a tape", "it belongs to the tensors that it recorded")


# %% [markdown]
# ## Checking a rule with a nudge (3 min)
#
# It is easy to write a wrong rule, and no error tells you. So we check the rules of `@` and `*`: we nudge one
# number of a matrix up and down, and compare the slope with the tape's:

# %%
draw = np.random.default_rng(0)
start, m, a = [draw.normal(size=shape) for shape in ((3, 2), (2, 4), (3, 4))]


def total(x):
    return reduce_sum(a * (x @ m))


def by_tape(x):
    with GradientTape() as tape:
        loss = total(x)
    return float(tape.gradient(loss, x).numpy()[1, 0])


nudge = np.zeros((3, 2))
nudge[1, 0] = 1e-6
by_nudge = float(total(constant(start + nudge)) - total(constant(start - nudge))) / 2e-6
print(f"by the tape {by_tape(constant(start)):.6f}, by a nudge {by_nudge:.6f}")

# %% [markdown]
# They agree. Does a nudge also notice a wrong rule? We swap the two rules of `multiply`:

# %%
right, VJPS["multiply"] = VJPS["multiply"], VJPS["multiply"][::-1]
print(f"by a wrong tape {by_tape(constant(start)):.6f}")
VJPS["multiply"] = right

# %% [markdown]
# It does: the two are far apart.
#
# **A good place to stop.** You have a tape that gives the slopes of a loss, and a nudge that checks its rules.
#
# ## A train step (4 min)
#
# In a train step of the line, the forward pass is the formula. The backward pass is one line, and nobody derived
# it.

# %%
task = tasks.linear()
w, b = Variable(task.weights[0], "w"), Variable(task.weights[1], "b")


def step(rows, target):
    with GradientTape() as tape:
        prediction = rows @ w + b
        error = prediction - target
        loss = reduce_mean(error * error)
    dw, db = tape.gradient(loss, [w, b])
    w.assign(w - task.learning_rate * dw)
    b.assign(b - task.learning_rate * db)
    return loss


# %%
from levels import kernels

x_, y_ = constant(task.x), constant(task.y)


def train(step, batches):
    w.assign(task.weights[0])
    b.assign(task.weights[1])
    return [float(step(gather(x_, i), gather(y_, i))) for i in batches]


batches = task.batches[:2000]
losses = train(step, batches)
print(f"losses {losses[0]:.4g}, {losses[1]:.4g}, … {losses[-1]:.4g}")

# %% [markdown]
# Are they level 2's? And how long does a step take?

# %%
level_2 = kernels.tasks.linear_regression
below = level_2(task.x, task.y, task.weights, batches).losses
print("losses equal to level 2's:", losses == below.tolist())

# %% tags=["nbval-ignore-output"]
import timeit

hundred = task.batches[:100]
launches = functools.partial(level_2, *task[:2], task.weights, hundred)
for name, run in {"level 2": launches, "here": lambda: train(step, hundred)}.items():
    seconds = min(timeit.repeat(run, number=1)) / len(hundred)
    print(f"{name}: {seconds * 1e6:.0f} µs per step")

# %% [markdown]
# Comfort has a price. Each op passes the door and gets new memory. The ops of the forward pass are also recorded.
# On level 1 the step was one program without any Python. In the second sitting, the step above becomes such a
# program.
#
# ## A module finds its variables (5 min)
#
# The tape was asked for `[w, b]`. A model with many parts has to list its variables, too. A **module** finds them:
# in its attributes, and in lists, dicts and modules among them. (PyTorch's `nn.Module` does not look into lists:
# there you need a `ModuleList`.) `find_parts`, from `levels/support`, lists these **parts**, each once. A part's
# name is the way to it, such as `layers.0.kernel`. The **weights** of a module are the values of its variables, as
# NumPy arrays that can be read and set. Level 4 builds on it.

# %%
#| export module
"""A module finds its variables."""

import copy

from levels.support.checks import check_weights
from levels.support.parts import find_parts


class Module:
    """A holder of variables: in attributes, and in lists, dicts and modules there.

    A part whose class has an attribute `excluded`, such as a metric, is left out.
    """

    def named(self, kind):
        """Return {"layers.0.w": part of a class}. Raises ValueError for equal names."""
        return find_parts(self, Module, kind)

    __copy__ = copy.deepcopy  # a copy owns variables of its own

    variables = property(lambda self: list(self.named(Variable).values()))
    trainable_variables = property(lambda m: [v for v in m.variables if v.trainable])

    def get_weights(self):
        """Return the values of all variables, as NumPy arrays."""
        return [variable.numpy() for variable in self.variables]

    def set_weights(self, weights):
        """Assign these arrays to all variables, in order. Raises ValueError."""
        named = self.named(Variable)
        values = check_weights(weights, named, as_tensor)
        for variable, value in zip(named.values(), values):
            variable.assign(value)


# %% [markdown]
# A copied module gets variables of its own. For that, Python has to know how to copy a tensor and a variable.

# %%
#| export tensors
import copyreg

copyreg.pickle(Tensor, lambda x: (as_tensor, (x.numpy(),)))
copyreg.pickle(Variable, lambda v: (Variable, (v.numpy(), v.name, v.trainable)))

# %%
line = Module()
line.w, line.b = w, b
line.named(Variable)

# %% [markdown]
# **A good place to stop.** Tensors train a line. The losses are level 2's to the last bit, but each step is slow.
# This is the end of the first sitting.
#
# The next cell saves what is finished. For the rest it takes the course's cells. Then it trains both models in a fresh
# Python: the line and the net.

# %%
build.so_far("03_low_level")

# %% [markdown]
# ## Written down, not run (11 min)
#
# The third interpreter, `Trace`, computes nothing. A plan tells the shape of a result before any number is known.
# So `Trace` writes each op down as a **node**, with its `inputs`, the nodes that it reads. All nodes together are a
# **graph**. A graph begins with **leaves**, such as an argument. A leaf has no inputs, but a `source`.

# %%
#| export graph
"""Tracing: a function is run once on symbols, and its ops become a graph."""

from dataclasses import dataclass

from levels.hardware import Spec


@dataclass(eq=False)
class Node:
    """One op of a graph; or a leaf: an "input", a "variable" or a "constant"."""

    op: str
    inputs: list  # nodes
    attrs: dict
    spec: Spec
    source: object = None  # of a leaf: an input's position, a variable or a tensor

    def __repr__(self):
        return f"{self.op} {self.spec.dtype}{list(self.spec.shape)}"


# %% [markdown]
# While a function is traced, its tensors are **symbols**. A symbol has a shape and a node, but no numbers. (Reading
# them raises an error, from `NoNumbers` in `levels/support`.)

# %%
#| export graph
from levels.support.operators import NoNumbers


class Symbol(NoNumbers, Tensor):
    """A tensor whose numbers are not known yet; its `node` will compute them."""

    __slots__ = ("trace", "node")

    def __init__(self, trace, node):
        super().__init__(node.spec, source=node)  # the node, in place of memory
        self.trace = trace
        self.node = node


# %% [markdown]
# What existed before the trace becomes the `source` of a leaf. A tensor's leaf is a constant. A variable's leaf is
# read anew in each step.
#
# And `assign`? While a function is traced, no variable changes. `env` notes which symbol stands for the variable
# now, and the next `read` returns it. Take a function that reads `w`, assigns `w - 1.0`, and reads `w` again. The
# first read makes a leaf, the second gives the symbol of the difference. At the end, `env` tells the variable's new
# value.

# %%
#| export graph
from levels.support.programs import check_trace


class Trace(Interpreter):
    """The interpreter that records each op as a node, and runs none."""

    def __init__(self):
        self.nodes = []
        self.env = {}  # a variable or a constant -> its current value, a symbol

    def do(self, op, plan, inputs, attrs):
        return self.add_node(op, [self.node(x) for x in inputs], attrs, plan.spec)

    def read(self, variable):
        return self.add_leaf("variable", variable)

    def assign(self, variable, value):
        self.env[variable] = value

    def add_leaf(self, kind, x):
        """Return the symbol of a variable or a constant tensor; at first, a leaf."""
        if x not in self.env:
            self.env[x] = self.add_node(kind, [], {}, x.spec, x)
        return self.env[x]

    def add_node(self, *node):
        """Add a node to the trace, and return its symbol."""
        self.nodes.append(Node(*node))
        return Symbol(self, self.nodes[-1])

    def node(self, x):
        """Return the node of a symbol, or of a tensor as a constant."""
        x = x if type(x) is Symbol else self.add_leaf("constant", x)
        check_trace(x, self)
        return x.node


# %% [markdown]
# A `Graph` says which nodes are the results, and which node is the new value of each assigned variable.


# %%
#| export graph
@dataclass(eq=False)
class Graph:
    """A function of tensors as data."""

    nodes: list  # each after its inputs
    outputs: list  # the nodes of the results
    updates: dict  # variable -> the node of its new value

    ops = property(lambda self: [x for x in self.nodes if x.inputs], doc="No leaves.")

    def leaves(self, kind):
        """Return {source: leaf} for the leaves of this kind, such as "variable"."""
        return {node.source: node for node in self.nodes if node.op == kind}

    def __repr__(self):
        return ", ".join(node.op for node in self.ops)


# %% [markdown]
# `trace` runs a function on symbols. It is given the Specs of the arguments, their **signature**. If, at the end,
# `env` has another symbol for a variable than that of its leaf, the variable was assigned. Then the symbol's node
# goes into `updates`.

# %%
#| export graph most trace
from levels.support.programs import results_of


def trace(python, signature):
    """Run a function on symbols of these Specs. Return its graph and its result."""
    here = Trace()
    before = DOOR.top
    args = list(signature)
    for k, x in enumerate(args):
        if type(x) is Spec:
            args[k] = here.add_node("input", [], {}, x, k)
    DOOR.top = here
    try:
        result = python(*args)
        outputs = [here.node(as_tensor(x)) for x in results_of(result, python)]
    finally:
        DOOR.top = before
    # (from a copy of `env`, since `node` may add a constant)
    new = {v: here.node(x) for v, x in [*here.env.items()] if isinstance(v, Variable)}
    updates = {v: node for v, node in new.items() if node.source is not v}
    return Graph(here.nodes, outputs, updates), result


# %% [markdown]
# ## A step is data (2 min)
#
# Now we trace the whole train step, with its tape and its updates:

# %%
cpu = PLACE.device
signature = cpu.spec((10, 2), "f8"), cpu.spec((10, 1), "f8")
graph, result = trace(step, signature)
print(graphs.listed(graph))
print("returned:", result, " new values of", [v.name for v in graph.updates])

# %% [markdown]
# Not one number was computed. Forward pass, backward pass and update are in one list: the tape computes its
# gradients with ops, which go through the door, too. x0 and x1 are the arguments. The gradient of the loss is 1,
# that of the sum is a tenth of it, and `spread` gives this tenth to each row. t8 and t9 are the two shares of
# `error`, t10 is your `hand_on`, and t11 is your `unbroadcast`. So a train step is now data: a list of seventeen
# ops.
#
# ## Dead code (6 min)
#
# Since a step is data, a program can change it. Here is a function that computes something for nothing:


# %%
def wasteful(rows, target):
    exp(rows)  # and nobody needs it
    return reduce_mean(rows @ w + b - target)


before, _ = trace(wasteful, signature)
before

# %% [markdown]
# `needed_by` is **yours**. A node is needed if it is wanted, or if a needed node reads it. In which order must you
# go through the list, so that once is enough? (The check has a graph of four ops, one of them dead.)


# %%
#| export graph blank needed_by
def needed_by(nodes, wanted):
    """The nodes that are wanted, and all that these need, in the order of the list."""
    ...  # about 5 lines


# %% [markdown]
# <details><summary>Hint</summary>Keep a set of what is needed, which begins with what is wanted. A needed node makes its <code>inputs</code> needed.</details>
# <details><summary>Second hint</summary>Every input is older than the node that reads it. So go through the list from
# its end, and each node is decided when you reach it.</details>
# <details><summary>Solution</summary>
#
# ```python
# def needed_by(nodes, wanted):
#     """The nodes that are wanted, and all that these need, in the order of the list."""
#     needed = set(wanted)
#     for node in reversed(nodes):
#         if node in needed:
#             needed.update(node.inputs)
#     return [node for node in nodes if node in needed]
# ```
# </details>


# %%
#| export graph
def dce(graph):
    """Eliminate dead code: keep the nodes that a result or a new value needs."""
    wanted = [*graph.outputs, *graph.updates.values()]
    return Graph(needed_by(graph.nodes, wanted), graph.outputs, graph.updates)


# %%
dce(before)

# %% [markdown]
# `exp` is gone. Compilers call a function like `dce` a **pass**: it takes a graph and returns one that computes the
# same with less work. (The backward pass is something else.)
#
# ## Replay (9 min)
#
# What runs a graph is a **back end**. The simplest one, `Replay`, runs the ops in order. It looks up all plans
# beforehand. In `run`, each leaf gets its value from its `source`, and each op goes to the interpreter at the
# bottom. At the end of the step, each new value goes into its variable: here `assign` takes effect. `alias`, from
# `levels/support`, makes each result a tensor of its own, so that none is the very tensor of a variable. `over` runs
# many steps, and `_stacked` collects their losses.

# %%
#| export replay most Replay.run
"""The simplest back end: it runs the ops of a graph one by one."""

from levels.support.storage import alias


class Replay:
    """A graph that runs op by op, without its Python code. `why`: why no program."""

    def __init__(self, graph, why=""):
        self.graph = graph
        self.why = why
        self.lock = threading.Lock()
        specs = {node: [x.spec for x in node.inputs] for node in graph.ops}
        self.plans = [(x, planned(x.op, specs[x], x.attrs)) for x in graph.ops]

    def run(self, args):
        """Run one step: update the variables, and return the results."""
        read = {"variable": Variable.read_value, "constant": as_tensor}
        read["input"] = args.__getitem__  # its source is its position
        with self.lock:  # one thread at a time
            values = {x: read[x.op](x.source) for x in self.graph.nodes if not x.inputs}
            for node, plan in self.plans:
                inputs = [values[x] for x in node.inputs]
                values[node] = DOOR.bottom.do(node.op, plan, inputs, node.attrs)
            for variable, node in self.graph.updates.items():
                variable.set_value(values[node])
        return [alias(values[node]) for node in self.graph.outputs]

    def over(self, args, batches):
        """Run a step for each row of `batches`. Each result has one number per step."""
        return _stacked([self.run([gather(x, rows) for x in args]) for rows in batches])

    def __repr__(self):
        return f"{len(self.plans)} ops, one after the other"


# %%
#| export replay
from levels.support.programs import single_numbers


def _stacked(steps):
    """Return a tensor for each result, with one number per step."""
    return [constant(np.array(numbers)) for numbers in zip(*single_numbers(steps))]


# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "03-print",
    "`step` gets a line `print('step', loss)`. It is traced once, and then its graph "
    "is run 100 times. What is printed?",
    choices=["100 lines, each with a loss", "one line, with a symbol", "nothing"],
)


# %%
def talking_step(rows, target):
    loss = step(rows, target)
    print("step", loss)
    return loss


replay = Replay(trace(talking_step, signature)[0])
again = train(lambda *args: replay.run(args)[0], hundred)

# %%
checks.answer_to("03-print")

# %%
print("losses equal to the step's:", again == losses[:100])

# %% [markdown]
# The losses are the same. But each op is still its own launch.
#
# **A good place to stop.** A step runs as a list of ops, without its Python code.
#
# ## Which ops have rows (5 min)
#
# No row of the batch needs another row. So a step can be a loop over the rows, which adds each row's shares to the
# sums. The update follows the loop. You wrote that program by hand in notebook 01. Now we write it from the graph.
#
# Which op belongs where? We make each plan a second time, for a batch with **one row more**, and see whether the
# result grows. Take `rows @ w + b`. For ten rows, the product has the shape (10, 1), and for eleven (11, 1): one
# number per row. The sum of the squares, t4, has the shape () in either case, and it reads rows. The loss, t5,
# reads only this sum. The shape of `w` is (2, 1), whatever the batch.
#
# So each node belongs to one of four parts. The result of a `row` grows. A `sum` reads rows, but its result does
# not grow. What needs a sum comes `after` the loop, and the rest comes `before` it. `larger_spec`, from
# `levels/support`, looks up the larger plan. Some graphs do not fit, for example if an op needs both rows and a sum
# over rows. Then `NoProgram` is raised, with the reason.

# %%
#| export row_program
"""A back end that makes a step one program: a loop over the rows, then the update."""

from levels.support import programs
from levels.support.rows import larger_spec

NoProgram = programs.NoProgram  # the reason why a graph cannot become a program


def row_parts(graph, batch):
    """Return {node: its part, "before", "row", "sum" or "after"}. Raises NoProgram."""
    parts = {}
    larger = {}  # node -> its Spec for a batch with one row more
    for node in graph.nodes:
        read = {parts[x] for x in node.inputs}
        needs_sum = bool(read & {"sum", "after"})
        if "row" in read and needs_sum:
            raise NoProgram(f"{node!r} needs more than a row at a time")
        inputs = [larger[x] for x in node.inputs]
        larger[node] = larger_spec(planned, node, inputs, batch)
        if larger[node] is not node.spec:
            parts[node] = "row"
        elif "row" in read:
            parts[node] = "sum"
        else:
            parts[node] = "after" if needs_sum else "before"
    return parts


# %%
parts = row_parts(graph, 10)
figures.drawing.graph_drawing(graph, ["rows", "target"], parts)

# %% [markdown]
# What is blue has rows: the arguments, the prediction, the error, its square, its gradient. What is green adds them
# up: the sum of the squares, and the slopes of `w` and `b`. Pink comes after: the loss and the update. Grey comes
# before.
#
# ## An op, one row at a time (9 min)
#
# For a single row, a `matmul` is computed by notebook 01's `dot`. Any other op calls its scalar function of
# notebook 02 for each number. These functions use only what floats and registers both can do. With Python's floats
# they compute a number. With registers of an assembler they *write* the instructions.
#
# `_each` calls a function for every entry of an array. A NumPy array of objects can hold floats or registers. (A
# scalar function with an `if` on a number fails here. Then `told_by`, from `levels/support`, raises `NoProgram`.)

# %%
#| export row_program
from levels.hardware import dot
from levels.kernels import ELEMENTWISE, KERNELS
from levels.support.rows import check_form, told_by


def _each(function, *arrays):
    """Call a function for each number of the broadcast arrays. Return its results."""
    return np.asarray(np.frompyfunc(function, len(arrays), 1)(*arrays), object)


def as_instructions(node, *values, **numbers):
    """Call an op's scalar function on registers. Raises NoProgram if that fails."""
    with told_by(node.op):
        return KERNELS[node.op, node.spec.device.kind](*values, **numbers)


def _elementwise(node, shape, *inputs):
    check_form("single numbers", node.op, ELEMENTWISE)
    attrs = {name: value for name, value in node.attrs.items() if name != "shape"}
    written = functools.partial(as_instructions, node, **attrs)
    return np.broadcast_to(_each(written, *inputs), shape)


def _products(node, shape, x, w):
    x = x.T if node.attrs.get("transpose_x") else x
    w = w.T if node.attrs.get("transpose_w") else w
    found = [dot(row, unit) for row in x for unit in w.T]
    return np.array(found, object).reshape(shape)


def _repeated(node, shape, dy, x):
    """Return the numbers of a "spread": the dy of its sum for each number of x."""
    _, (before, within, after) = reduced(node.op, shape, node.attrs.get("axis"))
    dy = dy.reshape(before, 1, after)
    x = x.reshape(before, within, after)
    return _each(functools.partial(as_instructions, node), dy, x).reshape(shape)


# op -> its numbers, from those of its inputs; else `_elementwise`
LOWERINGS = {"matmul": _products, "spread": _repeated}

# %% [markdown]
# `_numbers_of` chooses the function for an op. An op that adds rows up has an entry in a second table, `SHARES`:
# what a single row adds to the op's sums. For the slopes of `w`, this is the row times the gradient of its error.


# %%
#| export row_program
def _numbers_of(node, part, inputs):
    """Return the numbers of an op, for one row if it has rows, from those of inputs."""
    shape = (1, *node.spec.shape[1:]) if part == "row" else node.spec.shape
    return LOWERINGS.get(node.op, _elementwise)(node, shape, *inputs)


SHARES = {  # op that adds rows up -> the terms that a row adds to its sums
    "matmul": lambda shape, x, dy: [x.T * dy],
    "reduce_sum": lambda shape, x: x.reshape(-1, *shape),
}

# %% [markdown]
# First we run the whole step with Python's own floats. What comes before is computed once. Then, for each row, all
# blue ops are computed, and each green op adds a share to its sum. What comes after is computed last. For a blue
# node, `values` holds only the current row.


# %%
def by_rows(graph, parts, args):
    known = graph.leaves("variable") | graph.leaves("constant")
    values = {x: source.numpy() for source, x in known.items()}
    sums = {x: 0.0 for x in graph.ops if parts[x] == "sum"}

    def compute(part):
        for x in graph.ops:
            if parts[x] == part:
                values[x] = _numbers_of(x, part, [values[y] for y in x.inputs])

    compute("before")
    for k in range(len(args[0])):  # the loop over the rows
        for number, x in graph.leaves("input").items():
            values[x] = args[number][k : k + 1]
        compute("row")
        for x in sums:
            for share in SHARES[x.op](x.spec.shape, *[values[y] for y in x.inputs]):
                sums[x] = sums[x] + share
    values |= sums
    compute("after")
    return values


batch = task.x[hundred[0]], task.y[hundred[0]]
values = by_rows(graph, parts, batch)
new = values[graph.updates[w]].astype(float)
print("row by row: loss", values[graph.outputs[0]], " w", *new)
print("op by op:   loss", step(*map(constant, batch)).numpy(), " w", *w.numpy())

# %% [markdown]
# Both give the same numbers: the ops stay, and each of them takes one row at a time.
#
# **A good place to stop.** A list of ops on whole batches has become a loop over rows.
#
# ## The row program (16 min)
#
# The program of the step is `by_rows`, written with an assembler: the same functions get registers in place of
# floats. So they write instructions, and nothing is computed yet. First an `OpWriter` declares the arrays of the
# program, with `declared` from `levels/support`. Its `compute` does what `compute` did above. A constant is written
# into the program. `load_all` loads any other leaf from its array. If the leaf has rows, it loads one row.

# %%
#| export row_program
from levels.hardware import Assembler
from levels.support.rows import declared, load_all, store_all


class OpWriter:
    """Writes the ops of a graph as instructions, for batches of one size."""

    assembler = Assembler

    def __init__(self, graph, parts, batch):
        self.graph = graph
        self.parts = parts
        self.batch = batch
        self.values = {}  # node -> its numbers or registers, as an array: of one row
        (first, *_) = graph.leaves("input").values()  # all have one dtype
        self.a = self.assembler("steps", first.spec.dtype)
        self.batches = self.a.array("batches", "steps", batch, rows_of="rows")
        self.outs, self.arrays = declared(self.a, graph, parts)

    def value_of(self, node, row):
        """Write an op, the loads of a leaf, or new sums. Return the registers."""
        if self.parts[node] == "sum":
            return _each(lambda _: self.a.sum(), np.empty(node.spec.shape))
        if node.op == "constant":
            return node.source.numpy().astype(object)
        if not node.inputs:
            shape = node.spec.shape if row is None else (1, *node.spec.shape[1:])
            return load_all(self.a, self.arrays[node.source], shape, row)
        inputs = [self.values[x] for x in node.inputs]
        return _numbers_of(node, self.parts[node], inputs)

    def compute(self, part, row=None):
        """Write all ops of a part."""
        for node in self.graph.nodes:
            if self.parts[node] == part:
                self.values[node] = self.value_of(node, row)


# %% [markdown]
# A `StepWriter` does what `by_rows` does. Read `write` beside it: before, the loop over the rows, the sums, after.
# Around all of it stands one more loop, over the steps. And a row's number is loaded first, as in notebook 01.
#
# What has become of `assign`? At the end of each step, `keep` stores the new values into arrays that belong to the
# variables alone. So the next step loads what this step has stored. (`keep` also stores the results, some of them row
# by row.)

# %%
#| export row_program
import operator


class StepWriter(OpWriter):
    """Writes a loop over steps: what is before the rows, each row, what is after."""

    def write(self):
        """Write the program, and return it."""
        sums = [node for node, part in self.parts.items() if part == "sum"]
        with self.a.loop("steps") as step:
            self.compute("before")
            self.compute("sum")
            with self.a.loop(self.batch) as k:
                self.compute("row", self.row_number(step, k))
                for node in sums:
                    self.add_row(node)
                self.keep(step, k)
            for node in sums:
                self.values[node] = self.totals(self.values[node])
            self.compute("after")
            self.keep(step)
        return self.a.assemble()

    def row_number(self, step, k):
        """Load the number of row k of a step's batch."""
        return self.a.load(self.batches, step, k)

    def add_row(self, node):
        """Add to an op's sums what one row has. Raises NoProgram if SHARES lacks it."""
        check_form("the share of a row", node.op, SHARES)
        inputs = [self.values[x] for x in node.inputs]
        for term in SHARES[node.op](node.spec.shape, *inputs):
            _each(operator.iadd, self.values[node], term)

    def totals(self, sums):
        """Return the totals of an array of running sums."""
        return _each(lambda one: one.total(), sums)

    def keep(self, step, row=None):
        """Store the results and new values of a row, or else those of the step."""
        stores = [(x, out, (step,)) for x, out in zip(self.graph.outputs, self.outs)]
        stores += [(x, self.arrays[v], ()) for v, x in self.graph.updates.items()]
        for node, array, before in stores:
            of_a_row = self.parts[node] == "row"
            if of_a_row == (row is not None):
                store_all(self.a, array, self.values[node], row, before)


# %% [markdown]
# `RowProgram` checks the graph, writes the program, and launches it. The checks, from `levels/support`, accept one
# float dtype, on a CPU. If you have replaced the kernel of `matmul`, no program is made, so that your kernel runs.
#
# A program takes whole numbers: sizes, and the addresses of arrays. `Block`, from `levels/support`, packs them, and
# locks the variables while the program overwrites their numbers. No tensor shares these arrays, so one that you took
# with `w.value` still never changes.
#
# `run` does one step on all rows of its arguments: `every` lists their numbers, 0, 1 and so on. `over` runs as many
# steps as `batches` has rows. (Level 1's `checked` is not called: `every` always fits, and `batches_of_rows`,
# below, has checked `batches`.)

# %%
#| export row_program
from levels.support.programs import check_fits
from levels.support.rows import check_rows
from levels.support.storage import Block


class RowProgram:
    """A graph as one program. Raises NoProgram if it cannot become one."""

    writer = StepWriter

    def __init__(self, graph, batch, over=False):
        check_fits(graph, KERNELS, ELEMENTWISE)
        self.graph = graph
        self.parts = row_parts(graph, batch) if batch else {}
        check_rows(self.parts)
        self.program = self.writer(graph, self.parts, batch).write()
        self.inputs = [*graph.leaves("input")]
        self.variables = [*graph.leaves("variable") | graph.updates]  # read or assigned
        self.block = Block(self.program.words, self.variables, graph.updates)
        self.specs = [x.spec for x in graph.outputs]
        self.every = np.arange(batch, dtype=np.int64)
        self.once = 1, batch, self.every.ctypes.data  # steps, rows, row numbers

    def launch(self, args, specs, sizes):
        """Run the program, which overwrites the variables. Return the results."""
        outs = [*map(Tensor, specs)]
        arrays = [x.data for x in outs]
        for k in self.inputs:
            arrays.append(args[k].data)
        with self.block.locks:  # any thread may call it
            self.program.run(self.block.words(sizes, arrays))
        return outs

    def run(self, args):
        """Run one step: update the variables, and return the results as new tensors."""
        return self.launch(args, self.specs, self.once)

    def over(self, args, batches):
        """Run a step for each row of `batches`. Each result has one number per step."""
        steps = len(batches)
        specs = [spec.device.spec((steps,), spec.dtype) for spec in self.specs]
        return self.launch(args, specs, (steps, len(args[0].data), batches.ctypes.data))

    def __repr__(self):
        return f"{len(self.graph.ops)} ops in one row program"


# %%
program = RowProgram(graph, 10)
once = train(lambda *args: program.run(args)[0], hundred)
print("losses equal to the step's:", once == losses[:100])
print(*[x for x in program.program.text.splitlines() if " = f" in x][:10], sep="\n")

# %% [markdown]
# One launch does a step, and the losses are the same. The first five instructions are the prediction, whose sum
# starts at 0.0. Then come the error, its square, the two shares of the error's gradient, and their sum.
# (0x3FB999999999999A is 0.1.)
#
# **When do kernels run at all?** When ops run one by one, at once or in a replay, each launches its kernel. In a row
# program, no kernel is launched: the scalar functions were called once, when the program was written.
#
# **A good place to stop.** A train step is one program.
#
# ## A function, compiled once (14 min)
#
# What is left is to do all of that once, and to keep the program. `function` does this for any function, as
# `tf.function` and `jax.jit` do. `BACK_ENDS` lists the back ends that make one program of a graph: here only
# `RowProgram`; `levels_more` adds others. (Level 2's `BACKENDS` are compilers of kernels.) If none fits, `Replay`
# runs the ops, which is slower, and `say_replayed`, from `levels/support`, says so.

# %%
#| export functions
"""A function that is traced once for each signature, and then runs as a program."""

from levels.support.programs import say_replayed

PASSES = [dce]  # functions that make a graph smaller, in this order
BACK_ENDS = [RowProgram]  # they make a program of a graph; the first that fits does it


def _program_of(function, graph, batch, over):
    """Return the program of the first back end that fits, else a Replay."""
    reasons = {}
    for back_end in BACK_ENDS:
        try:
            return back_end(graph, batch, over)
        except NoProgram as why:  # then the next one is tried
            reasons.setdefault(str(why), back_end.__name__)
    return Replay(graph, say_replayed(function, graph, batch, reasons))


# %% [markdown]
# A function has one program per **cache key**: the Specs of the tensors, and other arguments by value. Anything
# else that Python reads, such as the learning rate in a closure, is read once, during the trace. If a kernel is
# replaced, `KERNELS.version` changes, and so does the key.
#
# `compile` is a summary of this notebook: trace, apply the passes, choose a back end. `program` looks the key up.
# If it is new, `made_once` calls `compile`, in one thread at a time. If a first trace made variables, as layers of
# level 4 do, `settled` traces again. (Both are from `levels/support`.)

# %%
#| export functions
from levels.support.programs import check_function, check_single, made_once
from levels.support.storage import settled


class _Programs:
    """A function and its programs, one for each signature."""

    __reduce__ = not_copied("a function", "it holds programs and variables")

    def __init__(self, python):
        check_function(python)
        functools.update_wrapper(self, python)
        self.python = python
        self.lock = threading.RLock()
        self.renew()

    def renew(self):
        """Discard the programs, so that the next call traces again."""
        self.programs = {}  # key -> (program, what the traced function returned)
        self.traces = 0

    def program(self, args, key, over):
        """Return the program for arguments like these, and the traced result."""
        key = key, over, KERNELS.version
        return self.programs.get(key) or made_once(self, key, args, over)

    def compile(self, args, over):
        """Trace the function, run the passes, and choose a back end."""
        self.traces += 1
        signature = [x.spec if isinstance(x, Tensor) else x for x in args]
        graph, result = self.traced(signature, over)
        for one_pass in PASSES:
            graph = one_pass(graph)
        sizes = [x.shape[0] for x in signature if type(x) is Spec and x.shape]
        return _program_of(self, graph, sizes[0] if sizes else None, over), result

    def traced(self, signature, over):
        """Return the graph, and what the function returned."""
        graph, result = settled(lambda: trace(self.python, signature))
        check_single(graph.outputs if over else [])
        return graph, result


# %% [markdown]
# A call runs one step. `over` takes whole arrays and the row numbers of all steps, and hands them to the program in
# one call. Inside a tape or a trace, a function runs as plain Python, so that every op is seen. `cache_key` gives
# the key of an argument that is not a tensor. `batches_of_rows` checks the row numbers, and splits off a shorter
# last batch, which needs a program of its own. `packed` puts the results into a tuple or list if the function
# returned one. (All three are from `levels/support`.)

# %%
#| export functions most Function.__call__
from levels.support.checks import cache_key
from levels.support.inputs import batches_of_rows, specs_of_batch
from levels.support.programs import packed


class Function(_Programs):
    """A function of tensors, traced once for each signature, then run as a program.

    Raises TypeError for what cannot be called, and for arguments that cannot be keys.
    """

    def __call__(self, *args):
        if DOOR.top is not DOOR.bottom:  # a tape or a trace needs to see every op
            return self.python(*args)
        arrays = np.ndarray, Variable
        args = [as_tensor(x) if isinstance(x, arrays) else x for x in args]
        key = tuple([x.spec if type(x) is Tensor else cache_key(x) for x in args])
        program, result = self.program(args, key, False)
        return packed(program.run(args), result)

    def over(self, *args):
        """over(x, y, …, batches): run a step on the rows x[i], y[i], … for each array i
        of row numbers. Return a step's results, each with one number per step.
        """
        *args, batches = args or [None]  # no arguments: `batches_of_rows` refuses
        args = _as_tensors(args)
        parts = batches_of_rows(args, batches)  # two, if the last batch is shorter
        if DOOR.top is not DOOR.bottom:
            batches = [rows for part in parts for rows in part]
            steps = [self.python(*[gather(x, i) for x in args]) for i in batches]
            return packed(_stacked([results_of(step) for step in steps]), steps[-1])
        outs = []
        for part in parts:
            specs = specs_of_batch(args, part)
            program, result = self.program(specs, specs, over=True)
            outs.append(program.over(args, part))
        if len(outs) > 1:
            outs = [[constant(np.concatenate(both)) for both in zip(*outs)]]
        return packed(outs[0], result)


function = Function

# %% [markdown]
# `eager` opens a `Watcher`, which records nothing. While it is open, a `function` runs as plain Python, op by op:
# in eager mode.


# %%
#| export functions
def eager():
    """Return a `with` block in which a `function` runs undecorated, op by op."""
    return Watcher()


# %%
@function
def compiled(rows, target):
    print(f"  Python runs, on {rows}")
    return step(rows, target)


for count in (10, 10, 4, 10):
    i = task.batches[0][:count]
    print(f"{count} rows: loss {float(compiled(gather(x_, i), gather(y_, i))):.4f}")

# %% [markdown]
# Python runs once for each shape, on symbols, and once more for `over`. That first run is the **trace**, and a new
# shape causes a **retrace**. All other calls run the program alone. Now we train: a hundred calls, then one call of
# `over` for all other batches, with no Python between the steps.

# %%
both = train(compiled, hundred)
both += compiled.over(x_, y_, task.batches[100:]).numpy().tolist()
print("losses equal to the step's:", both[:2000] == losses)

# %% [markdown]
# `over` has a trace of its own. (A function with `if x > 0.0:` in it is refused: during a trace, no number is
# known. Use `where`, from [more ops](more/03_more_ops.ipynb).)
#
# PyTorch's `torch.compile` reads the function's bytecode instead. If a Python value that the function reads has
# changed, it compiles again. (For some numbers it does so only once, and leaves the value open.) A `print`, or an
# `if` on a tensor, breaks the graph in two, and runs in every call.
#
# **A good place to stop.** A `function` turns a train step into one program, and keeps it.
#
# ## The two tasks on this level (7 min)
#
# ### Data
#
# The data are those of level 1: the line and the two rings.

# %% [markdown]
# ### Model and training
#
# The step is what it was. `@function` stands above it, and the loop over the batches is one call of `over`.

# %%
#| export tasks
"""The two tasks with tensors: formulas, the tape, and all steps in one program."""

from levels.hardware.tasks import Fit
from levels.support.inputs import check_inputs, check_task


def linear_regression(x, y, weights, batches, learning_rate=0.0005):
    """Train a line by SGD on the mean squared error; see `Fit` and `check_task`."""
    check_task(x, y, weights, batches, learning_rate, units=[1])
    w, b = map(Variable, weights)  # model

    @function
    def step(rows, target):
        with GradientTape() as tape:
            prediction = rows @ w + b  # forward
            error = prediction - target  # loss
            loss = reduce_mean(error * error)
        dw, db = tape.gradient(loss, [w, b])  # backward
        w.assign(w - float(learning_rate) * dw)  # update
        b.assign(b - float(learning_rate) * db)
        return loss

    losses = step.over(constant(x), constant(y), batches).numpy()

    def predict(x):
        check_inputs(x, w.dtype, w.shape[0])
        return (constant(x) @ w + b).numpy()

    return Fit(losses, [w.numpy(), b.numpy()], predict)


# %% [markdown]
# ### Result
#
# The losses are those of the step above:

# %%
fit = linear_regression(task.x, task.y, task.weights, task.batches, task.learning_rate)
print(f"losses equal: {fit.losses.tolist() == both}, the last {fit.losses[-1]:.4g}")
figures.regression(task, fit)

# %% [markdown]
# ### The second task: a net
#
# The forward pass of the net is its formula:


# %%
#| export tasks
def dnn(x, weights):
    """Return the probability [n, 1] for the rows x[n, features]."""
    w1, b1, w2, b2, w3, b3 = weights
    h1 = relu(x @ w1 + b1)
    h2 = relu(h1 @ w2 + b2)
    return sigmoid(h2 @ w3 + b3)


# %% [markdown]
# The loss is that of level 1. The rest is as in `linear_regression`:


# %%
#| export tasks
def dnn_classifier(x, y, weights, batches, learning_rate=0.01):
    """Train `dnn` by SGD on binary cross-entropy; see `Fit` and `check_task`."""
    check_task(x, y, weights, batches, learning_rate, units=[4, 8, 1])
    weights = [Variable(w) for w in weights]  # model

    @function
    def step(rows, target):
        with GradientTape() as tape:
            prediction = dnn(rows, weights)  # forward
            c = clip(prediction, 1e-7, 1.0 - 1e-7)  # loss
            loss = -reduce_mean(target * log(c) + (1.0 - target) * log(1.0 - c))
        gradients = tape.gradient(loss, weights)  # backward
        for w, dw in zip(weights, gradients):  # update
            w.assign(w - float(learning_rate) * dw)
        return loss

    losses = step.over(constant(x), constant(y), batches).numpy()

    def predict(x):
        check_inputs(x, weights[0].dtype, weights[0].shape[0])
        return dnn(constant(x), weights).numpy()

    return Fit(losses, [w.numpy() for w in weights], predict)


# %%
rings = tasks.rings()
ring_fit = dnn_classifier(*rings[:2], *rings[4:7])
figures.classifier(rings, ring_fit)

# %% [markdown]
# ## What this level cost (1 min)
#
# `compare.measure` trains both tasks on level 2 and on this level, op by op ("eager") and compiled. The time of a
# step is predicted by level 1's formula.

# %% tags=["nbval-ignore-output"]
below = kernels.tasks
line = compare.measure(task, below.linear_regression, linear_regression, last=500)
net = compare.measure(rings, below.dnn_classifier, dnn_classifier, last=50, repeats=1)
compare.costs(line, net)

# %% [markdown]
# Compiled, all steps are one launch. Its predicted time is that of a training of one step, with its trace, divided by
# the number of steps. (A measured time may be shorter.) The prediction for an eager step leaves out the tape and the
# walk.
#
# ## Side by side (4 min)
#
# Look at *backward*, for the line and for the net: one line replaces all of level 2's.

# %%
compare.side_by_side(line, net)

# %% [markdown]
# ## The same in TensorFlow and PyTorch (1 min)
#
# This is the line in three spellings, 200 steps each. Only `model`, `backward` and `update` differ in more than a name.
# (In ours, `# loss` stands one line earlier, at the error.)

# %%
framework_programs.beside(task, linear_regression)

# %% [markdown]
# Six questions, with places in their source and ours:

# %% tags=["hide-input"]
real_ones.table(3)

# %% [markdown]
# [Slopes differ](more/05_differences.ipynb) in
# [clamp](more/05_differences.ipynb#slope_of_clamp_at_its_bounds),
# [maximum](more/05_differences.ipynb#slope_of_maximum_of_equals), [max](more/05_differences.ipynb#slope_of_max_along_an_axis_with_ties),
# [abs](more/05_differences.ipynb#slope_of_abs_at_0), [norm](more/05_differences.ipynb#slope_of_a_norm_at_0).
#
# ## What you do differently now (1 min)
#
# A gradient comes from a walk over a record. If a gradient is missing, you look for a step that the record did not
# see, for example one in NumPy. You check your own rule with a nudge. You know that a tape keeps all recorded
# tensors in memory until you ask for the gradient. In TensorFlow and JAX you expect a `print` to run once per
# trace, and a new shape to cause a retrace. When a compiled step is slow or wrong, you print its graph before and
# after the passes.

# %% [markdown]
# ## Exercises (optional)
#
# As in the notebooks before: fill the stub, run, and read what the check says. What you write is run on this
# notebook's own tensors, in many shapes, in float32 and in float64. (The exercises that are missing here, such as
# 03-2, are in the notebooks named below.)
#
# ### 03-1 · A rule for a layer
#
# `x @ w + b` is two ops on the tape. As one op it would need one rule that gives a gradient for each input. Look at
# one row, and at what is multiplied by what:
#
# ```
#  x[i, k] ── w[k, j] ──┐
#                       + ── y[i, j]         dy[i, j] goes to x[i, k], times w[k, j]
#             b[j] ─────┘                                  to w[k, j], times x[i, k]
#                                                          to b[j]
# ```
#
# If one number goes into many results, its gradient is a sum over all of them: `x[i, k]` goes into `y[i, j]` for
# every j, and `w[k, j]` for every i. And `b` may have any shape that can be added to the product: `(1, units)`,
# `(units,)`, even `()`. (About 3 lines. Hint: `apply("matmul", …, transpose_w=True)`, and `unbroadcast`. The check
# compares with nudges. Write the rule with tensors: a rule in NumPy would have no gradient of its own.)

# %%
from course.reader import exercises

exercises.begin("03-1")


def dense_rule(dy, y, x, w, b):
    """Return dx, dw, db of y = x[rows, inputs] @ w[inputs, units] + b, given dy."""
    return ...


exercises.check("03-1", dense_rule)

# %% [markdown]
# ### 03-5 · Break it: no order
#
# Our tape is a list. [PyTorch](https://pytorch.org/docs/stable/notes/autograd.html) has no such list: each tensor knows
# what made it (`grad_fn`), and `backward` collects these makers, starting at the loss. Here is a way to collect them
# that looks reasonable:

# %%
from course.reader import exercises

exercises.begin("03-5")


def collected(makers, target):
    """List the records that made the target, its inputs, and so on; its own last."""
    found, waiting = {}, [target]
    for tensor in waiting:  # the list grows during the loop
        if tensor in makers and tensor not in found:
            found[tensor] = makers[tensor]
            waiting.extend(makers[tensor][1])
    return list(found.values())[::-1]


v = Variable(np.array(3.0))
for formula in (lambda u: u * u + u, lambda u: u + u * u):
    with GradientTape() as tape:
        z = formula(v * 2.0)
    makers = {record[3]: record for record in tape.records}
    (dv,) = backward_pass(collected(makers, z), z, [v.value])
    print(f"z {float(z)}, dv {float(dv)}")

# %% [markdown]
# The two formulas are the same sum, with its terms exchanged. The value is the same, the gradient is not, and there
# is no error. Which of the two is right? (Check with a nudge.) Then look for the cause. This line prints the list for
# the second formula: `print([(op, [float(x) for x in xs], float(y)) for op, xs, _, y in collected(makers, z)])`. One
# record in it uses a tensor before the record that makes it. `tape_drawing(tape.records)`, from
# `course.reader.figures.drawing`, shows why: two paths lead from z to u, a short one and a long one.
#
# Write a collector that is right for every graph. (About 10 lines. Hint: enter a record only after the makers of all
# its inputs. A function inside the function can call itself. Keep what you have seen in a set, since a search in a
# list would compare tensors.)

# %%
from course.reader import exercises

exercises.begin("03-5")


def in_order(makers, target):
    """List the records that the target was made from.

    Each comes once, after the records that made its inputs. makers is {tensor: the
    record (op, inputs, attrs, tensor) that made it}, without tensors that no op made.
    """
    return ...


exercises.check("03-5", in_order)

# %% [markdown]
# This is a **topological order**. The tape has it for free: a program cannot use what it has not made yet.
#
# ### Without a check
#
# - Print `[op for op, *_ in tape.records]` after the forward pass in `step`. Which record belongs to which operator?
#   (There are six records: a mean is two of them.)
# - Remove the call of `unbroadcast` from `backward_pass`, then train `linear_regression`. Which error do you get, and
#   from where? (From `assign`: the gradient of b has a row for each row of the batch.)
# - Let `backward_pass` run over the records forwards. What happens, and why? (It says that source 0 was not used: the
#   walk reaches the loss last, when it has passed everything else.)
# - Make an op of the `hypotenuse` of notebook 02's exercises, and give it a rule for each input, `dy·a/y` and `dy·b/y`.
#   Does it agree with a nudge? Where would it not?
#
# ## Where to go from here
#
# Next comes [4 · Mid-level API](04_mid_level.ipynb): a part owns its variables, and nobody has to name a weight.
#
# Notebook 05 follows one step [from `fit` to the multiply](05_high_level.ipynb#From-fit-to-the-multiply). The
# stages 3a and 3b are on this level.
#
# Each of these notebooks takes one idea further: [PyTorch's programs](more/03_torch.ipynb) (a tape that is always
# open), [second derivatives](more/03_second_derivatives.ipynb) (tapes in tapes), [passes](more/03_passes.ipynb),
# [fused programs](more/03_fused.ipynb) (steps that do not split by rows), [more ops](more/03_more_ops.ipynb).
#
# ## Build
#
# Both tasks run 1,000 steps, here and in a fresh process.

# %%
build.level("03_low_level", linear_regression, dnn_classifier)

# %% [markdown]
# Level 3 stands. Next: [4 · Mid-level API](04_mid_level.ipynb).

# %% [markdown]
# # 3 · Low-level API
#
# **In this notebook every operation passes one door, and what stands at the door differentiates your program.**
#
# This is the level of `tf.Tensor` and `torch.Tensor`, of `GradientTape` and `autograd`, of `tf.function` and `torch.compile`.
#
# Words from below: a **buffer** is memory of one device, with a shape and a dtype; the two and the device are its **spec**.
# A **kernel** is a program for one op. `launch("add", y, a, b)` finds the kernel by the op's name and runs it. A **plan**
# knows the result's spec before anything runs.

# %%
from course import build, figures, tasks
from course.practice import checks

build.watch("03_low_level")
figures.you_are_here(3)

# %% [markdown]
# ## A surprise to begin with (2 min)
#
# The derivative of x³ at 2 is 12. Here is a way to get it without a formula and without a limit. (In
# Python, `1e-20j` is an imaginary number: 1e-20 times the root of -1.)


# %%
def f(x):
    return x**3


# %% tags=["hide-input"]
checks.predict(
    "What is `f(2 + 1e-20j).imag / 1e-20`?",
    choices=["0, since 1e-20 is lost beside 2", "about 12, as with a small step", "12, to the last digit"],
    answer="12, to the last digit",
    because="A complex number keeps its two parts apart, so 1e-20 is not lost beside 2. (2 + εi)³ = 8 + 12εi - 6ε² - ε³i: "
    "the slope stands beside ε. What rounds away is 6ε² = 6e-40 beside 8, and ε³ beside 12ε. A step along the line takes a "
    "difference, and loses digits there.",
)

# %%
f(2 + 1e-20j).imag / 1e-20

# %% [markdown]
# We asked Python for `f` of a slightly different *kind* of number, and that number carried a derivative along
# ([Squire and Trapp, 1998](https://doi.org/10.1137/S003614459631241X); it works for functions made of sums, products and
# their like, not for `abs`). `f` never knew. That is the idea of this level: let the same program run on numbers that do a
# little more than numbers. Ours will not carry the derivative along. They will write down what happens, and we read it
# backwards afterwards.
#
# At the end of this notebook these lines train a model. Nobody derives a gradient in them:
#
# ```python
# with GradientTape() as tape:                      # TensorFlow's name; in PyTorch each result remembers its op
#     error = rows @ w + b - target
#     loss = reduce_mean(error * error)
# dw, db = tape.gradient(loss, [w, b])              # in PyTorch: torch.autograd.grad(loss, [w, b])
# ```
#
# ## The door (11 min)
#
# On level 2 we launched kernels by name and found a place for every result by hand. Let a type of our own do that. Python
# hands `x * w` to the type of `x`, and this one hands the *name* of the op on, to one function. (`None`: launch finds the place.)

# %%
from levels.hardware import pool
from levels.kernels import launch

cpu = pool()["cpu:0"]


class Number:
    def __init__(self, buffer):
        self.buffer = buffer

    def __add__(self, other):
        return door("add", self, other)

    def __mul__(self, other):
        return door("multiply", self, other)


def door(op, *inputs):
    return Number(launch(op, None, *[x.buffer for x in inputs]))


# %%
import numpy as np

x, w, b = (Number(cpu.put(np.array(value))) for value in (3.0, 2.0, 1.0))
(x * w + b).buffer.numpy()

# %% [markdown]
# 3·2 + 1 = 7. `Number` knows nothing of kernels, and the kernels know nothing of `Number`. All traffic passes one door. So
# whoever stands there hears everything. Let somebody stand there and take notes:

# %%
notes = []


def door(op, *inputs):
    y = Number(launch(op, None, *[x.buffer for x in inputs]))
    notes.append(op)
    return y


x * w + b
notes

# %% [markdown]
# The formula is the ordinary one, and so is its number. But there is a list now of what was done, in order. The rest of the
# level is three guests at this door: one who **runs** each op, one who also **writes it down** (the tape), and one who writes
# it down and does *not* run it (the trace).
#
# Now the real thing. A **tensor** is a buffer with operators. They are a table of names; beside those of arithmetic there are
# comparisons, and what Python asks of a number or a list. The cell is folded, since all its methods are of these two kinds.
# (The marker in its first line says which file of `levels` the cell becomes. What a class lacks is looked up in `METHODS`,
# where the notebooks that branch off enter more.)

# %% tags=["hide-input"]
#| export tensors
"""Every op passes one door, `apply`: tensors are numbers that go through it."""

import copy
import copyreg
import functools
import itertools
import reprlib
import threading
from contextlib import nullcontext

import numpy as np

from levels import more
from levels.hardware import DEVICES, Buffer, flag, unmasked
from levels.kernels import planned

METHODS = {}  # "Operators.slice" -> a method that `levels_more` adds to that class


class Extended:
    """Looks up in METHODS what a class of ours lacks."""

    __slots__ = ()

    def __getattr__(self, name):
        for kind in type(self).__mro__ if not name.startswith("_") else ():
            key = f"{kind.__name__}.{name}"
            if key in METHODS or more("method", key):
                return METHODS[key].__get__(self)
        raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}", name=name, obj=self)


def _method(op):
    """The method that hands this op, a tensor and what stands right of it to the door."""
    return lambda self, other: apply(op, self, other)


def _swapped(op):
    """The same for `1.0 - x`: Python asks the number first, which does not know, and then the tensor."""
    return lambda self, other: apply(op, other, self)


class Operators(Extended):
    """What a tensor and a variable can do in an expression."""

    __slots__ = ()
    __array_ufunc__ = None  # NumPy's arrays leave `array + tensor` to the tensor
    __hash__ = object.__hash__  # a tensor is a key by who it is, not by its numbers

    __add__, __radd__ = _method("add"), _swapped("add")
    __sub__, __rsub__ = _method("subtract"), _swapped("subtract")
    __mul__, __rmul__ = _method("multiply"), _swapped("multiply")
    __truediv__, __rtruediv__ = _method("divide"), _swapped("divide")
    __matmul__, __rmatmul__ = _method("matmul"), _swapped("matmul")
    __lt__, __gt__ = _method("less"), _swapped("less")
    __le__, __ge__ = _method("less_equal"), _swapped("less_equal")
    __rpow__ = _swapped("power")

    def __pow__(self, other):
        return self * self if type(other) is int and other == 2 else apply("power", self, other)

    def __neg__(self):
        return apply("negative", self)

    def __eq__(self, other):
        return False if other is None else apply("equal", self, other)  # `None in [x]` asks this

    def __ne__(self, other):
        return True if other is None else apply("not_equal", self, other)

    def __getitem__(self, index):
        return self.slice(index)

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __len__(self):
        if not self.shape:
            raise TypeError("a tensor of shape () has no length")
        return self.shape[0]

    def __bool__(self):
        if self.numpy().size != 1:
            raise ValueError(f"a tensor of shape {self.shape} is not true or false; compare one number, or use where")
        return bool(self.numpy().item())

    def __float__(self):
        return float(self.numpy().item())

    def __int__(self):
        return int(self.numpy().item())

    def __array__(self, dtype=None, copy=None):
        return self.numpy() if dtype is None else self.numpy().astype(dtype)

    def __repr__(self):
        return f"{type(self).__name__}({self.numpy()}, shape={self.shape}, {self.dtype}, {self.device.name})"


# %% [markdown]
# A tensor is that, and a buffer:


# %%
#| export tensors
class Tensor(Operators, Buffer):
    """An immutable buffer."""

    __slots__ = ()


# %% [markdown]
# ### Who stands there
#
# The guest who runs. He gets an op, its plan, and tensors, and gives a tensor back. (A plan knows the result's spec, counts its
# launches, and names the attributes that its kernel takes as numbers, such as a rate.) He also reads variables and assigns
# them: that is how the state of a model passes the door, too.


# %%
#| export tensors
class Run:
    """Stands at the door, and does at once whatever comes."""

    def do(self, op, plan, inputs, attrs):
        """One op, into new memory."""
        y = plan.spec.device.new(plan.spec, kind=Tensor)
        plan.launches += 1
        try:
            if not plan.numbers:
                plan.run(y.data, *[x.data for x in inputs])
            else:
                plan.run(y.data, *[x.data for x in inputs], *map(attrs.get, plan.numbers))
        except (TypeError, AttributeError):
            _check_live(op, inputs)
            raise
        return y

    def read(self, variable):
        """The tensor that the variable names now."""
        return variable.newest()

    def assign(self, variable, value):
        """Let the variable name another tensor."""
        _check_live("assign", [value])
        variable.replace(value)


# %% [markdown]
# Each thread has a door of its own, so that what one thread writes down has nothing of the others. At first the one who runs
# stands there. The door itself is two lines: numbers become tensors, then the guest does the op.


# %%
#| export tensors
class _Door(threading.local):
    stands = Run()  # who stands there, in each thread


DOOR = _Door()
RUN = DOOR.stands


def apply(op, *inputs, **attrs):
    """The door: every op on tensors passes here. Whoever stands here does it, and gives the result."""
    for x in inputs:
        if type(x) is not Tensor:
            inputs = as_tensors(inputs)
            break
    return DOOR.stands.do(op, planned(op, inputs, attrs), inputs, attrs)


# %% [markdown]
# Every other guest comes in a `with` block, does what is his own, and passes the rest on to who stood there before:


# %%
#| export tensors
class Passing(Run):
    """Stands at the door in a `with` block, and passes everything on to who stood there before."""

    def __enter__(self):
        self.below, DOOR.stands = DOOR.stands, self
        return self

    def __exit__(self, *_):
        DOOR.stands = self.below

    def do(self, op, plan, inputs, attrs):
        return self.below.do(op, plan, inputs, attrs)

    def read(self, variable):
        return self.below.read(variable)

    def assign(self, variable, value):
        self.below.assign(variable, value)


# %% [markdown]
# ## Numbers come in, variables stay (8 min)
#
# Four ways in are folded: `constant` makes a tensor of numbers, `as_tensor` and `as_tensors` of whatever stands in an
# expression, and `_number` of a single Python number, which takes the dtype of the tensor beside it. They refuse in words
# what would change a number in silence.

# %% tags=["hide-input"]
#| export tensors
BIRTHS = itertools.count()  # so that a trace knows the variables that were made since it began


def _of_spec(name):
    return property(lambda self: getattr(self.spec, name))


DTYPES = dict.fromkeys(map(np.dtype, (np.float32, np.float64, np.int64, np.bool_)))  # those that kernels know


def constant(values, dtype=None):
    """A tensor of the given numbers. Python floats and lists of them become float32, arrays keep their dtype.

    Raises TypeError for a dtype without kernels, OverflowError for a number too large for its dtype.
    """
    if isinstance(values, Operators) and dtype in (None, values.dtype):
        return as_tensor(values)
    leaf, array = values, unmasked(values)
    while isinstance(leaf, (list, tuple)) and len(leaf):
        leaf = leaf[0]
    if dtype is None and array.dtype == np.float64 and not isinstance(leaf, (np.ndarray, np.generic, Operators)):
        dtype = np.float32
    to = array.dtype if dtype is None else np.dtype(dtype)
    if to not in DTYPES or array.dtype.kind not in "fib":
        raise TypeError(f"constant: {array.dtype} to {to} has no kernels; use {', '.join(map(str, DTYPES))}")
    if array.dtype.kind == "f" and to.kind != "f":
        raise TypeError(f"constant: {array.dtype} numbers do not become {to} in silence; round them first")
    return DEVICES[-1].put(array if array.dtype == to else _in_range(array, to), Tensor)


tensor = constant  # PyTorch's name


def _in_range(array, dtype):
    """The array in that dtype. Raises OverflowError where a finite number would become infinite."""
    with np.errstate(over="ignore"):
        result = array.astype(dtype)
    if dtype.kind == "f" and (np.isinf(result) & (array != np.inf) & (array != -np.inf)).any():
        raise OverflowError(f"a number is too large for {dtype}")
    return result


def as_tensor(value, like=None):
    """A tensor of a tensor, a variable, an array or numbers; a Python number takes the dtype of a tensor beside it, `like`."""
    if like is not None and type(value) in (float, int, bool):
        return _number(value, type(value), value or str(value), like.spec)
    if isinstance(value, Variable):
        return DOOR.stands.read(value)
    return value if isinstance(value, Tensor) else constant(value)


def as_tensors(values):
    """All of these as tensors; Python numbers take the dtype of the first tensor or variable among them."""
    for like in values:
        if isinstance(like, Operators):
            return [x if type(x) is Tensor else as_tensor(x, like) for x in values]
    return [*map(as_tensor, values)]


@functools.lru_cache(maxsize=1024)
def _number(value, kind, name, spec):
    """A single number as a tensor of that Spec's dtype and device. Tensors never change, so one serves every use.

    (0.0, -0.0, 0 and False are equal, so the kind and the name of a zero tell them apart.)
    """
    if (kind is bool) != (spec.dtype == np.bool_) or (kind is float and spec.dtype.kind != "f"):
        raise TypeError(f"{value} beside a tensor of {spec.dtype}: cast one of them")
    return spec.device.put(_in_range(np.asarray(value), spec.dtype), Tensor)


def _check_live(op, inputs):
    """Raise TypeError if one of these has no numbers: a symbol that was carried out of its function."""
    for x in inputs:
        if x.device.kind == "cpu" and not isinstance(x.data, np.ndarray):
            raise TypeError(f"{op}: {x!r} has no numbers; return what you need from the function")


# %% [markdown]
# A tensor never changes. A **variable** names a tensor, and `assign` lets it name another one; what was computed from the old
# one stays as it was. It is the state of a model. (There is one Spec object for each device, shape and dtype, so `is` compares
# them. A `home` it has only once a program keeps its numbers: see the program by rows.)


# %%
#| export tensors
class Variable(Operators):
    """A tensor that `assign` replaces: the state of a model. Its shape, dtype and device stay."""

    def __init__(self, value, name=None, trainable=True):
        tensor = as_tensor(value)
        _check_live("Variable", [tensor])
        self.spec, self.name, self.grad, self.trainable = tensor.spec, name, None, flag("trainable", trainable)
        self.held, self.home = renamed(tensor), None
        self.born, self.turn = next(BIRTHS), threading.Lock()  # threads take turns where its numbers move

    shape, dtype, device = map(_of_spec, ("shape", "dtype", "device"))
    value = property(lambda self: DOOR.stands.read(self), doc="The tensor that it names.")

    def numpy(self):
        """A copy of its numbers."""
        return self.value.numpy()

    def assign(self, value):
        """Name another tensor of the same shape, dtype and device. What was computed from the old one stays."""
        value = as_tensor(value, self)
        if value.spec is not self.spec:
            raise ValueError(f"assign: the variable is {self.spec}, the value {value.spec}")
        DOOR.stands.assign(self, value)

    def replace(self, tensor):
        """Name this tensor, at once. (`assign` lets tapes and traces hear of it.)"""
        with self.turn:
            if self.home is None:
                self.held = renamed(tensor)
            else:
                self.home.replace(renamed(tensor))

    def newest(self):
        """The tensor that it names, at once: the same one until it is assigned."""
        if self.home is None:
            return self.held
        with self.turn:
            return self.home.newest()


# %% tags=["hide-input"]
#| export tensors
def renamed(x):
    """The same numbers as another tensor: a tape knows a tensor by who it is, so what has two names is two of them."""
    x.device.used += x.spec.nbytes
    return type(x)(x.spec, x.data)


def _placed(array, name):
    """A tensor of these numbers on the device of that name, or here where there is none."""
    place = next((device for device in DEVICES if device.name == name), DEVICES[0])
    return place.put(array, Tensor)


def _variable(array, device, name, trainable):
    return Variable(_placed(array, device), name, trainable)


copyreg.pickle(Tensor, lambda x: (_placed, (x.numpy(), x.device.name)))  # how Python copies and pickles them
copyreg.pickle(Variable, lambda v: (_variable, (v.numpy(), v.device.name, v.name, v.trainable)))


# %%
x, y = constant(3.0, "f8"), constant(5.0, "f8")
w, b = Variable(np.array(2.0), "w"), Variable(np.array(1.0), "b")
x * w + b

# %% [markdown]
# 7 again, now a tensor. A few functions have no operator, and most are one line: a name for the door. Those that one task or
# the other needs are here; `levels_more` has more of the same kind. Those of neural nets have a room of their own.


# %% tags=["hide-input"]
#| export ops
"""Functions of tensors: each is a name for the door."""


def matmul(x, w):
    """x[m, k] @ w[k, n] -> [m, n]"""
    return apply("matmul", x, w)


def gather(x, rows):
    """The rows of x[n, …] with these numbers, an integer array -> [*rows.shape, …]. Raises IndexError for others."""
    x = as_tensor(x)
    if not isinstance(rows, Operators):
        rows = unmasked(rows)
        if rows.dtype.kind != "i" and rows.size:
            raise TypeError(f"gather: rows are {rows.dtype}; expected whole numbers")
        rows = x.device.put(rows.astype(np.int64), Tensor)
    return apply("gather", x, rows)


def exp(x):
    """eˣ of each number"""
    return apply("exp", x)


def log(x):
    """The natural logarithm of each number"""
    return apply("log", x)


def sqrt(x):
    """The root of each number"""
    return apply("sqrt", x)


def clip(x, low, high):
    """x, but no number less than low and none more than high. Raises ValueError unless low <= high, two numbers."""
    if not all(isinstance(bound, (int, float, np.number)) for bound in (low, high)) or not low <= high:
        raise ValueError(f"clip: low is {low!r} and high is {high!r}; expected two numbers, the lower first")
    return apply("clip", x, low=float(low), high=float(high))


def reduce_sum(x, axis=None, keepdims=False):
    """The sum over one axis, several neighbours, or all numbers (axis=None), in order from 0.0."""
    return apply("reduce_sum", x, axis=whole(axis), keepdims=keepdims)


def reduce_mean(x, axis=None, keepdims=False):
    """The sum divided by the count."""
    return apply("reduce_mean", x, axis=whole(axis), keepdims=keepdims)


def whole(axis):
    """An axis, or a tuple of them, as Python's integers; None stays. Raises TypeError for anything else."""
    if isinstance(axis, tuple):
        return tuple(map(whole, axis))
    if isinstance(axis, bool) or not isinstance(axis, (int, np.integer, type(None))):
        raise TypeError(f"axis {reprlib.repr(axis)}: expected a whole number")
    return axis if axis is None else int(axis)


# %%
#| export nn
"""The functions of neural nets."""


def relu(x):
    """x where it is positive, else 0."""
    return apply("relu", x)


def sigmoid(x):
    """1 / (1 + exp(-x))"""
    return apply("sigmoid", x)


# %%
relu(constant([-1.0, 2.0])), reduce_mean(constant([1.0, 2.0, 6.0]))

# %% [markdown]
# Wrong calls are refused at the door, or below it, each with one error:

# %%
wrong = (
    lambda: constant([1.0]) + constant([1.0], "f8"),
    lambda: constant([1]) * 0.5,
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
# ## The chain rule, drawn (2 min)
#
# One neuron and one row: the prediction is `p = x·w + b`, the error is `e = p - y`, and the loss `l = e²`. How does the loss
# change when `w` does? With x = 3, w = 2, b = 1 and y = 5 the error is 2:
#
# ```
#        × x = 3              × 2e = 4
#   w ───────────▶  e  ───────────────▶  l          so l moves 3 · 4 = 12 times as far as w, for a small move
# ```
#
# Move `w` by a little, and `e` moves 3 times as far. Move `e` by a little, and `l` moves 4 times as far. One after the other
# the factors multiply: that is the chain rule. As a table, to be read from the bottom. The loss begins with 1; each line
# hands on what its result has, times its slope:
#
# | forward | slope | the result has | the input gets |
# |---|---|---|---|
# | `p = x * w + b` | dp/dw = x = 3 | 4 | w: 4 · 3 = 12 |
# | `e = p - y` | de/dp = 1 | 4 | p: 4 · 1 = 4 |
# | `l = e * e` | dl/de = 2e = 4 | 1 | e: 1 · 4 = 4 |
#
# By hand it is exact, and takes a person for each program. Or by a nudge: move `w` a little up and a little down, and compare.


# %%
def loss_of(w, b, x=3.0, y=5.0):
    error = x * w + b - y
    return error * error


by_hand = 2 * (3.0 * 2.0 + 1.0 - 5.0) * 3.0
by_nudge = (loss_of(2.0 + 1e-6, 1.0) - loss_of(2.0 - 1e-6, 1.0)) / 2e-6
print(f"by hand {by_hand}, by a nudge {by_nudge:.12f}")

# %% [markdown]
# The nudge takes no person, but two runs for each weight, and it rounds. We look for a way that is exact and takes no person.
#
# ## The tape (13 min)
#
# A small tool first, which opens the room:

# %%
#| export autodiff
"""The tape: a list of what passed the door, read backwards it gives the gradient."""

import math

from levels import more


def size(spec):
    """How many numbers a tensor of this Spec has."""
    return math.prod(spec.shape)


# %% [markdown]
# The second guest writes down each op that passes: its name, its inputs, its attributes, its result, as one tuple in that
# order. This function is **yours to fill in**. When its cell runs, it says whether it is right. Left as it is, or as long as a
# case says no, the course's own goes on in its place; once it is right, your level is built from yours.


# %%
#| export autodiff blank write_down
def write_down(records, op, inputs, attrs, y):
    """Add one op to the list of a tape's records."""
    ...  # 1 line


# %% [markdown]
# <details><summary>Hint</summary>A list grows by <code>append</code>.</details>
# <details><summary>Second hint</summary>One tuple of four: the op, its inputs, its attributes, the result.</details>
# <details><summary>Solution</summary>
#
# ```python
# def write_down(records, op, inputs, attrs, y):
#     """Add one op to the list of a tape's records."""
#     records.append((op, inputs, attrs, y))
# ```
# </details>

# %% [markdown]
# `GradientTape` is that guest. `with` opens and closes it. He passes every op on, and writes it down while he listens. And he
# notes which variable stood behind which tensor, and which was assigned.


# %%
#| export autodiff
class _Tape(Passing):
    """Writes down every op while it is open."""

    def __init__(self, persistent=False):
        self.persistent, self.listens = flag("persistent", persistent), True
        self.records, self.variables, self.assigned = [], {}, []  # (op, inputs, attrs, result); {tensor: variable}

    def do(self, op, plan, inputs, attrs):
        y = self.below.do(op, plan, inputs, attrs)
        if self.listens:
            write_down(self.records, op, inputs, attrs, y)
        return y

    def read(self, variable):
        x = self.below.read(variable)
        self.variables[x] = variable
        return x

    def assign(self, variable, value):
        self.assigned.append(variable)
        self.below.assign(variable, value)


# %%
with _Tape() as tape:
    error = x * w + b - y
    loss = error * error
[op for op, *_ in tape.records]

# %% [markdown]
# Four ops, in the order in which they passed. To differentiate, read the list from the bottom. Each op must know one thing: if the
# loss changes by `dy` for each unit of the op's *result*, by how much does it change for each unit of each *input*? That is
# one line of the table above, its **vjp** (vector-Jacobian product: for arrays, the gradients times the table of all slopes).
#
# Take `y = a·b`. A unit of `a` moves `y` by `b`, and each unit of `y` moves the loss by `dy`. So what does `a` get?
# Write it. (The check asks for y = 2·3 with dy = 1: the 2 gets 3, and the 3 gets 2.)


# %%
#| export autodiff blank times_back
def times_back(dy, other):
    """The gradient of one factor of a product: from that of the product, dy, and the other factor."""
    ...  # 1 line


# %% [markdown]
# <details><summary>Hint</summary>A unit of <code>a</code> moves the product by <code>b</code>, the other factor.</details>
# <details><summary>Second hint</summary>And each unit of the product moves the loss by <code>dy</code>. One after the other, factors multiply.</details>
# <details><summary>Solution</summary>
#
# ```python
# def times_back(dy, other):
#     """The gradient of one factor of a product: from that of the product, dy, and the other factor."""
#     return dy * other
# ```
# </details>

# %% [markdown]
# One row an op, one function an input. (`relu_grad` and its like are kernels of level 2, which we wrote there for the way back.
# `spread_back` is defined further down.)

# %%
#| export autodiff
VJPS = {  # op -> for each input: (dy, y, *inputs, **attrs) -> the gradient of that input; None where none passes
    "add": (lambda dy, y, a, b: dy, lambda dy, y, a, b: dy),
    "subtract": (lambda dy, y, a, b: dy, lambda dy, y, a, b: -dy),
    "multiply": (lambda dy, y, a, b: times_back(dy, b), lambda dy, y, a, b: times_back(dy, a)),
    "divide": (lambda dy, y, a, b: dy / b, lambda dy, y, a, b: -dy * y / b),
    "negative": (lambda dy, y, x: -dy,),
    "exp": (lambda dy, y, x: dy * y,),
    "log": (lambda dy, y, x: dy / x,),
    "relu": (lambda dy, y, x: apply("relu_grad", dy, y),),
    "sigmoid": (lambda dy, y, x: apply("sigmoid_grad", dy, y),),
    "clip": (lambda dy, y, x, low, high: apply("clip_grad", dy, x, low=low, high=high),),
    "reduce_sum": (lambda dy, y, x, **how: spread_back(dy, x, **how),),
    "reduce_mean": (lambda dy, y, x, **how: spread_back(dy, x, **how, count=size(x.spec) / size(y.spec)),),
}

# %% [markdown]
# ## The walk back (7 min)
#
# It starts with the loss, whose gradient is 1. At each record the rules of the op hand the result's gradient on to the inputs.
# (A tensor is a key by who it is, not by its numbers; and a variable hands out the same tensor until it is assigned.) In its
# smallest form:


# %%
def give(gradients, x, share):
    gradients[x] = share


def walk(records, loss, give):
    gradients = {loss: constant(1.0, "f8")}
    for op, inputs, _, result in reversed(records):
        for x, vjp in zip(inputs, VJPS[op]):
            give(gradients, x, vjp(gradients[result], result, *inputs))
    return gradients


print(f"w gets {float(walk(tape.records, loss, give)[w.value])}, by hand {by_hand}")

# %% tags=["hide-input"]
checks.predict(
    "6 is half of 12. Where did the other half go?",
    choices=["the rule of the product forgets a factor 2", "`error` is used twice", "`w` was read too early"],
    answer="`error` is used twice",
    because="Both factors of `error * error` are `error`. Each hands it a share, 2·1 = 2, and the second took the place of the "
    "first. What is used twice moves the loss twice, so the shares must be added.",
)

# %% [markdown]
# So write the line that gives `x` its share, and loses nothing that it had before. (The check: shares of 2, 2 and 3 make 7.)


# %%
#| export autodiff blank hand_on
def hand_on(gradients, x, share):
    """Give x its share of a gradient. What x has from other ops already stays: shares are added up."""
    ...  # 1 to 4 lines


# %% [markdown]
# <details><summary>Hint</summary>Has <code>x</code> a gradient already? <code>x in gradients</code> says so.</details>
# <details><summary>Second hint</summary>If it has, the new one is the sum of both, <code>gradients[x] + share</code>; if not, it is the share.</details>
# <details><summary>Solution</summary>
#
# ```python
# def hand_on(gradients, x, share):
#     """Give x its share of a gradient. What x has from other ops already stays: shares are added up."""
#     gradients[x] = gradients[x] + share if x in gradients else share
# ```
# </details>

# %%
print(f"w gets {float(walk(tape.records, loss, hand_on)[w.value])}, by hand {by_hand}")

# %% [markdown]
# It gets 12. That is backpropagation ([Rumelhart, Hinton and Williams, 1986](https://doi.org/10.1038/323533a0)). One walk gives the
# gradient of every weight, be there two or a million; the nudge needs two runs for each. The tape as a drawing, a gradient
# beneath each weight:

# %%
from course.figures.drawing import tape_drawing

gradients = walk(tape.records, loss, hand_on)
dw, db = gradients[w.value], gradients[b.value]
tape_drawing(tape.records, dict(x=x, y=y, w=w.value, b=b.value, error=error, loss=loss), dict(w=dw, b=db))

# %% [markdown]
# Why from the end? `error` may hand its gradient on only when every op that used it has been read. The program wrote the list
# in an order in which every input is older than its result. Read from the end, every user comes before the thing it used, and
# no sorting is needed.
#
# ## Ten rows (14 min)
#
# A batch of ten rows, and a bias of shape (1, 4) that all of them share:

# %% tags=["hide-input"]
checks.predict(
    "b of shape (1, 4) was added to ten rows. The rule of an addition hands dy on as it is. Which shape does b get?",
    choices=["(1, 4), as b", "(10, 4)", "an error from the rule"],
    answer="(10, 4)",
    because="Each row's share is in it, but nobody has added them up. No rule complains; `assign` would, when a bias of one row "
    "is to become ten.",
)

# %%
dy = constant(np.ones((10, 4)))
VJPS["add"][1](dy, None, dy, constant(np.zeros((1, 4)))).shape

# %% [markdown]
# b was used ten times, so its gradient is the sum of ten: the reverse of repeating is adding up. Over which axes? Where the
# result has more axes than b, NumPy's rule put new ones in front: add over all of those. Where b has size 1 and the result has
# more, b was repeated: add over that axis, and keep it. (The check: (10, 4) for a bias (1, 4) becomes (1, 4), and (2, 3, 4)
# for a bias (4,) becomes (4,).)


# %%
#| export autodiff blank unbroadcast
def unbroadcast(dx, shape):
    """dx summed over the axes in which an input of this shape was repeated."""
    ...  # about 7 lines


# %% [markdown]
# <details><summary>Hint</summary>Axes are compared from the right. What the input lacks on the left is summed away; where it
# has a 1 and <code>dx</code> has more, that axis is summed and stays, as a 1.</details>
# <details><summary>Second hint</summary><code>extra = len(dx.spec.shape) - len(shape)</code> axes go first, all at once, with
# <code>axis=tuple(range(extra))</code>. Then walk over the pairs of <code>dx.spec.shape</code> and <code>shape</code>, with
# <code>keepdims=True</code>.</details>
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

# %%
unbroadcast(dy, (1, 4)).shape

# %% [markdown]
# The reverse of a sum is to spread: every number of x gets the `dy` that it went into. For a mean, divided by the count. (Of x
# only the shape is read.)


# %%
#| export autodiff
def spread_back(dy, x, axis=None, keepdims=False, count=1.0):
    """The reverse of reducing x to `dy`: every number of x gets the dy that it went into, divided by a count."""
    if axis is not None and not keepdims:
        shape = list(x.spec.shape)
        for a in axis if isinstance(axis, tuple) else (axis,):
            shape[a] = 1
        dy = apply("reshape", dy, shape=tuple(shape))
    return apply("spread", dy, x, count=count)


# %% [markdown]
# And the product of matrices. With `X` and `W` for what is multiplied, `dX = dy·Wᵀ` and `dW = Xᵀ·dy`. No transpose is ever made:
# the kernel reads the other way round. (Folded: the two rules, for operands that were given the other way round, too.)


# %% tags=["hide-input"]
#| export autodiff
def _matmul_vjp_x(dy, y, x, w, transpose_x=False, transpose_w=False):
    if transpose_x:
        return apply("matmul", w, dy, transpose_x=transpose_w, transpose_w=True)
    return apply("matmul", dy, w, transpose_w=not transpose_w)


def _matmul_vjp_w(dy, y, x, w, transpose_x=False, transpose_w=False):
    if transpose_w:
        return apply("matmul", dy, x, transpose_x=True, transpose_w=transpose_x)
    return apply("matmul", x, dy, transpose_x=not transpose_x)


VJPS["matmul"] = _matmul_vjp_x, _matmul_vjp_w

# %% [markdown]
# Now the walk that we keep. It is the loop from above with three cares: ops that no source leads to are skipped, a gradient of
# another shape is added up first, and a missing rule or source is said in words. (Folded: which records are useful, and
# where a rule is looked up. `more` asks `levels_more` for what is missing here.)


# %%
#| export autodiff
def walk_back(records, target, sources):
    """The gradients of `target`: from the last record to the first, each op hands its gradient on to its inputs."""
    useful, needed = _useful(records, sources)
    one = as_tensor(1.0, target)
    gradients = {target: apply("broadcast_to", one, shape=target.shape) if target.shape else one}
    for op, inputs, attrs, y in reversed(useful):
        if y not in gradients:  # it does not lead to the target
            continue
        rules = _rules(op, len(inputs))
        for x, vjp in zip(inputs, rules):
            dx = vjp(gradients[y], y, *inputs, **attrs) if vjp and x in needed else None
            if dx is not None:
                hand_on(gradients, x, dx if dx.spec is x.spec else unbroadcast(dx, x.spec.shape))
    for k, source in enumerate(sources):
        if source not in gradients:
            raise ValueError(f"gradient: source {k} was not used on the way to the target while the tape was open")
    return [gradients[source] for source in sources]


# %% tags=["hide-input"]
#| export autodiff
def _useful(records, sources):
    """The records of ops that depend on a source, and all tensors that do."""
    needed, useful = set(sources), []
    for record in records:
        _, inputs, _, y = record
        if not needed.isdisjoint(inputs):
            needed.add(y)
            useful.append(record)
    return useful, needed


def _rules(op, count):
    """The rules of an op that has so many inputs. Raises LookupError where there are none."""
    if op not in VJPS and not more("rule", op):
        raise LookupError(f"gradient: {op} has no rule yet; add a row to VJPS")
    return VJPS[op] if type(VJPS[op]) is tuple else VJPS[op](count)


# %% [markdown]
# `gradient` is the walk, behind checks of what would give a wrong gradient in silence: a tape that was read before, a variable
# that changed on the way, numbers that are no floats. While it walks, the tape does not listen. (Folded: these checks, and how a
# tape prints.)


# %% tags=["hide-input"]
#| export autodiff
class GradientTape(_Tape):
    """Writes down every op while it is open. `gradient` reads it once, a persistent tape any number of times."""

    def __enter__(self):
        if self.records is None or hasattr(self, "below"):
            raise RuntimeError("this tape was open before; make another one")
        return super().__enter__()

    def gradient(self, target, sources):
        """d target / d source for each source of a list, or for one: tensors shaped like the sources.

        A target of several numbers stands for their sum. What this computes is not written on this tape. Raises
        RuntimeError for a tape that was read, ValueError for a source that the target does not depend on.
        """
        if self.records is None:
            raise RuntimeError("gradient: this tape was read; GradientTape(persistent=True) can be read again")
        if not isinstance(sources, (list, tuple)):
            return self.gradient(target, [sources])[0]
        for k, source in enumerate(sources):
            if any(source is variable for variable in self.assigned):
                told = f"gradient: source {k} was assigned while the tape was open; assign after the gradient"
                raise ValueError(told)
        target, sources = as_tensor(target), [as_tensor(source) for source in sources]
        for k, x in enumerate([target, *sources]):
            if x.spec.dtype.kind != "f":
                name = f"source {k - 1}" if k else "the target"
                raise TypeError(f"gradient: {name} is {x.dtype}; only floats have a gradient")
        self.listens = False
        try:
            return walk_back(self.records, target, sources)
        finally:
            self.listens, self.records = self.persistent, self.records if self.persistent else None

    def __reduce__(self):
        raise TypeError("a tape cannot be copied: it belongs to the tensors that it heard of")

    def __repr__(self):
        names, lines = {}, []
        for i, (op, inputs, attrs, y) in enumerate(self.records or ()):
            *given, result = (names.setdefault(id(t), f"t{len(names)}") for t in (*inputs, y))
            call = ", ".join([*given, *(f"{name}={value}" for name, value in attrs.items())])
            lines.append(f"{i:3}  {result} = {op}({call})".ljust(56) + f" {y.shape}")
        return "GradientTape, read" if self.records is None else "\n".join(lines)


# %%
with GradientTape(persistent=True) as tape:
    error = x * w + b - y
    loss = error * error
dw, db = tape.gradient(loss, [w, b])
print(f"by hand {by_hand}, by a nudge {by_nudge:.12f}, by the tape {float(dw)}")
tape

# %% [markdown]
# **Walk it step by step.** Move `step` and watch where each gradient goes. Then choose with `bump` one of the four inputs. It
# is raised by a millionth, and the green numbers show how far each value moves, in millionths. Where green meets blue, gradient times move
# is what the loss moves by, at every step.


# %%
def squared_error(x, w, b, y):
    x, w, b, y = (constant(number, "f8") for number in (x, w, b, y))
    with GradientTape() as tape:
        p = x * w
        z = p + b
        e = z - y
        l = e * e
    return figures.tape_of_numbers(tape.records, dict(x=x, w=w, b=b, y=y, p=p, z=z, e=e, l=l), VJPS)


# %%
from course.figures import widgets

backwards = figures.backward_walk(squared_error, x=3.0, w=2.0, b=1.0, y=5.0)
widgets.explore(
    functools.partial(figures.tape_backwards, backwards),
    "The tape, backwards, and a bump that meets it.",
    step=range(5),
    bump=["w", "x", "b", "y"],
    start={"step": 1},
)

# %% [markdown]
# ## Every rule meets a nudge (6 min)
#
# A rule is easily wrong. So each is compared with nudges, on random numbers, once and in view:


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
    """The largest difference between the tape's gradients and the nudges'."""
    inputs = [*map(constant, arrays)]
    with GradientTape() as tape:
        target = function(*inputs)
    gradients = tape.gradient(target, inputs)
    return max(np.abs(g.numpy() - slope(function, arrays, k, nudge)).max() for k, g in enumerate(gradients))


# %% [markdown]
# One case for each row of the table:

# %%
draw = np.random.default_rng(0)
a, c = draw.uniform(0.5, 2, (2, 3, 2))
row, m = draw.normal(size=(1, 2)), draw.normal(size=(2, 4))
cases = {
    "add": (lambda x, y: x + y, a, row),
    "subtract": (lambda x, y: x - y, a, row),
    "multiply": (lambda x, y: x * y, a, row),
    "divide": (lambda x, y: y / x, a, row),
    "negative": (lambda x: -x, a),
    "exp": (exp, a),
    "log": (log, a),
    "relu": (relu, m),
    "sigmoid": (sigmoid, a),
    "clip": (lambda x: clip(x, 0.8, 1.2), a),
    "reduce_sum": (lambda x: reduce_sum(x * x, axis=1, keepdims=True), c),
    "reduce_mean": (lambda x: reduce_mean(x * x), c),
    "matmul": (lambda x, y: (x @ y) * (x @ y), a, m),
}
assert {*cases} == {*VJPS}, {*cases} ^ {*VJPS}
worst = {op: meets_nudge(*case) for op, case in cases.items()}
print(f"{len(cases)} rules, all within 1e-6:", all(difference < 1e-6 for difference in worst.values()))

# %% [markdown]
# And does the nudge notice a wrong rule? We swap the two of the product:

# %%
right, VJPS["multiply"] = VJPS["multiply"], VJPS["multiply"][::-1]
print(f"off by {meets_nudge(*cases['multiply']):.4f}")
VJPS["multiply"] = right

# %% [markdown]
# ## A train step (6 min)
#
# An optimizer wants a list of all variables. A **module** finds them, in its attributes and in the lists, dicts and modules
# among those, each by a name such as `layers.0.w`. (Folded: a walk through attributes, and weights as NumPy arrays.)

# %% tags=["hide-input"]
#| export module
"""A module finds its variables."""


def _parts(value):
    """[(name, part), …] of a module, a dict, a list or a tuple; of anything else none."""
    if isinstance(value, (Module, dict)):
        return [*(vars(value) if isinstance(value, Module) else value).items()]
    return [*enumerate(value)] if isinstance(value, (list, tuple)) else []


class Module(Extended):
    """Owns the variables in its attributes, and in the lists, tuples, dicts and modules among them."""

    def named(self, kind):
        """{"layers.0.w": part, …} of all parts of that class, each once, in the order in which they were set."""
        found, seen, waiting = {}, set(), [("", self)]
        while waiting:
            path, value = waiting.pop()
            if id(value) in seen:
                continue
            seen.add(id(value))
            if isinstance(value, kind) and path in found:
                raise ValueError(f"two parts have the name {reprlib.repr(path)}")
            if isinstance(value, kind):
                found[path] = value
            waiting += [(f"{path}.{name}" if path else str(name), part) for name, part in reversed(_parts(value))]
        return found

    variables = property(lambda self: list(self.named(Variable).values()))
    trainable_variables = property(lambda self: [v for v in self.variables if v.trainable])

    def __copy__(self):
        """A copy owns variables of its own, as one by `copy.deepcopy` does."""
        return copy.deepcopy(self)

    def get_weights(self):
        """The values of all variables, as NumPy arrays."""
        return [variable.numpy() for variable in self.variables]

    def set_weights(self, weights):
        """Give all variables these values. Raises ValueError, and changes none, where one of them does not fit."""
        variables, weights = self.variables, list(weights) if isinstance(weights, (list, tuple)) else [weights]
        if len(weights) != len(variables):
            raise ValueError(f"{len(weights)} weights for {len(variables)} variables; are all parts built?")
        values = [as_tensor(value, variable) for variable, value in zip(variables, weights)]
        for (name, variable), value in zip(self.named(Variable).items(), values):
            if value.spec is not variable.spec:
                raise ValueError(f"{name} is {variable.spec}, the weight {value.spec}")
        for variable, value in zip(variables, values):
            variable.assign(value)

    def count(self):
        """How many numbers the variables hold."""
        return sum(math.prod(variable.shape) for variable in self.variables)


# %%
class Line(Module):
    def __init__(self, w, b):
        self.w, self.b = Variable(w, "w"), Variable(b, "b")


task = tasks.linear()
line = Line(*task.weights)
print(line.count(), "numbers in", *line.named(Variable))

# %% [markdown]
# The forward pass is the formula. The backward pass has shrunk to one line, which we did not have to derive.

# %%
w, b = line.variables


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
losses = [float(step(gather(x_, i), gather(y_, i))) for i in task.batches]
below = kernels.tasks.linear_regression(task.x, task.y, task.weights, task.batches, task.learning_rate)
print("losses equal: ", losses == below.losses.tolist())
print("weights equal:", all((p.numpy() == q).all() for p, q in zip([w, b], below.weights)))

# %% [markdown]
# The losses and the weights are those of level 2, to the last bit. And the time?

# %% tags=["hide-input"]
checks.predict(
    "Level 2 took about 20 µs for such a step. And this level?",
    choices=["less, the code is shorter", "several times as long", "a hundred times as long"],
    answer="several times as long",
    because="A few more launches, 17 and not 14. And each costs more than it did: it finds new memory for its result, passes "
    "the door, is written down, and is read again on the way back.",
)

# %% tags=["nbval-ignore-output"]
import timeit

one, i = constant(np.ones((10, 1))), constant(task.batches[0])
t_op = min(timeit.repeat(lambda: one + one, number=1000, repeat=5)) / 1000
rows, target = gather(x_, i), gather(y_, i)
t_step = min(timeit.repeat(lambda: step(rows, target), number=100, repeat=5)) / 100
print(f"an addition {t_op * 1e6:.1f} µs, a step {t_step * 1e6:.0f} µs")

# %%
launches, nbytes = kernels.counted(lambda: step(gather(x_, i), gather(y_, i)))
print(f"{launches} launches and {nbytes:,} bytes a step")

# %% [markdown]
# Your times will differ, the launches will not. Comfort has a price: more launches, and a larger cost for each. Level 1 took
# 0.05 µs for this very step. In the rest of this notebook we buy that back.
#
# ## Written down, not run (14 min)
#
# The third guest. Shapes are known before any number is: a plan says them. So let somebody stand at the door who says what he
# hears, and computes nothing:


# %%
class Says(Run):
    def do(self, op, plan, inputs, attrs):
        print(f"{op} would give {plan.spec}")
        return plan.spec.device.new(plan.spec, kind=Tensor)  # memory in which nobody has put a number


DOOR.stands = Says()
relu(constant([[1.0, 2.0]]) @ constant([[3.0], [4.0]]))
DOOR.stands = RUN

# %% [markdown]
# Now let him write each op down: a **node**, with the nodes it reads. What he gives back is a **symbol**, a tensor whose `data`
# is that node. The program cannot tell the difference, as long as it never asks for a number.

# %%
#| export graph
"""A function of tensors, run once on symbols, becomes a graph."""

from levels.hardware import Spec


class Node:
    """One op of a graph, with nodes as its inputs; or a leaf: an "input", a "variable" or a "constant"."""

    __slots__ = ("op", "inputs", "attrs", "spec")

    def __init__(self, op, inputs, attrs, spec):
        self.op, self.inputs, self.attrs, self.spec = op, tuple(inputs), attrs, spec

    def __repr__(self):
        return f"{self.op} {self.spec.dtype}{list(self.spec.shape)}"


class Symbol(Tensor):
    """A tensor whose numbers are not known yet; its `data` is the node that will compute them."""

    __slots__ = ("trace",)

    def __init__(self, trace, node):
        self.spec, self.data, self.trace = node.spec, node, trace

    def __del__(self):
        """It has no memory to give back."""

    def numpy(self):
        what = "are not known while a function is traced; `if` becomes where(mask, x, y)"
        raise TypeError(f"{self!r}: its numbers {what if self.data else 'were never known, and its trace has ended'}")

    def __repr__(self):
        return f"Symbol({self.spec})"


# %% [markdown]
# Tensors that were there before become leaves: constants. A variable is a leaf of its own kind, since its value differs from
# step to step. While we trace, reading one gives its symbol, and assigning one only changes which symbol that is. The variable
# itself keeps what it names.


# %%
#| export graph
class Trace(Run):
    """Stands at the door, computes nothing, and writes each op down as a node. Variables keep what they name."""

    def __init__(self):
        self.nodes, self.symbols, self.constants = [], [], {}
        self.values = {}  # variable -> the symbol that it names now

    def do(self, op, plan, inputs, attrs):
        return self.symbol(self.noted(op, [self.node(x) for x in inputs], attrs, plan.spec))

    def read(self, variable):
        if variable not in self.values:
            self.values[variable] = self.symbol(self.noted("variable", (), {"of": variable}, variable.spec))
        return self.values[variable]

    def assign(self, variable, value):
        self.read(variable)
        self.values[variable] = self.symbol(self.node(value))

    def noted(self, op, inputs, attrs, spec):
        """A new node."""
        self.nodes.append(Node(op, inputs, attrs, spec))
        return self.nodes[-1]

    def symbol(self, node):
        """A tensor that stands for this node."""
        self.symbols.append(Symbol(self, node))
        return self.symbols[-1]

    def node(self, x):
        """The node of a symbol. A tensor that has numbers is a constant."""
        if type(x) is Symbol and x.trace is not self:
            raise TypeError(f"{x!r} is of another trace; return what you need from the function")
        if type(x) is not Symbol and x not in self.constants:
            self.constants[x] = self.noted("constant", (), {"of": x}, x.spec)
        return x.data if type(x) is Symbol else self.constants[x]


# %% [markdown]
# A **graph** is a list of nodes, those among them that are the results, and for each variable that was assigned the node of its
# new value. (Folded: a graph prints as a line for each op, and what a function may return is checked.)


# %% tags=["hide-input"]
#| export graph
class Graph:
    """Nodes in an order in which they can be computed, the results among them, and the new values {variable: node}."""

    def __init__(self, nodes, outputs, updates):
        self.nodes, self.outputs, self.updates = nodes, outputs, updates

    ops = property(lambda self: [node for node in self.nodes if node.inputs], doc="The nodes that are no leaves.")

    def __repr__(self):
        names, lines = {}, []
        for node in self.ops:
            for x in (*node.inputs, node):
                names.setdefault(x, _leaf_name(x) or f"t{len(lines)}")
            given = [*map(names.get, node.inputs), *(f"{k}={v}" for k, v in node.attrs.items())]
            lines.append(f"{names[node]:>4} = {node.op}({', '.join(given)})".ljust(56) + f" {node.spec.shape}")
        return "\n".join(lines)


def _leaf_name(node):
    """What a leaf is called: the name of a variable, x0 for the first argument, a number that it is. None for others."""
    of = node.attrs.get("of")
    if node.op == "variable":
        return of.name
    if node.op == "input":
        return f"x{of}"
    return str(of.numpy()) if node.op == "constant" and not node.spec.shape else None


def results_of(result):
    """The tensors that a function returns: none, one, or those of a list or a tuple. Raises TypeError for others."""
    if result is None:
        return []
    results = list(result) if type(result) in (list, tuple) else [result]
    for x in results:
        if isinstance(x, (list, tuple, dict, set)) or x is None:
            raise TypeError(f"a function returns tensors, or one list or tuple of them; got a {type(x).__name__}")
    return results


# %% [markdown]
# To **trace** a function is to run it on symbols.


# %%
#| export graph
def trace(python, signature):
    """Run `python` on symbols: one for each Spec of the signature, whose other entries are arguments as they are.

    Returns its Graph, what it returned, and the variables that it made.
    """
    here, before, begun = Trace(), DOOR.stands, next(BIRTHS)
    DOOR.stands = here
    try:
        args = [x if type(x) is not Spec else here.noted("input", (), {"of": k}, x) for k, x in enumerate(signature)]
        result = python(*[here.symbol(x) if type(x) is Node else x for x in args])
        outputs = [here.node(as_tensor(x)) for x in results_of(result)]
        values = {variable: symbol.data for variable, symbol in here.values.items()}
    finally:
        DOOR.stands = before
        for symbol in here.symbols:
            symbol.data = None
    updates = {variable: node for variable, node in values.items() if node.attrs.get("of") is not variable}
    return Graph(here.nodes, outputs, updates), result, [v for v in values if v.born > begun]


# %%
signature = cpu.spec((10, 2), "f8"), cpu.spec((10, 1), "f8")
graph, result, made = trace(step, signature)
print(graph)
print("returned:", result, "- variables with a new value:", [v.name for v in graph.updates])

# %% [markdown]
# Forward, gradient and update, all in one list: the walk of the tape passed the door as well. x0 and x1 are the arguments. The
# `spread` is the gradient of the mean, a tenth of 1 for each row. (t6 and t7 are the same product: the rule of `error * error` is
# asked once for each factor.) Two guests stood one behind the other:
#
# ```
# program ──▶ tape: writes it down, asks the next ──▶ trace: a node, and a symbol back
# ```

# %% tags=["hide-input"]
checks.predict(
    "`step` gets a line `print('step', loss)`. It is traced once, and the graph is then run 100 times. What is printed?",
    choices=["100 lines, each with a loss", "one line, with a symbol", "nothing"],
    answer="one line, with a symbol",
    because="Python ran once, on symbols. The graph holds only what passed the door, and a print does not.",
)


# %%
def talks(rows, target):
    loss = reduce_mean(rows @ w - target)
    print("step", loss)
    return loss


trace(talks, signature)[0]

# %%
from course.figures.drawing import graph_drawing

graph_drawing(graph, ["rows", "target"])

# %% [markdown]
# Grey runs forward, green back, and purple is the update.
#
# ## Nothing that nobody needs (5 min)
#
# Now that the step is data, we can change it. Here is one with something left over:


# %%
def wasteful(rows, target):
    exp(rows)  # and nobody needs it
    return reduce_mean(rows @ w - target)


before, _, _ = trace(wasteful, signature)
before

# %% [markdown]
# A node is needed if it is wanted, or if a needed node reads it. Which order of the list lets you find all of them in one pass?
# (The check: of four ops of which one is dead, three are left.)


# %%
#| export graph blank needed_by
def needed_by(nodes, wanted):
    """Those of the nodes that these wanted ones need, themselves included, in the same order."""
    ...  # about 5 lines


# %% [markdown]
# <details><summary>Hint</summary>Keep a set of what is needed, which begins with what is wanted. A needed node makes its <code>inputs</code> needed.</details>
# <details><summary>Second hint</summary>Every input is older than the node that reads it. So go through the list from its end, and each node is decided
# when you reach it.</details>
# <details><summary>Solution</summary>
#
# ```python
# def needed_by(nodes, wanted):
#     """Those of the nodes that these wanted ones need, themselves included, in the same order."""
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
    """Dead code elimination: only what a result or a new value needs, and the variables that get one."""
    # a variable that is written is kept, though nobody may read its old value: it says where the new one goes
    updated = [node for node in graph.nodes if node.op == "variable" and node.attrs["of"] in graph.updates]
    wanted = [*graph.outputs, *graph.updates.values(), *updated]
    return Graph(needed_by(graph.nodes, wanted), graph.outputs, graph.updates)


# %%
dce(before)

# %% [markdown]
# It is the walk back again: from what is wanted to what it needs, in one pass from the end. Such a **pass** takes a graph and
# gives one that computes the same with less. (Two more are in [more/03_passes](more/03_passes.ipynb).)
#
# ## Replay (5 min)
#
# The easiest way to run a graph is to run its ops in order. What the function, the tape and its walk did is all in the list. The
# plans are found once.

# %%
#| export replay
"""The easiest back end: the graph is run again, op by op."""


class Replay:
    """A graph that runs op by op: what eager does, without the Python of the function around it."""

    def __init__(self, graph):
        self.graph, self.why, self.lock = graph, "", threading.Lock()  # why: what kept it from being a program
        self.plans = [(node, planned(node.op, [x.spec for x in node.inputs], node.attrs)) for node in graph.ops]

    def run(self, args):
        """One step on these arguments. Returns the results; the variables have their new values."""
        with self.lock if self.graph.updates else nullcontext():  # what one thread reads, none changes meanwhile
            return self.step(args)

    def step(self, args):
        values = {}
        for node in self.graph.nodes:
            if not node.inputs:
                of = node.attrs["of"]
                values[node] = args[of] if node.op == "input" else of.newest() if node.op == "variable" else of
        for node, plan in self.plans:
            values[node] = RUN.do(node.op, plan, [values[x] for x in node.inputs], node.attrs)
        for variable, node in self.graph.updates.items():
            variable.replace(values[node])
        return [renamed(values[node]) for node in self.graph.outputs]

    def over(self, args, batches):
        """A step for each row of `batches`. Returns each result, a number, as a tensor of all steps."""
        check_results(self.graph)
        return stacked([self.run([gather(x, rows) for x in args]) for rows in batches])

    def __repr__(self):
        return f"{len(self.plans)} ops, one after the other"


# %% tags=["hide-input"]
#| export replay
def check_results(graph):
    """Raise ValueError unless each result of a step is one number."""
    for node in graph.outputs:
        if size(node.spec) != 1:
            raise ValueError(f"over: a step returns {node.spec}; expected one number, such as the mean of the rows")


def stacked(steps):
    """Each of the results, a number in each step, as a tensor of all steps."""
    return [constant(np.array([x.numpy().reshape(()) for x in results])) for results in zip(*steps)]


# %% [markdown]
# The same hundred batches from the same start (`over` is for later: it runs a step for each row of `batches`):

# %%
line.set_weights(task.weights)
replay = Replay(dce(graph))
print([float(replay.run([gather(x_, i), gather(y_, i)])[0]) for i in task.batches[:100]] == losses[:100])

# %% tags=["nbval-ignore-output"]
t_replay = min(timeit.repeat(lambda: replay.run([rows, target]), number=100, repeat=5)) / 100
print(f"µs a step: eager {t_step * 1e6:.0f}, replay {t_replay * 1e6:.0f}")

# %% [markdown]
# The same losses, without the function, the tape and its walk. But each op is still a launch.
#
# ## The program by rows (22 min)
#
# Look at the graph with the eyes of level 1. A row of the batch goes its own way: no row asks another one. Then the rows are
# added up, and then the variables change. A map over rows, sums over rows, an update: that is exactly the shape of the program
# that you wrote by hand in notebook 01. So let the computer write it, with the very same assembler.
#
# What must it know of an op? Whether it **adds rows up**; if not, whether it **keeps them apart**; and what it computes for
# one row, number by number. Three functions an op, one row of a table. The numbers of a row are NumPy arrays of *objects*: each
# is an assembler's value, a register of the program that is being written. An elementwise op never adds rows up, and keeps
# them apart where all its inputs are as long as the batch or are repeated. For each number it does what its kernel says,
# because the kernel is written once for floats and for the assembler's values alike:

# %%
#| export forms
"""What a program by rows must know of each op."""

from levels.hardware import dot
from levels.kernels import ELEMENTWISE, KERNELS, REDUCTIONS, reduced


def each(function, *arrays):
    """The function of every number of these arrays of values, broadcast."""
    return np.asarray(np.frompyfunc(function, len(arrays), 1)(*arrays), object)


def never(node, by_row):
    """An op of this name never adds rows up."""
    return False


def _elementwise_keeps(node, by_row):
    axes = len(node.spec.shape)
    shapes = [(x.spec.shape, row) for x, row in zip(node.inputs, by_row)]
    return all(len(shape) == axes if row else len(shape) < axes or shape[0] == 1 for shape, row in shapes)


def _elementwise_values(node, inputs, by_row, row, batch):
    """The op's scalar function of each number; what has no rows is repeated for all."""
    numbers = {name: value for name, value in node.attrs.items() if name != "shape"}
    if node.op == "spread" and row and not by_row[0] and numbers["count"] != 1.0:
        numbers["count"] = batch * (numbers["count"] / node.spec.shape[0])  # one program serves any batch
    axes = len(node.spec.shape)
    inputs = [x[0] if row and not own and len(x.shape) == axes else x for x, own in zip(inputs, by_row)]
    function = functools.partial(KERNELS[node.op, "cpu"], **numbers)
    return np.broadcast_to(each(function, *inputs), node.spec.shape[row:])


# %% [markdown]
# The product of matrices, and sums, complete the table. (Folded: `Xᵀ·dy` adds rows up, `X·W` keeps them apart; a sum adds rows
# up if it goes over axis 0. Their numbers are `dot`s and running sums, as in notebook 01.)


# %% tags=["hide-input"]
#| export forms
def _matmul_adds(node, by_row):
    return all(by_row) and bool(node.attrs.get("transpose_x")) and not node.attrs.get("transpose_w")


def _matmul_keeps(node, by_row):
    return by_row == [True, False] and not node.attrs.get("transpose_x")


def _matmul_values(node, inputs, by_row, row, batch):
    x, w = np.atleast_2d(inputs[0]), inputs[1]
    x, w = x.T if node.attrs.get("transpose_x") else x, w.T if node.attrs.get("transpose_w") else w
    products = [dot(line, column) for line in x for column in w.T]
    return np.array(products, object).reshape(node.spec.shape[row:])


def _axes(node):
    """The axes that a reduction reduces."""
    return reduced(node.op, node.inputs[0].spec.shape, node.attrs.get("axis"))[0]


def sum_keeps(node, by_row):
    """A reduction keeps rows apart unless it reduces the first axis."""
    return 0 not in _axes(node)


def sum_values(node, inputs, by_row, row, batch):
    """The reduction's function takes in one number after the other, in order."""
    (x,), op = inputs, node.op.replace("mean", "sum")
    before, within, after = reduced(op, x.shape, tuple(axis - row for axis in _axes(node)))[1]
    total, x = np.full((before, after), REDUCTIONS[op], object), x.reshape(before, within, after)
    for k in range(within):
        total = each(KERNELS[op, "cpu"], total, x[:, k])
    if op != node.op:
        total = each(lambda t: t / float(within), total)
    return total.reshape(node.spec.shape[row:])


def _sum_adds(node, by_row):
    return 0 in _axes(node)


def _reshape_keeps(node, by_row):
    return node.spec.shape[:1] == node.inputs[0].spec.shape[:1]


def _reshape_values(node, inputs, by_row, row, batch):
    return inputs[0].reshape(node.spec.shape[row:])


# %%
#| export forms
FORMS = {  # op -> does it add rows up? does it keep them apart? (node, by_row); its values (node, inputs, by_row, row, batch)
    "matmul": (_matmul_adds, _matmul_keeps, _matmul_values),
    "reduce_sum": (_sum_adds, sum_keeps, sum_values),
    "reduce_mean": (_sum_adds, sum_keeps, sum_values),
    "reshape": (never, _reshape_keeps, _reshape_values),
}


class NoProgram(Exception):
    """Says why a graph is no program of some kind."""


def form_of(op):
    """What a program by rows must know of an op. Raises NoProgram for an op without a row in FORMS."""
    if op in ELEMENTWISE:
        return never, _elementwise_keeps, _elementwise_values
    if op not in FORMS and not more("form", op):
        raise NoProgram(f"{op} has no form for single numbers")
    return FORMS[op]


# %% [markdown]
# With the table, splitting a graph is one walk through its nodes. An input as long as the batch has rows. A sum comes a **stage**
# later than what it sums: it is known only when the loop over the rows has ended. Ours has two stages, in the loop and after it.
# (Folded: what no program can hold, such as several dtypes or a reader's own kernel.)


# %% tags=["hide-input"]
#| export row_program
"""A step that splits into rows, sums over rows and updates is one program: level 1's, written by the graph."""

import ctypes

from levels.hardware import REAL, Assembler

LIMIT = 1500  # operations on single numbers that are written out for one row; with more, launches are quicker


def check_fits(graph):
    """Raise NoProgram for what no program can hold: several dtypes, empty arrays, other devices, a reader's own kernels."""
    dtypes = {node.spec.dtype for node in graph.nodes} - {np.dtype(bool)}
    leaves = [node for node in graph.nodes if node.op in ("input", "variable")]
    edges = [*leaves, *graph.outputs, *graph.updates.values()]
    if len(dtypes) != 1 or dtypes.isdisjoint(REAL) or any(node.spec.dtype == bool for node in edges):
        told = ", ".join(sorted({str(node.spec.dtype) for node in graph.nodes}))
        raise NoProgram(f"it has {told}; expected one float dtype")
    if any(0 in node.spec.shape for node in graph.nodes):
        raise NoProgram("an array is empty")
    for node in graph.ops:
        kind = node.spec.device.kind
        own = KERNELS[node.op, kind].__module__.startswith("levels")  # another one, of a reader's, is run as it stands
        if kind != "cpu" or node.op not in ELEMENTWISE and not own:
            raise NoProgram(f"{node.op} on {kind} is left to its kernel")


def check_rows(graph, rows):
    """Raise NoProgram for what cannot be written out row by row."""
    if not any(node.op == "input" for node in rows):
        raise NoProgram("no argument has rows")
    if not rows.isdisjoint(graph.updates.values()):
        raise NoProgram("a variable would become rows")
    work = sum(math.prod(node.spec.shape[node in rows :]) * _depth(node) for node in graph.nodes)
    if work > LIMIT:
        raise NoProgram(f"{work:,} operations for a row; a program writes out {LIMIT:,}")


def _depth(node):
    """How many products each row adds to a number of this node."""
    return node.inputs[0].spec.shape[-1] if node.op == "matmul" and not node.attrs.get("transpose_x") else 1


# %%
#| export row_program
class Split:
    """Which nodes of a graph are computed row by row, which add rows up, and after how many such sums each one comes."""

    def __init__(self, graph, batch):
        check_fits(graph)
        self.graph, self.rows, self.sums, self.stage = graph, set(), set(), {}
        for node in graph.nodes:
            by_row = self.by_row(node)
            self.stage[node] = max((self.stage[x] for x in node.inputs), default=0)
            if node.op == "input" and node.spec.shape[:1] == (batch,):
                self.rows.add(node)
            elif any(by_row):
                self.place(node, by_row)
        check_rows(graph, self.rows)

    def by_row(self, node):
        """For each input of a node, whether it has rows."""
        return [x in self.rows for x in node.inputs]

    def place(self, node, by_row):
        """Put a node that reads rows where it belongs."""
        adds, keeps, _ = form_of(node.op)
        if adds(node, by_row):
            self.sums.add(node)
            self.stage[node] += 1
        elif keeps(node, by_row):
            self.rows.add(node)
        else:
            raise NoProgram(f"{node!r} takes more than the same row of its inputs")


# %%
split = Split(dce(graph), 10)
print("by row:   ", *[node.op for node in split.graph.ops if node in split.rows])
print("sums:     ", *[node.op for node in split.graph.ops if node in split.sums])
print("afterwards:", *[node.op for node in split.graph.ops if node not in split.rows | split.sums])

# %% [markdown]
# Beside notebook 01: within the loop the prediction, the error, its square and its gradient; the sums; and after the
# loop the update. The writer goes through it in that order. First the loop. (Folded, further down: how single arrays are loaded
# and stored, and how the program is called.)


# %%
#| export row_program
class _RowLoop:
    """Writes the loop over the rows."""

    def write_loop(self, step, known, sums, ends):
        """The loop over rows: what these sums and these results need. Returns the values of the sums."""
        a, totals = self.a, {node: each(lambda _: self.a.sum(), np.zeros(node.spec.shape)) for node in sums}
        with a.loop("batch" if self.over else "rows", a.lanes) as r:
            row, here = a.load(self.batches, step, r) if self.over else r, dict(known)
            for node in needed_by(self.graph.nodes, [*ends, *(x for total in sums for x in total.inputs)]):
                if node in self.split.rows:
                    here[node] = self.value(node, here, 1, row)
            for node in sums:
                for total, term in _terms(node, [here[x] for x in node.inputs], totals[node]):
                    total += term
            for node, out in zip(self.graph.outputs, self.outs):
                if node in ends:
                    self.store(here[node], out, r)
        return {node: self.ended(node, totals[node]) for node in sums}


# %% [markdown]
# Around it the step:


# %%
#| export row_program
class _Steps(_RowLoop):
    """Writes one step: stage after stage what all rows share, then the loop over the rows; at the end the stores."""

    def write_step(self, step):
        split, known = self.split, {}
        for stage in range(max(split.stage.values()) + 1):
            for node in self.graph.nodes:
                if split.stage[node] == stage and node not in split.rows | split.sums:
                    known[node] = self.value(node, known, 0)
            sums = [node for node in self.graph.nodes if node in split.sums and split.stage[node] == stage + 1]
            ends = [node for node in self.graph.outputs if node in split.rows and split.stage[node] == stage]
            if sums or ends:
                known |= self.write_loop(step, known, sums, ends)
        self.store_all(step, known)


# %% tags=["hide-input"]
#| export row_program
class Writer(_Steps):
    """Writes the program of a split graph: of one step on rows as they lie or, with `over`, of many on rows by number."""

    def __init__(self, split, over):
        self.graph, self.split, self.over = split.graph, split, over
        dtype = next(node.spec.dtype for node in self.graph.nodes if node.spec.dtype != bool)
        self.a = a = Assembler("steps" if over else "step", dtype)
        leaves = [node for node in self.graph.nodes if node.op in ("input", "variable")]
        self.arrays = {node: a.array(f"{node.op}{k}", *self.sizes(node)) for k, node in enumerate(leaves)}
        self.batches = a.array("batches", "steps", "batch", rows_of="rows") if over else None
        shapes = [["steps"] if over else self.sizes(node) for node in self.graph.outputs]
        self.outs = [a.array(f"out{k}", *shape) for k, shape in enumerate(shapes)]
        with a.loop("steps") if over else nullcontext() as step:
            self.count = a.count("batch" if over else "rows")
            self.write_step(step)
        self.program = a.assemble()

    def sizes(self, node):
        """The shape of a node's array; the number of its rows is told by the call."""
        return ("rows", *node.spec.shape[1:]) if node in self.split.rows else node.spec.shape or (1,)

    def ended(self, node, totals):
        """The values of a node that adds rows up, once all are added."""
        totals = each(lambda total: total.total(), totals)
        if node.op != "reduce_mean":
            return totals
        x = node.inputs[0].spec
        many = self.count * (size(x) / x.shape[0] / size(node.spec))
        return each(lambda total: total / many, totals)

    def value(self, node, known, row, *place):
        """The values of a node, from those of its inputs: of one row (row=1) or of all there is (row=0)."""
        if node.op == "constant":
            return node.attrs["of"].numpy().astype(object)
        if not node.inputs:
            values = np.empty(node.spec.shape[row:], object)
            for index in np.ndindex(values.shape):
                values[index] = self.a.load(self.arrays[node], *([*place, *index] or [0]))
            return values
        _, _, values = form_of(node.op)
        return values(node, [known[x] for x in node.inputs], self.split.by_row(node), row, self.count)

    def store_all(self, step, known):
        """Store the results that have no rows, and the new values of variables."""
        for node, out in zip(self.graph.outputs, self.outs):
            if node not in self.split.rows:
                self.store(known[node], out, *([step] if self.over else []))
        homes = {node.attrs["of"]: array for node, array in self.arrays.items() if node.op == "variable"}
        for variable, node in self.graph.updates.items():
            self.store(known[node], homes[variable])

    def store(self, values, array, *place):
        """Store these values into an array, or into one place of it."""
        for index in np.ndindex(values.shape):
            self.a.store(values[index], array, *([*place, *index][: len(array.shape)] or [0]))


def _terms(node, inputs, totals):
    """[(a sum, what this row adds to it), …], in order."""
    if node.op == "matmul":
        return [(totals[i, j], x * y) for i, x in enumerate(inputs[0]) for j, y in enumerate(inputs[1])]
    totals = totals.ravel()
    return [(totals[k % len(totals)], x) for k, x in enumerate(inputs[0].ravel())]


# %% [markdown]
# The program overwrites the weights, as notebook 01's did. So each variable gets a **home**: memory that no tensor shares, so that
# nobody who kept an older tensor sees it change. Each writing of the variable has a number:
#
# | what happens | writing | the tensor is of | the home is of |
# |---|---|---|---|
# | `w.assign(…)` | 1 | 1 | 0 |
# | a program runs: it copies to the home, then writes there | 2 | 1 | 2 |
# | somebody reads `w`: a copy becomes the tensor | 2 | 2 | 2 |


# %%
#| export row_program
_byte = (ctypes.c_char * 0).from_buffer


def address(array):
    """Where the numbers of an array lie. (`array.ctypes.data` says the same, and takes five times as long.)"""
    return ctypes.addressof(_byte(array))


class Home:
    """Where programs keep a variable's numbers, and overwrite them. No tensor shares this memory."""

    def __init__(self, variable):
        tensor = variable.held
        self.buffer = variable.device.alloc(variable.shape, variable.dtype)
        self.address = address(self.buffer.data)
        self.writing, self.held, self.at_home = 0, (0, tensor), -1  # held: of which writing, and the tensor

    def replace(self, tensor):
        """Another tensor was assigned."""
        self.held = self.writing + 1, tensor
        self.writing += 1

    def newest(self):
        """The newest numbers as a tensor: what was assigned, or a copy of what a program has written since."""
        writing, tensor = self.held
        if writing != self.writing:
            writing, tensor = self.writing, self.buffer.device.put(self.buffer.data, Tensor)
            self.held = writing, tensor
        return tensor

    def settle(self):
        """Bring the newest numbers here, unless another thread was quicker."""
        if self.at_home != self.writing:
            writing, tensor = self.held
            self.buffer.device.write(self.buffer.data, tensor.data)
            self.at_home = writing


# %% [markdown]
# A program asks for the address first, and afterwards says that it has written. (`turn` is a lock: threads take turns.)


# %%
#| export row_program
def home_of(variable):
    """The address at which programs find a variable: its home, with the newest numbers in it."""
    home = variable.home
    if home is None or home.at_home != home.writing:
        with variable.turn:
            home = variable.home = variable.home or Home(variable)
            home.settle()
    return home.address


def written_at_home(variable):
    """A program has written new numbers: whoever reads the variable next copies them."""
    with variable.turn:
        home = variable.home
        home.at_home = home.writing = home.writing + 1


# %% tags=["hide-input"]
#| export row_program
class RowProgram:
    """A graph as one program by rows: `run` does one step, `over` any number of them. Any threads may call it."""

    def __init__(self, graph, batch, over=False):
        self.graph, self.split, self.lock = graph, Split(graph, batch), threading.Lock()
        if over and not self.split.rows.isdisjoint(graph.outputs):
            raise NoProgram("it returns a number for each row")
        writer = Writer(self.split, over)
        self.program, self.changed = writer.program, list(graph.updates)
        self.places = {word: place for place, word in enumerate(self.program.words)}  # name -> its place in a block
        self.block = ctypes.c_int64 * len(self.places)
        leaves = [(self.places[array.name], node) for node, array in writer.arrays.items()]
        self.inputs = [(place, node.attrs["of"]) for place, node in leaves if node.op == "input"]
        self.variables = [(place, node.attrs["of"]) for place, node in leaves if node.op == "variable"]
        self.outs = [self.places[array.name] for array in writer.outs]
        self.first = next(node.attrs["of"] for node in graph.nodes if node.op == "input" and node in self.split.rows)

    def launch(self, args, outs, sizes):
        """Fill in a block of words and run. Variables are read, and overwritten, at home."""
        block = self.block()  # a new one for each call: threads may call at once
        for place, k in self.inputs:
            block[place] = address(args[k].data)
        for place, variable in self.variables:
            block[place] = home_of(variable)
        for place, out in zip(self.outs, outs):
            block[place] = address(out.data)
        for word, number in sizes.items():
            if word in self.places:
                block[self.places[word]] = number
        self.program.run(block)
        for variable in self.changed:
            written_at_home(variable)
        return outs

    def run(self, args):
        """One step on these arguments. Returns the results as new tensors; the variables have their new values."""
        outs = [node.spec.device.new(node.spec, kind=Tensor) for node in self.graph.outputs]
        with self.lock:
            return self.launch(args, outs, {"rows": args[self.first].spec.shape[0]})

    def over(self, args, batches):
        """A step for each row of `batches`. Returns each result, a number, as a tensor of all steps."""
        check_results(self.graph)
        steps, batch = batches.shape
        specs = [node.spec.device.spec((steps,), node.spec.dtype) for node in self.graph.outputs]
        outs = [spec.device.new(spec, kind=Tensor) for spec in specs]
        sizes = {"rows": args[self.first].spec.shape[0], "steps": steps, "batch": batch}
        with self.lock:
            return self.launch(args, outs, sizes | {"batches": batches.ctypes.data})

    def __repr__(self):
        return f"{len(self.graph.ops)} ops in one program by rows"


# %%
line.set_weights(task.weights)
program = RowProgram(dce(graph), 10)
print([float(program.run([gather(x_, i), gather(y_, i)])[0]) for i in task.batches[:100]] == losses[:100])
lines = program.program.text.splitlines()
print(len(lines), "lines of LLVM's language; x·w + b of one row, from 0.0 on:")
print(*[line for line in lines if "fmul" in line or "fadd" in line][:5], sep="\n")

# %% [markdown]
# The same hundred losses, to the last bit. (In float64 there is one lane, and sums run in order, as everywhere in this course.)
#
# ## `function` (12 min)
#
# What is left is to do all of that once, behind a decorator: trace, make smaller, choose, keep. What a program depends on is
# its **cache key**: the specs of tensors, and the values of other arguments. What else Python reads, a global or the learning rate
# in a closure, is read once, while tracing, and stays. (`tf.function` has the same rule. [Guards](more/03_guards.ipynb) watch.)

# %%
#| export functions
"""A function of tensors that is traced once for each signature, and then runs as a program."""

import warnings

PASSES = [dce]  # what makes a graph smaller, one after the other
BACK_ENDS = [(RowProgram, lambda graph: 1)]  # (what makes a program of a graph, its rank there): the least one first
GUARDS = []  # functions (python, graph) -> a function that says whether what Python read there has changed since


def program_of(graph, batch, over):
    """The program of the best back end that can hold this graph. Where none can, its ops run one by one."""
    more("back end", "all")
    reasons = []
    for back_end, _ in sorted(BACK_ENDS, key=lambda entry: entry[1](graph)):
        try:
            return back_end(graph, batch, over)
        except Exception as why:  # whatever one cannot build is the next one's
            reasons.append(f"{back_end.__name__}: {type(why).__name__}: {why}")
    program = Replay(graph)
    program.why = "; ".join(reasons)
    return program


# %% [markdown]
# Two back ends, then, and the easiest is the last: it can run whatever passed the door, and its `why` says what kept the other
# from it. A function that is called while a tape
# or a trace stands at the door runs undecorated, so that they hear of every op. With `eager` you can ask for the same: it is a
# guest who does nothing.


# %%
#| export functions
class _Eager(Passing):
    """Because somebody else than Run stands at the door, what `function` decorates runs undecorated."""


def eager():
    """Inside this `with` block a `function` runs undecorated, op by op."""
    return _Eager()


def _cache_key(x):
    """What a trace depends on, of an argument that is no tensor: its value. (0.0 == -0.0 and NaN != NaN; their texts tell.)"""
    return type(x), repr(x) if isinstance(x, (float, complex)) else x


# %% [markdown]
# A function keeps its programs:


# %%
#| export functions
class _Compiled:
    """A function that is traced once for each cache key."""

    def __init__(self, python):
        if not callable(python):
            raise TypeError(f"function: {python!r:.60} is no function")
        functools.update_wrapper(self, python)
        self.python, self.programs, self.lock = python, {}, threading.RLock()
        self.traces, self.version, self.stale = 0, KERNELS.version, []

    def compiled(self, args, key, over):
        """The program for arguments like these, and what puts its results together."""
        for stale in self.stale:
            if stale():
                self.version = None
        if self.version != KERNELS.version:
            self.programs, self.version, self.stale = {}, KERNELS.version, []
        found = self.programs.get((key, over))
        if found is None:
            with self.lock:
                found = self.programs.get((key, over)) or self.compile(args, over)
                self.programs[key, over] = found
        return found

    def compile(self, args, over):
        """Trace, make smaller, choose a back end."""
        self.traces += 1
        signature = [x.spec if isinstance(x, Tensor) else x for x in args]
        graph, result = self.traced(signature)
        batch = next((x.shape[0] for x in signature if type(x) is Spec and x.shape), None)
        more("pass", "all")
        for one_pass in PASSES:
            graph = one_pass(graph)
        more("guard", "all")
        self.stale += [guard(self.python, graph) for guard in GUARDS]
        return program_of(graph, batch, over), _packed_like(result)


# %% [markdown]
# A call is then a look-up and a run; `over` hands whole arrays to a program, with the numbers of the rows. (Folded: what may be an
# argument, which row numbers are refused, and the last batch, which may be shorter.)


# %% tags=["hide-input"]
#| export functions
class Function(_Compiled):
    """A function of tensors that is traced once for each signature and then runs as a program, from any thread."""

    def __call__(self, *args):
        if DOOR.stands is not RUN:  # a tape or a trace wants to hear of every op
            return self.python(*args)
        args = [x if type(x) is Tensor else _argument(x) for x in args]
        key = tuple([x.spec if type(x) is Tensor else _cache_key(x) for x in args])
        program, pack = self.compiled(args, key, False)
        return pack(program.run(args))

    def over(self, *args):
        """over(x, y, …, batches): a step on the rows x[i], y[i], … for each i of `batches`, arrays of row numbers.

        The last one may be shorter. Returns what the function returns, each number as a tensor of all steps.
        """
        *args, batches = args or [None]
        args = [constant(x) if isinstance(x, list) else as_tensor(_argument(x)) for x in args]
        rows = {x.spec.shape[:1] for x in args}
        if len(rows) != 1 or () in rows:
            raise ValueError(f"over: {', '.join(str(x.spec) for x in args)}; expected arrays of as many rows")
        parts = row_numbers(batches, *rows.pop())
        if DOOR.stands is not RUN:
            results = [self.python(*(gather(x, i) for x in args)) for part in parts for i in part]
            return _packed_like(results[-1])(stacked(map(results_of, results)))
        outs = []
        for part in parts:
            signature = tuple(x.device.spec((part.shape[1], *x.shape[1:]), x.dtype) for x in args)
            program, pack = self.compiled(signature, signature, True)
            outs.append(program.over(args, part))
        if len(outs) > 1:  # the last batch is shorter
            outs = [[constant(np.concatenate([x.numpy() for x in both])) for both in zip(*outs)]]
        return pack(outs[0])

    def traced(self, signature):
        """The graph of the function, and what it returned. Raises ValueError where each call makes a variable."""
        if self.traces % 10 == 0:
            name, why = getattr(self, "__name__", "a function"), "once for each new shape, dtype or value"
            warnings.warn(f"{name} was traced {self.traces} times, {why}", stacklevel=6)
        graph, result, made = trace(self.python, signature)
        if made:  # once is enough: a layer builds itself on its first call
            graph, result, made = trace(self.python, signature)
        if made:
            raise ValueError("a variable is made in every call of this function; make it once, outside")
        return graph, result

    def renew(self):
        """Trace anew from the next call on: Python's values may have changed."""
        self.programs, self.traces = {}, 0

    def __reduce__(self):
        raise TypeError("a function cannot be copied: it holds programs and the variables of what it was traced with")


function = Function


def _packed_like(result):
    """A function that makes of a list of tensors what the traced function returned."""
    if result is None:
        return lambda outs: None
    return type(result) if type(result) in (list, tuple) else lambda outs: outs[0]


def _argument(x):
    """What a function is called with: an array or a variable as a tensor, and anything else that can be a key as it is."""
    if isinstance(x, (np.ndarray, Variable)):
        return as_tensor(x)
    if type(x) is Symbol:
        raise TypeError(f"{x!r} is of a trace that has ended; return what you need from the function")
    if type(x).__hash__ is None:
        raise TypeError(f"a {type(x).__name__} is no argument: expected tensors, arrays, variables, numbers or names")
    return x


def row_numbers(batches, rows):
    """The batches as arrays int64[steps, batch]: one, or two where the last batch is shorter."""
    parts = [batches]
    try:
        if not isinstance(batches, np.ndarray) and len({len(batch) for batch in batches}) > 1:
            parts = [batches[:-1], batches[-1:]]
        parts = [np.asarray(part) for part in parts]
    except (TypeError, ValueError):
        expected = "expected row numbers [steps, batch], the last batch perhaps shorter"
        raise ValueError(f"over: batches are {reprlib.repr(batches)}; {expected}") from None
    for part in parts:
        if part.ndim != 2 or part.dtype.kind not in "iu" or not part.size:
            raise ValueError(f"over: batches are {part.dtype}{part.shape}; expected whole numbers [steps, batch]")
        if part.min() < 0 or part.max() >= rows:
            wrong = part.min() if part.min() < 0 else part.max()
            raise IndexError(f"over: batches hold row {wrong}; there are {rows} rows")
    return [np.ascontiguousarray(part, np.int64) for part in parts]


# %%
line.set_weights(task.weights)
compiled = function(step)
first = [float(compiled(gather(x_, i), gather(y_, i))) for i in task.batches[:100]]
rest = compiled.over(x_, y_, task.batches[100:]).numpy().tolist()
print("losses equal:", first + rest == losses, "- traced", compiled.traces, "times: for a step, and for many")

# %% tags=["nbval-ignore-output"]
t_call = min(timeit.repeat(lambda: compiled(rows, target), number=1000, repeat=5)) / 1000
t_over = min(timeit.repeat(lambda: compiled.over(x_, y_, task.batches), number=1, repeat=5)) / len(task.batches)
told = f"eager {t_step * 1e6:.0f}, replay {t_replay * 1e6:.0f}, one compiled call {t_call * 1e6:.1f}"
print(f"µs a step: {told}, many in a call {t_over * 1e6:.2f}")

# %% [markdown]
# Bought back: with all steps in one call there is no Python between them, and a step costs what level 1's did. One call alone
# costs the Python around it. A function that asks for a number gets an error that says what
# to do instead, and a kernel of your own is respected: it stays a launch, and the step is replayed.


# %%
@function
def steep(x):
    return x * 2.0 if float(reduce_sum(x)) > 0.0 else x


try:
    steep(constant([1.0, 2.0]))
except TypeError as error:
    print(error)


# %%
def plain_sum(total, x):
    return total + x


with kernels.use("reduce_sum", "cpu", plain_sum):
    compiled.over(x_, y_, task.batches[:2])
    print(*[type(program).__name__ for program, _ in compiled.programs.values()])
compiled.over(x_, y_, task.batches[:2])
print(*[type(program).__name__ for program, _ in compiled.programs.values()])

# %% [markdown]
# ## The two tasks on this level (8 min)
#
# The step is what it was. `@function` stands above it, and the loop over the batches is one call.

# %%
#| export tasks
"""The two tasks as tensors: the formula forward, the tape backward, all steps in one program."""

from levels.hardware.tasks import Fit, check_inputs, check_task


def linear_regression(x, y, weights, batches, learning_rate=0.0005):
    """Mean squared error, stochastic gradient descent; see `Fit` and `check_task` for the shapes."""
    check_task(x, y, weights, batches, learning_rate, units=[1])
    w, b = map(Variable, weights)  # model

    @function
    def step(rows, target):
        with GradientTape() as tape:
            prediction = rows @ w + b  # forward
            error = prediction - target
            loss = reduce_mean(error * error)  # loss
        dw, db = tape.gradient(loss, [w, b])  # backward
        w.assign(w - learning_rate * dw)  # update
        b.assign(b - learning_rate * db)
        return loss

    losses = step.over(constant(x), constant(y), batches).numpy()

    def predict(x):
        check_inputs(x, w.dtype, w.shape[0])
        return (constant(x) @ w + b).numpy()

    return Fit(losses, [w.numpy(), b.numpy()], predict)


# %%
fit = linear_regression(task.x, task.y, task.weights, task.batches, task.learning_rate)
print("losses equal:", fit.losses.tolist() == losses)
print("last loss   ", float(fit.losses[-1]).hex(), f"= {fit.losses[-1]:.6f}")

# %%
penguins = tasks.penguins_mass()
figures.regression(penguins, linear_regression(*penguins[:2], *penguins[4:7]))

# %% [markdown]
# Points on the diagonal would be predicted exactly. R² is the share of the variance that the prediction explains: four fifths
# for real penguins.
#
# ### The second task: a net
#
# On level 2 the backward pass of the net was the longest part. Here it is the same one line, and the step around it is the one
# from above. But there are six weights now, so they are a list.


# %%
#| export tasks
def dnn(x, weights):
    """x[n, features] -> the probability [n, 1]"""
    w1, b1, w2, b2, w3, b3 = weights
    h1 = relu(x @ w1 + b1)
    h2 = relu(h1 @ w2 + b2)
    return sigmoid(h2 @ w3 + b3)


# %%
#| export tasks
def dnn_classifier(x, y, weights, batches, learning_rate=0.01):
    """features-4-8-1, relu, relu, sigmoid; binary cross-entropy, stochastic gradient descent; see `Fit`, `check_task`."""
    check_task(x, y, weights, batches, learning_rate, units=[4, 8, 1])
    weights = [Variable(w) for w in weights]  # model

    @function
    def step(rows, target):
        with GradientTape() as tape:
            prediction = dnn(rows, weights)  # forward
            c = clip(prediction, 1e-7, 1.0 - 1e-7)
            loss = -reduce_mean(target * log(c) + (1.0 - target) * log(1.0 - c))  # loss
        gradients = tape.gradient(loss, weights)  # backward
        for w, dw in zip(weights, gradients):  # update
            w.assign(w - learning_rate * dw)
        return loss

    losses = step.over(constant(x), constant(y), batches).numpy()

    def predict(x):
        check_inputs(x, weights[0].dtype, weights[0].shape[0])
        return dnn(constant(x), weights).numpy()

    return Fit(losses, [w.numpy() for w in weights], predict)


# %%
from levels import hardware

rings = tasks.rings()
ring_fit = dnn_classifier(*rings[:2], *rings[4:7])
below = hardware.tasks.dnn_classifier(*rings[:2], *rings[4:7])
print("losses equal: ", bool((ring_fit.losses == below.losses).all()))
print("weights equal:", all((p == q).all() for p, q in zip(ring_fit.weights, below.weights)))
figures.classifier(rings, ring_fit)

# %% [markdown]
# ## What this level cost (4 min)

# %% tags=["hide-input"]
checks.predict(
    "A step of the net has some fifty launches, and level 1's program took 11 µs for it (float64). And compiled?",
    choices=["about 11 µs", "about 50 µs, a microsecond for each op", "about 150 µs, as op by op"],
    answer="about 11 µs",
    because="Most of a launch is Python, on its way to a kernel. In the program an op is an instruction or a few, and what "
    "it gives stays in a register. It is the program of level 1: the assembler wrote out the graph as we wrote it out by hand.",
)

# %%
from course import compare

short = rings._replace(batches=rings.batches[:400])
with eager():
    launches, nbytes = (n / 400 for n in kernels.counted(lambda: dnn_classifier(*short[:2], *short[4:7])))
print(f"eager: {launches:.0f} launches and {nbytes:,.0f} bytes a step")
print(f"compiled: one call for all steps, and {100 * (2 + 1 + 1) * 8:,} bytes a step")
print(compare.lines(dnn_classifier, dnn), "lines, and nobody derived a gradient")

# %% tags=["nbval-ignore-output"]
with eager():
    op_by_op = compare.microseconds(dnn_classifier, short, repeats=3)
one_program = compare.microseconds(dnn_classifier, rings, steps=24_000, repeats=3)
by_hand = compare.microseconds(hardware.tasks.dnn_classifier, rings, steps=24_000, repeats=3)
print("µs a step       predicted   measured")
print(f"3 eager       {launches * t_op * 1e6:11.3g} {op_by_op:10.3g}")
print(f"3 compiled    {by_hand:11.3g} {one_program:10.3g}    (predicted: as level 1's, by hand)")

# %% [markdown]
# The eager prediction counts each launch as an addition of ten numbers; these have a hundred rows, and a tape that is read. What
# runs compiled is a program of level 1: tapes and dictionaries happened once, while we traced. `jax.jit` and `tf.function` with
# XLA go the same way: trace, make smaller, choose machine code. (`torch.compile` traces Python's bytecode.)
#
# ### The level below | here
#
# Both tasks, on the level beneath and here:

# %%
compare.measure(task, kernels.tasks.linear_regression, linear_regression, last=1000)

# %%
compare.measure(rings, kernels.tasks.dnn_classifier, dnn_classifier, last=50, repeats=1)

# %% [markdown]
# ### How two frameworks spell it
#
# | | TensorFlow | PyTorch | here |
# |---|---|---|---|
# | fixed numbers | `tf.constant` | `torch.tensor` | `constant`, `tensor` |
# | state | `tf.Variable`, `.assign` | `torch.nn.Parameter`, in place | `Variable`, `.assign` |
# | write down | `tf.GradientTape` | every tensor's `grad_fn` | `GradientTape` |
# | read back | `tape.gradient(loss, ws)` | `torch.autograd.grad(loss, ws)` | `tape.gradient(loss, ws)` |
# | compile | `@tf.function(jit_compile=True)` | `@torch.compile` | `@function` |
#
# ## Where to go from here
#
# Each of these takes one idea further, on top of this notebook: [second derivatives](more/03_second_derivatives.ipynb) (tapes in
# tapes), [passes](more/03_passes.ipynb), [fused programs](more/03_fused.ipynb) (steps that do not split),
# [guards](more/03_guards.ipynb), [more ops](more/03_more_ops.ipynb), [several devices](more/03_devices.ipynb).

# %% [markdown]
# ## Exercises (75 min, optional)
#
# As in the notebooks before: fill the stub, run, and read what the check says. What you write is run on this notebook's
# own tensors, in many shapes, and in float32 as well as in float64. (The numbers between stand in the notebooks that branch off.)
#
# ### 03-1 · A rule for a layer
#
# `x @ w + b` is two ops on the tape. As one op it would need one rule, with a gradient for each input. Look at one row,
# and at who meets whom:
#
# ```
#  x[i, k] ── w[k, j] ──┐
#                       + ── y[i, j]         dy[i, j] goes to x[i, k], times w[k, j]
#             b[j] ─────┘                                  to w[k, j], times x[i, k]
#                                                          to b[j]
# ```
#
# What one number sends to many comes back as a sum of many: `x[i, k]` meets every j, `w[k, j]` every row i. And `b` may have
# any shape that fits beside the product: `(1, units)`, `(units,)`, even `()`. (About 3 lines. Hint: `apply("matmul", …,
# transpose_w=True)`, and `unbroadcast`. The check asks nudges. A rule in NumPy would have no gradient of its own.)

# %%
from course.practice import exercises

exercises.begin("03-1")


def dense_rule(dy, y, x, w, b):
    """The gradients dx, dw, db of y = x[rows, inputs] @ w[inputs, units] + b, from the gradient dy[rows, units]."""
    return ...


exercises.check("03-1", dense_rule)

# %% [markdown]
# ### 03-5 · Break it: no order
#
# Our tape is a list. In [PyTorch](https://pytorch.org/docs/stable/notes/autograd.html) there is none: each tensor knows
# its maker (`grad_fn`), and who wants a gradient collects the makers, from the loss backwards. Here is a way to collect
# that looks reasonable:

# %%
from course.practice import exercises

exercises.begin("03-5")


def collected(makers, target):
    """The maker of the target, the makers of its inputs, the makers of theirs, …; the target's comes last."""
    found, waiting = {}, [target]
    for tensor in waiting:  # which grows on the way
        if tensor in makers and tensor not in found:
            found[tensor] = makers[tensor]
            waiting.extend(makers[tensor][1])
    return list(found.values())[::-1]


v = Variable(np.array(3.0))
for formula in (lambda u: u * u + u, lambda u: u + u * u):
    with GradientTape(persistent=True) as tape:
        z = formula(v * 2.0)
    makers = {record[3]: record for record in tape.records}
    (dv,) = walk_back(collected(makers, z), z, [v.value])
    print(f"z {float(z)}, dv {float(dv)}")

# %% [markdown]
# The same sum, its terms exchanged: the value is the same, the gradient is not, and no error. Which of the two is
# right? (Ask a nudge.) Then look for the cause: `print([op for op, *_ in collected(makers, z)])` is the list for the second
# formula, and a line of it uses a tensor before the line that makes it. `tape_drawing(tape.records)` shows why: two
# roads lead from z to u, a short one and a long one.
#
# Write a collector that no detour deceives. (About 10 lines. Hint: a record may be entered once all makers of its
# inputs are. A function inside the function can call itself. Keep what you have seen in a set: `in` a list would
# compare tensors.)

# %%
from course.practice import exercises

exercises.begin("03-5")


def in_order(makers, target):
    """The records that the target was made from, each once, after those that made its inputs.

    makers {tensor: the record (op, inputs, attrs, tensor) that made it}; a tensor that no op made is not in it.
    """
    return ...


exercises.check("03-5", in_order)

# %% [markdown]
# This is a **topological order**. The tape gets it as a gift: a program cannot use what it has not made yet.
#
# ### Without a check
#
# - Print the tape of the forward pass in `step`. Which record belongs to which operator? (There are five.)
# - Remove the call of `unbroadcast` from `walk_back`, then train `linear_regression`. Which error do you get, and from
#   where? (From `assign`: the gradient of b has a row for each row of the batch.)
# - Let `walk_back` run over the records forwards. What happens, and why? (It says that source 0 was not used: the walk
#   meets the loss last, when everything else has been passed.)
# - Make an op of the `hypotenuse` of notebook 02's exercises, and give it a rule for each input, `dy·a/y` and `dy·b/y`.
#   Does it meet a nudge? Where would it not?
#
# ## Build

# %%
build.level("03_low_level", linear_regression, dnn_classifier)

# %% [markdown]
# # 3 · Low-level API
#
# **In this notebook every operation passes one door, and what stands at the door differentiates your program.**
#
# This is the level of `tf.Tensor` and `torch.Tensor`, of `GradientTape` and `autograd`, of `tf.function` and `torch.compile`.
# About 80 minutes, without what is marked optional.

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
# ## A number that knows its operations (6 min)
#
# Python hands `x * w` to the type of `x`. So a number of a type of our own can do more than multiply:

# %%
notes = []


class Noted(float):
    """A number that writes down what is done to it, then does it."""

    def __mul__(self, other):
        notes.append(f"{self} * {other}")
        return Noted(float(self) * other)

    def __add__(self, other):
        notes.append(f"{self} + {other}")
        return Noted(float(self) + other)


# %%
x, w, b = Noted(3.0), Noted(2.0), Noted(1.0)
print(x * w + b)
notes

# %% [markdown]
# The formula is the ordinary one, and so is its number. But there is a list now of what was done, in order.
#
# The two methods say nearly the same. Ours will be one line each: they hand the name of an op to the door, `apply`, which
# does for all of them what has to be done. Four short pieces come first: the operators, the tensor, the variable, and how
# numbers come in. Then we build the door, and the first sum passes it. On level 2 we launched kernels by name and found a
# place for every result by hand. A **tensor** is a buffer with operators: `+` finds the name, and the door a place for the
# result.

# %%
#| export tensors
"""Every op passes one door, `apply`: tensors are numbers that go through it."""

import functools
import math
import reprlib
import weakref

import numpy as np

from levels.hardware import DEVICES, Buffer, placed_on, pool, unmasked
from levels.kernels import data_of, planned


def method(op, swapped=False):
    """The method of a tensor that hands it and another value to the door."""
    if swapped:
        return lambda self, other: apply(op, other, self)
    return lambda self, other: apply(op, self, other)


# %% [markdown]
# Then the operators are a table of names. (`__rsub__` is for `1.0 - x`: Python asks the number first, which does not know, and
# then the tensor, with the two swapped.)


# %%
#| export tensors
class Operators:
    """What a tensor and a variable can do in an expression."""

    __slots__ = ()
    __array_ufunc__ = None  # NumPy's arrays leave `array + tensor` to the tensor
    __hash__ = object.__hash__  # a tensor is a key by who it is, not by its numbers

    __add__, __radd__ = method("add"), method("add", swapped=True)
    __sub__, __rsub__ = method("subtract"), method("subtract", swapped=True)
    __mul__, __rmul__ = method("multiply"), method("multiply", swapped=True)
    __truediv__, __rtruediv__ = method("divide"), method("divide", swapped=True)
    __matmul__, __rmatmul__ = method("matmul"), method("matmul", swapped=True)
    __lt__, __gt__ = method("less"), method("less", swapped=True)
    __le__, __ge__ = method("less_equal"), method("less_equal", swapped=True)
    __rpow__ = method("power", swapped=True)

    def __pow__(self, other):
        return apply("multiply", self, self) if type(other) is int and other == 2 else apply("power", self, other)

    def __neg__(self):
        return apply("negative", self)

    def __eq__(self, other):
        return False if other is None else apply("equal", self, other)  # `None in [x]` asks this

    def __ne__(self, other):
        return True if other is None else apply("not_equal", self, other)

    def to(self, name):
        """The same numbers on another device."""
        return moved(self, name)

    def backward(self):
        """As in PyTorch: see the function of this name."""
        backward(self)


# %% [markdown]
# Python asks a value for more than arithmetic: for its length, for its parts, whether it is true, how it is printed. These are
# its *protocols*. Skip the folded cell at first reading: a tensor answers as NumPy's arrays do.


# %% tags=["hide-input"]
#| export tensors
class Protocols:
    """What a tensor and a variable tell Python and NumPy when they are asked."""

    __slots__ = ()

    def __len__(self):
        if not self.shape:
            raise TypeError("a tensor of shape () has no length")
        return self.shape[0]

    def __getitem__(self, index):
        return slice_of(self, index)

    def __iter__(self):
        return (self[i] for i in range(len(self)))

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
# Two nouns share these. A **tensor** never changes; that will matter when we look back.


# %%
#| export tensors
class Tensor(Operators, Protocols, Buffer):
    """An immutable buffer."""

    __slots__ = ()


# %% [markdown]
# A **variable** is a name for a tensor that may be replaced by another one, as the weights are after each step. `spec` is
# level 1's `Spec`: shape, dtype and device in one. `TAPES` are the listeners at the door; they hear of an assignment too.

# %%
#| export tensors
VARIABLES = weakref.WeakValueDictionary()  # id -> every variable that is alive


class Variable(Operators, Protocols):
    """A tensor that `assign` replaces: the state of a model. Its shape, dtype and device stay."""

    __slots__ = ("value", "name", "trainable", "grad", "__weakref__")

    def __init__(self, value, name=None, trainable=True):
        self.value, self.name, self.trainable = renamed(as_tensor(value)), name, trainable
        self.grad = None  # where `backward` leaves it
        VARIABLES[id(self)] = self

    spec = property(lambda self: self.value.spec)
    shape = property(lambda self: self.value.shape)
    dtype = property(lambda self: self.value.dtype)
    device = property(lambda self: self.value.device)

    def numpy(self):
        """A copy of the numbers as a NumPy array."""
        return self.value.numpy()

    def assign(self, value):
        """Name another tensor of the same shape, dtype and device. What was computed from the old one stays."""
        value = value if type(value) is Tensor else as_tensor(value, self)
        if value.spec is not self.value.spec:
            raise ValueError(f"assign: the variable is {self.spec}, the value {value.spec}")
        for tape in TAPES:
            tape.assigned.append(self)
        self.value = renamed(value)


# %% [markdown]
# What it names is a tensor of its own, even where the numbers are another's:


# %%
#| export tensors
def renamed(x):
    """The same numbers as another tensor. A tape knows a variable by its tensor, so no two things may share one."""
    x.device.used += x.spec.nbytes
    return type(x)(x.spec, x.data)


# %% [markdown]
# Numbers come in through `constant`. Python's floats become float32, as in TensorFlow and PyTorch; an
# array keeps its dtype.

# %%
#| export tensors
DTYPES = dict.fromkeys(map(np.dtype, (np.float32, np.float64, np.int64, np.bool_)))  # those that kernels know


def constant(values, dtype=None):
    """A tensor of the given numbers. Python floats and lists of them become float32, arrays keep their dtype."""
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
    return DEVICES[-1].put(array if array.dtype == to else in_range(array, to), Tensor)


tensor = constant  # PyTorch's name

# %% [markdown]
# A number may be too large for float32, and is refused. And a tensor lies on the device of the moment, cpu:0 unless another is
# named with level 1's `placed_on`. TensorFlow and PyTorch call it `device`:


# %%
#| export tensors
def in_range(array, dtype):
    """The array in that dtype. Raises OverflowError where a finite number would become infinite."""
    with np.errstate(over="ignore"):
        result = array.astype(dtype)
    if dtype.kind == "f" and (np.isinf(result) & np.isfinite(array)).any():
        raise OverflowError(f"a number is too large for {dtype}")
    return result


device = placed_on  # inside `with device(name):`, new tensors and variables are placed there

# %%
constant([1.0, 2.0]), constant(np.array([1.0, 2.0]))

# %% [markdown]
# The first holds Python's floats, so it is float32; the second came as a float64 array, and stays one.
#
# Beside a tensor, a Python number takes the tensor's dtype. Nothing else is mixed, and nothing is cast in silence.
# `as_tensor` does this for one value, with the tensor beside it as `like`; `as_tensors` for all inputs of an op.


# %%
#| export tensors
def as_tensor(value, like=None):
    """A tensor from a tensor, a variable, an array or numbers; a Python number takes the dtype of a tensor beside it, `like`."""
    if like is not None and type(value) in (float, int, bool):
        return number_tensor(value, type(value), value or str(value), like.spec)
    if isinstance(value, Variable):
        return value.value
    return value if isinstance(value, Tensor) else constant(value)


def as_tensors(values):
    """All of these as tensors; Python numbers take the dtype of the first tensor or variable among them."""
    tensors = []
    for like in values:
        if isinstance(like, Operators):
            break
    else:
        like = None
    for x in values:  # (in a comprehension this would take longer)
        kind = type(x)
        tensors.append(x if kind is Tensor else x.value if kind is Variable else as_tensor(x, like))
    return tensors


# %% [markdown]
# Numbers such as 1.0 come back again and again, so each is made once.


# %%
#| export tensors
@functools.lru_cache(maxsize=1024)
def number_tensor(value, kind, name, spec):
    """A single number as a tensor of that Spec's dtype and device. Tensors never change, so one serves every use.

    (0.0, -0.0, 0 and False are equal, so the kind and the name of a zero tell them apart.)
    """
    if (kind is bool) != (spec.dtype == np.bool_) or (kind is float and spec.dtype.kind != "f"):
        raise TypeError(f"{value} beside a tensor of {spec.dtype}: cast one of them")
    return spec.device.put(in_range(np.asarray(value), spec.dtype), Tensor)


# %% [markdown]
# ## The door (5 min)
#
# Every op passes here. The plan of level 2 knows the result's shape, dtype and device. Then the **engine** on duty decides
# what is done. Today there is one engine: it finds memory for the result and runs the kernel at once, which is called
# *eager*. And the door tells everyone who listens. The listeners are in `TAPES`, which is empty so far.
#
# First, a place for a result: a tensor whose shape is known and whose numbers are not.

# %%
#| export tensors
TAPES = []  # who listens: each hears of every op, in order
blank = object.__new__  # a global is found sooner than an attribute of one


def new_tensor(spec):
    """A tensor in new memory, its numbers not yet set: as `Device.new`, in two thirds of the time."""
    place = spec.device
    if place.memory is not None and spec.nbytes > place.memory - place.used:
        place.new(spec)  # which says that there is no room
    y = blank(Tensor)
    y.spec, y.data, y.rows = spec, spec.empty(spec.shape, spec.dtype), None
    place.used += spec.nbytes
    return y


# %% [markdown]
# The engine makes such a place and lets the plan's kernel fill it. The two cases written out are those of nearly every op,
# one or two arrays and no numbers besides; a call that fits all cases takes longer.


# %%
#| export tensors
def at_once(op, plan, inputs, attrs):
    """The engine that runs an op at once, into new memory."""
    if type(plan.spec) is tuple:
        raise TypeError(f"{op}: has several results; launch it")
    y = new_tensor(plan.spec)
    plan.launches += 1
    if plan.plain and len(inputs) == 2:
        plan.run(y.data, inputs[0].data, inputs[1].data)
    elif plan.plain and len(inputs) == 1:
        plan.run(y.data, inputs[0].data)
    else:
        plan.run(y.data, *map(data_of, inputs), *map(attrs.get, plan.numbers))
    return y


# %% [markdown]
# And the door itself: make tensors of the inputs, look up the plan, ask the engine on duty, tell the listeners.

# %%
#| export tensors
ENGINES = [at_once]  # the last one is on duty


def apply(op, *inputs, **attrs):
    """The door: let the engine do one op on tensors, and tell every open tape."""
    for x in inputs:
        if type(x) is not Tensor:
            inputs = as_tensors(inputs)
            break
    y = ENGINES[-1](op, planned(op, inputs, attrs), inputs, attrs)
    for tape in TAPES:
        tape.records.append((op, inputs, attrs, y))
    return y


# %% [markdown]
# The first sum that goes through it:

# %%
constant([1.0, 2.0]) + 3.0

# %% [markdown]
# `+` handed the name "add" to the door, the 3.0 became a tensor, and the kernel of level 2 did the rest. Now we can also see
# what sets a variable apart. We keep the tensor that it names, then assign:

# %%
w = Variable([1.0, 2.0])
kept = w.value
w.assign(w * 10.0)
w, kept

# %% [markdown]
# The variable names another tensor now. The old one did not change, so whoever still needs it, the way back for one, finds it
# as it was.

# %% [markdown]
# A few ops have no operator. They are functions with TensorFlow's names, and nearly all of them are one line.


# %%
#| export tensors
def matmul(x, w):
    """x[m, k] @ w[k, n] -> [m, n]"""
    return apply("matmul", x, w)


def gather(x, rows):
    """The rows of x with these numbers (an integer array)."""
    x = as_tensor(x)
    if not isinstance(rows, Operators):
        rows = np.asarray(rows)
        if rows.dtype.kind != "i" and rows.size:
            raise TypeError(f"gather: rows are {rows.dtype}; expected whole numbers")
        rows = x.device.put(rows.astype(np.int64), Tensor)
    return apply("gather", x, rows)


# %% [markdown]
# `exp` and `log` hand on their input. `clip` has two numbers besides, its *attributes*: they are no tensors, so they go by
# name.


# %%
#| export tensors
def exp(x):
    return apply("exp", x)


def log(x):
    return apply("log", x)


NUMBER = int, float, np.number


def clip(x, low, high):
    """x, but no less than low and no more than high."""
    if not isinstance(low, NUMBER) or not isinstance(high, NUMBER) or not low <= high:
        raise ValueError(f"clip: low is {low!r} and high is {high!r}; expected two numbers, the lower first")
    return apply("clip", x, low=float(low), high=float(high))


# %% [markdown]
# Reductions take one axis, several, or none, which means all.


# %%
#| export tensors
def whole(axis):
    """An axis, or a tuple of them, as Python's integers; None stays."""
    if axis is None or type(axis) is int:
        return axis
    if isinstance(axis, tuple):
        return tuple(map(whole, axis))
    if isinstance(axis, (bool, np.bool_)) or not hasattr(axis, "__index__"):
        raise TypeError(f"axis {reprlib.repr(axis)}: expected a whole number")
    return axis.__index__()


def reduce_sum(x, axis=None, keepdims=False):
    """The sum over one axis, several neighbours, or all numbers (axis=None), in order from 0.0."""
    return apply("reduce_sum", x, axis=whole(axis), keepdims=keepdims)


def reduce_mean(x, axis=None, keepdims=False):
    """The sum divided by the count."""
    return apply("reduce_mean", x, axis=whole(axis), keepdims=keepdims)


# %% [markdown]
# Those of neural nets have a room of their own, as `tf.nn` and `torch.nn.functional`:

# %%
#| export nn
"""The functions of neural nets."""


def relu(x):
    """x where it is positive, else 0."""
    return apply("relu", x)


def sigmoid(x):
    """1 / (1 + exp(-x))"""
    return apply("sigmoid", x)


def softmax(x):
    """exp(x) divided by its sum, along the last axis: probabilities."""
    return apply("softmax", x)


def log_softmax(x):
    """log(softmax(x)), and no overflow on the way."""
    return apply("log_softmax", x)


# %%
relu(constant([-1.0, 2.0])), reduce_mean(constant([1.0, 2.0, 6.0]))

# %% [markdown]
# Wrong calls are refused at the door, or below it, with one error:

# %%
wrong = (
    lambda: constant([1.0]) + constant([1.0], "f8"),
    lambda: constant([1]) * 0.5,
    lambda: matmul(constant([[1.0, 2.0]]), constant([[1.0]])),
    lambda: Variable([1.0]).assign([1.0, 2.0]),
    lambda: gather(constant([[1.0], [2.0]]), [2]),
    lambda: bool(constant([1.0, 2.0]) > 1.5),
)
for call in wrong:
    try:
        call()
    except (TypeError, ValueError, IndexError) as error:
        print(f"{type(error).__name__}: {error}")

# %% [markdown]
# ## The gradient at a point, by hand and by a nudge (3 min)
#
# Take one neuron and one row: `p = x·w + b`, and the loss `l = (p - y)²`. How does the loss change when `w` does? By hand,
# with the chain rule: `2·(p - y)·x`. Or by a nudge: move `w` a little up and a little down, and compare. We try both at
# x = 3, w = 2, b = 1 and y = 5.


# %%
def loss_of(w, b, x=3.0, y=5.0):
    error = x * w + b - y
    return error * error


by_hand = 2 * (3.0 * 2.0 + 1.0 - 5.0) * 3.0
by_nudge = (loss_of(2.0 + 1e-6, 1.0) - loss_of(2.0 - 1e-6, 1.0)) / 2e-6
print(f"by hand {by_hand}, by a nudge {by_nudge:.4f}")

# %% [markdown]
# By hand it is exact, and takes a person for each program. The nudge takes no person, but two runs for each weight, and it
# rounds. We look for a way that is exact and takes no person.
#
# ## The tape (20 min)
#
# Now someone listens at the door. A **tape** writes down each op that passes while it is open: its name, its inputs, its
# result. That is a list, and we can print it. Any object with such a list may listen:


# %%
class Listener:
    records = []


TAPES.append(Listener)
constant([1.0]) * 2.0 + 1.0
TAPES.remove(Listener)
[op for op, inputs, attrs, result in Listener.records]

# %% [markdown]
# `GradientTape` is this listener, with three things more. `with` opens and closes it. `gradient` reads it backwards, with
# `walk_back`, which we write in a moment. And it refuses what would give a wrong gradient in silence: to be read twice, or
# for a variable that changed on the way.

# %%
#| export autodiff
"""The tape: a list of what passed the door, read backwards it gives the gradient."""


class GradientTape:
    """Writes down every op while it is open. `gradient` reads it once, a persistent tape any number of times."""

    def __init__(self, persistent=False):
        self.persistent, self.records, self.assigned = persistent, [], []  # (op, inputs, attrs, result); variables

    def __enter__(self):
        if self in TAPES or self.records is None:
            raise RuntimeError(f"this tape is {'open already' if self in TAPES else 'read'}; make another one")
        TAPES.append(self)
        return self

    def __exit__(self, *_):
        if self in TAPES:
            TAPES.remove(self)

    def gradient(self, target, sources):
        """d target / d source for each source of a list, or for one: tensors shaped like the sources.

        A target of several numbers stands for their sum. A tape that is read while it is open is closed first.
        """
        if self.records is None:
            raise RuntimeError("gradient: this tape was read; GradientTape(persistent=True) can be read again")
        if not isinstance(sources, (list, tuple)):
            return self.gradient(target, [sources])[0]
        for variable in self.assigned:
            for k, source in enumerate(sources):
                if source is variable:
                    raise ValueError(
                        f"gradient: source {k} was assigned while the tape was open; assign after the gradient"
                    )
        place = TAPES.index(self) if self in TAPES else None
        self.__exit__()
        try:
            return walk_back(self.records, as_tensor(target), [as_tensor(source) for source in sources])
        finally:
            if not self.persistent:
                self.records = None
            elif place is not None:
                TAPES.insert(place, self)

    def __repr__(self):
        return "GradientTape, read" if self.records is None else printed(self.records)


# %% [markdown]
# When it is printed, each record is a line, and each tensor has a number, in the order in which they were met:


# %%
#| export autodiff
def printed(records):
    """The records as text: `  0  t2 = multiply(t0, t1)   (10, 1)`."""
    names, lines = {}, []
    for i, (op, inputs, attrs, y) in enumerate(records):
        *given, result = (names.setdefault(id(t), f"t{len(names)}") for t in (*inputs, y))
        call = ", ".join([*given, *(f"{name}={value}" for name, value in attrs.items())])
        lines.append(f"{i:3}  {result} = {op}({call})".ljust(56) + f" {y.shape}")
    return "\n".join(lines)


# %% [markdown]
# The neuron once more, now with a tape. (`"f8"` and `np.array(2.0)` keep float64; a `persistent` tape lets us look again after
# it was read.)

# %%
x, y = constant(3.0, "f8"), constant(5.0, "f8")
w, b = Variable(np.array(2.0)), Variable(np.array(1.0))
with GradientTape(persistent=True) as tape:
    error = x * w + b - y
    loss = error * error
tape

# %% [markdown]
# Four ops. t0 and t1 are `x` and `w`, t3 is `b`, t5 is `y`. t6 is `error`, used twice by the last line, and `()` is the shape
# of each result.
#
# To differentiate, read the list from the bottom. Each op must know one thing: if the loss changes by `dy` for each unit of
# the op's *result*, by how much does it change for each unit of each *input*? That is the chain rule for one op, its **vjp**
# (vector-Jacobian product). Take `y = a·b`: a unit of `a` moves `y` by `b`, and each unit of `y` moves the loss by `dy`. So
# `a` gets `dy·b`, and `b` gets `dy·a`. That is the row of `"multiply"`. One row an op, one function an input. (`relu_grad`
# and its like are kernels of level 2, which we wrote there for the way back. `spread_back` follows below.)

# %%
#| export autodiff
VJPS = {  # op -> for each input: (dy, y, *inputs, **attrs) -> the gradient of that input; None where none passes
    "add": (lambda dy, y, a, b: dy, lambda dy, y, a, b: dy),
    "subtract": (lambda dy, y, a, b: dy, lambda dy, y, a, b: -dy),
    "multiply": (lambda dy, y, a, b: dy * b, lambda dy, y, a, b: dy * a),
    "divide": (lambda dy, y, a, b: dy / b, lambda dy, y, a, b: -dy * y / b),
    "negative": (lambda dy, y, x: -dy,),
    "exp": (lambda dy, y, x: dy * y,),
    "log": (lambda dy, y, x: dy / x,),
    "relu": (lambda dy, y, x: apply("relu_grad", dy, y),),
    "sigmoid": (lambda dy, y, x: apply("sigmoid_grad", dy, y),),
    "clip": (lambda dy, y, x, low, high: apply("clip_grad", dy, x, low=low, high=high),),
    "broadcast_to": (lambda dy, y, x, shape: dy,),
    "spread": (lambda g, y, dy, x, count: apply("spread", g, y, count=count), None),
    "reduce_sum": (lambda dy, y, x, axis=None, keepdims=False: spread_back(dy, x, axis, keepdims),),
    "reduce_mean": (
        lambda dy, y, x, axis=None, keepdims=False: spread_back(dy, x, axis, keepdims, size(x.spec) / size(y.spec)),
    ),
    "gather": (lambda dy, y, x, rows: apply("scatter_add", dy, rows, count=x.spec.shape[0]), None),
}

# %% [markdown]
# The row of `"multiply"`, asked for y = 3·2 with dy = 1:

# %%
three, two, unit = constant(3.0), constant(2.0), constant(1.0)
[float(vjp(unit, three * two, three, two)) for vjp in VJPS["multiply"]]

# %% [markdown]
# A unit more of the 3 makes the product 2 larger, and a unit more of the 2 makes it 3 larger.

# %% [markdown]
# The product of matrices has two rules, and each must hold for operands that are given transposed. With `X` and `W` for what
# is multiplied, `dX = dy·Wᵀ` and `dW = Xᵀ·dy`. No transpose is ever made: the kernel reads the other way round.


# %%
#| export autodiff
def matmul_vjp_x(dy, y, x, w, transpose_x=False, transpose_w=False):
    if transpose_x:
        return apply("matmul", w, dy, transpose_x=transpose_w, transpose_w=True)
    return apply("matmul", dy, w, transpose_w=not transpose_w)


def matmul_vjp_w(dy, y, x, w, transpose_x=False, transpose_w=False):
    if transpose_w:
        return apply("matmul", dy, x, transpose_x=True, transpose_w=transpose_x)
    return apply("matmul", x, dy, transpose_x=not transpose_x)


VJPS["matmul"] = matmul_vjp_x, matmul_vjp_w

# %% [markdown]
# Two cases need care. A sum uses each number once, so every number gets the same `dy`: it is spread out again. And when a bias
# of shape `(1, 4)` was added to ten rows, it was used ten times. Its gradient is the sum of ten: the reverse of repeating is
# adding up.


# %%
#| export autodiff
def size(spec):
    """How many numbers a tensor of this Spec has."""
    return math.prod(spec.shape)


def spread_back(dy, x, axis, keepdims, count=1.0):
    """The reverse of reducing x to `dy`: every number of x gets the dy that it went into, divided by a count."""
    if axis is not None and not keepdims:
        shape = list(x.spec.shape)
        for a in axis if isinstance(axis, tuple) else (axis,):
            shape[a] = 1
        dy = apply("reshape", dy, shape=tuple(shape))
    return apply("spread", dy, x, count=count)


# %% [markdown]
# The bias is **yours to fill in**: `dx` has the shape of the sum, and the input may have fewer axes, or 1 where the sum has
# more. `apply("reduce_sum", dx, axis=0, keepdims=True)` adds up the rows, and keeps an axis of 1. Left as it is, or as
# long as a case says no, the course's own goes on in its place; once it is right, your level is built from yours.


# %%
#| export autodiff blank unbroadcast
def unbroadcast(dx, shape):
    """dx summed over the axes in which an input of this shape was repeated."""
    ...  # about 7 lines


# %% [markdown]
# <details><summary>Hint</summary>Axes are compared from the right. What the input lacks on the left is summed away; where it
# has a 1 and <code>dx</code> has more, that axis is summed and stays, as a 1.</details>
# <details><summary>Second hint</summary><code>extra = len(dx.spec.shape) - len(shape)</code> axes go first, all at once, with
# <code>axis=tuple(range(extra))</code> and <code>keepdims=False</code>. Then walk over the pairs of
# <code>dx.spec.shape</code> and <code>shape</code>.</details>
# <details><summary>Solution</summary>
#
# ```python
# def unbroadcast(dx, shape):
#     """dx summed over the axes in which an input of this shape was repeated."""
#     extra = len(dx.spec.shape) - len(shape)
#     if extra:
#         dx = apply("reduce_sum", dx, axis=tuple(range(extra)), keepdims=False)
#     for axis, (have, wanted) in enumerate(zip(dx.spec.shape, shape, strict=True)):
#         if have != wanted:
#             dx = apply("reduce_sum", dx, axis=axis, keepdims=True)
#     return dx
# ```
# </details>

# %% tags=["hide-input"]
checks.predict(
    "b of shape (1, 4) was added to ten rows, and we forget `unbroadcast`. Which shape does the gradient of b get?",
    choices=["(1, 4), as b", "(10, 4)", "an error from the rule"],
    answer="(10, 4)",
    because="The rule of an addition hands dy on as it is. Each row's share is in it, but nobody has added them up. No rule "
    "complains; `assign` would, when a bias of one row is to become ten.",
)

# %%
dy = constant(np.ones((10, 4)))
forgotten = VJPS["add"][1](dy, None, dy, constant(np.zeros((1, 4))))
print("without", forgotten.shape, "- with", unbroadcast(forgotten, (1, 4)).shape)

# %% [markdown]
# Now the walk. It starts with the loss, whose gradient is 1. At each record the rules of the op hand the result's gradient on
# to the inputs. Where an input gets a second one, the two are added. For the neuron, these are six lines:

# %%
gradients = {loss: constant(1.0, "f8")}
for op, inputs, _, result in reversed(tape.records):
    for given, vjp in zip(inputs, VJPS[op]):
        share = vjp(gradients[result], result, *inputs)
        gradients[given] = gradients[given] + share if given in gradients else share
print("w", float(gradients[w.value]), "b", float(gradients[b.value]))

# %% [markdown]
# 12, as by hand. That is backpropagation ([Rumelhart, Hinton and Williams, 1986](https://doi.org/10.1038/323533a0)).
# `walk_back` is the same loop, with four cares: it skips what does not lead from a source to the target, adds up what was
# repeated, leaves out inputs that have no gradient, and says so when a rule or a source is missing.


# %%
#| export autodiff
def walk_back(records, target, sources):
    """The gradients of `target`: from the last record to the first, each op hands its gradient on to its inputs."""
    for k, t in enumerate((target, *sources)):
        if t.spec.dtype.kind != "f":
            name = f"source {k - 1}" if k else "the target"
            raise TypeError(f"gradient: {name} is {t.dtype}; only floats have a gradient")
    needed, useful = set(sources), []  # what depends on a source, by which records
    for record in records:
        if not needed.isdisjoint(record[1]):
            needed.add(record[3])
            useful.append(record)
    one = as_tensor(1.0, target)
    gradients = {target: apply("broadcast_to", one, shape=target.shape) if target.shape else one}
    for op, inputs, attrs, y in reversed(useful):
        dy, rules = gradients.get(y), VJPS.get(op)
        if dy is None:
            continue
        if rules is None:
            raise LookupError(f"gradient: {op} has no rule yet; add a row to VJPS")
        for x, vjp in zip(inputs, rules if type(rules) is tuple else rules(len(inputs))):
            if x not in needed or vjp is None or (dx := vjp(dy, y, *inputs, **attrs)) is None:
                continue
            if dx.spec is not x.spec:
                dx = unbroadcast(dx, x.spec.shape)
            gradients[x] = gradients[x] + dx if x in gradients else dx
    for k, source in enumerate(sources):
        if source not in gradients:
            raise ValueError(f"gradient: source {k} was not used on the way to the target while the tape was open")
    return [gradients[source] for source in sources]


# %%
dw, db = tape.gradient(loss, [w, b])
print(f"by hand {by_hand}, by a nudge {by_nudge:.4f}, by the tape {float(dw)}")

# %% [markdown]
# Exact, and no person. One walk gives the gradient of every weight, be there two or a million; the nudge needs two runs for
# each. The tape as a drawing, a gradient beneath each weight:

# %%
from course.figures.drawing import tape_drawing

tape_drawing(tape.records, dict(x=x, y=y, w=w, b=b, error=error, loss=loss), dict(w=dw, b=db))

# %% [markdown]
# **Walk it step by step.** Move `step` and watch where each gradient goes. Then choose with `bump` one of the four inputs. It
# is raised by a millionth, and the green numbers show how far each value moves. Where green meets blue, gradient times move
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

walk = figures.backward_walk(squared_error, x=3.0, w=2.0, b=1.0, y=5.0)
widgets.explore(
    functools.partial(figures.tape_backwards, walk),
    "The tape, backwards, and a bump that meets it.",
    step=range(5),
    bump=["w", "x", "b", "y"],
    start={"step": 1},
)

# %% [markdown]
# ### Why backwards, and in order
#
# `error` was used twice: both factors of the last product are `error`. Its gradient is complete only when every op that used
# it has been read.

# %% tags=["hide-input"]
checks.predict(
    "`z = u * u + u` with u = 6. The slope is 2·6 + 1 = 13. What would u get if a second gradient replaced the first?",
    choices=["13", "6", "1"],
    answer="6",
    because="The addition hands u a 1. Then each factor of the product hands it 6, and the last one stays.",
)

# %% [markdown]
# Gradients are added, so `u` gets 13. But in which order? Here is the program, three ops with the one that makes `u`, and a
# walk that reads the first of them too early:

# %%
v = Variable(np.array(3.0))
with GradientTape(persistent=True) as tape:
    u = v * 2.0
    z = u * u + u
first, second, third = tape.records
for name, records in {"in order": [first, second, third], "the first too early": [second, first, third]}.items():
    dv, du = walk_back(records, z, [v.value, u])
    print(f"{name:20} du {float(du)}, dv {float(dv)}")
print(f"{'by hand':20} du {2 * 6.0 + 1}, dv {2 * (2 * 6.0 + 1)}")

# %% [markdown]
# `u` ends with 13 both times. But in the second walk `v` was told when only one of the two ops that use `u` had been read, and
# `u` stood at 1.

# %% [markdown]
# The program wrote the list in an order in which every input is older than its result. Read from the end, every user comes
# before the thing it used. No sorting is needed: the order of the records is enough.
#
# ### Every rule meets a nudge
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
a, b = draw.uniform(0.5, 2, (2, 3, 2))
row, m = draw.normal(size=(1, 2)), draw.normal(size=(2, 4))
cases = {
    "add": (lambda x, y: x + y, a, row),
    "subtract": (lambda x, y: x - y, a, row),
    "multiply": (lambda x, y: x * y, a, row),
    "divide": (lambda x, y: y / x, a, row),
    "negative": (lambda x: -x, a),
    "exp": (exp, a),
    "log": (log, a),
    "relu": (relu, row),
    "sigmoid": (sigmoid, a),
    "clip": (lambda x: clip(x, -0.5, 0.9), a),
    "broadcast_to": (lambda x: apply("broadcast_to", x, shape=(3, 2)) * a, row),
    "spread": (lambda x: apply("spread", x, constant(a), count=3.0) * a, row),
    "reduce_sum": (lambda x: reduce_sum(x * x, axis=1), b),
    "reduce_mean": (lambda x: reduce_mean(x * x, axis=0), b),
    "gather": (lambda x: gather(x, [2, 0, 2]) * b, a),
    "matmul": (lambda x, y: (x @ y) * (x @ y), a, m),
}

# %%
assert {*cases} == {*VJPS}, {*cases} ^ {*VJPS}
worst = {op: meets_nudge(*case) for op, case in cases.items()}
print(f"{len(cases)} rules, all within 1e-6:", all(difference < 1e-6 for difference in worst.values()))

# %% [markdown]
# And the product of matrices once more, for each way in which its operands may be given:


# %%
def product(p, q):
    return lambda x, w: apply("matmul", x, w, transpose_x=p, transpose_w=q) ** 2


ways = [(p, q) for p in (False, True) for q in (False, True)]
worst = [meets_nudge(product(p, q), a.T if p else a, m.T if q else m) for p, q in ways]
print(f"{len(ways)} ways, all within 1e-6:", all(difference < 1e-6 for difference in worst))

# %% [markdown]
# ### Tapes in tapes
#
# The rules are made of ops, which pass the door as well. So a second tape around the first writes down the walk, and can be
# read for the second derivative.

# %% tags=["hide-input"]
checks.predict(
    "y = x³ at x = 3. What is the gradient of the gradient?",
    choices=["27", "18", "an error: gradients cannot be differentiated"],
    answer="18",
    because="The gradient is 3x² = 27, its own gradient 6x. The rules are made of ops, so the inner tape's walk passed the "
    "door, and the outer tape wrote it down like any other program.",
)

# %%
x = Variable(np.array(3.0))
with GradientTape() as outer:
    with GradientTape() as inner:
        y = x * x * x
    first = inner.gradient(y, x)
print("first derivative", float(first), "second", float(outer.gradient(first, x)))

# %% [markdown]
# A tape can be read once, then it lets its records go; a *persistent* one keeps them. And sometimes a value shall count as
# given, whatever it was made from. `stop_gradient` is a copy whose rule is that nothing passes:

# %%
#| export autodiff
VJPS["copy"] = (None,)


def stop_gradient(x):
    """The same numbers, through which no gradient passes (`detach` in PyTorch)."""
    return apply("copy", x)


# %%
with GradientTape() as tape:
    y = x * stop_gradient(x)
print(float(tape.gradient(y, x)), "and not", float(2 * x))

# %% [markdown]
# PyTorch spells the same walk in two other ways. It always records; here the innermost open tape does. `grad` hands the
# gradients out:


# %%
#| export tensors
def innermost(asked):
    """The innermost open tape, for the function that asked."""
    if not TAPES:
        raise RuntimeError(f"{asked}: no tape is open; compute inside `with GradientTape():`")
    return TAPES[-1]


# %%
#| export autodiff
def grad(outputs, inputs):
    """As `torch.autograd.grad`: the gradients of one number, from the innermost open tape."""
    tape = innermost("grad")
    if math.prod(outputs.shape) != 1:
        raise ValueError(f"grad: the output has shape {outputs.shape}; expected one number")
    return tape.gradient(outputs, inputs)


# %% [markdown]
# `loss.backward()` names no variables. It asks for all that the loss was made from, and leaves with each its gradient. Where
# one lies there already, the two are added, so that several losses can share a step. (The operators call it, so it lives in
# their room.)


# %%
#| export tensors
def backward(loss):
    """Add the gradients of this loss to the `grad` of the variables that it was made from."""
    tape = innermost("backward")
    if tape.assigned:
        raise ValueError("backward: a variable was assigned while the tape was open; assign after the gradient")
    used = {as_tensor(loss)}
    for _, inputs, _, y in reversed(tape.records):
        used.update(inputs if y in used else ())
    variables = [v for v in VARIABLES.values() if v.value in used and v.dtype.kind == "f"]
    for variable, gradient in zip(variables, tape.gradient(loss, variables)):
        variable.grad = gradient if variable.grad is None else variable.grad + gradient


# %%
x = Variable(np.array(2.0))
with GradientTape():
    print("grad  ", float(grad(x * x, x)))
for _ in range(2):
    with GradientTape():
        (x * x).backward()
    print("x.grad", float(x.grad))

# %% [markdown]
# ## A part that owns variables (2 min)
#
# An optimizer wants a list of all variables. A **module** finds them: in its attributes, and in the lists, dicts and modules
# that it has as attributes.

# %%
#| export module
"""A module finds its variables."""


def parts(value):
    """[(name, part), …] of a module, a dict, a list or a tuple; of anything else none."""
    if isinstance(value, (Module, dict)):
        return [*(vars(value) if isinstance(value, Module) else value).items()]
    return [*enumerate(value)] if isinstance(value, (list, tuple)) else []


# %% [markdown]
# What was found is not entered again, so a part may name its parent, and two layers may share a variable:


# %%
#| export module
class Module:
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
            waiting += [(f"{path}.{name}" if path else str(name), part) for name, part in reversed(parts(value))]
        return found

    variables = property(lambda self: list(self.named(Variable).values()))
    trainable_variables = property(lambda self: [v for v in self.variables if v.trainable])

    def get_weights(self):
        """The values of all variables, as NumPy arrays."""
        return [variable.numpy() for variable in self.variables]

    def set_weights(self, weights):
        """Give all variables these values. Raises ValueError, and changes none, where one of them does not fit."""
        variables, weights = self.variables, list(weights)
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
class Net(Module):
    def __init__(self, sizes):
        self.layers = [
            {"w": Variable(np.ones((inputs, units))), "b": Variable(np.zeros((1, units)))}
            for inputs, units in zip(sizes, sizes[1:])
        ]


net = Net([2, 4, 8, 1])
print(net.count(), "numbers in", *net.named(Variable))

# %% [markdown]
# ## An op of your own, on every level (3 min)
#
# What does a new op need? A row in each table: a kernel and its plan on level 2, a rule on this level. Here is x³, whose slope
# at 2 we know:

# %%
from levels import kernels

kernels.scalar("cube")(lambda x: x * x * x)
VJPS["cube"] = (lambda dy, y, x: dy * (3.0 * x * x),)


def cube(x):
    return apply("cube", x)


x = Variable(np.array(2.0))
with GradientTape() as tape:
    y = cube(x)
print(float(y), float(tape.gradient(y, x)), "meets a nudge:", meets_nudge(cube, a) < 1e-6)

# %% [markdown]
# Two rows and a name, and it has loops for any shapes, float32 and float64, and a gradient, whose rule is made of ops that
# have their own.
#
# ## A train step (6 min)
#
# ### Data

# %%
task = tasks.linear()
print("x", task.x.shape, " y", task.y.shape, " batches", task.batches.shape)

# %% [markdown]
# ### Model and loss, the gradient, an update
#
# The forward pass is now the formula. The backward pass has shrunk to one line, which we did not have to derive.

# %%
w, b = (Variable(value, name) for value, name in zip(task.weights, "wb"))


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
x_, y_ = constant(task.x), constant(task.y)
losses = [float(step(gather(x_, i), gather(y_, i))) for i in task.batches]
below = kernels.tasks.linear_regression(task.x, task.y, task.weights, task.batches, task.learning_rate)
print("losses equal: ", losses == below.losses.tolist())
print("weights equal:", all((p.numpy() == q).all() for p, q in zip([w, b], below.weights)))

# %% [markdown]
# ### What it costs
#
# The losses and the weights are those of level 2, to the last bit. And the time?

# %% tags=["hide-input"]
checks.predict(
    "Level 2 took about 20 µs for such a step. And this level?",
    choices=["less, the code is shorter", "two or three times as long", "ten times as long"],
    answer="two or three times as long",
    because="A few more launches, 17 and not 14. And each costs more than it did: it finds new memory for its result, is "
    "written down, and is read again on the way back.",
)

# %% tags=["hide-input"]
checks.predict(
    "An addition of two arrays of ten numbers takes NumPy about 0.3 µs. And two tensors?",
    choices=["about the same", "about five times as long", "fifty times as long"],
    answer="about five times as long",
    because="The kernel is no slower. Plan, memory, engine and tapes are Python, a tenth of a microsecond here and there.",
)

# %% tags=["nbval-ignore-output"]
import timeit

ten, i = np.ones((10, 1)), constant(task.batches[0])
one = constant(ten)
t_numpy = min(timeit.repeat(lambda: ten + ten, number=1000, repeat=5)) / 1000
t_op = min(timeit.repeat(lambda: one + one, number=1000, repeat=5)) / 1000
t_step = min(timeit.repeat(lambda: step(gather(x_, i), gather(y_, i)), number=100, repeat=5)) / 100
print(f"an addition: NumPy {t_numpy * 1e6:.1f} µs, tensors {t_op * 1e6:.1f} µs; a step {t_step * 1e6:.0f} µs")

# %%
launches, nbytes = kernels.counted(lambda: step(gather(x_, i), gather(y_, i)))
print(f"{launches} launches and {nbytes:,} bytes a step")

# %% [markdown]
# Your times will differ from those here, their ratios less so. The launches are the same everywhere. On level 2 our hand
# made 14 of them. Forward the tape makes 7 and the hand 8, since a mean is one op here. Backward the hand made 4 and the tape 6: it shares
# 1/n out over the rows in each step, and multiplies twice where the hand added a product to itself. The update took 2
# launches and takes 4, products and differences instead of `sgd`.
#
# So comfort has a price: more launches, and a larger cost for each. Level 1 took 0.05 µs for this very step. In the rest of
# this notebook we buy that back.
#
# ## Written down, not run (5 min)
#
# Who stands at the door decides what is done. So far an engine ran each op at once. Here is another one, which says what the
# plan knows and runs nothing. What it gives back is memory in which nobody has put a number:


# %%
def says(op, plan, inputs, attrs):
    print(f"{op} would give {plan.spec}")
    return new_tensor(plan.spec)


ENGINES.append(says)
y = relu(constant([[1.0, 2.0]]) @ constant([[3.0], [4.0]]))
ENGINES.remove(says)

# %% [markdown]
# Shapes are known before any number is. So let an engine run *nothing* and write each op down: a **node**, with the nodes it
# reads. What it gives back is a **symbol**, a tensor without numbers. The program cannot tell the difference, as long as it
# never asks for a number.

# %%
#| export graph
"""A function of tensors, run once on symbols, becomes a graph; passes make the graph smaller."""

from contextlib import contextmanager, suppress

from levels.hardware import Spec
from levels.kernels import COMPILERS, ELEMENTWISE, KERNELS, PLANS


class Node:
    """One op of a graph, with nodes as its inputs; or a leaf: an "input", a "variable" or a "constant"."""

    __slots__ = ("op", "inputs", "attrs", "spec")

    def __init__(self, op, inputs, attrs, spec):
        self.op, self.inputs, self.attrs, self.spec = op, tuple(inputs), attrs, spec

    def __repr__(self):
        return f"{self.op} {self.spec.dtype}{list(self.spec.shape)}"


# %% [markdown]
# A graph made for ten rows serves twelve, if the program never asked how many there are. So a symbol reports when somebody
# looks at the size of its batch (`batch`, the first axis of the arguments).


# %%
#| export graph
class Symbol(Tensor):
    """A tensor whose numbers are not known yet; its `data` is the node that will compute them."""

    __slots__ = ()

    @property
    def shape(self):
        if getattr(ENGINES[-1], "batch", None) in self.spec.shape:  # on any axis: it may have been transposed
            ENGINES[-1].any_batch = False
        return self.spec.shape

    def numpy(self):
        raise TypeError(
            f"{self!r}: its numbers are not known while a function is traced; `if` becomes where(mask, x, y)"
        )

    def __repr__(self):
        return f"Symbol({self.spec})"


# %% [markdown]
# The engine that writes down is the **tracer**. A tensor that was there before becomes a leaf: a constant. A variable is a
# leaf of its own kind, since its value differs from step to step. The rest of this cell is bookkeeping: which values the
# variables had before, and which variables were made while we trace.


# %%
#| export graph
class Tracer:
    """The engine that runs nothing and writes each op down as a node."""

    def __init__(self, batch):
        self.batch, self.any_batch, self.nodes, self.constants = batch, True, [], {}
        self.symbols, self.before, self.made = [], {v: v.value for v in VARIABLES.values()}, []

    def __call__(self, op, plan, inputs, attrs):
        return self.symbol(op, [self.node(x) for x in inputs], attrs, plan.spec)

    def symbol(self, op, inputs, attrs, spec):
        """A new node, and the tensor that stands for it."""
        self.nodes.append(Node(op, inputs, attrs, spec))
        spec.device.used += spec.nbytes  # taken off again when the symbol is freed
        self.symbols.append(Symbol(spec, self.nodes[-1]))
        return self.symbols[-1]

    def node(self, x):
        """The node of a tensor. One that has numbers is a constant, or the value of a variable made since the trace began."""
        if type(x) is Symbol:
            return x.data
        if x not in self.constants:
            self.constants[x] = Node("constant", (), {"of": x}, x.spec)
            self.nodes.append(self.constants[x])
            self.made += [(weakref.ref(v), self.constants[x]) for v in VARIABLES.values() if v.value is x]
        return self.constants[x]


# %% [markdown]
# A graph is a list of nodes, those among them that are the results, and for each variable that was assigned the node of its
# new value.


# %%
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
                names.setdefault(x, leaf_name(x) or f"t{len(lines)}")
            given = [*map(names.get, node.inputs), *(f"{k}={v}" for k, v in node.attrs.items())]
            lines.append(f"{names[node]:>4} = {node.op}({', '.join(given)})".ljust(56) + f" {node.spec.shape}")
        return "\n".join(lines)


def leaf_name(node):
    """What a leaf is called: the name of a variable, x0 for the first argument, a number that it is. None for others."""
    of = node.attrs.get("of")
    if node.op == "variable":
        return of.name
    if node.op == "input":
        return f"x{of}"
    return str(of.numpy()) if node.op == "constant" and not node.spec.shape else None


# %% [markdown]
# While the tracer is on duty, every variable holds a symbol. Level 2 is told to compile nothing, as we want only the shapes
# of its plans. Such plans are no good for running; the next trace finds them in `SKETCHES`. Afterwards everything is put back
# as it was.


# %%
#| export graph
SKETCHES = {}  # the version of KERNELS -> the plans that traces made with them


@contextmanager
def on_duty(tracer):
    """Inside this `with` block ops are written down, and variables hold symbols."""
    plans, compiler = dict(PLANS), COMPILERS["cpu"]
    PLANS.clear()
    PLANS.update(SKETCHES.get(KERNELS.version, {}))
    ENGINES.append(tracer)
    COMPILERS["cpu"] = lambda function, *_: function  # a compiler that leaves the function as it is
    try:
        for variable, value in tracer.before.items():
            variable.value = tracer.symbol("variable", (), {"of": variable}, value.spec)
        yield
    finally:
        ENGINES.pop()
        COMPILERS["cpu"] = compiler
        SKETCHES.clear()
        SKETCHES[KERNELS.version] = dict(PLANS)
        PLANS.clear()
        PLANS.update(plans)
        for made, node in tracer.made:
            if made() is not None:  # it outlives the call, so it is a variable; another one starts anew in each call
                tracer.before[made()], node.op, node.attrs = node.attrs["of"], "variable", {"of": made()}
        for variable, value in tracer.before.items():
            variable.value = value
        for symbol in tracer.symbols:
            symbol.device.free(symbol)


# %% [markdown]
# To **trace** a function is to run it on symbols.


# %%
#| export graph
def trace(python, signature, batch=None):
    """Run `python` on symbols, one for each Spec in the signature, whose other entries are (type, value, …).

    Returns its Graph, what it returned, and whether it never asked for the size of the batch.
    """
    tracer = Tracer(batch)
    with on_duty(tracer):
        args = [tracer.symbol("input", (), {"of": k}, x) if type(x) is Spec else x[1] for k, x in enumerate(signature)]
        result = python(*args)
        outputs = [tracer.node(as_tensor(x)) for x in results_of(result)]
        values = {v: v.value.data for v in VARIABLES.values() if type(v.value) is Symbol}
    if values.keys() - tracer.before.keys():
        raise ValueError("a variable that is made inside a function needs numbers, and is read before it is assigned")
    updates = {v: node for v, node in values.items() if node.attrs.get("of") is not v}
    return Graph(tracer.nodes, outputs, updates), result, tracer.any_batch


def results_of(result):
    """The tensors that a function returns: none, one, or those of a list or a tuple."""
    if result is None:
        return []
    return list(result) if isinstance(result, (list, tuple)) else [result]


# %% [markdown]
# The step from above, on ten rows:

# %%
cpu = pool()["cpu:0"]
signature = cpu.spec((10, 2), "f8"), cpu.spec((10, 1), "f8")
graph, result, any_batch = trace(step, signature, batch=10)
print(graph)
print("returned:", result, "- variables with a new value:", [v.name for v in graph.updates])

# %% [markdown]
# Forward, gradient and update, all in one list: the walk of the tape passed the door as well. x0 and x1 are the arguments. The
# `spread` is the gradient of the mean, a tenth of 1 for each row.

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

# %% [markdown]
# ## Making it smaller (5 min)
#
# Now that the step is data, we can change it. A **pass** takes a graph and gives a graph that computes the same with less. The
# first throws away what nothing needs: *dead-code elimination*. (`rebuilt` is a tool for the next two passes.)


# %%
#| export graph
def without_dead(graph):
    """Only what a result or a new value needs, and the variables that get one."""
    needed = {*graph.outputs, *graph.updates.values()}
    needed.update(node for node in graph.nodes if node.op == "variable" and node.attrs["of"] in graph.updates)
    for node in reversed(graph.nodes):
        if node in needed:
            needed.update(node.inputs)
    return Graph([node for node in graph.nodes if node in needed], graph.outputs, graph.updates)


def rebuilt(graph, change):
    """The graph with change(node, new inputs) in the place of each op."""
    new = {}
    for node in graph.nodes:
        new[node] = change(node, tuple(new[x] for x in node.inputs)) if node.inputs else node
    updates = {variable: new[node] for variable, node in graph.updates.items()}
    return Graph([*dict.fromkeys(new.values())], [new[node] for node in graph.outputs], updates)


# %% [markdown]
# The next does the same op on the same inputs only once: *common-subexpression elimination*. The last computes what depends
# on constants alone: *constant folding*. It does so for elementwise ops, in Python's floats; a kernel would have to be
# compiled for one number.


# %%
#| export graph
def shared(graph):
    """The same op on the same inputs is done once."""
    seen = {}

    def change(node, inputs):
        return seen.setdefault((node.op, inputs, *node.attrs.items()), Node(node.op, inputs, node.attrs, node.spec))

    return rebuilt(graph, change)


def folded(graph):
    """What depends on constants alone is computed now, in Python's floats."""

    def change(node, inputs):
        if node.op in ELEMENTWISE and node.spec.dtype.kind == "f" and all(x.op == "constant" for x in inputs):
            scalar = functools.partial(KERNELS[node.op, "cpu"], **numbers_of(node))
            with (
                suppress(ArithmeticError, TypeError),
                np.errstate(all="ignore"),
            ):  # what Python refuses, 1 / 0 or a complex root, is left to the kernels
                value = each(scalar, *(x.attrs["of"].numpy().astype(object) for x in inputs))
                value = np.broadcast_to(value.astype(node.spec.dtype), node.spec.shape)
                return Node("constant", (), {"of": constant(value)}, node.spec)
        return Node(node.op, inputs, node.attrs, node.spec)

    return rebuilt(graph, change)


def each(function, *arrays):
    """The function of every number of these arrays of Python's objects, broadcast."""
    return np.asarray(np.frompyfunc(function, len(arrays), 1)(*arrays), object)


def numbers_of(node):
    """The attributes of an elementwise op that are numbers. (The shape of broadcast_to is none.)"""
    return {name: value for name, value in node.attrs.items() if name != "shape"}


# %% [markdown]
# A program with something for each pass:


# %%
def wasteful(rows, target):
    exp(rows)  # and nobody needs it
    scale = constant(2.0, "f8") * 3.0
    return reduce_sum((rows @ w - target) * (rows @ w - target)) * scale


def smaller(graph):
    print(f"{'as traced':16} {len(graph.ops)} ops")
    for one_pass in (without_dead, shared, folded):
        graph = one_pass(graph)
        print(f"{one_pass.__name__:16} {len(graph.ops)} ops")
    return graph


before = trace(wasteful, signature)[0]
print(before)
smaller(before)

# %% [markdown]
# Nine ops became five: `exp` was dead, the error was computed once, and 2·3 is 6. And the step? There the tape multiplied
# twice by `error`, once for each factor of `error * error`:

# %%
graph = smaller(graph)

# %%
from course.figures.drawing import graph_drawing

graph_drawing(graph, ["rows", "target"])

# %% [markdown]
# Grey runs forward to the loss, green runs back, and purple is the update.
#
# ## One program for the whole step (10 min)
#
# Look at the graph with the eyes of level 1. A row of the batch goes its own way: no row asks another one. Then the rows are
# added up, and then the variables change. A map over rows, sums over rows, an update: that is exactly the shape of the program
# that you wrote by hand in notebook 01. So let the computer write it, with the very same assembler.
#
# This is the longest code of the course, and it answers three questions in turn. Does the graph split like that? (`Split`)
# What does an op compute for one row? (`computed`) In which order is it written? (`write_step`) Read the text and the outputs
# first; the cells can wait.
#
# First: does a graph split like that? Walk through it once. An input whose first axis is the batch has rows. An op on rows
# gives rows, if each row of the result needs only the same row; or it adds the rows up; or it does neither, and then there is
# no such program.

# %%
#| export compiler
"""A graph becomes a program: by rows where it splits so, else loop by loop, else launch by launch."""

import ctypes
import sys
import types
import warnings
from contextlib import ExitStack, nullcontext
from operator import itemgetter

from levels.hardware import PAGE, REAL, Assembler, Value, aligned, dot, host_lanes, select
from levels.kernels import PLANNERS, REDUCTIONS, as_slices, globals_read, merged_axes, plan_rows, reduced


def adds_rows(node, by_row):
    """Whether this op adds up what the rows have."""
    if node.op in ("reduce_sum", "reduce_mean"):
        return 0 in reduced(node.op, node.inputs[0].spec.shape, node.attrs.get("axis"))[0]
    return node.op == "matmul" and all(by_row) and node.attrs.get("transpose_x") and not node.attrs.get("transpose_w")


# %% [markdown]
# `by_row` says of each input whether it has rows. A sum over axis 0 adds rows up, and so does `Xᵀ·dy`, the gradient of the
# weights. Which ops keep the rows apart?


# %%
#| export compiler
def keeps_rows(node, by_row):
    """Whether a row of the result needs only the same row of those inputs that have rows."""
    op, attrs, axes, first = node.op, node.attrs, len(node.spec.shape), node.inputs[0].spec.shape
    if op in ELEMENTWISE:
        shapes = [(x.spec.shape, row) for x, row in zip(node.inputs, by_row)]
        return all(len(shape) == axes if row else len(shape) < axes or shape[0] == 1 for shape, row in shapes)
    if op == "matmul":
        return by_row == [True, False] and not attrs.get("transpose_x")
    if op in REDUCTIONS or op == "reduce_mean":
        return 0 not in reduced(op, first, attrs.get("axis"))[0]
    if op in ("slice", "slice_grad"):
        return attrs["slices"][0] == (None, None, None)
    if op == "reshape":
        return node.spec.shape[:1] == first[:1]
    own = op == "cast" or op == "concat" and attrs["axis"] > 0 or PLANNERS.get(op) is plan_rows and axes > 1
    return all(by_row) and own


# %% [markdown]
# Not every graph fits into one program: it must stay with one dtype, and everything that a row needs is written out, number by
# number, so there may not be too much of it. An op whose kernel you have replaced is left to your kernel.


# %%
#| export compiler
class NoProgram(Exception):
    """Says why a graph is no program of some kind."""


LIMIT = 1500  # operations on single numbers written out for one row; with more of them, loops are quicker (measured)
OWN = dict(KERNELS)  # an op with another kernel than these is run by that kernel


def own_kernel(node):
    """Whether an op has the kernel that the course gave it."""
    key = node.op, node.spec.device.kind
    return OWN.get(key) is KERNELS[key]


# %% [markdown]
# Each refusal says why, so that whoever wonders about a slow step can read the reason.


# %%
#| export compiler
def check_fits(graph):
    """Raise NoProgram for what no program can hold."""
    dtypes = {node.spec.dtype for node in graph.nodes} - {np.dtype(bool)}
    leaves = [node for node in graph.nodes if node.op in ("input", "variable")]
    masks = [node for node in (*leaves, *graph.outputs, *graph.updates.values()) if node.spec.dtype == bool]
    if masks or len(dtypes) != 1 or dtypes.isdisjoint(REAL):
        raise NoProgram(
            f"it has {', '.join(sorted(map(str, dtypes)))}{' and bools' * bool(masks)}; expected one float dtype"
        )
    for node in graph.ops:
        kind = node.spec.device.kind
        if kind != "cpu" or node.op not in ELEMENTWISE and not own_kernel(node):
            raise NoProgram(f"{node.op} on {kind} is left to its kernel")


# %% [markdown]
# What passes holds floats of one dtype, and masks. A program by rows also has to have room for a row:


# %%
#| export compiler
def dtype_of(graph):
    """The dtype of all numbers in a graph that fits."""
    return next(node.spec.dtype for node in graph.nodes if node.spec.dtype != bool)


def check_rows(graph, rows):
    """Raise NoProgram for what cannot be written out row by row."""
    check_fits(graph)
    if not rows.isdisjoint(graph.updates.values()):
        raise NoProgram("a variable would become rows")
    work = sum(math.prod(node.spec.shape[node in rows :]) * depth(node) for node in graph.nodes)
    if work > LIMIT:
        raise NoProgram(f"{work:,} operations for a row; a program writes out {LIMIT:,}")


# %% [markdown]
# A number of a matrix product is a sum of as many products as `x` has columns:


# %%
#| export compiler
def depth(node):
    """How many products each row adds to a number of this node."""
    return node.inputs[0].spec.shape[-1] if node.op == "matmul" and not node.attrs.get("transpose_x") else 1


# %% [markdown]
# What is computed after the sums belongs to the next **stage**: the update comes after stage 0. (A mean over the batch that is
# used by the rows again makes two loops over the rows.)


# %%
#| export compiler
class Split:
    """Which nodes of a graph are computed row by row, which add rows up, and after how many such sums each one comes."""

    def __init__(self, graph, batch):
        self.graph, self.batch, self.any_batch = graph, batch, batch != 1  # does it hold for any number of rows?
        self.rows, self.sums, self.stage = set(), set(), {}
        for node in graph.nodes:
            by_row = [x in self.rows for x in node.inputs]
            self.stage[node] = max((self.stage[x] for x in node.inputs), default=0)
            if node.op == "input" and node.spec.shape[:1] == (batch,):
                self.rows.add(node)
            elif any(by_row) and adds_rows(node, by_row):
                self.sums.add(node)
                self.stage[node] += 1
            elif any(by_row):
                if not keeps_rows(node, by_row):
                    raise NoProgram(f"{node!r} takes more than the same row of its inputs")
                self.rows.add(node)
                if node.op == "spread" and by_row[0] and node.attrs["count"] % batch == 0:
                    self.any_batch = False  # each row has a share already, of a mean over this very batch
        check_rows(graph, self.rows)


# %%
split = Split(graph, batch=10)
print("by row:  ", *(node.op for node in graph.ops if node in split.rows))
print("sums:    ", *(node.op for node in graph.ops if node in split.sums))
print("after it:", *(node.op for node in graph.ops if node not in split.rows | split.sums))

# %% [markdown]
# Seven ops run for each row, three add up, and four update w and b. In the figure: grey and most of green, then purple.
#
# Here is a graph that does not split. In `X·Xᵀ` every row meets every other row:

# %%
try:
    Split(trace(lambda x: apply("matmul", x, x, transpose_w=True), signature[:1])[0], batch=10)
except NoProgram as why:
    print(why)

# %% [markdown]
# Now each op must be written for one row. Remember that a scalar function runs on anything that has operators: on floats, in
# kernels, and on the assembler's values. So an array of values, and the op's own function for each of them, is all we need. A
# matrix product is the `dot` of level 1, in the order of the record.


# %%
#| export compiler
def elementwise_values(node, inputs, by_row, row, batch):
    """The op's scalar function of each number; what has no rows is repeated for all."""
    numbers, axes = numbers_of(node), len(node.spec.shape)
    if node.op == "spread" and row and not by_row[0] and numbers["count"] != 1.0:
        numbers["count"] = batch * (numbers["count"] / node.spec.shape[0])  # the batch of the call, not of the trace
    inputs = [x[0] if row and not own and len(x.shape) == axes else x for x, own in zip(inputs, by_row)]
    scalar = functools.partial(KERNELS[node.op, "cpu"], **numbers)
    return np.broadcast_to(each(scalar, *inputs), node.spec.shape[row:])


def product_values(node, x, w):
    x, w = (v.T if node.attrs.get(name) else v for v, name in ((np.atleast_2d(x), "transpose_x"), (w, "transpose_w")))
    return np.array([dot(line, column) for line in x for column in w.T], object)


def reduced_values(node, x, row):
    """The op's function takes in one number after the other, in order."""
    axes = tuple(axis - row for axis in reduced(node.op, node.inputs[0].spec.shape, node.attrs.get("axis"))[0])
    op, (before, within, after) = node.op.replace("mean", "sum"), reduced(node.op, x.shape, axes)[1]
    total, x = np.full((before, after), REDUCTIONS[op], object), x.reshape(before, within, after)
    for k in range(within):
        total = each(KERNELS[op, "cpu"], total, x[:, k])
    return total if op == node.op else each(lambda t: t / float(within), total)


# %% [markdown]
# NumPy's arrays can hold anything, so "for each of them" works on whatever stands for a number. Even on its name:

# %%
each(lambda x, y: f"{x} + {y}", np.array(["x0", "x1"], object), "b")

# %% [markdown]
# Put the assembler's values in the place of the names and its `+` in the place of the text, and each entry is an instruction.

# %% [markdown]
# The rest only moves values around, which NumPy does on arrays of anything. And a kernel of rows, such as softmax, is run as
# it is: its loops unroll themselves.


# %%
#| export compiler
def row_kernel_values(node, inputs, shape):
    out = np.empty((math.prod(shape[:-1]), shape[-1]), object)
    KERNELS[node.op, "cpu"](out, *(x.reshape(out.shape) for x in inputs))
    return out


# %% [markdown]
# Now every op has a form for one row, and `computed` chooses it:


# %%
#| export compiler
def computed(node, inputs, by_row, row, batch):
    """The values of a node: arrays of what one row has (row=1) or of all there is (row=0). `batch` counts the rows."""
    op, attrs, shape, x = node.op, node.attrs, node.spec.shape[row:], inputs[0]
    if op in ELEMENTWISE:
        return elementwise_values(node, inputs, by_row, row, batch)
    if op in REDUCTIONS or op == "reduce_mean":
        return reduced_values(node, x, row).reshape(shape)
    if PLANNERS[op] is plan_rows:
        return row_kernel_values(node, inputs, shape).reshape(shape)
    if op == "matmul":
        return product_values(node, *inputs).reshape(shape)
    if op == "cast":
        return each(lambda v: select(v, 1.0, 0.0), x) if node.inputs[0].spec.dtype == bool else x
    if op == "concat":
        return np.concatenate(inputs, attrs["axis"] - row)
    if op == "reshape":
        return x.reshape(shape)
    index = (*as_slices(attrs.get("slices", ()))[row:], ...)  # (an array, also where no axis is left)
    if op == "slice":
        return x[index]
    if op == "slice_grad":
        out = np.full(shape, 0.0, object)
        out[index] = x
        return out
    raise NoProgram(f"{op} has no form for single numbers")


# %% [markdown]
# With these the program is written from the outside in. A step loads the variables, runs through the stages, and stores
# results and new values:


# %%
#| export compiler
def write_step(writer, step):
    """Write one step: stage after stage, what all rows share first, then the loop over the rows; then the stores."""
    graph, split, known = writer.split.graph, writer.split, {}
    for stage in range(max(split.stage.values(), default=0) + 1):
        for node in graph.nodes:
            if split.stage[node] == stage and node not in split.rows and node not in split.sums:
                if node.op == "constant":
                    known[node] = node.attrs["of"].numpy().astype(object)
                else:
                    known[node] = writer.value(node, known, 0) if node.inputs else writer.loaded(node)
        sums = [node for node in graph.nodes if node in split.sums and split.stage[node] == stage + 1]
        ends = [k for k, node in enumerate(graph.outputs) if node in split.rows and split.stage[node] == stage]
        if sums or ends:
            known |= write_loop(writer, step, known, sums, ends)
    for k, node in enumerate(graph.outputs):
        if node not in split.rows:
            writer.stored(known[node], writer.outs[k], *([step] if writer.over else []))
    variables = {node.attrs["of"]: array for node, array in writer.arrays.items() if node.op == "variable"}
    for variable, node in graph.updates.items():
        writer.stored(known[node], variables[variable])


# %% [markdown]
# The loop over the rows computes what its sums need, number by number, and adds it to them:


# %%
#| export compiler
def write_loop(writer, step, known, sums, ends):
    """Write the loop over rows: what these sums and these results need. Returns the values of the sums."""
    a, graph, split = writer.a, writer.split.graph, writer.split
    needed = {*(graph.outputs[k] for k in ends)}.union(*(node.inputs for node in sums))
    for node in reversed(graph.nodes):
        if node in needed and node in split.rows:
            needed.update(node.inputs)
    totals = {node: each(lambda _: a.sum(), np.zeros(node.spec.shape)) for node in sums}
    with a.loop(writer.extent, a.lanes) as r:
        row, here = a.load(writer.batches, step, r) if writer.over else r, dict(known)
        for node in graph.nodes:
            if node in needed and node in split.rows:
                here[node] = writer.value(node, here, 1) if node.inputs else writer.loaded(node, row)
        for node in sums:
            for total, term in terms(node, [here[x] for x in node.inputs], totals[node]):
                total += term
        for k in ends:
            writer.stored(here[graph.outputs[k]], writer.outs[k], r)
    for node in sums:
        totals[node] = each(lambda total: total.total(), totals[node])
        if node.op == "reduce_mean":
            many = writer.count * (size(node.inputs[0].spec) / node.inputs[0].spec.shape[0] / size(node.spec))
            totals[node] = each(lambda total, n: total / n, totals[node], many)
    return totals


# %% [markdown]
# What a row adds to a sum is its own value; to the gradient of the weights it adds a product for each weight:


# %%
#| export compiler
def terms(node, inputs, totals):
    """[(a sum, what this row adds to it), …], in order."""
    if node.op == "matmul":
        return [(totals[i, j], x * y) for i, x in enumerate(inputs[0]) for j, y in enumerate(inputs[1])]
    totals = totals.ravel()
    return [(totals[k % len(totals)], x) for k, x in enumerate(inputs[0].ravel())]


# %% [markdown]
# What both hold on to, the assembler and its arrays, comes last. `over` is one more loop around the step, whose rows are
# picked by number.


# %%
#| export compiler
class Writer:
    """Writes the program of a split graph: of one step on rows as they lie or, with `over`, of many on rows by number."""

    def __init__(self, split, over):
        graph, self.split, self.over, self.extent = split.graph, split, over, "batch" if over else "rows"
        self.a = a = Assembler("steps" if over else "step", dtype_of(graph))
        leaves = [node for node in graph.nodes if node.op in ("input", "variable")]
        self.arrays = {node: a.array(f"{node.op}{k}", *self.sizes(node)) for k, node in enumerate(leaves)}
        self.batches = a.array("batches", "steps", "batch", rows_of="rows") if over else None
        self.outs = [a.array(f"out{k}", *(["steps"] if over else self.sizes(n))) for k, n in enumerate(graph.outputs)]
        with a.loop("steps") if over else nullcontext() as step:
            self.count = a.count(self.extent) if over or split.rows else None
            write_step(self, step)
        self.program = a.assemble()

    def sizes(self, node):
        return ("rows", *node.spec.shape[1:]) if node in self.split.rows else node.spec.shape or (1,)

    def loaded(self, node, *row):
        """What an array, or one row of it, holds: an array of values."""
        values = np.empty(node.spec.shape[len(row) :], object)
        for index in np.ndindex(values.shape):
            values[index] = self.a.load(self.arrays[node], *([*row, *index] or [0]))
        return values

    def stored(self, values, array, *place):
        for index in np.ndindex(values.shape):
            self.a.store(values[index], array, *([*place, *index][: len(array.shape)] or [0]))

    def value(self, node, known, row):
        """The values of a node, from those of its inputs."""
        by_row = [x in self.split.rows for x in node.inputs]
        return computed(node, [known[x] for x in node.inputs], by_row, row, self.count)


# %%
text = Writer(split, over=False).program.text
body = text.split("body")[2].split("br label")[0]  # from the label of the loop's body to its end
print(
    "\n".join(line for line in body.splitlines() if any(f" {op} " in line for op in ("fmul", "fadd", "fsub", "fdiv")))
)

# %% [markdown]
# Forward, loss and backward of one row, then the four sums. (`0x3FF0000000000000` is 1.0 in hexadecimal, and `%v0` the number
# of rows: %v45 is the 1/n of the mean.) It is the body of the loop that you wrote in notebook 01, and no line of it was
# written by hand.

# %% [markdown]
# ### To call it (optional)
#
# The program wants a block of words: addresses and sizes. Most stay from call to call. New values of variables go where the
# old ones are, unless somebody else still holds those: a tensor never changes.

# %%
#| export compiler
addressof, nothing_at, refs = ctypes.addressof, (ctypes.c_char * 0).from_buffer, sys.getrefcount


def address(array):
    """Where the numbers of an array lie. (`array.ctypes.data` says the same, and takes five times as long.)"""
    return addressof(nothing_at(array))


def check_results(graph):
    """Raise ValueError unless each result of a step is one number."""
    for node in graph.outputs:
        if size(node.spec) != 1:
            raise ValueError(f"over: a step returns {node.spec}; expected one number, such as the mean of the rows")


@functools.lru_cache
def with_rows(spec, rows):
    """The Spec of as many rows like these."""
    return spec.device.spec((rows, *spec.shape[1:]), spec.dtype)


# %% [markdown]
# The block itself, and where in it each address and size stands:


# %%
#| export compiler
class Call:
    """A program, the block of words it is called with, and where in the block what stands.

    A word is (what it is, which one) for an array whose address will stand there, the name of a size, or a number that stays.
    """

    def __init__(self, program, words, updates):
        self.program, self.block, self.places = program, (ctypes.c_int64 * len(words))(), {}
        self.start, order = ctypes.addressof(self.block), {variable: k for k, variable in enumerate(updates)}
        for place, word in enumerate(words):
            self.places.setdefault(word, []).append(place)
            if isinstance(word, int):
                self.block[place] = word
        arrays = [(place, *word) for place, word in enumerate(words) if isinstance(word, tuple)]
        self.inputs = [(place, of) for place, what, of in arrays if what == "input"]
        self.reads = [(place, of) for place, what, of in arrays if what == "variable" and of not in order]
        self.writes = [(place, order[of]) for place, what, of in arrays if what == "variable" and of in order]
        self.outs = [(place, of) for place, what, of in arrays if what == "out"]
        self.rows = self.places.get("rows", ())


# %% [markdown]
# A step and many steps are two programs, written when they are first needed. Both change the same variables, so both must
# know where these are. Before each run we make sure that nobody else holds what the program is about to overwrite: Python
# counts the references to each object.


# %% tags=["hide-input"]
#| export compiler
class Rows:
    """A graph as one program by rows: `run` does one step, `over` any number of them."""

    def __init__(self, graph, batch):
        self.split = Split(graph, batch)
        self.any_batch, rows = self.split.any_batch, [node for node in graph.nodes if node in self.split.rows]
        self.first = next((node.attrs["of"] for node in rows), None)  # who has rows
        self.prepare(graph, [(node.spec, node in self.split.rows) for node in graph.outputs])

    def prepare(self, graph, specs):
        """Write the program of one step. `specs`: of the results, and whether they have as many rows as the batch."""
        self.graph, self.specs, self.changed, self.values = graph, specs, [*graph.updates], [None] * len(graph.updates)
        self.one = graph.nodes[0].spec.device.spec((1,), dtype_of(graph))  # a result of one step
        self.calls, self.alone = {False: self.written(False)}, (0, 0)

    def written(self, over):
        """The program of one step, or with `over` of many, and its block."""
        writer = Writer(self.split, over)
        words = {array.name: (node.op, node.attrs["of"]) for node, array in writer.arrays.items()}
        words |= {array.name: ("out", k) for k, array in enumerate(writer.outs)}
        return Call(writer.program, [words.get(name, name) for _, name in writer.program.words], self.graph.updates)

    def settle(self):
        """Give the variables that change values in memory which nobody else sees, and tell the programs where it is."""
        self.values = [new_tensor(variable.value.spec) for variable in self.changed]
        for variable, value in zip(self.changed, self.values):
            np.copyto(value.data, variable.value.data)
            variable.value = value
            self.alone = refs(value), refs(value.data)  # as many refer to it and to its array when nobody else does
        for call in self.calls.values():
            for place, k in call.writes:
                call.block[place] = address(self.values[k].data)

    def launch(self, call, args, outs, rows):
        """Fill in the block and run."""
        block, (alone, data_alone) = call.block, self.alone
        for place, k in call.inputs:
            block[place] = addressof(nothing_at(args[k].data))
        for place, variable in call.reads:
            block[place] = address(variable.value.data)
        for place, k in call.outs:
            block[place] = addressof(nothing_at(outs[k].data))
        for place in call.rows:
            block[place] = rows
        for variable, value in zip(self.changed, self.values):
            if variable.value is not value or refs(value) > alone or refs(value.data) > data_alone:
                self.settle()
                break
        call.program.run(call.start)
        return outs

    def run(self, args):
        """One step. Returns the results as new tensors."""
        rows = None if self.first is None else args[self.first].spec.shape[0]
        outs = [new_tensor(with_rows(spec, rows) if by_row else spec) for spec, by_row in self.specs]
        return self.launch(self.calls[False], args, outs, rows)

    def over(self, args, batches):
        """A step for each row of `batches`. Returns each result, a number, as a tensor of all steps."""
        if True not in self.calls:
            check_results(self.graph)
            self.calls[True] = self.written(True)
            self.settle()
        call, (steps, batch) = self.calls[True], batches.shape
        for name, word in (("steps", steps), ("batch", batch), ("batches", address(batches))):
            for place in call.places.get(name, ()):
                call.block[place] = word
        outs = [new_tensor(with_rows(self.one, steps)) for _ in self.specs]
        return self.launch(call, args, outs, args[0].spec.shape[0])


# %% [markdown]
# ### Does it give the same losses?
#
# `Rows(graph, batch)` splits a graph, writes its program and holds it. Its `run` hands over the addresses and does one step.
# From the same start, on the first hundred batches:

# %%
for variable, value in zip([w, b], task.weights):
    variable.assign(value)
program = Rows(graph, 10)
print([float(program.run([gather(x_, i), gather(y_, i)])[0]) for i in task.batches[:100]] == losses[:100])

# %% [markdown]
# The same hundred losses as before, to the last bit.
#
# ## When a step does not split (15 min, optional)
#
# A net with dozens of units is too much to write out number by number. Such a graph stays a list of launches. But elementwise
# ops that follow each other become one loop, written with the assembler too: the values stay in registers, where a launch for
# each would write and read them all. This is **fusion**.


# %%
#| export compiler
@functools.cache
def in_programs(function, masks, floats, numbers):
    """Whether a scalar function can be written into a program: not if it asks `if`, or calls what knows only numbers."""
    a = Assembler("trial", np.float32)
    x = a.number("x")
    try:
        result = function(*[x < x] * masks, *[x] * floats, **dict.fromkeys(numbers, 0.5))
    except Exception:  # whatever it is that it cannot do
        return False
    return isinstance(result, Value)


def loop_of(node):
    """The Spec, a shape and a dtype of floats, that all nodes of a loop share. None for a node that fits in none."""
    results, _, _, masks = ELEMENTWISE.get(node.op, (0, None, None, 0))
    dtype, device = node.inputs[-1].spec.dtype, node.spec.device
    plain = node.op == "cast" and dtype in (np.dtype(bool), node.spec.dtype) and own_kernel(node)
    loop = device.spec(node.spec.shape, node.spec.dtype if plain else dtype)
    if loop.dtype not in REAL or not 0 < loop.nbytes < 2**31 or device.kind != "cpu" or results != 1 and not plain:
        return None
    function, floats = KERNELS[node.op, device.kind], len(node.inputs) - masks
    return loop if plain or in_programs(function, masks, floats, tuple(numbers_of(node))) else None


# %% [markdown]
# Our example is a layer of 64 units, with its gradient and update:

# %%
wide, narrow = Variable(np.full((8, 64), 0.01), "wide"), Variable(np.full((64, 1), 0.01), "narrow")


def layer_step(rows, target):
    with GradientTape() as tape:
        error = sigmoid(relu(rows @ wide) @ narrow) - target
        loss = reduce_mean(error * error)
    for variable, gradient in zip([wide, narrow], tape.gradient(loss, [wide, narrow])):
        variable.assign(variable - 0.1 * (gradient + 0.01 * variable))
    return loss


graph = smaller(trace(layer_step, (cpu.spec((32, 8), "f8"), cpu.spec((32, 1), "f8")), 32)[0])

# %% [markdown]
# Which nodes share a loop? We go through them in order. One that reads a **unit** of its own shape joins it, and makes one of
# several. A unit that anybody else reads is closed, for it must have run by then; so the last nodes of the units give an
# order in which they can run. (Units that read nothing of each other stay apart: a loop with more arrays than registers is
# slower.) A mask has no place in memory. If another unit needs one, we start again with it alone.


# %%
#| export compiler
def fused(graph, alone=frozenset()):
    """The units of a graph: lists of nodes, in an order in which they can run. Those of `alone` are units of their own."""
    home, closed = {}, set()  # node -> its unit; nodes of units that are closed
    for node in graph.ops:
        loop = None if node in alone else loop_of(node)
        joined = [x for x in node.inputs if loop and x in home and x not in closed and loop_of(x) is loop]
        if any(x.spec.dtype == np.bool_ and x not in joined for x in node.inputs):
            loop, joined = None, []
        for x in node.inputs:
            if x not in joined:
                closed.update(home.get(x, ()))
        if not loop:
            closed.add(node)
        unit = [*dict.fromkeys(member for x in joined for member in home[x]), node]
        home.update(dict.fromkeys(unit, unit))
    read = {x for node in home for x in node.inputs if home.get(x) is not home[node]}
    read.update(graph.outputs, graph.updates.values())
    if masks := {x for x in read if x.spec.dtype == np.bool_ and len(home.get(x, ())) > 1}:
        return fused(graph, alone | masks)
    return [unit for node, unit in home.items() if unit[-1] is node]


# %%
for unit in fused(graph):
    print(*(node.op for node in unit))

# %% [markdown]
# Twelve units, from 23 ops. Products and sums stay alone. What lies between them is one loop, and so is the whole update of a
# variable.
#
# A unit of several nodes becomes a program. Each number is loaded once and stored once, whatever is done to it in between.


# %%
#| export compiler
def all_lanes(dtype):
    """How many numbers a register holds. Lanes that never meet in a sum reorder nothing, so float64 has them too."""
    return host_lanes() * 4 // dtype.itemsize


def loop_program(nodes, results):
    """One program for these elementwise nodes; and whose arrays it takes, in order: the inputs, then the results."""
    inputs = list(dict.fromkeys(x for node in nodes for x in node.inputs if x not in nodes))
    sizes, owners = zip(*merged_axes(results[0].spec.shape, [x.spec.shape for x in inputs]))
    owned = dict(zip(inputs, zip(*owners))) | dict.fromkeys(results, (True,) * len(sizes))

    def own(x, parts):
        return [part for part, has in zip(parts, owned[x]) if has]

    dtype = inputs[0].spec.dtype
    a = Assembler("fused loop", dtype, all_lanes(dtype))
    arrays = {x: a.array(f"x{n}", *own(x, sizes) or [1]) for n, x in enumerate(owned)}
    values, index = {}, []
    with ExitStack() as loops:
        for depth in range(len(sizes) + 1):
            if depth:
                index.append(loops.enter_context(a.loop(sizes[depth - 1], a.lanes if depth == len(sizes) else 1)))
            for x in inputs:  # a row's number, or a lone one, is loaded before the loops in which it stays the same
                if x not in values and not any(owned[x][depth:]):
                    values[x] = a.load(arrays[x], *own(x, index) or [0])
        for node in nodes:
            function = KERNELS[node.op, node.spec.device.kind]
            if node.op == "cast":
                x = node.inputs[0]
                values[node] = select(values[x], 1.0, 0.0) if x.spec.dtype == bool else values[x]
            else:
                values[node] = function(*map(values.get, node.inputs), **numbers_of(node))
        for node in results:
            a.store(values[node], arrays[node], *index)
    return a.assemble(), list(arrays)


# %% [markdown]
# What passes from unit to unit needs memory. A buffer whose last reader has run is given to the next value of the same size.


# %%
#| export compiler
def room_for(spec):
    """A buffer of as many bytes."""
    return spec.device.alloc((spec.nbytes,), np.bool_)


def placed(units, kept):
    """{node: a buffer} for what passes from unit to unit and is not kept."""
    last = {x: n for n, unit in enumerate(units) for node in unit for x in node.inputs}
    buffers, free = {}, {}
    for n, unit in enumerate(units):
        for x in unit:
            if x not in kept and last[x] > n:
                again = free.get(x.spec.nbytes)
                buffers[x] = again.pop() if again else room_for(x.spec)
        for x in dict.fromkeys(x for node in unit for x in node.inputs):
            if x in buffers and last[x] == n:
                free.setdefault(x.spec.nbytes, []).append(buffers[x])
    return buffers


# %% [markdown]
# Each unit becomes something to call, a program with its block of words or the launch of level 2:


# %%
#| export compiler
def run_loop(nodes, results, fixed):
    """A unit of several nodes as a function of {node: array}, and the bytes it moves. `fixed` arrays never change."""
    program, taken = loop_program(nodes, results)
    block = (ctypes.c_int64 * len(taken))(*(address(fixed[x]) if x in fixed else 0 for x in taken))
    changing = [(n, x) for n, x in enumerate(taken) if x not in fixed]

    def run(arrays):
        for n, x in changing:
            block[n] = address(arrays[x])
        program.run(block)

    return run, sum(x.spec.nbytes for x in taken)


def run_launch(node):
    """A unit of one node as a function of {node: array}, and the bytes it moves."""
    plan = planned(node.op, [x.spec for x in node.inputs], node.attrs).ready()
    run, numbers, take = plan.run, [node.attrs[name] for name in plan.numbers], itemgetter(node, *node.inputs)
    return lambda arrays: run(*take(arrays), *numbers), plan.nbytes


# %% [markdown]
# And all of them in a row. The results of a call are new, and so are the new values of variables, in memory that may have been
# that of an old value, if nobody holds it any more.


# %%
#| export compiler
def references(variable):
    """How many know the tensor of a variable, its array, and the memory behind that."""
    tensor = variable.value
    return refs(tensor), refs(tensor.data), refs(getattr(tensor.data, "base", None))


ALONE = references(Variable(np.zeros(PAGE)))  # (an array under a page has nothing behind it; a new one costs little)


class Launches:
    """A graph, ready to run: a function for each unit, and memory for what passes between them. One call at a time."""

    def __init__(self, graph, why=None):
        self.graph, self.why, self.any_batch = graph, why, False  # why: what kept it from being a program by rows
        kept, self.units, self.spare = {*graph.outputs, *graph.updates.values()}, fused(graph), {}
        self.leaves, self.made = [x for x in graph.nodes if not x.inputs], [x for x in graph.ops if x in kept]
        self.buffers = placed(self.units, kept)
        fixed = {x: b.data.view(x.spec.dtype).reshape(x.spec.shape) for x, b in self.buffers.items()}
        fixed |= {x: x.attrs["of"].data for x in self.leaves if x.op == "constant"}
        results = [[x for x in unit if x in kept or x in fixed] for unit in self.units]
        pairs = zip(self.units, results)
        runs = [run_loop(unit, out, fixed) if len(unit) > 1 else run_launch(*unit) for unit, out in pairs]
        self.fixed, self.runs, self.nbytes = fixed, [run for run, _ in runs], sum(nbytes for _, nbytes in runs)

    launches = property(lambda self: len(self.units))

    @property
    def saved(self):
        """The bytes that values save by sharing buffers."""
        return sum(x.spec.nbytes for x in self.buffers) - sum(b.spec.nbytes for b in {*self.buffers.values()})

    def compute(self, args):
        """Run all units. Returns tensors: the outputs, and the new values of the variables."""
        tensors = {}
        for x in self.leaves:
            of = x.attrs["of"]
            tensors[x] = args[of] if x.op == "input" else of.value if x.op == "variable" else of
        for x in self.made:
            again = self.spare.pop(x, None)
            tensors[x] = x.spec.device.new(x.spec, aligned, Tensor) if again is None else again
        arrays = self.fixed | {x: tensor.data for x, tensor in tensors.items()}
        for run in self.runs:
            run(arrays)
        return [tensors[x] for x in self.graph.outputs], [tensors[x] for x in self.graph.updates.values()]

    def run(self, args):
        """Compute, then assign all variables. The memory of an old value that nobody else knows is used again."""
        outputs, values = self.compute(args)
        for (variable, x), value in zip(self.graph.updates.items(), values):
            old = variable.value if references(variable) == ALONE else None
            variable.assign(value)
            if old is not None and x.inputs:
                self.spare[x] = old
        return [renamed(y) for y in outputs]

    def over(self, args, batches):
        """A step for each row of `batches`. Returns each result, a number, as a tensor of all steps."""
        check_results(self.graph)
        return stacked([self.run([gather(x, rows) for x in args]) for rows in batches])

    def __repr__(self):
        return listed(self.graph, self.units, "launches")


def listed(graph, units, kind):
    """A line for each unit."""
    names = [unit[0].op if len(unit) == 1 else f"loop: {' '.join(x.op for x in unit)}" for unit in units]
    return "\n".join([f"{len(graph.ops)} ops in {len(units)} {kind}", *names])


def stacked(steps):
    """Each of the results, a number in each step, as a tensor of all steps."""
    return [constant(np.array([x.numpy().reshape(()) for x in results])) for results in zip(*steps)]


# %% [markdown]
# The layer takes half the launches, and the memory of a value is used again as soon as nobody needs it:

# %%
launches = Launches(graph)
given = constant(np.ones((32, 8))), constant(np.ones((32, 1)))
count, nbytes = kernels.counted(lambda: layer_step(*given))
print(f"eager   {count} launches, {nbytes:,} bytes")
print(
    f"fused   {launches.launches} launches, {launches.nbytes:,} bytes; {launches.saved:,} bytes of memory are used twice"
)

# %% [markdown]
# ### No Python in between
#
# Each launch still goes through Python, which takes a microsecond or two; the arithmetic of a small net takes less. Can the
# whole list run without Python? A program can call another by its address. So let every unit become a program, and write one
# more, which goes down a table of addresses, as often as there are steps:


# %%
#| export compiler
@functools.cache
def list_program():
    """Run the programs of a table (the address of each, and of its block) one by one; and all of that `steps` times."""
    a = Assembler("list", np.float64)
    table = a.array("table", "programs", 2, rows_of=2**31 - 1)
    a.array("now", "steps", rows_of=2**31 - 1)  # only its first place is used; a size has to be that of an array
    with a.loop("steps") as step:
        a.emit(f"store i64 {step.register}, ptr {a.words['array', 'now']}")
        with a.loop("programs") as n:
            program, block = (a.write(f"inttoptr i64 {a.load(table, n, k).register} to ptr") for k in (0, 1))
            a.emit(f"call void {program}(ptr {block})")
    return a.assemble()


# %% [markdown]
# The number of the step lies in memory, in `now`, for those programs that want to know it.
#
# Which programs are missing? Elementwise units have theirs. The product of matrices is the one that counts, and it is the tile
# of notebook 02 again. Neighbours in a row of the result are the lanes of a register. Up to sixteen such rows are as many sums,
# and one load from `w` serves them all. (Where `w` lies the other way round, its columns are first copied into a `strip`.) Each
# sum still runs upwards from 0.0, so no bit of a float64 changes.


# %%
#| export compiler
from levels.hardware import Index
from levels.kernels import ROWS, VECTORS, WORTH, pieces


@functools.cache
def product_program(m, k, n, dtype, turned_x, turned_w):
    """out[m, n] = x[m, k] @ w[k, n], where x or w may lie the other way round. `strip` is memory for some columns of w."""
    a = Assembler("product", dtype, all_lanes(dtype))
    out, x = a.array("out", m, n), a.array("x", *((k, m) if turned_x else (m, k)))
    w, strip = a.array("w", *((n, k) if turned_w else (k, n))), a.array("strip", k, a.lanes)

    def tile(rows, j, w, column):
        sums = [a.sum() for _ in rows]
        with a.loop(k) as p:
            y = a.load(w, p, column)
            for total, i in zip(sums, rows):
                total += a.load(x, *((p, i) if turned_x else (i, p))) * y
        for total, i in zip(sums, rows):
            a.store(total.value(), out, i, j)

    high = pieces(m, pieces(m, ROWS * VECTORS))  # tiles of about one height, none with more sums than registers
    with a.loop(n, a.lanes) as j:
        columns = w, j
        if turned_w:  # neighbours lie apart: fetch them once, not for each tile
            columns = strip, Index(a, j.register, a.lanes, a.lanes, first="0")
            with a.loop(k) as p:
                a.store(a.load(w, j, p), strip, p, columns[1])
        with a.loop(m // high) as t:
            first = a.write(f"mul i64 {t.register}, {high}")
            tile([Index(a, a.write(f"add i64 {first}, {r}"), m) for r in range(high)], j, *columns)
        if m % high:
            tile(range(m - m % high, m), j, *columns)
    return a.assemble()


# %% [markdown]
# How near does it come to the roof of notebook 01?

# %% tags=["nbval-ignore-output"]
from levels import hardware

product = product_program(100, 64, 64, np.dtype("f4"), False, False)
call = product.bind(**{name: cpu.put(np.ones(array.shape, "f4")) for name, array in product.arrays.items()})
t_product = hardware.seconds(lambda: [call() for _ in range(1000)]) / 1000
print(f"{t_product * 1e6:.1f} µs, {2 * 100 * 64 * 64 / t_product / cpu.peak:.0%} of the peak of one core")

# %% [markdown]
# One column alone has no neighbours for the lanes. The gradient of the last weights is computed as one row: outᵀ = wᵀ·x. The
# last layer's result is a list of sums of products, and in float32 a sum may use the lanes itself.


# %%
#| export compiler
@functools.cache
def column_program(m, k, dtype):
    """out[m] = x[m, k] @ w[k], each a sum over the lanes."""
    a = Assembler("column", dtype)
    out, x, w = a.array("out", m), a.array("x", m, k), a.array("w", k)
    with a.loop(m) as i:
        total = a.sum()
        with a.loop(k, a.lanes) as p:
            total += a.load(x, i, p) * a.load(w, p)
        a.store(total.total(), out, i)
    return a.assemble()


# %% [markdown]
# Whose memory does a program work on? That of nodes, in the order of its arrays; a Spec among them asks for memory of its own.
# A product large enough for several threads is left to level 2, and so is one whose `w` lies far away: there it is packed.


# %%
#| export compiler
NEAR = 2**21  # bytes; a larger `w` would be read from far away, once for each tile (measured)


def threads():
    """How many threads share a large product of level 2."""
    import numba

    return numba.get_num_threads()


def product_of(node):
    """The program of a matmul, and whose memory its arrays are."""
    (x, w), (m, n), dtype = node.inputs, node.spec.shape, node.spec.dtype
    turned_x, turned_w = (bool(node.attrs.get(f"transpose_{name}")) for name in "xw")
    k = x.spec.shape[0 if turned_x else 1]
    if m * k * n >= WORTH and (threads() > 1 or w.spec.nbytes > NEAR):
        raise NoProgram(f"{node!r} is worth several threads, or packing")
    strip = node.spec.device.spec((k, all_lanes(dtype)), dtype)
    if n == 1 and turned_x:
        return product_program(1, k, m, dtype, False, False), [node, w, x, strip]
    if n == 1 and dtype == np.float32:  # (in float64 such a sum has no lanes, and many side by side are quicker)
        return column_program(m, k, dtype), [node, x, w]
    return product_program(m, k, n, dtype, turned_x, turned_w), [node, x, w, strip]


# %% [markdown]
# Sums are shorter. Over the last axis the lanes meet in the end, so there the dtype decides whether there are any.


# %%
#| export compiler
@functools.cache
def sum_program(before, within, after, count, dtype):
    """out[before, after] = the sum of x[before, within, after] over its middle, divided by `count`."""
    last = after == 1
    a = Assembler("sum", dtype, None if last else all_lanes(dtype))
    out, x = a.array("out", before, after), a.array("x", before, within, *[after] * (not last))
    with a.loop(before) as i, nullcontext(0) if last else a.loop(after, a.lanes) as j:
        total = a.sum()
        with a.loop(within, a.lanes if last else 1) as k:
            total += a.load(x, i, k, *[j] * (not last))
        a.store((total.total() if last else total.value()) / count, out, i, j)
    return a.assemble()


def sum_of(node):
    """The program of a sum or a mean, and whose memory its arrays are."""
    x = node.inputs[0]
    before, within, after = reduced(node.op, x.spec.shape, node.attrs.get("axis"))[1]
    count = float(within) if node.op == "reduce_mean" else 1.0
    return sum_program(before, within, after, count, node.spec.dtype), [node, x]


# %% [markdown]
# A kernel of rows, such as softmax, is written out for a row, and the lanes are rows.


# %%
#| export compiler
WIDEST = 64  # numbers of a row that are written out


@functools.cache
def rows_program(function, inputs, rows, width, dtype):
    """out[rows, width] = this kernel of so many inputs."""
    a = Assembler("rows", dtype, all_lanes(dtype))
    out, *arrays = (a.array(name, rows, width) for name in ("out", *(f"x{n}" for n in range(inputs))))
    with a.loop(rows, a.lanes) as i:
        values = np.empty((1, width), object)
        function(values, *(np.array([[a.load(x, i, j) for j in range(width)]], object) for x in arrays))
        for j in range(width):
            a.store(values[0, j], out, i, j)
    return a.assemble()


def rows_of(node):
    """The program of a kernel of rows, and whose memory its arrays are."""
    *_, width = node.spec.shape
    if width > WIDEST:
        raise NoProgram(f"{node!r} has rows of {width} numbers; a program writes out {WIDEST}")
    kernel, rows = KERNELS[node.op, node.spec.device.kind], size(node.spec) // width
    program = rows_program(kernel, len(node.inputs), rows, width, node.spec.dtype)
    return program, [node, *node.inputs]


# %% [markdown]
# Before the units, a step fetches its rows; after them, it puts its results where they belong. Two programs only move numbers:


# %%
#| export compiler
@functools.cache
def fetch_program(batch, width, dtype):
    """out[i] = the row of x whose number is batches[now, i]."""
    a = Assembler("fetch", dtype, all_lanes(dtype))
    batches, now = a.array("batches", "steps", batch, rows_of="rows"), a.array("now", 1, rows_of="steps")
    x, out = a.array("x", "rows", width), a.array("out", batch, width)
    with a.loop(batch) as i:
        row = a.load(batches, a.load(now, 0), i)
        with a.loop(width, a.lanes) as j:
            a.store(a.load(x, row, j), out, i, j)
    return a.assemble()


@functools.cache
def copy_program(count, dtype, over=False):
    """out = x or, with `over`, out[now] = x[0]."""
    a = Assembler("copy", dtype, all_lanes(dtype))
    out, x = a.array("out", "steps" if over else count), a.array("x", count)
    if over:
        a.store(a.load(x, 0), out, a.load(a.array("now", 1, rows_of="steps"), 0))
    else:
        with a.loop(count, a.lanes) as i:
            a.store(a.load(x, i), out, i)
    return a.assemble()


# %% [markdown]
# Now every unit that has a program finds it: in a table by its op, or because it is a loop, or a kernel of rows.


# %%
#| export compiler
PROGRAMS_OF = {  # op -> function(node) -> the program, and whose memory its arrays are
    "matmul": product_of,
    "reduce_sum": sum_of,
    "reduce_mean": sum_of,
    "reshape": lambda node: (copy_program(size(node.spec), node.spec.dtype), [node, *node.inputs]),
}


def unit_program(unit, results):
    """The program of a unit, and whose memory its arrays are. Raises NoProgram where there is none."""
    node, outside = unit[0], {*results, *(x for node in unit for x in node.inputs if x not in unit)}
    if len({x.spec.dtype for x in outside}) == 1:  # else a mask passes from unit to unit
        if loop_of(node):
            return loop_program(unit, results)
        if make := PROGRAMS_OF.get(node.op, rows_of if PLANNERS[node.op] is plan_rows else None):
            return make(node)
    raise NoProgram(f"{node!r} is left to its kernel")


# %% [markdown]
# A new value may be written straight over the old one, if nobody reads the old one later. A loop may read it itself: it reads
# each number before it writes it.


# %%
#| export compiler
def overwriting(graph, units):
    """{node: variable} for the new values that can be written where the old ones are."""
    home = {node: n for n, unit in enumerate(units) for node in unit}
    last = {x: n for n, unit in enumerate(units) for node in unit for x in node.inputs}
    old = {x.attrs["of"]: x for x in graph.nodes if x.op == "variable"}
    places, values = {}, [*graph.updates.values()]
    for variable, node in graph.updates.items():
        alone = node in home and values.count(node) == 1 and not {node, old.get(variable)} & {*graph.outputs}
        if alone and last.get(old.get(variable), -1) < home[node] + (loop_of(units[home[node]][0]) is not None):
            places[node] = variable
    return places


# %% [markdown]
# All programs of a list share one block of words. So a list can be called like the one program of `Rows`:


# %%
#| export compiler
def list_call(steps, now, over, updates):
    """A list of (program, what stands for each of its arrays) as one call."""
    program, table = list_program(), np.empty((len(steps), 2), np.int64)
    own = {"table": address(table), "now": address(now), "programs": len(steps), "steps": "steps" if over else 1}
    words, starts = [own[name] for _, name in program.words], []
    for each_program, arrays in steps:
        own = dict(zip(each_program.arrays, arrays))
        starts.append(len(words))
        words += [own.get(name, name) for _, name in each_program.words]
    call = Call(program, words, updates)
    for n, start in enumerate(starts):
        table[n] = ctypes.cast(steps[n][0].run, ctypes.c_void_p).value, call.start + 8 * start
    call.holds = steps, table, now  # as long as the call lives
    return call


# %% [markdown]
# What remains is to say where everything lies. Values that pass from unit to unit have buffers, as in `Launches`; variables
# are where `Rows`, whose methods we take over, settles them.


# %%
#| export compiler
class Loops(Rows):
    """A graph as a list of programs, one for each unit: `run` does one step, `over` any number of them."""

    def __init__(self, graph, batch):
        check_fits(graph)
        if any(node.op == "variable" for node in graph.updates.values()):
            raise NoProgram("a variable takes the old value of another")
        if not all(0 < x.spec.nbytes < 2**31 for x in graph.nodes):
            raise NoProgram("an array is empty, or has 2 GiB")
        self.any_batch, self.first, self.units = False, None, fused(graph)
        kept, inside = {*graph.outputs, *graph.updates.values()}, overwriting(graph, self.units)
        self.buffers = placed(self.units, kept) | {x: room_for(x.spec) for x in kept if x.inputs and x not in inside}
        results = [[x for x in unit if x in self.buffers or x in inside] for unit in self.units]
        self.programs = [unit_program(unit, out) for unit, out in zip(self.units, results)]
        self.buffers |= {x: room_for(x) for _, taken in self.programs for x in taken if type(x) is Spec}
        self.homes = {x: (x.op, x.attrs["of"]) for x in graph.nodes if not x.inputs}  # node -> its word in a block
        self.homes |= {x: address(of.data) for x, (op, of) in self.homes.items() if op == "constant"}
        self.homes |= {x: address(buffer.data) for x, buffer in self.buffers.items()}
        self.homes |= {x: ("variable", variable) for x, variable in inside.items()}
        self.prepare(graph, [(node.spec, False) for node in graph.outputs])

    def written(self, over):
        graph, homes, now, first = self.graph, dict(self.homes), np.zeros(1, np.int64), []
        for x in graph.nodes if over else ():
            if x.op == "input":
                self.buffers[x] = room_for(x.spec)
                homes[x] = address(self.buffers[x].data)
                fetch = fetch_program(x.spec.shape[0], math.prod(x.spec.shape[1:]), x.spec.dtype)
                first.append((fetch, ["batches", address(now), self.homes[x], homes[x]]))
        units = [(program, [homes[x] for x in taken]) for program, taken in self.programs]
        moves = [(x, ("out", k), over) for k, x in enumerate(graph.outputs)]
        moves += [(x, ("variable", v), False) for v, x in graph.updates.items() if homes[x] != ("variable", v)]
        last = [(copy_program(size(x.spec), x.spec.dtype, o), [to, homes[x], address(now)]) for x, to, o in moves]
        return list_call(first + units + last, now, over, graph.updates)

    launches = property(lambda self: len(self.units))
    nbytes = property(
        lambda self: sum(x.spec.nbytes for _, taken in self.programs for x in taken if type(x) is not Spec)
    )

    def __repr__(self):
        return listed(self.graph, self.units, "programs")


# %% [markdown]
# Our layer, launch by launch and as a list:

# %% tags=["nbval-ignore-output"]
loops, order = Loops(graph, 32), np.arange(3200).reshape(100, 32) % 32
t_launches, t_list = (hardware.seconds(lambda run=program.run: run(given)) for program in (launches, loops))
t_steps = hardware.seconds(lambda: loops.over(given, order)) / 100
print(
    f"µs a step: {t_launches * 1e6:.0f} launched, {t_list * 1e6:.0f} as a list, {t_steps * 1e6:.1f} with many in a call"
)

# %% [markdown]
# The same programs do the same sums. What is gone is Python between them, and level 2's own loops for all that the assembler
# can write.

# %% [markdown]
# ## `function` (6 min)
#
# Who calls a compiled function should not have to know all this. For each **signature**, the Specs of the tensors and the
# values of everything else, the function is traced once, and its program kept.

# %% [markdown]
# To trace takes a millisecond, to write a program ten times as long. So when a graph comes out as one before did, the program of
# that one serves again. How do we tell? Each trace makes new nodes, so we describe a graph by an `outline` without them, in which
# an op goes by its number. A leaf goes by what it holds. A variable does so by who it is, since its numbers change from step to
# step; a constant by its numbers, as these are written into the program. All that the program is made from is in the outline,
# so a change cannot be missed.


# %%
#| export compiler
def held(value):
    """An attribute as part of a key: a small constant by its numbers, a large one or a variable by who it is."""
    if isinstance(value, Tensor) and value.spec.nbytes <= PAGE:
        return value.numpy().tobytes()
    return id(value) if isinstance(value, Operators) else (type(value), repr(value))  # 0.0 == -0.0; their texts differ


def outline(graph):
    """What a program depends on, as a key: while the first of two graphs with one outline lives, its program serves both."""
    names, ops = {}, []
    for node in graph.nodes:
        told = node.op, node.spec, *map(names.get, node.inputs), *map(held, node.attrs.values())
        names[node] = len(ops) if node.inputs else told
        ops += [told] * bool(node.inputs)
    updates = ((id(variable), names[node]) for variable, node in graph.updates.items())
    return *ops, "outputs", *map(names.get, graph.outputs), "updates", *updates


# %%
first, second = (trace(wasteful, signature)[0] for _ in "ab")
print(outline(first) == outline(second))
print(outline(first)[3])

# %% [markdown]
# Two traces, other nodes, the same outline. Its entry 3 reads: from the result of op 2 subtract the argument x1.
#
# To build a program is to do in a row what we did above step by step. `packed_like` gives the results back in the form, one
# tensor or a list, in which the function returned them:

# %%
#| export compiler
PASSES = [without_dead, shared, folded]


def packed_like(result):
    """A function that makes of a list of tensors what the traced function returned."""
    if result is None:
        return lambda outs: None
    return (lambda outs: type(result)(outs)) if isinstance(result, (list, tuple)) else lambda outs: outs[0]


# %% [markdown]
# There are three ways to run a graph: `Rows` is one program by rows, `Loops` a list of programs (an optional section above), and
# `Launches` a list of kernels. The first that can hold the graph takes it.

# %%
#| export compiler
BACK_ENDS = [Rows, Loops]  # the quickest first; where none will do, launches


def program_of(graph, batch):
    """The quickest program there is for this graph."""
    reasons = []
    for kind in BACK_ENDS:
        try:
            return kind(graph, batch)
        except (NoProgram, TypeError, ArithmeticError) as why:  # TypeError: a kernel that no program can hold
            reasons.append(f"{kind.__name__}: {why}")
    return Launches(graph, "; ".join(reasons))


def built(python, signature, batch, made):
    """Trace, make smaller, choose: a program, what puts its results together, and does it hold for any number of rows?

    `made` holds the programs that there are, {what they depend on: program}.
    """
    graph, result, any_batch = trace(python, signature, batch)
    for one_pass in PASSES:
        graph = one_pass(graph)
    key = batch, *outline(graph)
    if key not in made:
        made[key] = program_of(graph, batch)
    return made[key], packed_like(result), any_batch and made[key].any_batch


# %% [markdown]
# A decorator that keeps what was built, under the Specs of the arguments, is all that is left to write:


# %%
def compiled_once(python):
    programs, made = {}, {}

    def call(*args):
        signature = tuple(x.spec for x in args)
        if signature not in programs:
            programs[signature] = built(python, signature, args[0].shape[0], made)
        program, pack, _ = programs[signature]
        return pack(program.run(args))

    return call


# %%
for variable, value in zip([w, b], task.weights):
    variable.assign(value)
quick = compiled_once(step)
print([float(quick(gather(x_, i), gather(y_, i))) for i in task.batches[:100]] == losses[:100])

# %% [markdown]
# The same hundred losses, from the `step` that we wrote for the tape. To compare, we want to run a decorated function op by
# op now and then, without taking the decorator away:

# %%
#| export compiler
EAGER = []  # not empty: what `function` decorates runs as it stands


@contextmanager
def eager():
    """Inside this `with` block a `function` runs undecorated, op by op."""
    EAGER.append(True)
    try:
        yield
    finally:
        EAGER.pop()


# %% [markdown]
# ### What `function` takes care of besides (optional)
#
# `compiled_once` has four gaps. It takes tensors only. It traces anew for a batch of another size, where one program would
# do. It cannot run many steps in one call. And it goes stale: what the function reads from outside, a rate or another
# function, may change, and so may the kernels. So these are watched, and if one of them changed, we trace anew.

# %% tags=["hide-input"]
#| export compiler
WRAPPERS = {types.MethodType: "__func__", functools.partial: "func"}  # what is around a function, and where it is


def read_outside(python, kernels):
    """{…: (read, key, value)}: what a function and these kernels read from outside, and the functions among that in turn.

    read(key) gives the value: of a global, or in a cell of the function around. Our own rooms do not change.
    """
    found, waiting = {}, [unwrapped(f) for f in (python, *kernels) if f is python or of_the_reader(f)]
    while waiting:
        function = waiting.pop()
        scope = function.__globals__
        names = globals_read(function.__code__) & scope.keys()
        new = {(id(scope), name): (scope.get, name, scope[name]) for name in names}
        new |= {id(cell): (inside, cell, inside(cell)) for cell in function.__closure__ or ()}
        waiting += [unwrapped(value) for key, (_, _, value) in new.items() if key not in found and of_the_reader(value)]
        found |= new
    return found


def inside(cell):
    """What a cell of a closure holds; the cell itself as long as that is nothing."""
    try:
        return cell.cell_contents
    except ValueError:
        return cell


def unwrapped(value):
    """The Python function in a method, a partial call, or a `Function`."""
    while wrapper := WRAPPERS.get(type(value)):
        value = getattr(value, wrapper)
    return value


def of_the_reader(value):
    """Whether this is a function that no room of ours defines."""
    function = unwrapped(value)
    return isinstance(function, types.FunctionType) and not function.__module__.startswith("levels.")


def stale(outside):
    """Whether any of that is another object now."""
    for read, key, value in outside.values():  # noqa: SIM110 (any(…) is slower, and this stands in the way of every call)
        if read(key) is not value:
            return True
    return False


# %% [markdown]
# What a call hands over, and what makes two calls alike:


# %% tags=["hide-input"]
#| export compiler
def argument(x):
    """What a function is called with: an array or a variable as a tensor, and anything else that can be a key as it is."""
    if isinstance(x, (np.ndarray, Variable)):
        return as_tensor(x)
    if type(x) is Symbol and x.data is None:
        raise TypeError(f"{x!r} is of a trace that has ended; return what you need from the function")
    if type(x).__hash__ is None:
        raise TypeError(f"a {type(x).__name__} is no argument: expected tensors, arrays, variables, numbers or names")
    return x


def resized(signature, batch, rows):
    """The signature with another number of rows; with None, a key for any number."""

    def one(x):
        if type(x) is not Spec or x.shape[:1] != (batch,):
            return x
        return (x.device, x.dtype, x.shape[1:]) if rows is None else with_rows(x, rows)

    return tuple(map(one, signature))


# %% [markdown]
# For many steps: the batches may end with a shorter one, and a wrong number must not read somebody else's memory.


# %% tags=["hide-input"]
#| export compiler
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
    parts = [np.ascontiguousarray(part, np.int64) for part in parts]
    for part in parts:
        if part.view(np.uint64).max() >= rows:  # as unsigned numbers the negative ones are very large
            wrong = part.min() if part.min() < 0 else part.max()
            raise IndexError(f"over: batches hold row {wrong}; there are {rows} rows")
    return parts


# %% [markdown]
# `Function` joins all this. A call looks up its program, or makes it, as in `compiled_once`; `over` takes many steps at once.
# While a tape is open or another function is traced, it steps aside: those want to hear of every op.


# %%
#| export compiler
class Function:
    """A function of tensors that is traced once for each signature and then runs as a program."""

    def __init__(self, python):
        functools.update_wrapper(self, python)
        # programs: by signature; made: by graph; version: of KERNELS; outside: what was read there, see `read_outside`
        self.python, self.programs, self.made, self.traces, self.version, self.outside = python, {}, {}, 0, None, {}

    def __call__(self, *args):
        if TAPES or EAGER or ENGINES[-1] is not at_once:  # a tape or a trace wants to hear of every op
            return self.python(*args)
        signature = tuple([x.spec if type(x) is Tensor else None for x in args])
        if None in signature:
            args = [argument(x) for x in args]
            signature = tuple([x.spec if type(x) is Tensor else (type(x), x, x or str(x)) for x in args])
        program, pack = self.compiled(signature)
        return pack(program.run(args))

    def over(self, *args):
        """over(x, y, …, batches): a step on the rows x[i], y[i], … for each i of `batches`, arrays of row numbers.

        The last one may be shorter. Returns what the function returns, each number as a tensor of all steps.
        """
        *args, batches = args or [None]
        args = [constant(x) if isinstance(x, list) else as_tensor(argument(x)) for x in args]
        rows = {x.spec.shape[:1] for x in args}
        if len(rows) != 1 or () in rows:
            raise ValueError(f"over: {', '.join(str(x.spec) for x in args)}; expected arrays of as many rows")
        parts = row_numbers(batches, *rows.pop())
        if TAPES or EAGER or ENGINES[-1] is not at_once:
            results = [self.python(*(gather(x, i) for x in args)) for part in parts for i in part]
            return packed_like(results[-1])(stacked(map(results_of, results)))
        outs = []
        for part in parts:
            program, pack = self.compiled(tuple(with_rows(x.spec, part.shape[1]) for x in args))
            outs.append(program.over(args, part))
        if len(outs) > 1:  # the last batch is shorter
            outs = [[constant(np.concatenate([x.numpy() for x in both])) for both in zip(*outs)]]
        return pack(outs[0])

    def compiled(self, signature):
        """The program for arguments like these, and what puts its results together."""
        if self.version != KERNELS.version or stale(self.outside):
            self.programs, self.made = {}, {}
            self.version, self.outside = KERNELS.version, {}
        found = self.programs.get(signature)
        if found is None:
            batch = next((x.shape[0] for x in signature if type(x) is Spec and x.shape), None)
            found = self.programs.get(resized(signature, batch, None)) or self.compile(signature, batch)
            self.programs[signature] = found
        return found

    def compile(self, signature, batch):
        """Trace and build. What holds for any number of rows is kept for all."""
        self.traces += 1
        if self.traces % 10 == 0:
            name, why = getattr(self, "__name__", "a function"), "once for each new shape, dtype or value"
            warnings.warn(f"{name} was traced {self.traces} times, {why}", stacklevel=4)
        any_batch = False
        if batch == 1:  # one row looks like something to repeat, so two are tried first
            with suppress(Exception):
                program, pack, any_batch = built(self.python, resized(signature, 1, 2), 2, self.made)
        if not any_batch:
            program, pack, any_batch = built(self.python, signature, batch, self.made)
        self.outside |= read_outside(self.python, [KERNELS[x.op, x.spec.device.kind] for x in program.graph.ops])
        if any_batch:
            self.programs[resized(signature, batch, None)] = program, pack
        return program, pack

    def renew(self):
        """Trace anew from the next call on: Python's values may have changed. What gives the same graph keeps its program."""
        if self.programs:  # else nobody called since
            used = [program for program, _ in self.programs.values()]
            self.made = {key: program for key, program in self.made.items() if program in used}
            self.programs, self.traces = {}, 0


# %% [markdown]
# The decorator is the class itself. What it reads from outside, it reads through the Python function that it holds:

# %%
#| export compiler
WRAPPERS[Function], function = "python", Function

# %% [markdown]
# ### `function` at work
#
# A step that is called like any other, on batches of any size, and over all batches at once:

# %%
for variable, value in zip([w, b], task.weights):
    variable.assign(value)
compiled = function(step)
first = [float(compiled(gather(x_, i), gather(y_, i))) for i in task.batches[:100]]
rest = compiled.over(x_, y_, task.batches[100:]).numpy().tolist()
print("losses equal:", first + rest == losses, "- traced", compiled.traces, "time")

# %% tags=["nbval-ignore-output"]
rows, target = gather(x_, i), gather(y_, i)
t_call = min(timeit.repeat(lambda: compiled(rows, target), number=1000, repeat=5)) / 1000
t_over = min(timeit.repeat(lambda: compiled.over(x_, y_, task.batches), number=1, repeat=5)) / len(task.batches)
print(f"µs a step: eager {t_step * 1e6:.0f}, one compiled call {t_call * 1e6:.1f}, many in a call {t_over * 1e6:.2f}")

# %% [markdown]
# Bought back: traced once, for any number of steps. A step in a call of many costs what level 1's did. One call alone costs a
# few microseconds of Python.

# %% tags=["hide-input"]
checks.predict(
    "A compiled step reads a global `rate = 0.1`. Then we set `rate = 0.2` and call it again. Which rate does it use?",
    choices=["0.1: the graph holds a constant", "0.2", "an error"],
    answer="0.2",
    because="The graph does hold a constant. But the name is watched, and it is bound to another value now: we trace anew.",
)

# %%
rate = 0.1
scaled_sum = function(lambda x: reduce_sum(rate * x))
before = float(scaled_sum(constant([1.0, 2.0])))
rate = 0.2
print(f"{before:.3f} {float(scaled_sum(constant([1.0, 2.0]))):.3f} - traced {scaled_sum.traces} times")

# %% [markdown]
# Only names are watched (such checks are called *guards*). What is reached through an attribute or from a list, such as
# `self.rate`, is read once, while tracing, as `tf.function` does with all of Python's values; `torch.compile` guards these
# too. Make it a variable, or an argument. Or say `renew`, and the next call traces anew:

# %%
settings = {"rate": 0.1}
scaled_sum = function(lambda x: reduce_sum(settings["rate"] * x))
print(f"{float(scaled_sum(constant([1.0, 2.0]))):.3f}", end=" ")
settings["rate"] = 0.2
print(f"{float(scaled_sum(constant([1.0, 2.0]))):.3f}", end=" ")
scaled_sum.renew()
print(f"{float(scaled_sum(constant([1.0, 2.0]))):.3f}")

# %% [markdown]
# The second call had not heard of the change. A function that asks for a number gets an error that says what to do instead:


# %%
@function
def steep(x):
    return x * 2.0 if reduce_sum(x) > 0 else x


try:
    steep(constant([1.0, 2.0]))
except TypeError as error:
    print(error)

# %% [markdown]
# The condition has to become a number like any other: `where(reduce_sum(x) > 0.0, x * 2.0, x)` computes both and chooses.
#
# A kernel of your own is respected. A scalar function is written into the program like ours, if it asks no `if`. Any other
# kernel stays a launch, and so do the ops around it:


# %%
def plain_sum(total, x):
    return total + x


with kernels.use("reduce_sum", "cpu", plain_sum):
    compiled.over(x_, y_, task.batches[:2])
    print({type(program).__name__ for program, _ in compiled.programs.values()})
compiled.over(x_, y_, task.batches[:2])
print({type(program).__name__ for program, _ in compiled.programs.values()})

# %% [markdown]
# `Launches` is a list of kernels, run one by one; `Rows` is the one program. While your kernel is in use, the step is
# launched. After it, the program is there again.
#
# ## The two tasks on this level (4 min)
#
# ### Model, training
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

# %% [markdown]
# ### Result

# %%
figures.regression(task, fit)

# %%
penguins = tasks.penguins_mass()
figures.regression(penguins, linear_regression(*penguins[:2], *penguins[4:7]))

# %% [markdown]
# Points on the diagonal would be predicted exactly. R² is the share of the variance that the prediction explains: nearly all
# of it for the made-up points, whose rule is a plane and noise, and four fifths for real penguins.
#
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


# %% [markdown]
# The step around it is the one from above. But there are six weights now, so they are a list.


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

# %%
sex = tasks.penguins_sex()
figures.confusion(sex, dnn_classifier(*sex[:2], *sex[4:7]))

# %% [markdown]
# ## What this level cost (3 min)

# %% tags=["hide-input"]
checks.predict(
    "A step of the net has 53 launches, and level 1's program took 11 µs for it (float64). And compiled?",
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
print("(100 rows of x with 2 numbers, of y with 1, and a row number, 8 bytes each)")
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
# The eager prediction counts each launch as an addition; axes, the tape and its walk cost more. What the compiled run takes
# beyond level 1's is tracing and assembling, a few hundredths of a second shared by all steps.
#
# Plans, tapes, dictionaries: all of it happens once, while we trace. What runs is a program of level 1, and you wrote every
# part of what wrote it. `tf.function` with XLA, `torch.compile` and `jax.jit` go the same way: trace, make smaller, fuse,
# emit.
#
# ### The level below | here
#
# What did that buy the writer? Both tasks on the level beneath and on this one:

# %%
compare.measure(task, kernels.tasks.linear_regression, linear_regression, last=1000)

# %%
compare.measure(rings, kernels.tasks.dnn_classifier, dnn_classifier, last=50, repeats=1)

# %% [markdown]
# Half the lines, and the whole backward pass is one of them. Op by op we pay for it; compiled, the step is several times as
# fast as level 2's kernels one by one.
#
# ## More of the same kind (optional)
#
# How the two frameworks spell what you have built:
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
# ### More functions


# %%
#| export tensors
def transpose(x, axes=None):
    """The axes in another order, all in reverse where `axes` is None."""
    return apply("transpose", x, axes=None if axes is None else whole(tuple(axes)))


def reshape(x, shape):
    """The same numbers in the same order, in another shape; one size may be -1, which is what is left."""
    x, shape = as_tensor(x), whole(tuple(shape) if isinstance(shape, (tuple, list)) else (shape,))
    known = math.prod(size for size in shape if size != -1)
    left = math.prod(x.shape) // known if known and shape.count(-1) == 1 else -1
    return apply("reshape", x, shape=tuple(left if size == -1 else size for size in shape))


# %% [markdown]
# Some join tensors, choose between them, or change their dtype:


# %%
#| export tensors
def concat(values, axis=0):
    """The tensors of a list one after the other along an axis."""
    values, axis = as_tensors(list(values)), whole(axis)
    axes = len(values[0].spec.shape) if values else 0
    if axis is None or not -axes <= axis < axes:
        raise ValueError(f"concat: axis {axis} is not an axis of {[x.spec.shape for x in values[:3]]}")
    return apply("concat", *values, axis=axis % axes)


cat = concat  # PyTorch's name


def where(mask, x, y):
    """x where the mask, a tensor of bools, is true, else y."""
    return apply("where", mask, *as_tensors((x, y)))


def cast(x, dtype):
    """The same numbers in another dtype."""
    return apply("cast", x, dtype=np.dtype(dtype))


# %% [markdown]
# More functions of single numbers:


# %%
#| export tensors
def tanh(x):
    return apply("tanh", x)


def sqrt(x):
    return apply("sqrt", x)


def maximum(x, y):
    return apply("maximum", x, y)


def minimum(x, y):
    return apply("minimum", x, y)


# %% [markdown]
# And of rows of them:


# %%
#| export tensors
def reduce_max(x, axis=None, keepdims=False):
    """The largest number along one axis, or of all."""
    return apply("reduce_max", x, axis=whole(axis), keepdims=keepdims)


def reduce_min(x, axis=None, keepdims=False):
    """The smallest number along one axis, or of all."""
    return apply("reduce_min", x, axis=whole(axis), keepdims=keepdims)


def arg_max(x, axis=None):
    """The place of the first largest number along one axis, or in x as one long row."""
    return apply("arg_max", x, axis=whole(axis))


def one_hot(x, depth, dtype=np.float32):
    """A new last axis of that length: 1 at the place that the integer names, else 0."""
    return apply("one_hot", x, depth=depth, dtype=np.dtype(dtype))


# %% [markdown]
# `x[1:, ::2]`, `x[..., 0]` and `x[:, None]` mean what they mean in NumPy. First `...` becomes the slices that it stands for:


# %%
#| export tensors
def without_dots(index, shape):
    """The index with a `slice(None)` for each axis that its `...`, or else its end, stands for."""
    index = index if isinstance(index, tuple) else (index,)
    missing = len(shape) - sum(part is not None and part is not Ellipsis for part in index)
    dots = [n for n, part in enumerate(index) if part is Ellipsis] or [len(index)]
    if missing < 0 or len(dots) > 1:
        raise IndexError(f"index {reprlib.repr(index)} has too many parts for shape {shape}")
    return (*index[: dots[0]], *[slice(None)] * missing, *index[dots[0] + 1 :])


# %% [markdown]
# Then each axis has its slice. An integer is a slice of one, whose axis is dropped; `None` is a new axis of one.


# %%
#| export tensors
def slice_of(x, index):
    """x[index] for integers, slices, `...` and `None`, as in NumPy."""
    sizes, slices, shape = iter(x.spec.shape), [], []
    for part in without_dots(index, x.spec.shape):
        size = 1 if part is None else next(sizes)
        if isinstance(part, slice):
            slices.append((part.start, part.stop, part.step))
            shape.append(len(range(*part.indices(size))))
        elif part is None:
            shape.append(1)
        elif isinstance(part, (int, np.integer)) and not isinstance(part, bool):
            if not -size <= part < size:
                raise IndexError(f"index {reprlib.repr(part)} is out of range for an axis of {size}")
            slices.append((part % size, part % size + 1, 1))
        else:
            cure = "for rows by number there is gather, for masks where"
            raise TypeError(f"index {reprlib.repr(part)}: expected integers and slices; {cure}")
    y = apply("slice", x, slices=tuple(slices))
    return y if y.spec.shape == tuple(shape) else apply("reshape", y, shape=tuple(shape))


# %% [markdown]
# Numbers change devices only when they are told to, and the tape hears of it.


# %%
#| export tensors
def moved(x, name):
    """The same numbers on the device of that name."""
    x, place = as_tensor(x), pool().get(name)
    if place is None:
        raise LookupError(f"to: there is no {reprlib.repr(name)}; there are {', '.join(pool())}")
    y = place.put(x.numpy(), Tensor)
    for tape in TAPES:
        tape.records.append(("to", [x], {"name": name}, y))
    return y


# %% [markdown]
# ### More rules
#
# Where several numbers are the largest, they share the gradient. What was joined gets its part of `dy` back.


# %%
#| export autodiff
def share_back(dy, y, x, axis=None, keepdims=False):
    """The reverse of a largest or smallest number: dy, divided among those that are it."""
    hit = cast(x == spread_back(y, x, axis, keepdims), x.dtype)
    count = reduce_sum(hit, axis, keepdims)
    return hit * spread_back(dy / count, x, axis, keepdims)


def part_of_join(k):
    """The rule of input k of a `concat`: its part of dy."""

    def vjp(dy, y, *inputs, axis=0):
        start = sum(x.spec.shape[axis] for x in inputs[:k])
        return dy[(slice(None),) * axis + (slice(start, start + inputs[k].spec.shape[axis]),)]

    return vjp


# %% [markdown]
# Most are one line:

# %%
#| export autodiff
VJPS.update(
    {
        "sqrt": (lambda dy, y, x: dy / (2.0 * y),),
        "tanh": (lambda dy, y, x: dy * (1.0 - y * y),),
        "power": (
            lambda dy, y, a, b: dy * where(b == 0.0, 0.0, b * a ** (b - 1.0)),
            lambda dy, y, a, b: dy * (y * log(where(a > 0.0, a, 1.0))),
        ),
        "maximum": (lambda dy, y, a, b: where(a >= b, dy, 0.0), lambda dy, y, a, b: where(a >= b, 0.0, dy)),
        "minimum": (lambda dy, y, a, b: where(a <= b, dy, 0.0), lambda dy, y, a, b: where(a <= b, 0.0, dy)),
        "where": (None, lambda dy, y, m, a, b: where(m, dy, 0.0), lambda dy, y, m, a, b: where(m, 0.0, dy)),
        "reduce_max": (share_back,),
        "reduce_min": (share_back,),
        "softmax": (lambda dy, y, x: apply("softmax_grad", dy, y),),
        "log_softmax": (lambda dy, y, x: apply("log_softmax_grad", dy, y),),
        "transpose": (lambda dy, y, x, axes=None: transpose(dy, axes and np.argsort(axes).tolist()),),
        "reshape": (lambda dy, y, x, shape: apply("reshape", dy, shape=x.spec.shape),),
        "concat": lambda count: map(part_of_join, range(count)),
        "slice": (lambda dy, y, x, slices: apply("slice_grad", dy, shape=x.spec.shape, slices=slices),),
        "slice_grad": (lambda dy, y, x, shape, slices: apply("slice", dy, slices=slices),),
        "cast": (lambda dy, y, x, dtype: cast(dy, x.dtype) if {x.dtype.kind, dtype.kind} == {"f"} else None,),
        "scatter_add": (lambda dy, y, x, rows, count: gather(dy, rows), None),
        "to": (lambda dy, y, x, name: moved(dy, x.device.name),),
    }
)
VJPS.update(dict.fromkeys(("less", "less_equal", "equal", "not_equal", "arg_max", "one_hot"), (None, None)))

# %% [markdown]
# These have a case each as well. (`cube` has met its nudge above, and `to` has a test.)

# %%
b, m, n = draw.uniform(0.5, 2, (3, 2)), a > 1.2, constant(np.array([2, 0, 2]))
cases |= {
    "sqrt": (sqrt, a),
    "tanh": (tanh, row),
    "power": (lambda x, y: x**y, a, b),
    "maximum": (maximum, a, row),
    "minimum": (minimum, a, row),
    "where": (lambda x, y: where(m, x, y), a, b),
    "reduce_max": (lambda x: reduce_max(x, axis=1) * reduce_max(x), a),
    "reduce_min": (lambda x: reduce_min(x, axis=0, keepdims=True) * x, a),
    "softmax": (lambda x: softmax(x) * b, a),
    "log_softmax": (lambda x: log_softmax(x) * b, a),
    "transpose": (lambda x: transpose(x) * transpose(b), a),
    "reshape": (lambda x: reshape(x, (2, -1)) * reshape(b, (2, 3)), a),
    "concat": (lambda x, y: concat([x, y, x]) * concat([y, y, x]), a, b),
    "slice": (lambda x: x[::2, 1] * x[0, ::-1], a),
    "slice_grad": (lambda x: apply("slice_grad", x, shape=(5, 2), slices=((0, 5, 2), (0, 2, 1))) ** 2, a),
    "cast": (lambda x: cast(cast(x, "f4"), "f8"), np.array([[1.0, 2.0]])),
    "scatter_add": (lambda x: apply("scatter_add", x, n, count=4) ** 2, a),
}

# %% [markdown]
# And the gradients of gradients, for second derivatives:

# %%
#| export autodiff
VJPS.update(
    {
        "relu_grad": (lambda g, dx, dy, y: apply("relu_grad", g, y), None),
        "clip_grad": (lambda g, dx, dy, x, low, high: apply("clip_grad", g, x, low=low, high=high), None),
        "sigmoid_grad": (
            lambda g, dx, dy, y: apply("sigmoid_grad", g, y),
            lambda g, dx, dy, y: g * dy * (1.0 - 2.0 * y),
        ),
        "softmax_grad": (
            lambda g, dx, dy, y: apply("softmax_grad", g, y),
            lambda g, dx, dy, y: g * (dy - reduce_sum(dy * y, -1, True)) - dy * reduce_sum(g * y, -1, True),
        ),
        "log_softmax_grad": (
            lambda g, dx, dy, y: g - reduce_sum(g * exp(y), -1, True),
            lambda g, dx, dy, y: -g * exp(y) * reduce_sum(dy, -1, True),
        ),
    }
)

# %% [markdown]
# All meet their nudges. (A cast through float32 cannot see a nudge of a millionth, so it gets a larger one.)

# %%
cases |= {
    "relu_grad": (lambda x: apply("relu_grad", x, constant(b)), a),
    "clip_grad": (lambda x: apply("clip_grad", x, constant(b), low=0.0, high=1.0), a),
    "sigmoid_grad": (lambda x, y: apply("sigmoid_grad", x, y), a, b),
    "softmax_grad": (lambda x, y: apply("softmax_grad", x, y) * a, a, b),
    "log_softmax_grad": (lambda x, y: apply("log_softmax_grad", x, y) * a, a, b),
}

# %%
worst = {op: meets_nudge(*case, nudge=1e-2 if op == "cast" else 1e-6) for op, case in cases.items()}
without = {op for op, rules in VJPS.items() if type(rules) is tuple and not any(rules)}
print(f"{len(cases)} rules, all within 1e-5:", all(difference < 1e-5 for difference in worst.values()))
print("without a gradient:", *sorted(without), "- not tried:", *sorted({*VJPS} - {*cases} - without))

# %% [markdown]
# And a few of the functions at work:

# %%
x = constant([[3.0, 1.0, 2.0], [1.0, 5.0, 4.0]])
print(arg_max(x, axis=1), one_hot(arg_max(x, axis=1), 3), sep="\n")
print(concat([x[:, ::-1], x[:1]]), where(x > 2.0, x, 0.0), sep="\n")

# %% [markdown]
# A second device, simulated, with memory of its own. Nothing moves there by itself:

# %%
pool(cpus=2)
with device("cpu:1"):
    there = constant([1.0, 2.0, 3.0])
try:
    there + x
except ValueError as error:
    print(error)
print((there + x.to("cpu:1")).device.name)

# %% [markdown]
# ## Exercises (75 min, optional)
#
# As in the notebooks before: fill the stub, run, and read what the check says. What you write is run on this notebook's
# own tensors, in many shapes, and in float32 as well as in float64.
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
# ### 03-2 · A loss without `if`
#
# A point far off pulls at a line with the square of its error. [Huber](https://doi.org/10.1214/aoms/1177703732) (1964)
# lets it pull with its distance only: near 0 a parabola, beyond 1 a straight line, and no kink between them.
#
# ```
#  error      -3    -1    -0.5     0    0.5     1     3
#  loss      2.5   0.5   0.125     0  0.125   0.5   2.5
#  slope      -1    -1    -0.5     0    0.5     1     1
# ```
#
# Each number of a tensor takes its own branch, so one `if` cannot choose; while a function is traced, there is no
# number to ask. (About 3 lines. Hint: `maximum`, `minimum`, `where`. The size of an error is `maximum(error, -error)`.)

# %%
from course.practice import exercises

exercises.begin("03-2")


def huber(error):
    """error²/2 where |error| ≤ 1, else |error| - 1/2: a tensor shaped like `error`."""
    return ...


exercises.check("03-2", huber)

# %% [markdown]
# ### 03-3 · All slopes of all results
#
# `gradient` takes a target of several numbers for their sum. Often we want them apart: how does *each* result change
# with each input? That table is the **Jacobian**. A walk back gives one row of it:
#
# ```
#              x[0]  x[1]  x[2]
#  y[0]     [   ·     ·     ·   ]   <- one walk, from y[0]
#  y[1]     [   ·     ·     ·   ]   <- another one, from y[1]
# ```
#
# (About 4 lines. Hint: `y[k]` is an op as well. Who has to hear of it? And how often will the tape be read?)

# %%
from course.practice import exercises

exercises.begin("03-3")


def jacobian(function, x):
    """J[i, j] = d y[i] / d x[j] of y[m] = function(x[n]), as an array of x's dtype."""
    return ...


exercises.check("03-3", jacobian)

# %% [markdown]
# ### 03-4 · A pass: times one
#
# `x * 1.0` is x, to the last bit. (`x + 0.0` is not: -0.0 + 0.0 is 0.0.) Write a pass that leaves such products out:
#
# ```
#   t0 = multiply(x0, 1.0)
#   t1 = subtract(t0, x1)         becomes         t0 = subtract(x0, x1)
# ```
#
# The 1.0 may stand on either side, and may be an array of ones. But a graph outlives the numbers of today: a variable
# that is 1 now will be something else tomorrow. And ones of a larger shape repeat x, which is work that must be done.
# (About 8 lines. Hint: `rebuilt`, as in `folded`. The tensor of a constant is `node.attrs["of"]`; equal shape and dtype
# are one Spec, so `is` compares.)

# %%
from course.practice import exercises

exercises.begin("03-4")


def without_ones(graph):
    """The graph without the products that give back one of their factors because the other is a constant 1.0."""
    return ...


exercises.check("03-4", without_ones)

# %% [markdown]
# Is it right? `PASSES.append(without_ones)`, and every function that you compile from now on goes through it.
#
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
# right? (Ask a nudge.) Then look for the cause: `print(printed(collected(makers, z)))` is the list for the second
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
# ### 03-6 · Break it: gradients not reset
#
# The simplest model there is: one weight, the loss w², a rate of 0.1. Each step should multiply w by 0.8, and so the
# loss by 0.64:

# %%
from course.practice import exercises

exercises.begin("03-6")

w = Variable(np.array(1.0))
for _ in range(20):
    with GradientTape():
        loss = w * w
        loss.backward()
    w.assign(w - 0.1 * w.grad)
    print(f"{float(loss):.2f}", end=" ")

# %% [markdown]
# It falls quickly, rises again, and swings for ever. Is the rule of `multiply` wrong? It has met its nudge. So print
# `float(w.grad)` beside the slope `2.0 * float(w)`, before each `assign`: when do they part, and by what? (After
# `import course`, `course.where("backward")` shows the section that told us.)
#
# Adding up is wanted *within* a step, when a batch is too large for the memory and comes in parts, each with its loss.
# Between two steps it is not:
#
# ```
#  step 0                            step 1
#  reset   loss   loss   update      reset   loss   loss   update
#          └─ added ─┘                       └─ added ─┘
# ```
#
# (About 8 lines. Each loss is a function without arguments, to be called while a tape is open.)

# %%
from course.practice import exercises

exercises.begin("03-6")


def train(losses, variables, rate, steps):
    """SGD: each step adds the gradients of all these losses, then moves each variable by -rate times its `grad`."""
    ...


exercises.check("03-6", train)

# %% [markdown]
# The sum of all gradients so far is a velocity: what swings above is a pendulum without friction. With some friction it
# becomes *momentum*, and notebook 04 trains with it.
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

"""Every op passes one door, `apply`: tensors are numbers that go through it."""

# Built from 03_low_level.ipynb: edit there, then run its last cell.

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


class Tensor(Operators, Protocols, Buffer):
    """An immutable buffer."""

    __slots__ = ()


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


def renamed(x):
    """The same numbers as another tensor. A tape knows a variable by its tensor, so no two things may share one."""
    x.device.used += x.spec.nbytes
    return type(x)(x.spec, x.data)


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


def in_range(array, dtype):
    """The array in that dtype. Raises OverflowError where a finite number would become infinite."""
    with np.errstate(over="ignore"):
        result = array.astype(dtype)
    if dtype.kind == "f" and (np.isinf(result) & np.isfinite(array)).any():
        raise OverflowError(f"a number is too large for {dtype}")
    return result


device = placed_on  # inside `with device(name):`, new tensors and variables are placed there


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


@functools.lru_cache(maxsize=1024)
def number_tensor(value, kind, name, spec):
    """A single number as a tensor of that Spec's dtype and device. Tensors never change, so one serves every use.

    (0.0, -0.0, 0 and False are equal, so the kind and the name of a zero tell them apart.)
    """
    if (kind is bool) != (spec.dtype == np.bool_) or (kind is float and spec.dtype.kind != "f"):
        raise TypeError(f"{value} beside a tensor of {spec.dtype}: cast one of them")
    return spec.device.put(in_range(np.asarray(value), spec.dtype), Tensor)


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


def innermost(asked):
    """The innermost open tape, for the function that asked."""
    if not TAPES:
        raise RuntimeError(f"{asked}: no tape is open; compute inside `with GradientTape():`")
    return TAPES[-1]


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


def transpose(x, axes=None):
    """The axes in another order, all in reverse where `axes` is None."""
    return apply("transpose", x, axes=None if axes is None else whole(tuple(axes)))


def reshape(x, shape):
    """The same numbers in the same order, in another shape; one size may be -1, which is what is left."""
    x, shape = as_tensor(x), whole(tuple(shape) if isinstance(shape, (tuple, list)) else (shape,))
    known = math.prod(size for size in shape if size != -1)
    left = math.prod(x.shape) // known if known and shape.count(-1) == 1 else -1
    return apply("reshape", x, shape=tuple(left if size == -1 else size for size in shape))


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


def tanh(x):
    return apply("tanh", x)


def sqrt(x):
    return apply("sqrt", x)


def maximum(x, y):
    return apply("maximum", x, y)


def minimum(x, y):
    return apply("minimum", x, y)


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


def without_dots(index, shape):
    """The index with a `slice(None)` for each axis that its `...`, or else its end, stands for."""
    index = index if isinstance(index, tuple) else (index,)
    missing = len(shape) - sum(part is not None and part is not Ellipsis for part in index)
    dots = [n for n, part in enumerate(index) if part is Ellipsis] or [len(index)]
    if missing < 0 or len(dots) > 1:
        raise IndexError(f"index {reprlib.repr(index)} has too many parts for shape {shape}")
    return (*index[: dots[0]], *[slice(None)] * missing, *index[dots[0] + 1 :])


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


def moved(x, name):
    """The same numbers on the device of that name."""
    x, place = as_tensor(x), pool().get(name)
    if place is None:
        raise LookupError(f"to: there is no {reprlib.repr(name)}; there are {', '.join(pool())}")
    y = place.put(x.numpy(), Tensor)
    for tape in TAPES:
        tape.records.append(("to", [x], {"name": name}, y))
    return y

"""Every op passes one door, `apply`: tensors are numbers that go through it."""

# Built from 03_low_level.ipynb: edit there, then run its last cell.

import copyreg
import functools
import itertools
import threading

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


class Tensor(Operators, Buffer):
    """An immutable buffer."""

    __slots__ = ()


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

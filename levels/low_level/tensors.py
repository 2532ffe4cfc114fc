"""Every op passes one door, `apply`: tensors are numbers that go through it."""

# Built from 03_low_level.ipynb: edit there, then run its last cell.

import copyreg
import functools
import itertools
import threading
from ctypes import addressof, c_char

import numpy as np

from levels.hardware import PLACE, Buffer, pool
from levels.kernels import planned
from levels.support.arrays import array_ufunc
from levels.support.checks import flag, unmasked

OPERATORS = {}  # "[]" -> function(x, …): what an operator or a method does that is made of several ops


def of_several_ops(sign):
    """The method of a tensor that is the row of this sign in OPERATORS. Raises TypeError where there is none."""

    def method(x, *others):
        if sign not in OPERATORS:
            raise TypeError(f"{type(x).__name__}: no {sign} here; `import levels_more.low_level` brings it")
        return OPERATORS[sign](x, *others)

    return method


def sides(op):
    """The methods for `x - 1.0`, and for `1.0 - x`: Python asks the number first, which does not know, then the tensor."""
    return lambda x, other: apply(op, x, other), lambda x, other: apply(op, other, x)


def _one(kind):
    """The method that makes this kind of thing of a tensor's one number, in the form `how`. (f"{x}" has none.)"""

    def made(x, *how):
        if how != ("",) and x.spec.nbytes != x.dtype.itemsize:
            raise ValueError(f"a tensor of shape {x.shape} is not one number; take one of it, or use where")
        return repr(x) if how == ("",) else kind(x.numpy().item(), *how)

    return made


def _in_place(variable, value):
    """`w -= 1.0` would make a tensor of what was a variable. Raises TypeError."""
    raise TypeError("w -= … is no step of a variable; write w.assign_sub(…)")


class Operators:
    """What a tensor and a variable can do in an expression."""

    __slots__ = ()
    __add__, __radd__ = sides("add")
    __sub__, __rsub__ = sides("subtract")
    __mul__, __rmul__ = sides("multiply")
    __truediv__, __rtruediv__ = sides("divide")
    __matmul__, __rmatmul__ = sides("matmul")
    __bool__, __float__, __int__, __format__ = map(_one, (bool, float, int, format))
    __array_ufunc__ = array_ufunc  # NumPy's arrays leave `array + tensor` to the tensor
    __hash__ = object.__hash__  # a tensor is a key by who it is, not by its numbers
    __getitem__ = of_several_ops("[]")
    __len__ = of_several_ops("len")
    __iter__ = of_several_ops("iter")
    __abs__ = of_several_ops("abs")
    __eq__ = of_several_ops("==")
    __ne__ = of_several_ops("!=")
    __lt__ = of_several_ops("<")
    __gt__ = of_several_ops(">")
    __le__ = of_several_ops("<=")
    __ge__ = of_several_ops(">=")
    __and__ = of_several_ops("&")
    __or__ = of_several_ops("|")
    __invert__ = of_several_ops("~")
    __mod__ = of_several_ops("%")
    __floordiv__ = of_several_ops("//")
    __rpow__ = of_several_ops("power of a number")
    _power = of_several_ops("**")
    item = of_several_ops("item")
    to = of_several_ops("to")
    backward = of_several_ops("backward")
    ndim = property(lambda self: len(self.shape))

    def __pow__(self, other):
        return self * self if type(other) is int and other == 2 else self._power(other)

    def __neg__(self):
        return apply("negative", self)

    def __array__(self, dtype=None, copy=None):
        return self.numpy() if dtype is None else self.numpy().astype(dtype)

    def __repr__(self):
        numbers = "freed" if isinstance(self, Buffer) and self.data is None else self.numpy()
        return f"{type(self).__name__}({numbers}, shape={self.shape}, {self.dtype}, {self.device.name})"


class Tensor(Operators, Buffer):
    """An immutable buffer."""

    __slots__ = ()


class Run:
    """Stands at the door, and does at once whatever comes."""

    def do(self, op, plan, inputs, attrs):
        """One op, into new memory."""
        return plan.result(Tensor, inputs, attrs)

    def read(self, variable):
        """The tensor that the variable names now."""
        return variable.newest()

    def assign(self, variable, value):
        """Let the variable name another tensor."""
        variable.replace(value)


class _Door(threading.local):
    stands = Run()  # who stands there, in each thread


DOOR = _Door()
RUN = DOOR.stands


def apply(op, *inputs, **attrs):
    """The door: every op on tensors passes here. Whoever stands here does it, and gives the result."""
    for x in inputs:
        if type(x) is not Tensor:
            inputs = _as_tensors(inputs)
            break
    return DOOR.stands.do(op, planned(op, inputs, attrs), inputs, attrs)


_BIRTHS = itertools.count()  # so a trace knows which variables it made
DTYPES = tuple(map(np.dtype, (np.float32, np.float64, np.int64, np.bool_)))  # of kernels


def _placed(array, dtype, device):
    """A tensor of these numbers. Raises TypeError for dtypes that do not fit, OverflowError for a number too large."""
    if dtype not in DTYPES or array.dtype.kind not in "fiub" or (array.dtype.kind in "fu" and dtype.kind != "f"):
        raise TypeError(f"constant: {array.dtype} to {dtype} has no kernels, or loses digits; cast it in NumPy first")
    if array.dtype is not dtype:
        try:
            with np.errstate(over="raise"):
                array = array.astype(dtype)
        except FloatingPointError:
            raise OverflowError(f"a number is too large for {dtype}") from None
    return device.put(array, Tensor)


def constant(values, dtype=None):
    """A tensor of numbers: Python floats and lists of them become float32, arrays keep their dtype. Raises TypeError, OverflowError."""
    if isinstance(values, Operators) and dtype in (None, values.dtype):
        return as_tensor(values)
    leaf, array = values, unmasked(values)
    while isinstance(leaf, (list, tuple)) and len(leaf):
        leaf = leaf[0]
    if dtype is None:
        dtype = np.float32 if array.dtype == np.float64 and not hasattr(leaf, "dtype") else array.dtype
    return _placed(array, np.dtype(dtype), PLACE.device)


def as_tensor(value, like=None):
    """A tensor of a tensor, a variable, an array or numbers; a Python number takes the dtype of a tensor beside it, `like`."""
    if isinstance(value, Variable):
        return DOOR.stands.read(value)
    if type(value) in (float, int, bool) and isinstance(like, Operators):
        return _number(value, value or str(value), like.spec)
    return value if isinstance(value, Tensor) else constant(value)


def _as_tensors(values):
    """All of these as tensors; Python numbers take the dtype of the first tensor or variable."""
    for like in values:
        if isinstance(like, Operators):
            break
    tensors = []
    for x in values:  # (a comprehension would take half as long again)
        tensors.append(x if type(x) is Tensor else DOOR.stands.read(x) if type(x) is Variable else as_tensor(x, like))
    return tensors


@functools.lru_cache(maxsize=1024, typed=True)
def _number(value, name, spec):
    """A single number as a tensor of that Spec's dtype. One serves every use; the name tells 0.0 and -0.0 apart."""
    if (type(value) is bool) != (spec.dtype == np.bool_) or (type(value) is float and spec.dtype.kind != "f"):
        raise TypeError(f"{value} beside a tensor of {spec.dtype}: cast one of them")
    return _placed(np.asarray(value), spec.dtype, spec.device)


def renamed(x):
    """The numbers, shape and dtype of a tensor x, shared, as another tensor: a tape knows a tensor by who it is."""
    return type(x)(x.spec, x.data, x if x.source is None else x.source)


class _Held(Operators):
    """Names a tensor. Threads take turns where its numbers move; a program may overwrite them, at home."""

    def __init__(self, tensor):
        self.spec, self.held, self.home = tensor.spec, renamed(tensor), None
        self.born, self.turn = next(_BIRTHS), threading.Lock()

    shape, dtype, device = Buffer.shape, Buffer.dtype, Buffer.device
    __iadd__ = __isub__ = __imul__ = __itruediv__ = _in_place

    def numpy(self):
        """A copy of its numbers."""
        return self.value.numpy()

    def replace(self, tensor):
        """Name this tensor, at once. (`assign` lets tapes and traces hear of it.)"""
        with self.turn:
            self.held, self.home = renamed(tensor), None

    def newest(self):
        """The tensor that it names, at once: the same one until it is assigned."""
        held = self.held
        if self.home is not None:  # a program writes there; now somebody knows the numbers
            with self.turn:
                held, self.home = self.held, None
        return held


_bytes_of = (c_char * 0).from_buffer  # its `addressof` is `array.ctypes.data`, and takes a fifth of its time


def home_of(variable, to_write=True):
    """Where a program finds a variable's numbers in its turn and, `to_write`, overwrites them: no tensor shares them."""
    if variable.home is None and to_write:
        private = Tensor(variable.spec, variable.held.data.copy())
        variable.home, variable.held = addressof(_bytes_of(private.data)), private
    return variable.home or addressof(_bytes_of(variable.held.data))


class Turns:
    """Nobody else moves these variables' numbers in this `with` block. (In one order, or two would wait for ever.)"""

    def __init__(self, variables):
        self.turns = [variable.turn for variable in sorted(variables, key=lambda variable: variable.born)]

    def __enter__(self):
        for turn in self.turns:
            turn.acquire()

    def __exit__(self, *_):
        for turn in self.turns:
            turn.release()


class Variable(_Held):
    """A tensor that `assign` replaces: the state of a model. Its shape, dtype and device stay."""

    def __init__(self, value, name=None, trainable=True):
        super().__init__(as_tensor(value))
        self.name, self.trainable, self.grad = name, flag("trainable", trainable), None

    value = property(lambda self: DOOR.stands.read(self), doc="The tensor that it names.")
    assign_add = of_several_ops("assign_add")
    assign_sub = of_several_ops("assign_sub")

    def assign(self, value):
        """Name another tensor. Raises ValueError unless shape, dtype and device stay. What the old one gave remains."""
        value = value if type(value) is Tensor else as_tensor(value, self)
        if value.spec is not self.spec:
            raise ValueError(f"assign: the variable is {self.spec}, the value {value.spec}")
        DOOR.stands.assign(self, value)


def _copied(kind, array, name, *more):
    """A tensor or a variable of these numbers, on the device of that name or, where there is none, here."""
    return kind(pool().get(name, PLACE.device).put(array, Tensor), *more)


copyreg.pickle(Tensor, lambda x: (_copied, (as_tensor, x.numpy(), x.device.name)))
copyreg.pickle(Variable, lambda v: (_copied, (Variable, v.numpy(), v.device.name, v.name, v.trainable)))

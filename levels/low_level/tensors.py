"""Every op passes one door, `apply`: tensors are numbers that go through it."""

# Built from 03_low_level.ipynb: edit there, then run its last cell.

import copyreg
import threading

import numpy as np

from levels.hardware import PLACE, Buffer
from levels.kernels import planned
from levels.support.checks import numeric_array
from levels.support.operators import SeveralOps
from levels.support.scalars import check_number, kept_numbers, pythons_floats
from levels.support.shapes import cast
from levels.support.storage import Storage
from levels.support.tapes import leave


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


class Tensor(Operators, Buffer):
    """An immutable buffer with operators."""

    __slots__ = ("__weakref__",)  # a table may refer to a tensor without keeping it


DTYPES = tuple(map(np.dtype, ("float32", "float64", "int64", "bool")))  # with kernels


def _placed(array, dtype, device):
    """Put an array on a device as a tensor of this dtype."""
    return device.put(cast(array, dtype, DTYPES), Tensor)


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


copyreg.pickle(Tensor, lambda x: (as_tensor, (x.numpy(),)))
copyreg.pickle(Variable, lambda v: (Variable, (v.numpy(), v.name, v.trainable)))

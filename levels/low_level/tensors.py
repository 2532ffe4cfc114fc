"""Every op passes one door, `apply`: tensors are numbers that go through it."""

# Built from notebooks/03_low_level.ipynb: edit there, then run its last cell.

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


buffer_of = operator.attrgetter("buffer")
TAPES = []  # who listens: each hears of every op, in order


def apply(op, *inputs, **attrs):
    """The door: run one op on tensors, and tell every open tape."""
    inputs = [x if type(x) is Tensor else as_tensor(x, inputs) for x in inputs]
    y = Tensor(launch(op, None, *map(buffer_of, inputs), **attrs))
    for tape in TAPES:
        tape.records.append((op, inputs, attrs, y))
    return y


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

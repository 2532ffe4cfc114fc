"""Layers that make one of several by arithmetic, and an op with a number as a layer."""

import functools

import numpy as np

from levels.low_level import apply
from levels_more.checks import expect, word
from levels_more.low_level.ops import maximum, minimum
from levels_more.mid_level.base_layer import Layer

ARITHMETIC = "add", "subtract", "multiply", "divide", "power", "matmul", "negative"


def operand(op, number):
    """A number, or an array, that stands beside a tensor of any shape. Raises TypeError for anything else."""
    real = isinstance(number, (int, float, np.number, np.ndarray)) and not (
        type(number) is int and abs(number) >= 2**63
    )
    return expect(real, f"Arithmetic: what stands beside {op}", number, "a number, an array, or an Input")


class Arithmetic(Layer):
    """An op by name, of a list of two tensors, as `Add` but for any op of two; or of one tensor and a number beside it.

    `op` is "add", "subtract", "multiply", "divide", "power" or "matmul"; the number stands right of the tensor, or left
    if `left`. "negative" takes a tensor alone. It is what `inputs * 2.0` makes of an `Input`. Raises ValueError for
    other names, and TypeError for what is no number.
    """

    def __init__(self, op, number=None, left=False, **options):
        super().__init__(**options)
        if word("Arithmetic: op", op) not in ARITHMETIC:
            raise ValueError(f"Arithmetic: op is {op!r}; there are {', '.join(ARITHMETIC)}")
        self.op, self.left = op, left
        self.number = None if number is None else operand(op, number)

    def call(self, x):
        if self.number is None:
            return apply(self.op, *(x if isinstance(x, list) else [x]))
        return apply(self.op, *((self.number, x) if self.left else (x, self.number)))


class _Merge(Layer):
    """One tensor of a list of them, from left to right."""

    def both(self, x, y):
        """Two tensors as one."""
        raise NotImplementedError

    def call(self, x):
        if not isinstance(x, list) or len(x) < 2:
            told = f"{len(x)} inputs" if isinstance(x, list) else f"one, {getattr(x, 'spec', type(x).__name__)}"
            raise TypeError(f"{self.name}: expected a list of two inputs or more, got {told}")
        return functools.reduce(self.both, x)


class Add(_Merge):
    """A list of inputs [batch, …] -> their sum. Raises TypeError for a single input."""

    both = staticmethod(lambda x, y: x + y)


class Multiply(_Merge):
    """A list of inputs [batch, …] -> their product, number by number. Raises TypeError for a single input."""

    both = staticmethod(lambda x, y: x * y)


class Maximum(_Merge):
    """A list of inputs [batch, …] -> the largest of each number. Raises TypeError for a single input."""

    both = staticmethod(maximum)


class Minimum(_Merge):
    """A list of inputs [batch, …] -> the smallest of each number. Raises TypeError for a single input."""

    both = staticmethod(minimum)


class Average(Add):
    """A list of inputs [batch, …] -> their mean. Raises TypeError for a single input."""

    def call(self, x):
        return super().call(x) / float(len(x))


class Subtract(_Merge):
    """A list of two inputs [batch, …] -> the first less the second. Raises TypeError for any other number of inputs."""

    both = staticmethod(lambda x, y: x - y)

    def call(self, x):
        if isinstance(x, list) and len(x) > 2:
            raise TypeError(f"{self.name}: expected a list of two inputs, got {len(x)}")
        return super().call(x)


def operator_pair(op):
    """The methods for `place - 1.0` and for `1.0 - place`, of what stands for a tensor to come."""

    def right(x, other):
        return Arithmetic(op)([x, other]) if hasattr(other, "through") else Arithmetic(op, operand(op, other))(x)

    def left(x, other):
        return Arithmetic(op, operand(op, other), True)(x)

    return right, left

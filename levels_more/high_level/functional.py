"""Placeholders for tensors that are not known yet. Calling layers on them makes a graph of layers."""

from collections.abc import Sequence

import numpy as np

from levels.hardware import PLACE
from levels.low_level import trace
from levels.support.parts import Reconstructible
from levels_more.checks import dtype_of, several, sizes, word
from levels_more.high_level.rows import as_list, unwrap_single
from levels_more.mid_level.layers import Arithmetic, operand


def dry_run(layer, specs):
    """Call a layer on symbols of these Specs, which builds it and computes nothing. Returns its output, symbols."""
    return trace(lambda *x: layer(unwrap_single(x)), specs)[1]


def operator_pair(op):
    """The methods of a Placeholder for `place - 1.0` and for `1.0 - place`."""

    def right(x, other):
        return Arithmetic(op)([x, other]) if hasattr(other, "through") else Arithmetic(op, operand(op, other))(x)

    def left(x, other):
        return Arithmetic(op, operand(op, other), True)(x)

    return right, left


class Placeholder(Reconstructible):
    """An input or output of a layer that has no numbers yet. `layer` made it; for an `Input` that is None."""

    def through(self, layer, inputs, training=None) -> "Call":
        """The call of a layer on placeholders."""
        return Call(layer, inputs, *[] if training is None else [training])

    shape = property(lambda self: (None, *self.spec.shape[1:]), doc="Of any number of rows.")
    dtype = property(lambda self: self.spec.dtype)
    __add__, __radd__ = operator_pair("add")  # each makes an `Arithmetic` layer and calls it
    __sub__, __rsub__ = operator_pair("subtract")
    __mul__, __rmul__ = operator_pair("multiply")
    __truediv__, __rtruediv__ = operator_pair("divide")
    __matmul__, __rmatmul__ = operator_pair("matmul")
    __pow__, __rpow__ = operator_pair("power")
    __array_ufunc__ = None  # so that NumPy leaves `array + place` to `__radd__` of the place

    def __neg__(self):
        return Arithmetic("negative")(self)

    def __repr__(self):
        return f"{type(self).__name__} of shape {self.shape}"


Placeholders = Placeholder | Sequence[Placeholder]  # one, or a list of several


class Input(Placeholder):
    """A placeholder for rows of that shape. With a name, its rows may be given in a dict, {name: rows}."""

    def __init__(self, shape: Sequence[int], dtype: str | np.dtype | type = "float32", name: str | None = None):
        row = sizes("Input: shape", several("Input: shape", shape, "a tuple of sizes"))
        self.spec = PLACE.device.spec((2, *row), dtype_of("Input: dtype", dtype))  # 2 rows stand for any number
        self.layer = None
        self.name = None if name is None else word("Input: name", name)


class Call(Placeholder):
    """The output of a layer called on these placeholders. Making it builds the layer and computes nothing."""

    def __init__(self, layer, inputs, training=None):
        self.layer, self.inputs, self.training = layer, as_list(inputs), training
        self.spec = dry_run(layer, [x.spec for x in self.inputs]).spec


def in_order(outputs, inputs):
    """The calls between inputs and outputs, each after those it needs. Raises ValueError if an Input is missing."""
    order = []

    def visit(y):
        if y in inputs or y in order:
            return
        if y.layer is None:
            raise ValueError(f"Model: an output needs {y!r}, which is not among the inputs")
        for x in y.inputs:
            visit(x)
        order.append(y)

    for y in outputs:
        visit(y)
    return order

"""What stands for the numbers to come: layers are called on it, and that draws a graph of them."""

from levels.hardware import PLACE
from levels.low_level import trace
from levels.mid_level import Made
from levels_more.checks import dtype_of, several, sizes, word
from levels_more.high_level.data_adapter import as_list, unwrap_single
from levels_more.mid_level.layers import Arithmetic, operand


def dry_run(layer, specs):
    """Call a layer on symbols: this builds it, and runs nothing. Returns the symbols that it gives."""
    return trace(lambda *x: layer(unwrap_single(x)), specs)[1]


def spec_of(shape, dtype):
    """The Spec of a batch of rows of this shape: two of them stand for any number."""
    return PLACE.device.spec(
        (2, *sizes("Input: shape", several("Input: shape", shape, "a tuple of sizes"))), dtype_of("Input: dtype", dtype)
    )


def operator_pair(op):
    """The methods for `place - 1.0` and for `1.0 - place`, of what stands for a tensor to come."""

    def right(x, other):
        return Arithmetic(op)([x, other]) if hasattr(other, "through") else Arithmetic(op, operand(op, other))(x)

    def left(x, other):
        return Arithmetic(op, operand(op, other), True)(x)

    return right, left


class Placeholder(Made):
    """What a layer will be given, or give, once there are numbers: `layer` is None for an `Input`."""

    def through(self, layer, inputs, training=None):
        """The layer, called on placeholders."""
        return Call(layer, inputs, *[] if training is None else [training])

    shape = property(lambda self: (None, *self.spec.shape[1:]), doc="Of any number of rows.")
    dtype = property(lambda self: self.spec.dtype)
    __add__, __radd__ = operator_pair("add")  # each makes a layer, and calls it
    __sub__, __rsub__ = operator_pair("subtract")
    __mul__, __rmul__ = operator_pair("multiply")
    __truediv__, __rtruediv__ = operator_pair("divide")
    __matmul__, __rmatmul__ = operator_pair("matmul")
    __pow__, __rpow__ = operator_pair("power")
    __array_ufunc__ = None  # NumPy's arrays leave `array + place` to the place

    def __neg__(self):
        return Arithmetic("negative")(self)

    def __repr__(self):
        return f"{type(self).__name__} of shape {self.shape}"


class Input(Placeholder):
    """A place for rows of that shape. By its name it is given rows in a dict, {name: rows}."""

    def __init__(self, shape, dtype="float32", name=None):
        self.spec, self.layer = spec_of(shape, dtype), None
        self.name = None if name is None else word("Input: name", name)


class Call(Placeholder):
    """What a layer gives when it is called on these placeholders. That builds the layer, and runs nothing."""

    def __init__(self, layer, inputs, training=None):
        self.layer, self.inputs, self.training = layer, as_list(inputs), training
        self.spec = dry_run(layer, [x.spec for x in self.inputs]).spec


def in_order(outputs, inputs):
    """The calls that lead from the inputs to the outputs, each after those that it needs."""
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

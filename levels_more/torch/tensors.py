"""PyTorch's tensor: it records how it was computed, shares memory with its views, and can be changed in place."""

import functools
import math

import numpy as np

from levels.low_level import Operators
from levels_more import low_level
from levels_more.missing import cures_of, refusing
from levels_more.torch.dtypes import NUMBERS, dtype
from levels_more.torch.grad_mode import enable_grad, no_grad, recording
from levels_more.torch.graph import Node, OperandError, ShapeError, gradients, record_function
from levels_more.torch.ops import put
from levels_more.torch.printing import printed
from levels_more.torch.storage import Viewing

_LACKING = refusing("a tensor", "torch", bool="x != 0")
FUNCTIONS = {}  # name -> a function of recorded tensors, also a method of them; `add_` is `add` in place


class Size(tuple):
    """A shape: a tuple with the method `numel`."""

    def numel(self):
        """Return how many numbers a tensor of this shape holds."""
        return math.prod(self)

    def __getitem__(self, index):
        found = super().__getitem__(index)
        return Size(found) if isinstance(index, slice) else found

    def __repr__(self):
        return f"torch.Size({list(self)})"


class device(str):
    """The name of a device. The CPU is the only one. Raises RuntimeError for any other."""

    type = "cpu"

    def __new__(cls, name="cpu", index=None):
        if str(name).split(":")[0] != "cpu":
            raise RuntimeError(f"device {name!r}: here is the CPU; ask torch.cuda.is_available() first")
        return super().__new__(cls, "cpu")


def _operator(name):
    """The methods for `x - 1.0`, and for `1.0 - x`."""
    return lambda x, other: FUNCTIONS[name](x, other), lambda x, other: FUNCTIONS[name](other, x)


def _in_place(name):
    """The method that overwrites the tensor with the function's result, and returns the tensor."""

    def method(x, *args, **options):
        y = (FUNCTIONS.get(name + "_") or FUNCTIONS[name])(x, *args, **options)
        return x.set(y, name + "_")

    return method


class Tensor(Viewing):
    """A recorded tensor. `node`: its node or None; `known`: its numbers in the records; `grad`: summed gradients."""

    def __init__(self, values, *sizes, requires_grad=False, node=None):
        if isinstance(values, int):  # sizes, as in PyTorch: Tensor(2, 3)
            values = np.zeros((values, *sizes))
        held = isinstance(values, Operators)
        super().__init__(values if held else low_level.constant(np.asarray(values, NUMBERS[float])))
        self.node = node
        self.known = self.memory.held
        self.grad = None
        if requires_grad:
            self.requires_grad_()

    requires_grad = property(lambda self: self.node is not None, lambda self, value: self.requires_grad_(value))
    is_leaf = property(lambda self: self.node is None or self.node.leaf is not None)
    grad_fn = property(lambda self: None if self.is_leaf else self.node)
    data = property(lambda self: self.detach(), lambda self, value: self.refer_to(value))
    shape = property(lambda self: Size(self.held.shape))
    dtype = property(lambda self: dtype(self.held.dtype))
    ndim = property(lambda self: len(self.shape))
    T = property(lambda self: FUNCTIONS["t"](self))
    device = device()

    def requires_grad_(self, requires_grad=True):
        """Set whether a leaf has a gradient. Raises OperandError unless float, RuntimeError for False on a result."""
        if requires_grad and self.dtype.kind != "f":
            raise OperandError(f"requires_grad: the tensor is {self.dtype}; expected floats; only they have a gradient")
        if not (self.is_leaf or requires_grad):
            told = "a result remembers what it was made from; detach() gives one that does not"
            raise RuntimeError(f"requires_grad: {told}")
        if self.is_leaf:
            self.node = Node("accumulate_grad", leaf=self) if requires_grad else None
        return self

    def recompute(self):
        with no_grad() if self.grad_fn is None else enable_grad():
            again = self.move(self.base)
        self.memory.held = again.memory.held
        if not (self.is_leaf and self.requires_grad):
            self.node = again.node
            self.known = again.known

    def of(self, held, node=None):
        """Return a new tensor of these numbers, with this node."""
        return Tensor(held, node=node)

    def detach(self):
        """Return a tensor that shares this one's memory, and is not recorded. A change of one changes both."""
        return self.of(self.held).refer_to(self)

    def backward(self, gradient=None, retain_graph=False, create_graph=False):
        """Add the gradient of this number, or Σ self·gradient, to `grad` of leaves. Raises what `gradients` raises."""
        for x, dx in gradients(self, gradient, None, retain_graph, create_graph):
            if x.grad is None or create_graph:
                x.grad = dx if x.grad is None else x.grad + dx
            else:
                x.grad.write(x.grad.held + dx.held)

    def set(self, value, why="set"):
        """Overwrite the numbers, in this shape and dtype. What was recorded before keeps the old numbers.

        Raises RuntimeError for a recorded leaf or view while recording is on, and if shape or dtype do not fit.
        """
        value = value if isinstance(value, Tensor) else self.of(low_level.as_tensor(value, self.held))
        node = value.node if recording() else None
        if recording() and (self.is_leaf and self.node or self.base is not None and (self.node or node)):
            told = "a view of what is recorded would change in place; assign to that part, as in y[0] = y[0] * 2"
            if self.root.is_leaf and self.root.node:
                told = "a leaf that requires_grad would change in place; write so inside `with torch.no_grad():`"
            raise RuntimeError(f"{why}: {told}")
        widens = value.dtype.kind == "f" != self.dtype.kind and why != "copy_"
        if widens or np.broadcast_shapes(self.shape, value.shape) != tuple(self.shape):
            raise RuntimeError(f"{why}: {value.dtype} {tuple(value.shape)} for {self.dtype} {tuple(self.shape)}")
        if value.dtype != self.dtype:
            value = FUNCTIONS["to"](value, self.dtype)
        if value.shape != self.shape:
            value = FUNCTIONS["expand"](value, *self.shape)
        self.write(value.held)
        if recording() and value.node:
            self.node = value.node
            self.known = value.known
        return self

    __add__, __radd__ = _operator("add")
    __sub__, __rsub__ = _operator("sub")
    __mul__, __rmul__ = _operator("mul")
    __truediv__, __rtruediv__ = _operator("div")
    __floordiv__, __rfloordiv__ = _operator("floor_divide")
    __mod__, __rmod__ = _operator("remainder")
    __pow__, __rpow__ = _operator("pow")
    __matmul__, __rmatmul__ = _operator("matmul")
    __lt__, __gt__ = _operator("lt")
    __le__, __ge__ = _operator("le")
    __eq__ = lambda x, y: y is not None and FUNCTIONS["eq"](x, y)  # noqa: E731  (so that `x.grad == None` works)
    __ne__ = lambda x, y: y is None or FUNCTIONS["ne"](x, y)  # noqa: E731
    __and__, __rand__ = _operator("bitwise_and")
    __or__, __ror__ = _operator("bitwise_or")
    __iadd__ = _in_place("add")
    __isub__ = _in_place("sub")
    __imul__ = _in_place("mul")
    __itruediv__ = _in_place("div")
    __hash__ = object.__hash__
    __array_ufunc__ = None  # so that NumPy leaves `array * tensor` to `__rmul__`

    def __neg__(self):
        return FUNCTIONS["neg"](self)

    def __abs__(self):
        return FUNCTIONS["abs"](self)

    def __invert__(self):
        return FUNCTIONS["bitwise_not"](self)

    def __getitem__(self, index):
        return FUNCTIONS["at"](self, index)

    def __setitem__(self, index, value):
        parts = index if isinstance(index, tuple) else (index,)
        places = tuple(p.held.numpy() if isinstance(p, Tensor) else p for p in parts)
        if recording() and (self.node or isinstance(value, Tensor) and value.node):
            self.set(for_tensors("copy_slices", put)(self, value, places), "x[…] = …")
        else:
            self.array()[places] = value.held.numpy() if isinstance(value, Tensor) else value

    def __getattr__(self, name):
        in_place = name.endswith("_") and name[0] != "_" and {name, name[:-1]} & FUNCTIONS.keys()
        if in_place and name not in cures_of("torch"):
            return functools.partial(_in_place(name[:-1]), self)
        if name in FUNCTIONS:
            return functools.partial(FUNCTIONS[name], self)
        return _LACKING(self, name)

    def __deepcopy__(self, memo):
        if not self.is_leaf:
            raise RuntimeError("a tensor that remembers what it was made from cannot be copied; detach() it first")
        same = type(self)(self.held, requires_grad=self.requires_grad)
        same.grad = None if self.grad is None else self.grad.clone()
        return same

    def __copy__(self):
        return self.of(self.held, self.node).refer_to(self)

    def __reduce__(self):  # a pickle holds the numbers, and not what they were made from
        return type(self), (self.held,), (None, {"requires_grad": self.requires_grad, "grad": self.grad})

    def numpy(self):
        """Return a NumPy array that shares the memory. Raises RuntimeError if the tensor requires a gradient."""
        if self.requires_grad:
            raise RuntimeError("numpy: this tensor remembers; write x.detach().numpy()")
        return self.array()

    def item(self):
        """Return the one number as a Python number. Raises ShapeError unless there is exactly one."""
        if self.shape.numel() != 1:
            cure = "take one of it, or any() or all()"
            raise ShapeError(f"a tensor of shape {tuple(self.shape)} is not one number; {cure}")
        return self.held.numpy().item()

    def tolist(self):
        """Return the numbers as nested lists of Python numbers."""
        return self.held.numpy().tolist()

    def __len__(self):
        return len(self.held)

    def __iter__(self):
        return (self[k] for k in range(len(self)))

    def __bool__(self):
        return bool(self.item())

    def __float__(self):
        return float(self.item())

    def __int__(self):
        return int(self.item())

    def __index__(self):
        return self.held.numpy().__index__()

    def __array__(self, dtype=None, copy=None):
        return np.array(self.numpy(), dtype)

    def __format__(self, spec):
        return format(self.item() if self.ndim == 0 else str(self), spec)

    def __repr__(self):
        note = "requires_grad=True" if self.is_leaf else f"grad_fn={self.node}"
        return f"tensor({printed(self)}{f', {note}' * self.requires_grad})"


def for_tensors(name, function, view=None, place="levels_more.torch"):
    """Return a version of a function of `levels` for recorded tensors: see `record_function`. place: its module."""
    made = record_function(name, function, Tensor, view)
    made.__module__ = place  # where pickle looks for it
    made.__qualname__ = name
    return made

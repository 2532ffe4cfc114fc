"""A tensor that remembers what it was made from, so that a graph is always being recorded: PyTorch's way.

On level 3 a tape is open in a `with` block. Here every function runs under a tape of its own, and its result keeps what
that tape wrote down. `backward` puts the pieces one behind the other, and walks back over them as over any tape.
"""

import contextlib
import functools
import threading

import numpy as np

from levels import low_level
from levels.low_level import GradientTape, Operators, walk_back
from levels_more.checks import expect

FUNCTIONS = {}  # name -> a function of recorded tensors, which is a method, too; a name with _ at its end works in place


class _Recording(threading.local):
    on = True


_RECORDING = _Recording()


class Switched(contextlib.ContextDecorator):
    """Inside this `with` block, or the function that it decorates, results remember what they were made from, or do not."""

    def __init__(self, mode):
        self.mode, self.before = bool(mode), []

    def __enter__(self):
        self.before.append(_RECORDING.on)
        _RECORDING.on = self.mode

    def __exit__(self, *_):
        _RECORDING.on = self.before.pop()


class _Node:
    """What a tape wrote down while one function ran, and the tensors it was called with, each with its numbers then."""

    def __init__(self, records, parents):
        self.records, self.parents = records, parents


def _taken(value, parents):
    """An argument as `levels` takes it; the recorded tensors in it are noted."""
    if isinstance(value, Recorded):
        parents.append((value, value.held))
        return value.held
    return type(value)(_taken(each, parents) for each in value) if type(value) in (list, tuple) else value


def _given(result, kind, node):
    """What `levels` returns, as recorded tensors. Only floats remember."""
    if type(result) in (list, tuple):
        return type(result)(_given(each, kind, node) for each in result)
    made = isinstance(result, Operators)
    return kind(result, node=node if made and result.dtype.kind == "f" else None) if made else result


def recorded(function, kind):
    """A function of `levels`, for recorded tensors: it runs under a tape, whose lines its results, of that kind, keep."""

    @functools.wraps(function, updated=())
    def run(*args, **options):
        parents = []
        args = [_taken(x, parents) for x in args]
        options = {name: _taken(x, parents) for name, x in options.items()}
        if not _RECORDING.on or not any(x.requires_grad for x, _ in parents):
            return _given(function(*args, **options), kind, None)
        with GradientTape() as tape:
            result = function(*args, **options)
        return _given(result, kind, _Node(tape.records, parents))

    return run


def _history(tensor):
    """All that was written down on the way to a tensor, in order, and where that began: {numbers: the tensor of then}."""
    nodes, leaves, waiting = {}, {}, [(tensor, tensor.held, False)]
    while waiting:
        x, held, done = waiting.pop()
        if x.requires_grad and (x.node is None or x.keeps_grad):
            leaves[held] = x
        if done:
            nodes[x.node] = None
        elif x.node is not None and x.node not in nodes:
            if x.node.records is None:
                raise RuntimeError("backward: this graph was walked before; backward(retain_graph=True) keeps it")
            waiting += [(x, held, True), *((*parent, False) for parent in x.node.parents)]
    return nodes, leaves


def gradients(tensor, weights=None, inputs=None, keep=False):
    """{x: its gradient} for those inputs, or those leaves, that this one number, or Σ tensor·weights, was made from.

    Raises RuntimeError where nothing was recorded, the graph is walked a second time, or there are several numbers.
    """
    if weights is not None:
        tensor = FUNCTIONS["sum"](tensor * weights)
    if tensor.node is None or tensor.held.numpy().size != 1:
        why = "it was made from nothing that requires_grad" if tensor.node is None else f"its shape is {tensor.shape}"
        raise RuntimeError(f"backward: {why}; expected one recorded number, or a gradient in the tensor's shape")
    nodes, leaves = _history(tensor)
    leaves = leaves if inputs is None else {x.held: x for x in inputs}
    records, used = [record for node in nodes for record in node.records], {tensor.held}
    for _, read, _, y in reversed(records):
        used.update(read if y in used else ())
    sources = [held for held in leaves if held in used]
    found = walk_back(records, tensor.held, sources)
    for node in () if keep else nodes:
        node.records = None
    return {leaves[held]: dx for held, dx in zip(sources, found, strict=True)}


def grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False):
    """The gradients of one number, or of Σ outputs·grad_outputs, a tuple; None where an input had no part in it.

    With `create_graph` they remember as well, so that their own gradients can be asked for. Raises what `gradients` raises.
    """
    inputs = list(inputs) if isinstance(inputs, list | tuple) else [inputs]
    with GradientTape() as tape:
        found = gradients(outputs, grad_outputs, inputs, create_graph or bool(retain_graph))
    node = _Node(tape.records, [(x, x.held) for x in (outputs, *inputs)]) if create_graph else None
    return tuple(type(outputs)(found[x], node=node) if x in found else None for x in inputs)


def _operator(name):
    """The methods for `x - 1.0`, and for `1.0 - x`."""
    return lambda x, other: FUNCTIONS[name](x, other), lambda x, other: FUNCTIONS[name](other, x)


def _in_place(function):
    """A method that puts the function's result in the place of the tensor's own numbers."""

    @functools.wraps(function, updated=())
    def method(x, *args, **options):
        if _RECORDING.on and x.leaf:
            raise RuntimeError("a leaf that requires_grad changes in place; write so inside `with torch.no_grad():`")
        y = function(x, *args, **options)
        x.node = y.node if isinstance(y, Recorded) and _RECORDING.on else x.node
        return x.set(y)

    return method


class Recorded:
    """Numbers that remember. `held`: the tensor of `levels`; `node`: how it was made; `grad`: what `backward` has added up."""

    def __init__(self, values, requires_grad=False, node=None):
        self.cell = [values if isinstance(values, Operators) else low_level.constant(values)]  # `data` shares it
        self.leaf, self.node, self.grad, self.keeps_grad = False, node, None, False
        if requires_grad:
            self.requires_grad_()

    held = property(lambda self: self.cell[0])
    requires_grad = property(
        lambda self: self.leaf or self.node is not None, lambda self, value: self.requires_grad_(value)
    )
    shape = property(lambda self: self.held.shape)
    dtype = property(lambda self: self.held.dtype)
    is_leaf = property(lambda self: self.node is None)
    ndim = property(lambda self: len(self.held.shape))

    def set(self, value):
        """Put other numbers in the place of these, in this shape and dtype. What was recorded keeps the old ones."""
        value = value.held if isinstance(value, Recorded) else low_level.as_tensor(value, self.held)
        value = value if value.dtype == self.dtype else low_level.cast(value, self.dtype)
        if value.shape != self.held.shape:
            value = low_level.apply("broadcast_to", value, shape=self.held.shape)
        self.cell[0] = low_level.constant(value.numpy())
        return self

    def requires_grad_(self, requires_grad=True):
        """From now on what is made from this tensor remembers so. Raises TypeError but for floats."""
        floats = self.dtype.kind == "f" or not requires_grad
        expect(floats, "requires_grad: the tensor", self.dtype, "floats; only they have a gradient")
        self.leaf = bool(requires_grad)
        return self

    @property
    def data(self):
        """The same numbers, which remember nothing. To change them is to change these."""
        same = type(self).__new__(type(self))
        Recorded.__init__(same, self.held)
        same.cell = self.cell
        return same

    @data.setter
    def data(self, value):
        self.cell[0] = value.held if isinstance(value, Recorded) else low_level.constant(value)

    def detach(self):
        """See `data`."""
        return self.data

    def retain_grad(self):
        """Keep the gradient here, too, though this was made from others."""
        self.keeps_grad = True

    def backward(self, gradient=None, retain_graph=False):
        """Add the gradient of this number to the `grad` of every leaf that it was made from. Raises RuntimeError for others."""
        for leaf, dx in gradients(self, gradient, None, retain_graph).items():
            leaf.grad = Recorded.of(leaf, dx if leaf.grad is None else leaf.grad.held + dx)

    def of(self, held):
        """A tensor of the kind of this one's, with other numbers."""
        same = self.data
        same.cell = [held]
        return same

    __add__, __radd__ = _operator("add")
    __sub__, __rsub__ = _operator("sub")
    __mul__, __rmul__ = _operator("mul")
    __truediv__, __rtruediv__ = _operator("div")
    __pow__, __rpow__ = _operator("pow")
    __matmul__, __rmatmul__ = _operator("matmul")
    __lt__, __gt__ = _operator("lt")
    __le__, __ge__ = _operator("le")
    __eq__, __ne__ = _operator("eq")[0], _operator("ne")[0]
    __and__, __or__ = _operator("logical_and")[0], _operator("logical_or")[0]
    __iadd__, __isub__, __imul__, __itruediv__ = map(_in_place, (__add__, __sub__, __mul__, __truediv__))
    __hash__, __array_ufunc__ = object.__hash__, None

    def __neg__(self):
        return FUNCTIONS["neg"](self)

    def __invert__(self):
        return FUNCTIONS["logical_not"](self)

    def __getitem__(self, index):
        return FUNCTIONS["at"](self, index)

    def __setitem__(self, index, value):
        if self.requires_grad and _RECORDING.on:
            raise RuntimeError("numbers of a tensor that remembers change in place; use where, or no_grad")
        array, parts = self.numpy(), index if isinstance(index, tuple) else (index,)
        array[tuple(p.numpy() if isinstance(p, Recorded) else p for p in parts)] = np.asarray(value)
        self.set(array)

    def __getattr__(self, name):
        if name.endswith("_") and (function := FUNCTIONS.get(name) or FUNCTIONS.get(name[:-1])):
            return functools.partial(_in_place(function), self)
        if name in FUNCTIONS:
            return functools.partial(FUNCTIONS[name], self)
        raise AttributeError(f"a tensor has no {name!r} here", name=name, obj=self)

    def numpy(self):
        """A copy of the numbers, as a NumPy array."""
        return self.held.numpy()

    def item(self):
        """The one number, as Python's."""
        return self.numpy().item()

    def tolist(self):
        """The numbers as lists of lists of Python's."""
        return self.numpy().tolist()

    def __len__(self):
        return len(self.held)

    def __iter__(self):
        return (self[k] for k in range(len(self)))

    def __bool__(self):
        return bool(self.held)

    def __float__(self):
        return float(self.held)

    def __int__(self):
        return int(self.held)

    def __index__(self):
        return self.numpy().__index__()

    def __array__(self, dtype=None, copy=None):
        return self.held.__array__(dtype)

    def __format__(self, spec):
        return format(self.item() if self.ndim == 0 else str(self), spec)

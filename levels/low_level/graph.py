"""Tracing: a function of tensors is run once on symbols, and its ops become a graph."""

# Built from 03_low_level.ipynb: edit there, then run its last cell.

from dataclasses import dataclass

from levels.hardware import Spec
from levels.support.operators import array_function

from .tensors import DOOR, Interpreter, Tensor, Variable, as_tensor


@dataclass(eq=False)
class Node:
    """One op of a graph; or a leaf: an "input", a "variable" or a "constant"."""

    op: str
    inputs: list  # nodes
    attrs: dict
    spec: Spec
    source: object = None  # of a leaf: an input's number, a variable or a tensor

    def __repr__(self):
        return f"{self.op} {self.spec.dtype}{list(self.spec.shape)}"


class Symbol(Tensor):
    """A tensor whose numbers are not known yet; its `node` will compute them."""

    __slots__ = ("trace", "node")

    def __init__(self, trace, node):
        super().__init__(node.spec, source=node)  # no memory of its own
        self.trace, self.node = trace, node

    @property
    def data(self):
        """Raise TypeError: a symbol has no numbers."""
        cure = "`if` becomes where(mask, x, y), np.mean becomes reduce_mean; return what you need from the function"
        raise TypeError(f"{self!r}: its numbers are not known, for a function is traced without them; {cure}")

    data = data.setter(lambda self, nothing: None)  # it has no memory
    __array_function__ = array_function  # np.mean(x) says what to write

    def __repr__(self):
        return f"Symbol({self.spec})"


class Trace(Interpreter):
    """The interpreter that records each op as a node. `env`: {a variable or a constant: its current value}."""

    def __init__(self):
        self.nodes = []
        self.env = {}

    def do(self, op, plan, inputs, attrs):
        return self.add_node(op, [self.node(x) for x in inputs], attrs, plan.spec)

    def read(self, variable):
        return self.add_leaf("variable", variable)

    def assign(self, variable, value):
        self.env[variable] = value

    def add_leaf(self, kind, x):
        """Return the current value of a variable or a constant tensor; at first, a new leaf."""
        if x not in self.env:
            self.env[x] = self.add_node(kind, [], {}, x.spec, x)
        return self.env[x]

    def add_node(self, op, inputs, attrs, spec, source=None):
        """Add a node to the trace, and return its symbol."""
        node = Node(op, inputs, attrs, spec, source)
        self.nodes.append(node)
        return Symbol(self, node)

    def node(self, x):
        """Return the node of a symbol, or of a tensor as a constant. Raises TypeError for another trace's symbol."""
        x = x if type(x) is Symbol else self.add_leaf("constant", x)
        if x.trace is not self:
            raise TypeError(f"{x!r} is of another trace; return what you need from the function")
        return x.node


@dataclass(eq=False)
class Graph:
    """A function of tensors as data."""

    nodes: list  # each after its inputs
    outputs: list  # the nodes of the results
    updates: dict  # variable -> the node of its new value

    @property
    def ops(self):
        """The nodes that are no leaves."""
        return [node for node in self.nodes if node.inputs]

    def leaves(self, kind):
        """Return {source: leaf} for the leaves of this kind, such as "variable"."""
        return {node.source: node for node in self.nodes if node.op == kind}

    def __repr__(self):
        return ", ".join(node.op for node in self.ops)


def _results_of(given, name="function"):
    """List a function's results: none, one, or all in a list or tuple. Raises TypeError for dicts and nested lists."""
    if given is None:
        return []
    results = list(given) if type(given) in (list, tuple) else [given]
    for x in results:
        if isinstance(x, (list, tuple, dict, set)) or x is None:
            raise TypeError(f"{name}: returns a {type(x).__name__}; expected tensors, or one list or tuple of them")
    return results


def trace(python, signature):
    """Run `python` on symbols of these Specs. Return the graph, and what `python` returned."""
    here = Trace()
    before = DOOR.top
    args = [here.add_node("input", [], {}, x, k) if type(x) is Spec else x for k, x in enumerate(signature)]
    DOOR.top = here
    try:
        result = python(*args)
        outputs = [here.node(as_tensor(x)) for x in _results_of(result, getattr(python, "__qualname__", "it"))]
    finally:
        DOOR.top = before
    new = {v: here.node(x) for v, x in [*here.env.items()] if isinstance(v, Variable)}
    updates = {v: node for v, node in new.items() if node.source is not v}
    return Graph(here.nodes, outputs, updates), result


def needed_by(nodes, wanted):
    """The nodes that are wanted, and all that these need, in the order of the list."""
    needed = set(wanted)
    for node in reversed(nodes):
        if node in needed:
            needed.update(node.inputs)
    return [node for node in nodes if node in needed]


def dce(graph):
    """Eliminate dead code: return a graph of only the nodes that a result or a new value needs."""
    return Graph(needed_by(graph.nodes, [*graph.outputs, *graph.updates.values()]), graph.outputs, graph.updates)

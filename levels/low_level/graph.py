"""Tracing: a function is run once on symbols, and its ops become a graph."""

# Built from 03_low_level.ipynb: edit there, then run its last cell.

from dataclasses import dataclass

from levels.hardware import Spec
from levels.support.operators import NoNumbers
from levels.support.programs import check_trace, results_of

from .tensors import DOOR, Interpreter, Tensor, Variable, as_tensor


@dataclass(eq=False)
class Node:
    """One op of a graph; or a leaf: an "input", a "variable" or a "constant"."""

    op: str
    inputs: list  # nodes
    attrs: dict
    spec: Spec
    source: object = None  # of a leaf: an input's position, a variable or a tensor

    def __repr__(self):
        return f"{self.op} {self.spec.dtype}{list(self.spec.shape)}"


class Symbol(NoNumbers, Tensor):
    """A tensor whose numbers are not known yet; its `node` will compute them."""

    __slots__ = ("trace", "node")

    def __init__(self, trace, node):
        super().__init__(node.spec, source=node)  # the node, in place of memory
        self.trace = trace
        self.node = node


class Trace(Interpreter):
    """The interpreter that records each op as a node, and runs none."""

    def __init__(self):
        self.nodes = []
        self.env = {}  # a variable or a constant -> its current value, a symbol

    def do(self, op, plan, inputs, attrs):
        return self.add_node(op, [self.node(x) for x in inputs], attrs, plan.spec)

    def read(self, variable):
        return self.add_leaf("variable", variable)

    def assign(self, variable, value):
        self.env[variable] = value

    def add_leaf(self, kind, x):
        """Return the symbol of a variable or a constant tensor; at first, a leaf."""
        if x not in self.env:
            self.env[x] = self.add_node(kind, [], {}, x.spec, x)
        return self.env[x]

    def add_node(self, *node):
        """Add a node to the trace, and return its symbol."""
        self.nodes.append(Node(*node))
        return Symbol(self, self.nodes[-1])

    def node(self, x):
        """Return the node of a symbol, or of a tensor as a constant."""
        x = x if type(x) is Symbol else self.add_leaf("constant", x)
        check_trace(x, self)
        return x.node


@dataclass(eq=False)
class Graph:
    """A function of tensors as data."""

    nodes: list  # each after its inputs
    outputs: list  # the nodes of the results
    updates: dict  # variable -> the node of its new value

    ops = property(lambda self: [x for x in self.nodes if x.inputs], doc="No leaves.")

    def leaves(self, kind):
        """Return {source: leaf} for the leaves of this kind, such as "variable"."""
        return {node.source: node for node in self.nodes if node.op == kind}

    def __repr__(self):
        return ", ".join(node.op for node in self.ops)


def trace(python, signature):
    """Run a function on symbols of these Specs. Return its graph and its result."""
    here = Trace()
    before = DOOR.top
    args = list(signature)
    for k, x in enumerate(args):
        if type(x) is Spec:
            args[k] = here.add_node("input", [], {}, x, k)
    DOOR.top = here
    try:
        result = python(*args)
        outputs = [here.node(as_tensor(x)) for x in results_of(result, python)]
    finally:
        DOOR.top = before
    # (from a copy of `env`, since `node` may add a constant)
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
    """Eliminate dead code: keep the nodes that a result or a new value needs."""
    wanted = [*graph.outputs, *graph.updates.values()]
    return Graph(needed_by(graph.nodes, wanted), graph.outputs, graph.updates)

"""A function of tensors, run once on symbols, becomes a graph; passes make the graph smaller."""

# Built from 03_low_level.ipynb: edit there, then run its last cell.

import functools
import weakref
from contextlib import contextmanager, suppress

import numpy as np

from levels.hardware import Spec
from levels.kernels import COMPILERS, ELEMENTWISE, KERNELS, PLANS

from .tensors import ENGINES, VARIABLES, Tensor, as_tensor, constant


class Node:
    """One op of a graph, with nodes as its inputs; or a leaf: an "input", a "variable" or a "constant"."""

    __slots__ = ("op", "inputs", "attrs", "spec")

    def __init__(self, op, inputs, attrs, spec):
        self.op, self.inputs, self.attrs, self.spec = op, tuple(inputs), attrs, spec

    def __repr__(self):
        return f"{self.op} {self.spec.dtype}{list(self.spec.shape)}"


class Symbol(Tensor):
    """A tensor whose numbers are not known yet; its `data` is the node that will compute them."""

    __slots__ = ()

    @property
    def shape(self):
        if getattr(ENGINES[-1], "batch", None) in self.spec.shape:  # on any axis: it may have been transposed
            ENGINES[-1].any_batch = False
        return self.spec.shape

    def numpy(self):
        raise TypeError(
            f"{self!r}: its numbers are not known while a function is traced; `if` becomes where(mask, x, y)"
        )

    def __repr__(self):
        return f"Symbol({self.spec})"


class Tracer:
    """The engine that runs nothing and writes each op down as a node."""

    def __init__(self, batch):
        self.batch, self.any_batch, self.nodes, self.constants = batch, True, [], {}
        self.symbols, self.before, self.made = [], {v: v.value for v in VARIABLES.values()}, []

    def __call__(self, op, plan, inputs, attrs):
        return self.symbol(op, [self.node(x) for x in inputs], attrs, plan.spec)

    def symbol(self, op, inputs, attrs, spec):
        """A new node, and the tensor that stands for it."""
        self.nodes.append(Node(op, inputs, attrs, spec))
        spec.device.used += spec.nbytes  # taken off again when the symbol is freed
        self.symbols.append(Symbol(spec, self.nodes[-1]))
        return self.symbols[-1]

    def node(self, x):
        """The node of a tensor. One that has numbers is a constant, or the value of a variable made since the trace began."""
        if type(x) is Symbol:
            return x.data
        if x not in self.constants:
            self.constants[x] = Node("constant", (), {"of": x}, x.spec)
            self.nodes.append(self.constants[x])
            self.made += [(weakref.ref(v), self.constants[x]) for v in VARIABLES.values() if v.value is x]
        return self.constants[x]


class Graph:
    """Nodes in an order in which they can be computed, the results among them, and the new values {variable: node}."""

    def __init__(self, nodes, outputs, updates):
        self.nodes, self.outputs, self.updates = nodes, outputs, updates

    ops = property(lambda self: [node for node in self.nodes if node.inputs], doc="The nodes that are no leaves.")

    def __repr__(self):
        names, lines = {}, []
        for node in self.ops:
            for x in (*node.inputs, node):
                names.setdefault(x, leaf_name(x) or f"t{len(lines)}")
            given = [*map(names.get, node.inputs), *(f"{k}={v}" for k, v in node.attrs.items())]
            lines.append(f"{names[node]:>4} = {node.op}({', '.join(given)})".ljust(56) + f" {node.spec.shape}")
        return "\n".join(lines)


def leaf_name(node):
    """What a leaf is called: the name of a variable, x0 for the first argument, a number that it is. None for others."""
    of = node.attrs.get("of")
    if node.op == "variable":
        return of.name
    if node.op == "input":
        return f"x{of}"
    return str(of.numpy()) if node.op == "constant" and not node.spec.shape else None


SKETCHES = {}  # the version of KERNELS -> the plans that traces made with them


@contextmanager
def on_duty(tracer):
    """Inside this `with` block ops are written down, and variables hold symbols."""
    plans, compiler = dict(PLANS), COMPILERS["cpu"]
    PLANS.clear()
    PLANS.update(SKETCHES.get(KERNELS.version, {}))
    ENGINES.append(tracer)
    COMPILERS["cpu"] = lambda function, *_: function  # a compiler that leaves the function as it is
    try:
        for variable, value in tracer.before.items():
            variable.value = tracer.symbol("variable", (), {"of": variable}, value.spec)
        yield
    finally:
        ENGINES.pop()
        COMPILERS["cpu"] = compiler
        SKETCHES.clear()
        SKETCHES[KERNELS.version] = dict(PLANS)
        PLANS.clear()
        PLANS.update(plans)
        for made, node in tracer.made:
            if made() is not None:  # it outlives the call, so it is a variable; another one starts anew in each call
                tracer.before[made()], node.op, node.attrs = node.attrs["of"], "variable", {"of": made()}
        for variable, value in tracer.before.items():
            variable.value = value
        for symbol in tracer.symbols:
            symbol.device.free(symbol)


def trace(python, signature, batch=None):
    """Run `python` on symbols, one for each Spec in the signature, whose other entries are (type, value, …).

    Returns its Graph, what it returned, and whether it never asked for the size of the batch.
    """
    tracer = Tracer(batch)
    with on_duty(tracer):
        args = [tracer.symbol("input", (), {"of": k}, x) if type(x) is Spec else x[1] for k, x in enumerate(signature)]
        result = python(*args)
        outputs = [tracer.node(as_tensor(x)) for x in results_of(result)]
        values = {v: v.value.data for v in VARIABLES.values() if type(v.value) is Symbol}
    if values.keys() - tracer.before.keys():
        raise ValueError("a variable that is made inside a function needs numbers, and is read before it is assigned")
    updates = {v: node for v, node in values.items() if node.attrs.get("of") is not v}
    return Graph(tracer.nodes, outputs, updates), result, tracer.any_batch


def results_of(result):
    """The tensors that a function returns: none, one, or those of a list or a tuple."""
    if result is None:
        return []
    return list(result) if isinstance(result, (list, tuple)) else [result]


def without_dead(graph):
    """Only what a result or a new value needs, and the variables that get one."""
    needed = {*graph.outputs, *graph.updates.values()}
    needed.update(node for node in graph.nodes if node.op == "variable" and node.attrs["of"] in graph.updates)
    for node in reversed(graph.nodes):
        if node in needed:
            needed.update(node.inputs)
    return Graph([node for node in graph.nodes if node in needed], graph.outputs, graph.updates)


def rebuilt(graph, change):
    """The graph with change(node, new inputs) in the place of each op."""
    new = {}
    for node in graph.nodes:
        new[node] = change(node, tuple(new[x] for x in node.inputs)) if node.inputs else node
    updates = {variable: new[node] for variable, node in graph.updates.items()}
    return Graph([*dict.fromkeys(new.values())], [new[node] for node in graph.outputs], updates)


def shared(graph):
    """The same op on the same inputs is done once."""
    seen = {}

    def change(node, inputs):
        return seen.setdefault((node.op, inputs, *node.attrs.items()), Node(node.op, inputs, node.attrs, node.spec))

    return rebuilt(graph, change)


def folded(graph):
    """What depends on constants alone is computed now, in Python's floats."""

    def change(node, inputs):
        if node.op in ELEMENTWISE and node.spec.dtype.kind == "f" and all(x.op == "constant" for x in inputs):
            scalar = functools.partial(KERNELS[node.op, "cpu"], **numbers_of(node))
            with (
                suppress(ArithmeticError, TypeError),
                np.errstate(all="ignore"),
            ):  # what Python refuses, 1 / 0 or a complex root, is left to the kernels
                value = each(scalar, *(x.attrs["of"].numpy().astype(object) for x in inputs))
                value = np.broadcast_to(value.astype(node.spec.dtype), node.spec.shape)
                return Node("constant", (), {"of": constant(value)}, node.spec)
        return Node(node.op, inputs, node.attrs, node.spec)

    return rebuilt(graph, change)


def each(function, *arrays):
    """The function of every number of these arrays of Python's objects, broadcast."""
    return np.asarray(np.frompyfunc(function, len(arrays), 1)(*arrays), object)


def numbers_of(node):
    """The attributes of an elementwise op that are numbers. (The shape of broadcast_to is none.)"""
    return {name: value for name, value in node.attrs.items() if name != "shape"}

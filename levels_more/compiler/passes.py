"""Passes: common subexpression elimination, constant folding, and means as sums."""

import functools
import math
from contextlib import suppress

import numpy as np

from levels.kernels import ELEMENTWISE, KERNELS, planned, reduced
from levels.low_level import PASSES, Graph, Node, Tensor, constant


def rebuilt(graph, change):
    """The graph with change(node, new inputs) in the place of each op."""
    new = {}
    for node in graph.nodes:
        new[node] = change(node, tuple(new[x] for x in node.inputs)) if node.inputs else node
    updates = {variable: new[node] for variable, node in graph.updates.items()}
    return Graph([*dict.fromkeys(new.values())], [new[node] for node in graph.outputs], updates)


def with_inputs(graph):
    """The graph in which inputs that a change has added are nodes as well, each before the node that reads it."""
    nodes = dict.fromkeys(x for node in graph.nodes for x in (*node.inputs, node))
    return Graph([*nodes], graph.outputs, graph.updates)


def made(op, inputs, attrs):
    """A new node for this op."""
    return Node(op, inputs, attrs, planned(op, [x.spec for x in inputs], attrs).spec)


def cse(graph):
    """Common subexpression elimination: the same op on the same inputs is done once."""
    seen = {}

    def change(node, inputs):
        key = node.op, inputs, repr(node.attrs)  # 0.0 == -0.0, but their reprs differ
        return seen.setdefault(key, Node(node.op, inputs, node.attrs, node.spec))

    return rebuilt(graph, change)


def constant_fold(graph):
    """Constant folding: elementwise ops on float constants are computed now, in Python's floats."""

    def change(node, inputs):
        if node.op in ELEMENTWISE and node.spec.dtype.kind == "f" and all(x.op == "constant" for x in inputs):
            numbers = {name: value for name, value in node.attrs.items() if name != "shape"}
            function = functools.partial(KERNELS[node.op, "cpu"], **numbers)
            with suppress(ArithmeticError, TypeError), np.errstate(all="ignore"):
                # if Python raises, as for 1 / 0 or a complex root, the op is left to its kernel
                numbers = [x.source.numpy().astype(object) for x in inputs]
                value = np.asarray(np.frompyfunc(function, len(inputs), 1)(*numbers), node.spec.dtype)
                value = np.broadcast_to(value, node.spec.shape)
                return Node("constant", (), {}, node.spec, constant(value))
        return Node(node.op, inputs, node.attrs, node.spec)

    return rebuilt(graph, change)


def sums_before(node):
    """The shape in which `spread` sees its dy: with the axes of the sum, of size 1, at their places."""
    shape = node.spec.shape
    axes, _ = reduced(node.op, shape, node.attrs.get("axis"))
    return tuple(1 if axis in axes else size for axis, size in enumerate(shape))


def with_axes(graph):
    """Where `spread` gets a dy without the axes of its sum, a copy has them: then loops can fuse it."""

    def change(node, inputs):
        if node.op == "spread" and node.attrs and inputs[0].spec.shape != (shape := sums_before(node)):
            inputs = made("reshape", inputs[:1], {"shape": shape}), inputs[1]
        return Node(node.op, inputs, node.attrs, node.spec)

    return with_inputs(rebuilt(graph, change))


def with_quotients(graph):
    """The graph with each mean as the core has it, a sum and a quotient: row programs know no other.

    A mean whose kernel a reader has replaced, or on another device, stays.
    """

    def change(node, inputs):
        kind = node.spec.device.kind
        if node.op != "reduce_mean" or kind != "cpu" or not KERNELS.is_first(node.op, kind):
            return Node(node.op, inputs, node.attrs, node.spec)
        terms = math.prod(inputs[0].spec.shape) / max(1, math.prod(node.spec.shape))
        count = node.spec.device.put(np.array(terms, node.spec.dtype), Tensor)
        total = Node("reduce_sum", inputs, node.attrs, node.spec)
        return Node("divide", (total, Node("constant", (), {}, count.spec, count)), {}, node.spec)

    return with_inputs(rebuilt(graph, change))


PASSES += [with_quotients, with_axes, cse, constant_fold]

"""Passes that make a graph smaller: common subexpression elimination and constant folding."""

import functools
from contextlib import suppress

import numpy as np

from levels.kernels import ELEMENTWISE, KERNELS
from levels.low_level import PASSES, Graph, Node, constant


def rebuilt(graph, change):
    """The graph with change(node, new inputs) in the place of each op."""
    new = {}
    for node in graph.nodes:
        new[node] = change(node, tuple(new[x] for x in node.inputs)) if node.inputs else node
    updates = {variable: new[node] for variable, node in graph.updates.items()}
    return Graph([*dict.fromkeys(new.values())], [new[node] for node in graph.outputs], updates)


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


PASSES += [cse, constant_fold]

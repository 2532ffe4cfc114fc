"""Which op of a step has rows, and how each op is written as instructions."""

# Built from 03_low_level.ipynb: edit there, then run its last cell.

import functools

import numpy as np

from levels.hardware import dot
from levels.kernels import ELEMENTWISE, KERNELS, planned, reduced
from levels.support import programs
from levels.support.programs import check_form, told_by

NoProgram = programs.NoProgram  # the reason why a graph cannot become a program


def _with_one_more(node, inputs, batch):
    """Return a node's Spec for one row more, from its inputs' Specs for one more."""
    spec = node.spec
    grown = (batch + 1, *spec.shape[1:])
    if node.op == "input" and spec.shape[:1] == (batch,):
        return spec.device.spec(grown, spec.dtype)
    if inputs == [x.spec for x in node.inputs]:
        return spec
    attrs = node.attrs
    if attrs.get("shape", ())[:1] == (batch,):
        attrs = attrs | {"shape": grown}
    try:
        larger = planned(node.op, inputs, attrs).spec
    except ValueError as why:  # for example, the step has a shape written into it
        raise NoProgram(f"{node!r} is for {batch} rows alone ({why})") from None
    if larger is not spec and larger.shape != grown:
        raise NoProgram(f"{node!r} grows by more than a row")
    return larger


def row_parts(graph, batch):
    """Return {node: "row" if it has rows, "sum" if it adds them up, "after" if it needs
    a sum, else "before"}. Raises NoProgram for a graph that does not split.
    """
    parts = {}
    larger = {}  # node -> its Spec for a batch with one row more
    for node in graph.nodes:
        read = {parts[x] for x in node.inputs}
        needs_sum = bool(read & {"sum", "after"})
        if "row" in read and needs_sum:
            raise NoProgram(f"{node!r} needs more than a row at a time")
        larger[node] = _with_one_more(node, [larger[x] for x in node.inputs], batch)
        if larger[node] is not node.spec:
            parts[node] = "row"
        elif "row" in read:
            parts[node] = "sum"
        else:
            parts[node] = "after" if needs_sum else "before"
    return parts


def _each(function, *arrays):
    """Call a function for each number of the broadcast arrays. Return its results."""
    return np.asarray(np.frompyfunc(function, len(arrays), 1)(*arrays), object)


def as_instructions(node, *values, **numbers):
    """Call an op's scalar function on registers. Raises NoProgram if that fails."""
    with told_by(node.op):
        return KERNELS[node.op, node.spec.device.kind](*values, **numbers)


def _elementwise(node, shape, *inputs):
    check_form("single numbers", node.op, ELEMENTWISE)
    attrs = {name: value for name, value in node.attrs.items() if name != "shape"}
    written = functools.partial(as_instructions, node, **attrs)
    return np.broadcast_to(_each(written, *inputs), shape)


def _products(node, shape, x, w):
    x = x.T if node.attrs.get("transpose_x") else x
    w = w.T if node.attrs.get("transpose_w") else w
    found = [dot(row, unit) for row in x for unit in w.T]
    return np.array(found, object).reshape(shape)


def _repeated(node, shape, dy, x):
    _, (before, within, after) = reduced(node.op, shape, node.attrs.get("axis"))
    dy = dy.reshape(before, 1, after)
    x = x.reshape(before, within, after)
    return _each(functools.partial(as_instructions, node), dy, x).reshape(shape)


# op -> its numbers, from those of its inputs; else `_elementwise`
LOWERINGS = {"matmul": _products, "spread": _repeated}


SHARES = {  # op that adds rows up -> the terms that a row adds to its sums
    "matmul": lambda shape, x, dy: [x.T * dy],
    "reduce_sum": lambda shape, x: x.reshape(-1, *shape),
}

"""Which op of a step has rows, and how each op is written as instructions."""

# Built from 03_low_level.ipynb: edit there, then run its last cell.

import functools
import operator

import numpy as np

from levels.hardware import REAL, dot
from levels.kernels import ELEMENTWISE, KERNELS, planned, reduced


class NoProgram(Exception):
    """The reason why a graph cannot become a program of some kind."""


def _with_one_more(node, inputs, batch):
    """Return a node's Spec for a batch with one row more, from its inputs' Specs then.

    Raises NoProgram if there is none, or if the node grows by more than a row.
    """
    spec = node.spec
    attrs = node.attrs
    grown = (batch + 1, *spec.shape[1:])
    if node.op == "input" and spec.shape[:1] == (batch,):
        return spec.device.spec(grown, spec.dtype)
    if inputs == [x.spec for x in node.inputs]:
        return spec
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
    """Return {node: its part}. Raises NoProgram for a graph that does not split.

    It is "row" if the node has rows, "sum" if it adds rows up, "after" if it needs
    a sum, else "before".
    """
    parts = {}
    larger = {}
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
    try:
        return KERNELS[node.op, node.spec.device.kind](*values, **numbers)
    except (ArithmeticError, AttributeError, TypeError, ValueError) as why:
        told = f"the function of {node.op} cannot be written as instructions ({why})"
        raise NoProgram(told) from None


def _elementwise(node, shape, *inputs):
    if node.op not in ELEMENTWISE:
        raise NoProgram(f"{node.op} has no form for single numbers")
    attrs = {name: value for name, value in node.attrs.items() if name != "shape"}
    values = _each(lambda *numbers: as_instructions(node, *numbers, **attrs), *inputs)
    return np.broadcast_to(values, shape)


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


LOWERINGS = {  # op -> its numbers, from those of its inputs; else `_elementwise`
    "matmul": _products,
    "spread": _repeated,
}


SHARES = {  # op that adds rows up -> the terms that a row adds to its sums
    "matmul": lambda shape, x, dy: [x.T * dy],
    "reduce_sum": lambda shape, x: x.reshape(-1, *shape),
}


def _add_row(node, sums, *inputs):
    """Add to an op's sums what one row has. Raises NoProgram if SHARES lacks the op."""
    if node.op not in SHARES:
        raise NoProgram(f"{node.op} has no form for the share of a row")
    for term in SHARES[node.op](node.spec.shape, *inputs):
        _each(operator.iadd, sums, term)


def check_fits(graph):
    """Raise NoProgram for several dtypes, empty arrays, other devices or kernels."""
    leaves = [x for x in graph.nodes if x.op in ("input", "variable")]
    edges = {x.spec.dtype for x in (*graph.outputs, *graph.updates.values(), *leaves)}
    dtypes = {node.spec.dtype for node in graph.nodes} - {np.dtype(bool)} | edges
    if len(dtypes) != 1 or dtypes.isdisjoint(REAL):
        told = ", ".join(sorted(map(str, dtypes)))
        told = f"it has {told}; expected one float dtype, and no bools outside"
        raise NoProgram(told)
    for node in graph.nodes:
        kind = node.spec.device.kind
        ours = not node.inputs or node.op in ELEMENTWISE
        ours = ours or KERNELS.is_first(node.op, kind)
        if kind != "cpu" or not ours or 0 in node.spec.shape:
            raise NoProgram(f"{node!r} on {kind} is left to its kernel")

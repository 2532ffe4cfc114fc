"""What a program by rows must know of each op."""

# Built from 03_low_level.ipynb: edit there, then run its last cell.

import functools

import numpy as np

from levels import more
from levels.hardware import dot
from levels.kernels import ELEMENTWISE, KERNELS, REDUCTIONS, reduced


def each(function, *arrays):
    """The function of every number of these arrays of values, broadcast."""
    return np.asarray(np.frompyfunc(function, len(arrays), 1)(*arrays), object)


def never(node, by_row):
    """An op of this name never adds rows up."""
    return False


def _elementwise_keeps(node, by_row):
    axes = len(node.spec.shape)
    shapes = [(x.spec.shape, row) for x, row in zip(node.inputs, by_row)]
    return all(len(shape) == axes if row else len(shape) < axes or shape[0] == 1 for shape, row in shapes)


def _elementwise_values(node, inputs, by_row, row, batch):
    """The op's scalar function of each number; what has no rows is repeated for all."""
    numbers = {name: value for name, value in node.attrs.items() if name != "shape"}
    if node.op == "spread" and row and not by_row[0] and numbers["count"] != 1.0:
        numbers["count"] = batch * (numbers["count"] / node.spec.shape[0])  # one program serves any batch
    axes = len(node.spec.shape)
    inputs = [x[0] if row and not own and len(x.shape) == axes else x for x, own in zip(inputs, by_row)]
    function = functools.partial(KERNELS[node.op, "cpu"], **numbers)
    return np.broadcast_to(each(function, *inputs), node.spec.shape[row:])


def _matmul_adds(node, by_row):
    return all(by_row) and bool(node.attrs.get("transpose_x")) and not node.attrs.get("transpose_w")


def _matmul_keeps(node, by_row):
    return by_row == [True, False] and not node.attrs.get("transpose_x")


def _matmul_values(node, inputs, by_row, row, batch):
    x, w = np.atleast_2d(inputs[0]), inputs[1]
    x, w = x.T if node.attrs.get("transpose_x") else x, w.T if node.attrs.get("transpose_w") else w
    products = [dot(line, column) for line in x for column in w.T]
    return np.array(products, object).reshape(node.spec.shape[row:])


def _axes(node):
    """The axes that a reduction reduces."""
    return reduced(node.op, node.inputs[0].spec.shape, node.attrs.get("axis"))[0]


def sum_keeps(node, by_row):
    """A reduction keeps rows apart unless it reduces the first axis."""
    return 0 not in _axes(node)


def sum_values(node, inputs, by_row, row, batch):
    """The reduction's function takes in one number after the other, in order."""
    (x,), op = inputs, node.op.replace("mean", "sum")
    before, within, after = reduced(op, x.shape, tuple(axis - row for axis in _axes(node)))[1]
    total, x = np.full((before, after), REDUCTIONS[op], object), x.reshape(before, within, after)
    for k in range(within):
        total = each(KERNELS[op, "cpu"], total, x[:, k])
    if op != node.op:
        total = each(lambda t: t / float(within), total)
    return total.reshape(node.spec.shape[row:])


def _sum_adds(node, by_row):
    return 0 in _axes(node)


def _reshape_keeps(node, by_row):
    return node.spec.shape[:1] == node.inputs[0].spec.shape[:1]


def _reshape_values(node, inputs, by_row, row, batch):
    return inputs[0].reshape(node.spec.shape[row:])


FORMS = {  # op -> does it add rows up? does it keep them apart? (node, by_row); its values (node, inputs, by_row, row, batch)
    "matmul": (_matmul_adds, _matmul_keeps, _matmul_values),
    "reduce_sum": (_sum_adds, sum_keeps, sum_values),
    "reduce_mean": (_sum_adds, sum_keeps, sum_values),
    "reshape": (never, _reshape_keeps, _reshape_values),
}


class NoProgram(Exception):
    """Says why a graph is no program of some kind."""


def form_of(op):
    """What a program by rows must know of an op. Raises NoProgram for an op without a row in FORMS."""
    if op in ELEMENTWISE:
        return never, _elementwise_keeps, _elementwise_values
    if op not in FORMS and not more("form", op):
        raise NoProgram(f"{op} has no form for single numbers")
    return FORMS[op]

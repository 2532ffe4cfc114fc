"""What a program by rows must know of each op: whether it grows with the batch, its values, what it adds to a sum."""

# Built from 03_low_level.ipynb: edit there, then run its last cell.

import functools
import math

import numpy as np

from levels import more
from levels.hardware import dot
from levels.kernels import ELEMENTWISE, KERNELS, planned


class NoProgram(Exception):
    """Says why a graph is no program of some kind."""


def _with_one_more(node, inputs, batch, by_row):
    """The Spec that a node has in a batch with one row more, given those of its inputs."""
    shape, larger = node.spec.shape, node.spec
    if shape[:1] == (batch,):
        larger = node.spec.device.spec((batch + 1, *shape[1:]), node.spec.dtype)
    if not node.inputs:
        return larger if node.op == "input" else node.spec
    attrs = node.attrs | ({"shape": larger.shape} if by_row and "shape" in node.attrs else {})
    return planned(node.op, inputs, attrs).spec


def _each(function, *arrays):
    """The function of every number of these arrays of values, broadcast."""
    return np.asarray(np.frompyfunc(function, len(arrays), 1)(*arrays), object)


def _elementwise(node, shape, *inputs):
    numbers = {name: value for name, value in node.attrs.items() if name != "shape"}
    return np.broadcast_to(_each(functools.partial(KERNELS[node.op, "cpu"], **numbers), *inputs), shape)


def _products(node, shape, x, w):
    x, w = x.T if node.attrs.get("transpose_x") else x, w.T if node.attrs.get("transpose_w") else w
    return np.array([dot(row, column) for row in x for column in w.T], object).reshape(shape)


def _ended(node, totals):
    """A mean is a sum, divided by how many numbers it is of."""
    count = math.prod(node.inputs[0].spec.shape) / math.prod(node.spec.shape)
    return _each(lambda total: total / count, totals) if node.op == "reduce_mean" else totals


def _form_of(op):
    """The function of FORMS for an op. Raises NoProgram where there is none."""
    if op in ELEMENTWISE:
        return _elementwise
    if op not in FORMS and not more("form", op):
        raise NoProgram(f"{op} has no form for single numbers")
    return FORMS[op]


FORMS = {  # op -> its values (node, their shape, values of its inputs); "sum" and op -> what a row adds, term by term
    "matmul": _products,
    "sum matmul": lambda node, shape, x, dy: [x.T * dy],
    "sum reduce_sum": lambda node, shape, x: x.reshape(-1, *shape),
    "sum reduce_mean": lambda node, shape, x: x.reshape(-1, *shape),
}

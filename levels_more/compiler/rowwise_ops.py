"""What the program by rows must know of more ops: their values for one row."""

import math

import numpy as np

from levels.hardware import select
from levels.kernels import KERNELS, REDUCTIONS, reduced
from levels.low_level import FORMS, NoProgram
from levels_more.kernels.layout import as_slices


def _cast_values(node, shape, x):
    if node.inputs[0].spec.dtype != bool:
        return x
    return np.asarray(np.frompyfunc(lambda v: select(v, 1.0, 0.0), 1, 1)(x), object)


def _index(node, shape):
    """The slices of a node. In a program by rows, where the shape is that of one row, they have to take all rows."""
    slices = as_slices(node.attrs["slices"])
    if shape != node.spec.shape and slices[0] != slice(None):
        raise NoProgram(f"{node!r} takes other rows than its own")
    return (*slices, ...)  # (with the dots an array, also where there is no axis)


def _slice_grad_values(node, shape, dy):
    out = np.full(shape, 0.0, object)
    out[_index(node, shape)] = dy
    return out


def _reduced_values(node, shape, x):
    """The reduction's function takes in one number after the other, in order. A mean is a sum, divided by how many."""
    op = node.op.replace("mean", "sum")
    before, within, after = reduced(op, x.shape, node.attrs.get("axis"))[1]
    total, x = np.full((before, after), REDUCTIONS[op], object), x.reshape(before, within, after)
    for k in range(within):
        total = np.frompyfunc(KERNELS[op, "cpu"], 2, 1)(total, x[:, k])
    return (total if op == node.op else total / float(within)).reshape(shape)


def _row_kernel_values(node, shape, *inputs):
    """What a kernel of rows gives for the last axis, which has to be another one than that of the batch."""
    if len(shape) < 2 and shape != node.spec.shape:
        raise NoProgram(f"{node!r} needs all rows at a time")
    out = np.empty((math.prod(shape[:-1]), shape[-1]), object)
    KERNELS[node.op, "cpu"](out, *(x.reshape(out.shape) for x in inputs))
    return out.reshape(shape)


FORMS["cast"] = _cast_values
FORMS["concat"] = lambda node, shape, *inputs: np.concatenate(inputs, node.attrs["axis"])
FORMS["slice"] = lambda node, shape, x: x[_index(node, shape)]
FORMS["slice_grad"] = _slice_grad_values
for _op in ("reduce_sum", "reduce_mean", "reduce_max", "reduce_min"):
    FORMS[_op] = _reduced_values
for _op in ("softmax", "softmax_grad", "log_softmax", "log_softmax_grad"):
    FORMS[_op] = _row_kernel_values

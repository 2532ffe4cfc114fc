"""What the program by rows must know of more ops: which keep the rows apart, and their values for one row."""

import math

import numpy as np

from levels.hardware import select
from levels.kernels import KERNELS, as_slices
from levels.low_level import FORMS


def _never(node, by_row):
    """An op of this name never adds rows up."""
    return False


def _all_rows(node, by_row):
    """Whether all inputs have rows."""
    return all(by_row)


def _not_the_first_axis(node, by_row):
    return all(by_row) and node.attrs["axis"] > 0


def _all_of_the_first_axis(node, by_row):
    return node.attrs["slices"][0] == (None, None, None)


def _rows_of_more(node, by_row):
    """A kernel of rows needs an axis besides that of the batch."""
    return all(by_row) and len(node.spec.shape) > 1


def _cast_values(node, inputs, by_row, row, batch):
    if node.inputs[0].spec.dtype != bool:
        return inputs[0]
    return np.asarray(np.frompyfunc(lambda v: select(v, 1.0, 0.0), 1, 1)(inputs[0]), object)


def _concat_values(node, inputs, by_row, row, batch):
    return np.concatenate(inputs, node.attrs["axis"] - row)


def _index(node, row):
    return (*as_slices(node.attrs["slices"])[row:], ...)  # (with the dots an array, also where no axis is left)


def _slice_values(node, inputs, by_row, row, batch):
    return inputs[0][_index(node, row)]


def _slice_grad_values(node, inputs, by_row, row, batch):
    out = np.full(node.spec.shape[row:], 0.0, object)
    out[_index(node, row)] = inputs[0]
    return out


def _row_kernel_values(node, inputs, by_row, row, batch):
    shape = node.spec.shape[row:]
    out = np.empty((math.prod(shape[:-1]), shape[-1]), object)
    KERNELS[node.op, "cpu"](out, *(x.reshape(out.shape) for x in inputs))
    return out.reshape(shape)


FORMS["cast"] = _never, _all_rows, _cast_values
FORMS["concat"] = _never, _not_the_first_axis, _concat_values
FORMS["slice"] = _never, _all_of_the_first_axis, _slice_values
FORMS["slice_grad"] = _never, _all_of_the_first_axis, _slice_grad_values
FORMS["reduce_max"] = FORMS["reduce_min"] = _never, *FORMS["reduce_sum"][1:]
for _op in ("softmax", "softmax_grad", "log_softmax", "log_softmax_grad"):
    FORMS[_op] = _never, _rows_of_more, _row_kernel_values

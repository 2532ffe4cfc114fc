"""PyTorch's functions: those of level 3 and of NumPy, by its names and with its arguments, on tensors that remember."""

import functools
import operator

import numpy as np

from levels_more import low_level as low
from levels_more.low_level import nn
from levels_more.low_level.math import without_gradient
from levels_more.low_level.random import drawn, shuffled
from levels_more.low_level.shape import product
from levels_more.torch import op_arguments, recorded_making
from levels_more.torch.op_arguments import both, floats, of_kinds, shared_at_ties, sizes_of, spelled
from levels_more.torch.recorded import FUNCTIONS, Tensor, cut_out, only_view, recorded
from levels_more.torch.recorded_making import BOOL, FLOAT, KINDS, LONG, like, maker, shaped, to, whole


def _rows(names, row):
    """{name: row(name)} of each name of a text."""
    return {name: row(name) for name in names.split()}


_divide = without_gradient(np.floor_divide)
_maximum, _minimum = both(shared_at_ties(low.maximum)), both(shared_at_ties(low.minimum))
PLAIN = {  # functions of `levels` and of NumPy, before they remember
    **_rows("exp log sqrt sin cos tanh sigmoid", lambda name: lambda x: getattr(low, name)(floats(x))),
    **_rows("relu softmax log_softmax", functools.partial(getattr, nn)),
    **_rows("eq ne lt le gt ge", lambda name: both(getattr(operator, name))),
    **_rows("clamp div where", functools.partial(getattr, op_arguments)),
    **_rows("stack argmax argmin abs square", functools.partial(getattr, low)),
    **_rows("floor ceil round sign isnan isfinite", lambda name: without_gradient(getattr(np, name))),
    **_rows("bitwise_and bitwise_or bitwise_not", lambda name: without_gradient(getattr(np, name))),
    **_rows("float double long int bool", lambda name: lambda x: to(x, KINDS[name])),
    **_rows("any all", lambda name: op_arguments.of_truths(getattr(low, f"reduce_{name}"))),
    "add": of_kinds(operator.add, low.logical_or),
    "sub": both(operator.sub),
    "mul": of_kinds(operator.mul, low.logical_and),
    "neg": operator.neg,
    "pow": op_arguments.power,
    "floor_divide": both(_divide),
    "remainder": both(lambda x, y: x - y * _divide(x, y)),
    "matmul": product,
    "maximum": _maximum,
    "minimum": _minimum,
    "max": op_arguments.extreme(low.reduce_max, low.largest, _maximum),
    "min": op_arguments.extreme(low.reduce_min, low.smallest, _minimum),
    "mean": op_arguments.over(low.reduce_mean),
    "sum": op_arguments.over(lambda x, *how: low.reduce_sum(low.cast(x, LONG) if x.dtype == BOOL else x, *how)),
    "var": op_arguments.spread(low.reduce_variance),
    "std": op_arguments.spread(low.reduce_std),
    "cat": low.concat,
    "index_select": lambda x, axis, index: low.take(x, index, axis),
    "to": to,
    "cpu": lambda x: x,
    "clone": lambda x: low.reshape(x, x.shape),
}
VIEWS = {  # functions whose results look at the memory of their argument
    "reshape": lambda x, *sizes: low.reshape(x, sizes_of(sizes)),
    "transpose": low.swapaxes,
    "t": lambda x: low.transpose(x) if len(x.shape) > 1 else x,
    "permute": lambda x, *axes: low.transpose(x, sizes_of(axes)),
    "expand": op_arguments.expand,
    "unsqueeze": low.expand_dims,
    "squeeze": lambda x, axis=None: x if axis is not None and x.shape[axis] != 1 else low.squeeze(x, axis),
    "flatten": lambda x, start_dim=0, end_dim=-1: low.reshape(x, (*x.shape[:start_dim], -1, *x.shape[end_dim:][1:])),
}
MAKERS = {
    "zeros": shaped(lambda shape, dtype, g: np.zeros(shape, dtype)),
    "ones": shaped(lambda shape, dtype, g: np.ones(shape, dtype)),
    "rand": shaped(lambda shape, dtype, g: drawn("uniform", shape, g, dtype)),
    "randn": shaped(lambda shape, dtype, g: drawn("normal", shape, g, dtype)),
    "full": maker(lambda dtype, g, size, fill_value: np.full(sizes_of((size,)), fill_value)),
    "arange": maker(lambda dtype, g, *bounds, **how: np.arange(*bounds, **how)),
    "linspace": maker(lambda dtype, g, start, end, steps: np.linspace(start, end, steps)),
    "eye": maker(lambda dtype, g, n, m=None: np.eye(n, m)),
    "randint": maker(whole, LONG),
    "randperm": maker(lambda dtype, g, n: shuffled(n, g)),
}
MAKERS |= _rows("zeros_like ones_like rand_like randn_like full_like", lambda name: like(MAKERS[name[:-5]]))
ASKED = {  # methods that are no functions of `levels`
    "zero_": MAKERS["zeros_like"],
    "fill_": MAKERS["full_like"],
    "copy_": lambda x, y: y,
    "uniform_": lambda x, a=0.0, b=1.0: a + (b - a) * MAKERS["rand_like"](x),
    "normal_": lambda x, mean=0.0, std=1.0: mean + std * MAKERS["randn_like"](x),
    "numel": lambda x: x.shape.numel(),
    "dim": lambda x: x.ndim,
    "size": lambda x, dim=None: x.shape if dim is None else x.shape[dim],
    "is_floating_point": lambda x: x.dtype.is_floating_point,
    "is_tensor": lambda x: isinstance(x, Tensor),
    "allclose": lambda x, y, rtol=1e-5, atol=1e-8: np.allclose(x.detach(), y.detach(), rtol, atol),
}

FUNCTIONS.update({name: recorded(name, spelled(f)) for name, f in PLAIN.items()}, **MAKERS, **ASKED)
FUNCTIONS.update({name: recorded(name, spelled(f), lambda *_, **__: True) for name, f in VIEWS.items()})
FUNCTIONS["view"] = only_view(FUNCTIONS["reshape"])
FUNCTIONS["at"] = recorded("at", low.fancy_index, cut_out)
FUNCTIONS["LongTensor"] = recorded_making.of_kind(LONG)
FUNCTIONS["FloatTensor"] = recorded_making.of_kind(FLOAT)

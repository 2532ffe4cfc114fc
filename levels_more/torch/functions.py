"""PyTorch's functions on recorded tensors: those of level 3 and NumPy, with PyTorch's names and arguments.

Also the functions that make tensors: from data, filled with one number, or random.
"""

import functools
import operator

import numpy as np

from levels.support.checks import numeric_array
from levels_more import low_level as low
from levels_more.checks import as_int64, expect
from levels_more.low_level import nn
from levels_more.low_level.math import without_gradient
from levels_more.low_level.shape import product
from levels_more.missing import named_call
from levels_more.torch import ops
from levels_more.torch.dtypes import NUMBERS, ORDER, both, dtype, floats, of_kinds
from levels_more.torch.graph import OperandError
from levels_more.torch.ops import sizes_of, with_torch_arguments
from levels_more.torch.storage import only_view
from levels_more.torch.tensors import FUNCTIONS, Tensor, device, for_tensors

BOOL, LONG, FLOAT, DOUBLE = map(dtype, ORDER)
KINDS = {
    "bool": BOOL,
    "int64": LONG,
    "long": LONG,
    "float": FLOAT,
    "float32": FLOAT,
    "double": DOUBLE,
    "float64": DOUBLE,
}


def tensor(data, dtype=None, requires_grad=False, device=None):
    """Return a new tensor of data: Python floats in the default dtype, integers as int64, arrays in their own dtype."""
    own = max({_kind_of(x) for x in _leaves(data)}, key=ORDER.index, default=NUMBERS[float])
    array = numeric_array(data.held if isinstance(data, Tensor) else _plain(data))
    wanted = np.dtype(dtype or own)
    if wanted.kind == "i" and array.dtype.kind in "uf":
        array = as_int64(array)
    made = low.constant(array.astype(wanted) if array.dtype.kind in "biuf" else array)
    return Tensor(made, requires_grad=requires_grad).to(device)


def _leaves(data):
    """Yield the items of nested lists: numbers, tensors and arrays."""
    if not isinstance(data, list | tuple):
        yield data
        return
    for each in data:
        yield from _leaves(each)


def _kind_of(x):
    """Return the dtype for a number, a tensor or an array; float64 for anything else."""
    kind = getattr(x, "dtype", None) or NUMBERS.get(type(x)) or np.asarray(x).dtype
    if kind.kind in "iu":
        return ORDER[1]
    return ORDER[2] if kind.kind == "f" and kind.itemsize < 8 else np.dtype(kind) if kind in ORDER else ORDER[3]


def _plain(data):
    """Return nested lists with each tensor replaced by its numbers."""
    if isinstance(data, list | tuple):
        return [_plain(each) for each in data]
    return data.tolist() if isinstance(data, Tensor) else data


def long_tensor(data=(), *sizes):
    """Return data as a tensor of int64, or zeros of a shape: LongTensor([1, 2]), LongTensor(2, 3)."""
    return FUNCTIONS["zeros"](data, *sizes, dtype=LONG) if isinstance(data, int) else tensor(data, LONG)


def from_numpy(array):
    """Return a tensor that shares an array's memory. Raises TypeError unless it is bool, int64, float32 or float64."""
    made = Tensor(low.constant(expect(isinstance(array, np.ndarray), "from_numpy", array, "an array; or call tensor")))
    made.memory.array = array
    return made


def maker(make):
    """Return a function with PyTorch's arguments for `make(dtype, …)`. Floats get the default dtype."""

    def run(*args, dtype=None, requires_grad=False, device=None, **how):
        made = make(np.dtype(dtype or NUMBERS[float]), *args, **how)
        return tensor(made, dtype or (NUMBERS[float] if made.dtype.kind == "f" else None), requires_grad, device)

    return run


def shaped(make):
    """Return a maker that takes sizes or a shape, for `make(shape, dtype)`."""
    return maker(lambda dtype, *sizes, size=None: make(sizes_of(sizes if size is None else (size,)), dtype))


def like(make):
    """Return a maker that takes its shape and, unless one is given, its dtype from another tensor."""
    return lambda x, *args, **how: make(x.shape, *args, **{"dtype": x.dtype, **how})


def arange(dtype, start, end=None, step=1):
    """Return start, start + step, … up to below end, or 0, 1, … below `start` if there is no end.

    Raises TypeError unless the step leads from start towards end.
    """
    start, end = (0, start) if end is None else (start, end)
    expect(step and (end - start) * step >= 0, "arange: step", step, f"one that leads from {start!r} to {end!r}")
    return np.arange(start, end, step)


def normal(mean=0.0, std=1.0, size=None):
    """Return normal random numbers. mean and std: numbers, with a `size`, or tensors that broadcast together.

    Raises ValueError if std is negative.
    """
    if np.any(np.asarray(std) < 0):
        raise ValueError(f"normal: std is {std!r:.60}; expected a deviation from 0 on")
    size = np.broadcast_shapes(np.shape(mean), np.shape(std)) if size is None else size
    return FUNCTIONS["randn"](size) * std + mean


def to(x, *how, **options):
    """Return x[…] in a dtype, or in that of a tensor. The only device is the CPU. Raises TypeError for others."""
    for each in (*how, *options.values()):
        kind = getattr(KINDS.get(each) if isinstance(each, str) else each, "dtype", each)
        if isinstance(kind, np.dtype):
            x = x if kind == x.dtype else low.cast(x, kind)
        elif isinstance(each, str):
            device(each)
        elif not isinstance(each, bool | None):
            raise TypeError(f"to: {each!r:.60}; expected a dtype, a device or a tensor")
    return x


def set_default_dtype(kind):
    """Set the dtype that Python floats get: torch.float32 or torch.float64. Raises OperandError unless it is float."""
    if np.dtype(kind).kind != "f":
        raise OperandError(f"set_default_dtype: {kind!r}; expected floats, as torch.float64")
    NUMBERS[float] = np.dtype(kind)


def _rows(names, row):
    """{name: row(name)} for each name in a string."""
    return {name: row(name) for name in names.split()}


def _of_floats(name):
    """Return low_level's function of this name, for floats and for whole numbers, which become floats."""
    return functools.wraps(getattr(low, name))(lambda x: getattr(low, name)(floats(x)))


PLAIN = {  # functions of `levels` and NumPy, not yet recorded
    **_rows("exp log sqrt sin cos tanh sigmoid", _of_floats),
    "relu": nn.relu,
    **_rows("softmax log_softmax", lambda name: ops.along(getattr(nn, name))),
    **_rows("eq ne lt le gt ge", lambda name: both(getattr(operator, name))),
    **_rows("clamp div where", functools.partial(getattr, ops)),
    **_rows("stack argmax abs", functools.partial(getattr, low)),
    **_rows("bitwise_and bitwise_or bitwise_not", lambda name: without_gradient(getattr(np, name))),
    **_rows("float double long", lambda name: lambda x: to(x, KINDS[name])),
    **_rows("any all", lambda name: ops.of_truths(getattr(low, f"reduce_{name}"))),
    "add": of_kinds(operator.add, low.logical_or),
    "sub": both(operator.sub),
    "mul": of_kinds(operator.mul, low.logical_and),
    "neg": operator.neg,
    "pow": ops.power,
    "floor_divide": both(low.floordiv),
    "remainder": both(low.mod),
    "matmul": product,
    "max": ops.extreme(low.reduce_max, low.largest),
    "min": ops.extreme(low.reduce_min, low.smallest),
    "mean": ops.over(low.reduce_mean),
    "sum": ops.over(lambda x, *how: low.reduce_sum(low.cast(x, LONG) if x.dtype == BOOL else x, *how)),
    "cat": low.concat,
    "index_select": lambda x, axis, index: low.take(x, index if index.shape else low.reshape(index, 1), axis),
    "to": to,
    "cpu": lambda x: x,
    "clone": lambda x: low.reshape(x, x.shape),
}
VIEWS = {  # functions whose results share the memory of their argument
    "reshape": lambda x, *sizes: low.reshape(x, sizes_of(sizes)),
    "transpose": low.swapaxes,
    "t": lambda x: low.transpose(x) if len(x.shape) > 1 else x,
    "expand": ops.expand,
    "unsqueeze": low.expand_dims,
    "squeeze": lambda x, axis=None: x if axis is not None and x.shape[axis] != 1 else low.squeeze(x, axis),
    "flatten": ops.flatten,
}
MAKERS = {
    "zeros": shaped(np.zeros),
    "ones": shaped(np.ones),
    "rand": shaped(lambda shape, dtype: low.uniform(shape, dtype=dtype)),
    "randn": shaped(lambda shape, dtype: low.normal(shape, dtype=dtype)),
    "arange": maker(arange),
}
MAKERS |= _rows("zeros_like ones_like rand_like randn_like", lambda name: like(MAKERS[name[:-5]]))
ASKED = {  # methods that are not wrapped in `for_tensors`
    "zero_": MAKERS["zeros_like"],
    "fill_": lambda x, value: value,
    "copy_": lambda x, y: y,
    "uniform_": lambda x, a=0.0, b=1.0: a + (b - a) * MAKERS["rand_like"](x),
    "normal_": lambda x, mean=0.0, std=1.0: mean + std * MAKERS["randn_like"](x),
    "numel": lambda x: x.shape.numel(),
    "size": lambda x, dim=None: x.shape if dim is None else x.shape[dim],
    "allclose": lambda x, y, rtol=1e-5, atol=1e-8, equal_nan=False: np.allclose(
        x.detach(), y.detach(), rtol, atol, equal_nan
    ),
}


def cut_out(x, index):
    """Return whether x[index] shares the memory of x: whether the index has no tensor, list or array in it."""
    parts = index if isinstance(index, tuple) else (index,)
    return not any(isinstance(part, Tensor | list | np.ndarray) for part in parts)


def name_errors(name, function):
    """Return a version of a function that says its name, and not that of a function inside, in a wrong call."""

    @functools.wraps(function)
    def run(*args, **options):
        try:
            return function(*args, **options)
        except TypeError as error:
            raise named_call(error, name, function) or error from None

    return run


FUNCTIONS.update({name: for_tensors(name, with_torch_arguments(f)) for name, f in PLAIN.items()})
FUNCTIONS.update({name: name_errors(name, f) for name, f in (MAKERS | ASKED).items()})
FUNCTIONS.update({name: for_tensors(name, with_torch_arguments(f), lambda *_, **__: True) for name, f in VIEWS.items()})
FUNCTIONS["view"] = only_view(FUNCTIONS["reshape"])
FUNCTIONS["at"] = for_tensors("at", low.fancy_index, cut_out)
FUNCTIONS["LongTensor"] = name_errors("torch.LongTensor", long_tensor)

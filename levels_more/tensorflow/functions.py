"""TensorFlow's functions: those of level 3, by TensorFlow's names and with its arguments."""

import functools
import math

import numpy as np

from levels.low_level import Operators
from levels_more import low_level as low
from levels_more.tensorflow.nested import known_now, known_shape, numbers, whole
from levels_more.tensorflow.op_arguments import RULES

DTYPES = {  # int32 is int64 here: there are no other whole numbers
    "float32": np.dtype("f4"),
    "float64": np.dtype("f8"),
    "double": np.dtype("f8"),
    "int64": np.dtype("i8"),
    "int32": np.dtype("i8"),
    "bool": np.dtype(bool),
}
# TensorFlow's names of arguments that come first, in this order
FIRST = "params", "a", "b", "input_tensor", "input", "tensor", "features", "value", "indices", "dims", "perm"


def dtype_of(dtype):
    """A dtype, or its name, as NumPy's; each dtype of whole numbers is int64."""
    return whole(DTYPES.get(dtype, dtype) if isinstance(dtype, str) else dtype)


def constant(value, dtype=None, shape=None, name=None):
    """A tensor of numbers, lists, arrays or tensors. Python's floats become float32, whole numbers int64."""
    made = numbers(value, dtype_of(dtype))
    if shape is None or math.prod(made.shape) == math.prod(_shape(shape)):
        return made if shape is None else low.reshape(made, _shape(shape))
    return low.broadcast_to(made, _shape(shape))


def _shape(shape):
    """A shape as a tuple; it may be a tensor, or hold some."""
    return tuple(map(int, shape)) if hasattr(shape, "__len__") else (int(shape),)


def _taken(x):
    """An argument as level 3 takes it: arrays as tensors, names of dtypes as dtypes, axes in a tuple."""
    if isinstance(x, np.ndarray):
        return constant(x)
    return dtype_of(x) if isinstance(x, type) or isinstance(x, str) and x in DTYPES else x


def spelled(function):
    """The function with TensorFlow's `name=`, and with its names of the arguments that come first."""

    @functools.wraps(function)
    def call(*args, name=None, **options):
        args = [*args, *(options.pop(key) for key in FIRST if key in options)]
        if isinstance(options.get("axis"), list):
            options["axis"] = tuple(options["axis"])
        return function(*map(_taken, args), **{key: _taken(x) for key, x in options.items()})

    return call


_SAME = (
    "abs concat cos exp expand_dims floor log logical_and logical_not logical_or ones_like reshape sigmoid sign sin "
    "softmax sqrt square squeeze stack stop_gradient tanh transpose zeros_like"
)
FUNCTIONS = {name: getattr(low, name) for name in _SAME.split()}
FUNCTIONS |= RULES
FUNCTIONS |= {
    "argmax": lambda x, axis=0, output_type=None: low.argmax(x, axis or 0),
    "argmin": lambda x, axis=0, output_type=None: low.argmin(x, axis or 0),
    "cast": lambda x, dtype: low.cast(constant(x), dtype),
    "clip_by_value": lambda t, clip_value_min, clip_value_max: low.minimum(
        low.maximum(t, clip_value_min), clip_value_max
    ),
    "divide": low.divide,
    "eye": low.eye,
    "fill": lambda shape, value: low.fill(_shape(shape), value),
    "gather": low.take,
    "identity": low.as_tensor,
    "negative": lambda x: -low.as_tensor(x),
    "ones": lambda shape, dtype="float32": low.ones(_shape(shape), dtype),
    "round": low.rounded,
    "shape": lambda x, out_type=None: known_shape(x),
    "zeros": lambda shape, dtype="float32": low.zeros(_shape(shape), dtype),
}
FUNCTIONS = {name: spelled(function) for name, function in FUNCTIONS.items()}
_BENDS = "log_softmax relu sigmoid softmax tanh"
NN = {name: spelled(getattr(low.nn, name)) for name in _BENDS.split()}


def shown(x):
    """As TensorFlow prints it: a tensor's numbers alone. Raises TypeError while a function is traced."""
    known_now("text of tensors")
    return x.numpy() if isinstance(x, Operators) else x

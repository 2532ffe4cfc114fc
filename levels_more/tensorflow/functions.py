"""TensorFlow's functions: those of level 3, by TensorFlow's names and with its arguments."""

import functools
import math
import operator

import numpy as np

from levels import low_level as low
from levels.low_level import Operators
from levels.mid_level import BinaryCrossentropy
from levels_more.mid_level.losses import CategoricalCrossentropy, SparseCategoricalCrossentropy
from levels_more.tensorflow.array_ops import PLACES
from levels_more.tensorflow.math_ops import CURVES
from levels_more.tensorflow.nested import known_now, known_shape, numbers, whole
from levels_more.tensorflow.op_arguments import RULES, moments

DTYPES = {"float32": np.dtype("f4"), "float64": np.dtype("f8"), "double": np.dtype("f8"), "int64": np.dtype("i8"),
          "int32": np.dtype("i8"), "bool": np.dtype(bool)}  # int32 is int64 here: there are no other whole numbers  # fmt: skip
FIRST = ("params", "a", "b", "input_tensor", "input", "tensor", "features", "value", "indices", "dims", "num_rows",
         "num_columns", "num_or_size_splits", "perm")  # TensorFlow's names of arguments that come first, in this order  # fmt: skip


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


def _of_logits(kind):
    return lambda labels, logits, name=None: kind(from_logits=True).call(constant(labels), constant(logits))


_SAME = (
    "abs broadcast_to ceil clip_by_global_norm clip_by_norm concat confusion_matrix cos diag divide erf exp expand_dims floor gather_nd global_norm "
    "is_nan log log_softmax logical_and logical_not logical_or norm ones_like "
    "repeat reshape sigmoid sign "
    "sin softmax split sqrt square squeeze stack stop_gradient tanh tile transpose unstack zeros_like"
)
FUNCTIONS = {name: getattr(low, name) for name in _SAME.split()}
FUNCTIONS |= RULES | PLACES | CURVES
FUNCTIONS |= {
    "add_n": lambda inputs: functools.reduce(operator.add, inputs),
    "argmax": lambda x, axis=0, output_type=None: low.argmax(x, axis or 0),
    "argmin": lambda x, axis=0, output_type=None: low.argmin(x, axis or 0),
    "cast": lambda x, dtype: low.cast(constant(x), dtype),
    "clip_by_value": lambda t, clip_value_min, clip_value_max: low.minimum(
        low.maximum(t, clip_value_min), clip_value_max
    ),
    "count_nonzero": lambda x: low.reduce_sum(low.cast(low.cast(constant(x), "bool"), "int64")),
    "diag_part": low.diag,
    "eye": low.eye,
    "fill": lambda shape, value: low.fill(_shape(shape), value),
    "gather": low.take,
    "identity": low.as_tensor,
    "negative": lambda x: -low.as_tensor(x),
    "ones": lambda shape, dtype="float32": low.ones(_shape(shape), dtype),
    "rank": lambda x: constant(len(low.as_tensor(x).shape)),
    "reciprocal": lambda x: 1.0 / low.as_tensor(x),
    "round": low.rounded,
    "rsqrt": lambda x: 1.0 / low.sqrt(x),
    "shape": lambda x, out_type=None: known_shape(x),
    "size": lambda x, out_type=None: constant(math.prod(low.as_tensor(x).shape)),
    "squared_difference": lambda x, y: low.square(x - y),
    "top_k": lambda x, k=1, sorted=True: low.top_k(x, k),
    "trace": lambda x: low.reduce_sum(low.diag(x)),
    "truediv": low.divide,
    "zeros": lambda shape, dtype="float32": low.zeros(_shape(shape), dtype),
}
FUNCTIONS = {name: spelled(function) for name, function in FUNCTIONS.items()}
_BENDS = "elu gelu hard_sigmoid leaky_relu log_sigmoid log_softmax mish relu relu6 selu sigmoid silu softmax softplus softsign swish tanh"
NN = {name: spelled(getattr(low.nn, name)) for name in _BENDS.split()} | {
    "bias_add": lambda value, bias: value + bias,
    "l2_loss": lambda t: low.reduce_sum(t * t) / 2.0,
    "l2_normalize": spelled(low.l2_normalize),
    "moments": moments,
    "sigmoid_cross_entropy_with_logits": _of_logits(BinaryCrossentropy),
    "softmax_cross_entropy_with_logits": _of_logits(CategoricalCrossentropy),
    "sparse_softmax_cross_entropy_with_logits": _of_logits(SparseCategoricalCrossentropy),
}


def shown(x):
    """As TensorFlow prints it: a tensor's numbers alone. Raises TypeError while a function is traced."""
    known_now("text of tensors")
    return x.numpy() if isinstance(x, Operators) else x

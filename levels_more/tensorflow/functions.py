"""TensorFlow's functions: those of level 3, by TensorFlow's names and with its arguments."""

import functools
import math
import operator
import time

import numpy as np

from levels import low_level as low
from levels.low_level import Operators
from levels.mid_level import BinaryCrossentropy, CategoricalCrossentropy, SparseCategoricalCrossentropy
from levels_more.nested import known_now, known_shape, numbers, whole

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
    return made if shape is None else low.reshape(low.broadcast_to(made, _shape(shape)), _shape(shape))


def _shape(shape):
    """A shape as a tuple; it may be a tensor, or hold some."""
    return tuple(map(int, shape)) if hasattr(shape, "__len__") else (int(shape),)


def _taken(x):
    """An argument as level 3 takes it: arrays as tensors, names of dtypes as dtypes, axes in a tuple."""
    if isinstance(x, np.ndarray):
        return constant(x)
    return dtype_of(x) if isinstance(x, (str, type)) and x != "euclidean" else x


def spelled(function):
    """The function with TensorFlow's `name=`, and with its names of the arguments that come first."""

    @functools.wraps(function)
    def call(*args, name=None, **options):
        args = [*args, *(options.pop(key) for key in FIRST if key in options)]
        if isinstance(options.get("axis"), list):
            options["axis"] = tuple(options["axis"])
        return function(*map(_taken, args), **{key: _taken(x) for key, x in options.items()})

    return call


def _binary(act):
    return lambda x, y: act(x if isinstance(x, Operators) else low.as_tensor(x, y), y)


def _mask(x, mask, axis=None):
    mask = constant(mask)
    return low.take(x, np.flatnonzero(mask.numpy()), axis) if axis else low.boolean_mask(x, mask)


def _matmul(x, b, transpose_a=False, transpose_b=False):
    x, b = constant(x), constant(b)
    if x.dtype.kind == "i":  # exact below 2⁵³
        return low.cast(_matmul(low.cast(x, "float64"), low.cast(b, "float64"), transpose_a, transpose_b), "int64")
    return low.apply("matmul", x, b, transpose_x=transpose_a, transpose_w=transpose_b)


def _mean(x, axis=None, keepdims=False):
    x = constant(x)
    if x.dtype.kind != "i":
        return low.reduce_mean(x, axis, keepdims)
    total = low.reduce_sum(x, axis, keepdims)  # of whole numbers the mean is one, cut off behind the point
    return constant(np.trunc(total.numpy() * math.prod(total.shape) / math.prod(x.shape)).astype(np.int64))


def _of_logits(kind):
    return lambda labels, logits, name=None: kind(from_logits=True).call(constant(labels), constant(logits))


def _moments(x, axes, keepdims=False):
    axes = tuple(axes) if len(axes) > 1 else axes[0]
    return low.reduce_mean(x, axes, keepdims), low.reduce_variance(x, axes, keepdims)


def _one_way(condition, true_fn, false_fn):
    known_now("tf.cond")
    return true_fn() if condition else false_fn()


def _range(start, limit=None, delta=1, dtype=None):
    bounds = [x.item() if isinstance(x, Operators) else x for x in (start, limit, delta)]
    return low.range(*bounds, dtype)


def _timestamp():
    known_now("tf.timestamp")
    return constant(np.float64(time.time()))


def _where(condition, x=None, y=None):
    return constant(np.argwhere(condition.numpy())) if x is None else low.where(condition, x, y)


_SAME = (
    "abs argsort broadcast_to ceil clip_by_global_norm clip_by_norm concat confusion_matrix cos cumsum diag divide equal erf exp expand_dims floor gather_nd global_norm "
    "is_nan linspace log log_softmax logical_and logical_not logical_or maximum minimum norm ones_like reduce_all reduce_any "
    "reduce_logsumexp reduce_max reduce_min reduce_prod reduce_std reduce_sum reduce_variance repeat reshape sigmoid sign "
    "sin softmax sort split sqrt square squeeze stack stop_gradient tanh tile transpose unstack zeros_like"
)
_OPERATORS = {"add": "add", "subtract": "sub", "multiply": "mul", "pow": "pow",
              "floordiv": "floordiv", "mod": "mod", "floormod": "mod", "less": "lt", "less_equal": "le", "greater": "gt",
              "greater_equal": "ge", "not_equal": "ne"}  # fmt: skip
FUNCTIONS = {name: getattr(low, name) for name in _SAME.split()}
FUNCTIONS |= {name: _binary(getattr(operator, act)) for name, act in _OPERATORS.items()}
FUNCTIONS |= {
    "add_n": lambda inputs: functools.reduce(operator.add, inputs),
    "argmax": lambda x, axis=0, output_type=None: low.argmax(x, axis or 0),
    "argmin": lambda x, axis=0, output_type=None: low.argmin(x, axis or 0),
    "boolean_mask": _mask,
    "cast": lambda x, dtype: low.cast(constant(x), dtype),
    "clip_by_value": lambda t, clip_value_min, clip_value_max: low.minimum(
        low.maximum(t, clip_value_min), clip_value_max
    ),
    "cond": _one_way,
    "count_nonzero": lambda x: low.reduce_sum(low.cast(low.cast(constant(x), "bool"), "int64")),
    "diag_part": low.diag,
    "eye": low.eye,
    "fill": lambda shape, value: low.fill(_shape(shape), value),
    "gather": low.take,
    "identity": low.as_tensor,
    "matmul": _matmul,
    "negative": lambda x: -low.as_tensor(x),
    "one_hot": low.one_hot,
    "ones": lambda shape, dtype="float32": low.ones(_shape(shape), dtype),
    "range": _range,
    "rank": lambda x: constant(len(low.as_tensor(x).shape)),
    "reciprocal": lambda x: 1.0 / low.as_tensor(x),
    "reduce_mean": _mean,
    "round": low.rounded,
    "rsqrt": lambda x: 1.0 / low.sqrt(x),
    "shape": lambda x, out_type=None: known_shape(x),
    "size": lambda x, out_type=None: constant(math.prod(low.as_tensor(x).shape)),
    "squared_difference": lambda x, y: low.square(x - y),
    "timestamp": _timestamp,
    "top_k": lambda x, k=1, sorted=True: low.top_k(x, k),
    "where": _where,
    "trace": lambda x: low.reduce_sum(low.diag(x)),
    "truediv": low.divide,
    "zeros": lambda shape, dtype="float32": low.zeros(_shape(shape), dtype),
}
FUNCTIONS = {name: spelled(function) for name, function in FUNCTIONS.items()}
_BENDS = "elu gelu hard_sigmoid leaky_relu log_softmax mish relu relu6 selu sigmoid silu softmax softplus softsign swish tanh"
NN = {name: spelled(getattr(low.nn, name)) for name in _BENDS.split()} | {
    "bias_add": lambda value, bias: value + bias,
    "l2_loss": lambda t: low.reduce_sum(t * t) / 2.0,
    "l2_normalize": spelled(low.l2_normalize),
    "moments": _moments,
    "sigmoid_cross_entropy_with_logits": _of_logits(BinaryCrossentropy),
    "softmax_cross_entropy_with_logits": _of_logits(CategoricalCrossentropy),
    "sparse_softmax_cross_entropy_with_logits": _of_logits(SparseCategoricalCrossentropy),
}


def shown(x):
    """As TensorFlow prints it: a tensor's numbers alone. Raises TypeError while a function is traced."""
    known_now("text of tensors")
    return x.numpy() if isinstance(x, Operators) else x

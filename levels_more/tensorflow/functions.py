"""TensorFlow's functions: those of level 3, by TensorFlow's names and with its arguments."""

import functools
import math
import operator
import time

import numpy as np

from levels import low_level as low
from levels.low_level import Operators
from levels.mid_level import BinaryCrossentropy, CategoricalCrossentropy, SparseCategoricalCrossentropy, shortened
from levels_more.nested import known_now, numbers

DTYPES = {"float32": np.dtype("f4"), "float64": np.dtype("f8"), "double": np.dtype("f8"), "int64": np.dtype("i8"),
          "int32": np.dtype("i8"), "bool": np.dtype(bool)}  # int32 is int64 here: there are no other whole numbers  # fmt: skip
RENAMED = {"a": "x", "dims": "shape", "features": "x", "indices": "x", "input": "x", "input_tensor": "x", "perm": "axes",
           "tensor": "x"}  # TensorFlow's name of an argument -> ours  # fmt: skip


def dtype_of(dtype):
    """A dtype, or its name, as NumPy's; each dtype of whole numbers is int64."""
    found = None if dtype is None else DTYPES.get(dtype, dtype) if isinstance(dtype, str) else np.dtype(dtype)
    return DTYPES["int64"] if str(found) in ("int8", "int16", "int32", "uint8", "uint16", "uint32") else found


def constant(value, dtype=None, shape=None, name=None):
    """A tensor of numbers, lists, arrays or tensors; Python's floats become float32, all whole numbers int64.

    Raises TypeError for text, and for a dtype that would lose digits.
    """
    if isinstance(value, (list, tuple)) and any(isinstance(x, Operators) for x in value):
        value = low.stack([*value])
    if isinstance(value, str):
        raise TypeError(f"{value!r:.60} is text; tensors hold numbers, tf.print and tf.strings take Python's text")
    value = value if isinstance(value, (list, tuple, int, float)) else numbers(value)
    made = low.constant(value, dtype_of(dtype))
    return made if shape is None else low.reshape(low.broadcast_to(made, _shape(shape)), _shape(shape))


def _shape(shape):
    """A shape as a tuple; it may be a tensor, or hold some."""
    return tuple(map(int, shape)) if hasattr(shape, "__len__") else (int(shape),)


def _taken(x):
    return constant(x) if isinstance(x, np.ndarray) else x


def spelled(function):
    """The function with TensorFlow's `name=` and its names of arguments, with axes in a list, too."""

    @functools.wraps(function)
    def call(*args, name=None, **options):
        options = {RENAMED.get(key, key): value for key, value in options.items()}
        if isinstance(options.get("axis"), list):
            options["axis"] = tuple(options["axis"])
        if "dtype" in options:
            options["dtype"] = dtype_of(options["dtype"]) or "float32"
        return function(*map(_taken, args), **options)

    return call


def _binary(act):
    return lambda x, y: act(x if isinstance(x, Operators) else low.as_tensor(x, y), y)


def _argmax(kind):
    return lambda x, axis=0, output_type=None: kind(x, 0 if axis is None else axis)


def _matmul(a, b, transpose_a=False, transpose_b=False):
    return low.apply("matmul", a, b, transpose_x=transpose_a, transpose_w=transpose_b)


def _moments(x, axes, keepdims=False):
    axes = tuple(axes) if len(axes) > 1 else axes[0]
    return low.reduce_mean(x, axes, keepdims), low.reduce_variance(x, axes, keepdims)


def _one_way(condition, true_fn, false_fn):
    known_now("tf.cond")
    return true_fn() if condition else false_fn()


def _range(start, limit=None, delta=1, dtype=None):
    start, limit, delta = (x.item() if isinstance(x, Operators) else x for x in (start, limit, delta))
    return low.range(start, limit, delta, dtype)


def _timestamp():
    known_now("tf.timestamp")
    return low.constant(np.float64(time.time()))


def _where(condition, x=None, y=None):
    return low.constant(np.argwhere(condition.numpy())) if x is None else low.where(condition, x, y)


FUNCTIONS = {
    **{name: getattr(low, name) for name in ["abs", "argsort", "boolean_mask", "broadcast_to", "clip_by_norm", "concat", "cos", "cumsum", "equal", "erf", "exp", "expand_dims", "floor", "is_nan", "linspace", "log", "log_softmax", "logical_and", "logical_not", "logical_or", "maximum", "minimum", "norm", "ones_like", "reduce_all", "reduce_any", "reduce_logsumexp", "reduce_max", "reduce_mean", "reduce_min", "reduce_prod", "reduce_std", "reduce_sum", "reduce_variance", "repeat", "reshape", "sigmoid", "sign", "sin", "softmax", "sort", "split", "sqrt", "square", "squeeze", "stack", "stop_gradient", "tanh", "tile", "transpose", "unstack", "zeros_like"]},
    **{name: _binary(getattr(operator, act)) for name, act in dict(
        add="add", subtract="sub", multiply="mul", divide="truediv", truediv="truediv", pow="pow", floordiv="floordiv",
        mod="mod", floormod="mod", less="lt", less_equal="le", greater="gt", greater_equal="ge", not_equal="ne"
    ).items()},
    "add_n": lambda inputs: functools.reduce(operator.add, inputs), "argmax": _argmax(low.argmax),
    "argmin": _argmax(low.argmin), "cast": lambda x, dtype: low.cast(constant(x), dtype_of(dtype)),
    "clip_by_global_norm": lambda t_list, clip_norm: (shortened(t_list, clip_norm), low.global_norm(t_list)), "clip_by_value": lambda t, clip_value_min, clip_value_max: low.minimum(
        low.maximum(t, clip_value_min), clip_value_max), "cond": _one_way, "eye": lambda num_rows, num_columns=None,
    dtype="float32": low.eye(num_rows, num_columns, dtype), "fill": lambda shape, value: low.fill(_shape(shape), value),
    "gather": lambda params, x, axis=0: low.take(params, x, axis), "global_norm": low.global_norm,
    "identity": low.as_tensor, "matmul": _matmul, "negative": lambda x: -low.as_tensor(x),
    "one_hot": lambda x, depth, dtype="float32": low.one_hot(x, depth, dtype),
    "ones": lambda shape, dtype="float32": low.ones(_shape(shape), dtype_of(dtype)), "range": _range,
    "rank": lambda x: constant(len(low.as_tensor(x).shape)), "reciprocal": lambda x: 1.0 / low.as_tensor(x),
    "round": low.rounded, "rsqrt": lambda x: 1.0 / low.sqrt(x),
    "shape": lambda x, out_type=None: constant(np.array(low.as_tensor(x).shape, np.int64)),
    "size": lambda x, out_type=None: constant(math.prod(low.as_tensor(x).shape)),
    "squared_difference": lambda x, y: low.square(x - y), "timestamp": _timestamp, "where": _where,
    "zeros": lambda shape, dtype="float32": low.zeros(_shape(shape), dtype_of(dtype)),
}  # fmt: skip
FUNCTIONS = {name: spelled(function) for name, function in FUNCTIONS.items()}
NN = {name: spelled(getattr(low.nn, name)) for name in ["elu", "gelu", "leaky_relu", "log_softmax", "relu", "sigmoid", "silu", "softmax", "softplus", "swish", "tanh"]} | {
    "bias_add": lambda value, bias: value + bias, "l2_loss": lambda t: low.reduce_sum(t * t) / 2.0, "moments": _moments,
    "sigmoid_cross_entropy_with_logits": BinaryCrossentropy(from_logits=True).call,
    "softmax_cross_entropy_with_logits": CategoricalCrossentropy(from_logits=True).call,
    "sparse_softmax_cross_entropy_with_logits": SparseCategoricalCrossentropy(from_logits=True).call,
    "l2_normalize": lambda x, axis=None, epsilon=1e-12: x / low.sqrt(
        low.maximum(low.reduce_sum(x * x, axis, True), epsilon)),
}  # fmt: skip


def shown(x):
    """As TensorFlow prints it: a tensor's numbers alone. Raises TypeError while a function is traced."""
    known_now("text of tensors")
    return x.numpy() if isinstance(x, Operators) else x

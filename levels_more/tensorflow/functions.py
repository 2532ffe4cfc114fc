"""TensorFlow's functions: those of level 3, with TensorFlow's names and arguments, and its rules if they differ."""

import functools
import math
import time

import numpy as np

from levels.low_level import Operators
from levels_more import low_level as low
from levels_more.checks import as_tuple, sizes
from levels_more.low_level.math import numpy_op
from levels_more.low_level.shape import product
from levels_more.missing import named_call
from levels_more.tensorflow.nested import known_shape, numbers, require_numbers, whole

DTYPES = {  # int32 is int64 here: there are no other whole numbers
    "float32": np.dtype("f4"),
    "float64": np.dtype("f8"),
    "double": np.dtype("f8"),
    "int64": np.dtype("i8"),
    "int32": np.dtype("i8"),
    "bool": np.dtype(bool),
}
# TensorFlow's keywords for leading arguments, in the order in which they become positional
FIRST = "params", "a", "b", "input_tensor", "input", "tensor", "features", "value", "indices", "dims", "perm"


def constant(value, dtype=None, shape=None, name=None):
    """A tensor of numbers, lists, arrays or tensors, in that shape. Python's floats become float32, integers int64."""
    made = numbers(value, dtype)
    if shape is None or math.prod(made.shape) == math.prod(_shape(shape)):
        return made if shape is None else low.reshape(made, _shape(shape))
    return low.broadcast_to(made, _shape(shape))


def _shape(shape):
    """A shape as a tuple. It may be given as a tensor, or hold tensors."""
    return sizes("shape", shape)


def _taken(x):
    """An argument as level 3 takes it: arrays become tensors, types and names of dtypes become dtypes."""
    if isinstance(x, np.ndarray):
        return constant(x)
    return whole(x) if isinstance(x, type) or isinstance(x, str) and x in DTYPES else x


def with_tf_arguments(function, its_name, place="levels_more.tensorflow"):
    """The function, which also takes TensorFlow's `name=`, its keywords for leading arguments, and a list as axis."""

    @functools.wraps(function)
    def call(*args, name=None, **options):
        args = [*args, *(options.pop(key) for key in FIRST if key in options)]
        if isinstance(options.get("axis"), list):
            options["axis"] = tuple(options["axis"])
        try:
            return function(*map(_taken, args), **{key: _taken(x) for key, x in options.items()})
        except TypeError as error:
            if told := named_call(error, f"tf.{its_name}", function):
                raise told from None
            raise

    # where a pickle looks for it
    call.__module__ = place
    call.__qualname__ = its_name
    return call


def alike(x, y):
    """Two operands [any shapes] as tensors. Python's numbers, and lists beside floats, take the dtype of the other."""
    like = next((numbers(z) for z in (x, y) if hasattr(z, "dtype")), None)
    if like is None:
        like = x = numbers(x)
    return [_listed(z, like) for z in (x, y)]


def _listed(z, like):
    if isinstance(z, (list, tuple)) and not any(hasattr(each, "dtype") for each in z):
        return numbers(z, like.dtype if like.dtype.kind == "f" else None)
    return numbers(z) if hasattr(z, "dtype") or isinstance(z, (list, tuple)) else low.as_tensor(z, like)


def binary(act):
    """The function `act` of two tensors, as one whose operands may also be lists or Python's numbers."""
    return lambda x, y: act(*alike(x, y))


def reducing(function):
    """The function of a tensor x [any shape] and an axis, as one whose axis may also be a list of axes."""

    def run(x, axis=None, keepdims=False):
        axis = as_tuple(axis)
        axis = axis[0] if isinstance(axis, tuple) and len(axis) == 1 else axis
        return function(numbers(x), axis, keepdims)

    return functools.wraps(function)(run)


def mean(x, axis=None, keepdims=False):
    """The mean of a tensor x along axes. For whole numbers it is truncated to int64, and 0 if there are none."""
    x = numbers(x)
    if x.dtype.kind != "i":
        return low.reduce_mean(x, axis, keepdims)
    total = low.reduce_sum(x, axis, keepdims).numpy()
    count = max(1, math.prod(x.shape) // max(1, total.size))
    return numbers(np.asarray(total // count + ((total < 0) & (total % count != 0))))  # rounded towards zero


def argmax(x, axis=0, output_type=None):
    """The index, int64, of the first largest number of a tensor x along an axis. NaN counts as -inf."""
    x = numbers(x)
    return low.argmax(low.where(x == x, x, -math.inf) if x.dtype.kind == "f" else x, axis or 0)


def mask(x, mask, axis=None):
    """The parts of a tensor x along an axis where the mask [rows] is true, or its numbers if the mask has x's shape."""
    x = numbers(x)
    mask = numbers(mask)
    return low.take(x, np.flatnonzero(mask.numpy()), axis) if axis else low.boolean_mask(x, mask)


def matmul(x, b, transpose_a=False, transpose_b=False):
    """x[…, m, k] @ b[k, n], or matrix by matrix with b[…, k, n]. Whole numbers keep all their digits."""
    x, b = alike(x, b)
    if len(x.shape) == len(b.shape) == 2:
        return low.apply("matmul", x, b, transpose_x=transpose_a, transpose_w=transpose_b)
    x, b = (low.swapaxes(z, -1, -2) if turned else z for z, turned in ((x, transpose_a), (b, transpose_b)))
    return product(x, b)


def counted(start, limit=None, delta=1, dtype=None):
    """A tensor [count] of numbers from start up to, but without, limit, delta apart; range(n) is 0, 1, … n - 1."""
    bounds = [x.item() if isinstance(x, Operators) else x for x in (start, limit, delta)]
    return low.range(*bounds, dtype)


def timestamp():
    """The seconds since 1970, a float64. Raises TypeError in a traced function."""
    require_numbers("tf.timestamp")
    return numbers(np.float64(time.time()))


def where(condition, x=None, y=None):
    """x where the condition is true, else y. Without x and y, the indices [count, axes] of the true elements."""
    if x is None:
        return numbers(np.argwhere(numbers(condition).numpy()))
    return low.where(numbers(condition), *alike(x, y))


def normal(shape, mean=0.0, stddev=1.0, dtype="float32", seed=None):
    """Normal random numbers of that shape, float32 or float64, with that mean and standard deviation."""
    return low.normal(tuple(shape), mean, stddev, whole(dtype))


def uniform(shape, minval=0, maxval=1, dtype="float32", seed=None):
    """Uniform random numbers of that shape from minval to below maxval, float32 or float64."""
    return low.uniform(tuple(shape), minval, maxval, whole(dtype))


_REDUCED = "max min sum"
RULES = {f"reduce_{name}": reducing(getattr(low, f"reduce_{name}")) for name in _REDUCED.split()}
RULES |= {name: binary(getattr(low, name)) for name in ("maximum", "minimum")}
RULES |= {
    "boolean_mask": mask,
    "matmul": matmul,
    "range": counted,
    "reduce_mean": reducing(mean),
    "timestamp": timestamp,
    "where": where,
}


_SAME = (
    "abs concat cos exp expand_dims log ones_like reshape sigmoid sin softmax sqrt square squeeze stack stop_gradient "
    "tanh transpose zeros_like"
)
FUNCTIONS = {name: getattr(low, name) for name in _SAME.split()}
FUNCTIONS |= RULES | {
    "argmax": argmax,
    "cast": lambda x, dtype: low.cast(constant(x), dtype),
    "clip_by_value": lambda t, clip_value_min, clip_value_max: low.maximum(
        low.minimum(t, clip_value_max), clip_value_min
    ),
    "floor": lambda x: numpy_op(np.floor, low.as_tensor(x)),  # without a gradient
    "gather": low.take,
    "ones": lambda shape, dtype="float32": low.ones(_shape(shape), dtype),
    "shape": lambda x, out_type=None: known_shape(x),
    "zeros": lambda shape, dtype="float32": low.zeros(_shape(shape), dtype),
}
FUNCTIONS = {name: with_tf_arguments(function, name) for name, function in FUNCTIONS.items()}
_BENDS = "log_softmax relu sigmoid softmax tanh"
NN = {name: with_tf_arguments(getattr(low.nn, name), name, "levels_more.tensorflow.nn") for name in _BENDS.split()}


def shown(x):
    """What TensorFlow prints for x: only the numbers of a tensor. Raises TypeError while a function is traced."""
    require_numbers("text of tensors")
    return x.numpy() if isinstance(x, Operators) else x

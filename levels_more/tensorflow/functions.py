"""TensorFlow's functions: those of level 3, by TensorFlow's names and with its arguments."""

import functools
from types import SimpleNamespace

import numpy as np

from levels import low_level as low

DTYPES = {"float32": np.dtype("f4"), "float64": np.dtype("f8"), "double": np.dtype("f8"), "int32": np.dtype("i8"),
          "int64": np.dtype("i8"), "bool": np.dtype(bool), "string": np.dtype(str)}  # fmt: skip


def _matmul(a, b, transpose_a=False, transpose_b=False):
    return low.apply("matmul", a, b, transpose_x=transpose_a, transpose_w=transpose_b)


def _where(condition, x=None, y=None):
    return low.constant(np.argwhere(condition.numpy())) if x is None else low.where(condition, x, y)


def _clip(t, clip_value_min, clip_value_max):
    return low.minimum(low.maximum(t, clip_value_min), clip_value_max)


def _split(value, num_or_size_splits, axis=0):
    return low.split(value, num_or_size_splits, axis)


def _mean(x, axis=None, keepdims=False):
    x = low.as_tensor(x)
    return low.reduce_mean(x if x.dtype.kind == "f" else low.cast(x, "float32"), axis, keepdims)


def _std(x, axis=None, keepdims=False):
    apart = x - low.reduce_mean(x, axis, True)
    return low.sqrt(low.reduce_mean(apart * apart, axis, keepdims))


def _cast(x, dtype, name=None):
    return low.cast(x, DTYPES.get(dtype, dtype) if isinstance(dtype, str) else dtype)


def _operator(name):
    return lambda x, y, name_=None: getattr(low.as_tensor(x, y if isinstance(y, low.Operators) else None), name)(y)


def _sigmoid_cross_entropy(labels, logits):
    return low.maximum(logits, 0.0) - logits * labels + low.log(1.0 + low.exp(-low.abs(logits)))


def _softmax_cross_entropy(labels, logits, axis=-1):
    return -low.reduce_sum(labels * low.nn.log_softmax(logits), -1)


def _sparse_softmax_cross_entropy(labels, logits):
    return _softmax_cross_entropy(low.one_hot(labels, logits.shape[-1], logits.dtype), logits)


FUNCTIONS = {
    **{name: getattr(low, name) for name in (
        "abs argmax argmin boolean_mask concat cos equal exp expand_dims log maximum minimum one_hot ones ones_like "
        "range reduce_all reduce_any reduce_max reduce_min reduce_sum reshape sigmoid sin sqrt square squeeze stack "
        "stop_gradient tanh transpose zeros zeros_like"
    ).split()},
    "add": _operator("__add__"), "subtract": _operator("__sub__"), "multiply": _operator("__mul__"),
    "divide": _operator("__truediv__"), "pow": _operator("__pow__"), "greater": _operator("__gt__"),
    "greater_equal": _operator("__ge__"), "less": _operator("__lt__"), "less_equal": _operator("__le__"),
    "not_equal": _operator("__ne__"), "negative": lambda x: -x, "identity": low.as_tensor, "matmul": _matmul,
    "gather": lambda params, indices, axis=0: low.take(params, indices, axis), "where": _where, "cast": _cast,
    "clip_by_value": _clip, "split": _split, "reduce_mean": _mean, "reduce_std": _std, "add_n": lambda xs: sum(xs[1:], xs[0]),
    "fill": lambda dims, value: low.constant(np.full(tuple(dims), value, np.float32 if isinstance(value, float) else None)),
    "linspace": lambda start, stop, num: low.constant(np.linspace(start, stop, num).tolist()),
    "eye": lambda n, m=None, dtype="float32": low.constant(np.eye(n, m), dtype), "rank": lambda x: len(x.shape),
    "size": lambda x: int(np.prod(x.shape)), "shape": lambda x: low.constant(np.array(low.as_tensor(x).shape)),
    "norm": lambda x, axis=None: low.sqrt(low.reduce_sum(x * x, axis)), "ensure_shape": lambda x, shape: x,
}  # fmt: skip
nn = SimpleNamespace(
    **{name: getattr(low.nn, name) for name in ("relu", "sigmoid", "tanh", "softmax", "log_softmax", "elu", "gelu", "silu")},
    leaky_relu=lambda x, alpha=0.2: low.where(x > 0.0, x, alpha * x), softplus=lambda x: low.maximum(x, 0.0)
    + low.log(1.0 + low.exp(-low.abs(x))), bias_add=lambda value, bias: value + bias,
    sigmoid_cross_entropy_with_logits=_sigmoid_cross_entropy, softmax_cross_entropy_with_logits=_softmax_cross_entropy,
    sparse_softmax_cross_entropy_with_logits=_sparse_softmax_cross_entropy,
    l2_loss=lambda t: low.reduce_sum(t * t) / 2.0,
)  # fmt: skip
swish = functools.partial(low.nn.silu)

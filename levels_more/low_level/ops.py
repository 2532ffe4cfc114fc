"""More functions of tensors: other shapes, other dtypes, choices, trigonometry, activations, and what is largest."""

import math

import numpy as np

from levels.low_level import OPERATORS, Operators, apply, as_tensor, reduce_sum, sides
from levels.support.checks import flag
from levels_more.checks import as_tuple, axis_of, dtype_of, expect, index_of, number, several, sizes


def _normalize_axis(axis):
    """An axis, or a tuple of them, as Python's integers; None stays. Raises TypeError for anything else."""
    if isinstance(axis, tuple):
        return tuple(map(_normalize_axis, axis))
    return None if axis is None else index_of("axis", axis)


def _alike(values):
    """All of these as tensors; Python numbers take the dtype of the first tensor or variable among them."""
    like = next((x for x in values if isinstance(x, Operators)), None)
    return [as_tensor(x, like) for x in values]


def matmul(x, w):
    """x[m, k] @ w[k, n] -> [m, n]"""
    return apply("matmul", x, w)


def transpose(x, axes=None):
    """The axes in another order, all in reverse where `axes` is None: [a, b, …] -> [a', b', …]."""
    axes = None if axes is None else _normalize_axis(several("transpose: axes", as_tuple(axes)))
    return apply("transpose", x, axes=axes)


def reshape(x, shape):
    """The same numbers in the same order, in another shape; one size may be -1, which is what is left."""
    x, shape = as_tensor(x), as_tuple(shape)
    shape = [index_of("reshape: a size", size) for size in (shape if isinstance(shape, tuple) else (shape,))]
    known = math.prod(size for size in shape if size != -1)
    left = math.prod(x.shape) // known if known and shape.count(-1) == 1 else -1
    return apply("reshape", x, shape=tuple(left if size == -1 else size for size in shape))


def concat(values, axis=0):
    """The tensors of a list one after the other along an axis. Raises ValueError for an axis that they do not have."""
    values, axis = _alike(several("concat: values", values, "a list of tensors")), _normalize_axis(axis)
    expect(values, "concat: values", values, "one tensor or more")
    axes = len(values[0].spec.shape)
    if axis is None or not -axes <= axis < axes:
        raise ValueError(f"concat: axis {axis} is not an axis of {[x.spec.shape for x in values[:3]]}")
    return apply("concat", *values, axis=axis % axes)


cat = concat  # PyTorch's name


def where(mask, x, y):
    """x where the mask, a tensor of bools, is true, else y; all three broadcast."""
    return apply("where", _bools("where: the mask", mask), *_alike((x, y)))


def cast(x, dtype):
    """The same numbers in another dtype."""
    return apply("cast", x, dtype=dtype_of("cast: dtype", dtype))


def tanh(x):
    """The hyperbolic tangent of each number of x, a tensor of floats. Raises TypeError for others."""
    return apply("tanh", x)


def maximum(x, y):
    """The larger of each two numbers"""
    return apply("maximum", x, y)


def minimum(x, y):
    """The smaller of each two numbers"""
    return apply("minimum", x, y)


def absolute(x):
    """|x| of each number of x, floats or integers; its slope at 0 is 0. |NaN| is NaN."""
    return apply("absolute", x)


abs = absolute  # as TensorFlow and PyTorch say it


def square(x):
    """x·x of each number of x, floats or integers."""
    x = as_tensor(x)
    return x * x


def sin(x):
    """The sine of each number of x, floats: angles in radians. Raises TypeError for others.

    It is at most one unit in the last place from the truth, with the same bits on every machine. From 2⁵³ on (float32:
    2²⁴) neighbouring floats are 2 apart and more, so no angle is left: there it is NaN.
    """
    return apply("sin", x)


def cos(x):
    """The cosine of each number of x, floats: angles in radians, as in `sin`. Raises TypeError for others."""
    return apply("cos", x)


def erf(x):
    """The error function 2/√π·∫exp(-t²)dt, from 0 to each number of x, floats. Raises TypeError for others."""
    return apply("erf", x)


def equal(x, y):
    """Whether each two numbers are equal: a tensor of bools. What holds a NaN is not."""
    return apply("equal", x, y)


def reduce_max(x, axis=None, keepdims=False):
    """The largest number along one axis, or of all."""
    return apply("reduce_max", x, axis=_normalize_axis(axis), keepdims=keepdims)


def reduce_min(x, axis=None, keepdims=False):
    """The smallest number along one axis, or of all."""
    return apply("reduce_min", x, axis=_normalize_axis(axis), keepdims=keepdims)


def arg_max(x, axis=None, keepdims=False):
    """The place, int64, of the first largest number along one axis, or in x as one long row."""
    return _place("arg_max", x, axis, keepdims)


def arg_min(x, axis=None, keepdims=False):
    """The place, int64, of the first smallest number along one axis, or in x as one long row."""
    return _place("arg_min", x, axis, keepdims)


def _place(op, x, axis, keepdims):
    y = apply(op, x, axis=_normalize_axis(axis))
    if not flag(f"{op}: keepdims", keepdims):
        return y
    shape = [1] * len(x.shape) if axis is None else [*x.shape]
    shape[0 if axis is None else axis] = 1
    return reshape(y, shape)


argmax, argmin = arg_max, arg_min  # as NumPy, TensorFlow and PyTorch say it


def _bools(name, x):
    """These bools as a tensor. Raises TypeError for others."""
    x = as_tensor(x)
    expect(x.spec.dtype == bool, name, x.spec, "bools, such as x > 0.0")
    return x


def reduce_any(x, axis=None, keepdims=False):
    """Whether one of the bools of x is true, along one axis or of all. Of none at all it is False."""
    return reduce_sum(cast(_bools("reduce_any: x", x), "int64"), axis, keepdims) > 0


def reduce_all(x, axis=None, keepdims=False):
    """Whether all bools of x are true, along one axis or of all. Of none at all it is True."""
    return reduce_sum(cast(_bools("reduce_all: x", x) == False, "int64"), axis, keepdims) == 0  # noqa: E712


def one_hot(x, depth, dtype=np.float32):
    """x[…], int64, as […, depth]: 1 at the place that the integer names, else 0."""
    return apply("one_hot", x, depth=sizes("one_hot: depth", depth)[0], dtype=dtype_of("one_hot: dtype", dtype))


def swapaxes(x, first, second):
    """x with two of its axes in each other's place, as in NumPy: [a, b, c] with 0 and 2 becomes [c, b, a]."""
    x = as_tensor(x)
    axes = list(range(len(x.spec.shape)))
    first, second = (axis_of("swapaxes", axis, len(axes)) for axis in (first, second))
    axes[first], axes[second] = axes[second], axes[first]
    return transpose(x, axes)


def softmax(x, axis=-1):
    """exp(x) divided by its sum, along an axis of a float tensor: probabilities. Raises TypeError for others."""
    return apply("softmax", x) if axis == -1 else swapaxes(softmax(swapaxes(x, axis, -1)), axis, -1)


def log_softmax(x, axis=-1):
    """log(softmax(x)) along an axis, and no overflow on the way: a tensor shaped like x."""
    return apply("log_softmax", x) if axis == -1 else swapaxes(log_softmax(swapaxes(x, axis, -1)), axis, -1)


def broadcast_to(x, shape):
    """x, repeated along axes of one number and along new ones in front, in that shape. Raises ValueError for others."""
    return apply("broadcast_to", x, shape=sizes("broadcast_to: shape", shape))


def dot(x, w):
    """x[…, k] @ w[k, n] -> […, n], or x[…, k] @ w[k] -> […]: x may have more axes than two, or one.

    Raises ValueError where the sizes do not fit, and for w with other axes.
    """
    x, w = _alike((x, w))
    if not x.spec.shape or len(w.spec.shape) not in (1, 2) or x.spec.shape[-1] != w.spec.shape[0]:
        raise ValueError(f"dot: x is {x.spec.shape} and w {w.spec.shape}; expected [..., k] and [k, n], or [k]")
    shape = (*x.spec.shape[:-1], *w.spec.shape[1:])
    y = apply(
        "matmul",
        reshape(x, (math.prod(x.spec.shape[:-1]), x.spec.shape[-1])),
        w if len(w.spec.shape) == 2 else reshape(w, (-1, 1)),
    )
    return y if y.spec.shape == shape else reshape(y, shape)


def elu(x, alpha=1.0):
    """x where it is positive, else alpha·(exp(x) - 1), of each number of a float tensor.

    Clevert et al., 2016, https://arxiv.org/abs/1511.07289
    """
    return apply("elu", x, alpha=float(number("elu: alpha", alpha)))


def item(x):
    """The one number of a tensor or a variable, as Python's. Raises ValueError for several numbers, or none."""
    if math.prod(x.shape) != 1:
        raise ValueError(f"item: shape {x.shape} has {math.prod(x.shape)} numbers; expected one")
    return x.numpy().item()


def logical_and(x, y):
    """Whether both of each two bools are true, which broadcast. Raises TypeError for others."""
    return where(_bools("logical_and: x", x), _bools("logical_and: y", y), False)


def logical_or(x, y):
    """Whether one of each two bools is true, or both; they broadcast. Raises TypeError for others."""
    return where(_bools("logical_or: x", x), True, _bools("logical_or: y", y))


def logical_not(x):
    """Whether each bool is false. Raises TypeError for others."""
    return _bools("logical_not: x", x) == False  # noqa: E712


def _rows(x):
    """How many rows a tensor has. Raises TypeError for a single number."""
    if not x.shape:
        raise TypeError("a tensor of shape () has no length")
    return x.shape[0]


OPERATORS["item"] = item
OPERATORS["abs"] = absolute
OPERATORS["=="] = lambda x, y: False if y is None else apply("equal", x, y)  # as in `None in [x]`
OPERATORS["!="] = lambda x, y: True if y is None else apply("not_equal", x, y)
OPERATORS["<"], OPERATORS[">"] = sides("less")
OPERATORS["<="], OPERATORS[">="] = sides("less_equal")
OPERATORS["**"], OPERATORS["power of a number"] = sides("power")
OPERATORS["len"] = _rows
OPERATORS["iter"] = lambda x: (x[i] for i in range(len(x)))
OPERATORS["&"] = logical_and
OPERATORS["|"] = logical_or
OPERATORS["~"] = logical_not

"""More functions of tensors: shapes, dtypes, selection, trigonometry, activations, maxima and minima."""

import math

import numpy as np

from levels.low_level import OPERATORS, Operators, apply, as_tensor, binary_op, reduce_sum
from levels.support.checks import check_bool
from levels_more.checks import as_tuple, axis_of, dtype_of, expect, index_of, number, several, sizes


def _normalize_axis(axis):
    """Convert an axis or a tuple of axes to ints. None stays None. Raises TypeError for anything else."""
    if isinstance(axis, tuple):
        return tuple(map(_normalize_axis, axis))
    return None if axis is None else index_of("axis", axis)


def _alike(values):
    """Convert all values to tensors. Python numbers take the dtype of the first tensor or variable among them."""
    like = next((x for x in values if isinstance(x, Operators)), None)
    return [as_tensor(x, like) for x in values]


def matmul(x, w):
    """Return the matrix product x[m, k] @ w[k, n] -> [m, n]."""
    return apply("matmul", x, w)


def transpose(x, axes=None):
    """Permute the axes of x, [a, b, …] -> [a', b', …]. If `axes` is None, all axes are reversed."""
    axes = None if axes is None else _normalize_axis(several("transpose: axes", as_tuple(axes)))
    return apply("transpose", x, axes=axes)


def reduce_mean(x, axis=None, keepdims=False):
    """Divide the sum of floats by their count, as the core does, in one op. Raises TypeError for other dtypes."""
    return apply("reduce_mean", x, axis=_normalize_axis(axis), keepdims=keepdims)


def reshape(x, shape):
    """Return the same numbers, in the same order, in another shape. One size may be -1: it follows from the others."""
    x = as_tensor(x)
    shape = as_tuple(shape)
    shape = [index_of("reshape: a size", size) for size in (shape if isinstance(shape, tuple) else (shape,))]
    known = math.prod(size for size in shape if size != -1)
    left = math.prod(x.shape) // known if known and shape.count(-1) == 1 else -1
    return apply("reshape", x, shape=tuple(left if size == -1 else size for size in shape))


def concat(values, axis=0):
    """Join a list of tensors along an existing axis. Raises ValueError for an axis that they do not have."""
    values = _alike(several("concat: values", values, "a list of tensors"))
    axis = _normalize_axis(axis)
    expect(values, "concat: values", values, "one tensor or more")
    axes = len(values[0].spec.shape)
    if axis is None or not -axes <= axis < axes:
        raise ValueError(f"concat: axis {axis} is not an axis of {[x.spec.shape for x in values[:3]]}")
    return apply("concat", *values, axis=axis % axes)


cat = concat  # PyTorch's name


def where(mask, x, y):
    """Return x where the mask, a tensor of bools, is true, else y. All three broadcast."""
    return apply("where", _bools("where: the mask", mask), *_alike((x, y)))


def cast(x, dtype):
    """Return the same numbers in another dtype."""
    return apply("cast", x, dtype=dtype_of("cast: dtype", dtype))


def tanh(x):
    """Return the hyperbolic tangent of each number of x, a tensor of floats. Raises TypeError for other dtypes."""
    return apply("tanh", x)


def maximum(x, y):
    """Return the larger number of each pair of x and y, which broadcast."""
    return apply("maximum", x, y)


def minimum(x, y):
    """Return the smaller number of each pair of x and y, which broadcast."""
    return apply("minimum", x, y)


def absolute(x):
    """Return |x| of each number of x, floats or integers. The slope at 0 is 0, and |NaN| is NaN."""
    return apply("absolute", x)


abs = absolute  # the name in TensorFlow and PyTorch


def square(x):
    """Return x·x of each number of x, floats or integers."""
    x = as_tensor(x)
    return x * x


def sin(x):
    """Return the sine of each number of x, floats: angles in radians. Raises TypeError for other dtypes.

    The error is at most one unit in the last place, and the bits are the same on every machine. From 2⁵³ on (float32:
    2²⁴) neighbouring floats are 2 or more apart, so they no longer determine an angle: the result is NaN.
    """
    return apply("sin", x)


def cos(x):
    """Return the cosine of each number of x, floats: angles in radians, as in `sin`. Raises TypeError for others."""
    return apply("cos", x)


def erf(x):
    """Return the error function 2/√π·∫exp(-t²)dt, from 0 to each number of x, floats. Raises TypeError for others."""
    return apply("erf", x)


def equal(x, y):
    """Return whether the numbers of each pair are equal, as a tensor of bools. NaN is equal to nothing."""
    return apply("equal", x, y)


def reduce_max(x, axis=None, keepdims=False):
    """Return the largest number along an axis or neighbouring axes, or of all."""
    return apply("reduce_max", x, axis=_normalize_axis(axis), keepdims=keepdims)


def reduce_min(x, axis=None, keepdims=False):
    """Return the smallest number along an axis or neighbouring axes, or of all."""
    return apply("reduce_min", x, axis=_normalize_axis(axis), keepdims=keepdims)


def arg_max(x, axis=None, keepdims=False):
    """Return the index, int64, of the first largest number along an axis, or in the flattened x (axis=None)."""
    return _place("arg_max", x, axis, keepdims)


def arg_min(x, axis=None, keepdims=False):
    """Return the index, int64, of the first smallest number along an axis, or in the flattened x (axis=None)."""
    return _place("arg_min", x, axis, keepdims)


def _place(op, x, axis, keepdims):
    x = as_tensor(x)
    axis = _normalize_axis(axis)
    y = apply(op, x, axis=axis)
    if not check_bool(f"{op}: keepdims", keepdims):
        return y
    axes = range(len(x.shape)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    reduced = {a % len(x.shape) for a in axes}
    return reshape(y, [1 if a in reduced else size for a, size in enumerate(x.shape)])


# the names in NumPy, TensorFlow and PyTorch
argmax = arg_max
argmin = arg_min


def _bools(name, x):
    """Return x as a tensor of bools. Raises TypeError for other dtypes."""
    x = as_tensor(x)
    expect(x.spec.dtype == bool, name, x.spec, "bools, such as x > 0.0")
    return x


def reduce_any(x, axis=None, keepdims=False):
    """Return whether at least one bool of x is true, along an axis or of all. Of no bools the result is False."""
    return reduce_sum(cast(_bools("reduce_any: x", x), "int64"), axis, keepdims) > 0


def reduce_all(x, axis=None, keepdims=False):
    """Return whether all bools of x are true, along an axis or of all. Of no bools the result is True."""
    return reduce_sum(cast(_bools("reduce_all: x", x) == False, "int64"), axis, keepdims) == 0  # noqa: E712


def one_hot(x, depth, dtype=np.float32):
    """Convert integers x[…], int64, to […, depth]: 1 at the index that is the integer, else 0."""
    return apply("one_hot", x, depth=sizes("one_hot: depth", depth)[0], dtype=dtype_of("one_hot: dtype", dtype))


def swapaxes(x, first, second):
    """Exchange two axes of x, as in NumPy: [a, b, c] with 0 and 2 becomes [c, b, a]."""
    x = as_tensor(x)
    axes = list(range(len(x.spec.shape)))
    first, second = (axis_of("swapaxes", axis, len(axes)) for axis in (first, second))
    axes[first], axes[second] = axes[second], axes[first]
    return transpose(x, axes)


def softmax(x, axis=-1):
    """Return exp(x) divided by its sum along an axis of a float tensor: probabilities. Raises TypeError for others."""
    return apply("softmax", x) if axis == -1 else swapaxes(softmax(swapaxes(x, axis, -1)), axis, -1)


def log_softmax(x, axis=-1):
    """Return log(softmax(x)) along an axis, computed without overflow: a tensor shaped like x."""
    return apply("log_softmax", x) if axis == -1 else swapaxes(log_softmax(swapaxes(x, axis, -1)), axis, -1)


def broadcast_to(x, shape):
    """Repeat x along axes of size 1 and along new leading axes to that shape. Raises ValueError if x does not fit."""
    return apply("broadcast_to", x, shape=sizes("broadcast_to: shape", shape))


def dot(x, w):
    """Return x[…, k] @ w[k, n] -> […, n] or x[…, k] @ w[k] -> […]. x has one axis or more.

    Raises ValueError if the sizes do not match, or for a w with other axes.
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
    """Return x if x > 0, else alpha·(exp(x) - 1), for each number of a float tensor.

    Clevert et al., 2016, https://arxiv.org/abs/1511.07289
    """
    return apply("elu", x, alpha=float(number("elu: alpha", alpha)))


def item(x):
    """Return the only number of a tensor or variable as a Python number. Raises ValueError unless there is one."""
    if math.prod(x.shape) != 1:
        raise ValueError(f"item: shape {x.shape} has {math.prod(x.shape)} numbers; expected one")
    return x.numpy().item()


def logical_and(x, y):
    """Return whether both bools of each pair are true. x and y broadcast. Raises TypeError for other dtypes."""
    return where(_bools("logical_and: x", x), _bools("logical_and: y", y), False)


def logical_or(x, y):
    """Return whether at least one bool of each pair is true. x and y broadcast. Raises TypeError for other dtypes."""
    return where(_bools("logical_or: x", x), True, _bools("logical_or: y", y))


def logical_not(x):
    """Return whether each bool of x is false. Raises TypeError for other dtypes."""
    return _bools("logical_not: x", x) == False  # noqa: E712


def _rows(x):
    """Return how many rows a tensor has. Raises TypeError for a tensor without axes."""
    if not x.shape:
        raise TypeError("a tensor of shape () has no length")
    return x.shape[0]


OPERATORS["item"] = item
OPERATORS["abs"] = absolute
OPERATORS["=="] = lambda x, y: False if y is None else apply("equal", x, y)  # as in `None in [x]`
OPERATORS["!="] = lambda x, y: True if y is None else apply("not_equal", x, y)
OPERATORS["<"], OPERATORS[">"] = binary_op("less")
OPERATORS["<="], OPERATORS[">="] = binary_op("less_equal")
OPERATORS["**"], OPERATORS["power of a number"] = binary_op("power")
OPERATORS["len"] = _rows
OPERATORS["iter"] = lambda x: (x[i] for i in range(len(x)))
OPERATORS["&"] = logical_and
OPERATORS["|"] = logical_or
OPERATORS["~"] = logical_not

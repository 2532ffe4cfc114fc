"""The vjps of the ops of this level."""

import itertools
import math

import numpy as np

from levels.kernels import reduced
from levels.low_level import VJPS, apply, exp, gather, log, reduce_sum
from levels_more.low_level.ops import cast, cos, minimum, reshape, sin, transpose, where


def _mean_back(dy, y, x, axis=None, keepdims=False):
    """The vjp of reduce_mean: each number gets the dy of its mean, divided by their count. One op for all numbers."""
    axes, (_, count, _) = reduced("reduce_mean", x.spec.shape, axis)
    if axis is not None and not keepdims:  # restore the reduced axes, with size 1
        dy = reshape(dy, [1 if k in axes else size for k, size in enumerate(x.spec.shape)])
    return apply("broadcast_divide", dy, x, count=float(count))


def _spread_back(g, y, dy, x, axis=None):
    """The vjp of spread, the way back through a sum, is a sum."""
    return reduce_sum(g, axis, keepdims=len(dy.spec.shape) == len(x.spec.shape))


def _product_back_x(dy, y, x, w, transpose_x=False, transpose_w=False):
    """The vjp of matmul for x, where either input may be read transposed. (The core's rule is for x @ w.)"""
    if transpose_x:
        return apply("matmul", w, dy, transpose_x=transpose_w, transpose_w=True)
    return apply("matmul", dy, w, transpose_w=not transpose_w)


def _product_back_w(dy, y, x, w, transpose_x=False, transpose_w=False):
    """The vjp of matmul for w, where either input may be read transposed."""
    if transpose_w:
        return apply("matmul", dy, x, transpose_x=True, transpose_w=transpose_x)
    return apply("matmul", x, dy, transpose_x=not transpose_x)


def _share_back(dy, y, x, axis=None, keepdims=False):
    """The vjp of reduce_max and reduce_min: dy, divided equally among all numbers that are the largest or smallest."""
    how = {"axis": axis, "keepdims": keepdims}
    (spread,) = VJPS["reduce_sum"]
    hit = cast(x == spread(y, None, x, **how), x.dtype)
    return hit * spread(dy / reduce_sum(hit, **how), None, x, **how)


def _part_of_join(k):
    """Return the vjp for input k of `concat`: its part of dy."""

    def vjp(dy, y, *inputs, axis=0):
        start = sum(x.spec.shape[axis] for x in inputs[:k])
        return dy[(slice(None),) * axis + (slice(start, start + inputs[k].spec.shape[axis]),)]

    return vjp


class _PartsOfJoin:
    """The vjps of `concat`, for any number of inputs."""

    def __iter__(self):
        return map(_part_of_join, itertools.count())


VJPS.update(
    {
        "broadcast_to": (lambda dy, y, x, shape: dy,),
        "reshape": (lambda dy, y, x, shape: reshape(dy, x.spec.shape),),
        "spread": (_spread_back, None),
        "reduce_mean": (_mean_back,),
        "broadcast_divide": (lambda g, y, dy, x, count: apply("broadcast_divide", g, y, count=count), None),
        "gather": (lambda dy, y, x, rows: apply("scatter_add", dy, rows, count=x.spec.shape[0]), None),
        "scatter_add": (lambda dy, y, x, rows, count: gather(dy, rows), None),
        "absolute": (lambda dy, y, x: dy * (cast(x > 0.0, x.dtype) - cast(x < 0.0, x.dtype)),),
        "sin": (lambda dy, y, x: dy * cos(x),),
        "cos": (lambda dy, y, x: -dy * sin(x),),
        "elu": (lambda dy, y, x, alpha: dy * where(x > 0.0, 1.0, alpha * exp(minimum(x, 0.0))),),
        "erf": (lambda dy, y, x: dy * (2.0 / math.sqrt(math.pi) * exp(-x * x)),),
        "tanh": (lambda dy, y, x: dy * (1.0 - y * y),),
        "power": (
            lambda dy, y, a, b: dy * where(b == 0.0, 0.0, b * a ** (b - 1.0)),
            lambda dy, y, a, b: dy * (y * log(where(a > 0.0, a, 1.0))),
        ),
        "maximum": (lambda dy, y, a, b: where(a >= b, dy, 0.0), lambda dy, y, a, b: where(a >= b, 0.0, dy)),
        "minimum": (lambda dy, y, a, b: where(a <= b, dy, 0.0), lambda dy, y, a, b: where(a <= b, 0.0, dy)),
        "where": (None, lambda dy, y, m, a, b: where(m, dy, 0.0), lambda dy, y, m, a, b: where(m, 0.0, dy)),
        "reduce_max": (_share_back,),
        "reduce_min": (_share_back,),
        "softmax": (lambda dy, y, x: apply("softmax_grad", dy, y),),
        "log_softmax": (lambda dy, y, x: apply("log_softmax_grad", dy, y),),
        "transpose": (lambda dy, y, x, axes=None: transpose(dy, axes and np.argsort(axes).tolist()),),
        "concat": _PartsOfJoin(),
        "slice": (lambda dy, y, x, slices: apply("slice_grad", dy, shape=x.spec.shape, slices=slices),),
        "slice_grad": (lambda dy, y, x, shape, slices: apply("slice", dy, slices=slices),),
        "cast": (lambda dy, y, x, dtype: cast(dy, x.dtype) if {x.dtype.kind, dtype.kind} == {"f"} else None,),
    }
)
# the core finds these rows by the names of an op's attributes, in the order in which they were given
_TRANSPOSED = ("transpose_x",), ("transpose_w",), ("transpose_x", "transpose_w"), ("transpose_w", "transpose_x")
VJPS.update({("matmul", *names): (_product_back_x, _product_back_w) for names in _TRANSPOSED})
_FLAT = "less", "less_equal", "equal", "not_equal", "arg_max", "arg_min", "one_hot", "sum_error"
VJPS.update(dict.fromkeys(_FLAT, (None, None)))  # no gradient passes through these

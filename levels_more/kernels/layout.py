"""Ops that move numbers: transpose, concat, slice and cast, sums by row number (scatter_add), and one_hot.

A transpose, a slice and a concat copy from view to view. They differ only in the views, so one planner, `plan_moves`,
serves them all, and their scalar function returns x.
"""

import functools
import math
from itertools import accumulate

import numpy as np

from levels.kernels import Plan, element_loop, kernel, lowered
from levels.support.shapes import check_reshape, same_dtype
from levels_more.checks import dtype_of, sizes
from levels_more.kernels.verify import TEST_CASES


def copy_views(function, shape, inputs, pairs):
    """Return the program that copies from view to view, in loops over all axes."""
    lead = (None,) * (2 - len(shape))  # at least two axes: a loop over one flattens its views, which may copy them
    place = ", ".join(f"i{n}" for n in range(max(2, len(shape))))
    loop = lowered(element_loop(function, inputs[0], [place, place]), inputs[0])()

    def run(out, *arrays):
        for views in pairs(out, *arrays):
            loop(*(view[lead] for view in views))

    return run


def one_loop(function, x):
    """Return (compiler, views) for the loop of a scalar function over an array like `x`; views: the shapes it needs."""
    row = (math.prod(x.shape),)
    return lowered(element_loop(function, x, ["i", "i"]), x), [row, row]


MOVES = {"cpu": copy_views}  # kind of device -> how it copies from view to view


def plan_moves(op, function, shape, inputs, pairs):
    """Return a Plan that applies `function` from view to view: pairs(out, *inputs), all views with len(shape) axes."""
    lower = functools.partial(MOVES[inputs[0].device.kind], function, shape, inputs, pairs)
    return Plan(op, shape, inputs[0].dtype, inputs, lower)


def plan_transpose(op, function, x, axes=None):
    """Plan a transpose: axis n of out is axis axes[n] of x. If `axes` is None, all axes are reversed.

    Raises ValueError if `axes` is not a permutation of the axes of x.
    """
    axes = tuple(range(len(x.shape)))[::-1] if axes is None else axes
    if not isinstance(axes, tuple) or sorted(axes, key=repr) != list(range(len(x.shape))):
        raise ValueError(f"{op}: axes {axes} are not the axes of shape {x.shape} in another order")
    return plan_moves(op, function, tuple(x.shape[a] for a in axes), [x], lambda out, x: [(out, x.transpose(axes))])


def plan_concat(op, function, *inputs, axis=0):
    """Plan to join the inputs along an axis. Raises ValueError if other sizes differ, or they do not have that axis."""
    same_dtype(op, *inputs, kinds="fib")
    (axis,) = sizes(f"{op}: axis", axis)
    rest = {(*b.shape[:axis], *b.shape[axis + 1 :]) for b in inputs}
    if not 0 <= axis < min(len(b.shape) for b in inputs) or len(rest) > 1:
        raise ValueError(f"{op}: shapes {' and '.join(str(b.shape) for b in inputs)} do not join along axis {axis}")
    ends = list(accumulate(b.shape[axis] for b in inputs))
    shape = (*inputs[0].shape[:axis], ends[-1], *inputs[0].shape[axis + 1 :])

    def pairs(out, *arrays):
        return zip(np.split(out, ends[:-1], axis), arrays, strict=True)

    return plan_moves(op, function, shape, inputs, pairs)


def as_slices(slices):
    """Return a slice object for each triple (start, stop, step), the hashable form of slices in launch attributes."""
    return tuple(slice(*triple) for triple in slices)


def sliced(op, shape, slices):
    """Return the shape of such a slice of an array of that shape. Raises ValueError unless each axis has one slice."""
    if len(slices) != len(shape):
        raise ValueError(f"{op}: {len(slices)} slices for shape {shape}")
    return tuple(len(range(*part.indices(size))) for part, size in zip(as_slices(slices), shape, strict=True))


def plan_slice(op, function, x, slices=()):
    """Plan x[start:stop:step, …], with a triple (start, stop, step) for each axis."""
    shape = sliced(op, x.shape, slices)
    return plan_moves(op, function, shape, [x], lambda out, x: [(out, x[as_slices(slices)])])


def plan_slice_grad(op, function, dy, shape=(), slices=()):
    """Plan an array of zeros of that shape with dy in the place of the slice.

    Raises ValueError if dy does not have the shape of the slice.
    """
    if sliced(op, shape, slices) != dy.shape:
        raise ValueError(f"{op}: dy is {dy.shape}, and the slice of {shape} is {sliced(op, shape, slices)}")

    def pairs(out, dy):
        place = out[(*as_slices(slices), ...)]  # (the `...` makes it a view, also for an array without axes)
        return (out, np.broadcast_to(np.zeros((), dy.dtype), shape)), (place, dy)

    return plan_moves(op, function, shape, [dy], pairs)


def plan_cast(op, function, x, dtype=None):
    """Plan a cast to another dtype. Raises TypeError for a dtype without kernels.

    Its program raises ValueError if NaN, an infinity or a number beyond 2⁶³ would become an integer.
    """
    same_dtype(op, x, kinds="fib")
    dtype = dtype_of(f"{op}: dtype", dtype)
    compiler, views = one_loop(function, x)
    checked = dtype.kind == "i" and x.dtype.kind == "f"
    read = x.device.read

    def lower():
        loop = compiler()

        def run(out, x):
            if checked and not (((numbers := read(x)) >= -(2.0**63)) & (numbers < 2.0**63)).all():
                raise ValueError(f"{op}: NaN, infinity or a number beyond 2⁶³ has no place in {dtype}")
            loop(out, x)

        return run

    return Plan(op, x.shape, dtype, [x], lower, views)


def plan_reshape(op, function, x, shape=()):
    """Plan a copy in another shape, in the same order. Raises ValueError for a shape of another size."""
    check_reshape(op, x.shape, shape)
    return Plan(op, shape, x.dtype, [x], *one_loop(function, x))


def layout_op(op, planner, *tried, count=1):
    """Register an op that only moves numbers, and its test cases: (the shape of each of `count` inputs, attributes)."""
    kernel(op, planner=planner)(lambda x: x)
    TEST_CASES[op] = [([shape] * count, attrs) for shape, attrs in tried]


layout_op("transpose", plan_transpose, ((), {}), ((3,), {}), ((2, 3, 4), {"axes": (1, 2, 0)}), ((0, 2), {}))
layout_op("reshape", plan_reshape, ((), {"shape": (1, 1)}), ((6,), {"shape": (2, 3)}), ((2, 0), {"shape": (0,)}))
layout_op("concat", plan_concat, ((2, 3), {"axis": 0}), ((2, 3), {"axis": 1}), ((0, 3), {"axis": 0}), count=2)
layout_op("slice", plan_slice, ((5, 4), {"slices": ((1, 5, 2), (3, None, -1))}), ((3,), {"slices": ((0, 0, 1),)}))
layout_op("slice_grad", plan_slice_grad, ((2, 3), {"shape": (4, 3), "slices": ((0, 4, 2), (None, None, -1))}))
layout_op("cast", plan_cast, *(((30,), {"dtype": dtype}) for dtype in ("f4", "f8", "i8", "?")))


def plan_scatter_add(op, function, x, rows, count=0):
    """Plan out[rows[i], …] = Σ x[i, …], added in the order of i, for a result with `count` rows.

    Raises TypeError unless `rows` is int64, with one number for each row of x.
    """
    dtype = same_dtype(op, x, kinds="fi")
    axes = len(rows.shape)
    (count,) = sizes(f"{op}: count", count)
    if rows.dtype != np.int64 or x.shape[:axes] != rows.shape:
        raise TypeError(
            f"{op}: rows are {rows.dtype} of shape {rows.shape}; expected int64, one for each row of {x.shape}"
        )
    taken = math.prod(rows.shape)
    width = math.prod(x.shape[axes:])
    views = [(count, width), (taken, width), (taken,)]
    loop = lowered(function, x)
    return Plan(op, (count, *x.shape[axes:]), dtype, [x, rows], loop, views)


@kernel("scatter_add", planner=plan_scatter_add)
def scatter_add(out, x, rows):
    """Compute out[rows[i], j] = Σ x[i, j], in the order of i. Raises IndexError if a row number is out of range."""
    out[:] = 0
    for i in range(rows.size):
        if not 0 <= rows[i] < out.shape[0]:
            raise IndexError("scatter_add: a row number is out of range")
        for j in range(out.shape[1]):
            out[rows[i], j] += x[i, j]


def plan_one_hot(op, function, x, depth=0, dtype=np.float32):
    """Plan out[…, j] = 1 if x[…] = j else 0, for j in range(depth).

    Raises TypeError if x is not int64, or for a dtype without kernels.
    """
    if x.dtype != np.int64:
        raise TypeError(f"{op}: classes are {x.dtype}; expected int64 numbers")
    (depth,) = sizes(f"{op}: depth", depth)
    dtype = dtype_of(f"{op}: dtype", dtype)
    size = math.prod(x.shape)
    loop = lowered(function, x)
    return Plan(op, (*x.shape, depth), dtype, [x], loop, [(size, depth), (size,)])


@kernel("one_hot", planner=plan_one_hot)
def one_hot(out, x):
    """Set out[i, j] to 1 if x[i] is j, else to 0. Raises IndexError if an x[i] is not a column of out."""
    for i in range(x.size):
        if not 0 <= x[i] < out.shape[1]:
            raise IndexError("one_hot: a class number is out of range")
        for j in range(out.shape[1]):
            out[i, j] = x[i] == j


TEST_CASES["scatter_add"] = [
    ([shape, np.array([2, 0, 3, 0, 0, 2])], {"count": 4}) for shape in ((6,), (6, 3), (6, 2, 3))
]
TEST_CASES["one_hot"] = [
    ([np.arange(size) % 4], {"depth": 4, "dtype": dtype}) for size in (0, 7) for dtype in ("f4", "f8")
]

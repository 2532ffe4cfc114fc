"""Functions of level 3 with the arguments that PyTorch has for them, before they remember.

Their operands may be of several dtypes. (Level 3 refuses those: it asks for a cast.)
"""

import math

import numpy as np

from levels.low_level import DTYPES, Operators, as_tensor, constant
from levels_more import low_level as low
from levels_more.checks import as_tuple, axis_of, expect, index_of
from levels_more.low_level.math import without_gradient

ORDER = sorted(DTYPES, key=lambda dtype: ("bif".index(dtype.kind), dtype.itemsize))  # each fits into those after it
NUMBERS = {  # what Python's are, where they decide
    bool: np.dtype(bool),
    int: np.dtype("int64"),
    float: np.dtype("float32"),
}


def _rank(x):
    """The rank of an operand's dtype: 2 for a tensor with axes, 1 for a tensor of one number, 0 for a Python number."""
    return 2 if isinstance(x, Operators) and x.shape else int(isinstance(x, Operators))


def common(x, y):
    """The dtype of x and y together: the widest of the highest rank.

    A lower rank decides where it holds floats beside integers, or integers beside bools. They are tensors or numbers;
    raises TypeError for others.
    """
    best = None
    for z in (x, y):
        if not isinstance(z, (Operators, *NUMBERS, np.number, np.bool_)):
            raise TypeError(f"an operand is {z!r:.60}; expected a tensor or a number")
    for rank in (2, 1, 0):
        kinds = [z.dtype if rank else NUMBERS[type(np.asarray(z).item())] for z in (x, y) if _rank(z) == rank]
        wide = max(kinds, key=ORDER.index, default=None)
        if wide and (best is None or "bif".index(wide.kind) > "bif".index(best.kind)):
            best = wide
    return best


def beside(x, y):
    """Both in the dtype that they have in common. x and y are tensors, arrays or Python numbers, which stay numbers.

    Raises TypeError for others.
    """
    pair = [constant(z) if isinstance(z, np.ndarray) else z for z in (x, y)]
    best = common(*pair)
    number = {"b": bool, "i": int, "f": float}[best.kind]
    return [z if _rank(z) and z.dtype == best else low.cast(z, best) if _rank(z) else number(z) for z in pair]


def both(function):
    """A function of two operands, x and y, as one that takes them in different dtypes."""
    return lambda x, y: function(*beside(x, y))


def of_kinds(function, of_bools):
    """The same, with a function of its own for two bools: their sum is `or`, their product `and`."""

    def run(x, y):
        x, y = beside(x, y)
        bools = all(z.dtype == bool for z in (x, y) if isinstance(z, Operators))
        return of_bools(*map(as_tensor, (x, y))) if bools else function(x, y)

    return run


def floats(x):
    """A tensor x as floats: whole numbers and bools in the dtype of Python's floats."""
    return x if not isinstance(x, Operators) or x.dtype.kind == "f" else low.cast(x, NUMBERS[float])


def sizes_of(sizes):
    """The shape in an argument list: (2, 3), or one tuple of them. Raises TypeError for what is no whole number."""
    found = as_tuple(sizes[0]) if len(sizes) == 1 else sizes
    return tuple(index_of("a size", size) for size in (found if isinstance(found, tuple) else (found,)))


RENAMED = {  # PyTorch's arguments -> ours
    "dim": "axis",
    "keepdim": "keepdims",
    "other": "y",
}


def spelled(function):
    """A function that takes PyTorch's names of arguments."""

    def run(*args, **options):
        first = [options.pop("input")] if "input" in options else []
        return function(*first, *args, **{RENAMED.get(name, name): x for name, x in options.items()})

    return run


def spread(function):
    """A variance or a deviation of x[…], with n - 1 for n unless it is said otherwise."""
    return lambda x, axis=None, unbiased=True, keep=False, correction=1, keepdims=False: function(
        x, axis, keep or keepdims, correction * unbiased
    )


def extreme(function, ranked, both):
    """max(x), max(x, y), and max(x, dim) -> (values, indices), of which only those at the indices have a gradient."""

    def run(x, y=None, keepdims=False, axis=None):
        axis = y if axis is None else axis
        return function(x) if axis is None else both(x, y) if hasattr(axis, "shape") else ranked(x, axis, keepdims)

    return run


def of_truths(function):
    """A function of bools, as one of any numbers x[…], which are true unless they are 0."""
    return lambda x, *args, **how: function(x if x.dtype == bool else x != 0, *args, **how)


def expand(x, *sizes):
    """x[…] in a larger shape, in which -1 leaves an axis as it is."""
    before = (1,) * (len(sizes_of(sizes)) - len(x.shape)) + x.shape
    return low.broadcast_to(x, [n if size == -1 else size for size, n in zip(sizes_of(sizes), before, strict=False)])


def flatten(x, start_dim=0, end_dim=-1):
    """x[…] with these axes, and those between them, as one. Raises ValueError where the second stands first."""
    first, last = (axis_of("flatten", axis, max(1, len(x.shape))) for axis in (start_dim, end_dim))
    if first > last:
        raise ValueError(f"flatten: end_dim is {end_dim}, and stands before start_dim, {start_dim}")
    return low.reshape(x, (*x.shape[:first], math.prod(x.shape[first : last + 1]), *x.shape[last + 1 :]))


def clamp(x, min=None, max=None):
    """x[…] within two bounds, numbers or tensors, of which one may be None."""
    if x.dtype.kind == "f" and not any(hasattr(bound, "shape") for bound in (min, max)):
        return low.clip(x, -math.inf if min is None else min, math.inf if max is None else max)
    x = x if min is None else low.maximum(*beside(x, min))
    return x if max is None else low.minimum(*beside(x, max))


def put(x, value, index):
    """x[…] with other numbers at an index of NumPy's: x and those in one long row, of which each place takes one."""
    places = np.arange(math.prod(x.shape))
    there = places.reshape(x.shape)[index]
    value = low.broadcast_to(low.as_tensor(value, x), there.shape)
    places[there] = len(places) + np.arange(there.size).reshape(there.shape)
    row = low.concat([low.reshape(x, (-1,)), low.reshape(value, (-1,))])
    return low.reshape(low.gather(row, places), x.shape)


def over(function):
    """A reduction of x[…], of all, along one axis, or along several, one after the other."""

    def run(x, axis=None, keepdims=False):
        if not isinstance(axis, list | tuple):
            return function(x, axis, keepdims)
        axes = sorted({axis_of("dim", each, len(x.shape)) for each in axis}, reverse=True)
        if len(axes) != len(axis):
            raise ValueError(f"dim is {axis}; expected each axis once")
        for each in axes or [None]:  # none of them stands for all, as in PyTorch
            x = function(x, each, keepdims)
        return x

    return run


def div(x, y):
    """x / y, as floats."""
    x, y = beside(x, y)
    return floats(x) / floats(y)


def where(mask, *pair):
    """x where the mask[…] is true, else y; without them the places where it is true, an array for each axis."""
    return low.where(mask, *beside(*pair)) if pair else without_gradient(np.nonzero)(mask)


def power(x, y):
    """x[…] to the power of y, numbers or tensors; whole numbers remain so.

    Raises ValueError for 1 / a whole number, TypeError for two bools.
    """
    if isinstance(y, int) and y == 2:
        return x * x
    x, y = beside(x, y)
    arrays = [z.numpy() if hasattr(z, "shape") else np.asarray(z) for z in (x, y)]
    if any(array.dtype.kind == "f" for array in arrays):
        return x**y
    expect(arrays[0].dtype.kind == "i", "pow: the dtype", arrays[0].dtype, "numbers; make numbers of bools first")
    if (arrays[1] < 0).any():
        raise ValueError("pow: whole numbers to a power below 0; make floats of them first")
    return without_gradient(np.power)(x, y)


def shared_at_ties(function):
    """`maximum` or `minimum`; of two equal floats each has half of the gradient. (Else the first one has it all.)"""
    return lambda x, y: low.where(x == y, x * 0.5 + y * 0.5, function(x, y)) if x.dtype.kind == "f" else function(x, y)

"""The product `x @ y` of tensors with more axes than two, or fewer."""

from levels.low_level import reduce_sum
from levels_more.low_level.ops import dot
from levels_more.low_level.shape import expand_dims


def products(x, y):
    """Matrix by matrix, x[b, m, k] @ y[b, k, n]. Raises ValueError for other shapes."""
    if x.shape[0] != y.shape[0] or x.shape[2] != y.shape[1]:
        shapes = f"{tuple(x.shape)} and {tuple(y.shape)}"
        raise ValueError(f"matmul: x and y are {shapes}; expected [b, m, k] and [b, k, n]")
    return reduce_sum(expand_dims(x, 3) * expand_dims(y, 1), 2)


def matmul(x, y):
    """x[…, k] @ y[k, n] or y[k], or matrix by matrix x[b, m, k] @ y[b, k, n]. Raises ValueError for other shapes."""
    return products(x, y) if len(x.shape) == len(y.shape) == 3 else dot(x, y)

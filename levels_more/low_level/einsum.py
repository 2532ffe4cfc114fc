"""Products of tensors whose axes have letters: "ij,jk->ik" is the product of two matrices."""

import functools
import operator

from levels.low_level import reduce_sum
from levels_more.low_level.ops import broadcast_to, dot, reshape, transpose


def einsum(letters, *tensors):
    """Σ of the products of tensors over all letters that stand on the left only; each letter is an axis (Einstein, 1916).

    "ij,jk->ik" of x[i, j] and y[j, k] is x @ y; without an arrow, what stands once remains. Raises ValueError for letters
    that do not fit the shapes, and for what is no letter, or stands twice in one tensor.
    """
    left, arrow, right = letters.replace(" ", "").partition("->")
    terms = left.split(",")
    right = right if arrow else "".join(sorted(c for c in {*left} - {","} if left.count(c) == 1))
    sizes, fit = {}, len(terms) == len(tensors) and {*right} <= {*left} and len({*right}) == len(right)
    for term, x in zip(terms, tensors, strict=False):
        fit = fit and len({*term}) == len(term) == len(x.shape) and (term.isalpha() or not term)
        fit = fit and all(sizes.setdefault(c, n) == n for c, n in zip(term, x.shape, strict=True))
    if not fit:
        shapes = ", ".join(str(tuple(x.shape)) for x in tensors)
        raise ValueError(f"einsum: {letters!r} for {shapes}; expected a letter for each axis, each of one size")
    order, parts = [*right, *sorted(sizes.keys() - {*right})], []
    for term, x in zip(terms, tensors, strict=True):
        x = transpose(x, [term.index(c) for c in order if c in term]) if len(term) > 1 else x
        parts.append(reshape(x, [sizes[c] if c in term else 1 for c in order]))
    y = functools.reduce(operator.mul, parts)
    y = broadcast_to(y, [sizes[c] for c in order])
    summed = tuple(range(len(right), len(order)))
    return reduce_sum(y, summed) if summed else y


def products(x, y):
    """Matrix by matrix, x[b, m, k] @ y[b, k, n]. Raises ValueError for other shapes."""
    return einsum("bij,bjk->bik", x, y)


def matmul(x, y):
    """x @ y: x[…, k] and y[k, n] or y[k], or matrix by matrix x[b, m, k] and y[b, k, n]. Raises ValueError for others."""
    return products(x, y) if len(x.shape) == len(y.shape) == 3 else dot(x, y)

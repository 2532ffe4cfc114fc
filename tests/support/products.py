"""Matrix products of one or many matrices, and what they should be."""

import itertools

import numpy as np

from levels_more.low_level import apply

TURNS = [*itertools.product((False, True), repeat=2)]  # whether x is given transposed, and w
NEAR = {"f4": 1e-5, "f8": 1e-14}


def turned(x):
    return np.swapaxes(x, -1, -2)


def operands(draw, fronts, sizes, turns, dtype):
    """x and w of normal numbers, as they are given: transposed or not."""
    m, k, n = sizes
    x, w = draw.normal(size=(*fronts[0], m, k)), draw.normal(size=(*fronts[1], k, n))
    return [np.ascontiguousarray(turned(a) if t else a).astype(dtype) for a, t in zip((x, w), turns, strict=True)]


def expected(x, w, turns):
    """By the record: each sum starts at 0.0 and runs upwards, each product and each sum is rounded."""
    x, w = (turned(a) if t else a for a, t in zip((x, w), turns, strict=True))
    total = np.zeros(np.broadcast_shapes(x.shape[:-2], w.shape[:-2]) + (x.shape[-2], w.shape[-1]), x.dtype)
    for k in range(x.shape[-1]):
        total = total + x[..., :, k, None] * w[..., k, None, :]
    return total


def product(turns):
    return lambda x, w: apply("matmul", x, w, transpose_x=turns[0], transpose_w=turns[1])

"""Where an array begins: at a cache line, so that no load of many lanes straddles two."""

import math

import numpy as np

LINE = 64  # bytes that move together between memory and caches, on most processors
GAP = 8 * LINE  # bytes left free behind an array: of two that lie 2ᵏ bytes apart, one may wait for the other
PAGE = 4096  # bytes; to look up where an array begins takes longer than to add one so small


def aligned(shape, dtype):
    """An empty array of that shape and dtype that begins at a cache line. (Under a page: any array.)"""
    nbytes = math.prod(shape) * np.dtype(dtype).itemsize
    if nbytes < PAGE:
        return np.empty(shape, dtype)
    data = np.empty(nbytes + LINE + GAP, np.uint8)
    return np.ndarray(shape, dtype, data, offset=-data.ctypes.data % LINE)

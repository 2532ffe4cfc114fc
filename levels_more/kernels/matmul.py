"""Matrix products near the CPU's peak: sums in registers, in the order of the plain loops, divided among threads."""

import functools
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from levels.kernels import PLANNERS, lowered, matmul_ikj
from levels_more.kernels.micro_kernel import (
    LOW_TILE_VECTORS,
    TILE_ROWS,
    TILE_VECTORS,
    VECTOR_BYTES,
    macro_kernel,
    pack_square,
)

_PAGE = 4096  # bytes


PANEL_BYTES = 4096  # of k at a time (1,024 float32): each tile reads its panel of w, which should stay in a cache
PACKED_ROWS = 64  # rows of x packed at a time: they stay in the L2 cache while all of w is read


def ceil_div(n, size):
    """Return n / size, rounded up."""
    return (n + size - 1) // size


def pack(panels, count, source, turned, k0, k1, c0, c1):
    """panels[s, p, l] = source[k0 + p, c0 + s·lanes + l], or source[c0 + …, k0 + p] if turned; s is in range(count)."""
    lanes = panels.shape[2]
    i0, i1, j0, j1 = (c0, c1, k0, k1) if turned else (k0, k1, c0, c1)
    rows, columns = (count * lanes, k1 - k0) if turned else (k1 - k0, count * lanes)
    for a in range(0, rows, lanes):
        for b in range(0, columns, lanes):  # along the rows of the source, which are contiguous
            s, p = (a, b) if turned else (b, a)
            pack_square(panels, s // lanes, p, source, i0 + a, j0 + b, i1, j1, turned)


def matmul_rows(out, x, w, transpose_x, transpose_w, first):
    """Compute len(out) rows of x @ w, beginning with row `first`, into out. x, w or both may be given transposed."""
    m, n = out.shape
    k = x.shape[0] if transpose_x else x.shape[1]
    lanes = VECTOR_BYTES // out.itemsize
    parts = max(1, ceil_div(k * out.itemsize, PANEL_BYTES))
    step = max(1, ceil_div(k, parts))  # equal parts of k
    for_x = PACKED_ROWS // lanes
    for_w = ceil_div(n, lanes)
    deep = ceil_div(step, lanes) * lanes
    panels = np.empty((for_x + for_w, deep, lanes), out.dtype)
    xs = panels[:for_x]
    ws = panels[for_x:]
    flat_x = xs.reshape(1, xs.size)
    flat_w = ws.reshape(1, ws.size)
    for k0 in range(0, max(1, k), step):  # one part even if k is 0, so that the sums are 0.0
        k1 = min(k0 + step, k)
        pack(ws, for_w, w, transpose_w, k0, k1, 0, n)
        for i0 in range(0, m, PACKED_ROWS):
            i1 = min(i0 + PACKED_ROWS, m)
            pack(xs, ceil_div(i1 - i0, lanes), x, not transpose_x, k0, k1, first + i0, first + i1)
            x_steps = (deep, 1, lanes)
            w_steps = (lanes, deep * lanes)
            macro_kernel(out[i0:i1], 0, n, TILE_ROWS, flat_x, x_steps, flat_w, w_steps, k1 - k0, k0 > 0)


WORTH_PACKING = 10_000_000  # multiplications; from this number on, packing and several threads are worth their cost
WORKERS = ThreadPoolExecutor()


def _renew_workers():
    """Create a new pool in a forked process, which has none of its parent's threads."""
    global WORKERS
    WORKERS = ThreadPoolExecutor()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_workers)


def matmul_tiles(program, turned_x, turned_w, out, x, w):
    """Compute out = x @ w with `program`, the compiled matmul_rows, on as many threads as numba is set to use."""
    import numba

    threads = numba.get_num_threads()
    share = -(-len(out) // threads // TILE_ROWS) * TILE_ROWS
    parts = [(out[i : i + share], x, w, turned_x, turned_w, i) for i in range(0, len(out), share)]
    others = [WORKERS.submit(program, *part) for part in parts[1:]]
    program(*parts[0])
    for other in others:
        other.result()  # wait, and raise the thread's error if it had one


def matmul_small(turned_x, turned_w, out, x, w):
    """Compute out[m, n] = x[m, k] @ w[k, n]. Only a transposed w is packed; all else is read in place.

    `turned_x` and `turned_w` are 1 if that matrix is given transposed, else 0.
    """
    if out.shape[1] == 1:
        turned_x, turned_w = 1 - turned_w, 1 - turned_x
        out, x, w = out.reshape(1, out.size), w, x
    m, n = out.shape
    k = x.shape[0] if turned_x else x.shape[1]
    lanes = VECTOR_BYTES // out.itemsize
    crowded = not turned_x and x.shape[1] * x.itemsize % _PAGE == 0  # rows a page apart share few sets of the cache
    high = 4 if crowded or m < TILE_ROWS else TILE_ROWS
    wide = (TILE_VECTORS if high == TILE_ROWS else LOW_TILE_VECTORS) * lanes
    columns = wide if turned_w else max(1, n)
    deep = ceil_div(k, lanes) * lanes
    x_steps = (1, 1, x.shape[1]) if turned_x else (x.shape[1], x.shape[1], 1)
    w_steps = (lanes, deep * lanes) if turned_w else (n, lanes)
    panels = np.empty((LOW_TILE_VECTORS, deep if turned_w else 0, lanes), out.dtype)
    source = panels.reshape(1, panels.size) if turned_w else w.reshape(1, w.size)
    for j in range(0, n, columns):
        width = min(columns, n - j)
        if turned_w:
            pack(panels, ceil_div(width, lanes), w, True, 0, k, j, j + width)
        macro_kernel(out, j, width, high, x, x_steps, source, w_steps, k, False)


def plan_tiles(op, function, x, w, transpose_x=False, transpose_w=False):
    """Plan a matrix product. The course's own kernel is replaced for floats by tiles that compute the same sums.

    (Row "matmul, 512" of the bench takes 3.1 times as long by the course's kernel, and 1.1 times in tiles that are not
    packed.)
    """
    made = PLANNERS["matmul"](op, function, x, w, transpose_x, transpose_w)
    if function is matmul_ikj and x.dtype.kind == "f":
        m, n = made.spec.shape
        k = x.shape[0 if transpose_x else 1]
        large = is_large(m, k, n)
        compiler = lowered(matmul_rows if large else matmul_small, x)

        def in_tiles():
            return functools.partial(matmul_tiles, compiler(), bool(transpose_x), bool(transpose_w))

        def in_place():
            return small_program(compiler(), x.dtype, 2, transpose_x, transpose_w)

        made.lower = in_tiles if large else in_place
    return made


def is_large(m, k, n):
    """Return whether such a product is large enough to pack its operands and to use several threads."""
    return min(m, k, n) >= 16 and m * k * n >= WORTH_PACKING


def small_program(program, dtype, axes, transpose_x, transpose_w):
    """Return run(out, x, w) of `program`, `matmul_small` or `matmul_batch` compiled, for arrays with `axes` axes."""
    import numba

    given = 0, 0, *(np.empty((0,) * axes, dtype) for _ in "oxw")
    compiled = program.compile(tuple(map(numba.typeof, given)))
    return functools.partial(compiled, int(transpose_x), int(transpose_w))  # ints are the fastest to pass


PLANNERS["matmul", "cpu"] = plan_tiles

"""The matrix product."""

# Built from notebooks/02_kernels.ipynb: edit there, then run its last cell.

import functools
import platform
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numba
import numpy as np
from llvmlite import ir
from numba import njit
from numba.core import cgutils
from numba.core import types as kinds
from numba.extending import intrinsic

from levels.hardware import host_features

from .cache import compile_cpu
from .registry import PLANNERS, PLANS, TRIALS, kernel, make, same_dtype


def plan_matmul(op, function, x, w, transpose_x=False, transpose_w=False):
    """out[m, n] = x[m, k] @ w[k, n]; either may be given transposed, and is then read so, not copied."""
    dtype = same_dtype(op, x, w)
    if len(x.shape) != 2 or len(w.shape) != 2:
        raise ValueError(f"{op}: x is {x.shape} and w is {w.shape}: both need two axes")
    (m, k), (rows, n) = x.shape[:: -1 if transpose_x else 1], w.shape[:: -1 if transpose_w else 1]
    if k != rows:
        raise ValueError(f"{op}: x is {(m, k)} and w is {(rows, n)}: inner sizes {k} and {rows} differ")

    def run(out, x, w):
        function(out, x.T if transpose_x else x, w.T if transpose_w else w)

    return make((m, n), dtype, [x, w], run)


@kernel("matmul", planner=plan_matmul)
def matmul_ikj(out, x, w):
    """out[i, j] = Σₖ x[i, k]·w[k, j], starting at 0.0, k upwards."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = 0.0
        for k in range(x.shape[1]):
            for j in range(out.shape[1]):
                out[i, j] += x[i, k] * w[k, j]


TRIALS["matmul"] = lambda draw, dtype: [
    (
        [
            draw.normal(size=(m, k)[:: -1 if flip_x else 1]).astype(dtype),
            draw.normal(size=(k, n)[:: -1 if flip_w else 1]).astype(dtype),
        ],
        {"transpose_x": flip_x, "transpose_w": flip_w},
    )
    for m, k, n in ((1, 1, 1), (3, 5, 4), (0, 2, 3), (2, 0, 3), (17, 33, 9))
    for flip_x, flip_w in ((False, False), (True, False), (False, True))
]


def tile_shape():
    """(bytes of a vector register, rows of the tile, vectors in a row): the sums must fit beside one row of w."""
    features = host_features()
    if features.get("avx512f"):
        return 64, 16, 1  # 32 registers. 16 sums are more than enough: an addition takes 4 cycles, 1 or 2 start in each
    if platform.machine() in ("arm64", "aarch64"):
        return 16, 8, 2  # 32 registers
    return 32 if features.get("avx2") else 16, 4, 2  # 16 registers: 8 sums, 2 of w, 1 of x, 1 for a product


BYTES, ROWS, VECTORS = tile_shape()
DEPTH = 4096  # bytes of k in one go (1,024 float32): a strip of w is read once for each tile, and shall lie near by
BLOCK = 64  # rows of x packed in one go: they stay in the second cache while all of w passes by


def vectors(context, builder, signature, arguments):
    """Vector instructions on the arrays among an intrinsic's arguments, as functions that emit them."""
    dtype = signature.args[0].dtype
    size, lanes = dtype.bitwidth // 8, BYTES * 8 // dtype.bitwidth
    vector, i32 = ir.VectorType(context.get_value_type(dtype), lanes), ir.IntType(32)
    zero = ir.Constant(vector, None)
    arrays = {
        n: context.make_array(t)(context, builder, arguments[n])
        for n, t in enumerate(signature.args)
        if isinstance(t, kinds.Array)
    }

    def shape(n):
        return cgutils.unpack_tuple(builder, arrays[n].shape)

    def plus(x, n):
        return builder.add(x, x.type(n))

    def at(n, *index):
        """The address of element [index] of argument n; an index is a number or one of the program's integers."""
        index = [context.get_constant(kinds.intp, i) if isinstance(i, int) else i for i in index]
        return cgutils.get_item_pointer(context, builder, signature.args[n], arrays[n], index)

    def shuffle(x, y, order):
        return builder.shuffle_vector(x, y, ir.Constant(ir.VectorType(i32, lanes), order))

    def splat(x):
        """A vector with x in every lane."""
        one = builder.insert_element(ir.Constant(ir.VectorType(x.type, lanes), ir.Undefined), x, i32(0))
        return shuffle(one, one, [0] * lanes)

    def before(j, end):
        """Which lanes of a vector that starts at column j lie before column `end`."""
        left = splat(builder.trunc(builder.sub(end, j), i32))
        return builder.icmp_signed(">", left, ir.Constant(left.type, list(range(lanes))))

    def masked(name, result, *values):
        function = ir.FunctionType(result, [v.type for v in values])
        name = f"llvm.masked.{name}.v{lanes}f{8 * size}.p0"
        return builder.call(cgutils.get_or_insert_function(builder.module, function, name), values)

    def load(address, mask=None):
        address = builder.bitcast(address, vector.as_pointer())
        if mask is None:
            return builder.load(address, align=size)
        return masked("load", vector, address, i32(size), mask, zero)  # 0 in the other lanes

    def store(value, address, mask=None):
        address = builder.bitcast(address, vector.as_pointer())
        if mask is None:
            builder.store(value, address, align=size)
        else:
            masked("store", ir.VoidType(), value, address, i32(size), mask)

    def multiply_add(x, y, total):
        """total + x·y: float32 may become one instruction with one rounding (FMA), float64 never."""
        flags = ("contract",) if size == 4 else ()
        return builder.fadd(total, builder.fmul(x, y, flags=flags), flags=flags)

    return SimpleNamespace(
        lanes=lanes, zero=zero, shape=shape, plus=plus, at=at, shuffle=shuffle, splat=splat, before=before, load=load,
        store=store, multiply_add=multiply_add,
    )  # fmt: skip


@intrinsic
def add_tile(typing, out, i, j, xs, row, ws, depth, more):
    """out[i:i+ROWS, j:j+VECTORS·lanes] = Σₖ …, with `more` added to what is there; nothing beyond the edges is written.

    xs and ws are packed: xs[s, p, lane] belongs to row s·lanes + lane of the block, ws[s, p, lane] to that column.
    """

    def emit(context, builder, signature, arguments):
        _, i, j, _, row, _, depth, more = arguments
        v = vectors(context, builder, signature, arguments)
        i_end, j_end = v.shape(0)
        lanes, columns = row.type(v.lanes), [v.plus(j, c * v.lanes) for c in range(VECTORS)]
        masks = [v.before(column, j_end) for column in columns]
        sums = [[cgutils.alloca_once_value(builder, v.zero) for _ in columns] for _ in range(ROWS)]  # become registers

        def places():
            """(sum, its address in out, its live lanes) for the rows that exist."""
            for r in range(ROWS):
                with builder.if_then(builder.icmp_signed("<", v.plus(i, r), i_end)):
                    for total, column, mask in zip(sums[r], columns, masks):
                        yield total, v.at(0, v.plus(i, r), column), mask

        with builder.if_then(more):
            for total, address, mask in places():
                builder.store(v.load(address, mask), total)
        strip, lane, strip_w = builder.udiv(row, lanes), builder.urem(row, lanes), builder.udiv(j, lanes)

        def products(rows):
            """The sum over k, for that many rows of the tile."""
            with cgutils.for_range(builder, depth) as loop:
                ys = [v.load(v.at(5, v.plus(strip_w, c), loop.index, 0)) for c in range(VECTORS)]
                for r in range(rows):
                    one = v.at(3, v.plus(strip, r // v.lanes), loop.index, v.plus(lane, r % v.lanes))
                    x = v.splat(builder.load(one))
                    for y, total in zip(ys, sums[r]):
                        builder.store(v.multiply_add(x, y, builder.load(total)), total)

        def fitting(rows):
            """The sum over k with half the rows, if all that exist fit in there."""
            if rows == ROWS // 4:
                return products(rows)
            with builder.if_else(builder.icmp_signed("<", v.plus(i, rows // 2), i_end)) as (whole, half):
                with whole:
                    products(rows)
                with half:
                    fitting(rows // 2)

        fitting(ROWS)
        for total, address, mask in places():
            v.store(builder.load(total), address, mask)
        return context.get_dummy_value()

    return kinds.void(out, i, j, xs, row, ws, depth, more), emit


@intrinsic
def pack_square(typing, strips, s, p, source, i, j, i_end, j_end, turned):
    """strips[s, p + r, c] = source[i + r, j + c], or source[i + c, j + r] if turned, for r, c in range(lanes)."""

    def emit(context, builder, signature, arguments):
        _, s, p, _, i, j, i_end, j_end, turned = arguments
        v, rows = vectors(context, builder, signature, arguments), []
        last, mask = v.plus(i_end, -1), v.before(j, j_end)
        for r in range(v.lanes):
            row = v.plus(i, r)
            row = builder.select(builder.icmp_signed("<", row, last), row, last)  # beyond the edge: any row will do
            rows.append(v.load(v.at(3, row, j), mask))
        half = v.lanes // 2
        low = [n for c in range(half) for n in (c, v.lanes + c)]  # a0 b0 a1 b1 …, as a riffle shuffle mixes two halves
        high = [n + half for n in low]

        def keep(rows):
            for r, values in enumerate(rows):
                v.store(values, v.at(0, s, v.plus(p, r), 0))

        with builder.if_else(turned) as (across, straight):
            with straight:
                keep(rows)
            with across:  # log2(lanes) riffles of the rows transpose the square
                for _ in range(half.bit_length()):
                    rows = [v.shuffle(rows[r], rows[r + half], o) for r in range(half) for o in (low, high)]
                keep(rows)
        return context.get_dummy_value()

    return kinds.void(strips, s, p, source, i, j, i_end, j_end, turned), emit


@njit(nogil=True, error_model="numpy")
def pieces(n, size):
    """How many pieces of that size hold n."""
    return (n + size - 1) // size


@compile_cpu
def pack(strips, count, source, turned, k0, k1, c0, c1):
    """strips[s, p, l] = source[k0 + p, c0 + s·lanes + l], or source[c0 + …, k0 + p] if turned, for s in range(count)."""
    lanes = strips.shape[2]
    i0, i1, j0, j1 = (c0, c1, k0, k1) if turned else (k0, k1, c0, c1)
    rows, columns = (count * lanes, k1 - k0) if turned else (k1 - k0, count * lanes)
    for a in range(0, rows, lanes):
        for b in range(0, columns, lanes):  # along the rows of the source, as they lie in memory
            s, p = (a, b) if turned else (b, a)
            pack_square(strips, s // lanes, p, source, i0 + a, j0 + b, i1, j1, turned)


@compile_cpu
def matmul_rows(out, x, w, transpose_x, transpose_w, first):
    """out = the rows of x @ w from `first` on, as many as out has; x, w or both may be given transposed."""
    (m, n), k = out.shape, x.shape[0] if transpose_x else x.shape[1]
    lanes = BYTES // out.itemsize
    width, height = VECTORS * lanes, max(ROWS, lanes)  # strips come in multiples of a tile
    step = max(1, pieces(k, max(1, pieces(k * out.itemsize, DEPTH))))  # equal parts of k, none longer than DEPTH
    for_x, for_w = BLOCK // lanes, pieces(n, width) * VECTORS
    strips = np.empty((for_x + for_w, pieces(step, lanes) * lanes, lanes), out.dtype)
    xs, ws = strips[:for_x], strips[for_x:]
    for k0 in range(0, max(1, k), step):  # one part even if k is 0: the sums are 0.0 then
        k1 = min(k0 + step, k)
        pack(ws, for_w, w, transpose_w, k0, k1, 0, n)
        for i0 in range(0, m, BLOCK):
            i1 = min(i0 + BLOCK, m)
            count = pieces(i1 - i0, height) * height // lanes
            pack(xs, count, x, not transpose_x, k0, k1, first + i0, first + i1)
            for j in range(0, n, width):
                for i in range(i0, i1, ROWS):
                    add_tile(out, i, j, xs, i - i0, ws, k1 - k0, k0 > 0)


WORTH = 10_000_000  # products; to hand work to a thread and to wait for it takes about 80 µs
WORKERS = ThreadPoolExecutor()


def matmul_tiles(out, x, w, transpose_x=False, transpose_w=False):
    """out = x @ w; all C-contiguous, of one dtype; x, w or both may be given transposed, and are then read so."""
    (m, n), threads = out.shape, numba.get_num_threads()
    if m * n * x.shape[0 if transpose_x else 1] < WORTH or threads == 1:
        return matmul_rows(out, x, w, transpose_x, transpose_w, 0)
    share = -(-m // threads // ROWS) * ROWS
    parts = [(out[i : i + share], x, w, transpose_x, transpose_w, i) for i in range(0, m, share)]
    others = [WORKERS.submit(matmul_rows, *part) for part in parts[1:]]
    matmul_rows(*parts[0])
    for other in others:
        other.result()  # waits, and raises what the thread raised


@intrinsic
def fill_strip(typing, out, j, n, x, x_steps, w, w_steps, depth):
    """out[:, j:j+width] = x @ w for one strip of w, `width` the most columns that fit into a tile.

    Each array is seen as one long row: x_steps are (rows of x, numbers to the next row, to the next k); w_steps are
    (where the strip begins, numbers to the next k, to the next vector).
    """

    def emit(context, builder, signature, arguments):
        v = vectors(context, builder, signature, arguments)
        _, j, n, _, x_steps, _, w_steps, depth = arguments
        (m, x_row, x_k), (start, w_k, w_vector) = (cgutils.unpack_tuple(builder, steps) for steps in (x_steps, w_steps))
        number, add, times = n.type, builder.add, builder.mul

        def tile(i, rows, width, mask):
            """out[i:i+rows, j:j+width·lanes]: the sums over k, in registers, and stored."""
            places = [(r, c) for r in range(rows) for c in range(width)]
            sums = {place: cgutils.alloca_once_value(builder, v.zero) for place in places}
            firsts = [times(v.plus(i, r), x_row) for r in range(rows)]
            strips = [add(start, times(number(c), w_vector)) for c in range(width)]
            with cgutils.for_range(builder, depth) as loop:
                ys = [v.load(v.at(5, 0, add(strip, times(loop.index, w_k))), mask) for strip in strips]
                xs = [v.splat(builder.load(v.at(3, 0, add(first, times(loop.index, x_k))))) for first in firsts]
                for (r, c), total in sums.items():
                    builder.store(v.multiply_add(xs[r], ys[c], builder.load(total)), total)
            for (r, c), total in sums.items():
                place = add(times(v.plus(i, r), n), v.plus(j, c * v.lanes))
                v.store(builder.load(total), v.at(0, 0, place), mask)

        def strip(width, mask=None):
            """All rows: four at a time, and then the rest one by one."""
            whole = builder.and_(m, number(-4))
            for begin, end, rows in ((number(0), whole, 4), (whole, m, 1)):
                with cgutils.for_range_slice(builder, begin, end, number(rows), number) as (i, _):
                    tile(i, rows, width, mask)

        def fitting(width):
            """The strip with half the vectors, if so many do not fit; the last vector may be a part of one."""
            if width == 0:
                return strip(1, v.before(j, n))
            fits = builder.icmp_signed("<=", v.plus(j, width * v.lanes), n)
            with builder.if_else(fits) as (yes, no):
                with yes:
                    strip(width)
                with no:
                    fitting(width // 2)

        fitting(ROWS * VECTORS // 4)
        return context.get_dummy_value()

    return kinds.void(out, j, n, x, x_steps, w, w_steps, depth), emit


@compile_cpu
def matmul_strips(out, m, n, k, x, turned_x, w, turned_w):
    """out[m, n] = x @ w, seen as one long row; x, w or both may be given transposed."""
    lanes = BYTES // out.itemsize
    width, j = ROWS * VECTORS // 4 * lanes, 0
    x_steps = (m, 1, x.shape[1]) if turned_x else (m, x.shape[1], 1)
    depth = pieces(k, lanes) * lanes if turned_w else 0
    packed = np.empty((width // lanes, depth, lanes), out.dtype)
    flat = packed.reshape(1, packed.size)
    while j < n:
        while width > lanes and j + width > n:
            width //= 2
        if turned_w:
            pack(packed, width // lanes, w, True, 0, k, j, min(j + width, n))
            fill_strip(out, j, n, x, x_steps, flat, (0, lanes, depth * lanes), k)
        else:
            fill_strip(out, j, n, x, x_steps, w, (j, n, lanes), k)
        j += width


@compile_cpu
def matmul_small(turned_x, turned_w, out, x, w):
    """out = x @ w without packing what can be read where it lies; x, w or both may be given transposed."""
    (m, n), k = out.shape, x.shape[0] if turned_x else x.shape[1]
    if n == 1:
        matmul_strips(out, 1, m, k, w, not turned_w, x, not turned_x)
    else:
        matmul_strips(out, m, n, k, x, turned_x, w, turned_w)


def plan_tiles(op, function, x, w, transpose_x=False, transpose_w=False):
    """As plan_matmul; and where the kernel is the course's own, the same sums in tiles."""
    made = plan_matmul(op, function, x, w, transpose_x, transpose_w)
    (m, n), k = made.spec.shape, x.shape[0 if transpose_x else 1]
    if function.py_func is not matmul_ikj:
        return made
    if min(m, k, n) >= 16 and m * k * n >= SMALL:

        def run(out, x, w):
            matmul_tiles(out, x, w, transpose_x, transpose_w)

        made.run = run
    else:
        array = kinds.Array(numba.from_dtype(made.spec.dtype), 2, "C")
        program = matmul_small.compile((kinds.intp, kinds.intp, array, array, array))
        made.run = functools.partial(program, int(transpose_x), int(transpose_w))
    return made


SMALL = 2**18  # products
PLANNERS["matmul"] = plan_tiles
PLANS.clear()

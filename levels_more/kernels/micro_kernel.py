"""The inner part of the matrix product: tiles of sums, and transposes of small squares, in vector registers."""

import platform
from types import SimpleNamespace

from llvmlite import binding, ir

from levels_more.kernels.intrinsics import intrinsic


def tile_shape():
    """Return (bytes of a vector register, rows of a tile, vectors per row): registers hold all sums and a row of w."""
    features = binding.get_host_cpu_features()
    if features.get("avx512f"):
        return 64, 16, 1  # 32 registers. 16 sums suffice: an addition takes 4 cycles, and 1 or 2 can start in each
    if platform.machine() in ("arm64", "aarch64"):
        return 16, 8, 2  # 32 registers
    return 32 if features.get("avx2") else 16, 4, 2  # 16 registers: 8 sums, 2 of w, 1 of x, 1 for a product


VECTOR_BYTES, TILE_ROWS, TILE_VECTORS = tile_shape()
LOW_TILE_VECTORS = TILE_ROWS * TILE_VECTORS // 4  # vectors per row of a tile with four rows


def arrays(context, builder, signature, arguments):
    """Return functions that emit addresses in the arrays among an intrinsic's arguments, and the rows of argument 0."""
    from numba.core import cgutils, types

    def array(n):
        return context.make_array(signature.args[n])(context, builder, arguments[n])

    def plus(x, n):
        return builder.add(x, x.type(n))

    def at(n, *index):
        """Emit the address of element [index] of argument n. An index is an int or an integer of the program."""
        index = [context.get_constant(types.intp, i) if isinstance(i, int) else i for i in index]
        return cgutils.get_item_pointer(context, builder, signature.args[n], array(n), index)

    rows = cgutils.unpack_tuple(builder, array(0).shape)[0]  # of argument 0
    return SimpleNamespace(plus=plus, at=at, rows=rows)


def vectors(context, builder, signature, arguments):
    """Return functions that emit vector instructions on the arrays among an intrinsic's arguments."""
    from numba.core import cgutils

    dtype = signature.args[0].dtype
    size = dtype.bitwidth // 8
    lanes = VECTOR_BYTES * 8 // dtype.bitwidth
    vector, i32 = ir.VectorType(context.get_value_type(dtype), lanes), ir.IntType(32)
    zero, everywhere = ir.Constant(vector, None), ir.Constant(ir.VectorType(ir.IntType(1), lanes), [True] * lanes)

    def shuffle(x, y, order):
        return builder.shuffle_vector(x, y, ir.Constant(ir.VectorType(i32, lanes), order))

    def splat(x):
        """Emit a vector with x in every lane."""
        one = builder.insert_element(ir.Constant(ir.VectorType(x.type, lanes), ir.Undefined), x, i32(0))
        return shuffle(one, one, [0] * lanes)

    def masked(name, result, *values):
        function = ir.FunctionType(result, [v.type for v in values])
        name = f"llvm.masked.{name}.v{lanes}f{8 * size}.p0"
        return builder.call(cgutils.get_or_insert_function(builder.module, function, name), values)

    def load(address, mask=everywhere):
        address = builder.bitcast(address, vector.as_pointer())
        return masked("load", vector, address, i32(size), mask, zero)  # 0 in the other lanes

    def store(value, address, mask=everywhere):
        address = builder.bitcast(address, vector.as_pointer())
        masked("store", ir.VoidType(), value, address, i32(size), mask)

    here = vars(arrays(context, builder, signature, arguments))
    own = {"zero": zero, "shuffle": shuffle, "splat": splat, "load": load, "store": store}
    return SimpleNamespace(**here, **own, lanes=lanes, everywhere=everywhere)


def lanes_before(builder, v, j, end):
    """Emit the mask of the lanes that lie before column `end`, for a vector that starts at column j."""
    i32 = ir.IntType(32)
    left = v.splat(builder.trunc(builder.sub(end, j), i32))
    return builder.icmp_signed(">", left, ir.Constant(left.type, list(range(v.lanes))))


def multiply_add(builder, x, y, total):
    """Emit total + x·y. For float32 it may become one instruction with one rounding (FMA), for float64 never."""
    flags = ("contract",) if isinstance(total.type.element, ir.FloatType) else ()
    return builder.fadd(total, builder.fmul(x, y, flags=flags), flags=flags)


def write_tile(builder, v, i, j, rows, count, x_steps, w_steps, depth, more, mask):
    """Emit out[i:i+rows, j:j+count·lanes] = Σₖ …, with sums in registers for all k. Arguments: as in macro_kernel."""
    from numba.core import cgutils

    x_row, x_lane, x_k = x_steps
    start, w_k, w_vector = w_steps
    add = builder.add
    times = builder.mul
    number = i.type
    sums = {(r, c): cgutils.alloca_once_value(builder, v.zero) for r in range(rows) for c in range(count)}
    places = {(r, c): v.at(0, v.plus(i, r), v.plus(j, c * v.lanes)) for r, c in sums}
    with builder.if_then(more):
        for place, total in sums.items():
            builder.store(v.load(places[place], mask), total)
    lane = builder.and_(i, number(v.lanes - 1))
    first = add(times(builder.sub(i, lane), x_row), times(lane, x_lane))
    steps = [divmod(r, v.lanes) for r in range(rows)]
    firsts = [add(first, add(times(number(a * v.lanes), x_row), times(number(b), x_lane))) for a, b in steps]
    starts = [add(start, times(number(c), w_vector)) for c in range(count)]
    with cgutils.for_range(builder, depth) as loop:
        ys = [v.load(v.at(6, 0, add(one, times(loop.index, w_k))), mask) for one in starts]
        xs = [v.splat(builder.load(v.at(4, 0, add(one, times(loop.index, x_k))))) for one in firsts]
        for (r, c), total in sums.items():
            builder.store(multiply_add(builder, xs[r], ys[c], builder.load(total)), total)
    for place, total in sums.items():
        v.store(builder.load(total), places[place], mask)


def whole_pieces(builder, begin, end, size, fits):
    """Emit a loop over the whole pieces of that size before `end`, or none unless `fits`. Returns (loop, its end)."""
    from numba.core import cgutils

    whole = builder.and_(builder.sub(end, begin), begin.type(-size))
    end = builder.add(begin, builder.select(fits, whole, begin.type(0)))
    return cgutils.for_range_slice(builder, begin, end, begin.type(size), begin.type), end


@intrinsic
def macro_kernel(typing, out, j, width, high, x, x_steps, w, w_steps, depth, more):
    """Compute out[:, j:j+width] = Σₖ …, or += with `more`. Nothing beyond the edges is read or written.

    x and w are addressed as flat memory, and w begins at column j. x_steps: the distances to the next `lanes` rows
    (divided by lanes), to the next row among these, and to the next k. w_steps: the distances to the next k, and to the
    next vector. Tiles have at most `high` rows.
    """
    from numba.core import cgutils, types

    def emit(context, builder, signature, arguments):
        v = vectors(context, builder, signature, arguments)
        _, first, width, high, _, x_steps, _, w_steps, depth, more = arguments
        x_steps = cgutils.unpack_tuple(builder, x_steps)
        w_k, w_vector = cgutils.unpack_tuple(builder, w_steps)
        number = first.type

        def panel(j, count, mask=v.everywhere):
            """Emit all rows, in tiles as high as the registers allow."""
            begin = number(0)
            start = builder.mul(builder.udiv(builder.sub(j, first), number(v.lanes)), w_vector)
            for rows in sorted({r for r in (TILE_ROWS, 4, 1) if r * count <= TILE_ROWS * TILE_VECTORS}, reverse=True):
                fits = builder.icmp_signed("<=", number(rows), high)
                loop, begin = whole_pieces(builder, begin, v.rows, rows, fits)
                with loop as (i, _):
                    write_tile(builder, v, i, j, rows, count, x_steps, (start, w_k, w_vector), depth, more, mask)

        begin, end = first, builder.add(first, width)
        for count in sorted({LOW_TILE_VECTORS, TILE_VECTORS, 1}, reverse=True):
            fits = builder.icmp_signed("<=", builder.mul(high, number(count)), number(TILE_ROWS * TILE_VECTORS))
            loop, begin = whole_pieces(builder, begin, end, count * v.lanes, fits)
            with loop as (j, _):
                panel(j, count)
        with builder.if_then(builder.icmp_signed("<", begin, end)):
            panel(begin, 1, lanes_before(builder, v, begin, end))
        return context.get_dummy_value()

    return types.void(out, j, width, high, x, x_steps, w, w_steps, depth, more), emit


@intrinsic
def pack_square(typing, panels, s, p, source, i, j, i_end, j_end, turned):
    """panels[s, p + r, c] = source[i + r, j + c], or source[i + c, j + r] if turned, for r, c in range(lanes)."""
    from numba.core import types

    def emit(context, builder, signature, arguments):
        _, s, p, _, i, j, i_end, j_end, turned = arguments
        v = vectors(context, builder, signature, arguments)
        rows = []
        last = v.plus(i_end, -1)
        mask = lanes_before(builder, v, j, j_end)
        for r in range(v.lanes):
            row = v.plus(i, r)
            row = builder.select(builder.icmp_signed("<", row, last), row, last)  # beyond the edge, any row will do
            rows.append(v.load(v.at(3, row, j), mask))
        half = v.lanes // 2
        low = [n for c in range(half) for n in (c, v.lanes + c)]  # a0 b0 a1 b1 …, the order of a riffle shuffle
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

    return types.void(panels, s, p, source, i, j, i_end, j_end, turned), emit

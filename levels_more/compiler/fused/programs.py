"""The programs of ops that are not elementwise loops: products, sums, row kernels, copies.

Each program is written once for its sizes and its dtype. PARTS gives the program of an op.
"""

import functools
import itertools
import math
from contextlib import nullcontext

import numpy as np

from levels.hardware import Index, address_of, select
from levels.kernels import KERNELS, reduced
from levels.low_level import NoProgram
from levels_more.compiler.fused.threads import grid, shares
from levels_more.compiler.typed_assembler import all_lanes, assembler
from levels_more.hardware.lanes import LaneIndex
from levels_more.hardware.locks import while_held
from levels_more.kernels.batched_matmul import products_of
from levels_more.kernels.micro_kernel import TILE_ROWS, TILE_VECTORS

HIGH = TILE_ROWS * TILE_VECTORS * 3 // 4  # rows of a tile two registers wide: its sums leave some registers for x and w
WORTH_COPYING = 4  # tiles; if fewer of them read some columns of w, these stay where they are
DEEP = 512  # numbers; longer columns of a transposed x, and of w, leave the near caches
WIDEST_ROW = 64  # numbers; a longer row is not unrolled


def write_sums(a, out, x, w, k, rows, j, column, turned_x=False, turned_w=False, front=((), (), ()), first=None):
    """out[i, j] = Σₖ x[i, k]·w[k, column] for these rows, with the sums in registers. x or w may be transposed.

    `front`: the indices before these two, in out, x and w. Where there is a condition `first`, and it is false, the sum
    is added to out[i, j].
    """
    of_out, of_x, of_w = front
    sums = [a.sum() for _ in rows]
    with a.loop(k) as p:
        y = a.load(w, *of_w, column, p) if turned_w else a.load(w, *of_w, p, column)
        for total, i in zip(sums, rows, strict=True):
            total += (a.load(x, *of_x, p, i) if turned_x else a.load(x, *of_x, i, p)) * y
    for total, i in zip(sums, rows, strict=True):
        value = total.value()
        if first is not None:
            value = select(first, 0.0, a.load(out, *of_out, i, j)) + value
        a.store(value, out, *of_out, i, j)


def copy_across(a, panel, w, before, first, k):
    """panel[p, c] = w[first + c, p] for whole squares: log2(lanes) riffles of the rows of a square transpose it."""
    lanes = all_lanes(a.dtype)
    kind = f"<{lanes} x {a.real}>"
    half = lanes // 2
    orders = [", ".join(f"i32 {begin + n}" for c in range(half) for n in (c, lanes + c)) for begin in (0, half)]
    with a.loop(k // lanes) as t, a.loop(a.lanes // lanes) as s:
        p, c = (a.write(f"mul i64 {each.register}, {lanes}") for each in (t, s))
        c_first = a.write(f"add i64 {c}, {first.register}")
        rows = [Index(a, a.write(f"add i64 {c_first}, {r}"), w.shape[-2]) for r in range(lanes)]
        rows = [address_of(a, w, [*before, row, Index(a, p, k)]) for row in rows]
        rows = [a.write(f"load {kind}, ptr {row}, align {a.dtype.itemsize}") for row in rows]
        for _ in range(half.bit_length()):
            pairs = [f"{kind} {rows[r]}, {kind} {rows[r + half]}" for r in range(half)]
            rows = [a.write(f"shufflevector {pair}, <{lanes} x i32> <{order}>") for pair in pairs for order in orders]
        for r, row in enumerate(rows):
            place = [Index(a, a.write(f"add i64 {p}, {r}"), k), Index(a, c, a.lanes)]
            a.emit(f"store {kind} {row}, ptr {address_of(a, panel, place)}, align {a.dtype.itemsize}")


@while_held
def product_program(
    m, k, n, dtype, turned_x, turned_w, rows=None, columns=None, count=1, own_x=False, own_w=False, added=False
):
    """out[m, n] = x[m, k] @ w[k, n], or its first rows and columns. Its array `panel` is scratch memory.

    x or w may be transposed. It may compute `count` products, each with its own x (`own_x`) or w (`own_w`), or the sum
    of all (`added`).
    """
    rows = rows or m
    columns = columns or n
    lanes = all_lanes(dtype)
    a = assembler("product", dtype, lanes if columns <= lanes else 2 * lanes)
    own = [count > 1 and each for each in (not added, own_x, own_w)]
    front = [(count,) * each for each in own]
    out = a.array("out", *front[0], m, n)
    x = a.array("x", *front[1], *((k, m) if turned_x else (m, k)))
    w = a.array("w", *front[2], *((n, k) if turned_w else (k, n)))
    panel = a.array("panel", k, 2 * lanes)
    tiles = math.ceil(rows / HIGH)
    high = math.ceil(rows / tiles)  # tiles of about equal height, with no more sums than registers
    with a.loop(count) as b, a.loop(columns, a.lanes) as j:
        front = [(b,) * each for each in own]
        first = a.count(b) == 0.0 if added else None
        source = w, j
        if turned_w or tiles >= WORTH_COPYING:  # copy these columns, so that they are contiguous
            source = panel, LaneIndex(a, "0", a.lanes, j.each)
            if turned_w and k % lanes == 0 and columns % a.lanes == 0:
                copy_across(a, panel, w, front[2], j, k)
            else:
                with a.loop(k) as p:
                    a.store(a.load(w, *front[2], *((j, p) if turned_w else (p, j))), panel, p, source[1])
            front[2] = ()
        with a.loop(rows // high) as t:
            begin = a.write(f"mul i64 {t.register}, {high}")
            tile = [Index(a, a.write(f"add i64 {begin}, {r}"), rows) for r in range(high)]
            write_sums(a, out, x, source[0], k, tile, j, source[1], turned_x, front=front, first=first)
        if rows % high:
            tile = range(rows - rows % high, rows)
            write_sums(a, out, x, source[0], k, tile, j, source[1], turned_x, front=front, first=first)
    return a.assemble()


@while_held
def column_program(m, k, dtype):
    """out[m] = x[m, k] @ w[k], each a sum over the lanes."""
    a = assembler("column", dtype, None)
    out = a.array("out", m)
    x = a.array("x", m, k)
    w = a.array("w", k)
    with a.loop(m) as i:
        total = a.sum()
        with a.loop(k, a.lanes) as p:
            total += a.load(x, i, p) * a.load(w, p)
        a.store(total.total(), out, i)
    return a.assemble()


def product_of(node, parts=1, added=None):
    """The program of a matmul, or of the sum `added` of its products, in parts as in PARTS. NoProgram for integers."""
    x, w = node.inputs
    dtype = node.spec.dtype
    if dtype.kind != "f":
        raise NoProgram(f"{node!r}: a product of whole numbers is left to its kernel")
    turned_x, turned_w = (bool(node.attrs.get(f"transpose_{name}")) for name in "xw")
    _, total, m, k, n, own_x, own_w = products_of(node.op, x.spec.shape, w.spec.shape, turned_x, turned_w)
    if added and dtype == np.float32 and turned_x and not turned_w:  # the k of neighbours may become one
        together = max(d for d in range(1, total + 1) if total % d == 0 and (d == 1 or d * k <= DEEP))
        total, k = total // together, together * k
    panel = node.spec.device.spec((k, 2 * all_lanes(dtype)), dtype)
    found = []
    if total > 1 and not added:
        for i, count in shares(total, parts):
            program = product_program(m, k, n, dtype, turned_x, turned_w, m, n, count, own_x, own_w)
            found.append((program, [(node, i * m * n), (x, i * m * k * own_x), (w, i * k * n * own_w), (panel, 0)]))
        return found
    if n == 1 and dtype == np.float32 and not turned_x and not added:
        # (in float64 such a sum has no lanes, and many sums side by side are faster)
        return [(column_program(rows, k, dtype), [(node, i), (x, i * k), (w, 0)]) for i, rows in shares(m, parts)]
    if n == 1 and turned_x:
        x, w, m, n, turned_x, turned_w = w, x, 1, m, False, False
    wide = 2 * all_lanes(dtype)
    down, across = grid(math.ceil(m / HIGH), math.ceil(n / wide), parts)
    whole = n // wide * wide
    columns = shares(whole, across, wide)
    if whole < n:  # the rest apart: it needs a mask
        columns.append((whole, n - whole))
    for (i, rows), (j, width) in itertools.product(shares(m, down), columns):
        program = product_program(m, k, n, dtype, turned_x, turned_w, rows, width, total, own_x, own_w, bool(added))
        begins = (added or node, i * n + j), (x, i if turned_x else i * k), (w, j * k if turned_w else j), (panel, 0)
        found.append((program, begins))
    return found


@while_held
def sum_program(before, within, after, mean, dtype, rows, columns, in_order=False):
    """out[:rows, :columns] of out[before, after] = the sum, or mean, of x[before, within, after] over its middle axis.

    A size may be a name, whose value each call passes. Float32 is added in any order, unless `in_order`.
    """
    last = after == 1
    a = assembler("sum", dtype, 1 if last and (in_order or dtype != np.float32) else all_lanes(dtype))
    out = a.array("out", before, after)
    x = a.array("x", before, within, *[after] * (not last))
    with a.loop(rows) as i, nullcontext(0) if last else a.loop(columns, a.lanes) as j:
        total = a.sum()
        with a.loop(within, a.lanes if last else 1) as k:
            total += a.load(x, i, k, *[j] * (not last))
        total = total.total() if last else total.value()
        a.store(total / a.count(within) if mean else total, out, i, j)
    return a.assemble()


def sum_of(node, parts=1, mean=False):
    """The program of a sum or a mean in parts, as in PARTS. Raises NoProgram for a mean of whole numbers."""
    (x,) = node.inputs
    dtype = node.spec.dtype
    lanes = all_lanes(dtype)
    if mean and dtype.kind == "i":
        raise NoProgram(f"{node!r} of whole numbers is left to its kernel")
    before, within, after = reduced(node.op, x.spec.shape, node.attrs.get("axis"))[1]
    down, across = grid(before, math.ceil(after / lanes), parts)
    found = []
    for (i, rows), (j, columns) in itertools.product(shares(before, down), shares(after, across, lanes)):
        program = sum_program(before, within, after, mean, dtype, rows, columns)
        found.append((program, [(node, i * after + j), (x, i * within * after + j)]))
    return found


@while_held
def rows_program(function, inputs, rows, width, dtype):
    """out[rows, width] = this row kernel of so many inputs. Each lane computes one row, whose loop is unrolled."""
    a = assembler("rows", dtype, all_lanes(dtype))
    out, *arrays = (a.array(name, rows, width) for name in ("out", *(f"x{n}" for n in range(inputs))))
    with a.loop(rows, a.lanes) as i:
        values = np.empty((1, width), object)
        function(values, *(np.array([[a.load(x, i, j) for j in range(width)]], object) for x in arrays))
        for j in range(width):
            a.store(values[0, j], out, i, j)
    return a.assemble()


def row_kernel_of(node, parts=1):
    """The program of a row kernel in parts, as in PARTS. Raises NoProgram for long rows."""
    *_, width = node.spec.shape
    if width > WIDEST_ROW:
        raise NoProgram(f"{node!r} has rows of {width} numbers; a program writes out {WIDEST_ROW}")
    kernel = KERNELS[node.op, node.spec.device.kind]
    count = math.prod(node.spec.shape) // width
    found = []
    for begin, rows in shares(count, parts, all_lanes(node.spec.dtype)):
        program = rows_program(kernel, len(node.inputs), rows, width, node.spec.dtype)
        found.append((program, [(x, begin * width) for x in (node, *node.inputs)]))
    return found


@while_held
def fetch_program(batch, width, dtype, count):
    """out[i] = x[batches[now, i]] for the first `count` rows i."""
    a = assembler("fetch", dtype, all_lanes(dtype))
    batches = a.array("batches", "steps", batch, rows_of="rows")
    now = a.array("now", 1, rows_of="steps")
    x = a.array("x", "rows", width)
    out = a.array("out", batch, width)
    with a.loop(count) as i:
        row = a.load(batches, a.load(now, 0), i)
        with a.loop(width, a.lanes) as j:
            a.store(a.load(x, row, j), out, i, j)
    return a.assemble()


@while_held
def copy_program(count, dtype):
    """out = x"""
    a = assembler("copy", dtype, all_lanes(dtype))
    out = a.array("out", count)
    x = a.array("x", count)
    with a.loop(count, a.lanes) as i:
        a.store(a.load(x, i), out, i)
    return a.assemble()


@while_held
def keep_program(dtype):
    """out[now] = x[0]: keep the result of a step at the index of that step."""
    a = assembler("keep", dtype, 1)
    out = a.array("out", "steps")
    x = a.array("x", 1)
    now = a.array("now", 1, rows_of="steps")
    a.store(a.load(x, 0), out, a.load(now, 0))
    return a.assemble()


def copy_of(node, parts=1):
    """The program, in parts as in PARTS, of an op that only changes the shape: a copy."""
    found = shares(math.prod(node.spec.shape), parts, all_lanes(node.spec.dtype))
    return [(copy_program(count, node.spec.dtype), [(x, i) for x in (node, *node.inputs)]) for i, count in found]


def single_part(program_of):
    """Make a row of PARTS with one part. program_of(node) gives the program and the nodes of its arrays."""

    def in_one_part(node, parts=1):
        program, taken = program_of(node)
        return [(program, [(x, 0) for x in taken])]

    return in_one_part


# op -> function(node, parts) -> [(a program, [(x, begin), …]), …]: about this many parts, which are independent. For
# each array, x is the node whose memory it is, or a Spec for new memory; `begin` is where the part begins.
PARTS = {
    "matmul": product_of,
    "reduce_sum": sum_of,
    "reduce_mean": functools.partial(sum_of, mean=True),
    "reshape": copy_of,
    "softmax": row_kernel_of,
    "softmax_grad": row_kernel_of,
    "log_softmax": row_kernel_of,
    "log_softmax_grad": row_kernel_of,
}

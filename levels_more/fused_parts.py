"""The programs of ops that are no loop over single numbers: products, sums, rows, copies; and the list that runs them all.

Each program is written once for its sizes and its dtype. PARTS says which program an op is.
"""

import functools
import math
from contextlib import nullcontext

import numpy as np

from levels.hardware import Assembler, Index
from levels.kernels import KERNELS, TILE_ROWS, TILE_VECTORS, WORTH_PACKING, reduced
from levels.low_level import NoProgram

from .wholes import all_lanes, assembler

NEAR_BYTES = 2**21  # a larger `w` would be read from far away, once for each tile (measured)
WIDEST_ROW = 64  # numbers; a longer row is not written out


@functools.cache
def list_program():
    """Run the programs of a table (the address of each, and of its block) one by one; and all of that `steps` times."""
    a = Assembler("list", np.float64)
    table = a.array("table", "programs", 2, rows_of=2**31 - 1)
    a.array("now", "steps", rows_of=2**31 - 1)  # only its first place is used; a size has to be that of an array
    with a.loop("steps") as step:
        a.emit(f"store i64 {step.register}, ptr {a.word('now', 'ptr')}")
        with a.loop("programs") as n:
            program, block = (a.write(f"inttoptr i64 {a.load(table, n, k).register} to ptr") for k in (0, 1))
            a.emit(f"call void {program}(ptr {block})")
    return a.assemble()


class _ProductWriter:
    """Writes out[m, n] = x[m, k] @ w[k, n] in tiles whose sums stay in registers; x or w may lie the other way round."""

    def __init__(self, m, k, n, dtype, turned_x, turned_w):
        self.a = a = Assembler("product", dtype, all_lanes(dtype))
        self.k, self.turned_x = k, turned_x
        self.out, self.x = a.array("out", m, n), a.array("x", *((k, m) if turned_x else (m, k)))
        self.w = a.array("w", *((n, k) if turned_w else (k, n)))
        self.strip = a.array("strip", k, a.lanes)  # memory for some columns of w
        count = math.ceil(m / (TILE_ROWS * TILE_VECTORS))
        high = math.ceil(m / count)  # tiles of about one height, none with more sums than registers
        with a.loop(n, a.lanes) as j:
            columns = self.fetched(j) if turned_w else (self.w, j)
            with a.loop(m // high) as t:
                first = a.write(f"mul i64 {t.register}, {high}")
                self.tile([Index(a, a.write(f"add i64 {first}, {r}"), m) for r in range(high)], j, *columns)
            if m % high:
                self.tile(range(m - m % high, m), j, *columns)

    def fetched(self, j):
        """The columns j of a w that lies turned, where neighbours lie apart: fetched once, not once for each tile."""
        a = self.a
        place = Index(a, "0", a.lanes, j.each)
        with a.loop(self.k) as p:
            a.store(a.load(self.w, j, p), self.strip, p, place)
        return self.strip, place

    def tile(self, rows, j, w, column):
        """These rows of the columns j: a sum for each row."""
        a = self.a
        sums = [a.sum() for _ in rows]
        with a.loop(self.k) as p:
            y = a.load(w, p, column)
            for total, i in zip(sums, rows, strict=True):
                total += a.load(self.x, *((p, i) if self.turned_x else (i, p))) * y
        for total, i in zip(sums, rows, strict=True):
            a.store(total.value(), self.out, i, j)


@functools.cache
def product_program(m, k, n, dtype, turned_x, turned_w):
    """out[m, n] = x[m, k] @ w[k, n]; its arrays are out, x, w and `strip`, memory for k numbers in each lane."""
    return _ProductWriter(m, k, n, dtype, turned_x, turned_w).a.assemble()


@functools.cache
def column_program(m, k, dtype):
    """out[m] = x[m, k] @ w[k], each a sum over the lanes."""
    a = Assembler("column", dtype)
    out, x, w = a.array("out", m), a.array("x", m, k), a.array("w", k)
    with a.loop(m) as i:
        total = a.sum()
        with a.loop(k, a.lanes) as p:
            total += a.load(x, i, p) * a.load(w, p)
        a.store(total.total(), out, i)
    return a.assemble()


def _threads():
    """How many threads share a large product of level 2."""
    import numba

    return numba.get_num_threads()


def product_of(node):
    """The program of a matmul, and whose memory its arrays are. Raises NoProgram for one that level 2 does quicker."""
    (x, w), (m, n), dtype = node.inputs, node.spec.shape, node.spec.dtype
    turned_x, turned_w = (bool(node.attrs.get(f"transpose_{name}")) for name in "xw")
    k = x.spec.shape[0 if turned_x else 1]
    if m * k * n >= WORTH_PACKING and (_threads() > 1 or w.spec.nbytes > NEAR_BYTES):
        raise NoProgram(f"{node!r} is worth several threads, or packing")
    strip = node.spec.device.spec((k, all_lanes(dtype)), dtype)
    if n == 1 and turned_x:
        return product_program(1, k, m, dtype, False, False), [node, w, x, strip]
    if n == 1 and dtype == np.float32:  # (in float64 such a sum has no lanes, and many side by side are quicker)
        return column_program(m, k, dtype), [node, x, w]
    return product_program(m, k, n, dtype, turned_x, turned_w), [node, x, w, strip]


@functools.cache
def sum_program(before, within, after, count, dtype):
    """out[before, after] = the sum of x[before, within, after] over its middle, divided by `count`."""
    last = after == 1
    a = assembler("sum", dtype, 1 if last and dtype != np.float32 else all_lanes(dtype))
    out, x = a.array("out", before, after), a.array("x", before, within, *[after] * (not last))
    with a.loop(before) as i, nullcontext(0) if last else a.loop(after, a.lanes) as j:
        total = a.sum()
        with a.loop(within, a.lanes if last else 1) as k:
            total += a.load(x, i, k, *[j] * (not last))
        total = total.total() if last else total.value()
        a.store(total if count == 1.0 else total / count, out, i, j)
    return a.assemble()


def sum_of(node, mean=False):
    """The program of a sum or a mean, and whose memory its arrays are."""
    x = node.inputs[0]
    if mean and x.spec.dtype.kind == "i":
        raise NoProgram(f"{node!r} of whole numbers is left to its kernel")
    before, within, after = reduced(node.op, x.spec.shape, node.attrs.get("axis"))[1]
    return sum_program(before, within, after, float(within) if mean else 1.0, node.spec.dtype), [node, x]


@functools.cache
def rows_program(function, inputs, rows, width, dtype):
    """out[rows, width] = this kernel of so many inputs: the rows side by side, a row written out."""
    a = Assembler("rows", dtype, all_lanes(dtype))
    out, *arrays = (a.array(name, rows, width) for name in ("out", *(f"x{n}" for n in range(inputs))))
    with a.loop(rows, a.lanes) as i:
        values = np.empty((1, width), object)
        function(values, *(np.array([[a.load(x, i, j) for j in range(width)]], object) for x in arrays))
        for j in range(width):
            a.store(values[0, j], out, i, j)
    return a.assemble()


def row_kernel_of(node):
    """The program of a kernel of rows, and whose memory its arrays are. Raises NoProgram for long rows."""
    *_, width = node.spec.shape
    if width > WIDEST_ROW:
        raise NoProgram(f"{node!r} has rows of {width} numbers; a program writes out {WIDEST_ROW}")
    kernel, rows = KERNELS[node.op, node.spec.device.kind], math.prod(node.spec.shape) // width
    return rows_program(kernel, len(node.inputs), rows, width, node.spec.dtype), [node, *node.inputs]


@functools.cache
def fetch_program(batch, width, dtype):
    """out[i] = the row of x whose number is batches[now, i]."""
    a = assembler("fetch", dtype, all_lanes(dtype))
    batches, now = a.array("batches", "steps", batch, rows_of="rows"), a.array("now", 1, rows_of="steps")
    x, out = a.array("x", "rows", width), a.array("out", batch, width)
    with a.loop(batch) as i:
        row = a.load(batches, a.load(now, 0), i)
        with a.loop(width, a.lanes) as j:
            a.store(a.load(x, row, j), out, i, j)
    return a.assemble()


@functools.cache
def copy_program(count, dtype):
    """out = x"""
    a = assembler("copy", dtype, all_lanes(dtype))
    out, x = a.array("out", count), a.array("x", count)
    with a.loop(count, a.lanes) as i:
        a.store(a.load(x, i), out, i)
    return a.assemble()


@functools.cache
def keep_program(dtype):
    """out[now] = x[0]: what a step gives is kept in the place of that step."""
    a = assembler("keep", dtype, 1)
    out, x = a.array("out", "steps"), a.array("x", 1)
    now = a.array("now", 1, rows_of="steps")
    a.store(a.load(x, 0), out, a.load(now, 0))
    return a.assemble()


def copy_of(node):
    """The program of an op that only changes the shape, and whose memory its arrays are."""
    return copy_program(math.prod(node.spec.shape), node.spec.dtype), [node, *node.inputs]


PARTS = {  # op -> function(node) -> the program, and whose memory its arrays are: nodes, or a Spec for memory of its own
    "matmul": product_of,
    "reduce_sum": sum_of,
    "reduce_mean": functools.partial(sum_of, mean=True),
    "reshape": copy_of,
    "softmax": row_kernel_of,
    "softmax_grad": row_kernel_of,
    "log_softmax": row_kernel_of,
    "log_softmax_grad": row_kernel_of,
}

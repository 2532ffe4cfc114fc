"""Additions to the core's row program: the values of more ops for one row, lanes, and two optimisations.

The rows of the bench name what needs them. Without lanes, "rings, batch 100, SGD: epoch" takes 4.5 times as long.

Prefetching: the program prefetches rows that it will need soon, and goes on computing. It prefetches into the L2 cache;
into L1, fewer loads can be under way at once. Without it, "rows 10,000,000" takes 2.2 times as long.

Adding the lanes of many sums together: the lanes of one sum are added by halves, each lane to the one half a register
further, then a quarter, down to one number. One by one, 16 sums of 16 lanes take 64 additions, in registers that are
emptier each time. Together they take 15 in full registers: halves of several sums share a register, until each lane
holds the total of one sum. The order within a sum is the same, so its bits are the same. One by one, "rings, batch 10,
SGD: fit" takes 1.35 times as long.
"""

import math

import numpy as np

from levels.hardware import Value, select
from levels.kernels import KERNELS, REDUCTIONS, reduced
from levels.low_level import LOWERINGS, NoProgram, RowProgram, StepWriter
from levels_more.hardware.lanes import Lanes
from levels_more.kernels.batched_matmul import has_batches
from levels_more.kernels.layout import as_slices


def _cast_values(node, shape, x):
    if node.inputs[0].spec.dtype != bool:
        return x
    return np.asarray(np.frompyfunc(lambda v: select(v, 1.0, 0.0), 1, 1)(x), object)


def _index(node, shape):
    """The slices of a node. Raises NoProgram if `shape` is that of one row and they do not take all rows."""
    slices = as_slices(node.attrs["slices"])
    if shape != node.spec.shape and slices[0] != slice(None):
        raise NoProgram(f"{node!r} takes other rows than its own")
    return (*slices, ...)  # (`...` makes the result an array, even without axes)


def _slice_grad_values(node, shape, dy):
    out = np.full(shape, 0.0, object)
    out[_index(node, shape)] = dy
    return out


def _reduced_values(node, shape, x):
    """Apply the reduction's scalar function to one number after the other."""
    before, within, after = reduced(node.op, x.shape, node.attrs.get("axis"))[1]
    total = np.full((before, after), REDUCTIONS[node.op], object)
    x = x.reshape(before, within, after)
    for k in range(within):
        total = np.frompyfunc(KERNELS[node.op, "cpu"], 2, 1)(total, x[:, k])
    return total.reshape(shape)


def _row_kernel_values(node, shape, *inputs):
    """Apply a row kernel along the last axis. Raises NoProgram if this is the batch axis."""
    if len(shape) < 2 and shape != node.spec.shape:
        raise NoProgram(f"{node!r} needs all rows at a time")
    out = np.empty((math.prod(shape[:-1]), shape[-1]), object)
    KERNELS[node.op, "cpu"](out, *(x.reshape(out.shape) for x in inputs))
    return out.reshape(shape)


LOWERINGS["cast"] = _cast_values
LOWERINGS["reshape"] = lambda node, shape, x: x.reshape(shape)
LOWERINGS["concat"] = lambda node, shape, *inputs: np.concatenate(inputs, node.attrs["axis"])
LOWERINGS["slice"] = lambda node, shape, x: x[_index(node, shape)]
LOWERINGS["slice_grad"] = _slice_grad_values
for _op in ("reduce_sum", "reduce_max", "reduce_min"):
    LOWERINGS[_op] = _reduced_values
for _op in ("softmax", "softmax_grad", "log_softmax", "log_softmax_grad"):
    LOWERINGS[_op] = _row_kernel_values


AHEAD = 64  # rows; 16 is too late, and 256 is a tenth slower
LINE = 64  # bytes of a cache line


def load(a, batches, step, i):
    """Load the row numbers batches[step, i] like `a.load`, and prefetch the rows that are needed 64 rows later.

    `batches` is [steps, batch] and has rows_of. Near its end the last rows are prefetched again, none past it.
    """
    batch = batches.shape[1]
    lines = LINE // a.dtype.itemsize
    count = min(a.lanes, batch)
    begin = a.write(f"mul i64 {step.register}, {batch}")
    soon = a.write(f"add i64 {a.write(f'add i64 {begin}, {i.register}')}, {AHEAD}")
    last = a.write(f"sub i64 {a.write(f'mul i64 {a.size(step.extent)}, {batch}')}, {count}")
    soon = a.write(f"call i64 @llvm.smin.i64(i64 {soon}, i64 {last})")
    for n in range(count):
        place = a.write(f"add i64 {soon}, {n}")
        row = a.write(f"load i64, ptr {a.write(f'getelementptr i64, ptr %word.{batches.name}, i64 {place}')}")
        for array in a.arrays.values():
            if array.shape[0] == batches.rows_of:
                width = math.prod(array.shape[1:])
                first = a.write(f"mul i64 {row}, {width}")
                for column in sorted({*range(0, width, lines), width - 1 if lines % width else 0}):
                    at = a.write(f"add i64 {first}, {column}")
                    at = a.write(f"getelementptr {array.kind}, ptr %word.{array.name}, i64 {at}")
                    a.emit(f"call void @llvm.prefetch.p0(ptr {at}, i32 0, i32 2, i32 1)")
    return a.load(batches, step, i)


def _halved(a, x, y, block):
    """Add the two halves of each block of `block` lanes: first those of x, then those of y, in one register."""

    def half(offset):
        places = ", ".join(f"i32 {lane + offset}" for lane in range(2 * a.lanes) if lane % block < block // 2)
        return a.write(f"shufflevector {a.kind} {x}, {a.kind} {y}, <{a.lanes} x i32> <{places}>")

    return a.write(f"fadd {a.kind} {half(0)}, {half(block // 2)}")


def totals(a, sums):
    """The total of each running sum, as an array of Values. (In float64 each is added in order, separately.)"""
    if a.lanes == 1 or not a.flags:
        return np.array([one.total() for one in sums.flat], object).reshape(sums.shape)
    found = []
    parts = [one.parts().register for one in sums.flat]
    for begin in range(0, len(parts), a.lanes):
        group = parts[begin : begin + a.lanes]
        block = a.lanes
        count = len(group)
        while block > 1:
            group += ["poison"] * (len(group) % 2)
            group = [_halved(a, x, y, block) for x, y in zip(group[::2], group[1::2], strict=True)]
            block //= 2
        for lane in range(count):
            total = a.write(f"extractelement {a.kind} {group[0]}, i32 {lane}")
            found.append(Value(a, a.spread(a.real, total)))
    return np.array(found, object).reshape(sums.shape)


class RowLanes(Lanes):
    """An assembler of row programs: in the loop over the row numbers of a batch, each lane takes a row."""

    def array(self, name, *shape, rows_of=None):
        """As in Assembler. The last size of an array of row numbers is that of a batch."""
        if rows_of is not None:
            self.over = shape[-1:]
        return super().array(name, *shape, rows_of=rows_of)


class QuickStepWriter(StepWriter):
    """Writes a step with lanes, with prefetched rows, and with the lanes of many sums added together."""

    assembler = RowLanes

    def row_number(self, step, k):
        return load(self.a, self.batches, step, k)

    def totals(self, sums):
        return totals(self.a, sums)


class QuickRowProgram(RowProgram):
    """A faster `RowProgram`, with lanes in float32; in float64 with the same bits.

    Raises NoProgram as `RowProgram` does, for products of many matrices, and where a FusedProgram is quicker: in
    float64, if an array of the step has two axes that are longer than 1. By rows, float64 has one lane, since sums keep
    their order. A fused loop over an array fills the register, also in exp, log and divisions. (By rows, "rings in
    float64, batch 100, SGD: epoch" of the bench takes 2.8 times as long.)
    """

    writer = QuickStepWriter

    def __init__(self, graph, batch, over=False):
        if has_batches(graph):
            raise NoProgram("it has products of many matrices")
        wide = any(sum(size > 1 for size in node.spec.shape) > 1 for node in graph.ops)
        if wide and all(node.spec.dtype != np.float32 for node in graph.nodes):
            raise NoProgram
        super().__init__(graph, batch, over)

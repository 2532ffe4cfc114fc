"""The core's program by rows: the values of more ops for one row, and two ways in which it is quicker.

Rows come from memory ahead: a program asks for the rows that it will need soon, and works on while they come. Measured,
a step on 100 rows in random order, in µs, without and with it:

    rows of x and y      linear, SGD     rings, SGD
    100,000             0.26   0.25     1.24   1.22
    10,000,000          2.34   1.11     3.58   1.81

They are brought into the second cache: into the first, fewer can be on their way at once (1.85 and 2.48 µs).

And many sums in lanes are added up together: their halves share registers, until each lane holds the total of another
sum. A sum in lanes is added up by halves: each lane and the one half a register further, then a quarter, down to one
number. One by one, 16 sums of 16 lanes take 64 additions in registers that are emptier each time; together 15 in full
ones. Each sum is added up in the same order as alone, so its bits are the same. Measured, µs a step, float32 in 16
lanes, one by one and so:

    rings, batch 10, SGD      function.over   0.27   0.21      fit   0.34   0.23
"""

import math

import numpy as np

from levels.hardware import Value, select
from levels.kernels import KERNELS, REDUCTIONS, reduced
from levels.low_level import BACK_ENDS, FORMS, NoProgram, RowProgram
from levels_more.compiler.eager import ACCELERATION
from levels_more.kernels.layout import as_slices


def _cast_values(node, shape, x):
    if node.inputs[0].spec.dtype != bool:
        return x
    return np.asarray(np.frompyfunc(lambda v: select(v, 1.0, 0.0), 1, 1)(x), object)


def _index(node, shape):
    """The slices of a node. In a program by rows, where the shape is that of one row, they have to take all rows."""
    slices = as_slices(node.attrs["slices"])
    if shape != node.spec.shape and slices[0] != slice(None):
        raise NoProgram(f"{node!r} takes other rows than its own")
    return (*slices, ...)  # (with the dots an array, also where there is no axis)


def _slice_grad_values(node, shape, dy):
    out = np.full(shape, 0.0, object)
    out[_index(node, shape)] = dy
    return out


def _reduced_values(node, shape, x):
    """The reduction's function takes in one number after the other, in order. A mean is a sum, divided by how many."""
    op = node.op.replace("mean", "sum")
    before, within, after = reduced(op, x.shape, node.attrs.get("axis"))[1]
    total, x = np.full((before, after), REDUCTIONS[op], object), x.reshape(before, within, after)
    for k in range(within):
        total = np.frompyfunc(KERNELS[op, "cpu"], 2, 1)(total, x[:, k])
    return (total if op == node.op else total / float(within)).reshape(shape)


def _row_kernel_values(node, shape, *inputs):
    """What a kernel of rows gives for the last axis, which has to be another one than that of the batch."""
    if len(shape) < 2 and shape != node.spec.shape:
        raise NoProgram(f"{node!r} needs all rows at a time")
    out = np.empty((math.prod(shape[:-1]), shape[-1]), object)
    KERNELS[node.op, "cpu"](out, *(x.reshape(out.shape) for x in inputs))
    return out.reshape(shape)


FORMS["cast"] = _cast_values
FORMS["concat"] = lambda node, shape, *inputs: np.concatenate(inputs, node.attrs["axis"])
FORMS["slice"] = lambda node, shape, x: x[_index(node, shape)]
FORMS["slice_grad"] = _slice_grad_values
for _op in ("reduce_sum", "reduce_mean", "reduce_max", "reduce_min"):
    FORMS[_op] = _reduced_values
for _op in ("softmax", "softmax_grad", "log_softmax", "log_softmax_grad"):
    FORMS[_op] = _row_kernel_values


AHEAD = 64  # rows; 16 came too late, and with 256 they are a tenth slower
LINE = 64  # bytes that memory hands over at once


def load(a, batches, step, i):
    """The row numbers batches[step, i], as `a.load` gives them; the rows that come 64 later are asked for.

    `batches` is [steps, batch] and has rows_of. Near its end the last rows are asked for again: nothing is read beyond.
    """
    batch, lines = batches.shape[1], LINE // a.dtype.itemsize
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
    """A register of two, made of blocks of so many lanes: the halves of each block of x added up, then those of y."""

    def half(offset):
        places = ", ".join(f"i32 {lane + offset}" for lane in range(2 * a.lanes) if lane % block < block // 2)
        return a.write(f"shufflevector {a.kind} {x}, {a.kind} {y}, <{a.lanes} x i32> <{places}>")

    return a.write(f"fadd {a.kind} {half(0)}, {half(block // 2)}")


def totals(a, sums):
    """The total of each of these running sums, as an array of values. (In float64 they run ascending: each alone.)"""
    if a.lanes == 1 or not a.flags:
        return np.array([one.total() for one in sums.flat], object).reshape(sums.shape)
    found, parts = [], [one.parts().register for one in sums.flat]
    for begin in range(0, len(parts), a.lanes):
        group, block = parts[begin : begin + a.lanes], a.lanes
        count = len(group)
        while block > 1:
            group += ["poison"] * (len(group) % 2)
            group = [_halved(a, x, y, block) for x, y in zip(group[::2], group[1::2], strict=True)]
            block //= 2
        for lane in range(count):
            total = a.write(f"extractelement {a.kind} {group[0]}, i32 {lane}")
            found.append(Value(a, a.spread(a.real, total)))
    return np.array(found, object).reshape(sums.shape)


class QuickRowProgram(RowProgram):
    """The same bits, sooner. Raises what that of the core raises."""

    load = staticmethod(load)
    totals = staticmethod(totals)


def rank(graph):
    """Before the core's program by rows, which has 1; behind it where the switch is off."""
    return 0.5 if ACCELERATION.on else 1.5


BACK_ENDS.append((QuickRowProgram, rank))

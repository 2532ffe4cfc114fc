"""The programs of ops that go by row numbers: gather, scatter_add, one_hot. A program cannot refuse, so numbers are checked before."""

import functools
import math

from levels.hardware import Value
from levels.low_level import NoProgram

from .fused_parts import PARTS
from .wholes import all_lanes, assembler

ROWS = {  # op -> function(node) -> the node of its row numbers, and how many rows there are
    "gather": lambda node: (node.inputs[1], node.inputs[0].spec.shape[0]),
    "scatter_add": lambda node: (node.inputs[1], node.attrs["count"]),
    "one_hot": lambda node: (node.inputs[0], node.attrs["depth"]),
}
_SAME = "copy", "reshape", "slice", "transpose"  # their numbers are all of their input


def row_limits(graph):
    """{input: how many rows its numbers may name}. Raises NoProgram where row numbers are computed, or a constant's are wrong."""
    limits = {}
    for node in graph.ops:
        if node.op in ROWS:
            rows, count = ROWS[node.op](node)
            while rows.op in _SAME:
                (rows,) = rows.inputs
            if rows.op == "input":
                k = rows.attrs["of"]
                limits[k] = min(count, limits.get(k, count))
            elif rows.op != "constant" or not in_range(rows.attrs["of"].data, count):
                raise NoProgram(f"{node!r} takes row numbers that are checked by its kernel")
    return limits


def in_range(numbers, count):
    """Whether all of these are row numbers of so many rows."""
    return numbers.min() >= 0 and numbers.max() < count


def check_rows(limits, args, batches=None):
    """Raise IndexError where an argument, in these batches of its rows, names a row that is not there."""
    for k, count in limits.items():
        numbers = args[k].data
        if not in_range(numbers, count) and (batches is None or not in_range(numbers[batches], count)):
            raise IndexError(
                f"a row number is out of range: {numbers.min()} to {numbers.max()}, there are {count} rows"
            )


@functools.cache
def gather_program(count, limit, width, dtype):
    """out[count, width] = x[rows[i]] for each of `count` rows."""
    a = assembler("gather", dtype, all_lanes(dtype))
    out, x, rows = a.array("out", count, width), a.array("x", limit, width), a.array("rows", count, rows_of=limit)
    with a.loop(count) as i:
        row = a.load(rows, i)
        with a.loop(width, a.lanes) as j:
            a.store(a.load(x, row, j), out, i, j)
    return a.assemble()


@functools.cache
def scatter_program(count, limit, width, dtype):
    """out[rows[i]] = Σ x[i], in the order of i, on zeros."""
    a = assembler("scatter_add", dtype, all_lanes(dtype))
    out, x, rows = a.array("out", limit, width), a.array("x", count, width), a.array("rows", count, rows_of=limit)
    with a.loop(limit) as i, a.loop(width, a.lanes) as j:
        a.store(Value(a, "zeroinitializer"), out, i, j)
    with a.loop(count) as i:
        row = a.load(rows, i)
        with a.loop(width, a.lanes) as j:
            a.store(a.load(out, row, j) + a.load(x, i, j), out, row, j)
    return a.assemble()


@functools.cache
def one_hot_program(count, depth, dtype):
    """out[i, rows[i]] = 1, all others 0."""
    a = assembler("one_hot", dtype, all_lanes(dtype))
    out, rows = a.array("out", count, depth), a.array("rows", count, rows_of=depth)
    with a.loop(count) as i:
        with a.loop(depth, a.lanes) as j:
            a.store(Value(a, "zeroinitializer"), out, i, j)
        a.store(1.0, out, i, a.load(rows, i))
    return a.assemble()


def _by_rows(program, node):
    """The program of a gather or a scatter_add, and whose memory its arrays are."""
    rows, limit = ROWS[node.op](node)
    count = math.prod(rows.spec.shape)
    width = math.prod((node if program is gather_program else node.inputs[0]).spec.shape) // count
    return program(count, limit, width, node.spec.dtype), [node, *node.inputs]


def _one_hot(node):
    depth = node.spec.shape[-1]
    return one_hot_program(math.prod(node.spec.shape) // depth, depth, node.spec.dtype), [node, *node.inputs]


PARTS |= {"gather": functools.partial(_by_rows, gather_program), "one_hot": _one_hot}
PARTS |= {"scatter_add": functools.partial(_by_rows, scatter_program)}

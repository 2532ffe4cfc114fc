"""The programs of ops that take row numbers: gather, scatter_add, one_hot.

A program cannot raise an error, so row numbers are checked before it runs.
"""

import functools
import math

from levels.hardware import Value
from levels.low_level import NoProgram
from levels_more.compiler.fused.programs import PARTS, single_part
from levels_more.compiler.typed_assembler import all_lanes, assembler
from levels_more.hardware.locks import while_held
from levels_more.kernels.layout import as_slices

ROWS = {  # op -> function(node) -> the node of its row numbers, how many rows there are, and what a number is called
    "gather": lambda node: (node.inputs[1], node.inputs[0].spec.shape[0], "row"),
    "scatter_add": lambda node: (node.inputs[1], node.attrs["count"], "row"),
    "one_hot": lambda node: (node.inputs[0], node.attrs["depth"], "class"),
}


def row_limits(graph):
    """{(number of an input, a slice of it): [how many rows there are, what they are called]} for inputs of row numbers.

    Raises NoProgram if row numbers come from neither an input nor a constant, or a constant's are out of range.
    """
    limits = {}
    for node in graph.ops:
        if node.op in ROWS:
            rows, *limit = ROWS[node.op](node)
            part = ()
            while rows.op in ("copy", "reshape", "transpose"):  # these keep all numbers of their input
                (rows,) = rows.inputs
            if rows.op == "slice" and rows.attrs["slices"][:1] == ((None, None, None),):  # of all rows
                part = rows.attrs["slices"]
                (rows,) = rows.inputs
            if rows.op == "input":
                key = rows.source, part
                limits[key] = min(limit, limits.get(key, limit))
            elif rows.op != "constant" or part or not in_range(rows.source.data, limit[0]):
                raise NoProgram(f"{node!r} takes row numbers that are checked by its kernel")
    return limits


def in_range(numbers, count):
    """Whether all of these numbers are in [0, count)."""
    return numbers.min() >= 0 and numbers.max() < count


def check_rows(limits, args, batches=None):
    """Raise IndexError if an argument has a row number out of range. With `batches`, only these rows of it are used."""
    for (k, part), (count, name) in limits.items():
        numbers = args[k].data[as_slices(part)]
        if not in_range(numbers, count) and (batches is None or not in_range(numbers[batches], count)):
            told = f"{numbers.min()} to {numbers.max()}; there are {count}"
            raise IndexError(f"a {name} number is out of range: {told}")


@while_held
def gather_program(count, limit, width, dtype, checked=False):
    """out[i] = x[rows[i]], for out[count, width] and x[limit, width].

    If it is `checked`, a missing row stores 1 at the address in the word `answer`, and row 0 is read instead.
    """
    a = assembler("gather", dtype, all_lanes(dtype))
    out = a.array("out", count, width)
    x = a.array("x", limit, width)
    rows = a.array("rows", count, rows_of=limit)
    answer = a.word("answer", "ptr") if checked else None
    with a.loop(count) as i:
        row = a.load(rows, i)
        if checked:
            there = a.write(f"icmp ult i64 {row.register}, {a.size(limit)}")
            row.register = a.write(f"select i1 {there}, i64 {row.register}, i64 0")
            so_far = a.write(f"load i64, ptr {answer}")
            a.emit(f"store i64 {a.write(f'select i1 {there}, i64 {so_far}, i64 1')}, ptr {answer}")
        with a.loop(width, a.lanes) as j:
            a.store(a.load(x, row, j), out, i, j)
    return a.assemble()


@while_held
def scatter_program(count, limit, width, dtype):
    """out[rows[i]] += x[i], in the order of i, starting from zeros."""
    a = assembler("scatter_add", dtype, all_lanes(dtype))
    out = a.array("out", limit, width)
    x = a.array("x", count, width)
    rows = a.array("rows", count, rows_of=limit)
    with a.loop(limit) as i, a.loop(width, a.lanes) as j:
        a.store(Value(a, "zeroinitializer"), out, i, j)
    with a.loop(count) as i:
        row = a.load(rows, i)
        with a.loop(width, a.lanes) as j:
            a.store(a.load(out, row, j) + a.load(x, i, j), out, row, j)
    return a.assemble()


@while_held
def one_hot_program(count, depth, dtype):
    """out[i, rows[i]] = 1, all others 0."""
    a = assembler("one_hot", dtype, all_lanes(dtype))
    out = a.array("out", count, depth)
    rows = a.array("rows", count, rows_of=depth)
    with a.loop(count) as i:
        with a.loop(depth, a.lanes) as j:
            a.store(Value(a, "zeroinitializer"), out, i, j)
        a.store(1.0, out, i, a.load(rows, i))
    return a.assemble()


def _by_rows(program, node):
    """The program of a gather or scatter_add, and the nodes of its arrays."""
    rows, limit, _ = ROWS[node.op](node)
    count = math.prod(rows.spec.shape)
    width = math.prod((node if program is gather_program else node.inputs[0]).spec.shape) // count
    return program(count, limit, width, node.spec.dtype), [node, *node.inputs]


def _one_hot(node):
    depth = node.spec.shape[-1]
    return one_hot_program(math.prod(node.spec.shape) // depth, depth, node.spec.dtype), [node, *node.inputs]


PARTS |= {"gather": single_part(functools.partial(_by_rows, gather_program)), "one_hot": single_part(_one_hot)}
PARTS |= {"scatter_add": single_part(functools.partial(_by_rows, scatter_program))}

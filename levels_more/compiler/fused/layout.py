"""The programs of ops that move numbers, find extremes or draw random numbers: transpose, slice, reduce_max, …"""

import math
from contextlib import ExitStack, nullcontext

import numpy as np

from levels.hardware import REAL, Index, Value, select
from levels.kernels import KERNELS, reduced
from levels.low_level import NoProgram
from levels.support.instructions import named
from levels_more.compiler.fused.programs import PARTS, single_part
from levels_more.compiler.typed_assembler import Word, all_lanes, array_like, assembler, stored
from levels_more.hardware.lanes import LaneIndex
from levels_more.hardware.locks import while_held
from levels_more.kernels.layout import as_slices
from levels_more.kernels.random import ELEVEN, HIGH, LOW, philox


def _along(a, i, start, step, size):
    """start + step·i as an index of an axis of that size, in each lane if i has lanes."""
    register = a.write(f"add i64 {a.write(f'mul i64 {i.register}, {step}')}, {start}")
    if not isinstance(i, LaneIndex):
        return Index(a, register, size)
    kind = a.wide("i64")
    start, by = (a.constant("i64", str(n)) for n in (start, step))
    each = a.write(f"add {kind} {a.write(f'mul {kind} {i.each}, {by}')}, {start}")
    return LaneIndex(a, register if step == 1 else None, size, each)  # with another step the lanes are not contiguous


@while_held
def moves_program(shape, shapes, moves, dtype):
    """out[to] = x_k[source] for each of `moves`: (k, sizes of its loops, to, source). x_k has shapes[k], out `shape`.

    `to` and `source` are (number of a loop, start, step) for each axis: start + step·i. With k = None it stores 0.
    """
    a = assembler("moves", dtype, all_lanes(dtype))
    out, *arrays = (a.array(f"x{k}", *(each or (1,))) for k, each in enumerate((shape, *shapes)))
    for k, sizes, to, source in moves:
        with ExitStack() as loops:
            lanes = [1] * (len(sizes) - 1) + [a.lanes]
            at = [loops.enter_context(a.loop(size, n)) for size, n in zip(sizes, lanes, strict=False)]

            def place(array, axes, at=at):
                found = zip(axes, array.shape, strict=False)
                return [_along(a, at[n], start, step, size) for (n, start, step), size in found] or [0]

            number = Value(a, "zeroinitializer") if k is None else a.load(arrays[k], *place(arrays[k], source))
            a.store(number, out, *place(out, to))
    return a.assemble()


def _moves(node, moves):
    """The program of a node that moves numbers, and the nodes whose memory its arrays are."""
    shapes = tuple(x.spec.shape for x in node.inputs)
    return moves_program(node.spec.shape, shapes, tuple(moves), node.spec.dtype), [node, *node.inputs]


def _all_axes(shape):
    """`to` or `source` of a move that takes each axis in full."""
    return tuple((n, 0, 1) for n in range(len(shape)))


def _part(shape, slices):
    """`to` or `source` of a move that takes a slice of an array of that shape."""
    ranges = [range(*each.indices(size)) for each, size in zip(as_slices(slices), shape, strict=True)]
    return tuple((n, each.start, each.step) for n, each in enumerate(ranges))


def _transpose(node):
    shape = node.spec.shape
    axes = [*(node.attrs.get("axes") or range(len(shape))[::-1])]
    return _moves(node, [(0, shape, _all_axes(shape), tuple((axes.index(n), 0, 1) for n in range(len(shape))))])


def _slice(node):
    shape = node.spec.shape
    given = node.inputs[0].spec.shape
    return _moves(node, [(0, shape, _all_axes(shape), _part(given, node.attrs["slices"]))])


def _slice_grad(node):
    shape = node.spec.shape
    given = node.inputs[0].spec.shape
    zeros = None, shape, _all_axes(shape), ()
    return _moves(node, [zeros, (0, given, _part(shape, node.attrs["slices"]), _all_axes(given))])


def _concat(node):
    axis = node.attrs.get("axis", 0)
    begin = 0
    moves = []
    for k, x in enumerate(node.inputs):
        shape = x.spec.shape
        moves.append((k, shape, tuple((n, begin * (n == axis), 1) for n in range(len(shape))), _all_axes(shape)))
        begin += shape[axis]
    return _moves(node, moves)


LARGE = 2**20  # bytes; beyond it the kernel of reduce_max takes a third of the time of its program
# op -> LLVM's reduction over the lanes, for floats and for integers
LANES_IN_ONE = {"reduce_max": ("fmaximum", "smax"), "reduce_min": ("fminimum", "smin")}


@while_held
def extreme_program(op, before, within, after, dtype):
    """out[before, after] = the largest (or smallest) of x[before, within, after] over its middle axis."""
    last = after == 1
    a = assembler("extreme", dtype, all_lanes(dtype))
    out = a.array("out", before, after)
    x = a.array("x", before, within, *[after] * (not last))
    found = a.slot(a.kind)
    with a.loop(before) as i, nullcontext(0) if last else a.loop(after, a.lanes) as j:
        column = [j] * (not last)
        a.emit(f"store {a.kind} {a.load(x, i, 0, *column).register}, ptr {found}")
        with a.loop(within, a.lanes if last else 1) as k:
            so_far = a.write(f"load {a.kind}, ptr {found}")
            larger = KERNELS[op, "cpu"](Value(a, so_far), a.load(x, i, k, *column)).register
            if last:  # lanes past the end change nothing
                larger = a.write(f"select {a.wide('i1')} {a.mask}, {a.kind} {larger}, {a.kind} {so_far}")
            a.emit(f"store {a.kind} {larger}, ptr {found}")
        largest = a.write(f"load {a.kind}, ptr {found}")
        if last:
            name = LANES_IN_ONE[op][dtype.kind == "i"]
            largest = a.spread(a.real, a.write(f"call {a.real} @llvm.vector.reduce.{name}({a.kind} {largest})"))
        a.store(Value(a, largest), out, i, j)
    return a.assemble()


def _extreme(node):
    (x,) = node.inputs
    if x.spec.nbytes > LARGE:
        raise NoProgram(f"{node!r} moves {x.spec.nbytes:,} bytes; from {LARGE:,} on its kernel is quicker")
    before, within, after = reduced(node.op, x.spec.shape, node.attrs.get("axis"))[1]
    return extreme_program(node.op, before, within, after, node.spec.dtype), [node, *node.inputs]


@while_held
def place_program(op, before, within, after, dtype):
    """out[before, after] = the first index of the largest (or smallest) of x[before, within, after] along `within`."""
    a = assembler("place", dtype, 1 if after == 1 else all_lanes(dtype))
    out = array_like(a, "out", np.dtype("i8"), before, after)
    x = a.array("x", before, within, after)
    slots = [a.slot(a.kind) for _ in "ab"]  # the largest so far, and its index
    with a.loop(before) as i, a.loop(after, a.lanes) as j:
        first = a.load(x, i, 0, j)
        for slot, start in zip(slots, (first, a.count(Index(a, "0", 1))), strict=True):
            a.emit(f"store {a.kind} {start.register}, ptr {slot}")
        with a.loop(within) as k:
            top, place = (Value(a, a.write(f"load {a.kind}, ptr {slot}")) for slot in slots)
            number = a.load(x, i, k, j)
            here = a.count(k)
            stays = number <= top if op == "arg_max" else top <= number
            for slot, old, new in zip(slots, (top, place), (number, here), strict=True):
                new = select(top == top, select(stays, old, new), old)  # noqa: PLR0124 (a NaN stays)
                a.emit(f"store {a.kind} {new.register}, ptr {slot}")
        stored(a, Value(a, a.write(f"load {a.kind}, ptr {slots[1]}")), out, i, j)
    return a.assemble()


def _place(node):
    """The program of arg_max or arg_min. Raises NoProgram for integers, and for indices that are no exact floats."""
    (x,) = node.inputs
    before, within, after = reduced(node.op, x.spec.shape, node.attrs.get("axis"))[1]
    if x.spec.dtype not in REAL or within > 2**24:
        raise NoProgram(f"{node!r} of {x!r} is left to its kernel")
    return place_program(node.op, before, within, after, x.spec.dtype), [node, x]


@while_held
def uniform_program(count, dtype):
    """out[i] = number i of the uniform numbers in [0, 1) that follow `state`, two int64: key and counter."""
    a = assembler("random_uniform", np.dtype("f8"), all_lanes(np.dtype("f8")))
    steps = 2.0 ** (24 if dtype == "f4" else 53)
    out = array_like(a, "out", dtype, count)
    state = array_like(a, "state", np.dtype("i8"), 2)
    key, first = (Word(a, a.load(state, k).register) for k in (0, 1))
    with a.loop(count, a.lanes) as i:
        counter = first + (Word(a, i.each) >> 1)
        none = LOW - LOW
        words = philox(counter & LOW, counter >> HIGH, none, none, key & LOW, key >> HIGH)
        u, v = ((((x << HIGH) | y) >> ELEVEN).number() / 2.0**53 for x, y in (words[:2], words[2:]))
        number = select((Word(a, i.each) & 1).number() == 1.0, v, u)
        stored(a, named("floor", number * steps) / steps, out, i)
    return a.assemble()


def _uniform(node):
    return uniform_program(math.prod(node.spec.shape), node.spec.dtype), [node, *node.inputs]


_MOVES = {"transpose": _transpose, "slice": _slice, "slice_grad": _slice_grad, "concat": _concat}
_MOVES |= {"reduce_max": _extreme, "reduce_min": _extreme}
_MOVES |= {"arg_max": _place, "arg_min": _place, "random_uniform": _uniform}
PARTS |= {op: single_part(function) for op, function in _MOVES.items()}

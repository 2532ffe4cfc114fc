"""The programs of ops that move numbers, or keep the largest: transpose, slice, concat, their gradients, reduce_max."""

import functools
from contextlib import ExitStack
from itertools import accumulate

from levels.hardware import Index, Value
from levels.kernels import KERNELS, as_slices, reduced

from .fused_parts import PARTS
from .wholes import all_lanes, assembler


def _along(a, i, start, step, size):
    """start + step·i as an index of an axis of that size, in each lane where i has lanes."""
    register = a.write(f"add i64 {a.write(f'mul i64 {i.register}, {step}')}, {start}")
    if not i.each:
        return Index(a, register, size)
    kind, (start, by) = a.wide("i64"), (a.constant("i64", str(n)) for n in (start, step))
    each = a.write(f"add {kind} {a.write(f'mul {kind} {i.each}, {by}')}, {start}")
    return Index(a, register if step == 1 else None, size, each)  # with another step the lanes lie apart


@functools.cache
def moves_program(shape, shapes, moves, dtype):
    """out[to] = x_k[source], of arrays in these shapes, for each of `moves`: (k, the sizes of its loops, to, source).

    `to` and `source` are (the number of a loop, start, step) for each axis: start + step·i. With k = None it is 0.
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
    """The program of a node that moves numbers, and whose memory its arrays are."""
    shapes = tuple(x.spec.shape for x in node.inputs)
    return moves_program(node.spec.shape, shapes, tuple(moves), node.spec.dtype), [node, *node.inputs]


def _whole(shape):
    """Each axis from its beginning, one number after the other."""
    return tuple((n, 0, 1) for n in range(len(shape)))


def _part(shape, slices):
    """The axes of a slice of an array of that shape."""
    ranges = [range(*each.indices(size)) for each, size in zip(as_slices(slices), shape, strict=True)]
    return tuple((n, each.start, each.step) for n, each in enumerate(ranges))


def _transpose(node):
    shape = node.spec.shape
    axes = node.attrs.get("axes") or range(len(shape))[::-1]
    return _moves(
        node, [(0, shape, _whole(shape), tuple((n, 0, 1) for n in sorted(range(len(shape)), key=[*axes].__getitem__)))]
    )


def _slice(node):
    shape, given = node.spec.shape, node.inputs[0].spec.shape
    return _moves(node, [(0, shape, _whole(shape), _part(given, node.attrs["slices"]))])


def _slice_grad(node):
    shape, given = node.spec.shape, node.inputs[0].spec.shape
    zeros = None, shape, _whole(shape), ()
    return _moves(node, [zeros, (0, given, _part(shape, node.attrs["slices"]), _whole(given))])


def _concat(node):
    axis, shapes = node.attrs.get("axis", 0), [x.spec.shape for x in node.inputs]
    starts = accumulate((shape[axis] for shape in shapes), initial=0)
    to = (
        [(n, start * (n == axis), 1) for n in range(len(shape))] for shape, start in zip(shapes, starts, strict=False)
    )
    return _moves(
        node, [(k, shape, tuple(place), _whole(shape)) for k, (shape, place) in enumerate(zip(shapes, to, strict=True))]
    )


@functools.cache
def extreme_program(op, before, within, after, dtype):
    """out[before, after] = the largest (or smallest) of x[before, within, after] over its middle."""
    a = assembler("extreme", dtype, 1 if after == 1 else all_lanes(dtype))
    out, x, found = a.array("out", before, after), a.array("x", before, within, after), a.slot(a.kind)
    with a.loop(before) as i, a.loop(after, a.lanes) as j:
        a.emit(f"store {a.kind} {a.load(x, i, 0, j).register}, ptr {found}")
        with a.loop(within) as k:
            so_far = Value(a, a.write(f"load {a.kind}, ptr {found}"))
            a.emit(f"store {a.kind} {KERNELS[op, 'cpu'](so_far, a.load(x, i, k, j)).register}, ptr {found}")
        a.store(Value(a, a.write(f"load {a.kind}, ptr {found}")), out, i, j)
    return a.assemble()


def _extreme(node):
    before, within, after = reduced(node.op, node.inputs[0].spec.shape, node.attrs.get("axis"))[1]
    return extreme_program(node.op, before, within, after, node.spec.dtype), [node, *node.inputs]


PARTS |= {"transpose": _transpose, "slice": _slice, "slice_grad": _slice_grad, "concat": _concat}
PARTS |= {"reduce_max": _extreme, "reduce_min": _extreme}

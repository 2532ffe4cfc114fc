"""Elementwise ops that follow one another become one loop: which ops share a loop, and its program.

A number is loaded once, stays in registers from op to op, and is stored once.
"""

import ctypes
import functools
import math
from collections import Counter
from contextlib import ExitStack
from itertools import groupby

from levels.hardware import select
from levels.kernels import ELEMENTWISE, KERNELS, reduced
from levels.low_level import NoProgram, as_instructions
from levels_more.compiler.fused.threads import shares
from levels_more.compiler.passes import sums_before
from levels_more.compiler.typed_assembler import all_lanes, array_like, assembler, loaded, stored

_byte = (ctypes.c_char * 0).from_buffer


def address(array):
    """The address of the numbers of an array. (`array.ctypes.data` is the same, and takes five times as long.)"""
    return ctypes.addressof(_byte(array))


def address_of(buffer):
    """The address of the numbers of a buffer, cached there: finding it takes as long as a whole small program."""
    buffer.address = address(buffer.data)
    return buffer.address


def check_ours(graph):
    """Raise NoProgram for empty arrays, devices but the CPU, and a reader's kernel of an op that is not elementwise."""
    for node in graph.nodes:
        kind = node.spec.device.kind
        ours = not node.inputs or node.op in ELEMENTWISE or KERNELS.is_first(node.op, kind)
        if not ours:
            raise NoProgram(f"the compiler cannot look into the new kernel of {node.op}")
        if kind != "cpu":
            raise NoProgram(f"{node!r} on {kind} is left to its kernel")
        if 0 in node.spec.shape:
            raise NoProgram(f"{node!r} is empty")


class Unit:
    """Ops that run together: those of one loop; or, with `loop` None, a single op, or products and their sum.

    `loop` is the Spec, a shape and a dtype, that all ops of a loop share. Once an op outside reads from it, the unit is
    `closed`: no op may join it any more. So all that a unit reads is computed before it starts.
    """

    def __init__(self, loop, *nodes):
        self.nodes = [*nodes]
        self.loop = loop
        self.closed = False

    def __repr__(self):
        names = " ".join(node.op for node in self.nodes)
        return f"loop: {names}" if self.loop and len(self.nodes) > 1 else names


def _cast(node):
    """The scalar function of a cast: a mask becomes 1.0 or 0.0, a number the mask x != 0. `loaded` does other casts.

    None for a cast from floats to integers: its kernel raises an error for numbers that do not fit.
    """
    given = node.inputs[0].spec.dtype
    made = node.spec.dtype
    if given == made or made.kind == "f" and given.kind != "b":
        return lambda x: x
    if made.kind == "b":
        return lambda x: x != 0.0
    return (lambda x: select(x, 1.0, 0.0)) if given.kind == "b" else None


def _spread(node):
    """The scalar function of `spread`, its kernel. None if its dy lacks axes of x, which `with_axes` would put back."""
    dy, _ = node.inputs
    there = math.prod(dy.spec.shape) == 1 or dy.spec.shape == sums_before(node)
    return functools.partial(as_instructions, node) if there else None


# op -> function(node) -> the scalar function that computes it in a loop, or None (elementwise ops use their kernels)
SCALARS = {"cast": _cast, "spread": _spread}


def _scalar(node):
    """The scalar function that SCALARS gives for a node, or None."""
    return SCALARS[node.op](node) if node.op in SCALARS else None


def loop_of(node):
    """The Spec that all ops of a loop with this one share: its shape, the dtype of its numbers. None if in no loop."""
    if not _scalar(node) and (node.op in SCALARS or node.op not in ELEMENTWISE):
        return None
    dtype = node.inputs[-1].spec.dtype  # a comparison takes numbers and gives a mask; masks are the first inputs
    if _scalar(node) and node.spec.dtype.kind != "b":
        dtype = node.spec.dtype
    if dtype.kind == "i" and node.spec.dtype.kind == "f":  # a quotient of whole numbers
        return None
    return node.spec.device.spec(node.spec.shape, dtype) if dtype.kind != "b" else None


def _adds_products(node):
    """Whether an op adds up all matrices of a batched product. The gradient of weights does."""
    (product, *_) = node.inputs
    shape = product.spec.shape
    if node.op != "reduce_sum" or product.op != "matmul" or any(len(x.spec.shape) < len(shape) for x in product.inputs):
        return False
    return reduced(node.op, shape, node.attrs.get("axis"))[1] == [1, math.prod(shape[:-2]), math.prod(shape[-2:])]


def units_of(graph):
    """The ops of a graph as units, in an order in which they can run.

    Units that an op reads become one with it if they have its `loop` and are not closed. The op closes all others. The
    sum of the matrices of a product becomes one with it if nothing else reads these.
    """
    home = {}  # node -> its unit
    reads = Counter([*(x for node in graph.ops for x in node.inputs), *graph.outputs, *graph.updates.values()])
    for node in graph.ops:
        unit = Unit(loop_of(node))
        adds = _adds_products(node) and reads[node.inputs[0]] == 1
        for other in dict.fromkeys(home[x] for x in node.inputs if x in home):
            if adds or unit.loop is not None and other.loop is unit.loop and not other.closed:
                unit.nodes += other.nodes
            else:
                other.closed = True
        unit.nodes.append(node)
        home.update(dict.fromkeys(unit.nodes, unit))
    return [home[node] for node in graph.ops if home[node].nodes[-1] is node]


def merged_axes(shape, shapes):
    """[(size, (does input 0 have this axis, …)), …]. Neighbouring axes that belong to the same inputs become one."""
    # shapes are aligned at the right; what is missing on the left is 1
    padded = [(1,) * (len(shape) - len(s)) + tuple(s) for s in shapes]
    # (size, owners) of each axis; an axis of 1 needs no loop
    axes = [(size, tuple(p[i] == size for p in padded)) for i, size in enumerate(shape) if size != 1]
    # `groupby` takes neighbours of the same owners together
    merged = [(math.prod(size for size, _ in group), owners) for owners, group in groupby(axes, lambda axis: axis[1])]
    return merged or [(1, (True,) * len(shapes))]


class LoopWriter:
    """Writes the program of one loop: nested loops, one for each of the `merged_axes`.

    With `named` each call passes the sizes n0, n1, … of these axes, and the attributes, which are numbers.
    """

    def __init__(self, nodes, results, rows=None, named=False):
        inside = set(nodes)
        self.inputs = [*dict.fromkeys(x for node in nodes for x in node.inputs if x not in inside)]
        axes = merged_axes(nodes[0].spec.shape, [x.spec.shape for x in self.inputs])
        self.sizes = [f"n{n}" if named else size for n, (size, _) in enumerate(axes)]
        self.named = named
        if rows is not None:  # only this many along the first axis
            self.sizes[0] = rows
        self.axes_of = {x: [n for n, (_, owners) in enumerate(axes) if owners[k]] for k, x in enumerate(self.inputs)}
        self.axes_of |= {x: [*range(len(axes))] for x in results}
        dtype = loop_of(nodes[0]).dtype
        self.a = a = assembler("fused loop", dtype, all_lanes(dtype))
        sizes = {x: self.along(x, self.sizes) for x in self.axes_of}
        self.arrays = {x: array_like(a, f"x{n}", x.spec.dtype, *sizes[x]) for n, x in enumerate(sizes)}
        # {node: its Value in the open loops}; the counters of these loops
        self.values = {}
        self.index = []
        with ExitStack() as loops:
            self.load()
            for depth, size in enumerate(self.sizes, 1):
                self.index.append(loops.enter_context(a.loop(size, a.lanes if depth == len(self.sizes) else 1)))
                self.load()
            for node in nodes:
                self.values[node] = self.computed(node)
            for x in results:
                stored(a, self.values[x], self.arrays[x], *self.index)

    def along(self, x, parts):
        """Those of `parts`, one for each axis, that belong to axes of x. [1] for a single number."""
        return [parts[axis] for axis in self.axes_of[x]] or [1]

    def load(self):
        """Load the inputs whose indices are known in the open loops. A row's number is not loaded for each column."""
        for x in self.inputs:
            axes = self.axes_of[x]
            if x not in self.values and all(axis < len(self.index) for axis in axes):
                at = [self.index[axis] for axis in axes] or [0]
                self.values[x] = loaded(self.a, self.arrays[x], x.spec.dtype, *at)

    def computed(self, node):
        """The Value of a node: the op's scalar function writes the instructions."""
        values = [self.values[x] for x in node.inputs]
        if scalar := _scalar(node):
            return scalar(*values)
        numbers = {name: value for name, value in node.attrs.items() if name != "shape"}
        if self.named:
            numbers = {name: self.a.number(name) for name in numbers}
        return as_instructions(node, *values, **numbers)


def loop_program(nodes, results, rows=None):
    """The program of these elementwise nodes, and the nodes whose arrays it takes, in order: inputs, results."""
    writer = LoopWriter(nodes, results, rows)
    return writer.a.assemble(), list(writer.arrays)


def loop_parts(nodes, results, parts):
    """The program of a loop in parts along its first axis, as in `programs.PARTS`."""
    whole = LoopWriter(nodes, results)
    if parts == 1:
        return [(whole.a.assemble(), [(x, 0) for x in whole.arrays])]
    rows = {x: math.prod(whole.along(x, whole.sizes)[1:]) if 0 in axes else 0 for x, axes in whole.axes_of.items()}
    found = shares(whole.sizes[0], parts, whole.a.lanes if len(whole.sizes) == 1 else 1)
    programs = {size: loop_program(nodes, results, size)[0] for size in {size for _, size in found}}
    return [(programs[size], [(x, begin * rows[x]) for x in whole.arrays]) for begin, size in found]

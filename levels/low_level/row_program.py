"""A step that splits into rows, sums over rows and updates is one program: level 1's, written by the graph."""

# Built from 03_low_level.ipynb: edit there, then run its last cell.

import ctypes
import functools
import math
import operator
from contextlib import nullcontext

import numpy as np

from levels import more
from levels.hardware import REAL, Assembler, dot
from levels.kernels import ELEMENTWISE, KERNELS, planned

from .tensors import Tensor, Variable


class NoProgram(Exception):
    """Says why a graph is no program of some kind."""


def _with_one_more(node, inputs, batch, by_row):
    """The Spec that a node has in a batch with one row more, given those of its inputs."""
    shape, larger = node.spec.shape, node.spec
    if shape[:1] == (batch,):
        larger = node.spec.device.spec((batch + 1, *shape[1:]), node.spec.dtype)
    if not node.inputs:
        return larger if node.op == "input" else node.spec
    attrs = node.attrs | ({"shape": larger.shape} if by_row and "shape" in node.attrs else {})
    return planned(node.op, inputs, attrs).spec


def row_parts(graph, batch):
    """{node: "row" if it has rows, "sum" if it adds rows up, "after" if it needs such a sum, else "before"}

    Raises NoProgram for a graph that does not split so.
    """
    parts, specs = {}, {}
    for node in graph.nodes:
        read = {parts[x] for x in node.inputs}
        specs[node] = _with_one_more(node, [specs[x] for x in node.inputs], batch, "row" in read)
        grows, late = specs[node] is not node.spec, not read.isdisjoint(("sum", "after"))
        parts[node] = "row" if grows else "sum" if "row" in read else "after" if late else "before"
        if "row" in read and late or grows and specs[node].shape != (batch + 1, *node.spec.shape[1:]):
            raise NoProgram(f"{node!r} needs more than a row at a time")
    return parts


def _each(function, *arrays):
    """The function of every number of these arrays of values, broadcast."""
    return np.asarray(np.frompyfunc(function, len(arrays), 1)(*arrays), object)


def _elementwise(node, shape, *inputs):
    numbers = {name: value for name, value in node.attrs.items() if name != "shape"}
    return np.broadcast_to(_each(functools.partial(KERNELS[node.op, "cpu"], **numbers), *inputs), shape)


def _products(node, shape, x, w):
    x, w = x.T if node.attrs.get("transpose_x") else x, w.T if node.attrs.get("transpose_w") else w
    return np.array([dot(row, column) for row in x for column in w.T], object).reshape(shape)


def _form_of(op):
    """The function of FORMS for an op. Raises NoProgram where there is none."""
    if op in ELEMENTWISE:
        return _elementwise
    if op not in FORMS and not more("form", op):
        raise NoProgram(f"{op} has no form for single numbers")
    return FORMS[op]


FORMS = {  # op -> its values; "sum" and op -> what a row adds; "end" and op -> of a total
    "matmul": _products,
    "sum matmul": lambda node, shape, x, dy: [x.T * dy],
    "sum reduce_sum": lambda node, shape, x: x.reshape(-1, *shape),
    "sum reduce_mean": lambda node, shape, x: x.reshape(-1, *shape),
    "end reduce_mean": lambda node, sums: _each(
        lambda total: total / (node.inputs[0].spec.nbytes / node.spec.nbytes), sums
    ),
}


_LARGEST_ROW = 1000  # numbers written out for one row; with more, launches are quicker


def check_fits(graph):
    """Raise NoProgram for what no program can hold: several dtypes, empty arrays, other devices, a reader's own kernels."""
    dtypes = {node.spec.dtype for node in graph.nodes} - {np.dtype(bool)}
    edges = [*graph.outputs, *graph.updates.values(), *(x for x in graph.nodes if x.op in ("input", "variable"))]
    if len(dtypes) != 1 or dtypes.isdisjoint(REAL) or any(node.spec.dtype == bool for node in edges):
        raise NoProgram(f"it has {', '.join(sorted(map(str, dtypes)))}; expected one float dtype, and no bools outside")
    for node in graph.nodes:
        kind = node.spec.device.kind
        ours = not node.inputs or node.op in ELEMENTWISE or KERNELS[node.op, kind] is KERNELS.first[node.op, kind]
        if kind != "cpu" or not ours or 0 in node.spec.shape:
            raise NoProgram(f"{node!r} on {kind} is left to its kernel")


def _check_rows(graph, parts, over):
    """Raise NoProgram for more than is worth writing out row by row, and for what has rows and would be kept."""
    work = sum(math.prod(node.spec.shape[parts[node] == "row" :]) for node in graph.nodes)
    kept = [*graph.updates.values(), *(graph.outputs if over else ())]
    if "row" not in parts.values() or work > _LARGEST_ROW or any(parts[node] == "row" for node in kept):
        raise NoProgram(f"{work:,} numbers for a row; a program takes {_LARGEST_ROW:,}, and keeps none of a row's")


class _Writer:
    """The arrays of a program, and how their numbers are loaded, computed, and stored."""

    def __init__(self, graph, batch, over):
        check_fits(graph)
        self.graph, self.parts, self.batch = graph, row_parts(graph, batch), batch
        _check_rows(graph, self.parts, over)
        leaves = [x for x in graph.nodes if x.op in ("input", "variable")]
        self.a = a = Assembler("steps" if over else "step", leaves[0].spec.dtype)
        self.rows = "rows" if over else batch
        self.arrays = {x.attrs["of"]: a.array(f"{x.op}{k}", *self.shape(x)) for k, x in enumerate(leaves)}
        for k, (variable, node) in enumerate(graph.updates.items()):
            self.arrays[variable] = self.arrays.get(variable) or a.array(f"new{k}", *self.shape(node))
        self.outs = [a.array(f"out{k}", *(["steps"] if over else self.shape(x))) for k, x in enumerate(graph.outputs)]
        if over:
            self.batches = a.array("batches", "steps", batch, rows_of="rows")

    def shape(self, node):
        """The shape of the array in which a node's numbers lie."""
        return (self.rows, *node.spec.shape[1:]) if self.parts[node] == "row" else node.spec.shape or (1,)

    def compute(self, part, known, row=None):
        """Add the values of the nodes of one part to what is known. Of what has rows they are those of one row."""
        for node in self.graph.nodes:
            if self.parts[node] == part:
                shape = node.spec.shape if row is None else (1, *node.spec.shape[1:])
                if node.inputs:
                    known[node] = _form_of(node.op)(node, shape, *[known[x] for x in node.inputs])
                elif node.op == "constant":
                    known[node] = node.attrs["of"].numpy().astype(object)
                else:
                    known[node] = self.load(self.arrays[node.attrs["of"]], shape, row)

    def load(self, array, shape, row):
        """The numbers of an array, or of one row of it."""
        values = np.empty(shape, object)
        for index in np.ndindex(shape):
            values[index] = self.a.load(array, *_place(index, row))
        return values

    def store(self, values, array, row=None):
        """Store these numbers, as those of a row if there is one."""
        for index in np.ndindex(values.shape):
            self.a.store(values[index], array, *_place(index, row))


def _place(index, row):
    return index or (0,) if row is None else (row, *index[1:])


def _write_step(writer, step=None):
    """Write what one step does; `step` is its number where a program does many."""
    a, parts, known = writer.a, writer.parts, {}
    writer.compute("before", known)
    sums = {x: _each(lambda _: a.sum(), np.empty(x.spec.shape)) for x in parts if parts[x] == "sum"}
    results = list(zip(writer.graph.outputs, writer.outs))
    with a.loop(writer.batch, a.lanes) as r:
        writer.compute("row", known, r if step is None else a.load(writer.batches, step, r))
        for x, total in sums.items():
            for term in _form_of(f"sum {x.op}")(x, x.spec.shape, *[known[y] for y in x.inputs]):
                _each(operator.iadd, total, term)
        for x, array in results:
            if parts[x] == "row":
                writer.store(known[x], array, r)
    for x, total in sums.items():
        end = FORMS.get(f"end {x.op}", lambda node, totals: totals)
        known[x] = end(x, _each(lambda one: one.total(), total))
    writer.compute("after", known)
    for x, array in results:
        if parts[x] != "row":
            writer.store(known[x] if step is None else known[x].reshape(1), array, step)
    for variable, x in writer.graph.updates.items():
        writer.store(known[x], writer.arrays[variable])


_byte = (ctypes.c_char * 0).from_buffer


def _address(array):
    """Where the numbers of an array lie. (`array.ctypes.data` says the same, and takes five times as long.)"""
    return ctypes.addressof(_byte(array))


def home_of(variable, to_write=True):
    """Where a program finds a variable's numbers in its turn and, `to_write`, overwrites them: no tensor shares them."""
    if variable.home is None and not to_write:
        return _address(variable.held.data)
    if variable.home is None:
        private = variable.device.put(variable.held.data, Tensor)
        variable.home, variable.held = _address(private.data), private
    return variable.home


class Turns:
    """Nobody else moves these variables' numbers in this `with` block. (In one order, or two would wait for ever.)"""

    def __init__(self, variables):
        self.variables = sorted(variables, key=lambda variable: variable.born)

    def __enter__(self):
        for variable in self.variables:
            variable.turn.acquire()

    def __exit__(self, *_):
        for variable in self.variables:
            variable.turn.release()


class RowProgram:
    """A graph as one program by rows: `run` does one step, `over` any number of them. Any threads may call it."""

    def __init__(self, graph, batch, over=False):
        writer = _Writer(graph, batch, over)
        with writer.a.loop("steps") if over else nullcontext() as step:
            _write_step(writer, step)
        self.graph, self.parts, self.program = graph, writer.parts, writer.a.assemble()
        self.place = {name: k for k, name in enumerate(self.program.words)}  # in a call's block
        self.block = ctypes.c_int64 * len(self.place)
        places = {of: self.place[array.name] for of, array in writer.arrays.items()}
        self.variables = [(place, of, of in graph.updates) for of, place in places.items() if isinstance(of, Variable)]
        self.inputs = [(place, k) for k, place in places.items() if not isinstance(k, Variable)]
        self.outs = [self.place[array.name] for array in writer.outs]
        self.turns = Turns(variable for _, variable, _ in self.variables)

    def launch(self, args, outs, sizes):
        """Fill in a block of words, of this call alone, and run. Variables are read, and overwritten, at home."""
        block = self.block()
        for place, k in self.inputs:
            block[place] = _address(args[k].data)
        for place, out in zip(self.outs, outs):
            block[place] = _address(out.data)
        for name, number in sizes.items():
            block[self.place[name]] = number
        with self.turns:
            for place, variable, written in self.variables:
                block[place] = variable.home or home_of(variable, written)
            self.program.run(block)
        return outs

    def run(self, args):
        """One step on these arguments. Returns the results as new tensors; the variables have their new values."""
        return self.launch(args, [x.spec.device.new(x.spec, Tensor) for x in self.graph.outputs], {})

    def over(self, args, batches):
        """A step for each row of `batches`. Returns each result, a number, as a tensor of all steps."""
        specs = [x.spec.device.spec((len(batches),), x.spec.dtype) for x in self.graph.outputs]
        rows = args[self.inputs[0][1]].spec.shape[0]
        sizes = {"rows": rows, "steps": len(batches), "batches": batches.ctypes.data}
        return self.launch(args, [spec.device.new(spec, Tensor) for spec in specs], sizes)

    def __repr__(self):
        return f"{len(self.graph.ops)} ops in one program by rows"

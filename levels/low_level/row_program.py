"""A back end that compiles a step to one program: a loop over the rows, which adds up sums, and then the update."""

# Built from 03_low_level.ipynb: edit there, then run its last cell.

import functools
import math
import operator
import struct

import numpy as np

from levels.hardware import REAL, Assembler, dot
from levels.kernels import ELEMENTWISE, KERNELS, planned, reduced
from levels.support.storage import LockAll, address_of, pinned_address

from .tensors import Tensor


class NoProgram(Exception):
    """The reason why a graph cannot become a program of some kind."""


def _with_one_more(node, inputs, batch):
    """Return a node's Spec if the batch had one more row. `inputs`: its inputs' Specs then. NoProgram if none fits."""
    spec, attrs, grown = node.spec, node.attrs, (batch + 1, *node.spec.shape[1:])
    if not node.inputs:
        return spec.device.spec(grown, spec.dtype) if (node.op, *spec.shape[:1]) == ("input", batch) else spec
    if attrs.get("shape", ())[:1] == (batch,) and inputs != [x.spec for x in node.inputs]:
        attrs = attrs | {"shape": grown}
    try:
        larger = planned(node.op, inputs, attrs).spec
    except ValueError as why:  # for example, the step has a shape written into it
        raise NoProgram(f"{node!r} is for {batch} rows alone ({why})") from None
    if larger is not spec and larger.shape != grown:
        raise NoProgram(f"{node!r} grows by more than a row")
    return larger


def row_parts(graph, batch):
    """Return {node: "row" if it has rows, "sum" if it adds rows up, "after" if it needs a sum, else "before"}.

    Raises NoProgram if the graph cannot be split like this.
    """
    parts, specs = {}, {}
    for node in graph.nodes:
        read = {parts[x] for x in node.inputs}
        specs[node] = _with_one_more(node, [specs[x] for x in node.inputs], batch)
        if "row" in read and not read.isdisjoint(("sum", "after")):
            raise NoProgram(f"{node!r} needs more than a row at a time")
        if specs[node] is not node.spec:
            parts[node] = "row"
        else:
            parts[node] = "sum" if "row" in read else "before" if read <= {"before"} else "after"
    return parts


def _each(function, *arrays):
    """Call a function for each number of the broadcast arrays. Return its results."""
    return np.asarray(np.frompyfunc(function, len(arrays), 1)(*arrays), object)


def as_instructions(node, *values, **numbers):
    """Call an op's scalar function on registers. Raises NoProgram if it needs their numbers, as for an `if`."""
    try:
        return KERNELS[node.op, node.spec.device.kind](*values, **numbers)
    except (ArithmeticError, AttributeError, TypeError, ValueError) as why:
        raise NoProgram(f"the function of {node.op} cannot be written as instructions ({why})") from None


def _elementwise(node, shape, *inputs):
    numbers = {name: value for name, value in node.attrs.items() if name != "shape"}
    return np.broadcast_to(_each(functools.partial(as_instructions, node, **numbers), *inputs), shape)


def _products(node, shape, x, w):
    x, w = x.T if node.attrs.get("transpose_x") else x, w.T if node.attrs.get("transpose_w") else w
    return np.array([dot(row, unit) for row in x for unit in w.T], object).reshape(shape)


def _repeated(node, shape, dy, x):
    _, (before, within, after) = reduced(node.op, shape, node.attrs.get("axis"))
    dy = dy.reshape(before, 1, after)
    x = x.reshape(before, within, after)
    return _each(functools.partial(as_instructions, node), dy, x).reshape(shape)


LOWERINGS = {  # op -> its values; "sum …" -> what a row adds
    "matmul": _products,
    "spread": _repeated,
    "sum matmul": lambda node, shape, x, dy: [x.T * dy],
    "sum reduce_sum": lambda node, shape, x: x.reshape(-1, *shape),
}


def _lowering_of(op):
    """Return the function that computes an op. Raises NoProgram if there is none."""
    if op not in LOWERINGS and op not in ELEMENTWISE:
        raise NoProgram(f"{op} has no form for single numbers")
    return LOWERINGS.get(op, _elementwise)


def check_fits(graph):
    """Raise NoProgram for several dtypes, empty arrays, other devices, or replaced kernels that are not elementwise."""
    edges = [*graph.outputs, *graph.updates.values(), *(x for x in graph.nodes if x.op in ("input", "variable"))]
    dtypes = {node.spec.dtype for node in graph.nodes} - {np.dtype(bool)} | {node.spec.dtype for node in edges}
    if len(dtypes) != 1 or dtypes.isdisjoint(REAL):
        raise NoProgram(f"it has {', '.join(sorted(map(str, dtypes)))}; expected one float dtype, and no bools outside")
    for node in graph.nodes:
        kind = node.spec.device.kind
        ours = not node.inputs or node.op in ELEMENTWISE or KERNELS.is_first(node.op, kind)
        if kind != "cpu" or not ours or 0 in node.spec.shape:
            raise NoProgram(f"{node!r} on {kind} is left to its kernel")


def _place(part, index, row):
    """Return the indices of a number in its array. `row` is the first if the array has rows."""
    return (row, *index[1:]) if part == "row" else index or (0,)


def _write(graph, parts, batch, load, total_of, assembler):
    """Return the program, and the owners of its arrays. It takes two counts, steps and rows, and then addresses."""
    shape = {x: (1, *x.spec.shape[1:]) if parts[x] == "row" else x.spec.shape for x in graph.nodes}
    values = {x: x.attrs["of"].numpy().astype(object) for x in graph.nodes if x.op == "constant"}
    owned = {x.attrs["of"]: x for op in ("input", "variable") for x in graph.nodes if x.op == op} | graph.updates
    a = assembler("steps", next(iter(owned.values())).spec.dtype)
    batches = a.array("batches", "steps", batch, rows_of="rows")
    outs = [a.array(f"out{k}", "steps", *(x.spec.shape or (1,))) for k, x in enumerate(graph.outputs)]
    sizes = [_place(parts[x], shape[x] or (1,), "rows") for x in owned.values()]
    arrays = {of: a.array(f"array{k}", *sizes[k]) for k, of in enumerate(owned)}

    def compute(part, row=None):
        for x in graph.nodes:
            if parts[x] == part and x.inputs:
                values[x] = _lowering_of(x.op)(x, shape[x], *[values[y] for y in x.inputs])
            elif parts[x] == part and x not in values:
                numbers = [a.load(arrays[x.attrs["of"]], *_place(part, index, row)) for index in np.ndindex(shape[x])]
                values[x] = np.array(numbers, object).reshape(shape[x])

    def keep(nodes, places, *step, row=None):
        for x, array in zip(nodes, places):
            if (parts[x] == "row") == (row is not None):
                for index, value in np.ndenumerate(values[x]):
                    a.store(value, array, *step, *_place(parts[x], index, row))

    with a.loop("steps") as step:
        compute("before")
        totals = {x: _each(lambda _: a.sum(), np.empty(shape[x])) for x in parts if parts[x] == "sum"}
        with a.loop(batch) as r:
            compute("row", load(a, batches, step, r))
            for x, total in totals.items():
                for term in _lowering_of(f"sum {x.op}")(x, shape[x], *map(values.get, x.inputs)):
                    _each(operator.iadd, total, term)
            keep(graph.outputs, outs, step, row=r)
        for x, sums in totals.items():
            values[x] = total_of(a, sums)
        compute("after")
        keep(graph.outputs, outs, step)
        keep(graph.updates.values(), map(arrays.get, graph.updates))
    return a.assemble(), list(arrays)


_LARGEST_ROW = 1000  # numbers written out for one row; with more, launches are quicker


class RowProgram:
    """A graph as one program: `run` does one step, and `over` any number of steps. Any thread may call them.

    Its constructor raises NoProgram if the graph cannot be split into rows, or has too many numbers for each.
    """

    assembler = Assembler
    load = staticmethod(lambda a, *place: a.load(*place))  # load(a, batches, step, i): the row numbers of a batch

    def __init__(self, graph, batch, over=False):
        check_fits(graph)
        self.graph, self.parts = graph, row_parts(graph, batch) if batch else {}
        if "row" not in self.parts.values():
            raise NoProgram("it reads no rows")
        work = sum(math.prod(x.spec.shape[of == "row" :]) for x, of in self.parts.items())
        if work > _LARGEST_ROW:
            raise NoProgram(f"it has {work:,} numbers for each row, and a row program takes {_LARGEST_ROW:,}")
        if "row" in {self.parts[x] for x in graph.updates.values()}:
            raise NoProgram("a variable keeps a number of each row")
        self.program, owners = _write(graph, self.parts, batch, self.load, self.totals, self.assembler)
        self.words = struct.Struct(f"{len(self.program.words)}q").pack
        self.inputs = [of for of in owners if type(of) is int]
        self.variables = owners[len(self.inputs) :]
        self.locks = LockAll(self.variables)
        self.specs, self.every = [x.spec for x in graph.outputs], np.arange(batch, dtype=np.int64)
        self.once = 1, batch, self.every.ctypes.data

    @staticmethod
    def totals(a, sums):
        """Return the totals of an array of running sums."""
        return _each(lambda one: one.total(), sums)

    def launch(self, args, specs, sizes):
        """Run the program and return the results. Variables are locked, and those with updates overwritten in place."""
        outs = [Tensor(spec) for spec in specs]
        given = [address_of(x.data) for x in (*outs, *map(args.__getitem__, self.inputs))]
        with self.locks:
            pinned = [v.pinned or pinned_address(v, v in self.graph.updates) for v in self.variables]
            self.program.run(self.words(*sizes, *given, *pinned))
        return outs

    def run(self, args):
        """Run one step on these arguments: update the variables, and return the results as new tensors."""
        return self.launch(args, self.specs, self.once)

    def over(self, args, batches):
        """Run a step for each row of `batches`. Return a tensor for each result, with one number per step."""
        specs = [spec.device.spec((len(batches),), spec.dtype) for spec in self.specs]
        return self.launch(args, specs, (len(batches), len(args[0].data), batches.ctypes.data))

    def __repr__(self):
        return f"{len(self.graph.ops)} ops in one row program"

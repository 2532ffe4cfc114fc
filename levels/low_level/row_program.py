"""A back end that makes a step one program: a loop over the rows, then the update."""

# Built from 03_low_level.ipynb: edit there, then run its last cell.

import math
import struct

import numpy as np

from levels.hardware import Assembler
from levels.support.storage import LockAll, address_of, pinned_address

from .lowering import LOWERINGS, NoProgram, _add_row, _each, _elementwise, check_fits, row_parts
from .tensors import Tensor


def _places(shape, row, before=()):
    """List (index of a number, its place in an array). `before`: indices in front."""
    found = []
    for index in np.ndindex(shape):
        place = index if row is None else (row, *index[1:])
        found.append((index, (*before, *place) or (0,)))
    return found


def _loaded(a, array, shape, row):
    """Write the loads of an array, or of a row of it. Return the registers."""
    values = np.empty(shape, object)
    for index, place in _places(shape, row):
        values[index] = a.load(array, *place)
    return values


def _store(a, values, array, *before, row):
    """Write the stores of registers into an array, or into a row of it."""
    for index, place in _places(values.shape, row, before):
        a.store(values[index], array, *place)


def _declared(a, graph, parts, batch):
    """Declare the arrays of a program: the row numbers, the results, and a dict.

    The dict is {the number of an argument, or a variable: its array}.
    """
    batches = a.array("batches", "steps", batch, rows_of="rows")
    outs = []
    for k, node in enumerate(graph.outputs):
        outs.append(a.array(f"out{k}", "steps", *node.spec.shape))
    arrays = {}
    for k, node in graph.leaves("input").items():
        shape = node.spec.shape or (1,)
        shape = ("rows", *shape[1:]) if parts[node] == "row" else shape
        arrays[k] = a.array(f"array{len(arrays)}", *shape)
    for variable in graph.leaves("variable") | graph.updates:
        shape = variable.spec.shape or (1,)
        arrays[variable] = a.array(f"array{len(arrays)}", *shape)
    return batches, outs, arrays


class OpWriter:
    """Writes the ops of a graph as instructions, for batches of one size."""

    assembler = Assembler

    def __init__(self, graph, parts, batch):
        self.graph = graph
        self.parts = parts
        self.batch = batch
        self.values = {}  # node -> its numbers or registers, as an array: of one row
        dtype = [x.spec.dtype for x in graph.leaves("input").values()][0]
        self.a = self.assembler("steps", dtype)
        self.batches, self.outs, self.arrays = _declared(self.a, graph, parts, batch)

    def value_of(self, node, row):
        """Write an op, or the loads of a leaf. Return its registers."""
        shape = node.spec.shape if row is None else (1, *node.spec.shape[1:])
        if node.op == "constant":
            return node.source.numpy().astype(object)
        if not node.inputs:
            return _loaded(self.a, self.arrays[node.source], shape, row)
        lower = LOWERINGS.get(node.op, _elementwise)
        return lower(node, shape, *[self.values[x] for x in node.inputs])

    def compute(self, part, row=None):
        """Write all ops of a part."""
        for node in self.graph.nodes:
            if self.parts[node] == part:
                self.values[node] = self.value_of(node, row)

    def keep(self, step, row=None):
        """Store the results and new values of a row, or else those of the step."""
        now = {x for x in self.parts if (self.parts[x] == "row") == (row is not None)}
        for node, array in zip(self.graph.outputs, self.outs):
            if node in now:
                _store(self.a, self.values[node], array, step, row=row)
        for variable, node in self.graph.updates.items():
            if node in now:
                _store(self.a, self.values[node], self.arrays[variable], row=row)


class StepWriter(OpWriter):
    """Writes a loop over steps: what is before the rows, each row, sums, the rest."""

    def write(self):
        """Write the program, and return it."""
        with self.a.loop("steps") as step:
            self.before()
            with self.a.loop(self.batch) as k:
                self.row(step, k)
            self.sum()
            self.after(step)
        return self.a.assemble()

    def before(self):
        """Compute what needs no row, and begin the sums."""
        self.compute("before")
        self.sums = {}  # node -> an array of running sums
        for node, part in self.parts.items():
            if part == "sum":
                shape = node.spec.shape
                self.sums[node] = _each(lambda _: self.a.sum(), np.empty(shape))

    def row(self, step, k):
        """Compute row k of the step's batch, and add its shares to the sums."""
        self.compute("row", self.row_number(step, k))
        for node, sums in self.sums.items():
            _add_row(node, sums, *[self.values[x] for x in node.inputs])
        self.keep(step, k)

    def row_number(self, step, k):
        """Load the number of a row."""
        return self.a.load(self.batches, step, k)

    def sum(self):
        """Take the totals of the sums."""
        for node, sums in self.sums.items():
            self.values[node] = np.asarray(self.totals(sums), object)

    def totals(self, sums):
        """Return the totals of an array of running sums."""
        return _each(lambda one: one.total(), sums)

    def after(self, step):
        """Compute what needs the sums."""
        self.compute("after")
        self.keep(step)


_LARGEST_ROW = 1000  # numbers written out for one row; with more, launches are quicker


def _check_rows(parts):
    """Raise NoProgram if no node has rows, or if there are too many numbers for one."""
    if "row" not in parts.values():
        raise NoProgram("it reads no rows")
    work = sum(math.prod(x.spec.shape[part == "row" :]) for x, part in parts.items())
    if work > _LARGEST_ROW:
        told = f"it has {work:,} numbers for each row, and a row program takes"
        raise NoProgram(f"{told} {_LARGEST_ROW:,}")


class RowProgram:
    """A graph as one program. Any thread may call it.

    Raises NoProgram if the graph does not split into rows, or if a row is too large.
    """

    writer = StepWriter

    def __init__(self, graph, batch, over=False):
        check_fits(graph)
        self.graph = graph
        self.parts = row_parts(graph, batch) if batch else {}
        _check_rows(self.parts)
        self.program = self.writer(graph, self.parts, batch).write()
        self.words = struct.Struct(f"{len(self.program.words)}q").pack
        self.inputs = [*graph.leaves("input")]
        self.variables = [*graph.leaves("variable") | graph.updates]
        self.locks = LockAll(self.variables)
        self.specs = [x.spec for x in graph.outputs]
        self.every = np.arange(batch, dtype=np.int64)
        self.once = 1, batch, self.every.ctypes.data

    def launch(self, args, specs, sizes):
        """Run the program, which overwrites the variables. Return the results."""
        outs = [Tensor(spec) for spec in specs]
        given = [*outs, *[args[k] for k in self.inputs]]
        addresses = [address_of(x.data) for x in given]
        with self.locks:
            for v in self.variables:
                address = v.pinned or pinned_address(v, v in self.graph.updates)
                addresses.append(address)
            self.program.run(self.words(*sizes, *addresses))
        return outs

    def run(self, args):
        """Run one step: update the variables, and return the results as new tensors."""
        return self.launch(args, self.specs, self.once)

    def over(self, args, batches):
        """Run a step for each row of `batches`. Each result has one number per step."""
        steps = len(batches)
        specs = [spec.device.spec((steps,), spec.dtype) for spec in self.specs]
        sizes = steps, len(args[0].data), batches.ctypes.data
        return self.launch(args, specs, sizes)

    def __repr__(self):
        return f"{len(self.graph.ops)} ops in one row program"

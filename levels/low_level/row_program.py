"""A back end that makes a step one program: a loop over the rows, then the update."""

# Built from 03_low_level.ipynb: edit there, then run its last cell.

import operator
import struct

import numpy as np

from levels.hardware import Assembler
from levels.kernels import ELEMENTWISE, KERNELS
from levels.support.programs import check_fits, check_form, check_rows
from levels.support.storage import LockAll, address_of, pinned_address

from .lowering import LOWERINGS, SHARES, _each, _elementwise, row_parts
from .tensors import Tensor


def _place(index, row, before=()):
    """Return where a number lies in an array, or in row `row`. `before`: in front."""
    place = index if row is None else (row, *index[1:])
    return (*before, *place) or (0,)


def _loaded(a, array, shape, row):
    """Write the loads of an array, or of a row of it. Return the registers."""
    values = np.empty(shape, object)
    for index in np.ndindex(shape):
        values[index] = a.load(array, *_place(index, row))
    return values


class OpWriter:
    """Writes the ops of a graph as instructions, for batches of one size."""

    assembler = Assembler

    def __init__(self, graph, parts, batch):
        self.graph = graph
        self.parts = parts
        self.batch = batch
        self.values = {}  # node -> its numbers or registers, as an array: of one row
        inputs = graph.leaves("input")
        self.a = self.assembler("steps", [*inputs.values()][0].spec.dtype)
        self.batches = self.a.array("batches", "steps", batch, rows_of="rows")
        self.outs = []
        for k, node in enumerate(graph.outputs):
            self.outs.append(self.a.array(f"out{k}", "steps", *node.spec.shape))
        self.arrays = {}  # the number of an argument, or a variable -> its array
        for source, x in (inputs | graph.leaves("variable") | graph.updates).items():
            shape = x.spec.shape or (1,)
            if source in inputs and parts[x] == "row":
                shape = ("rows", *shape[1:])
            self.arrays[source] = self.a.array(f"array{len(self.arrays)}", *shape)

    def value_of(self, node, row):
        """Write an op, the loads of a leaf, or new sums. Return the registers."""
        shape = node.spec.shape if row is None else (1, *node.spec.shape[1:])
        if self.parts[node] == "sum":
            return _each(lambda _: self.a.sum(), np.empty(shape))
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


class StepWriter(OpWriter):
    """Writes a loop over steps: what is before the rows, each row, what is after."""

    def write(self):
        """Write the program, and return it."""
        sums = [node for node, part in self.parts.items() if part == "sum"]
        with self.a.loop("steps") as step:
            self.compute("before")
            self.compute("sum")
            with self.a.loop(self.batch) as k:
                self.compute("row", self.row_number(step, k))
                for node in sums:
                    self.add_row(node)
                self.keep(step, k)
            for node in sums:
                self.values[node] = self.totals(self.values[node])
            self.compute("after")
            self.keep(step)
        return self.a.assemble()

    def row_number(self, step, k):
        """Load the number of row k of a step's batch."""
        return self.a.load(self.batches, step, k)

    def add_row(self, node):
        """Add to an op's sums what one row has. Raises NoProgram if SHARES lacks it."""
        check_form("the share of a row", node.op, SHARES)
        inputs = [self.values[x] for x in node.inputs]
        for term in SHARES[node.op](node.spec.shape, *inputs):
            _each(operator.iadd, self.values[node], term)

    def totals(self, sums):
        """Return the totals of an array of running sums."""
        return _each(lambda one: one.total(), sums)

    def keep(self, step, row=None):
        """Store the results and new values of a row, or else those of the step."""
        stores = [(x, out, (step,)) for x, out in zip(self.graph.outputs, self.outs)]
        stores += [(x, self.arrays[v], ()) for v, x in self.graph.updates.items()]
        for node, array, before in stores:
            if (self.parts[node] == "row") == (row is not None):
                for index, value in np.ndenumerate(self.values[node]):
                    self.a.store(value, array, *_place(index, row, before))


class RowProgram:
    """A graph as one program. Raises NoProgram if it cannot become one."""

    writer = StepWriter

    def __init__(self, graph, batch, over=False):
        check_fits(graph, KERNELS, ELEMENTWISE)
        self.graph = graph
        self.parts = row_parts(graph, batch) if batch else {}
        check_rows(self.parts)
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
        with self.locks:  # any thread may call it
            for v in self.variables:
                addresses.append(v.pinned or pinned_address(v, v in self.graph.updates))
            self.program.run(self.words(*sizes, *addresses))
        return outs

    def run(self, args):
        """Run one step: update the variables, and return the results as new tensors."""
        return self.launch(args, self.specs, self.once)

    def over(self, args, batches):
        """Run a step for each row of `batches`. Each result has one number per step."""
        steps = len(batches)
        specs = [spec.device.spec((steps,), spec.dtype) for spec in self.specs]
        return self.launch(args, specs, (steps, len(args[0].data), batches.ctypes.data))

    def __repr__(self):
        return f"{len(self.graph.ops)} ops in one row program"

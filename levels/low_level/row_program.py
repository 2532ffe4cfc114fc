"""A back end that makes a step one program: a loop over the rows, then the update."""

# Built from 03_low_level.ipynb: edit there, then run its last cell.

import functools
import operator

import numpy as np

from levels.hardware import Assembler, dot
from levels.kernels import ELEMENTWISE, KERNELS, planned, reduced
from levels.support import programs
from levels.support.programs import check_fits
from levels.support.rows import check_form, check_rows, declared, larger_spec, load_all, store_all, told_by
from levels.support.storage import Block

from .tensors import Tensor

NoProgram = programs.NoProgram  # the reason why a graph cannot become a program


def row_parts(graph, batch):
    """Return {node: its part, "before", "row", "sum" or "after"}. Raises NoProgram."""
    parts = {}
    larger = {}  # node -> its Spec for a batch with one row more
    for node in graph.nodes:
        read = {parts[x] for x in node.inputs}
        needs_sum = bool(read & {"sum", "after"})
        if "row" in read and needs_sum:
            raise NoProgram(f"{node!r} needs more than a row at a time")
        inputs = [larger[x] for x in node.inputs]
        larger[node] = larger_spec(planned, node, inputs, batch)
        if larger[node] is not node.spec:
            parts[node] = "row"
        elif "row" in read:
            parts[node] = "sum"
        else:
            parts[node] = "after" if needs_sum else "before"
    return parts


def _each(function, *arrays):
    """Call a function for each number of the broadcast arrays. Return its results."""
    return np.asarray(np.frompyfunc(function, len(arrays), 1)(*arrays), object)


def as_instructions(node, *values, **numbers):
    """Call an op's scalar function on registers. Raises NoProgram if that fails."""
    with told_by(node.op):
        return KERNELS[node.op, node.spec.device.kind](*values, **numbers)


def _elementwise(node, shape, *inputs):
    check_form("single numbers", node.op, ELEMENTWISE)
    attrs = {name: value for name, value in node.attrs.items() if name != "shape"}
    written = functools.partial(as_instructions, node, **attrs)
    return np.broadcast_to(_each(written, *inputs), shape)


def _products(node, shape, x, w):
    x = x.T if node.attrs.get("transpose_x") else x
    w = w.T if node.attrs.get("transpose_w") else w
    found = [dot(row, unit) for row in x for unit in w.T]
    return np.array(found, object).reshape(shape)


def _repeated(node, shape, dy, x):
    """Return the numbers of a "spread": the dy of its sum for each number of x."""
    _, (before, within, after) = reduced(node.op, shape, node.attrs.get("axis"))
    dy = dy.reshape(before, 1, after)
    x = x.reshape(before, within, after)
    return _each(functools.partial(as_instructions, node), dy, x).reshape(shape)


# op -> its numbers, from those of its inputs; else `_elementwise`
LOWERINGS = {"matmul": _products, "spread": _repeated}


def _numbers_of(node, part, inputs):
    """Return the numbers of an op, for one row if it has rows, from those of inputs."""
    shape = (1, *node.spec.shape[1:]) if part == "row" else node.spec.shape
    return LOWERINGS.get(node.op, _elementwise)(node, shape, *inputs)


SHARES = {  # op that adds rows up -> the terms that a row adds to its sums
    "matmul": lambda shape, x, dy: [x.T * dy],
    "reduce_sum": lambda shape, x: x.reshape(-1, *shape),
}


class OpWriter:
    """Writes the ops of a graph as instructions, for batches of one size."""

    assembler = Assembler

    def __init__(self, graph, parts, batch):
        self.graph = graph
        self.parts = parts
        self.batch = batch
        self.values = {}  # node -> its numbers or registers, as an array: of one row
        (first, *_) = graph.leaves("input").values()  # all have one dtype
        self.a = self.assembler("steps", first.spec.dtype)
        self.batches = self.a.array("batches", "steps", batch, rows_of="rows")
        self.outs, self.arrays = declared(self.a, graph, parts)

    def value_of(self, node, row):
        """Write an op, the loads of a leaf, or new sums. Return the registers."""
        if self.parts[node] == "sum":
            return _each(lambda _: self.a.sum(), np.empty(node.spec.shape))
        if node.op == "constant":
            return node.source.numpy().astype(object)
        if not node.inputs:
            shape = node.spec.shape if row is None else (1, *node.spec.shape[1:])
            return load_all(self.a, self.arrays[node.source], shape, row)
        inputs = [self.values[x] for x in node.inputs]
        return _numbers_of(node, self.parts[node], inputs)

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
            of_a_row = self.parts[node] == "row"
            if of_a_row == (row is not None):
                store_all(self.a, array, self.values[node], row, before)


class RowProgram:
    """A graph as one program. Raises NoProgram if it cannot become one."""

    writer = StepWriter

    def __init__(self, graph, batch, over=False):
        check_fits(graph, KERNELS, ELEMENTWISE)
        self.graph = graph
        self.parts = row_parts(graph, batch) if batch else {}
        check_rows(self.parts)
        self.program = self.writer(graph, self.parts, batch).write()
        self.inputs = [*graph.leaves("input")]
        self.variables = [*graph.leaves("variable") | graph.updates]  # read or assigned
        self.block = Block(self.program.words, self.variables, graph.updates)
        self.specs = [x.spec for x in graph.outputs]
        self.every = np.arange(batch, dtype=np.int64)
        self.once = 1, batch, self.every.ctypes.data  # steps, rows, row numbers

    def launch(self, args, specs, sizes):
        """Run the program, which overwrites the variables. Return the results."""
        outs = [*map(Tensor, specs)]
        arrays = [x.data for x in outs]
        for k in self.inputs:
            arrays.append(args[k].data)
        with self.block.locks:  # any thread may call it
            self.program.run(self.block.words(sizes, arrays))
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

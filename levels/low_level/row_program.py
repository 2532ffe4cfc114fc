"""A step that splits into rows, sums over rows and updates is one program: level 1's, written by the graph."""

# Built from 03_low_level.ipynb: edit there, then run its last cell.

import ctypes
import math
import threading
from contextlib import nullcontext

import numpy as np

from levels.hardware import REAL, Assembler
from levels.kernels import ELEMENTWISE, KERNELS

from .autodiff import size
from .forms import NoProgram, each, form_of
from .graph import needed_by
from .replay import check_results
from .tensors import Tensor

LIMIT = 1500  # operations on single numbers that are written out for one row; with more, launches are quicker


def check_fits(graph):
    """Raise NoProgram for what no program can hold: several dtypes, empty arrays, other devices, a reader's own kernels."""
    dtypes = {node.spec.dtype for node in graph.nodes} - {np.dtype(bool)}
    leaves = [node for node in graph.nodes if node.op in ("input", "variable")]
    edges = [*leaves, *graph.outputs, *graph.updates.values()]
    if len(dtypes) != 1 or dtypes.isdisjoint(REAL) or any(node.spec.dtype == bool for node in edges):
        told = ", ".join(sorted({str(node.spec.dtype) for node in graph.nodes}))
        raise NoProgram(f"it has {told}; expected one float dtype")
    if any(0 in node.spec.shape for node in graph.nodes):
        raise NoProgram("an array is empty")
    for node in graph.ops:
        kind = node.spec.device.kind
        own = KERNELS[node.op, kind].__module__.startswith("levels")  # another one, of a reader's, is run as it stands
        if kind != "cpu" or node.op not in ELEMENTWISE and not own:
            raise NoProgram(f"{node.op} on {kind} is left to its kernel")


def check_rows(graph, rows):
    """Raise NoProgram for what cannot be written out row by row."""
    if not any(node.op == "input" for node in rows):
        raise NoProgram("no argument has rows")
    if not rows.isdisjoint(graph.updates.values()):
        raise NoProgram("a variable would become rows")
    work = sum(math.prod(node.spec.shape[node in rows :]) * _depth(node) for node in graph.nodes)
    if work > LIMIT:
        raise NoProgram(f"{work:,} operations for a row; a program writes out {LIMIT:,}")


def _depth(node):
    """How many products each row adds to a number of this node."""
    return node.inputs[0].spec.shape[-1] if node.op == "matmul" and not node.attrs.get("transpose_x") else 1


class Split:
    """Which nodes of a graph are computed row by row, which add rows up, and after how many such sums each one comes."""

    def __init__(self, graph, batch):
        check_fits(graph)
        self.graph, self.rows, self.sums, self.stage = graph, set(), set(), {}
        for node in graph.nodes:
            by_row = self.by_row(node)
            self.stage[node] = max((self.stage[x] for x in node.inputs), default=0)
            if node.op == "input" and node.spec.shape[:1] == (batch,):
                self.rows.add(node)
            elif any(by_row):
                self.place(node, by_row)
        check_rows(graph, self.rows)

    def by_row(self, node):
        """For each input of a node, whether it has rows."""
        return [x in self.rows for x in node.inputs]

    def place(self, node, by_row):
        """Put a node that reads rows where it belongs."""
        adds, keeps, _ = form_of(node.op)
        if adds(node, by_row):
            self.sums.add(node)
            self.stage[node] += 1
        elif keeps(node, by_row):
            self.rows.add(node)
        else:
            raise NoProgram(f"{node!r} takes more than the same row of its inputs")


class _RowLoop:
    """Writes the loop over the rows."""

    def write_loop(self, step, known, sums, ends):
        """The loop over rows: what these sums and these results need. Returns the values of the sums."""
        a, totals = self.a, {node: each(lambda _: self.a.sum(), np.zeros(node.spec.shape)) for node in sums}
        with a.loop("batch" if self.over else "rows", a.lanes) as r:
            row, here = a.load(self.batches, step, r) if self.over else r, dict(known)
            for node in needed_by(self.graph.nodes, [*ends, *(x for total in sums for x in total.inputs)]):
                if node in self.split.rows:
                    here[node] = self.value(node, here, 1, row)
            for node in sums:
                for total, term in _terms(node, [here[x] for x in node.inputs], totals[node]):
                    total += term
            for node, out in zip(self.graph.outputs, self.outs):
                if node in ends:
                    self.store(here[node], out, r)
        return {node: self.ended(node, totals[node]) for node in sums}


class _Steps(_RowLoop):
    """Writes one step: stage after stage what all rows share, then the loop over the rows; at the end the stores."""

    def write_step(self, step):
        split, known = self.split, {}
        for stage in range(max(split.stage.values()) + 1):
            for node in self.graph.nodes:
                if split.stage[node] == stage and node not in split.rows | split.sums:
                    known[node] = self.value(node, known, 0)
            sums = [node for node in self.graph.nodes if node in split.sums and split.stage[node] == stage + 1]
            ends = [node for node in self.graph.outputs if node in split.rows and split.stage[node] == stage]
            if sums or ends:
                known |= self.write_loop(step, known, sums, ends)
        self.store_all(step, known)


class Writer(_Steps):
    """Writes the program of a split graph: of one step on rows as they lie or, with `over`, of many on rows by number."""

    def __init__(self, split, over):
        self.graph, self.split, self.over = split.graph, split, over
        dtype = next(node.spec.dtype for node in self.graph.nodes if node.spec.dtype != bool)
        self.a = a = Assembler("steps" if over else "step", dtype)
        leaves = [node for node in self.graph.nodes if node.op in ("input", "variable")]
        self.arrays = {node: a.array(f"{node.op}{k}", *self.sizes(node)) for k, node in enumerate(leaves)}
        self.batches = a.array("batches", "steps", "batch", rows_of="rows") if over else None
        shapes = [["steps"] if over else self.sizes(node) for node in self.graph.outputs]
        self.outs = [a.array(f"out{k}", *shape) for k, shape in enumerate(shapes)]
        with a.loop("steps") if over else nullcontext() as step:
            self.count = a.count("batch" if over else "rows")
            self.write_step(step)
        self.program = a.assemble()

    def sizes(self, node):
        """The shape of a node's array; the number of its rows is told by the call."""
        return ("rows", *node.spec.shape[1:]) if node in self.split.rows else node.spec.shape or (1,)

    def ended(self, node, totals):
        """The values of a node that adds rows up, once all are added."""
        totals = each(lambda total: total.total(), totals)
        if node.op != "reduce_mean":
            return totals
        x = node.inputs[0].spec
        many = self.count * (size(x) / x.shape[0] / size(node.spec))
        return each(lambda total: total / many, totals)

    def value(self, node, known, row, *place):
        """The values of a node, from those of its inputs: of one row (row=1) or of all there is (row=0)."""
        if node.op == "constant":
            return node.attrs["of"].numpy().astype(object)
        if not node.inputs:
            values = np.empty(node.spec.shape[row:], object)
            for index in np.ndindex(values.shape):
                values[index] = self.a.load(self.arrays[node], *([*place, *index] or [0]))
            return values
        _, _, values = form_of(node.op)
        return values(node, [known[x] for x in node.inputs], self.split.by_row(node), row, self.count)

    def store_all(self, step, known):
        """Store the results that have no rows, and the new values of variables."""
        for node, out in zip(self.graph.outputs, self.outs):
            if node not in self.split.rows:
                self.store(known[node], out, *([step] if self.over else []))
        homes = {node.attrs["of"]: array for node, array in self.arrays.items() if node.op == "variable"}
        for variable, node in self.graph.updates.items():
            self.store(known[node], homes[variable])

    def store(self, values, array, *place):
        """Store these values into an array, or into one place of it."""
        for index in np.ndindex(values.shape):
            self.a.store(values[index], array, *([*place, *index][: len(array.shape)] or [0]))


def _terms(node, inputs, totals):
    """[(a sum, what this row adds to it), …], in order."""
    if node.op == "matmul":
        return [(totals[i, j], x * y) for i, x in enumerate(inputs[0]) for j, y in enumerate(inputs[1])]
    totals = totals.ravel()
    return [(totals[k % len(totals)], x) for k, x in enumerate(inputs[0].ravel())]


_byte = (ctypes.c_char * 0).from_buffer


def address(array):
    """Where the numbers of an array lie. (`array.ctypes.data` says the same, and takes five times as long.)"""
    return ctypes.addressof(_byte(array))


class Home:
    """Where programs keep a variable's numbers, and overwrite them. No tensor shares this memory."""

    def __init__(self, variable):
        tensor = variable.held
        self.buffer = variable.device.alloc(variable.shape, variable.dtype)
        self.address = address(self.buffer.data)
        self.writing, self.held, self.at_home = 0, (0, tensor), -1  # held: of which writing, and the tensor

    def replace(self, tensor):
        """Another tensor was assigned."""
        self.held = self.writing + 1, tensor
        self.writing += 1

    def newest(self):
        """The newest numbers as a tensor: what was assigned, or a copy of what a program has written since."""
        writing, tensor = self.held
        if writing != self.writing:
            writing, tensor = self.writing, self.buffer.device.put(self.buffer.data, Tensor)
            self.held = writing, tensor
        return tensor

    def settle(self):
        """Bring the newest numbers here, unless another thread was quicker."""
        if self.at_home != self.writing:
            writing, tensor = self.held
            self.buffer.device.write(self.buffer.data, tensor.data)
            self.at_home = writing


def home_of(variable):
    """The address at which programs find a variable: its home, with the newest numbers in it."""
    home = variable.home
    if home is None or home.at_home != home.writing:
        with variable.turn:
            home = variable.home = variable.home or Home(variable)
            home.settle()
    return home.address


def written_at_home(variable):
    """A program has written new numbers: whoever reads the variable next copies them."""
    with variable.turn:
        home = variable.home
        home.at_home = home.writing = home.writing + 1


class RowProgram:
    """A graph as one program by rows: `run` does one step, `over` any number of them. Any threads may call it."""

    def __init__(self, graph, batch, over=False):
        self.graph, self.split, self.lock = graph, Split(graph, batch), threading.Lock()
        if over and not self.split.rows.isdisjoint(graph.outputs):
            raise NoProgram("it returns a number for each row")
        writer = Writer(self.split, over)
        self.program, self.changed = writer.program, list(graph.updates)
        self.places = {word: place for place, word in enumerate(self.program.words)}  # name -> its place in a block
        self.block = ctypes.c_int64 * len(self.places)
        leaves = [(self.places[array.name], node) for node, array in writer.arrays.items()]
        self.inputs = [(place, node.attrs["of"]) for place, node in leaves if node.op == "input"]
        self.variables = [(place, node.attrs["of"]) for place, node in leaves if node.op == "variable"]
        self.outs = [self.places[array.name] for array in writer.outs]
        self.first = next(node.attrs["of"] for node in graph.nodes if node.op == "input" and node in self.split.rows)

    def launch(self, args, outs, sizes):
        """Fill in a block of words and run. Variables are read, and overwritten, at home."""
        block = self.block()  # a new one for each call: threads may call at once
        for place, k in self.inputs:
            block[place] = address(args[k].data)
        for place, variable in self.variables:
            block[place] = home_of(variable)
        for place, out in zip(self.outs, outs):
            block[place] = address(out.data)
        for word, number in sizes.items():
            if word in self.places:
                block[self.places[word]] = number
        self.program.run(block)
        for variable in self.changed:
            written_at_home(variable)
        return outs

    def run(self, args):
        """One step on these arguments. Returns the results as new tensors; the variables have their new values."""
        outs = [node.spec.device.new(node.spec, kind=Tensor) for node in self.graph.outputs]
        with self.lock:
            return self.launch(args, outs, {"rows": args[self.first].spec.shape[0]})

    def over(self, args, batches):
        """A step for each row of `batches`. Returns each result, a number, as a tensor of all steps."""
        check_results(self.graph)
        steps, batch = batches.shape
        specs = [node.spec.device.spec((steps,), node.spec.dtype) for node in self.graph.outputs]
        outs = [spec.device.new(spec, kind=Tensor) for spec in specs]
        sizes = {"rows": args[self.first].spec.shape[0], "steps": steps, "batch": batch}
        with self.lock:
            return self.launch(args, outs, sizes | {"batches": batches.ctypes.data})

    def __repr__(self):
        return f"{len(self.graph.ops)} ops in one program by rows"

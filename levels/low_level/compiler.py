"""A graph becomes a program: by rows where it splits so, else loop by loop, else launch by launch."""

# Built from 03_low_level.ipynb: edit there, then run its last cell.

import ctypes
import functools
import math
import reprlib
import sys
import types
import warnings
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from operator import itemgetter

import numpy as np

from levels.hardware import PAGE, REAL, Assembler, Index, Spec, Value, aligned, dot, host_lanes, select
from levels.kernels import (
    ELEMENTWISE,
    KERNELS,
    PLANNERS,
    REDUCTIONS,
    ROWS,
    VECTORS,
    WORTH,
    as_slices,
    globals_read,
    merged_axes,
    pieces,
    plan_rows,
    planned,
    reduced,
)

from .autodiff import size
from .graph import Symbol, each, folded, numbers_of, results_of, shared, trace, without_dead
from .tensors import (
    ENGINES,
    TAPES,
    Operators,
    Tensor,
    Variable,
    as_tensor,
    at_once,
    constant,
    gather,
    new_tensor,
    renamed,
)


def adds_rows(node, by_row):
    """Whether this op adds up what the rows have."""
    if node.op in ("reduce_sum", "reduce_mean"):
        return 0 in reduced(node.op, node.inputs[0].spec.shape, node.attrs.get("axis"))[0]
    return node.op == "matmul" and all(by_row) and node.attrs.get("transpose_x") and not node.attrs.get("transpose_w")


def keeps_rows(node, by_row):
    """Whether a row of the result needs only the same row of those inputs that have rows."""
    op, attrs, axes, first = node.op, node.attrs, len(node.spec.shape), node.inputs[0].spec.shape
    if op in ELEMENTWISE:
        shapes = [(x.spec.shape, row) for x, row in zip(node.inputs, by_row)]
        return all(len(shape) == axes if row else len(shape) < axes or shape[0] == 1 for shape, row in shapes)
    if op == "matmul":
        return by_row == [True, False] and not attrs.get("transpose_x")
    if op in REDUCTIONS or op == "reduce_mean":
        return 0 not in reduced(op, first, attrs.get("axis"))[0]
    if op in ("slice", "slice_grad"):
        return attrs["slices"][0] == (None, None, None)
    if op == "reshape":
        return node.spec.shape[:1] == first[:1]
    own = op == "cast" or op == "concat" and attrs["axis"] > 0 or PLANNERS.get(op) is plan_rows and axes > 1
    return all(by_row) and own


class NoProgram(Exception):
    """Says why a graph is no program of some kind."""


LIMIT = 1500  # operations on single numbers written out for one row; with more of them, loops are quicker (measured)
OWN = dict(KERNELS)  # an op with another kernel than these is run by that kernel


def own_kernel(node):
    """Whether an op has the kernel that the course gave it."""
    key = node.op, node.spec.device.kind
    return OWN.get(key) is KERNELS[key]


def check_fits(graph):
    """Raise NoProgram for what no program can hold."""
    dtypes = {node.spec.dtype for node in graph.nodes} - {np.dtype(bool)}
    leaves = [node for node in graph.nodes if node.op in ("input", "variable")]
    masks = [node for node in (*leaves, *graph.outputs, *graph.updates.values()) if node.spec.dtype == bool]
    if masks or len(dtypes) != 1 or dtypes.isdisjoint(REAL):
        raise NoProgram(
            f"it has {', '.join(sorted(map(str, dtypes)))}{' and bools' * bool(masks)}; expected one float dtype"
        )
    for node in graph.ops:
        kind = node.spec.device.kind
        if kind != "cpu" or node.op not in ELEMENTWISE and not own_kernel(node):
            raise NoProgram(f"{node.op} on {kind} is left to its kernel")


def dtype_of(graph):
    """The dtype of all numbers in a graph that fits."""
    return next(node.spec.dtype for node in graph.nodes if node.spec.dtype != bool)


def check_rows(graph, rows):
    """Raise NoProgram for what cannot be written out row by row."""
    check_fits(graph)
    if not rows.isdisjoint(graph.updates.values()):
        raise NoProgram("a variable would become rows")
    work = sum(math.prod(node.spec.shape[node in rows :]) * depth(node) for node in graph.nodes)
    if work > LIMIT:
        raise NoProgram(f"{work:,} operations for a row; a program writes out {LIMIT:,}")


def depth(node):
    """How many products each row adds to a number of this node."""
    return node.inputs[0].spec.shape[-1] if node.op == "matmul" and not node.attrs.get("transpose_x") else 1


class Split:
    """Which nodes of a graph are computed row by row, which add rows up, and after how many such sums each one comes."""

    def __init__(self, graph, batch):
        self.graph, self.batch, self.any_batch = graph, batch, batch != 1  # does it hold for any number of rows?
        self.rows, self.sums, self.stage = set(), set(), {}
        for node in graph.nodes:
            by_row = [x in self.rows for x in node.inputs]
            self.stage[node] = max((self.stage[x] for x in node.inputs), default=0)
            if node.op == "input" and node.spec.shape[:1] == (batch,):
                self.rows.add(node)
            elif any(by_row) and adds_rows(node, by_row):
                self.sums.add(node)
                self.stage[node] += 1
            elif any(by_row):
                if not keeps_rows(node, by_row):
                    raise NoProgram(f"{node!r} takes more than the same row of its inputs")
                self.rows.add(node)
                if node.op == "spread" and by_row[0] and node.attrs["count"] % batch == 0:
                    self.any_batch = False  # each row has a share already, of a mean over this very batch
        check_rows(graph, self.rows)


def elementwise_values(node, inputs, by_row, row, batch):
    """The op's scalar function of each number; what has no rows is repeated for all."""
    numbers, axes = numbers_of(node), len(node.spec.shape)
    if node.op == "spread" and row and not by_row[0] and numbers["count"] != 1.0:
        numbers["count"] = batch * (numbers["count"] / node.spec.shape[0])  # the batch of the call, not of the trace
    inputs = [x[0] if row and not own and len(x.shape) == axes else x for x, own in zip(inputs, by_row)]
    scalar = functools.partial(KERNELS[node.op, "cpu"], **numbers)
    return np.broadcast_to(each(scalar, *inputs), node.spec.shape[row:])


def product_values(node, x, w):
    x, w = (v.T if node.attrs.get(name) else v for v, name in ((np.atleast_2d(x), "transpose_x"), (w, "transpose_w")))
    return np.array([dot(line, column) for line in x for column in w.T], object)


def reduced_values(node, x, row):
    """The op's function takes in one number after the other, in order."""
    axes = tuple(axis - row for axis in reduced(node.op, node.inputs[0].spec.shape, node.attrs.get("axis"))[0])
    op, (before, within, after) = node.op.replace("mean", "sum"), reduced(node.op, x.shape, axes)[1]
    total, x = np.full((before, after), REDUCTIONS[op], object), x.reshape(before, within, after)
    for k in range(within):
        total = each(KERNELS[op, "cpu"], total, x[:, k])
    return total if op == node.op else each(lambda t: t / float(within), total)


def row_kernel_values(node, inputs, shape):
    out = np.empty((math.prod(shape[:-1]), shape[-1]), object)
    KERNELS[node.op, "cpu"](out, *(x.reshape(out.shape) for x in inputs))
    return out


def computed(node, inputs, by_row, row, batch):
    """The values of a node: arrays of what one row has (row=1) or of all there is (row=0). `batch` counts the rows."""
    op, attrs, shape, x = node.op, node.attrs, node.spec.shape[row:], inputs[0]
    if op in ELEMENTWISE:
        return elementwise_values(node, inputs, by_row, row, batch)
    if op in REDUCTIONS or op == "reduce_mean":
        return reduced_values(node, x, row).reshape(shape)
    if PLANNERS[op] is plan_rows:
        return row_kernel_values(node, inputs, shape).reshape(shape)
    if op == "matmul":
        return product_values(node, *inputs).reshape(shape)
    if op == "cast":
        return each(lambda v: select(v, 1.0, 0.0), x) if node.inputs[0].spec.dtype == bool else x
    if op == "concat":
        return np.concatenate(inputs, attrs["axis"] - row)
    if op == "reshape":
        return x.reshape(shape)
    index = (*as_slices(attrs.get("slices", ()))[row:], ...)  # (an array, also where no axis is left)
    if op == "slice":
        return x[index]
    if op == "slice_grad":
        out = np.full(shape, 0.0, object)
        out[index] = x
        return out
    raise NoProgram(f"{op} has no form for single numbers")


def write_step(writer, step):
    """Write one step: stage after stage, what all rows share first, then the loop over the rows; then the stores."""
    graph, split, known = writer.split.graph, writer.split, {}
    for stage in range(max(split.stage.values(), default=0) + 1):
        for node in graph.nodes:
            if split.stage[node] == stage and node not in split.rows and node not in split.sums:
                if node.op == "constant":
                    known[node] = node.attrs["of"].numpy().astype(object)
                else:
                    known[node] = writer.value(node, known, 0) if node.inputs else writer.loaded(node)
        sums = [node for node in graph.nodes if node in split.sums and split.stage[node] == stage + 1]
        ends = [k for k, node in enumerate(graph.outputs) if node in split.rows and split.stage[node] == stage]
        if sums or ends:
            known |= write_loop(writer, step, known, sums, ends)
    for k, node in enumerate(graph.outputs):
        if node not in split.rows:
            writer.stored(known[node], writer.outs[k], *([step] if writer.over else []))
    variables = {node.attrs["of"]: array for node, array in writer.arrays.items() if node.op == "variable"}
    for variable, node in graph.updates.items():
        writer.stored(known[node], variables[variable])


def write_loop(writer, step, known, sums, ends):
    """Write the loop over rows: what these sums and these results need. Returns the values of the sums."""
    a, graph, split = writer.a, writer.split.graph, writer.split
    needed = {*(graph.outputs[k] for k in ends)}.union(*(node.inputs for node in sums))
    for node in reversed(graph.nodes):
        if node in needed and node in split.rows:
            needed.update(node.inputs)
    totals = {node: each(lambda _: a.sum(), np.zeros(node.spec.shape)) for node in sums}
    with a.loop(writer.extent, a.lanes) as r:
        row, here = a.load(writer.batches, step, r) if writer.over else r, dict(known)
        for node in graph.nodes:
            if node in needed and node in split.rows:
                here[node] = writer.value(node, here, 1) if node.inputs else writer.loaded(node, row)
        for node in sums:
            for total, term in terms(node, [here[x] for x in node.inputs], totals[node]):
                total += term
        for k in ends:
            writer.stored(here[graph.outputs[k]], writer.outs[k], r)
    for node in sums:
        totals[node] = each(lambda total: total.total(), totals[node])
        if node.op == "reduce_mean":
            many = writer.count * (size(node.inputs[0].spec) / node.inputs[0].spec.shape[0] / size(node.spec))
            totals[node] = each(lambda total, n: total / n, totals[node], many)
    return totals


def terms(node, inputs, totals):
    """[(a sum, what this row adds to it), …], in order."""
    if node.op == "matmul":
        return [(totals[i, j], x * y) for i, x in enumerate(inputs[0]) for j, y in enumerate(inputs[1])]
    totals = totals.ravel()
    return [(totals[k % len(totals)], x) for k, x in enumerate(inputs[0].ravel())]


class Writer:
    """Writes the program of a split graph: of one step on rows as they lie or, with `over`, of many on rows by number."""

    def __init__(self, split, over):
        graph, self.split, self.over, self.extent = split.graph, split, over, "batch" if over else "rows"
        self.a = a = Assembler("steps" if over else "step", dtype_of(graph))
        leaves = [node for node in graph.nodes if node.op in ("input", "variable")]
        self.arrays = {node: a.array(f"{node.op}{k}", *self.sizes(node)) for k, node in enumerate(leaves)}
        self.batches = a.array("batches", "steps", "batch", rows_of="rows") if over else None
        self.outs = [a.array(f"out{k}", *(["steps"] if over else self.sizes(n))) for k, n in enumerate(graph.outputs)]
        with a.loop("steps") if over else nullcontext() as step:
            self.count = a.count(self.extent) if over or split.rows else None
            write_step(self, step)
        self.program = a.assemble()

    def sizes(self, node):
        return ("rows", *node.spec.shape[1:]) if node in self.split.rows else node.spec.shape or (1,)

    def loaded(self, node, *row):
        """What an array, or one row of it, holds: an array of values."""
        values = np.empty(node.spec.shape[len(row) :], object)
        for index in np.ndindex(values.shape):
            values[index] = self.a.load(self.arrays[node], *([*row, *index] or [0]))
        return values

    def stored(self, values, array, *place):
        for index in np.ndindex(values.shape):
            self.a.store(values[index], array, *([*place, *index][: len(array.shape)] or [0]))

    def value(self, node, known, row):
        """The values of a node, from those of its inputs."""
        by_row = [x in self.split.rows for x in node.inputs]
        return computed(node, [known[x] for x in node.inputs], by_row, row, self.count)


addressof, nothing_at, refs = ctypes.addressof, (ctypes.c_char * 0).from_buffer, sys.getrefcount


def address(array):
    """Where the numbers of an array lie. (`array.ctypes.data` says the same, and takes five times as long.)"""
    return addressof(nothing_at(array))


def check_results(graph):
    """Raise ValueError unless each result of a step is one number."""
    for node in graph.outputs:
        if size(node.spec) != 1:
            raise ValueError(f"over: a step returns {node.spec}; expected one number, such as the mean of the rows")


@functools.lru_cache
def with_rows(spec, rows):
    """The Spec of as many rows like these."""
    return spec.device.spec((rows, *spec.shape[1:]), spec.dtype)


class Call:
    """A program, the block of words it is called with, and where in the block what stands.

    A word is (what it is, which one) for an array whose address will stand there, the name of a size, or a number that stays.
    """

    def __init__(self, program, words, updates):
        self.program, self.block, self.places = program, (ctypes.c_int64 * len(words))(), {}
        self.start, order = ctypes.addressof(self.block), {variable: k for k, variable in enumerate(updates)}
        for place, word in enumerate(words):
            self.places.setdefault(word, []).append(place)
            if isinstance(word, int):
                self.block[place] = word
        arrays = [(place, *word) for place, word in enumerate(words) if isinstance(word, tuple)]
        self.inputs = [(place, of) for place, what, of in arrays if what == "input"]
        self.reads = [(place, of) for place, what, of in arrays if what == "variable" and of not in order]
        self.writes = [(place, order[of]) for place, what, of in arrays if what == "variable" and of in order]
        self.outs = [(place, of) for place, what, of in arrays if what == "out"]
        self.rows = self.places.get("rows", ())


class Rows:
    """A graph as one program by rows: `run` does one step, `over` any number of them."""

    def __init__(self, graph, batch):
        self.split = Split(graph, batch)
        self.any_batch, rows = self.split.any_batch, [node for node in graph.nodes if node in self.split.rows]
        self.first = next((node.attrs["of"] for node in rows), None)  # who has rows
        self.prepare(graph, [(node.spec, node in self.split.rows) for node in graph.outputs])

    def prepare(self, graph, specs):
        """Write the program of one step. `specs`: of the results, and whether they have as many rows as the batch."""
        self.graph, self.specs, self.changed, self.values = graph, specs, [*graph.updates], [None] * len(graph.updates)
        self.one = graph.nodes[0].spec.device.spec((1,), dtype_of(graph))  # a result of one step
        self.calls, self.alone = {False: self.written(False)}, (0, 0)

    def written(self, over):
        """The program of one step, or with `over` of many, and its block."""
        writer = Writer(self.split, over)
        words = {array.name: (node.op, node.attrs["of"]) for node, array in writer.arrays.items()}
        words |= {array.name: ("out", k) for k, array in enumerate(writer.outs)}
        return Call(writer.program, [words.get(name, name) for _, name in writer.program.words], self.graph.updates)

    def settle(self):
        """Give the variables that change values in memory which nobody else sees, and tell the programs where it is."""
        self.values = [new_tensor(variable.value.spec) for variable in self.changed]
        for variable, value in zip(self.changed, self.values):
            np.copyto(value.data, variable.value.data)
            variable.value = value
            self.alone = refs(value), refs(value.data)  # as many refer to it and to its array when nobody else does
        for call in self.calls.values():
            for place, k in call.writes:
                call.block[place] = address(self.values[k].data)

    def launch(self, call, args, outs, rows):
        """Fill in the block and run."""
        block, (alone, data_alone) = call.block, self.alone
        for place, k in call.inputs:
            block[place] = addressof(nothing_at(args[k].data))
        for place, variable in call.reads:
            block[place] = address(variable.value.data)
        for place, k in call.outs:
            block[place] = addressof(nothing_at(outs[k].data))
        for place in call.rows:
            block[place] = rows
        for variable, value in zip(self.changed, self.values):
            if variable.value is not value or refs(value) > alone or refs(value.data) > data_alone:
                self.settle()
                break
        call.program.run(call.start)
        return outs

    def run(self, args):
        """One step. Returns the results as new tensors."""
        rows = None if self.first is None else args[self.first].spec.shape[0]
        outs = [new_tensor(with_rows(spec, rows) if by_row else spec) for spec, by_row in self.specs]
        return self.launch(self.calls[False], args, outs, rows)

    def over(self, args, batches):
        """A step for each row of `batches`. Returns each result, a number, as a tensor of all steps."""
        if True not in self.calls:
            check_results(self.graph)
            self.calls[True] = self.written(True)
            self.settle()
        call, (steps, batch) = self.calls[True], batches.shape
        for name, word in (("steps", steps), ("batch", batch), ("batches", address(batches))):
            for place in call.places.get(name, ()):
                call.block[place] = word
        outs = [new_tensor(with_rows(self.one, steps)) for _ in self.specs]
        return self.launch(call, args, outs, args[0].spec.shape[0])


@functools.cache
def in_programs(function, masks, floats, numbers):
    """Whether a scalar function can be written into a program: not if it asks `if`, or calls what knows only numbers."""
    a = Assembler("trial", np.float32)
    x = a.number("x")
    try:
        result = function(*[x < x] * masks, *[x] * floats, **dict.fromkeys(numbers, 0.5))
    except Exception:  # whatever it is that it cannot do
        return False
    return isinstance(result, Value)


def loop_of(node):
    """The Spec, a shape and a dtype of floats, that all nodes of a loop share. None for a node that fits in none."""
    results, _, _, masks = ELEMENTWISE.get(node.op, (0, None, None, 0))
    dtype, device = node.inputs[-1].spec.dtype, node.spec.device
    plain = node.op == "cast" and dtype in (np.dtype(bool), node.spec.dtype) and own_kernel(node)
    loop = device.spec(node.spec.shape, node.spec.dtype if plain else dtype)
    if loop.dtype not in REAL or not 0 < loop.nbytes < 2**31 or device.kind != "cpu" or results != 1 and not plain:
        return None
    function, floats = KERNELS[node.op, device.kind], len(node.inputs) - masks
    return loop if plain or in_programs(function, masks, floats, tuple(numbers_of(node))) else None


def fused(graph, alone=frozenset()):
    """The units of a graph: lists of nodes, in an order in which they can run. Those of `alone` are units of their own."""
    home, closed = {}, set()  # node -> its unit; nodes of units that are closed
    for node in graph.ops:
        loop = None if node in alone else loop_of(node)
        joined = [x for x in node.inputs if loop and x in home and x not in closed and loop_of(x) is loop]
        if any(x.spec.dtype == np.bool_ and x not in joined for x in node.inputs):
            loop, joined = None, []
        for x in node.inputs:
            if x not in joined:
                closed.update(home.get(x, ()))
        if not loop:
            closed.add(node)
        unit = [*dict.fromkeys(member for x in joined for member in home[x]), node]
        home.update(dict.fromkeys(unit, unit))
    read = {x for node in home for x in node.inputs if home.get(x) is not home[node]}
    read.update(graph.outputs, graph.updates.values())
    if masks := {x for x in read if x.spec.dtype == np.bool_ and len(home.get(x, ())) > 1}:
        return fused(graph, alone | masks)
    return [unit for node, unit in home.items() if unit[-1] is node]


def all_lanes(dtype):
    """How many numbers a register holds. Lanes that never meet in a sum reorder nothing, so float64 has them too."""
    return host_lanes() * 4 // dtype.itemsize


def loop_program(nodes, results):
    """One program for these elementwise nodes; and whose arrays it takes, in order: the inputs, then the results."""
    inputs = list(dict.fromkeys(x for node in nodes for x in node.inputs if x not in nodes))
    sizes, owners = zip(*merged_axes(results[0].spec.shape, [x.spec.shape for x in inputs]))
    owned = dict(zip(inputs, zip(*owners))) | dict.fromkeys(results, (True,) * len(sizes))

    def own(x, parts):
        return [part for part, has in zip(parts, owned[x]) if has]

    dtype = inputs[0].spec.dtype
    a = Assembler("fused loop", dtype, all_lanes(dtype))
    arrays = {x: a.array(f"x{n}", *own(x, sizes) or [1]) for n, x in enumerate(owned)}
    values, index = {}, []
    with ExitStack() as loops:
        for depth in range(len(sizes) + 1):
            if depth:
                index.append(loops.enter_context(a.loop(sizes[depth - 1], a.lanes if depth == len(sizes) else 1)))
            for x in inputs:  # a row's number, or a lone one, is loaded before the loops in which it stays the same
                if x not in values and not any(owned[x][depth:]):
                    values[x] = a.load(arrays[x], *own(x, index) or [0])
        for node in nodes:
            function = KERNELS[node.op, node.spec.device.kind]
            if node.op == "cast":
                x = node.inputs[0]
                values[node] = select(values[x], 1.0, 0.0) if x.spec.dtype == bool else values[x]
            else:
                values[node] = function(*map(values.get, node.inputs), **numbers_of(node))
        for node in results:
            a.store(values[node], arrays[node], *index)
    return a.assemble(), list(arrays)


def room_for(spec):
    """A buffer of as many bytes."""
    return spec.device.alloc((spec.nbytes,), np.bool_)


def placed(units, kept):
    """{node: a buffer} for what passes from unit to unit and is not kept."""
    last = {x: n for n, unit in enumerate(units) for node in unit for x in node.inputs}
    buffers, free = {}, {}
    for n, unit in enumerate(units):
        for x in unit:
            if x not in kept and last[x] > n:
                again = free.get(x.spec.nbytes)
                buffers[x] = again.pop() if again else room_for(x.spec)
        for x in dict.fromkeys(x for node in unit for x in node.inputs):
            if x in buffers and last[x] == n:
                free.setdefault(x.spec.nbytes, []).append(buffers[x])
    return buffers


def run_loop(nodes, results, fixed):
    """A unit of several nodes as a function of {node: array}, and the bytes it moves. `fixed` arrays never change."""
    program, taken = loop_program(nodes, results)
    block = (ctypes.c_int64 * len(taken))(*(address(fixed[x]) if x in fixed else 0 for x in taken))
    changing = [(n, x) for n, x in enumerate(taken) if x not in fixed]

    def run(arrays):
        for n, x in changing:
            block[n] = address(arrays[x])
        program.run(block)

    return run, sum(x.spec.nbytes for x in taken)


def run_launch(node):
    """A unit of one node as a function of {node: array}, and the bytes it moves."""
    plan = planned(node.op, [x.spec for x in node.inputs], node.attrs)
    run, numbers, take = plan.run, [node.attrs[name] for name in plan.numbers], itemgetter(node, *node.inputs)
    return lambda arrays: run(*take(arrays), *numbers), plan.nbytes


def references(variable):
    """How many know the tensor of a variable, its array, and the memory behind that."""
    tensor = variable.value
    return refs(tensor), refs(tensor.data), refs(getattr(tensor.data, "base", None))


ALONE = references(Variable(np.zeros(PAGE)))  # (an array under a page has nothing behind it; a new one costs little)


class Launches:
    """A graph, ready to run: a function for each unit, and memory for what passes between them. One call at a time."""

    def __init__(self, graph, why=None):
        self.graph, self.why, self.any_batch = graph, why, False  # why: what kept it from being a program by rows
        kept, self.units, self.spare = {*graph.outputs, *graph.updates.values()}, fused(graph), {}
        self.leaves, self.made = [x for x in graph.nodes if not x.inputs], [x for x in graph.ops if x in kept]
        self.buffers = placed(self.units, kept)
        fixed = {x: b.data.view(x.spec.dtype).reshape(x.spec.shape) for x, b in self.buffers.items()}
        fixed |= {x: x.attrs["of"].data for x in self.leaves if x.op == "constant"}
        results = [[x for x in unit if x in kept or x in fixed] for unit in self.units]
        pairs = zip(self.units, results)
        runs = [run_loop(unit, out, fixed) if len(unit) > 1 else run_launch(*unit) for unit, out in pairs]
        self.fixed, self.runs, self.nbytes = fixed, [run for run, _ in runs], sum(nbytes for _, nbytes in runs)

    launches = property(lambda self: len(self.units))

    @property
    def saved(self):
        """The bytes that values save by sharing buffers."""
        return sum(x.spec.nbytes for x in self.buffers) - sum(b.spec.nbytes for b in {*self.buffers.values()})

    def compute(self, args):
        """Run all units. Returns tensors: the outputs, and the new values of the variables."""
        tensors = {}
        for x in self.leaves:
            of = x.attrs["of"]
            tensors[x] = args[of] if x.op == "input" else of.value if x.op == "variable" else of
        for x in self.made:
            again = self.spare.pop(x, None)
            tensors[x] = x.spec.device.new(x.spec, aligned, Tensor) if again is None else again
        arrays = self.fixed | {x: tensor.data for x, tensor in tensors.items()}
        for run in self.runs:
            run(arrays)
        return [tensors[x] for x in self.graph.outputs], [tensors[x] for x in self.graph.updates.values()]

    def run(self, args):
        """Compute, then assign all variables. The memory of an old value that nobody else knows is used again."""
        outputs, values = self.compute(args)
        for (variable, x), value in zip(self.graph.updates.items(), values):
            old = variable.value if references(variable) == ALONE else None
            variable.assign(value)
            if old is not None and x.inputs:
                self.spare[x] = old
        return [renamed(y) for y in outputs]

    def over(self, args, batches):
        """A step for each row of `batches`. Returns each result, a number, as a tensor of all steps."""
        check_results(self.graph)
        return stacked([self.run([gather(x, rows) for x in args]) for rows in batches])

    def __repr__(self):
        return listed(self.graph, self.units, "launches")


def listed(graph, units, kind):
    """A line for each unit."""
    names = [unit[0].op if len(unit) == 1 else f"loop: {' '.join(x.op for x in unit)}" for unit in units]
    return "\n".join([f"{len(graph.ops)} ops in {len(units)} {kind}", *names])


def stacked(steps):
    """Each of the results, a number in each step, as a tensor of all steps."""
    return [constant(np.array([x.numpy().reshape(()) for x in results])) for results in zip(*steps)]


@functools.cache
def list_program():
    """Run the programs of a table (the address of each, and of its block) one by one; and all of that `steps` times."""
    a = Assembler("list", np.float64)
    table = a.array("table", "programs", 2, rows_of=2**31 - 1)
    a.array("now", "steps", rows_of=2**31 - 1)  # only its first place is used; a size has to be that of an array
    with a.loop("steps") as step:
        a.emit(f"store i64 {step.register}, ptr {a.words['array', 'now']}")
        with a.loop("programs") as n:
            program, block = (a.write(f"inttoptr i64 {a.load(table, n, k).register} to ptr") for k in (0, 1))
            a.emit(f"call void {program}(ptr {block})")
    return a.assemble()


@functools.cache
def product_program(m, k, n, dtype, turned_x, turned_w):
    """out[m, n] = x[m, k] @ w[k, n], where x or w may lie the other way round. `strip` is memory for some columns of w."""
    a = Assembler("product", dtype, all_lanes(dtype))
    out, x = a.array("out", m, n), a.array("x", *((k, m) if turned_x else (m, k)))
    w, strip = a.array("w", *((n, k) if turned_w else (k, n))), a.array("strip", k, a.lanes)

    def tile(rows, j, w, column):
        sums = [a.sum() for _ in rows]
        with a.loop(k) as p:
            y = a.load(w, p, column)
            for total, i in zip(sums, rows):
                total += a.load(x, *((p, i) if turned_x else (i, p))) * y
        for total, i in zip(sums, rows):
            a.store(total.value(), out, i, j)

    high = pieces(m, pieces(m, ROWS * VECTORS))  # tiles of about one height, none with more sums than registers
    with a.loop(n, a.lanes) as j:
        columns = w, j
        if turned_w:  # neighbours lie apart: fetch them once, not for each tile
            columns = strip, Index(a, j.register, a.lanes, a.lanes, first="0")
            with a.loop(k) as p:
                a.store(a.load(w, j, p), strip, p, columns[1])
        with a.loop(m // high) as t:
            first = a.write(f"mul i64 {t.register}, {high}")
            tile([Index(a, a.write(f"add i64 {first}, {r}"), m) for r in range(high)], j, *columns)
        if m % high:
            tile(range(m - m % high, m), j, *columns)
    return a.assemble()


@functools.cache
def column_program(m, k, dtype):
    """out[m] = x[m, k] @ w[k], each a sum over the lanes."""
    a = Assembler("column", dtype)
    out, x, w = a.array("out", m), a.array("x", m, k), a.array("w", k)
    with a.loop(m) as i:
        total = a.sum()
        with a.loop(k, a.lanes) as p:
            total += a.load(x, i, p) * a.load(w, p)
        a.store(total.total(), out, i)
    return a.assemble()


NEAR = 2**21  # bytes; a larger `w` would be read from far away, once for each tile (measured)


def threads():
    """How many threads share a large product of level 2."""
    import numba

    return numba.get_num_threads()


def product_of(node):
    """The program of a matmul, and whose memory its arrays are."""
    (x, w), (m, n), dtype = node.inputs, node.spec.shape, node.spec.dtype
    turned_x, turned_w = (bool(node.attrs.get(f"transpose_{name}")) for name in "xw")
    k = x.spec.shape[0 if turned_x else 1]
    if m * k * n >= WORTH and (threads() > 1 or w.spec.nbytes > NEAR):
        raise NoProgram(f"{node!r} is worth several threads, or packing")
    strip = node.spec.device.spec((k, all_lanes(dtype)), dtype)
    if n == 1 and turned_x:
        return product_program(1, k, m, dtype, False, False), [node, w, x, strip]
    if n == 1 and dtype == np.float32:  # (in float64 such a sum has no lanes, and many side by side are quicker)
        return column_program(m, k, dtype), [node, x, w]
    return product_program(m, k, n, dtype, turned_x, turned_w), [node, x, w, strip]


@functools.cache
def sum_program(before, within, after, count, dtype):
    """out[before, after] = the sum of x[before, within, after] over its middle, divided by `count`."""
    last = after == 1
    a = Assembler("sum", dtype, None if last else all_lanes(dtype))
    out, x = a.array("out", before, after), a.array("x", before, within, *[after] * (not last))
    with a.loop(before) as i, nullcontext(0) if last else a.loop(after, a.lanes) as j:
        total = a.sum()
        with a.loop(within, a.lanes if last else 1) as k:
            total += a.load(x, i, k, *[j] * (not last))
        a.store((total.total() if last else total.value()) / count, out, i, j)
    return a.assemble()


def sum_of(node):
    """The program of a sum or a mean, and whose memory its arrays are."""
    x = node.inputs[0]
    before, within, after = reduced(node.op, x.spec.shape, node.attrs.get("axis"))[1]
    count = float(within) if node.op == "reduce_mean" else 1.0
    return sum_program(before, within, after, count, node.spec.dtype), [node, x]


WIDEST = 64  # numbers of a row that are written out


@functools.cache
def rows_program(function, inputs, rows, width, dtype):
    """out[rows, width] = this kernel of so many inputs."""
    a = Assembler("rows", dtype, all_lanes(dtype))
    out, *arrays = (a.array(name, rows, width) for name in ("out", *(f"x{n}" for n in range(inputs))))
    with a.loop(rows, a.lanes) as i:
        values = np.empty((1, width), object)
        function(values, *(np.array([[a.load(x, i, j) for j in range(width)]], object) for x in arrays))
        for j in range(width):
            a.store(values[0, j], out, i, j)
    return a.assemble()


def rows_of(node):
    """The program of a kernel of rows, and whose memory its arrays are."""
    *_, width = node.spec.shape
    if width > WIDEST:
        raise NoProgram(f"{node!r} has rows of {width} numbers; a program writes out {WIDEST}")
    kernel, rows = KERNELS[node.op, node.spec.device.kind], size(node.spec) // width
    program = rows_program(kernel, len(node.inputs), rows, width, node.spec.dtype)
    return program, [node, *node.inputs]


@functools.cache
def fetch_program(batch, width, dtype):
    """out[i] = the row of x whose number is batches[now, i]."""
    a = Assembler("fetch", dtype, all_lanes(dtype))
    batches, now = a.array("batches", "steps", batch, rows_of="rows"), a.array("now", 1, rows_of="steps")
    x, out = a.array("x", "rows", width), a.array("out", batch, width)
    with a.loop(batch) as i:
        row = a.load(batches, a.load(now, 0), i)
        with a.loop(width, a.lanes) as j:
            a.store(a.load(x, row, j), out, i, j)
    return a.assemble()


@functools.cache
def copy_program(count, dtype, over=False):
    """out = x or, with `over`, out[now] = x[0]."""
    a = Assembler("copy", dtype, all_lanes(dtype))
    out, x = a.array("out", "steps" if over else count), a.array("x", count)
    if over:
        a.store(a.load(x, 0), out, a.load(a.array("now", 1, rows_of="steps"), 0))
    else:
        with a.loop(count, a.lanes) as i:
            a.store(a.load(x, i), out, i)
    return a.assemble()


PROGRAMS_OF = {  # op -> function(node) -> the program, and whose memory its arrays are
    "matmul": product_of,
    "reduce_sum": sum_of,
    "reduce_mean": sum_of,
    "reshape": lambda node: (copy_program(size(node.spec), node.spec.dtype), [node, *node.inputs]),
}


def unit_program(unit, results):
    """The program of a unit, and whose memory its arrays are. Raises NoProgram where there is none."""
    node, outside = unit[0], {*results, *(x for node in unit for x in node.inputs if x not in unit)}
    if len({x.spec.dtype for x in outside}) == 1:  # else a mask passes from unit to unit
        if loop_of(node):
            return loop_program(unit, results)
        if make := PROGRAMS_OF.get(node.op, rows_of if PLANNERS[node.op] is plan_rows else None):
            return make(node)
    raise NoProgram(f"{node!r} is left to its kernel")


def overwriting(graph, units):
    """{node: variable} for the new values that can be written where the old ones are."""
    home = {node: n for n, unit in enumerate(units) for node in unit}
    last = {x: n for n, unit in enumerate(units) for node in unit for x in node.inputs}
    old = {x.attrs["of"]: x for x in graph.nodes if x.op == "variable"}
    places, values = {}, [*graph.updates.values()]
    for variable, node in graph.updates.items():
        alone = node in home and values.count(node) == 1 and not {node, old.get(variable)} & {*graph.outputs}
        if alone and last.get(old.get(variable), -1) < home[node] + (loop_of(units[home[node]][0]) is not None):
            places[node] = variable
    return places


def list_call(steps, now, over, updates):
    """A list of (program, what stands for each of its arrays) as one call."""
    program, table = list_program(), np.empty((len(steps), 2), np.int64)
    own = {"table": address(table), "now": address(now), "programs": len(steps), "steps": "steps" if over else 1}
    words, starts = [own[name] for _, name in program.words], []
    for each_program, arrays in steps:
        own = dict(zip(each_program.arrays, arrays))
        starts.append(len(words))
        words += [own.get(name, name) for _, name in each_program.words]
    call = Call(program, words, updates)
    for n, start in enumerate(starts):
        table[n] = ctypes.cast(steps[n][0].run, ctypes.c_void_p).value, call.start + 8 * start
    call.holds = steps, table, now  # as long as the call lives
    return call


class Loops(Rows):
    """A graph as a list of programs, one for each unit: `run` does one step, `over` any number of them."""

    def __init__(self, graph, batch):
        check_fits(graph)
        if any(node.op == "variable" for node in graph.updates.values()):
            raise NoProgram("a variable takes the old value of another")
        if not all(0 < x.spec.nbytes < 2**31 for x in graph.nodes):
            raise NoProgram("an array is empty, or has 2 GiB")
        self.any_batch, self.first, self.units = False, None, fused(graph)
        kept, inside = {*graph.outputs, *graph.updates.values()}, overwriting(graph, self.units)
        self.buffers = placed(self.units, kept) | {x: room_for(x.spec) for x in kept if x.inputs and x not in inside}
        results = [[x for x in unit if x in self.buffers or x in inside] for unit in self.units]
        self.programs = [unit_program(unit, out) for unit, out in zip(self.units, results)]
        self.buffers |= {x: room_for(x) for _, taken in self.programs for x in taken if type(x) is Spec}
        self.homes = {x: (x.op, x.attrs["of"]) for x in graph.nodes if not x.inputs}  # node -> its word in a block
        self.homes |= {x: address(of.data) for x, (op, of) in self.homes.items() if op == "constant"}
        self.homes |= {x: address(buffer.data) for x, buffer in self.buffers.items()}
        self.homes |= {x: ("variable", variable) for x, variable in inside.items()}
        self.prepare(graph, [(node.spec, False) for node in graph.outputs])

    def written(self, over):
        graph, homes, now, first = self.graph, dict(self.homes), np.zeros(1, np.int64), []
        for x in graph.nodes if over else ():
            if x.op == "input":
                self.buffers[x] = room_for(x.spec)
                homes[x] = address(self.buffers[x].data)
                fetch = fetch_program(x.spec.shape[0], math.prod(x.spec.shape[1:]), x.spec.dtype)
                first.append((fetch, ["batches", address(now), self.homes[x], homes[x]]))
        units = [(program, [homes[x] for x in taken]) for program, taken in self.programs]
        moves = [(x, ("out", k), over) for k, x in enumerate(graph.outputs)]
        moves += [(x, ("variable", v), False) for v, x in graph.updates.items() if homes[x] != ("variable", v)]
        last = [(copy_program(size(x.spec), x.spec.dtype, o), [to, homes[x], address(now)]) for x, to, o in moves]
        return list_call(first + units + last, now, over, graph.updates)

    launches = property(lambda self: len(self.units))
    nbytes = property(
        lambda self: sum(x.spec.nbytes for _, taken in self.programs for x in taken if type(x) is not Spec)
    )

    def __repr__(self):
        return listed(self.graph, self.units, "programs")


def held(value):
    """An attribute as part of a key: a small constant by its numbers, a large one or a variable by who it is."""
    if isinstance(value, Tensor) and value.spec.nbytes <= PAGE:
        return value.numpy().tobytes()
    return id(value) if isinstance(value, Operators) else (type(value), repr(value))  # 0.0 == -0.0; their texts differ


def outline(graph):
    """What a program depends on, as a key: while the first of two graphs with one outline lives, its program serves both."""
    names, ops = {}, []
    for node in graph.nodes:
        told = node.op, node.spec, *map(names.get, node.inputs), *map(held, node.attrs.values())
        names[node] = len(ops) if node.inputs else told
        ops += [told] * bool(node.inputs)
    updates = ((id(variable), names[node]) for variable, node in graph.updates.items())
    return *ops, "outputs", *map(names.get, graph.outputs), "updates", *updates


PASSES = [without_dead, shared, folded]


def packed_like(result):
    """A function that makes of a list of tensors what the traced function returned."""
    if result is None:
        return lambda outs: None
    return (lambda outs: type(result)(outs)) if isinstance(result, (list, tuple)) else lambda outs: outs[0]


BACK_ENDS = [Rows, Loops]  # the quickest first; where none will do, launches


def program_of(graph, batch):
    """The quickest program there is for this graph."""
    reasons = []
    for kind in BACK_ENDS:
        try:
            return kind(graph, batch)
        except (NoProgram, TypeError, ArithmeticError) as why:  # TypeError: a kernel that no program can hold
            reasons.append(f"{kind.__name__}: {why}")
    return Launches(graph, "; ".join(reasons))


def built(python, signature, batch, made):
    """Trace, make smaller, choose: a program, what puts its results together, and does it hold for any number of rows?

    `made` holds the programs that there are, {what they depend on: program}.
    """
    graph, result, any_batch = trace(python, signature, batch)
    for one_pass in PASSES:
        graph = one_pass(graph)
    key = batch, *outline(graph)
    if key not in made:
        made[key] = program_of(graph, batch)
    return made[key], packed_like(result), any_batch and made[key].any_batch


EAGER = []  # not empty: what `function` decorates runs as it stands


@contextmanager
def eager():
    """Inside this `with` block a `function` runs undecorated, op by op."""
    EAGER.append(True)
    try:
        yield
    finally:
        EAGER.pop()


WRAPPERS = {types.MethodType: "__func__", functools.partial: "func"}  # what is around a function, and where it is


def read_outside(python, kernels):
    """{…: (read, key, value)}: what a function and these kernels read from outside, and the functions among that in turn.

    read(key) gives the value: of a global, or in a cell of the function around. Our own rooms do not change.
    """
    found, waiting = {}, [unwrapped(f) for f in (python, *kernels) if f is python or of_the_reader(f)]
    while waiting:
        function = waiting.pop()
        scope = function.__globals__
        names = globals_read(function.__code__) & scope.keys()
        new = {(id(scope), name): (scope.get, name, scope[name]) for name in names}
        new |= {id(cell): (inside, cell, inside(cell)) for cell in function.__closure__ or ()}
        waiting += [unwrapped(value) for key, (_, _, value) in new.items() if key not in found and of_the_reader(value)]
        found |= new
    return found


def inside(cell):
    """What a cell of a closure holds; the cell itself as long as that is nothing."""
    try:
        return cell.cell_contents
    except ValueError:
        return cell


def unwrapped(value):
    """The Python function in a method, a partial call, or a `Function`."""
    while wrapper := WRAPPERS.get(type(value)):
        value = getattr(value, wrapper)
    return value


def of_the_reader(value):
    """Whether this is a function that no room of ours defines."""
    function = unwrapped(value)
    return isinstance(function, types.FunctionType) and not function.__module__.startswith("levels.")


def stale(outside):
    """Whether any of that is another object now."""
    for read, key, value in outside.values():  # noqa: SIM110 (any(…) is slower, and this stands in the way of every call)
        if read(key) is not value:
            return True
    return False


def argument(x):
    """What a function is called with: an array or a variable as a tensor, and anything else that can be a key as it is."""
    if isinstance(x, (np.ndarray, Variable)):
        return as_tensor(x)
    if type(x) is Symbol and x.data is None:
        raise TypeError(f"{x!r} is of a trace that has ended; return what you need from the function")
    if type(x).__hash__ is None:
        raise TypeError(f"a {type(x).__name__} is no argument: expected tensors, arrays, variables, numbers or names")
    return x


def resized(signature, batch, rows):
    """The signature with another number of rows; with None, a key for any number."""

    def one(x):
        if type(x) is not Spec or x.shape[:1] != (batch,):
            return x
        return (x.device, x.dtype, x.shape[1:]) if rows is None else with_rows(x, rows)

    return tuple(map(one, signature))


def row_numbers(batches, rows):
    """The batches as arrays int64[steps, batch]: one, or two where the last batch is shorter."""
    parts = [batches]
    try:
        if not isinstance(batches, np.ndarray) and len({len(batch) for batch in batches}) > 1:
            parts = [batches[:-1], batches[-1:]]
        parts = [np.asarray(part) for part in parts]
    except (TypeError, ValueError):
        expected = "expected row numbers [steps, batch], the last batch perhaps shorter"
        raise ValueError(f"over: batches are {reprlib.repr(batches)}; {expected}") from None
    for part in parts:
        if part.ndim != 2 or part.dtype.kind not in "iu" or not part.size:
            raise ValueError(f"over: batches are {part.dtype}{part.shape}; expected whole numbers [steps, batch]")
    parts = [np.ascontiguousarray(part, np.int64) for part in parts]
    for part in parts:
        if part.view(np.uint64).max() >= rows:  # as unsigned numbers the negative ones are very large
            wrong = part.min() if part.min() < 0 else part.max()
            raise IndexError(f"over: batches hold row {wrong}; there are {rows} rows")
    return parts


class Function:
    """A function of tensors that is traced once for each signature and then runs as a program."""

    def __init__(self, python):
        functools.update_wrapper(self, python)
        # programs: by signature; made: by graph; version: of KERNELS; outside: what was read there, see `read_outside`
        self.python, self.programs, self.made, self.traces, self.version, self.outside = python, {}, {}, 0, None, {}

    def __call__(self, *args):
        if TAPES or EAGER or ENGINES[-1] is not at_once:  # a tape or a trace wants to hear of every op
            return self.python(*args)
        signature = tuple([x.spec if type(x) is Tensor else None for x in args])
        if None in signature:
            args = [argument(x) for x in args]
            signature = tuple([x.spec if type(x) is Tensor else (type(x), x, x or str(x)) for x in args])
        program, pack = self.compiled(signature)
        return pack(program.run(args))

    def over(self, *args):
        """over(x, y, …, batches): a step on the rows x[i], y[i], … for each i of `batches`, arrays of row numbers.

        The last one may be shorter. Returns what the function returns, each number as a tensor of all steps.
        """
        *args, batches = args or [None]
        args = [constant(x) if isinstance(x, list) else as_tensor(argument(x)) for x in args]
        rows = {x.spec.shape[:1] for x in args}
        if len(rows) != 1 or () in rows:
            raise ValueError(f"over: {', '.join(str(x.spec) for x in args)}; expected arrays of as many rows")
        parts = row_numbers(batches, *rows.pop())
        if TAPES or EAGER or ENGINES[-1] is not at_once:
            results = [self.python(*(gather(x, i) for x in args)) for part in parts for i in part]
            return packed_like(results[-1])(stacked(map(results_of, results)))
        outs = []
        for part in parts:
            program, pack = self.compiled(tuple(with_rows(x.spec, part.shape[1]) for x in args))
            outs.append(program.over(args, part))
        if len(outs) > 1:  # the last batch is shorter
            outs = [[constant(np.concatenate([x.numpy() for x in both])) for both in zip(*outs)]]
        return pack(outs[0])

    def compiled(self, signature):
        """The program for arguments like these, and what puts its results together."""
        if self.version != KERNELS.version or stale(self.outside):
            self.programs, self.made = {}, {}
            self.version, self.outside = KERNELS.version, {}
        found = self.programs.get(signature)
        if found is None:
            batch = next((x.shape[0] for x in signature if type(x) is Spec and x.shape), None)
            found = self.programs.get(resized(signature, batch, None)) or self.compile(signature, batch)
            self.programs[signature] = found
        return found

    def compile(self, signature, batch):
        """Trace and build. What holds for any number of rows is kept for all."""
        self.traces += 1
        if self.traces % 10 == 0:
            name, why = getattr(self, "__name__", "a function"), "once for each new shape, dtype or value"
            warnings.warn(f"{name} was traced {self.traces} times, {why}", stacklevel=4)
        any_batch = False
        if batch == 1:  # one row looks like something to repeat, so two are tried first
            with suppress(Exception):
                program, pack, any_batch = built(self.python, resized(signature, 1, 2), 2, self.made)
        if not any_batch:
            program, pack, any_batch = built(self.python, signature, batch, self.made)
        self.outside |= read_outside(self.python, [KERNELS[x.op, x.spec.device.kind] for x in program.graph.ops])
        if any_batch:
            self.programs[resized(signature, batch, None)] = program, pack
        return program, pack

    def renew(self):
        """Trace anew from the next call on: Python's values may have changed. What gives the same graph keeps its program."""
        if self.programs:  # else nobody called since
            used = [program for program, _ in self.programs.values()]
            self.made = {key: program for key, program in self.made.items() if program in used}
            self.programs, self.traces = {}, 0


WRAPPERS[Function], function = "python", Function

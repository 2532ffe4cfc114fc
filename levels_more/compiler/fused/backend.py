"""Fused programs: a graph as a list of programs, one for each loop, product or sum, with no Python in between.

A back end for graphs that do not split into rows, and for those that are quicker this way: see `QuickRowProgram`.
"""

import math
import threading

import numpy as np

from levels.hardware import Spec
from levels.low_level import Graph, Node, NoProgram, Tensor
from levels.support.storage import LockAll, pinned_address
from levels_more.compiler.fused import layout  # noqa: F401 (it adds PARTS)
from levels_more.compiler.fused.gather import check_rows, row_limits
from levels_more.compiler.fused.loops import address, address_of, check_ours, loop_parts, units_of
from levels_more.compiler.fused.program_list import Beyond, ProgramList
from levels_more.compiler.fused.programs import PARTS, copy_program, fetch_program, keep_program, product_of
from levels_more.compiler.fused.threads import WORTH_SHARING, most_threads, shares, threads_for
from levels_more.kernels import elementwise  # noqa: F401 (it adds copy)


def _unit_parts(unit, results, parts):
    """The program of a unit, in parts as in PARTS, or in one if it is small. Raises NoProgram if there is none."""
    largest = max(math.prod(x.spec.shape) for node in unit.nodes for x in (node, *node.inputs))
    parts = parts if largest >= WORTH_SHARING else 1
    if unit.loop is not None:
        return loop_parts(unit.nodes, results, parts)
    *products, node = unit.nodes
    if products:
        return product_of(*products, parts, added=node)
    if node.op not in PARTS:
        raise NoProgram(f"{node!r} is left to its kernel")
    return PARTS[node.op](node, parts)


def _last_readers(units):
    """{node: the number of the last unit that reads it}"""
    return {x: n for n, unit in enumerate(units) for node in unit.nodes for x in node.inputs}


def overwritten(graph, units):
    """{node: variable} for the new values that can be written directly over the old ones.

    That is possible if nothing reads the old value later. The same unit may read it if it is a loop, which reads each
    number before it writes there. New values are copied at the end of the step if they, or the old ones, are results,
    or if they belong to two variables.

    (With copies for all, "784-512-512-10, batch 256, Adam, 1 thread: epoch" of the bench takes 1.08 times as long, and
    falls behind JAX.)
    """
    unit_number = {node: n for n, unit in enumerate(units) for node in unit.nodes}
    last_reader = _last_readers(units)
    old = graph.leaves("variable")
    new_values = [*graph.updates.values()]
    places = {}
    for variable, node in graph.updates.items():
        was = old.get(variable)
        if node not in unit_number or new_values.count(node) > 1 or not {node, was}.isdisjoint(graph.outputs):
            continue
        here = unit_number[node]
        last = last_reader.get(was, -1)
        if last < here or last == here and units[here].loop is not None:
            places[node] = variable
    return places


def with_copies(graph):
    """The graph in which a variable that is assigned the old value of another is assigned a copy of it."""
    taken = {variable: node for variable, node in graph.updates.items() if node.op == "variable"}
    copies = {variable: Node("copy", (node,), {}, node.spec) for variable, node in taken.items()}
    return Graph([*graph.nodes, *copies.values()], graph.outputs, graph.updates | copies)


def _home(variable):
    """The name under which each call passes the address of a variable."""
    return "variable", variable.created


def _room(spec):
    """A new buffer with as many bytes as this Spec, to be used for any shape and dtype."""
    return spec.device.alloc((spec.nbytes,), np.bool_)


def shared_buffers(units, kept):
    """{node: a buffer} for values that pass between units and are not kept. They are reused after the last reader.

    (This saves memory. No row of the bench takes 1.1 times as long if each value has a buffer of its own.)
    """
    last_reader = _last_readers(units)
    # free: {bytes: buffers}
    buffers = {}
    free = {}
    for n, unit in enumerate(units):
        for node in unit.nodes:
            if node not in kept and last_reader[node] > n:
                unused = free.get(node.spec.nbytes)
                buffers[node] = unused.pop() if unused else _room(node.spec)
        for x in dict.fromkeys(x for node in unit.nodes for x in node.inputs):
            if x in buffers and last_reader[x] == n:
                free.setdefault(x.spec.nbytes, []).append(buffers[x])
    return buffers


class FusedProgram:
    """A graph as a list of programs. It is made either for `run` or, with over=True, for `over`.

    Raises NoProgram, when it is made, for a graph with an op that is left to its kernel.
    """

    def __init__(self, graph, batch, over=False):
        check_ours(graph)
        if over and any(math.prod(node.spec.shape) != 1 for node in graph.outputs):
            raise NoProgram("it returns more than a number for a step")
        self.graph = graph = with_copies(graph)
        self.limits = row_limits(graph)
        self.units, self.lock = units_of(graph), threading.Lock()
        leaves = [node for node in graph.nodes if not node.inputs]
        self.inputs = [*graph.leaves("input")]
        self.variables = [*graph.leaves("variable") | graph.updates]  # read or assigned
        self.locks = LockAll(self.variables)
        inputs = [("input", k) for k in self.inputs]
        outputs = [("out", k) for k in range(len(graph.outputs))]
        # the names of what each call passes
        self.names = ["steps", "rows", "batches", *inputs, *outputs, *map(_home, self.variables)]
        self.programs = [None] * len(self.units)
        self.buffers = {}
        self.is_over = over
        self.now = np.zeros(1, np.int64)  # the number of the current step
        self.words = {node: self.leaf(node, over) for node in leaves}  # node -> its place, as in `leaf`
        self.place_results()
        # {number of threads: its ProgramList}
        self.most_threads = most_threads(graph)
        self.lists = {}
        self.specs = [node.spec for node in graph.outputs]
        self.current()

    def made_list(self, threads):
        """Make the ProgramList for this number of threads."""
        fetches = self.fetches(threads) if self.is_over else ()
        return ProgramList([*fetches, *self.steps(threads), *self.moves()], self.names, self.now, threads)

    def current(self):
        """The ProgramList for the present number of threads."""
        threads = threads_for(self.most_threads)
        if threads not in self.lists:
            self.lists[threads] = self.made_list(threads)
        return self.lists[threads]

    def leaf(self, node, over):
        """The place of the numbers of a leaf: a fixed address, or the name of an address that each call passes."""
        if node.op == "input":
            return address(self.buffer(node.spec, node).data) if over else (node.op, node.source)
        return _home(node.source) if node.op == "variable" else address(node.source.data)

    def buffer(self, spec, key):
        """Allocate memory for this Spec, and keep it under this key."""
        self.buffers[key] = _room(spec)
        return self.buffers[key]

    def place_results(self):
        """Choose the place of each op's result: a variable, a result of the call, a shared buffer or one of its own."""
        homes = overwritten(self.graph, self.units)
        kept = {*self.graph.outputs, *self.graph.updates.values()}
        self.buffers |= shared_buffers(self.units, kept | homes.keys())
        results = {} if self.is_over else {x: ("out", k) for k, x in enumerate(self.graph.outputs) if x.inputs}
        for node in kept:
            if node.inputs and node not in homes and node not in results:
                self.buffer(node.spec, node)
        self.words |= {node: _home(variable) for node, variable in homes.items()} | results
        self.words |= {node: address(buffer.data) for node, buffer in self.buffers.items()}

    def fetches(self, parts):
        """The programs at the beginning of each of many steps: they fetch the rows of its batch."""
        for node in self.graph.nodes:
            if node.op == "input":
                batch = node.spec.shape[0]
                source = (node.op, node.source)
                calls = []
                width = math.prod(node.spec.shape) // batch
                for i, rows in shares(batch, parts if batch * width >= WORTH_SHARING else 1):
                    program = fetch_program(batch, width, node.spec.dtype, rows)
                    places = Beyond("batches", 8 * i), address(self.now), source, self.place(node, i * width)
                    calls.append((program, places))
                yield calls

    def place(self, x, begin):
        """The place of the numbers of a node, from number `begin` on."""
        where = self.words[x]
        nbytes = begin * x.spec.dtype.itemsize
        return where + nbytes if isinstance(where, int) else Beyond(where, nbytes) if nbytes else where

    def steps(self, parts):
        """The programs of the units, in parts, with the places of their arrays."""
        for n, unit in enumerate(self.units):
            found = _unit_parts(unit, [node for node in unit.nodes if node in self.words], parts)
            calls = []
            self.programs[n] = found[0][0], [x for x, _ in found[0][1]]
            for k, (program, arrays) in enumerate(found):
                own = {x: address(self.buffer(x, (parts, n, k)).data) for x, _ in arrays if type(x) is Spec}
                calls.append((program, [own.get(x) or self.place(x, begin) for x, begin in arrays]))
            yield calls

    def moves(self):
        """The programs at the end of a step, which copy results to the call's arrays and new values to variables."""
        results = [(("out", k), node) for k, node in enumerate(self.graph.outputs)]
        for to, node in results + [(_home(variable), node) for variable, node in self.graph.updates.items()]:
            found = self.words[node]
            if self.is_over and to[0] == "out":
                yield [(keep_program(node.spec.dtype), [to, found, address(self.now)])]
            elif found != to:
                yield [(copy_program(math.prod(node.spec.shape), node.spec.dtype), [to, found])]

    def launch(self, args, outs, *sizes):
        """Run the list on the addresses of this call's arrays. Variables are read and overwritten in place."""
        read = map(args.__getitem__, self.inputs)
        given = [x.data is not None and x.address or address_of(x) for x in (*read, *outs)]  # raises for a freed one
        with self.lock, self.locks:  # the lock is for the block and the buffers, which all calls share
            homes = [v.pinned or pinned_address(v, v in self.graph.updates) for v in self.variables]
            (self.lists[1] if self.most_threads == 1 else self.current()).run((*sizes, *given, *homes))
        return outs

    def run(self, args):
        """Run one step: update the variables, and return the results."""
        if self.limits:
            check_rows(self.limits, args)
        return self.launch(args, [Tensor(spec) for spec in self.specs], 1, 0, 0)

    def over(self, args, batches):
        """A step for each row of `batches`. Returns a tensor for each result, with one number per step."""
        if self.limits:
            check_rows(self.limits, args, batches)
        steps, _ = batches.shape
        specs = [node.spec.device.spec((steps,), node.spec.dtype) for node in self.graph.outputs]
        outs = [Tensor(spec) for spec in specs]
        rows = args[self.inputs[0]].spec.shape[0] if self.inputs else 0
        return self.launch(args, outs, steps, rows, batches.ctypes.data)

    def __repr__(self):
        return "\n".join([f"{len(self.graph.ops)} ops in {len(self.units)} programs", *map(repr, self.units)])

"""A replay in which elementwise ops are fused: for graphs with ops that have no program, such as a reader's kernel."""

import ctypes
from typing import Any, NamedTuple

from levels.low_level import NoProgram, Replay, Tensor
from levels.support.locks import compiled_once
from levels.support.storage import alias
from levels_more.compiler.fused.backend import FusedProgram, shared_buffers
from levels_more.compiler.fused.loops import Unit, address, loop_program, units_of
from levels_more.kernels.batched_matmul import has_batches


def replay_units(graph):
    """The units of a graph: loops of several ops, and all others as single ops."""
    units = []
    for unit in units_of(graph):
        units += [unit] if unit.loop and len(unit.nodes) > 1 else [Unit(None, node) for node in unit.nodes]
    return units


class Part(NamedTuple):
    """A unit as a launch: run(arrays) takes {node: array}, and reads and writes `nbytes` bytes."""

    unit: Any
    nbytes: int
    run: Any

    def __repr__(self):
        return repr(self.unit)


class FusedReplay(Replay):
    """A graph that is replayed, except that its loops are programs. Values that pass between units have fixed buffers.

    Raises NoProgram for a graph without such loops, unless it has products of many matrices, for empty arrays, and for
    devices other than the CPU.
    """

    def __init__(self, graph, batch, over=False):
        super().__init__(graph)
        self.units, kept = replay_units(graph), {*graph.outputs, *graph.updates.values()}
        alone = all(len(unit.nodes) == 1 for unit in self.units) and not has_batches(graph)
        if alone or any(x.spec.device.kind != "cpu" for x in graph.nodes):
            raise NoProgram("it has no ops that share a loop")
        if any(0 in x.spec.shape for x in graph.nodes):
            raise NoProgram("it has empty arrays")
        try:
            FusedProgram(graph, batch, over)
        except NoProgram as why:
            self.why = str(why)
        self.buffers = shared_buffers(self.units, kept)
        self.fixed = {x: b.data.view(x.spec.dtype).reshape(x.spec.shape) for x, b in self.buffers.items()}
        self.fixed |= {x: x.source.data for x in graph.nodes if x.op == "constant"}
        self.made = [node for node in graph.ops if node in kept]  # these get new memory in each step
        plan_of = {node: plan for node, plan, *_ in self.plans}
        self.parts = [self.loop(unit) if unit.loop else self.kernel(unit, plan_of) for unit in self.units]

    def loop(self, unit):
        """The Part that runs the program of a loop."""
        program, taken = loop_program(unit.nodes, [x for x in unit.nodes if x in self.fixed or x in self.made])
        block = (ctypes.c_int64 * len(taken))()
        for place, x in enumerate(taken):
            block[place] = address(self.fixed[x]) if x in self.fixed else 0
        changing = [(place, x) for place, x in enumerate(taken) if x not in self.fixed]

        def run(arrays):
            for place, x in changing:
                block[place] = address(arrays[x])
            program.run(block)

        return Part(unit, sum(x.spec.nbytes for x in taken), run)

    def kernel(self, unit, plan_of):
        """The Part that runs the kernel of a single op."""
        (node,) = unit.nodes
        plan = plan_of[node]
        nodes = (node, *node.inputs)
        numbers = [node.attrs[name] for name in plan.numbers]

        def run(arrays):
            program = plan.compiled or compiled_once(plan)
            program(*[arrays[x] for x in nodes], *numbers)

        return Part(unit, plan.nbytes, run)

    def launch(self, part, arrays):
        """Run one part on these arrays; returns them. (The X-ray times this call.)"""
        part.run(arrays)
        return arrays

    def run(self, args):
        """As in `Replay`."""
        tensors = {}
        with self.lock:  # for the buffers, which all calls share
            for node in self.graph.nodes:
                if node.op == "input":
                    tensors[node] = args[node.source]
                elif node.op == "variable":
                    tensors[node] = node.source.read_value()
            for node in self.made:
                tensors[node] = Tensor(node.spec)
            arrays = self.fixed | {node: tensor.data for node, tensor in tensors.items()}
            for part in self.parts:
                self.launch(part, arrays)
            tensors |= {node: node.source for node in self.graph.nodes if node.op == "constant"}
            for variable, node in self.graph.updates.items():
                variable.set_value(tensors[node])
        return [alias(tensors[node]) for node in self.graph.outputs]

    def __repr__(self):
        return "\n".join([f"{len(self.graph.ops)} ops in {len(self.units)} launches", *map(repr, self.units)])

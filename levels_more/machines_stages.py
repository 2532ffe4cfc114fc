"""A graph with collectives runs in stages: programs, a message, programs. Small tensors of one stage travel together."""

import itertools

from levels.kernels import planned
from levels.low_level import BACK_ENDS, RUN, Graph, Node, NoProgram, Replay, Tensor, dce, renamed
from levels_more.fused import FusedProgram
from levels_more.fused_replay import FusedReplay
from levels_more.machines import COLLECTIVES

LARGE = 2**16  # bytes, from which on a tensor travels alone


def stages_of(graph):
    """{node: the number of the stage that computes it}; a collective comes behind the stage of its number.

    A node comes as late as it can: so the tensors of one message wait for each other, and there are few messages.
    """
    sent, first = {x: x.op in COLLECTIVES for x in graph.nodes}, {}
    for node in graph.nodes:
        first[node] = max((first[x] + sent[x] for x in node.inputs), default=0)
    last = max(first[x] + sent[x] for x in graph.nodes)
    stage = {x: last - sent[x] for x in graph.nodes}
    for node in reversed(graph.nodes):
        for x in node.inputs:
            stage[x] = min(stage[x], stage[node] - sent[x])
    return stage


def _program_of(graph):
    """The quickest program that can hold the graph of a stage."""
    for back_end in (FusedProgram, FusedReplay) if graph.ops else ():
        try:
            return back_end(graph, None)
        except NoProgram:
            continue
    return Replay(graph)


class Bucket:
    """One message: tensors of one dtype side by side, [rows, all their numbers of a row], through one collective."""

    def __init__(self, nodes, slots):
        (self.op, self.attrs), sources = (nodes[0].op, nodes[0].attrs), [node.inputs[0] for node in nodes]
        rows = sources[0].spec.shape[0] if self.op == "all_gather" else 1
        widths = [x.spec.nbytes // (rows * x.spec.dtype.itemsize) for x in sources]
        ends = [0, *itertools.accumulate(widths)]
        device, dtype = sources[0].spec.device, sources[0].spec.dtype
        self.all = device.new(device.spec((rows, ends[-1]), dtype), Tensor)
        self.plan = planned(self.op, [self.all], self.attrs)
        places = list(zip(ends, ends[1:], strict=False))
        self.packs = [
            (slots[x], (rows, width), self.all.data[:, a:b])
            for x, width, (a, b) in zip(sources, widths, places, strict=True)
        ]
        self.unpacks = [
            (slots[node], node.spec, width, place) for node, width, place in zip(nodes, widths, places, strict=True)
        ]

    def run(self, values):
        """Send what lies in its places of `values`, and put there what comes."""
        for slot, shape, place in self.packs:
            place[...] = values[slot].data.reshape(shape)
        came = RUN.do(self.op, self.plan, [self.all], self.attrs).data
        for slot, spec, width, (a, b) in self.unpacks:
            values[slot] = new = spec.device.new(spec, Tensor)
            new.data.reshape(-1, width)[...] = came[:, a:b]


class Alone(Bucket):
    """One message: one tensor, as it is."""

    def __init__(self, nodes, slots):
        (node,) = nodes
        self.op, self.attrs = node.op, node.attrs
        self.plan, self.slots = (
            planned(node.op, [node.inputs[0].spec], node.attrs),
            (slots[node.inputs[0]], slots[node]),
        )

    def run(self, values):
        source, target = self.slots
        values[target] = RUN.do(self.op, self.plan, [values[source]], self.attrs)


def messages_of(nodes, slots):
    """These collectives of one stage as messages: small ones of one kind in one, large ones alone."""
    kinds = {}
    for node in nodes:
        x = node.inputs[0].spec
        small = x.nbytes < LARGE and node.op != "broadcast" and 0 not in x.shape
        key = (node.op, x.dtype, repr(node.attrs)) if small else node
        kinds.setdefault(key, []).append(node)
    return [(Bucket if len(group) > 1 else Alone)(group, slots) for group in kinds.values()]


class Staged(Replay):
    """A graph as stages, with messages behind each but the last. What all threads call, one does at a time.

    Raises NoProgram, when it is made, for a graph without a collective.
    """

    def __init__(self, graph, batch, over=False):
        if not any(node.op in COLLECTIVES for node in graph.nodes):
            raise NoProgram("it has no collective")
        super().__init__(graph)
        stage = stages_of(graph)
        passed = {x for node in graph.ops for x in node.inputs if stage[x] < stage[node]}
        passed |= {x for node in graph.ops if node.op in COLLECTIVES for x in (node, *node.inputs)}
        self.slots = {x: k for k, x in enumerate(x for x in graph.nodes if x.op == "input" or x in passed and x.inputs)}
        self.given = [(slot, x.attrs["of"]) for x, slot in self.slots.items() if x.op == "input"]
        self.stages, last = [], max(stage[x] + (x.op in COLLECTIVES) for x in graph.nodes)
        for number in range(last + 1):
            here = [x for x in graph.ops if stage[x] == number]
            made = [x for x in here if x.op not in COLLECTIVES]
            outs = graph.outputs if number == last else [x for x in made if x in passed]
            program = self.program(made, outs, graph.updates if number == last else {})
            sent = messages_of([x for x in here if x.op in COLLECTIVES], self.slots)
            self.stages.append((program, [self.slots.get(x) for x in outs], sent))

    def program(self, made, outs, updates):
        """The program that computes these nodes, for these results and new values. What is not made here it is given."""
        new = {}

        def found(x):
            if x not in new:
                new[x] = Node("input", [], {"of": self.slots[x]}, x.spec) if x in self.slots else x
            return new[x]

        for x in made:
            inputs = [found(y) for y in x.inputs]
            new[x] = Node(x.op, inputs, x.attrs, x.spec)
        outs, updates = [found(x) for x in outs], {v: found(x) for v, x in updates.items()}
        return _program_of(dce(Graph([*new.values()], outs, updates)))

    def run(self, args):
        """One step on these arguments. Returns the results; the variables have their new values."""
        values = [None] * len(self.slots)
        for slot, k in self.given:
            values[slot] = args[k]
        with self.lock:
            for program, slots, messages in self.stages:
                outs = program.run(values)
                for slot, out in zip(slots, outs, strict=True):
                    if slot is not None:
                        values[slot] = out
                for message in messages:
                    message.run(values)
        return [renamed(x) for x in outs]

    def __repr__(self):
        lines = []
        for number, (program, _, messages) in enumerate(self.stages):
            lines += [f"stage {number}: {program!r}", *map(repr, messages)]
        return "\n".join(lines)


BACK_ENDS.append((Staged, lambda graph: -1))

"""Run a graph with collectives in stages: program, messages, program. Small tensors of a stage share a message."""

import itertools
import zlib

import numpy as np

from levels.kernels import planned
from levels.low_level import BACK_ENDS, DOOR, Graph, Node, NoProgram, Replay, Tensor, constant, dce
from levels.support.storage import alias
from levels_more.compiler.fused.backend import FusedProgram
from levels_more.compiler.fused.replay import FusedReplay
from levels_more.distributed.collectives import COLLECTIVES

LARGE = 2**16  # bytes; a tensor of this size or more has its own message


class Rows:
    """A checksum, `sum`, of the data that this process has used, for comparing ranks. `arrays` are in it already."""

    sum = 0
    arrays = []
    differ = False  # whether each rank has rows of its own: then they are not compared

    @classmethod
    def note(cls, *arrays):
        """Add the bytes of these NumPy arrays to the checksum."""
        for array in () if cls.differ else arrays:
            cls.sum = zlib.crc32(np.ascontiguousarray(array), cls.sum)

    @classmethod
    def note_once(cls, tensors):
        """Add those of these tensors that have not been added yet."""
        for x in tensors:
            if all(x is not known for known in cls.arrays):
                cls.arrays.append(x)
                cls.note(x.data)


def stages_of(graph):
    """{node: the number of the stage that computes it}; a collective runs after the program of its stage.

    Each node is in the latest possible stage. So more collectives are in one stage, and there are fewer messages.
    """
    sent = {x: x.op in COLLECTIVES for x in graph.nodes}
    first = {}
    for node in graph.nodes:
        first[node] = max((first[x] + sent[x] for x in node.inputs), default=0)
    last = max(first[x] + sent[x] for x in graph.nodes)
    stage = {x: last - sent[x] for x in graph.nodes}
    for node in reversed(graph.nodes):
        for x in node.inputs:
            stage[x] = min(stage[x], stage[node] - sent[x])
    return stage


def argument_rows(node):
    """(the number of an argument, first, last) if a node is a slice of an argument's rows, else None."""
    (rows, *rest) = node.attrs.get("slices") or [None]
    if node.op != "slice" or node.inputs[0].op != "input" or any(part != (None, None, None) for part in rest):
        return None
    return (node.inputs[0].source, *rows[:2]) if rows[2] == 1 else None


def _rows(x, rows):
    """These rows of a tensor: a view of its memory if `rows` is a slice, else a copy."""
    data = x.data[rows]
    return Tensor(x.device.spec(data.shape, x.dtype), data, x)


def _program_of(graph):
    """The program of the fastest back end that can run the graph of a stage."""
    for back_end in (FusedProgram, FusedReplay) if graph.ops else ():
        try:
            return back_end(graph, None)
        except NoProgram:
            continue
    return Replay(graph)


class Bucket:
    """One message: tensors of one dtype, side by side in an array [rows, all their numbers of a row]."""

    def __init__(self, nodes, slots):
        self.op = nodes[0].op
        self.attrs = nodes[0].attrs
        sources = [node.inputs[0] for node in nodes]
        rows = sources[0].spec.shape[0] if self.op == "all_gather" else 1
        widths = [x.spec.nbytes // (rows * x.spec.dtype.itemsize) for x in sources]
        ends = [0, *itertools.accumulate(widths)]
        device = sources[0].spec.device
        dtype = sources[0].spec.dtype
        self.all = Tensor(device.spec((rows, ends[-1]), dtype))
        self.plan = planned(self.op, [self.all], self.attrs)
        places = list(zip(ends, ends[1:], strict=False))
        self.packs = [
            (slots[x], (rows, width), self.all.data[:, a:b])
            for x, width, (a, b) in zip(sources, widths, places, strict=True)
        ]
        self.unpacks = [
            (slots[node], node.spec, width, place) for node, width, place in zip(nodes, widths, places, strict=True)
        ]

    def __repr__(self):
        return f"{self.op} of {len(self.packs)} tensors, {self.all.spec.nbytes:,} bytes"

    def run(self, values):
        """Pack this message's tensors from `values`, run the collective, and put the results into `values`."""
        for slot, shape, place in self.packs:
            place[...] = values[slot].data.reshape(shape)
        came = DOOR.bottom.do(self.op, self.plan, [self.all], self.attrs).data
        for slot, spec, width, (a, b) in self.unpacks:
            values[slot] = new = Tensor(spec)
            new.data.reshape(-1, width)[...] = came[:, a:b]


class SingleMessage:
    """One message with one tensor, sent as it is."""

    def __init__(self, nodes, slots):
        (node,) = nodes
        (x,) = node.inputs
        self.op = node.op
        self.attrs = node.attrs
        self.spec = node.spec
        self.plan = planned(node.op, [x.spec], node.attrs)
        self.slots = (slots[x], slots[node])

    def __repr__(self):
        return f"{self.op} of {self.spec}"

    def run(self, values):
        """The same as `Bucket.run`."""
        source, target = self.slots
        values[target] = DOOR.bottom.do(self.op, self.plan, [values[source]], self.attrs)


def messages_of(nodes, slots):
    """The messages for the collectives of one stage: small ones of one kind share one, large ones have their own."""
    kinds = {}
    for node in nodes:
        x = node.spec  # the result's, since it is the same on all ranks: they have to send the same messages
        small = x.nbytes < LARGE and node.op != "broadcast" and 0 not in x.shape
        key = (node.op, x.dtype, repr(node.attrs)) if small else node
        kinds.setdefault(key, []).append(node)
    return [(Bucket if len(group) > 1 else SingleMessage)(group, slots) for group in kinds.values()]


class StagedProgram(Replay):
    """A graph as stages, with messages after each but the last. One thread runs at a time.

    The constructor raises NoProgram for a graph without a collective.
    """

    launch = FusedReplay.launch  # the X-ray watches each back end's `launch`; the parts here use this one

    def __init__(self, graph, batch, over=False):
        if not any(node.op in COLLECTIVES for node in graph.nodes):
            raise NoProgram("it has no collective")
        super().__init__(graph)
        stage = stages_of(graph)
        sent = [x for x in graph.ops if x.op in COLLECTIVES]
        own = {x: rows for x in graph.ops if (rows := argument_rows(x))}  # views of arguments: nothing is computed
        passed = {*own, *sent, *(x.inputs[0] for x in sent)}
        passed |= {x for node in graph.ops for x in node.inputs if stage[x] < stage[node] and x.inputs}
        self.slots = {x: k for k, x in enumerate(x for x in graph.nodes if x.op == "input" or x in passed)}
        read = {x for node in graph.ops if node not in own for x in node.inputs}
        read.update(graph.outputs, graph.updates.values())
        leaves = {x: (x.source, None, None) for x in graph.nodes if x.op == "input" and x in read} | own
        self.given = [(self.slots[x], *rows) for x, rows in leaves.items()]
        last = max(stage[x] + (x.op in COLLECTIVES) for x in graph.nodes)
        self.parts = []  # (a program, the slots of its results, the messages after it)
        for number in range(last + 1):
            here = [x for x in graph.ops if stage[x] == number and x not in own]
            made = [x for x in here if x.op not in COLLECTIVES]
            outs, updates = (graph.outputs, graph.updates) if number == last else ([x for x in made if x in passed], {})
            program = self.program(made, outs, updates)
            slots = [self.slots.get(x) for x in outs]
            self.parts.append((program, slots, messages_of([x for x in here if x in sent], self.slots)))

    def program(self, made, outs, updates):
        """The program that computes the nodes `made`, for these results and new values. Other nodes are its inputs."""
        new = {}

        def found(x):
            if x not in new:
                new[x] = Node("input", [], {}, x.spec, self.slots[x]) if x in self.slots else x
            return new[x]

        for x in made:
            inputs = [found(y) for y in x.inputs]
            new[x] = Node(x.op, inputs, x.attrs, x.spec)
        outs = [found(x) for x in outs]
        updates = {v: found(x) for v, x in updates.items()}
        return _program_of(dce(Graph([*new.values()], outs, updates)))

    def step(self, given):
        """One step on these tensors, in the order of `self.given`. Returns the results."""
        values = [None] * len(self.slots)
        for (slot, *_), x in zip(self.given, given, strict=True):
            values[slot] = x
        with self.lock:
            for program, slots, messages in self.parts:
                outs = program.run(values)
                for slot, out in zip(slots, outs, strict=True):
                    if slot is not None:
                        values[slot] = out
                for message in messages:
                    message.run(values)
        return outs

    def run(self, args):
        """As in `Replay`."""
        Rows.note(*(x.data for x in args))
        given = [_rows(args[k], slice(first, last)) for _, k, first, last in self.given]
        return [alias(x) for x in self.step(given)]

    def over(self, args, batches):
        """A step for each row of `batches`. Returns a tensor for each result, with one number per step."""
        Rows.note_once(args)
        Rows.note(batches)
        outs = [np.empty(len(batches), x.spec.dtype) for x in self.graph.outputs]
        for number, rows in enumerate(batches):
            given = [_rows(args[k], rows[first:last]) for _, k, first, last in self.given]
            for out, x in zip(outs, self.step(given), strict=True):
                out[number] = x.data.reshape(())
        return [constant(out) for out in outs]

    def __repr__(self):
        return "\n".join(f"{program!r}\n{messages}" for program, _, messages in self.parts)


BACK_ENDS.insert(0, StagedProgram)

"""The walk: one step of `fit`, followed down to the multiply that changes a weight, with its numbers, and up again.

The step is taken twice, compiled and op by op. Python says what it calls (`sys.setprofile`), and the program says what
each of its registers holds (`probe.py`). So no number of the walk is written by hand. As HTML it needs no script and no
kernel: the stages are the choices of a radio group, and where styles are stripped they stand beneath each other as tables.
"""

import numpy as np

from course.inspection.source_index import place_of, places
from course.inspection.walk import probe
from course.inspection.walk.heard import Op, core_alone, followed, listened
from course.inspection.walk.page import Walks
from course.inspection.walk.parts import Code, link, short
from course.inspection.walk.stages import STAGES


class Walk:
    """The stages of a task's first step, for one row of its batch and one weight of the first layer.

    The weight is that of the first input, at the first unit whose output changes this row's loss.
    """

    def __init__(self, task, trainer, row=0):
        from levels.low_level import eager

        given = task.x, task.y, task.weights, task.batches[:1], task.learning_rate
        self.task, self.row, self.index = task, row, places()
        with core_alone():
            self.compiled = listened(lambda: trainer(*given))
            with eager():
                self.eager = listened(lambda: trainer(*given))
        if "_write" not in self.compiled.calls:
            raise ValueError("walk: the step has become no program by rows, so there is nothing to follow")

        self.ops = [Op(*map(call.known.get, Op._fields[:3]), call.result) for call in self.eager.calls["Run.do"]]
        slopes, _ = followed(self.eager, self.ops, row, (0, 0))[0]["slope"]
        self.weight = 0, int(np.flatnonzero(slopes.numpy()[row])[0])
        self.places, self.made = followed(self.eager, self.ops, row, self.weight)
        self.program = probe.Probe(self.compiled, row)
        nodes = [Op(node.op, node.inputs, node.attrs, node) for node in self.program.graph.ops]
        self.nodes, _ = followed(self.compiled, nodes, row, self.weight)
        self.registers = self.program.registers(self.nodes)
        self.stages = [make(self) for make in STAGES]

    @property
    def loss(self):
        return float(self.stages[0].value("loss"))

    def tensor(self, quantity):
        """A number that an op made, op by op."""
        held, place = self.places[quantity]
        return float(held.numpy()[place])

    def source(self, call, *marks, title=""):
        """The code of a call, with the lines marked in which one of these texts stands."""
        return self.lines_of(place_of(getattr(call, "code", call), self.index), *marks, title=title)

    def lines_of(self, place, *marks, title=""):
        lines = place.source.split("\n")
        marked = {k for k, line in enumerate(lines) if any(mark in line for mark in marks)}
        return Code(title, lines, marked, link(place))

    def __repr__(self):
        lines = [f"{self.task.title}: the loss of the first batch is {short(self.loss)}, the same bits on each stage"]
        for k, stage in enumerate(self.stages, 1):
            lines.append(f"{k}  {stage.name}")
        return "\n".join(lines)


def down(*walks):
    """One page of walks, each given as (task, the function that trains it)."""
    return Walks(*(Walk(*given) for given in walks))

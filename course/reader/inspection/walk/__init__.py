"""The walk: one step of `fit`, followed with its numbers down to the multiply that changes a weight, and up again.

The step runs twice, compiled and op by op. A profile function (`sys.setprofile`) records the calls, and `probe.py`
reads each register of the program, so no number of the walk is written by hand. The HTML needs no script and no
kernel: the stages are the options of a radio group. Without CSS they appear one below the other, as tables.
"""

import textwrap

import numpy as np

from course.reader.figures.training import titled
from course.reader.inspection.source_index import place_of, places_of_core
from course.reader.inspection.walk import probe
from course.reader.inspection.walk.heard import Op, core_alone, followed, listened
from course.reader.inspection.walk.page import Walks
from course.reader.inspection.walk.parts import Code, link, path, short
from course.reader.inspection.walk.stages import STAGES
from course.reader.language import say


class Walk:
    """The stages of a task's first step, for the first row of its batch and one weight of the first layer.

    The weight connects the first input with the first unit whose output changes this row's loss.
    """

    def __init__(self, task, trainer):
        from levels.low_level import eager

        given = task.x, task.y, task.weights, task.batches[:1], task.learning_rate
        self.task, self.index = task, places_of_core()
        with core_alone():
            self.compiled = listened(lambda: trainer(*given))
            with eager():
                self.eager = listened(lambda: trainer(*given))
        if "StepWriter.write" not in self.compiled.calls:
            raise ValueError("walk: the step has not become a row program, so there is nothing to follow")

        self.ops = [
            Op(*map(call.known.get, Op._fields[:3]), call.result) for call in self.eager.calls["Interpreter.do"]
        ]
        slopes, _ = followed(self.eager, self.ops, (0, 0))[0]["slope"]
        self.weight = 0, int(np.flatnonzero(slopes.numpy()[0])[0])
        self.places, self.made = followed(self.eager, self.ops, self.weight)
        self.program = probe.Probe(self.compiled)
        nodes = [Op(node.op, node.inputs, node.attrs, node) for node in self.program.graph.ops]
        self.nodes, _ = followed(self.compiled, nodes, self.weight)
        self.registers = self.program.registers(self.nodes)
        self.stages = [make(self) for make in STAGES]

    @property
    def loss(self):
        return float(self.stages[0].value("loss"))

    def tensor(self, quantity):
        """The value of a quantity in the step that ran op by op."""
        held, place = self.places[quantity]
        return float(held.numpy()[place])

    def source(self, call, *marks):
        """The code of a call: the lines that contain one of the texts in `marks`, and those that lead to them."""
        return self.lines_of(place_of(getattr(call, "code", call), self.index), *marks)

    def lines_of(self, place, *marks):
        """The code of a place: the marked lines and those that lead to them, or all lines if none is marked."""
        lines = textwrap.dedent(place.source).split("\n")
        while marks and lines[0].startswith("@"):  # the way to a line begins at `def`
            del lines[0]
        marked = {k for k, line in enumerate(lines) if any(mark in line for mark in marks)}
        if marked:
            lines, marked = path(lines, marked)
        return Code("", lines, marked, link(place))

    def __repr__(self):
        told = {"title": titled(self.task), "loss": short(self.loss)}
        lines = [say("{title}: the loss of the first batch is {loss}, the same bits on each stage", **told)]
        lines += [stage.head for stage in self.stages]
        return "\n".join(lines)


def down(*walks):
    """Return one page of walks, each given as (task, the function that trains it)."""
    return Walks(*(Walk(*given) for given in walks))

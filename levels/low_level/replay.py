"""The simplest back end: it runs the ops of a graph one by one."""

# Built from 03_low_level.ipynb: edit there, then run its last cell.

import threading

import numpy as np

from levels.kernels import planned
from levels.support.programs import single_numbers
from levels.support.storage import alias

from .ops import gather
from .tensors import DOOR, Variable, as_tensor, constant


class Replay:
    """A graph that runs op by op, without its Python code. `why`: why no program."""

    def __init__(self, graph, why=""):
        self.graph = graph
        self.why = why
        self.lock = threading.Lock()
        specs = {node: [x.spec for x in node.inputs] for node in graph.ops}
        self.plans = [(x, planned(x.op, specs[x], x.attrs)) for x in graph.ops]

    def run(self, args):
        """Run one step: update the variables, and return the results."""
        read = {"variable": Variable.read_value, "constant": as_tensor}
        read["input"] = args.__getitem__  # its source is its position
        with self.lock:  # one thread at a time
            values = {x: read[x.op](x.source) for x in self.graph.nodes if not x.inputs}
            for node, plan in self.plans:
                inputs = [values[x] for x in node.inputs]
                values[node] = DOOR.bottom.do(node.op, plan, inputs, node.attrs)
            for variable, node in self.graph.updates.items():
                variable.set_value(values[node])
        return [alias(values[node]) for node in self.graph.outputs]

    def over(self, args, batches):
        """Run a step for each row of `batches`. Each result has one number per step."""
        return _stacked([self.run([gather(x, rows) for x in args]) for rows in batches])

    def __repr__(self):
        return f"{len(self.plans)} ops, one after the other"


def _stacked(steps):
    """Return a tensor for each result, with one number per step."""
    return [constant(np.array(numbers)) for numbers in zip(*single_numbers(steps))]

"""The easiest back end: the graph is run again, op by op."""

# Built from 03_low_level.ipynb: edit there, then run its last cell.

import math
import threading
from contextlib import nullcontext

import numpy as np

from levels.kernels import planned

from .ops import gather
from .tensors import RUN, _renamed, constant


class Replay:
    """A graph that runs op by op: what eager does, without the Python of the function around it."""

    def __init__(self, graph):
        self.graph, self.why, self.lock = graph, "", threading.Lock()  # why: what kept it from being a program
        self.plans = [(node, planned(node.op, [x.spec for x in node.inputs], node.attrs)) for node in graph.ops]

    def run(self, args):
        """One step on these arguments. Returns the results; the variables have their new values."""
        with self.lock if self.graph.updates else nullcontext():  # what one thread reads, none changes meanwhile
            return self.step(args)

    def step(self, args):
        values = {}
        for node in self.graph.nodes:
            if not node.inputs:
                of = node.attrs["of"]
                values[node] = args[of] if node.op == "input" else of.newest() if node.op == "variable" else of
        for node, plan in self.plans:
            values[node] = RUN.do(node.op, plan, [values[x] for x in node.inputs], node.attrs)
        for variable, node in self.graph.updates.items():
            variable.replace(values[node])
        return [_renamed(values[node]) for node in self.graph.outputs]

    def over(self, args, batches):
        """A step for each row of `batches`. Returns each result, a number, as a tensor of all steps."""
        check_results(self.graph)
        return stacked([self.run([gather(x, rows) for x in args]) for rows in batches])

    def __repr__(self):
        return f"{len(self.plans)} ops, one after the other"


def size(spec):
    """How many numbers a tensor of this Spec has."""
    return math.prod(spec.shape)


def check_results(graph):
    """Raise ValueError unless each result of a step is one number."""
    for node in graph.outputs:
        if size(node.spec) != 1:
            raise ValueError(f"over: a step returns {node.spec}; expected one number, such as the mean of the rows")


def stacked(steps):
    """Each of the results, a number in each step, as a tensor of all steps."""
    return [constant(np.array([x.numpy().reshape(()) for x in results])) for results in zip(*steps)]

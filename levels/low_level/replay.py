"""The simplest back end: it runs the ops of a graph one by one."""

# Built from 03_low_level.ipynb: edit there, then run its last cell.

import math
import threading

import numpy as np

from levels.kernels import planned
from levels.support.storage import alias

from .ops import gather
from .tensors import DOOR, Variable, as_tensor, constant


class Replay:
    """A graph that runs op by op, as in eager mode, but without the Python code. `why`: why there is no program."""

    def __init__(self, graph, why=""):
        self.graph, self.why, self.lock = graph, why, threading.Lock()
        self.plans = [(node, planned(node.op, [x.spec for x in node.inputs], node.attrs)) for node in graph.ops]

    def run(self, args):
        """Run one step on these arguments: update the variables, and return the results."""
        value_of = {"input": args.__getitem__, "variable": Variable.read_value, "constant": as_tensor}
        with self.lock:  # one thread at a time
            values = {x: value_of[x.op](x.source) for x in self.graph.nodes if not x.inputs}
            for node, plan in self.plans:
                values[node] = DOOR.bottom.do(node.op, plan, [values[x] for x in node.inputs], node.attrs)
            for variable, node in self.graph.updates.items():
                variable.set_value(values[node])
        return [alias(values[node]) for node in self.graph.outputs]

    def over(self, args, batches):
        """Run a step for each row of `batches`. Return a tensor for each result, with one number per step."""
        return _stacked([self.run([gather(x, rows) for x in args]) for rows in batches])

    def __repr__(self):
        return f"{len(self.plans)} ops, one after the other"


def _check_single(results):
    """Raise ValueError unless each of these is a single number."""
    for x in results:
        if math.prod(x.spec.shape) != 1:
            raise ValueError(f"over: a step returns {x.spec}; expected one number, such as the mean of the rows")


def _stacked(steps):
    """Return a tensor for each result, with one number per step."""
    for results in steps:
        _check_single(results)
    return [constant(np.array([x.numpy().reshape(()) for x in results])) for results in zip(*steps)]

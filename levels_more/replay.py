"""The back end that holds every graph: its ops run again, one by one, without the Python of the function."""

import threading

from levels.kernels import planned
from levels.low_level import BACK_ENDS, RUN, Variable, gather, renamed
from levels.low_level.functions import _stacked


class Replay:
    """A graph that runs op by op; the plans are found once. Any threads may call it, one at a time."""

    def __init__(self, graph, batch=None, over=False):
        self.graph, self.lock = graph, threading.Lock()
        self.plans = [(node, planned(node.op, [x.spec for x in node.inputs], node.attrs)) for node in graph.ops]

    def run(self, args):
        """One step on these arguments. Returns the results; the variables have their new values."""
        leaves = {"input": lambda k: args[k], "variable": Variable.newest, "constant": lambda x: x}
        with self.lock:
            values = {x: leaves[x.op](x.attrs["of"]) for x in self.graph.nodes if not x.inputs}
            for node, plan in self.plans:
                inputs = [values[x] for x in node.inputs]
                values[node] = RUN.do(node.op, plan, inputs, node.attrs)
            for variable, node in self.graph.updates.items():
                variable.replace(values[node])
        return [renamed(values[node]) for node in self.graph.outputs]

    def over(self, args, batches):
        """A step for each row of `batches`. Returns each result, a number, as a tensor of all steps."""
        return _stacked([self.run([gather(x, rows) for x in args]) for rows in batches])

    def __repr__(self):
        return f"{len(self.plans)} ops, one after the other"


BACK_ENDS.append((Replay, lambda graph: 4))

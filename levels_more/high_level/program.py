"""A model's function that stays compiled, and is traced again if something that its trace read has changed."""

import threading

from levels_more.compiler.reads import Function, Reads, hearing


class _GraphTransform(threading.local):
    change = None  # applied to each traced graph: a function (graph, number of rows of a batch) -> another graph


GRAPH_TRANSFORM = _GraphTransform()  # `distributed` sets it, to split graphs over several ranks


class CachedFunction(Function):
    """A function that stays compiled: `current` checks whether what its traces have read has changed since."""

    def renew(self):
        super().renew()
        self.reads = []

    def program(self, args, key, over):
        return super().program(args, (key, GRAPH_TRANSFORM.change), over)

    def traced(self, signature, over):
        with hearing() as heard:
            graph, result = super().traced(signature, over)
        self.reads.append(Reads(heard))
        return GRAPH_TRANSFORM.change(graph, signature[0].shape[0]) if GRAPH_TRANSFORM.change else graph, result

    def current(self):
        """This function. If something has changed, its next call traces it again."""
        if any(reads.changed() for reads in self.reads):
            self.renew()
        return self

    def __reduce__(self):
        return type(None), ()  # a copy of the model gets None here, and makes its own

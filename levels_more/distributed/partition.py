"""Turn the graph of a step on a whole batch into one with collectives, in which each rank computes its own rows.

Ops that work row by row run on the rank's own rows. Ops that sum over rows need all of them: in float64 the rows are
gathered, and every rank adds them in order, so the result is bit for bit that of one process; in float32 each rank adds
its own rows, and the sums are added up. Every rank runs all other ops on all rows. So each step gives the right result;
an op without a rule here is just no faster.
"""

import itertools

import numpy as np

from levels.kernels import ELEMENTWISE, planned
from levels.low_level import Graph, Node, constant, dce


def _aligned(node, split):
    """Whether each of the split inputs has as many rows, and as many axes, as the result."""
    rows, axes = node.spec.shape[:1], len(node.spec.shape)
    return all(x.spec.shape[:1] == rows and len(x.spec.shape) == axes for x in node.inputs if x in split)


def _first_axis(node):
    """Whether an op with an `axis` works along the first axis."""
    axis = node.attrs.get("axis", -1)
    axes = range(len(node.inputs[0].spec.shape))
    named = axes if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return any(a in (0, -len(axes)) for a in named)


def _alone(node, split):
    """Rule for ops that work along other axes than the rows, such as softmax."""
    return _aligned(node, split) and not _first_axis(node)


def _reduces(node, split):
    """Rule for reductions. Without an `axis` they reduce all axes."""
    return node.attrs.get("axis") is not None and not _first_axis(node)


def _product(node, split):
    """Rule for x[rows, k] @ w[k, n], with all of w; in a batched product all operands of 3 or more axes are split."""
    if len(node.spec.shape) > 2:
        return all((each in split) == (len(each.spec.shape) > 2) for each in node.inputs)
    x, w = node.inputs
    return x in split and w not in split and not node.attrs.get("transpose_x")


def _same_rows(node, split):
    """Rule for ops that keep the rows, in the first axis."""
    return node.spec.shape[:1] == node.inputs[0].spec.shape[:1]


def _all_rows(node, split):
    """Rule for a slice: it takes all rows."""
    return node.attrs["slices"][0] in ((None, None, None), (None, None, 1), (0, None, 1), (0, node.spec.shape[0], 1))


# op -> function(node, split): does it work row by row if the nodes in `split` are split by rows? (For elementwise ops
# the rule is `_aligned`.)
BY_ROWS = {
    "matmul": _product,
    "gather": lambda node, split: node.inputs[0] not in split,
    "transpose": lambda node, split: (node.attrs.get("axes") or (-1,))[0] == 0,
    "slice": lambda node, split: _same_rows(node, split) and _all_rows(node, split),
    "reshape": _same_rows,
    "one_hot": _same_rows,
    "cast": _same_rows,
    "concat": lambda node, split: node.attrs.get("axis", 0) != 0 and _aligned(node, split),
    "arg_max": _reduces,
    "arg_min": _reduces,
    **dict.fromkeys(("reduce_sum", "reduce_mean", "reduce_max", "reduce_min"), _reduces),
    **dict.fromkeys(("softmax", "softmax_grad", "log_softmax", "log_softmax_grad"), _alone),
}

REPLICATED_OPERANDS = "matmul", "gather"  # their unsplit operand has no rows of the batch: a matrix, a table

# op -> function(node, split): is its result the sum of its results for each rank's rows?
PARTIAL_SUMS = {
    "matmul": lambda node, split: (
        bool(node.attrs.get("transpose_x"))
        and not node.attrs.get("transpose_w")
        and all(x in split and len(x.spec.shape) == 2 for x in node.inputs)
    ),
    "reduce_sum": lambda node, split: True,  # (else its rule in BY_ROWS holds)
    "reduce_mean": lambda node, split: True,
    "scatter_add": lambda node, split: all(x in split for x in node.inputs),
}


def shares(batch, ranks):
    """Where each rank's rows of a batch begin, and the end: [0, …, batch]. Shares differ by at most one row."""
    return [batch * rank // ranks for rank in range(ranks + 1)]


class Partitioner:
    """The new graph while it is built. `replicas`, `shards`: node -> the new node with all its rows, or this rank's."""

    def __init__(self, batch, world, counts=None):
        self.ends = shares(batch, world.size) if counts is None else [0, *itertools.accumulate(counts)]
        self.own = counts is not None
        self.world = world
        self.first, self.last = self.ends[world.rank : world.rank + 2]
        self.counts = tuple(b - a for a, b in zip(self.ends, self.ends[1:], strict=False))
        self.nodes, self.replicas, self.shards, self.split = [], {}, {}, set()

    def added(self, op, inputs, attrs):
        """Add a new node to the graph and return it."""
        spec = planned(op, [x.spec for x in inputs], attrs).spec
        self.nodes.append(Node(op, inputs, attrs, spec))
        return self.nodes[-1]

    def replica_of(self, x):
        """The new node with all rows of x, gathered if necessary."""
        if x not in self.replicas:
            self.replicas[x] = self.added("all_gather", [self.shards[x]], {"rows": self.counts})
        return self.replicas[x]

    def shard_of(self, x):
        """The new node with this rank's rows of x, sliced if necessary."""
        if x not in self.shards:
            rest = ((None, None, None),) * (len(x.spec.shape) - 1)
            self.shards[x] = self.added("slice", [self.replicas[x]], {"slices": ((self.first, self.last, 1), *rest)})
        return self.shards[x]

    def row_by_row(self, node):
        """Enter a node that each rank computes for its own rows."""
        inputs = []
        for x in node.inputs:
            beside = node.op not in REPLICATED_OPERANDS and len(x.spec.shape) == len(node.spec.shape)
            cut = x in self.split or beside and x.spec.shape[:1] == node.spec.shape[:1]
            inputs.append(self.shard_of(x) if cut else self.replica_of(x))
        attrs = dict(node.attrs)
        if "shape" in attrs:
            attrs["shape"] = (self.last - self.first, *node.spec.shape[1:])
        if node.op == "slice":
            attrs["slices"] = ((None, None, None), *attrs["slices"][1:])
        self.shards[node] = self.added(node.op, inputs, attrs)
        self.split.add(node)

    def summed(self, node):
        """Enter a node whose result is the sum of its results for each rank's rows."""
        op = node.op if self.last > self.first else node.op.replace("mean", "sum")  # of no rows: 0.0, and no NaN
        part = self.added(op, [self.shard_of(x) for x in node.inputs], node.attrs)
        if node.op == "reduce_mean":  # a mean of this rank's rows only: weight it by their share of the batch
            share = constant(np.array((self.last - self.first) / self.ends[-1], part.spec.dtype))
            self.nodes.append(Node("constant", [], {}, share.spec, share))
            part = self.added("multiply", [part, self.nodes[-1]], {})
        self.replicas[node] = self.added("all_reduce", [part], {})

    def enter(self, node):
        """Enter a node of the old graph, after its inputs."""
        here = self.split.intersection(node.inputs)
        rule = _aligned if node.op in ELEMENTWISE else BY_ROWS.get(node.op)
        is_sum = PARTIAL_SUMS.get(node.op) if node.spec.dtype == np.float32 else None
        rows = node.op == "input" and node.spec.shape[:1] == (self.ends[-1],)
        if rows and self.own:
            spec = node.spec.device.spec((self.last - self.first, *node.spec.shape[1:]), node.spec.dtype)
            self.nodes.append(Node("input", [], node.attrs, spec, node.source))
            self.shards[node] = self.nodes[-1]
            self.split.add(node)
        elif not node.inputs:
            self.nodes.append(node)
            self.replicas[node] = node
            if rows:
                self.split.add(node)
        elif here and rule and rule(node, self.split):
            self.row_by_row(node)
        elif here and is_sum and is_sum(node, self.split):
            self.summed(node)
        else:
            self.replicas[node] = self.added(node.op, [self.replica_of(x) for x in node.inputs], node.attrs)


def spread(graph, batch, world, counts=None):
    """The graph of a step on a batch, changed so that this rank of a `World` computes its own rows.

    On all ranks its results and the new values of variables are those of the given graph. A batch with fewer rows than
    ranks is not split: every rank computes all of it. With `counts`, rank r is given counts[r] rows of the batch, and
    not all.
    """
    if counts is None and (world.size == 1 or not batch or batch < world.size):
        return graph
    graph = dce(graph)
    partitioner = Partitioner(batch, world, counts)
    for node in graph.nodes:
        partitioner.enter(node)
    updates = {variable: partitioner.replica_of(node) for variable, node in graph.updates.items()}
    return dce(Graph(partitioner.nodes, [partitioner.replica_of(node) for node in graph.outputs], updates))

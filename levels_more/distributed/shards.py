"""Rows that no rank has all of: in float32, `fit` and `evaluate` take from each rank a dataset of its own rows.

The k-th batches of all ranks are one batch together, and its loss is the mean over all its rows. A rank that has no
rows left takes part with a batch of no rows, until all have none: so each row counts once in an epoch.
"""

import hashlib
import math
from itertools import chain, combinations
from typing import NamedTuple

import numpy as np

from levels_more.distributed.backend import Rows
from levels_more.distributed.collectives import call_together, world
from levels_more.distributed.partition import spread
from levels_more.high_level.program import GRAPH_TRANSFORM
from levels_more.high_level.rows import dataset_of, dtype_for, is_data, parts_of
from levels_more.mid_level.dataset import Dataset, elements_of
from levels_more.mid_level.stages import each_array

LOOKED_AT = 64  # rows: how many are compared before the first step


class OwnRows(NamedTuple):
    """The change of a graph for a step in which rank r has counts[r] rows of the batch."""

    counts: tuple

    def signature(self, given):
        """The Specs of the arrays of the whole batch, for which a step is traced; given: those of this rank's."""
        return [spec.device.spec((sum(self.counts), *spec.shape[1:]), spec.dtype) for spec in given]

    def __call__(self, graph, batch):
        return spread(graph, batch, world(), self.counts)


class Passes:
    """The passes over a dataset. The first element of the first pass is known before, and is not lost."""

    def __init__(self, make):
        self.make = make
        self.begun = iter(make())
        self.first = next(self.begun, None)

    def __call__(self):
        if self.begun is None:
            return iter(self.make())
        begun, self.begun = self.begun, None
        return begun if self.first is None else chain([self.first], begun)


def share_data(model, data, steps, name, again=False):
    """Return (what `fit` or `evaluate` goes through, whether the ranks have rows of their own).

    The first is the data, if they are the same on all ranks, else a dataset of the batches of all ranks together.
    steps, name, again: as in `limit_steps`. Raises ValueError if the ranks' rows do not fit each other, if two ranks
    have the same rows, or if a rank has none; TypeError in float64, where the bits of one process are promised.
    """
    if world().size == 1 or not is_data(data):
        return data, False
    data = dataset_of(data, steps, name, again)
    passes = None if data.in_memory else Passes(lambda: elements_of(data))
    own = [repr(data), *digests(data.arrays if data.in_memory else passes.first)]
    if all(other == own for other in call_together("fit or evaluate", world().comm.allgather, own)):
        return data if data.in_memory else Dataset(data.stage, passes, data.length, None, True), False
    passes = passes or Passes(lambda: elements_of(data))
    check_shares(model, passes.first)
    nothing = each_array(lambda array: np.asarray(array)[:0], passes.first)
    length = math.inf if data.length == math.inf else math.nan
    return Dataset("own rows", lambda: in_step(passes(), nothing), length, None, True), True


def digests(element):
    """A digest of each of the first rows of an element; None for no element."""
    if element is None:
        return [None]
    rows = zip(*(array[:LOOKED_AT] for array in arrays_of(element)), strict=True)
    return [hashlib.blake2b(b"".join(np.ascontiguousarray(part).tobytes() for part in row)).hexdigest() for row in rows]


def check_shares(model, first):
    """Compare the first batches of all ranks. Raises ValueError or TypeError as `share_data` does."""
    comm = world().comm
    kinds = []
    if first is not None:
        x, y, weights = parts_of(first)
        parts = (x, y) if weights is None else (x, y, weights)
        kinds = [f"{array.dtype}{['rows', *array.shape[1:]]}" for array in arrays_of(parts)]
    found = call_together("fit or evaluate", comm.allgather, (kinds, digests(first)))
    for rank, (other, _) in enumerate(found):
        if not other:
            raise ValueError(f"rank {rank} has no rows; give each rank a part of the data, or start fewer ranks")
    for rank, (other, _) in enumerate(found):
        if other != kinds:
            raise ValueError(f"rank {comm.rank} has {kinds}, and rank {rank} has {other}; expected the same columns")
    for (a, (_, mine)), (b, (_, others)) in combinations(enumerate(found), 2):
        shared = len({*mine} & {*others})
        if 2 * shared > min(len({*mine}), len({*others})):
            cure = f"give each rank its own, as `dataset.shard({comm.size}, rank)` does, or all ranks the same dataset"
            raise ValueError(f"ranks {a} and {b} have {shared} of the first {len(mine)} rows in common; {cure}")
    if (dtype := dtype_for(model, arrays_of(first)[0])) != np.float32:
        cure = "give all ranks the same data, or make model and data float32"
        told = f"the ranks have rows of their own, and the model is {dtype}"
        raise TypeError(f"{told}, in which a sum has the bits of one process, so that each rank needs all rows; {cure}")


def arrays_of(element):
    """The arrays of an element, a list."""
    arrays = []
    each_array(lambda array: arrays.append(np.asarray(array)), element)
    return arrays


def in_step(elements, nothing):
    """Yield this rank's batches, and `nothing` once they are used up, until those of all ranks are.

    While a batch is out, graphs are traced for the whole batch, and changed so that this rank computes its own rows.
    """
    before = GRAPH_TRANSFORM.change, GRAPH_TRANSFORM.rows
    Rows.differ = True
    try:
        while True:
            element = next(elements, nothing)
            own = len(arrays_of(element)[0])
            counts = tuple(call_together("fit or evaluate", world().comm.allgather, own))
            if not any(counts):
                return
            GRAPH_TRANSFORM.change, GRAPH_TRANSFORM.rows = OwnRows(counts), sum(counts)
            yield element
    finally:
        GRAPH_TRANSFORM.change, GRAPH_TRANSFORM.rows = before
        Rows.differ = False

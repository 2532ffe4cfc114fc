"""The backward pass over a tape as one program, instead of launches for each op, if its structure was seen before.

A training loop that runs op by op records the same ops in each step, on different numbers. Only the structure of a tape
is cached: its ops, how they are connected, shapes, dtypes and attributes.

Row "rings, batch 100, SGD: eager" of the bench takes 1.7 times as long without it.
"""

from operator import is_

import numpy as np

from levels import low_level
from levels.low_level import DOOR, VJPS, NoProgram, Replay, Watcher
from levels_more.compiler.functions import Function
from levels_more.compiler.reads import of_levels

_SELDOM = 8  # tapes of a structure that are first walked op by op: a program takes a tenth of a second to make
_MOST = 256  # structures in the cache
_PLAIN = bool, int, float, str, type(None), np.generic, np.dtype  # types of attributes that repr spells in full

_WALKS = {}  # the structure of a tape -> how many were seen, then their _Walk, or None if there is none


def at_once():
    """Whether ops run at once in this thread: no trace is open, and no open tape records them."""
    stands = DOOR.top
    while isinstance(stands, Watcher) and stands.records is None:
        stands = stands.below
    return stands is DOOR.bottom


def _plain(value):
    return all(map(_plain, value)) if isinstance(value, tuple) else isinstance(value, _PLAIN)


def _asked(records):
    """The keys of the rules in VJPS that are called in a walk over these: for an op, or for an op with attributes."""
    return [*dict.fromkeys((op, *attrs) if (op, *attrs) in VJPS else op for op, _, attrs, _ in records)]


def _ours(records):
    """Whether a walk over this tape calls only our rules, and attributes are plain. (Functions may hold numbers.)"""
    # a row of another type may have no end: `concat` has a rule for each of any number of inputs
    rows = [*map(VJPS.get, _asked(records))]
    ours = all(type(row) is tuple and all(map(of_levels, filter(None, row))) for row in rows)
    return ours and all(_plain(tuple(attrs.values())) for _, _, attrs, _ in records)


class _Walk(Function):
    """A function from all tensors of a tape, in the order of `numbers` {tensor: number}, to the gradients."""

    quiet = True  # it was not written by a reader, so nobody is told that its ops are replayed

    def __init__(self, numbers, records, target, sources):
        told = [(op, [numbers[x] for x in inputs], attrs, numbers[y]) for op, inputs, attrs, y in records]
        target = numbers[target]
        sources = [numbers[x] for x in sources]

        def walk(*tensors):
            tape = [(op, [tensors[n] for n in inputs], attrs, tensors[y]) for op, inputs, attrs, y in told]
            return low_level.backward_pass(tape, tensors[target], [tensors[n] for n in sources])

        super().__init__(walk)
        self.rows = _asked(told)
        self.rules = [*map(VJPS.get, self.rows)]
        self.fails = False

    def traced(self, signature, over):
        """Trace as in any function. Raises NoProgram if a rule raises an error or needs the numbers."""
        try:
            return super().traced(signature, over)
        except (LookupError, TypeError, ValueError) as why:
            raise NoProgram(f"{type(why).__name__}: {why}") from why

    def gradients(self, tensors):
        """The gradients, given these tensors. None if the walk is no program, or a rule has been replaced."""
        if self.fails or not all(map(is_, map(VJPS.get, self.rows), self.rules)):
            return None
        try:
            program, _ = self.program(tensors, None, False)
        except NoProgram:  # the walk op by op raises the error, or has the numbers
            self.fails = True
            return None
        return None if isinstance(program, Replay) else program.run(tensors)


def backward_pass(records, target, sources):
    """The gradient of the tensor `target` for each of the source tensors, or None if no program computes it."""
    if not records or not at_once():
        return None
    # A plain loop: it runs before every gradient, and comprehensions took three times as long.
    numbers = {}
    shape = []
    for op, inputs, attrs, y in records:
        shape.append(op)
        for x in inputs:
            if x in numbers:
                shape.append(numbers[x])
            else:
                numbers[x] = len(numbers)
                shape.append(x.spec)
        if attrs:
            shape.append(repr(attrs))
        if y in numbers:  # an op that returns an earlier tensor is not ours
            return None
        numbers[y] = len(numbers)
        shape.append(y.spec)
    for x in (target, *sources):
        shape.append(numbers.setdefault(x, len(numbers)))
    key = tuple(shape)
    walk = _WALKS.get(key, 0)
    if type(walk) is int:
        if len(_WALKS) >= _MOST:
            _WALKS.clear()
        if walk < _SELDOM:
            walk += 1
        else:
            walk = _Walk(numbers, records, target, sources) if _ours(records) else None
        _WALKS[key] = walk
    return walk.gradients([*numbers]) if type(walk) is _Walk else None

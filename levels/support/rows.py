"""Helpers of the row program: what grows by a row, and the arrays, loads and stores of a row. Notebook 03 uses them."""

import math
from contextlib import contextmanager

import numpy as np

from .programs import NoProgram

LARGEST_ROW = 1000  # numbers written out for one row; with more, launches are quicker


def larger_spec(planned, node, inputs, batch):
    """Return a node's Spec for a batch with one row more: by its plan, from its inputs' Specs for one row more.

    An attribute `shape` that begins with the batch size grows, too. Raises NoProgram if there is no such plan, or if
    the result grows by more than a row.
    """
    spec = node.spec
    grown = (batch + 1, *spec.shape[1:])
    if node.op == "input" and spec.shape[:1] == (batch,):
        return spec.device.spec(grown, spec.dtype)
    if inputs == [x.spec for x in node.inputs]:
        return spec
    attrs = node.attrs
    if attrs.get("shape", ())[:1] == (batch,):
        attrs = attrs | {"shape": grown}
    try:
        larger = planned(node.op, inputs, attrs).spec
    except ValueError as why:  # for example, the step has a shape written into it
        raise NoProgram(f"{node!r} is for {batch} rows alone ({why})") from None
    if larger is not spec and larger.shape != grown:
        raise NoProgram(f"{node!r} grows by more than a row")
    return larger


def check_rows(parts):
    """Raise NoProgram if no node has rows, or if there are too many numbers for one."""
    if "row" not in parts.values():
        raise NoProgram("it reads no rows")
    work = sum(math.prod(x.spec.shape[part == "row" :]) for x, part in parts.items())
    if work > LARGEST_ROW:
        told = f"the step has {work:,} numbers to write out, and a row program takes {LARGEST_ROW:,}"
        raise NoProgram(told)


def check_form(what, op, table):
    """Raise NoProgram for an op that is not in the table of those with such a form."""
    if op not in table:
        raise NoProgram(f"{op} has no form for {what}")


@contextmanager
def told_by(op):
    """In a `with` block, an error of the op's scalar function, which is called on registers, becomes NoProgram.

    It may be any error: a function that numba compiled, for one, refuses a register with a TypingError of its own."""
    try:
        yield
    except Exception as why:
        said = str(why).partition("\n")[0] or type(why).__name__
        raise NoProgram(f"the function of {op} cannot be written as instructions ({said})") from None


def _place(index, row, before=()):
    """Return where a number lies in an array, or in its row `row`. `before` stands in front."""
    place = index if row is None else (row, *index[1:])
    return (*before, *place) or (0,)


def declared(a, graph, parts):
    """Declare the arrays of a graph's program. Return [the array of each result] and {source of a leaf: its array}."""
    outs = []
    for k, node in enumerate(graph.outputs):
        outs.append(a.array(f"out{k}", "steps", *node.spec.shape))
    inputs = graph.leaves("input")
    arrays = {}
    for source, x in (inputs | graph.leaves("variable") | graph.updates).items():
        shape = x.spec.shape or (1,)
        if source in inputs and parts[x] == "row":
            shape = ("rows", *shape[1:])
        arrays[source] = a.array(f"array{len(arrays)}", *shape)
    return outs, arrays


def load_all(a, array, shape, row):
    """Write the loads of all numbers of an array, or of its row `row`. Return the registers."""
    values = np.empty(shape, object)
    for index in np.ndindex(shape):
        values[index] = a.load(array, *_place(index, row))
    return values


def store_all(a, array, values, row, before=()):
    """Write the stores of all these registers into an array, or into its row `row`. `before` stands in front."""
    for index, value in np.ndenumerate(values):
        a.store(value, array, *_place(index, row, before))

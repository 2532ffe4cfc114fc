"""Checks of a function of tensors: of its graph, its results and its programs. Notebook 03 uses them."""

import math
from contextlib import contextmanager

import numpy as np

from .said import say_once

LARGEST_ROW = 1000  # numbers written out for one row; with more, launches are quicker


class NoProgram(Exception):
    """The reason why a graph cannot become a program of some kind."""


def check_function(python):
    """Raise TypeError unless this can be called."""
    if not callable(python):
        raise TypeError(f"function: {python!r:.60} is no function")


def check_results(name, results):
    """Raise TypeError if one of a function's results is a dict, a list, or None."""
    for x in results:
        if isinstance(x, (list, tuple, dict, set)) or x is None:
            raise TypeError(f"{name}: returns a {type(x).__name__}; expected tensors, or one list or tuple of them")


def check_single(results):
    """Raise ValueError unless each of these is a single number."""
    for x in results:
        if math.prod(x.spec.shape) != 1:
            raise ValueError(f"over: a step returns {x.spec}; expected one number, such as the mean of the rows")


def check_fits(graph, kernels, elementwise):
    """Raise NoProgram for several dtypes, empty arrays, other devices, or a kernel that a reader has replaced."""
    leaves = [x for x in graph.nodes if x.op in ("input", "variable")]
    edges = {x.spec.dtype for x in (*graph.outputs, *graph.updates.values(), *leaves)}
    dtypes = {node.spec.dtype for node in graph.nodes} - {np.dtype(bool)} | edges
    if len(dtypes) != 1 or dtypes.isdisjoint({np.dtype("f4"), np.dtype("f8")}):
        told = ", ".join(sorted(map(str, dtypes)))
        raise NoProgram(f"it has {told}; expected one float dtype, and no bools outside")
    for node in graph.nodes:
        kind = node.spec.device.kind
        ours = not node.inputs or node.op in elementwise or kernels.is_first(node.op, kind)
        if kind != "cpu" or not ours or 0 in node.spec.shape:
            raise NoProgram(f"{node!r} on {kind} is left to its kernel")


def check_rows(parts):
    """Raise NoProgram if no node has rows, or if there are too many numbers for one."""
    if "row" not in parts.values():
        raise NoProgram("it reads no rows")
    work = sum(math.prod(x.spec.shape[part == "row" :]) for x, part in parts.items())
    if work > LARGEST_ROW:
        raise NoProgram(f"it has {work:,} numbers for each row, and a row program takes {LARGEST_ROW:,}")


def check_form(what, op, table):
    """Raise NoProgram for an op that is not in the table of those with such a form."""
    if op not in table:
        raise NoProgram(f"{op} has no form for {what}")


@contextmanager
def told_by(op):
    """In a `with` block, an error of the op's scalar function, which is called on registers, becomes NoProgram."""
    try:
        yield
    except (ArithmeticError, AttributeError, TypeError, ValueError) as why:
        raise NoProgram(f"the function of {op} cannot be written as instructions ({why})") from None


def say_replayed(function, graph, batch, reasons):
    """Return why a graph has no program, from [(a back end's name, its reason)]. Say so once, for rows on a CPU.

    A function that was not written by a reader is `quiet`. A back end whose turn comes later gives no reason.
    """
    told = {}
    for name, why in reasons:
        told.setdefault(why, f"{name}: {why}")
    told.pop("", None)
    why = "; ".join(told.values())
    on_cpu = any(x.spec.device.kind == "cpu" for x in graph.ops)
    if batch and on_cpu and not getattr(function, "quiet", False):
        say_once(f"function {function.__name__}: its ops are replayed one by one, which is slower. {why}")
    return why

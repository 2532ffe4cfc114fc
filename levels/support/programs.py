"""Checks of a function of tensors: of its graph, its results and its programs. Notebook 03 uses them."""

import itertools
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


def check_trace(symbol, trace):
    """Raise TypeError for a symbol of another trace."""
    if symbol.trace is not trace:
        raise TypeError(f"{symbol!r} is of another trace; return what you need from the function")


def results_of(given, python=None):
    """List what a function returned: nothing, one result, or several. Raises TypeError if one is a dict or a list."""
    if given is None:
        return []
    results = list(given) if type(given) in (list, tuple) else [given]
    for x in results:
        if isinstance(x, (list, tuple, dict, set)) or x is None:
            name = "function" if python is None else getattr(python, "__qualname__", "it")
            raise TypeError(f"{name}: returns a {type(x).__name__}; expected tensors, or one list or tuple of them")
    return results


def packed(outs, result):
    """Return these tensors in the form of what a function returned: None, one, or several."""
    if result is None:
        return None
    return type(result)(outs) if type(result) in (list, tuple) else outs[0]


def check_single(*steps):
    """Raise ValueError unless each result of these steps is a single number."""
    for x in itertools.chain(*steps):
        if math.prod(x.spec.shape) != 1:
            raise ValueError(f"over: a step returns {x.spec}; expected one number, such as the mean of the rows")


def single_numbers(steps):
    """Return [the number of each result] of each step. Raises ValueError unless each is a single number."""
    check_single(*steps)
    return [[x.numpy().reshape(()) for x in results] for results in steps]


def check_fits(graph, kernels, elementwise):
    """Raise NoProgram for several dtypes, empty arrays, other devices, or a kernel that a reader has replaced."""
    leaves = [x for x in graph.nodes if x.op in ("input", "variable")]
    edges = {x.spec.dtype for x in (*graph.outputs, *graph.updates.values(), *leaves)}
    dtypes = {node.spec.dtype for node in graph.nodes} - {np.dtype(bool)} | edges
    if len(dtypes) != 1 or dtypes.isdisjoint({np.dtype("f4"), np.dtype("f8")}):
        raise NoProgram(f"it has {', '.join(sorted(map(str, dtypes)))}; expected one float dtype, and no bools outside")
    for node in graph.nodes:
        kind = node.spec.device.kind
        ours = not node.inputs or node.op in elementwise or kernels.is_first(node.op, kind)
        if not ours:
            raise NoProgram(f"the compiler cannot look into the new kernel of {node.op}")
        if kind != "cpu" or 0 in node.spec.shape:
            raise NoProgram(f"{node!r} on {kind} is left to its kernel")


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
    """In a `with` block, an error of the op's scalar function, which is called on registers, becomes NoProgram."""
    try:
        yield
    except (ArithmeticError, AttributeError, TypeError, ValueError) as why:
        raise NoProgram(f"the function of {op} cannot be written as instructions ({why})") from None


def say_replayed(function, graph, batch, reasons):
    """Return why a graph has no program, from {reason: name of a back end}. Say so once, for rows on a CPU."""
    why = "; ".join(f"{name}: {why}" for why, name in reasons.items() if why)  # None: its turn comes later
    on_cpu = any(x.spec.device.kind == "cpu" for x in graph.ops)
    if batch and on_cpu and not getattr(function, "quiet", False):  # quiet: no reader has written it
        name = "a function" if function.__name__ == "<lambda>" else f"function {function.__name__}"
        say_once(f"{name} runs op by op, which is slower: {'; '.join(filter(None, reasons))}")
    return why


def made_once(function, key, args, over):
    """Compile a function, and keep the program under this key, which ends with the version of the kernels."""
    with function.lock:  # one thread compiles, and the others wait
        found = function.programs.get(key) or function.compile(args, over)
        for old in [*function.programs]:  # those of an older version are discarded
            if old[-1] != key[-1]:
                function.programs.pop(old, None)
        function.programs[key] = found
    return found


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

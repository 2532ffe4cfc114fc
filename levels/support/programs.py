"""Checks of a function of tensors: of its graph, its results and its programs. Notebook 03 uses them."""

import itertools
import math

import numpy as np

from .said import say_once


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


def named(function):
    """Return "function step", or "a function" for one without a name, such as a partial call."""
    name = getattr(function, "__name__", "<lambda>")
    return "a function" if name == "<lambda>" else f"function {name}"


def say_replayed(function, graph, batch, reasons):
    """Return why a graph has no program, from {reason: name of a back end}. Say so once, for rows on a CPU."""
    why = "; ".join(f"{name}: {why}" for why, name in reasons.items() if why)  # None: its turn comes later
    on_cpu = any(x.spec.device.kind == "cpu" for x in graph.ops)
    if batch and on_cpu and not getattr(function, "quiet", False):  # quiet: no reader has written it
        say_once(f"{named(function)} runs op by op, which is slower: {'; '.join(filter(None, reasons))}")
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

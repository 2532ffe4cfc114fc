"""A compiled function notices that Python changed what it has read: globals, cells of closures, functions it calls."""

import functools
import types

from levels.kernels import KERNELS
from levels.kernels.cache import globals_read
from levels.low_level import GUARDS, Function

_WRAPPERS = {types.MethodType: "__func__", functools.partial: "func", Function: "python"}  # where the function in it is


def _unwrapped(value):
    """The Python function in a method, a partial call, or a `Function`."""
    while wrapper := _WRAPPERS.get(type(value)):
        value = getattr(value, wrapper)
    return value


def _of_the_reader(value):
    """Whether this is a function that no module of ours defines."""
    function = _unwrapped(value)
    return isinstance(function, types.FunctionType) and function.__module__.split(".")[0] not in (
        "levels",
        "levels_more",
    )


def _inside(cell):
    """What a cell of a closure holds; the cell itself as long as that is nothing."""
    try:
        return cell.cell_contents
    except ValueError:
        return cell


def read_outside(python, kernels):
    """[(read, key, value), …]: what a function and these kernels read from outside, and the functions among that in turn.

    read(key) gives the value: of a global, or in a cell of the function around. Our own modules do not change.
    """
    found, waiting = {}, [_unwrapped(f) for f in (python, *kernels) if f is python or _of_the_reader(f)]
    while waiting:
        function = waiting.pop()
        scope = function.__globals__
        names = sorted(globals_read(function.__code__) & scope.keys())
        new = {(id(scope), name): (scope.get, name, scope[name]) for name in names}
        new |= {id(cell): (_inside, cell, _inside(cell)) for cell in function.__closure__ or ()}
        waiting += [
            _unwrapped(value) for key, (_, _, value) in new.items() if key not in found and _of_the_reader(value)
        ]
        found |= new
    return [*found.values()]


def guard(python, graph):
    """A function that says whether any of that is another object now. It stands in the way of every call."""
    outside = read_outside(python, [KERNELS[node.op, node.spec.device.kind] for node in graph.ops])

    def stale():
        for read, key, value in outside:  # noqa: SIM110 (any(…) is slower)
            if read(key) is not value:
                return True
        return False

    return stale


GUARDS.append(guard)

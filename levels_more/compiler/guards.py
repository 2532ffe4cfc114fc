"""Guards: a function is traced anew after a global, a closure cell or a function that it has read was changed."""

import functools
import types
import warnings

from levels.kernels import KERNELS
from levels.low_level import GUARDS, Function
from levels_more.compiler.dependencies import changed, of_levels, read_by

_WRAPPERS = {types.MethodType: "__func__", functools.partial: "func", Function: "python"}  # its attribute


def unwrapped(value):
    """Return the Python function inside a method, a partial call or a `Function`; any other value as it is."""
    while wrapper := _WRAPPERS.get(type(value)):
        value = getattr(value, wrapper)
    return value


def of_the_reader(value):
    """Return the Python function in a value if it is not defined in `levels` or `levels_more`; else None."""
    function = unwrapped(value)
    return function if isinstance(function, types.FunctionType) and not of_levels(function) else None


def guard(function, graph):
    """Return a check: did values that a `Function` or a kernel of its graph reads change? Warns at each 10th trace."""
    if function.traces % 10 == 0:
        name = getattr(function, "__name__", "a function")
        why = "once for each new shape, dtype or value"
        warnings.warn(f"{name} was traced {function.traces} times, {why}", stacklevel=5)
    kernels = [of_the_reader(KERNELS[node.op, node.spec.device.kind]) for node in graph.ops]
    return functools.partial(changed, read_by([unwrapped(function.python), *filter(None, kernels)], of_the_reader))


GUARDS.append(guard)

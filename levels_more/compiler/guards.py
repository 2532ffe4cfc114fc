"""Guards: a function is traced anew after a global, a closure cell or a function that it has read was changed.

Only names are watched. A value that is reached through an attribute, or from a list or a dict, is read once, while the
function is traced. If it changes, make it a Variable or an argument, or call `renew`. (`tf.function` treats all values
of Python in this way; `torch.compile` watches such values, too.)
"""

import functools
import operator
import types
import warnings

from levels import low_level
from levels.kernels import KERNELS
from levels_more.compiler.dependencies import changed, of_levels, read_by

_WRAPPERS = {types.MethodType: "__func__", functools.partial: "func", low_level.Function: "python"}


def unwrapped(value):
    """Return the Python function inside a method, a partial call or a `Function`; any other value as it is."""
    while wrapper := _WRAPPERS.get(type(value)):
        value = getattr(value, wrapper)
    return value


def of_the_reader(value):
    """Return the Python function in a value if it is not defined in `levels` or `levels_more`; else None."""
    function = unwrapped(value)
    return function if isinstance(function, types.FunctionType) and not of_levels(function) else None


class Function(low_level.Function):
    """The core's Function. It is traced anew after a value that it, or a kernel of its graph, has read was changed."""

    def renew(self):
        super().renew()
        self.stale = []  # functions without arguments: is a program out of date?

    def program(self, args, key, over):
        if any(map(operator.call, self.stale)):
            self.programs = {}
            self.stale = []
        return self.programs.get((key, over, KERNELS.version)) or super().program(args, key, over)

    def compile(self, args, over):
        """As in levels. Warns at each 10th trace."""
        found = super().compile(args, over)
        if self.traces % 10 == 0:
            why = "once for each new shape, dtype or value"
            warnings.warn(f"{self.__name__} was traced {self.traces} times, {why}", stacklevel=6)
        return found

    def traced(self, signature, over):
        graph, result = super().traced(signature, over)
        kernels = [of_the_reader(KERNELS[node.op, node.spec.device.kind]) for node in graph.ops]
        read = read_by([unwrapped(self.python), *filter(None, kernels)], of_the_reader)
        self.stale.append(functools.partial(changed, read))
        return graph, result


_WRAPPERS[Function] = "python"
function = Function

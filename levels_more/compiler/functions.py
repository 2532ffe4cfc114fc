"""A `function` is traced anew after a global, a closure cell or a function that it has read was changed.

It may be called for each step, so only names are watched. A value that is reached through an attribute, or from a list
or a dict, is read once, while the function is traced; if it changes, make it a Variable or an argument, or call
`renew`. (`tf.function` treats all values of Python in this way; `torch.compile` watches attributes, lists and dicts,
too.) The step of a model is watched more closely, by `reads.Reads`.
"""

import functools
import inspect
import operator
import types
import warnings

from levels import low_level
from levels.kernels import KERNELS
from levels.support.compiled import globals_read
from levels.support.programs import named
from levels_more.compiler.reads import cell_content, of_levels, same


def _read_outside(function):
    """[(read, key, value), …] for the globals and the closure cells that a Python function reads.

    read(key) returns the current value.
    """
    scope = function.__globals__
    cells = function.__closure__ or ()
    names = sorted(globals_read(function.__code__) & scope.keys())
    return [(scope.get, name, scope[name]) for name in names] + [(cell_content, c, cell_content(c)) for c in cells]


def _read_by(functions):
    """[(read, key, value), …] for all that these functions read, and what the reader's functions in these values read.

    Values that functions of `levels` and `levels_more` read are left out, since they do not change.
    """
    found = []
    waiting = [*functions]
    met = set()
    while waiting:
        function = waiting.pop()
        if function not in met:
            met.add(function)
            places = _read_outside(function)
            found += [] if of_levels(function) else places
            waiting += filter(None, (_of_the_reader(value) for _, _, value in places))
    return found


def _changed(places):
    """Whether one of these values has changed."""
    for read, key, value in places:  # a plain loop: it runs before every call
        now = read(key)
        if now is not value and not same(now, value):
            return True
    return False


def watch(made, function):
    """Make the plan recompile before a run if a value that its kernel reads has changed. Returns the plan."""
    lower = made.lower

    def lower_watched():
        places, run = _read_by([_function_in(function)]), lower()

        def look_and_run(*arrays):
            if _changed(places):
                made.compiled = lower_watched()
                return made.compiled(*arrays)
            run(*arrays)

        return look_and_run if places else run

    made.lower = lower_watched
    return made


def _unwrapped(value):
    """Return the Python function inside a method, a partial call, a `Function` or what numba compiled, or the value."""
    while wrapper := _WRAPPERS.get(type(value)):
        value = getattr(value, wrapper)
    return inspect.getattr_static(value, "py_func", value)  # it calls no `__getattr__`


def _function_in(value):
    """Return the Python function that a call of this value runs, such as a layer's `__call__`. None if it is in C."""
    function = _unwrapped(value)
    if not isinstance(function, types.FunctionType):
        function = type(function).__call__
    return function if isinstance(function, types.FunctionType) else None


def _of_the_reader(value):
    """Return the Python function in a value if it is not defined in `levels` or `levels_more`; else None."""
    function = _unwrapped(value)
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
            warnings.warn(f"{named(self)} was traced {self.traces} times, {why}", stacklevel=6)
        return found

    def traced(self, signature, over):
        graph, result = super().traced(signature, over)
        kernels = [_of_the_reader(KERNELS[node.op, node.spec.device.kind]) for node in graph.ops]
        read = _read_by(filter(None, [_function_in(self.python), *kernels]))
        self.stale.append(functools.partial(_changed, read))
        return graph, result


_WRAPPERS = {
    types.MethodType: "__func__",
    functools.partial: "func",
    low_level.Function: "python",
    Function: "python",
}
function = Function

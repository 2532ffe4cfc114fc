"""What a trace has read of a model: taken down, and compared later. Where nothing differs, a step need not be traced again.

Python of the reader may read anything. So his functions are looked into, too: their code, and the globals and the closures that it
names. Whatever is not understood here equals nothing, and the step is traced anew.
"""

import functools
import math
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType

import numpy as np

from levels.kernels import globals_read
from levels.low_level import Module, Variable
from levels.mid_level import Made

# attributes that change while what a trace reads does not
PASSING = {
    "again",
    "input_specs",
    "output_shape",
    "history",
    "stop_training",
    "predictor",
    "programs",
    "read",
    "pace",
    "watch",
}


def seen(value, above=(), kinds=None):
    """What a trace may read of a value, to be compared with `==` to what is seen later. What is not understood equals nothing.

    Numbers and texts count by what they say, variables by who they are and whether they are trained. Parts are looked into,
    classes and functions too; a part inside of itself is looked into once, and a class (`kinds`) once in all.
    """
    kinds = {} if kinds is None else kinds
    if isinstance(value, Variable):
        return id(value), value.trainable
    if any(value is part for part in above):
        return "a part around this one"
    above = (*above, value)
    if value is None or isinstance(value, (bool, int, float, complex, str, np.generic, np.dtype)):
        return type(value), repr(value)
    if isinstance(value, (list, tuple)):
        return type(value), [seen(part, above, kinds) for part in value]
    if isinstance(value, dict):
        return [(name, seen(part, above, kinds)) for name, part in value.items()]
    if isinstance(value, MethodType):
        return seen(value.__self__, above, kinds), seen(value.__func__, above, kinds)
    if isinstance(value, functools.partial):
        return [seen(part, above, kinds) for part in (value.func, value.args, value.keywords)]
    if isinstance(value, (Module, Made)):
        inside = {name: part for name, part in vars(value).items() if name not in PASSING}
        return seen(type(value), above, kinds), seen(inside, above, kinds)
    if isinstance(value, FunctionType):
        return value if of_levels(value) else of_reader(value, above, kinds)
    if isinstance(value, type):
        if value not in kinds:
            kinds[value] = [(kind, members(kind, above, kinds)) for kind in value.__mro__]
        return kinds[value]
    return value if known(value) else object()


def members(kind, above, kinds):
    """What stands in a class: of ours and of Python's who it is, of the reader's what it says."""
    if of_levels(kind) or kind.__module__ in ("builtins", "abc"):
        return [*vars(kind)], [*map(id, vars(kind).values())]  # (these stand in the way of every `predict`)
    inside = {name: part for name, part in vars(kind).items() if not name.startswith("__") or name == "__call__"}
    plain = {name: (part.fget, part.fset) if isinstance(part, property) else part for name, part in inside.items()}
    return seen({name: getattr(part, "__func__", part) for name, part in plain.items()}, above, kinds)


def of_reader(function, above, kinds):
    """A function's code, its defaults, and what its code names outside of it: globals, and what its closure holds."""
    code, scope = function.__code__, function.__globals__
    names = sorted(globals_read(code) & scope.keys())
    if "random" in code.co_names:
        return object()
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    outside = [function.__defaults__, function.__kwdefaults__, cells, {name: scope[name] for name in names}]
    return code, seen(outside, above, kinds)


def known(value):
    """Whether a module or a built-in function gives the same whenever it is asked."""
    if isinstance(value, ModuleType):
        return value in (math, np) or of_levels(value)
    return isinstance(value, BuiltinFunctionType) and value.__module__ in ("builtins", "math")


def of_levels(value):
    """Whether a class, a function or a module is one of ours."""
    name = value.__name__ if isinstance(value, ModuleType) else value.__module__
    return (name or "").partition(".")[0] in ("levels", "levels_more")

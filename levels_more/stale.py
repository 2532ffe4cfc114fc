"""A plan notices that Python changed what its kernel was compiled from: a function that it calls, a number that it reads."""

import types

from levels.kernels import STANDS
from levels.kernels.cache import globals_read


def watched(function, seen=()):
    """((scope, name, value), …): the globals that a kernel was compiled from, those of what it calls first."""
    found = ()
    for name in sorted(globals_read(function.__code__) & function.__globals__.keys()):
        value = function.__globals__[name]
        inner = getattr(value, "py_func", value)
        if isinstance(inner, types.FunctionType) and inner not in (*seen, *STANDS):
            found += watched(inner, (*seen, function))
        found += ((function.__globals__, name, value),)
    return found


def watch(made, function):
    """Have this plan look, before each run, whether a global that its kernel was compiled from has changed; then compile anew."""
    lower = made.lower

    def lower_watched():
        names, run = watched(function), lower()

        def look_and_run(*arrays):
            for scope, name, value in names:
                if scope.get(name) is not value:
                    made.run = lower_watched()
                    return made.run(*arrays)
            run(*arrays)

        return look_and_run if names else run

    made.lower = lower_watched

"""The globals and closure cells that compiled Python reads. When one of their values changes, it is stale."""

import types

from levels.support.compiled import SUBSTITUTIONS, globals_read

TEXTS = {type(None), bool, int, float, complex, str}  # types whose values are the same if their reprs are


def of_levels(value):
    """Whether a class, a function or a module belongs to `levels` or `levels_more`. These do not change."""
    name = value.__name__ if isinstance(value, types.ModuleType) else value.__module__
    return (name or "").partition(".")[0] in ("levels", "levels_more")


def cell_content(cell):
    """The content of a closure cell, or the cell itself while it is empty."""
    try:
        return cell.cell_contents
    except ValueError:
        return cell


def read_outside(function):
    """[(read, key, value), …] for the globals and the closure cells that a Python function reads.

    read(key) returns the current value.
    """
    scope = function.__globals__
    cells = function.__closure__ or ()
    names = sorted(globals_read(function.__code__) & scope.keys())
    return [(scope.get, name, scope[name]) for name in names] + [(cell_content, c, cell_content(c)) for c in cells]


def read_by(functions, inside):
    """[(read, key, value), …] for all that these functions read, and what the functions among these values read.

    inside(value) returns the Python function in a value, which is searched too, or None. Values that functions of
    `levels` and `levels_more` read are left out, since they do not change.
    """
    found = []
    waiting = [*functions]
    met = set()
    while waiting:
        function = waiting.pop()
        if function not in met:
            met.add(function)
            places = read_outside(function)
            found += [] if of_levels(function) else places
            waiting += filter(None, (inside(value) for _, _, value in places))
    return found


def same(now, value):
    """Whether these are one object, or numbers or strings of one type and repr. So 0.0 is not -0.0."""
    return now is value or (type(now) is type(value) and type(now) in TEXTS and repr(now) == repr(value))


def changed(places):
    """Whether one of these values has changed."""
    for read, key, value in places:  # a plain loop: it runs before every call
        now = read(key)
        if now is not value and not same(now, value):
            return True
    return False


def _called(value):
    """The Python function in a value, unless kernels call a replacement of it (SUBSTITUTIONS); else None."""
    function = getattr(value, "py_func", value)
    return function if isinstance(function, types.FunctionType) and function not in SUBSTITUTIONS else None


def watch(made, function):
    """Make the plan recompile before a run if a value that its kernel reads has changed. Returns the plan."""
    lower = made.lower

    def lower_watched():
        places, run = read_by([function], _called), lower()

        def look_and_run(*arrays):
            if changed(places):
                made.compiled = lower_watched()
                return made.compiled(*arrays)
            run(*arrays)

        return look_and_run if places else run

    made.lower = lower_watched
    return made

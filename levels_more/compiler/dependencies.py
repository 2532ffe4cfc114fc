"""What compiled Python reads from outside: places, and what stood there. Where another value stands, it is stale."""

import types

from levels.support.compiled import STANDS, globals_read

TEXTS = {type(None), bool, int, float, complex, str}  # kinds of values whose texts say all that they are


def of_levels(value):
    """Whether a class, a function or a module is one of ours. These do not change."""
    name = value.__name__ if isinstance(value, types.ModuleType) else value.__module__
    return (name or "").partition(".")[0] in ("levels", "levels_more")


def cell_content(cell):
    """What a cell of a closure holds; the cell itself as long as that is nothing."""
    try:
        return cell.cell_contents
    except ValueError:
        return cell


def read_outside(function):
    """[(read, key, value), …]: the globals that a Python function reads, and the cells of the functions around it.

    read(key) gives the value that stands there.
    """
    scope, cells = function.__globals__, function.__closure__ or ()
    names = sorted(globals_read(function.__code__) & scope.keys())
    return [(scope.get, name, scope[name]) for name in names] + [(cell_content, c, cell_content(c)) for c in cells]


def read_by(functions, inside):
    """All that these functions read, those among it in turn: [(read, key, value), …].

    inside(value) gives the Python function in a value, to be looked into, or None. What ours read themselves does not
    change.
    """
    found, waiting, met = [], [*functions], set()
    while waiting:
        function = waiting.pop()
        if function not in met:
            met.add(function)
            places = read_outside(function)
            found += [] if of_levels(function) else places
            waiting += filter(None, (inside(value) for _, _, value in places))
    return found


def same(now, value):
    """Whether these are one value. Numbers and texts count by what they say: 0.0 is not -0.0."""
    return now is value or (type(now) is type(value) and type(now) in TEXTS and repr(now) == repr(value))


def changed(places):
    """Whether another value stands in one of these places."""
    for read, key, value in places:  # this stands in the way of every call
        now = read(key)
        if now is not value and not same(now, value):
            return True
    return False


def _called(value):
    """The Python function that a kernel calls, if this is one, and nothing else stands for it there."""
    function = getattr(value, "py_func", value)
    return function if isinstance(function, types.FunctionType) and function not in STANDS else None


def watch(made, function):
    """This plan, which looks before each run whether what its kernel was made from has changed, and compiles anew."""
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

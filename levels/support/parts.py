"""What the parts of a model keep, how one is found by its name, which names are taken. Notebooks 04 and 05 use it."""

import functools

from .checks import check_options, lookup


class Reconstructible:
    """An object that keeps its arguments: `part.recreate()` makes another one like it."""

    def __new__(cls, *args, **options):
        check_options(cls, options)
        if cls.__init__ is object.__init__ and (args or options):
            raise TypeError(f"{cls.__name__}() takes no arguments")
        part = super().__new__(cls)
        part.recreate = functools.partial(cls, *args, **options)
        return part

    def __repr__(self):
        given = [*map(repr, self.recreate.args)]
        given += [f"{name}={value!r}" for name, value in self.recreate.keywords.items()]
        return f"{type(self).__name__}({', '.join(given)})"


def chosen(what, table, name):
    """Return a new object of the class that a table has under this name, or the object `name` itself: see `lookup`."""
    found = lookup(what, table, name)
    return found() if isinstance(found, type) else found


@functools.cache
def used(kind):
    """Return {name: what the framework has there} for a class, without the names that a reader's class defines anew."""
    found = {"recreate": used}  # each object has a function of this name
    for base in reversed(kind.__mro__):
        ours = base.__module__.partition(".")[0] in ("levels", "levels_more")
        for name, value in vars(base).items():
            if ours and not name.startswith("__"):
                found[name] = value
            else:
                found.pop(name, None)
    return found


def _ours(value):
    """Whether this is None, or an object that only the framework makes, such as a `History`, or a list of these."""
    if isinstance(value, (list, tuple)):
        return all(map(_ours, value))
    kind = type(value)
    made = kind.__module__.partition(".")[0] in ("levels", "levels_more") and not hasattr(value, "numpy")
    return value is None or (made and not _is_layer(value))


def fits(name, held, value):
    """Return whether a value may take the place of what the framework has under this name."""
    if isinstance(held, property):
        return held.fset is not None
    if isinstance(held, classmethod) or callable(held):
        return callable(value) and (name == "call" or not _is_layer(value))
    if isinstance(held, tuple):
        return isinstance(value, (list, tuple)) and all(callable(x) and not _is_layer(x) for x in value)
    if held is None:  # such as the optimizer of a model, which may be the reader's
        return _ours(value) or hasattr(value, "apply_gradients")
    return not isinstance(held, (bool, str)) or isinstance(value, type(held))


def _is_layer(value):
    return getattr(type(value), "__setattr__", None) is guarded


def guarded(part, name, value):
    """Set an attribute. Raises AttributeError for a value that would take the place of one of the framework's."""
    held = used(type(part)).get(name, part)
    if held is not part and not (type(held) is type(value) is bool or fits(name, held, value)):
        told = f"{type(part).__name__}.{name} is already a name of the framework"
        raise AttributeError(f"{told}, and would become {value!r:.60}; take another one, such as {name}_")
    object.__setattr__(part, name, value)


def _inside(x, module):
    """List (name, part) of what a module, a list, a tuple or a dict holds. (A copy: other threads may add some.)"""
    x = vars(x) if isinstance(x, module) else x
    if isinstance(x, dict):
        return list(x.items())
    return list(enumerate(x)) if isinstance(x, (list, tuple)) else []


def find_parts(whole, module, kind):
    """Return {"layers.0.w": part of this kind} of a module, in the order in which they were set. Each is found once.

    It looks into attributes, and into lists, tuples, dicts and modules there. A part whose class has an attribute
    `excluded`, such as a metric, is left out. Raises ValueError for two parts of one name.
    """
    found = {}
    seen = set()
    waiting = [("", whole)]
    while waiting:
        path, part = waiting.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        if isinstance(part, kind) and found.setdefault(path[1:], part) is not part:
            raise ValueError(f"two parts have the name {path[1:51]!r}")
        for name, each in reversed(_inside(part, module)):
            holds = isinstance(each, (kind, module, list, tuple, dict))
            if holds and not hasattr(type(each), "excluded"):
                waiting.append((f"{path}.{name}", each))
    return found

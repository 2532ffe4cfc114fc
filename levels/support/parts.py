"""What the parts of a model keep, and how a part is found by its name. Notebooks 04 and 05 use it."""

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

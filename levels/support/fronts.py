"""The errors for names that a level does not have, and for attributes that `__init__` has not set."""

import inspect
import sys

from .checks import meant


class Unset:
    """A descriptor for an attribute that `__init__` sets. Before, reading it raises AttributeError, which says so."""

    def __get__(self, part, kind=None):
        if part is None:
            return self
        told = f"{kind.__name__} is not ready: write super().__init__() as the first line of its __init__"
        raise AttributeError(told, obj=part)


def public(names):
    """Return the `__all__` of a level: the names in its globals(), without modules and the functions of this file."""
    given = {name for name, x in names.items() if inspect.ismodule(x) or getattr(x, "__module__", "") == __name__}
    return sorted(name for name in names if not name.startswith("_") and name not in given)


def absent(front):
    """Return the `__getattr__` (PEP 562) of the level `front`. Its AttributeError says where more names are."""

    def __getattr__(name):
        near = meant(name, getattr(sys.modules[front], "__all__", ()))
        slip = f" (did you mean {near!r}?)" if near else ""
        more = f"levels_more.{front.partition('.')[2]}"
        told = f"what the notebooks build is here, and there is more in {more}: try `from {more} import {name}`"
        raise AttributeError(f"{front} has no {name!r}{slip}: {told}", name=name)

    return __getattr__


class Asked:
    """The last finder on `sys.meta_path`. It finds nothing: an import fails with what the package says of the name.

    In `from PACKAGE import NAME`, Python asks the package, drops its AttributeError, and looks for a file.
    """

    @staticmethod
    def find_spec(name, path=None, target=None):
        """Return None. Raises ImportError if a package of `levels` or `levels_more` has no such name."""
        package, _, name = name.rpartition(".")
        ask = getattr(sys.modules.get(package), "__getattr__", None)
        if ask and package.startswith(("levels.", "levels_more.")):
            try:
                ask(name)
            except AttributeError as error:
                raise ImportError(str(error), name=name) from None


if not any(type(finder).__name__ == Asked.__name__ for finder in sys.meta_path):  # a reload adds no second one
    sys.meta_path.append(Asked())

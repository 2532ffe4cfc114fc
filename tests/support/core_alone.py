"""`pytest --core`: the tests of the levels with `levels` alone, as a reader builds it.

The tests in tests/levels import from `levels_more`, which adds rows to the tables of `levels` and has wider classes. With
`--core` an import from `levels_more` finds the name in `levels` instead. A test that uses a name which `levels` does not have
is skipped, with the name as the reason. So is a test with the mark `more`, which needs something else of `levels_more`, such
as an operator or an argument.
"""

import importlib
import importlib.abc
import importlib.machinery
import sys
import types

import pytest


class Missing:
    """A name that `levels` does not have. It can be imported. Any use of it skips the test."""

    def __init__(self, name):
        self.name = name

    def skip(self, *args, **options):
        pytest.skip(f"levels has no {self.name}")

    __call__ = __iter__ = __contains__ = __getitem__ = __len__ = __bool__ = __mro_entries__ = __ror__ = skip

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)  # pytest and hypothesis look for these
        self.skip()

    def __repr__(self):
        return self.name


class Room(types.ModuleType):
    """A module of `levels_more` with the names of that module of `levels`."""

    __path__ = []  # it may have modules inside

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        core = self.__name__.replace("levels_more", "levels", 1)
        try:
            found = getattr(importlib.import_module(core), name)
        except (AttributeError, ImportError):
            return Missing(f"{core.partition('.')[2]}.{name}".strip("."))
        return importlib.import_module(f"{self.__name__}.{name}") if isinstance(found, types.ModuleType) else found


class Rooms(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds a Room for `levels_more` and for each module in it."""

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "levels_more":
            return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return Room(spec.name)

    def exec_module(self, module):
        pass


def start():
    """From now on, `levels_more` cannot be imported. Raises RuntimeError if it was."""
    if "levels_more" in sys.modules:
        raise RuntimeError("--core: levels_more was imported before")
    for room in ("hardware", "kernels", "low_level", "mid_level", "high_level"):
        importlib.import_module(f"levels.{room}")  # so that `levels` has it as an attribute
    sys.meta_path.insert(0, Rooms())


def skip_marked(items):
    """Skip the tests with the mark `more`."""
    for item in items:
        for mark in item.iter_markers("more"):
            item.add_marker(pytest.mark.skip(reason=f"needs levels_more: {mark.args[0]}"))


def has(module, name):
    """Whether this module has the name, which with `--core` is the question whether that of `levels` has it."""
    return not isinstance(getattr(module, name, Missing(name)), Missing)


def more(what, *cases):
    """These cases of a parametrised test, with the mark `more`."""
    return [pytest.param(*case, marks=pytest.mark.more(what)) for case in cases]

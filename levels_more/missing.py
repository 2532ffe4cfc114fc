"""What a spelling has of a name, and what is said of one that it lacks, also where a `from … import …` asks for it."""

import difflib
import dis
import functools
import sys
import tomllib
from pathlib import Path
from types import ModuleType


@functools.cache
def told_of(table):
    """What is said of names that are not here: a table of missing.toml, {what to use instead: names, or one name}."""
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))[table]


@functools.cache
def cures_of(table):
    """{name: what to use instead} of "torch", "tensorflow", or "gone", which fronts of version 1 handed on."""
    return {name: cure for cure, names in told_of(table).items() for name in names.split()}


def missing(told, name, calls=2):
    """The error for a module's `__getattr__`, which calls this, or so many `calls` away, to raise: it says `told`.

    An AttributeError, so that `hasattr` is false; but in `from … import …`, where its text is dropped, an ImportError.
    """
    asking = sys._getframe(calls)
    importing = dis.opname[asking.f_code.co_code[asking.f_lasti]] == "IMPORT_FROM"
    return ImportError(told, name=name) if importing else AttributeError(told, name=name)


def refusing(what, framework, **own):
    """`__getattr__` for a class: of a name that its objects lack it is said what to use, in an AttributeError.

    What to use is a row of missing.toml, or one of the class's `own`.
    """

    def find(self, name):
        cures = cures_of(framework) | own
        cure = f"; use {cures[name]}" if name in cures else ""
        raise AttributeError(f"{what} has no {name!r} here{cure}", name=name, obj=self)

    return find


def _belongs(place, name, value):
    """Whether a name of a module is one of the framework's, and not a helper, a table or a file of ours."""
    ours = told_of("ours")["names"].split()
    if isinstance(value, ModuleType):
        made = not hasattr(value, "__file__")
        return place in value.__name__ and (made or not ("_" in name or name in ours) or name == "lr_scheduler")
    return name not in ours and not (name.isupper() and isinstance(value, dict | list | tuple))


def room(place, own, *tables):
    """`__getattr__` and `__dir__` of a module whose names are its `own`, from globals(), and the rows of these tables.

    What is in neither is `missing`: it is said what to use, which name is near, or how all are listed.
    """
    framework = "tensorflow" if place.startswith("tensorflow") else "torch"

    def names():
        found = {name for table in tables for name in table if not name.endswith("_")}
        found |= {name for name, value in own.items() if _belongs(place, name, value)}
        return sorted(name for name in found if not name.startswith("_"))

    def find(name):
        for table in tables:
            if name in table and not name.endswith("_"):
                return table[name]
        cures = cures_of(framework)
        near = difflib.get_close_matches(name, names(), 1, 0.75) if name not in cures else []
        cure = f"use {cures.get(name)}" if name in cures else f"dir({place}) lists what it has"
        cure = f"the nearest is {near[0]!r}" if near else cure
        raise missing(f"{place} has no {name!r} here; {cure}", name)

    return find, names


def small_room(place, *tables, **names):
    """A module such as "torch.cuda", that has these names, and rows, alone; `import` finds it below `levels_more`."""
    module = sys.modules[f"levels_more.{place}"] = ModuleType(f"levels_more.{place}", f"`{place}`.")
    for table in (*tables, names):
        vars(module).update(table)
    module.__getattr__, _ = room(place, vars(module))
    return module

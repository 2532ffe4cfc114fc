"""The names that fronts hand on; those that files and names of version 1 have now, or what to use in their place."""

import importlib
from types import ModuleType

from levels_more.missing import cures_of, missing, told_of


def told(name):
    """What to write instead of an import of this old name; nothing where it is none."""
    now = told_of("files").get(name, "")
    room, _, file = now.rpartition(".")
    return now and f"levels_more.{name} is levels_more.{now} now: write `from levels_more.{room} import {file}`"


def handed_on(front, *modules):
    """`__all__` of the front of a level: all names in its globals(), without modules, unless they are among these."""
    names = {name for name, value in front.items() if name[0] != "_" and not isinstance(value, ModuleType)}
    return sorted(names | {*modules})


ELSEWHERE = "saving", "distributed"  # rooms whose names were those of a level in version 1


def elsewhere(front, name):
    """The error for the `__getattr__` of a level's front: it says what to write, where another room has this name.

    Raises nothing itself; the name may be one that nobody has.
    """
    told = f"module {front!r} has no attribute {name!r}"
    if name in cures_of("gone"):
        told = f"{name} is no name of {front} any more: use {cures_of('gone')[name]}"
    for room in ELSEWHERE:
        if name in importlib.import_module(f"levels_more.{room}").__all__:
            told = f"{name} is no name of {front} now: write `from levels_more.{room} import {name}`"
    return missing(told, name, 3)


def renamed(front, name):
    """The error for the `__getattr__` of a room's front: it says what a name is called now, if it was renamed."""
    told, now = f"module {front!r} has no attribute {name!r}", told_of("renamed")[front.rpartition(".")[2]]
    if name in now:
        told = f"{name} is called {now[name]} now: write `from {front} import {now[name]}`"
    return missing(told, name, 3)

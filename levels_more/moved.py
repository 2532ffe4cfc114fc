"""`__all__` for the packages of the levels, and errors that say what to use for names and files of version 1."""

import importlib
from types import ModuleType

from levels_more.missing import cures_of, missing, told_of


def told(name):
    """Return a sentence that says how to import this file of version 1 now, or "" if there was no such file."""
    now = told_of("files").get(name, "")
    room, _, file = now.rpartition(".")
    return now and f"levels_more.{name} is levels_more.{now} now: write `from levels_more.{room} import {file}`"


def handed_on(front, *modules):
    """Return `__all__` for a level's `__init__`: all public names in its globals(); of the modules, only these."""
    names = {name for name, value in front.items() if name[0] != "_" and not isinstance(value, ModuleType)}
    return sorted(names | {*modules})


ELSEWHERE = "saving", "distributed"  # packages whose names belonged to a level in version 1


def elsewhere(front, name):
    """Return the error that the `__getattr__` of a level raises for a missing name.

    If version 1 had the name, or another package has it now, the error says what to use.
    """
    told = f"module {front!r} has no attribute {name!r}"
    if name in cures_of("gone"):
        told = f"{name} is no name of {front} any more: use {cures_of('gone')[name]}"
    for room in ELSEWHERE:
        if name in importlib.import_module(f"levels_more.{room}").__all__:
            told = f"{name} is no name of {front} now: write `from levels_more.{room} import {name}`"
    return missing(told, name, 3)


def renamed(front, name):
    """Return the error that the `__getattr__` of a package raises. For a renamed name it gives the new one."""
    told = f"module {front!r} has no attribute {name!r}"
    now = told_of("renamed")[front.rpartition(".")[2]]
    if name in now:
        told = f"{name} is called {now[name]} now: write `from {front} import {now[name]}`"
    return missing(told, name, 3)

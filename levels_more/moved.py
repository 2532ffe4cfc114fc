"""`__all__` for the packages of the levels, and errors that say what to use for names and files of version 1."""

import dis
import functools
import importlib
import re
import sys
from pathlib import Path
from types import ModuleType

from levels_more.missing import cures_of, missing, told_of

ROOMS = "hardware", "kernels", "low_level", "compiler", "mid_level", "high_level", "saving", "distributed"


def told(name, wanted=()):
    """Return a sentence that says how to import this file of version 1 now, or "" if there was no such file.

    `wanted` are the names that are imported from it. The sentence then has a line for each.
    """
    if name in cures_of("gone_files"):
        return f"levels_more.{name} is no file any more: use {cures_of('gone_files')[name]}"
    now = told_of("files").get(name, "")
    if not now:
        return ""
    room, _, file = now.rpartition(".")
    lines = [line_for(each, now) for each in wanted if each != "*"]
    lines = dict.fromkeys(lines or [f"write `from levels_more.{room} import {file}`"])
    return f"levels_more.{name} is levels_more.{now} now: {', '.join(lines)}"


def line_for(name, file):
    """Return "write `from … import …`" for a name that version 1 had in what is now this file, or what to use."""
    front = f"levels_more.{file.partition('.')[0]}"
    for module in (front, f"levels_more.{file}"):
        if hasattr(importlib.import_module(module), name):
            return f"write `from {module} import {name}`"
    return instead(name, front) or f"{name} is gone"


def instead(name, front):
    """Return what to use, or to write, for a name that the front does not have, or "" if nothing is known of it."""
    if name in cures_of("gone"):
        return f"use {cures_of('gone')[name]} instead of {name}"
    if line := new_name(name):
        return line
    file = "" if name.startswith("_") else file_of(name, front.rpartition(".")[2])
    return file and f"write `from levels_more.{file} import {name}`"


def new_name(name):
    """Return "… is called … now: write `from … import …`" for a renamed name, else ""."""
    for package, names in told_of("renamed").items():
        if name in names:
            return f"{name} is called {names[name]} now: write `from levels_more.{package} import {names[name]}`"
    return ""


@functools.cache
def file_of(name, first):
    """Return the file of the rooms that defines a name, such as "kernels.gpu", or "". It looks in one room first."""
    folder = Path(__file__).parent
    defined = re.compile(rf"^(?:def|class) {name}\b|^(?:\w+, )*{name}\b[^\n=(]*=[^=]", re.MULTILINE)
    for room in sorted(ROOMS, key=lambda room: room != first):
        for path in sorted((folder / room).rglob("*.py")):
            if defined.search(path.read_text(encoding="utf-8")):
                return ".".join(path.relative_to(folder).with_suffix("").parts).removesuffix(".__init__")
    return ""


def wanted_names():
    """Return the names of the `from … import …` that is running, or () if the import is another one."""
    frame = sys._getframe(2)  # that of the finder's caller
    while frame and frame.f_globals.get("__name__", "").startswith("importlib"):
        frame = frame.f_back
    names = ()
    for step in dis.get_instructions(frame.f_code) if frame else ():
        if step.opname == "IMPORT_NAME" and step.offset == frame.f_lasti:
            return names or ()
        names = step.argval if isinstance(step.argval, tuple) else ()
    return ()


def handed_on(front, *modules):
    """Return `__all__` for a level's `__init__`: all public names in its globals(); of the modules, only these."""
    names = {name for name, value in front.items() if name[0] != "_" and not isinstance(value, ModuleType)}
    return sorted(names | {*modules})


ELSEWHERE = "saving", "distributed"  # packages whose names belonged to a level in version 1


def elsewhere(front, name):
    """Return the error that the `__getattr__` of a package raises for a missing name.

    If version 1 had the name, or another package has it now, the error says what to use.
    """
    told = f"module {front!r} has no attribute {name!r}"
    homes = [room for room in ELSEWHERE if name in importlib.import_module(f"levels_more.{room}").__all__]
    if homes:
        told = f"{name} is no name of {front} now: write `from levels_more.{homes[0]} import {name}`"
    elif name in cures_of("gone"):
        told = f"{name} is no name of {front} any more: use {cures_of('gone')[name]}"
    elif line := new_name(name):
        told = line
    elif line := instead(name, front):
        told = f"{name} is no name of {front}: {line}"
    return missing(told, name, 3)

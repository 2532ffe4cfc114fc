"""Look up names in the modules of an API. Errors for missing names say what to use."""

import ast
import difflib
import functools
import importlib
import inspect
import re
import sys
import tomllib
from pathlib import Path
from types import ModuleType

from levels.support.operators import Elsewhere

ROOMS = "hardware", "kernels", "low_level", "mid_level", "high_level", "saving", "distributed"


@functools.cache
def told_of(table):
    """Return a table of missing.toml, such as {what to use instead: names that are missing, in one string}."""
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))[table]


@functools.cache
def cures_of(table):
    """{name: what to use instead} for "torch", "tensorflow", "rooms" of levels_more, "parts" or "callbacks"."""
    return {name: cure for cure, names in told_of(table).items() for name in names.split()}


def refusing(what, framework, **own):
    """Return a `__getattr__` for a class. It raises an AttributeError that says what to use instead of the name.

    What to use comes from missing.toml, or from the class's `own` keywords.
    """

    def find(self, name):
        cures = cures_of(framework) | own
        cure = f"; use {cures[name]}" if name in cures else ""
        raise AttributeError(f"{what} has no {name!r} here{cure}", name=name, obj=self)

    return find


def lacking(*names):
    """Return a decorator for a class that lacks these names of Keras and PyTorch. Reading one says what to write.

    It costs nothing to look up another name. (With a `__getattr__`, Python looks up all attributes in a slower way.)
    """

    def mark(kind):
        for name in names:
            setattr(kind, name, Elsewhere(name, cures_of("parts")[name]))
        return kind

    return mark


def refuse_arguments(what, given, kind=None):
    """Raise TypeError if there are arguments left. It says which there are in a class `kind`, or what to use."""
    for name in given:
        cure = f"; use {cures_of('callbacks')[name]}" if name in cures_of("callbacks") else ""
        cure = f" here; there are {', '.join(inspect.signature(kind).parameters)}" if kind else cure
        raise TypeError(f"{what}: there is no argument {name!r}{cure}")


_CALL = re.compile(r"^[\w.<>]+\(\) (?=got an unexpected|got multiple|takes |missing )")


def named_call(error, name, function, theirs=None):
    """Return the TypeError of a call with wrong arguments, in the user's words, or None for any other error.

    `name`: what the user calls the `function`. `theirs`: {an argument of ours: the user's name for it}.
    """
    found = _CALL.match(str(error)) if type(error) is TypeError else None
    if found is None:
        return None
    told = str(error)[found.end() :]
    takes = [theirs.get(each, each) if theirs else each for each in _arguments(function)]
    for ours, their in (theirs or {}).items():
        told = told.replace(f"{ours!r}", f"{their!r}")
    return TypeError(f"{name}() {told}" + (f"; it takes {', '.join(takes)}" if takes else ""))


def _arguments(function):
    """Return the names of a function's arguments, without *args and **options; [] if they are not known."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [each.name for each in parameters if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]


def _belongs(place, name, value):
    """Whether a name in a module belongs to the framework's API, and is not one of our helpers, tables or files."""
    ours = told_of("ours")["names"].split()
    if isinstance(value, ModuleType):
        made = not hasattr(value, "__file__")
        return place in value.__name__ and (made or not ("_" in name or name in ours) or name == "lr_scheduler")
    return name not in ours and not (name.isupper() and isinstance(value, dict | list | tuple))


def _nearest(name, names):
    """Return the name that a mistyped one means: in other letters, or nearly the same from its first letter on."""
    same = [each for each in names if each.lower() == name.lower()]
    near = difflib.get_close_matches(name, names, 3, 0.8)
    return next((each for each in (*same, *near) if each[:1].lower() == name[:1].lower()), None)


def module_api(place, own, *tables):
    """`__getattr__` and `__dir__` for a module with the names of its `own` globals() and the rows of these tables.

    For any other name `__getattr__` raises an error that gives a replacement, a similar name, or how to list all.
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
        cure = f"use {cures.get(name)}" if name in cures else f"dir({place}) lists what it has"
        if name not in cures and (near := _nearest(name, names())):
            cure = f"the nearest is {near!r}"
        raise AttributeError(f"{place} has no {name!r} here; {cure}", name=name)

    own.setdefault("__path__", [])  # as of a package: an import of a missing name then comes to levels.support.fronts
    return find, names


@functools.cache
def _rooms():
    """{name: its room}, read from the fronts of the rooms. (To import a room would add its rows to the tables.)"""
    homes = {}
    for room in ROOMS:
        front = Path(__file__).parent / room / "__init__.py"
        for node in ast.walk(ast.parse(front.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                homes |= {each.name: room for each in node.names if each.name not in homes}
            elif isinstance(node, ast.Dict):  # {file: its names}
                homes |= {name: room for names in node.values for name in ast.literal_eval(names).split()}
    return homes


def absent(front):
    """Return the `__getattr__` of a room. Its AttributeError says what to use, which room has it, or a near name."""

    def __getattr__(name):
        room = f"levels_more.{_rooms().get(name)}"
        cure = f"dir({front}) lists what it has"
        if name in cures_of("rooms"):
            cure = f"use {cures_of('rooms')[name]}"
        elif name in _rooms() and room != front:
            cure = f"{room} has: write `from {room} import {name}`"
        elif near := _nearest(name, getattr(sys.modules[front], "__all__", ())):
            cure = f"the nearest is {near!r}"
        raise AttributeError(f"{front} has no {name!r}; {cure}", name=name)

    return __getattr__


def on_first_use(front, files):
    """Return `__getattr__`, `__dir__` and `__all__` of a room. files: {file: its names}, imported on first use."""
    places = {name: file for file, names in files.items() for name in names.split()}
    lacks = absent(front)

    def __getattr__(name):
        return getattr(importlib.import_module(f"{front}.{places[name]}"), name) if name in places else lacks(name)

    return __getattr__, lambda: sorted(places), sorted(places)


def small_room(place, *tables, **names):
    """Create a module such as "torch.cuda" with only these names and rows. `import` finds it below `levels_more`."""
    module = sys.modules[f"levels_more.{place}"] = ModuleType(f"levels_more.{place}", f"`{place}`.")
    for table in (*tables, names):
        vars(module).update(table)
    module.__getattr__, _ = module_api(place, vars(module))
    return module

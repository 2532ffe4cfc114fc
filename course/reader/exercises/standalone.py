"""Run an exercise alone: `begin` lets its cell run in a new kernel, on the built levels, with no cell before it."""

import ast
import builtins
import importlib
import sys
from pathlib import Path
from types import ModuleType

from course.reader.notebooks.running import WATCHED, find_home

LEVELS = "hardware", "kernels", "low_level", "mid_level", "high_level"


def begin(key):
    """Add to the notebook the names that the exercise needs and its cells have not defined: those of the built levels,
    with those of levels_more unless this is one of the five notebooks, which show the core alone.

    Two levels are never mixed. Once one of the five has defined a function or class of its level, the names that came
    from the built level are removed again, because the tape of one does not record the tensors of the other.
    """
    find_home()
    notebook = sys._getframe(1).f_globals
    *beneath, level = LEVELS[: int(key[:2])]
    names = public(level)
    homes = {name: getattr(notebook.get(name), "__module__", None) or "" for name in names}
    branches_off = any(name.startswith("more/") for name in WATCHED)  # such a notebook defines no level
    if notebook.get("__name__") in homes.values() and not branches_off:
        for name in names:
            if homes[name].startswith((f"levels.{level}.", "levels_more.")):
                del notebook[name]
    elif names:
        # If not `of_the_core`, the exercise runs alone, or in a notebook that imports levels_more.
        of_the_core = WATCHED and not branches_off
        for each in (level, *reversed(beneath)):
            module = importlib.import_module(f"levels.{each}" if of_the_core else f"levels_more.{each}")
            for name in public(each) if of_the_core else module.__all__:
                if name not in vars(builtins):
                    notebook.setdefault(name, getattr(module, name))
        for name, library in libraries(level):
            notebook.setdefault(name, library)


def public(level):
    """The names that a built level exports, if it is built; read from its file, as importing it would fill tables."""
    import levels

    front = Path(levels.__file__).parent / level / "__init__.py"
    statements = ast.parse(front.read_text(encoding="utf-8")).body if front.exists() else []
    rooms = [each for each in statements if isinstance(each, ast.ImportFrom) and each.level]
    return [alias.name for room in rooms for alias in room.names]


def libraries(level):
    """[(name, value)] that a level's rooms import: libraries, such as ("np", numpy), and names of levels.support."""
    places = f"levels.{level}.", "levels.support."
    rooms = [module for name, module in list(sys.modules.items()) if name.startswith(places)]
    names = [(name, value) for room in rooms for name, value in vars(room).items()]
    found = [
        (name, value)
        for name, value in names
        if (getattr(value, "__module__", None) or "").startswith("levels.support.")
    ]
    modules = [(name, value) for name, value in names if isinstance(value, ModuleType)]
    return found + [(name, value) for name, value in modules if not value.__name__.startswith("levels")]

"""An exercise can be opened alone: its cell runs in a new kernel, on the built levels, with nothing before it."""

import ast
import builtins
import importlib
import sys
from pathlib import Path
from types import ModuleType

from course.builder.session import WATCHED, find_home

LEVELS = "hardware", "kernels", "low_level", "mid_level", "high_level"


def begin(key):
    """Give the notebook what the exercise stands on, if its cells have not: the names of the built levels, and what
    levels_more adds to them, unless this is one of the five notebooks, which show the core alone.

    But never half of them. Once one of the five has a function or a class of its level, all must be its own, and what
    came from the built one is taken back: the tape of the one hears nothing of the other's tensors.
    """
    find_home()
    notebook = sys._getframe(1).f_globals
    *beneath, level = LEVELS[: int(key[:2])]
    names = public(level)
    homes = {name: getattr(notebook.get(name), "__module__", None) or "" for name in names}
    branches_off = any(name.startswith("more/") for name in WATCHED)  # such a notebook has no level of its own
    if notebook.get("__name__") in homes.values() and not branches_off:
        for name in names:
            if homes[name].startswith((f"levels.{level}.", "levels_more.")):
                del notebook[name]
    elif names:
        # Else the exercise stands alone, or in a notebook that imports levels_more.
        of_the_core = WATCHED and not branches_off
        for each in (level, *reversed(beneath)):
            module = importlib.import_module(f"levels.{each}" if of_the_core else f"levels_more.{each}")
            for name in public(each) if of_the_core else module.__all__:
                if name not in vars(builtins):
                    notebook.setdefault(name, getattr(module, name))
        for name, library in libraries(level):
            notebook.setdefault(name, library)


def public(level):
    """What a built level hands on, if it is built. Read from its file: to import it would enter rows in tables."""
    import levels

    front = Path(levels.__file__).parent / level / "__init__.py"
    statements = ast.parse(front.read_text(encoding="utf-8")).body if front.exists() else []
    rooms = [each for each in statements if isinstance(each, ast.ImportFrom) and each.level]
    return [alias.name for room in rooms for alias in room.names]


def libraries(level):
    """What the rooms of a level import of others, as ("np", numpy), and of levels.support: as in its notebook."""
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

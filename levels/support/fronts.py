"""The errors for names that a level does not have, and for attributes that `__init__` has not set."""

import dis
import importlib
import inspect
import sys
from pathlib import Path

FILES = sorted(path.stem for path in Path(__file__).parent.glob("[a-z]*.py"))  # of levels.support
ROOMS = {  # of levels_more, with names that a level had in version 1
    "saving": "export export_page from_pretrained load_model load_weights push_to_hub save save_weights",
    "distributed": "DistributedDataParallel World all_gather all_reduce broadcast launched mpiexec time_limit world",
}


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
    """Return the `__getattr__` (PEP 562) of the level `front`. Its error says where a name is, or where more are."""

    def __getattr__(name):
        rooms = [room for room, names in ROOMS.items() if name in names.split()] or [front.partition(".")[2]]
        more = f"levels_more.{rooms[0]}: try `from levels_more.{rooms[0]} import {name}`"
        told = f"{front} has no {name!r}: what the notebooks build is here, and there is more in {more}"
        asking = sys._getframe(1)
        importing = dis.opname[asking.f_code.co_code[asking.f_lasti]] == "IMPORT_FROM"
        for file in FILES if not name.startswith("_") else ():
            if name == file or name in vars(importlib.import_module(f"levels.support.{file}")):
                place = "" if name == file else f".{file}"
                told = f"{name} is no name of {front}: write `from levels.support{place} import {name}`"
        # AttributeError, so that `hasattr` is false; `from … import …` would drop its text
        error = ImportError if importing and not name.startswith("__") else AttributeError
        raise error(told, name=name)

    return __getattr__

"""The errors for names that a level does not have."""

import dis
import importlib
import sys

FILES = "cache", "calls", "checks", "compiled", "locks", "machine", "operators", "storage"  # of levels.support


def absent(front):
    """Return the `__getattr__` (PEP 562) of the level `front`. Its error says where the name is, or where to find more.

    It is an AttributeError, so that `hasattr` is false, but in `from … import …`, which drops its text, an ImportError.
    """

    def __getattr__(name):
        level = front.partition(".")[2]
        told = f"{front} has no {name!r}: what the notebooks build is here, and there is more in levels_more.{level}"
        asking = sys._getframe(1)
        importing = dis.opname[asking.f_code.co_code[asking.f_lasti]] == "IMPORT_FROM"
        for file in FILES if not name.startswith("_") else ():
            if name in vars(importlib.import_module(f"levels.support.{file}")):
                told = f"{name} is no name of {front}: write `from levels.support.{file} import {name}`"
        if importing and not name.startswith("__"):
            raise ImportError(told, name=name)
        raise AttributeError(told, name=name)

    return __getattr__

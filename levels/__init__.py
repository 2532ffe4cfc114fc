"""Five levels, one answer: a small deep-learning framework, from machine instructions up to `model.fit`.

These levels are the core, and stand alone. `levels_more`, where it is there, adds to them: rows to their tables, and names
to their fronts. It is asked for what is missing, so nothing waits for it before.
"""

import functools
import importlib.util
import os
import sys
from inspect import ismodule


@functools.cache
def more(what, name):
    """The module of `levels_more` that has entered its row `name` in the table `what`, or that adds this name to a front.

    None where there is no such row, no `levels_more`, or the variable LEVELS_CORE in the environment.
    """
    if os.environ.get("LEVELS_CORE") or not importlib.util.find_spec("levels_more"):
        return None
    return importlib.import_module("levels_more").enter(what, name)


def plugged(front):
    """A module's `__getattr__` and `__dir__` (PEP 562), and its `__all__`: what it lacks is looked up in `levels_more`."""
    names = sorted(n for n, x in vars(sys.modules[front]).items() if n[0] != "_" and n != "plugged" and not ismodule(x))

    def find(name):
        module = None if name.startswith("_") else more(front, name)
        if module is None:
            raise AttributeError(f"module {front!r} has no attribute {name!r}", name=name)
        return getattr(module, name, module)  # a name of the module, or the module itself: mid_level.metrics

    return find, lambda: names, names

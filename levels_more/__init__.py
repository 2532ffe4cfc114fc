"""What grows on the five levels: more ops, layers, devices, back ends. Written by hand, and plugged in by need.

`levels` asks `enter` for what it lacks. Importing one of these modules enters rows into the tables of the core; nothing is
imported before somebody asks for it, so `import levels.high_level` waits for none of them.
"""

import functools
import importlib

# what -> module -> its rows. `what` is a table of the core, or the front or room of `levels` that the names are added to.
CONTENTS = {}


@functools.cache
def _modules(what):
    """{row: the name of the module that enters it}"""
    return {name: module for module, names in CONTENTS.get(what, {}).items() for name in (module, *names.split())}


def enter(what, name):
    """The module that has entered the row `name` in the table `what`, or that adds this name to a front; else None."""
    module = _modules(what).get(name)
    return module and importlib.import_module(f"levels_more.{module}")

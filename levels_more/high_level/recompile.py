"""A model's function that stays compiled, and is traced again if something that its trace read has changed.

A user's Python code may read anything, so parts, lists, classes and functions are searched, too. A value of a kind that
is not handled here always counts as changed, so that the step is traced again.
"""

import functools
import math
import threading
from itertools import chain, filterfalse
from operator import attrgetter, is_
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType

import numpy as np

from levels.low_level import Function, Module, Variable
from levels.mid_level import Reconstructible
from levels_more.compiler.dependencies import TEXTS, changed, of_levels, read_outside, same

# attributes that may change without any effect on a trace
IGNORED_ATTRIBUTES = {
    "history",
    "input_names",
    "input_specs",
    "output_shape",
    "place",
    "predictor",
    "programs",
    "recreate",
    "row_weights",
    "rows_weighed",
    "steps_per_call",
    "stop_training",
    "watch",
}
_OWN = [*map(attrgetter, ("__code__", "__defaults__", "__kwdefaults__"))]
_trained = attrgetter("trainable")
_FIXED = "builtins", "abc"  # modules whose classes do not change


def _entries_unchanged(place):
    """Whether dicts have the same names, in the same order, apart from ignored ones, and the same value for each."""
    dicts, ignored, finds, names, row, values = place
    if [*filterfalse(ignored.__contains__, chain.from_iterable(dicts))] != row:
        return False
    try:
        now = [*chain.from_iterable(map(map, finds, names))]
    except KeyError:  # a name has moved to another dict
        return False
    return all(map(is_, now, values)) or all(map(same, now, values))


def _entries(dicts, ignored=frozenset()):
    """These dicts, apart from ignored names, as a place for `changed`."""
    names = [[*filterfalse(ignored.__contains__, entries)] for entries in dicts]
    finds = [entries.__getitem__ for entries in dicts]
    values = [*chain.from_iterable(map(map, finds, names))]
    return _entries_unchanged, (dicts, ignored, finds, names, [*chain.from_iterable(names)], values), True


def _members_unchanged(place):
    """Whether classes have the same names of members, in the same order, and the same member for each."""
    members, held, names, values = place
    return [*chain.from_iterable(members)] == names and all(map(is_, chain.from_iterable(held), values))


def _members(kind):
    """The parts of a class to be searched: its base classes, and the members of a user's class."""
    within = [*kind.__bases__]
    for name, part in () if of_levels(kind) else vars(kind).items():
        if not name.startswith("__") or name == "__call__":
            within += (part.fget, part.fset) if isinstance(part, property) else [getattr(part, "__func__", part)]
    return within


def _within(value, parts, dicts, ignored):
    """(the places in a value, the values to search next). None for a value of a kind that is not handled.

    Appends to `parts` the attributes of a part, and to `dicts` a dict: these are compared together, by names.
    """
    places = []
    if isinstance(value, Variable):
        return [(_trained, value, value.trainable)], []
    if isinstance(value, (Module, Reconstructible)):
        parts.append(vars(value))
        return [(type, value, type(value))], [
            type(value),
            *(x for k, x in dict(vars(value)).items() if k not in ignored),
        ]
    if isinstance(value, list):
        places = [(len, value, len(value)), *((value.__getitem__, k, part) for k, part in enumerate(value))]
    elif isinstance(value, dict):
        dicts.append(value)
        return [], [*value.values()]
    elif isinstance(value, FunctionType) and not of_levels(value) and "random" not in value.__code__.co_names:
        places = [(read, value, read(value)) for read in _OWN] + read_outside(value)
    elif isinstance(value, type):
        return [], _members(value) if value.__module__ not in _FIXED else []
    elif isinstance(value, MethodType):
        return [], [value.__self__, value.__func__]
    elif isinstance(value, functools.partial):
        return [], [value.func, value.args, value.keywords]
    elif isinstance(value, tuple):
        return [], value
    elif not _says_all(value):
        return None
    return places, [part for _, _, part in places]


def _says_all(value):
    """Whether a value cannot change: numbers, text, code, `math`, NumPy, built-in functions, and what is of levels."""
    if isinstance(value, (FunctionType, ModuleType)):
        return value in (math, np) or of_levels(value)
    if isinstance(value, BuiltinFunctionType):
        return value.__module__ in ("builtins", "math")
    return type(value) in TEXTS or isinstance(value, (np.generic, np.dtype, CodeType))


def places_of(value, unread=frozenset()):
    """All that a trace may read of a value, as places for `changed`. A kind not handled always counts as changed.

    Attributes named in `unread` are left out if there is only code of levels: a user's code may read them.
    """
    found = []
    parts = []
    dicts = []
    members = []
    waiting = [value]
    met = {}
    first = value
    ignored = IGNORED_ATTRIBUTES | unread
    while waiting:
        value = waiting.pop()
        if id(value) not in met:
            met[id(value)], within = value, _within(value, parts, dicts, ignored)
            if within is None:
                return [(id, value, None)]
            found += within[0]
            waiting += within[1]
            if isinstance(value, type) and value.__module__ not in _FIXED:
                members.append(vars(value))
            if (
                unread
                and isinstance(value, (type, FunctionType))
                and not (of_levels(value) or value.__module__ in _FIXED)
            ):
                return places_of(first)
    held = [each.values() for each in members]  # views, which follow changes of the classes
    place = members, held, [*chain.from_iterable(members)], [*chain.from_iterable(held)]
    named = [_entries(parts, ignored), *([_entries(dicts)] if dicts else ())]
    return [(_members_unchanged, place, True), *named, *found]


class _GraphTransform(threading.local):
    change = None  # applied to each traced graph: a function (graph, number of rows of a batch) -> another graph


GRAPH_TRANSFORM = _GraphTransform()  # `distributed` sets it, to split graphs over several ranks


class CachedFunction(Function):
    """A function that stays compiled: `current` checks whether what its trace read of a model has changed since.

    `unread`: names of attributes that the code of levels does not read in it.
    """

    def __init__(self, model, python, unread=frozenset()):

        def noted(*rows):
            result = python(*rows)
            self.places = self.places or places_of(model, unread)
            return result

        super().__init__(noted)
        self.places = []

    def program(self, args, key, over):
        return super().program(args, (key, GRAPH_TRANSFORM.change), over)

    def traced(self, signature, over):
        graph, result = super().traced(signature, over)
        return GRAPH_TRANSFORM.change(graph, signature[0].shape[0]) if GRAPH_TRANSFORM.change else graph, result

    def current(self):
        """This function. If something has changed, its next call traces it again."""
        if changed(self.places):
            self.renew()
            self.places = []
        return self

    def __reduce__(self):
        return type(None), ()  # a copy of the model gets None here, and makes its own

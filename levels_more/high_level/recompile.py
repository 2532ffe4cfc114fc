"""A model's function that stays compiled, and is traced anew where something that its trace has read has changed.

Python of the reader may read anything. So parts, lists, classes and functions are looked into, too. Whatever is not
understood here counts as changed, and the step is traced anew.
"""

import functools
import math
import threading
from itertools import chain, filterfalse
from operator import attrgetter, is_
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType

import numpy as np

from levels.low_level import Function, Module, Variable
from levels.mid_level import Made
from levels_more.compiler.dependencies import TEXTS, changed, of_levels, read_outside, same

# attributes that change while what a trace reads does not
IGNORED_ATTRIBUTES = {
    "again",
    "history",
    "input_names",
    "input_specs",
    "output_shape",
    "place",
    "predictor",
    "programs",
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
    """Whether dicts have these names, in this order, apart from ignored ones, and the same under each."""
    dicts, ignored, finds, names, row, values = place
    if [*filterfalse(ignored.__contains__, chain.from_iterable(dicts))] != row:
        return False
    try:
        now = [*chain.from_iterable(map(map, finds, names))]
    except KeyError:  # a name stands in another dict now
        return False
    return all(map(is_, now, values)) or all(map(same, now, values))


def _entries(dicts, ignored=frozenset()):
    """The place of these dicts."""
    names = [[*filterfalse(ignored.__contains__, entries)] for entries in dicts]
    finds = [entries.__getitem__ for entries in dicts]
    values = [*chain.from_iterable(map(map, finds, names))]
    return _entries_unchanged, (dicts, ignored, finds, names, [*chain.from_iterable(names)], values), True


def _members_unchanged(place):
    """Whether classes have these names, all in one row, and the same under each."""
    members, held, names, values = place
    return [*chain.from_iterable(members)] == names and all(map(is_, chain.from_iterable(held), values))


def _members(kind):
    """What to look into in a class: those that it is made from, and methods of the reader's."""
    within = [*kind.__bases__]
    for name, part in () if of_levels(kind) else vars(kind).items():
        if not name.startswith("__") or name == "__call__":
            within += (part.fget, part.fset) if isinstance(part, property) else [getattr(part, "__func__", part)]
    return within


def _within(value, parts, dicts, ignored):
    """(the places in a value, the values to look into next). None for a value that is not understood.

    What stands by names is noted: attributes of a part in `parts`, entries in `dicts`.
    """
    places = []
    if isinstance(value, Variable):
        return [(_trained, value, value.trainable)], []
    if isinstance(value, (Module, Made)):
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
    """Whether a value stays as it is: a number, a text, and what is ours or Python's."""
    if isinstance(value, (FunctionType, ModuleType)):
        return value in (math, np) or of_levels(value)
    if isinstance(value, BuiltinFunctionType):
        return value.__module__ in ("builtins", "math")
    return type(value) in TEXTS or isinstance(value, (np.generic, np.dtype, CodeType))


def places_of(value, unread=frozenset()):
    """All that a trace may read of a value, as places for `changed`. What is not understood always counts as changed.

    Attributes of these names are left out, where all that is met is ours: Python of the reader may read them.
    """
    found, parts, dicts, members, waiting, met = [], [], [], [], [value], {}
    first, ignored = value, IGNORED_ATTRIBUTES | unread
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
    held = [each.values() for each in members]  # which follow what changes there
    place = members, held, [*chain.from_iterable(members)], [*chain.from_iterable(held)]
    named = [_entries(parts, ignored), *([_entries(dicts)] if dicts else ())]
    return [(_members_unchanged, place, True), *named, *found]


class _GraphTransform(threading.local):
    change = None  # what is done to each graph that is traced: a function (graph, rows of a batch) -> another graph


GRAPH_TRANSFORM = _GraphTransform()  # `distributed.partition` cuts graphs for several ranks there


class CachedFunction(Function):
    """A function that stays compiled: `current` looks whether what its trace has read of a model has changed since.

    `unread`: names of attributes that Python of ours does not read in it.
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
        """This function, which is traced anew in its next call if something has changed."""
        if changed(self.places):
            self.renew()
            self.places = []
        return self

    def __reduce__(self):
        return type(None), ()  # a copy of the model makes its own

"""A model's function that stays compiled, and is traced again if something that its trace read has changed.

A user's Python code may read anything, so parts, lists, classes and functions are searched, too. A value of a kind that
is not handled here always counts as changed, so that the step is traced again.
"""

import functools
import hashlib
import math
import threading
from itertools import chain, filterfalse
from operator import attrgetter, is_
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType

import numpy as np

from levels.hardware import Spec
from levels.low_level import Module, Tensor, Variable
from levels.support.parts import Reconstructible
from levels_more.compiler.dependencies import TEXTS, changed, of_levels, read_outside, same
from levels_more.compiler.guards import Function
from levels_more.mid_level.notes import NOTES

_OWN = [*map(attrgetter, ("__code__", "__defaults__", "__kwdefaults__"))]
_trained = attrgetter("trainable")
_NOTHING = frozenset()
_LARGEST = 2**20  # bytes of an array that is read before each run; a larger one always counts as changed
_FIXED = "builtins", "abc"  # modules whose classes do not change


def _entries_unchanged(groups):
    """Whether dicts have the same names, in the same order, apart from ignored ones, and the same value for each."""
    for dicts, ignored, finds, names, row, values in groups:
        if [*filterfalse(ignored.__contains__, chain.from_iterable(dicts))] != row:
            return False
        try:
            now = [*chain.from_iterable(map(map, finds, names))]
        except KeyError:  # a name has moved to another dict
            return False
        if not (all(map(is_, now, values)) or all(map(same, now, values))):
            return False
    return True


def _entries(dicts, ignored):
    """These dicts, apart from ignored names, as a group for `_entries_unchanged`."""
    names = [[*filterfalse(ignored.__contains__, entries)] for entries in dicts]
    finds = [entries.__getitem__ for entries in dicts]
    values = [*chain.from_iterable(map(map, finds, names))]
    return dicts, ignored, finds, names, [*chain.from_iterable(names)], values


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


def _searched(part, ignored):
    """The values in a part's attributes that are searched. (What a part was made with, `recreate`, has been read.)"""
    for name, value in [*vars(part).items()]:
        if name not in ignored and not (name == "recreate" and type(value) is functools.partial):
            yield value


def _within(value, parts, dicts, unread):
    """(the places in a value, the values to search next). None for a value of a kind that is not handled.

    Appends to `parts` {names that are ignored: [the attributes of a part, …]}, and to `dicts` a dict: these are
    compared together, by names.
    """
    places = []
    if isinstance(value, Variable):
        return [(_trained, value, value.trainable)], []
    if isinstance(value, (Module, Reconstructible)):
        ignored = getattr(type(value), "untraced", _NOTHING) | unread | {NOTES}
        parts.setdefault(ignored, []).append(vars(value))
        return [(type, value, type(value))], [type(value), *_searched(value, ignored)]
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
    elif type(value) is np.ndarray and value.dtype.kind in "biufcSU" and value.nbytes <= _LARGEST:
        return [(_digest, value, _digest(value))], []
    elif _layout(type(value)) == _layout(_Plain) and not of_levels(type(value)):
        parts.setdefault(_NOTHING, []).append(vars(value))
        return [(type, value, type(value))], [type(value), *vars(value).values()]
    elif not _says_all(value):
        return None
    return places, [part for _, _, part in places]


class _Plain:
    """An object of a class with this layout has no numbers but those in its attributes."""


_layout = attrgetter("__basicsize__", "__dictoffset__", "__weakrefoffset__")


def _digest(array):
    """A text that is another one if the array's numbers, its shape or its dtype change."""
    return f"{array.dtype} {array.shape} {hashlib.blake2b(np.ascontiguousarray(array)).hexdigest()}"


def _says_all(value):
    """Whether a value cannot change: numbers, text, code, tensors, `math`, NumPy, built-ins, what is of levels."""
    if isinstance(value, (FunctionType, ModuleType)):
        return value in (math, np) or of_levels(value)
    if isinstance(value, BuiltinFunctionType):
        return value.__module__ in ("builtins", "math")
    return type(value) in TEXTS or isinstance(value, (np.generic, np.dtype, CodeType, Spec, Tensor))


def places_of(value, unread=frozenset()):
    """All that a trace may read of a value, as places for `changed`. A kind not handled always counts as changed.

    Attributes named in `unread` are left out if there is only code of levels: a user's code may read them.
    """
    found = []
    parts = {}
    dicts = []
    members = []
    waiting = [value]
    met = {}
    first = value
    while waiting:
        value = waiting.pop()
        if id(value) not in met:
            met[id(value)], within = value, _within(value, parts, dicts, unread)
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
    groups = [_entries(each, ignored) for ignored, each in [*parts.items(), (_NOTHING, dicts)]]
    return [(_members_unchanged, place, True), (_entries_unchanged, groups, True), *found]


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

"""A function of a model's that stays compiled, and is traced anew where something that its trace has read has changed.

Python of the reader may read anything. So parts, lists, classes and functions are looked into, too. Whatever is not understood
here counts as changed, and the step is traced anew.
"""

import functools
import math
import threading
from itertools import filterfalse
from operator import attrgetter
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType

import numpy as np

from levels.low_level import Function, Module, Variable
from levels.mid_level import Made
from levels_more.reading import TEXTS, changed, of_levels, read_outside

# attributes that change while what a trace reads does not
PASSING = {
    "again",
    "calls",
    "end",
    "history",
    "input_names",
    "input_specs",
    "output_shape",
    "pace",
    "place",
    "predictor",
    "programs",
    "row_weights",
    "rows_weighed",
    "stop_training",
    "watch",
}
_OWN = [*map(attrgetter, ("__code__", "__defaults__", "__kwdefaults__"))]
_trained = attrgetter("trainable")


def _names_are(place):
    """Whether a dict has these names, in this order, apart from passing ones."""
    entries, names, passing = place
    return [*filterfalse(passing.__contains__, entries)] == names


def _entries(entries, passing=()):
    """The places of a dict: its names, and what stands under each."""
    names = [*filterfalse(passing.__contains__, entries)]
    return [(_names_are, (entries, names, passing), True), *((entries.get, name, entries[name]) for name in names)]


def _members(kind):
    """The places of a class and of those that it is made from, and what to look into there: methods of the reader's."""
    kinds, within = [k for k in kind.__mro__ if k.__module__ not in ("builtins", "abc")], []
    for name, part in [entry for k in kinds if not of_levels(k) for entry in vars(k).items()]:
        if not name.startswith("__") or name == "__call__":
            within += (part.fget, part.fset) if isinstance(part, property) else [getattr(part, "__func__", part)]
    members = [*map(vars, kinds)]
    places = [(one.get, name, part) for one in members for name, part in one.items()]
    return [(len, one, len(one)) for one in members] + places, within


def _within(value):
    """(the places in a value, the values to look into next). None for a value that is not understood."""
    places = []
    if isinstance(value, Variable):
        return [(_trained, value, value.trainable)], []
    if isinstance(value, (Module, Made)):
        places = [(type, value, type(value)), *_entries(vars(value), PASSING)]
    elif isinstance(value, list):
        places = [(len, value, len(value)), *((value.__getitem__, k, part) for k, part in enumerate(value))]
    elif isinstance(value, dict):
        places = _entries(value)
    elif isinstance(value, FunctionType) and not of_levels(value) and "random" not in value.__code__.co_names:
        places = [(read, value, read(value)) for read in _OWN] + read_outside(value)
    elif isinstance(value, type):
        return _members(value)
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


def places_of(value):
    """All that a trace may read of a value, as places for `changed`. What is not understood is a place that always changes."""
    found, waiting, met = [], [value], {}
    while waiting:
        value = waiting.pop()
        if id(value) not in met:
            met[id(value)], within = value, _within(value)
            if within is None:
                return [(id, value, None)]
            found += within[0]
            waiting += within[1]
    return found


class _Way(threading.local):
    change = None  # what is done to each graph that is traced: a function (graph, rows of a batch) -> another graph


WAY = _Way()  # `machines` cuts graphs for several ranks there


class Kept(Function):
    """A function that stays compiled: `current` looks whether what its trace has read of a model has changed since."""

    def __init__(self, model, python):

        def noted(*rows):
            result = python(*rows)
            self.places = self.places or places_of(model)
            return result

        super().__init__(noted)
        self.places = []

    def program(self, args, key, over):
        return super().program(args, (key, WAY.change), over)

    def traced(self, signature, over):
        graph, result = super().traced(signature, over)
        return WAY.change(graph, signature[0].shape[0]) if WAY.change else graph, result

    def current(self):
        """This function, which is traced anew in its next call if something has changed."""
        if changed(self.places):
            self.renew()
            self.places = []
        return self

    def __reduce__(self):
        return type(None), ()  # a copy of the model makes its own

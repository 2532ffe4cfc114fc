"""What the step of a model has read, noted while it is traced. When one of these values changes, its program is stale.

Each read of an attribute of a part, such as a layer, is heard, whatever its name and whoever reads it. What was read is
compared in depth: lists, dicts, small arrays, plain objects, classes, and functions with the globals and closure cells
that they read. A value of a kind that is not handled here always counts as changed, so that the step is traced again.
"""

import functools
import hashlib
import math
import operator
import sys
import threading
import types
from contextlib import contextmanager
from itertools import chain, filterfalse, repeat
from operator import attrgetter, is_

import numpy as np

from levels.hardware import Spec
from levels.low_level import Module, Tensor, Variable
from levels.support.compiled import globals_read
from levels.support.parts import Reconstructible, find_parts

TEXTS = {type(None), bool, int, float, complex, str}  # types whose values are the same if their reprs are
_MISSING = object()  # stands for an attribute or a global that is not there
_LARGEST = 2**20  # bytes of an array that is read before each run; a larger one always counts as changed
_FIXED = "builtins", "abc"  # modules whose classes do not change


def of_levels(value):
    """Whether a class, a function or a module belongs to `levels` or `levels_more`. These do not change."""
    name = value.__name__ if isinstance(value, types.ModuleType) else value.__module__
    return (name or "").partition(".")[0] in ("levels", "levels_more")


def same(now, value):
    """Whether these are one object, or numbers or strings of one type and repr. So 0.0 is not -0.0."""
    return now is value or (type(now) is type(value) and type(now) in TEXTS and repr(now) == repr(value))


def cell_content(cell):
    """The content of a closure cell, or the cell itself while it is empty."""
    try:
        return cell.cell_contents
    except ValueError:
        return cell


_ALL, _INSIDE = object(), object()  # in place of a name: all attributes; the parts and variables in them
# modules that read `__dict__`, and what they look for; no trace depends on the notes
_READ_DICTS = {
    "levels.support.parts": _INSIDE,
    "levels_more.high_level.model": _INSIDE,
    "levels_more.mid_level.notes": None,
    __name__: None,
}
_OF_FIT = frozenset(["history", "stop_training"])  # names that a first training adds to a model: they hold no part


class _Traces(threading.local):
    """The reads of the innermost trace of this thread, [(part, name), …], and how many traces run in all threads."""

    heard = None
    running = []
    lock = threading.Lock()


_TRACES = _Traces()


def _hear(part, name):
    """The `__getattribute__` of all parts while a trace is running."""
    heard = _TRACES.heard
    if heard is not None and name != "__dict__":
        heard.append((part, name))
    elif heard is not None:
        heard.append((part, _READ_DICTS.get(sys._getframe(1).f_globals.get("__name__"), _ALL)))
    return super(Reconstructible, part).__getattribute__(name)


@contextmanager
def hearing():
    """Inside this `with` block this thread's reads of parts' attributes go to the list that it yields: (part, name).

    It may be opened inside another one, which then hears the same reads, and in several threads at once. Only while one
    is open do parts hear reads, because each read takes longer then. (The class changes twice for it. From version 3.13
    on, CPython stops to cache the look-ups of a class after 1,000 changes; they take longer then, and stay right.)
    """
    outer, heard = _TRACES.heard, []
    with _TRACES.lock:
        _TRACES.running.append(heard)
        if len(_TRACES.running) == 1:
            Reconstructible.__getattribute__ = _hear
    _TRACES.heard = heard
    try:
        yield heard
    finally:
        _TRACES.heard = outer
        with _TRACES.lock:
            _TRACES.running.pop()
            if not _TRACES.running:
                del Reconstructible.__getattribute__
        if outer is not None:
            outer += heard


class _Plain:
    """An object of a class with this layout has no numbers but those in its attributes."""


_layout = attrgetter("__basicsize__", "__dictoffset__", "__weakrefoffset__")
_trained = attrgetter("trainable")
_OWN = [*map(attrgetter, ("__code__", "__defaults__", "__kwdefaults__"))]


def _digest(array):
    """A text that is another one if the array's numbers, its shape or its dtype change."""
    return f"{array.dtype} {array.shape} {hashlib.blake2b(np.ascontiguousarray(array)).hexdigest()}"


def _cannot_change(value):
    """Whether a value stays the same: numbers, text, code, tensors, `math`, NumPy, built-ins, what is of levels."""
    if isinstance(value, (types.FunctionType, types.ModuleType)):
        return value in (math, np) or of_levels(value)
    if isinstance(value, types.BuiltinFunctionType):
        return value.__module__ in ("builtins", "math")
    if of_levels(type(value)) and hasattr(type(value), "untraced"):  # what the framework notes about a part
        return True
    fixed = np.generic, np.dtype, types.CodeType, Spec, Tensor, Reconstructible  # the reads of a part were heard
    return type(value) in TEXTS or isinstance(value, fixed)


def _holds_parts(value):
    """Whether a value is a part or a variable, or a list, a tuple or a dict with one in it."""
    if isinstance(value, (list, tuple, dict)):
        return bool(find_parts(value, Module, (Variable, Module)))
    return isinstance(value, (Variable, Module))


class Reads:
    """What a trace has read: attributes [(part, name), …] that were heard, and all that their values depend on."""

    def __init__(self, heard):
        self.known = True  # whether all these values can be compared
        self.places = []  # (a dict, a name in it)
        self.members = []  # (a class, the name of a member)
        self.calls = []  # (a function, an argument of it)
        self.tables = []  # dicts, and dicts of classes, that are compared as a whole
        self.holders = []  # dicts of which the names are compared: of parts that were searched for variables
        parts = {id(part): part for part, _ in heard}
        names = {(id(part), name): (vars(part), name) for part, name in heard if name is not None}
        self.calls += [(type, part) for part in parts.values()]
        waiting = [*{type(part): None for part in parts.values()}]
        self.members += {(kind, "__call__"): None for kind in waiting}
        self.members += {(type(part), name): None for part, name in heard if type(name) is str and name[:2] != "__"}
        for place in names.values():
            waiting += self.attributes(*place)
        met = {}
        while waiting and self.known:
            value = waiting.pop()
            if id(value) not in met:
                met[id(value)] = value
                waiting += self.within(value)
        self.places = [*zip(*self.places, strict=True)] or ((), ())
        self.members = [each for each in self.members if getattr(*each, None) is getattr(*each, None)]  # no new object
        self.members = [*zip(*self.members, strict=True)] or ((), ())
        self.calls = [*zip(*self.calls, strict=True)] or ((), ())
        self.values = self.now()

    def attributes(self, values, name):
        """Note a name in the dict of a part: with _ALL each of them, with _INSIDE those of attributes that hold parts.

        Returns their values, which are searched next.
        """
        if name is _ALL:
            self.tables.append(values)
            return [*values.values()]
        names = [name]
        if name is _INSIDE:
            self.holders.append(values)
            names = [name for name, value in values.items() if _holds_parts(value)]
        self.places += [(values, name) for name in names]
        return [values.get(name) for name in names]

    def within(self, value):
        """Note what a value consists of. Returns the values inside, which are searched next."""
        if isinstance(value, Variable):
            self.calls.append((_trained, value))
        elif isinstance(value, list):
            self.calls += [(len, value), *((value.__getitem__, k) for k in range(len(value)))]
            return [*value]
        elif isinstance(value, dict):
            self.tables.append(value)
            return [*value.values()]
        elif isinstance(value, tuple):
            return value
        elif isinstance(value, type):
            return self.within_class(value)
        elif isinstance(value, types.FunctionType) and not of_levels(value):
            return self.within_function(value)
        elif isinstance(value, types.MethodType):
            return [value.__self__, value.__func__]
        elif isinstance(value, functools.partial):
            return [value.func, value.args, value.keywords]
        elif type(value) is np.ndarray and value.dtype.kind in "biufcSU" and value.nbytes <= _LARGEST:
            self.calls.append((_digest, value))
        elif not _cannot_change(value):
            self.known = _layout(type(value)) == _layout(_Plain) and not of_levels(type(value))
            self.calls.append((type, value))
            return [type(value), *self.attributes(vars(value), _ALL)] if self.known else []
        return []

    def within_class(self, kind):
        """As `within`, for a class: all members of a reader's class. (Of ours, those that were read are compared.)"""
        if of_levels(kind) or kind.__module__ in _FIXED:
            return []
        self.tables.append(vars(kind))
        found = [*kind.__bases__]
        for name, part in vars(kind).items():
            if not name.startswith("__") or name == "__call__":
                found += (part.fget, part.fset) if isinstance(part, property) else [getattr(part, "__func__", part)]
        return found

    def within_function(self, function):
        """As `within`, for a reader's function: its code, and what it reads. Random numbers cannot be compared."""
        self.known = "random" not in function.__code__.co_names
        calls = [(read, function) for read in _OWN] + [(cell_content, cell) for cell in function.__closure__ or ()]
        names = sorted(globals_read(function.__code__) & function.__globals__.keys())
        self.calls += calls
        self.places += [(function.__globals__, name) for name in names]
        return [read(given) for read, given in calls] + [function.__globals__[name] for name in names]

    def now(self):
        """All values at this moment, and the names in the dicts that are compared as a whole."""
        values = [*map(operator.call, *self.calls), *map(dict.get, *self.places, repeat(_MISSING))]
        values += map(getattr, *self.members, repeat(_MISSING))
        for table in self.tables:
            values += table.values()
        names = filterfalse(_OF_FIT.__contains__, chain.from_iterable(self.holders))
        return [*values, *chain.from_iterable(self.tables), *names]

    def changed(self):
        """Whether one of these values is another one by now. True if one cannot be compared."""
        if not self.known:
            return True
        try:
            now = self.now()
        except LookupError:  # a list is shorter
            return True
        if len(now) != len(self.values):
            return True
        return not (all(map(is_, now, self.values)) or all(map(same, now, self.values)))

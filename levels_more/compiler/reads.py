"""What compiled Python has read, noted while it is traced. When one of these values changes, its program is stale.

The step of a model is watched closely, by `Reads`. While it is traced, `hearing` notes each read of an attribute of a
part, such as a layer, whatever its name and whoever reads it. What was read is compared in depth: lists, dicts, small
arrays, plain objects, classes, and functions with the globals and closure cells that they read. A value of a kind that
is not handled here always counts as changed.

A plain `function` may be called for each step, so it is watched by names only: its globals and closure cells, and those
of the functions among these. A value that is reached in another way is read once, while the function is traced. If it
changes, make it a Variable or an argument, or call `renew`. (`tf.function` treats all values of Python in this way;
`torch.compile` watches attributes, lists and dicts, too.)
"""

import functools
import hashlib
import math
import operator
import sys
import threading
import types
import warnings
from contextlib import contextmanager
from itertools import chain, repeat
from operator import attrgetter, is_

import numpy as np

from levels import low_level
from levels.hardware import Spec
from levels.kernels import KERNELS
from levels.low_level import Module, Tensor, Variable
from levels.support.compiled import SUBSTITUTIONS, globals_read
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


# Names: the globals and closure cells of functions.


def _cell_content(cell):
    """The content of a closure cell, or the cell itself while it is empty."""
    try:
        return cell.cell_contents
    except ValueError:
        return cell


def _read_outside(function):
    """[(read, key, value), …] for the globals and the closure cells that a Python function reads.

    read(key) returns the current value.
    """
    scope = function.__globals__
    cells = function.__closure__ or ()
    names = sorted(globals_read(function.__code__) & scope.keys())
    return [(scope.get, name, scope[name]) for name in names] + [(_cell_content, c, _cell_content(c)) for c in cells]


def _read_by(functions, inside):
    """[(read, key, value), …] for all that these functions read, and what the functions among these values read.

    inside(value) returns the Python function in a value, which is searched too, or None. Values that functions of
    `levels` and `levels_more` read are left out, since they do not change.
    """
    found = []
    waiting = [*functions]
    met = set()
    while waiting:
        function = waiting.pop()
        if function not in met:
            met.add(function)
            places = _read_outside(function)
            found += [] if of_levels(function) else places
            waiting += filter(None, (inside(value) for _, _, value in places))
    return found


def _changed(places):
    """Whether one of these values has changed."""
    for read, key, value in places:  # a plain loop: it runs before every call
        now = read(key)
        if now is not value and not same(now, value):
            return True
    return False


def _called(value):
    """The Python function in a value, unless kernels call a replacement of it (SUBSTITUTIONS); else None."""
    function = getattr(value, "py_func", value)
    return function if isinstance(function, types.FunctionType) and function not in SUBSTITUTIONS else None


def watch(made, function):
    """Make the plan recompile before a run if a value that its kernel reads has changed. Returns the plan."""
    lower = made.lower

    def lower_watched():
        places, run = _read_by([function], _called), lower()

        def look_and_run(*arrays):
            if _changed(places):
                made.compiled = lower_watched()
                return made.compiled(*arrays)
            run(*arrays)

        return look_and_run if places else run

    made.lower = lower_watched
    return made


def _unwrapped(value):
    """Return the Python function inside a method, a partial call or a `Function`; any other value as it is."""
    while wrapper := _WRAPPERS.get(type(value)):
        value = getattr(value, wrapper)
    return value


def _of_the_reader(value):
    """Return the Python function in a value if it is not defined in `levels` or `levels_more`; else None."""
    function = _unwrapped(value)
    return function if isinstance(function, types.FunctionType) and not of_levels(function) else None


class Function(low_level.Function):
    """The core's Function. It is traced anew after a value that it, or a kernel of its graph, has read was changed."""

    def renew(self):
        super().renew()
        self.stale = []  # functions without arguments: is a program out of date?

    def program(self, args, key, over):
        if any(map(operator.call, self.stale)):
            self.programs = {}
            self.stale = []
        return self.programs.get((key, over, KERNELS.version)) or super().program(args, key, over)

    def compile(self, args, over):
        """As in levels. Warns at each 10th trace."""
        found = super().compile(args, over)
        if self.traces % 10 == 0:
            why = "once for each new shape, dtype or value"
            warnings.warn(f"{self.__name__} was traced {self.traces} times, {why}", stacklevel=6)
        return found

    def traced(self, signature, over):
        graph, result = super().traced(signature, over)
        kernels = [_of_the_reader(KERNELS[node.op, node.spec.device.kind]) for node in graph.ops]
        read = _read_by([_unwrapped(self.python), *filter(None, kernels)], _of_the_reader)
        self.stale.append(functools.partial(_changed, read))
        return graph, result


_WRAPPERS = {
    types.MethodType: "__func__",
    functools.partial: "func",
    low_level.Function: "python",
    Function: "python",
}
function = Function


# Attributes: what is heard while the step of a model is traced.


class _Hearing(threading.local):
    reads = None  # [(part, name), …]: the attributes that the innermost trace of this thread has read so far


_NOW = _Hearing()
_PARTS = Reconstructible, Module  # all parts of a model are of one of these classes
_ALL, _INSIDE = object(), object()  # in place of a name: all attributes; the parts and variables in them
# modules that read `__dict__` -> what they look for there: in the notes there is nothing that a trace depends on
_READ_DICTS = {
    "levels.support.parts": _INSIDE,
    "levels_more.high_level.model": _INSIDE,
    "levels_more.mid_level.notes": None,
    __name__: None,  # one of the two classes asks the other, which has heard it
}


def _hearer(kind):
    """The `__getattribute__` of a class of parts while a trace is running."""

    def __getattribute__(part, name):
        if _NOW.reads is not None:
            reader = sys._getframe(1).f_globals.get("__name__") if name == "__dict__" else None
            _NOW.reads.append((part, name if reader is None else _READ_DICTS.get(reader, _ALL)))
        return super(kind, part).__getattribute__(name)

    return __getattribute__


class _Hearers:
    """How many traces are running, in all threads. As long as there is one, parts note reads of their attributes."""

    lock = threading.Lock()
    running = 0

    def count(self, more):
        with self.lock:
            before = self.running
            self.running += more
            for kind in _PARTS if not (before and self.running) else ():
                if more > 0:
                    kind.__getattribute__ = _hearer(kind)
                else:
                    del kind.__getattribute__


_HEARERS = _Hearers()


@contextmanager
def hearing():
    """Inside this `with` block this thread's reads of parts' attributes go to the list that it yields: (part, name).

    It may be opened inside another one, which then hears the same reads, and in several threads at once.
    """
    outer = _NOW.reads
    _NOW.reads = reads = []
    _HEARERS.count(1)
    try:
        yield reads
    finally:
        _HEARERS.count(-1)
        _NOW.reads = outer
        if outer is not None:
            outer += reads


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
    fixed = np.generic, np.dtype, types.CodeType, Spec, Tensor, *_PARTS  # reads of a part were heard
    return type(value) in TEXTS or isinstance(value, fixed)


def _members(kind):
    """The parts of a class to be searched: its base classes, and the members of a reader's class."""
    within = [*kind.__bases__]
    for name, part in () if of_levels(kind) else vars(kind).items():
        if not name.startswith("__") or name == "__call__":
            within += (part.fget, part.fset) if isinstance(part, property) else [getattr(part, "__func__", part)]
    return within


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
        self.tables = []  # dicts, and dicts of classes, that are compared as a whole
        self.holders = []  # dicts of which only the names are compared: those of parts that were searched for variables
        self.calls = []  # (a function, an argument of it)
        self.met = {}  # {id: a value that was searched}
        parts = {id(part): part for part, _ in heard}
        waiting = [*map(type, parts.values())]
        for part in parts.values():
            self.calls.append((type, part))
        for part, name in {(id(part), name): (part, name) for part, name in heard if name is not None}.values():
            waiting += self.attributes(vars(part), name)
        while waiting and self.known:
            value = waiting.pop()
            if id(value) not in self.met:
                self.met[id(value)] = value
                waiting += self.within(value)
        self.places = [*zip(*self.places, strict=True)] or ((), ())
        self.calls = [*zip(*self.calls, strict=True)] or ((), ())
        self.values = self.now()

    def attributes(self, values, name):
        """Note an attribute in the dict of a part: with _ALL each of them, with _INSIDE those that hold parts.

        Returns their values.
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
        """Note what a value consists of. Returns the values to be searched next."""
        if isinstance(value, Variable):
            self.calls.append((_trained, value))
        elif isinstance(value, list):
            self.calls.append((len, value))
            self.calls += [(value.__getitem__, k) for k in range(len(value))]
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
            return self.within_object(value)
        return []

    def within_class(self, kind):
        """As `within`, for a class. Its members are compared, and those of a reader's class are searched."""
        if kind.__module__ in _FIXED:
            return []
        if kind not in _PARTS:  # these have one member more while a trace is running
            self.tables.append(vars(kind))
        return _members(kind)

    def within_function(self, function):
        """As `within`, for a reader's function: its code, and what it reads. Random numbers cannot be compared."""
        self.known = "random" not in function.__code__.co_names
        own = [(read, function) for read in _OWN] + [(_cell_content, cell) for cell in function.__closure__ or ()]
        self.calls += own
        scope = function.__globals__
        names = sorted(globals_read(function.__code__) & scope.keys())
        self.places += [(scope, name) for name in names]
        return [read(given) for read, given in own] + [scope[name] for name in names]

    def within_object(self, value):
        """As `within`, for any other object. Only one without numbers outside its attributes can be compared."""
        self.known = _layout(type(value)) == _layout(_Plain) and not of_levels(type(value))
        if not self.known:
            return []
        self.calls.append((type, value))
        self.tables.append(vars(value))
        return [type(value), *vars(value).values()]

    def now(self):
        """All values at this moment, and the names in the dicts that are compared as a whole."""
        values = [*map(operator.call, *self.calls), *map(dict.get, *self.places, repeat(_MISSING))]
        for table in self.tables:
            values += table.values()
        return [*values, *chain.from_iterable(self.tables), *chain.from_iterable(self.holders)]

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

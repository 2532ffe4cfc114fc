"""Compiled programs are kept on disk under a hash of everything they were made from."""

# Built from notebooks/02_kernels.ipynb: edit there, then run its last cell.

import dis
import hashlib
import os
import types
from pathlib import Path

import llvmlite
import numba
import numpy as np
from numba import njit
from numba.core.caching import _CacheLocator

OVERLOADS = {}  # a Python function -> what stands for it inside kernels


def globals_read(code):
    """The names of the globals that a piece of code, or a function inside it, reads."""
    inner = [c for c in code.co_consts if isinstance(c, types.CodeType)]
    own = {i.argval for i in dis.get_instructions(code) if i.opname == "LOAD_GLOBAL"}
    return own.union(*map(globals_read, inner))


def described(value, seen=()):
    """A text that differs whenever compiled code could. Raises TypeError for what it cannot describe."""
    if value in seen:
        return "again"
    if isinstance(value, numba.core.dispatcher.Dispatcher):
        return described(value.py_func, seen)
    if isinstance(value, types.FunctionType):
        if value in OVERLOADS:
            return described(OVERLOADS[value], (*seen, value))
        inside, code = (*seen, value), value.__code__
        names = sorted(globals_read(code))
        scope = [(n, value.__globals__[n]) for n in names if n in value.__globals__]
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        where = value.__globals__["__name__"]  # numba imports that module again when it loads the program
        options = value.__defaults__, vars(value).get("fastmath")
        return f"{where}{described(code, inside)}{described([scope, cells], inside)}{options}"
    if isinstance(value, types.CodeType):
        return f"{value.co_code}{value.co_names}{value.co_varnames}{described(list(value.co_consts), seen)}"
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__}({', '.join(described(v, seen) for v in value)})"
    if isinstance(value, dict):
        return f"dict({described(list(value.items()), seen)})"
    if isinstance(
        value,
        (bool, int, float, complex, str, bytes, np.generic, np.dtype, type, types.BuiltinFunctionType, type(None)),
    ):
        return f"{type(value).__name__} {value!r}"
    if isinstance(value, numba.extending._Intrinsic):  # a function that writes instructions itself
        return described(value._defn, seen)
    if isinstance(value, types.ModuleType) and value.__name__.split(".")[0] in ("math", "numpy", "numba", "llvmlite"):
        return value.__name__
    raise TypeError(f"a kernel depends on {value!r}, which cannot be hashed")


def watched(function, seen=()):
    """((scope, name, value), …): the globals that a kernel was compiled from, those of what it calls first."""
    found = ()
    for name in sorted(globals_read(function.__code__) & function.__globals__.keys()):
        value = function.__globals__[name]
        inner = getattr(value, "py_func", None)
        if inner is not None and inner not in seen:
            found += watched(inner, (*seen, function))
        found += ((function.__globals__, name, value),)
    return found


def rebound(names):
    """Whether any of these watched globals has another value now: then what was compiled from them is stale."""
    for scope, name, value in names:  # noqa: SIM110 (any(…) is slower, and this stands in the way of every launch)
        if scope.get(name) is not value:
            return True
    return False


FRESH = {}  # a compiled function -> what described it when it was last known to be fresh


def refresh(function):
    """Compile again what this function calls, where something beneath was changed since it was compiled."""
    for _, _, value in watched(function):
        if isinstance(value, numba.core.dispatcher.Dispatcher):
            try:
                text = described(value.py_func)
            except TypeError:
                text = object()  # equal to nothing: not known, so not fresh
            if value.signatures and FRESH.get(value) != text:
                value.recompile()
            FRESH[value] = text


class HashLocator(_CacheLocator):
    """Tells numba where a function's compiled code lies: in a file named by the hash."""

    def __init__(self, function, file):
        versions = numba.__version__, llvmlite.__version__, np.__version__
        self.hash = hashlib.sha256(f"{versions}{described(function)}".encode()).hexdigest()

    def get_cache_path(self):
        return numba.config.CACHE_DIR or os.path.join(Path.home(), ".cache", "levels")

    def get_source_stamp(self):
        return self.hash

    def get_disambiguator(self):
        return self.hash[:24]

    @classmethod
    def from_function(cls, function, file):
        return cls(function, file)


numba.config.CACHE_LOCATOR_CLASSES = f"{__name__}.HashLocator"


def compile_cpu(function, fastmath=()):
    """Compile a function of numbers and arrays for the CPU; division by zero gives infinity, as in NumPy.

    `fastmath` names what LLVM may do to floats, such as ("reassoc",): sums may be split over lanes.
    """
    refresh(function)
    if fastmath:  # a function of its own, that the hash may tell it from the strict one
        parts = (function.__globals__, function.__name__, function.__defaults__, function.__closure__)
        function = types.FunctionType(function.__code__, *parts)
        function.fastmath = fastmath
    try:
        described(function)
        cache = True
    except TypeError:
        cache = False
    return njit(error_model="numpy", nogil=True, cache=cache, fastmath={*fastmath})(function)

"""Compiles functions, and caches the programs under a hash of everything they depend on. Notebook 02 uses it.

A program depends on the function's code, on the globals and closure cells that it reads, on the functions that it
calls, on the dtype, and on the versions of Python, NumPy and numba. So the hash of a changed program is another one. A
program that depends on a value without a description, such as a dict or an array, is compiled but not kept. Neither is
one that reads the module `numba`: a kept program that calls `numba.get_num_threads` would jump to an address that only
its compilation registers (numba 0.68.1). (numba's own cache checks only the function's file, and returns the old
program if what it calls has changed.)
"""

import dis
import functools
import hashlib
import pickle
import sys
import types

import llvmlite
import numpy as np

from .cache import cache_get, cache_put
from .tables import is_guarded

SUBSTITUTIONS = {}  # a Python function -> function(dtype), which returns what kernels for that dtype call in its place
_PROGRAMS = {}  # hash -> program
# types with a complete repr: two values with the same text are equal
_PLAIN = bool, int, float, complex, str, bytes, np.generic, np.dtype, type, types.BuiltinFunctionType, type(None)


@functools.cache
def _loaded(code):
    return {each.argval for each in dis.get_instructions(code) if each.opname == "LOAD_GLOBAL"}


def globals_read(code):
    """Return the names of the globals that a code object, or a function inside it, reads."""
    names = set(_loaded(code.replace(co_consts=(None,) * len(code.co_consts))))  # constants of copies are never equal
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= globals_read(constant)
    return names


def described(value):
    """Return a text that differs whenever the compiled code could. Raises TypeError for what it cannot describe."""
    value = getattr(value, "py_func", getattr(value, "_defn", value))  # the function that numba compiled
    if getattr(value, "hash", None):  # compiled here
        return value.hash
    if isinstance(value, types.FunctionType):
        code, scope = value.__code__, value.__globals__  # (numba imports the module again when it loads the program)
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        names = [(name, scope[name]) for name in sorted(globals_read(code)) if name in scope]
        return described([scope["__name__"], code, value.__defaults__, cells, names])
    if isinstance(value, types.CodeType):
        return described([value.co_code, value.co_names, value.co_varnames, value.co_consts])
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__}({', '.join(map(described, value))})"
    if isinstance(value, _PLAIN):
        return f"{type(value).__name__} {value!r}"
    if isinstance(value, types.ModuleType) and value.__name__.split(".")[0] in ("math", "numpy", "llvmlite"):
        return value.__name__
    raise TypeError(f"a kernel depends on {value!r}, which cannot be hashed")


def specialised(function, dtype, stands, compiled):
    """Copy a function for that dtype: its float constants get it, and it calls the functions in `stands`, compiled."""

    def in_the_copy(value):
        """Return the replacement of a constant, a global or a closure variable in the copy."""
        if isinstance(value, tuple):
            return tuple(map(in_the_copy, value))
        if isinstance(value, float) and dtype.kind == "f":
            return dtype.type(value)  # else numba makes 1.0 a float64, and so 1.0 / x even if x is float32
        called = getattr(value, "py_func", value)
        if called is function:
            raise TypeError(f"{function.__name__}: a kernel cannot call itself; use a loop")
        if not isinstance(called, types.FunctionType) or hasattr(called, "hash"):
            return value
        while isinstance(called, types.FunctionType) and called in stands:
            called = stands[called](dtype)
        return compiled(called) if isinstance(called, types.FunctionType) else called

    code, scope, names = function.__code__, function.__globals__, {}
    for name in globals_read(code) & scope.keys():
        names[name] = in_the_copy(scope[name])
    names["__name__"] = scope["__name__"]
    cells = tuple(types.CellType(in_the_copy(cell.cell_contents)) for cell in function.__closure__ or ())
    code = code.replace(co_consts=in_the_copy(code.co_consts))
    return types.FunctionType(code, names, function.__name__, function.__defaults__, cells)


def compile_cpu(function, dtype, fastmath=(), boundscheck=False):
    """Compile a function for arrays of that dtype. `fastmath` lists what else LLVM may do, such as ("reassoc",)."""
    import numba  # takes most of a second, so it is imported only when needed

    boundscheck = boundscheck or is_guarded(function)
    made = specialised(function, dtype, SUBSTITUTIONS, lambda called: compile_cpu(called, dtype, (), boundscheck))
    # float32 may round a·b + c once (FMA), float64 never
    allowed = {*fastmath, "contract"} if dtype == np.float32 else {*fastmath}
    how = sys.implementation.cache_tag, numba.__version__, llvmlite.__version__, np.__version__, dtype, boundscheck
    try:
        made.hash = hashlib.sha256(described([*how, sorted(allowed), made]).encode()).hexdigest()
    except TypeError:
        made.hash = None  # compiled, but not cached
    if made.hash in _PROGRAMS:
        return _PROGRAMS[made.hash]
    # x / 0 is infinite, as in NumPy
    program = numba.njit(error_model="numpy", nogil=True, fastmath=allowed, boundscheck=boundscheck)(made)
    if made.hash:
        program._cache = _Cache(made.hash)
        _PROGRAMS[made.hash] = program
    return program


class _Cache:
    """A program's cache for numba. The keys are the program's hash, the types of the arguments, and the processor."""

    def __init__(self, name):
        self.name = name

    def load_overload(self, types, context):
        from numba.core.compiler import CompileResult
        from numba.core.runtime import rtsys
        from numba.cpython import hashing  # noqa: F401 - with it numba registers an address that programs call

        # a program needs addresses alone: what else numba's own cache loads first takes half a second
        rtsys.initialize(context)
        data = cache_get(f"{self.name} {types} {context.codegen().magic_tuple()}")
        return data and CompileResult._rebuild(context, *pickle.loads(data))

    def save_overload(self, types, result):
        from numba.core import serialize

        cache_put(f"{self.name} {types} {result.codegen.magic_tuple()}", serialize.dumps(result._reduce()))


def fitted(lower, specs, views, numbers):
    """Return a function that compiles: the loop of lower(), for arrays of these Specs seen in the shapes `views`."""
    reshape = specs[0].device.reshape

    def lower_for_types():
        loop = lower()
        if hasattr(loop, "compile"):  # it is numba's: its code for these types saves their look-up in each call
            import numba

            samples = [np.empty((0,) * len(view), spec.dtype) for view, spec in zip(views, specs)]
            loop = loop.compile(tuple(map(numba.typeof, [*samples, *[0.0] * len(numbers)])))
        if views == [spec.shape for spec in specs]:
            return loop
        return lambda *arrays: loop(*map(reshape, arrays, views), *arrays[len(views) :])

    return lower_for_types

"""Compiled programs are kept under a hash of everything they were made from."""

import dis
import functools
import hashlib
import pickle
import sys
import types

import llvmlite
import numpy as np

from .cache import keep, kept

STANDS = {}  # a Python function -> function(dtype): what kernels for arrays of that dtype call in its place
_PROGRAMS = {}  # hash -> program
_loaded = functools.cache(lambda code: {i.argval for i in dis.get_instructions(code) if i.opname == "LOAD_GLOBAL"})
# types whose values Python spells in full, so that two with the same text are the same
_PLAIN = bool, int, float, complex, str, bytes, np.generic, np.dtype, type, types.BuiltinFunctionType, type(None)


def globals_read(code):
    """The names of the globals that a piece of code, or a function inside it, reads."""
    plain = code.replace(co_consts=(None,) * len(code.co_consts))  # the constants of a copy are never equal
    return _loaded(plain).union(*[globals_read(c) for c in code.co_consts if isinstance(c, types.CodeType)])


def described(value):
    """A text that differs whenever compiled code could. Raises TypeError for what it cannot describe."""
    value = getattr(value, "py_func", getattr(value, "_defn", value))  # numba made it from that
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
    if isinstance(value, types.ModuleType) and value.__name__.split(".")[0] in ("math", "numpy", "numba", "llvmlite"):
        return value.__name__
    raise TypeError(f"a kernel depends on {value!r}, which cannot be hashed")


def specialised(function, dtype, stands, compiled):
    """A copy of a function for arrays of that dtype: its floats have it; what it calls is what `stands` there, `compiled`."""

    def find(value):
        if isinstance(value, tuple):
            return tuple(map(find, value))
        if isinstance(value, float) and dtype.kind == "f":
            return dtype.type(value)  # else numba takes 1.0 for a float64, and with it 1.0 / x, where x is float32
        called = getattr(value, "py_func", value)
        if called is function:
            raise TypeError(f"{function.__name__}: a kernel cannot call itself; use a loop")
        if not isinstance(called, types.FunctionType) or hasattr(called, "hash"):
            return value
        while isinstance(called, types.FunctionType) and called in stands:
            called = stands[called](dtype)
        return compiled(called) if isinstance(called, types.FunctionType) else called

    code, scope = function.__code__, function.__globals__
    names = {name: find(scope[name]) for name in globals_read(code) & scope.keys()} | {"__name__": scope["__name__"]}
    cells = tuple(types.CellType(find(cell.cell_contents)) for cell in function.__closure__ or ())
    code = code.replace(co_consts=find(code.co_consts))
    return types.FunctionType(code, names, function.__name__, function.__defaults__, cells)


def compile_cpu(function, dtype, fastmath=(), boundscheck=False):
    """Compile a function for arrays of that dtype; x / 0 is infinite, as in NumPy.

    float32 may round a·b + c once (FMA), float64 never. `fastmath` names what else LLVM may do, as ("reassoc",) with sums.
    """
    import numba  # takes most of a second, so it waits until something is compiled

    made = specialised(function, dtype, STANDS, lambda called: compile_cpu(called, dtype, boundscheck=boundscheck))
    fastmath = {*fastmath, *["contract"] * (dtype == np.float32)}
    how = sys.implementation.cache_tag, numba.__version__, llvmlite.__version__, np.__version__, dtype, boundscheck
    try:
        made.hash = hashlib.sha256(described([*how, sorted(fastmath), made]).encode()).hexdigest()
    except TypeError:
        made.hash = None  # compiled, but not kept
    options = {"error_model": "numpy", "nogil": True, "fastmath": fastmath, "boundscheck": boundscheck}
    program = _PROGRAMS.get(made.hash) or numba.njit(**options)(made)
    if made.hash:
        _PROGRAMS[made.hash], program._cache = program, _kept_as(made.hash)
    return program


def _kept_as(name):
    """Finds and keeps what numba compiled: under the program's hash, the types of its arguments, and the processor."""
    from numba.core import compiler, serialize

    def load(types, context):
        context.refresh()  # numba's own code, which this may call, comes first
        data = kept(f"{name} {types} {context.codegen().magic_tuple()}")
        return data and compiler.CompileResult._rebuild(context, *pickle.loads(data))

    def save(types, result):
        keep(f"{name} {types} {result.codegen.magic_tuple()}", serialize.dumps(result._reduce()))

    return types.SimpleNamespace(load_overload=load, save_overload=save)

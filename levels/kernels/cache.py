"""Compiled programs are kept under a hash of everything they were made from."""

# Built from 02_kernels.ipynb: edit there, then run its last cell.

import dis
import functools
import hashlib
import pickle
import sys
import types

import llvmlite
import numpy as np

from levels.hardware import CACHE, keep, kept

STANDS = {}  # a Python function -> function(dtype): what kernels for arrays of that dtype call in its place
PROGRAMS = {}  # hash -> program
# types whose values Python spells in full, so that two with the same text are the same
PLAIN = [bool, int, float, complex, str, bytes, np.generic, np.dtype, type, types.BuiltinFunctionType, type(None)]


@functools.cache
def globals_read(code):
    """The names of the globals that a piece of code, or a function inside it, reads."""
    inner = [c for c in code.co_consts if isinstance(c, types.CodeType)]
    own = {i.argval for i in dis.get_instructions(code) if i.opname == "LOAD_GLOBAL"}
    return own.union(*map(globals_read, inner))


def described(value, seen=()):
    """A text that differs whenever compiled code could. Raises TypeError for what it cannot describe."""
    value = getattr(value, "py_func", getattr(value, "_defn", value))  # what numba made it from
    if isinstance(value, types.FunctionType):
        if value in seen:  # it calls itself
            return "again"
        if getattr(value, "hash", None):  # compiled here
            return value.hash
        seen, code = (*seen, value), value.__code__
        if value in STANDS:
            return described([STANDS[value](np.dtype(name)) for name in ("f4", "f8")], seen)
        scope = [(name, value.__globals__[name]) for name in sorted(globals_read(code)) if name in value.__globals__]
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        where = value.__globals__["__name__"]  # numba imports that module again when it loads the program
        return f"{where}{described([code, scope, cells], seen)}{value.__defaults__}"
    if isinstance(value, types.CodeType):
        return f"{value.co_code}{value.co_names}{value.co_varnames}{described(value.co_consts, seen)}"
    if isinstance(value, (list, tuple, dict)):
        parts = value.items() if isinstance(value, dict) else value
        return f"{type(value).__name__}({', '.join(described(part, seen) for part in parts)})"
    if isinstance(value, tuple(PLAIN)):
        return f"{type(value).__name__} {value!r}"
    if isinstance(value, types.ModuleType) and value.__name__.split(".")[0] in ("math", "numpy", "numba", "llvmlite"):
        return value.__name__
    raise TypeError(f"a kernel depends on {value!r}, which cannot be hashed")


def inside(value, dtype, stands, compiled):
    """What a kernel for arrays of that dtype shall find where it reads this constant or global; a function `compiled`."""
    if isinstance(value, tuple):
        return tuple(inside(v, dtype, stands, compiled) for v in value)
    if isinstance(value, float) and dtype.kind == "f":
        return dtype.type(value)  # else numba takes 1.0 for a float64, and with it 1.0 / x, where x is float32
    function = getattr(value, "py_func", value)
    if not isinstance(function, types.FunctionType) or hasattr(function, "hash"):
        return value
    while isinstance(function, types.FunctionType) and function in stands:
        function = stands[function](dtype)
    return compiled(function) if isinstance(function, types.FunctionType) else function


def specialised(function, find, finish=lambda copy: copy):
    """A copy of a function that reads find(value) where it reads a value, finished before the names that it reads are set."""
    code, scope = function.__code__, {"__name__": function.__globals__["__name__"]}
    cells = tuple(types.CellType(find(cell.cell_contents)) for cell in function.__closure__ or ())
    code = code.replace(co_consts=find(code.co_consts))
    result = finish(types.FunctionType(code, scope, function.__name__, function.__defaults__, cells))
    names = globals_read(code) & function.__globals__.keys()
    scope |= {name: find(function.__globals__[name]) for name in names}  # (it may call itself)
    return result


def compile_cpu(function, dtype, fastmath=(), boundscheck=False):
    """Compile a function for arrays of that dtype; division by zero gives infinity, as in NumPy.

    float32 may round a·b + c once (FMA), float64 never. `fastmath` names what else LLVM may do to the floats of this
    function, such as ("reassoc",): sums may be split over lanes.
    """
    import numba  # takes most of a second, so it waits until something is compiled

    fastmath = {*fastmath, *["contract"] * (dtype == np.float32)}
    how = sys.implementation.cache_tag, numba.__version__, llvmlite.__version__, np.__version__
    try:
        text = f"{(*how, dtype, sorted(fastmath), boundscheck)}{described(function)}"
        name = hashlib.sha256(text.encode()).hexdigest()
    except TypeError:
        name = None  # compiled, but not kept
    if name in PROGRAMS:
        return PROGRAMS[name]
    options = {"error_model": "numpy", "nogil": True, "fastmath": fastmath, "boundscheck": boundscheck}

    def finish(copy):
        copy.hash = name
        program = numba.njit(**options)(copy)
        if name is not None:
            PROGRAMS[name], program._cache = program, _Kept(name)
        return program

    inner = functools.partial(compile_cpu, dtype=dtype, boundscheck=boundscheck)
    return specialised(function, lambda value: inside(value, dtype, STANDS, inner), finish)


class _Kept:
    """Finds and keeps what numba compiled: under the program's hash, the types of its arguments, and the processor."""

    cache_path = CACHE

    def __init__(self, name):
        self.name = name

    def key(self, types, codegen):
        return f"{self.name} {types} {codegen.magic_tuple()}"

    def load_overload(self, types, context):
        from numba.core.compiler import CompileResult

        context.refresh()  # numba's own code, which this program may call, must be there first
        data = kept(self.key(types, context.codegen()))
        return data and CompileResult._rebuild(context, *pickle.loads(data))

    def save_overload(self, types, result):
        from numba.core.serialize import dumps

        keep(self.key(types, result.codegen), dumps(result._reduce()))


def compiled_for(program, *arguments):
    """What numba's program runs for arguments of these types. To call it saves the look-up, about 0.2 µs, and its checks."""
    if not hasattr(program, "compile"):  # it is Python: `COMPILERS` may hold a compiler that compiles nothing
        return program
    import numba

    return program.compile(tuple(map(numba.typeof, arguments)))

"""Compiles functions, and caches the programs under a hash of everything they depend on. Notebook 02 uses it.

A program depends on the function's code, on the globals and closure cells that it reads, on the functions that it
calls, on the dtype, and on the versions of Python, NumPy and numba. So the hash of a changed program is another one. A
program that depends on a value without a description, such as a dict or an array, is compiled but not kept. (numba's
own cache checks only the function's file, and returns the old program if what it calls has changed.)

numba itself takes most of a second to import. The first function that is not in the cache imports it. Until then,
functions run without it (`launching.py`); from then on numba calls them, which takes half the time.
"""

import dis
import functools
import hashlib
import itertools
import pickle
import sys
import types
from importlib import util
from pathlib import Path

import llvmlite
import numpy as np
from llvmlite import binding as llvm

from .cache import cache_get, cache_put
from .launching import finished, launcher, program_text
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
        code, scope = value.__code__, value.__globals__
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        names = [(name, scope[name]) for name in sorted(globals_read(code)) if name in scope]
        return described([code, value.__defaults__, cells, names])
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


@functools.cache
def _versions():
    """Return the versions of all that compiles. numba's stands in a file: to import numba takes most of a second."""
    numbas = Path(util.find_spec("numba").origin).with_name("_version.py").read_text(encoding="utf-8")
    return sys.implementation.cache_tag, numbas, llvmlite.__version__, np.__version__


def compile_cpu(function, dtype, fastmath=(), boundscheck=False):
    """Compile a function for arrays of that dtype. `fastmath` lists what else LLVM may do, such as ("reassoc",)."""
    boundscheck = boundscheck or is_guarded(function)
    made = specialised(function, dtype, SUBSTITUTIONS, lambda called: compile_cpu(called, dtype, (), boundscheck))
    # float32 may round a·b + c once (FMA), float64 never
    allowed = {*fastmath, "contract"} if dtype == np.float32 else {*fastmath}
    try:
        made.hash = hashlib.sha256(
            described([*_versions(), dtype, boundscheck, sorted(allowed), made]).encode()
        ).hexdigest()
    except TypeError:
        made.hash = None  # compiled, but not cached
    if made.hash in _PROGRAMS:
        return _PROGRAMS[made.hash]
    # x / 0 is infinite, as in NumPy
    how = {"error_model": "numpy", "nogil": True, "fastmath": allowed, "boundscheck": boundscheck}
    compiled = Compiled(made, how)
    if made.hash:
        _PROGRAMS[made.hash] = compiled
    return compiled


class Compiled:
    """A function compiled for arrays of one dtype: numba's, or until numba is needed, programs in its place."""

    def __init__(self, made, how):
        self.py_func = made  # for a function that calls this one
        self.how = how  # for numba
        self.runs = {}  # for each argument its dtype, shape and strides, or its type -> the function that runs

    def __call__(self, *given):
        if "numba" in sys.modules:
            return self.numbas(*given)
        key = tuple([(x.dtype, x.shape, x.strides) if type(x) is np.ndarray else type(x) for x in given])
        run = self.runs.get(key) or self.runs.setdefault(key, self.program(given, self.numbas_call) or self.numbas)
        return run(*given)

    def program(self, samples, again):
        """Return a function for arguments like these, arrays, then floats, which needs no numba. None: there is none.

        What it cannot do, or where it fails, it calls `again`, which calls numba's function.
        """
        arrays = [x for x in samples if type(x) is np.ndarray]
        numbers = samples[len(arrays) :]
        layouts = [_layout(x) for x in arrays]
        if "A" in layouts or any(type(x) is not float for x in numbers) or not self.py_func.hash:
            return None
        forms = [f"{x.dtype}{x.ndim}{layout}" for x, layout in zip(arrays, layouts)]
        kept = cache_get(_key(self.py_func.hash, forms, len(numbers)))
        text = finished(kept.decode()) if kept else ""
        return launcher(text, arrays, len(numbers), again) if text else None

    def numbas_call(self, *given):
        """Call the function as numba compiles it."""
        return self.numbas(*given)

    @functools.cached_property
    def numbas(self):
        """The function as numba compiles it. The functions that it calls are numba's, too."""
        import numba

        def numbas(value):
            return value.numbas if isinstance(value, Compiled) else value

        made = self.py_func
        names = {name: numbas(value) for name, value in made.__globals__.items()}
        cells = tuple(types.CellType(numbas(cell.cell_contents)) for cell in made.__closure__ or ())
        function = types.FunctionType(made.__code__, names, made.__name__, made.__defaults__, cells)
        compiled = numba.njit(**self.how)(function)
        if made.hash:
            compiled._cache = _Cache(made.hash, _modules(made), self.how["boundscheck"])
        return compiled


def _layout(array):
    """Return numba's letter for the order of an array's numbers in memory: C, F, or A for any other."""
    return "C" if array.flags.c_contiguous else "F" if array.flags.f_contiguous else "A"


def _key(name, forms, numbers):
    """Return the key of a program's text in the cache, for arrays of these forms and so many floats."""
    here = llvm.get_default_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    return " ".join([name, *forms, str(numbers), *here])


def _modules(made):
    """Return the names of the modules of a function and of those that it calls: numba imports them when it loads it."""
    cells = [cell.cell_contents for cell in made.__closure__ or ()]
    called = [x.py_func for x in (*made.__globals__.values(), *cells) if isinstance(x, Compiled)]
    return [made.__globals__["__name__"], *itertools.chain(*map(_modules, called))]


class _Cache:
    """A program's cache for numba. The keys are the program's hash, the types of the arguments, and the processor.

    With each program, the text is stored that runs without numba. (With a check of each index it is numba that runs.)
    """

    def __init__(self, name, modules, boundscheck):
        self.name = name
        self.modules = modules
        self.boundscheck = boundscheck

    def load_overload(self, types, context):
        from numba.core.compiler import CompileResult

        context.refresh()  # loads numba's own functions first, which this one may call
        data = cache_get(f"{self.name} {self.modules} {types} {context.codegen().magic_tuple()}")
        return data and CompileResult._rebuild(context, *pickle.loads(data))

    def save_overload(self, types, result):
        from numba.core import serialize
        from numba.core import types as kinds

        data = serialize.dumps(result._reduce())
        cache_put(f"{self.name} {self.modules} {types} {result.codegen.magic_tuple()}", data)
        arrays = [x for x in types if isinstance(x, kinds.Array)]
        numbers = [x for x in types if x == kinds.float64]
        if not self.boundscheck and list(types) == [*arrays, *numbers]:
            forms = [f"{x.dtype}{x.ndim}{x.layout}" for x in arrays]
            text = program_text(result, [x.ndim for x in arrays], len(numbers))
            cache_put(_key(self.name, forms, len(numbers)), text.encode())


def fitted(lower, specs, views, numbers):
    """Return a function that compiles: the loop of lower(), for arrays of these Specs seen in the shapes `views`."""
    reshape = specs[0].device.reshape

    def lower_for_types():
        loop = lower()
        run = loop

        def in_views(*arrays):
            return run(*map(reshape, arrays, views), *arrays[len(views) :])

        if isinstance(loop, Compiled):
            samples = [np.empty(view, spec.dtype) for view, spec in zip(views, specs)]
            samples += [0.0] * len(numbers)
            run = loop.numbas_call
            program = None if "numba" in sys.modules else loop.program(samples, in_views)
            if program:  # it sees any array in these shapes
                return program
            import numba

            run = loop.numbas.compile(tuple(map(numba.typeof, samples)))  # saves the look-up in each call
        return run if views == [spec.shape for spec in specs] else in_views

    return lower_for_types

"""The compiler for a GPU: kernels around scalar functions, and the replacements of level 1's functions in them."""

import functools
import inspect
import math

import numpy as np

from levels.kernels import BACKENDS
from levels.support.compiled import described, specialised
from levels.support.elementary import EXP, LOG, exp, exponent, log, rint, scaled, select, sqrt
from levels.support.tables import Backend
from levels_more.hardware.elementary import COS, SIN, cos, larger_of, maximum, minimum, sin, smaller_of
from levels_more.hardware.gpu.device import launch_kernel
from levels_more.hardware.gpu.memory import cuda
from levels_more.kernels import layout, random  # noqa: F401 (their kernels enter before there is a column for the GPU)
from levels_more.kernels.matmul import ceil_div

_MADE = {}  # a description of a kernel and its dtype -> the kernel


def thread(places, line):
    """Return the lines of a GPU kernel around `line`, which computes the element with the number of the thread."""
    letters = places["out"].split(", ")
    inner = [*enumerate(letters)][:0:-1]  # the last axis first
    found = [f"    {letter}, n = n % out.shape[{axis}], n // out.shape[{axis}]" for axis, letter in inner]
    return ["n = cuda.grid(1)", "if n < out.size:", *found, f"    {letters[0]} = n", f"    {line}"]


def each_row(function):
    """Return a kernel in which thread i calls function(out[i : i + 1], x[i : i + 1], …) on one row of every array."""
    names = list(inspect.signature(function).parameters)
    rows = ", ".join(f"{name}[i : i + 1]" for name in names)
    scope = {"__name__": "__main__", "cuda": cuda, "function": function}
    exec(f"def rows({', '.join(names)}):\n i = cuda.grid(1)\n if i < {names[0]}.shape[0]:\n  function({rows})", scope)
    return scope["rows"]


def threads_for(count):
    """Return (blocks, threads per block) for at least `count` threads: blocks of 128, or one of fewer warps of 32."""
    threads = min(128, ceil_div(count, 32) * 32)
    return ceil_div(count, threads), threads


LAYOUTS = {}  # code of a kernel -> function(out, …) -> (blocks, threads per block); others: one thread per element


def _split(x):
    """Return (m, e) with x = m·2ᵉ and m in [√½, √2)."""
    m, e = math.frexp(x)
    return (m, e) if m >= 0.7071067811865476 else (2.0 * m, e - 1)


def _exponent_as(number):
    return lambda x: number(_split(x)[1])


def _halves(x, n):
    """Return x·2ⁿ, computed in two steps, because 2ⁿ alone may be too large or too small."""
    half = int(n) // 2
    return x * math.ldexp(1.0, half) * math.ldexp(1.0, int(n) - half)


def _to_even(size):
    """Return a function that rounds to an integer: it adds and subtracts `size`, at which floats have no fraction."""
    return lambda x: (x + size) - size


ON_GPU = {  # function of level 1 -> function(dtype), which gives its replacement on a GPU
    exp: EXP.get,
    log: LOG.get,
    sin: SIN.get,
    cos: COS.get,
    scaled: lambda dtype: _halves,
    exponent: lambda dtype: _exponent_as(dtype.type),
    rint: lambda dtype: _to_even(1.5 * 2.0 ** (52 if dtype == np.float64 else 23)),
    sqrt: lambda dtype: lambda x: math.sqrt(x) if x >= 0.0 else (x - x) / (x - x),
    select: lambda dtype: lambda condition, x, y: x if condition else y,
    maximum: lambda dtype: larger_of,
    minimum: lambda dtype: smaller_of,
}


def kernel_for(function, dtype):
    """Return the kernel for arrays, constants and calls of that dtype. It is cached, so a real GPU compiles it once."""

    made = specialised(function, dtype, ON_GPU, functools.partial(kernel_for, dtype=dtype))
    try:
        return _MADE.setdefault(f"{dtype} {described(made)}", made)
    except TypeError:  # it depends on something without a description, so it is not cached
        return made


def compile_gpu(function, dtype, fastmath=(), boundscheck=False):
    """Return program(out, *arrays, *numbers), which launches this kernel for arrays of that dtype.

    A function that reads `cuda` is launched in its layout (LAYOUTS). For any other, each row has one thread.
    (`fastmath` and `boundscheck` are for CPUs and ignored here: the simulated GPU checks bounds anyway.)
    """
    made, blocks_of = function, LAYOUTS.get(function.__code__, lambda out, *arrays: threads_for(out.size))
    if "cuda" not in function.__code__.co_names:
        made, blocks_of = each_row(function), lambda out, *arrays: threads_for(out.shape[0])
    made = kernel_for(made, dtype)

    def program(out, *arguments):
        if out.size:
            launch_kernel(made, *blocks_of(out, *arguments), out, *arguments)

    program.py_func = function  # the original function, as in numba's programs, for kernels that call this one
    return program


def rows_of(shapes, places):
    """Return the shapes in which a loop sees its arrays on a GPU: an array with one place is reshaped to one row."""
    return [shape if "," in place else (math.prod(shape),) for shape, place in zip(shapes, places, strict=True)]


BACKENDS["gpu"] = Backend(compile_gpu, nest=thread, views=rows_of, names={"cuda": cuda})

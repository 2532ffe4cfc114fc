"""The compiler of a GPU: the threads that call a scalar function, and what stands for the functions of level 1."""

import functools
import inspect
import math

import numpy as np

from levels.hardware import EXP, LOG, exp, exponent, log, rint, scaled, select, sqrt
from levels.kernels.registry import KINDS, Backend
from levels.support.compiled import described, specialised
from levels_more.hardware.elementary import COS, SIN, cos, larger_of, maximum, minimum, sin, smaller_of
from levels_more.hardware.gpu.device import launch_kernel
from levels_more.hardware.gpu.memory import cuda
from levels_more.kernels import layout, random  # noqa: F401 (their kernels enter before there is a column for the GPU)

_MADE = {}  # a text of what a kernel was made from -> the kernel


def thread(places, line):
    """The lines around the one that computes an element, on a GPU: each thread finds its indices in its number."""
    letters = places["out"].split(", ")
    inner = [*enumerate(letters)][:0:-1]  # the last index first
    found = [f"    {letter}, n = n % out.shape[{axis}], n // out.shape[{axis}]" for axis, letter in inner]
    return ["n = cuda.grid(1)", "if n < out.size:", *found, f"    {letters[0]} = n", f"    {line}"]


def each_row(function):
    """A kernel in which thread i calls function(out[i : i + 1], x[i : i + 1], …): one row of every array."""
    names = list(inspect.signature(function).parameters)
    rows = ", ".join(f"{name}[i : i + 1]" for name in names)
    scope = {"__name__": "__main__", "cuda": cuda, "function": function}
    exec(f"def rows({', '.join(names)}):\n i = cuda.grid(1)\n if i < {names[0]}.shape[0]:\n  function({rows})", scope)
    return scope["rows"]


def ceil_div(n, size):
    """How many pieces of that size hold n."""
    return -(-n // size)


def threads_for(count):
    """(blocks, threads of a block) that are at least so many threads: blocks of 128, or of as many warps as needed."""
    threads = min(128, ceil_div(count, 32) * 32)
    return ceil_div(count, threads), threads


LAYOUTS = {}  # code of a kernel -> function(out, …) that gives (blocks, threads); else each number has a thread


def _split(x):
    """(m, e) with x = m·2ᵉ and m in [√½, √2)."""
    m, e = math.frexp(x)
    return (m, e) if m >= 0.7071067811865476 else (2.0 * m, e - 1)


def _exponent_as(number):
    return lambda x: number(_split(x)[1])


def _halves(x, n):
    """x·2ⁿ in two steps, since 2ⁿ alone may be too large."""
    half = int(n) // 2
    return x * math.ldexp(1.0, half) * math.ldexp(1.0, int(n) - half)


def _to_even(size):
    """The nearest whole number, by adding a number so large that no fraction is left, and taking it away again."""
    return lambda x: (x + size) - size


ON_GPU = {  # what stands there for the functions of level 1: function(dtype)
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
    """The kernel for arrays of that dtype, with floats and calls like it. Made once: a real GPU compiles it once."""

    made = specialised(function, dtype, ON_GPU, functools.partial(kernel_for, dtype=dtype))
    try:
        return _MADE.setdefault(f"{dtype} {described(made)}", made)
    except TypeError:  # it depends on what has no description: made anew each time
        return made


def compile_gpu(function, dtype, fastmath=(), boundscheck=False):
    """A program(out, *arrays, *numbers) that launches this kernel, for arrays of that dtype.

    A function that reads `cuda` is launched in its layout, any other one as a loop over rows. (`fastmath` and
    `boundscheck` are a CPU's: bounds are checked where the GPU is simulated.)
    """
    made, blocks_of = function, LAYOUTS.get(function.__code__, lambda out, *arrays: threads_for(out.size))
    if "cuda" not in function.__code__.co_names:
        made, blocks_of = each_row(function), lambda out, *arrays: threads_for(out.shape[0])
    made = kernel_for(made, dtype)

    def program(out, *arguments):
        if out.size:
            launch_kernel(made, *blocks_of(out, *arguments), out, *arguments)

    program.py_func = function  # as numba's programs: what it was made from, for a kernel that calls it
    return program


KINDS["gpu"] = Backend(compile_gpu, nest=thread, ravels=False, names={"cuda": cuda})

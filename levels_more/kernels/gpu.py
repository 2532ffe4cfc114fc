"""What a GPU does for the same ops: a thread for each number, a block for each sum, tiles for a product."""

import functools
import inspect
import math

import numpy as np

from levels.hardware import EXP, LOG, exp, exponent, log, rint, scaled, select, sqrt
from levels.kernels.registry import KERNELS, KINDS, PLANNERS, Backend, kernel
from levels.support.compiled import described, specialised
from levels_more.hardware.elementary import COS, SIN, cos, sin
from levels_more.hardware.gpu.device import launch_kernel
from levels_more.hardware.gpu.memory import cuda
from levels_more.kernels.random import normal, uniform

# A compiler: who calls a scalar function, and what a GPU has for the functions of level 1.

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


def _ceil_div(n, size):
    return -(-n // size)


def threads_for(count):
    """(blocks, threads of a block) that are at least so many threads: blocks of 128, or of as many warps as needed."""
    threads = min(128, _ceil_div(count, 32) * 32)
    return _ceil_div(count, threads), threads


LAYOUTS = {}  # code of a kernel -> function(out, …) that gives (blocks, threads); else there is a thread for each number


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
}


def kernel_for(function, dtype):
    """The kernel for arrays of that dtype, its floats and what it calls included. Made once: a real GPU compiles it once."""

    made = specialised(function, dtype, ON_GPU, functools.partial(kernel_for, dtype=dtype))
    try:
        return _MADE.setdefault(f"{dtype} {described(made)}", made)
    except TypeError:  # it depends on what has no description: made anew each time
        return made


def compile_gpu(function, dtype, fastmath=(), boundscheck=False):
    """A program(out, *arrays, *numbers) that launches this kernel, for arrays of that dtype.

    A function that reads `cuda` is launched in its layout, any other one as a loop over rows. (`fastmath` and `boundscheck`
    are a CPU's: bounds are checked where the GPU is simulated.)
    """
    made, layout = function, LAYOUTS.get(function.__code__, lambda out, *arrays: threads_for(out.size))
    if "cuda" not in function.__code__.co_names:
        made, layout = each_row(function), lambda out, *arrays: threads_for(out.shape[0])
    made = kernel_for(made, dtype)

    def program(out, *arguments):
        if out.size:
            launch_kernel(made, *layout(out, *arguments), out, *arguments)

    program.py_func = function  # as numba's programs: what it was made from, for a kernel that calls it
    return program


KINDS["gpu"] = Backend(compile_gpu, nest=thread, ravels=False, names={"cuda": cuda})

# Sums: a block for each row, a thread for each column.

BLOCK_THREADS = 256  # at most


def reduce_block(combine, start):
    """The kernel out[i] = x[i, 0], x[i, 1], … taken together by the threads of block i."""
    number = type(start)

    def by_block(out, x):
        part = cuda.shared.array(BLOCK_THREADS, number)
        t, i = cuda.threadIdx.x, cuda.blockIdx.x
        total = start
        for k in range(t, x.shape[1], cuda.blockDim.x):
            total = combine(total, x[i, k])
        part[t] = total
        cuda.syncthreads()
        half = cuda.blockDim.x // 2
        while half > 0:
            if t < half:
                part[t] = combine(part[t], part[t + half])
            cuda.syncthreads()
            half //= 2
        if t == 0:
            out[i] = part[0]

    return by_block


def reduce_thread(combine, start):
    """The kernel out[i, j] = x[i, 0, j], x[i, 1, j], … taken in by one thread, in order."""

    def by_thread(out, x):
        n = cuda.grid(1)
        if n < out.size:
            i, j = n // out.shape[1], n % out.shape[1]
            total = start
            for k in range(x.shape[1]):
                total = combine(total, x[i, k, j])
            out[i, j] = total

    return by_thread


def _one_block_each(out, x):
    """A block for each row, with a power of two of threads, each of which takes in two numbers or more."""
    return out.size, min(BLOCK_THREADS, 1 << max(0, (x.shape[1] - 1).bit_length() - 1))


LAYOUTS[reduce_block(np.add, 0.0).__code__] = _one_block_each
KINDS["gpu"].loops = reduce_block, reduce_thread

# Products: a thread for each number, its block with tiles of both matrices in shared memory.


def tiled(side, number, turned_x, turned_w):
    """The kernel of out[m, n] = x[m, k] @ w[k, n] in tiles of side x side, its sums of the type `number`.

    x, w or both may be given transposed (NVIDIA, CUDA C++ programming guide, "Shared memory").
    """

    def matmul_tiled(out, x, w):
        xs = cuda.shared.array((side, side), number)
        ws = cuda.shared.array((side, side), number)
        (j, i), column, row = cuda.grid(2), cuda.threadIdx.x, cuda.threadIdx.y
        depth, total = x.shape[0] if turned_x else x.shape[1], number(0)
        for k in range(0, depth, side):
            xs[row, column] = ws[row, column] = number(0)
            if i < out.shape[0] and k + column < depth:
                xs[row, column] = x[k + column, i] if turned_x else x[i, k + column]
            if j < out.shape[1] and k + row < depth:
                ws[row, column] = w[j, k + row] if turned_w else w[k + row, j]
            cuda.syncthreads()
            for q in range(side):
                total += xs[row, q] * ws[q, column]
            cuda.syncthreads()
        if i < out.shape[0] and j < out.shape[1]:
            out[i, j] = total

    return matmul_tiled


@kernel("matmul", "gpu")
def matmul_threads(out, x, w):
    """out[i, j] = Σₖ x[i, k]·w[k, j], by thread i·n + j."""
    n = cuda.grid(1)
    if n < out.size:
        i, j = n // out.shape[1], n % out.shape[1]
        total = 0.0
        for k in range(x.shape[1]):
            total += x[i, k] * w[k, j]
        out[i, j] = total


def plan_blocks(op, function, x, w, transpose_x=False, transpose_w=False):
    """As the planner of a product, and raises what it raises; the same sums in tiles, where the kernel is `matmul_threads`."""
    made = PLANNERS["matmul"](op, function, x, w, transpose_x, transpose_w)
    m, n = made.spec.shape

    def lower():
        side = min(16, 1 << (max(2, min(m, n)) - 1).bit_length())
        program = kernel_for(tiled(side, x.dtype.type, transpose_x, transpose_w), x.dtype)
        return functools.partial(launch_kernel, program, (_ceil_div(n, side), _ceil_div(m, side)), (side, side))

    if function is matmul_threads and min(m, n) > 0:
        made.lower = lower
    return made


PLANNERS["matmul", "gpu"] = plan_blocks

# Numbers on the move: a thread finds where its number comes from and where it goes.


def mover(function, sizes, to, source):
    """A kernel whose thread n takes number n of a view to its place in another. A view is a start and a stride for each axis."""
    (to_start, to_strides), (from_start, from_strides), count = to, source, math.prod(sizes)

    def move(out, x):
        n = cuda.grid(1)
        if n < count:
            there, here = to_start, from_start
            for axis in range(len(sizes) - 1, -1, -1):
                i, n = n % sizes[axis], n // sizes[axis]
                there, here = there + i * to_strides[axis], here + i * from_strides[axis]
            out[there] = function(x[here])

    return move


def _view_of(view, base):
    """Where a view of an array begins in it, and how far the next number is along each axis, counted in numbers."""
    start = view.ctypes.data - base.ctypes.data
    return start // view.itemsize, tuple(stride // view.itemsize for stride in view.strides)


def by_numbers(function, shape, inputs, pairs):
    """The program that takes numbers from view to view on a GPU: one launch for each pair of views."""
    dtype = inputs[0].dtype
    arrays, launches = [np.empty(s, dtype) for s in (shape, *(x.shape for x in inputs))], []
    zero = inputs[0].device.put(np.zeros(1, dtype))  # for what lies in no input
    for to, source in pairs(*arrays):
        to, source = np.atleast_1d(to), np.atleast_1d(source)
        base = next((k for k, array in enumerate(arrays) if k and np.may_share_memory(array, source)), 0)
        views = _view_of(to, arrays[0]), _view_of(source, arrays[base] if base else source)
        if to.size:
            launches.append((kernel_for(mover(function, to.shape, *views), dtype), *threads_for(to.size), base))

    def run(out, *arrays):
        for program, blocks, threads, base in launches:
            x = arrays[base - 1].reshape(arrays[base - 1].size) if base else zero.data
            launch_kernel(program, blocks, threads, out.reshape(out.size), x)

    return run


KINDS["gpu"].moves = by_numbers


# A random number is a function of its place, so a thread makes it without its neighbours.


@kernel("random_uniform", "gpu")
def uniform_threads(out, state):
    """out[i] = number i of the uniform ones that follow `state`."""
    i = cuda.grid(1)
    if i < out.size:
        out[i] = uniform(state, i, 2.0**24 if out.itemsize == 4 else 2.0**53)


@kernel("random_normal", "gpu")
def normal_threads(out, state):
    """out[i] = number i of the normal ones that follow `state`."""
    i = cuda.grid(1)
    if i < out.size:
        out[i] = normal(state, i)


# All other ops need nothing new: their functions enter the column as they are, and so do those that come later. (`gpu_rows`
# has kernels of its own for rows by number.)
KERNELS.update(
    {(op, "gpu"): f for (op, kind), f in dict(KERNELS).items() if kind == "cpu" and (op, "gpu") not in KERNELS}
)

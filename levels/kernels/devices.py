"""Two more columns of the table: what a GPU and a TPU do for the same ops."""

# Built from 02_kernels.ipynb: edit there, then run its last cell.

import functools
import inspect
import math

import numpy as np

from levels.hardware import DOUBLE, EXP, LOG, cuda, exp, exponent, launch_kernel, log, rint, scaled, select, sqrt

from .cache import PROGRAMS, compile_cpu, described, globals_read, inside, specialised
from .elementwise import AROUND, nest
from .matmul import pieces, plan_tiles
from .random import normal, uniform
from .reduce import LOOPS, START, combine
from .registry import COMPILERS, KERNELS, PLANNERS, PLANS, kernel
from .rows import MOVES, by_views, plan_gather, plan_one_hot, plan_scatter_add


def thread(places, letters):
    """The lines around the one that computes an element, on a GPU: each thread finds its indices in its number."""
    lone = [f"{name} = {name}[0]" for name, index in places.items() if not index]
    inner = [*enumerate(letters)][:0:-1]  # the last index first
    found = [f"    {letter}, n = n % out0.shape[{axis}], n // out0.shape[{axis}]" for axis, letter in inner]
    return [*lone, "n = cuda.grid(1)", "if n < out0.size:", *found, f"    {letters[0]} = n"]


AROUND["gpu"], AROUND["tpu"] = thread, nest


def each_row(function):
    """A kernel in which each thread calls the function on one row of every array."""
    names = list(inspect.signature(function).parameters)
    rows = ", ".join(f"{name}[i : i + 1]" for name in names)
    scope = {"__name__": "__main__", "cuda": cuda, "function": function}
    exec(f"def rows({', '.join(names)}):\n i = cuda.grid(1)\n if i < {names[0]}.shape[0]:\n  function({rows})", scope)
    return scope["rows"]


def threads_for(count):
    """(blocks, threads of a block) that are at least so many threads: blocks of 128, or of as many warps as needed."""
    threads = min(128, pieces(count, 32) * 32)
    return pieces(count, threads), threads


LAYOUTS = {}  # code of a kernel -> function(out, …) that gives (blocks, threads); else there is a thread for each number


def split(x):
    """(m, e) with x = m·2ᵉ and m in [√½, √2)."""
    m, e = math.frexp(x)
    return (m, e) if m >= 0.7071067811865476 else (2.0 * m, e - 1)


def exponent_as(number):
    return lambda x: number(split(x)[1])


def halves(x, n):
    """x·2ⁿ in two steps, since 2ⁿ alone may be too large."""
    half = int(n) // 2
    return x * math.ldexp(1.0, half) * math.ldexp(1.0, int(n) - half)


def to_even(size):
    """The nearest whole number, by adding a number so large that no fraction is left, and taking it away again."""
    return lambda x: (x + size) - size


ON_GPU = {  # what stands there for the functions of level 1
    exp: EXP.get,
    log: LOG.get,
    scaled: lambda dtype: halves,
    exponent: lambda dtype: exponent_as(dtype.type),
    rint: lambda dtype: to_even(1.5 * 2.0 ** (52 if dtype == DOUBLE else 23)),
    sqrt: lambda dtype: lambda x: math.sqrt(x) if x >= 0.0 else (x - x) / (x - x),
    select: lambda dtype: lambda condition, x, y: x if condition else y,
}


def compile_gpu(function, dtype, fastmath=(), boundscheck=False):
    """A program that launches this kernel, for arrays of that dtype. (Bounds are checked where the GPU is simulated.)"""
    if "cuda" in globals_read(function.__code__):
        layout = LAYOUTS.get(function.__code__, lambda out, *arrays: threads_for(out.size))
    else:
        function, layout = each_row(function), lambda out, *arrays: threads_for(out.shape[0])
    kernel = kernel_for(function, dtype)

    def program(out, *arguments):
        if out.size:
            launch_kernel(kernel, *layout(out, *arguments), out, *arguments)

    return program


def kernel_for(function, dtype):
    """The kernel for arrays of that dtype, made once: a real GPU compiles it once."""
    try:
        name = f"gpu {dtype} {described(function)}"
    except TypeError:
        name = None

    def find(value):
        return inside(value, dtype, ON_GPU, lambda function: specialised(function, find))

    return PROGRAMS.get(name) or PROGRAMS.setdefault(name, specialised(function, find))


COMPILERS["gpu"], COMPILERS["tpu"] = compile_gpu, compile_cpu


WIDTH = 256  # threads of a block, at most
NUMBER = np.float32  # the type of shared numbers. Each reduction puts its own in this place


def reduce_block(out, x):
    """out[i] = x[i, 0], x[i, 1], … taken together by the threads of block i."""
    part, t, i = cuda.shared.array(WIDTH, NUMBER), cuda.threadIdx.x, cuda.blockIdx.x
    total = START
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


def reduce_thread(out, x):
    """out[i, j] = x[i, 0, j], x[i, 1, j], … taken in by one thread, in order."""
    n = cuda.grid(1)
    if n < out.size:
        i, j = n // out.shape[1], n % out.shape[1]
        total = START
        for k in range(x.shape[1]):
            total = combine(total, x[i, k, j])
        out[i, j] = total


def one_block_each(out, x):
    """A block for each row, with a power of two of threads, each of which takes in two numbers or more."""
    return out.size, min(WIDTH, 1 << max(0, (x.shape[1] - 1).bit_length() - 1))


LAYOUTS[reduce_block.__code__] = one_block_each
LOOPS["gpu"], LOOPS["tpu"] = (reduce_block, reduce_thread), LOOPS["cpu"]


def tiled(side, number, turned_x, turned_w):
    """The kernel of a product in tiles of side x side; x, w or both may be given transposed."""

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
    n = cuda.grid(1)
    if n < out.size:
        i, j = n // out.shape[1], n % out.shape[1]
        total = 0.0
        for k in range(x.shape[1]):
            total += x[i, k] * w[k, j]
        out[i, j] = total


@kernel("matmul", "tpu")
def matmul_array(tpu, turned_x, turned_w, out, x, w):
    x, w = x.T if turned_x else x, w.T if turned_w else w
    out[...] = tpu.matmul(x, w) if x.size and w.size else 0.0


def plan_products(op, function, x, w, transpose_x=False, transpose_w=False):
    """As plan_tiles; on a GPU by blocks, on a TPU by its array."""
    made = plan_tiles(op, function, x, w, transpose_x, transpose_w)
    if function is matmul_array:
        made.run = functools.partial(matmul_array, x.device, transpose_x, transpose_w)
    if function is matmul_threads and min(made.spec.shape) > 0:
        m, n = made.spec.shape
        side = min(16, 1 << (max(2, min(m, n)) - 1).bit_length())
        program = kernel_for(tiled(side, x.dtype.type, transpose_x, transpose_w), x.dtype)
        made.run = functools.partial(launch_kernel, program, (pieces(n, side), pieces(m, side)), (side, side))
    return made


PLANNERS["matmul"] = plan_products


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


def view_of(view, base):
    """Where a view of an array begins in it, and how far the next number is along each axis, counted in numbers."""
    start = view.ctypes.data - base.ctypes.data
    return start // view.itemsize, tuple(stride // view.itemsize for stride in view.strides)


def by_numbers(function, shape, inputs, pairs):
    """The program that takes numbers from view to view on a GPU."""
    dtype = inputs[0].dtype
    arrays, launches = [np.empty(s, dtype) for s in (shape, *(x.shape for x in inputs))], []
    zero = inputs[0].device.put(np.zeros(1, dtype))  # for what lies in no input
    for to, source in pairs(*arrays):
        to, source = np.atleast_1d(to), np.atleast_1d(source)
        base = next((k for k, array in enumerate(arrays) if k and np.may_share_memory(array, source)), 0)
        views = view_of(to, arrays[0]), view_of(source, arrays[base] if base else source)
        if to.size:
            launches.append((kernel_for(mover(function, to.shape, *views), dtype), *threads_for(to.size), base))

    def run(out, *arrays):
        for kernel, blocks, threads, base in launches:
            x = arrays[base - 1].reshape(arrays[base - 1].size) if base else zero.data
            launch_kernel(kernel, blocks, threads, out.reshape(out.size), x)

    return run


MOVES["gpu"], MOVES["tpu"] = by_numbers, by_views


@kernel("gather", "gpu")
def gather_threads(out, x, rows):
    n = cuda.grid(1)
    if n < out.size:
        i, j = n // out.shape[1], n % out.shape[1]
        out[i, j] = x[rows[i], j]


@kernel("scatter_add", "gpu")
def scatter_threads(out, x, rows):
    j = cuda.grid(1)
    if j < out.shape[1]:
        for i in range(out.shape[0]):
            out[i, j] = 0
        for i in range(rows.size):
            out[rows[i], j] += x[i, j]


def rows_checked(planner, count):
    """The planner of an op whose last input holds numbers below count(spec of the result, first input)."""

    @functools.wraps(planner)
    def plan_checked(op, function, *inputs, **attrs):
        made = planner(op, function, *inputs, **attrs)
        place, run, end = inputs[0].device, made.run, count(made.spec, inputs[0])

        def checked(*arrays):
            rows = place.read(arrays[-1])
            if rows.size and not 0 <= rows.min() <= rows.max() < end:
                raise IndexError(f"{op}: a number from {rows.min()} to {rows.max()} is out of range; there are {end}")
            run(*arrays)

        made.run = checked if place.kind == "gpu" else run
        return made

    return plan_checked


PLANNERS["gather"] = rows_checked(plan_gather, lambda spec, x: x.shape[0])
PLANNERS["scatter_add"] = rows_checked(plan_scatter_add, lambda spec, x: spec.shape[0])
PLANNERS["one_hot"] = rows_checked(plan_one_hot, lambda spec, x: spec.shape[-1])


@kernel("random_uniform", "gpu")
def uniform_threads(out, state):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = uniform(state, i, 2.0**24 if out.itemsize == 4 else 2.0**53)


@kernel("random_normal", "gpu")
def normal_threads(out, state):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = normal(state, i)


as_on_cpu = {(op, kind): f for (op, of), f in KERNELS.items() if of == "cpu" for kind in COMPILERS}
KERNELS.update(as_on_cpu | KERNELS)
PLANS.clear()

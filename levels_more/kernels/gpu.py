"""GPU kernels: one thread for each element, one block for each sum of a row, and tiles for matrix products."""

import functools
import math

import numpy as np

from levels.kernels import BACKENDS, KERNELS, PLANNERS, kernel
from levels.support.shapes import same_dtype
from levels_more.hardware.gpu.device import launch_kernel
from levels_more.hardware.gpu.memory import cuda
from levels_more.kernels.gpu_compiler import LAYOUTS, kernel_for, threads_for
from levels_more.kernels.layout import MOVES, plan_one_hot, plan_scatter_add
from levels_more.kernels.matmul import ceil_div
from levels_more.kernels.random import normal, uniform
from levels_more.kernels.reductions import LOOPS

# Reductions: one block for each row, or one thread for each column.

BLOCK_THREADS = 256  # at most


def reduce_block(combine, start):
    """Return a kernel in which the threads of block i combine x[i, 0], x[i, 1], … into out[i], beginning at `start`."""
    number = type(start)

    def by_block(out, x):
        part = cuda.shared.array(BLOCK_THREADS, number)
        t = cuda.threadIdx.x
        i = cuda.blockIdx.x
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
    """Return a kernel in which one thread combines x[i, 0, j], x[i, 1, j], … into out[i, j], in order."""

    def by_thread(out, x):
        n = cuda.grid(1)
        if n < out.size:
            i = n // out.shape[1]
            j = n % out.shape[1]
            total = start
            for k in range(x.shape[1]):
                total = combine(total, x[i, k, j])
            out[i, j] = total

    return by_thread


def _one_block_each(out, x):
    """Return (blocks, threads per block): one block per row; threads are the largest power of two below its length."""
    return out.size, min(BLOCK_THREADS, 1 << max(0, (x.shape[1] - 1).bit_length() - 1))


LAYOUTS[reduce_block(np.add, 0.0).__code__] = _one_block_each
BACKENDS["gpu"].reduction = reduce_thread
LOOPS["gpu"] = reduce_block, reduce_thread

# Products: one thread for each element; each block keeps tiles of both matrices in shared memory.


@kernel("matmul", "gpu")
def tiled(side, number, turned_x, turned_w):
    """Return a kernel for out[m, n] = x[m, k] @ w[k, n] in tiles of side x side, with sums of the type `number`.

    x, w or both may be given transposed (NVIDIA, CUDA C++ programming guide, "Shared memory").
    """

    def matmul_tiled(out, x, w):
        xs = cuda.shared.array((side, side), number)
        ws = cuda.shared.array((side, side), number)
        j, i = cuda.grid(2)
        column = cuda.threadIdx.x
        row = cuda.threadIdx.y
        depth = x.shape[0] if turned_x else x.shape[1]
        total = number(0)
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


def plan_blocks(op, function, x, w, transpose_x=False, transpose_w=False):
    """Plan a product of float matrices; `tiled` is made for their sizes. Raises what `matmul`'s planner raises."""
    same_dtype(op, x, w)  # matrices of floats only
    made = PLANNERS["matmul"](op, function, x, w, transpose_x, transpose_w)
    m, n = made.spec.shape

    def lower():
        side = min(16, 1 << (max(2, min(m, n)) - 1).bit_length())
        program = kernel_for(tiled(side, x.dtype.type, transpose_x, transpose_w), x.dtype)

        def run(out, x, w):
            if out.size:
                launch_kernel(program, (ceil_div(n, side), ceil_div(m, side)), (side, side), out, x, w)

        return run

    if function is tiled:
        made.lower = lower
    return made


PLANNERS["matmul", "gpu"] = plan_blocks

# Copies between views: each thread computes the source and the target of its element.


def mover(function, sizes, to, source):
    """Return a kernel whose thread n copies element n of view `source` to view `to`. A view is (start, strides)."""
    (to_start, to_strides), (from_start, from_strides), count = to, source, math.prod(sizes)

    def move(out, x):
        n = cuda.grid(1)
        if n < count:
            there = to_start
            here = from_start
            for axis in range(len(sizes) - 1, -1, -1):
                i = n % sizes[axis]
                n = n // sizes[axis]
                there = there + i * to_strides[axis]
                here = here + i * from_strides[axis]
            out[there] = function(x[here])

    return move


def _view_of(view, base):
    """Return (start, strides) of a view of the array `base`, counted in elements."""
    start = view.ctypes.data - base.ctypes.data
    return start // view.itemsize, tuple(stride // view.itemsize for stride in view.strides)


def copy_by_threads(function, shape, inputs, pairs):
    """Return the program that copies from view to view on a GPU, with one launch for each pair of views."""
    dtype = inputs[0].dtype
    arrays = [np.empty(s, dtype) for s in (shape, *(x.shape for x in inputs))]
    launches = []
    zero = inputs[0].device.put(np.zeros(1, dtype))  # for views that belong to no input
    for to, source in pairs(*arrays):
        to = np.atleast_1d(to)
        source = np.atleast_1d(source)
        base = next((k for k, array in enumerate(arrays) if k and np.may_share_memory(array, source)), 0)
        views = _view_of(to, arrays[0]), _view_of(source, arrays[base] if base else source)
        if to.size:
            launches.append((kernel_for(mover(function, to.shape, *views), dtype), *threads_for(to.size), base))

    def run(out, *arrays):
        for program, blocks, threads, base in launches:
            x = arrays[base - 1].reshape(arrays[base - 1].size) if base else zero.data
            launch_kernel(program, blocks, threads, out.reshape(out.size), x)

    return run


MOVES["gpu"] = copy_by_threads


# Gather and scatter. A kernel on a real GPU cannot raise an error, so row numbers are checked before the launch.


@kernel("gather", "gpu")
def gather_threads(out, x, rows):
    """out[i, j] = x[rows[i], j]"""
    n = cuda.grid(1)
    if n < out.size:
        i = n // out.shape[1]
        j = n % out.shape[1]
        out[i, j] = x[rows[i], j]


@kernel("scatter_add", "gpu")
def scatter_threads(out, x, rows):
    """Compute out[rows[i], j] = Σ x[i, j], in the order of i, with one thread for each column j."""
    j = cuda.grid(1)
    if j < out.shape[1]:
        for i in range(out.shape[0]):
            out[i, j] = 0
        for i in range(rows.size):
            out[rows[i], j] += x[i, j]


def rows_checked(planner, count):
    """Return a planner that also checks the last input, int64: all in range(count(spec of the result, first input)).

    Before the launch, its plans raise IndexError for a number that is out of range.
    """

    @functools.wraps(planner)
    def plan_checked(op, function, *inputs, **attrs):
        made = planner(op, function, *inputs, **attrs)
        place, lower, end = inputs[0].device, made.lower, count(made.spec, inputs[0])

        def lower_checked():
            run = lower()

            def checked(*arrays):
                rows = place.read(arrays[-1])
                if rows.size and not 0 <= rows.min() <= rows.max() < end:
                    there = f"a number from {rows.min()} to {rows.max()} is out of range; there are {end}"
                    raise IndexError(f"{op}: {there}")
                run(*arrays)

            return checked

        made.lower = lower_checked
        return made

    return plan_checked


PLANNERS["gather", "gpu"] = rows_checked(PLANNERS["gather"], lambda spec, x: x.shape[0])
PLANNERS["scatter_add", "gpu"] = rows_checked(plan_scatter_add, lambda spec, x: spec.shape[0])
PLANNERS["one_hot", "gpu"] = rows_checked(plan_one_hot, lambda spec, x: spec.shape[-1])

# A random number depends only on the state and its index, so each thread computes one independently.


@kernel("random_uniform", "gpu")
def uniform_threads(out, state):
    """Set out[i] to uniform random number i after `state`."""
    i = cuda.grid(1)
    if i < out.size:
        out[i] = uniform(state, i, 2.0**24 if out.itemsize == 4 else 2.0**53)


@kernel("random_normal", "gpu")
def normal_threads(out, state):
    """Set out[i] to normal random number i after `state`."""
    i = cuda.grid(1)
    if i < out.size:
        out[i] = normal(state, i)


# All other ops use the kernels of the CPU as they are. Ops that are registered later get kernels for all kinds.
KERNELS.update(
    {(op, "gpu"): f for (op, kind), f in dict(KERNELS).items() if kind == "cpu" and (op, "gpu") not in KERNELS}
)

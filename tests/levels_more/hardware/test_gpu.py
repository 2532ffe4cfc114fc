"""The GPU of level 1: right kernels are right in any order, wrong ones are caught in every order, and errors name the
place.
"""

import contextlib
import random
import time
from pathlib import Path

import numpy as np
import pytest

from levels_more.hardware import MAKERS, GpuError, count_traffic, cuda, launch_kernel, pool
from levels_more.hardware.gpu.device import Gpu, real_cuda
from levels_more.hardware.gpu.errors import BarrierError, Endless, OutOfBounds, Race, Uninitialised
from levels_more.hardware.gpu.scheduler import LAUNCH_LIMITS, Traffic

TILE, BLOCK = 8, 32  # numba wants the size of a shared array as a plain constant
ORDERS = [None, *range(11)]


# Kernels that are right.


def vector_add(a, b, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[i] + b[i]


def matmul(a, b, out):
    tile_a = cuda.shared.array((TILE, TILE), np.float32)
    tile_b = cuda.shared.array((TILE, TILE), np.float32)
    column, row = cuda.grid(2)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    total = np.float32(0)
    for start in range(0, a.shape[1], TILE):
        tile_a[y, x] = a[row, start + x]
        tile_b[y, x] = b[start + y, column]
        cuda.syncthreads()
        for k in range(TILE):
            total += tile_a[y, k] * tile_b[k, x]
        cuda.syncthreads()
    out[row, column] = total


def block_sum(x, out):
    part = cuda.shared.array(BLOCK, np.float32)
    t = cuda.threadIdx.x
    part[t] = x[cuda.grid(1)]
    cuda.syncthreads()
    stride = BLOCK // 2
    while stride > 0:
        if t < stride:
            part[t] += part[t + stride]
        cuda.syncthreads()
        stride //= 2
    if t == 0:
        out[cuda.blockIdx.x] = part[0]


def histogram(values, bins):
    i = cuda.grid(1)
    if i < values.size:
        cuda.atomic.add(bins, values[i], 1)


# Kernels that are wrong.


def sum_before_loaded(x, out):
    part = cuda.shared.array(BLOCK, np.float32)
    t = cuda.threadIdx.x
    part[t] = x[cuda.grid(1)]
    if t < BLOCK // 2:
        part[t] += part[t + BLOCK // 2]
    cuda.syncthreads()
    out[cuda.grid(1)] = part[t]


def barrier_in_a_branch(x):
    if cuda.threadIdx.x < 16:
        cuda.syncthreads()
    x[cuda.grid(1)] = 1


def two_barriers(x):
    if cuda.threadIdx.x < 16:
        cuda.syncthreads()
    else:
        cuda.syncthreads()  # another one
    x[cuda.grid(1)] = 1


def one_past(x, out):
    out[cuda.grid(1)] = x[cuda.grid(1) + 1]


def one_before(x, out):
    x[cuda.grid(1) - 1] = 1


def floats(*shape, seed=0):
    return np.random.default_rng(seed).random(shape, dtype=np.float32)


def right_cases():
    a, b, m, n = floats(100), floats(100, seed=1), floats(16, 16), floats(16, 16, seed=1)
    x, values = floats(4 * BLOCK), np.random.default_rng(2).integers(0, 8, 100)
    yield vector_add, 4, 32, (a, b), a + b
    yield matmul, (2, 2), (TILE, TILE), (m, n), m @ n
    yield block_sum, 4, BLOCK, (x,), x.reshape(4, BLOCK).sum(1)
    yield histogram, 4, 32, (values,), np.bincount(values, minlength=8)


def by_kernel(case):
    return case[0].__name__


@pytest.mark.parametrize("case", list(right_cases()), ids=by_kernel)
def test_right_kernels_in_12_orders(case):
    kernel, blocks, threads, inputs, expected = case
    for order in ORDERS:
        out = np.zeros(expected.shape, expected.dtype)
        launch_kernel(kernel, blocks, threads, *inputs, out, order=order)
        np.testing.assert_allclose(out, expected, rtol=1e-5)


def test_an_order_is_repeatable_and_orders_differ():
    def note_rank(out, count):
        out[cuda.grid(1)] = cuda.atomic.add(count, 0, 1)

    def ranks(order):
        out = np.zeros(32, np.int64)
        launch_kernel(note_rank, 4, 8, out, np.zeros(1, np.int64), order=order)
        return out.tolist()

    assert ranks(None) == list(range(32))
    assert ranks(5) == ranks(5) != ranks(6)
    assert sorted(ranks(5)) == list(range(32))


# What the errors say.


def message(error, kernel, blocks, threads, *arguments, **options):
    with pytest.raises(error) as caught:
        launch_kernel(kernel, blocks, threads, *arguments, **options)
    return str(caught.value)


def in_every_order(error, kernel, threads, *arguments):
    """What is said of one block, which is the same in 12 orders."""
    (text,) = {message(error, kernel, 1, threads, *arguments, order=order) for order in ORDERS}
    return text


def line_of(kernel, text):
    """`line 12 of kernel: the text of that line`, for the only line that holds the text."""
    lines = Path(__file__).read_text(encoding="utf-8").split("\n")
    first = kernel.__code__.co_firstlineno
    at = next(n for n in range(first, len(lines) + 1) if text in lines[n - 1])
    return f"line {at} of {kernel.__name__}: {lines[at - 1].strip()}"


@pytest.mark.parametrize("order", ORDERS)
def test_a_race_names_both_threads_and_both_lines(order):
    text = message(Race, sum_before_loaded, 1, BLOCK, floats(BLOCK), np.zeros(BLOCK), order=order)
    first, one, two = text.split("\n")
    assert first.startswith("shared[") and first.endswith("] is used by two threads, with no barrier between")
    assert {line.split(" it in ")[1] for line in (one, two)} == {
        line_of(sum_before_loaded, "part[t] = x"),
        line_of(sum_before_loaded, "part[t] +="),
    }
    t, other = (int(line.split()[1]) for line in (one, two))
    assert abs(t - other) == BLOCK // 2 and str(max(t, other)) in first


@pytest.mark.quick
def test_a_race_between_blocks_says_so():
    def both(x):
        x[0] = cuda.blockIdx.x
        cuda.syncthreads()

    launch_kernel(both, 1, 1, np.zeros(1))
    text = message(Race, both, 2, 1, np.zeros(1))
    assert "no barrier holds between blocks" in text
    assert "thread 0 of block 0 writes it" in text and "thread 0 of block 1 writes it" in text


@pytest.mark.quick
@pytest.mark.parametrize("kernel, index, thread", [(one_past, 8, 7), (one_before, -1, 0)])
def test_out_of_bounds_names_thread_index_and_line(kernel, index, thread):
    text = in_every_order(OutOfBounds, kernel, 8, np.zeros(8), np.zeros(8))
    place = line_of(kernel, "[cuda.grid(1)")
    assert text == f"x[{index}] is outside of shape (8,)\n  thread {thread} of block 0 in {place}"


@pytest.mark.parametrize("space, dtype", [("shared", np.float32), ("local", np.int64)])
def test_memory_never_written_is_not_read(space, dtype):
    def unwritten(out):
        box = getattr(cuda, space).array(4, dtype)
        out[0] = box[2]

    text = message(Uninitialised, unwritten, 1, 1, np.zeros(1))
    assert text.startswith(f"{space}[2] was never written\n  thread 0 of block 0 reads it in line ")


@pytest.mark.parametrize("kernel, other", [(barrier_in_a_branch, None), (two_barriers, "# another one")])
def test_a_barrier_that_some_threads_leave_out(kernel, other):
    text = in_every_order(BarrierError, kernel, 32, np.zeros(32))
    waits = f"waits at {line_of(kernel, 'cuda.sync')}"
    stands = f"waits at {line_of(kernel, other)}" if other else "has left the kernel"
    assert text == f"thread 0 of block 0 {waits}\n  but thread 16 of block 0 {stands}"


def endless_without_access(x):
    while True:
        pass


def endless_reading(x):
    while x[0] == 0:
        pass


@pytest.mark.parametrize("kernel", [endless_without_access, endless_reading])
def test_nothing_hangs(kernel, monkeypatch):
    monkeypatch.setitem(LAUNCH_LIMITS, "seconds", 0.2)
    start = time.monotonic()
    text = message(Endless, kernel, 1, 4, np.zeros(1))
    assert f"{kernel.__name__} does not end within 0.2 seconds" in text and f" of {kernel.__name__}: " in text
    assert time.monotonic() - start < 5
    launch_kernel(vector_add, 1, 8, *np.zeros((3, 8)))  # and the next launch runs


# Races, in detail.


def test_the_detector_agrees_with_comparing_all_pairs():
    """Random programs: what is remembered of each element finds a race exactly if some pair of accesses races."""
    dice, racy_programs = random.Random(0), 0
    for trial in range(150):
        verbs = dice.choice(["ra", "rrrrrw", "raw"])
        blocks, phases, threads, cells = (dice.randint(1, most) for most in (2, 3, 3, 2))
        program = {
            (block, phase, thread): [(dice.choice(verbs), dice.randrange(cells)) for _ in range(dice.choice([0, 1, 3]))]
            for block in range(blocks)
            for phase in range(phases)
            for thread in range(threads)
        }

        def play(x, program=program, phases=phases):
            for phase in range(phases):
                for verb, at in program[cuda.blockIdx.x, phase, cuda.threadIdx.x]:
                    if verb == "r":
                        x[at]
                    elif verb == "w":
                        x[at] = 1
                    else:
                        cuda.atomic.add(x, at, 1)
                cuda.syncthreads()

        uses = [(*who, *what) for who, todo in program.items() for what in todo]
        racy = any(
            at == at2 and (verb, verb2) not in (("r", "r"), ("a", "a")) and (b != b2 or (p == p2 and t != t2))
            for b, p, t, verb, at in uses
            for b2, p2, t2, verb2, at2 in uses
        )
        racy_programs += racy
        for order in (None, trial):
            with pytest.raises(Race) if racy else contextlib.nullcontext():
                launch_kernel(lambda x: play(x), blocks, threads, np.zeros(cells), order=order)
    assert 30 < racy_programs < 120


# The rest of `cuda`.


def test_atomics_return_the_old_value():
    def count(seen, total, top, low):
        seen[cuda.atomic.add(total, 0, 1)] = 1
        cuda.atomic.max(top, 0, cuda.grid(1))
        cuda.atomic.min(low, 0, cuda.grid(1))

    seen, total, top, low = np.zeros(32), np.zeros(1, np.int64), np.zeros(1, np.int64), np.full(1, 99)
    launch_kernel(count, 2, 16, seen, total, top, low, order=4)
    assert seen.all() and (total[0], top[0], low[0]) == (32, 31, 0)


# Memory transactions.


@pytest.mark.parametrize("step, transactions", [(1, 2), (2, 4), (32, 64)])
def test_transactions_of_a_warp(step, transactions):
    def copy(x, out):
        out[cuda.grid(1)] = x[cuda.grid(1) * step]

    x, out = np.zeros(64 * 32, np.float32), np.zeros(64, np.float32)
    place = line_of(copy, "out[cuda.grid(1)] = x")
    assert count_traffic(copy, 1, 64, x, out) == [
        Traffic("x", "reads", place, 64, transactions),
        Traffic("out", "writes", place, 64, 2),
    ]


# The device.


def test_a_simulated_gpu():
    gpu, in_the_pool, x = MAKERS["gpu"]("gpu:1"), pool()["gpu:0"], floats(5)
    assert isinstance(in_the_pool, Gpu) and in_the_pool.simulated == (real_cuda() is None)
    assert gpu.kind == "gpu" and gpu.simulated and gpu.memory == 2**30
    a, out = gpu.put(x), gpu.alloc((5,), "f4")
    gpu.launch(vector_add, 1, 8, a, a, out)
    assert (out.numpy() == x + x).all() and gpu.used == 40
    with pytest.raises(LookupError, match="gpu:1: no program measures its peak"):
        _ = gpu.peak
    assert set(gpu.facts().values()) == {"32 threads, a warp", "no speed: simulated"}
    with pytest.raises(TypeError, match="float16"):
        gpu.put(np.zeros(2, np.float16))
    for dtype in (np.float32, np.float64, np.int64, np.bool_):
        assert gpu.put(np.ones(3, dtype)).numpy().dtype == dtype


def test_buffers_of_another_device_and_freed_ones():
    gpu, cpu = MAKERS["gpu"]("gpu:1"), pool()["cpu:0"]
    here, dead = gpu.put(np.zeros(4)), gpu.put(np.zeros(4))
    gpu.free(dead)
    for bad, text in ((cpu.put(np.zeros(4)), "on cpu:0"), (dead, "freed"), (np.zeros(4), "NumPy")):
        with pytest.raises(GpuError, match=f"gpu:1: vector_add.*{text}"):
            gpu.launch(vector_add, 1, 4, here, bad, here)


@pytest.mark.skipif(real_cuda() is None, reason="there is no GPU here, or no numba.cuda that finds it")
@pytest.mark.parametrize("case", list(right_cases()), ids=by_kernel)
def test_right_kernels_on_a_real_gpu(case):
    kernel, blocks, threads, inputs, expected = case
    gpu = pool()["gpu:0"]
    out = gpu.put(np.zeros(expected.shape, expected.dtype))
    gpu.launch(kernel, blocks, threads, *map(gpu.put, inputs), out)
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-5)

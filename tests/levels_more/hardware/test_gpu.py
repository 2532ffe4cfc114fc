"""The GPU of level 1: right kernels are right in any order, wrong ones are caught in every order, and errors name the
place.
"""

import gc
import random
import threading
import time
from pathlib import Path

import greenlet
import numpy as np
import pytest

from levels_more.hardware import MAKERS, GpuError, count_traffic, cuda, launch_kernel, pool
from levels_more.hardware.gpu.device import Gpu, real_cuda
from levels_more.hardware.gpu.errors import BarrierError, Endless, OutOfBounds, Race, Uninitialised
from levels_more.hardware.gpu.memory import SHARED
from levels_more.hardware.gpu.scheduler import LAUNCH_LIMITS, Traffic

TILE, BLOCK, HALO = 8, 32, 34  # numba wants the size of a shared array as a plain constant
ORDERS = [None, *range(49)]


# Kernels that are right.


def vector_add(a, b, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[i] + b[i]


def strided_add(a, b, out):
    for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
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


def stencil(x, out):
    tile = cuda.shared.array(HALO, np.float32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    tile[t + 1] = x[i]
    if t == 0:
        tile[0] = x[max(i - 1, 0)]
    if t == BLOCK - 1:
        tile[BLOCK + 1] = x[min(i + 1, x.size - 1)]
    cuda.syncthreads()
    out[i] = tile[t] + tile[t + 1] + tile[t + 2]


def row_sum(rows, out):
    """A function for CPUs, which a kernel calls with one row."""
    for i in range(len(rows)):
        total = rows[i, 0]
        for k in range(1, rows.shape[1]):
            total += rows[i, k]
        out[i] = total


def sum_rows(x, out):
    i = cuda.grid(1)
    if i < len(x):
        row_sum(x[i : i + 1], out[i : i + 1])


# Kernels that are wrong.


def sum_before_loaded(x, out):
    part = cuda.shared.array(BLOCK, np.float32)
    t = cuda.threadIdx.x
    part[t] = x[cuda.grid(1)]
    if t < BLOCK // 2:
        part[t] += part[t + BLOCK // 2]
    cuda.syncthreads()
    out[cuda.grid(1)] = part[t]


def sum_without_steps(x, out):
    part = cuda.shared.array(BLOCK, np.float32)
    t = cuda.threadIdx.x
    part[t] = x[cuda.grid(1)]
    cuda.syncthreads()
    stride = BLOCK // 2
    while stride > 0:
        if t < stride:
            part[t] += part[t + stride]
        stride //= 2
    out[cuda.grid(1)] = part[t]


def tiles_overwritten(a, b, out):
    tile = cuda.shared.array((TILE, TILE), np.float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    total = np.float32(0)
    for start in range(0, a.shape[1], TILE):
        tile[y, x] = a[y, start + x]
        cuda.syncthreads()
        for k in range(TILE):  # the next turn loads while others still read
            total += tile[y, k] * b[start + k, x]
    out[y, x] = total


def histogram_plain(values, bins):
    bins[values[cuda.grid(1)]] += 1


def stencil_in_place(x):
    i = cuda.grid(1)
    if 0 < i < x.size - 1:
        x[i] = x[i - 1] + x[i + 1]


def barrier_in_a_branch(x):
    if cuda.threadIdx.x < 16:
        cuda.syncthreads()
    x[cuda.grid(1)] = 1


def two_barriers(x):
    if cuda.threadIdx.x < 16:
        cuda.syncthreads()
    else:
        cuda.syncthreads()
    x[cuda.grid(1)] = 1


def one_past(x, out):
    out[cuda.grid(1)] = x[cuda.grid(1) + 1]


def floats(*shape, seed=0):
    return np.random.default_rng(seed).random(shape, dtype=np.float32)


def right_cases():
    a, b, m, n = floats(100), floats(100, seed=1), floats(16, 16), floats(16, 16, seed=1)
    x, values = floats(4 * BLOCK), np.random.default_rng(2).integers(0, 8, 100)
    around = np.pad(x, 1, "edge")
    yield vector_add, 4, 32, (a, b), a + b
    yield strided_add, 2, 16, (a, b), a + b
    yield matmul, (2, 2), (TILE, TILE), (m, n), m @ n
    yield block_sum, 4, BLOCK, (x,), x.reshape(4, BLOCK).sum(1)
    yield histogram, 4, 32, (values,), np.bincount(values, minlength=8)
    yield stencil, 4, BLOCK, (x,), around[:-2] + x + around[2:]
    yield sum_rows, 2, 16, (m,), m.sum(1)


def wrong_cases():
    x, m, values = floats(2 * BLOCK), floats(8, 16), np.arange(32) % 5
    yield sum_before_loaded, 2, BLOCK, (x, np.zeros_like(x)), Race
    yield sum_without_steps, 2, BLOCK, (x, np.zeros_like(x)), Race
    yield tiles_overwritten, 1, (TILE, TILE), (m, m.T.copy(), np.zeros((8, 8), "f4")), Race
    yield histogram_plain, 4, 8, (values, np.zeros(5, np.int64)), Race
    yield stencil_in_place, 2, BLOCK, (x,), Race
    yield barrier_in_a_branch, 1, 32, (x,), BarrierError
    yield two_barriers, 1, 32, (x,), BarrierError
    yield one_past, 2, BLOCK, (x, np.zeros_like(x)), OutOfBounds


def by_kernel(case):
    return case[0].__name__


@pytest.mark.parametrize("case", list(right_cases()), ids=by_kernel)
def test_right_kernels_in_50_orders(case):
    kernel, blocks, threads, inputs, expected = case
    for order in ORDERS:
        out = np.zeros(expected.shape, expected.dtype)
        launch_kernel(kernel, blocks, threads, *inputs, out, order=order)
        np.testing.assert_allclose(out, expected, rtol=1e-5)


@pytest.mark.parametrize("case", list(wrong_cases()), ids=by_kernel)
def test_wrong_kernels_are_caught_in_50_orders(case):
    kernel, blocks, threads, arguments, error = case
    for order in ORDERS:
        with pytest.raises(error):
            launch_kernel(kernel, blocks, threads, *(array.copy() for array in arguments), order=order)


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


def line_of(kernel, text):
    """`line 12 of kernel: the text of that line`, for the only line that holds the text."""
    lines = Path(__file__).read_text(encoding="utf-8").split("\n")
    first = kernel.__code__.co_firstlineno
    at = next(n for n in range(first, len(lines) + 1) if text in lines[n - 1])
    return f"line {at} of {kernel.__name__}: {lines[at - 1].strip()}"


@pytest.mark.parametrize("order", [None, 0, 1, 2])
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
def test_out_of_bounds_names_thread_index_and_line():
    text = message(OutOfBounds, one_past, 1, 8, np.zeros(8), np.zeros(8))
    assert text == "x[8] is outside of shape (8,)\n  thread 7 of block 0 in " + line_of(
        one_past, "out[cuda.grid(1)] = x"
    )


@pytest.mark.quick
def test_a_negative_index_is_out_of_bounds():
    def before(x):
        x[cuda.grid(1) - 1] = 1

    text = message(OutOfBounds, before, 1, 8, np.zeros(8))
    assert text.startswith("x[-1] is outside of shape (8,)\n  thread 0 of block 0 in ")


def test_out_of_bounds_in_two_dimensions():
    def beyond(x):
        column, row = cuda.grid(2)
        x[row, column] = 1

    text = message(OutOfBounds, beyond, (2, 1), (2, 2), np.zeros((2, 3)))
    assert text.startswith("x[0, 3] is outside of shape (2, 3)\n  thread (1, 0) of block 1 in ")


@pytest.mark.parametrize("bounds", [(-1, 2), (3, 5), (3, 2)])
def test_rows_beyond_the_end(bounds):
    def slices(x):
        x[bounds[0] : bounds[1]]

    assert f"x[{bounds[0]}:{bounds[1]}] is outside of shape (4, 2)" in message(
        OutOfBounds, slices, 1, 1, np.zeros((4, 2))
    )


def test_rows_are_views():
    def fill(x):
        row = x[cuda.grid(1)]
        rows = x[cuda.grid(1) : cuda.grid(1) + 1]
        assert (row.shape, rows.shape, len(rows), rows.ndim, rows.size) == ((3,), (1, 3), 1, 2, 3)
        assert (rows.dtype, rows.itemsize) == (np.float32, 4) and type(row[0]) is np.float32
        row[1] = 7
        rows[0, 2] = rows[0, 1] + 1

    x = np.zeros((4, 3), np.float32)
    launch_kernel(fill, 2, 2, x)
    assert (x == [0, 7, 8]).all()


def test_a_race_through_two_views():
    def clash(x):
        if cuda.grid(1) == 0:
            x[1][1] = 1
        else:
            x[0:2][1, 1]

    for order in ORDERS[:8]:
        assert "used by two threads" in message(Race, clash, 1, 2, np.zeros((2, 2)), order=order)


@pytest.mark.parametrize("space", ["shared", "local"])
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_memory_never_written_is_not_read(space, dtype):
    def unwritten(out):
        box = getattr(cuda, space).array(4, dtype)
        out[0] = box[2]

    text = message(Uninitialised, unwritten, 1, 1, np.zeros(1))
    assert text.startswith(f"{space}[2] was never written\n  thread 0 of block 0 reads it in line ")


def test_shared_memory_is_new_in_each_block():
    def leftover(out):
        box = cuda.shared.array(1, np.float32)
        if cuda.blockIdx.x == 0:
            box[0] = 1
        out[cuda.blockIdx.x] = box[0]

    assert "of block 1" in message(Uninitialised, leftover, 2, 1, np.zeros(2))


def test_what_nobody_wrote_is_blamed_for_what_follows():
    def follow(x):
        box = cuda.shared.array(1, np.int64)
        x[box[0]] = 1

    assert "shared[0] was never written" in message(Uninitialised, follow, 1, 1, np.zeros(4))


def test_two_arrays_of_one_line_are_two():
    def turn(x):
        one, two = cuda.shared.array(1, np.float32), cuda.shared.array(1, np.float32)
        one[0], two[0] = 1, 2
        x[0] = one[0]

    x = np.zeros(1)
    launch_kernel(turn, 1, 1, x)
    assert x[0] == 1


def test_too_much_shared_memory():
    def greedy(x):
        cuda.shared.array(SHARED // 4 + 1, np.float32)

    assert "49,156 bytes of shared memory" in message(GpuError, greedy, 1, 1, np.zeros(1))


def test_a_barrier_that_some_threads_leave_out():
    text = message(BarrierError, barrier_in_a_branch, 1, 32, np.zeros(32))
    waits = "waits at " + line_of(barrier_in_a_branch, "cuda.sync")
    assert text == f"thread 0 of block 0 {waits}\n  but thread 16 of block 0 has left the kernel"


def test_two_different_barriers():
    text = message(BarrierError, two_barriers, 1, 32, np.zeros(32))
    assert text.count("waits at") == 2 and text.count("cuda.syncthreads()") == 2


@pytest.mark.parametrize("index", [True, 1.0, None, (1, 1), "0", np.float32(1)])
def test_what_is_no_index(index):
    def odd(x):
        x[index]

    assert "whole number" in message(GpuError, odd, 1, 1, np.zeros(4))


@pytest.mark.parametrize("index", [slice(0, 2), 0])
def test_a_thread_writes_one_element_at_a_time(index):
    def fill(x):
        x[index] = 1

    message(GpuError, fill, 1, 1, np.zeros((4, 4)))


def test_an_error_of_python_names_the_thread():
    def divide(x):
        cuda.syncthreads()
        x[cuda.grid(1)] = 1 // (cuda.grid(1) - 3)

    text = message(GpuError, divide, 1, 8, np.zeros(8))
    assert text.startswith("ZeroDivisionError: ") and "\n  thread 3 of block 0 in line " in text
    assert text.endswith("of divide: x[cuda.grid(1)] = 1 // (cuda.grid(1) - 3)")


def endless_without_access(x):
    while True:
        pass


def endless_with_barriers(x):
    while True:
        cuda.syncthreads()


def endless_reading(x):
    while x[0] == 0:
        pass


@pytest.mark.parametrize("kernel", [endless_without_access, endless_with_barriers, endless_reading])
def test_nothing_hangs(kernel, monkeypatch):
    monkeypatch.setitem(LAUNCH_LIMITS, "seconds", 0.2)
    start = time.monotonic()
    text = message(Endless, kernel, 1, 4, np.zeros(1))
    assert f"{kernel.__name__} does not end within 0.2 seconds" in text and f" of {kernel.__name__}: " in text
    assert time.monotonic() - start < 5
    launch_kernel(vector_add, 1, 8, *np.zeros((3, 8)))  # and the next launch runs


def test_an_error_leaves_no_greenlets_behind():
    def alive():
        gc.collect()
        return sum(isinstance(thing, greenlet.greenlet) and bool(thing) for thing in gc.get_objects())

    launch_kernel(block_sum, 1, BLOCK, floats(BLOCK), np.zeros(1))
    before = alive()
    errors = []  # kept, with all that their tracebacks hold
    for kernel, arguments in ((sum_without_steps, 2), (barrier_in_a_branch, 1)) * 3:
        with pytest.raises(GpuError) as caught:
            launch_kernel(kernel, 1, BLOCK, *[floats(BLOCK) for _ in range(arguments)])
        errors.append(caught.value)
    assert alive() <= before


def test_calls_outside_of_a_kernel():
    for call in (lambda: cuda.grid(1), cuda.syncthreads, lambda: cuda.shared.array(1, np.float32)):
        with pytest.raises(GpuError, match="no kernel is running"):
            call()
    assert not hasattr(cuda, "nonsense")


def test_a_kernel_launches_no_kernel():
    def nested(x):
        launch_kernel(vector_add, 1, 1, x, x, x)

    assert "nested is still running" in message(GpuError, nested, 1, 1, np.zeros(1))


@pytest.mark.parametrize("blocks, threads", [(0, 1), (1, 0), ((1, 0), 1), (1, -1), (1.5, 1), ((1,) * 4, 1), ((), 1)])
def test_a_launch_of_no_threads(blocks, threads):
    assert "whole numbers from 1 to" in message(GpuError, vector_add, blocks, threads, *np.zeros((3, 8)))


@pytest.mark.parametrize("threads", [1025, (32, 33), (2, 2, 257)])
def test_too_many_threads(threads):
    assert "at most 1,024" in message(GpuError, vector_add, 1, threads, *np.zeros((3, 8)))


def test_wrong_arguments():
    assert "takes a, b, out" in message(GpuError, vector_add, 1, 1, np.zeros(1), np.zeros(1))
    assert "b is list" in message(GpuError, vector_add, 1, 1, np.zeros(1), [1.0], np.zeros(1))
    assert "b is ndarray of object" in message(GpuError, vector_add, 1, 1, np.zeros(1), np.array([None]), np.zeros(1))


# Races, in detail.


def test_the_detector_agrees_with_comparing_all_pairs():
    """Random programs: what is remembered of each element finds a race exactly if some pair of accesses races."""
    dice, racy_programs = random.Random(0), 0
    for trial in range(400):
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
            try:
                launch_kernel(lambda x: play(x), blocks, threads, np.zeros(cells), order=order)
                found = False
            except Race:
                found = True
            assert found == racy, program
    assert 100 < racy_programs < 300


def test_one_array_given_twice_is_one_array():
    def shift(x, out):
        i = cuda.grid(1)
        if i > 0:
            out[i] = x[i - 1]

    x = np.zeros(8)
    launch_kernel(shift, 1, 8, x, np.zeros(8))
    launch_kernel(shift, 1, 4, x[:4], x[4:])
    message(Race, shift, 1, 8, x, x)


# The rest of `cuda`.


def test_places_in_three_dimensions():
    def where(out):
        x, y, z = cuda.grid(3)
        width, height, depth = cuda.gridsize(3)
        out[x, y, z] += 1 + x + width * (y + height * z) + depth * (cuda.blockDim.y == 3) + 0 * cuda.gridDim.z

    out = np.zeros((4, 3, 4))
    launch_kernel(where, (2, 1, 2), (2, 3, 2), out, order=1)
    assert sorted(out.ravel()) == list(range(5, 53))


def test_a_local_array_is_the_threads_own():
    def swap(x):
        own, i = cuda.local.array(2, np.float32), cuda.grid(1)
        own[0], own[1] = x[i, 1], x[i, 0]
        cuda.syncthreads()
        x[i, 0], x[i, 1] = own[0], own[1]

    x = floats(8, 2)
    expected = x[:, ::-1].copy()
    launch_kernel(swap, 2, 4, x, order=3)
    assert (x == expected).all()


def test_atomics_return_the_old_value():
    def count(seen, total, top, low):
        seen[cuda.atomic.add(total, 0, 1)] = 1
        cuda.atomic.max(top, 0, cuda.grid(1))
        cuda.atomic.min(low, 0, cuda.grid(1))

    seen, total, top, low = np.zeros(32), np.zeros(1, np.int64), np.zeros(1, np.int64), np.full(1, 99)
    launch_kernel(count, 2, 16, seen, total, top, low, order=4)
    assert seen.all() and (total[0], top[0], low[0]) == (32, 31, 0)


def test_float32_stays_float32_and_nothing_warns(recwarn):
    def divide(x, out):
        out[0] = x[0] / x[1]
        assert type(x[0] * x[0] + x[1]) is np.float32

    out = np.zeros(1, np.float32)
    launch_kernel(divide, 1, 1, np.array([1, 0], np.float32), out)
    assert out[0] == np.inf and not recwarn.list


def test_strided_arrays_are_written_in_place():
    out = np.zeros((8, 2))
    launch_kernel(vector_add, 1, 8, np.ones(8), np.ones(8), out[:, 1])
    assert (out == [0, 2]).all()


def test_launches_from_another_thread_and_another_greenlet():
    """Greenlets that wait for work belong to one thread of the computer, and return to who called them last."""
    done = []

    def work():
        out = np.zeros(1, np.float32)
        launch_kernel(block_sum, 1, BLOCK, np.ones(BLOCK, np.float32), out)
        done.append(out[0])

    work()
    for run in (threading.Thread(target=work), None):
        run.start() or run.join() if run else greenlet.greenlet(work).switch()
    work()
    assert done == [BLOCK] * 4


# Memory transactions.


@pytest.mark.parametrize("step, transactions", [(1, 2), (2, 4), (8, 16), (32, 64)])
def test_transactions_of_a_warp(step, transactions):
    def copy(x, out):
        out[cuda.grid(1)] = x[cuda.grid(1) * step]

    x, out = np.zeros(64 * 32, np.float32), np.zeros(64, np.float32)
    place = line_of(copy, "out[cuda.grid(1)] = x")
    assert count_traffic(copy, 1, 64, x, out) == [
        Traffic("x", "reads", place, 64, transactions),
        Traffic("out", "writes", place, 64, 2),
    ]


def test_all_reading_one_element_is_one_transaction_and_shared_memory_is_none():
    def spread(x, out):
        box = cuda.shared.array(1, np.float32)
        if cuda.threadIdx.x == 0:
            box[0] = x[0]
        cuda.syncthreads()
        out[cuda.grid(1)] = box[0] + x[1]

    rows = count_traffic(spread, 2, 32, np.zeros(2, np.float32), np.zeros(64, np.float32))
    assert [(row.array, row.accesses, row.transactions) for row in rows] == [("x", 2, 2), ("x", 64, 2), ("out", 64, 2)]


def test_a_loop_goes_to_memory_in_every_turn():
    def walk(x):
        for _ in range(3):
            x[cuda.grid(1)]

    (row,) = count_traffic(walk, 1, 32, np.zeros(32, np.float32))
    assert (row.accesses, row.transactions) == (96, 3)


# The device.


def test_the_pool_has_a_gpu():
    gpu = pool()["gpu:0"]
    assert isinstance(gpu, Gpu) and gpu.kind == "gpu" and gpu.simulated == (real_cuda() is None)
    x = floats(5)
    a, out = gpu.put(x), gpu.alloc((5,), "f4")
    gpu.launch(vector_add, 1, 8, a, a, out)
    assert (out.numpy() == x + x).all()
    assert gpu.used >= 40 and gpu.memory


def test_a_simulated_gpu():
    gpu = MAKERS["gpu"]("gpu:1")
    assert gpu.simulated and gpu.memory == 2**30
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


# Speed, beside a plain loop of this machine.


# The way to a real GPU, as far as it goes without one: numba's own simulator stands in for the driver.

"""Time has a floor: how fast this machine loads, computes and calls, measured by programs of our own."""

# Built from 01_hardware.ipynb: edit there, then run its last cell.

import functools
import statistics
import sys
import time

import numpy as np

from .assembler import Assembler, Index
from .device import LINE, MEASURES, host_lanes


def seconds(run, repeats=7):
    """The median time of `run` in seconds: this thread's own work; on Windows, whose clock for that is coarse, all time."""
    clock, times = time.perf_counter if sys.platform == "win32" else time.thread_time, []
    for _ in range(repeats):
        start = clock()
        run()
        times.append(clock() - start)
    return statistics.median(times)


@functools.cache
def chase_program(steps):
    """Walk along a chain of row numbers."""
    a = Assembler("chase", "f8")
    chain, start, out = a.array("chain", "n", rows_of="n"), a.array("start", 1, rows_of="n"), a.array("out", 1)
    slot, first = a.slot("i64"), a.load(start, 0)
    a.emit(f"store i64 {first.register}, ptr {slot}")
    with a.loop(steps):
        here = Index(a, a.write(f"load i64, ptr {slot}"), "n")
        a.emit(f"store i64 {a.load(chain, here).register}, ptr {slot}")
    a.store(a.count(Index(a, a.write(f"load i64, ptr {slot}"), "n")), out, 0)
    return a.assemble()


def measure_latency(device, nbytes, steps=2**15):
    """Seconds of one load that waits for the one before, at random places in `nbytes` of memory."""
    draw, stride = np.random.default_rng(0), LINE // 8
    order = draw.permutation(nbytes // LINE) * stride
    chain = np.zeros(nbytes // 8, np.int64)
    chain[order] = np.roll(order, -1)
    chain, out, program = device.put(chain), device.alloc((1,), "f8"), chase_program(steps)
    starts = [device.put(order[i : i + 1]) for i in draw.integers(0, len(order), 7)]  # not twice the same way
    walks = iter([program.bind(chain=chain, start=start, out=out) for start in starts])
    return seconds(lambda: next(walks)()) / steps


@functools.cache
def read_program(sums=8):
    """Add up an array, several times over, in independent sums."""
    a = Assembler("read", "f4")
    x, out = a.array("x", "blocks", sums, a.lanes), a.array("out", "passes")  # its length says how often
    with a.loop(a.lanes, a.lanes) as lane:  # one turn: it only says which lane
        totals = [a.sum() for _ in range(sums)]
        with a.loop("passes"), a.loop("blocks") as i:
            for k, total in enumerate(totals):
                total += a.load(x, i, k, lane)
        a.store(sum((total.total() for total in totals), 0.0), out, 0)
    return a.assemble()


def measure_bandwidth(device, nbytes=2**28):
    """Bytes a second that one core reads, over and over, from that many bytes of memory (default: beyond the caches)."""
    program, passes = read_program(), max(1, 2**27 // nbytes)
    _, sums, lanes = program.arrays["x"].shape
    x = device.put(np.ones((nbytes // 4 // sums // lanes, sums, lanes), "f4"))
    return passes * x.spec.nbytes / seconds(program.bind(x=x, out=device.alloc((passes,), "f4")))


MEASURES["bandwidth"] = measure_bandwidth


@functools.cache
def peak_program(sums, turns):
    """Multiply and add in every lane of so many independent sums, without touching memory."""
    a = Assembler("peak", "f4")
    factor, out = a.load(a.array("factor", 1), 0), a.array("out", 1)
    totals = [a.sum() for _ in range(sums)]
    with a.loop(turns):
        for total in totals:
            total += total.value() * factor  # the numbers stay 0.0: only the time matters
    a.store(sum((total.total() for total in totals), 0.0), out, 0)
    return a.assemble()


def measure_sums(device, sums, turns=200_000):
    """float32 operations a second of one core that keeps so many independent sums going."""
    program, one = peak_program(sums, turns), device.put(np.ones(1, "f4"))
    return 2 * sums * host_lanes() * turns / seconds(program.bind(factor=one, out=device.alloc((1,), "f4")))


MEASURES["peak"] = lambda device: max(measure_sums(device, sums) for sums in (8, 12, 16, 24))


def measure_launch(device, calls=1000):
    """Seconds that one call of a bound program takes when there is nothing to do."""
    a = Assembler("nothing", "f4")
    a.store(0.0, a.array("out", 1), 0)
    call = a.assemble().bind(out=device.alloc((1,), "f4"))
    return seconds(lambda: [call() for _ in range(calls)]) / calls


MEASURES["launch_time"] = measure_launch

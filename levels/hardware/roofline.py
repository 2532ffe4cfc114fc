"""Measurements for the roofline: this machine's peak, bandwidth and launch time."""

# Built from 01_hardware.ipynb: edit there, then run its last cell.

import statistics
import sys
import time
from timeit import repeat

import numpy as np

from levels.support.machine import host_lanes

from .assembler import Assembler
from .device import MEASURES


def seconds(run, repeats=7):
    """Return the median seconds of `run` on this thread's clock (on Windows, where it is coarse, the wall clock)."""
    clock = time.perf_counter if sys.platform == "win32" else time.thread_time
    return statistics.median(repeat(run, timer=clock, repeat=repeats, number=1))


def _measure_turn(device, sums, turns=200_000):
    """Measure the seconds for one multiply-add on each of `sums` independent sums, in all lanes, without memory."""
    a = Assembler("peak", "f4")
    factor, out = a.load(a.array("factor", 1), 0), a.array("out", 1)
    totals = [a.sum() for _ in range(sums)]
    with a.loop(a.lanes, a.lanes), a.loop(turns):  # all lanes at once, many times
        for total in totals:
            total += total.value() * factor  # the numbers stay 0.0: only the time matters
    a.store(sum((total.total() for total in totals), 0.0), out, 0)
    call = a.assemble().bind(factor=device.put(np.ones(1, "f4")), out=device.alloc((1,), "f4"))
    return seconds(call) / turns


def _measure_bandwidth(device, nbytes=2**28):
    """Measure the bytes per second that one core reads from memory, not from caches."""
    x = device.put(np.ones(nbytes // 4, "f4"))
    return nbytes / seconds(x.data.max)  # NumPy's `max` reads each number once, in lanes


def _measure_launch(device, calls=1000):
    """Measure the seconds that one call of a bound, almost empty program takes."""
    a = Assembler("nothing", "f4")
    a.store(0.0, a.array("out", 1), 0)
    call = a.assemble().bind(out=device.alloc((1,), "f4"))
    return seconds(lambda: [call() for _ in range(calls)]) / calls


MEASURES["peak"] = lambda device: max(2 * host_lanes() * n / _measure_turn(device, n) for n in (8, 12, 16, 24))
MEASURES["bandwidth"] = _measure_bandwidth
MEASURES["launch_time"] = _measure_launch

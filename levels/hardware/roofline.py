"""Time has a floor: how fast this machine computes and moves data, measured."""

# Built from notebooks/01_hardware.ipynb: edit there, then run its last cell.

import statistics
import time

import numpy as np

from .assembler import Assembler
from .device import MEASURES


def seconds(run, repeats=7):
    """The median time of `run` in seconds: of this thread's own work, where the system's clock for that is fine enough."""
    fine = time.get_clock_info("thread_time").resolution < 1e-6
    clock, times = time.thread_time if fine else time.perf_counter, []
    for _ in range(repeats):
        start = clock()
        run()
        times.append(clock() - start)
    return statistics.median(times)


def measure_peak(device, turns=400_000, chains=12):
    """float32 operations a second of one core: a multiplication and an addition in every lane of every chain."""
    a = Assembler("peak", "f4")
    out, factor = a.array("out", 1), a.load(a.array("factor", 1), 0)
    sums = [a.sum() for _ in range(chains)]
    with a.loop(turns):
        for s in sums:
            s += s.value() * factor
    a.store(sum((s.total() for s in sums), 0.0), out, 0)
    program = a.assemble()
    buffers = dict(out=device.alloc((1,), "f4"), factor=device.put(np.ones(1, "f4")))
    return 2 * chains * a.lanes * turns / seconds(lambda: program(**buffers))


def measure_bandwidth(device, nbytes=2**26):
    """Bytes a second, counting reads and writes, of copying a block too large for the caches."""
    source, target = np.ones(nbytes, "u1"), np.zeros(nbytes, "u1")
    return 2 * nbytes / seconds(lambda: np.copyto(target, source))


MEASURES.update(peak=measure_peak, bandwidth=measure_bandwidth)

"""Measures the machine's peak, bandwidth and launch time. Notebook 01 uses it; more/01_measuring explains it."""

import ctypes
import functools
import statistics
import sys
import time
from timeit import repeat

import numpy as np

from .machine import host_lanes, machine_code


def seconds(run, repeats=7):
    """Return the median seconds of `run` on this thread's clock (on Windows, where it is coarse, the wall clock)."""
    clock = time.perf_counter if sys.platform == "win32" else time.thread_time
    return statistics.median(repeat(run, timer=clock, repeat=repeats, number=1))


def _launcher(text):
    """Return a function that runs a program (its text) on a block of memory."""
    owner, address = machine_code(text)
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)
    run.owner = owner
    return functools.partial(run, (ctypes.c_float * 256)())


def _turns_text(sums, turns, kind, how):
    """Return a program that multiplies and adds `turns` times into each of `sums` registers."""
    each = range(sums)
    lines = [f"%factor = load {kind}, ptr %block, align 4", "br label %loop", "loop:"]
    lines += ["%i = phi i64 [0, %entry], [%next, %loop]"]
    lines += [f"%s{n} = phi {kind} [zeroinitializer, %entry], [%t{n}, %loop]" for n in each]
    lines += [f"%p{n} = fmul {how} {kind} %s{n}, %factor" for n in each]
    lines += [f"%t{n} = fadd {how} {kind} %p{n}, %s{n}" for n in each]
    lines += ["%next = add i64 %i, 1", f"%more = icmp slt i64 %next, {turns}"]
    lines += ["br i1 %more, label %loop, label %end", "end:"]
    lines += [f"store volatile {kind} %t{n}, ptr %block, align 4" for n in each]  # volatile: no sum is left out
    return "\n".join(["define void @program(ptr %block) {", "entry:", *lines, "ret void", "}", ""])


def turn_time(sums, turns=200_000, one_lane=False):
    """Return the seconds for one multiply-add on each of `sums` independent sums, without memory.

    It uses all lanes of float32, fused; or one lane of float64, where the product and the sum round on their own.
    """
    kind, how = ("double", "") if one_lane else (f"<{host_lanes()} x float>", "contract")
    return seconds(_launcher(_turns_text(sums, turns, kind, how))) / turns


def _peak(device):
    """Return the float32 operations per second of one core, with as many sums as it takes to hide the time of one."""
    return max(2 * host_lanes() * sums / turn_time(sums) for sums in (8, 12, 16, 24))


@functools.cache
def lane_peak():
    """Return the operations per second of one core that computes with one float64 at a time, as notebook 01's programs."""
    return max(2 * sums / turn_time(sums, one_lane=True) for sums in (8, 12, 16, 24))


def _bandwidth(device, nbytes=2**27):
    """Return the bytes per second that one core reads from memory, not from caches."""
    x = np.ones(nbytes // 4, "f4")
    return nbytes / seconds(x.max)  # NumPy's `max` reads each number once, in lanes


def _launch_time(device, calls=1000):
    """Return the seconds of one call of an almost empty program."""
    call = _launcher("define void @program(ptr %block) {\n  store float 0.0, ptr %block\n  ret void\n}\n")
    return seconds(lambda: [call() for _ in range(calls)]) / calls


MEASURES = {("cpu", "peak"): _peak, ("cpu", "bandwidth"): _bandwidth, ("cpu", "launch_time"): _launch_time}


@functools.cache
def speed_of(device, what):
    """Return a speed, measured on first use. Raises LookupError if nothing measures it on this kind of device."""
    if (device.kind, what) not in MEASURES:
        raise LookupError(f"{device.name}: no program measures its {what}")
    return MEASURES[device.kind, what](device)

"""Measurements beyond level 1's three: memory latency, and reading from caches; and a table of the pool's devices."""

import math
import os

import numpy as np

from levels.hardware import Assembler, Index, Value
from levels.support.machine import host_lanes
from levels.support.measure import MEASURES, seconds, speed_of
from levels_more.checks import expect
from levels_more.checks import number as check_number
from levels_more.hardware.lanes import Lanes
from levels_more.hardware.locks import once

_LINE = 64  # bytes of a cache line, on most processors


def amount(number, unit, step=1000):
    """A number with its unit, as text with three digits: 1.25 GB/s, 310 ns; with step=1024, 32 KiB."""
    check_number("amount", number, 0.0)
    expect(isinstance(unit, str) and number < math.inf, "amount", (number, unit), "a finite number and a unit")
    power = min(4, max(-3, math.floor(math.log(number, step) + 1e-9))) if number else 0
    return f"{number / step**power:.3g} {('', 'K' if step == 1024 else 'k', 'M', 'G', 'T', 'n', 'µ', 'm')[power]}{unit}"


class Pool(dict):
    """Devices by name, as `pool()` returns them. It prints as a table, with a column for each device."""

    def __repr__(self):
        columns = [_column(device) for _, device in sorted(self.items())]
        widths = [2 + max(map(len, column.values())) for column in columns]
        names = dict.fromkeys(name for column in columns for name in column)
        rows = (
            [column.get(name, "").ljust(width) for column, width in zip(columns, widths, strict=True)] for name in names
        )
        return "\n".join(f"{name:12}{''.join(row)}".rstrip() for name, row in zip(names, rows, strict=True))


def _column(device):
    """A device's column of the table: {row name: text}. A device may have a method `facts` for the last rows."""
    return {
        "": device.name,
        "kind": device.kind + " (simulated)" * device.simulated,
        "memory": amount(device.memory, "iB", 1024) if device.memory else "unknown",
        "in use": f"{device.used:,} B",
    } | (device.facts() if hasattr(device, "facts") else _facts(device))


def _facts(device):
    """The last rows of the table for a device without `facts`, such as the computer's own CPUs."""

    def measured(what, unit):
        known = (device.kind, what) in MEASURES
        return f"{amount(speed_of(device, what), unit)}, measured" if known else "not measured yet"

    return {
        "CPUs": str(os.cpu_count() or "unknown"),
        "lanes": f"{host_lanes()} float32",
        "peak of one": measured("peak", "flop/s"),
        "bandwidth": measured("bandwidth", "B/s"),
        "a launch": measured("launch_time", "s"),
    }


@once
def chase_program(steps):
    """The program that follows row numbers chain[n] from start[1] for `steps` loads; it stores the last in out[1]."""
    a = Assembler("chase", "f8")
    chain = a.array("chain", "n", rows_of="n")
    start = a.array("start", 1, rows_of="n")
    out = a.array("out", 1)
    slot = a.slot("i64")
    first = a.load(start, 0)
    a.lines.append(f"store i64 {first.register}, ptr {slot}")
    with a.loop(steps):
        here = Index(a, a.write(f"load i64, ptr {slot}"), "n")
        a.lines.append(f"store i64 {a.load(chain, here).register}, ptr {slot}")
    last = a.write(f"load i64, ptr {slot}")
    a.store(Value(a, a.write(f"sitofp i64 {last} to double")), out, 0)
    return a.assemble()


def measure_latency(device, nbytes, steps=2**15):
    """Seconds per load when each load waits for the one before, at random places in `nbytes` of a CPU's memory."""
    draw = np.random.default_rng(0)
    stride = _LINE // 8
    order = draw.permutation(nbytes // _LINE) * stride
    chain = np.zeros(nbytes // 8, np.int64)
    chain[order] = np.roll(order, -1)
    chain = device.put(chain)
    out = device.alloc((1,), "f8")
    program = chase_program(steps)
    starts = [device.put(order[i : i + 1]) for i in draw.integers(0, len(order), 7)]  # a new path each time
    walks = iter([program.bind(chain=chain, start=start, out=out) for start in starts])
    return seconds(lambda: next(walks)()) / steps


@once
def read_program(sums=8):
    """The program that adds up x[blocks, sums, lanes] in independent sums, as many times as out[passes] is long."""
    a = Lanes("read", "f4", over=())
    x = a.array("x", "blocks", sums, a.lanes)
    out = a.array("out", "passes")
    totals = [a.sum() for _ in range(sums)]
    # the outermost loop has one iteration: it only provides the lane index
    with a.loop(a.lanes, a.lanes) as lane, a.loop("passes"), a.loop("blocks") as i:
        for k, total in enumerate(totals):
            total += a.load(x, i, k, lane)
    a.store(sum((total.total() for total in totals), 0.0), out, 0)
    return a.assemble()


def measure_reading(device, nbytes=2**28):
    """Bytes per second that one CPU core reads, from `nbytes` again and again (default: more than the caches hold)."""
    program = read_program()
    passes = max(1, 2**27 // nbytes)
    _, sums, lanes = program.arrays["x"].shape
    x = device.put(np.ones((nbytes // 4 // sums // lanes, sums, lanes), "f4"))
    return passes * x.spec.nbytes / seconds(program.bind(x=x, out=device.alloc((passes,), "f4")))

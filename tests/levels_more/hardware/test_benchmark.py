"""What levels_more measures beyond level 1's three, and the table of the pool's devices."""

import pytest

from course.reader.figures import host_caches
from levels.hardware import Device
from levels.support.machine import host_lanes
from levels.support.measure import MEASURES
from levels_more.hardware import pool
from levels_more.hardware.benchmark import Pool, amount, measure_latency

CPU = pool()["cpu:0"]
KIB, MIB = 2**10, 2**20
SPEEDS = {"peak": 1e9, "bandwidth": 1e8, "launch_time": 2e-6}


def test_latency_grows_with_the_memory_that_is_walked():
    caches = host_caches()
    beyond = min(64 * MIB, 4 * max(caches.values(), default=32 * MIB))
    near, far = measure_latency(CPU, 16 * KIB), measure_latency(CPU, beyond)
    print(f"a load takes {amount(near, 's')} from 16 KiB, {amount(far, 's')} from {amount(beyond, 'iB', 1024)}")
    assert 2e-10 < near < 1e-8 and 4 * near < far < 1e-6
    if "L2" in caches:
        assert near < measure_latency(CPU, caches["L2"] // 2) < far


@pytest.fixture
def device(monkeypatch):
    """A device of round numbers, the only one of its kind."""
    for what, speed in SPEEDS.items():
        monkeypatch.setitem(MEASURES, ("round", what), lambda device, speed=speed: speed)
    return Device("round:0", 2**20, simulated=True)


def table(device):
    """What the pool prints of this device, by the first word of each row."""
    head, *rows = repr(Pool({device.name: device})).splitlines()
    return {row.split()[0]: row[head.index(device.name) :] for row in rows}


def test_the_pool_says_what_is_measured_and_what_is_unknown(device):
    rows = table(device)
    expected = {"peak": "1 Gflop/s, measured", "bandwidth": "100 MB/s, measured", "a": "2 µs, measured"}
    assert rows.items() >= expected.items() and rows["kind"] == "round (simulated)"
    assert rows["memory"] == "1 MiB" and rows["lanes"] == f"{host_lanes()} float32"
    device.memory = None
    rows = table(device)
    assert rows["memory"] == "unknown" and rows.items() >= expected.items()


def test_the_pool_prints_before_anything_can_be_measured(device, monkeypatch):
    for what in SPEEDS:
        monkeypatch.delitem(MEASURES, ("round", what))
    rows = table(device)
    assert rows["peak"] == rows["bandwidth"] == rows["a"] == "not measured yet"
    with pytest.raises(LookupError, match="round:0: no program measures its peak"):
        device.roofline(1, 1)


@pytest.mark.parametrize(
    "number, unit, text",
    [(0, "B", "0 B"), (1, "s", "1 s"), (1.25e9, "B/s", "1.25 GB/s"), (310e-9, "s", "310 ns"), (1e-6, "s", "1 µs")],
)
def test_amounts_have_three_digits(number, unit, text):
    assert amount(number, unit) == text

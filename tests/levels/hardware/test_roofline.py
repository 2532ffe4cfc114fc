"""What level 1 measures: the same as a C compiler's loop, in the right order, and printed as what it is."""

import ctypes
import shutil
import statistics
import subprocess
import sys
import time

import pytest

from course.figures import host_caches
from levels.hardware import Device, pool
from levels.hardware.device import MEASURES
from levels.hardware.roofline import _measure_bandwidth, _measure_launch
from levels.support.machine import host_lanes
from levels_more.hardware.benchmark import Pool, amount, measure_latency, measure_reading

CPU = pool()["cpu:0"]
KIB, MIB = 2**10, 2**20


@pytest.fixture(scope="module", autouse=True)
def soon():
    """All of this file together may compute for 15 seconds."""
    start = time.process_time()
    yield
    assert time.process_time() - start < 15


C_LOOP = """
typedef float lanes __attribute__((vector_size(4 * LANES)));
#define LOOP(K) float sums_##K(long turns, float factor) { \\
    lanes sums[K], all = {0}; \\
    for (int k = 0; k < K; k++) sums[k] = all + (float)k; /* else they are one */ \\
    for (long turn = 0; turn < turns; turn++) { \\
        _Pragma("GCC unroll 32") \\
        for (int k = 0; k < K; k++) sums[k] += sums[k] * factor; \\
    } \\
    for (int k = 0; k < K; k++) all += sums[k]; \\
    return all[0]; \\
}
LOOP(8) LOOP(12) LOOP(16) LOOP(24)
"""


def c_peak(folder):
    """A function that measures the flop/s of the C compiler's loop, with the most lanes and the best number of sums."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None or sys.platform == "win32":
        pytest.skip("no C compiler")
    source, library, lanes, turns = folder / "peak.c", folder / "peak.so", host_lanes(), 200_000
    source.write_text(C_LOOP)
    options = ["-O3", "-march=native", "-ffp-contract=fast", "-shared", "-fPIC", f"-DLANES={lanes}"]
    done = subprocess.run([compiler, *options, "-o", library, source], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    loops = {sums: ctypes.CDLL(str(library))[f"sums_{sums}"] for sums in (8, 12, 16, 24)}

    def flops(sums):
        times = []
        for _ in range(7):
            start = time.thread_time()
            loops[sums](ctypes.c_long(turns), ctypes.c_float(0.0))
            times.append(time.thread_time() - start)
        return 2 * sums * lanes * turns / statistics.median(times)

    return lambda: max(map(flops, loops))


def test_the_peak_is_what_a_c_compiler_reaches(tmp_path):
    compiled, ratios = c_peak(tmp_path), []
    for _ in range(3):  # the machine is shared
        ours, theirs = zip(*((MEASURES["peak"](CPU), compiled()) for _ in range(7)), strict=True)
        ours, theirs = statistics.median(ours), statistics.median(theirs)
        ratios.append(ours / theirs)
        print(f"peak {amount(ours, 'flop/s')}, in C {amount(theirs, 'flop/s')}, ratio {ratios[-1]:.3f}")
        if abs(ratios[-1] - 1) < 0.03:
            break
    else:
        raise AssertionError(f"the peak is {ratios} times that of the C loop")
    assert 1e9 < ours < 1e12


def test_latency_grows_with_the_memory_that_is_walked():
    caches = host_caches()
    beyond = min(64 * MIB, 4 * max(caches.values(), default=32 * MIB))
    near, far = measure_latency(CPU, 16 * KIB), measure_latency(CPU, beyond)
    print(f"a load takes {amount(near, 's')} from 16 KiB, {amount(far, 's')} from {amount(beyond, 'iB', 1024)}")
    assert 2e-10 < near < 1e-8 and 4 * near < far < 1e-6
    if "L2" in caches:
        assert near < measure_latency(CPU, caches["L2"] // 2) < far


def test_bandwidth_falls_from_the_nearest_cache_to_memory():
    near, far = measure_reading(CPU, 16 * KIB), measure_reading(CPU, 256 * MIB)
    print(f"{amount(near, 'B/s')} from 16 KiB, {amount(far, 'B/s')} from 256 MiB")
    assert far > 1e9 and 1.5 * far < near < 4e12


def test_the_simplest_measure_of_bandwidth_is_near_that_of_a_program():
    """NumPy's `max` reads as fast as memory gives, or a little slower."""
    simple, program = _measure_bandwidth(CPU), measure_reading(CPU)
    print(f"{amount(simple, 'B/s')} by NumPy, {amount(program, 'B/s')} by a program")
    assert 0.5 < simple / program < 2


def test_a_launch_takes_less_than_a_microsecond_or_a_few():
    launch = _measure_launch(CPU)
    print(f"a launch takes {amount(launch, 's')}")
    assert 50e-9 < launch < 20e-6


@pytest.fixture
def device():
    """A device of round numbers."""
    device = Device("cpu:9", 2**20, simulated=True)
    device.measured.update(peak=1e9, bandwidth=1e8, launch_time=2e-6)
    return device


def test_roofline_is_the_larger_of_two_times_and_cost_adds_the_launches(device):
    assert device.roofline(1e9, 0) == 1 and device.roofline(0, 1e8) == 1
    assert device.roofline(1e9, 3e8) == 3 and device.roofline(5e9, 3e8) == 5
    assert device.cost(1, 0, 0) == 2e-6
    assert device.cost(500_000, 1e9, 3e8) == 1 + 3 and device.cost(500_000, 5e9, 3e8) == 1 + 5


def table(device):
    """What the pool prints of this device, by the first word of each row."""
    head, *rows = repr(Pool({device.name: device})).splitlines()
    return {row.split()[0]: row[head.index(device.name) :] for row in rows}


def test_the_pool_says_what_is_measured_and_what_is_unknown(device):
    rows = table(device)
    expected = {"peak": "1 Gflop/s, measured", "bandwidth": "100 MB/s, measured", "a": "2 µs, measured"}
    assert rows.items() >= expected.items() and rows["kind"] == "cpu (simulated)"
    assert rows["memory"] == "1 MiB" and rows["lanes"] == f"{host_lanes()} float32"
    device.memory = None
    rows = table(device)
    assert rows["memory"] == "unknown" and rows.items() >= expected.items()


def test_the_pool_prints_before_anything_can_be_measured(device, monkeypatch):
    device.measured.clear()
    for what in list(MEASURES):
        monkeypatch.delitem(MEASURES, what)
    rows = table(device)
    assert rows["peak"] == rows["bandwidth"] == rows["a"] == "not measured yet" and not device.measured
    with pytest.raises(LookupError, match="no program measures peak yet"):
        device.roofline(1, 1)


def test_what_was_measured_is_kept(device, monkeypatch):
    monkeypatch.setitem(MEASURES, "peak", lambda device: pytest.fail("measured again"))
    assert device.peak == 1e9


@pytest.mark.parametrize(
    "number, unit, text",
    [(0, "B", "0 B"), (1, "s", "1 s"), (1.25e9, "B/s", "1.25 GB/s"), (310e-9, "s", "310 ns"), (1e-6, "s", "1 µs")],
)
def test_amounts_have_three_digits(number, unit, text):
    assert amount(number, unit) == text

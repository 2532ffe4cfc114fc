"""What level 1 measures: the same as a C compiler's loop, and each number once."""

import ctypes
import shutil
import statistics
import subprocess
import sys
import time

import pytest

from levels.hardware import Device, pool
from levels.support import measure
from levels.support.machine import host_lanes

CPU = pool()["cpu:0"]


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
        ours, theirs = zip(*((measure.MEASURES["cpu", "peak"](CPU), compiled()) for _ in range(7)), strict=True)
        ours, theirs = statistics.median(ours), statistics.median(theirs)
        ratios.append(ours / theirs)
        print(f"peak {ours / 1e9:.1f} Gflop/s, in C {theirs / 1e9:.1f}, ratio {ratios[-1]:.3f}")
        if abs(ratios[-1] - 1) < 0.03:
            break
    else:
        raise AssertionError(f"the peak is {ratios} times that of the C loop")
    assert 1e9 < ours < 1e12


@pytest.fixture
def device(monkeypatch):
    """A device of round numbers."""
    device = Device("cpu:9", 2**20, simulated=True)
    for what, speed in {"peak": 1e9, "bandwidth": 1e8, "launch_time": 2e-6}.items():
        monkeypatch.setitem(measure.MEASURES, ("cpu", what), lambda device, speed=speed: speed)
        measure.speed_of(device, what)
    return device


def test_roofline_is_the_larger_of_two_times(device):
    assert device.roofline(1e9, 0) == 1 and device.roofline(0, 1e8) == 1
    assert device.roofline(1e9, 3e8) == 3 and device.roofline(5e9, 3e8) == 5
    assert device.launch_time == 2e-6


def test_what_was_measured_is_kept(device, monkeypatch):
    monkeypatch.setitem(measure.MEASURES, ("cpu", "peak"), lambda device: pytest.fail("measured again"))
    assert device.peak == 1e9

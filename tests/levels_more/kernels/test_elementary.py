"""exp, log, sin and cos: one source, the same bits on Python's floats, in programs and in kernels, and close to the
truth.
"""

import math

import numpy as np
import pytest

from levels.support import elementary
from levels.support.compiled import compile_cpu
from levels.support.machine import host_lanes
from levels_more.hardware import Lanes, cos, exp, log, pool, sin
from levels_more.kernels import intrinsics, launch

CPU = pool()["cpu:0"]
SPECIAL = [0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -1.0, 5e-324, -5e-324, 1e-310, 2.0**-1022, 1.3e308]
SPECIAL += [1.7976931348623157e308, 709.782712893384, 709.79, -745.1332191019411, -745.14, 1000.0, -1000.0]


WAVES, FAR = (sin, cos), {"f8": 2.0**53, "f4": 2.0**24}
# whole numbers nearest to a multiple of π/2: numerators of its continued fraction
CLOSE = [11, 344, 355, 51819, 52174, 260515, 573204, 4846147, 5419351, 122925461, 534483448, 3083975227, 21053343141]
CLOSE += [1783366216531, 8958937768937, 139755218526789, 428224593349304, 5706674932067741]


def inputs(function, dtype):
    """Numbers over the whole range of the function, as many where it is used most, and the special ones."""
    rng, n = np.random.default_rng(1), 200_000
    if function in WAVES:
        wide = np.exp2(rng.uniform(-40, np.log2(FAR[dtype]), n)) * rng.choice([-1, 1], n)
        zeros = rng.integers(-(2**30), 2**30, n) * (np.pi / 2)  # numbers next to where one of the two is 0
        with np.errstate(over="ignore"):
            return np.concatenate([wide, rng.uniform(-4, 4, n), zeros, CLOSE, SPECIAL]).astype(dtype)
    ends = {"exp": {"f8": (-745, 709.7), "f4": (-103, 88.7)}, "log": {"f8": (-708, 709), "f4": (-87, 88)}}
    low, high = ends[function.__name__][dtype]
    wide, near = rng.uniform(low, high, n), rng.normal(size=n)
    if function is log:
        wide, near = np.exp(wide), np.concatenate([rng.uniform(1e-7, 1, n // 2), 1 + 1e-3 * rng.normal(size=n // 2)])
    with np.errstate(over="ignore"):
        return np.concatenate([wide, near, SPECIAL]).astype(dtype)


def in_program(function, x, lanes=None):
    a = Lanes(function.__name__, x.dtype, lanes)
    source, out = a.array("x", "n"), a.array("out", "n")
    with a.loop("n", a.lanes) as i:
        a.store(function(a.load(source, i)), out, i)
    result = CPU.alloc(x.shape, x.dtype)
    a.assemble()(x=CPU.put(x), out=result)
    return result.numpy()


def in_kernel(function, x):
    return launch(function.__name__, None, CPU.put(x)).numpy()


def same(p, q):
    """Equal, NaN with NaN, and zeros of the same sign."""
    return (p == q) & (np.signbit(p) == np.signbit(q)) | np.isnan(p) & np.isnan(q)


@pytest.mark.quick
@pytest.mark.parametrize("function", [exp, log, *WAVES])
def test_one_source_gives_the_same_bits_everywhere(function):
    x = inputs(function, "f8")
    program, kernel = in_program(function, x), in_kernel(function, x)
    assert same(program, kernel).all()
    some = np.r_[0:5_000, 200_000:205_000, len(x) - len(SPECIAL) : len(x)]
    assert same(program[some], np.array([function(v) for v in x[some].tolist()])).all()


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("function", [exp, log, *WAVES])
def test_the_same_bits_in_any_number_of_lanes(function, dtype):
    x = inputs(function, dtype)[-100_003:]  # no multiple of the lanes
    assert all(same(in_program(function, x, 1), in_program(function, x, lanes)).all() for lanes in (None, 4, 8))


SCALED = {"core": lambda dtype: elementary.in_halves, "in steps": intrinsics.scaled_bits}
if host_lanes() == 16:
    SCALED["at once"] = intrinsics.scaled_at_once


@pytest.mark.parametrize("way", SCALED)
def test_scaling_rounds_once_with_and_without_an_instruction_for_it(way):
    scaled = compile_cpu(SCALED[way](np.dtype("f4")), np.dtype("f4"))
    rng = np.random.default_rng(2)
    for x, n in zip(rng.uniform(0.7, 1.42, 5000).astype("f4"), rng.integers(-151, 130, 5000).astype("f4"), strict=True):
        with np.errstate(all="ignore"):
            assert scaled(x, n) == np.ldexp(x, int(n))
    assert math.isnan(scaled(np.float32(math.nan), np.float32(129)))


@pytest.mark.parametrize("where", [in_program, in_kernel])
@pytest.mark.parametrize("function, truth", [(exp, np.exp), (log, np.log), (sin, np.sin), (cos, np.cos)])
@pytest.mark.parametrize("dtype, ulps", [("f8", 1.0), ("f4", 1.1)])
def test_close_to_the_truth_and_right_at_the_ends(function, truth, dtype, ulps, where):
    x = inputs(function, dtype)
    with np.errstate(all="ignore"):
        # one format up; where there is none above float64, the library's own error is at most half a unit more
        exact = truth(x.astype(np.longdouble if dtype == "f8" else np.float64))
        if function in WAVES:
            exact[np.abs(x) >= FAR[dtype]] = np.nan
        rounded, result = exact.astype(dtype), where(function, x)
        slack = 0.0 if np.finfo(exact.dtype).nmant > np.finfo(dtype).nmant else 0.5
        finite = np.isfinite(rounded)
        away = np.abs(result[finite].astype(exact.dtype) - exact[finite]) / np.spacing(np.abs(rounded[finite]))
    assert result.dtype == x.dtype and float(away.max()) <= ulps + slack
    assert (same(result, rounded) | finite).all()

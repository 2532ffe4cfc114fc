"""Random numbers as a function of a key and a counter, so that they do not depend on the number of threads."""

import math
from types import SimpleNamespace

import numpy as np

from levels.kernels import Plan, kernel, lowered
from levels.support.elementary import log, rint
from levels_more.checks import dtype_of, sizes
from levels_more.kernels.verify import TEST_CASES

MIX = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)  # the paper's multipliers
STEP = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)  # the paper's increments of the key
LOW, HIGH = np.uint64(0xFFFFFFFF), np.uint64(32)


def philox(a, b, c, d, low, high):
    """Map the counter (a, b, c, d) and the key (low, high) to four words of 32 random bits: Philox-4x32, ten rounds.

    Salmon et al., 2011: https://doi.org/10.1145/2063384.2063405
    """
    for _ in range(10):
        p = MIX[0] * a
        q = MIX[1] * c
        a = (q >> HIGH) ^ b ^ low
        b = q & LOW
        c = (p >> HIGH) ^ d ^ high
        d = p & LOW
        low = (low + STEP[0]) & LOW
        high = (high + STEP[1]) & LOW
    return a, b, c, d


ELEVEN = np.uint64(11)


def two_uniform(state, n):
    """Return uniform numbers 2n and 2n + 1, in [0, 1), after `state`, which is (key, counter)."""
    key = np.uint64(state[0])
    counter = np.uint64(state[1] + n)
    zero = LOW - LOW
    a, b, c, d = philox(counter & LOW, counter >> HIGH, zero, zero, key & LOW, key >> HIGH)
    return (((a << HIGH) | b) >> ELEVEN) / 2.0**53, (((c << HIGH) | d) >> ELEVEN) / 2.0**53


def cos_sin(turns):
    """Return the cosine and the sine of an angle >= 0 in turns: quarter turns, and the rest by Taylor series."""
    quarters = rint(4.0 * turns)
    x = (turns - quarters / 4.0) * (2.0 * math.pi)
    cos = sin = 1.0
    for n in range(16, 0, -2):
        cos = 1.0 - x * x / (n * (n - 1)) * cos
        sin = 1.0 - x * x / (n * (n + 1)) * sin
    sin *= x
    for _ in range(int(quarters)):
        cos, sin = -sin, cos
    return cos, sin


def plan_random(op, function, state, shape=(), dtype=np.float32):
    """Plan `shape` numbers of that dtype from `state`, int64[2]: a key and the first of (count + 1) // 2 counters.

    Raises TypeError for any other state, shape or dtype.
    """
    if state.spec is not state.device.spec((2,), np.int64):
        raise TypeError(f"{op}: the state is {state.spec}; expected two int64, a key and a counter")
    shape = sizes(f"{op}: shape", shape)
    dtype = dtype_of(f"{op}: dtype", dtype, "float32 float64")
    loop = lowered(function, SimpleNamespace(device=state.device, dtype=np.dtype(np.float64)))
    return Plan(op, shape, dtype, [state], loop, [(math.prod(shape),), (2,)])


def uniform(state, i, steps):
    """Return uniform number i, in [0, 1), rounded down to a multiple of 1 / steps. (Float32 rounding could give 1.)"""
    u, v = two_uniform(state, i // 2)
    return math.floor((v if i % 2 else u) * steps) / steps


def normal(state, i):
    """Return normal number i, with mean 0 and standard deviation 1 (Box and Muller, 1958)."""
    u, v = two_uniform(state, i // 2)
    cos, sin = cos_sin(v)
    return math.sqrt(-2.0 * log(1.0 - u)) * (sin if i % 2 else cos)


@kernel("random_uniform", planner=plan_random)
def random_uniform(out, state):
    """Set out[i] to uniform number i, in [0, 1), after `state`, int64[2]."""
    for i in range(out.size):
        out[i] = uniform(state, i, 2.0**24 if out.itemsize == 4 else 2.0**53)


@kernel("random_normal", planner=plan_random)
def random_normal(out, state):
    """Set out[i] to normal number i after `state`, int64[2]."""
    for i in range(out.size):
        out[i] = normal(state, i)


for op in ("random_uniform", "random_normal"):
    TEST_CASES[op] = [
        ([np.array([-(2**63), 2026])], {"shape": shape, "dtype": dtype})
        for shape, dtype in (((), "f4"), ((5,), "f4"), ((2, 3), "f8"), ((0,), "f8"))
    ]

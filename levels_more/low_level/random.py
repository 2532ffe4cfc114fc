"""Random numbers, from one state for each device, which all of `levels` shares."""

import math
import threading

import numpy as np

from levels.hardware import PLACE
from levels.low_level import Tensor, Variable, apply, as_tensor, gather
from levels_more.checks import dtype_of, expect, number, sizes
from levels_more.hardware.devices import placed_on

# Random numbers are a function of a state (key and counter) in a variable, so a compiled step draws new ones each time.

_STATES, _SEED, _TURN = {}, [0], threading.RLock()  # device -> its state; the key of states that are created later


def _drawn(op, shape, dtype):
    """Draw the next numbers from the state of the current device."""
    shape = sizes(f"{op}: shape", shape)
    dtype = dtype_of(f"{op}: dtype", dtype, "float32 float64")
    with _TURN:
        state = _STATES.get(PLACE.device)
        if state is None:
            state = _STATES[PLACE.device] = Variable(np.array([_SEED[0], 0]), trainable=False)
        drawn = apply(f"random_{op}", state, shape=shape, dtype=dtype)
        state.assign(state + np.array([0, (math.prod(shape) + 1) // 2]))
    return drawn


def uniform(shape, minval=0.0, maxval=1.0, dtype="float32"):
    """Return uniform random numbers of that shape, float32 or float64, from minval up to maxval (only by rounding).

    They are equal in every run, until `set_seed`. Raises TypeError for wrong arguments, ValueError if minval >= maxval.
    """
    low = number("uniform: minval", minval)
    high = number("uniform: maxval", maxval)
    if not low < high:
        raise ValueError(f"uniform: minval is {minval} and maxval {maxval}; expected the lower first")
    drawn = _drawn("uniform", shape, dtype)
    return drawn if (low, high) == (0, 1) else float(low) + drawn * float(high - low)


def normal(shape, mean=0.0, stddev=1.0, dtype="float32"):
    """Return normal random numbers of that shape, float32 or float64, with that mean and standard deviation.

    They are equal in every run, until `set_seed`. Raises TypeError for wrong arguments, such as a negative deviation.
    """
    mean = number("normal: mean", mean)
    stddev = number("normal: stddev", stddev, 0.0)
    drawn = _drawn("normal", shape, dtype)
    return drawn if (mean, stddev) == (0, 1) else float(mean) + drawn * float(stddev)


def shuffle(x):
    """Return the rows of x[n, …] in random order. Raises TypeError for an x without axes, and in a traced function."""
    x = as_tensor(x)
    expect(x.spec.shape, "shuffle: x", x.spec, "one axis or more")
    with placed_on("cpu:0"):
        ranks = uniform(x.spec.shape[:1], dtype="float64").numpy()
    return gather(x, np.argsort(ranks, kind="stable"))


def set_seed(seed):
    """Seed the random numbers and the initial weights of layers. Raises TypeError unless `seed` is an int from 0 on."""
    whole = isinstance(seed, int | np.integer) and not isinstance(seed, bool)
    expect(whole and 0 <= seed < 2**63, "set_seed: seed", seed, "a whole number from 0 to 2⁶³ - 1")
    from levels.mid_level import RANDOM  # a higher level, so it is imported only here

    RANDOM.seed(int(seed))
    with _TURN:
        _SEED[0] = int(seed)
        for device, state in _STATES.items():
            state.assign(device.put(np.array([int(seed), 0]), Tensor))

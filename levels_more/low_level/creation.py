"""Tensors made of nothing: of one number, counted, or drawn by chance."""

import math
import threading

import numpy as np

from levels.hardware import PLACE
from levels.low_level import Tensor, Variable, apply, as_tensor, constant, gather
from levels_more.checks import dtype_of, expect, number, sizes
from levels_more.hardware.devices import placed_on

tensor = constant  # PyTorch's name
_FLOATS = "float32 float64"


def _filled(name, value, shape, dtype, device):
    shape, dtype = sizes(f"{name}: shape", shape), dtype_of(f"{name}: dtype", dtype)
    made = Tensor(device.spec(shape, dtype))
    device.write(made.data, np.broadcast_to(np.asarray(value, dtype), shape))
    return made


def zeros(shape, dtype="float32"):
    """A tensor of that shape and dtype, all 0. Raises TypeError for no shape or dtype, MemoryError where it does not fit."""
    return _filled("zeros", 0, shape, dtype, PLACE.device)


def ones(shape, dtype="float32"):
    """A tensor of that shape and dtype, all 1. Raises TypeError for no shape or dtype, MemoryError where it does not fit."""
    return _filled("ones", 1, shape, dtype, PLACE.device)


def zeros_like(x, dtype=None):
    """Zeros in the shape of x and, unless another one is said, in its dtype and on its device."""
    x = as_tensor(x)
    return _filled("zeros_like", 0, x.spec.shape, x.spec.dtype if dtype is None else dtype, x.device)


def ones_like(x, dtype=None):
    """Ones in the shape of x and, unless another one is said, in its dtype and on its device."""
    x = as_tensor(x)
    return _filled("ones_like", 1, x.spec.shape, x.spec.dtype if dtype is None else dtype, x.device)


def range(start, limit=None, delta=1, dtype=None):
    """start, start + delta, … and so on, up to but without `limit`; range(n) is 0, 1, … n - 1.

    int64, or float32 where a float is among them, unless a dtype is said. Raises ValueError for a delta of 0 or more numbers
    than fit, TypeError for what is no number.
    """
    start, limit = (0, start) if limit is None else (start, limit)
    bounds = [number(f"range: {name}", n) for name, n in (("start", start), ("limit", limit), ("delta", delta))]
    whole = all(isinstance(n, int | np.integer) for n in bounds)
    count = -((start - limit) // delta) if delta and whole else math.ceil((limit - start) / delta) if delta else 0
    if not delta or count >= 2**31 or whole and max(map(abs, bounds)) >= 2**62:
        cure = "expected a delta that is not 0, and fewer than 2³¹ numbers"
        raise ValueError(f"range: from {start} to {limit} by {delta}; {cure}")
    dtype = dtype_of("range: dtype", ("int64" if whole else "float32") if dtype is None else dtype, f"{_FLOATS} int64")
    return constant(start + np.arange(max(0, count)) * delta, dtype)


arange = range  # PyTorch's name

# What is drawn is a function of a state, a key and a counter, in a variable: so a compiled step draws anew each time.

_STATES, _SEED, _TURN = {}, [0], threading.RLock()  # device -> its state; the key of those that are made later


def _drawn(op, shape, dtype):
    """The next numbers of the present device's state."""
    shape, dtype = sizes(f"{op}: shape", shape), dtype_of(f"{op}: dtype", dtype, _FLOATS)
    with _TURN:
        state = _STATES.get(PLACE.device)
        if state is None:
            state = _STATES[PLACE.device] = Variable(np.array([_SEED[0], 0]), trainable=False)
        drawn = apply(f"random_{op}", state, shape=shape, dtype=dtype)
        state.assign(state + np.array([0, (math.prod(shape) + 1) // 2]))
    return drawn


def uniform(shape, minval=0.0, maxval=1.0, dtype="float32"):
    """Random numbers of that shape, float32 or float64, uniform from minval to maxval (which rounding may reach).

    The same in every run, until `set_seed`. Raises TypeError for no shape, dtype or number, ValueError unless minval < maxval.
    """
    low, high = number("uniform: minval", minval), number("uniform: maxval", maxval)
    if not low < high:
        raise ValueError(f"uniform: minval is {minval} and maxval {maxval}; expected the lower first")
    drawn = _drawn("uniform", shape, dtype)
    return drawn if (low, high) == (0, 1) else float(low) + drawn * float(high - low)


def normal(shape, mean=0.0, stddev=1.0, dtype="float32"):
    """Random numbers of that shape, float32 or float64, normal with that mean and standard deviation.

    The same in every run, until `set_seed`. Raises TypeError for no shape, dtype or number, or a negative deviation.
    """
    mean, stddev = number("normal: mean", mean), number("normal: stddev", stddev, 0.0)
    drawn = _drawn("normal", shape, dtype)
    return drawn if (mean, stddev) == (0, 1) else float(mean) + drawn * float(stddev)


def shuffle(x):
    """The rows of x[n, …] in a random order. Raises TypeError for x without rows, and in a traced function."""
    x = as_tensor(x)
    expect(x.spec.shape, "shuffle: x", x.spec, "one axis or more")
    with placed_on("cpu:0"):
        ranks = uniform(x.spec.shape[:1], dtype="float64").numpy()
    return gather(x, np.argsort(ranks, kind="stable"))


def set_seed(seed):
    """Random numbers, and the starting weights of layers, begin anew, at others for each seed: a whole number from 0 on.

    Raises TypeError for anything else.
    """
    whole = isinstance(seed, int | np.integer) and not isinstance(seed, bool)
    expect(whole and 0 <= seed < 2**63, "set_seed: seed", seed, "a whole number from 0 to 2⁶³ - 1")
    from levels.mid_level import RANDOM  # above this level, so only now

    RANDOM.seed(int(seed))
    with _TURN:
        _SEED[0] = int(seed)
        for device, state in _STATES.items():
            state.assign(device.put(np.array([int(seed), 0]), Tensor))

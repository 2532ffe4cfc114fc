"""Functions that create tensors (zeros, ones, ranges), choose their device, and copy them to another device."""

import copyreg
import math
import reprlib

import numpy as np

from levels.hardware import PLACE
from levels.low_level import DOOR, OPERATORS, VJPS, Operators, Tensor, Variable, Watcher, as_tensor, constant
from levels_more.checks import dtype_of, number, sizes
from levels_more.hardware.devices import placed_on, pool

tensor = constant  # PyTorch's name


def _filled(name, value, shape, dtype, device):
    shape = sizes(f"{name}: shape", shape)
    dtype = dtype_of(f"{name}: dtype", dtype)
    made = Tensor(device.spec(shape, dtype))
    device.write(made.data, np.broadcast_to(np.asarray(value, dtype), shape))
    return made


def zeros(shape, dtype="float32"):
    """Return a tensor of zeros. Raises TypeError for an invalid shape or dtype, MemoryError if it does not fit."""
    return _filled("zeros", 0, shape, dtype, PLACE.device)


def ones(shape, dtype="float32"):
    """Return a tensor of ones. Raises TypeError for an invalid shape or dtype, MemoryError if it does not fit."""
    return _filled("ones", 1, shape, dtype, PLACE.device)


def zeros_like(x, dtype=None):
    """Return zeros in the shape of x, on its device, in the given dtype or else that of x."""
    x = as_tensor(x)
    return _filled("zeros_like", 0, x.spec.shape, x.spec.dtype if dtype is None else dtype, x.device)


def ones_like(x, dtype=None):
    """Return ones in the shape of x, on its device, in the given dtype or else that of x."""
    x = as_tensor(x)
    return _filled("ones_like", 1, x.spec.shape, x.spec.dtype if dtype is None else dtype, x.device)


def range(start, limit=None, delta=1, dtype=None):
    """Return start, start + delta, … up to but not including `limit`. range(n) is 0, 1, … n - 1.

    The default dtype is int64, or float32 if an argument is a float. Raises ValueError for a delta of 0, 2³¹ numbers or
    more, or integers from 2⁶² on, TypeError for an argument that is not a number.
    """
    start, limit = (0, start) if limit is None else (start, limit)
    given = {"start": start, "limit": limit, "delta": delta}
    given = {name: n.item() if isinstance(n, Operators) else n for name, n in given.items()}
    bounds = [number(f"range: {name}", n) for name, n in given.items()]
    start, limit, delta = bounds
    whole = all(isinstance(n, int) for n in bounds)
    count = -((start - limit) // delta) if delta and whole else math.ceil((limit - start) / delta) if delta else 0
    if not delta or count >= 2**31 or whole and max(map(abs, bounds)) >= 2**62:
        cure = "expected a delta that is not 0, and fewer than 2³¹ numbers"
        raise ValueError(f"range: from {start} to {limit} by {delta}; {cure}")
    dtype = ("int64" if whole else "float32") if dtype is None else dtype
    dtype = dtype_of("range: dtype", dtype, "float32 float64 int64")
    return constant(start + np.arange(max(0, count)) * delta, dtype)


arange = range  # PyTorch's name


device = placed_on  # inside `with device(name):`, new tensors and variables are placed there


def to_device(x, name):
    """Return a tensor with the numbers of x on the device of that name. Raises LookupError if there is none."""
    x = as_tensor(x)
    place = pool().get(str(name))
    if place is None:
        raise LookupError(f"to: there is no {reprlib.repr(name)}; there are {', '.join(pool())}")
    y = place.put(x.numpy(), Tensor)
    stands = DOOR.top
    while isinstance(stands, Watcher):  # recorded here, because a copy is not an op with a kernel
        if stands.records is not None:
            stands.records.append(("to", [x], {"name": name}, y))
        stands = stands.below
    return y


OPERATORS["to"] = to_device


def copied(kind, array, name, *more):
    """Make a tensor or a variable of these numbers, on the device of that name, else on the current device."""
    return kind(pool().get(name, PLACE.device).put(array, Tensor), *more)


copyreg.pickle(Tensor, lambda x: (copied, (as_tensor, x.numpy(), x.device.name)))
copyreg.pickle(Variable, lambda v: (copied, (Variable, v.numpy(), v.device.name, v.name, v.trainable)))
VJPS["to"] = (lambda dy, y, x, name: to_device(dy, x.device.name),)

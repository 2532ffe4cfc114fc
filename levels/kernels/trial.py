"""A kernel of your own: tried on hard inputs first, then run by every level above."""

# Built from notebooks/02_kernels.ipynb: edit there, then run its last cell.

import functools
import math
from contextlib import contextmanager

import numpy as np

from levels.hardware import Buffer, pool

from .elementwise import TRIALS
from .registry import COMPILERS, KERNELS, PLANS, UPDATES, kernel, launch, plan


def guarded(device, shape, dtype):
    """A buffer with 64 numbers before and behind it that a kernel must leave alone, and all of them as one array."""
    count = math.prod(shape)
    whole = np.full(count + 128, 7, dtype)
    device.used += count * dtype.itemsize
    return Buffer(device.spec(shape, dtype), whole[64 : 64 + count].reshape(shape)), whole


def outcome(op, kind, function, arrays, attrs):
    """What this function, as the kernel of `op`, makes of these arrays."""
    KERNELS[op, kind] = function
    PLANS.clear()
    device = pool()[f"{kind}:0"]
    inputs = [device.put(array) for array in arrays]
    spec = plan(op, inputs, attrs).spec
    outs, wholes = zip(*(guarded(device, s.shape, s.dtype) for s in (spec if type(spec) is tuple else (spec,))))
    if op in UPDATES:
        for out, array in zip(outs, arrays):
            out.data[...] = array
    launch(op, outs if len(outs) > 1 else outs[0], *inputs[len(outs) * (op in UPDATES) :], **attrs)
    if any(
        (guard != guard.dtype.type(7)).any() for whole in wholes for guard in (whole[:64], whole[len(whole) - 64 :])
    ):
        raise IndexError("it writes beside its result")
    return [out.numpy() for out in outs]


def try_kernel(op, kind, function, reference):
    """Raise ValueError, with a counter-example, unless this function does on all trials what the reference does."""
    for dtype in map(np.dtype, ("f4", "f8")):
        for arrays, attrs in TRIALS[op](np.random.default_rng(0), dtype):
            expected = outcome(op, kind, reference, arrays, attrs)
            try:
                results = outcome(op, kind, function, arrays, attrs)
            except Exception as error:
                shapes = ", ".join(str(array.shape) for array in arrays)
                raise ValueError(f"{op}: refused, on {dtype} of shapes {shapes} it fails: {error}") from None
            tolerance = 1e-5 if dtype == np.float32 else 1e-12
            for result, right in zip(results, expected):
                wrong = np.argwhere(~np.isclose(result, right, tolerance, tolerance, equal_nan=True))
                if len(wrong):
                    raise ValueError(f"{op}: refused, {counter_example(op, arrays, result, right, map(tuple, wrong))}")


def counter_example(op, arrays, result, expected, places):
    """Where two results differ, in words. Numbers are more telling than NaN, so the first place without one is shown."""
    if any(array.shape != result.shape for array in arrays):
        at = next(places)
        given = ", ".join(str(array.shape) for array in arrays)
        return f"{op} of shapes {given} gives {result[at]} at {at}, and should give {expected[at]}"
    at = min(places, key=lambda at: any(np.isnan(array[at]) for array in arrays))
    return f"{op}({', '.join(str(array[at]) for array in arrays)}) gives {result[at]}, and should give {expected[at]}"


@contextmanager
def use(op, kind, function):
    """Inside this `with` block, `function` is the kernel of `op` for that kind of device, on every level above.

    It is tried first. A function that is wrong raises ValueError with a counter-example, and nothing is changed.
    """
    if (op, kind) not in KERNELS:
        raise LookupError(f"{op!r} has no kernel for {kind!r} that could be replaced")
    before, compiler, function = KERNELS[op, kind], COMPILERS[kind], getattr(function, "py_func", function)
    try:
        COMPILERS[kind] = functools.partial(compiler, boundscheck=True)
        try_kernel(op, kind, function, before)
        COMPILERS[kind] = compiler
        kernel(op, kind)(function)
        yield
    finally:
        KERNELS[op, kind], COMPILERS[kind] = before, compiler
        PLANS.clear()

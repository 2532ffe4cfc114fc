"""A kernel of your own: tried on hard inputs first, then run by every level above."""

# Built from 02_kernels.ipynb: edit there, then run its last cell.

import functools
from contextlib import contextmanager

import numpy as np

from levels.hardware import pool

from .elementwise import SPECIAL, TRIALS
from .registry import COMPILERS, UPDATES, kernel, kernel_of, launch, new_results, planned


def drawn(draw, what, dtype):
    """An array for a trial: random numbers of a shape, "special" numbers in any order, a "mask", or an array as it is."""
    if isinstance(what, tuple):
        return draw.normal(size=what).astype(dtype)
    if isinstance(what, str):
        numbers = draw.permutation(np.tile(np.concatenate([SPECIAL, draw.normal(size=20)]), 20)).astype(dtype)
        return numbers > 0 if what == "mask" else numbers
    return what.astype(dtype) if what.dtype.kind == "f" else what


def outcome(op, kind, function, arrays, attrs):
    """What this function, as the kernel of `op`, makes of these arrays."""
    kernel(op, kind)(function)
    inputs = [pool()[f"{kind}:0"].put(array) for array in arrays]
    outs = new_results(planned(op, inputs, attrs).spec)
    outs = outs if type(outs) is tuple else (outs,)
    for n, out in enumerate(outs):  # a 7, so a number that the kernel leaves out shows
        out.device.write(out.data, arrays[n] if op in UPDATES else np.full(out.shape, 7, out.dtype))
    launch(op, outs if len(outs) > 1 else outs[0], *inputs[len(outs) * (op in UPDATES) :], **attrs)
    return [out.numpy() for out in outs]


def try_kernel(op, kind, function, reference):
    """Raise ValueError, with a counter-example, unless this function does on all trials what the reference does."""
    for dtype in map(np.dtype, ("f4", "f8")):
        draw = np.random.default_rng(0)
        for inputs, attrs in TRIALS[op]:
            arrays = [drawn(draw, what, dtype) for what in inputs]
            try:
                expected = outcome(op, kind, reference, arrays, attrs)
            except TypeError:  # this kind of device has no such dtype
                continue
            try:
                results = outcome(op, kind, function, arrays, attrs)
            except Exception as error:
                shapes = ", ".join(str(array.shape) for array in arrays)
                raise ValueError(f"{op}: refused, on {dtype} of shapes {shapes} it fails: {error}") from None
            for result, right in zip(results, expected):
                tolerance = 1e-5 if result.dtype == np.float32 else 1e-12
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
    before, compiler = kernel_of(op, kind), COMPILERS[kind]
    try:
        COMPILERS[kind] = functools.partial(compiler, boundscheck=True)
        try_kernel(op, kind, function, before)
        COMPILERS[kind] = compiler
        kernel(op, kind)(function)
        yield
    finally:
        COMPILERS[kind] = compiler
        kernel(op, kind)(before)

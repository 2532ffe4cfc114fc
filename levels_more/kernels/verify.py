"""Tests of a new kernel against the present one: on random and special numbers, with all indices checked.

Special are 0.0 and -0.0, infinities and NaN, and arrays without elements. The results must agree to 12 digits in
float64 and to 5 in float32, so a kernel may add in another order. The indices of one that has passed are not checked
again when it runs.
"""

import inspect
import types
from contextlib import contextmanager

import numpy as np

from levels import kernels
from levels.hardware import Buffer
from levels.kernels import ELEMENTWISE, IN_USE, KERNELS, NUMBERS, REDUCTIONS, UPDATES, kernel, launch, planned
from levels.support.locks import MAKING
from levels.support.tables import TRIED, guarded
from levels_more.hardware.devices import pool
from levels_more.kernels.elementwise import MASKS

SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1e-30, -1e30, np.inf, -np.inf, np.nan)

_REDUCED = [
    ([shape], {"axis": axis, "keepdims": keepdims})
    for shape, axis in (((3, 4, 5), (0, 1)), ((3, 4, 5), 1), ((9, 70), -1), ((1, 1), None), ((0, 2, 3), 1))
    for keepdims in (False, True)
]

# op -> [(inputs, attributes), …]: the cases on which a new kernel is tested. An input is a shape, an array, "special"
# or "mask". (`cases_of` has the cases of elementwise ops and reductions.)
TEST_CASES = {
    "matmul": [
        ([(m, k)[:: 1 - 2 * flip_x], (k, n)[:: 1 - 2 * flip_w]], {"transpose_x": flip_x, "transpose_w": flip_w})
        for m, k, n in ((1, 1, 1), (3, 5, 4), (0, 2, 3), (2, 0, 3), (17, 33, 9))
        for flip_x, flip_w in ((False, False), (True, False), (False, True))
    ],
    "gather": [
        ([shape, np.arange(count) * 3 % shape[0]], {})
        for shape in ((5,), (5, 3), (1, 1), (2, 3, 4))
        for count in (0, 1, 7)
    ],
    "reduce_mean": _REDUCED,
    "spread": [
        ([(), (9, 70)], {}),
        ([(3, 5), (3, 4, 5)], {"axis": 1}),
        ([(3, 4, 1), (3, 4, 5)], {"axis": -1}),
        ([(5,), (3, 4, 5)], {"axis": (0, 1)}),
        ([(3,), (0, 3)], {"axis": 0}),
    ],
}


def cases_of(op):
    """Return [(inputs, attributes), …], the cases for a test of a new kernel. Raises KeyError if there are none."""
    if op in ELEMENTWISE and op not in TEST_CASES:
        masks = MASKS.get(op, 0)
        numbers = NUMBERS.get(op, {})
        count = len(inspect.signature(KERNELS[op, "cpu"]).parameters)
        return [(["mask"] * masks + ["special"] * (count - len(numbers) - masks), numbers)]
    return _REDUCED if op in REDUCTIONS else TEST_CASES[op]


def drawn(draw, what, dtype):
    """Return an array for a test: random numbers of a shape, shuffled "special" numbers, a "mask", or a given array."""
    if isinstance(what, tuple):
        return draw.normal(size=what).astype(dtype)
    if isinstance(what, str):
        numbers = draw.permutation(np.tile(np.concatenate([SPECIAL, draw.normal(size=20)]), 20)).astype(dtype)
        return numbers > 0 if what == "mask" else numbers
    return what.astype(dtype) if what.dtype.kind == "f" else what


def outcome(op, kind, function, arrays, attrs):
    """Run this function as the kernel of `op` on these arrays, and return the result. It stays registered."""
    kernel(op, kind)(function)
    inputs = [pool()[f"{kind}:0"].put(array) for array in arrays]
    spec = planned(op, inputs, attrs).spec
    out = Buffer(spec)  # filled with sevens, to detect elements that the kernel does not set
    out.device.write(out.data, arrays[0] if op in UPDATES else np.full(spec.shape, 7, spec.dtype))
    return launch(op, out, *inputs[op in UPDATES :], **attrs).numpy()


def try_kernel(op, kind, function, reference):
    """Raise ValueError, with a counter-example, unless this function gives the reference's results in all tests.

    Every index is checked. The reference stays registered, or what was entered meanwhile.
    """
    with MAKING, guarded(function):  # the trials of two threads would enter their kernels into one table
        before = KERNELS[op, kind]
        try:
            verify_kernel(op, kind, function, reference)
        finally:
            kernel(op, kind)(before)
    plain = getattr(function, "py_func", function)
    if isinstance(plain, types.FunctionType):
        TRIED.add(plain)


@contextmanager
def use(op, kind, function):
    """In a `with` block, make `function` the kernel of `op` on a kind of device. It is tried first.

    Raises LookupError if there was none, ValueError, with a counter-example, if the two differ.
    """
    now = KERNELS[op, kind]
    _, before = IN_USE[op, kind][0] if (op, kind) in IN_USE else (None, now)
    try_kernel(op, kind, function, before)
    with kernels.use(op, kind, function):
        yield


def verify_kernel(op, kind, function, reference):
    """Test a kernel as try_kernel does, without a check of indices. Raises ValueError, as it does."""
    for dtype in map(np.dtype, ("f4", "f8")):
        draw = np.random.default_rng(0)
        for inputs, attrs in cases_of(op):
            arrays = [drawn(draw, what, dtype) for what in inputs]
            try:
                expected = outcome(op, kind, reference, arrays, attrs)
            except TypeError:  # this kind of device does not have the dtype
                continue
            try:
                result = outcome(op, kind, function, arrays, attrs)
            except Exception as error:
                shapes = ", ".join(str(array.shape) for array in arrays)
                raise ValueError(f"{op}: refused, on {dtype} of shapes {shapes} it fails: {error}") from None
            tolerance = 1e-5 if result.dtype == np.float32 else 1e-12
            wrong = np.argwhere(~np.isclose(result, expected, tolerance, tolerance, equal_nan=True))
            if len(wrong):
                raise ValueError(f"{op}: refused, {counter_example(op, arrays, result, expected, map(tuple, wrong))}")


def counter_example(op, arrays, result, expected, places):
    """Return a sentence on one place where the results differ: the first with no NaN in the inputs, if there is one."""
    if any(array.shape != result.shape for array in arrays):
        at = next(places)
        given = ", ".join(str(array.shape) for array in arrays)
        return f"{op} of shapes {given} gives {result[at]} at {at}, and should give {expected[at]}"
    at = min(places, key=lambda at: any(np.isnan(array[at]) for array in arrays))
    return f"{op}({', '.join(str(array[at]) for array in arrays)}) gives {result[at]}, and should give {expected[at]}"

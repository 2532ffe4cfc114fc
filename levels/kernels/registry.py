"""An op is a name; a kernel is one kind of device's program for it; one table joins them."""

# Built from notebooks/02_kernels.ipynb: edit there, then run its last cell.

import difflib
import math
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import njit

from levels.hardware import Buffer


class Kernels(dict):
    """(op, kind of device) -> compiled program. Prints as a table of ops by kinds."""

    def __repr__(self):
        kinds = sorted({kind for _, kind in self})
        rows = [("op", *kinds), *((op, *("x" * ((op, k) in self) for k in kinds)) for op in sorted({op for op, _ in self}))]
        return "\n".join("  ".join(text.ljust(14) for text in row).rstrip() for row in rows)


KERNELS = Kernels()
COMPILERS = {"cpu": njit(error_model="numpy")}  # kind of device -> how a function becomes its program
PLANNERS = {}  # op -> planner(kernel, *inputs, **attrs) -> Plan
PLANS = {}  # what `plan` has found: one a (op, kind, shapes and dtypes, attrs)
COUNTS = Counter()  # launches and bytes since the last COUNTS.clear()


def kernel(op, kind="cpu", planner=None):
    """Decorate a function: compile it for that kind of device and enter it as the kernel of `op`."""

    def enter(function):
        KERNELS[op, kind] = COMPILERS[kind](function)
        if planner is not None:
            PLANNERS[op] = planner
        PLANS.clear()
        return function

    return enter


class Plan(NamedTuple):
    """What a call with these shapes and dtypes will do: the result's shape and dtype, and the program to run."""

    shape: tuple
    dtype: np.dtype
    nbytes: int  # read and written
    run: Callable  # run(out, *inputs, *numbers), on NumPy arrays
    numbers: tuple = ()  # the names of the float attributes, in the order in which `run` takes them


def make(shape, dtype, inputs, run, numbers=()):
    """A Plan, its traffic counted: every input is read once and the result written once."""
    sizes = [(shape, dtype), *((buffer.shape, buffer.dtype) for buffer in inputs)]
    return Plan(shape, dtype, sum(math.prod(shape) * dtype.itemsize for shape, dtype in sizes), run, tuple(numbers))


def same_dtype(op, *inputs):
    """The dtype of all inputs. Raises TypeError where two differ: nothing is cast in silence."""
    dtypes = {str(buffer.dtype) for buffer in inputs}
    if len(dtypes) > 1:
        raise TypeError(f"{op}: dtypes {' and '.join(sorted(dtypes))} do not mix; cast one of them")
    return inputs[0].dtype


def plan(op, inputs, attrs):
    """The Plan for this op on these buffers. Attributes that are floats are numbers for the kernel, not part of the plan."""
    key = (op, *[getattr(b, "spec", None) for b in inputs], *[(k, float if type(v) is float else v) for k, v in attrs.items()])
    if key not in PLANS:
        PLANS[key] = make_plan(op, inputs, attrs)
    return PLANS[key]


def make_plan(op, inputs, attrs):
    """Find the kernel and ask its planner. What is wrong with an op, a device or an input is said here."""
    if op not in PLANNERS:
        near = difflib.get_close_matches(op, PLANNERS, n=1)
        raise LookupError(f"no op is called {op!r}; " + (f"did you mean {near[0]!r}?" if near else f"there are {[*PLANNERS]}"))
    for buffer in inputs:
        if not isinstance(buffer, Buffer) or buffer.data is None:
            raise TypeError(f"{op}: works on live buffers, got {buffer!r}")
    kinds = sorted({buffer.device.kind for buffer in inputs})
    if len(kinds) > 1:
        raise ValueError(f"{op}: inputs lie on {' and '.join(kinds)}; copy them to one device")
    if (op, *kinds) not in KERNELS:
        raise LookupError(f"{op} has no kernel for {kinds[0]!r}; it has one for {[k for o, k in KERNELS if o == op]}")
    return PLANNERS[op](op, KERNELS[op, kinds[0]], *inputs, **attrs)


UPDATES = set()  # ops that read their result's old numbers, such as "sgd"


def launch(op, out, *inputs, **attrs):
    """Run the kernel of `op` and leave the result in the buffer `out` (None: a new one). Returns the buffer."""
    if op in UPDATES:
        inputs = (out, *inputs)
    found, device = plan(op, inputs, attrs), inputs[0].device
    if out is None:
        out = device.alloc(found.shape, found.dtype)
    else:
        check_result(op, out, found, inputs)
    for buffer in inputs:
        if buffer.device is not device:
            raise ValueError(f"{op}: inputs lie on {device.name} and {buffer.device.name}; copy them to one device")
    COUNTS["launches"] += 1
    COUNTS["bytes"] += found.nbytes
    found.run(out.data, *[buffer.data for buffer in inputs], *[attrs[name] for name in found.numbers])
    return out


def check_result(op, out, found, inputs):
    """Raise unless the buffer `out` can take the result."""
    if not isinstance(out, Buffer) or out.data is None or out.device is not inputs[0].device:
        raise TypeError(f"{op}: the result needs a live buffer on {inputs[0].device.name}, got {out!r}")
    if out.shape != found.shape or out.dtype != found.dtype:
        raise ValueError(f"{op}: the result is {found.dtype}{found.shape}, the buffer for it {out.dtype}{out.shape}")
    if op not in UPDATES and any(out is buffer for buffer in inputs):
        raise ValueError(f"{op}: the result would overwrite an input; give it a buffer of its own")

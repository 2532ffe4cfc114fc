"""Tables of ops: the kernel of each op on each kind of device, and the plans of launches."""

# Built from 02_kernels.ipynb: edit there, then run its last cell.

import difflib
import functools
import reprlib
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from levels.hardware import Buffer
from levels.support.compiled import compile_cpu, for_types
from levels.support.locks import MAKING


class _Kernels(dict):
    """A table (op, kind of device) -> the function to compile. Its repr lists each op with its kinds of device."""

    version = 0  # counts replaced kernels: programs that were compiled from a replaced one are out of date
    first = {}  # (op, kind) -> the function that was entered first

    def is_first(self, op, kind):
        """Return whether an op still has its first kernel. (A mean also runs the kernel of the sum.)"""
        return all(self[each, kind] is self.first[each, kind] for each in (op, op.replace("mean", "sum")))

    def __repr__(self):
        kinds = {op: " ".join(sorted(kind for o, kind in self if o == op)) for op, _ in sorted(self)}
        return "\n".join(f"{op:16}  {has}" for op, has in kinds.items())


@dataclass
class Backend:
    """The functions and settings that depend on the kind of device."""

    compiler: Callable  # (function, dtype) -> the program for arrays of that dtype
    nest: Callable = None  # (places, line) -> the lines of the loops around that line
    ravels: bool = True  # whether a kernel can see any array as one row
    loops: tuple = ()  # makers of its reduction loops: along rows, down columns
    moves: Callable = None  # how `levels_more` copies from view to view
    names: dict = field(default_factory=dict)  # names that the loops may use, such as a GPU's `cuda`


KERNELS = _Kernels()  # (op, kind of device) -> the function that is compiled for it
BACKENDS = {"cpu": Backend(compile_cpu)}  # kind of device -> its Backend


def kernel_of(op, kind):
    """Return an op's kernel on this kind of device. Raises LookupError if there is none."""
    if (str(op), str(kind)) in KERNELS:
        return KERNELS[op, kind]
    if kinds := [k for o, k in [*KERNELS] if o == str(op)]:
        raise LookupError(f"{op!r} has no kernel for {kind!r}; it has one for {kinds}")
    near = difflib.get_close_matches(str(op), {known for known, _ in [*KERNELS]}, n=1)
    hint = f"did you mean {near[0]!r}?" if near else "KERNELS shows all, and levels_more.kernels has more"
    raise LookupError(f"no op is called {reprlib.repr(op)}; {hint}")


class Plan:
    """The plan of a launch for given shapes and dtypes. lower() makes its program: run(out, *inputs, *numbers)."""

    def __init__(self, spec, nbytes, lower, numbers=()):
        self.spec, self.nbytes, self.lower, self.numbers = spec, nbytes, lower, numbers
        self.compiled, self.launches = None, 0

    def made(self):
        """Return the program, compiled on first use by one thread, while others wait."""
        with MAKING:
            self.compiled = self.compiled or self.lower()
        return self.compiled

    def run(self, out, *arguments):
        """Run the program on arrays."""
        (self.compiled or self.made())(out, *arguments)

    def start(self, out, reads, attrs):
        """Run on these buffers, count it, and return `out`. Raises ValueError if `out` does not fit or is an input."""
        inputs = reads[1:] if self.op in UPDATES else reads
        if getattr(out, "spec", None) is not self.spec or id(out) in map(id, inputs):
            raise ValueError(f"{self.op}: needs a live buffer {self.spec}, and may overwrite no input; got {out!r}")
        self.launches += 1
        (self.compiled or self.made())(out.data, *[x.data for x in reads], *map(attrs.get, self.numbers))
        return out

    def result(self, kind, reads, attrs):
        """Do the same with a new buffer, kind(spec), for the result."""
        return self.start(kind(self.spec), reads, attrs)


PLANNERS = {}  # op, or (op, kind) -> planner(op, function, *inputs, **attrs) -> Plan
PLANS = {}  # (op, specs of the inputs, attributes) -> the Plan made for it


def lowered(function, x, *how):
    """Return a compiler: when called, it compiles this function for arrays like `x`, a buffer or a Spec."""
    return functools.partial(BACKENDS[x.device.kind].compiler, function, x.dtype, *how)


def make(op, shape, dtype, inputs, lower, views=None, numbers=()):
    """Return a Plan that runs the loop of lower() on the result and the inputs, reshaped to the shapes in `views`."""
    specs = [inputs[0].device.spec(shape, dtype), *(x.spec for x in inputs)]
    shapes, seen = [spec.shape for spec in specs], specs[0].device.reshape
    views = views or shapes

    def fitted():
        samples = [np.empty((0,) * len(view), spec.dtype) for view, spec in zip(views, specs)]
        loop = for_types(lower(), [*samples, *[0.0] * len(numbers)])
        return loop if views == shapes else lambda *arrays: loop(*map(seen, arrays, views), *arrays[len(views) :])

    return Plan(specs[0], sum(spec.nbytes for spec in specs), fitted, numbers)


PLAN_FINISHERS = []  # finish(plan, op, function, specs, attrs) -> this plan, or an equivalent one


def plan(op, inputs, attrs):
    """Make the Plan for this op on these buffers. Raises TypeError if one is freed, ValueError for several devices."""
    if any(x.spec is not x.device.spec(x.shape, x.dtype) for x in inputs):  # freed
        raise TypeError(f"{op}: works on live buffers, got {inputs!r}")
    devices = sorted({x.device.name for x in inputs})
    if len(devices) != 1:
        raise ValueError(f"{op}: inputs lie on {' and '.join(devices) or 'no device'}; copy them to one device")
    kind, specs = inputs[0].device.kind, [x.spec for x in inputs]
    function = kernel_of(op, kind)
    made = PLANNERS.get((op, kind), PLANNERS[op])(op, function, *specs, **attrs)
    made.op = op
    for finish in PLAN_FINISHERS:
        made = finish(made, op, function, specs, attrs)
    return made


UPDATES = set()  # ops that overwrite their first input, such as "sgd"
_NUMBERS = set()  # ops whose attributes are numbers for the kernel, such as a rate: one plan serves all values


def _key_of(op, reads, attrs):
    """Return the key of the plan for this op on these buffers. Raises TypeError if they cannot form a key."""
    try:
        key = [op]
        for x in reads:
            key.append(x.spec)
        for name, value in attrs.items():  # the type is part of the key, because 0, 0.0 and False are equal
            key += (name, type(float(value))) if op in _NUMBERS else (name, value, type(value))
        hash(key := tuple(key))
        return key
    except (AttributeError, TypeError, ValueError, OverflowError):
        got = f"got {reads!r:.60} and {attrs!r:.60}"
        raise TypeError(f"{op!r:.60}: works on live buffers; attributes are numbers or names; {got}") from None


def kernel(op, *kinds, planner=None):
    """Return a decorator: its function becomes the kernel of `op` on these kinds of device, compiled on first use."""

    def enter(function):
        if not (isinstance(op, str) and callable(function) and all(str(kind) in BACKENDS for kind in kinds)):
            raise TypeError(f"kernel: {op!r:.30} for {kinds!r:.60} is {function!r:.60}; expected names, and a function")
        plain = getattr(function, "py_func", function)  # the function inside numba's `njit`
        for kind in kinds or BACKENDS:  # all kinds, if none is named
            KERNELS.version += KERNELS.get((op, kind), plain) is not plain
            KERNELS.first.setdefault((op, kind), plain)
            KERNELS[op, kind] = plain
        if planner is not None:
            PLANNERS[op] = planner
        PLANS.clear()
        return function

    return enter


def counted(run):
    """Return how many launches `run()` makes, and how many bytes they read and write."""
    for p in PLANS.values():
        p.launches = 0
    run()
    return sum(p.launches for p in PLANS.values()), sum(p.launches * p.nbytes for p in PLANS.values())


def planned(op, reads, attrs):
    """The plan for this op on these buffers: the one made before, or a new one."""
    key = _key_of(op, reads, attrs)
    return PLANS.get(key) or PLANS.setdefault(key, plan(op, reads, attrs))


def launch(op, out, *inputs, **attrs):
    """Run the kernel of `op` and return its result, in `out` (None: a new buffer). An op of UPDATES also reads `out`.

    Raises LookupError for an unknown op, TypeError for wrong dtypes or attributes, ValueError for shapes or `out`.
    """
    reads = (out, *inputs) if out is not None and str(op) in UPDATES else inputs
    found = planned(op, reads, attrs)
    return found.result(Buffer, reads, attrs) if out is None else found.start(out, reads, attrs)


def same_dtype(op, *inputs, kinds="f"):
    """Return the common dtype. Raises TypeError if two differ, or for kinds not listed: f float, i integer, b bool."""
    dtype = inputs[0].dtype
    if any(x.dtype != dtype for x in inputs):
        given = " and ".join(f"{x.dtype}{list(x.shape)}" for x in inputs)
        raise TypeError(f"{op}: the inputs are {given}, in this order; all need the same dtype, so cast one of them")
    if dtype.kind not in kinds or dtype.itemsize not in (1, 4, 8):
        raise TypeError(f"{op}: has no kernel for {dtype}; cast it, to float32 for example")
    return dtype


KERNEL_TRIALS = []  # trial(op, kind, function, before): raises ValueError if a kernel differs from the one before


@contextmanager
def use(op, kind, function):
    """In a `with` block, make `function` the kernel of `op` on a kind of device. Raises LookupError if it had none."""
    before, compiler = kernel_of(op, kind), BACKENDS[kind].compiler
    try:
        for trial in KERNEL_TRIALS:
            trial(op, kind, function, before)
        if not KERNEL_TRIALS:
            BACKENDS[kind].compiler = functools.partial(compiler, boundscheck=True)
        kernel(op, kind)(function)
        yield
    finally:
        BACKENDS[kind].compiler = compiler
        kernel(op, kind)(before)

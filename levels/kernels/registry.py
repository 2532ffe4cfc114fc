"""An op is a name; a kernel is one kind of device's program for it; one table joins them."""

# Built from 02_kernels.ipynb: edit there, then run its last cell.

import difflib
import functools
import inspect
import math
import operator
import reprlib
from contextlib import contextmanager

import numpy as np

from levels import more

from .cache import compile_cpu, compiled_for


class _Kernels(dict):
    """(op, kind of device) -> the function that is compiled for it. Prints as a table of ops by kinds."""

    version = 0  # grows whenever one of them becomes another

    def __setitem__(self, key, function):
        self.version += self.get(key, function) is not function
        super().__setitem__(key, function)

    def __repr__(self):
        kinds = sorted({kind for _, kind in self})
        rows = [[op, *("x" * ((op, kind) in self) for kind in kinds)] for op in sorted({op for op, _ in self})]
        return "\n".join("  ".join(text.ljust(16) for text in row).rstrip() for row in [["op", *kinds], *rows])


KERNELS = _Kernels()
COMPILERS = {"cpu": compile_cpu}  # kind of device -> how a function becomes its program


class Plan:
    """What a call with these shapes and dtypes will do: the Spec of its result, the bytes it moves, the program to run.

    The program is made when the plan first runs: lower() gives run(out, *inputs, *numbers), on NumPy arrays.
    """

    __slots__ = ("spec", "nbytes", "lower", "run", "numbers", "plain", "launches", "stale")

    def __init__(self, spec, nbytes, lower, numbers=()):
        self.spec, self.nbytes, self.lower = spec, nbytes, lower
        self.numbers = tuple(numbers)  # the names of the attributes that `run` takes as numbers, in its order
        self.plain = not numbers  # it takes nothing but arrays
        self.run, self.launches, self.stale = self.first_run, 0, bool  # bool() is False: nobody says that it is stale

    def ready(self):
        """This plan, its program made if that was not done yet."""
        if self.run == self.first_run:
            self.run = self.lower()
        return self

    def first_run(self, *arrays):
        """What `run` is until the program is there."""
        self.ready().run(*arrays)


PLANNERS = {}  # op -> planner(op, function, *inputs, **attrs) -> Plan
KIND_PLANNERS = {}  # (op, kind of device) -> its planner, where this kind plans the op in a way of its own
FLAT = set()  # kinds of device whose programs see an array as one long row, where its plan says nothing else
UPDATES = set()  # ops that overwrite their first input, such as "sgd"


def lowered(kind, function, dtype, *how):
    """What will compile this function for arrays of that dtype, on devices of that kind, when it is called."""
    return functools.partial(COMPILERS[kind], function, dtype, *how)


def make(op, shape, dtype, inputs, lower, views=None, numbers=()):
    """The Plan that runs the loop which lower() gives on the result and the inputs, each seen in one of the shapes `views`.

    Without them each is seen in its own shape or, on a kind of device that is FLAT, as one row.
    """
    device = inputs[0].device
    specs = [device.spec(shape, dtype), *(x.spec for x in inputs[op in UPDATES :])]
    shapes = [spec.shape for spec in specs]
    views = views or [(math.prod(s),) if device.kind in FLAT else s for s in shapes]

    def program():
        arrays = [np.empty((0,) * len(view), spec.dtype) for view, spec in zip(views, specs)]
        loop, seen = compiled_for(lower(), *arrays, *[0.0] * len(numbers)), device.reshape
        return loop if views == shapes else lambda *arrays: loop(*map(seen, arrays, views), *arrays[len(views) :])

    return Plan(specs[0], specs[0].nbytes + sum(x.spec.nbytes for x in inputs), program, numbers)


def kernel_of(op, kind):
    """The kernel of an op on this kind of device. Raises LookupError where there is none."""
    if op not in PLANNERS and not more("op", op):
        near = difflib.get_close_matches(str(op), PLANNERS, n=1)
        hint = f"did you mean {near[0]!r}?" if near else "KERNELS shows all"
        raise LookupError(f"no op is called {reprlib.repr(op)}; {hint}")
    if kind not in COMPILERS:
        more("kind", kind)  # enters its compiler and its kernels
    more("faster", op)  # may enter a planner that knows a quicker program
    if (op, kind) not in KERNELS:
        raise LookupError(f"{op!r} has no kernel for {kind!r}; it has one for {[k for o, k in KERNELS if o == op]}")
    return KERNELS[op, kind]


def plan(op, inputs, attrs):
    """Make the Plan for this op on these buffers. What is wrong with an op, a device or an input is said here."""
    if not inputs:
        raise TypeError(f"{op}: works on arrays, and none is given")
    for buffer in inputs:
        if buffer.spec is not buffer.device.spec(buffer.shape, buffer.dtype):  # freed
            raise TypeError(f"{op}: works on live buffers, got {buffer!r}")
    devices = sorted({buffer.device.name for buffer in inputs})
    if len(devices) > 1:
        raise ValueError(f"{op}: inputs lie on {' and '.join(devices)}; copy them to one device")
    kind = inputs[0].device.kind
    function = kernel_of(op, kind)
    planner = KIND_PLANNERS.get((op, kind), PLANNERS[op])
    given = op, function, *(buffer.spec for buffer in inputs)
    try:
        inspect.signature(planner).bind(*given, **attrs)
    except TypeError as error:
        raise TypeError(f"{op}: {error}") from None
    made = planner(*given, **attrs)
    if guard := more("guard", "kernel"):
        made.stale = guard.staleness(function)
    return made


def same_dtype(op, *inputs, kinds="f"):
    """The dtype of all inputs. Raises TypeError where two differ (nothing is cast in silence), or for a kind not named.

    `kinds` are NumPy's letters: f floats, i integers, b bool.
    """
    dtypes = {str(buffer.dtype) for buffer in inputs}
    if len(dtypes) > 1:
        raise TypeError(f"{op}: dtypes {' and '.join(sorted(dtypes))} do not mix; cast one of them")
    if inputs[0].dtype.kind not in kinds or inputs[0].dtype.itemsize not in (1, 4, 8):
        raise TypeError(f"{op}: has no kernel for {inputs[0].dtype}; cast it, to float32 for example")
    return inputs[0].dtype


PLANS = {}  # (op, specs of the inputs, attributes) -> the Plan made for it
NUMBERS = set()  # ops whose attributes are numbers for the kernel, such as a rate: any numbers share a plan
_spec_of, _data_of = operator.attrgetter("spec"), operator.attrgetter("data")  # quicker than a loop of ours


def _key_of(op, reads, attrs):
    """What the plan for this op on these buffers is kept under. Raises TypeError for what can be no key."""
    try:
        if len(reads) == 1:  # these two are the commonest; spelled out they take half the time
            key = op, reads[0].spec
        elif len(reads) == 2:
            key = op, reads[0].spec, reads[1].spec
        else:
            key = (op, *map(_spec_of, reads))
    except AttributeError:
        raise TypeError(f"{op}: works on live buffers, got {reads!r}; `put` an array on a device first") from None
    if attrs:
        key += (*attrs,) if op in NUMBERS else (*attrs, *attrs.values())
        try:
            hash(key)
        except TypeError:
            raise TypeError(
                f"{op}: attributes are numbers, names or tuples of them, got {reprlib.repr(attrs)}"
            ) from None
    return key


def planned(op, reads, attrs):
    """The plan for this op on these buffers: the one made before, unless it is stale."""
    key = _key_of(op, reads, attrs)
    found = PLANS.get(key)
    if found is None or found.stale():
        found = PLANS[key] = plan(op, reads, attrs)
    return found


def launch(op, out, *inputs, **attrs):
    """Run the kernel of `op` and leave the result in the buffer `out` (None: a new one). Returns the buffer.

    An op of UPDATES reads `out`, too. Raises LookupError for an unknown op, TypeError for dtypes and attributes that do not
    fit, ValueError for shapes that do not, for a wrong `out`, and for one that is an input as well.
    """
    found = planned(op, (out, *inputs) if op in UPDATES else inputs, attrs)
    if out is None:
        out = found.spec.device.new(found.spec)
    elif getattr(out, "spec", None) is not found.spec:  # (a freed buffer has a Spec of its own)
        raise ValueError(f"{op}: the result needs a live buffer {found.spec}, got {out!r}")
    for x in inputs:
        if x is out:
            raise ValueError(f"{op}: the result would overwrite an input; give it a buffer of its own")
    found.launches += 1
    found.run(out.data, *map(_data_of, inputs), *map(attrs.get, found.numbers))
    return out


def kernel(op, *kinds, planner=None):
    """Decorate a function: it becomes the kernel of `op` for these kinds of device, compiled when a plan first needs it."""

    def enter(function):
        for kind in kinds or COMPILERS:  # for all kinds, where none is named
            KERNELS[op, kind] = getattr(function, "py_func", function)
        if planner is not None:
            PLANNERS[op] = planner
        PLANS.clear()
        return function

    return enter


def counted(run):
    """How many launches `run()` makes, and how many bytes they read and write."""
    for found in PLANS.values():
        found.launches = 0
    run()
    return sum(p.launches for p in PLANS.values()), sum(p.launches * p.nbytes for p in PLANS.values())


@contextmanager
def use(op, kind, function):
    """Inside this `with` block, `function` is the kernel of `op` for that kind of device, on every level above.

    Raises LookupError where there is none to replace. With levels_more it is tried first: a function that is wrong raises
    ValueError with a counter-example, and nothing is changed.
    """
    before, compiler, trials = kernel_of(op, kind), COMPILERS[kind], more("guard", "use")
    try:
        COMPILERS[kind] = functools.partial(compiler, boundscheck=True)
        if trials:
            trials.try_kernel(op, kind, function, before)
            COMPILERS[kind] = compiler
        kernel(op, kind)(function)
        yield
    finally:
        COMPILERS[kind] = compiler
        kernel(op, kind)(before)

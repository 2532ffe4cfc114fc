"""An op is a name; a kernel is one kind of device's program for it; one table joins them."""

# Built from 02_kernels.ipynb: edit there, then run its last cell.

import difflib
import functools
import inspect
import math
import operator
import reprlib

import numpy as np

from levels import more

from .cache import compile_cpu, compiled_for, rebound, watched


class Kernels(dict):
    """(op, kind of device) -> the function that is compiled for it. Prints as a table of ops by kinds."""

    version = 0  # grows with every change

    def __setitem__(self, key, function):
        super().__setitem__(key, function)
        self.version += 1

    def __repr__(self):
        kinds = sorted({kind for _, kind in self})
        rows = [[op, *("x" * ((op, kind) in self) for kind in kinds)] for op in sorted({op for op, _ in self})]
        return "\n".join("  ".join(text.ljust(16) for text in row).rstrip() for row in [["op", *kinds], *rows])


KERNELS = Kernels()
COMPILERS = {"cpu": compile_cpu}  # kind of device -> how a function becomes its program
PLANNERS = {}  # op -> planner(op, function, *inputs, **attrs) -> Plan
KIND_PLANNERS = {}  # (op, kind of device) -> its planner, where this kind plans the op in a way of its own
FLAT = set()  # kinds of device whose programs see an array as one long row, where its plan says nothing else
PLANS = {}  # (op, specs of the inputs, attributes) -> the Plan made for it
UPDATES = set()  # ops whose first inputs are their results, such as "sgd": they read the numbers that they overwrite
NUMBERS = set()  # ops whose attributes are numbers for the kernel, such as a rate: any numbers share a plan


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


class Plan:
    """What a call with these shapes and dtypes will do: the Spec of its result, the bytes it moves, the program to run.

    All but the program is known at once. lower() makes that, when the plan first runs:
    run(*results, *inputs, *numbers), on NumPy arrays.
    """

    __slots__ = ("spec", "nbytes", "lower", "run", "numbers", "plain", "launches", "watched")

    def __init__(self, spec, nbytes, lower, numbers=()):
        self.spec, self.nbytes, self.launches = spec, nbytes, 0  # several results: a tuple of Specs
        self.lower, self.run = lower, self.first_run
        self.numbers = tuple(numbers)  # the names of the attributes that `run` takes as numbers, in its order
        self.plain = not numbers and type(spec) is not tuple  # one result, and nothing but arrays

    def ready(self):
        """This plan, its program made if that was not done yet."""
        if self.run == self.first_run:
            self.run = self.lower()
        return self

    def first_run(self, *arrays):
        """What `run` is until the program is there."""
        self.ready().run(*arrays)


def lowered(kind, function, dtype, *how):
    """What will compile this function for arrays of that dtype, on devices of that kind, when it is called."""
    return functools.partial(COMPILERS[kind], function, dtype, *how)


def make(op, shape, dtype, inputs, lower, views=None, numbers=(), results=1):
    """The Plan that runs the loop which lower() gives on the results and the inputs, each seen in one of the shapes `views`.

    Without them each is seen in its own shape or, on a kind of device that is FLAT, as one row.

    Its traffic: every input is read once and each result, all of one Spec, written once.
    """
    spec = inputs[0].device.spec(shape, dtype)
    specs = [spec] * results + [buffer.spec for buffer in inputs[results * (op in UPDATES) :]]
    shapes = [s.shape for s in specs]
    views = views or [(math.prod(s),) if spec.device.kind in FLAT else s for s in shapes]
    reshape = spec.device.reshape

    def program():
        arrays = [np.empty((0,) * len(view), s.dtype) for view, s in zip(views, specs)]
        loop = compiled_for(lower(), *arrays, *[0.0] * len(numbers))

        def on_two(out, x):  # the commonest; spelled out it takes half the time
            loop(out.reshape(views[0]), x.reshape(views[1]))

        def on_all(*arrays):
            loop(*map(reshape, arrays, views), *arrays[len(views) :])

        return loop if views == shapes else on_two if len(views) == 2 and not numbers else on_all

    nbytes = results * spec.nbytes + sum(buffer.spec.nbytes for buffer in inputs)
    return Plan(spec if results == 1 else (spec,) * results, nbytes, program, numbers)


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


def kernel_of(op, kind):
    """The function that the table has for an op on this kind of device. Raises LookupError where it has none."""
    if op not in PLANNERS and not more("op", op):
        near = difflib.get_close_matches(op, PLANNERS, n=1) if isinstance(op, str) else []
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
        if getattr(buffer, "data", buffer) is None:  # (a Spec will do)
            raise TypeError(f"{op}: works on live buffers, got {buffer!r}")
    devices = sorted({buffer.device.name for buffer in inputs})
    if len(devices) > 1:
        raise ValueError(f"{op}: inputs lie on {' and '.join(devices)}; copy them to one device")
    kind = inputs[0].device.kind
    function = kernel_of(op, kind)
    planner, given = KIND_PLANNERS.get((op, kind), PLANNERS[op]), (op, function, *(buffer.spec for buffer in inputs))
    try:
        inspect.signature(planner).bind(*given, **attrs)
    except TypeError as error:
        raise TypeError(f"{op}: {error}") from None
    made = planner(*given, **attrs)
    made.watched = watched(function)
    return made


spec_of, data_of = operator.attrgetter("spec"), operator.attrgetter("data")  # quicker than a loop of ours


def planned(op, reads, attrs):
    """The plan for this op on these buffers: the one made before, unless it is stale."""
    try:
        if len(reads) == 1:  # these two are the commonest; spelled out they take half the time
            key = op, reads[0].spec
        elif len(reads) == 2:
            key = op, reads[0].spec, reads[1].spec
        else:
            key = (op, *map(spec_of, reads))
    except AttributeError:
        raise TypeError(f"{op}: works on live buffers, got {reads!r}; `put` an array on a device first") from None
    if attrs:
        key = (*key, *attrs) if op in NUMBERS else (*key, *attrs, *attrs.values())
    try:
        found = PLANS.get(key)
    except TypeError:
        raise TypeError(f"{op}: attributes are numbers, names or tuples of them, got {reprlib.repr(attrs)}") from None
    if found is None or (found.watched and rebound(found.watched)):
        found = PLANS[key] = plan(op, reads, attrs)
    return found


def new_results(spec):
    """A new buffer for a result, or a tuple of them for several."""
    return tuple(map(new_results, spec)) if type(spec) is tuple else spec.device.new(spec)


def check_results(op, out, inputs, spec):
    """Raise ValueError unless these buffers can take the results. (A freed buffer has a Spec of its own.)"""
    outs = out if type(out) is tuple else (out,)
    specs = tuple(getattr(buffer, "spec", None) for buffer in outs)
    if specs != (spec if type(spec) is tuple else (spec,)):
        raise ValueError(f"{op}: the result needs a live buffer {spec}, got {out!r}")
    if len({*outs, *inputs}) < len(outs) + len({*inputs}):
        raise ValueError(f"{op}: the result would overwrite an input; give it a buffer of its own")


def execute(found, out, inputs, attrs):
    """Count a launch of this plan, and run it."""
    found.launches += 1
    if found.plain and len(inputs) == 2:
        found.run(out.data, inputs[0].data, inputs[1].data)
    elif found.plain and len(inputs) == 1:
        found.run(out.data, inputs[0].data)
    else:
        outs = out if type(out) is tuple else (out,)
        found.run(*map(data_of, (*outs, *inputs)), *map(attrs.get, found.numbers))


def launch(op, out, *inputs, **attrs):
    """Run the kernel of `op` and leave the result in the buffer `out` (None: a new one). Returns the buffer.

    Where an op has several results, `out` is a tuple of buffers.
    """
    reads = inputs
    if op in UPDATES:
        reads = (*out, *inputs) if type(out) is tuple else (out, *inputs)
    found = planned(op, reads, attrs)
    if out is None:
        out = new_results(found.spec)
    elif getattr(out, "spec", None) is not found.spec or len(inputs) > 2 or out is inputs[0] or out is inputs[-1]:
        check_results(op, out, inputs, found.spec)
    execute(found, out, inputs, attrs)
    return out


def counted(run):
    """How many launches `run()` makes, and how many bytes they read and write."""
    for found in PLANS.values():
        found.launches = 0
    run()
    return sum(p.launches for p in PLANS.values()), sum(p.launches * p.nbytes for p in PLANS.values())

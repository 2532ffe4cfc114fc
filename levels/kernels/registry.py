"""The kernel of each op on each kind of device, and the plans of launches."""

# Built from 02_kernels.ipynb: edit there, then run its last cell.

import functools
from contextlib import contextmanager

from levels.hardware import Buffer
from levels.support.compiled import compile_cpu, fitted
from levels.support.locks import MAKING, compiled_once
from levels.support.tables import Backend, KernelTable, check_kernel, check_out, guarded, kind_of, no_key

KERNELS = KernelTable()  # (op, kind of device) -> the function that is compiled for it
BACKENDS = {"cpu": Backend(compile_cpu)}  # kind of device -> what depends on it


UPDATES = set()  # ops that overwrite their first input, such as "sgd"


class Plan:
    """What a launch does: its result's Spec, the bytes that it moves, its program."""

    def __init__(self, op, shape, dtype, inputs, lower, views=None, numbers=()):
        """Plan a result of this shape and dtype. `lower()` returns the program."""
        specs = [inputs[0].device.spec(shape, dtype), *[x.spec for x in inputs]]
        views = views or [spec.shape for spec in specs]
        self.op = op
        self.spec = specs[0]
        self.nbytes = sum(spec.nbytes for spec in specs)
        self.lower = fitted(lower, specs, views, numbers)
        self.numbers = numbers  # names of attributes that the program gets
        self.compiled = None  # the program
        self.launches = 0

    def run(self, out, reads, attrs):
        """Run the program on the buffers `reads`, and return `out`.

        `out` is none of the inputs, but the first one if the op is in UPDATES.
        `attrs` are all attributes of this launch: name -> value.
        """
        program = self.compiled or compiled_once(self)
        values = [attrs[name] for name in self.numbers]
        program(out.data, *[x.data for x in reads], *values)
        self.launches += 1
        return out

    def start(self, out, reads, attrs):
        """Do the same, but first check `out`, which may be any buffer."""
        check_out(self, out, reads, self.op in UPDATES)
        return self.run(out, reads, attrs)

    def result(self, allocate, reads, attrs):
        """Do the same with a new buffer for the result: allocate(spec)."""
        return self.run(allocate(self.spec), reads, attrs)


# op -> a function planner(op, function, *specs, **attrs) that returns a Plan.
# With the key (op, kind), it serves this kind of device only.
PLANNERS = {}
PLANS = {}  # (op, Specs of the inputs, attributes) -> the Plan made for them


def lowered(function, x, *how):
    """Return a function that compiles `function` for x's dtype when it is called."""
    return functools.partial(BACKENDS[x.device.kind].compiler, function, x.dtype, *how)


# Other packages add functions finish(plan, op, function, specs, attrs) to this list.
# Each returns a plan with the same result, such as a quicker one.
PLAN_FINISHERS = []


def plan(op, reads, attrs):
    """Make the Plan for this op on these buffers."""
    kind = kind_of(op, reads)
    function = KERNELS[op, kind]
    specs = [x.spec for x in reads]
    planner = PLANNERS.get((op, kind)) or PLANNERS[op]
    made = planner(op, function, *specs, **attrs)
    for finish in PLAN_FINISHERS:
        made = finish(made, op, function, specs, attrs)
    return made


def kernel(op, *kinds, planner=None):
    """Decorate a function: it becomes the kernel of `op` on these kinds, or on all."""

    def enter(function):
        check_kernel(op, function, kinds, BACKENDS)
        for kind in kinds or BACKENDS:
            KERNELS[op, kind] = function
        if planner is not None:
            PLANNERS[op] = planner
        PLANS.clear()
        return function

    return enter


NUMBERS = {}  # op -> its attributes that are numbers for the kernel, with examples


def _key_of(op, reads, attrs):
    """Return the key of the plan for this op on these buffers."""
    try:
        key = [op, *[x.spec for x in reads]]
        for name, value in attrs.items():
            if op in NUMBERS:
                float(value)  # raises an error for what is no number
                key.append(name)
            else:
                key += [name, value, type(value)]
        key = tuple(key)
        hash(key)
    except (AttributeError, TypeError, ValueError, OverflowError):
        raise no_key(op, reads, attrs) from None
    return key


def planned(op, reads, attrs):
    """The plan for this op on these buffers: the one made before, or a new one."""
    key = _key_of(op, reads, attrs)
    return PLANS.get(key) or PLANS.setdefault(key, plan(op, reads, attrs))


def launch(op, out, *inputs, **attrs):
    """Run the kernel of `op` and return its result, in `out` (None: a new buffer).

    An op of UPDATES also reads `out`. Raises LookupError for an unknown op,
    TypeError for wrong dtypes or attributes, ValueError for shapes or `out`.
    """
    updates = out is not None and str(op) in UPDATES
    reads = (out, *inputs) if updates else inputs
    found = planned(op, reads, attrs)
    if out is None:
        return found.result(Buffer, reads, attrs)
    return found.start(out, reads, attrs)


def counted(run):
    """Return how many launches `run()` makes, and how many bytes they move."""
    for each in PLANS.values():
        each.launches = 0
    run()
    launches = sum(each.launches for each in PLANS.values())
    return launches, sum(each.launches * each.nbytes for each in PLANS.values())


IN_USE = {}  # (op, kind) -> [(None, the kernel before), then one for each open block]


@contextmanager
def use(op, kind, function):
    """In a `with` block, make `function` the kernel of `op` on a kind of device."""
    with guarded(function):
        with MAKING:
            before = KERNELS[op, kind]
            kernel(op, kind)(function)
            blocks = IN_USE.setdefault((op, kind), [(None, before)])
            mine = (object(), function)
            blocks.append(mine)
        try:
            yield
        finally:
            with MAKING:  # blocks that overlap may end in any order
                blocks.remove(mine)
                kernel(op, kind)(blocks[-1][1])
                if len(blocks) == 1:
                    del IN_USE[op, kind]

# %% [markdown]
# # 2 · Kernels
#
# **In this notebook you fill a table of small compiled programs, and train a model by calling them by name.**
#
# A framework never says "add these numbers with this loop". It says `"add"`, and looks up who can do that on this device.
# In our house the kernels are the clay. They lie on level 1's ground, and every brick of level 3 is made of them.
#
# From level 1 you need: a **device** such as `cpu:0`, whose memory holds your numbers; a **buffer**, an array in that memory;
# its **Spec**, which is device, shape and dtype without the numbers; and what a **launch** costs, which is one call of a
# program.
#
# Short notebooks lie beside this one, one idea each. They are named at the end.

# %%
from course import build, figures, tasks

build.watch("02_kernels")
figures.you_are_here(2)

# %% [markdown]
# ## A surprise to begin with (3 min)
#
# We add an array to itself: once with 1 number in it, once with 1,000.

# %% tags=["hide-input"]
# a question: run me
from course.practice import checks

checks.predict(
    "How many times longer do the thousand take?",
    slider=(1, 1000),
    answer=(1.2, 4),
    because="Almost all of a small call is preparation, and that does not depend on how many numbers there are.",
)

# %% tags=["nbval-ignore-output"]
import timeit

import numpy as np


def timed(call, number=1000):
    """The seconds of one call, in the best of five rounds of so many."""
    return min(timeit.repeat(call, number=number)) / number


one, thousand = np.ones(1), np.ones(1000)
short, long = timed(lambda: one + one), timed(lambda: thousand + thousand)
print(f"1 number {short * 1e9:.0f} ns, 1,000 numbers {long * 1e9:.0f} ns: {long / short:.1f} times")

# %% [markdown]
# A thousand times the work, and nowhere near a thousand times the time. Python finds the function; NumPy checks the arrays and
# allocates the result; only then does a loop run. This level is about both: the loop, and what it costs to call one.
#
# ## A first kernel (3 min)
#
# A **kernel** is a small compiled program that does one operation on whole arrays. On level 1 you wrote such programs
# instruction by instruction. [numba](https://numba.readthedocs.io/en/stable/user/5minguide.html) writes them from a
# Python loop, through the same LLVM.

# %%
from numba import njit


def add_python(out, x, y):
    for i in range(len(out)):
        out[i] = x[i] + y[i]


add_numba = njit(add_python)

x = np.arange(100_000.0)
out = np.empty_like(x)
first = timeit.timeit(lambda: add_numba(out, x, x), number=1)
print("right:", bool((out == 2 * x).all()))

# %% tags=["nbval-ignore-output"]
slow, fast = timed(lambda: add_python(out, x, x), 1), timed(lambda: add_numba(out, x, x), 1)
print(f"Python {slow * 1e6:.0f} µs, numba {fast * 1e6:.0f} µs: {slow / fast:.0f} times")
print(f"the first call of the numba version, with compiling: {first * 1e3:.0f} ms")

# %% [markdown]
# The first call took thousands of times as long as the second: it compiled. So a framework keeps what it compiled. The danger
# is a **stale** kernel: you change a function, and the old program runs. (numba's own cache does that.) Ours keeps each program
# under a **hash**, a short fingerprint of all that it was made from: what is changed has another hash, and so another program.
#
# The plumbing for that comes from `levels/support`: `compile_cpu(function, dtype)` compiles a function for arrays of that dtype, or
# finds the program that was kept. (`more/02_cache` takes it apart.)

# %%
from levels.support.compiled import STANDS, compile_cpu, for_types

# %% [markdown]
# ## A name and a table (10 min)
#
# An op is a name. A kernel is one kind of device's program for it. One table joins the two: `KERNELS`, a `dict` that prints as
# a table (its class is folded). Beside it, `KINDS` holds a `Backend` for each kind of device: how it compiles, and what it does in
# its own way. There is one kind so far, `cpu`.

# %% tags=["hide-input"]
#| export registry
"""An op is a name; a kernel is one kind of device's program for it; one table joins them."""

import functools


class _Kernels(dict):
    """(op, kind of device) -> the function that is compiled for it. Prints as a table: each op, and where it runs."""

    version = 0  # grows when one becomes another than the first: what was made of it is out of date

    def __init__(self):
        super().__init__()
        self.first = {}  # (op, kind) -> the function that was entered first

    def is_first(self, op, kind):
        """Whether an op has the kernel that was entered first. (A mean runs that of the sum, too.)"""
        return all(self[each, kind] is self.first[each, kind] for each in (op, op.replace("mean", "sum")))

    def __repr__(self):
        kinds = {op: " ".join(sorted(kind for o, kind in self if o == op)) for op, _ in sorted(self)}
        return "\n".join(f"{op:16}  {has}" for op, has in kinds.items())


# %%
#| export registry
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Backend:
    """What one kind of device does in its own way."""

    compiler: Callable  # (function, dtype) -> the program for arrays of that dtype
    nest: Callable = None  # (places, line) -> the lines of the loops around that line
    ravels: bool = True  # whether a kernel can see any array as one row
    loops: tuple = ()  # how it sums: along rows, down columns
    moves: Callable = None  # how `levels_more` takes numbers from place to place
    names: dict = field(default_factory=dict)  # what the loops may name, as a GPU's `cuda`


KERNELS = _Kernels()  # (op, kind of device) -> the function that is compiled for it
KINDS = {"cpu": Backend(compile_cpu)}  # kind of device -> its Backend

# %% [markdown]
# Our first entry: a kernel that doubles.


# %%
def twice(out, x):
    for i in range(len(out)):
        out[i] = 2.0 * x[i]


KERNELS["twice", "cpu"] = twice
KERNELS

# %% [markdown]
# One op, one kind of device that has it. Nothing is compiled yet. A look-up that fails should say what was meant:


# %%
#| export registry
import difflib
import reprlib

from levels.support.locks import MAKING


def kernel_of(op, kind):
    """The kernel of an op on that kind of device. Raises LookupError if there is none."""
    if (str(op), str(kind)) in KERNELS:
        return KERNELS[op, kind]
    if kinds := [k for o, k in [*KERNELS] if o == str(op)]:
        raise LookupError(f"{op!r} has no kernel for {kind!r}; it has one for {kinds}")
    near = difflib.get_close_matches(str(op), {known for known, _ in [*KERNELS]}, n=1)
    hint = f"did you mean {near[0]!r}?" if near else "KERNELS shows all, and levels_more.kernels has more"
    raise LookupError(f"no op is called {reprlib.repr(op)}; {hint}")


# %%
try:
    kernel_of("twise", "cpu")
except LookupError as error:
    print(error)

# %% [markdown]
# To **launch** an op is to look its kernel up, find room for the result, and run. In short (`data` is a buffer's memory, on a
# CPU a NumPy array):


# %%
def launch(op, out, *inputs):
    """Run the kernel of `op` and leave the result in the buffer `out` (None: a new one, like the first input)."""
    device, dtype = inputs[0].device, inputs[0].dtype
    program = KINDS[device.kind].compiler(kernel_of(op, device.kind), dtype)
    if out is None:
        out = device.alloc(inputs[0].shape, dtype)
    program(out.data, *(x.data for x in inputs))
    return out


# %%
from levels.hardware import pool

cpu = pool()["cpu:0"]
three = cpu.put(np.arange(3.0))
launch("twice", None, three).numpy()

# %% [markdown]
# And what does it cost, beside the program itself?

# %% tags=["nbval-ignore-output"]
out, program = cpu.alloc((3,), "f8"), compile_cpu(twice, np.dtype("f8"))
launched, alone = timed(lambda: launch("twice", out, three)), timed(lambda: program(out.data, three.data))
print(f"launched by name {launched * 1e6:.1f} µs, the program alone {alone * 1e6:.2f} µs")

# %% [markdown]
# Two troubles. Each launch asks anew which program it is: a hash is made every time. And `launch` believes its caller: into an
# `out` of two numbers it would write three. But which program it is, and which `out` is right, follow from shapes and dtypes
# alone. So both can be settled once.
#
# ## A plan, made once (19 min)
#
# What a call with these shapes and dtypes will do is a **plan**. It holds the Spec of the result, how many bytes are moved, and
# the program. Plans are kept, and the way of a launch is this:
#
# ```
#   launch("twice", out, three)
#         │
#         ▼   key: the op, the Specs of its inputs, its attributes
#      PLANS ──── there is a plan under that key ────────────────► run it on the arrays
#         │                                                         ▲
#         └── there is none ──► the op's planner makes one ── keep ─┘
# ```
#
# The class is folded. You need `spec`, `nbytes`, and `start(out, reads, attrs)`, which refuses a wrong `out`, runs the program on
# buffers and counts a launch; `result` makes the buffer, too. The program itself is made when a plan first runs,
# by one thread alone: behind `MAKING`, a lock of `levels/support`.


# %% tags=["hide-input"]
#| export registry
class Plan:
    """What a call with these shapes and dtypes will do: the Spec of its result, the bytes it moves, the program to run.

    lower() gives run(out, *inputs, *numbers) on NumPy arrays; `numbers` are the attributes that it takes as numbers.
    """

    def __init__(self, spec, nbytes, lower, numbers=()):
        self.spec, self.nbytes, self.lower, self.numbers = spec, nbytes, lower, numbers
        self.compiled, self.launches = None, 0

    def made(self):
        """The program, compiled on first use: by one thread, while the others wait."""
        with MAKING:
            if self.compiled is None:
                self.compiled = self.lower()
        return self.compiled

    def run(self, out, *arguments):
        """Run the program on arrays."""
        (self.compiled or self.made())(out, *arguments)

    def start(self, out, reads, attrs):
        """Run on these buffers, and count it. Returns `out`. Raises ValueError where the result does not fit there."""
        inputs = reads[1:] if self.op in UPDATES else reads
        if getattr(out, "spec", None) is not self.spec or id(out) in map(id, inputs):
            raise ValueError(f"{self.op}: needs a live buffer {self.spec}, and may overwrite no input; got {out!r}")
        self.launches += 1
        program = self.compiled or self.made()
        program(out.data, *[x.data for x in reads], *map(attrs.get, self.numbers))
        return out

    def result(self, kind, reads, attrs):
        """The same, into a new buffer of that kind."""
        return self.start(kind(self.spec), reads, attrs)


# %% [markdown]
# Each op has a **planner**, a function that makes its plans. It says which result there will be and which loop computes it. Two
# helpers do the rest. `lowered(function, x)` is the compiler for arrays like `x`, not yet called. `make`, folded, puts a Plan
# together from the result's shape and dtype, the inputs, and such a compiler.

# %%
#| export registry
PLANNERS = {}  # op, or (op, kind) -> planner(op, function, *inputs, **attrs) -> Plan
PLANS = {}  # (op, specs of the inputs, attributes) -> the Plan made for it


def lowered(function, x, *how):
    """What will compile this function for arrays like `x`, a buffer or its Spec, when it is called."""
    return functools.partial(KINDS[x.device.kind].compiler, function, x.dtype, *how)


# %% tags=["hide-input"]
#| export registry
def make(op, shape, dtype, inputs, lower, views=None, numbers=()):
    """The Plan that runs the loop of lower() on the result and the inputs, each seen in one of the shapes `views`."""
    specs = [inputs[0].device.spec(shape, dtype), *(x.spec for x in inputs)]
    shapes, seen = [spec.shape for spec in specs], specs[0].device.reshape
    views = views or shapes

    def fitted():
        arrays = [np.empty((0,) * len(view), spec.dtype) for view, spec in zip(views, specs)]
        loop = for_types(lower(), [*arrays, *[0.0] * len(numbers)])
        if views == shapes:
            return loop
        return lambda *arrays: loop(*map(seen, arrays, views), *arrays[len(views) :])

    return Plan(specs[0], sum(spec.nbytes for spec in specs), fitted, numbers)


# %% [markdown]
# The planner of `twice` is one line: a result like `x`, and the kernel, lowered.


# %%
def plan_twice(op, function, x):
    return make(op, x.shape, x.dtype, [x], lowered(function, x))


PLANNERS["twice"] = plan_twice
made = plan_twice("twice", twice, three)
print(made.spec, "-", made.nbytes, "bytes to move")

# %% [markdown]
# 24 bytes are read and 24 written. Before the planner is asked, `plan` refuses what no op can do. (A freed buffer has a Spec
# of its own: that tells it.) The list PLAN_FINISHERS is empty here: it is for a package that has a quicker way to the same result.


# %%
#| export registry
PLAN_FINISHERS = []  # finish(plan, op, function, specs, attrs) -> this plan, or another one that gives the same


def plan(op, inputs, attrs):
    """Make the Plan for this op on these buffers. Raises TypeError for freed ones, ValueError for two devices."""
    if any(x.spec is not x.device.spec(x.shape, x.dtype) for x in inputs):  # freed
        raise TypeError(f"{op}: works on live buffers, got {inputs!r}")
    devices = sorted({x.device.name for x in inputs})
    if len(devices) != 1:
        there = " and ".join(devices) or "no device"
        raise ValueError(f"{op}: inputs lie on {there}; copy them to one device")
    kind = inputs[0].device.kind
    function = kernel_of(op, kind)
    planner = PLANNERS.get((op, kind), PLANNERS[op])
    made = planner(op, function, *(x.spec for x in inputs), **attrs)
    made.op = op
    for finish in PLAN_FINISHERS:
        made = finish(made, op, function, [x.spec for x in inputs], attrs)
    return made


# %% [markdown]
# `_key_of(op, reads, attrs)`, folded, gives the key that a plan is kept under: the op, the Specs of what it reads, and the
# **attributes** of the call, such as `axis=0` of a sum. Of a number such as `rate=0.1`, which may change from call to call, only
# the name is part of it: one plan serves all rates.

# %% tags=["hide-input"]
#| export registry
from levels.hardware import Buffer

_NUMBERS = set()  # ops whose attributes are numbers for the kernel, such as a rate: one plan serves all


def _key_of(op, reads, attrs):
    """What the plan for this op on these buffers is kept under. Raises TypeError for what can be no key."""
    try:
        key = [op]
        for x in reads:
            key.append(x.spec)
        if attrs:
            for name, value in attrs.items():
                if op in _NUMBERS:
                    key += name, type(float(value))
                else:  # and its type: 0, 0.0 and False are equal
                    key += name, value, type(value)
        hash(key := tuple(key))
        return key
    except (AttributeError, TypeError, ValueError, OverflowError):
        got = f"got {reads!r:.60} and {attrs!r:.60}"
        raise TypeError(f"{op!r:.60}: works on live buffers; attributes are numbers or names; {got}") from None


# %% [markdown]
# Now the look-up, which is **yours**. The first call with a key makes a plan and puts it into `PLANS`. Every later call with an
# equal key gets that very plan.


# %%
#| export registry blank planned
def planned(op, reads, attrs):
    """The plan for this op on these buffers: the one made before, or a new one."""
    ...  # 2 to 4 lines, the first of them: key = _key_of(op, reads, attrs)


# %% [markdown]
# <details><summary>Hint</summary><code>PLANS.get(key)</code> is None where there is no plan yet.</details>
# <details><summary>Second hint</summary>A new one is made by <code>plan(op, reads, attrs)</code>, and kept:
# <code>PLANS[key] = …</code>, or <code>setdefault</code>, which gives back what it keeps.</details>
# <details><summary>Solution</summary>
#
# ```python
# def planned(op, reads, attrs):
#     """The plan for this op on these buffers: the one made before, or a new one."""
#     key = _key_of(op, reads, attrs)
#     return PLANS.get(key) or PLANS.setdefault(key, plan(op, reads, attrs))
# ```
# </details>
#
# And `launch` again. Now a wrong `out` is refused: the plan knows what the result must be. One more thing: an op that overwrites,
# one of `UPDATES`, reads its `out` as its first input.


# %%
#| export registry
UPDATES = set()  # ops that overwrite their first input, such as "sgd"


def launch(op, out, *inputs, **attrs):
    """Run the kernel of `op`, with its result in the buffer `out` (None: a new one), which an op of UPDATES reads, too.

    Raises LookupError for an unknown op, TypeError for wrong dtypes and attributes, ValueError for shapes or `out`.
    """
    reads = (out, *inputs) if out is not None and str(op) in UPDATES else inputs
    found = planned(op, reads, attrs)
    return found.result(Buffer, reads, attrs) if out is None else found.start(out, reads, attrs)


# %% [markdown]
# The same call as before:

# %%
print(launch("twice", None, three).numpy())
try:
    launch("twice", cpu.alloc((2,), "f8"), three)
except ValueError as error:
    print(error)

# %% tags=["nbval-ignore-output"]
again = timed(lambda: launch("twice", out, three))
print(f"launched {launched * 1e6:.1f} µs at first, {again * 1e6:.2f} µs with a kept plan")

# %% [markdown]
# **A good place to stop.** A name finds its kernel, and a plan is made once for each shape.
#
# From here on we enter kernels with `kernel(op)`, a decorator. It empties PLANS, since they hold the kernels of before. In
# `KERNELS.version` it counts how often one took the place of another, so that level 3 can tell when a program of its own is old;
# `KERNELS.first` keeps those that came first.
# And since every launch adds to its plan, `counted` can say how many there were.


# %%
#| export registry
def kernel(op, *kinds, planner=None):
    """Decorate a function: it becomes the kernel of `op` on these kinds of device, compiled when first needed."""

    def enter(function):
        known = all(str(kind) in KINDS for kind in kinds)
        if not known or not isinstance(op, str) or not callable(function):
            got = f"{op!r:.30} for {kinds!r:.60} is {function!r:.60}"
            raise TypeError(f"kernel: {got}; expected names, and a function")
        plain = getattr(function, "py_func", function)  # out of numba's `njit`
        for kind in kinds or KINDS:  # for all kinds, where none is named
            KERNELS.version += KERNELS.get((op, kind), plain) is not plain
            KERNELS.first.setdefault((op, kind), plain)
            KERNELS[op, kind] = plain
        if planner is not None:
            PLANNERS[op] = planner
        PLANS.clear()
        return function

    return enter


def counted(run):
    """How many launches `run()` makes, and how many bytes they read and write."""
    plans = PLANS.values()
    for p in plans:
        p.launches = 0
    run()
    return sum(p.launches for p in plans), sum(p.launches * p.nbytes for p in plans)


# %%
counted(lambda: [launch("twice", None, three) for _ in range(2)])

# %% [markdown]
# Two launches, twice 48 bytes. But must each op bring a loop and a planner of its own? We take `twice` out again, and look for
# something shorter.

# %%
del KERNELS["twice", "cpu"], PLANNERS["twice"]
PLANS.clear()
# %% [markdown]
# ## One scalar function, one loop (21 min)
#
# Addition of arrays is addition of numbers, in a loop. So we write only the addition of *numbers*, and let Python write the
# loop around it, as a text. Two arrays of one shape need one loop, over all their numbers as over one long row:
#
# ```
# for i in range(len(out)):
#     out[i] = add(x0[i], x1[i])
# ```
#
# Where shapes differ, the smaller array is repeated
# ([**broadcasting**](https://numpy.org/doc/stable/user/basics.broadcasting.html), NumPy's rule): a bias of shape `(1, 4)` is
# added to every row of `(10, 4)`. That takes a loop for each axis, and along an axis where an array is repeated its index stays 0:
#
# ```
# for i in range(len(out)):
#     for j in range(len(out[0])):
#         out[i, j] = add(x0[i, j], x1[0, j])
# ```
#
# What stands in the brackets we call the *place* of a number. Shapes decide it:


# %%
#| export elementwise
"""Elementwise ops: one scalar function each, and the loop that Python writes around it."""

import inspect
import math


def places_of(shape, shapes):
    """The places of the result and of each input, as texts. A single letter counts along an array seen as one row."""
    if all(s == shape or math.prod(s) == 1 for s in shapes):
        return ["i", *("i" if s == shape else "0" for s in shapes)]
    letters, places = [*"ijkl", *(f"i{n}" for n in range(4, len(shape)))], []
    for s in (shape, *shapes):
        left = len(shape) - len(s)  # axes that it lacks: shapes are aligned at the right
        axes = zip(letters[left:], s, shape[left:])
        places.append(", ".join(i if own == size else "0" for i, own, size in axes) or "0")
    return places


# %%
for other in ((10, 4), (1, 1), (1, 4)):
    print((10, 4), "and", other, "->", places_of((10, 4), [(10, 4), other]))

# %% [markdown]
# Two matrices, or a matrix and a lone number, are one row of 40. With the bias there are two loops. Now Python writes them. Around
# the one `line` that computes a number it puts a loop for each letter; before them, arrays to be seen as one row become `flat`.


# %%
#| export elementwise
def nest(places, line):
    """The lines of the loops around this one; `places` are those of the arrays `out`, `x0`, …"""
    rows = [f"{name} = {name}.flat" for name, place in places.items() if "," not in place]
    letters = places["out"].split(", ")
    loops = [f"for {i} in range(len(out{'[0]' * n})):" for n, i in enumerate(letters)]
    return rows + ["    " * n + text for n, text in enumerate([*loops, line])]


KINDS["cpu"].nest = nest

# %%
print("\n".join(nest({"out": "i", "x0": "i", "x1": "0"}, "out[i] = add(x0[i], x1[0])")))

# %% [markdown]
# And the line itself: each array with its place in brackets, handed to the scalar function. So are its `numbers`, such as a rate,
# in the arrays' dtype.


# %%
#| export elementwise
def loop_source(name, places, numbers=(), around=nest):
    """The text of a loop that calls the scalar function `name` once for each number of the result."""
    arrays = ["out", *(f"x{k}" for k in range(len(places) - 1))]
    places = dict(zip(arrays, places))
    out, *inputs = (f"{array}[{place}]" for array, place in places.items())
    call = ", ".join([*inputs, *(f"number({n})" for n in numbers)])
    lines = around(places, f"{out} = {name}({call})")
    return "\n    ".join([f"def loop({', '.join([*places, *numbers])}):", *lines])


# %%
print(loop_source("add", places_of((10, 4), [(10, 4), (1, 4)])))

# %% [markdown]
# This is the second loop of above. Python runs such a text with `exec`, in a `scope` that says what its names mean.


# %%
#| export elementwise
def element_loop(function, x, places, numbers=()):
    """The Python loop around a scalar function, for arrays like `x`; the rest is as in `loop_source`."""
    backend = KINDS[x.device.kind]
    scope = {"__name__": "__main__", "scalar": function, "number": x.dtype.type, **backend.names}
    exec(loop_source("scalar", places, numbers, backend.nest), scope)
    return scope["loop"]


# %% [markdown]
# Dtypes do not mix on this level. Most planners ask first for the one dtype of their inputs:


# %%
#| export registry
def same_dtype(op, *inputs, kinds="f"):
    """The dtype of all inputs. Raises TypeError where two differ, or for other kinds: f float, i integer, b bool."""
    dtypes, dtype = sorted({str(x.dtype) for x in inputs}), inputs[0].dtype
    if len(dtypes) > 1:
        given = " and ".join(f"{x.dtype}{list(x.shape)}" for x in inputs)
        raise TypeError(f"{op}: {given}: dtypes {' and '.join(dtypes)} do not mix; cast one")
    if dtype.kind not in kinds or dtype.itemsize not in (1, 4, 8):
        raise TypeError(f"{op}: has no kernel for {dtype}; cast it, to float32 for example")
    return dtype


# %% [markdown]
# The planner of all elementwise ops is folded. It asks what fits the op, and what the common shape is: so which loop is it?

# %% tags=["hide-input"]
#| export elementwise
ELEMENTWISE = {}  # op -> (the kinds of dtypes it takes, the dtype it gives, how many masks, an example of each number)


def _plan_elementwise(op, function, *inputs, shape=None, **numbers):
    """out[…] = function(x[…], y[…], …), broadcast to the common shape (or to a larger `shape`)."""
    names, shapes = list(inspect.signature(function).parameters), [x.shape for x in inputs]
    rest = names[len(inputs) :]
    if len(names) != len(inputs) + len(numbers) or {*rest} != {*numbers} or (shape and numbers):
        raise TypeError(f"{op}: takes {', '.join(names)}; got {len(inputs)} arrays and the numbers {list(numbers)}")
    (takes, gives, masks, _), last = ELEMENTWISE[op], inputs[-1]
    dtype = same_dtype(op, *inputs[masks:], kinds=takes)
    for mask in inputs[:masks]:
        same_dtype(op, mask, kinds="b")
    try:
        common = np.broadcast_shapes(shape or (), *shapes)
    except (ValueError, RuntimeError):  # the second for more axes than NumPy has
        raise ValueError(f"{op}: shapes {' and '.join(map(reprlib.repr, shapes))} do not broadcast") from None
    if common != (shape or common) or op in UPDATES and shapes[0] != common:
        raise ValueError(f"{op}: shapes {' and '.join(map(str, shapes))} do not fit a result of {shape or shapes[0]}")
    places, views = places_of(common, shapes), None
    if not KINDS[last.device.kind].ravels:  # then who is seen as one row has to be one
        views = [s if "," in place else (math.prod(s),) for s, place in zip([common, *shapes], places)]
    loop = lowered(element_loop(function, last, places, rest), last)
    return make(op, common, gives or dtype, inputs, loop, views, rest)


# %% [markdown]
# `scalar(op)`, a decorator, makes an op of a scalar function. Each of its `numbers` has an example. (`gives` and `masks` are for
# `levels_more`.)


# %%
#| export elementwise
def scalar(op, updates=False, takes="f", gives=None, masks=0, **numbers):
    """Decorate a scalar function: it becomes the op of that name. It takes dtypes of kinds f float, i integer, b bool.

    With `updates` its result overwrites its first input. It gives the dtype that it takes, or `gives`; so many of its
    first inputs are `masks` of bools. `numbers` are its attributes, with an example of each.
    """

    def enter(function):
        kernel(op, planner=_plan_elementwise)(function)
        ELEMENTWISE[op] = takes, gives, masks, numbers
        if updates:
            UPDATES.add(op)
        if numbers:
            _NUMBERS.add(op)
        return function

    return enter


# %% [markdown]
# Eight ops, a line each. `spread` is for the gradient of a sum or a mean. `broadcast_to` does nothing to a number: the loop around
# it is the work. `sgd` is the update of gradient descent: it overwrites the weight that it reads.


# %%
#| export elementwise
scalar("add", takes="fi")(lambda x, y: x + y)
scalar("subtract", takes="fi")(lambda x, y: x - y)
scalar("multiply", takes="fi")(lambda x, y: x * y)
scalar("divide")(lambda x, y: x / y)
scalar("negative", takes="fi")(lambda x: -x)
scalar("spread", count=3.0)(lambda dy, x, count: dy / count)  # its share, to each of x
scalar("broadcast_to", takes="fi")(lambda x: x)
scalar("sgd", updates=True, rate=0.1)(lambda w, dw, rate: w - rate * dw)

# %%
print(launch("add", None, three, cpu.put(np.full(1, 10.0))).numpy())

# %% [markdown]
# The net needs `exp` and `log`, and they are those of level 1. There they were made of small instructions, such as x·2ⁿ or the
# nearest whole number. What stands for these in a compiled kernel is folded.

# %% tags=["hide-input"]
#| export elementwise
from levels.hardware import EXP, LOG, REAL, exp, exponent, log, rint, scaled, select, sqrt


def _in_halves(x, n):
    """x·2ⁿ in two steps, since 2ⁿ alone may be too small or too large."""
    return x * math.ldexp(1.0, int(n) // 2) * math.ldexp(1.0, int(n) - int(n) // 2)


def _by_frexp(dtype):
    """The function of x, of that dtype, which gives its exponent as `exponent` does."""
    return lambda x: dtype.type(math.frexp(x)[1] - (math.frexp(x)[0] < 0.7071067811865476))


STANDS[exp] = EXP.get
STANDS[log] = LOG.get
STANDS[select] = lambda dtype: lambda condition, x, y: x if condition else y
STANDS[rint] = lambda dtype: lambda x: np.rint(x)
STANDS[sqrt] = lambda dtype: lambda x: math.sqrt(x)
STANDS[scaled] = lambda dtype: _in_halves  # and the n for which x lies between √½·2ⁿ and √2·2ⁿ:
STANDS[exponent] = {dtype: _by_frexp(dtype) for dtype in REAL}.get

# %% [markdown]
# A gradient is an op as well. `dy` is the slope of the loss at an op's output; the gradient's kernel makes of it the slope at the
# input. Relu lets it through, for a NaN too, except where its output is 0. **Yours**: one line. (`select(condition, x,
# y)`, from level 1, is x where the condition holds, else y.)


# %%
#| export elementwise blank relu_grad
def relu_grad(dy, y):
    """The slope at relu's input, from `dy`, that at its output `y`, two numbers: dy, or 0.0 where y is 0."""
    ...  # 1 line


# %% [markdown]
# <details><summary>Hint</summary>Where relu gave 0, moving its input changes nothing.</details>
# <details><summary>Second hint</summary><code>select(y &lt;= 0.0, …, …)</code>: a kernel for numbers has no arrays to
# mask.</details>
# <details><summary>Solution</summary>
#
# ```python
# def relu_grad(dy, y):
#     """The slope at relu's input, from `dy`, that at its output `y`, two numbers: dy, or 0.0 where y is 0."""
#     return select(y <= 0.0, 0.0, dy)
# ```
# </details>
#
# Relu and its gradient, sigmoid, which makes a probability of any number, and clip, which keeps that away from 0 and 1, where log
# would be infinite:


# %%
#| export elementwise
scalar("relu")(lambda x: select(x <= 0.0, 0.0, x))
scalar("relu_grad")(relu_grad)
scalar("sigmoid")(lambda x: 1.0 / (1.0 + exp(0.0 - x)))
scalar("sigmoid_grad")(lambda dy, y: dy * y * (1.0 - y))
scalar("exp")(lambda x: exp(x))
scalar("log")(lambda x: log(x))
scalar("sqrt")(lambda x: sqrt(x))
scalar("clip", low=-0.5, high=0.5)(lambda x, low, high: select(x < low, low, select(x > high, high, x)))
# dy where x lies strictly between them, else 0
scalar("clip_grad", low=-0.5, high=0.5)(lambda dy, x, low, high: select(low < x, select(x < high, dy, 0.0), 0.0))

# %%
launch("relu", None, cpu.put(np.array([-2.0, 3.0, np.nan]))).numpy()

# %% [markdown]
# Relu asks for `<= 0` and not for `> 0`, because NaN is neither: what is no number shows in the loss, and does not vanish as a 0.
#
# **A good place to stop.** Seventeen ops stand in the table: a scalar function each, one loop for all.
#
# ## Many numbers become one (11 min)
#
# A sum is not elementwise: many numbers become one. A loop begins at a number, `start`, and takes in one more with a function,
# `combine`. So an op needs no loop of its own. It gives the number and the function, and gets the loop:

# %%
#| export reduce
"""Reductions: many numbers become one, along an axis."""

from levels.support.checks import flag


def reduce_rows(combine, start):
    """The loop out[i] = combine(… combine(start, x[i, 0]) …, x[i, last]), for out[rows] and x[rows, n]."""

    def loop(out, x):
        for i in range(x.shape[0]):
            total = start
            for k in range(x.shape[1]):
                total = combine(total, x[i, k])
            out[i] = total

    return loop


# %% [markdown]
# Along a row the sum starts at 0.0 and runs upwards, as the record says. Not compiled yet, on the rows [0 1 2] and [3 4 5]:

# %%
x, out = np.arange(6.0).reshape(2, 3), np.empty(2)
reduce_rows(np.add, 0.0)(out, x)
print(out)

# %% [markdown]
# Down the columns it is the same, and neighbours `j` stand side by side. Any array can be seen as `[before, within, after]` the
# axis that is summed, so these two loops serve all.


# %%
#| export reduce
def reduce_columns(combine, start):
    """The loop out[i, j] = combine(… combine(start, x[i, 0, j]) …, x[i, last, j]), neighbours j side by side."""

    def loop(out, x):
        out[:] = start
        for i in range(out.shape[0]):
            for k in range(x.shape[1]):
                for j in range(out.shape[1]):
                    out[i, j] = combine(out[i, j], x[i, k, j])

    return loop


KINDS["cpu"].loops = reduce_rows, reduce_columns
QUICKER = {}  # a loop -> another one that gives the same bits, sooner
REDUCTIONS = {}  # op -> the number that its loops start at

# %% [markdown]
# One exception. Remember the surprise of notebook 01: one running sum of 2²⁵ float32 ones stops at 16,777,216. So in rows of
# 1,024 float32 or more the compiler may split a sum over its lanes: many sums, each of fewer numbers. In float64 nothing is
# reordered, ever. In the folded cell `_plan_reduce` takes the loop that fits an axis, and gives it the op's number and function. (`flag`, of
# `levels/support`, refuses what is not True or False.)


# %% tags=["hide-input"]
#| export reduce
def reduced(op, shape, axis):
    """(the axes, sorted; the sizes before, within and after them). Raises ValueError unless they are neighbours."""
    axes = range(len(shape)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    if not all(isinstance(a, int) and -len(shape) <= a < len(shape) for a in axes):
        raise ValueError(f"{op}: axis {reprlib.repr(axis)} is not an axis of shape {shape}")
    axes = sorted(a % len(shape) for a in axes)
    first, last = (axes[0], axes[-1] + 1) if axes else (0, 0)
    if axes != list(range(first, last)):
        raise ValueError(f"{op}: the axes {axis} are not neighbours, each named once; reduce one after the other")
    return axes, [math.prod(sizes) for sizes in (shape[:first], shape[first:last], shape[last:])]


def _plan_reduce(op, function, x, axis=None, keepdims=False):
    """Reduce over one axis, over a tuple of neighbours, or over all (axis=None)."""
    axes, (before, within, after) = reduced(op, x.shape, axis)
    start, dtype = REDUCTIONS[op], same_dtype(op, x, kinds="fi")
    if dtype.kind == "i":  # which has no infinity to start at
        start = max(np.iinfo(dtype).min, min(start, np.iinfo(dtype).max))
    keep, fast = flag(f"{op}: keepdims", keepdims), ()
    shape = tuple(1 if a in axes else size for a, size in enumerate(x.shape) if keep or a not in axes)
    along_rows, down_columns = (QUICKER.get(loop, loop) for loop in KINDS[x.device.kind].loops)
    if after == 1:  # the numbers of a sum lie side by side
        reduction, views = along_rows, [(before,), (before, within)]
        if within >= 1024 and dtype == np.float32:
            fast = ("reassoc",)
    else:
        reduction, views = down_columns, [(before, after), (before, within, after)]

    def lower():
        combine = lowered(function, x, fast)()
        return lowered(reduction(combine, dtype.type(start)), x, fast)()

    return make(op, shape, dtype, [x], lower, views)


# %% [markdown]
# A mean is the plan of a sum, then one division: so the "kernel" of the mean is that division.


# %%
#| export reduce
def _plan_mean(op, function, x, axis=None, keepdims=False):
    """The sum over these axes, divided by how many numbers it is made of."""
    same_dtype(op, x)
    total = _plan_reduce("reduce_sum", kernel_of("reduce_sum", x.device.kind), x, axis, keepdims)
    count = math.prod(x.shape) / max(1, math.prod(total.spec.shape))
    divide = _plan_elementwise("divide", function, total.spec, count=count)

    def run(out, x):
        total.run(out, x)
        divide.run(out, out, count)

    return make(op, total.spec.shape, x.dtype, [x], lambda: run)


kernel("reduce_sum", planner=_plan_reduce)(lambda total, x: total + x)
kernel("reduce_mean", planner=_plan_mean)(lambda total, count: total / count)
REDUCTIONS["reduce_sum"] = 0.0


# %% [markdown]
# A sum along an axis takes that axis away. The way back will need it again, so one op only changes the shape:


# %%
#| export reduce
def plan_reshape(op, function, x, shape=()):
    """The same numbers in the same order, in another shape. Raises ValueError for a shape of more or fewer numbers."""
    row = (math.prod(x.shape),)
    if not isinstance(shape, tuple) or (math.prod(shape),) != row or min(shape, default=0) < 0:
        raise ValueError(f"{op}: {x.shape} does not fit into {shape!r}: {row[0]} numbers")
    loop = lowered(element_loop(function, x, ["i", "i"]), x)
    return make(op, shape, x.dtype, [x], loop, [row, row])


kernel("reshape", planner=plan_reshape)(lambda x: x)

# %% [markdown]
# The 2²⁵ ones again, which one running sum took for 16,777,216:

# %%
float(launch("reduce_sum", None, cpu.put(np.ones(2**25, "f"))).numpy())

# %% [markdown]
# ## Rows by number (4 min)
#
# A batch is rows of the data picked by number. A wrong number must not read somebody else's memory. Its planner sees any array
# as a matrix, through `views`. And of `x` only the picked rows are read, so it counts the bytes itself.


# %%
#| export whole
"""Kernels on whole arrays: rows picked by number, and the matrix product."""


def _plan_gather(op, function, x, rows):
    """out[i, …] = x[rows[i], …]"""
    if rows.dtype != np.int64 or len(x.shape) < 1:
        raise TypeError(f"{op}: rows are {rows.dtype}; expected int64 row numbers of an array")
    count, width = math.prod(rows.shape), math.prod(x.shape[1:])
    views = [(count, width), (x.shape[0], width), (count,)]
    made = make(op, rows.shape + x.shape[1:], x.dtype, [x, rows], lowered(function, x), views)
    made.nbytes = 2 * made.spec.nbytes + rows.spec.nbytes  # of x only these rows are read
    return made


# %%
#| export whole
@kernel("gather", planner=_plan_gather)
def gather(out, x, rows):
    """out[i, j] = x[rows[i], j]. Raises IndexError for a row that x has not."""
    for i in range(rows.size):
        row = rows[i]  # read once: for all the compiler knows, the loop below may change it
        if not 0 <= row < x.shape[0]:
            raise IndexError("gather: a row number is out of range")
        for j in range(x.shape[1]):
            out[i, j] = x[row, j]


# %% [markdown]
# Three rows by number, one of them twice:

# %%
table = cpu.put(np.arange(6.0).reshape(3, 2))
launch("gather", None, table, cpu.put(np.array([2, 0, 2]))).numpy().tolist()

# %% [markdown]
# ## The product, and the order of its loops (15 min)
#
# The matrix product has three loops, over the rows `i` and the columns `j` of the result and over `k`. For each result the sum
# runs over `k` upwards from 0.0; that is the record's order. Here is the definition, as it stands in books:


# %%
def matmul_ijk(out, x, w):
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            total = 0.0
            for k in range(x.shape[1]):
                total += x[i, k] * w[k, j]
            out[i, j] = total


# %% [markdown]
# Memory hands out no single numbers but **cache lines**, 64 bytes that lie side by side; a **cache**, small and near, keeps the
# latest of them. **Which order of the three loops loads the fewest?** Here is a product of
# 8 x 8 numbers, small enough to watch: a line holds four numbers, and the cache has room for six lines. You stand in the middle
# of `ijk`. Move `step` a few steps with the arrow keys, then change `order`.

# %%
from course.figures import widgets

widgets.explore(
    figures.loop_order,
    "The lines that a matrix product loads, step by step, for each of the six orders of its loops.",
    order=figures.ORDERS,
    step=range(8**3 + 1),
    start={"order": "ijk", "step": 303},
)

# %% [markdown]
# In `ijk` the inner loop walks down a column of `w`. Each step loads a line and uses one of its four numbers. Eight steps later
# the next number is wanted, and the line is gone: 512 loads for `w`, 656 in all. In `ikj` the inner loop walks along rows and
# uses all four numbers of a line before it leaves it: 128 loads for `w`, 160 in all. `jki` walks down two matrices at once and
# loads 1,088.
#
# **Yours**: the product in the order that loads the fewest, `ikj`: for each `i`, each `k`, and innermost each `j`. It sets `out` to
# 0.0 first, and then adds to it.


# %%
#| export whole blank matmul_ikj
def matmul_ikj(out, x, w):
    """out[i, j] = Σₖ x[i, k]·w[k, j], starting at 0.0, k upwards."""
    ...  # 5 lines


# %% [markdown]
# <details><summary>Hint</summary>Three loops, i, k, j, and one line within. What does <code>out</code> hold when you
# begin?</details>
# <details><summary>Second hint</summary><code>out[:] = 0.0</code> first; then <code>out[i, j] += x[i, k] * w[k,
# j]</code>.</details>
# <details><summary>Solution</summary>
#
# ```python
# def matmul_ikj(out, x, w):
#     """out[i, j] = Σₖ x[i, k]·w[k, j], starting at 0.0, k upwards."""
#     out[:] = 0.0
#     for i in range(out.shape[0]):
#         for k in range(x.shape[1]):
#             for j in range(out.shape[1]):
#                 out[i, j] += x[i, k] * w[k, j]
# ```
# </details>

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "Both orders, compiled, in float32 and for 512 x 512: how many times as fast is `ikj`?",
    slider=(1, 100),
    answer=(8, 80),
    because="Along a row, whole cache lines are used, and neighbours do not wait for each other: the compiler takes as many "
    "as there are lanes, which differs from machine to machine. Down a column it can do neither.",
)

# %% tags=["nbval-ignore-output"]
x, w, out = np.random.default_rng(0).standard_normal((3, 512, 512)).astype("f4")
ijk, ikj = (compile_cpu(function, np.dtype("f4")) for function in (matmul_ijk, matmul_ikj))
slow, fast = timed(lambda: ijk(out, x, w), 1), timed(lambda: ikj(out, x, w), 1)
print(f"ijk {slow * 1e3:.1f} ms, ikj {fast * 1e3:.1f} ms: {slow / fast:.0f} times as fast")

# %% [markdown]
# The same sums, in another order. (`more/02_matmul` goes on, to the machine's peak.) The planner of `matmul` refuses inner sizes
# that differ. A backward pass wants products such as xᵀ · x, and no copy of x turned round: with `transpose_x` it is only read in
# another order.


# %%
#| export whole
def _plan_matmul(op, function, x, w, transpose_x=False, transpose_w=False):
    """out[m, n] = x[m, k] @ w[k, n]; either may be given transposed, and is then read so, not copied."""
    dtype = same_dtype(op, x, w, kinds="fi")
    if len(x.shape) != 2 or len(w.shape) != 2:
        raise ValueError(f"{op}: x is {x.shape} and w is {w.shape}: both need two axes")
    turned = [flag(f"{op}: a transpose", t) for t in (transpose_x, transpose_w)]
    (m, k), (rows, n) = (a.shape[:: -1 if t else 1] for a, t in zip((x, w), turned))
    if k != rows:
        raise ValueError(f"{op}: x is {(m, k)} and w is {(rows, n)}: inner sizes {k} and {rows} differ")
    compiler = lowered(function, x)

    def lower():
        loop = compiler()
        return lambda out, x, w: loop(out, x.T if transpose_x else x, w.T if transpose_w else w)

    return make(op, (m, n), dtype, [x, w], lower)


kernel("matmul", planner=_plan_matmul)(matmul_ikj)

# %%
try:
    launch("matmul", None, table, table)
except ValueError as error:
    print(error)
launch("matmul", None, table, table, transpose_x=True).numpy().tolist()

# %% [markdown]
# The table is full:

# %%
KERNELS

# %% [markdown]
# **A good place to stop.** All kernels of both tasks are in the table.
#
# ## Your own kernel (8 min)
#
# A table can be changed. Suppose you have a better idea for relu: `x * (x > 0)`, with no branch. Put it into the table, and
# every level above runs it. The door for that is `use`, a *context manager*: what stands before `yield` runs when the `with`
# block begins, what stands under `finally` when it ends, by an error too.
#
# A kernel of yours may reach past an array's end. So in the block every index is checked. (KERNEL_TRIALS is a list for a package
# that tries a kernel before it is used.)


# %%
#| export registry
from contextlib import contextmanager

KERNEL_TRIALS = []  # trial(op, kind, function, before): raises ValueError where a kernel differs from the one before


@contextmanager
def use(op, kind, function):
    """Inside this `with` block, `function` is the kernel of `op` for that kind of device, on every level above.

    Raises LookupError where there is none to replace, and what KERNEL_TRIALS raise.
    """
    before, here = kernel_of(op, kind), KINDS[kind]
    compiler = here.compiler
    try:
        for trial in KERNEL_TRIALS:
            trial(op, kind, function, before)
        if not KERNEL_TRIALS:
            here.compiler = functools.partial(compiler, boundscheck=True)
        kernel(op, kind)(function)
        yield
    finally:
        here.compiler = compiler
        kernel(op, kind)(before)


# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "On which input does `x * (x > 0)` differ from relu, which is `0 if x <= 0 else x`?",
    choices=["on none", "on 0", "on -infinity", "on very large numbers"],
    answer="on -infinity",
    because="-infinity times 0 is not a number (NaN). Relu makes 0 of it. (A NaN stays a NaN in both.)",
)


# %%
def no_branch(x):
    return x * (x > 0)


hard = cpu.put(np.array([-np.inf, -2.0, 0.0, 3.0, np.inf, np.nan]))
print("the course's", launch("relu", None, hard).numpy())
with use("relu", "cpu", no_branch):
    print("the new one ", launch("relu", None, hard).numpy())

# %% [markdown]
# One number of six (-0 is equal to 0), and a training run that meets it is lost. So a kernel should be tried on hard inputs
# before it runs: `more/02_trial` does that, refuses this one, and says why. Here is one that is right:


# %%
def mine(x):
    return 0.0 if x <= 0.0 else x


with use("relu", "cpu", mine):
    print(KERNELS["relu", "cpu"] is mine, launch("relu", None, hard).numpy())
print(KERNELS["relu", "cpu"] is mine)

# %% [markdown]
# Level 5 will train a net with `model.fit`. In such a block it runs your relu, too: every level above comes down to the table.
#
# The course's own relu is `select(x <= 0.0, 0.0, x)`, which also works where no number is known yet, in notebook 01's programs. `mine`
# asks with `if`, so with it the levels above run op by op: the same numbers, more slowly. Level 3 says so.
#
# ## The two tasks on this level (16 min)
#
# ### Data
#
# The same as on level 1: 400 points around a known plane, and the penguins. A row of `batches` holds the ten row numbers of one
# step.

# %%
task = tasks.linear()
print("x", task.x.shape, " y", task.y.shape, " batches", task.batches.shape)

# %% [markdown]
# ### Model and training
#
# A step is now a list of launches. Each works on a whole batch and leaves its result in a new buffer (`None`). The gradients
# are still written by hand, as on level 1: `backward` is the forward pass read from the end, each slope multiplied by the next.

# %%
#| export tasks
"""The two tasks as launches: every op on a whole batch, gradients by hand."""

from levels.hardware import PLACE
from levels.hardware.tasks import Fit
from levels.support.checks import check_inputs, check_task


def linear_forward(x, w, b):
    """The prediction[n, 1] = x[n, k] @ w[k, 1] + b[1, 1]."""
    return launch("add", None, launch("matmul", None, x, w), b)


# %% [markdown]
# Now the step. `place` is the device where numbers are put, `cpu:0` unless somebody says otherwise. `n` and `g` are the batch's
# size and 1/n, as arrays of one number, because a launch takes buffers. `de` is notebook 01's slope, g·e + g·e. The marks
# `# forward`, `# loss`, `# backward` and `# update` are those of level 1.


# %%
#| export tasks
def linear_regression(x, y, weights, batches, learning_rate=0.0005):
    """Mean squared error, stochastic gradient descent; see `Fit` and `check_task` for the shapes."""
    check_task(x, y, weights, batches, learning_rate, units=[1])
    place, dtype = PLACE.device, x.dtype
    w, b = map(place.put, weights)  # model

    x_, y_ = place.put(x), place.put(y)
    size = np.full((1, 1), len(batches[0]), dtype)
    n, g = place.put(size), place.put(1 / size)
    losses = []
    for i in map(place.put, np.asarray(batches, np.int64)):
        rows, target = launch("gather", None, x_, i), launch("gather", None, y_, i)
        prediction = linear_forward(rows, w, b)  # forward
        error = launch("subtract", None, prediction, target)  # loss
        squared = launch("multiply", None, error, error)
        loss = launch("divide", None, launch("reduce_sum", None, squared, axis=0, keepdims=True), n)
        ge = launch("multiply", None, g, error)  # backward
        de = launch("add", None, ge, ge)
        dw = launch("matmul", None, rows, de, transpose_x=True)
        db = launch("reduce_sum", None, de, axis=0, keepdims=True)
        launch("sgd", w, dw, rate=float(learning_rate))  # update
        launch("sgd", b, db, rate=float(learning_rate))

        losses.append(loss.numpy()[0, 0])

    def predict(x):
        check_inputs(x, dtype, w.shape[0])
        return linear_forward(place.put(x), w, b).numpy()

    return Fit(np.array(losses), [w.numpy(), b.numpy()], predict)


# %% [markdown]
# Level 1 ran one program, row after row. This level makes fourteen launches a step, each on a whole batch.

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "Are the losses of the two levels equal?",
    choices=["to about 12 digits", "to the last bit"],
    answer="to the last bit",
    because="Every sum takes the same numbers in the same order, whether the loop over rows stands outside or inside.",
)

# %%
from levels import hardware

fit = linear_regression(task.x, task.y, task.weights, task.batches, task.learning_rate)
below = hardware.tasks.linear_regression(*task[:2], *task[4:7])
print("losses equal: ", bool((fit.losses == below.losses).all()))
print("weights equal:", all((p == q).all() for p, q in zip(fit.weights, below.weights)))
print(f"last loss     {fit.losses[-1]:.4g} ({float(fit.losses[-1]).hex()})")

# %% [markdown]
# ### Result

# %%
figures.regression(task, fit)

# %%
penguins = tasks.penguins_mass()
figures.regression(penguins, linear_regression(*penguins[:2], *penguins[4:7]))

# %% [markdown]
# ### The second task: a net
#
# The net of level 1 as launches. `dnn_forward` is three times the line, each with its activation. `dnn_backward` goes through
# the layers from the last to the first: each has a product and a sum for its own gradients, and a product that hands the slope
# on to the layer before.


# %%
#| export tasks
def dnn_forward(x, weights):
    """The outputs of the two hidden layers and the probability: [n, 4], [n, 8], [n, 1]."""
    w1, b1, w2, b2, w3, b3 = weights
    h1 = launch("relu", None, linear_forward(x, w1, b1))
    h2 = launch("relu", None, linear_forward(h1, w2, b2))
    return h1, h2, launch("sigmoid", None, linear_forward(h2, w3, b3))


def dnn_backward(dz, inputs, weights):
    """The gradients [dw1, db1, dw2, db2, dw3, db3] from that of the last layer's z."""
    gradients = []
    for k in (2, 1, 0):
        dw = launch("matmul", None, inputs[k], dz, transpose_x=True)
        gradients = [dw, launch("reduce_sum", None, dz, axis=0, keepdims=True), *gradients]
        if k > 0:
            dh = launch("matmul", None, dz, weights[2 * k], transpose_w=True)
            dz = launch("relu_grad", None, dh, inputs[k])
    return gradients


# %% [markdown]
# Around them stands `dnn_classifier`, folded: it is `linear_regression` again, with these two calls and the loss between them.
# There `hit` is y·log c, `miss` is (1 − y)·log(1 − c), and clip keeps c away from 0 and 1, where its log would be infinite.


# %% tags=["hide-input"]
#| export tasks
def dnn_classifier(x, y, weights, batches, learning_rate=0.01):
    """features-4-8-1, relu, relu, sigmoid; binary cross-entropy, SGD; see `Fit` and `check_task` for the shapes."""
    check_task(x, y, weights, batches, learning_rate, units=[4, 8, 1])
    place, dtype = PLACE.device, x.dtype
    weights = [place.put(w) for w in weights]  # model

    x_, y_, one = place.put(x), place.put(y), place.put(np.ones((1, 1), dtype))
    size = np.full((1, 1), len(batches[0]), dtype)
    n, g = place.put(size), place.put(-1 / size)
    losses = []
    for i in map(place.put, np.asarray(batches, np.int64)):
        rows, target = launch("gather", None, x_, i), launch("gather", None, y_, i)
        h1, h2, prediction = dnn_forward(rows, weights)  # forward
        c = launch("clip", None, prediction, low=1e-7, high=1.0 - 1e-7)  # loss
        other, q = launch("subtract", None, one, target), launch("subtract", None, one, c)
        hit = launch("multiply", None, target, launch("log", None, c))
        miss = launch("multiply", None, other, launch("log", None, q))
        total = launch("reduce_sum", None, launch("add", None, hit, miss), axis=0, keepdims=True)
        loss = launch("negative", None, launch("divide", None, total, n))
        d_hit = launch("divide", None, launch("multiply", None, g, target), c)  # backward
        d_miss = launch("divide", None, launch("multiply", None, g, other), q)
        dc = launch("subtract", None, d_hit, d_miss)
        dp = launch("clip_grad", None, dc, prediction, low=1e-7, high=1.0 - 1e-7)
        dz = launch("sigmoid_grad", None, dp, prediction)
        gradients = dnn_backward(dz, [rows, h1, h2], weights)
        for w, dw in zip(weights, gradients):  # update
            launch("sgd", w, dw, rate=float(learning_rate))

        losses.append(loss.numpy()[0, 0])

    def predict(x):
        check_inputs(x, dtype, weights[0].shape[0])
        return dnn_forward(place.put(x), weights)[-1].numpy()

    return Fit(np.array(losses), [w.numpy() for w in weights], predict)


# %% [markdown]
# And again level 1 is met to the last bit:

# %%
rings = tasks.rings()
ring_fit = dnn_classifier(*rings[:2], *rings[4:7])
below = hardware.tasks.dnn_classifier(*rings[:2], *rings[4:7])
print("losses equal: ", bool((ring_fit.losses == below.losses).all()))
print("weights equal:", all((p == q).all() for p, q in zip(ring_fit.weights, below.weights)))
figures.classifier(rings, ring_fit)

# %% [markdown]
# The same function on the penguins: is it a female or a male?

# %%
sex = tasks.penguins_sex()
sex_fit = dnn_classifier(*sex[:2], *sex[4:7])
figures.confusion(sex, sex_fit)

# %% [markdown]
# And with your relu? The training never mentions it, but each of its launches looks into the table:

# %%
with use("relu", "cpu", mine):
    again = dnn_classifier(*sex[:2], *sex[4:7])
print("losses equal:", bool((again.losses == sex_fit.losses).all()))

# %% [markdown]
# ## What this level cost (9 min)
#
# As on level 1 we count first. A thousand steps are launched, and each launch adds to its plan:

# %%
from course import compare

short = task._replace(batches=task.batches[:1000])
counts = counted(lambda: linear_regression(*short[:2], *short[4:7]))
launches, nbytes = (count / 1000 for count in counts)
print(f"{launches:.0f} launches and {nbytes:,.0f} bytes a step")

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "On level 1 such a step took about 0.05 µs. How many times as long does it take here?",
    choices=["about 2", "about 30", "several hundred"],
    answer="several hundred",
    because="Fourteen launches of one to three microseconds, with Python between them: 30 to 50 µs. Level 1 makes one call "
    "for all 8,000 steps. The ten rows themselves take no longer than before.",
)

# %% [markdown]
# What does one launch cost, however small? We time an addition of two single numbers, and predict the step from it.

# %% tags=["nbval-ignore-output"]
one, out = cpu.put(np.ones((1, 1))), cpu.alloc((1, 1), "f8")
t_launch = timed(lambda: launch("add", out, one, one))
predicted = launches * t_launch + cpu.roofline(16 * 10, nbytes)
print(f"a launch costs {t_launch * 1e6:.1f} µs")
compare.cost(linear_regression, task, launches, nbytes, predicted)

# %% [markdown]
# The prediction is too low. Why? The same training again, with a `launch` that looks at the clock:

# %% tags=["nbval-ignore-output"]
compare.by_op(linear_regression, short)

# %% [markdown]
# We had timed the cheapest launch: one number, into an `out` that stood ready. The step's launches make new buffers, and a
# product does more. The rest is Python and the clock. Level 3 will first add to that, and then win it back.
#
# ### Side by side with level 1
#
# Here are both levels, mark by mark; a click on *Two rings* shows the net. Read the row *backward*. (Where a level goes op by op, it
# takes over from level 1 for the last thousand steps of the line, and for the last hundred of the net.)

# %%
line = compare.measure(task, hardware.tasks.linear_regression, linear_regression, last=1000)
net = compare.measure(rings, hardware.tasks.dnn_classifier, dnn_classifier, last=100, repeats=1)
compare.side_by_side(line, net)

# %% [markdown]
# Level 1 keeps its sums in registers. Each kernel of level 2 reads and writes whole buffers.
#
# Who else has such a table? (From notebook 03 on their programs run on yours.)
#
# | | TensorFlow | PyTorch | here |
# |---|---|---|---|
# | an op is a name | `tf.raw_ops.AddV2` | `torch.ops.aten.add` | `"add"` |
# | who has a kernel | `REGISTER_KERNEL_BUILDER` (C++) | `TORCH_LIBRARY_IMPL` (C++) | `KERNELS` |
# | run one | inside the runtime | the dispatcher | `launch("add", out, x, y)` |
#
# ## Exercises (optional)
#
# As in notebook 01: fill the stub, run, and read what the check says. A kernel runs as Python first and is then compiled, with
# every index checked, in float64 and in float32. What lies in its result before it runs is not 0.
#
# ### 02-1 · The longer side first
#
# A scalar function for the hypotenuse, √(x² + y²). In float32, x = 10²⁵ has no square: the largest number is 3.4·10³⁸. But the
# hypotenuse has a place there. So take the longer side out of the root:
#
# ```
# √(long² + short²)  =  long · √(1 + (short / long)²)
# ```
#
# (About 4 lines. Hint: `abs`, `max` and `min` work in kernels, and so does `math.sqrt`. What if both sides are 0? A function for
# programs, too, would use `select` for `max` and `min`, and `sqrt` of `levels.hardware`.)

# %%
from course.practice import exercises

exercises.begin("02-1")


def hypotenuse(x, y):
    """√(x² + y²) of two finite numbers."""
    return ...


exercises.check("02-1", hypotenuse)

# %% [markdown]
# Is it right? Then `scalar("hypotenuse")(hypotenuse)` makes an op of it, and every level above can launch it.
#
# ### 02-3 · Broadcasting without a copy
#
# A loop over the common shape needs, for each axis, how far away in memory the next number of an array lies. Where the array is
# repeated, it is the same number again: a step of 0.
#
# ```
# shape          (3, 1)          (4,)          (2, 1, 4)
# common      (2, 3, 4)       (3, 4)        (2, 3, 4)
# steps       [0, 1, 0]       [0, 1]        [4, 0, 1]
# ```
#
# (About 6 lines. Hint: begin at the last axis; shapes are aligned at the right.)

# %%
from course.practice import exercises

exercises.begin("02-3")


def steps_of(shape, common):
    """For each axis of `common`: how many numbers an array of `shape` steps on in memory, 0 where it is repeated."""
    return ...


exercises.check("02-3", steps_of)

# %% [markdown]
# NumPy calls these steps times the bytes of a number its *strides*.
#
# ### Without a check
#
# - Print the loop that `add` gets for shapes `(3, 1)` and `(1, 4)`, as under *One scalar function, one loop*. Which index does each
#   input have?
# - `jki` loads the most lines in the picture. Write it, and time it on two matrices of 512 x 512. Is its result equal to the bit? (In
#   float64 it is. Why?)
# - Add an op `"reduce_product"`, in two lines as those of `reduce_sum`. What does it start at? (The product of 1 to 5 is 120.)
#
# ## Where to go from here (1 min)
#
# Next comes [3 · Low-level API](03_low_level.ipynb). It stands on `launch`'s look-up, and makes tensors of buffers. Beside this
# level lie:
#
# | notebook | its idea |
# |---|---|
# | [more/02_cache](more/02_cache.ipynb) | how a program gets a hash that cannot go stale |
# | [more/02_matmul](more/02_matmul.ipynb) | the matrix product at the machine's peak, and the same bits on any number of threads |
# | [more/02_trial](more/02_trial.ipynb) | a kernel of your own is tried first, and refused with a counter-example |
# | [more/02_reductions](more/02_reductions.ipynb) | the largest, softmax, and four sums side by side |
# | [more/02_moves](more/02_moves.ipynb) | more rows of the table: transposes, slices, casts, rows added up by number |
# | [more/02_random](more/02_random.ipynb) | random numbers without a state |
# | [more/02_machines](more/02_machines.ipynb) | the same scalar functions on two more kinds of device, a GPU and a TPU |
#
# ## Build

# %%
build.level("02_kernels", linear_regression, dnn_classifier)

# %% [markdown]
# Level 2 stands. Next: [3 · Low-level API](03_low_level.ipynb).

# %% [markdown]
# # 2 · Kernels
#
# **In this notebook you fill a table of small compiled programs, and train a model by calling them by name.**
#
# A framework calls an addition by its name, `"add"`. Under this name it finds the program that adds on the device at
# hand. In the picture of the house, kernels are the clay: they lie on level 1's ground, and level 3's bricks are made
# of them.
#
# You need 100 minutes without the optional sections, and four terms from level 1:
#
# - A **device**, such as `cpu:0`, has memory that holds your numbers.
# - A **buffer** is an array in that memory.
# - A buffer's **Spec** is its device, shape and dtype, without the numbers.
# - A **launch** is one call of a program. Each launch has a cost.

# %%
from course import build, figures, tasks

build.watch("02_kernels")
figures.you_are_here(2)

# %% [markdown]
# ## A surprise to begin with (3 min)
#
# We add an array to itself: once with 1 number in it, once with 1,000 numbers.

# %% tags=["hide-input"]
# a question: run me
from course.practice import checks

checks.predict(
    "How many times longer do the thousand take?",
    slider=(1, 1000),
    answer=(1.2, 4),
    because="Almost all of a small call is preparation, which takes the same time for any number of elements.",
)

# %% tags=["nbval-ignore-output"]
import timeit

import numpy as np


def timed(call, number=1000):
    """Return the seconds per call, in the best of five rounds of `number` calls."""
    return min(timeit.repeat(call, number=number)) / number


one, thousand = np.ones(1), np.ones(1000)
short, long = timed(lambda: one + one), timed(lambda: thousand + thousand)
print(f"1 number {short * 1e9:.0f} ns, 1,000 numbers {long * 1e9:.0f} ns: {long / short:.1f} times")

# %% [markdown]
# The work is a thousand times as much, but the time is not. Python finds the function, NumPy checks the arrays and
# allocates the result, and only then does a loop run. This level is about both: the loop, and the cost of calling it.
#
# ## A first kernel (3 min)
#
# A **kernel** is a small compiled program that does one operation on whole arrays. On level 1 you wrote such programs
# instruction by instruction. [numba](https://numba.readthedocs.io/en/stable/user/5minguide.html) makes them from a
# Python loop, with the same compiler library, LLVM.

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
# The first call took many thousands of times as long as the later ones, because it compiled the function. So a
# framework keeps what it has compiled. The danger is a **stale** kernel: you change a function, and the old program
# still runs. (This can happen with numba's own cache, which looks only at the file that holds the function.) We keep
# each program under a **hash**, a short fingerprint of everything that the program was made from. Changed code has
# another hash, so it is compiled again.
#
# `compile_cpu(function, dtype)` compiles a function for arrays of that dtype, or finds the program that was kept. It
# comes from `levels/support`, which holds helpers that the five main notebooks do not explain.
# ([more/02_cache](more/02_cache.ipynb) explains this one.)

# %%
from levels.support.compiled import SUBSTITUTIONS, compile_cpu, for_types

# %% [markdown]
# ## A name and a table (7 min)
#
# An op is a name, such as `"add"`. A kernel is the program for that op on one kind of device. The table `KERNELS`
# joins the two: its keys are pairs of an op and a kind of device. A second table, `BACKENDS`, holds a `Backend` for each
# kind of device. The Backend says, above all, which function compiles kernels there. So far there is one kind, `cpu`.
#
# The next cell defines both tables, and `kernel_of`, which looks a kernel up. You may skip its code.

# %% tags=["hide-input"]
#| export registry
"""Tables of ops: the kernel of each op on each kind of device, and the plans of launches."""

import difflib
import functools
import reprlib
from collections.abc import Callable
from dataclasses import dataclass, field

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


# %% [markdown]
# Our first entry is a kernel that doubles:


# %%
def twice(out, x):
    for i in range(len(out)):
        out[i] = 2.0 * x[i]


KERNELS["twice", "cpu"] = twice
KERNELS

# %% [markdown]
# The table has one op, with a kernel for one kind of device. Nothing is compiled yet. A look-up that fails says what
# you may have meant:

# %%
try:
    kernel_of("twise", "cpu")
except LookupError as error:
    print(error)

# %% [markdown]
# To **launch** an op means three things: look its kernel up, find memory for the result, and run. Here is a first
# version. (`data` is a buffer's memory: on a CPU, a NumPy array.)


# %%
def launch(op, out, *inputs):
    """Run the kernel of `op`, and return its result in the buffer `out` (None: a new one, like the first input)."""
    device, dtype = inputs[0].device, inputs[0].dtype
    program = BACKENDS[device.kind].compiler(kernel_of(op, device.kind), dtype)
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
# How much does the launch cost, compared with the program alone?

# %% tags=["nbval-ignore-output"]
out, program = cpu.alloc((3,), "f8"), compile_cpu(twice, np.dtype("f8"))
launched, alone = timed(lambda: launch("twice", out, three)), timed(lambda: program(out.data, three.data))
print(f"launched by name {launched * 1e6:.1f} µs, the program alone {alone * 1e6:.2f} µs")

# %% [markdown]
# Two things are wrong. First, each launch searches for its program anew, and computes a hash every time. Second,
# `launch` does not check `out`: with room for only two numbers, the third result would be lost. The op, the shapes
# and the dtypes decide which program runs and which `out` is right; the numbers do not. So for each combination of
# them, one search and one check of the shapes are enough.
#
# ## A plan, made once (2 min)
#
# A **plan** says what a call with these shapes and dtypes will do. It holds the Spec of the result, the number of
# bytes that are moved, and the program. Here is such a plan for `twice`:

# %%
from types import SimpleNamespace


def first_plan(x):
    nbytes = 2 * x.spec.nbytes  # x is read, and a result of the same size is written
    return SimpleNamespace(spec=x.spec, nbytes=nbytes, program=compile_cpu(twice, x.dtype))


made = first_plan(three)
made.program(out.data, three.data)
print(made.spec, "-", made.nbytes, "bytes to move -", out.numpy())

# %% [markdown]
# Plans are kept in a table, `PLANS`. A launch then takes one of two ways:
#
# ```
#   launch("twice", out, three)
#         │
#         ▼   key: the op, the Specs of its inputs, its attributes
#      PLANS ──── there is a plan under that key ────────────────► run it on the arrays
#         │                                                         ▲
#         └── there is none ──► the op's planner makes one ── keep ─┘
# ```
# Each op has a **planner**, the function that makes its plans. The next section shows how a planner works. To skip
# it, run its cells and read on at *Plans are kept*. You will meet four of its functions again.
# `plan(op, reads, attrs)` makes the plan for an op. `reads` are the buffers that it reads, and `attrs` are its
# attributes, such as `axis=0`. `_key_of(op, reads, attrs)` gives the plan's key. `kernel(op)` is a decorator that
# enters a kernel into the table. `counted` counts launches.
#
# ## How a plan is made (14 min, optional)
#
# A `Plan` holds the same three parts as the plan of `first_plan`. Its program is compiled when the plan first runs.
# One thread compiles it, and other threads wait, because `made` holds the lock `MAKING` of `levels/support`. `run`
# runs the program on arrays. `start` runs it on buffers: it refuses a wrong `out`, and it counts the launch. `result`
# does the same with a new buffer for the result. (`numbers` names the attributes that are passed to the program.
# `UPDATES` is explained in the next section.)


# %% tags=["hide-input"]
#| export registry
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


# %% [markdown]
# The planner of an op decides the shape of the result and the loop that computes it. Two helpers do the rest.
# `lowered(function, x)` compiles nothing yet: it returns a compiler. When this compiler is called, it compiles the
# function for arrays like `x`. `make` builds a Plan from the result's shape and dtype, the inputs, and such a
# compiler. Some loops need an array in another shape, for example a matrix as one long row. `views` lists these
# shapes: first for the result, then for each input. `for_types`, of `levels/support`, finds the machine code for the
# arrays' types once, so that a launch need not search for it.

# %%
#| export registry
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


# %% [markdown]
# The planner of `twice` is one line. The result is like `x`, and the loop is the kernel itself:


# %%
def plan_twice(op, function, x):
    return make(op, x.shape, x.dtype, [x], lowered(function, x))


PLANNERS["twice"] = plan_twice
made = plan_twice("twice", twice, three)
print(made.spec, "-", made.nbytes, "bytes to move")

# %% [markdown]
# `plan` calls the planner of an op. Before that, it refuses buffers that were freed, and inputs on two devices. (On a
# device, all live buffers of one shape and dtype share one Spec. A freed buffer gets a Spec of its own, and that is
# how `plan` recognizes it.) The list PLAN_FINISHERS is empty here. A package may add functions to it that replace a
# plan by a quicker one with the same result.


# %%
#| export registry
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


# %% [markdown]
# `_key_of` gives the key that a plan is kept under: the op, the Specs of the buffers that it reads, and the
# **attributes** of the call, such as `axis=0` of a sum. Some attributes are numbers for the kernel, such as
# `rate=0.1`, and may change from call to call. Of these, the key holds only the name, so one plan serves all rates.

# %% tags=["hide-input"]
#| export registry
from levels.hardware import Buffer

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


# %% [markdown]
# The decorator `kernel(op)` enters a kernel into the table. It also empties `PLANS`, because plans hold the old
# kernels. Each replacement raises `KERNELS.version` by one, so level 3 can tell that a compiled program is out of
# date. `KERNELS.first` holds the original kernels. The second function, `counted`, says how many launches a function
# makes, and how many bytes they move.


# %%
#| export registry
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


# %% [markdown]
# ## Plans are kept (6 min)
#
# The look-up is **yours**. The first call with a key makes a plan and puts it into `PLANS`. Every later call with an
# equal key returns that same plan.


# %%
#| export registry blank planned
def planned(op, reads, attrs):
    """The plan for this op on these buffers: the one made before, or a new one."""
    ...  # 2 to 4 lines, the first of them: key = _key_of(op, reads, attrs)


# %% [markdown]
# <details><summary>Hint</summary><code>PLANS.get(key)</code> is None if there is no plan yet.</details>
# <details><summary>Second hint</summary><code>plan(op, reads, attrs)</code> makes a new plan. Keep it with
# <code>PLANS[key] = …</code>, or with <code>setdefault</code>, which returns what it keeps.</details>
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
# Now `launch` again, with plans. The plan refuses a wrong `out`, because it holds the Spec of the result. An op of
# `UPDATES`, such as the update of a weight, computes its new `out` from the old one. So such an op also reads `out`, as
# its first input.


# %%
#| export registry most launch
def launch(op, out, *inputs, **attrs):
    """Run the kernel of `op` and return its result, in `out` (None: a new buffer). An op of UPDATES also reads `out`.

    Raises LookupError for an unknown op, TypeError for wrong dtypes or attributes, ValueError for shapes or `out`.
    """
    reads = (out, *inputs) if out is not None and str(op) in UPDATES else inputs
    found = planned(op, reads, attrs)
    return found.result(Buffer, reads, attrs) if out is None else found.start(out, reads, attrs)


# %% [markdown]
# The same call as before, and one with an `out` that is too small:

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
# **A good place to stop.** A name finds its kernel, and a plan is made once for each op, shape and dtype.
#
# But must each op bring a loop and a planner of its own? We take `twice` out of the table again, and look for
# something shorter.

# %%
del KERNELS["twice", "cpu"], PLANNERS["twice"]
PLANS.clear()

# %% [markdown]
# ## One scalar function, one loop (9 min)
#
# Adding arrays means adding numbers, in a loop. So we write only the addition of two *numbers*, and let Python write
# the loop around it, as text. Two arrays of the same shape need one loop, which goes over all their numbers as over
# one long row:
#
# ```
# for i in range(len(out)):
#     out[i] = add(x0[i], x1[i])
# ```
#
# If the shapes differ, the smaller array is repeated. This is NumPy's rule of
# [**broadcasting**](https://numpy.org/doc/stable/user/basics.broadcasting.html). For example, a bias of shape
# `(1, 4)` is added to every row of a `(10, 4)` matrix. That takes one loop per axis. Along an axis where an array is
# repeated, its index stays 0:
#
# ```
# for i in range(len(out)):
#     for j in range(len(out[0])):
#         out[i, j] = add(x0[i, j], x1[0, j])
# ```
# We call the text in the brackets the *place* of a number. It has one letter per axis, or a 0 where the array is
# repeated along that axis. If one long row will do, the place is the single letter `i`. `places_of` works out the
# places from the shapes, for the result first and then for each input:


# %%
#| export elementwise most places_of
"""Elementwise ops: a scalar function for each, and the loop that is generated around it."""

import inspect
import math


def places_of(shape, shapes):
    """Return the places in the result and in each input, as texts. A single letter indexes an array seen as one row."""
    letters = [*"ijkl", *(f"i{n}" for n in range(4, len(shape)))]  # one for each axis
    if all(own == shape or math.prod(own) == 1 for own in shapes):
        return ["i", *("i" if own == shape else "0" for own in shapes)]
    places = []
    for own in (shape, *shapes):
        left = len(shape) - len(own)  # axes that this array lacks: shapes are aligned at the right
        axes = zip(letters[left:], own, shape[left:])
        places.append(", ".join(letter if size == whole else "0" for letter, size, whole in axes) or "0")
    return places


# %%
for other in ((10, 4), (1, 1), (1, 4)):
    print((10, 4), "and", other, "->", places_of((10, 4), [(10, 4), other]))

# %% [markdown]
# If the other array has the same shape, or is a single number, the matrix is seen as one row of 40 numbers. The bias
# needs two loops. `nest` writes the loops around `line`, the line that computes one number. It writes one loop for
# each letter. Before the loops, each array that is to be seen as one row is replaced by its `flat` view.


# %%
#| export elementwise
def nest(places, line):
    """Return `line` inside its loops, as lines. `places` says where the arrays `out`, `x0`, … are read or written."""
    rows = [f"{array} = {array}.flat" for array, place in places.items() if "," not in place]
    loops = [f"for {i} in range(len(out{'[0]' * depth})):" for depth, i in enumerate(places["out"].split(", "))]
    return rows + ["    " * depth + text for depth, text in enumerate([*loops, line])]


BACKENDS["cpu"].nest = nest

# %%
print("\n".join(nest({"out": "i", "x0": "i", "x1": "0"}, "out[i] = add(x0[i], x1[0])")))

# %% [markdown]
# Now the line itself. It reads one number of each input, at its place, and calls the scalar function with these
# numbers. After them come the op's own `numbers`, such as a rate, converted to the dtype of the arrays.


# %%
#| export elementwise most loop_source
def loop_source(name, places, numbers=(), around=nest):
    """Return the source of a loop that calls the scalar function `name` for each number of the result."""
    places = dict(zip(["out", *(f"x{k}" for k in range(len(places) - 1))], places))
    out, *inputs = (f"{array}[{place}]" for array, place in places.items())
    call = ", ".join([*inputs, *(f"number({n})" for n in numbers)])
    lines = around(places, f"{out} = {name}({call})")
    return "\n    ".join([f"def loop({', '.join([*places, *numbers])}):", *lines])


# %%
print(loop_source("add", places_of((10, 4), [(10, 4), (1, 4)])))

# %% [markdown]
# This is the second loop from above. Python's `exec` turns such a text into a function. `scope` says what the names
# in the text mean.


# %%
#| export elementwise
def element_loop(function, x, places, numbers=()):
    """Return the Python loop around a scalar function, for arrays like `x`. See `loop_source`."""
    backend = BACKENDS[x.device.kind]
    scope = {"__name__": "__main__", "scalar": function, "number": x.dtype.type, **backend.names}
    exec(loop_source("scalar", places, numbers, backend.nest), scope)
    return scope["loop"]


# %%
loop, out = element_loop(lambda x, y: x + y, three, ["i, j", "i, j", "0, j"]), np.empty((2, 3))
loop(out, np.zeros((2, 3)), np.array([[1.0, 2.0, 3.0]]))
print(out)

# %% [markdown]
# The row [1 2 3] was added to both rows of zeros. The loop still runs as Python; a plan will compile it.
#
# ## The planner of these ops (7 min, optional)
#
# Three things are missing: a check of the dtypes, the planner, and a decorator that enters a scalar function as an
# op. To skip them, run these cells and read on at *An op in one line*.
#
# Level 2 never mixes dtypes. `same_dtype` returns the dtype that all inputs share, or says which input has which
# dtype:


# %%
#| export registry
def same_dtype(op, *inputs, kinds="f"):
    """Return the common dtype. Raises TypeError if two differ, or for kinds not listed: f float, i integer, b bool."""
    dtype = inputs[0].dtype
    if any(x.dtype != dtype for x in inputs):
        given = " and ".join(f"{x.dtype}{list(x.shape)}" for x in inputs)
        raise TypeError(f"{op}: the inputs are {given}, in this order; all need the same dtype, so cast one of them")
    if dtype.kind not in kinds or dtype.itemsize not in (1, 4, 8):
        raise TypeError(f"{op}: has no kernel for {dtype}; cast it, to float32 for example")
    return dtype


# %%
try:
    same_dtype("add", three, cpu.put(np.ones(1, "f4")))
except TypeError as error:
    print(error)

# %% [markdown]
# The planner checks the arguments, finds the shape of the result, asks `places_of` for the places, and makes a plan
# that compiles the loop of `element_loop`.

# %% tags=["hide-input"]
#| export elementwise
ELEMENTWISE = {}  # op -> (kinds of input dtypes, dtype of the result, number of masks, an example of each number)


def _plan_elementwise(op, function, *inputs, shape=None, **numbers):
    """Plan out[…] = function(x[…], y[…], …), broadcast to the common shape (or a larger `shape`)."""
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
    except (ValueError, RuntimeError):  # RuntimeError: more axes than NumPy has
        raise ValueError(f"{op}: shapes {' and '.join(map(reprlib.repr, shapes))} do not broadcast") from None
    if common != (shape or common) or op in UPDATES and shapes[0] != common:
        raise ValueError(f"{op}: shapes {' and '.join(map(str, shapes))} do not fit a result of {shape or shapes[0]}")
    places, views = places_of(common, shapes), None
    if not BACKENDS[last.device.kind].ravels:  # then an array seen as one row is reshaped to one
        views = [s if "," in place else (math.prod(s),) for s, place in zip([common, *shapes], places)]
    loop = lowered(element_loop(function, last, places, rest), last)
    return make(op, common, gives or dtype, inputs, loop, views, rest)


# %% [markdown]
# `scalar(op)` is a decorator: it makes an op of a scalar function. The op's `numbers` are named here, each with an
# example: `rate=0.1`. The arguments `gives` and `masks` are for ops of `levels_more`.


# %%
#| export elementwise
def scalar(op, updates=False, takes="f", gives=None, masks=0, **numbers):
    """Return a decorator that makes a scalar function the op `op`. `takes`: dtype kinds (f float, i integer, b bool).

    With `updates`, the result overwrites the first input. The result has the inputs' dtype, or `gives`. The first
    `masks` inputs are arrays of bools. `numbers` are the op's attributes, with an example of each.
    """

    def enter(function):
        kernel(op, planner=_plan_elementwise)(function)
        ELEMENTWISE[op] = takes, gives, masks, numbers
        UPDATES.update([op] if updates else [])
        _NUMBERS.update([op] if numbers else [])
        return function

    return enter


# %% [markdown]
# The net needs `exp` and `log`, and they are those of level 1. There they were made of small instructions, such as
# x·2ⁿ, or rounding to the nearest whole number. The table `SUBSTITUTIONS` says what takes the place of each instruction in a
# compiled kernel.

# %% tags=["hide-input"]
#| export elementwise
from levels.hardware import EXP, LOG, exp, exponent, log, rint, scaled, select, sqrt


def _in_halves(x, n):  # x·2ⁿ in two steps, since 2ⁿ alone may be too small or too large
    return x * math.ldexp(1.0, int(n) // 2) * math.ldexp(1.0, int(n) - int(n) // 2)


SUBSTITUTIONS[exp] = EXP.get
SUBSTITUTIONS[log] = LOG.get
SUBSTITUTIONS[select] = lambda dtype: lambda condition, x, y: x if condition else y
SUBSTITUTIONS[rint] = lambda dtype: lambda x: np.rint(x)
SUBSTITUTIONS[sqrt] = lambda dtype: lambda x: math.sqrt(x)
SUBSTITUTIONS[scaled] = lambda dtype: _in_halves
# the n for which x lies between √½·2ⁿ and √2·2ⁿ
SUBSTITUTIONS[exponent] = lambda dtype: lambda x: dtype.type(math.frexp(x)[1] - (math.frexp(x)[0] < 0.7071067811865476))

# %% [markdown]
# ## An op in one line (9 min)
#
# `scalar("add")` makes an op of a scalar function and puts it into the table. Its loop is written and compiled later,
# by the first launch on arrays of new shapes. Here are eight ops. `takes="fi"` means floats and integers. `broadcast_divide`
# belongs to the gradients of sums and means.


# %%
#| export elementwise
scalar("add", takes="fi")(lambda x, y: x + y)
scalar("subtract", takes="fi")(lambda x, y: x - y)
scalar("multiply", takes="fi")(lambda x, y: x * y)
scalar("divide")(lambda x, y: x / y)
scalar("negative", takes="fi")(lambda x: -x)
scalar("broadcast_divide", count=3.0)(lambda dy, x, count: dy / count)  # each x gets its share of dy
scalar("broadcast_to", takes="fi")(lambda x: x)  # the loop around it does the work


@scalar("sgd", updates=True, rate=0.1)
def _sgd(w, dw, rate):  # the update of gradient descent: the result overwrites w
    return w - rate * dw


# %%
print(launch("add", None, three, cpu.put(np.full(1, 10.0))).numpy())

# %% [markdown]
# A gradient is an op as well. Let `dy` be the slope of the loss at an op's output. The gradient's kernel computes
# from it the slope at the op's input. For relu this slope is 0 where relu's output `y` is 0. Everywhere else it is
# `dy`, also where `y` is NaN. **Yours**: one line. (`select(condition, x, y)`, from level 1, is x where the condition
# holds, else y.)


# %%
#| export elementwise blank relu_grad
def relu_grad(dy, y):
    """The slope at relu's input, for two numbers: `dy`, the slope at relu's output `y`, or 0.0 where y is 0."""
    ...  # 1 line


# %% [markdown]
# <details><summary>Hint</summary>Where relu gave 0, moving its input changes nothing.</details>
# <details><summary>Second hint</summary><code>select(y &lt;= 0.0, …, …)</code>: a kernel for numbers has no arrays to
# mask.</details>
# <details><summary>Solution</summary>
#
# ```python
# def relu_grad(dy, y):
#     """The slope at relu's input, for two numbers: `dy`, the slope at relu's output `y`, or 0.0 where y is 0."""
#     return select(y <= 0.0, 0.0, dy)
# ```
# </details>
#
# The next cell adds relu and its gradient. Sigmoid turns any number into a probability, and clip keeps a probability
# away from 0 and 1, where a log would be infinite:


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


@scalar("clip_grad", low=-0.5, high=0.5)
def _clip_grad(dy, x, low, high):  # dy where x lies strictly between low and high, else 0
    return select(low < x, select(x < high, dy, 0.0), 0.0)


# %%
launch("relu", None, cpu.put(np.array([-2.0, 3.0, np.nan]))).numpy()

# %% [markdown]
# Relu tests whether `x <= 0`, not whether `x > 0`. For NaN ("not a number") both are false. So here a NaN stays a NaN,
# and we see it in the loss. With the other test it would become 0, and nobody would notice.
#
# **A good place to stop.** Seventeen ops are in the table: a scalar function for each, and one way to write all their
# loops.
#
# ## Many numbers become one (8 min)
#
# The ops so far are **elementwise**: they go number by number. In a sum, many numbers become one. The loop of a sum
# begins with the number `start`. The function `combine` takes the total so far and the next number, and returns the
# new total. So an op brings only `start` and `combine`, and `reduce_rows` makes the loop:

# %%
#| export reduce
"""Reductions: ops that combine many numbers into one, along axes. Also reshape."""

from levels.support.checks import check_bool


def reduce_rows(combine, start):
    """Return the loop out[i] = combine(… combine(start, x[i, 0]) …, x[i, last]), for out[rows] and x[rows, n]."""

    def loop(out, x):
        for i in range(x.shape[0]):
            total = start
            for k in range(x.shape[1]):
                total = combine(total, x[i, k])
            out[i] = total

    return loop


# %% [markdown]
# Along a row the sum starts at 0.0 and runs upwards, as in the record of notebook 01. Here the loop runs as Python,
# on the rows [0 1 2] and [3 4 5]:

# %%
x, out = np.arange(6.0).reshape(2, 3), np.empty(2)
reduce_rows(np.add, 0.0)(out, x)
print(out)

# %% [markdown]
# A sum down the columns needs another loop, in which the sums of neighbouring columns `j` are taken side by side. Any
# array can be seen as one with three axes `[before, within, after]`. The middle one is the axis that is summed. All
# axes before it count as one, and so do all axes after it. So these two loops serve every sum.


# %%
#| export reduce most reduce_columns
def reduce_columns(combine, start):
    """Return the loop out[i, j] = combine(… combine(start, x[i, 0, j]) …, x[i, last, j]), with j innermost."""

    def loop(out, x):
        out[:] = start
        for i in range(out.shape[0]):
            for k in range(x.shape[1]):
                for j in range(out.shape[1]):
                    out[i, j] = combine(out[i, j], x[i, k, j])

    return loop


# %%
columns = np.empty((1, 3))
reduce_columns(np.add, 0.0)(columns, x[None])
print(columns)

# %% [markdown]
# The sums run in the order of the record, with one exception. Remember the surprise of notebook 01: one running sum of
# 2²⁵ float32 ones stops at 16,777,216. So in rows of 1,024 float32 numbers or more, the compiler may split a sum into
# one sum per lane, each of fewer numbers. In float64 nothing is ever reordered.
#
# The next cell holds the planner of sums; you may skip it. `reduced` finds the sizes before, within and after the
# axis. If `after` is 1, the numbers of each sum lie side by side, and `_plan_reduce` takes `reduce_rows`; otherwise
# it takes `reduce_columns`. It gives this loop the op's `start` and function. (`check_bool`, of `levels/support`, refuses
# what is not True or False.)


# %% tags=["hide-input"]
#| export reduce
BACKENDS["cpu"].loops = reduce_rows, reduce_columns
QUICKER = {}  # a loop -> a faster one that gives the same bits


def reduced(op, shape, axis):
    """Return the sorted axes; the sizes before, within and after them. Raises ValueError unless they are adjacent."""
    axes = range(len(shape)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    if not all(isinstance(a, int) and -len(shape) <= a < len(shape) for a in axes):
        raise ValueError(f"{op}: axis {reprlib.repr(axis)} is not an axis of shape {shape}")
    axes = sorted(a % len(shape) for a in axes)
    first, last = (axes[0], axes[-1] + 1) if axes else (0, 0)
    if axes != list(range(first, last)):
        raise ValueError(f"{op}: the axes {axis} are not neighbours, each named once; transpose x first")
    return axes, [math.prod(sizes) for sizes in (shape[:first], shape[first:last], shape[last:])]


def _plan_reduce(op, function, x, axis=None, keepdims=False):
    """Plan a reduction over one axis, a tuple of adjacent axes, or all axes (axis=None)."""
    axes, (before, within, after) = reduced(op, x.shape, axis)
    start, dtype = REDUCTIONS[op], same_dtype(op, x, kinds="fi")
    keep = check_bool(f"{op}: keepdims", keepdims)
    shape = tuple(1 if a in axes else size for a, size in enumerate(x.shape) if keep or a not in axes)
    if dtype.kind == "i":  # integers have no infinity to start at
        start = max(np.iinfo(dtype).min, min(start, np.iinfo(dtype).max))
    along_rows, down_columns = (QUICKER.get(loop, loop) for loop in BACKENDS[x.device.kind].loops)
    reduction, columns = (along_rows, ()) if after == 1 else (down_columns, (after,))
    fast = ("reassoc",) if after == 1 and within >= 1024 and dtype == np.float32 else ()

    def lower():
        combine = lowered(function, x, fast)()
        return lowered(reduction(combine, dtype.type(start)), x, fast)()

    return make(op, shape, dtype, [x], lower, [(before, *columns), (before, within, *columns)])


kernel("reduce_sum", planner=_plan_reduce)(lambda total, x: total + x)
REDUCTIONS = {"reduce_sum": 0.0}  # op -> the number that its loops start at

# %% [markdown]
# Here are the 2²⁵ ones again:

# %%
float(launch("reduce_sum", None, cpu.put(np.ones(2**25, "f"))).numpy())

# %% [markdown]
# 33,554,432: this time all of them were counted.
#
# ## Means, and another shape (4 min, optional)
#
# A mean is the plan of a sum, followed by one division. So the "kernel" of `reduce_mean` is that division. A sum
# along an axis takes that axis away, and gradients will need it again. `reshape` can put it back: it gives the same
# numbers another shape.


# %%
#| export reduce
def _plan_mean(op, function, x, axis=None, keepdims=False):
    """Plan a mean: the sum over these axes, divided by the number of its terms."""
    same_dtype(op, x)
    total = _plan_reduce("reduce_sum", kernel_of("reduce_sum", x.device.kind), x, axis, keepdims)
    count = math.prod(x.shape) / max(1, math.prod(total.spec.shape))
    divide = _plan_elementwise("divide", function, total.spec, count=count)

    def run(out, x):
        total.run(out, x)
        divide.run(out, out, count)

    return make(op, total.spec.shape, x.dtype, [x], lambda: run)


def plan_reshape(op, function, x, shape=()):
    """Plan a copy in another shape, in the same order. Raises ValueError for a shape of more or fewer numbers."""
    row = (math.prod(x.shape),)
    if not isinstance(shape, tuple) or (math.prod(shape),) != row or min(shape, default=0) < 0:
        raise ValueError(f"{op}: {x.shape} does not fit into {shape!r}: {row[0]} numbers")
    loop = lowered(element_loop(function, x, ["i", "i"]), x)
    return make(op, shape, x.dtype, [x], loop, [row, row])


kernel("reduce_mean", planner=_plan_mean)(lambda total, count: total / count)
kernel("reshape")(lambda x: x)
PLANNERS["reshape"] = plan_reshape

# %%
print(launch("reduce_mean", None, three).numpy(), launch("reshape", None, three, shape=(3, 1)).shape)

# %% [markdown]
# ## Rows by number (3 min)
#
# A batch consists of rows of the data, picked by their numbers. A wrong number must not read memory outside the
# array, so the kernel checks each one. Its planner, in the cell after it, sees any array as a matrix. It counts the
# bytes itself, because only the picked rows of `x` are read.


# %%
#| export array_kernels
"""Kernels on whole arrays: gather, which picks rows by number, and the matrix product."""


def gather(out, x, rows):
    """out[i, j] = x[rows[i], j]. Raises IndexError for a row that x does not have."""
    for i in range(rows.size):
        row = rows[i]  # read once: the compiler cannot know that the loop below does not change it
        if not 0 <= row < x.shape[0]:
            raise IndexError("gather: a row number is out of range")
        for j in range(x.shape[1]):
            out[i, j] = x[row, j]


# %% tags=["hide-input"]
#| export array_kernels
def _plan_gather(op, function, x, rows):
    """Plan out[i, …] = x[rows[i], …]."""
    if rows.dtype != np.int64 or len(x.shape) < 1:
        raise TypeError(f"{op}: rows are {rows.dtype}; expected int64 row numbers of an array")
    count, width = math.prod(rows.shape), math.prod(x.shape[1:])
    views = [(count, width), (x.shape[0], width), (count,)]
    made = make(op, rows.shape + x.shape[1:], x.dtype, [x, rows], lowered(function, x), views)
    made.nbytes = 2 * made.spec.nbytes + rows.spec.nbytes  # only these rows of x are read
    return made


kernel("gather")(gather)
PLANNERS["gather"] = _plan_gather

# %% [markdown]
# Here we pick three rows by number, row 2 twice:

# %%
table = cpu.put(np.arange(6.0).reshape(3, 2))
launch("gather", None, table, cpu.put(np.array([2, 0, 2]))).numpy().tolist()

# %% [markdown]
# ## The product, and the order of its loops (13 min)
#
# The matrix product has three loops: over the rows `i` and the columns `j` of the result, and over `k`. Each number of
# the result is a sum. It starts at 0.0, and `k` runs upwards, as in the record. Here is the textbook version:


# %%
def matmul_ijk(out, x, w):
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            total = 0.0
            for k in range(x.shape[1]):
                total += x[i, k] * w[k, j]
            out[i, j] = total


# %% [markdown]
# A processor does not load single numbers from memory. It loads **cache lines**: on most processors, 64 bytes that
# lie side by side. It keeps the latest lines in a **cache**, a small memory close by. **Which order of the three
# loops loads the fewest lines?** The figure shows a product of 8 x 8 numbers, small enough to watch. A line holds
# four numbers, and the cache has room for six lines. You start in the middle of `ijk`. Move `step` a few steps with
# the arrow keys, then change `order`.

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
# In `ijk` the inner loop walks down a column of `w`. Each step loads a line and uses one of its four numbers. When
# the next number of that line is needed, eight steps later, the line has left the cache. That makes 512 loads for
# `w`, and 656 in all. In `ikj` the inner loop walks along rows and uses all four numbers of a line before it leaves
# the line: 128 loads for `w`, 160 in all. `jki` walks down the columns of two matrices at once and loads 1,088 lines.
#
# **Yours**: the product in the order that loads the fewest, `ikj`: for each `i`, each `k`, and innermost each `j`.
# Set `out` to 0.0 first, then add to it.


# %%
#| export array_kernels blank matmul_ikj
def matmul_ikj(out, x, w):
    """out[i, j] = Σₖ x[i, k]·w[k, j], starting at 0.0, k upwards."""
    ...  # 5 lines


# %% [markdown]
# <details><summary>Hint</summary>Three loops, i, k, j, with one line inside. What does <code>out</code> hold when you
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
    because="Along a row, `ikj` uses whole cache lines. Also, neighbouring results do not wait for each other, so the "
    "processor computes one per lane at once. In `ijk`, each step of a sum waits for the step before. How much `ikj` "
    "saves differs from machine to machine.",
)

# %% tags=["nbval-ignore-output"]
x, w, out = np.random.default_rng(0).standard_normal((3, 512, 512)).astype("f4")
ijk, ikj = (compile_cpu(function, np.dtype("f4")) for function in (matmul_ijk, matmul_ikj))
slow, fast = timed(lambda: ijk(out, x, w), 1), timed(lambda: ikj(out, x, w), 1)
print(f"ijk {slow * 1e3:.1f} ms, ikj {fast * 1e3:.1f} ms: {slow / fast:.0f} times as fast")

# %% [markdown]
# Both compute the same sums, and each sum runs over `k` upwards. ([more/02_matmul](more/02_matmul.ipynb) goes on from
# here, to the machine's peak.)
#
# The planner of `matmul`, in the next cell, refuses inner sizes that differ. A backward pass needs products such as
# xᵀ · de, with notebook 01's `de`. With `transpose_x` the kernel reads `x` with its axes exchanged, and no copy is
# made.


# %% tags=["hide-input"]
#| export array_kernels
def _plan_matmul(op, function, x, w, transpose_x=False, transpose_w=False):
    """Plan out[m, n] = x[m, k] @ w[k, n]. A transposed input is read in place, without a copy."""
    dtype = same_dtype(op, x, w, kinds="fi")
    if len(x.shape) != 2 or len(w.shape) != 2:
        raise ValueError(f"{op}: x is {x.shape} and w is {w.shape}: both need two axes")
    turned = [check_bool(f"{op}: a transpose", t) for t in (transpose_x, transpose_w)]
    (m, k), (rows, n) = (a.shape[:: -1 if t else 1] for a, t in zip((x, w), turned))
    if k != rows:
        raise ValueError(f"{op}: x is {(m, k)} and w is {(rows, n)}: inner sizes {k} and {rows} differ")
    compiler = lowered(function, x)

    def lower():
        loop = compiler()
        return lambda out, x, w: loop(out, x.T if transpose_x else x, w.T if transpose_w else w)

    return make(op, (m, n), dtype, [x, w], lower)


kernel("matmul")(matmul_ikj)
PLANNERS["matmul"] = _plan_matmul

# %%
try:
    launch("matmul", None, table, table)
except ValueError as error:
    print(error)
launch("matmul", None, table, table, transpose_x=True).numpy().tolist()

# %% [markdown]
# Now the table is full:

# %%
KERNELS

# %% [markdown]
# **A good place to stop.** All kernels of both tasks are in the table.
#
# ## Your own kernel (8 min)
#
# A table can be changed. Suppose you have a better idea for relu: `x * (x > 0)`, which needs no `if`. If you put it
# into the table, every level above runs it. `use` does this inside a `with` block. It is a *context manager*: the part
# before `yield` runs when the block begins. The part under `finally` runs when the block ends, also after an error.
#
# Your kernel may contain a mistake and reach past the end of an array. So every index is checked inside the block.
# (KERNEL_TRIALS is empty here. A package may add functions to it that try a kernel before it is used.)


# %%
#| export registry
from contextlib import contextmanager

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


# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "On which input does `x * (x > 0)` differ from relu, which is `0 if x <= 0 else x`?",
    choices=["on none", "on 0", "on -infinity", "on very large numbers"],
    answer="on -infinity",
    because="-infinity times 0 is NaN, where relu gives 0. (A NaN stays a NaN in both.)",
)


# %%
def no_branch(x):
    return x * (x > 0)


hard = cpu.put(np.array([-np.inf, -2.0, 0.0, 3.0, np.inf, np.nan]))
print("the course's", launch("relu", None, hard).numpy())
with use("relu", "cpu", no_branch):
    print("the new one ", launch("relu", None, hard).numpy())

# %% [markdown]
# One number of six differs. (-0 is equal to 0.) If -infinity comes up in a training run, the NaN spreads through every
# sum and the run is lost. So a kernel should be tried on hard inputs before it is used.
# [more/02_trial](more/02_trial.ipynb) does that: it refuses this kernel and says why. Here is one that is right:


# %%
def mine(x):
    return 0.0 if x <= 0.0 else x


with use("relu", "cpu", mine):
    print(KERNELS["relu", "cpu"] is mine, launch("relu", None, hard).numpy())
print(KERNELS["relu", "cpu"] is mine)

# %% [markdown]
# Level 5 will train a net with `model.fit`. Inside such a block `fit` runs your relu, because every level above looks
# its kernels up in this table.
#
# The course's own relu is `select(x <= 0.0, 0.0, x)`. `select` also works in notebook 01's programs, which are
# written before any number is known. The `if` in `mine` needs the number itself, so level 3 cannot write `mine` into
# such a program. Level 3 then runs the step op by op, and says so. The numbers are the same, but the step is slower.
#
# ## The two tasks on this level (17 min)
#
# ### Data
#
# The data are those of level 1: the line, the two rings and the penguins. For the line, each row of `batches` names
# the ten data rows of one step.

# %%
task = tasks.linear()
print("x", task.x.shape, " y", task.y.shape, " batches", task.batches.shape)

# %% [markdown]
# ### Model and training
#
# A step is now a list of launches. Each works on a whole batch, and `None` means that its result gets a new buffer.
# The gradients are still written by hand, as on level 1. The part `# backward` goes from the loss back to the
# weights, and multiplies the slopes on the way.

# %%
#| export tasks
"""The two tasks as launches. Each op takes a whole batch; gradients are written by hand."""

from levels.hardware import PLACE
from levels.hardware.tasks import Fit
from levels.support.checks import check_inputs, check_task


def linear_forward(x, w, b):
    """Return x[n, k] @ w[k, units] + b[1, units], the outputs of a layer: [n, units]."""
    return launch("add", None, launch("matmul", None, x, w), b)


# %% [markdown]
# Now the step. `place` is the device that holds the numbers: `cpu:0`, unless you choose another. `n` and `g` are the
# batch's size and 1/n, each in a buffer of one number, because a launch takes buffers. `de` is notebook 01's slope,
# g·e + g·e. The marks `# forward`, `# loss`, `# backward` and `# update` are those of level 1.


# %%
#| export tasks
def linear_regression(x, y, weights, batches, learning_rate=0.0005):
    """Train a line by SGD on the mean squared error. For the shapes, see `Fit` and `check_task`."""
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
# Level 1 ran one program, row after row. This level makes fourteen launches per step, each on a whole batch.

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "Are the losses of the two levels equal?",
    choices=["to about 12 digits", "to the last bit"],
    answer="to the last bit",
    because="Every sum takes the same numbers in the same order, whether the loop over rows is outermost or innermost.",
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
#
# The title of each curve gives the mean of the last 50 losses. A single loss, like the last one above, comes from ten
# rows and may lie well above or below that mean.

# %%
figures.regression(task, fit)

# %%
penguins = tasks.penguins_mass()
figures.regression(penguins, linear_regression(*penguins[:2], *penguins[4:7]))

# %% [markdown]
# ### The second task: a net
#
# Here is level 1's net, as launches. `dnn_forward` calls `linear_forward` three times, each time followed by relu or
# sigmoid. `dnn_backward` goes through the layers from the last to the first. Each layer needs a product and a sum for
# its own gradients. Each layer but the first needs one more product, which passes the slope on to the layer before.


# %%
#| export tasks most dnn_backward
def dnn_forward(x, weights):
    """Return both hidden layers' outputs and the probability: [n, 4], [n, 8], [n, 1]."""
    w1, b1, w2, b2, w3, b3 = weights
    h1 = launch("relu", None, linear_forward(x, w1, b1))
    h2 = launch("relu", None, linear_forward(h1, w2, b2))
    return h1, h2, launch("sigmoid", None, linear_forward(h2, w3, b3))


def dnn_backward(dz, inputs, weights):
    """Return the gradients [dw1, db1, dw2, db2, dw3, db3], given `dz`, the slope at the last layer's z[n, 1]."""
    gradients = []
    for k in (2, 1, 0):
        dw = launch("matmul", None, inputs[k], dz, transpose_x=True)
        gradients = [dw, launch("reduce_sum", None, dz, axis=0, keepdims=True), *gradients]
        if k > 0:
            dh = launch("matmul", None, dz, weights[2 * k], transpose_w=True)
            dz = launch("relu_grad", None, dh, inputs[k])
    return gradients


# %% [markdown]
# `dnn_classifier`, in the next cell, is built like `linear_regression`. It calls `dnn_forward` and `dnn_backward`,
# and computes the loss between them. You may skip it. In its loss, `hit` is y·log c and `miss` is (1 − y)·log(1 − c).


# %% tags=["hide-input"]
#| export tasks
def dnn_classifier(x, y, weights, batches, learning_rate=0.01):
    """Train a features-4-8-1 net (relu, relu, sigmoid) by SGD on binary cross-entropy; see `Fit` and `check_task`."""
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
# Again the losses and weights equal level 1's to the last bit:

# %%
rings = tasks.rings()
ring_fit = dnn_classifier(*rings[:2], *rings[4:7])
below = hardware.tasks.dnn_classifier(*rings[:2], *rings[4:7])
print("losses equal: ", bool((ring_fit.losses == below.losses).all()))
print("weights equal:", all((p == q).all() for p, q in zip(ring_fit.weights, below.weights)))
figures.classifier(rings, ring_fit)

# %% [markdown]
# The same function on the penguins: is a bird female or male?

# %%
sex = tasks.penguins_sex()
sex_fit = dnn_classifier(*sex[:2], *sex[4:7])
figures.confusion(sex, sex_fit)

# %% [markdown]
# And with your relu? The training code does not mention it, but each of its launches looks its kernel up in the
# table:

# %%
with use("relu", "cpu", mine):
    again = dnn_classifier(*sex[:2], *sex[4:7])
print("losses equal:", bool((again.losses == sex_fit.losses).all()))

# %% [markdown]
# **A good place to stop.** Both tasks train by launches, and their losses are those of level 1.
#
# ## What this level cost (10 min)
#
# As on level 1, we count first. Each launch is counted by its plan, and `counted` adds them up. We run a thousand
# steps:

# %%
from course import compare

short = task._replace(batches=task.batches[:1000])
counts = counted(lambda: linear_regression(*short[:2], *short[4:7]))
launches, nbytes = (count / 1000 for count in counts)
print(f"{launches:.0f} launches and {nbytes:,.0f} bytes per step")

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "On level 1 such a step took less than 0.1 µs. How many times as long does it take here?",
    choices=["about 2", "about 30", "several hundred or more"],
    answer="several hundred or more",
    because="Fourteen launches of a few microseconds each, with Python between them, take tens of microseconds. "
    "Level 1 makes one call for all 8,000 steps. The arithmetic on the ten rows takes no longer than before.",
)

# %% [markdown]
# How much does the smallest launch cost? We time an addition of two single numbers, and predict the step from it.

# %% tags=["nbval-ignore-output"]
one, out = cpu.put(np.ones((1, 1))), cpu.alloc((1, 1), "f8")
t_launch = timed(lambda: launch("add", out, one, one))
predicted = launches * t_launch + cpu.roofline(16 * 10, nbytes)  # 16 operations for each of ten rows
print(f"a launch costs {t_launch * 1e6:.1f} µs")
compare.cost(linear_regression, task, launches, nbytes, predicted)

# %% [markdown]
# The prediction is too low. Why? Here is the same training again, with a `launch` that measures the time of each op:

# %% tags=["nbval-ignore-output"]
compare.by_op(linear_regression, short)

# %% [markdown]
# We had timed the cheapest launch: it adds one number, into an `out` that is already there. The launches of a step
# make new buffers, and a product is more work. The rest of the step is Python, and the measuring itself. (*Processor
# time* leaves out the time during which other programs had the core.) Level 3 will first add to this cost and then
# remove nearly all of it.
#
# ### Side by side with level 1
#
# Here are both levels, mark by mark. A click on *Two rings* shows the net. Compare the two in the row *backward*. (To
# save time, level 2 runs only the last thousand steps of the line and the last hundred of the net. Level 1 runs those
# before.)

# %%
line = compare.measure(task, hardware.tasks.linear_regression, linear_regression, last=1000)
net = compare.measure(rings, hardware.tasks.dnn_classifier, dnn_classifier, last=100, repeats=1)
compare.side_by_side(line, net)

# %% [markdown]
# Level 1 keeps its sums in registers. Each kernel of level 2 reads and writes whole buffers.
#
# Other frameworks have such a table, too. (From notebook 03 on, programs written for TensorFlow and PyTorch launch
# your kernels.)
#
# | | TensorFlow | PyTorch | here |
# |---|---|---|---|
# | an op is a name | `tf.raw_ops.AddV2` | `torch.ops.aten.add` | `"add"` |
# | enter a kernel | `REGISTER_KERNEL_BUILDER` (C++) | `TORCH_LIBRARY_IMPL` (C++) | `kernel("add")` |
# | run one | inside the runtime | the dispatcher | `launch("add", out, x, y)` |
#
# ## Exercises (optional)
#
# As in notebook 01, fill in the stub, run the cell, and read what the check says. The check runs your kernel as
# Python first. Then it compiles it, with every index checked, in float64 and in float32. The result's buffer does not
# hold zeros before the kernel runs.
#
# ### 02-1 · The longer side first
#
# Write a scalar function for the hypotenuse, √(x² + y²). In float32, x = 10²⁵ has no square, because the largest
# float32 is 3.4·10³⁸. But the hypotenuse itself is small enough. So take the longer side out of the root:
#
# ```
# √(long² + short²)  =  long · √(1 + (short / long)²)
# ```
#
# (About 4 lines. Hint: `abs`, `max`, `min` and `math.sqrt` work in kernels. What if both sides are 0? A function that
# is to work in notebook 01's programs, too, would use `select` instead of `max` and `min`, and `sqrt` of
# `levels.hardware`.)

# %%
from course.practice import exercises

exercises.begin("02-1")


def hypotenuse(x, y):
    """√(x² + y²) of two finite numbers."""
    return ...


exercises.check("02-1", hypotenuse)

# %% [markdown]
# When it is right, `scalar("hypotenuse")(hypotenuse)` makes an op of it, and every level above can launch it.
#
# ### 02-3 · Broadcasting without a copy
#
# Suppose a loop runs over the common shape. For each axis it has to know how far away in memory an array's next
# number lies. Where the array is repeated, the next number is the same one again: a step of 0.
#
# ```
# shape          (3, 1)         (4,)     (2, 1, 4)
# common      (2, 3, 4)       (3, 4)     (2, 3, 4)
# steps       [0, 1, 0]       [0, 1]     [4, 0, 1]
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
# NumPy multiplies these steps by the bytes of a number, and calls the result *strides*. (Exercise 02-2 is in
# [more/02_matmul](more/02_matmul.ipynb).)
#
# ### Without a check
#
# - Print the loop that `add` gets for the shapes `(3, 1)` and `(1, 4)`, as under *One scalar function, one loop*.
#   Which index does each input have?
# - `jki` loads the most lines in the figure. Write it, and time it on two matrices of 512 x 512. Its result is equal
#   to that of `ikj`, to the last bit. Why?
# - Add an op `"reduce_product"`, in two lines like those of `reduce_sum`. What does it start at? (The product of 1 to
#   5 is 120.)
#
# ## What you do differently now (1 min)
#
# When a model is slow, look first at how many kernels a step launches and how many bytes they move, and only then at
# the arithmetic. When an op surprises you, ask which kernel ran: the op's name, the dtype and the device decide.
# **Fuse** a chain of elementwise ops into one loop, so that each number is loaded and stored once. Order your loops so
# that the innermost one walks along memory. Keep the naive version of each kernel, and compare the quick one with it to
# the last bit, on NaN and infinity, too.
#
# ## Where to go from here (1 min)
#
# Next comes [3 · Low-level API](03_low_level.ipynb). There a buffer becomes a tensor, and each op of a tensor finds its
# kernel in your table. Beside this level lie:
#
# [The walk](05_high_level.ipynb#From-fit-to-the-multiply) follows one step from `fit` down to an instruction. Its fifth stage is
# on this level.
#
# | notebook | its idea |
# |---|---|
# | [more/02_cache](more/02_cache.ipynb) | how a program gets a hash that cannot become stale |
# | [more/02_matmul](more/02_matmul.ipynb) | the matrix product at the machine's peak, and the same bits on any number of threads |
# | [more/02_trial](more/02_trial.ipynb) | a kernel of your own is tried first, and refused with a counter-example |
# | [more/02_reductions](more/02_reductions.ipynb) | the largest number, softmax, and four sums side by side |
# | [more/02_moves](more/02_moves.ipynb) | more rows of the table: transposes, slices, casts, rows added up by number |
# | [more/02_random](more/02_random.ipynb) | random numbers without a state |
# | [more/02_machines](more/02_machines.ipynb) | the same scalar functions on two more kinds of device, a GPU and a TPU |
#
# ## Build

# %%
build.level("02_kernels", linear_regression, dnn_classifier)

# %% [markdown]
# Level 2 stands. Next: [3 · Low-level API](03_low_level.ipynb).

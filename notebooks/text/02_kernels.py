# %% [markdown]
# # 2 · Kernels
#
# **In this notebook you fill a table of small compiled programs, and train a model by calling them by name.**
#
# A framework calls an addition by its name, `"add"`. Under this name it finds the program that adds on the device at
# hand.
#
# You need two sittings, each of less than an hour and a half, and four terms from level 1:
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
# ## A surprise to begin with (5 min)
#
# We add an array to itself: once with 1 number in it, once with 1,000 numbers.

# %% tags=["hide-input"]
# a question: run me
from course.reader import checks

checks.predict(
    "02-thousand",
    "How many times as long does it take with 1,000 numbers?",
    slider=(1, 1000),
)

# %% tags=["nbval-ignore-output"]
import timeit

import numpy as np


def timed(call, number=1000):
    """Return the seconds per call, in the best of three rounds of `number` calls."""
    return min(timeit.repeat(call, number=number, repeat=3)) / number


one, thousand = np.ones(1), np.ones(1000)
short, long = timed(lambda: one + one), timed(lambda: thousand + thousand)
print(f"1 number {short * 1e9:.0f} ns, 1,000 numbers {long * 1e9:.0f} ns")
print(f"{long / short:.1f} times as long")

# %%
checks.answer_to("02-thousand")

# %% [markdown]
# The work is a thousand times as much, but the time is not. Python finds the function. NumPy checks the arrays and
# allocates the result. Only then does a loop run. This level is about both: the loop, and the cost of calling it.
#
# ## A first kernel (3 min)
#
# A **kernel** is a small compiled program that does one operation on whole arrays. On level 1 you wrote such programs
# instruction by instruction. [numba](https://numba.readthedocs.io/en/stable/user/5minguide.html) makes them from a
# Python loop, with the same compiler library, LLVM. On this level we use numba, because its loops are easier to write,
# and may contain an `if`. Level 3 comes back to your assembler.

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
slow = timed(lambda: add_python(out, x, x), 1)
fast = timed(lambda: add_numba(out, x, x), 1)
print(f"Python {slow * 1e6:.0f} µs, numba {fast * 1e6:.0f} µs: {slow / fast:.0f} times")
print(f"the first call of the numba version, with compiling: {first * 1e3:.0f} ms")

# %% [markdown]
# The first call took many thousands of times as long as the later ones, because it compiled the function. So a
# framework keeps what it has compiled. The danger is a **stale** kernel: you change a function, and the old program
# still runs. So we keep each program under a **hash**, a short fingerprint of everything that it was made from. Changed
# code has another hash, so it is compiled again.
#
# `compile_cpu(function, dtype)` compiles a function for arrays of that dtype, or finds the program that was kept. It
# comes from `levels/support`, which holds helpers that the five main notebooks do not explain.

# %%
from levels.support.compiled import compile_cpu

# %% [markdown]
# ## A name and a table (6 min)
#
# An **op** is a name, such as `"add"`. Its kernel on one kind of device is compiled from a Python function. The table
# `KERNELS` holds these functions: its keys are pairs of an op and a kind of device. For short, such a function is
# called a kernel, too. (`KernelTable`, from `levels/support`, is a dict whose error messages help.)
#
# A second table, `BACKENDS`, has a `Backend` for each kind of device, so far for `cpu` only. It holds what differs
# between kinds of device: here the function that compiles, and from later sections on, two that make loops.

# %%
#| export registry
"""The kernel of each op on each kind of device, and the plans of launches."""

from levels.support.tables import Backend, KernelTable

KERNELS = KernelTable()  # (op, kind of device) -> the function that is compiled for it
BACKENDS = {"cpu": Backend(compile_cpu)}  # kind of device -> what depends on it

# %% [markdown]
# Our first entry is a kernel that doubles:


# %%
def twice(out, x):
    for i in range(len(out)):
        out[i] = 2.0 * x[i]


KERNELS["twice", "cpu"] = twice
KERNELS

# %% [markdown]
# The table has one op, with a function for one kind of device. Nothing is compiled yet.
#
# To **launch** an op means three things: look its kernel up, find memory for the result, and run. Here is a first
# version. (`data` is a buffer's memory: on a CPU, a NumPy array.)


# %%
def launch(op, out, *inputs):
    """Run the kernel of `op`, and return its result: `out`, or (None) a new buffer."""
    device = inputs[0].device
    dtype = inputs[0].dtype
    program = BACKENDS[device.kind].compiler(KERNELS[op, device.kind], dtype)
    if out is None:
        out = device.alloc(inputs[0].shape, dtype)
    program(out.data, *[x.data for x in inputs])
    return out


# %%
from levels.hardware import pool

cpu = pool()["cpu:0"]
three = cpu.put(np.arange(3.0))
launch("twice", None, three).numpy()

# %% [markdown]
# How much does the launch cost, compared with the program alone?

# %% tags=["nbval-ignore-output"]
out = cpu.alloc((3,), "f8")
program = compile_cpu(twice, np.dtype("f8"))
launched = timed(lambda: launch("twice", out, three))
alone = timed(lambda: program(out.data, three.data))
print(f"launched by name  {launched * 1e6:.1f} µs")
print(f"the program alone {alone * 1e6:.2f} µs")

# %% [markdown]
# Two things are wrong. First, each launch searches for its program anew, and computes a hash. Second, `launch` does not
# check `out`: with room for only two numbers, the third result would be lost.
#
# Which program runs, and which `out` is right? The op, the shapes and the dtypes decide that, and not the numbers
# in the arrays. So one search and one check are enough for all calls with the same op, shapes and dtypes.
#
# ## A plan, made once (6 min)
#
# A **plan** says what a call with these shapes and dtypes will do. It holds the Spec of the result, the number of
# bytes that are moved, and the program. `run` calls the program on buffers. `start` does the same, but first checks
# the buffer that a caller has chosen for the result. Three arguments of `Plan` need a word:
#
# - `lower` is a function without arguments that returns the compiled program. It is called when the plan first runs.
# - `views` are the shapes in which the program sees the arrays: first the result's, then those of the inputs. A loop
#   may need a matrix as one long row.
# - An **attribute** is an argument that a launch passes by its name, such as `rate=0.1`. `numbers` are the names of
#   the attributes that the program gets, after the arrays.
#
# The set `UPDATES` holds the ops that overwrite their first input. So far it is empty.
#
# Three helpers come from `levels/support`. `fitted` wraps `lower`: numba then compiles for exactly the types of these
# arrays, so that a call does not have to search for its machine code. `compiled_once` lets one thread compile while
# others wait. `check_out` refuses a wrong `out`.


# %%
#| export registry
from levels.support.compiled import fitted
from levels.support.locks import compiled_once
from levels.support.tables import check_out

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


# %% [markdown]
# Here is such a plan for `twice`:

# %%
made = Plan("twice", (3,), "f8", [three], lambda: compile_cpu(twice, np.dtype("f8")))
made.start(out, [three], {})
print(made.spec, "-", made.nbytes, "bytes to move -", out.numpy())

# %% [markdown]
# ## Each op has a planner (6 min)
#
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
#
# A **planner** is the function that makes an op's plans. It decides the shape of the result and the loop that computes
# it. `PLANNERS` has one for each op. `lowered(function, x)` returns a function without arguments, as a plan's `lower`
# must be. When it is called, it compiles `function` for the dtype of `x`.

# %%
#| export registry
import functools

# op -> a function planner(op, function, *specs, **attrs) that returns a Plan.
# With the key (op, kind), it serves this kind of device only.
PLANNERS = {}
PLANS = {}  # (op, Specs of the inputs, attributes) -> the Plan made for them


def lowered(function, x, *how):
    """Return a function that compiles `function` for x's dtype when it is called."""
    return functools.partial(BACKENDS[x.device.kind].compiler, function, x.dtype, *how)


# %% [markdown]
# The planner of `twice` is one line. The result is like `x`, and the loop is the kernel itself:


# %%
def plan_twice(op, function, x):
    return Plan(op, x.shape, x.dtype, [x], lowered(function, x))


PLANNERS["twice"] = plan_twice

# %% [markdown]
# `plan` looks up the kernel of an op and calls its planner. Before that, `kind_of` refuses buffers that were freed,
# and inputs on two devices. (`PLAN_FINISHERS` stays empty in this notebook.)


# %%
#| export registry
from levels.support.tables import kind_of

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


# %%
made = plan("twice", [three], {})
print(made.spec, "-", made.nbytes, "bytes to move")

# %% [markdown]
# **A good place to stop.** A planner makes a plan, and a plan runs its program.
#
# The decorator `kernel(op)` enters a kernel into the table, and its planner with it. Then it empties `PLANS`, because
# plans hold the old kernels.


# %%
#| export registry
from levels.support.tables import check_kernel


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


# %% [markdown]
# ## Plans are kept (11 min)
#
# `_key_of` gives the key that a plan is kept under: the op, the Specs of the buffers that it reads, and the
# attributes, such as `axis=0` of a sum. The type of an attribute belongs to the key, because Python takes 0, 0.0 and
# False for equal. `NUMBERS` lists the ops whose attributes are numbers for the program, such as `rate=0.1`. Of these
# attributes only the name is in the key. So one plan serves all rates.

# %%
#| export registry
from levels.support.tables import no_key

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


# %%
_key_of("twice", [three], {})

# %% [markdown]
# The look-up, `planned`, is **yours**. The first call with a key makes a plan and puts it into `PLANS`. Every later
# call with an equal key returns that same plan.


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
# Now `launch` again, with plans. An op of `UPDATES` overwrites its first input, so that input is its `out`. For
# example, `launch("sgd", w, dw, rate=0.1)` will read `w` and `dw`, and write the new weight into `w`.


# %%
#| export registry most launch
from levels.hardware import Buffer


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
print(f"with a search every time {launched * 1e6:.1f} µs")
print(f"with a kept plan         {again * 1e6:.2f} µs")

# %% [markdown]
# Each plan counts its launches. `counted` adds them up, and the bytes that they move:


# %%
#| export registry
def counted(run):
    """Return how many launches `run()` makes, and how many bytes they move."""
    for each in PLANS.values():
        each.launches = 0
    run()
    launches = sum(each.launches for each in PLANS.values())
    return launches, sum(each.launches * each.nbytes for each in PLANS.values())


# %%
counted(lambda: launch("twice", out, three))

# %% [markdown]
# One launch reads 24 bytes and writes 24.
#
# **A good place to stop.** A name finds its kernel, and a plan is made once for each op, shape and dtype.
#
# But must each op bring a loop and a planner? We take `twice` out of the table, and look for something shorter.

# %%
del KERNELS["twice", "cpu"], PLANNERS["twice"]
PLANS.clear()

# %% [markdown]
# ## One scalar function, one loop (9 min)
#
# We want to write only the addition of two *numbers*. The loop around it depends on the shapes. Two arrays of the same
# shape need one loop, which goes over all their numbers as over one long row:
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
#
# numba compiles a loop from its source, and other shapes need another source. So we let Python write the source.
#
# In this section, the *place* of a number is the text in the brackets, such as `i, j`. There is one loop for each
# letter in the result's place. So the places are all that one must know of the shapes to write the loops. `places_of`
# returns the place in the result, and then the place in each input. There are two cases:
#
# - Each input has the shape of the result, or is a single number. Then one loop is enough. The place is `i`, or `0`
#   for a single number.
# - Otherwise a place has one entry per axis: a letter, or `0` where the array is repeated along that axis. (Shapes are
#   aligned at the right.)


# %%
#| export elementwise most places_of
"""Elementwise ops: a scalar function for each, and the loop written around it."""

import math


def places_of(shape, shapes):
    """Return the places in the result and the inputs. `i`: an array seen as one row."""
    if all(own == shape or math.prod(own) == 1 for own in shapes):
        return ["i", *["i" if own == shape else "0" for own in shapes]]
    letters = [*"ijkl", *[f"i{n}" for n in range(4, len(shape))]]  # one for each axis
    places = []
    for own in (shape, *shapes):
        left = len(shape) - len(own)  # axes that it lacks: aligned at the right
        axes = zip(letters[left:], own, shape[left:])
        place = [i if size == whole else "0" for i, size, whole in axes]
        places.append(", ".join(place) or "0")
    return places


# %%
for other in ((10, 4), (1, 1), (1, 4)):
    print((10, 4), "and", other, "->", places_of((10, 4), [(10, 4), other]))

# %% [markdown]
# In the first two lines, the matrix is seen as one row of 40 numbers. In the third, the bias needs two loops. `nest`
# writes the loops around `line`, which computes one number. An array that is to be seen as one row is replaced by
# NumPy's `.flat`, which has one index.


# %%
#| export elementwise
def nest(places, line):
    """Return `line` inside its loops. `places`: array -> where it is used."""
    flat = [array for array, place in places.items() if "," not in place]
    lines = [f"{array} = {array}.flat" for array in flat]
    indent = ""
    for depth, i in enumerate(places["out"].split(", ")):
        lines.append(f"{indent}for {i} in range(len(out{'[0]' * depth})):")
        indent += "    "
    return [*lines, indent + line]


BACKENDS["cpu"].nest = nest

# %%
print("\n".join(nest({"out": "i", "x0": "i", "x1": "0"}, "out[i] = add(x0[i], x1[0])")))

# %% [markdown]
# `loop_source` writes this inner line, too. The line reads one number of each input, at its place, and passes it to the
# scalar function. It also passes the attributes in `numbers`, such as a rate, converted to the dtype of the arrays.


# %%
#| export elementwise most loop_source
def loop_source(name, places, numbers=(), around=nest):
    """Return the source of a loop that calls a scalar function for each number."""
    arrays = ["out", *[f"x{k}" for k in range(len(places) - 1)]]
    out, *inputs = [f"{array}[{place}]" for array, place in zip(arrays, places)]
    call = ", ".join([*inputs, *[f"number({n})" for n in numbers]])
    lines = around(dict(zip(arrays, places)), f"{out} = {name}({call})")
    return "\n    ".join([f"def loop({', '.join([*arrays, *numbers])}):", *lines])


# %%
print(loop_source("add", places_of((10, 4), [(10, 4), (1, 4)])))

# %% [markdown]
# This is the second loop from above. Python's `exec` turns such a text into a function. `names` says what the names in
# the text mean.


# %%
#| export elementwise
def element_loop(function, x, places, numbers=()):
    """Return the Python loop around a scalar function, for arrays like `x`."""
    backend = BACKENDS[x.device.kind]
    names = {"function": function, "number": x.dtype.type}
    names["__name__"] = "__main__"  # numba asks in which module the loop stands
    names.update(backend.names)
    exec(loop_source("function", places, numbers, backend.nest), names)
    return names["loop"]


# %%
loop = element_loop(lambda x, y: x + y, three, ["i, j", "i, j", "0, j"])
out = np.empty((2, 3))
loop(out, np.zeros((2, 3)), np.array([[1.0, 2.0, 3.0]]))
print(out)

# %% [markdown]
# The row [1 2 3] was added to both rows of zeros. The loop still runs as Python; a plan will compile it.
#
# ## One planner for all of them (5 min)
#
# `plan_loop` makes the plan of such a loop. The inputs are broadcast to `shape`. (A backend's function `views` says
# in which shapes its loops see the arrays. On a CPU it returns None: they keep their own.)


# %%
#| export elementwise
def plan_loop(op, function, inputs, shape, dtype, numbers=()):
    """Plan the loop of a scalar function, whose inputs are broadcast to `shape`."""
    like = inputs[-1]  # in other packages, the first may be a condition
    shapes = [x.shape for x in inputs]
    places = places_of(shape, shapes)
    views = BACKENDS[like.device.kind].views([shape, *shapes], places)
    lower = lowered(element_loop(function, like, places, numbers), like)
    return Plan(op, shape, dtype, inputs, lower, views, numbers)


# %% [markdown]
# `plan_elementwise` is the planner of these ops. Three helpers of `levels/support` refuse what does not fit.
# `number_names` returns the names of the parameters that are not arrays, such as `rate`. `same_dtype` returns the dtype
# that all inputs share. `broadcast` returns their common shape. Level 2 never mixes dtypes:

# %%
from levels.support.shapes import broadcast, number_names, same_dtype

try:
    same_dtype("add", three, cpu.put(np.ones(1, "f4")))
except TypeError as error:
    print(error)

# %%
#| export elementwise
ELEMENTWISE = {}  # op -> the kinds of dtypes that it takes: f float, i integer


def plan_elementwise(op, function, *inputs, shape=None, **attrs):
    """Plan a loop that calls a scalar function for each number of its inputs.

    The inputs are broadcast to `shape`, or (None) to the shape common to all.
    """
    numbers = number_names(op, function, inputs, attrs)
    dtype = same_dtype(op, *inputs, kinds=ELEMENTWISE[op])
    common = broadcast(op, inputs, shape, op in UPDATES)
    return plan_loop(op, function, inputs, common, dtype, numbers)


# %% [markdown]
# `scalar(op)` is a decorator. It enters a scalar function into `KERNELS`, with `plan_elementwise` as its planner. If
# the function takes attributes, they are listed, each with an example for tests: `rate=0.1`. The example is no default.


# %%
#| export elementwise
def scalar(op, updates=False, takes="f", **numbers):
    """Decorate a scalar function: it becomes the op `op`.

    `takes`: kinds of dtypes, f float and i integer. With `updates`, the result
    overwrites the first input. `numbers` are attributes: name -> example, no default.
    """

    def enter(function):
        kernel(op, planner=plan_elementwise)(function)
        ELEMENTWISE[op] = takes
        if numbers:
            NUMBERS[op] = numbers
        if updates:
            UPDATES.add(op)
        return function

    return enter


# %% [markdown]
# ## An op in one line (8 min)
#
# Here are six ops. Nothing is compiled yet: a loop is written and compiled when a launch first needs it.
# `takes="fi"` means floats and integers.


# %%
#| export elementwise
scalar("add", takes="fi")(lambda x, y: x + y)
scalar("subtract", takes="fi")(lambda x, y: x - y)
scalar("multiply", takes="fi")(lambda x, y: x * y)
scalar("divide")(lambda x, y: x / y)
scalar("negative", takes="fi")(lambda x: -x)


@scalar("sgd", updates=True, rate=0.1)
def _sgd(w, dw, rate):  # the update of gradient descent: the result overwrites w
    return w - rate * dw


# %%
print(launch("add", None, three, cpu.put(np.full(1, 10.0))).numpy())

# %% [markdown]
# The way back from the loss needs ops, too. `relu_grad` gets `dy`, the slope of the loss at relu's output, and computes
# the slope at relu's input. That is 0 where the output `y` of relu is 0. Everywhere else it is
# `dy`, also where `y` is NaN. **Yours**: one line. (`select(condition, a, b)`, known from level 1, gives `a` where
# the condition holds, and otherwise `b`.)

# %%
from levels.support.elementary import exp, log, select, sqrt


# %%
#| export elementwise blank relu_grad
def relu_grad(dy, y):
    """For two numbers: `dy`, the slope at relu's output y, or 0.0 where y is 0."""
    ...  # 1 line


# %% [markdown]
# <details><summary>Hint</summary>Where relu gave 0, moving its input changes nothing.</details>
# <details><summary>Second hint</summary><code>select(y &lt;= 0.0, …, …)</code>: a kernel for numbers has no arrays to
# mask.</details>
# <details><summary>Solution</summary>
#
# ```python
# def relu_grad(dy, y):
#     """For two numbers: `dy`, the slope at relu's output y, or 0.0 where y is 0."""
#     return select(y <= 0.0, 0.0, dy)
# ```
# </details>
#
# The next cell adds relu, its gradient and seven more. Clip keeps a probability away from 0 and 1, where a log would be
# infinite:


# %%
#| export elementwise
scalar("relu")(lambda x: select(x <= 0.0, 0.0, x))
scalar("relu_grad")(relu_grad)
scalar("sigmoid")(lambda x: 1.0 / (1.0 + exp(0.0 - x)))
scalar("sigmoid_grad")(lambda dy, y: dy * y * (1.0 - y))
scalar("exp")(lambda x: exp(x))
scalar("log")(lambda x: log(x))
scalar("sqrt")(lambda x: sqrt(x))


@scalar("clip", low=-0.5, high=0.5)
def _clip(x, low, high):  # low where x < low, high where x > high, else x
    return select(x < low, low, select(x > high, high, x))


@scalar("clip_grad", low=-0.5, high=0.5)
def _clip_grad(dy, x, low, high):  # dy where low < x < high, else 0
    return select(low < x, select(x < high, dy, 0.0), 0.0)


# %%
print(len(KERNELS), "ops are in the table")
print(launch("relu", None, cpu.put(np.array([-2.0, 3.0, np.nan]))).numpy())

# %% [markdown]
# Relu gives 0 where `x <= 0`, and otherwise x. For NaN ("not a number") every comparison is false. So a NaN stays a
# NaN, and we see it in the loss. With the test `x > 0`, it would become 0, and nobody would notice.
#
# ## Your own kernel (11 min)
#
# A table can be changed. Suppose you have another idea for relu: `x * (x > 0)`. `use` puts it into the table for the
# time of a `with` block. It is a *context manager*: the part before `yield` runs when the block begins, and the part
# under `finally` when it ends, also after an error. The first part puts your kernel into the table, and the second
# puts back the kernel that was there before. (The lock `MAKING` and the list `blocks` are for threads whose blocks
# overlap.)
#
# Your kernel may reach past the end of an array by mistake. So inside the block, `guarded` of `levels/support` has
# every index of your kernel checked.


# %%
#| export registry
from contextlib import contextmanager

from levels.support.locks import MAKING
from levels.support.tables import guarded

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


# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "02-branch",
    "Relu is `0 if x <= 0 else x`. On which input is `x * (x > 0)` not equal to it?",
    choices=["on none", "on 0", "on -infinity", "on very large numbers"],
)


# %%
def no_branch(x):
    return x * (x > 0)


hard = cpu.put(np.array([-np.inf, -2.0, 0.0, 3.0, np.inf, np.nan]))
relu = launch("relu", None, hard).numpy()
with use("relu", "cpu", no_branch):
    new = launch("relu", None, hard).numpy()
print("the course's  ", relu)
print("the new one   ", new)
print("the same bits:", relu.view("i8") == new.view("i8"))

# %%
checks.answer_to("02-branch")

# %% [markdown]
# For -2 the new kernel gives -0 instead of 0. The two are equal, but the course's checks compare bits. For -infinity it
# gives NaN instead of 0. That is worse: in a training run, a NaN spreads through every sum. So try a kernel on hard
# inputs before you use it. (The `use` of `levels_more.kernels` does that, and refuses this one.) Here is one that is
# right:


# %%
def mine(x):
    return 0.0 if x <= 0.0 else x


with use("relu", "cpu", mine):
    print(KERNELS["relu", "cpu"] is mine, launch("relu", None, hard).numpy())
print(KERNELS["relu", "cpu"] is mine)

# %% [markdown]
# The levels above use this table, too. Usually level 3 makes one program of all ops of a step, by calling each op's
# scalar function on registers. It cannot do that with `mine`: while a program is written, there is no number for the
# `if` to test. With `mine` in the table, level 3 launches the kernels one by one, and says so. The numbers are the
# same, but the step is slower.
#
# **A good place to stop.** Fifteen ops are in the table, and you can replace the kernel of each. This is the end of the
# first sitting. In the second, sums and products join them, and both tasks train.
#
# The next cell saves what is finished. For the rest it takes the course's cells. Then it trains both models in a fresh
# Python: the line and the net.

# %%
build.so_far("02_kernels")

# %% [markdown]
# ## Many numbers become one (8 min)
#
# The ops so far are **elementwise**: they go number by number. In a sum, many numbers become one. An op of this kind
# brings two things. `start` is the number that the loop begins with. The function `combine` takes the total so far and
# the next number, and returns the new total. `reduce_loop` makes the loop.
#
# One loop serves sums along any axis, because it sees every array with three axes, `[before, within, after]`. The
# middle one is the axis that is summed, or several neighbouring axes as one. All axes before it count as one, and so
# do all axes after it.

# %%
#| export reduce
"""Reductions: ops that combine many numbers into one, along axes."""


def reduce_loop(combine, start):
    """Return a loop: out[i, j] combines start, x[i, 0, j], x[i, 1, j], …, in order."""

    def loop(out, x):
        for i in range(x.shape[0]):
            for j in range(x.shape[2]):
                total = start
                for k in range(x.shape[1]):
                    total = combine(total, x[i, k, j])
                out[i, j] = total

    return loop


BACKENDS["cpu"].reduction = reduce_loop

# %% [markdown]
# Here the loop runs as Python. It takes the sums of the rows [0 1 2] and [3 4 5], then those of their columns:

# %%
x = np.arange(6.0).reshape(2, 3)
rows = np.empty((2, 1))
columns = np.empty((1, 3))
reduce_loop(np.add, 0.0)(rows, x.reshape(2, 3, 1))
reduce_loop(np.add, 0.0)(columns, x.reshape(1, 2, 3))
print(rows.tolist(), columns.tolist())

# %% [markdown]
# `reduced` returns the axes that are summed, and the three sizes: before, within and after them.


# %%
#| export reduce
from levels.support.shapes import check_axes


def reduced(op, shape, axis):
    """Return the axes of a reduction, and the sizes before, within and after them."""
    axes = check_axes(op, shape, axis)
    first = axes[0] if axes else 0
    last = axes[-1] + 1 if axes else 0
    parts = [shape[:first], shape[first:last], shape[last:]]
    return axes, [math.prod(sizes) for sizes in parts]


# %%
reduced("reduce_sum", (10, 4, 2), 1)

# %% [markdown]
# The sums run in the order of the record, with one exception. In notebook 01, one running sum of 2²⁵ float32 ones
# stopped at 16,777,216. So a float32 sum of 1,024 terms or more may be split into several shorter sums. A float64 sum
# is never reordered.
#
# The planner of sums compiles `combine`, and then the loop around it. (`start_in` turns the start into a number of the
# dtype.)


# %%
#| export reduce
from levels.support.checks import check_bool
from levels.support.shapes import start_in


def plan_reduce(op, function, x, axis=None, keepdims=False):
    """Plan a reduction of x[…] over one axis, neighbouring axes, or all axes (None)."""
    axes, (before, within, after) = reduced(op, x.shape, axis)
    keep = check_bool(f"{op}: keepdims", keepdims)
    start = start_in(same_dtype(op, x, kinds="fi"), REDUCTIONS[op])
    sizes = [1 if a in axes else size for a, size in enumerate(x.shape)]
    shape = tuple(size for a, size in enumerate(sizes) if keep or a not in axes)
    long = within >= 1024 and x.dtype == "f4"
    how = [("reassoc",)] if long else []  # for LLVM: terms may be added in any order
    make_loop = BACKENDS[x.device.kind].reduction

    def lower():
        combine = lowered(function, x, *how)()
        loop = make_loop(combine, start)
        return lowered(loop, x, *how)()

    views = [(before, after), (before, within, after)]
    return Plan(op, shape, x.dtype, [x], lower, views)


kernel("reduce_sum", planner=plan_reduce)(lambda total, x: total + x)
REDUCTIONS = {"reduce_sum": 0.0}  # op -> the number that its loop starts at

# %% [markdown]
# The 2²⁵ ones again:

# %%
float(launch("reduce_sum", None, cpu.put(np.ones(2**25, "f"))).numpy())

# %% [markdown]
# All 33,554,432 were counted, because none of the shorter sums reached 16,777,216.
#
# ## Rows by number (3 min)
#
# A batch consists of rows of the data, picked by their numbers. A wrong number must not read memory outside the
# array, so the kernel checks each one. Its planner sees any array as a matrix, and counts as moved bytes only the
# picked rows of `x`.


# %%
#| export array_kernels
"""Kernels on whole arrays: gather picks rows by number; the matrix product."""

from levels.support.shapes import check_rows


def plan_gather(op, function, x, rows):
    """Plan out[i, …] = x[rows[i], …]."""
    check_rows(op, x, rows)
    count = math.prod(rows.shape)
    width = math.prod(x.shape[1:])
    views = [(count, width), (x.shape[0], width), (count,)]
    shape = rows.shape + x.shape[1:]
    made = Plan(op, shape, x.dtype, [x, rows], lowered(function, x), views)
    made.nbytes = 2 * made.spec.nbytes + rows.spec.nbytes
    return made


@kernel("gather", planner=plan_gather)
def gather(out, x, rows):
    """out[i, j] = x[rows[i], j]. Raises IndexError for a row that x does not have."""
    for i in range(rows.size):
        row = rows[i]  # read once, so that what was checked is what is used
        if not 0 <= row < x.shape[0]:
            raise IndexError("gather: a row number is out of range")
        for j in range(x.shape[1]):
            out[i, j] = x[row, j]


# %% [markdown]
# Here we pick three rows by number, row 2 twice:

# %%
table = cpu.put(np.arange(6.0).reshape(3, 2))
launch("gather", None, table, cpu.put(np.array([2, 0, 2]))).numpy().tolist()

# %% [markdown]
# ## The product, and the order of its loops (17 min)
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
from course.reader.figures import widgets

widgets.explore(
    figures.loop_order,
    "The lines that a matrix product loads, for each of the six orders of its loops.",
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
    """Set out[i, j] to Σₖ x[i, k]·w[k, j]: start at 0.0, and add k = 0 first."""
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
#     """Set out[i, j] to Σₖ x[i, k]·w[k, j]: start at 0.0, and add k = 0 first."""
#     out[:] = 0.0
#     for i in range(out.shape[0]):
#         for k in range(x.shape[1]):
#             for j in range(out.shape[1]):
#                 out[i, j] += x[i, k] * w[k, j]
# ```
# </details>
#
# How many times as fast is `ikj`? Here are both orders, compiled, in float32 and for 512 x 512:

# %% tags=["nbval-ignore-output"]
x, w, out = np.random.default_rng(0).standard_normal((3, 512, 512)).astype("f4")
ijk = compile_cpu(matmul_ijk, np.dtype("f4"))
ikj = compile_cpu(matmul_ikj, np.dtype("f4"))
slow, fast = timed(lambda: ijk(out, x, w), 1), timed(lambda: ikj(out, x, w), 1)
print(f"ijk {slow * 1e3:.1f} ms, ikj {fast * 1e3:.1f} ms")
print(f"ikj is {slow / fast:.0f} times as fast")

# %% [markdown]
# Both add the same products in the same order. `ikj` has a second advantage. In `ijk`, each step of a sum waits for the
# step before. In `ikj`, neighbouring results do not wait for each other, so the processor computes several at once.
# ([more/02_matmul](more/02_matmul.ipynb) goes on from here, to the machine's peak.)
#
# The way back needs sums over the rows: for each weight, each row's input times the row's slope `de`. A product with
# rowsᵀ gives these sums. (rowsᵀ is `rows` transposed: its rows are the columns of `rows`.) Here they are for two rows:
#
# ```
# rows   1  2      de    10      row 1 times its de     10   20
#        3  4           100      row 2 times its de    300  400
#                                added up              310  420   =  rowsᵀ · de
# ```
#
# The first row of rowsᵀ is 1 3. Its product with `de` is 310, the slope of the first weight.
#
# With `transpose_x` the kernel reads `x` with its axes exchanged, and no copy is made. The planner refuses `x` and
# `w` if `x`, transposed or not, has another number of columns than `w` has rows.


# %%
#| export array_kernels
from levels.support.shapes import check_product, turned


def plan_matmul(op, function, x, w, transpose_x=False, transpose_w=False):
    """Plan out[m, n] = x[m, k] @ w[k, n]. A transposed input is read in place."""
    dtype = same_dtype(op, x, w, kinds="fi")
    x_shape = turned(op, x, transpose_x)
    w_shape = turned(op, w, transpose_w)
    check_product(op, x, w, x_shape, w_shape)

    def lower():
        loop = lowered(function, x)()

        def run(out, x, w):
            loop(out, x.T if transpose_x else x, w.T if transpose_w else w)

        return run

    return Plan(op, (x_shape[0], w_shape[1]), dtype, [x, w], lower)


kernel("matmul", planner=plan_matmul)(matmul_ikj)

# %%
rows = cpu.put(np.array([[1.0, 2.0], [3.0, 4.0]]))
de = cpu.put(np.array([[10.0], [100.0]]))
print(launch("matmul", None, rows, de, transpose_x=True).numpy().tolist())
try:
    launch("matmul", None, table, table)
except ValueError as error:
    print(error)

# %% [markdown]
# Now the table is full:

# %%
KERNELS

# %% [markdown]
# **A good place to stop.** All kernels of both tasks are in the table.
#
# ## The two tasks on this level (19 min)
#
# ### Data
#
# The data are those of level 1: the line, the two rings and the penguins. For the line, each row of `batches` holds
# ten row numbers: the rows of one step.

# %%
task = tasks.linear()
print("x", task.x.shape, " y", task.y.shape, " batches", task.batches.shape)

# %% [markdown]
# ### Model and training
#
# A step is now a list of launches. Each works on a whole batch, and `None` means that its result gets a new buffer.
# The gradients are still written by hand, as on level 1.
#
# Both tasks need five small functions. The first two put numbers on `PLACE.device`: `cpu:0`, unless you choose another.
# `_rows` yields the rows of each step.

# %%
#| export tasks
"""The two tasks as launches, each on a whole batch. Gradients are written by hand."""

from levels.hardware import PLACE


def _put(array):
    return PLACE.device.put(array)


def _number(value, like):
    """Return a number as a buffer [1, 1], in the dtype of an array."""
    return _put(np.full((1, 1), value, like.dtype))


def _rows(x, y, batches):
    """Yield the rows of x and of y for each step."""
    x = _put(x)
    y = _put(y)
    for i in map(_put, np.asarray(batches, np.int64)):
        yield launch("gather", None, x, i), launch("gather", None, y, i)


def _sum_rows(x):
    """Return the sum of the rows: [1, columns]."""
    return launch("reduce_sum", None, x, axis=0, keepdims=True)


def linear_forward(x, w, b):
    """Return x[n, k] @ w[k, units] + b[1, units], a layer's outputs [n, units]."""
    return launch("add", None, launch("matmul", None, x, w), b)


# %% [markdown]
# Now the step. `n` and `g` are the batch's size and 1/n, each in a buffer of one number, because a launch takes
# buffers. `de` is notebook 01's slope, g·e + g·e. The marks `# forward`, `# loss`, `# backward` and `# update` are
# those of level 1.


# %%
#| export tasks
from levels.hardware.tasks import Fit
from levels.support.inputs import check_inputs, check_task


def linear_regression(x, y, weights, batches, learning_rate=0.0005):
    """Train a line by SGD on the mean squared error; see `Fit` and `check_task`."""
    check_task(x, y, weights, batches, learning_rate, units=[1])
    w, b = [_put(array) for array in weights]  # model

    n = _number(len(batches[0]), x)
    g = launch("divide", None, _number(1.0, x), n)
    losses = []
    for rows, target in _rows(x, y, batches):
        prediction = linear_forward(rows, w, b)  # forward
        error = launch("subtract", None, prediction, target)  # loss
        squared = launch("multiply", None, error, error)
        loss = launch("divide", None, _sum_rows(squared), n)
        ge = launch("multiply", None, g, error)  # backward
        de = launch("add", None, ge, ge)
        dw = launch("matmul", None, rows, de, transpose_x=True)
        db = _sum_rows(de)
        launch("sgd", w, dw, rate=float(learning_rate))  # update
        launch("sgd", b, db, rate=float(learning_rate))

        losses.append(loss.numpy()[0, 0])

    def predict(rows):
        check_inputs(rows, x.dtype, x.shape[1])
        return linear_forward(_put(rows), w, b).numpy()

    return Fit(np.array(losses), [w.numpy(), b.numpy()], predict)


# %% [markdown]
# Level 1 ran one program, row after row. This level makes fourteen launches per step. Are the losses equal?

# %%
from levels import hardware

fit = linear_regression(task.x, task.y, task.weights, task.batches, task.learning_rate)
below = hardware.tasks.linear_regression(*task[:2], *task[4:7])
print("losses equal: ", bool((fit.losses == below.losses).all()))
print("weights equal:", all((p == q).all() for p, q in zip(fit.weights, below.weights)))
print(f"last loss     {fit.losses[-1]:.4g} ({float(fit.losses[-1]).hex()})")

# %% [markdown]
# They are equal to the last bit. Level 1 adds up row by row. In the product with rowsᵀ, `k` counts the rows, also from
# the first on. So each sum takes the same numbers in the same order.
#
# ### Result
#
# The title of a curve gives the mean of its last losses, here of 50 (and of 200 for the net below). A single loss, like
# the last one above, may lie far from that mean.

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
    """Return the layers' outputs: [n, 4], [n, 8], and the probability [n, 1]."""
    w1, b1, w2, b2, w3, b3 = weights
    h1 = launch("relu", None, linear_forward(x, w1, b1))
    h2 = launch("relu", None, linear_forward(h1, w2, b2))
    return h1, h2, launch("sigmoid", None, linear_forward(h2, w3, b3))


def dnn_backward(dz, inputs, weights):
    """Return [dw1, db1, … db3] from `dz`, the slope at the last layer's z[n, 1]."""
    gradients = []
    for k in (2, 1, 0):
        dw = launch("matmul", None, inputs[k], dz, transpose_x=True)
        gradients = [dw, _sum_rows(dz), *gradients]
        if k > 0:
            dh = launch("matmul", None, dz, weights[2 * k], transpose_w=True)
            dz = launch("relu_grad", None, dh, inputs[k])
    return gradients


# %% [markdown]
# Between `dnn_forward` and `dnn_backward` come the loss and its slope, as on level 1. `c` is the clipped probability,
# and `q` is 1 - c. With the target y, `other` is 1 - y. In the loss, `hit` is y·log c and `miss` is (1 - y)·log(1 - c):


# %%
#| export tasks
def _cross_entropy(target, other, c, q, n):
    """Return the mean loss [1, 1] of n rows."""
    hit = launch("multiply", None, target, launch("log", None, c))
    miss = launch("multiply", None, other, launch("log", None, q))
    total = _sum_rows(launch("add", None, hit, miss))
    return launch("negative", None, launch("divide", None, total, n))


def _slope_at_z(target, other, prediction, c, q, g):
    """Return the slope of the loss at the last layer's z[n, 1]. g is -1/n."""
    d_hit = launch("divide", None, launch("multiply", None, g, target), c)
    d_miss = launch("divide", None, launch("multiply", None, g, other), q)
    dc = launch("subtract", None, d_hit, d_miss)
    dp = launch("clip_grad", None, dc, prediction, low=1e-7, high=1.0 - 1e-7)
    return launch("sigmoid_grad", None, dp, prediction)


# %% [markdown]
# For one row with a probability of 0.8 and the answer 1, the loss is -log 0.8, and the slope is 0.8 - 1:

# %%
yes, no, c, q, g = [cpu.put(np.full((1, 1), z)) for z in (1.0, 0.0, 0.8, 0.2, -1.0)]
n = cpu.put(np.ones((1, 1)))
loss = _cross_entropy(yes, no, c, q, n)
slope = _slope_at_z(yes, no, c, c, q, g)
print(f"loss {loss.numpy()[0, 0]:.4f}   slope {slope.numpy()[0, 0]:.4f}")

# %% [markdown]
# `dnn_classifier` is built like `linear_regression`:


# %%
#| export tasks
def dnn_classifier(x, y, weights, batches, learning_rate=0.01):
    """Train features-4-8-1 by SGD on binary cross-entropy; see `Fit`, `check_task`."""
    check_task(x, y, weights, batches, learning_rate, units=[4, 8, 1])
    weights = [_put(w) for w in weights]  # model

    one = _number(1.0, x)
    n = _number(len(batches[0]), x)
    g = launch("divide", None, _number(-1.0, x), n)
    losses = []
    for rows, target in _rows(x, y, batches):
        h1, h2, prediction = dnn_forward(rows, weights)  # forward
        c = launch("clip", None, prediction, low=1e-7, high=1.0 - 1e-7)  # loss
        other = launch("subtract", None, one, target)
        q = launch("subtract", None, one, c)
        loss = _cross_entropy(target, other, c, q, n)
        dz = _slope_at_z(target, other, prediction, c, q, g)  # backward
        gradients = dnn_backward(dz, [rows, h1, h2], weights)
        for w, dw in zip(weights, gradients):  # update
            launch("sgd", w, dw, rate=float(learning_rate))

        losses.append(loss.numpy()[0, 0])

    def predict(rows):
        check_inputs(rows, x.dtype, x.shape[1])
        return dnn_forward(_put(rows), weights)[-1].numpy()

    return Fit(np.array(losses), [w.numpy() for w in weights], predict)


# %% [markdown]
# A step of the net takes many launches. So we train a quarter of the 24,000 steps here. (Notebook 05 trains all of
# them, on every level.) Again the losses and weights equal level 1's to the last bit:

# %%
rings = tasks.rings()
quarter = rings._replace(batches=rings.batches[:6000])
ring_fit = dnn_classifier(*quarter[:2], *quarter[4:7])
below = hardware.tasks.dnn_classifier(*quarter[:2], *quarter[4:7])
print("losses equal: ", bool((ring_fit.losses == below.losses).all()))
pairs = zip(ring_fit.weights, below.weights)
print("weights equal:", all((p == q).all() for p, q in pairs))
figures.classifier(rings, ring_fit)

# %% [markdown]
# The same function on the penguins: is a bird female or male?

# %%
sex = tasks.penguins_sex()
sex_fit = dnn_classifier(*sex[:2], *sex[4:7])
figures.confusion(sex, sex_fit)

# %% [markdown]
# And with `mine` as the relu? The training code does not mention it. But `use` empties `PLANS`, so the next launches
# find your kernel. We train the first 500 steps again:

# %%
begin = sex._replace(batches=sex.batches[:500])
with use("relu", "cpu", mine):
    again = dnn_classifier(*begin[:2], *begin[4:7])
print("losses equal:", bool((again.losses == sex_fit.losses[:500]).all()))

# %% [markdown]
# **A good place to stop.** Both tasks train by launches, and their losses are those of level 1.
#
# ## What this level cost (8 min)
#
# We count first. `compare.measure` trains both tasks in plain Python (level 0), on level 1 and here. (The net takes a
# quarter of its steps, as above.) `lines` counts the lines of code under `# model`, `# forward` and the other marks.
# `counted` counts the launches and the bytes of a step. An *operation* is one addition, subtraction, multiplication or
# division of two numbers.

# %%
from course import compare, reference

level_1 = hardware.tasks
functions = reference.linear_regression, level_1.linear_regression, linear_regression
line = compare.measure(task, *functions, last=500)
functions = reference.dnn_classifier, level_1.dnn_classifier, dnn_classifier
net = compare.measure(quarter, *functions, last=50, repeats=1)
print("per step   lines  operations  launches    bytes  last loss")
for name, found in {"the line": line, "the net": net}.items():
    here = found.rows[-1]
    operations = found.rows[0].launches  # in plain Python, each operation is a launch
    counts = f"{operations:11,.0f} {here.launches:9.0f} {here.nbytes:8,.0f}"
    print(f"{name:9} {here.lines:6} {counts} {here.losses[-1]:10.4g}")

# %% [markdown]
# Now the time of a step of the line:

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "02-step",
    "In notebook 01 a step took less than 0.1 µs. How many times as long is it here?",
    choices=["about 2", "about 30", "several hundred or more"],
)

# %% [markdown]
# The time is predicted by level 1's formula: launches · launch_time + max(flops / peak, bytes / bandwidth). But a
# launch is now a call of `launch`, not only of a program. So `launch_time` is here the time of the smallest such call,
# which adds two single numbers.

# %% tags=["nbval-ignore-output"]
for name, found in {"the line": line, "the net": net}.items():
    here = found.rows[-1]
    print(f"{name}: predicted {here.predicted * 1e6:.0f} µs per step,", end=" ")
    print(f"measured {here.measured * 1e6:.0f} µs")

# %%
checks.answer_to("02-step")

# %% [markdown]
# The predictions are too low. Why? Here is the line again, with a `launch` that measures the time of each op:

# %% tags=["nbval-ignore-output"]
short = task._replace(batches=task.batches[:1000])
compare.by_op(linear_regression, short)

# %% [markdown]
# We had timed the cheapest launch: it adds one number, into an `out` that is already there. The launches of a step
# make new buffers, and a product or a sum over rows is more work. The rest is Python, and the measuring, which makes
# this step longer than the one above. (*Processor time* leaves out the time during which other programs had the core.)
#
# ## Side by side (7 min)
#
# Here are levels 0, 1 and 2, mark by mark. A click on *Two rings* shows the net. Compare the row *backward*. (Levels
# 0 and 2 are slow. So they train only the last steps, and begin with the weights that level 1 has before these steps.)

# %%
compare.side_by_side(line, net)

# %% [markdown]
# In the row *backward*, levels 1 and 2 compute the same slopes in different ways:
#
# - **One row, or a whole batch.** On level 1, `row`, `error` and `de` are the numbers of one row, in registers. On
#   level 2 they are buffers with the numbers of all rows, in memory.
# - **A sum, or a product.** Level 1 adds the row's x·de to `dw[k]`. (For the line, LLVM keeps these sums in registers,
#   too.) Level 2 gets the sums over all rows from one product, `matmul(rows, de, transpose_x=True)`.
# - **One call, or fourteen launches.** Level 1 runs all steps in one call. On level 2, each step of the line takes
#   fourteen launches, four of them under the mark *backward*.
#
# And the time of a step? (Level 1's time for the line is longer than in notebook 01's table: here it includes writing
# the program.)

# %% tags=["nbval-ignore-output"]
print("µs per step  plain Python  level 1  level 2  level 2 / plain Python")
for name, found in {"the line": line, "the net": net}.items():
    python, machine, _, here = [row.measured * 1e6 for row in found.rows]
    print(f"{name:11} {python:13.0f} {machine:8.2f} {here:8.0f} {here / python:12.2f}")

# %% [markdown]
# **On ten rows, fourteen launches of compiled kernels gain nothing over plain Python.** On the hundred rows of the net,
# kernels take only a small part of plain Python's time. The counts above say why. Plain Python pays for each operation,
# and this level pays for each launch: it finds a plan, and makes a buffer or checks `out`, however few numbers there
# are. For the line, a launch then does about eleven operations (160 / 14), and for the net more than nine hundred
# (42,000 / 45). Level 3 will put a whole step into one program.
#
# ## The same in TensorFlow and PyTorch (1 min)
#
# Both frameworks have such a table:
#
# | | TensorFlow | PyTorch | here |
# |---|---|---|---|
# | an op is a name | `"AddV2"` | `"aten::add"` | `"add"` |
# | launch it | `tf.raw_ops.AddV2(x=x, y=y)` | `torch.ops.aten.add(x, y)` | `launch("add", None, x, y)` |
# | enter a kernel | `REGISTER_KERNEL_BUILDER` (C++) | `TORCH_LIBRARY_IMPL` (C++) | `kernel("add")` |
# | who finds the kernel | the runtime | the dispatcher | `KERNELS[op, kind]` |
#
# PyTorch's **dispatcher** finds the kernel by the op and a *dispatch key*, such as `CPU`. `KERNELS` does the same. In
# PyTorch, the shape of the result is computed inside the kernel. TensorFlow's runtime chooses by the dtype, too.
# PyTorch can also do in Python what `use` does:
#
# ```
# library = torch.library.Library("aten", "IMPL")
# library.impl("relu", f, "CPU")  # from now on, torch.relu runs f
# del library                     # and now its own kernel again
# ```
#
# (With one import changed, programs for both run on `levels`: see [more/03_torch](more/03_torch.ipynb) and
# [more/05_tensorflow](more/05_tensorflow.ipynb).)
#
# ## What you do differently now (1 min)
#
# When a model is slow, look first at how many kernels a step launches and how many bytes they move, and only then at
# the arithmetic. On small batches, do not expect compiled kernels to be faster than Python. When an op surprises you,
# ask which kernel ran. The op's name and the device decide which kernel, the dtype which compiled version. Order your
# loops so that the innermost one walks along memory. Keep the naive version of each kernel, and compare the quick one
# with it to the last bit, on NaN and infinity, too.
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
from course.reader import exercises

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
from course.reader import exercises

exercises.begin("02-3")


def steps_of(shape, common):
    """For each axis of `common`: the step to the next number of an array of `shape`.

    0 where the array is repeated.
    """
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
# ## Where to go from here
#
# Next comes [3 · Low-level API](03_low_level.ipynb). There a buffer becomes a tensor, and each op of a tensor finds its
# kernel in your table. At the end of notebook 05, [a figure](05_high_level.ipynb#From-fit-to-the-multiply) follows one
# step from `fit` down to an instruction. Its stage 2 is on this level.
#
# Four notebooks continue this one:
#
# | notebook | its idea |
# |---|---|
# | [more/02_matmul](more/02_matmul.ipynb) | the matrix product at the machine's peak, and the same bits on any number of threads |
# | [more/02_reductions](more/02_reductions.ipynb) | the largest number, softmax, and four sums side by side |
# | [more/02_random](more/02_random.ipynb) | random numbers without a state |
# | [more/02_machines](more/02_machines.ipynb) | the same scalar functions on a GPU and a TPU, and a step that two GPUs share (its end needs notebooks 03 and 05) |
#
# ## Build

# %%
build.level("02_kernels", linear_regression, dnn_classifier)

# %% [markdown]
# Level 2 stands. Next: [3 · Low-level API](03_low_level.ipynb).

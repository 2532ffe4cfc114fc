# %% [markdown]
# # 2 · Kernels
#
# **In this notebook you fill a table of small compiled programs, and train a model by calling them by name.**
#
# A framework never says "add these numbers with this loop". It says `"add"`, and looks up who can do that on this device.
# About 70 minutes, without the sections marked as optional. From level 1 you need three things: a `Device` such as `cpu:0`, a
# `Buffer` of its memory, and what a launch costs.

# %%
from course import build, figures, tasks

build.watch("02_kernels")
figures.you_are_here(2)

# %% [markdown]
# ## A surprise to begin with (2 min)
#
# We add an array to itself: once with 1 number in it, once with 1,000.

# %% tags=["hide-input"]
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

one, thousand = (min(timeit.repeat("v + v", globals={"v": np.ones(n)}, number=2000)) / 2000 for n in (1, 1000))
print(f"1 number {one * 1e9:.0f} ns, 1,000 numbers {thousand * 1e9:.0f} ns: {thousand / one:.1f} times the time")

# %% [markdown]
# A thousand times the work, and nowhere near a thousand times the time. Most of a small call is not arithmetic. Python
# finds the function; NumPy checks the arrays and allocates the result; only then does a loop run.
#
# Our linear regression takes batches of ten rows. Its prediction is `x @ w + b` in NumPy, and one line in plain Python:

# %% tags=["hide-input"]
checks.predict(
    "Which of the two is faster for ten rows, plain Python or NumPy?",
    choices=["NumPy, 10 times or more", "NumPy, a little", "plain Python"],
    answer="plain Python",
    because="Ten rows are twenty products. Two calls of NumPy cost more than that. At a hundred rows NumPy wins.",
)

# %% tags=["nbval-ignore-output"]
w, b = np.array([[2.0], [-3.0]]), np.array([[3.0]])
(w1,), (w2,) = w.tolist()
for n in (10, 100):
    x = np.ones((n, 2))
    rows = x.tolist()
    python, with_numpy = (
        min(timeit.repeat(code, globals=globals(), number=2000)) / 2000
        for code in ("[x1 * w1 + x2 * w2 + 3.0 for x1, x2 in rows]", "x @ w + b")
    )
    print(f"{n:3} rows: plain Python {python * 1e6:.1f} µs, NumPy {with_numpy * 1e6:.1f} µs")

# %% [markdown]
# This level is about both: the loop, and what it costs to call one.
#
# ## A first kernel (4 min)
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
first = timeit.timeit("add_numba(out, x, x)", globals=globals(), number=1)
print("right:", bool((out == 2 * x).all()))

# %% tags=["nbval-ignore-output"]
slow, fast = (
    min(timeit.repeat(f"{name}(out, x, x)", globals=globals(), number=1)) for name in ("add_python", "add_numba")
)
print(f"Python {slow * 1e6:.0f} µs, numba {fast * 1e6:.0f} µs: {slow / fast:.0f} times")
print(f"the first call of the numba version, with compiling: {first * 1e3:.0f} ms")

# %% [markdown]
# ## Compiled once (3 min)
#
# The first call took thousands of times as long as the second: it compiled. So a framework keeps what it compiled, in a
# folder. The danger is a **stale** kernel: you change a function, and the old program runs. numba's own cache looks at the
# file's time stamp, and
# [misses a change in another file](https://numba.readthedocs.io/en/stable/developer/caching.html).
#
# Ours keeps each program under a **hash**: a short fingerprint of a text, another one whenever the text differs. The text is
# everything that the program was made from: the function's code, its constants, and the same of every function it calls.

# %% tags=["hide-input"]
checks.predict(
    "`four_times` calls `double`, and was compiled. Now we change `double` and leave `four_times` as it is. Which program "
    "does `four_times` run?",
    choices=["the kept one, for its own code is the same", "a new one"],
    answer="a new one",
    because="The text goes down through everything that is called. So the hash is another, and `four_times` is compiled again.",
)

# %% [markdown]
# What cannot be put in words, such as a setting in some module, is not kept at all. And if you define a function again in a
# running notebook, the next launch notices, and compiles again what uses it. That is all you need of the cache. The next
# section is **One table**.
#
# ### The code of the cache (optional)
#
# A program is made from more than its own lines. It reads **globals**: names that stand outside it, such as functions that it
# calls. Python can list them. The containers on top are filled further down.

# %%
#| export cache
"""Compiled programs are kept under a hash of everything they were made from."""

import dis
import functools
import hashlib
import pickle
import sys
import types

import llvmlite
import numpy as np

from levels.hardware import CACHE, keep, kept

# types whose values Python spells in full, so that two with the same text are the same
PLAIN = [bool, int, float, complex, str, bytes, np.generic, np.dtype, type, types.BuiltinFunctionType, type(None)]
STANDS = {}  # a Python function -> function(dtype): what kernels for arrays of that dtype call in its place
INTRINSICS = set()  # functions that write instructions themselves


def intrinsic(function):
    """As numba's decorator of that name, for which numba need not be there before something is compiled."""
    INTRINSICS.add(function)
    return function


@functools.cache
def globals_read(code):
    """The names of the globals that a piece of code, or a function inside it, reads."""
    inner = [c for c in code.co_consts if isinstance(c, types.CodeType)]
    own = {i.argval for i in dis.get_instructions(code) if i.opname == "LOAD_GLOBAL"}
    return own.union(*map(globals_read, inner))


# %%
sorted(globals_read((lambda x: np.sqrt(x) + w1).__code__))

# %% [markdown]
# What is compiled from this lambda depends on `w1`, too. So a function needs a description, in which everything shows that could
# change the program:


# %%
#| export cache
def described(value, seen=()):
    """A text that differs whenever compiled code could. Raises TypeError for what it cannot describe."""
    if value in seen:
        return "again"
    inside, value = (*seen, value), getattr(value, "py_func", value)  # numba's: what it was compiled from
    if isinstance(value, types.FunctionType):
        if value in STANDS:
            return described([STANDS[value](np.dtype(name)) for name in ("f4", "f8")], inside)
        if getattr(value, "hash", None):  # compiled here
            return value.hash
        scope = [(n, value.__globals__[n]) for n in sorted(globals_read(value.__code__)) if n in value.__globals__]
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        where = value.__globals__["__name__"]  # numba imports that module again when it loads the program
        return f"{where}{described(value.__code__, inside)}{described([scope, cells], inside)}{value.__defaults__}"
    if isinstance(value, types.CodeType):
        return f"{value.co_code}{value.co_names}{value.co_varnames}{described(list(value.co_consts), seen)}"
    if isinstance(value, (list, tuple, dict)):
        parts = value.items() if isinstance(value, dict) else value
        return f"{type(value).__name__}({', '.join(described(part, seen) for part in parts)})"
    if isinstance(value, tuple(PLAIN)):
        return f"{type(value).__name__} {value!r}"
    if isinstance(value, types.ModuleType) and value.__name__.split(".")[0] in ("math", "numpy", "numba", "llvmlite"):
        return value.__name__
    raise TypeError(f"a kernel depends on {value!r}, which cannot be hashed")


# %% [markdown]
# Here is the question from above. The first `double` is replaced by a second; `four_times` stays:


# %%
def double(x):
    return 2.0 * x


def four_times(x):
    return double(double(x))


before = described(four_times)


def double(x):  # noqa: F811
    return 2.5 * x


print("another description:", described(four_times) != before)

# %% [markdown]
# To compile a function, we copy it first. In the copy each function that it calls is compiled, too. And each float constant
# has the dtype of the arrays. Otherwise numba takes the constant `1.0` for a float64, and with it `1.0 / x`, where x is float32.
# So one function says what the copy finds in place of a value:


# %%
#| export cache
def inside(value, dtype, stands, compiled):
    """What a kernel for arrays of that dtype shall find where it reads this constant or global; a function `compiled`."""
    if isinstance(value, tuple):
        return tuple(inside(v, dtype, stands, compiled) for v in value)
    if isinstance(value, float) and dtype.kind == "f":
        return dtype.type(value)
    function = getattr(value, "py_func", value)
    if not isinstance(function, types.FunctionType) or hasattr(function, "hash"):
        return value
    if function in stands:
        function = stands[function](dtype)
    if function in INTRINSICS:
        from numba.extending import intrinsic as in_numba

        return in_numba(function)
    return compiled(function)


# %% [markdown]
# And one makes the copy, with every value replaced:


# %%
#| export cache
def specialised(function, find, finish=lambda copy: copy):
    """A copy of a function that reads find(value) where it reads a value, finished before the names that it reads are set."""
    code, scope = function.__code__, {"__name__": function.__globals__["__name__"]}
    cells = tuple(types.CellType(find(cell.cell_contents)) for cell in function.__closure__ or ())
    code = code.replace(co_consts=find(code.co_consts))
    result = finish(types.FunctionType(code, scope, function.__name__, function.__defaults__, cells))
    names = globals_read(code) & function.__globals__.keys()
    scope |= {name: find(function.__globals__[name]) for name in names}  # (it may call itself)
    return result


# %% [markdown]
# Now compile. The name of a program is the hash: of versions, dtype and options, and of the description above.

# %%
#| export cache
PROGRAMS = {}  # hash -> program


def compile_cpu(function, dtype, fastmath=(), boundscheck=False):
    """Compile a function for arrays of that dtype; division by zero gives infinity, as in NumPy.

    float32 may round a·b + c once (FMA), float64 never. `fastmath` names what else LLVM may do to the floats of this
    function, such as ("reassoc",): sums may be split over lanes.
    """
    import numba  # takes most of a second, so it waits until something is compiled

    fastmath = {*fastmath, *["contract"] * (dtype == np.float32)}
    try:
        how = sys.implementation.cache_tag, numba.__version__, llvmlite.__version__, np.__version__
        how += dtype, sorted(fastmath), boundscheck
        name = hashlib.sha256(f"{how}{described(function)}".encode()).hexdigest()
    except TypeError:
        name = None
    if name in PROGRAMS:
        return PROGRAMS[name]
    options = {"error_model": "numpy", "nogil": True, "fastmath": fastmath, "boundscheck": boundscheck}

    def finish(copy):
        copy.hash = name
        program = numba.njit(**options)(copy)
        if name is not None:
            PROGRAMS[name], program._cache = program, Kept(name)
        return program

    inner = functools.partial(compile_cpu, dtype=dtype, boundscheck=boundscheck)
    return specialised(function, lambda value: inside(value, dtype, STANDS, inner), finish)


# %% [markdown]
# To call the machine code itself, past numba's look-up, saves a part of a microsecond:


# %%
#| export cache
def compiled_for(program, *arguments):
    """What numba's program runs for arguments of these types. To call it saves the look-up, about 0.2 µs, and its checks."""
    if not hasattr(program, "compile"):  # it is Python: `COMPILERS` may hold a compiler that compiles nothing
        return program
    import numba

    return program.compile(tuple(map(numba.typeof, arguments)))


# %% [markdown]
# numba asks an object like this one for what it has compiled before. It lies where the assembler keeps its programs:


# %%
#| export cache
class Kept:
    """Finds and keeps what numba compiled: under the program's hash, the types of its arguments, and the processor."""

    cache_path = CACHE

    def __init__(self, name):
        self.name = name

    def key(self, types, codegen):
        return f"{self.name} {types} {codegen.magic_tuple()}"

    def load_overload(self, types, context):
        from numba.core.compiler import CompileResult

        context.refresh()  # numba's own code, which this program may call, must be there first
        data = kept(self.key(types, context.codegen()))
        return data and CompileResult._rebuild(context, *pickle.loads(data))

    def save_overload(self, types, result):
        from numba.core.serialize import dumps

        keep(self.key(types, result.codegen), dumps(result._reduce()))


# %% [markdown]
# The same text gives the same hash. So of two equal functions the second *is* the first; nothing is compiled twice:

# %%
halved, again = (compile_cpu(function, np.dtype("f4")) for function in (lambda x: 0.5 * x, lambda x: 0.5 * x))
print(halved(np.float32(3.0)), again is halved)

# %% [markdown]
# And within a running notebook, the next launch has to notice when you define again a function that its kernel calls, or a
# number that it reads:


# %%
#| export cache
def watched(function, seen=()):
    """((scope, name, value), …): the globals that a kernel was compiled from, those of what it calls first."""
    found = ()
    for name in sorted(globals_read(function.__code__) & function.__globals__.keys()):
        value = function.__globals__[name]
        inner = getattr(value, "py_func", value)
        if isinstance(inner, types.FunctionType) and inner not in (*seen, *STANDS):
            found += watched(inner, (*seen, function))
        found += ((function.__globals__, name, value),)
    return found


def rebound(names):
    """Whether any of these watched globals has another value now: then what was compiled from them is stale."""
    for scope, name, value in names:  # noqa: SIM110 (any(…) is slower, and this stands in the way of every launch)
        if scope.get(name) is not value:
            return True
    return False


# %% [markdown]
# ## One table (5 min)
#
# An op is a name. A kernel is one kind of device's program for it. One table joins the two, `KERNELS`. A GPU is one
# more column of this table (in `more/02_machines`). It is a `dict` that prints as a table and knows when it was changed.

# %%
#| export registry
"""An op is a name; a kernel is one kind of device's program for it; one table joins them."""

import difflib
import inspect
import math
import operator
import reprlib

from levels import more
from levels.hardware import pool


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


# %% [markdown]
# Smaller tables and sets stand beside it. The next section fills them, so come back to their comments then.

# %%
#| export registry
KERNELS = Kernels()
COMPILERS = {"cpu": compile_cpu}  # kind of device -> how a function becomes its program
PLANNERS = {}  # op -> planner(op, function, *inputs, **attrs) -> Plan
KIND_PLANNERS = {}  # (op, kind of device) -> its planner, where this kind plans the op in a way of its own
FLAT = set()  # kinds of device whose programs see an array as one long row, where its plan says nothing else
PLANS = {}  # (op, specs of the inputs, attributes) -> the Plan made for it
UPDATES = set()  # ops whose first inputs are their results, such as "sgd": they read the numbers that they overwrite
NUMBERS = set()  # ops whose attributes are numbers for the kernel, such as a rate: any numbers share a plan


# %% [markdown]
# `kernel` is a decorator: it enters a plain function, which is compiled when the first launch asks for it. It gives the
# function back, so that we can still read and test it as Python.


# %%
#| export registry
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


# %% [markdown]
# Our first entry: a kernel that doubles.


# %%
@kernel("twice", "cpu")
def twice(out, x):
    for i in range(len(out)):
        out[i] = 2.0 * x[i]


KERNELS

# %% [markdown]
# One row, one column. Nothing is compiled yet.
#
# ## One way in (6 min)
#
# Who calls a kernel has to know the shape and the dtype of its result. Level 1 keeps both in a buffer's `Spec`, with the
# device. Here is one of three numbers:

# %%
cpu = pool()["cpu:0"]
three = cpu.put(np.arange(3.0))
print(three.spec, three.spec.nbytes, "bytes")

# %% [markdown]
# Specs of the inputs are enough to say what a call will do: which Spec the result has, which program runs, and how many bytes
# it moves. That is a **plan**. It is the same for every call with the same shapes, so it is made once and kept. To make it
# compiles nothing: the program is *lowered*, as compilers say, when the plan first runs. So who only wants to know which
# shape will come out gets an answer in microseconds.


# %%
#| export registry
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


# %% [markdown]
# Each op has a **planner**, a function that makes its plans. Nearly all of them end in `make`. It takes the loop, and the
# shapes in which the loop wants to see its arrays (`views`), such as a matrix as one long row. `lowered` says how a plain
# function becomes such a loop, and compiles nothing yet.


# %%
#| export registry
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


# %% [markdown]
# The planner of `twice` is one line: a result like `x`, and the kernel, compiled for its dtype.


# %%
def plan_twice(op, function, x):
    return make(op, x.shape, x.dtype, [x], lowered("cpu", function, x.dtype))


PLANNERS["twice"] = plan_twice
made = plan_twice("twice", twice, three)
print(made.spec, "-", made.nbytes, "bytes to move")

# %% [markdown]
# 24 bytes are read and 24 written. A planner with more inputs asks first whether the dtypes agree, and whether there is a
# kernel for them.


# %%
#| export registry
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


# %%
try:
    same_dtype("add", three, cpu.put(np.ones(3, "f4")))
except TypeError as error:
    print(error)

# %% [markdown]
# What else can be wrong with any op is found in one place, before its planner is asked: no such op, no input, two devices, no
# kernel for this kind, an attribute that the planner does not take.


# %%
#| export registry
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


# %%
for name, buffers in (("twise", [three]), ("twice", [])):
    try:
        plan(name, buffers, {})
    except (LookupError, TypeError) as error:
        print(error)

# %% [markdown]
# `launch` will be the one way in. It takes three steps. First it looks for a plan made before. The key is the op with the Specs
# of its inputs and its attributes. An attribute such as an axis is part of the plan. One such as a rate may change from call to
# call: it is a number for the kernel, and any rates share a plan.

# %%
#| export registry
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


# %% [markdown]
# Then the result is checked, or a new buffer taken for it:


# %%
#| export registry
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


# %% [markdown]
# And the program runs on the arrays in the buffers, and is counted:


# %%
#| export registry
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


# %% [markdown]
# Together, find, check and run:


# %%
#| export registry
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


# %% [markdown]
# Every launch passes here, so it is easy to count what a step consists of.


# %%
#| export registry
def counted(run):
    """How many launches `run()` makes, and how many bytes they read and write."""
    for found in PLANS.values():
        found.launches = 0
    run()
    return sum(p.launches for p in PLANS.values()), sum(p.launches * p.nbytes for p in PLANS.values())


# %% [markdown]
# The first launch, and what two of them cost:

# %%
print(launch("twice", None, three).numpy())
print(counted(lambda: [launch("twice", None, three) for _ in range(2)]))

# %% [markdown]
# Two launches, twice 48 bytes. It runs. But must each op bring a loop and a planner of its own? We take `twice` out again, and
# look for something shorter.

# %%
del KERNELS["twice", "cpu"], PLANNERS["twice"]
PLANS.clear()

# %% [markdown]
# ## One scalar function, one loop (6 min)
#
# Addition of arrays is addition of numbers, in a loop. So we write only the addition of *numbers*, and let Python write
# the loop. When shapes differ, the smaller array is repeated
# ([**broadcasting**](https://numpy.org/doc/stable/user/basics.broadcasting.html), NumPy's rule): a bias of shape `(1, 4)` is added to
# every row of `(10, 4)`. In the loop that means one index less. So for each axis we note its *owners*: the inputs that have
# it, and are not repeated along it. Neighbouring axes with the same owners are one long axis to the loop.

# %%
#| export elementwise
"""Elementwise ops: one scalar function each, and the loop that Python writes around it."""

from itertools import groupby


def broadcast(op, shapes):
    """The common shape: sizes are aligned at the right, and a size of 1 is repeated (NumPy's rule)."""
    try:
        return np.broadcast_shapes(*shapes)
    except (ValueError, RuntimeError):  # the second for more axes than NumPy has
        raise ValueError(f"{op}: shapes {' and '.join(map(reprlib.repr, shapes))} do not broadcast") from None


def merged_axes(shape, shapes):
    """[(size, (does input 0 have this axis, …)), …]: neighbours that all inputs treat alike become one axis."""
    padded = [(1,) * (len(shape) - len(s)) + tuple(s) for s in shapes]
    axes = [(size, tuple(p[i] == size for p in padded)) for i, size in enumerate(shape) if size != 1]
    merged = [(math.prod(size for size, _ in group), owners) for owners, group in groupby(axes, lambda axis: axis[1])]
    return merged or [(1, (True,) * len(shapes))]


# %% tags=["hide-input"]
checks.predict(
    "How many loops, one in the other, does the sum of two arrays of shape (10, 4) need?",
    choices=["one", "two", "three"],
    answer="one",
    because="Both own both axes, and the rows lie one after the other in memory. So it is one row of forty numbers.",
)

# %%
for other in ((1, 4), (10, 4)):
    print((10, 4), "and", other, "->", merged_axes((10, 4), [(10, 4), other]))

# %% [markdown]
# With a row, the axis of 10 belongs to the first input alone and that of 4 to both: two loops, and the second input is indexed
# by the inner letter only. With a matrix it is one axis of 40.
#
# The loop itself is text: a Python program that writes a Python program. An input is indexed by the letters of the axes it owns. With one letter it is seen as one long row
# (`ravel`), which compilers like best.


# %%
#| export elementwise
def nest(places, letters):
    """The lines around the one that computes an element: a loop for each index."""
    row = [name for name, index in places.items() if len(index) < 2]  # seen as one long row, or as its one number
    lines = [f"{name} = {name}.ravel()" + "[0]" * (not places[name]) for name in row]
    return lines + ["    " * n + f"for {letter} in range(out0.shape[{n}]):" for n, letter in enumerate(letters)]


AROUND = {"cpu": (nest, {})}  # kind of device -> what writes these lines, and the names that they use

# %%
print("\n".join(nest({"out0": "i, j", "x0": "i, j", "x1": "j"}, "ij")))

# %% [markdown]
# The loops are there, and `x1`, which has one letter, has become a row. Inside them comes the line that calls the scalar
# function:


# %%
#| export elementwise
def loop_source(name, owners, numbers=(), results=1, updates=False, kind="cpu"):
    """The text of a nest of loops that calls the scalar function `name` once for each element.

    An op that updates finds its first inputs in its results: with two names for one array, no loop could take many at once.
    """
    letters, outs = "ijklmnopqrst"[: len(owners)], [f"out{r}" for r in range(results)]
    inputs = [f"x{k}" for k in range(len(owners[0]))]
    if updates:
        inputs[:results] = outs
    indices = [", ".join(c for c, has in zip(letters, own) if has) for own in zip(*owners)]
    places = dict.fromkeys(outs, ", ".join(letters)) | dict(zip(inputs, indices))
    value = {array: f"{array}[{index}]" if index else array for array, index in places.items()}
    call = ", ".join([*(value[array] for array in inputs), *(f"number({n})" for n in numbers)])
    lines = AROUND[kind][0](places, letters)
    depth = 1 + sum(line.endswith(":") for line in lines)
    lines.append("    " * (depth - 1) + f"{', '.join(value[out] for out in outs)} = {name}({call})")
    return "\n    ".join([f"def loop({', '.join([*places, *numbers])}):", *lines])


# %% [markdown]
# A sum of a matrix and a row, and a sum of two matrices (whose two axes became one):

# %%
for shapes in ([(10, 4), (1, 4)], [(10, 4), (10, 4)]):
    print(loop_source("add", [owners for _, owners in merged_axes((10, 4), shapes)]), "\n")

# %% [markdown]
# Python runs such a text with `exec`, and has a function like any other. Its name `scalar` then means our function of numbers,
# and `number` the dtype.


# %%
#| export elementwise
def lowered_loop(kind, function, dtype, owners, *layout):
    """What compiles the loop around a scalar function, for arrays of that dtype; `layout` is the rest of `loop_source`'s."""
    compiler = COMPILERS[kind]

    def lower():
        scope = {"__name__": "__main__", "scalar": function, "number": dtype.type, **AROUND[kind][1]}
        exec(loop_source("scalar", owners, *layout, kind=kind), scope)
        return compiler(scope["loop"], dtype)

    return lower


# %% [markdown]
# The planner puts it all together: the common shape, the loop, and how each array has to be seen for it. It asks four
# questions. Do the arrays and numbers fit the function? Does the op support this dtype? What is the
# common shape? Which loop is it?


# %%
#| export elementwise
ELEMENTWISE = {}  # op -> (its results, the kinds of dtypes it takes: f floats, i integers, b bool; the dtype it gives; masks)


def plan_elementwise(op, function, *inputs, shape=None, **numbers):
    """out[…] = function(x[…], y[…], …), broadcast to the common shape (or to a larger `shape`)."""
    (results, kinds, gives, masks), names = ELEMENTWISE[op], list(inspect.signature(function).parameters)
    dtype, shapes = same_dtype(op, *inputs[masks:], kinds=kinds), [buffer.shape for buffer in inputs]
    for mask in inputs[:masks]:
        same_dtype(op, mask, kinds="b")
    if len(names) != len(inputs) + len(numbers) or {*names[len(inputs) :]} != {*numbers} or (shape and numbers):
        raise TypeError(f"{op}: takes {', '.join(names)}; got {len(inputs)} arrays and the numbers {list(numbers)}")
    common = broadcast(op, shapes if shape is None else [shape, *shapes])
    if common != (shape or common) or op in UPDATES and {*shapes[:results]} != {common}:
        raise ValueError(f"{op}: shapes {' and '.join(map(str, shapes))} do not fit a result of {shape or shapes[0]}")
    sizes, owners = zip(*merged_axes(common, shapes))
    if len(sizes) > 12:
        raise ValueError(f"{op}: {len(sizes)} axes that the inputs own in turns; there are loops for 12")
    kind = inputs[0].device.kind
    loop = lowered_loop(kind, function, dtype, owners, tuple(names[len(inputs) :]), results, op in UPDATES)
    views = [tuple(s for s, has in zip(sizes, own) if has) or (1,) for own in zip(*owners)]
    views = [sizes] * results + views[results * (op in UPDATES) :]
    if kind not in FLAT and len(sizes) <= 2 and all(len(s) <= 2 for s in (common, *shapes)):
        views = None  # no need to reshape: the loop sees them so itself
    return make(op, common, gives or dtype, inputs, loop, views, names[len(inputs) :], results)


# %% [markdown]
# A decorator puts this together, so that an op costs three lines. It also notes on what a new kernel of the op will be tried,
# further down.


# %%
#| export elementwise
TRIALS = {}  # op -> [(inputs, attributes), …]: what a new kernel is tried on; an input is a shape, an array, or see `drawn`
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1e-30, -1e30, math.inf, -math.inf, math.nan)


def scalar(op, results=1, updates=False, takes="f", gives=None, masks=0, **numbers):
    """Decorate a scalar function: it becomes the op of that name on arrays, with as many results as it returns.

    With `updates` its first inputs are its results. It gives the dtype that it takes, or `gives`; so many of its inputs are
    `masks` of bools instead. `numbers` are the attributes that a new kernel is tried with.
    """

    def enter(function):
        others = len(inspect.signature(function).parameters) - len(numbers) - masks
        TRIALS[op] = [(["mask"] * masks + ["special"] * others, numbers)]
        ELEMENTWISE[op] = results, takes, gives, masks
        UPDATES.update({op} if updates else ())
        NUMBERS.update({op} if numbers else ())
        return kernel(op, planner=plan_elementwise)(function)

    return enter


# %% [markdown]
# Eight ops, a scalar function each, some in one line. (`takes` names the kinds of dtypes, f for floats and i for integers.)
# `sgd` is the update of gradient descent: it reads the weight that it overwrites.


# %%
#| export elementwise
@scalar("add", takes="fi")
def add(x, y):
    return x + y


scalar("subtract", takes="fi")(lambda x, y: x - y)
scalar("multiply", takes="fi")(lambda x, y: x * y)
scalar("divide")(lambda x, y: x / y)
scalar("negative", takes="fi")(lambda x: -x)
scalar("spread", count=3.0)(lambda dy, x, count: dy / count)  # a share of dy for each number of x


@scalar("broadcast_to", takes="fi")
def identity(x):
    return x


@scalar("sgd", updates=True, rate=0.1)
def sgd(w, dw, rate):
    return w - rate * dw


# %% [markdown]
# ### exp and log in a kernel (optional)
#
# The net needs `exp` and `log`. They are those of level 1, which has a formula for each dtype; the one for the arrays' dtype is
# compiled as it stands. Only the small tools beneath, which work on bits, mean something else in a kernel.
#
# A processor with AVX-512 has an instruction for x · 2ⁿ. LLVM writes it for its `ldexp`, which numba does not know. So we hand
# it over as an [intrinsic](https://numba.readthedocs.io/en/stable/extending/high-level.html): a function whose instructions we
# write ourselves. On other processors `ldexp` is a slow call for each number, and the two multiplications of level 1 remain.
# The bits are the same.

# %%
#| export elementwise
from llvmlite import ir

from levels.hardware import EXP, LOG, exp, exponent, host_lanes, log, rint, scaled, select, sqrt


def llvm_function(name):
    """One of LLVM's functions of two numbers, for kernels."""

    @intrinsic
    def call(typing, x, y):
        def emit(context, builder, signature, arguments):
            kinds = [argument.type for argument in arguments]
            function = ir.FunctionType(kinds[0], kinds)
            function = builder.module.declare_intrinsic(f"llvm.{name}", [*dict.fromkeys(kinds)], function)
            return builder.call(function, arguments)

        return x(x, y), emit

    return call


ldexp = llvm_function("ldexp")


# %% [markdown]
# The two tools that take an exponent apart, and then what stands for what: in a kernel, the right side for the left one.


# %%
#| export elementwise
def scaled_bits(dtype):
    """x·2ⁿ in two steps, since 2ⁿ alone may be too small or too large: n goes to where the format keeps its exponent."""
    single = dtype == np.float32
    if single and host_lanes() == 16:  # AVX-512
        return lambda x, n: ldexp(x, np.int32(n))
    real, whole, fraction, bias = (np.float32, np.int32, 23, 127) if single else (np.float64, np.int64, 52, 1023)

    def scaled(x, n):
        both = whole(n + real(2 * bias))  # so that each half has the bias
        half = both >> 1
        return x * whole(half << fraction).view(real) * whole(both - half << fraction).view(real)

    return scaled


def exponent_bits(dtype):
    """The n for which x lies between √½·2ⁿ and √2·2ⁿ, read from the bits."""
    if dtype == np.float32:
        return lambda x: np.float32(np.int32(np.float32(x).view(np.int32) - 0x3F3504F3) >> 23)
    return lambda x: np.float64((np.float64(x).view(np.int64) - 0x3FE6A09E667F3BCD) >> 52)


STANDS[exp], STANDS[log], STANDS[scaled], STANDS[exponent] = EXP.get, LOG.get, scaled_bits, exponent_bits
STANDS[rint], STANDS[sqrt] = lambda dtype: lambda x: np.rint(x), lambda dtype: lambda x: math.sqrt(x)
STANDS[select] = lambda dtype: lambda condition, x, y: x if condition else y


# %% [markdown]
# ### The net's ops
#
# A gradient is an op as well. `dy` is the slope of the loss at an op's output; the gradient's kernel turns it into the slope at
# the input. For relu it passes where the output was positive, and nothing passes elsewhere. **Fill the blank**, then run on:


# %%
def my_relu_grad(dy, y):
    return ...  # y is what relu gave


checks.blank(my_relu_grad, ((3.0, 2.0), 3.0), ((3.0, 0.0), 0.0), ((-1.0, 5.0), -1.0), hint="dy, or 0.0")

# %% [markdown]
# So relu and its gradient are these two. (`select(condition, x, y)` is x where the condition holds, else y.) They ask for `<= 0`
# and not for `> 0`, because NaN is neither: a row that is no number shows in the loss, and does not vanish as a 0.


# %%
#| export elementwise
@scalar("relu")
def relu(x):
    return select(x <= 0.0, 0.0, x)


@scalar("relu_grad")
def relu_grad(dy, y):
    return select(y <= 0.0, 0.0, dy)


# %% [markdown]
# The others of the net. Sigmoid makes a probability of any number; clip keeps it away from 0 and 1, where log would be infinite.

# %%
#| export elementwise
scalar("exp")(lambda x: exp(x))
scalar("log")(lambda x: log(x))
scalar("sigmoid_grad")(lambda dy, y: dy * y * (1.0 - y))


@scalar("sigmoid")
def sigmoid(x):
    return 1.0 / (1.0 + exp(0.0 - x))


@scalar("clip", low=-0.5, high=0.5)
def clip(x, low, high):
    return select(x < low, low, select(x > high, high, x))


@scalar("clip_grad", low=-0.5, high=0.5)
def clip_grad(dy, x, low, high):
    return select(low < x, select(x < high, dy, 0.0), 0.0)


# %% [markdown]
# A matrix and a row, added by name:

# %%
out = cpu.alloc((2, 3), "f8")
launch("add", out, cpu.put(np.ones((2, 3))), cpu.put(np.arange(3.0)))
out.numpy()

# %% [markdown]
# ## Many numbers become one (5 min)
#
# A sum is not elementwise: many numbers become one. Such ops have a pattern of their own. We write how *one* more number is
# taken in, and it is put into a loop. Seen as `[before, summed, after]` it is always the same loop, for any axis. Along a row
# the sum starts at 0.0 and runs upwards, as the record says. But each addition waits for the one before, and takes several cycles. So
# four rows go side by side: four sums that do not wait for each other.

# %%
#| export reduce
"""Reductions: many numbers become one, along an axis."""


START = 0.0  # where a loop begins. Each op puts its own number in this place


def combine(total, x):
    """How one more number is taken in. Each op puts its own function in this place."""
    return total + x


def reduce_rows(out, x):
    """out[i] = combine(… combine(START, x[i, 0]) …, x[i, last]), four rows side by side."""
    rows, whole = x.shape[0], x.shape[0] // 4 * 4
    for i in range(0, whole, 4):
        a = b = c = d = START
        for k in range(x.shape[1]):
            a, b = combine(a, x[i, k]), combine(b, x[i + 1, k])
            c, d = combine(c, x[i + 2, k]), combine(d, x[i + 3, k])
        out[i], out[i + 1], out[i + 2], out[i + 3] = a, b, c, d
    for i in range(whole, rows):
        total = START
        for k in range(x.shape[1]):
            total = combine(total, x[i, k])
        out[i] = total


# %% [markdown]
# Down the columns nothing waits: neighbours are different sums.


# %%
#| export reduce
def reduce_columns(out, x):
    """out[i, j] = combine(… combine(START, x[i, 0, j]) …, x[i, last, j]), neighbours j side by side."""
    out[:] = START
    for i in range(out.shape[0]):
        for k in range(x.shape[1]):
            for j in range(out.shape[1]):
                out[i, j] = combine(out[i, j], x[i, k, j])


# %% [markdown]
# A long row of float32 is the exception. Remember the surprise of notebook 01: one running sum of 2²⁵ ones stops at 16,777,216.
# So in rows of 1,024 float32 or more the compiler may split a sum over its lanes (`reassoc`, for reassociate): many sums, each
# of fewer numbers. In float64 nothing is reordered, ever.

# %%
#| export reduce
LONG = 1024  # numbers in a row, from which on a float32 sum is split
REDUCTIONS = {}  # op -> the number that its loops start at


LOOPS = {"cpu": (reduce_rows, reduce_columns)}  # kind of device -> its loops for such a reduction


def lowered_reduction(kind, function, dtype, start, loop, fast):
    """What compiles one of these loops, with this function and start in the places of `combine` and `START`, for that dtype."""
    compiler = COMPILERS[kind]

    def lower():
        inner = compiler(function, dtype, fast)
        scope = loop.__globals__ | {"combine": inner, "START": dtype.type(start), "NUMBER": dtype.type}
        return compiler(types.FunctionType(loop.__code__, scope), dtype, fast)

    return lower


# %% [markdown]
# Which axes are summed is read here. Every wrong axis ends here, too.


# %%
#| export reduce
def reduced(op, shape, axis):
    """(the axes to reduce, sorted; the sizes before, within and after them); all axes where `axis` is None."""
    axes = range(len(shape)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    if not all(isinstance(a, int) and -len(shape) <= a < len(shape) for a in axes):
        raise ValueError(f"{op}: axis {reprlib.repr(axis)} is not an axis of shape {shape}")
    axes = sorted(a % len(shape) for a in axes)
    first, last = (axes[0], axes[-1] + 1) if axes else (0, 0)
    if axes != list(range(first, last)):
        raise ValueError(f"{op}: the axes {axis} are not neighbours, each named once; reduce one after the other")
    return axes, [math.prod(sizes) for sizes in (shape[:first], shape[first:last], shape[last:])]


# %% [markdown]
# In shape (2, 3, 4) the axis 1 has 2 before it, 3 within and 4 after:


# %%
reduced("reduce_sum", (2, 3, 4), axis=1)

# %% [markdown]
# The planner sees any array so, as `[before, within, after]`, and takes the loop that fits.


# %%
#| export reduce
def plan_reduce(op, function, x, axis=None, keepdims=False):
    """Reduce over one axis, over a tuple of neighbours, or over all (axis=None)."""
    if not isinstance(keepdims, bool):
        raise TypeError(f"{op}: keepdims is {keepdims!r}; expected True or False")
    axes, (before, within, after) = reduced(op, x.shape, axis)
    start, dtype = REDUCTIONS[op], same_dtype(op, x, kinds="fi")
    if within == 0 and math.isinf(start):
        raise ValueError(f"{op}: shape {x.shape} has no number along axis {axis}, so none is the largest or smallest")
    if dtype.kind == "i":
        start = max(np.iinfo(dtype).min, min(start, np.iinfo(dtype).max))
    shape = tuple(1 if a in axes else size for a, size in enumerate(x.shape) if keepdims or a not in axes)
    by_rows, by_columns = LOOPS[x.device.kind]
    views, loop = [(before, after), (before, within, after)], by_columns
    if after == 1:
        views, loop = [(before,), (before, within)], by_rows
    fast = ("reassoc",) if after == 1 and within >= LONG and dtype == np.float32 else ()
    return make(op, shape, dtype, [x], lowered_reduction(x.device.kind, function, dtype, start, loop, fast), views)


# %% [markdown]
# Now a reduction costs three lines, too. The decorator also notes the shapes on which a new kernel will be tried, an empty one
# among them.


# %%
#| export reduce
def reduction(op, start):
    """Decorate a function of two numbers: it becomes the op of that name, which starts at `start`."""

    def enter(function):
        REDUCTIONS[op] = start
        TRIALS[op] = [
            ([shape], {"axis": axis, "keepdims": keepdims})
            for shape, axis in (((3, 4, 5), (0, 1)), ((3, 4, 5), 1), ((9, 70), -1), ((1, 1), None), ((0, 2, 3), 1))
            for keepdims in (False, True)
        ]
        return kernel(op, planner=plan_reduce)(function)

    return enter


@reduction("reduce_sum", 0.0)
def reduce_sum(total, x):
    return total + x


# %% tags=["hide-input"]
checks.predict(
    "2²⁵ float32 ones, which one running sum took for 16,777,216. What does `reduce_sum` make of them?",
    choices=["16,777,216", "33,554,432", "something between"],
    answer="33,554,432",
    because="In so long a row the sum is split over the lanes. Each counts its own ones, and none of these sums grows as large as "
    "2²⁴, where a one is lost.",
)

# %%
float(launch("reduce_sum", None, cpu.put(np.ones(2**25, "f"))).numpy())

# %% [markdown]
# ## Products and rows (4 min)
#
# A batch is rows of the data picked by number. A wrong number must not read somebody else's memory.


# %%
#| export rows
"""Rows picked, and added to, by number."""


def plan_gather(op, function, x, rows):
    """out[i, …] = x[rows[i], …]"""
    if rows.dtype != np.int64 or len(x.shape) < 1:
        raise TypeError(f"{op}: rows are {rows.dtype}; expected int64 row numbers of an array with rows")
    count, width = math.prod(rows.shape), math.prod(x.shape[1:])
    views, loop = [(count, width), (x.shape[0], width), (count,)], lowered(x.device.kind, function, x.dtype)
    made = make(op, rows.shape + x.shape[1:], x.dtype, [x, rows], loop, views)
    made.nbytes = 2 * made.spec.nbytes + rows.spec.nbytes  # of x only these rows are read
    return made


@kernel("gather", planner=plan_gather)
def gather(out, x, rows):
    """out[i, j] = x[rows[i], j]"""
    for i in range(rows.size):
        row = rows[i]  # read once: for all the compiler knows, out might lie over rows, and the loop below change it
        if not 0 <= row < x.shape[0]:
            raise IndexError("gather: a row number is out of range")
        for j in range(x.shape[1]):
            out[i, j] = x[row, j]


TRIALS["gather"] = [
    ([shape, np.arange(count) * 3 % shape[0]], {}) for shape in ((5,), (5, 3), (1, 1), (2, 3, 4)) for count in (0, 1, 7)
]

# %% [markdown]
# Three rows by number, one of them twice:

# %%
table = cpu.put(np.arange(6.0).reshape(3, 2))
launch("gather", None, table, cpu.put(np.array([2, 0, 2]))).numpy().tolist()

# %% [markdown]
# And the workhorse of deep learning, the matrix product. Its planner first. The inner sizes must agree, and a transposed
# operand is only read in another order:

# %%
#| export matmul
"""The matrix product."""


def plan_matmul(op, function, x, w, transpose_x=False, transpose_w=False):
    """out[m, n] = x[m, k] @ w[k, n]; either may be given transposed, and is then read so, not copied."""
    dtype = same_dtype(op, x, w)
    if len(x.shape) != 2 or len(w.shape) != 2:
        raise ValueError(f"{op}: x is {x.shape} and w is {w.shape}: both need two axes")
    (m, k), (rows, n) = x.shape[:: -1 if transpose_x else 1], w.shape[:: -1 if transpose_w else 1]
    if k != rows:
        raise ValueError(f"{op}: x is {(m, k)} and w is {(rows, n)}: inner sizes {k} and {rows} differ")

    compiler = lowered(x.device.kind, function, dtype)

    def lower():
        loop = compiler()

        def run(out, x, w):
            loop(out, x.T if transpose_x else x, w.T if transpose_w else w)

        return run

    return make(op, (m, n), dtype, [x, w], lower, [(m, n), x.shape, w.shape])


# %% [markdown]
# The kernel: for each result the sum runs over `k` upwards, whatever the order of the three loops. Why they stand in this
# order, a picture further down will show.


# %%
#| export matmul
@kernel("matmul", planner=plan_matmul)
def matmul_ikj(out, x, w):
    """out[i, j] = Σₖ x[i, k]·w[k, j], starting at 0.0, k upwards."""
    out[:] = 0.0
    for i in range(out.shape[0]):
        for k in range(x.shape[1]):
            for j in range(out.shape[1]):
                out[i, j] += x[i, k] * w[k, j]


TRIALS["matmul"] = [
    ([(m, k)[:: -1 if flip_x else 1], (k, n)[:: -1 if flip_w else 1]], {"transpose_x": flip_x, "transpose_w": flip_w})
    for m, k, n in ((1, 1, 1), (3, 5, 4), (0, 2, 3), (2, 0, 3), (17, 33, 9))
    for flip_x, flip_w in ((False, False), (True, False), (False, True))
]

# %% [markdown]
# A backward pass wants xᵀ · x, and no copy of x turned round:

# %%
launch("matmul", None, table, table, transpose_x=True).numpy().tolist()

# %% [markdown]
# The table by now:

# %%
KERNELS

# %% [markdown]
# A call that cannot work meets one clear error, before any kernel runs:

# %%
x, w, out = cpu.put(np.ones((10, 2))), cpu.put(np.ones((3, 1))), cpu.alloc((10, 1), "f8")
calls = [("matmul", out, x, w), ("ad", out, x, x), ("add", out, x, cpu.put(np.ones(2, "f4"))), ("add", out, x, x)]
calls.append(("gather", cpu.alloc((1, 2), "f8"), x, cpu.put(np.array([10]))))
for call in calls:
    try:
        launch(*call)
    except (LookupError, TypeError, ValueError, IndexError) as error:
        print(f"{type(error).__name__}: {error}")

# %% [markdown]
# ## Your own kernel (5 min)
#
# A table can be changed. Suppose you have a better idea for relu: `x * (x > 0)`, with no branch. Every level above would run
# it. But is it right? So a new kernel is tried first: on random numbers and on special ones, with every index checked, its own
# and those of the functions it calls. It must agree with the present kernel, to 12 digits in float64 and to 5 in
# float32. So a kernel that adds in another order is allowed; then the losses may differ in their last bits.


# %%
#| export trial
"""A kernel of your own: tried on hard inputs first, then run by every level above."""

from contextlib import contextmanager


def drawn(draw, what, dtype):
    """An array for a trial: random numbers of a shape, "special" numbers in any order, a "mask", or an array as it is."""
    if isinstance(what, tuple):
        return draw.normal(size=what).astype(dtype)
    if isinstance(what, str):
        numbers = draw.permutation(np.tile(np.concatenate([SPECIAL, draw.normal(size=20)]), 20)).astype(dtype)
        return numbers > 0 if what == "mask" else numbers
    return what.astype(dtype) if what.dtype.kind == "f" else what


# %% [markdown]
# One trial: your function takes the kernel's place in the table, and is launched like it. Before that the result is filled with
# sevens. Fresh memory often holds zeros, and would hide a number that your kernel forgot.


# %%
#| export trial
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


# %% [markdown]
# All trials, in both dtypes. The present kernel goes first, its results are what is expected. The first difference, or the first
# error, ends them:


# %%
#| export trial
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


# %% [markdown]
# And where the two differ, you get a counter-example in words:


# %%
#| export trial
def counter_example(op, arrays, result, expected, places):
    """Where two results differ, in words. Numbers are more telling than NaN, so the first place without one is shown."""
    if any(array.shape != result.shape for array in arrays):
        at = next(places)
        given = ", ".join(str(array.shape) for array in arrays)
        return f"{op} of shapes {given} gives {result[at]} at {at}, and should give {expected[at]}"
    at = min(places, key=lambda at: any(np.isnan(array[at]) for array in arrays))
    return f"{op}({', '.join(str(array[at]) for array in arrays)}) gives {result[at]}, and should give {expected[at]}"


# %% [markdown]
# And the door for your kernel, `use`. It is a *context manager*: what stands before `yield` runs when the `with` block begins, what
# stands under `finally` when it ends, by an error too. So the table is then as it was before. While the kernel is tried,
# `boundscheck` makes numba look at every index.


# %%
#| export trial
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


# %% tags=["hide-input"]
checks.predict(
    "On which input does `x * (x > 0)` differ from relu, which is `0 if x <= 0 else x`?",
    choices=["on none", "on 0", "on -infinity", "on very large numbers"],
    answer="on -infinity",
    because="-infinity times 0 is not a number (NaN). Relu makes 0 of it. (A NaN stays a NaN in both.)",
)


# %%
def mine(x):
    return x * (x > 0)


try:
    with use("relu", "cpu", mine):
        print("never reached")
except ValueError as error:
    print(error)


# %% [markdown]
# A right one is taken:


# %%
def mine(x):
    return 0.0 if x <= 0.0 else x


with use("relu", "cpu", mine):
    print(KERNELS["relu", "cpu"] is mine, launch("relu", None, cpu.put(np.array([-2.0, 3.0]))).numpy())
print(KERNELS["relu", "cpu"] is mine)

# %% tags=["hide-input"]
checks.predict(
    "Level 5 will train a net with `model.fit`. Inside such a `with` block, whose relu does it run?",
    choices=["its own, which was compiled before", "yours, in the forward pass only", "yours"],
    answer="yours",
    because="Every level above calls `launch`, and launch looks into the table. The gradient is an op of its own, `relu_grad`: "
    "a new relu does not change it.",
)

# %% [markdown]
# ## The two tasks on this level (6 min)
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
# A step is now a list of launches. Each works on a whole batch and leaves its result in a buffer that was allocated once,
# before the first step. The gradients are still written by hand: `backward` is the forward pass read from the end.

# %%
#| export tasks
"""The two tasks as launches: every op on a whole batch, gradients by hand."""

from levels.hardware import DEVICES
from levels.hardware.tasks import Fit, check_inputs, check_task


def linear_forward(prediction, xw, x, w, b):
    """prediction[n, 1] = x[n, k] @ w[k, 1] + b[1, 1]"""
    launch("matmul", xw, x, w)
    launch("add", prediction, xw, b)


# %% [markdown]
# Now the step. Above the loop stand the buffers: one for each result, all allocated there (`place.alloc`). `n` and `g` are the
# batch's size and 1/n, as arrays of one number, because a launch takes buffers. In the loop stand the launches. Read it beside the same function of level 1: `# forward`, `# loss`, `# backward` and `# update` mark the same
# places.


# %%
#| export tasks
def linear_regression(x, y, weights, batches, learning_rate=0.0005):
    """Mean squared error, stochastic gradient descent; see `Fit` and `check_task` for the shapes."""
    check_task(x, y, weights, batches, learning_rate, units=[1])
    place, dtype, (batch, features), losses = DEVICES[-1], x.dtype, (len(batches[0]), x.shape[1]), []
    x_, y_, w, b = map(place.put, (x, y, *weights))  # model
    n, g = (place.put(np.full((1, 1), v, dtype)) for v in (batch, dtype.type(1) / dtype.type(batch)))
    rows, target, xw, prediction, error, squared, ge, de = (
        place.alloc((batch, width), dtype) for width in (features, 1, 1, 1, 1, 1, 1, 1)
    )
    dw, db, total, loss = (place.alloc(shape, dtype) for shape in ((features, 1), (1, 1), (1, 1), (1, 1)))
    for numbers in np.asarray(batches, np.int64):
        i = place.put(numbers)
        launch("gather", rows, x_, i)
        launch("gather", target, y_, i)
        linear_forward(prediction, xw, rows, w, b)  # forward
        launch("subtract", error, prediction, target)
        launch("multiply", squared, error, error)  # loss
        launch("reduce_sum", total, squared, axis=0, keepdims=True)
        launch("divide", loss, total, n)
        launch("multiply", ge, g, error)  # backward
        launch("add", de, ge, ge)
        launch("matmul", dw, rows, de, transpose_x=True)
        launch("reduce_sum", db, de, axis=0, keepdims=True)
        launch("sgd", w, dw, rate=float(learning_rate))  # update
        launch("sgd", b, db, rate=float(learning_rate))
        losses.append(loss.numpy()[0, 0])

    def predict(x):
        check_inputs(x, dtype, features)
        xw, prediction = (place.alloc((len(x), 1), dtype) for _ in "12")
        linear_forward(prediction, xw, place.put(x), w, b)
        return prediction.numpy()

    return Fit(np.array(losses), [w.numpy(), b.numpy()], predict)


# %% [markdown]
# Level 1 ran one program on one row after the other. This level makes fourteen launches a step, each on a whole batch.

# %% tags=["hide-input"]
checks.predict(
    "Are the losses of the two levels equal?",
    choices=["to about 12 digits", "to the last bit"],
    answer="to the last bit",
    because="Every sum takes the same numbers in the same order, whether the loop over rows stands outside or inside.",
)

# %%
from levels import hardware

fit = linear_regression(task.x, task.y, task.weights, task.batches, task.learning_rate)
below = hardware.tasks.linear_regression(task.x, task.y, task.weights, task.batches, task.learning_rate)
print("losses equal: ", bool((fit.losses == below.losses).all()))
print("weights equal:", all((p == q).all() for p, q in zip(fit.weights, below.weights)))
print("last loss    ", float(fit.losses[-1]).hex(), f"= {fit.losses[-1]:.6f}")

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
# The net of level 1 as launches. For the many results we let `launch` take new buffers (`None`). `outputs` begins with the batch,
# and each layer adds what it gives. `dnn_backward` goes through the layers from the last to the first: each has a product and a
# sum for its own gradients, and a product that hands the slope on to the layer before.


# %%
#| export tasks
def dnn_forward(x, weights):
    """The outputs of the two hidden layers and the probability: [n, 4], [n, 8], [n, 1]."""
    outputs = [x]
    for w, b, activation in zip(weights[::2], weights[1::2], ("relu", "relu", "sigmoid")):
        z = launch("add", None, launch("matmul", None, outputs[-1], w), b)
        outputs.append(launch(activation, None, z))
    return outputs[1:]


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
# And the training loop around them. `CLIP` keeps a probability away from 0 and 1, where its log would be infinite. With `None`
# for `out` there are no buffers to name, and the lines read like the formulas: `hit` is y·log c, `miss` is (1 − y)·log(1 − c). The sigmoid's and the loss's gradients stand in it, in the order of the record.

# %%
#| export tasks
CLIP = {"low": 1e-7, "high": 1.0 - 1e-7}


def dnn_classifier(x, y, weights, batches, learning_rate=0.01):
    """features-4-8-1, relu, relu, sigmoid; binary cross-entropy, stochastic gradient descent; see `Fit`, `check_task`."""
    check_task(x, y, weights, batches, learning_rate, units=[4, 8, 1])
    place, dtype, batch, losses = DEVICES[-1], x.dtype, len(batches[0]), []
    x_, y_, *weights = map(place.put, (x, y, *weights))  # model
    n, g, one = (place.put(np.full((1, 1), v, dtype)) for v in (batch, dtype.type(-1) / dtype.type(batch), 1))
    for numbers in np.asarray(batches, np.int64):
        i = place.put(numbers)
        rows, target = launch("gather", None, x_, i), launch("gather", None, y_, i)
        h1, h2, prediction = dnn_forward(rows, weights)  # forward
        c = launch("clip", None, prediction, **CLIP)
        other, q = launch("subtract", None, one, target), launch("subtract", None, one, c)
        hit = launch("multiply", None, target, launch("log", None, c))  # loss
        miss = launch("multiply", None, other, launch("log", None, q))
        total = launch("reduce_sum", None, launch("add", None, hit, miss), axis=0, keepdims=True)
        loss = launch("negative", None, launch("divide", None, total, n))
        d_hit = launch("divide", None, launch("multiply", None, g, target), c)  # backward
        d_miss = launch("divide", None, launch("multiply", None, g, other), q)
        dc = launch("subtract", None, d_hit, d_miss)
        dp = launch("clip_grad", None, dc, prediction, **CLIP)
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
# ## What this level cost (3 min)
#
# As on level 1 we count first. A thousand steps are launched, and each launch adds to its plan:

# %%
from course import compare

short = task._replace(batches=task.batches[:1000])
launches, nbytes = (total / 1000 for total in counted(lambda: linear_regression(short.x, short.y, *short[4:7])))
print(
    f"{compare.lines(linear_regression, linear_forward)} lines, {launches:.0f} launches and {nbytes:,.0f} bytes a step"
)

# %% tags=["hide-input"]
checks.predict(
    "On level 1 such a step took about 0.05 µs. How many times as long does it take here?",
    choices=["about 2", "about 30", "several hundred"],
    answer="several hundred",
    because="Fourteen launches of one or two microseconds each are about 20 µs, where level 1 makes one call for all 8,000 "
    "steps. The ten rows themselves take no longer than before.",
)

# %% [markdown]
# What does one launch cost, however small? We time an addition of two single numbers, and predict the step from it. (A row
# takes 16 operations, counted on level 1; a batch has ten.)

# %% tags=["nbval-ignore-output"]
one, out = cpu.put(np.ones((1, 1))), cpu.alloc((1, 1), "f8")
t_launch = min(timeit.repeat(lambda: launch("add", out, one, one), number=1000, repeat=5)) / 1000
predicted = launches * t_launch + cpu.roofline(16 * 10, nbytes)
print(f"a launch costs {t_launch * 1e6:.1f} µs")
compare.cost(linear_regression, task, launches, nbytes, predicted)

# %% [markdown]
# The prediction is too low: an addition is the cheapest launch. One with an axis or a rate costs about twice as
# much, each step puts its row numbers into a new buffer, and between the launches runs Python. But it says where the time goes.
# The arithmetic is lost in it, as the surprise at the top foretold. That is the price of calling ops by name, one after
# the other. Level 3 will first add to it, and then win it back.
#
# ### The level below | here
#
# Both levels beside each other: what they count and take, and the same parts of a step. A click on a line opens what it calls.

# %%
compare.measure(task, hardware.tasks.linear_regression, linear_regression, last=1000)

# %% [markdown]
# Read the band of `backward`. Level 1 walks over the rows and keeps its sums in registers. Level 2 names one kernel after the
# other, and each reads and writes whole buffers. The lines of a step are about as many, the bytes are not. The last loss is
# the same to the bit, except in float32. And the net:

# %%
compare.measure(rings, hardware.tasks.dnn_classifier, dnn_classifier, last=50, repeats=1)

# %% [markdown]
# ## More of the same kind
#
# The root, and two more updates, of several results. A mean is a sum, whichever kernel sums, and one division more.

# %%
#| export elementwise
scalar("sqrt")(lambda x: sqrt(x))


@scalar("momentum", results=2, updates=True, rate=0.1, momentum=0.9)
def momentum(w, v, dw, rate, momentum):
    v = momentum * v - rate * dw
    return w + v, v


@scalar("adam", results=3, updates=True, rate=0.1, beta1=0.9, beta2=0.99, epsilon=1e-7)
def adam(w, m, v, dw, c1, c2, rate, beta1, beta2, epsilon):
    m = m + (1.0 - beta1) * (dw - m)
    v = v + (1.0 - beta2) * (dw * dw - v)
    return w - rate * (m / c1) / (sqrt(v / c2) + epsilon), m, v


# %%
#| export reduce
def plan_mean(op, function, x, axis=None, keepdims=False):
    """The sum over these axes, divided by how many numbers it is made of."""
    total = plan_reduce("reduce_sum", KERNELS["reduce_sum", x.device.kind], x, axis, keepdims)
    loop = lowered_loop(x.device.kind, function, same_dtype(op, x), ((True,),), ("count",))
    divide = make(op, total.spec.shape, x.dtype, [total.spec], loop, numbers=["count"])
    count = math.prod(x.shape) / max(1, math.prod(total.spec.shape))

    def run(out, x):
        total.run(out, x)
        divide.run(out, out, count)

    return make(op, total.spec.shape, x.dtype, [x], lambda: run, [total.spec.shape, x.shape])


kernel("reduce_mean", planner=plan_mean)(lambda total, count: total / count)
TRIALS["reduce_mean"] = TRIALS["reduce_sum"]


# %% [markdown]
# ## Exercises (60 min, optional)
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
# (About 4 lines. Hint: `abs`, `max` and `min` work in kernels, and so does `math.sqrt`. What if both sides are 0?)

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
# ### 02-2 · The product of the backward pass
#
# `dnn_backward` asks for `matmul(x, dy, transpose_x=True)`. Write that kernel, with no transposed copy: every row of the batch adds
# one small matrix to `dw`.
#
# ```
#  x[i, :]          dy[i, :]           added to dw
#  ┌ 1 ┐                               ┌ 10  20  30 ┐
#  └ 2 ┘     ·    [ 10  20  30 ]   =   └ 20  40  60 ┘
# ```
#
# (About 5 lines. The sums start at 0.0 and i runs upwards, so that the bits are those of record.)

# %%
from course.practice import exercises

exercises.begin("02-2")


def gradient_product(dw, x, dy):
    """dw[k, j] = Σᵢ x[i, k]·dy[i, j] for dw[inputs, units], x[rows, inputs], dy[rows, units]."""
    ...


exercises.check("02-2", gradient_product)

# %% [markdown]
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
# ### 02-4 · Four sums side by side
#
# One sum waits for its own last addition. So keep four, and add them at the end:
#
# ```
# x[i, :]    0  1  2  3    4  5  6  7    8  9
#            a  b  c  d    a  b  c  d    the rest
#
# out[i]  =  (a + b) + (c + d), then + x[i, 8], then + x[i, 9]
# ```
#
# A row need not be a multiple of four long. A kernel that reads past its end reads somebody else's memory, and says nothing.
# (About 11 lines.)

# %%
from course.practice import exercises

exercises.begin("02-4")


def sum_by_fours(out, x):
    """out[i] = Σₖ x[i, k], in the order of the picture, for out[rows] and x[rows, n]."""
    ...


exercises.check("02-4", sum_by_fours)

# %% [markdown]
# ### 02-5 · Break it: a stale cache
#
# Here is a cache of compiled programs that looks reasonable. A program is kept under the instructions of its function:

# %%
from course.practice import exercises

exercises.begin("02-5")

KEPT = {}


def run_kept(function, x):
    """Run the program kept for such instructions; where there is none, compile and keep it."""
    key = function.__code__.co_code
    if key not in KEPT:
        KEPT[key] = compile_cpu(function, np.dtype("f8"))
    return KEPT[key](x)


def triple(x):
    return 3.5 * x


print("3.5 * 2 =", run_kept(triple, 2.0))


def triple(x):  # noqa: F811
    return 3.0 * x


print("3.0 * 2 =", run_kept(triple, 2.0))

# %% [markdown]
# The second answer is the first function's: a stale program, and no error. Print `triple.__code__.co_code` before and after the
# change, and `co_consts` beside it, to see the cause. Then write a key that nothing escapes: instructions, constants (2 is equal to 2.0,
# their programs are not), names, defaults, and the numbers and functions that it reads, with all that *those* read. (About 5 lines. Hint:
# `function.__globals__[name]` is what a name of `co_names` means, if it is there; `repr` of 2 and of 2.0 differ.)

# %%
from course.practice import exercises

exercises.begin("02-5")


def cache_key(function):
    """A value that differs whenever the function's program could, and is equal when it is defined again unchanged."""
    return ...


exercises.check("02-5", cache_key)

# %% [markdown]
# A function that calls itself would need one thing more, which `described` has. Which?
#
# ### Without a check
#
# - Print the loop that `add` gets for shapes `(3, 1)` and `(1, 4)`, as under *One scalar function, one loop*. Which index does each
#   input have?
# - `jki` loads the most lines in the picture. Write it, time it on two matrices of 512 x 512, and find its rung on the ladder. Is
#   its result equal to the bit? (In float64 it is. Why?)
# - With `reduction`, add an op `"reduce_product"` in three lines. What does it start at? (The product of 1 to 5 is 120.)
#
# ## Build

# %%
build.level("02_kernels", linear_regression, dnn_classifier)

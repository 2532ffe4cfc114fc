# %% [markdown]
# # 2 · Kernels
#
# **In this notebook you fill a table of small compiled programs, and train a model by calling them by name.**
#
# A framework never says "add these numbers with this loop". It says `"add"`, and looks up who can do that on this device.
# About 35 minutes.

# %%
from course import build, figures, tasks

build.watch("02_kernels")
figures.you_are_here(2)

# %% [markdown]
# ## A surprise to begin with (2 min)
#
# We add an array to itself: once with 1 number in it, once with 1,000. **Predict: how many times longer do the thousand
# take?**

# %% tags=["nbval-ignore-output"]
import timeit

import numpy as np

one, thousand = (min(timeit.repeat("v + v", globals={"v": np.ones(n)}, number=2000)) / 2000 for n in (1, 1000))
print(f"1 number {one * 1e9:.0f} ns, 1,000 numbers {thousand * 1e9:.0f} ns: {thousand / one:.1f} times the time")

# %% [markdown]
# A thousand times the work, and nowhere near a thousand times the time. Most of a small call is not arithmetic. Python
# finds the function, checks the arrays, allocates the result, and only then a loop runs. This level is about both: the loop,
# and what it costs to call one.
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
add_numba(out, x, x)
print("right:", bool((out == 2 * x).all()))

# %% tags=["nbval-ignore-output"]
slow, fast = (
    min(timeit.repeat(f"{name}(out, x, x)", globals=globals(), number=1)) for name in ("add_python", "add_numba")
)
print(f"Python {slow * 1e6:.0f} µs, numba {fast * 1e6:.0f} µs: {slow / fast:.0f} times")

# %% [markdown]
# ## Compiled once (3 min)
#
# Compiling took longer than running. So a framework keeps what it compiled, in a folder. The danger is a **stale** kernel: you
# change a function, and the old program runs. numba's own cache looks at the file's time stamp, and misses a change in
# another file. Ours keeps each program under a hash of everything it was made from: the function's code, its constants, and
# the same of every function it calls. A change anywhere gives another hash. What cannot be described, such as a setting in
# some module, is not kept on disk at all. And within a running notebook, the next launch notices when a function that its
# kernel calls was rebound, and everything between the two is compiled again. (You may skip the next three cells. Their idea
# is this paragraph.)

# %%
#| export cache
"""Compiled programs are kept on disk under a hash of everything they were made from."""

import dis
import hashlib
import math
import os
import types
from pathlib import Path

import numba
import numpy as np
from numba import njit
from numba.core.caching import _CacheLocator

OVERLOADS = {}  # a Python function -> what stands for it inside kernels


def globals_read(code):
    """The names of the globals that a piece of code, or a function inside it, reads."""
    inner = [c for c in code.co_consts if isinstance(c, types.CodeType)]
    own = {i.argval for i in dis.get_instructions(code) if i.opname == "LOAD_GLOBAL"}
    return own.union(*map(globals_read, inner))


def described(value, seen=()):
    """A text that differs whenever compiled code could. Raises TypeError for what it cannot describe."""
    if value in seen:
        return "again"
    if isinstance(value, numba.core.dispatcher.Dispatcher):
        return described(value.py_func, seen)
    if isinstance(value, types.FunctionType):
        if value in OVERLOADS:
            return described(OVERLOADS[value], (*seen, value))
        inside, code = (*seen, value), value.__code__
        names = sorted(globals_read(code))
        scope = [(n, value.__globals__[n]) for n in names if n in value.__globals__]
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        where = value.__globals__["__name__"]  # numba imports that module again when it loads the program
        return f"{where}{described(code, inside)}{described([scope, cells], inside)}{value.__defaults__}"
    if isinstance(value, types.CodeType):
        return f"{value.co_code}{value.co_names}{value.co_varnames}{described(list(value.co_consts), seen)}"
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__}({', '.join(described(v, seen) for v in value)})"
    if isinstance(value, dict):
        return f"dict({described(list(value.items()), seen)})"
    if isinstance(
        value,
        (bool, int, float, complex, str, bytes, np.generic, np.dtype, type, types.BuiltinFunctionType, type(None)),
    ):
        return f"{type(value).__name__} {value!r}"
    if isinstance(value, numba.extending._Intrinsic):  # a function that writes instructions itself
        return described(value._defn, seen)
    if isinstance(value, types.ModuleType) and value.__name__.split(".")[0] in ("math", "numpy", "numba", "llvmlite"):
        return value.__name__
    raise TypeError(f"a kernel depends on {value!r}, which cannot be hashed")


# %% [markdown]
# What a kernel was compiled from, and whether it still is what it was:


# %%
#| export cache
def watched(function, seen=()):
    """((scope, name, value), …): the globals that a kernel was compiled from, those of what it calls first."""
    found = ()
    for name in sorted(globals_read(function.__code__) & function.__globals__.keys()):
        value = function.__globals__[name]
        inner = getattr(value, "py_func", None)
        if inner is not None and inner not in seen:
            found += watched(inner, (*seen, function))
        found += ((function.__globals__, name, value),)
    return found


def rebound(names):
    """Whether any of these watched globals has another value now: then what was compiled from them is stale."""
    return any(scope.get(name) is not value for scope, name, value in names)


FRESH = {}  # a compiled function -> what described it when it was last known to be fresh


def refresh(function):
    """Compile again what this function calls, where something beneath was changed since it was compiled."""
    for _, _, value in watched(function):
        if isinstance(value, numba.core.dispatcher.Dispatcher):
            try:
                text = described(value.py_func)
            except TypeError:
                text = object()  # equal to nothing: not known, so not fresh
            if value.signatures and FRESH.get(value) != text:
                value.recompile()
            FRESH[value] = text


# %% [markdown]
# And numba is told to use the hash:


# %%
#| export cache
class HashLocator(_CacheLocator):
    """Tells numba where a function's compiled code lies: in a file named by the hash."""

    def __init__(self, function, file):
        self.hash = hashlib.sha256(f"{numba.__version__}{np.__version__}{described(function)}".encode()).hexdigest()

    def get_cache_path(self):
        return numba.config.CACHE_DIR or os.path.join(Path.home(), ".cache", "levels")

    def get_source_stamp(self):
        return self.hash

    def get_disambiguator(self):
        return self.hash[:24]

    @classmethod
    def from_function(cls, function, file):
        return cls(function, file)


numba.config.CACHE_LOCATOR_CLASSES = f"{__name__}.HashLocator"


def compile_cpu(function):
    """Compile a function of numbers and arrays for the CPU; division by zero gives infinity, as in NumPy."""
    refresh(function)
    try:
        described(function)
    except TypeError:
        return njit(error_model="numpy", nogil=True)(function)
    return njit(error_model="numpy", cache=True, nogil=True)(function)


# %% [markdown]
# ## One table (5 min)
#
# An op is a name. A kernel is one kind of device's program for it. One table joins the two, `KERNELS`. A GPU would be one
# more column of this table.

# %%
#| export registry
"""An op is a name; a kernel is one kind of device's program for it; one table joins them."""

import difflib
import operator

from levels.hardware import Buffer, pool


class Kernels(dict):
    """(op, kind of device) -> compiled program. Prints as a table of ops by kinds."""

    def __repr__(self):
        kinds = sorted({kind for _, kind in self})
        rows = [
            ("op", *kinds),
            *((op, *("x" * ((op, k) in self) for k in kinds)) for op in sorted({op for op, _ in self})),
        ]
        return "\n".join("  ".join(text.ljust(14) for text in row).rstrip() for row in rows)


KERNELS = Kernels()
COMPILERS = {"cpu": compile_cpu}  # kind of device -> how a function becomes its program
PLANNERS = {}  # op -> planner(kernel, *inputs, **attrs) -> Plan
PLANS = {}  # (op, specs of the inputs, attributes) -> the Plan made for it
TRIALS = {}  # op -> function(draw, dtype) -> [(arrays, attributes), …]: what a new kernel of the op is tried on


# %% [markdown]
# `kernel` is a decorator: it compiles a plain function and enters it. It gives the plain function back, so that we can
# still read and test it as Python.


# %%
#| export registry
def kernel(op, kind="cpu", planner=None):
    """Decorate a function: compile it for that kind of device and enter it as the kernel of `op`."""

    def enter(function):
        KERNELS[op, kind] = COMPILERS[kind](function)
        if planner is not None:
            PLANNERS[op] = planner
        PLANS.clear()
        return function

    return enter


# %% [markdown]
# ## One way in (6 min)
#
# Before a kernel may run, somebody has to know the shape of its result, and that the dtypes agree. That is a **plan**. It
# is the same for every call with the same shapes, so it is made once and kept.


# %%
#| export registry
class Plan:
    """What a call with these shapes and dtypes will do: the Spec of its result, the program to run, the bytes it moves."""

    __slots__ = ("spec", "nbytes", "run", "numbers", "launches", "watched")

    def __init__(self, spec, nbytes, run, numbers=()):
        self.spec, self.nbytes, self.launches = spec, nbytes, 0
        self.run = run  # run(out, *inputs, *numbers), on NumPy arrays
        self.numbers = tuple(numbers)  # the names of the float attributes, in the order in which `run` takes them


def make(shape, dtype, inputs, run, numbers=()):
    """A Plan, its traffic counted: every input is read once and the result written once."""
    spec = inputs[0].device.spec(shape, dtype)
    return Plan(spec, spec.nbytes + sum(buffer.spec.nbytes for buffer in inputs), run, numbers)


def same_dtype(op, *inputs):
    """The dtype of all inputs. Raises TypeError where two differ: nothing is cast in silence."""
    dtypes = {str(buffer.dtype) for buffer in inputs}
    if len(dtypes) > 1:
        raise TypeError(f"{op}: dtypes {' and '.join(sorted(dtypes))} do not mix; cast one of them")
    return inputs[0].dtype


def plan(op, inputs, attrs, stale=False):
    """Make the Plan for this op on these buffers. What is wrong with an op, a device or an input is said here.

    A kernel is `stale` when a function or a global that it uses was rebound: then it is compiled again.
    """
    if op not in PLANNERS:
        near = difflib.get_close_matches(op, PLANNERS, n=1)
        raise LookupError(
            f"no op is called {op!r}; " + (f"did you mean {near[0]!r}?" if near else f"there are {[*PLANNERS]}")
        )
    for buffer in inputs:
        if buffer.data is None:
            raise TypeError(f"{op}: works on live buffers, got {buffer!r}")
    devices = sorted({buffer.device.name for buffer in inputs})
    if len(devices) > 1:
        raise ValueError(f"{op}: inputs lie on {' and '.join(devices)}; copy them to one device")
    kind = inputs[0].device.kind
    if (op, kind) not in KERNELS:
        raise LookupError(f"{op} has no kernel for {kind!r}; it has one for {[k for o, k in KERNELS if o == op]}")
    function = KERNELS[op, kind].py_func
    if stale:
        KERNELS[op, kind] = COMPILERS[kind](function)
    refresh(function)
    made = PLANNERS[op](op, KERNELS[op, kind], *inputs, **attrs)
    made.watched = watched(function)
    return made


# %% [markdown]
# And `launch` is the one way in. It finds the plan, checks the buffer that shall hold the result (or takes a new one),
# counts, and runs. The attributes that are floats, such as a rate, may change from call to call. They are numbers for the
# kernel and not part of the plan.

# %%
#| export registry
spec_of, data_of = operator.attrgetter("spec"), operator.attrgetter("data")  # quicker than a loop of ours
UPDATES = set()  # ops that read their result's old numbers, such as "sgd"


def launch(op, out, *inputs, **attrs):
    """Run the kernel of `op` and leave the result in the buffer `out` (None: a new one). Returns the buffer."""
    if op in UPDATES:
        inputs = (out, *inputs)
    try:
        key = (op, *map(spec_of, inputs))
    except AttributeError:
        raise TypeError(f"{op}: works on live buffers, got {inputs!r}") from None
    if attrs:
        key += tuple((name, float if type(v) is float else v) for name, v in attrs.items())
    found = PLANS.get(key)
    if found is None or (found.watched and rebound(found.watched)):
        found = PLANS[key] = plan(op, inputs, attrs, stale=found is not None)
    if out is None:
        out = found.spec.device.new(found.spec)
    elif op not in UPDATES and (getattr(out, "spec", None) is not found.spec or out in inputs):
        refuse_result(op, out, found.spec)
    found.launches += 1
    if found.numbers:
        found.run(out.data, *map(data_of, inputs), *map(attrs.get, found.numbers))
    else:
        found.run(out.data, *map(data_of, inputs))
    return out


def counted(run):
    """How many launches `run()` makes, and how many bytes they read and write."""
    for found in PLANS.values():
        found.launches = 0
    run()
    return sum(p.launches for p in PLANS.values()), sum(p.launches * p.nbytes for p in PLANS.values())


def refuse_result(op, out, spec):
    """Raise ValueError: the buffer `out` cannot take the result. (A freed buffer has a Spec of its own.)"""
    if getattr(out, "spec", None) is not spec:
        raise ValueError(f"{op}: the result needs a live buffer {spec}, got {out!r}")
    raise ValueError(f"{op}: the result would overwrite an input; give it a buffer of its own")


# %% [markdown]
# ## One scalar function, one loop (6 min)
#
# Addition of arrays is addition of numbers, in a loop. So we write only the addition of *numbers*, and let Python write
# the loop. When shapes differ, the smaller array is repeated (**broadcasting**): a bias of shape `(1, 4)` is added to
# every row of `(10, 4)`. In the loop that means one index less. So for each axis we note its *owners*: the inputs that have
# it, and are not repeated along it.

# %%
#| export elementwise
"""Elementwise ops: one scalar function each, and the loop that Python writes around it."""

import inspect
from itertools import groupby


def broadcast(op, shapes):
    """The common shape: sizes are aligned at the right, and a size of 1 is repeated (NumPy's rule)."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise ValueError(f"{op}: shapes {' and '.join(map(str, shapes))} do not broadcast") from None


def merged_axes(shape, shapes):
    """[(size, (does input 0 have this axis, …)), …]: neighbours that all inputs treat alike become one axis."""
    padded = [(1,) * (len(shape) - len(s)) + tuple(s) for s in shapes]
    axes = [(size, tuple(p[i] == size for p in padded)) for i, size in enumerate(shape) if size != 1]
    merged = [(math.prod(size for size, _ in group), owners) for owners, group in groupby(axes, lambda axis: axis[1])]
    return merged or [(1, (True,) * len(shapes))]


# %% [markdown]
# The loop itself is text. An input is indexed by the letters of the axes it owns. With one letter it is seen as one long row
# (`ravel`), which compilers like best.


# %%
#| export elementwise
def loop_source(name, owners, numbers=()):
    """The text of a nest of loops that calls the scalar function `name` once for each element."""
    letters = "ijklmn"[: len(owners)]
    arrays = [f"x{k}" for k in range(len(owners[0]))]
    places = [", ".join(c for c, has in zip(letters, owners) if has[k]) or "0" for k in range(len(arrays))]
    call = ", ".join([*(f"{a}[{p}]" for a, p in zip(arrays, places)), *(f"{n}={n}" for n in numbers)])
    lines = [f"def loop({', '.join(['out', *arrays, *numbers])}):"]
    flat = [a for a, p in zip(["out", *arrays], [letters, *places]) if len(p) == 1]  # seen as one long row
    lines += [f"    {a} = {a}.ravel()" for a in flat]
    for depth, letter in enumerate(letters):
        lines.append(" " * 4 * (depth + 1) + f"for {letter} in range(out.shape[{depth}]):")
    lines.append(" " * 4 * (len(letters) + 1) + f"out[{', '.join(letters)}] = {name}({call})")
    return "\n".join(lines)


# %% [markdown]
# A sum of a matrix and a row, and a sum of two matrices (whose two axes became one):

# %%
for shapes in ([(10, 4), (1, 4)], [(10, 4), (10, 4)]):
    print(loop_source("add", [owners for _, owners in merged_axes((10, 4), shapes)]), "\n")

# %% [markdown]
# One trap: `1.0 / x` is a float64 in Python's eyes, whatever x is. So before we compile a scalar function for float32
# arrays, we turn the constants in it into float32. Then the planner puts it all together: the common shape, the loop, and
# how each array has to be seen for it.


# %%
#| export elementwise
def typed(function, dtype):
    """The function with every float constant in it, and in what it closes over, turned into that dtype."""

    def cast(value):
        if isinstance(value, tuple):
            return tuple(map(cast, value))
        return dtype.type(value) if isinstance(value, float) else value

    cells = tuple(types.CellType(cast(cell.cell_contents)) for cell in function.__closure__ or ())
    code = function.__code__.replace(co_consts=tuple(map(cast, function.__code__.co_consts)))
    return types.FunctionType(code, function.__globals__, function.__name__, function.__defaults__, cells)


LOOPS = {}  # (scalar function, dtype, owners of the axes) -> compiled loop


def compiled_loop(function, dtype, owners, numbers):
    """The loop around a scalar function, for arrays of that dtype, compiled."""
    if (function, dtype, owners) not in LOOPS:
        scope = {"__name__": "__main__", "scalar": COMPILERS["cpu"](typed(function.py_func, dtype))}
        exec(loop_source("scalar", owners, numbers), scope)
        LOOPS[function, dtype, owners] = COMPILERS["cpu"](scope["loop"])
    return LOOPS[function, dtype, owners]


# %% [markdown]
# The planner asks three questions: do the numbers of arrays fit the function, what is the common shape, which loop is it?


# %%
#| export elementwise
def plan_elementwise(op, function, *inputs, shape=(), **numbers):
    """out[…] = function(x[…], y[…], …), broadcast to the common shape (or to a larger `shape`)."""
    dtype, shapes = same_dtype(op, *inputs), [buffer.shape for buffer in inputs]
    takes = list(inspect.signature(function.py_func).parameters)
    if len(takes) != len(inputs) + len(numbers) or not set(numbers) <= set(takes):
        raise TypeError(f"{op}: takes {', '.join(takes)}; got {len(inputs)} arrays and the numbers {list(numbers)}")
    shape, numbers = broadcast(op, [shape, *shapes]), takes[len(inputs) :]
    sizes, owners = zip(*merged_axes(shape, shapes))
    loop = compiled_loop(function, dtype, owners, numbers)
    if len(sizes) <= 2 and all(len(s) <= 2 for s in (shape, *shapes)) and not numbers:
        return make(shape, dtype, inputs, loop)
    views = [tuple(s for s, has in zip(sizes, owners) if has[k]) or (1,) for k in range(len(inputs))]

    def run(out, *arrays):
        given = [dtype.type(n) for n in arrays[len(views) :]]
        loop(out.reshape(sizes), *(array.reshape(view) for array, view in zip(arrays, views)), *given)

    return make(shape, dtype, inputs, run, numbers)


# %% [markdown]
# Now an op costs three lines. `sgd` is the update of gradient descent: it reads the weight that it overwrites.


# %%
#| export elementwise
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1e-30, -1e30, math.inf, -math.inf, math.nan)


def scalar(op, updates=False, **numbers):
    """Decorate a scalar function: it becomes the op of that name on arrays. With `updates` its first input is the result.

    `numbers` are the attributes that a new kernel is tried with, such as rate=0.1.
    """

    def enter(function):
        def trials(draw, dtype):
            arrays = range(len(inspect.signature(function).parameters) - len(numbers))
            numbers_tried = np.tile(np.concatenate([SPECIAL, draw.normal(size=20)]), 20).astype(dtype)
            return [([draw.permutation(numbers_tried) for _ in arrays], numbers)]

        TRIALS[op] = trials
        if updates:
            UPDATES.add(op)
        return kernel(op, planner=plan_elementwise)(function)

    return enter


@scalar("add")
def add(x, y):
    return x + y


@scalar("subtract")
def subtract(x, y):
    return x - y


@scalar("multiply")
def multiply(x, y):
    return x * y


@scalar("divide")
def divide(x, y):
    return x / y


@scalar("negative")
def negative(x):
    return -x


@scalar("broadcast_to")
def identity(x):
    return x


@scalar("sgd", updates=True, rate=0.1)
def sgd(w, dw, rate):
    return w - rate * dw


# %% [markdown]
# The net needs a few more. Its `exp` and `log` are those of level 1: their source goes to numba as it stands. numba only
# has to be told what the five small tools mean in its world. (Where two lambdas stand, one in the other: numba calls the
# outer one with types, and compiles what it returns.)

# %%
#| export elementwise
from numba import types as numba_types
from numba.extending import overload

from levels.hardware import EXP, LOG, exp, exponent, floor, log, pow2, rint, select


def dtype_of(x):
    return np.dtype("f4") if x == numba_types.float32 else np.dtype("f8")


def stands_for(function):
    """Decorate what numba shall compile where a kernel calls this function."""

    def register(implementation):
        OVERLOADS[function] = implementation
        return overload(function)(implementation)

    return register


def overload_elementary(function, sources):
    """Inside kernels `function` is the source of its argument's dtype, compiled."""

    @stands_for(function)
    def _(x):
        compiled = COMPILERS["cpu"](typed(sources[dtype_of(x)], dtype_of(x)))
        return lambda x: compiled(x)


overload_elementary(exp, EXP)
overload_elementary(log, LOG)
stands_for(rint)(lambda x: lambda x: np.rint(x))
stands_for(floor)(lambda x: lambda x: np.floor(x))
stands_for(select)(lambda condition, x, y: lambda condition, x, y: x if condition else y)


@stands_for(pow2)
def pow2_overload(n):
    if dtype_of(n) == np.float32:
        return lambda n: np.int32((np.int32(n) + 127) << 23).view(np.float32)
    return lambda n: np.int64((np.int64(n) + 1023) << 52).view(np.float64)


@stands_for(exponent)
def exponent_overload(x):
    if dtype_of(x) == np.float32:
        return lambda x: np.float32((np.float32(x).view(np.int32) - 0x3F3504F3) >> 23)
    return lambda x: np.float64((np.float64(x).view(np.int64) - 0x3FE6A09E667F3BCD) >> 52)


# %% [markdown]
# A gradient is an op as well: `relu_grad` lets `dy` pass where the output was positive, `clip_grad` where nothing was
# clipped.

# %%
#| export elementwise
scalar("exp")(lambda x: exp(x))
scalar("log")(lambda x: log(x))


@scalar("relu")
def relu(x):
    return x if x > 0.0 else 0.0


@scalar("relu_grad")
def relu_grad(dy, y):
    return dy if y > 0.0 else 0.0


@scalar("sigmoid")
def sigmoid(x):
    return 1.0 / (1.0 + exp(0.0 - x))


@scalar("sigmoid_grad")
def sigmoid_grad(dy, y):
    return dy * y * (1.0 - y)


@scalar("clip", low=-0.5, high=0.5)
def clip(x, low, high):
    return low if x < low else high if x > high else x


@scalar("clip_grad", low=-0.5, high=0.5)
def clip_grad(dy, x, low, high):
    return dy if low < x < high else 0.0


# %%
cpu = pool()["cpu:0"]
out = cpu.alloc((2, 3), "f8")
launch("add", out, cpu.put(np.ones((2, 3))), cpu.put(np.arange(3.0)))
out.numpy()

# %% [markdown]
# ## Sums, products, rows (5 min)
#
# Three kernels are not elementwise. A sum over axes: seen as `[before, summed, after]` it is always the same three loops.
# It starts at 0.0 and runs upwards, as the record says.

# %%
#| export reduce
"""Reductions and rows: many numbers become one, and rows are picked by number."""


def plan_reduce(op, function, x, axis=None, keepdims=False):
    """Reduce over one axis, or over all of them (axis=None)."""
    if axis is not None and not -len(x.shape) <= axis < len(x.shape):
        raise ValueError(f"{op}: axis {axis} is not an axis of shape {x.shape}")
    first, last = (0, len(x.shape)) if axis is None else (axis % len(x.shape), axis % len(x.shape) + 1)
    before, summed, after = (math.prod(s) for s in (x.shape[:first], x.shape[first:last], x.shape[last:]))
    shape = x.shape[:first] + (1,) * (last - first) * keepdims + x.shape[last:]

    def run(out, x):
        function(out.reshape(before, after), x.reshape(before, summed, after))

    return make(shape, x.dtype, [x], run)


@kernel("reduce_sum", planner=plan_reduce)
def reduce_sum(out, x):
    """out[i, j] = Σₖ x[i, k, j], starting at 0.0, k upwards."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = 0.0
        for k in range(x.shape[1]):
            for j in range(out.shape[1]):
                out[i, j] += x[i, k, j]


TRIALS["reduce_sum"] = lambda draw, dtype: [
    ([draw.normal(size=shape).astype(dtype)], {"axis": axis, "keepdims": keepdims})
    for shape in ((3, 4, 5), (1, 1, 1), (0, 2, 3))
    for axis in (None, 0, 1, -1)
    for keepdims in (False, True)
]

# %% [markdown]
# A batch is rows of the data picked by number. A wrong number must not read somebody else's memory.


# %%
#| export reduce
def plan_gather(op, function, x, rows):
    """out[i, …] = x[rows[i], …]"""
    if rows.dtype != np.int64 or len(x.shape) < 1:
        raise TypeError(f"{op}: rows are {rows.dtype}; expected int64 row numbers of an array with rows")
    width = math.prod(x.shape[1:])

    def run(out, x, rows):
        function(out.reshape(-1, width), x.reshape(-1, width), rows.ravel())

    spec = x.device.spec(rows.shape + x.shape[1:], x.dtype)
    return Plan(spec, 2 * spec.nbytes + rows.spec.nbytes, run)


@kernel("gather", planner=plan_gather)
def gather(out, x, rows):
    """out[i, j] = x[rows[i], j]"""
    for i in range(rows.size):
        if not 0 <= rows[i] < x.shape[0]:
            raise IndexError("gather: a row number is out of range")
        for j in range(x.shape[1]):
            out[i, j] = x[rows[i], j]


TRIALS["gather"] = lambda draw, dtype: [
    ([draw.normal(size=shape).astype(dtype), draw.integers(0, shape[0], count)], {})
    for shape in ((5,), (5, 3), (1, 1), (2, 3, 4))
    for count in (0, 1, 7)
]

# %% [markdown]
# And the workhorse of deep learning, the matrix product. For each result the sum runs over `k` upwards, whatever the
# order of the three loops. Why they stand in this order is one of the exercises.

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

    def run(out, x, w):
        function(out, x.T if transpose_x else x, w.T if transpose_w else w)

    def run_tiles(out, x, w):
        matmul_tiles(out, x, w, transpose_x, transpose_w)

    large = min(m, k, n) >= 16 and m * k * n >= 2**15 and function.py_func is matmul_ikj
    return make((m, n), dtype, [x, w], run_tiles if large else run)


@kernel("matmul", planner=plan_matmul)
def matmul_ikj(out, x, w):
    """out[i, j] = Σₖ x[i, k]·w[k, j], starting at 0.0, k upwards."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = 0.0
        for k in range(x.shape[1]):
            for j in range(out.shape[1]):
                out[i, j] += x[i, k] * w[k, j]


TRIALS["matmul"] = lambda draw, dtype: [
    (
        [
            draw.normal(size=(m, k)[:: -1 if flip_x else 1]).astype(dtype),
            draw.normal(size=(k, n)[:: -1 if flip_w else 1]).astype(dtype),
        ],
        {"transpose_x": flip_x, "transpose_w": flip_w},
    )
    for m, k, n in ((1, 1, 1), (3, 5, 4), (0, 2, 3), (2, 0, 3), (17, 33, 9))
    for flip_x, flip_w in ((False, False), (True, False), (False, True))
]

# %%
KERNELS

# %% [markdown]
# ## Your own kernel (5 min)
#
# A table can be changed. Suppose you have a better idea for relu: `x * (x > 0)`, with no branch. Every level above would run
# it. But is it right? So a new kernel is tried first: on random numbers and on special ones, at the ends of arrays with
# guards around them, with every index checked. It must give what the kernel gives that stands there.


# %%
#| export trial
"""A kernel of your own: tried on hard inputs first, then run by every level above."""

from contextlib import contextmanager


def guarded(device, shape, dtype):
    """A buffer with 64 numbers before and behind it that a kernel must leave alone, and all of them as one array."""
    count = math.prod(shape)
    whole = np.full(count + 128, 7, dtype)
    device.used += count * dtype.itemsize
    return Buffer(device.spec(shape, dtype), whole[64 : 64 + count].reshape(shape)), whole


def outcome(op, kind, program, arrays, attrs):
    """What this program, as the kernel of `op`, makes of these arrays."""
    KERNELS[op, kind] = program
    PLANS.clear()
    device = pool()[f"{kind}:0"]
    inputs = [device.put(array) for array in arrays]
    spec = plan(op, inputs, attrs).spec
    out, whole = guarded(device, spec.shape, spec.dtype)
    if op in UPDATES:
        out.data[...] = arrays[0]
    launch(op, out, *inputs[op in UPDATES :], **attrs)
    if (whole[:64] != 7).any() or (whole[len(whole) - 64 :] != 7).any():
        raise IndexError("it writes beside its result")
    return out.numpy()


# %% [markdown]
# Where the two differ, the reader gets a counter-example. The table is as it was when the block ends, however it ends.


# %%
#| export trial
def try_kernel(op, kind, function, reference):
    """Raise ValueError, with a counter-example, unless this function does on all trials what the reference does."""
    checked = njit(error_model="numpy", boundscheck=True)(function)
    for dtype in map(np.dtype, ("f4", "f8")):
        for arrays, attrs in TRIALS[op](np.random.default_rng(0), dtype):
            expected = outcome(op, kind, reference, arrays, attrs)
            try:
                result = outcome(op, kind, checked, arrays, attrs)
            except Exception as error:
                shapes = ", ".join(str(array.shape) for array in arrays)
                raise ValueError(f"{op}: refused, on {dtype} of shapes {shapes} it fails: {error}") from None
            tolerance = 1e-5 if dtype == np.float32 else 1e-12
            wrong = np.argwhere(~np.isclose(result, expected, tolerance, tolerance, equal_nan=True))
            if len(wrong):
                raise ValueError(f"{op}: refused, {counter_example(op, arrays, result, expected, map(tuple, wrong))}")


def counter_example(op, arrays, result, expected, places):
    """Where two results differ, in words. Numbers are more telling than NaN, so the first place without one is shown."""
    if any(array.shape != result.shape for array in arrays):
        at = next(places)
        given = ", ".join(str(array.shape) for array in arrays)
        return f"{op} of shapes {given} gives {result[at]} at {at}, and should give {expected[at]}"
    at = min(places, key=lambda at: any(np.isnan(array[at]) for array in arrays))
    return f"{op}({', '.join(str(array[at]) for array in arrays)}) gives {result[at]}, and should give {expected[at]}"


# %% [markdown]
# And the door for the reader's kernel:


# %%
#| export trial
@contextmanager
def use(op, kind, function):
    """Inside this `with` block, `function` is the kernel of `op` for that kind of device, on every level above.

    It is tried first. A function that is wrong raises ValueError with a counter-example, and nothing is changed.
    """
    if (op, kind) not in KERNELS:
        raise LookupError(f"{op!r} has no kernel for {kind!r} that could be replaced")
    before, function = KERNELS[op, kind], getattr(function, "py_func", function)
    try:
        try_kernel(op, kind, function, before)
        KERNELS[op, kind] = COMPILERS[kind](function)
        PLANS.clear()
        yield
    finally:
        KERNELS[op, kind] = before
        PLANS.clear()


# %% tags=["hide-input"]
from course import checks

checks.predict(
    "On which input does `x * (x > 0)` differ from relu, which is `x if x > 0 else 0`?",
    choices=["on none", "on 0", "on -infinity", "on very large numbers"],
    answer="on -infinity",
    because="-infinity times 0 is not a number (NaN). Relu makes 0 of it. (They differ on NaN too.)",
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
    return 0.0 if not x > 0.0 else x


with use("relu", "cpu", mine):
    print(KERNELS["relu", "cpu"].py_func is mine, launch("relu", None, cpu.put(np.array([-2.0, 3.0]))).numpy())
print(KERNELS["relu", "cpu"].py_func is mine)

# %% [markdown]
# ## A matrix product at the machine's peak (15 min)
#
# For the small matrices of our two tasks three loops are enough. For large ones they are not. How far are they from the peak
# that level 1 measured? We climb in six steps. Each must give what the step before gave, and each is timed on the same two
# matrices.


# %%
def matmul_python(out, x, w):
    """The definition."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            total = 0.0
            for k in range(x.shape[1]):
                total += x[i, k] * w[k, j]
            out[i, j] = total


matmul_ijk = njit(matmul_python)
plain_ikj = KERNELS["matmul", "cpu"]

# %% tags=["hide-input"]
checks.predict(
    "The second rung is the same three loops, compiled. The third swaps the two inner ones, so that the innermost runs along a "
    "row. How many times as fast is that, in float32 and for 512 x 512?",
    slider=(1, 100),
    answer=30,
    because="Along a row, whole cache lines are used, and neighbours do not wait for each other: the compiler takes as many "
    "as there are lanes. Down a column it can do neither.",
)

# %% [markdown]
# Along a row, every product still costs a load and a store of `out`. The fourth rung takes two rows of `x` and four rows of `w`
# in one pass: six loads and two stores for eight products. (Read from left to right, k still runs upwards.)


# %%
@njit
def matmul_tiled(out, x, w):
    """Two rows of x and four rows of w at a time, for sizes that these divide."""
    out[:] = 0.0
    for i in range(0, out.shape[0], 2):
        top, low, u, v = out[i], out[i + 1], x[i], x[i + 1]
        for p in range(0, x.shape[1], 4):
            a, b, c, d = w[p], w[p + 1], w[p + 2], w[p + 3]
            for j in range(out.shape[1]):
                top[j] = top[j] + u[p] * a[j] + u[p + 1] * b[j] + u[p + 2] * c[j] + u[p + 3] * d[j]
                low[j] = low[j] + v[p] * a[j] + v[p + 1] * b[j] + v[p + 2] * c[j] + v[p + 3] * d[j]


# %% [markdown]
# ### Sums that stay in registers
#
# The fifth rung keeps a tile of `out` in registers for the *whole* sum over k. Its shape comes from the processor: as many sums
# as there are registers for, beside one row of `w`. No loop in Python says "these sixteen registers", so this one piece is
# written in the compiler's own words, as on level 1. numba calls that an
# [intrinsic](https://numba.readthedocs.io/en/stable/extending/high-level.html): a function whose instructions we write
# ourselves. (The code of this rung may be skimmed.)


# %%
#| export matmul
import platform
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

from llvmlite import ir
from numba.core import cgutils
from numba.core import types as kinds
from numba.extending import intrinsic

from levels.hardware import host_features


def tile_shape():
    """(bytes of a vector register, rows of the tile, vectors in a row): the sums must fit beside one row of w."""
    features = host_features()
    if features.get("avx512f"):
        return 64, 16, 1  # 32 registers. 16 sums are more than enough: an addition takes 4 cycles, 1 or 2 start in each
    if platform.machine() in ("arm64", "aarch64"):
        return 16, 8, 2  # 32 registers
    return 32 if features.get("avx2") else 16, 4, 2  # 16 registers: 8 sums, 2 of w, 1 of x, 1 for a product


BYTES, ROWS, VECTORS = tile_shape()
DEPTH = 4096  # bytes of k in one go (1,024 float32): a strip of w is read once for each tile, and shall lie near by
BLOCK = 64  # rows of x packed in one go: they stay in the second cache while all of w passes by


# %% [markdown]
# Some instructions on vectors, as functions that write them:


# %%
#| export matmul
def vectors(context, builder, signature, arguments):
    """Vector instructions on the arrays among an intrinsic's arguments, as functions that emit them."""
    dtype = signature.args[0].dtype
    size, lanes = dtype.bitwidth // 8, BYTES * 8 // dtype.bitwidth
    vector, i32 = ir.VectorType(context.get_value_type(dtype), lanes), ir.IntType(32)
    zero = ir.Constant(vector, None)
    arrays = {
        n: context.make_array(t)(context, builder, arguments[n])
        for n, t in enumerate(signature.args)
        if isinstance(t, kinds.Array)
    }

    def shape(n):
        return cgutils.unpack_tuple(builder, arrays[n].shape)

    def plus(x, n):
        return builder.add(x, x.type(n))

    def at(n, *index):
        """The address of element [index] of argument n; an index is a number or one of the program's integers."""
        index = [context.get_constant(kinds.intp, i) if isinstance(i, int) else i for i in index]
        return cgutils.get_item_pointer(context, builder, signature.args[n], arrays[n], index)

    def shuffle(x, y, order):
        return builder.shuffle_vector(x, y, ir.Constant(ir.VectorType(i32, lanes), order))

    def splat(x):
        """A vector with x in every lane."""
        one = builder.insert_element(ir.Constant(ir.VectorType(x.type, lanes), ir.Undefined), x, i32(0))
        return shuffle(one, one, [0] * lanes)

    def before(j, end):
        """Which lanes of a vector that starts at column j lie before column `end`."""
        left = splat(builder.trunc(builder.sub(end, j), i32))
        return builder.icmp_signed(">", left, ir.Constant(left.type, list(range(lanes))))

    def masked(name, result, *values):
        function = ir.FunctionType(result, [v.type for v in values])
        name = f"llvm.masked.{name}.v{lanes}f{8 * size}.p0"
        return builder.call(cgutils.get_or_insert_function(builder.module, function, name), values)

    def load(address, mask=None):
        address = builder.bitcast(address, vector.as_pointer())
        if mask is None:
            return builder.load(address, align=size)
        return masked("load", vector, address, i32(size), mask, zero)  # 0 in the other lanes

    def store(value, address, mask=None):
        address = builder.bitcast(address, vector.as_pointer())
        if mask is None:
            builder.store(value, address, align=size)
        else:
            masked("store", ir.VoidType(), value, address, i32(size), mask)

    def multiply_add(x, y, total):
        """total + x·y: float32 may become one instruction with one rounding (FMA), float64 never."""
        flags = ("contract",) if size == 4 else ()
        return builder.fadd(total, builder.fmul(x, y, flags=flags), flags=flags)

    return SimpleNamespace(
        lanes=lanes, zero=zero, shape=shape, plus=plus, at=at, shuffle=shuffle, splat=splat, before=before, load=load,
        store=store, multiply_add=multiply_add,
    )  # fmt: skip


# %% [markdown]
# And the tile. Both operands come packed: k by k, with the neighbours that it needs side by side.


# %%
#| export matmul
@intrinsic
def add_tile(typing, out, i, j, xs, row, ws, depth, more):
    """out[i:i+ROWS, j:j+VECTORS·lanes] = Σₖ …, with `more` added to what is there; nothing beyond the edges is written.

    xs and ws are packed: xs[s, p, lane] belongs to row s·lanes + lane of the block, ws[s, p, lane] to that column.
    """

    def emit(context, builder, signature, arguments):
        _, i, j, _, row, _, depth, more = arguments
        v = vectors(context, builder, signature, arguments)
        i_end, j_end = v.shape(0)
        lanes, columns = row.type(v.lanes), [v.plus(j, c * v.lanes) for c in range(VECTORS)]
        masks = [v.before(column, j_end) for column in columns]
        sums = [[cgutils.alloca_once_value(builder, v.zero) for _ in columns] for _ in range(ROWS)]  # become registers

        def places():
            """(sum, its address in out, its live lanes) for the rows that exist."""
            for r in range(ROWS):
                with builder.if_then(builder.icmp_signed("<", v.plus(i, r), i_end)):
                    for total, column, mask in zip(sums[r], columns, masks):
                        yield total, v.at(0, v.plus(i, r), column), mask

        with builder.if_then(more):
            for total, address, mask in places():
                builder.store(v.load(address, mask), total)
        strip, lane, strip_w = builder.udiv(row, lanes), builder.urem(row, lanes), builder.udiv(j, lanes)

        def products(rows):
            """The sum over k, for that many rows of the tile."""
            with cgutils.for_range(builder, depth) as loop:
                ys = [v.load(v.at(5, v.plus(strip_w, c), loop.index, 0)) for c in range(VECTORS)]
                for r in range(rows):
                    one = v.at(3, v.plus(strip, r // v.lanes), loop.index, v.plus(lane, r % v.lanes))
                    x = v.splat(builder.load(one))
                    for y, total in zip(ys, sums[r]):
                        builder.store(v.multiply_add(x, y, builder.load(total)), total)

        def fitting(rows):
            """The sum over k with half the rows, if all that exist fit in there."""
            if rows == ROWS // 4:
                return products(rows)
            with builder.if_else(builder.icmp_signed("<", v.plus(i, rows // 2), i_end)) as (whole, half):
                with whole:
                    products(rows)
                with half:
                    fitting(rows // 2)

        fitting(ROWS)
        for total, address, mask in places():
            v.store(builder.load(total), address, mask)
        return context.get_dummy_value()

    return kinds.void(out, i, j, xs, row, ws, depth, more), emit


# %% [markdown]
# To pack costs one pass over n² numbers, and saves n³ bad accesses. A transposed operand differs only in how it is packed:
# squares are turned in registers.


# %%
#| export matmul
@intrinsic
def pack_square(typing, strips, s, p, source, i, j, i_end, j_end, turned):
    """strips[s, p + r, c] = source[i + r, j + c], or source[i + c, j + r] if turned, for r, c in range(lanes)."""

    def emit(context, builder, signature, arguments):
        _, s, p, _, i, j, i_end, j_end, turned = arguments
        v, rows = vectors(context, builder, signature, arguments), []
        last, mask = v.plus(i_end, -1), v.before(j, j_end)
        for r in range(v.lanes):
            row = v.plus(i, r)
            row = builder.select(builder.icmp_signed("<", row, last), row, last)  # beyond the edge: any row will do
            rows.append(v.load(v.at(3, row, j), mask))
        half = v.lanes // 2
        low = [n for c in range(half) for n in (c, v.lanes + c)]  # a0 b0 a1 b1 …, as a riffle shuffle mixes two halves
        high = [n + half for n in low]

        def keep(rows):
            for r, values in enumerate(rows):
                v.store(values, v.at(0, s, v.plus(p, r), 0))

        with builder.if_else(turned) as (across, straight):
            with straight:
                keep(rows)
            with across:  # log2(lanes) riffles of the rows transpose the square
                for _ in range(half.bit_length()):
                    rows = [v.shuffle(rows[r], rows[r + half], o) for r in range(half) for o in (low, high)]
                keep(rows)
        return context.get_dummy_value()

    return kinds.void(strips, s, p, source, i, j, i_end, j_end, turned), emit


@njit(nogil=True, error_model="numpy")
def pieces(n, size):
    """How many pieces of that size hold n."""
    return (n + size - 1) // size


# %% [markdown]
# Around these two, plain loops: pack a part of `w`, pack some rows of `x`, run the tiles.


# %%
#| export matmul
@compile_cpu
def pack(strips, count, source, turned, k0, k1, c0, c1):
    """strips[s, p, l] = source[k0 + p, c0 + s·lanes + l], or source[c0 + …, k0 + p] if turned, for s in range(count)."""
    lanes = strips.shape[2]
    i0, i1, j0, j1 = (c0, c1, k0, k1) if turned else (k0, k1, c0, c1)
    rows, columns = (count * lanes, k1 - k0) if turned else (k1 - k0, count * lanes)
    for a in range(0, rows, lanes):
        for b in range(0, columns, lanes):  # along the rows of the source, as they lie in memory
            s, p = (a, b) if turned else (b, a)
            pack_square(strips, s // lanes, p, source, i0 + a, j0 + b, i1, j1, turned)


@compile_cpu
def matmul_rows(out, x, w, transpose_x, transpose_w, first):
    """out = the rows of x @ w from `first` on, as many as out has; x, w or both may be given transposed."""
    (m, n), k = out.shape, x.shape[0] if transpose_x else x.shape[1]
    lanes = BYTES // out.itemsize
    width, height = VECTORS * lanes, max(ROWS, lanes)  # strips come in multiples of a tile
    step = max(1, pieces(k, max(1, pieces(k * out.itemsize, DEPTH))))  # equal parts of k, none longer than DEPTH
    for_x, for_w = BLOCK // lanes, pieces(n, width) * VECTORS
    strips = np.empty((for_x + for_w, pieces(step, lanes) * lanes, lanes), out.dtype)
    xs, ws = strips[:for_x], strips[for_x:]
    for k0 in range(0, max(1, k), step):  # one part even if k is 0: the sums are 0.0 then
        k1 = min(k0 + step, k)
        pack(ws, for_w, w, transpose_w, k0, k1, 0, n)
        for i0 in range(0, m, BLOCK):
            i1 = min(i0 + BLOCK, m)
            count = pieces(i1 - i0, height) * height // lanes
            pack(xs, count, x, not transpose_x, k0, k1, first + i0, first + i1)
            for j in range(0, n, width):
                for i in range(i0, i1, ROWS):
                    add_tile(out, i, j, xs, i - i0, ws, k1 - k0, k0 > 0)


# %% [markdown]
# The sixth rung is threads. Rows of `out` do not depend on each other, so each thread takes some. The sums are the same sums
# in the same order, so the bits are the same.


# %%
#| export matmul
WORTH = 10_000_000  # products; to hand work to a thread and to wait for it takes about 80 µs
WORKERS = ThreadPoolExecutor()


def matmul_tiles(out, x, w, transpose_x=False, transpose_w=False):
    """out = x @ w; all C-contiguous, of one dtype; x, w or both may be given transposed, and are then read so."""
    (m, n), threads = out.shape, numba.get_num_threads()
    if m * n * x.shape[0 if transpose_x else 1] < WORTH or threads == 1:
        return matmul_rows(out, x, w, transpose_x, transpose_w, 0)
    share = -(-m // threads // ROWS) * ROWS
    parts = [(out[i : i + share], x, w, transpose_x, transpose_w, i) for i in range(0, m, share)]
    others = [WORKERS.submit(matmul_rows, *part) for part in parts[1:]]
    matmul_rows(*parts[0])
    for other in others:
        other.result()  # waits, and raises what the thread raised


# %% [markdown]
# Each rung against the one before, bit by bit in float64:

# %%
draw = np.random.default_rng(0)
x, w = draw.normal(size=(64, 48)), draw.normal(size=(48, 80))
first = np.empty((64, 80))
matmul_python(first, x, w)
rungs = {"ijk": matmul_ijk, "ikj": plain_ikj, "2 x 4 rows": matmul_tiled, "register tile": matmul_tiles}
for name, rung in rungs.items():
    out = np.empty_like(first)
    rung(out, x, w)
    print(f"{name:13} equal: {(out == first).all()}")

# %% tags=["nbval-ignore-output"]
from levels.hardware.roofline import seconds

x, w = (draw.standard_normal((512, 512), "f4") for _ in "xw")
out, flops, speeds = np.empty_like(x), 2 * 512**3, {}
small = [v[:32, :32].copy() for v in (out, x, w)]
speeds["Python"] = 2 * 32**3 / seconds(lambda: matmul_python(*small), 3)
numba.set_num_threads(1)
for name, rung in rungs.items():
    rung(out, x, w)
    speeds[name] = flops / seconds(lambda rung=rung: rung(out, x, w), 5)
figures.ladder({name: speed / cpu.peak for name, speed in speeds.items()})

# %% [markdown]
# And with threads. They are not quite as many times as fast as they are: each packs `w` for itself, and to hand work over and
# to wait for it costs about 80 µs.


# %% tags=["nbval-ignore-output"]
times = {}
for threads in (1, numba.config.NUMBA_NUM_THREADS):
    numba.set_num_threads(threads)
    times[threads] = min(timeit.repeat(lambda: matmul_tiles(out, x, w), number=10, repeat=5)) / 10
    print(f"{threads} thread{'s' * (threads > 1)}: {times[threads] * 1e3:.2f} ms")

# %% [markdown]
# Wrong calls meet one clear error each:

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
# ## The two tasks on this level (6 min)
#
# ### Data
#
# The same as on level 1: 400 points, and the penguins.

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

from levels.hardware.tasks import Fit, check_inputs, check_task


def linear_forward(prediction, xw, x, w, b):
    """prediction[n, 1] = x[n, k] @ w[k, 1] + b[1, 1]"""
    launch("matmul", xw, x, w)
    launch("add", prediction, xw, b)


def linear_regression(x, y, weights, batches, learning_rate=0.0005):
    """Mean squared error, stochastic gradient descent; see `Fit` and `check_task` for the shapes."""
    check_task(x, y, weights, batches, learning_rate, units=[1])
    cpu, dtype, (batch, features), losses = pool()["cpu:0"], x.dtype, (len(batches[0]), x.shape[1]), []
    x_, y_, w, b = map(cpu.put, (x, y, *weights))
    n, g = (cpu.put(np.full((1, 1), v, dtype)) for v in (batch, dtype.type(1) / dtype.type(batch)))
    rows, target, xw, prediction, error, squared, ge, de = (
        cpu.alloc((batch, width), dtype) for width in (features, 1, 1, 1, 1, 1, 1, 1)
    )
    dw, db, total, loss = (cpu.alloc(shape, dtype) for shape in ((features, 1), (1, 1), (1, 1), (1, 1)))
    for numbers in np.asarray(batches, np.int64):
        i = cpu.put(numbers)
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
        losses.append(loss.data[0, 0])

    def predict(x):
        check_inputs(x, dtype, features)
        xw, prediction = (cpu.alloc((len(x), 1), dtype) for _ in "12")
        linear_forward(prediction, xw, cpu.put(x), w, b)
        return prediction.numpy()

    return Fit(np.array(losses), [w.numpy(), b.numpy()], predict)


# %% [markdown]
# **Predict:** level 1 ran one program on one row after the other. This level makes fourteen launches a step, each on a whole batch. Are
# the losses equal?

# %%
from levels import hardware

fit = linear_regression(task.x, task.y, task.weights, task.batches, task.learning_rate)
below = hardware.tasks.linear_regression(task.x, task.y, task.weights, task.batches, task.learning_rate)
print("losses equal: ", bool((fit.losses == below.losses).all()))
print("weights equal:", all((p == q).all() for p, q in zip(fit.weights, below.weights)))
print("last loss    ", float(fit.losses[-1]).hex())

# %% [markdown]
# Equal to the last bit. The sums run in the same order, whether the loop over rows stands outside or inside.
#
# ### Result

# %%
figures.regression(task, fit)

# %%
penguins = tasks.penguins_mass()
figures.regression(penguins, linear_regression(*penguins[:2], *penguins[4:7]))

# %% [markdown]
# ### The second task: a net
#
# The net of level 1 as launches. For the many results we let `launch` take new buffers (`None`).


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
# And the training loop around them. The sigmoid's and the loss's gradients stand in it, in the order of the record.

# %%
#| export tasks
CLIP = {"low": 1e-7, "high": 1.0 - 1e-7}


def dnn_classifier(x, y, weights, batches, learning_rate=0.01):
    """features-4-8-1, relu, relu, sigmoid; binary cross-entropy, stochastic gradient descent; see `Fit`, `check_task`."""
    check_task(x, y, weights, batches, learning_rate, units=[4, 8, 1])
    cpu, dtype, batch, losses = pool()["cpu:0"], x.dtype, len(batches[0]), []
    x_, y_, *weights = map(cpu.put, (x, y, *weights))
    n, g, one = (cpu.put(np.full((1, 1), v, dtype)) for v in (batch, dtype.type(-1) / dtype.type(batch), 1))
    for numbers in np.asarray(batches, np.int64):
        i = cpu.put(numbers)
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
        losses.append(loss.data[0, 0])

    def predict(x):
        check_inputs(x, dtype, len(weights[0].data))
        return dnn_forward(cpu.put(x), weights)[-1].numpy()

    return Fit(np.array(losses), [w.numpy() for w in weights], predict)


# %%
rings = tasks.rings()
ring_fit = dnn_classifier(*rings[:2], *rings[4:7])
below = hardware.tasks.dnn_classifier(*rings[:2], *rings[4:7])
print("losses equal: ", bool((ring_fit.losses == below.losses).all()))
print("weights equal:", all((p == q).all() for p, q in zip(ring_fit.weights, below.weights)))
figures.classifier(rings, ring_fit)

# %%
sex = tasks.penguins_sex()
figures.confusion(sex, dnn_classifier(*sex[:2], *sex[4:7]))

# %% [markdown]
# ## What this level cost (3 min)

# %%
from course import compare

short = task._replace(batches=task.batches[:1000])
launches, nbytes = (total / 1000 for total in counted(lambda: linear_regression(short.x, short.y, *short[4:7])))
print(
    f"{compare.lines(linear_regression, linear_forward)} lines, {launches:.0f} launches and {nbytes:,.0f} bytes a step"
)

# %% [markdown]
# What does one launch cost, however small? We time an addition of two single numbers, and predict the step from it.

# %% tags=["nbval-ignore-output"]
one, out = cpu.put(np.ones((1, 1))), cpu.alloc((1, 1), "f8")
t_launch = min(timeit.repeat(lambda: launch("add", out, one, one), number=1000, repeat=5)) / 1000
predicted = launches * t_launch + cpu.roofline(16 * 10, nbytes)
print(f"a launch costs {t_launch * 1e6:.1f} µs")
compare.cost(linear_regression, task, launches, nbytes, predicted)

# %% [markdown]
# Most of it is the cost of calling; the rest is Python's own loop, and a new buffer for the row numbers. The arithmetic is
# lost in it, as the surprise at the top foretold. Level 3 will add to it.
#
# ## More of the same kind (optional)
#
# | | TensorFlow | PyTorch | here |
# |---|---|---|---|
# | an op is a name | `tf.raw_ops.AddV2` | `torch.ops.aten.add` | `"add"` |
# | who has a kernel | `REGISTER_KERNEL_BUILDER` (C++) | `TORCH_LIBRARY_IMPL` (C++) | `KERNELS` |
# | run one | inside the runtime | the dispatcher | `launch("add", out, x, y)` |
#
# ## Exercises
#
# 1. Add an op `"maximum"` in three lines and launch it on two arrays.
# 2. Print the loop that `add` gets for shapes `(3, 1)` and `(1, 4)`.
# 3. Add the product `x·x` as an op `"square"` and use it in `linear_regression`. Are the losses still equal?
# 4. Swap the two inner loops of `matmul_ikj`. Do the losses change? Time both orders on two matrices of 256 x 256. What does
#    change, and why?
#
# ## Build

# %%
build.level("02_kernels", linear_regression, dnn_classifier)

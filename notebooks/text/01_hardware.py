# %% [markdown]
# # 1 · Hardware
#
# **In this notebook you write a program in your machine's own instructions, and the program trains a model.**
#
# This course builds one small framework, `levels`, in five notebooks. Each notebook adds one level, as one builds a
# house. You start on the ground: memory, instructions and time. You need Python, a little NumPy, and 100 minutes
# without the optional sections. At least five functions are yours to write. The course fills what you leave empty.
#
# **Shift+Enter** runs a cell and goes on to the next one. If you see only the first line of a cell, run it like any
# other.
#
# Below is the map. Shorter notebooks branch off from each level; *Where to go from here* names those
# of level 1.

# %%
from course import build, figures, tasks  # helpers of the course; `levels` itself is written below

build.watch("01_hardware")  # so that the last cell can tell which cells are not saved yet
figures.you_are_here(1)

# %% [markdown]
# ## A surprise to begin with (3 min)
#
# Here are 2²⁵ ones, as 32-bit numbers. We add them up twice: with `sum`, and with `cumsum`, whose last entry is the sum
# of everything. Before a surprise, this course asks what you expect. Run the next cell, choose an answer and commit to
# it. Then run the cell after it.

# %% tags=["hide-input"]
# a question: run me
from course.practice import checks

checks.predict(
    "`x` holds 33,554,432 ones in float32. What do `x.sum()` and `x.cumsum()[-1]` give?",
    choices=["both 33554432", "33554432 and 16777216", "16777216 and 33554432", "neither is exact"],
    answer="33554432 and 16777216",
    because="`cumsum` gets stuck at 16777216: in float32, 16777216 + 1 is 16777216. `sum` first adds up blocks of "
    "numbers, whose sums are small, and then adds the blocks. It never adds a 1 to so large a number.",
)

# %%
import numpy as np

x = np.ones(2**25, "f")
print(f"sum    {x.sum():.0f}")
print(f"cumsum {x.cumsum()[-1]:.0f}")

# %% [markdown]
# `cumsum` lost half of the ones. A float32 has 24 significant bits
# ([IEEE 754, 2019](https://doi.org/10.1109/IEEESTD.2019.8766229)). From 2²⁴ = 16,777,216 on, it can only count in steps
# of two, so adding one changes nothing, and `cumsum` gets stuck. `sum` adds up blocks first
# ([NumPy's notes on `sum`](https://numpy.org/doc/stable/reference/generated/numpy.sum.html)) and does not get stuck.
# **The order of a sum is part of the answer**, and the author of the loop decides it. In this course you write every
# loop.

# %% [markdown]
# ## The line, in plain Python (11 min)
#
# Here are four hundred points. Each has two inputs, `x1` and `x2`, and one answer `y`. The answers were made as
# `2·x1 - 3·x2 + 3`, plus noise of standard deviation 2. We pretend not to know the 2, the -3 and the 3, and look for
# them. This task is called *the line*. A hundred more points, the **test rows**, are kept aside, and training never
# sees them.

# %%
task = tasks.linear()
print("x", task.x.shape, " y", task.y.shape)
print("start: w", task.weights[0].ravel().round(3), " b", task.weights[1].ravel())
figures.scatter_inputs(task)

# %% [markdown]
# Guess two weights, w1 and w2, and a bias b. Then repeat this **step** many times. The method is called **stochastic
# gradient descent** (SGD):
#
# ```
# take ten rows                 a batch
# z = x1·w1 + x2·w2 + b         the prediction for each row
# e = z - y                     its error
# the mean of e·e               the loss of the batch
# w = w - rate · slope          move each weight a little against its slope
#                               (its gradient); the learning rate says how far
# ```
#
# We begin with the sum of products in `z`. A cell whose first line is `#| export NAME` goes into
# `levels/hardware/NAME.py`, for all higher levels. (`lab --write most`: you write what is marked `most`.) The last
# cell writes these.

# %%
#| export formulas most dot
"""The formulas of the course's arithmetic. The same code works on Python floats and in programs."""


def dot(p, q):
    """Return 0.0 + p[0]·q[0] + p[1]·q[1] + …, in that order. (Since 3.12, Python's `sum` corrects its rounding.)"""
    total = 0.0
    for a, b in zip(p, q):
        total = total + a * b
    return total


# %%
ten = task.batches[0]  # which ten rows: their row numbers


def errors_of(w, b):
    return [dot(task.x[i].tolist(), w) + b - task.y[i, 0] for i in ten]


def loss_of(w, b):
    errors = errors_of(w, b)
    return dot(errors, errors) / 10


print(f"the loss of ten rows, guessing 0.5, 0.5 and 0: {loss_of([0.5, 0.5], 0.0):.6g}")

# %% [markdown]
# ### Your turn: the slope
#
# In which direction does the loss fall? The loss is a mean over n rows, so each row adds e·e/n to it. If e grows by a
# tiny amount, the loss grows by `de` = 2·e/n times that amount. This factor is the **slope** of the loss with respect
# to e. If w1 grows by a tiny amount, e grows by x1 times that amount. When one change causes the next, their slopes are
# multiplied. This is the **chain rule**:
#
# ```
# w1 ─── e grows x1 times as much ───► e ─── the loss grows de times as much ───► loss
#                      slope of the loss with respect to w1:  x1 · de
# ```
#
# So one row adds x1·de to the slope for w1, x2·de to the slope for w2, and de to the slope for b, because e grows
# exactly as b does.
#
# Write `de` as `g·e + g·e`, with g = 1/n. (All five levels use this form; 2·e/n would sometimes round to another last
# digit.)


# %%
#| export formulas blank line_slopes
def line_slopes(error, row, g):
    """What one row adds to the slopes of (Σ error·error)·g, with g = 1/n: a list for the weights, a number for b."""
    ...  # a list, one number for each number of the row, and `de`


# %% [markdown]
# <details><summary>Hint</summary>First <code>de</code>, from g and the error. The slope for a weight is its input times <code>de</code>.</details>
# <details><summary>Second hint</summary><code>de = g * error + g * error</code>, and then a list of <code>value * de</code>.</details>
# <details><summary>Solution</summary>
#
# ```python
# def line_slopes(error, row, g):
#     """What one row adds to the slopes of (Σ error·error)·g, with g = 1/n: a list for the weights, a number for b."""
#     de = g * error + g * error
#     return [value * de for value in row], de
# ```
# </details>
#
# Compare with a result by hand. For an error of 2 among ten rows, `de` is 0.4. With inputs 1 and 5, the slopes are 0.4
# and 2:

# %%
print(line_slopes(2.0, [1.0, 5.0], 0.1))

# %% [markdown]
# Is it right? Nudge a weight up and down by a tiny amount, and see how much the loss changes. We use this check on all
# five levels.

# %%
slope = 0.0
for i, error in zip(ten, errors_of([0.5, 0.5], 0.0)):
    (dw1, dw2), db = line_slopes(error, task.x[i].tolist(), 1 / 10)
    slope = slope + dw1
up, down = loss_of([0.5 + 1e-6, 0.5], 0.0), loss_of([0.5 - 1e-6, 0.5], 0.0)
print(f"gradient {slope:.4f}   nudged {(up - down) / 2e-6:.4f}")

# %% [markdown]
# The formula and the nudge agree. The complete training in plain Python is in `course/reference.py`. It is the course's
# **arithmetic of record**: every level is compared with its numbers. It begins with the first weights printed above and
# takes 8,000 steps. That is 200 passes through the data, called **epochs**.

# %%
from course import reference

record, record_weights = reference.linear_regression(task.x, task.y, task.weights, task.batches, task.learning_rate)
print(f"first loss {record[0]:.6g}, last loss {record[-1]:.6g}")
w, b = map(np.array, record_weights)
print(f"w {w[0, 0]:.4f}, {w[1, 0]:.4f}   b {b[0, 0]:.4f}")

# %% [markdown]
# The weights are nearly 2, -3 and 3. The loss cannot fall to 0: the mean square of the noise is about 2·2 = 4, and by
# chance 9 in the last batch.
#
# Now watch the model learn. On the left is the loss of each batch, in grey, and the mean of fifty batches, in blue. On
# the right is the prediction for each test row. **R²** is the share of the variation of y that the line explains; 1 is
# all of it.

# %%
from types import SimpleNamespace

figures.regression(task, SimpleNamespace(losses=record, predict=lambda rows: rows @ w + b))

# %% [markdown]
# The rest of this notebook does the same in instructions for the machine.

# %% [markdown]
# ## One instruction (14 min)
#
# A processor has no instruction for a list or a loop. A **register** holds one number inside the processor. An
# **address** is a place in memory. A program **loads** a number from memory into a register, does **arithmetic** on
# registers, and **stores** a register back to memory. It can also jump to another instruction.
#
# Here is a program in the language of [LLVM](https://llvm.org/docs/LangRef.html), the compiler behind Clang, Rust and
# numba. Names begin with `%`. A `double` is a float64, and a `ptr` is an address. The program returns nothing (`void`),
# and `ret` ends it:

# %%
TEXT = """
define void @program(ptr %x, ptr %y) {
  %v = load double, ptr %x
  %square = fmul double %v, %v
  store double %square, ptr %y
  ret void
}
"""

# %% [markdown]
# `machine_code(text)` lets LLVM turn such a text into bytes for your processor. It returns an object that owns the
# bytes, and the address at which they begin. The function comes from `levels/support`, whose code the notebooks use but do not
# explain.
#
# NumPy knows the address of an array's numbers, and `ctypes` calls the code at an address:

# %%
import ctypes

from levels.support.machine import machine_code


def run_text(text, *arrays):
    engine, address = machine_code(text)  # the engine owns the bytes
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(arrays))(address)  # returns nothing, takes addresses
    call(*[array.ctypes.data for array in arrays])


x, y = np.array([3.0]), np.array([0.0])
run_text(TEXT, x, y)
y

# %% [markdown]
# Nine, computed by your own program. Nobody wants to write such text by hand. So we write an **assembler**: Python
# functions that each write a line. Its central idea is the `Register`. This Python object stands for a number that a
# register of the processor *will hold* when the program runs:

# %%
lines = []  # the program so far


def arithmetic(instruction, x, y):
    return Register(f"{instruction} double {x.name}, {y.name}")


class Register:
    def __init__(self, text):
        self.name = f"%v{len(lines)}"
        lines.append(f"{self.name} = {text}")

    def __add__(self, other):
        return arithmetic("fadd", self, other)

    def __mul__(self, other):
        return arithmetic("fmul", self, other)


# %%
v = Register("load double, ptr %x")
v * v + v
print("\n".join(lines))
lines.clear()

# %% [markdown]
# The `*` multiplied nothing. It wrote the instruction that will multiply. Next, `load` and `store` take a place in the
# array, counted from 0. The instruction `getelementptr` computes the address of that place, and `i64` is a 64-bit whole
# number. `run` puts a frame around the lines and runs them. In the frame, the beginning of the program is named
# `entry`.


# %%
def address_of(array, place):
    return Register(f"getelementptr double, ptr {array}, i64 {place}").name


def load(array, place=0):
    return Register(f"load double, ptr {address_of(array, place)}")


def store(value, array, place=0):
    lines.append(f"store double {value.name}, ptr {address_of(array, place)}")


def run(*arrays):
    names = ", ".join(f"ptr %{name}" for name in "xyz"[: len(arrays)])
    run_text("\n".join([f"define void @program({names}) {{", "entry:", *lines, "ret void", "}"]), *arrays)
    lines.clear()


# %% [markdown]
# This program computes v·v + v:

# %%
v = load("%x")
store(v * v + v, "%y")
x, y = np.array([3.0, 4.0, 5.0, 6.0, 7.0]), np.zeros(5)
run(x, y)
y

# %% [markdown]
# ### Your turn: an instruction
#
# Twelve is right. The four zeros are the subject of the next section. Before that we need to subtract, because an error
# is z - y. LLVM's instruction is `fsub`. **Write the function that subtracts.** The first cell below begins the
# file into which your function goes.

# %%
#| export values
"""A value stands for a number that a register will hold. Its operators write instructions."""

import numbers

REAL = {np.dtype("f4"): "float", np.dtype("f8"): "double"}  # LLVM's names


# %%
#| export values blank subtract
def subtract(x, y):
    """Write the instruction that takes the number y from x, and give back its value."""
    ...  # one call of `arithmetic`, as in `+` and `*`


# %% [markdown]
# <details><summary>Hint</summary><code>arithmetic</code> writes an instruction, given its name.</details>
# <details><summary>Second hint</summary>The name is <code>"fsub"</code>; x comes first.</details>
# <details><summary>Solution</summary>
#
# ```python
# def subtract(x, y):
#     """Write the instruction that takes the number y from x, and give back its value."""
#     return arithmetic("fsub", x, y)
# ```
# </details>
#
# Check it with 5 - 3:

# %%
store(subtract(load("%x"), load("%y")), "%z")
x, y, z = np.array([5.0]), np.array([3.0]), np.zeros(1)
run(x, y, z)
z

# %% [markdown]
# **A good place to stop.** You can write an instruction, and you know which losses the line's program must give.

# %% [markdown]
# ## A loop (8 min)
#
# The program above ran once, so it computed only the first of five numbers. It needs a loop. In LLVM's language, a loop
# is a set of blocks with jumps between them. A block begins with a name, and a jump goes to such a name:
#
# ```
# entry ──► test ──(i < n)──► body ──► back to test, with i + 1
#             │
#             └────(else)───► after
# ```
#
# `icmp slt` tests whether i < n, and `br` jumps. `phi` gives 0 if the jump came from `entry`, and `%next` if it came
# from `body`. The body is whatever you write in a `with` block. Python's `contextmanager` runs our function up to its
# `yield`, then the `with` block, and then the rest of the function.

# %%
from contextlib import contextmanager


@contextmanager
def loop(n):
    lines.extend(["br label %test", "test:", "%i = phi i64 [0, %entry], [%next, %body]"])
    lines.extend([f"%more = icmp slt i64 %i, {n}", "br i1 %more, label %body, label %after", "body:"])
    yield "%i"
    lines.extend(["%next = add i64 %i, 1", "br label %test", "after:"])


# %%
with loop(5) as i:
    v = load("%x", i)
    store(v * v + v, "%y", i)
print("\n".join(lines))

x, y = np.array([3.0, 4.0, 5.0, 6.0, 7.0]), np.zeros(5)
run(x, y)
y

# %% [markdown]
# The body was written once, and the machine ran it five times.
#
# ### Your turn: the place of x[i, k]
#
# Our points have two inputs each, so `x` has rows. Memory has no rows. It is one long sequence of places, and the first
# is place 0. Here are two rows of three numbers, with their places:
#
# ```
# x[0,0]  x[0,1]  x[0,2]  x[1,0]  x[1,1]  x[1,2]
#   0       1       2       3       4       5
# ```


# %%
#| export formulas blank flat
def flat(row, width, column):
    """The place of x[row, column] in memory, where rows of `width` numbers lie one behind the other."""
    ...  # a product and a sum: they will run on registers, too


# %% [markdown]
# <details><summary>Hint</summary>How many numbers lie before the row begins?</details>
# <details><summary>Second hint</summary><code>row</code> whole rows of <code>width</code> numbers lie before it.</details>
# <details><summary>Solution</summary>
#
# ```python
# def flat(row, width, column):
#     """The place of x[row, column] in memory, where rows of `width` numbers lie one behind the other."""
#     return row * width + column
# ```
# </details>
#
# Try the last of the six:

# %%
print(flat(1, 3, 2))  # x[1, 2]

# %% [markdown]
# Two arrays of five numbers lie in one block of memory, `y` before `x`. By mistake the loop counts to 6 instead of 5,
# so it writes one number too many:

# %%
memory = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 3.0, 4.0, 5.0, 6.0, 7.0])
y, x = memory[:5], memory[5:]
with loop(6) as i:
    v = load("%x")
    store(v + v, "%y", i)
run(x, y)
print("y", y, " x", x)

# %% [markdown]
# `x` began with 3. That number is gone, and no error was raised. With 6,000,000 instead of 6, this notebook would have
# crashed. So the assembler must know how large each array is.

# %% [markdown]
# ## Buffers that know their end (3 min)
#
# When we write the program, we already know how far a loop counts. If we also know the size of the array, the assembler
# can refuse the mistake before anything runs. Let an `Array` carry its size, and let an `Index` carry its `extent`: the
# number that it always stays below.


# %%
class Array:
    def __init__(self, name, size):
        self.name, self.size = name, size


class Index:
    def __init__(self, register, extent):
        self.register, self.extent = register, extent


def address_of(array, i):
    if i.extent > array.size:
        raise IndexError(f"{array.name} has {array.size} numbers; this index goes up to {i.extent - 1}")
    return Register(f"getelementptr double, ptr %{array.name}, i64 {i.register}").name


# %% [markdown]
# Here are the loop to 5 and the loop to 6:

# %%
y = Array("y", 5)
print(address_of(y, Index("%i", 5)), "is the register of an address")
try:
    address_of(y, Index("%i", 6))
except IndexError as error:
    print(error)

# %% [markdown]
# The mistake is refused, and no memory was touched. The real assembler checks every load and every store in this way.
# If a size becomes known only at the call, it is checked then.

# %% [markdown]
# ## The assembler in full (61 min, optional)
#
# This section builds the real assembler. Its idea is the one that you have seen: each call *writes* lines. Most of its
# code checks the arguments of a call. **Run these cells and go on.** You need not read them now,
# unless `lab --write most` leaves four functions to you. (To run them at once, select the next heading, and choose *Run
# All Above Selected Cell* in the menu *Run*.)
#
# ### Memory
#
# A `Spec` is the device, the shape and the dtype of a piece of memory. Shape and dtype say how many bytes it takes.

# %%
#| export device
"""Devices and their memory: the pool of devices, buffers, and copies to and from NumPy."""

import math


class Spec:
    """The device, shape and dtype of a buffer. Raises ValueError for a negative size or a non-numeric dtype."""

    def __init__(self, device, shape, dtype):
        if min(shape, default=0) < 0 or dtype.kind not in "biufc":
            raise ValueError(f"{device.name}: shape {shape} of {dtype}; expected no negative size, and numbers")
        self.device, self.shape, self.dtype = device, shape, dtype
        self.nbytes = math.prod(shape) * dtype.itemsize
        self.spec = self  # some code reads `.spec` of a Spec or of a buffer

    def __repr__(self):
        return f"{self.dtype}{list(self.shape)} on {self.device.name}"


# %% [markdown]
# A `Buffer` is a Spec and the memory itself. The device counts the bytes in use, so a buffer reports when it is made
# and when it is deleted. (A view of another buffer's numbers names that buffer as its `source`, and is not counted.)


# %%
#| export device
class Buffer:
    """C-contiguous memory: new, or `data`, which `source` may own. Raises MemoryError if too little is free."""

    __slots__ = ("spec", "data", "source", "address")  # address: where the numbers begin, or None

    def __init__(self, spec, data=None, source=None):
        self.spec, self.data, self.source, self.address = spec, data, source, None
        if source is None:
            place, nbytes = spec.device, spec.nbytes
            if place.memory is not None and place.used + nbytes > place.memory:
                raise MemoryError(f"{place.name}: asked for {nbytes:,} bytes, {place.memory - place.used:,} are free")
            self.data = place.empty(spec.shape, spec.dtype) if data is None else data
            place.used += nbytes

    device = property(lambda self: self.spec.device)
    shape = property(lambda self: self.spec.shape)
    dtype = property(lambda self: self.spec.dtype)

    def __del__(self):
        if self.source is None and self.data is not None:
            self.spec.device.used -= self.spec.nbytes

    def numpy(self):
        """Return a copy of the numbers as a NumPy array. Raises ValueError if the buffer was freed."""
        if self.data is None:
            raise ValueError(f"Buffer({self.spec}): used after it was freed; allocate a new one")
        return self.spec.device.read(self.data)

    def __getstate__(self):
        state, slots = super().__getstate__()
        return state, slots | {"address": None}  # a copy has another address

    def __repr__(self):
        return f"Buffer({self.spec}{', freed' if self.data is None else ''})"


# %% [markdown]
# A `Device` makes buffers and frees them. It also knows its speed, which later sections measure. `host_memory` of
# `levels/support` finds out how much memory this process may use, and `numeric_array` turns lists into arrays. (The class is
# long, and you may skip it.)

# %% tags=["hide-input"]
#| export device
import functools
import threading

from levels.support.checks import numeric_array
from levels.support.machine import host_memory

MEASURES = {}  # "peak", "bandwidth" or "launch_time" -> function(device) that measures it


class Device:
    """A device: its `memory` in bytes (None: unknown), the bytes `used`, and its speed, measured on first use."""

    # how memory is allocated, reshaped, read and written; other kinds of device override these
    empty = staticmethod(np.empty)
    reshape = staticmethod(np.ndarray.reshape)
    read = staticmethod(np.ndarray.copy)
    write = staticmethod(np.copyto)

    def __init__(self, name, memory, simulated=False):
        self.name, self.kind = name, name.split(":")[0]
        self.memory, self.simulated = memory, simulated
        self.used, self.measured, self.specs = 0, {}, {}

    def spec(self, shape, dtype):
        """Return the Spec for this shape and dtype. Raises TypeError or ValueError if they are invalid."""
        try:
            key = tuple([n.__index__() for n in shape]), np.dtype(dtype or "")  # not None
        except (TypeError, ValueError, AttributeError):
            raise TypeError(f"{self.name}: shape {shape!r:.60} of {dtype!r:.60}; expected sizes and a dtype") from None
        return self.specs.get(key) or self.specs.setdefault(key, Spec(self, *key))

    def alloc(self, shape, dtype):
        """Return a new, uninitialized buffer. Raises MemoryError if not enough memory is free."""
        return Buffer(self.spec(shape, dtype))

    def put(self, array, kind=Buffer):
        """Copy a NumPy array into a new buffer, and return the buffer."""
        array = numeric_array(array)
        spec = self.specs.get((array.shape, array.dtype)) or self.spec(array.shape, array.dtype)
        buffer = kind(spec)
        self.write(buffer.data, array)
        return buffer

    def free(self, buffer):
        """Free a live buffer of this device. Do not use it afterwards. Raises ValueError for others, and for views."""
        if not isinstance(buffer, Buffer) or buffer.device is not self or buffer.source is not None:
            raise ValueError(f"{self.name}: cannot free {buffer}: it is not a live buffer of this device, and its own")
        self.used -= buffer.spec.nbytes
        # a new Spec, so that nothing kept for the shared Spec is used with a freed buffer
        buffer.spec = Spec(self, buffer.shape, buffer.dtype)
        buffer.data, buffer.source, buffer.address = None, self, None

    def measure(self, what):
        """Return one of `MEASURES`, measured on first use. Raises LookupError if there is none of this name."""
        if str(what) not in MEASURES:
            raise LookupError(f"{self.name}: no program measures {what} yet")
        return self.measured.get(what) or self.measured.setdefault(what, MEASURES[what](self))

    peak = property(lambda self: self.measure("peak"), doc="float32 operations per second")
    bandwidth = property(lambda self: self.measure("bandwidth"), doc="bytes per second")
    launch_time = property(lambda self: self.measure("launch_time"), doc="seconds per call")

    def cost(self, launches, flops, nbytes):
        """Predict the seconds: the roofline plus the launches. Raises ValueError unless all are numbers >= 0."""
        amounts = launches, flops, nbytes
        if not all(isinstance(n, (int, float, np.number)) and n >= 0 for n in amounts):
            raise ValueError(f"{self.name}: the amounts are {amounts!r:.60}; expected numbers from 0 on")
        return max(flops / self.peak, nbytes / self.bandwidth) + launches * self.launch_time

    def roofline(self, flops, nbytes):
        """Return the least possible seconds, without launches (Williams et al., 2009)."""
        return self.cost(0, flops, nbytes)

    def __repr__(self):
        return f"Device({self.name}{', simulated' if self.simulated else ''})"


# %% [markdown]
# `pool()` returns this computer's devices by name. In the core there is one device: the CPUs. `levels_more` adds
# others.

# %%
#| export device
_POOL = {"cpu:0": Device("cpu:0", host_memory())}  # this computer's own CPUs


class _Place(threading.local):
    device = _POOL["cpu:0"]  # the device on which a thread places its arrays


PLACE = _Place()


DEVICE_MAKERS = []  # functions fill(pool, counts) that add devices to the pool; counts may be {"gpus": 2}


def pool(**counts):
    """Return {"cpu:0": Device, …}: DEVICE_MAKERS add one of each kind (gpus=2: two). Raises TypeError, ValueError."""
    if counts and not DEVICE_MAKERS:
        raise TypeError(f"pool: there are no {', '.join(counts)} here; levels_more.hardware brings others")
    for fill in DEVICE_MAKERS:
        fill(_POOL, counts)
    return _POOL


# %% [markdown]
# ### Values
#
# The `Register` from above becomes a `Value`. `arithmetic` and `_comparison` write one instruction each. `_operator`
# turns such a function into two methods, one for `v + 1.0` and one for `1.0 + v`.


# %%
#| export values
def arithmetic(instruction, x, y):
    """Write an instruction: fadd, fsub, fmul or fdiv. One of x and y may be a Python number."""
    a = _program(x, y)
    return Value(a, a.write(f"{instruction} {a.flags}{a.kind} {_operand(a, x)}, {_operand(a, y)}"))


def _comparison(how, x, y):
    """Write a comparison, named as in LLVM. As in Python, a NaN makes it false, except for !=."""
    a = _program(x, y)
    return _Condition(a, a.write(f"fcmp {how} {a.kind} {_operand(a, x)}, {_operand(a, y)}"))


def _operator(write, how):
    """Return two methods that write an instruction: with this value as its first operand, and as its second."""

    def first(self, other):
        return write(how, self, other)

    def second(self, other):
        return write(how, other, self)

    return first, second


# %% [markdown]
# The class itself is then a table: an operator on the left, an instruction on the right. Python calls `__bool__` for an
# `if`. The number is not known yet, so that is an error.


# %%
#| export values
class Value:
    """A number that a register will hold. Its operators write instructions."""

    def __init__(self, a, register):
        self.a, self.register, self.scope = a, register, a.scope  # the loop in which it is known

    def __bool__(self):
        raise TypeError(f"{self.a.name}: {self!r} is not known yet; use select(condition, x, y)")

    def __repr__(self):
        return f"{type(self).__name__} {self.register}"

    __add__, __radd__ = _operator(arithmetic, "fadd")
    __mul__, __rmul__ = _operator(arithmetic, "fmul")
    __truediv__, __rtruediv__ = _operator(arithmetic, "fdiv")
    __lt__, __gt__ = _operator(_comparison, "olt")
    __le__, __ge__ = _operator(_comparison, "ole")

    def __sub__(self, other):
        return subtract(self, other)

    def __rsub__(self, other):
        return subtract(other, self)

    def __eq__(self, other):
        return _comparison("oeq", self, other)

    def __ne__(self, other):
        return _comparison("une", self, other)

    def __neg__(self):
        return subtract(-0.0, self)  # 0.0 - self would turn 0.0 into 0.0, not into -0.0

    def __abs__(self):
        return select(self <= 0.0, 0.0 - self, self)  # turns -0.0 into 0.0


# %% [markdown]
# There are two further kinds of values. A comparison gives a `_Condition`, and a loop counts with an `Index`. The three
# functions below find the program of an operand, refuse a value whose loop has ended, and write an operand's text.


# %%
#| export values
class _Condition(Value):
    """The result of a comparison, true or false, in a register. It is used by `select`."""


class Index(Value):
    """A whole number in [0, extent). With lanes, the register `each` holds one per lane."""

    def __init__(self, a, register, extent, each=None):
        super().__init__(a, register)
        self.extent, self.each = extent, each


def _program(*operands):
    """Return the program to which these operands belong."""
    return next(x.a for x in operands if isinstance(x, Value))


def _live(a, thing):
    """Return the thing. Raises ValueError unless it belongs to this program and to a loop that is still open."""
    if thing.scope not in a.scopes:
        raise ValueError(f"{a.name}: {thing!r} is not of this program or its loop has ended; a sum carries numbers out")
    return thing


def _operand(a, x):
    """Return the register of a value, or a Python number as an LLVM constant."""
    if isinstance(x, numbers.Real):  # LLVM's notation: the bits of a float64
        return a.constant(a.real, f"0x{np.float64(a.dtype.type(float(x))).view(np.uint64):016X}")
    if not isinstance(x, Value) or isinstance(x, (Index, _Condition)):
        raise TypeError(f"{a.name}: expected a number to compute with, got {x!r}")
    return _live(a, x).register


# %% [markdown]
# A program has no `if`. `select` writes an instruction that takes one of two numbers, depending on a condition. (`i1`
# is LLVM's type for yes or no.)


# %%
#| export values
def select(condition, x, y):
    """Return x if the condition holds, else y. On Python numbers, it chooses at once."""
    if not isinstance(condition, _Condition):
        return x if condition else y
    a = _live(condition.a, condition).a
    numbers = f"{a.kind} {_operand(a, x)}, {a.kind} {_operand(a, y)}"
    return Value(a, a.write(f"select {a.wide('i1')} {condition.register}, {numbers}"))


def _masked(a, new, old):
    """Return a register: `new` in the active lanes, else `old`. Outside of lanes, only the first lane is active."""
    if a.lanes == 1:
        return new.register
    return a.write(f"select {a.wide('i1')} {a.mask or a.first}, {a.kind} {new.register}, {a.kind} {old.register}")


# %% [markdown]
# A value ends with its turn of the loop, so a running sum needs a place in memory, its `slot`. To add to it is to load
# what is there, add the term and store the result. `total()` gives what has been added up. The lines about lanes, and
# `_masked`, belong to the section *Lanes*.


# %%
#| export values most _Sum.__iadd__
class _Sum:
    """A running sum in memory. With lanes, each lane holds a partial sum; `total()` adds them."""

    def __init__(self, a):
        self.a, self.scope, self.slot = a, a.scope, a.slot(a.kind)
        a.emit(f"store {a.kind} zeroinitializer, ptr {self.slot}")

    def parts(self):
        a = _live(self.a, self).a
        return Value(a, a.write(f"load {a.kind}, ptr {self.slot}"))

    def value(self):
        """Return the sum so far, in each lane. With lanes, raises ValueError outside of their loop: use total()."""
        if self.a.lanes > 1 and not self.a.mask:
            raise ValueError(f"{self.a.name}: outside of lanes a sum has only a total")
        return self.parts()

    def __iadd__(self, term):
        """Write instructions that add a term to the sum, in the active lanes. Returns the sum itself."""
        old = self.parts()
        new = _masked(self.a, old + term, old)
        self.a.emit(f"store {self.a.kind} {new}, ptr {self.slot}")
        return self

    def total(self):
        """Return the sum of all lanes. In float32, the lanes may be added in any order."""
        a, each = self.a, self.parts()
        if a.lanes == 1:
            return each
        kind = f"reassoc {a.real}" if a.flags else a.real
        add = f"call {kind} @llvm.vector.reduce.fadd({a.real} 0.0, {a.kind} {each.register})"
        return Value(a, a.spread(a.real, a.write(add)))


# %% [markdown]
# LLVM writes some operations, such as the square root, as calls of functions. `rint` and `sqrt` below work on Python's
# numbers, too.


# %%
#| export elementary
"""Named instructions, exp and log. The same source runs on Python floats, in programs and in kernels."""


def named(name, *operands):
    """Write one of LLVM's named instructions, such as sqrt(x) or maximum(x, y)."""
    a = _program(*operands)
    operands = ", ".join(f"{a.kind} {_operand(a, x)}" for x in operands)
    return Value(a, a.write(f"call {a.kind} @llvm.{name}({operands})"))


def rint(x):
    """Round to the nearest whole number, halves to even."""
    return named("rint", x) if isinstance(x, Value) else float(round(x)) if math.isfinite(x) else x


def sqrt(x):
    """Return the correctly rounded square root; NaN for a negative number."""
    return named("sqrt", x) if isinstance(x, Value) else math.nan if x < 0 else math.sqrt(x)


# %% [markdown]
# ### Programs
#
# A program knows the names and shapes of its arrays. A call hands over one block of 64-bit `words`: addresses, sizes
# and numbers. `_text` puts a frame around the lines.

# %%
#| export program
"""A finished program: machine code, the names and shapes of its arrays, and the checks made at a call."""

from levels.support.calls import check_bound, checked


class _Array:
    """An array that a program works on. A size is a number, or a name whose value the call gives."""

    def __init__(self, name, shape, kind, rows_of):
        self.name, self.shape, self.kind = name, shape, kind
        self.rows_of = rows_of  # if set, the array holds row numbers of arrays of that size

    def __repr__(self):
        return f"{self.name}[{', '.join(map(str, self.shape))}]"


def _text(a):
    """Return the text of the whole program, in LLVM's language."""
    entry = list(a.slots)
    for n, (name, kind) in enumerate(a.words.items()):
        entry.append(f"  %address.{name} = getelementptr i64, ptr %words, i64 {n}")
        entry.append(f"  %word.{name} = load {kind}, ptr %address.{name}")
    promises = " nounwind alignstack(64)" if a.lanes > 1 else ""  # on the stack no lanes may straddle two cache lines
    start = [f"define void @program(ptr %words){promises} {{", "entry:", *entry, "  br label %start", "start:"]
    return "\n".join([*start, *a.lines, "  ret void", "}", ""])


# %% [markdown]
# A `Program` is called with buffers and numbers by name. `checked` of `levels/support` first looks at dtypes, shapes,
# and each row number. `bind` does this once, and returns a call that takes no arguments.


# %%
#| export program
class Program:
    """A compiled program, called with named buffers and numbers. Raises ValueError for open loops or unknown sizes."""

    def __init__(self, a):
        if len(a.scopes) != 1:
            raise ValueError(f"{a.name}: {'a loop has not ended' if a.scopes else 'it is assembled already'}")
        known = {size for array in a.arrays.values() for size in array.shape}
        if lost := {name for name, kind in a.words.items() if kind == "i64"} - known:
            raise ValueError(f"{a.name}: the size {min(lost)} is unknown: it stands in no array's shape")
        a.scopes.clear()
        self.name, self.dtype, self.arrays, self.words = a.name, a.dtype, a.arrays, a.words
        self.bounds, self.text = list(dict.fromkeys(a.bounds)), _text(a)
        self.engine, address = machine_code(self.text)
        self.run = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)

    def bind(self, **given):
        """Check buffers and numbers once. Returns a function without arguments, which can be called many times."""
        memory, words = checked(self, given, Buffer)
        block = (ctypes.c_int64 * len(self.words))(*(words[name] for name in self.words))
        bound = [(name, given[name], given[name].data) for name in memory]

        def launch():
            for name, buffer, data in bound:
                if buffer.data is not data:
                    raise ValueError(f"{self.name}: {name} was freed after it was bound; bind again")
            self.run(block)

        launch.keeps = memory  # the copies of row numbers must live as long as the call
        return launch

    def __call__(self, **given):
        """Check the buffers and numbers, and run the program."""
        self.bind(**given)()


# %% [markdown]
# ### The classes of the assembler
#
# There are three. A `Writer` writes lines. `Loops` adds loops, and what each call hands over: sizes, numbers and arrays.
# An `Assembler` adds loads and stores. (The first two are long, and you may skip them.) Here is the first:

# %% tags=["hide-input"]
#| export writer
"""A writer collects the lines of a program, in LLVM's language."""


class Writer:
    """The lines of a program, in LLVM's language. By default, `lanes` is the machine's in float32, else 1.

    Raises TypeError or ValueError for an unsupported dtype or number of lanes."""

    def __init__(self, name, dtype, lanes=None):
        if dtype is None or np.dtype(dtype) not in REAL:
            raise TypeError(f"{name}: dtype is {np.dtype(dtype)}; a program computes in float32 or float64")
        self.name, self.dtype, self.real = name, np.dtype(dtype), REAL[np.dtype(dtype)]
        single = self.dtype == np.float32
        self.flags = "contract " if single else ""  # may fuse a·b + c
        if lanes is None:
            lanes = host_lanes() if single else 1
        if not isinstance(lanes, int) or lanes not in (1, 2, 4, 8, 16, 32, 64):
            raise ValueError(f"{name}: lanes is {lanes!r}; expected a power of 2 up to 64")
        self.lanes, self.slots, self.lines = lanes, [], []
        self.kind = self.wide(self.real)
        self.mask = None  # the active lanes, in a loop with lanes
        self.first = (
            f"<i1 true{', i1 false' * (lanes - 1)}>"  # the first lane, the only active one outside of such a loop
        )
        self.scopes = [(self, None)]  # the open scopes: the program itself, then its loops

    def wide(self, kind):
        """Return the type of a register with one number of that kind in each lane."""
        return kind if self.lanes == 1 else f"<{self.lanes} x {kind}>"

    def constant(self, kind, text):
        """Return a constant, the same in each lane."""
        return f"{text}" if self.lanes == 1 else f"splat ({kind} {text})"

    def emit(self, *lines):
        """Append lines. A line that ends with a colon begins a block."""
        self.lines += [line if line.endswith(":") else f"  {line}" for line in lines]

    def write(self, text):
        """Append an instruction, and return the name of the register that it sets."""
        register = f"%v{len(self.lines)}"
        self.emit(f"{register} = {text}")
        return register

    def slot(self, kind):
        """Reserve memory on the stack for a value that changes. LLVM turns it into a register."""
        self.slots.append(f"  %slot{len(self.slots)} = alloca {kind}")
        return f"%slot{len(self.slots) - 1}"

    def spread(self, kind, register):
        """Return a register with a copy of this number in each lane."""
        if self.lanes == 1:
            return register
        wide = self.wide(kind)
        first = self.write(f"insertelement {wide} poison, {kind} {register}, i32 0")
        return self.write(f"shufflevector {wide} {first}, {wide} poison, {self.wide('i32')} zeroinitializer")

    @property
    def scope(self):
        """The innermost open loop. Instructions written now belong to it."""
        if not self.scopes:
            raise ValueError(f"{self.name}: the program is assembled; nothing can be added to it")
        return self.scopes[-1]


# %% [markdown]
# `loop` opens a scope and closes it again. `counters` is for loops with lanes:

# %% tags=["hide-input"]
#| export assembler
"""An assembler: it writes a program, instruction by instruction, and keeps each address within its array."""


class Loops(Writer):
    """A Writer with loops and with the arguments of a call: sizes, numbers, arrays. Raises TypeError, ValueError."""

    def __init__(self, name, dtype, lanes=None):
        super().__init__(name, dtype, lanes)
        self.words = {}  # the name of a word -> its type
        self.arrays = {}  # the name of an array -> the array
        self.bounds = []  # (array, axis, size): on that axis an index goes up to size - 1

    def word(self, name, kind):
        """Return the register of an argument of each call: the address of an array (ptr), a size (i64) or a number."""
        fits = isinstance(name, str) and name.isidentifier() and name.isascii()
        if not fits or self.words.setdefault(name, kind) != kind:
            raise ValueError(f"{self.name}: {name!r}; expected a word of its own, such as 'rows'")
        return f"%word.{name}"

    def size(self, extent):
        """Return the operand for a size, which is a positive whole number or a name."""
        whole = isinstance(extent, numbers.Integral) and 0 < extent < 2**31
        return str(int(extent)) if whole else self.word(extent, "i64")

    def index(self, i):
        """Return a whole number as an Index. An Index is returned as it is if its loop is open."""
        if isinstance(i, Index):
            return _live(self, i)
        if not isinstance(i, numbers.Integral) or not 0 <= i < 2**31:
            raise TypeError(f"{self.name}: {i!r} is no index; expected a whole number below 2^31 or a loop's counter")
        return Index(self, str(int(i)), int(i) + 1)

    def array(self, name, *shape, rows_of=None):
        """Declare an array, given at each call. With `rows_of`, it holds row numbers of arrays of that size."""
        if str(name) in self.words or not shape:
            raise ValueError(f"{self.name}: array {name!r} needs a shape, and a name of its own")
        for size in shape if rows_of is None else (*shape, rows_of):
            self.size(size)
        self.word(name, "ptr")
        self.arrays[name] = _Array(name, shape, "i64" if rows_of else self.real, rows_of)
        return self.arrays[name]

    def number(self, name):
        """Declare a number, given at each call, such as a learning rate."""
        return Value(self, self.spread(self.real, self.word(name, self.real)))

    def count(self, what):
        """Convert a size or an index to a number to compute with."""
        index = self.index(what) if isinstance(what, Index) else Index(self, self.size(what), what)
        each = index.each or self.spread("i64", index.register)
        return Value(self, self.write(f"sitofp {self.wide('i64')} {each} to {self.kind}"))

    @contextmanager
    def loop(self, extent, lanes=1):
        """Write a loop over [0, extent) that takes `lanes` rows per turn: 1, or all `self.lanes`."""
        most = 1 if self.mask else self.lanes
        if self.scope is None or type(lanes) is not int or lanes not in (1, most):
            raise ValueError(f"{self.name}: {lanes!r} at once; expected {'1' if most == 1 else f'1 or {most}'}")
        end, n = self.size(extent), len(self.lines)
        before, after = _loop_lines(n, end, lanes)
        self.emit(*before)
        self.scopes.append((self, n))
        i = Index(self, f"%i{n}", extent)
        if lanes > 1:
            i.each, self.mask = self.counters(i, end)
        yield i
        if self.scopes.pop() != (self, n):
            raise ValueError(f"{self.name}: loops end in the reverse order of their beginnings")
        if lanes > 1:
            self.mask = None
        self.emit(*after)

    def counters(self, i, end):
        """Return each lane's counter, and the mask of those before the end. The others read row 0 and store nothing."""
        kind, nth = self.wide("i64"), ", ".join(f"i64 {lane}" for lane in range(self.lanes))
        each = self.write(f"add {kind} {self.spread('i64', i.register)}, <{nth}>")
        if end.isdigit() and int(end) % self.lanes == 0:
            return each, self.constant("i1", "true")  # a mask of all lanes costs nothing
        mask = self.write(f"icmp slt {kind} {each}, {self.spread('i64', end)}")
        return self.write(f"select {self.wide('i1')} {mask}, {kind} {each}, {kind} zeroinitializer"), mask


# %% [markdown]
# The blocks and jumps are those of the section *A loop*, and their names get a number, because a program may have many
# loops. One thing is new. `phi` must name the block that a jump comes from, and with loops inside of loops that is no
# longer `entry` or `body`: after an inner loop, the jump back comes from that loop's `after`. So each loop has two
# blocks more, which only jump on. Its `test` is always reached from `before`, and from `again`:
#
# ```
# … ──► before ──► test ──(i < end)──► body … ──► again ──► back to test, with i + step
#                    │
#                    └────(else)───► after
# ```


# %%
#| export assembler most _loop_lines
def _loop_lines(n, end, step):
    """Return the lines before and after the body of loop number n. In it, %i{n} counts from 0 to below `end`."""
    before = [f"br label %before{n}", f"before{n}:", f"br label %test{n}", f"test{n}:"]
    before += [f"%i{n} = phi i64 [0, %before{n}], [%next{n}, %again{n}]", f"%more{n} = icmp slt i64 %i{n}, {end}"]
    before += [f"br i1 %more{n}, label %body{n}, label %after{n}", f"body{n}:"]
    after = [f"br label %again{n}", f"again{n}:", f"%next{n} = add i64 %i{n}, {step}"]
    after += [f"br label %test{n}", f"after{n}:"]
    return before, after


# %% [markdown]
# The place of `x[i, k]` comes from your `flat`. So that `flat` can write instructions, it is called with whole numbers
# in registers, whose `*` and `+` write `mul` and `add`. `_checked_indices` is the check of *Buffers that know their end*. A size
# that is known only at the call is noted in `bounds`.


# %%
#| export assembler
class _IntValue:
    """A whole number in a register. Its * and + write instructions."""

    def __init__(self, a, register, kind):
        self.a, self.register, self.kind = a, register, kind

    def __add__(self, other):
        return _IntValue(self.a, self.a.write(f"add {self.kind} {self.register}, {other.register}"), self.kind)

    def __mul__(self, other):
        return _IntValue(self.a, self.a.write(f"mul {self.kind} {self.register}, {other.register}"), self.kind)


def _checked_indices(a, array, indices):
    """Return an array's indices, each checked now, or noted for the check at the call."""
    if not isinstance(array, _Array) or a.arrays.get(array.name) is not array:
        raise TypeError(f"{a.name}: {array!r} is not an array of this program")
    if len(indices) != len(array.shape):
        raise IndexError(f"{a.name}: {array} needs {len(array.shape)} indices, got {len(indices)}")
    indices = [a.index(i) for i in indices]
    for axis, (i, size) in enumerate(zip(indices, array.shape)):
        if i.extent != size:  # an equal extent is always within range
            a.bounds.append((array, axis, i.extent))
            check_bound(a.name, *a.bounds[-1], {})
    return indices


# %% [markdown]
# `_address_of` then writes the address.


# %%
#| export assembler
def _address_of(a, array, indices):
    """Return the address of array[indices], and where its lanes lie: "side by side", "apart", or "" for one place."""
    *before, last = indices = _checked_indices(a, array, indices)
    apart = any(i.each for i in before) or last.each and not last.register
    kind = a.wide("i64") if apart else "i64"

    def whole(register, each=None):
        if apart:
            register = each or a.spread("i64", register)
        return _IntValue(a, register, kind)

    here, *columns = [whole(i.register, i.each) for i in indices]
    for column, size in zip(columns, array.shape[1:]):
        here = flat(here, whole(a.size(size)), column)
    at = a.write(f"getelementptr {array.kind}, ptr %word.{array.name}, {kind} {here.register}")
    if apart:
        return at, "apart"
    return at, "side by side" if last.each else ""


# %% [markdown]
# What a load gives is a `Value`. If the array holds row numbers, it is an `Index` instead: it stays below the number of
# rows, which stands in `rows_of`. With lanes, LLVM needs a different instruction for numbers that lie side by side and
# for numbers that lie apart, and `_load_lanes` writes it.


# %%
#| export assembler most _Loads.load
def _load_lanes(a, array, address, how):
    """Load with lanes: return a value or an Index with one number for each lane."""
    rows, kind = array.rows_of, a.wide(array.kind)
    if not how:  # one number for all
        one = a.write(f"load {array.kind}, ptr {address}")
        return Index(a, one, rows) if rows else Value(a, a.spread(array.kind, one))
    name, at, mask = "load", "ptr", a.mask
    if how == "apart":  # without a mask, which is quicker: a lane past the end reads row 0, which exists
        name, at, mask = "gather", a.wide("ptr"), a.constant("i1", "true")
    lanes = f"{at} {address}, {a.wide('i1')} {mask}, {kind} zeroinitializer"
    each = a.write(f"call {kind} @llvm.masked.{name}({lanes})")
    return Index(a, None, rows, each) if rows else Value(a, each)


class _Loads(Loops):
    """Loops that can also load from arrays."""

    def load(self, array, *indices):
        """Load array[indices]. A row number becomes an Index into the arrays whose rows it counts."""
        address, how = _address_of(self, array, indices)
        if self.lanes > 1:
            return _load_lanes(self, array, address, how)
        register = self.write(f"load {array.kind}, ptr {address}")
        return Index(self, register, array.rows_of) if array.rows_of else Value(self, register)


# %% [markdown]
# A store gives nothing, and sets no register. It refuses arrays of row numbers, which were checked before the program
# runs and must stay as they are.


# %%
#| export assembler most Assembler.store
def _store_lanes(a, register, array, address, how):
    """Store with lanes: one number from each active lane."""
    if how:
        name, at = ("scatter", a.wide("ptr")) if how == "apart" else ("store", "ptr")
        mask = f"{a.wide('i1')} {a.mask}"
        return a.emit(f"call void @llvm.masked.{name}({a.kind} {register}, {at} {address}, {mask})")
    if a.mask:
        raise TypeError(f"{a.name}: {array} has one place there, each lane a number; store a total after them")
    one = a.write(f"extractelement {a.kind} {register}, i32 0")
    a.emit(f"store {a.real} {one}, ptr {address}")


class Assembler(_Loads):
    """A writer of one program, with arrays, loads, stores and sums. A loop may take a row in each lane.

    Raises TypeError, ValueError or IndexError for what cannot be part of a program."""

    def store(self, value, array, *indices):
        """Store a value into array[indices]. An array of row numbers is read-only."""
        address, how = _address_of(self, array, indices)
        register = _operand(self, value)
        if array.rows_of:
            raise TypeError(f"{self.name}: {array} holds row numbers, which a program only reads")
        if self.lanes > 1:
            return _store_lanes(self, register, array, address, how)
        self.emit(f"store {self.real} {register}, ptr {address}")

    def sum(self):
        """Return a new running sum, which starts at 0.0."""
        return _Sum(self)

    def assemble(self):
        """End the program, compile it to machine code, and return it."""
        return Program(self)


# %% [markdown]
# ## The assembler in use (6 min)
#
# Each device, a CPU or a GPU, has memory of its own. A piece of it, with its device, its shape and its dtype, is called
# a **buffer**. `pool()` returns this computer's devices by name. `device.put(array)` makes a buffer that holds the
# numbers of an array, and `device.alloc(shape, dtype)` makes one whose numbers are not set yet.

# %%
cpu = pool()["cpu:0"]
here = cpu.put(np.arange(3.0))
print(here, here.numpy(), cpu.used, "bytes in use on", cpu.name)

# %% [markdown]
# The real assembler works like the small one above, and adds named arrays and checks. A `Register` is now called a
# `Value`. This is all that you need:
#
# | in Python | in the program |
# |---|---|
# | `a = Assembler("first", "f8")` | a new program, in float64 |
# | `x = a.array("x", "rows", 2)` | memory with a shape; the call will say how many `"rows"` there are |
# | `with a.loop("rows") as i:` | the loop, over the rows |
# | `a.load(x, i, 0)`, `a.store(v, x, i, 0)` | a number from memory, and back; `flat` finds the place of `x[i, 0]` |
# | `v * 2.0 + 1.0`, `v - w` | instructions; the minus calls your `subtract` |
# | `a.assemble()` | the end: a `Program`, which is called with buffers by name |
#
# The first program again, for any number of rows:

# %%
a = Assembler("first", "f8")
x, y = a.array("x", "rows"), a.array("y", "rows")
with a.loop("rows") as i:
    v = a.load(x, i)
    a.store(v * v + v, y, i)
first = a.assemble()

here, out = cpu.put(np.arange(3.0, 8.0)), cpu.alloc((5,), "f8")
first(x=here, y=out)
out.numpy()

# %% [markdown]
# What does your `flat` do here? These are the lines that a load of `x[i, 2]` writes, in rows of three:

# %%
a = Assembler("peek", "f8")
x = a.array("x", "rows", 3)
with a.loop("rows") as i:
    a.load(x, i, 2)
    print("\n".join(a.lines[-4:]))

# %% [markdown]
# The `mul` and the `add` come from your `flat`. (`%word.x` is the address at which x begins.) Given numbers, `flat`
# computes. Given registers, it writes instructions.
#
# A column that does not exist is refused while the program is written, and an array that is too short is refused at the
# call:

# %%
try:
    a.load(x, 0, 3)
except IndexError as error:
    print(error)
try:
    first(x=here, y=cpu.alloc((4,), "f8"))
except ValueError as error:
    print(error)

# %% [markdown]
# **A good place to stop.** You have an assembler that writes loops and lets no address leave its array.

# %% [markdown]
# ## The line as a program (13 min)
#
# We start with a small piece: the loss of ten rows. Two things are new.
#
# - A batch is a list of row numbers. So a row is found in two steps: load its number, then load what is in that row.
# - The squares must be added up, but a value lasts only for one turn of the loop. A **sum** is a place in memory that
#   lasts longer. `a.sum()` starts at 0.0, `+=` adds to it, and `total()` gives the result.
#
# (`a.count("batch")` is the size of the batch, as a number to compute with.)

# %%
a = Assembler("loss_of_a_batch", "f8")
x, y = a.array("x", "rows", 2), a.array("y", "rows", 1)
w, b = a.array("w", 2, 1), a.array("b", 1, 1)
picked = a.array("picked", "batch", rows_of="rows")  # row numbers of x and y
out, loss = a.array("out", 1), a.sum()
with a.loop("batch") as r:
    i = a.load(picked, r)
    row = [a.load(x, i, 0), a.load(x, i, 1)]
    column = [a.load(w, 0, 0), a.load(w, 1, 0)]
    error = dot(row, column) + a.load(b, 0, 0) - a.load(y, i, 0)
    loss += error * error
a.store(loss.total() / a.count("batch"), out, 0)
loss_of_a_batch = a.assemble()
print("\n".join(loss_of_a_batch.text.split("\n")[-18:-13]))

# %% [markdown]
# Here is the end of the loop's body: your subtraction, a product, and for `+=` a load, an addition and a store. Now we
# hand over the memory and call it:

# %%
x, y, w, b = map(cpu.put, (task.x, task.y, *task.weights))
answer = cpu.alloc((1,), "f8")
loss_of_a_batch(x=x, y=y, w=w, b=b, picked=cpu.put(ten), out=answer)
print("equal to the record's first loss:", answer.numpy()[0] == record[0])

# %% [markdown]
# The two losses are equal to the last bit. The Python function `dot` ran while the program was *written*. The machine
# sees no `dot` and no call, only products and sums.
#
# ### Your turn: the update
#
# One piece is missing: the update at the end of a step.


# %%
#| export formulas blank descend
def descend(w, slope, learning_rate):
    """The weight w, a number, after one step against its slope."""
    ...  # one line


# %% [markdown]
# <details><summary>Hint</summary>Against the slope: where the slope is positive, w becomes smaller.</details>
# <details><summary>Second hint</summary>How far: the rate times the slope.</details>
# <details><summary>Solution</summary>
#
# ```python
# def descend(w, slope, learning_rate):
#     """The weight w, a number, after one step against its slope."""
#     return w - learning_rate * slope
# ```
# </details>
#
# By hand: a weight of 1, a slope of 2 and a rate of 0.5 give 0.

# %%
print(descend(1.0, 2.0, 0.5))

# %% [markdown]
# Now the whole program for the line. Its two loops go over the steps and over the rows of a batch:
#
# 1. The arrays and numbers that the call hands over come first.
# 2. Each step begins one sum for the loss, and one for each slope.
# 3. The rows of the batch add to these sums, through your `line_slopes`.
# 4. Then the weights move, through your `descend`.
#
# (`a.lanes` is 1 here; the section *Lanes* explains it. `functools.cache` keeps each program for the next call.)
#
# **The marks `# model`, `# forward`, `# loss`, `# backward` and `# update` are in the code of every level**, so that
# the levels can be laid side by side.


# %%
#| export tasks
"""The two tasks in machine code. One call of a program runs any number of steps."""


@functools.cache
def line_program(dtype, shapes, lanes=None):
    """Return the program that trains w[features, 1] and b[1, 1], for any numbers of rows, steps and rows per batch."""
    a, features = Assembler("line", dtype, lanes), shapes[0][0]
    x, y = a.array("x", "rows", features), a.array("y", "rows", 1)
    w, b = a.array("w", features, 1), a.array("b", 1, 1)  # model

    batches, losses = a.array("batches", "steps", "batch", rows_of="rows"), a.array("losses", "steps")
    n, rate = a.count("batch"), a.number("rate")
    g = 1.0 / n
    with a.loop("steps") as step:
        loss, dw, db = a.sum(), [a.sum() for _ in range(features)], a.sum()
        with a.loop("batch", a.lanes) as r:
            i = a.load(batches, step, r)
            row = [a.load(x, i, k) for k in range(features)]
            prediction = dot(row, [a.load(w, k, 0) for k in range(features)]) + a.load(b, 0, 0)  # forward
            error = prediction - a.load(y, i, 0)  # loss
            loss += error * error
            slopes, de = line_slopes(error, row, g)  # backward
            for k in range(features):
                dw[k] += slopes[k]
            db += de
        a.store(loss.total() / n, losses, step)
        for k in range(features):  # update
            a.store(descend(a.load(w, k, 0), dw[k].total(), rate), w, k, 0)
        a.store(descend(a.load(b, 0, 0), db.total(), rate), b, 0, 0)
    return a.assemble()


# %% [markdown]
# ## A program that predicts (3 min, optional)
#
# A prediction takes a smaller program, which only goes forward. **Run this cell and go on with the next section.**
# `forward` is a function that computes one row, such as `_dense`: a row times each column of weights, plus the bias.
# The line has one column.


# %%
#| export tasks
def _dense(inputs, w, b):
    """Pass one row through one layer: dot(inputs, w[:, j]) + b[0][j] for each column j."""
    return [dot(inputs, [row[j] for row in w]) + bias for j, bias in enumerate(b[0])]


def _each(array, make):
    """Return make(array, k, j) for each number of an array of weights, in rows."""
    return [[make(array, k, j) for j in range(array.shape[1])] for k in range(array.shape[0])]


@functools.cache
def _predict_program(forward, names, dtype, shapes):
    """Return a program that stores the last result of `forward` for each row."""
    a = Assembler("predict", dtype)
    x, out = a.array("x", "rows", shapes[0][0]), a.array("out", "rows", 1)
    weights = [_each(a.array(name, *shape), a.load) for name, shape in zip(names, shapes)]
    with a.loop("rows", a.lanes) as r:
        *_, answer = forward([a.load(x, r, k) for k in range(x.shape[1])], *weights)
        a.store(answer, out, r, 0)
    return a.assemble()


# %% [markdown]
# ## The line, trained (8 min)
#
# Every level gives back the same kind of result, a `Fit`. `check_task` from `levels/support` refuses wrong data before
# anything runs.

# %%
#| export tasks
from collections.abc import Callable
from typing import NamedTuple

from levels.support.checks import check_inputs, check_task


class Fit(NamedTuple):
    """The result of training."""

    losses: np.ndarray  # [steps], each taken before its update
    weights: list  # shaped like the argument
    predict: Callable  # x[m, features] -> [m, 1]


# %% [markdown]
# `_fit` puts everything into memory, calls the program once for all steps, and collects the results:


# %%
#| export tasks
def _fit(program, forward, names, x, y, weights, batches, learning_rate):
    """Train with one call of a program. `names` are its arrays of weights; `forward` predicts one row."""
    cpu, dtype, shapes = pool()["cpu:0"], x.dtype, tuple(w.shape for w in weights)
    held = {name: cpu.put(w) for name, w in zip(names, weights)}
    losses = cpu.alloc((len(batches),), dtype)
    data = dict(x=cpu.put(x), y=cpu.put(y), batches=cpu.put(np.asarray(batches, np.int64)))
    program(dtype, shapes)(**data, **held, losses=losses, rate=learning_rate)

    def predict(x):
        check_inputs(x, dtype, shapes[0][0])
        out = cpu.alloc((len(x), 1), dtype)
        _predict_program(forward, names, dtype, shapes)(x=cpu.put(x), out=out, **held)
        return out.numpy()

    return Fit(losses.numpy(), [w.numpy() for w in held.values()], predict)


# %% [markdown]
# With it, the task takes two lines:


# %%
#| export tasks
def linear_regression(x, y, weights, batches, learning_rate=0.0005):
    """Train a line by SGD on the mean squared error. For the shapes, see `Fit` and `check_task`."""
    check_task(x, y, weights, batches, learning_rate, units=[1])
    return _fit(line_program, _dense, ("w", "b"), x, y, weights, batches, learning_rate)


# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "The first loss of your program was equal to the record, to the last bit. Which of these changes to the program "
    "can change the last bits of its losses?",
    choices=[
        "keep the weights in registers, and store them after the last step",
        "go through the rows of each batch in the reverse order",
        "store each error to memory, and load it again",
        "none of them",
    ],
    answer="go through the rows of each batch in the reverse order",
    because="A load or a store moves the 64 bits of a float64 and changes none of them. But each addition rounds its "
    "result. In another order, the additions have other results to round.",
)

# %%
fit = linear_regression(task.x, task.y, task.weights, task.batches, task.learning_rate)
print("losses equal:", fit.losses.tolist() == record)
print("weights equal:", [v.tolist() for v in fit.weights] == record_weights)

reverse = linear_regression(task.x, task.y, task.weights, task.batches[:, ::-1], task.learning_rate)
print(f"rows reversed: {np.sum(reverse.losses != fit.losses):,} of 8,000 losses differ")
print(f"the last loss: {fit.losses[-1]:.4g} ({fit.losses[-1].hex()})")

# %% [markdown]
# All 8,000 losses are equal. Your own instructions train a line.
#
# The last loss is printed twice: rounded, and in **hexadecimal**. `0x1.26b…p+3` means 1.26b… in base 16, times 2³
# ([`float.hex`](https://docs.python.org/3/library/stdtypes.html#float.hex)). Each digit is four bits, so nothing is
# rounded. You will meet this number on every level.
#
# **Why does the last bit matter?** A test with a tolerance lets small mistakes pass; a test for equal bits does not. So
# on all five levels you can swap any part, and one comparison tells whether the result is the same. Where bits differ,
# there is a cause: the operations have another order, a product and a sum are **fused** into one instruction, which
# rounds once instead of twice, or a sum is split into other parts.
#
# The same function works on real data, 342 penguins near Palmer Station, Antarctica
# ([Gorman, Williams and Fraser, 2014](https://doi.org/10.1371/journal.pone.0090081)). How heavy is a penguin with this
# bill and these flippers? (The inputs are *standardised*: their mean is subtracted, and the result is divided by their
# standard deviation.)

# %%
penguins = tasks.penguins_mass()
penguin_fit = linear_regression(*penguins[:2], *penguins[4:7])
figures.regression(penguins, penguin_fit)

# %% [markdown]
# **A good place to stop.** Your own instructions have trained the line, and its losses are right to the last bit.

# %% [markdown]
# ## Lanes (2 min)
#
# Most processors also have wider registers. One instruction then adds 4, 8 or 16 pairs of float32 numbers at once. Each
# place in such a register is called a **lane**. Work in lanes is called *SIMD*; work with one lane is called *scalar*.
#
# ```
# one lane           x       +       y       =       z          one addition
# four lanes   [x0 x1 x2 x3] + [y0 y1 y2 y3] = [z0 z1 z2 z3]    four, by one instruction
# ```


# %% tags=["nbval-ignore-output"]
from levels.support.machine import host_lanes

print(host_lanes(), "lanes here")

# %% [markdown]
# The assembler uses them: `a.loop("batch", a.lanes)` works on one row in each lane. A sum then has one part per lane,
# and `total()` adds the parts. That is another order, so it gives other last bits. Therefore a float64 program has one
# lane and keeps the order of the record, and a float32 program uses all lanes:

# %%
x, y, *start = (array.astype("f4") for array in (task.x, task.y, *task.weights))
single = linear_regression(x, y, start, task.batches, task.learning_rate)
print(f"last loss in float64 {fit.losses[-1]:.3f}, in float32 {single.losses[-1]:.3f}")

# %% [markdown]
# The two agree to three decimals.

# %% [markdown]
# ## exp and log (14 min, optional)
#
# The net of the next section needs `exp` and `log`. The course has its own, because those of different libraries differ
# in the last bit. **Run these cells and go on with the next section.** The notebook
# [exp and log](more/01_exp_and_log.ipynb) explains each line.
#
# The idea of `exp` is to split x into n · log 2 and a small rest r. Then eˣ = 2ⁿ · eʳ. A few terms of a series give eʳ,
# and a product with 2ⁿ only changes a number's exponent. `scaled(x, n)` is that product. `exponent(x)` is the reverse:
# it finds n.

# %%
#| export elementary
_SINGLE, _DOUBLE = np.dtype("f4"), np.dtype("f8")
# an integer of the same width, the number of fraction bits, the exponent's bias, the bits of √½
_FORMAT = {_SINGLE: ("i32", 23, 127, 0x3F3504F3), _DOUBLE: ("i64", 52, 1023, 0x3FE6A09E667F3BCD)}


def scaled(x, n):
    """Return x · 2ⁿ for a whole number n, in two steps: 2ⁿ may overflow even if the result does not."""
    if not isinstance(n, Value):
        half = int(n) >> 1
        return x * math.ldexp(1.0, half) * math.ldexp(1.0, int(n) - half)
    a, (whole, fraction, bias, _) = n.a, _FORMAT[n.a.dtype]
    kind = a.wide(whole)
    both = a.write(f"fptosi {a.kind} {_operand(a, n + 2.0 * bias)} to {kind}")
    half = a.write(f"ashr {kind} {both}, {a.constant(whole, 1)}")
    for part in (half, a.write(f"sub {kind} {both}, {half}")):
        bits = a.write(f"shl {kind} {part}, {a.constant(whole, fraction)}")
        x = x * Value(a, a.write(f"bitcast {kind} {bits} to {a.kind}"))
    return x


# %% [markdown]
# On Python's numbers `exponent` uses `math.frexp`. In a program it shifts the exponent's bits out of the number.


# %%
#| export elementary
def exponent(x):
    """Return the e for which x / 2ᵉ is in [√½, √2). x is a positive normal float or a Value."""
    if not isinstance(x, Value):
        m, e = math.frexp(x)
        return float(e - (0.0 <= m < 0.7071067811865476))
    a, (whole, fraction, _, root) = x.a, _FORMAT[x.a.dtype]
    kind = a.wide(whole)
    bits = a.write(f"bitcast {a.kind} {_operand(a, x)} to {kind}")
    bits = a.write(f"sub {kind} {bits}, {a.constant(whole, root)}")
    bits = a.write(f"ashr {kind} {bits}, {a.constant(whole, fraction)}")
    return Value(a, a.write(f"sitofp {kind} {bits} to {a.kind}"))


# %% [markdown]
# `_make_exp` makes the function for one format, from the constants of that format.


# %%
#| export elementary
def _make_exp(bottom, top, ln2, ln2_rest, series):
    """Return eˣ for one dtype. It is 0 below `bottom`; 2^`top` overflows. Method and float32's constants: Cephes."""

    def exp(x):
        y = select(x < bottom, bottom, x)  # a NaN stays a NaN
        n = rint(y * 1.4426950408889634)
        n = select(n < top, n, top)  # a NaN becomes `top`, too, as no exponent is NaN
        r = (y - n * ln2) - n * ln2_rest
        p = series[0]
        for c in series[1:]:
            p = p * r + c
        return scaled(p * (r * r) + r + 1.0, n)

    return exp


_LN2 = 6.93147180369123816490e-01, 1.90821492927058770002e-10  # log 2 and the remainder
_CEPHES = 1.38144335e-3, 8.36879667e-3, 4.16683964e-2, 1.66665196e-1, 4.9999994e-1
EXP = {
    _DOUBLE: _make_exp(-746.0, 1025.0, *_LN2, tuple(1.0 / math.factorial(k) for k in range(13, 1, -1))),
    _SINGLE: _make_exp(-104.0, 129.0, 0.693359375, -2.12194440e-4, _CEPHES),
}

# %% [markdown]
# `log` works the other way. It takes a number apart into 2ᵉ and a rest near 1, and sums up a series in the rest.


# %%
#| export elementary
def _make_log(tiny, shift, ln2, ln2_rest, even, odd):
    """Return log for one dtype. Below `tiny`, x is first scaled by 2^`shift`. Method and constants: fdlibm, FreeBSD."""
    scale, infinity, nan = 2.0**shift, math.inf, math.nan  # named, so that a kernel can give them its dtype

    def log(x):
        small = x < tiny
        y = select(small, x * scale, x)
        e = exponent(y)
        f = scaled(y, 0.0 - e) - 1.0
        s = f / (2.0 + f)
        z = s * s
        w = z * z
        t, u = even[0], odd[0]
        for c in even[1:]:
            t = t * w + c
        for c in odd[1:]:
            u = u * w + c
        r = w * t + z * u
        h = 0.5 * f * f
        e = select(small, e - shift, e)
        result = e * ln2 - ((h - (s * (h + r) + e * ln2_rest)) - f)
        result = select(x > 0.0, result, -infinity)
        result = select(x < 0.0, nan, result)
        return select(x < infinity, result, x)  # infinity and NaN are their own logarithm

    return log


# %% [markdown]
# Its constants follow, and then the two functions, which choose by the dtype.

# %%
#| export elementary
_EVEN = 1.531383769920937332e-01, 2.222219843214978396e-01, 3.999999999940941908e-01
_ODD = 1.479819860511658591e-01, 1.818357216161805012e-01, 2.857142874366239149e-01, 6.666666666666735130e-01
_SHORT = (0.24279078841, 0.40000972152), (0.28498786688, 0.66666662693)
LOG = {
    _DOUBLE: _make_log(2.0**-1022, 54.0, *_LN2, _EVEN, _ODD),
    _SINGLE: _make_log(2.0**-126, 25.0, 0.69313812256, 9.0580006145e-6, *_SHORT),
}


def exp(x):
    """Return eˣ for a Python float or a value in a program."""
    return EXP[x.a.dtype if isinstance(x, Value) else _DOUBLE](x)


def log(x):
    """Return the natural logarithm of a Python float or a value in a program."""
    return LOG[x.a.dtype if isinstance(x, Value) else _DOUBLE](x)


# %%
print(f"{exp(1.0):.10f} {log(exp(1.0)):.10f}")

# %% [markdown]
# ## A net (16 min)
#
# Here are two rings of points, one inside the other. No straight line separates them, but a small deep neural network
# (DNN) nearly does. It has three **dense layers**. Each consists of one or more lines side by side, its **units**:
#
# ```
# row ──► 4 units, relu ──► 8 units, relu ──► 1 unit, sigmoid ──► p
# ```
#
# A **relu** keeps a positive number and turns any other into 0. The **sigmoid** turns the last number into a
# probability p. The loss is the **binary cross-entropy**: each row counts `-log p` if y = 1 and `-log(1 - p)` if y = 0,
# and the loss is the mean over all rows.

# %%
rings = tasks.rings()
figures.classes(rings)

# %% [markdown]
# A relu chooses, but a program has no `if`. `select(condition, x, y)` writes an instruction that takes x where the
# condition holds, and y elsewhere. On Python's numbers it chooses at once. So the functions below compute with numbers,
# and write instructions for values:


# %%
#| export tasks
def _relu(z):
    """Return z, or 0.0 if z <= 0. A NaN stays a NaN, because the comparison is false for it."""
    return select(z <= 0.0, 0.0, z)


def _forward(row, w1, b1, w2, b2, w3, b3):
    """Return the hidden layers' outputs and the probability for one row."""
    h1 = [_relu(z) for z in _dense(row, w1, b1)]
    h2 = [_relu(z) for z in _dense(h1, w2, b2)]
    (z,) = _dense(h2, w3, b3)
    return h1, h2, 1.0 / (1.0 + exp(0.0 - z))


# %%
floats = [v.tolist() for v in rings.weights]  # each a list of rows
point, answer = rings.x[0].tolist(), float(rings.y[0, 0])
h1, h2, p = _forward(point, *floats)
print(f"the first point: probability {p:.4f}, true answer {answer:.0f}")

# %% [markdown]
# ### Your turn: back through relu
#
# The gradient goes back through the layers, from the last to the first. Let `d[j]` be the slope of the loss at unit j
# of the next layer. Output k of this layer, `h[k]`, goes into each of those units, and unit j multiplies it by
# `w[k][j]`:
#
# ```
#            ┌─ w[k][0] ─► unit 0, slope d[0]
#   h[k]  ───┼─ w[k][1] ─► unit 1, slope d[1]
#            └─ w[k][2] ─► unit 2, slope d[2]
#
#   slope at h[k]:  d[0]·w[k][0] + d[1]·w[k][1] + d[2]·w[k][2]
# ```
#
# But where relu made the output 0, a tiny change of its input changes nothing, so the slope is 0. Use `select`, and
# `dot`, which adds in the right order: j = 0 first.


# %%
#| export tasks blank through_relu
def through_relu(d, h, w):
    """The slopes at a layer's units, a list of numbers: 0 where relu cut, else the sum over the next layer's units."""
    ...  # a list with one number for each k, from the slopes d[j], the outputs h[k] and the weights w[k][j]


# %% [markdown]
# <details><summary>Hint</summary>For each k one number: the sum over j of d[j] · w[k][j], or 0.0.</details>
# <details><summary>Second hint</summary><code>dot(d, row)</code> is such a sum, for a row of w.
# <code>select(h[k] &lt;= 0.0, 0.0, …)</code> chooses: a program has no <code>if</code>.</details>
# <details><summary>Solution</summary>
#
# ```python
# def through_relu(d, h, w):
#     """The slopes at a layer's units, a list of numbers: 0 where relu cut, else the sum over the next layer's units."""
#     return [select(output <= 0.0, 0.0, dot(d, row)) for output, row in zip(h, w)]
# ```
# </details>
#
# By hand: 10 · 3 for the first output, and 0 for the second, which relu cut.

# %%
print(through_relu([10.0], [1.0, 0.0], [[3.0], [5.0]]))

# %% [markdown]
# The way back begins at the loss. It uses `c`, which is p **clipped**: kept away from 0 and 1, where a logarithm would
# be infinite. Each row of this table multiplies by one more slope. The slope of log c is 1/c, and the slope of log(1-c)
# is -1/(1-c). Here `g` is -1/n.
#
# | forward | its slope | code |
# |---|---|---|
# | `loss = g·(y·log c + (1-y)·log(1-c))` | `g·y/c - g·(1-y)/(1-c)` | `dc = …` |
# | `c = clipped(p)` | 1, or 0 where it is cut | `dp = select(…, dc, …)` |
# | `p = 1/(1 + exp(-z))` | `p·(1-p)` | `dp * p * (1 - p)` |


# %%
#| export tasks most _slope_at_z
def _clipped(p):
    """Clip a probability to [1e-7, 1 - 1e-7]: at 0 and 1, a logarithm would be infinite."""
    return select(p < 1e-7, 1e-7, select(p > 1.0 - 1e-7, 1.0 - 1e-7, p))


def _slope_at_z(target, p, c, g):
    """Return the slope of a row's loss at z, the last layer's output before the sigmoid."""
    dc = g * target / c - g * (1.0 - target) / (1.0 - c)
    dp = select(p > 1e-7, select(p < 1.0 - 1e-7, dc, 0.0), 0.0)
    return dp * p * (1.0 - p)


# %%
dz = _slope_at_z(answer, p, _clipped(p), -1.0)
print(f"slope at z {dz:.4f}   probability minus answer {p - answer:.4f}")

# %% [markdown]
# For one row, the product of the three slopes is `p - y`, as in textbooks. The record keeps the three factors: `p - y`
# would round differently.
#
# From there the slopes go back through your `through_relu`. The slope for a weight is its input times the slope at its
# unit:


# %%
#| export tasks
def _add_slopes(dw, db, inputs, d):
    """Add one row's slopes to the sums of a layer, from its inputs and the slopes d at its units."""
    for j, dj in enumerate(d):
        db[0][j] += dj
        for k, value in enumerate(inputs):
            dw[k][j] += value * dj


# %% [markdown]
# The net's program is like the line's, but has six arrays of weights. You may skip it; it comes again below.

# %% tags=["hide-input"]
#| export tasks
_NET = "w1", "b1", "w2", "b2", "w3", "b3"  # the net's arrays of weights


@functools.cache
def net_program(dtype, shapes, lanes=None):
    """Return the program that trains the net's six arrays, for any numbers of rows, steps and rows per batch."""
    a = Assembler("net", dtype, lanes)
    x, y = a.array("x", "rows", shapes[0][0]), a.array("y", "rows", 1)
    arrays = [a.array(name, *shape) for name, shape in zip(_NET, shapes)]  # model

    batches, losses = a.array("batches", "steps", "batch", rows_of="rows"), a.array("losses", "steps")
    n, rate = a.count("batch"), a.number("rate")
    g = -1.0 / n
    with a.loop("steps") as step:
        weights = [_each(array, a.load) for array in arrays]
        w1, b1, w2, b2, w3, b3 = weights
        sums = [_each(array, lambda *place: a.sum()) for array in arrays]
        dw1, db1, dw2, db2, dw3, db3 = sums
        loss = a.sum()
        with a.loop("batch", a.lanes) as r:
            i = a.load(batches, step, r)
            row, target = [a.load(x, i, k) for k in range(x.shape[1])], a.load(y, i, 0)
            h1, h2, prediction = _forward(row, *weights)  # forward
            c = _clipped(prediction)  # loss
            loss += (target - 1.0) * log(1.0 - c) - target * log(c)
            dz = [_slope_at_z(target, prediction, c, g)]  # backward
            dh2 = through_relu(dz, h2, w3)
            dh1 = through_relu(dh2, h1, w2)
            _add_slopes(dw1, db1, row, dh1)
            _add_slopes(dw2, db2, h1, dh2)
            _add_slopes(dw3, db3, h2, dz)
        a.store(loss.total() / n, losses, step)
        for array, w, dw in zip(arrays, weights, sums):  # update
            for k, j in np.ndindex(*array.shape):
                a.store(descend(w[k][j], dw[k][j].total(), rate), array, k, j)
    return a.assemble()


# %% [markdown]
# The task takes two lines again:


# %%
#| export tasks
def dnn_classifier(x, y, weights, batches, learning_rate=0.01):
    """Train a features-4-8-1 net (relu, relu, sigmoid) by SGD on binary cross-entropy; see `Fit`, `check_task`."""
    check_task(x, y, weights, batches, learning_rate, units=[4, 8, 1])
    return _fit(net_program, _forward, _NET, x, y, weights, batches, learning_rate)


# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "24,000 steps of 100 rows train the net: 2.4 million rows, forward and backward. How long will that take?",
    choices=["about a second, or less", "about ten seconds", "about a minute", "an hour"],
    answer="about a second, or less",
    because="A row takes a few hundred instructions, so 2.4 million rows take about a billion, and a core runs a few "
    "billion per second.",
)

# %% tags=["nbval-ignore-output"]
import time

start = time.perf_counter()
ring_fit = dnn_classifier(*rings[:2], *rings[4:7])
print(f"{time.perf_counter() - start:.2f} s")

# %% [markdown]
# Plain Python would take about a minute, so we compare only 100 steps:

# %%
short = rings._replace(batches=rings.batches[:100])
first_losses, _ = reference.dnn_classifier(*short[:2], *short[4:7], exp, log)
print("equal to the record, 100 steps:", ring_fit.losses[:100].tolist() == first_losses)
print(f"last loss {ring_fit.losses[-1]:.4g} ({ring_fit.losses[-1].hex()})")

# %%
figures.classifier(rings, ring_fit)

# %% [markdown]
# The rings overlap, so no border can be right for every point.
#
# The same net tells female from male penguins. The rows of the table are the true answers, and the columns are the
# net's.

# %%
sex = tasks.penguins_sex()
figures.confusion(sex, dnn_classifier(*sex[:2], *sex[4:7]))

# %% [markdown]
# **A good place to stop.** Your own instructions have trained both models.

# %% [markdown]
# ## Three measurements (5 min, optional)
#
# The next section uses three numbers about your machine: its peak, its bandwidth and its launch time. Our own programs
# and NumPy's `max` measure them. **Run these cells and go on with the next section.** The notebook
# [measuring](more/01_measuring.ipynb) explains them.

# %%
#| export roofline
"""Measurements for the roofline: this machine's peak, bandwidth and launch time."""

import statistics
import sys
from timeit import repeat


def seconds(run, repeats=7):
    """Return the median seconds of `run` on this thread's clock (on Windows, where it is coarse, the wall clock)."""
    clock = time.perf_counter if sys.platform == "win32" else time.thread_time
    return statistics.median(repeat(run, timer=clock, repeat=repeats, number=1))


# %% [markdown]
# The peak is measured with several independent sums in all lanes. The program touches no memory inside its loops.


# %%
#| export roofline
def _measure_turn(device, sums, turns=200_000):
    """Measure the seconds for one multiply-add on each of `sums` independent sums, in all lanes, without memory."""
    a = Assembler("peak", "f4")
    factor, out = a.load(a.array("factor", 1), 0), a.array("out", 1)
    totals = [a.sum() for _ in range(sums)]
    with a.loop(a.lanes, a.lanes), a.loop(turns):  # all lanes at once, many times
        for total in totals:
            total += total.value() * factor  # the numbers stay 0.0: only the time matters
    a.store(sum((total.total() for total in totals), 0.0), out, 0)
    call = a.assemble().bind(factor=device.put(np.ones(1, "f4")), out=device.alloc((1,), "f4"))
    return seconds(call) / turns


# %% [markdown]
# The bandwidth is measured by reading much memory once. The launch time is that of an almost empty program. (`bind`
# checks the buffers once, and returns a call without arguments.)


# %%
#| export roofline
def _measure_bandwidth(device, nbytes=2**28):
    """Measure the bytes per second that one core reads from memory, not from caches."""
    x = device.put(np.ones(nbytes // 4, "f4"))
    return nbytes / seconds(x.data.max)  # NumPy's `max` reads each number once, in lanes


def _measure_launch(device, calls=1000):
    """Measure the seconds that one call of a bound, almost empty program takes."""
    a = Assembler("nothing", "f4")
    a.store(0.0, a.array("out", 1), 0)
    call = a.assemble().bind(out=device.alloc((1,), "f4"))
    return seconds(lambda: [call() for _ in range(calls)]) / calls


MEASURES["peak"] = lambda device: max(2 * host_lanes() * n / _measure_turn(device, n) for n in (8, 12, 16, 24))
MEASURES["bandwidth"] = _measure_bandwidth
MEASURES["launch_time"] = _measure_launch

# %% [markdown]
# ## What a step costs (7 min)
#
# Three numbers describe the speed of a machine. Its **peak** is the number of arithmetic operations (**flops**) that a
# core does per second. Its **bandwidth** is the number of bytes that it reads from memory per second. And each call of
# a program, a **launch**, takes some time before any work is done. Here they are for this machine:

# %% tags=["nbval-ignore-output"]
print(f"peak of one core {cpu.peak / 1e9:.0f} billion flops per second, all lanes at work")
print(f"bandwidth {cpu.bandwidth / 1e9:.1f} GB per second, launch {cpu.launch_time * 1e9:.0f} ns")

# %% [markdown]
# With these numbers we can predict. A program cannot end before its operations are done, nor before its bytes are
# moved. This limit is called the **roofline**
# ([Williams, Waterman and Patterson, 2009](https://doi.org/10.1145/1498765.1498785)). The launches come on top:
#
# ```
# seconds = launches · launch_time + max(flops / peak, bytes / bandwidth)
# ```
#
# A step of the line reads ten rows. Each row has two inputs, an answer and a row number: 32 bytes in float64.
# `compare.operations` counts the operations in the program's text. One launch does all steps, so it hardly counts:

# %% tags=["nbval-ignore-output"]
from course import compare


def program_of(program, task, dtype):
    return program(np.dtype(dtype), tuple(w.shape for w in task.weights))


line = program_of(line_program, task, "f8")
flops = compare.operations(line)
print(f"{flops} operations per row")
print(f"predicted   {1e6 * cpu.roofline(10 * flops, 10 * 32):.4f} µs per step")
print(f"measured    {1e6 * compare.step_time(line, task):.4f} µs")

# %% [markdown]
# The two need not be equal. The program can be quicker, because its rows come from a *cache*, a small memory inside the
# processor. It can be slower, because many operations wait for the result of another.
#
# Does a larger batch help?

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "A batch of 100 is ten times the work of a batch of 10. In float32, with lanes: how many times as long does a step "
    "take?",
    slider=(1, 10, 0.5),
    answer=(3, 7),
    because="With sixteen lanes, ten rows take one turn of the loop, and a hundred rows take seven. Also, each step "
    "ends by adding up the lanes of 61 sums and moving the net's 61 weights, however many rows it had.",
)

# %% tags=["nbval-ignore-output"]
for lanes, dtype in {"one lane": "f8", "all lanes": "f4"}.items():
    program = program_of(net_program, rings, dtype)
    small, large = (1e6 * compare.step_time(program, rings, batch) for batch in (10, 100))
    print(f"{lanes:9}   batch 10 {small:5.2f} µs   batch 100 {large:5.2f} µs   {large / small:.1f} times")

# %% [markdown]
# With lanes, a row costs less in a larger batch.
#
# The higher levels will call many small programs in each step. **What would that cost?** Move the sliders with the
# mouse, or with Tab and the arrow keys. On the left, the dot is the step, and the grey line is the roofline.

# %% tags=["hide-input", "nbval-ignore-output"]
# the figure with two sliders: run me
from course.figures import widgets

flops = compare.operations(program_of(net_program, rings, "f4"))  # per row; its bytes are 20


def draw(batch, launches):
    return figures.step_cost(cpu.peak, cpu.bandwidth, cpu.launch_time, flops, 20, batch, launches)


widgets.explore(
    draw,
    batch=[10**k * m for k in range(5) for m in (1, 2, 5)] + [100_000],
    launches=[0.001, 0.01, 0.1, 1, 2, 5, 10, 20, 50, 100],
    start={"batch": 100, "launches": 50},
    text="A training step of the DNN, predicted: launches, arithmetic and memory.",
)

# %% [markdown]
# With fifty launches and a batch of a hundred, nearly all the time goes into calling. In a large batch, this cost
# matters less. One large program avoids it, and on level 3 a compiler will write one.

# %% [markdown]
# ## Side by side with plain Python (6 min)
#
# Plain Python counts as level 0. Here are levels 0 and 1, mark by mark. Click on *Two rings* to see the net, and on
# **"5 more lines"** to see what a line calls. In plain Python, each operation counts as a **launch** that moves three
# numbers, 24 bytes. (Level 1's predicted and measured times include the checks of the call, and are longer than above.)

# %%
line = compare.measure(task, reference.linear_regression, linear_regression, last=1000)
net = compare.measure(rings, reference.dnn_classifier, dnn_classifier, last=20, repeats=1)
compare.side_by_side(line, net)

# %% [markdown]
# The formulas are the same. Plain Python runs each line of code for each row. Level 1 runs each of its lines once, to
# write the instructions down.
#
# **How others spell it.** From notebook 03 on, programs for TensorFlow and PyTorch run on what you build here:
#
# | | TensorFlow | PyTorch | here |
# |---|---|---|---|
# | the devices | `tf.config.list_physical_devices()` | `torch.cuda.device_count()` | `pool()` |
# | put numbers on one | `with tf.device("GPU:0"):` | `x.to("cuda:0")` | `device.put(x)` |
# | memory in use | `tf.config.experimental.get_memory_info` | `torch.cuda.memory_allocated()` | `device.used` |
#
# **What you can now do differently.** Before you profile a program, estimate its cost from its bytes, its operations
# and its launches, and compare the measurement with the estimate. When two runs differ in the last digits, ask which
# sum was reordered, fused or split into lanes, before you suspect a bug. When a loop is slow, read the instructions
# that the compiler wrote for it.

# %% [markdown]
# ## Exercises (45 min, optional)
#
# Each exercise begins with a stub. Replace its `...`, run the cell, and read what the check says. The check names the
# first case that fails, what your function returned and what was expected.
# `python3 -m course progress` shows what you have solved.
#
# You may start here at any time, without running the notebook above: `begin` takes what is missing from the built
# level. (Exercises 01-1 and 01-3 are in `more/`.)
#
# ### 01-2 · A program of two loops
#
# Subtract its mean from each column: `y[r, k] = x[r, k] - mean of column k`. You are given an assembler and two of its
# arrays, `[rows, columns]`. Write the program. A mean is a sum over the rows, divided by their number, as in the
# record. (About 8 lines. Hint: `a.sum()`, `.total()` and `a.count("rows")` are used in `line_program`; `x.shape[1]` is
# the number of columns.)

# %%
from course.practice import exercises

exercises.begin("01-2")


def centre(a, x, y):
    """Write a program that stores x[rows, columns] minus the mean of its columns into y."""
    ...


exercises.check("01-2", centre)

# %% [markdown]
# ### 01-4 · Nudge every weight
#
# This notebook nudged one weight to see whether a gradient was right. Do the same for all weights of an array, one
# after the other:
#
# ```
# slope for w[k, j]  ≈  (loss(w[k, j] + nudge) - loss(w[k, j] - nudge)) / (2 · nudge)
# ```
#
# (About 7 lines. Hint: `np.ndindex(w.shape)` goes through all places. Use a nudge of `1e-6`.)

# %%
from course.practice import exercises

exercises.begin("01-4")


def slopes(loss, w):
    """The slope of loss(w), a float, for each number of the array w[inputs, units]. w itself stays as it is."""
    return ...


exercises.check("01-4", slopes)

# %% [markdown]
# ### 01-5 · Break it: a rate too high
#
# Here is the line with four learning rates. The last two show a symptom that everybody meets one day:

# %%
from course import tasks
from course.practice import exercises

exercises.begin("01-5")

task = tasks.linear()
for rate in (0.0005, 0.02, 0.03, 0.1):
    losses = linear_regression(task.x, task.y, task.weights, task.batches[:300], rate).losses
    print(f"rate {rate:<7}", *(f"{losses[step]:>10.3g}" for step in (0, 1, 10, 100, 299)))

# %% [markdown]
# No instruction is wrong, so nothing complains: an infinity is a valid float, and so is a NaN. Find the cause in the
# simplest case. Let a line have one weight, `prediction = x·w`, and let every answer y be 0. Its gradient is the mean
# of 2·x·(x·w), so a step takes w to `w - rate · 2 · mean(x·x) · w`. By which factor is w multiplied? At which rate does
# that factor reach -1, so that w jumps to and fro for ever? The check trains with a slightly lower rate than yours, and
# with a slightly higher one. (About 2 lines.)

# %%
from course.practice import exercises

exercises.begin("01-5")


def highest_rate(x):
    """The rate from which on training diverges, a float, for a line with one weight and the inputs x[n]."""
    return ...


exercises.check("01-5", highest_rate)

# %% [markdown]
# With two inputs and a bias, w and b can move in three directions. Each has a highest rate, and the steepest has the
# lowest. That is why inputs are standardised, as those of the penguins are: mean 0 and mean square 1.
#
# ### Without a check
#
# - Let `line_slopes` compute `de = 2.0 * error * g`. Are the losses still equal to the record? What about
#   `de = error / (1.0 / g) * 2.0`? At which step do the losses part, and why?
# - Write `dot` with Python's `sum`, and run `_forward` on floats in Python 3.11 and in 3.12. Which one gives the
#   record's numbers? (Since 3.12 `sum` corrects its own rounding.)
# - Reverse the rows of `reference.linear_step` as well. Are its losses equal to those of the reversed program above?
# %% [markdown]
# ## Where to go from here
#
# Next comes [2 · Kernels](02_kernels.ipynb). There the line's program is cut into small programs, each with a name.
#
# [The walk](05_high_level.ipynb#From-fit-to-the-multiply) from `fit` downwards reaches this level at its stage 7.
#
# Six notebooks continue this one: [numbers](more/01_numbers.ipynb) (floats to the bit, and sums
# that do not get stuck), [measuring](more/01_measuring.ipynb) (how far away memory is, and how fast a core can
# compute), the [assembler](more/01_assembler.ipynb) (this processor's own instructions, and the text behind each line),
# [exp and log](more/01_exp_and_log.ipynb) (these two functions, line by line), the [GPU](more/01_gpu.ipynb) and the
# [TPU](more/01_tpu.ipynb) (two machines that work in another way).
#
# ## Build
#
# The last cell writes `levels/hardware/` from the cells marked `#| export`, and imports it in a fresh Python. There it
# trains for 4,000 steps and compares the losses. Then level 2 can use it.

# %%
build.level("01_hardware", linear_regression, dnn_classifier)

# %% [markdown]
# Level 1 is built. Next: [2 · Kernels](02_kernels.ipynb).

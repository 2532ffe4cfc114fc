# %% [markdown]
# # 1 · Hardware
#
# **In this notebook you write a program in your machine's own instructions, and it trains a model.**
#
# This course builds one small framework, `levels`, in five storeys. You stand on the lowest. You need Python and a
# little NumPy; other words are explained as they come. About 70 minutes, without the two other machines
# and the exercises at the end. Cells that may be skimmed say so. A few are folded: a click opens them.

# %%
from course import build, figures, tasks  # the stage: pictures, questions and data; `levels` itself is written below

build.watch("01_hardware")  # so that the last cell can tell which cells are not saved yet
figures.you_are_here(1)

# %% [markdown]
# ## A surprise to begin with (2 min)
#
# Here are 2²⁵ ones, as 32-bit numbers. We add them up twice: with `sum`, and with `cumsum`, whose last entry is the sum
# of everything. Before a surprise this course asks what you expect. Choose, commit, then run the cell.

# %% tags=["hide-input"]
from course.practice import checks

checks.predict(
    "`x` holds 33,554,432 ones in float32. What do `x.sum()` and `x.cumsum()[-1]` give?",
    choices=["both 33554432", "33554432 and 16777216", "16777216 and 33554432", "neither is exact"],
    answer="33554432 and 16777216",
    because="`cumsum` gets stuck at 16777216: in float32, 16777216 + 1 is 16777216. `sum` adds blocks of numbers first, whose "
    "sums are small, and then the blocks: it never adds a 1 to so large a number.",
)

# %%
import numpy as np

x = np.ones(2**25, "f")
print(f"sum    {x.sum():.0f}")
print(f"cumsum {x.cumsum()[-1]:.0f}")

# %% [markdown]
# One of them lost half of the ones. A float32 has 24 significant bits
# ([IEEE 754, 2019](https://doi.org/10.1109/IEEESTD.2019.8766229)), so from 2²⁴ = 16,777,216 on it can only count in twos:

# %%
n = np.float32(2**24)
bool(n + np.float32(1) == n)

# %% [markdown]
# `cumsum` adds one number after the other and gets stuck there. `sum` adds in pairs of blocks
# ([NumPy's notes on `sum`](https://numpy.org/doc/stable/reference/generated/numpy.sum.html)) and does not. So a sum on a
# machine is not defined by its terms alone. **The order is part of the answer**, and the order depends on who wrote the
# loop. In this course you write every loop. That is how five programs will agree to the last bit.

# %% [markdown]
# ## Numbers, to the bit (4 min)
#
# A float is a sign, an exponent and a fraction: ±1.fraction · 2^exponent. Here is one tenth in three formats, in these three
# parts. float16 gives the exponent 5 bits, float32 gives it 8, and bfloat16 is the upper half of a float32: the same range,
# less precision. The cell only prints bits; read its output.

# %%
# "f4": a float of 32 bits; "u4": its bits as a whole number; then the bits of the exponent
formats = {"float32": ("f4", "u4", 8), "float16": ("f2", "u2", 5), "bfloat16": ("f4", "u4", 8)}
for name, (real, whole, exponent_bits) in formats.items():
    tenth = np.array(0.1, real)
    if name == "bfloat16":  # keep the upper 16 bits, rounded to the nearest
        tenth = ((tenth.view("u4") + np.uint32(0x8000)) & np.uint32(0xFFFF0000)).view("f4")
    text = f"{int(tenth.view(whole)):0{8 * tenth.itemsize}b}"[: 16 if name == "bfloat16" else None]
    print(f"{name:9} {text[0]} {text[1 : 1 + exponent_bits]} {text[1 + exponent_bits :]:23}  is {float(tenth):.10f}")

# %% [markdown]
# The exponent is stored plus a constant, the **bias** (127 in float32, 15 in float16): 01111011 is 123, so 2⁻⁴. The 1 before
# the point is not stored, since it is always there: 23 bits of fraction make 24 significant bits. None of the three is one
# tenth. A format has only so many numbers: as many between 1 and 2 as between 2 and 4, or between 1,024 and 2,048. How far
# apart are neighbours?

# %%
for n in (1, 1e8):
    gaps = ", ".join(f"{np.dtype(real)} {np.spacing(np.array(n, real)):.2g}" for real in ("f4", "f8"))
    print(f"next to {n:.0e}: {gaps}")

# %% [markdown]
# Next to a hundred million, float32 has only every eighth whole number. Each +, −, × and ÷ rounds its exact result to the
# nearest number of the format. In a tie it takes the neighbour whose last bit is 0. So every operation may lose something,
# and what is lost depends on the order.

# %% tags=["hide-input"]
checks.predict(
    "In float32: what are (10⁸ + 1) - 10⁸ and (10⁸ - 10⁸) + 1?",
    choices=["1 and 1", "0 and 1", "1 and 0", "0 and 0"],
    answer="0 and 1",
    because="Next to 10⁸ the neighbours are 8 apart. Added to it, a 1 is rounded away; added to 0, it stays.",
)

# %%
big, one = np.float32(1e8), np.float32(1)
print("left to right:", (big + one) - big, "  the large ones first:", (big - big) + one)

# %% [markdown]
# Nothing is wrong with either sum. They are different programs.

# %% [markdown]
# ## The task (4 min)
#
# Four hundred points. Each has two inputs `x1`, `x2` and one answer `y`, made as `2·x1 - 3·x2 + 3` plus noise of
# standard deviation 2. We pretend not to know the 2, the -3 and the 3, and look for them. We call this task *the line*. A
# hundred more points, the **test rows**, are kept aside: training never sees them.

# %%
task = tasks.linear()
print("x", task.x.shape, " y", task.y.shape)
print("start: w", task.weights[0].ravel().round(3), " b", task.weights[1].ravel())
figures.scatter_inputs(task)

# %% [markdown]
# The recipe is older than any framework. Guess weights `w` and `b`. Take ten rows. For each row compute a **prediction**
# `z = x1·w1 + x2·w2 + b` and its **error** `e = z - y`. The **loss** is the mean of `e·e`. Move each weight a little
# against its slope, its **gradient**; how little, the **learning rate** says. Take the next ten rows. One such round is a
# **step**.
#
# In plain Python, one step's loss and gradients look like this. It is the course's *arithmetic of record*: sums start at
# 0.0 and run upwards, the bias comes last, a mean divides by n. Every level must give these very numbers. Read `linear_step`
# at the end first; the other three are its tools. Three comments, `# forward`, `# loss` and `# backward`, mark its parts. They
# return on all five levels, with a fourth, `# update`.

# %%
from course import reference

figures.source(reference.dot, reference.layer, reference.add_outer, reference.linear_step)

# %% [markdown]
# Is the gradient right? Nudge one weight up and down a little, and see how much the loss moves.

# %%
rows = task.batches[0]
xb, yb = task.x[rows].tolist(), task.y[rows].tolist()
loss, (dw, db) = reference.linear_step(xb, yb, [[[0.5], [0.5]], [[0.0]]])
up, _ = reference.linear_step(xb, yb, [[[0.5 + 1e-6], [0.5]], [[0.0]]])
down, _ = reference.linear_step(xb, yb, [[[0.5 - 1e-6], [0.5]], [[0.0]]])
print(f"gradient {dw[0][0]:.4f}   nudged {(up - down) / 2e-6:.4f}")

# %% [markdown]
# The formula and the nudge agree. Now 8,000 steps. They go 200 times through the data: 200 **epochs**.

# %%
record, record_weights = reference.linear_regression(task.x, task.y, task.weights, task.batches, task.learning_rate)
print(f"first loss {record[0]:.6g}, last loss {record[-1]:.6g}")
w, b = record_weights
print(f"w {w[0][0]:.4f}, {w[1][0]:.4f}   b {b[0][0]:.4f}")

# %% [markdown]
# Two, minus three and three, nearly. But the last loss is that of ten points, and it jumps from batch to batch. How good is
# the line over all 400 points, and how good is the true one?

# %%
for name, w1, w2, bias in (("found", w[0][0], w[1][0], b[0][0]), ("true", 2, -3, 3)):
    print(f"{name:5} line: loss {np.mean((task.x @ [w1, w2] + bias - task.y.ravel()) ** 2):.1f}")

# %% [markdown]
# The true line does no better. What is left is noise. The rest of this notebook does the same work without Python: in
# instructions for the machine.

# %% [markdown]
# ## Memory belongs to a device (5 min)
#
# A machine is a **pool** of devices: CPUs, GPUs, TPUs. Each device has memory of its own, and a program on a device
# reads and writes only there. (Some machines share memory between devices; in this course each has its own.) A **buffer** is
# a stretch of that memory with a shape and a dtype. What a buffer is, apart from its numbers, is kept in a `Spec`, made once
# and shared; level 2 will look things up by it. (`llvmlite` is how Python speaks to LLVM, a compiler that we meet soon.)
#
# Cells that begin with `#| export NAME` are special: the last cell of this notebook collects them into the file
# `levels/hardware/NAME.py`. What you change here changes every level above.

# %%
#| export device
"""Memory belongs to a device: the pool of devices, their buffers, and what moves between them."""

import math
import os
import reprlib
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from llvmlite import binding as llvm

from levels import more


class Spec:
    """What a buffer is, apart from its numbers: device, shape and dtype. There is one Spec for each such triple."""

    def __init__(self, device, shape, dtype):
        if min(shape, default=0) < 0 or dtype.hasobject:
            raise ValueError(f"{device.name}: shape {shape} of {dtype}; expected no negative size, and numbers")
        self.device, self.shape, self.dtype, self.empty = device, shape, dtype, device.empty
        self.nbytes = math.prod(shape) * dtype.itemsize

    spec = property(lambda self: self)  # so that who asks only for these may be given a buffer or its Spec

    def __repr__(self):
        return f"{self.dtype}{list(self.shape)} on {self.device.name}"


# %% [markdown]
# A buffer is a `Spec` and the numbers. When Python forgets a buffer, its bytes are counted as free again.


# %%
#| export device
class Buffer:
    """Memory of one device, C-contiguous, with a shape and a dtype. `data` is the array that the device's programs see."""

    __slots__ = ("spec", "data", "rows")

    def __init__(self, spec, data):
        self.spec, self.data, self.rows = spec, data, None  # rows: the range of its row numbers, once a program asked

    device = property(lambda self: self.spec.device)
    shape = property(lambda self: self.spec.shape)
    dtype = property(lambda self: self.spec.dtype)

    def __del__(self):
        if self.data is not None:
            self.spec.device.used -= self.spec.nbytes

    def numpy(self):
        """A copy of the numbers as a NumPy array."""
        if self.data is None:
            raise ValueError(f"{self}: used after it was freed; allocate a new one")
        return self.device.read(self.data)

    def __repr__(self):
        return f"Buffer({self.spec}{', freed' if self.data is None else ''})"


# %% [markdown]
# A **core** is the part of a processor that runs a program. Beside it lie **caches**: small, fast memories that keep
# copies of what was used last. Between them and the memory chips numbers move in **cache lines** of 64 bytes on most
# processors (on Apple's 128, as `sysctl hw.cachelinesize` says there). An instruction may load several numbers
# at once, each into a **lane** of its register. So an array should begin where a line begins: then no such load meets two lines.
#
# And it should not lie right behind another one. Before a load, the processor looks whether an earlier store to the
# same address is still under way, and at first it compares only the last bits of the two, often twelve (Intel calls it
# [4K aliasing](https://software.intel.com/content/www/us/en/develop/documentation/vtune-help/top/reference/cpu-metrics-reference/l1-bound/aliasing-of-4k-address-offset.html)).
# Where `out` lies right behind an `x` of 2ᵏ bytes, a load of `x` seems to meet the last store to `out`, and waits. A
# gap avoids that.


# %%
#| export device
LINE = 64  # bytes that move together between memory and caches, on most processors
GAP = 8 * LINE  # bytes left free behind an array
PAGE = 4096  # bytes; to look up where an array begins takes longer than to add one so small


def aligned(shape, dtype):
    """An empty array that begins at a cache line, so that no load of many lanes straddles two. (Under a page: any array.)"""
    nbytes = math.prod(shape) * dtype.itemsize
    if nbytes < PAGE:
        return np.empty(shape, dtype)
    data = np.empty(nbytes + LINE + GAP, np.uint8)
    return np.ndarray(shape, dtype, data, offset=-data.ctypes.data % LINE)


# %% [markdown]
# Three arrays, and how far behind the beginning of a line each of them begins:

# %%
[aligned((1000,), np.dtype("f8")).ctypes.data % LINE for _ in range(3)]

# %% [markdown]
# Three numbers tell the speed of a device. Its **peak** is how many operations on floating-point numbers (**flops**) it
# does in a second. Its **bandwidth** is how many bytes it moves in a second. And a **launch**, one call of a program, takes
# some time before anything is done. None of the three is printed on the machine. They have to be measured, and `MEASURES` is
# where the measuring programs will be entered, once we can write programs.

# %%
#| export device
MEASURES = {}  # "peak", "bandwidth" or "launch_time" -> a function of the device that measures it


def unmasked(values):
    """These numbers as a NumPy array. Raises TypeError for a masked one, whose mask would be lost without a word."""
    if isinstance(values, np.ma.MaskedArray):
        raise TypeError("a masked array keeps no mask here; fill it, as in x.filled(0), or drop those rows")
    return np.asarray(values)


# %% [markdown]
# A device counts what it hands out, and refuses what it does not have. From its three numbers it predicts: a program must do
# its operations and move its bytes, and it cannot end before the slower of the two is done. That floor is called the
# **roofline**. (Read `alloc`, `put`, `roofline` and `cost`; the rest may be skimmed.)


# %%
#| export device
class Device:
    """One member of the pool: `memory` in bytes (None: unknown), `used` of it, and its speed, measured on first use."""

    empty = staticmethod(np.empty)  # how new memory is found, and how the host reads and writes it
    read, write = staticmethod(np.copy), staticmethod(np.copyto)
    reshape = staticmethod(np.ndarray.reshape)  # the same memory, seen in another shape

    def __init__(self, name, memory, simulated=False):
        self.name, self.kind, self.memory, self.simulated = name, name.split(":")[0], memory, simulated
        self.used, self.measured, self.specs = 0, {}, {}

    def spec(self, shape, dtype):
        """The Spec of a buffer on this device."""
        key = tuple(map(int, shape)), np.dtype(dtype)
        return self.specs.get(key) or self.specs.setdefault(key, Spec(self, *key))

    def alloc(self, shape, dtype):
        """A new buffer of that shape, its numbers not yet set. Raises MemoryError when less is free than asked."""
        return self.new(self.spec(shape, dtype), aligned)

    def new(self, spec, make=np.empty, kind=Buffer):
        """A new buffer of a Spec of this device, in memory that `make` gives. (`np.empty` is quicker, but not aligned.)"""
        if self.memory is not None and spec.nbytes > self.memory - self.used:
            raise MemoryError(f"{self.name}: asked for {spec.nbytes:,} bytes, {self.memory - self.used:,} are free")
        data = make(spec.shape, spec.dtype)
        self.used += spec.nbytes
        return kind(spec, data)

    def put(self, array, kind=Buffer):
        """A new buffer that holds the numbers of a NumPy array."""
        array = unmasked(array)
        buffer = self.new(self.spec(array.shape, array.dtype), aligned, kind)
        self.write(buffer.data, array)
        return buffer

    def free(self, buffer):
        """Give a buffer's memory back. Using the buffer after that is an error."""
        if not isinstance(buffer, Buffer) or buffer.device is not self or buffer.data is None:
            raise ValueError(f"{self.name}: cannot free {buffer}: it is not a live buffer of this device")
        self.used -= buffer.spec.nbytes
        # a Spec of its own: what was looked up by the shared one fits no freed buffer
        buffer.data, buffer.spec = None, Spec(self, buffer.shape, buffer.dtype)

    def measure(self, what):
        """One of `MEASURES`, measured on first use. Raises LookupError if no program measures it."""
        if what not in MEASURES:
            raise LookupError(f"{self.name}: no program measures {what} yet")
        return self.measured.get(what) or self.measured.setdefault(what, MEASURES[what](self))

    peak = property(lambda self: self.measure("peak"), doc="float32 operations a second of one core, measured")
    bandwidth = property(lambda self: self.measure("bandwidth"), doc="bytes a second from memory, measured")
    launch_time = property(lambda self: self.measure("launch_time"), doc="seconds to call an empty program, measured")

    def roofline(self, flops, nbytes):
        """The least seconds that `flops` operations on `nbytes` of traffic can take (Williams et al., 2009)."""
        return max(flops / self.peak, nbytes / self.bandwidth)

    def cost(self, launches, flops, nbytes):
        """The seconds we predict for that many calls, operations and bytes: the calls, then the roofline."""
        return launches * self.launch_time + self.roofline(flops, nbytes)

    def facts(self):
        """What the pool's table says of this device: {name of the row: text}."""

        def measured(what, unit):
            return f"{amount(self.measure(what), unit)}, measured" if what in MEASURES else "not measured yet"

        return {
            "CPUs": str(os.cpu_count() or "unknown"),
            "lanes": f"{host_lanes()} float32",
            "peak of one": measured("peak", "flop/s"),
            "bandwidth": measured("bandwidth", "B/s"),
            "a launch": measured("launch_time", "s"),
        }

    def __repr__(self):
        return f"Device({self.name}{', simulated' if self.simulated else ''})"


# %% [markdown]
# A small device, to try it: three float64 take 24 bytes, and its speed is not known yet.

# %%
shelf = Device("cpu:9", memory=1000, simulated=True)
kept = shelf.put(np.arange(3.0))
print(kept, "-", shelf.used, "of", shelf.memory, "bytes in use")
try:
    shelf.roofline(flops=6, nbytes=24)
except LookupError as error:
    print(error)

# %% [markdown]
# The floor that `roofline` computes is from [Williams, Waterman and Patterson, 2009](https://doi.org/10.1145/1498765.1498785);
# `cost` adds what calling costs. We shall measure all three numbers, and see how well such a small formula predicts.
#
# How much memory a process may use, the system tells. (The next cell is folded, and may be skipped.)


# %% tags=["hide-input"]
#| export device
def host_memory():
    """The bytes of memory that this process may use, or None where the system does not tell."""
    try:
        limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    except (AttributeError, ValueError, OSError):  # Windows has no sysconf
        return None
    for group in ("memory.max", "memory/memory.limit_in_bytes"):  # a container may have less than the machine
        path = Path("/sys/fs/cgroup", group)
        if path.exists() and (text := path.read_text().strip()).isdigit():
            limits.append(int(text))
    return min(limits)


# %% [markdown]
# Most processors also have instructions that compute in several lanes at once. How many float32 yours takes,
# LLVM knows:


# %%
#| export device
def host_features():
    """What this processor can do, as LLVM names it."""
    try:
        return llvm.get_host_cpu_features()
    except RuntimeError:  # LLVM does not know this system; then only what every such processor can do is used
        return llvm.FeatureMap()


def host_lanes():
    """How many float32 one instruction of this processor works on: 16, 8 or 4."""
    features = host_features()
    return 16 if features.get("avx512f") else 8 if features.get("avx2") else 4


# %% [markdown]
# Last, the pool itself, and how it prints a number with its unit. A figure in it that was measured says so, and one that nobody
# knows says that.


# %%
#| export device
def amount(number, unit, step=1000):
    """A number with its unit, at three digits: 1.25 GB/s, 310 ns; with step=1024, 32 KiB."""
    power = max(-3, math.floor(math.log(number, step) + 1e-9)) if number else 0
    return f"{number / step**power:.3g} {('', 'K' if step == 1024 else 'k', 'M', 'G', 'T', 'n', 'µ', 'm')[power]}{unit}"


# %%
print(amount(64 * 1024, "iB", 1024), "-", amount(3.1e-7, "s"), "-", amount(1.25e9, "B/s"))

# %% [markdown]
# The pool is a dictionary that prints as a table, a column for each device.


# %%
#| export device
class Pool(dict):
    """Devices by name. It prints as a table."""

    def column(self, device):
        """What the table says of a device."""
        return {
            "": device.name,
            "kind": device.kind + " (simulated)" * device.simulated,
            "memory": amount(device.memory, "iB", 1024) if device.memory else "unknown",
            "in use": f"{device.used:,} B",
        } | device.facts()

    def __repr__(self):
        columns = [self.column(device) for _, device in sorted(self.items())]
        widths = [2 + max(map(len, column.values())) for column in columns]
        names = dict.fromkeys(name for column in columns for name in column)
        rows = ([column.get(name, "").ljust(width) for column, width in zip(columns, widths)] for name in names)
        return "\n".join(f"{name:12}{''.join(row)}".rstrip() for name, row in zip(names, rows))


# %% [markdown]
# There is one pool. A kind of machine joins it by an entry in `MAKERS`. Here there are CPUs; a GPU and a TPU wait in
# `levels_more`, which `more` asks for what the five levels do not have themselves (not in this notebook: it shows them
# alone). A simulated device can join, to see what having two means.


# %%
#| export device
def make_cpu(name):
    """The computer's own CPUs as one device, cpu:0, or a simulated one with 1 GiB."""
    return Device(name, host_memory() if name == "cpu:0" else 2**30, simulated=name != "cpu:0")


MAKERS = {"cpu": make_cpu}  # kind -> what makes a device of that name
POOL = Pool({"cpu:0": make_cpu("cpu:0")})


def pool(**counts):
    """The devices of this computer, {"cpu:0": Device, …}: one of each kind, or as many as are asked for, as in cpus=2.

    A second one is simulated, and has memory of its own. Raises TypeError for a kind that there is not.
    """
    more("device", "all")  # other kinds enter MAKERS
    there = [f"{kind}s" for kind in MAKERS]
    if unknown := {*counts} - {*there}:
        raise TypeError(f"pool: there are no {', '.join(unknown)}; there are {', '.join(there)}")
    for kind, make in MAKERS.items():
        for name in (f"{kind}:{n}" for n in range(counts.get(f"{kind}s", 1))):
            if name not in POOL:
                POOL[name] = make(name)
    return POOL


# %% tags=["nbval-ignore-output"]
pool(cpus=2)

# %% [markdown]
# One of them is your computer, the other is only pretended. *Peak of one* is the peak of one core. The last three rows wait for
# our programs.
#
# Which device gets the numbers when nobody names one? The last in `DEVICES`. Levels 3 to 5 use that; here we name the
# device each time.


# %%
#| export device
DEVICES = [POOL["cpu:0"]]  # the last one is where numbers are placed


@contextmanager
def placed_on(name):
    """Inside this `with` block, that device is where numbers are placed."""
    if name not in pool():
        raise LookupError(f"device: there is no {reprlib.repr(name)}; there are {', '.join(pool())}")
    DEVICES.append(pool()[name])
    try:
        yield
    finally:
        DEVICES.pop()


# %% [markdown]
# Numbers leave a device only by a copy.


# %%
#| export device
def copy(buffer, device):
    """A new buffer on `device` with the same numbers."""
    return device.put(buffer.numpy())


# %%
cpu, other = pool(cpus=2).values()
here = cpu.put(np.arange(3.0))
there = copy(here, other)
print(here, there, there.numpy(), other.used, "bytes in use on", other.name)

# %% [markdown]
# A simulated device lives in the same memory chips, but is counted apart.
#
# What happens if we ask for more than there is, or use what we gave back? A real machine might crash. Ours answers.

# %%
for attempt in (lambda: other.alloc((2**40,), "f4"), lambda: (other.free(there), there.numpy())):
    try:
        attempt()
    except (MemoryError, ValueError) as error:
        print(type(error).__name__, "-", error)

# %% [markdown]
# ## A program is loads, arithmetic and stores (20 min)
#
# The instructions that we use know nothing of matrices. They **load** a number from memory into a register, do **arithmetic**
# between registers, **store** a register back to memory, and jump. We write a small **assembler**: a Python object on which we
# call `load`, `+`, `store`, and which writes down one instruction each time. [LLVM](https://llvm.org/docs/LangRef.html),
# the compiler behind Clang, Rust and numba, turns the list into bytes for this very processor.
#
# Here is a program in LLVM's language: it squares every number of an array. A **register** (`%v`) is a place for one number
# inside the processor. An **address** is a place in memory; `getelementptr` computes one. Every number has a type: `double` is a
# float64, `i64` a whole number of 64 bits, `ptr` an address. What follows a `;` is a comment.

# %%
TEXT = """
define void @program(ptr %x, ptr %y, i64 %n) {
entry:
  br label %test                                  ; jump
test:                                             ; a block: a name that one can jump to
  %i = phi i64 [0, %entry], [%next, %body]        ; 0 if we come from entry, %next if we come from body
  %more = icmp slt i64 %i, %n                     ; compare
  br i1 %more, label %body, label %after          ; jump one way or the other
body:
  %from = getelementptr double, ptr %x, i64 %i    ; the address of x[i]
  %v = load double, ptr %from
  %square = fmul double %v, %v
  %to = getelementptr double, ptr %y, i64 %i      ; the address of y[i]
  store double %square, ptr %to
  %next = add i64 %i, 1
  br label %test
after:
  ret void
}
"""

# %% [markdown]
# LLVM reads this text, improves it, and turns it into bytes for this processor. That takes a tenth of a second for a long
# program, so the bytes are kept in a folder, under a hash of everything they depend on: the text, the processor, the version
# of LLVM. The same program is found there the next time; a changed one has another hash. (The next three cells may be skimmed, and
# the second is folded.)


# %%
#| export assembler
"""A program is loads, arithmetic and stores: an assembler that writes one, instruction by instruction."""

import ctypes
import functools
import hashlib
import numbers
import re
from contextlib import contextmanager, suppress

import llvmlite

CACHE = Path(os.environ.get("LEVELS_CACHE") or os.path.expanduser("~/.cache/levels"))


def target_machine():
    """LLVM's description of this processor."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(cpu=llvm.get_host_cpu_name(), features=host_features().flatten(), opt=3)


# %% [markdown]
# LLVM may improve a program in any way that keeps its results. We forbid one kind: it shall not add lanes or repeat a
# loop's body on its own, since we want to do that ourselves.


# %%
#| export assembler
def optimised(text, target):
    """LLVM's own form of a program, optimised for this processor."""
    module = llvm.parse_assembly(text)
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = options.loop_unrolling = False  # the loops run as they were written
    passes = llvm.create_pass_builder(target, options)
    passes.getModulePassManager().run(module, passes)
    return module


# %% [markdown]
# What is compiled is kept in a folder, under a hash of all that it was made from. The bytes there carry a checksum, so a file that
# was cut short or damaged is not run.


# %% tags=["hide-input"]
#| export assembler
import threading


def kept(key):
    """The bytes that were kept under this key, if they are there and whole; else None."""
    with suppress(OSError):
        data = (CACHE / hashlib.sha256(key.encode()).hexdigest()).read_bytes()
        if hashlib.sha256(data[32:]).digest() == data[:32]:
            return data[32:]
    return None


def keep(key, data):
    """Keep these bytes under a key. A full disk, or a folder that cannot be written, only costs time."""
    path = CACHE / hashlib.sha256(key.encode()).hexdigest()
    aside = path.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
    with suppress(OSError):
        CACHE.mkdir(parents=True, exist_ok=True)
        aside.write_bytes(hashlib.sha256(data).digest() + data)
        aside.replace(path)
    with suppress(OSError):
        aside.unlink(missing_ok=True)


# %% [markdown]
# So the bytes of a program are those that were kept, or new ones.


# %% tags=["hide-input"]
#| export assembler
def object_code(text, target):
    """The bytes of a program: those that were kept, or new ones."""
    processor = target.triple, llvm.get_host_cpu_name(), host_features().flatten()
    key = "\n".join((text, *processor, llvmlite.__version__, repr(optimised.__code__.co_code)))
    code = kept(key)
    if code is None:
        code = target.emit_object(optimised(text, target))
        keep(key, code)
    return code


# %% [markdown]
# Now LLVM loads the bytes into memory, and tells the address at which the program begins.


# %%
#| export assembler
@functools.lru_cache(maxsize=256)
def machine_code(text):
    """A program, ready to run: the engine that owns its code, and its address."""
    target = target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target)
    engine.add_object_file(llvm.ObjectFileRef.from_data(object_code(text, target)))
    engine.finalize_object()
    return engine, engine.get_function_address("program")


# %% [markdown]
# And now we run it. NumPy tells the addresses; `ctypes` calls what lies at an address:

# %%
_, address = machine_code(TEXT)
x, y = np.arange(5.0), np.zeros(5)
run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(address)
run(x.ctypes.data, y.ctypes.data, 5)
y

# %% [markdown]
# LLVM can also print the processor's own instructions. We cut away its printer's directives and comments.


# %%
#| export assembler
def trimmed(assembly):
    """The instructions of an assembly text and the labels that they jump to, without directives and comments."""
    body = assembly.split("program:", 1)[1].splitlines()
    lines = [re.split(r"\s*(?:##|//|;|# )", line)[0].expandtabs(8).rstrip() for line in body]
    instructions = [line for line in lines if re.match(r"\s+[^.\s]", line)]
    jumps = {word + ":" for word in re.findall(r"[.\w$]+", " ".join(instructions))}
    return "\n".join(line for line in lines if line in jumps or line in instructions)


# %% [markdown]
# Each line is one instruction of your processor. Look for the one multiplication, `mul`. Before it stands the load, behind it the
# store; the rest is counting and jumping.

# %% tags=["nbval-ignore-output"]
target = target_machine()
print(trimmed(target.emit_assembly(optimised(TEXT, target))))

# %% [markdown]
# Nobody wants to write such text by hand. And it is dangerous: had we said 50 instead of 5, the program would have written
# over memory that is not its own, and this notebook might be gone.
#
# ### The assembler
#
# So we write an assembler: a list of lines, and a few functions that append to it. What ours adds is names, shapes, loops,
# lanes, and the certainty that no address leaves its array. This is what we are after, four lines instead of the text above:
#
# ```python
# x, y = a.array("x", "rows"), a.array("y", "rows")
# with a.loop("rows") as i:
#     v = a.load(x, i)
#     a.store(v * v, y, i)
# ```
#
# If you are in a hurry, read `Value`, `arithmetic` and `loop`, run the rest, and go on at *The first program again*.
#
# First, a value: a number that *will be* in a register when the program runs. Adding two values adds nothing. It writes
# an instruction that will.


# %%
#| export assembler
def operators(instruction):
    """The two methods that write this instruction: value · other, and other · value."""
    return lambda x, y: arithmetic(x.a, instruction, x, y), lambda x, y: arithmetic(x.a, instruction, y, x)


def compared(how):
    """The method that writes this comparison, by LLVM's name."""
    return lambda x, y: comparison(x.a, how, x, y)


# %% [markdown]
# `Value` then says which operator writes which instruction. Last, a comparison gives a `Condition`.


# %%
#| export assembler
class Value:
    """What a register will hold: one number, or one number in each lane. Its operators write instructions."""

    def __init__(self, a, register, lanes=1):
        self.a, self.register, self.lanes, self.scope = a, register, lanes, a.scope

    def __repr__(self):
        return f"{type(self).__name__} {self.register}"

    def __bool__(self):
        raise TypeError(f"{self.a.name}: {self!r} is not known while the program is written; use select(c, x, y)")

    __add__, __radd__ = operators("fadd")
    __sub__, __rsub__ = operators("fsub")
    __mul__, __rmul__ = operators("fmul")
    __truediv__, __rtruediv__ = operators("fdiv")

    def __neg__(self):
        return -0.0 - self  # 0.0 - self would make 0.0 of 0.0

    __lt__, __le__, __eq__, __ne__, __ge__, __gt__ = map(compared, ("olt", "ole", "oeq", "une", "oge", "ogt"))


class Condition(Value):
    """Yes or no, in each lane: what a comparison gives, and `select` takes."""


# %% [markdown]
# Next, what a program works on. An array has a name and a shape. A size in the shape may be a name too, such as
# `"rows"`: it is learned when the program is called. An **index** is a whole number, or the counter of a loop, or a row number
# from memory. Before the program runs, each is known to stay below some **extent**: a counter over `"rows"` below the number
# of rows. What can leave its array is refused, and the running program need not look.


# %%
#| export assembler
class Array:
    """Memory that a program reads or writes. A size is a number, or a name that the call will fill in."""

    def __init__(self, name, shape, rows_of=None):
        self.name, self.shape, self.rows_of = name, shape, rows_of  # rows_of: its integers index arrays of that size

    def __repr__(self):
        return f"{self.name}[{', '.join(map(str, self.shape))}]"


class Index(Value):
    """A whole number in [0, extent). `first`: of lanes side by side, the number in lane 0."""

    def __init__(self, a, register, extent, lanes=1, first=None):
        super().__init__(a, register, lanes)
        self.extent, self.first = extent, first or (register if lanes == 1 else None)


# %% [markdown]
# And the check that all this is for: can this index leave that array?


# %%
#| export assembler
def check_reach(name, array, axis, extent, sizes):
    """Raise IndexError if an index below `extent` can leave that axis of an array."""
    extent, size = sizes.get(extent, extent), sizes.get(array.shape[axis], array.shape[axis])
    if extent > size:
        raise IndexError(f"{name}: index {axis} of {array} goes up to {extent - 1}; the size there is {size}")


# %% [markdown]
# Then the instructions. Most processors have **lanes**: one instruction adds 4, 8 or 16 pairs of float32 at once (SIMD).
# The assembler uses them for float32. In float64 it keeps to one number at a time, in the order of record. The dtype
# decides.

# %%
#| export assembler
REAL = {np.dtype("f4"): "float", np.dtype("f8"): "double"}
FAST = "contract nsz arcp "  # float32 may fuse a·b + c into one instruction, and turn x/n into x·(1/n)


def laned(kind, lanes):
    """The type of a register with that many lanes."""
    return f"<{lanes} x {kind}>" if lanes > 1 else kind


def spread(a, kind, register, have, lanes):
    """A register with that many lanes: the same one where it has them, else its one number repeated."""
    if have == lanes:
        return register
    if not register.startswith("%"):
        return f"splat ({kind} {register})"
    wide = laned(kind, lanes)
    first = a.write(f"insertelement {wide} poison, {kind} {register}, i32 0")
    return a.write(f"shufflevector {wide} {first}, {wide} poison, <{lanes} x i32> zeroinitializer")


# %% [markdown]
# Operands are checked where they are used. A value belongs to its program and to the loop in which it was made: after that
# loop there is no such number any more.


# %%
#| export assembler
def live(a, thing):
    """Raise unless this belongs to the program and to a loop that is still open."""
    if thing.scope not in a.scopes:
        raise ValueError(f"{a.name}: {thing!r} is not of this program or its loop has ended; a sum carries numbers out")
    return thing


def numeric(a, operand):
    """The register of a value, or a Python number as a constant."""
    if isinstance(operand, numbers.Real):  # LLVM's notation: the bits of a float64
        return f"0x{np.float64(a.dtype.type(float(operand))).view(np.uint64):016X}"
    if not isinstance(operand, Value) or isinstance(operand, (Index, Condition)):
        raise TypeError(f"{a.name}: expected a number to compute with, got {operand!r}")
    return live(a, operand).register


def together(a, *operands, lanes=1):
    """The registers of numbers that meet in one instruction, all with as many lanes as the widest, and the lanes."""
    lanes = max([lanes, *(o.lanes for o in operands if isinstance(o, Value))])
    return [spread(a, a.real, numeric(a, o), getattr(o, "lanes", 1), lanes) for o in operands], lanes


# %% [markdown]
# With these, an instruction is two lines: bring the operands together, append.


# %%
#| export assembler
def arithmetic(a, instruction, *operands):
    """Write one instruction: fadd, fsub, fmul, fdiv."""
    (x, y), lanes = together(a, *operands)
    return Value(a, a.write(f"{instruction} {a.flags}{laned(a.real, lanes)} {x}, {y}"), lanes)


# %% [markdown]
# Let us see it write. Until we have an assembler, something smaller stands in for it: a list of lines, and a function that
# appends to it.

# %%
from types import SimpleNamespace

lines = []


def append(text):
    lines.append(text)
    return f"%v{len(lines)}"


paper = SimpleNamespace(name="paper", dtype=np.dtype("f8"), real="double", flags="", scope=0, scopes=[0], write=append)
v = Value(paper, "%v0")
print(v * v + 1.0)
print("\n".join(lines))

# %% [markdown]
# Two operators, two instructions. The 1.0 is written as its 64 bits, in base 16. And `v * v + 1.0` is no number: it is the
# register in which a number will be. That is the whole idea of an assembler.
#
# Comparisons are written in the same way. A program has no `if` for them; `select` takes one of two numbers.


# %%
#| export assembler
def comparison(a, how, *operands):
    """Write one comparison. With a NaN it is false, except for !=, as in Python."""
    (x, y), lanes = together(a, *operands)
    return Condition(a, a.write(f"fcmp {how} {laned(a.real, lanes)} {x}, {y}"), lanes)


def select(condition, x, y):
    """x where the condition holds, else y. On Python's numbers it chooses at once."""
    if not isinstance(condition, Condition):
        return x if condition else y
    a = live(condition.a, condition).a
    (x, y), lanes = together(a, x, y, lanes=condition.lanes)
    chosen, kind = spread(a, "i1", condition.register, condition.lanes, lanes), laned(a.real, lanes)
    return Value(a, a.write(f"select {laned('i1', lanes)} {chosen}, {kind} {x}, {kind} {y}"), lanes)


# %% [markdown]
# LLVM has more instructions than operators. They are called by name, like functions.


# %%
#| export assembler
def named(name, *operands):
    """Write one of LLVM's named instructions, such as sqrt(x) or maximum(x, y)."""
    a = next(x.a for x in operands if isinstance(x, Value))
    registers, lanes = together(a, *operands)
    kind = laned(a.real, lanes)
    return Value(a, a.write(f"call {kind} @llvm.{name}({', '.join(f'{kind} {x}' for x in registers)})"), lanes)


# %% [markdown]
# A load or a store needs an address. The place of `x[i, k]` in memory is `i · width + k`: rows lie one behind the other.
# When the index has lanes, each lane has an address of its own. Lanes past the end of a loop are masked off: what they
# compute is never kept. (The cells from here to the sum may be skimmed. The idea is the multiplication and the addition in
# `place`.)


# %%
#| export assembler
def index(a, i):
    """A whole number as an Index; an Index as it is."""
    if isinstance(i, Index):
        return live(a, i)
    if not isinstance(i, numbers.Integral) or not 0 <= i < 2**31:
        raise TypeError(f"{a.name}: {i!r} is no index; expected a whole number below 2^31 or the counter of a loop")
    return Index(a, str(int(i)), int(i) + 1)


# %% [markdown]
# Now the place itself. Here every index is checked, or noted for the check at the call.


# %%
#| export assembler
def place(a, array, indices):
    """The position of array[indices], counted in elements: its register, how many it holds, and the lanes they serve."""
    if not isinstance(array, Array) or a.arrays.get(array.name) is not array:
        raise TypeError(f"{a.name}: {array!r} is not an array of this program")
    if len(indices) != len(array.shape):
        raise IndexError(f"{a.name}: {array} needs {len(array.shape)} indices, got {len(indices)}")
    indices = [index(a, i) for i in indices]
    for axis, (i, size) in enumerate(zip(indices, array.shape)):
        if i.extent != size:  # else it counts over this very size
            a.reaches.append((array, axis, i.extent))
            if not isinstance(i.extent, str) and not isinstance(size, str):
                check_reach(a.name, *a.reaches[-1], {})
    # lanes side by side: the place of the first will do
    consecutive = indices[-1].first and all(i.lanes == 1 for i in indices[:-1])
    places = 1 if consecutive else max(i.lanes for i in indices)
    position, *rest = [i.first if consecutive else spread(a, "i64", i.register, i.lanes, places) for i in indices]
    for i, size in zip(rest, array.shape[1:]):
        position = a.write(f"mul {laned('i64', places)} {position}, {spread(a, 'i64', a.size(size), 1, places)}")
        position = a.write(f"add {laned('i64', places)} {position}, {i}")
    return position, places, max(i.lanes for i in indices)


# %% [markdown]
# (We shall see it write once the assembler is whole.) `place` gives a position for each lane, or, where the lanes lie side by
# side, one position for all of them. That makes three kinds of loads and stores: of one number, of neighbours, of numbers
# anywhere.


# %%
#| export assembler
def load(a, array, *indices):
    """Load array[indices] into a register. A row number loads as an index of the arrays it counts the rows of."""
    position, places, lanes = place(a, array, indices)
    element, size = ("i64", 8) if array.rows_of else (a.real, a.dtype.itemsize)
    vector, pointer = laned(element, lanes), a.words["array", array.name]
    if places == 1:
        address = a.write(f"getelementptr {element}, ptr {pointer}, i64 {position}")
        text = f"load {element}, ptr {address}"
        if lanes > 1:
            masks = f"<{lanes} x i1> {a.mask}, {vector} zeroinitializer"
            text = f"call {vector} @llvm.masked.load(ptr align {size} {address}, {masks})"
        register = a.write(text)
    else:  # lane by lane, faster than the gather instruction where we tried; a masked lane reads element 0
        register, several = "poison", laned("i64", lanes)
        position = a.write(f"select {laned('i1', lanes)} {a.mask}, {several} {position}, {several} zeroinitializer")
        for lane in range(lanes):
            one = a.write(f"extractelement {several} {position}, i32 {lane}")
            one = a.write(f"getelementptr {element}, ptr {pointer}, i64 {one}")
            one = a.write(f"load {element}, ptr {one}")
            register = a.write(f"insertelement {vector} {register}, {element} {one}, i32 {lane}")
    return Index(a, register, array.rows_of, lanes) if array.rows_of else Value(a, register, lanes)


# %% [markdown]
# A store is the same in the other direction.


# %%
#| export assembler
def store(a, value, array, *indices):
    """Store a value into array[indices]."""
    position, places, lanes = place(a, array, indices)
    if array.rows_of:
        raise TypeError(f"{a.name}: {array} holds row numbers, which a program only reads")
    (register,), wide = together(a, value, lanes=lanes)
    if wide > lanes:
        raise TypeError(f"{a.name}: a value of {wide} lanes does not fit one place of {array}; take its total")
    address = a.write(f"getelementptr {a.real}, ptr {a.words['array', array.name]}, {laned('i64', places)} {position}")
    if lanes == 1:
        return a.emit(f"store {a.real} {register}, ptr {address}")
    name, where = "store" if places == 1 else "scatter", f"{laned('ptr', places)} align {a.dtype.itemsize} {address}"
    a.emit(f"call void @llvm.masked.{name}(<{lanes} x {a.real}> {register}, {where}, <{lanes} x i1> {a.mask})")


# %% [markdown]
# One thing lives longer than one turn of a loop: a **sum** is a register that starts at 0.0 and grows. With lanes there are
# several partial sums, added at the end: another order, so float32 results differ in their last bits.


# %%
#| export assembler
class Sum:
    """A running sum: starts at 0.0, grows with `+=`, one partial sum a lane. `total()` adds the lanes."""

    def __init__(self, a):
        self.a, self.scope, self.kind = a, a.scope, laned(a.real, a.lanes)
        self.slot = a.slot(self.kind)
        a.emit(f"store {self.kind} zeroinitializer, ptr {self.slot}")

    def value(self):
        """What has been added up so far, one number a lane."""
        a = live(self.a, self).a
        return Value(a, a.write(f"load {self.kind}, ptr {self.slot}"), a.lanes)

    def __iadd__(self, term):
        a, old = self.a, self.value()
        if a.lanes > 1 and not a.mask and getattr(term, "lanes", 1) == 1:  # counts once, not once in each lane
            term = a.write(f"insertelement {self.kind} zeroinitializer, {a.real} {numeric(a, term)}, i32 0")
            term = Value(a, term, a.lanes)
        grown = (old + term).register
        if a.mask:  # masked lanes keep their sum
            grown = a.write(f"select <{a.lanes} x i1> {a.mask}, {self.kind} {grown}, {self.kind} {old.register}")
        a.emit(f"store {self.kind} {grown}, ptr {self.slot}")
        return self

    def total(self):
        """The sum as one number."""
        a, value = self.a, self.value()
        if value.lanes == 1:
            return value
        how, terms = "reassoc " * bool(a.flags), f"{a.real} 0.0, {self.kind} {value.register}"
        return Value(a, a.write(f"call {how}{a.real} @llvm.vector.reduce.fadd({terms})"))


# %% [markdown]
# A loop is a counter and a jump backwards, as in the listing above: a `test` block with the `phi`, a `body`, and an `after`.


# %%
#| export assembler
@contextmanager
def loop(a, extent, lanes=1):
    """Write a loop over [0, extent); with lanes, each turn takes that many counters at once."""
    if a.scope is None or lanes not in (1, a.lanes) or lanes > 1 and a.mask:
        raise ValueError(f"{a.name}: a loop takes 1 counter at once or, outside of lanes, {a.lanes}; got {lanes}")
    end, n = a.size(extent), len(a.lines)
    a.emit(f"br label %before{n}", f"before{n}:", f"br label %test{n}", f"test{n}:")
    a.emit(f"%i{n} = phi i64 [0, %before{n}], [%next{n}, %again{n}]", f"%more{n} = icmp slt i64 %i{n}, {end}")
    a.emit(f"br i1 %more{n}, label %body{n}, label %after{n}", f"body{n}:")
    a.scopes.append((a, n))
    if lanes == 1:
        yield Index(a, f"%i{n}", extent)
    else:
        first, several = spread(a, "i64", f"%i{n}", 1, lanes), ", ".join(f"i64 {lane}" for lane in range(lanes))
        each = a.write(f"add <{lanes} x i64> {first}, <{several}>")
        a.mask = "splat (i1 true)"  # all lanes, in every turn: then a mask costs nothing, on any processor
        if not end.isdigit() or int(end) % lanes:
            a.mask = a.write(f"icmp slt <{lanes} x i64> {each}, {spread(a, 'i64', end, 1, lanes)}")
        yield Index(a, each, extent, lanes, first=f"%i{n}")
        a.mask = None
    if a.scopes.pop() != (a, n):
        raise ValueError(f"{a.name}: loops end in the reverse order of their beginnings")
    a.emit(f"br label %again{n}", f"again{n}:", f"%next{n} = add i64 %i{n}, {lanes}")
    a.emit(f"br label %test{n}", f"after{n}:")


# %% [markdown]
# A call hands over a block of 64-bit words: an address for each array, the sizes that were left open, and the numbers.


# %%
#| export assembler
def word(a, sort, name, kind):
    """One 64-bit word of the block of arguments that a call hands over: an address, a size or a number."""
    if not isinstance(name, str) or not name.isidentifier():
        raise ValueError(f"{a.name}: {name!r} is not the name of a {sort}; expected a word such as 'rows'")
    if (sort, name) not in a.words:
        n = len(a.words)
        a.entry.append(f"  %address{n} = getelementptr i64, ptr %words, i64 {n}")
        a.entry.append(f"  %word{n} = load {kind}, ptr %address{n}")
        a.words[sort, name] = f"%word{n}"
    return a.words[sort, name]


# %% [markdown]
# `word` notes each of them once. Sizes and arrays ask it for theirs.


# %%
#| export assembler
def size(a, extent):
    """A size as a register: a positive whole number, or a name."""
    whole = isinstance(extent, numbers.Integral) and 0 < extent < 2**31
    return str(int(extent)) if whole else a.word("size", extent, "i64")


def array(a, name, *shape, rows_of=None):
    """An array that each call hands over. `rows_of`: it holds row numbers of the arrays of that size."""
    if name in a.arrays or not shape or ("number", name) in a.words:
        raise ValueError(f"{a.name}: array {name!r} needs a shape, and a name of its own")
    for size in shape if rows_of is None else (*shape, rows_of):
        a.size(size)
    a.word("array", name, "ptr")
    a.arrays[name] = Array(name, shape, rows_of)
    return a.arrays[name]


# %% [markdown]
# And what a program computes with besides arrays: numbers, and sizes as numbers.


# %%
#| export assembler
def number(a, name):
    """A number that each call hands over, such as a learning rate."""
    if name in a.arrays:
        raise ValueError(f"{a.name}: number {name!r} needs a name of its own")
    return Value(a, a.word("number", name, a.real))


def count(a, what):
    """A size, or an index, as a number to compute with."""
    register, lanes = (index(a, what).register, what.lanes) if isinstance(what, Index) else (a.size(what), 1)
    return Value(a, a.write(f"sitofp {laned('i64', lanes)} {register} to {laned(a.real, lanes)}"), lanes)


# %% [markdown]
# The assembler itself only holds the pieces together.


# %%
#| export assembler
class Assembler:
    """Writes one program. float64: one number at a time, nothing reordered. float32: lanes, and sums in lanes."""

    def __init__(self, name, dtype, lanes=None):
        if np.dtype(dtype) not in REAL:
            raise TypeError(f"{name}: dtype is {np.dtype(dtype)}; a program computes in float32 or float64")
        self.name, self.dtype, single = name, np.dtype(dtype), np.dtype(dtype) == np.float32
        self.real, self.flags = REAL[self.dtype], FAST if single else ""
        self.lanes = lanes or (host_lanes() if single else 1)
        if not isinstance(self.lanes, int) or self.lanes not in (1, 2, 4, 8, 16, 32, 64):
            raise ValueError(f"{name}: lanes is {lanes!r}; expected a power of two, at most 64")
        self.entry, self.lines, self.mask = [], [], None
        self.arrays, self.words, self.reaches = {}, {}, []
        self.scopes = [(self, None)]  # what is open, outermost first: the program itself, then its loops

    def emit(self, *lines):
        """Append lines; one that ends with a colon begins a block."""
        self.lines += [line if line.endswith(":") else f"  {line}" for line in lines]

    def write(self, text):
        """Append an instruction, and name the register that it sets."""
        register = f"%v{len(self.lines)}"
        self.emit(f"{register} = {text}")
        return register

    def slot(self, kind):
        """A place for one value that changes: the address of memory on the stack, which LLVM turns into a register."""
        self.entry.append(f"  %slot{len(self.entry)} = alloca {kind}")
        return f"%slot{len(self.entry) - 1}"

    @property
    def scope(self):
        """The innermost open loop: what is written now belongs to it."""
        if not self.scopes:
            raise ValueError(f"{self.name}: the program is assembled; nothing can be added to it")
        return self.scopes[-1]

    def sum(self):
        return Sum(self)

    def text(self):
        """The whole program, in LLVM's language. A vector put aside on the stack must not straddle two cache lines."""
        aligned = " nounwind alignstack(64)" * (self.lanes > 1)
        start = [f"define void @program(ptr %words){aligned} {{", "entry:", *self.entry, "  br label %start", "start:"]
        return "\n".join([*start, *self.lines, "  ret void", "}", ""])

    def assemble(self):
        """End the program and turn it into machine code."""
        return Program(self)

    load, store, loop, word, size, array, number, count = load, store, loop, word, size, array, number, count


# %% [markdown]
# Now `load` can be seen at work. Rows of three numbers lie one behind the other, so `x[1, 2]` has the place 1 · 3 + 2:

# %%
a = Assembler("peek", "f8")
x = a.array("x", "rows", 3)
print(x, "-", a.load(x, 1, 2))
print("\n".join(a.lines))

# %% [markdown]
# A multiplication, an addition, an address, a load. (A number for the row was already known, so LLVM will compute the place before
# the program runs.)
#
# Last, the finished program. To call it we hand over buffers by name. Everything that could go wrong in memory is
# checked before the first instruction runs: dtypes, shapes, the reach of every index, and that every row number is a row.
# Row numbers are looked at once: the buffer gets a copy of them that cannot be changed any more. (These checks are folded, and may
# be skipped; we shall see them refuse.)


# %% tags=["hide-input"]
#| export assembler
def memory_of(name, array, buffer, dtype, sizes):
    """The memory of a buffer, if it is what this array expects. Named sizes are learned on the way."""
    data = buffer.data if isinstance(buffer, Buffer) and buffer.device.kind == "cpu" else None
    if not isinstance(data, np.ndarray):
        raise TypeError(f"{name}: {array.name} is {buffer!r}; expected a live buffer on a CPU")
    dtype = np.dtype(np.int64) if array.rows_of else dtype
    fits = data.dtype == dtype and data.flags.c_contiguous and data.ndim == len(array.shape)
    for size, found in zip(array.shape, data.shape):
        fits = fits and found == (sizes.setdefault(size, found) if isinstance(size, str) else size)
    if not fits:
        known = f" with {sizes}" if sizes else ""
        raise ValueError(f"{name}: {array.name} is {data.shape} {data.dtype}; expected {array} {dtype}{known}")
    return data


# %% [markdown]
# Row numbers are data, so their reach is known only when they are there. And a number goes over as its bits.


# %%
#| export assembler
def check_rows(name, array, buffer, data, limit):
    """These row numbers, if all lie in [0, limit), in memory that nobody else can change any more."""
    if not buffer.rows or buffer.rows[0] is not data:
        data = buffer.data = data.copy()
        data.flags.writeable = False
        buffer.rows = data, *((int(data.min()), int(data.max())) if data.size else (0, -1))
    _, low, high = buffer.rows
    if low < 0 or high >= limit:
        raise IndexError(f"{name}: {array.name} holds row {low if low < 0 else high}; there are {limit} rows")
    return data


def as_word(program, name, number):
    """A number as the 64-bit word that hands it over."""
    if not isinstance(number, numbers.Real):
        raise TypeError(f"{program.name}: {name} is {number!r}; expected a number")
    return int(program.dtype.type(float(number)).view(f"i{program.dtype.itemsize}"))


# %% [markdown]
# `bind` does all that, and gives back a call that can be made many times.


# %%
#| export assembler
class Program:
    """Machine code with the names and shapes of what it works on. Call it with buffers and numbers by name."""

    def __init__(self, a):
        if len(a.scopes) != 1:
            raise ValueError(f"{a.name}: " + ("a loop has not ended" if a.scopes else "it is assembled already"))
        a.scopes.clear()
        self.name, self.dtype, self.arrays, self.words = a.name, a.dtype, dict(a.arrays), list(a.words)
        self.reaches, known = list(dict.fromkeys(a.reaches)), {size for x in a.arrays.values() for size in x.shape}
        if lost := [name for sort, name in self.words if sort == "size" and name not in known]:
            raise ValueError(f"{a.name}: the size {lost[0]} is unknown: it stands in no array's shape")
        self.text = a.text()
        self.engine, address = machine_code(self.text)
        self.run = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)

    def bind(self, **given):
        """Check buffers and numbers once. Returns the call, which takes no arguments and can be made many times."""
        names = [name for sort, name in self.words if sort != "size"]
        if wrong := set(names) ^ set(given):
            raise TypeError(f"{self.name}: takes {', '.join(names)}; missing or unknown: {', '.join(sorted(wrong))}")
        sizes, memory = {}, {}
        for name, array in self.arrays.items():
            memory[name] = memory_of(self.name, array, given[name], self.dtype, sizes)
        if len(devices := {given[name].device.name for name in memory}) > 1:
            raise ValueError(f"{self.name}: buffers on {' and '.join(sorted(devices))}; copy them to one device first")
        for name, array in self.arrays.items():
            if array.rows_of:
                limit = sizes.get(array.rows_of, array.rows_of)
                memory[name] = check_rows(self.name, array, given[name], memory[name], limit)
        for reached in self.reaches:
            check_reach(self.name, *reached, sizes)
        words = {("array", name): data.ctypes.data for name, data in memory.items()}
        words |= {("size", name): size for name, size in sizes.items()}
        words |= {("number", name): as_word(self, name, given[name]) for name in set(given) - set(memory)}
        block = (ctypes.c_int64 * len(self.words))(*(words[word] for word in self.words))

        def launch():
            for name, data in memory.items():
                if given[name].data is not data:
                    raise ValueError(f"{self.name}: {name} was freed after it was bound; bind again")
            self.run(block)

        return launch

    def __call__(self, **given):
        """Check everything and run."""
        self.bind(**given)()

    def listing(self):
        """This processor's instructions, without the directives and comments of LLVM's printer."""
        target = target_machine()
        return trimmed(target.emit_assembly(optimised(self.text, target)))


# %% [markdown]
# ### The first program again
#
# `y = x·x` for any number of rows:

# %%
a = Assembler("square", "f8")
x, y = a.array("x", "rows"), a.array("y", "rows")
with a.loop("rows") as i:
    v = a.load(x, i)
    a.store(v * v, y, i)
square = a.assemble()

here, out = cpu.put(np.arange(5.0)), cpu.alloc((5,), "f8")
square(x=here, y=out)
out.numpy()

# %% [markdown]
# Four lines wrote the text below, and it is nearly the text from above. The difference: it takes one argument, the block of
# words.

# %%
print(square.text)

# %% [markdown]
# And what could go wrong is an error, when the program is written or when it is called. Here are a column that is not there,
# a value whose loop has ended, and an array too short:

# %%
a = Assembler("wrong", "f8")
x, out = a.array("x", "rows", 3), a.array("out", 1)
with a.loop("rows") as i:
    v = a.load(x, i, 0)
for attempt in (lambda: a.load(x, 0, 3), lambda: a.store(v, out, 0), lambda: square(x=here, y=cpu.alloc((4,), "f8"))):
    try:
        attempt()
    except (IndexError, ValueError) as error:
        print(f"{type(error).__name__}: {error}")

# %% [markdown]
# ## Measure your machine (12 min)
#
# We can write programs now, so we can ask the machine itself. Timing has rules. Take the clock that counts only this
# thread's work, so that a busy neighbour does not count. Repeat, and take the **median**: one interruption spoils a mean.

# %%
#| export roofline
"""Time has a floor: how fast this machine loads, computes and calls, measured by programs of our own."""

import functools
import statistics
import sys
import time


def seconds(run, repeats=7):
    """The median time of `run` in seconds: this thread's own work; on Windows, whose clock for that is coarse, all time."""
    clock, times = time.perf_counter if sys.platform == "win32" else time.thread_time, []
    for _ in range(repeats):
        start = clock()
        run()
        times.append(clock() - start)
    return statistics.median(times)


# %% [markdown]
# ### How far away is memory?
#
# To find out how long one load takes, each load must wait for the one before. So we make a chain: every element holds
# the number of the next one. The chain visits one element in every cache line. The order is random, so that nothing can
# be guessed ahead. The program walks along it. Where it stands must outlive a turn of the loop, so it is kept in a slot, as a
# sum keeps its number; these lines of LLVM we write ourselves.


# %%
#| export roofline
@functools.cache
def chase_program(steps):
    """Walk along a chain of row numbers."""
    a = Assembler("chase", "f8")
    chain, start, out = a.array("chain", "n", rows_of="n"), a.array("start", 1, rows_of="n"), a.array("out", 1)
    slot, first = a.slot("i64"), a.load(start, 0)
    a.emit(f"store i64 {first.register}, ptr {slot}")
    with a.loop(steps):
        here = Index(a, a.write(f"load i64, ptr {slot}"), "n")
        a.emit(f"store i64 {a.load(chain, here).register}, ptr {slot}")
    a.store(a.count(Index(a, a.write(f"load i64, ptr {slot}"), "n")), out, 0)
    return a.assemble()


def measure_latency(device, nbytes, steps=2**15):
    """Seconds of one load that waits for the one before, at random places in `nbytes` of memory."""
    draw, stride = np.random.default_rng(0), LINE // 8
    order = draw.permutation(nbytes // LINE) * stride
    chain = np.zeros(nbytes // 8, np.int64)
    chain[order] = np.roll(order, -1)
    chain, out, program = device.put(chain), device.alloc((1,), "f8"), chase_program(steps)
    starts = [device.put(order[i : i + 1]) for i in draw.integers(0, len(order), 7)]  # not twice the same way
    walks = iter([program.bind(chain=chain, start=start, out=out) for start in starts])
    return seconds(lambda: next(walks)()) / steps


# %% tags=["hide-input"]
checks.predict(
    "A load waits for the one before. How many times as long does it take when the chain fills 256 MiB, not 4 KiB?",
    slider=(1, 1000),
    answer=(40, 250),
    because="4 KiB stay in the cache beside the core, a few turns of its clock away. 256 MiB fit into no cache of most "
    "machines, so nearly every load goes out to the memory chips. How far away these are differs from machine to machine: "
    "the next cell measures yours.",
)

# %% tags=["nbval-ignore-output"]
sizes = [2**k for k in range(12, 29)]
figures.staircase(sizes, [measure_latency(cpu, size) * 1e9 for size in sizes], figures.host_caches())

# %% [markdown]
# Each step of the staircase is a **cache**: a small memory close to the core that keeps copies of the lines used last. What
# does not fit into it comes from the next one, which is larger and farther away. At the very right even finding the place
# takes time: the processor must look up where in the chips a page of memory lies
# ([Drepper, 2007](https://www.akkadia.org/drepper/cpumemory.pdf) tells the whole story).
#
# A line of 64 bytes holds sixteen float32. Use all sixteen or one of them: the cost is the same.

# %% tags=["hide-input"]
checks.predict(
    "A matrix of 8192 × 8192 float32 lies row after row. We add it up row by row, then column by column. "
    "How many times as long does the second take?",
    slider=(1, 50, 1),
    answer=(3, 30),
    because="A column touches a new line with every number and leaves the other fifteen unused. The rows are 2^15 bytes "
    "apart, so these lines also compete for the same few places of the cache. How many places there are depends on the machine.",
)

# %% tags=["nbval-ignore-output"]
x = np.ones((8192, 8192), "f4")


def add_up(lines):
    return seconds(lambda: [line.sum() for line in lines], repeats=3)


by_rows, by_columns = add_up(x), add_up(x.T)
print(f"by rows {by_rows * 1e3:.0f} ms, by columns {by_columns * 1e3:.0f} ms: {by_columns / by_rows:.1f} times as long")
del x

# %% [markdown]
# ### How much can it read?
#
# Loads that do not wait for each other overlap. So another number tells how fast a program can stream through memory: the
# **bandwidth**. This program reads everything, 16 lanes at a time or however many there are, in eight independent sums.


# %%
#| export roofline
@functools.cache
def read_program(sums=8):
    """Add up an array, several times over, in independent sums."""
    a = Assembler("read", "f4")
    x, out = a.array("x", "blocks", sums, a.lanes), a.array("out", "passes")  # its length says how often
    with a.loop(a.lanes, a.lanes) as lane:  # one turn: it only says which lane
        totals = [a.sum() for _ in range(sums)]
        with a.loop("passes"), a.loop("blocks") as i:
            for k, total in enumerate(totals):
                total += a.load(x, i, k, lane)
        a.store(sum((total.total() for total in totals), 0.0), out, 0)
    return a.assemble()


def measure_bandwidth(device, nbytes=2**28):
    """Bytes a second that one core reads, over and over, from that many bytes of memory (default: beyond the caches)."""
    program, passes = read_program(), max(1, 2**27 // nbytes)
    _, sums, lanes = program.arrays["x"].shape
    x = device.put(np.ones((nbytes // 4 // sums // lanes, sums, lanes), "f4"))
    return passes * x.spec.nbytes / seconds(program.bind(x=x, out=device.alloc((passes,), "f4")))


MEASURES["bandwidth"] = measure_bandwidth

# %% tags=["nbval-ignore-output"]
figures.bandwidths(sizes, [measure_bandwidth(cpu, size) for size in sizes], figures.host_caches())

# %% [markdown]
# ### How fast does it compute?
#
# An addition takes a few turns of the processor's clock, but a core can begin one or two in every turn, if they do not need
# each other's results. So the speed depends on how many sums the program keeps going at once. This one does nothing but
# multiply and add, in registers.


# %%
#| export roofline
@functools.cache
def peak_program(sums, turns):
    """Multiply and add in every lane of so many independent sums, without touching memory."""
    a = Assembler("peak", "f4")
    factor, out = a.load(a.array("factor", 1), 0), a.array("out", 1)
    totals = [a.sum() for _ in range(sums)]
    with a.loop(turns):
        for total in totals:
            total += total.value() * factor  # the numbers stay 0.0: only the time matters
    a.store(sum((total.total() for total in totals), 0.0), out, 0)
    return a.assemble()


def measure_sums(device, sums, turns=200_000):
    """float32 operations a second of one core that keeps so many independent sums going."""
    program, one = peak_program(sums, turns), device.put(np.ones(1, "f4"))
    return 2 * sums * host_lanes() * turns / seconds(program.bind(factor=one, out=device.alloc((1,), "f4")))


MEASURES["peak"] = lambda device: max(measure_sums(device, sums) for sums in (8, 12, 16, 24))

# %% tags=["hide-input"]
checks.predict(
    "One sum against twelve independent sums, the same instruction: how many times as many operations a second?",
    slider=(1, 12, 1),
    answer=(4, 12),
    because="One sum alone waits for its own last addition, about four turns of the clock. A core that begins one in every "
    "turn gains 4 times, one that begins two gains 8, and Apple's large cores begin four.",
)

# %% tags=["nbval-ignore-output"]
counts = list(range(1, 17))
figures.accumulators(counts, [measure_sums(cpu, count) for count in counts])

# %% [markdown]
# How long each instruction of a processor takes, and how many a core begins in a turn, is measured and listed by
# [Fog, "Instruction tables"](https://www.agner.org/optimize/instruction_tables.pdf) for Intel's and AMD's, and by
# [Johnson, "Apple M1 Microarchitecture"](https://dougallj.github.io/applecpu/firestorm.html) for Apple's.
#
# The plateau is the **peak** for these instructions. Each sum of the record is one chain: its additions cannot share lanes,
# and cannot overlap. (Different sums still can.) That is the price of strictness in float64, and why float32 may reorder.
#
# ### What does a call cost?
#
# Last, the call itself: from Python into a program that does next to nothing, and back.


# %%
#| export roofline
def measure_launch(device, calls=1000):
    """Seconds that one call of a bound program takes when there is nothing to do."""
    a = Assembler("nothing", "f4")
    a.store(0.0, a.array("out", 1), 0)
    call = a.assemble().bind(out=device.alloc((1,), "f4"))
    return seconds(lambda: [call() for _ in range(calls)]) / calls


MEASURES["launch_time"] = measure_launch

# %% [markdown]
# Now the pool can say what it is:

# %% tags=["nbval-ignore-output"]
pool(cpus=2)

# %% [markdown]
# ### The roofline
#
# How fast *can* a program be? If it does many operations on each byte, the peak bounds it; if few, the bandwidth.
# Operations per byte on one axis, operations per second on the other: the bound looks like a roof. We put two programs
# under it that multiply two 240 × 240 matrices. Both do the same additions. The second keeps eight rows, so eight sums,
# going at once.


# %%
def matmul_program(size, rows):
    a, blocks = Assembler("matmul", "f4"), size // rows
    x, w, y = a.array("x", blocks, rows, size), a.array("w", size, size), a.array("y", blocks, rows, size)
    with a.loop(blocks) as block, a.loop(size, a.lanes) as j:
        sums = [a.sum() for _ in range(rows)]
        with a.loop(size) as k:
            for r, s in enumerate(sums):
                s += a.load(x, block, r, k) * a.load(w, k, j)
        for r, s in enumerate(sums):
            a.store(s.value(), y, block, r, j)
    return a.assemble()


# %% [markdown]
# `rows` says how many rows, so how many sums, it keeps going. Each sum has a lane for each of the neighbouring columns `j`.

# %%
n, draw = 240, np.random.default_rng(0)
matrices = [draw.standard_normal((n, n), "f4") for _ in range(2)]
points = []
for rows in (1, 8):
    x, w = matrices
    x, w, y = cpu.put(x.reshape(-1, rows, n)), cpu.put(w), cpu.alloc((n // rows, rows, n), "f4")
    run = matmul_program(n, rows).bind(x=x, w=w, y=y)
    points.append((f"matmul, {rows} row{'s' * (rows > 1)}", 2 * n**3, 3 * 4 * n**2, seconds(run)))
    print(
        f"{rows} at once: equal to NumPy's, nearly:",
        np.allclose(y.numpy().reshape(n, n), matrices[0] @ matrices[1], atol=1e-3),
    )

# %% tags=["nbval-ignore-output"]
figures.roofline(cpu.peak, cpu.bandwidth, points)

# %% [markdown]
# The picture says what to do. A point far below the flat part of the roof computes too slowly: more independent work. A point
# at the slope moves too many bytes: fewer of them. A point above the slope reads from a cache, which has a steeper roof
# of its own. These three matrices fit into a cache. Level 2 takes larger ones, which do not fit, to the same height.

# %% [markdown]
# ## exp and log, by hand (8 min)
#
# The second task needs eˣ and log x. Processors have no fast and exact instruction for them. `math.exp` comes from a library,
# and libraries differ in the last bit. So the course writes its own, once, and *every* level runs that one source: on
# Python's floats, in programs of the assembler, in kernels.
#
# The source needs a few small tools. Each works on a Python float, and on a `Value` it writes instructions. `select`
# chooses; `rint` rounds; `scaled` and `exponent` change and read the exponent in the bits of a float, which are sign, exponent
# and fraction ([IEEE 754](https://doi.org/10.1109/IEEESTD.2019.8766229)).

# %%
#| export elementary
"""exp and log, written once: the same source runs on Python's floats, in programs and in kernels."""

import struct

SINGLE, DOUBLE = np.dtype("f4"), np.dtype("f8")
# integers as wide, bits of fraction, bias of the exponent, the bits of √½
FORMAT = {SINGLE: ("i32", 23, 127, 0x3F3504F3), DOUBLE: ("i64", 52, 1023, 0x3FE6A09E667F3BCD)}


def rint(x):
    """The nearest whole number, halves to even."""
    if isinstance(x, Value):
        return named("rint", x)
    return float(round(x)) if math.isfinite(x) else x


def sqrt(x):
    """The square root, rounded once; of a negative number NaN."""
    if isinstance(x, Value):
        return named("sqrt", x)
    return math.nan if x < 0.0 else math.sqrt(x)


# %% [markdown]
# The larger and the smaller of two numbers sound simple. Two cases ask for a decision: 0.0 and -0.0 are equal, and nothing is
# larger than NaN.


# %%
#| export elementary
def maximum(x, y):
    """The larger of two numbers: of 0.0 and -0.0 the first, and NaN if either is."""
    if isinstance(x, Value) or isinstance(y, Value):
        return named("maximum", x, y)
    if x == y == 0.0 or x != x or y != y:
        return x + y
    return x if x > y else y


def minimum(x, y):
    """The smaller of two numbers: of 0.0 and -0.0 the second, and NaN if either is."""
    if isinstance(x, Value) or isinstance(y, Value):
        return named("minimum", x, y)
    if x == y == 0.0 or x != x or y != y:
        return -(-x - y)
    return x if x < y else y


# %% [markdown]
# The last two tools reach into the bits. A whole number n, plus the bias of the format, *is* the exponent of 2ⁿ once it is
# shifted to its place. Read the first half of each: it is for Python's floats. The second half writes the same as instructions.


# %%
#| export elementary
def scaled(x, n):
    """x · 2ⁿ for a whole number n, in two steps: 2ⁿ alone may overflow where the result does not."""
    if not isinstance(n, Value):
        for part in (int(n) >> 1, int(n) - (int(n) >> 1)):
            x = x * struct.unpack("<d", struct.pack("<Q", (part + 1023 << 52) % 2**64))[0]
        return x
    a, (whole, fraction, bias, _) = n.a, FORMAT[n.a.dtype]
    real, kind = laned(a.real, n.lanes), laned(whole, n.lanes)
    both = a.write(f"fptosi {real} {numeric(a, n + 2.0 * bias)} to {kind}")  # so that each half has the bias
    one, shift = (spread(a, whole, str(number), 1, n.lanes) for number in (1, fraction))
    half = a.write(f"ashr {kind} {both}, {one}")
    for part in (half, a.write(f"sub {kind} {both}, {half}")):
        bits = a.write(f"shl {kind} {part}, {shift}")
        x = x * Value(a, a.write(f"bitcast {kind} {bits} to {real}"), n.lanes)
    return x


# %%
scaled(1.5, 3)

# %% [markdown]
# The way back: shift the fraction away, and what is left is the exponent. The bits of √½ are taken off first, so that
# the cut lies at √½ and not at 1, and x / 2ᵉ is close to 1 on both sides.


# %%
#| export elementary
def exponent(x):
    """The e for which x / 2ᵉ lies in [√½, √2), for a positive normal x."""
    if not isinstance(x, Value):
        return float(struct.unpack("<q", struct.pack("<d", x))[0] - FORMAT[DOUBLE][-1] >> 52)
    a, (whole, fraction, _, root) = x.a, FORMAT[x.a.dtype]
    real, kind = laned(a.real, x.lanes), laned(whole, x.lanes)
    root, shift = (spread(a, whole, str(number), 1, x.lanes) for number in (root, fraction))
    bits = a.write(f"bitcast {real} {numeric(a, x)} to {kind}")
    bits = a.write(f"sub {kind} {bits}, {root}")
    bits = a.write(f"ashr {kind} {bits}, {shift}")
    return Value(a, a.write(f"sitofp {kind} {bits} to {real}"), x.lanes)


# %%
exponent(12.0)

# %% [markdown]
# 12 is 2⁴ · 0.75, and 0.75 lies between √½ and √2. Now eˣ. Write x = n·log 2 + r with a whole number n and a small r. Then eˣ
# = 2ⁿ·eʳ, and for a small r a polynomial is as exact as the format. `log 2` is split into a short number and a rest, so that
# n times the short one is exact. The scheme and the float32 split are from [Cephes](https://www.netlib.org/cephes/), the
# float64 split from [fdlibm](https://www.netlib.org/fdlibm/). The float64 polynomial is the series itself, 1/k!. The float32
# polynomial is the one of degree 6 whose largest relative error is smallest: the series would need a degree more.


# %%
#| export elementary
def make_exp(bottom, top, log2_e, ln2, ln2_rest, series):
    """eˣ for one format; below `bottom` it is 0, and 2^`top` is infinite."""

    def exp(x):
        y = select(x < bottom, bottom, x)  # a NaN stays a NaN
        n = rint(y * log2_e)
        n = select(n < top, n, top)  # also for a NaN, which is no exponent
        r = (y - n * ln2) - n * ln2_rest
        p = series[0]
        for c in series[1:]:
            p = p * r + c
        return scaled(p * (r * r) + r + 1.0, n)

    return exp


# %% [markdown]
# The numbers for both formats:


# %%
#| export elementary
EXP = {
    DOUBLE: make_exp(
        *(-746.0, 1025.0, 1.4426950408889634, 6.93147180369123816490e-01, 1.90821492927058770002e-10),
        tuple(1.0 / math.factorial(k) for k in range(13, 1, -1)),
    ),
    SINGLE: make_exp(
        *(-104.0, 129.0, 1.4426950408889634, 0.693359375, -2.12194440e-4),
        (1.38144335e-3, 8.36879667e-3, 4.16683964e-2, 1.66665196e-1, 4.9999994e-1),
    ),
}

# %%
print(f"{EXP[DOUBLE](1.0):.14f}")
print(f"{math.e:.14f}")

# %% [markdown]
# The one for float64 gives the number e, to the last digit that we print. For log x the way back: x = 2ᵉ·(1 + f), so log x =
# e·log 2 + log(1 + f), and a polynomial in s = f/(2 + f) does the rest. It is cut into two, the even powers and the odd ones,
# so that a processor can run both at once. Scheme and float64 numbers: [fdlibm](https://www.netlib.org/fdlibm/), Sun
# Microsystems, 1993; float32 numbers: FreeBSD's `e_logf.c`, after it. (The cell may be skimmed.)


# %%
#| export elementary
def make_log(tiny, scale, shift, ln2, ln2_rest, even, odd):
    """log x for one format. Numbers below `tiny` have lost bits of their exponent and are scaled by 2^shift first."""

    infinity, nan = math.inf, math.nan  # so that kernels find them, too, in the dtype that they work in

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
# The numbers of both formats, and the two functions that everybody calls:

# %%
#| export elementary
LOG = {
    DOUBLE: make_log(
        *(2.0**-1022, 2.0**54, 54.0, 6.93147180369123816490e-01, 1.90821492927058770002e-10),
        (1.531383769920937332e-01, 2.222219843214978396e-01, 3.999999999940941908e-01),
        (1.479819860511658591e-01, 1.818357216161805012e-01, 2.857142874366239149e-01, 6.666666666666735130e-01),
    ),
    SINGLE: make_log(
        *(2.0**-126, 2.0**25, 25.0, 0.69313812256, 9.0580006145e-6),
        (0.24279078841, 0.40000972152),
        (0.28498786688, 0.66666662693),
    ),
}


def exp(x):
    """eˣ of a Python float, or of a value in a program."""
    return EXP[x.a.dtype if isinstance(x, Value) else DOUBLE](x)


def log(x):
    """The natural logarithm of a Python float, or of a value in a program."""
    return LOG[x.a.dtype if isinstance(x, Value) else DOUBLE](x)


# %% [markdown]
# How far are they from the library's? In units of the last place, over ten thousand random numbers:

# %%
import math
import random

draw = random.Random(1).uniform
for f, library, low, high in ((exp, math.exp, -700, 700), (log, math.log, 1e-7, 2)):
    away = [abs(f(x) - library(x)) / math.ulp(library(x)) for x in (draw(low, high) for _ in range(10_000))]
    print(f"{f.__name__}: at most {max(away):.0f}")
print([exp(x) for x in (math.inf, -math.inf, math.nan, 0.0)], [log(x) for x in (math.inf, 0.0, -1.0, 5e-324)])

# %% [markdown]
# Never more than one, where the library's own last digit may be the wrong one. And infinities, NaN, zero and the smallest
# number are right.

# %% [markdown]
# ## The two tasks on this level (8 min)
#
# ### Data
#
# Every level has the same function, `linear_regression(x, y, weights, batches, learning_rate)`, and gives back the same
# kind of result, a `Fit`. Wrong data is refused here, once, for all five levels.

# %%
#| export tasks
"""The two tasks in machine code: one program, one call, any number of steps."""

import functools
from collections.abc import Callable
from typing import NamedTuple


class Fit(NamedTuple):
    """What training gives back."""

    losses: np.ndarray  # [steps], each taken before its update
    weights: list  # like the argument
    predict: Callable  # x[m, features] -> [m, 1]


# %% [markdown]
# `Fit` is what training returns. Two checks follow, of one array and of inputs. (They and the next cell may be
# skimmed.)


# %%
#| export tasks
def check_array(name, array, dtype, *shape):
    """Raise ValueError unless this is a NumPy array of that dtype and shape, with no NaN and no infinity."""
    if not isinstance(array, np.ndarray) or (unmasked(array).dtype, array.shape) != (dtype, shape):
        found = f"{getattr(array, 'dtype', type(array).__name__)}{list(np.shape(array))}"
        raise ValueError(f"{name} is {found}; expected a NumPy array {dtype}{list(shape)}")
    if not np.isfinite(array).all():
        row = np.argmin(np.isfinite(array).all(axis=1))
        raise ValueError(f"{name} is not a finite number in row {row}; drop or fill such rows")


def check_inputs(x, dtype, features):
    """Raise ValueError unless x is [m, features] of that dtype, with no NaN and no infinity."""
    check_array("x", x, dtype, *np.shape(x)[:1], features)


# %% [markdown]
# The same for all the arguments of a task. `units` says how many units each layer has: `[1]` for the line.


# %%
#| export tasks
def check_task(x, y, weights, batches, learning_rate, units):
    """Raise TypeError, ValueError or IndexError unless all fit each other and a net of layers with that many `units`.

    x[rows, features] and y[rows, 1] of one float dtype; weights [w, b, …], w[inputs, units] and b[1, units] of that dtype;
    batches[steps, batch], row numbers of x.
    """
    dtype = getattr(x, "dtype", None)
    if dtype not in (np.float32, np.float64):
        raise TypeError(f"x is {dtype or type(x).__name__}; expected a NumPy array of float32 or float64")
    if x.ndim != 2:
        raise ValueError(f"x has shape {x.shape}; expected [rows, features]")
    sizes = [x.shape[1], *units]
    shapes = [shape for inputs, outputs in zip(sizes, units) for shape in ((inputs, outputs), (1, outputs))]
    if len(weights) != len(shapes):
        raise ValueError(f"weights are {len(weights)} arrays; expected {len(shapes)}: {shapes}")
    check_array("x", x, dtype, *x.shape)
    check_array("y", y, dtype, len(x), 1)
    for i, (array, shape) in enumerate(zip(weights, shapes)):
        check_array(f"weights[{i}]", array, dtype, *shape)
    rows = np.asarray(batches)
    if rows.ndim != 2 or rows.dtype.kind not in "iu" or rows.size == 0:
        raise ValueError(f"batches are {rows.dtype}{rows.shape}; expected integers [steps, batch], at least one")
    if rows.min() < 0 or rows.max() >= len(x):
        raise IndexError(f"batches hold row {rows.min() if rows.min() < 0 else rows.max()}; x has {len(x)} rows")
    if not isinstance(learning_rate, (int, float)) or not 0 < learning_rate < np.inf:
        raise ValueError(f"learning_rate is {learning_rate!r}; expected a positive number")


# %% [markdown]
# ### Model and training
#
# We write the first task as a program, step by step, with the plain Python above beside it. First the smallest piece: to
# predict. One loop over rows; in it, the sum of the record, then the bias.


# %%
#| export tasks
def dot(p, q):
    """0.0 + p[0]·q[0] + p[1]·q[1] + …, in that order. Python's `sum` would not do: since 3.12 it corrects its rounding."""
    total = 0.0
    for a, b in zip(p, q):
        total = total + a * b
    return total


# %%
dot([1.0, 2.0], [3.0, 4.0])

# %% [markdown]
# On Python's numbers it computes. On values it writes a program, and here is the first one that uses it:


# %%
#| export tasks
@functools.cache
def linear_predict_program(dtype, features):
    """The program that predicts: one row after the other."""
    a = Assembler("linear_predict", dtype)
    x, out = a.array("x", "rows", features), a.array("out", "rows", 1)
    w, b = a.array("w", features, 1), a.array("b", 1, 1)
    with a.loop("rows") as r:
        row = [a.load(x, r, k) for k in range(features)]
        a.store(dot(row, [a.load(w, k, 0) for k in range(features)]) + a.load(b, 0, 0), out, r, 0)
    return a.assemble()


# %% [markdown]
# `dot` is a Python function that runs while the program is *written*. In the machine there is no `dot` and no call: only
# two multiplications and three additions for each row.
#
# Next, the loss of one batch. The batch is a list of row numbers, so a row is found in two steps: load the number, then load
# what it points to. The errors' squares go into a sum that outlives the turns of the loop.

# %%
a = Assembler("loss_of_a_batch", "f8")
x, y, w, b = a.array("x", "rows", 2), a.array("y", "rows", 1), a.array("w", 2, 1), a.array("b", 1, 1)
picked, out, loss = a.array("picked", "batch", rows_of="rows"), a.array("out", 1), a.sum()
with a.loop("batch") as r:
    i = a.load(picked, r)
    prediction = dot([a.load(x, i, k) for k in range(2)], [a.load(w, k, 0) for k in range(2)]) + a.load(b, 0, 0)
    error = prediction - a.load(y, i, 0)
    loss += error * error
a.store(loss.total() / a.count("batch"), out, 0)
program, answer = a.assemble(), cpu.alloc((1,), "f8")

w, b = (cpu.put(v) for v in task.weights)
program(x=cpu.put(task.x), y=cpu.put(task.y), w=w, b=b, picked=cpu.put(task.batches[0]), out=answer)
print("equal to the record's first loss:", answer.numpy()[0] == record[0])

# %% [markdown]
# Now the whole of it. Each row also adds to the sums of the gradients, the weights move after the loop, and one more loop
# around all this goes through the steps. While the rows pass, the weights wait in registers.


# %%
#| export tasks
@functools.cache
def linear_program(dtype, features):
    """The program that trains a linear regression: any rows, any batch, any number of steps."""
    a = Assembler("linear_regression", dtype)
    x, y = a.array("x", "rows", features), a.array("y", "rows", 1)
    w_, b_ = a.array("w", features, 1), a.array("b", 1, 1)
    batches, losses = a.array("batches", "steps", "batch", rows_of="rows"), a.array("losses", "steps")
    n, learning_rate = a.count("batch"), a.number("learning_rate")
    g = 1.0 / n
    with a.loop("steps") as step:
        w, b = [a.load(w_, k, 0) for k in range(features)], a.load(b_, 0, 0)  # model
        loss, dw, db = a.sum(), [a.sum() for _ in w], a.sum()
        with a.loop("batch", a.lanes) as r:
            i = a.load(batches, step, r)
            rows = [a.load(x, i, k) for k in range(features)]
            prediction = dot(rows, w) + b  # forward
            error = prediction - a.load(y, i, 0)
            loss += error * error  # loss
            de = g * error + g * error  # backward
            db += de
            for k in range(features):
                dw[k] += rows[k] * de
        a.store(loss.total() / n, losses, step)
        a.store(b - learning_rate * db.total(), b_, 0, 0)  # update
        for k in range(features):
            a.store(w[k] - learning_rate * dw[k].total(), w_, k, 0)
    return a.assemble()


# %% [markdown]
# The task function itself puts the data into the device's memory, calls once, and takes the results out.


# %%
#| export tasks
def weight_names(weights):
    """w and b, or w1, b1, w2, b2, …: what the programs call these arrays."""
    return ["w", "b"] if len(weights) == 2 else [f"{name}{k + 1}" for k in range(len(weights) // 2) for name in "wb"]


def run_programs(train, forward, x, y, weights, batches, learning_rate):
    """Put everything into memory, train in one call, and keep the weights there for predictions."""
    cpu, features, dtype = pool()["cpu:0"], x.shape[1], x.dtype
    trained = dict(zip(weight_names(weights), map(cpu.put, weights)))
    rows, losses = cpu.put(np.asarray(batches, np.int64)), cpu.alloc((len(batches),), dtype)
    data = dict(x=cpu.put(x), y=cpu.put(y), batches=rows, losses=losses, learning_rate=learning_rate)
    train(dtype, features)(**data, **trained)

    def predict(x):
        check_inputs(x, dtype, features)
        out = cpu.alloc((len(x), 1), dtype)
        forward(dtype, features)(x=cpu.put(x), out=out, **trained)
        return out.numpy()

    return Fit(losses.numpy(), [w.numpy() for w in trained.values()], predict)


# %% [markdown]
# And the function that all five levels have in common, in two lines:


# %%
#| export tasks
def linear_regression(x, y, weights, batches, learning_rate=0.0005):
    """Mean squared error, stochastic gradient descent; see `Fit` and `check_task` for the shapes."""
    check_task(x, y, weights, batches, learning_rate, units=[1])
    return run_programs(linear_program, linear_predict_program, x, y, weights, batches, learning_rate)


# %% tags=["hide-input"]
checks.predict(
    "The plain Python above took 8,000 steps. What will the machine's 8,000 losses be, compared with its losses?",
    choices=["close, to three digits or so", "equal but for the last digit or two", "equal, to the last bit"],
    answer="equal, to the last bit",
    because="Same numbers, same operations, same order, each result rounded by the same rule (IEEE 754): there is nothing left "
    "to differ. In float64 the assembler lets LLVM neither reorder nor fuse.",
)

# %%
fit = linear_regression(task.x, task.y, task.weights, task.batches, task.learning_rate)
print(
    "losses equal:",
    fit.losses.tolist() == record,
    "  weights equal:",
    [v.tolist() for v in fit.weights] == record_weights,
)
print("last loss   ", fit.losses[-1].hex(), "(a float written exactly, in base 16)")

# %% [markdown]
# Equal, all 8,000 of them, to the last bit.
#
# ### Result
#
# On the left is the loss of each batch, in grey, and the mean of fifty of them. On the right: how good is it on the hundred test
# rows? **R²** says which part of the ups and downs of y the line explains: 1 is all of
# it, 0 is what the mean of y alone would do.

# %%
figures.regression(task, fit)

# %% [markdown]
# The same source on real data: 342 penguins measured near Palmer Station, Antarctica
# ([Gorman, Williams and Fraser, 2014](https://doi.org/10.1371/journal.pone.0090081)). How heavy is a penguin whose bill
# and flippers we have measured? (Its inputs are *standardised*: the mean is taken off, and the rest divided by the standard
# deviation. Exercise 01-5 shows why.)

# %%
penguins = tasks.penguins_mass()
penguin_fit = linear_regression(*penguins[:2], *penguins[4:7])
figures.regression(penguins, penguin_fit)

# %% [markdown]
# ### The second task: a net
#
# Two rings of points, one inside the other. No line parts them. A **dense layer** is several linear regressions side by
# side; **relu** keeps what is positive and makes the rest 0; a **sigmoid** turns the last number into a probability p. Three
# layers of 4, 8 and 1 units: a small deep neural network (DNN). Its loss is the **binary cross-entropy**, the mean of
# `-log p` where y is 1 and `-log(1 - p)` where y is 0.

# %%
rings = tasks.rings()
figures.classes(rings)

# %% [markdown]
# The plain Python of one step, with every gradient written out, is the other half of the record. One thing is new. The logarithm
# of 0 is infinite, so the loss takes not `p` but `c`: that is p **clipped**, kept at least 1e-7 away from 0 and 1.

# %%
figures.source(reference.dnn_step)

# %% [markdown]
# Now the net for a program, 61 weights. Again these functions run while the program is *written*.


# %%
#| export tasks
def relu(z):
    return select(z <= 0.0, 0.0, z)  # so asked, a NaN stays a NaN


def dense(inputs, w, b):
    """One row through one layer: dot(inputs, w[:, j]) + b[0][j] for each unit j."""
    return [dot(inputs, column) + bias for column, bias in zip(zip(*w), b[0])]


def forward(row, weights):
    """One row through the net: the hidden layers' outputs and the probability."""
    w1, b1, w2, b2, w3, b3 = weights
    h1 = [relu(z) for z in dense(row, w1, b1)]
    h2 = [relu(z) for z in dense(h1, w2, b2)]
    (z,) = dense(h2, w3, b3)
    return h1, h2, 1.0 / (1.0 + exp(0.0 - z))


# %% [markdown]
# These functions do not care what they are given. On values they write a program; on Python's floats they compute at once.
# So we can try them before there is a program:

# %%
floats = [v.tolist() for v in rings.weights]  # each a list of rows
point, answer = rings.x[0].tolist(), float(rings.y[0, 0])
h1, h2, p = forward(point, floats)
print(f"the first point: probability {p:.4f}, true answer {answer:.0f}")

# %% [markdown]
# ### Your turn
#
# The gradient walks back through the layers. Say `d[j]` is the slope of the loss at unit j of the next layer. Output k of this
# layer feeds every one of those units, through the weight `w[k][j]`. So the slope that reaches it is the sum of `w[k][j] · d[j]`.
# But where relu made the output 0, moving a little changes nothing: there the slope is 0.
#
# **Fill the blank** and run the cell. It is tried on a few cases, on floats and in a program. As long as it is not right, or
# you leave it as it is, the course's own goes on in its place; once it is, your level is built from yours.


# %%
#| export tasks blank through_relu
def through_relu(d, h, w):
    """The slopes at a hidden layer's units: 0 where relu cut, else the sum over the next layer's units."""
    ...  # a list with one number for each k, from the slopes d[j], the outputs h[k] and the weights w[k][j]


# %% [markdown]
# <details><summary>Hint</summary>For each k one number: the sum over j of d[j] · w[k][j], or 0.0.</details>
# <details><summary>Second hint</summary><code>dot(d, row)</code> is such a sum, for a row of w.
# <code>select(h[k] &lt;= 0.0, 0.0, …)</code> chooses: a program has no <code>if</code>.</details>
# <details><summary>Solution</summary>
#
# ```python
# def through_relu(d, h, w):
#     """The slopes at a hidden layer's units: 0 where relu cut, else the sum over the next layer's units."""
#     return [select(output <= 0.0, 0.0, dot(d, row)) for output, row in zip(h, w)]
# ```
# </details>
#
# With that, all gradients of one row, in the order in which the chain rule meets them: from the loss to the probability, to
# the last layer's `z`, and back through the layers. Where c was clipped, the gradient is zero. `clipped` keeps the loss finite. `backward` then follows the chain: `dc`, `dp` and `dz` are the slopes at c, p and z,
# `dh2` and `dh1` those at the hidden layers. What a weight gets is its input times the slope behind it.


# %%
#| export tasks
def clipped(p):
    """A probability at least 1e-7 away from 0 and 1, where a logarithm would be infinite."""
    return select(p < 1e-7, 1e-7, select(p > 1.0 - 1e-7, 1.0 - 1e-7, p))


def backward(sums, row, target, h1, h2, p, c, weights, g):
    """Add one row's gradients to the sums [dw1, db1, dw2, db2, dw3, db3]."""
    _, _, w2, _, w3, _ = weights
    dc = g * target / c - g * (1.0 - target) / (1.0 - c)
    dp = select(p > 1e-7, select(p < 1.0 - 1e-7, dc, 0.0), 0.0)
    dz = [dp * p * (1.0 - p)]
    dh2 = through_relu(dz, h2, w3)
    dh1 = through_relu(dh2, h1, w2)
    for (dw, db), inputs, d in zip((sums[:2], sums[2:4], sums[4:]), (row, h1, h2), (dh1, dh2, dz)):
        for j, dj in enumerate(d):
            db[0][j] += dj
            for k, value in enumerate(inputs):
                dw[k][j] += value * dj


# %% [markdown]
# Is it right? On Python's floats we can nudge a weight of the middle layer, as we did with the line:


# %%
def loss_of_point(nudge):
    w1, b1, w2, *others = floats
    first = [w2[0][0], w2[0][1] + nudge, *w2[0][2:]]
    *_, p = forward(point, [w1, b1, [first, *w2[1:]], *others])
    return 0.0 - (answer * log(clipped(p)) + (1.0 - answer) * log(1.0 - clipped(p)))


sums = [np.zeros_like(v).tolist() for v in rings.weights]
backward(sums, point, answer, h1, h2, p, clipped(p), floats, -1.0)
print(f"gradient {sums[2][0][1]:.6f}   nudged {(loss_of_point(1e-6) - loss_of_point(-1e-6)) / 2e-6:.6f}")

# %% [markdown]
# The formula and the nudge agree. Now the program: the one of the line, a size larger. The same two loops, the same four
# marks. The weights come first.


# %%
#| export tasks
def net_arrays(a, features):
    """The arrays of the net's weights: w1[features, 4], b1[1, 4], w2[4, 8], b2[1, 8], w3[8, 1], b3[1, 1]."""
    shapes = [(features, 4), (1, 4), (4, 8), (1, 8), (8, 1), (1, 1)]
    return [a.array(name, *shape) for name, shape in zip(weight_names(shapes), shapes)]


def load_weights(a, arrays):
    """Every number of the arrays [w1, b1, …] in a register: each array as a list of rows."""
    return [[[a.load(array, k, j) for j in range(array.shape[1])] for k in range(array.shape[0])] for array in arrays]


# %% [markdown]
# The rest is what you know: load, forward, loss, backward, update.


# %%
#| export tasks
@functools.cache
def dnn_program(dtype, features, lanes=None):
    """The program that trains the net: any rows, any batch, any number of steps."""
    a = Assembler("dnn_classifier", dtype, lanes)
    x, y, arrays = a.array("x", "rows", features), a.array("y", "rows", 1), net_arrays(a, features)
    batches, losses = a.array("batches", "steps", "batch", rows_of="rows"), a.array("losses", "steps")
    n, learning_rate = a.count("batch"), a.number("learning_rate")
    with a.loop("steps") as step:
        weights = load_weights(a, arrays)  # model
        loss, sums = a.sum(), [[[a.sum() for _ in range(w.shape[1])] for _ in range(w.shape[0])] for w in arrays]
        with a.loop("batch", a.lanes) as r:
            i = a.load(batches, step, r)
            rows, target = [a.load(x, i, k) for k in range(features)], a.load(y, i, 0)
            h1, h2, prediction = forward(rows, weights)  # forward
            c = clipped(prediction)
            loss += target * log(c) + (1.0 - target) * log(1.0 - c)  # loss
            backward(sums, rows, target, h1, h2, prediction, c, weights, -1.0 / n)  # backward
        a.store(0.0 - loss.total() / n, losses, step)
        for array, w, dw in zip(arrays, weights, sums):  # update
            for k, j in np.ndindex(*array.shape):
                a.store(w[k][j] - learning_rate * dw[k][j].total(), array, k, j)
    return a.assemble()


# %% [markdown]
# Predictions need the forward half only.


# %%
#| export tasks
@functools.cache
def dnn_predict_program(dtype, features):
    """The program that predicts: one row after the other."""
    a = Assembler("dnn_predict", dtype)
    x, out = a.array("x", "rows", features), a.array("out", "rows", 1)
    weights = load_weights(a, net_arrays(a, features))
    with a.loop("rows") as r:
        a.store(forward([a.load(x, r, k) for k in range(features)], weights)[-1], out, r, 0)
    return a.assemble()


# %% [markdown]
# The task function is the one of the line, with other programs:


# %%
#| export tasks
def dnn_classifier(x, y, weights, batches, learning_rate=0.01):
    """features-4-8-1, relu, relu, sigmoid; binary cross-entropy, stochastic gradient descent; see `Fit`, `check_task`."""
    check_task(x, y, weights, batches, learning_rate, units=[4, 8, 1])
    return run_programs(dnn_program, dnn_predict_program, x, y, weights, batches, learning_rate)


# %% [markdown]
# In float64 the program takes one row at a time.

# %% tags=["hide-input"]
checks.predict(
    "24,000 steps of 100 rows: 2.4 million rows, forward and backward. How long will that take?",
    choices=["about a second, or less", "about ten seconds", "about a minute", "an hour"],
    answer="about a second, or less",
    because="A row takes a few hundred instructions, so all of them take about a billion, and a core runs a few billion "
    "in a second.",
)

# %% tags=["nbval-ignore-output"]
start = time.perf_counter()
ring_fit = dnn_classifier(rings.x, rings.y, rings.weights, rings.batches, rings.learning_rate)
print(f"{time.perf_counter() - start:.2f} s")

# %% [markdown]
# A fraction of a second. There is no Python in the loop, no call, no allocation: a few hundred instructions a row. The plain
# Python of the record takes two or three hundred times as long, more than a minute, so we compare only the first 100 steps
# with it. (The tests compare 500.)

# %%
first, _ = reference.dnn_classifier(rings.x, rings.y, rings.weights, rings.batches[:100], rings.learning_rate, exp, log)
print("equal to the record, first 100 steps:", ring_fit.losses[:100].tolist() == first)
print("last loss", ring_fit.losses[-1].hex())

# %%
figures.classifier(rings, ring_fit)

# %% [markdown]
# Nearly all are right. The rings overlap a little, so nobody gets them all: the best possible circle does hardly better.
#
# The same net on the penguins: female or male, from bill, flippers and body mass? Rows are what they are, columns what the net
# says; right answers lie on the diagonal.

# %%
sex = tasks.penguins_sex()
figures.confusion(sex, dnn_classifier(*sex[:2], *sex[4:7]))

# %% [markdown]
# And wrong data meets one clear error each:

# %%
spoiled = task.x.copy()
spoiled[7, 1] = np.nan
for x, batches in ((spoiled, task.batches), (task.x[:, 0], task.batches), (task.x, task.batches + 1), (task.x, [[]])):
    try:
        linear_regression(x, task.y, task.weights, batches)
    except (TypeError, ValueError, IndexError) as error:
        print(f"{type(error).__name__}: {error}")

# %% [markdown]
# ### Lanes
#
# In float32 the same source becomes another program: with lanes, and with sums in lanes. The losses are no longer equal to
# the record, only close:

# %%
data = [rings.x.astype("f4"), rings.y.astype("f4"), [v.astype("f4") for v in rings.weights], rings.batches]
single = dnn_classifier(*data, rings.learning_rate)
distance = np.abs(single.losses - ring_fit.losses) / np.maximum(1, ring_fit.losses)
print("first 2,000 losses within 1e-4 of those in float64:", bool(distance[:2000].max() < 1e-4))
print("all losses equal to those in float64:", bool((distance == 0).all()))

# %% tags=["hide-input"]
checks.predict(
    "A batch of 100 is ten times the work of a batch of 10. In float32, with lanes: how many times as long does a step take?",
    slider=(1, 10, 0.5),
    answer=(3, 7),
    because="With sixteen lanes, ten rows are one turn of the loop and a hundred are seven; with eight lanes two and "
    "thirteen. And at its end each step adds up the lanes of 61 sums and moves 61 weights, however many rows it had.",
)


# %% tags=["nbval-ignore-output"]
def time_of_step(program, dtype, batches):
    """Seconds of a step, in one call for all of them."""
    put = {name: cpu.put(v.astype(dtype)) for name, v in zip(weight_names(rings.weights), rings.weights)}
    put |= dict(x=cpu.put(rings.x.astype(dtype)), y=cpu.put(rings.y.astype(dtype)), batches=cpu.put(batches))
    return seconds(program.bind(losses=cpu.alloc((len(batches),), dtype), learning_rate=0.01, **put)) / len(batches)


kinds = {"float64": ("f8", 1), "float32, scalar": ("f4", 1), "float32, lanes": ("f4", host_lanes())}
for kind, (dtype, lanes) in kinds.items():
    program = dnn_program(np.dtype(dtype), 2, lanes)
    small, large = (time_of_step(program, dtype, np.array(rings.batches[:5000, :n])) for n in (10, 100))
    print(f"{kind:16} batch 10 {small * 1e6:6.2f} µs   batch 100 {large * 1e6:6.2f} µs   {large / small:4.1f} times")

# %% [markdown]
# Without lanes, ten times the rows take about nine times as long. With lanes they take much less than ten times, so a larger batch
# makes a row cheaper. Remember that when the next levels ask for large batches.
#
# ## What this level cost (6 min)
#
# The line first. A step reads ten rows: two inputs, an answer and a row number each, 32 bytes a row in float64 and 20 in
# float32. How many operations a row takes, we need not count by hand: the program is a text.

# %%
from course import compare


def operations_a_row(program):
    """Additions, subtractions, multiplications and divisions of numbers in the innermost loop."""
    inner = program.text.split("\nagain")[0].split("\nbody")[-1]
    return len(re.findall(r"= f(?:add|sub|mul|div) ", inner))


line, net = linear_program(np.dtype("f4"), 2), dnn_program(np.dtype("f4"), 2, host_lanes())
functions = (linear_program, linear_predict_program, weight_names, run_programs, linear_regression)
print(f"{compare.lines(*functions)} lines, one launch for all {len(task.batches):,} steps")
print(f"operations a row: {operations_a_row(line)} for the line, {operations_a_row(net)} for the net")

# %% tags=["nbval-ignore-output"]
steps = len(task.batches)
predicted = cpu.cost(launches=1 / steps, flops=10 * operations_a_row(line), nbytes=10 * 32)
compare.cost(linear_regression, task, launches=1 / steps, nbytes=10 * 32, predicted=predicted, steps=steps)

# %% [markdown]
# `cost` is launches times the time of a launch, plus the roofline. The measured time lies above it. The formula charges
# every byte to memory, though these data stay in a cache: that makes it too high. It takes the float32 peak, with lanes, for
# a float64 program that has none, and it knows nothing of sums that wait for themselves: that makes it too low. The checks
# before the call cost something too. A small formula gives the order of magnitude, no more.
#
# Both tasks in float32, and the two matrix products, under one roof:

# %% tags=["nbval-ignore-output"]
single_task = [task.x.astype("f4"), task.y.astype("f4"), [v.astype("f4") for v in task.weights], task.batches]
line_step = seconds(lambda: linear_regression(*single_task, task.learning_rate)) / steps
net_step = time_of_step(net, "f4", rings.batches)
points += [("linear", 10 * operations_a_row(line), 10 * 20, line_step)]
points += [("DNN", 100 * operations_a_row(net), 100 * 20, net_step)]
figures.roofline(cpu.peak, cpu.bandwidth, points)

# %% [markdown]
# Why is the net not at the roof? The peak counts a multiplication and an addition in every instruction and nothing besides.
# What the net's program really does, its listing tells:

# %% tags=["nbval-ignore-output"]
from collections import Counter as Tally

words = [text.split() for text in net.listing().splitlines()]
mix = Tally(word[0] for word in words if not word[0].endswith(":"))
print(", ".join(f"{count} {name}" for name, count in mix.most_common(10)))

# %% [markdown]
# Five things keep it down. Only part of the arithmetic is a multiplication with an addition, which one instruction can do
# together (`fmadd`; on ARM `fmla`). The 61 sums do not fit into 16 or 32 registers, so each turn loads and stores them (`mov`;
# on ARM `ldr`, `str`). The rows of a batch lie anywhere, so their lanes are filled one by one. The last turn of a batch may be
# mostly masked: 100 rows are six turns of sixteen lanes, and four rows more. And each step ends by adding up 61 sums lane by
# lane.
#
# ### Batch and launches
#
# One program runs all steps here, so a launch costs nothing a step. The levels above will call many small programs in each
# step. **What would that cost?** Move the sliders (mouse, or Tab and the arrow keys): the batch, and how many launches a step
# takes.

# %% tags=["nbval-ignore-output"]
from course.figures import widgets


def draw(batch, launches):
    row = operations_a_row(net), 20
    return figures.step_cost(cpu.peak, cpu.bandwidth, cpu.launch_time, *row, batch, launches)


widgets.explore(
    draw,
    batch=[10**k * m for k in range(5) for m in (1, 2, 5)] + [100_000],
    launches=[0.001, 0.01, 0.1, 1, 2, 5, 10, 20, 50, 100],
    start={"batch": 100, "launches": 50},
    text="The predicted time of one training step of the DNN, split into launches, arithmetic and memory.",
)

# %% [markdown]
# With fifty launches and a batch of a hundred, nearly all the time is calling. Large batches hide it, and so does one large
# program. The first is what people do when they raise the batch to "fill the machine". The second is what a compiler
# does, on level 3.
#
# ### The level below | here
#
# Each notebook lays the level below beside its own. Below this one there is no level, only plain Python, number 0:
# `course/reference.py`. The lines stand under the part of a step that they are. **A line that calls functions says how many
# lines they have: click on it, and they open.** What bears no mark, such as the loop, is folded at the end. Above it all stand
# numbers, and the last loss once for all versions that give it.

# %%
compare.measure(task, reference.linear_regression, linear_regression, last=1000)

# %% [markdown]
# The formulas are the same, line by line. What differs is when they run: plain Python computes each line for each row, and
# level 1 runs each line once, to write the instructions down. And the net. (Plain Python takes only its last ten steps, from where
# level 1 has come by then.)

# %%
compare.measure(rings, reference.dnn_classifier, dnn_classifier, last=10, repeats=1)

# %% [markdown]
# The **launches** of plain Python are its operations on two numbers, 42,000 for a step of the net. Here one launch takes all steps.

# %% [markdown]
# ## More of the same kind (optional)
#
# **Neighbours are row numbers too.** An index is a counter or a row number, nothing else: `i + 1` is no index. A program whose
# rows look at other rows reads their numbers from an array. Here each output is the mean of three neighbours on a ring:

# %%
a = Assembler("smooth", "f8")
x, y, near = a.array("x", "n"), a.array("y", "n"), a.array("near", "n", 3, rows_of="n")
with a.loop("n") as i:
    a.store(dot([a.load(x, a.load(near, i, k)) for k in range(3)], [1.0, 1.0, 1.0]) / 3.0, y, i)
smooth, places = a.assemble(), np.arange(10)
near, out = np.stack([places - 1, places, places + 1], 1) % 10, cpu.alloc((10,), "f8")
smooth(x=cpu.put(places**2.0), y=out, near=cpu.put(near))
print(out.numpy().round(2))
try:
    smooth(x=cpu.put(places**2.0), y=out, near=cpu.put(near + 1))
except IndexError as error:
    print(error)

# %% [markdown]
# Row 10 would lie behind the last of the ten, and the call says so.
#
# **How others spell it.** What this notebook did with devices, in TensorFlow and PyTorch:
#
# | | TensorFlow | PyTorch | here |
# |---|---|---|---|
# | what is there | `tf.config.list_physical_devices()` | `torch.cuda.device_count()` | `pool()` |
# | put numbers there | `with tf.device("GPU:0"):` | `x.to("cuda:0")` | `device.put(x)` |
# | memory in use | `tf.config.experimental.get_memory_info` | `torch.cuda.memory_allocated()` | `device.used` |
#
# ## Exercises (60 min, optional)
#
# Each begins with a stub. Replace its `...`, run the cell, and read what the check says: the first case that fails, what came out,
# what was expected, and, where it can tell, which mistake that looks like. The inputs are drawn at random, so an answer that
# is right only for some of them does not pass. `python3 -m course progress` shows what you have solved.
#
# You may come here at any time, without the notebook before it: what is missing, `begin` takes from the level that is built.
#
# ### 01-1 · A sum that does not get stuck
#
# Add neighbours, then the sums of neighbours, and so on. An odd one at the end waits for the next round:
#
# ```
# 1   2   3   4   5
#  \ /     \ /    |
#   3       7     5
#     \   /       |
#      10         5
#         \     /
#           15
# ```
#
# Each number passes through about log₂ n additions, not n, so less is rounded away. (About 5 lines.)

# %%
from course.practice import exercises

exercises.begin("01-1")


def sum_in_pairs(x):
    """The sum of a float32 array x[n], n ≥ 1, as a float32: by pairs of neighbours."""
    return ...


exercises.check("01-1", sum_in_pairs)

# %% [markdown]
# ### 01-2 · A program of two loops
#
# Take from each column its mean: `y[r, k] = x[r, k] - mean of column k`. You are given an assembler and two of its arrays,
# `[rows, columns]`, and write the program. A mean is a sum over the rows, divided by their number, as in the record. (About 8
# lines. Hint: `a.sum()`, `.total()` and `a.count("rows")` stand in `linear_program`; `x.shape[1]` is the number of columns.)

# %%
from course.practice import exercises

exercises.begin("01-2")


def centre(a, x, y):
    """Write a program that stores x[rows, columns] minus the mean of its columns into y."""
    ...


exercises.check("01-2", centre)

# %% [markdown]
# ### 01-3 · Lines touched
#
# A program reads `x[0], x[step], x[2·step], …`, so many numbers. The array begins where a line of 64 bytes begins. How many lines
# does the program touch? Here are four float64 with a step of 5. Each mark is the place of a number, and a digit one that is read:
#
# ```
#   first line          second line
# 0 . . . . 1 . .     . . 2 . . . . 3
# ```
#
# (About 2 lines.)

# %%
from course.practice import exercises

exercises.begin("01-3")


def lines_touched(count, step, itemsize):
    """The lines of 64 bytes that hold `count` numbers of `itemsize` bytes, `step` numbers from one to the next."""
    return ...


exercises.check("01-3", lines_touched)

# %% [markdown]
# ### 01-4 · Nudge every weight
#
# Twice this notebook nudged one weight, to see whether a gradient was right. Do it for all weights of an array, one after the
# other:
#
# ```
# slope in w[k, j]  ≈  (loss with w[k, j] + nudge  -  loss with w[k, j] - nudge)  /  (2 · nudge)
# ```
#
# (About 7 lines. Hint: `np.ndindex(w.shape)` walks through all places; take a nudge of `1e-6`.)

# %%
from course.practice import exercises

exercises.begin("01-4")


def slopes(loss, w):
    """The slope of loss(w), a float, in each number of the array w[inputs, units]. w itself stays as it is."""
    return ...


exercises.check("01-4", slopes)

# %% [markdown]
# ### 01-5 · Break it: a rate too high
#
# Here is the line with four learning rates. The last two print a symptom that everybody meets one day:

# %%
from course import tasks
from course.practice import exercises

exercises.begin("01-5")

task = tasks.linear()
for rate in (0.0005, 0.02, 0.03, 0.1):
    losses = linear_regression(task.x, task.y, task.weights, task.batches[:300], rate).losses
    print(f"rate {rate:<7}", *(f"{losses[step]:>10.3g}" for step in (0, 1, 10, 100, 299)))

# %% [markdown]
# No instruction is wrong, so the program does not complain: an infinity is a float, and so is a NaN. Find the cause where it
# is simplest. A line with one weight, `prediction = x·w`, has the answer y = 0. Its gradient is the mean of 2·x·(x·w), so a
# step takes w to `w - rate · 2 · mean(x·x) · w`. By which factor is w multiplied? When does that factor reach -1, so that w
# jumps to and fro for ever? The check trains with a little less than your rate, and with a little more. (About 2 lines.)

# %%
from course.practice import exercises

exercises.begin("01-5")


def highest_rate(x):
    """The rate from which on training diverges, a float, for a line with one weight and the inputs x[n]."""
    return ...


exercises.check("01-5", highest_rate)

# %% [markdown]
# For two inputs and a bias the same holds along each direction, and the steepest decides. That is why inputs are
# standardised, as the penguins' are: mean 0 and mean square 1.
#
# ### Without a check
#
# - In `linear_program`, take `g = 1.0 / n` away and write `de = 2.0 * error / n`. Are the losses still equal to the record? At
#   which step do they part, and why?
# - Write `dot` with Python's `sum`, and run `forward` on floats in Python 3.11 and in 3.12. Which one gives the record's numbers?
#   (Since 3.12 `sum` corrects its own rounding.)
# - Copy `reference.linear_step` and let its loop run over the rows backwards. How many of the 8,000 losses change, and why?
#
# ## Build
#
# The last cell writes `levels/hardware/` from the cells marked `#| export`, imports it in a fresh Python, trains there,
# and compares. Then level 2 can stand on it.

# %%
build.level("01_hardware", linear_regression, dnn_classifier)

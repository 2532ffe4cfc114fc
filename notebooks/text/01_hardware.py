# %% [markdown]
# # 1 · Hardware
#
# **In this notebook you write a program in your machine's own instructions, and it trains a model.**
#
# This course builds one small framework, `levels`, in five storeys. You stand on the lowest. About an hour; two
# cells that are longer than the rest may be skimmed, and say so.

# %%
from course import build, figures, tasks

build.watch("01_hardware")
figures.you_are_here(1)

# %% [markdown]
# ## A surprise to begin with (2 min)
#
# Here are 2²⁵ ones, as 32-bit numbers. We add them up twice: with `sum`, and with `cumsum`, whose last entry is the sum
# of everything. **Predict: what do the two lines print?**

# %%
import numpy as np

x = np.ones(2**25, "f")
print(f"sum    {x.sum():.0f}")
print(f"cumsum {x.cumsum()[-1]:.0f}")

# %% [markdown]
# One of them lost half of the ones. A float32 has 24 significant bits
# ([IEEE 754](https://doi.org/10.1109/IEEESTD.2019.8766229)), so from 2²⁴ = 16,777,216 on it can only count in twos:

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
# A float is a sign, an exponent and a fraction: ±1.fraction · 2^exponent. Here is one tenth in three formats. float16 gives
# the exponent 5 bits, float32 gives it 8, and bfloat16 is the upper half of a float32: the same range, less precision.

# %%
formats = {"float32": ("f4", "u4", 8), "float16": ("f2", "u2", 5), "bfloat16": ("f4", "u4", 8)}
for name, (real, whole, exponent_bits) in formats.items():
    number = np.array(0.1, real)
    if name == "bfloat16":  # keep the upper 16 bits, rounded to the nearest
        number = (number.view("u4") + np.uint32(0x8000) & np.uint32(0xFFFF0000)).view("f4")
    text = f"{int(number.view(whole)):0{8 * number.itemsize}b}"[: 16 if name == "bfloat16" else None]
    print(f"{name:9} {text[0]} {text[1 : 1 + exponent_bits]} {text[1 + exponent_bits :]:23}  is {float(number):.10f}")

# %% [markdown]
# None of them is one tenth. Every operation rounds its result to the nearest number of the format, so every operation may
# lose something. What is lost depends on the order. **Predict: what are the two sums of 10⁸, 1 and -10⁸ in float32?**

# %%
big, one = np.float32(1e8), np.float32(1)
print("left to right:", (big + one) - big, "  the large ones first:", (big - big) + one)

# %% [markdown]
# Near 10⁸ the neighbours in float32 are 8 apart. Added to it, a 1 is rounded away. Nothing is wrong with either sum. They are
# different programs.

# %% [markdown]
# ## The task (4 min)
#
# Four hundred points. Each has two inputs `x1`, `x2` and one answer `y`, made as `2·x1 - 3·x2 + 3` plus noise. We pretend
# not to know the 2, the -3 and the 3, and look for them.

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
# 0.0 and run upwards, the bias comes last, a mean divides by n. Every level must give these very numbers.

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
# The formula and the nudge agree. Now 8,000 steps, 200 times through the data:

# %%
record, record_weights = reference.linear_regression(task.x, task.y, task.weights, task.batches, task.learning_rate)
print(f"first loss {record[0]:.6g}, last loss {record[-1]:.6g}")
w, b = record_weights
print(f"w {w[0][0]:.4f}, {w[1][0]:.4f}   b {b[0][0]:.4f}")

# %% [markdown]
# Two, minus three and three, nearly. What is left is noise. The rest of this notebook does the same work without Python:
# in instructions for the machine.

# %% [markdown]
# ## Memory belongs to a device (5 min)
#
# A machine is a **pool** of devices: CPUs, GPUs, TPUs. Each device has memory of its own, and a program on a device
# reads and writes only there. A **buffer** is a stretch of that memory with a shape and a dtype.
#
# Cells that begin with `#| export NAME` are special: the last cell of this notebook collects them into the file
# `levels/hardware/NAME.py`. What you change here changes every level above.

# %%
#| export device
"""Memory belongs to a device: the pool of devices, their buffers, and what moves between them."""

import math
import os

import numpy as np
from llvmlite import binding as llvm


class Spec:
    """What a buffer is, apart from its numbers: device, shape and dtype. There is one Spec for each such triple."""

    def __init__(self, device, shape, dtype):
        self.device, self.shape, self.dtype = device, shape, dtype
        self.nbytes = math.prod(shape) * dtype.itemsize

    def __repr__(self):
        return f"{self.dtype}{list(self.shape)} on {self.device.name}"


class Buffer:
    """Memory of one device, C-contiguous, with a shape and a dtype. `data` holds the host's view of it."""

    __slots__ = ("spec", "data")

    def __init__(self, spec, data):
        self.spec, self.data = spec, data

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
        return self.data.copy()

    def __repr__(self):
        return f"Buffer({self.spec}{', freed' if self.data is None else ''})"


# %% [markdown]
# A device counts what it hands out, and refuses what it does not have. Its speed is not printed on it. It has to be
# measured, and `MEASURES` is where the measuring programs will be entered, once we can write programs.

# %%
#| export device
MEASURES = {}  # "peak" or "bandwidth" -> a function of the device that measures it


class Device:
    """One member of the pool: `memory` in bytes (None: unknown), `used` of it, and its speed, measured on first use."""

    def __init__(self, name, memory, simulated=False):
        self.name, self.kind, self.memory, self.simulated = name, name.split(":")[0], memory, simulated
        self.used, self.measured, self.specs = 0, {}, {}

    def spec(self, shape, dtype):
        """The Spec of a buffer on this device."""
        key = tuple(shape), np.dtype(dtype)
        if key not in self.specs:
            self.specs[key] = Spec(self, *key)
        return self.specs[key]

    def alloc(self, shape, dtype):
        """A new buffer of that shape, its numbers not yet set. Raises MemoryError when less is free than asked."""
        return self.new(self.spec(shape, dtype))

    def new(self, spec):
        """A new buffer of a Spec of this device."""
        if self.memory is not None and spec.nbytes > self.memory - self.used:
            raise MemoryError(f"{self.name}: asked for {spec.nbytes:,} bytes, {self.memory - self.used:,} are free")
        data = np.empty(spec.shape, spec.dtype)
        self.used += spec.nbytes
        return Buffer(spec, data)

    def put(self, array):
        """A new buffer that holds the numbers of a NumPy array."""
        array = np.asarray(array)
        buffer = self.alloc(array.shape, array.dtype)
        buffer.data[...] = array
        return buffer

    def free(self, buffer):
        """Give a buffer's memory back. Using the buffer after that is an error."""
        if buffer.device is not self or buffer.data is None:
            raise ValueError(f"{self.name}: cannot free {buffer}: it is not a live buffer of this device")
        self.used -= buffer.spec.nbytes
        buffer.data, buffer.spec = None, Spec(self, buffer.shape, buffer.dtype)  # a Spec that no plan knows

    def measure(self, what):
        if what not in self.measured:
            self.measured[what] = MEASURES[what](self)
        return self.measured[what]

    peak = property(lambda self: self.measure("peak"), doc="float32 operations a second, measured")
    bandwidth = property(lambda self: self.measure("bandwidth"), doc="bytes a second to and from memory, measured")

    def roofline(self, flops, nbytes):
        """The least seconds that `flops` operations on `nbytes` of traffic can take (Williams et al., 2009)."""
        return max(flops / self.peak, nbytes / self.bandwidth)

    def __repr__(self):
        return f"Device({self.name}{', simulated' if self.simulated else ''})"


# %% [markdown]
# The floor that `roofline` computes is from [Williams, Waterman and Patterson, 2009](https://doi.org/10.1145/1498765.1498785).
# Two small functions finish the room: one lists the pool, one copies between devices.


# %%
#| export device
class Pool(dict):
    """Devices by name. It prints as a table."""

    def __repr__(self):
        table = [("device", "kind", "memory", "in use")]
        for d in self.values():
            memory = "unknown" if d.memory is None else f"{d.memory / 2**30:.1f} GiB"
            table.append((d.name, d.kind + " (simulated)" * d.simulated, memory, f"{d.used:,} bytes"))
        return "\n".join("  ".join(text.ljust(width) for text, width in zip(row, (8, 16, 10, 14))) for row in table)


POOL = Pool()


def host_memory():
    """The bytes of memory of this computer, or None where the system does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # Windows has no sysconf
        return None


def pool(cpus=1):
    """The devices of this computer: {"cpu:0": Device}. With cpus=2 a simulated cpu:1 joins, with memory of its own."""
    for i in range(cpus):
        if f"cpu:{i}" not in POOL:
            POOL[f"cpu:{i}"] = Device(f"cpu:{i}", host_memory() if i == 0 else 2**30, simulated=i > 0)
    return POOL


def copy(buffer, device):
    """A new buffer on `device` with the same numbers."""
    return device.put(buffer.numpy())


# %% tags=["nbval-ignore-output"]
pool(cpus=2)

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
# A processor cannot add two matrices. It can **load** a number from memory into a register, do **arithmetic** between
# registers, **store** a register back to memory, and jump. We write a small **assembler**: a Python object on which we
# call `load`, `+`, `store`, and which writes down one instruction each time. [LLVM](https://llvm.org/docs/LangRef.html),
# the compiler behind Clang, Rust and numba, turns the list into bytes for this very processor.
#
# Here is where we are going: the program that squares every number of an array, in LLVM's language (comments after `;`).
#
# ```
# define void @program(ptr %x, ptr %y, i64 %n) {
# entry:
#   br label %test                                   ; jump
# test:                                              ; a block: a name that one can jump to
#   %i = phi i64 [0, %entry], [%next, %body]         ; 0 if we come from entry, %next if we come from body
#   %more = icmp slt i64 %i, %n                      ; compare
#   br i1 %more, label %body, label %after           ; jump one way or the other
# body:
#   %from = getelementptr double, ptr %x, i64 %i     ; the address of x[i]
#   %v = load double, ptr %from
#   %square = fmul double %v, %v
#   %to = getelementptr double, ptr %y, i64 %i       ; the address of y[i]
#   store double %square, ptr %to
#   %next = add i64 %i, 1
#   br label %test
# after:
#   ret void
# }
# ```
#
# A **register** (`%v`) is a place for one number inside the processor. An **address** is a place in memory; `getelementptr`
# computes one. `phi` is how a loop's counter is written in a language where every register is set once. A library,
# [llvmlite](https://llvmlite.readthedocs.io/en/latest/user-guide/ir/ir-builder.html), holds such a program as Python objects:
# its *builder* has a method for each instruction and appends it to the current block.
#
# What our assembler adds is names, shapes, loops, lanes, and the certainty that no address leaves its array. First, a value:
# a number that *will be* in a register when the program runs. Adding two values adds nothing. It writes an instruction that
# will.

# %%
#| export assembler
"""A program is loads, arithmetic and stores: an assembler that writes one, instruction by instruction."""

import ctypes
from contextlib import contextmanager

from llvmlite import ir


class Value:
    """What a register will hold: one number, or one number in each lane. Its operators write instructions."""

    def __init__(self, a, register, lanes=1):
        self.a, self.register, self.lanes = a, register, lanes

    def __add__(self, other):
        return self.a.arithmetic("fadd", self, other)

    def __radd__(self, other):
        return self.a.arithmetic("fadd", other, self)

    def __sub__(self, other):
        return self.a.arithmetic("fsub", self, other)

    def __rsub__(self, other):
        return self.a.arithmetic("fsub", other, self)

    def __mul__(self, other):
        return self.a.arithmetic("fmul", self, other)

    def __rmul__(self, other):
        return self.a.arithmetic("fmul", other, self)

    def __truediv__(self, other):
        return self.a.arithmetic("fdiv", self, other)

    def __rtruediv__(self, other):
        return self.a.arithmetic("fdiv", other, self)

    def __gt__(self, other):
        return self.a.comparison(">", self, other)

    def __lt__(self, other):
        return self.a.comparison("<", self, other)


# %% [markdown]
# Next, what a program works on. An array has a name and a shape. A size in the shape may be a name too, such as
# `"rows"`: it is learned when the program is called. An index is either a constant or a **counter** of a loop over that
# very size. So an index cannot leave its array, and we need not check it while the program runs.


# %%
#| export assembler
class Array:
    """Memory that a program reads or writes. A size is a number, or a name that the call will fill in."""

    def __init__(self, name, shape, rows_of=None):
        self.name, self.shape, self.rows_of = name, shape, rows_of  # rows_of: its integers index arrays of that size

    def __repr__(self):
        return f"{self.name}[{', '.join(map(str, self.shape))}]"


class Condition(Value):
    """Yes or no, in each lane: what a comparison gives, and `select` takes."""

    def __bool__(self):
        raise TypeError(f"{self.a.name}: a comparison is not known while the program is written; use select(c, x, y)")


class Counter(Value):
    """An integer known to lie in [0, extent): a loop's counter, or a row number loaded from memory."""

    def __init__(self, a, register, lanes, extent, first=None):
        super().__init__(a, register, lanes)
        self.extent, self.first = extent, first  # first: of consecutive lanes, the counter of lane 0


# %% [markdown]
# Then the instructions. Most processors have **lanes**: one instruction adds 4, 8 or 16 pairs of float32 at once (SIMD).
# The assembler uses them for float32. In float64 it keeps to one number at a time, in the order of record. The dtype
# decides, there is no flag.

# %%
#| export assembler
I1, I32, I64, POINTER = ir.IntType(1), ir.IntType(32), ir.IntType(64), ir.PointerType()
REAL = {np.dtype("f4"): ir.FloatType(), np.dtype("f8"): ir.DoubleType()}
FAST = ("contract", "nsz", "arcp")  # float32 may fuse a·b + c into one instruction, and turn x/n into x·(1/n)


def float32_lanes():
    """How many float32 one instruction of this processor works on."""
    features = llvm.get_host_cpu_features()
    return 16 if features.get("avx512f") else 8 if features.get("avx2") else 4


def laned(kind, lanes):
    """The type of a register with that many lanes."""
    return ir.VectorType(kind, lanes) if lanes > 1 else kind


def numeric(a, operand):
    """The register of a value, or a Python number as a constant."""
    if isinstance(operand, (Counter, Condition)) or (isinstance(operand, Value) and operand.a is not a):
        raise TypeError(
            f"{a.name}: arithmetic takes this program's numbers, not counters, comparisons or another program's"
        )
    return operand.register if isinstance(operand, Value) else ir.Constant(a.real, float(operand))


def spread(a, register, lanes):
    """A register as it is, or its one number repeated over `lanes` lanes."""
    if lanes == 1 or isinstance(register.type, ir.VectorType):
        return register
    vector = ir.Constant(ir.VectorType(register.type, lanes), ir.Undefined)
    vector = a.builder.insert_element(vector, register, I32(0))
    return a.builder.shuffle_vector(vector, vector, ir.Constant(ir.VectorType(I32, lanes), [0] * lanes))


def together(a, *operands):
    """The registers of numbers that meet in one instruction, all with as many lanes as the widest, and the lanes."""
    lanes = max((o.lanes for o in operands if isinstance(o, Value)), default=1)
    return [spread(a, numeric(a, o), lanes) for o in operands], lanes


def arithmetic(a, instruction, *operands):
    """Write one instruction: fadd, fsub, fmul, fdiv."""
    registers, lanes = together(a, *operands)
    return Value(a, getattr(a.builder, instruction)(*registers, flags=a.flags), lanes)


def comparison(a, how, *operands):
    """Write one comparison. With a NaN it is false."""
    registers, lanes = together(a, *operands)
    return Condition(a, a.builder.fcmp_ordered(how, *registers), lanes)


# %% [markdown]
# A load or a store needs an address. The place of `x[i, k]` in memory is `i · width + k`: rows lie one behind the other.
# When the index has lanes, each lane has an address of its own. Lanes past the end of a loop are masked off: what they
# compute is never kept. (This cell and the next may be skimmed. The idea is the multiplication and the addition in `place`.)


# %%
#| export assembler
def place(a, array, index):
    """The position of array[index], counted in elements: an integer register, and its lanes."""
    if len(index) != len(array.shape):
        raise IndexError(f"{a.name}: {array} needs {len(array.shape)} indices, got {len(index)}")
    for i, size in zip(index, array.shape):
        known = isinstance(i, int) and isinstance(size, int) and 0 <= i < size
        if not known and not (isinstance(i, Counter) and i.extent == size):
            raise IndexError(f"{a.name}: index {getattr(i, 'extent', i)} may leave {array}, whose size is {size} there")
    wide = [i for i in index if isinstance(i, Counter) and i.lanes > 1]
    if wide and a.mask is None:
        raise IndexError(f"{a.name}: {array} is indexed by the counter of a loop that has ended")
    consecutive = wide == [index[-1]] and wide[0].first is not None  # lanes side by side: the first one's place will do
    position = ir.Constant(I64, 0)
    for i, size in zip(index, array.shape):
        register = I64(i) if isinstance(i, int) else i.first if consecutive and i is wide[0] else i.register
        position = a.integer("add", a.integer("mul", position, a.size(size)), register)
    return position, wide[0].lanes if wide else 1


def integer(a, instruction, *registers):
    """Integer arithmetic for addresses; a single integer beside a vector is repeated."""
    width = max((r.type.count for r in registers if isinstance(r.type, ir.VectorType)), default=1)
    return getattr(a.builder, instruction)(*(spread(a, r, width) for r in registers))


def intrinsic(a, name, returns, *arguments, flags=()):
    """Call one of LLVM's intrinsic functions, which stand for an instruction or two."""
    kind = ir.FunctionType(returns, [v.type for v in arguments])
    function = a.module.globals.get(name) or ir.Function(a.module, kind, name)
    return a.builder.call(function, arguments, fastmath=flags)


# %%
#| export assembler
def load(a, array, *index):
    """Load array[index] into a register. A row number loads as a counter of the arrays it indexes."""
    element = I64 if array.rows_of else a.real
    position, lanes = place(a, array, index)
    vector, pointer = laned(element, lanes), a.pointer(array)
    if lanes == 1:
        register = a.builder.load(a.builder.gep(pointer, [position], source_etype=element), typ=element)
    elif not isinstance(position.type, ir.VectorType):
        address = a.builder.gep(pointer, [position], source_etype=element)
        name = f"llvm.masked.load.v{lanes}{'i64' if array.rows_of else 'f32'}.p0"
        register = intrinsic(
            a, name, vector, address, I32(8 if array.rows_of else 4), a.mask, ir.Constant(vector, None)
        )
    else:  # lane by lane, which beats the gather instruction of many processors
        register = ir.Constant(vector, ir.Undefined)
        position = a.builder.select(a.mask, position, ir.Constant(position.type, None))  # a masked lane reads element 0
        for lane in map(I32, range(lanes)):
            address = a.builder.gep(pointer, [a.builder.extract_element(position, lane)], source_etype=element)
            register = a.builder.insert_element(register, a.builder.load(address, typ=element), lane)
    return Counter(a, register, lanes, array.rows_of) if array.rows_of else Value(a, register, lanes)


def store(a, value, array, *index):
    """Store a value into array[index]."""
    if array.rows_of:
        raise TypeError(f"{a.name}: {array} holds row numbers, which a program only reads")
    position, lanes = place(a, array, index)
    if getattr(value, "lanes", 1) > lanes:
        raise TypeError(f"{a.name}: a value of {value.lanes} lanes does not fit one place of {array}; take its total")
    register = spread(a, numeric(a, value), lanes)
    address = a.builder.gep(a.pointer(array), [position], source_etype=a.real)
    if lanes == 1:
        a.builder.store(register, address)
    elif isinstance(position.type, ir.VectorType):
        address.type = ir.VectorType(POINTER, lanes)
        intrinsic(a, f"llvm.masked.scatter.v{lanes}f32.v{lanes}p0", ir.VoidType(), register, address, I32(4), a.mask)
    else:
        intrinsic(a, f"llvm.masked.store.v{lanes}f32.p0", ir.VoidType(), register, address, I32(4), a.mask)


# %% [markdown]
# A sum is a register that starts at 0.0 and grows. With lanes there are several partial sums, added at the end. That is
# another order, so float32 results differ in their last bits. A loop is a counter and a jump backwards, as in
# the listing above: a `test` block with the `phi`, a `body`, and an `after`.


# %%
#| export assembler
class Sum:
    """A running sum: starts at 0.0, grows with `+=`, one partial sum a lane. `total()` adds the lanes."""

    def __init__(self, a):
        self.a, self.type = a, laned(a.real, a.lanes)
        self.slot = a.entry.alloca(self.type)
        a.builder.store(ir.Constant(self.type, None if a.lanes > 1 else 0.0), self.slot)

    def value(self):
        return Value(self.a, self.a.builder.load(self.slot, typ=self.type), self.a.lanes)

    def __iadd__(self, term):
        grown = (self.value() + term).register
        if self.a.mask is not None:  # masked lanes keep their sum
            grown = self.a.builder.select(self.a.mask, grown, self.value().register)
        self.a.builder.store(grown, self.slot)
        return self

    def total(self):
        a, value = self.a, self.value()
        if value.lanes == 1:
            return value
        name = f"llvm.vector.reduce.fadd.v{value.lanes}f32"
        return Value(a, intrinsic(a, name, a.real, a.real(0.0), value.register, flags=("reassoc",)))


@contextmanager
def loop(a, extent, lanes=1):
    """Write a loop over [0, extent); with lanes, each turn takes that many counters at once."""
    if lanes > 1 and a.mask is not None:
        raise ValueError(f"{a.name}: a loop with lanes stands inside another one")
    before, builder, end = a.builder.block, a.builder, a.size(extent)
    test, body, after = (a.function.append_basic_block(name) for name in ("test", "body", "after"))
    builder.branch(test)
    builder.position_at_end(test)
    i = builder.phi(I64)
    i.add_incoming(I64(0), before)
    builder.cbranch(builder.icmp_signed("<", i, end), body, after)
    builder.position_at_end(body)
    if lanes == 1:
        yield Counter(a, i, 1, extent)
    else:
        each = integer(a, "add", i, ir.Constant(ir.VectorType(I64, lanes), list(range(lanes))))
        a.mask = builder.icmp_signed("<", each, spread(a, end, lanes))
        yield Counter(a, each, lanes, extent, first=i)
        a.mask = None
    i.add_incoming(builder.add(i, I64(lanes)), builder.block)
    builder.branch(test)
    builder.position_at_end(after)


# %% [markdown]
# The assembler itself only holds the pieces together.


# %%
#| export assembler
class Assembler:
    """Writes one program. float64: one number at a time, nothing reordered. float32: lanes, and sums in lanes."""

    def __init__(self, name, dtype):
        if np.dtype(dtype) not in REAL:
            raise TypeError(f"{name}: dtype is {np.dtype(dtype)}; a program computes in float32 or float64")
        self.name, self.dtype = name, np.dtype(dtype)
        self.real, single = REAL[self.dtype], self.dtype == np.float32
        self.lanes, self.flags = (float32_lanes(), FAST) if single else (1, ())
        self.module, self.mask, self.arrays, self.words = ir.Module(name), None, {}, {}
        self.function = ir.Function(self.module, ir.FunctionType(ir.VoidType(), [POINTER]), "program")
        if self.lanes > 1:  # a vector put aside on the stack must not straddle two cache lines
            self.function.attributes.add("nounwind")  # llvmlite writes the next one only beside a named attribute
            self.function.attributes.alignstack = 64
        self.entry = ir.IRBuilder(self.function.append_basic_block("entry"))
        self.builder = ir.IRBuilder(self.function.append_basic_block("start"))

    def word(self, name, kind):
        """One 64-bit word of the block of arguments that a call hands over: an address, a size or a number."""
        if name not in self.words:
            address = self.entry.gep(self.function.args[0], [I64(len(self.words))], source_etype=I64)
            self.words[name] = self.entry.load(address, typ=kind)
        return self.words[name]

    def array(self, name, *shape, rows_of=None):
        if name in self.arrays or not shape:
            raise ValueError(f"{self.name}: array {name!r} needs a shape, and a name of its own")
        self.arrays[name] = Array(name, shape, rows_of)
        self.word(name, POINTER)
        return self.arrays[name]

    def pointer(self, array):
        if self.arrays.get(array.name) is not array:
            raise ValueError(f"{self.name}: {array} belongs to another program")
        return self.words[array.name]

    def size(self, extent):
        return ir.Constant(I64, extent) if isinstance(extent, int) else self.word(f"size of {extent}", I64)

    def count(self, extent):
        """A size as a number to compute with."""
        return Value(self, self.builder.sitofp(self.size(extent), self.real))

    def number(self, name):
        """A number that each call hands over, such as a learning rate."""
        return Value(self, self.word(f"number {name}", self.real))

    def sum(self):
        return Sum(self)

    def assemble(self):
        """End the program and turn it into machine code."""
        return Program(self)

    arithmetic, comparison, integer, load, store, loop = arithmetic, comparison, integer, load, store, loop


# %% [markdown]
# Last, the finished program. To call it we hand over buffers by name. Everything that could go wrong in memory is
# checked here, once, before the first instruction runs: dtypes, shapes, and that every row number is a row.

# %%
#| export assembler
CODE = {}  # the text of a program -> its machine code


def machine_code(text):
    """Compile LLVM's text for this processor: (engine, address, listing)."""
    if text not in CODE:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        target = llvm.Target.from_default_triple().create_target_machine(
            cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=3
        )
        module = llvm.parse_assembly(text)
        module.verify()
        options = llvm.create_pipeline_tuning_options(speed_level=3)
        options.loop_vectorization = options.loop_unrolling = False  # the loops run as they were written
        passes = llvm.create_pass_builder(target, options)
        passes.getModulePassManager().run(module, passes)
        listing = target.emit_assembly(module)
        engine = llvm.create_mcjit_compiler(module, target)
        engine.finalize_object()
        CODE[text] = engine, engine.get_function_address("program"), listing
    return CODE[text]


class Program:
    """Machine code with the names and shapes of what it works on. Call it with buffers and numbers by name."""

    def __init__(self, a):
        a.entry.branch(a.function.blocks[1])
        a.builder.ret_void()
        self.name, self.dtype, self.arrays, self.words = a.name, a.dtype, a.arrays, list(a.words)
        known = {f"size of {size}" for array in a.arrays.values() for size in array.shape}
        if lost := [word for word in self.words if word.startswith("size of ") and word not in known]:
            raise ValueError(f"{a.name}: the {lost[0]} is unknown: it stands in no array's shape")
        self.engine, address, self.code = machine_code(str(a.module))
        self.run = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)

    def __call__(self, **given):
        words = self.bind(given)
        block = (ctypes.c_int64 * len(self.words))(*(words[name] for name in self.words))
        self.run(ctypes.addressof(block))

    def listing(self):
        """This processor's instructions, without the assembler's own directives."""
        lines = (line.split("#")[0].rstrip() for line in self.code.splitlines())
        return "\n".join(line for line in lines if line and not line.startswith(("\t.", "//", ".Lfunc")))

    def bind(self, given):
        """The word that stands for each operand: addresses, sizes and numbers, all checked."""
        names = [name.removeprefix("number ") for name in self.words if not name.startswith("size of ")]
        if wrong := set(names) ^ set(given):
            raise TypeError(f"{self.name}: takes {', '.join(names)}; missing or unknown: {', '.join(sorted(wrong))}")
        words, sizes = {}, {}
        for name, array in self.arrays.items():
            buffer, dtype = given[name], np.dtype(np.int64) if array.rows_of else self.dtype
            if not isinstance(buffer, Buffer) or buffer.data is None or buffer.device.kind != "cpu":
                raise TypeError(f"{self.name}: {name} is {buffer!r}; expected a live buffer on a CPU")
            fits = buffer.dtype == dtype and len(buffer.shape) == len(array.shape)
            for size, found in zip(array.shape, buffer.shape):
                fits = fits and found == (size if isinstance(size, int) else sizes.setdefault(size, found))
            if not fits:
                found = f"{name} is {buffer.shape} {buffer.dtype}"
                raise ValueError(
                    f"{self.name}: {found}; expected {array} {dtype}" + (f" with {sizes}" if sizes else "")
                )
            if buffer.data.size >= 2**31:
                raise ValueError(
                    f"{self.name}: {name} has {buffer.data.size:,} elements; a program reaches 2,147,483,647"
                )
            words[name] = buffer.data.ctypes.data
        for name, array in self.arrays.items():
            rows = given[name].data
            if array.rows_of and rows.size and not 0 <= rows.min() <= rows.max() < sizes[array.rows_of]:
                worst = rows.max() if rows.max() >= sizes[array.rows_of] else rows.min()
                raise IndexError(f"{self.name}: {name} holds row {worst}; there are {sizes[array.rows_of]} rows")
        words.update((f"size of {size}", found) for size, found in sizes.items())
        bits = np.int32 if self.dtype == np.float32 else np.int64
        for name in set(given) - set(self.arrays):
            words[f"number {name}"] = int(np.array(given[name], self.dtype).view(bits))
        return words


# %% [markdown]
# A first program: `y = x·x` for any number of rows.

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
# And this is what the processor runs. Look for the one multiplication, `mul`: the rest is moving numbers and counting.

# %% tags=["nbval-ignore-output"]
print(square.listing())

# %% [markdown]
# ## exp and log, by hand (8 min)
#
# The second task needs eˣ and log x. Processors have no fast and exact instruction for them. `math.exp` comes from a
# library, and libraries differ in the last bit. So the course writes its own, once, and *every* level runs that one source: on Python's floats, in programs of
# the assembler, in kernels.
#
# The source needs five small tools. Each works on a Python float, and on a `Value` it writes instructions. `select`
# chooses; `rint` and `floor` round; `pow2` and `exponent` write and read the exponent in the bits of a float, which are
# sign, exponent and fraction ([IEEE 754](https://doi.org/10.1109/IEEESTD.2019.8766229)).

# %%
#| export elementary
"""exp and log, written once: the same source runs on Python's floats, in programs and in kernels."""

import struct

SINGLE, DOUBLE = np.dtype("f4"), np.dtype("f8")
FORMAT = {SINGLE: (I32, 23, 127), DOUBLE: (I64, 52, 1023)}  # integers as wide, bits of fraction, bias of the exponent
SQRT_HALF = {SINGLE: 0x3F3504F3, DOUBLE: 0x3FE6A09E667F3BCD}  # the bits of √½


def select(condition, x, y):
    """x where the condition holds, else y."""
    if not isinstance(condition, Condition):
        return x if condition else y
    a = condition.a
    (x, y), lanes = together(a, x, y)
    lanes = max(lanes, condition.lanes)
    return Value(a, a.builder.select(*(spread(a, r, lanes) for r in (condition.register, x, y))), lanes)


def rounded(x, name):
    """One of LLVM's rounding instructions."""
    kind = laned(x.a.real, x.lanes)
    suffix = f"v{x.lanes}f32" if x.lanes > 1 else "f32" if x.a.dtype == SINGLE else "f64"
    return Value(x.a, intrinsic(x.a, f"llvm.{name}.{suffix}", kind, x.register), x.lanes)


def rint(x):
    """The nearest whole number, halves to even."""
    if isinstance(x, Value):
        return rounded(x, "rint")
    return float(round(x)) if math.isfinite(x) else x


def floor(x):
    """The largest whole number that is not above x."""
    return rounded(x, "floor") if isinstance(x, Value) else float(math.floor(x))


# %% [markdown]
# The last two tools reach into the bits. A whole number n, plus the bias of the format, *is* the exponent of 2ⁿ once it is
# shifted to its place.


# %%
#| export elementary
def pow2(n):
    """2ⁿ for a whole number n: n goes into the bits of the exponent."""
    if not isinstance(n, Value):
        return struct.unpack("<d", struct.pack("<Q", (int(n) + 1023 << 52) % 2**64))[0]
    a, (whole, fraction, bias) = n.a, FORMAT[n.a.dtype]
    bits = a.builder.fptosi(n.register, laned(whole, n.lanes))
    bits = a.integer("shl", a.integer("add", bits, whole(bias)), whole(fraction))
    return Value(a, a.builder.bitcast(bits, laned(a.real, n.lanes)), n.lanes)


def exponent(x):
    """The e for which x / 2ᵉ lies in [√½, √2), for a positive normal x."""
    if not isinstance(x, Value):
        return float(struct.unpack("<q", struct.pack("<d", x))[0] - SQRT_HALF[DOUBLE] >> 52)
    a, (whole, fraction, _) = x.a, FORMAT[x.a.dtype]
    bits = a.builder.bitcast(x.register, laned(whole, x.lanes))
    bits = a.integer("ashr", a.integer("sub", bits, whole(SQRT_HALF[a.dtype])), whole(fraction))
    return Value(a, a.builder.sitofp(bits, laned(a.real, x.lanes)), x.lanes)


# %% [markdown]
# Now eˣ. Write x = n·log 2 + r with a whole number n and a small r. Then eˣ = 2ⁿ·eʳ, and for a small r a polynomial is as
# exact as the format. `log 2` is split into a short number and a rest, so that n times the short one is exact. The scheme
# and the float32 numbers are from [Cephes](https://www.netlib.org/cephes/), the float64 split from
# [fdlibm](https://www.netlib.org/fdlibm/); the float64 polynomial is the series itself, 1/k!.


# %%
#| export elementary
def make_exp(bottom, top, log2_e, ln2, ln2_rest, series):
    """eˣ for one format; below `bottom` it is 0, above `top` infinite."""

    def exp(x):
        y = select(x > top, top, select(x < bottom, bottom, x))  # a NaN stays a NaN
        n = rint(y * log2_e)
        r = (y - n * ln2) - n * ln2_rest
        p = series[0]
        for c in series[1:]:
            p = p * r + c
        p = p * (r * r) + r + 1.0
        n = select(n > -9999.0, n, 0.0)  # a NaN is no exponent
        h = floor(n * 0.5)
        return p * pow2(h) * pow2(n - h)  # in two steps: 2ⁿ alone may overflow where the result does not

    return exp


EXP = {
    DOUBLE: make_exp(
        *(-746.0, 710.0, 1.4426950408889634, 6.93147180369123816490e-01, 1.90821492927058770002e-10),
        tuple(1.0 / math.factorial(k) for k in range(13, 1, -1)),
    ),
    SINGLE: make_exp(
        *(-104.0, 89.0, 1.4426950408889634, 0.693359375, -2.12194440e-4),
        (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1),
    ),
}

# %% [markdown]
# For log x the way back: x = 2ᵉ·(1 + f), so log x = e·log 2 + log(1 + f), and a polynomial in s = f/(2 + f) does the rest.
# It is cut into two, the even powers and the odd ones, so that a processor can run both at once. Scheme and float64 numbers:
# [fdlibm](https://www.netlib.org/fdlibm/), Sun Microsystems, 1993; float32 numbers: FreeBSD's `e_logf.c`, after it.


# %%
#| export elementary
def make_log(tiny, scale, shift, ln2, ln2_rest, even, odd):
    """log x for one format. Numbers below `tiny` have lost bits of their exponent and are scaled by 2^shift first."""

    def log(x):
        small = x < tiny
        y = select(small, x * scale, x)
        e = exponent(y)
        h = floor(e * 0.5)
        f = y * pow2(0.0 - h) * pow2(h - e) - 1.0
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
        result = select(x > 0.0, result, -math.inf)
        result = select(x < 0.0, math.nan, result)
        return select(x < math.inf, result, x)  # infinity and NaN are their own logarithm

    return log


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
# ## How fast can it be? (4 min)
#
# Two numbers bound every program: how many operations a second a core can do, its **peak**, and how many bytes a second
# reach it from memory, its **bandwidth**. We can measure both now. For the bandwidth we copy a large
# block. For the peak: a program that does nothing but multiply and add, twelve independent sums at once, so that no addition
# waits for the one before.

# %%
#| export roofline
"""Time has a floor: how fast this machine computes and moves data, measured."""

import statistics
import time


def seconds(run, repeats=7):
    """The median time of `run` in seconds: of this thread's own work, where the system's clock for that is fine enough."""
    fine = time.get_clock_info("thread_time").resolution < 1e-6
    clock, times = time.thread_time if fine else time.perf_counter, []
    for _ in range(repeats):
        start = clock()
        run()
        times.append(clock() - start)
    return statistics.median(times)


def measure_peak(device, turns=400_000, chains=12):
    """float32 operations a second of one core: a multiplication and an addition in every lane of every chain."""
    a = Assembler("peak", "f4")
    out, factor = a.array("out", 1), a.load(a.array("factor", 1), 0)
    sums = [a.sum() for _ in range(chains)]
    with a.loop(turns):
        for s in sums:
            s += s.value() * factor
    a.store(sum((s.total() for s in sums), 0.0), out, 0)
    program = a.assemble()
    buffers = dict(out=device.alloc((1,), "f4"), factor=device.put(np.ones(1, "f4")))
    return 2 * chains * a.lanes * turns / seconds(lambda: program(**buffers))


def measure_bandwidth(device, nbytes=2**26):
    """Bytes a second, counting reads and writes, of copying a block too large for the caches."""
    source, target = np.ones(nbytes, "u1"), np.zeros(nbytes, "u1")
    return 2 * nbytes / seconds(lambda: np.copyto(target, source))


MEASURES.update(peak=measure_peak, bandwidth=measure_bandwidth)

# %% tags=["nbval-ignore-output"]
print(f"peak      {cpu.peak / 1e9:8.1f} billion float32 operations a second, one core")
print(f"bandwidth {cpu.bandwidth / 1e9:8.1f} billion bytes a second")

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
import itertools
from collections.abc import Callable
from typing import NamedTuple


class Fit(NamedTuple):
    """What training gives back."""

    losses: np.ndarray  # [steps], each taken before its update
    weights: list  # like the argument
    predict: Callable  # x[m, features] -> [m, 1]


def check_inputs(x, dtype, features):
    """Raise unless x is [m, features] of that dtype, with no NaN and no infinity."""
    if not isinstance(x, np.ndarray) or x.ndim != 2 or x.shape[1] != features or x.dtype != dtype:
        found = f"{x.dtype}{list(x.shape)}" if isinstance(x, np.ndarray) else type(x).__name__
        raise ValueError(f"x is {found}; expected a NumPy array {dtype}[rows, {features}]")
    if not np.isfinite(x).all():
        raise ValueError(
            f"x is not a finite number in row {np.argmin(np.isfinite(x).all(axis=1))}; drop or fill such rows"
        )


# %% [markdown]
# The same for all arguments of a task. `units` says how many units each layer has: `[1]` for the line.


# %%
#| export tasks
def check_task(x, y, weights, batches, learning_rate, units):
    """Raise unless data, starting weights and batches fit each other and a net of layers with that many `units`."""
    dtype = getattr(x, "dtype", None)
    if dtype not in (np.float32, np.float64):
        raise TypeError(f"x is {dtype or type(x).__name__}; expected a NumPy array of float32 or float64")
    if x.ndim != 2:
        raise ValueError(f"x has shape {x.shape}; expected [rows, features]")
    check_inputs(x, dtype, x.shape[1])
    sizes = [x.shape[1], *units]
    shapes = [s for inputs, outputs in zip(sizes, units) for s in ((inputs, outputs), (1, outputs))]
    expected = [("y", y, (len(x), 1))]
    if len(weights) != len(shapes):
        raise ValueError(f"weights are {len(weights)} arrays; expected {len(shapes)}: {shapes}")
    expected += [(f"weights[{i}]", w, shape) for i, (w, shape) in enumerate(zip(weights, shapes))]
    for name, array, shape in expected:
        if getattr(array, "shape", None) != shape or array.dtype != dtype:
            raise ValueError(f"{name} is {getattr(array, 'dtype', '')}{np.shape(array)}; expected {dtype}{shape}")
        if not np.isfinite(array).all():
            raise ValueError(f"{name} holds a number that is not finite; drop or fill it first")
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
# Now the task as one program. Lay it beside the plain Python above: the same lines, in the same order, but what stands
# here *writes* the program. The loops run later, in the machine. Outside the loop over rows the weights wait in
# registers; inside, a row is found by its number, used, and forgotten.


# %%
#| export tasks
def dot(p, q):
    """0.0 + p[0]·q[0] + p[1]·q[1] + …, in that order."""
    return sum((a * b for a, b in zip(p, q)), 0.0)


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
        w, b = [a.load(w_, k, 0) for k in range(features)], a.load(b_, 0, 0)
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
# A second, smaller program predicts. And the task function itself puts the data into the device's memory, calls once,
# and takes the results out.


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


def run_programs(train, forward, x, y, weights, batches, learning_rate):
    """Put everything into memory, train in one call, and keep the weights there for predictions."""
    cpu, features = pool()["cpu:0"], x.shape[1]
    names = ["w", "b"] if len(weights) == 2 else [f"{name}{k}" for k in (1, 2, 3) for name in "wb"]
    trained = {name: cpu.put(w) for name, w in zip(names, weights)}
    rows, losses = cpu.put(np.asarray(batches, np.int64)), cpu.alloc((len(batches),), x.dtype)
    program, predict_program, dtype = train(x.dtype, features), forward(x.dtype, features), x.dtype
    program(x=cpu.put(x), y=cpu.put(y), batches=rows, losses=losses, learning_rate=learning_rate, **trained)

    def predict(x):
        check_inputs(x, dtype, features)
        out = cpu.alloc((len(x), 1), dtype)
        predict_program(x=cpu.put(x), out=out, **trained)
        return out.numpy()

    return Fit(losses.numpy(), [w.numpy() for w in trained.values()], predict)


def linear_regression(x, y, weights, batches, learning_rate=0.0005):
    """Mean squared error, stochastic gradient descent; see `Fit` and `check_task` for the shapes."""
    check_task(x, y, weights, batches, learning_rate, units=[1])
    return run_programs(linear_program, linear_predict_program, x, y, weights, batches, learning_rate)


# %% [markdown]
# **Predict:** the plain Python above took 8,000 steps. Will the machine's losses be close to its losses? Very close?
# Equal?

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
# Equal, all 8,000 of them, to the last bit. Same numbers, same operations, same order: there is nothing left to differ.
#
# ### Result

# %%
figures.regression(task, fit)

# %% [markdown]
# The same source on real data: 342 penguins measured near Palmer Station, Antarctica
# ([Gorman, Williams and Fraser, 2014](https://doi.org/10.1371/journal.pone.0090081)). How heavy is a penguin whose bill
# and flippers we have measured?

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
# The plain Python of one step, with every gradient written out, is the other half of the record:

# %%
figures.source(reference.dnn_step)

# %% [markdown]
# The same as a program. `dense`, `relu` and `dot` are Python functions that run while the program is *written*: in the
# machine there are only loads, arithmetic and stores, 61 weights in a row.


# %%
#| export tasks
def relu(z):
    return select(z > 0.0, z, 0.0)


def dense(inputs, w, b):
    """One row through one layer: dot(inputs, w[:, j]) + b[j] for each unit j."""
    return [dot(inputs, [row[j] for row in w]) + bias for j, bias in enumerate(b)]


def forward(row, weights):
    """One row through the net: the hidden layers' outputs and the probability."""
    w1, b1, w2, b2, w3, b3 = weights
    h1 = [relu(z) for z in dense(row, w1, b1)]
    h2 = [relu(z) for z in dense(h1, w2, b2)]
    (z,) = dense(h2, w3, b3)
    return h1, h2, 1.0 / (1.0 + exp(0.0 - z))


def load_weights(a, arrays):
    """Every number of the arrays [w1, b1, …] in a register: w as a list of rows, b as a list."""
    loaded = []
    for w, b in zip(arrays[::2], arrays[1::2]):
        inputs, units = w.shape
        loaded.append([[a.load(w, k, j) for j in range(units)] for k in range(inputs)])
        loaded.append([a.load(b, 0, j) for j in range(units)])
    return loaded


# %% [markdown]
# The program of the line, one size larger: the same three loops, the same four parts. Only `backward` is new. It stands in
# the cell after the next.


# %%
#| export tasks
def net_arrays(a, features):
    """The arrays of the net's weights: w1[features, 4], b1[1, 4], w2[4, 8], b2[1, 8], w3[8, 1], b3[1, 1]."""
    sizes = [(features, 4), (4, 8), (8, 1)]
    return [
        a.array(f"{name}{k}", *shape)
        for k, (i, o) in enumerate(sizes, 1)
        for name, shape in (("w", (i, o)), ("b", (1, o)))
    ]


@functools.cache
def dnn_program(dtype, features):
    """The program that trains the net: any rows, any batch, any number of steps."""
    a = Assembler("dnn_classifier", dtype)
    x, y, arrays = a.array("x", "rows", features), a.array("y", "rows", 1), net_arrays(a, features)
    batches, losses = a.array("batches", "steps", "batch", rows_of="rows"), a.array("losses", "steps")
    n, learning_rate = a.count("batch"), a.number("learning_rate")
    with a.loop("steps") as step:
        weights = load_weights(a, arrays)
        loss, sums = a.sum(), [[[a.sum() for _ in range(w.shape[1])] for _ in range(w.shape[0])] for w in arrays]
        with a.loop("batch", a.lanes) as r:
            i = a.load(batches, step, r)
            rows, target = [a.load(x, i, k) for k in range(features)], a.load(y, i, 0)
            h1, h2, prediction = forward(rows, weights)  # forward
            c = select(prediction < 1e-7, 1e-7, select(prediction > 1.0 - 1e-7, 1.0 - 1e-7, prediction))
            loss += target * log(c) + (1.0 - target) * log(1.0 - c)  # loss
            backward(sums, rows, target, h1, h2, prediction, c, weights, -1.0 / n)  # backward
        a.store(0.0 - loss.total() / n, losses, step)
        for w, numbers, dw in zip(arrays, weights, sums):  # update
            for k, j in itertools.product(*map(range, w.shape)):
                number = numbers[k][j] if w.name[0] == "w" else numbers[j]
                a.store(number - learning_rate * dw[k][j].total(), w, k, j)
    return a.assemble()


# %% [markdown]
# And the gradients, in the order in which the chain rule meets them: from the loss to the probability, to the last layer's
# `z`, and back through the layers. Where c was clipped, the gradient is zero.


# %%
#| export tasks
def backward(sums, row, target, h1, h2, p, c, weights, g):
    """Add one row's gradients to the sums [dw1, db1, dw2, db2, dw3, db3]."""
    _, _, w2, _, w3, _ = weights
    dc = g * target / c - g * (1.0 - target) / (1.0 - c)
    dp = select(p > 1e-7, select(p < 1.0 - 1e-7, dc, 0.0), 0.0)
    dz = [dp * p * (1.0 - p)]
    dh2 = [select(h > 0.0, dot(dz, w), 0.0) for h, w in zip(h2, w3)]
    dh1 = [select(h > 0.0, dot(dh2, w), 0.0) for h, w in zip(h1, w2)]
    for (dw, db), inputs, d in zip((sums[:2], sums[2:4], sums[4:]), (row, h1, h2), (dh1, dh2, dz)):
        for j, dj in enumerate(d):
            db[0][j] += dj
            for k, value in enumerate(inputs):
                dw[k][j] += value * dj


@functools.cache
def dnn_predict_program(dtype, features):
    """The program that predicts: one row after the other."""
    a = Assembler("dnn_predict", dtype)
    x, out = a.array("x", "rows", features), a.array("out", "rows", 1)
    weights = load_weights(a, net_arrays(a, features))
    with a.loop("rows") as r:
        a.store(forward([a.load(x, r, k) for k in range(features)], weights)[-1], out, r, 0)
    return a.assemble()


# %%
#| export tasks
def dnn_classifier(x, y, weights, batches, learning_rate=0.01):
    """features-4-8-1, relu, relu, sigmoid; binary cross-entropy, stochastic gradient descent; see `Fit`, `check_task`."""
    check_task(x, y, weights, batches, learning_rate, units=[4, 8, 1])
    return run_programs(dnn_program, dnn_predict_program, x, y, weights, batches, learning_rate)


# %% [markdown]
# In float64 the program takes one row at a time. **Predict:** 24,000 steps of 100 rows, 2.4 million rows forward and
# backward. How long will that take? One second? Ten? A minute?

# %% tags=["nbval-ignore-output"]
start = time.perf_counter()
ring_fit = dnn_classifier(rings.x, rings.y, rings.weights, rings.batches, rings.learning_rate)
print(f"{time.perf_counter() - start:.2f} s")

# %% [markdown]
# A fraction of a second. There is no Python in the loop, no call, no allocation: a few hundred instructions a row. The plain
# Python of the record takes about a thousand times as long, so we compare with it only the first 100 steps. (The tests
# compare 500.)

# %%
first, _ = reference.dnn_classifier(rings.x, rings.y, rings.weights, rings.batches[:100], rings.learning_rate, exp, log)
print("equal to the record, first 100 steps:", ring_fit.losses[:100].tolist() == first)
print("last loss", ring_fit.losses[-1].hex())

# %%
figures.classifier(rings, ring_fit)

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
# ## What this level cost (3 min)
#
# A step reads ten rows: two inputs, an answer and a row number each, 32 bytes. It does about sixteen operations a row.
# The roofline says how long that must take at least.

# %%
from course import compare

functions = (linear_program, linear_predict_program, run_programs, linear_regression)
print(f"{compare.lines(*functions)} lines, one launch for all {len(task.batches):,} steps, {32 * 10} bytes a step")

# %% tags=["nbval-ignore-output"]
least = cpu.roofline(flops=16 * 10, nbytes=32 * 10)
steps = len(task.batches)
compare.cost(linear_regression, task, launches=1 / steps, nbytes=32 * 10, predicted=least, steps=steps)

# %% [markdown]
# The measured time lies above the floor, which the bytes set. The program is slower for another reason: it works on one
# number at a time, and each addition of a sum waits for the one before. The assembling and the checks before the call cost
# something too, spread over all steps. What a call costs is where level 2 starts.

# %% [markdown]
# ## More of the same kind (optional)
#
# In float32 the same source becomes another program, with lanes. With batches of ten that gains nothing: one load of lanes
# holds them all. For the net, with batches of a hundred, it does. The losses are no longer equal, only close:

# %%
single = linear_regression(
    task.x.astype("f4"), task.y.astype("f4"), [v.astype("f4") for v in task.weights], task.batches, task.learning_rate
)
distance = np.abs(single.losses - fit.losses) / np.maximum(1, fit.losses)
print("all losses within 1e-4 of those in float64:", bool(distance.max() < 1e-4))

# %% [markdown]
# | | TensorFlow | PyTorch | here |
# |---|---|---|---|
# | what is there | `tf.config.list_physical_devices()` | `torch.cuda.device_count()` | `pool()` |
# | put numbers there | `with tf.device("GPU:0"):` | `x.to("cuda:0")` | `device.put(x)` |
# | memory in use | `tf.config.experimental.get_memory_info` | `torch.cuda.memory_allocated()` | `device.used` |
#
# ## Exercises
#
# 1. Write a program that doubles every number of an array. (Start from `square`.)
# 2. In `linear_program`, take `g = 1.0 / n` away and write `de = 2.0 * error / n`. Are the losses still equal to the
#    record? At which step do they part, and why?
# 3. Set the learning rate to 0.1. What do the losses do? Why does the program not complain?
# 4. Copy `linear_step` and let its loop run over the rows backwards. How many of the 8,000 losses change, and why?
#
# ## Build
#
# The last cell writes `levels/hardware/` from the cells marked `#| export`, imports it in a fresh Python, trains there,
# and compares. Then level 2 can stand on it.

# %%
build.level("01_hardware", linear_regression, dnn_classifier)

# %% [markdown]
# # 01 more · The assembler
#
# **In this notebook you see how instructions for lanes are written, how a call is checked, and what LLVM makes of a
# program, for this machine and for others.**
#
# It needs notebook 01. It takes apart `program` of `levels/hardware/`, `writing`, `calls`, `machine` and `cache` of
# `levels/support/`, and `lanes`, `disassembly`, `targets` and `emulated` of `levels_more/hardware/`. Nothing is
# exported here. It runs programs of other machines with wasmtime and unicorn, which `python3 -m course setup` adds.

# %%
import numpy as np

from course import build, compare, figures, tasks
from course.reader import checks
from course.reader.figures import page
from levels.hardware import Assembler, Program, dot, line_row, subtract, write_steps
from levels.support import cache, calls, machine, writing
from levels.support.instructions import named
from levels_more.hardware import Lanes, emulated, pool, targets

build.watch("more/01_assembler", "wasmtime", "unicorn", "elftools")
cpu = pool()["cpu:0"]
figures.you_are_here(1)

# %% [markdown]
# ## An operand becomes text (3 min)
#
# `v + 1.0` adds a register and a Python number. `operand` turns each of the two into text: the name of the register,
# or the 64 bits of the number in base 16. It refuses anything that is not a number. `live` refuses a value that
# belongs to another program, or to a loop that has ended.

# %%
page.source(writing.operand, writing.live)

# %%
a = Assembler("peek", "f8")
v = a.number("v")
print(v + 1.0)
print("\n".join(a.lines))

# %% [markdown]
# ## Lanes (11 min)
#
# Most processors also have wider registers. One instruction then adds 4, 8 or 16 pairs of float32 numbers at once.
# Each place in such a register is called a **lane**. Work in lanes is called *SIMD*; work with one lane is called
# *scalar*:
#
# ```
# one lane           x       +       y       =       z          one addition
# four lanes   [x0 x1 x2 x3] + [y0 y1 y2 y3] = [z0 z1 z2 z3]    four, by one instruction
# ```
#
# `Lanes` is an `Assembler` that uses them. In the loops over the sizes that `over` names, each lane takes another turn.
# A program with lanes keeps all its numbers in registers of another type: `<4 x float>`. A single number, such as a
# learning rate, must therefore be repeated in every lane. `spread` does that. LLVM needs two instructions for it: one
# puts the number into lane 0, the other copies lane 0 to all lanes. Outside such a loop the program computes with lane
# 0 alone: a store writes its number, and the other lanes are not used.

# %%
page.source(Lanes.spread)

# %%
a = Lanes("lanes", "f4", lanes=4, over=("n",))
x, y, scale = a.array("x", "n"), a.array("y", "n"), a.number("scale")
with a.loop("n") as i:
    start = len(a.lines)
    a.store(a.load(x, i) * scale, y, i)
    print("\n".join(a.lines[start:]))

# %% [markdown]
# The load reads four neighbouring numbers at once. A **mask** of four bits says which of them count, because in the
# last turn of the loop some lanes lie past the end. The mask is the result of comparing the four counters with n. A
# counter past the end is replaced by 0. So no lane has an address outside its array. (If there is no row 0, the loop
# makes no turn.)

# %%
page.source(Lanes.loop, Lanes.counters)

# %% [markdown]
# If rows are picked by number, neighbouring lanes need rows from different places in memory. So each lane has an
# address of its own. LLVM calls such a load a *gather*. It is one instruction where the processor has one, and
# otherwise a small load per lane. It needs no mask, since a lane past the end reads row 0.

# %%
page.source(Lanes.load)

# %% [markdown]
# ## What is checked at a call (9 min)
#
# Nothing watches a program while it reads and writes memory. So everything is checked before it runs: the dtype and
# shape of each buffer, each index that might leave its array, and each row number.

# %%
page.source(calls.memory_of, calls.checked)

# %% [markdown]
# The program gets a copy of the row numbers. Otherwise another thread could change them between the check and the run.
# An index is either a counter or a row number. `i + 1` is neither, so it is refused as an index.
#
# **Neighbours are row numbers too.** If a row needs the values of other rows, the program reads the numbers of those
# rows from an array. In this example each output is the mean of three neighbours on a ring:

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
# There are ten rows, 0 to 9. The call refuses row 10 before the program runs.

# %% [markdown]
# ## A call (3 min)
#
# `bind` writes a block of 64-bit words: addresses, sizes, and the bits of numbers. The machine code gets a single
# argument, the address of that block. So every program is called in the same way.

# %%
page.source(Program.bind)

# %%
a = Assembler("words", "f8")
x, out, rate = a.array("x", "rows"), a.array("out", 1), a.number("rate")
with a.loop("rows") as i:
    pass
a.store(rate, out, 0)
words = a.assemble()
print(words.words)
print(words.text)

# %% [markdown]
# **A good place to stop.** A program's arguments are checked before it runs, and it reads them from one block of words.

# %% [markdown]
# ## From text to bytes (5 min)
#
# LLVM may improve a program in any way that keeps its results. We forbid one kind of improvement: LLVM must not add
# lanes or unroll a loop on its own, since we want to do that ourselves. The compiled program is kept in a folder. Its
# file name is a hash of everything that the program was made from. The file also holds a checksum, so a file that was
# cut short or damaged is never run.

# %%
page.source(machine.optimised, machine.machine_code, cache.cache_get)

# %% [markdown]
# LLVM can also print the processor's own instructions, one per line. Look for the only multiplication, `mul`. The load
# stands just before it and the store just after it. Everything else is counting and jumping.

# %% tags=["nbval-ignore-output"]
from levels_more.hardware.disassembly import listing

a = Assembler("square", "f8")
x, y = a.array("x", "rows"), a.array("y", "rows")
with a.loop("rows") as i:
    v = a.load(x, i)
    a.store(v * v, y, i)
print(listing(a.assemble()))

# %% [markdown]
# ## An instruction of your own (1 min)
#
# LLVM has more instructions than Python has operators. `named` writes such an instruction by its name: `named("sqrt",
# v)` takes the square root. Here it computes the hypotenuse, with lanes:

# %%
a = Lanes("hypotenuse", "f4", over=("n",))
p, q, out = a.array("p", "n"), a.array("q", "n"), a.array("out", "n")
with a.loop("n") as i:
    x, y = a.load(p, i), a.load(q, i)
    a.store(named("sqrt", x * x + y * y), out, i)
hypotenuse, answer = a.assemble(), cpu.alloc((3,), "f4")
hypotenuse(p=cpu.put(np.array([3, 5, 8], "f4")), q=cpu.put(np.array([4, 12, 15], "f4")), out=answer)
answer.numpy()

# %% [markdown]
# ## The same program on other machines (18 min)
#
# The text that the `Assembler` writes belongs to no processor yet. LLVM translates it, and LLVM can translate it for
# other machines, too. **WebAssembly** is the language of a machine that is part of every browser. **ARM64**, which LLVM
# calls `aarch64`, is the language of phones, of newer Macs and of many servers. A machine is one row of a table, and
# `compiled_for` makes the bytes for it:

# %%
print(*targets.TARGETS.items(), sep="\n")
page.source(targets.compiled_for)

# %% [markdown]
# Here is a program with one subtraction. Your `subtract` of notebook 01 writes it. The program is shown in the language
# of this processor, and then in those of the two others. Look for the line with `sub`.

# %% tags=["nbval-ignore-output"]
a = Assembler("difference", "f8")
x, y, out = a.array("x", 1), a.array("y", 1), a.array("out", 1)
a.store(subtract(a.load(x, 0), a.load(y, 0)), out, 0)
difference = a.assemble()
print("this processor", listing(difference), sep="\n")
for target in targets.TARGETS:
    print(f"\n{target}", targets.listing_for(difference, target), sep="\n")

# %% [markdown]
# The same three steps stand in each: load, subtract, store. ARM64 names its registers, `d0` and `d1`. WebAssembly has a
# stack in their place. `f64.load` puts a number on the stack, and `f64.sub` takes two numbers from it and puts their
# difference there.
#
# Now the whole line. `write_steps` writes the program of level 1, which is made of functions that you wrote in
# notebook 01: `line_slopes`, `subtract` (each minus between two registers) and `descend`.

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "01-assembler-machines",
    "The same text trains the line in float64, 8,000 steps, on this processor, on WebAssembly and on ARM64. On which "
    "machines is the last loss the same, to the last bit?",
    choices=[
        "on all three",
        "on this processor and ARM64, which have registers",
        "on none: each machine rounds its own way",
    ],
)

# %% [markdown]
# Each machine gets buffers of its own, because training changes the weights. `run_on` runs WebAssembly with the package
# wasmtime. For ARM64 we add an **emulator**, a program that carries out the instructions of another processor.

# %%
import time

targets.RUNNERS["aarch64"] = emulated.run_arm
task = tasks.linear()


def arguments(dtype):
    """What a call of the program takes, with the weights at the start."""
    x, y, w, b = [cpu.put(array.astype(dtype)) for array in (task.x, task.y, *task.weights)]
    losses = cpu.alloc((len(task.batches),), dtype)
    return dict(x=x, y=y, w0=w, w1=b, batches=cpu.put(task.batches), losses=losses, rate=task.learning_rate)


def run_here(program, **given):
    """Run it on this processor. Returns the seconds that the program took, as `run_on` does."""
    call = program.bind(**given)
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def trained(program, name):
    """(the losses, the seconds) on the machine of that name: the quickest of five trainings."""
    seconds = []
    for _ in range(5):
        buffers = arguments(program.dtype)
        here = name == "here"
        seconds.append(run_here(program, **buffers) if here else targets.run_on(name, program, **buffers))
    return buffers["losses"].numpy(), min(seconds)


# %% tags=["nbval-ignore-output"]
line = compare.program_of(line_row, task)
host = machine.target_machine()
codes = {"here": host.emit_object(machine.optimised(line.text, host))}
for target in targets.TARGETS:
    codes[target] = targets.compiled_for(line, target)

print("machine   bytes   µs per step   last loss")
for name, code in codes.items():
    losses, seconds = trained(line, name)
    step = "emulated" if name == "aarch64" else f"{seconds / len(losses) * 1e6:.3f}"
    print(f"{name:8}  {len(code):5}   {step:>11}   {losses[-1]:.4g}  {losses[-1].hex()}")

# %%
checks.answer_to("01-assembler-machines")

# %% [markdown]
# All three end on the loss that notebook 01 ended on, bit for bit. The bytes differ, because the languages differ, and
# because an object file holds more than its instructions. (An emulator's time says nothing about the machine.)
#
# In float32 `Lanes` allows LLVM one liberty, which makes programs quicker: a product and a sum may become one
# instruction, a **fused multiply-add**. ARM64 has it (`fmadd`), and so do most other processors. WebAssembly has none
# for single numbers. For lanes, version 3.0 has `f32x4.relaxed_madd`, which a machine may round once or twice. LLVM
# writes it only if it is asked for *relaxed SIMD*, and we do not ask.

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "01-assembler-float32",
    "The line is trained in float32. Does the program for ARM64 give the same losses as the program for WebAssembly?",
    choices=["yes, bit for bit, as in float64", "no, many differ in their last digits", "no, they are far apart"],
)

# %% [markdown]
# We count these instructions, and the losses that differ from those of WebAssembly:

# %% tags=["nbval-ignore-output"]
a = Lanes("train", "f4", 1)  # one number at a time
write_steps(a, line_row, ((2, 1), (1, 1)))
single = a.assemble()
twice, _ = trained(single, "wasm32")
print("machine   fused   losses that differ   largest difference")
for name in ("here", *targets.TARGETS):
    text = listing(single) if name == "here" else targets.listing_for(single, name)
    losses, _ = trained(single, name)
    apart = abs(losses - twice)
    print(f"{name:8}  {text.count('fmadd'):5}   {(apart > 0).sum():18,}   {apart.max():18.1g}")

# %%
checks.answer_to("01-assembler-float32")

# %% [markdown]
# The losses that differ do so in their last digits only. But equal bits are an exact test, and nearly equal numbers
# are not. That is why the record of this course is kept in float64.
#
# The first page of the course's site (`python3 -m course site`) holds the bytes of WebAssembly. There your browser
# trains the line, and ends on the same 64 bits.

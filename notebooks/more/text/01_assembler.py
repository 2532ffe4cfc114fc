# %% [markdown]
# # 01 more · The assembler
#
# **In this notebook you open what notebook 01 folded: how lanes are written, how a call is checked, and what LLVM makes of it.**
#
# It needs notebook 01 and takes `values`, `assembler` and `program` of `levels/hardware/` apart, `calls`, `machine` and `cache` of
# `levels/support/`, and `levels_more/hardware/disassembly.py`.
# Nothing is exported here.

# %%
import numpy as np

from course import build, figures
from course.figures import page
from levels.hardware import values
from levels.support import cache, calls, machine
from levels_more.hardware import Assembler, Loops, Program, Writer, dot, named, pool

build.watch("more/01_assembler")
cpu = pool()["cpu:0"]
figures.you_are_here(1)

# %% [markdown]
# ## An operand becomes text (3 min)
#
# `v + 1.0` meets a register and a Python number. `_operand` gives each its text: a register's name, or the 64 bits of a number in
# base 16. It refuses what is no number, and `_live` refuses what belongs to another program or to a loop that has ended.

# %%
page.source(values._operand, values._live)

# %%
a = Assembler("peek", "f8")
v = a.number("v")
print(v + 1.0)
print("\n".join(a.lines))

# %% [markdown]
# ## Lanes (11 min)
#
# A program with lanes keeps all its numbers in registers of another type: `<4 x float>`. What is one number, such as a learning
# rate, `spread` repeats in every lane. LLVM takes two instructions for it: put it into lane 0, then copy lane 0 everywhere.
# Outside of a loop with lanes only the first lane counts, and a store takes the number that stands there.

# %%
page.source(Writer.spread)

# %%
a = Assembler("lanes", "f4", lanes=4)
x, y, scale = a.array("x", "n"), a.array("y", "n"), a.number("scale")
with a.loop("n", 4) as i:
    start = len(a.lines)
    a.store(a.load(x, i) * scale, y, i)
    print("\n".join(a.lines[start:]))

# %% [markdown]
# The load takes four neighbours at once, and a **mask** of four bits says which of them count: in the last turn some lanes lie
# past the end. The mask is a comparison of the four counters with n. A counter past the end becomes 0, a row that there is, so that
# no lane has an address outside of its array:

# %%
page.source(Loops.loop, Loops.counters)

# %% [markdown]
# Where rows are picked by number, lanes lie anywhere, and each has an address of its own. LLVM calls such a load a *gather*: one
# instruction where the processor has it, else a small load for each lane. It needs no mask, since row 0 is there in any case.

# %%
page.source(Assembler.load)

# %% [markdown]
# ## What is checked at a call (10 min)
#
# A program reads and writes memory, and nobody looks after it while it runs. So all is looked at before: each buffer's dtype and
# shape, each index that may leave its array, each row number.

# %%
page.source(calls.memory_of, calls.checked)

# %% [markdown]
# The call gets a copy of the row numbers, or somebody could change them between the look and the call. An index is a counter or a row number, nothing else: `i + 1` is no index.
#
# **Neighbours are row numbers too.** A program whose
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

# %% [markdown]
# ## A call (4 min)
#
# `bind` writes a block of 64-bit words: addresses, sizes, and numbers as their bits. The machine code gets one argument, the
# address of that block, so every program is called in the same way.

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
# **A good place to stop.** A program looks at its arguments before it runs, and reads them from one block of words.

# %% [markdown]
# ## From text to bytes (5 min)
#
# LLVM may improve a program in any way that keeps its results. We forbid one kind: it shall not add lanes or repeat a loop's body
# on its own, since we want to do that ourselves. What is compiled is kept in a folder, under a hash of all that it was made
# from. The bytes there carry a checksum, so a file that was cut short or damaged is not run.

# %%
page.source(machine.optimised, machine.machine_code, cache.kept)

# %% [markdown]
# LLVM can also print the processor's own instructions. Each line is one of them. Look for the one multiplication, `mul`. Before it
# stands the load, behind it the store; the rest is counting and jumping.

# %% tags=["nbval-ignore-output"]
from levels_more.hardware.disassembly import listing

a = Assembler("square", "f8")
x, y = a.array("x", "rows"), a.array("y", "rows")
with a.loop("rows") as i:
    v = a.load(x, i)
    a.store(v * v, y, i)
print(listing(a.assemble()))

# %% [markdown]
# ## An instruction of your own (2 min)
#
# LLVM has more instructions than operators. They are called by name, like functions: `named("sqrt", v)` writes the square
# root. Here is the hypotenuse, in lanes:

# %%
a = Assembler("hypotenuse", "f4")
p, q, out = a.array("p", "n"), a.array("q", "n"), a.array("out", "n")
with a.loop("n", a.lanes) as i:
    x, y = a.load(p, i), a.load(q, i)
    a.store(named("sqrt", x * x + y * y), out, i)
hypotenuse, answer = a.assemble(), cpu.alloc((3,), "f4")
hypotenuse(p=cpu.put(np.array([3, 5, 8], "f4")), q=cpu.put(np.array([4, 12, 15], "f4")), out=answer)
answer.numpy()

# %% [markdown]
# # 01 more · The assembler
#
# **In this notebook you see how instructions for lanes are written, how a call is checked, and what LLVM makes of a
# program.**
#
# It needs notebook 01. It takes apart `values`, `assembler` and `program` of `levels/hardware/`, `calls`, `machine` and
# `cache` of `levels/support/`, and `levels_more/hardware/disassembly.py`. Nothing is exported here.

# %%
import numpy as np

from course import build, figures
from course.figures import page
from levels.hardware import assembler, values
from levels.support import cache, calls, machine
from levels_more.hardware import Assembler, Loops, Program, Writer, dot, named, pool

build.watch("more/01_assembler")
cpu = pool()["cpu:0"]
figures.you_are_here(1)

# %% [markdown]
# ## An operand becomes text (3 min)
#
# `v + 1.0` adds a register and a Python number. `_operand` turns each of the two into text: the name of the register,
# or the 64 bits of the number in base 16. It refuses anything that is not a number. `_live` refuses a value that
# belongs to another program, or to a loop that has ended.

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
# A program with lanes keeps all its numbers in registers of another type: `<4 x float>`. A single number, such as a
# learning rate, must therefore be repeated in every lane. `spread` does that. LLVM needs two instructions for it: one
# puts the number into lane 0, the other copies lane 0 to all lanes. Outside a loop with lanes only lane 0 counts, and a
# store writes the number in lane 0.

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
# The load reads four neighbouring numbers at once. A **mask** of four bits says which of them count, because in the
# last turn of the loop some lanes lie past the end. The mask is the result of comparing the four counters with n. A
# counter past the end is replaced by 0. Row 0 always exists, so no lane has an address outside its array:

# %%
page.source(Loops.loop, Loops.counters)

# %% [markdown]
# Where rows are picked by number, the rows of the lanes lie anywhere in memory, and each lane has an address of its
# own. LLVM calls such a load a *gather*. It is one instruction where the processor has one, and otherwise a small load
# per lane. It needs no mask, since a lane past the end reads row 0, which always exists.

# %%
page.source(assembler._load_lanes)

# %% [markdown]
# ## What is checked at a call (10 min)
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
# ## A call (4 min)
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
page.source(machine.optimised, machine.machine_code, cache.kept)

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
# ## An instruction of your own (2 min)
#
# LLVM has more instructions than Python has operators. `named` writes such an instruction by its name: `named("sqrt",
# v)` takes the square root. Here it computes the hypotenuse, with lanes:

# %%
a = Assembler("hypotenuse", "f4")
p, q, out = a.array("p", "n"), a.array("q", "n"), a.array("out", "n")
with a.loop("n", a.lanes) as i:
    x, y = a.load(p, i), a.load(q, i)
    a.store(named("sqrt", x * x + y * y), out, i)
hypotenuse, answer = a.assemble(), cpu.alloc((3,), "f4")
hypotenuse(p=cpu.put(np.array([3, 5, 8], "f4")), q=cpu.put(np.array([4, 12, 15], "f4")), out=answer)
answer.numpy()

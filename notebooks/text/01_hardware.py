# %% [markdown]
# # 1 · Hardware
#
# **In this notebook you write a program in your machine's own instructions, and the program trains a model.**
#
# This course builds `levels`, a small framework for deep learning, in five notebooks. Each notebook adds one level, as
# one builds a house. This one is the ground: memory, instructions and time. You need Python, a little NumPy, and two
# sittings, each of less than an hour and a half. Five functions are yours to write. If you leave a function empty,
# the course fills it in with its own version.
#
# **Shift+Enter** runs a cell and goes on to the next one. If you see only the first line of a cell, run it like any
# other.

# %%
from course import build, figures, tasks  # the course's helpers, not `levels`

build.watch("01_hardware")  # so the last cell can tell which cells are not saved
figures.you_are_here(1)

# %% [markdown]
# ## A surprise to begin with (6 min)
#
# Here are 2²⁵ ones, as float32: NumPy's numbers of 32 bits. We add them up twice: with `sum`, and with `cumsum`, whose
# last entry is the sum of everything. Run the next cell, choose an answer and commit to it. Then run the next two: the
# first shows the result, the second explains it.

# %% tags=["hide-input"]
# a question: run me
from course.reader import checks

checks.predict(
    "01-ones",
    "`x` holds 33,554,432 float32 ones. What do `x.sum()` and `x.cumsum()[-1]` give?",
    choices=[
        "both 33554432",
        "33554432 and 16777216",
        "16777216 and 33554432",
        "neither is exact",
    ],
)

# %%
import numpy as np

x = np.ones(2**25, "f")
print(f"sum    {x.sum():.0f}")
print(f"cumsum {x.cumsum()[-1]:.0f}")

# %%
checks.answer_to("01-ones")

# %% [markdown]
# `cumsum` lost half of the ones. A float32 keeps 24 binary digits ([IEEE 754,
# 2019](https://doi.org/10.1109/IEEESTD.2019.8766229)). 16,777,217 is 2²⁴ + 1 and needs 25. It lies halfway between two
# float32 numbers, 16,777,216 and 16,777,218. Of the two, a tie goes to the one whose 24th digit is 0, and that is
# 16,777,216. So `cumsum` stays there. `sum` adds up blocks first ([NumPy's notes on
# `sum`](https://numpy.org/doc/stable/reference/generated/numpy.sum.html)). (`torch.cumsum` on a CPU adds in float64,
# and gives 33554432.) **The order of a sum is part of the answer.** A loop decides that order, and on this level you
# write the loops.

# %% [markdown]
# ## The line, in plain Python (13 min)
#
# Here are four hundred points. Each has two inputs, `x1` and `x2`, and one answer `y`. The answers were made as
# `2·x1 - 3·x2 + 3`, plus noise of standard deviation 2. We look for the 2, the -3 and the 3. This task is called *the
# line*. A hundred more points, the **test rows**, are not used for training.

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
# w1 = w1 - rate · slope        w2 and b change in the same way
# ```
#
# The **slope** for w1 says how fast the loss grows when w1 grows. So w1 moves against it. (All slopes together are the
# **gradient**.) The **learning rate** says how far it moves. We begin with the sum of products in `z`.
#
# Cells that begin with `#| export NAME` are the framework. The last cell of this notebook saves them in
# `levels/hardware/NAME.py`, for the higher levels. (The word `most` marks functions that you write only in the longer
# version, which `python3 -m course lab --write most` opens.)

# %%
#| export formulas most dot
"""The formulas of the course. They work on Python floats and in programs."""


def dot(p, q):
    """Return 0.0 + p[0]·q[0] + p[1]·q[1] + …, in that order."""
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
# The loss is a mean over n rows, so each row adds e·e/n to it. If e grows by a tiny t, the loss grows by about t times
# 2·e/n. This factor is the slope of the loss with respect to e. We call it `de`. If w1 grows by a tiny t, e grows by x1
# · t. When one change causes the next, their slopes are multiplied. This is the **chain rule**:
#
# ```
# w1 ─── e grows x1 times as much ───► e ─── the loss grows de times as much ───► loss
#                      slope of the loss with respect to w1:  x1 · de
# ```
#
# So one row adds x1·de to the slope for w1, x2·de to that for w2, and de to that for b, because e grows as b does.
#
# Your function gets g = 1/n. Write `de` as `g * error + g * error`, the form in which level 3 will derive it. (A
# division by n may round differently. `2 * g * error` gives the same bits.)


# %%
#| export formulas blank line_slopes
def line_slopes(error, row, g):
    """Return what one row adds to the slopes: a list for the weights, and de for b."""
    ...  # return a pair: the list, with one number per value of the row, and de


# %% [markdown]
# <details><summary>Hint</summary>First <code>de</code>, from g and the error. The slope for a weight is its input times <code>de</code>.</details>
# <details><summary>Second hint</summary><code>de = g * error + g * error</code>, and then a list of <code>value * de</code>.</details>
# <details><summary>Solution</summary>
#
# ```python
# def line_slopes(error, row, g):
#     """Return what one row adds to the slopes: a list for the weights, and de for b."""
#     de = g * error + g * error
#     return [value * de for value in row], de
# ```
# </details>
#
# By hand: for an error of 2 among ten rows, `de` is 0.4. With inputs 1 and 5, the slopes are 0.4 and 2.

# %%
print(line_slopes(2.0, [1.0, 5.0], 0.1))

# %% [markdown]
# Is it right? Nudge a weight up and down, and see how much the loss changes:

# %%
slope = 0.0
for i, error in zip(ten, errors_of([0.5, 0.5], 0.0)):
    (dw1, dw2), db = line_slopes(error, task.x[i].tolist(), 1 / 10)
    slope = slope + dw1
up, down = loss_of([0.5 + 1e-6, 0.5], 0.0), loss_of([0.5 - 1e-6, 0.5], 0.0)
print(f"gradient {slope:.4f}   nudged {(up - down) / 2e-6:.4f}")

# %% [markdown]
# The formula and the nudge agree. The complete training in plain Python is in `course/reader/reference.py`. It is the course's
# **record**: every level is compared with its numbers. It starts with the weights 0.309 and -0.054 and the bias 0, and
# takes 8,000 steps. That is 200 passes through the data, called **epochs**.

# %%
from course import reference


def arguments_of(task):
    return task.x, task.y, task.weights, task.batches, task.learning_rate


record, record_weights = reference.linear_regression(*arguments_of(task))
print(f"first loss {record[0]:.6g}, last loss {record[-1]:.6g}")
w, b = map(np.array, record_weights)
print(f"w {w[0, 0]:.4f}, {w[1, 0]:.4f}   b {b[0, 0]:.4f}")

# %% [markdown]
# The weights and the bias are nearly 2, -3 and 3. The loss cannot fall to 0: the noise alone gives a loss of about 2·2
# = 4. In the last batch it happens to be 9.
#
# In the next figure, on the left, grey is the loss of each batch, and blue the mean of fifty batches, on a
# logarithmic scale. On the right is the prediction for each test row. **R²** is the share of the variation of y that
# the line explains.

# %%
from types import SimpleNamespace

trained = SimpleNamespace(losses=record, predict=lambda rows: rows @ w + b)
figures.regression(task, trained)

# %% [markdown]
# **A good place to stop.** You know what a step is, and which losses every level must give.

# %% [markdown]
# ## One instruction (26 min)
#
# Next you train the line with the machine's own instructions. A processor knows no lists. A **register** holds one
# number inside the processor. An **address** is a place in memory. A program **loads** a number from memory into a
# register, does **arithmetic** on registers, and **stores** a register back to memory.
#
# Here is a program in the language of [LLVM](https://llvm.org/docs/LangRef.html), a compiler that many programming
# languages use. It loads the number at the address `%x`, and stores its square at `%y`. Names of registers begin with
# `%`, and the program's name with `@`. A `double` is a float64, a number of 64 bits. A `ptr` is an address. The program
# returns nothing (`void`), and `ret` ends it:

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
# `machine_code(text)` lets LLVM turn such a text into bytes for your processor. It returns two things: an engine, which
# keeps the bytes in memory, and the address of the first byte. (The notebooks use `levels/support` like a library, and
# do not explain its code.) NumPy knows the address of an array's numbers, and `ctypes` calls the code at an address:

# %%
import ctypes

from levels.support.machine import machine_code


def run_text(text, *arrays):
    engine, address = machine_code(text)  # the engine keeps the bytes
    # a function that returns nothing, and takes addresses
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(arrays))(address)
    call(*[array.ctypes.data for array in arrays])


x, y = np.array([3.0]), np.array([0.0])
run_text(TEXT, x, y)
y

# %% [markdown]
# Nine, computed by your own program. Nobody wants to write such text by hand. So we write an **assembler**: Python
# objects that write the lines of a program. The first of its three parts is the `Writer`.
#
# - `lines` are the instructions so far. `write` appends one. In LLVM's text, a register may be set by one line only. So
#   each instruction gets a new one: `%v0`, `%v1`, …
# - From now on, a call hands over only the address of one block of memory, `%words`. The block consists of **words** of
#   64 bits: addresses, sizes and numbers. `word` writes two lines: `getelementptr` computes the address of a word, and
#   `load` loads it. Both go into `entry`, the lines that run once, before the others. (`i64` is a 64-bit whole number.)
# - A **slot** is memory for something that changes, such as a counter. `alloca` reserves it. (Only in LLVM's text is
#   a register set once. The processor's registers can be set again and again, so LLVM's optimizer keeps a slot in one
#   where it can.)
#
# The helper module `levels.support.writing` refuses mistakes. (The next cell begins a second file, `values.py`.)

# %%
#| export values
"""A value stands for a number in a register. Its operators write instructions."""

REAL = {np.dtype("f4"): "float", np.dtype("f8"): "double"}  # LLVM's names


# %% [markdown]
# A size is either a number such as 5, or a name such as `"rows"`. If it is a name, each call hands over its value, as
# a word.


# %%
#| export writer
"""A writer holds the lines of a program, in LLVM's language, and writes its loops."""

from levels.support import writing


class Writer:
    """The lines of a program, and the words of a call: sizes, numbers, addresses."""

    def __init__(self, name, dtype):
        self.name = name
        self.dtype = writing.check_dtype(name, dtype, REAL)
        self.real = REAL[self.dtype]
        self.kind = self.real  # LLVM's type of a value; `levels_more` has vectors, too
        self.lines = []
        self.entry = []  # lines that run once, before the others
        self.words = {}  # name -> type
        self.arrays = {}  # name -> Array
        self.bounds = []  # (array, axis, extent): there, indices go up to extent - 1
        self.scopes = [(self, None)]  # the program itself, then its open loops

    def write(self, instruction):
        """Append an instruction, and return the name of the register that it sets."""
        register = f"%v{len(self.lines)}"
        self.lines.append(f"{register} = {instruction}")
        return register

    def slot(self, kind):
        """Reserve memory for something that changes, and return its address."""
        address = f"%slot{len(self.entry)}"
        self.entry.append(f"{address} = alloca {kind}")
        return address

    def word(self, name, kind):
        """Return the register of a word: an address (ptr), a size (i64) or a number."""
        if writing.is_new_word(self, name, kind):
            at = f"getelementptr i64, ptr %words, i64 {len(self.words)}"
            self.entry.append(f"%at.{name} = {at}")
            self.entry.append(f"%word.{name} = load {kind}, ptr %at.{name}")
            self.words[name] = kind
        return f"%word.{name}"

    def size(self, extent):
        """Return the operand for a size, which is a positive whole number or a name."""
        return str(extent) if writing.is_number(extent) else self.word(extent, "i64")


# %% [markdown]
# (Ignore `arrays`, `bounds` and `scopes` for now.) `run` puts a frame around the lines, and runs them. The words of the
# call are the addresses of the arrays:


# %%
def run(a, *arrays):
    words = np.array([array.ctypes.data for array in arrays])
    frame = ["define void @program(ptr %words) {", "entry:", *a.entry]
    run_text("\n".join([*frame, *a.lines, "ret void", "}"]), words)


a = Writer("first", "f8")
x = a.word("x", "ptr")
y = a.word("y", "ptr")
v = a.write(f"load double, ptr {x}")
square = a.write(f"fmul double {v}, {v}")
a.lines.append(f"store double {square}, ptr {y}")
print("\n".join(a.entry + a.lines))

numbers, answer = np.array([3.0]), np.array([0.0])
run(a, numbers, answer)
print(answer)

# %% [markdown]
# We want to write `v * v + v` instead of text. This is the central idea of this level: a `Register` is a Python object
# that stands for what a register of the processor *will hold* when the program runs. `a` is its writer, and `scope` is
# the loop in which it is set. (The base class `Unknown` raises an error for an `if`, because the register's number is
# not known yet.)


# %%
#| export values
from levels.support.writing import Unknown, alike, live, open_scope, operand


class Register(Unknown):
    """What a register will hold. It can be used only in the loop that sets it."""

    holds = "a register"

    def __init__(self, a, register):
        self.a = a
        self.register = register
        self.scope = open_scope(a)

    def __repr__(self):
        return f"{self.holds}, {self.register}"


# %% [markdown]
# `arithmetic` writes an instruction. `operand` turns a value or a Python number into text. A comparison is written in
# the same way; `fcmp olt` means x < y.


# %%
#| export values
def arithmetic(instruction, x, y):
    """Write fadd, fsub, fmul or fdiv. One of x and y may be a Python number."""
    a = _program_of(x, y)
    operands = f"{operand(a, x)}, {operand(a, y)}"
    return Value(a, a.write(f"{instruction} {a.kind} {operands}"))


def _comparison(how, x, y):
    """Write a comparison, named as in LLVM. A NaN makes it false, except for `une`."""
    a = _program_of(x, y)
    operands = f"{operand(a, x)}, {operand(a, y)}"
    return Condition(a, a.write(f"fcmp {how} {a.kind} {operands}"))


def _program_of(x, y):
    """Return the writer that x belongs to, or y's if x is a Python number."""
    return x.a if isinstance(x, Register) else y.a


# %% [markdown]
# ### Your turn: an instruction
#
# An error is z - y, so we need to subtract. LLVM's instruction is `fsub`. Write the function that subtracts.


# %%
#| export values blank subtract
def subtract(x, y):
    """Write the instruction that takes the number y from x, and give back its value."""
    ...  # one call of `arithmetic`, as `+` and `*` will make


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
# A `Value` is a number to compute with. Each line of its class joins an operator to its instruction. `_both_ways` makes
# two methods, for `v + 1.0` and for `1.0 + v`.


# %%
#| export values
def _both_ways(write, how):
    """Return two methods: for `value + other`, and for `other + value`."""

    def first(self, other):
        return write(how, self, other)

    def second(self, other):
        return write(how, other, self)

    return first, second


# %%
#| export values
class Value(Register):
    """A number to compute with."""

    holds = "a number"

    __add__, __radd__ = _both_ways(arithmetic, "fadd")
    __mul__, __rmul__ = _both_ways(arithmetic, "fmul")
    __truediv__, __rtruediv__ = _both_ways(arithmetic, "fdiv")
    __lt__, __gt__ = _both_ways(_comparison, "olt")
    __le__, __ge__ = _both_ways(_comparison, "ole")

    def __sub__(self, other):
        return subtract(self, other)

    def __rsub__(self, other):
        return subtract(other, self)

    def __eq__(self, other):
        return _comparison("oeq", self, other)

    def __ne__(self, other):
        return _comparison("une", self, other)

    def __neg__(self):
        return subtract(-0.0, self)  # 0.0 - self would be 0.0 for 0.0, not -0.0

    def __abs__(self):
        return (self <= 0.0).select(0.0 - self, self)  # -0.0 becomes 0.0


# %%
a = Writer("first", "f8")
v = Value(a, a.write(f"load double, ptr {a.word('x', 'ptr')}"))
v * v + v
5.0 - v
print("\n".join(a.lines))

# %% [markdown]
# The `*` multiplied nothing. It wrote the instruction that will multiply. Your `subtract` wrote the last line. There,
# 5.0 is written as its 64 bits, in base 16.
#
# How can a program choose? Our assembler writes no `if`: its programs run the same instructions for all numbers. But a
# comparison gives a `Condition`, and its `select` writes an instruction that takes one of two numbers. (`alike` gives
# LLVM's type for yes or no, `i1`. `live` refuses a register whose loop has ended.)


# %%
#| export values
class Condition(Register):
    """True or false."""

    holds = "a condition"

    def select(self, x, y):
        """Write the instruction that gives the number x if it is true, else y."""
        a = self.a
        condition = f"{alike(a, 'i1')} {live(a, self)}"
        numbers = f"{a.kind} {operand(a, x)}, {a.kind} {operand(a, y)}"
        return Value(a, a.write(f"select {condition}, {numbers}"))


# %%
a = Writer("positive", "f8")
v = Value(a, a.write(f"load double, ptr {a.word('x', 'ptr')}"))
(v > 0.0).select(v, 0.0)
print("\n".join(a.lines))

# %% [markdown]
# `v > 0.0` is written as 0.0 < v. `%v2` will be v if that is true, and else 0.0.
#
# **A good place to stop.** You can write instructions as Python's arithmetic, and run them.

# %% [markdown]
# ## A loop (16 min)
#
# In LLVM's language, a loop consists of blocks with jumps between them. A block begins with a name, and a jump goes to
# such a name:
#
# ```
# … ──► test ──(i < end)──► body ──► back to test, with i + 1
#         │
#         └────(else)───► after
# ```
#
# Here is the text of a loop, with gaps. `icmp slt` tests whether i < end, and `br` jumps. The counter changes, so it
# lies in a slot. A program may have many loops, so each has a number, `n`.

# %%
#| export writer
LOOP = """\
store i64 0, ptr {counter}
br label %test{n}
test{n}:
%i{n} = load i64, ptr {counter}
%more{n} = icmp slt i64 %i{n}, {end}
br i1 %more{n}, label %body{n}, label %after{n}
body{n}:
BODY
%next{n} = add i64 %i{n}, 1
store i64 %next{n}, ptr {counter}
br label %test{n}
after{n}:"""  # n: the number of the loop

# %% [markdown]
# The loop's counter is an `Index`. It knows its `extent`: the counter always stays below that number. An `Array` of a
# program knows its shape. (The fields of a `NamedTuple` never change.)


# %%
#| export values
class Index(Register):
    """A whole number from 0 to below `extent`, a number or the name of a size."""

    holds = "an index"

    def __init__(self, a, register, extent):
        super().__init__(a, register)
        self.extent = extent


# %%
#| export writer
from typing import NamedTuple


class Array(NamedTuple):
    """An array of a program. A size in its shape is a number, or a name."""

    name: str
    shape: tuple
    kind: str  # LLVM's type of each entry
    rows_of: object  # of an array of row numbers: the size they stay below; or None

    def __repr__(self):
        return f"{self.name}[{', '.join(map(str, self.shape))}]"


# %% [markdown]
# The second part of the assembler, `Loops`, writes loops. The body of a loop stands in a `with` block. Python's
# `contextmanager` runs our function up to its `yield`, then the `with` block, and then the rest of the function.


# %%
#| export writer
from contextlib import contextmanager


class Loops(Writer):
    """A writer of loops, over arrays and numbers that each call hands over."""

    def array(self, name, *shape, rows_of=None):
        """Declare an array. With rows_of="rows", it holds row numbers below "rows"."""
        writing.check_array(self, name, shape)
        sizes = shape if rows_of is None else (*shape, rows_of)
        for size in sizes:
            self.size(size)
        self.word(name, "ptr")
        self.arrays[name] = Array(name, shape, "i64" if rows_of else self.real, rows_of)
        return self.arrays[name]

    def number(self, name):
        """Declare a number, such as a learning rate."""
        return Value(self, self.word(name, self.real))

    def count(self, size):
        """Return a size as a number to compute with."""
        return Value(self, self.write(f"sitofp i64 {self.size(size)} to {self.real}"))

    @contextmanager
    def loop(self, extent):
        """Write a loop over [0, extent). Its body is the `with` block."""
        n = len(self.lines)  # the number of the loop
        scope = (self, n)
        counter = self.slot("i64")
        text = LOOP.format(n=n, counter=counter, end=self.size(extent))
        before, after = text.split("\nBODY\n")
        writing.open_scope(self)
        self.lines.append(before)
        self.scopes.append(scope)
        yield Index(self, f"%i{n}", extent)
        writing.close_loop(self, scope)
        self.lines.append(after)


# %% [markdown]
# Now v·v + v for five numbers. `unchecked` writes the address of the i-th one. (It does not check i. The next section
# does.)


# %%
def unchecked(a, array, i):
    at = f"ptr %word.{array.name}, i64 {i.register}"
    return a.write(f"getelementptr {array.kind}, {at}")


a = Loops("squares", "f8")
x = a.array("x", 5)
y = a.array("y", 5)
with a.loop(5) as i:
    v = Value(a, a.write(f"load double, ptr {unchecked(a, x, i)}"))
    result = (v * v + v).register
    a.lines.append(f"store double {result}, ptr {unchecked(a, y, i)}")
print("\n".join(a.lines))

numbers, answer = np.array([3.0, 4.0, 5.0, 6.0, 7.0]), np.zeros(5)
run(a, numbers, answer)
print(answer)

# %% [markdown]
# The body was written once, and the machine ran it five times. (The slot is called `%slot4` because four lines of
# `entry` came before it.)
#
# ### Your turn: the place of x[i, k]
#
# Our data `x` has rows. Memory has no rows. It is one long sequence of places, and the first is place 0. Here are two
# rows of three numbers, with their places:
#
# ```
# x[0,0]  x[0,1]  x[0,2]  x[1,0]  x[1,1]  x[1,2]
#   0       1       2       3       4       5
# ```


# %%
#| export formulas blank flat
def flat(row, width, column):
    """The place of x[row, column] in memory, in rows of `width` numbers."""
    ...  # a product and a sum: they will run on registers, too


# %% [markdown]
# <details><summary>Hint</summary>How many numbers lie before the row begins?</details>
# <details><summary>Second hint</summary><code>row</code> whole rows of <code>width</code> numbers lie before it.</details>
# <details><summary>Solution</summary>
#
# ```python
# def flat(row, width, column):
#     """The place of x[row, column] in memory, in rows of `width` numbers."""
#     return row * width + column
# ```
# </details>
#
# Try the last of the six:

# %%
print(flat(1, 3, 2))  # x[1, 2]

# %% [markdown]
# A `Whole` is a whole number in a register, or a constant such as 3. Its `*` and `+` write `mul` and `add`. We call
# `flat` with such objects:


# %%
#| export values
class Whole(Register):
    """A whole number. Its * and + find a place in memory."""

    holds = "a whole number"

    def __mul__(self, other):
        return Whole(self.a, self.a.write(f"mul i64 {self.register}, {other.register}"))

    def __add__(self, other):
        return Whole(self.a, self.a.write(f"add i64 {self.register}, {other.register}"))


# %%
a = Writer("peek", "f8")
row = Whole(a, a.word("row", "i64"))
flat(row, Whole(a, "3"), Whole(a, "2"))
print("\n".join(a.lines))

# %% [markdown]
# Given numbers, `flat` computes. Given registers, it writes instructions.

# %% [markdown]
# ## Arrays that know their end (6 min)
#
# Two arrays of five numbers lie in one block of memory, `y` before `x`. By mistake a loop has 6 turns instead of 5, so
# it writes one number too many:

# %%
a = Loops("one_too_many", "f8")
x = a.array("x", 5)
y = a.array("y", 5)
with a.loop(6) as i:
    a.lines.append(f"store double 0.0, ptr {unchecked(a, y, i)}")

memory = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 3.0, 4.0, 5.0, 6.0, 7.0])
answer, numbers = memory[:5], memory[5:]
run(a, numbers, answer)
print("y", answer, " x", numbers)

# %% [markdown]
# `x` began with 3. That number is gone, and no error was raised. With 6,000,000 instead of 6, this notebook would have
# crashed. But when we write the program, we know the extent of the loop and the size of the array. So the assembler can
# refuse the mistake before anything runs.
#
# `indices_of` compares the extent of each index with the size of its axis. It notes both in `bounds`. If one is a name
# such as `"rows"`, each call compares them, too. (An index may also be a Python number, such as 0.)


# %%
#| export bounds
"""Each index of a program stays below the size of its array."""

from levels.support.calls import check_bound


def index_of(a, i):
    """Return a Python number as an Index. An Index is returned as it is."""
    if isinstance(i, Index):
        writing.live(a, i)
        return i
    i = writing.constant_index(a, i)
    return Index(a, str(i), i + 1)


def indices_of(a, array, indices):
    """Return the indices, each checked now, or at the call where a size has a name."""
    writing.check_indices(a, array, indices)
    indices = [index_of(a, i) for i in indices]
    for axis, index in enumerate(indices):
        check_bound(a.name, array, axis, index.extent, {})  # {}: no name is known yet
        a.bounds.append((array, axis, index.extent))
    return indices


# %% [markdown]
# `address_of` writes the address of `array[indices]`. Your `flat` finds the place, axis by axis:


# %%
#| export bounds
def address_of(a, array, indices):
    """Return the register with the address of array[indices]."""
    place, *columns = [Whole(a, i.register) for i in indices_of(a, array, indices)]
    for column, size in zip(columns, array.shape[1:]):
        place = flat(place, Whole(a, a.size(size)), column)
    at = f"ptr %word.{array.name}, i64 {place.register}"
    return a.write(f"getelementptr {array.kind}, {at}")


# %% [markdown]
# Here are the loop of 5 turns and the loop of 6:

# %%
a = Loops("five", "f8")
y = a.array("y", 5)
with a.loop(5) as i:
    print(address_of(a, y, [i]), "is the register of an address")
try:
    with a.loop(6) as i:
        address_of(a, y, [i])
except IndexError as error:
    print(error)

# %% [markdown]
# The mistake is refused, and no memory was touched.

# %% [markdown]
# ## Memory (14 min)
#
# Each device, a CPU or a GPU, has memory of its own. A piece of it is called a **buffer**. Its `Spec` holds the device,
# the shape, the dtype and the number of bytes.

# %%
#| export device
"""Devices and their memory: buffers, and copies to and from NumPy."""

import math


class Spec:
    """The device, shape and dtype of a buffer."""

    def __init__(self, device, shape, dtype):
        self.device = device
        self.shape = shape
        self.dtype = dtype
        self.nbytes = math.prod(shape) * dtype.itemsize
        self.spec = self  # so that code which reads `x.spec` also accepts a Spec

    def __repr__(self):
        return f"{self.dtype}{list(self.shape)} on {self.device.name}"


# %% [markdown]
# A `Buffer` is a Spec and the memory itself. The device counts the bytes in use.


# %%
#| export device
from levels.support.memory import freed, no_memory


class Buffer:
    """Memory of a device: new, or `data`, which belongs to the buffer `source`."""

    __slots__ = ("spec", "data", "source", "address")

    def __init__(self, spec, data=None, source=None):
        self.spec = spec
        self.source = source
        self.data = None  # still so if an error is raised below
        self.address = None  # a compiler may note here where the data begins
        if source is None:
            device = spec.device
            if device.memory is not None and device.used + spec.nbytes > device.memory:
                raise no_memory(spec)
            if data is None:
                data = device.empty(spec.shape, spec.dtype)
            device.used += spec.nbytes
        self.data = data

    device = property(lambda self: self.spec.device)
    shape = property(lambda self: self.spec.shape)
    dtype = property(lambda self: self.spec.dtype)

    def numpy(self):
        """Return a copy of the numbers as a NumPy array."""
        if self.data is None:
            raise freed(self)
        return self.spec.device.read(self.data)

    def release(self):
        """Give the memory back. The new Spec fits no code that knew the old one."""
        self.device.used -= self.spec.nbytes
        self.data = None
        self.address = None
        self.spec = Spec(self.device, self.shape, self.dtype)

    def __getstate__(self):
        state, slots = super().__getstate__()
        return state, slots | {"address": None}  # a pickled copy lies elsewhere

    def __del__(self):
        if self.source is None and self.data is not None:
            self.spec.device.used -= self.spec.nbytes

    def __repr__(self):
        return f"Buffer({self.spec}{', freed' if self.data is None else ''})"


# %% [markdown]
# A `Device` makes buffers and frees them. `put` copies an array into a new buffer. The rest is bookkeeping, which you
# may skim. (`peak` and what follows it come in *What this level cost*.)


# %%
#| export device
from levels.support.checks import numeric_array
from levels.support.measure import speed_of
from levels.support.memory import amounts, check_no_counts, check_owned, spec_key


class Device:
    """A device: its `memory` in bytes (None: unknown), those `used`, and its speed."""

    empty = staticmethod(np.empty)
    reshape = staticmethod(np.ndarray.reshape)
    read = staticmethod(np.ndarray.copy)
    write = staticmethod(np.copyto)

    def __init__(self, name, memory, simulated=False):
        self.name = name
        self.kind = name.split(":")[0]
        self.memory = memory
        self.simulated = simulated
        self.used = 0
        self.specs = {}  # (shape, dtype) -> Spec

    def spec(self, shape, dtype):
        """Return the Spec, one object for all live buffers of this shape and dtype."""
        key = spec_key(self.name, shape, dtype)
        return self.specs.get(key) or self.specs.setdefault(key, Spec(self, *key))

    def alloc(self, shape, dtype):
        """Return a new buffer, whose numbers are not set."""
        return Buffer(self.spec(shape, dtype))

    def put(self, array, kind=Buffer):
        """Copy a NumPy array into a new buffer, of the class `kind`, and return it."""
        array = numeric_array(array)
        key = array.shape, array.dtype
        buffer = kind(self.specs.get(key) or self.spec(*key))
        self.write(buffer.data, array)
        return buffer

    def free(self, buffer):
        """Free a buffer of this device: from then on, each use of it is refused."""
        check_owned(self, buffer, Buffer)
        buffer.release()

    peak = property(lambda self: speed_of(self, "peak"), doc="flops per s")
    bandwidth = property(lambda self: speed_of(self, "bandwidth"), doc="bytes per s")
    launch_time = property(lambda self: speed_of(self, "launch_time"), doc="seconds")

    def roofline(self, flops, nbytes):
        """Return the least possible seconds (Williams et al., 2009)."""
        flops, nbytes = amounts(self.name, flops, nbytes)
        return max(flops / self.peak, nbytes / self.bandwidth)

    def __repr__(self):
        return f"Device({self.name}{', simulated' if self.simulated else ''})"


# %% [markdown]
# `pool()` returns this computer's devices by name. `levels` has one device, the CPU. (The package `levels_more`, for
# the notebooks in `more/`, adds others.) The higher levels put their arrays on `PLACE.device`.

# %%
#| export device
from levels.support.machine import host_memory
from levels.support.place import Place

POOL = {"cpu:0": Device("cpu:0", host_memory())}  # this computer's own CPUs
PLACE = Place(POOL["cpu:0"])  # PLACE.device: where a thread puts its arrays


def pool(**counts):
    """Return the devices by name. (In `levels_more` it takes counts, as in gpus=2.)"""
    check_no_counts(counts)
    return POOL


# %%
cpu = pool()["cpu:0"]
here = cpu.put(np.arange(3.0))
print(here, here.numpy(), cpu.used, "bytes in use on", cpu.name)

# %% [markdown]
# **A good place to stop.** You can write loops that stay inside their arrays, and put numbers into a device's memory.
# This is the end of the first sitting.
#
# The next cell saves what is finished. For the rest it takes the course's cells. Then it trains both models in a fresh
# Python: the line, and a net that comes later.

# %%
build.so_far("01_hardware")

# %% [markdown]
# ## The assembler (15 min)
#
# A finished program is a `Program`. It puts the frame around the lines, as `run` did, and compiles them once. It is
# called with buffers and numbers by name. The machine code checks nothing. So `checked` first looks at dtypes and
# shapes, at each row number, and at the noted `bounds`.

# %%
#| export program
"""A finished program: its machine code, and what is checked at each call."""

from levels.support.calls import check_kept, checked
from levels.support.writing import close_program


class Program:
    """A compiled program. It is called with its buffers and numbers, all by name."""

    def __init__(self, a):
        close_program(a)
        self.name = a.name
        self.dtype = a.dtype
        self.arrays = a.arrays
        self.words = a.words
        self.bounds = list(dict.fromkeys(a.bounds))
        start = ["define void @program(ptr %words) {", "entry:", *a.entry]
        self.text = "\n".join([*start, *a.lines, "ret void", "}", ""])
        self.engine, address = machine_code(self.text)
        self.run = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)

    def bind(self, **given):
        """Check buffers and numbers once. Returns a function to call many times."""
        memory, words = checked(self, given, Buffer)
        held = [(name, given[name], given[name].data) for name in memory]
        block = (ctypes.c_int64 * len(words))(*map(words.get, self.words))

        def launch():
            check_kept(self, held)
            self.run(block)

        launch.keeps = memory  # so that the arrays live as long as `launch`
        return launch

    def __call__(self, **given):
        """Check the buffers and numbers, and run the program."""
        self.bind(**given)()


# %% [markdown]
# A register is set by one line only, so no line can say `total = total + term`. A running **sum** needs a slot. It
# starts at 0.0. `s += term` writes three instructions: load what is there, add the term, and store the result.
# `total()` loads what has been added up.


# %%
#| export assembler most Sum.__iadd__
"""An assembler writes a program. Each index stays below the size of its array."""


class Sum:
    """A running sum. It lies in a slot, because only one line can set a register."""

    def __init__(self, a):
        self.a = a
        self.register = a.slot(a.kind)
        self.scope = open_scope(a)
        a.lines.append(f"store {a.kind} zeroinitializer, ptr {self.register}")

    def __iadd__(self, term):
        """Write the instructions that add a term to the sum. Returns the sum itself."""
        new = self.total() + term
        self.a.lines.append(f"store {self.a.kind} {new.register}, ptr {self.register}")
        return self

    def total(self):
        """Return the sum so far."""
        address = live(self.a, self)
        return Value(self.a, self.a.write(f"load {self.a.kind}, ptr {address}"))


# %% [markdown]
# The third part is the `Assembler` itself. It adds loads, stores and sums. A load gives a `Value`. But an array that is
# declared with `rows_of="rows"` holds row numbers, all below `"rows"`. A load from it gives an `Index`. You cannot
# store into such an array: its row numbers are checked before the program runs, and must not change.


# %%
#| export assembler most Assembler.store
class Assembler(Loops):
    """Writes a program. Raises TypeError, ValueError or IndexError for a wrong one."""

    def load(self, array, *indices):
        """Load array[indices]: a Value, or an Index if the array holds row numbers."""
        address = address_of(self, array, indices)
        register = self.write(f"load {array.kind}, ptr {address}")
        if array.rows_of:
            return Index(self, register, array.rows_of)
        return Value(self, register)

    def store(self, value, array, *indices):
        """Store a value into array[indices]. An array of row numbers is read-only."""
        address = address_of(self, array, indices)
        writing.check_writable(self, array)
        register = operand(self, value)
        self.lines.append(f"store {self.real} {register}, ptr {address}")

    def sum(self):
        """Return a new running sum, which starts at 0.0."""
        return Sum(self)

    def assemble(self):
        """End the program, compile it to machine code, and return it."""
        return Program(self)


# %% [markdown]
# This is all that you need:
#
# | in Python | in the program |
# |---|---|
# | `a = Assembler("first", "f8")` | a new program, in float64 |
# | `x = a.array("x", "rows", 2)` | an array; the call will say how many `"rows"` there are |
# | `p = a.array("p", "batch", rows_of="rows")` | an array of row numbers, all below `"rows"` |
# | `a.number("rate")`, `a.count("batch")` | a number that the call hands over; a size as a number |
# | `with a.loop("rows") as i:` | the loop, over the rows |
# | `v = a.load(x, i, 0)`, `a.store(v, x, i, 0)` | a number from memory, and back |
# | `v * 2.0 + 1.0`, `v - w` | instructions; the minus calls your `subtract` |
# | `s = a.sum()`, `s += v`, `s.total()` | a running sum |
# | `a.assemble()` | the end: a `Program`, which is called with buffers by name |
#
# Here is v·v + v again, now for any number of rows:

# %%
a = Assembler("squares", "f8")
x = a.array("x", "rows")
y = a.array("y", "rows")
with a.loop("rows") as i:
    v = a.load(x, i)
    a.store(v * v + v, y, i)
squares = a.assemble()

here, out = cpu.put(np.arange(3.0, 8.0)), cpu.alloc((5,), "f8")
squares(x=here, y=out)
out.numpy()

# %% [markdown]
# What if an array is too short?

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "01-too-short",
    "`squares` loops over the rows of `x`. What if `x` has 5 numbers and `y` 4?",
    choices=[
        "4 numbers are stored, then an error is raised",
        "an error is raised, and nothing is stored",
        "5 numbers are stored, the last one past the end of `y`",
        "4 numbers are stored, and no error is raised",
    ],
)

# %%
short = cpu.put(np.zeros(4))
try:
    squares(x=here, y=short)
except ValueError as error:
    print(error)
print(short.numpy())

# %%
checks.answer_to("01-too-short")

# %% [markdown]
# **A good place to stop.** A program takes its arrays from memory, and each call is checked first.

# %% [markdown]
# ## The line as a program (14 min)
#
# We start with a small piece: the loss of ten rows. The program gets a batch as a list of row numbers. So a row is
# found in two steps: load its number, then load what is in that row.

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
print("\n".join(loss_of_a_batch.text.split("\n")[-17:-12]))

# %% [markdown]
# These lines are the end of the loop's body: your subtraction, a product, and for `+=` a load, an addition and a store.
# Now we call the program:

# %%
x, y, w, b = map(cpu.put, (task.x, task.y, *task.weights))
answer = cpu.alloc((1,), "f8")
loss_of_a_batch(x=x, y=y, w=w, b=b, picked=cpu.put(ten), out=answer)
print("equal to the record's first loss:", answer.numpy()[0] == record[0])

# %% [markdown]
# The Python function `dot` ran while the program was *written*. The machine sees no `dot`, only products and sums.
#
# So one function can do two jobs. Called with floats, it computes with the numbers of a row. Called with registers,
# it writes the instructions that will. `_dense` is such a function. It computes one prediction for each column of the
# weights. (`zip(*w)` gives the columns. The line's weights have one.)

# %%
#| export tasks
"""The two tasks in machine code. One call of a program runs any number of steps."""


def _dense(inputs, w, b):
    """Pass a row through a layer: dot(inputs, w[:, j]) + b[0][j] for each column j."""
    return [dot(inputs, column) + bias for column, bias in zip(zip(*w), b[0])]


# %% [markdown]
# `line_row` does what a step needs for one row. It adds the row's slopes to their sums, and returns its squared error.
# (The program will divide the sum of these by n. Again, g is 1/n.)
#
# **The marks `# model`, `# forward`, `# loss`, `# backward` and `# update` are in the code of every level**, so that
# the levels can be laid side by side.


# %%
#| export tasks
def line_row(row, target, weights, sums, g):
    """Add one row's slopes to `sums`. Return its squared error."""
    w, b = weights
    dw, db = sums
    (prediction,) = _dense(row, w, b)  # forward
    error = prediction - target  # loss
    loss = error * error
    slopes, de = line_slopes(error, row, g)  # backward
    for k, slope in enumerate(slopes):
        dw[k][0] += slope
    db[0][0] += de

    return loss


# %% [markdown]
# First on Python's numbers. The inputs are 1 and 5, the prediction is 3 and the answer 1, so the error is 2:

# %%
dw, db = [[0.0], [0.0]], [[0.0]]
squared = line_row([1.0, 5.0], 1.0, ([[3.0], [0.0]], [[0.0]]), (dw, db), 0.1)
print("squared error", squared, " slopes", dw, db)

# %% [markdown]
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
# Now the whole program. Its two loops go over the steps and over the rows of a batch:
#
# 1. The arrays and numbers that the call hands over come first.
# 2. Each step loads the weights, and begins one sum for the loss and one for each slope. `_each(array, make)` calls
#    `make` for each place of an array of weights, to load the weight or to begin a sum.
# 3. Each row of the batch adds to these sums. `one_row` does this; for the line, it is `line_row`.
# 4. Then your `descend` computes the new weights, and they are stored.


# %%
#| export tasks
def _each(array, make):
    """Return make(array, k, j) for each number of an array of weights, in rows."""
    rows, columns = array.shape
    return [[make(array, k, j) for j in range(columns)] for k in range(rows)]


# %%
#| export tasks
def write_steps(a, one_row, shapes):
    """Write a program that trains weights of these shapes, for any number of steps."""
    features = shapes[0][0]
    x = a.array("x", "rows", features)
    y = a.array("y", "rows", 1)
    arrays = [a.array(f"w{k}", *shape) for k, shape in enumerate(shapes)]  # model

    batches = a.array("batches", "steps", "batch", rows_of="rows")
    losses = a.array("losses", "steps")
    n = a.count("batch")
    g = 1.0 / n
    rate = a.number("rate")
    with a.loop("steps") as step:
        weights = [_each(array, a.load) for array in arrays]
        sums = [_each(array, lambda *place: a.sum()) for array in arrays]
        loss = a.sum()
        with a.loop("batch") as r:
            i = a.load(batches, step, r)
            row = [a.load(x, i, k) for k in range(features)]
            loss += one_row(row, a.load(y, i, 0), weights, sums, g)
        a.store(loss.total() / n, losses, step)
        for array, w, dw in zip(arrays, weights, sums):  # update
            for k, j in np.ndindex(*array.shape):
                a.store(descend(w[k][j], dw[k][j].total(), rate), array, k, j)


# %% [markdown]
# ## The two tasks on this level (30 min)
#
# ### Data
#
# The line's data are those from above:

# %%
print("x", task.x.shape, " y", task.y.shape, " batches", task.batches.shape)

# %% [markdown]
# ### Model and training
#
# Training gives back a `Fit`, on every level:

# %%
#| export tasks
from collections.abc import Callable


class Fit(NamedTuple):
    """The result of training."""

    losses: np.ndarray  # [steps], each taken before its update
    weights: list  # shaped like the argument
    predict: Callable  # x[m, features] -> [m, 1]


# %% [markdown]
# `train` writes the program, puts everything into memory, and calls the program once for all steps. `forward` computes
# the prediction of one row. For the line it is `_dense`. `predict` runs it on Python's numbers.


# %%
#| export tasks
from levels.support.inputs import check_inputs, check_task


def train(one_row, forward, x, y, weights, batches, rate):
    """Train with one call of the program of `one_row`. `forward` predicts a row."""
    cpu = pool()["cpu:0"]
    a = Assembler("train", x.dtype)
    write_steps(a, one_row, [w.shape for w in weights])
    held = {f"w{k}": cpu.put(array) for k, array in enumerate(weights)}
    losses = cpu.alloc((len(batches),), x.dtype)
    rows = cpu.put(np.asarray(batches, np.int64))
    program = a.assemble()
    program(x=cpu.put(x), y=cpu.put(y), batches=rows, losses=losses, rate=rate, **held)
    weights = [buffer.numpy() for buffer in held.values()]
    trained = [w.tolist() for w in weights]

    def predict(rows):
        check_inputs(rows, x.dtype, x.shape[1])
        outputs = [forward(row, *trained)[-1] for row in rows.tolist()]
        return np.array(outputs, x.dtype).reshape(-1, 1)

    return Fit(losses.numpy(), weights, predict)


# %% [markdown]
# Now the task takes two lines. `check_task` refuses wrong data before anything runs.


# %%
#| export tasks
def linear_regression(x, y, weights, batches, learning_rate=0.0005):
    """Train a line by SGD on the mean squared error; see `Fit` and `check_task`."""
    check_task(x, y, weights, batches, learning_rate, units=[1])
    return train(line_row, _dense, x, y, weights, batches, learning_rate)


# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "01-last-bits",
    "The first loss of your program was equal to the record, to the last bit. "
    "Which of these changes to the program can change the last bits of its losses?",
    choices=[
        "keep the weights in registers, and store them after the last step",
        "go through the rows of each batch in the reverse order",
        "store each error to memory, and load it again",
        "none of them",
    ],
)

# %%
fit = linear_regression(*arguments_of(task))
print("losses equal:", fit.losses.tolist() == record)
print("weights equal:", [v.tolist() for v in fit.weights] == record_weights)

backwards = task._replace(batches=task.batches[:, ::-1])
reverse = linear_regression(*arguments_of(backwards))
print(f"rows reversed: {np.sum(reverse.losses != fit.losses):,} of 8,000 losses differ")
print(f"the last loss: {fit.losses[-1]:.4g} ({fit.losses[-1].hex()})")

# %%
checks.answer_to("01-last-bits")

# %% [markdown]
# In the record's order, all 8,000 losses are equal to the record's.
#
# The last loss is printed twice: rounded, and in **hexadecimal**. `0x1.26b…p+3` means 1.26b… in base 16, times 2³
# ([`float.hex`](https://docs.python.org/3/library/stdtypes.html#float.hex)). There, nothing is rounded. You will meet
# this number on every level.
#
# **Why does the last bit matter?** A test with a tolerance lets small mistakes pass. A test for equal bits does not. So
# you can swap any part of any level, and one comparison tells whether the result is the same. Where bits differ, there
# is a cause: the operations have another order, a sum is split, or the processor used a *fused multiply-add*. That is
# one instruction for a product and a sum, and it rounds once instead of twice.
#
# ### Result
#
# The losses are equal, so the picture is that of *The line, in plain Python*. Here the same function trains on real
# data, 342 penguins near Palmer Station, Antarctica ([Gorman, Williams and Fraser,
# 2014](https://doi.org/10.1371/journal.pone.0090081)), 72 of them as test rows. How heavy is a penguin with this bill
# and these flippers? (The inputs are *standardised*: mean 0, standard deviation 1.)

# %%
penguins = tasks.penguins_mass()
penguin_fit = linear_regression(*arguments_of(penguins))
figures.regression(penguins, penguin_fit)

# %% [markdown]
# **A good place to stop.** Your own instructions have trained the line, and its losses are right to the last bit.

# %% [markdown]
# ### The second task: a net
#
# Here are two rings of points, one inside the other. No straight line separates them, but a small deep neural network
# (DNN) nearly does. It has three **dense layers**. Each layer consists of one or more lines, its **units**, which all
# get the same inputs:
#
# ```
# row ──► 4 units, relu ──► 8 units, relu ──► 1 unit, sigmoid ──► p
# ```
#
# A **relu** keeps a positive number and turns any other into 0. A weighted sum of lines is again a line, so without
# relus three layers could do no more than one. A relu bends each line at the place where it crosses 0. The border
# between the two classes then has corners, and can go round a ring.
#
# The **sigmoid** turns the last number into p, the probability of y = 1. The loss is the **binary cross-entropy**: each
# row counts `-log p` if y = 1 and `-log(1 - p)` if y = 0, and the loss is the mean over all rows.

# %%
rings = tasks.rings()
figures.classes(rings)

# %% [markdown]
# A relu chooses between two numbers. `select(condition, x, y)` does this, for Python's numbers and for registers. The
# course has its own `exp` and `log`, because those of different libraries differ in the last bit.

# %%
#| export tasks
from levels.support.elementary import exp, log, select

# %% [markdown]
# These functions, too, take numbers or registers:


# %%
#| export tasks
def _relu(z):
    """Return z, or 0.0 if z <= 0. A NaN stays a NaN, as its comparison is false."""
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
# #### Your turn: back through relu
#
# The slopes are computed from the last layer to the first. Unit j of the next layer computes a z. Let `d[j]` be the
# slope of the loss at this z. Output k of this layer, `h[k]`, goes into each unit of the next one, and unit j
# multiplies it by `w[k][j]`:
#
# ```
#            ┌─ w[k][0] ─► unit 0, slope d[0]
#   h[k]  ───┼─ w[k][1] ─► unit 1, slope d[1]
#            └─ w[k][2] ─► unit 2, slope d[2]
#
#   slope at h[k]:  d[0]·w[k][0] + d[1]·w[k][1] + d[2]·w[k][2]
# ```
#
# Your function returns the slopes at relu's *input*. Each is the same as at its output, but 0 where relu gave 0: there,
# a tiny change of the input changes nothing. Use `select`, because the function also writes instructions. Use `dot`,
# which adds in the right order: j = 0 first.


# %%
#| export tasks blank through_relu
def through_relu(d, h, w):
    """Return, for each k, 0.0 where h[k] is 0, else the sum of d[j]·w[k][j] over j."""
    ...  # a list with one number for each k, from d[j], h[k] and w[k][j]


# %% [markdown]
# <details><summary>Hint</summary>For each k one number: the sum over j of d[j] · w[k][j], or 0.0.</details>
# <details><summary>Second hint</summary><code>dot(d, row)</code> is such a sum, for a row of w.
# <code>select(h[k] &lt;= 0.0, 0.0, …)</code> chooses; our assembler writes no <code>if</code>.</details>
# <details><summary>Solution</summary>
#
# ```python
# def through_relu(d, h, w):
#     """Return, for each k, 0.0 where h[k] is 0, else the sum of d[j]·w[k][j] over j."""
#     return [select(output <= 0.0, 0.0, dot(d, row)) for output, row in zip(h, w)]
# ```
# </details>
#
# By hand, for d = [10] and w = [[3], [5]], the first slope is 10 · 3. The second is 0, because there the relu gave 0.

# %%
print(through_relu([10.0], [1.0, 0.0], [[3.0], [5.0]]))

# %% [markdown]
# The way back begins at the loss. The loss uses `c`, which is p **clipped**: kept away from 0 and 1, where a logarithm
# would be infinite. Read this table from top to bottom. The first row gives the slope at c, and each row after it
# multiplies by the slope in its second column. (The slope of log c is 1/c, and that of log(1-c) is -1/(1-c). In this
# table and in `_slope_at_z`, `g` is -1/n, because the loss is minus a mean.)
#
# | forward | its slope | code |
# |---|---|---|
# | `loss = g·(y·log c + (1-y)·log(1-c))` | `g·y/c - g·(1-y)/(1-c)` | `dc = …` |
# | `c = clipped(p)` | 1, or 0 where it is cut | `dp = select(…, dc, …)` |
# | `p = 1/(1 + exp(-z))` | `p·(1-p)` | `dp * p * (1 - p)` |


# %%
#| export tasks most _slope_at_z
def _clipped(p):
    """Clip a probability to [1e-7, 1 - 1e-7], where logarithms are finite."""
    return select(p < 1e-7, 1e-7, select(p > 1.0 - 1e-7, 1.0 - 1e-7, p))


def _slope_at_z(target, p, c, g):
    """Return the slope of a row's loss at z, before the sigmoid. Here g is -1/n."""
    dc = g * target / c - g * (1.0 - target) / (1.0 - c)
    dp = select(p > 1e-7, select(p < 1.0 - 1e-7, dc, 0.0), 0.0)
    return dp * p * (1.0 - p)


# %%
dz = _slope_at_z(answer, p, _clipped(p), -1.0)
print(f"slope at z {dz:.4f}   probability minus answer {p - answer:.4f}")

# %% [markdown]
# For one row, the product of the three slopes is `p - y`, as in textbooks. We keep the three factors, as the record
# does, because `p - y` rounds differently.
#
# From z on, your `through_relu` gives the slopes of the layers before. The slope for a weight is its input times the
# slope at its unit:


# %%
#| export tasks
def _add_slopes(dw, db, inputs, d):
    """Add one row's slopes to the sums of a layer: its inputs, and the slopes d."""
    for j, dj in enumerate(d):
        db[0][j] += dj
        for k, value in enumerate(inputs):
            dw[k][j] += value * dj


# %% [markdown]
# `net_row` puts these pieces together, as `line_row` did for the line:


# %%
#| export tasks
def net_row(row, target, weights, sums, g):
    """Add one row's slopes to `sums`. Return its cross-entropy."""
    w1, b1, w2, b2, w3, b3 = weights
    dw1, db1, dw2, db2, dw3, db3 = sums
    h1, h2, prediction = _forward(row, *weights)  # forward
    c = _clipped(prediction)  # loss
    loss = (target - 1.0) * log(1.0 - c) - target * log(c)
    dz = [_slope_at_z(target, prediction, c, 0.0 - g)]  # backward
    dh2 = through_relu(dz, h2, w3)
    dh1 = through_relu(dh2, h1, w2)
    _add_slopes(dw1, db1, row, dh1)
    _add_slopes(dw2, db2, h1, dh2)
    _add_slopes(dw3, db3, h2, dz)

    return loss


# %%
sums = [np.zeros(v.shape).tolist() for v in rings.weights]
loss = net_row(point, answer, floats, sums, 1.0)
print(f"loss {loss:.4f}   slope for the last bias {sums[5][0][0]:.4f}")

# %% [markdown]
# The slope for the last bias is the slope at z from above. `train` can now write the net's program from `net_row`:


# %%
#| export tasks
def dnn_classifier(x, y, weights, batches, learning_rate=0.01):
    """Train the net 4-8-1 by SGD on binary cross-entropy; see `Fit`, `check_task`."""
    check_task(x, y, weights, batches, learning_rate, units=[4, 8, 1])
    return train(net_row, _forward, x, y, weights, batches, learning_rate)


# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "01-net-time",
    "24,000 steps of 100 rows train the net: 2.4 million rows. How long does it take?",
    choices=[
        "about a second, or less",
        "about ten seconds",
        "about a minute",
        "an hour",
    ],
)

# %% tags=["nbval-ignore-output"]
import time

start = time.perf_counter()
ring_fit = dnn_classifier(*arguments_of(rings))
print(f"{time.perf_counter() - start:.2f} s")

# %%
checks.answer_to("01-net-time")

# %% [markdown]
# Plain Python would take far longer, so we compare 100 steps:

# %%
short = rings._replace(batches=rings.batches[:100])
first_losses, _ = reference.dnn_classifier(*arguments_of(short), exp, log)
print("equal to the record, 100 steps:", ring_fit.losses[:100].tolist() == first_losses)
print(f"last loss {ring_fit.losses[-1]:.4g} ({ring_fit.losses[-1].hex()})")

# %%
figures.classifier(rings, ring_fit)

# %% [markdown]
# The rings overlap, so no border can be right for every point. (In notebook 02, the same net tells female from male
# penguins.)

# %% [markdown]
# ## What this level cost (9 min)
#
# How fast is a machine? An arithmetic operation on floats is a **flop**. The **peak** of a core is the number of flops
# that it does per second. Its **bandwidth** is the number of bytes that it reads from memory per second. And each call
# of a program, a **launch**, takes some time before any work is done.
#
# There are two peaks. On most processors, one instruction can work on 4, 8 or 16 float32 numbers at once. The places of
# these numbers are called **lanes**. `cpu.peak` uses all lanes, and fused multiply-adds. Our programs compute with one
# float64 at a time, and round after each operation. Their peak is `lane_peak`.

# %% tags=["nbval-ignore-output"]
from levels.support.measure import lane_peak

print(f"peak in all lanes {cpu.peak / 1e9:.0f} billion flops per second")
print(f"peak in one lane {lane_peak() / 1e9:.1f} billion flops per second")
print(f"bandwidth {cpu.bandwidth / 1e9:.1f} GB per second")
print(f"launch {cpu.launch_time * 1e9:.0f} ns")

# %% [markdown]
# A program cannot end before its operations are done, nor before its bytes are moved. This lower limit is called the
# **roofline** ([Williams, Waterman and Patterson, 2009](https://doi.org/10.1145/1498765.1498785)). The launches come on
# top:
#
# ```
# seconds = launches · launch_time + max(flops / peak, bytes / bandwidth)
# ```
#
# In both tasks a row has two inputs, an answer and a row number: 32 bytes in float64. `compare.operations` counts the
# operations per row in the program's text. One launch does all steps. (The output also counts the lines of code under
# the marks, such as `# loss`.)

# %% tags=["nbval-ignore-output"]
from course import compare


def least_seconds(program, task):
    steps, batch = task.batches.shape
    flops = batch * compare.operations(program)
    nbytes = batch * 32
    at_least = max(flops / lane_peak(), nbytes / cpu.bandwidth)
    return cpu.launch_time / steps + at_least


line = compare.program_of(line_row, task)
net = compare.program_of(net_row, rings)
compare.program_cost(linear_regression, line, task, fit, least_seconds(line, task))
compare.program_cost(dnn_classifier, net, rings, ring_fit, least_seconds(net, rings))

# %% [markdown]
# Both steps take longer than their operations would take at the peak of one lane. A core reaches its peak only if it
# can begin many operations before the first has ended. Here many operations need the result of the one before: each sum
# is a chain of additions. (The rows of the line lie in the cache, so for them the memory's bandwidth is no firm limit.)
#
# The higher levels will call many small programs in each step. **What would that cost?** Move the sliders with the
# mouse, or with Tab and the arrow keys. On the left, the dot is the step, and the grey line is the roofline.

# %% tags=["hide-input", "nbval-ignore-output"]
# the figure with two sliders: run me
from course.reader.figures import widgets

flops = compare.operations(net)  # per row; its bytes are 32


def draw(batch, launches):
    speeds = lane_peak(), cpu.bandwidth, cpu.launch_time
    return figures.step_cost(*speeds, flops, 32, batch, launches)


widgets.explore(
    draw,
    batch=[10**k * m for k in range(5) for m in (1, 2, 5)] + [100_000],
    launches=[0.001, 0.01, 0.1, 1, 2, 5, 10, 20, 50, 100],
    start={"batch": 100, "launches": 50},
    text="A training step of the DNN, predicted: launches, arithmetic and memory.",
)

# %% [markdown]
# With fifty launches and a batch of a hundred, most of the predicted time goes into calling. In a large batch, this
# cost matters less. One large program avoids it, and on level 3 a compiler will write one.

# %% [markdown]
# ## Side by side (5 min)
#
# Plain Python counts as level 0. Here are levels 0 and 1, mark by mark. Click on *Two rings* for the net, on **"5 more
# lines"** for what a line calls, and on the head of a level for its cost. For plain Python, each operation counts as a
# launch, which reads two numbers and writes one: 24 bytes. The column *1 float32* is level 1 with numbers of 32 bits.
# (Level 1's time for the line is longer than above: here it includes writing the program. For the net that is little.)

# %%
functions = reference.linear_regression, linear_regression
line = compare.measure(task, *functions, last=1000)
functions = reference.dnn_classifier, dnn_classifier
net = compare.measure(rings, *functions, last=20, repeats=1)
compare.side_by_side(line, net)

# %% [markdown]
# The formulas are the same. Plain Python runs each line of code for each row. Level 1 runs each of its lines once, to
# write the instructions down. Then the processor runs the instructions for each row.
#
# ## The same in TensorFlow and PyTorch (1 min)
#
# In both you choose a device and put numbers on it. In daily use you see no instructions.
#
# | | TensorFlow | PyTorch | here |
# |---|---|---|---|
# | the devices | `tf.config.list_physical_devices()` | `torch.cuda.device_count()` (how many GPUs) | `pool()` |
# | put numbers on one | `with tf.device("GPU:0"):` | `x.to("cuda:0")` | `device.put(x)` |
# | memory in use | `tf.config.experimental.get_memory_info("GPU:0")` | `torch.cuda.memory_allocated()` | `device.used` |
#
# ## What you do differently now (1 min)
#
# - Before you profile a program, estimate its cost from its bytes, its operations and its launches. Then compare the
#   measurement with the estimate.
# - When two runs differ in the last digits, ask first which sum has another order, and where a fused multiply-add was
#   used. Only then suspect a bug.
# - When a loop is slow, read the instructions that the compiler wrote for it, as the notebook
#   [assembler](more/01_assembler.ipynb) does.

# %% [markdown]
# ## Exercises (optional)
#
# Each exercise begins with a stub. Replace its `...`, run the cell, and read what the check says. To see what you have
# solved, use `python3 -m course progress`.
#
# You may start here at any time, without running the notebook above: `begin` takes what is missing from the built
# level. (Exercises 01-1 and 01-3 are in `more/`.)
#
# ### 01-2 · A program of two loops
#
# Subtract its mean from each column: `y[r, k] = x[r, k] - mean of column k`. You are given an assembler and two of its
# arrays, `[rows, columns]`. Write the program. A mean is a sum over the rows, divided by their number, as in the
# record. (About 8 lines. Hint: `a.sum()`, `.total()` and `a.count("batch")` are used in `write_steps`; `x.shape[1]` is
# the number of columns.)

# %%
from course.reader import exercises

exercises.begin("01-2")


def centre(a, x, y):
    """Write a program: y[rows, columns] is x minus the means of its columns."""
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
from course.reader import exercises

exercises.begin("01-4")


def slopes(loss, w):
    """The slope of loss(w), a float, for each number of w. w stays as it is."""
    return ...


exercises.check("01-4", slopes)

# %% [markdown]
# ### 01-5 · Break it: a rate too high
#
# Here is the line with four learning rates. The last two show a symptom that everybody meets one day:

# %%
from course import tasks
from course.reader import exercises

exercises.begin("01-5")

task = tasks.linear()
for rate in (0.0005, 0.02, 0.03, 0.1):
    few = task.batches[:300]
    losses = linear_regression(task.x, task.y, task.weights, few, rate).losses
    shown = (f"{losses[step]:>10.3g}" for step in (0, 1, 10, 100, 299))
    print(f"rate {rate:<7}", *shown)

# %% [markdown]
# No instruction is wrong, so nothing complains: an infinity is a valid float, and so is a NaN. Find the cause in the
# simplest case. Let a line have one weight, `prediction = x·w`, and let every answer y be 0. Its gradient is the mean
# of 2·x·(x·w), so a step takes w to `w - rate · 2 · mean(x·x) · w`. By which factor is w multiplied? At which rate does
# that factor reach -1, so that w jumps to and fro for ever? The check trains with a slightly lower rate than yours, and
# with a slightly higher one. (About 2 lines.)

# %%
from course.reader import exercises

exercises.begin("01-5")


def highest_rate(x):
    """The rate from which on a line with one weight diverges, for the inputs x[n]."""
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
# Next comes [2 · Kernels](02_kernels.ipynb). There a step becomes a sequence of small compiled programs, each with a
# name.
#
# At the end of notebook 05, [a figure](05_high_level.ipynb#From-fit-to-the-multiply) follows one step from `fit` down
# to the instructions of this level.
#
# Five notebooks continue this one: [measuring](more/01_measuring.ipynb) (floats to the bit, how far away memory is, and
# how fast a core can compute), the [assembler](more/01_assembler.ipynb) (this processor's own instructions, and the
# text behind each line), [exp and log](more/01_exp_and_log.ipynb) (these two functions, line by line), the
# [GPU](more/01_gpu.ipynb) and the [TPU](more/01_tpu.ipynb) (two machines that work in another way).
#
# ## Build
#
# The last cell writes `levels/hardware/` from the cells marked `#| export`, and imports it in a fresh Python. There it
# trains for 1,000 steps and compares the losses.

# %%
build.level("01_hardware", linear_regression, dnn_classifier)

# %% [markdown]
# Level 1 is built. Next: [2 · Kernels](02_kernels.ipynb).

"""A writer holds the lines of a program, in LLVM's language, and writes its loops."""

# Built from 01_hardware.ipynb: edit there, then run its last cell.

from contextlib import contextmanager
from typing import NamedTuple

from levels.support import writing

from .values import REAL, Index, Value


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


class Array(NamedTuple):
    """An array of a program. A size in its shape is a number, or a name."""

    name: str
    shape: tuple
    kind: str  # LLVM's type of each entry
    rows_of: object  # of an array of row numbers: the size they stay below; or None

    def __repr__(self):
        return f"{self.name}[{', '.join(map(str, self.shape))}]"


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

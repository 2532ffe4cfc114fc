"""An assembler writes a program. Each index stays below the size of its array."""

# Built from 01_hardware.ipynb: edit there, then run its last cell.

from levels.support import writing
from levels.support.writing import live, open_scope, operand

from .bounds import address_of
from .program import Program
from .values import Index, Value
from .writer import Loops


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

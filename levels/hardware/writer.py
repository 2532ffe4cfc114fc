"""A writer collects the lines of a program, in LLVM's language."""

# Built from 01_hardware.ipynb: edit there, then run its last cell.

import numpy as np

from levels.support.machine import host_lanes

from .values import REAL


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

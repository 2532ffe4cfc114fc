"""A list of programs that one call runs, with no Python in between."""

import ctypes
from typing import Any, NamedTuple

import numpy as np

from levels.hardware import Assembler
from levels_more.compiler.fused.loops import address
from levels_more.compiler.fused.threads import let_others_run, run_together, team_program
from levels_more.hardware.locks import once


@once
def list_program():
    """Run the programs of a table (the address of each, and of its block) one by one, and repeat this `steps` times."""
    a = Assembler("list", np.float64)
    table = a.array("table", "programs", 2, rows_of=2**31 - 1)
    a.array("now", "steps", rows_of=2**31 - 1)  # only its first element is used; every size must be in a shape
    with a.loop("steps") as step:
        a.lines.append(f"store i64 {step.register}, ptr {a.word('now', 'ptr')}")
        with a.loop("programs") as n:
            program, block = (a.write(f"inttoptr i64 {a.load(table, n, k).register} to ptr") for k in (0, 1))
            a.lines.append(f"call void {program}(ptr {block})")
    return a.assemble()


class Beyond(NamedTuple):
    """A place this many bytes after the address that each call passes under this name."""

    name: Any
    nbytes: int


class ProgramList:
    """Programs that one call runs in order, any number of times. `now` holds the number of the current repetition.

    `units` are lists of the parts of a program, which may run at the same time. A part is a program and the place of
    each of its arrays: a fixed address, the name of an address that each `run` passes, or a Beyond. Named sizes are
    passed too: `names` are the names of all that `run` passes, in order, and the first of them is "steps".
    """

    def __init__(self, units, names, now, threads):
        self.calls = [call for parts in units for call in parts]
        self.threads = threads
        self.now = now
        self.table = np.empty((len(self.calls), 2), np.int64)
        known = {"programs": len(self.calls)}
        self.program, arrays = list_program(), [address(self.table), address(now)]
        if threads > 1:
            self.before = np.repeat(np.cumsum([0, *map(len, units[:-1])]), [*map(len, units)])
            self.program, arrays = team_program(), [address(self.table), address(self.before), address(now)]
            known |= {"parts": len(self.calls), "others": let_others_run()}
            names = [*names, "free", "done"]
        words = []
        starts = []
        for program, places in [*self.calls, (self.program, arrays)]:
            starts.append(len(words))
            placed = known | dict(zip(program.arrays, places, strict=True))
            words += [placed.get(name, name) for name in program.words]
        self.block = (ctypes.c_int64 * len(words))()
        self.start = starts[-1]
        self.told = []  # (number of a word, index in what `run` passes, bytes to add)
        for n, word in enumerate(words):
            if isinstance(word, int):
                self.block[n] = word
            else:
                name, nbytes = word if isinstance(word, Beyond) else (word, 0)
                self.told.append((n, names.index(name), nbytes))
        begin = ctypes.addressof(self.block)
        for n, (program, _) in enumerate(self.calls):
            self.table[n] = ctypes.cast(program.run, ctypes.c_void_p).value, begin + 8 * starts[n]
        self.begin = begin + 8 * self.start

    def bind(self, told):
        """Write what this call passes into the block of words. (All calls share the block: one may run at a time.)"""
        block = self.block
        for n, which, nbytes in self.told:
            block[n] = told[which] + nbytes

    def run(self, told):
        """Run all programs told[0] times. `told` holds the values of the `names`."""
        if self.threads == 1:
            self.bind(told)
            self.program.run(self.begin)
            return
        # counts and words belong to this call alone: a thread that starts late finds that all is done
        counts = np.zeros(16, np.int64)  # `free` and `done`, in two cache lines
        self.bind((*told, address(counts), address(counts) + 64))
        words = np.array(self.block[self.start :])
        run_together(self.program, address(words), self.threads, (self, counts, words))

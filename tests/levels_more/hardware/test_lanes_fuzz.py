"""Level 1 with lanes, fuzzed: programs that nobody thought of are refused, or right. They never crash.

`PYTHONPATH=tests/support python tests/levels_more/hardware/test_lanes_fuzz.py FIRST LAST` runs those seeds.
"""

import functools
import operator
import sys

import numpy as np
import random_programs
from random_programs import Made

from levels_more.hardware import Lanes, copy, pool


class State(random_programs.State):
    """What the plain interpreter runs on. In a loop with lanes, `mask` says which of them have a turn."""

    mask = None

    def counted(self, value):
        return value if self.mask is None else np.broadcast_to(value, self.mask.shape)[self.mask]

    def places(self, name, indices):
        """The element of the array for each lane; an index that leaves it is what must never happen."""
        indices = np.broadcast_arrays(*(self.values[i.key] if isinstance(i, Made) else i for i in indices))
        mask = np.broadcast_to(True if self.mask is None or not indices[0].ndim else self.mask, indices[0].shape)
        for i, size in zip(indices, self.arrays[name].shape, strict=True):
            assert ((i >= 0) & (i < size))[mask].all(), f"{name} is left"
        return tuple(np.where(mask, i, 0) for i in indices), mask

    def read(self, name, indices):
        places, _ = self.places(name, indices)
        return self.arrays[name][places]

    def write(self, name, indices, value):
        places, mask = self.places(name, indices)
        numbers = np.broadcast_to(value, mask.shape)
        for lane in np.ndindex(mask.shape):  # where two lanes meet, the last one stays
            if mask[lane]:
                self.arrays[name][tuple(int(i[lane]) for i in places)] = numbers[lane]

    def grow(self, total, term):
        old, new = self.get(total), self.get(term)
        if self.mask is None and not np.ndim(new):
            new = np.r_[new, np.zeros(len(old) - 1)]  # counts once
        grown = self.checked(old + new)
        self.values[total.key] = grown if self.mask is None else np.where(self.mask, grown, old)

    def turns(self, extent, lanes):
        if lanes == 1:
            yield from super().turns(extent)
            return
        n = self.sizes.get(extent, extent)
        for start in range(0, n, lanes):
            each = start + np.arange(lanes)
            self.mask = each < n
            yield each
        self.mask = None


class Both(random_programs.Both):
    """Writes programs with lanes. `laned` says whether they are in a loop with lanes."""

    assembler = Lanes
    state = State
    counts_indices = True
    laned = False

    def begin(self, dtype):
        return Lanes("p", dtype, self.random.choice([None, 1, 2, 4, 8, 16]))

    def loop_options(self):
        lanes = 1 if self.laned or self.random.random() < 0.3 else self.a.lanes
        self.laned = self.laned or lanes > 1
        return [lanes]

    def wrong_loop(self):
        return self.a.loop(4, self.random.choice([0, 3, -1, 2.0])).__enter__()

    def wrong_assembler(self):
        return Lanes("q", "f8", self.random.choice([3, -1, 128, 4.0, "4", [4]]))

    def elsewhere(self, buffer):
        return copy(buffer, pool(cpus=2)["cpu:1"])

    def count(self):
        if self.random.random() < 0.3:
            return super().count()
        i = self.pick("index")
        self.note("value", self.a.count(i.thing), lambda state: state.checked(np.float64(state.get(i))))

    def sum(self):
        self.note("sum", self.a.sum(), lambda state: np.zeros(self.a.lanes))

    def total(self, made=None):
        part = not made and self.random.random() < 0.3
        made = made or self.pick("sum")
        if part:
            thing = made.thing.value()
            return self.note("value", thing, lambda state: state.get(made) if self.a.lanes > 1 else state.get(made)[0])

        def run(state):
            return state.checked(functools.reduce(operator.add, state.get(made), 0.0))

        return self.note("value", made.thing.total(), run)

    def loop(self):
        outer = self.laned
        try:
            return super().loop()
        finally:
            self.laned = outer


def test_random_programs_and_calls_are_refused_or_right(seeds, tmp_path):
    random_programs.check(__file__, seeds, tmp_path)


if __name__ == "__main__":
    random_programs.main(Both, *map(int, sys.argv[1:]))

"""Rows that are asked for before they are needed: the same bits, and no row number is read beyond the last one."""

import subprocess
import sys

import numpy as np
import pytest

from course.author.build import ROOT, environment
from levels.low_level import RowProgram, StepWriter, functions
from levels_more.compiler.quick_rows import QuickRowProgram, RowLanes
from levels_more.low_level import Variable, function, reduce_mean

BATCHES = (1, 1), (3, 1), (2, 10), (1, 16), (3, 33), (2, 100)
AT_THE_END = f"""
import ctypes, mmap
import numpy as np
from levels_more.low_level import function, reduce_mean

page = mmap.PAGESIZE
memory = mmap.mmap(-1, 2 * page)  # whoever touches its second half is ended
after = ctypes.addressof(ctypes.c_char.from_buffer(memory)) + page
mprotect = ctypes.CDLL(None).mprotect
mprotect.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
assert mprotect(after, page, 0) == 0
x = np.arange(21).reshape(7, 3)
for dtype in "f4", "f8":
    for shape in {BATCHES}:
        batches = np.frombuffer(memory, np.int64, page // 8)[-np.prod(shape) :].reshape(shape)
        batches[:] = np.arange(batches.size).reshape(shape) % 7
        step = function(lambda x: reduce_mean(x) if dtype == "f8" else reduce_mean(x * x))
        losses = step.over(x.astype(dtype), batches).numpy()
        ((program, _),) = step.programs.values()
        print(type(program).__name__, "prefetch" in program.program.text)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="mprotect is of POSIX")
def test_no_row_number_is_read_beyond_the_last():
    """The batches end where a page of memory ends, and the next one is closed."""
    done = subprocess.run([sys.executable, "-c", AT_THE_END], env=environment(ROOT), capture_output=True, text=True)
    assert done.stdout.splitlines() == ["QuickRowProgram True"] * 12, (done.returncode, done.stdout, done.stderr)


class LaneWriter(StepWriter):
    """Level 3's writer, with the lanes in which the quick one writes."""

    assembler = RowLanes


class LaneRows(RowProgram):
    """Level 3's row program, with these lanes."""

    writer = LaneWriter


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("shape", BATCHES)
def test_the_bits_are_those_without(dtype, shape, monkeypatch):
    rng, found = np.random.default_rng(1), []
    x, batches = rng.standard_normal((50, 3)).astype(dtype), rng.integers(0, 50, shape)
    for program in QuickRowProgram, LaneRows if dtype == "f4" else RowProgram:
        monkeypatch.setattr(functions, "BACK_ENDS", [program])
        w = Variable(np.ones((3, 1), dtype))

        def step(x, w=w):
            loss = reduce_mean((x @ w) * (x @ w))
            w.assign(w - 0.1 * loss)
            return loss

        found.append((function(step).over(x, batches).numpy().tobytes(), w.numpy().tobytes()))
    assert found[0] == found[1]

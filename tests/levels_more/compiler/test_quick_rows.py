"""Rows that are asked for before they are needed: the same numbers, and no row number is read beyond the last one.

Totals of many sums at once: those that each sum has alone, to the last bit.
"""

import subprocess
import sys

import numpy as np
import pytest

from course.author.build import ROOT, environment
from levels_more.compiler.quick_rows import totals
from levels_more.hardware import Lanes, pool

AT_THE_END = """
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
    for shape in (1, 1), (3, 1), (2, 10), (1, 16), (3, 33), (2, 100):
        batches = np.frombuffer(memory, np.int64, page // 8)[-np.prod(shape) :].reshape(shape)
        batches[:] = np.arange(batches.size).reshape(shape) % 7
        step = function(lambda x: reduce_mean(x) if dtype == "f8" else reduce_mean(x * x))
        losses = step.over(x.astype(dtype), batches).numpy()
        right = [x[rows].mean() if dtype == "f8" else (x[rows] ** 2).mean() for rows in batches]
        np.testing.assert_allclose(losses, right, 1e-14 if dtype == "f8" else 1e-6)
        ((program, _),) = step.programs.values()
        print(type(program).__name__, "prefetch" in program.program.text)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="mprotect is of POSIX")
def test_no_row_number_is_read_beyond_the_last():
    """The batches end where a page of memory ends, and the next one is closed."""
    done = subprocess.run([sys.executable, "-c", AT_THE_END], env=environment(ROOT), capture_output=True, text=True)
    assert done.stdout.splitlines() == ["QuickRowProgram True"] * 12, (done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("dtype, lanes", [("f4", n) for n in (1, 4, 64)] + [("f8", 1), ("f8", 8)])
@pytest.mark.parametrize("shape", [(1,), (16,), (5, 7)])
def test_each_total_is_that_of_the_sum_alone(dtype, lanes, shape):
    cpu, count = pool()["cpu:0"], int(np.prod(shape))
    a = Lanes("sums", dtype, lanes)
    x, out = a.array("x", "rows", count), a.array("out", 2, count)
    sums = np.array([a.sum() for _ in range(count)], object)
    with a.loop("rows", a.lanes) as r:
        for k in range(count):
            sums[k] += a.load(x, r, k)
    found = totals(a, sums.reshape(shape))
    assert found.shape == shape
    for k in range(count):
        a.store(sums[k].total(), out, 0, k)
        a.store(found.flat[k], out, 1, k)
    numbers = np.random.default_rng(1).standard_normal((2 * lanes + 3, count)).astype(dtype)
    result = cpu.alloc((2, count), numbers.dtype)
    a.assemble()(x=cpu.put(numbers), out=result)
    alone, together = result.numpy()
    np.testing.assert_array_equal(together, alone)
    np.testing.assert_allclose(together, numbers.sum(0, np.float64), rtol=1e-3 if dtype == "f4" else 1e-12)

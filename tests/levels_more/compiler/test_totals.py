"""Totals of many sums at once: those that each sum has alone, to the last bit."""

import numpy as np
import pytest

from levels_more.compiler.quick_rows import totals
from levels_more.hardware import Lanes, pool


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

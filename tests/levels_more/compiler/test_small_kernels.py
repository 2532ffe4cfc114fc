"""Small launches: programs of level 1 do what the kernels do."""

import copy
import itertools
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from course.author.build import ROOT, environment
from levels.support.locks import compiled_once
from levels_more.compiler.eager import small_ops
from levels_more.hardware import pool
from levels_more.kernels import (
    ELEMENTWISE,
    PLANS,
    UPDATES,
    launch,
    planned,
    use,
)
from levels_more.kernels.verify import cases_of, drawn
from levels_more.low_level import Tensor, apply, constant

CPU = pool()["cpu:0"]


def is_program(plan):
    """Whether this plan runs a program, and not what numba has compiled."""
    return getattr(compiled_once(plan), "__module__", None) == small_ops.__name__


def by_numba(op, arrays, attrs):
    """What numba's kernel of an op makes of these arrays."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(small_ops, "SMALL", -1)
        PLANS.clear()
        result, plan = launched(op, arrays, attrs)
        assert not is_program(plan)
    PLANS.clear()
    return result


def launched(op, arrays, attrs):
    """What a launch makes of these arrays, and the plan that it ran. The next launches, and the door, give the same."""
    inputs = [CPU.put(x) for x in arrays]
    if op in UPDATES:
        return launch(op, *inputs, **attrs).numpy(), planned(op, inputs, attrs)
    result, plan = launch(op, None, *inputs, **attrs).numpy(), planned(op, inputs, attrs)
    for again in (launch(op, None, *inputs, **attrs), apply(op, *[CPU.put(x, Tensor) for x in arrays], **attrs)):
        assert again.spec is plan.spec and np.array_equal(again.numpy(), result, equal_nan=result.dtype.kind == "f")
    return result, plan


def check(op, arrays, attrs, program=True):
    """The same bits but for float32 products, whose sums may have any order."""
    wanted = by_numba(op, arrays, attrs)
    found, plan = launched(op, arrays, attrs)
    assert is_program(plan) == program and found.dtype == wanted.dtype
    if found.dtype == np.float32 and op == "matmul":
        np.testing.assert_allclose(found, wanted, 1e-5, 1e-6)
    else:
        np.testing.assert_array_equal(found, wanted)
        numbers = ~np.isnan(found)
        assert np.array_equal(np.signbit(found)[numbers], np.signbit(wanted)[numbers])


@pytest.mark.parametrize("dtype", ["f8", "i8", pytest.param("f4", marks=pytest.mark.weekly)])  # numba compiles each
@pytest.mark.parametrize("op", sorted({*ELEMENTWISE} - {"power", "spread"}))
def test_an_elementwise_op_gives_the_bits_of_its_kernel(op, dtype):
    """Of all that there are but `power`, which no program has, and `spread`, whose shapes are others."""
    if np.dtype(dtype).kind not in ELEMENTWISE[op]:
        pytest.skip("it takes no whole numbers")
    draw = np.random.default_rng(1)
    for inputs, attrs in cases_of(op):
        arrays = [drawn(draw, what, np.dtype("f8")) for what in inputs]
        with np.errstate(all="ignore"):
            arrays = [
                x if x.dtype == bool else np.nan_to_num(x, posinf=9).astype(dtype) if dtype == "i8" else x.astype(dtype)
                for x in arrays
            ]
        check(op, arrays, attrs)
        parts = [x[: n % 5 + 3].reshape(-1, 1) if n % 2 else x[:7] for n, x in enumerate(arrays)]  # broadcast
        if len(parts) > 1 and op not in UPDATES:
            check(op, parts, attrs)
            check(op, [parts[0][:1], *arrays[1:]], attrs)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("op", ["reduce_sum", "reduce_mean", "spread"])
def test_sums_means_and_the_way_back_through_them(op, dtype):
    draw = np.random.default_rng(2)
    for shape in ((1,), (40,), (5, 3), (3, 3), (3, 17), (2, 3, 4), (1, 33), (64, 1)):
        x = draw.normal(size=shape).astype(dtype)
        for axis in (None, 0, -1, tuple(range(len(shape))), *([1, (1, 2)] if len(shape) == 3 else [])):
            for keepdims in (False, True):
                if op == "spread":
                    dy = draw.normal(size=np.sum(x, axis, keepdims=keepdims).shape).astype(dtype)
                    check(op, [dy, x], {} if axis is None else {"axis": axis})
                else:
                    check(op, [x], {"axis": axis, "keepdims": keepdims})
    check("reduce_sum", [np.arange(12).reshape(3, 4)], {"axis": 1})


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_products(dtype):
    draw = np.random.default_rng(3)
    for m, k, n in ((1, 1, 1), (2, 3, 1), (1, 5, 7), (8, 4, 8), (9, 2, 17), (17, 40, 3), (100, 8, 1), (100, 4, 8)):
        for turned_x, turned_w in ((0, 0), (1, 0), (0, 1), (1, 1)):
            x, w = (
                draw.normal(size=size[:: 1 - 2 * turned]).astype(dtype)
                for size, turned in (((m, k), turned_x), ((k, n), turned_w))
            )
            check("matmul", [x, w], {"transpose_x": bool(turned_x), "transpose_w": bool(turned_w)})
    large = draw.normal(size=(40, 40)).astype(dtype)
    check("matmul", [large, large], {}, program=False)


@pytest.mark.versions
def test_rows_are_gathered_and_one_that_is_not_there_is_refused():
    x = np.arange(12.0).reshape(4, 3)
    check("gather", [x, np.array([3, 0, 3])], {})
    check("gather", [np.arange(5), np.array([[4, 0]])], {})
    for wrong in ([0, 4], [-1], [2**62]):
        with pytest.raises(IndexError, match="out of range"):
            launch("gather", None, CPU.put(x), CPU.put(np.array(wrong)))


@pytest.mark.versions
def test_a_number_is_told_in_each_call():
    w, dw = CPU.put(np.array([1.0, 2.0])), CPU.put(np.array([1.0, 1.0]))
    for rate, wanted in ((0.5, [0.5, 1.5]), (np.float32(0.25), [0.25, 1.25]), (1, [-0.75, 0.25])):
        launch("sgd", w, dw, rate=rate)
        assert w.numpy().tolist() == wanted
    assert is_program(planned("sgd", (w, dw), {"rate": 0.5}))


@pytest.mark.quick
def test_a_mean_hears_of_another_sum():
    x, more = CPU.put(np.array([1.0, 2.0, 3.0])), 1.0000000000001
    with use("reduce_sum", "cpu", lambda total, x: total + x * more):
        assert launch("reduce_mean", None, x).numpy() == (more + 2.0 * more + 3.0 * more) / 3.0
    assert launch("reduce_mean", None, x).numpy() == 2.0


def test_the_readers_kernels_are_numbas():
    x = CPU.put(np.array([1.0, -2.0]))
    launch("negative", None, x)
    assert is_program(planned("negative", (x,), {}))
    with use("negative", "cpu", lambda x: 0.0 - x):
        assert launch("negative", None, x).numpy().tolist() == [-1.0, 2.0]
        assert not is_program(planned("negative", (x,), {}))
    launch("negative", None, x)
    assert is_program(planned("negative", (x,), {}))


@pytest.mark.parametrize("op, shapes", [("add", [(50,)] * 2), ("matmul", [(8, 3), (3, 4)])])
def test_threads_make_tensors_of_their_own(op, shapes):
    draw = np.random.default_rng(0)
    tasks = [[draw.normal(size=shape) for shape in shapes] for _ in range(8)]
    wanted = [apply(op, *map(constant, arrays)).numpy() for arrays in tasks]

    def work(k):
        inputs = [*map(constant, tasks[k])]
        return all(np.array_equal(apply(op, *inputs).numpy(), wanted[k]) for _ in range(500))

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as threads:
            assert all(threads.map(work, range(8)))
    finally:
        sys.setswitchinterval(before)


FIRST_STEPS = """
import sys
from course import tasks
from levels_more.low_level import eager
from levels.low_level.tasks import dnn_classifier

task = tasks.rings()
for dtype in ("f4", "f8"):
    x, y, *weights = (a.astype(dtype) for a in (task.x, task.y, *task.weights))
    with eager():
        dnn_classifier(x, y, weights, task.batches[:20])
    dnn_classifier(x, y, weights, task.batches[:20])
assert "numba" not in sys.modules
"""


def test_first_steps_wait_for_no_numba(tmp_path):
    """Op by op, and compiled."""
    told = environment(ROOT) | {"LEVELS_CACHE": str(tmp_path)}
    subprocess.run([sys.executable, "-c", FIRST_STEPS], env=told, check=True)
    assert os.listdir(tmp_path)


def test_a_copy_of_a_buffer_has_an_address_of_its_own():
    """Launched, copied, given back and launched again: what reads the copy reads its numbers, wherever the first ones
    were.
    """
    x = constant(np.arange(4.0))
    (x + x).numpy()
    for again in (copy.deepcopy, copy.copy, lambda tensor: pickle.loads(pickle.dumps(tensor))):
        other = again(x)
        other.data[:] = 7.0
        assert (other + other).numpy().tolist() == [14.0] * 4 and (x + x).numpy().tolist() == [0.0, 2.0, 4.0, 6.0]


def test_a_freed_buffer_is_refused_though_it_was_launched_before():
    x, out = CPU.put(np.arange(4.0)), CPU.alloc((4,), "f8")
    launch("add", out, x, x)
    CPU.free(x)
    with pytest.raises(TypeError, match="live buffers"):
        launch("add", out, x, x)


@pytest.mark.parametrize(
    "op", sorted({*ELEMENTWISE, "reduce_sum", "reduce_mean", "gather"} - {"cast", "clip", "clip_grad", "spread"})
)
def test_each_op_launches_on_numbers_of_every_dtype(op):
    """By a program where the assembler knows the dtype, else by its kernel. What has no plan is refused in words."""
    launched = 0
    kinds = "f4", "f8", "i8", "i4", "u1", "u8", "?"
    for count in (1, 2, 3):
        for dtypes in {(*pair, *pair[-1:] * (count - 2))[:count] for pair in itertools.product(kinds, repeat=2)}:
            reads = [CPU.put(np.ones((2, 3), dtype)) for dtype in dtypes]
            try:
                plan = planned(op, tuple(reads), {})
            except (TypeError, ValueError, LookupError):
                continue
            if not plan.numbers:
                plan.start(reads[0], reads, {}) if op in UPDATES else plan.result(Tensor, reads, {})
                launched += 1
    assert launched or op == "sgd"  # which takes a rate

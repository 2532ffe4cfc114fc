"""levels_more's columns for GPU and TPU in level 2's table, and both tasks on every kind of device, on every level that
has kernels.
"""

import contextlib
import importlib

import numpy as np
import pytest

from course import tasks
from course.reader.exercises.blanks import same_bits
from levels_more.distributed.collectives import COLLECTIVES
from levels_more.hardware import placed_on, pool
from levels_more.kernels import KERNELS, elementwise, kernel, launch, layout, random, reductions, use  # noqa: F401 (all ops enter the tables)
from levels_more.kernels.verify import cases_of, drawn, outcome  # noqa: F401 (all ops enter the tables)
from levels_more.low_level import GradientTape, Variable, constant, device, eager, function, reduce_mean

for kind in ("gpu", "tpu"):
    KERNELS["add", kind]  # who asks first has levels_more enter the column
OPS = sorted(op for op, kind in KERNELS if kind == "cpu" and op not in COLLECTIVES)
LEVELS = "kernels", "low_level", "mid_level", "high_level"


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("op", OPS)
def test_the_gpu_computes_what_the_cpu_computes(op, dtype):
    draw = np.random.default_rng(1)
    for inputs, attrs in cases_of(op):
        arrays = [drawn(draw, what, np.dtype(dtype)) for what in inputs]
        expected = outcome(op, "cpu", KERNELS[op, "cpu"], arrays, attrs)
        result = outcome(op, "gpu", KERNELS[op, "gpu"], arrays, attrs)
        tolerance = 1e-5 if dtype == "f4" or op == "cast" else 1e-12
        assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
        np.testing.assert_allclose(result, expected, tolerance, tolerance)


@pytest.mark.parametrize("op", [op for op in OPS if op != "matmul"])
def test_the_tpus_vector_unit_computes_what_the_cpu_computes(op):
    draw = np.random.default_rng(2)
    for inputs, attrs in cases_of(op):
        if attrs.get("dtype") != "f8":
            arrays = [drawn(draw, what, np.dtype("f4")) for what in inputs]
            expected = outcome(op, "cpu", KERNELS[op, "cpu"], arrays, attrs)
            found = outcome(op, "tpu", KERNELS[op, "tpu"], arrays, attrs)
            assert same_bits(found, expected)


@pytest.mark.parametrize("transpose_x", [False, True])
@pytest.mark.parametrize("transpose_w", [False, True])
def test_a_product_on_the_tpu_has_inputs_of_8_bits(transpose_x, transpose_w):
    draw, tpu = np.random.default_rng(3), pool()["tpu:0"]
    x, w = draw.normal(size=(5, 7)).astype("f4"), draw.normal(size=(7, 3)).astype("f4")
    sides = {"transpose_x": transpose_x, "transpose_w": transpose_w}
    given = [tpu.put(a.T if turned else a) for a, turned in zip((x, w), sides.values(), strict=True)]
    cycles = tpu.cycles
    y = launch("matmul", None, *given, **sides).numpy()
    exact = x.astype("f8") @ w.astype("f8")
    assert tpu.cycles > cycles
    assert 0 < np.abs(y - exact).max() <= 2**-7 * (np.abs(x) @ np.abs(w)).max()
    whole = [tpu.put(np.round(a * 50)) for a in (x, w)]  # whole numbers to 255 have 8 bits
    assert (launch("matmul", None, *whole).numpy() == whole[0].numpy() @ whole[1].numpy()).all()


@pytest.mark.quick
def test_a_sum_is_in_the_same_order_in_every_run():
    gpu = pool()["gpu:0"]
    x = gpu.put(np.random.default_rng(4).normal(size=(3, 999)).astype("f4"))
    sums = [launch("reduce_sum", None, x, axis=1).numpy().tobytes() for _ in range(3)]
    assert len(set(sums)) == 1


@pytest.mark.skipif(not pool()["gpu:0"].simulated, reason="on a real GPU no kernel can write into a list")
def test_a_kernel_of_the_readers_runs_on_that_kind_alone():
    calls, numbers = [], np.array([-2, 3], "f4")

    def relu(x):
        calls.append(x)
        return 0.0 if x <= 0 else x

    with pytest.raises(ValueError, match="refused"), use("relu", "gpu", lambda x: x):
        pass
    with use("relu", "gpu", relu):
        calls.clear()
        assert launch("relu", None, pool()["cpu:0"].put(numbers)).numpy().tolist() == [0, 3] and not calls
        assert launch("relu", None, pool()["gpu:0"].put(numbers)).numpy().tolist() == [0, 3] and calls == [-2, 3]
    assert KERNELS["relu", "gpu"] is KERNELS["relu", "cpu"]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    ("name", "make", "steps"), [("linear_regression", tasks.linear, 8), ("dnn_classifier", tasks.rings, 2)]
)
def test_both_tasks_run_on_every_kind_of_device(level, name, make, steps):
    """The same source. The GPU adds in another order; the TPU multiplies numbers of 8 bits."""
    task, module = make(), importlib.import_module(f"levels.{level}.tasks")
    data = [a.astype("f4") for a in (task.x, task.y)], [w.astype("f4") for w in task.weights]
    fits = {}
    for kind in ("cpu", "gpu", "tpu"):
        with placed_on(f"{kind}:0"):
            fit = getattr(module, name)(*data[0], data[1], task.batches[:steps, :10], task.learning_rate)
            fits[kind] = [fit.losses, *fit.weights, fit.predict(data[0][0][:7])]
        assert all(a.dtype == np.float32 for a in fits[kind])
    for right, gpu, tpu in zip(*fits.values(), strict=True):
        np.testing.assert_allclose(gpu, right, 1e-5, 1e-6)
        np.testing.assert_allclose(tpu, right, 3e-2, 3e-2)
    assert any((a != b).any() for a, b in zip(fits["cpu"], fits["tpu"], strict=True))


@pytest.mark.parametrize("name", ["gpu:0", "tpu:0"])
def test_a_compiled_step_is_launches_on_its_device(name):
    x, y = np.arange(8.0, dtype="f4").reshape(4, 2), np.ones((4, 1), "f4")

    ends = []
    for around in (eager, contextlib.nullcontext):
        with device(name), around():
            w = Variable(np.full((2, 1), 0.5, "f4"))

            @function
            def step(rows, target, w=w):
                with GradientTape() as tape:
                    loss = reduce_mean((rows @ w - target) ** 2)
                w.assign(w - 0.01 * tape.gradient(loss, w))
                return loss

            losses = [step(constant(x), constant(y)).numpy() for _ in range(3)]
            assert w.device.name == name
        ends.append([*losses, *w.numpy().ravel()])
    assert ends[0] == ends[1]


def test_what_a_tpu_or_a_gpu_refuses_is_said_at_the_door():
    with pytest.raises(TypeError, match="tpu:0.*float64"), device("tpu:0"):
        constant(np.ones(3))
    with device("gpu:0"):
        x = constant(np.arange(6.0, dtype="f4").reshape(3, 2))
        with pytest.raises(ValueError, match="inner sizes 2 and 3 differ"):
            x @ x
        rows = pool()["gpu:0"].put(np.array([0, 3]))
        for op, given, attrs in (("gather", [x], {}), ("one_hot", [], {"depth": 2})):
            with pytest.raises(IndexError, match=f"{op}.*3.*out of range"):
                launch(op, None, *given, rows, **attrs)
    with pytest.raises(ValueError, match="cpu:0 and gpu:0"):
        launch("add", None, x, pool()["cpu:0"].put(np.ones((3, 2), "f4")))

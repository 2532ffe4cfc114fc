"""Level 2: every kernel against NumPy, every refusal with its reason."""

import subprocess
import sys

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numba import njit

from levels import kernels, low_level
from levels.hardware import pool
from levels.kernels import KERNELS, PLANS, counted, kernel, launch, loop_source, use

CPU = pool()["cpu:0"]
BINARY = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide}
DTYPES = st.sampled_from([np.dtype("f4"), np.dtype("f8")])
NUMBERS = st.floats(-1e3, 1e3, width=32)


def run(op, *inputs, out=None, **attrs):
    return launch(op, out, *(CPU.put(x) for x in inputs), **attrs).numpy()


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(sorted(BINARY)),
    arrays.mutually_broadcastable_shapes(num_shapes=2, max_dims=4, max_side=4),
    DTYPES,
    st.data(),
)
def test_elementwise_broadcasts_as_numpy_does(op, shapes, dtype, data):
    x, y = (data.draw(arrays.arrays(dtype, shape, elements=NUMBERS)) for shape in shapes.input_shapes)
    with np.errstate(all="ignore"):
        expected = BINARY[op](x, y)
    result = run(op, x, y)
    assert result.dtype == dtype and result.shape == shapes.result_shape
    np.testing.assert_array_equal(result, expected)


@settings(max_examples=40, deadline=None)
@given(
    arrays.arrays(np.float64, arrays.array_shapes(max_dims=3, min_side=0, max_side=5), elements=NUMBERS),
    st.booleans(),
    st.data(),
)
def test_reduce_sum(x, keepdims, data):
    axis = data.draw(st.none() | st.integers(-x.ndim, x.ndim - 1))
    result = run("reduce_sum", x, axis=axis, keepdims=keepdims)
    expected = x.sum(axis=axis, keepdims=keepdims)
    assert result.shape == expected.shape
    np.testing.assert_allclose(result, expected, atol=1e-9)


@settings(max_examples=40, deadline=None)
@given(*[st.integers(0, 9)] * 3, st.booleans(), st.booleans(), DTYPES)
def test_matmul(m, k, n, transpose_x, transpose_w, dtype):
    rng = np.random.default_rng(m * 100 + k * 10 + n)
    x, w = rng.normal(size=(m, k)).astype(dtype), rng.normal(size=(k, n)).astype(dtype)
    result = run(
        "matmul",
        x.T.copy() if transpose_x else x,
        w.T.copy() if transpose_w else w,
        transpose_x=transpose_x,
        transpose_w=transpose_w,
    )
    assert result.dtype == dtype
    np.testing.assert_allclose(result, x @ w, rtol=1e-4, atol=1e-5)


def test_sums_of_products_run_upwards_from_zero():
    x, w = np.array([[1e16, 1.0, -1e16, 1.0]]), np.ones((4, 1))
    assert run("matmul", x, w).item() == ((0.0 + 1e16 + 1.0) - 1e16) + 1.0 == 1.0
    assert run("reduce_sum", x).item() == 1.0
    assert np.signbit(run("matmul", -np.zeros((1, 1)), np.ones((1, 1)))).item() is False


@pytest.mark.parametrize("shape", [(5,), (5, 1), (5, 3), (5, 2, 2)])
@pytest.mark.parametrize("rows", [[], [4, 0, 4], [[1, 2], [3, 4]]])
def test_gather(shape, rows):
    x, rows = np.arange(np.prod(shape), dtype="f4").reshape(shape), np.array(rows, np.int64)
    np.testing.assert_array_equal(run("gather", x, rows), x[rows])


def test_sgd_overwrites_its_weight_and_takes_any_rate_without_a_new_plan():
    w = CPU.put(np.array([1.0, 2.0], "f4"))
    launch("sgd", w, CPU.put(np.array([10.0, 10.0], "f4")), rate=0.1)
    assert w.numpy().tolist() == np.array([0.0, 1.0], "f4").tolist()
    before = len(kernels.PLANS)
    for rate in (0.2, 0.3):
        launch("sgd", w, CPU.put(np.zeros(2, "f4")), rate=rate)
    assert len(kernels.PLANS) == before


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: run("ad", np.ones(1), np.ones(1)), "did you mean 'add'"),
        (lambda: run("add", np.ones(2), np.ones(3)), r"\(2,\) and \(3,\) do not broadcast"),
        (lambda: run("add", np.ones(2), np.ones(2, "f4")), "float32 and float64 do not mix"),
        (lambda: launch("add", None, np.ones(2), np.ones(2)), "works on live buffers"),
        (lambda: run("matmul", np.ones((2, 3)), np.ones((2, 3))), "inner sizes 3 and 2 differ"),
        (lambda: run("matmul", np.ones(3), np.ones((3, 1))), "two axes"),
        (lambda: run("reduce_sum", np.ones(3), axis=1), "axis 1 is not an axis"),
        (lambda: run("gather", np.ones((3, 1)), np.array([3])), "out of range"),
        (lambda: run("gather", np.ones((3, 1)), np.array([-1])), "out of range"),
        (lambda: run("gather", np.ones((3, 1)), np.array([1.0])), "float64"),
        (lambda: run("add", np.ones(2), np.ones(2), out=CPU.alloc((3,), "f8")), r"live buffer float64\[2\] on cpu:0"),
        (lambda: run("add", np.ones(2), np.ones(2), out=CPU.alloc((2,), "f4")), "float32"),
        (lambda: run("add", np.ones(2), np.ones(2), out=pool(cpus=2)["cpu:1"].alloc((2,), "f8")), "cpu:0"),
        (lambda: launch("add", None, CPU.put(np.ones(2)), pool(cpus=2)["cpu:1"].put(np.ones(2))), "cpu:0 and cpu:1"),
    ],
)
def test_wrong_launches_are_refused(call, message):
    with pytest.raises((LookupError, TypeError, ValueError), match=message):
        call()


def test_freed_and_aliased_buffers_are_refused():
    x, freed = CPU.put(np.ones(2)), CPU.put(np.ones(2))
    CPU.free(freed)
    with pytest.raises(TypeError, match="live buffers.*freed"):
        launch("add", None, x, freed)
    with pytest.raises(ValueError, match="needs a live buffer"):
        launch("add", freed, x, x)
    with pytest.raises(ValueError, match="overwrite an input"):
        launch("add", x, x, x)


def test_launches_and_bytes_are_counted():
    run("add", np.ones((10, 4)), np.ones((1, 4)))
    assert counted(lambda: [run("add", np.ones((10, 4)), np.ones((1, 4))) for _ in "12"]) == (2, 2 * 8 * (40 + 40 + 4))


def test_a_new_kernel_takes_effect_at_once():
    x = np.ones(3)
    plain = KERNELS["add", "cpu"]
    try:
        assert run("add", x, x).tolist() == [2, 2, 2]
        kernel("add")(lambda x, y: x + y + 1.0)
        assert run("add", x, x).tolist() == [3, 3, 3]
    finally:
        KERNELS["add", "cpu"] = plain
        kernels.PLANS.clear()
    assert run("add", x, x).tolist() == [2, 2, 2]


def test_plans_are_made_once():
    run("add", np.ones((3, 1)), np.ones((3, 1)))
    before = len(PLANS)
    run("add", np.ones((3, 1)), np.ones((3, 1)))
    assert len(PLANS) == before


def test_the_loop_leaves_out_the_axes_an_input_does_not_have():
    assert "scalar(x0[i, j], x1[j], x2[0], rate=rate)" in loop_source(
        "scalar", [(True, False, False), (True, True, False)], ["rate"]
    )


def test_the_table_names_every_op():
    assert repr(KERNELS).splitlines()[0].split() == ["op", "cpu"]
    assert {line.split()[0] for line in repr(KERNELS).splitlines()[1:]} == {op for op, _ in KERNELS}


PROGRAM = """
import numpy as np
import settings
from numba import njit
from levels.hardware import pool
from levels.kernels import launch, scalar

FACTOR = {factor}


@njit
def callee(x):
    return x * {callee}


def mine(x):
    return callee(x) * FACTOR * {own} {module}


scalar("mine")(mine)
cpu = pool()["cpu:0"]
print(launch("mine", None, cpu.put(np.ones(1))).numpy()[0])
"""


def test_the_cache_never_serves_a_stale_kernel(tmp_path):
    """Each run changes one thing that the kernel is made of: itself, a callee, a global, a setting in another module."""
    from course.build import ROOT, environment

    def run(expected, setting=1.0, module="", **parts):
        (tmp_path / "settings.py").write_text(f"scale = {setting}\n")
        program = PROGRAM.format(**dict(factor=1.0, callee=1.0, own=1.0, module=module) | parts)
        env = environment(ROOT) | {"NUMBA_CACHE_DIR": str(tmp_path / "kernels"), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=env, capture_output=True, text=True)
        assert done.stdout.strip() == str(expected), done.stderr

    run(1.0)
    files = set((tmp_path / "kernels").iterdir())
    assert files
    run(1.0)
    assert set((tmp_path / "kernels").iterdir()) == files  # the second run compiled nothing
    run(2.0, callee=2.0)
    run(3.0, factor=3.0)
    run(5.0, own=5.0)
    run(1.0, module="* settings.scale")
    run(7.0, module="* settings.scale", setting=7.0)
    run(1.0)


def branchless(x):
    return x * (x > 0)


def keeps_nan(x):
    return 0.0 if x < 0.0 else x


def one_row_too_many(out, x, w):
    for i in range(out.shape[0] + 1):
        for j in range(out.shape[1]):
            out[i, j] = 0.0


def beside(out, x, w):
    for i in range(-1, out.shape[0] - 1):  # a negative index counts from the end: right for all but no rows at all
        for j in range(out.shape[1]):
            out[i, j] = 0.0


def unknown_name(x):
    return nowhere(x)  # noqa: F821


@pytest.mark.parametrize(
    "op, function, message",
    [
        ("relu", branchless, r"relu\(-inf\) gives nan, and should give 0.0"),
        ("relu", keeps_nan, r"relu\(nan\) gives nan"),
        ("sgd", lambda w, dw, rate: w + rate * dw, r"refused, sgd\("),
        ("matmul", one_row_too_many, "shapes .* it fails: index is out of bounds"),
        ("matmul", beside, r"matmul\(0\.\d+, -0\.\d+\) gives 0.0, and should give -0"),
        ("exp", unknown_name, "it fails"),
    ],
)
def test_a_wrong_kernel_is_refused_with_a_counter_example(op, function, message):
    before = KERNELS[op, "cpu"]
    with pytest.raises(ValueError, match=message), use(op, "cpu", function):
        raise AssertionError("it was accepted")
    assert KERNELS[op, "cpu"] is before


@pytest.mark.parametrize("op", sorted(kernels.TRIALS))
def test_every_kernel_passes_its_own_trials(op):
    with use(op, "cpu", KERNELS[op, "cpu"]):
        pass


def test_every_op_has_trials():
    assert {op for op, _ in KERNELS} == set(kernels.TRIALS)


def test_a_kernel_in_use_runs_on_every_level_above_and_is_undone_after_an_error():
    calls, (x, y) = [], (np.array([-1.0, 2.0]), np.array([3.0, 4.0]))
    before, plain = KERNELS["multiply", "cpu"], run("multiply", x, y).tolist()
    with pytest.raises(RuntimeError, match="mine"), use("multiply", "cpu", lambda x, y: y * x):
        assert KERNELS["multiply", "cpu"] is not before
        assert (low_level.constant(x) * low_level.constant(y)).numpy().tolist() == plain
        calls.append(counted(lambda: low_level.constant(x) * low_level.constant(y))[0])
        raise RuntimeError("mine")
    assert calls == [1] and KERNELS["multiply", "cpu"] is before and run("multiply", x, y).tolist() == plain


def test_what_cannot_be_replaced_is_named():
    for op, kind in (("nope", "cpu"), ("relu", "gpu")):
        with pytest.raises(LookupError, match=f"{op!r} has no kernel for {kind!r}"), use(op, kind, branchless):
            pass


def test_a_kernel_is_compiled_again_when_what_it_calls_is_rebound():
    """A function two calls away, and a number: in a cell (here: a namespace), without entering the kernel again."""
    scope = {"njit": njit, "scalar": kernels.scalar, "__name__": "__main__"}
    exec("STEP = 1.0\n@njit\ndef inner(x):\n    return x + STEP\n@njit\ndef outer(x):\n    return inner(x)", scope)
    exec("@scalar('test_op')\ndef test_op(x):\n    return outer(x)", scope)
    try:
        assert run("test_op", np.zeros(2)).tolist() == [1, 1]
        exec("@njit\ndef inner(x):\n    return x - STEP", scope)
        assert run("test_op", np.zeros(2)).tolist() == [-1, -1]
        exec("STEP = 5.0\n@njit\ndef inner(x):\n    return x - STEP\n@njit\ndef outer(x):\n    return inner(x)", scope)
        assert run("test_op", np.zeros(2)).tolist() == [-5, -5] and run("test_op", np.zeros(3)).tolist() == [-5, -5, -5]
        # a kernel on whole arrays, whose callee was compiled, and whose callee's callee was changed, before its first call
        scope["kernel"] = lambda function: kernel("test_op 2", planner=kernels.plan_reduce)(function)
        exec("@njit\ndef inner(x):\n    return x + STEP\n@njit\ndef outer(x):\n    return inner(x)", scope)
        exec("@kernel\ndef last(out, x):\n    out[0, 0] = outer(x[0, 0, 0])", scope)
        assert scope["outer"](0.0) == 5.0
        exec("@njit\ndef inner(x):\n    return x * 0.0 - STEP", scope)
        assert run("test_op 2", np.ones(1)).item() == -5.0
    finally:
        for table in (KERNELS, kernels.PLANNERS, kernels.TRIALS):
            for key in [key for key in table if "test_op" in str(key)]:
                del table[key]


def products(x, w):
    """x @ w by the record: sums start at 0.0, k runs upwards, each product and each sum is rounded."""
    out = np.zeros((x.shape[0], w.shape[1]), x.dtype)
    for k in range(x.shape[1]):
        out = out + x[:, k : k + 1] * w[k : k + 1]
    return out


@pytest.mark.parametrize("flip_x, flip_w", [(False, False), (True, False), (False, True), (True, True)])
def test_the_tiles_give_the_record_to_the_bit(flip_x, flip_w):
    """Any shape, also with edges that no tile fits, and a k so long that it is packed in parts."""
    draw = np.random.default_rng(0)
    shapes = [(0, 3, 2), (3, 0, 2), (1, 1, 1), (17, 1100, 19), *draw.integers(1, 90, (40, 3)).tolist()]
    for m, k, n in shapes:
        x, w = draw.normal(size=(m, k)), draw.normal(size=(k, n))
        whole = np.full((m + 2, n), 7.0)
        kernels.matmul_tiles(whole[1:-1], x.T.copy() if flip_x else x, w.T.copy() if flip_w else w, flip_x, flip_w)
        assert (whole[1:-1] == products(x, w)).all() and (whole[[0, -1]] == 7).all()


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_large_products_have_the_same_bits_for_any_number_of_threads(dtype, monkeypatch):
    monkeypatch.setattr(kernels.matmul, "WORTH", 1)
    draw, results = np.random.default_rng(0), []
    x, w = draw.normal(size=(150, 70)).astype(dtype), draw.normal(size=(70, 90)).astype(dtype)
    before = numba.get_num_threads()
    try:
        for threads in range(1, numba.config.NUMBA_NUM_THREADS + 1):
            numba.set_num_threads(threads)
            results.append(run("matmul", x, w).tobytes())
    finally:
        numba.set_num_threads(before)
    assert len(set(results)) == 1
    np.testing.assert_allclose(run("matmul", x, w), x.astype("f8") @ w.astype("f8"), rtol=1e-3, atol=1e-4)


def test_a_matmul_of_ones_own_runs_for_large_products_too():
    x, w = np.ones((40, 40)), np.ones((40, 40))
    with use("matmul", "cpu", three_loops):
        launch("matmul", None, CPU.put(x), CPU.put(w))
        assert "matmul_tiles" not in list(PLANS.values())[-1].run.__code__.co_names
    launch("matmul", None, CPU.put(x), CPU.put(w))
    assert "matmul_tiles" in list(PLANS.values())[-1].run.__code__.co_names


def three_loops(out, x, w):
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            total = 0.0
            for k in range(x.shape[1]):
                total += x[i, k] * w[k, j]
            out[i, j] = total

"""Products of many matrices at once: eager and in a function, on special numbers, their gradients, a reader's kernel."""

import numba
import numpy as np
import pytest
from back_ends import kinds
from products import NEAR, TURNS, expected, operands, product, turned

from levels_more.compiler.fused.backend import FusedProgram
from levels_more.compiler.fused.replay import FusedReplay
from levels_more.hardware import pool
from levels_more.kernels import launch, matmul_ikj, use
from levels_more.low_level import GradientTape, constant, exp, function, reduce_sum

FRONTS = [((2,), (2,)), ((5,), ()), ((), (3,)), ((2, 3), (2, 3)), ((1,), (1,)), ((4, 1), ()), ((0,), (0,))]
SIZES = [(7, 9, 1), (1, 4, 6), (17, 33, 20), (2, 0, 3), (1, 1, 1)]


@pytest.mark.parametrize("dtype", NEAR)
@pytest.mark.parametrize("fronts, turns", [*zip(FRONTS, TURNS * 2, strict=False)])
def test_they_are_those_of_the_record_eager_and_in_a_function(fronts, turns, dtype):
    """Sizes of one number would fit a row program, which knows two axes."""
    draw = np.random.default_rng(0)
    for sizes in SIZES:
        x, w = operands(draw, fronts, sizes, turns, dtype)
        right, compiled = expected(x, w, turns), function(product(turns))
        for run in (product(turns), compiled):
            found = run(constant(x), constant(w)).numpy()
            assert found.shape == right.shape and found.dtype == right.dtype
            if dtype == "f8":
                assert found.tobytes() == right.tobytes()
            scale = np.abs(x).max(initial=0.0) * np.abs(w).max(initial=0.0) * max(1, sizes[1])
            np.testing.assert_allclose(found, right, atol=NEAR[dtype] * scale)
        assert kinds(compiled) == {"FusedProgram" if x.size and w.size else "Replay"}


@pytest.mark.parametrize("dtype", NEAR)
def test_special_numbers_come_through_as_in_each_product_alone(dtype):
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-310 if dtype == "f8" else 1e-40, 1.0, -2.0], dtype)
    draw = np.random.default_rng(1)
    x, w = (draw.choice(special, size=shape) for shape in ((6, 3, 2), (6, 2, 5)))
    together = function(lambda x, w: x @ w)
    with np.errstate(invalid="ignore"):
        right = expected(x, w, (False, False))
    for found in (constant(x) @ constant(w), together(constant(x), constant(w))):
        np.testing.assert_array_equal(found.numpy(), right)
        numbers = ~np.isnan(right)
        np.testing.assert_array_equal(np.signbit(found.numpy())[numbers], np.signbit(right)[numbers])


@pytest.mark.parametrize("fronts, turns", [*zip(FRONTS[:4], TURNS, strict=True)])
def test_gradients_are_those_of_a_nudge_eager_and_in_a_function(fronts, turns):
    draw = np.random.default_rng(2)
    given = operands(draw, fronts, (3, 4, 2), turns, "f8")
    weights = draw.normal(size=expected(*given, turns).shape)

    def total(x, w):
        return reduce_sum(exp(0.1 * product(turns)(x, w)) * constant(weights))

    def slopes(x, w):
        with GradientTape() as tape:
            tape_of = total(x, w)
        return tuple(tape.gradient(tape_of, [x, w]))

    arrays = [constant(a) for a in given]
    for found in (slopes(*arrays), function(slopes)(*arrays)):
        for k, slope in enumerate(found):
            assert slope.shape == given[k].shape
            toward = draw.normal(size=slope.shape)
            ends = []
            for step in (1e-5, -1e-5):
                moved = [a + step * toward if n == k else a for n, a in enumerate(given)]
                ends.append(float(total(*map(constant, moved))))
            assert (slope.numpy() * toward).sum() == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-6, abs=1e-8)


def test_a_readers_kernel_runs_matrix_by_matrix_in_a_function_too():
    seen, draw = [], np.random.default_rng(3)
    for fronts, turns in zip(FRONTS[:4], TURNS, strict=True):
        x, w = operands(draw, fronts, (3, 5, 4), turns, "f8")
        f = function(product(turns))
        right = f(constant(x), constant(w)).numpy()
        with use("matmul", "cpu", lambda out, x, w: matmul_ikj(out, x, w)):
            for run in (product(turns), f):
                assert run(constant(x), constant(w)).numpy().tobytes() == right.tobytes()
            seen += [type(program) for program, _ in f.programs.values()]
    assert FusedReplay in seen


@pytest.mark.parametrize("dtype", NEAR)
@pytest.mark.parametrize("fronts", [((60,), (60,)), ((), (60,)), ((60,), ())])
def test_many_have_the_same_bits_for_any_number_of_threads(fronts, dtype):
    """So many are cut among two threads. (A single w is one product, unless x is transposed.)"""
    draw, before = np.random.default_rng(4), numba.get_num_threads()
    turns = (True, False)
    x, w = operands(draw, fronts, (70, 90, 65), turns, dtype)
    f, found = function(product(turns)), {0: product(turns)(constant(x), constant(w)).numpy()}
    try:
        for threads in {1, min(2, before)}:
            numba.set_num_threads(threads)
            found[threads] = f(constant(x), constant(w)).numpy()
    finally:
        numba.set_num_threads(before)
    ((program, _),) = f.programs.values()
    assert type(program) is FusedProgram and program.most_threads == 2
    for each in found.values():
        np.testing.assert_allclose(each, turned(x) @ w, atol=1e-4 if dtype == "f4" else 1e-12)
    if dtype == "f8":
        assert len({each.tobytes() for each in found.values()}) == 1


def test_what_does_not_fit_is_refused_with_both_shapes():
    differ = r"x is \(2, 3, 4\) and w is \(3, 4, 5\): the axes \(2,\) and \(3,\) differ; use broadcast_to"
    for x, w, told in (
        ((2, 3, 4), (3, 4, 5), differ),
        ((2, 3, 4), (2, 5, 4), "inner sizes 4 and 5 differ"),
        ((2, 3, 4), (4,), "both need two axes"),
    ):
        with pytest.raises(ValueError, match=told):
            constant(np.ones(x)) @ constant(np.ones(w))


def test_a_result_may_lie_in_a_buffer_and_other_dtypes_are_refused():
    cpu = pool()["cpu:0"]
    x, w = (cpu.put(np.ones(shape)) for shape in ((2, 3, 4), (2, 4, 5)))
    out = cpu.alloc((2, 3, 5), "f8")
    assert launch("matmul", out, x, w) is out and (out.numpy() == 4.0).all()
    with pytest.raises(TypeError, match="all need the same dtype"):
        launch("matmul", None, x, cpu.put(np.ones((2, 4, 5), "f4")))
    with pytest.raises(TypeError, match="a transpose"):
        launch("matmul", None, x, w, transpose_x=2)

"""Products as fused programs: of any size, transposed or not, in parts on threads, and the sums of many matrices."""

import itertools

import numpy as np
import pytest
from back_ends import choose, kinds

from levels_more.compiler.fused import backend
from levels_more.low_level import GradientTape, apply, constant, eager, function, reduce_sum

SIZES = [(50, 32, 96), (50, 33, 70), (100, 16, 64), (3, 64, 32), (13, 5, 3), (30, 47, 16), (30, 16, 1)]  # m, k, n
TURNS = [*itertools.product((False, True), repeat=2)]
NEAR = {"f4": 1e-5, "f8": 1e-14}


@pytest.fixture(params=[1, 3], ids=["one thread", "three threads"])
def threads(request, monkeypatch):
    """All products are programs, which so many threads share however small they are."""
    choose(monkeypatch, "FusedProgram")
    monkeypatch.setattr(backend, "WORTH_SHARING", 1)
    monkeypatch.setattr(backend, "most_threads", lambda graph: request.param)
    monkeypatch.setattr(backend, "threads_for", lambda most: most)


def operands(fronts, sizes, turns, dtype):
    """x and w of normal numbers, as they are given: transposed or not."""
    draw = np.random.default_rng(0)
    m, k, n = sizes
    shapes = [(m, k)[:: -1 if turns[0] else 1], (k, n)[:: -1 if turns[1] else 1]]
    return [draw.normal(size=(*front, *shape)).astype(dtype) for front, shape in zip(fronts, shapes, strict=True)]


def product(x, w, turns):
    return apply("matmul", x, w, transpose_x=turns[0], transpose_w=turns[1])


def expected(x, w, turns):
    """By the record: each sum starts at 0.0 and runs upwards, and each product and each sum is rounded."""
    x, w = (np.swapaxes(a, -1, -2) if turn else a for a, turn in zip((x, w), turns, strict=True))
    total = np.zeros((*x.shape[:-1], w.shape[-1]), x.dtype)
    for k in range(x.shape[-1]):
        total = total + x[..., :, k, None] * w[..., k, None, :]
    return total


@pytest.mark.parametrize("dtype", NEAR)
@pytest.mark.parametrize("turns", TURNS)
@pytest.mark.parametrize("sizes", SIZES)
def test_a_product_of_any_size_is_that_of_the_record(sizes, turns, dtype, threads):
    x, w = operands([(), ()], sizes, turns, dtype)
    compiled = function(lambda x, w: product(x, w, turns))
    found = compiled(constant(x), constant(w)).numpy()
    right = expected(x, w, turns)
    assert kinds(compiled) == {"FusedProgram"}
    np.testing.assert_allclose(found, right, atol=NEAR[dtype] * sizes[1])
    if dtype == "f8":
        assert found.tobytes() == right.tobytes()


@pytest.mark.parametrize("dtype", NEAR)
@pytest.mark.parametrize("turns", TURNS)
@pytest.mark.parametrize("front", [(1,), (6,), (2, 3)])
def test_the_sum_of_many_matrices_is_one_program_and_is_that_op_by_op(front, turns, dtype, threads):
    for sizes in SIZES:
        x, w = operands([front, front], sizes, turns, dtype)
        axes = tuple(range(len(front)))
        compiled = function(lambda x, w, axes=axes: reduce_sum(product(x, w, turns), axis=axes))
        found = compiled(constant(x), constant(w)).numpy()
        right = np.zeros(found.shape, dtype)
        for matrix in expected(x, w, turns).reshape(-1, *found.shape):
            right = right + matrix
        ((program, _),) = compiled.programs.values()
        assert [*map(repr, program.units)] == ["matmul reduce_sum"]
        np.testing.assert_allclose(found, right, atol=NEAR[dtype] * sizes[1] * len(x))
        if dtype == "f8":
            assert found.tobytes() == right.tobytes()


def test_the_matrices_stay_where_more_is_read_of_them_or_less_is_added(threads):
    x, w = (constant(a) for a in operands([(2, 3), (2, 3)], (4, 5, 6), (False, False), "f8"))
    for read in (
        lambda y: (y, reduce_sum(y, axis=(0, 1))),
        lambda y: (reduce_sum(y, axis=(0, 1)), reduce_sum(y * y)),
        lambda y: (reduce_sum(y, axis=0), reduce_sum(w, axis=(0, 1))),
        lambda y: (reduce_sum(y, axis=1), x),
        lambda y: (reduce_sum(y), x),
    ):
        compiled = function(lambda x, w, read=read: read(product(x, w, (False, False))))
        found = compiled(x, w)
        with eager():
            right = read(product(x, w, (False, False)))
        assert [a.numpy().tobytes() for a in found] == [b.numpy().tobytes() for b in right]
        ((program, _),) = compiled.programs.values()
        assert "matmul reduce_sum" not in map(repr, program.units)


@pytest.mark.parametrize("dtype", NEAR)
def test_the_gradient_of_weights_that_meet_many_matrices(dtype, threads):
    """Its units add the matrices up as they are made. In float64 it has the bits of op by op."""
    x, w = operands([(6,), ()], (20, 32, 40), (False, False), dtype)

    def slope(x, w):
        with GradientTape() as tape:
            total = reduce_sum((x @ w) * (x @ w))
        return tape.gradient(total, w)

    compiled = function(slope)
    found = compiled(constant(x), constant(w)).numpy()
    with eager():
        right = slope(constant(x), constant(w)).numpy()
    ((program, _),) = compiled.programs.values()
    assert "matmul reduce_sum" in map(repr, program.units)
    wide = x.astype("f8")
    np.testing.assert_allclose(found, 2 * np.einsum("bij,bik->jk", wide, wide @ w), rtol=1e-3, atol=1e-2)
    if dtype == "f8":
        assert found.tobytes() == right.tobytes()

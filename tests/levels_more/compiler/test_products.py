"""Products as fused programs: of any size, transposed or not, in parts on threads, and the sums of many matrices."""

import numpy as np
import pytest
from back_ends import on_threads
from products import NEAR, TURNS, expected, operands, product

from levels_more.low_level import GradientTape, constant, eager, function, reduce_sum

SIZES = [(50, 32, 96), (50, 33, 70), (100, 16, 64), (3, 64, 32), (13, 5, 3), (30, 47, 16), (30, 16, 1)]  # m, k, n


@pytest.fixture(params=[1, 3], ids=["one thread", "three threads"])
def threads(request, monkeypatch):
    """All products are programs, which so many threads share however small they are."""
    on_threads(monkeypatch, request.param)


@pytest.mark.parametrize("dtype", NEAR)
@pytest.mark.parametrize("turns", TURNS)
@pytest.mark.parametrize("front", [(), (1,), (6,), (2, 3)])
def test_a_product_or_the_sum_of_many_is_one_program_and_is_that_of_the_record(front, turns, dtype, threads):
    axes = tuple(range(len(front)))
    for sizes in SIZES:
        x, w = operands(np.random.default_rng(0), [front, front], sizes, turns, dtype)
        many = product(turns)
        compiled = function(lambda x, w, many=many: reduce_sum(many(x, w), axis=axes) if axes else many(x, w))
        found = compiled(constant(x), constant(w)).numpy()
        right = np.zeros(found.shape, dtype)
        for matrix in expected(x, w, turns).reshape(-1, *found.shape):
            right = right + matrix
        ((program, _),) = compiled.programs.values()
        assert [*map(repr, program.units)] == ["matmul reduce_sum" if front else "matmul"]
        np.testing.assert_allclose(found, right, atol=NEAR[dtype] * sizes[1] * (len(x) if front else 1))
        if dtype == "f8":
            assert found.tobytes() == right.tobytes()


def test_the_matrices_stay_where_more_is_read_of_them_or_less_is_added(threads):
    x, w = (constant(a) for a in operands(np.random.default_rng(0), [(2, 3), (2, 3)], (4, 5, 6), (False, False), "f8"))
    for read in (
        lambda y: (y, reduce_sum(y, axis=(0, 1))),
        lambda y: (reduce_sum(y, axis=(0, 1)), reduce_sum(y * y)),
        lambda y: (reduce_sum(y, axis=0), reduce_sum(w, axis=(0, 1))),
        lambda y: (reduce_sum(y, axis=1), x),
        lambda y: (reduce_sum(y), x),
    ):
        compiled = function(lambda x, w, read=read: read(product((False, False))(x, w)))
        found = compiled(x, w)
        with eager():
            right = read(product((False, False))(x, w))
        assert [a.numpy().tobytes() for a in found] == [b.numpy().tobytes() for b in right]
        ((program, _),) = compiled.programs.values()
        assert "matmul reduce_sum" not in map(repr, program.units)


@pytest.mark.parametrize("dtype", NEAR)
def test_the_gradient_of_weights_that_meet_many_matrices(dtype, threads):
    """Its units add the matrices up as they are made. In float64 it has the bits of op by op."""
    x, w = operands(np.random.default_rng(0), [(6,), ()], (20, 32, 40), (False, False), dtype)

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

"""Names that readers of the books reach for: tensors made of nothing, drawn, cut, chosen; bends, schedules, states."""

import math

import numpy as np
import pytest
from at_once import in_threads
from back_ends import CHOICES, choose
from fresh import printed
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from levels_more import low_level as low
from levels_more.hardware import PLACE, pool
from levels_more.low_level import GradientTape, Variable, constant, function, normal, reduce_sum, set_seed, uniform
from levels_more.mid_level import INITIALIZERS

RNG = np.random.default_rng(0)


# Made of nothing.


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool"])
@pytest.mark.parametrize("shape", [(), 3, (0, 2), (2, 3)])
def test_zeros_and_ones_are_numpys(shape, dtype):
    for ours, like, theirs in ((low.zeros, low.zeros_like, np.zeros), (low.ones, low.ones_like, np.ones)):
        made, expected = ours(shape, dtype), theirs(shape, dtype)
        for x in (made, like(made), like(Variable(made)), like(constant(np.full(shape, 7.0)), dtype)):
            assert x.dtype == expected.dtype and x.shape == expected.shape and (x.numpy() == expected).all()
    assert low.zeros(2).dtype == np.float32


@given(st.integers(-20, 20), st.integers(-20, 20), st.integers(-5, 5).filter(bool), st.booleans())
def test_ranges_are_numpys(start, limit, delta, real):
    bounds = [n / 4 for n in (start, limit, delta)] if real else [start, limit, delta]
    made, expected = low.range(*bounds), np.arange(*bounds)
    assert made.dtype == (np.float32 if real else np.int64) and made.numpy().tolist() == expected.tolist()
    assert low.arange(*bounds, "float64").numpy().tolist() == expected.tolist()
    assert low.range(max(0, limit)).numpy().tolist() == [*range(max(0, limit))]


# Drawn by chance.


def test_what_is_drawn_has_its_mean_and_its_spread_and_begins_anew_with_a_seed():
    set_seed(7)
    first = [normal((200, 500), 3.0, 0.5, "float64").numpy(), uniform((200, 500), -2.0, 6.0, "float64").numpy()]
    set_seed(7)
    again = [normal((200, 500), 3.0, 0.5, "float64").numpy(), uniform((200, 500), -2.0, 6.0, "float64").numpy()]
    assert all((a == b).all() for a, b in zip(first, again, strict=True))
    for x, mean, spread in zip(first, (3.0, 2.0), (0.5, 8.0 / math.sqrt(12.0)), strict=True):
        assert abs(x.mean() - mean) < 5 * spread / math.sqrt(x.size) and abs(x.std() / spread - 1.0) < 0.01
    assert -2.0 <= first[1].min() < -1.99 and 5.99 < first[1].max() <= 6.0
    assert not (normal((200, 500)).numpy() == first[0]).any() and normal(3).dtype == np.float32
    set_seed(8)
    assert (normal((200, 500), 3.0, 0.5, "float64").numpy() != first[0]).all()
    assert not np.intersect1d(uniform(1000, dtype="float64").numpy(), uniform(1000, dtype="float64").numpy()).size


def test_the_first_numbers_of_a_process_are_the_same_in_every_run_and_a_seed_is_for_weights_too():
    code = "from levels.low_level import *; import levels_more.low_level as l; print(l.normal(3).numpy().tolist())"
    code += "; l.set_seed(5); import levels_more.mid_level as m; print(m.INITIALIZERS['glorot_uniform']((1, 2)))"
    set_seed(0)
    drawn = normal(3).numpy().tolist()
    set_seed(5)
    assert printed("-c", code) == f"{drawn}\n{INITIALIZERS['glorot_uniform']((1, 2))}\n"


@pytest.mark.parametrize("back_end", CHOICES)
def test_a_compiled_function_draws_anew_in_each_call_what_op_by_op_draws(back_end, monkeypatch):
    choose(monkeypatch, back_end)

    def draw(x):
        return x + normal((2, 3), dtype="float64") * uniform(3, dtype="float64")

    x, compiled = constant(np.zeros((2, 3))), function(draw)
    set_seed(3)
    expected = [draw(x).numpy() for _ in range(3)]
    set_seed(3)
    found = [compiled(x).numpy() for _ in range(3)]
    assert np.array_equal(expected, found) and (found[0] != found[1]).all()


def test_each_device_draws_the_same_numbers_by_itself():
    pool(cpus=2)
    set_seed(4)
    here = normal((2, 2))
    with low.device("cpu:1"):
        there = normal((2, 2))
        mixed = low.shuffle(constant(np.arange(5)))
    assert (here.device.name, there.device.name, mixed.device.name) == ("cpu:0", "cpu:1", "cpu:1")
    assert (here.numpy() == there.numpy()).all()
    set_seed(4)
    assert (normal((2, 2)).numpy() == here.numpy()).all()
    assert PLACE.device.name == "cpu:0"


def test_threads_draw_different_numbers():
    set_seed(0)
    drawn = in_threads(lambda k: [uniform(10, dtype="float64").numpy().tolist() for _ in range(50)], 4)
    assert len({*np.ravel(drawn)}) == 4 * 50 * 10


def test_rows_are_shuffled_and_all_are_there():
    set_seed(1)
    x = RNG.normal(size=(50, 3))
    orders = [low.shuffle(x).numpy() for _ in range(2)]
    for order in orders:
        assert sorted(map(tuple, order)) == sorted(map(tuple, x)) and (order != x).any()
    assert (orders[0] != orders[1]).any() and low.shuffle(np.empty((0, 2))).shape == (0, 2)
    counts = np.zeros((4, 4))
    for _ in range(2000):
        counts[np.arange(4), low.shuffle(np.arange(4)).numpy()] += 1
    assert (np.abs(counts - 500) < 100).all()  # five standard deviations


# Elsewhere, and chosen.


@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_elus_slope_keeps_its_digits_far_below_0(dtype):
    x = np.array([-80.0, -40.0, -20.0, -5.0, -1.0, -0.5, -1e-9, 0.0, 1e-9, 1.0, 1e3], dtype)
    for alpha in (1.0, 1.5):
        w = Variable(x)
        with GradientTape() as tape:
            total = reduce_sum(low.nn.elu(w, alpha))
        (slope,) = tape.gradient(total, [w])
        expected = [1.0 if v > 0.0 else alpha * math.exp(v) for v in x.astype(float)]
        np.testing.assert_allclose(slope.numpy(), expected, 3e-7 if dtype == "f4" else 1e-15)


def test_an_absolute_value_and_a_square_of_whole_numbers_stay_whole():
    x = constant(np.array([-3, 0, 2**53 + 1, -(2**53) - 1]))
    assert low.abs(x).numpy().tolist() == [3, 0, 2**53 + 1, 2**53 + 1]
    assert low.square(x[:2]).numpy().tolist() == [9, 0] and low.abs(x).dtype == np.int64
    assert np.signbit(low.abs(constant(np.array([-0.0]))).numpy()).tolist() == [False]


@settings(max_examples=20, deadline=None)
@given(arrays.arrays(bool, arrays.array_shapes(max_dims=3, min_side=0, max_side=4)), st.data())
def test_any_and_all_are_numpys(x, data):
    axis = data.draw(st.sampled_from([None, *range(-x.ndim, x.ndim)]))
    keep = data.draw(st.booleans())
    for ours, theirs in ((low.reduce_any, np.any), (low.reduce_all, np.all)):
        found, expected = ours(constant(x), axis, keep), theirs(x, axis, keepdims=keep)
        assert found.dtype == bool and found.shape == expected.shape and (found.numpy() == expected).all()
        assert (function(lambda t, f=ours: f(t, axis, keep))(constant(x)).numpy() == expected).all()


@settings(max_examples=20, deadline=None)
@given(arrays.array_shapes(max_dims=3, min_side=0, max_side=4), st.data())
def test_a_mask_chooses_as_in_numpy(shape, data):
    x = np.arange(math.prod(shape), dtype="f8").reshape(shape)
    mask = data.draw(arrays.arrays(bool, shape[: data.draw(st.integers(1, len(shape)))]))
    for index in (mask, constant(mask), Variable(constant(mask))):
        assert (constant(x)[index].numpy() == x[mask]).all() and constant(x)[index].shape == x[mask].shape
    w = Variable(x)
    with GradientTape() as tape:
        total = reduce_sum(w[mask] ** 2)  # of squares, so that what is linear shows, too
    slope = tape.gradient(total, w).numpy()
    assert (slope == np.where(mask.reshape(mask.shape + (1,) * (x.ndim - mask.ndim)), 2 * x, 0)).all()


def test_masks_are_joined_as_in_numpy():
    x = np.array([[-1.0, 0.5, 2.0, np.nan]])
    y = np.array([[0.0], [1.0]])
    tensor, other = constant(x), constant(y)
    for joined, wanted in (
        ((tensor > 0.0) & (tensor < other), (x > 0) & (x < y)),
        ((tensor < 0.0) | (other > 0.5), (x < 0) | (y > 0.5)),
        (~(tensor > 0.0), ~(x > 0)),
    ):
        assert joined.dtype == bool and np.array_equal(joined.numpy(), wanted)
    between = function(lambda t: low.cast((t > 0.0) & ~(t > 1.0), "float64"))
    assert np.array_equal(between(tensor).numpy(), ((x > 0) & ~(x > 1)).astype(float))
    assert np.array_equal(abs(tensor[:, :3]).numpy(), abs(x[:, :3]))
    for wrong in (lambda: tensor & tensor, lambda: (tensor > 0.0) | 1.0, lambda: ~tensor):
        with pytest.raises(TypeError, match="expected bools"):
            wrong()


def test_a_mask_of_comparisons_and_argmin_by_both_names():
    x = constant(np.array([[3.0, -1.0], [np.nan, 2.0]]))
    assert x[x > 0.0].numpy().tolist() == [3.0, 2.0] and low.equal(x, x).numpy().tolist() == [[1, 1], [0, 1]]
    for name in ("min", "max"):
        ours = getattr(low, f"arg{name}")
        assert ours is getattr(low, f"arg_{name}")
        for axis in (None, 0, 1):
            assert ours(x, axis).numpy().tolist() == getattr(np, f"arg{name}")(x.numpy(), axis).tolist()


# Steps, and states.


def test_a_variable_steps_and_tapes_and_programs_hear_of_it():
    v = Variable(np.array([1.0, 2.0]))
    old = v.value
    v.assign_add(np.array([0.5, 0.5]))
    v.assign_sub(1.0)
    assert v.numpy().tolist() == [0.5, 1.5] and old.numpy().tolist() == [1.0, 2.0]

    @function
    def step(x):
        v.assign_sub(0.5 * x)
        v.assign_add(0.25)
        return v * 1.0

    assert step(constant(np.array([1.0, 1.0]))).numpy().tolist() == v.numpy().tolist() == [0.25, 1.25]
    with pytest.raises(ValueError, match=r"assign: the variable is float64\[2\].*, the value float64\[3, 2\]"):
        v.assign_add(np.ones((3, 2)))


def test_one_number_takes_a_form_and_several_are_told():
    for x in (constant([1.25]), Variable(np.array(1.25))):
        assert f"{x:.1f} {x:>7.2f}" == "1.2    1.25" and f"{x}" == repr(x) and x.item() == 1.25
    assert f"{constant(np.array(7)):04d}" == "0007" and type(constant(7).item()) is int
    assert f"{constant([1.0, 2.0])}" == repr(constant([1.0, 2.0]))
    for ask in ("{:.2f}".format, bool, float, int):
        for x in (np.ones(2), np.ones((0, 3))):
            with pytest.raises(ValueError, match=r"a tensor of shape \(.*\) is not one number; take one of it"):
                ask(constant(x))


@pytest.mark.parametrize("operator", ["+=", "-=", "*=", "/="])
def test_a_variable_is_not_replaced_by_a_tensor_in_silence(operator):
    names = {"w": Variable([1.0, 2.0])}
    with pytest.raises(TypeError, match=r"is no step of a variable; write w.assign\(w \+ …\) or w.assign\(w - …\)"):
        exec(f"w {operator} 1.0", names)
    assert names["w"].numpy().tolist() == [1.0, 2.0]
    names = {"w": constant([1.0, 2.0])}
    exec(f"w {operator} 2.0", names)  # a tensor becomes another one, as a number does
    assert (names["w"].numpy() == {"+": [3, 4], "-": [-1, 0], "*": [2, 4], "/": [0.5, 1]}[operator[0]]).all()

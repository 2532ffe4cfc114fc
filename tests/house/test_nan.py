"""NaN, infinities and the two zeros travel as in NumPy, whichever way an op is run: by itself, compiled, or folded."""

import itertools
import math

import numpy as np
import pytest

from course import reference, tasks
from levels_more import low_level
from levels_more.low_level import constant, function

SPECIAL = (0.0, -0.0, 1.0, -1.0, 3.5, -np.inf, np.inf, np.nan)
PAIRS = np.array(list(itertools.product(SPECIAL, SPECIAL)))
ONE = {  # name -> the op, and the same in NumPy
    "relu": (low_level.nn.relu, lambda x: np.maximum(x, 0.0)),
    "exp": (low_level.exp, np.exp),
    "log": (low_level.log, np.log),
    "sqrt": (low_level.sqrt, np.sqrt),
    "tanh": (low_level.tanh, np.tanh),
    "absolute": (low_level.absolute, np.abs),
    "sin": (low_level.sin, np.sin),
    "cos": (low_level.cos, np.cos),
    "erf": (low_level.erf, np.vectorize(math.erf, otypes=["f8"])),
    "sigmoid": (low_level.nn.sigmoid, lambda x: 1.0 / (1.0 + np.exp(-x))),
    "negative": (lambda x: -x, np.negative),
    "clip": (lambda x: low_level.clip(x, -0.5, 0.5), lambda x: np.clip(x, -0.5, 0.5)),
}
TWO = {
    "add": (lambda x, y: x + y, np.add),
    "subtract": (lambda x, y: x - y, np.subtract),
    "multiply": (lambda x, y: x * y, np.multiply),
    "divide": (lambda x, y: x / y, np.divide),
    "maximum": (low_level.maximum, np.maximum),
    "minimum": (low_level.minimum, np.minimum),
    "less": (lambda x, y: x < y, np.less),
    "equal": (lambda x, y: x == y, np.equal),
}
ROWS = {  # of each row
    "reduce_sum": (lambda x: low_level.reduce_sum(x, axis=1), lambda x: np.sum(x, 1)),
    "reduce_mean": (lambda x: low_level.reduce_mean(x, axis=1), lambda x: np.mean(x, 1)),
    "reduce_max": (lambda x: low_level.reduce_max(x, axis=1), lambda x: np.max(x, 1)),
    "softmax": (
        low_level.nn.softmax,
        lambda x: (e := np.exp(x - np.max(x, 1, keepdims=True))) / np.sum(e, 1, keepdims=True),
    ),
}


def bits(array):
    """Every bit, but of NaN only that it is one."""
    array = np.where(np.isnan(array), 0.0, array) if array.dtype.kind == "f" else array
    return array.tobytes()


def ways(run, *arrays):
    """The op's results: by itself, compiled, and folded, as constants of a compiled function."""
    given = [constant(array) for array in arrays]
    yield run(*given).numpy()
    yield function(run)(*given).numpy()
    some = constant(np.ones((1,), arrays[0].dtype))
    yield function(lambda one: (run(*given), one + one)[0])(some).numpy()


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("op", [*ONE, *TWO, *ROWS])
def test_special_numbers_travel_as_in_numpy(op, dtype):
    pairs = PAIRS.astype(dtype)
    arrays = [pairs] if op in ROWS else [pairs[:, 0], pairs[:, 1]] if op in TWO else [pairs[:, 0]]
    run, of_numpy = {**ONE, **TWO, **ROWS}[op]
    with np.errstate(all="ignore"):
        expected = of_numpy(*arrays)
    found = list(ways(run, *arrays))
    for result in found:
        assert (np.isnan(result) == np.isnan(expected)).all(), op
        assert np.allclose(result, expected, rtol=1e-6, equal_nan=True)
        assert dtype == "f4" or bits(result) == bits(found[0])  # float32 may fuse, and round otherwise


@pytest.mark.quick
@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_of_two_zeros_the_positive_one_is_larger(dtype):
    zeros = np.array([[0.0, -0.0], [-0.0, 0.0], [-0.0, -0.0], [0.0, 0.0]], dtype)
    for run, negative in (
        (low_level.maximum, [False, False, True, False]),
        (low_level.minimum, [True, True, True, False]),
    ):
        for result in ways(run, zeros[:, 0], zeros[:, 1]):
            assert np.signbit(result).tolist() == negative, run
    for result in ways(ROWS["reduce_max"][0], zeros):
        assert np.signbit(result).tolist() == [False, False, True, False]


@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_a_zero_keeps_its_sign_on_the_way(dtype):
    """Through a sum, a product and a maximum: what is divided by it shows the sign."""

    def chain(x):
        return 1.0 / low_level.maximum(0.0 - x, -0.0 * (x + 1.0)), 1.0 / (x * -1.0), 1.0 / low_level.nn.relu(-x)

    x = constant(np.array([0.0, -0.0], dtype))
    with np.errstate(divide="ignore"):
        for one, other in zip(chain(x), function(chain)(x), strict=True):
            assert one.numpy().tolist() == other.numpy().tolist()


@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_a_row_that_is_no_number_shows_in_the_loss(dtype):
    """One NaN passes relu, so that no finite loss hides it: op by op, in the row program, and in the record."""
    x = np.array([[1.0, 2.0], [np.nan, 1.0]], dtype)
    w = np.ones((2, 3), dtype)

    def loss_of(x):
        return low_level.reduce_mean(low_level.nn.relu(x @ constant(w)))

    assert np.isnan(loss_of(constant(x)).numpy()) and np.isnan(function(loss_of)(constant(x)).numpy())
    nan = [[math.nan, 0.0]]
    loss, _ = reference.dnn_step(nan, [[1.0]], [v.tolist() for v in tasks.rings().weights], math.exp, math.log)
    assert math.isnan(loss)


@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_elu_has_its_limit_at_infinity(dtype):
    x = np.array((*SPECIAL, 50.0, -50.0, 1e30, -1e30, 1e-30), dtype)
    expected = np.where(x > 0.0, x, np.expm1(np.minimum(x.astype("f8"), 0.0)))
    for way in (low_level.elu, function(low_level.elu)):
        np.testing.assert_allclose(way(constant(x)).numpy(), expected, 3e-6 if dtype == "f4" else 1e-12, 1e-30)


@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_a_rest_is_exact_however_often_it_fits(dtype):
    random = np.random.default_rng(0)
    pairs = np.concatenate([PAIRS, random.uniform(0.1, 1.0, (1000, 2)) * [1e6, 0.9], [[1e10, 3.0], [-1e10, 3.0]]])
    x, y = pairs.astype(dtype).T
    with np.errstate(all="ignore"):
        expected = np.mod(x, y)
    assert bits((constant(x) % constant(y)).numpy()) == bits(expected)

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
ONE = {  # op -> the same in NumPy
    "relu": lambda x: np.maximum(x, 0.0),
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "tanh": np.tanh,
    "absolute": np.abs,
    "sin": np.sin,
    "cos": np.cos,
    "erf": np.vectorize(math.erf, otypes=["f8"]),
    "sigmoid": lambda x: 1.0 / (1.0 + np.exp(-x)),
    "negative": np.negative,
    "clip": lambda x: np.clip(x, -0.5, 0.5),
}
TWO = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "less": np.less,
    "equal": np.equal,
}
COMPOSED = {  # functions that are made of ops -> the same in NumPy, or its limit where that has none
    "elu": lambda x: np.where(x > 0.0, x, np.expm1(np.minimum(x, 0.0))),
}
ROWS = {  # of each row
    "reduce_sum": lambda x: np.sum(x, 1),
    "reduce_mean": lambda x: np.mean(x, 1),
    "reduce_max": lambda x: np.max(x, 1),
    "softmax": lambda x: (e := np.exp(x - np.max(x, 1, keepdims=True))) / np.sum(e, 1, keepdims=True),
}


def called(op):
    """The op as a function of tensors."""
    if op == "negative":
        return lambda x: -x
    if op == "clip":
        return lambda x: low_level.clip(x, -0.5, 0.5)
    if op in ROWS and op != "softmax":
        return lambda x: getattr(low_level, op)(x, axis=1)
    symbol = {"add": "__add__", "subtract": "__sub__", "multiply": "__mul__", "divide": "__truediv__"}.get(op)
    symbol = symbol or {"less": "__lt__", "equal": "__eq__"}.get(op)
    if symbol:
        return lambda x, y: getattr(x, symbol)(y)
    return getattr(low_level, op, None) or getattr(low_level.nn, op)


def bits(array):
    """Every bit, but of NaN only that it is one."""
    array = np.where(np.isnan(array), 0.0, array) if array.dtype.kind == "f" else array
    return array.tobytes()


def ways(op, *arrays):
    """The op's results: by itself, compiled, and folded, as constants of a compiled function."""
    run, given = called(op), [constant(array) for array in arrays]
    yield run(*given).numpy()
    yield function(run)(*given).numpy()
    some = constant(np.ones((1,), arrays[0].dtype))
    yield function(lambda one: (run(*given), one + one)[0])(some).numpy()


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("op", [*ONE, *TWO, *ROWS])
def test_special_numbers_travel_as_in_numpy(op, dtype):
    pairs = PAIRS.astype(dtype)
    arrays = [pairs] if op in ROWS else [pairs[:, 0], pairs[:, 1]] if op in TWO else [pairs[:, 0]]
    with np.errstate(all="ignore"):
        expected = {**ONE, **TWO, **ROWS}[op](*arrays)
    found = list(ways(op, *arrays))
    for result in found:
        assert (np.isnan(result) == np.isnan(expected)).all(), op
        assert np.allclose(result, expected, rtol=1e-6, equal_nan=True)
        assert dtype == "f4" or bits(result) == bits(found[0])  # float32 may fuse, and round otherwise


@pytest.mark.quick
@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_of_two_zeros_the_positive_one_is_larger(dtype):
    zeros = np.array([[0.0, -0.0], [-0.0, 0.0], [-0.0, -0.0], [0.0, 0.0]], dtype)
    for op, negative in (("maximum", [False, False, True, False]), ("minimum", [True, True, True, False])):
        for result in ways(op, zeros[:, 0], zeros[:, 1]):
            assert np.signbit(result).tolist() == negative, op
    for result in ways("reduce_max", zeros):
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
@pytest.mark.parametrize("name", COMPOSED)
def test_what_is_made_of_ops_has_its_limit_at_infinity(name, dtype):
    run, x = getattr(low_level, name), np.array((*SPECIAL, 50.0, -50.0, 1e30, -1e30, 1e-30), dtype)
    with np.errstate(all="ignore"):
        expected = COMPOSED[name](x.astype("f8"))
    for way in (run, function(run)):
        np.testing.assert_allclose(way(constant(x)).numpy(), expected, 3e-6 if dtype == "f4" else 1e-12, 1e-30)


@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_a_rest_is_exact_however_often_it_fits(dtype):
    random = np.random.default_rng(0)
    pairs = np.concatenate([PAIRS, random.uniform(0.1, 1.0, (1000, 2)) * [1e6, 0.9], [[1e10, 3.0], [-1e10, 3.0]]])
    x, y = pairs.astype(dtype).T
    with np.errstate(all="ignore"):
        expected = np.mod(x, y)
    assert bits((constant(x) % constant(y)).numpy()) == bits(expected)

"""A logit of -inf rules a class out. What the losses of logits give then is finite, and so are their gradients."""

import functools
import math

import numpy as np
import pytest

from levels_more import kernels, torch
from levels_more import tensorflow as tf
from levels_more.low_level import GradientTape, Variable, apply, constant, eager, function, nn
from levels_more.mid_level import BinaryCrossentropy, losses
from levels_more.torch.nn import functional as F

INF = np.inf
LOGITS = np.array([[0.0, -INF, 1.0], [2.0, 1.0, -INF], [-INF, 0.5, -INF]])
CLASSES = np.array([0, 1, 1])
ONE_HOT = np.eye(3)[CLASSES]


def log_probabilities(z):
    """log softmax(z) by NumPy, z[rows, classes] float64."""
    return z - np.log(np.exp(z - z.max(-1, keepdims=True)).sum(-1, keepdims=True)) - z.max(-1, keepdims=True)


EACH = -log_probabilities(LOGITS)[np.arange(3), CLASSES]
SLOPE = (np.exp(log_probabilities(LOGITS)) - ONE_HOT) / 3.0
DTYPES = pytest.mark.parametrize("dtype", ["float32", "float64"])


def close(found, expected, dtype):
    """Whether these numbers are those, up to the dtype's rounding; infinities and NaN stand where they should."""
    np.testing.assert_allclose(found, expected, 1e-5 if dtype == "float32" else 1e-13, 1e-7, equal_nan=True)


def slope_of(loss, z):
    """(loss(z), d loss / dz) of an array z, at once and by a compiled function: both have to agree."""
    w = Variable(z)

    def both():
        with GradientTape() as tape:
            value = loss(w)
        return value, tape.gradient(value, w)

    with eager():
        at_once = [x.numpy() for x in both()]
    compiled = [x.numpy() for x in function(both)()]
    for x, y in zip(at_once, compiled, strict=True):
        np.testing.assert_allclose(x, y, 1e-5, 1e-6, equal_nan=True)
    return at_once


@DTYPES
@pytest.mark.parametrize(
    "loss, target",
    [
        (losses.SparseCategoricalCrossentropy, CLASSES),
        (losses.CategoricalCrossentropy, ONE_HOT),
        (tf.keras.losses.SparseCategoricalCrossentropy, CLASSES),
        (tf.keras.losses.CategoricalCrossentropy, ONE_HOT),
    ],
)
def test_a_class_that_is_ruled_out_costs_nothing_and_has_no_slope(loss, target, dtype):
    target = target if target.dtype.kind == "i" else target.astype(dtype)
    value, slope = slope_of(lambda z: loss(from_logits=True)(target, z), LOGITS.astype(dtype))
    close(value, EACH.mean(), dtype)
    close(slope, SLOPE, dtype)
    assert (slope[LOGITS == -INF] == 0.0).all()


@DTYPES
def test_ops_of_level_3_give_a_number_for_each_row(dtype):
    z = LOGITS.astype(dtype)
    close(nn.log_softmax(z).numpy(), log_probabilities(LOGITS), dtype)
    close(nn.softmax(z).numpy(), np.exp(log_probabilities(LOGITS)), dtype)


@DTYPES
@pytest.mark.parametrize("target", [CLASSES, ONE_HOT])
def test_cross_entropy_of_pytorch(target, dtype):
    target = torch.tensor(target if target.dtype.kind == "i" else target.astype(dtype))
    z = torch.tensor(LOGITS.astype(dtype), requires_grad=True)
    loss = F.cross_entropy(z, target)
    loss.backward()
    close(loss.item(), EACH.mean(), dtype)
    close(z.grad.numpy(), SLOPE, dtype)
    close(torch.nn.CrossEntropyLoss(reduction="none")(z, target).detach().numpy(), EACH, dtype)
    close(F.log_softmax(z, -1).detach().numpy(), log_probabilities(LOGITS), dtype)
    close(F.softmax(z, -1).detach().numpy(), np.exp(log_probabilities(LOGITS)), dtype)


@DTYPES
@pytest.mark.parametrize("row, right", [([-INF, 0.0, 1.0], INF), ([-INF] * 3, np.nan), ([INF, 0.0, 1.0], np.nan)])
def test_what_has_no_finite_answer_is_as_in_the_real_libraries(row, right, dtype):
    """The label's own class ruled out: infinitely much. All of them, or an infinite logit: NaN, as inf - inf is."""
    z, label = np.array([row], dtype), np.array([0])
    one_hot = np.eye(3, dtype=dtype)[:1]
    with np.errstate(all="ignore"):
        for found in (
            losses.SparseCategoricalCrossentropy(from_logits=True)(label, z),
            losses.CategoricalCrossentropy(from_logits=True)(one_hot, z),
            F.cross_entropy(torch.tensor(z), torch.tensor(label)),
            F.cross_entropy(torch.tensor(z), torch.tensor(one_hot)),
        ):
            np.testing.assert_equal(float(found), right)


@DTYPES
def test_an_infinite_logit_of_two_classes_costs_nothing_where_it_is_right(dtype):
    y, z = np.array([[0.0], [1.0], [0.0], [1.0]], dtype), np.array([[-INF], [INF], [INF], [-INF]], dtype)
    with np.errstate(all="ignore"):
        each = apply("logits_crossentropy", y, z).numpy()
    assert each.ravel().tolist() == [0.0, 0.0, INF, INF]
    value, slope = slope_of(lambda w: BinaryCrossentropy(from_logits=True)(y[:2], w), z[:2])
    assert value == 0.0 and (slope == 0.0).all()


@DTYPES
def test_the_cross_entropy_of_a_far_logit_keeps_its_digits(dtype):
    """Also where exp(-|z|) is lost beside 1: in a kernel, in a compiled function and on Python's floats."""
    z = np.concatenate([np.linspace(-800, 800, 4001), np.linspace(-40, 40, 4001), [17, 40, 1e-9, -1e-9]]).astype(dtype)
    op = functools.partial(apply, "logits_crossentropy")
    for label in (0.0, 1.0):
        costs = [max(v if label == 0.0 else -v, 0.0) + math.log1p(math.exp(-abs(v))) for v in z.astype(float)]
        y = np.full(z.shape, label, dtype)
        digits, least = (3e-7, 2e-38) if dtype == "float32" else (5e-16, 1e-323)
        for act in (op, function(lambda y, z: 1.0 * op(y, z))):
            np.testing.assert_allclose(act(constant(y), constant(z)).numpy(), costs, digits, least)
        found = [kernels.elementwise.logits_crossentropy(label, v) for v in z.astype(float).tolist()]
        np.testing.assert_allclose(found, costs, 5e-16, 1e-323)


@DTYPES
def test_a_product_without_nan(dtype):
    """`multiply_no_nan`, TensorFlow's: 0 wherever the second factor is 0. Its rule is TensorFlow's, too."""
    x = np.array([INF, -INF, np.nan, 2.0, np.nan, INF], dtype)
    y = np.array([0.0, -0.0, 0.0, 3.0, 1.0, 2.0], dtype)
    with np.errstate(all="ignore"):
        found = apply("multiply_no_nan", x, y).numpy()
        np.testing.assert_array_equal(found, np.array([0.0, 0.0, 0.0, 6.0, np.nan, INF], dtype))
        a, b = Variable(x), Variable(y)
        with GradientTape() as tape:
            z = apply("multiply_no_nan", a, b)
        da, db = tape.gradient(z, [a, b])
    np.testing.assert_array_equal(da.numpy(), y)
    np.testing.assert_array_equal(db.numpy(), x)

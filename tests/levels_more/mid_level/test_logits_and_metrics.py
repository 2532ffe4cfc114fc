"""Logits beside accuracy, a bend before a loss that bends itself, a softmax of one unit: right, or refused with the cure."""

import math

import numpy as np
import pytest

from levels_more import mid_level
from levels_more import tensorflow as tf
from levels_more.high_level import Model, Sequential
from levels_more.low_level import nn
from levels_more.mid_level import Dense, losses, metrics

K = tf.keras
DRAW = np.random.default_rng(0)
X = DRAW.normal(size=(200, 2)).astype("f4")
Y = (X @ [1.0, -0.5] + DRAW.normal(size=200) > 0.2).astype(int)
KINDS = {"levels": (Sequential, Dense, mid_level, losses), "keras": (K.Sequential, K.layers.Dense, K.layers, K.losses)}
SPELLINGS = pytest.mark.parametrize("spelling", KINDS)


def of_names(spelling, names, y=Y, units=1, loss="BinaryCrossentropy"):
    """(the logits of a trained model [rows, units], {metric: what `evaluate` says of it})"""
    sequential, dense, _, rooms = KINDS[spelling]
    model = sequential([dense(units)])
    model.compile("sgd", getattr(rooms, loss)(from_logits=True), metrics=names)
    model.fit(X, y, epochs=2, verbose=0)
    return model.predict(X), dict(zip(names, model.evaluate(X, y, verbose=0)[1:], strict=True))


def area(score, y):
    """The area under the ROC curve: the share of pairs of a 1 and a 0 in which the 1 scores more (Hanley and McNeil, 1982)."""
    return (score[y == 1][:, None] > score[y == 0]).mean()


@SPELLINGS
def test_metrics_by_name_take_logits_where_the_loss_does(spelling):
    names = "accuracy binary_accuracy precision recall binary_crossentropy auc"
    z, found = of_names(spelling, [*names.split(), *["acc"] * (spelling == "keras")])
    z, p = z[:, 0].astype("f8"), 1.0 / (1.0 + np.exp(-z[:, 0].astype("f8")))
    right = {
        "accuracy": ((z > 0) == Y).mean(),
        "precision": Y[z > 0].mean() if (z > 0).any() else 0.0,
        "recall": (z > 0)[Y == 1].mean(),
        "binary_crossentropy": -np.log(np.where(Y == 1, p, 1.0 - p)).mean(),
    }
    right["binary_accuracy"] = right["acc"] = right["accuracy"]
    for name in found.keys() - {"auc"}:
        assert found[name] == pytest.approx(right[name], abs=1e-5), name
    assert found["auc"] == pytest.approx(area(z, Y), abs=0.01)


@SPELLINGS
@pytest.mark.parametrize("loss", ["CategoricalCrossentropy", "SparseCategoricalCrossentropy"])
def test_accuracy_of_several_classes_is_that_of_the_largest_logit(loss, spelling):
    classes = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0)
    y = np.eye(3)[classes] if loss[0] == "C" else classes
    z, found = of_names(spelling, ["accuracy"], y, 3, loss)
    assert found["accuracy"] == pytest.approx((z.argmax(1) == classes).mean(), abs=1e-6)
    if loss[0] == "C":  # a threshold on probabilities is one on the softmax
        z, found = of_names(spelling, ["binary_accuracy"], y, 3, loss)
        p = np.exp(z) / np.exp(z).sum(1, keepdims=True)
        assert found["binary_accuracy"] == pytest.approx(((p > 0.5) == y).mean(), abs=1e-6)


class Own(Model):
    """A model whose `call` bends at the end."""

    def __init__(self, bend):
        super().__init__()
        self.inner, self.bend = Dense(3), bend

    def call(self, x):
        return self.bend(self.inner(x))


@SPELLINGS
def test_a_bend_before_a_loss_that_bends_is_refused(spelling):
    sequential, dense, room, rooms = KINDS[spelling]
    binary, sparse = rooms.BinaryCrossentropy, rooms.SparseCategoricalCrossentropy
    one_hot = np.eye(3)[Y]
    cases = [
        (lambda: sequential([dense(1, "sigmoid")]), binary, Y, "sigmoid"),
        (lambda: sequential([dense(1), room.Activation("sigmoid")]), binary, Y, "sigmoid"),
        (lambda: sequential([dense(3, "softmax")]), sparse, Y, "softmax"),
        (lambda: sequential([dense(3, "sigmoid")]), sparse, Y, "sigmoid"),
        (lambda: sequential([dense(3, "softmax")]), rooms.CategoricalCrossentropy, one_hot, "softmax"),
        *[(lambda: Own(nn.softmax), sparse, Y, "softmax")] * (spelling == "levels"),
    ]
    for make, loss, y, bend in cases:
        told = f"from_logits=True, but y_pred is a {bend}, .*leave that activation away"
        for act in ("fit", "evaluate"):
            model = make()
            model.compile("sgd", loss(from_logits=True))
            with pytest.raises(ValueError, match=told):
                getattr(model, act)(X, y, verbose=0)


@SPELLINGS
def test_no_bend_or_one_that_is_undone_is_taken(spelling):
    sequential, dense, room, rooms = KINDS[spelling]
    for layers in ([dense(1)], [dense(4, "sigmoid"), dense(1)], [dense(1, "tanh")], [dense(1, "relu")]):
        model = sequential(layers)
        model.compile("sgd", rooms.BinaryCrossentropy(from_logits=True))
        assert np.isfinite(model.fit(X, Y, epochs=1, verbose=0).history["loss"]).all()
    model = sequential([dense(3), room.Activation("log_softmax")])  # its softmax is that of the logits
    model.compile("sgd", rooms.SparseCategoricalCrossentropy(from_logits=True))
    assert np.isfinite(model.fit(X, Y, epochs=1, verbose=0).history["loss"]).all()


@SPELLINGS
def test_a_softmax_of_one_unit_is_refused(spelling):
    sequential, dense, room, _ = KINDS[spelling]
    cure = "a softmax over one unit is always 1; use a sigmoid, or 2 units"
    for activation in ("softmax", nn.softmax, tf.nn.softmax, "log_softmax"):
        with pytest.raises(ValueError, match=f"^Dense: {cure}"):
            dense(1, activation)
        assert dense(2, activation)(X).shape == (200, 2)
    with pytest.raises(ValueError, match=f"^Activation: {cure}"):
        sequential([dense(1), room.Activation("softmax")])(X)
    scores = room.Activation("softmax")(np.zeros((4, 3, 1), "f4"))  # of one key, in attention
    assert (scores.numpy() == 1.0).all()


# Whole numbers of any width


@pytest.mark.parametrize("kind", ["uint8", "int32", "list of uint8", "Series"])
def test_labels_and_weights_are_whole_numbers_of_any_width(kind):
    def given(numbers):
        if kind == "Series":
            return pytest.importorskip("pandas").Series(numbers, dtype="uint8")
        return [*map(np.uint8, numbers)] if kind == "list of uint8" else np.array(numbers, kind)

    p = np.float32([[0.25, 0.75], [0.5, 0.5]])
    y = np.float32([1.0, 2.0])
    nats = [-math.log(0.75), -math.log(0.5)]
    each = losses.SparseCategoricalCrossentropy(reduction="none")(given([1, 0]), p, given([1, 3])).numpy()
    assert float(losses.MeanSquaredError()(given([3, 2]), y)) == 2.0 and each == pytest.approx([nats[0], 3 * nats[1]])
    assert float(losses.MeanSquaredError()([1.0, 4.0], y, given([1, 3]))) == 6.0
    assert float(losses.SparseCategoricalCrossentropy()(given([1, 0]), p)) == pytest.approx(sum(nats) / 2)
    assert float(losses.BinaryCrossentropy()(given([1, 0]), p[:, 1])) == pytest.approx(sum(nats) / 2)
    assert metrics.SparseCategoricalAccuracy()(given([1, 1]), p, sample_weight=given([1, 3])) == 0.25
    assert metrics.BinaryAccuracy()(given([0, 0]), p[:, 1]) == 0.5
    assert metrics.Mean()(given([1, 4]), given([3, 1])) == 1.75

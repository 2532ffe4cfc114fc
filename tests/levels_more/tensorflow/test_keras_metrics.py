"""Precision, Recall and AUC of Keras. The numbers are those of Keras 3.15.1."""

import numpy as np
import pytest

import levels_more.tensorflow as tf
from levels_more.tensorflow import keras
from levels_more.tensorflow.keras import metrics

RNG = np.random.default_rng(0)
P = RNG.random((40, 1)).round(1).astype("f4")  # many ties, also at 0.5
Y = (RNG.random((40, 1)) < 0.4).astype("f4")
W = RNG.random(40).astype("f4")
SOME = [0, 1, 1, 0]

NUMBERS = {  # (y_true, y_pred, sample_weight): precision, recall, AUC
    "ties": ((Y, P, None), 0.380952388, 0.470588237, 0.367007673),
    "weights": ((Y, P, W), 0.365041941, 0.417252123, 0.322980076),
    "weights of 0": ((Y, P, W * 0), 0.0, 0.0, 0.0),
    "whole labels": ((Y.astype(int), P, None), 0.380952388, 0.470588237, 0.367007673),
    "rows and a column": ((Y[:, 0], P, None), 0.380952388, 0.470588237, 0.367007673),
    "at the threshold": ((SOME, [0.5, 0.5, 0.6, 0.4], None), 1.0, 0.5, 0.875),
    "all alike": ((SOME, [0.5] * 4, None), 0.0, 0.0, 0.5),
    "only ones": (([1, 1, 1], [0.2, 0.7, 0.9], None), 1.0, 0.666666687, 0.0),
    "only zeros": (([0, 0, 0], [0.2, 0.7, 0.9], None), 0.0, 0.0, 0.0),
    "wrong": (([0, 0, 1, 1], [1.0, 1.0, 0.0, 0.0], None), 0.0, 0.0, 0.0),
    "classes": (([0, 1, 1], [0, 1, 0], None), 1.0, 0.5, 0.75),
    "soft labels": (([0.3, 1.0], [0.7, 0.7], None), 1.0, 1.0, 0.0),
    "nothing": ((np.zeros((0, 1), "f4"), np.zeros((0, 1), "f4"), None), 0.0, 0.0, 0.0),
}
KINDS = [metrics.Precision, metrics.Recall, metrics.AUC]


@pytest.mark.quick
@pytest.mark.parametrize("k", range(3), ids=["Precision", "Recall", "AUC"])
@pytest.mark.parametrize("name", NUMBERS)
def test_they_give_keras_numbers(name, k):
    (y_true, y_pred, weights), *right = NUMBERS[name]
    found = KINDS[k]()(y_true, y_pred, sample_weight=weights)
    assert found.dtype == tf.float32 and float(found) == pytest.approx(right[k], abs=3e-7)


TWICE = [
    (metrics.Precision, 0.337038636, 0.5),
    (metrics.Recall, 0.39090085, 0.5),
    (metrics.AUC, 0.297603339, 0.416666657),
]


@pytest.mark.parametrize("kind, twice, first", TWICE)
def test_they_add_up_over_batches_and_forget(kind, twice, first):
    metric = kind()
    assert float(metric.result()) == 0.0
    metric.update_state(Y[:20], P[:20])
    metric.update_state(Y[20:], P[20:], sample_weight=W[20:])
    assert float(metric.result()) == pytest.approx(twice, abs=3e-7)
    metric.reset_state()
    assert float(metric.result()) == 0.0
    metric.update_state(Y[:7], P[:7])
    assert float(metric.result()) == pytest.approx(first, abs=3e-7)


OPTIONS = [
    (metrics.Precision, {"thresholds": 0.3}, 0.344827592),
    (metrics.Precision, {"thresholds": 0.0}, 0.400000006),
    (metrics.Recall, {"thresholds": 0.3}, 0.588235319),
    (metrics.AUC, {"num_thresholds": 5}, 0.37468034),
    (metrics.AUC, {"num_thresholds": 2}, 0.5),
]


@pytest.mark.parametrize("kind, options, right", OPTIONS)
def test_their_options_are_keras(kind, options, right):
    metric = kind(**options)
    assert float(metric(Y, P)) == pytest.approx(right, abs=3e-7)
    assert metric.name == options.get("name", kind.__name__.lower())


@pytest.mark.parametrize("spelled", [[*KINDS], ["Precision", "recall", "AUC"]], ids=["classes", "names"])
def test_a_model_counts_them(spelled):
    model = keras.Sequential([keras.layers.Dense(1, "sigmoid", kernel_initializer="ones")])
    model.compile("sgd", "binary_crossentropy", metrics=spelled)
    x, y = np.linspace(-2, 2, 12, dtype="f4")[:, None], (np.arange(12) % 2).astype("f4")[:, None]
    logs = model.evaluate(x, y, verbose=0)
    right = [0.780175686, 0.5, 0.5, 0.583333313]
    assert [*(logs.values() if isinstance(logs, dict) else logs)] == pytest.approx(right, abs=1e-6)

"""Words where numbers are expected are quoted in the error, which says how to number them; and what it says works."""

import numpy as np
import pytest

from levels import high_level as own_high
from levels import mid_level as own_mid
from levels_more import low_level
from levels_more import tensorflow as tf
from levels_more.high_level import Sequential
from levels_more.mid_level import Dataset, Dense, MeanSquaredError, SparseCategoricalAccuracy

X = np.random.default_rng(0).normal(size=(6, 2)).astype("f4")
WORDS = ["a", "b", "c", "a", "b", "c"]
LABELS = {
    "list": WORDS,
    "array": np.array(WORDS),
    "objects": np.array(WORDS, object),
    "bytes": np.array(WORDS, "S"),
}
Y_HOLDS = r"^y holds words \(b?'a', b?'b', b?'c'\); number them with np\.unique\(y, return_inverse=True\)\[1\], or use DNNClass"
X_HOLDS = r"^x holds words \('a', .*make a column of 0 and 1 for each word, .*np\.unique\(column\).*DenseFeatures"


def made(spelling="levels"):
    """A compiled classifier of three classes."""
    keras = spelling == "keras"
    model = tf.keras.Sequential([tf.keras.layers.Dense(3, "softmax")]) if keras else Sequential([Dense(3, "softmax")])
    model.compile("sgd", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


@pytest.mark.parametrize("spelling", ["levels", "keras"])
def test_labels_that_are_words(spelling):
    pandas = pytest.importorskip("pandas")
    for y in (*LABELS.values(), pandas.Series(WORDS), pandas.Series(WORDS).astype("category")):
        with pytest.raises(TypeError, match=Y_HOLDS):
            made(spelling).fit(X, y, verbose=0)
    with pytest.raises(TypeError, match=Y_HOLDS):
        made(spelling).evaluate(X, WORDS, verbose=0)
    with pytest.raises(TypeError, match=Y_HOLDS):
        made(spelling).fit(X, np.arange(6) % 3, validation_data=(X, WORDS), verbose=0)


def test_labels_in_a_dataset_that_are_words():
    """A Dataset may hold text, for feature columns; a model says what it wants of it."""
    with pytest.raises(TypeError, match=r"y holds words \('a', 'b'"):
        made().fit(Dataset.from_tensor_slices((X, WORDS)).batch(2), verbose=0)
    told = r"expected numbers or text.*make an array of text of it, such as np.array\(x, str\)"
    with pytest.raises(TypeError, match=told):
        Dataset.from_tensor_slices((X, LABELS["objects"]))


@pytest.mark.parametrize("spelling", ["levels", "keras"])
def test_rows_that_are_words(spelling):
    rows = [[word, 1.0] for word in WORDS]
    model = made(spelling)
    model.fit(X, np.arange(6) % 3, verbose=0)
    for x in (rows, np.array(rows, object), WORDS, {"a": np.array(WORDS)}):
        with pytest.raises(TypeError, match=X_HOLDS):
            made(spelling).fit(x, np.arange(6) % 3, verbose=0)
        with pytest.raises(TypeError, match=X_HOLDS):
            model.predict(x)
    with pytest.raises(TypeError, match=r"^sample_weight holds words \('a', .*give a number for each row"):
        made(spelling).fit(X, np.arange(6) % 3, sample_weight=WORDS, verbose=0)


def test_metrics_losses_tensors_and_the_core():
    model, x, told = own_high.Sequential([own_mid.Dense(1, "sigmoid")]), X, np.ones((6, 3), "f4")
    model.compile("sgd", "mse")
    for y in LABELS.values():
        for call in (
            lambda y=y: SparseCategoricalAccuracy().update_state(y, told),
            lambda y=y: tf.keras.metrics.SparseCategoricalAccuracy().update_state(y, told),
            lambda y=y: MeanSquaredError()(y, told[:, 0]),
            lambda y=y: low_level.constant(y),
            lambda y=y: model.fit(x, y),
            lambda y=y: model.evaluate(x, y),
            lambda y=y: own_mid.Dataset.from_tensor_slices((x, y)),
        ):
            with pytest.raises(
                TypeError, match=r"these are words \(b?'a', b?'b', b?'c'\): number them with np\.unique\(y, return_inv"
            ):
                call()

"""Words where numbers are expected are quoted in the error, which says how to number them; and what it says works."""

import subprocess
import sys

import numpy as np
import pytest

from levels_more import low_level
from levels_more import tensorflow as tf
from levels_more.high_level import Sequential
from levels_more.mid_level import Dataset, Dense, MeanSquaredError, SparseCategoricalAccuracy

X = np.random.default_rng(0).normal(size=(6, 2)).astype("f4")
WORDS = ["a", "b", "c", "a", "b", "c"]
LABELS = {
    "list": WORDS,
    "tuple": tuple(WORDS),
    "array": np.array(WORDS),
    "objects": np.array(WORDS, object),
    "column": np.array(WORDS)[:, None],
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
@pytest.mark.parametrize("kind", LABELS)
def test_labels_that_are_words(kind, spelling):
    y = LABELS[kind]
    with pytest.raises(TypeError, match=Y_HOLDS):
        made(spelling).fit(X, y, verbose=0)
    with pytest.raises(TypeError, match=Y_HOLDS):
        made(spelling).evaluate(X, y, verbose=0)
    with pytest.raises(TypeError, match=Y_HOLDS):
        made(spelling).fit(X, np.arange(6) % 3, validation_data=(X, y), verbose=0)


@pytest.mark.parametrize("spelling", ["levels", "keras"])
@pytest.mark.parametrize("kind", ["list", "array"])
def test_labels_in_a_dataset_that_are_words(kind, spelling):
    """A Dataset may hold text, for feature columns; a model says what it wants of it."""
    data = (Dataset if spelling == "levels" else tf.data.Dataset).from_tensor_slices((X, LABELS[kind])).batch(2)
    with pytest.raises(TypeError, match=r"y holds words \('a', 'b'"):
        made(spelling).fit(data, verbose=0)
    with pytest.raises(
        TypeError, match=r"expected numbers or text.*make an array of text of it, such as np.array\(x, str\)"
    ):
        Dataset.from_tensor_slices((X, LABELS["objects"]))


def test_a_series_of_words():
    pandas = pytest.importorskip("pandas")
    for series in (pandas.Series(WORDS), pandas.Series(WORDS).astype("category")):
        with pytest.raises(TypeError, match=Y_HOLDS):
            made().fit(X, series, verbose=0)


@pytest.mark.parametrize("spelling", ["levels", "keras"])
def test_rows_that_are_words(spelling):
    rows = [[word, 1.0] for word in WORDS]
    for x in (rows, np.array(rows), np.array(rows, object), WORDS, {"a": np.array(WORDS)}):
        with pytest.raises(TypeError, match=X_HOLDS):
            made(spelling).fit(x, np.arange(6) % 3, verbose=0)
        model = made(spelling)
        model.fit(X, np.arange(6) % 3, verbose=0)
        with pytest.raises(TypeError, match=X_HOLDS):
            model.predict(x)
    with pytest.raises(TypeError, match=r"^sample_weight holds words \('a', .*give a number for each row"):
        made(spelling).fit(X, np.arange(6) % 3, sample_weight=WORDS, verbose=0)


@pytest.mark.parametrize("kind", LABELS)
def test_metrics_losses_and_tensors_of_words(kind):
    y, p = LABELS[kind], np.ones((6, 3), "f4")
    for call in (
        lambda: SparseCategoricalAccuracy().update_state(y, p),
        lambda: tf.keras.metrics.SparseCategoricalAccuracy().update_state(y, p),
        lambda: MeanSquaredError()(y, p[:, 0]),
        lambda: low_level.constant(y),
    ):
        with pytest.raises(
            TypeError, match=r"these are words \(b?'a', b?'b', b?'c'\): number them with np\.unique\(y, return_inv"
        ):
            call()


def test_the_core_alone():
    code = """
import numpy as np
from levels.high_level import Sequential
from levels.mid_level import Dataset, Dense
x, words = np.ones((3, 2)), np.array(["a", "b", "a"], object)
model = Sequential([Dense(1, "sigmoid")])
model.compile("sgd", "mse")
for call in (lambda: model.fit(x, words), lambda: model.evaluate(x, words), lambda: Dataset.from_tensor_slices((x, words))):
    try:
        call()
    except TypeError as error:
        print("these are words ('a', 'b'): number them with np.unique(y, return_inverse=True)[1]" in str(error))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.split() == ["True"] * 3, done.stderr

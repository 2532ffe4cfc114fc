"""A model that nobody has built takes the dtype of the rows, and so do their weights: as StandardScaler's float64."""

import numpy as np
import pytest

from levels_more import tensorflow as tf
from levels_more.high_level import Sequential
from levels_more.mid_level import SGD, Dataset, Dense

DRAW = np.random.default_rng(0)
ROWS, WEIGHTS = DRAW.normal(size=(40, 3)), DRAW.uniform(0.5, 2.0, 40)
CLASSES = np.arange(40) % 3
LOSSES = {  # loss -> (units, activation, targets)
    "sparse_categorical_crossentropy": (3, "softmax", CLASSES),
    "categorical_crossentropy": (3, "softmax", np.eye(3)[CLASSES]),
    "binary_crossentropy": (1, "sigmoid", CLASSES % 2),
    "mse": (1, None, 2.0 * ROWS.sum(1)),
}
SPELLINGS = {
    "levels": (Sequential, Dense, SGD),
    "keras": (tf.keras.Sequential, tf.keras.layers.Dense, tf.keras.optimizers.SGD),
}


def made(spelling, loss, built=None):
    """A compiled model of that spelling, which is built for rows of that dtype, or not at all."""
    sequential, dense, sgd = SPELLINGS[spelling]
    units, activation, _ = LOSSES[loss]
    model = sequential([dense(units, activation, kernel_initializer="zeros", dtype=built)])
    model.compile(sgd(0.0625), loss)
    if built:
        model.build((None, 3), built) if spelling == "levels" else model.build((None, 3))
    return model


def close(found, expected):
    """Whether these are the same numbers, up to the rounding of float32."""
    np.testing.assert_allclose(found, expected, 1e-4, 1e-5)


@pytest.mark.parametrize("spelling, dtype", [("levels", "float64"), ("keras", "float32")])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_first_fit_weighs_rows_as_one_of_a_model_that_was_built(loss, dtype, spelling):
    x, y = ROWS.astype(dtype), LOSSES[loss][2]
    by_class = {} if y.dtype.kind == "f" and y.ndim == 1 else {"class_weight": {0: 0.5, 1: 2.0, 2: 1.0}}
    for how in ({"sample_weight": WEIGHTS}, {"sample_weight": WEIGHTS.astype(dtype)}, by_class):
        told = []
        for model in (made(spelling, loss), made(spelling, loss, dtype)):
            options = how | {"epochs": 2, "batch_size": 8, "verbose": 0, "shuffle": False}
            first = model.fit(x, y, **options).history["loss"]
            told.append(first + model.fit(x, y, **options).history["loss"])  # the second finds a dtype
            assert spelling == "keras" or model.predict(x).dtype == dtype
        close(*told)


def test_a_dataset_of_rows_and_weights():
    told = []
    for built in (None, "float64"):
        model = made("levels", "sparse_categorical_crossentropy", built)
        data = Dataset.from_tensor_slices((ROWS, CLASSES, WEIGHTS)).batch(8)
        told.append(model.fit(data, epochs=2, verbose=0).history["loss"])
    close(*told)

"""A model that nobody has built takes the dtype of the rows, and so do their weights: as StandardScaler's float64."""

import numpy as np
import pytest

from levels_more.high_level import Sequential
from levels_more.mid_level import SGD, Dataset, Dense

DRAW = np.random.default_rng(0)
ROWS, WEIGHTS = DRAW.normal(size=(40, 3)), DRAW.uniform(0.5, 2.0, 40)
CLASSES = np.arange(40) % 3
LOSSES = {  # loss -> (units, activation, targets)
    "sparse_categorical_crossentropy": (3, "softmax", CLASSES),
    "binary_crossentropy": (1, "sigmoid", CLASSES % 2),
    "mse": (1, None, 2.0 * ROWS.sum(1)),
}
WAYS = {  # how rows get weights: what `fit` is given
    "rows": lambda y: ((ROWS, y), {"sample_weight": WEIGHTS, "batch_size": 8}),
    "classes": lambda y: ((ROWS, np.floor(y)), {"class_weight": {0: 0.5, 1: 2.0, 2: 1.0}, "batch_size": 8}),
    "a dataset": lambda y: ((Dataset.from_tensor_slices((ROWS, y, WEIGHTS)).batch(8),), {}),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("loss", LOSSES)
def test_the_first_fit_weighs_rows_as_one_of_a_model_that_was_built(loss, way):
    units, activation, y = LOSSES[loss]
    told = []
    for built in (False, True):
        model = Sequential([Dense(units, activation, kernel_initializer="zeros")])
        model.compile(SGD(0.0625), loss)
        if built:
            model.build((None, 3), "float64")
        given, options = WAYS[way](y)
        first, second = (model.fit(*given, shuffle=False, verbose=0, **options).history["loss"] for _ in "12")
        told.append(first + second)  # the second finds a dtype
        assert model.predict(ROWS).dtype == np.float64
    np.testing.assert_allclose(*told, 1e-13)

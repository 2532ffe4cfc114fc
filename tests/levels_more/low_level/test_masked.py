"""A masked array is refused at every door: nothing here could keep its mask."""

import numpy as np
import pytest

from levels.hardware.tasks import linear_regression
from levels_more.hardware import pool
from levels_more.high_level import Sequential
from levels_more.low_level import Variable, constant, function
from levels_more.mid_level import Dataset, Dense, DenseFeatures, numeric_column

X = np.ma.masked_array(np.arange(6.0).reshape(3, 2), mask=[[0, 1], [0, 0], [0, 0]])
Y = np.ones((3, 1))


def model():
    net = Sequential([Dense(1)])
    net.compile("sgd", "mse")
    return net


DOORS = {
    "put": lambda: pool()["cpu:0"].put(X),
    "task": lambda: linear_regression(X, Y, [np.ones((2, 1)), np.ones((1, 1))], np.array([[0, 1]])),
    "constant": lambda: constant(X),
    "variable": lambda: Variable(X),
    "a list of it": lambda: constant([X[0], [1.0, 2.0]]),
    "a masked number": lambda: constant([1.0, np.ma.masked]),
    "numbers of rows": lambda: Dataset.from_batches(Y, Y, np.ma.masked_array([[0, 1]], mask=[[0, 1]])),
    "op": lambda: constant(np.ones((3, 2))) + X,
    "slices": lambda: Dataset.from_tensor_slices((X, Y)),
    "fit": lambda: model().fit(X, Y, verbose=0),
    "validation": lambda: model().fit(Y, Y, verbose=0, validation_data=(X[:, :1], Y)),
    "evaluate": lambda: model().evaluate(X, Y),
    "predict": lambda: model().predict(X),
    "call": lambda: model()(X),
    "a column of features": lambda: DenseFeatures([numeric_column("a")])({"a": X[:, 1]}),
}


@pytest.mark.parametrize("door", DOORS)
def test_a_mask_is_not_lost_in_silence(door):
    with pytest.raises(TypeError, match=r"masked array .* fill it, as in x.filled\(0\), or drop those rows"):
        DOORS[door]()


def test_masked_row_numbers_are_no_row_numbers():
    with pytest.raises(ValueError, match="over: batches are masked_array"):
        function(lambda x: x[0, 0]).over(Y, np.ma.masked_array([[0, 1]], mask=[[0, 1]]))

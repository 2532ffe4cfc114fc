"""A masked array is refused at every door: nothing here could keep its mask."""

import numpy as np
import pytest

from levels.hardware import pool
from levels.hardware.tasks import linear_regression
from levels.high_level import Sequential
from levels.low_level import Variable, constant
from levels.mid_level import DataLoader, Dataset, Dense

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
    "constant in another dtype": lambda: constant(X, "f4"),
    "variable": lambda: Variable(X),
    "op": lambda: constant(np.ones((3, 2))) + X,
    "slices": lambda: Dataset.from_tensor_slices((X, Y)),
    "batches": lambda: Dataset.from_batches(X, Y, np.array([[0, 1]])),
    "loader": lambda: DataLoader((X, Y)),
    "fit": lambda: model().fit(X, Y, verbose=0),
    "validation": lambda: model().fit(Y, Y, verbose=0, validation_data=(X[:, :1], Y)),
    "evaluate": lambda: model().evaluate(X, Y),
    "predict": lambda: model().predict(X),
    "call": lambda: model()(X),
}


@pytest.mark.parametrize("door", DOORS)
def test_a_mask_is_not_lost_in_silence(door):
    with pytest.raises(TypeError, match=r"masked array .* fill it, as in x.filled\(0\), or drop those rows"):
        DOORS[door]()

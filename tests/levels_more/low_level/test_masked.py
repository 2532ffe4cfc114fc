"""A masked array is refused at every door: nothing here could keep its mask."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from levels.hardware.tasks import linear_regression
from levels_more import mid_level
from levels_more.hardware import pool
from levels_more.high_level import Sequential
from levels_more.low_level import Variable, constant, function
from levels_more.mid_level import DataLoader, Dataset, Dense, DenseFeatures

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
    "a list of it": lambda: constant([X[0], [1.0, 2.0]]),
    "a masked number": lambda: constant([1.0, np.ma.masked]),
    "numbers of rows": lambda: Dataset.from_batches(Y, Y, np.ma.masked_array([[0, 1]], mask=[[0, 1]])),
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


def test_masked_row_numbers_are_no_row_numbers():
    with pytest.raises(ValueError, match="over: batches are masked_array"):
        function(lambda x: x[0, 0]).over(Y, np.ma.masked_array([[0, 1]], mask=[[0, 1]]))


def columns():
    """{name: a feature column of "a", alone or with "b"}"""
    words = mid_level.categorical_column_with_hash_bucket("a", 5)
    return {
        "numeric": mid_level.numeric_column("a", default_value=0.0),
        "bucketized": mid_level.bucketized_column(mid_level.numeric_column("a", default_value=0.0), [1.0, 2.0]),
        "hashed": mid_level.indicator_column(words),
        "identity": mid_level.indicator_column(mid_level.categorical_column_with_identity("a", 5)),
        "vocabulary": mid_level.indicator_column(mid_level.categorical_column_with_vocabulary_list("a", [0, 1, "x"])),
        "crossed": mid_level.indicator_column(mid_level.crossed_column(["b", "a"], 7)),
        "embedding": mid_level.embedding_column(words, 2),
    }


def forms(values, mask):
    """The same column, some of it masked: as an array, as one of objects, as a list and a tuple, as a list of arrays."""
    masked = np.ma.masked_array(values, mask)
    objects = np.empty(len(values), object)
    for row, hidden in enumerate(mask):
        objects[row] = np.ma.masked if hidden else values[row]
    return [masked, masked.astype(object), objects, [*objects], (*objects,), [*masked.reshape(-1, 1)]]


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1, max_size=5),
    name=st.sampled_from([*columns()]),
    kind=st.sampled_from(["i8", "f4", "f8", "U1"]),
)
def test_a_column_of_features_refuses_a_mask(rows, name, kind):
    values, mask = np.array([value for value, _ in rows]).astype(kind), [hidden for _, hidden in rows]
    mask[0] = True
    layer = DenseFeatures([columns()[name]])
    for column in forms(values, mask):
        with pytest.raises(TypeError, match=r"masked array .* fill it, as in x.filled\(0\), or drop those rows"):
            layer({"b": [*range(len(rows))], "a": column})

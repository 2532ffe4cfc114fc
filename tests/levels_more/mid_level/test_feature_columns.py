"""Feature columns: numbers, words and gaps become one matrix; what is missing or unknown does as documented."""

import bisect

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from levels_more.low_level import GradientTape, Variable, constant, reduce_sum
from levels_more.mid_level import (
    DenseFeatures,
    bucketized_column,
    categorical_column_with_hash_bucket,
    categorical_column_with_identity,
    categorical_column_with_vocabulary_list,
    crossed_column,
    embedding_column,
    indicator_column,
    numeric_column,
)
from levels_more.mid_level.hashing import bucket_of, fingerprint

WORDS = ["Adelie", "Chinstrap", "Gentoo"]
species = categorical_column_with_vocabulary_list("species", WORDS)
numbers = st.floats(-1e6, 1e6)


def matrix(columns, features, **options):
    return DenseFeatures(columns, **options)(features).numpy().tolist()


# The matrix: order, width, dtype.


@pytest.mark.quick
def test_columns_stand_in_the_order_given():
    features = {"a": [5.0, 6.0], "species": ["Gentoo", "Adelie"], "z": [1, 2], "unused": ["x", None]}
    columns = [numeric_column("z"), indicator_column(species), numeric_column("a", normalizer_fn=lambda a: a - 5)]
    assert matrix(columns, features) == [[1, 0, 0, 1, 0], [2, 1, 0, 0, 1]]
    assert matrix(columns[::-1], features) == [[0, 0, 0, 1, 1], [1, 1, 0, 0, 2]]
    assert [column.width for column in columns] == [1, 3, 1]


def test_float32_unless_asked_and_nothing_becomes_infinite_in_silence():
    column = numeric_column("x")
    assert DenseFeatures([column])({"x": np.array([1e300]) / 1e300}).dtype == np.float32
    with pytest.raises(OverflowError, match="too large for float32"):
        DenseFeatures([column])({"x": [1e300]})
    assert matrix([column], {"x": [1e300]}, dtype="float64") == [[1e300]]


@pytest.mark.parametrize(
    "kind", [list, tuple, np.array, lambda v: np.array(v, object), lambda v: np.array(v, "f4"), constant]
)
def test_numbers_in_any_container(kind):
    assert matrix([numeric_column("x")], {"x": kind([1.5, 2.0, -3.0])}) == [[1.5], [2.0], [-3.0]]


@pytest.mark.parametrize("big", [-(2**53) - 1, 2**63 + 1])
@pytest.mark.parametrize("kind", ["array", "gap", "Series with a gap"])
def test_a_whole_number_that_float64_would_round_is_refused(kind, big):
    def given(numbers):
        if kind.startswith("Series"):
            dtype = "UInt64" if big >= 2**63 else "Int64"
            return pytest.importorskip("pandas").Series([*numbers, None], dtype=dtype)
        if kind == "gap":
            return [*numbers, None, 0.5]
        whole = np.uint64 if big >= 2**63 else np.int64
        return np.array([*map(whole, numbers)])

    near = 2**53 if big > 0 else -(2**53)
    column = numeric_column("id", default_value=0)
    with pytest.raises(ValueError, match=f"^column id holds {big}, which float64 would round; ids go into"):
        DenseFeatures([column], dtype="float64")({"id": given([near, big])})
    assert float(near) in column.encode({"id": given([near, near * 3 // 2])})


# What is missing, what is unknown.


@pytest.mark.parametrize(
    "column", [[1.0, None, np.nan], np.array([1.0, np.nan, np.nan]), np.array([1, None, np.nan], object)]
)
def test_a_gap_in_numbers_is_an_error_or_the_default(column):
    with pytest.raises(ValueError, match="^column x: row 1 is NaN; give a default_value, or leave out such rows$"):
        numeric_column("x").encode({"x": column})
    filled = numeric_column("x", default_value=-4, normalizer_fn=lambda x: x * 10)
    assert filled.encode({"x": column}).tolist() == [[10], [-40], [-40]]


MISSING = [None, np.nan, "", "NA", -1]


@pytest.mark.parametrize("gap", MISSING, ids=repr)
def test_a_missing_category_is_a_row_of_zeros(gap):
    identity, hashed = categorical_column_with_identity("c", 3), categorical_column_with_hash_bucket("c", 5)
    spare = categorical_column_with_vocabulary_list("c", ["a"], num_oov_buckets=2)
    default = categorical_column_with_vocabulary_list("c", ["a", "b"], default_value=1)
    for column in (identity, hashed, spare, default, crossed_column(["c", "d"], 5), crossed_column(["d", hashed], 5)):
        assert column.ids({"c": [gap], "d": ["x"]}).tolist() == [-1]
        wide = DenseFeatures([indicator_column(column), embedding_column(column, 2)])
        assert wide({"c": [gap], "d": ["x"]}).numpy().tolist() == [[0] * (column.num_buckets + 2)]


def test_what_the_vocabulary_names_is_not_missing():
    countries = categorical_column_with_vocabulary_list("country", ["DE", "NA"])  # Namibia
    assert countries.ids({"country": ["NA", "DE", "", None]}).tolist() == [1, 0, -1, -1]


@pytest.mark.quick
def test_ids_of_a_vocabulary():
    """As TensorFlow documents them: an unknown word has -1, or a default, or an id behind the list."""
    colors = {"color": ["B", "R", "violet", None, "Y"]}

    def ids(**options):
        column = categorical_column_with_vocabulary_list("color", ["R", "G", "B", "Y"], **options)
        return column.ids(colors).tolist(), column.num_buckets

    assert ids() == ([2, 0, -1, -1, 3], 4)
    assert ids(default_value=0) == ([2, 0, 0, -1, 3], 4)
    assert ids(num_oov_buckets=2) == ([2, 0, 4 + bucket_of("violet", 2), -1, 3], 6)
    years = categorical_column_with_vocabulary_list("year", np.arange(2007, 2010))
    assert years.ids({"year": np.array([2009, 2007, 1900, np.nan])}).tolist() == [2, 0, -1, -1]


def test_identity_takes_whole_numbers_in_range():
    videos = {"video": [0, 2.0, 3, -5]}
    assert categorical_column_with_identity("video", 3, default_value=0).ids(videos).tolist() == [0, 2, 0, 0]
    with pytest.raises(ValueError, match="^column video: row 2 is 3; expected a whole number below 3$"):
        categorical_column_with_identity("video", 3).ids(videos)


# Ranges.


def test_buckets_hold_their_lower_boundary():
    column = bucketized_column(numeric_column("x"), [0.0, 10.0, 100.0])  # TensorFlow's own example
    assert column.ids({"x": [-5, 10000, 150, 10, 5]}).tolist() == [0, 3, 3, 2, 1]
    assert column.ids({"x": [0.0, np.nextafter(0.0, -1), np.inf, -np.inf]}).tolist() == [1, 0, 3, 0]
    assert matrix([column], {"x": [10, -5]}) == [[0, 0, 1, 0], [1, 0, 0, 0]]
    scaled = bucketized_column(numeric_column("x", normalizer_fn=lambda x: x / 10, default_value=5), [1, 2])
    assert scaled.ids({"x": [9, 10, 25, None]}).tolist() == [0, 1, 2, 0]
    with pytest.raises(ValueError, match="column x: row 0 is NaN"):
        column.ids({"x": [np.nan]})


@given(st.lists(numbers, min_size=1, max_size=8, unique=True).map(sorted), st.lists(numbers, max_size=20))
def test_buckets_equal_a_plain_loop(boundaries, values):
    ids = bucketized_column(numeric_column("x"), boundaries).ids({"x": values + boundaries})
    assert ids.tolist() == [bisect.bisect_right(boundaries, value) for value in values + boundaries]


@pytest.mark.parametrize("kind", ["f4", "f8", "f2"])
def test_a_number_is_the_one_that_was_written_whatever_its_width(kind):
    """As a boundary, and as a word of a vocabulary: float32's 0.7 is a little less than Python's."""
    written = [0.1, 0.2, 0.3, 0.7, 0.9, 1.1]
    features = {"x": np.array(written, kind)}
    assert bucketized_column(numeric_column("x"), written).ids(features).tolist() == [1, 2, 3, 4, 5, 6]
    assert categorical_column_with_vocabulary_list("x", written).ids(features).tolist() == [0, 1, 2, 3, 4, 5]


# Hashes.

HASHES = {"Biscoe": 73, "Dream": 98, "Torgersen": 4, 2007: 27, "2007": 27, "Ätsch": 11, -12: 38}


def test_hashes_are_these_on_every_machine():
    column = categorical_column_with_hash_bucket("c", 100)
    assert column.ids({"c": [*HASHES]}).tolist() == [*HASHES.values()]
    assert fingerprint("Adelie").hex() == "706eb800028aeb58"
    numbers = np.array([2007, -12])
    assert column.ids({"c": numbers}).tolist() == column.ids({"c": list(numbers)}).tolist() == [27, 38]
    crossed = crossed_column(["a", "b"], 1000)
    assert crossed.ids({"a": ["x", "xy", "x"], "b": ["yz", "z", 3]}).tolist() == [567, 833, 811]


@given(st.tuples(st.text(max_size=3), st.text(max_size=3)), st.tuples(st.text(max_size=3), st.text(max_size=3)))
def test_parts_of_a_cross_do_not_run_into_each_other(one, other):
    assert (fingerprint(one) == fingerprint(other)) == (one == other)


# Embeddings, gradients, compiled steps.


def test_an_embedding_is_an_indicator_times_a_table():
    layer = DenseFeatures([embedding_column(species, 2)], dtype="float64")
    features = {"species": ["Gentoo", None, "Adelie", "Gentoo"]}
    layer(features)
    assert list(layer.named(Variable)) == ["tables.species_embedding"]
    table, factor = layer.variables[0], constant(np.arange(8.0).reshape(4, 2))
    ones = DenseFeatures([indicator_column(species)], dtype="float64")(features)
    with GradientTape() as tape:
        looked_up = layer(features)
        loss = reduce_sum(looked_up * looked_up * factor)
    by_row = tape.gradient(loss, [table])[0].numpy()
    with GradientTape() as tape:
        product = ones @ table
        loss = reduce_sum(product * product * factor)
    assert looked_up.numpy().tolist() == product.numpy().tolist()
    np.testing.assert_allclose(by_row, tape.gradient(loss, [table])[0].numpy(), rtol=1e-15)
    assert by_row[1].tolist() == [0, 0]  # no Chinstrap was there


# Errors: one, and clear.


def encoded(column, **features):
    return lambda: column.encode(features) if hasattr(column, "encode") else column.ids(features)


vocabulary, hashed = categorical_column_with_vocabulary_list, categorical_column_with_hash_bucket
identity = categorical_column_with_identity
x = numeric_column("x")
ERRORS = {
    "misspelled": (encoded(x, xx=[1]), "no column is called 'x'; there are xx"),
    "words": (encoded(x, x=["a", "b"]), "column x holds .*, not numbers; give words to categorical_column_with_voc"),
    "a word twice": (lambda: vocabulary("c", ["a", "b", "a"]), "expected a list of words, each once"),
    "default too high": (lambda: vocabulary("c", ["a"], default_value=1), "default_value 1 .* expected an id below 1"),
    "numbers for words": (encoded(vocabulary("c", ["a"]), c=["a", 3]), r"column c: row 1 is 3, .* no word of \['a'\]"),
    "identity of a word": (encoded(identity("c", 2), c=["a"]), "row 0 is 'a'; expected a whole"),
    "hash of a float": (encoded(hashed("c", 2), c=[0.5]), "0.5 is no category; expected text, a whole number"),
    "not ascending": (lambda: bucketized_column(x, [1, 3, 2]), r"column x: boundaries \[1, 3, 2\]; expected ascending"),
    "indicator of numbers": (lambda: indicator_column(x), "expected a categorical column, got x: width 1"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_bad_input_is_one_clear_error(name):
    call, message = ERRORS[name]
    with pytest.raises((ValueError, TypeError), match=message):
        call()

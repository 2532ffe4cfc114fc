"""Feature columns: they turn a dict of numbers, words and missing values into one matrix."""

import functools
import reprlib
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from levels.low_level import constant, gather
from levels.support.checks import check_int, lookup
from levels.support.parts import Reconstructible
from levels_more.checks import called, check_exact, number, several, without_mask, word
from levels_more.low_level.ops import concat, one_hot
from levels_more.mid_level.base_layer import Layer, own_tensors
from levels_more.mid_level.hashing import bucket_of, is_missing

Maker = TypeVar("Maker", bound=Callable)


class FeatureColumn(Reconstructible):
    """`width` numbers a row: `encode(features)` makes x from a dict, `call(layer, x)` then a tensor [batch, width]."""

    def build(self, layer):
        """Make the column's variables in `layer`, the `DenseFeatures` that it belongs to."""

    def call(self, layer, x):
        return x

    def __repr__(self):
        return f"{self.name}: width {self.width}"


def values_of(features, key):
    """Return the values of a column as an array [batch]. A list may mix words, numbers and None.

    Raises TypeError if `features` is no dict, or for a masked array; ValueError for a shape but [batch] or [batch, 1].
    """
    if not hasattr(features, "keys"):
        raise TypeError(f"feature columns read a dict of columns, not a {type(features).__name__}")
    values = lookup("column", features, word("a column's key", key))
    first = next(iter(features))
    kind = values.dtype.kind if hasattr(values, "isna") else "f"
    if kind not in "biuf" or (kind in "iu" and values.isna().any()):  # pandas has several kinds of missing values
        values = np.where(values.isna(), None, values.to_numpy(object))
    elif hasattr(values, "isna") and values.isna().any():
        values = values.to_numpy(np.float64, na_value=np.nan)
    values = np.asarray(without_mask(values), object if isinstance(values, (list, tuple)) else None)
    values = values[:, 0] if values.shape[1:] == (1,) else values
    if values.ndim != 1 or len(values) != len(features[first]):
        told = f"column {key}: shape {values.shape}; expected one value a row, as many as in {first}"
        raise ValueError(f"{told}; got {reprlib.repr(features[key])}")
    return values


class NumericColumn(FeatureColumn):
    """One number per row. A missing one (None or NaN) becomes `default_value`; without a default it is an error.

    `normalizer_fn` takes the whole column as float64 [batch], with the missing values filled in."""

    width = 1

    def __init__(self, key: str, *, default_value: float | None = None, normalizer_fn: Callable | None = None):
        self.name = word("numeric_column: key", key)
        gap = np.nan if default_value is None else number("numeric_column: default_value", default_value)
        normalize = (lambda values: values) if normalizer_fn is None else normalizer_fn
        self.default_value, self.normalizer_fn = gap, called("numeric_column: normalizer_fn", normalize)

    def encode(self, features):
        """Return numbers [batch, 1] from a dict. Raises TypeError for text, ValueError for NaN without a default."""
        values = check_exact(f"column {self.name}", values_of(features, self.name))
        if values.dtype == object:
            values = np.array([np.nan if value is None else value for value in values])
        if values.dtype.kind not in "fiub":
            cure = "give words to categorical_column_with_vocabulary_list; a gap is None or NaN"
            raise TypeError(f"column {self.name} holds {values.dtype}, not numbers; {cure}")
        values = np.where(np.isnan(values), self.default_value, values.astype(np.float64))
        if (gaps := np.isnan(values)).any():
            cure = "give a default_value, or leave out such rows"
            raise ValueError(f"column {self.name}: row {gaps.argmax()} is NaN; {cure}")
        return np.reshape(self.normalizer_fn(values), (len(values), 1))


class CategoricalColumn(Reconstructible):
    """One category per row: `ids(features)` makes int64 [batch] from a dict, in range(num_buckets), or -1 for none."""

    def __init__(self, name: str, num_buckets: int, ids: Callable):
        self.name = name
        self.ids = ids
        self.num_buckets = check_int(1, f"column {name}: buckets", num_buckets)

    def __repr__(self):
        return f"{self.name}: {self.num_buckets} categories"


def recipe(function: Maker) -> Maker:
    """Decorate a function that makes columns: each keeps its call as `recreate`, as a Reconstructible does."""

    def plain(x):
        return x.tolist() if hasattr(x, "tolist") else x  # a saved model holds lists, not arrays

    @functools.wraps(function)
    def make(*args, **options):
        column = function(*args, **options)
        options = {name: plain(x) for name, x in options.items()}
        column.recreate = functools.partial(make, *map(plain, args), **options)
        return column

    return make


def row_by_row(key, num_buckets, table, unknown):
    """The categorical column of a table {value: id}. Other values get -1 if missing, else `unknown(value, row)`."""
    word("a column's key", key)

    def ids(features):
        values = values_of(features, key)
        values = values.astype(str).astype(np.float64) if values.dtype.kind == "f" else values  # 0.7 as it was written
        rows = enumerate(values.tolist())
        place = int if isinstance(table, range) else table.get  # a range: the value is the id
        found = [place(x) if x in table else -1 if is_missing(x) else unknown(x, row) for row, x in rows]
        return np.array(found, np.int64)

    return CategoricalColumn(key, num_buckets, ids)


@recipe
def categorical_column_with_vocabulary_list(
    key: str, vocabulary_list: "ArrayLike", *, default_value: int = -1, num_oov_buckets: int = 0
) -> CategoricalColumn:
    """The id is the word's index in the list, or -1 for a missing word (see `is_missing`). Others get `default_value`,
    or by hash one of `num_oov_buckets` more ids ("out of vocabulary"). Raises ValueError if a word occurs twice."""
    words = vocabulary_list.tolist() if hasattr(vocabulary_list, "tolist") else vocabulary_list  # also pandas' unique()
    words = words if isinstance(words, list | tuple) else ()
    for name, value in (("default_value", default_value), ("num_oov_buckets", num_oov_buckets)):
        check_int(-1, f"column {key}: {name}", value)
    table = {entry: i for i, entry in enumerate(words) if isinstance(entry, str | int | float)}
    size, kinds = len(table), {isinstance(entry, str) for entry in table}
    if not table or size < len(words):
        raise ValueError(f"column {key}: {reprlib.repr(vocabulary_list)}; expected a list of words, each once")
    if not -1 <= default_value < size or num_oov_buckets < 0 or (num_oov_buckets and default_value != -1):
        given = f"default_value {default_value} and {num_oov_buckets} buckets"
        raise ValueError(f"column {key}: {given}; expected an id below {size}, or buckets, not both")

    def unknown(value, row):
        if isinstance(value, str) not in kinds:
            raise TypeError(f"column {key}: row {row} is {value!r}, which equals no word of {reprlib.repr([*table])}")
        return size + bucket_of(value, num_oov_buckets) if num_oov_buckets else default_value

    return row_by_row(key, size + num_oov_buckets, table, unknown)


class IndicatorColumn(FeatureColumn):
    """One-hot: a number for each category, 1 for the category of the row, else 0. A row without a category has zeros.

    Raises TypeError for a column without categories.
    """

    def __init__(self, categorical_column: CategoricalColumn):
        if not isinstance(categorical_column, CategoricalColumn):
            raise TypeError(f"expected a categorical column, got {reprlib.repr(categorical_column)}")
        self.name = f"{categorical_column.name}_indicator"
        self.encode = categorical_column.ids
        self.width = categorical_column.num_buckets

    def call(self, layer, ids):
        return one_hot(ids + 1, self.width + 1, layer.dtype)[:, 1:]  # the column of -1 is cut off


class DenseFeatures(Layer):
    """{name: values [batch]} -> [batch, width]: the columns side by side, in the given order (TensorFlow: by name).

    Raises TypeError for anything that is not a `FeatureColumn`, ValueError for no columns, or for one twice.
    """

    def __init__(self, feature_columns: Sequence[FeatureColumn], dtype: str | np.dtype | type = "float32", **options):
        super().__init__(dtype=dtype, **options)
        columns = several("DenseFeatures: feature_columns", feature_columns, "a list of feature columns")
        # tables: the variables of columns that have some
        self.columns = list(columns)
        self.tables = {}
        if bare := [column for column in self.columns if not isinstance(column, FeatureColumn)]:
            raise TypeError(f"{reprlib.repr(bare[0])} is no feature column; try indicator_column or embedding_column")
        names = [column.name for column in self.columns]
        if not names or len(set(names)) < len(names):
            raise ValueError(f"DenseFeatures: the columns are {names}; expected one or more, each once")

    def encode(self, features):
        """A tensor for each column, from a dict: numbers [batch, 1] or ids [batch]."""
        arrays = (column.encode(features) for column in self.columns)
        return [constant(array, self.dtype if array.dtype.kind == "f" else None) for array in arrays]

    def __call__(self, features, training=None):
        """`features` is a dict, or the list that `encode` made from one, since a compiled step takes only tensors."""
        return super().__call__(own_tensors(self, features), training)

    def build(self, shapes):
        for column in self.columns:
            column.build(self)

    def call(self, encoded):
        return concat([column.call(self, x) for column, x in zip(self.columns, encoded, strict=True)], axis=1)


class BucketizedColumn(CategoricalColumn, IndicatorColumn):
    """Ranges of a numeric column as categories: id i means boundaries[i - 1] <= x < boundaries[i].

    Raises TypeError for a column that is not numeric, ValueError unless the boundaries ascend.
    """

    def __init__(self, source_column: NumericColumn, boundaries: "ArrayLike"):
        if not isinstance(source_column, NumericColumn):
            raise TypeError(f"bucketized_column: expected a numeric column, got {reprlib.repr(source_column)}")
        try:
            steps = np.asarray(boundaries, np.float64)
        except (TypeError, ValueError):
            steps = np.empty(0)
        if steps.ndim != 1 or not steps.size or not np.isfinite(steps).all() or not (np.diff(steps) > 0).all():
            raise ValueError(f"column {source_column.name}: boundaries {boundaries!r}; expected ascending numbers")

        def ids(features):
            values = source_column.encode(features)[:, 0]
            raw = values_of(features, source_column.name).dtype
            kind = raw if raw.kind == "f" else steps.dtype  # 0.7 of float32 is not below the boundary 0.7
            return np.searchsorted(steps.astype(kind), values.astype(kind), side="right").astype(np.int64)

        self.recreate = functools.partial(BucketizedColumn, source_column, steps.tolist())
        super().__init__(f"{source_column.name}_bucketized", len(steps) + 1, ids)
        self.width = self.num_buckets
        self.encode = ids


@recipe
def categorical_column_with_identity(
    key: str, num_buckets: int, *, default_value: int | None = None
) -> CategoricalColumn:
    """The value is the id, in range(num_buckets). A missing one gets -1, any other `default_value` (None: an error).

    Raises ValueError for a default that is not such an id.
    """
    n = check_int(1, f"column {key}: buckets", num_buckets)
    if default_value is not None and check_int(0, f"column {key}: default_value", default_value) >= n:
        raise ValueError(f"column {key}: default_value is {default_value!r}; expected an id below {num_buckets}")

    def unknown(value, row):
        if default_value is None:
            raise ValueError(f"column {key}: row {row} is {value!r}; expected a whole number below {num_buckets}")
        return default_value

    return row_by_row(key, n, range(n), unknown)


@recipe
def categorical_column_with_hash_bucket(key: str, hash_bucket_size: int) -> CategoricalColumn:
    """The id is the hash bucket of the text or whole number, the same on every machine."""
    n = check_int(1, f"column {key}: buckets", hash_bucket_size)
    return row_by_row(key, n, {}, lambda value, row: bucket_of(value, n))


@recipe
def crossed_column(keys: Sequence[str | CategoricalColumn], hash_bucket_size: int) -> CategoricalColumn:
    """A category for each combination of the values under these keys, by hash; -1 if a value is missing.

    keys: names, or categorical columns. Raises ValueError for fewer than two.
    """
    parts = keys if isinstance(keys, list | tuple) else ()
    if len(parts) < 2 or not all(isinstance(key, str | CategoricalColumn) for key in parts):
        raise ValueError(f"crossed_column: keys are {reprlib.repr(keys)}; expected two or more names or columns")

    def ids(features):
        parts = [values_of(features, key) if isinstance(key, str) else key.ids(features) for key in keys]
        rows = zip(*(part.tolist() for part in parts), strict=True)
        return np.array([-1 if any(map(is_missing, x)) else bucket_of(x, hash_bucket_size) for x in rows], np.int64)

    return CategoricalColumn("_X_".join(getattr(key, "name", key) for key in keys), hash_bucket_size, ids)


class EmbeddingColumn(IndicatorColumn):
    """`dimension` trained numbers for each category, from a table. A row without a category has zeros."""

    def __init__(
        self, categorical_column: CategoricalColumn, dimension: int, *, initializer: str | Callable = "glorot_uniform"
    ):
        super().__init__(categorical_column)
        self.name = f"{categorical_column.name}_embedding"
        self.initializer = initializer
        self.rows, self.width = self.width, check_int(1, "embedding_column: dimension", dimension)

    def build(self, layer):
        layer.tables[self.name] = layer.add_weight((self.rows, self.width), self.initializer)

    def call(self, layer, ids):
        zeros = np.zeros((1, self.width), layer.dtype)  # the row for -1
        return gather(concat([zeros, layer.tables[self.name]]), ids + 1)


# TensorFlow's names of the classes
numeric_column = NumericColumn
indicator_column = IndicatorColumn
bucketized_column = BucketizedColumn
embedding_column = EmbeddingColumn

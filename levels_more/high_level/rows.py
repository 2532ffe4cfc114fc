"""What a reader gives to `fit`, `evaluate` or `predict`, as the arrays of rows that a compiled step takes."""

import inspect
import math
from typing import NamedTuple

import numpy as np

from levels import high_level, mid_level
from levels.low_level import constant
from levels.support.checks import check_int, check_positive
from levels.support.inputs import check_finite
from levels_more.checks import as_int64, expect
from levels_more.compiler.reads import of_levels
from levels_more.high_level.tables import arrays_of, is_table
from levels_more.high_level.targets import targets_of, weights_of
from levels_more.mid_level.base_layer import ColumnTensors
from levels_more.mid_level.dataset import Dataset, as_dataset
from levels_more.mid_level.notes import noted


def as_list(x):
    """A list or a tuple as a list, and any other value, such as one array, as a list of that value alone."""
    return list(x) if isinstance(x, (list, tuple)) else [x]


def unwrap_single(values):
    """The value in a list of one value. Any other list is returned as it is."""
    return values[0] if len(values) == 1 else values


class BatchLayout(NamedTuple):
    """The order of the arrays of a batch: so many inputs, then so many targets, then so many weights of rows.

    `names`: those of inputs given as a dict; `column_layers`: the layers of feature columns that read the inputs.
    """

    inputs: int
    targets: int = 0
    weights: int = 0
    names: tuple = ()
    column_layers: tuple = ()

    def x(self, rows):
        """The argument of the model: one array, a list, a dict, or ColumnTensors."""
        rows = rows[: self.inputs]
        if self.column_layers:
            return ColumnTensors(self.column_layers, rows)
        return dict(zip(self.names, rows, strict=True)) if self.names else unwrap_single(rows)

    def unpacked(self, rows):
        """(x, y, the weights) of the arrays of a batch."""
        last = self.inputs + self.targets
        return self.x(rows), unwrap_single(rows[self.inputs : last]), list(rows[last:])


class Batches(NamedTuple):
    """The data of a pass: tensors [rows, …] in the order of a layout, and a Dataset of the row numbers of each batch.

    `arrays` and `layout` are None for data that are not in memory: then `order` gives the elements (x, y[, weights]).
    With `numbers`, a pass is one of these row numbers, `size` at a time.
    """

    arrays: tuple
    layout: BatchLayout
    order: Dataset
    class_weight: dict = None
    numbers: Dataset = None
    size: int = None
    fits: bool = False  # whether it is known that the rows fit the losses of the model


def dtype_for(model, x):
    """As in the core. After the model's first call, the dtype is found without a search through all its parts."""
    known = float_of(noted(model, "input_specs") or ())
    return high_level.dtype_for(model, x) if known is None else known


def float_of(parts):
    """The first float dtype among those of tensors or Specs; None if there is none."""
    for part in parts:
        if part.spec.dtype.kind == "f":
            return part.spec.dtype
    return None


def inputs_of(model, x):
    """(tensors, names, layers of feature columns) for x: an array or a list of them, or columns with names.

    Tensors have the model's dtype; whole numbers stay if the model `takes_whole`. Raises TypeError for other values.
    """
    if is_table(x) and (column_layers := column_layers_of(model)):
        return [tensor for reader in column_layers for tensor in reader.encode(x)], (), column_layers
    if isinstance(x, dict):
        x = model.ordered(x)  # for a graph: a list, by the names of its inputs
    names = tuple(x) if isinstance(x, dict) else ()
    arrays = [array for value in (x.values() if names else [x]) for array in arrays_of(value, "x")]
    kinds = [a.dtype.kind for a in arrays]
    whole = not {"i", "u"}.isdisjoint(kinds) and takes_whole(model)
    dtype = dtype_for(model, arrays[kinds.index("f")] if "f" in kinds else None)
    return [constant(as_int64(a)) if whole and a.dtype.kind in "iu" else constant(a, dtype) for a in arrays], names, ()


def column_layers_of(model):
    """The layers of a model that read columns, such as `DenseFeatures`."""
    return tuple(part for part in model.named(mid_level.Layer).values() if hasattr(type(part), "encode"))


def column_tensors(model, columns):
    """The argument of a model, or of a layer, for columns with names."""
    rows, names, column_layers = inputs_of(model, columns)
    return BatchLayout(len(rows), 0, 0, names, column_layers).x(rows)


def takes_whole(model):
    """Whether a model may need whole numbers: for an `Embedding`, or for a user's own `call`."""
    kinds = {type(part) for part in model.named(mid_level.Layer).values()}
    return not of_levels(type(model).call) or any(vars(kind).get("whole") for kind in kinds)


def pack(model, x, y, sample_weight=None, class_weight=None, least=1):
    """(a tuple of tensors, their BatchLayout) of rows x, y and their weights.

    Raises ValueError unless all have as many rows, and at least `least`.
    """
    x, names, column_layers = inputs_of(model, x)
    dtype = float_of(x) or dtype_for(model, None)
    y = targets_of(model, y, dtype)
    weights = weights_of(y, sample_weight, class_weight, float_of(y) or dtype)
    rows = *x, *y, *weights
    if not rows[0].spec.shape[:1] >= (least,) or len({tensor.spec.shape[:1] for tensor in rows}) > 1:
        kinds = ["x"] * len(x) + ["y"] * len(y) + ["sample_weight"] * len(weights)
        counts = [(*tensor.spec.shape, 0)[0] for tensor in rows]
        told = ", ".join(f"{name} has {count} rows" for name, count in zip(kinds, counts, strict=True))
        raise ValueError(f"{told}; expected as many in each, and at least one")
    return rows, BatchLayout(len(x), len(y), len(weights), names, column_layers)


def check_numbers(rows, layout):
    """Raise ValueError for inputs or targets that are not finite. Returns the rows."""
    for k, tensor in enumerate(rows[: layout.inputs + layout.targets]):
        check_finite("x" if k < layout.inputs else "y", tensor.numpy())
    return rows


def is_data(x):
    """Whether x already yields batches: a Dataset, or a generator."""
    return isinstance(x, (mid_level.Dataset, Batches)) or inspect.isgenerator(x)


def limit_steps(data, steps, name, again=False):
    """A Dataset of batches with `steps` batches in a pass: with `again` always the first ones, else the next ones.

    Raises ValueError if it never ends and `steps` is None.
    """
    if steps is not None:
        return (data.take if again else data.steps)(check_int(1, name, steps))
    if data.length == math.inf:
        raise ValueError(f"{data} never ends; give {name}, or take(count) of it")
    return data


def dataset_of(x, steps, name, again=False):
    """A Dataset of batches of a Dataset or a generator; see `limit_steps`. Raises ValueError for single rows."""
    data = as_dataset(x) if isinstance(x, mid_level.Dataset) else Dataset.from_generator(lambda: x)
    if data.arrays is not None and not data.batches:
        raise ValueError(f"{data} gives single rows; make batches of them, with .batch(32)")
    return limit_steps(data, steps, name, again)


def parts_of(element):
    """(x, y, weights or None) of an element of a dataset. Raises TypeError for other elements."""
    if not isinstance(element, tuple) or len(element) not in (2, 3):
        told = f"{len(element)} parts" if isinstance(element, tuple) else "x alone"
        raise TypeError(f"the dataset gives {told}; expected (x, y) or (x, y, sample_weight)")
    return (*element, None)[:3]


def batches_of_data(model, x, steps, name, again=False, y=None, sample_weight=None, class_weight=None):
    """The Batches of a Dataset or a generator. Data that are not in memory are packed later, batch by batch.

    Raises TypeError for y or weights beside a Dataset.
    """
    for argument, given in (("y", y), ("sample_weight", sample_weight)):
        expect(given is None, argument, given, "nothing beside a Dataset, which gives (x, y) or (x, y, sample_weight)")
    if isinstance(x, Batches):
        return x
    data = dataset_of(x, steps, name, again)
    if not data.in_memory:
        return Batches(None, None, data, class_weight)
    arrays = data.arrays if isinstance(data.arrays, tuple) else (data.arrays,)
    rows, layout = pack(model, *parts_of(arrays), class_weight)
    return Batches(check_numbers(rows, layout), layout, data)


def rows_of(model, x, y=None, sample_weight=None, class_weight=None):
    """(the tensors of the rows of x, y and their weights, their BatchLayout); x may be (x, y) or (x, y, sample_weight).

    Raises TypeError if y is missing, ValueError if the arrays do not fit each other, or are not finite.
    """
    if isinstance(x, tuple) and y is None and len(x) in (2, 3):
        x, y, *more = x
        sample_weight = more[0] if more else sample_weight
    if isinstance(x, (type(None), int, float)) or isinstance(y, (type(None), int, float)):
        told = "missing" if y is None else f"a {type(y).__name__}"
        raise TypeError(f"x is a {type(x).__name__}, y is {told}: give x and y, or a Dataset of batches (x, y)")
    rows, layout = pack(model, x, y, sample_weight, class_weight)
    return check_numbers(rows, layout), layout


def row_numbers(count):
    """A Dataset of the numbers of so many rows. Its stages make the orders of rows; the arrays stay as they are."""
    numbers = np.arange(count)
    return Dataset("rows", lambda: numbers, count, numbers)


def split_rows(numbers, share):
    """A Dataset of row numbers split in two: the last `share` comes second. Raises ValueError if a part is empty."""
    kept = math.floor(len(numbers) * (1.0 - share))  # as Keras counts them
    last = len(numbers) - kept
    if not 0 < last < len(numbers):
        raise ValueError(f"validation_split {share} leaves {kept} to train on and {last} to validate")
    return numbers.take(kept), numbers.skip(kept)


def order_rows(numbers, shuffle, seed, first):
    """The row numbers of each epoch from `first` on: with `shuffle` in a new order, as the seed gives them."""
    if not shuffle:
        return numbers
    numbers = numbers.shuffle(len(numbers), seed)
    for _ in range(first):  # skip the orders of earlier epochs
        numbers.make()
    return numbers


def batches_of_rows(arrays, layout, numbers, size, steps=None, name="steps", again=False):
    """The Batches of rows with these numbers, `size` at a time, with `steps` of them in a pass; see `limit_steps`."""
    order = limit_steps(numbers.batch(size), steps, name, again)
    return Batches(arrays, layout, order, None, numbers if steps is None else None, int(size))


def validation_share(validation_split, validation_data):
    """Return the share of rows kept for validation: 0.0 beside `validation_data`. Raises like `check_positive`."""
    share = float(str(validation_split)) if isinstance(validation_split, np.floating) else validation_split
    return check_positive("fit: validation_split", share, zero=True) * (validation_data is None)


def batches_to_fit(model, x, y, weights, share, sizes, steps, order):
    """(Batches to train on, Batches of the last `share` of the rows to validate or None).

    weights: (sample_weight, class_weight); sizes: how many rows a batch has, and one for validation, which, as in
    Keras, does not use `class_weight`; order: (shuffle, seed, first epoch). Raises TypeError for a share of a Dataset.
    """
    if is_data(x):
        if share:
            raise TypeError("validation_split needs arrays x and y; beside a Dataset give validation_data")
        return batches_of_data(model, x, steps, "steps_per_epoch", False, y, *weights), None
    rows = rows_of(model, x, y, *weights)
    numbers = row_numbers(rows[0][0].spec.shape[0])
    held = None
    if share:
        numbers, last = split_rows(numbers, share)
        unweighed = rows if weights[1] is None else rows_of(model, x, y, weights[0])
        held = batches_of_rows(*unweighed, last, sizes[1])
    size = 32 if sizes[0] is None else sizes[0]
    return batches_of_rows(*rows, order_rows(numbers, *order), size, steps, "steps_per_epoch"), held


def batches_to_check(model, x, y, sample_weight, size, steps, name="steps"):
    """The Batches for `evaluate` or for validation."""
    if is_data(x):
        return batches_of_data(model, x, steps, name, True, y, sample_weight)
    arrays, layout = rows_of(model, x, y, sample_weight)
    return batches_of_rows(arrays, layout, row_numbers(arrays[0].spec.shape[0]), size, steps, name, True)


def batches_to_predict(model, x, size, steps):
    """Pairs (batch of inputs, its BatchLayout): of rows x, `size` at a time, or of a Dataset; the first `steps`.

    Raises ValueError if x is an empty list, whose rows have no shape.
    """
    if is_data(x):
        for element in dataset_of(x, steps, "steps", True):
            rows, *form = inputs_of(model, element[0] if isinstance(element, tuple) else element)
            yield rows, BatchLayout(len(rows), 0, 0, *form)
        return
    rows, *form = inputs_of(model, x)
    if rows[0].spec.shape == (0,):
        raise ValueError(f"predict: x is {x!r:.60}; expected rows of numbers, [rows, …]")
    layout = BatchLayout(len(rows), 0, 0, *form)
    count = len(rows[0]) if steps is None else min(len(rows[0]), size * check_int(1, "predict: steps", steps))
    if len(rows[0]) <= size:
        yield rows, layout
        return
    arrays = [row.numpy()[:count] for row in rows]
    for k in range(0, count, size):
        yield [array[k : k + size] for array in arrays], layout

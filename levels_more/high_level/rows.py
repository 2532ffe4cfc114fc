"""Converts lists, tables, dicts of columns and weights of rows to the arrays of rows that a compiled step takes."""

import inspect
import math
from typing import NamedTuple

import numpy as np

from levels import high_level, mid_level
from levels.low_level import as_tensor, constant
from levels.support.checks import check_int, check_positive
from levels.support.inputs import check_finite
from levels_more.checks import as_int64, expect
from levels_more.compiler.reads import of_levels
from levels_more.high_level.recompile import CachedFunction
from levels_more.high_level.tables import arrays_of, check_rows, is_table
from levels_more.low_level.ops import reshape
from levels_more.mid_level.base_layer import ColumnTensors
from levels_more.mid_level.dataset import Dataset, adopted
from levels_more.mid_level.notes import note, noted


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
    return [as_rows(a, dtype, whole) for a in arrays], names, ()


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


def targets_of(model, y, x):
    """One array, or a list of them, as tensors: of the dtype of tensors x, or int64 if a loss takes class numbers."""
    y = model.ordered(y) if isinstance(y, dict) else y
    arrays = arrays_of(y, "y")
    losses = model.training.losses
    dtype = float_of(x) or dtype_for(model, None)
    kinds = [getattr(loss, "classes", False) for loss in losses * len(arrays)] + [False] * len(arrays)
    return [as_rows(whole_of(a) if kind else a, dtype, kind) for a, kind in zip(arrays, kinds, strict=False)]


def whole_of(array):
    """Class numbers as int64, even if given as 1.0 or True. Other arrays stay as they are: the loss refuses them."""
    whole = array.dtype.kind in "bu" or (array.dtype.kind == "f" and (array % 1 == 0).all())
    return as_int64(array) if whole else array


def as_rows(array, dtype, whole):
    """An array as a tensor of that dtype; with `whole`, whole numbers become int64 instead."""
    return constant(as_int64(array)) if whole and array.dtype.kind in "iu" else constant(array, dtype)


def weights_of(y, sample_weight, class_weight, dtype):
    """The weights of rows with the targets y, a list of tensors [rows]: none, one for all outputs, or one for each.

    `class_weight` is {class: weight}, for one output; other classes weigh 1, as in Keras. Raises ValueError.
    """
    rows = (*y[0].spec.shape, 0)[0]
    found = [] if sample_weight is None else [a.astype(np.float64) for a in arrays_of(sample_weight, "sample_weight")]
    for weight in found:
        if weight.shape not in ((rows,), (rows, 1)):
            raise ValueError(f"sample_weight has the shape {weight.shape}; expected one weight a row, {(rows,)}")
        if (wrong := ~(weight.ravel() >= 0.0) | np.isinf(weight.ravel())).any():
            raise ValueError(f"sample_weight is {weight.ravel()[wrong][0]} in row {wrong.argmax()}; expected 0 or more")
    if len(found) not in (0, 1, len(y)):
        raise ValueError(f"{len(found)} arrays of sample_weight; expected one, or one for each of {len(y)} outputs")
    if class_weight is not None:
        if len(y) > 1:
            raise ValueError(f"class_weight is for one output, here are {len(y)}; give sample_weight")
        found = [
            np.multiply(*each) for each in zip(found or [1.0], [by_class(y[0].numpy(), class_weight)], strict=True)
        ]
    return [constant(weight.reshape(rows), dtype) for weight in found]


def by_class(y, class_weight):
    """The weight of each row of y: class numbers [rows] or [rows, 1], or a column for each class.

    Raises ValueError if y holds other numbers, or if the dict has other keys or weights below 0.
    """
    expect(isinstance(class_weight, dict) and class_weight, "class_weight", class_weight, "a dict {class: weight}")
    for name, weight in class_weight.items():
        check_int(0, "class_weight: a class", name)
        check_positive(f"class_weight: the weight of {name}", weight, zero=True)
    classes = y.argmax(-1) if y.ndim == 2 and y.shape[1] > 1 else y.reshape(len(y), -1)[:, 0]
    if (wrong := classes % 1 != 0).any():
        raise ValueError(f"class_weight wants numbers of classes in y; row {wrong.argmax()} is {classes[wrong][0]}")
    kinds, places = np.unique(classes, return_inverse=True)
    return np.array([class_weight.get(int(kind), 1.0) for kind in kinds])[places]


def pack(model, x, y, sample_weight=None, class_weight=None):
    """(a tuple of tensors, their BatchLayout) of rows x, y and their weights."""
    x, names, column_layers = inputs_of(model, x)
    y = targets_of(model, y, x)
    dtype = float_of(y) or float_of(x) or dtype_for(model, None)
    weights = weights_of(y, sample_weight, class_weight, dtype)
    return (*x, *y, *weights), BatchLayout(len(x), len(y), len(weights), names, column_layers)


def y_as(loss, y, predicted):
    """Targets [rows] as [rows, 1] if the model's output has that shape, as in Keras, so that nothing is broadcast."""
    y = as_tensor(y)
    single = y.spec.shape == predicted.spec.shape[:-1] and predicted.spec.shape[-1:] == (1,)
    return reshape(y, (-1, *predicted.spec.shape[1:])) if single and not getattr(loss, "classes", False) else y


def checked(model, rows, layout):
    """These tensors, after a check. Raises ValueError for numbers that are not finite, and if the targets, or the
    predictions for the first rows, do not fit the loss."""
    x = rows[: layout.inputs]
    y = rows[layout.inputs : layout.inputs + layout.targets]
    for name, arrays in (("x", x), ("y", y)):
        for array in arrays:
            check_finite(name, array.numpy())
    losses = model.chosen.check_targets(y)  # (`pack` has seen that it is compiled)
    asked = [getattr(loss, "probabilities", False) for loss in losses]
    given = as_list(next(answers(model, [([a.numpy()[:32] for a in x], layout)]))) if any(asked) else y
    for loss, target, answer, probabilities in zip(losses, y, given, asked, strict=False):
        if probabilities:
            loss.check(y_as(loss, constant(target.numpy()[:32]), answer), answer)
    return rows


def answers(model, batches):
    """The model's outputs for each pair (tensors, their BatchLayout), by a program that is cached in the model."""
    kept = noted(model, "predictor")
    program = None
    before = None
    for rows, layout in batches:
        if program is None or layout != before:
            form = layout.names, layout.column_layers, layout.inputs
            if kept is None or kept.layout != form:

                def predict(*rows, layout=layout):
                    return model(layout.x(rows))

                kept = CachedFunction(predict)
                kept.layout = form
                note(model, predictor=kept)
            program = kept.current()  # checks for changes, not for each batch
            before = layout
        yield program(*rows)


def is_data(x):
    """Whether x already yields batches: a Dataset, or a generator."""
    return isinstance(x, mid_level.Dataset) or inspect.isgenerator(x)


def as_data(x, steps, name, again=False):
    """A Dataset of batches with `steps` batches in a pass: with `again` always the first ones, else the next ones.

    Raises ValueError if it gives single rows, or if it never ends and `steps` is None.
    """
    data = adopted(x) if isinstance(x, mid_level.Dataset) else Dataset.from_generator(lambda: x)
    if data.arrays is not None and not data.batches:
        raise ValueError(f"{data} gives single rows; make batches of them, with .batch(32)")
    if steps is not None:
        return (data.take if again else data.steps)(check_int(1, name, steps))
    if data.length == math.inf:
        raise ValueError(f"{data} never ends; give {name}, or take(count) of it")
    return data


def parts_of(element):
    """(x, y, weights or None) of an element of a dataset. Raises TypeError for other elements."""
    if not isinstance(element, tuple) or len(element) not in (2, 3):
        told = f"{len(element)} parts" if isinstance(element, tuple) else "x alone"
        raise TypeError(f"the dataset gives {told}; expected (x, y) or (x, y, sample_weight)")
    return (*element, None)[:3]


def batches_for(model, data, y=None, sample_weight=None, class_weight=None):
    """A Dataset of batches as one for this model: its arrays are packed, with a `layout`, and checked.

    Data that is not in memory is packed later, batch by batch. Raises TypeError for y or weights beside a Dataset.
    """
    for name, given in (("y", y), ("sample_weight", sample_weight)):
        expect(given is None, name, given, "nothing beside a Dataset, which gives (x, y) or (x, y, sample_weight)")
    if data.layout is not None:  # it was packed before
        return data
    found = data.of(data.arrays)
    if data.in_memory:
        arrays = data.arrays if isinstance(data.arrays, tuple) else (data.arrays,)
        rows, layout = pack(model, *parts_of(arrays), class_weight)
        found = data.of(checked(model, rows, layout))
        found.layout = layout
    found.class_weight = class_weight
    return found


def rows_for(model, x, y=None, sample_weight=None, class_weight=None):
    """(a Dataset of the rows of x, y and their weights, their BatchLayout); x may be (x, y) or (x, y, sample_weight).

    Raises TypeError if y is missing, ValueError if the arrays do not fit each other.
    """
    if isinstance(x, tuple) and y is None and len(x) in (2, 3):
        x, y, *more = x
        sample_weight = more[0] if more else sample_weight
    if isinstance(x, (type(None), int, float)) or isinstance(y, (type(None), int, float)):
        told = "missing" if y is None else f"a {type(y).__name__}"
        raise TypeError(f"x is a {type(x).__name__}, y is {told}: give x and y, or a Dataset of batches (x, y)")
    rows, layout = pack(model, x, y, sample_weight, class_weight)
    data = Dataset.from_tensor_slices(check_rows(rows, layout))
    checked(model, data.arrays, layout)
    return data, layout


def parted(rows, share):
    """A Dataset of rows split in two: the last `share` comes second. Raises ValueError if a part is empty."""
    kept = math.floor(len(rows) * (1.0 - share))  # as Keras counts them
    last = len(rows) - kept
    if not 0 < last < len(rows):
        raise ValueError(f"validation_split {share} leaves {kept} to train on and {last} to validate")
    return rows.take(kept), rows.skip(kept)


def given_batches(model, x, y, sample_weight, batch_size, steps, name="steps"):
    """The data for `evaluate` or for validation, as a Dataset of batches for this model."""
    if is_data(x):
        return batches_for(model, as_data(x, steps, name, True), y, sample_weight)
    rows, layout = rows_for(model, x, y, sample_weight)
    data = as_data(rows.batch(batch_size), steps, name, True)
    data.layout = layout
    return data

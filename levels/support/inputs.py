"""Checks of the data of a training: arrays, weights, batches, labels. The tasks of all five notebooks use them."""

import reprlib

import numpy as np

from .checks import check_positive, numeric_array


def row_numbers(what, batches, rows):
    """Convert row numbers to int64[steps, batch]. Raises ValueError for other values, IndexError beyond range(rows)."""
    try:
        found = numeric_array(batches)
    except TypeError:
        found = np.zeros(0)
    if found.ndim != 2 or found.dtype.kind not in "iu" or not found.size:
        raise ValueError(f"{what} are {reprlib.repr(batches)}; expected whole numbers [steps, batch]")
    for row in (found.min(), found.max()):
        if not 0 <= row < rows:
            raise IndexError(f"{what} hold row {row}; there are {rows} rows")
    return np.ascontiguousarray(found, np.int64)


def check_arrays(arrays):
    """Return how many rows a tuple of arrays has. Raises TypeError for no tuple, ValueError for unequal lengths."""
    if not isinstance(arrays, tuple):
        raise TypeError(f"Dataset: expected a tuple of arrays, got {reprlib.repr(arrays)}")
    counts = [np.shape(x)[0] if np.shape(x) else 0 for x in arrays]
    if len({*counts}) != 1 or not counts[0]:
        raise ValueError(f"arrays of {counts} rows; expected as many in each, and at least one")
    return counts[0]


def check_batches(method, data, wanted):
    """Raise TypeError for a dataset of rows if batches are wanted, ValueError for one of batches if they are not."""
    if wanted and not data.batches:
        raise TypeError(f"{method}: these are rows; make batches of them with batch(n)")
    if data.batches and not wanted:
        raise ValueError(f"{method}: these are batches; the Dataset of levels_more.mid_level takes them, too")


def check_finite(name, array):
    """Raise ValueError, with the number of the first such row, if an array [rows, …] holds a NaN or an infinity."""
    finite = np.isfinite(array)
    if not finite.all():
        raise ValueError(f"{name} is not a finite number in row {np.argwhere(~finite)[0][0]}; drop or fill such rows")


def check_inputs(x, dtype, features):
    """Raise ValueError unless x is [m, features] of that dtype, with no NaN and no infinity."""
    _check_array("x", x, dtype, *np.shape(x)[:1], features)


def check_task(x, y, weights, batches, learning_rate, units):
    """Raise TypeError, ValueError or IndexError unless a task's arguments fit. The net's layers have these `units`.

    x[rows, features], y[rows, 1], w[inputs, units] and b[1, units] have one float dtype; batches[steps, batch] are rows.
    """
    if getattr(x, "dtype", None) not in (np.float32, np.float64) or x.ndim != 2:
        raise TypeError(f"x is {_described(x)}; expected a NumPy array [rows, features] of float32 or float64")
    shapes = []
    for inputs, outputs in zip([x.shape[1], *units], units):
        shapes += [(inputs, outputs), (1, outputs)]
    if not isinstance(weights, (list, tuple)) or len(weights) != len(shapes):
        given = f"{len(weights)} arrays" if isinstance(weights, (list, tuple)) else f"a {type(weights).__name__}"
        raise ValueError(f"weights are {given}; expected {len(shapes)}: {shapes}")
    _check_array("x", x, x.dtype, *x.shape)
    _check_array("y", y, x.dtype, len(x), 1)
    for k, (array, shape) in enumerate(zip(weights, shapes)):
        _check_array(f"weights[{k}]", array, x.dtype, *shape)
    row_numbers("batches", batches, len(x))
    check_positive("learning_rate", learning_rate)


def _check_array(name, array, dtype, *shape):
    """Raise ValueError unless this is a NumPy array of that dtype and shape, with no NaN and no infinity."""
    if not isinstance(array, np.ndarray) or (numeric_array(array).dtype, array.shape) != (dtype, shape):
        raise ValueError(f"{name} is {_described(array)}; expected a NumPy array {dtype}{list(shape)}")
    check_finite(name, array)


def _described(array):
    """Return the dtype and shape of an argument as a string, for an error."""
    return f"{getattr(array, 'dtype', type(array).__name__)}{list(getattr(array, 'shape', ()))}"


def batches_of_rows(args, batches):
    """Return one or two arrays of row numbers: a shorter last batch apart. Raises ValueError if `args` do not fit."""
    rows = {x.spec.shape[:1] for x in args}
    if len(rows) != 1 or () in rows:
        given = ", ".join(str(x.spec) for x in args)
        raise ValueError(f"over: {given}; expected arrays with the same number of rows")
    (count,) = rows.pop()
    lists = batches if isinstance(batches, (list, tuple)) else ()
    lengths = {len(each) if hasattr(each, "__len__") else 0 for each in lists}
    parts = [batches[:-1], batches[-1:]] if len(lengths) > 1 else [batches]
    return [row_numbers("over: batches", part, count) for part in parts]


def specs_of_batch(args, batches):
    """Return the Specs of one batch of these tensors, given an array of row numbers [steps, batch]."""
    specs = []
    for x in args:
        whole = x.spec
        specs.append(whole.device.spec((batches.shape[1], *whole.shape[1:]), whole.dtype))
    return tuple(specs)


def check_labels(loss, y_true, y_pred):
    """Raise ValueError unless two tensors have equal shapes, and hold probabilities if `loss.probabilities` says so."""
    if y_true.spec.shape != y_pred.spec.shape:
        cure = "; write y[:, None]" if (*y_true.spec.shape, 1) == y_pred.spec.shape else ""
        raise ValueError(f"{loss}: y_true is {y_true.spec} and y_pred is {y_pred.spec}; expected equal shapes{cure}")
    if loss.probabilities:
        check_probabilities(loss, "y_true", y_true)
        check_probabilities(loss, "y_pred", y_pred)


def check_probabilities(loss, name, x):
    """Raise ValueError for numbers outside [0, 1]. While a function is traced, a tensor has a `node`, and no numbers."""
    p = np.empty(0) if hasattr(type(x), "node") else x.numpy()
    beyond = p[(p < 0.0) | (p > 1.0)]
    if beyond.size:
        wrong = float(max(beyond, key=lambda p: abs(p - 0.5)))
        raise ValueError(f"{loss}: {name} holds {wrong:.6g}; expected probabilities, from 0 to 1")


def check_floats(loss, y_true, y_pred):
    """Raise TypeError for labels that are no floats, unless `loss.classes` says that they are class numbers."""
    if y_true.dtype.kind != "f" and not loss.classes:
        cure = f"{y_pred.dtype}, as constant(y, {y_pred.dtype.name!r}) makes it"
        raise TypeError(f"{loss}: y_true is {y_true.spec}; expected {cure}")


def check_unweighted(loss, sample_weight):
    """Raise NotImplementedError for weights of samples."""
    if sample_weight is not None:
        raise NotImplementedError(f"{loss}: weights of samples are for the losses of levels_more.mid_level")

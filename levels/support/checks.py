"""Checks of arguments, the same on every level. Each error says what was given, what was expected, and what to do."""

import difflib
import reprlib

import numpy as np


def numeric_array(values):
    """Return these numbers as a NumPy array. Raises TypeError for non-numbers, and if a mask would be lost."""
    if type(values) in (list, tuple):
        for each in values:
            if isinstance(each, (list, tuple, np.ma.MaskedArray)):
                numeric_array(each)
    if isinstance(values, np.ma.MaskedArray):
        raise TypeError("a masked array keeps no mask here; fill it, as in x.filled(0), or drop those rows")
    try:
        array = np.asarray(values)
    except (TypeError, ValueError):  # rows of different lengths
        array = np.empty((), object)
    if array.dtype.kind not in "biufc":
        told = "others have no kernels"
        if words := words_in(values):
            told = f"these are words ({words}): number them with np.unique(y, return_inverse=True)[1]"
        raise TypeError(f"{values!r:.60}: expected an array of numbers; {told}")
    return array


def words_in(values):
    """Return the first different strings among these values for an error, as "'a', 'b', …", or "" if there are none."""
    try:
        found = dict.fromkeys(x for x in np.asarray(values, object).flat if isinstance(x, (str, bytes)))
    except (TypeError, ValueError):  # not an array
        found = {}
    shown = [repr(x[:20] if isinstance(x, bytes) else str(x[:20])) for x in found]
    return ", ".join([*shown[:3], *["…"] * (len(shown) > 3)])


def real(value):
    """Convert a real number of Python or NumPy to int or float. Return None for anything else, including bools."""
    if isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.timedelta64)):
        return int(value)
    return float(value) if isinstance(value, (float, np.floating)) else None


def check_bool(name, value):
    """Return the value as a bool if it is True or False. Else raise TypeError."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} is {value!r:.60}; expected True or False")
    return bool(value)


def meant(name, names):
    """Return which of `names` a mistyped name means, or None. Short ones (mae, mse) must have the same letters."""
    near = [*difflib.get_close_matches(name, names, 1), ""][0]
    parts = difflib.SequenceMatcher(None, name, near).get_opcodes()
    edits = sum(max(b - a, d - c) for kind, a, b, c, d in parts if kind != "equal")  # 2 for swapped letters
    slip = edits <= 2 if len(name) > 4 else sorted(near) == sorted(name)
    longer = name.startswith(near) and name != near + near[-1:]  # relu6 is not relu
    return near if slip and near[:1] == name[:1] and not longer else None


def lookup(what, table, name):
    """Return the entry `name` of a table, or `name` itself if it acts like an entry. Raises ValueError, TypeError."""
    does = {"optimizer": "apply_gradients", "metric": "update_state"}.get(what, "__call__")
    if not isinstance(name, str):
        if not hasattr(name, does):
            raise TypeError(f"{what} is {name!r:.60}; expected the name of one, or what has {does}")
        return name
    if name not in table:
        core = type(table) is dict and what in ("activation", "initializer", "loss", "optimizer")
        known = f"there are {', '.join(table)}{'; levels_more.mid_level has more' * core}"
        cure = f"did you mean {near!r}?" if (near := meant(name, table)) else known
        raise ValueError(f"no {what} is called {name!r}; {cure}")
    return table[name]


def check_int(least, name, value):
    """Return the value as an int if it is an integer >= `least`. Else raise ValueError."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ValueError(f"{name} is {value!r}; expected a whole number from {least} on")
    return int(value)


def check_positive(name, value, below=np.inf, zero=False):
    """Return the value as a Python number if 0 < value < `below` (0 is allowed with `zero`). Else raise ValueError."""
    number = real(value)
    if number is None or not (0.0 < number < below or (zero and number == 0)):
        raise ValueError(f"{name} is {value!r}; expected a positive number" + f" below {below:g}" * (below < np.inf))
    return number


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
    if real(learning_rate) is None or not 0 < learning_rate < np.inf:
        raise ValueError(f"learning_rate is {learning_rate!r}; expected a positive number")


def _check_array(name, array, dtype, *shape):
    """Raise ValueError unless this is a NumPy array of that dtype and shape, with no NaN and no infinity."""
    if not isinstance(array, np.ndarray) or (numeric_array(array).dtype, array.shape) != (dtype, shape):
        raise ValueError(f"{name} is {_described(array)}; expected a NumPy array {dtype}{list(shape)}")
    check_finite(name, array)


def _described(array):
    """Return the dtype and shape of an argument as a string, for an error."""
    return f"{getattr(array, 'dtype', type(array).__name__)}{list(getattr(array, 'shape', ()))}"


def cache_key(x):
    """Return the part of a trace's key for an argument that is not a tensor. Raises TypeError if it cannot be a key."""
    if type(x).__hash__ is None:
        raise TypeError(f"a {type(x).__name__} is no argument: expected tensors, arrays, variables, numbers or names")
    if isinstance(x, tuple):
        return type(x), *map(cache_key, x)
    if isinstance(x, (float, complex, np.inexact)):
        return type(x), repr(x)  # which distinguishes 0.0 from -0.0, and makes NaN equal to itself
    alone = type(x).__eq__ is object.__eq__  # equal to itself only; otherwise equal objects may differ in 0.0 and -0.0
    return (type(x), x) if alone else (type(x), x, repr(x))


def even(batches):
    """Return [batches], or [batches[:-1], batches[-1:]] if their sizes differ, because the last batch is shorter."""
    lists = batches if isinstance(batches, (list, tuple)) else ()
    lengths = {len(each) if hasattr(each, "__len__") else 0 for each in lists}
    return [batches[:-1], batches[-1:]] if len(lengths) > 1 else [batches]

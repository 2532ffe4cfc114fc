"""What a task takes on all five levels: arrays that fit each other, rows that there are, numbers that are numbers."""

# Built from 01_hardware.ipynb: edit there, then run its last cell.

import numpy as np

from .device import unmasked


def _check_array(name, array, dtype, *shape):
    """Raise ValueError unless this is a NumPy array of that dtype and shape, with no NaN and no infinity."""
    if not isinstance(array, np.ndarray) or (unmasked(array).dtype, array.shape) != (dtype, shape):
        found = f"{getattr(array, 'dtype', type(array).__name__)}{list(getattr(array, 'shape', ()))}"
        raise ValueError(f"{name} is {found}; expected a NumPy array {dtype}{list(shape)}")
    if not np.isfinite(array).all():
        row = np.argmin(np.isfinite(array).all(axis=1))
        raise ValueError(f"{name} is not a finite number in row {row}; drop or fill such rows")


def check_inputs(x, dtype, features):
    """Raise ValueError unless x is [m, features] of that dtype, with no NaN and no infinity."""
    _check_array("x", x, dtype, *np.shape(x)[:1], features)


def check_task(x, y, weights, batches, learning_rate, units):
    """Raise TypeError, ValueError or IndexError unless all fit each other and a net of layers with that many `units`.

    x[rows, features] and y[rows, 1] of one float dtype; weights [w, b, …], w[inputs, units] and b[1, units] of that dtype;
    batches[steps, batch], row numbers of x.
    """
    if getattr(x, "dtype", None) not in (np.float32, np.float64) or x.ndim != 2:
        found = f"{getattr(x, 'dtype', type(x).__name__)}{list(getattr(x, 'shape', ()))}"
        raise TypeError(f"x is {found}; expected a NumPy array [rows, features] of float32 or float64")
    sizes = [x.shape[1], *units]
    shapes = [shape for inputs, outputs in zip(sizes, units) for shape in ((inputs, outputs), (1, outputs))]
    if not isinstance(weights, (list, tuple)) or len(weights) != len(shapes):
        given = f"{len(weights)} arrays" if isinstance(weights, (list, tuple)) else f"a {type(weights).__name__}"
        raise ValueError(f"weights are {given}; expected {len(shapes)}: {shapes}")
    _check_array("x", x, x.dtype, *x.shape)
    _check_array("y", y, x.dtype, len(x), 1)
    for k, (array, shape) in enumerate(zip(weights, shapes)):
        _check_array(f"weights[{k}]", array, x.dtype, *shape)
    rows = unmasked(batches)
    if rows.ndim != 2 or rows.dtype.kind not in "iu" or rows.size == 0:
        raise ValueError(f"batches are {rows.dtype}{rows.shape}; expected integers [steps, batch], at least one")
    if outside := [row for row in (rows.min(), rows.max()) if not 0 <= row < len(x)]:
        raise IndexError(f"batches hold row {outside[0]}; x has {len(x)} rows")
    if not isinstance(learning_rate, (int, float)) or not 0 < learning_rate < np.inf:
        raise ValueError(f"learning_rate is {learning_rate!r}; expected a positive number")

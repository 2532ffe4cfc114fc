"""The targets of rows and the weights of rows, as tensors."""

import numpy as np

from levels.low_level import as_tensor, constant
from levels.support.checks import check_int, check_positive
from levels_more.checks import as_int64, expect
from levels_more.high_level.tables import arrays_of
from levels_more.low_level.ops import reshape


def targets_of(model, y, dtype):
    """One array, or a list of them, as tensors: of this dtype, or int64 if a loss takes class numbers."""
    y = model.ordered(y) if isinstance(y, dict) else y
    arrays = arrays_of(y, "y")
    losses = model.training.losses
    kinds = [getattr(loss, "classes", False) for loss in losses * len(arrays)] + [False] * len(arrays)
    found = []
    for array, kind in zip(arrays, kinds, strict=False):
        array = as_classes(array) if kind else array
        found.append(constant(array, None if kind and array.dtype == np.int64 else dtype))
    return found


def as_classes(array):
    """Class numbers as int64, even if given as 1.0 or True. Other arrays stay as they are: the loss refuses them."""
    whole = array.dtype.kind in "biu" or (array.dtype.kind == "f" and (array % 1 == 0).all())
    return as_int64(array) if whole else array


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
        of_rows = by_class(y[0].numpy(), class_weight)
        found = [weight.reshape(rows) * of_rows for weight in found] or [of_rows]
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


def like_predictions(loss, y, predicted):
    """Targets [rows] as [rows, 1] if the model's output has that shape, as in Keras, so that nothing is broadcast."""
    y = as_tensor(y)
    single = y.spec.shape == predicted.spec.shape[:-1] and predicted.spec.shape[-1:] == (1,)
    return reshape(y, (-1, *predicted.spec.shape[1:])) if single and not getattr(loss, "classes", False) else y

"""Checks of what a loss is given: labels, predictions and weights. Notebook 04 uses them."""

import numpy as np


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

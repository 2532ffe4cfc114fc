"""Checks of a model, and of what its training is given. Notebooks 04 and 05 use them."""

import inspect

import numpy as np

from .checks import check_positive
from .inputs import check_finite


def check_losses(step, losses):
    """Return the losses of a step, a tensor [steps]. Raises TypeError if the step returns something else."""
    if not hasattr(losses, "numpy"):
        returns = "nothing" if losses is None else f"a {type(losses).__name__}"
        raise TypeError(f"{step.__name__} returns {returns}; expected the loss, one number")
    return losses


def check_training(loss, x, y, labels, outputs):
    """Raise ValueError for a NaN in tensors x or y [rows, …], or for first `labels` that do not fit loss or outputs."""
    check_finite("x", x.numpy())
    check_finite("y", y.numpy())
    if hasattr(loss, "check"):
        loss.check(y, y)
        loss.check(labels, outputs)


def check_pair(x, y=None):
    """Return a pair of arrays: (x, y), or x if that is one and y is None. Raises TypeError if there is only one array."""
    given = x if isinstance(x, tuple) and y is None else (x, y)
    if len(given) != 2 or any(part is None for part in given):
        first = given[0] if given else given
        raise TypeError(f"x is a {type(first).__name__}, y is missing: give x and y, or a Dataset of batches (x, y)")
    return given


def row_shape(shape):
    """Return the shape of a row, from [rows, …]. Raises TypeError for anything but a list or a tuple."""
    if not isinstance(shape, (list, tuple)):
        raise TypeError(f"build: shape is {shape!r:.60}; expected [rows, …]")
    return shape[1:]


def check_layer(model, layer, kind):
    """Return a layer. Raises TypeError for anything that is not of this class, and for a layer of another kind of model."""
    if not isinstance(layer, kind):
        raise TypeError(f"{type(model).__name__}: {layer!r:.60} is no layer of this level")
    check_parts(model, [layer])
    return layer


def check_parts(model, layers):
    """Raise TypeError for a layer that does not work in this model. Only those of `levels_more` may say so."""
    for layer in layers:
        if hasattr(layer, "check_model"):
            layer.check_model(model)


def check_heard(layer, training, kind):
    """Raise TypeError if a call is for training, and a layer inside, one of this class, does not work in this one."""
    if training:
        check_parts(layer, layer.named(kind).values())


def check_call(layer):
    """Raise NotImplementedError if the `call` of a layer of the core takes `training`, which nobody would give."""
    if not getattr(layer, "hears_training", False) and "training" in inspect.signature(type(layer).call).parameters:
        raise NotImplementedError(f"{layer.name}: call(…, training) is for the Layer of levels_more.mid_level")


def no_call(layer, x):
    """Raise NotImplementedError: a class of layers must define its own `call` of x, a tensor."""
    cure = "rename its `forward`, PyTorch's name" if hasattr(layer, "forward") else "write one"
    raise NotImplementedError(f"{type(layer).__name__} has no call; {cure}: `def call(self, x):`")


def check_metrics(metrics):
    """Raise NotImplementedError for metrics, which only the models of `levels_more` have."""
    if metrics:
        raise NotImplementedError("compile: metrics are for the models of levels_more.high_level")


def check_trainable(model, variables):
    """Return the list of variables. Raises ValueError if there is none."""
    if not variables:
        raise ValueError(f"{model.name} has no variable to train")
    return variables


def check_callbacks(callbacks):
    """Return a list of callbacks. Raises NotImplementedError for methods that are never called here."""
    events = "on_train_batch_begin", "on_train_batch_end"
    if any(getattr(callback, event, None) for callback in callbacks or () for event in events):
        raise NotImplementedError(f"{' and '.join(events)} are for the models of levels_more.high_level")
    return callbacks or ()


def uncompiled(model, y, predicted):
    """Raise RuntimeError. This is a model's loss of y and predicted, tensors [rows, …], until `compile` is called."""
    raise RuntimeError(f"{model.name} is not compiled; call model.compile(optimizer, loss) first")


def check_last_loss(model, epochs):
    """Raise FloatingPointError if the last epoch's loss is not finite, unless a callback ended the training."""
    loss = epochs[-1]["loss"] if epochs else 0.0
    if not model.stop_training and not np.isfinite(loss):
        told = f"fit: the loss is {loss} after epoch {len(epochs) - 1}"
        raise FloatingPointError(f"{told}; try a lower learning rate, and look for NaN in the data")


def check_rate(optimizer, rate):
    """Return a learning rate, a number from 0 on. Raises NotImplementedError for a schedule, ValueError for others."""
    name = type(optimizer).__name__
    if callable(rate):
        raise NotImplementedError(f"{name}: a schedule is for the {name} of levels_more.mid_level")
    return check_positive(f"{name}: learning_rate", rate, zero=True)


def check_same_variables(optimizer, variables):
    """Return these variables. Raises ValueError unless an optimizer was built for them, in this order."""
    if [*map(id, optimizer.trained_variables)] != [*map(id, variables)]:
        raise ValueError(f"{type(optimizer).__name__}: built for other variables, or another order; make a new one")
    return variables

"""A step of the reader's own, in Keras' way: `train_step(self, data)` gives numbers by names, and `fit` tells them."""

import copy
import math

import numpy as np

from levels.support.checks import flag
from levels_more.checks import expect
from levels_more.high_level.data_adapter import as_data, as_list, is_data, parted, weights_of
from levels_more.tensorflow.data_pipeline import TensorStream
from levels_more.tensorflow.nested import Function, leaves, numbers

_BY_DATA = "by data"  # the packing of a dataset whose elements go to a step as they are


class Logs(dict):
    """What a step told, {name: number}. Where it names no "loss", the sum of all stands for it: whether that is finite counts."""

    def __missing__(self, name):
        if name != "loss":
            raise KeyError(name)
        return math.fsum(self.values())


def unpack_x_y_sample_weight(data):
    """(x, y, sample_weight) of what a step is given: arrays x, or a tuple of up to three; None for what it does not hold."""
    return (*data, None, None)[:3] if isinstance(data, tuple) else (data, None, None)


def _told(step, logs):
    """What a step gave as Logs. Raises TypeError for what is no dict."""
    expect(isinstance(logs, dict), f"what {step.__qualname__} gives", logs, 'a dict, such as {"loss": loss}')
    found = Logs()
    for name, value in logs.items():
        found.update(_told(step, value) if isinstance(value, dict) else {name: float(value)})
    return found


def one_pass(model, step, data, history=None):
    """Go through the data with a `function` of a step of data. Returns what its last call told, as Keras does.

    Raises ValueError for no batch.
    """
    python, watch, logs = step.__wrapped__, model.training.watch, None
    if not hasattr(step, "by_data"):  # one for each training
        step.by_data = Function(python)
    for metric in model.metrics:
        metric.reset_state()
    listener = model.training.tests if history is None else watch
    for number, element in enumerate(data):
        if listener:
            listener.on_step_begin()
        logs = _told(python, step.by_data(element))
        if history is not None:
            history.passes.append(np.array([logs["loss"]]))
            if watch.bar is not None:
                watch.bar.update(1)
            watch.step += 1
            for callback in watch.callbacks:
                if callback.on_train_batch_end:
                    callback.on_train_batch_end(number, dict(logs))
        elif listener:
            listener.on_step_end(dict(logs))
        if watch is not None:
            watch.heed()
    if logs is None:
        raise ValueError("the dataset gave no batch")
    return logs


def _rows(x, y, sample_weight, class_weight, dtype):
    """Arrays as a Dataset of rows: of x, (x, y) or (x, y, weights); floats in that dtype."""
    parts = [part for part in (x, y) if part is not None]
    if sample_weight is not None or class_weight is not None:
        parts += weights_of([*map(numbers, as_list(y))], sample_weight, class_weight, dtype)
    parts = [_floats(part, dtype) for part in parts]
    return TensorStream.from_tensor_slices(tuple(parts) if len(parts) > 1 else parts[0])


def _floats(x, dtype):
    if isinstance(x, dict):
        return {name: _floats(each, dtype) for name, each in x.items()}
    if isinstance(x, (list, tuple)) and len(x) and hasattr(x[0], "shape"):
        return tuple(_floats(each, dtype) for each in x)
    x = np.asarray(x)
    return x.astype(dtype) if x.dtype.kind == "f" else x


def _marked(data):
    data = copy.copy(data)
    data.packing = _BY_DATA
    return data


def elements(model, x, y=None, sample_weight=None, batch_size=None, steps=None):
    """What is given to be evaluated, for a step of data: a Dataset of batches."""
    if not is_data(x):
        x = _rows(*unpack_x_y_sample_weight(x) if isinstance(x, tuple) else (x, y, sample_weight), None, model.dtype)
        x = x.batch(batch_size or 32)
    return _marked(as_data(x, steps, "steps", True))


def params(x, batch_size, args, options):
    """What callbacks of a training on rows x [rows, …], or on batches, are told: {"epochs", "steps" of one or None, "verbose"}."""
    steps = options.get("steps_per_epoch")
    if steps is None and is_data(x):
        length = len(x) if hasattr(x, "arrays") and x.length == x.length and x.length < math.inf else None
        steps = length
    elif steps is None:
        steps = -(-_kept(x, options) // (batch_size or 32))
    return {
        "epochs": options.get("epochs", args[0] if args else 1),
        "steps": steps,
        "verbose": options.get("verbose", 1),
    }


def _kept(x, options):
    rows = len(leaves(x)[0])
    held = options.get("validation_data") is not None
    return rows if held else rows - int(rows * options.get("validation_split", 0.0))


def check_steps(x, batch_size, options):
    """Raise ValueError for a `steps_per_epoch` that does not divide the batches of arrays x: Keras drops epochs' ends then."""
    steps = options.get("steps_per_epoch")
    if steps is None:
        return
    batches = -(-_kept(x, options) // (batch_size or 32))
    if steps >= batches:
        del options["steps_per_epoch"]  # then each epoch is all of them
    elif batches % steps:
        cure = f"without it an epoch is all {batches}"
        raise ValueError(
            f"fit: steps_per_epoch is {steps} of {batches} batches; expected a number that divides them, {cure}"
        )


def prepared(model, x, y, batch_size, own_test, options):
    """The batches for a step of data, and the options of `fit` that are left."""
    weights = [options.pop(name, None) for name in ("sample_weight", "class_weight")]
    shuffle, share = flag("fit: shuffle", options.pop("shuffle", True)), options.pop("validation_split", 0.0)
    held, steps = options.pop("validation_data", None), options.pop("steps_per_epoch", None)
    if is_data(x):
        expect(
            weights == [None, None], "fit: weights", weights, "none beside a Dataset; let it give (x, y, sample_weight)"
        )
    else:
        own = _rows(x, y, weights[0], None, model.dtype)
        x = own if weights[1] is None else _rows(x, y, *weights, model.dtype)
        if share and held is None:  # a class_weight is for training
            x, held = parted(x, share)[0], parted(own, share)[1]
            held = held.batch(options.get("validation_batch_size") or batch_size or 32)
        x = (x.shuffle(len(x), options.pop("seed", None)) if shuffle else x).batch(batch_size or 32)
    if held is not None:
        size = options.get("validation_batch_size") or batch_size
        held = elements(model, held, None, None, size, options.pop("validation_steps", None)) if own_test else held
        options["validation_data"] = held
    return _marked(as_data(x, steps, "steps_per_epoch")), options

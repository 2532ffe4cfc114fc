"""The training loop with a bar, Ctrl-C, callbacks and rows to validate, and the rows that it goes through."""

import math
from contextlib import nullcontext

from levels.high_level import loops
from levels.low_level import DOOR, RUN
from levels.support.checks import flag
from levels_more.checks import as_python
from levels_more.high_level.data_adapter import (
    BatchLayout,
    as_data,
    as_list,
    batches_for,
    inputs_of,
    is_data,
    parted,
    rows_for,
)
from levels_more.high_level.multi_epoch import LookAhead
from levels_more.high_level.progress import (
    CallbackList,
    ProgressMonitor,
    Validation,
    attach,
    hold_interrupts,
    progress,
    shows_bars,
)
from levels_more.high_level.recompile import GRAPH_TRANSFORM


def verbosity(verbose):
    """Keras' ways to say how much `fit` shows, as 0, 1 or 2. Raises TypeError for others."""
    verbose = verbose if type(verbose) is int else as_python(verbose)
    return verbose if type(verbose) is int else int(verbose == "auto" or flag("fit: verbose", verbose))


def batches_to_fit(model, x, y, sample_weight, class_weight, steps):
    """A Dataset or a generator as a Dataset of batches for this model, `steps` of them in an epoch."""
    return batches_for(model, as_data(x, steps, "steps_per_epoch"), y, sample_weight, class_weight)


def rows_to_fit(model, x, y, sample_weight, class_weight, share, batch_size):
    """(a Dataset of rows to train on, their BatchLayout, batches of the last `share` of rows to validate or None)"""
    rows, layout = rows_for(model, x, y, sample_weight, class_weight)
    if not share:
        return rows, layout, None
    form, (rows, held) = layout, parted(rows, share)
    if class_weight is not None:  # it is for training: rows to validate count alike, as in Keras
        own, form = rows_for(model, x, y, sample_weight)
        held = parted(own, share)[1]
    held = held.batch(batch_size)
    held.layout = form
    return rows, layout, held


def epochs_of(rows, layout, batch_size, steps, epochs, shuffle, seed, first):
    """(a Dataset of batches, in a new order for each epoch; a `LookAhead`, where several epochs may be one call)"""
    rows = rows.shuffle(len(rows), seed) if shuffle else rows
    for _ in range(first if shuffle else 0):  # the orders of the epochs before: a seed goes on behind them
        rows.make()
    size = 32 if batch_size is None else batch_size
    data = as_data(rows.batch(size), steps, "steps_per_epoch")
    data.layout = layout
    return data, LookAhead(rows, size, epochs) if epochs > 1 and steps is None else None


def input_batches(model, x, size, steps):
    """Pairs (batch of inputs, its BatchLayout): of rows x, `size` at a time, or of the first `steps` of a Dataset."""
    if is_data(x):
        for element in as_data(x, steps, "steps", True):
            rows, *form = inputs_of(model, element[0] if isinstance(element, tuple) else element)
            yield rows, BatchLayout(len(rows), 0, 0, *form)
        return
    rows, *form = inputs_of(model, x)
    layout = BatchLayout(len(rows), 0, 0, *form)
    if len(rows[0]) > size:
        arrays = [row.numpy() for row in rows]
        for k in range(0, len(rows[0]), size):
            yield [array[k : k + size] for array in arrays], layout
    else:
        yield rows, layout


def run_training(model, data, epochs, verbose, callbacks, validation=None, first=0, ahead=None):
    """Train for so many epochs, with a bar; Ctrl-C waits for the end of a piece. Returns the History.

    data, validation: Datasets of batches, the second or None; verbose: 1 shows the bar, 2, and 1 where no bar can move,
    a line for each epoch; first: the number of the first epoch, for callbacks; ahead: a `LookAhead`, where an epoch may
    be done before the loop begins it. Raises KeyboardInterrupt, with the weights of the last whole step, and TypeError
    for no callbacks.
    """
    callbacks, training = [] if callbacks is None else as_list(callbacks), model.training
    held = [] if validation is None else [Validation(model, validation)]
    lines = verbose == 2 or (verbose == 1 and not shows_bars())
    with hold_interrupts() as pressed, progress(data, epochs) if verbose and not lines else nullcontext() as bar:
        if callbacks or held or training.metrics or GRAPH_TRANSFORM.change or DOOR.stands is not RUN:
            ahead = None
        training.watch = ProgressMonitor(pressed, bar, callbacks, ahead)
        params = {"verbose": verbose, "epochs": first + epochs, "steps": None if math.isnan(data.length) else len(data)}
        attach(callbacks, model, params)
        told = [CallbackList(model, callbacks, first)] if callbacks else []
        try:
            return loops.run_training(model, data, epochs, [*held, *told, training.watch], lines)
        finally:
            if ahead:
                ahead.tell(model.history)
            model.history.params = params
            model.history.epoch = [*range(first, first + len(model.history.epochs))]  # Keras' numbers of them
            training.watch = None

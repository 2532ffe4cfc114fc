"""What `compile` chose, and passes over data with it: several losses, metrics, weights of rows, cached programs."""

import time
from itertools import chain

import numpy as np

from levels import mid_level
from levels.high_level import epoch_loss, loops
from levels.low_level import as_tensor, reduce_mean
from levels.support.checks import check_positive, lookup
from levels_more.checks import takes
from levels_more.high_level.data_adapter import as_list, checked, pack, parts_of, y_as
from levels_more.high_level.recompile import CachedFunction
from levels_more.mid_level import losses, metrics
from levels_more.mid_level.losses import LOSSES, weighted
from levels_more.mid_level.metrics import METRICS, expect_logits
from levels_more.mid_level.optimizers import OPTIMIZERS
from levels_more.mid_level.stages import cut

PIECE_SECONDS = 0.05  # the time that a call with several steps should take


def spelled(table, name):
    """The key of a table for Keras' name of a class, such as "auc" for "AUC". Any other name is returned as it is."""
    words = (name, metrics.snake_case(name), name.lower()) if isinstance(name, str) else ()
    return next((word for word in words if word in table), name)


def made(what, table, name):
    """The object for a name in a table, for a class, or for a metric given as a function or a loss. Others stay."""
    name = spelled(table, name)
    if what == "metric" and callable(name) and not isinstance(name, type) and not hasattr(name, "update_state"):
        return metrics.MeanLoss(name) if isinstance(name, mid_level.Loss) else metrics.Calculated(name)
    found = lookup(what, table, name)
    found = found() if isinstance(name, (str, type)) else found
    if what == "metric" and isinstance(name, str):
        # in the history it has the name given to `compile`
        found.by_name = True
        found.name = name
    return found


def distinct(names):
    """These names, made unique: a second `precision` becomes `precision_1`, as in Keras."""
    found = []
    for name in names:
        numbered = (f"{name}_{k}" for k in range(1, len(names) + 1))
        found.append(name if name not in found else next(other for other in numbered if other not in found))
    return found


def loss_of(loss, y, predicted, weight):
    """The loss of a batch, by a loss or a user's function: the mean over its rows, each times its weight.

    Raises ValueError if there are weights and the function gives only one number for the batch.
    """
    if isinstance(loss, losses.Loss):
        return loss(y, predicted, weight)
    if isinstance(loss, mid_level.Loss):  # a loss of the core takes no weights
        each = as_tensor(loss.call(*loss.checked(y, predicted)))
    else:
        each = as_tensor(loss(y, predicted))
    if weight is not None:
        if not each.spec.shape:
            cure = "with sample_weight or class_weight it has to give one for each row"
            raise ValueError(f"{getattr(loss, '__name__', 'the loss')}: it gives one number for the batch; {cure}")
        each = weighted(loss, each, weight)
    return reduce_mean(each) if each.spec.shape else each


class Training(loops.Training):
    """Losses, one for each output or one for all, each times one of the `loss_weights`; metrics of the first output.

    Raises TypeError if the optimizer or a loss is None, ValueError for an unknown name and for an empty list of losses.
    """

    def __init__(self, optimizer, loss, metrics=(), loss_weights=None):
        first, *others = as_list(loss) or [""]  # no losses: "" raises ValueError, as an unknown name
        super().__init__(made("optimizer", OPTIMIZERS, optimizer), made("loss", LOSSES, first))
        self.losses += [made("loss", LOSSES, each) for each in others]
        self.metrics = [made("metric", METRICS, each) for each in as_list([] if metrics is None else metrics)]
        expect_logits(self.metrics, self.losses)
        self.loss_weights = loss_weights
        if loss_weights is not None:
            name = "compile: one of the loss_weights"
            self.loss_weights = [check_positive(name, weight, zero=True) for weight in loss_weights]
        self.names = distinct(["loss", *(metric.name for metric in self.metrics)])
        self.programs = {}  # (step, BatchLayout) -> its CachedFunction
        self.row_weights = []  # the weights of the rows of the batch that is traced now
        self.rows_weighed = False  # whether a loss has read them
        # steps in a call, see `pieces`; the listener while `fit` runs
        self.steps_per_call = 1
        self.watch = None

    def __getstate__(self):
        """The state of a copy: all but the programs, which use this model's variables, and the listener of `fit`."""
        return vars(self) | {"programs": {}, "watch": None}

    def loss(self, model, y, predicted):
        """The sum of the losses of all outputs and the penalties of all layers. Updates the metrics with the batch."""
        y, predicted, weights = self.matched(y, predicted)
        for metric in self.metrics:
            metric.update_state(y[0], predicted[0])
        return self.summed(model, y, predicted, weights)

    def matched(self, y, predicted):
        """Targets, predictions and row weights (or None) for all outputs. Raises ValueError if their numbers differ."""
        y = as_list(y)
        predicted = as_list(predicted)
        losses = self.losses_of(predicted)
        if not len(losses) == len(y) == len(predicted):
            raise ValueError(f"{len(predicted)} outputs, with {len(y)} targets and {len(losses)} losses")
        y = [y_as(loss, *pair) for loss, *pair in zip(losses, y, predicted, strict=True)]
        weights = self.row_weights or [None]
        return y, predicted, weights * len(y) if len(weights) == 1 else weights

    def losses_of(self, outputs):
        """A list with a loss for each of these outputs."""
        return self.losses * len(outputs) if len(self.losses) == 1 else self.losses

    def check_targets(self, y):
        """Return the losses for these targets, tensors [rows, …]. Raises ValueError if one does not fit its loss."""
        losses = self.losses_of(y)[: len(y)]
        for loss, target in zip(losses, y, strict=False):
            if isinstance(loss, mid_level.Loss) and not loss.classes:
                loss.check(target, target)
        return losses

    def summed(self, model, y, predicted, weights):
        """The sum of the losses of all outputs, for targets y [batch, …], and of the penalties of all layers."""
        self.rows_weighed = True
        each = [loss_of(*terms) for terms in zip(self.losses_of(predicted), y, predicted, weights, strict=True)]
        if self.loss_weights is not None:
            each = [weight * loss for weight, loss in zip(self.loss_weights, each, strict=True)]
        first, *others = each + model.losses
        return sum(others, first)

    def on_rows(self, step, layout, rows):
        """step(x, y) on the arrays of a batch. Raises ValueError if a user's step ignores the weights of rows."""
        x, y, self.row_weights = layout.unpacked(rows)
        try:
            result = step(x, y)
            if self.row_weights and not self.rows_weighed:
                cure = "call self.training.loss(self, y, predicted), which does"
                raise ValueError(f"{step.__qualname__} does not heed the weights of rows; {cure}")
            return result
        finally:
            self.row_weights = []
            self.rows_weighed = False

    def step_program(self, step, layout, look=True):
        """step(x, y) as a `CachedFunction` of the arrays of a batch, made once for each step and layout.

        With `look` it is traced again if something that its trace read has changed since.
        """
        if (step, layout) not in self.programs:
            if not takes(step, 2):
                cure = f"write def {step.__name__}(self, x, y), and return the loss, one number"
                raise TypeError(f"{step.__qualname__}: fit calls it with a batch's x and y; {cure}")
            kept = CachedFunction(step.__self__, lambda *rows: self.on_rows(step, layout, rows))
            self.programs[step, layout] = kept
        kept = self.programs[step, layout]
        return kept.current() if look else kept

    def pieces(self, step, data, listener, look):
        """Go through the data in calls of a twentieth of a second. Yields (losses, numbers of rows) of a call's steps.

        The first call is one step, and the time that a call takes sets the number of steps of the next. For data that
        is not in memory, each batch is a call. With a `listener`, each step is a call. `look`: see `step_program`.
        """
        if data.layout is None:
            for number, element in enumerate(data):
                rows, layout = pack(step.__self__, *parts_of(element), data.class_weight)
                if number:
                    self.check_targets(rows[layout.inputs : layout.inputs + layout.targets])
                else:
                    checked(step.__self__, rows, layout)
                if listener:
                    listener.on_step_begin()
                yield self.step_program(step, layout, look)(*rows).numpy().reshape(1), [len(rows[0])]
            return
        program = self.step_program(step, data.layout, look)
        ahead = None if look or self.watch is None else self.watch.ahead
        if ahead and ahead.may(self.steps_per_call):
            yield ahead.epoch(program, self, step.__self__.history)
            return
        for part in cut(data.iterate(), lambda: 1 if listener else self.steps_per_call):
            if listener:
                listener.on_step_begin()
            begun = time.perf_counter()
            losses = program.over(*data.arrays, part).numpy()
            self.timed(len(part), begun)
            yield losses, [len(batch) for batch in part]

    def timed(self, steps, begun):
        """Set `steps_per_call`, given that so many steps took the time since `begun`."""
        self.steps_per_call = max(1, int(PIECE_SECONDS * steps / (time.perf_counter() - begun)))

    def check_steps(self):
        """Raise OverflowError if a schedule's count of steps can no longer grow: 2²⁴ + 1 is 2²⁴ in float32."""
        steps = getattr(self.optimizer, "iterations", None)
        if (
            steps is not None
            and callable(self.optimizer.rate)
            and float(steps) == 2.0**24
            and steps.dtype == np.float32
        ):
            cure = "train in float64, or let the learning rate be a number"
            raise OverflowError(f"the optimizer has taken {2**24:,} steps, and float32 counts no further: {cure}")

    def one_pass(self, step, data, history=None):
        """Go through the data; a history keeps the losses. Returns {"loss": the mean over all rows, each metric}."""
        losses = []
        sizes = []
        watch = self.watch
        step = step.__wrapped__  # the plain method: `step_program` compiles and caches it
        for metric in self.metrics:
            metric.reset_state()
        look = history is None or not history.passes  # in a training, only in its first pass
        listener = watch if history is not None and watch.every_step else None
        for piece, rows in self.pieces(step, data, listener, look):
            losses.append(piece)
            sizes.append(rows)
            if history is not None:
                history.passes.append(piece)
                watch.on_call_end(piece, rows)
            if watch is not None:
                watch.check_interrupt()
            if listener and step.__self__.stop_training:  # set by a callback after this batch
                break
        if not sizes:
            raise ValueError("the dataset gave no batch")
        if history is not None:
            self.check_steps()
        if len(losses) > 1:  # one sum, so that the result does not depend on the length of the calls
            losses = [np.concatenate(losses)]
            sizes = [[*chain(*sizes)]]
        loss = epoch_loss(losses[0], sizes[0])
        return dict(zip(self.names, [loss, *(float(metric.result()) for metric in self.metrics)], strict=True))

"""What `compile` chose, and passes over data with it: several losses, metrics, weights of rows, cached programs."""

import functools
import time
from itertools import chain

import numpy as np

from levels import mid_level
from levels.high_level import epoch_loss
from levels.low_level import as_tensor
from levels.support.checks import check_positive, lookup
from levels.support.parts import Reconstructible
from levels_more.checks import takes
from levels_more.high_level.data_adapter import as_list, checked, pack, parts_of, y_as
from levels_more.high_level.outputs import PASSES, Counted, give_back, names_of, states_of
from levels_more.high_level.recompile import CachedFunction
from levels_more.high_level.tables import check_rows
from levels_more.low_level.ops import reduce_mean
from levels_more.mid_level import losses, metrics
from levels_more.mid_level.losses import LOSSES, weighted
from levels_more.mid_level.metrics import METRICS, expect_logits
from levels_more.mid_level.names import snake_case
from levels_more.mid_level.optimizers import OPTIMIZERS
from levels_more.mid_level.stages import cut

PIECE_SECONDS = 0.05  # the time that a call with several steps should take


def spelled(table, name):
    """The key of a table for Keras' name of a class, such as "auc" for "AUC". Any other name is returned as it is."""
    words = (name, snake_case(name), name.lower()) if isinstance(name, str) else ()
    return next((word for word in words if word in table), name)


def made(what, table, name):
    """The object for a name in a table, for a class, or for a metric given as a function or a loss. Others stay."""
    name = spelled(table, name)
    if what == "metric" and callable(name) and not isinstance(name, type) and not hasattr(name, "update_state"):
        return metrics.MeanLoss(name) if isinstance(name, mid_level.Loss) else metrics.Calculated(name)
    found = lookup(what, table, name)
    found = found() if isinstance(name, (str, type)) else found
    if what == "metric" and isinstance(name, str):
        found.by_name = True  # in the history it has the name given to `compile`
        found.name = name
    return found


def chosen_metric(given):
    """The metric that `compile` was given: a name, a class, a function, a loss or an object."""
    return made("metric", METRICS, given)


def named_anew(metric):
    """A metric like one that was made for a name."""
    found = metric.recreate()
    found.name, found.by_name = metric.name, True
    return found


def other_metrics(given):
    """Metrics like these that `compile` was given, for another output. Raises ValueError for an object."""
    for metric in given:
        if hasattr(metric, "update_state") and not isinstance(metric, type) and not getattr(metric, "by_name", False):
            raise ValueError(f"compile: {metric!r:.60} counts for one output, and there are several; give one for each")
    return [named_anew(each) if getattr(each, "by_name", False) else chosen_metric(each) for each in given]


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


class Training(Reconstructible):
    """Losses and metrics, for each output or for all. Each loss is multiplied by one of the `loss_weights`.

    In a list an output's loss may be None. Raises TypeError if the optimizer or the only loss is None, ValueError for
    an unknown name and for a list without a loss.
    """


    def __init__(self, optimizer, loss, metrics=(), loss_weights=None):
        several = isinstance(loss, (list, tuple))
        losses = [each and made("loss", LOSSES, each) for each in loss] if several else [made("loss", LOSSES, loss)]
        if not any(losses):
            lookup("loss", LOSSES, "")  # raises ValueError, as for an unknown name
        self.optimizer = made("optimizer", OPTIMIZERS, optimizer)
        self.losses = losses
        self.for_all = not several  # whether the loss is that of all outputs
        given = [as_list([] if each is None else each) for each in as_list([] if metrics is None else metrics)]
        again = functools.partial(other_metrics, *given[:1])
        self.counted = Counted([[*map(chosen_metric, each)] for each in given], again)
        if len(losses) == 1:
            expect_logits(self.metrics, losses)
        self.loss_weights = loss_weights
        if loss_weights is not None:
            name = "compile: one of the loss_weights"
            self.loss_weights = [check_positive(name, weight, zero=True) for weight in loss_weights]
        self.programs = {}  # (step, BatchLayout) -> its CachedFunction
        self.row_weights = []  # the weights of the rows of the batch that is traced now
        self.rows_weighed = False  # whether a loss has read them
        # steps in a call, see `pieces`; the listener while `fit` runs
        self.steps_per_call = 1
        self.watch = None

    def __getstate__(self):
        """The state of a copy: all but the programs, which use this model's variables, and the listener of `fit`."""
        return vars(self) | {"programs": {}, "watch": None}

    metrics = property(lambda self: self.counted.all, doc="All metrics, and the losses of several outputs.")

    def loss(self, model, y, predicted):
        """The sum of the losses of all outputs and the penalties of all layers. Updates the metrics with the batch."""
        y, predicted, weights = self.matched(y, predicted)
        self.counted.prepare(names_of(model, len(y)), self.losses_of(predicted))
        for group, *pair in zip(self.counted.groups, y, predicted, strict=True):
            for metric in group:
                metric.update_state(*pair)
        return self.summed(model, y, predicted, weights)

    def matched(self, y, predicted):
        """Targets, predictions and row weights (or None) for all outputs. Raises ValueError if their numbers differ."""
        y = as_list(y)
        predicted = as_list(predicted)
        losses = self.losses_of(predicted)
        if not len(losses) == len(y) == len(predicted):
            cure = "give one loss for all of them, not in a list, or a list with one for each"
            told = f"{len(predicted)} outputs, with {len(y)} targets and {len(losses)} losses"
            raise ValueError(f"{told}; {cure}" if len(losses) != len(predicted) else told)
        if len(self.loss_weights or y) != len(y):
            raise ValueError(f"compile: {len(self.loss_weights)} loss_weights for {len(y)} outputs")
        y = [y_as(loss, *pair) for loss, *pair in zip(losses, y, predicted, strict=True)]
        weights = self.row_weights or [None]
        return y, predicted, weights * len(y) if len(weights) == 1 else weights

    def losses_of(self, outputs):
        """A list with a loss for each of these outputs."""
        return self.losses * len(outputs) if self.for_all else self.losses

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
        each = []
        shares = self.loss_weights or [1.0] * len(y)
        terms = zip(self.losses_of(predicted), y, predicted, weights, shares, self.counted.losses, strict=True)
        for loss, *given, share, counted in terms:
            if loss is None:
                continue
            each.append(loss_of(loss, *given))
            if counted:
                counted.add(each[-1], given[1])
            if self.loss_weights is not None:
                each[-1] = share * each[-1]
        first, *others = each + model.losses
        return sum(others, first)

    def on_rows(self, step, layout, rows):
        """step(x, y) on the arrays of a batch. Raises ValueError if a user's step ignores the weights of rows."""
        x, y, self.row_weights = layout.unpacked(rows)
        try:
            result = step(x, y)
            if result is None or isinstance(result, dict | list | tuple):
                told = f"{step.__qualname__}: it returns {'None' if result is None else f'a {type(result).__name__}'}"
                raise TypeError(f"{told}; expected the loss, one number: metrics go into compile(metrics=…)")
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
            kept = CachedFunction(lambda *rows: self.on_rows(step, layout, rows))
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
                check_rows(rows, layout)
                if number:
                    self.check_targets(rows[layout.inputs : layout.inputs + layout.targets])
                else:
                    checked(step.__self__, rows, layout)
                if listener:
                    listener.on_step_begin()
                yield self.step_program(step, layout)(*rows).numpy().reshape(1), [len(rows[0])]
            return
        program = self.step_program(step, data.layout, look)
        ahead = None if look or self.watch is None else self.watch.ahead
        if ahead and ahead.may(self.steps_per_call):
            yield ahead.epoch(program, self, step.__self__.history)
            return
        for part in cut(data.iterate(), lambda: 1 if listener else self.steps_per_call):
            if listener:
                listener.on_step_begin()
                program = self.step_program(step, data.layout, listener.look)
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
            and callable(vars(self.optimizer).get("rate"))
            and float(steps) == 2.0**24
            and steps.dtype == np.float32
        ):
            cure = "train in float64, or let the learning rate be a number"
            raise OverflowError(f"the optimizer has taken {2**24:,} steps, and float32 counts no further: {cure}")

    def one_pass(self, step, data, history=None):
        """Go through the data; a history keeps the losses. Returns {"loss": the mean over all rows, each metric}."""
        step = step.__wrapped__  # the plain method: `step_program` compiles and caches it
        states = states_of(self.metrics) if PASSES.open else None  # then a callback has called `evaluate` after a batch
        PASSES.open += 1
        try:
            return self.counted_pass(step, data, history)
        finally:
            PASSES.open -= 1
            if states is not None:
                give_back(self.metrics, states)

    def counted_pass(self, step, data, history):
        """As `one_pass`, for a method of the model. Raises RuntimeError if `compile` was called during the training."""
        losses = []
        sizes = []
        watch = self.watch if history is not None else None
        if history is not None and watch is None:
            raise RuntimeError("fit: a callback has compiled the model anew; call compile before fit, or after it")
        for metric in self.counted.all:
            metric.reset_state()
        look = watch is None or not history.passes or watch.look  # whether anything can have changed
        listener = watch if watch is not None and watch.every_step else None
        for piece, rows in self.pieces(step, data, listener, look):
            losses.append(piece)
            sizes.append(rows)
            if watch is not None:
                history.passes.append(piece)
                watch.on_call_end(piece, rows)
            if self.watch is not None:
                self.watch.check_interrupt()
            if listener and step.__self__.stop_training:  # set by a callback after this batch
                break
        if not sizes:
            cure = "; a generator is used up after a pass: give a Dataset, or epochs=1"
            raise ValueError("the dataset gave no batch" + cure * bool(history and history.passes))
        if history is not None:
            self.check_steps()
        if len(losses) > 1:  # one sum, so that the result does not depend on the length of the calls
            losses = [np.concatenate(losses)]
            sizes = [[*chain(*sizes)]]
        logs = self.counted.logs(epoch_loss(losses[0], sizes[0]))
        return logs if history is None else step.__self__.in_order(logs)

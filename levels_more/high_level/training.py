"""What `compile` chose: the optimizer, the losses and the metrics of a model, with the weights of rows."""

from contextvars import ContextVar

import numpy as np

from levels import mid_level
from levels.low_level import as_tensor
from levels.support.checks import check_positive, lookup
from levels.support.parts import Reconstructible
from levels_more.high_level.outputs import Counted, names_of
from levels_more.high_level.rows import as_list
from levels_more.high_level.targets import like_predictions
from levels_more.low_level.ops import reduce_mean
from levels_more.mid_level import losses, metrics
from levels_more.mid_level.losses import LOSSES, weighted
from levels_more.mid_level.metrics import METRICS, expect_logits
from levels_more.mid_level.names import snake_case
from levels_more.mid_level.optimizers import OPTIMIZERS


def table_key(table, name):
    """The key of a table for Keras' name of a class, such as "auc" for "AUC". Any other name is returned as it is."""
    words = (name, snake_case(name), name.lower()) if isinstance(name, str) else ()
    return next((word for word in words if word in table), name)


def make_part(what, table, name):
    """The object for a name in a table, for a class, or for a metric given as a function or a loss. Others stay."""
    name = table_key(table, name)
    if what == "metric" and callable(name) and not isinstance(name, type) and not hasattr(name, "update_state"):
        return metrics.MeanLoss(name) if isinstance(name, mid_level.Loss) else metrics.Calculated(name)
    found = lookup(what, table, name)
    found = found() if isinstance(name, (str, type)) else found
    if what == "metric" and isinstance(name, str):
        found.by_name = True  # in the history it has the name given to `compile`
        found.name = name
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


# while a step runs: the weights of its rows (no tensor, one, or one for each output), and whether a loss has used them
ROW_WEIGHTS = ContextVar("ROW_WEIGHTS", default=None)


class Training(Reconstructible):
    """Losses and metrics, for each output or for all. Each loss is multiplied by one of the `loss_weights`.

    In a list an output's loss may be None. Raises TypeError if the optimizer or the only loss is None, ValueError for
    an unknown name and for a list without a loss.
    """

    def __init__(self, optimizer, loss, metrics=(), loss_weights=None):
        self.for_all = not isinstance(loss, (list, tuple))  # whether the loss is that of all outputs
        if not any(as_list(loss)):
            lookup("loss", LOSSES, loss if self.for_all else "")  # raises an error
        self.losses = [each and make_part("loss", LOSSES, each) for each in as_list(loss)]
        self.optimizer = make_part("optimizer", OPTIMIZERS, optimizer)
        given = [as_list([] if each is None else each) for each in as_list([] if metrics is None else metrics)]
        self.counted = Counted([[make_part("metric", METRICS, metric) for metric in each] for each in given])
        if len(self.losses) == 1:
            expect_logits(self.metrics, self.losses)
        self.loss_weights = loss_weights
        if loss_weights is not None:
            name = "compile: one of the loss_weights"
            self.loss_weights = [check_positive(name, weight, zero=True) for weight in loss_weights]
        self.programs = {}  # (a method of the model, BatchLayout) -> its StepProgram

    def __getstate__(self):
        """The state of a copy: all but the programs, which use this model's variables."""
        return vars(self) | {"programs": {}}

    metrics = property(lambda self: self.counted.all, doc="All metrics, and the losses of several outputs.")

    def loss(self, model, y, predicted):
        """The sum of the losses of all outputs and the penalties of all layers. Updates the metrics with the batch."""
        y, predicted, weights = self.match_outputs(y, predicted)
        self.counted.prepare(names_of(model, len(y)), self.losses_of(predicted))
        for group, *pair in zip(self.counted.groups, y, predicted, strict=True):
            for metric in group:
                metric.update_state(*pair)
        return self.sum_losses(model, y, predicted, weights)

    def match_outputs(self, y, predicted):
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
        y = [like_predictions(loss, *pair) for loss, *pair in zip(losses, y, predicted, strict=True)]
        weights = [None]
        if rows := ROW_WEIGHTS.get():
            rows.used = True
            weights = rows.tensors or weights
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

    def sum_losses(self, model, y, predicted, weights):
        """The sum of the losses of all outputs, for targets y [batch, …], and of the penalties of all layers."""
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

    def check_steps(self):
        """Raise OverflowError if a schedule's count of steps can no longer grow: 2²⁴ + 1 is 2²⁴ in float32."""
        steps = getattr(self.optimizer, "iterations", None)
        scheduled = callable(vars(self.optimizer).get("rate"))
        if scheduled and steps is not None and steps.dtype == np.float32 and float(steps) == 2.0**24:
            cure = "train in float64, or let the learning rate be a number"
            raise OverflowError(f"the optimizer has taken {2**24:,} steps, and float32 counts no further: {cure}")

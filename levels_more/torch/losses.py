"""Losses of recorded tensors, as functions. They take the prediction first.

They are weighted, and then reduced to their mean or sum.
"""

from levels.mid_level import squared_error
from levels.support.inputs import check_probabilities
from levels_more import low_level as low
from levels_more.low_level import nn
from levels_more.torch.tensors import for_tensors

PLACE = "levels_more.torch.nn.functional"  # the module in which a pickle looks for a loss


def reduce(losses, reduction, count=None):
    """Reduce losses[batch, …]: "mean" (the sum divided by `count`, if given), "sum", or "none" (return them unchanged).

    Raises ValueError for another reduction.
    """
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"reduction is {reduction!r:.60}; expected 'mean', 'sum' or 'none'")
    if reduction == "none":
        return losses
    total = low.reduce_sum(losses)
    return total if reduction == "sum" else low.reduce_mean(losses) if count is None else total / count


def loss(name, each):
    """Return a loss of recorded tensors from the elementwise `each(input, target)`; `reduction`: see `reduce`."""

    def run(input, target, weight=None, reduction="mean", **options):
        if tuple(input.shape) != tuple(target.shape):
            raise ValueError(f"input is {tuple(input.shape)}, target {tuple(target.shape)}; expected equal shapes")
        found = each(input, target, **options)
        return reduce(found if weight is None else found * weight, reduction)

    return for_tensors(name, run, place=PLACE)


def of_probabilities(input, target):
    """-(target·log p + (1 - target)·log(1 - p)), p = input, each log ≥ -100. Raises ValueError unless 0 ≤ p ≤ 1."""
    check_probabilities("BinaryCrossentropy", "input", input)
    check_probabilities("BinaryCrossentropy", "target", target)
    return low.apply("probabilities_crossentropy", target, input)


def of_logits(input, target):
    """The same with p = sigmoid(input), without a limit for the logs."""
    return low.apply("logits_crossentropy", target, input)


def of_classes(input, target, weight=None, reduction="mean", ignore_index=-100):
    """Cross-entropy of logits input[batch, classes]. target: classes [batch], or probabilities [batch, classes].

    The mean weights each row by the weight of its class. A row of class `ignore_index` does not count. Raises
    ValueError for a target of another shape or dtype, IndexError for a class that does not exist.
    """
    logs = nn.log_softmax(input)
    shape = tuple(logs.shape)
    if target.dtype.kind == "f" and tuple(target.shape) == shape and len(shape) == 2:
        each = low.apply("multiply_no_nan", logs, target)
        return reduce(-low.reduce_sum(each * (1.0 if weight is None else weight), 1), reduction)
    if target.dtype.kind != "i" or tuple(target.shape) != shape[:1] or len(shape) != 2:
        given = f"target is {target.dtype}, {tuple(target.shape)}; input is {shape}"
        wanted = "input [batch, classes], and a class (int64) per row or a probability (a float) per number"
        raise ValueError(f"{given}; expected {wanted}")
    counts = target != ignore_index
    target = low.where(counts, target, 0)
    numbers = target.numpy()
    if (wrong := numbers[(numbers < 0) | (numbers >= shape[1])]).size:
        raise IndexError(f"target holds class {wrong[0]}; input {shape} has the classes 0 to {shape[1] - 1}")
    weight = low.ones(shape[1], logs.dtype) if weight is None else weight
    each_weight = low.where(counts, low.gather(weight, target), 0.0)
    each = low.squeeze(low.take_along(logs, low.expand_dims(target, 1), 1), 1)
    each = -low.where(counts, each, 0.0) * each_weight
    return reduce(each, reduction, low.reduce_sum(each_weight))


mse_loss = loss("mse_loss", lambda x, y: squared_error(y, x))
binary_cross_entropy = loss("binary_cross_entropy", of_probabilities)
binary_cross_entropy_with_logits = loss("binary_cross_entropy_with_logits", of_logits)
cross_entropy = for_tensors("cross_entropy", of_classes, place=PLACE)

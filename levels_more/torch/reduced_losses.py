"""Losses in PyTorch's order, what is predicted first: weighted, and then reduced to their mean or sum."""

from levels.mid_level import BinaryCrossentropy, squared_error
from levels_more import low_level as low
from levels_more.low_level import nn
from levels_more.torch.recorded import recorded


def reduced(losses, reduction, count=None):
    """These losses, [batch, …], as "mean", of as many as are said, "sum", or as they are, "none".

    Raises ValueError for another word.
    """
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"reduction is {reduction!r:.60}; expected 'mean', 'sum' or 'none'")
    if reduction == "none":
        return losses
    total = low.reduce_sum(losses)
    return total if reduction == "sum" else low.reduce_mean(losses) if count is None else total / count


def loss(name, each):
    """A loss of what `each(input, target)` gives number by number, of recorded tensors; `reduction`: see `reduced`."""

    def run(input, target, weight=None, reduction="mean", **options):
        if tuple(input.shape) != tuple(target.shape):
            raise ValueError(f"input is {tuple(input.shape)}, target {tuple(target.shape)}; expected equal shapes")
        found = each(input, target, **options)
        return reduced(found if weight is None else found * weight, reduction)

    return recorded(name, run)


def of_probabilities(input, target):
    """-(target·log p + (1 - target)·log(1 - p)), p = input; no log counts as less than -100. Raises ValueError."""
    BinaryCrossentropy().check_probabilities("input", input)
    return low.apply("probabilities_crossentropy", target, input)


def of_logits(input, target):
    """The same of p = sigmoid(input), with nothing cut off."""
    return low.apply("logits_crossentropy", target, input)


def of_classes(input, target, weight=None, reduction="mean"):
    """Minus log_softmax(input[batch, classes]) at target[batch], a class; or of target[batch, classes], probabilities.

    A mean counts each row by the weight of its class. Raises ValueError for a target of another shape.
    """
    logs = nn.log_softmax(input)
    if target.dtype.kind != "i":
        each = low.apply("multiply_no_nan", logs, target)
        return reduced(-low.reduce_sum(each * (1.0 if weight is None else weight), 1), reduction)
    if tuple(target.shape) != tuple(logs.shape[:1]) or len(logs.shape) != 2:
        raise ValueError(f"target is {tuple(target.shape)}; expected a class for each row of {tuple(logs.shape)}")
    weight = low.ones_like(logs[0]) if weight is None else weight
    each = -low.squeeze(low.take_along(logs * weight, low.expand_dims(target, 1), 1), 1)
    return reduced(each, reduction, low.reduce_sum(low.gather(weight, target)))


mse_loss = loss("mse_loss", lambda x, y: squared_error(y, x))
l1_loss = loss("l1_loss", lambda x, y: low.abs(x - y))
binary_cross_entropy = loss("binary_cross_entropy", of_probabilities)
binary_cross_entropy_with_logits = loss("binary_cross_entropy_with_logits", of_logits)
cross_entropy = recorded("cross_entropy", of_classes)

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


def of_logits(input, target, pos_weight=None):
    """The same of p = sigmoid(input), with nothing cut off; what is 1 counts `pos_weight` times."""
    if pos_weight is None:
        return low.apply("logits_crossentropy", target, input)
    return (1.0 - target) * input + (1.0 + (pos_weight - 1.0) * target) * nn.softplus(-input)


def of_classes(input, target, weight=None, reduction="mean", ignore_index=-100):
    """Minus log_softmax(input[batch, classes]) at target[batch], a class; or of target[batch, classes], probabilities.

    A mean counts each row by the weight of its class. A row whose class is `ignore_index` counts nothing. Raises
    ValueError for a target of another shape, IndexError for a class that is not there.
    """
    logs = nn.log_softmax(input)
    shape = tuple(logs.shape)
    if target.dtype.kind == "f" and tuple(target.shape) == shape:
        each = low.apply("multiply_no_nan", logs, target)
        return reduced(-low.reduce_sum(each * (1.0 if weight is None else weight), 1), reduction)
    if target.dtype.kind != "i" or tuple(target.shape) != shape[:1] or len(shape) != 2:
        given = f"target is {target.dtype}, {tuple(target.shape)}; input is {shape}"
        raise ValueError(f"{given}: expected a class (int64) for each row, or a probability (a float) for each number")
    counts = target != ignore_index
    target = low.where(counts, target, 0)
    numbers = target.numpy()
    if (wrong := numbers[(numbers < 0) | (numbers >= shape[1])]).size:
        raise IndexError(f"target holds class {wrong[0]}; input {shape} has the classes 0 to {shape[1] - 1}")
    weight = low.ones(shape[1], logs.dtype) if weight is None else weight
    each_weight = low.where(counts, low.gather(weight, target), 0.0)
    each = low.squeeze(low.take_along(logs, low.expand_dims(target, 1), 1), 1)
    each = -low.where(counts, each, 0.0) * each_weight
    return reduced(each, reduction, low.reduce_sum(each_weight))


mse_loss = loss("mse_loss", lambda x, y: squared_error(y, x))
l1_loss = loss("l1_loss", lambda x, y: low.abs(x - y))
binary_cross_entropy = loss("binary_cross_entropy", of_probabilities)
binary_cross_entropy_with_logits = loss("binary_cross_entropy_with_logits", of_logits)
cross_entropy = recorded("cross_entropy", of_classes)

"""Losses in PyTorch's order, what is predicted first: number by number, weighted, and then reduced to their mean or sum."""

from levels import low_level as low
from levels.low_level import nn
from levels.mid_level import losses


def reduced(losses, reduction, count=None):
    """These losses, [batch, …], as "mean", of as many as are said, "batchmean", "sum", or as they are, "none".

    Raises ValueError for another word.
    """
    if reduction not in ("mean", "batchmean", "sum", "none"):
        raise ValueError(f"reduction is {reduction!r:.60}; expected 'mean', 'sum' or 'none'")
    if reduction == "none":
        return losses
    total, count = low.reduce_sum(losses), float(losses.shape[0]) if reduction == "batchmean" else count
    return total if reduction == "sum" else low.reduce_mean(losses) if count is None else total / count


def loss(each):
    """A loss of what `each(input, target)` gives number by number; `reduction`: see `reduced`."""

    def run(input, target, weight=None, reduction="mean", **options):
        if tuple(input.shape) != tuple(target.shape):
            raise ValueError(f"input is {tuple(input.shape)}, target {tuple(target.shape)}; expected equal shapes")
        found = each(input, target, **options)
        return reduced(found if weight is None else found * weight, reduction)

    return run


def of_probabilities(input, target):
    """-(target·log p + (1 - target)·log(1 - p)), p = input; no logarithm counts as less than -100. Raises ValueError for no p."""
    losses.BinaryCrossentropy().check_probabilities("input", input)
    return low.apply("probabilities_crossentropy", target, input)


def of_logits(input, target, pos_weight=None):
    """The same of p = sigmoid(input), with nothing cut off; what is 1 counts `pos_weight` times."""
    if pos_weight is None:
        return low.apply("logits_crossentropy", target, input)
    return (1.0 - target) * input + (1.0 + (pos_weight - 1.0) * target) * nn.softplus(-input)


def _in_rows(x):
    """x[batch, classes, …] with the classes behind everything else."""
    return x if len(x.shape) < 3 else low.transpose(x, (0, *range(2, len(x.shape)), 1))


def of_log_probabilities(logs, target, weight=None, reduction="mean", label_smoothing=0.0, ignore_index=-100):
    """Minus the entry of logs[batch, classes] at target[batch], a class. A mean counts each by the weight of its class.

    A row whose class is `ignore_index` does not count. Of logs[batch, classes, …] each place is a row. Raises ValueError for
    a target of another shape.
    """
    logs, shape = _in_rows(logs), tuple(target.shape)
    if shape != (*logs.shape[:-1],):
        raise ValueError(f"target is {shape}; expected a class for each row of {tuple(logs.shape)}")
    if len(shape) != 1:
        logs, target = low.reshape(logs, (-1, logs.shape[-1])), low.reshape(target, (-1,))
        found = of_log_probabilities(logs, target, weight, reduction, label_smoothing, ignore_index)
        return low.reshape(found, shape) if reduction == "none" else found
    kept = target.numpy() != ignore_index
    target = target if kept.all() else low.constant(target.numpy() * kept)
    weight = low.ones_like(logs[0]) if weight is None else weight
    each, counts = (
        -low.squeeze(low.take_along(logs * weight, low.expand_dims(target, 1), 1), 1),
        low.gather(weight, target),
    )
    if label_smoothing:
        each = (1.0 - label_smoothing) * each - label_smoothing * low.reduce_mean(logs * weight, 1)
    if not kept.all():
        each, counts = low.where(low.constant(kept), each, 0.0), low.where(low.constant(kept), counts, 0.0)
    return reduced(each, reduction, low.reduce_sum(counts))


def of_classes(input, target, weight=None, reduction="mean", label_smoothing=0.0, ignore_index=-100):
    """The same of log_softmax(input); the target is a class for each row, or as many probabilities of classes."""
    logs = nn.log_softmax(input, min(1, len(input.shape) - 1))
    if target.dtype.kind == "i":
        return of_log_probabilities(logs, target, weight, reduction, label_smoothing, ignore_index)
    target = target * (1.0 - label_smoothing) + label_smoothing / input.shape[1]
    each = low.apply("multiply_no_nan", logs, target)
    return reduced(-low.reduce_sum(each * (1.0 if weight is None else weight), 1), reduction)


def divergence(input, target):
    """target·(log target - input), 0 where the target is 0: input holds logarithms (Kullback and Leibler, 1951)."""
    return low.where(target > 0.0, target * (low.log(low.where(target > 0.0, target, 1.0)) - input), 0.0)


def hinge(input, target, margin=1.0):
    """The distance input[…] where the target is 1, else what it lacks of the margin: target holds 1 and -1."""
    return low.where(target == 1.0, input, low.maximum(margin - input, 0.0))


def of_counts(input, target, log_input=True, eps=1e-8):
    """The rate less target·log rate, of Poisson's distribution; input[…] is the logarithm of the rate, or the rate."""
    return low.exp(input) - target * input if log_input else input - target * low.log(input + eps)


def ranking(input1, input2, target, margin=0.0, reduction="mean"):
    """What input1[…] is not larger than input2[…] by the margin, or, where target[…] is -1, smaller."""
    return reduced(low.maximum(margin - target * (input1 - input2), 0.0), reduction)


def of_normals(input, target, var, eps=1e-6, reduction="mean"):
    """(log var + (input - target)² / var) / 2, of a normal distribution: three tensors […]; no var counts as less than eps.

    Its slope passes the cut, as in PyTorch: a var of 0 still learns.
    """
    var = var + low.stop_gradient(low.maximum(var, eps) - var)
    return reduced((low.log(var) + losses.squared_error(target, input) / var) / 2.0, reduction)


def triplet(anchor, positive, negative, margin=1.0, p=2.0, eps=1e-6, reduction="mean"):
    """By how much rows anchor[n, k] are not nearer to `positive` than to `negative`, by the margin (Schroff et al., 2015)."""
    near, far = (low.norm(anchor - x + eps, p, -1) for x in (positive, negative))
    return reduced(low.maximum(near - far + margin, 0.0), reduction)


def of_angles(input1, input2, target, margin=0.0, reduction="mean"):
    """1 - cos of the angle between rows input1[n, k] and input2[n, k], or, where target[n] is -1, cos less the margin."""
    cos = low.cosine_similarity(input1, input2, -1)
    return reduced(low.where(target == 1, 1.0 - cos, low.maximum(cos - margin, 0.0)), reduction)

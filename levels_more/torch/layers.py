"""Layers and losses of recorded tensors.

Each layer holds its parameters, and its `forward` calls functions and operators. Losses take the prediction first. They
are weighted, and then reduced to their mean or sum.
"""

import math

from levels.mid_level import squared_error
from levels.support.inputs import check_probabilities
from levels_more import low_level as low
from levels_more.checks import as_python, sizes
from levels_more.low_level import nn
from levels_more.low_level.signatures import Options
from levels_more.torch.functions import FUNCTIONS
from levels_more.torch.modules import Module, Parameter
from levels_more.torch.tensors import recorded

PLACE = "levels_more.torch.nn.functional"  # the module in which a pickle looks for a loss


def linear(x, weight, bias=None):
    """x[…, in] @ weight[out, in].T + bias[out]"""
    y = x @ weight.t()
    return y if bias is None else y + bias


def dropout(x, p=0.5, training=True):
    """Set each number of x[…] to 0 with probability p, and divide the others by 1 - p. Outside of training return x.

    Srivastava et al., 2014. Raises ValueError unless p is in [0, 1].
    """
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout: p is {p!r}; expected a probability, from 0 to 1")
    if not training or p == 0.0:
        return x
    return x * 0.0 if p == 1.0 else FUNCTIONS["where"](FUNCTIONS["rand_like"](x) < p, 0.0, x / (1.0 - p))


class Linear(Module):
    """x @ weight[out, in].T + bias[out]. Both are initialised uniformly in ±1/√in."""

    def __init__(self, in_features, out_features, bias=True, device=None, dtype=None):
        super().__init__()
        (self.in_features,) = sizes("Linear: in_features", in_features)
        (self.out_features,) = sizes("Linear: out_features", out_features)
        limit = 1.0 / math.sqrt(max(1, self.in_features))
        weight = FUNCTIONS["zeros"](self.out_features, self.in_features, dtype=dtype)
        self.weight = Parameter(weight.uniform_(-limit, limit))
        offsets = FUNCTIONS["zeros"](self.out_features, dtype=dtype)
        self.bias = Parameter(offsets.uniform_(-limit, limit)) if bias else None

    def forward(self, x):
        """x[…, in] -> […, out]"""
        return linear(x, self.weight, self.bias)

    def extra_repr(self):
        """Return the text in brackets in the repr."""
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


def reduced(losses, reduction, count=None):
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
    """Return a loss of recorded tensors from the elementwise `each(input, target)`; `reduction`: see `reduced`."""

    def run(input, target, weight=None, reduction="mean", **options):
        if tuple(input.shape) != tuple(target.shape):
            raise ValueError(f"input is {tuple(input.shape)}, target {tuple(target.shape)}; expected equal shapes")
        found = each(input, target, **options)
        return reduced(found if weight is None else found * weight, reduction)

    return recorded(name, run, place=PLACE)


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
        return reduced(-low.reduce_sum(each * (1.0 if weight is None else weight), 1), reduction)
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
    return reduced(each, reduction, low.reduce_sum(each_weight))


mse_loss = loss("mse_loss", lambda x, y: squared_error(y, x))
binary_cross_entropy = loss("binary_cross_entropy", of_probabilities)
binary_cross_entropy_with_logits = loss("binary_cross_entropy_with_logits", of_logits)
cross_entropy = recorded("cross_entropy", of_classes, place=PLACE)


class Calling(Module):
    """A layer or a loss that calls `function` with its options. Raises TypeError for options that it does not have."""

    __signature__ = Options()
    function = None
    options = {}

    def __init__(self, *args, **given):
        super().__init__()
        if len(args) > len(self.options) or not given.keys() <= self.options.keys():
            raise TypeError(
                f"{type(self).__name__}: got {args!r:.60} {given!r:.60}; its options are {', '.join(self.options)}"
            )
        given = {**dict(zip(self.options, args, strict=False)), **given}
        self.options = self.options | {name: as_python(value) for name, value in given.items()}

    def forward(self, *args, **named):
        """Return what the function returns."""
        return type(self).function(*args, **named, **self.options)

    def extra_repr(self):
        """Return the options as text; none for a loss."""
        shown = {} if "reduction" in self.options else self.options
        return ", ".join(f"{name}={x!r}" for name, x in shown.items() if name != "inplace" or x)


def calling(name, function, **options):
    """Return the layer or loss class `name`, which calls this function. options: the names and default values."""
    names = {"__doc__": f"Calls `{function.__name__}`.", "__module__": __name__}
    return type(name, (Calling,), names | {"function": function, "options": options})


ReLU = calling("ReLU", FUNCTIONS["relu"], inplace=False)
Sigmoid = calling("Sigmoid", FUNCTIONS["sigmoid"])
Tanh = calling("Tanh", FUNCTIONS["tanh"])
Softmax = calling("Softmax", FUNCTIONS["softmax"], dim=None)
MSELoss = calling("MSELoss", mse_loss, weight=None, reduction="mean")
BCELoss = calling("BCELoss", binary_cross_entropy, weight=None, reduction="mean")
BCEWithLogitsLoss = calling("BCEWithLogitsLoss", binary_cross_entropy_with_logits, weight=None, reduction="mean")
CrossEntropyLoss = calling("CrossEntropyLoss", cross_entropy, weight=None, reduction="mean", ignore_index=-100)


class Dropout(Calling):
    """Calls `dropout`, which changes nothing outside of training. Raises ValueError unless p is in [0, 1]."""

    options = {"p": 0.5}

    def __init__(self, *args, **given):
        super().__init__(*args, **given)
        dropout(None, self.options["p"], False)  # raises ValueError unless p is a probability

    def forward(self, x):
        """Return x[…], in training with some numbers set to 0."""
        return dropout(x, self.options["p"], self.training)

"""Layers of recorded tensors. Each holds its parameters, and its `forward` calls functions, such as those of losses."""

import math

from levels_more.checks import as_python, sizes
from levels_more.low_level.signatures import Options
from levels_more.torch.functions import FUNCTIONS
from levels_more.torch.losses import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cross_entropy,
    mse_loss,
)
from levels_more.torch.modules import Module, Parameter


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


class FunctionLayer(Module):
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


def layer_of(name, function, **options):
    """Return the layer or loss class `name`, which calls this function. options: the names and default values."""
    names = {"__doc__": f"Calls `{function.__name__}`.", "__module__": __name__}
    return type(name, (FunctionLayer,), names | {"function": function, "options": options})


ReLU = layer_of("ReLU", FUNCTIONS["relu"], inplace=False)
Sigmoid = layer_of("Sigmoid", FUNCTIONS["sigmoid"])
Tanh = layer_of("Tanh", FUNCTIONS["tanh"])
Softmax = layer_of("Softmax", FUNCTIONS["softmax"], dim=None)
MSELoss = layer_of("MSELoss", mse_loss, weight=None, reduction="mean")
BCELoss = layer_of("BCELoss", binary_cross_entropy, weight=None, reduction="mean")
BCEWithLogitsLoss = layer_of("BCEWithLogitsLoss", binary_cross_entropy_with_logits, weight=None, reduction="mean")
CrossEntropyLoss = layer_of("CrossEntropyLoss", cross_entropy, weight=None, reduction="mean", ignore_index=-100)


class Dropout(FunctionLayer):
    """Calls `dropout`, which changes nothing outside of training. Raises ValueError unless p is in [0, 1]."""

    options = {"p": 0.5}

    def __init__(self, *args, **given):
        super().__init__(*args, **given)
        dropout(None, self.options["p"], False)  # raises ValueError unless p is a probability

    def forward(self, x):
        """Return x[…], in training with some numbers set to 0."""
        return dropout(x, self.options["p"], self.training)

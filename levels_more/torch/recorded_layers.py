"""Layers of recorded tensors: each owns its parameters, and its `forward` is made of functions and operators."""

import math

from levels_more.checks import as_python
from levels_more.torch import reduced_losses as losses
from levels_more.torch.functions import FUNCTIONS
from levels_more.torch.recorded_modules import Module, Parameter


def linear(x, weight, bias=None):
    """x[…, in] @ weight[out, in].T + bias[out]"""
    y = x @ weight.t()
    return y if bias is None else y + bias


def dropout(x, p=0.5, training=True):
    """Each number of x is 0 with probability p, and what is left is divided by 1 - p; outside of training it is x.

    Srivastava et al., 2014. Raises ValueError for a p outside of [0, 1].
    """
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout: p is {p!r}; expected a probability, from 0 to 1")
    if not training or p == 0.0:
        return x
    return x * 0.0 if p == 1.0 else FUNCTIONS["where"](FUNCTIONS["rand_like"](x) < p, 0.0, x / (1.0 - p))


class Linear(Module):
    """x @ weight[out, in].T + bias[out]. Both begin uniform in ±1/√in."""

    def __init__(self, in_features, out_features, bias=True, device=None, dtype=None):
        super().__init__()
        self.in_features, self.out_features = as_python((in_features, out_features))
        limit = 1.0 / math.sqrt(in_features)
        self.weight = Parameter(FUNCTIONS["zeros"](out_features, in_features, dtype=dtype).uniform_(-limit, limit))
        self.bias = Parameter(FUNCTIONS["zeros"](out_features, dtype=dtype).uniform_(-limit, limit)) if bias else None

    def forward(self, x):
        """x[…, in] -> […, out]"""
        return linear(x, self.weight, self.bias)

    def extra_repr(self):
        """What is told of it in brackets."""
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class Calling(Module):
    """Calls its function on what it is given, with its options: a layer, or a loss. Raises TypeError for others."""

    function, options = None, {}

    def __init__(self, *args, **given):
        super().__init__()
        if len(args) > len(self.options) or not given.keys() <= self.options.keys():
            raise TypeError(
                f"{type(self).__name__}: got {args!r:.60} {given!r:.60}; its options are {', '.join(self.options)}"
            )
        given = {**dict(zip(self.options, args, strict=False)), **given}
        self.options = self.options | {name: as_python(value) for name, value in given.items()}

    def forward(self, *args):
        """What the function gives."""
        return type(self).function(*args, **self.options)

    def extra_repr(self):
        """Its options, but those of losses."""
        shown = {} if "reduction" in self.options else self.options
        return ", ".join(f"{name}={x!r}" for name, x in shown.items() if name != "inplace" or x)


def calling(name, function, **options):
    """The layer, or the loss, of that name, which calls this function with these options."""
    names = {"__doc__": f"Calls `{function.__name__}`.", "__module__": __name__}
    return type(name, (Calling,), names | {"function": function, "options": options})


ReLU = calling("ReLU", FUNCTIONS["relu"], inplace=False)
Sigmoid = calling("Sigmoid", FUNCTIONS["sigmoid"])
Tanh = calling("Tanh", FUNCTIONS["tanh"])
MSELoss = calling("MSELoss", losses.mse_loss, weight=None, reduction="mean")
L1Loss = calling("L1Loss", losses.l1_loss, weight=None, reduction="mean")
BCELoss = calling("BCELoss", losses.binary_cross_entropy, weight=None, reduction="mean")
BCEWithLogitsLoss = calling("BCEWithLogitsLoss", losses.binary_cross_entropy_with_logits, weight=None, reduction="mean")
CrossEntropyLoss = calling("CrossEntropyLoss", losses.cross_entropy, weight=None, reduction="mean")


class Dropout(Calling):
    """Calls `dropout`, in training."""

    options = {"p": 0.5}

    def __init__(self, *args, **given):
        super().__init__(*args, **given)
        dropout(None, self.options["p"], False)  # raises ValueError for what is no probability

    def forward(self, x):
        """x[…] with some of its numbers 0, in training."""
        return dropout(x, self.options["p"], self.training)

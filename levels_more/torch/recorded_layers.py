"""Layers of recorded tensors: each owns its parameters, and its `forward` is made of functions and operators."""

import math

from levels_more.checks import as_python
from levels_more.torch import reduced_losses as losses
from levels_more.torch.functions import FUNCTIONS
from levels_more.torch.recorded_modules import Module, Parameter
from levels_more.torch.recording import switched


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


class BatchNorm1d(Module):
    """(x - mean) / √(var + eps)·weight + bias, of rows; in `eval` with the running ones (Ioffe and Szegedy, 2015)."""

    def __init__(self, num_features, eps=1e-5, momentum=0.1, device=None, dtype=None):
        super().__init__()
        self.num_features = as_python(num_features)
        self.eps, self.momentum = as_python((eps, momentum))
        self.weight = Parameter(FUNCTIONS["ones"](num_features, dtype=dtype))
        self.bias = Parameter(FUNCTIONS["zeros"](num_features, dtype=dtype))
        self.register_buffer("running_mean", FUNCTIONS["zeros"](num_features, dtype=dtype))
        self.register_buffer("running_var", FUNCTIONS["ones"](num_features, dtype=dtype))
        self.register_buffer("num_batches_tracked", FUNCTIONS["zeros"]((), dtype="int64"))

    def forward(self, x):
        """x[batch, features] -> the same shape. Raises ValueError for another shape, and for training on one row."""
        if x.ndim != 2 or x.shape[1] != self.num_features:
            raise ValueError(f"BatchNorm1d: x is {tuple(x.shape)}; expected [batch, {self.num_features}]")
        mean, var = self.running_mean, self.running_var
        if self.training:
            if len(x) < 2:
                raise ValueError(
                    f"BatchNorm1d: x is {tuple(x.shape)}; one row has no variance to train on; call eval()"
                )
            mean, var = x.mean(0), x.var(0, unbiased=False)
            with switched(False):
                self.num_batches_tracked += 1
                self.running_mean += self.momentum * (mean - self.running_mean)
                self.running_var += self.momentum * (x.var(0) - self.running_var)
        return (x - mean) / (var + self.eps).sqrt() * self.weight + self.bias


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


class ReLU(Calling):
    """Calls `relu`."""

    function, options = FUNCTIONS["relu"], {"inplace": False}


class Sigmoid(Calling):
    """Calls `sigmoid`."""

    function = FUNCTIONS["sigmoid"]


class Tanh(Calling):
    """Calls `tanh`."""

    function = FUNCTIONS["tanh"]


class MSELoss(Calling):
    """Calls `mse_loss`."""

    function, options = losses.mse_loss, {"weight": None, "reduction": "mean"}


class L1Loss(Calling):
    """Calls `l1_loss`."""

    function, options = losses.l1_loss, {"weight": None, "reduction": "mean"}


class BCELoss(Calling):
    """Calls `binary_cross_entropy`."""

    function, options = losses.binary_cross_entropy, {"weight": None, "reduction": "mean"}


class BCEWithLogitsLoss(Calling):
    """Calls `binary_cross_entropy_with_logits`."""

    function = losses.binary_cross_entropy_with_logits
    options = {"weight": None, "reduction": "mean", "pos_weight": None}


class CrossEntropyLoss(Calling):
    """Calls `cross_entropy`."""

    function, options = losses.cross_entropy, {"weight": None, "reduction": "mean"}


class Dropout(Calling):
    """Calls `dropout`, in training."""

    options = {"p": 0.5}

    def __init__(self, *args, **given):
        super().__init__(*args, **given)
        dropout(None, self.options["p"], False)  # raises ValueError for what is no probability

    def forward(self, x):
        """x[…] with some of its numbers 0, in training."""
        return dropout(x, self.options["p"], self.training)

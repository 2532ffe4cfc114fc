"""Layers of recorded tensors: each owns its parameters, and its `forward` is made of functions and operators."""

import math

from levels_more.recorded import FUNCTIONS
from levels_more.recorded_modules import Module, Parameter
from levels_more.recording import switched


def linear(x, weight, bias=None):
    """x[…, in] @ weight[out, in].T + bias[out]"""
    y = x @ weight.t()
    return y if bias is None else y + bias


def dropout(x, p=0.5, training=True, inplace=False):
    """Each number of x is 0 with probability p, and what is left is divided by 1 - p; outside of training it is x.

    Srivastava et al., 2014. Raises ValueError for a p outside of [0, 1].
    """
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout: p is {p!r}; expected a probability, from 0 to 1")
    if not training or p == 0.0:
        return x
    return x * 0.0 if p == 1.0 else (x / (1.0 - p)).masked_fill(FUNCTIONS["rand_like"](x) < p, 0.0)


def layer_norm(x, normalized_shape, weight=None, bias=None, eps=1e-5):
    """(x - mean) / √(var + eps)·weight + bias, over the last axis of x[…, inputs] (Ba et al., 2016)."""
    x = (x - x.mean(-1, keepdim=True)) / (x.var(-1, unbiased=False, keepdim=True) + eps).sqrt()
    x = x if weight is None else x * weight
    return x if bias is None else x + bias


class Linear(Module):
    """x @ weight[out, in].T + bias[out]. Both begin uniform in ±1/√in."""

    def __init__(self, in_features, out_features, bias=True, device=None, dtype=None):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
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
    """(x - mean) / √(var + eps)·weight + bias, over the rows; in `eval` with the running mean and variance (Ioffe and Szegedy, 2015)."""

    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=True):
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        if affine:
            self.weight, self.bias = (
                Parameter(FUNCTIONS["ones"](num_features)),
                Parameter(FUNCTIONS["zeros"](num_features)),
            )
        self.register_buffer("running_mean", FUNCTIONS["zeros"](num_features))
        self.register_buffer("running_var", FUNCTIONS["ones"](num_features))
        self.register_buffer("num_batches_tracked", FUNCTIONS["zeros"]((), dtype="int64"))

    def forward(self, x):
        """x[batch, features] -> the same shape. Raises ValueError for training on one row."""
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
        x = (x - mean) / (var + self.eps).sqrt()
        return x * self.weight + self.bias if "weight" in vars(self) else x

    def extra_repr(self):
        """What is told of it in brackets."""
        affine = "weight" in vars(self)
        how = f"eps={self.eps}, momentum={self.momentum}, affine={affine}, bias={affine}"
        return f"{self.num_features}, {how}, track_running_stats=True"


class LayerNorm(Module):
    """(x - mean) / √(var + eps)·weight + bias, each row, the last axis, by itself (Ba et al., 2016)."""

    def __init__(self, normalized_shape, eps=1e-5):
        super().__init__()
        (n,) = normalized_shape if isinstance(normalized_shape, tuple | list) else (normalized_shape,)
        self.eps, self.weight = eps, Parameter(FUNCTIONS["ones"](n))
        self.bias = Parameter(FUNCTIONS["zeros"](n))

    def forward(self, x):
        """x[…, inputs] -> the same shape"""
        return layer_norm(x, self.weight.shape, self.weight, self.bias, self.eps)


class Embedding(Module):
    """Rows of a table weight[num_embeddings, embedding_dim], normal at first, by number."""

    def __init__(self, num_embeddings, embedding_dim):
        super().__init__()
        self.weight = Parameter(FUNCTIONS["randn"](num_embeddings, embedding_dim))

    def forward(self, x):
        """x[…], whole numbers -> […, embedding_dim]"""
        return self.weight[x]

    def extra_repr(self):
        """What is told of it in brackets."""
        return ", ".join(map(str, self.weight.shape))


class PReLU(Module):
    """x where it is positive, else weight·x, a weight for all or one for each column, 0.25 at first (He et al., 2015)."""

    def __init__(self, num_parameters=1, init=0.25):
        super().__init__()
        self.weight = Parameter(FUNCTIONS["full"]((num_parameters,), init))

    def forward(self, x):
        """x[…] -> the same shape"""
        return FUNCTIONS["prelu"](x, self.weight)

    def extra_repr(self):
        """What is told of it in brackets."""
        return f"num_parameters={len(self.weight)}"


class Calling(Module):
    """Calls its function on what it is given, with its options: a layer without parameters, or a loss. Raises TypeError for others."""

    function, options = None, {}

    def __init__(self, *args, **given):
        super().__init__()
        if len(args) > len(self.options) or not given.keys() <= self.options.keys():
            raise TypeError(
                f"{type(self).__name__}: got {args!r:.60} {given!r:.60}; its options are {', '.join(self.options)}"
            )
        self.options = {**self.options, **dict(zip(self.options, args, strict=False)), **given}

    def forward(self, *args):
        """What the function gives."""
        options = {name: x for name, x in self.options.items() if name != "inplace"}
        return type(self).function(*args, **options)

    def extra_repr(self):
        """Its options, but those of losses."""
        shown = {} if "reduction" in self.options else self.options
        return ", ".join(f"{name}={x}" for name, x in shown.items() if name != "inplace" or x)


def calling(kind, function, options):
    """A class of modules of that name, which call the function with these options, {name: what it is unless said otherwise}."""
    return type(
        kind, (Calling,), {"function": staticmethod(function), "options": options, "__doc__": f"Calls `{kind}`."}
    )


class Dropout(Calling):
    """Calls `dropout`, in training."""

    options = {"p": 0.5, "inplace": False}

    def __init__(self, *args, **given):
        super().__init__(*args, **given)
        dropout(None, self.options["p"], False)  # raises ValueError for what is no probability

    def forward(self, x):
        """x[…] with some of its numbers 0, in training."""
        return dropout(x, self.options["p"], self.training)

    def extra_repr(self):
        """Its options."""
        return f"p={self.options['p']}, inplace={self.options['inplace']}"

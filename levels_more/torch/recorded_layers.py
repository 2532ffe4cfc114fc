"""Layers of recorded tensors: each owns its parameters, and its `forward` is made of functions and operators."""

import math

import numpy as np

from levels_more.checks import as_python
from levels_more.torch.op_arguments import sizes_of
from levels_more.torch.recorded import FUNCTIONS
from levels_more.torch.recorded_modules import Module, Parameter
from levels_more.torch.recording import switched


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
    y = x * 0.0 if p == 1.0 else (x / (1.0 - p)).masked_fill(FUNCTIONS["rand_like"](x) < p, 0.0)
    return x.set(y, "dropout") if inplace else y


def layer_norm(x, normalized_shape, weight=None, bias=None, eps=1e-5):
    """(x - mean) / √(var + eps)·weight + bias, over the last axes of x[…, *normalized_shape] (Ba et al., 2016)."""
    axes = tuple(range(-len(normalized_shape), 0))
    x = (x - x.mean(axes, keepdim=True)) / (x.var(axes, unbiased=False, keepdim=True) + eps).sqrt()
    return _scaled(x, weight, bias)


def rms_norm(x, normalized_shape, weight=None, eps=None):
    """x / √(mean of x² + eps)·weight, over the last axes of x[…, *normalized_shape] (Zhang and Sennrich, 2019)."""
    eps = np.finfo(x.dtype.dtype).eps if eps is None else eps
    return _scaled(x / ((x * x).mean(tuple(range(-len(normalized_shape), 0)), keepdim=True) + eps).sqrt(), weight)


def batch_norm(x, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
    """(x - mean) / √(var + eps)·weight + bias, of the rows of x[batch, features], or, in use, of those seen before.

    In training the running ones, unless they are None, move by `momentum` towards those of these rows. Raises ValueError for
    training on one row.
    """
    mean, var = running_mean, running_var
    if training:
        if len(x) < 2:
            raise ValueError(f"BatchNorm1d: x is {tuple(x.shape)}; one row has no variance to train on; call eval()")
        mean, var = x.mean(0), x.var(0, unbiased=False)
        with switched(False):
            for running, now in ((running_mean, mean), (running_var, x.var(0))):
                if running is not None:
                    running += momentum * (now - running)
    return _scaled((x - mean) / (var + eps).sqrt(), weight, bias)


def _scaled(x, weight, bias=None):
    """x·weight + bias, where there are such."""
    x = x if weight is None else x * weight
    return x if bias is None else x + bias


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
    """(x - mean) / √(var + eps)·weight + bias, over the rows; in `eval` with the running mean and variance (Ioffe and Szegedy, 2015).

    A momentum of None makes the running ones the mean of all batches; without `track_running_stats` there are none.
    """

    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, device=None, dtype=None
    ):
        super().__init__()
        self.num_features = as_python(num_features)
        self.eps = as_python(eps)
        self.momentum = as_python(momentum)
        self.weight = Parameter(FUNCTIONS["ones"](num_features, dtype=dtype)) if affine else None
        self.bias = Parameter(FUNCTIONS["zeros"](num_features, dtype=dtype)) if affine else None
        self.running_mean = self.running_var = None
        if track_running_stats:
            self.register_buffer("running_mean", FUNCTIONS["zeros"](num_features, dtype=dtype))
            self.register_buffer("running_var", FUNCTIONS["ones"](num_features, dtype=dtype))
            self.register_buffer("num_batches_tracked", FUNCTIONS["zeros"]((), dtype="int64"))

    def forward(self, x):
        """x[batch, features] -> the same shape. Raises ValueError for another shape, and for training on one row."""
        if x.ndim != 2 or x.shape[1] != self.num_features:
            raise ValueError(f"BatchNorm1d: x is {tuple(x.shape)}; expected [batch, {self.num_features}]")
        tracked, momentum = self.running_mean is not None, self.momentum
        if self.training and tracked:
            self.num_batches_tracked += 1
            momentum = 1.0 / self.num_batches_tracked.item() if momentum is None else momentum
        given = self.running_mean, self.running_var, self.weight, self.bias, self.training or not tracked
        return batch_norm(x, *given, momentum, self.eps)

    def extra_repr(self):
        """What is told of it in brackets."""
        affine, tracked = self.weight is not None, self.running_mean is not None
        how = f"eps={self.eps}, momentum={self.momentum}, affine={affine}, bias={affine}"
        return f"{self.num_features}, {how}, track_running_stats={tracked}"


class LayerNorm(Module):
    """(x - mean) / √(var + eps)·weight + bias, each row, the last axes, by itself (Ba et al., 2016)."""

    def __init__(self, normalized_shape, eps=1e-5, elementwise_affine=True, bias=True, device=None, dtype=None):
        super().__init__()
        self.normalized_shape, self.eps = sizes_of((normalized_shape,)), as_python(eps)
        self.weight = Parameter(FUNCTIONS["ones"](self.normalized_shape, dtype=dtype)) if elementwise_affine else None
        self.bias = (
            Parameter(FUNCTIONS["zeros"](self.normalized_shape, dtype=dtype)) if elementwise_affine and bias else None
        )

    def forward(self, x):
        """x[…, *normalized_shape] -> the same shape. Raises ValueError for another one."""
        if tuple(x.shape[-len(self.normalized_shape) :]) != self.normalized_shape:
            raise ValueError(
                f"{type(self).__name__}: x is {tuple(x.shape)}; expected its last axes to be {self.normalized_shape}"
            )
        return self.normalized(x)

    def normalized(self, x):
        """The same, of that shape."""
        return layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self):
        """What is told of it in brackets."""
        how = f"eps={self.eps}, elementwise_affine={self.weight is not None}"
        return f"{self.normalized_shape}, {how}, bias={self.bias is not None}"


class RMSNorm(LayerNorm):
    """x / √(mean of x² + eps)·weight, each row, the last axes, by itself (Zhang and Sennrich, 2019)."""

    def __init__(self, normalized_shape, eps=None, elementwise_affine=True, device=None, dtype=None):
        super().__init__(normalized_shape, eps, elementwise_affine, False, device, dtype)

    def normalized(self, x):
        """The same, of that shape."""
        return rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self):
        """What is told of it in brackets."""
        return super().extra_repr().rsplit(",", 1)[0]


class Bilinear(Module):
    """x1[…, m] and x2[…, n] with weight[out, m, n], each pair of them, + bias[out]. Both begin uniform in ±1/√m."""

    def __init__(self, in1_features, in2_features, out_features, bias=True, device=None, dtype=None):
        super().__init__()
        self.sizes, limit = as_python((in1_features, in2_features, out_features)), 1.0 / math.sqrt(in1_features)
        shape = out_features, in1_features, in2_features
        self.weight = Parameter(FUNCTIONS["zeros"](shape, dtype=dtype).uniform_(-limit, limit))
        self.bias = Parameter(FUNCTIONS["zeros"](out_features, dtype=dtype).uniform_(-limit, limit)) if bias else None

    def forward(self, x1, x2):
        """x1[batch, m], x2[batch, n] -> [batch, out]"""
        y = FUNCTIONS["einsum"]("bm,omn,bn->bo", x1, self.weight, x2)
        return y if self.bias is None else y + self.bias

    def extra_repr(self):
        """What is told of it in brackets."""
        names = "in1_features", "in2_features", "out_features"
        return (
            ", ".join(f"{name}={n}" for name, n in zip(names, self.sizes, strict=True))
            + f", bias={self.bias is not None}"
        )


class Embedding(Module):
    """Rows of a table weight[num_embeddings, embedding_dim], normal at first, by number; that of `padding_idx` stays 0."""

    def __init__(self, num_embeddings, embedding_dim, padding_idx=None, device=None, dtype=None):
        super().__init__()
        self.padding_idx = as_python(padding_idx)
        self.weight = Parameter(FUNCTIONS["randn"](num_embeddings, embedding_dim, dtype=dtype))
        if padding_idx is not None:
            self.weight.data[padding_idx] = 0.0

    def forward(self, x):
        """x[…], whole numbers -> […, embedding_dim]"""
        y = self.weight[x]
        if self.padding_idx is None:
            return y
        padding = (x == self.padding_idx % len(self.weight)).unsqueeze(-1)
        return FUNCTIONS["where"](padding, y.detach(), y)  # no gradient passes there

    def extra_repr(self):
        """What is told of it in brackets."""
        return ", ".join(map(str, self.weight.shape)) + f", padding_idx={self.padding_idx}" * (
            self.padding_idx is not None
        )


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
        given = {**dict(zip(self.options, args, strict=False)), **given}
        self.options = self.options | {name: as_python(value) for name, value in given.items()}

    def forward(self, *args):
        """What the function gives."""
        return type(self).function(*args, **self.options)

    def extra_repr(self):
        """Its options, but those of losses."""
        shown = {} if "reduction" in self.options else self.options
        return ", ".join(f"{name}={x!r}" for name, x in shown.items() if name != "inplace" or x)


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
        return dropout(x, self.options["p"], self.training, self.options["inplace"])

    def extra_repr(self):
        """Its options."""
        return f"p={self.options['p']}, inplace={self.options['inplace']}"

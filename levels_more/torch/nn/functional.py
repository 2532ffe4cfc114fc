"""`torch.nn.functional`: layers and losses as functions. A loss takes what is predicted first, and what is true second."""

from levels import low_level as low

from .. import functions as f
from ..functions import FUNCTIONS, Tensor
from levels_more.recording import recorded

_LEAST = 3.78e-44  # its logarithm is -100
relu, sigmoid, tanh, where = (FUNCTIONS[name] for name in ("relu", "sigmoid", "tanh", "where"))
softmax, log_softmax, flatten = FUNCTIONS["softmax"], FUNCTIONS["log_softmax"], FUNCTIONS["flatten"]
leaky_relu = recorded(lambda x, negative_slope=0.01: low.where(x > 0, x, negative_slope * x), Tensor)
elu = recorded(lambda x, alpha=1.0: low.where(x > 0, x, alpha * (low.exp(low.minimum(x, 0)) - 1.0)), Tensor)
softplus = recorded(lambda x: low.maximum(x, 0) + low.log(1.0 + low.exp(-low.maximum(x, -x))), Tensor)
silu = recorded(lambda x: x * low.nn.sigmoid(x), Tensor)
gelu = recorded(lambda x: low.nn.gelu(x), Tensor)
flatten = recorded(lambda x, start_dim=1, end_dim=-1: f._flatten(x, start_dim, end_dim), Tensor)


def linear(x, weight, bias=None):
    """x[…, in] @ weight[out, in].T + bias[out]"""
    y = x @ weight.t()
    return y if bias is None else y + bias


def dropout(x, p=0.5, training=True):
    """Each number is 0 with probability p, and what is left is divided by 1 - p; outside of training x."""
    if not training or p == 0:
        return x
    return x * (f.rand_like(x) >= p) / (1.0 - p)


def one_hot(classes, num_classes=-1):
    """Whole numbers as rows of 0 and 1."""
    depth = int(classes.max()) + 1 if num_classes < 0 else num_classes
    return f.tensor(low.one_hot(classes.held, depth)).long()


def _loss(each):
    """A loss of what `each(input, target)` gives number by number; `reduction`: "mean", "sum" or "none"."""

    def run(input, target, weight=None, reduction="mean", **options):
        if reduction not in ("mean", "sum", "none"):
            raise ValueError(f"reduction is {reduction!r}; expected 'mean', 'sum' or 'none'")
        if tuple(input.shape) != tuple(target.shape):
            raise ValueError(f"input is {tuple(input.shape)}, target {tuple(target.shape)}; expected equal shapes")
        losses = each(input, target, **options)
        losses = losses if weight is None else losses * weight
        return losses if reduction == "none" else losses.mean() if reduction == "mean" else losses.sum()

    run.__doc__ = each.__doc__
    return run


@_loss
def mse_loss(input, target):
    """(input - target)²"""
    return (input - target) ** 2


@_loss
def l1_loss(input, target):
    """|input - target|"""
    return (input - target).abs()


@_loss
def huber_loss(input, target, delta=1.0):
    """error²/2 where |error| is below delta, else delta·(|error| - delta/2)"""
    error = (input - target).abs()
    return where(error < delta, 0.5 * error * error, delta * (error - 0.5 * delta))


@_loss
def smooth_l1_loss(input, target, beta=1.0):
    """error²/(2·beta) where |error| is below beta, else |error| - beta/2"""
    error = (input - target).abs()
    return where(error < beta, 0.5 * error * error / beta, error - 0.5 * beta)


@_loss
def binary_cross_entropy(input, target):
    """-(target·log input + (1 - target)·log(1 - input)); no logarithm is taken for less than -100."""
    return -(target * input.clamp(min=_LEAST).log() + (1.0 - target) * (1.0 - input).clamp(min=_LEAST).log())


@_loss
def binary_cross_entropy_with_logits(input, target):
    """The same of sigmoid(input), and nothing is cut off."""
    return input.clamp(min=0.0) - input * target + softplus(-input.abs())


def nll_loss(input, target, weight=None, reduction="mean"):
    """Minus the entry of input [batch, classes] at the class of each row; `weight`: one number a class."""
    each = -input.gather(1, target.unsqueeze(1)).squeeze(1)
    factors = f.ones_like(each) if weight is None else weight.index_select(0, target)
    total = (each * factors).sum()
    return each * factors if reduction == "none" else total / factors.sum() if reduction == "mean" else total


def cross_entropy(input, target, weight=None, reduction="mean"):
    """Minus log softmax(input) at the class of each row or, where the target has input's shape, by its probabilities."""
    logs = log_softmax(input, 1)
    if target.dtype.kind == "f":
        each = -(logs * target).sum(1)
        return each if reduction == "none" else each.mean() if reduction == "mean" else each.sum()
    return nll_loss(logs, target, weight, reduction)

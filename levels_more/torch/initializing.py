"""Starting values in the place of a tensor's numbers, drawn as widely as its numbers of inputs and outputs allow."""

import math
from statistics import NormalDist

import numpy as np

from levels_more.torch.recorded import FUNCTIONS
from levels_more.torch.recorded_making import tensor
from levels_more.torch.recording import switched

GAINS = {"relu": math.sqrt(2.0), "tanh": 5.0 / 3.0, "selu": 0.75}  # how much a bend makes its inputs smaller; else 1


def glorot(x, gain=1.0):
    """The deviation for weights x[out, in] by which numbers, and gradients, stay as large (Glorot and Bengio, 2010)."""
    return gain * math.sqrt(2.0 / sum(_fans(x)))


def gain(nonlinearity, param=None):
    """How much wider weights begin in front of this bend, by its name; `param`: the slope of a leaky relu below 0."""
    if nonlinearity == "leaky_relu":
        return math.sqrt(2.0 / (1.0 + (0.01 if param is None else param) ** 2))
    return GAINS.get(nonlinearity, 1.0)


def he(x, a=0.0, mode="fan_in", nonlinearity="leaky_relu"):
    """The deviation for weights x[out, in] in front of a bend (He et al., 2015), by their inputs, or by "fan_out"."""
    return gain(nonlinearity, a) / math.sqrt(_fans(x)[mode == "fan_in"])


def _fans(x):
    """How many outputs and inputs weights x[out, in] have. Raises ValueError for another shape."""
    if x.ndim != 2:
        raise ValueError(f"weights are {tuple(x.shape)}; expected [out, in], which has outputs and inputs")
    return x.shape


@switched(False)
def filled(x, value):
    """The tensor x[…], with one number everywhere, or with those of another tensor."""
    return x.set(value)


@switched(False)
def uniform(x, low=0.0, high=1.0):
    """The tensor x[…], with numbers uniform from low to high."""
    return x.uniform_(low, high)


@switched(False)
def normal(x, mean=0.0, std=1.0):
    """The tensor x[…], with normal numbers of that mean and deviation."""
    return x.normal_(mean, std)


def uniform_by(deviation):
    """A function that fills x[out, in] with uniform numbers of the deviation that `deviation(x, …)` gives."""

    def run(x, *how, **options):
        limit = math.sqrt(3.0) * deviation(x, *how, **options)
        return uniform(x, -limit, limit)

    return run


def normal_by(deviation):
    """A function that fills x[out, in] with normal numbers of the deviation that `deviation(x, …)` gives."""
    return lambda x, *how, **options: normal(x, 0.0, deviation(x, *how, **options))


def orthogonal(x, gain=1.0):
    """The matrix x[m, n] with rows, or columns where there are more rows, of length `gain`, at right angles (Saxe et al., 2014)."""
    (m, n), drawn = _fans(x), np.asarray(FUNCTIONS["randn_like"](x).tolist())
    q, r = np.linalg.qr(drawn if m >= n else drawn.T)
    q = q * np.sign(np.diag(r))
    return filled(x, tensor(gain * (q if m >= n else q.T), x.dtype))


def identity(x):
    """The matrix x[m, n], with 1 on the diagonal, else 0."""
    return filled(x, FUNCTIONS["eye"](*_fans(x), dtype=x.dtype))


@switched(False)
def cut_normal(x, mean=0.0, std=1.0, a=-2.0, b=2.0):
    """The tensor x[…], with normal numbers; what does not lie from a to b is drawn again, by the inverse of their distribution."""
    normal, shares = NormalDist(mean, std), FUNCTIONS["rand_like"](x)
    low, high = normal.cdf(a), normal.cdf(b)
    least = 2.0**-53  # 0 and 1 have no number
    drawn = [
        normal.inv_cdf(min(max(low + (high - low) * each, least), 1.0 - least)) for each in shares.reshape(-1).tolist()
    ]
    return x.set(tensor(drawn, x.dtype).reshape(x.shape)).clamp_(a, b)

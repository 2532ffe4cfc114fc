"""`torch.nn.init`: starting values, put in the place of a tensor's numbers."""

import math

from .. import functions as f


def _fans(tensor):
    """How many inputs and outputs weights [out, in] have."""
    return tensor.shape[1], tensor.shape[0]


def uniform_(tensor, a=0.0, b=1.0):
    return tensor.set(a + (b - a) * f.rand(*tensor.shape, dtype=tensor.dtype))


def normal_(tensor, mean=0.0, std=1.0):
    return tensor.set(mean + std * f.randn(*tensor.shape, dtype=tensor.dtype))


def constant_(tensor, val):
    return tensor.set(f.full_like(tensor, val))


def zeros_(tensor):
    return constant_(tensor, 0)


def ones_(tensor):
    return constant_(tensor, 1)


def xavier_uniform_(tensor, gain=1.0):
    """Uniform in ±gain·√(6 / (in + out)) (Glorot and Bengio, 2010)."""
    limit = gain * math.sqrt(6.0 / sum(_fans(tensor)))
    return uniform_(tensor, -limit, limit)


def xavier_normal_(tensor, gain=1.0):
    """Normal, of standard deviation gain·√(2 / (in + out)) (Glorot and Bengio, 2010)."""
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / sum(_fans(tensor))))


def _gain(a, nonlinearity):
    return {"relu": math.sqrt(2.0), "leaky_relu": math.sqrt(2.0 / (1 + a * a)), "tanh": 5 / 3}.get(nonlinearity, 1.0)


def kaiming_uniform_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu"):
    """Uniform in ±gain·√(3 / in), or out (He et al., 2015)."""
    limit = _gain(a, nonlinearity) * math.sqrt(3.0 / _fans(tensor)[mode == "fan_out"])
    return uniform_(tensor, -limit, limit)


def kaiming_normal_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu"):
    """Normal, of standard deviation gain / √in, or out (He et al., 2015)."""
    return normal_(tensor, 0.0, _gain(a, nonlinearity) / math.sqrt(_fans(tensor)[mode == "fan_out"]))

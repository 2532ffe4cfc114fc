"""Further starting weights."""

import collections
import math
import statistics

from levels import mid_level
from levels.mid_level import RANDOM

_NORMAL = statistics.NormalDist()
_SPREAD = 0.87962566103423978  # the standard deviation of a standard normal truncated at ±2


def truncated_normal(shape, stddev=0.05):
    """Numbers for this shape, normal with mean 0, truncated at ±2·`stddev`."""
    low = _NORMAL.cdf(-2.0)
    high = _NORMAL.cdf(2.0)
    return [stddev * _NORMAL.inv_cdf(RANDOM.uniform(low, high)) for _ in range(math.prod(shape))]


def _inputs(shape):
    """The number of inputs of weights of this shape: the size of the last axis but one, or of the only axis."""
    return shape[-2:][0] if shape else 1


def he_uniform(shape):
    """Numbers for weights [inputs, units], uniform in ±√(6 / inputs) (He et al., 2015)."""
    limit = math.sqrt(6.0 / _inputs(shape))
    return [RANDOM.uniform(-limit, limit) for _ in range(math.prod(shape))]


INITIALIZERS = collections.ChainMap({}, mid_level.INITIALIZERS)  # a name that is not here is looked up in the core's
INITIALIZERS.update(
    ones=lambda shape: [1.0] * math.prod(shape),
    random_normal=lambda shape: [
        0.05 * _NORMAL.inv_cdf(RANDOM.uniform(1e-12, 1.0 - 1e-12)) for _ in range(math.prod(shape))
    ],
    random_uniform=lambda shape: [RANDOM.uniform(-0.05, 0.05) for _ in range(math.prod(shape))],
    truncated_normal=truncated_normal,
    glorot_normal=lambda shape: truncated_normal(shape, math.sqrt(2.0 / sum(shape[-2:])) / _SPREAD),
    lecun_normal=lambda shape: truncated_normal(shape, math.sqrt(1.0 / _inputs(shape)) / _SPREAD),
    lecun_uniform=lambda shape: [w / math.sqrt(2.0) for w in he_uniform(shape)],
    he_normal=lambda shape: truncated_normal(shape, math.sqrt(2.0 / _inputs(shape)) / _SPREAD),
    he_uniform=he_uniform,
)

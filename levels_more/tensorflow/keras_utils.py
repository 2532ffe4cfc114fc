"""Keras' seeds: `utils.set_random_seed`, and an initializer with a seed of its own."""

import math
import random

import numpy as np

from levels.mid_level import RANDOM
from levels.support.checks import check_int
from levels.support.parts import Reconstructible
from levels_more.checks import sizes
from levels_more.low_level.random import set_seed
from levels_more.tensorflow.functions import constant
from levels_more.tensorflow.keras_layers import FLOAT


class GlorotUniform(Reconstructible):
    """Numbers uniform in ±√(6 / (inputs + units)) (Glorot and Bengio, 2010): the same in each call, as in Keras 3."""

    def __init__(self, seed=None):
        self.seed = RANDOM.getrandbits(32) if seed is None else check_int(0, "GlorotUniform: seed", seed)

    def __call__(self, shape, dtype=None):
        """Return a tensor of this shape: weights [inputs, units]."""
        shape = sizes("GlorotUniform: shape", shape)
        limit = math.sqrt(6.0 / max(1, sum((*shape, *shape)[-2:])))
        draw = random.Random(self.seed)
        values = [draw.uniform(-limit, limit) for _ in range(math.prod(shape))]
        return constant(np.reshape(values, shape), dtype or FLOAT[0])


def set_random_seed(seed):
    """Seed the random numbers of Python, of NumPy and of this package. Raises ValueError unless 0 ≤ seed < 2³²."""
    if check_int(0, "set_random_seed: seed", seed) >= 2**32:
        raise ValueError(f"set_random_seed: seed is {seed}; expected a whole number below 2³²")
    random.seed(seed)
    np.random.seed(seed)
    set_seed(seed)

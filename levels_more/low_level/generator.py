"""Random numbers from a generator of one's own, in the place of the one state that all of `levels` draws from."""

import numpy as np

from levels.low_level import constant
from levels_more.low_level.creation import normal, uniform

_DRAWN = {
    "uniform": (uniform, "random"),
    "normal": (normal, "standard_normal"),
}  # who draws, without and with a generator


class Generator:
    """Random numbers of its own: the same for the same seed, whatever else is drawn."""

    def __init__(self, seed=0):
        self.manual_seed(seed)

    def manual_seed(self, seed):
        """Begin anew, at the numbers of this seed."""
        self.rng = np.random.default_rng(seed)
        return self


def drawn(name, shape, generator=None, dtype="float64"):
    """Numbers in that shape, a tensor: "uniform" from 0 to 1, or "normal"."""
    draw, method = _DRAWN[name]
    if generator is None:
        return draw(shape, dtype=dtype)
    return constant(getattr(generator.rng, method)(shape).astype(dtype))


def shuffled(n, generator=None):
    """The whole numbers from 0 on, below n, in a random order: an array."""
    return np.argsort(drawn("uniform", (n,), generator).numpy(), kind="stable")

"""Penalties for large weights."""

from numpy.typing import ArrayLike

from levels.low_level import Tensor, as_tensor, reduce_sum
from levels.support.checks import check_positive
from levels.support.parts import Reconstructible
from levels_more.low_level.ops import absolute


class L1(Reconstructible):
    """l1·Σ|w|"""

    def __init__(self, l1: float = 0.01):
        self.l1 = check_positive("L1: l1", l1, zero=True)

    def __call__(self, w: "ArrayLike") -> Tensor:
        return self.l1 * reduce_sum(absolute(as_tensor(w)))


class L2(Reconstructible):
    """l2·Σw²"""

    def __init__(self, l2: float = 0.01):
        self.l2 = check_positive("L2: l2", l2, zero=True)

    def __call__(self, w: "ArrayLike") -> Tensor:
        w = as_tensor(w)
        return self.l2 * reduce_sum(w * w)


REGULARIZERS = {"l1": L1(), "l2": L2()}

"""What weights are brought back to after each step: norms, signs. Each is a function of a tensor; an axis says what is one norm."""

from levels.low_level import as_tensor, clip, reduce_sum, sqrt
from levels.mid_level import Made
from levels.support.checks import real
from levels_more.checks import as_python, expect, number
from levels_more.low_level.ops import maximum


class MinMaxNorm(Made):
    """Norms along the axis brought into min_value to max_value, by the share `rate` of the way."""

    def __init__(self, min_value=0.0, max_value=1.0, rate=1.0, axis=0):
        kind = type(self).__name__
        for name, value in (("min_value", min_value), ("max_value", max_value)):  # the second may be infinite
            expect(real(value) is not None and value >= 0, f"{kind}: {name}", value, "a number from 0 on")
        self.bounds, self.rate = (float(min_value), float(max_value)), number(f"{kind}: rate", rate, 0.0)
        self.axis = as_python(axis)

    def __call__(self, w):
        """The weights w[inputs, units], each column times one factor."""
        w = as_tensor(w)
        norms = sqrt(reduce_sum(w * w, self.axis, keepdims=True))
        wanted = self.rate * clip(norms, *self.bounds) + (1.0 - self.rate) * norms
        return w * (wanted / (norms + 1e-7))


class MaxNorm(MinMaxNorm):
    """Norms along the axis of max_value at most (Srivastava et al., 2014, section 5.1)."""

    def __init__(self, max_value=2.0, axis=0):
        super().__init__(0.0, max_value, 1.0, axis)


class UnitNorm(MinMaxNorm):
    """Norms along the axis of 1."""

    def __init__(self, axis=0):
        super().__init__(1.0, 1.0, 1.0, axis)


class NonNeg(Made):
    """No number below 0."""

    def __call__(self, w):
        """The weights, a tensor of any shape, with 0 for what is below."""
        return maximum(as_tensor(w), 0.0)


CONSTRAINTS = {"MinMaxNorm": MinMaxNorm, "MaxNorm": MaxNorm, "UnitNorm": UnitNorm, "NonNeg": NonNeg}
WORDS = {"max_norm": MaxNorm, "min_max_norm": MinMaxNorm, "non_neg": NonNeg, "unit_norm": UnitNorm}

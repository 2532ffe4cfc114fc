"""A mean in one op, as `levels_more` has it, against the core's, a sum and a quotient: in float64 the same bits."""

import numpy as np
import pytest

from levels import low_level as core
from levels_more import low_level as wide
from levels_more.low_level import GradientTape, constant, eager, function, reduce_sum

MEANS = core.reduce_mean, wide.reduce_mean
X = np.random.default_rng(0).normal(size=(5, 3, 4))


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [None, 0, 1, 2, -1, (0, 1), (1, 2)])
def test_means_and_their_gradients_have_the_bits_of_the_core(axis, keepdims):
    found = []
    for mean in MEANS:

        @function
        def step(x, mean=mean):
            with GradientTape() as tape:
                y = mean(x * x, axis, keepdims)
                total = reduce_sum(y * y * y)
            return y, tape.gradient(total, x)

        results = [step(X), *([step(X.reshape(5, 12))] if axis in (0, 1, None) else [])]
        with eager():
            results.append(step(constant(X)))
        found.append([each.numpy().tolist() for result in results for each in result])
    assert found[0] == found[1]

"""Optimizers by Keras' rules: a variable without a gradient does not change, and Adam adds ε at another place."""

import math

from levels.low_level import constant, exp, sqrt
from levels_more import mid_level
from levels_more.mid_level import optimizers
from levels_more.tensorflow.keras_layers import behind


class Optimizer(mid_level.Optimizer):
    """Changes variables by their gradients. A variable whose gradient is None does not change."""

    iterations = constant(0.0)  # until the first step makes a variable

    def apply_gradients(self, grads_and_vars):
        """Update by pairs (gradient, variable). Raises ValueError if all gradients are None."""
        pairs = [(dw, w) for dw, w in grads_and_vars if dw is not None]
        if not pairs:
            raise ValueError("apply_gradients: there is no gradient; does the loss depend on these variables?")
        super().apply_gradients(pairs)


class Adam(Optimizer, optimizers.Adam):
    """Adam of levels, but ε is added to √v before the bias correction, as in Keras (Kingma and Ba, 2015, section 2)."""

    def update(self, rate, dw, w, m, v):
        b1, b2, t = self.beta_1, self.beta_2, self.iterations
        m = b1 * m + (1.0 - b1) * dw
        v = b2 * v + (1.0 - b2) * (dw * dw)
        c1 = 1.0 - exp(t * math.log(b1))
        c2 = 1.0 - exp(t * math.log(b2))
        return w - rate * sqrt(c2) / c1 * m / (sqrt(v) + self.epsilon), m, v


OPTIMIZERS = {"Optimizer": Optimizer, "Adam": Adam} | behind(Optimizer, optimizers, "SGD RMSprop")
BY_NAME = {name.lower(): kind for name, kind in OPTIMIZERS.items()}  # the names for `compile`

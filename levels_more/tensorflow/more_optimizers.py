"""Further optimizers of Keras: Adam with a look ahead, with the largest gradient, and steps that need no rate."""

import math

from levels.low_level import exp, sqrt
from levels.mid_level import Optimizer, positive
from levels_more.low_level.ops import absolute, maximum
from levels_more.mid_level import optimizers


class Nadam(optimizers.Adam):
    """Adam with Nesterov's look ahead (Dozat, 2016): β₁ grows with t, βₜ = β₁·(1 - 0.96ᵗ / 2)."""

    memory = "m", "v", "taken"  # taken: 1 - the product of all βₜ so far

    def update(self, rate, dw, w, m, v, taken):
        """The new w, and what is remembered, tensors of its shape."""
        (b1, b2), t = self.betas, self.iterations
        now, ahead = (b1 * (1.0 - 0.5 * exp(step * math.log(0.96))) for step in (t, t + 1.0))
        m, v = b1 * m + (1.0 - b1) * dw, b2 * v + (1.0 - b2) * (dw * dw)
        taken = 1.0 - (1.0 - taken) * now
        looked = ahead * m / (1.0 - (1.0 - taken) * ahead) + (1.0 - now) * dw / taken
        return w - rate * looked / (sqrt(v / (1.0 - exp(t * math.log(b2)))) + self.epsilon), m, v, taken


class Adamax(optimizers.Adam):
    """Adam divided by the largest gradient, which fades (Kingma and Ba, 2015, section 7.1)."""

    def update(self, rate, dw, w, m, v):
        """The new w, and what is remembered, tensors of its shape."""
        b1, b2 = self.betas
        m, v = b1 * m + (1.0 - b1) * dw, maximum(b2 * v, absolute(dw))
        return w - rate / (1.0 - exp(self.iterations * math.log(b1))) * m / (v + self.epsilon), m, v


class Adadelta(Optimizer):
    """Steps as large as those before, by the gradients' size (Zeiler, 2012)."""

    memory = "gradients", "steps"

    def __init__(self, learning_rate=0.001, rho=0.95, epsilon=1e-7, **options):
        super().__init__(learning_rate, **options)
        self.rho, self.epsilon = positive("Adadelta: rho", rho, 1.0), positive("Adadelta: epsilon", epsilon)

    def update(self, rate, dw, w, gradients, steps):
        """The new w, and what is remembered, tensors of its shape."""
        rho = self.rho
        gradients = rho * gradients + (1.0 - rho) * (dw * dw)
        step = sqrt(steps + self.epsilon) / sqrt(gradients + self.epsilon) * dw
        return w - rate * step, gradients, rho * steps + (1.0 - rho) * (step * step)

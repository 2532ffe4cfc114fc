"""Optimizers: how a variable changes, given its gradient."""

# Built from 04_mid_level.ipynb: edit there, then run its last cell.

import functools
import math
import operator

import numpy as np

from levels import plugged
from levels.low_level import Module, Variable, exp, maximum, reduce_sum, sqrt, where

from .layers import Made, from_zero, positive


class Optimizer(Made, Module):
    """Owns what it remembers of each variable. Write `update(rate, dw, w, *memory)` -> the new w and the new memory."""

    memory = ()  # names of what it remembers of each variable: as many numbers, 0 at first

    def __init__(self, learning_rate=0.01, clipnorm=None, global_clipnorm=None):
        self.owners = self.rate = None  # owners: the variables that it was built for, by their ids
        self.learning_rate, self.clipnorm, self.global_clipnorm = learning_rate, clipnorm, global_clipnorm
        for name, value in (("clipnorm", clipnorm), ("global_clipnorm", global_clipnorm)):
            if value is not None:
                positive(f"{type(self).__name__}: {name}", value)

    @property
    def learning_rate(self):
        """A schedule, or a number, which may be changed at any time; compiled steps hear of it."""
        return float(self.rate) if isinstance(self.rate, Variable) else self.rate

    @learning_rate.setter
    def learning_rate(self, value):
        if not callable(value):
            from_zero(f"{type(self).__name__}: learning_rate", value)  # at 0 nothing moves
        if isinstance(self.rate, Variable):
            self.rate.assign(value)
        else:
            self.rate = value

    def build(self, variables):
        """Make the memory for these variables, in this order. The first `apply_gradients` does so itself."""
        dtype, self.owners = variables[0].dtype, [*map(id, variables)]
        self.iterations = Variable(np.zeros((), dtype), trainable=False)
        if not callable(self.rate):
            self.rate = Variable(np.array(self.rate, dtype), trainable=False)
        zeros = [np.zeros(v.shape, v.dtype) for v in variables]
        self.slots = [{name: Variable(zero, trainable=False) for name in self.memory} for zero in zeros]

    def apply_gradients(self, grads_and_vars):
        """Change the variable of each pair (gradient, variable). Each call gets the same variables, in the same order."""
        gradients, variables = zip(*grads_and_vars, strict=True)
        if self.owners is None:
            self.build(variables)
        if self.owners != [*map(id, variables)]:
            raise ValueError(f"{type(self).__name__}: built for other variables, or another order; make a new one")
        rate = self.rate(self.iterations) if callable(self.rate) else self.rate
        self.iterations.assign(self.iterations + 1.0)
        for dw, w, slots in zip(self.clipped(gradients), variables, self.slots):
            for variable, value in zip((w, *slots.values()), self.update(rate, dw, w, *slots.values())):
                variable.assign(value)

    def clipped(self, gradients):
        """The gradients, none of them (`clipnorm`), or not all together (`global_clipnorm`), longer than that."""
        if self.clipnorm is not None:
            gradients = [shortened([dw], self.clipnorm)[0] for dw in gradients]
        return gradients if self.global_clipnorm is None else shortened(gradients, self.global_clipnorm)


class SGD(Optimizer):
    """w ← w - rate·dw. With momentum v ← momentum·v - rate·dw and w ← w + v; Nesterov's looks ahead: w + momentum·v - rate·dw."""

    def __init__(self, learning_rate=0.01, momentum=0.0, nesterov=False, **options):
        super().__init__(learning_rate, **options)
        self.momentum = from_zero("SGD: momentum", momentum, 1.0)
        self.nesterov, self.memory = nesterov, ("v",) if momentum else ()

    def update(self, rate, dw, w, *memory):
        if not memory:
            return (w - rate * dw,)
        v = self.momentum * memory[0] - rate * dw
        return w + (self.momentum * v - rate * dw if self.nesterov else v), v


class Adam(Optimizer):
    """m ← β₁·m + (1 - β₁)·dw; v ← β₂·v + (1 - β₂)·dw²; w ← w - rate·(m / (1 - β₁ᵗ)) / (√(v / (1 - β₂ᵗ)) + ε)

    Kingma and Ba, 2015, Algorithm 1. (Keras adds its ε to √v before the correction, which makes it larger in the first steps.)
    """

    memory = "m", "v"

    def __init__(self, learning_rate=0.001, beta_1=0.9, beta_2=0.999, epsilon=1e-7, **options):
        super().__init__(learning_rate, **options)
        self.betas = positive("Adam: beta_1", beta_1, 1.0), positive("Adam: beta_2", beta_2, 1.0)
        self.epsilon = positive("Adam: epsilon", epsilon)

    def update(self, rate, dw, w, m, v):
        (b1, b2), t = self.betas, self.iterations
        m, v = b1 * m + (1.0 - b1) * dw, b2 * v + (1.0 - b2) * (dw * dw)
        c1, c2 = 1.0 - exp(t * math.log(b1)), 1.0 - exp(t * math.log(b2))
        return w - rate * (m / c1) / (sqrt(v / c2) + self.epsilon), m, v


class RMSprop(Optimizer):
    """v ← rho·v + (1 - rho)·dw²; w ← w - rate·dw / √(v + epsilon)"""

    memory = ("v",)

    def __init__(self, learning_rate=0.001, rho=0.9, epsilon=1e-7, **options):
        super().__init__(learning_rate, **options)
        self.rho, self.epsilon = from_zero("RMSprop: rho", rho, 1.0), positive("RMSprop: epsilon", epsilon)

    def update(self, rate, dw, w, v):
        v = self.rho * v + (1.0 - self.rho) * (dw * dw)
        return w - rate * dw / sqrt(v + self.epsilon), v


class AdamW(Adam):
    """Adam on w - rate·weight_decay·w"""

    def __init__(self, learning_rate=0.001, weight_decay=0.004, **options):
        super().__init__(learning_rate, **options)
        self.weight_decay = from_zero("AdamW: weight_decay", weight_decay)

    def update(self, rate, dw, w, m, v):
        return super().update(rate, dw, w - rate * self.weight_decay * w, m, v)


class ExponentialDecay(Made):
    """initial_learning_rate · decay_rate ** (step / decay_steps)"""

    def __init__(self, initial_learning_rate, decay_steps, decay_rate):
        self.initial_learning_rate = positive("ExponentialDecay: initial_learning_rate", initial_learning_rate)
        self.decay_steps = positive("ExponentialDecay: decay_steps", decay_steps)
        self.decay_rate = positive("ExponentialDecay: decay_rate", decay_rate)

    def __call__(self, step):
        return self.initial_learning_rate * exp(step * (math.log(self.decay_rate) / self.decay_steps))


class PiecewiseConstantDecay(Made):
    """values[0] up to and including step boundaries[0], then values[1], and so on."""

    def __init__(self, boundaries, values):
        if len(values) != len(boundaries) + 1:
            raise ValueError(f"{len(boundaries)} boundaries and {len(values)} values; expected one more value")
        self.boundaries, self.values = list(boundaries), list(values)

    def __call__(self, step):
        rate = step * 0.0 + self.values[-1]
        for boundary, value in zip(self.boundaries[::-1], self.values[-2::-1]):
            rate = where(step <= boundary, value, rate)
        return rate


def shortened(gradients, norm):
    """These gradients times one factor: 1, or what brings the root of the sum of their squares down to `norm`."""
    squares = [reduce_sum(dw * dw) for dw in gradients]
    factor = norm / maximum(sqrt(functools.reduce(operator.add, squares)), norm)
    return [dw * factor for dw in gradients]


__getattr__, __dir__ = plugged(__name__)  # what is missing here is looked up in levels_more

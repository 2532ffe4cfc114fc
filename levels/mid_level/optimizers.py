"""Optimizers: how a variable changes, given its gradient."""

# Built from notebooks/04_mid_level.ipynb: edit there, then run its last cell.

import math

import numpy as np

from levels.low_level import Module, Variable, exp, maximum, reduce_sum, sqrt


class Optimizer(Module):
    """Owns what it remembers of each variable. Write `update(rate, dw, w, *memory)` -> the new w and memory."""

    memory = ()  # names of what it remembers of each variable, all zero at first

    def __init__(self, learning_rate=0.01, clipnorm=None, global_clipnorm=None):
        for name, value in dict(
            learning_rate=learning_rate, clipnorm=clipnorm, global_clipnorm=global_clipnorm
        ).items():
            if value is not None and not callable(value) and not value > 0:
                raise ValueError(f"{type(self).__name__}: {name} is {value}; expected a positive number")
        self.rate, self.clipnorm, self.global_clipnorm = learning_rate, clipnorm, global_clipnorm
        self.iterations = self.slots = None  # made for the variables of the first call

    @property
    def learning_rate(self):
        """A number, or a schedule; a number can be changed at any time."""
        return float(self.rate) if isinstance(self.rate, Variable) else self.rate

    @learning_rate.setter
    def learning_rate(self, value):
        if isinstance(self.rate, Variable):
            self.rate.assign(value)
        else:
            self.rate = value

    def build(self, variables):
        """Remember nothing yet of these variables."""
        dtype = variables[0].dtype
        self.iterations = Variable(np.zeros((), dtype), trainable=False)
        if not callable(self.rate):
            self.rate = Variable(np.array(self.rate, dtype), trainable=False)
        self.slots = [
            {name: Variable(np.zeros(v.shape, v.dtype), trainable=False) for name in self.memory} for v in variables
        ]

    def apply_gradients(self, grads_and_vars):
        """Change each variable of [(gradient, variable), …]; all of them in every call, in the same order."""
        gradients, variables = zip(*grads_and_vars)
        if self.slots is None:
            self.build(variables)
        if len(variables) != len(self.slots):
            raise ValueError(f"{type(self).__name__}: built for {len(self.slots)} variables, got {len(variables)}")
        rate = self.rate(self.iterations) if callable(self.rate) else self.rate
        self.iterations.assign(self.iterations + 1.0)
        for dw, w, slots in zip(self.clipped(gradients), variables, self.slots):
            for variable, value in zip((w, *slots.values()), self.update(rate, dw, w, *slots.values())):
                variable.assign(value)

    def clipped(self, gradients):
        """The gradients, each (`clipnorm`) or all together (`global_clipnorm`) no longer than that."""
        for norm, groups in ((self.clipnorm, [[dw] for dw in gradients]), (self.global_clipnorm, [gradients])):
            if norm is not None:
                gradients = [dw for group in groups for dw in shortened(group, norm)]
        return gradients


def shortened(gradients, norm):
    """These gradients, shortened by one factor where the root of the sum of all their squares is above the norm."""
    length = sqrt(sum((reduce_sum(dw * dw) for dw in gradients[1:]), reduce_sum(gradients[0] * gradients[0])))
    factor = norm / maximum(length, norm)
    return [dw * factor for dw in gradients]


class SGD(Optimizer):
    """w ← w - rate·dw. With momentum: v ← momentum·v - rate·dw and w ← w + v, or with Nesterov's w ← w + momentum·v - rate·dw"""

    def __init__(self, learning_rate=0.01, momentum=0.0, nesterov=False, **options):
        super().__init__(learning_rate, **options)
        self.momentum, self.nesterov, self.memory = momentum, nesterov, ("v",) if momentum else ()

    def update(self, rate, dw, w, *memory):
        if not memory:
            return (w - rate * dw,)
        v = self.momentum * memory[0] - rate * dw
        return w + (self.momentum * v - rate * dw if self.nesterov else v), v


class Adam(Optimizer):
    """m ← β₁·m + (1 - β₁)·dw; v ← β₂·v + (1 - β₂)·dw²; w ← w - rate·(m / (1 - β₁ᵗ)) / (√(v / (1 - β₂ᵗ)) + ε)"""

    memory = "m", "v"

    def __init__(self, learning_rate=0.001, beta_1=0.9, beta_2=0.999, epsilon=1e-7, **options):
        super().__init__(learning_rate, **options)
        self.beta_1, self.beta_2, self.epsilon = beta_1, beta_2, epsilon

    def update(self, rate, dw, w, m, v):
        m = self.beta_1 * m + (1.0 - self.beta_1) * dw
        v = self.beta_2 * v + (1.0 - self.beta_2) * dw * dw
        c1, c2 = (1.0 - exp(self.iterations * math.log(beta)) for beta in (self.beta_1, self.beta_2))
        return w - rate * (m / c1) / (sqrt(v / c2) + self.epsilon), m, v

"""Optimizers: how a variable changes, given its gradient."""

# Built from 04_mid_level.ipynb: edit there, then run its last cell.

import math

import numpy as np

from levels.low_level import Module, Variable, as_tensor, exp, sqrt
from levels.support.checks import check_pairs, check_positive
from levels.support.fronts import Unset
from levels.support.locks import MAKING
from levels.support.parts import Reconstructible
from levels.support.trainings import check_rate, check_same_variables


def descend(rate, dw, w):
    """The value of w, a tensor or a number, after one step against its gradient dw."""
    return w - rate * dw


def _kept(array):
    """Return a variable that begins as this array, and is not trained."""
    return Variable(array, trainable=False)


class Optimizer(Reconstructible, Module):
    """Subclasses define `update(rate, dw, w, *slots)` -> (new w, *new slots)."""

    excluded = True  # a model that keeps an optimizer does not list its variables
    memory = ()  # the names of the slots: each begins at 0, shaped like its variable
    rate = trained_variables = Unset()  # `__init__` sets them

    def __init__(self, learning_rate=0.01):
        self.trained_variables = None  # after `build` a dict: its keys are variables
        self.learning_rate = learning_rate

    @property
    def learning_rate(self):
        return float(self.rate)

    @learning_rate.setter
    def learning_rate(self, value):
        if self.trained_variables is None:
            self.rate = check_rate(self, value)
        else:
            self.rate.assign(check_rate(self, value))

    def build(self, variables):
        """Make the slots for these variables, which are trained from now on."""
        zeros = [np.zeros(v.shape, v.dtype) for v in variables]
        self.iterations = _kept(np.zeros((), zeros[0].dtype))
        self.rate = _kept(np.array(self.rate, zeros[0].dtype))
        self.slots = [{name: _kept(zero) for name in self.memory} for zero in zeros]
        self.trained_variables = dict.fromkeys(variables)  # last: it marks the end

    def _owned(self, grads_and_vars):
        """Return the gradients and the variables, after a build the first time."""
        gradients, variables = check_pairs(grads_and_vars, Variable, as_tensor)
        with MAKING:
            if self.trained_variables is None:
                self.build(variables)
        return gradients, check_same_variables(self, variables)

    def apply_gradients(self, grads_and_vars):
        """Take one step with pairs (gradient, variable)."""
        gradients, variables = self._owned(grads_and_vars)
        rate = self.rate
        self.iterations.assign(self.iterations + 1.0)
        for dw, w, slots in zip(gradients, variables, self.slots):
            new = self.update(rate, dw, w, *slots.values())
            for variable, value in zip((w, *slots.values()), new):
                variable.assign(value)


class SGD(Optimizer):
    """w ← w - rate·dw"""

    def update(self, rate, dw, w):
        return (descend(rate, dw, w),)


class Adam(Optimizer):
    """m ← β₁·m + (1 - β₁)·dw; v ← β₂·v + (1 - β₂)·dw²
    w ← w - rate·(m / (1 - β₁ᵗ)) / (√(v / (1 - β₂ᵗ)) + ε)

    Kingma and Ba, 2015, Algorithm 1. (Keras adds ε before the correction.)
    """

    memory = "m", "v"

    def __init__(self, learning_rate=0.001, beta_1=0.9, beta_2=0.999, epsilon=1e-7):
        super().__init__(learning_rate)
        self.beta_1 = check_positive("Adam: beta_1", beta_1, 1.0)
        self.beta_2 = check_positive("Adam: beta_2", beta_2, 1.0)
        self.epsilon = check_positive("Adam: epsilon", epsilon)

    def update(self, rate, dw, w, m, v):
        m = self.beta_1 * m + (1.0 - self.beta_1) * dw
        v = self.beta_2 * v + (1.0 - self.beta_2) * (dw * dw)
        m_hat = m / (1.0 - exp(self.iterations * math.log(self.beta_1)))
        v_hat = v / (1.0 - exp(self.iterations * math.log(self.beta_2)))
        return w - rate * m_hat / (sqrt(v_hat) + self.epsilon), m, v


OPTIMIZERS = {"sgd": SGD, "adam": Adam}

"""Optimizers: how a variable changes, given its gradient."""

# Built from 04_mid_level.ipynb: edit there, then run its last cell.

import math

import numpy as np

from levels.low_level import Module, Operators, Variable, as_tensor, constant, exp, sqrt
from levels.support.checks import check_pairs, check_positive
from levels.support.fronts import Unset
from levels.support.locks import MAKING

from .layers import Reconstructible


def descend(rate, dw, w):
    """The value of w, a tensor or a number, after one step against its gradient dw."""
    return w - rate * dw


def _set_rate(optimizer, value):
    """Set the learning rate: a number from 0 on, or a schedule, a function of the step. Raises ValueError for others."""
    first = value(constant(0.0)) if callable(value) else value  # a schedule can be checked only at step 0
    first = float(first) if isinstance(first, Operators) else first
    first = check_positive(f"{type(optimizer).__name__}: learning_rate", first, zero=True)
    value = value if callable(value) else first
    if isinstance(optimizer.rate, Variable):
        optimizer.rate.assign(value)
    else:
        optimizer.rate = value


def _slots_of(variables, names):
    """Return a list with {name: a variable of zeros} for each of these variables."""
    zeros = [np.zeros(v.shape, v.dtype) for v in variables]
    return [{name: Variable(zero, trainable=False) for name in names} for zero in zeros]


class Optimizer(Reconstructible, Module):
    """An optimizer and its slots. Subclasses define `update(rate, dw, w, *slots)` -> (new w, *new slots)."""

    excluded = True  # a model that keeps an optimizer does not list the optimizer's variables
    memory = ()  # the names of its slots: each has the shape of the variable and begins at 0
    rate = trained_variables = Unset()  # `__init__` sets them
    learning_rate = property(lambda self: float(self.rate) if isinstance(self.rate, Variable) else self.rate, _set_rate)

    def __init__(self, learning_rate=0.01):
        self.rate = None
        self.trained_variables = None  # or a dict, whose keys are the variables that it was built for
        self.learning_rate = learning_rate

    def build(self, variables):
        """Make the slots for these variables. The first `apply_gradients` calls this."""
        dtype = variables[0].dtype
        self.iterations = Variable(np.zeros((), dtype), trainable=False)
        self.rate = self.rate if callable(self.rate) else Variable(np.array(self.rate, dtype), trainable=False)
        self.slots = _slots_of(variables, self.memory)
        self.trained_variables = dict.fromkeys(variables)  # set last: now the optimizer is built

    def _owned(self, grads_and_vars):
        """Return the gradients and the variables of these pairs. The first call builds the optimizer for them."""
        gradients, variables = check_pairs(grads_and_vars, Variable, as_tensor)
        with MAKING:
            if self.trained_variables is None:
                self.build(variables)
        if [*map(id, self.trained_variables)] != [*map(id, variables)]:
            raise ValueError(f"{type(self).__name__}: built for other variables, or another order; make a new one")
        return gradients, variables

    def apply_gradients(self, grads_and_vars):
        """Apply pairs (gradient, variable). Raises TypeError for anything else, ValueError if the variables change."""
        gradients, variables = self._owned(grads_and_vars)
        rate = self.rate(self.iterations) if callable(self.rate) else self.rate
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
    """m ← β₁·m + (1 - β₁)·dw; v ← β₂·v + (1 - β₂)·dw²; w ← w - rate·(m / (1 - β₁ᵗ)) / (√(v / (1 - β₂ᵗ)) + ε)

    Kingma and Ba, 2015, Algorithm 1. (Keras adds ε to √v before the correction, so its ε counts for more at first.)
    """

    memory = "m", "v"

    def __init__(self, learning_rate=0.001, beta_1=0.9, beta_2=0.999, epsilon=1e-7):
        super().__init__(learning_rate)
        self.betas = check_positive("Adam: beta_1", beta_1, 1.0), check_positive("Adam: beta_2", beta_2, 1.0)
        self.epsilon = check_positive("Adam: epsilon", epsilon)

    def update(self, rate, dw, w, m, v):
        (b1, b2), t = self.betas, self.iterations
        m = b1 * m + (1.0 - b1) * dw
        v = b2 * v + (1.0 - b2) * (dw * dw)
        c1, c2 = 1.0 - exp(t * math.log(b1)), 1.0 - exp(t * math.log(b2))
        return w - rate * (m / c1) / (sqrt(v / c2) + self.epsilon), m, v


OPTIMIZERS = {"sgd": SGD, "adam": Adam}

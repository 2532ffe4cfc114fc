"""Optimizers by Keras' rules: a variable without a gradient stays as it is, and Adam's ε stands elsewhere."""

import math

from levels import mid_level
from levels.low_level import Operators, Variable, constant, exp, sqrt
from levels_more.mid_level import optimizers
from levels_more.tensorflow import more_optimizers
from levels_more.tensorflow.keras_rules import by_rules
from levels_more.tensorflow.variables import WatchingTape


class LearningRateSchedule:
    """A rate of the reader's own: write __call__(self, step), which gives a number or a tensor [] for the number of a step."""


class Optimizer(mid_level.Optimizer):
    """Changes variables by their gradients; where there is None, the variable stays."""

    iterations = constant(0)  # until there are variables

    learning_rate = property(
        lambda self: self.rate if callable(self.rate) or isinstance(self.rate, Variable) else constant(self.rate),
        lambda self, value: mid_level.Optimizer.learning_rate.fset(
            self, float(value) if isinstance(value, Operators) else value
        ),
    )
    lr = learning_rate

    def apply_gradients(self, grads_and_vars):
        """Update by pairs (gradient, variable). Raises ValueError where there is no gradient at all."""
        pairs = [(dw, w) for dw, w in grads_and_vars if dw is not None]
        if not pairs:
            raise ValueError("apply_gradients: there is no gradient; does the loss depend on these variables?")
        super().apply_gradients(pairs)
        for _, w in pairs:
            if getattr(w, "constraint", None):
                w.assign(w.constraint(w))

    def minimize(self, loss, var_list, tape=None):
        """Update these variables by the gradients of loss(), a function without arguments, or of a tensor that the tape knows."""
        if tape is None:
            with WatchingTape() as tape:
                loss = loss()
        self.apply_gradients(zip(tape.gradient(loss, [*var_list]), var_list, strict=True))

    def apply(self, grads, trainable_variables):
        """Update by gradients and their variables."""
        self.apply_gradients(zip(grads, trainable_variables, strict=True))


class Adam(Optimizer, optimizers.Adam):
    """That of levels, with ε added to √v before the correction, as in Keras (Kingma and Ba, 2015, before section 2.1)."""

    def update(self, rate, dw, w, m, v):
        (b1, b2), t = self.betas, self.iterations
        m, v = b1 * m + (1.0 - b1) * dw, b2 * v + (1.0 - b2) * (dw * dw)
        c1, c2 = 1.0 - exp(t * math.log(b1)), 1.0 - exp(t * math.log(b2))
        return w - rate * sqrt(c2) / c1 * m / (sqrt(v) + self.epsilon), m, v


class AdamW(optimizers.AdamW, Adam):
    """That of levels, on the Adam above: w ← w - rate·decay·w before each step (Loshchilov and Hutter, 2019)."""


_PLAIN = optimizers.SGD, optimizers.RMSprop, optimizers.Adagrad
_MORE = more_optimizers.Nadam, more_optimizers.Adamax, more_optimizers.Adadelta
OPTIMIZERS = {"Optimizer": Optimizer, "Adam": Adam, "AdamW": AdamW} | by_rules(Optimizer, *_PLAIN, *_MORE)
BY_NAME = {name.lower(): kind for name, kind in OPTIMIZERS.items()}  # as `compile` is told them

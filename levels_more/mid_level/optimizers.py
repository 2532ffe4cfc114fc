"""Further optimizers, momentum, learning rate schedules, and gradient clipping."""

import collections
import functools
import inspect
import math
import operator
from collections.abc import Callable, Iterable, Sequence

from numpy.typing import ArrayLike

from levels import mid_level
from levels.low_level import Operators, Tensor, Variable, as_tensor, clip, constant, exp, reduce_sum, sqrt
from levels.mid_level import optimizers
from levels.support.checks import check_bool, check_pairs, check_positive
from levels.support.parts import Reconstructible
from levels.support.trainings import check_rate
from levels_more.checks import number, several
from levels_more.low_level.module import Module
from levels_more.low_level.ops import cast, maximum, where
from levels_more.mid_level.notes import note, noted
from levels_more.mid_level.update_program import EagerStep
from levels_more.missing import refuse_arguments


def shorten(gradients, norm):
    """Scale these gradients by one factor so that their joint norm, √(sum of all squares), is at most `norm`."""
    squares = [reduce_sum(dw * dw) for dw in gradients]
    factor = norm / maximum(sqrt(functools.reduce(operator.add, squares)), norm)
    return [dw * factor for dw in gradients]


class Optimizer(optimizers.Optimizer, Module):
    """An optimizer that clips gradients (Pascanu et al., 2013). It may have a name, and a schedule as its rate.

    `clipnorm` bounds the norm of each gradient, `global_clipnorm` that of all together, `clipvalue` each |number|.
    Raises TypeError for an option that it does not have.
    """

    def __init__(
        self,
        *args,
        clipnorm: float | None = None,
        global_clipnorm: float | None = None,
        clipvalue: float | None = None,
        name: str | None = None,
        **options,
    ):
        known = inspect.signature(super().__init__).parameters.values()
        if all(x.kind is not x.VAR_KEYWORD for x in known):
            refuse_arguments(type(self).__name__, options.keys() - {x.name for x in known}, type(self))
        super().__init__(*args, **options)
        self.name = name
        given = {"clipnorm": clipnorm, "global_clipnorm": global_clipnorm, "clipvalue": clipvalue}
        for name, value in given.items():
            setattr(self, name, None if value is None else check_positive(f"{type(self).__name__}: {name}", value))

    @property
    def rate(self):
        """The rate of this step: a number, a variable once built, or what a schedule gives for the number of steps."""
        held = vars(self)["rate"] if "rate" in vars(self) else super().rate
        return held(self.iterations) if callable(held) else held

    @rate.setter
    def rate(self, value):
        vars(self)["rate"] = value

    @property
    def learning_rate(self) -> float | Callable:
        """The rate: a number, or a schedule, which is checked at step 0. Setting another value raises ValueError."""
        held = vars(self)["rate"]
        return held if callable(held) else float(held)

    @learning_rate.setter
    def learning_rate(self, value: float | Callable):
        first = value(constant(0.0)) if callable(value) else value
        number = check_rate(self, float(first) if isinstance(first, Operators) else first)
        held = vars(self).get("rate")
        if isinstance(held, Variable):
            held.assign(value if callable(value) else number)
        else:
            self.rate = value if callable(value) else number

    def build(self, variables):
        """As in the core; a schedule stays what it is."""
        schedule = vars(self)["rate"]
        self.rate = 0.0 if callable(schedule) else schedule
        super().build(variables)
        if callable(schedule):
            self.rate = schedule

    def clipped(self, gradients):
        """Return the clipped gradients."""
        if self.clipvalue is not None:
            gradients = [clip(dw, -self.clipvalue, self.clipvalue) for dw in gradients]
        if self.clipnorm is not None:
            gradients = [shorten([dw], self.clipnorm)[0] for dw in gradients]
        return gradients if self.global_clipnorm is None else shorten(gradients, self.global_clipnorm)

    def op_by_op(self, gradients, variables):
        """Clip the gradients, and update these variables by them, op by op."""
        super().apply_gradients(zip(self.clipped(gradients), variables, strict=True))

    def apply_gradients(self, grads_and_vars: "Iterable[tuple[ArrayLike, Variable]]") -> None:
        gradients, variables = check_pairs(grads_and_vars, Variable, as_tensor)
        program = noted(self, "program")
        if self.trained_variables and program is None:
            program = EagerStep(self, self.op_by_op)
            note(self, program=program)
        if program is None or not program.done(gradients, variables):
            self.op_by_op(gradients, variables)


class SGD(Optimizer, optimizers.SGD):
    """With momentum: v ← momentum·v - rate·dw, w ← w + v (Polyak, 1964). Nesterov's: w ← w + momentum·v - rate·dw."""

    def __init__(
        self, learning_rate: float | Callable = 0.01, momentum: float = 0.0, nesterov: bool = False, **options
    ):
        super().__init__(learning_rate, **options)
        self.momentum = check_positive("SGD: momentum", momentum, 1.0, zero=True)
        self.nesterov = check_bool("SGD: nesterov", nesterov)
        self.memory = ("v",) if momentum else ()

    def update(self, rate, dw, w, *memory):
        if not memory:
            return super().update(rate, dw, w)
        v = self.momentum * memory[0] - rate * dw
        return w + (self.momentum * v - rate * dw if self.nesterov else v), v


class Adam(Optimizer, optimizers.Adam):
    """The Adam of the core, with gradient clipping."""


class RMSprop(Optimizer):
    """v ← rho·v + (1 - rho)·dw²; w ← w - rate·dw / √(v + epsilon) (Tieleman and Hinton, 2012)"""

    memory = ("v",)

    def __init__(self, learning_rate: float | Callable = 0.001, rho: float = 0.9, epsilon: float = 1e-7, **options):
        super().__init__(learning_rate, **options)
        self.rho = check_positive("RMSprop: rho", rho, 1.0, zero=True)
        self.epsilon = check_positive("RMSprop: epsilon", epsilon)

    def update(self, rate, dw, w, v):
        v = self.rho * v + (1.0 - self.rho) * (dw * dw)
        return w - rate * dw / sqrt(v + self.epsilon), v


class AdamW(Adam):
    """Adam on w - rate·weight_decay·w (Loshchilov and Hutter, 2019, https://arxiv.org/abs/1711.05101)"""

    def __init__(self, learning_rate: float | Callable = 0.001, weight_decay: float = 0.004, **options):
        super().__init__(learning_rate, **options)
        self.weight_decay = check_positive("AdamW: weight_decay", weight_decay, zero=True)

    def update(self, rate, dw, w, m, v):
        return super().update(rate, dw, w - rate * self.weight_decay * w, m, v)


class ExponentialDecay(Reconstructible):
    """initial_learning_rate · decay_rate ** (step / decay_steps); `staircase` rounds the quotient down"""

    def __init__(self, initial_learning_rate: float, decay_steps: float, decay_rate: float, staircase: bool = False):
        self.initial_learning_rate = check_positive("ExponentialDecay: initial_learning_rate", initial_learning_rate)
        self.decay_steps = check_positive("ExponentialDecay: decay_steps", decay_steps)
        self.decay_rate = check_positive("ExponentialDecay: decay_rate", decay_rate)
        self.staircase = check_bool("ExponentialDecay: staircase", staircase)

    def __call__(self, step: Tensor) -> Tensor:
        if self.staircase:
            whole = cast(cast(step / float(self.decay_steps), "int64"), step.dtype)
            return self.initial_learning_rate * exp(whole * math.log(self.decay_rate))
        return self.initial_learning_rate * exp(step * (math.log(self.decay_rate) / self.decay_steps))


class PiecewiseConstantDecay(Reconstructible):
    """values[0] up to and including step boundaries[0], then values[1], and so on.

    Raises ValueError unless the boundaries ascend and there is one more value than boundaries.
    """

    def __init__(self, boundaries: Sequence[float], values: Sequence[float]):
        lists = []
        for name, given in (("boundaries", boundaries), ("values", values)):
            given = several(f"PiecewiseConstantDecay: {name}", given, "a list of numbers")
            lists.append([number(f"PiecewiseConstantDecay: one of the {name}", x, 0.0) for x in given])
        boundaries, values = lists
        if len(values) != len(boundaries) + 1 or sorted(boundaries) != [*boundaries]:
            given = f"{len(boundaries)} boundaries and {len(values)} values"
            raise ValueError(f"PiecewiseConstantDecay: {given}; expected one more value, and ascending boundaries")
        self.boundaries, self.values = tuple(boundaries), tuple(values)

    def __call__(self, step: Tensor) -> Tensor:
        rate = step * 0.0 + self.values[-1]
        for boundary, value in zip(self.boundaries[::-1], self.values[-2::-1], strict=True):
            rate = where(step <= boundary, value, rate)
        return rate


OPTIMIZERS = collections.ChainMap({}, mid_level.OPTIMIZERS)  # a name that is not here is looked up in the core's
OPTIMIZERS.update(sgd=SGD, adam=Adam, rmsprop=RMSprop, adamw=AdamW)

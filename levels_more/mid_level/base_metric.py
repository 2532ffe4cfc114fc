"""The base class of metrics: it adds up over batches, and computes a number."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from levels.low_level import Symbol, Variable, apply, as_tensor, reduce_sum
from levels.support.checks import lookup
from levels.support.fronts import Unset
from levels.support.inputs import check_labels
from levels.support.parts import Reconstructible
from levels_more.checks import dtype_of, sizes, whole_as_int64
from levels_more.low_level.module import Module
from levels_more.low_level.ops import cast
from levels_more.mid_level.initializers import INITIALIZERS
from levels_more.mid_level.losses import weighted
from levels_more.mid_level.names import snake_case
from levels_more.missing import refuse_arguments


def ratio(part, whole):
    """The sum of one array divided by the sum of another; 0 if the divisor is 0, as in Keras."""
    return part.sum() / whole.sum() if whole.sum() else 0.0


class Metric(Reconstructible, Module):
    """A formula of sums over all rows. Write `parts(y_true, y_pred)`, and `formula(count, *sums)` unless it is a mean.

    The parts are tensors [batch, …]. Their rows are added up, each times its weight; `count` is the sum of the weights.
    """

    excluded = True  # a model that holds a metric does not list the metric's variables
    by_name = False  # whether `compile` was given its name: only then it adapts to a loss of logits
    activation = None  # converts logits to probabilities
    name = state = lost = Unset()  # `__init__` sets them

    def __init__(self, name: str | None = None, **unknown):
        refuse_arguments(type(self).__name__, unknown, type(self))
        self.name = snake_case(type(self).__name__) if name is None else name
        self.state = self.lost = None  # the sums, and what rounding lost of each: variables, made for the first batch

    def add_variable(
        self,
        shape: int | Sequence[int] = (),
        initializer: str | Callable = "zeros",
        dtype: str | np.dtype | type = "float32",
        name: str | None = None,
    ) -> Variable:
        """Make a variable of this shape, for a metric with your own `update_state`, `result` and `reset_state`.

        Its name is the attribute that holds it; `name` is ignored. Raises TypeError for an invalid shape or dtype.
        """
        shape = sizes("add_variable: shape", shape)
        values = np.reshape(lookup("initializer", INITIALIZERS, initializer)(shape), shape)
        return Variable(values.astype(dtype_of("add_variable: dtype", dtype)), trainable=False)

    add_weight = add_variable  # as Keras called it before

    probabilities = False  # whether both must be, see `check`

    def check(self, y_true, y_pred):
        """Raise ValueError for unequal shapes, and for no probabilities."""
        check_labels(self, y_true, y_pred)

    def __repr__(self):
        return type(self).__name__

    def update_state(self, y_true: "ArrayLike", y_pred: "ArrayLike", sample_weight: "ArrayLike | None" = None) -> None:
        """Add a batch. Each row has the weight 1, or its `sample_weight` [batch]."""
        y_pred = as_tensor(whole_as_int64(y_pred))
        y_pred = y_pred if y_pred.dtype.kind == "f" else cast(y_pred, "float32")
        y_pred = y_pred if self.activation is None else self.activation(y_pred)
        y_true = as_tensor(whole_as_int64(y_true), y_pred)
        self.check(y_true, y_pred)
        if y_true.spec.shape == y_pred.spec.shape:  # else y_true holds class indices
            y_true = cast(y_true, y_pred.dtype)
        parts = self.parts(y_true, y_pred)
        weight = apply(
            "broadcast_divide", 1.0, parts[0], count=1.0
        )  # ones; by an op, so that a compiled step takes any batch
        if sample_weight is not None:
            weight = weighted(self, weight, sample_weight)
        new = self.sums(weight, *parts)
        if self.state is None:
            zeros = [np.zeros(x.spec.shape, x.dtype) for x in new]
            self.state, self.lost = ([Variable(x, trainable=False) for x in zeros] for _ in range(2))
        for total, lost, x in zip(self.state, self.lost, self.added(*new), strict=True):
            x = x + lost  # Kahan's summation: what rounding took from the last sum is added now
            lost.assign(apply("sum_error", total, x))
            total.assign(total + x)

    def of_logits(self, loss):
        """Expect the logits of this loss. Here nothing changes: the largest logit has the largest probability."""

    def sums(self, weight, *parts):
        """Return the sums of a batch: of the weights, and of each weighted part."""
        return [reduce_sum(x, 0) for x in (weight, *(weight * part for part in parts))]

    def added(self, *new):
        """Return what to add to the state, given the sums of a new batch: these sums, unless the state is no sum."""
        return new

    def formula(self, count, total):
        return ratio(total, count)

    def result(self) -> float:
        """The metric over all batches since the last `reset_state`, a float. Before the first batch it is 0.0.

        Raises TypeError while a function is traced: its state has no numbers then.
        """
        if any(type(as_tensor(v)) is Symbol for v in self.state or ()):
            raise TypeError(f"{self}: inside a function only update_state can be called; call result() after it")
        pairs = zip(self.state or (), self.lost or (), strict=True)
        sums = [total.numpy().astype(np.float64) + lost.numpy() for total, lost in pairs]
        return float(self.formula(*sums)) if sums else 0.0

    def reset_state(self) -> None:
        """Forget all batches."""
        for variable in [*(self.state or ()), *(self.lost or ())]:
            variable.assign(np.zeros(variable.shape, variable.dtype))

    def __call__(self, *args, **options) -> float:
        """Add a batch, and return the result."""
        self.update_state(*args, **options)
        return self.result()

"""Further losses: of absolute errors, of logits, of several classes, and with a weight for each sample."""

import collections

from numpy.typing import ArrayLike

from levels import mid_level
from levels.low_level import Symbol, Tensor, apply, as_tensor, clip, log, reduce_sum
from levels.mid_level import losses
from levels.support.checks import check_bool
from levels.support.fronts import Unset
from levels.support.inputs import check_labels, check_probabilities
from levels_more.checks import whole_as_int64
from levels_more.low_level.ops import absolute, cast, log_softmax, one_hot, reduce_mean, reshape
from levels_more.low_level.signatures import Arguments
from levels_more.missing import refuse_arguments


def weighted(loss, each, sample_weight):
    """The loss of each sample [batch, …] times its weight [batch] or [batch, 1], in the dtype of the loss, as in Keras.

    Raises ValueError for other shapes.
    """
    weight = as_tensor(whole_as_int64(sample_weight), each)
    samples = each.spec.shape[:1]
    if weight.spec.shape not in (samples, (*samples, 1)):
        raise ValueError(f"{loss}: sample_weight is {weight.spec}; expected one weight a sample, {samples}")
    weight = weight if weight.dtype == each.dtype else cast(weight, each.dtype)
    return each * reshape(weight, samples + (1,) * (len(each.spec.shape) - 1))


class Loss(losses.Loss):
    """The Loss of the core, which here also takes a weight for each sample, and labels that are integers or bools."""

    __signature__ = Arguments()

    def checked(self, y_true, y_pred):
        """Both as tensors. Labels become floats, unless they are class indices. Raises ValueError, see `check`."""
        y_pred = as_tensor(y_pred)
        y_true = as_tensor(whole_as_int64(y_true), y_pred)
        if self.classes or y_true.dtype.kind == "f":
            return super().checked(y_true, y_pred)
        self.check(y_true, y_pred)
        return cast(y_true, y_pred.dtype), y_pred

    def __call__(self, y_true: "ArrayLike", y_pred: "ArrayLike", sample_weight: "ArrayLike | None" = None) -> Tensor:
        """The mean loss, one number. Raises ValueError if y_true, y_pred and the weights do not fit each other."""
        each = self.call(*self.checked(y_true, y_pred))
        return reduce_mean(each if sample_weight is None else weighted(self, each, sample_weight))


class Reduced(Loss):
    """A loss with a name and a `reduction`: the mean, the "sum" over samples, or "none", a number for each sample.

    Raises ValueError for another reduction.
    """

    name = reduction = Unset()  # `__init__` sets them

    def __init__(self, name: str | None = None, reduction: str | None = "sum_over_batch_size", **unknown):
        refuse_arguments(type(self).__name__, unknown, type(self))
        super().__init__()
        self.name = name
        self.reduction = "none" if reduction is None else reduction
        if self.reduction not in ("sum_over_batch_size", "mean", "sum", "none"):
            raise ValueError(f"{self}: reduction is {reduction!r}; expected 'sum_over_batch_size', 'sum' or 'none'")

    def each(self, y_true, y_pred, sample_weight=None):
        """A number for each sample [batch]: the mean of `call` over the last axis, unless `call` reduced that axis."""
        y_pred = as_tensor(y_pred)
        y_true = as_tensor(whole_as_int64(y_true), y_pred)
        self.check(y_true, y_pred)
        each = self.call(y_true if self.classes else cast(y_true, y_pred.dtype), y_pred)
        each = reduce_mean(each, -1) if each.spec.shape and each.spec.shape == y_pred.spec.shape else each
        return each if sample_weight is None else weighted(self, each, sample_weight)

    def __call__(self, y_true: "ArrayLike", y_pred: "ArrayLike", sample_weight: "ArrayLike | None" = None) -> Tensor:
        """One number, or one for each sample. Raises ValueError if y_true and y_pred do not fit each other."""
        if self.reduction in ("sum_over_batch_size", "mean"):
            return super().__call__(y_true, y_pred, sample_weight)
        each = self.each(y_true, y_pred, sample_weight)
        return each if self.reduction == "none" else reduce_sum(each)


class MeanSquaredError(Reduced, losses.MeanSquaredError):
    """The MeanSquaredError of the core, with a name and a reduction."""


class MeanAbsoluteError(Reduced):
    """mean(|y_pred - y_true|)"""

    def call(self, y_true, y_pred):
        return absolute(y_pred - y_true)


def check_logits(loss, y_pred):
    """Raise ValueError if y_pred is the result of a sigmoid or softmax, and this loss expects logits.

    The check works only while a function is traced, as in `fit`: then each tensor is a Symbol that has its op.
    """
    op = y_pred.node.op if type(y_pred) is Symbol else ""
    if op in ("sigmoid", "softmax"):
        cure = "leave that activation away, or from_logits=True"
        raise ValueError(f"{loss}: from_logits=True, but y_pred is a {op}, which would be applied twice; {cure}")


def check_several(loss, y_pred):
    """Raise ValueError for a single class, y_pred[batch, 1]: its probability is always 1, and the loss always 0."""
    if y_pred.spec.shape[-1:] == (1,):
        cure = "use BinaryCrossentropy with one sigmoid, or give a column for each class"
        raise ValueError(f"{loss}: y_pred is {y_pred.spec}, and of one class the loss is always 0; {cure}")


class Crossentropy(Reduced):
    """A loss of probabilities or, with `from_logits=True`, of logits."""

    def __init__(self, from_logits: bool = False, **options):
        super().__init__(**options)
        self.from_logits = check_bool(f"{self}: from_logits", from_logits)
        self.probabilities = not from_logits

    def check(self, y_true, y_pred):
        check_labels(self, y_true, y_pred)
        if self.from_logits:
            check_logits(self, y_pred)
            check_probabilities(self, "y_true", y_true)


class BinaryCrossentropy(Crossentropy, losses.BinaryCrossentropy):
    """The core's loss. With `from_logits=True`, y_pred is the z of p = 1 / (1 + exp(-z)), and nothing is clipped."""

    def call(self, y_true, y_pred):
        return apply("logits_crossentropy", y_true, y_pred) if self.from_logits else super().call(y_true, y_pred)


class CategoricalCrossentropy(Crossentropy):
    """The mean of -Σ y_true·log p over samples, for y_true and p [batch, classes], p scaled to a sum of 1.

    With `from_logits=True`, y_pred is the z of p = softmax(z). A z of -inf rules a class out: it adds nothing to the
    loss if y_true is 0.
    """

    def check(self, y_true, y_pred):
        super().check(y_true, y_pred)
        if y_true is not y_pred:  # before training, targets are checked alone: check(y, y)
            check_several(self, y_pred)

    def call(self, y_true, y_pred):
        if self.from_logits:
            return -reduce_sum(apply("multiply_no_nan", log_softmax(y_pred), y_true), -1)
        p = clip(y_pred / reduce_sum(y_pred, -1, keepdims=True), 1e-7, 1.0 - 1e-7)
        return -reduce_sum(y_true * log(p), -1)


def check_classes(loss, y_true, y_pred):
    """Raise ValueError unless y_true [batch] or [batch, 1] holds class indices for y_pred [batch, classes]."""
    (*samples, classes) = y_pred.spec.shape or (0, 0)
    samples = tuple(samples)
    if y_true.spec.dtype.kind != "i" or y_true.spec.shape not in (samples, (*samples, 1)):
        given = f"y_true is {y_true.spec} and y_pred {y_pred.spec}"
        raise ValueError(f"{loss}: {given}; expected whole numbers {samples}")
    if type(y_true) is Tensor and ((y_true.numpy() < 0) | (y_true.numpy() >= classes)).any():
        wrong = max(y_true.numpy().ravel(), key=lambda k: abs(k - (classes - 1) / 2))
        raise ValueError(f"{loss}: y_true holds {wrong}; there are {classes} classes, 0 to {classes - 1}")


class SparseCategoricalCrossentropy(CategoricalCrossentropy):
    """Categorical cross-entropy for y_true [batch] or [batch, 1], the class indices."""

    classes = True

    def check(self, y_true, y_pred):
        check_classes(self, y_true, y_pred)
        check_several(self, y_pred)
        if self.from_logits:
            check_logits(self, y_pred)
        if self.probabilities:
            check_probabilities(self, "y_pred", y_pred)

    def call(self, y_true, y_pred):
        *samples, classes = y_pred.spec.shape
        return super().call(one_hot(reshape(y_true, samples), classes, y_pred.dtype), y_pred)


LOSSES = collections.ChainMap({}, mid_level.LOSSES)  # a name that is not here is looked up in the core's
LOSSES.update(
    mse=MeanSquaredError,
    mean_squared_error=MeanSquaredError,
    binary_crossentropy=BinaryCrossentropy,
    mae=MeanAbsoluteError,
    mean_absolute_error=MeanAbsoluteError,
    categorical_crossentropy=CategoricalCrossentropy,
    sparse_categorical_crossentropy=SparseCategoricalCrossentropy,
)

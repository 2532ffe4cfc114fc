"""Solutions to the exercises of notebook 04. The level's names are at hand, as in the notebook."""

import numpy as np

from levels_more.low_level import (  # noqa: F401
    GradientTape,
    Variable,
    cast,
    constant,
    maximum,
    minimum,
    reduce_mean,
    reduce_sum,
    where,
)
from levels_more.mid_level import *
from levels_more.mid_level.base_metric import ratio

# 04-1


class Scale(Layer):
    def build(self, shape):
        self.scale = self.add_weight(shape[-1:], "ones")

    def call(self, x):
        return x * self.scale


class OneRow(Layer):
    def __init__(self, **options):
        super().__init__(**options)
        self.row = None

    def build(self, shape):
        self.row = Variable(np.ones((1, shape[1]), self.dtype))

    def call(self, x):
        return self.row * x


class NumberForEachRow(Layer):
    def build(self, shape):
        self.scale = self.add_weight((shape[0], 1), "ones")

    def call(self, x):
        return x * self.scale


class OneNumber(Layer):
    def build(self, shape):
        self.scale = self.add_weight((), "ones")

    def call(self, x):
        return x * self.scale


class NoVariable(Layer):
    def build(self, shape):
        self.scale = np.ones(shape[-1:], self.dtype)

    def call(self, x):
        return x * self.scale


class AnewInEachCall(Layer):
    def call(self, x):
        self.scale = self.add_weight(x.shape[-1:], "ones")
        return x * self.scale


class Float32(Layer):
    def build(self, shape):
        self.scale = Variable(np.ones(shape[-1:], "f4"))

    def call(self, x):
        return x * self.scale


class AtRandom(Layer):
    def build(self, shape):
        self.scale = self.add_weight(shape[-1:])

    def call(self, x):
        return x * self.scale


class Shared(Layer):
    kept = {}

    def build(self, shape):
        key = (shape[-1], str(self.dtype))
        if key not in self.kept:
            self.kept[key] = self.add_weight(shape[-1:], "ones")
        self.scale = self.kept[key]

    def call(self, x):
        return x * self.scale


class OffTheTape(Layer):
    def build(self, shape):
        self.scale = self.add_weight(shape[-1:], "ones")

    def call(self, x):
        return constant(x.numpy() * self.scale.numpy())


# 04-2


class Huber(Loss):
    def call(self, y_true, y_pred):
        error = y_pred - y_true
        size = where(error > 0.0, error, -error)
        return where(size < 1.0, 0.5 * error * error, size - 0.5)


class BySmallPart(Loss):
    def call(self, y_true, y_pred):
        size = maximum(y_true - y_pred, y_pred - y_true)
        small = minimum(size, 1.0)
        return small * size - small * small / 2.0


class Jumps(Loss):
    def call(self, y_true, y_pred):
        error = y_pred - y_true
        size = where(error > 0.0, error, -error)
        return where(size < 1.0, 0.5 * error * error, size)


class PositiveOnly(Loss):
    def call(self, y_true, y_pred):
        error = y_pred - y_true
        return where(error < 1.0, 0.5 * error * error, error - 0.5)


class Summed(Loss):
    def call(self, y_true, y_pred):
        return reduce_sum(Huber.call(self, y_true, y_pred))


class MeanTooEarly(Loss):
    def call(self, y_true, y_pred):
        return reduce_mean(Huber.call(self, y_true, y_pred))


class HalfInFloat32(Loss):
    def call(self, y_true, y_pred):
        error = y_pred - y_true
        size = where(error > 0.0, error, -error)
        return where(size < 1.0, error * error * constant(0.5), size - constant(0.5))


class SquaredOnly(Loss):
    def call(self, y_true, y_pred):
        error = y_pred - y_true
        return 0.5 * error * error


# 04-3


class SignDescent(Optimizer):
    memory = ("m",)

    def update(self, rate, dw, w, m):
        m = 0.9 * m + 0.1 * dw
        return w - rate * (cast(m > 0.0, m.dtype) - cast(m < 0.0, m.dtype)), m


class ThreeCases(Optimizer):
    memory = ("m",)

    def update(self, rate, dw, w, m):
        m = m + (dw - m) * 0.1
        return where(m > 0.0, w - rate, where(m < 0.0, w + rate, w)), m


class OfTheGradient(Optimizer):
    memory = ("m",)

    def update(self, rate, dw, w, m):
        return w - rate * (cast(dw > 0.0, m.dtype) - cast(dw < 0.0, m.dtype)), 0.9 * m + 0.1 * dw


class OldMemory(Optimizer):
    memory = ("m",)

    def update(self, rate, dw, w, m):
        return w - rate * (cast(m > 0.0, m.dtype) - cast(m < 0.0, m.dtype)), 0.9 * m + 0.1 * dw


class Forgets(Optimizer):
    memory = ("m",)

    def update(self, rate, dw, w, m):
        m = 0.9 * m + 0.1 * dw
        return (w - rate * (cast(m > 0.0, m.dtype) - cast(m < 0.0, m.dtype)),)


class ZeroByZero(Optimizer):
    memory = ("m",)

    def update(self, rate, dw, w, m):
        m = 0.9 * m + 0.1 * dw
        return w - rate * m / where(m > 0.0, m, -m), m


class NeverStill(Optimizer):
    memory = ("m",)

    def update(self, rate, dw, w, m):
        m = 0.9 * m + 0.1 * dw
        return w - rate * (2.0 * cast(m > 0.0, m.dtype) - 1.0), m


class OneMemory(Optimizer):
    m = 0.0

    def update(self, rate, dw, w):
        self.m = 0.9 * self.m + 0.1 * reduce_mean(dw)
        return (w - rate * (cast(self.m > 0.0, w.dtype) - cast(self.m < 0.0, w.dtype)),)


# 04-4


class F1(BinaryAccuracy):
    def parts(self, y_true, y_pred):
        return self.said(y_pred), y_true, self.said(y_pred) * y_true

    def formula(self, count, called, true, right):
        return ratio(2.0 * right, called + true)


class HarmonicMean(BinaryAccuracy):
    def parts(self, y_true, y_pred):
        called = cast(y_pred > self.threshold, y_pred.dtype)
        return [called, y_true, where(y_true > 0.5, called, 0.0 * called)]

    def formula(self, count, called, true, right):
        precision, recall = ratio(right, called), ratio(right, true)
        return 2.0 * precision * recall / (precision + recall) if right.sum() else 0.0


class MeanOfBatches(F1):
    def sums(self, weight, *parts):
        called, true, right = (float(x.numpy().sum()) for x in super().sums(weight, *parts)[1:])
        return [constant(1.0), constant(2.0 * right / max(called + true, 1.0))]

    def formula(self, count, total):
        return ratio(total, count)


class LastBatch(F1):
    def parts(self, y_true, y_pred):
        self.reset_state()
        return super().parts(y_true, y_pred)

    def formula(self, count, called, true, right):
        return ratio(2.0 * right, called + true)


class PlainMean(F1):
    def formula(self, count, called, true, right):
        return (ratio(right, called) + ratio(right, true)) / 2.0


class WithoutTwo(F1):
    def formula(self, count, called, true, right):
        return ratio(right, called + true)


class HalfIsTheThreshold(F1):
    def said(self, y_pred):
        return cast(y_pred > 0.5, y_pred.dtype)


class DividesByZero(F1):
    def formula(self, count, called, true, right):
        return 2.0 * right.sum() / (called + true).sum()


class RowsWithoutWeights(F1):
    def sums(self, weight, *parts):
        return super().sums(weight / weight, *parts)


# 04-5


def standardised(x, x_test):
    mean, spread = x.mean(axis=0), x.std(axis=0)
    spread = np.where(spread > 0, spread, 1)
    return (x - mean) / spread, (x_test - mean) / spread


def column_by_column(x, x_test):
    results = np.empty_like(x), np.empty_like(x_test)
    for k in range(x.shape[1]):
        column = x[:, k].tolist()
        mean = sum(column) / len(column)
        deviation = (sum((each - mean) ** 2 for each in column) / len(column)) ** 0.5
        for table, result in zip((x, x_test), results, strict=True):
            result[:, k] = (table[:, k] - mean) / (deviation or 1.0)
    return list(results)


def each_by_itself(x, x_test):
    return standardised(x, x)[0], standardised(x_test, x_test)[0]


def by_both(x, x_test):
    both = np.concatenate([x, x_test])
    return standardised(both, x)[1], standardised(both, x_test)[1]


def whole_table(x, x_test):
    return (x - x.mean()) / x.std(), (x_test - x.mean()) / x.std()


def by_variance(x, x_test):
    mean, spread = x.mean(axis=0), x.var(axis=0)
    spread = np.where(spread > 0, spread, 1)
    return (x - mean) / spread, (x_test - mean) / spread


def constant_by_zero(x, x_test):
    mean, spread = x.mean(axis=0), x.std(axis=0)
    return (x - mean) / spread, (x_test - mean) / spread


def in_float64(x, x_test):
    return standardised(x.astype("f8"), x_test.astype("f8"))


def in_place(x, x_test):
    mean, spread = x.mean(axis=0), x.std(axis=0)
    x_test -= mean
    x_test /= np.where(spread > 0, spread, 1)
    return standardised(x, x)[0], x_test


SOLUTIONS = {
    "04-1": Scale,
    "04-2": Huber,
    "04-3": SignDescent,
    "04-4": F1,
    "04-5": standardised,
}
ALSO_RIGHT = {
    "04-1": {"a variable of one row": OneRow},
    "04-2": {"by its small part": BySmallPart},
    "04-3": {"three cases": ThreeCases},
    "04-4": {"the harmonic mean of precision and recall": HarmonicMean},
    "04-5": {"column by column": column_by_column},
}


WRONG = {
    "04-1": {
        "a number for each row": NumberForEachRow,
        "one number for all columns": OneNumber,
        "nothing to train": NoVariable,
        "made anew in each call": AnewInEachCall,
        "ignores the dtype": Float32,
        "starts at random": AtRandom,
        "two layers share": Shared,
        "off the tape": OffTheTape,
    },
    "04-2": {
        "wrong at the joint": Jumps,
        "right only for errors above 0": PositiveOnly,
        "sum, not mean": Summed,
        "right only without weights": MeanTooEarly,
        "ignores the dtype": HalfInFloat32,
        "right only for small errors": SquaredOnly,
    },
    "04-3": {
        "the gradient's sign": OfTheGradient,
        "the memory of the step before": OldMemory,
        "the memory is not given back": Forgets,
        "divides 0 by 0": ZeroByZero,
        "never still": NeverStill,
        "one memory for all": OneMemory,
    },
    "04-4": {
        "right on average": MeanOfBatches,
        "the last batch": LastBatch,
        "the plain mean of precision and recall": PlainMean,
        "a factor of two": WithoutTwo,
        "right only for a threshold of 0.5": HalfIsTheThreshold,
        "divides 0 by 0": DividesByZero,
        "ignores the weights": RowsWithoutWeights,
    },
    "04-5": {
        "by its own mean": each_by_itself,
        "by both tables": by_both,
        "right only for one column": whole_table,
        "by the variance": by_variance,
        "a constant column": constant_by_zero,
        "ignores the dtype": in_float64,
        "changes its argument": in_place,
    },
}

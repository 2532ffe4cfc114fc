"""Metrics by Keras' rules: what one gives is a tensor, and one of the same name as a loss is its mean over all samples."""

import numpy as np

from levels import mid_level
from levels.low_level import apply, as_tensor, constant, reduce_mean
from levels_more.high_level.data_adapter import as_list
from levels_more.high_level.fit import made, spelled
from levels_more.low_level.ops import cast
from levels_more.mid_level import metrics
from levels_more.mid_level.metrics import snake_case
from levels_more.tensorflow import confusion_metrics
from levels_more.tensorflow.keras_layers import FLOAT
from levels_more.tensorflow.keras_losses import LOSSES, SHORT, Loss, alike
from levels_more.tensorflow.keras_rules import by_rules, classes_of
from levels_more.tensorflow.nested import Later, traced
from levels_more.tensorflow.variables import Assigned


class Metric(mid_level.Metric):
    """Sums over all batches; `result` is a tensor."""

    def __init__(self, *args, dtype=None, **options):
        super().__init__(*args, **options)

    def add_variable(self, shape=(), initializer="zeros", dtype=None, name=None):
        """A variable of this shape to count in."""
        found = super().add_variable(tuple(shape), initializer, dtype or FLOAT[0])
        return Assigned(found.newest(), False, name)

    add_weight = add_variable

    def result(self):
        """The metric over all batches since the last `reset_state`, a tensor. A traced function may give it back, no more."""
        if traced():
            return Later(self.result, self.variables)
        return constant(np.asarray(super().result(), FLOAT[0]))

    def __call__(self, *args, **options):
        """Add a batch, and give the result."""
        self.update_state(*args, **options)
        return self.result()

    def reset_state(self):
        """Forget all batches."""
        for variable in self.variables:
            variable.assign(np.zeros(variable.shape, variable.dtype))

    def reset_states(self):
        """The same, as it was called before."""
        self.reset_state()


def binary_accuracy(y_true, y_pred, threshold=0.5):
    """1 for each number of y_true and y_pred [batch, …] that are on one side of the threshold, else 0."""
    y_true, y_pred = alike(y_true, y_pred)
    return cast(cast(y_pred > threshold, y_pred.dtype) == cast(y_true, y_pred.dtype), FLOAT[0])


def hits_of(name):
    """An accuracy as a function of y_true and y_pred [batch, …], which gives 1 or 0 for each sample."""

    def hits(y_true, y_pred):
        return METRICS[name]().parts(*alike(y_true, y_pred))[0]

    hits.__name__ = snake_case(name)
    return hits


def metric_of(kind):
    """The metric of a loss: its mean over all samples."""
    return lambda name=None, dtype=None, **options: METRICS["MeanLoss"](kind(**options), name)


class Cosine(LOSSES["CosineSimilarity"]):
    """The cosine of the angle between y_true and y_pred [batch, …], along their last axis: the loss with the other sign."""

    def call(self, y_true, y_pred):
        """The cosine of each row of y_true and y_pred [batch, …]."""
        return -super().call(y_true, y_pred)


class Calculated(Metric, metrics.Calculated):
    """The mean of what a function of yours gives: over all rows or, where it gives one number for a batch, over all batches."""

    def parts(self, y_true, y_pred):
        """What the function gives for y_true and y_pred [batch, …], for each row. Raises ValueError for another count."""
        each = as_tensor(self.function(y_true, y_pred))
        self.by_batch = not each.spec.shape
        axes = tuple(range(1, len(each.spec.shape)))
        self.function, function = lambda *_: reduce_mean(each, axes) if axes else each, self.function
        try:
            return super().parts(y_true, y_pred)
        finally:
            self.function = function

    def sums(self, weight, *parts):
        """What a batch has to say: how much it counts, and the sum of each part [batch]."""
        found = super().sums(weight, *parts)
        return [x / found[0] for x in found] if self.by_batch else found


class OutputLoss(Metric, mid_level.MeanLoss):
    """The mean loss of one of several outputs, each row times its weight, over all rows."""

    weighted = True

    def sums(self, weight, *parts):
        """What a batch has to say: the number of rows, and the sum of each part [batch], times the weights."""
        rows = apply("spread", 1.0, parts[0], count=1.0)
        return [super().sums(rows)[0], *super().sums(weight, *parts)[1:]]


class CompileMetrics:
    """All metrics that `compile` chose as one, for loops over `model.metrics`: `result` is {name: result}."""

    name = "compile_metrics"

    def __init__(self, model):
        self.model, self.parts = model, model.training.metrics
        self.variables = [variable for part in self.parts for variable in part.variables]

    def update_state(self, y_true, y_pred, sample_weight=None):
        """Add a batch of y_true and y_pred [batch, …]; only `weighted_metrics` heed weights of rows, as in Keras."""
        self.model.training.count(*self.model.matched(y_true, y_pred, sample_weight))

    def result(self):
        """{name: result}"""
        return {part.name: part.result() for part in self.parts}

    def reset_state(self):
        """Forget all batches."""
        for part in self.parts:
            part.reset_state()


def called(metric):
    """A metric that was asked for by name has that name."""
    if isinstance(metric, str):
        word = spelled("metric", mid_level.METRICS, metric)
        found = BY_NAME[word](name=metric) if word in BY_NAME else made("metric", mid_level.METRICS, word)
        found.by_name = True
        return found
    if callable(metric) and not isinstance(metric, (type, mid_level.Loss)) and not hasattr(metric, "update_state"):
        return Calculated(metric)
    return metric() if isinstance(metric, type) else metric


def of_outputs(given, names):
    """All metrics that were given for outputs of these names: of one output a list, of several {name: metrics}, or a list of each.

    Those of several are called after their outputs. Raises ValueError for other names, or another number of them.
    """
    if len(names) < 2:
        given = [*given.values()] if isinstance(given, dict) else as_list(given or ())
        return [called(metric) for each in given for metric in as_list(each)]
    given = given or {}
    if not isinstance(given, dict):
        given = dict(zip(names, given, strict=True)) if len(given) == len(names) else {len(given): ()}
    if not {*given} <= {*names}:
        raise ValueError(f"compile: metrics for {[*given]}; the outputs are {names}: give {{name: metrics}}")
    found = []
    for name in sorted(given):
        for metric in map(called, as_list(given[name] or ())):
            metric.name, metric.output = f"{name}_{metric.name}", names.index(name)
            found.append(metric)
    return found


def losses_of(training, names):
    """A metric for the loss of each of several outputs of these names."""
    found = []
    for k, (name, loss) in enumerate(zip(names, training.losses_of(names), strict=True)):
        metric = (
            OutputLoss(loss, f"{name}_loss") if isinstance(loss, mid_level.Loss) else Calculated(loss, f"{name}_loss")
        )
        metric.output = k
        found.append(metric)
    return found


_METRICS = (
    "Accuracy BinaryAccuracy CategoricalAccuracy Mean Precision R2Score Recall RootMeanSquaredError "
    "SparseCategoricalAccuracy MeanLoss"
)
METRICS = {"Metric": Metric} | by_rules(Metric, *(getattr(mid_level, name) for name in _METRICS.split()))
METRICS |= by_rules(Metric, *classes_of(confusion_metrics, mid_level.Metric))
METRICS |= {name: metric_of(kind) for name, kind in LOSSES.items() if isinstance(kind, type) and kind is not Loss}
METRICS |= {name: rows for name, rows in LOSSES.items() if not isinstance(rows, type)}
METRICS["binary_accuracy"] = binary_accuracy
for name in ("CategoricalAccuracy", "SparseCategoricalAccuracy"):
    METRICS[snake_case(name)] = hits_of(name)
METRICS["CosineSimilarity"] = lambda name="cosine_similarity", dtype=None: METRICS["MeanLoss"](Cosine(), name)
METRICS["LogCoshError"] = lambda name="logcosh", dtype=None: METRICS["MeanLoss"](LOSSES["LogCosh"](), name)
BY_NAME = {snake_case(name): kind for name, kind in METRICS.items() if name[:1].isupper()}  # as `compile` is told them
BY_NAME |= {short: BY_NAME[name] for short, name in SHORT.items()}
BY_NAME |= dict.fromkeys(("acc", "accuracy"), *by_rules(Metric, mid_level.AccuracyByShape).values())

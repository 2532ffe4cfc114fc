"""What is counted for each output of a model: its metrics and, if several outputs have a loss, its loss."""

import math
from contextvars import ContextVar

from levels.low_level import apply
from levels.support.parts import Reconstructible
from levels_more.high_level.rows import as_list
from levels_more.low_level.ops import reshape
from levels_more.mid_level.metrics import Mean, expect_logits
from levels_more.mid_level.notes import noted


class OutputLoss(Mean):
    """The mean loss of an output over all rows so far."""

    def add(self, loss, predicted):
        """Add the loss of a batch, one number, for each row of predicted [batch, …]."""
        each = reshape(predicted, (predicted.spec.shape[0], -1))[:, 0]
        self.update_state(apply("broadcast_divide", loss, each, count=1.0))


def distinct(names):
    """These names, made unique: a second `precision` becomes `precision_1`, as in Keras."""
    found = []
    for name in names:
        numbered = (f"{name}_{k}" for k in range(1, len(names) + 1))
        found.append(name if name not in found else next(other for other in numbered if other not in found))
    return found


def names_of(model, count):
    """The names of a model's outputs: for a graph those of its last layers, else output_1, output_2, …."""
    places = model.outputs if getattr(model, "steps", None) and len(model.outputs) == count else [None] * count
    layers = [getattr(place, "layer", None) for place in places]
    return distinct([layer.name if layer else f"output_{k}" for k, layer in enumerate(layers, 1)])


def by_output(model, metrics):
    """Metrics {name of an output's layer: one or several} as a list for each output of a model. Raises ValueError."""
    names = names_of(model, len(model.outputs)) if model.steps else []
    unknown = [str(name) for name in metrics if name not in names]
    if unknown:
        told = f"its outputs are {', '.join(names)}" if names else "a dict is for a graph, Model(inputs, outputs)"
        raise ValueError(f"compile: metrics for {', '.join(unknown)}; {told}")
    return [as_list(metrics.get(name) or []) for name in names]


PASSES = ContextVar("PASSES", default=0)  # how many passes over data are going on in this thread


def states_of(metrics):
    """The values of the variables of metrics, {metric: {variable: value}}."""
    return {metric: {v: v.read_value() for v in getattr(metric, "variables", ())} for metric in metrics}


def give_back(metrics, states):
    """Set the variables of metrics to what `states_of` returned. Those that are not there start anew."""
    for metric in metrics:
        metric.reset_state()
        for variable, value in states.get(metric, {}).items():
            variable.set_value(value)


class Counted(Reconstructible):
    """The metrics of each output. `given`: those that `compile` was given, a list for each output."""

    def __init__(self, given):
        self.given = given
        self.groups = [sum(given, [])]  # of the only output, until `prepare` knows of more
        self.losses = []  # the OutputLoss of each output, or None
        self.all = self.groups[0]
        self.outputs = [""]  # what stands before the names of each

    def prepare(self, outputs, losses):
        """Count for the outputs of these names, with losses[output], each a Loss or None. Raises ValueError."""
        count = len(outputs)
        if len(self.losses) == count:
            return
        if count > 1 and len(self.given) not in (0, count):
            cure = "give a list with a list for each, or a dict by their names"
            raise ValueError(f"compile: {len(self.given)} metrics for {count} outputs; {cure}")
        if count > 1:
            self.groups = self.given or [[] for _ in outputs]
            self.outputs = [f"{name}_" for name in outputs]
        several = len([*filter(None, losses)]) > 1
        self.losses = [OutputLoss() if loss and several else None for loss in losses]
        self.all = [*filter(None, self.losses), *sum(self.groups, [])]
        for group, loss in zip(self.groups, losses, strict=True):
            expect_logits(group, [loss])

    def logs(self, loss):
        """{"loss": …, the losses of the outputs, each metric}. Those of several outputs are sorted, as in Keras."""
        if not self.all:
            return {"loss": loss}
        found = [(f"{name}loss", each) for name, each in zip(self.outputs, self.losses, strict=False) if each]
        counted = [
            (f"{name}{each.name}", each)
            for name, group in zip(self.outputs, self.groups, strict=True)
            for each in group
        ]
        if len(self.outputs) > 1:
            counted.sort(key=lambda pair: pair[0])
        names = distinct(["loss", *(name for name, _ in found + counted)])
        return dict(zip(names, [loss, *(float(each.result()) for _, each in found + counted)], strict=True))


def print_summary(model):
    """Print the layers of a model, their latest output shapes, and how many numbers their variables hold."""
    rows = [("layer", "output shape", "parameters")]
    for part in model.outer_layers():
        shape = noted(part, "output_shape")
        told = str((None, *shape[1:])) if shape else "not built"
        rows.append((f"{part.name} ({type(part).__name__})", told, f"{part.count():,}"))
    rows.append(("total", "", f"{model.count():,}"))
    rows.append(("trained", "", f"{sum(math.prod(v.shape) for v in model.trainable_variables):,}"))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for a, b, c in rows:
        print(f"{a:{widths[0]}}   {b:{widths[1]}}   {c:>{widths[2]}}")

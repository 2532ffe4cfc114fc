"""Compiled functions of a model: its step for one layout of the rows of a batch, and its predictions."""

import contextlib
import threading
import time
from types import SimpleNamespace

from levels.low_level import constant
from levels_more.checks import takes
from levels_more.compiler.functions import Function
from levels_more.compiler.reads import Reads, hearing
from levels_more.high_level.rows import as_list
from levels_more.high_level.targets import like_predictions
from levels_more.high_level.training import ROW_WEIGHTS
from levels_more.mid_level.notes import note, noted

PIECE_SECONDS = 0.05  # the time that a call with several steps should take


class _GraphTransform(threading.local):
    change = None  # applied to each traced graph: a function (graph, number of rows of a batch) -> another graph
    rows = None  # where each rank has rows of its own: how many the whole batch has; then `change` has a `signature`

    @contextlib.contextmanager
    def off(self):
        """Inside this `with` block, graphs are not changed."""
        before = self.change, self.rows
        self.change = self.rows = None
        try:
            yield
        finally:
            self.change, self.rows = before


GRAPH_TRANSFORM = _GraphTransform()  # `distributed` sets it, to split graphs over several ranks


class CachedFunction(Function):
    """A function that stays compiled: `current` compares what its traces have read with what is there now."""

    def renew(self):
        super().renew()
        self.reads = []

    def program(self, args, key, over):
        return super().program(args, (key, GRAPH_TRANSFORM.change), over)

    def traced(self, signature, over):
        if GRAPH_TRANSFORM.rows is not None:
            signature = GRAPH_TRANSFORM.change.signature(signature)
        with hearing() as heard:
            graph, result = super().traced(signature, over)
        self.reads.append(Reads(heard))
        return GRAPH_TRANSFORM.change(graph, signature[0].shape[0]) if GRAPH_TRANSFORM.change else graph, result

    def current(self):
        """This function. If something has changed, its next call traces it again."""
        for reads in self.reads:
            if reads.changed():
                self.renew()
                break
        return self

    def __reduce__(self):
        return type(None), ()  # a copy of the model gets None here, and makes its own


class StepProgram(CachedFunction):
    """A model's method step(x, y) as a function of the arrays of a batch, which have this layout.

    Raises TypeError if the method does not take x and y.
    """

    def __init__(self, step, layout):
        if not takes(step, 2):
            cure = f"write def {step.__name__}(self, x, y), and return the loss, one number"
            raise TypeError(f"{step.__qualname__}: fit calls it with a batch's x and y; {cure}")
        super().__init__(lambda *rows: run_step(step, layout, rows))
        self.steps_per_call = 1  # as many as take about PIECE_SECONDS

    def take_time(self, steps, begun):
        """Set `steps_per_call`, given that so many steps took the time since `begun`."""
        self.steps_per_call = max(1, int(PIECE_SECONDS * steps / (time.perf_counter() - begun)))


def run_step(step, layout, rows):
    """step(x, y) on the arrays of a batch. Raises TypeError if it does not return the loss, ValueError if it ignores
    the weights of rows."""
    x, y, weights = layout.unpacked(rows)
    rows = SimpleNamespace(tensors=weights, used=False)
    before = ROW_WEIGHTS.set(rows)
    try:
        result = step(x, y)
    finally:
        ROW_WEIGHTS.reset(before)
    if result is None or isinstance(result, dict | list | tuple):
        told = f"{step.__qualname__}: it returns {'None' if result is None else f'a {type(result).__name__}'}"
        raise TypeError(f"{told}; expected the loss, one number: metrics go into compile(metrics=…)")
    if weights and not rows.used:
        cure = "call self.training.loss(self, y, predicted), which does"
        raise ValueError(f"{step.__qualname__} does not heed the weights of rows; {cure}")
    return result


def step_program(training, step, layout, look=True):
    """The StepProgram of a model's method for a layout; there is one for each in the `programs` of its Training.

    With `look` it is traced again if something that its trace read has changed since.
    """
    programs = training.programs
    program = programs.get((step, layout))
    if program is None:
        program = programs[step, layout] = StepProgram(step, layout)
    return program.current() if look else program


def predictor(model, layout):
    """The function of a model's inputs in this layout that gives its outputs. The latest one is kept in the model."""
    form = layout.inputs, layout.names, layout.column_layers
    kept = noted(model, "predictor")
    if kept is None or kept.form != form:
        kept = CachedFunction(lambda *rows: model(layout.x(rows)))
        kept.form = form
        note(model, predictor=kept)
    return kept.current()


def predictions(model, batches):
    """The model's outputs for each pair (inputs, their BatchLayout). Changes are looked for once for each layout."""
    before = None
    for rows, layout in batches:
        if layout != before:
            program = predictor(model, layout)
            before = layout
        yield program(*rows)


def check_fits_losses(model, training, rows, layout):
    """Raise ValueError if the targets, or the predictions for the first rows, do not fit the losses of a Training."""
    y = rows[layout.inputs : layout.inputs + layout.targets]
    losses = training.check_targets(y)
    asked = [getattr(loss, "probabilities", False) for loss in losses]
    if any(asked):
        first = [tensor.numpy()[:32] for tensor in rows[: layout.inputs]]
        with GRAPH_TRANSFORM.off():
            answers = as_list(predictor(model, layout)(*first))
        for loss, target, answer, probabilities in zip(losses, y, answers, asked, strict=False):
            if probabilities:
                loss.check(like_predictions(loss, constant(target.numpy()[:32]), answer), answer)

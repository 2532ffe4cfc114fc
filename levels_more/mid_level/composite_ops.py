"""Composite ops: outside a trace, several ops run as one, with one launch and one record on the tape.

They run the kernels of the single ops. A trace keeps the single ops: programs fuse ops themselves, and all back ends
support them. If the reader has replaced the gradient rule of a single op, nothing is fused, and that rule is called.
"""

import functools
import math
from types import SimpleNamespace

import numpy as np

from levels.hardware import pool
from levels.kernels import Plan, kernel, lowered, planned
from levels.low_level import DOOR, VJPS, GradientTape, Tensor, apply, as_tensor, nn, reduce_sum, trace
from levels.mid_level import layers, losses
from levels.support.locks import compiled_once
from levels_more.compiler.eager import ACCELERATION
from levels_more.compiler.eager.backward import MADE_OF
from levels_more.compiler.eager.tapes import GradientTape as WiderTape
from levels_more.compiler.reads import of_levels
from levels_more.kernels.verify import TEST_CASES
from levels_more.low_level import autodiff  # noqa: F401 (the rules of logits_crossentropy)

_MEAN = {"axis": None, "keepdims": False}
# composite op -> its single ops: (op, numbers of its inputs, attributes); results are numbered after the inputs
_RECORDS = {
    "affine": [("matmul", [0, 1], {}), ("add", [3, 2], {})],
    "affine_relu": [("matmul", [0, 1], {}), ("add", [3, 2], {}), ("relu", [4], {})],
    "mean_logits_crossentropy": [("logits_crossentropy", [0, 1], {}), ("reduce_mean", [2], _MEAN)],
    "mean_squared_error": [("subtract", [1, 0], {}), ("multiply", [2, 2], {}), ("reduce_mean", [3], _MEAN)],
}
MADE_OF |= {op: tuple(part for part, *_ in records) for op, records in _RECORDS.items()}
# composite op -> [(a single op of it, its gradient rules; None if one of them is the reader's already), …]
_RULES = {
    op: [(part, VJPS[part] if all(map(of_levels, filter(None, VJPS[part]))) else None) for part in parts]
    for op, parts in MADE_OF.items()
}


def _rules_are_ours(op):
    """Whether the gradient rules of all single ops of this composite op are still those in `_RULES`."""
    for part, rule in _RULES[op]:  # noqa: SIM110 (`all` would take three times as long)
        if VJPS[part] is not rule:
            return False
    return True


@functools.cache
def _stands_for(op):
    """Whether the core's layer or loss, which the reader may have edited, still runs the single ops of this op.

    False if that code raises LookupError, TypeError or ValueError: the single ops raise it again. Others are raised.
    """
    _, single_ops, trials = _COMPOSITES[op]
    specs = [pool()["cpu:0"].spec(shape, np.float64) for shape in trials[-1][0]]
    try:
        found = _spelled(single_ops, specs)
    except (LookupError, TypeError, ValueError):
        return False
    except AttributeError as error:
        if not isinstance(error.obj, SimpleNamespace):  # which lacks some attributes of a layer or a loss
            raise
        return False
    return found == _spelled(functools.partial(_as_core, op), specs)


def _spelled(function, specs):
    """The graph of a function of tensors with these Specs, as lists that can be compared."""
    graph, _ = trace(function, specs)
    numbers = {node: n for n, node in enumerate(graph.nodes)}
    held = [node.source.numpy().tolist() if node.op == "constant" else node.attrs for node in graph.nodes]
    nodes = [(node.op, [*map(numbers.get, node.inputs)], what) for node, what in zip(graph.nodes, held, strict=True)]
    return nodes, [numbers[node] for node in graph.outputs]


def _as_core(op, *inputs):
    """The single ops of a composite op one after the other. A mean is the core's: a sum and a quotient."""
    tensors = [*inputs]
    for part, which, attrs in _RECORDS[op]:
        given = [tensors[n] for n in which]
        if part == "reduce_mean":
            tensors.append(apply("reduce_sum", *given, **attrs) / float(math.prod(given[0].spec.shape)))
        else:
            tensors.append(apply(part, *given, **attrs))
    return tensors[-1]


def fuses(op, x):
    """Whether the ops on x run as this composite op: x is a tensor (not a Symbol) on a CPU, and no trace is open.

    (Nothing is fused inside `eager()`; an open tape records the composite op.)
    """
    if not ACCELERATION.on:
        return False
    stands = DOOR.top
    while type(stands) in (GradientTape, WiderTape) and type(stands.records) is list:
        stands = stands.below
    here = stands is DOOR.bottom and type(x) is Tensor and x.spec.device.kind == "cpu"
    return here and _rules_are_ours(op) and _stands_for(op)


def _without_loop(op):
    """The entry of a composite op in the kernel table, until a reader enters a kernel. Calling it raises TypeError."""

    def function(*arrays):
        raise TypeError(f"{op} has no loop of its own: several kernels run one after the other")

    return function


def _planner(op):
    """The planner of this op: the single ops run in turn, each over the result before it if the shape is the same.

    Its `nbytes` is the sum of theirs. It raises ValueError if a layer's b[1, n] has not one number for each column.
    """

    def planner(_, function, *inputs):
        specs = [*inputs]
        steps = []
        for part, which, attrs in _RECORDS[op]:
            given = tuple([specs[n] for n in which])
            steps.append((planned(part, given, attrs), which))
            specs.append(steps[-1][0].spec)
            if part == "add" and specs[-1] is not given[0]:
                raise ValueError(f"{op}: x @ w is {given[0]} and b is {given[1]}; expected a number for each column")
        first = steps[0][0].spec
        spec = specs[-1]

        def run(out, *arrays):
            room = out if first is spec else np.empty(first.shape, first.dtype)
            places = [*arrays]
            for plan, which in steps:
                places.append(out if plan.spec is spec else room)
                program = plan.compiled or compiled_once(plan)
                program(places[-1], *[places[n] for n in which])

        ours = of_levels(function)
        made = Plan(op, spec.shape, spec.dtype, inputs, (lambda: run) if ours else lowered(function, inputs[-1]))
        made.nbytes = sum(plan.nbytes for plan, _ in steps)
        return made

    return planner


def _rule(op, which, ours, single_ops):
    """The gradient rule for one input of a composite op: `ours`, or a tape if a single op has another rule by now."""

    def back(dy, y, *inputs):
        if _rules_are_ours(op):
            return ours(dy, y, *inputs)
        with GradientTape() as tape:
            total = reduce_sum(single_ops(*inputs) * dy)
        return tape.gradient(total, inputs[which])

    return back


def _affine_back(slope):
    """The gradient rules for x, w and b. slope(dy, y) is the gradient at x @ w + b."""
    return (
        lambda dy, y, x, w, b: VJPS["matmul"][0](slope(dy, y), y, x, w),
        lambda dy, y, x, w, b: VJPS["matmul"][1](slope(dy, y), y, x, w),
        lambda dy, y, x, w, b: slope(dy, y),
    )


def _mean_back(which):
    """The gradient rule of the mean of logits_crossentropy(y, z), for y (`which` 0) or z (1)."""
    return lambda dy, loss, y, z: VJPS["logits_crossentropy"][which](dy / float(math.prod(z.spec.shape)), loss, y, z)


def _error_back(dy, loss, y, z):
    """The gradient rule for z of the mean of (z - y)². Each factor of the square contributes `share`."""
    error = z - y
    share = VJPS["reduce_mean"][0](dy, loss, error, **_MEAN) * error
    return share + share


def _layer(activation):
    """The core's Dense layer with this activation, op by op, as a function of x, w and b."""
    return lambda x, w, b: layers.Dense.call(SimpleNamespace(activation=activation, kernel=w, bias=b), x)


def _loss(call):
    """The core's loss with this `call`, op by op, as a function of y and z."""
    core = SimpleNamespace(checked=lambda *both: both)
    core.call = functools.partial(call, core)
    return lambda y, z: losses.Loss.__call__(core, y, z)


_NUMBERS = [([shape, shape], {}) for shape in ((1,), (9, 1), (3, 5))]
_BY_ROWS = [([(m, k), (k, n), (1, n)], {}) for m, k, n in ((1, 1, 1), (3, 5, 4), (17, 33, 9))]
_COMPOSITES = {  # op -> (its gradient rules, the single ops as a function, test cases of a kernel)
    "affine": (_affine_back(lambda dy, y: dy), _layer(as_tensor), _BY_ROWS),
    "affine_relu": (
        _affine_back(lambda dy, y: apply("relu_grad", dy, y)),
        _layer(nn.relu),
        _BY_ROWS,
    ),
    "mean_logits_crossentropy": (
        (_mean_back(0), _mean_back(1)),
        _loss(lambda _, y, z: apply("logits_crossentropy", y, z)),
        _NUMBERS,
    ),
    "mean_squared_error": (
        (lambda *given: -_error_back(*given), _error_back),
        _loss(losses.MeanSquaredError.call),
        _NUMBERS,
    ),
}
for _op, (_rules, _single_ops, TEST_CASES[_op]) in _COMPOSITES.items():
    kernel(_op, "cpu", planner=_planner(_op))(_without_loop(_op))
    VJPS[_op] = tuple(_rule(_op, k, rule, _single_ops) for k, rule in enumerate(_rules))

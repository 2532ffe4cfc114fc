"""Several ops as one, where nothing is traced: one launch and one record on the tape. The kernels are those of the several.

What is traced stays as it is: programs join ops by themselves, and all back ends know those. And where a rule of one of them is
the reader's, nothing is joined, so that it is asked as it would be.
"""

import math
from operator import is_

import numpy as np

from levels.kernels import kernel, lowered, make, planned
from levels.low_level import DOOR, RUN, VJPS, GradientTape, Tensor, apply, nn, reduce_mean, reduce_sum
from levels.mid_level import affine
from levels_more import gradients  # noqa: F401 (the rules of logits_crossentropy)
from levels_more.reading import of_levels
from levels_more.trials import TRIALS
from levels_more.walks import MADE_OF

MADE_OF |= {
    "affine": ("matmul", "add"),
    "affine_relu": ("matmul", "add", "relu"),
    "mean_logits_crossentropy": ("logits_crossentropy", "reduce_mean"),
}
_RULES = {  # op -> (the ops that it is made of, the rules that it knows of them: none, where one is the reader's by now)
    op: (parts, [VJPS[part] if all(map(of_levels, filter(None, VJPS[part]))) else None for part in parts])
    for op, parts in MADE_OF.items()
}


def _rules_are_ours(op):
    """Whether the rules of all ops that this one is made of are still those that it knows."""
    parts, rules = _RULES[op]
    return all(map(is_, map(VJPS.get, parts), rules))


def joins(op, x):
    """Whether ops on x, a tensor or anything else, become this one: x has numbers, on a CPU, and nobody wants to hear of each.

    (`eager()` does, and a trace; a tape that is open writes down what it hears.)
    """
    stands = DOOR.stands
    while type(stands) is GradientTape and type(stands.records) is list:
        stands = stands.below
    return stands is RUN and type(x) is Tensor and x.spec.device.kind == "cpu" and _rules_are_ours(op)


def _of_several(op):
    """What stands in the table for a joined op, until somebody enters a kernel: it has no loop of its own."""

    def function(*arrays):
        raise TypeError(f"{op} has no loop of its own: several kernels run one after the other")

    return function


def _planned(op, function, run, inputs, plans):
    """The plan that runs these plans or, if somebody has entered one, a kernel. It moves what they move."""
    lower = (lambda: run) if of_levels(function) else lowered(function, inputs[-1])
    made = make(op, plans[-1].spec.shape, inputs[-1].dtype, inputs, lower)
    made.nbytes = sum(plan.nbytes for plan in plans)
    return made


def _plan_affine(op, function, x, w, b):
    """x @ w + b and its relu, each in the place of the one before. Raises ValueError where b [1, n] has another shape."""
    product = planned("matmul", (x, w), {})
    total = planned("add", (product.spec, b), {})
    if total.spec is not product.spec:
        raise ValueError(f"{op}: x @ w is {product.spec} and b is {b}; expected a number for each column")
    plans = [product, total, *([planned("relu", (total.spec,), {})] if op == "affine_relu" else ())]

    def run(out, x, w, b):
        product.run(out, x, w)
        total.run(out, out, b)
        for relu in plans[2:]:
            relu.run(out, out)

    return _planned(op, function, run, [x, w, b], plans)


def _plan_mean(op, function, y, z):
    """The mean of logits_crossentropy(y, z)."""
    each = planned("logits_crossentropy", (y, z), {})
    mean = planned("reduce_mean", (each.spec,), {"axis": None, "keepdims": False})

    def run(out, y, z):
        numbers = np.empty(each.spec.shape, z.dtype)
        each.run(numbers, y, z)
        mean.run(out, numbers)

    return _planned(op, function, run, [y, z], [each, mean])


def _rule(op, which, ours, apart):
    """The rule of a joined op for one of its inputs: `ours` or, where one of its parts has another, that of the ops apart."""

    def back(dy, y, *inputs):
        if _rules_are_ours(op):
            return ours(dy, y, *inputs)
        with GradientTape() as tape:
            total = reduce_sum(apart(*inputs) * dy)
        return tape.gradient(total, inputs[which])

    return back


def _affine_back(slope):
    """For x, w and b the rules of slope(dy, y, x @ w + b), by dy and y."""
    return (
        lambda dy, y, x, w, b: VJPS["matmul"][0](slope(dy, y), y, x, w),
        lambda dy, y, x, w, b: VJPS["matmul"][1](slope(dy, y), y, x, w),
        lambda dy, y, x, w, b: slope(dy, y),
    )


def _mean_back(which):
    """For y or z the rule of the mean."""
    return lambda dy, loss, y, z: VJPS["logits_crossentropy"][which](dy / float(math.prod(z.spec.shape)), loss, y, z)


_BY_ROWS = [([(m, k), (k, n), (1, n)], {}) for m, k, n in ((1, 1, 1), (3, 5, 4), (17, 33, 9))]
_JOINED = {  # op -> (its planner, its rules, the ops apart, on what a kernel is tried)
    "affine": (_plan_affine, _affine_back(lambda dy, y: dy), affine, _BY_ROWS),
    "affine_relu": (
        _plan_affine,
        _affine_back(lambda dy, y: apply("relu_grad", dy, y)),
        lambda x, w, b: nn.relu(affine(x, w, b)),
        _BY_ROWS,
    ),
    "mean_logits_crossentropy": (
        _plan_mean,
        (_mean_back(0), _mean_back(1)),
        lambda y, z: reduce_mean(apply("logits_crossentropy", y, z)),
        [([shape, shape], {}) for shape in ((1,), (9, 1), (3, 5))],
    ),
}
for _op, (_planner, _rules, _apart, TRIALS[_op]) in _JOINED.items():
    kernel(_op, "cpu", planner=_planner)(_of_several(_op))
    VJPS[_op] = tuple(_rule(_op, k, rule, _apart) for k, rule in enumerate(_rules))

"""Several ops as one, where nothing is traced: one launch and one record on the tape. The kernels are those of the several.

What is traced stays as it is: programs join ops by themselves, and all back ends know those.
"""

import math

import numpy as np

from levels.kernels import kernel, lowered, make, planned
from levels.low_level import DOOR, RUN, VJPS, GradientTape, Tensor, apply
from levels_more import gradients  # noqa: F401 (the rules of logits_crossentropy)
from levels_more.reading import of_levels
from levels_more.trials import TRIALS

(_RELU,) = VJPS["relu"]


def joins(x):
    """Whether ops on x, a tensor or anything else, may be joined: it has numbers, on a CPU, and nobody wants to hear of each op.

    (`eager()` does, a trace, and what counts launches; a tape that is open writes down what it hears.)
    """
    stands = DOOR.stands
    while type(stands) is GradientTape and type(stands.records) is list:
        stands = stands.below
    return stands is RUN and type(x) is Tensor and x.spec.device.kind == "cpu"


def _of_several(op):
    """What stands in the table for a joined op, until somebody enters a kernel: it has no loop of its own."""

    def function(*arrays):
        raise TypeError(f"{op} has no loop of its own: several kernels run one after the other")

    return function


def _plan_affine(op, function, x, w, b):
    """x @ w + b and its relu, each in the place of the one before. Raises ValueError where b [1, n] has another shape."""
    product = planned("matmul", (x, w), {})
    total = planned("add", (product.spec, b), {})
    if total.spec is not product.spec:
        raise ValueError(f"{op}: x @ w is {product.spec} and b is {b}; expected a number for each column")
    relu = planned("relu", (total.spec,), {})

    def run(out, x, w, b):
        product.run(out, x, w)
        total.run(out, out, b)
        if op == "affine_relu":
            relu.run(out, out)

    return make(
        op, product.spec.shape, x.dtype, [x, w, b], (lambda: run) if of_levels(function) else lowered(function, x)
    )


def _product_back(which):
    """The rule of the product, for x or for w."""
    return lambda dy, y, x, w, b: VJPS["matmul"][which](dy, y, x, w)


def _after_relu(rule):
    """A rule of x @ w + b, behind that of relu. One of the reader's may ask for what relu was given, which nobody kept."""

    def back(dy, y, x, w, b):
        (relu,) = VJPS["relu"]
        return rule(relu(dy, y, y if relu is _RELU else apply("affine", x, w, b)), y, x, w, b)

    return back


def _plan_mean(op, function, y, z):
    """The mean of logits_crossentropy(y, z)."""
    each = planned("logits_crossentropy", (y, z), {})
    mean = planned("reduce_mean", (each.spec,), {"axis": None, "keepdims": False})

    def run(out, y, z):
        numbers = np.empty(each.spec.shape, z.dtype)
        each.run(numbers, y, z)
        mean.run(out, numbers)

    return make(op, (), z.dtype, [y, z], (lambda: run) if of_levels(function) else lowered(function, z))


def _mean_back(which):
    """The rule of the mean of logits_crossentropy, for y or for z."""
    return lambda dy, loss, y, z: VJPS["logits_crossentropy"][which](dy / float(math.prod(z.spec.shape)), loss, y, z)


for _op in ("affine", "affine_relu"):
    kernel(_op, "cpu", planner=_plan_affine)(_of_several(_op))
    TRIALS[_op] = [([(m, k), (k, n), (1, n)], {}) for m, k, n in ((1, 1, 1), (3, 5, 4), (17, 33, 9))]
kernel("mean_logits_crossentropy", "cpu", planner=_plan_mean)(_of_several("mean_logits_crossentropy"))
TRIALS["mean_logits_crossentropy"] = [([shape, shape], {}) for shape in ((1,), (9, 1), (3, 5))]
VJPS["mean_logits_crossentropy"] = _mean_back(0), _mean_back(1)
VJPS["affine"] = *(_product_back(which) for which in (0, 1)), lambda dy, y, x, w, b: dy
VJPS["affine_relu"] = tuple(_after_relu(rule) for rule in VJPS["affine"])

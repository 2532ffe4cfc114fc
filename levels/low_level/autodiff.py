"""The tape records each op at the door. Read backwards, it gives the gradient."""

# Built from 03_low_level.ipynb: edit there, then run its last cell.

from levels.kernels import PLANNERS, Plan, element_loop, lowered, reduced, scalar
from levels.support.checks import check_options, not_copied
from levels.support.shapes import check_reshape, same_dtype
from levels.support.tapes import check_reached, check_rules, check_taped

from .ops import reduce_sum
from .tensors import Operators, Watcher, _as_tensors, apply, as_tensor

# op -> for each input a function (dy, y, *inputs, **attrs) -> its gradient; or None
VJPS = {
    "add": (lambda dy, y, a, b: dy, lambda dy, y, a, b: dy),
    "subtract": (lambda dy, y, a, b: dy, lambda dy, y, a, b: -dy),
    "multiply": (lambda dy, y, a, b: dy * b, lambda dy, y, a, b: dy * a),
    "divide": (lambda dy, y, a, b: dy / b, lambda dy, y, a, b: -dy * y / b),
    "negative": (lambda dy, y, x: -dy,),
    "exp": (lambda dy, y, x: dy * y,),
    "log": (lambda dy, y, x: dy / x,),
    "clip": (lambda dy, y, x, **limits: apply("clip_grad", dy, x, **limits),),
}


def hand_on(gradients, x, share):
    """Give the tensor x its share of a gradient, added to what x has already."""
    gradients[x] = gradients[x] + share if x in gradients else share


def unbroadcast(dx, shape):
    """dx summed over the axes in which an input of this shape was repeated."""
    extra = len(dx.spec.shape) - len(shape)
    if extra:
        dx = reduce_sum(dx, axis=tuple(range(extra)))
    for axis, (have, wanted) in enumerate(zip(dx.spec.shape, shape, strict=True)):
        if have != wanted:
            dx = reduce_sum(dx, axis=axis, keepdims=True)
    return dx


def plan_spread(op, function, dy, x, axis=None):
    """Plan the way back through a sum: each number of x gets the dy of its sum."""
    _, whole = reduced(op, x.shape, axis)
    sums = whole[0], whole[2]  # (before the axis, after it)
    check_reshape(op, dy.shape, sums)
    dtype = same_dtype(op, dy, x)
    loop = element_loop(function, x, ["i, k, j", "i, j", "i, k, j"])
    return Plan(op, x.shape, dtype, [dy, x], lowered(loop, x), [whole, sums, whole])


scalar("spread")(lambda dy, x: dy)
PLANNERS["spread"] = plan_spread


def _sum_back(dy, y, x, axis=None, keepdims=False):
    return apply("spread", dy, x) if axis is None else apply("spread", dy, x, axis=axis)


def _matmul_back_x(dy, y, x, w):
    return apply("matmul", dy, w, transpose_w=True)


def _matmul_back_w(dy, y, x, w):
    return apply("matmul", x, dy, transpose_x=True)


VJPS["relu"] = (lambda dy, y, x: apply("relu_grad", dy, y),)
VJPS["sigmoid"] = (lambda dy, y, x: apply("sigmoid_grad", dy, y),)
VJPS["sqrt"] = (lambda dy, y, x: dy / (2.0 * y),)
VJPS["reduce_sum"] = (_sum_back,)
VJPS["matmul"] = _matmul_back_x, _matmul_back_w


def reachable(sources, records):
    """Return the set of these tensors and all that were made from them."""
    made = set(sources)
    for _, inputs, _, y in records:
        if not made.isdisjoint(inputs):
            made.add(y)
    return made


def backward_pass(records, target, sources):
    """Return the gradients of the sources: a walk backwards over a tape's records."""
    needed = reachable(sources, records)
    one = as_tensor(1.0, target)
    gradients = {target: apply("spread", one, target) if target.shape else one}
    for op, inputs, attrs, y in reversed(records):
        if y not in gradients:
            continue
        rules = VJPS.get((op, *attrs)) or VJPS.get(op)
        check_rules(op, attrs, rules)
        for x, vjp in zip(inputs, rules):
            dx = vjp(gradients[y], y, *inputs, **attrs) if vjp and x in needed else None
            if dx is not None:
                hand_on(gradients, x, unbroadcast(dx, x.spec.shape))
    return check_reached(sources, gradients)


class GradientTape(Watcher):
    """A tape that records each op in its `with` block. It is read once."""

    walk = staticmethod(backward_pass)

    def __init__(self, **options):
        check_options(GradientTape, options)
        self.records = []  # (op, inputs, attrs, y); None: it does not record
        self.variables = {}  # variable -> the tensor that was read first

    def do(self, op, plan, inputs, attrs):
        y = self.below.do(op, plan, inputs, attrs)
        if self.records is not None:
            self.records.append((op, inputs, attrs, y))
        return y

    def read(self, variable):
        x = self.below.read(variable)
        self.variables.setdefault(variable, x)
        return x

    def gradient(self, target, sources):
        """Return d target / d source: a tensor like the source, or a list for a list.

        If the target has several numbers, their sum is differentiated.
        """
        if not isinstance(sources, (list, tuple)):
            return self.gradient(target, [sources])[0]
        given = [target, *sources]
        tensors = _as_tensors(given)
        check_taped(self, given, tensors, Operators)
        records = self.records
        self.records = None  # the walk is not recorded
        return self.walk(records, tensors[0], tensors[1:])

    __reduce__ = not_copied("a tape", "it belongs to the tensors that it recorded")

"""The tape records each op at the door. Read backwards, it gives the gradient."""

# Built from 03_low_level.ipynb: edit there, then run its last cell.

from levels.kernels import PLANNERS, Plan, element_loop, lowered, reduced, scalar
from levels.support.checks import check_bool
from levels.support.operators import check_recorded
from levels.support.shapes import check_reshape, same_dtype

from .ops import reduce_sum
from .tensors import Operators, Variable, Watcher, _as_tensors, apply, as_tensor


class _Tape(Watcher):
    """The interpreter in a `with` block that records each op."""

    def __init__(self, persistent=False):
        self.records, self.variables = [], {}  # (op, inputs, attrs, y)
        self.persistent = check_bool("persistent", persistent)  # may be read repeatedly

    def do(self, op, plan, inputs, attrs):
        y = self.below.do(op, plan, inputs, attrs)
        if self.records is not None:  # None: it does not record
            self.records.append((op, inputs, attrs, y))
        return y

    def read(self, variable):
        x = self.below.read(variable)
        self.variables.setdefault(variable, x)
        return x


VJPS = {  # op -> a function per input: (dy, y, *inputs, **attrs) -> its gradient; or None
    "add": (lambda dy, y, a, b: dy, lambda dy, y, a, b: dy),
    "subtract": (lambda dy, y, a, b: dy, lambda dy, y, a, b: -dy),
    "multiply": (lambda dy, y, a, b: dy * b, lambda dy, y, a, b: dy * a),
    "divide": (lambda dy, y, a, b: dy / b, lambda dy, y, a, b: -dy * y / b),
    "negative": (lambda dy, y, x: -dy,),
    "exp": (lambda dy, y, x: dy * y,),
    "log": (lambda dy, y, x: dy / x,),
    "clip": (lambda dy, y, x, low, high: apply("clip_grad", dy, x, low=low, high=high),),
}


def hand_on(gradients, x, share):
    """Give the tensor x its share of a gradient. A share is added to what x has from other ops."""
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
    _, (before, within, after) = reduced(op, x.shape, axis)
    check_reshape(op, dy.shape, (before, after))
    dtype = same_dtype(op, dy, x)
    loop = element_loop(function, x, ["i, k, j", "i, j", "i, k, j"])
    views = [(before, within, after), (before, after), (before, within, after)]
    return Plan(op, x.shape, dtype, [dy, x], lowered(loop, x), views)


scalar("spread")(lambda dy, x: dy)
PLANNERS["spread"] = plan_spread


def _sum_back(dy, y, x, axis=None, keepdims=False):
    return apply("spread", dy, x) if axis is None else apply("spread", dy, x, axis=axis)


def _spread_back(d, y, dy, x, axis=None):
    return reduce_sum(d, axis, keepdims=len(dy.shape) == len(x.shape))


def _matmul_back_x(dy, y, x, w, transpose_x=False, transpose_w=False):
    if transpose_x:
        return apply("matmul", w, dy, transpose_x=transpose_w, transpose_w=True)
    return apply("matmul", dy, w, transpose_w=not transpose_w)


def _matmul_back_w(dy, y, x, w, transpose_x=False, transpose_w=False):
    if transpose_w:
        return apply("matmul", dy, x, transpose_x=True, transpose_w=transpose_x)
    return apply("matmul", x, dy, transpose_x=not transpose_x)


VJPS["relu"] = (lambda dy, y, x: apply("relu_grad", dy, y),)
VJPS["sigmoid"] = (lambda dy, y, x: apply("sigmoid_grad", dy, y),)
VJPS["sqrt"] = (lambda dy, y, x: dy / (2.0 * y),)
VJPS["reduce_sum"] = (_sum_back,)
VJPS["spread"] = _spread_back, None
VJPS["matmul"] = _matmul_back_x, _matmul_back_w


def reachable(sources, records):
    """Return the set of these tensors and all that were made from them."""
    made = set(sources)
    for _, inputs, _, y in records:
        if not made.isdisjoint(inputs):
            made.add(y)
    return made


def _gradients_of(sources, gradients):
    """Return the gradients of the sources. Raises ValueError if one has none."""
    for k, source in enumerate(sources):
        if source not in gradients:
            what = f"source {k}, {source.spec}"
            raise ValueError(f"gradient: {what}, was not used on the way to the target while the tape was open")
    return [gradients[source] for source in sources]


def backward_pass(records, target, sources):
    """Return the gradients, walking backwards. Raises LookupError for a missing rule, ValueError for unused sources."""
    needed, one = reachable(sources, records), as_tensor(1.0, target)
    gradients = {target: apply("spread", one, target) if target.shape else one}
    for op, inputs, attrs, y in reversed(records):
        if y not in gradients:
            continue
        if op not in VJPS:
            raise LookupError(f"gradient: {op} has no rule yet; add a row to VJPS (levels_more.low_level has more)")
        for x, vjp in zip(inputs, VJPS[op]):
            dx = vjp(gradients[y], y, *inputs, **attrs) if vjp and x in needed else None
            if dx is not None:
                hand_on(gradients, x, dx if dx.spec is x.spec else unbroadcast(dx, x.spec.shape))
    return _gradients_of(sources, gradients)


WALKS = []  # walk(records, target, sources): the same gradients, sooner, or None if it cannot


def quickest_walk(records, target, sources):
    """Return the gradients from the first of WALKS that finds them, else from `backward_pass`, with its errors."""
    for walk in WALKS:
        found = walk(records, target, sources)
        if found is not None:
            return found
    return backward_pass(records, target, sources)


class GradientTape(_Tape):
    """A tape that records every op while it is open. `gradient` can be called once, or repeatedly with `persistent`."""

    def gradient(self, target, sources):
        """Return d target / d source, a tensor shaped like the source, or a list of them for a list of sources.

        If the target has several numbers, their sum is differentiated. This tape does not record the walk. Raises
        RuntimeError if it was read, TypeError unless all are floats, ValueError for a source not used, or assigned.
        """
        if self.records is None:
            told = "is being read" if self.persistent else "was read; GradientTape(persistent=True) can be read again"
            raise RuntimeError(f"gradient: this tape {told}")
        if not isinstance(sources, (list, tuple)):
            return self.gradient(target, [sources])[0]
        tensors = _as_tensors((target, *sources))
        names = ["the target", *(f"source {k}" for k in range(len(sources)))]
        for name, given, x in zip(names, (target, *sources), tensors):
            check_recorded(name, given, Operators)
            if x.spec.dtype.kind != "f":
                raise TypeError(f"gradient: {name} is {x.dtype}; only floats have a gradient")
            if isinstance(given, Variable) and self.variables.get(given, x) is not x:
                raise ValueError(f"gradient: {name} was assigned while the tape was open; assign after the gradient")
        records, self.records = self.records, None  # the walk is not recorded
        try:
            return quickest_walk(records, tensors[0], tensors[1:])
        finally:
            self.records = records if self.persistent else None

    def __reduce__(self):
        raise TypeError("a tape cannot be copied: it belongs to the tensors that it recorded")

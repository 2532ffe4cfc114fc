"""The tape records each op at the door. Read backwards, it gives the gradient."""

# Built from 03_low_level.ipynb: edit there, then run its last cell.

from levels.kernels import reduced
from levels.support.checks import check_bool
from levels.support.operators import check_recorded

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


def _spread_back(dy, y, x, count=1.0, axis=None, keepdims=False):
    """Return the gradient of x, which was reduced to y: each number gets the dy of its sum, divided by a count."""
    if axis is not None and not keepdims:  # restore the reduced axes, with size 1
        axes, _ = reduced("broadcast_divide", x.spec.shape, axis)
        dy = apply("reshape", dy, shape=tuple(1 if k in axes else size for k, size in enumerate(x.spec.shape)))
    return apply("broadcast_divide", dy, x, count=count)


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
VJPS["reshape"] = (lambda dy, y, x, shape: apply("reshape", dy, shape=x.spec.shape),)
VJPS["reduce_sum"] = (_spread_back,)
VJPS["reduce_mean"] = (lambda dy, y, x, **how: _spread_back(dy, y, x, x.spec.nbytes / (y.spec.nbytes or 1), **how),)
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
    gradients = {target: apply("broadcast_to", one, shape=target.shape) if target.shape else one}
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

"""The tape: a list of what passed the door, read backwards it gives the gradient."""

# Built from 03_low_level.ipynb: edit there, then run its last cell.

import math

from levels import more
from levels.hardware import flag

from .ops import reduce_sum
from .tensors import Passing, apply, as_tensor


def size(spec):
    """How many numbers a tensor of this Spec has."""
    return math.prod(spec.shape)


def write_down(records, op, inputs, attrs, y):
    """Add one op to the list of a tape's records."""
    records.append((op, inputs, attrs, y))


class _Tape(Passing):
    """Writes down every op while it is open."""

    def __init__(self, persistent=False):
        self.persistent, self.listens = flag("persistent", persistent), True
        self.records, self.variables, self.assigned = [], {}, []  # (op, inputs, attrs, result); {tensor: variable}

    def do(self, op, plan, inputs, attrs):
        y = self.below.do(op, plan, inputs, attrs)
        if self.listens:
            write_down(self.records, op, inputs, attrs, y)
        return y

    def read(self, variable):
        x = self.below.read(variable)
        self.variables[x] = variable
        return x

    def assign(self, variable, value):
        self.assigned.append(variable)
        self.below.assign(variable, value)


def times_back(dy, other):
    """The gradient of one factor of a product: from that of the product, dy, and the other factor."""
    return dy * other


VJPS = {  # op -> for each input: (dy, y, *inputs, **attrs) -> the gradient of that input; None where none passes
    "add": (lambda dy, y, a, b: dy, lambda dy, y, a, b: dy),
    "subtract": (lambda dy, y, a, b: dy, lambda dy, y, a, b: -dy),
    "multiply": (lambda dy, y, a, b: times_back(dy, b), lambda dy, y, a, b: times_back(dy, a)),
    "divide": (lambda dy, y, a, b: dy / b, lambda dy, y, a, b: -dy * y / b),
    "negative": (lambda dy, y, x: -dy,),
    "exp": (lambda dy, y, x: dy * y,),
    "log": (lambda dy, y, x: dy / x,),
    "relu": (lambda dy, y, x: apply("relu_grad", dy, y),),
    "sigmoid": (lambda dy, y, x: apply("sigmoid_grad", dy, y),),
    "clip": (lambda dy, y, x, low, high: apply("clip_grad", dy, x, low=low, high=high),),
    "reduce_sum": (lambda dy, y, x, **how: spread_back(dy, x, **how),),
    "reduce_mean": (lambda dy, y, x, **how: spread_back(dy, x, **how, count=size(x.spec) / size(y.spec)),),
}


def hand_on(gradients, x, share):
    """Give x its share of a gradient. What x has from other ops already stays: shares are added up."""
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


def spread_back(dy, x, axis=None, keepdims=False, count=1.0):
    """The reverse of reducing x to `dy`: every number of x gets the dy that it went into, divided by a count."""
    if axis is not None and not keepdims:
        shape = list(x.spec.shape)
        for a in axis if isinstance(axis, tuple) else (axis,):
            shape[a] = 1
        dy = apply("reshape", dy, shape=tuple(shape))
    return apply("spread", dy, x, count=count)


def _matmul_vjp_x(dy, y, x, w, transpose_x=False, transpose_w=False):
    if transpose_x:
        return apply("matmul", w, dy, transpose_x=transpose_w, transpose_w=True)
    return apply("matmul", dy, w, transpose_w=not transpose_w)


def _matmul_vjp_w(dy, y, x, w, transpose_x=False, transpose_w=False):
    if transpose_w:
        return apply("matmul", dy, x, transpose_x=True, transpose_w=transpose_x)
    return apply("matmul", x, dy, transpose_x=not transpose_x)


VJPS["matmul"] = _matmul_vjp_x, _matmul_vjp_w


def walk_back(records, target, sources):
    """The gradients of `target`: from the last record to the first, each op hands its gradient on to its inputs."""
    useful, needed = _useful(records, sources)
    one = as_tensor(1.0, target)
    gradients = {target: apply("broadcast_to", one, shape=target.shape) if target.shape else one}
    for op, inputs, attrs, y in reversed(useful):
        if y not in gradients:  # it does not lead to the target
            continue
        rules = _rules(op, len(inputs))
        for x, vjp in zip(inputs, rules):
            dx = vjp(gradients[y], y, *inputs, **attrs) if vjp and x in needed else None
            if dx is not None:
                hand_on(gradients, x, dx if dx.spec is x.spec else unbroadcast(dx, x.spec.shape))
    for k, source in enumerate(sources):
        if source not in gradients:
            raise ValueError(f"gradient: source {k} was not used on the way to the target while the tape was open")
    return [gradients[source] for source in sources]


def _useful(records, sources):
    """The records of ops that depend on a source, and all tensors that do."""
    needed, useful = set(sources), []
    for record in records:
        _, inputs, _, y = record
        if not needed.isdisjoint(inputs):
            needed.add(y)
            useful.append(record)
    return useful, needed


def _rules(op, count):
    """The rules of an op that has so many inputs. Raises LookupError where there are none."""
    if op not in VJPS and not more("rule", op):
        raise LookupError(f"gradient: {op} has no rule yet; add a row to VJPS")
    return VJPS[op] if type(VJPS[op]) is tuple else VJPS[op](count)


class GradientTape(_Tape):
    """Writes down every op while it is open. `gradient` reads it once, a persistent tape any number of times."""

    def __enter__(self):
        if self.records is None or hasattr(self, "below"):
            raise RuntimeError("this tape was open before; make another one")
        return super().__enter__()

    def gradient(self, target, sources):
        """d target / d source for each source of a list, or for one: tensors shaped like the sources.

        A target of several numbers stands for their sum. What this computes is not written on this tape. Raises
        RuntimeError for a tape that was read, ValueError for a source that the target does not depend on.
        """
        if self.records is None:
            raise RuntimeError("gradient: this tape was read; GradientTape(persistent=True) can be read again")
        if not isinstance(sources, (list, tuple)):
            return self.gradient(target, [sources])[0]
        for k, source in enumerate(sources):
            if any(source is variable for variable in self.assigned):
                told = f"gradient: source {k} was assigned while the tape was open; assign after the gradient"
                raise ValueError(told)
        target, sources = as_tensor(target), [as_tensor(source) for source in sources]
        for k, x in enumerate([target, *sources]):
            if x.spec.dtype.kind != "f":
                name = f"source {k - 1}" if k else "the target"
                raise TypeError(f"gradient: {name} is {x.dtype}; only floats have a gradient")
        self.listens = False
        try:
            return walk_back(self.records, target, sources)
        finally:
            self.listens, self.records = self.persistent, self.records if self.persistent else None

    def __reduce__(self):
        raise TypeError("a tape cannot be copied: it belongs to the tensors that it heard of")

    def __repr__(self):
        names, lines = {}, []
        for i, (op, inputs, attrs, y) in enumerate(self.records or ()):
            *given, result = (names.setdefault(id(t), f"t{len(names)}") for t in (*inputs, y))
            call = ", ".join([*given, *(f"{name}={value}" for name, value in attrs.items())])
            lines.append(f"{i:3}  {result} = {op}({call})".ljust(56) + f" {y.shape}")
        return "GradientTape, read" if self.records is None else "\n".join(lines)

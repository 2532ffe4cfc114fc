"""The tape: a list of what passed the door, read backwards it gives the gradient."""

# Built from 03_low_level.ipynb: edit there, then run its last cell.

import math

import numpy as np

from .tensors import TAPES, apply, as_tensor, cast, exp, gather, innermost, log, moved, reduce_sum, transpose, where


class GradientTape:
    """Writes down every op while it is open. `gradient` reads it once, a persistent tape any number of times."""

    def __init__(self, persistent=False):
        self.persistent, self.records, self.assigned = persistent, [], []  # (op, inputs, attrs, result); variables

    def __enter__(self):
        if self in TAPES or self.records is None:
            raise RuntimeError(f"this tape is {'open already' if self in TAPES else 'read'}; make another one")
        TAPES.append(self)
        return self

    def __exit__(self, *_):
        if self in TAPES:
            TAPES.remove(self)

    def gradient(self, target, sources):
        """d target / d source for each source of a list, or for one: tensors shaped like the sources.

        A target of several numbers stands for their sum. A tape that is read while it is open is closed first.
        """
        if self.records is None:
            raise RuntimeError("gradient: this tape was read; GradientTape(persistent=True) can be read again")
        if not isinstance(sources, (list, tuple)):
            return self.gradient(target, [sources])[0]
        for variable in self.assigned:
            for k, source in enumerate(sources):
                if source is variable:
                    raise ValueError(
                        f"gradient: source {k} was assigned while the tape was open; assign after the gradient"
                    )
        place = TAPES.index(self) if self in TAPES else None
        self.__exit__()
        try:
            return walk_back(self.records, as_tensor(target), [as_tensor(source) for source in sources])
        finally:
            if not self.persistent:
                self.records = None
            elif place is not None:
                TAPES.insert(place, self)

    def __repr__(self):
        return "GradientTape, read" if self.records is None else printed(self.records)


def printed(records):
    """The records as text: `  0  t2 = multiply(t0, t1)   (10, 1)`."""
    names, lines = {}, []
    for i, (op, inputs, attrs, y) in enumerate(records):
        *given, result = (names.setdefault(id(t), f"t{len(names)}") for t in (*inputs, y))
        call = ", ".join([*given, *(f"{name}={value}" for name, value in attrs.items())])
        lines.append(f"{i:3}  {result} = {op}({call})".ljust(56) + f" {y.shape}")
    return "\n".join(lines)


VJPS = {  # op -> for each input: (dy, y, *inputs, **attrs) -> the gradient of that input; None where none passes
    "add": (lambda dy, y, a, b: dy, lambda dy, y, a, b: dy),
    "subtract": (lambda dy, y, a, b: dy, lambda dy, y, a, b: -dy),
    "multiply": (lambda dy, y, a, b: dy * b, lambda dy, y, a, b: dy * a),
    "divide": (lambda dy, y, a, b: dy / b, lambda dy, y, a, b: -dy * y / b),
    "negative": (lambda dy, y, x: -dy,),
    "exp": (lambda dy, y, x: dy * y,),
    "log": (lambda dy, y, x: dy / x,),
    "relu": (lambda dy, y, x: apply("relu_grad", dy, y),),
    "sigmoid": (lambda dy, y, x: apply("sigmoid_grad", dy, y),),
    "clip": (lambda dy, y, x, low, high: apply("clip_grad", dy, x, low=low, high=high),),
    "broadcast_to": (lambda dy, y, x, shape: dy,),
    "spread": (lambda g, y, dy, x, count: apply("spread", g, y, count=count), None),
    "reduce_sum": (lambda dy, y, x, axis=None, keepdims=False: spread_back(dy, x, axis, keepdims),),
    "reduce_mean": (
        lambda dy, y, x, axis=None, keepdims=False: spread_back(dy, x, axis, keepdims, size(x.spec) / size(y.spec)),
    ),
    "gather": (lambda dy, y, x, rows: apply("scatter_add", dy, rows, count=x.spec.shape[0]), None),
}


def matmul_vjp_x(dy, y, x, w, transpose_x=False, transpose_w=False):
    if transpose_x:
        return apply("matmul", w, dy, transpose_x=transpose_w, transpose_w=True)
    return apply("matmul", dy, w, transpose_w=not transpose_w)


def matmul_vjp_w(dy, y, x, w, transpose_x=False, transpose_w=False):
    if transpose_w:
        return apply("matmul", dy, x, transpose_x=True, transpose_w=transpose_x)
    return apply("matmul", x, dy, transpose_x=not transpose_x)


VJPS["matmul"] = matmul_vjp_x, matmul_vjp_w


def size(spec):
    """How many numbers a tensor of this Spec has."""
    return math.prod(spec.shape)


def spread_back(dy, x, axis, keepdims, count=1.0):
    """The reverse of reducing x to `dy`: every number of x gets the dy that it went into, divided by a count."""
    if axis is not None and not keepdims:
        shape = list(x.spec.shape)
        for a in axis if isinstance(axis, tuple) else (axis,):
            shape[a] = 1
        dy = apply("reshape", dy, shape=tuple(shape))
    return apply("spread", dy, x, count=count)


def unbroadcast(dx, shape):
    """dx summed over the axes in which an input of this shape was repeated."""
    extra = len(dx.spec.shape) - len(shape)
    if extra:
        dx = apply("reduce_sum", dx, axis=tuple(range(extra)), keepdims=False)
    for axis, (have, wanted) in enumerate(zip(dx.spec.shape, shape, strict=True)):
        if have != wanted:
            dx = apply("reduce_sum", dx, axis=axis, keepdims=True)
    return dx


def walk_back(records, target, sources):
    """The gradients of `target`: from the last record to the first, each op hands its gradient on to its inputs."""
    for k, t in enumerate((target, *sources)):
        if t.spec.dtype.kind != "f":
            name = f"source {k - 1}" if k else "the target"
            raise TypeError(f"gradient: {name} is {t.dtype}; only floats have a gradient")
    needed, useful = set(sources), []  # what depends on a source, by which records
    for record in records:
        if not needed.isdisjoint(record[1]):
            needed.add(record[3])
            useful.append(record)
    one = as_tensor(1.0, target)
    gradients = {target: apply("broadcast_to", one, shape=target.shape) if target.shape else one}
    for op, inputs, attrs, y in reversed(useful):
        dy, rules = gradients.get(y), VJPS.get(op)
        if dy is None:
            continue
        if rules is None:
            raise LookupError(f"gradient: {op} has no rule yet; add a row to VJPS")
        for x, vjp in zip(inputs, rules if type(rules) is tuple else rules(len(inputs))):
            if x not in needed or vjp is None or (dx := vjp(dy, y, *inputs, **attrs)) is None:
                continue
            if dx.spec is not x.spec:
                dx = unbroadcast(dx, x.spec.shape)
            gradients[x] = gradients[x] + dx if x in gradients else dx
    for k, source in enumerate(sources):
        if source not in gradients:
            raise ValueError(f"gradient: source {k} was not used on the way to the target while the tape was open")
    return [gradients[source] for source in sources]


VJPS["copy"] = (None,)


def stop_gradient(x):
    """The same numbers, through which no gradient passes (`detach` in PyTorch)."""
    return apply("copy", x)


def grad(outputs, inputs):
    """As `torch.autograd.grad`: the gradients of one number, from the innermost open tape."""
    tape = innermost("grad")
    if math.prod(outputs.shape) != 1:
        raise ValueError(f"grad: the output has shape {outputs.shape}; expected one number")
    return tape.gradient(outputs, inputs)


def share_back(dy, y, x, axis=None, keepdims=False):
    """The reverse of a largest or smallest number: dy, divided among those that are it."""
    hit = cast(x == spread_back(y, x, axis, keepdims), x.dtype)
    count = reduce_sum(hit, axis, keepdims)
    return hit * spread_back(dy / count, x, axis, keepdims)


def part_of_join(k):
    """The rule of input k of a `concat`: its part of dy."""

    def vjp(dy, y, *inputs, axis=0):
        start = sum(x.spec.shape[axis] for x in inputs[:k])
        return dy[(slice(None),) * axis + (slice(start, start + inputs[k].spec.shape[axis]),)]

    return vjp


VJPS.update(
    {
        "sqrt": (lambda dy, y, x: dy / (2.0 * y),),
        "tanh": (lambda dy, y, x: dy * (1.0 - y * y),),
        "power": (
            lambda dy, y, a, b: dy * where(b == 0.0, 0.0, b * a ** (b - 1.0)),
            lambda dy, y, a, b: dy * (y * log(where(a > 0.0, a, 1.0))),
        ),
        "maximum": (lambda dy, y, a, b: where(a >= b, dy, 0.0), lambda dy, y, a, b: where(a >= b, 0.0, dy)),
        "minimum": (lambda dy, y, a, b: where(a <= b, dy, 0.0), lambda dy, y, a, b: where(a <= b, 0.0, dy)),
        "where": (None, lambda dy, y, m, a, b: where(m, dy, 0.0), lambda dy, y, m, a, b: where(m, 0.0, dy)),
        "reduce_max": (share_back,),
        "reduce_min": (share_back,),
        "softmax": (lambda dy, y, x: apply("softmax_grad", dy, y),),
        "log_softmax": (lambda dy, y, x: apply("log_softmax_grad", dy, y),),
        "transpose": (lambda dy, y, x, axes=None: transpose(dy, axes and np.argsort(axes).tolist()),),
        "reshape": (lambda dy, y, x, shape: apply("reshape", dy, shape=x.spec.shape),),
        "concat": lambda count: map(part_of_join, range(count)),
        "slice": (lambda dy, y, x, slices: apply("slice_grad", dy, shape=x.spec.shape, slices=slices),),
        "slice_grad": (lambda dy, y, x, shape, slices: apply("slice", dy, slices=slices),),
        "cast": (lambda dy, y, x, dtype: cast(dy, x.dtype) if {x.dtype.kind, dtype.kind} == {"f"} else None,),
        "scatter_add": (lambda dy, y, x, rows, count: gather(dy, rows), None),
        "to": (lambda dy, y, x, name: moved(dy, x.device.name),),
    }
)
VJPS.update(dict.fromkeys(("less", "less_equal", "equal", "not_equal", "arg_max", "one_hot"), (None, None)))


VJPS.update(
    {
        "relu_grad": (lambda g, dx, dy, y: apply("relu_grad", g, y), None),
        "clip_grad": (lambda g, dx, dy, x, low, high: apply("clip_grad", g, x, low=low, high=high), None),
        "sigmoid_grad": (
            lambda g, dx, dy, y: apply("sigmoid_grad", g, y),
            lambda g, dx, dy, y: g * dy * (1.0 - 2.0 * y),
        ),
        "softmax_grad": (
            lambda g, dx, dy, y: apply("softmax_grad", g, y),
            lambda g, dx, dy, y: g * (dy - reduce_sum(dy * y, -1, True)) - dy * reduce_sum(g * y, -1, True),
        ),
        "log_softmax_grad": (
            lambda g, dx, dy, y: g - reduce_sum(g * exp(y), -1, True),
            lambda g, dx, dy, y: -g * exp(y) * reduce_sum(dy, -1, True),
        ),
    }
)

"""The tape: a list of what passed the door, read backwards it gives the gradient."""

# Built from notebooks/03_low_level.ipynb: edit there, then run its last cell.

import numpy as np

from .tensors import TAPES, apply, as_tensor, constant, reduce_sum


class GradientTape:
    """Writes down every op while it is open."""

    def __init__(self):
        self.records = []  # (op, inputs, attrs, result)

    def __enter__(self):
        TAPES.append(self)
        return self

    def __exit__(self, *_):
        TAPES.remove(self)

    def gradient(self, target, sources):
        """d target / d source for each source: a list of tensors shaped like the sources."""
        return walk_back(self.records, as_tensor(target), [as_tensor(s) for s in sources])

    def __repr__(self):
        return "\n".join(
            f"{i:3}  {op:<12} {' '.join(str(x.shape) for x in inputs)} -> {y.shape}"
            for i, (op, inputs, _, y) in enumerate(self.records)
        )


VJPS = {  # op -> for each input: (dy, y, *inputs, **attrs) -> the gradient of that input
    "add": (lambda dy, y, a, b: dy, lambda dy, y, a, b: dy),
    "subtract": (lambda dy, y, a, b: dy, lambda dy, y, a, b: -dy),
    "multiply": (lambda dy, y, a, b: dy * b, lambda dy, y, a, b: dy * a),
    "divide": (lambda dy, y, a, b: dy / b, lambda dy, y, a, b: -dy * y / b),
    "negative": (lambda dy, y, x: -dy,),
    "matmul": (
        lambda dy, y, x, w: apply("matmul", dy, w, transpose_w=True),
        lambda dy, y, x, w: apply("matmul", x, dy, transpose_x=True),
    ),
    "reduce_sum": (lambda dy, y, x, axis, keepdims: spread_back(dy, x.shape, axis, keepdims),),
    "exp": (lambda dy, y, x: dy * y,),
    "log": (lambda dy, y, x: dy / x,),
    "relu": (lambda dy, y, x: apply("relu_grad", dy, y),),
    "sigmoid": (lambda dy, y, x: apply("sigmoid_grad", dy, y),),
    "clip": (lambda dy, y, x, low, high: apply("clip_grad", dy, x, low=low, high=high),),
    "broadcast_to": (lambda dy, y, x, shape: dy,),
}


def spread_back(dy, shape, axis, keepdims):
    """The reverse of a sum: the same gradient for every number that went into it."""
    if axis is not None and axis % len(shape) and not keepdims:
        raise NotImplementedError("the gradient of a sum over an axis that is not the first needs keepdims=True")
    return apply("broadcast_to", dy, shape=shape)


def unbroadcast(dx, shape):
    """dx summed over the axes in which an input of this shape was repeated."""
    while len(dx.shape) > len(shape):
        dx = reduce_sum(dx, axis=0)
    for axis, (size, wanted) in enumerate(zip(dx.shape, shape, strict=True)):
        if size != wanted:
            dx = reduce_sum(dx, axis=axis, keepdims=True)
    return dx


def walk_back(records, target, sources):
    """The gradients of `target`: from the last record to the first, each op hands its gradient on to its inputs."""
    needed = {id(s) for s in sources}  # what depends on a source; the rest is skipped
    useful = []
    for record in records:
        if not needed.isdisjoint(map(id, record[1])):
            needed.add(id(record[3]))
            useful.append(record)
    gradients = {id(target): constant(np.ones(target.shape, target.dtype))}
    for op, inputs, attrs, y in reversed(useful):
        if id(y) not in gradients:
            continue
        if op not in VJPS:
            raise LookupError(f"gradient: {op} has no rule yet; add a row to VJPS")
        for x, vjp in zip(inputs, VJPS[op]):
            if id(x) in needed:
                dx = vjp(gradients[id(y)], y, *inputs, **attrs)
                if dx.buffer.spec is not x.buffer.spec:
                    dx = unbroadcast(dx, x.shape)
                gradients[id(x)] = gradients[id(x)] + dx if id(x) in gradients else dx
    for k, source in enumerate(sources):
        if id(source) not in gradients:
            raise ValueError(f"gradient: source {k} was not used on the way to the target while the tape was open")
    return [gradients[id(source)] for source in sources]

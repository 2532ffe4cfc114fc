"""All slopes of a function of recorded tensors: its Jacobian, one `grad` a number of the result, and its Hessian."""

import numpy as np

from levels_more.torch.recorded import FUNCTIONS, Recorded
from levels_more.torch.recording import OperandError, Switch, grad


def jacobian(func, inputs, create_graph=False):
    """The slopes of y = func(x), a tensor in the shape (*y.shape, *x.shape); for a tuple of inputs, one for each.

    With `create_graph` they remember as well. Raises OperandError for a function that gives no tensor.
    """
    many = isinstance(inputs, tuple)
    given = [x.clone() if x.requires_grad else x.clone().requires_grad_() for x in (inputs if many else (inputs,))]
    y = func(*given)
    if not isinstance(y, Recorded):
        raise OperandError(f"jacobian: the function gives {y!r:.60}; expected one tensor")
    rows = [[] for _ in given]
    for part in y.reshape(-1) if y.requires_grad else ():
        for row, x, dx in zip(rows, given, grad(part, given, None, True, create_graph, True), strict=True):
            row.append(FUNCTIONS["zeros_like"](x) if dx is None else dx)
    found = [
        FUNCTIONS["stack"](row).reshape(*y.shape, *x.shape)
        if row
        else FUNCTIONS["zeros"](*y.shape, *x.shape, dtype=x.dtype)
        for row, x in zip(rows, given, strict=True)
    ]
    return tuple(found) if many else found[0]


def hessian(func, inputs, create_graph=False):
    """The slopes of the slopes of one number func(x), in the shape (*x.shape, *x.shape); of several inputs, a tuple of tuples.

    Raises RuntimeError where the function gives several numbers.
    """
    many = isinstance(inputs, tuple)

    def slopes(k):
        def run(*given):
            y = func(*given)
            if y.numel() != 1:
                raise RuntimeError(f"hessian: the function gives {tuple(y.shape)}; expected one number")
            return jacobian(lambda *xs: func(*xs).reshape(()), given, True)[k]

        return run

    found = [jacobian(slopes(k), inputs, create_graph) for k in range(len(inputs) if many else 1)]
    return tuple(found) if many else found[0]


def gradcheck(func, inputs, eps=1e-6, atol=1e-5, rtol=1e-3, raise_exception=True):
    """Whether all slopes of func(*inputs), one tensor of float64, are those that differences give.

    Raises RuntimeError where they are not, unless `raise_exception` is false, and OperandError for inputs of another dtype.
    """
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    if any(x.requires_grad and x.dtype != "float64" for x in inputs):
        raise OperandError("gradcheck: differences need float64; make the inputs with dtype=torch.float64")
    with Switch(False):
        found = [x.detach().clone() for x in inputs]

        def moved(x, at, by):
            before = x[at].item()
            x[at] = before + by
            y = func(*found)
            x[at] = before
            return y

        slopes = [
            np.stack([(moved(x, at, eps) - moved(x, at, -eps)).numpy() / (2 * eps) for at in np.ndindex(*x.shape)], -1)
            for x in found
        ]
    for k, (dx, expected, x) in enumerate(zip(jacobian(func, inputs), slopes, inputs, strict=True)):
        if x.requires_grad and not np.allclose(dx.detach().numpy().reshape(expected.shape), expected, rtol, atol):
            if raise_exception:
                raise RuntimeError(
                    f"gradcheck: the slopes of input {k} are {dx.tolist()!r:.200}; differences give {expected!r:.200}"
                )
            return False
    return True
